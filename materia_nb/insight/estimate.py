"""Estimates of the turns, tokens and cost of a cast before it begins, and the usage of a cast afterwards.

An estimate runs random casts in memory and measures the lengths of their prompts. :class:`Prompts` lists the prompts of
one scripted cast with their lengths. No agent is called.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from random import Random
from statistics import fmean
from typing import Any, Final, NamedTuple, TypeAlias, Unpack

from materia_nb.engine import entering
from materia_nb.engine.conversation import HEADINGS, estimate_tokens
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.session import Session, StepRecord, every_step
from materia_nb.engine.state import NOTHING, CastState, Pin, Usage, known_sum
from materia_nb.errors import MateriaError, common_prefix_length, needs_one_of, usage_error
from materia_nb.handoff.base import SAMPLE
from materia_nb.insight.odds import (
    Chance,
    Chances,
    FailureChances,
    PerSocket,
    chances_by_socket,
    random_choice,
    value_for_socket,
)
from materia_nb.insight.scripted_answers import (
    PlayedVisit,
    PossibleAnswers,
    ScriptedResult,
    check_list_lengths,
    end_kind,
    enter_next,
    play_cast,
)
from materia_nb.jsonvalue import JSON, FrozenDict, compact, frozen, get_path, with_value_at
from materia_nb.loadout.graph import Graph, parse_cast_context
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, REWORK_CONDITIONS, Result

_MAX_VISITS: Final = 1_000  # Number of visits after which a scripted cast is stopped.
_CHARACTERS_A_TOKEN: Final = 4
_FILLER: Final = " and more of the same"  # Text that is repeated to extend a sample answer to the required length.


def _check_context(context: JSON) -> None:
    """Raise MateriaError (kind ``usage``) unless a value is valid for the field ``castContext`` of a loadout."""
    from materia_nb.loadout.fields import CONTEXT_SHAPE, Fault, check_context  # it loads pydantic

    hint = f"write {CONTEXT_SHAPE}"
    try:
        if check_context(context):
            return
    except Fault as fault:
        hint = fault.hint or hint
    raise usage_error(f"{context!r:.80} is not a castContext.", hint)


class VisitPrompt(NamedTuple):
    """One prompt of a visit.

    Attributes:
        step: the number of the step.
        socket: the id of the visited socket.
        item: the title of the work item, or None outside a loop.
        turn: the reason for the prompt: "" for new work, or ``Why it came back`` for work that was sent back.
        prompt: the prompt with its parts.
        characters: the length of the prompt, in characters.
        shared_prefix: the number of leading characters that are identical to the previous prompt of the socket. A provider may
            have cached this prefix.
    """

    step: int
    socket: str
    item: str | None
    turn: str
    prompt: Prompt
    characters: int
    shared_prefix: int

    @property
    def tokens(self) -> int:
        """The estimated number of tokens, at four characters per token."""
        return estimate_tokens(self.characters)


class Prompts:
    """The prompts of a scripted cast in which each answer is the shortest satisfied answer. No agent is called.

    Args:
        graph: the loadout.
        request: the request of the cast.
        items: the length of every list of work items, or the work items themselves.
        context: a ``castContext`` to use instead of the values in the loadout, or None.
        rework: True if each socket that can send work back does so at its first visit.
        max_visits: the number of visits after which the cast is stopped.

    Attributes:
        graph: the loadout.
        context: the ``castContext`` that replaced the values in the loadout, or None.
        prompts: the first prompt of each visit, in order.
        end: the end of the cast: ``complete``, ``held``, the kind of its failure, or ``unfinished``.
    """

    def __init__(
        self,
        graph: Graph,
        request: str,
        items: int | Sequence[JSON] = 3,
        context: JSON = None,
        *,
        rework: bool = False,
        max_visits: int = _MAX_VISITS,
    ) -> None:
        if context is not None:
            _check_context(context)
            parsed = parse_cast_context(context)
            sockets = {id_: replace(socket, cast_context=parsed) for id_, socket in graph.sockets.items()}
            graph = replace(graph, sockets=sockets)
        self.graph, self.context = graph, context
        self.prompts: list[VisitPrompt] = []
        self.end = "unfinished"
        self._rework, self._max_visits = rework, max_visits
        length, work_items = _parse_items(items)
        previous: dict[str, str] = {}
        for state, prompt in self._play_cast(Rules(graph), request, length, work_items):
            assert state.at is not None  # noqa: S101 - it waits
            socket_id, item, text = state.at.socket, state.at.item, prompt.text
            shared_prefix = common_prefix_length(previous.get(socket_id, ""), text)
            turn = HEADINGS["reasons"] if prompt.reasons else ""
            previous[socket_id] = text
            title = item.label if item else None
            self.prompts.append(VisitPrompt(state.steps, socket_id, title, turn, prompt, len(text), shared_prefix))

    @property
    def characters(self) -> int:
        """The total length of all prompts, in characters."""
        return sum(prompt.characters for prompt in self.prompts)

    @property
    def tokens(self) -> int:
        """The estimated number of tokens of all prompts, at four characters per token."""
        return estimate_tokens(self.characters)

    @property
    def repeated_share(self) -> float:
        """The share of all characters that repeat the beginning of the socket's previous prompt, from 0 to 1."""
        return sum(prompt.shared_prefix for prompt in self.prompts) / max(self.characters, 1)

    def of(self, socket: str) -> list[VisitPrompt]:
        """Return the prompts of one socket."""
        return [prompt for prompt in self.prompts if prompt.socket == socket]

    def _play_cast(
        self, rules: Rules, request: str, length: int, work_items: list[JSON] | None
    ) -> Iterator[tuple[CastState, Prompt]]:
        answers = PossibleAnswers(rules, (length,))
        last, _ = enter_next(rules, entering.begin(rules, request))
        edit = partial(_with_items, answers.lists, work_items)
        for visit in play_cast(rules, last, partial(self._choose_answer, answers), self._max_visits, edit):
            last, state = visit.next_state, visit.start
            if visit.socket_rules.socket.is_utility:
                continue
            yield state, entering.prompt_for(rules, state)
            if any(turn.refusal for turn in visit.turns):
                self.end = "no_answer"
                return
        self.end = end_kind(last) or self.end

    def _choose_answer(self, answers: PossibleAnswers, state: CastState, socket_rules: SocketRules) -> ScriptedResult:
        """Return the shortest satisfied answer, or an unsatisfied answer if the visit must send work back."""
        possible = answers.of(socket_rules)
        sends_back = any(edge.when in REWORK_CONDITIONS for edge in socket_rules.socket.edges)
        if self._rework and sends_back and state.at is not None and state.at.visit == 1:
            return next((answer for answer in possible if answer.result is Result.NO), possible[0])
        return possible[0]


def _parse_items(items: int | Sequence[JSON]) -> tuple[int, list[JSON] | None]:
    """Return the length of every list and the work items. If ``items`` is only a length, the work items are None."""
    return (len(items), [frozen(item) for item in items]) if isinstance(items, Sequence) else (items, None)


def _with_items(lists: Iterable[tuple[str, ...]], work_items: list[JSON] | None, state: CastState) -> CastState:
    """Return the state in which ``work_items`` replaces each list of sample items that has the same length."""
    if work_items is None:
        return state
    new_data: JSON = dict(state.data)
    for path in lists:
        items = get_path(new_data, path)
        if isinstance(items, list) and len(items) == len(work_items) and items != work_items:
            new_data = with_value_at(new_data, path, work_items)
    assert isinstance(new_data, dict)  # noqa: S101 - only lists in it were replaced
    return state._replace(data=FrozenDict(new_data))


DEFAULT_CASTS: Final = 100
"""Default number of casts for an estimate."""
QUICK_CASTS: Final = 20
"""Number of casts for a rough estimate that another view displays in one line."""

TurnPrice: TypeAlias = Callable[[str, int, int], float | None]
"""Price of a turn in dollars, as a function of the socket, input tokens and output tokens; None if unknown (R56)."""


class Spread(NamedTuple):
    """The mean of a number over many casts, and the range that excludes the lowest 10% and the highest 10%."""

    mean: float
    low: float
    high: float


class UsageEstimate(NamedTuple):
    """The estimated usage of a whole cast, or of one of its sockets.

    Attributes:
        turns: the number of agent turns.
        input: the number of tokens sent to agents. Each later turn of a visit sends the earlier turns again.
        output: the number of tokens in the answers.
        cost: the cost in US dollars of the turns whose price is known, or None if no price is known.
    """

    turns: Spread
    input: Spread
    output: Spread
    cost: Spread | None


@dataclass(frozen=True)
class Estimate:
    """The estimated usage of the casts of a loadout, excluding repairs, tools and the thinking of models.

    Attributes:
        graph: the loadout.
        items: the length of every list of work items.
        casts: the number of random casts.
        total: the usage of a whole cast.
        sockets: the usage of each socket whose agent was called, by socket id.
        unpriced: the sockets with at least one turn whose price is unknown; the costs exclude these turns (R56).
        unfinished: the number of casts that were stopped after 1,000 visits.
        shortest: the sockets for which ``answer`` specifies no length; their answers are as short as possible.
    """

    graph: Graph
    items: int
    casts: int
    total: UsageEstimate
    sockets: Mapping[str, UsageEstimate]
    unpriced: tuple[str, ...]
    unfinished: int
    shortest: tuple[str, ...]


class _Turn(NamedTuple):
    socket: str
    input: int
    output: int
    cost: float | None


def estimate_cast(
    graph: Graph,
    request: str = SAMPLE,
    items: int | Sequence[JSON] = 3,
    satisfied: Chances = 0.5,
    *,
    answer: PerSocket | None = None,
    price: TurnPrice = lambda _socket, _input, _output: None,
    pins: Mapping[str, Pin] = NOTHING,
    casts: int = DEFAULT_CASTS,
    **failures: Unpack[FailureChances],
) -> Estimate:
    """Estimate the usage of a cast from the prompts, answers and prices of random casts in memory.

    Args:
        graph: the loadout.
        request: the request of the cast.
        items: the length of every list of work items, or the work items themselves.
        satisfied: the chance of ``satisfied: true``, as for :func:`.odds.chances_by_socket`.
        answer: the length of an answer in tokens, for all sockets, or by socket or materia. Later prompts contain
            answers of this length. By default, answers are as short as possible, so all token counts are lower bounds.
        price: a function that returns the price of a turn; see :data:`TurnPrice`.
        pins: the pins that answer instead of an agent, by socket or materia. A pinned function is not called; a sample
            answer is used instead.
        casts: the number of casts. The same arguments always produce the same estimate.
        failures: the chances of failures, such as ``failed=0.1``; see :class:`.odds.FailureChances`.

    Raises:
        MateriaError: a chance is missing or invalid (``bad_chance``), a socket accepts no sample answer
            (``no_answer``), or a value is not a number.
    """
    if casts < 1:
        raise MateriaError("An estimate needs at least one cast.", hint="set casts to 1 or more")
    length, work_items = _parse_items(items)
    check_list_lengths(length)
    chances = chances_by_socket(graph, satisfied, failures, answer)
    values = {id_: None if answer is None else value_for_socket(graph, id_, answer) for id_ in graph.sockets}
    answer_tokens = {id_: round(value) for id_, value in values.items() if value is not None}
    simulator = _CastSimulator(Rules(graph), length, chances, answer_tokens, price, pins)
    generators = (Random(f"1:{number}") for number in range(casts))  # noqa: S311 - chances, no secrets
    ends, turns_by_cast = zip(*(simulator.play(request, work_items, rng) for rng in generators), strict=True)
    by_socket = {
        id_: [[turn for turn in turns if turn.socket == id_] for turns in turns_by_cast] for id_ in graph.sockets
    }
    agents = {id_: turns for id_, turns in by_socket.items() if any(turns)}
    unpriced = {turn.socket for turns in turns_by_cast for turn in turns if turn.cost is None}
    total, sockets = _estimate_usage(turns_by_cast), {id_: _estimate_usage(turns) for id_, turns in agents.items()}
    without_price = tuple(id_ for id_ in agents if id_ in unpriced)
    shortest = tuple(id_ for id_ in agents if id_ not in answer_tokens)
    unfinished = sum(end.status == "waiting" for end in ends)
    return Estimate(graph, length, casts, total, sockets, without_price, unfinished, shortest)


@dataclass
class _CastSimulator:
    """Simulates random casts. ``answer_tokens`` is the length of the answers of each socket, in tokens."""

    rules: Rules
    length: int
    chances: Mapping[str, Chance]
    answer_tokens: Mapping[str, int]
    price: TurnPrice
    pins: Mapping[str, Pin]

    def __post_init__(self) -> None:
        self.answers = PossibleAnswers(self.rules, (self.length,))
        self._answers_of = cache(self._possible_answers)

    def _possible_answers(self, id_: str) -> tuple[ScriptedResult, ...]:
        """Return the possible answers of a socket, extended to the length in ``answer_tokens``."""
        socket_rules, tokens = self.rules.sockets[id_], self.answer_tokens.get(id_)
        answers = self.answers.of(socket_rules)
        if tokens is None or socket_rules.socket.is_utility:
            return answers
        return tuple(answer._replace(text=_extend_answer(answer.text, tokens, socket_rules)) for answer in answers)

    def _pinned_text(self, state: CastState, socket_rules: SocketRules) -> tuple[bool, str | None]:
        """Return True if a pin answers the visit, together with the pinned text.

        The text is None for a pinned function, because the function is not called.
        """
        socket = socket_rules.socket
        pin = self.pins.get(socket.id, self.pins.get(socket.materia.id))
        if pin is None or state.at is None:
            return False, None
        text = pin.answer(socket.id, state.at.visit)
        return text is not None or pin.kind == "function", text

    def play(self, request: str, work_items: list[JSON] | None, rng: Random) -> tuple[CastState, list[_Turn]]:
        """Simulate one cast, and return its last state and the turns of its agents."""
        draw = random_choice(lambda socket_rules: self._answers_of(socket_rules.socket.id), self.chances, rng)

        def choose(state: CastState, socket_rules: SocketRules) -> ScriptedResult:
            result = draw(state, socket_rules)
            _, text = self._pinned_text(state, socket_rules)
            return result if text is None else ScriptedResult(text, Result.NOTHING, None)

        state, _ = enter_next(self.rules, entering.begin(self.rules, request))
        edit, turns = partial(_with_items, self.answers.lists, work_items), list[_Turn]()
        for visit in play_cast(self.rules, state, choose, _MAX_VISITS, edit):
            state = visit.next_state
            if not visit.socket_rules.socket.is_utility and not self._pinned_text(visit.start, visit.socket_rules)[0]:
                visit.require_accepted("use `cast.usage()` to show the usage of an earlier cast instead")
                turns += self._estimate_turns(visit)
        return state, turns

    def _estimate_turns(self, visit: PlayedVisit) -> Iterator[_Turn]:
        id_, conversation = visit.socket_rules.socket.id, 0
        first_prompt = entering.prompt_for(self.rules, visit.start)
        for turn in visit.turns:
            input_tokens = conversation + estimate_tokens(len((turn.prompt or first_prompt).text))
            fixed_tokens = self.answer_tokens.get(id_) if turn.text else None
            output_tokens = estimate_tokens(len(turn.text)) if fixed_tokens is None else fixed_tokens
            conversation = input_tokens + output_tokens
            yield _Turn(id_, input_tokens, output_tokens, self.price(id_, input_tokens, output_tokens))


def _extend_answer(text: str, token_count: int, socket_rules: SocketRules) -> str:
    """Extend a sample answer to ``token_count`` tokens with longer work items, a longer ``context`` field or longer text."""
    missing_chars = token_count * _CHARACTERS_A_TOKEN - len(text)
    if missing_chars <= 0 or not text:
        return text
    if socket_rules.requirements.parse == "text":
        return text + _make_filler(missing_chars)
    value = json.loads(text) if socket_rules.socket.handoff == DEFAULT_HANDOFF else {}
    if items := list(_find_work_items(value)):
        for item in items:
            item["context"] += _make_filler(missing_chars // len(items))
    elif value:
        value["context"] = value.get("context", "") + _make_filler(missing_chars)
    else:  # in the form of another protocol the sample text stands for any text
        return text.replace(compact(SAMPLE), compact(SAMPLE + _make_filler(missing_chars)), 1)
    return compact(value)


def _find_work_items(value: object) -> Iterator[dict[str, Any]]:
    """Yield the work items in every list of a sample answer, including lists inside other work items."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _find_work_items(part)
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, dict) and isinstance(part.get("context"), str):
                yield part
            yield from _find_work_items(part)


def _make_filler(characters: int) -> str:
    return (_FILLER * (characters // len(_FILLER) + 1))[:characters]


def _estimate_usage(casts: Sequence[Sequence[_Turn]]) -> UsageEstimate:
    """Return the mean and the range of the turns, tokens and cost of all casts."""
    costs = [[turn.cost for turn in turns if turn.cost is not None] for turns in casts]
    return UsageEstimate(
        _compute_spread([len(turns) for turns in casts]),
        _compute_spread([sum(turn.input for turn in turns) for turns in casts]),
        _compute_spread([sum(turn.output for turn in turns) for turns in casts]),
        _compute_spread([sum(cast_costs) for cast_costs in costs]) if any(costs) else None,
    )


def _compute_spread(numbers: Sequence[float]) -> Spread:
    ordered, tenth = sorted(numbers), len(numbers) // 10
    return Spread(fmean(ordered), ordered[tenth], ordered[-1 - tenth])


_GROUPS: Final = ("socket", "materia", "item")  # Criteria by which usage can be grouped.
_COUNTS: Final = ("visits", "turns", "calls", "untimed", "waited")


class UsageRow(NamedTuple):
    """The usage of one group of visits, for example of all visits to a socket for one work item.

    Attributes:
        of: the socket, materia or item of the group, in the order in which the criteria were requested. The item is
            empty outside a loop.
        visits: the number of visits.
        turns: the number of agent turns, including repairs.
        calls: the number of tool calls by the agents.
        usage: the tokens and the cost, including turns without an answer.
        ms: the work time of agents and processes in milliseconds, or None if it is unknown for all visits.
        untimed: the number of visits with an unknown work time, which ``ms`` excludes (R56).
        waited: the time in milliseconds during which neither an agent nor a process ran, for example while waiting for
            a person.
        left: the part of ``usage`` that belongs to steps discarded by going back.
    """

    of: tuple[str, ...]
    visits: int = 0
    turns: int = 0
    calls: int = 0
    usage: Usage = Usage()
    ms: int | None = 0
    left: Usage = Usage()
    untimed: int = 0
    waited: int = 0

    def plus(self, other: UsageRow) -> UsageRow:
        """Return the sum of this row and another row."""
        counts = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        usage, left = self.usage.plus(other.usage), self.left.plus(other.left)
        return self._replace(**counts, usage=usage, left=left, ms=known_sum(self.ms, other.ms))


def _step_row(step: StepRecord, *, left: bool) -> UsageRow:
    """Return the usage of one step. ``left`` is True if the step was discarded by going back."""
    usage, time = step_usage(step), step_time(step)
    turns = sum(turn.prompt is not None and turn.mode != "correction" for turn in step.turns)
    discarded = usage if left else Usage()
    return UsageRow((), 1, turns, len(step.calls), usage, time.work, discarded, time.work is None, time.waited or 0)


def usage_by(rules: Rules, session: Session, by: Sequence[str] = ("socket",)) -> list[UsageRow]:
    """Return the usage of a cast, including discarded steps, with one row for each group in order of the first visit.

    Raises:
        MateriaError: kind ``unknown_group``: ``by`` contains a name other than ``socket``, ``materia`` or ``item``.
    """
    for name in by:
        needs_one_of(name, _GROUPS, f"Usage cannot be grouped by {name!r}.", "unknown_group")
    rows: dict[tuple[str, ...], UsageRow] = {}
    for step, left in every_step(session):
        names = {
            "socket": step.socket,
            "materia": rules.sockets[step.socket].socket.materia.id,
            "item": f"{step.item_key} {step.item_label or ''}".strip() if step.item_key else "",
        }
        key = tuple(names[name] for name in by)
        rows[key] = rows.get(key, UsageRow(key)).plus(_step_row(step, left=left))
    return list(rows.values())


# -- one step --------------------------------------------------------------------------------


def step_usage(step: StepRecord) -> Usage:
    """Return the total usage of a step, including requests that ended without an answer."""
    return reduce(Usage.plus, (*step.spent, *(turn.usage for turn in step.turns if turn.usage)), Usage())


class StepTime(NamedTuple):
    """The times of a step in milliseconds; times that are unknown are None (R56).

    Attributes:
        work: the time during which the agent or process worked, in all turns; 0 if only a person answered.
        waited: the time during which neither an agent nor a process ran, for example while waiting for a person; 0 if
            it is shorter than five seconds, None until the step has ended.
        total: the time from the entry into the socket to the end of the step; None until the step has ended.
    """

    work: int | None
    waited: int | None
    total: int | None

    @property
    def words(self) -> str:
        """The times as text, such as ``0.20 s + 46 s waited``; empty until the step has ended."""
        if self.total is None:
            return ""
        if self.work is None:
            return f"at most {format_seconds(self.total)}"
        waited = f" + {format_seconds(self.waited)} waited" if self.waited else ""
        return f"{format_seconds(self.work)}{waited}"


_MIN_WAIT_MS: Final = 5_000  # Minimum wait that is reported, in milliseconds; a busy machine can cause shorter waits.


def step_time(step: StepRecord) -> StepTime:
    """Return the times of a step. All views call this function, so that they display the same times."""
    if step.ended is None:
        return StepTime(step.worked, None, None)
    total = max(0, step.ended - step.started)
    if step.worked is None:
        return StepTime(None, None, total)
    waited = total - step.worked
    return StepTime(step.worked, waited if waited >= _MIN_WAIT_MS else 0, total)


def work_time(steps: Iterable[StepRecord]) -> tuple[int | None, int]:
    """Return the total work time of steps in milliseconds, and the number of steps whose work time is unknown (R56)."""
    times = [step.worked for step in steps]
    known_times = [time for time in times if time is not None]
    return sum(known_times) if known_times or not times else None, len(times) - len(known_times)


def format_work_time(milliseconds: int | None, unknown: int = 0) -> str:
    """Format a work time, followed by the number of steps whose time is unknown; see :func:`work_time`."""
    if milliseconds is None:
        return "unknown"
    return format_seconds(milliseconds) + (f" + {unknown} unknown" if unknown else "")


def format_seconds(milliseconds: int) -> str:
    """Format a time with three digits, so that the length of stored outputs does not change."""
    seconds = milliseconds / 1000
    digits = next((digits for digits, limit in ((2, 9.995), (1, 99.95)) if seconds < limit), 0)
    return f"{seconds:.{digits}f} s"
