"""What agents keep about a project across casts: one JSON document, changed in one go under a lock."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.store.files import disk, json_bytes, replace_file
from materia_nb.store.lock import locked

NAME: Final = "project-context.json"


def read_context(root: Path) -> dict[str, JSON]:
    """Return the document of a project, section by section; empty when there is none.

    Args:
        root: the directory that run directories are made in.

    Raises:
        MateriaError: it is not a JSON object (``bad_context``), or cannot be read.
    """
    path = root / NAME
    with disk(path, "read what is kept about the project"):
        if not path.exists():
            return {}
        text = path.read_text(encoding="utf-8")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise MateriaError(
            "What is kept about the project is no JSON object.",
            where=str(path),
            hint="mend the file, or move it away to begin anew",
            kind="bad_context",
        )
    return found


def change_context(root: Path, change: Callable[[Mapping[str, JSON]], Mapping[str, JSON]]) -> None:
    """Read the document, change it and write it, as one transaction among all processes.

    Raises:
        MateriaError: as :func:`read_context`, or it cannot be written; then it is as it was.
    """
    path = root / NAME
    with locked(path.with_suffix(".lock"), "lock what is kept about the project"):
        before = read_context(root)
        after = change(before)
        if after != before:
            with disk(path, "write what is kept about the project"):
                replace_file(path, json_bytes(dict(after), indent=2))
