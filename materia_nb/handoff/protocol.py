"""The interface that every handoff protocol implements, and what reading an output gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from materia_nb.handoff.requirements import Requirements
from materia_nb.jsonvalue import JSON

Action: TypeAlias = Literal["route", "reissue", "pause", "escalate", "detour", "reject"]


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with an output: where, what, and what to do."""

    path: str
    message: str
    fix: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What a protocol made of an output.

    Attributes:
        value: the parsed object (json), or the text itself (text); what ``$`` reads.
        error: None when accepted, ``not_json`` or ``contract`` when refused.
        issues: why it was refused, all of them.
        notes: remarks on an accepted output, such as prose around the object.
        satisfied: true, false, or None when the output says neither.
        context: text for the next socket, if any.
        work_items: the work items, if any were given.
        action: what the runtime does next; ``route`` follows the graph.
        target: the socket that a detour names.
    """

    value: JSON
    error: Literal["not_json", "contract"] | None = None
    issues: tuple[Issue, ...] = ()
    notes: tuple[str, ...] = ()
    satisfied: bool | None = None
    context: str | None = None
    work_items: JSON = None
    action: Action = "route"
    target: str | None = None
    warnings: tuple[Issue, ...] = field(default=())

    @property
    def accepted(self) -> bool:
        """Whether the step can be completed with this output."""
        return self.error is None


class HandoffProtocol(Protocol):
    """A handoff format: how an output is read and what its author is asked for."""

    name: str

    def read(self, text: str, wanted: Requirements) -> Reading:
        """Find, parse and validate ``text``; never raises, whatever the text."""
        ...

    def ask(self, wanted: Requirements) -> str:
        """Return the prompt layer that says what must be returned; empty for a text socket."""
        ...
