"""Exploration of a loadout without calling agents: all possible routes and ends, and example casts."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Required, TypeAlias, TypedDict, Unpack, overload

from materia_nb.engine import decide, entering
from materia_nb.engine.decide import Answer
from materia_nb.engine.events import Events
from materia_nb.engine.evolve import fold, session_at
from materia_nb.engine.routing import choose_edge
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, pending_actions
from materia_nb.engine.state import Failure
from materia_nb.errors import MateriaError, needs_one_of, usage_error
from materia_nb.handoff.base import SAMPLE
from materia_nb.insight.odds import Assumptions, Chances, Odds, PerSocket, compute_odds, compute_worth
from materia_nb.insight.reachable_states import (
    COMPLETE,
    FAILED,
    HELD,
    MAX_STATES,
    Move,
    StateNode,
    StateSpace,
    explore_states,
)
from materia_nb.insight.scripted_answers import (
    EdgeRef,
    ScriptedResult,
    check_list_lengths,
    is_not_asked,
    sample_failure,
    sockets_with_detours,
    sockets_without_samples,
    without_prompts,
)
from materia_nb.loadout.graph import END, ExitRoute, Graph, shared_names, with_names
from materia_nb.loadout.topology import reachable_from, reversed_edges, strong_components
from materia_nb.loadout.vocabulary import Result
from materia_nb.platform import Progress

_Path: TypeAlias = list[tuple[int, Move]]  # Consecutive moves, each with the number of the state in which it starts.
EventName: TypeAlias = str | tuple[str, int]
"""The name of an event in a cast, such as a visit to a socket; :meth:`Exploration.can` lists all forms."""
# A predicate that is true for the edges, exits or states that are the event.
_EventPredicate: TypeAlias = Callable[[EdgeRef | StateNode], bool]


class CastRule(TypedDict, total=False):
    """A rule for every cast of a loadout, such as ``{"never": "Publish", "without": "Review", "since": "Write"}``.

    The event ``never`` must not happen. With ``without``, it may happen after the event ``without``. With ``since``, the
    rule applies only after the event ``since``, and each time that ``since`` happens, ``without`` must happen again.
    Events have the forms that :meth:`Exploration.can` lists; an edge is written ``edge 2 of Review``.
    """

    never: Required[str]
    without: str
    since: str


# -- witnesses -------------------------------------------------------------------------------


class ByVisit:
    """A pin that answers each visit to a socket with a separate answer or failure."""

    def __init__(self, answers: Sequence[str | Failure]) -> None:
        self.answers = tuple(answers)
        self.__name__ = "witness"

    def __call__(self, turn: Any) -> str:
        """Return the answer for the visit of a turn, or raise MateriaError if the visit must fail."""
        answer = self.answers[int(turn.visit) - 1]
        if isinstance(answer, Failure):
            raise MateriaError(answer.message, where=turn.socket_id, kind=answer.kind)
        return answer


@dataclass(frozen=True, slots=True)
class Witness:
    """An example cast that proves that an event can happen.

    The cast takes the shortest route to the event, and then the shortest route to an end. ``wb.cast(request,
    agents={"*": witness.answers}, pins=witness.pins)`` starts the cast.

    Attributes:
        event: a description of the event.
        route: the ids of the visited sockets, in order.
        end: ``complete`` or the kind of failure, or None if no end after the event is known.
        answers: the answers of the agents in the order of their turns, by socket id.
        pins: the pins that replace utilities and failing agents, by socket id.
        drafts: the sockets whose drafts a person accepts with ``cast.accept()``.
    """

    event: str
    route: tuple[str, ...]
    end: str | None
    answers: dict[str, list[str]]
    pins: dict[str, str | ByVisit]
    drafts: tuple[str, ...] = ()


def _find_path(
    space: StateSpace,
    event: _EventPredicate,
    without: _EventPredicate | None = None,
    since: _EventPredicate | None = None,
    start: int = 0,
) -> _Path | None:
    """Return the shortest path from a state to an event, or None if the event cannot be reached.

    Args:
        space: the reachable states.
        event: a predicate for the event.
        without: a predicate for events that must not happen before ``event``, or None.
        since: a predicate for events that must happen first, or None. ``without`` then applies only after the last of
            them.
        start: the number of the state in which the path starts.
    """

    def is_open_after(is_open: bool, edges: Sequence[EdgeRef], number: int) -> bool | None:
        """Return True if the path may continue to ``event`` after a move, False if not, or None if it has arrived."""
        for step in (*edges, space.nodes[number]):
            if is_open and event(step):
                return None
            is_open = is_open and not (without is not None and without(step))
            is_open = is_open or (since is not None and since(step))
        return is_open

    is_open = is_open_after(since is None, () if start else space.first, start)
    if is_open is None:
        return []
    arrivals: dict[tuple[int, bool], tuple[tuple[int, bool], Move] | None] = {(start, is_open): None}
    queue = deque(arrivals)
    while queue:
        state = queue.popleft()
        for move in space.moves[state[0]]:
            is_open = is_open_after(state[1], move.edges, move.to)
            if is_open is None:
                path = [(state[0], move)]
                while (arrival := arrivals[state]) is not None:
                    state = arrival[0]
                    path.append((state[0], arrival[1]))
                return path[::-1]
            if (move.to, is_open) not in arrivals:
                arrivals[move.to, is_open] = (state, move)
                queue.append((move.to, is_open))
    return None


def _end_test(end: str | None = None, socket: str | None = None) -> _EventPredicate:
    """Return a predicate for the end ``end`` at ``socket``. If ``end`` is None, the predicate accepts any end."""
    return lambda step: (
        isinstance(step, StateNode)
        and (step.end is not None if end is None else (step.end, step.socket) == (end, socket))
    )


def _make_witness(graph: Graph, space: StateSpace, event: str, path: _Path) -> Witness:
    """Return the scripted cast that follows a path to ``event``."""
    visits: dict[str, list[Move]] = {}
    for number, move in path:
        visits.setdefault(space.nodes[number].socket or "", []).append(move)
    failing = {id_ for id_, moves in visits.items() if any(move.answer.result.is_silent for move in moves)}
    scripted = [id_ for id_ in visits if not graph.sockets[id_].is_utility and id_ not in failing]
    return Witness(
        event,
        tuple(space.nodes[number].socket or "" for number, _ in path),
        space.nodes[path[-1][1].to if path else 0].end,
        {
            id_: [text for move in visits[id_] for text in ([SAMPLE] * (move.turns - 1) + [move.answer.text])]
            for id_ in scripted
        },
        {id_: _make_pin(moves) for id_, moves in visits.items() if id_ not in scripted},
        tuple(id_ for id_ in visits if graph.sockets[id_].materia.multi_turn and id_ in {*scripted, *failing}),
    )


def _make_pin(visits: Sequence[Move]) -> str | ByVisit:
    """Return a pin for a socket that repeats the recorded answers of its visits in order."""
    answers: list[str | Failure] = [
        sample_failure(move.answer.result) if move.answer.result.is_silent else move.answer.text for move in visits
    ]
    first = answers[0]
    return first if isinstance(first, str) and len(set(answers)) == 1 else ByVisit(answers)


def replay_witness(rules: Rules, witness: Witness) -> Session:
    """Return the session of the cast that a witness describes, without calling agents or writing files."""
    session = session_at(entering.begin(rules, SAMPLE))
    scripts = {id_: iter(texts) for id_, texts in witness.answers.items()}
    while actions := pending_actions(rules, session):
        lane = actions[0].lane
        part = session.streams[-1].lanes[lane].session if lane else session
        if part.state.status == "held":
            return session
        command = _next_command(part, witness, scripts)
        events = decide.run_in_lane(rules, session, lane, command, 0) if lane else command(rules, session, 0)
        session = fold(rules, session, events)
    return session


def _next_command(
    session: Session, witness: Witness, scripts: Mapping[str, Iterator[str]]
) -> Callable[[Rules, Session, int], Events]:
    """Return the next command for a cast or lane that follows a witness."""
    if session.state.status == "ready":
        return decide.enter
    visit = decide.waiting_visit_of(session)
    if visit.mode == "draft" and visit.drafts:
        return decide.finalize
    pin = witness.pins[visit.socket] if visit.socket in witness.pins else next(scripts[visit.socket])
    answer = pin.answers[visit.visit - 1] if isinstance(pin, ByVisit) else pin
    if isinstance(answer, str):
        return lambda rules, session, ts: decide.answer(rules, session, Answer(answer), ts)
    failure = answer._replace(socket=visit.socket)
    return lambda rules, session, ts: decide.fail(rules, session, failure, 0, ts)


# -- exploring -------------------------------------------------------------------------------

_UNEXPLORED_FAILURES: Final = frozenset(
    {"budget", "invalid_output", "repair_exhausted"}
    | {"utility_exit", "utility_timeout", "utility_not_started", "utility_failed"}
)  # Kinds of failures that are not explored, because they require a malformed answer, a process or a budget.
_FAILURES: Final = _UNEXPLORED_FAILURES | {"edge_traversals_exhausted", "no_advance_cycles_exhausted", "assignment"}


class Exploration:
    """All routes that casts of a loadout can take with well-formed answers; created by ``wb.explore``.

    Args:
        graph: the loadout.
        items: the list lengths to explore.
        max_states: the number of states after which the search stops.
        progress: True to display a progress bar, or a function that is called with the numbers of examined and known
            states.
    """

    def __init__(
        self,
        graph: Graph,
        items: Sequence[int] | int = range(4),
        max_states: int = MAX_STATES,
        *,
        progress: Progress = False,
    ) -> None:
        lengths: list[Any] = [items] if isinstance(items, int) else [*items]
        check_list_lengths(*lengths or [items])
        self.graph, self.items = graph, tuple(dict.fromkeys(lengths))
        self._max_states, self._progress = max_states, progress
        self._rules = Rules(without_prompts(graph))
        self._space = explore_states(graph, self.items, max_states, progress=progress)
        self._spaces_by_length: dict[int, StateSpace] = {}
        self._variants: list[Exploration] = []
        """The explorations of the loadout with one more try for a critic, for :meth:`worth`."""

    # -- the search -----------------------------------------------------------------

    @property
    def complete_search(self) -> bool:
        """True if all reachable states were examined."""
        return not self._space.stopped

    @property
    def certain(self) -> bool:
        """True if every event that was not observed is impossible.

        This requires a complete search, and handoff protocols whose actions are all explored.
        """
        return self.complete_search and not (sockets_without_samples(self.graph) or sockets_with_detours(self.graph))

    @property
    def states(self) -> int:
        """The number of states that the search reached."""
        return len(self._space.nodes)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the parts of the loadout that were simplified or not explored."""
        notes = []
        if not self.complete_search:
            notes.append(f"The search stopped {self._space.stopped}: anything that was not seen may still be possible.")
        if self.graph.regions:
            notes.append(
                "Lanes are explored as one lane that handles all items. In a cast, each additional lane repeats the setup."
            )
        if sockets := sockets_without_samples(self.graph):
            notes.append(
                f"{self.graph.list_names(sockets)}: explored as if the agent used the sparse protocol. Pauses, detours and escalations "
                "of the agent's own protocol are not explored, and example casts contain sparse answers."
            )
        if sockets := sockets_with_detours(self.graph):
            notes.append(f"{self.graph.list_names(sockets)}: the agent may ask for a detour. Detours are not explored.")
        if unasked := [id_ for id_, socket_rules in self._rules.sockets.items() if is_not_asked(socket_rules)]:
            notes.append(
                f"{self.graph.list_names(unasked)}: an edge, exit or advance depends on `satisfied`, but the agent is not asked for it. "
                "Odds and simulations assume that answers omit `satisfied`, unless the argument `satisfied` names the socket."
            )
        if unrouted := self.unrouted:
            unrouted_names = self.graph.names[unrouted[0]] if len(unrouted) == 1 else f"{len(unrouted)} sockets"
            notes.append(f"Failures at {unrouted_names} (see `unrouted`) are not explored; each failure ends the cast.")
        if not self.certain and self.complete_search:
            notes.append("Therefore, anything that was not seen may still be possible.")
        return tuple(notes)

    # -- answers --------------------------------------------------------------------

    @property
    def ends(self) -> dict[str, tuple[str, ...]]:
        """The possible ends of a cast, each with the sockets at which casts end in this way.

        An end is ``complete``, ``held`` (the cast waits for a person) or the kind of failure.

        Raises:
            MateriaError: kind ``not_explored``: the search stopped early.
        """
        self._require_complete(self._space)
        return self.ends_seen

    @property
    def ends_seen(self) -> dict[str, tuple[str, ...]]:
        """The observed ends, in the form of :attr:`ends`. If the search stopped early, other ends may be possible."""
        ends: dict[str, list[str]] = {}
        for node in self._space.nodes:
            if node.end is not None:
                ends.setdefault(node.end, []).extend([node.socket] if node.socket else [])
        return {end: tuple(dict.fromkeys(sockets)) for end, sockets in ends.items()}

    def can(self, event: EventName) -> bool | None:
        """Return True if an event can happen, False if it is impossible, or None if unknown (see :attr:`certain`).

        Args:
            event: ``complete``, ``failed``, the kind of failure, ``held`` (an agent waits for a person), a socket (its
                id or name), an edge as a pair of a socket and an edge number (counting from 1), or the id of an exit
                route.

        Raises:
            MateriaError: kind ``unknown_socket``: the loadout has no socket, edge or exit route with this name.
        """
        if _find_path(self._space, self._event_predicate(event)) is not None:
            return True
        return False if self._covers(event) else None

    @property
    def never(self) -> list[EdgeRef]:
        """The edges and exits that no cast takes.

        An edge is a pair of a socket id and an edge number (counting from 1). The ids of exit routes come last. If not
        every action of a protocol is explored (see :attr:`certain`), the result may include edges that are possible but
        were not observed.

        Raises:
            MateriaError: kind ``not_explored``: the search stopped early.
        """
        self._require_complete(self._space)
        return self.not_taken

    @property
    def not_taken(self) -> list[EdgeRef]:
        """The edges and exits that no explored cast took, in the same form as :attr:`never`."""
        edges_taken = set(self._space.first)
        for moves in self._space.moves:
            edges_taken.update(edge for move in moves for edge in move.edges)
        edges = [(id_, edge.index + 1) for id_, socket in self.graph.sockets.items() for edge in socket.edges]
        routes = [self._route_name(route) for route in self._routes() if route.edge_id not in edges_taken]
        return [*(edge for edge in edges if edge not in edges_taken), *routes]

    @property
    def unreached(self) -> tuple[str, ...]:
        """The sockets that no cast visits.

        Raises:
            MateriaError: kind ``not_explored``: the search stopped early.
        """
        self._require_complete(self._space)
        return self.not_visited

    @property
    def not_visited(self) -> tuple[str, ...]:
        """The sockets that no explored cast visited."""
        visited = {node.socket for node in self._space.nodes if node.end is None}
        return tuple(id_ for id_ in self.graph.sockets if id_ not in visited)

    @property
    def unrouted(self) -> tuple[str, ...]:
        """The visited sockets that have no edge for failures, so any failure in them ends the cast.

        These failures are not explored, because they can happen at every visit.
        """
        unvisited = self.not_visited
        return tuple(
            id_
            for id_, socket_rules in self._rules.sockets.items()
            if id_ not in unvisited and choose_edge(socket_rules, Result.FAILED, exhausted=False) is None
        )

    @property
    def stalls(self) -> tuple[str, ...]:
        """The sockets at which a cast can be stuck, because no end can be reached from there.

        Raises:
            MateriaError: kind ``not_explored``: the search stopped early.
        """
        self._require_complete(self._space)
        ends = [number for number, node in enumerate(self._space.nodes) if node.end is not None]
        can_end = reachable_from(ends, reversed_edges(_successors(self._space)))
        stuck = (node.socket for number, node in enumerate(self._space.nodes) if number not in can_end)
        return tuple(dict.fromkeys(socket for socket in stuck if socket is not None))

    def most_turns(self, items: int | None = None) -> int | None:
        """Return the maximum number of agent turns in a cast, excluding repairs, or None if the number is unlimited.

        Args:
            items: the length of every list; by default, the maximum over all explored lengths.

        Raises:
            MateriaError: kind ``not_explored``: the search stopped early.
        """
        space = self._space_of_length(items)
        longest = [0] * len(space.nodes)
        for component in strong_components(_successors(space)):
            members = set(component)
            leaving = 0
            for number in component:
                visit_turns = max((move.turns for move in space.moves[number]), default=0)
                for move in space.moves[number]:
                    # a visit can fail in its last turn too
                    turns = visit_turns if move.answer.result.is_silent else move.turns
                    if move.to not in members:
                        leaving = max(leaving, turns + longest[move.to])
                    elif turns:
                        return None
            for number in component:
                longest[number] = leaving
        return longest[0] if space.nodes else 0

    @overload
    def witness(self, event: EventName) -> Witness: ...
    @overload
    def witness(
        self, event: EventName, *, without: EventName | None = None, since: EventName | None = None
    ) -> Witness | None: ...
    def witness(
        self, event: EventName, *, without: EventName | None = None, since: EventName | None = None
    ) -> Witness | None:
        """Return a scripted cast that takes the shortest route to an event.

        Args:
            event: the event, in one of the forms that :meth:`can` lists.
            without: an event that must not happen before ``event``. The result is None if every explored cast contains
                that event first. For the explored list lengths, this is a proof.
            since: an event that must happen first. ``without`` is then forbidden only after the last occurrence of
                ``since``; by default, it is forbidden from the start of the cast.

        Raises:
            MateriaError: kind ``no_witness``: no explored cast contains the event. With ``without`` or ``since``, this
                is raised only if the exploration does not prove that such a cast is impossible. Kind
                ``unknown_socket``: the loadout has no socket, edge or exit route with this name.
        """
        without_predicate, since_predicate = (
            None if name is None else self._event_predicate(name) for name in (without, since)
        )
        path = _find_path(self._space, self._event_predicate(event), without_predicate, since_predicate)
        description = self.describe(event, without, since)
        if path is None:
            is_conditional = without is not None or since is not None
            # in a cast, lanes run in an order that was not explored
            is_proven = self._covers(event) and not (is_conditional and self.graph.regions)
            if is_conditional and is_proven:
                return None
            problem = "No route leads" if is_proven else "No route was seen"
            if not self.complete_search:
                problem = f"The search stopped {self._space.stopped} and found no route"
            message = f"{problem} to {description}."
            raise MateriaError(message, hint="compare the event with `not_taken` and `not_visited`", kind="no_witness")
        state = path[-1][1].to if path else 0
        end_path = _find_path(self._space, _end_test(COMPLETE), start=state)
        if end_path is None:
            end_path = _find_path(self._space, _end_test(), start=state) or []
        return _make_witness(self.graph, self._space, description, [*path, *end_path])

    def counterexample(self, rule: CastRule) -> Witness | None:
        """Return the shortest cast that breaks a rule, or None. For the explored list lengths, None is a proof.

        Raises:
            MateriaError: kind ``usage``: the rule does not have the form of a :class:`CastRule`. Kind ``no_witness``: no
                explored cast breaks the rule, but this is not proven. Kind ``unknown_socket``: as for :meth:`witness`.
        """
        is_text = all(isinstance(event, str) for event in rule.values())
        if not {"never"} <= rule.keys() <= CastRule.__annotations__.keys() or not is_text:
            hint = 'write {"never": "Publish"}, and add "without" or "since"; an edge is "edge 2 of Review"'
            raise usage_error(f"{rule!r:.200} is not a rule.", hint)
        if len(rule) == 1 and self.can(rule["never"]) is False:
            return None
        return self.witness(rule["never"], without=rule.get("without"), since=rule.get("since"))

    def ending_witnesses(self) -> Iterator[tuple[str, str | None, Witness]]:
        """Yield each end (``complete`` or a kind of failure), the socket that failed (or None), and an example cast."""
        for end, socket in dict.fromkeys((node.end, node.socket) for node in self._space.nodes):
            if end is not None:
                event = end if socket is None else f"{end} at {self.graph.names[socket]}"
                path = _find_path(self._space, _end_test(end, socket)) or []
                yield end, socket, _make_witness(self.graph, self._space, event, path)

    @property
    def moves(self) -> tuple[str, ...]:
        """One line for each possible visit: the socket, the verdict, and the next socket.

        Example: ``Socket-3 (last), satisfied false: Socket-2 (last)``. Loadouts whose edges differ have the same moves
        if each result leads to the same socket. Casts of two loadouts with the same moves can differ only in the number
        of times that they can repeat a move; :func:`behaviour_changes` compares this too.

        Raises:
            MateriaError: kind ``not_explored``: the search stopped early.
        """
        nodes = self._require_complete(self._space).nodes
        moves = {
            f"{node.describe()}{_describe_answer(move.answer)}: {nodes[move.to].describe()}"
            for node, leaving in zip(nodes, self._space.moves, strict=True)
            for move in leaving
        }
        return tuple(sorted({f"start: {nodes[0].describe()}", *moves}))

    def odds(self, satisfied: Chances = 0.5, items: int = 3, **assumed: Unpack[Assumptions]) -> Odds:
        """Return the exact chance of each end and the mean number of turns.

        Args:
            satisfied: the chance that an output has ``satisfied: true``, or a pair of this chance and the chance that
                the output omits ``satisfied``. Either one value for all sockets, or values by socket or materia (``*``
                for all others). An agent that is not asked for ``satisfied`` omits it, unless a value names the agent.
            items: the length of every list.
            assumed: further assumptions: the chance that a visit ``failed``, and the ``tokens``, ``cost`` and
                ``seconds`` of a visit; see :class:`.odds.Assumptions`.

        Raises:
            MateriaError: the search stopped early (``not_explored``), a chance is missing or invalid, or the mean does
                not exist (``endless``).
        """
        return compute_odds(self.graph, self._space_of_length(items), satisfied, items, **assumed)

    def worth(
        self,
        writer: PerSocket,
        critics: Mapping[str, tuple[float, float]],
        satisfied: Chances = 1.0,
        items: int = 3,
        **assumed: Unpack[Assumptions],
    ) -> Mapping[str, Odds]:
        """Return the odds with all critics, without each critic, and with one more try for each critic.

        The end ``complete, with bad work`` is the chance that bad work is published.

        Work is good or bad. A writer replaces the work at each visit. An item is accepted when its loop advances, and
        accepted items are published if the cast completes. Critics outside the loop judge all accepted items.

        Args:
            writer: the chance that new or rewritten work is good. A number applies to the sockets to which the critics
                send work back; a mapping names the writers by socket or materia.
            critics: for each critic, by socket or materia, the chance that it refuses bad work and the chance that it
                refuses good work.
            satisfied: the chance that other outputs have ``satisfied: true``, as for :meth:`odds`.
            items: the length of every list.
            assumed: further assumptions, as for :meth:`odds`.

        Raises:
            MateriaError: the search stopped early (``not_explored``), or a chance is missing or invalid.
        """

        def space_of(graph: Graph) -> StateSpace:
            explored = next((other for other in (self, *self._variants) if other.graph == graph), None)
            if explored is None:
                explored = Exploration(graph, items, self._max_states)
                self._variants.append(explored)
            return explored._space_of_length(items)

        return compute_worth(self.graph, space_of, writer, critics, satisfied, items, **assumed)

    # -- inside ---------------------------------------------------------------------

    def _space_of_length(self, length: int | None) -> StateSpace:
        """Return the reachable states if every list has this length; None selects the explored lengths."""
        if length is None or self.items == (length,):
            return self._require_complete(self._space)
        check_list_lengths(length)
        if (space := self._spaces_by_length.get(length)) is None:
            space = explore_states(self.graph, (length,), self._max_states, progress=self._progress)
            self._spaces_by_length[length] = space
        return self._require_complete(space)

    def _require_complete(self, space: StateSpace) -> StateSpace:
        """Return the reachable states; raise MateriaError if the search stopped early."""
        if not space.stopped:
            return space
        has_lists = any(socket.iterator is not None for socket in self.graph.sockets.values())
        raise MateriaError(
            f"The result is unknown, because the search stopped {space.stopped}.",
            hint="read the results so far in `ends_seen`, `not_taken` and `not_visited`; explore again with "
            f"{'fewer items or ' * has_lists}a larger `states=`; or use simulate, which runs random casts",
            kind="not_explored",
        )

    def _routes(self) -> Iterator[ExitRoute]:
        return (route for loop in self.graph.loops.values() for route in loop.routes)

    def _route_name(self, route: ExitRoute) -> str:
        """Return the id of an exit route, or its ``edge_id`` if another loop has a route with the same id."""
        is_unique = sum(other.id == route.id for other in self._routes()) == 1
        return route.id if is_unique else route.edge_id

    def _covers(self, event: EventName) -> bool:
        """Return True if an event that was not observed is certainly impossible."""
        is_unexplored = event in _UNEXPLORED_FAILURES or (event == FAILED and bool(self.unrouted))
        return self.certain and not is_unexplored

    def _event_predicate(self, event: EventName) -> _EventPredicate:
        """Return a predicate for an event in one of the forms that :meth:`can` lists."""
        edges = self._edges_named(event)
        if edges is not None:
            return edges.__contains__
        is_node = self._node_test(str(event))
        return lambda step: isinstance(step, StateNode) and is_node(step)

    def describe(self, event: EventName, without: EventName | None, since: EventName | None) -> str:
        """Return the words for the events of :meth:`witness`, such as ``Publish without Review since Write``."""
        events = {"": event, " without ": without, " since ": since}
        return "".join(f"{word}{self._describe_event(e)}" for word, e in events.items() if e is not None)

    def _describe_event(self, event: EventName) -> str:
        text = f"edge {event[1]} of {event[0]}" if isinstance(event, tuple) else event
        ends = {COMPLETE: "the end", END: "the end", FAILED: "a failure"}
        return ends.get(text) or with_names(text, self.graph.names)

    def _edges_named(self, name: str | tuple[str, int]) -> set[EdgeRef] | None:
        """Return the edge or the exit routes with the given name, or None if there are no such edges or exit routes."""
        if isinstance(name, str) and (edge := re.fullmatch(r"edge (\d+) of (.+)", name)):
            name = edge[2], int(edge[1])
        if isinstance(name, tuple):
            id_ = self.graph.find_socket(str(name[0]))
            if not 1 <= name[1] <= (count := len(self.graph.sockets[id_].edges)):
                message = f"The socket {name[0]!r} has no edge {name[1]}."
                raise MateriaError(message, hint=f"its edges are numbered from 1 to {count}", kind="unknown_socket")
            return {(id_, name[1])}
        routes: set[EdgeRef] = {route.edge_id for route in self._routes() if name in (route.id, route.edge_id)}
        return routes or None

    def _node_test(self, name: str) -> Callable[[StateNode], bool]:
        if name in (COMPLETE, END, self.graph.names[END]):
            return lambda node: node.end == COMPLETE
        if name == FAILED:
            return lambda node: node.end not in (None, COMPLETE, HELD)
        if name not in self.graph.sockets and (name in _FAILURES or name == HELD or name in self.ends_seen):
            return lambda node: node.end == name
        routes = map(self._route_name, self._routes())
        known_names = [COMPLETE, FAILED, HELD, *self.graph.names, *self.graph.names.values(), *routes, *_FAILURES]
        message = f"{name!r} is not a socket, exit or end of {self.graph.name}."
        needs_one_of(name, known_names, message, "unknown_socket")
        id_ = self.graph.find_socket(name)
        return lambda node: node.end is None and node.socket == id_


class BehaviourChange(NamedTuple):
    """A result after which the routes of two loadouts differ.

    Attributes:
        after: the visit and its result, or ``start``; like ``a`` and ``b``, with the names of sockets.
        a: the next visit or the end in casts of loadout A.
        b: the next visit or the end in casts of loadout B.
        route: the ids of the sockets that the shortest cast with this result visits, up to this visit.
    """

    after: str
    a: str
    b: str
    route: tuple[str, ...]


def behaviour_changes(a: Exploration, b: Exploration) -> list[BehaviourChange]:
    """Return the differences between the casts of two loadouts when both get the same results, shortest cast first.

    The list is empty if and only if every cast takes the same route in both loadouts. A cast is not followed past its
    first difference.

    Raises:
        MateriaError: kind ``not_explored``: a search stopped early.
    """
    spaces = a._space_of_length(None), b._space_of_length(None)  # noqa: SLF001 - private in this module only
    names = shared_names(a.graph, b.graph)
    changes: dict[tuple[str, ...], BehaviourChange] = {}
    known, queue = set[tuple[int, int]](), deque[tuple[tuple[int, int], tuple[str, ...]]]()

    def arrive(after: str, left: int | None, right: int | None, route: tuple[str, ...]) -> None:
        nodes = [None if n is None else space.nodes[n] for n, space in zip((left, right), spaces, strict=True)]
        if left is None or right is None or nodes[0] != nodes[1]:
            texts = ["the cast stops" if node is None else node.describe(names) for node in nodes]
            changes.setdefault((after, *texts), BehaviourChange(after, texts[0], texts[1], route))
        elif (left, right) not in known:
            known.add((left, right))
            queue.append(((left, right), route))

    arrive("start", 0, 0, ())
    while queue:
        (left, right), route = queue.popleft()
        node, sides = spaces[0].nodes[left], (spaces[0].moves[left], spaces[1].moves[right])
        for answer in dict.fromkeys(move.answer._replace(text="") for moves in sides for move in moves):
            targets = [_answer_target(moves, answer) for moves in sides]
            if answer.result.is_silent or None not in targets:
                after = f"{node.describe(names)}{_describe_answer(answer)}"
                arrive(after, targets[0], targets[1], (*route, node.socket or ""))
    return list(changes.values())


def _answer_target(moves: Sequence[Move], answer: ScriptedResult) -> int | None:
    """Return the next state after an answer, or None. If no verdict matters, all accepted answers share one move."""
    targets = {(move.answer.result, move.answer.list_length, move.answer.asks): move.to for move in moves}
    results = [answer.result] if answer.asks or answer.result.is_silent else [answer.result, Result.NOTHING]
    keys = ((result, length, answer.asks) for result in results for length in (answer.list_length, None))
    return next((targets[key] for key in keys if key in targets), None)


def _describe_answer(answer: ScriptedResult) -> str:
    if answer.asks:
        return f", asks to {answer.asks}"
    return "" if answer.result is Result.NOTHING else f", {answer.result.noun}".replace(":", "")


def _successors(space: StateSpace) -> dict[int, list[int]]:
    return {number: [move.to for move in moves] for number, moves in enumerate(space.moves)}
