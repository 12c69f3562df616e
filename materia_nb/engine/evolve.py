"""Apply events to sessions, for live casts, resumed casts, forks, simulations and replays.

:func:`evolve` applies one event to a session. An event of a live cast carries its
:class:`~materia_nb.engine.events.Transition`, so that the transition is not computed twice. For an event from a
journal, the transition is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from materia_nb.engine import edit, entering, outputs, recovery, streams
from materia_nb.engine import events as ev
from materia_nb.engine.conversation import MateriaEvent, ToolCall
from materia_nb.engine.events import Event, ImpossibleEvent, Transition
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import (
    Session,
    StepFiles,
    StepRecord,
    Steps,
    TurnRecord,
    lanes_at_work,
    without_later_steps,
)
from materia_nb.engine.state import BOUNDS, NOTHING, CastState, Failure, Past, Pin, UncountedQuantity, with_working_time
from materia_nb.handoff.base import BASE
from materia_nb.handoff.runtime_rules import Approval
from materia_nb.jsonvalue import FrozenDict, frozen


def begin_session(rules: Rules, start: ev.CastStart) -> Session:
    """Return the initial session of a cast; the cast is ready to enter the entry socket."""
    state = entering.begin(rules, start.request, start.knowledge, start.state)
    return session_at(state)._replace(snapshot_method=start.files)


def session_at(state: CastState) -> Session:
    """Return the initial session of a cast that starts in ``state``."""
    return Session(state, state)


def evolve(rules: Rules, session: Session, event: Event) -> Session:
    """Return the session after an event; an event of a lane changes only the session of that lane (P9).

    Raises:
        ImpossibleEvent: the event is impossible in this session.
        MateriaError: a rule refuses the event.
    """
    if event.lane and type(event) not in _LANE_EVENTS:
        return _evolve_lane(rules, session, event)
    return _EVOLVE[type(event)](rules, session, event)


def fold(rules: Rules, session: Session, events: Iterable[Event]) -> Session:
    """Return the session after several events; raise the same errors as :func:`evolve`."""
    for event in events:
        session = evolve(rules, session, event)
    return session


def session_after(rules: Rules, session: Session, steps: Steps) -> Session:
    """Return the session as it was after the last of ``steps``, which must start with the first step of the cast.

    Fields that cannot be computed from the steps keep their current values. Abandoned steps and undone changes are
    dropped.
    """
    earlier_session = without_later_steps(rules, session, steps)._replace(
        abandoned=(), abandoned_streams=(), kept=(), labels_before=(), asks=0
    )
    if not steps:
        first = session.steps[0] if session.steps else None
        files = first.files.before if first is not None and first.files else session.files
        pins = session.pins if first is None else first.pins
        return earlier_session._replace(pins=pins, files=files, allowed=frozenset(), loop_count=0)
    last = steps[-1]
    return earlier_session._replace(
        prompt=last.prompt,
        earlier_turns=tuple(turn for turn in last.turns if turn.prompt is not None),
        pins=last.pins,
        files=last.files.after if last.files else None,
    )


def without_approvals(session: Session) -> Session:
    """Return the session without the approvals that a person gave for commands and tools."""
    state, visit = session.state, session.state.at
    if visit is not None and visit.approval is not None:
        state = state._replace(at=visit._replace(approval=None))
    return session._replace(state=state, allowed=frozenset())


def _live_transition(session: Session, event: Event) -> Transition | None:
    """Return the transition that a live event carries, or None if the transition starts from another state."""
    transition = event.transition
    return transition if transition is not None and transition.before is session.state else None


# -- lanes -------------------------------------------------------------------------------


def _evolve_lane(rules: Rules, session: Session, event: Event) -> Session:
    lane = streams.lane_of_event(session, event)
    result = _EVOLVE[type(event)](rules, lane.session, event)
    is_retried = lane.status == "failed" and result.state.status != "failed"
    return streams.with_lane(session, lane._replace(session=result, status="waiting" if is_retried else lane.status))


def _apply_lane_end(rules: Rules, session: Session, event: ev.LaneEnded) -> Session:
    lane = streams.lane_of_event(session, event)
    lane_session = lane.session if event.status == "interrupted" else _apply_end(rules, lane.session, event)
    ended_lane = lane._replace(session=lane_session, status=event.status, error=event.error or "", ended=event.ts)
    return streams.with_lane(session, ended_lane)


# -- visits ------------------------------------------------------------------------------


def _apply_start(rules: Rules, session: Session, event: ev.SocketStart) -> Session:
    step = event.transition
    if step is None or step.before is not session.state:
        if session.state.status != "ready":
            raise ImpossibleEvent(event, f"the cast {session.state.status_phrase}")
        step = entering.enter(rules, session.state)
        at = step.state.waiting_at
        key = (event.about.get("socket"), event.about.get("itemKey"), event.visit)
        if at is None or (at.socket, at.item.key if at.item else None, at.visit) != key:
            raise ImpossibleEvent(event, f"the event enters {key[0]}, but the next visit of the cast is different")
    return _enter_socket(rules, session, step, event)


def _enter_socket(rules: Rules, session: Session, step: Transition, event: Event) -> Session:
    """Return the session after entering a socket or, if no socket was entered, after the end of the cast."""
    state, visit = step.state, step.state.at
    entered = session.without_conversation()._replace(state=state, ending=step.decision, noted_before=0, spent=())
    if state.status != "waiting" or visit is None:
        return entered
    record = StepRecord(
        visit,
        event.ts,
        (session.state, state),
        step.prompt,
        step.decision,
        branch=len(session.abandoned),
        pins=session.pins,
        is_recomputable=not step.forced,
        files=StepFiles(session.files, session.files)
        if session.files and (state.scope != BASE if session.prefix else state.scope == BASE)
        else None,  # the changes of a step are unknown in a shared directory, and in one without snapshots
        names=rules.graph.names,
    )
    steps = session.steps.with_step(record)
    return entered._replace(steps=steps, prompt=step.prompt, mode=visit.mode, ending=None)


def _apply_output(rules: Rules, session: Session, event: ev.Output) -> Session:
    step, text = event.transition, event.text
    if text is None:
        raise ImpossibleEvent(event, "the text of the output is missing")
    if step is None or step.before is not session.state:
        at = session.state.waiting_at
        if at is None or event.about.get("socket") != at.socket:
            raise ImpossibleEvent(event, "no visit of this socket is waiting for an output")
        step = output_of(rules, session, event)
        if type(step.events[0]) is not type(event):
            raise ImpossibleEvent(event, f"this output must be recorded as {step.events[0].type}")
    record, prompt = session.steps.latest, session.prompt
    assert record is not None  # noqa: S101 - an output answers the latest step
    turn = TurnRecord(
        session.mode,
        prompt,
        text,
        event.artifact,
        step.reading,
        event.usage,
        session.change_request,
        session.calls,
        frozen(event.meta) if event.meta else NOTHING,
        session.spent,
        _side_events(step, event.ts, record.at.step) if len(step.events) > 1 else (),
        event.pinned,
        event.by,
        event.thinking or "",
        event.cut or "",
        event.worked,
    )
    socket, turns = rules.sockets[record.at.socket].socket, session.turns
    if not socket.is_utility:
        keys = (socket.id, f"materia {socket.materia.id}")
        turns = FrozenDict({**turns, **{key: turns.get(key, 0) + 1 for key in keys}})
    return _apply_transition(
        session,
        step,
        event.ts,
        turn,
        worked=event.worked,
        past=outputs.past_states_of(rules, session, step, turn),
        earlier_turns=(*session.earlier_turns, turn) if prompt is not None else session.earlier_turns,
        change_request=None,
        calls=(),
        open_calls=(),
        spent=(),
        turns=turns,
    )


def output_of(rules: Rules, session: Session, event: ev.Output) -> Transition:
    """Return the transition that an output event causes.

    An output that was recorded as refused stays refused, even if the current rules would accept it.
    """
    return outputs.output(
        rules,
        session.state,
        event.text or "",
        with_working_time(event.worked, event.usage, turns=session.prompt is not None),
        session.prompt,
        event.changed_files,
        artifact=event.artifact,
        refused=event.error or "it was refused" if isinstance(event, ev.RECOVERY) else None,
        cut=event.cut or "",
        process=event.process if isinstance(event, ev.SocketRefused) else "",
    )


def _side_events(step: Transition, ts: int, number: int) -> tuple[MateriaEvent, ...]:
    """Return the side events of an output as records for the session (R39)."""
    return tuple(
        MateriaEvent(
            sequence=event.sequence,
            step=number,
            socket=event.about["socket"],
            visit=event.visit or 0,
            item_key=event.about.get("itemKey"),
            item_label=event.about.get("itemLabel"),
            ts=ts,
            refused=bool(event.refused),
            lane=step.state.lane.name if step.state.lane is not None else "",
            **event.event,
        )
        for event in step.events
        if isinstance(event, ev.SideEventRecorded)
    )


def _apply_transition(
    session: Session,
    step: Transition,
    ts: int,
    turn: TurnRecord | None = None,
    *,
    past: Past | None = None,
    worked: int | None = 0,
    **changes: Any,
) -> Session:
    """Apply a transition to the latest visit, and change further fields of the session.

    Args:
        session: the session before the transition.
        step: the transition.
        ts: the time, in milliseconds since the epoch.
        turn: the record of the output, or None if the transition read no output.
        past: an object that recomputes the states of the visit, or None to store the states.
        worked: the working time in milliseconds, or None if it is unknown.
        changes: new values of further session fields.
    """
    state, record = step.state, session.steps.latest
    if turn is None and worked != 0:  # the transition of an output has counted its time already
        state = state._replace(usage=state.usage.plus(with_working_time(worked)))
    waits = state.status == "waiting"
    if record is not None:
        turns = record.turns if turn is None else (*record.turns, turn)
        record = record._replace(
            states=past or (record.before, state),
            decision=step.decision or record.decision,
            ended=None if waits else ts,
            turns=turns,
            missing=record.missing if turn is None else (),
            is_recomputable=False,
            worked=None if record.worked is None or worked is None else record.worked + worked,
        )
        changes["steps"] = session.steps.with_last(record)
    if step.prompt is not None:
        changes |= {"prompt": step.prompt, "change_request": None, "calls": (), "open_calls": ()}
    if waits and state.at is not None:
        changes["mode"] = state.at.mode
    return session._replace(state=state, **changes)


def _with_latest_state(session: Session, state: CastState) -> Session:
    """Replace the state of the session and of its latest visit."""
    if state is session.state:
        return session
    states = (session.steps[-1].before, state)
    return session.with_latest(states=states, is_recomputable=False)._replace(state=state)


# -- stopping and continuing --------------------------------------------------------------


def _apply_failure(rules: Rules, session: Session, event: ev.SocketFailed) -> Session:
    at = session.state.waiting_at
    if at is None or event.about.get("socket") != at.socket:
        raise ImpossibleEvent(event, "no visit of this socket is waiting")
    failure = Failure(event.kind, event.error, at.socket, event.hint)
    step = _live_transition(session, event) or recovery.fail(rules, session.state, failure)
    return _apply_transition(session, step, event.ts, worked=event.worked)


def _apply_end(rules: Rules, session: Session, event: ev.CastEnd | ev.LaneEnded) -> Session:
    step, state = _live_transition(session, event), session.state
    if event.kind == recovery.ABORTED and state.status in ("ready", "waiting", "held"):
        stop = step or recovery.abort(state, event.error or "")
        if (failure := stop.state.failure) is not None and lanes_at_work(session) is not None:
            stop = stop._replace(state=stop.state._replace(failure=failure._replace(hint=streams.RETRY_LANES)))
        latest, stopped_session = session.steps.latest, _apply_transition(session, stop, event.ts)
        if latest is None or latest.ended is None:
            return stopped_session
        return stopped_session.with_latest(ended=latest.ended)  # a finished step keeps its time
    if state.status == "ready":
        after = _enter_socket(rules, session, step or entering.enter(rules, state), event)
    elif state.status == "waiting" and event.kind is not None and state.at is not None:
        failure = Failure(event.kind, event.error or "", state.at.socket, event.hint)
        after = _apply_transition(session, step or recovery.fail(rules, state, failure), event.ts, worked=event.worked)
    else:  # an earlier event has changed the status already
        after = session if step is None else session._replace(state=step.state)
    status = after.state.status
    if status != "complete" if event.ok else status not in ("failed", "aborted"):
        raise ImpossibleEvent(event, f"the cast is {status}")
    return after


def _continue_with(transition: Callable[[Rules, CastState], Transition]) -> Callable[[Rules, Session, Event], Session]:
    """Return a function that applies the event of a retry or of a raised limit; ``transition`` computes the next state.

    If the next prompt describes the complete task, the conversation starts again.
    """

    def apply_event(rules: Rules, session: Session, event: Event) -> Session:
        if lanes_at_work(session) is not None:
            return streams.with_resumed_lanes(session)
        step = _live_transition(session, event) or transition(rules, session.state)
        if step.state.status != "waiting" or (step.prompt is not None and step.prompt.describes_task):
            session = session.without_conversation()
        record = session.steps.latest
        if record is not None:
            session = session._replace(noted_before=len(record.notes))  # the notes so far belong to earlier tries
            if step.state.status == "waiting":
                session = session.with_latest(attempts=record.attempts + 1)
            if isinstance(event, ev.CastRetried):
                session = session.with_latest(turns_before_retry=len(record.turns))
        return _apply_transition(session, step, event.ts)

    return apply_event


def _apply_answer_by_hand(rules: Rules, session: Session, event: ev.AnsweredByHand) -> Session:
    step = _live_transition(session, event) or recovery.answer_by_hand(rules, session.state)
    return _apply_transition(session._replace(change_request=None, open_calls=()), step, event.ts)


def _apply_skip(rules: Rules, session: Session, event: ev.SocketSkipped) -> Session:
    if not event.item:  # otherwise, the edit before this event has abandoned the item
        step = _live_transition(session, event) or recovery.skip(rules, session.state)
        session = _apply_transition(session, step, event.ts)
    return session.with_latest(skipped=event.note)


def _apply_back(rules: Rules, session: Session, event: ev.CastBack) -> Session:
    if not 0 <= event.step <= len(session.steps):
        raise ImpossibleEvent(event, f"step {event.step} does not exist")
    earlier_session = without_later_steps(rules, session, session.steps.to(event.step))
    abandoned_steps = session.steps[event.step :]
    return earlier_session._replace(
        state=edit.back_to(earlier_session.state, session.state),
        abandoned=(*session.abandoned, abandoned_steps) if abandoned_steps else session.abandoned,
        abandoned_streams=session.abandoned_streams + session.streams[len(earlier_session.streams) :],
    )


# -- reports during a turn -------------------------------------------------------


def _apply_tool_call(_: Rules, session: Session, event: ev.ToolCalled) -> Session:
    """Record a tool call; the record at the end of a call replaces the record at its start."""
    call = event.call
    visit_calls, is_known = session.steps[-1].calls, any(old.id == call.id for old in session.calls)
    turn_start = len(visit_calls) - len(session.calls)
    session = _with_latest_state(session, outputs.use_up_approval(session.state, call))._replace(
        calls=_with_call(session.calls, call), open_calls=tuple(old for old in session.open_calls if old.id != call.id)
    )
    if not is_known:
        return session.with_latest(calls=(*visit_calls, call))
    # An earlier try of this visit may have a call with the same id; that call stays unchanged.
    return session.with_latest(calls=(*visit_calls[:turn_start], *_with_call(visit_calls[turn_start:], call)))


def _with_call(calls: tuple[ToolCall, ...], call: ToolCall) -> tuple[ToolCall, ...]:
    """Replace the call that has the same id, or append ``call`` if no call has this id."""
    calls_by_id = {other.id: other for other in calls} | {call.id: call}
    return tuple(calls_by_id.values())


def _apply_approval_request(_: Rules, session: Session, event: ev.ToolAsked) -> Session:
    before = session.steps[-1].worked
    worked = None if before is None or event.worked is None else before + event.worked
    state = session.state._replace(usage=session.state.usage.plus(with_working_time(event.worked)))
    session = _with_latest_state(session, state).with_latest(worked=worked)
    return session._replace(open_calls=event.calls, asks=session.asks + 1)


def _change_every_session(session: Session, **changes: Any) -> Session:
    """Replace fields of the session and of all lanes, because a person's decision about tools also applies to lanes."""
    session = session._replace(**changes)
    if (open_streams := lanes_at_work(session)) is not None:
        for lane in open_streams.lanes.values():
            session = streams.with_lane(session, lane._replace(session=lane.session._replace(**changes)))
    return session


def _apply_spent_usage(_: Rules, session: Session, event: ev.TurnSpent) -> Session:
    usage = session.state.usage.plus(event.usage)  # it counts, although the turn gave no output (R20)
    session = _with_latest_state(session, session.state._replace(usage=usage))
    session = session._replace(spent=(*session.spent, event.usage))
    return session.with_latest(spent=(*session.steps[-1].spent, event.usage))


# -- answers and decisions of a person ----------------------------------------------------------


def _apply_finalize(rules: Rules, session: Session, event: ev.RefinementFinal) -> Session:
    prompt = session.prompt or entering.prompt_for(rules, session.state)
    step = _live_transition(session, event) or outputs.finalize(rules, session.state, prompt)
    return _apply_transition(session, step, event.ts)


def _apply_approval(rules: Rules, session: Session, event: ev.ApprovalAnswered) -> Session:
    approval = None
    if event.granted and event.expires is not None:
        approval = Approval(event.approval_id, event.exact_content, event.expires / 1000)
    return _resume_turn(rules, session, event.text, approval, event.ts)


def _resume_turn(rules: Rules, session: Session, text: str, approval: Approval | None, ts: int) -> Session:
    """Continue the turn of the held agent with a person's answer or approval of a command (R44)."""
    prompt = session.prompt or session.steps[-1].prompt
    assert prompt is not None  # noqa: S101 - only agents hold a cast, and they were asked
    return _apply_transition(session, outputs.resume_after_answer(rules, session.state, text, prompt, approval), ts)


def _apply_hold_decision(rules: Rules, session: Session, event: ev.HoldDecided) -> Session:
    artifact = session.steps[-1].artifact
    step = _live_transition(session, event) or outputs.complete_held_output(
        rules, session.state, satisfied=event.satisfied, target=event.target, artifact=artifact
    )
    return _apply_transition(session, step, event.ts)


def _apply_budget(_: Rules, session: Session, event: ev.BudgetSet) -> Session:
    maxima = {bound.field: getattr(event, bound.field) for bound in BOUNDS}
    return session._replace(state=recovery.set_budget(session.state, **maxima))


def _apply_pin(_: Rules, session: Session, event: ev.Pinned) -> Session:
    pin = Pin.read({"kind": event.kind, "to": event.to, "text": event.text or "", "visits": event.visits})
    if pin is None:
        raise ImpossibleEvent(event, "the pin is invalid")
    return _change_every_session(session, pins=FrozenDict({**session.pins, event.name: pin}))


def _remove_pin(_: Rules, session: Session, event: ev.Unpinned) -> Session:
    pins = FrozenDict({name: pin for name, pin in session.pins.items() if name != event.name})
    return _change_every_session(session, pins=pins)


# -- edits -------------------------------------------------------------------------------


def _apply_correction(rules: Rules, session: Session, event: ev.OutputEdited) -> Session:
    """Apply a corrected output to the last step, and keep the original output in the record of the step."""
    record, text = session.steps.latest, event.text
    if record is None or text is None:
        raise ImpossibleEvent(event, "the step or its text is missing")
    step = _live_transition(session, event) or edit.edit_output(
        rules, record.before, session.state, text, event.artifact
    )
    side_events = _side_events(step, event.ts, record.number)
    turn = TurnRecord("correction", None, text, event.artifact, step.reading, None, events=side_events)
    edits = tuple(earlier for earlier in session.edits if earlier.step < record.number)  # later events apply the others
    return _apply_transition(session, step, event.ts, turn, ending=None, edits=edits)


def _apply_snapshot(_: Rules, session: Session, event: ev.FilesKept) -> Session:
    record = session.steps.latest
    if event.by == "step" and event.commit and record is not None and record.files is not None:
        names = tuple(dict.fromkeys((*record.files.changed, *event.changed)))
        in_all = max(record.files.in_all, event.in_all, len(names))
        session = session.with_latest(files=StepFiles(record.files.before, event.commit, names, in_all))
    if event.problem and record is not None:
        session = session.with_latest(files=None)  # the changes of the step are unknown
    commit = session.files if event.commit is None else event.commit
    return session._replace(files=commit, folder=event.folder or session.folder)


def _apply_budget_warning(_: Rules, session: Session, __: ev.BudgetWarning) -> Session:
    """Record that the budget warning was reported, unless the output that caused the warning already recorded it."""
    return session if session.state.warned else session._replace(state=session.state._replace(warned=True))


def _apply_uncounted_quantity(_: Rules, session: Session, event: ev.BudgetBlind) -> Session:
    state = session.state
    if any(known_quantity.quantity == event.of for known_quantity in state.uncounted_quantities):
        return session
    new_quantity = UncountedQuantity(
        "cost" if event.of == "cost" else "tokens", str(event.about.get("socket")), state.steps
    )
    return session._replace(state=state._replace(uncounted_quantities=(*state.uncounted_quantities, new_quantity)))


def _ignore_event(_: Rules, session: Session, __: ev.Event) -> Session:
    """Return the session unchanged, because the event only repeats or describes what other events record."""
    return session


_EVOLVE: Final[Mapping[type[ev.Event], Callable[[Rules, Session, Any], Session]]] = {
    ev.CastStart: lambda rules, _, event: begin_session(rules, event),
    ev.SocketStart: _apply_start,
    **dict.fromkeys(ev.OUTPUTS, _apply_output),
    ev.SocketFailed: _apply_failure,
    ev.EvidenceMissing: lambda _, session, event: session.with_latest(missing=event.paths),
    ev.CastEnd: _apply_end,
    ev.CastRetried: _continue_with(recovery.retry),
    ev.LimitRaised: _continue_with(recovery.raise_limit),
    ev.AnsweredByHand: _apply_answer_by_hand,
    ev.SocketSkipped: _apply_skip,
    ev.CastBack: _apply_back,
    ev.ToolCalled: _apply_tool_call,
    ev.ToolAsked: _apply_approval_request,
    ev.ToolDecided: lambda _, session, event: session._replace(open_calls=event.calls),
    ev.ToolsAllowed: lambda _, session, event: _change_every_session(session, allowed=frozenset(event.tools)),
    ev.AgentNote: lambda _, session, event: session.with_latest(notes=(*session.steps[-1].notes, event.text)),
    ev.TurnSpent: _apply_spent_usage,
    ev.TurnRetried: _continue_with(recovery.retry_turn),
    ev.RefinementMessage: lambda _, before, event: before._replace(change_request=event.text, calls=(), open_calls=()),
    ev.RefinementFinal: _apply_finalize,
    ev.HoldAnswered: lambda rules, session, event: _resume_turn(rules, session, event.text, None, event.ts),
    ev.ApprovalAnswered: _apply_approval,
    ev.HoldDecided: _apply_hold_decision,
    ev.BudgetSet: _apply_budget,
    ev.SuggestionKept: lambda _, session, event: session._replace(kept=(*session.kept, event.suggestion)),
    ev.Pinned: _apply_pin,
    ev.Unpinned: _remove_pin,
    ev.OutputEdited: _apply_correction,
    **edit.EVOLVE,
    ev.FilesKept: _apply_snapshot,
    ev.BudgetWarning: _apply_budget_warning,
    ev.BudgetBlind: _apply_uncounted_quantity,
    ev.LaneEnded: _apply_lane_end,
    **streams.EVOLVE_LANES,
    **dict.fromkeys(
        (
            ev.RecoveryRetry,
            ev.SideEventRecorded,
            ev.ScopeChanged,
            ev.AssignmentFailed,
            ev.MateriaRedefined,
            ev.BudgetLimit,
            ev.UtilityInput,
            ev.UtilityCommand,
        ),
        _ignore_event,
    ),
}
_LANE_EVENTS: Final = (ev.LaneStarted, ev.LaneEnded)
"""Event classes that describe the lanes themselves, not the work in a lane."""
