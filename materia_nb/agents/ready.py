"""Whether an agent could answer, asked before a cast and without asking anybody anything."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from materia_nb.agents.base import AgentError


@runtime_checkable
class TellsReadiness(Protocol):
    """An agent that can see beforehand that it would fail; others are taken to be ready."""

    def not_ready(self, model: str | None, project: Path) -> AgentError | None:
        """Return why it could not answer a materia that asks for ``model``, None when nothing speaks against it.

        Nothing is started, and nothing goes over the network.
        """
        ...
