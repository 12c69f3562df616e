"""Derived facts of a valid loadout: loop regions, exit routes, and the advances that exits stand for (R15)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import Facts, LoopFacts, Object, as_list, is_object
from materia_nb.loadout.graph import END, Advance, Derived, ExitRoute, Iterator, Loop
from materia_nb.loadout.vocabulary import Condition


@dataclass(slots=True)
class Derivation:
    """What was derived for a loadout, with a sentence for each fact."""

    facts: Facts
    loops: dict[str, Loop] = field(default_factory=dict)
    advances: dict[str, Advance] = field(default_factory=dict)
    json_sources: set[str] = field(default_factory=set)
    told: list[Derived] = field(default_factory=list)

    def tell(self, source: str, text: str) -> None:
        """Put a derived fact into words for the person who reads the graph."""
        self.told.append(Derived(source, text))


def derive(facts: Facts) -> Derivation:
    """Derive loops, routes and advances of a loadout without problems (R12, R13, R15)."""
    result = Derivation(facts)
    for loop in facts.loops:
        result.loops[loop.id] = Loop(
            id=loop.id,
            sockets=tuple(member for member in loop.members if member in facts.sockets),
            generator=loop.consumes["from"] if loop.consumes else None,
            output=loop.output if loop.consumes else None,
            iterator=_loop_iterator(loop),
            routes=tuple(_routes(result, loop)),
        )
    for loop in facts.loops:
        if loop.consumes:
            _derive_from_legacy_exit(result, loop)
    for loop in facts.loops:
        if loop.consumes:
            _derive_from_exits(result, loop)
    return result


def socket_iterator(facts: Facts, id_: str) -> Iterator | None:
    """Return where a socket gets its item: its own ``foreach``, else the first loop that gives one (R1)."""
    foreach = facts.foreach(id_)
    if foreach is not None:
        return Iterator(
            items=foreach["items"],
            alias=foreach.get("as") or "item",
            cursor=facts.cursor_of(id_) or f"{id_}Index",
        )
    loop = facts.iterating_loop(id_)
    return None if loop is None else Iterator(loop.items(), loop.alias(), loop.cursor(id_), loop.id)


def combined_condition(conditions: Iterable[Condition]) -> Condition:
    """Return the one condition that all routes share, else always (R15)."""
    found = set(conditions)
    return found.pop() if len(found) == 1 else "always"


def _loop_iterator(loop: LoopFacts) -> Iterator | None:
    if not loop.iterates:
        return None
    first = loop.members[0] if loop.members else ""
    return Iterator(loop.items(), loop.alias(), loop.cursor(first), loop.id)


def _routes(result: Derivation, loop: LoopFacts) -> list[ExitRoute]:
    routes = [
        ExitRoute(route["id"], loop.id, route["from"], route["condition"], route["targetSocketId"])
        for route in as_list(loop.raw.get("exits"))
    ]
    legacy = loop.raw.get("exit")
    if not is_object(legacy) or legacy["to"] == END:
        return routes
    return _with_legacy_route(result, loop, routes, legacy)


def _with_legacy_route(
    result: Derivation, loop: LoopFacts, routes: list[ExitRoute], legacy: Object
) -> list[ExitRoute]:
    source, when, target = legacy["from"], legacy["when"], legacy["to"]
    route = ExitRoute(f"exit:{source}:{when}", loop.id, source, when, target, derived=True)
    replaced = next((r for r in routes if (r.source, r.condition) == (source, when)), None)
    if replaced is not None and (replaced.id, replaced.target) == (route.id, target):
        return routes
    instead = f", in place of {replaced.id}" if replaced is not None else ""
    result.tell(f"loops.{loop.id}.exit", f"{loop.id} is left from {source} to {target} when {when}{instead}")
    return [r for r in routes if r is not replaced] + [route]


def _derive_from_legacy_exit(result: Derivation, loop: LoopFacts) -> None:
    legacy = loop.raw.get("exit")
    if not is_object(legacy):
        return
    source, when = legacy["from"], legacy["when"]
    if (
        when != "always"
        and result.facts.authored_parse(source) is None
        and not result.facts.is_generator(source)
    ):
        result.json_sources.add(source)
        result.tell(
            f"{source}.parse", f"{source} is parsed as json, because loop {loop.id} is left when it is {when}"
        )
    if not is_object(result.facts.sockets[source].get("advance")):
        _give_advance(result, loop, source, when)


def _derive_from_exits(result: Derivation, loop: LoopFacts) -> None:
    routes = as_list(loop.raw.get("exits"))
    if not routes or _has_advance(result, loop):
        return
    for source in dict.fromkeys(route["from"] for route in routes):
        if is_object(result.facts.sockets[source].get("advance")) or source in result.advances:
            continue
        conditions = [route["condition"] for route in routes if route["from"] == source]
        _give_advance(result, loop, source, combined_condition(conditions))


def _has_advance(result: Derivation, loop: LoopFacts) -> bool:
    """Whether a member moves the loop's cursor, as written or as derived from a legacy exit."""
    for member in loop.members:
        cursor = loop.cursor(member)
        derived = result.advances.get(member)
        if result.facts.advance_cursor(member) == cursor or (
            derived is not None and derived.cursor == cursor
        ):
            return True
    return False


def _give_advance(result: Derivation, loop: LoopFacts, source: str, when: Condition) -> None:
    advance = Advance(loop.cursor(source), loop.items(), when, derived=True)
    if source in result.advances:
        return
    result.advances[source] = advance
    moment = "each time it completes" if when == "always" else f"when it is {when}"
    result.tell(
        f"{source}.advance",
        f"{source} moves {advance.cursor} over {advance.items} {moment} (exit of loop {loop.id})",
    )


def socket_advance(result: Derivation, id_: str) -> Advance | None:
    """Return how a socket moves on: as written, with what it takes from its iterator, or as derived (R14)."""
    raw: JSON = result.facts.sockets[id_].get("advance")
    if not is_object(raw):
        return result.advances.get(id_)
    facts = result.facts
    cursor = raw.get("cursor") or facts.cursor_of(id_)
    items = raw.get("items") or facts.items_of(id_)
    missing = [name for name in ("cursor", "items") if raw.get(name) is None]
    if missing:
        names = " and ".join(missing)
        result.tell(
            f"{id_}.advance", f"{id_} takes the {names} of its advance from its iterator ({cursor}, {items})"
        )
    return Advance(str(cursor), str(items), raw.get("when", "always"))
