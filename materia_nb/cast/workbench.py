"""The workbench of a notebook: loadouts, agents and casts; and a workbench without agents and casts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from materia_nb.agents.interface import Agent
from materia_nb.agents.model_agent import ModelAgent
from materia_nb.agents.notebook_agents import AgentLike, AgentTable
from materia_nb.cast import Cast, Prepared
from materia_nb.cast.agents_api import Agents, in_their_form
from materia_nb.cast.cast_breakpoints import LoadoutBreakpoints
from materia_nb.cast.library import Loadouts, copy_scripts, require_known_protocols
from materia_nb.cast.project_casts import PREVIOUS, Casts
from materia_nb.cast.views.loadout_views import (
    EstimateView,
    ExploreView,
    OddsView,
    PromptsView,
    SimulationView,
    estimated,
    loadouts_view,
)
from materia_nb.display.blocks import Block, Shown
from materia_nb.errors import MateriaError, needs_one_of
from materia_nb.handoff.base import SAMPLE
from materia_nb.insight.estimate import DEFAULT_CASTS, QUICK_CASTS, Prompts
from materia_nb.insight.odds import Assumptions, Chances, PerSocket, simulate_casts
from materia_nb.insight.reachable_states import MAX_STATES
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import build_graph
from materia_nb.loadout.compose import compose
from materia_nb.loadout.config_files import resolved
from materia_nb.loadout.vocabulary import FILE_CHOICES, FilesWord
from materia_nb.platform import Progress
from materia_nb.registry import lookup

if TYPE_CHECKING:
    from materia_nb.cast.gallery import Gallery, Opened
    from materia_nb.loadout.design import Design
    from materia_nb.loadout.graph import Graph


class DryBench(Shown):
    """The loadouts of a project without agents and casts: nothing that is asked of it can reach a model or start a process.

    Args:
        project: the directory where ``.pi/pi-materia.json`` is looked for.
        bundled: whether the loadouts that come with the package are there too.

    Attributes:
        loadouts: the loadouts and materia that there are, and what is done with them.
    """

    def __init__(self, project: str | Path = ".", *, bundled: bool = True) -> None:
        self.loadouts = Loadouts(resolved(project), bundled=bundled)
        # What is typed daily, without the member that does it.
        self.load, self.use, self.check = self.loadouts.load, self.loadouts.use, self.loadouts.check
        self.graph, self.design = self.loadouts.graph, self.loadouts.design

    def __repr__(self) -> str:
        """Return the project and the chosen loadout; the same in every run."""
        return f"<workbench of {self.project.name}: {self.loadouts.chosen or 'no loadout'} chosen>"

    @property
    def title(self) -> str:
        """The title of its frame in a notebook."""
        return repr(self)

    def _blocks(self) -> list[Block]:
        return [loadouts_view(self.loadouts, self.loadouts.chosen, self.loadouts.config)]

    @property
    def project(self) -> Path:
        """The project directory; make another workbench for another project."""
        return self.loadouts.project

    def explore(
        self,
        loadout: str | None = None,
        items: Sequence[int] | int = range(4),
        *,
        states: int = MAX_STATES,
        progress: Progress = False,
    ) -> ExploreView:
        """Look at every way that casts of a loadout can go; nobody is asked and no process runs.

        Args:
            loadout: which loadout; the chosen one by default.
            items: how long the lists are that are tried.
            states: after how many states the search is cut off: then what was not seen is not known, and it says so. No
                clock counts, so the same call finds the same on any machine; an interrupt ends it with what it has found.
            progress: whether a bar is shown; or a function that is called with how many states were looked
                at and how many are known so far. It is told of the odds of another length too.

        Raises:
            MateriaError: the loadout has problems, or a socket takes no scripted answer (``no_answer``).
        """
        graph = self.graph(loadout)

        def estimated(length: int) -> EstimateView:
            return self._estimate(graph, items=length, casts=QUICK_CASTS)

        return ExploreView(graph, items, states, progress=progress, document=graph.document, estimated=estimated)

    def odds(
        self,
        loadout: str | None = None,
        satisfied: Chances = 0.5,
        items: int = 3,
        **assumed: Unpack[Assumptions],
    ) -> OddsView:
        """Return how likely each end of a cast is, and what a cast takes on average; nobody is asked.

        The arguments after the loadout are those of an exploration's ``odds``; raises as :meth:`explore` and that do.
        """
        return self.explore(loadout, (items,)).odds(satisfied, items, **assumed)

    def _as_told(self, graph: Graph) -> Graph:
        """Return a loadout whose prompts are written as for whoever would answer."""
        return graph

    def _graph_of(self, loadout: str | Design | None) -> Graph:
        """Return the resolved loadout of that name, or of a design as it is now."""
        if isinstance(loadout, str) or loadout is None:
            return self.graph(loadout)
        return require_known_protocols(build_graph(loadout.whole, loadout.name, self.loadouts.config.owners))

    def estimate(
        self,
        loadout: str | Design | None = None,
        request: str = SAMPLE,
        items: int | Sequence[JSON] = 3,
        satisfied: Chances = 0.5,
        *,
        failed: PerSocket = 0.0,
        answer: PerSocket | None = None,
        model: str | None = None,
        casts: int = DEFAULT_CASTS,
    ) -> EstimateView:
        """Estimate the turns, tokens and cost of a cast before it begins; nobody is asked and nothing is started.

        Casts by chance are measured: each prompt as it would be, and made-up answers. What is pinned costs nothing. Prices
        are those known of the models that are set to answer; where none is known, the cost is not known either, which is
        not nothing (R56).

        Args:
            loadout: which loadout; the chosen one by default. A design is taken as it is now.
            request: the request.
            items: how long every list is, or the work items themselves.
            satisfied: the chance that an output says ``satisfied: true``; see :meth:`simulate`.
            failed: the chance that an agent or process fails, where an edge waits for that.
            answer: how many tokens an answer has, for all or by socket or materia; the fewest possible if left out.
            model: count with the prices of this model, ``provider:model``, whoever answers.
            casts: how many casts it is made from; the numbers are the same every time.

        Raises:
            MateriaError: the loadout has problems, a chance is missing or none (``bad_chance``), or a socket takes no
                scripted answer (``no_answer``).
        """
        assumptions = {
            "request": request,
            "items": items,
            "satisfied": satisfied,
            "failed": failed,
            "answer": answer,
            "casts": casts,
        }
        return self._estimate(self._graph_of(loadout), model, **assumptions)

    def _estimate(self, graph: Graph, model: str | None = None, **assumptions: Any) -> EstimateView:
        """Estimate with the prices of a model, or else of the models that the materia ask for."""
        return estimated(graph, AgentTable(ModelAgent()), {}, model, **assumptions)

    def simulate(
        self,
        loadout: str | None = None,
        n: int = 1000,
        satisfied: Chances = 0.5,
        items: int = 3,
        seed: int = 1,
        *,
        failed: PerSocket = 0.0,
        progress: Progress = False,
    ) -> SimulationView:
        """Cast a loadout many times in memory with stub agents that answer by chance.

        Args:
            loadout: which loadout; the chosen one by default.
            n: how many casts.
            satisfied: the chance that an output says ``satisfied: true``, or a pair of that and the chance that it
                says nothing: one for all, or by socket or materia (``*`` for all others). An agent that is not asked
                for ``satisfied`` says nothing, unless it is named.
            items: how long every list is.
            seed: what the chances are drawn from; the same seed gives the same numbers.
            failed: the chance that an agent or process fails, where an edge waits for that: for all, or by socket or
                materia.
            progress: whether a bar is shown; or a function that is called with how many casts are done
                and how many there are, and ends the simulation if it raises.

        Raises:
            MateriaError: the loadout has problems, or a chance is missing or none (``bad_chance``).
        """
        graph = self.graph(loadout)
        simulation = simulate_casts(graph, n, satisfied, items, seed, failed=failed, progress=progress)
        return SimulationView(**vars(simulation))

    def prompts(
        self,
        loadout: str | None = None,
        request: str = SAMPLE,
        items: int | Sequence[JSON] = 3,
        contexts: Sequence[JSON] = (),
        *,
        rework: bool = False,
        later: bool = False,
    ) -> PromptsView:
        """Show every prompt of a scripted cast, with its size, before anything is paid; nobody is asked.

        The answers are the shortest that are satisfied. A prompt of a real cast has the longer answers of those
        before; ``wb.agents.ask`` tries one socket on values of your own.

        Args:
            loadout: which loadout; the chosen one by default.
            request: the request.
            items: how long every list is, or the work items themselves.
            contexts: ``castContext`` to be laid side by side, each in place of those of the loadout.
            rework: whether each socket that can send work back does so at its first visit.
            later: whether later turns are shown too: of conversations, and what each socket would be told at its first
                visit if its answer could not be used (drafts aside); these count too.

        Raises:
            MateriaError: the loadout has problems, a socket takes no scripted answer (``no_answer``), or one of
                ``contexts`` is none (``usage``).
        """
        graph = self._as_told(self.graph(loadout))
        casts = [Prompts(graph, request, items, count, rework=rework, later=later) for count in contexts or (None,)]
        return PromptsView(casts)

    @overload
    def gallery(self) -> Gallery: ...
    @overload
    def gallery(self, name: str) -> Opened: ...
    def gallery(self, name: str | None = None) -> Gallery | Opened:
        """List eleven patterns and ten classic mistakes; with a name, write that one as a notebook next to this one.

        ``wb.gallery()["critic-loop"]`` is a card with its loadout, answers and tests, and writes nothing.

        Args:
            name: the card to open, as NAME.ipynb in the project directory; all are listed if left out.

        Raises:
            MateriaError: there is no such card (``unknown_card``), or there is such a file (``exists``).
        """
        from materia_nb.cast.gallery import gallery, open_card

        return gallery() if name is None else open_card(gallery()[name], self.project)


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
    def agent(self, name: str) -> Callable[[_Function], _Function]: ...
    @overload
    def agent(self, name: str, agent: AgentLike) -> Agent: ...
    def agent(self, name: str, agent: AgentLike | None = None) -> Any:
        """Choose who answers a socket or materia; ``*`` means everyone not set otherwise.

        Without ``agent`` it is a decorator for a function, sync or async, that returns text or a dict::

            @wb.agent("Build")
            def build(turn):
                return f"built {turn.item_label}"
        """
        return self.agents.decorator(name) if agent is None else self.agents.set(name, agent)

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

        def decorate(decorated: _Function) -> _Function:
            self.agents.add_tool(decorated, name=name, ask=ask)
            return decorated

        return decorate if function is None else decorate(function)

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
        notes = copy_scripts(graph)
        prepared = self.agents.prepared(graph, agents, pins)
        if files is not None:
            needs_one_of(files, FILE_CHOICES, f"files cannot be {files!r}.", "usage")
            prepared = prepared._replace(plan=replace(prepared.plan, files=files))
        if loadout is None and (refused := self.loadouts.refused) is not None:
            notes.append(f"casts {graph.name}: {refused} was just defined and cannot be cast")
        cast = self.casts.start(prepared, request)
        cast.runner.messages += notes
        return cast

    def _estimate(self, graph: Graph, model: str | None = None, **assumptions: Any) -> EstimateView:
        """Estimate with the pins, and the prices of a model or else of the agents that are set to answer."""
        pins = {name: chosen.pin for name, chosen in self.agents.pins_for(graph).items()}
        return estimated(self._as_told(graph), self.agents.table(graph), pins, model, **assumptions)

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
        composition = compose(config.document, names, config.owners)
        graph = require_known_protocols(build_graph(composition.document, composition.name, config.owners))
        data = {} if from_cast is None else {PREVIOUS: self.casts.told_by(from_cast)}
        table = self.agents.table_of_link(composition, graph)
        plan = self.casts.plan(in_their_form(graph, table), data)
        return self.casts.start(Prepared(plan, table, self.agents.pins_for(graph)), request)

    @property
    def sweep(self) -> Any:
        """Makes real casts of every loadout with every request and all agents, and checks them: ``wb.sweep(loadouts, requests)``."""
        return lookup("sweep").Sweeps(self)

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
            self._quests = lookup("quests").QuestBoard(self)
        return self._quests

    def close(self) -> None:
        """Close every cast that is open for writing; ``with`` does it at its end."""
        self.casts.close()

    def __enter__(self) -> Self:
        """Return the workbench."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def _check_request(request: object) -> None:
    if not isinstance(request, str):
        raise MateriaError(f"The request must be text, not {type(request).__name__}.", hint="give the request as text")
