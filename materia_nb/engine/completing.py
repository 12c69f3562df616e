"""Complete a socket after an accepted output: update the state, run assignments, advance, and choose the next socket.

The order of these actions is defined by rules R2, R10, R11, R14 and R20.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from materia_nb.engine import conversation
from materia_nb.engine import events as ev
from materia_nb.engine.conversation import truncate
from materia_nb.engine.entering import stop_cast, updated_knowledge
from materia_nb.engine.events import Event, Transition
from materia_nb.engine.items import (
    compile_source,
    cursor_after_advance,
    cursor_before_advance,
    forget_items,
    is_iterated_by,
    lies_in,
    list_at,
    own_list,
)
from materia_nb.engine.routing import (
    NO_EFFECTS,
    NO_READING,
    AdvanceRecord,
    AssignmentRecord,
    Choice,
    Decision,
    OutputEffects,
    about,
    budget_problem,
    choose_edge,
    count_detour,
    count_edge,
    count_exit,
    decision_of,
    is_budget_nearly_used_up,
    with_uses,
)
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import (
    BOUNDS,
    Draft,
    Failure,
    Item,
    ItemId,
    LastAnswer,
    PendingRoute,
    UncountedQuantity,
    Visit,
    has_limits,
)
from materia_nb.handoff.base import Issue, Reading
from materia_nb.jsonvalue import JSON, MISSING, FrozenDict, as_object, frozen, set_path
from materia_nb.loadout.graph import END, Advance
from materia_nb.loadout.vocabulary import ACCEPTED, CONDITION_SPECS, REWORK_CONDITIONS, WITHOUT_OUTPUT, Result


def complete(
    rules: Rules,
    draft: Draft,
    visit: Visit,
    text: str,
    reading: Reading,
    *,
    target: str | None = None,
    detour: str | None = None,
) -> Transition:
    """Apply an accepted output to the state in the order that rule R2 defines, then choose the next socket.

    Args:
        rules: the rules of the cast.
        draft: the state, which is modified.
        visit: the visit to complete.
        text: the output.
        reading: the parsed output.
        target: the next socket that a person chose, or None to follow the edges.
        detour: the socket to run before the next socket, or None.
    """
    socket_rules = rules.sockets[visit.socket]
    warnings: tuple[Issue, ...] = ()
    if "learn" in socket_rules.protocol.overridden:
        knowledge_update = updated_knowledge(rules, socket_rules, draft, reading.value, draft.knowledge)
        draft.knowledge, warnings = knowledge_update.knowledge, knowledge_update.warnings
    apply_output(socket_rules, draft, text, reading)
    assignments, failure = _run_assignments(socket_rules, draft, visit, reading) if socket_rules.assign else ((), None)
    side_events: tuple[Event, ...] = number_side_events(rules, draft, visit, reading) if reading.events else ()
    subject = about(rules, visit)
    if reading.scope is not None:
        side_events += (ev.ScopeChanged(about=subject, visit=visit.visit, scope=reading.scope.as_json()),)
    event = ev.SocketComplete(about=subject, visit=visit.visit, parsed=socket_rules.requirements.parse == "json")
    if failure:
        decision = decision_of(visit, "failure", None, reading, OutputEffects(assignments, None, warnings))
        failure_event = ev.AssignmentFailed(about=subject, visit=visit.visit, error=failure.message)
        return stop_cast(draft, failure, visit, reading, decision, events=(event, *side_events, failure_event))
    result = draft.last_result
    advance, advanced_item, exhausted = None, None, False
    if socket_rules.socket.advance is not None:
        advance = _advance_cursor(socket_rules, socket_rules.socket.advance, draft, visit.item, result)
        advanced_item, exhausted = _completed_item(advance, draft, visit.item), advance.exhausted
    outcome = PendingRoute(result, draft.last_output or "", reading.context, exhausted, advanced_item, target, detour)
    effects = OutputEffects(assignments, advance, warnings) if assignments or advance or warnings else NO_EFFECTS
    events = (event, *side_events)
    return _choose_next(rules, draft, visit, outcome, events=events, reading=reading, effects=effects)


def fail(
    rules: Rules,
    draft: Draft,
    visit: Visit,
    result: Result,
    failure: Failure,
    *,
    events: tuple[Event, ...] = (),
    reading: Reading | None = None,
) -> Transition:
    """Follow the ``failed`` edge of a failed visit and pass the reason on (R60); stop the cast if no edge matches."""
    socket_rules = rules.sockets[visit.socket]
    if choose_edge(socket_rules, result, exhausted=False) is None:
        return stop_cast(draft, failure, visit, reading, events=events)
    conversation.add_handoff(draft, socket_rules.socket, visit.item, result, failure.message)
    draft.at = visit._replace(approval=None)
    outcome = PendingRoute(result, "", failure.message, exhausted=False, advanced=None)
    return _choose_next(rules, draft, visit, outcome, events=events, reading=reading)


def _choose_next(
    rules: Rules,
    draft: Draft,
    visit: Visit,
    outcome: PendingRoute,
    *,
    events: tuple[Event, ...],
    reading: Reading | None,
    effects: OutputEffects = NO_EFFECTS,
) -> Transition:
    """Choose the next socket, or stop the cast if the budget is used up (R20)."""
    if has_limits(draft.budget):
        budget_events, failure = check_budget(rules, draft, visit)
        events += budget_events
        if failure:
            draft.pending_route = outcome
            decision = decision_of(visit, "budget", None, reading, effects, result=outcome.result)
            return stop_cast(draft, failure, visit, reading, decision, events=events)
    return route(rules, draft, visit, outcome, events=events, reading=reading, effects=effects)


def number_side_events(rules: Rules, draft: Draft, visit: Visit, reading: Reading) -> tuple[Event, ...]:
    """Return a numbered event for each side event of an output (R39). Events of a refused output are marked (R53)."""
    earlier_count = draft.side_event_count
    draft.side_event_count += len(reading.events)
    subject, is_refused = about(rules, visit), not reading.accepted or None
    return tuple(
        ev.SideEventRecorded(about=subject, visit=visit.visit, refused=is_refused, sequence=number, event=dict(event))
        for number, event in enumerate(reading.events, start=earlier_count + 1)
    )


def apply_output(socket_rules: SocketRules, draft: Draft, text: str, reading: Reading) -> None:
    """Store the fields of an output in the state, before assignments and the advance (R10, R17)."""
    draft.last_output = text if socket_rules.socket.is_utility else text.strip()
    draft.last_socket, draft.last_artifact = socket_rules.socket.id, draft.artifact
    result = Result.from_satisfied(reading.satisfied)
    draft.last_step, draft.last_result, draft.changed = draft.steps, result, ()
    if reading.scope is not None:
        draft.scope = reading.scope
    if socket_rules.consumer_cursors:
        _reset_loops(draft, socket_rules.consumer_cursors)
    item, socket = draft.at.item if draft.at else None, socket_rules.socket
    item_id = item.id if item else None
    if socket_rules.routes_failures and draft.handoffs.entries:
        conversation.forget_handoffs(draft, socket.id, item_id, *WITHOUT_OUTPUT)  # there is an output now (R60)
    if socket_rules.requirements.parse == "json":
        draft.last_json = reading.value
        draft.data = _data_after_output(socket_rules, draft.data, reading)
        if result is Result.YES and (draft.handoffs.entries or draft.rework_reasons):
            conversation.forget_refusals(draft, socket.id, item_id)
        if reading.context and reading.context.strip():
            conversation.add_handoff(draft, socket, item, result, reading.context)
    if socket_rules.receives_rework:
        value = reading.value if socket_rules.requirements.parse == "json" else None
        answer = LastAnswer(draft.steps, draft.last_output, value)
        draft.answers = FrozenDict({**draft.answers, (socket.id, item_id): answer})


def _data_after_output(socket_rules: SocketRules, data: Mapping[str, JSON], reading: Reading) -> Mapping[str, JSON]:
    """Return the state's data, updated with a utility's state patch and with the generated work items (R10)."""
    value, socket = reading.value, socket_rules.socket
    patch: dict[str, JSON] = {}
    if socket.is_utility and isinstance(value, dict) and isinstance(value.get("state"), dict):
        patch.update((key, part) for key, part in value["state"].items() if key not in ("workItems", "satisfied"))
    items = reading.work_items
    if isinstance(items, list) and (socket.is_generator or data.get("workItems") in (None, [])):
        patch["workItems"] = items
    return FrozenDict({**data, **patch}) if patch else data


def _reset_loops(draft: Draft, cursors: tuple[str, ...]) -> None:
    """Reset the cursors of the loops that consume a generator's items, and forget the old items (R17)."""
    draft.cursors = FrozenDict({name: 0 if name in cursors else position for name, position in draft.cursors.items()})
    if draft.nesting:
        draft.nesting = FrozenDict(
            {name: outer for name, outer in draft.nesting.items() if not any(cursor in cursors for cursor, _ in outer)}
        )
    forget_items(draft, lambda item: is_iterated_by(item, cursors))


def _run_assignments(
    socket_rules: SocketRules, draft: Draft, visit: Visit, reading: Reading
) -> tuple[tuple[AssignmentRecord, ...], Failure | None]:
    """Run the assignments in order, so that an assignment can read the values of earlier assignments (R11).

    Return the completed assignments and None. If the target of an assignment is empty, return the assignments completed
    before it and a failure.
    """
    records: list[AssignmentRecord] = []
    for target, segments, text in socket_rules.assign:
        if not segments:
            failure = Failure(
                "assignment",
                f"The assignment target {target!r} of {visit.socket} is empty.",
                visit.socket,
                "use a path such as plan.items as the target",
            )
            return tuple(records), failure
        value = compile_source(text)(draft, visit.item, reading.value)
        records.append(AssignmentRecord(target, text, value is not MISSING))
        if value is not MISSING:
            draft.data = set_path(draft.data, segments, frozen(value))
    return tuple(records), None


def _advance_cursor(
    socket_rules: SocketRules, advance: Advance, draft: Draft, item: Item | None, result: Result
) -> AdvanceRecord:
    """Advance the cursor if the condition matches, and return a record of the movement (R14)."""
    before = draft.cursors.get(advance.cursor, 0)
    iterator = socket_rules.socket.iterator
    if item is not None and iterator is not None and iterator.items == advance.items:
        length = len(own_list(iterator, draft, item))
    else:
        length = len(list_at(advance.items, draft, item))
    if not CONDITION_SPECS[advance.when].matches(result):
        return AdvanceRecord(advance.when, False, advance.cursor, before, before, length, False, advance.derived)
    after = cursor_after_advance(draft, advance.cursor, length)
    draft.cursors = FrozenDict({**draft.cursors, advance.cursor: after})
    return AdvanceRecord(advance.when, True, advance.cursor, before, after, length, after >= length, advance.derived)


def _completed_item(advance: AdvanceRecord, draft: Draft, item: Item | None) -> ItemId | None:
    """Return the item that ``advance`` completed, or None if the cursor did not move.

    The completed item is the item of the visit, one of its outer items, or an item of another cursor.
    """
    if not advance.moved:
        return None
    if item is not None and item.cursor == advance.cursor:
        return item.id
    outer_ids = (shown_item.item.id for shown_item in draft.shown if shown_item.item.cursor == advance.cursor)
    return next(outer_ids, (advance.cursor, advance.before, ()))


def check_budget(rules: Rules, draft: Draft, visit: Visit) -> tuple[tuple[Event, ...], Failure | None]:
    """Return the budget events, and a failure if the budget is used up (R20); each warning is reported once (R56)."""
    events = _uncounted_usage_events(rules, draft, visit)
    if (problem := budget_problem(draft)) is not None:
        hint = "raise the budget of this cast (`edit budget N`), then use `retry --limit`"
        return (*events, ev.BudgetLimit(**_budget_rows(draft))), Failure("budget", problem, visit.socket, hint)
    if not draft.warned and is_budget_nearly_used_up(draft):
        draft.warned = True
        events = (*events, ev.BudgetWarning(**_budget_rows(draft)))
    return events, None


def _budget_rows(draft: Draft) -> dict[str, Any]:
    """Return the maximum and the used amount of each limit in the budget; tokens and cost are always included."""
    maxima = [(bound, bound.maximum(draft.budget)) for bound in BOUNDS]
    listed_bounds = [
        (bound, maximum) for bound, maximum in maxima if maximum is not None or bound.quantity in ("tokens", "cost")
    ]
    used_amounts = {str(bound.quantity): bound.used(draft.usage) for bound, _ in listed_bounds}
    return {**used_amounts, **{bound.field: maximum for bound, maximum in listed_bounds}}


def _uncounted_usage_events(rules: Rules, draft: Draft, visit: Visit) -> tuple[Event, ...]:
    """Return an event for each limited quantity that a turn did not report and that has no such event yet."""
    reported_quantities = {bound.quantity for bound in draft.uncounted_quantities}
    new_quantities = tuple(
        UncountedQuantity(bound.quantity, visit.socket, visit.step)
        for bound in BOUNDS
        if bound.quantity not in reported_quantities
        and bound.maximum(draft.budget) is not None
        and bound.unknown_turns(draft.usage)
    )
    draft.uncounted_quantities += new_quantities
    return tuple(ev.BudgetBlind(about=about(rules, visit), of=bound.quantity) for bound in new_quantities)


def route(
    rules: Rules,
    draft: Draft,
    visit: Visit,
    outcome: PendingRoute,
    *,
    events: tuple[Event, ...],
    reading: Reading | None = None,
    effects: OutputEffects = NO_EFFECTS,
) -> Transition:
    """Choose the next socket, and update the rework reasons, the edge counts and the records of a completed item.

    The cast stops instead if a utility reported a failure that no edge handles (R48), or if a limit is exhausted.
    """
    socket_rules = rules.sockets[visit.socket]
    if socket_rules.stops_on_reported_failure and (fault := _reported_failure(socket_rules, draft, outcome)):
        if choose_edge(socket_rules, Result.FAILED, exhausted=False) is None:
            draft.pending_route = None
            decision = decision_of(visit, "failure", None, reading, effects)
            return stop_cast(draft, fault, visit, reading, decision, events=events)
        if fault.undo is not None:  # the item is not done
            draft.cursors = FrozenDict({**draft.cursors, fault.undo: cursor_before_advance(draft, fault.undo)})
        effects = effects._replace(advance=None)
        outcome = outcome._replace(result=Result.FAILED, context=fault.message, exhausted=False, advanced=None)
    choice = _choose_target(rules, draft, visit, outcome)
    failure = None
    if choice.edge is not None:
        failure = count_edge(rules, draft, visit, choice.edge, choice.used, choice.limit)
    elif choice.route is not None:
        failure = count_exit(rules, draft, visit, choice.route)
    _update_item_records(rules, draft, visit, outcome, choice)
    draft.pending_route = None
    reading_or_empty = reading or NO_READING
    decision = Decision(
        visit.step,
        choice.by,
        choice.target,
        visit,
        reading_or_empty if outcome.result in ACCEPTED else reading_or_empty._replace(reason=outcome.context or ""),
        outcome.result,  # the output may be older than this transition, if the budget stopped the cast
        effects,
        choice.checks,
        done=visit.item is not None and visit.item.id == outcome.advanced,
        exhausted=outcome.exhausted,
    )
    if failure:
        return stop_cast(draft, failure, visit, reading, decision._replace(by="failure"), events=events)
    if outcome.detour is not None:
        decision = decision._replace(by="detour", target=outcome.detour)
        return start_detour(rules, draft, visit, choice.target, decision, events=events, reading=reading)
    draft.status, draft.next = "ready", choice.target
    return Transition(draft.freeze(), events, decision, None, reading)


def _update_item_records(rules: Rules, draft: Draft, visit: Visit, outcome: PendingRoute, choice: Choice) -> None:
    """Record the reason for sending work back (R22), and remove the records of a completed item."""
    item, completed_id = visit.item, outcome.advanced
    is_rework = choice.edge is not None and choice.edge.when in REWORK_CONDITIONS
    if is_rework and (item is None or item.id != completed_id):
        draft.rework_reasons = conversation.record_rework_reason(
            draft.rework_reasons, rules.sockets[visit.socket].socket, choice.target, item, outcome, visit.step
        )
    if not is_rework and draft.rework_reasons and outcome.result in ACCEPTED:
        reasons = (entry for entry in draft.rework_reasons if entry.item or entry.target != visit.socket)
        draft.rework_reasons = tuple(reasons)
    if completed_id is None:
        return
    if draft.rework_reasons:
        draft.rework_reasons = tuple(entry for entry in draft.rework_reasons if not lies_in(entry.item, completed_id))
    if draft.answers:
        draft.answers = FrozenDict(
            {key: answer for key, answer in draft.answers.items() if not lies_in(key[1], completed_id)}
        )
    if completed_id not in draft.items and completed_id[0] in rules.cursors:  # never entered, so skipped (R46)
        draft.passed_items = FrozenDict({**draft.passed_items, completed_id: False})
    draft.items = FrozenDict({key: record for key, record in draft.items.items() if not lies_in(key, completed_id)})


def _reported_failure(socket_rules: SocketRules, draft: Draft, outcome: PendingRoute) -> Failure | None:
    """Return the failure that a utility reported in its output, or None if it reported no failure (R48)."""
    value = draft.last_json
    if outcome.result is not Result.NO or not isinstance(value, dict):
        return None
    reports = as_object(value.get("state"))
    failed_names = (name for name, report in reports.items() if isinstance(report, dict) and report.get("ok") is False)
    name = next(failed_names, None)
    if name is None:
        return None
    messages = (reports[name].get("error"), outcome.context, reports[name].get("message"))
    reasons = (message.strip() for message in messages if isinstance(message, str) and message.strip())
    why = next(reasons, f"state.{name} has `ok: false` but no error message")
    advance = socket_rules.socket.advance
    return Failure(
        "utility_failed",
        truncate(why, 800),
        socket_rules.socket.id,
        f"fix the cause that state.{name} describes, then use `retry`; or add a `not_satisfied` edge that handles the failure",
        undo=advance.cursor if advance is not None and outcome.advanced is not None else None,
    )


def _choose_target(rules: Rules, draft: Draft, visit: Visit, outcome: PendingRoute) -> Choice:
    """Choose the next socket: a person's choice first, then the return from a detour, then an exit or edge."""
    return_socket = draft.detours[-1:] if outcome.result in ACCEPTED else ()
    if outcome.target is not None or return_socket:
        draft.detours = draft.detours[:-1]
    if outcome.target is not None:
        return Choice(outcome.target, "person")
    if return_socket:
        return Choice(return_socket[0], "return")
    socket_rules = rules.sockets[visit.socket]
    choice = choose_edge(socket_rules, outcome.result, outcome.exhausted)
    assert choice is not None  # noqa: S101 - a failure that no edge waits for has stopped the cast
    if outcome.exhausted or (visit.item is not None and not socket_rules.has_bounded_edge):
        return choice  # no edge is counted
    return with_uses(rules, socket_rules, draft, visit, choice)


def start_detour(
    rules: Rules,
    draft: Draft,
    visit: Visit,
    return_socket: str,
    decision: Decision,
    *,
    events: tuple[Event, ...],
    reading: Reading | None,
) -> Transition:
    """Enter the detour, which is the target of ``decision``; the cast continues at ``return_socket`` afterwards.

    The limit on edge traversals outside items also applies to detours.
    """
    target = decision.target or END
    failure = count_detour(rules, draft, visit, target)
    draft.detours = (*draft.detours, return_socket)
    if failure:
        return stop_cast(draft, failure, visit, reading, decision._replace(by="failure"), events=events)
    draft.status, draft.next = "ready", target
    return Transition(draft.freeze(), events, decision, None, reading)
