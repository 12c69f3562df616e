"""Create turns for a model agent, and a model agent that uses the local test server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from materia_nb.agents import ModelAgent
from materia_nb.agents.interface import AgentError, CallEvent, NoteEvent, TextEvent, Turn, UsageEvent
from model_server import ModelServer


class EventRecorder(list[Any]):
    """Records the events that an agent reports, in order."""

    def of(self, kind: type) -> list[Any]:
        return [one for one in self if isinstance(one, kind)]

    @property
    def said(self) -> list[str]:
        return [one.text for one in self.of(TextEvent)]

    @property
    def notes(self) -> list[str]:
        return [one.text for one in self.of(NoteEvent)]

    @property
    def calls(self) -> list[Any]:
        """Return the finished tool calls; calls with side effects are also reported when they begin."""
        return list({one.call.id: one.call for one in self.of(CallEvent)}.values())

    @property
    def spent(self) -> list[Any]:
        return [one.usage for one in self.of(UsageEvent)]


def turn(heard: EventRecorder | None = None, **fields: Any) -> Turn:
    given = {
        "socket_id": "Socket-1",
        "materia_id": "Build",
        "materia_label": "Build",
        "visit": 1,
        "kind": "work",
        "prompt": "Build it",
        "project": Path.cwd(),
        **fields,
    }
    if heard is not None:
        given["report"] = heard.append
    return Turn(**given)


def agent(server: ModelServer, **fields: Any) -> ModelAgent:
    """Return a model agent that uses the server and waits only briefly before a retry."""
    return ModelAgent("openai:tiny", **{"base_url": server.url, "first_pause_s": 0.001, **fields})


def failed(agent: ModelAgent, turn: Turn) -> AgentError:
    """Return the error that the agent raises for a turn."""
    try:
        answer = agent.answer(turn)
    except AgentError as error:
        return error
    raise AssertionError(f"it answered: {answer!r}")
