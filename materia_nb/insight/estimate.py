"""What a cast would take before it begins: turns, tokens and cost, from casts by chance whose prompts are measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean
from typing import Final, NamedTuple, TypeAlias

from materia_nb.engine import entering
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import NOTHING, Pin
from materia_nb.engine.told import tokens_of
from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import SAMPLE
from materia_nb.insight.answers import Answers, Scripted, quiet
from materia_nb.insight.odds import Chance, Chances, PerSocket, at, chances_of, check_names
from materia_nb.insight.prompts import MOST_PROMPTS, with_items
from materia_nb.insight.rehearse import drawn
from materia_nb.insight.space import turns_of
from materia_nb.jsonvalue import JSON, frozen
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.vocabulary import Result

CASTS: Final = 100
"""How many casts an estimate is made from."""
GLANCE: Final = 20
"""And one that is said in a line beside something else."""

Price: TypeAlias = Callable[[str, int, int], float | None]
"""What a turn of a socket costs in dollars, with its tokens in and out; None where no price is known (R56)."""


class Spread(NamedTuple):
    """A number over many casts: its mean, and what one cast in ten is below and one in ten is above."""

    mean: float
    low: float
    high: float


class Takes(NamedTuple):
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
    total: Takes
    sockets: Mapping[str, Takes]
    unpriced: tuple[str, ...]
    unfinished: int
    shortest: tuple[str, ...]


class _Turn(NamedTuple):
    socket: str
    input: int
    output: int
    cost: float | None


def estimate(  # noqa: PLR0913 - what there is to say of a cast, by name
    graph: Graph,
    request: str = SAMPLE,
    items: int | Sequence[JSON] = 3,
    satisfied: Chances = 0.5,
    *,
    failed: PerSocket = 0.0,
    answer: PerSocket | None = None,
    price: Price = lambda _socket, _input, _output: None,
    pins: Mapping[str, Pin] = NOTHING,
    casts: int = CASTS,
) -> Estimate:
    """Cast a loadout in memory, answered by chance, and add up what each turn is told, answers and costs.

    Args:
        graph: the loadout.
        request: the request.
        items: how long every list is, or the work items themselves.
        satisfied: the chance of ``satisfied: true``, as for :func:`.odds.chances_of`.
        failed: the chance that an agent or process fails, where an edge waits for that.
        answer: how many tokens an answer has, for all or by socket or materia; those of the shortest if left out.
        price: what a turn costs.
        pins: what is pinned, by socket or materia: nobody is asked there, and what it is pinned to is the answer; that of
            a function, which is not called, is made up.
        casts: how many casts; the chances are drawn from the same numbers every time.

    Raises:
        MateriaError: a chance is missing or none (``bad_chance``), a socket takes no scripted answer (``no_answer``), or
            a number is none.
    """
    count = items if isinstance(items, int) else len(items)
    if casts < 1 or count < 0:
        raise MateriaError(
            "An estimate needs casts and a length of lists.", hint="casts from 1, items from 0"
        )
    check_names(graph, satisfied, failed, answer)
    chances = chances_of(Rules(quiet(graph)), satisfied, failed)
    given = None if isinstance(items, int) else [frozen(one) for one in items]
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
        tuple(id_ for id_ in asked if answer is None or at(graph, id_, answer) is None),
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
        price: Price,
        pins: Mapping[str, Pin],
    ) -> None:
        self._rules, self._request, self._given = Rules(graph), request, given
        self._answers, self._chances = Answers(self._rules, (count,)), chances
        self._answer, self._price, self._pins = answer, price, pins

    def turns(self, rng: Random) -> Iterator[_Turn | None]:
        """Do one cast, and give each turn of an agent; None at the end of a cast that was cut off."""
        rules = self._rules
        state = entering.enter(rules, entering.begin(rules, self._request)).state
        for _ in range(MOST_PROMPTS):
            if state.status != "waiting" or state.at is None:
                return
            here = rules.sockets[state.at.socket]
            happens, pinned = drawn(self._answers.of(here), self._chances.get(here.socket.id), rng), False
            if (pin := self._pin_of(here)) is not None:
                text = pin.answer(here.socket.id, state.at.visit)
                pinned = text is not None or pin.kind == "function"
                happens = happens if text is None else Scripted(text, Result.NOTHING, None)
            conversation = 0
            unasked = pinned or here.socket.is_utility
            begun = None if unasked else entering.prompt_for(rules, state)
            for turn in turns_of(rules, here, state, happens):
                if turn.refused and not pinned:
                    raise _no_answer(here.socket.id)
                state = turn.step.state
                if not unasked and (prompt := turn.asked or begun) is not None:
                    told = conversation + tokens_of(len(prompt.text))
                    said = self._tokens(here.socket.id, turn.text)
                    conversation = told + said
                    yield _Turn(here.socket.id, told, said, self._price(here.socket.id, told, said))
            if self._given is not None:
                data = with_items(state.data, self._answers.lists, self._given)
                state = state._replace(data=data)
            if state.status == "ready":
                state = entering.enter(rules, state).state
        yield None

    def _pin_of(self, here: SocketRules) -> Pin | None:
        return self._pins.get(here.socket.id, self._pins.get(here.socket.materia.id))

    def _tokens(self, socket: str, text: str) -> int:
        """How many tokens an answer has: as many as was said, else those of the made-up one."""
        stated = None if self._answer is None else at(self._rules.graph, socket, self._answer)
        return tokens_of(len(text)) if stated is None or not text else round(stated)


def _no_answer(socket: str) -> MateriaError:
    return MateriaError(
        f"{socket} takes no answer that can be made up.",
        where=socket,
        hint="cast.usage() of a cast that was made says what it took",
        kind="no_answer",
    )


def _takes(casts: Sequence[Sequence[_Turn]]) -> Takes:
    """Add up each cast, and say how far the sums spread."""
    priced = [[turn.cost for turn in each if turn.cost is not None] for each in casts]
    return Takes(
        _spread([len(each) for each in casts]),
        _spread([sum(turn.input for turn in each) for each in casts]),
        _spread([sum(turn.output for turn in each) for each in casts]),
        _spread([sum(each) for each in priced]) if any(priced) else None,
    )


def _spread(numbers: Sequence[float]) -> Spread:
    """Return the mean, and the ends without the lowest and the highest tenth."""
    ordered, tenth = sorted(numbers), len(numbers) // 10
    return Spread(fmean(ordered), ordered[tenth], ordered[-1 - tenth])
