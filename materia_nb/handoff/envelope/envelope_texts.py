"""What a valid envelope means in other forms: the graph, the gist, a JSON Schema (sections 1, 4 and 8), and laid out for a person."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from materia_nb.handoff.capabilities import Cell, FindFile, Pointer, Section, told_rows
from materia_nb.handoff.checker import schema_of
from materia_nb.handoff.envelope.envelope_check import (
    FIELDS,
    IDENTITY,
    SEVERITIES,
    Concern,
    Envelope,
    envelope_of,
)
from materia_nb.handoff.protocol import (
    ANYTHING,
    NO_REASON,
    Gist,
    Issue,
    Outcome,
    Piece,
    TurnFacts,
    Verdict,
    as_text,
    closed_object,
    named,
    one_line,
)
from materia_nb.handoff.requirements import Requirements, first_field
from materia_nb.jsonvalue import JSON


def verdict(envelope: Envelope, facts: TurnFacts) -> Verdict:
    """Turn status and recommendation into a route or an action; the envelope must be valid."""
    return _decided(envelope, facts)._replace(warnings=tuple(_remarks(envelope, facts)))


def _decided(envelope: Envelope, facts: TurnFacts) -> Verdict:
    if envelope.status == "BLOCKED":
        return Verdict(None, "pause", envelope.reason, needs="help")
    satisfied = True if envelope.status == "VERIFIED" else None
    if envelope.recommendation == "DETOUR":
        return _detour(satisfied, envelope, facts)
    if envelope.recommendation == "ESCALATE":
        return Verdict(satisfied, "escalate", envelope.reason)
    return Verdict(True) if satisfied else _unverified(envelope, facts)  # LOOP too: the status wins


def _unverified(envelope: Envelope, facts: TurnFacts) -> Verdict:
    if envelope.recommendation == "CONTINUE":
        return Verdict(None if envelope.can_help is None else True)
    if envelope.can_help is False:
        return Verdict(None, "escalate", f"Another round would not help: {envelope.reason}")
    if _at_cap(facts):
        return Verdict(
            None,
            "escalate",
            f"The loop was taken {facts.rounds} of {facts.most_rounds} times: {envelope.reason}",
        )
    return Verdict(False)


def _detour(satisfied: bool | None, envelope: Envelope, facts: TurnFacts) -> Verdict:
    target = _target(envelope, facts)
    if target:
        return Verdict(satisfied, "detour", envelope.reason, target)
    named = envelope.suggestion
    lost = (
        f"A detour to {named[:100]!r}, which is no socket here"
        if named
        else "A detour without a socket to go to"
    )
    return Verdict(satisfied, "escalate", f"{lost}: {envelope.reason}")


def _target(envelope: Envelope, facts: TurnFacts) -> str:
    """Return the socket that a detour leads to, "" for none: by its id, or what is placed there alone (R51)."""
    named = envelope.suggestion
    return named if facts.sockets is None or named in facts.sockets else facts.names.get(named, "")


def _at_cap(facts: TurnFacts) -> bool:
    return facts.rounds >= facts.most_rounds


def _remarks(envelope: Envelope, facts: TurnFacts) -> Iterator[Issue]:
    status, wish, can_help = envelope.status, envelope.recommendation, envelope.can_help
    if status == "UNVERIFIED" and not envelope.concerns:
        yield _remark("concerns", "UNVERIFIED_WITHOUT_CONCERNS", "It is unverified and names no concern.")
    if status == "VERIFIED" and any(concern.severity == "HIGH" for concern in envelope.concerns):
        yield _remark(
            "concerns", "VERIFIED_WITH_HIGH_CONCERN", "It is verified with a concern of severity HIGH."
        )
    if _conflict(status, wish, can_help=can_help):
        yield _remark(
            "routing.recommendation",
            f"STATUS_RECOMMENDATION_CONFLICT:{status}+{wish}",
            f"{wish} does not go with {status} here; the status counts.",
        )
    if wish == "DETOUR" and not _target(envelope, facts):
        yield _remark(
            "routing.next_step_suggestion",
            "DETOUR_WITHOUT_TARGET",
            f"The detour names {envelope.suggestion[:100]!r}, which is no socket of the loadout and no materia placed once."
            if envelope.suggestion
            else "The detour names no socket of the loadout.",
        )
    if status == "UNVERIFIED" and wish == "LOOP":
        if can_help is None:
            yield _remark(
                "routing.can_further_iteration_help",
                "CAN_FURTHER_ITERATION_HELP_MISSING",
                "It does not say whether another round can help.",
            )
        if can_help is not False and _at_cap(facts):
            yield _remark("routing.recommendation", "LOOP_CAP_REACHED", "The loop has no rounds left.")


def _conflict(status: str, wish: str, *, can_help: bool | None) -> bool:
    if status == "BLOCKED":
        return wish != "ESCALATE"
    if status == "VERIFIED":
        return wish == "LOOP"
    return (wish, can_help) in (("CONTINUE", True), ("LOOP", False))


def _remark(path: str, code: str, message: str) -> Issue:
    return Issue(f"$.{path}", message, "make the two agree", code)


def context(envelope: Envelope) -> str:
    """Write the envelope as text for whoever works next, a line for each thing it says."""
    return "\n".join(_lines(envelope))


def _lines(envelope: Envelope) -> Iterator[str]:
    yield envelope.status
    if envelope.did:
        yield f"Done: {envelope.did}"
    if envelope.found:
        yield f"Found: {envelope.found}"
    if (envelope.status, envelope.recommendation) == (
        "UNVERIFIED",
        "CONTINUE",
    ) and envelope.can_help is not None:
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
    yield from named("Decided", envelope.decisions)
    measured = [f"{name}={as_text(value)}" for name, value in (envelope.measurements or {}).items()]
    yield from named("Artifacts", envelope.artifacts)
    yield from named("Commands", envelope.commands)
    yield from named("Measurements", measured)


def work_items(envelope: Envelope) -> list[JSON]:
    """Turn each concern into a work item: title and context as text."""
    return [{"title": concern.description, "context": item_context(concern)} for concern in envelope.concerns]


def item_context(concern: Concern) -> str:
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


def to_gist(value: Mapping[str, JSON]) -> Gist:
    """Return what an envelope says; fields that are not valid say nothing."""
    envelope = envelope_of(value)
    meta = value.get("meta")
    agent = meta.get("agent_key") if isinstance(meta, dict) else None
    return Gist(
        outcome=_outcome(envelope),
        did=envelope.did,
        found=envelope.found,
        pieces=tuple(_piece(concern) for concern in envelope.concerns if concern.description),
        commands=envelope.commands,
        reason=envelope.reason,
        agent=agent if isinstance(agent, str) else "",
    )


def from_gist(gist: Gist) -> dict[str, JSON]:
    """Write a gist as an envelope; it claims no evidence that the gist does not have."""
    status, recommendation, can_help = _ROUTES[gist.outcome]
    routing: dict[str, JSON] = {"recommendation": recommendation, "reason": gist.reason or NO_REASON}
    if can_help is not None:
        routing["can_further_iteration_help"] = can_help
    value: dict[str, JSON] = {
        "status": status,
        "summary": {
            "what_i_did": gist.did or None,
            "what_i_found": gist.found or None,
            "key_decisions": [],
            "evidence": {
                "artifacts_produced": [],
                "commands_run": list(gist.commands),
                "measurements": {},
            },
        },
        "concerns": [_concern(piece) for piece in gist.pieces],
        "assumptions": [],
        "routing": routing,
    }
    return {"meta": {"agent_key": gist.agent}, **value} if gist.agent else value


def _outcome(envelope: Envelope) -> Outcome:
    wish, can_help = envelope.recommendation, envelope.can_help
    if envelope.status == "VERIFIED":
        return "done"
    if envelope.status == "BLOCKED" or wish == "ESCALATE" or (wish == "LOOP" and can_help is False):
        return "stuck"
    if wish == "LOOP":
        return "again"
    return "accepted" if wish == "CONTINUE" and can_help is not None else "open"


def _piece(concern: Concern) -> Piece:
    plain = concern.severity == _PLAIN and not concern.location
    return Piece(concern.description, concern.recommendation if plain else item_context(concern))


def _concern(piece: Piece) -> JSON:
    details = _DETAILS.fullmatch(piece.context)
    if details is None:
        return {"severity": _PLAIN, "description": piece.title, "recommendation": piece.context}
    place = {"location": details["place"]} if details["place"] else {}
    return {
        "severity": details["severity"],
        "description": piece.title,
        **place,
        "recommendation": details["advice"],
    }


def schema(wanted: Requirements) -> dict[str, JSON] | None:
    """Describe an envelope, and with it the fields that the socket's assignments read; None for a text socket."""
    if wanted.parse == "text":
        return None
    read = {name: ANYTHING for _, source in wanted.sources if (name := first_field(source))}
    read.pop("workItems", None)  # made from the concerns
    return closed_object({**read, **schema_of(FIELDS)["properties"]})


_SIGNS: Final = {"HIGH": "!!!", "MEDIUM": "!!", "LOW": "!"}
_LINE: Final = re.compile(r":\d+(?:[-:]\d+)*$")


def layout(value: Mapping[str, JSON], find: FindFile) -> list[Section]:
    """Return what an envelope says, in the order in which a person needs it; never raises.

    Args:
        value: the envelope, valid or not; what cannot be read is left out.
        find: tells which of the files that it names are there.
    """
    said = envelope_of(value)
    sections = [Section("envelope", rows=told_rows(_envelope_headline(said)))]
    if said.concerns:
        rows = [_concern_row(one, find) for one in sorted(said.concerns, key=_rank)]
        sections.append(Section("concerns", ("severity", "what", "where", "what to do"), tuple(rows)))
    evidence = _envelope_evidence(said, find)
    if evidence:
        sections.append(Section("evidence", ("kind", "pointer"), tuple(evidence)))
    if said.assumptions:
        assumed = tuple((one.assumption, one.why, one.impact) for one in said.assumptions)
        sections.append(Section("assumptions", ("taken for granted", "why", "if it is wrong"), assumed))
    meta = value.get("meta")
    if isinstance(meta, dict):
        written = told_rows([(name, str(meta[name])) for name in IDENTITY if isinstance(meta.get(name), str)])
        sections += [Section("meta", rows=written)] if written else []
    return sections


def _envelope_headline(said: Envelope) -> list[tuple[str, Cell]]:
    can_help = {True: "yes", False: "no", None: ""}[said.can_help]
    return [
        ("status", said.status),
        ("done", said.did),
        ("found", said.found),
        *(("decided", decision) for decision in said.decisions),
        ("recommends", said.recommendation),
        ("because", said.reason),
        ("another round helps", can_help),
        ("suggests", said.suggestion),
    ]


def _rank(concern: Concern) -> int:
    return SEVERITIES.index(concern.severity) if concern.severity in SEVERITIES else len(SEVERITIES)


def _concern_row(concern: Concern, find: FindFile) -> tuple[Cell, ...]:
    severity = f"{_SIGNS.get(concern.severity, '')} {concern.severity}".strip()
    place = Pointer(concern.location, find(_LINE.sub("", concern.location)))
    return severity, concern.description, place, concern.recommendation


def _envelope_evidence(said: Envelope, find: FindFile) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = [("file", Pointer(text, find(text))) for text in said.artifacts]
    rows += [("command", text) for text in said.commands]
    rows += [("measured", f"{name} = {as_text(value)}") for name, value in (said.measurements or {}).items()]
    return rows
