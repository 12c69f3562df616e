"""From a finding to the one change that mends it, where there is one.

A mend does what the finding advises or takes away what has no effect. It is offered only if the finding is gone with it
and no problem has come. Where other changes would do as well it is a suggestion, made only when a person asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from materia_nb.errors import MateriaError, close_match
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.design.document import Change, renamed, socket_in, with_socket, without
from materia_nb.loadout.design.loops import add_exit, as_exit, exit_in, remove_exit, set_members, set_source
from materia_nb.loadout.design.sockets import (
    SOCKET_FIELDS,
    add_edge,
    change_edge,
    edge_in,
    move_edge,
    next_socket_id,
    remove_edge,
    rename_socket,
    set_entry,
    set_materia,
    set_socket,
)
from materia_nb.loadout.facts import (
    Facts,
    LoopFacts,
    Object,
    as_object,
    is_condition,
    is_object,
    is_text,
    replacement,
)
from materia_nb.loadout.graph import END
from materia_nb.loadout.lint import OBSOLETE_SOURCES
from materia_nb.loadout.lint_loops import advancing, unmatched
from materia_nb.loadout.report import (
    INVALID_CONDITION,
    INVALID_GENERATOR,
    INVALID_LOOP,
    INVALID_MATERIA,
    INVALID_SOCKET_ID,
    MISSING_ENDPOINT,
    NO_EFFECT,
    UNKNOWN_ENDPOINT,
    UNKNOWN_MATERIA,
    UNREACHABLE_EDGE,
    Problem,
    Report,
)
from materia_nb.loadout.resolve import check_config
from materia_nb.loadout.vocabulary import CONDITIONS, unmet

_NUMBER: Final = re.compile(r"(?:edges|exits|sockets)\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Mend:
    """What would mend a finding.

    Attributes:
        label: what it does, in the words of a button.
        change: the change of the loadout or its materia.
        suggestion: other changes would mend it too, so that a person decides.
    """

    label: str
    change: Change
    suggestion: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """What a finding is about: a socket or a loop of a loadout, what of it, and which one of a list (0 first)."""

    facts: Facts
    id: str
    loop: LoopFacts | None
    field: str
    number: int

    @property
    def raw(self) -> Object:
        return self.facts.raw

    def of_edge(self) -> bool:
        return self.loop is None and self.field.startswith("edges[")

    def of_exit(self) -> bool:
        return self.loop is not None and self.field.startswith("exits[")

    def region(self) -> LoopFacts:
        """The loop that it is about; for a socket the first loop that gives it an item."""
        found = self.loop or self.facts.iterating_loop(self.id)
        if found is None:
            raise LookupError(self.id)
        return found

    def advance(self, id_: str, when: JSON) -> Change:
        """Let a socket move on with the next item for one result, whatever else its advance says."""
        written = as_object(self.facts.sockets[id_].get("advance"))
        return set_socket(self.raw, id_, "advance", {**written, "when": when})


_Maker: TypeAlias = Callable[[_Place], Mend | None]


def mend(
    config: Object, found: Problem, report: Report | None = None, name: str | None = None
) -> Mend | None:
    """Return what mends a problem or hint of a loadout; None where a person has to choose.

    Args:
        config: the config with the loadout in it; it is not changed.
        found: what ``check_config`` found in the loadout.
        report: the report on the loadout, where there is one already.
        name: the loadout that is looked at; for a finding in its materia.
    """
    maker, name = _MENDS.get(found.code), found.loadout or name
    raw = as_object(config.get("loadouts")).get(name) if name is not None else None
    if maker is None or name is None or not is_object(raw):
        return None
    place = _place(Facts(name, raw, as_object(config.get("materia"))), found.source)
    try:
        made = None if place is None else maker(place)
    except (MateriaError, LookupError, ValueError, TypeError):
        return None  # what the finding speaks of is not there, or not well formed enough
    before = report or check_config(config, name)
    return made if made is not None and _mends(config, name, found, before, made.change) else None


def changed_config(config: Object, name: str, change: Change) -> Object:
    """Return a config with a change of one of its loadouts, and of its materia."""
    materia = {**as_object(config.get("materia")), **change.materia}
    return {
        **config,
        "loadouts": {**as_object(config.get("loadouts")), name: change.document},
        "materia": {id_: raw for id_, raw in materia.items() if raw is not None},
    }


def _mends(config: Object, name: str, found: Problem, before: Report, change: Change) -> bool:
    """Whether a finding is there, goes by the change, and no problem comes in its place."""
    after = check_config(changed_config(config, name, change), name)
    known, now = ({(one.code, one.source) for one in (*it.problems, *it.hints)} for it in (before, after))
    new = {(one.code, one.source) for one in after.problems} - known
    return (found.code, found.source) in known - now and not new


def _place(facts: Facts, source: str) -> _Place | None:
    """Read the path of a finding; ids may hold dots, so the longest that fits is meant."""
    if source.startswith("materia."):
        return _Place(facts, "", None, source, -1)
    loops = {loop.id: loop for loop in facts.loops} if source.startswith("loops.") else None
    rest = source.removeprefix("sockets.") if loops is None else source.removeprefix("loops.")
    ids: Mapping[str, object] = facts.sockets if loops is None else loops
    fits = [id_ for id_ in ids if rest == id_ or rest.startswith(f"{id_}.")]
    if not fits:
        return _Place(facts, "", None, source, -1) if source == "entry" else None
    id_ = max(fits, key=len)
    field = rest.removeprefix(id_).removeprefix(".")
    number = _NUMBER.match(field)
    return _Place(facts, id_, loops[id_] if loops else None, field, int(number[1]) if number else -1)


def _near(wrong: JSON, known: Iterable[str]) -> str | None:
    return close_match(wrong, known) if is_text(wrong) else None


# -- sockets ------------------------------------------------------------------------------


def _entry(at: _Place) -> Mend:
    first = next(iter(at.facts.sockets))
    return Mend(f"Start at {first}", set_entry(at.raw, first))


def _renumber(at: _Place) -> Mend | None:
    """Give a socket a canonical id and keep its old one as its label."""
    if at.loop is not None or at.field:
        return _endpoint(at)
    new = next_socket_id(at.raw)
    changed = rename_socket(at.raw, at.id, new).document
    if not socket_in(changed, new).get("label"):
        changed = set_socket(changed, new, "label", at.id).document
    return Mend(
        f"Call it {new}, labelled {at.id}", Change(changed, f"renamed {at.id} to {new}, with its label")
    )


def _read_json(at: _Place) -> Mend:
    """Let what answers in a socket answer with JSON, so that it can say satisfied."""
    id_ = at.id
    if at.loop is not None:
        id_ = str(exit_in(at.raw, at.id, at.number).get("from"))
    if at.facts.is_utility(id_):  # its program has to write JSON, wherever it is placed
        materia = str(at.facts.sockets[id_].get("materia"))
        change = set_materia(at.raw, at.facts.materia, materia, "parse", "json")
        return Mend(f"Read the output of {materia} as JSON", change, suggestion=True)
    return Mend(f"Read the output of {id_} as JSON", set_socket(at.raw, id_, "parse", "json"))


def _without_field(at: _Place) -> Mend | None:
    socket = socket_in(at.raw, at.id)
    if at.loop is not None or at.field not in socket:
        return None
    changed = with_socket(at.raw, at.id, without(socket, at.field))
    return Mend(f"Remove {at.field} here", Change(changed, f"removed {at.field} from {at.id}"))


def _known_field(at: _Place) -> Mend | None:
    """Spell a field of a socket as the one that is plainly meant."""
    socket = socket_in(at.raw, at.id)
    near = close_match(at.field, (*SOCKET_FIELDS, "edges"))
    if near is None or near in socket or at.field not in socket:
        return None
    changed = with_socket(at.raw, at.id, renamed(socket, at.field, near))
    return Mend(f"Call it {near}", Change(changed, f"{at.field} of {at.id} is {near}"))


def _newer_source(at: _Place) -> Mend | None:
    target = at.field.removeprefix("assign.")
    assign = as_object(socket_in(at.raw, at.id).get("assign"))
    source = assign.get(target)
    if not isinstance(source, str) or (head := re.match(r"\$\.(\w+)", source)) is None:
        return None
    newer = f"$.{OBSOLETE_SOURCES[head[1]]}{source[head.end() :]}"
    changed = set_socket(at.raw, at.id, "assign", {**assign, target: newer})
    return Mend(f"Read {newer}", Change(changed.document, f"{at.id} assigns {target} from {newer}"))


def _materia(at: _Place) -> Mend | None:
    named = at.facts.sockets[at.id].get("materia")
    now = replacement(named)
    meant = now or _near(named, at.facts.materia)
    if meant not in at.facts.materia:
        return None
    return Mend(f"Place {meant}", set_socket(at.raw, at.id, "materia", meant), suggestion=now is None)


def _generator(at: _Place) -> Mend | None:
    if at.field != "parse":
        return None
    return Mend("Remove parse", set_socket(at.raw, at.id, "parse", None), suggestion=True)


def _never_advances(at: _Place) -> Mend | None:
    """Let a foreach move on, or the member of a loop that leads back to where a round begins."""
    id_ = at.id
    if at.loop is not None:
        first = at.loop.members[0]
        back = [one for one in at.loop.members if first in at.facts.targets(one)]
        id_ = (back or at.loop.members)[-1]
    elif at.field != "foreach":
        return None
    when = "always" if at.facts.gives_text(id_) else "satisfied"
    who = "Move on" if at.loop is None else f"{id_} moves on"
    return Mend(f"{who} when {when}", at.advance(id_, when), suggestion=True)


def _tools(at: _Place) -> Mend | None:
    """Say of an agent that says nothing of its tools that it has none."""
    named = re.fullmatch(r"materia\.(.+)\.tools", at.field)
    if named is None or "tools" in as_object(at.facts.materia[named[1]]):
        return None
    change = set_materia(at.raw, at.facts.materia, named[1], "tools", "none")
    return Mend(f"{named[1]} has no tools", change, suggestion=True)


def _told_nothing(at: _Place) -> Mend:
    return Mend("Tell it the request", set_socket(at.raw, at.id, "castContext", "request"), suggestion=True)


# -- edges --------------------------------------------------------------------------------


def _endpoint(at: _Place) -> Mend | None:
    """Lead what leads nowhere to what is plainly meant, else take it away."""
    if at.of_edge():
        near = _near(edge_in(at.raw, at.id, at.number).get("to"), [*at.facts.ids, END])
        if near is None:
            return Mend("Remove the edge", remove_edge(at.raw, at.id, at.number), suggestion=True)
        return Mend(f"Lead it to {near}", change_edge(at.raw, at.id, at.number, to=near), suggestion=True)
    if at.of_exit():
        return Mend("Remove the exit", remove_exit(at.raw, at.id, at.number), suggestion=True)
    if at.field == "entry":
        return replace(_entry(at), suggestion=True)
    return _likely_source(at) if at.field == "consumes.from" else None


def _condition(at: _Place) -> Mend | None:
    if not at.of_edge():
        return None
    near = _near(edge_in(at.raw, at.id, at.number).get("when"), CONDITIONS) or "always"
    return Mend(f"Make it {near}", change_edge(at.raw, at.id, at.number, when=near), suggestion=True)


def _remove_edge(at: _Place) -> Mend:
    return Mend("Remove it", remove_edge(at.raw, at.id, at.number))


def _before_always(at: _Place) -> Mend:
    """Put a guarded edge before the one that always matches; one that always matches too has no use."""
    if edge_in(at.raw, at.id, at.number).get("when") == "always":
        return _remove_edge(at)
    first = next(number for number, edge in at.facts.edges(at.id) if edge.get("when") == "always")
    return Mend("Look at it first", move_edge(at.raw, at.id, at.number, first))


def _other_verdict(at: _Place) -> Mend:
    """Write the end that the missing verdict has anyway."""
    [missing] = unmet([when for _, edge in at.facts.edges(at.id) if is_condition(when := edge.get("when"))])
    return Mend(f"{missing} → end", add_edge(at.raw, at.id, END, missing))


def _advance_when_satisfied(at: _Place) -> Mend:
    return Mend("Move on when satisfied", at.advance(at.id, "satisfied"))


def _as_exit(at: _Place) -> Mend:
    loop = at.region().id
    return Mend(f"Make it an exit of {loop}", as_exit(at.raw, at.id, at.number, loop), suggestion=True)


def _next_item(at: _Place) -> Mend:
    loop = at.region()
    when = advancing(at.facts, loop)[at.id]
    to = loop.members[0]
    return Mend(f"{when} → {to}", add_edge(at.raw, at.id, to, when), suggestion=True)


# -- loops --------------------------------------------------------------------------------


def _likely_source(at: _Place) -> Mend | None:
    """Let a loop go over the items of the generator that leads into it, or lead the named one into it."""
    loop = at.region()
    named, likely = (loop.consumes or {}).get("from"), at.facts.likely_generator(loop.members)
    if likely is not None and likely != named:
        change = set_source(at.raw, loop.id, "consumes", from_=likely)
        return Mend(f"Go over the items of {likely}", change, suggestion=True)
    if isinstance(named, str) and at.facts.is_generator(named) and named not in loop.members:
        return Mend(f"Lead {named} into it", add_edge(at.raw, named, loop.members[0]), suggestion=True)
    return None


def _loop_problem(at: _Place) -> Mend | None:
    if at.loop is None:
        return None
    loop = at.loop
    if at.field == "consumes.cursor":
        cursor = f"{loop.id}Index"
        change = set_source(at.raw, loop.id, "consumes", cursor=cursor)
        return Mend(f"Call its cursor {cursor}", change, suggestion=True)
    if at.field == "sockets":
        last, first = loop.members[-1], loop.members[0]
        return Mend(f"Lead {last} back to {first}", add_edge(at.raw, last, first), suggestion=True)
    return _likely_source(at) if at.field in ("consumes", "consumes.from") else None


def _once_each(at: _Place) -> Mend:
    return Mend("List it once", set_members(at.raw, at.id, at.region().members))


def _one_cursor(at: _Place) -> Mend:
    cursor = f"{at.id}Index"
    change = set_source(at.raw, at.id, "iterator", cursor=cursor)
    return Mend(
        f"One cursor for all: {cursor}",
        replace(change, words=f"the members of loop {at.id} share the cursor {cursor}"),
    )


def _remove_idle_exit(at: _Place) -> Mend | None:
    """Remove an exit that waits for a verdict; one for always is still taken when the list is empty."""
    if exit_in(at.raw, at.id, at.number).get("condition") == "always":
        return None
    return Mend("Remove the exit", remove_exit(at.raw, at.id, at.number))


def _when_empty_too(at: _Place) -> Mend | None:
    """Lead on by the same exit when the list is empty, and move on for the same result as before."""
    loop = at.region()
    routes = [route for _, route in loop.exits()]
    if not routes or loop.legacy is not None:
        return None
    source, how, to = (str(routes[0].get(name)) for name in ("from", "condition", "targetSocketId"))
    written = as_object(at.facts.sockets[source].get("advance")).get("when", how)
    if not is_condition(how) or written != how:
        return None
    change = add_exit(at.advance(source, how).document, loop.id, source, "always", to)
    words = f"loop {loop.id} leads to {to} when its list is empty too"
    return Mend(f"always → {to} too", replace(change, words=words), suggestion=len(routes) > 1)


def _end_when_exhausted(at: _Place) -> Mend:
    """Write the ends that a list has anyway where no exit waits for the last result."""
    changed, words = at.raw, []
    for id_, how in advancing(at.facts, at.region()).items():
        for when in unmatched(at.facts, id_, how):
            changed = add_exit(changed, at.id, id_, when, END).document
            words.append(f"{id_} {when}")
    change = Change(changed, f"loop {at.id} ends after the last item when {' and '.join(words)}")
    return Mend(f"{' and '.join(words)} → end", change, suggestion=True)


_MENDS: Final[Mapping[str, _Maker]] = {
    MISSING_ENDPOINT: _endpoint,
    UNKNOWN_ENDPOINT: _endpoint,
    INVALID_SOCKET_ID: _renumber,
    INVALID_CONDITION: _condition,
    UNREACHABLE_EDGE: _before_always,
    UNKNOWN_MATERIA: _materia,
    INVALID_GENERATOR: _generator,
    INVALID_LOOP: _loop_problem,
    INVALID_MATERIA: _tools,
    "cursor-for-each": _one_cursor,
    "duplicate-member": _once_each,
    "empty-list-ends": _when_empty_too,
    "exhausted-unmatched": _end_when_exhausted,
    "assign-on-text": _read_json,
    "guard-on-text": _read_json,
    "idle-route": _remove_idle_exit,
    "late-retry": _advance_when_satisfied,
    "leaves-loop": _as_exit,
    "lone-guard": _other_verdict,
    "missing-entry": _entry,
    "never-advances": _never_advances,
    "never-taken": _remove_edge,
    NO_EFFECT: _without_field,
    "obsolete-field": _newer_source,
    "one-item": _next_item,
    "socket-id": _renumber,
    "told-nothing": _told_nothing,
    "unknown-field": _known_field,
}
MENDED: Final = frozenset(_MENDS)
"""The codes that can have a mend; which of their findings do depends on the loadout."""
