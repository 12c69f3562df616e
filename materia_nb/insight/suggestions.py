"""What outputs tell a person beside the handoff: suggestions to remember, and a report at the end.

The handoff protocol of a socket finds them in its outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from materia_nb.engine.rules import Rules
from materia_nb.engine.session import StepRecord
from materia_nb.errors import MateriaError
from materia_nb.handoff.base import AgentReport, HandoffProtocol, SuggestionKind
from materia_nb.jsonvalue import JSON

_SECTION: Final = "memory"
"""The section of the project's document that holds what a person kept."""


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
    kind: SuggestionKind
    fields: Mapping[str, str]
    kept: bool

    @property
    def entry(self) -> dict[str, JSON]:
        """What is kept of it."""
        return {"kind": self.kind, **self.fields}


def suggestions_of(rules: Rules, steps: Sequence[StepRecord], kept: Sequence[JSON]) -> list[Suggestion]:
    """Return what the accepted outputs suggest to remember, in order, each thing once."""
    found: list[Suggestion] = []
    entries: list[dict[str, JSON]] = []
    for step in steps:
        spoken = rules.sockets[step.socket].protocol
        for value in _accepted(step):
            for kind, fields in spoken.suggestions(value):
                one = Suggestion(len(found) + 1, step.number, kind, fields, kept=False)
                if one.entry not in entries:
                    entries.append(one.entry)
                    found.append(one._replace(kept=one.entry in kept))
    return found


def suggestion_at(found: list[Suggestion], number: int) -> Suggestion:
    """Return the suggestion of that number; raises MateriaError (``no_suggestion``)."""
    if type(number) is not int or not 1 <= number <= len(found):
        raise MateriaError(
            f"There is no suggestion {number!r}; the cast has {len(found)}.",
            hint="edit remember lists them, numbered from 1",
            kind="no_suggestion",
        )
    return found[number - 1]


def with_memory_entry(stored: Mapping[str, JSON], entry: JSON) -> dict[str, JSON]:
    """Return the project's document with an entry at the end of its section, once."""
    section = stored.get(_SECTION, [])
    if not isinstance(section, list):
        raise MateriaError(
            f"The section {_SECTION!r} of what is kept about the project is not a list.",
            hint="mend the section in the document, or rename it",
            kind="bad_context",
        )
    return {**stored, _SECTION: section if entry in section else [*section, entry]}


def conclusion_lines(rules: Rules, steps: Sequence[StepRecord]) -> list[str]:
    """Return what the last outputs of the agents tell a person at the end, a line each.

    An agent that worked on several items reports on each of them.
    """
    last = {(step.socket, step.item_key): step for step in steps}
    reports: dict[str, tuple[HandoffProtocol, list[AgentReport]]] = {}
    for step in last.values():
        socket_rules = rules.sockets[step.socket]
        name, spoken = socket_rules.protocol.name, socket_rules.protocol
        values = list(_accepted(step))
        if values:
            who = socket_rules.socket.materia.label + (f", {step.item_key}" if step.item_key else "")
            reports.setdefault(name, (spoken, []))[1].append(AgentReport(who, values[-1]))
    return [line for spoken, told in reports.values() for line in spoken.conclusion(told)]


def _accepted(step: StepRecord) -> Iterator[Mapping[str, JSON]]:
    for turn in step.turns:
        if turn.reading is not None and turn.reading.accepted and isinstance(turn.reading.value, dict):
            yield turn.reading.value
