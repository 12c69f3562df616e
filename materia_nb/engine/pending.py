"""What is to be done next with a session: the runner does it, and knows nothing else of the engine's states."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session
from materia_nb.engine.state import Visit

What: TypeAlias = Literal["enter", "utility", "agent", "person"]


class Pending(NamedTuple):
    """One thing that is to be done.

    Attributes:
        what: ``enter`` the next socket, run a ``utility``, ask an ``agent`` a turn, or wait for a ``person``:
            who decides about tool calls or a draft, or for whom the cast is held.
        visit: the visit that owes an output; None for ``enter``.
    """

    what: What
    visit: Visit | None = None


def pending(rules: Rules, session: Session) -> tuple[Pending, ...]:
    """Return what is to be done next; nothing when the cast is over. Several things could go on side by side."""
    state = session.state
    if state.status == "ready":
        return (Pending("enter"),)
    if state.status == "held":
        return (Pending("person", state.at),)
    if state.status != "waiting" or state.at is None:
        return ()
    if rules.sockets[state.at.socket].socket.is_utility:
        return (Pending("utility", state.at),)
    return (Pending("person" if _waits_for_a_person(session, state.at) else "agent", state.at),)


def _waits_for_a_person(session: Session, visit: Visit) -> bool:
    """Whether a person decides before the agent is asked: about tool calls, or about a draft."""
    if any(call.decided is None for call in session.asking):
        return True
    return bool(visit.drafts) and visit.mode == "draft" and session.wish is None
