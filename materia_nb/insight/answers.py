"""The shortest answers that fit a socket, in any handoff protocol: what is said of a loadout before anybody is asked.

What such an output says beside a route is tried too where it ends there: that it needs a person, or cannot go on.
Detours, and turns in which an agent only goes on, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from materia_nb.engine import entering
from materia_nb.engine.entering import agent_id, given_to
from materia_nb.engine.items import state_path, walk_of
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.errors import MateriaError
from materia_nb.handoff.capabilities import MakesAnswers
from materia_nb.handoff.protocol import SAMPLE, SCHEDULE, Action, Outcome, Reading, TurnFacts, protocol
from materia_nb.jsonvalue import JSON, MISSING, compact, get_path, set_path, split_path
from materia_nb.loadout.graph import CAST_CONTEXTS, Graph, Socket
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, TAKEN, VERDICTS, Result, described


def holds(rules: Rules, here: SocketRules) -> Iterator[tuple[Action, str]]:
    """Give answers with which an agent stops the cast until a person has spoken: what each asks for, and its text."""
    maker, found = here.maker, set[Action]()
    if maker is None:
        return
    facts = TurnFacts(given=given_to(rules, here, entering.begin(rules, SAMPLE)))
    for value in maker.stopping():
        text = maker.written(value)
        reading = here.protocol.read(text, here.wanted, facts)
        if reading.accepted and reading.action in ("pause", "escalate") and reading.action not in found:
            found.add(reading.action)
            yield reading.action, text


def _maker(name: str) -> MakesAnswers | None:
    """Return the protocol of that name if answers can be made up in its form."""
    try:
        spoken = protocol(name)
    except MateriaError:
        return None
    return spoken if isinstance(spoken, MakesAnswers) else None


# -- answers ---------------------------------------------------------------------------------
# They are scripted, never true: what they say is ``satisfied`` or not, how long a list is, and nothing else.

_DEEPEST: Final = 4
_BRACKETS: Final = re.compile(r"\[\s*(?:'([^']*)'|\"([^\"]*)\"|[^\]]*)\s*\]")

StatePath: TypeAlias = tuple[str, ...]


class Scripted(NamedTuple):
    """One thing that can happen to a visit.

    Attributes:
        text: the answer; empty where there is none, because the visit fails.
        result: what happens to the visit.
        items: how long its lists are, None when it has none.
        asks: what it asks for instead of a route: ``pause`` or ``escalate``, which hold the cast for a person; such an
            answer has no chance in odds and rehearsals.
    """

    text: str
    result: Result
    items: int | None
    asks: str = ""


def quiet(graph: Graph) -> Graph:
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


def strangers(graph: Graph) -> tuple[str, ...]:
    """The sockets whose agents speak a protocol in whose form no answer can be made."""
    return tuple(
        id_
        for id_, one in graph.sockets.items()
        if _asked(one) and one.handoff != DEFAULT_HANDOFF and _maker(one.handoff) is None
    )


def detouring(graph: Graph) -> tuple[str, ...]:
    """The sockets whose outputs may name any socket to be run first, which is left out."""
    return tuple(
        id_
        for id_, one in graph.sockets.items()
        if _asked(one) and (maker := _maker(one.handoff)) is not None and maker.detours
    )


def _asked(socket: Socket) -> bool:
    """Whether an agent is asked there for a handoff."""
    return not socket.is_utility and socket.parse == "json"


class Answers:
    """What each socket of a loadout can say, with lists of each of the given lengths."""

    def __init__(self, rules: Rules, items: Sequence[int]) -> None:
        self._rules, self._items = rules, tuple(items)
        self._lists, self._aliases = _lists(rules.graph)
        self._orphans = _orphans(rules.graph, self._lists, self._aliases)
        self._known: dict[str, tuple[Scripted, ...]] = {}

    @property
    def lists(self) -> frozenset[StatePath]:
        """The paths of the state that are read as lists."""
        return self._lists

    def of(self, here: SocketRules) -> tuple[Scripted, ...]:
        """Every answer of a socket that can lead somewhere else than the others."""
        found = self._known.get(here.socket.id)
        if found is None:
            found = self._known[here.socket.id] = tuple(self._made(here))
        return found

    def _made(self, here: SocketRules) -> Iterator[Scripted]:
        yield from self._outputs(here)
        if Result.FAILED in here.goes:
            yield Scripted("", Result.FAILED, None)

    def _outputs(self, here: SocketRules) -> Iterator[Scripted]:
        if here.wanted.parse == "text":
            yield Scripted(SAMPLE, Result.NOTHING, None)
            return
        lengths: Sequence[int | None] = self._items if self._has_lists(here) else (None,)
        if not here.socket.is_utility and here.maker is not None:
            yield from self._in_form(here, here.maker, lengths)
            return
        for result in verdicts(here):
            for count in lengths:
                yield Scripted(compact(self._value(here, result, count or 0)), result, count)

    def _in_form(
        self, here: SocketRules, maker: MakesAnswers, lengths: Sequence[int | None]
    ) -> Iterator[Scripted]:
        """Every answer in the form of the socket's protocol; one that says nothing of ``satisfied`` may be among them."""
        found = []
        whatever = verdicts(here) == (Result.NOTHING,)
        for result in verdicts(here) if whatever else TAKEN:
            outcome: Outcome = "done" if whatever else _OUTCOMES[result]
            for count in lengths:
                fits = partial(_routes, result=result, whatever=whatever)
                text = self._shortest(here, maker, outcome, count or 0, fits)
                if text is not None:
                    found.append(Scripted(text, result, count))
        if not found:
            raise MateriaError(
                f"No short answer was found that {here.socket.id} takes.",
                where=here.socket.id,
                hint="an assignment there reads a JSONPath with a filter or the like; a dotted path can be explored",
                kind="no_answer",
            )
        yield from found
        yield from (Scripted(text, Result.STOPPED, None, action) for action, text in holds(self._rules, here))

    def _shortest(
        self,
        here: SocketRules,
        maker: MakesAnswers,
        outcome: Outcome,
        count: int,
        fits: Callable[[Reading], bool],
    ) -> str | None:
        """Return the shortest answer of this outcome and length whose reading fits; None when there is none."""
        facts = TurnFacts(
            agent_id=agent_id(SAMPLE, here.socket.id),
            given=given_to(self._rules, here, entering.begin(self._rules, SAMPLE)),
            sockets=frozenset(self._rules.sockets),
        )
        for value in maker.samples(outcome, count):
            text = maker.written(self._with_sources(here, count, value))
            if fits(here.protocol.read(text, here.wanted, facts)):
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

    def _below(self, path: StatePath) -> bool:
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
        if result in VERDICTS:
            given["satisfied"] = result.satisfied
        else:
            given.pop("satisfied", None)
        if here.socket.is_utility and self._orphans:
            given["state"] = {root: self._at((root,), count, 0) for root in self._orphans}
        return given

    def _at(self, path: StatePath, count: int, depth: int) -> JSON:
        """What stands at a path of the state: a list where a loop reads one, an object above it, else a word."""
        if path in self._lists and depth < _DEEPEST:
            return [self._element(path, count, depth, n) for n in range(count)]
        names = sorted({one[len(path)] for one in self._lists if one[: len(path)] == path and one != path})
        if not names or depth >= _DEEPEST:
            return SAMPLE
        return {name: self._at((*path, name), count, depth + 1) for name in names}

    def _element(self, path: StatePath, count: int, depth: int, number: int) -> JSON:
        element: dict[str, JSON] = {"title": f"Item {number + 1}", "context": SAMPLE}
        for alias in self._aliases.get(path, ()):
            inner = self._at(alias, count, depth + 1) if self._below(alias) else None
            if isinstance(inner, dict):
                element.update(inner)
        return element


def verdicts(here: SocketRules) -> tuple[Result, ...]:
    """What an output of a socket can say of ``satisfied`` that makes a difference."""
    if here.wanted.parse == "text":
        return (Result.NOTHING,)
    if here.wanted.why_satisfied is not None:
        return VERDICTS
    socket = here.socket
    conditions = [edge.when for edge in socket.edges] + [route.condition for route in here.exits]
    if socket.advance is not None:
        conditions.append(socket.advance.when)
    return (
        (Result.NOTHING,)
        if all(described(one).whatever or described(one).without_output for one in conditions)
        else TAKEN
    )


def unasked(here: SocketRules) -> bool:
    """Whether ``satisfied`` decides something behind an agent that is not told of it, and so says nothing (R7, R8)."""
    asked = here.socket.is_utility or here.wanted.why_satisfied is not None
    return not asked and here.socket.handoff == DEFAULT_HANDOFF and verdicts(here) != (Result.NOTHING,)


_OUTCOMES: Final[Mapping[Result, Outcome]] = {
    Result.YES: "done",
    Result.NO: "again",
    Result.NOTHING: "open",
}


def _routes(reading: Reading, *, result: Result, whatever: bool) -> bool:
    """Whether an output is taken and follows the graph, saying this of ``satisfied``."""
    return reading.accepted and reading.action == "route" and (whatever or reading.result is result)


def _segments(source: str) -> list[str]:
    """The path that a ``$`` source opens, with the brackets of JSONPath as names; empty for ``$`` itself."""

    def named(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        return f".{name}" if name else ""

    return [part for part in _BRACKETS.sub(named, source).split(".")[1:] if part]


def _lists(graph: Graph) -> tuple[frozenset[StatePath], dict[StatePath, tuple[StatePath, ...]]]:
    """The paths of the state that are read as lists, and the names under which their items are shown."""
    paths: set[StatePath] = set()
    aliases: dict[StatePath, tuple[StatePath, ...]] = {}
    for socket in graph.sockets.values():
        if socket.iterator is not None and (path := state_path(socket.iterator.items)):
            paths.add(path)
            aliases[path] = tuple(dict.fromkeys((*aliases.get(path, ()), *walk_of(socket.iterator).paths)))
        if socket.advance is not None and (path := state_path(socket.advance.items)):
            paths.add(path)
    return frozenset(paths), aliases


def _orphans(
    graph: Graph, lists: frozenset[StatePath], aliases: Mapping[StatePath, Sequence[StatePath]]
) -> tuple[str, ...]:
    """The lists, by the first part of their paths, that only the ``state`` of a utility can have set."""
    sockets = graph.sockets.values()
    made = {path[0] for one in sockets for target, _ in one.assign if (path := split_path(target))}
    made |= {alias[0] for names in aliases.values() for alias in names}
    made.add("workItems")  # never set by a utility's state (R10)
    return tuple(sorted({path[0] for path in lists} - made))
