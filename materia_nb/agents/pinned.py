"""The answer that a person pinned, in the place of whoever would answer (R40)."""

from __future__ import annotations

from dataclasses import dataclass

from materia_nb.agents.base import Agent, AgentError, Asking, Reply, Turn
from materia_nb.engine.pins import Pin


@dataclass(frozen=True, slots=True)
class PinnedAgent:
    """Answers with what is pinned, the same in each turn of a visit; ``function`` is whom a function's pin asks."""

    pin: Pin
    function: Agent | None = None

    @property
    def name(self) -> str:
        """What it is pinned to."""
        return self.pin.words

    def answer(self, turn: Turn) -> Reply | Asking | None:
        """Return the pinned answer of the turn's visit.

        Raises:
            AgentError: nothing is pinned for this visit (``pin_exhausted``), or the function failed.
        """
        if self.function is not None:
            return self.function.answer(turn)
        text = self.pin.answer(turn.socket_id, turn.visit)
        if text is None:
            raise AgentError(
                f"{turn.socket_id} is pinned to {self.pin.words}, which has no answer for visit {turn.visit}",
                where=turn.socket_id,
                hint=f"unpin {turn.socket_id}, or pin it to something else, then recast",
                kind="pin_exhausted",
            )
        return Reply(text)
