"""Copying a cast up to a step into a run directory of its own (lineage: ``forkedFrom``)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

from materia_nb.store.files import disk
from materia_nb.store.journal import Line, read_journal
from materia_nb.store.rundir import RunDir, new_run_dir

_LEAVE: Final = ("tools_allowed", "tool_decided")


def fork_files(files: RunDir, step: int, root: Path | None = None) -> Path:
    """Copy journal, config and artifacts to a new directory in ``root``; its first event names where it comes from.

    Without ``root`` the directory is made beside the one that is copied.

    What a person allowed to tools, and a consent to a command that still stands, is left out: it was said of that
    cast, so a fork asks again.
    """
    lines = read_journal(files.journal).lines
    path = new_run_dir(root or files.path.parent)
    try:
        with disk(path, "copy the cast"):
            for name in ("sockets", "contexts", "config.resolved.json"):
                source = files.path / name
                if source.is_dir():
                    shutil.copytree(source, path / name)
                elif source.exists():
                    shutil.copy2(source, path / name)
            text = "".join(_text(line, files.path.name, step) for line in lines if line.type not in _LEAVE)
            (path / "events.jsonl").write_text(text, encoding="utf-8")
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)  # a half-made copy is no cast
        raise
    return path


def _text(line: Line, cast_id: str, step: int) -> str:
    data = dict(line.data)
    if line.type == "approval_answered":
        data.pop("expires", None)  # no grant follows from it
    if line.type == "cast_start":
        data["forkedFrom"] = {"cast": cast_id, "step": step}
    return (
        json.dumps(
            {"ts": line.ts, "type": line.type, "data": data}, ensure_ascii=False, separators=(",", ":")
        )
        + "\n"
    )
