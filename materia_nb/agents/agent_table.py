"""Who answers which socket."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from materia_nb.agents.command_agent import PREFIX, CommandAgent, preset_agent
from materia_nb.agents.interface import Agent, AgentError
from materia_nb.agents.model.model_agent import ModelAgent
from materia_nb.agents.notebook_agents import FunctionAgent, PersonAgent, ScriptedAgent

_FORMS: Final = (
    "a function, a dict of replies by socket or materia, "
    'a model ("openai:gpt-5"), a command as a list of strings (["pi", "-p"]), "command:NAME", "person", or an agent'
)


@dataclass(frozen=True, slots=True)
class Assigned:
    """One line of what :meth:`AgentTable.describe` tells; ``name`` is None for the default."""

    name: str | None
    agent: str
    known: bool


class AgentTable:
    """Chooses the agent of a socket: one set for the socket, else for its materia, else the default.

    Names need not exist when they are set, since a loadout may be loaded later.

    Args:
        default: answers where nobody is set; a person if not given.
    """

    def __init__(self, default: object = None) -> None:
        self._default: Agent = PersonAgent() if default is None else agent_from(default)
        self._agents: dict[str, Agent] = {}

    @property
    def default(self) -> Agent:
        """Who answers where nobody is set."""
        return self._default

    @default.setter
    def default(self, agent: object) -> None:
        self._default = agent_from(agent)

    def set(self, name: str, agent: object) -> Agent:
        """Let an agent, or anything that :func:`agent_from` makes one of, answer a socket or materia."""
        if not name:
            raise AgentError("The name of a socket or materia is missing")
        made = self._agents[name] = agent_from(agent)
        return made

    def remove(self, name: str) -> None:
        """Go back to the default for a name; nothing happens when it was not set."""
        self._agents.pop(name, None)

    def for_turn(self, socket_id: str, materia_id: str) -> Agent:
        """Return who answers this materia in this socket."""
        return self._agents.get(socket_id) or self._agents.get(materia_id) or self._default

    def describe(self, known: Iterable[str] | None = None) -> list[Assigned]:
        """Tell who is set for what, the default last.

        Args:
            known: the names of sockets and materia that exist; names outside are marked.
        """
        names = None if known is None else frozenset(known)
        lines = [
            Assigned(name, agent.name, names is None or name in names) for name, agent in self._agents.items()
        ]
        return [*lines, Assigned(None, self._default.name, known=True)]

    def copy(self) -> Self:
        """Return a table that can change without changing this one."""
        new = type(self)(self._default)
        new._agents.update(self._agents)  # noqa: SLF001 - its own class
        return new

    def __repr__(self) -> str:
        return "AgentTable(" + ", ".join(f"{a.name or 'default'}: {a.agent}" for a in self.describe()) + ")"


def agent_from(value: object) -> Agent:
    """Make an agent of what a person gave.

    A function answers itself (:class:`FunctionAgent`), a dict is a script of replies
    (:class:`ScriptedAgent`), a list of strings a command (:class:`CommandAgent`), ``"command:claude"``
    a known program (``PRESETS`` in ``materia_nb.agents.command_agent``), ``"person"`` a person,
    ``"provider:model"`` or a model of pydantic-ai a language model (:class:`ModelAgent`) and
    ``"model"`` whichever model each materia asks for; an agent stays as it is.

    Raises:
        AgentError: it is nothing of the kind, or names a model that cannot be.
    """
    if isinstance(value, Agent) and not isinstance(value, type):
        return value
    if isinstance(value, Mapping):
        return ScriptedAgent(value)
    if isinstance(value, (list, tuple)):
        return CommandAgent(value)
    if isinstance(value, str):
        return _named(value)
    if is_model(value):
        return ModelAgent(value)
    if callable(value) and not isinstance(value, type):
        return FunctionAgent(value)
    raise AgentError(f"A {type(value).__name__} is not an agent", hint=f"give {_FORMS}")


def _named(value: str) -> Agent:
    if value == "person":
        return PersonAgent()
    if value.startswith(PREFIX):
        return preset_agent(value)
    if is_model(value):
        return ModelAgent(None if value == "model" else value)
    raise AgentError(
        f"{value!r} is not an agent",
        hint=f'a command is a list, as {value.split()!r}; "person" is a person, "openai:gpt-5" a model',
    )


def is_model(value: object) -> bool:
    """Whether something stands for a language model: ``model``, ``provider:model``, a model of pydantic-ai."""
    if isinstance(value, str):
        provider, colon, _ = value.partition(":")
        return value == "model" or (bool(colon) and provider != "recorded" and len(value.split()) == 1)
    library = sys.modules.get("pydantic_ai.models")  # whoever has a model of it has loaded it
    return library is not None and isinstance(value, library.Model)
