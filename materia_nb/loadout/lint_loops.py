"""Hints about loop regions: items skipped, routes never taken, retries that come too late (R14-R18)."""

from __future__ import annotations

from materia_nb.jsonvalue import JSON
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
from materia_nb.loadout.report import Findings
from materia_nb.loadout.vocabulary import SENDING_BACK, Condition, described, unmet


def hint_loops(findings: Findings, facts: Facts) -> None:
    """Hint on the loops of a loadout, and on edges that leave a verdict without an answer."""
    moved: dict[str, set[Condition]] = {}
    for loop in facts.loops:
        _hint_shape(findings, loop)
        if not loop.iterates:
            continue
        moving = advancing(facts, loop)
        for id_, how in moving.items():
            moved.setdefault(id_, set()).add(how)
        ways_out = loop.raw.get("exits") or loop.raw.get("exit")
        if not moving and not (ways_out and loop.consumes is not None):
            findings.hint(
                "never-advances",
                f"loops.{loop.id}",
                "no member moves on to the next item, so the first item is worked on again and again",
                "add exits (they derive an advance), or an advance on the last member",
            )
        for id_, how in moving.items():
            _hint_advancing(findings, facts, loop, id_, how)
        _hint_routes(findings, loop, moving)
        for id_, how in moving.items():
            _hint_next_item(findings, facts, id_, how)
            _hint_exhausted(findings, facts, loop, id_, how)
        _hint_empty(findings, loop, moving)
    for id_ in facts.sockets:
        _hint_lone_guard(findings, facts, id_, moved.get(id_, set()))


def _hint_shape(findings: Findings, loop: LoopFacts) -> None:
    here = f"loops.{loop.id}"
    if loop.legacy is not None:
        why = "" if loop.consumes is not None else "; without consumes it derives no advance"
        findings.hint(
            "legacy-exit", f"{here}.exit", f"exit is the older form of exits{why}", "write exits instead"
        )
    listed: set[str] = set()
    for place, member in enumerate(as_list(loop.raw.get("sockets"))):
        if not isinstance(member, str):
            continue
        if member in listed:
            findings.hint(
                "duplicate-member", f"{here}.sockets[{place}]", f"{member!r} is listed twice", "list it once"
            )
        listed.add(member)
    if loop.iterator is None:
        return
    if loop.consumes is not None:
        findings.hint(
            "two-lists",
            f"{here}.iterator",
            "iterator and consumes both name a list; iterator decides",
            "keep one of them",
        )
    if loop.iterator.get("cursor") is None and len(loop.members) > 1:
        findings.hint(
            "cursor-for-each",
            f"{here}.iterator",
            "without a cursor each member counts for itself, under <socket id>Index",
            f'write "cursor": "{loop.id}Index"',
        )


def advancing(facts: Facts, loop: LoopFacts) -> dict[str, Condition]:
    """Return the members that move the loop's cursor, as written or as its exits derive it (R15)."""
    found: dict[str, Condition] = {}
    for member in loop.members:
        if facts.advance_cursor(member) == loop.cursor(member) and facts.foreach(member) is None:
            when = as_object(facts.sockets[member].get("advance")).get("when", "always")
            if is_condition(when):
                found[member] = when
    legacy = loop.legacy or {}
    source, when = legacy.get("from"), legacy.get("when")
    if loop.consumes is not None and isinstance(source, str) and is_condition(when):
        found.setdefault(source, when)
    if found or loop.consumes is None:
        return found
    conditions: dict[str, list[Condition]] = {}
    for _, route in loop.exits():
        source, condition = route.get("from"), route.get("condition")
        if isinstance(source, str) and is_condition(condition):
            conditions.setdefault(source, []).append(condition)
    return {id_: combined_condition(all_) for id_, all_ in conditions.items()}


def _hint_advancing(findings: Findings, facts: Facts, loop: LoopFacts, id_: str, how: Condition) -> None:
    for place, edge in facts.edges(id_):
        here, when, to = f"{id_}.edges[{place}]", edge.get("when"), edge.get("to")
        inside = to in loop.members
        if isinstance(to, str) and not inside and (to == END or to in facts.ids):
            findings.hint(
                "leaves-loop",
                here,
                f"this edge leaves loop {loop.id!r} from its exit socket: items that are left over are skipped silently",
                "leave by an exit route, or lead the edge to a member",
            )
        if inside and when in SENDING_BACK and how == "always":
            findings.hint(
                "late-retry",
                here,
                f"loop {loop.id!r} moves on from {id_!r} whatever the result, so this retry works on the next item",
                'let its exit routes wait for satisfied, or write an advance with "when": "satisfied"',
            )
        if "maxTraversals" in edge and _meet(when, how):
            findings.hint(
                "budget-on-advance",
                f"{here}.maxTraversals",
                "this edge is also taken when the item is done, which counts against the item's budget",
                "put the budget on an edge of its own that only a retry takes",
            )


def _meet(edge: JSON, advance: Condition) -> bool:
    """Whether an edge may be taken when an advance moves."""
    return advance == "always" or (is_condition(edge) and described(edge).meets(described(advance)))


def _hint_next_item(findings: Findings, facts: Facts, id_: str, how: Condition) -> None:
    """Hint at a member that moves on and then has no edge for the items that are left (R3, R14)."""
    if how == "always":
        return  # any edge may lead on; none at all is told with the cycle
    if not any(_meet(edge.get("when"), how) for _, edge in facts.edges(id_)):
        findings.hint(
            "one-item",
            f"{id_}.edges",
            f"{id_!r} moves on when it is {how} and has no edge for that: with items left, the cast ends",
            f"add an edge for {how} to the member that begins the next item",
        )


def _hint_empty(findings: Findings, loop: LoopFacts, advancing: dict[str, Condition]) -> None:
    """Hint at a loop that an empty list leaves by the end of the cast, though its exits lead on (R16)."""
    ways = [(way.get("from"), way.get("condition"), way.get("targetSocketId")) for _, way in loop.exits()]
    legacy = loop.legacy
    if legacy and legacy.get("to") != END:
        ways.append((legacy.get("from"), legacy.get("when"), legacy.get("to")))
    behind = [str(to) for _, _, to in ways if is_text(to) and to != END]
    if not behind or any(condition == "always" for _, condition, _ in ways):
        return
    source = ways[0][0]
    how = advancing.get(str(source), "satisfied")
    findings.hint(
        "empty-list-ends",
        f"loops.{loop.id}.exits",
        f"with an empty list the cast ends as complete, and {' and '.join(dict.fromkeys(behind))} never runs",
        f'write "advance": {{"when": "{how}"}} at {source!r} and give it an exit for always too',
    )


def _hint_exhausted(findings: Findings, facts: Facts, loop: LoopFacts, id_: str, how: Condition) -> None:
    """Hint at a member that may exhaust the list with a result that no exit from it waits for (R16)."""
    if missing := unmatched(facts, id_, how):
        findings.hint(
            "exhausted-unmatched",
            f"loops.{loop.id}.exits",
            f"{id_!r} may end the last item when it is {' or '.join(missing)}, and no exit from it waits for that: "
            "the cast ends as complete",
            f"give {id_!r} an exit for {' and '.join(missing)}, or for always",
        )


def unmatched(facts: Facts, id_: str, how: Condition) -> list[Condition]:
    """Return the results with which a member that moves on when it is ``how`` ends its list and no exit waits (R16)."""
    loops = facts.loops_of.get(id_, ())
    if not any(one.raw.get("exits") for one in loops) or any(one.legacy is not None for one in loops):
        return []
    found = {
        condition
        for one in loops
        for _, route in one.exits()
        if route.get("from") == id_ and is_condition(condition := route.get("condition"))
    }
    if found and facts.gives_text(id_):
        return []
    return [when for when in unmet(found) if _meet(when, how)]


def _hint_lone_guard(findings: Findings, facts: Facts, id_: str, moved: set[Condition]) -> None:
    """Hint at a socket whose edges wait for one of the two results only, so that the other ends the cast (R3)."""
    found = {when for _, edge in facts.edges(id_) if is_condition(when := edge.get("when"))}
    missing = unmet(found)
    if not facts.targets(id_):
        return  # it ends either way
    if len(missing) != 1 or facts.gives_text(id_) or missing[0] in moved:
        return
    findings.hint(
        "lone-guard",
        f"{id_}.edges",
        f"when {id_!r} is {missing[0]}, none of its edges matches, and the cast ends as complete",
        f'add an edge for {missing[0]}, to "end" if that is meant',
    )


def _hint_routes(findings: Findings, loop: LoopFacts, advancing: dict[str, Condition]) -> None:
    for place, route in loop.exits():
        source, condition = route.get("from"), route.get("condition")
        here = f"loops.{loop.id}.exits[{place}]"
        if not is_condition(condition):
            continue
        how = advancing.get(source) if isinstance(source, str) else None
        if how is None and source in loop.members:
            others = " or ".join(advancing)
            findings.hint(
                "idle-route",
                here,
                f"{source!r} never exhausts the list, so this route is taken at most when the list is empty",
                f"let it start from {others}" if others else f"let {source!r} advance",
            )
        elif how is not None and not _meet(condition, how):
            findings.hint(
                "idle-route",
                here,
                f"{source!r} moves on only when it is {how}, so a route for {condition} is never taken",
                f"wait for {how} or always",
            )
