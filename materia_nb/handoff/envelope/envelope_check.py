"""The parts of a handoff envelope, and checking them field by field (envelope rules, sections 1 and 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.handoff.checker import Check, Field, Fields, is_blank, is_null
from materia_nb.handoff.protocol import Issue
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


def _upper(word: str) -> str:
    return word.strip().upper()


def _said(missing: str = "", *, optional: bool = False) -> Field:
    """A text; ``missing`` is the code of one that is not there or blank, none where it may be left out."""
    return Field("text", missing, "say it in words", optional=optional)


def _one_of(words: tuple[str, ...], code: str, missing: str = "") -> Field:
    """A word; a blank one is missing where that has a code of its own, else none of the words."""
    return Field("word", missing or code, "", is_blank if missing else is_null, words, code, _upper)


_SUMMARY: Final[Fields] = {
    "what_i_did": _said(),
    "what_i_found": _said(),
    "key_decisions": Field("texts"),
    "evidence": Field(
        "object",
        fields={
            "artifacts_produced": Field("texts"),
            "commands_run": Field("texts"),
            "measurements": Field("numbers"),
        },
    ),
}
FIELDS: Final[Fields] = {
    "status": _one_of(STATUSES, "STATUS"),
    "summary": Field("object", "SUMMARY", "add it, an object", fields=_SUMMARY),
    "concerns": Field(
        "objects",
        fields={
            "severity": _one_of(SEVERITIES, "SEVERITY", "CONCERN:{place}.severity"),
            "description": _said("CONCERN:{place}.description"),
            "recommendation": _said("CONCERN:{place}.recommendation"),
            "location": _said(optional=True),
        },
    ),
    "assumptions": Field(
        "objects",
        fields={
            name: _said(f"ASSUMPTION:{{place}}.{name}") for name in ("assumption", "why", "impact_if_wrong")
        },
    ),
    "routing": Field(
        "object",
        "ROUTING",
        "add it, an object",
        fields={
            "recommendation": _one_of(RECOMMENDATIONS, "RECOMMENDATION"),
            "reason": _said("ROUTING_REASON"),
            "next_step_suggestion": _said(optional=True),
            "can_further_iteration_help": Field("flag", optional=True),
        },
    ),
}
"""The fields of an envelope but for meta, which is the runtime's (sections 1 and 3)."""

Profile: TypeAlias = Literal["final", "fragment"]
Channel: TypeAlias = Literal["text", "structured", "file"]

_YES_NO: Final = {"yes": True, "true": True, "no": False, "false": False}


class Checked(NamedTuple):
    """The envelope as far as it could be read, why it is refused, and what is odd about it."""

    envelope: Envelope
    issues: tuple[Issue, ...]
    warnings: tuple[Issue, ...]

    @property
    def foreign(self) -> bool:
        """Whether the envelope names another step, flow or agent than the runtime's."""
        return any((issue.code or "").startswith("META_MISMATCH:") for issue in self.issues)


def validate(
    value: Mapping[str, JSON],
    meta: Mapping[str, str],
    *,
    profile: Profile = "final",
    channel: Channel = "text",
) -> Checked:
    """Check an envelope; never raises, whatever the fields hold.

    Args:
        value: the object that was found.
        meta: the runtime's own meta fields, as far as it knows them.
        profile: ``fragment`` for an excerpt, which needs neither meta nor evidence pointers.
        channel: ``file`` for an envelope that was read back, where nothing fills its meta.
    """
    check = Check()
    _meta(check, value, meta, demanded=channel == "file" and profile == "final")
    said = check.read(_with_flag(check, value), FIELDS)
    summary, routing = said["summary"], said["routing"]
    envelope = Envelope(
        status=said["status"],
        did=summary["what_i_did"],
        found=summary["what_i_found"],
        decisions=summary["key_decisions"],
        artifacts=summary["evidence"]["artifacts_produced"],
        commands=summary["evidence"]["commands_run"],
        measurements=summary["evidence"]["measurements"],
        concerns=tuple(
            Concern(one["severity"], one["description"], one["location"].strip(), one["recommendation"])
            for one in said["concerns"]
        ),
        assumptions=tuple(Assumption(*one.values()) for one in said["assumptions"]),
        recommendation=routing["recommendation"],
        reason=routing["reason"],
        suggestion=routing["next_step_suggestion"].strip(),
        can_help=routing["can_further_iteration_help"],
    )
    given = value.get("summary")
    if isinstance(given, dict):
        _content(check, envelope, given, profile)
    return Checked(envelope, tuple(check.issues), tuple(check.warnings))


def envelope_of(value: Mapping[str, JSON]) -> Envelope:
    """Return the parts of an envelope, valid or not; what cannot be read is empty. Never raises."""
    return validate(value, {}, profile="fragment").envelope


def _content(check: Check, envelope: Envelope, summary: Mapping[str, JSON], profile: Profile) -> None:
    told = [summary.get(name) for name in ("what_i_did", "what_i_found")]
    says = bool(envelope.did or envelope.found) or any(
        one is not None and not isinstance(one, str) for one in told
    )
    if not says:
        check.refuse(
            "SUMMARY_CONTENT",
            "summary",
            "The summary says neither what was done nor what was found.",
            "fill what_i_did or what_i_found",
        )
    # What has no status that counts is held to the rule for the others, unless it says nothing at all (R58).
    if (envelope.status or says) and not envelope.has_evidence:
        optional = envelope.status == "BLOCKED" or profile == "fragment"
        (check.warn if optional else check.refuse)(
            "EVIDENCE_POINTERS_REQUIRED",
            "summary.evidence",
            "Nothing can be looked up: no artifact, command, measurement or place of a concern.",
            "name a file that you made, a command that you ran, a number, or the place of a concern",
        )


def _meta(check: Check, value: Mapping[str, JSON], known: Mapping[str, str], *, demanded: bool) -> None:
    fields = {name: _said(f"META:{name}" if demanded else "") for name in META}
    given = check.read(value, {"meta": Field("object", fields=fields, demands=True)})["meta"]
    for name in META:
        text = given[name]
        if text and name in IDENTITY and known.get(name) and text != known[name]:
            check.refuse(
                f"META_MISMATCH:{name}",
                f"meta.{name}",
                f"meta.{name} is not that of this step.",
                f"write {known[name]!r}, or leave meta out",
            )
        if text and name == "timestamp" and not _is_time(text):
            check.warn(
                "TIMESTAMP_NOT_ISO8601",
                "meta.timestamp",
                "meta.timestamp is no ISO 8601 time.",
                "write 2026-01-31T12:00:00+00:00, or leave it out",
            )


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return len(text) <= len("2026-01-31") or "T" in text


def _with_flag(check: Check, value: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Read a word in the place of true or false, with a warning."""
    routing, name = value.get("routing"), "can_further_iteration_help"
    given = routing.get(name) if isinstance(routing, dict) else None
    flag = _YES_NO.get(given.strip().lower()) if isinstance(given, str) else None
    if flag is None or not isinstance(routing, dict):
        return value
    path, shown = f"routing.{name}", str(flag).lower()
    check.warn("CAN_FURTHER_ITERATION_HELP_COERCED", path, f"{path} was read as {shown}.", f"write {shown}")
    return {**value, "routing": {**routing, name: flag}}
