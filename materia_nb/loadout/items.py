"""Loops, advances and exits that follow from a loadout, as far as it is well formed (R12 to R15)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from materia_nb.jsonvalue import JSON, is_text, split_path, text_or
from materia_nb.loadout.graph import END, Advance, Derived, ExitRoute, Iterator, Loop
from materia_nb.loadout.topology import ExitFacts, LoadoutFacts, LoopFacts
from materia_nb.loadout.vocabulary import GUARDS, WORK_ITEMS, Condition, is_condition


def assigns_work_items(target: str) -> bool:
    """True if an assignment target is ``workItems`` (empty segments are skipped, R11)."""
    return split_path(target) == [WORK_ITEMS]


def combined_condition(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that all routes share, else always (R15)."""
    distinct = set(conditions)
    return distinct.pop() if len(distinct) == 1 else "always"


@dataclass(slots=True)
class Derivation:
    """What follows from a loadout, with a sentence for each derived fact.

    Attributes:
        facts: the loadout.
        ids: the sockets that edges and exits may lead to.
        loops: the resolved loops, by id.
        advances: the derived advances, by socket.
        advancing: the loop that each derived advance belongs to, by socket.
        conflicts: each socket with two loops that would derive different advances (R66).
        json_sources: sockets that are parsed as json because a guarded exit leaves from them (R15).
        sentences: the derived facts, in words.
    """

    facts: LoadoutFacts
    ids: Collection[str]
    loops: dict[str, Loop] = field(default_factory=dict)
    advances: dict[str, Advance] = field(default_factory=dict)
    advancing: dict[str, str] = field(default_factory=dict)
    conflicts: list[tuple[str, str, str]] = field(default_factory=list)
    json_sources: set[str] = field(default_factory=set)
    sentences: list[Derived] = field(default_factory=list)

    def note(self, source: str, text: str) -> None:
        """Add a sentence about a derived fact."""
        self.sentences.append(Derived(source, text))

    def may_lead_to(self, to: JSON) -> TypeGuard[str]:
        """True if an edge or an exit may lead to ``to``."""
        return isinstance(to, str) and (to == END or to in self.ids)


def derive(facts: LoadoutFacts, ids: Collection[str] | None = None) -> Derivation:
    """Derive the loops, routes and advances of a loadout; skip what is not well formed."""
    derivation = Derivation(facts, facts.sockets if ids is None else ids)
    for loop in facts.loops:
        derivation.loops[loop.id] = Loop(
            id=loop.id,
            sockets=tuple(member for member in loop.members if member in derivation.ids),
            generator=loop.source if loop.source in derivation.ids else None,
            output=loop.output if loop.consumes else None,
            iterator=loop.iterator_of(next(iter(loop.members), "")) if loop.iterates else None,
            routes=tuple(_routes(derivation, loop)),
        )
    consumers = [loop for loop in facts.loops if loop.consumes]
    for loop in consumers:
        _derive_from_legacy_exit(derivation, loop)
    for loop in consumers:
        _derive_from_exits(derivation, loop)
    return derivation


def socket_iterator(facts: LoadoutFacts, id_: str) -> Iterator | None:
    """Return where a socket gets its item: its own ``foreach``, else the first loop that has one (R1)."""
    socket = facts.sockets.get(id_)
    if socket is None:
        loop = next((loop for loop in facts.loops if loop.iterates and id_ in loop.members), None)
        return None if loop is None else loop.iterator_of(id_)
    if socket.foreach is None or socket.iterator is None or socket.iterator.items:
        return socket.iterator
    return replace(socket.iterator, items="?")


def socket_advance(derivation: Derivation, id_: str) -> Advance | None:
    """Return how a socket moves on: as written, with what it takes from its iterator, or as derived (R14)."""
    socket = derivation.facts.sockets.get(id_)
    if socket is None or socket.advance is None:
        return derivation.advances.get(id_)
    raw, cursor, when = socket.advance, socket.advance_cursor or "?", socket.advance.get("when")
    items = raw["items"] if is_text(raw.get("items")) else (socket.iterator and socket.iterator.items) or "?"
    missing = [name for name in ("cursor", "items") if raw.get(name) is None]
    if missing:
        names = " and ".join(missing)
        text = f"{id_} takes the {names} of its advance from its iterator ({cursor}, {items})"
        derivation.note(f"{id_}.advance", text)
    return Advance(cursor, items, when if is_condition(when) else "always")


def _written_routes(derivation: Derivation, loop: LoopFacts) -> list[ExitRoute]:
    return [
        ExitRoute(text_or(exit_.raw.get("id"), f"#{exit_.place}"), loop.id, *route)
        for exit_ in loop.exits
        if (route := _route(derivation, exit_)) is not None
    ]


def _route(derivation: Derivation, exit_: ExitFacts | None) -> tuple[str, Condition, str] | None:
    """Return source, condition and target of an exit, or None if one of them is not well formed."""
    if exit_ is None or exit_.source not in derivation.ids or exit_.condition is None:
        return None
    if exit_.source is None or not derivation.may_lead_to(exit_.target):
        return None
    return exit_.source, exit_.condition, exit_.target


def _routes(derivation: Derivation, loop: LoopFacts) -> list[ExitRoute]:
    routes, legacy = _written_routes(derivation, loop), _route(derivation, loop.legacy)
    if legacy is None or legacy[2] == END:
        return routes
    source, when, target = legacy
    route = ExitRoute(f"exit:{source}:{when}", loop.id, source, when, target, derived=True)
    replaced = next((r for r in routes if (r.source, r.condition) == (source, when)), None)
    if replaced is not None and (replaced.id, replaced.target) == (route.id, target):
        return routes
    instead = f", in place of {replaced.id}" if replaced is not None else ""
    derivation.note(
        f"loops.{loop.id}.exit", f"{loop.id} is left from {source} to {target} when {when}{instead}"
    )
    return [r for r in routes if r is not replaced] + [route]


def _derive_from_legacy_exit(derivation: Derivation, loop: LoopFacts) -> None:
    legacy, facts = _route(derivation, loop.legacy), derivation.facts
    if legacy is None or legacy[0] not in facts.sockets:
        return
    source, when, _ = legacy
    socket = facts.sockets[source]
    if when in GUARDS and socket.parse is None and not socket.is_generator:
        derivation.json_sources.update(facts.sharing(socket) if socket.is_utility else [source])
        text = f"{source} is parsed as json, because loop {loop.id} is left when it is {when}"
        derivation.note(f"{source}.parse", text)
    _derive_advance(derivation, loop, source, when)


def _derive_from_exits(derivation: Derivation, loop: LoopFacts) -> None:
    routes = _written_routes(derivation, loop)
    if _has_advance(derivation, loop):
        return
    for source in dict.fromkeys(route.source for route in routes):
        conditions = [route.condition for route in routes if route.source == source]
        _derive_advance(derivation, loop, source, combined_condition(conditions))


def _has_advance(derivation: Derivation, loop: LoopFacts) -> bool:
    """True if a member moves the cursor of the loop, as written or as derived from a legacy exit."""
    for member in loop.members:
        socket, derived = derivation.facts.sockets.get(member), derivation.advances.get(member)
        cursors = (socket and socket.advance_cursor, derived and derived.cursor)
        if loop.cursor(member) in cursors:
            return True
    return False


def _derive_advance(derivation: Derivation, loop: LoopFacts, source: str, when: Condition) -> None:
    """Derive the advance of an exit's source, unless it has its own advance or another loop derived one."""
    socket = derivation.facts.sockets.get(source)
    if socket is not None and socket.advance is not None:
        return
    advance = Advance(loop.cursor(source), loop.items, when, derived=True)
    if source in derivation.advances:
        if advance != derivation.advances[source]:
            derivation.conflicts.append((source, derivation.advancing[source], loop.id))
        return
    derivation.advances[source], derivation.advancing[source] = advance, loop.id
    moment = "each time it completes" if when == "always" else f"when it is {when}"
    text = f"{source} moves {advance.cursor} over {advance.items} {moment} (exit of loop {loop.id})"
    derivation.note(f"{source}.advance", text)
