"""Checking an envelope field by field (envelope rules, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.handoff.envelope.check import Check
from materia_nb.handoff.envelope.fields import (
    IDENTITY,
    META,
    RECOMMENDATIONS,
    SEVERITIES,
    STATUSES,
    Assumption,
    Concern,
    Envelope,
)
from materia_nb.handoff.protocol import Issue
from materia_nb.jsonvalue import JSON

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
    status = check.word(value, "status", STATUSES, "STATUS", "STATUS")
    summary = check.object(value, "summary", "SUMMARY")
    evidence = check.object(summary or {}, "summary.evidence") or {}
    routing = check.object(value, "routing", "ROUTING")
    envelope = Envelope(
        status=status,
        did=check.text(summary or {}, "summary.what_i_did"),
        found=check.text(summary or {}, "summary.what_i_found"),
        decisions=check.texts(summary or {}, "summary.key_decisions"),
        artifacts=check.texts(evidence, "summary.evidence.artifacts_produced"),
        commands=check.texts(evidence, "summary.evidence.commands_run"),
        measurements=check.object(evidence, "summary.evidence.measurements"),
        concerns=tuple(_concerns(check, value)),
        assumptions=tuple(_assumptions(check, value)),
        recommendation=_recommendation(check, routing),
        reason="" if routing is None else check.text(routing, "routing.reason", "ROUTING_REASON"),
        suggestion=check.text(routing or {}, "routing.next_step_suggestion").strip(),
        can_help=_can_help(check, routing or {}),
    )
    if summary is not None:
        _content(check, envelope, profile)
    return Checked(envelope, tuple(check.issues), tuple(check.warnings))


def envelope_of(value: Mapping[str, JSON]) -> Envelope:
    """Return the parts of an envelope, valid or not; what cannot be read is empty. Never raises."""
    return validate(value, {}, profile="fragment").envelope


def _content(check: Check, envelope: Envelope, profile: Profile) -> None:
    if not envelope.did and not envelope.found:
        check.refuse(
            "SUMMARY_CONTENT",
            "summary",
            "The summary says neither what was done nor what was found.",
            "fill what_i_did or what_i_found",
        )
    # Without a status it is open whether evidence is demanded.
    if envelope.status and not envelope.has_evidence:
        optional = envelope.status == "BLOCKED" or profile == "fragment"
        (check.warn if optional else check.refuse)(
            "EVIDENCE_POINTERS_REQUIRED",
            "summary.evidence",
            "Nothing can be looked up: no artifact, command, measurement or place of a concern.",
            "name a file that you made, a command that you ran, a number, or the place of a concern",
        )


def _meta(check: Check, value: Mapping[str, JSON], known: Mapping[str, str], *, demanded: bool) -> None:
    given = check.object(value, "meta")
    if given is None and value.get("meta") is not None:
        return
    for name in META:
        text = check.text(given or {}, f"meta.{name}", f"META:{name}" if demanded else "")
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


def _recommendation(check: Check, routing: Mapping[str, JSON] | None) -> str:
    if routing is None:
        return ""
    return check.word(routing, "routing.recommendation", RECOMMENDATIONS, "RECOMMENDATION", "RECOMMENDATION")


def _can_help(check: Check, routing: Mapping[str, JSON]) -> bool | None:
    path = "routing.can_further_iteration_help"
    given = routing.get("can_further_iteration_help")
    if given is None or isinstance(given, bool):
        return given
    said = _YES_NO.get(given.strip().lower()) if isinstance(given, str) else None
    if said is None:
        check.wrong_type(path, "true or false")
    else:
        shown = str(said).lower()
        check.warn(
            "CAN_FURTHER_ITERATION_HELP_COERCED", path, f"{path} was read as {shown}.", f"write {shown}"
        )
    return said


def _concerns(check: Check, value: Mapping[str, JSON]) -> list[Concern]:
    return [
        Concern(
            check.word(given, f"{path}.severity", SEVERITIES, "SEVERITY", _code("CONCERN", path, "severity")),
            check.text(given, f"{path}.description", _code("CONCERN", path, "description")),
            check.text(given, f"{path}.location").strip(),
            check.text(given, f"{path}.recommendation", _code("CONCERN", path, "recommendation")),
        )
        for path, given in check.objects(value, "concerns")
    ]


def _assumptions(check: Check, value: Mapping[str, JSON]) -> list[Assumption]:
    return [
        Assumption(
            *(
                check.text(given, f"{path}.{name}", _code("ASSUMPTION", path, name))
                for name in ("assumption", "why", "impact_if_wrong")
            )
        )
        for path, given in check.objects(value, "assumptions")
    ]


def _code(word: str, path: str, field: str) -> str:
    """``CONCERN:0.severity`` for the path ``concerns[0]``."""
    return f"{word}:{path.partition('[')[2].rstrip(']')}.{field}"
