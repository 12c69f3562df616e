"""The numbers of a lesson that are the learner's own: drawn from a name, so that a neighbour's answers are others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, NamedTuple

from materia_nb.cast import Cast
from materia_nb.display.blocks import Block, Shown, Table, Text
from materia_nb.jsonvalue import JSON
from materia_nb.lessons.checks import LEARNER, Asked, is_missing, judged, kind_of
from materia_nb.lessons.misreadings import QUESTIONS, Ask, folded
from materia_nb.loadout import Graph


class Numbers(Shown):
    """What was drawn for one learner in one lesson; each is an attribute: ``mine.beds``.

    Args:
        lesson: the name of its notebook, such as ``03-loops``.
        learner: from whose name they are drawn; upper and lower case do not count.
        choices: what each is one of.
    """

    def __init__(self, lesson: str, learner: str, choices: Mapping[str, Iterable[Any]]) -> None:
        chance = Random(f"{lesson}:{learner.strip().casefold()}")  # noqa: S311 - chances, no secrets
        self._lesson, self._learner = lesson, learner.strip()
        self._drawn = {name: chance.choice(list(one)) for name, one in choices.items()}
        self._asks = {
            name: Ask(ask.form, folded(ask.explained, self), ask.varies)
            for name, ask in QUESTIONS.get(lesson, {}).items()
        }
        self._graph: Graph | None = None
        self._truths: dict[str, JSON] = {}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_drawn"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._drawn]

    def check(self, graph: Graph | None = None, /, **questions: Asked) -> Text:
        """Pass when every question is answered rightly; see :func:`materia_nb.lessons.check`.

        Args:
            graph: the loadout that is asked about, whose materia may be named in place of their sockets.
            questions: as :func:`materia_nb.lessons.check`.
        """
        self._graph, self._truths = graph, {name: asked[1] for name, asked in questions.items()}
        return judged(self._lesson, self._learner, self._asks, questions, graph)

    def form(self, **answers: object) -> Text:
        """Say what each answer is read as, and nothing of whether it is right: before it is handed in."""
        return Text("\n".join(_read_as(name, one, self._asks[name].form) for name, one in answers.items()))

    @property
    def _table(self) -> Table:
        rows = [(name, _word(one)) for name, one in self._drawn.items()]
        return Table(("name", f"for {self._learner}" if self._learner else "number"), rows)

    def _blocks(self) -> list[Block]:
        return [self._table]


def numbers(lesson: str, /, **choices: Iterable[Any]) -> Numbers:
    """Draw the numbers of a lesson for the learner whom ``MATERIA_LEARNER`` names; without one, the same for everybody.

    Args:
        lesson: the name of its notebook, such as ``03-loops``.
        choices: what each is one of: ``numbers("03-loops", beds=(3, 4, 5)).beds``.
    """
    return Numbers(lesson, os.environ.get(LEARNER, ""), choices)


class Key(NamedTuple):
    """What is right for one question of one learner, what is known of the question, and the loadout it is about."""

    truth: JSON
    ask: Ask
    graph: Graph | None = None


def key_of(mine: Numbers) -> dict[str, Key]:
    """Return what a lesson compared with when it was checked, by question."""
    asks, graph = mine._asks, mine._graph  # noqa: SLF001 - of this module, and nothing that a learner is offered
    return {name: Key(truth, asks[name], graph) for name, truth in mine._truths.items()}  # noqa: SLF001


def shortest_verdicts(play: Callable[..., Cast], goal: Callable[[Cast], object]) -> list[bool]:
    """Return the shortest list of verdicts with which a cast does what is wanted.

    Args:
        play: makes a cast whose agents take their verdicts from those given, one after another, and fail without one.
        goal: whether a cast that ran does it; the search has no end if none does.
    """
    tried: list[list[bool]] = [[]]
    for given in tried:  # grows while it is gone through
        cast = play(*given)
        cast.run()
        if goal(cast):
            return given
        if cast.failure is not None and cast.failure.kind == "agent_error":
            tried += [[*given, one] for one in (True, False)]
    raise ValueError("no verdicts do that")


def _word(one: object) -> str:
    return ", ".join(map(str, one)) if isinstance(one, list | tuple) else str(one)


def _read_as(name: str, answer: Any, form: str) -> str:
    if is_missing(answer):
        return f"\u25cb {name}: not answered yet; write {name} = and {form}"
    value: JSON = list(answer) if isinstance(answer, tuple) else answer
    size = f" of {len(value)}" if isinstance(value, list) else ""
    return f"\u00b7 {name}: {value!r}, {kind_of(value).split(',')[0]}{size}; asked for is {form}"
