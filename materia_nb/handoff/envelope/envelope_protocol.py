"""Reading an envelope: found, checked, projected, or asked for again (envelope rules, sections 2 and 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from materia_nb.errors import counted
from materia_nb.handoff.common import WORK_IS_OVER, listed, missing_sources
from materia_nb.handoff.envelope.envelope_check import Channel, Profile, envelope_of, validate
from materia_nb.handoff.envelope.envelope_files import (
    MOST_TRIES,
    fallback,
    find,
    finished,
    not_object,
    with_meta,
)
from materia_nb.handoff.envelope.envelope_texts import (
    context,
    from_gist,
    schema,
    to_gist,
    verdict,
    work_items,
)
from materia_nb.handoff.jsontext import without_infinities
from materia_nb.handoff.protocol import UNKNOWN, Issue, Reading, Refusal, TurnFacts
from materia_nb.handoff.requirements import Requirements
from materia_nb.jsonvalue import JSON

_FIELDS: Final = """\
Answer with a single JSON object, the handoff envelope: no words before or after it.
Its fields:
- status: VERIFIED (the work is complete and meets what was asked), UNVERIFIED (the work is complete, with concerns that you list) or BLOCKED (you cannot go on without a person).
- summary: an object. what_i_did and what_i_found: at least one of the two, in words. key_decisions: a list of strings. evidence: an object with artifacts_produced (paths of the files you made), commands_run (the commands you ran) and measurements (an object of named numbers).
- concerns: a list of objects with severity (HIGH, MEDIUM or LOW), description, recommendation (how to fix it) and, where there is one, location (file:line). [] when there are none.
- assumptions: a list of objects with assumption, why and impact_if_wrong. [] when there are none.
- routing: an object. recommendation: CONTINUE, LOOP (do the work again), DETOUR (something else first) or ESCALATE (a person decides). reason: why, in words. next_step_suggestion: where a detour leads. can_further_iteration_help: if you review the work of another, true or false.
At least one evidence pointer is required: a file, a command, a number, or the location of a concern. A BLOCKED envelope may have none.
Leave meta out: it is filled in for you."""

_ITEMS: Final = (
    "\nEach concern becomes a work item for the sockets that follow: one concern for each piece of work."
)


def ask(wanted: Requirements) -> str:
    """Return what the agent of a socket is asked for; empty for a text socket."""
    if wanted.parse == "text":
        return ""
    return _FIELDS + (_ITEMS if wanted.work_items else "")


def finalization_prompt(wanted: Requirements) -> str:
    """Return the prompt that follows the work, in the same conversation: report what was done, do no more."""
    return f"{WORK_IS_OVER}\n{ask(wanted)}"


def reissue_prompt(wanted: Requirements, issues: Sequence[Issue]) -> str:
    """Return the finalization prompt once more, with what was wrong with the last envelope."""
    return f"Your envelope was refused:\n{listed(issues)}\nSend it again, corrected.\n\n{finalization_prompt(wanted)}"


class EnvelopeProtocol:
    """Reads and asks for handoff envelopes."""

    name = "envelope"
    sees_changes = True  # what stands in for an envelope names the files that changed
    to_gist = staticmethod(to_gist)
    from_gist = staticmethod(from_gist)

    def read(self, text: str, wanted: Requirements, facts: TurnFacts = UNKNOWN) -> Reading:
        """Read an agent's reply; text sockets accept anything."""
        if wanted.parse == "text":
            return Reading(text.strip())
        value, issue = find(text)
        if issue:
            return _refused(None, (issue,), (), facts)
        return read_object(value, wanted, facts)

    def ask(self, wanted: Requirements) -> str:
        """Say what an envelope holds."""
        return ask(wanted)

    def schema(self, wanted: Requirements) -> dict[str, JSON] | None:
        """Describe the fields of an envelope and those that assignments read."""
        return schema(wanted)

    def artifacts(self, value: Mapping[str, JSON]) -> tuple[str, ...]:
        """Name the files that were made (section 3)."""
        return envelope_of(value).artifacts

    def filed(self, value: Mapping[str, JSON], meta: Mapping[str, str]) -> dict[str, JSON]:
        """Fill in the meta that the runtime knows (section 6)."""
        return with_meta(value, meta)


def read_object(
    value: JSON,
    wanted: Requirements,
    facts: TurnFacts = UNKNOWN,
    *,
    profile: Profile = "final",
    channel: Channel = "structured",
) -> Reading:
    """Read an envelope that is an object already: structured output, or a file that was decoded."""
    issue = not_object(value)
    if issue:
        return _refused(None, (issue,), (), facts)
    value = without_infinities(value)
    checked = validate(value, facts.meta, profile=profile, channel=channel)
    issues = (*checked.issues, *missing_sources(value, wanted))
    if checked.foreign:
        reason = "The envelope is that of another step, flow or agent."
        return Reading(value, "contract", issues, action="reject", warnings=checked.warnings, reason=reason)
    if issues:
        return _refused(value, issues, checked.warnings, facts)
    way = verdict(checked.envelope, facts)
    if way.satisfied is None and way.action == "route" and wanted.only_guarded:
        way = way._replace(satisfied=False)  # every way on is guarded: a review without a verdict goes back
    return way._replace(warnings=checked.warnings + way.warnings).reading(
        finished(value, checked.envelope, facts.meta),
        context=context(checked.envelope),
        work_items=work_items(checked.envelope) if wanted.work_items else None,
    )


def _refused(
    value: JSON, issues: tuple[Issue, ...], warnings: tuple[Issue, ...], facts: TurnFacts
) -> Reading:
    """Ask again, or, when that was the last try, put the fallback in place and let a person see it."""
    error: Refusal = "not_json" if value is None else "contract"
    if facts.refused + 1 < MOST_TRIES:
        reason = "The envelope is not valid."
        return Reading(value, error, issues, action="reissue", warnings=warnings, reason=reason)
    failed = Issue(
        "$",
        f"No valid envelope in {counted(facts.refused + 1, 'try', 'tries')}; the last one: "
        + ", ".join(issue.code or issue.path for issue in issues[:8]),
        "look at what was done, then answer in the agent's place or run the step again",
        "FINALIZATION_FAILED",
    )
    stands_in = Issue("$", "An envelope that claims nothing stands in.", failed.fix, "FALLBACK_ENVELOPE")
    return Reading(
        fallback(facts, issues),
        error,
        (failed,),
        action="escalate",
        warnings=(stands_in,),
        reason=failed.message,
    )
