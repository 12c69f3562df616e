"""Rules about ways through the graph: edges that are never taken, rounds without an end, states that grow (R3, R11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from materia_nb.jsonvalue import split_path
from materia_nb.loadout.facts import Facts, is_condition
from materia_nb.loadout.graph import END
from materia_nb.loadout.report import do, mend
from materia_nb.loadout.rules.rows import Finding, HintRule, rule
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, Condition, covered, must_judge, unmet
from materia_nb.loadout.ways import reachable_from, rounds_in, turned

RULES: Final[list[HintRule]] = []
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


@rule(RULES, "socket", "never-taken")
def _never_taken(facts: Facts, id_: str) -> Iterator[Finding]:
    """An edge behind others that wait for the same."""
    if facts.gives_text(id_):
        return  # its guards are told as guards on a text
    seen: dict[Condition, int] = {}
    for place, edge in facts.edges(id_):
        when = edge.get("when")
        if not is_condition(when):
            continue
        here, remove = f"{id_}.edges[{place}]", mend("Remove it", do("remove_edge", id_, place))
        if when in seen and when != "always":
            what = (
                f"edge {place + 1} waits for {when} as edge {seen[when] + 1} does, which is looked at first"
            )
            yield Finding(here, what, "remove it, or let one of them wait for something else", remove)
        elif when == "always" and not unmet(seen.keys() - {"always"}) and _must_say(facts, id_):
            what = f"the output of {id_!r} must say satisfied, true or false, and the edges before this one wait for both"
            yield Finding(here, what, "remove it, or one of the two before it", remove)
        seen.setdefault(when, place)


def _must_say(facts: Facts, id_: str) -> bool:
    """Whether an output without a verdict is refused (R7); other protocols have verdicts that are neither."""
    spoken = facts.sockets[id_].get("handoff") or facts.raw.get("handoff") or DEFAULT_HANDOFF
    return not facts.is_utility(id_) and must_judge(spoken)


# -- rounds without an end ----------------------------------------------------------------


@rule(RULES, "loadout", "no-way-out")
def _no_way_out(facts: Facts) -> Iterator[Finding]:
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
        yield Finding(f"{lost[0]}.edges", what, advice)


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


@rule(RULES, "loadout", "state-doubles")
def _state_doubles(facts: Facts) -> Iterator[Finding]:
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
            yield Finding(
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
