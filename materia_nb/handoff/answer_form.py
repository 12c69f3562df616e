"""The form of an answer: what is legal in a turn as one line to copy, and its own words, which are no answer (R51)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, Protocol, runtime_checkable

from materia_nb.handoff.protocol import UNKNOWN, Issue, TurnFacts
from materia_nb.handoff.requirements import Requirements
from materia_nb.jsonvalue import JSON

LONGEST_FORM: Final = 600
LONGEST_SHORT_FORM: Final = 300
"""How many characters a form may have, and the one of a later turn of the same conversation (R50, R51)."""
FORM_WORDS: Final = "form_words"
_BLANK = re.compile(r"<?(?:\.{3}|…)>?|<[^\W\d][\w,'-]*(?: [\w,'-]+)+>?")
"""The dots of an example, or nothing but words after ``<``: a form's own, or a weak model's variation of it."""


@runtime_checkable
class FormsByTurn(Protocol):
    """A protocol that asks for what is legal in this very turn; others ask for the same in each."""

    def form(self, wanted: Requirements, facts: TurnFacts = UNKNOWN, *, short: bool = False) -> str:
        """Return what the agent is told to return, at most 600 characters, ``short`` 300; empty for a text socket."""
        ...


@runtime_checkable
class ResumesAfterAnswers(Protocol):
    """A protocol in which an agent that a person has answered must report in a certain way next."""

    @property
    def after_answer(self) -> str:
        """What the agent is told behind the answer."""
        ...


def within(lines: Sequence[str], most: int) -> str:
    """Join lines, the last ones left out as far as they do not fit; the first is always there."""
    kept, room = list(lines[:1]), most - len(lines[0])
    for line in filter(None, lines[1:]):
        if len(line) + 1 <= room:
            kept.append(line)
            room -= len(line) + 1
    return "\n".join(kept)


def as_many(start: str, entries: Sequence[str], room: int) -> str:
    """List as many entries behind ``start`` as there is room for; empty where not even the first one fits."""
    for count in range(len(entries), 0, -1):
        more = "." if count == len(entries) else ", …"
        line = f"{start}{', '.join(entries[:count])}{more}"
        if len(line) <= room:
            return line
    return ""


def form_words(value: JSON, words: Collection[str], path: str = "$") -> Iterator[Issue]:
    """Yield an issue for each field of an answer that still holds the form's own words, words like them, or dots."""
    if isinstance(value, str):
        text = value.strip()
        if text in words or _BLANK.fullmatch(text):
            yield Issue(
                path,
                f"This is the text of a form, {text!r:.200}, and no answer.",
                "write what it asks for, or leave the field out if it may be left out",
                FORM_WORDS,
            )
    elif isinstance(value, dict):
        for name, child in value.items():
            yield from form_words(child, words, f"{path}.{name}")
    elif isinstance(value, list):
        for place, child in enumerate(value):
            yield from form_words(child, words, f"{path}.{place}")
