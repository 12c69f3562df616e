"""The handoff envelope and its gist."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from materia_nb.handoff.envelope.fields import Concern, Envelope
from materia_nb.handoff.envelope.project import item_context
from materia_nb.handoff.envelope.validate import validate
from materia_nb.handoff.gist import NO_REASON, Gist, Outcome, Piece
from materia_nb.jsonvalue import JSON

_PLAIN: Final = "MEDIUM"
"""The severity of work that comes with none."""

_DETAILS = re.compile(
    r"severity: (?P<severity>HIGH|MEDIUM|LOW)\n(?:location: (?P<place>[^\n]+)\n)?recommendation: (?P<advice>.*)",
    re.DOTALL,
)
_ROUTES: Final[dict[Outcome, tuple[str, str, bool | None]]] = {
    "done": ("VERIFIED", "CONTINUE", None),
    "accepted": ("UNVERIFIED", "CONTINUE", False),
    "again": ("UNVERIFIED", "LOOP", True),
    "open": ("UNVERIFIED", "CONTINUE", None),
    "stuck": ("BLOCKED", "ESCALATE", None),
}


def to_gist(value: Mapping[str, JSON]) -> Gist:
    """Return what an envelope says; fields that are not valid say nothing."""
    envelope = validate(value, {}, profile="fragment").envelope
    meta = value.get("meta")
    agent = meta.get("agent_key") if isinstance(meta, dict) else None
    return Gist(
        outcome=_outcome(envelope),
        did=envelope.did,
        found=envelope.found,
        pieces=tuple(_piece(concern) for concern in envelope.concerns if concern.description),
        commands=envelope.commands,
        reason=envelope.reason,
        agent=agent if isinstance(agent, str) else "",
    )


def from_gist(gist: Gist) -> dict[str, JSON]:
    """Write a gist as an envelope; it claims no evidence that the gist does not have."""
    status, recommendation, can_help = _ROUTES[gist.outcome]
    routing: dict[str, JSON] = {"recommendation": recommendation, "reason": gist.reason or NO_REASON}
    if can_help is not None:
        routing["can_further_iteration_help"] = can_help
    value: dict[str, JSON] = {
        "status": status,
        "summary": {
            "what_i_did": gist.did or None,
            "what_i_found": gist.found or None,
            "key_decisions": [],
            "evidence": {
                "artifacts_produced": [],
                "commands_run": list(gist.commands),
                "measurements": {},
            },
        },
        "concerns": [_concern(piece) for piece in gist.pieces],
        "assumptions": [],
        "routing": routing,
    }
    return {"meta": {"agent_key": gist.agent}, **value} if gist.agent else value


def _outcome(envelope: Envelope) -> Outcome:
    wish, can_help = envelope.recommendation, envelope.can_help
    if envelope.status == "VERIFIED":
        return "done"
    if envelope.status == "BLOCKED" or wish == "ESCALATE" or (wish == "LOOP" and can_help is False):
        return "stuck"
    if wish == "LOOP":
        return "again"
    return "accepted" if wish == "CONTINUE" and can_help is not None else "open"


def _piece(concern: Concern) -> Piece:
    plain = concern.severity == _PLAIN and not concern.location
    return Piece(concern.description, concern.recommendation if plain else item_context(concern))


def _concern(piece: Piece) -> JSON:
    details = _DETAILS.fullmatch(piece.context)
    if details is None:
        return {"severity": _PLAIN, "description": piece.title, "recommendation": piece.context}
    place = {"location": details["place"]} if details["place"] else {}
    return {
        "severity": details["severity"],
        "description": piece.title,
        **place,
        "recommendation": details["advice"],
    }
