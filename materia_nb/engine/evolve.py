"""How a session changes: the only place where it does, live, resumed and rehearsed alike.

:func:`evolve` folds one event into a session; the functions below it say what an event means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from materia_nb.engine import edit, entering, outputs, recovery
from materia_nb.engine import events as ev
from materia_nb.engine import session_changes as to
from materia_nb.engine.conversation import ToolCall
from materia_nb.engine.item_edits import ListEdit, lay_out
from materia_nb.engine.labels import WHOLE_CAST, Label
from materia_nb.engine.prompt import reworded
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, turns_in
from materia_nb.engine.state import Failure, Pin
from materia_nb.errors import MateriaError
from materia_nb.handoff.approval import Grant
from materia_nb.jsonvalue import FrozenDict


class Unfit(MateriaError):
    """An event that cannot follow on the session: the journal was changed, or another engine wrote it."""

    def __init__(self, event: ev.Event, why: str) -> None:
        super().__init__(
            f"The journal does not fit together: {event.type}, {why}.",
            hint="the config or the journal of this run directory was exchanged or changed",
            kind="damaged_journal",
        )


def begin(rules: Rules, start: ev.CastStart) -> Session:
    """Return the session of a cast that is about to enter its entry socket."""
    state = entering.begin(rules, start.request, start.knowledge, start.state)
    return Session(state, state)


def evolve(rules: Rules, session: Session, event: ev.Event) -> Session:
    """Return the session after an event.

    Raises:
        Unfit: the event cannot follow.
        MateriaError: what it asks for is refused by a rule.
    """
    return _EVOLVE[type(event)](rules, session, event)


def answer_of(event: ev.Output, text: str) -> to.Answer:
    """Return the output that an event tells of, whose text is ``text``."""
    refused = event.error or "it was refused" if isinstance(event, ev.RECOVERY) else None
    process = event.process if isinstance(event, ev.SocketRefused) else ""
    return to.Answer(
        text,
        event.artifact,
        event.usage,
        event.meta,
        event.changed_files,
        refused,
        process,
        event.pinned,
        event.by,
        event.thinking or "",
        event.cut or "",
        event.worked,
    )


def _start(rules: Rules, session: Session, event: ev.SocketStart) -> Session:
    if session.state.status != "ready":
        raise Unfit(event, f"but the cast is {session.state.status}")
    after = to.entered(rules, session, event.ts).session
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
    return to.answered(rules, session, answer, event.ts).session


def _missing(_: Rules, session: Session, event: ev.EvidenceMissing) -> Session:
    return to.latest_changed(session, missing=event.paths)


def _end(rules: Rules, session: Session, event: ev.CastEnd) -> Session:
    status = session.state.status
    if event.ok or event.kind is None:
        if status == "ready":
            return to.entered(rules, session, event.ts).session
        if status != ("complete" if event.ok else "failed"):
            raise Unfit(event, f"but the cast is {status}")
        return session
    if event.kind == "aborted" and status in ("ready", "waiting", "held"):
        return to.aborted(session, event.error or "", event.ts).session
    if status == "waiting" and session.state.at is not None:
        failure = Failure(event.kind, event.error or "", session.state.at.socket, event.hint)
        return to.failed(session, failure, event.ts, event.worked).session
    if status == "ready":
        return to.entered(rules, session, event.ts).session
    return session  # the event before it said so already


def _recast(rules: Rules, session: Session, event: ev.CastRecast) -> Session:
    return to.again(rules, session, recovery.recast, event.ts).session


def _revive(rules: Rules, session: Session, event: ev.CastRevive) -> Session:
    return to.again(rules, session, recovery.revive, event.ts).session


def _by_hand(rules: Rules, session: Session, event: ev.AnsweredByHand) -> Session:
    return to.by_hand(rules, session, event.ts).session


def _skipped(rules: Rules, session: Session, event: ev.SocketSkipped) -> Session:
    if event.item:  # the edit before it has given the item up
        return to.latest_changed(session, skipped=event.note)
    return to.skipped(rules, session, event.note, event.ts).session


def _back(rules: Rules, session: Session, event: ev.CastBack) -> Session:
    if not 0 <= event.step <= len(session.steps):
        raise Unfit(event, f"there is no step {event.step}")
    steps = session.steps.to(event.step)
    state = edit.back_to(steps[-1].after if steps else session.start, session.state)
    left = session.steps[event.step :]
    kept = tuple(one for one in session.edits if one.step < event.step)
    return to.forgetting(session)._replace(
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
    session = to.latest_state(session, outputs.called(session.state, call))._replace(
        calls=_with_call(session.calls, call),
        asking=tuple(one for one in session.asking if one.id != call.id),
    )
    if not begun:
        return to.latest_changed(session, calls=(*of_visit, call))
    # A recast may have begun a call with the same id before; that one stays as it is.
    return to.latest_changed(session, calls=(*of_visit[:this_turn], *_with_call(of_visit[this_turn:], call)))


def _with_call(calls: tuple[ToolCall, ...], call: ToolCall) -> tuple[ToolCall, ...]:
    """Put a call in the place of the one with its id, else behind all."""
    if any(one.id == call.id for one in calls):
        return tuple(call if one.id == call.id else one for one in calls)
    return (*calls, call)


def _asks(_: Rules, session: Session, event: ev.ToolAsked) -> Session:
    worked = to.longer(session.steps[-1].worked, event.worked)
    return to.latest_changed(session, worked=worked)._replace(asking=event.calls)


def _may(_: Rules, session: Session, event: ev.ToolDecided) -> Session:
    return session._replace(asking=event.calls)


def _allowed(_: Rules, session: Session, event: ev.ToolsAllowed) -> Session:
    return session._replace(allowed=frozenset(event.tools))


def _note(_: Rules, session: Session, event: ev.AgentNote) -> Session:
    return to.latest_changed(session, notes=(*session.steps[-1].notes, event.text))


def _spent(_: Rules, session: Session, event: ev.TurnSpent) -> Session:
    session = to.latest_state(session, recovery.spend(session.state, event.usage))
    session = session._replace(spent=(*session.spent, event.usage))
    return to.latest_changed(session, spent=(*session.steps[-1].spent, event.usage))


def _resent(rules: Rules, session: Session, event: ev.TurnResent) -> Session:
    return to.resent(rules, session, event.ts).session


def _refine(_: Rules, session: Session, event: ev.RefinementMessage) -> Session:
    return session._replace(wish=event.text, calls=(), asking=())


def _finalize(rules: Rules, session: Session, event: ev.RefinementFinal) -> Session:
    return to.finalized(rules, session, event.ts).session


def _hold_answered(rules: Rules, session: Session, event: ev.HoldAnswered) -> Session:
    return to.resumed(rules, session, event.text, None, event.ts).session


def _approval(rules: Rules, session: Session, event: ev.ApprovalAnswered) -> Session:
    grant = None
    if event.granted and event.expires is not None:
        grant = Grant(event.approval_id, event.exact_content, event.expires / 1000)
    return to.resumed(rules, session, event.text, grant, event.ts).session


def _decided(rules: Rules, session: Session, event: ev.HoldDecided) -> Session:
    return to.decided(rules, session, event.satisfied, event.target, event.ts).session


def _budget(_: Rules, session: Session, event: ev.BudgetSet) -> Session:
    return session._replace(state=recovery.set_budget(session.state, event.max_tokens, event.max_cost_usd))


def _pinned(_: Rules, session: Session, event: ev.Pinned) -> Session:
    pin = Pin.read({"kind": event.kind, "to": event.to, "text": event.text or "", "visits": event.visits})
    if pin is None:
        raise Unfit(event, "and it is no pin")
    return session._replace(pins=FrozenDict({**session.pins, event.name: pin}))


def _unpinned(_: Rules, session: Session, event: ev.Unpinned) -> Session:
    return session._replace(
        pins=FrozenDict({name: pin for name, pin in session.pins.items() if name != event.name})
    )


def _kept(_: Rules, session: Session, event: ev.SuggestionKept) -> Session:
    return session._replace(kept=(*session.kept, event.suggestion))


def _state_edited(rules: Rules, session: Session, event: ev.StateEdited) -> Session:
    data = edit.patched(session.state.data, event.patch)
    wanted = {path: ListEdit.read(one) for path, one in event.lists.items()}
    laid = lay_out(rules, session.state, data, wanted)
    laid = laid._replace(said=event.said)
    return to.edited(rules, session, laid, event.patch, event.inverse, event.ts)


def _prompt_edited(_: Rules, session: Session, event: ev.PromptEdited) -> Session:
    if session.prompt is None:
        raise Unfit(event, "and there is no prompt")
    return to.asking_instead(session, reworded(session.prompt, event.part, event.text))


def _undone(_: Rules, session: Session, event: ev.EditUndone) -> Session:
    if not session.edits:
        raise Unfit(event, "and there is no edit")
    last = session.edits[-1]
    if last.visit is not None:
        session = to.at_the_visit(session, last.visit)
    session = session._replace(state=last.before, edits=session.edits[:-1])
    return session if last.asked is None else to.asking_instead(session, last.asked)


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
    return session._replace(labels=FrozenDict(labels), labels_before=before)


def _recommitted(rules: Rules, session: Session, event: ev.SocketRecommitted) -> Session:
    if not session.steps or event.text is None:
        raise Unfit(event, "and there is no such step or text")
    return to.recommitted(rules, session, event.text, event.artifact, event.ts).session


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
    ev.AnsweredByHand: _by_hand,
    ev.SocketSkipped: _skipped,
    ev.CastBack: _back,
    ev.ToolCalled: _called,
    ev.ToolAsked: _asks,
    ev.ToolDecided: _may,
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
            ev.AssignmentFailed,
            ev.MateriaRedefined,
            ev.BudgetWarning,
            ev.BudgetLimit,
            ev.BudgetBlind,
            ev.UtilityInput,
            ev.UtilityCommand,
        ),
        _nothing,
    ),
}
