"""What a loadout can do, before anybody is paid: can it end, fail, get there, and how soon; each with a witness."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Unpack

from materia_nb.engine import decide, entering
from materia_nb.engine.decide import Answer
from materia_nb.engine.events import Events
from materia_nb.engine.evolve import begin_at, fold
from materia_nb.engine.routing import choose_edge
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, pending
from materia_nb.engine.state import Failure
from materia_nb.errors import MateriaError, counted, did_you_mean
from materia_nb.handoff.base import SAMPLE
from materia_nb.insight.odds import Assumptions, Chances, Odds, compute_odds
from materia_nb.insight.reachable_states import (
    COMPLETE,
    FAILED,
    HELD,
    MAX_STATES,
    EdgeRef,
    Move,
    ScriptedResult,
    StateNode,
    StateSpace,
    check_list_lengths,
    explore_states,
    failure_of,
    is_not_asked,
    sockets_with_detours,
    sockets_without_samples,
    without_prompts,
)
from materia_nb.loadout.graph import END, ExitRoute, Graph
from materia_nb.loadout.topology import knots, reachable_from, turned
from materia_nb.loadout.vocabulary import Result
from materia_nb.parallel import Progress


class ByVisit:
    """A pin for a socket that answers or fails otherwise at each visit."""

    def __init__(self, texts: Sequence[str | Failure]) -> None:
        self.texts = tuple(texts)
        self.__name__ = "witness"

    def __call__(self, turn: Any) -> str:
        """Return the answer of the turn's visit, or raise MateriaError where it fails."""
        text = self.texts[int(turn.visit) - 1]
        if isinstance(text, Failure):
            raise MateriaError(text.message, where=turn.socket_id, kind=text.kind)
        return text

    def __repr__(self) -> str:
        return (
            f"ByVisit({', '.join('a failure' if isinstance(text, Failure) else text for text in self.texts)})"
        )


@dataclass(frozen=True, slots=True)
class Witness:
    """A cast that shows that something can happen, by the shortest way there and from there to an end.

    ``wb.cast(request, agents={"*": witness.answers}, pins=witness.pins)`` makes it happen.

    Attributes:
        what: what it shows.
        route: the sockets that are visited, in order.
        end: ``complete`` or the kind of the failure; None when no end can be reached, or none is known from there.
        answers: what agents say, by socket, turn by turn.
        pins: what utilities, and agents that fail, are pinned to, by socket.
        drafts: the sockets whose drafts a person accepts (``cast.accept()``).
    """

    what: str
    route: tuple[str, ...]
    end: str | None
    answers: dict[str, list[str]]
    pins: dict[str, str | ByVisit]
    drafts: tuple[str, ...] = ()


def _to_an_end(space: StateSpace, start: int) -> list[tuple[int, Move]]:
    """Return the shortest way from a state to a success, else to a failure; empty when there is none."""
    came: dict[int, tuple[int, Move]] = {}
    todo, seen = deque([start]), {start}
    ends: dict[bool, int] = {}
    while todo and True not in ends:
        at = todo.popleft()
        if (end := space.nodes[at].end) is not None:
            ends.setdefault(end == COMPLETE, at)
        for way in space.ways[at]:
            if way.to not in seen:
                seen.add(way.to)
                came[way.to] = (at, way)
                todo.append(way.to)
    return _back(came, start, ends.get(True, ends.get(False, start)))


def _back(came: Mapping[int, tuple[int, Move]], start: int, at: int) -> list[tuple[int, Move]]:
    """Return the ways from one state to another, when it is known from where each was found."""
    found: list[tuple[int, Move]] = []
    while at != start:
        found.append(came[at])
        at = came[at][0]
    return found[::-1]


def _witness_of(graph: Graph, space: StateSpace, what: str, ways: Sequence[tuple[int, Move]]) -> Witness:
    """Return the cast that goes these ways, each with the state that it leaves."""
    visits: dict[str, list[Move]] = {}
    for number, way in ways:
        visits.setdefault(space.nodes[number].socket or "", []).append(way)
    fails = {id_ for id_, each in visits.items() if any(way.answer.result.silent for way in each)}
    scripted = [id_ for id_ in visits if not graph.sockets[id_].is_utility and id_ not in fails]
    return Witness(
        what,
        tuple(space.nodes[number].socket or "" for number, _ in ways),
        space.nodes[ways[-1][1].to if ways else 0].end,
        {
            id_: [text for way in visits[id_] for text in ([SAMPLE] * (way.turns - 1) + [way.answer.text])]
            for id_ in scripted
        },
        {id_: _pin(each) for id_, each in visits.items() if id_ not in scripted},
        tuple(id_ for id_ in visits if graph.sockets[id_].materia.multi_turn and id_ in {*scripted, *fails}),
    )


def _pin(visits: Sequence[Move]) -> str | ByVisit:
    """What a socket is pinned to that is to answer these visits, one after the other."""
    results = [way.answer.result for way in visits]
    texts = [
        failure_of(result) if result.silent else way.answer.text
        for result, way in zip(results, visits, strict=True)
    ]
    first = texts[0]
    return first if isinstance(first, str) and len(set(texts)) == 1 else ByVisit(texts)


def replay_witness(rules: Rules, witness: Witness) -> Session:
    """Return the cast that a witness describes, as everything that it knows; nothing runs and nothing is written."""
    session = begin_at(entering.begin(rules, SAMPLE))
    scripts = {id_: iter(texts) for id_, texts in witness.answers.items()}
    while due := pending(rules, session):
        lane = due[0].lane
        here = session.streams[-1].lanes[lane].session if lane else session
        if here.state.status == "held":
            return session
        command = _next(here, witness, scripts)
        events = decide.in_lane(rules, session, lane, command, 0) if lane else command(rules, session, 0)
        session = fold(rules, session, events)
    return session


def _next(
    session: Session, witness: Witness, scripts: Mapping[str, Iterator[str]]
) -> Callable[[Rules, Session, int], Events]:
    """Return the command that a cast, or a lane, goes on with as a witness says."""
    if session.state.status == "ready":
        return decide.enter
    visit = decide.waiting(session)
    if visit.mode == "draft" and visit.drafts:
        return decide.finalize
    pin = witness.pins[visit.socket] if visit.socket in witness.pins else next(scripts[visit.socket])
    text = pin.texts[visit.visit - 1] if isinstance(pin, ByVisit) else pin
    if isinstance(text, str):
        return lambda rules, session, ts: decide.answer(rules, session, Answer(text), ts)
    failure = text._replace(socket=visit.socket)
    return lambda rules, session, ts: decide.fail(rules, session, failure, 0, ts)


# -- exploring -------------------------------------------------------------------------------

_LEFT_OUT: Final = frozenset(
    {"budget", "invalid_output", "repair_exhausted"}
    | {"utility_exit", "utility_timeout", "utility_not_started", "utility_failed"}
)
"""Kinds of failures that take a malformed answer, a process or a bill, which no exploring gives."""
_KINDS: Final = _LEFT_OUT | {"edge_traversals_exhausted", "no_advance_cycles_exhausted", "assignment"}
"""What a cast can fail with."""


class Exploration:
    """Every way that casts of a loadout can go when its answers are well formed; made by ``wb.explore``.

    Args:
        graph: the loadout.
        items: how long the lists are that are tried.
        most: after how many states the search is cut off; what was not seen is not known then.
        progress: whether a bar is printed; or what is called with how many states were looked at and are known.
    """

    def __init__(
        self,
        graph: Graph,
        items: Sequence[int] | int = range(4),
        most: int = MAX_STATES,
        *,
        progress: Progress = False,
    ) -> None:
        lengths: list[Any] = [items] if isinstance(items, int) else [*items]
        check_list_lengths(*lengths or [items])
        self.graph, self.items = graph, tuple(dict.fromkeys(lengths))
        self._most, self._progress = most, progress
        self._rules = Rules(without_prompts(graph))
        self._space = explore_states(graph, self.items, most, progress=progress)
        self._fixed: dict[int, StateSpace] = {}
        self._came = _came(self._space)

    # -- what was looked at ---------------------------------------------------------

    @property
    def complete_search(self) -> bool:
        """Whether every state was looked at; when not, what was not seen is not known."""
        return self._space.complete

    @property
    def certain(self) -> bool:
        """Whether what was not seen is impossible: everything was looked at, and no protocol can do what is left out."""
        return self.complete_search and not (
            sockets_without_samples(self.graph) or sockets_with_detours(self.graph)
        )

    @property
    def states(self) -> int:
        """How many states were found."""
        return len(self._space.nodes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be known to read the answers rightly."""
        found = []
        if not self.complete_search:
            found.append(f"The search stopped {self._space.stopped}: what was not seen is not known.")
        if self.graph.regions:
            found.append(
                "Lanes are explored as one that works on all items: each further lane runs its prelude once more."
            )
        if others := sockets_without_samples(self.graph):
            found.append(
                f"{', '.join(others)}: explored as if its agent spoke the sparse protocol; what another protocol "
                "adds (pauses, detours, escalations) is left out, and a witness is not in its form."
            )
        if others := sockets_with_detours(self.graph):
            found.append(
                f"{', '.join(others)}: its agent may want any socket run first (a detour), which is left out."
            )
        if silent := [id_ for id_, here in self._rules.sockets.items() if is_not_asked(here)]:
            found.append(
                f"{', '.join(silent)}: an edge, an exit or an advance reads satisfied, but its agent is not asked for "
                "it. Odds and simulations have it say nothing, unless satisfied= names it."
            )
        if unrouted := self.unrouted:
            at = counted(len(unrouted), "socket")
            found.append(f"An agent or process that fails ends the cast at {at} (unrouted): left out here.")
        if not self.certain and self.complete_search:
            found.append("So what was not seen is not known to be impossible.")
        return tuple(found)

    # -- answers --------------------------------------------------------------------

    @property
    def ends(self) -> dict[str, tuple[str, ...]]:
        """How casts can end: ``complete``, ``held`` for a person, or the kind of a failure, each with the sockets where.

        Raises:
            MateriaError: the search was cut off, so that it is not known (``not_explored``).
        """
        self._needs_all("How its casts can end", "ends_seen has the ends that were seen")
        return self.ends_seen

    @property
    def ends_seen(self) -> dict[str, tuple[str, ...]]:
        """The ends that were seen, in the form of :attr:`ends`; there may be others where the search was cut off."""
        found: dict[str, list[str]] = {}
        for node in self._space.nodes:
            if node.end is not None:
                found.setdefault(node.end, []).extend([node.socket] if node.socket else [])
        return {end: tuple(dict.fromkeys(sockets)) for end, sockets in found.items()}

    def can(self, what: str | tuple[str, int]) -> bool | None:
        """Whether something can happen; None when it was not seen and may happen all the same (see :attr:`certain`).

        Args:
            what: ``complete``, ``failed``, the kind of a failure, ``held`` (an agent stops for a person), a socket,
                an edge as (socket, number from 1), or the id of an exit route.

        Raises:
            MateriaError: there is no such thing in the loadout (``unknown_socket``).
        """
        if self._shortest(what) is not None:
            return True
        left_out = what in _LEFT_OUT or (what == FAILED and self.unrouted)
        return False if self.certain and not left_out else None

    @property
    def never(self) -> list[EdgeRef]:
        """What no way takes: edges as (socket, number from 1), then ids of exit routes.

        Where a protocol can do what is left out (see :attr:`certain`) it is what was not seen.

        Raises:
            MateriaError: the search was cut off, so that it is not known (``not_explored``).
        """
        self._needs_all("What is never taken", "not_taken has what was not seen to be")
        return self.not_taken

    @property
    def not_taken(self) -> list[EdgeRef]:
        """What was not seen to be taken, in the form of :attr:`never`."""
        seen = set(self._space.first)
        for ways in self._space.ways:
            seen.update(one for way in ways for one in way.taken)
        edges = [(id_, edge.place + 1) for id_, socket in self.graph.sockets.items() for edge in socket.edges]
        routes = [self._name(route) for route in self._routes() if route.edge_id not in seen]
        return [*(edge for edge in edges if edge not in seen), *routes]

    @property
    def unreached(self) -> tuple[str, ...]:
        """The sockets that no way visits.

        Raises:
            MateriaError: the search was cut off, so that it is not known (``not_explored``).
        """
        self._needs_all("What is never visited", "not_visited has what was not seen to be")
        return self.not_visited

    @property
    def not_visited(self) -> tuple[str, ...]:
        """The sockets that were not seen to be visited."""
        seen = {node.socket for node in self._space.nodes if node.end is None}
        return tuple(id_ for id_ in self.graph.sockets if id_ not in seen)

    @property
    def unrouted(self) -> tuple[str, ...]:
        """The sockets that were seen to be visited, and whose failure ends the cast, since no edge there waits for it.

        These ends are left out everywhere else: each visit has one, whatever the loadout does.
        """
        missed = self.not_visited
        return tuple(
            id_
            for id_, here in self._rules.sockets.items()
            if id_ not in missed and choose_edge(here, Result.FAILED, exhausted=False) is None
        )

    @property
    def stalls(self) -> tuple[str, ...]:
        """The sockets at which a cast can be so that no end can be reached any more; empty when there is always one.

        Raises:
            MateriaError: the search was cut off, so that it is not known (``not_explored``).
        """
        self._needs_all("Where no end is reached any more")
        return stalling_sockets(self._space)

    def most_turns(self, items: int | None = None) -> int | None:
        """The most turns that agents can have in one cast, repairs aside; None where nothing bounds them.

        Args:
            items: how long every list is; any of those explored if left out.

        Raises:
            MateriaError: the search was cut off (``not_explored``).
        """
        return max_turns(self._only(items))

    def witness(self, what: str | tuple[str, int]) -> Witness:
        """Return a scripted cast in which something happens, by the shortest way; see :meth:`can`.

        Raises:
            MateriaError: nothing of the kind was seen (``no_witness``).
        """
        found = self._shortest(what)
        if found is None:
            early = f"The search stopped {self._space.stopped} and saw no way"
            seen = "No way leads" if self.certain else "No way was seen" if self.complete_search else early
            raise MateriaError(
                f"{seen} to {_words(what)}.",
                hint="not_taken and not_visited say what was not seen",
                kind="no_witness",
            )
        at = found[-1][1].to if found else 0
        return _witness_of(self.graph, self._space, _words(what), [*found, *_to_an_end(self._space, at)])

    def ways_to_end(self) -> Iterator[tuple[str, str | None, Witness]]:
        """Give each way to end: ``complete`` or the kind of a failure, the socket where it fails, and a witness."""
        seen = set()
        for number, node in enumerate(self._space.nodes):
            if node.end is not None and (node.end, node.socket) not in seen:
                seen.add((node.end, node.socket))
                what = node.end if node.socket is None else f"{node.end} at {node.socket}"
                yield node.end, node.socket, _witness_of(self.graph, self._space, what, self._to(number))

    @property
    def moves(self) -> tuple[str, ...]:
        """Every visit that there can be, in words: where, what is said, what is taken, and where it leads.

        Such as ``Socket-3 (last), satisfied false: edge 2 → Socket-2 (last)``. Two loadouts with the same moves differ
        at most in how often something can be done.

        Raises:
            MateriaError: the search was cut off, so that it is not known (``not_explored``).
        """
        self._needs_all("Every visit that there can be")
        nodes = self._space.nodes
        found = {f"start: {_at(nodes[0], self._space.first)}"}
        for node, ways in zip(nodes, self._space.ways, strict=True):
            for way in ways:
                found.add(f"{_at(node)}{_happening(way.answer)}: {_at(nodes[way.to], way.taken)}")
        return tuple(sorted(found))

    def odds(self, satisfied: Chances = 0.5, items: int = 3, **assumed: Unpack[Assumptions]) -> Odds:
        """Return how likely each end is and how many turns it takes on average, exactly.

        Args:
            satisfied: the chance that an output says ``satisfied: true``, or a pair of that and the chance that it
                says nothing: one for all, or by socket or materia (``*`` for all others). An agent that is not asked
                for ``satisfied`` says nothing, unless it is named.
            items: how long every list is.
            assumed: the chance that a visit ``failed``, and what it takes: ``tokens``, ``cost``, ``seconds``; see
                :class:`.odds.Assumptions`.

        Raises:
            MateriaError: the search was cut off (``not_explored``), a chance is missing or none, or there is no mean (``endless``).
        """
        return compute_odds(self.graph, self._only(items), satisfied, items, **assumed)

    # -- inside ---------------------------------------------------------------------

    def _only(self, items: int | None) -> StateSpace:
        """The states when every list is as long."""
        if items is None or self.items == (items,):
            self._needs_all("This")
            return self._space
        check_list_lengths(items)
        space = self._fixed.get(items) or explore_states(
            self.graph, (items,), self._most, progress=self._progress
        )
        if not space.complete:
            raise _not_known("This", self.graph, space)
        self._fixed[items] = space
        return space

    def _needs_all(self, what: str, *hints: str) -> None:
        if not self.complete_search:
            raise _not_known(what, self.graph, self._space, *hints)

    def _routes(self) -> Iterator[ExitRoute]:
        return (route for loop in self.graph.loops.values() for route in loop.routes)

    def _name(self, route: ExitRoute) -> str:
        """The id of a route, with its loop where another loop has a route of that id."""
        same = [one for one in self._routes() if one.id == route.id]
        return route.id if len(same) == 1 else route.edge_id

    def _shortest(self, what: str | tuple[str, int]) -> list[tuple[int, Move]] | None:
        """The ways to the first state, or the first way, that is asked for; None when there is none."""
        taken = self._taken_named(what)
        if taken is None:
            reached = self._reached(str(what))
            number = next((n for n, node in enumerate(self._space.nodes) if reached(node)), None)
            return None if number is None else self._to(number)
        if taken & set(self._space.first):
            return []
        for number, ways in enumerate(self._space.ways):
            for way in ways:
                if taken & set(way.taken):
                    return [*self._to(number), (number, way)]
        return None

    def _taken_named(self, what: str | tuple[str, int]) -> set[EdgeRef] | None:
        """The edge or the routes that a name stands for, None when it names something else."""
        if isinstance(what, str) and (edge := re.fullmatch(r"edge (\d+) of (.+)", what)):
            what = edge[2], int(edge[1])
        if isinstance(what, tuple):
            socket = self.graph.sockets.get(what[0])
            if socket is None or not 1 <= what[1] <= len(socket.edges):
                raise MateriaError(
                    f"There is no edge {what[1]} of {what[0]!r}.",
                    hint=did_you_mean(str(what[0]), self.graph.sockets) + "; edges count from 1",
                    kind="unknown_socket",
                )
            return {what}
        routes: set[EdgeRef] = {
            route.edge_id for route in self._routes() if what in (route.id, route.edge_id)
        }
        return routes or None

    def _reached(self, what: str) -> Callable[[StateNode], bool]:
        if what in (COMPLETE, END):
            return lambda node: node.end == COMPLETE
        if what == FAILED:
            return lambda node: node.end not in (None, COMPLETE, HELD)
        if what in self.graph.sockets:
            return lambda node: node.end is None and node.socket == what
        if what in _KINDS or what == HELD or what in self.ends_seen:
            return lambda node: node.end == what
        known = [
            COMPLETE,
            FAILED,
            HELD,
            *self.graph.sockets,
            *(self._name(one) for one in self._routes()),
            *_KINDS,
        ]
        raise MateriaError(
            f"{what!r} is not a socket, exit or end of {self.graph.name}.",
            hint=did_you_mean(what, known),
            kind="unknown_socket",
        )

    def _to(self, number: int) -> list[tuple[int, Move]]:
        return _back(self._came, 0, number)


def _not_known(what: str, graph: Graph, space: StateSpace, *hints: str) -> MateriaError:
    lists = any(socket.iterator is not None for socket in graph.sockets.values())
    hint = "; ".join([*hints, f"explore with {'fewer items, or with ' * lists}larger states="])
    return MateriaError(
        f"{what} is not known: the search stopped {space.stopped}.",
        hint=f"{hint}; simulate counts what casts by chance come to",
        kind="not_explored",
    )


def _came(space: StateSpace) -> dict[int, tuple[int, Move]]:
    """For each state but the first, from where it was found; that is the shortest way there."""
    found: dict[int, tuple[int, Move]] = {}
    for number, ways in enumerate(space.ways):
        for way in ways:
            if way.to:
                found.setdefault(way.to, (number, way))
    return found


def _at(node: StateNode, taken: Sequence[EdgeRef] = ()) -> str:
    """A state in words, behind what was taken on the way to it."""
    place = f" ({node.place})" if node.place else ""
    where = (
        f"{node.socket}{place}" if node.end is None else " at ".join(filter(None, (node.end, node.socket)))
    )
    return " → ".join([*(f"edge {one[1]}" if isinstance(one, tuple) else one for one in taken), where])


def _happening(answer: ScriptedResult) -> str:
    """What happens to a visit with this answer, behind where it is; empty where it says nothing."""
    if answer.asks:
        return f", asks to {answer.asks}"
    tells = answer.result is not Result.NOTHING
    return f", {answer.result.asked}".replace(":", "") if tells else ""


def stalling_sockets(space: StateSpace) -> tuple[str, ...]:
    """Return the sockets at which a cast can be so that no end can be reached any more."""
    ends = [number for number, node in enumerate(space.nodes) if node.end is not None]
    ending = reachable_from(ends, turned(_onward(space)))
    stuck = [node.socket for number, node in enumerate(space.nodes) if number not in ending]
    return tuple(dict.fromkeys(socket for socket in stuck if socket is not None))


def _onward(space: StateSpace) -> dict[int, list[int]]:
    return {number: [way.to for way in ways] for number, ways in enumerate(space.ways)}


def max_turns(space: StateSpace) -> int | None:
    """Return the most turns along any way from the first state; None when a round has a turn in it."""
    best = [0] * len(space.nodes)
    for knot in knots(_onward(space)):
        inside = set(knot)
        leaving = 0
        for number in knot:
            most = max((way.turns for way in space.ways[number]), default=0)
            for way in space.ways[number]:
                turns = (
                    most if way.answer.result.silent else way.turns
                )  # a visit can fail in its last turn too
                if way.to not in inside:
                    leaving = max(leaving, turns + best[way.to])
                elif turns:
                    return None
        for number in knot:
            best[number] = leaving
    return best[0] if space.nodes else 0


def _words(what: str | tuple[str, int]) -> str:
    if isinstance(what, tuple):
        return f"edge {what[1]} of {what[0]}"
    return {COMPLETE: "the end", END: "the end", FAILED: "a failure"}.get(what, what)
