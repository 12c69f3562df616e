"""The default agent: a person, who answers in a later cell."""

from __future__ import annotations

from dataclasses import dataclass

from materia_nb.agents.base import Reply, Turn


@dataclass(frozen=True, slots=True)
class PersonAgent:
    """Leaves every turn to the person at the notebook."""

    name: str = "person"

    def answer(self, turn: Turn) -> Reply | None:  # noqa: ARG002 - the protocol's signature
        """Return None: the cast stops here and shows the prompt."""
        return None
