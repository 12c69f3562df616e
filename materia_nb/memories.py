"""What agents suggest to remember: listed for a person, kept about the project only at a person's word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from materia_nb.accepted import Suggestion
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.steps import Steps
from materia_nb.store.context import change_context

SECTION: Final = "memory"
"""The section of the project's document that holds what a person kept."""


class Memories(Steps):
    """The part of a cast that keeps suggestions; ``Cast`` is the class to use."""

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
