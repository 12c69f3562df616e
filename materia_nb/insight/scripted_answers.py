"""Sample answers for every socket of a loadout, and visits that use these answers.

A sample answer is the shortest answer that the socket accepts in its handoff protocol. Only its ``satisfied`` field and
the lengths of its lists matter. Outputs that pause the cast until a person responds are included. Detours, and turns
in which an agent only continues its work, are not included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple, TypeAlias

from materia_nb.engine import entering, outputs, recovery
from materia_nb.engine.entering import agent_id, assignment_for
from materia_nb.engine.events import Transition
from materia_nb.engine.items import iteration_of, state_path
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import Decision, handled_failures
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import CastState, Failure
from materia_nb.errors import MateriaError, usage_error
from materia_nb.handoff import protocol
from materia_nb.handoff.base import SAMPLE, HandoffProtocol, Outcome, Reaction, TurnFacts
from materia_nb.handoff.checks import SCHEDULE, summarize_issues
from materia_nb.jsonvalue import JSON, MISSING, compact, get_path, set_path, split_path
from materia_nb.loadout.graph import CAST_CONTEXTS, Graph
from materia_nb.loadout.vocabulary import ACCEPTED, DEFAULT_HANDOFF, VERDICTS, Result, condition_spec

_MAX_LIST_DEPTH: Final = 4
_BRACKETS: Final = re.compile(r"\[\s*(?:'([^']*)'|\"([^\"]*)\"|[^\]]*)\s*\]")
_OUTCOMES: Final[Mapping[Result, Outcome]] = {Result.YES: "done", Result.NO: "again", Result.NOTHING: "open"}

_StatePath: TypeAlias = tuple[str, ...]
EdgeRef: TypeAlias = tuple[str, int] | str
"""An edge as a pair of a socket id and an edge number (counting from 1), or an exit route as its ``edge_id``."""


def check_list_lengths(*lengths: object) -> None:
    """Raise MateriaError (kind ``usage``) unless every value is a valid list length."""
    for length in lengths:
        if not isinstance(length, int) or length < 0:
            hint = "set a whole number that is not negative; explore accepts several, such as range(0, 4)"
            raise usage_error(f"{length!r:.60} is not a valid list length.", hint)


# -- the loadout without its prompts ---------------------------------------------------------


def without_prompts(graph: Graph) -> Graph:
    """Return the loadout with empty prompts, because prompts do not affect the route of a cast.

    A socket whose handoff protocol cannot generate sample answers gets the sparse protocol.
    """
    sockets = {
        id_: replace(
            socket,
            materia=replace(socket.materia, prompt="", raw={}, folder=None, params={}, script=None),
            handoff=socket.handoff if _sampling_protocol(socket.handoff) else DEFAULT_HANDOFF,
            cast_context=CAST_CONTEXTS["none"],
            layout=None,
        )
        for id_, socket in graph.sockets.items()
    }
    return replace(graph, sockets=sockets, document={})


def _sampling_protocol(name: str) -> HandoffProtocol | None:
    """Return the protocol with this name, or None if it cannot generate sample answers."""
    try:
        handoff = protocol(name)
    except MateriaError:
        return None
    return handoff if "sample_outputs" in handoff.overridden else None


def sockets_without_samples(graph: Graph) -> tuple[str, ...]:
    """Return the sockets whose protocol cannot generate sample answers."""
    return tuple(id_ for id_, handoff in _handoff_protocols(graph) if handoff is None)


def sockets_with_detours(graph: Graph) -> tuple[str, ...]:
    """Return the sockets whose outputs may request a detour to any other socket. Detours are not explored."""
    return tuple(id_ for id_, handoff in _handoff_protocols(graph) if handoff is not None and handoff.can_detour)


def _handoff_protocols(graph: Graph) -> Iterator[tuple[str, HandoffProtocol | None]]:
    """Yield the id and protocol of each socket whose agent is asked for a handoff in a protocol other than the sparse one.

    The protocol is None if it cannot generate sample answers.
    """
    for id_, socket in graph.sockets.items():
        if not socket.is_utility and socket.parse == "json" and socket.handoff != DEFAULT_HANDOFF:
            yield id_, _sampling_protocol(socket.handoff)


# -- results that are possible at a socket ---------------------------------------------------


def decisive_verdicts(socket_rules: SocketRules) -> tuple[Result, ...]:
    """Return the verdicts that lead to different routes at a socket, or only ``NOTHING`` if no verdict matters."""
    if socket_rules.requirements.parse == "text":
        return (Result.NOTHING,)
    if socket_rules.requirements.why_satisfied is not None:
        return VERDICTS
    socket = socket_rules.socket
    conditions = [edge.when for edge in socket.edges] + [route.condition for route in socket_rules.exits]
    conditions += [] if socket.advance is None else [socket.advance.when]
    rows = map(condition_spec, conditions)
    is_decided = any(not (condition.matches_any_output or condition.without_output) for condition in rows)
    return ACCEPTED if is_decided else (Result.NOTHING,)


def accepted_results(socket_rules: SocketRules) -> tuple[Result, ...]:
    """Return the possible results of an accepted output. An output in a handoff protocol may omit ``satisfied``."""
    verdicts = decisive_verdicts(socket_rules)
    has_protocol = not socket_rules.socket.is_utility and socket_rules.sample_protocol is not None
    return ACCEPTED if has_protocol and verdicts != (Result.NOTHING,) else verdicts


def continuing_results(socket_rules: SocketRules) -> tuple[Result, ...]:
    """Return the results after which the cast continues: results of accepted outputs, and failures with an edge."""
    return (*accepted_results(socket_rules), *dict.fromkeys(handled_failures(socket_rules).values()))


def is_not_asked(socket_rules: SocketRules) -> bool:
    """Return True if ``satisfied`` affects the route, but the agent omits it because it is not asked for (R7, R8)."""
    is_asked = socket_rules.socket.is_utility or socket_rules.requirements.why_satisfied is not None
    decides = decisive_verdicts(socket_rules) != (Result.NOTHING,)
    return not is_asked and socket_rules.socket.handoff == DEFAULT_HANDOFF and decides


class ScriptedResult(NamedTuple):
    """A possible result of a visit, with a sample answer that produces this result.

    Attributes:
        text: the sample answer; empty for a failure without an output.
        result: the result of the visit.
        list_length: the length of the lists in the answer, or None if it contains no lists.
        asks: ``pause`` or ``escalate`` for an answer that pauses the cast until a person responds, otherwise empty.
            Odds and simulations never use such an answer.
    """

    text: str
    result: Result
    list_length: int | None
    asks: str = ""


def stopping_answers(rules: Rules, socket_rules: SocketRules) -> Iterator[tuple[Reaction, str]]:
    """Yield each action that pauses the cast until a person responds, with an answer that requests the action."""
    protocol, actions = socket_rules.sample_protocol, set[Reaction]()
    if protocol is None:
        return
    facts = TurnFacts(assignment=assignment_for(rules, socket_rules, entering.begin(rules, SAMPLE)))
    for value in protocol.sample_stops():
        text = protocol.write(value)
        reading = socket_rules.protocol.read(text, socket_rules.requirements, facts)
        if reading.accepted and reading.action in ("pause", "escalate") and reading.action not in actions:
            actions.add(reading.action)
            yield reading.action, text


class PossibleAnswers:
    """Generates the possible results of each socket, with sample answers whose lists have the required lengths.

    Attributes:
        lists: the state paths of the lists that loops read.
    """

    def __init__(self, rules: Rules, lengths: Sequence[int]) -> None:
        self._rules, self._lengths = rules, tuple(lengths)
        self.lists, self._aliases = _lists_read(rules.graph)
        self._utility_roots = _utility_roots(rules.graph, self.lists, self._aliases)
        self._results: dict[str, tuple[ScriptedResult, ...]] = {}

    def of(self, socket_rules: SocketRules) -> tuple[ScriptedResult, ...]:
        """Return the results of a socket that can lead to different targets, each with a sample answer.

        Raises:
            MateriaError: kind ``no_answer``: the socket accepts none of the sample answers.
        """
        if socket_rules.socket.id not in self._results:
            failures = dict.fromkeys(handled_failures(socket_rules).values())
            self._results[socket_rules.socket.id] = (
                *self._outputs(socket_rules),
                *(ScriptedResult("" if result.is_silent else SAMPLE, result, None) for result in failures),
            )
        return self._results[socket_rules.socket.id]

    def _outputs(self, socket_rules: SocketRules) -> Iterator[ScriptedResult]:
        if socket_rules.requirements.parse == "text":
            yield ScriptedResult(SAMPLE, Result.NOTHING, None)
            return
        lengths: Sequence[int | None] = self._lengths if self._has_lists(socket_rules) else (None,)
        results = product(accepted_results(socket_rules), lengths)
        if socket_rules.socket.is_utility or socket_rules.sample_protocol is None:
            for result, length in results:
                yield ScriptedResult(compact(self._value(socket_rules, result, length or 0)), result, length)
            return
        is_open = decisive_verdicts(socket_rules) == (Result.NOTHING,)
        accepted = []
        for result, length in results:
            text = self._shortest(socket_rules, socket_rules.sample_protocol, None if is_open else result, length or 0)
            if text is not None:
                accepted.append(ScriptedResult(text, result, length))
        if not accepted:
            raise _no_answer(socket_rules)
        yield from accepted
        for action, text in stopping_answers(self._rules, socket_rules):
            yield ScriptedResult(text, Result.STOPPED, None, action)

    def _shortest(
        self, socket_rules: SocketRules, protocol: HandoffProtocol, result: Result | None, length: int
    ) -> str | None:
        """Return the shortest accepted sample with ``result`` (None for any result), or None if all are refused."""
        facts = TurnFacts(
            agent_id=agent_id(SAMPLE, socket_rules.socket.id),
            assignment=assignment_for(self._rules, socket_rules, entering.begin(self._rules, SAMPLE)),
            sockets=frozenset(self._rules.sockets),
        )
        for value in protocol.sample_outputs("done" if result is None else _OUTCOMES[result], length):
            text = protocol.write(self._with_sources(socket_rules, length, value))
            reading = socket_rules.protocol.read(text, socket_rules.requirements, facts)
            if reading.accepted and reading.action == "route" and result in (None, reading.result):
                return text
        return None

    def _with_sources(self, socket_rules: SocketRules, length: int, value: dict[str, JSON]) -> dict[str, JSON]:
        """Return the output with the fields that assignments read and the lists that loops read."""
        for target, segments in _assigned_fields(socket_rules):
            if self._contains_list(target) or get_path(value, segments) is MISSING:
                value = dict(set_path(value, segments, self._state_value(target, length)))
        return value

    def _has_lists(self, socket_rules: SocketRules) -> bool:
        if socket_rules.requirements.work_items or (socket_rules.socket.is_utility and self._utility_roots):
            return True
        return any(self._contains_list(tuple(split_path(target))) for target, _ in socket_rules.requirements.sources)

    def _contains_list(self, path: _StatePath) -> bool:
        return any(list_path[: len(path)] == path for list_path in self.lists)

    def _value(self, socket_rules: SocketRules, result: Result, length: int) -> dict[str, JSON]:
        """Return a sample output of a utility, or of an agent with the sparse protocol."""
        fields: Mapping[str, JSON] = {}
        for target, segments in _assigned_fields(socket_rules):
            fields = set_path(fields, segments, self._state_value(target, length))
        value = dict(fields)
        if socket_rules.requirements.work_items:
            value["workItems"] = [_sample_item(number) for number in range(length)]
        if socket_rules.requirements.streams:
            streams: list[JSON] = [{"name": SAMPLE, "workItemIndexes": list(range(length))}]
            value[SCHEDULE] = {"version": 1, "streams": streams if length else []}
        if "context" in value:
            value["context"] = SAMPLE
        value.pop("satisfied", None)
        if result in VERDICTS:
            value["satisfied"] = result.satisfied
        if socket_rules.socket.is_utility and self._utility_roots:
            value["state"] = {root: self._state_value((root,), length) for root in self._utility_roots}
        return value

    def _state_value(self, path: _StatePath, length: int, depth: int = 0) -> JSON:
        """Return a sample value for a state path: a list if a loop reads the path, otherwise an object or a string."""
        if path in self.lists and depth < _MAX_LIST_DEPTH:
            return [self._element(path, length, depth, number) for number in range(length)]
        below = (list_path for list_path in self.lists if list_path[: len(path)] == path != list_path)
        names = sorted({list_path[len(path)] for list_path in below})
        if not names or depth >= _MAX_LIST_DEPTH:
            return SAMPLE
        return {name: self._state_value((*path, name), length, depth + 1) for name in names}

    def _element(self, path: _StatePath, length: int, depth: int, number: int) -> JSON:
        element = _sample_item(number)
        for alias in self._aliases.get(path, ()):
            inner = self._state_value(alias, length, depth + 1) if self._contains_list(alias) else None
            if isinstance(inner, dict):
                element.update(inner)
        return element


def _sample_item(number: int) -> dict[str, JSON]:
    return {"title": f"Item {number + 1}", "context": SAMPLE}


def _assigned_fields(socket_rules: SocketRules) -> Iterator[tuple[_StatePath, list[str]]]:
    """Yield the target and source paths of each assignment from an output field, with the shortest sources first."""
    for target, source in sorted(socket_rules.requirements.sources, key=lambda assignment: len(assignment[1])):
        if segments := _source_segments(source):
            yield tuple(split_path(target)), segments


def _source_segments(source: str) -> list[str]:
    """Split the source of an assignment, such as ``$.plan["name"]``, into its segments; ``$`` has no segments."""

    def as_dotted(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        return f".{name}" if name else ""

    return [part for part in _BRACKETS.sub(as_dotted, source).split(".")[1:] if part]


def _lists_read(graph: Graph) -> tuple[frozenset[_StatePath], dict[_StatePath, tuple[_StatePath, ...]]]:
    """Return the state paths that loops read as lists, and the paths at which each list's current item appears."""
    paths: set[_StatePath] = set()
    aliases: dict[_StatePath, tuple[_StatePath, ...]] = {}
    for socket in graph.sockets.values():
        if socket.iterator is not None and (path := state_path(socket.iterator.items)):
            paths.add(path)
            aliases[path] = tuple(dict.fromkeys((*aliases.get(path, ()), *iteration_of(socket.iterator).paths)))
        if socket.advance is not None and (path := state_path(socket.advance.items)):
            paths.add(path)
    return frozenset(paths), aliases


def _utility_roots(
    graph: Graph, lists: frozenset[_StatePath], aliases: Mapping[_StatePath, Sequence[_StatePath]]
) -> tuple[str, ...]:
    """Return the state fields that contain lists and are set only by the field ``state`` in the output of a utility."""
    targets = (split_path(target) for socket in graph.sockets.values() for target, _ in socket.assign)
    set_elsewhere = {path[0] for path in targets if path}
    set_elsewhere |= {alias[0] for paths in aliases.values() for alias in paths}
    set_elsewhere.add("workItems")  # never set by a utility's state (R10)
    return tuple(sorted({path[0] for path in lists} - set_elsewhere))


def _no_answer(socket_rules: SocketRules, reason: str = ".", hint: str | None = None) -> MateriaError:
    return MateriaError(
        f"{socket_rules.socket.id} refused every sample answer{reason}",
        where=socket_rules.socket.id,
        hint=hint
        or "assign from a dotted path such as $.plan.name instead of a JSONPath with a filter, then explore again",
        kind="no_answer",
    )


# -- playing visits --------------------------------------------------------------------------


def sample_failure(result: Result) -> Failure:
    """Return a simulated failure that is classified as ``result``."""
    kind = result.kinds[0] if result.kinds else "failed"
    return Failure(kind, "This is a simulated failure.")


class ScriptedTurn(NamedTuple):
    """One turn of a visit that is answered with a sample answer.

    Attributes:
        prompt: the prompt of a later turn, or None for the first turn, whose prompt :func:`.entering.prompt_for`
            returns.
        text: the answer; empty if the visit fails without an output.
        step: the transition that results from the answer.
    """

    prompt: Prompt | None
    text: str
    step: Transition

    @property
    def refusal(self) -> str:
        """The reasons why the answer was refused, as one string; empty if it was accepted."""
        reading = self.step.reading
        return "" if reading is None or reading.error is None else summarize_issues(reading.issues, 3)


def _scripted_turns(
    rules: Rules, socket_rules: SocketRules, state: CastState, answer: ScriptedResult
) -> Iterator[ScriptedTurn]:
    """Answer the waiting visit or let it fail. Yield each turn, including drafts and the work before the handoff."""
    prompt: Prompt | None = None
    while state.status == "waiting" and (visit := state.at) is not None:
        if visit.mode == "draft" and visit.drafts:
            step = outputs.finalize(rules, state, entering.prompt_for(rules, state))
        else:
            text = SAMPLE if visit.mode in socket_rules.free_text_modes else answer.text
            if answer.result.is_silent:
                step, text = recovery.fail(rules, state, sample_failure(answer.result)), ""
            else:
                step = outputs.output(rules, state, text)
            yield ScriptedTurn(prompt, text, step)
        state, prompt = step.state, step.prompt


class PlayedVisit(NamedTuple):
    """A visit that was simulated with a sample answer.

    Attributes:
        socket_rules: the rules of the visited socket.
        start: the state in which the visit waits for its first answer.
        answer: the result of the visit, with the sample answer.
        turns: the turns of the visit.
        next_state: the state in which the next visit waits, or the final state of the cast.
        edges: the edges and exits that lead to the next visit.
    """

    socket_rules: SocketRules
    start: CastState
    answer: ScriptedResult
    turns: Sequence[ScriptedTurn]
    next_state: CastState
    edges: tuple[EdgeRef, ...]

    @property
    def agent_turns(self) -> int:
        """The number of agent turns, which is 0 for a utility."""
        return 0 if self.socket_rules.socket.is_utility else len(self.turns)

    def require_accepted(self, hint: str | None = None) -> None:
        """Raise MateriaError (kind ``no_answer``) if a turn was refused although its answer should be accepted."""
        refusal = next((turn.refusal for turn in self.turns if turn.refusal), "")
        if refusal and self.answer.result is not Result.REFUSED:
            raise _no_answer(self.socket_rules, f": {refusal}", hint)


def play_visit(
    rules: Rules, start: CastState, answer: ScriptedResult, edit: Callable[[CastState], CastState] | None = None
) -> PlayedVisit:
    """Answer the waiting visit or let it fail, and enter the next socket.

    Args:
        rules: the rules of the cast.
        start: the state in which the visit waits.
        answer: the result of the visit, with the sample answer.
        edit: a function that returns a modified state, with which the next socket is entered.
    """
    assert start.at is not None  # noqa: S101 - it waits
    socket_rules = rules.sockets[start.at.socket]
    turns = list(_scripted_turns(rules, socket_rules, start, answer))
    state, edges = turns[-1].step.state, _edge_taken(turns[-1].step.decision)
    if edit is not None:
        state = edit(state)
    if state.status == "ready":
        state, exits = enter_next(rules, state)
        edges += exits
    return PlayedVisit(socket_rules, start, answer, turns, state, edges)


def play_cast(
    rules: Rules,
    state: CastState,
    choose: Callable[[CastState, SocketRules], ScriptedResult],
    max_visits: int,
    edit: Callable[[CastState], CastState] | None = None,
) -> Iterator[PlayedVisit]:
    """Simulate a cast and yield at most ``max_visits`` visits. ``choose`` returns the answer of each visit."""
    for _ in range(max_visits):
        if state.status != "waiting" or state.at is None:
            return
        visit = play_visit(rules, state, choose(state, rules.sockets[state.at.socket]), edit)
        yield visit
        state = visit.next_state


def enter_next(rules: Rules, state: CastState) -> tuple[CastState, tuple[EdgeRef, ...]]:
    """Enter the next socket, and return the new state and the exits that were taken because their loops are empty."""
    step = entering.enter(rules, state)
    skipped = step.decision.skips if step.decision is not None else ()
    return step.state, tuple(loop.route for loop in skipped if loop.route is not None)


def end_kind(state: CastState) -> str | None:
    """Return the end of a cast (``complete``, ``held`` or the kind of its failure), or None while the cast waits."""
    if state.status == "waiting":
        return None
    return state.failure.kind if state.failure is not None else state.status


def _edge_taken(decision: Decision | None) -> tuple[EdgeRef, ...]:
    if decision is None or decision.by not in ("edge", "exit") or decision.chosen is None:
        return ()
    check = decision.chosen
    if check.route is not None:
        return (check.route,)
    return ((decision.socket or "", (check.edge_index or 0) + 1),)
