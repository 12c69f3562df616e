"""From a hint to the change that mends it, where one change is plainly meant or changes nothing of what a cast does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from materia_nb.errors import MateriaError, close_match
from materia_nb.loadout.design.change import Change, loop_in, socket_in, with_loop, with_socket, without
from materia_nb.loadout.design.edges import add_edge, move_edge, remove_edge
from materia_nb.loadout.design.exits import add_exit, remove_exit
from materia_nb.loadout.design.loops import set_members
from materia_nb.loadout.design.sockets import (
    SOCKET_FIELDS,
    next_socket_id,
    rename_socket,
    set_entry,
    set_socket,
)
from materia_nb.loadout.facts import Facts, LoopFacts, Object, as_list, as_object, is_condition, is_object
from materia_nb.loadout.graph import END
from materia_nb.loadout.lint import OBSOLETE_SOURCES
from materia_nb.loadout.report import Problem
from materia_nb.loadout.validate import check_config
from materia_nb.loadout.vocabulary import GUARDS

_PLACE: Final = re.compile(r"(?:edges|exits|sockets)\[(\d+)\]")


class _Place(NamedTuple):
    """What a finding is about: a socket or a loop, what of it, and which one of a list."""

    id: str
    field: str
    number: int | None


_Mend: TypeAlias = Callable[[Facts, _Place], Change | None]


def mend(document: Object, found: Problem, materia: Mapping[str, object] | None = None) -> Change | None:
    """Return the change of a loadout that mends a problem or hint; None where a person has to decide.

    The change either does what the finding advises, where that can be only one thing, or takes away what has no effect.
    Nothing but the loadout is changed: what is told of a materia or of the config around it has no mend.

    Args:
        document: the loadout as written; it is not changed.
        found: what ``check`` found in it.
        materia: the definitions of the materia.
    """
    facts = Facts(found.loadout or "", document, dict(materia or {}))
    place = _place(facts, found.source)
    how = _MENDS.get(found.code)
    if how is None or place is None:
        return None
    try:
        change = how(facts, place)
    except (MateriaError, LookupError):  # the loadout is not as the finding says, or cannot be changed so
        return None
    return change if change is not None and _mends(facts, found, change) else None


def _mends(facts: Facts, found: Problem, change: Change) -> bool:
    """Whether a finding is there, goes by the change, and no problem comes in its place."""
    before, after = (
        check_config({"loadouts": {facts.name: raw}, "materia": facts.materia}, facts.name)
        for raw in (facts.raw, change.document)
    )
    known, now = (
        {(one.code, one.source) for one in (*report.problems, *report.hints)} for report in (before, after)
    )
    new = {(one.code, one.source) for one in after.problems} - known
    return (found.code, found.source) in known - now and not new


def _place(facts: Facts, source: str) -> _Place | None:
    """Read the path of a finding; ids may hold dots, so the longest that fits is meant."""
    if source.startswith("loops."):
        kind, rest = [loop.id for loop in facts.loops], source.removeprefix("loops.")
    else:
        kind, rest = list(facts.sockets), source.removeprefix("sockets.")
    fits = [id_ for id_ in kind if rest == id_ or rest.startswith(f"{id_}.")]
    if not fits:
        return _Place("", source, None) if source == "entry" else None
    id_ = max(fits, key=len)
    field = rest.removeprefix(id_).removeprefix(".")
    number = _PLACE.match(field)
    return _Place(id_, field, int(number[1]) if number else None)


def _loop(facts: Facts, id_: str) -> LoopFacts:
    loop_in(facts.raw, id_)
    return next(loop for loop in facts.loops if loop.id == id_)


# -- sockets ------------------------------------------------------------------------------


def _entry(facts: Facts, _: _Place) -> Change | None:
    return set_entry(facts.raw, str(facts.entry)) if facts.sockets else None


def _canonical_id(facts: Facts, place: _Place) -> Change:
    return rename_socket(facts.raw, place.id, next_socket_id(facts.raw))


def _json(facts: Facts, place: _Place) -> Change | None:
    """Let an agent answer with JSON, so that it can say satisfied."""
    id_ = place.id
    if place.field.startswith("exits["):
        route = as_list(_loop(facts, id_).raw.get("exits"))[place.number or 0]
        id_ = str(as_object(route).get("from"))
    return None if facts.is_utility(id_) else set_socket(facts.raw, id_, "parse", "json")


def _without_field(facts: Facts, place: _Place) -> Change | None:
    if "." in place.field or place.field not in socket_in(facts.raw, place.id):
        return None
    socket = without(socket_in(facts.raw, place.id), place.field)
    return Change(with_socket(facts.raw, place.id, socket), f"removed {place.field} from {place.id}")


def _known_field(facts: Facts, place: _Place) -> Change | None:
    """Spell a field of a socket as the one that is plainly meant."""
    socket = socket_in(facts.raw, place.id)
    near = close_match(place.field, (*SOCKET_FIELDS, "edges"))
    if "." in place.field or near is None or near in socket or place.field not in socket:
        return None
    changed = {near if key == place.field else key: value for key, value in socket.items()}
    return Change(with_socket(facts.raw, place.id, changed), f"{place.field} of {place.id} is {near}")


def _newer_source(facts: Facts, place: _Place) -> Change | None:
    target = place.field.removeprefix("assign.")
    assign = as_object(socket_in(facts.raw, place.id).get("assign"))
    source = assign.get(target)
    if not isinstance(source, str) or (head := re.match(r"\$\.(\w+)", source)) is None:
        return None
    newer = f"$.{OBSOLETE_SOURCES[head[1]]}{source[head.end() :]}"
    changed = set_socket(facts.raw, place.id, "assign", {**assign, target: newer})
    return Change(changed.document, f"{place.id} assigns {target} from {newer}")


# -- edges --------------------------------------------------------------------------------


def _remove_edge(facts: Facts, place: _Place) -> Change | None:
    return None if place.number is None else remove_edge(facts.raw, place.id, place.number)


def _before_always(facts: Facts, place: _Place) -> Change | None:
    """Put a guarded edge before the one that always matches; one that always matches too has no use."""
    conditions = {number: edge.get("when") for number, edge in facts.edges(place.id)}
    if place.number is None or not is_condition(conditions.get(place.number)):
        return None
    if conditions[place.number] == "always":
        return remove_edge(facts.raw, place.id, place.number)
    first = next((number for number, when in conditions.items() if when == "always"), place.number)
    return move_edge(facts.raw, place.id, place.number, first)


def _other_verdict(facts: Facts, place: _Place) -> Change | None:
    """Write the end that the missing verdict has anyway."""
    found = {edge.get("when") for _, edge in facts.edges(place.id)}
    missing = [when for when in GUARDS if when not in found]
    return add_edge(facts.raw, place.id, END, missing[0]) if len(missing) == 1 else None


def _advance_when_satisfied(facts: Facts, place: _Place) -> Change:
    return set_socket(facts.raw, place.id, "advance", {"when": "satisfied"})


# -- loops --------------------------------------------------------------------------------


def _once_each(facts: Facts, place: _Place) -> Change:
    return set_members(facts.raw, place.id, _loop(facts, place.id).members)


def _one_cursor(facts: Facts, place: _Place) -> Change:
    loop = _loop(facts, place.id)
    iterator = {**(loop.iterator or {}), "cursor": f"{loop.id}Index"}
    changed = with_loop(facts.raw, loop.id, {**loop.raw, "iterator": iterator})
    return Change(changed, f"the members of loop {loop.id} share the cursor {loop.id}Index")


def _remove_idle_exit(facts: Facts, place: _Place) -> Change | None:
    """Remove an exit that waits for a verdict; one for always is still taken when the list is empty."""
    if place.number is None:
        return None
    route = as_object(as_list(_loop(facts, place.id).raw.get("exits"))[place.number])
    return None if route.get("condition") == "always" else remove_exit(facts.raw, place.id, place.number)


def _when_empty_too(facts: Facts, place: _Place) -> Change | None:
    """Lead on by the same exit when the list is empty, and move on for the same result as before."""
    loop = _loop(facts, place.id)
    routes = [route for route in as_list(loop.raw.get("exits")) if is_object(route)]
    if len(routes) != 1 or is_object(loop.raw.get("exit")):
        return None  # which of them is meant
    source, how, to = (routes[0].get(name) for name in ("from", "condition", "targetSocketId"))
    if not isinstance(source, str) or how not in GUARDS or not isinstance(to, str):
        return None
    advance = as_object(facts.sockets[source].get("advance")).get("when", how)
    if advance != how:
        return None
    changed = set_socket(
        facts.raw, source, "advance", {**as_object(facts.sockets[source].get("advance")), "when": how}
    )
    words = f"loop {loop.id} leads to {to} when its list is empty too"
    return Change(add_exit(changed.document, loop.id, source, "always", to).document, words)


_MENDS: Final[Mapping[str, _Mend]] = {
    "missing-entry": _entry,
    "socket-id": _canonical_id,
    "guard-on-text": _json,
    "no-effect": _without_field,
    "unknown-field": _known_field,
    "obsolete-field": _newer_source,
    "never-taken": _remove_edge,
    "unreachable-edge": _before_always,
    "lone-guard": _other_verdict,
    "late-retry": _advance_when_satisfied,
    "duplicate-member": _once_each,
    "cursor-for-each": _one_cursor,
    "idle-route": _remove_idle_exit,
    "empty-list-ends": _when_empty_too,
}
MENDED: Final = frozenset(_MENDS)
"""The codes that can have a mend; which of their findings do depends on the loadout."""
