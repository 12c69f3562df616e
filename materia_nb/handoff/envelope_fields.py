"""Checks the fields of an envelope, and derives its route, its summary and its display (envelope rules 1, 3, 4, 8)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.handoff.base import (
    FindFile,
    Issue,
    Outcome,
    Pointer,
    Reading,
    Requirements,
    Section,
    SimpleAnswer,
    TextOrPointer,
    TurnFacts,
    WorkItem,
)
from materia_nb.handoff.checks import (
    ANY_SCHEMA,
    Checker,
    Fields,
    HandoffField,
    closed_object,
    is_blank,
    is_null,
    issue_of,
    schema_of,
)
from materia_nb.handoff.jsontext import NO_REASON, as_text, list_line, one_line
from materia_nb.jsonvalue import JSON, as_object
from materia_nb.loadout.vocabulary import first_field

STATUSES: Final = ("VERIFIED", "UNVERIFIED", "BLOCKED")
_RECOMMENDATIONS: Final = ("CONTINUE", "LOOP", "DETOUR", "ESCALATE")
_SEVERITIES: Final = ("HIGH", "MEDIUM", "LOW")
_IDENTITY: Final = ("step_id", "flow_key", "agent_key")
"""Meta fields whose values must be equal to the values that the runtime knows."""
META: Final = (*_IDENTITY, "timestamp")


@dataclass(frozen=True, slots=True)
class Concern:
    """A concern in an envelope. A missing field is an empty string."""

    severity: str
    description: str
    location: str
    recommendation: str


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumption in an envelope, with the reason for it and the impact if it is wrong."""

    assumption: str
    why: str
    impact_if_wrong: str


@dataclass(frozen=True, slots=True)
class Envelope:
    """The parsed content of an envelope. Words such as the status are in upper case; missing fields are empty."""

    status: str
    what_i_did: str
    what_i_found: str
    key_decisions: tuple[str, ...]
    artifacts_produced: tuple[str, ...]
    commands_run: tuple[str, ...]
    measurements: Mapping[str, JSON] | None
    concerns: tuple[Concern, ...]
    assumptions: tuple[Assumption, ...]
    recommendation: str
    reason: str
    next_step_suggestion: str
    can_further_iteration_help: bool | None

    @property
    def has_evidence(self) -> bool:
        """True if the envelope names at least one artifact, command, measurement or location of a concern."""
        measurements, locations = (self.measurements or {}).values(), [concern.location for concern in self.concerns]
        return not all(map(is_blank, (*self.artifacts_produced, *self.commands_run, *measurements, *locations)))


def _text_field(missing: str = "", *, optional: bool = False) -> HandoffField:
    """Define a text field.

    Args:
        missing: the issue code to report if the text is blank; empty if the text may be blank.
        optional: True if the field is optional in the JSON Schema.
    """
    return HandoffField("text", missing, "write some text", optional=optional)


def _word_field(choices: tuple[str, ...], code: str, missing: str = "") -> HandoffField:
    """Define a field whose value must be a word in ``choices``; case is ignored.

    Args:
        choices: the allowed words.
        code: the issue code to report for any other word.
        missing: the issue code to report for a blank word; defaults to ``code``.
    """
    return HandoffField(
        "word", missing or code, "", is_blank if missing else is_null, choices, code, lambda word: word.strip().upper()
    )


_SUMMARY: Final[Fields] = {
    "what_i_did": _text_field(),
    "what_i_found": _text_field(),
    "key_decisions": HandoffField("texts"),
    "evidence": HandoffField(
        "object",
        fields={
            "artifacts_produced": HandoffField("texts"),
            "commands_run": HandoffField("texts"),
            "measurements": HandoffField("numbers"),
        },
    ),
}
_FIELDS: Final[Fields] = {
    "status": _word_field(STATUSES, "STATUS"),
    "summary": HandoffField("object", "SUMMARY", "add it as an object", fields=_SUMMARY),
    "concerns": HandoffField(
        "objects",
        fields={
            "severity": _word_field(_SEVERITIES, "SEVERITY", "CONCERN:{index}.severity"),
            "description": _text_field("CONCERN:{index}.description"),
            "recommendation": _text_field("CONCERN:{index}.recommendation"),
            "location": _text_field(optional=True),
        },
    ),
    "assumptions": HandoffField(
        "objects",
        fields={name: _text_field(f"ASSUMPTION:{{index}}.{name}") for name in ("assumption", "why", "impact_if_wrong")},
    ),
    "routing": HandoffField(
        "object",
        "ROUTING",
        "add it as an object",
        fields={
            "recommendation": _word_field(_RECOMMENDATIONS, "RECOMMENDATION"),
            "reason": _text_field("ROUTING_REASON"),
            "next_step_suggestion": _text_field(optional=True),
            "can_further_iteration_help": HandoffField("flag", optional=True),
        },
    ),
}  # The fields of an envelope, except meta, which the runtime fills in (sections 1 and 3).

Profile: TypeAlias = Literal["final", "fragment"]
Channel: TypeAlias = Literal["text", "structured", "file"]

_YES_NO: Final = {"yes": True, "true": True, "no": False, "false": False}


class CheckedEnvelope(NamedTuple):
    """The parsed content of an envelope, with the issues and warnings about it."""

    envelope: Envelope
    issues: tuple[Issue, ...]
    warnings: tuple[Issue, ...]

    @property
    def is_foreign(self) -> bool:
        """True if the envelope belongs to another step, flow or agent than the current turn."""
        return any((issue.code or "").startswith("META_MISMATCH:") for issue in self.issues)


def check_envelope(
    value: Mapping[str, JSON], meta: Mapping[str, str], *, profile: Profile = "final", channel: Channel = "text"
) -> CheckedEnvelope:
    """Parse and check an envelope. This function never raises an error.

    Args:
        value: the envelope as JSON.
        meta: the meta fields that the runtime knows.
        profile: ``final`` for a complete envelope, or ``fragment`` for a part, in which meta and evidence are optional.
        channel: the origin of the envelope. If it is ``file``, the meta fields of a final envelope must be complete.
    """
    check = Checker()
    _check_meta(check, value, meta, required=channel == "file" and profile == "final")
    fields = check.read(_with_boolean_flag(check, value), _FIELDS)
    summary, routing = fields["summary"], fields["routing"]
    evidence = summary.pop("evidence")
    routing["next_step_suggestion"] = routing["next_step_suggestion"].strip()
    concerns = tuple(Concern(**{**row, "location": row["location"].strip()}) for row in fields["concerns"])
    assumptions = tuple(Assumption(**row) for row in fields["assumptions"])
    envelope = Envelope(
        status=fields["status"], concerns=concerns, assumptions=assumptions, **summary, **evidence, **routing
    )
    own_summary = value.get("summary")
    if isinstance(own_summary, dict):
        _check_summary(check, envelope, own_summary, profile)
    return CheckedEnvelope(envelope, tuple(check.issues), tuple(check.warnings))


def envelope_of(value: Mapping[str, JSON]) -> Envelope:
    """Parse an envelope without checking it; fields that cannot be read are empty. No error is raised."""
    return check_envelope(value, {}, profile="fragment").envelope


def _check_summary(check: Checker, envelope: Envelope, summary: Mapping[str, JSON], profile: Profile) -> None:
    has_content = not all(is_blank(summary.get(name)) for name in ("what_i_did", "what_i_found"))
    if not has_content:
        check.issues.append(issue_of("SUMMARY_CONTENT"))
    # An envelope with an invalid status also needs evidence, unless its summary is empty (R58).
    if (envelope.status or has_content) and not envelope.has_evidence:
        optional = envelope.status == "BLOCKED" or profile == "fragment"
        (check.warnings if optional else check.issues).append(issue_of("EVIDENCE_POINTERS_REQUIRED"))


def _check_meta(check: Checker, value: Mapping[str, JSON], known: Mapping[str, str], *, required: bool) -> None:
    fields = {name: _text_field(f"META:{name}" if required else "") for name in META}
    own_meta = check.read(value, {"meta": HandoffField("object", fields=fields, report_nested_fields=True)})["meta"]
    for name in META:
        text = own_meta[name]
        if text and name in _IDENTITY and known.get(name) and text != known[name]:
            check.issues.append(issue_of("META_MISMATCH", name, name=name, known=known[name]))
        if text and name == "timestamp" and not _is_iso_time(text):
            check.warnings.append(issue_of("TIMESTAMP_NOT_ISO8601"))


def _is_iso_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return len(text) <= len("2026-01-31") or "T" in text


def _with_boolean_flag(check: Checker, value: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Replace a word such as "yes" in ``can_further_iteration_help`` with a boolean, and add a warning to ``check``."""
    routing, name = as_object(value.get("routing")), "can_further_iteration_help"
    word = routing.get(name)
    flag = _YES_NO.get(word.strip().lower()) if isinstance(word, str) else None
    if flag is None:
        return value
    check.warnings.append(issue_of("CAN_FURTHER_ITERATION_HELP_COERCED", flag=str(flag).lower()))
    return {**value, "routing": {**routing, name: flag}}


def envelope_verdict(envelope: Envelope, facts: TurnFacts) -> Reading:
    """Return the verdict that a valid envelope expresses, or the action that the envelope requests from the runtime."""
    return _route(envelope, facts)._replace(warnings=tuple(_warnings(envelope, facts)))


def _route(envelope: Envelope, facts: TurnFacts) -> Reading:
    if envelope.status == "BLOCKED":
        return Reading(action="pause", reason=envelope.reason, needs="help")
    satisfied = True if envelope.status == "VERIFIED" else None
    if envelope.recommendation == "DETOUR":
        return _detour(satisfied, envelope, facts)
    if envelope.recommendation == "ESCALATE":
        return Reading(satisfied=satisfied, action="escalate", reason=envelope.reason)
    # The status takes precedence: a verified envelope is satisfactory even if it recommends LOOP.
    return Reading(satisfied=True) if satisfied else _unverified(envelope, facts)


def _unverified(envelope: Envelope, facts: TurnFacts) -> Reading:
    if envelope.recommendation == "CONTINUE":
        return Reading(satisfied=None if envelope.can_further_iteration_help is None else True)
    if envelope.can_further_iteration_help is False:
        return Reading(action="escalate", reason=f"Another round would not help: {envelope.reason}")
    if facts.rounds >= facts.max_rounds:
        rounds = f"The loop has used {facts.rounds} of {facts.max_rounds} rounds"
        return Reading(action="escalate", reason=f"{rounds}: {envelope.reason}")
    return Reading(satisfied=False)


def _detour(satisfied: bool | None, envelope: Envelope, facts: TurnFacts) -> Reading:
    if target := _detour_target(envelope, facts):
        return Reading(satisfied=satisfied, action="detour", reason=envelope.reason, target=target)
    unknown = f"names {envelope.next_step_suggestion[:100]!r}, which is not a socket of this loadout"
    problem = unknown if envelope.next_step_suggestion else "has no target"
    return Reading(satisfied=satisfied, action="escalate", reason=f"The requested detour {problem}: {envelope.reason}")


def _detour_target(envelope: Envelope, facts: TurnFacts) -> str:
    """Return the id of the socket to which a detour leads, or "" if the envelope names an unknown socket (R51)."""
    name = envelope.next_step_suggestion
    return name if facts.sockets is None or name in facts.sockets else facts.names.get(name, "")


def _warnings(envelope: Envelope, facts: TurnFacts) -> Iterator[Issue]:
    status, wish, can_help = envelope.status, envelope.recommendation, envelope.can_further_iteration_help
    if status == "UNVERIFIED" and not envelope.concerns:
        yield issue_of("UNVERIFIED_WITHOUT_CONCERNS")
    if status == "VERIFIED" and any(concern.severity == "HIGH" for concern in envelope.concerns):
        yield issue_of("VERIFIED_WITH_HIGH_CONCERN")
    if better := _better_recommendation(status, wish, can_help=can_help):
        yield issue_of("STATUS_RECOMMENDATION_CONFLICT", f"{status}+{wish}", status=status, wish=wish, better=better)
    if wish == "DETOUR" and not _detour_target(envelope, facts):
        unknown = f"{envelope.next_step_suggestion[:100]!r}, which is neither a socket nor a materia used by exactly one socket"
        target_text = unknown if envelope.next_step_suggestion else "no socket of the loadout"
        yield issue_of("DETOUR_WITHOUT_TARGET", named=target_text)
    if status == "UNVERIFIED" and wish == "LOOP":
        if can_help is None:
            yield issue_of("CAN_FURTHER_ITERATION_HELP_MISSING")
        if can_help is not False and facts.rounds >= facts.max_rounds:
            yield issue_of("LOOP_CAP_REACHED")


def _better_recommendation(status: str, requested: str, *, can_help: bool | None) -> str:
    """Return a recommendation that agrees with the status, or "" if the agent's own recommendation agrees with it."""
    if status == "BLOCKED":
        return "" if requested == "ESCALATE" else "ESCALATE"
    if status == "VERIFIED":
        return "CONTINUE" if requested == "LOOP" else ""
    recommendations: dict[tuple[str, bool | None], str] = {("CONTINUE", True): "LOOP", ("LOOP", False): "ESCALATE"}
    return recommendations.get((requested, can_help), "")


def context_lines(envelope: Envelope) -> Iterator[str]:
    """Yield lines that summarize a valid envelope for the next agent."""
    yield envelope.status
    if envelope.what_i_did:
        yield f"Done: {envelope.what_i_did}"
    if envelope.what_i_found:
        yield f"Found: {envelope.what_i_found}"
    has_verdict = envelope.can_further_iteration_help is not None
    if envelope.status == "UNVERIFIED" and envelope.recommendation == "CONTINUE" and has_verdict:
        yield "verified=false (accepted with concerns)"
    for concern in envelope.concerns:
        location = f" {one_line(concern.location)}" if concern.location else ""
        yield (
            f"Concern {concern.severity}{location}: {one_line(concern.description)}. "
            f"Recommended: {one_line(concern.recommendation)}"
        )
    for assumption in envelope.assumptions:
        yield (
            f"Assumption: {one_line(assumption.assumption)}. Why: {one_line(assumption.why)}. "
            f"If wrong: {one_line(assumption.impact_if_wrong)}"
        )
    yield from list_line("Decided", envelope.key_decisions)
    measurements = [f"{name}={as_text(value)}" for name, value in (envelope.measurements or {}).items()]
    yield from list_line("Artifacts", envelope.artifacts_produced)
    yield from list_line("Commands", envelope.commands_run)
    yield from list_line("Measurements", measurements)


def work_items_of_concerns(envelope: Envelope) -> list[JSON]:
    """Convert each concern to a work item."""
    return [{"title": concern.description, "context": _item_context(concern)} for concern in envelope.concerns]


def _item_context(concern: Concern) -> str:
    location = f"location: {concern.location}\n" if concern.location else ""
    return f"severity: {concern.severity}\n{location}recommendation: {concern.recommendation}"


_DEFAULT_SEVERITY: Final = "MEDIUM"

_ITEM_CONTEXT = re.compile(
    r"severity: (?P<severity>HIGH|MEDIUM|LOW)\n(?:location: (?P<location>[^\n]+)\n)?recommendation: (?P<advice>.*)",
    re.DOTALL,
)
_ROUTE_BY_OUTCOME: Final[dict[Outcome, tuple[str, str, bool | None]]] = {
    "done": ("VERIFIED", "CONTINUE", None),
    "accepted": ("UNVERIFIED", "CONTINUE", False),
    "again": ("UNVERIFIED", "LOOP", True),
    "open": ("UNVERIFIED", "CONTINUE", None),
    "stuck": ("BLOCKED", "ESCALATE", None),
}


def envelope_of_answer(answer: SimpleAnswer) -> dict[str, JSON]:
    """Convert an answer to an envelope, whose evidence lists the commands in the answer."""
    status, recommendation, can_help = _ROUTE_BY_OUTCOME[answer.outcome]
    routing: dict[str, JSON] = {"recommendation": recommendation, "reason": answer.reason or NO_REASON}
    if can_help is not None:
        routing["can_further_iteration_help"] = can_help
    value = new_envelope(status, answer.findings or None, routing, commands=answer.commands)
    return {**value, "concerns": [_concern_from_item(item) for item in answer.items]}


def new_envelope(
    status: str,
    findings: str | None,
    routing: Mapping[str, JSON],
    *,
    artifacts: Sequence[str] = (),
    commands: Sequence[str] = (),
) -> dict[str, JSON]:
    """Return an envelope that contains no decisions, concerns or assumptions."""
    evidence = {"artifacts_produced": list(artifacts), "commands_run": list(commands), "measurements": {}}
    summary: JSON = {"what_i_did": None, "what_i_found": findings, "key_decisions": [], "evidence": evidence}
    return {"status": status, "summary": summary, "concerns": [], "assumptions": [], "routing": routing}


def _concern_from_item(item: WorkItem) -> JSON:
    details = _ITEM_CONTEXT.fullmatch(item.context)
    if details is None:
        return {"severity": _DEFAULT_SEVERITY, "description": item.title, "recommendation": item.context}
    location = {"location": details["location"]} if details["location"] else {}
    concern = {"severity": details["severity"], "description": item.title}
    return {**concern, **location, "recommendation": details["advice"]}


def schema(requirements: Requirements) -> dict[str, JSON] | None:
    """Return the JSON Schema of an envelope, or None if the socket expects text.

    The schema includes all fields that the socket's assignments read.
    """
    if requirements.parse == "text":
        return None
    assigned_fields = {name: ANY_SCHEMA for _, source in requirements.sources if (name := first_field(source))}
    assigned_fields.pop("workItems", None)  # work items are derived from the concerns
    return closed_object({**assigned_fields, **schema_of(_FIELDS)["properties"]})


_SEVERITY_SIGNS: Final = {"HIGH": "!!!", "MEDIUM": "!!", "LOW": "!"}
_LINE_NUMBER: Final = re.compile(r":\d+(?:[-:]\d+)*$")


def envelope_layout(value: Mapping[str, JSON], find: FindFile) -> list[Section]:
    """Return the sections that display an envelope to a person, most important first.

    This function never raises an error.

    Args:
        value: the envelope, which may be invalid; fields that cannot be read are omitted.
        find: a function that returns the path of a file that the envelope names, or None if there is no such file.
    """
    envelope = envelope_of(value)
    headline = Section.from_pairs("envelope", _envelope_headline(envelope))
    concerns = tuple(_concern_row(concern, find) for concern in sorted(envelope.concerns, key=_severity_rank))
    assumptions = tuple((row.assumption, row.why, row.impact_if_wrong) for row in envelope.assumptions)
    meta = as_object(value.get("meta"))
    sections = (
        Section("concerns", ("severity", "concern", "location", "recommendation"), concerns),
        Section("evidence", ("kind", "pointer"), tuple(_envelope_evidence(envelope, find))),
        Section("assumptions", ("assumption", "why", "if wrong"), assumptions),
        Section.from_pairs("meta", ((name, meta[name]) for name in _IDENTITY if isinstance(meta.get(name), str))),
    )
    return [headline, *(section for section in sections if section.rows)]


def _envelope_headline(envelope: Envelope) -> list[tuple[str, TextOrPointer]]:
    can_help = {True: "yes", False: "no", None: ""}[envelope.can_further_iteration_help]
    return [
        ("status", envelope.status),
        ("done", envelope.what_i_did),
        ("found", envelope.what_i_found),
        *(("decided", decision) for decision in envelope.key_decisions),
        ("recommends", envelope.recommendation),
        ("because", envelope.reason),
        ("another round helps", can_help),
        ("suggests", envelope.next_step_suggestion),
    ]


def _severity_rank(concern: Concern) -> int:
    return _SEVERITIES.index(concern.severity) if concern.severity in _SEVERITIES else len(_SEVERITIES)


def _concern_row(concern: Concern, find: FindFile) -> tuple[TextOrPointer, ...]:
    severity = f"{_SEVERITY_SIGNS.get(concern.severity, '')} {concern.severity}".strip()
    location = Pointer(concern.location, find(_LINE_NUMBER.sub("", concern.location)))
    return severity, concern.description, location, concern.recommendation


def _envelope_evidence(envelope: Envelope, find: FindFile) -> list[tuple[TextOrPointer, ...]]:
    rows: list[tuple[TextOrPointer, ...]] = [
        ("file", Pointer(text, find(text))) for text in envelope.artifacts_produced
    ]
    rows += [("command", text) for text in envelope.commands_run]
    measurements = (envelope.measurements or {}).items()
    return [*rows, *(("measured", f"{name} = {as_text(value)}") for name, value in measurements)]
