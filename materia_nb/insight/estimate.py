"""What a cast would take before it begins: turns, tokens and cost, from casts by chance whose prompts are measured.

The prompts are those of a scripted cast: what the agents of a loadout would be told, before anybody is asked, with their sizes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean
from typing import Any, Final, NamedTuple, TypeAlias

from materia_nb.engine import entering, outputs
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.prompt_context import HEADINGS, tokens_of
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import NOTHING, CastState, Pin
from materia_nb.errors import MateriaError, usage_error
from materia_nb.handoff.base import SAMPLE
from materia_nb.insight.odds import (
    Chance,
    Chances,
    PerSocket,
    chances_by_socket,
    check_per_socket,
    draw_answer,
    value_for_socket,
)
from materia_nb.insight.scripted_answers import (
    PossibleAnswers,
    ScriptedResult,
    check_list_lengths,
    end_kind,
    scripted_turns,
    without_prompts,
)
from materia_nb.jsonvalue import JSON, FrozenDict, compact, frozen, get_path, replaced
from materia_nb.loadout.graph import Graph, cast_context
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, SENDING_BACK, Result

_MOST_PROMPTS: Final = 1_000
"""After how many steps a scripted cast is cut off."""
_CHARACTERS_A_TOKEN: Final = 4
_FILLER: Final = " and more of the same"
"""What makes a made-up answer longer."""


def _valid(context: JSON) -> JSON:
    """Return a ``castContext``, or say what is wrong with it."""
    from materia_nb.loadout.fields import CONTEXT_SHAPE, Fault, is_context  # it loads pydantic

    hint = f"it is {CONTEXT_SHAPE}"
    try:
        if is_context(context):
            return context
    except Fault as fault:
        hint = fault.hint or hint
    raise usage_error(f"{context!r:.80} is not a castContext.", hint)


class VisitPrompt(NamedTuple):
    """One prompt of a visit.

    Attributes:
        step: the number of the step.
        socket: the socket.
        item: the key of the work item, None outside an iterator.
        turn: what it is for where it is not the first of a visit to new work: ``Why it came back`` (work that was sent
            back), or the heading of what a later turn says.
        prompt: what its agent is told, part by part.
        characters: how long it is.
        same: how many of these, from the beginning, are as in the prompt of this socket before; a provider may have
            kept these.
    """

    step: int
    socket: str
    item: str | None
    turn: str
    prompt: Prompt
    characters: int
    same: int

    @property
    def tokens(self) -> int:
        """An estimate of its tokens: one for four characters."""
        return tokens_of(self.characters)


class Prompts:
    """Every prompt of a scripted cast: each answer is the shortest that is satisfied, and no one is asked.

    Args:
        graph: the loadout.
        request: the request.
        items: how long every list is, or the work items themselves.
        context: a ``castContext`` to be tried in place of those of the loadout.
        rework: whether each socket that can send work back does so at its first visit.
        later: whether later turns are shown too: of conversations, and what each socket would be told at its first visit
            if its answer could not be used (drafts aside); the cast goes on as if it could.
        most: after how many steps the cast is cut off.

    Attributes:
        graph: the loadout.
        context: the ``castContext`` that was tried in place of those of the loadout; None for its own.
        told: the first prompt of each visit, in order, and with ``later`` those after it.
        end: how the cast ends: ``complete``, ``held``, the kind of its failure, or ``unfinished``.
    """

    def __init__(
        self,
        graph: Graph,
        request: str,
        items: int | Sequence[JSON] = 3,
        context: JSON = None,
        *,
        rework: bool = False,
        later: bool = False,
        most: int = _MOST_PROMPTS,
    ) -> None:
        if context is not None:
            told = cast_context(_valid(context))
            sockets = {id_: replace(one, cast_context=told) for id_, one in graph.sockets.items()}
            graph = replace(graph, sockets=sockets)
        self.graph, self.context = graph, context
        self.told: list[VisitPrompt] = []
        self.end = "unfinished"
        self._rework, self._later, self._most = rework, later, most
        given = None if isinstance(items, int) else [frozen(one) for one in items]
        count = items if isinstance(items, int) else len(items)
        texts: dict[str, str] = {}
        for state, prompt in self._cast(Rules(graph), request, count, given):
            assert state.at is not None  # noqa: S101 - it waits
            socket, item, text = state.at.socket, state.at.item, prompt.text
            same = _same(texts.get(socket, ""), text) if prompt.begins else 0
            turn = "" if prompt.begins else prompt.parts[0].heading
            if prompt.begins and prompt.reasons:
                turn = HEADINGS["reasons"]
            key = item.key if item else None
            self.told.append(VisitPrompt(state.steps, socket, key, turn, prompt, len(text), same))
            if prompt.begins:
                texts[socket] = text

    @property
    def characters(self) -> int:
        """How many characters all prompts have together."""
        return sum(one.characters for one in self.told)

    @property
    def tokens(self) -> int:
        """An estimate of the tokens of all prompts: one for four characters."""
        return tokens_of(self.characters)

    @property
    def same(self) -> float:
        """The share of all characters that begins a prompt as it began the one before of the same socket."""
        return sum(one.same for one in self.told) / max(self.characters, 1)

    def of(self, socket: str) -> list[VisitPrompt]:
        """Return the prompts of one socket."""
        return [one for one in self.told if one.socket == socket]

    def _cast(
        self, rules: Rules, request: str, count: int, given: list[JSON] | None
    ) -> Iterator[tuple[CastState, Prompt]]:
        answers = PossibleAnswers(rules, (count,))
        state = entering.enter(rules, entering.begin(rules, request)).state
        for _ in range(self._most):
            if state.status != "waiting" or state.at is None:
                self.end = end_kind(state) or self.end
                return
            socket_rules, first = rules.sockets[state.at.socket], state.at.visit == 1
            agent = not socket_rules.socket.is_utility
            if agent:
                yield state, entering.prompt_for(rules, state)
            for turn in scripted_turns(
                rules, socket_rules, state, self._answer(socket_rules, answers, first=first)
            ):
                if turn.prompt is not None and agent and self._later:
                    yield state, turn.prompt
                if (
                    first
                    and agent
                    and self._later
                    and (repair := _repair(rules, socket_rules, state)) is not None
                ):
                    yield state, repair
                if turn.refused:
                    self.end = "no_answer"
                    return
                state = turn.step.state
            if given is not None:
                state = state._replace(data=_with_items(state.data, answers.lists, given))
            if state.status == "ready":
                state = entering.enter(rules, state).state
        self.end = end_kind(state) or self.end

    def _answer(self, socket_rules: SocketRules, answers: PossibleAnswers, *, first: bool) -> ScriptedResult:
        """The shortest answer that is satisfied, or one that is not where work is to be sent back."""
        all_ = answers.of(socket_rules)
        if self._rework and first and any(edge.when in SENDING_BACK for edge in socket_rules.socket.edges):
            return next((one for one in all_ if one.result is Result.NO), all_[0])
        return all_[0]


def _repair(rules: Rules, socket_rules: SocketRules, state: CastState) -> Prompt | None:
    """What a turn that waits would be told next if its answer could not be read; None where any text will do."""
    if state.at is None or state.at.mode in socket_rules.any_text or socket_rules.wanted.parse == "text":
        return None
    step = outputs.output(rules, state, SAMPLE, prompt=entering.prompt_for(rules, state))
    again = step.state.at is not None and step.state.at.repairs > state.at.repairs
    return step.prompt if again else None


def _same(before: str, now: str) -> int:
    """How many characters two texts begin with alike."""
    most = min(len(before), len(now))
    return next((position for position in range(most) if before[position] != now[position]), most)


def _with_items(
    data: Mapping[str, JSON], lists: Iterable[tuple[str, ...]], given: list[JSON]
) -> Mapping[str, JSON]:
    """Put the items that a person gave in place of as many that were made up."""
    changed: JSON = dict(data)
    for path in lists:
        found = get_path(changed, path)
        if isinstance(found, list) and len(found) == len(given) and found != given:
            changed = replaced(changed, path, given)
    assert isinstance(changed, dict)  # noqa: S101 - only lists in it were replaced
    return FrozenDict(changed)


DEFAULT_CASTS: Final = 100
"""How many casts an estimate is made from."""
QUICK_CASTS: Final = 20
"""And one that is said in a line beside something else."""

PriceOfTurn: TypeAlias = Callable[[str, int, int], float | None]
"""What a turn of a socket costs in dollars, with its tokens in and out; None where no price is known (R56)."""


class Spread(NamedTuple):
    """A number over many casts: its mean, and what one cast in ten is below and one in ten is above."""

    mean: float
    low: float
    high: float


class UsageEstimate(NamedTuple):
    """What a cast takes, or one socket in it.

    Attributes:
        turns: how many turns its agents have.
        input: tokens of what they are told; a later turn of a visit is told those before once more.
        output: tokens of what they answer.
        cost: dollars of the turns whose price is known; None where none is.
    """

    turns: Spread
    input: Spread
    output: Spread
    cost: Spread | None


@dataclass(frozen=True)
class Estimate:
    """What casts of a loadout would take; repairs, tools and thoughts of a model are not in it.

    Attributes:
        graph: the loadout.
        items: how long every list is.
        casts: from how many casts by chance it is.
        total: what a whole cast takes.
        sockets: what each socket of an agent that was asked takes in a cast.
        unpriced: those among them that have a turn of which no price is known: it is not in any cost (R56).
        unfinished: how many of the casts were cut off, since they went on after 1,000 visits.
        shortest: those among the sockets whose answers were the shortest possible, since no ``answer`` is given.
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


def estimate_cast(  # noqa: PLR0913 - what there is to say of a cast, by name
    graph: Graph,
    request: str = SAMPLE,
    items: int | Sequence[JSON] = 3,
    satisfied: Chances = 0.5,
    *,
    failed: PerSocket = 0.0,
    answer: PerSocket | None = None,
    price: PriceOfTurn = lambda _socket, _input, _output: None,
    pins: Mapping[str, Pin] = NOTHING,
    casts: int = DEFAULT_CASTS,
) -> Estimate:
    """Cast a loadout in memory, answered by chance, and add up what each turn is told, answers and costs.

    Args:
        graph: the loadout.
        request: the request.
        items: how long every list is, or the work items themselves.
        satisfied: the chance of ``satisfied: true``, as for :func:`.odds.chances_by_socket`.
        failed: the chance that an agent or process fails, where an edge waits for that.
        answer: the tokens of an answer, for all or by socket or materia; later prompts hold answers of that length. Left out,
            answers are the shortest possible, so tokens in and out are lower bounds.
        price: what a turn costs.
        pins: what is pinned, by socket or materia: nobody is asked there, and what it is pinned to is the answer; that of
            a function, which is not called, is made up.
        casts: how many casts; the chances are drawn from the same numbers every time.

    Raises:
        MateriaError: a chance is missing or none (``bad_chance``), a socket takes no scripted answer (``no_answer``), or
            a number is none.
    """
    if casts < 1:
        raise MateriaError("An estimate needs casts.", hint="casts from 1")
    count = len(items) if isinstance(items, Sequence) else items
    check_list_lengths(count)
    check_per_socket(graph, satisfied, failed, answer)
    chances = chances_by_socket(Rules(without_prompts(graph)), satisfied, {Result.FAILED: failed})
    given = [frozen(one) for one in items] if isinstance(items, Sequence) else None
    caster = _Caster(graph, request, count, given, chances, answer=answer, price=price, pins=pins)
    numbered = (Random(f"1:{number}") for number in range(casts))  # noqa: S311 - chances, no secrets
    played = [list(caster.turns(rng)) for rng in numbered]
    turns = [[one for one in each if one is not None] for each in played]
    by_socket = {id_: [[one for one in each if one.socket == id_] for each in turns] for id_ in graph.sockets}
    asked = {id_: each for id_, each in by_socket.items() if any(each)}
    unpriced = {one.socket for each in turns for one in each if one.cost is None}
    return Estimate(
        graph,
        count,
        casts,
        _takes(turns),
        {id_: _takes(each) for id_, each in asked.items()},
        tuple(id_ for id_ in asked if id_ in unpriced),
        sum(None in each for each in played),
        tuple(id_ for id_ in asked if answer is None or value_for_socket(graph, id_, answer) is None),
    )


class _Caster:
    """Casts a loadout again and again, with other chances each time."""

    def __init__(
        self,
        graph: Graph,
        request: str,
        count: int,
        given: list[JSON] | None,
        chances: Mapping[str, Chance],
        *,
        answer: PerSocket | None,
        price: PriceOfTurn,
        pins: Mapping[str, Pin],
    ) -> None:
        self._rules, self._request, self._given = Rules(graph), request, given
        self._answers, self._chances = PossibleAnswers(self._rules, (count,)), chances
        self._answer, self._price, self._pins = answer, price, pins
        self._lengthened: dict[str, tuple[ScriptedResult, ...]] = {}

    def _answers_of(self, socket_rules: SocketRules) -> tuple[ScriptedResult, ...]:
        """Return the possible answers of a socket, as long as ``answer`` says: they are part of later prompts."""
        id_ = socket_rules.socket.id
        tokens = None if self._answer is None else value_for_socket(self._rules.graph, id_, self._answer)
        if tokens is None or socket_rules.socket.is_utility:
            return self._answers.of(socket_rules)
        if id_ not in self._lengthened:
            self._lengthened[id_] = tuple(
                one._replace(text=_lengthened(one.text, round(tokens), socket_rules)) if one.text else one
                for one in self._answers.of(socket_rules)
            )
        return self._lengthened[id_]

    def turns(self, rng: Random) -> Iterator[_Turn | None]:
        """Do one cast, and give each turn of an agent; None at the end of a cast that was cut off."""
        rules = self._rules
        state = entering.enter(rules, entering.begin(rules, self._request)).state
        for _ in range(_MOST_PROMPTS):
            if state.status != "waiting" or state.at is None:
                return
            socket_rules = rules.sockets[state.at.socket]
            happens, pinned = (
                draw_answer(self._answers_of(socket_rules), self._chances.get(socket_rules.socket.id), rng),
                False,
            )
            if (pin := self._pin_of(socket_rules)) is not None:
                text = pin.answer(socket_rules.socket.id, state.at.visit)
                pinned = text is not None or pin.kind == "function"
                happens = happens if text is None else ScriptedResult(text, Result.NOTHING, None)
            conversation = 0
            unasked = pinned or socket_rules.socket.is_utility
            begun = None if unasked else entering.prompt_for(rules, state)
            for turn in scripted_turns(rules, socket_rules, state, happens):
                if turn.refused and not pinned:
                    raise _no_answer(socket_rules.socket.id)
                state = turn.step.state
                if not unasked and (prompt := turn.prompt or begun) is not None:
                    sent = conversation + tokens_of(len(prompt.text))
                    received = self._tokens(socket_rules.socket.id, turn.text)
                    conversation = sent + received
                    cost = self._price(socket_rules.socket.id, sent, received)
                    yield _Turn(socket_rules.socket.id, sent, received, cost)
            if self._given is not None:
                data = _with_items(state.data, self._answers.lists, self._given)
                state = state._replace(data=data)
            if state.status == "ready":
                state = entering.enter(rules, state).state
        yield None

    def _pin_of(self, socket_rules: SocketRules) -> Pin | None:
        return self._pins.get(socket_rules.socket.id, self._pins.get(socket_rules.socket.materia.id))

    def _tokens(self, socket: str, text: str) -> int:
        """How many tokens an answer has: as many as was said, else those of the made-up one."""
        stated = None if self._answer is None else value_for_socket(self._rules.graph, socket, self._answer)
        return tokens_of(len(text)) if stated is None or not text else round(stated)


def _lengthened(text: str, tokens: int, socket_rules: SocketRules) -> str:
    """Return a made-up answer with so many tokens: its items are longer, else its context, else the first text in it."""
    missing = tokens * _CHARACTERS_A_TOKEN - len(text)
    if missing <= 0:
        return text
    if socket_rules.wanted.parse == "text":
        return text + _filler(missing)
    value = json.loads(text) if socket_rules.socket.handoff == DEFAULT_HANDOFF else {}
    if items := list(_items_in(value)):
        for item in items:
            item["context"] += _filler(missing // len(items))
    elif value:
        value["context"] = value.get("context", "") + _filler(missing)
    else:  # another protocol has its own form, in which a text stands for any text
        return text.replace(compact(SAMPLE), compact(SAMPLE + _filler(missing)), 1)
    return compact(value)


def _items_in(value: object) -> Iterator[dict[str, Any]]:
    """Give the items of each list in a made-up answer, and of each list in an item."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _items_in(part)
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, dict) and isinstance(part.get("context"), str):
                yield part
            yield from _items_in(part)


def _filler(characters: int) -> str:
    return (_FILLER * (characters // len(_FILLER) + 1))[:characters]


def _no_answer(socket: str) -> MateriaError:
    return MateriaError(
        f"{socket} takes no answer that can be made up.",
        where=socket,
        hint="cast.usage() of a cast that was made says what it took",
        kind="no_answer",
    )


def _takes(casts: Sequence[Sequence[_Turn]]) -> UsageEstimate:
    """Add up each cast, and say how far the sums spread."""
    priced = [[turn.cost for turn in each if turn.cost is not None] for each in casts]
    return UsageEstimate(
        _spread([len(each) for each in casts]),
        _spread([sum(turn.input for turn in each) for each in casts]),
        _spread([sum(turn.output for turn in each) for each in casts]),
        _spread([sum(each) for each in priced]) if any(priced) else None,
    )


def _spread(numbers: Sequence[float]) -> Spread:
    """Return the mean, and the ends without the lowest and the highest tenth."""
    ordered, tenth = sorted(numbers), len(numbers) // 10
    return Spread(fmean(ordered), ordered[tenth], ordered[-1 - tenth])
