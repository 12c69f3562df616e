"""What agents suggest to remember: listed for a person, kept about the project only at a person's word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session
from materia_nb.errors import MateriaError
from materia_nb.handoff.contract import output_of
from materia_nb.jsonvalue import JSON

SECTION: Final = "memory"
"""The section of the project's document that holds what a person kept."""
_PROTOCOL: Final = "agent-contract"


class Suggestion(NamedTuple):
    """One thing that an agent suggests to remember.

    Attributes:
        number: its place in ``Cast.suggestions``, from 1.
        step: the step whose output suggests it.
        kind: ``memory`` with description, body and more; ``note`` with a text.
        fields: what it says, every value a text.
        kept: whether a person has kept it.
    """

    number: int
    step: int
    kind: Literal["memory", "note"]
    fields: Mapping[str, str]
    kept: bool

    @property
    def entry(self) -> dict[str, JSON]:
        """What is kept of it."""
        return {"kind": self.kind, **self.fields}


def suggestions_of(rules: Rules, session: Session) -> list[Suggestion]:
    """Return what the accepted contracts of a cast suggest to remember, in order, each thing once."""
    found: list[Suggestion] = []
    entries: list[dict[str, JSON]] = []
    for step, kind, fields in _suggested(rules, session):
        one = Suggestion(len(found) + 1, step, kind, fields, kept=False)
        if one.entry not in entries:
            entries.append(one.entry)
            found.append(one._replace(kept=one.entry in session.kept))
    return found


def suggestion(found: list[Suggestion], number: int) -> Suggestion:
    """Return the suggestion of that number; raises MateriaError (``no_suggestion``)."""
    if type(number) is not int or not 1 <= number <= len(found):
        raise MateriaError(
            f"There is no suggestion {number!r}; the cast has {len(found)}.",
            hint="suggestions lists them, numbered from 1",
            kind="no_suggestion",
        )
    return found[number - 1]


def with_entry(stored: Mapping[str, JSON], entry: JSON) -> dict[str, JSON]:
    """Return the project's document with an entry at the end of its section, once."""
    section = stored.get(SECTION, [])
    if not isinstance(section, list):
        raise MateriaError(
            f"The section {SECTION!r} of what is kept about the project is no list.",
            hint="mend the section in the document, or rename it",
            kind="bad_context",
        )
    return {**stored, SECTION: section if entry in section else [*section, entry]}


def _suggested(
    rules: Rules, session: Session
) -> Iterator[tuple[int, Literal["memory", "note"], Mapping[str, str]]]:
    for step in session.steps:
        if rules.sockets[step.socket].protocol.name != _PROTOCOL:
            continue
        for turn in step.turns:
            reading = turn.reading
            if reading is None or not reading.accepted or not isinstance(reading.value, dict):
                continue
            said = output_of(reading.value)
            for fields in said.memorialize_suggestions.suggestions:
                yield step.number, "memory", fields
            for note in said.memory_suggestions:
                yield step.number, "note", {"text": note}
