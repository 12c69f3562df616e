"""What a person puts in the place of a cast's own: pinned answers (R40), and a changed definition of a materia."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from materia_nb.agents.function import FunctionAgent
from materia_nb.agents.interface import Agent, sound
from materia_nb.agents.prepared import RecordedAgent
from materia_nb.cast.snapshot import Snapshot
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import StepRecord
from materia_nb.engine.state import Pin
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.jsonvalue import JSON, same
from materia_nb.loadout import build_graph
from materia_nb.loadout.graph import Graph
from materia_nb.store.files import to_bytes
from materia_nb.store.rundir import RunDir
from materia_nb.utilities.command import beside_config

_FORMS: Final = (
    "a text, a dict (sent as JSON), a function, or an earlier cast; nothing for its own latest output"
)


class Chosen(NamedTuple):
    """A pin, and the function behind it if it is pinned to one."""

    pin: Pin
    function: Agent | None = None


def choose(cast: Snapshot | None, name: str, to: object = None, visit: int | None = None) -> Chosen:
    """Make a pin of what a person gave; ``cast`` is where it is looked for when they gave nothing."""
    if isinstance(to, Snapshot):
        return Chosen(_said_in(to, name, visit, f"the cast {to.id}"))
    if isinstance(to, RecordedAgent):
        return Chosen(_recorded(to, name, cast))
    if to is None and cast is not None:
        return Chosen(_said_in(cast, name, visit))
    if visit is None and isinstance(to, str | Mapping):
        given = dict(to) if isinstance(to, Mapping) else to
        return Chosen(Pin("text", "a text", to_bytes(sound(given, "The pin").text).decode()))
    if visit is None and callable(to) and not isinstance(to, type):
        function = FunctionAgent(to)
        return Chosen(Pin("function", f"the function {function.name}"), function)
    what = "Nothing" if to is None else f"A {type(to).__name__}"
    if visit is not None:
        what = f"{what} that has visits"
    raise MateriaError(
        f"{what} was given to pin {name} to.", where=name, hint=f"give {_FORMS}", kind="bad_pin"
    )


def _said_in(cast: Snapshot, name: str, visit: int | None, whose: str = "") -> Pin:
    """Make a pin of what a socket or materia said in a cast: of one visit, else its latest, or all of another cast."""
    steps: list[StepRecord] = []
    for line in (cast.steps, *reversed(cast.abandoned)):  # what was left behind was said all the same
        steps = steps or [
            step
            for step in line
            if _is(cast.graph, step.socket, name) and _counts(step) and visit in (None, step.visit)
        ]
    if not steps:
        place = f"{name}{'' if visit is None else f', visit {visit},'} has no output"
        raise MateriaError(
            f"{place} in {whose or 'this cast'} that could be pinned.",
            where=name,
            hint=f"step first, or pin {_FORMS}",
            kind="no_output",
        )
    if whose and visit is None:
        found: dict[str, dict[str, str]] = {}
        for step in steps:
            found.setdefault(step.socket, {})[str(step.visit)] = step.output or ""
        return Pin("visits", whose, visits=found)
    last = steps[-1]
    return Pin(
        "text",
        f"step {last.number} of {whose}" if whose else f"its output of step {last.number}",
        last.output or "",
    )


def _recorded(agent: RecordedAgent, name: str, cast: Snapshot | None) -> Pin:
    found: dict[str, dict[str, str]] = {}
    for (socket, visit), text in agent.outputs.items():
        if cast is None or _is(cast.graph, socket, name):
            found.setdefault(socket, {})[str(visit)] = text
    if not found:
        raise MateriaError(
            f"{name} has no output in {agent.name}.",
            where=name,
            hint="a recording holds what agents said; a cast (recorded:ID) has the outputs of utilities too",
            kind="no_output",
        )
    return Pin("visits", f"the recording {agent.name}", visits=found)


def _is(graph: Graph, socket: str, name: str) -> bool:
    """Whether ``name`` is a socket or the materia placed there."""
    placed = graph.sockets.get(socket)
    return name == socket or (placed is not None and placed.materia.id == name)


def _counts(step: StepRecord) -> bool:
    """Whether a step has an output that was taken."""
    return step.output is not None and step.decision is not None and not step.decision.issues


def names_of(graph: Graph) -> set[str]:
    """The names that can be pinned: sockets and the materia placed in them."""
    return {*graph.sockets, *(socket.materia.id for socket in graph.sockets.values())}


def needs_name(graph: Graph, name: str) -> None:
    """Raise MateriaError (``unknown_materia``) unless a loadout has a socket or materia of that name."""
    if name not in names_of(graph):
        raise MateriaError(
            f"The loadout {graph.name} has no socket or materia {name!r}.",
            hint=did_you_mean(name, names_of(graph)),
            kind="unknown_materia",
        )


def needs_pinned(name: str, pinned: Iterable[str]) -> None:
    """Raise MateriaError (``not_pinned``) unless a name is pinned."""
    if name not in (known := list(pinned)):
        raise MateriaError(
            f"{name} is not pinned.",
            hint=did_you_mean(name, known) if known else "nothing is pinned",
            kind="not_pinned",
        )


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
