"""Stop a cast, and continue a stopped cast: retry, raise a limit, let a person answer, or skip the visit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from materia_nb.engine import completing
from materia_nb.engine import events as ev
from materia_nb.engine.completing import route
from materia_nb.engine.entering import answer_format, first_prompt, stop_cast
from materia_nb.engine.events import Event, Transition
from materia_nb.engine.items import cursor_before_advance
from materia_nb.engine.prompt import repair_prompt, repair_prompt_after_resume
from materia_nb.engine.routing import about, budget_problem, choose_edge
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CONTINUATION_HINTS, CastState, Draft, Failure, PendingRoute, Visit, waiting_visit
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import FrozenDict
from materia_nb.loadout.vocabulary import Result

ABORTED: Final = "aborted"
"""Failure kind of a cast that a person aborted."""


def fail(rules: Rules, state: CastState, failure: Failure) -> Transition:
    """Fail the waiting visit because its agent or process failed."""
    visit = waiting_visit(state)
    socket_rules = rules.sockets[visit.socket]
    failure = failure._replace(again=True)
    result = Result.from_failure(failure.kind)
    if choose_edge(socket_rules, result, exhausted=False) is None:
        return stop_cast(Draft(state), failure, visit)
    failed_event = ev.SocketFailed(
        about=about(rules, visit), visit=visit.visit, kind=failure.kind, error=failure.message, hint=failure.hint
    )
    return completing.fail(rules, Draft(state), visit, result, failure, events=(failed_event,))


def abort(state: CastState, reason: str) -> Transition:
    """Abort the cast because a person requested it."""
    failure = Failure(
        ABORTED,
        reason,
        state.at.socket if state.at else None,
        "use `retry` to continue from this socket",
        again=state.status == "waiting",
    )
    visit = state.at and state.at._replace(approval=None)  # the approval of a command is revoked with it
    aborted_state = state._replace(status="aborted", failure=failure, hold=None, at=visit)
    return Transition(aborted_state, (ev.CastEnd(ok=False, error=reason, kind=ABORTED),))


def retry(rules: Rules, state: CastState) -> Transition:
    """Retry the socket at which the cast stopped, in the same visit, starting with its first prompt.

    If the cast stopped after a socket was completed, call :func:`raise_limit` instead.
    """
    require_stopped(state, "held")
    visit = state.at
    if visit is None or state.next is not None or state.pending_route or (state.failure and state.failure.blocked):
        return raise_limit(rules, state)
    socket_rules = rules.sockets[visit.socket]
    visit = visit._replace(
        mode=socket_rules.first_mode, turn=visit.turn + 1, repairs=0, drafts=0, memory=None, approval=None, changed=()
    )
    return _restart_visit(rules, state, visit, ev.CastRetried(about=about(rules, visit)))


def retry_turn(rules: Rules, state: CastState) -> Transition:
    """Repeat the interrupted turn in the same conversation.

    Raises:
        MateriaError: no agent turn was interrupted (``nothing_to_send``).
    """
    require_stopped(state, "held")
    visit, failure = state.at, state.failure
    socket_rules = rules.sockets[visit.socket] if visit else None
    if socket_rules is None or visit is None or socket_rules.socket.is_utility or failure is None or not failure.again:
        raise MateriaError(
            "No agent turn was interrupted, so no turn can be retried.",
            hint="use `retry` to run the socket again, or `retry --limit` to raise an exhausted limit",
            kind="nothing_to_send",
        )
    event = ev.TurnRetried(about=about(rules, visit))
    return Transition(state._replace(status="waiting", failure=None), (event,))


def answer_by_hand(rules: Rules, state: CastState) -> Transition:
    """Make the stopped visit wait for an answer from a person instead of its agent or process.

    The answer is read as the handoff of the visit, no matter which turn was interrupted.

    Raises:
        MateriaError: the cast did not stop during a visit (``nothing_owed``).
    """
    visit = _unanswered_visit(state, "use `edit output` to correct the last output")
    mode = "final" if visit.mode in rules.sockets[visit.socket].free_text_modes else visit.mode
    after = (state.failure or Failure("", "")).kind
    visit = visit._replace(mode=mode, turn=visit.turn + 1, approval=None)
    return Transition(_with_waiting_visit(state, visit), (ev.AnsweredByHand(about=about(rules, visit), after=after),))


def skip(rules: Rules, state: CastState) -> Transition:
    """Skip the stopped visit and follow the first `always` edge, as after an output without a verdict (R3).

    Raises:
        MateriaError: the cast did not stop during a visit (``nothing_owed``).
    """
    visit = _unanswered_visit(state, "use `retry --limit` to continue after an exhausted limit")
    draft = Draft(state._replace(at=visit._replace(approval=None)))
    draft.failure = None
    event = ev.SocketSkipped(about=about(rules, visit), visit=visit.visit)
    without_output = PendingRoute(Result.NOTHING, "", None, False, None, None, None)
    return route(rules, draft, visit, without_output, events=(event,))


def _unanswered_visit(state: CastState, hint: str) -> Visit:
    """Return the visit of a failed or aborted cast that still needs an output."""
    visit, failure = state.at, state.failure
    require_stopped(state)
    if visit is None or failure is None or state.next is not None or state.pending_route or failure.blocked:
        message = "The cast did not stop during a visit, so it needs no answer."
        raise MateriaError(message, hint=hint, kind="nothing_owed")
    return visit


def raise_limit(rules: Rules, state: CastState) -> Transition:
    """Raise the exhausted limit and continue the stopped cast (R18, R19, R20)."""
    require_stopped(state, "held")
    failure, visit = state.failure, state.at
    if state.status == "held":
        raise MateriaError(
            "The cast is held, so no limit can be raised.",
            hint="answer or decide first, or use `retry` to call the agent again",
            kind="not_stopped",
        )
    kind = failure.kind if failure else "passive"
    socket_rules = rules.sockets[visit.socket] if visit else None
    event = ev.LimitRaised(about=about(rules, visit) if visit else {}, kind=kind)
    if failure and failure.blocked:
        extra = state.extra
        if failure.allow:
            key, more = failure.allow
            extra = FrozenDict({**extra, key: extra.get(key, 0) + more})
        continued_state = state._replace(status="ready", next=failure.blocked, failure=None, extra=extra)
        return Transition(continued_state, (event,))
    if socket_rules is None or visit is None or state.next is not None:
        return Transition(state._replace(status="ready", next=state.next or rules.graph.entry, failure=None), (event,))
    if state.pending_route:
        refuse_exhausted_budget(state)
        draft = Draft(state._replace(failure=None))
        return route(rules, draft, visit, state.pending_route, events=(event,))
    if kind == "repair_exhausted":
        turn = ("repair", visit.step)
        state = state._replace(extra=FrozenDict({**state.extra, turn: state.extra.get(turn, 0) + 1}))
        visit = visit._replace(mode="repair", repairs=visit.repairs + 1, turn=visit.turn + 1)
    elif visit.drafts or visit.mode in ("final", "repair", "resume"):  # ask again in the same conversation
        return Transition(state._replace(status="waiting", failure=None), (event,))
    transition = _restart_visit(rules, state, visit, event)
    if failure and failure.refused and transition.prompt:
        keeps_conversation = socket_rules.first_mode in socket_rules.free_text_modes  # drafts and work are kept
        form = answer_format(rules, state, visit, short=keeps_conversation)
        ask_again = repair_prompt if keeps_conversation else repair_prompt_after_resume
        return transition._replace(prompt=ask_again(transition.prompt, form, *failure.refused))
    return transition


def _restart_visit(rules: Rules, state: CastState, visit: Visit, event: Event) -> Transition:
    """Make ``visit`` wait for an output again, starting with its first prompt."""
    prompt = None if rules.sockets[visit.socket].socket.is_utility else first_prompt(rules, state, visit)
    return Transition(_with_waiting_visit(state, visit), (event,), None, prompt)


def _with_waiting_visit(state: CastState, visit: Visit) -> CastState:
    """Return the state in which ``visit`` waits for an output again, with its advance of the cursor undone (R48)."""
    if state.failure is not None and (cursor := state.failure.undo) is not None:
        state = state._replace(cursors=FrozenDict({**state.cursors, cursor: cursor_before_advance(state, cursor)}))
    return state._replace(status="waiting", failure=None, hold=None, at=visit)


def refuse_exhausted_budget(state: CastState) -> None:
    """Raise MateriaError (``budget``) if the budget is used up."""
    if (problem := budget_problem(state)) is not None:
        hint = "raise the budget with `edit budget N`, then use `retry`"
        raise MateriaError(f"The budget is still used up: {problem}", hint=hint, kind="budget")


def set_budget(state: CastState, **maxima: Any) -> CastState:
    """Return the state with a changed budget; a new budget warning can be reported for it."""
    return state._replace(budget=replace(state.budget, **maxima), warned=False)


def require_stopped(state: CastState, *others: str) -> None:
    """Raise MateriaError (``not_stopped``) unless the cast is failed, aborted, or in one of the ``others`` statuses."""
    if state.status not in ("failed", "aborted", *others):
        message = f"The cast is {state.status}, not failed or aborted."
        raise MateriaError(message, hint=CONTINUATION_HINTS[state.status], kind="not_stopped")
