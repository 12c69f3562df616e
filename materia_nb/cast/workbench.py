"""The workbench of a notebook with its loadouts, agents and casts, and a reduced workbench with only loadouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from materia_nb.agents.interface import Agent
from materia_nb.agents.model_agent import ModelAgent
from materia_nb.agents.notebook_agents import AgentLike, AgentTable
from materia_nb.cast import Cast, Prepared
from materia_nb.cast.agents_api import Agents, with_prompt_forms
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
from materia_nb.display.blocks import Block, Displayable
from materia_nb.engine.state import Pin
from materia_nb.errors import MateriaError, needs_one_of
from materia_nb.handoff.base import SAMPLE
from materia_nb.insight.estimate import DEFAULT_CASTS
from materia_nb.insight.odds import Assumptions, Chances, FailureChances, PerSocket, simulate_casts
from materia_nb.insight.reachable_states import MAX_STATES
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import build_graph
from materia_nb.loadout.compose import compose
from materia_nb.loadout.config_files import resolve_path
from materia_nb.loadout.vocabulary import FILE_CHOICES, FilesChoice
from materia_nb.platform import Progress
from materia_nb.registry import lookup

if TYPE_CHECKING:
    from materia_nb.cast.gallery import Gallery, OpenedCard
    from materia_nb.loadout.design import Design
    from materia_nb.loadout.graph import Graph


class DryBench(Displayable):
    """The loadouts of a project, without agents or casts. Its methods never call a model or start a process.

    Args:
        project: the project directory, which may contain the config file ``.pi/pi-materia.json``.
        bundled: False to exclude the loadouts of the package.

    Attributes:
        loadouts: the available loadouts and materia, with methods to change them.
    """

    def __init__(self, project: str | Path = ".", *, bundled: bool = True) -> None:
        self.loadouts = Loadouts(resolve_path(project), bundled=bundled)
        # Shortcuts for frequent methods of the members.
        self.load, self.use, self.check = self.loadouts.load, self.loadouts.use, self.loadouts.check
        self.graph, self.design = self.loadouts.graph, self.loadouts.design

    def __repr__(self) -> str:
        """Return the project and the selected loadout, without details that differ between runs."""
        return f"<workbench of {self.project.name}: {self.loadouts.chosen or 'no loadout'} chosen>"

    @property
    def title(self) -> str:
        """The title of the workbench's output in a notebook."""
        return repr(self)

    def _blocks(self) -> list[Block]:
        return [loadouts_view(self.loadouts, self.loadouts.chosen, self.loadouts.config)]

    @property
    def project(self) -> Path:
        """The project directory. It cannot be changed; create another workbench for another project."""
        return self.loadouts.project

    def explore(
        self,
        loadout: str | None = None,
        items: Sequence[int] | int = range(4),
        *,
        states: int = MAX_STATES,
        progress: Progress = False,
    ) -> ExploreView:
        """Explore every route that casts of a loadout can take, without calling agents or starting processes.

        Args:
            loadout: the name of the loadout; by default the selected loadout.
            items: the lengths of work item lists to explore.
            states: the maximum number of states. The result reports whether the exploration was cut off. There is no
                time limit, so the result is the same on every machine. An interrupt ends the exploration and keeps the
                partial result.
            progress: True to show a progress bar; or a function that is called with the number of examined states and
                the number of known states. Later computations of odds also report their progress.

        Raises:
            MateriaError: the loadout has problems, or a socket does not accept scripted answers (``no_answer``).
        """
        graph = self.graph(loadout)
        return ExploreView(graph, items, states, progress=progress)

    def odds(
        self, loadout: str | None = None, satisfied: Chances = 0.5, items: int = 3, **assumed: Unpack[Assumptions]
    ) -> OddsView:
        """Compute the probability of each end of a cast and the average number of turns, without calling agents.

        ``Exploration.odds`` and :meth:`explore` describe the arguments and the errors.
        """
        return self.explore(loadout, (items,)).odds(satisfied, items, **assumed)

    def _agents_and_pins(self, graph: Graph) -> tuple[AgentTable, dict[str, Pin]]:
        """Return the agents and the pinned answers for a cast.

        In this class, the agents are the models that the materia request, and no answers are pinned.
        """
        del graph
        return AgentTable(ModelAgent()), {}

    def _resolve_graph(self, loadout: str | Design | None) -> Graph:
        """Return the resolved graph of a named loadout or of the current state of a design."""
        if isinstance(loadout, str) or loadout is None:
            return self.graph(loadout)
        return require_known_protocols(build_graph(loadout.full_config, loadout.name, self.loadouts.config.folders))

    def estimate(
        self,
        loadout: str | Design | None = None,
        request: str = SAMPLE,
        items: int | Sequence[JSON] = 3,
        satisfied: Chances = 0.5,
        *,
        answer: PerSocket | None = None,
        model: str | None = None,
        casts: int = DEFAULT_CASTS,
        **failures: Unpack[FailureChances],
    ) -> EstimateView:
        """Estimate the turns, tokens and cost of a cast, without calling agents or starting processes.

        The estimate is based on simulated casts with real prompts and generated answers. Pinned answers cost nothing.
        The prices of the configured agents are used. An unknown price makes the cost unknown, not zero (R56).

        Args:
            loadout: the name of the loadout, or a design, whose current state is used; by default the selected loadout.
            request: the request of the simulated casts.
            items: the length of every work item list, or the work items themselves.
            satisfied: the probability that an output has ``satisfied: true``; see :meth:`simulate`.
            answer: the number of tokens in an answer, for all sockets or by socket or materia; by default the minimum.
            model: a model whose prices are used instead of the configured agents' prices, as ``provider:model``.
            casts: the number of simulated casts; the same arguments always give the same result.
            failures: the probabilities of failures, such as ``failed=0.1``; see :class:`.odds.FailureChances`.

        Raises:
            MateriaError: the loadout has problems, a probability is missing or invalid (``bad_chance``), or a socket
                does not accept scripted answers (``no_answer``).
        """
        graph = self._resolve_graph(loadout)
        table, pins = self._agents_and_pins(graph)
        assumptions: dict[str, Any] = {"request": request, "items": items, "satisfied": satisfied, "answer": answer}
        return estimated(with_prompt_forms(graph, table), table, pins, model, **assumptions, casts=casts, **failures)

    def simulate(
        self,
        loadout: str | None = None,
        n: int = 1000,
        satisfied: Chances = 0.5,
        items: int = 3,
        seed: int = 1,
        *,
        progress: Progress = False,
        **failures: Unpack[FailureChances],
    ) -> SimulationView:
        """Simulate many casts of a loadout in memory, with stub agents that give random answers.

        Args:
            loadout: the name of the loadout; by default the selected loadout.
            n: the number of casts to simulate.
            satisfied: the probability that an output has ``satisfied: true``, or a pair of this probability and the
                probability that the output has no verdict. It can be a single value, or a mapping by socket or materia
                with ``*`` for all others. An agent whose prompt does not ask for ``satisfied`` gives no verdict unless
                its socket or materia is in the mapping.
            items: the length of every work item list.
            seed: the seed of the random number generator; the same seed always gives the same result.
            progress: True to show a progress bar; or a function that is called with the number of completed casts and
                the total number of casts, and ends the simulation if it raises an exception.
            failures: the probabilities of failures, such as ``failed=0.1``; see :class:`.odds.FailureChances`.

        Raises:
            MateriaError: the loadout has problems, or a probability is missing or invalid (``bad_chance``).
        """
        graph = self.graph(loadout)
        simulation = simulate_casts(graph, n, satisfied, items, seed, progress=progress, **failures)
        return SimulationView(**vars(simulation))

    def prompts(
        self,
        loadout: str | None = None,
        request: str = SAMPLE,
        items: int | Sequence[JSON] = 3,
        context: JSON = None,
        *,
        rework: bool = False,
    ) -> PromptsView:
        """Return every prompt of a scripted cast with its size, without calling agents.

        The scripted answers are the shortest possible satisfied answers, so the prompts of a real cast are longer.

        Args:
            loadout: the name of the loadout; by default the selected loadout.
            request: the request of the scripted cast.
            items: the length of every work item list, or the work items themselves.
            context: a ``castContext`` to use instead of the values in the loadout.
            rework: True to make each socket that can request rework do so at its first visit.

        Raises:
            MateriaError: the loadout has problems, a socket does not accept scripted answers (``no_answer``), or
                ``context`` is not a valid ``castContext`` (``usage``).
        """
        graph = self.graph(loadout)
        graph = with_prompt_forms(graph, self._agents_and_pins(graph)[0])
        return PromptsView(graph, request, items, context, rework=rework)

    @overload
    def gallery(self) -> Gallery: ...
    @overload
    def gallery(self, name: str) -> OpenedCard: ...
    def gallery(self, name: str | None = None) -> Gallery | OpenedCard:
        """Return the gallery of loadout patterns and common mistakes, or write one of its cards to a notebook.

        ``wb.gallery()["critic-loop"]`` returns a card with its loadout, answers and tests, without writing a file.

        Args:
            name: the name of the card to write to NAME.ipynb in the project directory; by default the gallery is
                returned.

        Raises:
            MateriaError: the card does not exist (``unknown_card``), or the file already exists (``exists``).
        """
        from materia_nb.cast.gallery import gallery, open_card

        return gallery() if name is None else open_card(gallery()[name], self.project)


_Function = TypeVar("_Function", bound=Callable[..., Any])


class Workbench(DryBench):
    """The main object of a notebook, which loads loadouts, sets agents and starts casts.

    Args:
        project: the working directory of utilities and agents, which may contain the config file
            ``.pi/pi-materia.json``.
        sync: True to force every step of a cast to the disk with fsync. This is slower, but a power failure cannot lose
            a step.
        bundled: False to exclude the loadouts of the package.

    Attributes:
        loadouts: the available loadouts and materia, with methods to change them, such as ``wb.loadouts.copy(...)``.
        agents: the agents and the pinned answers, with methods such as ``wb.agents.recorded(...)``.
        casts: the casts of the project; ``wb.casts(tag="rain")`` lists some of them, and ``wb.casts.delete(...)``
            deletes a cast.
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
        """Set the agent of a socket or materia, or the default agent with ``*``.

        Without ``agent``, return a decorator for a sync or async function that returns a string or a dict::

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
        """Register a function as a tool for models. A materia can use the tool if its ``tools`` include it.

        This method can also be used as a decorator::

            @wb.tool
            def price(part: str) -> float:
                "Return the price of a part, in euros."
                return PRICES[part]

        The model receives the parameters with their types, and the docstring as the description of the tool; see
        ``function_tool`` in ``materia_nb.agents.tools.more_tools``.

        Args:
            function: the function, which may be sync or async.
            name: the name of the tool; by default the name of the function.
            ask: True if each call needs a person's approval, as for ``bash``.
        """

        def decorate(decorated: _Function) -> _Function:
            self.agents.add_tool(decorated, name=name, ask=ask)
            return decorated

        return decorate if function is None else decorate(function)

    @property
    def breakpoints(self) -> LoadoutBreakpoints:
        """The breakpoints for all casts of the current cast's loadout, or of the selected loadout if there is no cast.

        The breakpoints are stored in a file of the project, so that they are available in later kernels. To change the
        breakpoints of a single cast, use ``cast.breakpoints``::

            wb.breakpoints.add("Socket-3", kind="after")
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
        files: FilesChoice | None = None,
    ) -> Cast:
        """Start a cast of a loadout. To continue the cast, call its methods ``step`` or ``run``.

        Args:
            request: the request, which prompts contain and utilities can read.
            loadout: the name of the loadout, or a design, which is cast in its current state even if it is not saved;
                by default the selected loadout.
            agents: the agents for this cast only, by socket or materia, with ``*`` for all others.
            pins: the pinned answers for this cast only, by socket or materia; see ``wb.agents.pin``.
            files: the project files to save after each step: ``off``, ``not ignored`` or ``all``; by default the value
                in the config.

        Raises:
            MateriaError: the loadout has problems, a name is unknown, or an agent is set for a utility, which can only
                be pinned (``not_an_agent``).
        """
        _check_request(request)
        graph = self._resolve_graph(loadout)
        notes = copy_scripts(graph)
        prepared = self.agents.prepare(graph, agents, pins)
        if files is not None:
            needs_one_of(files, FILE_CHOICES, f"The argument `files` cannot be {files!r}.", "usage")
            prepared = prepared._replace(plan=replace(prepared.plan, files=files))
        if loadout is None and (refused := self.loadouts.refused) is not None:
            notes.append(f"This cast runs {graph.name}, because {refused}, which was defined last, cannot be cast.")
        cast = self.casts.start(prepared, request)
        cast.runner.messages += notes
        return cast

    def _agents_and_pins(self, graph: Graph) -> tuple[AgentTable, dict[str, Pin]]:
        """Return the configured agents and the pinned answers for a cast."""
        return self.agents.table(graph), {name: answer.pin for name, answer in self.agents.pins_for(graph).items()}

    def link(self, *names: str, request: str, from_cast: str | Path | None = None) -> Cast:
        """Start a cast that runs several materia and loadouts in sequence.

        The parts are combined into a single loadout, which is stored only with the cast.

        Args:
            names: the names of the loadouts and materia, in order; ``loadout:NAME`` or ``materia:NAME`` if a name is
                ambiguous.
            request: the request, which every part receives.
            from_cast: a reference to an earlier cast, as for ``wb.open``. Its request and results are stored in the
                state as ``previous``, shortened to a maximum size.

        Raises:
            MateriaError: a name is unknown or ambiguous, a part has problems or cannot be followed by another part, or
                the earlier cast does not exist.
        """
        _check_request(request)
        config = self.loadouts.config
        composition = compose(config.document, names, config.folders)
        graph = require_known_protocols(build_graph(composition.document, composition.name, config.folders))
        data = {} if from_cast is None else {PREVIOUS: self.casts.initial_data_from(from_cast)}
        table = self.agents.table_of_link(composition, graph)
        plan = self.casts.plan(with_prompt_forms(graph, table), data)
        return self.casts.start(Prepared(plan, table, self.agents.pins_for(graph)), request)

    @property
    def sweep(self) -> Any:
        """The sweep of this workbench, which casts each loadout with each request: ``wb.sweep(loadouts, requests)``."""
        return lookup("sweep").Sweeps(self)

    @property
    def current(self) -> Cast:
        """The current cast, which magic commands use: the cast that was started or opened most recently.

        Raises:
            MateriaError: no cast has been started or opened (``no_cast``).
        """
        return self.casts.current

    @property
    def last_cast(self) -> Cast | None:
        """The current cast, or None if no cast has been started or opened."""
        return self.casts.last

    @property
    def quests(self) -> Any:
        """The quest board of this project, which casts queued requests one after another."""
        if self._quests is None:
            self._quests = lookup("quests").QuestBoard(self)
        return self._quests

    def close(self) -> None:
        """Close every cast that is open for writing. This also happens at the end of a ``with`` block."""
        self.casts.close()

    def __enter__(self) -> Self:
        """Return the workbench."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close every cast that is open for writing."""
        self.close()


def _check_request(request: object) -> None:
    if not isinstance(request, str):
        raise MateriaError(
            f"The request must be a string, not {type(request).__name__}.", hint="pass the request as a string"
        )
