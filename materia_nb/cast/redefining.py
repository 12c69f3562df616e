"""Taking a changed definition of a materia into a cast that keeps a copy of its loadout otherwise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from materia_nb.engine.rules import Rules
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.jsonvalue import JSON, same
from materia_nb.loadout import build_graph
from materia_nb.store.rundir import RunDir
from materia_nb.utilities.command import beside_config

CONFIG: Final = "config.resolved.json"
REDEFINED: Final = frozenset({"command", "description", "model", "script", "thinking", "timeoutMs", "tools"})
"""The fields of a materia that may change in a running cast: what is run or asked, nothing that decides."""


class Redefined(NamedTuple):
    """The config of a cast before and with another definition of a materia, and what it runs by then."""

    before: JSON
    document: JSON
    definition: Mapping[str, JSON]
    previous: JSON
    rules: Rules


def redefined(
    files: RunDir, rules: Rules, materia: str, definition: Mapping[str, JSON], owner: Path | None
) -> Redefined:
    """Put a definition into the config of a cast; nothing is written.

    Raises:
        MateriaError: as :meth:`materia_nb.cast.Cast.redefine` says.
    """
    before, document = (json.loads(files.read_text(CONFIG)) for _ in range(2))
    known = document["materia"]
    if materia not in known:
        raise MateriaError(
            f"The cast has no materia {materia!r}.", hint=did_you_mean(materia, known), kind="unknown_materia"
        )
    previous = known[materia]
    _check(materia, previous, definition)
    made = known[materia] = beside_config(definition, owner)
    owners = {m.id: m.owner for s in rules.graph.sockets.values() if (m := s.materia).owner}
    changed = Rules(build_graph(document, rules.graph.name, owners), rules.session)
    return Redefined(before, document, made, previous, changed)


def _check(materia: str, old: JSON, new: Mapping[str, JSON]) -> None:
    """Refuse a definition that is the same, or that earlier steps would have been decided otherwise by."""
    was = old if isinstance(old, dict) else {}
    changed = {
        key for key in {*was, *new} if key not in was or key not in new or not same(was[key], new[key])
    }
    if not changed:
        raise MateriaError(
            f"The cast has this very definition of {materia} already.",
            hint="recast runs it once more; a script is read from its file each time",
            kind="redefine",
        )
    if other := sorted(changed - REDEFINED):
        raise MateriaError(
            f"{materia} differs in {', '.join(other)}, which earlier steps of this cast went by.",
            hint=f"cast anew; into a running cast can be taken: {', '.join(sorted(REDEFINED))}",
            kind="redefine",
        )
