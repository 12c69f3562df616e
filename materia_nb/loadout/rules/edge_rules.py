"""Rules about edges, loop exits and loops (R3, R11, R14-R18).

The rules find edges and exits that are never taken, endless cycles, items that are skipped, and retries that run for the
wrong item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from materia_nb.errors import join_with_or
from materia_nb.jsonvalue import is_text
from materia_nb.loadout.graph import END
from materia_nb.loadout.items import advances_of, probable_advance
from materia_nb.loadout.report import Fix, FixStep, Hint, HintRule, do, rule, safe_fix, suggested_fix
from materia_nb.loadout.topology import LoadoutFacts, LoopFacts, SocketFacts, cycles_in, reachable_from, reversed_edges
from materia_nb.loadout.vocabulary import (
    GUARDS,
    REWORK_CONDITIONS,
    VERDICTS,
    Condition,
    Result,
    condition_spec,
    match_every_output,
    requires_verdict,
    unmatched_verdicts,
)

EDGE_RULES: Final[list[HintRule]] = []


def read_as_json(socket: SocketFacts) -> Fix:
    """Return a fix that parses the output of a socket as JSON, so that the output can contain ``satisfied``."""
    if socket.is_utility:  # its program has to write JSON in every socket that places it
        materia = socket.materia.id
        step = do("set_materia", materia, "parse", "json")
        return suggested_fix(f"Read the output of {materia} as JSON", step)
    step = do("set_socket", socket.id, "parse", "json")
    return safe_fix(f"Read the output of {socket.id} as JSON", step)


def set_advance_condition(socket: SocketFacts, when: str) -> FixStep:
    """Return a fix step that sets the condition of a socket's advance and keeps its other fields."""
    return do("set_socket", socket.id, "advance", {**(socket.advance or {}), "when": when})


@rule(EDGE_RULES, "loop", "legacy-exit")
def _legacy_exit(_facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """A loop with the older field `exit`."""
    if loop.legacy is not None:
        reason = "" if loop.consumes is not None else ", and does not set an advance, since the loop has no `consumes`"
        message = f"the field `exit` is the older form of `exits`{reason}"
        yield Hint(f"loops.{loop.id}.exit", message, "use `exits` instead")


@rule(EDGE_RULES, "loop", "two-lists")
def _two_lists(_facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """A loop with both `iterator` and `consumes`."""
    if loop.iterator is not None and loop.consumes is not None:
        reason = "the loop has both `iterator` and `consumes`, and only `iterator` has an effect"
        yield Hint(f"loops.{loop.id}.iterator", reason, "remove either `iterator` or `consumes`")


@rule(EDGE_RULES, "loop", "cursor-for-each")
def _cursor_per_member(_facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """A loop with several members whose iterator does not name a cursor, so each member gets its own cursor."""
    if loop.iterator is not None and loop.iterator.get("cursor") is None and len(loop.members) > 1:
        cursor = f"{loop.id}Index"
        message = "the iterator does not set `cursor`, so each member has a separate cursor, `<socket id>Index`"
        fix = safe_fix(f"Share the cursor {cursor}", do("set_source", loop.id, "iterator", cursor=cursor))
        yield Hint(f"loops.{loop.id}.iterator", message, f'write "cursor": "{cursor}"', fix)


@rule(EDGE_RULES, "loop", "never-advances")
def _never_advances(facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """A loop in which no member advances to the next item."""
    exits = loop.raw.get("exits") or loop.raw.get("exit")
    if loop.iterates and not advances_of(facts, loop) and not (exits and loop.consumes is not None):
        message = "no member advances to the next item, so the loop repeats the first item"
        advice = "add exits, which also set an advance, or add an advance to the last member"
        fixes = (
            suggested_fix(f"Advance {id_} when {when}", set_advance_condition(facts.sockets[id_], when))
            for id_, when in probable_advance(facts, loop).items()
        )
        yield Hint(f"loops.{loop.id}", message, advice, next(fixes, None))


@rule(EDGE_RULES, "loop", "leaves-loop")
def _leaves_loop(facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """An edge that leads out of a loop from the socket that advances, so the remaining items are skipped."""
    for id_ in advances_of(facts, loop):
        for edge in facts.sockets[id_].edges:
            if edge.to is not None and edge.to not in loop.members and (edge.to == END or edge.to in facts.ids):
                message = (
                    f"the edge leaves loop {loop.id!r} from its exit socket and silently skips the remaining items"
                )
                advice = "turn the edge into an exit of the loop, or set the `to` of the edge to a member"
                step = do("edge_to_exit", id_, edge.index, loop.id)
                fix = suggested_fix(f"Turn the edge into an exit of {loop.id}", step)
                yield Hint(f"{id_}.edges[{edge.index}]", message, advice, fix)


@rule(EDGE_RULES, "loop", "late-retry")
def _late_retry(facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """A retry that runs for the next item, because the cursor has already advanced."""
    for id_, when in advances_of(facts, loop).items():
        for edge in facts.sockets[id_].edges if when == "always" else ():
            if edge.to in loop.members and edge.when in REWORK_CONDITIONS:
                message = f"{id_!r} advances loop {loop.id!r} after every result, so this retry runs for the next item"
                advice = 'change the condition of its exits to satisfied, or write "advance": {"when": "satisfied"}'
                fix = safe_fix("Advance when satisfied", set_advance_condition(facts.sockets[id_], "satisfied"))
                yield Hint(f"{id_}.edges[{edge.index}]", message, advice, fix)


@rule(EDGE_RULES, "loop", "budget-on-advance")
def _retry_limit_on_advance(facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """An edge with `maxTraversals` that is also taken after the loop has advanced to the next item."""
    for id_, when in advances_of(facts, loop).items():
        for edge in facts.sockets[id_].edges:
            if "maxTraversals" in edge.raw and conditions_overlap(edge.when, when):
                message = "the edge is also taken when the item is done, which counts towards its `maxTraversals`"
                advice = "set `maxTraversals` on a separate edge that is taken only for a retry"
                yield Hint(f"{id_}.edges[{edge.index}].maxTraversals", message, advice)


@rule(EDGE_RULES, "loop", "idle-route")
def _exit_never_taken(facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """An exit that is never taken."""
    advances = advances_of(facts, loop)
    for exit_ in loop.exits if loop.iterates else ():
        source, condition, fix = exit_.source, exit_.condition, None
        if condition is None:
            continue
        when = advances.get(source) if source is not None else None
        if when is None and source in loop.members:
            other_sources = " or ".join(advances)
            reason = f"{source!r} never advances, so this exit can only be taken if the list is empty"
            advice = f"set `from` to {other_sources}" if other_sources else f"add an advance to {source!r}"
            if len(advances) == 1:
                step = do("change_exit", loop.id, exit_.index, source=other_sources)
                fix = suggested_fix(f"Start the exit at {other_sources}", step)
        elif source is not None and when is not None and not conditions_overlap(condition, when):
            reason = f"{source!r} only advances when {when}, so its {condition} exit is never taken"
            advice = f"change the condition to {when} or always"
            fix = _fix_exit_of(facts.sockets[source], loop, exit_.index)
        else:
            continue
        yield Hint(f"loops.{loop.id}.exits[{exit_.index}]", reason, advice, fix)


def _fix_exit_of(socket: SocketFacts, loop: LoopFacts, index: int) -> Fix:
    """Return a fix that lets an exit be taken, or removes the exit if a retry would otherwise run for the next item."""
    if any(edge.when in REWORK_CONDITIONS and edge.to in loop.members for edge in socket.edges):
        return suggested_fix("Remove the exit", do("remove_exit", loop.id, index))
    return suggested_fix(f"Advance {socket.id} after every result", set_advance_condition(socket, "always"))


@rule(EDGE_RULES, "loop", "one-item")
def _ends_early(facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """A member that advances but has no matching edge, so the cast ends before the last item."""
    first = next(iter(loop.members), None)
    for id_, when in advances_of(facts, loop).items():
        edges = [edge.when for edge in facts.sockets[id_].edges]
        # an unconditional advance can be followed by any edge
        if any(conditions_overlap(condition, when) for condition in edges) or (edges and when == "always"):
            continue
        situation = "but has no edge" if when == "always" else f"when {when}, but has no edge for this result"
        message = f"{id_!r} advances {situation}, so the cast ends before the last item"
        advice = f"add an edge with the condition {when} back to the first member of the loop"
        fix = suggested_fix(f"Add an edge to {first} ({when})", do("add_edge", id_, first, when)) if first else None
        yield Hint(f"{id_}.edges", message, advice, fix)


@rule(EDGE_RULES, "loop", "exhausted-unmatched")
def _exhausted_unmatched(facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """A member that can complete the last item with a result that no exit matches (R16)."""
    missing_results = {id_: _unmatched_results(facts, id_, when) for id_, when in advances_of(facts, loop).items()}
    results = [(id_, when) for id_, conditions in missing_results.items() for when in conditions]
    summary = " and ".join(f"{id_} {when}" for id_, when in results)
    ends = [do("add_exit", loop.id, id_, when, END) for id_, when in results]
    for id_, conditions in missing_results.items():
        if conditions:
            missing_exit = f"no exit from {id_!r} matches {' or '.join(conditions)}"
            message = f"{missing_exit}, so this result of the last item ends the cast as complete"
            advice = f"add an exit from {id_!r} for {' and for '.join(conditions)}, or one with the condition always"
            fix = suggested_fix(f"Add exits to the end: {summary}", *ends)
            yield Hint(f"loops.{loop.id}.exits", message, advice, fix)


@rule(EDGE_RULES, "loop", "empty-list-ends")
def _empty_list_ends(facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """A loop with exits to a socket that the cast never visits if the list is empty (R16)."""
    exits = list(loop.exits)
    if loop.legacy is not None and loop.legacy.raw.get("to") != END:
        exits.append(loop.legacy)
    exit_targets = [exit_.target for exit_ in exits if is_text(exit_.target) and exit_.target != END]
    if not loop.iterates or not exit_targets or any(exit_.condition == "always" for exit_ in exits):
        return
    source = exits[0].raw.get("from")
    when = advances_of(facts, loop).get(str(source), "satisfied")
    skipped_sockets = " and ".join(dict.fromkeys(exit_targets))
    message = f"if the list is empty, the cast ends as complete and never visits {skipped_sockets}"
    advice = f'write "advance": {{"when": "{when}"}} on {source!r}, and add an always exit from {source!r}'
    yield Hint(f"loops.{loop.id}.exits", message, advice, _add_empty_exit(facts, loop))


def _add_empty_exit(facts: LoadoutFacts, loop: LoopFacts) -> Fix | None:
    """Return a fix that adds an ``always`` exit for empty lists without changing when the loop advances.

    There is no fix if the new exit would also be taken after a result of the last item that no exit matches.
    """
    if not loop.exits or loop.legacy is not None:
        return None
    first = loop.exits[0]
    source, to = facts.sockets.get(first.source or ""), first.raw.get("targetSocketId")
    when = advances_of(facts, loop).get(source.id) if source is not None else None
    if source is None or when is None or _unmatched_results(facts, source.id, when):
        return None
    steps = (set_advance_condition(source, when), do("add_exit", loop.id, source.id, "always", to))
    make = suggested_fix if len(loop.exits) > 1 else safe_fix
    return make(f"Add an exit to {to} (always)", *steps)


@rule(EDGE_RULES, "loadout", "lone-guard")
def _one_sided_guard(facts: LoadoutFacts) -> Iterator[Hint]:
    """A socket whose edges match only one value of `satisfied`, so the other value ends the cast (R3)."""
    advances = {advance for loop in facts.loops for advance in advances_of(facts, loop).items()}
    for id_, socket in facts.sockets.items():
        if not socket.targets or id_ in facts.text_sockets:
            continue
        unmatched = unmatched_verdicts({edge.when for edge in socket.edges if edge.when is not None})
        if len(unmatched) == 1 and (id_, unmatched[0]) not in advances:
            message = f"no edge of {id_!r} matches {unmatched[0]}, so this result ends the cast as complete"
            advice = f'add a {unmatched[0]} edge; to end the cast there, set its target to "end"'
            fix = safe_fix(f"Add an edge to the end ({unmatched[0]})", do("add_edge", id_, END, unmatched[0]))
            yield Hint(f"{id_}.edges", message, advice, fix)


def conditions_overlap(edge: Condition | None, advance: Condition) -> bool:
    """Return True if one result can match both the condition of an edge or exit and the condition of an advance."""
    return edge is not None and condition_spec(edge).overlaps(condition_spec(advance))


def _unmatched_results(facts: LoadoutFacts, id_: str, when: Condition) -> list[Condition]:
    """Return the results with which a member can complete the last item, but which no exit matches (R16)."""
    loops = [loop for loop in facts.loops if id_ in loop.members]
    if not any(loop.raw.get("exits") for loop in loops) or any(loop.legacy is not None for loop in loops):
        return []
    exits = [exit_.condition for loop in loops for exit_ in loop.exits if exit_.source == id_]
    matched_conditions = {condition for condition in exits if condition is not None}
    if matched_conditions and id_ in facts.text_sockets:
        return []
    return [result for result in unmatched_verdicts(matched_conditions) if conditions_overlap(result, when)]


_MAX_NAMES: Final = 8


def targets_of(facts: LoadoutFacts) -> dict[str, set[str]]:
    """Return the successors of each socket through its edges and through the exits of its loops."""
    targets = {id_: set(socket.targets) for id_, socket in facts.sockets.items()}
    for loop in facts.loops:
        exits = [*loop.exits, loop.legacy] if loop.legacy else loop.exits
        targets_outside = {exit_.target for exit_ in exits if exit_.target is not None} & targets.keys()
        for member in loop.members:
            if member in targets:
                targets[member] |= targets_outside
    return targets


def reachable_sockets(facts: LoadoutFacts, targets: Mapping[str, set[str]]) -> set[str]:
    """Return the sockets that are reachable from the entry; an empty set if the entry does not exist."""
    entry = facts.entry
    if not isinstance(entry, str) or entry not in facts.sockets:
        return set()
    return reachable_from([entry], targets)


# -- edges that are never taken -----------------------------------------------------------


@rule(EDGE_RULES, "socket", "never-taken")
def never_taken(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """An edge that is never taken, because earlier edges match all of its results."""
    results = _possible_results(facts, socket)
    first_edges: dict[Result, int] = {}  # the index of the first edge that matches each result
    unconditional = False
    for edge in socket.edges:
        if edge.when is None:
            continue
        condition = condition_spec(edge.when)
        matched = [result for result in results if condition.matches(result)]
        if unconditional and not condition.without_output:
            continue  # a problem with the code unreachable-edge
        if matched and first_edges.keys() >= set(matched):
            earlier = join_with_or(f"edge {index + 1}" for index in sorted({first_edges[result] for result in matched}))
            requirement = " (the output must contain `satisfied`)"
            verdict = "" if Result.NOTHING in results or condition.is_guard else requirement
            message = f"edge {edge.index + 1} is never taken, because {earlier} matches its results first{verdict}"
            advice = "remove the edge, move it forward, or change its condition"
            fix = safe_fix("Remove the edge", do("remove_edge", socket.id, edge.index))
            yield Hint(f"{socket.id}.edges[{edge.index}]", message, advice, fix)
        unconditional = unconditional or condition.matches_any_output
        for result in matched:
            first_edges.setdefault(result, edge.index)


def _possible_results(facts: LoadoutFacts, socket: SocketFacts) -> list[Result]:
    """Return the results that a visit of a socket can have."""
    if socket.id in facts.text_sockets:
        impossible_results: tuple[Result, ...] = VERDICTS
    else:
        has_guard = any(edge.when in GUARDS for edge in socket.edges)
        requires_verdicts = has_guard and not socket.is_utility and requires_verdict(socket.handoff)
        impossible_results = (Result.NOTHING,) if requires_verdicts else ()  # the protocol refuses such an output (R7)
    return [result for result in Result if result not in impossible_results]


# -- endless cycles ----------------------------------------------------------------------


@rule(EDGE_RULES, "loadout", "no-way-out")
def _cycle_without_end(facts: LoadoutFacts) -> Iterator[Hint]:
    """A cycle of sockets from which no path leads to the end."""
    targets = targets_of(facts)
    cycles, sources = cycles_in(targets), reversed_edges(targets)
    if not cycles:
        return
    ending_sockets = reachable_from([id_ for id_, s in facts.sockets.items() if _can_end(facts, s)], sources)
    cannot_end = reachable_sockets(facts, targets) - ending_sockets
    stuck_cycles = [id_ for id_ in facts.sockets if id_ in cycles and id_ in cannot_end]
    if stuck_cycles:
        names = ", ".join(map(repr, stuck_cycles[:_MAX_NAMES])) + (", …" if len(stuck_cycles) > _MAX_NAMES else "")
        message = f"no path leads from {names} to the end, so a cast repeats these sockets until it reaches the limit of an edge, and fails"
        advice = 'change the condition of an edge to satisfied, and add an edge to "end" or to a later socket'
        yield Hint(f"{stuck_cycles[0]}.edges", message, advice)


def _can_end(facts: LoadoutFacts, socket: SocketFacts) -> bool:
    """Return True if a cast can end at a socket, which is always the case for a socket that iterates over a list."""
    edges = [(edge.when, edge.to) for edge in socket.edges if edge.when is not None]
    is_matched = match_every_output([when for when, _ in edges], text=socket.id in facts.text_sockets)
    return socket.iterator is not None or END in {target for _, target in edges} or not is_matched
