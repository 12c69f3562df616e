"""What protocols share: the gist that formats have in common, words of JSON Schema, and parts of an output as text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.handoff.protocol import Issue
from materia_nb.handoff.requirements import Requirements, reader
from materia_nb.jsonvalue import JSON, MISSING, compact

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


TEXT: Final[JSON] = {"type": "string"}
ANYTHING: Final[JSON] = {}
"""Any value at all; only an assignment says what it reads from it."""


def closed_object(fields: Mapping[str, JSON], optional: tuple[str, ...] = ()) -> dict[str, JSON]:
    """Describe an object that has these fields and no others."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": [name for name in fields if name not in optional],
        "additionalProperties": False,
    }


def listed_as(entry: JSON) -> dict[str, JSON]:
    """Describe a list whose entries are all of one form."""
    return {"type": "array", "items": entry}


def one_of(words: tuple[str, ...]) -> dict[str, JSON]:
    """Describe a string that is one of these words."""
    return {"type": "string", "enum": list(words)}


WORK_IS_OVER: Final = "Your work on this step is over. Do no further work; say what you did and found."
"""What the turn begins with that asks for a handoff, after the work and in the same conversation."""

_SHOWN: Final = 20
"""How many entries of a list are named; the whole list stays in the recorded output."""


def one_line(text: str) -> str:
    """Return the text with its white space collapsed."""
    return " ".join(text.split())


def as_text(value: JSON) -> str:
    """Return a string as it is, anything else as JSON on one line."""
    return value if isinstance(value, str) else compact(value)


def named(title: str, entries: Iterable[str]) -> Iterator[str]:
    """Yield one line that names the entries, blank ones left out; nothing when there are none."""
    kept = [one_line(entry) for entry in entries if entry.strip()]
    if kept:
        more = f" and {len(kept) - _SHOWN} more" if len(kept) > _SHOWN else ""
        yield f"{title}: {'; '.join(kept[:_SHOWN])}{more}"


def listed(issues: Iterable[Issue]) -> str:
    """Return what an agent is told of its issues, a line each."""
    return "\n".join(f"- {issue.code or issue.path}: {issue.message} {issue.fix}." for issue in issues)


def missing_sources(value: JSON, wanted: Requirements, told: Collection[str] = ()) -> Iterator[Issue]:
    """Yield an issue for each ``$`` source of the socket that ``value`` lacks, except those in ``told``.

    The work items of a generator are always assigned and told of by its protocol (R4).
    """
    seen = {*told, *(("$.workItems",) if wanted.work_items else ())}
    for target, source in wanted.sources:
        if source not in seen and reader(source)(value) is MISSING:
            seen.add(source)
            yield Issue(
                source,
                f"{source} is missing: it is assigned to state.{target}.",
                "add it; null is a value too",
            )
