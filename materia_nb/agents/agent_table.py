"""Who answers which socket: one table of a workbench, and one over it for each cast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from materia_nb.agents.interface import Agent, AgentError, name_of
from materia_nb.agents.notebook_agents import AgentLike, PersonAgent, agent_from
from materia_nb.agents.tools.tool import Tool
from materia_nb.late import shown_by_its_view

_EVERYONE: Final = "*"
"""The name of the default: everyone who is not set otherwise."""


class Assigned(NamedTuple):
    """One line of what :meth:`AgentTable.describe` tells; ``name`` is None for the default."""

    name: str | None
    agent: str


class AgentTable:
    """Chooses the agent of a socket: one set for the socket, else for its materia, else the default.

    A table over another one answers by its own entries, its default among them; where it has none that fits, the
    other one answers, as it is by then (R47).

    Args:
        default: answers where nobody is set; if not given, a person, or whom the table below has.
        over: the table below.
        renamed: what sockets and materia are called in the table below, where they have other names here.
        check: called with each name before an agent is set for it; it raises for one that is not known.
    """

    def __init__(
        self,
        default: object = None,
        *,
        over: AgentTable | None = None,
        renamed: Mapping[str, str] | None = None,
        check: Callable[[str], None] | None = None,
    ) -> None:
        self._default = None if default is None else agent_from(default)
        self._agents: dict[str, Agent] = {}
        self._tools: dict[str, Tool] = {}
        self._over, self._renamed, self._check = over, dict(renamed or {}), check

    @property
    def default(self) -> Agent:
        """Who answers where nobody is set."""
        if self._default is not None:
            return self._default
        return PersonAgent() if self._over is None else self._over.default

    @default.setter
    def default(self, agent: object) -> None:
        self._default = agent_from(agent)

    def set(self, name: str, agent: AgentLike) -> Agent:
        """Let an agent, or anything that :func:`agent_from` makes one of, answer a socket or materia, or ``*``: everyone else.

        Raises:
            MateriaError: there is no socket or materia of that name (``unknown_materia``), a process answers there
                (``not_an_agent``), or it is no agent (``bad_agent``).
        """
        if name == _EVERYONE:
            self.default = agent
            return self.default
        if self._check is not None:
            self._check(name)
        if not name:
            raise AgentError("The name of a socket or materia is missing")
        made = self._agents[name] = agent_from(agent)
        return made

    def remove(self, name: str) -> None:
        """Go back to the default for a name, or to the first default for ``*``; nothing happens when it was not set."""
        if name == _EVERYONE:
            self._default = None
        self._agents.pop(name, None)

    def add_tool(self, function: Callable[..., Any], *, name: str | None = None, ask: bool = False) -> Tool:
        """Let a function be a tool of models whose materia name it; see ``function_tool`` in ``materia_nb.agents.tools.more_tools``."""
        from materia_nb.agents.tools.more_tools import function_tool

        made = function_tool(function, name=name, ask=ask)
        self._tools[made.name] = made
        return made

    @property
    def tools(self) -> dict[str, Tool]:
        """The functions that are tools, by name."""
        return {**({} if self._over is None else self._over.tools), **self._tools}

    def for_turn(self, socket_id: str, materia_id: str) -> Agent:
        """Return who answers this materia in this socket."""
        found = self._agents.get(socket_id) or self._agents.get(materia_id) or self._default
        if found is not None or self._over is None:
            return found or self.default
        renamed = self._renamed
        return self._over.for_turn(renamed.get(socket_id, socket_id), renamed.get(materia_id, materia_id))

    def describe(self) -> list[Assigned]:
        """Tell who is set for what, the default last."""
        lines = {name: Assigned(name, name_of(agent)) for name, agent in self._agents.items()}
        below = self._over.describe() if self._over is not None and self._default is None else []
        for name, agent in below:
            for here in self._names_here(name) if name is not None else ():
                lines.setdefault(here, Assigned(here, agent))
        return [*lines.values(), Assigned(None, name_of(self.default))]

    def _names_here(self, below: str) -> list[str]:
        """What is meant here by a name of the table below."""
        found = [here for here, there in self._renamed.items() if there == below]
        return found if below in self._renamed or found else [below]

    def copy(self, check: Callable[[str], None] | None = None) -> AgentTable:
        """Return a table over the same one, that can change without changing this one; names are checked by ``check``."""
        new = AgentTable(over=self._over, renamed=self._renamed, check=check)
        new._default = self._default
        new._agents.update(self._agents)
        new._tools.update(self._tools)
        return new

    def frozen(self) -> AgentTable:
        """Return a copy that no change of the table below reaches."""
        new = self.copy()
        new._over = None if self._over is None else self._over.frozen()  # noqa: SLF001 - its own class
        return new

    _repr_mimebundle_ = shown_by_its_view

    def __repr__(self) -> str:
        return "AgentTable(" + ", ".join(f"{a.name or 'default'}: {a.agent}" for a in self.describe()) + ")"
