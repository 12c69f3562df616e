"""Reading a run directory: its loadout, its events and whose it is, ours or the reference engine's (R29)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.resolve import build_graph
from materia_nb.store.journal import Line, read_journal
from materia_nb.store.rundir import RunDir


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a run directory holds. ``ours`` says whether this engine wrote it, ``torn`` whether its end is torn."""

    graph: Graph
    document: JSON
    lines: tuple[Line, ...]
    ours: bool
    project: Path
    torn: bool


def read_recorded(files: RunDir) -> Recorded:
    """Read the config and the journal; raises MateriaError when one of them is not there or not readable."""
    if not files.path.is_dir():
        raise MateriaError(
            "There is no such run directory.",
            where=str(files.path),
            hint="list the casts of this project (casts), or give the path of a run directory",
            kind="no_cast",
        )
    contents = read_journal(files.journal)
    document = _document(files.path / "config.resolved.json")
    start = next((line.data for line in contents.lines if line.type == "cast_start"), {})
    name = start.get("loadout")
    owners = start.get("owners")
    graph = build_graph(
        document,
        name if isinstance(name, str) else None,
        {key: Path(path) for key, path in owners.items()} if isinstance(owners, dict) else None,
    )
    project = start.get("project")
    return Recorded(
        graph=graph,
        document=document,
        lines=contents.lines,
        ours=start.get("engine") == "materia_nb",
        project=Path(project) if isinstance(project, str) else files.path,
        torn=bool(contents.torn),
    )


def _document(path: Path) -> JSON:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise MateriaError(
            f"The config of the cast cannot be read: {error.strerror}.", where=str(path), kind="no_cast"
        ) from error
    except (ValueError, RecursionError) as error:
        raise MateriaError(
            f"The config of the cast is not JSON: {error}.", where=str(path), kind="no_cast"
        ) from error
