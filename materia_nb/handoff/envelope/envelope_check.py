"""The parts of a handoff envelope, and checking them field by field (envelope rules, sections 1 and 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

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


MOST_NOTED: Final = 1000
"""How many issues are kept; a reply of a megabyte could have a million, which nobody reads."""


class Check:
    """Reads typed fields and collects issues and warnings; a path is written ``summary.evidence``."""

    def __init__(self) -> None:
        self.issues: list[Issue] = []
        self.warnings: list[Issue] = []

    def refuse(self, code: str, path: str, message: str, fix: str) -> None:
        """Note a reason to refuse the object."""
        if len(self.issues) < MOST_NOTED:
            self.issues.append(_issue(code, path, message, fix))

    def warn(self, code: str, path: str, message: str, fix: str) -> None:
        """Note something odd that is no reason to refuse the object."""
        if len(self.warnings) < MOST_NOTED:
            self.warnings.append(_issue(code, path, message, fix))

    def wrong_type(self, path: str, wanted: str) -> None:
        """Note a value of the wrong JSON type."""
        self.refuse(f"TYPE:{path}", path, f"{path} is not {wanted}.", f"write {wanted}")

    def text(self, owner: Mapping[str, JSON], path: str, missing: str = "") -> str:
        """Return the text at the last part of ``path``; "" when absent, blank or no text.

        ``missing`` is the code to refuse an absent or blank one with; none, when it may be left out.
        """
        value = owner.get(_last(path))
        if value is None or (isinstance(value, str) and not value.strip()):
            if missing:
                self.refuse(missing, path, f"{path} is missing or blank.", "say it in words")
            return ""
        if not isinstance(value, str):
            self.wrong_type(path, "a string")
            return ""
        return value

    def word(
        self, owner: Mapping[str, JSON], path: str, allowed: Sequence[str], code: str, missing: str
    ) -> str:
        """Return one of the ``allowed`` words, folded to upper case; "" when it is none of them.

        ``missing`` is the code for an absent one; a blank one has it too, but where that is ``code``: it is none of them.
        """
        blank = missing == code and isinstance(owner.get(_last(path)), str)
        given = str(owner[_last(path)]) if blank else self.text(owner, path, missing)
        word = given.strip().upper()
        choices = ", ".join(allowed)
        if word in allowed or not (given or blank):
            if word != given:
                self.warn(f"{code}_NORMALIZED", path, f"{path} was read as {word}.", f"write {word}")
            return word
        shown = given.strip()[:100]
        self.refuse(f"{code}:{shown}", path, f"{path} is none of {choices}.", f"write one of {choices}")
        return ""

    def texts(self, owner: Mapping[str, JSON], path: str) -> tuple[str, ...]:
        """Return a list of texts, those that are none left out."""
        kept = []
        for index, value in enumerate(self._list(owner, path, "a list of strings")):
            if isinstance(value, str):
                kept.append(value)
            else:
                self.wrong_type(f"{path}[{index}]", "a string")
        return tuple(kept)

    def objects(self, owner: Mapping[str, JSON], path: str) -> Iterator[tuple[str, dict[str, JSON]]]:
        """Yield the objects of a list, each with its path."""
        for index, value in enumerate(self._list(owner, path, "a list of objects")):
            if isinstance(value, dict):
                yield f"{path}[{index}]", value
            else:
                self.wrong_type(f"{path}[{index}]", "an object")

    def object(self, owner: Mapping[str, JSON], path: str, missing: str = "") -> dict[str, JSON] | None:
        """Return an object, None when it is absent or something else."""
        value = owner.get(_last(path))
        if isinstance(value, dict):
            return value
        if value is not None:
            self.wrong_type(path, "an object")
        elif missing:
            self.refuse(missing, path, f"{path} is missing.", "add it, an object")
        return None

    def _list(self, owner: Mapping[str, JSON], path: str, wanted: str) -> list[JSON]:
        value = owner.get(_last(path))
        if value is None or isinstance(value, list):
            return value or []
        self.wrong_type(path, wanted)
        return []


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _issue(code: str, path: str, message: str, fix: str) -> Issue:
    return Issue("$." + path.replace("[", ".").replace("]", ""), message, fix, code)


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
        _content(check, envelope, summary, profile)
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
