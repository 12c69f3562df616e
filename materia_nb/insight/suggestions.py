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
from materia_nb.jsonvalue import JSON, compact

_SECTION: Final = "memory"
"""The section of the project's document with the suggestions that a person kept."""


class Suggestion(NamedTuple):
    """A memory or note that an agent suggests to keep.

    Attributes:
        number: its number in ``Cast.suggestions``, from 1.
        step: the step whose output suggests it.
        kind: ``memory`` with description, body and more; ``note`` with a text.
        fields: its content, all values are texts.
        kept: True if a person has kept it.
    """

    number: int
    step: int
    kind: SuggestionKind
    fields: Mapping[str, str]
    kept: bool

    @property
    def entry(self) -> dict[str, JSON]:
        """The entry in the project's document."""
        return {"kind": self.kind, **self.fields}


def suggestions_of(rules: Rules, steps: Sequence[StepRecord], kept: Sequence[JSON]) -> list[Suggestion]:
    """Return the suggestions of the accepted outputs, in order, each once."""
    suggestions: dict[str, Suggestion] = {}
    for step in steps:
        protocol = rules.sockets[step.socket].protocol
        for value in _accepted_values(step):
            for kind, fields in protocol.suggestions(value):
                new = Suggestion(len(suggestions) + 1, step.number, kind, fields, kept=False)
                suggestions.setdefault(compact(new.entry), new._replace(kept=new.entry in kept))
    return list(suggestions.values())


def suggestion_at(suggestions: Sequence[Suggestion], number: int) -> Suggestion:
    """Return the suggestion with that number; raise MateriaError (``no_suggestion``) if there is none."""
    if type(number) is not int or not 1 <= number <= len(suggestions):
        raise MateriaError(
            f"There is no suggestion {number!r}; the cast has {len(suggestions)}.",
            hint="list them with edit remember; they are numbered from 1",
            kind="no_suggestion",
        )
    return suggestions[number - 1]


def with_memory_entry(document: Mapping[str, JSON], entry: JSON) -> dict[str, JSON]:
    """Return the project's document with an entry at the end of its section, once."""
    section = document.get(_SECTION, [])
    if not isinstance(section, list):
        raise MateriaError(
            f"The section {_SECTION!r} of the project's document is not a list.",
            hint="fix the section in the document, or rename it",
            kind="bad_context",
        )
    return {**document, _SECTION: section if entry in section else [*section, entry]}


def conclusion_lines(rules: Rules, steps: Sequence[StepRecord]) -> list[str]:
    """Return the report for a person at the end of a cast, from the last output of each agent.

    An agent that worked on several items reports on each of them.
    """
    last_steps = {(step.socket, step.item_key): step for step in steps}
    reports: dict[str, tuple[HandoffProtocol, list[AgentReport]]] = {}
    for step in last_steps.values():
        socket_rules = rules.sockets[step.socket]
        protocol, values = socket_rules.protocol, list(_accepted_values(step))
        if values:
            author = socket_rules.socket.materia.label + (f", {step.item_key}" if step.item_key else "")
            _, protocol_reports = reports.setdefault(protocol.name, (protocol, []))
            protocol_reports.append(AgentReport(author, values[-1]))
    return [
        line
        for protocol, protocol_reports in reports.values()
        for line in protocol.conclusion(protocol_reports)
    ]


def _accepted_values(step: StepRecord) -> Iterator[Mapping[str, JSON]]:
    for turn in step.turns:
        if turn.reading is not None and turn.reading.accepted and isinstance(turn.reading.value, dict):
            yield turn.reading.value
