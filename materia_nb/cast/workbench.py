"""One notebook's bench: the config in its layers, the loadouts, who answers, and the casts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from materia_nb.agents.interface import Agent
from materia_nb.agents.notebook_agents import AgentLike
from materia_nb.cast import Cast, Prepared
from materia_nb.cast.answerers import Agents
from materia_nb.cast.cast_breakpoints import LoadoutBreakpoints
from materia_nb.cast.dry_bench import DryBench
from materia_nb.cast.library import copy_scripts, spoken
from materia_nb.cast.project_casts import PREVIOUS, Casts
from materia_nb.cast.views.loadout_views import EstimateView, estimated
from materia_nb.errors import MateriaError
from materia_nb.late import late
from materia_nb.loadout import build_graph
from materia_nb.loadout.compose import compose

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
        self.pin, self.unpin = self.agents.pin, self.agents.unpin
        self.open, self.resume, self.compare = self.casts.open, self.casts.resume, self.casts.compare
        self._quests: Any = None

    # -- who answers ----------------------------------------------------------------

    @overload
    def agent(self, name: str) -> Callable[[_Function], _Function]: ...
    @overload
    def agent(self, name: str, agent: AgentLike) -> Agent: ...
    def agent(self, name: str, agent: AgentLike | None = None) -> Any:
        """Say who answers a socket or materia; ``*`` means everyone not set otherwise.

        Without ``agent`` it is a decorator for a function, sync or async, that returns text or a dict::

            @wb.agent("Build")
            def build(turn):
                return f"built {turn.item_label}"
        """
        return self.agents.decorator(name) if agent is None else self.agents.set(name, agent)

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
    ) -> Cast:
        """Start a cast of the chosen loadout, and show it with its panels; buttons, step or run go on with it.

        Args:
            request: what is asked for; prompts and utilities read it.
            loadout: another loadout than the chosen one. A design is cast as it is now, saved or not.
            agents: who answers in this cast only, by socket or materia (``*`` for everyone else).
            pins: what is pinned in this cast only, by socket or materia; see ``wb.agents.pin``.

        Raises:
            MateriaError: the loadout has problems; an agent is set for a utility (``not_an_agent``), which
                can be pinned; a name is unknown.
        """
        _check_request(request)
        graph = self._graph_of(loadout)
        said = copy_scripts(graph)
        cast = self.casts.start(self.agents.prepared(graph, agents, pins), request)
        cast.runner.messages += said
        if loadout is None and (refused := self.loadouts.refused) is not None:
            cast.runner.messages.append(f"casts {graph.name}: {refused} was just defined and cannot be cast")
        return cast

<<<<<<< HEAD
=======
    def _graph_of(self, loadout: str | Design | None) -> Graph:
        """Return the resolved loadout of that name, or that a design is now."""
        if isinstance(loadout, str) or loadout is None:
            return self.graph(loadout)
        return spoken(build_graph(loadout.whole, loadout.name, self.loadouts.config.owners))

    # -- before a cast --------------------------------------------------------------

    def explore(
        self,
        loadout: str | None = None,
        items: Sequence[int] | int = range(4),
        *,
        states: int = MOST_STATES,
        progress: Progress = False,
    ) -> ExploreView:
        """Look at every way that casts of a loadout can go; nobody is asked and no process runs.

        Args:
            loadout: which loadout; the chosen one by default.
            items: how long the lists are that are tried.
            states: after how many states the search is cut off: then what was not seen is not known, and it says so. No
                clock counts, so the same call finds the same on any machine; an interrupt ends it with what it has found.
            progress: whether a bar is printed to stderr; or a function that is called with how many states were looked
                at and how many are known so far. It is told of the odds of another length too.

        Raises:
            MateriaError: the loadout has problems, or a socket takes no scripted answer (``no_answer``).
        """
        graph = self.graph(loadout)

        def glance(length: int) -> EstimateView:
            return self._estimate(graph, items=length, casts=GLANCE)

        return ExploreView(graph, items, states, progress=progress, document=graph.document, estimated=glance)

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
        casts: int = CASTS,
    ) -> EstimateView:
        """Estimate the turns, tokens and cost of a cast before it begins; nobody is asked and nothing is started.

        Casts by chance are measured: each prompt as it would be, and made-up answers. What is pinned costs nothing. Prices
        are those known of the models that are set to answer; where none is known, the cost is not known either, which is
        not nothing (R56).

        Args:
            loadout: which loadout; the chosen one by default. A design is taken as it is now.
            request: the request.
            items: how long every list is, or the work items themselves.
            satisfied: the chance that an output says ``satisfied: true``; see :meth:`rehearse`.
            failed: the chance that an agent or process fails, where an edge waits for that.
            answer: how many tokens an answer has, for all or by socket or materia; the fewest possible if left out.
            model: count with the prices of this model, ``provider:model``, whoever answers.
            casts: how many casts it is made from; the numbers are the same every time.

        Raises:
            MateriaError: the loadout has problems, a chance is missing or none (``bad_chance``), or a socket takes no
                scripted answer (``no_answer``).
        """
        return self._estimate(
            self._graph_of(loadout),
            model,
            request=request,
            items=items,
            satisfied=satisfied,
            failed=failed,
            answer=answer,
            casts=casts,
        )

>>>>>>> c2dc32f (Show in the designer what an agent would be told before anything ran)
    def _estimate(self, graph: Graph, model: str | None = None, **given: Any) -> EstimateView:
        """Estimate with what is pinned, by the prices of a model, else of the models that are set to answer."""
        pins = {name: chosen.pin for name, chosen in self.agents.pins_for(graph).items()}
        return estimated(graph, self.agents.table(graph), pins, model, **given)

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
        plan = self.casts.plan(graph, data)
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
            f"The request must be text, not {type(request).__name__}.", hint="say what is asked for in words"
        )
