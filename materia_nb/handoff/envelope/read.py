"""Reading an envelope: found, checked, projected, or asked for again (envelope rules)."""

from __future__ import annotations

from collections.abc import Mapping

from materia_nb.handoff.assigned import missing_sources
from materia_nb.handoff.envelope.ask import ask
from materia_nb.handoff.envelope.find import find, not_object
from materia_nb.handoff.envelope.finish import MOST_TRIES, fallback, finished, with_meta
from materia_nb.handoff.envelope.form import schema
from materia_nb.handoff.envelope.gist import from_gist, to_gist
from materia_nb.handoff.envelope.project import context, verdict, work_items
from materia_nb.handoff.envelope.validate import Channel, Profile, envelope_of, validate
from materia_nb.handoff.jsontext import without_infinities
from materia_nb.handoff.protocol import UNKNOWN, Issue, Reading, Refusal, TurnFacts
from materia_nb.handoff.requirements import Requirements
from materia_nb.jsonvalue import JSON


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
        f"No valid envelope in {facts.refused + 1} tries; the last one: "
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
