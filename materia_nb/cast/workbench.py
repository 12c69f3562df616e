"""One notebook's bench: the config in its layers, the loadouts, who answers, and the casts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from materia_nb.agents.interface import Agent
from materia_nb.agents.notebook_agents import AgentLike, FunctionAgent, TurnFunction
from materia_nb.cast import Cast, Prepared
from materia_nb.cast.answerers import Agents, in_their_form
from materia_nb.cast.cast_breakpoints import LoadoutBreakpoints
from materia_nb.cast.dry_bench import DryBench
from materia_nb.cast.library import copy_scripts, spoken
from materia_nb.cast.project_casts import PREVIOUS, Casts
from materia_nb.cast.views.loadout_views import EstimateView, estimated
from materia_nb.errors import MateriaError, needs_one_of
from materia_nb.late import late
from materia_nb.loadout import build_graph
from materia_nb.loadout.compose import compose
from materia_nb.loadout.vocabulary import FILE_CHOICES, FilesWord

if TYPE_CHECKING:
    from materia_nb.loadout.design import Design
    from materia_nb.loadout.graph import Graph

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Workbench(DryBench):
    """Where a person works: load loadouts, say who answers, cast.

    Args:
        project: the directory that utilities and agents work in; where ``.pi/pi-materia.json`` is looked for.
        sync: force every step of a cast to the disk (fsync). Slower; a power failure then loses nothing either.
        bundled: whether the loadouts that come with the package are there too.

    Attributes:
        loadouts: the loadouts and materia that there are, and what is done with them: ``wb.loadouts.copy(...)``.
        agents: who answers, and what is pinned: ``wb.agents.recorded(...)``.
        casts: the casts of the project; ``wb.casts(tag="rain")`` lists some, ``wb.casts.delete(...)`` takes one away.
    """

    def __init__(self, project: str | Path = ".", *, sync: bool = False, bundled: bool = True) -> None:
        super().__init__(project, bundled=bundled)
        self.agents = Agents(self.loadouts, lambda: self.casts)
        self.casts = Casts(self.loadouts, self.agents, sync=sync)
        self.casts.bench = self
        self.pin, self.unpin = self.agents.pin, self.agents.unpin
        self.open, self.resume, self.compare = self.casts.open, self.casts.resume, self.casts.compare
        self.inbox = self.casts.inbox
        self._quests: Any = None

    # -- who answers ----------------------------------------------------------------

    @overload
    def agent(self, name: str, *, executor: Executor | None = None) -> Callable[[_Function], _Function]: ...
    @overload
    def agent(self, name: str, agent: TurnFunction, *, executor: Executor | None = None) -> Agent: ...
    @overload
    def agent(self, name: str, agent: Callable[..., Any], *, executor: Executor) -> Agent: ...
    @overload
    def agent(self, name: str, agent: AgentLike) -> Agent: ...
    def agent(self, name: str, agent: AgentLike | None = None, *, executor: Executor | None = None) -> Any:
        """Choose who answers a socket or materia; ``*`` means everyone not set otherwise.

        Without ``agent`` it is a decorator for a function, sync or async, that returns text or a dict::

            @wb.agent("Build")
            def build(turn):
                return f"built {turn.item_label}"

        With an ``executor`` its workers call the function: any ``concurrent.futures.Executor``, of processes or Dask too.
        """
        if agent is None:
            return self.agents.decorator(name, executor)
        return self.agents.set(name, agent if executor is None else FunctionAgent(agent, executor=executor))

    @overload
    def tool(self, function: _Function) -> _Function: ...
    @overload
    def tool(self, *, name: str | None = None, ask: bool = False) -> Callable[[_Function], _Function]: ...
    def tool(
        self, function: _Function | None = None, *, name: str | None = None, ask: bool = False
    ) -> _Function | Callable[[_Function], _Function]:
        """Let a function be a tool of models, for the materia whose ``tools`` name it.

        It is a decorator, too::

            @wb.tool
            def price(part: str) -> float:
                "What a part costs, in euros."
                return PRICES[part]

        Its parameters and their types are what the model is told, its docstring says what it does; see
        ``function_tool`` in ``materia_nb.agents.tools.more_tools``.

        Args:
            function: sync or async.
            name: another name than its own.
            ask: whether a person is asked before each call, as for ``bash``.
        """

        def added(one: _Function) -> _Function:
            self.agents.add_tool(one, name=name, ask=ask)
            return one

        return added if function is None else added(function)

    @property
    def breakpoints(self) -> LoadoutBreakpoints:
        """Where runs stop in all casts of a loadout: that of the current cast, else the chosen one.

        A file of the project keeps them for the next kernel. ``cast.breakpoints`` changes those of one cast alone::

            wb.breakpoints.add("Socket-3", after=True)
        """
        return self.casts.breakpoints()

    # -- casts ----------------------------------------------------------------------

    def cast(
        self,
        request: str,
        *,
        loadout: str | Design | None = None,
        agents: Mapping[str, AgentLike] | None = None,
        pins: Mapping[str, object] | None = None,
        files: FilesWord | None = None,
    ) -> Cast:
        """Start a cast of the chosen loadout, and show its panel; continue it with buttons, step or run.

        Args:
            request: the request; prompts and utilities read it.
            loadout: a loadout other than the chosen one. A design is cast as it is now, saved or not.
            agents: who answers in this cast only, by socket or materia (``*`` for everyone else).
            pins: what is pinned in this cast only, by socket or materia; see ``wb.agents.pin``.
            files: whether the files of the project are kept after each step (``kept``, ``kept with ignored``); as the config says if
                left out.

        Raises:
            MateriaError: the loadout has problems; an agent is set for a utility (``not_an_agent``), which
                can be pinned; a name is unknown.
        """
        _check_request(request)
        graph = self._graph_of(loadout)
        said = copy_scripts(graph)
        given = self.agents.prepared(graph, agents, pins)
        if files is not None:
            needs_one_of(files, FILE_CHOICES, f"There is no {files!r} for files.", "usage")
            given = given._replace(plan=replace(given.plan, files=files))
        cast = self.casts.start(given, request)
        cast.runner.messages += said
        if loadout is None and (refused := self.loadouts.refused) is not None:
            cast.runner.messages.append(f"casts {graph.name}: {refused} was just defined and cannot be cast")
        return cast

    def _estimate(self, graph: Graph, model: str | None = None, **given: Any) -> EstimateView:
        """Estimate with what is pinned, by the prices of a model, else of the models that are set to answer."""
        pins = {name: chosen.pin for name, chosen in self.agents.pins_for(graph).items()}
        return estimated(self._as_told(graph), self.agents.table(graph), pins, model, **given)

    def _as_told(self, graph: Graph) -> Graph:
        return in_their_form(graph, self.agents.table(graph))

    def link(self, *names: str, request: str, from_cast: str | Path | None = None) -> Cast:
        """Start a cast of materia and loadouts one after another, as one loadout that is kept with the cast only.

        Args:
            names: loadouts and materia, in order; ``loadout:NAME`` or ``materia:NAME`` where a name means both.
            request: what is asked for; every part reads it.
            from_cast: an earlier cast, named as for ``wb.open``; what it was asked and found is in the
                state as ``previous``, cut to a stated size.

        Raises:
            MateriaError: a name is unknown or means two things, a part has problems or cannot have another
                behind it, or there is no such cast.
        """
        _check_request(request)
        config = self.loadouts.config
        made = compose(config.document, names, config.owners)
        graph = spoken(build_graph(made.document, made.name, config.owners))
        data = {} if from_cast is None else {PREVIOUS: self.casts.told_by(from_cast)}
        table = self.agents.table_of_link(made, graph)
        plan = self.casts.plan(in_their_form(graph, table), data)
        return self.casts.start(Prepared(plan, table, self.agents.pins_for(graph)), request)

    @property
    def sweep(self) -> Any:
        """Makes real casts of every loadout with every request and all agents, and checks them: ``wb.sweep(loadouts, requests)``."""
        return late("sweep").Sweeps(self)

    @property
    def current(self) -> Cast:
        """The cast that verbs are about: the one started or opened last."""
        return self.casts.current

    @property
    def cast_(self) -> Cast | None:
        """The cast that verbs are about, or None if there is no cast yet."""
        return self.casts.last

    @property
    def quests(self) -> Any:
        """The board of requests of this project, which are cast one after another."""
        if self._quests is None:
            self._quests = late("quests").QuestBoard(self, self.casts.open_here, lambda: self.casts.root)
        return self._quests

    def close(self) -> None:
        """Let go of every cast that is open for writing; ``with`` does at its end."""
        self.casts.close()

    def __enter__(self) -> Self:
        """Return the workbench."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def _check_request(request: object) -> None:
    if not isinstance(request, str):
        raise MateriaError(
            f"The request must be text, not {type(request).__name__}.", hint="give the request as text"
        )
