"""Loadouts, and what can be known of them before anybody is asked: nobody is here who could answer, and nothing runs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from materia_nb.agents.model_agent import known_price
from materia_nb.cast.library import Loadouts, spoken
from materia_nb.cast.views.loadout_views import (
    EstimateView,
    ExploreView,
    OddsView,
    PromptsView,
    RehearsalView,
    loadouts_view,
)
from materia_nb.display.blocks import Block, Shown
from materia_nb.handoff.protocol import SAMPLE
from materia_nb.insight.estimate import CASTS, GLANCE, PriceOfTurn, Prompts, estimate_cast
from materia_nb.insight.odds import Chances, PerSocket, rehearse_casts
from materia_nb.insight.space import MOST_STATES
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import build_graph
from materia_nb.loadout.config_files import resolved
from materia_nb.sharing import Progress

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
        """Say which project and loadout; stable from run to run."""
        return f"<workbench of {self.project.name}: {self.loadouts.chosen or 'no loadout'} chosen>"

    @property
    def title(self) -> str:
        """What it is, on the frame in which a notebook shows it."""
        return repr(self)

    def _blocks(self) -> list[Block]:
        return [loadouts_view(self.loadouts, self.loadouts.chosen, self.loadouts.config)]

    @property
    def project(self) -> Path:
        """The project directory. Loadouts, agents and casts were found by it: for another project make another bench."""
        return self.loadouts.project

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

        def estimated(length: int) -> EstimateView:
            return self._estimate(graph, items=length, casts=GLANCE)

        return ExploreView(
            graph, items, states, progress=progress, document=graph.document, estimated=estimated
        )

    def odds(
        self,
        loadout: str | None = None,
        satisfied: Chances = 0.5,
        items: int = 3,
        *,
        failed: PerSocket = 0.0,
        tokens: PerSocket | None = None,
        cost: PerSocket | None = None,
        seconds: PerSocket | None = None,
    ) -> OddsView:
        """Return how likely each end of a cast is, and what a cast takes on average; nobody is asked.

        The arguments after the loadout are those of an exploration's ``odds``; raises as :meth:`explore` and that do.
        """
        explored = self.explore(loadout, (items,))
        return explored.odds(satisfied, items, failed=failed, tokens=tokens, cost=cost, seconds=seconds)

    def _as_told(self, graph: Graph) -> Graph:
        """Return a loadout whose prompts are written as for whoever would answer."""
        return graph

    def _graph_of(self, loadout: str | Design | None) -> Graph:
        """Return the resolved loadout of that name, or the one that a design is now."""
        if isinstance(loadout, str) or loadout is None:
            return self.graph(loadout)
        return spoken(build_graph(loadout.whole, loadout.name, self.loadouts.config.owners))

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

    def _estimate(self, graph: Graph, model: str | None = None, **given: Any) -> EstimateView:
        return EstimateView(**vars(estimate_cast(graph, price=self._prices(graph, model), **given)))

    def _prices(self, graph: Graph, model: str | None) -> PriceOfTurn:
        """Return what a turn of a socket costs: by the prices of a model, else of the model that its materia asks for."""

        def price(socket: str, tokens_in: int, tokens_out: int) -> float | None:
            wanted = model or graph.sockets[socket].materia.model
            if not isinstance(wanted, str):
                return None
            own = graph.price((wanted,))
            return (
                known_price(wanted, tokens_in, tokens_out) if own is None else own.of(tokens_in, tokens_out)
            )

        return price

    def rehearse(
        self,
        loadout: str | None = None,
        n: int = 1000,
        satisfied: Chances = 0.5,
        items: int = 3,
        seed: int = 1,
        executor: Executor | None = None,
        *,
        failed: PerSocket = 0.0,
        progress: Progress = False,
    ) -> RehearsalView:
        """Cast a loadout many times in memory with stub agents that answer by chance.

        Args:
            loadout: which loadout; the chosen one by default.
            n: how many casts.
            satisfied: the chance that an output says ``satisfied: true``, or a pair of that and the chance that it
                says nothing: one for all, or by socket or materia (``*`` for all others). An agent that is not asked
                for ``satisfied`` says nothing, unless it is named.
            items: how long every list is.
            seed: what the chances are drawn from; the numbers are the same whoever works on them.
            executor: a ``concurrent.futures.Executor`` to share the work among; this thread if left out. A batch
                whose worker was lost is done here.
            failed: the chance that an agent or process fails, where an edge waits for that: for all, or by socket or
                materia.
            progress: whether a bar is printed to stderr; or a function that is called with how many casts are done
                and how many there are, and ends the rehearsal if it raises.

        Raises:
            MateriaError: the loadout has problems, or a chance is missing or none (``bad_chance``).
        """
        graph = self.graph(loadout)
        made = rehearse_casts(graph, n, satisfied, items, seed, executor, failed=failed, progress=progress)
        return RehearsalView(**vars(made))

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
        return PromptsView(
            [Prompts(graph, request, items, one, rework=rework, later=later) for one in contexts or (None,)]
        )

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
