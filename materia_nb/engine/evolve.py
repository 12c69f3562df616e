"""How a session changes: the only place where it does, live, resumed and rehearsed alike.

:func:`evolve` folds one event into a session. The functions below it say what an event means; those that a
command needs before its event can be written (which event is it? where does the cast go next?) are public
and give the engine's step beside the session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from materia_nb.engine import edit
from materia_nb.engine import events as ev
from materia_nb.engine import step as engine
from materia_nb.engine.conversation import ToolCall, told_events
from materia_nb.engine.labels import WHOLE_CAST, Label
from materia_nb.engine.prompt import reworded
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Edit, Session, StepRecord, TurnRecord, turns_in
from materia_nb.engine.state import CastState, Failure, Pin, Usage
from materia_nb.errors import MateriaError
from materia_nb.handoff.contract.approval import Grant
from materia_nb.jsonvalue import JSON


class Unfit(MateriaError):
    """An event that cannot follow on the session: the journal was changed, or another engine wrote it."""

    def __init__(self, event: ev.Event, why: str) -> None:
        super().__init__(
            f"The journal does not fit together: {event.type}, {why}.",
            hint="the config or the journal of this run directory was exchanged or changed",
            kind="damaged_journal",
        )


NO_META: Final[Mapping[str, JSON]] = {}
"""What an agent gave beside its answer when it gave nothing: one for all."""


class Answer(NamedTuple):
    """An output: its text, where it is kept, what it cost, what its agent gave beside it, which files changed.

    ``refused`` is why a recorded one was refused; it stays so, whatever the rules are by now.
    ``process`` says how the process of a utility ended, which is told if its output is refused (R23),
    ``pinned`` what it was pinned to, if it was (R40).
    """

    text: str
    artifact: str | None = None
    usage: Usage | None = None
    meta: Mapping[str, JSON] = NO_META
    changed: tuple[str, ...] = ()
    refused: str | None = None
    process: str = ""
    pinned: str | None = None


class Change(NamedTuple):
    """A session after a transition, and the engine's step."""

    session: Session
    step: engine.Step


def begin(rules: Rules, start: ev.CastStart) -> Session:
    """Return the session of a cast that is about to enter its entry socket."""
    state = engine.begin(rules, start.request, start.knowledge, start.state)
    return Session(state, state)


def evolve(rules: Rules, session: Session, event: ev.Event) -> Session:
    """Return the session after an event.

    Raises:
        Unfit: the event cannot follow.
        MateriaError: what it asks for is refused by a rule.
    """
    return _EVOLVE[type(event)](rules, session, event)


# -- visits ------------------------------------------------------------------------------


def entered(rules: Rules, session: Session, ts: int) -> Change:
    """Enter the next socket, or come to the end."""
    step = engine.enter(rules, session.state)
    return Change(keep_entry(session, step, ts), step)


def keep_entry(session: Session, step: engine.Step, ts: int) -> Session:
    """Keep the outcome of entering a socket, or of coming to the end."""
    state = step.state
    visit = state.at
    if state.status != "waiting" or visit is None:
        return _forgetting(session)._replace(state=state, ending=step.decision, noted_before=0, spent=())
    item = visit.item
    record = StepRecord(
        visit.step,
        visit.socket,
        visit.visit,
        item.key if item else None,
        item.label if item else None,
        ts,
        session.state,
        state,
        step.prompt,
        step.decision,
        branch=len(session.abandoned),
        pins=session.pins,
    )
    return session._replace(
        state=state,
        steps=session.steps.adding(record),
        prompt=step.prompt,
        mode=visit.mode,
        wish=None,
        spoken=(),
        calls=(),
        asking=(),
        noted_before=0,
        spent=(),
    )


def answered(rules: Rules, session: Session, answer: Answer, ts: int) -> Change:
    """Take an output of the socket that waits."""
    step = engine.output(
        rules,
        session.state,
        answer.text,
        answer.usage,
        session.prompt,
        answer.changed,
        refused=answer.refused,
    )
    if answer.process:
        step = engine.telling(step, answer.process)
    return Change(keep_output(rules, session, step, answer, ts), step)


def keep_output(rules: Rules, session: Session, step: engine.Step, answer: Answer, ts: int) -> Session:
    """Keep an output and what followed from it."""
    record, prompt = session.steps.latest, session.prompt
    assert record is not None  # noqa: S101 - an output answers the latest step
    turn = TurnRecord(
        session.mode,
        prompt,
        answer.text,
        answer.artifact,
        step.reading,
        answer.usage,
        session.wish,
        session.calls,
        answer.meta,
        session.spent,
        told_events(step.events, record.number, ts) if len(step.events) > 1 else (),
        answer.pinned,
    )
    socket = rules.sockets[record.socket].socket
    turns = session.turns
    if not socket.is_utility:
        turns = dict(turns)
        for key in (socket.id, f"materia {socket.materia.id}"):
            turns[key] = turns.get(key, 0) + 1
    spoken = (*session.spoken, turn) if prompt is not None else session.spoken
    return moved(
        session, step, ts, turn, spoken=spoken, wish=None, calls=(), asking=(), spent=(), turns=turns
    )


def moved(
    session: Session, step: engine.Step, ts: int, turn: TurnRecord | None = None, **changes: Any
) -> Session:
    """Keep a transition of the latest visit, with the ``turn`` that brought it and other changes of the session."""
    state, record = step.state, session.steps.latest
    waits = state.status == "waiting"
    if record is not None:
        turns = record.turns if turn is None else (*record.turns, turn)
        if step.events and step.events[0].type == "socket_complete":
            state = state._replace(last_artifact=turns[-1].artifact if turns else None)
        record = record._replace(
            after=state,
            decision=step.decision or record.decision,
            ended=None if waits else ts,
            turns=turns,
            missing=record.missing if turn is None else (),
        )
        changes["steps"] = session.steps.ending_in(record)
    if step.prompt is not None:
        changes |= {"prompt": step.prompt, "wish": None, "calls": (), "asking": ()}
    if waits and state.at is not None:
        changes["mode"] = state.at.mode
    return session._replace(state=state, **changes)


def _forgetting(session: Session) -> Session:
    """Begin another conversation."""
    return session._replace(wish=None, spoken=(), calls=(), asking=())


# -- stopping, and going on --------------------------------------------------------------


def failed(session: Session, failure: Failure, ts: int) -> Change:
    """Fail the waiting visit for a reason that the engine cannot know: its process or agent failed."""
    step = engine.fail(session.state, failure)
    return Change(moved(session, step, ts), step)


def aborted(session: Session, reason: str, ts: int) -> Change:
    """Stop the cast at a person's word."""
    step = engine.abort(session.state, reason)
    return Change(moved(session, step, ts), step)


def again(
    rules: Rules,
    session: Session,
    transition: Callable[[Rules, CastState], engine.Step],
    ts: int,
) -> Change:
    """Recast or revive; a prompt that tells the whole task begins the visit's conversation anew."""
    step = transition(rules, session.state)
    if step.state.status != "waiting" or (step.prompt is not None and step.prompt.begins):
        session = _forgetting(session)
    if session.steps:
        record = session.steps[-1]
        session = session._replace(noted_before=len(record.notes))
        if step.state.status == "waiting":
            session = _latest(session, tries=record.tries + 1)
        if any(event.type == "cast_recast" for event in step.events):
            session = _latest(session, left=len(record.turns))
    return Change(moved(session, step, ts), step)


def resent(rules: Rules, session: Session, ts: int) -> Change:
    """Ask a turn that was cut short once more; what it noted then is of the past."""
    step = engine.resend(rules, session.state)
    record = session.steps[-1]
    session = _latest(session, tries=record.tries + 1)._replace(noted_before=len(record.notes))
    return Change(moved(session, step, ts), step)


def finalized(rules: Rules, session: Session, ts: int) -> Change:
    """Ask for the final result of a draft."""
    prompt = session.prompt or engine.prompt_for(rules, session.state)
    step = engine.finalize(rules, session.state, prompt)
    return Change(moved(session, step, ts), step)


def _latest_state(session: Session, state: CastState) -> Session:
    """Take a state that is still that of the latest visit."""
    if state is session.state:
        return session
    return _latest(session, after=state)._replace(state=state)


def _latest(session: Session, **changes: Any) -> Session:
    record = session.steps[-1]._replace(**changes)
    return session._replace(steps=session.steps.ending_in(record))


# -- a person ------------------------------------------------------------------------------


def resumed(rules: Rules, session: Session, text: str, grant: Grant | None, ts: int) -> Change:
    """Give the agent that holds the cast a person's answer, with consent if that was given (R44)."""
    prompt = session.prompt or session.steps[-1].prompt
    assert prompt is not None  # noqa: S101 - only agents hold a cast, and they were asked
    step = engine.answered(rules, session.state, text, prompt, grant)
    return Change(moved(session, step, ts), step)


def decided(rules: Rules, session: Session, satisfied: bool | None, target: str | None, ts: int) -> Change:
    """Take the output that is held as a person decides."""
    step = engine.decided(rules, session.state, satisfied=satisfied, target=target)
    return Change(moved(session, step, ts), step)


def recommitted(rules: Rules, session: Session, text: str, artifact: str | None, ts: int) -> Change:
    """Decide the last step anew with a corrected output; the original stays beside it."""
    record = session.steps[-1]
    step = edit.recommit(rules, record.before, session.state, text)
    told = told_events(step.events, record.number, ts)
    turn = TurnRecord("correction", None, text, artifact, step.reading, None, events=told)
    return Change(moved(session, step, ts, turn, ending=None), step)


def edited(
    rules: Rules,
    session: Session,
    after: CastState,
    patch: tuple[Mapping[str, JSON], ...],
    inverse: tuple[Mapping[str, JSON], ...],
    ts: int,
) -> Session:
    """Keep what a person changed in the state; a waiting agent is asked with it."""
    before = session.state
    made = Edit(ts, before.steps, patch, inverse, before, after, session.prompt)
    session = session._replace(state=after, edits=(*session.edits, made))
    prompt = edit.prompt_after(rules, after)
    return session if prompt is None else asking_instead(session, prompt)


def asking_instead(session: Session, prompt: Any) -> Session:
    """Ask in other words; the record of the step shows what is asked."""
    if session.steps and session.steps[-1].prompt is session.prompt:
        session = _latest(session, prompt=prompt)
    return session._replace(prompt=prompt)


# -- events ----------------------------------------------------------------------------------


def answer_of(event: ev.Output, text: str) -> Answer:
    """Return the output that an event tells of, whose text is ``text``."""
    refused = event.error or "it was refused" if isinstance(event, ev.RECOVERY) else None
    process = event.process if isinstance(event, ev.SocketRefused) else ""
    return Answer(
        text, event.artifact, event.usage, event.meta, event.changed_files, refused, process, event.pinned
    )


def _start(rules: Rules, session: Session, event: ev.SocketStart) -> Session:
    if session.state.status != "ready":
        raise Unfit(event, f"but the cast is {session.state.status}")
    after = entered(rules, session, event.ts).session
    at = after.state.at
    meant = (event.about.get("socket"), event.about.get("itemKey"), event.visit)
    found = None if at is None else (at.socket, at.item.key if at.item else None, at.visit)
    if after.state.status != "waiting" or found != meant:
        raise Unfit(event, f"it enters {meant[0]}, and the cast does not")
    return after


def _output(rules: Rules, session: Session, event: ev.Output) -> Session:
    state = session.state
    if state.status != "waiting" or state.at is None or event.about.get("socket") != state.at.socket:
        raise Unfit(event, "and nothing waits for it")
    if event.text is None:
        raise Unfit(event, "and its text is not there")
    answer = answer_of(event, event.text)
    return answered(rules, session, answer, event.ts).session


def _missing(_: Rules, session: Session, event: ev.EvidenceMissing) -> Session:
    return _latest(session, missing=event.paths)


def _end(rules: Rules, session: Session, event: ev.CastEnd) -> Session:
    status = session.state.status
    if event.ok or event.kind is None:
        if status == "ready":
            return entered(rules, session, event.ts).session
        if status != ("complete" if event.ok else "failed"):
            raise Unfit(event, f"but the cast is {status}")
        return session
    if event.kind == "aborted" and status in ("ready", "waiting", "held"):
        return aborted(session, event.error or "", event.ts).session
    if status == "waiting" and session.state.at is not None:
        failure = Failure(event.kind, event.error or "", session.state.at.socket, event.hint)
        return failed(session, failure, event.ts).session
    if status == "ready":
        return entered(rules, session, event.ts).session
    return session  # the event before it said so already


def _recast(rules: Rules, session: Session, event: ev.CastRecast) -> Session:
    return again(rules, session, engine.recast, event.ts).session


def _revive(rules: Rules, session: Session, event: ev.CastRevive) -> Session:
    return again(rules, session, engine.revive, event.ts).session


def _back(rules: Rules, session: Session, event: ev.CastBack) -> Session:
    if not 0 <= event.step <= len(session.steps):
        raise Unfit(event, f"there is no step {event.step}")
    steps = session.steps.to(event.step)
    state = edit.back_to(steps[-1].after if steps else session.start, session.state)
    left = session.steps[event.step :]
    kept = tuple(one for one in session.edits if one.step < event.step)
    return _forgetting(session)._replace(
        state=state,
        steps=steps,
        abandoned=(*session.abandoned, left) if left else session.abandoned,
        edits=kept,
        turns=turns_in(rules, steps),
        prompt=None,
        ending=None,
        noted_before=0,
        spent=(),
    )


def _called(_: Rules, session: Session, event: ev.ToolCalled) -> Session:
    """Keep a tool call; one that changes something is told when it begins, and its result takes that one's place."""
    call = event.call
    begun = any(one.id == call.id for one in session.calls)
    of_visit = session.steps[-1].calls
    this_turn = len(of_visit) - len(session.calls)
    session = _latest_state(session, engine.called(session.state, call))._replace(
        calls=_with_call(session.calls, call),
        asking=tuple(one for one in session.asking if one.id != call.id),
    )
    if not begun:
        return _latest(session, calls=(*of_visit, call))
    # A recast may have begun a call with the same id before; that one stays as it is.
    return _latest(session, calls=(*of_visit[:this_turn], *_with_call(of_visit[this_turn:], call)))


def _with_call(calls: tuple[ToolCall, ...], call: ToolCall) -> tuple[ToolCall, ...]:
    """Put a call in the place of the one with its id, else behind all."""
    if any(one.id == call.id for one in calls):
        return tuple(call if one.id == call.id else one for one in calls)
    return (*calls, call)


def _asks(_: Rules, session: Session, event: ev.ToolAsked | ev.ToolDecided) -> Session:
    return session._replace(asking=event.calls)


def _allowed(_: Rules, session: Session, event: ev.ToolsAllowed) -> Session:
    return session._replace(allowed=frozenset(event.tools))


def _note(_: Rules, session: Session, event: ev.AgentNote) -> Session:
    return _latest(session, notes=(*session.steps[-1].notes, event.text))


def _spent(_: Rules, session: Session, event: ev.TurnSpent) -> Session:
    session = _latest_state(session, engine.spend(session.state, event.usage))
    session = session._replace(spent=(*session.spent, event.usage))
    return _latest(session, spent=(*session.steps[-1].spent, event.usage))


def _resent(rules: Rules, session: Session, event: ev.TurnResent) -> Session:
    return resent(rules, session, event.ts).session


def _refine(_: Rules, session: Session, event: ev.RefinementMessage) -> Session:
    return session._replace(wish=event.text, calls=(), asking=())


def _finalize(rules: Rules, session: Session, event: ev.RefinementFinal) -> Session:
    return finalized(rules, session, event.ts).session


def _hold_answered(rules: Rules, session: Session, event: ev.HoldAnswered) -> Session:
    return resumed(rules, session, event.text, None, event.ts).session


def _approval(rules: Rules, session: Session, event: ev.ApprovalAnswered) -> Session:
    grant = None
    if event.granted and event.expires is not None:
        grant = Grant(event.approval_id, event.exact_content, event.expires / 1000)
    return resumed(rules, session, event.text, grant, event.ts).session


def _decided(rules: Rules, session: Session, event: ev.HoldDecided) -> Session:
    return decided(rules, session, event.satisfied, event.target, event.ts).session


def _budget(_: Rules, session: Session, event: ev.BudgetSet) -> Session:
    return session._replace(state=engine.set_budget(session.state, event.max_tokens))


def _pinned(_: Rules, session: Session, event: ev.Pinned) -> Session:
    pin = Pin.read({"kind": event.kind, "to": event.to, "text": event.text or "", "visits": event.visits})
    if pin is None:
        raise Unfit(event, "and it is no pin")
    return session._replace(pins={**session.pins, event.name: pin})


def _unpinned(_: Rules, session: Session, event: ev.Unpinned) -> Session:
    return session._replace(pins={name: pin for name, pin in session.pins.items() if name != event.name})


def _kept(_: Rules, session: Session, event: ev.SuggestionKept) -> Session:
    return session._replace(kept=(*session.kept, event.suggestion))


def _state_edited(rules: Rules, session: Session, event: ev.StateEdited) -> Session:
    data = edit.patched(session.state.data, event.patch)
    if event.origins is None:
        after = edit.edit_data(session.state, data)
    else:
        items = data.get("workItems")
        if not isinstance(items, list):
            raise Unfit(event, "it edits work items, and there are none")
        after = edit.edit_items(rules, session.state, items, event.origins)
    return edited(rules, session, after, event.patch, event.inverse, event.ts)


def _prompt_edited(_: Rules, session: Session, event: ev.PromptEdited) -> Session:
    if session.prompt is None:
        raise Unfit(event, "and there is no prompt")
    return asking_instead(session, reworded(session.prompt, event.layer, event.text))


def _undone(_: Rules, session: Session, event: ev.EditUndone) -> Session:
    if not session.edits:
        raise Unfit(event, "and there is no edit")
    last = session.edits[-1]
    session = session._replace(state=last.before, edits=session.edits[:-1])
    return session if last.asked is None else asking_instead(session, last.asked)


def _labelled(_: Rules, session: Session, event: ev.Labelled) -> Session:
    key = (event.branch, event.step)
    if key != WHOLE_CAST and not any(
        (one.branch, one.number) == key
        for line in (session.steps[event.step - 1 : event.step], *session.abandoned)
        for one in line
    ):
        raise Unfit(event, f"and there is no step {event.step}")
    label = Label(event.name, event.tags, event.note, event.verdict, event.by)
    labels = {one: said for one, said in session.labels.items() if one != key}
    if not label.empty:
        labels[key] = label
    before = session.labels_before
    if not event.undoes:
        before = (*before, (key, session.labels.get(key, Label())))
    elif not before or before[-1][0] != key:
        raise Unfit(event, "and nothing was said that it could take back")
    else:
        before = before[:-1]
    return session._replace(labels=labels, labels_before=before)


def _recommitted(rules: Rules, session: Session, event: ev.SocketRecommitted) -> Session:
    if not session.steps or event.text is None:
        raise Unfit(event, "and there is no such step or text")
    return recommitted(rules, session, event.text, event.artifact, event.ts).session


def _nothing(_: Rules, session: Session, __: ev.Event) -> Session:
    """For what another event has said already, and for what only tells how a process ran."""
    return session


_EVOLVE: Final[Mapping[type[ev.Event], Callable[[Rules, Session, Any], Session]]] = {
    ev.CastStart: lambda rules, _, event: begin(rules, event),
    ev.SocketStart: _start,
    **dict.fromkeys(ev.OUTPUTS, _output),
    ev.EvidenceMissing: _missing,
    ev.CastEnd: _end,
    ev.CastRecast: _recast,
    ev.CastRevive: _revive,
    ev.CastBack: _back,
    ev.ToolCalled: _called,
    ev.ToolAsked: _asks,
    ev.ToolDecided: _asks,
    ev.ToolsAllowed: _allowed,
    ev.AgentNote: _note,
    ev.TurnSpent: _spent,
    ev.TurnResent: _resent,
    ev.RefinementMessage: _refine,
    ev.RefinementFinal: _finalize,
    ev.HoldAnswered: _hold_answered,
    ev.ApprovalAnswered: _approval,
    ev.HoldDecided: _decided,
    ev.BudgetSet: _budget,
    ev.SuggestionKept: _kept,
    ev.Pinned: _pinned,
    ev.Unpinned: _unpinned,
    ev.StateEdited: _state_edited,
    ev.PromptEdited: _prompt_edited,
    ev.EditUndone: _undone,
    ev.SocketRecommitted: _recommitted,
    ev.Labelled: _labelled,
    **dict.fromkeys(
        (
            ev.RecoveryRetry,
            ev.MateriaTold,
            ev.MateriaRedefined,
            ev.BudgetWarning,
            ev.BudgetLimit,
            ev.UtilityInput,
            ev.UtilityCommand,
        ),
        _nothing,
    ),
}
