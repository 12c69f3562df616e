"""Views of loadouts, materia and agents, and of analyses that need no cast, such as explorations and estimates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from statistics import mean
from typing import Any, Final, Literal, Unpack

from materia_nb.agents import ModelAgent
from materia_nb.agents.interface import price_names
from materia_nb.agents.notebook_agents import AgentTable
from materia_nb.cast.cases import case_of, ways_case, write_case, write_export
from materia_nb.cast.views.play_page import play_data, play_page
from materia_nb.display.blocks import Badge, Bar, Block, Cell, Displayable, Fold, Line, Table, View, lines
from materia_nb.display.escape import part, shorten
from materia_nb.display.graph_parts import NO_OVERLAY, CastOverlay
from materia_nb.display.svg import GraphPicture, graph_block
from materia_nb.display.text import graph_text
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import Pin
from materia_nb.errors import MateriaError, counted, usage_error
from materia_nb.insight.estimate import Estimate, Prompts, Spread, UsageEstimate, estimate_cast
from materia_nb.insight.explore import CastRule, Exploration, replay_witness
from materia_nb.insight.odds import Assumptions, Chances, Odds, Simulation
from materia_nb.insight.reachable_states import BAD_WORK, COMPLETE, HELD, Distribution, quantile
from materia_nb.insight.scripted_answers import EdgeRef, sockets_without_samples
from materia_nb.jsonvalue import JSON, as_object, compact, pretty
from materia_nb.loadout.graph import Graph, Route, with_names
from materia_nb.loadout.layers import LayeredConfig
from materia_nb.loadout.report import Problem, Report
from materia_nb.loadout.topology import materia_group, materia_kind
from materia_nb.registry import view_registry


def report_view(name: str, report: Report) -> View:
    """Return a view of the problems and hints of a loadout; hints about fields that have no effect are collapsed."""
    counts = f"{counted(len(report.problems), 'problem')}, {counted(len(report.hints), 'hint')}"
    blocks: list[Block] = [Line(f"{name}: {counts}" if name else counts)]
    if report.problems or report.shown_hints:
        blocks.append(_findings_table(report.problems, report.shown_hints))
    if report.no_effect:
        summary = f"{report.no_effect_line} (report.hints lists them all)"
        blocks.append(Fold(summary, [_findings_table((), report.no_effect)], brief_chars=0))
    return View("", blocks)


def _findings_table(problems: Sequence[Problem], hints: Sequence[Problem]) -> Table:
    kinds: list[tuple[Cell, Problem]] = [(Badge("problem"), problem) for problem in problems]
    kinds += [("hint", hint) for hint in hints]
    rows = [(kind, problem.code, problem.source, problem.message, problem.hint or "") for kind, problem in kinds]
    return Table(("", "code", "where", "what", "what to do"), rows)


view_registry[Report] = partial(report_view, "")


class LoadoutView(Displayable):
    """A view of a loadout: its graph, or its problems if it cannot be cast."""

    def __init__(self, name: str, origin: str, graph: Graph | None, report: Report, notes: Sequence[str] = ()) -> None:
        self.name, self.origin, self.graph, self.report, self.notes = name, origin, graph, report, tuple(notes)

    def with_notes(self, *notes: str) -> LoadoutView:
        """Return a copy of the view with further notes above the graph."""
        return LoadoutView(self.name, self.origin, self.graph, self.report, (*self.notes, *notes))

    @property
    def picture(self) -> GraphPicture:
        """The graph, with the attributes ``svg``, ``text`` and ``mermaid``.

        Raises:
            MateriaError: the loadout has problems, so it has no graph.
        """
        if self.graph is None:
            message = f"The loadout {self.name!r} has problems, so it has no graph."
            raise MateriaError(message, hint="list them with `%materia check`")
        return GraphPicture(self.graph)

    def _blocks(self) -> list[Block]:
        notes = lines(self.notes, "bad")
        if self.graph is None:
            return [*notes, report_view(self.name, self.report)]
        text = [f"{self.name} (from {self.origin})", graph_text(self.graph)]
        if hints := len(self.report.hints):
            text.append(f"{counted(hints, 'hint')}: see `%materia check`")
        return [*notes, graph_block(self.graph, text="\n".join(text))]


def loadouts_view(loadouts: Mapping[str, str], chosen: str | None, config: LayeredConfig) -> Table:
    """Return a table of the loadouts with their config layers, and of definitions that are ignored because they are invalid."""
    definitions = as_object(config.document.get("loadouts"))
    rows = [
        (
            "*" if name == chosen else "",
            name,
            _defining_layers(config, "loadout", name) or origin,
            str(len(as_object(as_object(definitions.get(name)).get("sockets")))),
        )
        for name, origin in loadouts.items()
    ]
    rows += [("ignored", f"{fault.what} ({fault.where})", fault.hint or "", "") for fault in config.faults]
    return Table(("", "loadout", "from", "sockets"), rows, "no loadouts")


def materia_view(config: LayeredConfig, agents: AgentTable) -> Table:
    """Return a table of the materia, each with its config layer and its agent."""
    rows = []
    for name, raw in as_object(config.document.get("materia")).items():
        definition = as_object(raw)
        utility = materia_kind(definition) == "utility"
        kind = ("utility" if utility else "agent") + (", generator" if definition.get("generator") is True else "")
        agent_name = "a process" if utility else agents.for_turn("", name).name
        layers = _defining_layers(config, "materia", name) or config.origin("materia", name).name
        description = shorten(str(definition.get("description", "")), 80)
        rows.append((name, kind, materia_group(definition), layers, agent_name, description))
    return Table(("materia", "kind", "group", "from", "answered by", "description"), rows, "no materia")


def fields_view(config: LayeredConfig, kind: Literal["loadout", "materia"], name: str) -> Table:
    """Return a table of the fields of a loadout or a materia, with the config layer that defines each field (R33).

    Raises:
        MateriaError: no config layer defines the loadout or materia.
    """
    config.origin(kind, name)
    group = "loadouts" if kind == "loadout" else kind
    definition = as_object(as_object(config.document.get(group)).get(name))
    origins = config.origins(kind, name)
    rows = [
        (key, shorten(value if isinstance(value, str) else pretty(value), 120), str(origins[key]))
        for key, value in definition.items()
    ]
    return Table(("field", "value", "from"), rows, "no fields")


def _defining_layers(config: LayeredConfig, kind: Literal["loadout", "materia"], name: str) -> str:
    """Return the names of the config layers that define fields of a loadout or materia, lowest first."""
    layers = {layer.name for layer in config.origins(kind, name).values()}
    return ", ".join(layer.name for layer in config.layers if layer.name in layers)


def agents_view(agents: AgentTable) -> Table:
    """Return a table of the agents, by materia or socket."""
    rows = [(line.name or "everyone else", line.agent) for line in agents.describe()]
    return Table(("materia or socket", "answered by"), rows)


view_registry[AgentTable] = agents_view


_ENDS: Final = {COMPLETE: "complete", HELD: "on hold for a person"}
_MAX_ROWS: Final = 60
_DECIMAL_BELOW: Final = 100  # Means below this number are displayed with one decimal.


class _View(Displayable):
    """Base class for views that display a picture of the loadout with lines and tables below it."""

    graph: Graph

    @property
    def marks(self) -> CastOverlay:
        """The marks to draw in the picture of the loadout."""
        raise NotImplementedError

    @property
    def picture(self) -> GraphPicture:
        """The graph with the marks, with the attributes ``svg``, ``text`` and ``mermaid``."""
        return GraphPicture(self.graph, self.marks)

    def _parts(self) -> Iterable[Block]:
        """Return the blocks to display below the picture."""
        raise NotImplementedError

    def _blocks(self) -> list[Block]:
        return [graph_block(self.graph, self.marks), *self._parts()]


def _first_rows(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[Block]:
    """Return a table with the first rows, and a line with the number of further rows."""
    hidden_count = len(rows) - _MAX_ROWS
    return [Table(headers, rows[:_MAX_ROWS]), *lines([f"… {hidden_count:,} more"] if hidden_count > 0 else [])]


class ExploreView(_View, Exploration):
    """A view of an exploration: the possible ends, and the graph with marks on sockets and edges that no route uses."""

    def save_tests(
        self, folder: str | Path, *, follows: str | Path | None = None, rules: Sequence[CastRule] = ()
    ) -> list[Path]:
        """Write test cases that fail if a route of the loadout appears or disappears, and return their paths.

        For each end, there is a test case with the shortest route to that end. It passes if the same answers
        still lead to the same route. The test case ``ways`` passes if every visit still has the same possible next
        visits (:attr:`Exploration.moves`). The test case ``rules`` passes if no cast can break any of the rules.
        ``pytest`` runs the test cases without calling agents. Existing test cases with the same names are overwritten;
        other files do not change.

        Args:
            folder: the directory to write to.
            follows: the path of the config file to test, whose current contents are used; by default the test cases
                contain a copy of the explored loadout.
            rules: the rules that every cast must follow; see :class:`~materia_nb.insight.explore.CastRule`. Each
                counterexample that a test reports is the shortest cast that breaks the rule.

        Raises:
            MateriaError: the exploration was cut off, so some ends are unknown (``not_explored``); answers cannot be
                generated for the protocol of a socket (``no_test``); a rule is broken (``broken_rule``), invalid or not
                proven; or a file cannot be written.
        """
        if others := sockets_without_samples(self.graph):
            message = f"Answers cannot be generated in the handoff format of {self.graph.list_names(others)}."
            hint = "write a test case from a real cast with `cast.export.test(path)`"
            raise MateriaError(message, hint=hint, kind="no_test")
        engine_rules, target = Rules(self.graph), Path(folder).absolute()
        cases: dict[str, dict[str, JSON]] = {}
        used_names: Counter[str] = Counter()
        self._require_complete(self._space)
        for end, socket, witness in self.ending_witnesses():
            name = end if socket is None else f"{end}-at-{socket}"  # ids of sockets are safe names
            used_names[name.casefold()] += 1  # a file system may ignore case
            count = used_names[name.casefold()]
            session = replay_witness(engine_rules, witness)
            cases[name if count == 1 else f"{name}-{count}"] = case_of(engine_rules, session)
        cases["ways"] = ways_case(self)
        if rules:
            cases["rules"] = ways_case(self, rules)
        return [write_case(target / name, case, self.graph.document, follows) for name, case in cases.items()]

    def play(self, path: str | Path, satisfied: Chances = 0.5) -> Path:
        """Write an HTML page on which the user plays through the loadout, and return its path.

        The page needs neither Python nor a network. For each answer that the user chooses, it shows the next socket,
        the reason, and how the odds and the remaining turns change.

        Args:
            path: the path of the page; an existing file is overwritten.
            satisfied: the probabilities for :meth:`odds`, where all list lengths are equally likely.

        Raises:
            MateriaError: the exploration was cut off (``not_explored``), a probability is missing or invalid
                (``bad_chance``), a cast could run forever (``endless``), or the file cannot be written.
        """
        return write_export(Path(path), "page", self.play_page(satisfied))

    def play_page(self, satisfied: Chances = 0.5) -> str:
        """Return the page that :meth:`play` writes, as HTML."""
        data = play_data(self.graph, self._require_complete(self._space), satisfied)
        return play_page(f"Play {part(self.graph.name, 80)}", self.graph, data)

    def odds(self, satisfied: Chances = 0.5, items: int = 3, **assumed: Unpack[Assumptions]) -> OddsView:
        """Return the probability of each end and the average number of turns; see :meth:`Exploration.odds`."""
        return OddsView(**vars(super().odds(satisfied, items, **assumed)))

    def worth(self, *arguments: Any, **assumed: Any) -> WorthView:
        """Return the odds with all critics, without each critic, and with one more try for each critic.

        See :meth:`Exploration.worth`.
        """
        return WorthView(super().worth(*arguments, **assumed))

    @property
    def marks(self) -> CastOverlay:
        """The edges and sockets that no route uses; none if the exploration was cut off, because other routes may use them."""
        if not self.complete_search:
            return NO_OVERLAY
        ids = {self._route_name(route): (route.source, route.edge_id) for route in self._routes()}
        never: list[Route] = [(edge[0], edge[1] - 1) if isinstance(edge, tuple) else ids[edge] for edge in self.never]
        return CastOverlay(unused_routes=frozenset(never), unvisited=frozenset(self.unreached))

    def _parts(self) -> Iterable[Block]:
        lengths = ", ".join(str(item) for item in self.items)
        yield Line(f"{part(self.graph.name)}, lists of {lengths}: {self.states:,} states")
        yield from lines(self.notes)
        if all(socket.is_utility for socket in self.graph.sockets.values()):
            yield Line("no agents: casts of this loadout cost nothing")
        elif self.complete_search:
            max_turns = self.most_turns()
            most = "no maximum of agent turns" if max_turns is None else f"at most {counted(max_turns, 'agent turn')}"
            yield Line(f"{most}, not counting repairs")
        ends = self.ends_seen
        first = {end: counted(len(self.witness(end).route), "visit") for end in ends}
        name_list = self.graph.list_names
        ended = [(_ENDS.get(end, f"failed: {end}"), name_list(sockets), first[end]) for end, sockets in ends.items()]
        yield from _first_rows(("possible end", "at", "shortest route"), ended)
        if not self.complete_search:
            yield Line("the search was incomplete, so other ends may be possible")
        elif self.stalls:
            yield Line(f"a cast can get stuck, with no end reachable, at: {name_list(self.stalls)}")
        if self.not_visited:
            prefix = "never visited" if self.certain else "not visited so far"
            yield Line(f"{prefix}: {name_list(self.not_visited)}")
        rows = [self._untaken_row(name) for name in self.not_taken]
        if not rows:
            yield Line("every edge and exit can be taken")
            return
        yield from _first_rows(("edge or exit", "when", "to"), rows)
        yield Line("these are never taken" if self.certain else "these have not been taken so far")

    def _untaken_row(self, edge_ref: EdgeRef) -> tuple[str, str, str]:
        names = self.graph.names
        if isinstance(edge_ref, tuple):
            edge = self.graph.sockets[edge_ref[0]].edges[edge_ref[1] - 1]
            return f"edge {edge_ref[1]} of {names[edge_ref[0]]}", edge.when, names[edge.to]
        route = next(candidate for candidate in self._routes() if self._route_name(candidate) == edge_ref)
        return f"exit {edge_ref} of loop {route.loop}", route.condition, names[route.target]


class OddsView(_View, Odds):
    """A view of the odds of a loadout: the probability of each end, and the average number of turns."""

    @property
    def marks(self) -> CastOverlay:
        """The average number of visits to each socket, rounded to whole numbers."""
        return CastOverlay(visits={socket: round(count) for socket, count in self.visits.items()})

    def _parts(self) -> Iterable[Block]:
        yield Line(f"{part(self.graph.name)}, lists of {self.items}: exact odds")
        # A possible end is never shown as 0 %, and an end with an alternative never as 100 %.
        rare = {"0.00%": "< 0.01%", "100.00%": "> 99.99%"} if sum(map(bool, self.ends.values())) > 1 else {}
        chances = ((end, share, f"{share:.2%}") for end, share in self.ends.items())
        ends = [(end, rare.get(phrase, phrase) if share else phrase) for end, share, phrase in chances]
        yield Table(("end", "chance"), ends)
        yield from _no_verdict_lines(self.graph, self.nothing)
        percentiles = [self.at(share) for share in _PERCENTILES.values()]
        totals = [
            (name, _MEAN_FORMATS[name].format(mean_), *(format_.format(getattr(most, name)) for most in percentiles))
            for name, format_ in _TOTAL_FORMATS.items()
            if (mean_ := getattr(self, name)) is not None
        ]
        yield Table(("a cast takes", "on average", *_PERCENTILES), totals)
        for name, missing in (("tokens", self.uncounted), ("cost", self.unpriced)):
            if missing:
                yield Line(f"{name}: not counting {self.graph.list_names(missing)}, for which no value was given")
        yield _histogram("turns", {end: self.distribution()[end] for end in self.ends if end in self.distribution()})
        names = self.graph.names
        rows = [(names[id_], f"{visits:.2f}", self._verdict_text(id_)) for id_, visits in self.visits.items()]
        yield from _first_rows(("socket", "visits", "satisfied"), rows)

    def _verdict_text(self, socket: str) -> str:
        """Return the probability that a socket outputs ``satisfied: true``, or the reason why there is none."""
        if socket in self.satisfied:
            return f"{self.satisfied[socket]:.2f}"
        return "not asked" if socket in self.nothing else "decides nothing"


class WorthView(Displayable, dict[str, Odds]):
    """The odds with all critics, without each critic, and with one more try for each, as a table with bars.

    A label such as ``without Fact-Critic`` may name a critic by its name or by its socket id.
    """

    def __missing__(self, label: str) -> Odds:
        """Return the odds for a label that names a critic.

        Raises:
            MateriaError: the table has no such label (``usage``).
        """
        odds_by_label = {with_names(label, odds.graph.names): odds for label, odds in self.items()}
        if label not in odds_by_label:
            hint = f"choose one of: {', '.join(odds_by_label)}"
            raise usage_error(f"The table has no label {label!r:.60}.", hint)
        return odds_by_label[label]

    def _blocks(self) -> list[Block]:
        rows: list[tuple[Cell, ...]] = []
        for name, odds in self.items():
            good, bad = (odds.ends.get(end, 0.0) for end in (COMPLETE, BAD_WORK))
            bars = (Bar(f"{share:.1%}", min(share, 1.0)) for share in (good, bad, max(0.0, 1 - good - bad)))
            cost = [] if odds.cost is None else [f"${odds.cost:,.4f}"]
            rows.append((with_names(name, odds.graph.names), *bars, f"{odds.turns:.1f}", *cost))
        headers = ("critics", "complete, all good", BAD_WORK, "not complete", "turns", "cost")
        return [Table(headers[: len(rows[0])], rows)]


_PERCENTILES: Final = {"10th percentile": 0.1, "median": 0.5, "90th percentile": 0.9, "99th percentile": 0.99}
_TOTAL_FORMATS: Final = {"turns": "{:,.0f}", "tokens": "{:,.0f}", "cost": "${:,.4f}", "seconds": "{:,.1f} s"}
_MEAN_FORMATS: Final = {**_TOTAL_FORMATS, "turns": "{:.2f}"}
_MAX_BINS: Final = 12
_MIN_SHOWN_CHANCE: Final = 0.0005


def _histogram(name: str, distribution: Distribution) -> Table:
    """Return a histogram of whole numbers, with a column of bars for each end. The last bin includes larger numbers."""
    numbers = sorted(number for chances in distribution.values() for number in chances)
    lowest = int(numbers[0])
    width: int = ceil((quantile(distribution, 0.999) - lowest + 1) / _MAX_BINS)
    bins: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for end, chances in distribution.items():
        for number, chance in chances.items():
            bins[min(int((number - lowest) // width), _MAX_BINS - 1)][end] += chance
    largest = max(chance for row in bins.values() for chance in row.values())
    rows = []
    for place, row in sorted(bins.items()):
        first, is_last = lowest + place * width, place == _MAX_BINS - 1 and numbers[-1] >= lowest + width * _MAX_BINS
        label = f"{first} or more" if is_last else f"{first} to {first + width - 1}" if width > 1 else str(first)
        texts = {end: f"{chance:.1%}" if chance >= _MIN_SHOWN_CHANCE else "< 0.1%" for end, chance in row.items()}
        cells = (Bar(texts[end], row[end] / largest) if row[end] else "" for end in distribution)
        rows.append((label, *cells))
    return Table((name, *distribution), rows)


class SimulationView(_View, Simulation):
    """A view of a simulation: the ends, the turns, and the graph with the number of times that each edge was taken."""

    @property
    def marks(self) -> CastOverlay:
        """The number of visits to each socket, and the number of times that each edge was taken, in all casts together."""
        return CastOverlay(visits=self.visits, traversals=self.traversals)

    def _parts(self) -> Iterable[Block]:
        yield Line(f"{part(self.graph.name)}, lists of {self.items}: {self.n:,} simulated casts, seed {self.seed}")
        ends = [(end, count, Bar(f"{count / self.n:.1%}", count / self.n)) for end, count in self.ends.items()]
        yield Table(("end", "casts", "share"), ends)
        yield from _no_verdict_lines(self.graph, self.nothing)
        yield Table(
            ("a cast has", "on average", "median", "90th percentile", "maximum"),
            [_distribution_row("agent turns", self.turns), _distribution_row("retries", self.retries)],
        )
        most, names = max([1, *self.visits.values()]), self.graph.names
        rows = [(names[id_], Bar(f"{count / self.n:.2f}", count / most)) for id_, count in self.visits.items()]
        yield from _first_rows(("socket", "visits a cast"), rows)


class EstimateView(_View, Estimate):
    """A view of an estimate: the turns, tokens and cost of a cast, in total and by socket."""

    @property
    def line(self) -> str:
        """The estimate of a whole cast as one line."""
        turns, tokens_in, tokens_out, _ = self.total
        at_least = "with the shortest answers at least " if self.shortest else ""
        return (
            f"a cast over lists of {self.items} takes about {_range_text(turns)} turns, {at_least}{_range_text(tokens_in)} tokens in, "
            f"{_range_text(tokens_out)} out; {self._cost_text}"
        )

    @property
    def _cost_text(self) -> str:
        """The cost for display; an unknown cost is not displayed as zero."""
        if self.total.cost is None:
            return "its cost is unknown" if self.sockets else "no agent is called"
        unpriced = self.graph.list_names(self.unpriced)
        at_least = "at least " if self.shortest else ""
        unpriced_text = f", not counting {unpriced}, whose price is unknown" if unpriced else ""
        return f"{at_least}{_dollars_text(self.total.cost)}{unpriced_text}"

    @property
    def marks(self) -> CastOverlay:
        """The average number of turns of each socket, rounded to whole numbers."""
        return CastOverlay(visits={socket: round(estimate_.turns.mean) for socket, estimate_ in self.sockets.items()})

    def _parts(self) -> Iterable[Block]:
        yield Line(f"{part(self.graph.name)}: {self.line}")
        yield Line(
            f"Estimated from {counted(self.casts, 'simulated cast')}: the mean, and the range without the lowest and the "
            "highest 10 %. Tokens are estimated at four characters per token. Repairs, tools and thinking are not included."
        )
        if self.shortest:
            yield Line(
                "Generated answers are as short as possible. Set the number of tokens in an answer with `answer=`."
            )
        if self.unfinished:
            yield Line(f"{counted(self.unfinished, 'cast')} did not end; their usage so far is included")
        most = max([1.0, *(row.input.mean + row.output.mean for row in self.sockets.values())])
        yield from _first_rows(
            ("socket", "turns", "tokens in", "tokens out", "in and out", "cost"),
            [self._row(socket, estimate_, most) for socket, estimate_ in self.sockets.items()],
        )

    def _row(self, socket: str, estimate_: UsageEstimate, most: float) -> tuple[Cell, ...]:
        """Return a row of the table. Its bar stacks input and output tokens; ``most`` tokens fill the cell."""
        tokens_in, tokens_out = estimate_.input, estimate_.output
        sum_ = tokens_in.mean + tokens_out.mean
        bar = Bar(f"{sum_:,.0f}", sum_ / most, strong=(0.0, tokens_in.mean / most))
        cost = "not known" if estimate_.cost is None else _dollars_text(estimate_.cost)
        return self.graph.names[socket], *map(_range_text, (estimate_.turns, tokens_in, tokens_out)), bar, cost


def estimated(
    graph: Graph, table: AgentTable, pins: Mapping[str, Pin], model: str | None = None, **assumptions: Any
) -> EstimateView:
    """Estimate a cast with the prices of its agents, or of ``model``; for ``assumptions`` see :func:`.estimate_cast`."""
    priced_agent = None if model is None else ModelAgent(model)

    def price(socket: str, tokens_in: int, tokens_out: int) -> float | None:
        materia = graph.sockets[socket].materia
        agent = priced_agent or table.for_turn(socket, materia.id)
        own_price = graph.price(price_names(agent, materia.model))
        if own_price is not None:
            return own_price.cost(tokens_in, tokens_out)
        return agent.price(materia.model, tokens_in, tokens_out) if isinstance(agent, ModelAgent) else None

    return EstimateView(**vars(estimate_cast(graph, price=price, pins=pins, **assumptions)))


def _range_text(spread: Spread) -> str:
    """Format a mean, with the range in parentheses unless all values are equal."""
    mean_ = f"{spread.mean:,.1f}".removesuffix(".0") if spread.mean < _DECIMAL_BELOW else f"{spread.mean:,.0f}"
    return mean_ if spread.low == spread.high else f"{mean_} ({spread.low:,} to {spread.high:,})"


def _dollars_text(spread: Spread) -> str:
    mean_ = f"${spread.mean:.4f}"
    return mean_ if spread.low == spread.high else f"{mean_} (${spread.low:.4f} to ${spread.high:.4f})"


class PromptsView(_View, Prompts):
    """A view of the prompts of a scripted cast, with their sizes."""

    @property
    def marks(self) -> CastOverlay:
        """The number of prompts of each socket."""
        return CastOverlay(visits=Counter(prompt.socket for prompt in self.prompts))

    def __getitem__(self, step: int) -> Prompt:
        """Return the prompt of a step.

        Raises:
            MateriaError: no agent is called in this step (``unknown_step``).
        """
        prompts = {prompt.step: prompt.prompt for prompt in self.prompts}
        if step not in prompts:
            hint = f"choose one of the steps with a prompt: {', '.join(map(str, prompts))}"
            raise MateriaError(f"No agent is called in step {step}.", hint=hint, kind="unknown_step")
        return prompts[step]

    def _parts(self) -> Iterable[Block]:
        with_context = "" if self.context is None else f" castContext {compact(self.context)},"
        yield Line(
            f"{part(self.graph.name)}:{with_context} {counted(len(self.prompts), 'prompt')}, {self.characters:,} "
            f"characters, about {self.tokens:,} tokens; {self.repeated_share:.0%} of them repeat the beginning of the previous prompt of "
            f"the same socket; end of the cast: {self.end}"
        )
        yield Line(
            "The answers are generated, as short as possible, and satisfied. Tokens are estimated at four characters per token."
        )
        rows: list[Sequence[Cell]] = []
        for prompt in self.prompts:
            size = prompt.characters
            sizes = (f"{size:,}", f"{prompt.tokens:,}", f"{prompt.shared_prefix / max(size, 1):.0%}")
            rows.append((prompt.step, self.graph.names[prompt.socket], prompt.item or "", prompt.turn, *sizes))
        yield from _first_rows(("step", "socket", "item", "turn", "characters", "tokens", "same"), rows)


def _no_verdict_lines(graph: Graph, nothing: Mapping[str, float]) -> Iterator[Line]:
    """Yield a line for each socket whose output may have no verdict."""
    for socket, chance in nothing.items():
        chance_words = f" in {chance:.0%}" if chance < 1 else ": its prompt does not ask for one"
        yield Line(f"{graph.names[socket]} gives no verdict{chance_words}")


def _distribution_row(name: str, counts: Sequence[int]) -> tuple[str, str, int, int, int]:
    ordered = sorted(counts)
    median_index, percentile_index = ((len(ordered) - 1) // 2), ((len(ordered) * 9 + 9) // 10 - 1)
    return name, f"{mean(ordered):.2f}", ordered[median_index], ordered[percentile_index], ordered[-1]
