"""The handoff envelope: status, summary with evidence, concerns, assumptions and a wish for the route."""

from __future__ import annotations

from materia_nb.handoff.envelope.envelope_check import envelope_of
from materia_nb.handoff.envelope.envelope_protocol import (
    MOST_TRIES,
    EnvelopeProtocol,
    fallback,
    finalization_prompt,
    find,
    finished,
    read_object,
    reissue_prompt,
    with_meta,
)
from materia_nb.handoff.filing import Lookup, Names, Step, look_for, names, parse_name

__all__ = [
    "MOST_TRIES",
    "EnvelopeProtocol",
    "Lookup",
    "Names",
    "Step",
    "envelope_of",
    "fallback",
    "finalization_prompt",
    "find",
    "finished",
    "look_for",
    "names",
    "parse_name",
    "read_object",
    "reissue_prompt",
    "with_meta",
]
