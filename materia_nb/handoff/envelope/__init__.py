"""The handoff envelope: status, summary with evidence, concerns, assumptions and a wish for the route."""

from __future__ import annotations

from materia_nb.handoff.envelope.envelope_protocol import EnvelopeProtocol

__all__ = ["EnvelopeProtocol"]
