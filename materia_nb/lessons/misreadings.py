"""The questions of the lessons: the form of an answer, and what a wrong one shows to have been misread.

It is here and not in the notebooks, where it would tell the answers to whoever looks at the check cell.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from materia_nb.file_io import read_own

ANY: Final = "*"
"""Any other wrong answer."""


class Ask(NamedTuple):
    """What is known of a question.

    Attributes:
        form: what an answer looks like, in words.
        explained: what a wrong answer, or one that follows from the learner's own numbers, shows to have been misread.
        varies: whether the right answer follows from the learner's own numbers, so that it can be marked.
    """

    form: str
    explained: Mapping[str, str] = {}
    varies: bool = True


def fold(value: object) -> object:
    """Return a value as answers are compared: upper and lower case do not count, nor do spaces around a word."""
    if isinstance(value, str):
        return value.strip().casefold()
    return [fold(one) for one in value] if isinstance(value, list | tuple) else value


def folded(explained: Mapping[str, str], numbers: object) -> Mapping[str, str]:
    """Return explanations by the wrong answers as texts; ``numbers`` are the learner's own, which the file calls ``n``."""
    names = {"n": numbers, "sorting": _sorting}
    return {key if key == ANY else str(fold(_value(key, names))): words for key, words in explained.items()}


def _value(key: str, names: dict[str, object]) -> object:
    return eval(key, names)  # noqa: S307 - written in a file of this package


def _sorting(n: Any, *, ask_first: bool = True) -> list[str]:
    """The route of lesson 1; or that of whoever takes the last edge of Ask, whatever is said."""
    route = ["Socket-1"] if n.sort else ["Socket-1", "Socket-2"]
    if n.sort or (n.ask and ask_first):
        route.append("Socket-3")
        return route if n.file else [*route, "Socket-4"]
    return [*route, "Socket-4"]


def _read() -> dict[str, dict[str, Ask]]:
    lessons = tomllib.loads(read_own(Path(__file__).with_suffix(".toml")))
    return {
        lesson: {
            name: Ask(given["form"], dict(given.get("explained", [])), given.get("varies", True))
            for name, given in questions.items()
        }
        for lesson, questions in lessons.items()
    }


QUESTIONS: Final[Mapping[str, Mapping[str, Ask]]] = _read()
"""By lesson and question."""
