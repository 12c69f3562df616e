"""Where ways lead, and where the items of parallel generators are worked on in lanes.

A region is the prelude and the loop behind a generator; what is wrong there is said here too. Of ways: what can be reached over
them, and which of their ends lead to one another.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from materia_nb.errors import counted
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import Facts, LoopFacts, as_object, is_parallel, is_text, text_or, whole
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
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF

_Node = TypeVar("_Node", bound=Hashable)


def reachable_from(starts: Iterable[_Node], ways: Mapping[_Node, Iterable[_Node]]) -> set[_Node]:
    """Return these, and all that ways lead to from them; what is not a key of ``ways`` leads nowhere."""
    reached = set(starts)
    waiting = list(reached)
    while waiting:
        new = set(ways.get(waiting.pop(), ())) - reached
        reached |= new
        waiting += new
    return reached


def turned(ways: Mapping[_Node, Iterable[_Node]]) -> dict[_Node, set[_Node]]:
    """Return the ways from their other ends: each end of one, with what leads to it."""
    back: dict[_Node, set[_Node]] = {start: set() for start in ways}
    for start, onward in ways.items():
        for to in onward:
            back.setdefault(to, set()).add(start)
    return back


def knots(ways: Mapping[_Node, Iterable[_Node]]) -> list[list[_Node]]:
    """Return the keys in groups that lead to one another (strongly connected components), the last ones first.

    Tarjan's algorithm, without recursion: a chain of states can be long.
    """
    number: dict[_Node, int] = {}
    lowest: dict[_Node, int] = {}
    stack: list[_Node] = []
    open_: set[_Node] = set()
    groups: list[list[_Node]] = []
    for root in ways:
        if root in number:
            continue
        todo = [(root, iter(ways[root]))]
        number[root] = lowest[root] = len(number)
        stack.append(root)
        open_.add(root)
        while todo:
            at, rest = todo[-1]
            for child in rest:
                if child not in number:
                    number[child] = lowest[child] = len(number)
                    stack.append(child)
                    open_.add(child)
                    todo.append((child, iter(ways[child])))
                    break
                if child in open_:
                    lowest[at] = min(lowest[at], number[child])
            else:
                todo.pop()
                if todo:
                    parent = todo[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[at])
                if lowest[at] == number[at]:
                    knot: list[_Node] = []
                    while at in open_:
                        knot.append(stack.pop())
                        open_.remove(knot[-1])
                    groups.append(knot[::-1])
    return groups


def rounds_in(ways: Mapping[_Node, Iterable[_Node]]) -> dict[_Node, int]:
    """Return what a way leads back to, each with the number of its round: those that lead to one another."""
    rounds: dict[_Node, int] = {}
    for number, knot in enumerate(knots(ways)):
        if len(knot) > 1 or knot[0] in ways[knot[0]]:
            rounds |= dict.fromkeys(knot, number)
    return rounds


class _Way(NamedTuple):
    """The way from a parallel generator into the loop: the sockets before it, and the member that it comes to.

    ``member`` is None where it comes to none, and ``stuck`` is the socket from which it does not go on then.
    """

    prelude: tuple[str, ...]
    member: str | None
    stuck: str


def _way(facts: Facts, generator: str) -> _Way:
    passed = [generator]
    while True:
        targets = [edge.get("to") for _, edge in facts.edges(passed[-1])]
        to = targets[0] if targets else None
        if not isinstance(to, str) or to not in facts.sockets or to in passed:
            return _Way(tuple(passed[1:]), None, passed[-1])
        if to in facts.loops_of:
            return _Way(tuple(passed[1:]), to, passed[-1])
        passed.append(to)


def leads_into(facts: Facts, generator: str) -> list[str]:
    """Return the sockets that a generator leads to: a parallel one to the member behind its prelude (R27)."""
    targets = facts.targets(generator)
    if not is_parallel(facts.materia_of(generator)) or any(to in facts.loops_of for to in targets):
        return targets
    member = _way(facts, generator).member
    return targets if member is None else [member]


def regions_of(facts: Facts) -> dict[str, Region]:
    """Return the regions of a loadout by their generators; what is not well formed is left out."""
    found: dict[str, Region] = {}
    for generator in _generators(facts):
        way, loops = _way(facts, generator), _consumers(facts, generator)
        if way.member is None or len(loops) != 1 or way.member not in loops[0].members:
            continue
        (loop,) = loops
        prelude = way.prelude
        found[generator] = Region(
            generator=generator,
            prelude=prelude,
            loop=loop.id,
            members=tuple(member for member in loop.members if member in facts.sockets),
            first=(*prelude, way.member)[0],
            exit=next((to for _, to in _exits(loop) if to in facts.sockets), END),
            at_once=_at_once(facts, loop),
        )
    return found


def _generators(facts: Facts) -> list[str]:
    return [id_ for id_ in facts.sockets if is_parallel(facts.materia_of(id_))]


def _consumers(facts: Facts, generator: str) -> list[LoopFacts]:
    return [loop for loop in facts.loops if (loop.consumes or {}).get("from") == generator]


def _exits(loop: LoopFacts) -> Iterator[tuple[str, str]]:
    """Yield the ways out of a loop: where each is written, and where it leads."""
    here = f"loops.{loop.id}"
    ways = [(f"{here}.exits[{place}]", route.get("targetSocketId")) for place, route in loop.exits()]
    if loop.legacy is not None:
        ways.append((f"{here}.exit", loop.legacy.get("to")))
    yield from ((source, to) for source, to in ways if isinstance(to, str))


def _at_once(facts: Facts, loop: LoopFacts) -> int:
    own, common = as_object(loop.raw.get("parallel")), as_object(facts.config.get("parallelism"))
    given = (whole(one.get("maxConcurrency")) for one in (own, common))
    return next((count for count in given if count is not None and count > 0), LANES_AT_ONCE)


# -- what is wrong ----------------------------------------------------------------------------


def check_regions(findings: Findings, facts: Facts) -> None:
    """Note what is wrong with the regions of the parallel generators of a loadout."""
    taken: dict[str, str] = {}
    for generator in _generators(facts):
        handoff = text_or(
            facts.sockets[generator].get("handoff"), text_or(facts.raw.get("handoff"), DEFAULT_HANDOFF)
        )
        if handoff != DEFAULT_HANDOFF and not facts.is_utility(generator):
            what = f"{generator!r} hands its items to streams, which the protocol {handoff!r} cannot say"
            advice = f'write "handoff": "{DEFAULT_HANDOFF}" here'
            findings.problem(INVALID_SOCKET, f"{generator}.handoff", what, advice)
        _check_way(findings, facts, generator)
        region = regions_of(facts).get(generator)
        if region is None:
            continue
        for socket in (generator, *region.sockets):
            other = taken.setdefault(socket, generator)
            if other != generator:
                what = f"{socket!r} is in the region of {other!r} and in that of {generator!r}, but regions lie apart"
                advice = "let each parallel generator lead into a loop of its own"
                findings.problem(INVALID_LOOP, f"loops.{region.loop}", what, advice)
                break
        _check_ways_round(findings, facts, region)
        _check_exit(findings, facts, region)
        _check_safe(findings, facts, region)


def _check_way(findings: Findings, facts: Facts, generator: str) -> None:
    """Check that one unconditional way leads from a generator to the one loop that consumes its items."""
    way, loops = _way(facts, generator), _consumers(facts, generator)
    if len(loops) != 1:
        found = f"{counted(len(loops), 'loop')} consume its items" if loops else "no loop consumes its items"
        what = f"{generator!r} hands its items to streams, but {found}"
        source = f"loops.{loops[1].id}.consumes.from" if loops else f"{generator}.edges"
        advice = f'let exactly one loop have "consumes": {{"from": "{generator}"}}'
        findings.problem(INVALID_LOOP, source, what, advice)
    elif way.member is None:
        what = f"the way from {generator!r} to loop {loops[0].id!r}, which consumes its items, ends at {way.stuck!r}"
        advice = (
            f"lead it on to {loops[0].members[0]!r}" if loops[0].members else "list the members of the loop"
        )
        findings.problem(INVALID_LOOP, f"{way.stuck}.edges", what, advice)
    elif way.member not in loops[0].members:
        what = f"the way from {generator!r} leads into another loop than {loops[0].id!r}, which consumes its items"
        advice = "let one way, without loops in between, lead to the loop that consumes the items"
        findings.problem(INVALID_LOOP, f"{way.stuck}.edges", what, advice)
    for socket in (generator, *way.prelude):
        for place, edge in facts.edges(socket):
            if edge.get("when") != "always" or place:
                what = f"edge {place + 1} of {socket!r} leads another way than the one unconditional one to the lanes of {generator!r}"
                advice = "leave one edge that is always taken, and let a member of the loop decide"
                fix = suggested_fix("Remove the edge", do("remove_edge", socket, place))
                findings.problem(INVALID_LOOP, f"{socket}.edges[{place}]", what, advice, fix)
    for socket in way.prelude:
        if facts.is_generator(socket):
            what = f"{socket!r} is in the prelude of {generator!r}, and would put items of its own in the place of the stream's"
            findings.problem(
                INVALID_LOOP, f"{socket}.materia", what, "place it before the parallel generator"
            )


def _check_ways_round(findings: Findings, facts: Facts, region: Region) -> None:
    """Check that a region is entered from its generator alone and left by the exits of its loop alone."""
    behind = dict(zip(region.prelude, (region.generator, *region.prelude), strict=False))
    last = (region.generator, *region.prelude)[-1]
    if facts.entry in region.sockets:
        what = f"a cast starts at {brief(facts.entry)}, inside the lanes of {region.generator!r}"
        findings.problem(INVALID_LOOP, "entry", what, f"start at {region.generator!r} or before it")
    outside = [
        (f"loops.{loop.id}", to) for loop in facts.loops if loop.id != region.loop for _, to in _exits(loop)
    ]
    for source, target in outside:
        if target in region.sockets:
            what = f"an exit leads to {target!r}, into the lanes of {region.generator!r} from outside"
            findings.problem(INVALID_LOOP, source, what, f"lead it to {region.generator!r}")
    for socket in facts.sockets:
        for place, edge in facts.edges(socket):
            to: JSON = edge.get("to")
            here = f"{socket}.edges[{place}]"
            if to in region.prelude:
                may = socket == behind[to]
            elif to in region.members:
                may = socket in region.members or socket == last
            else:
                may = socket not in region.members or to in (region.exit, END)
            if not may:
                findings.problem(INVALID_LOOP, here, *_round(region, socket, to))


def _round(region: Region, socket: str, to: JSON) -> tuple[str, str]:
    """Say what is wrong with an edge into the lanes, or out of them, and what to do."""
    if socket in region.sockets and to not in region.sockets:
        what = f"{socket!r} leads out of the lanes of {region.generator!r} to {brief(to)}, past the barrier"
        return what, f"leave by the exits of loop {region.loop!r}"
    what = f"this leads to {brief(to)} round the one way from {region.generator!r} into its lanes"
    return what, f"lead it to {region.generator!r}, or out of the lanes"


def _check_exit(findings: Findings, facts: Facts, region: Region) -> None:
    """Check that a region has one continuation."""
    loop = next(loop for loop in facts.loops if loop.id == region.loop)
    for source, to in _exits(loop):
        if to in region.sockets:
            what = f"this way out leads to {to!r}, which is in the lanes itself"
            findings.problem(INVALID_LOOP, source, what, "lead it to what comes behind the barrier")
        elif to != next(target for _, target in _exits(loop)):
            what = (
                f"the lanes of {region.generator!r} have one continuation, and this way out leads elsewhere"
            )
            advice = (
                "lead all ways out of the loop to one socket, which decides on what the lanes handed over"
            )
            findings.problem(INVALID_LOOP, source, what, advice)


def _check_safe(findings: Findings, facts: Facts, region: Region) -> None:
    """Check that every materia of the lanes may work beside others, and needs no drafts."""
    named = {str(facts.sockets[socket].get("materia")): socket for socket in region.sockets}
    for materia, socket in named.items():
        raw = facts.materia_of(socket)
        if not raw or not is_text(materia):
            continue
        lanes = f"works in the lanes of {region.generator!r} (loop {region.loop!r})"
        if raw.get("parallelSafe") is not True:
            what = f"materia {materia!r} {lanes} and does not say that it may"
            advice = 'write "parallelSafe": true if it disturbs nobody who works beside it'
            findings.problem(INVALID_MATERIA, f"materia.{materia}.parallelSafe", what, advice)
        if raw.get("multiTurn") is True:
            what = f"materia {materia!r} {lanes}, where drafts are not refined"
            findings.problem(INVALID_MATERIA, f"materia.{materia}.multiTurn", what, "remove multiTurn")
