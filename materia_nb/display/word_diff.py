"""Two texts beside one another, word by word: what was taken out, what was put in, and some of what is the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, TypeAlias

Parts: TypeAlias = tuple[tuple[str, str], ...]
"""Pieces of two texts in order, each behind ``-`` where only the first has it, ``+`` the second, a blank where both do."""

_WORD: Final = re.compile(r"\w+|\s+|.")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_MOST_WORDS: Final = 800
"""Stretches of more words are compared by their lines alone: the time grows with the square."""
_AROUND: Final = 120
"""How many characters of what is the same are kept on either side of a change."""


@lru_cache(64)  # an open panel draws the same texts at every frame
def word_parts(a: str, b: str) -> Parts:
    """Return the pieces of two texts; of what is the same only some characters around a change."""
    found: list[tuple[str, str]] = []
    for sign, text in _by_line(a, b):
        if found and found[-1][0] == sign:
            found[-1] = sign, found[-1][1] + text
        elif text:
            found.append((sign, text))
    last = len(found) - 1
    return tuple(
        (sign, text if sign != " " else _around(text, first=not place, last=place == last))
        for place, (sign, text) in enumerate(found)
    )


def _by_line(a: str, b: str) -> Iterator[tuple[str, str]]:
    """Match whole lines first, and only what differs by its words."""
    for old, new, same in _matched(_LINE.findall(a), _LINE.findall(b)):
        if same:
            yield " ", old
            continue
        words = _WORD.findall(old), _WORD.findall(new)
        if max(map(len, words)) > _MOST_WORDS:
            yield from (("-", old), ("+", new))
            continue
        for out, put, both in _matched(*words):
            yield from [(" ", out)] if both else [("-", out), ("+", put)]


def _matched(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Give stretches of both with whether they are the same; a blank between two changes is no reason to part them."""
    left: list[str] = []
    right: list[str] = []
    for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        both = "".join(a[i:j])
        if (kind == "equal" and not (left or right)) or (kind == "equal" and both.strip()):
            if left or right:
                yield "".join(left), "".join(right), False
                left, right = [], []
            yield both, both, True
        else:
            left += a[i:j]
            right += b[k:m]
    if left or right:
        yield "".join(left), "".join(right), False


def _around(text: str, *, first: bool, last: bool) -> str:
    """Keep the end of what stands before a change and the beginning of what stands behind one."""
    if len(text) <= 3 * _AROUND:
        return text
    before = "" if first else text[:_AROUND]
    return f"{before} … {'' if last else text[-_AROUND:]}"
