"""Regions: where the items of parallel generators are worked on in lanes, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from materia_nb.errors import counted
from materia_nb.jsonvalue import JSON, as_object, is_text, whole_number
from materia_nb.loadout.graph import END, LANES_AT_ONCE, Region
from materia_nb.loadout.report import (
    INVALID_LOOP,
    INVALID_MATERIA,
    INVALID_SOCKET,
    Findings,
    brief,
    do,
    suggested_fix,
)
from materia_nb.loadout.topology import LoadoutFacts, LoopFacts, SocketFacts
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF


class _Prelude(NamedTuple):
    """The sockets from a parallel generator to the loop that they lead into.

    Attributes:
        sockets: the sockets before the loop.
        member: the member of the loop that the last of them leads to, or None if they lead to none.
        last: the last socket before the loop.
    """

    sockets: tuple[str, ...]
    member: str | None
    last: str


def _prelude(facts: LoadoutFacts, generator: str) -> _Prelude:
    passed = [generator]
    while True:
        edges = facts.sockets[passed[-1]].edges
        to = edges[0].to if edges else None
        if to is None or to not in facts.sockets or to in passed:
            return _Prelude(tuple(passed[1:]), None, passed[-1])
        if facts.sockets[to].loops:
            return _Prelude(tuple(passed[1:]), to, passed[-1])
        passed.append(to)


def leads_into(facts: LoadoutFacts, generator: SocketFacts) -> tuple[str, ...]:
    """Return the sockets that a generator leads to; for a parallel generator, the member after its prelude (R27)."""
    targets = generator.targets
    if not generator.materia.parallel or any(facts.sockets[to].loops for to in targets):
        return targets
    member = _prelude(facts, generator.id).member
    return targets if member is None else (member,)


def regions_of(facts: LoadoutFacts) -> dict[str, Region]:
    """Return the regions of a loadout by their generators; skip what is not well formed."""
    regions: dict[str, Region] = {}
    for generator in _generators(facts):
        prelude, loops = _prelude(facts, generator), _consumers(facts, generator)
        if prelude.member is None or len(loops) != 1 or prelude.member not in loops[0].members:
            continue
        (loop,) = loops
        regions[generator] = Region(
            generator=generator,
            prelude=prelude.sockets,
            loop=loop.id,
            members=tuple(member for member in loop.members if member in facts.sockets),
            first=(*prelude.sockets, prelude.member)[0],
            exit=next((to for _, to in _exits(loop) if to in facts.sockets), END),
            at_once=_max_lanes(facts, loop),
        )
    return regions


def _generators(facts: LoadoutFacts) -> list[str]:
    return [id_ for id_, socket in facts.sockets.items() if socket.materia.parallel]


def _consumers(facts: LoadoutFacts, generator: str) -> list[LoopFacts]:
    return [loop for loop in facts.loops if loop.source == generator]


def _exits(loop: LoopFacts) -> Iterator[tuple[str, str]]:
    """Yield the path and the target of each exit of a loop."""
    path = f"loops.{loop.id}"
    exits = [(f"{path}.exits[{exit_.place}]", exit_.target) for exit_ in loop.exits]
    if loop.legacy is not None:
        exits.append((f"{path}.exit", loop.legacy.target))
    yield from ((source, to) for source, to in exits if to is not None)


def _max_lanes(facts: LoadoutFacts, loop: LoopFacts) -> int:
    settings = (as_object(loop.raw.get("parallel")), as_object(facts.config.get("parallelism")))
    counts = (whole_number(setting.get("maxConcurrency")) for setting in settings)
    return next((count for count in counts if count is not None and count > 0), LANES_AT_ONCE)


# -- problems ---------------------------------------------------------------------------------


def check_regions(findings: Findings, facts: LoadoutFacts) -> None:
    """Report the problems of the regions of the parallel generators of a loadout."""
    owners: dict[str, str] = {}
    regions = regions_of(facts)
    for generator in _generators(facts):
        socket = facts.sockets[generator]
        handoff = socket.handoff
        if handoff != DEFAULT_HANDOFF and not socket.is_utility:
            message = f"{generator!r} hands its items to streams, which the protocol {handoff!r} cannot say"
            advice = f'write "handoff": "{DEFAULT_HANDOFF}" here'
            findings.problem(INVALID_SOCKET, f"{generator}.handoff", message, advice)
        _check_prelude(findings, facts, generator)
        region = regions.get(generator)
        if region is None:
            continue
        for socket_id in (generator, *region.sockets):
            other = owners.setdefault(socket_id, generator)
            if other != generator:
                message = f"{socket_id!r} is in the region of {other!r} and in that of {generator!r}, but regions lie apart"
                advice = "let each parallel generator lead into a loop of its own"
                findings.problem(INVALID_LOOP, f"loops.{region.loop}", message, advice)
                break
        _check_borders(findings, facts, region)
        _check_exit(findings, facts, region)
        _check_safe(findings, facts, region)


def _check_prelude(findings: Findings, facts: LoadoutFacts, generator: str) -> None:
    """Check that one unconditional path leads from a generator to the one loop that consumes its items."""
    prelude, loops = _prelude(facts, generator), _consumers(facts, generator)
    if len(loops) != 1:
        consumers = (
            f"{counted(len(loops), 'loop')} consume its items" if loops else "no loop consumes its items"
        )
        message = f"{generator!r} hands its items to streams, but {consumers}"
        source = f"loops.{loops[1].id}.consumes.from" if loops else f"{generator}.edges"
        advice = f'let exactly one loop have "consumes": {{"from": "{generator}"}}'
        findings.problem(INVALID_LOOP, source, message, advice)
    elif prelude.member is None:
        message = f"the way from {generator!r} to loop {loops[0].id!r}, which consumes its items, ends at {prelude.last!r}"
        advice = (
            f"lead it on to {loops[0].members[0]!r}" if loops[0].members else "list the members of the loop"
        )
        findings.problem(INVALID_LOOP, f"{prelude.last}.edges", message, advice)
    elif prelude.member not in loops[0].members:
        message = f"the way from {generator!r} leads into another loop than {loops[0].id!r}, which consumes its items"
        advice = "let one way, without loops in between, lead to the loop that consumes the items"
        findings.problem(INVALID_LOOP, f"{prelude.last}.edges", message, advice)
    for id_ in (generator, *prelude.sockets):
        for edge in facts.sockets[id_].edges:
            if edge.when != "always" or edge.place:
                message = f"edge {edge.place + 1} of {id_!r} leads another way than the one unconditional one to the lanes of {generator!r}"
                advice = "leave one edge that is always taken, and let a member of the loop decide"
                fix = suggested_fix("Remove the edge", do("remove_edge", id_, edge.place))
                findings.problem(INVALID_LOOP, f"{id_}.edges[{edge.place}]", message, advice, fix)
    for id_ in prelude.sockets:
        if facts.sockets[id_].is_generator:
            message = f"{id_!r} is in the prelude of {generator!r}, and would put items of its own in the place of the stream's"
            findings.problem(
                INVALID_LOOP, f"{id_}.materia", message, "place it before the parallel generator"
            )


def _check_borders(findings: Findings, facts: LoadoutFacts, region: Region) -> None:
    """Check that a region is entered from its generator alone and left by the exits of its loop alone."""
    before = dict(zip(region.prelude, (region.generator, *region.prelude), strict=False))
    last = (region.generator, *region.prelude)[-1]
    if facts.entry in region.sockets:
        message = f"a cast starts at {brief(facts.entry)}, inside the lanes of {region.generator!r}"
        findings.problem(INVALID_LOOP, "entry", message, f"start at {region.generator!r} or before it")
    outside = [
        (f"loops.{loop.id}", to) for loop in facts.loops if loop.id != region.loop for _, to in _exits(loop)
    ]
    for source, target in outside:
        if target in region.sockets:
            message = f"an exit leads to {target!r}, into the lanes of {region.generator!r} from outside"
            findings.problem(INVALID_LOOP, source, message, f"lead it to {region.generator!r}")
    for id_, socket in facts.sockets.items():
        for edge in socket.edges:
            if edge.to in region.prelude:
                allowed = id_ == before[edge.to]
            elif edge.to in region.members:
                allowed = id_ in region.members or id_ == last
            else:
                allowed = id_ not in region.members or edge.to in (region.exit, END)
            if not allowed:
                problem = _border_problem(region, id_, edge.raw.get("to"))
                findings.problem(INVALID_LOOP, f"{id_}.edges[{edge.place}]", *problem)


def _border_problem(region: Region, socket: str, to: JSON) -> tuple[str, str]:
    """Return the message and the advice for an edge that crosses the border of a region."""
    if socket in region.sockets and to not in region.sockets:
        message = (
            f"{socket!r} leads out of the lanes of {region.generator!r} to {brief(to)}, past the barrier"
        )
        return message, f"leave by the exits of loop {region.loop!r}"
    message = f"this leads to {brief(to)} round the one way from {region.generator!r} into its lanes"
    return message, f"lead it to {region.generator!r}, or out of the lanes"


def _check_exit(findings: Findings, facts: LoadoutFacts, region: Region) -> None:
    """Check that a region has one continuation."""
    loop = next(loop for loop in facts.loops if loop.id == region.loop)
    for source, to in _exits(loop):
        if to in region.sockets:
            message = f"this way out leads to {to!r}, which is in the lanes itself"
            findings.problem(INVALID_LOOP, source, message, "lead it to what comes behind the barrier")
        elif to != next(target for _, target in _exits(loop)):
            message = (
                f"the lanes of {region.generator!r} have one continuation, and this way out leads elsewhere"
            )
            advice = (
                "lead all ways out of the loop to one socket, which decides on what the lanes handed over"
            )
            findings.problem(INVALID_LOOP, source, message, advice)


def _check_safe(findings: Findings, facts: LoadoutFacts, region: Region) -> None:
    """Check that every materia of the lanes may work beside others, and needs no drafts."""
    placed = {str(facts.sockets[id_].raw.get("materia")): facts.sockets[id_] for id_ in region.sockets}
    for materia, socket in placed.items():
        raw = socket.materia.raw
        if not raw or not is_text(materia):
            continue
        lanes = f"works in the lanes of {region.generator!r} (loop {region.loop!r})"
        if raw.get("parallelSafe") is not True:
            message = f"materia {materia!r} {lanes} and does not say that it may"
            advice = 'write "parallelSafe": true if it disturbs nobody who works beside it'
            findings.problem(INVALID_MATERIA, f"materia.{materia}.parallelSafe", message, advice)
        if raw.get("multiTurn") is True:
            message = f"materia {materia!r} {lanes}, where drafts are not refined"
            findings.problem(INVALID_MATERIA, f"materia.{materia}.multiTurn", message, "remove multiTurn")
