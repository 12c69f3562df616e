"""The handoff envelope: status, summary with evidence, concerns, assumptions and a wish for the route."""

from __future__ import annotations

from materia_nb.handoff.envelope.ask import finalization_prompt, reissue_prompt
from materia_nb.handoff.envelope.files import Lookup, Names, Step, look_for, names, parse_name
from materia_nb.handoff.envelope.find import find
from materia_nb.handoff.envelope.finish import MOST_TRIES, fallback, finished, with_meta
from materia_nb.handoff.envelope.read import EnvelopeProtocol, read_object
from materia_nb.handoff.envelope.validate import envelope_of

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
