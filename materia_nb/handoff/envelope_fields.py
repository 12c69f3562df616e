"""The parts of a handoff envelope, checked field by field, and what they mean in other forms (envelope rules, 1, 3, 4, 8).

The other forms are the graph, a JSON Schema, and a layout for a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
    ANYTHING,
    Checker,
    Fields,
    HandoffField,
    closed_object,
    is_blank,
    is_null,
    issue_of,
    schema_of,
)
from materia_nb.handoff.jsontext import NO_REASON, as_text, labelled, one_line
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.vocabulary import first_field

STATUSES: Final = ("VERIFIED", "UNVERIFIED", "BLOCKED")
_RECOMMENDATIONS: Final = ("CONTINUE", "LOOP", "DETOUR", "ESCALATE")
_SEVERITIES: Final = ("HIGH", "MEDIUM", "LOW")
_IDENTITY: Final = ("step_id", "flow_key", "agent_key")
"""The fields of meta that must be the runtime's own."""
META: Final = (*_IDENTITY, "timestamp")


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
        places = (concern.location for concern in self.concerns)
        pointers = (
            *self.artifacts,
            *self.commands,
            *(self.measurements or {}).values(),
            *filter(None, places),
        )
        return not all(map(is_blank, pointers))


def _upper(word: str) -> str:
    return word.strip().upper()


def _said(missing: str = "", *, optional: bool = False) -> HandoffField:
    """A text; ``missing`` is the code of one that is not there or blank, none where it may be left out."""
    return HandoffField("text", missing, "write a text", optional=optional)


def _one_of(words: tuple[str, ...], code: str, missing: str = "") -> HandoffField:
    """A word; a blank one is missing where that has a code of its own, else none of the words."""
    return HandoffField("word", missing or code, "", is_blank if missing else is_null, words, code, _upper)


_SUMMARY: Final[Fields] = {
    "what_i_did": _said(),
    "what_i_found": _said(),
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
    "status": _one_of(STATUSES, "STATUS"),
    "summary": HandoffField("object", "SUMMARY", "add it, an object", fields=_SUMMARY),
    "concerns": HandoffField(
        "objects",
        fields={
            "severity": _one_of(_SEVERITIES, "SEVERITY", "CONCERN:{place}.severity"),
            "description": _said("CONCERN:{place}.description"),
            "recommendation": _said("CONCERN:{place}.recommendation"),
            "location": _said(optional=True),
        },
    ),
    "assumptions": HandoffField(
        "objects",
        fields={
            name: _said(f"ASSUMPTION:{{place}}.{name}") for name in ("assumption", "why", "impact_if_wrong")
        },
    ),
    "routing": HandoffField(
        "object",
        "ROUTING",
        "add it, an object",
        fields={
            "recommendation": _one_of(_RECOMMENDATIONS, "RECOMMENDATION"),
            "reason": _said("ROUTING_REASON"),
            "next_step_suggestion": _said(optional=True),
            "can_further_iteration_help": HandoffField("flag", optional=True),
        },
    ),
}
"""The fields of an envelope but for meta, which is the runtime's (sections 1 and 3)."""

Profile: TypeAlias = Literal["final", "fragment"]
Channel: TypeAlias = Literal["text", "structured", "file"]

_YES_NO: Final = {"yes": True, "true": True, "no": False, "false": False}


class CheckedEnvelope(NamedTuple):
    """The envelope as far as it could be read, why it is refused, and what is odd about it."""

    envelope: Envelope
    issues: tuple[Issue, ...]
    warnings: tuple[Issue, ...]

    @property
    def foreign(self) -> bool:
        """Whether the envelope names another step, flow or agent than the runtime's."""
        return any((issue.code or "").startswith("META_MISMATCH:") for issue in self.issues)


def check_envelope(
    value: Mapping[str, JSON],
    meta: Mapping[str, str],
    *,
    profile: Profile = "final",
    channel: Channel = "text",
) -> CheckedEnvelope:
    """Check an envelope; never raises, whatever the fields hold.

    Args:
        value: the object that was found.
        meta: the runtime's own meta fields, as far as it knows them.
        profile: ``fragment`` for an excerpt, which needs neither meta nor evidence pointers.
        channel: ``file`` for an envelope that was read back, where nothing fills its meta.
    """
    check = Checker()
    _meta(check, value, meta, demanded=channel == "file" and profile == "final")
    fields = check.read(_with_flag(check, value), _FIELDS)
    summary, routing = fields["summary"], fields["routing"]
    envelope = Envelope(
        status=fields["status"],
        did=summary["what_i_did"],
        found=summary["what_i_found"],
        decisions=summary["key_decisions"],
        artifacts=summary["evidence"]["artifacts_produced"],
        commands=summary["evidence"]["commands_run"],
        measurements=summary["evidence"]["measurements"],
        concerns=tuple(
            Concern(one["severity"], one["description"], one["location"].strip(), one["recommendation"])
            for one in fields["concerns"]
        ),
        assumptions=tuple(Assumption(*one.values()) for one in fields["assumptions"]),
        recommendation=routing["recommendation"],
        reason=routing["reason"],
        suggestion=routing["next_step_suggestion"].strip(),
        can_help=routing["can_further_iteration_help"],
    )
    given = value.get("summary")
    if isinstance(given, dict):
        _content(check, envelope, given, profile)
    return CheckedEnvelope(envelope, tuple(check.issues), tuple(check.warnings))


def envelope_of(value: Mapping[str, JSON]) -> Envelope:
    """Return the parts of an envelope, valid or not; what cannot be read is empty. Never raises."""
    return check_envelope(value, {}, profile="fragment").envelope


def _content(check: Checker, envelope: Envelope, summary: Mapping[str, JSON], profile: Profile) -> None:
    texts = [summary.get(name) for name in ("what_i_did", "what_i_found")]
    says = not all(map(is_blank, texts))
    if not says:
        check.issues.append(issue_of("SUMMARY_CONTENT"))
    # What has no status that counts is held to the rule for the others, unless it says nothing at all (R58).
    if (envelope.status or says) and not envelope.has_evidence:
        optional = envelope.status == "BLOCKED" or profile == "fragment"
        (check.warnings if optional else check.issues).append(issue_of("EVIDENCE_POINTERS_REQUIRED"))


def _meta(check: Checker, value: Mapping[str, JSON], known: Mapping[str, str], *, demanded: bool) -> None:
    fields = {name: _said(f"META:{name}" if demanded else "") for name in META}
    given = check.read(value, {"meta": HandoffField("object", fields=fields, demands=True)})["meta"]
    for name in META:
        text = given[name]
        if text and name in _IDENTITY and known.get(name) and text != known[name]:
            check.issues.append(issue_of("META_MISMATCH", name, name=name, known=known[name]))
        if text and name == "timestamp" and not _is_time(text):
            check.warnings.append(issue_of("TIMESTAMP_NOT_ISO8601"))


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return len(text) <= len("2026-01-31") or "T" in text


def _with_flag(check: Checker, value: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Read a word in the place of true or false, with a warning."""
    routing, name = value.get("routing"), "can_further_iteration_help"
    given = routing.get(name) if isinstance(routing, dict) else None
    flag = _YES_NO.get(given.strip().lower()) if isinstance(given, str) else None
    if flag is None or not isinstance(routing, dict):
        return value
    check.warnings.append(issue_of("CAN_FURTHER_ITERATION_HELP_COERCED", flag=str(flag).lower()))
    return {**value, "routing": {**routing, name: flag}}


def envelope_verdict(envelope: Envelope, facts: TurnFacts) -> Reading:
    """Turn status and recommendation into a route or an action; the envelope must be valid."""
    return _decided(envelope, facts)._replace(warnings=tuple(_warnings(envelope, facts)))


def _decided(envelope: Envelope, facts: TurnFacts) -> Reading:
    if envelope.status == "BLOCKED":
        return Reading(action="pause", reason=envelope.reason, needs="help")
    satisfied = True if envelope.status == "VERIFIED" else None
    if envelope.recommendation == "DETOUR":
        return _detour(satisfied, envelope, facts)
    if envelope.recommendation == "ESCALATE":
        return Reading(satisfied=satisfied, action="escalate", reason=envelope.reason)
    return Reading(satisfied=True) if satisfied else _unverified(envelope, facts)  # LOOP too: the status wins


def _unverified(envelope: Envelope, facts: TurnFacts) -> Reading:
    if envelope.recommendation == "CONTINUE":
        return Reading(satisfied=None if envelope.can_help is None else True)
    if envelope.can_help is False:
        return Reading(action="escalate", reason=f"Another round would not help: {envelope.reason}")
    if _at_cap(facts):
        taken = f"The loop was taken {facts.rounds} of {facts.most_rounds} times"
        return Reading(action="escalate", reason=f"{taken}: {envelope.reason}")
    return Reading(satisfied=False)


def _detour(satisfied: bool | None, envelope: Envelope, facts: TurnFacts) -> Reading:
    if target := _target(envelope, facts):
        return Reading(satisfied=satisfied, action="detour", reason=envelope.reason, target=target)
    named = f"to {envelope.suggestion[:100]!r}, which is not a socket here"
    lost = named if envelope.suggestion else "without a socket to go to"
    return Reading(satisfied=satisfied, action="escalate", reason=f"A detour {lost}: {envelope.reason}")


def _target(envelope: Envelope, facts: TurnFacts) -> str:
    """Return the socket that a detour leads to, "" for none: by its id, or what is placed there alone (R51)."""
    named = envelope.suggestion
    return named if facts.sockets is None or named in facts.sockets else facts.names.get(named, "")


def _at_cap(facts: TurnFacts) -> bool:
    return facts.rounds >= facts.most_rounds


def _warnings(envelope: Envelope, facts: TurnFacts) -> Iterator[Issue]:
    status, wish, can_help = envelope.status, envelope.recommendation, envelope.can_help
    if status == "UNVERIFIED" and not envelope.concerns:
        yield issue_of("UNVERIFIED_WITHOUT_CONCERNS")
    if status == "VERIFIED" and any(concern.severity == "HIGH" for concern in envelope.concerns):
        yield issue_of("VERIFIED_WITH_HIGH_CONCERN")
    if better := _better_recommendation(status, wish, can_help=can_help):
        yield issue_of(
            "STATUS_RECOMMENDATION_CONFLICT", f"{status}+{wish}", status=status, wish=wish, better=better
        )
    if wish == "DETOUR" and not _target(envelope, facts):
        unknown = f"{envelope.suggestion[:100]!r}, which is neither a socket nor a materia with one socket"
        named = unknown if envelope.suggestion else "no socket of the loadout"
        yield issue_of("DETOUR_WITHOUT_TARGET", named=named)
    if status == "UNVERIFIED" and wish == "LOOP":
        if can_help is None:
            yield issue_of("CAN_FURTHER_ITERATION_HELP_MISSING")
        if can_help is not False and _at_cap(facts):
            yield issue_of("LOOP_CAP_REACHED")


def _better_recommendation(status: str, wish: str, *, can_help: bool | None) -> str:
    """Return the recommendation that fits a status; empty if ``wish`` does not contradict it."""
    if status == "BLOCKED":
        return "" if wish == "ESCALATE" else "ESCALATE"
    if status == "VERIFIED":
        return "CONTINUE" if wish == "LOOP" else ""
    better: dict[tuple[str, bool | None], str] = {("CONTINUE", True): "LOOP", ("LOOP", False): "ESCALATE"}
    return better.get((wish, can_help), "")


def envelope_context(envelope: Envelope) -> str:
    """Write the envelope as text for whoever works next, a line for each thing it says."""
    return "\n".join(_lines(envelope))


def _lines(envelope: Envelope) -> Iterator[str]:
    yield envelope.status
    if envelope.did:
        yield f"Done: {envelope.did}"
    if envelope.found:
        yield f"Found: {envelope.found}"
    if _outcome(envelope) == "accepted":
        yield "verified=false (accepted with concerns)"
    for concern in envelope.concerns:
        place = f" {one_line(concern.location)}" if concern.location else ""
        yield (
            f"Concern {concern.severity}{place}: {one_line(concern.description)}. "
            f"Recommended: {one_line(concern.recommendation)}"
        )
    for assumed in envelope.assumptions:
        yield (
            f"Assumption: {one_line(assumed.assumption)}. Why: {one_line(assumed.why)}. "
            f"If wrong: {one_line(assumed.impact)}"
        )
    yield from labelled("Decided", envelope.decisions)
    measured = [f"{name}={as_text(value)}" for name, value in (envelope.measurements or {}).items()]
    yield from labelled("Artifacts", envelope.artifacts)
    yield from labelled("Commands", envelope.commands)
    yield from labelled("Measurements", measured)


def work_items_of_concerns(envelope: Envelope) -> list[JSON]:
    """Turn each concern into a work item: title and context as text."""
    return [
        {"title": concern.description, "context": _item_context(concern)} for concern in envelope.concerns
    ]


def _item_context(concern: Concern) -> str:
    """Write what a concern says beside its description, a line each."""
    place = f"location: {concern.location}\n" if concern.location else ""
    return f"severity: {concern.severity}\n{place}recommendation: {concern.recommendation}"


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


def envelope_of_answer(answer: SimpleAnswer) -> dict[str, JSON]:
    """Write an answer as an envelope; the only evidence is the commands of the answer."""
    status, recommendation, can_help = _ROUTES[answer.outcome]
    routing: dict[str, JSON] = {"recommendation": recommendation, "reason": answer.reason or NO_REASON}
    if can_help is not None:
        routing["can_further_iteration_help"] = can_help
    return {
        "status": status,
        "summary": {
            "what_i_did": None,
            "what_i_found": answer.findings or None,
            "key_decisions": [],
            "evidence": {
                "artifacts_produced": [],
                "commands_run": list(answer.commands),
                "measurements": {},
            },
        },
        "concerns": [_concern(item) for item in answer.items],
        "assumptions": [],
        "routing": routing,
    }


def _outcome(envelope: Envelope) -> Outcome:
    wish, can_help = envelope.recommendation, envelope.can_help
    if envelope.status == "VERIFIED":
        return "done"
    if envelope.status == "BLOCKED" or wish == "ESCALATE" or (wish == "LOOP" and can_help is False):
        return "stuck"
    if wish == "LOOP":
        return "again"
    return "accepted" if wish == "CONTINUE" and can_help is not None else "open"


def _concern(item: WorkItem) -> JSON:
    details = _DETAILS.fullmatch(item.context)
    if details is None:
        return {"severity": _PLAIN, "description": item.title, "recommendation": item.context}
    place = {"location": details["place"]} if details["place"] else {}
    told = {"severity": details["severity"], "description": item.title}
    return {**told, **place, "recommendation": details["advice"]}


def schema(wanted: Requirements) -> dict[str, JSON] | None:
    """Describe an envelope, and with it the fields that the socket's assignments read; None for a text socket."""
    if wanted.parse == "text":
        return None
    read = {name: ANYTHING for _, source in wanted.sources if (name := first_field(source))}
    read.pop("workItems", None)  # made from the concerns
    return closed_object({**read, **schema_of(_FIELDS)["properties"]})


_SIGNS: Final = {"HIGH": "!!!", "MEDIUM": "!!", "LOW": "!"}
_LINE: Final = re.compile(r":\d+(?:[-:]\d+)*$")


def envelope_layout(value: Mapping[str, JSON], find: FindFile) -> list[Section]:
    """Return what an envelope says, in the order in which a person needs it; never raises.

    Args:
        value: the envelope, valid or not; what cannot be read is left out.
        find: tells which of the files that it names are there.
    """
    envelope = envelope_of(value)
    sections = [Section.of_pairs("envelope", _envelope_headline(envelope))]
    if envelope.concerns:
        rows = [_concern_row(one, find) for one in sorted(envelope.concerns, key=_rank)]
        sections.append(Section("concerns", ("severity", "what", "where", "what to do"), tuple(rows)))
    if evidence := _envelope_evidence(envelope, find):
        sections.append(Section("evidence", ("kind", "pointer"), tuple(evidence)))
    if envelope.assumptions:
        assumed = tuple((one.assumption, one.why, one.impact) for one in envelope.assumptions)
        sections.append(Section("assumptions", ("taken for granted", "why", "if it is wrong"), assumed))
    meta = value.get("meta")
    if isinstance(meta, dict):
        identity = Section.of_pairs(
            "meta", ((name, str(meta[name])) for name in _IDENTITY if isinstance(meta.get(name), str))
        )
        sections += [identity] if identity.rows else []
    return sections


def _envelope_headline(envelope: Envelope) -> list[tuple[str, TextOrPointer]]:
    can_help = {True: "yes", False: "no", None: ""}[envelope.can_help]
    return [
        ("status", envelope.status),
        ("done", envelope.did),
        ("found", envelope.found),
        *(("decided", decision) for decision in envelope.decisions),
        ("recommends", envelope.recommendation),
        ("because", envelope.reason),
        ("another round helps", can_help),
        ("suggests", envelope.suggestion),
    ]


def _rank(concern: Concern) -> int:
    return _SEVERITIES.index(concern.severity) if concern.severity in _SEVERITIES else len(_SEVERITIES)


def _concern_row(concern: Concern, find: FindFile) -> tuple[TextOrPointer, ...]:
    severity = f"{_SIGNS.get(concern.severity, '')} {concern.severity}".strip()
    place = Pointer(concern.location, find(_LINE.sub("", concern.location)))
    return severity, concern.description, place, concern.recommendation


def _envelope_evidence(envelope: Envelope, find: FindFile) -> list[tuple[TextOrPointer, ...]]:
    rows: list[tuple[TextOrPointer, ...]] = [
        ("file", Pointer(text, find(text))) for text in envelope.artifacts
    ]
    rows += [("command", text) for text in envelope.commands]
    measured = (envelope.measurements or {}).items()
    rows += [("measured", f"{name} = {as_text(value)}") for name, value in measured]
    return rows
