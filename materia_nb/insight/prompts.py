"""What the agents of a loadout would be told, before anybody is asked: the prompts of a scripted cast, with their sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from materia_nb.engine import entering, outputs
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import CastState
from materia_nb.engine.told import HEADINGS, tokens_of
from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import SAMPLE
from materia_nb.insight.answers import Answers, Scripted
from materia_nb.insight.space import end_of, turns_of
from materia_nb.jsonvalue import JSON, FrozenDict, frozen, get_path, replaced
from materia_nb.loadout.graph import Graph, cast_context
from materia_nb.loadout.vocabulary import SENDING_BACK, Result

MOST_PROMPTS: Final = 1_000
"""After how many steps a scripted cast is cut off."""


def _valid(context: JSON) -> JSON:
    """Return a ``castContext``, or say what is wrong with it."""
    from materia_nb.loadout.fields import CONTEXT_SHAPE, Fault, is_context  # it loads pydantic

    hint = f"it is {CONTEXT_SHAPE}"
    try:
        if is_context(context):
            return context
    except Fault as fault:
        hint = fault.hint or hint
    raise MateriaError(f"{context!r:.80} is no castContext.", hint=hint, kind="usage")


class Told(NamedTuple):
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
        most: int = MOST_PROMPTS,
    ) -> None:
        if context is not None:
            told = cast_context(_valid(context))
            sockets = {id_: replace(one, cast_context=told) for id_, one in graph.sockets.items()}
            graph = replace(graph, sockets=sockets)
        self.graph, self.context = graph, context
        self.told: list[Told] = []
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
            self.told.append(Told(state.steps, socket, key, turn, prompt, len(text), same))
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

    def of(self, socket: str) -> list[Told]:
        """Return the prompts of one socket."""
        return [one for one in self.told if one.socket == socket]

    def _cast(
        self, rules: Rules, request: str, count: int, given: list[JSON] | None
    ) -> Iterator[tuple[CastState, Prompt]]:
        answers = Answers(rules, (count,))
        state = entering.enter(rules, entering.begin(rules, request)).state
        for _ in range(self._most):
            if state.status != "waiting" or state.at is None:
                self.end = end_of(state) or self.end
                return
            here, first = rules.sockets[state.at.socket], state.at.visit == 1
            agent = not here.socket.is_utility
            if agent:
                yield state, entering.prompt_for(rules, state)
            for turn in turns_of(rules, here, state, self._answer(here, answers, first=first)):
                if turn.asked is not None and agent and self._later:
                    yield state, turn.asked
                if first and agent and self._later and (repair := _repair(rules, here, state)) is not None:
                    yield state, repair
                if turn.refused:
                    self.end = "no_answer"
                    return
                state = turn.step.state
            if given is not None:
                state = state._replace(data=with_items(state.data, answers.lists, given))
            if state.status == "ready":
                state = entering.enter(rules, state).state
        self.end = end_of(state) or self.end

    def _answer(self, here: SocketRules, answers: Answers, *, first: bool) -> Scripted:
        """The shortest answer that is satisfied, or one that is not where work is to be sent back."""
        all_ = answers.of(here)
        if self._rework and first and any(edge.when in SENDING_BACK for edge in here.socket.edges):
            return next((one for one in all_ if one.result is Result.NO), all_[0])
        return all_[0]


def _repair(rules: Rules, here: SocketRules, state: CastState) -> Prompt | None:
    """What a turn that waits would be told next if its answer could not be read; None where any text will do."""
    if state.at is None or state.at.mode in here.any_text or here.wanted.parse == "text":
        return None
    step = outputs.output(rules, state, SAMPLE, prompt=entering.prompt_for(rules, state))
    again = step.state.at is not None and step.state.at.repairs > state.at.repairs
    return step.prompt if again else None


def _same(before: str, now: str) -> int:
    """How many characters two texts begin with alike."""
    most = min(len(before), len(now))
    return next((at for at in range(most) if before[at] != now[at]), most)


def with_items(
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
