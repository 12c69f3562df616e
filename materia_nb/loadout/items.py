"""Derive the loops, advances and exits of a loadout (R12 to R15) and its parallel regions, and check these regions.

Malformed parts of the loadout are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeGuard

from materia_nb.errors import counted
from materia_nb.jsonvalue import JSON, Object, as_object, is_text, split_path, text_or, whole_number, without_field
from materia_nb.loadout.graph import DEFAULT_LANES, END, Advance, DerivedValue, ExitRoute, Iterator, Loop, Region
from materia_nb.loadout.report import INVALID_LOOP, INVALID_MATERIA, INVALID_SOCKET, Findings, brief, do, suggested_fix
from materia_nb.loadout.topology import ExitFacts, LoadoutFacts, LoopFacts, SocketFacts, parse_loadout
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, GUARDS, WORK_ITEMS, Condition, is_condition


def assigns_work_items(target: str) -> bool:
    """Return True if an assignment target is ``workItems``; empty path segments are ignored (R11)."""
    return split_path(target) == [WORK_ITEMS]


def combined_condition(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that several exits share, or ``always`` if their conditions differ (R15)."""
    unique_conditions = set(conditions)
    return unique_conditions.pop() if len(unique_conditions) == 1 else "always"


@dataclass(slots=True)
class Derivation:
    """The values that are derived from a loadout.

    Attributes:
        facts: the parsed loadout.
        loops: the resolved loops by id.
        advances: the derived advances by socket id.
        advancing_loops: the id of the loop from which each advance is derived, by socket id.
        conflicts: triples of a socket and two loops that imply different advances of the socket (R66).
        json_sources: the sockets whose output is parsed as JSON because a loop exit depends on ``satisfied`` (R15).
        sentences: the descriptions of the derived values.
    """

    facts: LoadoutFacts
    loops: dict[str, Loop] = field(default_factory=dict)
    advances: dict[str, Advance] = field(default_factory=dict)
    advancing_loops: dict[str, str] = field(default_factory=dict)
    conflicts: list[tuple[str, str, str]] = field(default_factory=list)
    json_sources: set[str] = field(default_factory=set)
    sentences: list[DerivedValue] = field(default_factory=list)

    def note(self, source: str, text: str) -> None:
        """Add a sentence that describes the derived value at the path ``source``."""
        self.sentences.append(DerivedValue(source, text))

    def is_target(self, to: JSON) -> TypeGuard[str]:
        """Return True if ``to`` is an existing socket or the end."""
        return isinstance(to, str) and (to == END or to in self.facts.sockets)


@lru_cache(maxsize=8)
def derive(facts: LoadoutFacts) -> Derivation:
    """Derive the loops, exits and advances of a loadout. The result is cached, so callers must not modify it."""
    derivation = Derivation(facts)
    for loop in facts.loops:
        derivation.loops[loop.id] = Loop(
            id=loop.id,
            sockets=tuple(member for member in loop.members if member in facts.sockets),
            generator=loop.source if loop.source in facts.sockets else None,
            output=loop.output if loop.consumes else None,
            iterator=loop.iterator_of(next(iter(loop.members), "")) if loop.iterates else None,
            routes=tuple(_resolve_routes(derivation, loop)),
        )
    consumers = [loop for loop in facts.loops if loop.consumes]
    for loop in consumers:
        _derive_from_legacy_exit(derivation, loop)
    for loop in consumers:
        _derive_from_exits(derivation, loop)
    return derivation


def advances_of(facts: LoadoutFacts, loop: LoopFacts) -> dict[str, Condition]:
    """Return the members that advance the cursor of a loop, each with the condition of its advance (R15).

    Both explicit and derived advances are included.
    """
    conditions: dict[str, Condition] = {}
    for member in loop.members if loop.iterates else ():
        socket, derived_advance = facts.sockets.get(member), derive(facts).advances.get(member)
        if derived_advance is not None and derived_advance.cursor == loop.cursor(member):
            conditions[member] = derived_advance.when
        elif socket is not None and socket.foreach is None and socket.advance is not None:
            when = socket.advance.get("when", "always")
            if socket.advance_cursor == loop.cursor(member) and is_condition(when):
                conditions[member] = when
    return conditions


def probable_advance(facts: LoadoutFacts, loop: LoopFacts) -> dict[str, Condition]:
    """Return the last member that leads back to the first member, with the condition on which it should advance."""
    members = [facts.sockets[member] for member in loop.members if member in facts.sockets]
    returning = [socket for socket in members if loop.members[0] in socket.targets] or members
    return {socket.id: "always" if socket.id in facts.text_sockets else "satisfied" for socket in returning[-1:]}


def unwritten_advances(facts: LoadoutFacts) -> dict[str, Object]:
    """Return the advances that are derived from ``exits``, by socket, in the format of the field ``advance`` (R15).

    The reference engine derives an advance only from the older field ``exit``.
    """
    derivation = derive(facts)
    legacy_loops = {loop.id for loop in facts.loops if loop.legacy is not None}
    advances = {id_: a for id_, a in derivation.advances.items() if derivation.advancing_loops[id_] not in legacy_loops}
    return {id_: {"cursor": a.cursor, "items": a.items, "when": a.when} for id_, a in advances.items()}


def implied_advances(facts: LoadoutFacts) -> dict[str, Object]:
    """Return the explicit advances, by socket, that equal the advance derived from ``exits`` (R74)."""
    sockets = {id_: without_field(socket.raw, "advance") for id_, socket in facts.sockets.items()}
    implied = unwritten_advances(parse_loadout(facts.name, {**facts.raw, "sockets": sockets}, facts.definitions))
    return {id_: advance for id_, advance in implied.items() if facts.sockets[id_].advance == advance}


def completed_advances(facts: LoadoutFacts) -> dict[str, Object]:
    """Return a completed copy of each explicit advance that lacks a cursor or list, by socket (R14).

    The missing part is taken from the iterator. The reference engine fails at an incomplete advance.
    """
    return {
        id_: {"cursor": socket.advance_cursor, "items": socket.iterator.items, **socket.advance}
        for id_, socket in facts.sockets.items()
        if socket.advance is not None and socket.iterator is not None and socket.iterator.items
        if not {"cursor", "items"} <= socket.advance.keys()
    }


def with_advances(facts: LoadoutFacts) -> Object:
    """Return a loadout whose advances are explicit and complete, so that the reference engine can cast it (R74)."""
    sockets = as_object(facts.raw.get("sockets"))
    written_advances = unwritten_advances(facts) | completed_advances(facts)
    changed_sockets = {id_: {**sockets[id_], "advance": advance} for id_, advance in written_advances.items()}
    return {**facts.raw, "sockets": {**sockets, **changed_sockets}} if changed_sockets else facts.raw


def socket_iterator(socket: SocketFacts) -> Iterator | None:
    """Return the iteration of a socket; its list is ``?`` if the field ``foreach`` does not name a list."""
    if socket.foreach is None or socket.iterator is None or socket.iterator.items:
        return socket.iterator
    return replace(socket.iterator, items="?")


def socket_advance(derivation: Derivation, socket: SocketFacts) -> Advance | None:
    """Return a socket's explicit advance, completed from its iteration, else its derived advance, else None (R14)."""
    if socket.advance is None:
        return derivation.advances.get(socket.id)
    raw, cursor, when = socket.advance, socket.advance_cursor or "?", socket.advance.get("when")
    items = raw["items"] if is_text(raw.get("items")) else (socket.iterator and socket.iterator.items) or "?"
    missing_fields = [name for name in ("cursor", "items") if raw.get(name) is None]
    if missing_fields:
        names = " and ".join(missing_fields)
        text = f"the advance of {socket.id} uses the {names} of the iterator ({cursor}, {items})"
        derivation.note(f"{socket.id}.advance", text)
    return Advance(cursor, items, when if is_condition(when) else "always")


def _explicit_routes(derivation: Derivation, loop: LoopFacts) -> list[ExitRoute]:
    return [
        ExitRoute(text_or(exit_.raw.get("id"), f"#{exit_.index}"), loop.id, *route)
        for exit_ in loop.exits
        if (route := _resolve_route(derivation, exit_)) is not None
    ]


def _resolve_route(derivation: Derivation, exit_: ExitFacts | None) -> tuple[str, Condition, str] | None:
    """Return the source, the condition and the target of an exit, or None if the exit is missing or malformed."""
    if exit_ is None or exit_.source not in derivation.facts.sockets or exit_.condition is None:
        return None
    if exit_.source is None or not derivation.is_target(exit_.target):
        return None
    return exit_.source, exit_.condition, exit_.target


def _resolve_routes(derivation: Derivation, loop: LoopFacts) -> list[ExitRoute]:
    routes, legacy_route = _explicit_routes(derivation, loop), _resolve_route(derivation, loop.legacy)
    if legacy_route is None or legacy_route[2] == END:
        return routes
    source, when, target = legacy_route
    route = ExitRoute(f"exit:{source}:{when}", loop.id, source, when, target, derived=True)
    replaced_route = next((r for r in routes if (r.source, r.condition) == (source, when)), None)
    if replaced_route is not None and (replaced_route.id, replaced_route.target) == (route.id, target):
        return routes
    replaced_exit = f", instead of {replaced_route.id}" if replaced_route is not None else ""
    derivation.note(
        f"loops.{loop.id}.exit", f"loop {loop.id} exits from {source} to {target} (condition {when}){replaced_exit}"
    )
    return [r for r in routes if r is not replaced_route] + [route]


def _derive_from_legacy_exit(derivation: Derivation, loop: LoopFacts) -> None:
    legacy_route, facts = _resolve_route(derivation, loop.legacy), derivation.facts
    if legacy_route is None:
        return
    source, when, _ = legacy_route
    socket = facts.sockets[source]
    if when in GUARDS and socket.parse is None and not socket.is_generator:
        derivation.json_sources.update(facts.sockets_sharing_materia(socket) if socket.is_utility else [source])
        text = f"the output of {source} is parsed as json, because its exit from loop {loop.id} needs {when}"
        derivation.note(f"{source}.parse", text)
    _derive_advance(derivation, loop, source, when)


def _derive_from_exits(derivation: Derivation, loop: LoopFacts) -> None:
    routes = _explicit_routes(derivation, loop)
    if _moves_cursor(derivation, loop):
        return
    for source in dict.fromkeys(route.source for route in routes):
        conditions = [route.condition for route in routes if route.source == source]
        _derive_advance(derivation, loop, source, combined_condition(conditions))


def _moves_cursor(derivation: Derivation, loop: LoopFacts) -> bool:
    """Return True if a member has an explicit or derived advance that moves the cursor of the loop."""
    for member in loop.members:
        socket, derived_advance = derivation.facts.sockets.get(member), derivation.advances.get(member)
        cursors = (socket and socket.advance_cursor, derived_advance and derived_advance.cursor)
        if loop.cursor(member) in cursors:
            return True
    return False


def _derive_advance(derivation: Derivation, loop: LoopFacts, source: str, when: Condition) -> None:
    """Derive the advance of the source of an exit, unless the source already has an advance.

    A different advance that is derived from another loop is recorded as a conflict.
    """
    if derivation.facts.sockets[source].advance is not None:
        return
    advance = Advance(loop.cursor(source), loop.items, when, derived=True)
    if source in derivation.advances:
        if advance != derivation.advances[source]:
            derivation.conflicts.append((source, derivation.advancing_loops[source], loop.id))
        return
    derivation.advances[source], derivation.advancing_loops[source] = advance, loop.id
    timing = "each time it completes" if when == "always" else f"when its result is {when}"
    text = f"{source} moves {advance.cursor} to the next item of {advance.items} {timing} (exit of loop {loop.id})"
    derivation.note(f"{source}.advance", text)


# -- regions ----------------------------------------------------------------------------------


def _find_prelude(facts: LoadoutFacts, generator: str) -> tuple[tuple[str, ...], str | None]:
    """Return the sockets between a parallel generator and the next loop, and the member at which the loop is entered.

    The member is None if the path does not reach a loop.
    """
    visited_ids = [generator]
    while True:
        edges = facts.sockets[visited_ids[-1]].edges
        target = edges[0].to if edges else None
        if target is None or target not in facts.sockets or target in visited_ids:
            return tuple(visited_ids[1:]), None
        if facts.sockets[target].loops:
            return tuple(visited_ids[1:]), target
        visited_ids.append(target)


def entry_targets(facts: LoadoutFacts, generator: SocketFacts) -> tuple[str, ...]:
    """Return the sockets that a generator leads to. A prelude of a parallel generator is skipped (R27)."""
    targets = generator.targets
    if not generator.materia.parallel or any(facts.sockets[target].loops for target in targets):
        return targets
    _, member = _find_prelude(facts, generator.id)
    return targets if member is None else (member,)


def regions_of(facts: LoadoutFacts) -> dict[str, Region]:
    """Return the regions of a loadout that run in parallel lanes, by generator."""
    regions: dict[str, Region] = {}
    for generator in _generators(facts):
        (prelude, member), loops = _find_prelude(facts, generator), _consumers(facts, generator)
        if member is None or len(loops) != 1 or member not in loops[0].members:
            continue
        (loop,) = loops
        regions[generator] = Region(
            generator=generator,
            prelude=prelude,
            loop=loop.id,
            members=tuple(member for member in loop.members if member in facts.sockets),
            first=(*prelude, member)[0],
            exit=next((target for _, target in _exits(loop) if target in facts.sockets), END),
            max_concurrency=_max_lanes(facts, loop),
        )
    return regions


def _generators(facts: LoadoutFacts) -> list[str]:
    return [id_ for id_, socket in facts.sockets.items() if socket.materia.parallel]


def _consumers(facts: LoadoutFacts, generator: str) -> list[LoopFacts]:
    return [loop for loop in facts.loops if loop.source == generator]


def _exits(loop: LoopFacts) -> list[tuple[str, str]]:
    """Return the config path and the target of each exit of a loop."""
    exits = [(f"loops.{loop.id}.exits[{exit_.index}]", exit_.target) for exit_ in loop.exits]
    if loop.legacy is not None:
        exits.append((f"loops.{loop.id}.exit", loop.legacy.target))
    return [(path, to) for path, to in exits if to is not None]


def _max_lanes(facts: LoadoutFacts, loop: LoopFacts) -> int:
    settings = (as_object(loop.raw.get("parallel")), as_object(facts.config.get("parallelism")))
    counts = (whole_number(setting.get("maxConcurrency")) for setting in settings)
    return next((count for count in counts if count is not None and count > 0), DEFAULT_LANES)


# -- problems of regions ----------------------------------------------------------------------


def check_regions(findings: Findings, facts: LoadoutFacts) -> None:
    """Report problems with the parallel generators of a loadout and with the sockets in their lanes."""
    owners: dict[str, str] = {}
    regions = regions_of(facts)
    for generator in _generators(facts):
        socket = facts.sockets[generator]
        handoff = socket.handoff
        if handoff != DEFAULT_HANDOFF and not socket.is_utility:
            message = f"{generator!r} is a parallel generator, but the protocol {handoff!r} cannot schedule lanes"
            advice = f'write "handoff": "{DEFAULT_HANDOFF}" on the socket'
            findings.problem(INVALID_SOCKET, f"{generator}.handoff", message, advice)
        _check_prelude(findings, facts, generator)
        region = regions.get(generator)
        if region is None:
            continue
        for socket_id in (generator, *region.sockets):
            other = owners.setdefault(socket_id, generator)
            if other != generator:
                message = f"{socket_id!r} is in the lanes of both {other!r} and {generator!r}"
                advice = "create a separate loop for each parallel generator"
                findings.problem(INVALID_LOOP, f"loops.{region.loop}", message, advice)
                break
        _check_boundary(findings, facts, region)
        _check_exit(findings, facts, region)
        _check_parallel_safety(findings, facts, region)


def _check_prelude(findings: Findings, facts: LoadoutFacts, generator: str) -> None:
    """Report a problem unless exactly one loop consumes a generator's items and one unconditional path leads to it."""
    (prelude, member), loops = _find_prelude(facts, generator), _consumers(facts, generator)
    last = (generator, *prelude)[-1]
    if len(loops) != 1:
        consumers = f"{counted(len(loops), 'loop')} consume its items" if loops else "no loop consumes its items"
        message = f"{generator!r} is a parallel generator, but {consumers}"
        source = f"loops.{loops[1].id}.consumes.from" if loops else f"{generator}.edges"
        advice = f'write "consumes": {{"from": "{generator}"}} on exactly one loop'
        findings.problem(INVALID_LOOP, source, message, advice)
    elif member is None:
        message = f"the path from {generator!r} to loop {loops[0].id!r}, which consumes its items, ends at {last!r}"
        members = loops[0].members
        advice = (
            f"add an edge from {last!r} to {members[0]!r}" if members else "list the members of the loop in `sockets`"
        )
        findings.problem(INVALID_LOOP, f"{last}.edges", message, advice)
    elif member not in loops[0].members:
        message = f"the path from {generator!r} does not enter loop {loops[0].id!r}, which consumes its items"
        advice = f"connect {last!r} to a member of loop {loops[0].id!r}"
        findings.problem(INVALID_LOOP, f"{last}.edges", message, advice)
    for id_ in (generator, *prelude):
        for edge in facts.sockets[id_].edges:
            if edge.when != "always" or edge.index:
                message = f"{id_!r} must lead to the lanes of {generator!r} with a single `always` edge, so edge {edge.index + 1} is not allowed"
                advice = "remove the edge, or move the decision to a member of the loop"
                fix = suggested_fix("Remove the edge", do("remove_edge", id_, edge.index))
                findings.problem(INVALID_LOOP, f"{id_}.edges[{edge.index}]", message, advice, fix)
    for id_ in prelude:
        if facts.sockets[id_].is_generator:
            message = (
                f"the generator {id_!r} is between {generator!r} and its loop, and would replace the items of the lanes"
            )
            findings.problem(INVALID_LOOP, f"{id_}.materia", message, f"move {id_!r} before {generator!r}")


def _check_boundary(findings: Findings, facts: LoadoutFacts, region: Region) -> None:
    """Report edges and exits that lead into a region but not from its generator, or out of it but not to its exit."""
    before = dict(zip(region.prelude, (region.generator, *region.prelude), strict=False))
    last = (region.generator, *region.prelude)[-1]
    if facts.entry in region.sockets:
        message = f"the entry {brief(facts.entry)} is in the lanes of {region.generator!r}"
        advice = f"set the entry to {region.generator!r} or to a socket before it"
        findings.problem(INVALID_LOOP, "entry", message, advice)
    targets = [(f"loops.{loop.id}", to) for loop in facts.loops if loop.id != region.loop for _, to in _exits(loop)]
    for source, target in targets:
        if target in region.sockets:
            message = f"an exit leads to {target!r}, which is in the lanes of {region.generator!r}"
            findings.problem(INVALID_LOOP, source, message, f"set `targetSocketId` to {region.generator!r}")
    for id_, socket in facts.sockets.items():
        for edge in socket.edges:
            if edge.to in region.prelude:
                is_allowed = id_ == before[edge.to]
            elif edge.to in region.members:
                is_allowed = id_ in region.members or id_ == last
            else:
                is_allowed = id_ not in region.members or edge.to in (region.exit, END)
            if not is_allowed:
                problem = _boundary_problem(region, id_, edge.raw.get("to"))
                findings.problem(INVALID_LOOP, f"{id_}.edges[{edge.index}]", *problem)


def _boundary_problem(region: Region, socket: str, to: JSON) -> tuple[str, str]:
    """Return the message and the advice for an edge that must not lead into or out of a region."""
    if socket in region.sockets and to not in region.sockets:
        message = f"{socket!r} leads out of the lanes of {region.generator!r} to {brief(to)}, so it skips the join"
        return message, f"use an exit of loop {region.loop!r} instead"
    message = f"the edge leads to {brief(to)}, but only {region.generator!r} may have edges into its lanes"
    return message, f"set `to` to {region.generator!r}, or to a socket outside the lanes"


def _check_exit(findings: Findings, facts: LoadoutFacts, region: Region) -> None:
    """Report exits that lead into the region itself, and exits with different targets."""
    loop = next(loop for loop in facts.loops if loop.id == region.loop)
    for source, to in _exits(loop):
        if to in region.sockets:
            message = f"the exit leads to {to!r}, which is in the lanes"
            findings.problem(INVALID_LOOP, source, message, "set the target of the exit to the socket after the join")
        elif to != next(target for _, target in _exits(loop)):
            message = f"the exit leads to {to!r}, but all exits from the lanes of {region.generator!r} must have the same target"
            advice = "set the target of all exits of the loop to the socket that evaluates the results of the lanes"
            findings.problem(INVALID_LOOP, source, message, advice)


def _check_parallel_safety(findings: Findings, facts: LoadoutFacts, region: Region) -> None:
    """Report materia that are placed in lanes, but may not run in parallel or need a person to refine drafts."""
    sockets_by_materia = {str(facts.sockets[id_].raw.get("materia")): facts.sockets[id_] for id_ in region.sockets}
    for materia, socket in sockets_by_materia.items():
        raw = socket.materia.raw
        if not raw or not is_text(materia):
            continue
        lanes = f"the lanes of {region.generator!r} (loop {region.loop!r})"
        if raw.get("parallelSafe") is not True:
            message = f"the materia {materia!r} is in {lanes}, but does not set `parallelSafe`"
            advice = 'write "parallelSafe": true if it can run in several lanes at the same time'
            findings.problem(INVALID_MATERIA, f"materia.{materia}.parallelSafe", message, advice)
        if raw.get("multiTurn") is True:
            message = f"the materia {materia!r} is in {lanes}, where a person cannot refine drafts"
            findings.problem(INVALID_MATERIA, f"materia.{materia}.multiTurn", message, "remove `multiTurn`")
