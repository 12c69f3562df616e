"""The parts of a handoff envelope, as plain values once they are checked (envelope rules, section 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from materia_nb.jsonvalue import JSON

STATUSES: Final = ("VERIFIED", "UNVERIFIED", "BLOCKED")
RECOMMENDATIONS: Final = ("CONTINUE", "LOOP", "DETOUR", "ESCALATE")
SEVERITIES: Final = ("HIGH", "MEDIUM", "LOW")
IDENTITY: Final = ("step_id", "flow_key", "agent_key")
"""The fields of meta that must be the runtime's own."""
META: Final = (*IDENTITY, "timestamp")


@dataclass(frozen=True, slots=True)
class Concern:
    """Something that is or may be wrong; every text is "" when it was not given."""

    severity: str
    description: str
    location: str
    recommendation: str


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something that was taken for granted, why, and what follows if it is wrong."""

    assumption: str
    why: str
    impact: str


@dataclass(frozen=True, slots=True)
class Envelope:
    """What an envelope says: words in upper case, blank and absent texts as "", absent lists empty."""

    status: str = ""
    did: str = ""
    found: str = ""
    decisions: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    measurements: Mapping[str, JSON] | None = None
    concerns: tuple[Concern, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    recommendation: str = ""
    reason: str = ""
    suggestion: str = ""
    can_help: bool | None = None

    @property
    def has_evidence(self) -> bool:
        """Whether anything can be looked up: an artifact, a command, a measurement or a place."""
        measured = (self.measurements or {}).values()
        return (
            any(text.strip() for text in (*self.artifacts, *self.commands))
            or any(
                value is not None and not (isinstance(value, str) and not value.strip()) for value in measured
            )
            or any(concern.location for concern in self.concerns)
        )
