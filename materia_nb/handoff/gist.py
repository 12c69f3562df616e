"""The gist of a handoff: what at least two formats can say, by which one is turned into another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

Outcome: TypeAlias = Literal["done", "accepted", "again", "open", "stuck"]

NO_REASON: Final = "No reason was given."
"""Stands where a format demands words and the other had none."""

_DONE: Final = "Done: "
_FOUND: Final = "\nFound: "


class Piece(NamedTuple):
    """A piece of work that is left: its title, and what one needs to know to do it."""

    title: str
    context: str


@dataclass(frozen=True, slots=True)
class Gist:
    """What a handoff says, whatever its format; "" and () where it says nothing.

    Attributes:
        outcome: ``done`` and checked, ``accepted`` though not checked, to be done ``again``,
            ``open`` when it does not say, ``stuck`` when it cannot go on alone.
        did: what was done.
        found: what was found out.
        pieces: work that is left.
        commands: the commands that were run.
        reason: why the work goes on as it does.
        agent: who handed over.
    """

    outcome: Outcome = "open"
    did: str = ""
    found: str = ""
    pieces: tuple[Piece, ...] = ()
    commands: tuple[str, ...] = ()
    reason: str = ""
    agent: str = ""


def joined(did: str, found: str) -> str:
    """Write what was done and found as one text; :func:`parted` takes it apart again."""
    if not did:
        return found
    return f"{_DONE}{did}{_FOUND}{found}" if found else f"{_DONE}{did}"


def parted(text: str) -> tuple[str, str]:
    """Return what was done and what was found; a text of another form is what was found."""
    if not text.startswith(_DONE):
        return "", text
    did, _, found = text.removeprefix(_DONE).partition(_FOUND)
    return did, found
