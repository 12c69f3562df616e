"""Reading a run directory: its loadout, its events and whose it is, ours or the reference engine's (R29)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from materia_nb.engine.rules import Rules
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import is_object
from materia_nb.loadout.report import LoadoutError
from materia_nb.loadout.resolve import build_graph
from materia_nb.loadout.sketch import sketch_graph
from materia_nb.store.asrecorded import visited_sockets
from materia_nb.store.files import read_plain
from materia_nb.store.journal import Contents, read_journal
from materia_nb.store.rundir import RunDir

LONGEST_CONFIG: Final = 50_000_000
"""The longest config of a cast that is read, in bytes."""

ENGINE = "materia_nb"
"""What our journals name as their engine."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a run directory holds.

    Attributes:
        rules: what the cast ran by; those of a sketch of its loadout when there are ``problems``.
        document: its config.
        contents: its journal.
        ours: whether this engine wrote it.
        project: the directory that it worked in.
        problems: why its loadout cannot be cast here.
    """

    rules: Rules
    document: JSON
    contents: Contents
    ours: bool
    project: Path
    problems: tuple[str, ...] = ()


def read_contents(files: RunDir) -> Contents:
    """Read the journal of a run directory; raises MateriaError when there is none or it is damaged."""
    if not files.path.is_dir():
        raise MateriaError(
            "There is no such run directory.",
            where=str(files.path),
            hint="list the casts of this project (casts), or give the path of a run directory",
            kind="no_cast",
        )
    return read_journal(files.journal)


def cast_start(contents: Contents) -> Mapping[str, JSON] | None:
    """Return what the cast was started with; None when the journal does not hold it."""
    return next((line.data for line in contents.lines if line.type == "cast_start"), None)


def session_of(contents: Contents) -> str:
    """Return what the agents of a cast are told as its id; "" where the journal does not say."""
    session = (cast_start(contents) or {}).get("session")
    return session if isinstance(session, str) else ""


def check_resumable(files: RunDir) -> None:
    """Refuse what can never be gone on with, before a lock file is left in its directory.

    Raises:
        MateriaError: kinds ``not_begun`` and ``not_ours``, and those of :func:`read_contents`.
    """
    start = cast_start(read_contents(files))
    if start is None:
        raise MateriaError(
            "Nothing of this cast was recorded: its journal does not say how it began.",
            where=str(files.journal),
            hint="cast again",
            kind="not_begun",
        )
    if start.get("engine") != ENGINE:
        raise MateriaError(
            "This cast was recorded by another engine; it can be looked at but not gone on with.",
            where=str(files.path),
            hint="open it, or cast its loadout anew",
            kind="not_ours",
        )


def read_recorded(files: RunDir, *, to_look: bool = False) -> Recorded:
    """Read the config and the journal; raises MateriaError when one of them is not there or not readable.

    Args:
        files: the run directory.
        to_look: whether a loadout that cannot be cast is told in ``problems`` rather than an error (R41).
    """
    contents = read_contents(files)
    start = cast_start(contents) or {}
    document = _document(files.path / "config.resolved.json")
    document, name = _with_pipeline(document, start)
    given = start.get("owners")
    owners = (
        {key: Path(path) for key, path in given.items() if isinstance(path, str)}
        if is_object(given)
        else None
    )
    problems: tuple[str, ...] = ()
    try:
        rules = Rules(build_graph(document, name, owners), session_of(contents))
    except MateriaError as error:
        if not to_look:
            raise
        found = error.report.problems if isinstance(error, LoadoutError) else ()
        problems = tuple(f"{one.source}: {one.message}" for one in found) or (error.what,)
        rules = Rules(sketch_graph(document, name, visited_sockets(contents.lines)))
    project = start.get("project")
    return Recorded(
        rules=rules,
        document=document,
        contents=contents,
        ours=start.get("engine") == ENGINE,
        project=Path(project) if isinstance(project, str) else files.path,
        problems=problems,
    )


def _with_pipeline(document: JSON, start: Mapping[str, JSON]) -> tuple[JSON, str | None]:
    """Take the loadout from ``cast_start`` when the config lacks it: the reference keeps it in both places."""
    name, pipeline = start.get("loadout"), start.get("pipeline")
    if not isinstance(document, dict):
        return document, name if isinstance(name, str) else None
    loadouts = document.get("loadouts")
    known = loadouts if isinstance(loadouts, dict) else {}
    if isinstance(name, str) and name in known:
        return document, name
    if isinstance(pipeline, dict):
        name = name if isinstance(name, str) else "recorded"
        return {**document, "loadouts": {**known, name: pipeline}}, name
    return document, name if isinstance(name, str) else None


def _document(path: Path) -> JSON:
    try:
        return json.loads(read_plain(path, LONGEST_CONFIG))
    except OSError as error:
        raise MateriaError(
            f"The config of the cast cannot be read: {error.strerror}.",
            where=str(path),
            hint="restore it from a copy; without its loadout a cast cannot be rebuilt",
            kind="no_config",
        ) from error
    except (ValueError, RecursionError) as error:
        raise MateriaError(
            f"The config of the cast is not JSON: {error}.",
            where=str(path),
            hint="restore it from a copy; without its loadout a cast cannot be rebuilt",
            kind="no_config",
        ) from error
