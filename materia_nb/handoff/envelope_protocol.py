"""The envelope protocol, which checks an envelope and decides the next action (envelope rules 2, 5 and 6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from materia_nb.errors import counted
from materia_nb.handoff import envelope_fields
from materia_nb.handoff.base import (
    SAMPLE,
    UNKNOWN,
    HandoffProtocol,
    Issue,
    Outcome,
    Reading,
    Refusal,
    Requirements,
    SimpleAnswer,
    TurnFacts,
)
from materia_nb.handoff.checks import MAX_FORM_CHARS, issue_of, missing_sources, placeholder_issues
from materia_nb.handoff.jsontext import (
    NO_REASON,
    NotJson,
    fit_list,
    is_too_deep,
    join_within_limit,
    wide_json,
    without_backticks,
    without_infinities,
)
from materia_nb.handoff.runtime_rules import MISSING_ENVELOPE
from materia_nb.jsonvalue import JSON, as_object, compact, set_path


def _object_issue(value: JSON) -> Issue | None:
    """Return an issue if the value is not an object or is nested too deeply; otherwise, return None."""
    if isinstance(value, dict):
        return issue_of("ENVELOPE_NOT_JSON", why="it is nested too deeply") if is_too_deep(value) else None
    return issue_of("ENVELOPE_NOT_OBJECT")


def envelope_in(text: str, *, file: bool = False) -> tuple[JSON, Issue | None]:
    """Find and parse the envelope in a reply or in a file. The search takes linear time.

    Args:
        text: the reply. Text around the envelope is ignored. A code fence with the tag ``json`` is preferred over a
            fence without a tag.
        file: True if ``text`` is the content of a file, which must contain nothing except the envelope.

    Returns:
        The envelope and None, or None and the issue.
    """
    if not text.strip():
        return None, MISSING_ENVELOPE
    excerpt = text.strip() if file else _fence_content(text)
    try:
        value = wide_json(excerpt)[0]
    except NotJson as error:
        start, end = excerpt.find("{"), excerpt.rfind("}")
        if file or not 0 <= start < end:
            return None, issue_of("ENVELOPE_NOT_JSON", why=error)
        try:
            value = wide_json(excerpt[start : end + 1])[0]
        except NotJson as inner_error:
            return None, issue_of("ENVELOPE_NOT_JSON", why=inner_error)
    issue = _object_issue(value)
    return (None, issue) if issue else (value, None)


def _fence_content(text: str) -> str:
    """Return the content of the code fence that contains the envelope, or the whole text if it has no fence.

    If the closing backticks are missing, the fence ends at the end of the text.
    """
    for opening in ("```json", "```"):
        start = text.find(opening)
        if start >= 0:
            start += len(opening)
            end = text.find("```", start)
            return text[start : end if end >= 0 else len(text)].strip()
    return text.strip()


MAX_TRIES: Final = 3
"""Maximum number of requests for an envelope in one turn, including the first request."""


def _with_meta(value: Mapping[str, JSON], meta: Mapping[str, str]) -> dict[str, JSON]:
    """Return a copy of an envelope in which missing meta fields are filled in from ``meta``."""
    fields = dict(as_object(value.get("meta")))
    for name in envelope_fields.META:
        if meta.get(name) and not (isinstance(fields.get(name), str) and fields[name].strip()):
            fields[name] = meta[name]
    return {**value, "meta": fields} if fields else dict(value)


def normalize_envelope(
    value: Mapping[str, JSON], envelope: envelope_fields.Envelope, known: Mapping[str, str]
) -> dict[str, JSON]:
    """Normalize a valid envelope before it is stored.

    Status words are converted to upper case, and missing meta fields are filled in. Unknown fields are preserved.

    Args:
        value: the envelope as written by the agent.
        envelope: the parsed content of the envelope.
        known: the meta fields that the runtime knows.
    """
    result = set_path(_with_meta(value, known), ["status"], envelope.status)
    result = set_path(result, ["routing", "recommendation"], envelope.recommendation)
    if envelope.can_further_iteration_help is not None:
        result = set_path(result, ["routing", "can_further_iteration_help"], envelope.can_further_iteration_help)
    if not envelope.concerns:
        return result
    pairs = zip(value["concerns"], envelope.concerns, strict=True)
    return {**result, "concerns": [{**own, "severity": concern.severity} for own, concern in pairs]}


def fallback_envelope(facts: TurnFacts, issues: Sequence[Issue]) -> dict[str, JSON]:
    """Return the envelope that replaces a missing or invalid envelope.

    The envelope makes no claims about the work, and its evidence lists the files that changed during the visit. ``issues``
    contains the issues of the last reply.
    """
    codes = ", ".join(issue.code or issue.path for issue in issues[:8])
    findings = f"No valid envelope was returned in {counted(facts.refused + 1, 'try', 'tries')}: {codes}."
    reason = "The step returned no valid envelope; a person must check what was done."
    routing = {"recommendation": "ESCALATE", "reason": reason}
    value = envelope_fields.new_envelope("UNVERIFIED", findings, routing, artifacts=facts.changed_files)
    return _with_meta({**value, "_envelope_source": "fallback"}, facts.meta)


_WORDS, _FILE, _COMMAND, _WHY = "<in words>", "<file>", "<command>", "<why>"
_STATUS: Final = "<VERIFIED, UNVERIFIED or BLOCKED>"
_SHAPE: Final[dict[str, JSON]] = {
    "status": _STATUS,
    "summary": {
        "what_i_did": _WORDS,
        "what_i_found": _WORDS,
        "key_decisions": [],
        "evidence": {"artifacts_produced": [_FILE], "commands_run": [_COMMAND], "measurements": {}},
    },
    "concerns": [],
    "routing": {"recommendation": "<CONTINUE, LOOP, DETOUR or ESCALATE>", "reason": _WHY},
}
_FORM_WORDS: Final = frozenset({_WORDS, _FILE, _COMMAND, _WHY, _STATUS, "<CONTINUE, LOOP, DETOUR or ESCALATE>"})


def envelope_form(requirements: Requirements, facts: TurnFacts = UNKNOWN, *, short: bool = False) -> str:
    """Return a template for the agent's envelope, with the allowed words (R51).

    With ``short``, a summary for later turns is returned.
    """
    if requirements.parse == "text":
        return ""
    if short:
        return (
            "Output only the envelope, one JSON object: status, summary (what_i_did, what_i_found, key_decisions, "
            "evidence: artifacts_produced, commands_run, measurements), concerns, assumptions, routing "
            "(recommendation, reason)."
        )
    lines = [
        f"Output only this JSON object:\n{compact(_SHAPE)}",
        "VERIFIED: all met. UNVERIFIED: has concerns. BLOCKED: needs a person.",
        f"A concern{' (a work item)' * requirements.work_items}: severity (HIGH, MEDIUM, LOW), description, recommendation.",
        "Evidence: a file, command or number.",
    ]
    available_chars = MAX_FORM_CHARS - len("\n".join(lines)) - 1
    lines.append(fit_list("DETOUR: next_step_suggestion: ", _detour_targets(facts), available_chars))
    return join_within_limit(lines, MAX_FORM_CHARS)


def _detour_targets(facts: TurnFacts) -> list[str]:
    """Return the sockets to which a detour may lead, each followed by its alternative name, if it has one (R51)."""
    names = {socket: name for name, socket in reversed([*facts.names.items()])}
    return [f"{id_} ({names[id_]})" if id_ in names else id_ for id_ in sorted(facts.sockets or ())]


class EnvelopeProtocol(HandoffProtocol):
    """A protocol whose outputs, called envelopes, contain a status, evidence, concerns and a recommended route."""

    name = "envelope"
    needs_changed_files = True  # the fallback envelope lists the changed files
    can_detour = True
    ask = staticmethod(envelope_form)
    form = staticmethod(envelope_form)
    schema = staticmethod(envelope_fields.schema)
    layout = staticmethod(envelope_fields.envelope_layout)
    file_content = staticmethod(_with_meta)
    write = staticmethod(without_backticks)

    def read(self, text: str, requirements: Requirements, facts: TurnFacts = UNKNOWN) -> Reading:
        """Parse and check the envelope in an agent's reply; any text is valid if the socket expects text."""
        if requirements.parse == "text":
            return Reading(text.strip())
        value, issue = envelope_in(text)
        if issue:
            return _refuse(None, (issue,), (), facts)
        return read_envelope(value, requirements, facts)

    def artifacts(self, value: Mapping[str, JSON]) -> tuple[str, ...]:
        """Return the files that the envelope lists as produced (envelope rule 3)."""
        return envelope_fields.envelope_of(value).artifacts_produced

    def sample_outputs(self, outcome: Outcome, count: int) -> Iterator[dict[str, JSON]]:
        """Yield an envelope that leads to the outcome."""
        yield envelope_fields.envelope_of_answer(SimpleAnswer.sample(outcome, count, commands=(SAMPLE,)))

    def sample_stops(self) -> Iterator[dict[str, JSON]]:
        """Yield sample envelopes that stop the cast until a person acts."""
        for value in self.sample_outputs("stuck", 0):
            yield value
            yield {**value, "status": "UNVERIFIED"}

    def write_for_person(self, answer: SimpleAnswer, facts: TurnFacts) -> str:  # noqa: ARG002 - the caller fills in meta later
        """Serialize a person's answer as an envelope, whose evidence states that a person judged the work."""
        value = envelope_fields.envelope_of_answer(replace(answer, findings=answer.findings or NO_REASON))
        return self.write(set_path(value, ["summary", "evidence", "measurements"], {"persons_who_judged": 1}))


def read_envelope(
    value: JSON,
    requirements: Requirements,
    facts: TurnFacts = UNKNOWN,
    *,
    profile: envelope_fields.Profile = "final",
    channel: envelope_fields.Channel = "structured",
) -> Reading:
    """Check an envelope that has already been parsed, and decide the next action.

    Args:
        value: the envelope as JSON.
        requirements: the requirements for an output of the socket.
        facts: the meta fields, the sockets and the other facts about the turn that the runtime knows.
        profile: the profile of the envelope (see :func:`~materia_nb.handoff.envelope_fields.check_envelope`).
        channel: the origin of the envelope, such as structured output or a file.
    """
    issue = _object_issue(value)
    if issue:
        return _refuse(None, (issue,), (), facts)
    value = without_infinities(value)
    checked = envelope_fields.check_envelope(value, facts.meta, profile=profile, channel=channel)
    issues = (*checked.issues, *missing_sources(value, requirements), *placeholder_issues(value, _FORM_WORDS))
    if checked.is_foreign:
        reason = "The envelope belongs to another step, flow or agent."
        return Reading(value, "contract", issues, action="reject", warnings=checked.warnings, reason=reason)
    if issues:
        return _refuse(value, issues, checked.warnings, facts)
    route = envelope_fields.envelope_verdict(checked.envelope, facts)
    if route.satisfied is None and route.action == "route" and requirements.only_guarded:
        route = route._replace(satisfied=False)  # every edge depends on the verdict, so a missing one counts as false
    return route._replace(
        value=normalize_envelope(value, checked.envelope, facts.meta),
        context="\n".join(envelope_fields.context_lines(checked.envelope)),
        work_items=envelope_fields.work_items_of_concerns(checked.envelope) if requirements.work_items else None,
        warnings=checked.warnings + route.warnings,
    )


def _refuse(value: JSON, issues: tuple[Issue, ...], warnings: tuple[Issue, ...], facts: TurnFacts) -> Reading:
    """Return a reading that refuses an envelope, so that the runtime requests a corrected envelope.

    After the last try, the reading contains the fallback envelope instead, which a person must check.
    """
    error: Refusal = "not_json" if value is None else "contract"
    if facts.refused + 1 < MAX_TRIES:
        reason = "The envelope is not valid."
        return Reading(value, error, issues, action="reissue", warnings=warnings, reason=reason)
    codes = ", ".join(issue.code or issue.path for issue in issues[:8])
    tries = counted(facts.refused + 1, "try", "tries")
    failure = issue_of("FINALIZATION_FAILED", tries=tries, codes=codes)
    reading = Reading(fallback_envelope(facts, issues), error, (failure,), action="escalate", reason=failure.message)
    return reading._replace(warnings=(issue_of("FALLBACK_ENVELOPE"),))
