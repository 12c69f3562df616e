"""Every way that a cast can go: the states that the engine reaches with answers that fit, each once.

Two states are one when nothing that decides where a cast goes tells them apart: the socket, its item, how far
each list has been walked, and what is left of the bounds. What was said, counted and shown is left out.

The answers are the shortest that fit a socket, in any handoff protocol. What such an output says beside a route is tried too
where it ends there: that it needs a person, or cannot go on. Detours, and turns in which an agent only goes on, are left out.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random
from typing import Final, NamedTuple, TypeAlias

from materia_nb.engine import entering, outputs, recovery
from materia_nb.engine.entering import agent_id, given_to
from materia_nb.engine.events import Transition
from materia_nb.engine.items import list_at, state_path, walk_of
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import Decision, awaited_failures, choose_edge
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import CastState, Failure
from materia_nb.errors import MateriaError, usage_error
from materia_nb.handoff import protocol
from materia_nb.handoff.base import SAMPLE, HandoffProtocol, Outcome, Reaction, TurnFacts
from materia_nb.handoff.checks import SCHEDULE, summarize_issues
from materia_nb.jsonvalue import JSON, MISSING, compact, get_path, set_path, split_path
from materia_nb.loadout.graph import CAST_CONTEXTS, Graph, Socket
from materia_nb.loadout.topology import reachable_from, rounds_in
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, TAKEN, YES_OR_NO, Result, described
from materia_nb.parallel import Progress, ProgressBar


def stopping_answers(rules: Rules, here: SocketRules) -> Iterator[tuple[Reaction, str]]:
    """Give answers with which an agent stops the cast until a person has spoken: what each asks for, and its text."""
    maker, found = here.maker, set[Reaction]()
    if maker is None:
        return
    facts = TurnFacts(given=given_to(rules, here, entering.begin(rules, SAMPLE)))
    for value in maker.sample_stops():
        text = maker.write(value)
        reading = here.protocol.read(text, here.wanted, facts)
        if reading.accepted and reading.action in ("pause", "escalate") and reading.action not in found:
            found.add(reading.action)
            yield reading.action, text


def _maker(name: str) -> HandoffProtocol | None:
    """Return the protocol of that name if answers can be made up in its form."""
    try:
        spoken = protocol(name)
    except MateriaError:
        return None
    return spoken if spoken.has("sample_outputs") else None


# -- answers ---------------------------------------------------------------------------------
# They are scripted, never true: what they say is ``satisfied`` or not, how long a list is, and nothing else.

_DEEPEST: Final = 4
_BRACKETS: Final = re.compile(r"\[\s*(?:'([^']*)'|\"([^\"]*)\"|[^\]]*)\s*\]")

_StatePath: TypeAlias = tuple[str, ...]


class ScriptedResult(NamedTuple):
    """One thing that can happen to a visit.

    Attributes:
        text: the answer; empty where there is none, because the visit fails.
        result: what happens to the visit.
        items: how long its lists are, None when it has none.
        asks: what it asks for instead of a route: ``pause`` or ``escalate``, which hold the cast for a person; such an
            answer has no chance in odds and simulations.
    """

    text: str
    result: Result
    items: int | None
    asks: str = ""


def without_prompts(graph: Graph) -> Graph:
    """Return the same routes with nothing to tell: prompts do not change where a cast goes.

    What is handed over in a form that cannot be made is handed over in the sparse one.
    """
    sockets = {
        id_: replace(
            socket,
            materia=replace(socket.materia, prompt="", raw={}, owner=None, params={}, script=None),
            handoff=socket.handoff if _maker(socket.handoff) else DEFAULT_HANDOFF,
            cast_context=CAST_CONTEXTS["none"],
            layout=None,
        )
        for id_, socket in graph.sockets.items()
    }
    return replace(graph, sockets=sockets, document={})


def sockets_without_samples(graph: Graph) -> tuple[str, ...]:
    """The sockets whose agents speak a protocol in whose form no answer can be made."""
    return tuple(
        id_
        for id_, one in graph.sockets.items()
        if _asked(one) and one.handoff != DEFAULT_HANDOFF and _maker(one.handoff) is None
    )


def sockets_with_detours(graph: Graph) -> tuple[str, ...]:
    """The sockets whose outputs may name any socket to be run first, which is left out."""
    return tuple(
        id_
        for id_, one in graph.sockets.items()
        if _asked(one) and (maker := _maker(one.handoff)) is not None and maker.can_detour
    )


def _asked(socket: Socket) -> bool:
    """Whether an agent is asked there for a handoff."""
    return not socket.is_utility and socket.parse == "json"


class PossibleAnswers:
    """What each socket of a loadout can say, with lists of each of the given lengths."""

    def __init__(self, rules: Rules, items: Sequence[int]) -> None:
        self._rules, self._items = rules, tuple(items)
        self._lists, self._aliases = _lists(rules.graph)
        self._orphans = _orphans(rules.graph, self._lists, self._aliases)
        self._known: dict[str, tuple[ScriptedResult, ...]] = {}

    @property
    def lists(self) -> frozenset[_StatePath]:
        """The paths of the state that are read as lists."""
        return self._lists

    def of(self, here: SocketRules) -> tuple[ScriptedResult, ...]:
        """Every answer of a socket that can lead somewhere else than the others."""
        if here.socket.id not in self._known:
            failures = dict.fromkeys(awaited_failures(here).values())
            self._known[here.socket.id] = (
                *self._outputs(here),
                *(ScriptedResult("" if one.silent else SAMPLE, one, None) for one in failures),
            )
        return self._known[here.socket.id]

    def _outputs(self, here: SocketRules) -> Iterator[ScriptedResult]:
        if here.wanted.parse == "text":
            yield ScriptedResult(SAMPLE, Result.NOTHING, None)
            return
        lengths: Sequence[int | None] = self._items if self._has_lists(here) else (None,)
        if not here.socket.is_utility and here.maker is not None:
            yield from self._in_form(here, here.maker, lengths)
            return
        for result, count in product(outputs_of(here), lengths):
            yield ScriptedResult(compact(self._value(here, result, count or 0)), result, count)

    def _in_form(
        self, here: SocketRules, maker: HandoffProtocol, lengths: Sequence[int | None]
    ) -> Iterator[ScriptedResult]:
        """Every answer in the form of the socket's protocol; one that says nothing of ``satisfied`` may be among them."""
        found = []
        whatever = decisive_verdicts(here) == (Result.NOTHING,)
        for result, count in product(outputs_of(here), lengths):
            text = self._shortest(here, maker, None if whatever else result, count or 0)
            if text is not None:
                found.append(ScriptedResult(text, result, count))
        if not found:
            raise _no_answer(here)
        yield from found
        yield from (
            ScriptedResult(text, Result.STOPPED, None, action)
            for action, text in stopping_answers(self._rules, here)
        )

    def _shortest(
        self, here: SocketRules, maker: HandoffProtocol, result: Result | None, count: int
    ) -> str | None:
        """Return the shortest answer of this length that is taken and follows the graph; None when there is none.

        It says ``result`` of ``satisfied``; whatever it likes where that is None.
        """
        facts = TurnFacts(
            agent_id=agent_id(SAMPLE, here.socket.id),
            given=given_to(self._rules, here, entering.begin(self._rules, SAMPLE)),
            sockets=frozenset(self._rules.sockets),
        )
        for value in maker.sample_outputs("done" if result is None else _OUTCOMES[result], count):
            text = maker.write(self._with_sources(here, count, value))
            reading = here.protocol.read(text, here.wanted, facts)
            if reading.accepted and reading.action == "route" and result in (None, reading.result):
                return text
        return None

    def _with_sources(self, here: SocketRules, count: int, value: dict[str, JSON]) -> dict[str, JSON]:
        """Add what assignments read and the value lacks, and the lists that loops read."""
        for target, source in sorted(here.wanted.sources, key=lambda pair: len(pair[1])):
            segments, path = _segments(source), tuple(split_path(target))
            if segments and (self._below(path) or get_path(value, segments) is MISSING):
                value = dict(set_path(value, segments, self._at(path, count, 0)))
        return value

    def _has_lists(self, here: SocketRules) -> bool:
        if here.wanted.work_items or (here.socket.is_utility and self._orphans):
            return True
        return any(self._below(tuple(split_path(target))) for target, _ in here.wanted.sources)

    def _below(self, path: _StatePath) -> bool:
        return any(one[: len(path)] == path for one in self._lists)

    def _value(self, here: SocketRules, result: Result, count: int) -> dict[str, JSON]:
        value: Mapping[str, JSON] = {}
        for target, source in sorted(here.wanted.sources, key=lambda pair: len(pair[1])):
            if segments := _segments(source):
                made = self._at(tuple(split_path(target)), count, 0)
                value = set_path(value, segments, made)
        given = dict(value)
        if here.wanted.work_items:
            given["workItems"] = [{"title": f"Item {n + 1}", "context": SAMPLE} for n in range(count)]
        if here.wanted.streams:
            streams: list[JSON] = [{"name": SAMPLE, "workItemIndexes": list(range(count))}]
            given[SCHEDULE] = {"version": 1, "streams": streams if count else []}
        if "context" in given:
            given["context"] = SAMPLE
        if result in YES_OR_NO:
            given["satisfied"] = result.satisfied
        else:
            given.pop("satisfied", None)
        if here.socket.is_utility and self._orphans:
            given["state"] = {root: self._at((root,), count, 0) for root in self._orphans}
        return given

    def _at(self, path: _StatePath, count: int, depth: int) -> JSON:
        """What stands at a path of the state: a list where a loop reads one, an object above it, else a word."""
        if path in self._lists and depth < _DEEPEST:
            return [self._element(path, count, depth, n) for n in range(count)]
        names = sorted({one[len(path)] for one in self._lists if one[: len(path)] == path and one != path})
        if not names or depth >= _DEEPEST:
            return SAMPLE
        return {name: self._at((*path, name), count, depth + 1) for name in names}

    def _element(self, path: _StatePath, count: int, depth: int, number: int) -> JSON:
        element: dict[str, JSON] = {"title": f"Item {number + 1}", "context": SAMPLE}
        for alias in self._aliases.get(path, ()):
            inner = self._at(alias, count, depth + 1) if self._below(alias) else None
            if isinstance(inner, dict):
                element.update(inner)
        return element


def decisive_verdicts(here: SocketRules) -> tuple[Result, ...]:
    """What an output of a socket can say of ``satisfied`` that makes a difference."""
    if here.wanted.parse == "text":
        return (Result.NOTHING,)
    if here.wanted.why_satisfied is not None:
        return YES_OR_NO
    socket = here.socket
    conditions = [edge.when for edge in socket.edges] + [route.condition for route in here.exits]
    conditions += [] if socket.advance is None else [socket.advance.when]
    asks = [one for one in map(described, conditions) if not (one.whatever or one.without_output)]
    return TAKEN if asks else (Result.NOTHING,)


def outputs_of(here: SocketRules) -> tuple[Result, ...]:
    """Return what an output of a socket can say that makes a difference; in a form of its own it may say nothing too."""
    possible = decisive_verdicts(here)
    in_form = not here.socket.is_utility and here.maker is not None
    return TAKEN if in_form and possible != (Result.NOTHING,) else possible


def results_of(here: SocketRules) -> tuple[Result, ...]:
    """Return everything that can happen to a visit and that the cast goes on from."""
    return (*outputs_of(here), *dict.fromkeys(awaited_failures(here).values()))


def is_not_asked(here: SocketRules) -> bool:
    """Whether ``satisfied`` decides something behind an agent that is not told of it, and so says nothing (R7, R8)."""
    asked = here.socket.is_utility or here.wanted.why_satisfied is not None
    return (
        not asked and here.socket.handoff == DEFAULT_HANDOFF and decisive_verdicts(here) != (Result.NOTHING,)
    )


_OUTCOMES: Final[Mapping[Result, Outcome]] = {
    Result.YES: "done",
    Result.NO: "again",
    Result.NOTHING: "open",
}


def _segments(source: str) -> list[str]:
    """The path that a ``$`` source opens, with the brackets of JSONPath as names; empty for ``$`` itself."""

    def named(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        return f".{name}" if name else ""

    return [part for part in _BRACKETS.sub(named, source).split(".")[1:] if part]


def _lists(graph: Graph) -> tuple[frozenset[_StatePath], dict[_StatePath, tuple[_StatePath, ...]]]:
    """The paths of the state that are read as lists, and the names under which their items are shown."""
    paths: set[_StatePath] = set()
    aliases: dict[_StatePath, tuple[_StatePath, ...]] = {}
    for socket in graph.sockets.values():
        if socket.iterator is not None and (path := state_path(socket.iterator.items)):
            paths.add(path)
            aliases[path] = tuple(dict.fromkeys((*aliases.get(path, ()), *walk_of(socket.iterator).paths)))
        if socket.advance is not None and (path := state_path(socket.advance.items)):
            paths.add(path)
    return frozenset(paths), aliases


def _orphans(
    graph: Graph, lists: frozenset[_StatePath], aliases: Mapping[_StatePath, Sequence[_StatePath]]
) -> tuple[str, ...]:
    """The lists, by the first part of their paths, that only the ``state`` of a utility can have set."""
    sockets = graph.sockets.values()
    made = {path[0] for one in sockets for target, _ in one.assign if (path := split_path(target))}
    made |= {alias[0] for names in aliases.values() for alias in names}
    made.add("workItems")  # never set by a utility's state (R10)
    return tuple(sorted({path[0] for path in lists} - made))


def check_list_lengths(*lengths: object) -> None:
    """Raise MateriaError (``usage``) unless these are lengths of lists."""
    for length in lengths:
        if not isinstance(length, int) or length < 0:
            raise usage_error(
                f"{length!r:.60} is not a length of the lists.",
                "give a whole number from 0; explore takes several, such as range(0, 4)",
            )


MAX_STATES: Final = 100_000
"""How many states are looked at before a search is cut off."""
COMPLETE: Final = "complete"
FAILED: Final = "failed"
HELD: Final = "held"
"""The end of a way on which an agent holds the cast for a person; what the person would say is left open."""

EdgeRef: TypeAlias = tuple[str, int] | str
"""An edge as its socket and its number from 1, or the ``edge_id`` of an exit route."""


class StateNode(NamedTuple):
    """A state: waiting at a socket, or an end.

    Attributes:
        socket: where it waits, is held, or failed.
        end: None while it waits, ``complete``, ``held``, or the kind of a failure.
        place: where in its list it is: only, first, middle or last, or "" outside a list.
    """

    socket: str | None
    end: str | None = None
    place: str = ""


class Move(NamedTuple):
    """One visit: what was answered, where it led, how many turns of an agent it took, and what it took on the way."""

    to: int
    answer: ScriptedResult
    turns: int
    taken: tuple[EdgeRef, ...]


@dataclass(slots=True)
class StateSpace:
    """What a search found; node 0 is where a cast begins.

    Attributes:
        stopped: why the search stopped early, in words; empty when everything was looked at.
        first: what is taken before the first visit, when an empty loop is skipped.
    """

    nodes: list[StateNode] = field(default_factory=list)
    ways: list[list[Move]] = field(default_factory=list)
    first: tuple[EdgeRef, ...] = ()
    stopped: str = ""

    @property
    def complete(self) -> bool:
        """Whether everything was looked at."""
        return not self.stopped


class VisitEnd(NamedTuple):
    """What one visit came to: the state before the next visit or at the end, and what led there."""

    state: CastState
    turns: int
    taken: tuple[EdgeRef, ...]


def explore_states(
    graph: Graph, items: Sequence[int], most: int = MAX_STATES, *, progress: Progress = False
) -> StateSpace:
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
    bar = ProgressBar(progress, 1, "states")
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
        self._rules = Rules(without_prompts(graph))
        self._answers, self._key = PossibleAnswers(self._rules, items), _StateKey(self._rules, items)
        self._known: dict[object, int] = {}
        self.space, self.todo = StateSpace(), deque[CastState]()
        self._begun, self.space.first = enter_next(self._rules, entering.begin(self._rules, SAMPLE))
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

    def _go(self, number: int, state: CastState, answer: ScriptedResult) -> tuple[int, CastState]:
        """Give an answer in a state; returns the state that it leads to, with its number."""
        here = self._rules.sockets[state.at.socket if state.at is not None else ""]
        done = play_visit(self._rules, here, state, answer)
        turns = 0 if here.socket.is_utility else done.turns
        way = Move(self._place(done.state), answer, turns, done.taken)
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


def failure_of(result: Result) -> Failure:
    """Return the failure of a visit that is to show where it leads when this happens."""
    kind = result.kinds[0] if result.kinds else "failed"
    return Failure(kind, "It failed, to show where that leads.")


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


def scripted_turns(
    rules: Rules, here: SocketRules, state: CastState, answer: ScriptedResult
) -> Iterator[ScriptedTurn]:
    """Answer the visit that waits, drafts and work before it included, or let it fail, and give each turn."""
    asked: Prompt | None = None
    while state.status == "waiting" and (at := state.at) is not None:
        if at.mode == "draft" and at.drafts:
            step = outputs.finalize(rules, state, entering.prompt_for(rules, state))
        else:
            text = SAMPLE if at.mode in here.any_text else answer.text
            if answer.result.silent:
                step, text = recovery.fail(rules, state, failure_of(answer.result)), ""
            else:
                step = outputs.output(rules, state, text)
            again = step.state.at is not None and step.state.at.repairs > at.repairs
            yield ScriptedTurn(asked, text, step, again)
        state, asked = step.state, step.prompt


def play_visit(rules: Rules, here: SocketRules, state: CastState, answer: ScriptedResult) -> VisitEnd:
    """Answer the visit that waits, drafts and work before it included, or let it fail, and enter what comes next.

    Raises:
        MateriaError: the socket refuses the answer (``no_answer``).
    """
    turns = 0
    decision: Decision | None = None
    for turns, turn in enumerate(scripted_turns(rules, here, state, answer), 1):  # noqa: B007 - how many is told below
        reading = turn.step.reading
        if reading is not None and reading.error is not None and answer.result is not Result.REFUSED:
            raise _no_answer(here, summarize_issues(reading.issues, 3))
        state, decision = turn.step.state, turn.step.decision
    taken = _taken(decision)
    if state.status == "ready":
        state, passed = enter_next(rules, state)
        taken += passed
    return VisitEnd(state, turns, taken)


def enter_next(rules: Rules, state: CastState) -> tuple[CastState, tuple[EdgeRef, ...]]:
    """Enter what comes next; with it the exits of the loops that are skipped."""
    step = entering.enter(rules, state)
    passed = step.decision.passed if step.decision is not None else ()
    return step.state, tuple(one.route for one in passed if one.route is not None)


def end_kind(state: CastState) -> str | None:
    """How a cast ended: ``complete``, ``held``, or the kind of its failure; None while it waits."""
    if state.status == "waiting":
        return None
    return state.failure.kind if state.failure is not None else state.status


def _node(state: CastState) -> StateNode:
    if state.status == "waiting" and state.at is not None:
        return StateNode(state.at.socket, None, _place(state))
    held = state.at.socket if state.status == HELD and state.at is not None else None
    return StateNode(state.failure.socket if state.failure is not None else held, end_kind(state))


def _place(state: CastState) -> str:
    if not state.shown or state.at is None or state.at.item is None:
        return ""
    walk, item, _ = state.shown[-1]
    last = item.position + 1 >= len(list_at(walk.iterator.items, state, item))
    return ("only" if last else "first") if item.position == 0 else "last" if last else "middle"


def _no_answer(here: SocketRules, why: str = "") -> MateriaError:
    return MateriaError(
        f"No short answer was found that {here.socket.id} takes{f': {why}' if why else '.'}",
        where=here.socket.id,
        hint="an assignment there reads a JSONPath with a filter or the like; a dotted path can be explored",
        kind="no_answer",
    )


def _taken(decision: Decision | None) -> tuple[EdgeRef, ...]:
    if decision is None or decision.by not in ("edge", "exit") or decision.chosen is None:
        return ()
    look = decision.chosen
    if look.route is not None:
        return (look.route,)
    return ((decision.socket or "", (look.place or 0) + 1),)


class _StateKey:
    """Tells the states of one loadout apart by everything that can still decide where a cast goes."""

    def __init__(self, rules: Rules, items: Sequence[int]) -> None:
        sources = _sources(rules.graph)
        self._fields = _fields_read(sources)
        self._live = _LiveCounts(rules)
        self._longest = (max(items, default=0) + 1) ** 2
        self._last_json = any(source.startswith(("lastJson", "$")) for source in sources)

    def of(self, state: CastState) -> object:
        """Return the key of a state."""
        visit = state.at
        if state.status != "waiting" or visit is None:
            return _node(state)
        data = state.data
        return (
            visit.socket,
            visit.item.id if visit.item is not None else None,
            tuple((name, repr(data[name])) for name in self._fields or sorted(data) if name in data),
            tuple(sorted((name, min(at, self._longest)) for name, at in state.cursors.items())),
            self._live.edge_uses(state, visit.socket),
            self._live.item_records(state, visit.socket),
            tuple((one.walk.iterator.cursor, one.item.id) for one in state.shown),
            tuple(sorted(state.within.items())),
            state.detours,
            repr(state.last_json) if self._last_json else None,
        )


class _Link(NamedTuple):
    """One way from a socket to another.

    Attributes:
        counted: the edge or exit whose uses are counted outside items; None where nothing is counted.
        bounded: True for an edge with ``maxTraversals``: a cycle with such an edge is not counted for an item (R18).
        moves: the cursor that advances on the way; None where none does.
    """

    source: str
    target: str
    counted: tuple[str, int] | None = None
    bounded: bool = False
    moves: str | None = None


def _links(rules: Rules) -> Iterator[_Link]:
    """Yield every way from a socket that an answer or a failure can take, detours aside."""
    for id_, here in rules.sockets.items():
        advance = here.socket.advance
        for result in results_of(here):
            moves = advance.cursor if advance is not None and described(advance.when).holds(result) else None
            choices = [choose_edge(here, result, exhausted=False)]
            choices += [choose_edge(here, result, exhausted=True)] if moves is not None else []
            for choice in choices:
                if choice is None:
                    continue
                edge, route = choice.edge, choice.route
                if edge is not None:
                    yield _Link(id_, edge.to, (id_, edge.place), edge.max_traversals is not None, moves)
                elif route is not None:
                    yield _Link(id_, route.target, (route.edge_id, 0), False, moves)
        if (empty := rules.empty_exit(here.socket)) is not None:
            yield _Link(id_, empty.target)
    for region in rules.graph.regions.values():  # its loop is skipped when there are no items (P6)
        yield _Link(region.first, region.exit)


def _following(rules: Rules, links: Iterable[_Link]) -> dict[str, set[str]]:
    following: dict[str, set[str]] = {id_: set() for id_ in rules.sockets}
    for link in links:
        if link.target in following:
            following[link.source].add(link.target)
    return following


class _WithinItem(NamedTuple):
    """What can still happen to an item of one cursor, by the socket that waits.

    Attributes:
        ahead: the sockets of this cursor that can be reached while the item has not advanced, the socket itself included.
        cycles: the sockets that lie on a cycle without a bounded edge, each with the number of its group.
        reads_cycles: the sockets from which something can depend on how many cycles the item has closed.
    """

    ahead: Mapping[str, frozenset[str]]
    cycles: Mapping[str, int]
    reads_cycles: frozenset[str]


def _within_item(rules: Rules, links: Sequence[_Link], cursor: str) -> _WithinItem:
    staying = [link for link in links if link.moves != cursor]
    following = _following(rules, staying)
    members = {
        id_ for id_, here in rules.sockets.items() if here.walk and here.walk.iterator.cursor == cursor
    }
    ahead = {id_: frozenset(reachable_from([id_], following) & members) for id_ in following}
    cycles = rounds_in(_following(rules, [link for link in staying if not link.bounded]))
    # a protocol of an agent may read the cycles of its item to tell whether to call a person
    reading = {id_ for id_ in members if rules.sockets[id_].socket.handoff != DEFAULT_HANDOFF} | cycles.keys()
    reads_cycles = frozenset(id_ for id_, sockets in ahead.items() if not sockets.isdisjoint(reading))
    return _WithinItem(ahead, cycles, reads_cycles)


class _LiveCounts:
    """Reads from a state the counts that can still matter; others, as of edges that cannot be taken again, are left out.

    Without this, each critic that can send work back would multiply the states of everything after it.
    """

    def __init__(self, rules: Rules) -> None:
        links = list(_links(rules))
        following = _following(rules, links)
        rounds = rounds_in(following)
        repeated = [
            link for link in links if link.source in rounds and rounds[link.source] == rounds.get(link.target)
        ]
        ahead = {id_: reachable_from([id_], following) for id_ in rules.sockets}
        self._outside = {
            id_: frozenset(link.counted for link in repeated if link.source in ahead[id_])
            for id_ in rules.sockets
        }
        cursors = {here.walk.iterator.cursor for here in rules.sockets.values() if here.walk is not None}
        self._inside = {cursor: _within_item(rules, links, cursor) for cursor in cursors}

    def edge_uses(self, state: CastState, socket: str) -> object:
        """Return the uses outside items of edges and exits that lie on a cycle and can be reached from the socket."""
        return frozenset((edge, n) for edge, n in state.counts.items() if edge in self._outside[socket])

    def item_records(self, state: CastState, socket: str) -> object:
        """Return the record of each item that is not done, reduced to the sockets that can be reached before it is."""
        records: list[object] = []
        for item, record in state.items.items():
            inside = self._inside[item[0]]
            ahead, group = inside.ahead[socket], inside.cycles.get(socket)
            used = frozenset((edge, n) for edge, n in record.used.items() if edge[0] in ahead)
            # Coming back to a socket of another group takes a bounded edge, so the cycle will not be counted.
            path = tuple(
                (seen, inside.cycles[seen] != group or step <= state.bounded_at)
                for seen, step in record.path
                if seen in ahead and seen in inside.cycles
            )
            cycles = record.cycles if socket in inside.reads_cycles else 0
            if used or path or cycles:
                records.append((item, used, path, cycles))
        return frozenset(records)


def _sources(graph: Graph) -> list[str]:
    """What lists are read from, and what assignments read them from in turn."""
    sockets = graph.sockets.values()
    lists = [one.iterator.items for one in sockets if one.iterator is not None]
    lists += [one.advance.items for one in sockets if one.advance is not None]
    assigned = [(target.split(".")[0], source) for one in sockets for target, source in one.assign]
    read_by: dict[str, list[str]] = {}
    for root, source in assigned:
        if not source.startswith("$"):
            read_by.setdefault(root, []).append(source)
    for text in lists:  # grows while it is gone through
        path = state_path(text)
        lists += [one for one in read_by.pop(path[0], ()) if one not in lists] if path else []
    return lists


def _fields_read(sources: Sequence[str]) -> tuple[str, ...]:
    """The fields of the state that a list may come from; empty for all of them."""
    if "state" in sources:
        return ()
    return tuple(sorted({path[0] for text in sources if (path := state_path(text))})) or ("",)
