"""Copying a cast up to a step into a run directory of its own (lineage: ``forkedFrom``)."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path
from typing import Final

from materia_nb.jsonvalue import JSON
from materia_nb.store.files import disk, json_bytes, write_file
from materia_nb.store.journal import Line, read_journal
from materia_nb.store.rundir import RunDir, new_run_dir, place_of

_LEAVE: Final = ("tools_allowed", "tool_decided")


def fork_files(files: RunDir, step: int) -> Path:
    """Copy journal, config and artifacts to a new directory beside; its first event names where it comes from.

    What a person allowed to tools for the whole cast is left out: it was said of that cast, so a fork asks again.
    """
    lines = read_journal(files.journal).lines
    path = new_run_dir(files.path.parent)
    try:
        with disk(path, "copy the cast"):
            for name in ("sockets", "contexts", "config.resolved.json"):
                source = files.path / name
                if source.is_dir():
                    shutil.copytree(source, path / name, ignore=_odd)
                elif source.exists():
                    shutil.copy2(source, path / name)
            events = [_event(line, path, files.path.name, step) for line in lines if line.type not in _LEAVE]
            write_file(str(path / "events.jsonl"), b"".join(json_bytes(event) + b"\n" for event in events))
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)  # a half-made copy is no cast
        raise
    return path


def _odd(folder: str, names: list[str]) -> list[str]:
    """Pick what no cast made: links, which may lead anywhere, and pipes, which would be waited for."""
    modes = {name: (Path(folder) / name).lstat().st_mode for name in names}
    return [name for name, mode in modes.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))]


def _event(line: Line, path: Path, cast_id: str, step: int) -> dict[str, JSON]:
    data = dict(line.data)
    if line.type == "cast_start":
        data |= {"forkedFrom": {"cast": cast_id, "step": step}, "place": place_of(path)}
    return {"ts": line.ts, "type": line.type, "data": data}
