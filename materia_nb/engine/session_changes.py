"""What a transition of the engine changes in a session: its state, the record of its latest step, what is asked.

:mod:`materia_nb.engine.evolve` calls these for events, and :mod:`materia_nb.engine.decide` where it must know the engine's step before it can say
which event it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from materia_nb.engine import edit, entering, outputs, past_states, recovery, routing
from materia_nb.engine.conversation import told_events
from materia_nb.engine.item_edits import Laid
from materia_nb.engine.routing import Step
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Edit, Session, StepRecord, TurnRecord
from materia_nb.engine.state import CastState, Failure, Past, Usage
from materia_nb.handoff.approval import Grant
from materia_nb.jsonvalue import JSON, FrozenDict, frozen

NO_META: Final[Mapping[str, JSON]] = {}
"""What an agent gave beside its answer when it gave nothing: one for all."""


class Answer(NamedTuple):
    """An output: its text, where it is kept, what it cost, what its agent gave beside it, which files changed.

    ``refused`` is why a recorded one was refused; it stays so, whatever the rules are by now.
    ``process`` says how the process of a utility ended, which is told if its output is refused (R23),
    ``pinned`` what it was pinned to, if it was (R40), ``by`` who gave it where a person did after a failure,
    ``thinking`` what its agent thought before (R49), ``cut`` by what it was cut off, if it was (R52),
    and ``worked`` for how many milliseconds it was worked on.
    """

    text: str
    artifact: str | None = None
    usage: Usage | None = None
    meta: Mapping[str, JSON] = NO_META
    changed: tuple[str, ...] = ()
    refused: str | None = None
    process: str = ""
    pinned: str | None = None
    by: str | None = None
    thinking: str = ""
    cut: str = ""
    worked: int | None = None


class Change(NamedTuple):
    """A session after a transition, and the engine's step."""

    session: Session
    step: Step


# -- visits ------------------------------------------------------------------------------


def entered(rules: Rules, session: Session, ts: int) -> Change:
    """Enter the next socket, or come to the end."""
    step = entering.enter(rules, session.state)
    return Change(keep_entry(session, step, ts), step)


def keep_entry(session: Session, step: Step, ts: int) -> Session:
    """Keep the outcome of entering a socket, or of coming to the end."""
    state = step.state
    visit = state.at
    if state.status != "waiting" or visit is None:
        return forgetting(session)._replace(state=state, ending=step.decision, noted_before=0, spent=())
    record = StepRecord(
        visit,
        ts,
        (session.state, state),
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
    step = outputs.output(
        rules,
        session.state,
        answer.text,
        answer.usage,
        session.prompt,
        answer.changed,
        artifact=answer.artifact,
        refused=answer.refused,
        cut=answer.cut,
    )
    if answer.process:
        step = routing.telling(step, answer.process)
    return Change(keep_output(rules, session, step, answer, ts), step)


def keep_output(rules: Rules, session: Session, step: Step, answer: Answer, ts: int) -> Session:
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
        frozen(answer.meta),
        session.spent,
        told_events(step.events, record.at.step, ts) if len(step.events) > 1 else (),
        answer.pinned,
        answer.by,
        answer.thinking,
        answer.cut,
    )
    socket = rules.sockets[record.at.socket].socket
    turns = session.turns
    if not socket.is_utility:
        turns = dict(turns)
        for key in (socket.id, f"materia {socket.materia.id}"):
            turns[key] = turns.get(key, 0) + 1
    spoken = (*session.spoken, turn) if prompt is not None else session.spoken
    return moved(
        session,
        step,
        ts,
        turn,
        worked=answer.worked,
        past=past_states.follows(rules, session, step, turn),
        spoken=spoken,
        wish=None,
        calls=(),
        asking=(),
        spent=(),
        turns=FrozenDict(turns),
    )


def moved(
    session: Session,
    step: Step,
    ts: int,
    turn: TurnRecord | None = None,
    *,
    past: Past | None = None,
    worked: int | None = 0,
    **changes: Any,
) -> Session:
    """Keep a transition of the latest visit, with the ``turn`` that brought it and other changes of the session.

    ``past`` finds its states again, if they follow from that turn alone; ``worked`` is for how long it was worked on.
    """
    state, record = step.state, session.steps.latest
    waits = state.status == "waiting"
    if record is not None:
        turns = record.turns if turn is None else (*record.turns, turn)
        record = record._replace(
            states=past or (record.before, state),
            decision=step.decision or record.decision,
            ended=None if waits else ts,
            turns=turns,
            missing=record.missing if turn is None else (),
            plain=False,
            worked=longer(record.worked, worked),
        )
        changes["steps"] = session.steps.ending_in(record)
    if step.prompt is not None:
        changes |= {"prompt": step.prompt, "wish": None, "calls": (), "asking": ()}
    if waits and state.at is not None:
        changes["mode"] = state.at.mode
    return session._replace(state=state, **changes)


def longer(worked: int | None, more: int | None) -> int | None:
    """Add times at work; with one that is unknown the whole is unknown (R56)."""
    return None if worked is None or more is None else worked + more


def forgetting(session: Session) -> Session:
    """Begin another conversation."""
    return session._replace(wish=None, spoken=(), calls=(), asking=())


# -- stopping, and going on --------------------------------------------------------------


def failed(session: Session, failure: Failure, ts: int, worked: int | None) -> Change:
    """Fail the waiting visit for a reason that the engine cannot know: its process or agent failed."""
    step = recovery.fail(session.state, failure)
    return Change(moved(session, step, ts, worked=worked), step)


def aborted(session: Session, reason: str, ts: int) -> Change:
    """Stop the cast at a person's word."""
    step = recovery.abort(session.state, reason)
    return Change(moved(session, step, ts), step)


def again(
    rules: Rules,
    session: Session,
    transition: Callable[[Rules, CastState], Step],
    ts: int,
) -> Change:
    """Recast or revive; a prompt that tells the whole task begins the visit's conversation anew."""
    step = transition(rules, session.state)
    if step.state.status != "waiting" or (step.prompt is not None and step.prompt.begins):
        session = forgetting(session)
    if session.steps:
        record = session.steps[-1]
        session = session._replace(noted_before=len(record.notes))
        if step.state.status == "waiting":
            session = latest_changed(session, tries=record.tries + 1)
        if any(event.type == "cast_recast" for event in step.events):
            session = latest_changed(session, left=len(record.turns))
    return Change(moved(session, step, ts), step)


def by_hand(rules: Rules, session: Session, ts: int) -> Change:
    """Let the visit where the cast stopped wait for a person's answer in the place of what failed."""
    step = recovery.by_hand(rules, session.state)
    return Change(moved(session._replace(wish=None, asking=()), step, ts), step)


def skipped(rules: Rules, session: Session, note: str, ts: int) -> Change:
    """Go on without the visit where the cast stopped."""
    step = recovery.skip(rules, session.state)
    return Change(latest_changed(moved(session, step, ts), skipped=note), step)


def resent(rules: Rules, session: Session, ts: int) -> Change:
    """Ask a turn that was cut short once more; what it noted then is of the past."""
    step = recovery.resend(rules, session.state)
    record = session.steps[-1]
    session = latest_changed(session, tries=record.tries + 1)._replace(noted_before=len(record.notes))
    return Change(moved(session, step, ts), step)


def finalized(rules: Rules, session: Session, ts: int) -> Change:
    """Ask for the final result of a draft."""
    prompt = session.prompt or entering.prompt_for(rules, session.state)
    step = outputs.finalize(rules, session.state, prompt)
    return Change(moved(session, step, ts), step)


def latest_state(session: Session, state: CastState) -> Session:
    """Take a state that is still that of the latest visit."""
    if state is session.state:
        return session
    states = (session.steps[-1].before, state)
    return latest_changed(session, states=states, plain=False)._replace(state=state)


def latest_changed(session: Session, **changes: Any) -> Session:
    """Change the record of the latest step."""
    record = session.steps[-1]._replace(**changes)
    return session._replace(steps=session.steps.ending_in(record))


# -- a person ------------------------------------------------------------------------------


def resumed(rules: Rules, session: Session, text: str, grant: Grant | None, ts: int) -> Change:
    """Give the agent that holds the cast a person's answer, with consent if that was given (R44)."""
    prompt = session.prompt or session.steps[-1].prompt
    assert prompt is not None  # noqa: S101 - only agents hold a cast, and they were asked
    step = outputs.answered(rules, session.state, text, prompt, grant)
    return Change(moved(session, step, ts), step)


def decided(rules: Rules, session: Session, satisfied: bool | None, target: str | None, ts: int) -> Change:
    """Take the output that is held as a person decides."""
    artifact = session.steps[-1].artifact
    step = outputs.decided(rules, session.state, satisfied=satisfied, target=target, artifact=artifact)
    return Change(moved(session, step, ts), step)


def recommitted(rules: Rules, session: Session, text: str, artifact: str | None, ts: int) -> Change:
    """Decide the last step anew with a corrected output; the original stays beside it."""
    record = session.steps[-1]
    step = edit.recommit(rules, record.before, session.state, text, artifact)
    corrected = (*step.state.changed, f"the output of {record.at.socket}")
    step = step._replace(state=step.state._replace(changed=corrected))
    told = told_events(step.events, record.number, ts)
    turn = TurnRecord("correction", None, text, artifact, step.reading, None, events=told)
    return Change(moved(session, step, ts, turn, ending=None), step)


def edited(
    rules: Rules,
    session: Session,
    laid: Laid,
    patch: tuple[Mapping[str, JSON], ...],
    inverse: tuple[Mapping[str, JSON], ...],
    ts: int,
) -> Session:
    """Keep what a person changed in the state; a waiting agent is asked with it, or its visit ends with its item (R46)."""
    before = session.state
    changed = tuple(dict.fromkeys((*before.changed, *edit.changes_in_words(patch))))
    after = laid.state._replace(changed=changed)
    ends = before.next is None and after.next is not None
    visit = session if ends else None
    patch, inverse = tuple(map(frozen, patch)), tuple(map(frozen, inverse))
    made = Edit(
        ts,
        before.steps,
        patch,
        inverse,
        before,
        after,
        session.prompt,
        FrozenDict(laid.lists),
        laid.said,
        visit,
    )
    session = session._replace(edits=(*session.edits, made))
    if ends:
        record = session.steps[-1]
        was = record.decision or routing.Decision(record.number, "person", None, record.at)
        decision = was._replace(by="person", target=after.next, failure=None)
        session = latest_changed(session, decision=decision, ended=ts, plain=False)
        return forgetting(session)._replace(state=after, noted_before=0, spent=())
    session = session._replace(state=after)
    prompt = edit.prompt_after(rules, after)
    return session if prompt is None else asking_instead(session, prompt)


def at_the_visit(session: Session, then: Session) -> Session:
    """Take back that a visit ended: its record and its conversation are as they were."""
    return session._replace(
        steps=then.steps,
        prompt=then.prompt,
        wish=then.wish,
        spoken=then.spoken,
        calls=then.calls,
        asking=then.asking,
        noted_before=then.noted_before,
        spent=then.spent,
    )


def asking_instead(session: Session, prompt: Any) -> Session:
    """Ask in other words; the record of the step shows what is asked."""
    if session.steps and session.steps[-1].prompt is session.prompt:
        session = latest_changed(session, prompt=prompt)
    return session._replace(prompt=prompt)
