"""Exact chances of the ends of a cast and its mean number of turns, from a Markov chain of the reachable states.

For loadouts with too many states, :class:`Simulation` estimates the same numbers from many random casts in memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from numbers import Real
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias, TypedDict, TypeVar, Unpack

from materia_nb.engine import entering
from materia_nb.engine.routing import handled_failures
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.session import StepRecord
from materia_nb.engine.state import CastState
from materia_nb.errors import MateriaError, needs_one_of, usage_error
from materia_nb.handoff.base import SAMPLE
from materia_nb.insight.reachable_states import (
    COMPLETE,
    HELD,
    Distribution,
    Move,
    StateSpace,
    WeightedMoves,
    add_quality,
    compute_distribution,
    quantile,
    solve,
)
from materia_nb.insight.scripted_answers import (
    EdgeRef,
    PossibleAnswers,
    ScriptedResult,
    check_list_lengths,
    decisive_verdicts,
    end_kind,
    enter_next,
    is_not_asked,
    play_cast,
    without_prompts,
)
from materia_nb.jsonvalue import FrozenDict
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.vocabulary import ACCEPTED, DEFAULT_HANDOFF, REWORK_CONDITIONS, VERDICTS, WITHOUT_OUTPUT, Result
from materia_nb.platform import Progress, ProgressBar

# -- chances ---------------------------------------------------------------------------------

PerSocket: TypeAlias = float | Mapping[str, float]
"""A number for every socket, or a mapping from sockets or materia to numbers, with ``*`` for all other sockets."""
Probability: TypeAlias = float | tuple[float, float]
"""The chance of ``satisfied: true``, or a pair of this chance and the chance that ``satisfied`` is omitted."""
Chances: TypeAlias = Probability | Mapping[str, Probability]
"""A probability for every socket, or a mapping from sockets or materia to probabilities."""
_Value = TypeVar("_Value", float, Probability)


class FailureChances(TypedDict, total=False):
    """The chances that a visit ends without an accepted output, by the name of the result (:data:`.WITHOUT_OUTPUT`).

    A chance is one number for all sockets, or a mapping from sockets or materia to numbers. It applies only to sockets
    that have an edge for the result. A new member of :class:`.Result` is accepted even if it is not listed in this
    class.

    Attributes:
        failed: the chance that the agent or process fails.
        refused: the chance that the output is still refused after all repairs.
    """

    failed: PerSocket
    refused: PerSocket


class Assumptions(FailureChances, total=False):
    """Assumptions about a visit, other than the chances of its verdict.

    Attributes:
        tokens: the number of tokens of a visit, for all sockets or by socket or materia.
        cost: the cost of a visit in US dollars, for all sockets or by socket or materia.
        seconds: the duration of a visit in seconds, for all sockets or by socket or materia.
    """

    tokens: PerSocket | None
    cost: PerSocket | None
    seconds: PerSocket | None


class Chance(NamedTuple):
    """The chance of each result of a visit.

    Attributes:
        yes: the chance that an output has ``satisfied: true``.
        nothing: the chance that an output omits ``satisfied``. In all other outputs, ``satisfied`` is false.
        failures: the chance of each explored failure. ``yes`` and ``nothing`` apply to visits that do not fail.
    """

    yes: float
    nothing: float = 0.0
    failures: Mapping[Result, float] = FrozenDict()

    @property
    def failed(self) -> float:
        """The chance that the visit fails and has no output."""
        return sum(self.failures.values())

    @property
    def by_result(self) -> dict[Result, float]:
        """The chance of each result of the visit. The chances add up to 1."""
        verdicts = {Result.YES: self.yes, Result.NO: 1 - self.yes - self.nothing, Result.NOTHING: self.nothing}
        return {**self.failures, **{result: (1 - self.failed) * chance for result, chance in verdicts.items()}}


def value_for_socket(graph: Graph, socket: str, values: _Value | Mapping[str, _Value]) -> _Value | None:
    """Return the value for a socket by its id, its display name, its materia or ``*``, or None if no value applies."""
    if not isinstance(values, Mapping):
        return values
    return next((values[name] for name in (*_socket_names(graph, socket), "*") if name in values), None)


def _socket_names(graph: Graph, socket: str) -> tuple[str, ...]:
    """Return the names by which a person can set a value for a socket."""
    return socket, graph.names[socket], graph.sockets[socket].materia.id


def chances_by_socket(
    graph: Graph, satisfied: Chances, failures: FailureChances, *usage: PerSocket | None
) -> dict[str, Chance]:
    """Return the chances of each socket whose result affects the route of the cast.

    An agent that is not asked for ``satisfied`` omits it, unless ``satisfied`` contains a chance for this agent by
    name.

    Args:
        graph: the loadout.
        satisfied: the chance of ``satisfied: true``, or a pair of this chance and the chance that ``satisfied`` is
            omitted.
        failures: the chance of each failure of a visit, for sockets with an edge for that failure.
        usage: other numbers by socket, such as tokens. Only their names and types are checked.

    Raises:
        MateriaError: a chance is missing or not between 0 and 1, a socket that must give a verdict has a chance to omit
            it, or a socket without an edge for a failure has a chance of that failure (``bad_chance``); a name is not
            in the loadout (``unknown_socket``); a value is not a number, or a failure does not exist (``usage``).
    """
    for name in failures:
        needs_one_of(name, WITHOUT_OUTPUT, f"{name!r} is not a kind of failure that can have a chance.", "usage")
    numbers: Mapping[str, Any] = {**failures}
    chance_by_failure = {result: numbers[result] for result in WITHOUT_OUTPUT if result in numbers}
    _check_per_socket(graph, satisfied, *chance_by_failure.values(), *usage)
    rules = Rules(without_prompts(graph))
    chances = {}
    for id_, socket_rules in rules.sockets.items():
        failing = _failure_chances(rules, socket_rules, chance_by_failure)
        verdicts, name = decisive_verdicts(socket_rules), graph.names[id_]
        if verdicts == (Result.NOTHING,) or (is_not_asked(socket_rules) and not _is_named(graph, id_, satisfied)):
            if failing or verdicts != (Result.NOTHING,):
                chances[id_] = Chance(0.0, 1.0, failing)
            continue
        value = value_for_socket(rules.graph, id_, satisfied)
        if value is None:
            message = f"{name} gives a verdict (`satisfied`), but its chance is missing."
            raise _bad_chance(message, id_, f"write `{id_}=0.7`, or `*=0.7` for all others (a dict in Python)")
        try:
            yes, nothing = map(float, value) if isinstance(value, tuple) else (float(value), 0.0)
        except (TypeError, ValueError):
            yes, nothing = -1.0, 0.0  # refused below
        if not (yes >= 0 and nothing >= 0 and yes + nothing <= 1):
            hint = "set a number from 0 to 1, or two numbers such as (0.7, 0.1)"
            raise _bad_chance(f"The chance of `satisfied` at {name} is not valid: {value!r:.60}.", id_, hint)
        if nothing and (Result.NOTHING not in verdicts or socket_rules.socket.handoff != DEFAULT_HANDOFF):
            message = f"{name} must give a verdict (`satisfied`), so it cannot have a chance to omit it."
            raise _bad_chance(message, id_, "set only the chance of true, such as 0.7")
        chances[id_] = Chance(yes, nothing, failing)
    return chances


def _is_named(graph: Graph, socket: str, values: Chances) -> bool:
    return isinstance(values, Mapping) and not values.keys().isdisjoint(_socket_names(graph, socket))


def _failure_chances(
    rules: Rules, socket_rules: SocketRules, failures: Mapping[Result, PerSocket]
) -> Mapping[Result, float]:
    """Return the chance of each explored failure. The chances of failures that take the same edge are added."""
    id_, explored = socket_rules.socket.id, handled_failures(socket_rules)
    name, chances = rules.graph.names[id_], dict[Result, float]()
    for result, values in failures.items():
        chance = value_for_socket(rules.graph, id_, values) or 0.0
        if not 0 <= chance <= 1:
            raise _bad_chance(f"The chance that {name} fails is not valid: {chance}.", id_, "set a number from 0 to 1")
        if result in explored and chance:
            chances[explored[result]] = chances.get(explored[result], 0.0) + chance
        elif chance and _is_named(rules.graph, id_, values):
            message = f"No edge of {name} handles {result.noun}, so it would stop the cast."
            raise _bad_chance(message, id_, f"add an edge for {result} to the socket")
    if (total := sum(chances.values())) > 1:
        raise _bad_chance(f"The chances that {name} fails add up to {total}.", id_, "reduce the sum to 1 or less")
    return FrozenDict(chances)


def _bad_chance(message: str, socket: str, hint: str) -> MateriaError:
    return MateriaError(message, where=socket, hint=hint, kind="bad_chance")


def satisfied_shares(steps: Iterable[StepRecord]) -> dict[str, float]:
    """Return, for each socket, the share of ``satisfied: true`` among its steps with a verdict.

    The steps may belong to several casts of the same loadout.
    """
    results: dict[str, list[Result]] = {}
    for step in steps:
        if step.decision is not None and step.decision.result in VERDICTS:
            results.setdefault(step.socket, []).append(step.decision.result)
    return {socket: verdicts.count(Result.YES) / len(verdicts) for socket, verdicts in results.items()}


def _check_per_socket(graph: Graph, satisfied: Chances, *numbers: PerSocket | None) -> None:
    """Raise MateriaError if values by socket contain an unknown name or a value that is not a number."""
    known_names = {"*", *(name for id_ in graph.sockets for name in _socket_names(graph, id_))}
    for values in (satisfied, *numbers):
        for name, value in values.items() if isinstance(values, Mapping) else [("*", values)]:
            message = f"The loadout {graph.name} has no socket or materia {name!r}."
            needs_one_of(name, known_names, message, "unknown_socket")
            if values is not satisfied and not isinstance(value, Real | None):
                hint = "set one number, or numbers by socket or materia: {'Socket-3': 0.7, '*': 0.9}"
                raise usage_error(f"{value!r:.60} is not a number.", hint)


# -- odds ------------------------------------------------------------------------------------


# Chances for a socket whose result does not affect the route; the chance that a result holds the cast is 0.
_CERTAIN: Final = dict.fromkeys(ACCEPTED, 1.0)


@dataclass(frozen=True)
class Odds:
    """The chance of each end of a cast, and its mean turns, visits, tokens, cost and time.

    Attributes:
        graph: the loadout.
        items: the length of every list.
        satisfied: the chance of ``satisfied: true``, for each socket whose verdict affects the route of the cast.
        nothing: the chance that ``satisfied`` is omitted, for each socket that can omit it. The chance is 1 for an
            agent that is not asked for ``satisfied``, unless ``satisfied`` names its socket or materia.
        failed: the chance that the agent or process fails, by socket.
        ends: the chance of each end, which is ``complete`` or the kind of failure.
        turns: the mean number of agent turns.
        visits: the mean number of visits to each socket.
        tokens: the mean number of tokens of a cast, excluding the agents in ``uncounted``; None if no token counts were
            specified.
        cost: the mean cost of a cast, excluding the agents in ``unpriced``; None if no costs were specified.
        seconds: the mean duration of a cast with a single lane; None if no durations were specified.
        uncounted: the visited agents whose number of tokens was not specified; ``tokens`` excludes these agents (R56).
        unpriced: the visited agents whose cost was not specified; ``cost`` excludes these agents (R56).
    """

    graph: Graph
    items: int
    satisfied: Mapping[str, float]
    nothing: Mapping[str, float]
    failed: Mapping[str, float]
    ends: Mapping[str, float]
    turns: float
    visits: Mapping[str, float]
    tokens: float | None = None
    cost: float | None = None
    seconds: float | None = None
    uncounted: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    _distribution: Callable[[str], Distribution] | None = field(default=None, repr=False, compare=False)

    def distribution(self, quantity: str = "turns") -> Distribution:
        """Return the chance of each total of a quantity in a cast, by the end of the cast.

        The totals of turns are exact. Totals of other quantities are rounded to about 0.1 % of their range if there are
        more than 1,000 different totals.

        Args:
            quantity: ``turns``, or ``tokens``, ``cost`` or ``seconds`` if their amounts were specified. Seconds are
                those of a single lane.

        Raises:
            MateriaError: the quantity does not exist, or its amounts were not specified (``usage``).
        """
        needs_one_of(quantity, Percentile._fields, f"A cast has no quantity {quantity!r}.", "usage")
        if self._distribution is None or getattr(self, quantity) is None:
            raise usage_error(f"The amounts of {quantity} are not set.", f"set {quantity}= in odds")
        return self._distribution(quantity)

    def at(self, share: float) -> Percentile:
        """Return the totals that ``share`` of the casts do not exceed; 0.9 selects the 90th percentile.

        Raises:
            MateriaError: the share is not between 0 and 1 (``usage``).
        """
        if not 0 < share < 1:
            raise usage_error(f"{share!r:.60} is not a share of casts.", "set a number between 0 and 1, such as 0.9")
        known_quantities = [name for name in Percentile._fields if getattr(self, name) is not None]
        return Percentile(**{name: quantile(self.distribution(name), share) for name in known_quantities})


class Percentile(NamedTuple):
    """The totals that a share of casts does not exceed; None if the amounts of the quantity were not specified."""

    turns: float
    tokens: float | None = None
    cost: float | None = None
    seconds: float | None = None


def compute_odds(
    graph: Graph, space: StateSpace, satisfied: Chances, item_count: int, **assumed: Unpack[Assumptions]
) -> Odds:
    """Return the odds of a cast by solving the Markov chain of its states. All lists must have ``item_count`` items."""
    amounts = _pop_amounts(assumed)
    chances = chances_by_socket(graph, satisfied, assumed, *amounts.values())
    return _solve_odds(graph, space, _weigh_moves(space, chances), chances, item_count, amounts)


def _pop_amounts(assumed: Assumptions) -> dict[str, PerSocket | None]:
    tokens, cost, seconds = assumed.pop("tokens", None), assumed.pop("cost", None), assumed.pop("seconds", None)
    return {"tokens": tokens, "cost": cost, "seconds": seconds}


def _solve_odds(
    graph: Graph,
    space: StateSpace,
    weighted_moves: WeightedMoves,
    chances: Mapping[str, Chance],
    item_count: int,
    amounts: Mapping[str, PerSocket | None],
) -> Odds:
    backward: list[dict[int, float]] = [defaultdict(float) for _ in space.nodes]
    for number, moves in enumerate(weighted_moves):
        for move, weight in moves:
            backward[move.to][number] += weight
    frequencies = solve(backward, [1.0] + [0.0] * (len(space.nodes) - 1))
    ends: dict[str, float] = defaultdict(float)
    visits: dict[str, float] = dict.fromkeys(graph.sockets, 0.0)
    turns = 0.0
    for node, moves, frequency in zip(space.nodes, weighted_moves, frequencies, strict=True):
        turns += frequency * _mean_turns(moves)
        if node.end is not None and (frequency or node.end != HELD):
            ends[node.end] += frequency
        elif node.end is None and node.socket is not None:
            visits[node.socket] += frequency

    @cache
    def distribution(quantity: str) -> Distribution:
        by_socket = {id_: value_for_socket(graph, id_, amounts.get(quantity) or 0.0) or 0.0 for id_ in graph.sockets}
        of_visits = None if quantity == "turns" else [by_socket.get(node.socket or "", 0.0) for node in space.nodes]
        return compute_distribution(space, weighted_moves, of_visits)

    tokens, uncounted = _total(graph, visits, amounts["tokens"])
    cost, unpriced = _total(graph, visits, amounts["cost"])
    seconds, _ = _total(graph, visits, amounts["seconds"])
    ends = dict(sorted(ends.items(), key=lambda pair: (-pair[1], pair[0])))
    return Odds(
        graph,
        item_count,
        *_stated_chances(chances),
        ends,
        turns,
        visits,
        tokens=tokens,
        cost=cost,
        seconds=seconds,
        uncounted=uncounted,
        unpriced=unpriced,
        _distribution=distribution,
    )


def _stated_chances(chances: Mapping[str, Chance]) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Return the chances of satisfied outputs, of outputs without a verdict, and of failures, by socket."""
    satisfied = {socket: chance.yes for socket, chance in chances.items() if chance.nothing < 1}
    nothing = {socket: chance.nothing for socket, chance in chances.items() if chance.nothing}
    return satisfied, nothing, {socket: chance.failed for socket, chance in chances.items() if chance.failed}


def _weigh_moves(space: StateSpace, chances: Mapping[str, Chance]) -> WeightedMoves:
    """Return the possible moves from each state, with their chances.

    Moves with the same result differ only in the lengths of their lists, and they are equally likely.
    """
    weight_by_result = {socket: chance.by_result for socket, chance in chances.items()}
    weighted_moves = []
    for node, moves in zip(space.nodes, space.moves, strict=True):
        weights = weight_by_result.get(node.socket or "", _CERTAIN)
        counts = Counter(move.answer.result for move in moves)
        weighted = [(move, weights.get(move.answer.result, 0.0) / counts[move.answer.result]) for move in moves]
        weighted_moves.append([pair for pair in weighted if pair[1] > 0])
    return weighted_moves


def _mean_turns(moves: Sequence[tuple[Move, float]]) -> float:
    return sum(weight * move.turns for move, weight in moves)


class Outlook(NamedTuple):
    """The chance that a cast completes after it has reached a state, and the mean number of agent turns from there."""

    complete: float
    turns: float


def outlooks(graph: Graph, space: StateSpace, satisfied: Chances) -> list[Outlook]:
    """Return the outlook of each state. All explored list lengths are equally likely.

    Raises:
        MateriaError: a chance is missing or invalid, or the mean does not exist (``endless``).
    """
    weighted_moves = _weigh_moves(space, chances_by_socket(graph, satisfied, {}))
    onward: list[dict[int, float]] = [defaultdict(float) for _ in space.nodes]
    for weights, moves in zip(onward, weighted_moves, strict=True):
        for move, weight in moves:
            weights[move.to] += weight
    success = solve(onward, [float(node.end == COMPLETE) for node in space.nodes])
    return [Outlook(*pair) for pair in zip(success, solve(onward, list(map(_mean_turns, weighted_moves))), strict=True)]


def _total(graph: Graph, visits: Mapping[str, float], values: PerSocket | None) -> tuple[float | None, tuple[str, ...]]:
    """Return the mean total of a quantity per cast, such as the cost, and the visited agents without a value.

    The total is None if ``values`` contains none of the visited sockets. A missing process counts as zero.
    """
    if values is None:
        return None, ()
    value_by_socket = {id_: value_for_socket(graph, id_, values) for id_, count in visits.items() if count}
    totals = [visits[id_] * value for id_, value in value_by_socket.items() if value is not None]
    missing_ids = (id_ for id_, value in value_by_socket.items() if value is None and not graph.sockets[id_].is_utility)
    return sum(totals) if totals else None, tuple(missing_ids)


# -- critics ---------------------------------------------------------------------------------


def compute_worth(
    graph: Graph,
    explore: Callable[[Graph], StateSpace],
    writer: PerSocket,
    critics: Mapping[str, tuple[float, float]],
    satisfied: Chances,
    item_count: int,
    **assumed: Unpack[Assumptions],
) -> dict[str, Odds]:
    """Return the odds with all critics, without each critic, and with one more try for each critic.

    ``explore`` returns the states of a loadout. The other parameters are those of :meth:`.Exploration.worth`.
    """
    amounts = _pop_amounts(assumed)
    pair_hint = "set a pair of chances from 0 to 1 (refuses bad work, refuses good work), such as (0.8, 0.1)"
    catches = _checked_by_socket(graph, critics, 2, pair_hint)
    back = (edge.to for id_ in catches for edge in graph.sockets[id_].edges if edge.when in REWORK_CONDITIONS)
    qualities = writer if isinstance(writer, Mapping) else dict.fromkeys(back, writer)
    writers = _checked_by_socket(graph, qualities, 1, 'set one number from 0 to 1, such as writer={"Build": 0.7}')
    other_chances = satisfied if isinstance(satisfied, Mapping) else {"*": satisfied}

    def odds_of(chosen: Graph, skipped: str = "") -> Odds:
        def chances_for(quality: int) -> dict[str, Chance]:
            yes = {id_: 1.0 if id_ == skipped else 1 - refused[quality] for id_, refused in catches.items()}
            return chances_by_socket(chosen, {**other_chances, **yes}, assumed, *amounts.values())

        space, (bad, good) = explore(chosen), map(chances_for, range(2))
        if mute := next((id_ for id_ in catches if id_ not in good), None):
            message = f"{graph.names[mute]} gives no verdict, so it is not a critic."
            raise _bad_chance(message, mute, "remove it from critics")
        parts = add_quality(chosen, space, writers, _weigh_moves(space, good), _weigh_moves(space, bad), skipped)
        return _solve_odds(chosen, *parts, good, item_count, amounts)

    rows = {"all critics": odds_of(graph)}
    for id_ in catches:
        rows[f"without {id_}"] = odds_of(graph, id_)
        if (chosen := _with_one_more_try(graph, id_)) != graph:
            rows[f"one more try at {id_}"] = odds_of(chosen)
    return rows


def _checked_by_socket(graph: Graph, values: Chances, size: int, hint: str) -> dict[str, Any]:
    """Return the chances by socket id. Each value must have ``size`` chances."""
    _check_per_socket(graph, values)
    chances = {id_: value for id_ in graph.sockets if (value := value_for_socket(graph, id_, values)) is not None}
    for id_, value in chances.items():
        numbers: tuple[Any, ...] = value if isinstance(value, tuple) else (value,)
        if len(numbers) != size or not all(isinstance(number, int | float) and 0 <= number <= 1 for number in numbers):
            message = f"The chance of good or refused work at {graph.names[id_]} is not valid: {value!r:.60}."
            raise _bad_chance(message, id_, hint)
    if not chances:
        raise usage_error("A critic or the writer whose work it sends back is missing.", hint)
    return chances


def _with_one_more_try(graph: Graph, id_: str) -> Graph:
    """Return the loadout in which each limit of a socket's edges is raised by one."""
    socket = graph.sockets[id_]
    edges = [replace(edge, max_traversals=edge.max_traversals and edge.max_traversals + 1) for edge in socket.edges]
    return replace(graph, sockets={**graph.sockets, id_: replace(socket, edges=tuple(edges))})


# -- simulations -----------------------------------------------------------------------------

_MAX_VISITS: Final = 10_000  # Number of visits after which a simulated cast is stopped.
_UNFINISHED: Final = "unfinished"  # The end of a simulated cast that was stopped.


@dataclass(frozen=True)
class Simulation:
    """The results of many casts with random answers.

    Attributes:
        graph: the loadout.
        n: the number of casts.
        items: the length of every list.
        seed: the seed of the random numbers.
        nothing: the chance that ``satisfied`` is omitted, for each socket that can omit it; see :class:`.odds.Odds`.
        ends: the number of casts with each end, which is ``complete`` or the kind of failure.
        turns: the number of agent turns in each cast.
        retries: the number of times that work was sent back in each cast.
        visits: the number of visits to each socket, in all casts.
        edge_uses: the number of uses of each edge and exit in all casts. The key of an edge is a pair of the socket id
            and the edge number (counting from 1); the key of an exit is its ``edge_id``.
    """

    graph: Graph
    n: int
    items: int
    seed: int
    nothing: Mapping[str, float]
    ends: Mapping[str, int]
    turns: tuple[int, ...]
    retries: tuple[int, ...]
    visits: Mapping[str, int]
    edge_uses: Mapping[EdgeRef, int]

    @property
    def traversals(self) -> dict[str, int]:
        """The number of uses of each edge, by edge name such as ``"A->B"`` (R21)."""
        uses: Counter[str] = Counter()
        for edge, count in self.edge_uses.items():
            if isinstance(edge, tuple):
                uses[f"{edge[0]}->{self.graph.sockets[edge[0]].edges[edge[1] - 1].to}"] += count
        return dict(uses)


def simulate_casts(
    graph: Graph,
    n: int = 1000,
    satisfied: Chances = 0.5,
    items: int = 3,
    seed: int = 1,
    *,
    progress: Progress = False,
    **failures: Unpack[FailureChances],
) -> Simulation:
    """Simulate many casts of a loadout with random answers.

    Args:
        graph: the loadout.
        n: the number of casts.
        satisfied: the chance that an output has ``satisfied: true``, or a pair of this chance and the chance that the
            output omits ``satisfied``. Either one value for all sockets, or values by socket or materia. An agent that
            is not asked for ``satisfied`` omits it, unless a value names the agent.
        items: the length of every list.
        seed: the seed of the random numbers; the number of each cast is appended to it.
        progress: True to display a progress bar, or a function that is called with the number of finished casts and the
            total.
        failures: the chances of failures, such as ``failed=0.1``; see :class:`FailureChances`.

    Raises:
        MateriaError: a chance is missing or invalid, or a socket accepts no sample answer (``no_answer``).
    """
    if n < 1:
        raise MateriaError("A simulation needs at least one cast.", hint="set n to 1 or more")
    check_list_lengths(items)
    chances = chances_by_socket(graph, satisfied, failures)
    rules = Rules(without_prompts(graph))
    answers = PossibleAnswers(rules, (items,))
    start, first_exits = enter_next(rules, entering.begin(rules, SAMPLE))
    visits: Counter[str] = Counter(dict.fromkeys(graph.sockets, 0))
    edge_uses: Counter[EdgeRef] = Counter()
    ends: Counter[str] = Counter()
    turns, retries = [], []
    with closing(ProgressBar(progress, n, "casts")) as bar:
        for number in range(n):
            choose = random_choice(answers.of, chances, Random(f"{seed}:{number}"))  # noqa: S311 - chances, no secrets
            played = list(play_cast(rules, start, choose, _MAX_VISITS))
            for visit in played:
                visit.require_accepted()
            edges = [*first_exits, *(edge for visit in played for edge in visit.edges)]
            visits.update(visit.socket_rules.socket.id for visit in played)
            edge_uses.update(edges)
            ends[end_kind(played[-1].next_state if played else start) or _UNFINISHED] += 1
            turns.append(sum(visit.agent_turns for visit in played))
            taken_edges = (graph.sockets[edge[0]].edges[edge[1] - 1] for edge in edges if isinstance(edge, tuple))
            retries.append(sum(edge.when in REWORK_CONDITIONS for edge in taken_edges))
            bar.add()
    ends_of_casts = dict(ends.most_common())
    results = (tuple(turns), tuple(retries))
    return Simulation(
        graph, n, items, seed, _stated_chances(chances)[1], ends_of_casts, *results, dict(visits), dict(edge_uses)
    )


def random_choice(
    answers_of: Callable[[SocketRules], Sequence[ScriptedResult]], chances: Mapping[str, Chance], rng: Random
) -> Callable[[CastState, SocketRules], ScriptedResult]:
    """Return a function that draws a random result for a visit, or the first result if the choice has no effect."""

    def choose(_: CastState, socket_rules: SocketRules) -> ScriptedResult:
        answers, chance = answers_of(socket_rules), chances.get(socket_rules.socket.id)
        if chance is None:
            return answers[0]
        (result,) = rng.choices([*chance.by_result], [*chance.by_result.values()])
        return next((answer for answer in answers if answer.result is result), answers[0])

    return choose
