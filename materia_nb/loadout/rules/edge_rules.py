"""Rules about ways through the graph and through loops (R3, R11, R14-R18).

Edges and routes that are never taken, rounds without an end, items skipped, retries that come too late, states that grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from materia_nb.jsonvalue import JSON, split_path
from materia_nb.loadout.facts import (
    Facts,
    LoopFacts,
    as_list,
    as_object,
    combined_condition,
    is_condition,
    is_text,
)
from materia_nb.loadout.graph import END
from materia_nb.loadout.regions import reachable_from, rounds_in, turned
from materia_nb.loadout.report import Fix, FixStep, Hint, HintRule, do, rule, safe_fix, suggested_fix
from materia_nb.loadout.vocabulary import (
    DEFAULT_HANDOFF,
    SENDING_BACK,
    Condition,
    covered,
    described,
    must_judge,
    unmet,
)

EDGE_RULES: Final[list[HintRule]] = []


def read_as_json(facts: Facts, id_: str) -> Fix:
    """Let what answers in a socket answer with JSON, so that it can say satisfied."""
    if facts.is_utility(id_):  # its program has to write JSON, wherever it is placed
        materia = str(facts.sockets[id_].get("materia"))
        return suggested_fix(
            f"Read the output of {materia} as JSON", do("set_materia", materia, "parse", "json")
        )
    return safe_fix(f"Read the output of {id_} as JSON", do("set_socket", id_, "parse", "json"))


def advance_when(facts: Facts, id_: str, when: str) -> FixStep:
    """Let a socket move on with the next item for one result, whatever else its advance says."""
    written = facts.sockets[id_].get("advance")
    return do("set_socket", id_, "advance", {**(written if isinstance(written, dict) else {}), "when": when})


@rule(EDGE_RULES, "loop", "legacy-exit")
def _legacy_exit(_facts: Facts, loop: LoopFacts) -> Iterator[Hint]:
    """The older `exit`."""
    if loop.legacy is not None:
        why = "" if loop.consumes is not None else "; without consumes it derives no advance"
        yield Hint(f"loops.{loop.id}.exit", f"exit is the older form of exits{why}", "write exits instead")


@rule(EDGE_RULES, "loop", "duplicate-member")
def _duplicate_member(_facts: Facts, loop: LoopFacts) -> Iterator[Hint]:
    """A loop that lists a socket twice."""
    listed: set[str] = set()
    for place, member in enumerate(as_list(loop.raw.get("sockets"))):
        if isinstance(member, str) and member in listed:
            fix = safe_fix("List it once", do("set_members", loop.id, loop.members))
            where = f"loops.{loop.id}.sockets[{place}]"
            yield Hint(where, f"{member!r} is listed twice", "list it once", fix)
        elif isinstance(member, str):
            listed.add(member)


@rule(EDGE_RULES, "loop", "two-lists")
def _two_lists(_facts: Facts, loop: LoopFacts) -> Iterator[Hint]:
    """A loop with both `iterator` and `consumes`."""
    if loop.iterator is not None and loop.consumes is not None:
        why = "iterator and consumes both name a list; iterator decides"
        yield Hint(f"loops.{loop.id}.iterator", why, "keep one of them")


@rule(EDGE_RULES, "loop", "cursor-for-each")
def _cursor_for_each(_facts: Facts, loop: LoopFacts) -> Iterator[Hint]:
    """An iterator without a cursor over several members: each counts for itself."""
    if loop.iterator is not None and loop.iterator.get("cursor") is None and len(loop.members) > 1:
        cursor = f"{loop.id}Index"
        yield Hint(
            f"loops.{loop.id}.iterator",
            "without a cursor each member counts for itself, under <socket id>Index",
            f'write "cursor": "{cursor}"',
            safe_fix(
                f"One cursor for all: {cursor}",
                do("set_source", loop.id, "iterator", cursor=cursor),
                words=f"the members of loop {loop.id} share the cursor {cursor}",
            ),
        )


@rule(EDGE_RULES, "loop", "never-advances")
def _never_advances(facts: Facts, loop: LoopFacts) -> Iterator[Hint]:
    """A loop of which no member moves on."""
    exits = loop.raw.get("exits") or loop.raw.get("exit")
    if loop.iterates and not _advancing(facts, loop) and not (exits and loop.consumes is not None):
        what = "no member moves on to the next item, so the first item is worked on again and again"
        advice = "add exits (they derive an advance), or an advance on the last member"
        yield Hint(f"loops.{loop.id}", what, advice, _move_on(facts, loop))


def _move_on(facts: Facts, loop: LoopFacts) -> Fix | None:
    """Let the member move on that leads back to where a round begins."""
    members = [member for member in loop.members if member in facts.sockets]
    if not members:
        return None
    last = ([one for one in members if loop.members[0] in facts.targets(one)] or members)[-1]
    when = "always" if facts.gives_text(last) else "satisfied"
    return suggested_fix(f"{last} moves on when {when}", advance_when(facts, last, when))


@rule(EDGE_RULES, "loop", "leaves-loop")
def _leaves_loop(facts: Facts, loop: LoopFacts) -> Iterator[Hint]:
    """An edge that leaves a loop from its exit socket: items left over are skipped."""
    for id_ in _advancing(facts, loop):
        for place, edge in facts.edges(id_):
            to = edge.get("to")
            if isinstance(to, str) and to not in loop.members and (to == END or to in facts.ids):
                yield Hint(
                    f"{id_}.edges[{place}]",
                    f"this edge leaves loop {loop.id!r} from its exit socket: items that are left over are skipped silently",
                    "leave by an exit route, or lead the edge to a member",
                    suggested_fix(f"Make it an exit of {loop.id}", do("edge_to_exit", id_, place, loop.id)),
                )


@rule(EDGE_RULES, "loop", "late-retry")
def _late_retry(facts: Facts, loop: LoopFacts) -> Iterator[Hint]:
    """A retry that works on the next item, because the cursor has moved."""
    for id_, when in _advancing(facts, loop).items():
        for place, edge in facts.edges(id_):
            if when == "always" and edge.get("to") in loop.members and edge.get("when") in SENDING_BACK:
                yield Hint(
                    f"{id_}.edges[{place}]",
                    f"loop {loop.id!r} moves on from {id_!r} whatever the result, so this retry works on the next item",
                    'let its exit routes wait for satisfied, or write an advance with "when": "satisfied"',
                    safe_fix("Move on when satisfied", advance_when(facts, id_, "satisfied")),
                )


@rule(EDGE_RULES, "loop", "budget-on-advance")
def _budget_on_advance(facts: Facts, loop: LoopFacts) -> Iterator[Hint]:
    """A `maxTraversals` that going on to the next item uses up as well."""
    for id_, when in _advancing(facts, loop).items():
        for place, edge in facts.edges(id_):
            if "maxTraversals" in edge and _meet(edge.get("when"), when):
                what = "this edge is also taken when the item is done, which counts against the item's budget"
                advice = "put the budget on an edge of its own that only a retry takes"
                yield Hint(f"{id_}.edges[{place}].maxTraversals", what, advice)


@rule(EDGE_RULES, "loop", "idle-route")
def _idle_route(facts: Facts, loop: LoopFacts) -> Iterator[Hint]:
    """An exit that is never taken."""
    moving = _advancing(facts, loop)
    for place, route in loop.exits() if loop.iterates else ():
        source, condition = route.get("from"), route.get("condition")
        if not is_condition(condition):
            continue
        when = moving.get(source) if isinstance(source, str) else None
        if when is None and source in loop.members:
            others = " or ".join(moving)
            why = f"{source!r} never exhausts the list, so this route is taken at most when the list is empty"
            advice = f"let it start from {others}" if others else f"let {source!r} advance"
        elif when is not None and not _meet(condition, when):
            why = f"{source!r} moves on only when it is {when}, so a route for {condition} is never taken"
            advice = f"wait for {when} or always"
        else:
            continue
        # One for always is still taken when the list is empty.
        remove = (
            safe_fix("Remove the exit", do("remove_exit", loop.id, place)) if condition != "always" else None
        )
        yield Hint(f"loops.{loop.id}.exits[{place}]", why, advice, remove)


@rule(EDGE_RULES, "loop", "one-item")
def _one_item(facts: Facts, loop: LoopFacts) -> Iterator[Hint]:
    """A member that moves on and has no edge for it: with items left, the cast ends."""
    first = next(iter(loop.members), None)
    for id_, when in _advancing(facts, loop).items():
        edges = [edge.get("when") for _, edge in facts.edges(id_)]
        # Moving on always, any edge may lead on.
        if any(_meet(condition, when) for condition in edges) or (edges and when == "always"):
            continue
        moves = "and has no edge" if when == "always" else f"when it is {when} and has no edge for that"
        what = f"{id_!r} moves on {moves}: with items left, the cast ends"
        advice = f"add an edge for {when} to the member that begins the next item"
        fix = suggested_fix(f"{when} → {first}", do("add_edge", id_, first, when)) if first else None
        yield Hint(f"{id_}.edges", what, advice, fix)


@rule(EDGE_RULES, "loop", "exhausted-unmatched")
def _exhausted_unmatched(facts: Facts, loop: LoopFacts) -> Iterator[Hint]:
    """A member that may end the last item with a result that no exit waits for (R16)."""
    missing = {id_: _unmatched(facts, id_, when) for id_, when in _advancing(facts, loop).items()}
    results = [(id_, when) for id_, conditions in missing.items() for when in conditions]
    words = " and ".join(f"{id_} {when}" for id_, when in results)
    ends = [do("add_exit", loop.id, id_, when, END) for id_, when in results]
    for id_, conditions in missing.items():
        if conditions:
            yield Hint(
                f"loops.{loop.id}.exits",
                f"{id_!r} may end the last item when it is {' or '.join(conditions)}, and no exit from it waits for that: "
                "the cast ends as complete",
                f"give {id_!r} an exit for {' and '.join(conditions)}, or for always",
                suggested_fix(
                    f"{words} → end", *ends, words=f"loop {loop.id} ends after the last item when {words}"
                ),
            )


@rule(EDGE_RULES, "loop", "empty-list-ends")
def _empty_list_ends(facts: Facts, loop: LoopFacts) -> Iterator[Hint]:
    """A loop that an empty list leaves by the end of the cast, though its exits lead on (R16)."""
    ways = [(way.get("from"), way.get("condition"), way.get("targetSocketId")) for _, way in loop.exits()]
    legacy = loop.legacy
    if legacy and legacy.get("to") != END:
        ways.append((legacy.get("from"), legacy.get("when"), legacy.get("to")))
    behind = [str(to) for _, _, to in ways if is_text(to) and to != END]
    if not loop.iterates or not behind or any(condition == "always" for _, condition, _ in ways):
        return
    source = ways[0][0]
    when = _advancing(facts, loop).get(str(source), "satisfied")
    what = (
        f"with an empty list the cast ends as complete, and {' and '.join(dict.fromkeys(behind))} never runs"
    )
    advice = f'write "advance": {{"when": "{when}"}} at {source!r} and give it an exit for always too'
    yield Hint(f"loops.{loop.id}.exits", what, advice, _when_empty_too(facts, loop))


def _when_empty_too(facts: Facts, loop: LoopFacts) -> Fix | None:
    """Lead on by the same exit when the list is empty, and move on for the same result as before."""
    routes = [route for _, route in loop.exits()]
    if not routes or loop.legacy is not None:
        return None
    first = routes[0]
    source, when, to = first.get("from"), first.get("condition"), first.get("targetSocketId")
    if not isinstance(source, str) or source not in facts.sockets or not is_condition(when):
        return None
    if as_object(facts.sockets[source].get("advance")).get("when", when) != when:
        return None
    steps = (advance_when(facts, source, when), do("add_exit", loop.id, source, "always", to))
    words = f"loop {loop.id} leads to {to} when its list is empty too"
    make = suggested_fix if len(routes) > 1 else safe_fix
    return make(f"always → {to} too", *steps, words=words)


@rule(EDGE_RULES, "loadout", "lone-guard")
def _lone_guard(facts: Facts) -> Iterator[Hint]:
    """A socket whose edges wait for one of the two results: the other ends the cast (R3)."""
    moved: dict[str, set[Condition]] = {}
    for loop in facts.loops:
        for id_, result in _advancing(facts, loop).items():
            moved.setdefault(id_, set()).add(result)
    for id_ in facts.sockets:
        missing = unmet({when for _, edge in facts.edges(id_) if is_condition(when := edge.get("when"))})
        if not facts.targets(id_) or len(missing) != 1:
            continue  # it ends either way, or never
        if not facts.gives_text(id_) and missing[0] not in moved.get(id_, set()):
            yield Hint(
                f"{id_}.edges",
                f"when {id_!r} is {missing[0]}, none of its edges matches, and the cast ends as complete",
                f'add an edge for {missing[0]}, to "end" if that is meant',
                safe_fix(f"{missing[0]} → end", do("add_edge", id_, END, missing[0])),
            )


def _advancing(facts: Facts, loop: LoopFacts) -> dict[str, Condition]:
    """Return the members that move the loop's cursor, as written or as its exits derive it (R15)."""
    if not loop.iterates:
        return {}
    conditions_of: dict[str, Condition] = {}
    for member in loop.members:
        if facts.advance_cursor(member) == loop.cursor(member) and facts.foreach(member) is None:
            when = as_object(facts.sockets[member].get("advance")).get("when", "always")
            if is_condition(when):
                conditions_of[member] = when
    legacy = loop.legacy or {}
    source, when = legacy.get("from"), legacy.get("when")
    if loop.consumes is not None and isinstance(source, str) and is_condition(when):
        conditions_of.setdefault(source, when)
    if conditions_of or loop.consumes is None:
        return conditions_of
    conditions: dict[str, list[Condition]] = {}
    for _, route in loop.exits():
        source, condition = route.get("from"), route.get("condition")
        if isinstance(source, str) and is_condition(condition):
            conditions.setdefault(source, []).append(condition)
    return {id_: combined_condition(all_) for id_, all_ in conditions.items()}


def _meet(edge: JSON, advance: Condition) -> bool:
    """Whether an edge may be taken when an advance moves."""
    return is_condition(edge) and described(edge).meets(described(advance))


def _unmatched(facts: Facts, id_: str, when: Condition) -> list[Condition]:
    """Return the results with which a member that moves on when it is ``when`` ends its list and no exit waits (R16)."""
    loops = facts.loops_of.get(id_, ())
    if not any(one.raw.get("exits") for one in loops) or any(one.legacy is not None for one in loops):
        return []
    exits = [route.get("condition") for one in loops for _, route in one.exits() if route.get("from") == id_]
    waited_for = {condition for condition in exits if is_condition(condition)}
    if waited_for and facts.gives_text(id_):
        return []
    return [result for result in unmet(waited_for) if _meet(result, when)]


StatePath: TypeAlias = tuple[str, ...]
_NAMED: Final = 8
_MOST_COPIES: Final = 100
"""In a round with more assignments than that, whether the state grows is not worked out: it takes their square."""


def ways_on(facts: Facts) -> dict[str, set[str]]:
    """Return the sockets that each socket leads to, by its edges and by the exits of its loops."""
    ways = {id_: set(facts.targets(id_)) for id_ in facts.sockets}
    for loop in facts.loops:
        targets = [*(route.get("targetSocketId") for _, route in loop.exits()), (loop.legacy or {}).get("to")]
        for member in loop.members:
            if member in ways:
                ways[member] |= {to for to in targets if isinstance(to, str) and to in facts.sockets}
    return ways


def visited(facts: Facts, ways: Mapping[str, set[str]]) -> set[str]:
    """Return the sockets that a cast may come to; empty when there is no entry to start from."""
    entry = facts.entry
    if not isinstance(entry, str) or entry not in facts.sockets:
        return set()
    return reachable_from([entry], ways)


# -- edges that are never taken -----------------------------------------------------------


@rule(EDGE_RULES, "socket", "never-taken")
def _never_taken(facts: Facts, id_: str) -> Iterator[Hint]:
    """An edge behind others that wait for the same."""
    if facts.gives_text(id_):
        return  # its guards are told as guards on a text
    seen: dict[Condition, int] = {}
    for place, edge in facts.edges(id_):
        when = edge.get("when")
        if not is_condition(when):
            continue
        here, remove = f"{id_}.edges[{place}]", safe_fix("Remove it", do("remove_edge", id_, place))
        if when in seen and when != "always":
            what = (
                f"edge {place + 1} waits for {when} as edge {seen[when] + 1} does, which is looked at first"
            )
            yield Hint(here, what, "remove it, or let one of them wait for something else", remove)
        elif when == "always" and not unmet(seen.keys() - {"always"}) and _must_say(facts, id_):
            what = f"the output of {id_!r} must say satisfied, true or false, and the edges before this one wait for both"
            yield Hint(here, what, "remove it, or one of the two before it", remove)
        seen.setdefault(when, place)


def _must_say(facts: Facts, id_: str) -> bool:
    """Whether an output without a verdict is refused (R7); other protocols have verdicts that are neither."""
    spoken = facts.sockets[id_].get("handoff") or facts.raw.get("handoff") or DEFAULT_HANDOFF
    return not facts.is_utility(id_) and must_judge(spoken)


# -- rounds without an end ----------------------------------------------------------------


@rule(EDGE_RULES, "loadout", "no-way-out")
def _no_way_out(facts: Facts) -> Iterator[Hint]:
    """A round of sockets from which no way leads to the end."""
    ways = ways_on(facts)
    rounds, back = rounds_in(ways), turned(ways)
    ending = reachable_from([id_ for id_ in facts.sockets if _may_end(facts, id_)], back)
    stuck = visited(facts, ways) - ending
    lost = [id_ for id_ in facts.sockets if id_ in rounds and id_ in stuck]
    if lost:
        names = ", ".join(map(repr, lost[:_NAMED])) + (", …" if len(lost) > _NAMED else "")
        what = f"from {names} no way leads to the end, so a cast that comes there goes round until an edge is used up, and fails"
        advice = 'let one of the edges wait for satisfied, and give that socket an edge to "end" or onwards'
        yield Hint(f"{lost[0]}.edges", what, advice)


def _may_end(facts: Facts, id_: str) -> bool:
    """Whether a cast can come to its end at a socket; a list may be empty, so a member of a loop over items can."""
    if facts.iterating_loop(id_) is not None or facts.foreach(id_) is not None:
        return True
    edges = [edge for _, edge in facts.edges(id_) if is_condition(edge.get("when"))]
    if any(edge.get("to") == END for edge in edges):
        return True
    conditions = [when for edge in edges if is_condition(when := edge.get("when"))]
    return not covered(conditions, text=facts.gives_text(id_))


# -- states that grow ---------------------------------------------------------------------


@rule(EDGE_RULES, "loadout", "state-doubles")
def _state_doubles(facts: Facts) -> Iterator[Hint]:
    """Assignments that put a part of the state into itself, where a cast comes back to them (R11)."""
    rounds = rounds_in(ways_on(facts))
    assigned = list(_assigned(facts))
    together: dict[int, set[tuple[StatePath, StatePath]]] = {}
    for id_, target, source, _ in assigned:
        if id_ in rounds:
            together.setdefault(rounds[id_], set()).add((target, source))
    noted: set[str] = set()
    for id_, target, source, where in assigned:
        if id_ not in rounds or where in noted:
            continue
        copies = together[rounds[id_]]
        if len(copies) <= _MOST_COPIES and _comes_back(target, source, copies):
            noted.add(where)
            name = ".".join(("state", *source))
            itself = target[: len(source)] == source
            what = "is put into itself" if itself else "comes back into itself by way of other assignments"
            yield Hint(
                where,
                f"{name} {what}, so the state doubles each time that a cast comes back here",
                "assign the part that is needed, such as state.plan",
            )


def _assigned(facts: Facts) -> Iterator[tuple[str, StatePath, StatePath, str]]:
    """Yield what assignments copy within the state: at which socket, to and from which path, and where it is written."""
    for id_ in facts.sockets:
        for here, target, source in facts.assignments(id_):
            if isinstance(source, str) and (source == "state" or source.startswith("state.")):
                yield id_, tuple(split_path(target)), tuple(split_path(source)[1:]), here


def _comes_back(target: StatePath, source: StatePath, copies: set[tuple[StatePath, StatePath]]) -> bool:
    """Whether what is put to ``target`` is deeper inside what it comes from than it was, some rounds later."""
    holders = {target}  # paths that hold what was copied, wherever that was copied on
    while True:
        more = {to for to, of in copies for held in holders if _within(held, of) and to not in holders}
        if any(_within(held, source) and held != source for held in holders):
            return True
        if not more:
            return False
        holders |= more


def _within(inner: StatePath, outer: StatePath) -> bool:
    return inner[: len(outer)] == outer
