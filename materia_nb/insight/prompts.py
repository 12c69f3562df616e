"""What the agents of a loadout would be told, before anybody is asked: the prompts of a scripted cast, with their sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from materia_nb.engine import entering
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState
from materia_nb.engine.told import tokens_of
from materia_nb.errors import MateriaError
from materia_nb.insight.answers import Answers
from materia_nb.insight.space import end_of, turns_of
from materia_nb.jsonvalue import JSON, FrozenDict, frozen, get_path, replaced
from materia_nb.loadout.graph import Graph, cast_context

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
    """The first prompt of one visit.

    Attributes:
        step: the number of the step.
        socket: the socket.
        item: the key of the work item, None outside an iterator.
        prompt: what its agent is told, part by part.
        characters: how long it is.
        same: how many of these, from the beginning, are as in the prompt of this socket before; a provider may have
            kept these.
    """

    step: int
    socket: str
    item: str | None
    prompt: Prompt
    characters: int
    same: int

    @property
    def tokens(self) -> int:
        """An estimate of its tokens: one for four characters."""
        return tokens_of(self.characters)


class Prompts:
    """Every prompt of a scripted cast: each answer is the shortest that is satisfied, and no one is asked.

    Attributes:
        graph: the loadout.
        context: the ``castContext`` that was tried in place of those of the loadout; None for its own.
        told: the first prompt of each visit, in order.
        end: how the cast ends: ``complete``, ``held``, the kind of its failure, or ``unfinished``.
    """

    def __init__(
        self, graph: Graph, request: str, items: int | Sequence[JSON] = 3, context: JSON = None
    ) -> None:
        if context is not None:
            told = cast_context(_valid(context))
            sockets = {id_: replace(one, cast_context=told) for id_, one in graph.sockets.items()}
            graph = replace(graph, sockets=sockets)
        self.graph, self.context = graph, context
        self.told: list[Told] = []
        self.end = "unfinished"
        given = None if isinstance(items, int) else [frozen(one) for one in items]
        count = items if isinstance(items, int) else len(items)
        for state, prompt in self._cast(Rules(graph), request, count, given):
            assert state.at is not None  # noqa: S101 - it waits
            before = next((one for one in reversed(self.told) if one.socket == state.at.socket), None)
            text, item = prompt.text, state.at.item
            same = _same(before.prompt.text, text) if before is not None else 0
            self.told.append(
                Told(state.steps, state.at.socket, item.key if item else None, prompt, len(text), same)
            )

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
        for _ in range(MOST_PROMPTS):
            if state.status != "waiting" or state.at is None:
                self.end = end_of(state) or self.end
                return
            here = rules.sockets[state.at.socket]
            if not here.socket.is_utility:
                yield state, entering.prompt_for(rules, state)
            for turn in turns_of(rules, here, state, answers.of(here)[0]):
                if turn.refused:
                    self.end = "no_answer"
                    return
                state = turn.step.state
            if given is not None:
                state = state._replace(data=with_items(state.data, answers.lists, given))
            if state.status == "ready":
                state = entering.enter(rules, state).state
        self.end = end_of(state) or self.end


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
