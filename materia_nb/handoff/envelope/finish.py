"""The envelope as it is kept: meta filled in, words in their proper form, and the one that claims nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from materia_nb.handoff.envelope.fields import META, Envelope
from materia_nb.handoff.protocol import Issue, TurnFacts
from materia_nb.jsonvalue import JSON, set_path

MOST_TRIES: Final = 3
"""How often an envelope is asked for in a turn, the first time included."""


def with_meta(value: Mapping[str, JSON], known: Mapping[str, str]) -> dict[str, JSON]:
    """Return the envelope with the meta fields that it lacks and the runtime knows."""
    given = value.get("meta")
    meta: dict[str, JSON] = dict(given) if isinstance(given, dict) else {}
    for name in META:
        if known.get(name) and not (isinstance(meta.get(name), str) and meta[name].strip()):
            meta[name] = known[name]
    return {**value, "meta": meta} if meta else dict(value)


def finished(value: Mapping[str, JSON], envelope: Envelope, known: Mapping[str, str]) -> dict[str, JSON]:
    """Return a valid envelope as it is kept: unknown fields too, words in upper case, meta filled in."""
    done = with_meta(value, known)
    done = set_path(done, ["status"], envelope.status)
    done = set_path(done, ["routing", "recommendation"], envelope.recommendation)
    if envelope.can_help is not None:
        done = set_path(done, ["routing", "can_further_iteration_help"], envelope.can_help)
    if envelope.concerns:
        done["concerns"] = [
            {**given, "severity": concern.severity}
            for given, concern in zip(value["concerns"], envelope.concerns, strict=True)
        ]
    return done


def fallback(facts: TurnFacts, issues: Sequence[Issue]) -> dict[str, JSON]:
    """Return the envelope that stands in for one that could not be had: it claims nothing.

    Its evidence is what the runtime itself saw change during the turn.
    """
    codes = ", ".join(issue.code or issue.path for issue in issues[:8])
    return with_meta(
        {
            "status": "UNVERIFIED",
            "summary": {
                "what_i_did": None,
                "what_i_found": f"No valid envelope was given in {facts.refused + 1} tries: {codes}.",
                "key_decisions": [],
                "evidence": {
                    "artifacts_produced": list(facts.changed_files),
                    "commands_run": [],
                    "measurements": {},
                },
            },
            "concerns": [],
            "assumptions": [],
            "routing": {
                "recommendation": "ESCALATE",
                "reason": "The step has no envelope of its own; a person must see what was done.",
            },
            "_envelope_source": "fallback",
        },
        facts.meta,
    )
