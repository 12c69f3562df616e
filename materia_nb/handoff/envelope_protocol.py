"""Reading an envelope: found, checked, projected, or asked for again (envelope rules, sections 2 and 5).

And its final form, and the names of its files (section 6).
"""

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
from materia_nb.handoff.checks import LONGEST_FORM, form_words, issue_of, missing_sources
from materia_nb.handoff.jsontext import (
    NO_REASON,
    NotJson,
    fit_list,
    join_within_limit,
    too_deep,
    wide_json,
    without_backticks,
    without_infinities,
)
from materia_nb.handoff.runtime_rules import MISSING_ENVELOPE
from materia_nb.jsonvalue import JSON, compact, set_path


def _not_object(value: JSON) -> Issue | None:
    """Return the issue of a value that is not an object, or no JSON; None for an object."""
    if isinstance(value, dict):
        return issue_of("ENVELOPE_NOT_JSON", why="it is nested too deeply") if too_deep(value) else None
    return issue_of("ENVELOPE_NOT_OBJECT")


def envelope_in(text: str, *, file: bool = False) -> tuple[JSON, Issue | None]:
    """Return the envelope of a reply and no issue, or None and why there is none.

    A fence tagged json is preferred over an earlier plain one; what surrounds one object
    is dropped. ``file``: the text is a whole file, which must be the object itself.
    The time is linear in the length of the text.
    """
    if not text.strip():
        return None, MISSING_ENVELOPE
    taken = text.strip() if file else _taken(text)
    try:
        value = wide_json(taken)[0]
    except NotJson as error:
        start, end = taken.find("{"), taken.rfind("}")
        if file or not 0 <= start < end:
            return None, issue_of("ENVELOPE_NOT_JSON", why=error)
        try:
            value = wide_json(taken[start : end + 1])[0]
        except NotJson as again:
            return None, issue_of("ENVELOPE_NOT_JSON", why=again)
    issue = _not_object(value)
    return (None, issue) if issue else (value, None)


def _taken(text: str) -> str:
    """The part of the text that should be the object: up to the end where no backticks close it."""
    for opening in ("```json", "```"):
        start = text.find(opening)
        if start >= 0:
            start += len(opening)
            end = text.find("```", start)
            return text[start : end if end >= 0 else len(text)].strip()
    return text.strip()


MOST_TRIES: Final = 3
"""How often an envelope is asked for in a turn, the first time included."""


def _with_meta(value: Mapping[str, JSON], meta: Mapping[str, str]) -> dict[str, JSON]:
    """Return the envelope with its missing meta fields filled in from ``meta``."""
    own = value.get("meta")
    fields: dict[str, JSON] = dict(own) if isinstance(own, dict) else {}
    for name in envelope_fields.META:
        if meta.get(name) and not (isinstance(fields.get(name), str) and fields[name].strip()):
            fields[name] = meta[name]
    return {**value, "meta": fields} if fields else dict(value)


def finished(
    value: Mapping[str, JSON], envelope: envelope_fields.Envelope, known: Mapping[str, str]
) -> dict[str, JSON]:
    """Return a valid envelope as it is kept: unknown fields too, words in upper case, meta filled in."""
    done = _with_meta(value, known)
    done = set_path(done, ["status"], envelope.status)
    done = set_path(done, ["routing", "recommendation"], envelope.recommendation)
    if envelope.can_help is not None:
        done = set_path(done, ["routing", "can_further_iteration_help"], envelope.can_help)
    if not envelope.concerns:
        return done
    concerns = zip(value["concerns"], envelope.concerns, strict=True)
    return {**done, "concerns": [{**given, "severity": one.severity} for given, one in concerns]}


def fallback(facts: TurnFacts, issues: Sequence[Issue]) -> dict[str, JSON]:
    """Return the envelope that stands in for one that could not be had: it claims nothing.

    Its evidence is what the runtime itself saw change during the turn.
    """
    codes = ", ".join(issue.code or issue.path for issue in issues[:8])
    return _with_meta(
        {
            "status": "UNVERIFIED",
            "summary": {
                "what_i_did": None,
                "what_i_found": f"No valid envelope was returned in {counted(facts.refused + 1, 'try', 'tries')}: {codes}.",
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
                "reason": "The step returned no valid envelope; a person must check what was done.",
            },
            "_envelope_source": "fallback",
        },
        facts.meta,
    )


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
_FORM_WORDS: Final = frozenset(
    {_WORDS, _FILE, _COMMAND, _WHY, _STATUS, "<CONTINUE, LOOP, DETOUR or ESCALATE>"}
)


def envelope_form(wanted: Requirements, facts: TurnFacts = UNKNOWN, *, short: bool = False) -> str:
    """Write an envelope as one line to copy, and the words that are allowed in it (R51)."""
    if wanted.parse == "text":
        return ""
    if short:
        return (
            "Output only the envelope, one JSON object: status, summary (what_i_did, what_i_found, key_decisions, "
            "evidence: artifacts_produced, commands_run, measurements), concerns, assumptions, routing "
            "(recommendation, reason)."
        )
    lines = [
        f"Output only this JSON object:\n{compact(_SHAPE)}",
        "VERIFIED: everything is met. UNVERIFIED: there are concerns. BLOCKED: a person must help.",
        f"A concern{' (a work item)' * wanted.work_items}: severity HIGH, MEDIUM or LOW, description, recommendation.",
        "Evidence: a file, command or number.",
    ]
    room = LONGEST_FORM - len("\n".join(lines)) - 1
    lines.append(fit_list("DETOUR: next_step_suggestion: ", _targets(facts), room))
    return join_within_limit(lines, LONGEST_FORM)


def _targets(facts: TurnFacts) -> list[str]:
    """The sockets that a detour may name, each with the name under which it may be named too (R51)."""
    names = {socket: name for name, socket in reversed([*facts.names.items()])}
    return [f"{id_} ({names[id_]})" if id_ in names else id_ for id_ in sorted(facts.sockets or ())]


class EnvelopeProtocol(HandoffProtocol):
    """Reads and asks for handoff envelopes."""

    name = "envelope"
    needs_changed_files = True  # what stands in for an envelope names the files that changed
    ask = staticmethod(envelope_form)
    form = staticmethod(envelope_form)
    schema = staticmethod(envelope_fields.schema)
    layout = staticmethod(envelope_fields.envelope_layout)
    file_content = staticmethod(_with_meta)  # the meta that the runtime knows is filled in (section 6)

    def read(self, text: str, wanted: Requirements, facts: TurnFacts = UNKNOWN) -> Reading:
        """Read an agent's reply; text sockets accept anything."""
        if wanted.parse == "text":
            return Reading(text.strip())
        value, issue = envelope_in(text)
        if issue:
            return _refused(None, (issue,), (), facts)
        return read_object(value, wanted, facts)

    def artifacts(self, value: Mapping[str, JSON]) -> tuple[str, ...]:
        """Name the files that were made (section 3)."""
        return envelope_fields.envelope_of(value).artifacts

    can_detour = True

    def sample_outputs(self, outcome: Outcome, count: int) -> Iterator[dict[str, JSON]]:
        """Yield an envelope that says an outcome."""
        yield envelope_fields.envelope_of_answer(SimpleAnswer.sample(outcome, count, commands=(SAMPLE,)))

    def sample_stops(self) -> Iterator[dict[str, JSON]]:
        """Yield envelopes that need a person."""
        for value in self.sample_outputs("stuck", 0):
            yield value
            yield {**value, "status": "UNVERIFIED"}

    def write(self, value: Mapping[str, JSON]) -> str:
        """Write an envelope as it is."""
        return without_backticks(value)

    def write_for_person(self, answer: SimpleAnswer, facts: TurnFacts) -> str:  # noqa: ARG002 - part of the interface; meta is filled in
        """Write an envelope whose evidence is that a person judged."""
        value = envelope_fields.envelope_of_answer(replace(answer, findings=answer.findings or NO_REASON))
        return self.write(set_path(value, ["summary", "evidence", "measurements"], {"persons_who_judged": 1}))


def read_object(
    value: JSON,
    wanted: Requirements,
    facts: TurnFacts = UNKNOWN,
    *,
    profile: envelope_fields.Profile = "final",
    channel: envelope_fields.Channel = "structured",
) -> Reading:
    """Read an envelope that is an object already: structured output, or a file that was decoded."""
    issue = _not_object(value)
    if issue:
        return _refused(None, (issue,), (), facts)
    value = without_infinities(value)
    checked = envelope_fields.check_envelope(value, facts.meta, profile=profile, channel=channel)
    issues = (*checked.issues, *missing_sources(value, wanted), *form_words(value, _FORM_WORDS))
    if checked.foreign:
        reason = "The envelope belongs to another step, flow or agent."
        return Reading(value, "contract", issues, action="reject", warnings=checked.warnings, reason=reason)
    if issues:
        return _refused(value, issues, checked.warnings, facts)
    way = envelope_fields.envelope_verdict(checked.envelope, facts)
    if way.satisfied is None and way.action == "route" and wanted.only_guarded:
        way = way._replace(satisfied=False)  # every way on is guarded: a review without a verdict goes back
    return way._replace(
        value=finished(value, checked.envelope, facts.meta),
        context=envelope_fields.envelope_context(checked.envelope),
        work_items=envelope_fields.work_items_of_concerns(checked.envelope) if wanted.work_items else None,
        warnings=checked.warnings + way.warnings,
    )


def _refused(
    value: JSON, issues: tuple[Issue, ...], warnings: tuple[Issue, ...], facts: TurnFacts
) -> Reading:
    """Ask again, or, when that was the last try, put the fallback in place and let a person see it."""
    error: Refusal = "not_json" if value is None else "contract"
    if facts.refused + 1 < MOST_TRIES:
        reason = "The envelope is not valid."
        return Reading(value, error, issues, action="reissue", warnings=warnings, reason=reason)
    codes = ", ".join(issue.code or issue.path for issue in issues[:8])
    tries = counted(facts.refused + 1, "try", "tries")
    failed = issue_of("FINALIZATION_FAILED", tries=tries, codes=codes)
    instead = Reading(fallback(facts, issues), error, (failed,), action="escalate", reason=failed.message)
    return instead._replace(warnings=(issue_of("FALLBACK_ENVELOPE"),))
