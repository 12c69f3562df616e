"""Cells that check an answer: the truth comes from a cast, and a wrong answer is told what is wrong with it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from types import EllipsisType
from typing import Final, TypeAlias

from materia_nb.display.bundle import Text
from materia_nb.display.escape import shorten
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.lessons.guessbook import keep
from materia_nb.lessons.misreadings import ANY, MISREADINGS

Asked: TypeAlias = tuple[object, JSON] | tuple[object, JSON, str]
"""An answer, the right one, and a line of code that shows how it went."""

_KINDS: Final = (
    (bool, "True or False"),
    (int, "a whole number"),
    (str, "text in quotes, such as 'Socket-1'"),
    (list, "a list, such as ['Socket-1', 'end']"),
    (dict, "an object, such as {'a': 1}"),
)


class Sealed:
    """The answer that a lesson brings with it, in a form that is not read at a glance.

    It stands where a learner's answer belongs, and does not count as one.
    """

    def __init__(self, seal: str) -> None:
        self._seal = seal

    def open(self) -> JSON:
        """Return the answer.

        Raises:
            MateriaError: the seal is not one that :func:`seal` made (``bad_seal``).
        """
        try:
            value: JSON = json.loads(base64.b64decode(self._seal, validate=True))
        except (binascii.Error, ValueError):
            raise MateriaError(
                "This sealed answer cannot be opened.",
                hint="put your own answer in its place: x = 'Socket-1'",
                kind="bad_seal",
            ) from None
        return value

    def __repr__(self) -> str:
        return "<sealed>"


def sealed(seal: str) -> Sealed:
    """Take a sealed answer; put your own in its place."""
    return Sealed(seal)


def seal(answer: JSON) -> str:
    """Make the seal of an answer, for those who write a lesson."""
    return base64.b64encode(json.dumps(answer, separators=(",", ":")).encode()).decode()


def check(lesson: str = "", /, **questions: Asked) -> Text:
    """Pass when every question is answered, and answered rightly; otherwise tell all that is missing or wrong.

    What was answered is kept in the learner's file of guesses.

    Args:
        lesson: whose explanations of wrong answers are used: the name of its notebook, such as ``03-loops``.
        questions: under the variable that an answer stands in, the answer and the right one, taken from a cast:
            ``check(next_socket=(next_socket, cast.route[1][0]))``; and, as a third, a line of code that shows
            how it went. ``...``, None and a sealed answer are no answer.

    Raises:
        MateriaError: an answer is wrong (``wrong_answer``) or missing (``no_answer``); it says what is wrong
            with each, and not what the right one is.
    """
    return judged(lesson, "", MISREADINGS.get(lesson, {}), questions)


def mark(lesson: str, name: str, answer: object, truth: JSON) -> Text:
    """Pass when one question is answered rightly; the tests of an assignment are made of it.

    Raises:
        MateriaError: as :func:`check`.
    """
    return judged(lesson, "", MISREADINGS.get(lesson, {}), {name: (answer, truth)})


def judged(
    lesson: str, seed: str, known: Mapping[str, Mapping[str, str]], questions: Mapping[str, Asked]
) -> Text:
    """Do what :func:`check` does, with the explanations that are given; ``seed`` is kept with the answers."""
    missing = {name for name, (answer, *_) in questions.items() if _is_missing(answer)}
    right = {
        name
        for name, (answer, truth, *_) in questions.items()
        if name not in missing and _same(answer, truth)
    }
    lines = []
    for name, asked in questions.items():
        if name not in missing:
            keep(lesson, name, asked[0], right=name in right, seed=seed)
        if name in right:
            lines.append(f"\u2713 {name} is right")
        elif name in missing:
            lines.append(f"\u25cb {name}: not answered yet; write {name} = and {_kind(asked[1])}")
        else:
            lines += _told_wrong(name, asked, known.get(name, {}))
    if len(right) == len(questions):
        return Text("\n".join(lines))
    wrong = len(questions) - len(right) - len(missing)
    counts = [
        f"{count} {word}" for count, word in ((wrong, "wrong"), (len(missing), "not answered yet")) if count
    ]
    raise MateriaError(
        "\n".join([f"{len(right)} of {len(questions)} right, {', '.join(counts)}.", *lines]),
        hint="put your answers into the cell above, run it, and check again",
        kind="wrong_answer" if wrong else "no_answer",
    )


def _told_wrong(name: str, asked: Asked, explained: Mapping[str, str]) -> list[str]:
    answer, truth = asked[0], asked[1]
    because = [_what_is_wrong(answer, truth)]
    if type(answer) is type(truth):
        because.append(explained.get(_key(answer)) or explained.get(ANY, ""))
    lines = [f"\u2717 {name}: {shorten(repr(answer), 80)} is not right."]
    lines += [f"    {words}" for words in because if words]
    if len(asked) == 3:
        lines.append(f"    to see how it went: {asked[2]}")
    return lines


def _what_is_wrong(given: object, truth: JSON) -> str:
    """Say what is wrong without giving the answer away."""
    if type(given) is not type(truth):
        return f"The answer is {_kind(truth)}."
    if isinstance(given, list) and isinstance(truth, list):
        pairs = zip(given, truth, strict=False)
        same = [_folded(one) == _folded(other) for one, other in pairs]
        right = same.index(False) if False in same else len(same)
        if right == 0:
            return "It goes wrong at the first."
        return "Its first is right." if right == 1 else f"Its first {right} are right."
    return ""


def _is_missing(answer: object) -> bool:
    return answer is None or isinstance(answer, EllipsisType | Sealed)


def _same(answer: object, truth: JSON) -> bool:
    return type(answer) is type(truth) and _folded(answer) == _folded(truth)


def _kind(truth: JSON) -> str:
    if isinstance(truth, list) and all(isinstance(one, bool) for one in truth):
        return "a list, such as [True, False]"
    return next((words for kind, words in _KINDS if isinstance(truth, kind)), "a value")


def _key(answer: object) -> str:
    """An answer as the table of misreadings spells it."""
    return str(_folded(answer))


def _folded(value: object) -> object:
    """A value as it is compared: upper and lower case do not count, nor do spaces around a word."""
    if isinstance(value, str):
        return value.strip().casefold()
    return [_folded(one) for one in value] if isinstance(value, list) else value
