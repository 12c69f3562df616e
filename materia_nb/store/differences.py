"""Where a recorded cast took another route than this engine would, with the reason of the engine."""

from __future__ import annotations

from dataclasses import dataclass

from materia_nb.engine.events import Transition
from materia_nb.engine.routing import Decision, Look
from materia_nb.engine.session import Session
from materia_nb.engine.state import CastState
from materia_nb.errors import counted
from materia_nb.handoff.checks import summarize_issues


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the engine's route is not the recorded one.

    Attributes:
        step: the step whose way on (or whose item) differs, from 1.
        recorded: what the recording did.
        ours: what the engine does.
        why: the engine's reason.
    """

    step: int
    recorded: str
    ours: str
    why: str

    def __str__(self) -> str:
        return f"step {self.step}: recorded {self.recorded}; ours {self.ours}: {self.why}"


def our_route(session: Session, step: Transition | None) -> str:
    """Return what the engine does instead of the recorded route; ``step`` is the result of entering."""
    state = step.state if step else session.state
    visit = state.at
    if state.status == "waiting" and visit is not None:
        return f"goes on to {visit.socket}" if step else f"still waits for an output of {visit.socket}"
    if state.status == "failed" and state.failure is not None:
        return f"fails ({state.failure.kind})"
    if state.status == "ready" and step is None:
        return f"goes on to {state.next}"
    return "ends" if state.status in ("complete", "ready") else f"is {state.status}"


def our_reason(session: Session, step: Transition | None, recorded_error: str = "") -> str:
    """Return the engine's reason for its route; ``recorded_error`` is the error that ended the recording."""
    state = step.state if step else session.state
    if state.failure is not None:
        return state.failure.message
    decision = session.steps[-1].decision if session.steps else None
    if decision is None:
        return (
            "the entry socket of the loadout comes first" if not session.steps else "it has not answered yet"
        )
    if decision.issues:
        return f"the output of {decision.socket} cannot be used: {summarize_issues(decision.issues, 5)}"
    reason = _choice(decision)
    if step is not None and step.decision is not None and step.decision.skipped_sockets:
        reason += f"; {', '.join(step.decision.skipped_sockets)} has no item left and is skipped"
    limit = _limit(session.state, decision, recorded_error)
    return f"{limit}; {reason}" if limit else reason


def _choice(decision: Decision) -> str:
    chosen = decision.chosen
    if chosen is None:
        return f"{decision.socket} has no matching edge or exit, so {decision.target or 'end'} follows"
    return (
        f"the {chosen.kind} of {decision.socket} to {chosen.to} is the first that matches: "
        f"{chosen.reason(decision.result)}"
    )


def _limit(state: CastState, decision: Decision, recorded_error: str) -> str | None:
    """Explain a stop at a limit that this engine counts otherwise (R18) or not at all (R21)."""
    error = recorded_error.lower()
    if "visit limit" in error:
        return "visits are counted here but never limited"
    chosen = decision.chosen
    if "traversal" not in error or chosen is None:
        return None
    return _traversals(state, decision, chosen)


def _traversals(state: CastState, decision: Decision, chosen: Look) -> str | None:
    total = state.traversals.get(f"{decision.socket}->{chosen.to}", 0)
    if chosen.limit is None:
        return (
            f"the recording bounds this edge over the whole cast (chosen {counted(total, 'time')} by now); this engine "
            "bounds edges inside an item only where they have maxTraversals, and rounds without advance otherwise"
        )
    if decision.item_key is None:
        return f"it is chosen for time {(chosen.used or 0) + 1} of {chosen.limit} by this engine's count"
    return (
        f"the recording counts maxTraversals over the whole cast (chosen {counted(total, 'time')} by now, {chosen.limit} "
        f"allowed); this engine counts it for each item, and for item {decision.item_key} this is "
        f"time {(chosen.used or 0) + 1} of {chosen.limit}"
    )
