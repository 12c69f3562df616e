"""Checks that report problems with sockets, edges, advances and loops (R3, R4, R13-R16, R18, R25-R27)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from materia_nb.errors import counted
from materia_nb.jsonvalue import JSON, Object, as_list, as_object, is_text
from materia_nb.loadout.graph import END
from materia_nb.loadout.items import advances_of, assigns_work_items, derive, entry_targets, probable_advance
from materia_nb.loadout.report import (
    AMBIGUOUS_ADVANCE,
    INVALID_GENERATOR,
    INVALID_LOOP,
    INVALID_SOCKET,
    INVALID_SOCKET_ID,
    MISSING_ENDPOINT,
    UNKNOWN_ENDPOINT,
    UNKNOWN_MATERIA,
    UNREACHABLE_EDGE,
    Findings,
    Fix,
    brief,
    do,
    safe_fix,
    suggested_fix,
)
from materia_nb.loadout.topology import (
    ExitFacts,
    LoadoutFacts,
    LoopFacts,
    SocketFacts,
    cycles_in,
    is_socket_id,
    next_socket_id,
    reachable_from,
)
from materia_nb.loadout.vocabulary import (
    GUARDS,
    WORK_ITEMS_SOURCE,
    Condition,
    condition_spec,
    is_condition,
    source_fault,
)

ID_FORMAT = "a letter followed by letters, digits, dots, dashes or underscores, at most 64 characters"


_FixFactory: TypeAlias = Callable[[str | None], Fix | None]
"""Function that takes the existing name closest to a broken reference, or None, and returns a fix or None."""


def check_sockets(findings: Findings, facts: LoadoutFacts) -> None:
    """Report problems with the entry and with each socket of a loadout."""
    if facts.ids:
        first = next(iter(facts.sockets), None)
        fix = None if first is None else suggested_fix(f"Set the entry to {first}", do("set_entry", first))
        _check_endpoint(findings, facts, facts.entry, "entry", end=False, fix=fix)
    for id_ in as_object(facts.raw.get("sockets")):
        socket = facts.sockets.get(id_)
        if not is_socket_id(id_):
            id_fault = " is reserved for the end of a cast" if id_ == END else " is not a valid socket id"
            fix = None if socket is None else renumber_socket(facts, socket)
            findings.problem(INVALID_SOCKET_ID, f"sockets.{id_}", f"{brief(id_)}{id_fault}", f"use {ID_FORMAT}", fix)
        if socket is not None:
            _check_socket(findings, facts, socket)


def renumber_socket(facts: LoadoutFacts, socket: SocketFacts) -> Fix:
    """Return a fix that renames a socket to a canonical id and sets the old id as the label of the socket."""
    old, new = socket.id, next_socket_id(facts.raw)
    label = () if socket.raw.get("label") else (do("set_socket", new, "label", old),)
    return safe_fix(f"Rename to {new}, and keep {old} as the label", do("rename_socket", old, new), *label)


def _check_endpoint(
    findings: Findings,
    facts: LoadoutFacts,
    value: JSON,
    source: str,
    *,
    required: bool = True,
    end: bool = True,
    advice: str | None = None,
    fix: Fix | _FixFactory | None = None,
) -> bool:
    """Report a broken reference to a socket. Return True if the reference is valid, or missing but not required.

    Args:
        findings: collects the problems.
        facts: the parsed loadout.
        value: the reference as written.
        source: the path of the reference.
        required: True to report a missing reference.
        end: True if the reference may also be ``end``.
        advice: advice for a socket that does not exist; None suggests the most similar id.
        fix: the fix, or a function that takes the most similar id, or None, and returns the fix.
    """
    if value is None or value == "":
        if required:
            allowed_values = "a socket id or `end`" if end else "a socket id"
            message = f"{source} is missing"
            fix = fix(None) if callable(fix) else fix
            findings.problem(MISSING_ENDPOINT, source, message, f"write {allowed_values}", fix)
        return not required
    if isinstance(value, str) and (value in facts.ids or (end and value == END)):
        return True
    if callable(fix):
        fix = fix(findings.closest(value, [*facts.ids, *([END] if end else [])]))
    if not is_socket_id(value):
        reason = "is the end of a cast, not a socket" if value == END else "is not a valid socket id"
        advice = f"write the id of a socket: {ID_FORMAT}"
        findings.problem(INVALID_SOCKET_ID, source, f"{brief(value)} {reason}", advice, fix)
    else:
        advice = advice or findings.suggest(str(value), facts.ids)
        findings.problem(UNKNOWN_ENDPOINT, source, f"the socket {brief(value)} does not exist", advice, fix)
    return False


def _check_done_target(findings: Findings, facts: LoadoutFacts, path: str, spec: Object | None) -> None:
    """Report an invalid target in the field ``done``, which only older loadouts contain."""
    if spec is not None and "done" in spec:
        _check_endpoint(findings, facts, spec["done"], f"{path}.done", required=False)


def _check_socket(findings: Findings, facts: LoadoutFacts, socket: SocketFacts) -> None:
    _check_placement(findings, facts, socket)
    _check_edges(findings, facts, socket)
    if not socket.is_utility:
        _check_sources(findings, socket)
        if socket.is_generator:
            _check_agent_generator(findings, socket)
    _check_done_target(findings, facts, f"{socket.id}.foreach", socket.foreach)
    if socket.advance is not None:
        _check_advance(findings, facts, socket, socket.advance)


def _check_sources(findings: Findings, socket: SocketFacts) -> None:
    """Report invalid sources in the assignments of an agent. Assignments on a utility's socket are ignored (R4)."""
    for path, _, source in socket.assignments:
        fault = source_fault(source) if is_text(source) else None
        if fault is not None:
            findings.problem(INVALID_SOCKET, path, *fault)


def _check_placement(findings: Findings, facts: LoadoutFacts, socket: SocketFacts) -> None:
    materia_id, source = socket.raw.get("materia"), f"{socket.id}.materia"
    if not is_text(materia_id):
        fault_text = f"materia cannot be {brief(materia_id)}" if "materia" in socket.raw else "materia is missing"
        findings.problem(UNKNOWN_MATERIA, source, fault_text, findings.suggest("", facts.definitions))
    elif materia_id not in facts.definitions:
        closest = findings.closest(materia_id, facts.definitions)
        fix = suggested_fix(f"Use {closest}", do("set_socket", socket.id, "materia", closest)) if closest else None
        advice = findings.suggest(materia_id, facts.definitions)
        findings.problem(UNKNOWN_MATERIA, source, f"the materia {brief(materia_id)} does not exist", advice, fix)


def _check_edges(findings: Findings, facts: LoadoutFacts, socket: SocketFacts) -> None:
    id_ = socket.id
    unconditional: int | None = None  # the first edge that matches every output
    for index, edge in enumerate(as_list(socket.raw.get("edges"))):
        path, when = f"{id_}.edges[{index}]", as_object(edge).get("when")
        condition = condition_spec(when) if is_condition(when) else None
        if unconditional is not None and not (condition and condition.without_output):
            fix = safe_fix("Move the edge forward", do("move_edge", id_, index, unconditional))
            if when == "always":
                fix = safe_fix("Remove the edge", do("remove_edge", id_, index))
            message = f"edge {index + 1} is never taken, because edge {unconditional + 1} always matches"
            advice = "move the edge before the `always` edge, or remove it"
            findings.problem(UNREACHABLE_EDGE, path, message, advice, fix)
        if not isinstance(edge, dict):
            continue
        _check_endpoint(findings, facts, edge.get("to"), f"{path}.to", fix=partial(_fix_target, id_, index))
        if condition and condition.matches_any_output and unconditional is None:
            unconditional = index


def _fix_target(id_: str, index: int, closest: str | None) -> Fix:
    """Return a fix that sets the target of an edge to ``closest``, or removes the edge if ``closest`` is None."""
    if closest is None:
        return suggested_fix("Remove the edge", do("remove_edge", id_, index))
    return suggested_fix(f"Change the target to {closest}", do("change_edge", id_, index, to=closest))


def _check_agent_generator(findings: Findings, socket: SocketFacts) -> None:
    if socket.parse == "text":
        message = "the agent is a generator, and the output of a generator is always JSON"
        advice = "remove `parse`, or place a materia that is not a generator"
        fix = suggested_fix("Remove parse", do("set_socket", socket.id, "parse", None))
        findings.problem(INVALID_GENERATOR, f"{socket.id}.parse", message, advice, fix)
    for path, target, source in socket.assignments:
        if assigns_work_items(target) and source != WORK_ITEMS_SOURCE:
            message = f"the work items of a generator must come from $.workItems, not from {brief(source)}"
            advice = "remove this assignment, or assign to another target"
            findings.problem(INVALID_GENERATOR, path, message, advice)


def _check_advance(findings: Findings, facts: LoadoutFacts, socket: SocketFacts, raw: Object) -> None:
    path = f"{socket.id}.advance"
    for field in ("cursor", "items"):
        if raw.get(field) is None and socket.iterator is None:
            message = f"`advance` does not set `{field}`, and the socket has no iterator that sets it"
            advice = (
                f"write `{field}`, add `foreach` to the socket, or add the socket to a loop that consumes work items"
            )
            findings.problem(INVALID_SOCKET, f"{path}.{field}", message, advice)
    _check_done_target(findings, facts, path, raw)


# -- loop regions ----------------------------------------------------------------------------


_InboundEdges: TypeAlias = Sequence[tuple[str, str]]  # Edges from generators, as pairs of source and target.


def check_loops(findings: Findings, facts: LoadoutFacts) -> None:
    """Report problems with the loops of a loadout."""
    if not facts.loops:
        return
    inbound = [
        (id_, to) for id_, socket in facts.sockets.items() if socket.is_generator for to in entry_targets(facts, socket)
    ]
    for loop in facts.loops:
        _check_loop(findings, facts, inbound, loop)
    for socket_id, first, second in derive(facts).conflicts:
        message = f"the exits of loops {first!r} and {second!r} set different advances on {socket_id!r}"
        advice = f"set `from` of the exit of {second!r} to another member, or remove loop {second!r}"
        findings.problem(AMBIGUOUS_ADVANCE, f"{socket_id}.advance", message, advice)
    _check_cursors(findings, facts)


def _check_loop(findings: Findings, facts: LoadoutFacts, inbound: _InboundEdges, loop: LoopFacts) -> None:
    path = f"loops.{loop.id}"
    known_members = [
        _check_endpoint(findings, facts, member, f"{path}.sockets[{index}]", end=False)
        for index, member in enumerate(as_list(loop.raw.get("sockets")))
    ]
    members_known = bool(known_members) and all(known_members)
    _check_done_target(findings, facts, f"{path}.iterator", loop.iterator)
    if loop.consumes is not None:
        _check_consumes(findings, facts, inbound, loop, loop.consumes, members_known=members_known)
    if loop.legacy is not None:
        _check_legacy_exit(findings, facts, loop, loop.legacy)
    _check_exits(findings, facts, loop)


def _check_consumes(
    findings: Findings,
    facts: LoadoutFacts,
    inbound: _InboundEdges,
    loop: LoopFacts,
    consumes: Object,
    *,
    members_known: bool,
) -> None:
    path = f"loops.{loop.id}.consumes"
    _check_done_target(findings, facts, path, consumes)
    members = set(loop.members)
    entering_edges = [(source, target) for source, target in inbound if target in members and source not in members]
    advice, source = None, consumes.get("from")
    if len({generator for generator, _ in entering_edges}) == 1:
        advice = f"write {entering_edges[0][0]!r}, the generator whose edge enters the loop"
    is_known = _check_endpoint(
        findings, facts, source, f"{path}.from", end=False, advice=advice, fix=lambda _: _suggest_source(facts, loop)
    )
    if not members_known:
        return
    sockets = [facts.sockets[id_] for id_ in loop.members if id_ in facts.sockets]
    if not cycles_in({socket.id: members.intersection(socket.targets) for socket in sockets}):
        first, last = loop.members[0], loop.members[-1]
        message = "the edges of the members do not form a cycle, so the loop would stop after the first item"
        advice = f"add an edge from the last member back to {first!r}"
        fix = suggested_fix(f"Add an edge from {last} to {first}", do("add_edge", last, first))
        findings.problem(INVALID_LOOP, f"loops.{loop.id}.sockets", message, advice, fix)
    _check_source(findings, facts, entering_edges, loop, source if is_known else None)


def _is_generator(facts: LoadoutFacts, id_: JSON) -> bool:
    socket = facts.sockets.get(id_) if isinstance(id_, str) else None
    return socket is not None and socket.is_generator


def iterate_over_items(facts: LoadoutFacts, loop: LoopFacts) -> Fix | None:
    """Return a fix that lets a loop iterate over the work items in the state (R12), or None if this would not help.

    The fix is for a loop that a generator reaches only through other sockets, such as a validator. The fix keeps the
    conditions of the advances, or adds a probable advance if the loop has no advance. The cursor is renamed only if
    another loop has the same cursor.

    The result is None if the generator can run again after the loop, because a loop starts again only if it consumes
    the items of the generator (R17).
    """
    generator, successors = facts.likely_generator(loop.members), facts.successors
    has_other_source = _is_generator(facts, loop.source) and loop.source != generator
    if generator is None or has_other_source or loop.iterator is not None or loop.legacy is not None:
        return None
    if _leads_into(facts, generator, loop) or generator in reachable_from(loop.members, successors):
        return None
    cursor = loop.cursor(loop.members[0])
    if cursor in [other.cursor(other.members[0]) for other in facts.loops if other.id != loop.id and other.members]:
        cursor = f"{loop.id}Index"
    advances = advances_of(facts, loop) or probable_advance(facts, loop)
    steps = [do("set_source", loop.id, "iterator", items=loop.items, as_=loop.alias, cursor=cursor)]
    steps += [do("set_socket", id_, "advance", {"when": when}) for id_, when in advances.items()]
    return suggested_fix(f"Iterate over {loop.items}, the items of {generator}", *steps)


def _leads_into(facts: LoadoutFacts, generator: str, loop: LoopFacts) -> bool:
    return not set(loop.members).isdisjoint(entry_targets(facts, facts.sockets[generator]))


def _suggest_source(facts: LoadoutFacts, loop: LoopFacts) -> Fix | None:
    """Return a fix that connects a loop with its probable generator, or None if the generator is not obvious.

    The fix sets ``consumes.from`` to the only generator that leads into the loop, lets the loop iterate over the items
    that other sockets pass on, or adds an edge from the generator in ``consumes.from`` to the loop.
    """
    generator = facts.likely_generator(loop.members)
    if generator is not None and generator != loop.source and _leads_into(facts, generator, loop):
        step = do("set_source", loop.id, "consumes", from_=generator)
        return suggested_fix(f"Consume the items of {generator}", step)
    fix = iterate_over_items(facts, loop)
    if fix is None and _is_generator(facts, loop.source) and loop.source not in loop.members and loop.members:
        first = loop.members[0]
        fix = suggested_fix(f"Add an edge from {loop.source} to {first}", do("add_edge", loop.source, first))
    return fix


def _check_source(
    findings: Findings, facts: LoadoutFacts, entering_edges: list[tuple[str, str]], loop: LoopFacts, source: JSON
) -> None:
    """Report a problem unless one edge leads from a generator into the loop, and ``source`` is this generator (R27).

    Also report members that are generators themselves.
    """
    path = f"loops.{loop.id}.consumes"
    for index, member in enumerate(loop.members):
        if _is_generator(facts, member) and member != source:
            message = f"the member {member!r} is a generator, but the loop consumes the items of another generator"
            advice = f"remove {member!r} from the members, or create a separate loop for its items"
            findings.problem(INVALID_LOOP, f"loops.{loop.id}.sockets[{index}]", message, advice)
    reason = None
    if source in loop.members:
        reason = f"{source!r} is a member of the loop that consumes its items"
    elif source is not None and not _is_generator(facts, str(source)):
        reason = f"{source!r} is not a generator"
    advice = "connect one generator to the loop with exactly one edge"
    if not entering_edges:
        generators = [id_ for id_, s in facts.sockets.items() if s.is_generator and id_ not in loop.members]
        if generators:
            advice += f", for example from {generators[0]!r}"
        if iterate_over_items(facts, loop) is not None:
            advice += f", or let the loop iterate over {loop.items}, which other sockets pass on"
        message = reason or "no edge leads from a generator into the loop"
    elif len(entering_edges) > 1:
        edges = ", ".join(f"{from_} -> {to}" for from_, to in entering_edges[:5])
        message = f"{counted(len(entering_edges), 'edge')} lead from generators into the loop: {edges}"
    elif source is not None and entering_edges[0][0] != source:
        path, message = f"{path}.from", reason or f"no edge leads from {source!r} into the loop"
        advice = f"write {entering_edges[0][0]!r}, the generator whose edge enters the loop"
    else:
        return
    findings.problem(INVALID_LOOP, path, message, advice, _suggest_source(facts, loop))


def _check_legacy_exit(findings: Findings, facts: LoadoutFacts, loop: LoopFacts, legacy: ExitFacts) -> None:
    path = f"loops.{loop.id}.exit"
    source = _exit_source(findings, facts, loop, legacy.raw.get("from"), f"{path}.from")
    _check_endpoint(findings, facts, legacy.raw.get("to"), f"{path}.to")
    when = legacy.condition
    if source is None or when is None or loop.consumes is None:
        return
    socket = facts.sockets[source]
    if when in GUARDS and socket.parse == "text":
        message = f"the output of {source!r} is text, but its exit from loop {loop.id!r} has the condition {when}"
        advice = 'write "parse": "json", or change the condition of the exit to "always"'
        findings.problem(INVALID_LOOP, f"{source}.parse", message, advice)
    _check_legacy_advance(findings, loop, socket, when)
    return_conditions = [edge.when for edge in socket.edges if edge.to in loop.members]
    if all(condition == when and when != "always" for condition in return_conditions):
        message = f"{source!r} has no edge back into loop {loop.id!r} for the next item"
        advice = f'add an edge to a member, such as {{"when": "always", "to": "{loop.members[0]}"}}'
        findings.problem(INVALID_LOOP, f"{source}.edges", message, advice)


def _check_legacy_advance(findings: Findings, loop: LoopFacts, socket: SocketFacts, when: Condition) -> None:
    """Report fields of an explicit ``advance`` that differ from the advance derived from the loop exit (R27)."""
    advance, items = socket.advance, socket.iterator.items if socket.iterator else None
    if advance is None:
        return
    derived_advance = {"cursor": loop.cursor(socket.id), "items": loop.items, "when": when}
    written_advance = {"items": items, "when": "always", **advance, "cursor": socket.advance_cursor}
    for field, value in derived_advance.items():
        if written_advance[field] != value:
            message = f"{field} is {brief(written_advance[field])}, but the exit of loop {loop.id!r} needs {value!r}"
            advice = f"write {value!r}, or remove `advance`, which is then derived from the exit"
            findings.problem(INVALID_LOOP, f"{socket.id}.advance.{field}", message, advice)


def _exit_source(
    findings: Findings, facts: LoadoutFacts, loop: LoopFacts, source: JSON, path: str, fix: Fix | None = None
) -> str | None:
    """Report an invalid source of an exit. Return the id of the source if it is a well-formed member, else None."""
    is_known = _check_endpoint(findings, facts, source, path, end=False, fix=fix)
    if not is_known or not isinstance(source, str):
        return None
    if source in loop.members:
        return source if source in facts.sockets else None
    advice = findings.suggest(source, loop.members) if loop.members else "add the members of the loop first"
    findings.problem(INVALID_LOOP, path, f"{source!r} is not a member of loop {loop.id!r}", advice)
    return None


def _check_exits(findings: Findings, facts: LoadoutFacts, loop: LoopFacts) -> None:
    ids: set[str] = set()
    conditions: set[tuple[str, Condition]] = set()
    for exit_ in loop.exits:
        path = f"loops.{loop.id}.exits[{exit_.index}]"
        remove = suggested_fix("Remove the exit", do("remove_exit", loop.id, exit_.index))
        id_ = exit_.raw.get("id")
        if is_text(id_):
            if id_ in ids:
                message = f"another exit has the id {id_!r}"
                findings.problem(INVALID_LOOP, f"{path}.id", message, "write an id that is unique in the loop")
            ids.add(id_)
        _exit_source(findings, facts, loop, exit_.raw.get("from"), f"{path}.from", remove)
        if is_text(exit_.source) and exit_.condition is not None:
            if (exit_.source, exit_.condition) in conditions:
                message = f"another exit has the same source {exit_.source!r} and condition {exit_.condition}"
                advice = "change the condition of this exit, or remove it"
                findings.problem(INVALID_LOOP, f"{path}.condition", message, advice)
            conditions.add((exit_.source, exit_.condition))
        target = exit_.raw.get("targetSocketId")
        _check_endpoint(findings, facts, target, f"{path}.targetSocketId", fix=remove)


def _check_cursors(findings: Findings, facts: LoadoutFacts) -> None:
    """Report loops that process the items of the same generator with the same cursor (R27)."""
    loop_by_cursor: dict[tuple[str, str], str] = {}
    for loop in facts.loops:
        source = loop.source
        if source is None or not loop.members:
            continue
        cursor = loop.cursor(loop.members[0])
        other = loop_by_cursor.setdefault((source, cursor), loop.id)
        if other != loop.id:
            message = f"loop {other!r} also consumes the items of {source!r} with the cursor {cursor!r}"
            advice = f'write another cursor, such as "cursor": "{loop.id}Index"'
            step = do("set_source", loop.id, "consumes", cursor=f"{loop.id}Index")
            fix = suggested_fix(f"Rename the cursor to {loop.id}Index", step)
            findings.problem(INVALID_LOOP, f"loops.{loop.id}.consumes.cursor", message, advice, fix)
