"""Copying a cast up to a step into a run directory of its own (lineage: ``forkedFrom``)."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from materia_nb.engine import decide
from materia_nb.engine.rules import Rules
from materia_nb.jsonvalue import JSON
from materia_nb.store.files import disk
from materia_nb.store.journal import Line, encoded, lines_of, read_journal
from materia_nb.store.reader import read_session
from materia_nb.store.rundir import RunDir, new_run_dir, place_of

_APPROVALS: Final = ("tools_allowed", "tool_decided")


def fork_files(files: RunDir, rules: Rules, step: int, root: Path | None = None) -> Path:
    """Copy journal, config and artifacts to a new directory in ``root``; its first event names where it comes from.

    Without ``root`` the directory is made beside the one that is copied. What a person allowed to tools, and a
    consent to a command that still stands, is left out: it was said of that cast, so a fork asks again. The journal, which makes the directory a cast, comes last and at once.
    """
    lines = [line for line in read_journal(files.journal).lines if line.type not in _APPROVALS]
    path = new_run_dir(root or files.path.parent)
    lines = [_copied(line, path, files.path.name, step) for line in lines]
    try:
        with disk(path, "copy the cast"):
            for name in ("sockets", "contexts", "config.resolved.json"):
                source = files.path / name
                if source.is_dir():
                    shutil.copytree(source, path / name, ignore=_odd)
                elif source.exists():
                    shutil.copy2(source, path / name)
            made = RunDir(path)
            made.replace("events.jsonl", encoded([*lines, *_back(made, rules, lines, step)]))
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)  # a half-made copy is no cast
        raise
    return path


def _odd(folder: str, names: list[str]) -> list[str]:
    """Pick what no cast made: links, which may lead anywhere, and pipes, which would be waited for."""
    modes = {name: (Path(folder) / name).lstat().st_mode for name in names}
    return [name for name, mode in modes.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))]


def _copied(line: Line, path: Path, cast_id: str, step: int) -> Line:
    data: dict[str, JSON] = dict(line.data)
    if line.type == "approval_answered":
        data.pop("expires", None)  # no grant follows from it
    if line.type == "cast_start":
        data |= {"forkedFrom": {"cast": cast_id, "step": step}, "place": place_of(path)}
    return line._replace(data=data)


def _back(files: RunDir, rules: Rules, lines: Sequence[Line], step: int) -> list[Line]:
    """Return the line that takes the copy back to ``step``, none where it stands there."""
    session = read_session(rules, lines, files.read_text).session
    if step == len(session.steps):
        return []
    outcome = decide.back_to(rules, session, step, lines[-1].ts)
    return lines_of(outcome.events, outcome.session, files)
