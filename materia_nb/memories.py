"""What agents suggest to remember: listed for a person, kept about the project only at a person's word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

from materia_nb.errors import MateriaError
from materia_nb.handoff.contract import output_of
from materia_nb.jsonvalue import JSON
from materia_nb.steps import Steps
from materia_nb.store.context import change_context

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


class Memories(Steps):
    """The part of a cast that lists and keeps suggestions; ``Cast`` is the class to use."""

    @property
    def suggestions(self) -> list[Suggestion]:
        """What the accepted contracts of this cast suggest to remember, in order, each thing once."""
        found: list[Suggestion] = []
        entries: list[dict[str, JSON]] = []
        for step, kind, fields in self._suggested():
            one = Suggestion(len(found) + 1, step, kind, fields, kept=False)
            if one.entry not in entries:
                entries.append(one.entry)
                found.append(one._replace(kept=one.entry in self._history.kept))
        return found

    def remember(self, number: int) -> Suggestion:
        """Keep a suggestion in what is known about the project; later casts are told of it.

        Raises:
            MateriaError: there is no such suggestion (``no_suggestion``), it cannot be written, or the
                section of the document that it goes to is no list (``bad_context``).
        """
        with self._hold():
            self._begin()
            found = self.suggestions
            if type(number) is not int or not 1 <= number <= len(found):
                raise MateriaError(
                    f"There is no suggestion {number!r}; the cast has {len(found)}.",
                    hint="suggestions lists them, numbered from 1",
                    kind="no_suggestion",
                )
            chosen = found[number - 1]
            if chosen.kept:
                return chosen
            # The document first: keeping the same thing twice does nothing, while a journal that says it is
            # kept when it is not would lose it.
            change_context(self.run_dir.parent, lambda stored: _with(stored, chosen.entry))
            event: dict[str, JSON] = {"step": chosen.step, "suggestion": chosen.entry, "by": "person"}
            self._commit([("suggestion_kept", event)], lambda _: self._history.remembered(chosen.entry))
            self._told()
            return chosen._replace(kept=True)

    def _suggested(self) -> Iterator[tuple[int, Literal["memory", "note"], Mapping[str, str]]]:
        for step in self.steps:
            if self.rules.sockets[step.socket].protocol.name != _PROTOCOL:
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


def _with(stored: Mapping[str, JSON], entry: JSON) -> dict[str, JSON]:
    """Return the document with an entry at the end of its section, once."""
    section = stored.get(SECTION, [])
    if not isinstance(section, list):
        raise MateriaError(
            f"The section {SECTION!r} of what is kept about the project is no list.",
            hint="mend the section in the document, or rename it",
            kind="bad_context",
        )
    return {**stored, SECTION: section if entry in section else [*section, entry]}
