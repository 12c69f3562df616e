"""Commands of a cast, as pure functions: each returns events, or raises MateriaError to refuse the command.

:mod:`~materia_nb.engine.evolve` applies the events and can also refuse an event. A refused command changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Final, NamedTuple

from materia_nb.engine import edit, entering, outputs, recovery, routing, streams
from materia_nb.engine import events as ev
from materia_nb.engine.approvals import calls_awaiting_approval
from materia_nb.engine.cast_warnings import find_warnings
from materia_nb.engine.completing import check_budget
from materia_nb.engine.events import Events, Transition
from materia_nb.engine.evolve import evolve, fold
from materia_nb.engine.item_edits import ListEdit, edit_lists, origins_of
from materia_nb.engine.prompt import replace_part
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Edit, Session, lanes_at_work, lanes_running, name_of_correction, name_of_output
from materia_nb.engine.state import (
    BOUNDS,
    NOTHING,
    CastState,
    Draft,
    Failure,
    Label,
    LabelKey,
    Usage,
    Visit,
    has_limits,
    waiting_visit,
    with_working_time,
)
from materia_nb.errors import MateriaError, counted, usage_error
from materia_nb.handoff.checks import RefusedAnswer
from materia_nb.jsonvalue import JSON, as_list, nested_too_deeply
from materia_nb.loadout.graph import Budget
from materia_nb.loadout.vocabulary import WORK_ITEMS

MAX_WARNINGS: Final = 200
"""Maximum number of warnings in the final event of a cast; the cast object has all warnings."""


class Answer(NamedTuple):
    """An output that an agent, a process or a person returned.

    Attributes:
        text: the output.
        usage: the usage of the turn, or None if it was not reported.
        meta: the metadata of the answer.
        changed: the files that changed during the turn.
        process: a description of how a utility's process ended, for the message if the output is refused (R23).
        pinned: the source of a pinned output, or None (R40).
        by: the person who answered after a failure, or None.
        thinking: the agent's thinking (R49).
        cut: the limit that truncated the output, or "" if the output is complete (R52).
        worked: the working time in milliseconds, or None if it is unknown.
    """

    text: str
    usage: Usage | None = None
    meta: Mapping[str, JSON] = NOTHING
    changed: tuple[str, ...] = ()
    process: str = ""
    pinned: str | None = None
    by: str | None = None
    thinking: str = ""
    cut: str = ""
    worked: int | None = None


# -- steps -------------------------------------------------------------------------------


def enter(rules: Rules, session: Session, ts: int) -> Events:
    """Enter the next socket, distribute items to lanes, join the lanes, or end the cast."""
    if rules.graph.regions and (events := _enter_region(rules, session, ts)):
        return events
    step = entering.enter(rules, session.state)
    if step.state.status == "waiting":
        return step.events_from(session.state, ts)
    end_event, *_ = step.events_from(session.state, ts)
    assert isinstance(end_event, ev.CastEnd)  # noqa: S101 - no socket was entered
    end_event = end_event.replace(step=step.state.steps)
    warnings = [warning.as_json() for warning in find_warnings(rules, evolve(rules, session, end_event))]
    in_all = len(warnings) if len(warnings) > MAX_WARNINGS else None
    return (end_event.replace(warnings=tuple(warnings[:MAX_WARNINGS]) or None, warnings_in_all=in_all),)


def _enter_region(rules: Rules, session: Session, ts: int) -> Events:
    """Return the events that distribute items to lanes or join the lanes, or () if an ordinary socket is next."""
    if (running := lanes_running(session)) is not None:
        return streams.events_of_join(running, ts)
    if (region := streams.next_parallel_region(rules, session)) is None:
        return ()
    schedule = streams.schedule_of(session.state, region)
    stream_rows = tuple({"name": stream.name, "workItemIndexes": list(stream.indexes)} for stream in schedule)
    return (ev.StreamsStarted(loop=region.loop, streams=stream_rows, limit=region.max_concurrency, ts=ts),)


def run_in_lane(rules: Rules, session: Session, name: str, command: Callable[..., Events], *arguments: Any) -> Events:
    """Run a command in a lane and check the budget, which counts the usage of the whole cast (P6).

    Args:
        rules: the rules of the cast.
        session: the session of the cast.
        name: the name of the lane.
        command: the command to run with the lane's session.
        arguments: further arguments of the command; the last one is the time.

    Raises:
        MateriaError: no lane with this name is running (``unknown_lane``), or the command is refused.
    """
    lane, ts = streams.lane_named(session, name), arguments[-1]
    if lane.is_over and lane.status != "failed":
        raise MateriaError(
            f"The lane {name!r} is {lane.status}.", hint="continue the lane with `retry`", kind="lane_over"
        )
    starts = (ev.LaneStarted(lane=name, ts=ts),) if command is enter and lane.status == "waiting" else ()
    events = (*starts, *(streams.event_in_lane(event, name) for event in command(rules, lane.session, *arguments)))
    if any(isinstance(event, ev.SocketComplete | ev.SocketFailed) for event in events):
        events += _check_budget_of_lanes(rules, fold(rules, session, events), name, ts)
    return events


def _check_budget_of_lanes(rules: Rules, session: Session, name: str, ts: int) -> Events:
    """Check the budget of the cast after an output in a lane; a budget that is used up stops all lanes (P6, R20)."""
    open_streams, visit = lanes_at_work(session), streams.lane_named(session, name).session.state.at
    if open_streams is None or visit is None or not has_limits(session.state.budget):
        return ()
    warnings, failure = check_budget(rules, Draft(session.state), visit)
    if failure is None:
        return tuple(event.replace(ts=ts) for event in warnings)
    stop_events = streams.events_of_interruption(open_streams, failure.message, ts)
    failure_events = streams.events_of_failure(open_streams, failure.kind, failure.message, ts)
    return (*(event.replace(ts=ts) for event in warnings), *stop_events, *failure_events)


def answer(rules: Rules, session: Session, reply: Answer, ts: int) -> Events:
    """Return the events that record a new output, which is accepted, refused, put on hold, or stored as a draft."""
    name = name_of_output(session, ev.SocketComplete)
    step = outputs.output(
        rules,
        session.state,
        reply.text,
        with_working_time(reply.worked, reply.usage, turns=session.prompt is not None),
        session.prompt,
        reply.changed,
        artifact=name,
        cut=reply.cut,
        process=reply.process,
    )
    first, *rest = step.events
    assert isinstance(first, ev.Output)  # noqa: S101 - the first event of an output
    target: dict[str, Any] = {}
    if not isinstance(first, ev.SocketComplete):
        name = name_of_output(session, type(first))
    elif step.decision is not None and step.decision.target:
        target = {"next": step.decision.target}
    output = first.replace(
        **target,
        ts=ts,
        transition=step._replace(before=session.state),
        text=reply.text,
        artifact=name,
        usage=reply.usage,
        meta=reply.meta,
        changed_files=reply.changed,
        pinned=reply.pinned,
        by=reply.by,
        thinking=reply.thinking or None,
        cut=reply.cut or None,
        worked=reply.worked,
    )
    return (output, *[event.replace(ts=ts) for event in rest]) if rest else (output,)


def with_missing_evidence(events: Events, paths: tuple[str, ...]) -> Events:
    """Return the events of an output, with an additional event that reports the files ``paths`` as missing."""
    first, *rest = events
    assert isinstance(first, ev.Output)  # noqa: S101 - only outputs name files
    return (first, ev.EvidenceMissing(about=first.about, visit=first.visit, paths=paths, ts=first.ts), *rest)


def fail(rules: Rules, session: Session, failure: Failure, worked: int, ts: int) -> Events:
    """Fail the waiting visit because its agent or process failed; ``worked`` is the working time in milliseconds."""
    first, *rest = recovery.fail(rules, session.state, failure).events_from(session.state, ts)
    if isinstance(first, ev.SocketFailed):
        return (first.replace(worked=worked), *rest)
    assert isinstance(first, ev.CastEnd)  # noqa: S101 - no edge handles the failure
    return (first.replace(hint=failure.hint, worked=worked),)


def abort(_: Rules, session: Session, reason: str, ts: int) -> Events:
    """Abort the cast and its lanes (P7)."""
    if (running := lanes_running(session)) is not None:
        end = ev.CastEnd(ok=False, error=reason, kind=recovery.ABORTED, ts=ts)
        return (*streams.events_of_interruption(running, reason, ts), end)
    return recovery.abort(session.state, reason).events_from(session.state, ts)


def retry(rules: Rules, session: Session, ts: int) -> Events:
    """Retry the socket at which a failed, aborted or held cast stopped, starting with its first prompt.

    If the cast stopped in its lanes, each failed lane is retried.
    """
    return _continue(rules, session, retry, recovery.retry, ts)


def raise_limit(rules: Rules, session: Session, ts: int) -> Events:
    """Raise the exhausted limit and continue a failed or aborted cast."""
    return _continue(rules, session, raise_limit, recovery.raise_limit, ts)


def retry_turn(rules: Rules, session: Session, ts: int) -> Events:
    """Repeat the interrupted turn of an agent; a lane without an interrupted turn retries its socket instead."""
    return _continue(rules, session, _retry_turn_or_socket, recovery.retry_turn, ts)


def _retry_turn_or_socket(rules: Rules, session: Session, ts: int) -> Events:
    try:
        return retry_turn(rules, session, ts)
    except MateriaError:
        return retry(rules, session, ts)


def _continue(
    rules: Rules,
    session: Session,
    command: Callable[..., Events],
    transition: Callable[[Rules, CastState], Transition],
    ts: int,
) -> Events:
    """Return the events with which a stopped cast continues, starting with the event of the transition.

    If the cast stopped in its lanes, also return the events of ``command`` in each failed lane. The schedule does not
    change (P7).
    """
    open_streams = lanes_at_work(session)
    if open_streams is None:
        return transition(rules, session.state).events_from(session.state, ts)
    first = _continue_lanes(rules, session, command, ts)
    failed_lanes = [lane for lane in open_streams.lanes.values() if lane.status == "failed"]
    return (first, *(event for lane in failed_lanes for event in run_in_lane(rules, session, lane.name, command, ts)))


def _continue_lanes(rules: Rules, session: Session, command: Callable[..., Events], ts: int) -> ev.Event:
    """Return the event that continues the failed and interrupted lanes of a cast."""
    state = session.state
    if state.status not in ("failed", "aborted"):
        raise MateriaError("The lanes are running.", hint="continue the lanes with `run`", kind="not_stopped")
    recovery.refuse_exhausted_budget(state)
    about = routing.about(rules, state.at) if state.at is not None else {}
    kind = state.failure.kind if state.failure else ""
    return (
        ev.LimitRaised(about=about, kind=kind, ts=ts) if command is raise_limit else ev.CastRetried(about=about, ts=ts)
    )


def answer_by_hand(rules: Rules, session: Session, ts: int) -> Events:
    """Make the stopped visit wait for an answer from a person instead of its agent or process.

    Raises:
        MateriaError: the cast stopped in its lanes, or not during a visit (``nothing_owed``).
    """
    _refuse_stop_in_lanes(session)
    return recovery.answer_by_hand(rules, session.state).events_from(session.state, ts)


def answer_by_hand_in_lane(rules: Rules, session: Session, name: str, ts: int) -> Events:
    """Make the stopped visit of one lane wait for an answer from a person; other failed lanes stay stopped."""
    first = () if session.state.failure is None else (_continue_lanes(rules, session, answer_by_hand, ts),)
    waits = first and streams.lane_named(session, name).status == "interrupted"
    return first if waits else (*first, *run_in_lane(rules, session, name, answer_by_hand, ts))


def _refuse_stop_in_lanes(session: Session) -> None:
    if lanes_at_work(session) is not None:
        raise MateriaError(
            "The cast stopped in its lanes.",
            hint="use `retry` to continue all lanes that were not accepted, or use `reply` with a lane to answer in that lane",
            kind="nothing_owed",
        )


def skip(rules: Rules, session: Session, note: str, ts: int) -> Events:
    """Continue the cast without the visit at which it stopped; ``note`` is the reason and must not be blank.

    Raises:
        MateriaError: the note is blank (``usage``), or the cast stopped in its lanes (``nothing_owed``).
    """
    _require_note(note)
    _refuse_stop_in_lanes(session)
    step = recovery.skip(rules, session.state)
    first, *rest = step.events_from(session.state, ts)
    assert isinstance(first, ev.SocketSkipped)  # noqa: S101 - the first event of a skip
    return (first.replace(note=note, next=step.state.next or None), *rest)


def skip_item(rules: Rules, session: Session, note: str, ts: int) -> Events:
    """Abandon the item at which the cast stopped and continue with the next item (R46).

    ``note`` is the reason and must not be blank.
    """
    _require_note(note)
    recovery.require_stopped(session.state)
    visit = session.state.at
    items = session.state.data.get(WORK_ITEMS)
    if visit is None or not isinstance(items, list):
        raise MateriaError(
            "The cast did not stop at a work item.", hint="use `skip` without `item` to skip the socket", kind="no_item"
        )
    abandon_events = edit_items(rules, session, items, range(len(items)), ts, abandon=True)
    state = fold(rules, session, abandon_events).state
    if state.failure is not None:
        raise MateriaError("No work item is in progress.", hint="use `skip` without `item`", kind="no_item")
    about = routing.about(rules, visit)
    event = ev.SocketSkipped(about=about, visit=visit.visit, note=note, next=state.next, item=True, ts=ts)
    return (*abandon_events, event)


def _require_note(note: str) -> None:
    if not note.strip():
        raise usage_error("The note is missing.", "write a short reason in the note")


def check_reply(rules: Rules, session: Session, text: str) -> None:
    """Raise RefusedAnswer with all issues if a person's answer breaks the rules, before anything is recorded (R42)."""
    if issues := outputs.check_answer(rules, session.state, text):
        socket = waiting_visit_of(session).socket
        fields = ", ".join(rules.sockets[socket].required_fields)
        wanted_fields = f" The answer must contain {fields}." if fields and issues[0].path == "$" else ""
        raise RefusedAnswer(
            f"{rules.graph.names[socket]} is still waiting, because the answer was refused.{wanted_fields}", issues
        )


def record(_: Rules, __: Session, event: ev.Event, ts: int) -> Events:
    """Return ``event`` with the time ``ts``, without any checks, because the event is valid in every session."""
    return (event.replace(ts=ts),)


def record_in_turn(rules: Rules, session: Session, event: ev.AboutEvent, ts: int) -> Events:
    """Return ``event`` with the socket of the waiting agent and the time; raise MateriaError if no agent is waiting."""
    return (event.replace(about=routing.about(rules, waiting_visit_of(session)), ts=ts),)


# -- drafts ------------------------------------------------------------------------------


def refine(rules: Rules, session: Session, message: str, ts: int) -> Events:
    """Ask the agent to change its draft."""
    visit = waiting_visit_of(session)
    _require_decided_calls(session)
    if visit.mode != "draft" or not visit.drafts:
        message = f"{rules.graph.names[visit.socket]} has no draft to refine."
        hint = "use `refine` only after a multi-turn socket has returned a draft"
        raise MateriaError(message, hint=hint, kind="no_draft")
    return (ev.RefinementMessage(about=routing.about(rules, visit), text=message, ts=ts),)


def finalize(rules: Rules, session: Session, ts: int) -> Events:
    """Ask the agent for the final result of its draft."""
    visit = waiting_visit_of(session)
    _require_decided_calls(session)
    return (ev.RefinementFinal(about=routing.about(rules, visit), ts=ts),)


# -- edits -------------------------------------------------------------------------------


def edit_items(
    rules: Rules,
    session: Session,
    items: list[JSON],
    origins: Sequence[int | None] | None,
    ts: int,
    *,
    again: Sequence[int] = (),
    abandon: bool = False,
) -> Events:
    """Replace the work items (R46).

    Args:
        rules: the rules of the cast.
        session: the session of the cast.
        items: the new work items.
        origins: the old index of each new item, or None for a new item; None to find the old indexes by comparison.
        ts: the current time, in milliseconds since the epoch.
        again: the old indexes of the items to repeat; see :class:`~materia_nb.engine.item_edits.ListEdit`.
        abandon: True to abandon the item in progress.
    """
    edit.check_items(items)
    if origins is None:
        origins = origins_of(as_list(session.state.data.get(WORK_ITEMS)), items)
    list_edits = {WORK_ITEMS: ListEdit(tuple(origins), tuple(again), abandon)}
    return edit_state(rules, session, {**session.state.data, WORK_ITEMS: items}, list_edits, ts)


def edit_state(
    rules: Rules, session: Session, data: Mapping[str, JSON], list_edits: Mapping[str, ListEdit], ts: int
) -> Events:
    """Replace the data of the state.

    A list without an entry in ``list_edits`` is compared with the old list, item by item, to find its changes.
    """
    before = session.state
    _refuse_edit_with_lanes(session)
    if before.status == "complete":
        raise MateriaError(
            "The cast is complete.", hint="use `back STEP` to go back to an earlier step, or fork the cast", kind="over"
        )
    try:
        edit_result = edit_lists(rules, before, data, list_edits)
        patch = edit.patch_between(before.data, edit_result.data)
        inverse = edit.patch_between(edit_result.data, before.data)
    except RecursionError as error:
        raise nested_too_deeply() from error
    if not patch and not edit_result.messages and edit_result.state == before:
        return ()
    lists = {path: list_edit.as_json() for path, list_edit in edit_result.lists.items()}
    step = before.steps
    return (ev.StateEdited(patch=patch, inverse=inverse, step=step, lists=lists, said=edit_result.messages, ts=ts),)


def edit_prompt(rules: Rules, session: Session, part: str, text: str, ts: int) -> Events:
    """Change one part of the waiting prompt. If the turn was interrupted, the changed prompt is sent again."""
    state = session.state
    failure = state.failure
    interrupted_visit = state.at if failure is not None and failure.again and state.status != "waiting" else None
    visit, prompt = interrupted_visit or waiting_visit_of(session), session.prompt
    if prompt is None or rules.sockets[visit.socket].socket.is_utility:
        message = f"{rules.graph.names[visit.socket]} is a utility and has no prompt."
        raise MateriaError(message, hint="edit the state that the utility reads", kind="not_an_agent")
    if session.change_request is not None:
        raise MateriaError(
            "The next prompt is your message about the draft; it is not divided into parts.",
            hint="use `refine` to send another message",
            kind="prompt",
        )
    changed_prompt = replace_part(prompt, part, text)
    retry_events = retry_turn(rules, session, ts) if interrupted_visit is not None else ()
    if changed_prompt == prompt:
        return retry_events
    return (*retry_events, ev.PromptEdited(about=routing.about(rules, visit), part=part, text=text, ts=ts))


def undo(rules: Rules, session: Session, ts: int) -> Events:
    """Undo the last edit; raise MateriaError (``undo``) if the cast has continued since the edit."""
    if not session.edits:
        raise MateriaError("No edit can be undone.", kind="undo")
    if session.edits[-1].after != session.state:
        raise MateriaError(
            "The cast has continued since the last edit.",
            hint="use `back STEP` to go back to the step before the edit",
            kind="undo",
        )
    return (ev.EditUndone(ts=ts),)


def _refuse_edit_with_lanes(session: Session) -> None:
    """Raise MateriaError (``lanes``) while the cast has lanes, because the lanes work on copies of the state."""
    if (open_streams := lanes_at_work(session)) is not None:
        raise MateriaError(
            "The lanes started from an earlier copy of the state, so an edit now would not reach them.",
            hint=f"use `back {open_streams.step}` to go back to the step before the lanes; the items are then distributed again",
            kind="lanes",
        )


def edit_output(rules: Rules, session: Session, text: str, ts: int, *, discard_edits: bool = False) -> Events:
    """Correct the output of the last step, then apply later edits again unless ``discard_edits`` is True (R71)."""
    _refuse_edit_with_lanes(session)
    record = session.steps[-1] if session.steps else None
    if record is None or not record.turns or session.state.status == "waiting":
        raise MateriaError(
            "No step is completed, so no output can be corrected.",
            hint="use `reply` to answer a waiting socket",
            kind="edit_output",
        )
    name = name_of_correction(session)
    step = edit.edit_output(rules, record.before, session.state, text, name)
    first = ev.OutputEdited(step=record.number, text=text, artifact=name)
    kept_events = [
        event
        for event in step.events
        if isinstance(event, ev.SideEventRecorded | ev.ScopeChanged | ev.AssignmentFailed | ev.CastEnd)
    ]
    correction_events = step._replace(events=(first, *kept_events)).events_from(session.state, ts)
    edits = tuple(event for event in session.edits if event.step >= record.number)
    if discard_edits:
        return correction_events
    if edit.total_limit_increase(session.state) > edit.total_limit_increase(record.before):
        raise _lost_edits_error("the raised limit", len(edits) + 1, "")
    return _reapply_edits(rules, session, correction_events, edits, ts)


def back_to(rules: Rules, session: Session, number: int, ts: int, *, discard_edits: bool = False) -> Events:
    """Continue from the state after an earlier step, then apply later edits again (R71).

    Later edits are discarded instead if ``discard_edits`` is True.

    Raises:
        MateriaError: a later edit, corrected output, changed prompt or raised limit cannot be applied to the earlier
            state (``edits_lost``).
    """
    back: Events = (ev.CastBack(step=number, ts=ts),)
    if discard_edits or not 0 <= number <= len(session.steps):
        return back
    edits, lost_changes = edit.edits_since(rules, session, number), edit.describe_lost_changes(rules, session, number)
    if lost_changes:
        raise _lost_edits_error(lost_changes[0], len(edits) + len(lost_changes), "")
    return _reapply_edits(rules, session, back, edits, ts)


def _reapply_edits(rules: Rules, session: Session, events: Events, edits: Sequence[Edit], ts: int) -> Events:
    """Return ``events`` followed by events that apply ``edits`` again to the resulting state."""
    if not edits:
        return events
    after = fold(rules, session, events)
    for index, lost_edit in enumerate(edits):
        try:
            data = edit.reapply_edit(lost_edit, after.state.data)
            edit_events = edit_state(rules, after, data, lost_edit.lists, ts)
            after = fold(rules, after, edit_events)
        except MateriaError as error:
            description = f"your edit of {', '.join(edit.describe_changes(lost_edit.patch)) or 'the work items'} after step {lost_edit.step}"
            raise _lost_edits_error(description, len(edits) - index, str(error)) from error
        events = (*events, *edit_events)
    return events


def _lost_edits_error(description: str, count: int, why: str) -> MateriaError:
    """Return the error for edits that cannot be applied to the earlier state."""
    more = f" {counted(count, 'edit')} would be lost." if count > 1 else ""
    return MateriaError(
        f"Nothing was changed: {description} cannot be applied to the earlier state.{more}{' ' * bool(why)}{why}",
        hint="to continue without the edits, repeat the command with `discard_edits=True` (`--discard-edits`)",
        kind="edits_lost",
    )


def set_budget(rules: Rules, session: Session, budget: Budget, ts: int) -> Events:
    """Change the budget of this cast only (R20)."""
    for bound in BOUNDS:
        maximum: Any = bound.maximum(budget)  # a notebook may pass a value of any type
        types = (int,) if bound.is_integer else (int, float)
        if maximum is None or (type(maximum) in types and 0 <= maximum < inf):
            continue
        shown_value = f"{maximum!r:.40}" if isinstance(maximum, int | float | str) else type(maximum).__name__
        raise MateriaError(
            f"A budget must be a {'whole ' if bound.is_integer else ''}number of {bound.unit}, not {shown_value}.",
            hint="use a number of at least 0, or None for no limit",
            kind="bad_budget",
        )
    maxima: dict[str, Any] = {bound.field: bound.maximum(budget) for bound in BOUNDS}
    return (ev.BudgetSet(**maxima, ts=ts),)


def label(rules: Rules, session: Session, key: LabelKey, new_label: Label, ts: int) -> Events:
    """Set the label of a step or of the cast; return no event if the label does not change."""
    if new_label._replace(by="") == session.labels.get(key, Label())._replace(by=""):
        return ()
    return (_label_event(key, new_label, ts),)


def unlabel(rules: Rules, session: Session, by: str, ts: int) -> Events:
    """Undo the last change to a label."""
    if not session.labels_before:
        raise MateriaError(
            "No label has been set, so no change can be undone.", hint="use `label` to add a label", kind="undo"
        )
    key, before = session.labels_before[-1]
    event = _label_event(key, before, ts).replace(undoes=True, by=before.by or by)
    return (event,)


def _label_event(key: LabelKey, new_label: Label, ts: int) -> ev.Labelled:
    branch, step = key
    return ev.Labelled(branch=branch, step=step, ts=ts, **new_label._asdict())


# -- the waiting visit ------------------------------------------------------------


def waiting_visit_of(session: Session) -> Visit:
    """Return the visit that is waiting for an output; raise MateriaError (``not_waiting``) if no visit is waiting."""
    return waiting_visit(session.state)


def _require_decided_calls(session: Session) -> None:
    if calls_awaiting_approval(session):
        raise MateriaError(
            "Tool calls are waiting for your approval.",
            hint="approve or deny the calls first, or use `reply` to answer instead of the agent",
            kind="asking",
        )
