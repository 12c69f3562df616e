"""Thinking is not an answer (R49): one leading block of it is parted from what a model or a program replies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

TAGS: Final = ("<think>", "</think>")
"""What a block of thinking stands between, where nothing else is known of the model."""

LONGEST: Final = 65_536
"""How many bytes of a turn's thinking are kept."""

ENDLESS: Final = "its thinking had no end"
"""Why a reply was cut that has thinking and nothing else (R52)."""


class Parted(NamedTuple):
    """A reply, parted: the answer, the thinking before it, and whether that had an end."""

    text: str
    thinking: str = ""
    ended: bool = True


def part_thinking(text: str, tags: tuple[str, str] = TAGS) -> Parted:
    """Take one leading block of thinking off a text, between ``tags`` or the usual ones; else it stays as it is.

    A block that does not end is all there is: no answer is left.
    """
    found = text.lstrip("\ufeff \t\r\n")
    for begin, end in dict.fromkeys((tags, TAGS)):
        if found.startswith(begin):
            thinking, ended, answer = found.removeprefix(begin).partition(end)
            return Parted(answer.strip(), thinking.strip(), bool(ended))
    return Parted(text)


def joined(thoughts: Iterable[str]) -> str:
    """Put what was thought in several answers of one turn together."""
    return "\n\n".join(filter(None, (one.strip() for one in thoughts)))


def kept(thinking: str) -> str:
    """Return as much of the thinking as is kept, and say where it was cut."""
    data = thinking.encode()
    if len(data) <= LONGEST:
        return thinking
    told = f"\n[cut: {len(thinking):,} characters in all]"
    return data[: LONGEST - len(told.encode())].decode(errors="ignore") + told
