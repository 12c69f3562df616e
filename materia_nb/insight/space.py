"""Every way that a cast can go: the states that the engine reaches with answers that fit, each once.

Two states are one when nothing that decides where a cast goes tells them apart: the socket, its item, how far
each list has been walked, and what is left of the bounds. What was said, counted and shown is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple, TypeAlias

from materia_nb.engine import entering, outputs, recovery
from materia_nb.engine.events import Transition
from materia_nb.engine.items import list_at, state_path
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import Decision
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import CastState, Failure
from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import SAMPLE, in_brief
from materia_nb.insight.answers import Answers, Scripted, quiet
from materia_nb.loadout.graph import END, Graph
from materia_nb.loadout.regions import rounds_in
from materia_nb.loadout.vocabulary import Result
from materia_nb.sharing import Bar, Progress

MOST_STATES: Final = 50_000
"""How many states are looked at before a search is cut off."""
COMPLETE: Final = "complete"
FAILED: Final = "failed"
HELD: Final = "held"
"""The end of a way on which an agent holds the cast for a person; what the person would say is left open."""

Taken: TypeAlias = tuple[str, int] | str
"""An edge as its socket and its number from 1, or the ``edge_id`` of an exit route."""


class Node(NamedTuple):
    """A state: waiting at a socket, or an end.

    Attributes:
        socket: where it waits, is held, or failed.
        end: None while it waits, ``complete``, ``held``, or the kind of a failure.
        place: where in its list it is: only, first, middle or last, or "" outside a list.
    """

    socket: str | None
    end: str | None = None
    place: str = ""


class Way(NamedTuple):
    """One visit: what was answered, where it led, how many turns of an agent it took, and what it took on the way."""

    to: int
    answer: Scripted
    turns: int
    taken: tuple[Taken, ...]


@dataclass(slots=True)
class Space:
    """What a search found; node 0 is where a cast begins.

    Attributes:
        stopped: why the search stopped early, in words; empty when everything was looked at.
        first: what is taken before the first visit, when an empty loop is passed over.
    """

    nodes: list[Node] = field(default_factory=list)
    ways: list[list[Way]] = field(default_factory=list)
    first: tuple[Taken, ...] = ()
    stopped: str = ""

    @property
    def complete(self) -> bool:
        """Whether everything was looked at."""
        return not self.stopped


class Visited(NamedTuple):
    """What one visit came to: the state before the next visit or at the end, and what led there."""

    state: CastState
    turns: int
    taken: tuple[Taken, ...]


def walk(graph: Graph, items: Sequence[int], most: int = MOST_STATES, *, progress: Progress = False) -> Space:
    """Look at every state, those that are nearest first.

    A search that is cut off casts the loadout some hundred times by chance, so that it knows what is easily reached
    too. What it finds depends on nothing but its arguments; an interrupt ends it, and what was found until then is returned.

    Args:
        graph: the loadout.
        items: how long lists are; each answer that has one tries every length.
        most: after how many states the search is cut off.
        progress: whether a bar is printed, or what is called with how many states were looked at and are known.
    """
    search = _Search(graph, items)
    bar = Bar(progress, 1, "states")
    try:
        for number in range(most):
            if not search.todo:
                break
            search.expand(number, search.todo.popleft())
            if number % _TOLD == _TOLD - 1:
                bar.total = len(search.space.nodes)
                bar.add(_TOLD)
        if search.todo:
            search.space.stopped = f"after {most:,} states"
            search.wander(most)
    except KeyboardInterrupt:
        search.space.stopped = "by an interrupt"
    finally:
        bar.close()
    return search.space


_TOLD: Final = 128
"""States after which is told how far a search has come."""
_CASTS: Final = 300
_LONGEST: Final = 1_000
"""How many casts by chance follow a search that was cut off, and with how many visits each."""
_LIKELY: Final = (1.0, 0.9, 0.5, 0.1, 0.0)
"""How likely they are to say ``satisfied: true``, one after the other."""


class _Search:
    """The states of a loadout that are known, and how more become known; ``todo`` are those not looked at, in order."""

    def __init__(self, graph: Graph, items: Sequence[int]) -> None:
        self._rules = Rules(quiet(graph))
        self._answers, self._key = Answers(self._rules, items), Key(self._rules, items)
        self._known: dict[object, int] = {}
        self.space, self.todo = Space(), deque[CastState]()
        self._begun, self.space.first = arrive(self._rules, entering.begin(self._rules, SAMPLE))
        self._place(self._begun)

    def _place(self, state: CastState) -> int:
        found = self._known.setdefault(self._key.of(state), len(self.space.nodes))
        if found == len(self.space.nodes):
            self.space.nodes.append(_node(state))
            self.space.ways.append([])
            self.todo.append(state)
        return found

    def _asked(self, state: CastState) -> SocketRules | None:
        waits = state.status == "waiting" and state.at is not None
        return self._rules.sockets[state.at.socket] if waits and state.at is not None else None

    def _go(self, number: int, state: CastState, answer: Scripted) -> tuple[int, CastState]:
        """Give an answer in a state; returns the state that it leads to, with its number."""
        here = self._rules.sockets[state.at.socket if state.at is not None else ""]
        done = visit(self._rules, here, state, answer)
        turns = 0 if here.socket.is_utility else done.turns
        way = Way(self._place(done.state), answer, turns, done.taken)
        if way not in self.space.ways[number]:
            self.space.ways[number].append(way)
        return way.to, done.state

    def expand(self, number: int, state: CastState) -> None:
        """Give every answer in a state."""
        if (here := self._asked(state)) is not None:
            for answer in self._answers.of(here):
                self._go(number, state, answer)

    def wander(self, left: int) -> None:
        """Go through casts by chance, the same ones each time, with so many visits in all."""
        for cast in range(_CASTS):
            rng, likely = Random(cast), _LIKELY[cast % len(_LIKELY)]  # noqa: S311 - chances, no secrets
            number, state = 0, self._begun
            for _ in range(min(left, _LONGEST)):
                here = self._asked(state)
                if here is None:
                    break
                left -= 1
                result = Result.YES if rng.random() < likely else Result.NO
                given = self._answers.of(here)
                fits = [one for one in given if one.result is result]
                number, state = self._go(number, state, rng.choice(fits or given))


FAILURE: Final = Failure("failed", "It failed, to show where that leads.")
"""With what a visit fails that is to show where failures lead."""


class ScriptedTurn(NamedTuple):
    """One turn of a visit whose answers are made up.

    Attributes:
        asked: what a later turn is told; None in the first, which is told what :func:`.entering.prompt_for` says.
        text: the answer, empty where the visit fails.
        step: what comes of it.
        refused: whether the answer is refused, so that it is asked for again.
    """

    asked: Prompt | None
    text: str
    step: Transition
    refused: bool


def turns_of(rules: Rules, here: SocketRules, state: CastState, answer: Scripted) -> Iterator[ScriptedTurn]:
    """Answer the visit that waits, drafts and work before it included, or let it fail, and give each turn."""
    asked: Prompt | None = None
    while state.status == "waiting" and (at := state.at) is not None:
        if at.mode == "draft" and at.drafts:
            step = outputs.finalize(rules, state, entering.prompt_for(rules, state))
        else:
            text = SAMPLE if at.mode in here.any_text else answer.text
            if answer.result is Result.FAILED:
                step, text = recovery.fail(rules, state, FAILURE), ""
            else:
                step = outputs.output(rules, state, text)
            again = step.state.at is not None and step.state.at.repairs > at.repairs
            yield ScriptedTurn(asked, text, step, again)
        state, asked = step.state, step.prompt


def visit(rules: Rules, here: SocketRules, state: CastState, answer: Scripted) -> Visited:
    """Answer the visit that waits, drafts and work before it included, or let it fail, and enter what comes next.

    Raises:
        MateriaError: the socket refuses the answer (``no_answer``).
    """
    turns = 0
    decision: Decision | None = None
    for turns, turn in enumerate(turns_of(rules, here, state, answer), 1):  # noqa: B007 - how many is told below
        _needs_taken(here, turn.step)
        state, decision = turn.step.state, turn.step.decision
    taken = _taken(decision)
    if state.status == "ready":
        state, passed = arrive(rules, state)
        taken += passed
    return Visited(state, turns, taken)


def arrive(rules: Rules, state: CastState) -> tuple[CastState, tuple[Taken, ...]]:
    """Enter what comes next; with it the exits of the loops that are passed over."""
    step = entering.enter(rules, state)
    passed = step.decision.passed if step.decision is not None else ()
    return step.state, tuple(one.route for one in passed if one.route is not None)


def end_of(state: CastState) -> str | None:
    """How a cast ended: ``complete``, ``held``, or the kind of its failure; None while it waits."""
    if state.status == "waiting":
        return None
    return state.failure.kind if state.failure is not None else state.status


def _node(state: CastState) -> Node:
    if state.status == "waiting" and state.at is not None:
        return Node(state.at.socket, None, _place(state))
    held = state.at.socket if state.status == HELD and state.at is not None else None
    return Node(state.failure.socket if state.failure is not None else held, end_of(state))


def _place(state: CastState) -> str:
    if not state.shown or state.at is None or state.at.item is None:
        return ""
    walk, item, _ = state.shown[-1]
    last = item.position + 1 >= len(list_at(walk.iterator.items, state, item))
    return ("only" if last else "first") if item.position == 0 else "last" if last else "middle"


def _needs_taken(here: SocketRules, step: Transition) -> None:
    if step.reading is None or step.reading.error is None:
        return
    told = in_brief(step.reading.issues, 3)
    raise MateriaError(
        f"No short answer was found that {here.socket.id} takes: {told}",
        where=here.socket.id,
        hint="an assignment there reads a JSONPath with a filter or the like; a dotted path can be explored",
        kind="no_answer",
    )


def _taken(decision: Decision | None) -> tuple[Taken, ...]:
    if decision is None or decision.by not in ("edge", "exit") or decision.chosen is None:
        return ()
    look = decision.chosen
    if look.route is not None:
        return (look.route,)
    return ((decision.socket or "", (look.place or 0) + 1),)


class Key:
    """Tells the states of one loadout apart by what decides where a cast goes."""

    def __init__(self, rules: Rules, items: Sequence[int]) -> None:
        sources = _sources(rules.graph)
        self._fields = _fields_read(sources)
        self._counted = _counted(rules)
        self._longest = (max(items, default=0) + 1) ** 2
        self._last_json = any(source.startswith(("lastJson", "$")) for source in sources)

    def of(self, state: CastState) -> object:
        """What tells a state apart."""
        visit = state.at
        if state.status != "waiting" or visit is None:
            return _node(state)
        data = state.data
        return (
            visit.socket,
            visit.item.id if visit.item is not None else None,
            tuple((name, repr(data[name])) for name in self._fields or sorted(data) if name in data),
            tuple(sorted((name, min(at, self._longest)) for name, at in state.cursors.items())),
            tuple(sorted((edge, n) for edge, n in state.counts.items() if edge in self._counted)),
            frozenset(_records(state)),
            tuple((one.walk.iterator.cursor, one.item.id) for one in state.shown),
            tuple(sorted(state.within.items())),
            state.detours,
            repr(state.last_json) if self._last_json else None,
        )


def _records(state: CastState) -> Iterator[object]:
    for item, record in state.items.items():
        path = tuple((socket, step <= state.bounded_at) for socket, step in record.path)
        yield item, tuple(sorted(record.used.items())), path, record.cycles


def _sources(graph: Graph) -> list[str]:
    """What lists are read from, and what assignments read them from in turn."""
    sockets = graph.sockets.values()
    lists = [one.iterator.items for one in sockets if one.iterator is not None]
    lists += [one.advance.items for one in sockets if one.advance is not None]
    roots = {path[0] for text in lists if (path := state_path(text))}
    assigned: list[str] = []
    pairs = [(target.split("."), source) for one in sockets for target, source in one.assign]
    while True:
        more = [
            source
            for target, source in pairs
            if source not in assigned and not source.startswith("$") and roots & set(target[:1])
        ]
        if not more:
            return lists + assigned
        assigned += more
        roots |= {path[0] for text in more if (path := state_path(text))}


def _fields_read(sources: Sequence[str]) -> tuple[str, ...]:
    """The fields of the state that a list may come from; empty for all of them."""
    if "state" in sources:
        return ()
    return tuple(sorted({path[0] for text in sources if (path := state_path(text))})) or ("",)


def _counted(rules: Rules) -> frozenset[tuple[str, int]]:
    """The edges and exits that can be taken more than once: those that lie on a round."""
    graph = rules.graph
    links: list[tuple[str, str, tuple[str, int]]] = []
    for id_, here in rules.sockets.items():
        links += [(id_, edge.to, (id_, edge.place)) for edge in here.socket.edges]
        links += [(id_, route.target, (route.edge_id, 0)) for route in here.exits]
        if (route := rules.empty_exit(here.socket)) is not None:
            links.append((id_, route.target, ("", 0)))
    following: dict[str, set[str]] = {id_: set() for id_ in graph.sockets}
    for source, target, _ in links:
        if target != END:
            following[source].add(target)
    rounds = rounds_in(following)
    return frozenset(
        link for source, target, link in links if source in rounds and rounds[source] == rounds.get(target)
    )
