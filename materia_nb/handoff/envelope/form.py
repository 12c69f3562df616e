"""The form of an envelope as a JSON Schema, for models that can be held to one (envelope rules, section 1)."""

from __future__ import annotations

from typing import Final

from materia_nb.handoff.envelope.fields import RECOMMENDATIONS, SEVERITIES, STATUSES
from materia_nb.handoff.requirements import Requirements
from materia_nb.handoff.schemas import ANYTHING, TEXT, closed_object, listed_as, one_of
from materia_nb.handoff.sources import first_field
from materia_nb.jsonvalue import JSON

_EVIDENCE: Final = closed_object(
    {
        "artifacts_produced": listed_as(TEXT),
        "commands_run": listed_as(TEXT),
        "measurements": {"type": "object", "additionalProperties": {"type": "number"}},
    }
)
_FIELDS: Final[dict[str, JSON]] = {
    "status": one_of(STATUSES),
    "summary": closed_object(
        {
            "what_i_did": TEXT,
            "what_i_found": TEXT,
            "key_decisions": listed_as(TEXT),
            "evidence": _EVIDENCE,
        }
    ),
    "concerns": listed_as(
        closed_object(
            {
                "severity": one_of(SEVERITIES),
                "description": TEXT,
                "recommendation": TEXT,
                "location": TEXT,
            },
            optional=("location",),
        )
    ),
    "assumptions": listed_as(closed_object({"assumption": TEXT, "why": TEXT, "impact_if_wrong": TEXT})),
    "routing": closed_object(
        {
            "recommendation": one_of(RECOMMENDATIONS),
            "reason": TEXT,
            "next_step_suggestion": TEXT,
            "can_further_iteration_help": {"type": "boolean"},
        },
        optional=("next_step_suggestion", "can_further_iteration_help"),
    ),
}


def schema(wanted: Requirements) -> dict[str, JSON] | None:
    """Describe an envelope, and with it the fields that the socket's assignments read; None for a text socket."""
    if wanted.parse == "text":
        return None
    read = {name: ANYTHING for _, source in wanted.sources if (name := first_field(source))}
    read.pop("workItems", None)  # made from the concerns
    return closed_object({**read, **_FIELDS})
