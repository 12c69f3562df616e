"""The states that casts of a loadout can reach, and the moves between them.

Two states are treated as the same state if everything that can affect the further route of a cast is equal: the socket,
its item, the cursors, and the use counts of limits that can still be reached. Prompts, outputs and usage are ignored.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from materia_nb.engine import entering
from materia_nb.engine.items import list_at, state_path
from materia_nb.engine.routing import choose_edge
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import NOTHING, CastState
from materia_nb.errors import MateriaError
from materia_nb.handoff.base import SAMPLE
from materia_nb.insight.scripted_answers import (
    EdgeRef,
    PossibleAnswers,
    ScriptedResult,
    continuing_results,
    end_kind,
    enter_next,
    play_visit,
    without_prompts,
)
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.topology import cycles_in, reachable_from, strong_components
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, condition_spec
from materia_nb.platform import Progress, ProgressBar

MAX_STATES: Final = 100_000
"""Number of states after which a search stops."""
COMPLETE: Final = "complete"
FAILED: Final = "failed"
HELD: Final = "held"
"""The end at which an agent pauses the cast until a person responds; the responses are not explored."""


class StateNode(NamedTuple):
    """A state in which a cast waits at a socket, or the end of a cast.

    Attributes:
        socket: the socket at which the cast waits, was paused, or failed.
        end: ``complete``, ``held`` or the kind of failure; None while the cast waits.
        position: the position of the item in its list: ``only``, ``first``, ``middle`` or ``last``; "" outside a loop.
    """

    socket: str | None
    end: str | None = None
    position: str = ""

    def describe(self, names: Mapping[str, str] = NOTHING) -> str:
        """Return the visit or the end as text. ``names`` are the names to show instead of the ids of sockets."""
        socket = names.get(self.socket or "", self.socket)
        if self.end is None:
            return f"{socket} ({self.position})" if self.position else str(socket)
        return " at ".join(filter(None, (self.end, socket)))


class Move(NamedTuple):
    """A visit that moves a cast to the next state, with the answer, the agent turns, and the edges and exits taken."""

    to: int
    answer: ScriptedResult
    turns: int
    edges: tuple[EdgeRef, ...]


@dataclass(slots=True)
class StateSpace:
    """The result of a search. Casts begin at node 0.

    Attributes:
        nodes: the reachable states.
        moves: the moves from each state.
        first: the exits taken before the first visit because a loop has no items.
        stopped: a description of when the search stopped early, such as ``after 100,000 states``; empty if all states
            were examined.
    """

    nodes: list[StateNode] = field(default_factory=list)
    moves: list[list[Move]] = field(default_factory=list)
    first: tuple[EdgeRef, ...] = ()
    stopped: str = ""


def explore_states(
    graph: Graph, items: Sequence[int], max_states: int = MAX_STATES, *, progress: Progress = False
) -> StateSpace:
    """Return the reachable states, ordered by their distance from the start.

    The same arguments always produce the same result. An interrupt ends the search, and the states reached so far are
    returned.

    Args:
        graph: the loadout.
        items: the list lengths to explore. Each answer with a list is tried with every length.
        max_states: the number of states after which the search stops.
        progress: True to display a progress bar, or a function that is called with the numbers of examined and known
            states.
    """
    search = _Search(graph, items)
    bar = ProgressBar(progress, 1, "states")
    try:
        for number in range(max_states):
            if not search.queue:
                break
            search.expand(number, search.queue.popleft())
            bar.total = len(search.space.nodes)
            bar.add()
        if search.queue:
            search.space.stopped = f"after {max_states:,} states"
    except KeyboardInterrupt:
        search.space.stopped = "by an interrupt"
    finally:
        bar.close()
    return search.space


class _Search:
    """A search in progress. ``queue`` contains the states to examine, in order."""

    def __init__(self, graph: Graph, items: Sequence[int]) -> None:
        self._rules = Rules(without_prompts(graph))
        self._answers, self._key = PossibleAnswers(self._rules, items), _StateKey(self._rules, items)
        self._numbers: dict[object, int] = {}
        self.space, self.queue = StateSpace(), deque[CastState]()
        start, self.space.first = enter_next(self._rules, entering.begin(self._rules, SAMPLE))
        self._state_number(start)

    def _state_number(self, state: CastState) -> int:
        """Return the number of a state, and add the state to the queue if it is new."""
        number = self._numbers.setdefault(self._key.of(state), len(self.space.nodes))
        if number == len(self.space.nodes):
            self.space.nodes.append(_make_node(state))
            self.space.moves.append([])
            self.queue.append(state)
        return number

    def expand(self, number: int, state: CastState) -> None:
        """Record all moves from a state."""
        if state.status != "waiting" or state.at is None:
            return
        for answer in self._answers.of(self._rules.sockets[state.at.socket]):
            visit = play_visit(self._rules, state, answer)
            visit.require_accepted()
            move = Move(self._state_number(visit.next_state), visit.answer, visit.agent_turns, visit.edges)
            if move not in self.space.moves[number]:
                self.space.moves[number].append(move)


def _make_node(state: CastState) -> StateNode:
    if state.status == "waiting" and state.at is not None:
        return StateNode(state.at.socket, None, _item_position(state))
    held_socket = state.at.socket if state.status == HELD and state.at is not None else None
    return StateNode(state.failure.socket if state.failure is not None else held_socket, end_kind(state))


def _item_position(state: CastState) -> str:
    if not state.shown or state.at is None or state.at.item is None:
        return ""
    iteration, item, _ = state.shown[-1]
    is_last = item.position + 1 >= len(list_at(iteration.iterator.items, state, item))
    if item.position == 0:
        return "only" if is_last else "first"
    return "last" if is_last else "middle"


# -- linear equations ------------------------------------------------------------------------

_MIN_PIVOT: Final = 1e-12  # Minimum chance of leaving a group of states; a smaller chance is a rounding error.


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
    ``rows`` is emptied, and ``constants`` is updated.
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


# -- totals along the paths of casts ---------------------------------------------------------

WeightedMoves: TypeAlias = Sequence[Sequence[tuple[Move, float]]]
"""The moves from each state, with their chances."""
Distribution: TypeAlias = Mapping[str, Mapping[float, float]]
"""The chance of each total of a quantity in a cast, by the end of the cast."""
_TOLERANCE: Final = 1e-9  # Rounding error that is allowed in a sum of chances.
_NEGLIGIBLE: Final = 1e-12  # Chance below which paths through a cycle are no longer followed.
_MAX_TOTALS: Final = 1_000  # Number of different totals in one state above which neighbouring totals are combined.


def quantile(distribution: Distribution, share: float) -> float:
    """Return the smallest total that at least ``share`` of the casts do not exceed; ``share`` is from 0 to 1."""
    pairs = sorted(pair for chances in distribution.values() for pair in chances.items())
    reached = accumulate(chance for _, chance in pairs)
    return next(
        (total for (total, _), sum_ in zip(pairs, reached, strict=True) if sum_ >= share - _TOLERANCE), pairs[-1][0]
    )


def compute_distribution(
    space: StateSpace, weighted_moves: WeightedMoves, amounts: Sequence[float] | None
) -> Distribution:
    """Return the chance of each total by end, by following all paths from the first state.

    Args:
        space: the reachable states.
        weighted_moves: the moves from each state, with their chances.
        amounts: the amount of a visit in each state; None selects the agent turns of each move.
    """
    totals: list[dict[float, float]] = [defaultdict(float) for _ in space.nodes]
    totals[0][0] = 1.0
    targets = {number: [move.to for move, _ in moves] for number, moves in enumerate(weighted_moves)}
    for component in reversed(strong_components(targets)):
        front = {number: totals[number] for number in component}
        members = front.keys() if len(component) > 1 or component[0] in targets[component[0]] else ()
        while front:
            following: dict[int, dict[float, float]] = {}
            for number, reached in front.items():
                combined = _combine_totals(reached)
                for move, weight in weighted_moves[number]:
                    is_inside = move.to in members
                    target = following.setdefault(move.to, defaultdict(float)) if is_inside else totals[move.to]
                    amount = move.turns if amounts is None else amounts[number]
                    for total, chance in combined.items():
                        target[total + amount] += chance * weight
            front = {number: reached for number, reached in following.items() if sum(reached.values()) > _NEGLIGIBLE}
    ends: dict[str, dict[float, float]] = {}
    for node, reached in zip(space.nodes, totals, strict=True):
        if node.end is not None and reached:
            chances = ends.setdefault(node.end, defaultdict(float))
            for total, chance in reached.items():
                chances[total] += chance
    return {end: _combine_totals(chances) for end, chances in ends.items()}


def _combine_totals(chances: Mapping[float, float]) -> Mapping[float, float]:
    """Combine neighbouring totals if there are too many. The mean does not change."""
    if len(chances) <= _MAX_TOTALS:
        return chances
    lowest = min(chances)
    width = (max(chances) - lowest) / _MAX_TOTALS
    cells: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for total, chance in chances.items():
        cell = cells[int((total - lowest) / width)]
        cell[0] += chance
        cell[1] += chance * total
    combined: dict[float, float] = defaultdict(float)
    for chance, weighted in cells.values():
        combined[weighted / chance] += chance
    return combined


BAD_WORK: Final = "complete, with bad work"
"""The end of a cast that completes although some of its work is bad."""


def add_quality(
    graph: Graph,
    space: StateSpace,
    good_chances: Mapping[str, float],
    good: WeightedMoves,
    bad: WeightedMoves,
    skipped: str,
) -> tuple[StateSpace, WeightedMoves]:
    """Return the states and moves with the quality of the work added.

    Each state is combined with two facts: whether the current work is bad, and whether an accepted item is bad. In a
    loop, critics judge only the current item.

    Args:
        graph: the loadout.
        space: the reachable states.
        good_chances: the chance that new or rewritten work is good, by socket.
        good: the moves from each state if its work is good.
        bad: the moves from each state if its work is bad.
        skipped: the socket whose visits are not counted, or "".
    """
    generators = {loop.generator for loop in graph.loops.values() if not good_chances.keys().isdisjoint(loop.sockets)}
    states = [(0, False, False)]
    numbers, nodes, weighted_moves = {states[0]: 0}, list[StateNode](), list[list[tuple[Move, float]]]()
    for number, is_item_bad, is_list_bad in states:  # the loop appends to ``states``
        node, moves = space.nodes[number], list[tuple[Move, float]]()
        weighted_moves.append(moves)
        if node.end is not None or node.socket is None:
            is_bad = node.end == COMPLETE and (is_item_bad or is_list_bad)
            nodes.append(node._replace(end=BAD_WORK) if is_bad else node)
            continue
        socket = graph.sockets[node.socket]
        nodes.append(node._replace(socket=None) if socket.id == skipped else node)
        is_new_list = socket.id in generators and socket.iterator is None
        item, accepted = (is_item_bad and not is_new_list, is_list_bad and not is_new_list)
        quality = good_chances.get(socket.id)
        for is_bad, share in [(item, 1.0)] if quality is None else [(False, quality), (True, 1 - quality)]:
            for move, weight in (bad if is_bad or (accepted and socket.iterator is None) else good)[number]:
                result = move.answer.result
                target = (move.to, is_item_bad, is_list_bad) if result.is_silent else (move.to, is_bad, accepted)
                if socket.advance is not None and condition_spec(socket.advance.when).matches(result):
                    target = (move.to, False, accepted or target[1])
                if (to := numbers.setdefault(target, len(states))) == len(states):
                    states.append(target)
                moves.append((move._replace(to=to, turns=0 if socket.id == skipped else move.turns), share * weight))
    return StateSpace(nodes), weighted_moves


# -- the key of a state ----------------------------------------------------------------------


class _StateKey:
    """Computes keys of states. Two states have the same key if the same routes are possible from them."""

    def __init__(self, rules: Rules, items: Sequence[int]) -> None:
        sources = _list_sources(rules.graph)
        paths = filter(None, map(state_path, sources))
        # An empty tuple stands for all fields.
        self._fields = () if "state" in sources else tuple(sorted({path[0] for path in paths})) or ("",)
        self._counts = _LiveCounts(rules)
        self._max_cursor = (max(items, default=0) + 1) ** 2
        self._reads_output = any(source.startswith(("lastJson", "$")) for source in sources)

    def of(self, state: CastState) -> object:
        """Return a hashable key of everything in a state that can affect the further route."""
        visit = state.at
        if state.status != "waiting" or visit is None:
            return _make_node(state)
        data = state.data
        return (
            visit.socket,
            visit.item.id if visit.item is not None else None,
            tuple((name, repr(data[name])) for name in self._fields or sorted(data) if name in data),
            tuple(sorted((name, min(cursor, self._max_cursor)) for name, cursor in state.cursors.items())),
            self._counts.edge_uses(state, visit.socket),
            self._counts.item_records(state, visit.socket),
            tuple((item.iteration.iterator.cursor, item.item.id) for item in state.shown),
            tuple(sorted(state.nesting.items())),
            state.detours,
            repr(state.last_json) if self._reads_output else None,
        )


class _Link(NamedTuple):
    """A possible transition from a socket to the next socket: an edge, an exit, or the exit of a skipped loop.

    Attributes:
        source: the id of the socket where the transition starts.
        target: the id of the next socket, or ``end``.
        counted: the key of the edge or exit in ``CastState.counts``; None for a skipped loop.
        bounded: True for an edge with ``maxTraversals``. A cycle that contains such an edge does not count as a cycle
            of a work item (R18).
        moves: the cursor that the transition advances, or None.
    """

    source: str
    target: str
    counted: tuple[str, int] | None = None
    bounded: bool = False
    moves: str | None = None


def _links(rules: Rules) -> Iterator[_Link]:
    """Yield all possible transitions between sockets, except detours."""
    for id_, socket_rules in rules.sockets.items():
        advance = socket_rules.socket.advance
        for result in continuing_results(socket_rules):
            moves = advance.cursor if advance is not None and condition_spec(advance.when).matches(result) else None
            choices = [choose_edge(socket_rules, result, exhausted=False)]
            choices += [choose_edge(socket_rules, result, exhausted=True)] if moves is not None else []
            for choice in filter(None, choices):
                edge, route = choice.edge, choice.route
                if edge is not None:
                    yield _Link(id_, edge.to, (id_, edge.index), edge.max_traversals is not None, moves)
                elif route is not None:
                    yield _Link(id_, route.target, (route.edge_id, 0), False, moves)
        if (empty := rules.empty_exit(socket_rules.socket)) is not None:
            yield _Link(id_, empty.target)
    for region in rules.graph.regions.values():  # its loop is skipped when there are no items (P6)
        yield _Link(region.first, region.exit)


def _targets_by_socket(rules: Rules, links: Iterable[_Link]) -> dict[str, set[str]]:
    successors: dict[str, set[str]] = {id_: set() for id_ in rules.sockets}
    for link in links:
        if link.target in successors:
            successors[link.source].add(link.target)
    return successors


class _WithinItem(NamedTuple):
    """The sockets of a loop that can still be visited for the current work item.

    Attributes:
        ahead: for each socket, the sockets of the loop that can be visited before the cursor advances, including
            itself.
        cycles: the number of the cycle to which each socket belongs, considering only cycles without a bounded edge.
        reads_cycles: the sockets from which the further route can depend on the number of cycles that the item has
            completed.
    """

    ahead: Mapping[str, frozenset[str]]
    cycles: Mapping[str, int]
    reads_cycles: frozenset[str]


def _sockets_within_item(rules: Rules, links: Sequence[_Link], cursor: str) -> _WithinItem:
    item_links = [link for link in links if link.moves != cursor]
    successors = _targets_by_socket(rules, item_links)
    members = {
        id_
        for id_, socket_rules in rules.sockets.items()
        if socket_rules.iteration and socket_rules.iteration.iterator.cursor == cursor
    }
    ahead = {id_: frozenset(reachable_from([id_], successors) & members) for id_ in successors}
    cycles = cycles_in(_targets_by_socket(rules, [link for link in item_links if not link.bounded]))
    # a handoff protocol may read the number of cycles to decide whether to call a person
    reading = {id_ for id_ in members if rules.sockets[id_].socket.handoff != DEFAULT_HANDOFF} | cycles.keys()
    reads_cycles = frozenset(id_ for id_, sockets in ahead.items() if not sockets.isdisjoint(reading))
    return _WithinItem(ahead, cycles, reads_cycles)


class _LiveCounts:
    """Selects the counts that can still affect the route: the counts of edges that can be taken again.

    If the key contained all counts, every socket that can send work back would multiply the number of later states.
    """

    def __init__(self, rules: Rules) -> None:
        links = list(_links(rules))
        successors = _targets_by_socket(rules, links)
        cycles = cycles_in(successors)
        repeated = [link for link in links if link.source in cycles and cycles[link.source] == cycles.get(link.target)]
        ahead = {id_: reachable_from([id_], successors) for id_ in rules.sockets}
        self._outside = {
            id_: frozenset(link.counted for link in repeated if link.source in ahead[id_]) for id_ in rules.sockets
        }
        cursors = {
            socket_rules.iteration.iterator.cursor
            for socket_rules in rules.sockets.values()
            if socket_rules.iteration is not None
        }
        self._inside = {cursor: _sockets_within_item(rules, links, cursor) for cursor in cursors}

    def edge_uses(self, state: CastState, socket: str) -> object:
        """Return how often each edge and exit on a cycle reachable from ``socket`` was used, without uses for a work item."""
        return frozenset((edge, n) for edge, n in state.counts.items() if edge in self._outside[socket])

    def item_records(self, state: CastState, socket: str) -> object:
        """Return the records of unfinished items, reduced to sockets that can be visited before the cursor advances."""
        records: list[object] = []
        for item, record in state.items.items():
            inside = self._inside[item[0]]
            ahead, group = inside.ahead[socket], inside.cycles.get(socket)
            used = frozenset((edge, n) for edge, n in record.used.items() if edge[0] in ahead)
            # A path back to a socket of another group contains a bounded edge, so that cycle is not counted.
            path = tuple(
                (visited, inside.cycles[visited] != group or step <= state.bounded_at)
                for visited, step in record.path
                if visited in ahead and visited in inside.cycles
            )
            cycles = record.cycles if socket in inside.reads_cycles else 0
            if used or path or cycles:
                records.append((item, used, path, cycles))
        return frozenset(records)


def _list_sources(graph: Graph) -> list[str]:
    """Return the paths of the lists that loops read, and the sources of the assignments that set these lists."""
    sockets = graph.sockets.values()
    sources = [socket.iterator.items for socket in sockets if socket.iterator is not None]
    sources += [socket.advance.items for socket in sockets if socket.advance is not None]
    assigned: dict[str, list[str]] = {}
    for socket in sockets:
        for target, source in socket.assign:
            if not source.startswith("$"):
                assigned.setdefault(target.split(".")[0], []).append(source)
    for source in sources:  # the loop appends to ``sources``
        path = state_path(source)
        sources += [new for new in assigned.pop(path[0], ()) if new not in sources] if path else []
    return sources
