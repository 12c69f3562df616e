"""Exact chances of the ends of a cast and its mean number of turns, from a Markov chain of the reachable states.

For loadouts with too many states, :class:`Simulation` estimates the same numbers from many random casts in memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from heapq import heapify, heappop, heappush
from math import ceil
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
    compute_distribution,
    quantile,
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
from materia_nb.loadout.topology import strong_components
from materia_nb.loadout.vocabulary import ACCEPTED, DEFAULT_HANDOFF, REWORK_CONDITIONS, VERDICTS, WITHOUT_OUTPUT, Result
from materia_nb.platform import Progress, ProgressBar

_MIN_PIVOT: Final = 1e-12
"""Minimum chance of leaving a group of states; a smaller chance is treated as a rounding error."""


def solve(rows: Sequence[Mapping[int, float]], constants: Sequence[float]) -> list[float]:
    """Return the solution ``x`` of the equations ``x[i] = constants[i] + sum(rows[i][j] * x[j])``.

    Raises:
        MateriaError: kind ``endless``: the equations have no solution.
    """
    solution = [0.0] * len(rows)
    for component in strong_components(dict(enumerate(rows))):
        members = set(component)
        member_rows = {i: {j: weight for j, weight in rows[i].items() if j in members and weight} for i in component}
        known_terms = {
            i: constants[i] + sum(weight * solution[j] for j, weight in rows[i].items() if j not in members)
            for i in component
        }
        for i, weights in reversed(_eliminate(member_rows, known_terms)):
            solution[i] = known_terms[i] + sum(weight * solution[j] for j, weight in weights.items())
    return solution


def _eliminate(rows: dict[int, dict[int, float]], constants: dict[int, float]) -> list[tuple[int, dict[int, float]]]:
    """Eliminate the unknowns one by one, starting with unknowns that occur in few equations.

    Return the unknowns in the order of elimination, each with the weights of the unknowns that were eliminated later.
    ``known``, which contains the constants, is updated.
    """
    columns: dict[int, set[int]] = {i: set() for i in rows}
    for i, weights in rows.items():
        for j in weights:
            columns[j].add(i)
    queue = [(len(columns[i]) * len(rows[i]), i) for i in rows]
    heapify(queue)
    order: list[tuple[int, dict[int, float]]] = []
    while queue:
        cost, i = heappop(queue)
        if cost != (new_cost := len(columns[i]) * len(rows[i])):
            heappush(queue, (new_cost, i))
            continue
        pivot = 1 - rows[i].pop(i, 0.0)
        if pivot < _MIN_PIVOT:
            raise MateriaError(
                "With these chances, a cast can repeat a cycle forever, so its number of turns has no mean.",
                hint="find the cycle with `explore`, then set a chance between 0 and 1, or limit the cycle with maxTraversals",
                kind="endless",
            )
        weights = {j: weight / pivot for j, weight in rows.pop(i).items()}
        constants[i] /= pivot
        for j in weights:
            columns[j].discard(i)
        for user in columns.pop(i) - {i}:
            factor = rows[user].pop(i)
            constants[user] += factor * constants[i]
            for j, weight in weights.items():
                rows[user][j] = rows[user].get(j, 0.0) + factor * weight
                columns[j].add(user)
        order.append((i, weights))
    return order


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
    """Return the value for a socket by its id, its materia or ``*``, or None if no value applies."""
    if not isinstance(values, Mapping):
        return values
    names = (socket, graph.sockets[socket].materia.id, "*")
    return next((values[name] for name in names if name in values), None)


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
        verdicts = decisive_verdicts(socket_rules)
        if verdicts == (Result.NOTHING,) or (is_not_asked(socket_rules) and not _is_named(socket_rules, satisfied)):
            if failing or verdicts != (Result.NOTHING,):
                chances[id_] = Chance(0.0, 1.0, failing)
            continue
        value = value_for_socket(rules.graph, id_, satisfied)
        if value is None:
            message = f"{id_} gives a verdict (`satisfied`), but its chance is missing."
            raise _bad_chance(message, id_, f"write `{id_}=0.7`, or `*=0.7` for all others (a dict in Python)")
        try:
            yes, nothing = map(float, value) if isinstance(value, tuple) else (float(value), 0.0)
        except (TypeError, ValueError):
            yes, nothing = -1.0, 0.0  # refused below
        if not (yes >= 0 and nothing >= 0 and yes + nothing <= 1):
            hint = "set a number from 0 to 1, or two numbers such as (0.7, 0.1)"
            raise _bad_chance(f"The chance of `satisfied` at {id_} is not valid: {value!r:.60}.", id_, hint)
        if nothing and (Result.NOTHING not in verdicts or socket_rules.socket.handoff != DEFAULT_HANDOFF):
            message = f"{id_} must give a verdict (`satisfied`), so it cannot have a chance to omit it."
            raise _bad_chance(message, id_, "set only the chance of true, such as 0.7")
        chances[id_] = Chance(yes, nothing, failing)
    return chances


def _is_named(socket_rules: SocketRules, values: Chances) -> bool:
    """Return True if ``values`` contains the id of a socket or the name of its materia."""
    socket = socket_rules.socket
    return isinstance(values, Mapping) and (socket.id in values or socket.materia.id in values)


def _failure_chances(
    rules: Rules, socket_rules: SocketRules, failures: Mapping[Result, PerSocket]
) -> Mapping[Result, float]:
    """Return the chance of each explored failure. The chances of failures that take the same edge are added."""
    id_, explored = socket_rules.socket.id, handled_failures(socket_rules)
    chances: dict[Result, float] = {}
    for result, values in failures.items():
        chance = value_for_socket(rules.graph, id_, values) or 0.0
        if not 0 <= chance <= 1:
            raise _bad_chance(f"The chance that {id_} fails is not valid: {chance}.", id_, "set a number from 0 to 1")
        if result in explored and chance:
            chances[explored[result]] = chances.get(explored[result], 0.0) + chance
        elif chance and _is_named(socket_rules, values):
            message = f"No edge of {id_} handles {result.noun}, so it would stop the cast."
            raise _bad_chance(message, id_, f"add an edge for {result} to the socket")
    if (total := sum(chances.values())) > 1:
        raise _bad_chance(f"The chances that {id_} fails add up to {total}.", id_, "reduce the sum to 1 or less")
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
    known_names = {*graph.sockets, *(socket.materia.id for socket in graph.sockets.values()), "*"}
    for values in (satisfied, *numbers):
        for name, value in values.items() if isinstance(values, Mapping) else [("*", values)]:
            message = f"The loadout {graph.name} has no socket or materia {name!r}."
            needs_one_of(name, known_names, message, "unknown_socket")
            if values is not satisfied and not isinstance(value, Real | None):
                hint = "set one number, or numbers by socket or materia: {'Socket-3': 0.7, '*': 0.9}"
                raise usage_error(f"{value!r:.60} is not a number.", hint)


# -- odds ------------------------------------------------------------------------------------


_CERTAIN: Final = dict.fromkeys(ACCEPTED, 1.0)
"""Chances for a socket whose result does not affect the route; the chance that a result holds the cast is 0."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The derivatives of ``complete`` and ``turns`` with respect to one socket's chance of ``satisfied``."""

    complete: float
    turns: float


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
        sensitivity: the derivatives of ``complete`` and ``turns`` with respect to each socket's chance of
            ``satisfied``.
        tokens: the mean number of tokens of a cast, excluding the agents in ``uncounted``; None if no token counts were
            specified.
        cost: the mean cost of a cast, excluding the agents in ``unpriced``; None if no costs were specified.
        seconds: the mean duration of a cast, by number of parallel lanes, from one lane to one lane per item; None if
            no durations were specified. The lane with the most items determines the duration. Each item is assumed to
            take its mean time, so a duration with several lanes is a lower bound. A loadout without lanes has one
            entry.
        uncounted: the visited agents without a specified number of tokens, which ``tokens`` excludes (R56).
        unpriced: the visited agents without a specified cost, which ``cost`` excludes (R56).
    """

    graph: Graph
    items: int
    satisfied: Mapping[str, float]
    nothing: Mapping[str, float]
    failed: Mapping[str, float]
    ends: Mapping[str, float]
    turns: float
    visits: Mapping[str, float]
    sensitivity: Mapping[str, Sensitivity]
    tokens: float | None = None
    cost: float | None = None
    uncounted: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    seconds: Mapping[int, float] | None = None
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
        """Return the totals that a cast does not exceed with a chance of ``share``; 0.9 is the 90th percentile.

        Raises:
            MateriaError: the share is not between 0 and 1 (``usage``).
        """
        if not 0 < share < 1:
            raise usage_error(f"{share!r:.60} is not a share of casts.", "set a number between 0 and 1, such as 0.9")
        known = [name for name in Percentile._fields if getattr(self, name) is not None]
        return Percentile(**{name: quantile(self.distribution(name), share) for name in known})


class Percentile(NamedTuple):
    """The totals that a share of casts does not exceed; None if the amounts of the quantity were not specified."""

    turns: float
    tokens: float | None = None
    cost: float | None = None
    seconds: float | None = None


def compute_odds(
    graph: Graph, space: StateSpace, satisfied: Chances, items: int, **assumed: Unpack[Assumptions]
) -> Odds:
    """Return the odds of a cast by solving the Markov chain of its states. All lists must have the length ``items``."""
    tokens, cost, seconds = assumed.pop("tokens", None), assumed.pop("cost", None), assumed.pop("seconds", None)
    chances = chances_by_socket(graph, satisfied, assumed, tokens, cost, seconds)
    size = len(space.nodes)
    weighted_moves = _weigh_moves(space, chances)
    onward, turns = _transitions(weighted_moves)
    backward: list[dict[int, float]] = [{} for _ in range(size)]
    for number, weights in enumerate(onward):
        for to, weight in weights.items():
            backward[to][number] = weight
    frequencies = solve(backward, [1.0] + [0.0] * (size - 1))
    ends: dict[str, float] = defaultdict(float)
    visits: dict[str, float] = dict.fromkeys(graph.sockets, 0.0)
    for node, frequency in zip(space.nodes, frequencies, strict=True):
        if node.end is not None and (frequency or node.end != HELD):
            ends[node.end] += frequency
        elif node.end is None and node.socket is not None:
            visits[node.socket] += frequency
    success = solve(onward, [float(node.end == COMPLETE) for node in space.nodes])
    turns_left = solve(onward, turns)

    @cache
    def distribution(quantity: str) -> Distribution:
        values = {"tokens": tokens, "cost": cost, "seconds": seconds}.get(quantity)
        by_socket = {id_: value_for_socket(graph, id_, values or 0.0) or 0.0 for id_ in graph.sockets}
        amounts = None if quantity == "turns" else [by_socket.get(node.socket or "", 0.0) for node in space.nodes]
        return compute_distribution(space, weighted_moves, amounts)

    total_tokens, uncounted = _total(graph, visits, tokens)
    total_cost, unpriced = _total(graph, visits, cost)
    ends = dict(sorted(ends.items(), key=lambda pair: (-pair[1], pair[0])))
    effects = _sensitivity(space, chances, frequencies, success, turns_left)
    odds = Odds(
        graph, items, *_stated_chances(chances), ends, turns_left[0], visits, effects, _distribution=distribution
    )
    by_lanes = _seconds_by_lanes(graph, visits, items, seconds)
    odds = replace(odds, tokens=total_tokens, cost=total_cost, seconds=by_lanes)
    return replace(odds, uncounted=uncounted, unpriced=unpriced)


def _stated_chances(chances: Mapping[str, Chance]) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Return the chances of satisfied outputs, of outputs without a verdict, and of failures, by socket."""
    satisfied = {socket: chance.yes for socket, chance in chances.items() if chance.nothing < 1}
    nothing = {socket: chance.nothing for socket, chance in chances.items() if chance.nothing}
    return satisfied, nothing, {socket: chance.failed for socket, chance in chances.items() if chance.failed}


def _weigh_moves(space: StateSpace, chances: Mapping[str, Chance]) -> list[list[tuple[Move, float]]]:
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


def _transitions(weighted_moves: Sequence[Sequence[tuple[Move, float]]]) -> tuple[list[dict[int, float]], list[float]]:
    """Return, for each state, the chances of the next states and the mean number of turns of its visit."""
    onward: list[dict[int, float]] = [defaultdict(float) for _ in weighted_moves]
    for weights, moves in zip(onward, weighted_moves, strict=True):
        for move, weight in moves:
            weights[move.to] += weight
    return onward, [sum(weight * move.turns for move, weight in moves) for moves in weighted_moves]


class Outlook(NamedTuple):
    """The chance that a cast completes after it has reached a state, and the mean number of agent turns from there."""

    complete: float
    turns: float


def outlooks(graph: Graph, space: StateSpace, satisfied: Chances) -> list[Outlook]:
    """Return the outlook of each state. All explored list lengths are equally likely.

    Raises:
        MateriaError: a chance is missing or invalid, or the mean does not exist (``endless``).
    """
    onward, turns = _transitions(_weigh_moves(space, chances_by_socket(graph, satisfied, {})))
    success = solve(onward, [float(node.end == COMPLETE) for node in space.nodes])
    return [Outlook(*pair) for pair in zip(success, solve(onward, turns), strict=True)]


def _sensitivity(
    space: StateSpace,
    chances: Mapping[str, Chance],
    frequencies: list[float],
    success: list[float],
    turns_left: list[float],
) -> dict[str, Sensitivity]:
    """Return the effect of each socket's verdict, summed over its states and weighted by the visits to each state."""
    effects = {socket: [0.0, 0.0] for socket, chance in chances.items() if chance.nothing < 1}
    for node, moves, frequency in zip(space.nodes, space.moves, frequencies, strict=True):
        if node.end is None and node.socket in effects:
            effect, weight = effects[node.socket], frequency * (1 - chances[node.socket].failed)
            for move in (move for move in moves if move.answer.result in VERDICTS):
                factor = weight if move.answer.result is Result.YES else -weight
                effect[0] += factor * success[move.to]
                effect[1] += factor * (move.turns + turns_left[move.to])
    return {socket: Sensitivity(*effect) for socket, effect in effects.items()}


def _total(graph: Graph, visits: Mapping[str, float], values: PerSocket | None) -> tuple[float | None, tuple[str, ...]]:
    """Return the mean total of a quantity per cast, such as its cost, and the visited agents that ``values`` lacks.

    The total is None if ``values`` contains none of the visited sockets. A missing process counts as zero.
    """
    if values is None:
        return None, ()
    value_by_socket = {id_: value_for_socket(graph, id_, values) for id_, count in visits.items() if count}
    totals = [visits[id_] * value for id_, value in value_by_socket.items() if value is not None]
    missing = (id_ for id_, value in value_by_socket.items() if value is None and not graph.sockets[id_].is_utility)
    return sum(totals) if totals else None, tuple(missing)


def _seconds_by_lanes(
    graph: Graph, visits: Mapping[str, float], items: int, seconds: PerSocket | None
) -> dict[int, float] | None:
    """Return the mean duration of a cast for each number of lanes, from one lane to one lane per item.

    More lanes shorten only the time in the sockets of lanes, which the lane with the most items determines.
    """
    if seconds is None:
        return None
    members = {socket for region in graph.regions.values() for socket in region.members}
    total = _total(graph, visits, seconds)[0] or 0.0
    in_lanes = _total(graph, {id_: visits[id_] for id_ in members}, seconds)[0] or 0.0
    max_lanes = max(items, 1) if members else 1
    return {
        lanes: total - in_lanes + in_lanes * ceil(items / lanes) / max(items, 1) for lanes in range(1, max_lanes + 1)
    }


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
        failed: the chance that the agent or process fails, by socket.
        ends: the number of casts with each end, which is ``complete`` or the kind of failure.
        turns: the number of agent turns in each cast.
        retries: the number of times that work was sent back in each cast.
        visits: the number of visits to each socket, in all casts.
        edge_uses: the number of uses of each edge, by the tuple ``(socket id, edge number from 1)``, and of each exit, by
            its ``edge_id``, in all casts.
    """

    graph: Graph
    n: int
    items: int
    seed: int
    nothing: Mapping[str, float]
    failed: Mapping[str, float]
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
        raise MateriaError("A simulation needs at least one cast.", hint="give n from 1")
    check_list_lengths(items)
    chances = chances_by_socket(graph, satisfied, failures)
    rules = Rules(without_prompts(graph))
    answers = PossibleAnswers(rules, (items,))
    start, first_exits = enter_next(rules, entering.begin(rules, SAMPLE))
    visits: Counter[str] = Counter(dict.fromkeys(graph.sockets, 0))
    edge_uses: Counter[EdgeRef] = Counter()
    ends: Counter[str] = Counter()
    turns, retries = [], []
    bar = ProgressBar(progress, n, "casts")
    try:
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
            retries.append(sum(_sends_back(graph, edge) for edge in edges))
            bar.add()
    finally:
        bar.close()
    ends_of_casts = dict(ends.most_common())
    _, nothing, failed = _stated_chances(chances)
    results = (tuple(turns), tuple(retries))
    return Simulation(graph, n, items, seed, nothing, failed, ends_of_casts, *results, dict(visits), dict(edge_uses))


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


def _sends_back(graph: Graph, edge: EdgeRef) -> bool:
    return isinstance(edge, tuple) and graph.sockets[edge[0]].edges[edge[1] - 1].when in REWORK_CONDITIONS
