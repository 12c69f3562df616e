"""How likely each end of a cast is, and what it takes on average: a Markov chain over its states, solved exactly.

Or, where there are too many states, by simulating: many casts in memory, answered by chance.
"""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil
from numbers import Real
from random import Random
from typing import Final, NamedTuple, TypeAlias, TypedDict, TypeVar, Unpack

from materia_nb.engine import entering
from materia_nb.engine.routing import awaited_failures
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.session import StepRecord
from materia_nb.errors import MateriaError, needs_one_of, usage_error
from materia_nb.handoff.base import SAMPLE
from materia_nb.insight.reachable_states import (
    COMPLETE,
    HELD,
    EdgeRef,
    Move,
    PossibleAnswers,
    ScriptedResult,
    StateSpace,
    check_list_lengths,
    decisive_verdicts,
    end_kind,
    enter_next,
    is_not_asked,
    play_visit,
    without_prompts,
)
from materia_nb.jsonvalue import FrozenDict
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.topology import knots
from materia_nb.loadout.vocabulary import (
    DEFAULT_HANDOFF,
    SENDING_BACK,
    TAKEN,
    WITHOUT_OUTPUT,
    YES_OR_NO,
    Result,
)
from materia_nb.parallel import Progress, ProgressBar, run_jobs

MAX_DENSE_STATES: Final = 200
"""States in one knot that are solved here; for more scipy is asked."""
_NOTHING: Final = 1e-12


def solve(rows: Sequence[Mapping[int, float]], given: Sequence[float]) -> list[float]:
    """Return the x of ``x[i] = given[i] + sum(rows[i][j] * x[j])``.

    Raises:
        MateriaError: there is none (``endless``), or it takes scipy, which is not installed (``no_scipy``).
    """
    found = [0.0] * len(rows)
    for knot in knots(dict(enumerate(rows))):
        inside = {state: place for place, state in enumerate(knot)}
        known = [
            given[state] + sum(part * found[to] for to, part in rows[state].items() if to not in inside)
            for state in knot
        ]
        matrix = [
            {inside[to]: part for to, part in rows[state].items() if to in inside and part} for state in knot
        ]
        for state, value in zip(knot, _knot(matrix, known), strict=True):
            found[state] = value
    return found


def _knot(matrix: Sequence[Mapping[int, float]], known: list[float]) -> Sequence[float]:
    if not any(matrix):
        return known
    return _eliminated(matrix, known) if len(known) <= MAX_DENSE_STATES else _by_scipy(matrix, known)


def _eliminated(matrix: Sequence[Mapping[int, float]], known: list[float]) -> list[float]:
    """Gauss, with the largest pivot of each column."""
    size = len(known)
    whole = [
        [float(row == column) - matrix[row].get(column, 0.0) for column in range(size)] + [known[row]]
        for row in range(size)
    ]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(whole[row][column]))
        if abs(whole[pivot][column]) < _NOTHING:
            raise _endless()
        whole[column], whole[pivot] = whole[pivot], whole[column]
        head = whole[column]
        for row in range(column + 1, size):
            if factor := whole[row][column] / head[column]:
                whole[row] = [a - factor * b for a, b in zip(whole[row], head, strict=True)]
    found = [0.0] * size
    for row in range(size - 1, -1, -1):
        rest = sum(whole[row][column] * found[column] for column in range(row + 1, size))
        found[row] = (whole[row][size] - rest) / whole[row][row]
    return found


def _by_scipy(matrix: Sequence[Mapping[int, float]], known: list[float]) -> Sequence[float]:
    try:
        from numpy import array
        from scipy.sparse import csc_array, eye_array
        from scipy.sparse.linalg import splu
    except ImportError:
        raise MateriaError(
            f"{len(known):,} states lead to one another, and scipy, which solves that, is not installed.",
            hint='pip install "materia-nb[insight]", or simulate instead',
            kind="no_scipy",
        ) from None
    places = [(row, column, part) for row, line in enumerate(matrix) for column, part in line.items()]
    rows, columns, parts = zip(*places, strict=True)
    size = len(known)
    try:
        solved = splu(csc_array(eye_array(size) - csc_array((parts, (rows, columns)), shape=(size, size))))
    except RuntimeError:  # what SuperLU says of a singular matrix
        raise _endless() from None
    return [float(value) for value in solved.solve(array(known))]


def _endless() -> MateriaError:
    return MateriaError(
        "With these chances a cast can go round for ever, so it has no mean.",
        hint="explore says where; give a chance between 0 and 1, or bound the round with maxTraversals",
        kind="endless",
    )


# -- odds ------------------------------------------------------------------------------------

PerSocket: TypeAlias = float | Mapping[str, float]
"""A number for every socket, or by socket or materia; ``*`` stands for all others."""
Probability: TypeAlias = float | tuple[float, float]
"""The chance that an output says ``satisfied: true``, or that and the chance that it says nothing of it."""
Chances: TypeAlias = Probability | Mapping[str, Probability]
"""The same for every socket, or by socket or materia."""
_Each = TypeVar("_Each", float, Probability)


class Assumptions(TypedDict, total=False):
    """What may be assumed of visits beside what they say.

    The chance of any other result without an output is given by its name, such as ``refused``.

    Attributes:
        failed: the chance that an agent or process fails, where an edge waits for that: for all, or by socket or
            materia.
        refused: the chance that its output is refused for good, where an edge waits for that.
        tokens: what a visit takes, by socket or materia.
        cost: the same in money.
        seconds: the same in time; ``Odds.seconds`` says what more lanes would bring.
    """

    failed: PerSocket
    refused: PerSocket
    tokens: PerSocket | None
    cost: PerSocket | None
    seconds: PerSocket | None


class Chance(NamedTuple):
    """How likely each result of a visit is.

    Attributes:
        yes: the chance that an output says ``satisfied: true``.
        nothing: the chance that an output says nothing of ``satisfied``; else it says false.
        failures: the chance of each failure that is explored; there is no output then.
    """

    yes: float
    nothing: float = 0.0
    failures: Mapping[Result, float] = FrozenDict()

    @property
    def failed(self) -> float:
        """The chance that there is no output, where an edge waits for that."""
        return sum(self.failures.values())

    def of(self, result: Result) -> float:
        """How likely it is that this happens to a visit."""
        if result in WITHOUT_OUTPUT:
            return self.failures.get(result, 0.0)
        says = {Result.YES: self.yes, Result.NO: 1 - self.yes - self.nothing, Result.NOTHING: self.nothing}
        return (1 - self.failed) * says.get(result, 0.0)


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How much the odds move with the chance of one socket: by this much for a whole 1, at this point."""

    complete: float
    turns: float


@dataclass(frozen=True)
class Odds:
    """The odds of a cast.

    Attributes:
        graph: the loadout.
        items: how long every list is.
        satisfied: the chance of each socket whose word decides something.
        nothing: the chance that it says nothing of ``satisfied``, where there is one. It is 1 for an agent that is
            not asked for it, unless ``satisfied`` names that socket or its materia.
        failed: the chance of each socket that its agent or process fails, where that was given.
        ends: the chance of each end, ``complete`` or the kind of a failure.
        turns: how many turns agents have, on average.
        visits: how often each socket is visited, on average.
        sensitivity: how ``complete`` and the turns move with each socket's chance.
        tokens: what it takes on average, as far as that is given; None when nothing is.
        cost: the same in money.
        seconds: what it takes in time on average, by how many lanes run at once, from one to as many as there are items; None
            when nothing is given. The slowest lane has the items that are left over; each item is taken to take its mean, so
            with several lanes it is the least that is to be expected. Without lanes there is one number.
        uncounted: the agents that are visited and of which no tokens are given: theirs are not in it (R56).
        unpriced: the same of cost.
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


def compute_odds(
    graph: Graph, space: StateSpace, satisfied: Chances, items: int, **assumed: Unpack[Assumptions]
) -> Odds:
    """Solve the chain of a space whose lists are all equally long."""
    numbers: Mapping[str, PerSocket | None] = dict(assumed.items())  # type: ignore[arg-type]
    failures = {result: each for result in WITHOUT_OUTPUT if (each := numbers.get(result)) is not None}
    tokens, cost, seconds = assumed.get("tokens"), assumed.get("cost"), assumed.get("seconds")
    check_per_socket(graph, satisfied, *failures.values(), tokens, cost, seconds)
    chances = chances_by_socket(Rules(without_prompts(graph)), satisfied, failures)
    size = len(space.nodes)
    ahead: list[dict[int, float]] = [defaultdict(float) for _ in range(size)]
    back: list[dict[int, float]] = [defaultdict(float) for _ in range(size)]
    turns = [0.0] * size
    for number, node in enumerate(space.nodes):
        for weight, way in weighted_moves(space.ways[number], chances.get(node.socket or "")):
            ahead[number][way.to] += weight
            back[way.to][number] += weight
            turns[number] += weight * way.turns
    often = solve(back, [1.0] + [0.0] * (size - 1))
    ends: dict[str, float] = defaultdict(float)
    visits: dict[str, float] = dict.fromkeys(graph.sockets, 0.0)
    for node, count in zip(space.nodes, often, strict=True):
        if node.end is not None and (count or node.end != HELD):
            ends[node.end] += count
        elif node.end is None and node.socket is not None:
            visits[node.socket] += count
    success = solve(ahead, [float(node.end == COMPLETE) for node in space.nodes])
    left = solve(ahead, turns)
    return Odds(
        graph,
        items,
        {socket: chance.yes for socket, chance in chances.items() if chance.nothing < 1},
        {socket: chance.nothing for socket, chance in chances.items() if chance.nothing},
        {socket: chance.failed for socket, chance in chances.items() if chance.failed},
        dict(sorted(ends.items(), key=lambda pair: (-pair[1], pair[0]))),
        left[0],
        visits,
        _sensitivity(space, chances, often, success, left),
        _total(graph, visits, tokens),
        _total(graph, visits, cost),
        _lacking(graph, visits, tokens),
        _lacking(graph, visits, cost),
        _by_lanes(graph, visits, items, seconds),
    )


def _by_lanes(
    graph: Graph, visits: Mapping[str, float], items: int, seconds: PerSocket | None
) -> dict[int, float] | None:
    """Return the time that a cast takes with one lane, two ...: what is in lanes is divided by the items of the longest."""
    if seconds is None:
        return None
    members = {socket for region in graph.regions.values() for socket in region.members}
    whole = _total(graph, visits, seconds) or 0.0
    side_by_side = _total(graph, {id_: visits[id_] for id_ in members}, seconds) or 0.0
    most = max(items, 1) if members else 1
    return {
        lanes: whole - side_by_side + side_by_side * ceil(items / lanes) / max(items, 1)
        for lanes in range(1, most + 1)
    }


def weighted_moves(ways: list[Move], chance: Chance | None) -> Iterator[tuple[float, Move]]:
    """Each way with its chance; one on which the cast is held for a person has none."""
    for way in ways:
        result = way.answer.result
        weight = float(result in TAKEN) if chance is None else chance.of(result)
        if weight > 0:
            yield weight, way


def _sensitivity(
    space: StateSpace,
    chances: Mapping[str, Chance],
    often: list[float],
    success: list[float],
    left: list[float],
) -> dict[str, Sensitivity]:
    """Sum over the states of a socket: how often it is there, times what its two answers differ by."""
    found = {socket: Sensitivity(0.0, 0.0) for socket, chance in chances.items() if chance.nothing < 1}
    for number, node in enumerate(space.nodes):
        if node.end is not None or node.socket is None or node.socket not in found:
            continue
        for way in space.ways[number]:
            if way.answer.result in YES_OR_NO:
                sign = often[number] * (1 if way.answer.result is Result.YES else -1)
                sign *= 1 - chances[node.socket].failed
                complete, turns = sign * success[way.to], sign * (way.turns + left[way.to])
                before = found[node.socket]
                found[node.socket] = Sensitivity(before.complete + complete, before.turns + turns)
    return found


def _total(graph: Graph, visits: Mapping[str, float], each: PerSocket | None) -> float | None:
    if each is None:
        return None
    known = [(count, value_for_socket(graph, socket, each)) for socket, count in visits.items()]
    given = [count * one for count, one in known if one is not None]
    return sum(given) if given else None


def _lacking(graph: Graph, visits: Mapping[str, float], each: PerSocket | None) -> tuple[str, ...]:
    """The agents that are visited and of which nothing is given; a process uses no tokens unless that is said."""
    if each is None:
        return ()
    return tuple(
        socket
        for socket, count in visits.items()
        if count and not graph.sockets[socket].is_utility and value_for_socket(graph, socket, each) is None
    )


def value_for_socket(graph: Graph, socket: str, each: _Each | Mapping[str, _Each]) -> _Each | None:
    """What is given for a socket: by its id, its materia, or for all others; None if nothing."""
    if not isinstance(each, Mapping):
        return each
    names = (socket, graph.sockets[socket].materia.id, "*")
    return next((each[name] for name in names if name in each), None)


def chances_by_socket(
    rules: Rules, satisfied: Chances, failures: Mapping[Result, PerSocket] = FrozenDict()
) -> dict[str, Chance]:
    """Return how likely it is what happens to the visits of each socket where that decides something.

    An agent that is not asked for ``satisfied`` says nothing of it, unless a chance is given for it by name.

    Args:
        rules: the loadout.
        satisfied: the chance of ``satisfied: true``, or that and the chance that nothing is said of it.
        failures: the chance of each failure of a visit, for the sockets of which an edge waits for that.

    Raises:
        MateriaError: none is given, it is not between 0 and 1, or a socket that must say one of the two is to say
            nothing, or to fail where no edge waits for that (``bad_chance``).
    """
    chances = {}
    for id_, here in rules.sockets.items():
        fails = _failure_chances(rules, here, failures)
        possible = decisive_verdicts(here)
        if possible == (Result.NOTHING,) or (is_not_asked(here) and not _named(here, satisfied)):
            if fails or possible != (Result.NOTHING,):
                chances[id_] = Chance(0.0, 1.0, fails)
            continue
        given = value_for_socket(rules.graph, id_, satisfied)
        if given is None:
            what = f"{id_} says whether it is satisfied, and no chance of that is given."
            raise _bad_chance(what, id_, f'satisfied={{"{id_}": 0.7, ...}}, or "*" for all others')
        try:
            yes, nothing = map(float, given) if isinstance(given, tuple) else (float(given), 0.0)
        except (TypeError, ValueError):
            yes, nothing = -1.0, 0.0  # refused below
        chance = Chance(yes, nothing, fails)
        if not (yes >= 0 and nothing >= 0 and yes + nothing <= 1):
            hint = "a chance is a number from 0 to 1, or two of them, such as (0.7, 0.1)"
            raise _bad_chance(f"The chance of {id_} is {given!r:.60}.", id_, hint)
        if chance.nothing and (Result.NOTHING not in possible or here.socket.handoff != DEFAULT_HANDOFF):
            what = f"{id_} must say whether it is satisfied."
            raise _bad_chance(what, id_, "give the chance of true alone: 0.7")
        chances[id_] = chance
    return chances


def _named(here: SocketRules, given: Chances) -> bool:
    """Whether something is given for a socket by its own name, or by its materia's."""
    return bool({here.socket.id, here.socket.materia.id} & set(given if isinstance(given, Mapping) else ()))


def _failure_chances(
    rules: Rules, here: SocketRules, failures: Mapping[Result, PerSocket]
) -> Mapping[Result, float]:
    """Return the chance of each failure that is explored; failures that take the same edge are explored as one."""
    id_, explored = here.socket.id, awaited_failures(here)
    chances: dict[Result, float] = {}
    for result, each in failures.items():
        fails = value_for_socket(rules.graph, id_, each) or 0.0
        if not 0 <= fails <= 1:
            raise _bad_chance(f"The chance of {id_} to fail is {fails}.", id_, "a chance is 0 to 1")
        if result in explored and fails:
            chances[explored[result]] = chances.get(explored[result], 0.0) + fails
        elif fails and _named(here, each):
            what = f"No edge of {id_} waits for {result.asked}: it would stop the cast."
            raise _bad_chance(what, id_, f"give it an edge for {result}")
    if (total := sum(chances.values())) > 1:
        raise _bad_chance(f"The chances of {id_} to fail add up to {total}.", id_, "a chance is 0 to 1")
    return FrozenDict(chances)


def _bad_chance(what: str, socket: str, hint: str) -> MateriaError:
    return MateriaError(what, where=socket, hint=hint, kind="bad_chance")


def satisfied_shares(steps: Iterable[StepRecord]) -> dict[str, float]:
    """Return how often each socket said ``satisfied: true``, of the steps in which it said either.

    The steps may be of several casts of one loadout.
    """
    results: dict[str, list[Result]] = {}
    for step in steps:
        if step.decision is not None and step.decision.result in YES_OR_NO:
            results.setdefault(step.socket, []).append(step.decision.result)
    return {socket: each.count(Result.YES) / len(each) for socket, each in results.items()}


def check_per_socket(graph: Graph, satisfied: Chances, *numbers: PerSocket | None) -> None:
    """Check the names in what is given for sockets, and the numbers.

    Raises:
        MateriaError: the loadout does not have a name (``unknown_socket``), or a value is not a number (``usage``).
    """
    known = {*graph.sockets, *(socket.materia.id for socket in graph.sockets.values()), "*"}
    for each in (satisfied, *numbers):
        for name, value in each.items() if isinstance(each, Mapping) else [("*", each)]:
            what = f"The loadout {graph.name} has no socket or materia {name!r}."
            needs_one_of(name, known, what, "unknown_socket")
            if each is not satisfied and not isinstance(value, Real | None):
                hint = "give one number, or numbers by socket or materia: {'Socket-3': 0.7, '*': 0.9}"
                raise usage_error(f"{value!r:.60} is not a number.", hint)


CASTS_PER_BATCH: Final = 250
"""How many casts one worker does at a time."""
_MOST_VISITS: Final = 10_000
"""Visits after which one cast is given up."""
_UNFINISHED: Final = "unfinished"
"""The end of a cast that was given up."""


@dataclass(frozen=True)
class Simulation:
    """What came of many casts.

    Attributes:
        graph: the loadout.
        n: how many there were.
        items: how long every list was.
        seed: what the chances were drawn from.
        nothing: the sockets that may have said nothing of ``satisfied``, with the chance of it; see :class:`.odds.Odds`.
        failed: the chance of each socket that its agent or process fails, where that was given.
        ends: how many ended so, by ``complete`` or the kind of a failure.
        turns: how many turns agents had, one number a cast.
        retries: how many edges that send work back were taken, one number a cast.
        visits: how often each socket was visited, in all.
        taken: how often each edge (socket, number from 1) and each exit (its ``edge_id``) was taken, in all.
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
    taken: Mapping[EdgeRef, int]

    @property
    def traversals(self) -> dict[str, int]:
        """How often each edge was taken, by ``"A->B"`` (R21)."""
        found: Counter[str] = Counter()
        for edge, count in self.taken.items():
            if isinstance(edge, tuple):
                found[f"{edge[0]}->{self.graph.sockets[edge[0]].edges[edge[1] - 1].to}"] += count
        return dict(found)


class Batch(NamedTuple):
    """What came of some casts: one end, number of turns and number of retries a cast, and what was visited and taken in all."""

    ends: tuple[str, ...]
    turns: tuple[int, ...]
    retries: tuple[int, ...]
    visits: Mapping[str, int]
    taken: Mapping[EdgeRef, int]


def simulate_casts(
    graph: Graph,
    n: int = 1000,
    satisfied: Chances = 0.5,
    items: int = 3,
    seed: int = 1,
    executor: Executor | None = None,
    *,
    failed: PerSocket = 0.0,
    progress: Progress = False,
) -> Simulation:
    """Cast a loadout many times with stub agents; the numbers are the same whoever works on them.

    Args:
        graph: the loadout.
        n: how many casts.
        satisfied: the chance that an output says ``satisfied: true``, or a pair of that and of saying nothing: one
            for all, or by socket or materia. An agent that is not asked for it says nothing unless it is named.
        items: how long every list is.
        seed: what the chances are drawn from, for each cast anew.
        executor: who works on it in batches; this thread if left out, and for batches whose worker was lost.
        failed: the chance that an agent or process fails, where an edge waits for that: for all, or by socket or materia.
        progress: whether a bar is printed; or what is called with how many casts are done and how many there are.

    Raises:
        MateriaError: a chance is missing or none, or a socket takes no scripted answer (``no_answer``).
    """
    if n < 1:
        raise MateriaError("A simulation needs casts.", hint="n from 1")
    check_list_lengths(items)
    check_per_socket(graph, satisfied, failed)
    small = without_prompts(graph)
    chances = chances_by_socket(Rules(small), satisfied, {Result.FAILED: failed})
    # Pickled, as a worker makes it ready once, for all batches that bring the same.
    batch = partial(_batch, pickle.dumps(small), chances, items, seed)
    numbers = [range(start, min(start + CASTS_PER_BATCH, n)) for start in range(0, n, CASTS_PER_BATCH)]
    batches: dict[int, Batch] = {}
    bar = ProgressBar(progress, n, "casts")
    try:
        for result in run_jobs(batch, numbers, executor):
            number = result.number
            batches[number] = batch(numbers[number]) if result.value is None else result.value
            bar.add(len(numbers[number]))
    finally:
        bar.close()
    visits: Counter[str] = Counter(dict.fromkeys(graph.sockets, 0))
    taken: Counter[EdgeRef] = Counter()
    whole = [batches[place] for place in range(len(numbers))]
    for one in whole:
        visits.update(one.visits)
        taken.update(one.taken)
    return Simulation(
        graph,
        n,
        items,
        seed,
        {socket: chance.nothing for socket, chance in chances.items() if chance.nothing},
        {socket: chance.failed for socket, chance in chances.items() if chance.failed},
        Counter(dict(Counter(end for one in whole for end in one.ends).most_common())),
        tuple(turns for one in whole for turns in one.turns),
        tuple(retries for one in whole for retries in one.retries),
        dict(visits),
        dict(taken),
    )


@lru_cache(maxsize=8)
def ready(graph: bytes, items: int) -> tuple[Rules, PossibleAnswers]:
    """Make a pickled loadout ready; a worker does it once for all batches of a simulation."""
    rules = Rules(pickle.loads(graph))  # noqa: S301 - our own, from the simulation that sent it
    return rules, PossibleAnswers(rules, (items,))


def _batch(graph: bytes, chances: Mapping[str, Chance], items: int, seed: int, numbers: range) -> Batch:
    """Do the casts of these numbers, each with a seed of its own."""
    rules, answers = ready(graph, items)
    visits: Counter[str] = Counter()
    taken: Counter[EdgeRef] = Counter()
    runs = [
        _run(rules, answers, chances, Random(f"{seed}:{number}"), visits, taken)  # noqa: S311 - chances, no secrets
        for number in numbers
    ]
    ends, turns, retries = zip(*runs, strict=True)
    return Batch(ends, turns, retries, visits, taken)


def _run(
    rules: Rules,
    answers: PossibleAnswers,
    chances: Mapping[str, Chance],
    rng: Random,
    visits: Counter[str],
    all_taken: Counter[EdgeRef],
) -> tuple[str, int, int]:
    """Do one cast, and count what it visits and takes; returns its end, turns and retries."""
    state, passed = enter_next(rules, entering.begin(rules, SAMPLE))
    taken: Counter[EdgeRef] = Counter(passed)
    turns = 0
    for _ in range(_MOST_VISITS):
        if state.status != "waiting" or state.at is None:
            break
        here = rules.sockets[state.at.socket]
        visits[here.socket.id] += 1
        answer = draw_answer(answers.of(here), chances.get(here.socket.id), rng)
        done = play_visit(rules, here, state, answer)
        turns += 0 if here.socket.is_utility else done.turns
        taken.update(done.taken)
        state = done.state
    all_taken.update(taken)
    back = (count for edge, count in taken.items() if _sends_back(rules.graph, edge))
    return end_kind(state) or _UNFINISHED, turns, sum(back)


def draw_answer(given: tuple[ScriptedResult, ...], chance: Chance | None, rng: Random) -> ScriptedResult:
    """Draw what happens to a visit; the first of what can happen where no chance decides."""
    if chance is None:
        return given[0]
    number = rng.random()
    for failure, likely in chance.failures.items():
        if number < likely:
            return next(one for one in given if one.result is failure)
        number -= likely
    if chance.failures:
        number /= 1 - chance.failed
    result = (
        Result.YES if number < chance.yes else Result.NOTHING if number >= 1 - chance.nothing else Result.NO
    )
    return next((one for one in given if one.result is result), given[0])


def _sends_back(graph: Graph, way: EdgeRef) -> bool:
    return isinstance(way, tuple) and graph.sockets[way[0]].edges[way[1] - 1].when in SENDING_BACK
