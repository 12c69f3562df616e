"""Reading a contract: found, checked, held against the last one, projected, or asked for again (section 14).

And what it means in the words of others: the graph, the gist, a person (section 12).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from materia_nb.handoff.capabilities import FindFile, Learned, Reported, Section, SuggestionKind, Task
from materia_nb.handoff.contract import contract_fields
from materia_nb.handoff.contract.approval import can_be_granted
from materia_nb.handoff.contract.contract_check import Checked, validate
from materia_nb.handoff.contract.contract_fields import (
    EVIDENCE,
    FINDINGS,
    Output,
    apply_updates,
    as_list,
    output_of,
    part,
)
from materia_nb.handoff.contract.contract_layout import layout
from materia_nb.handoff.contract.contract_turn import (
    TAG,
    ask,
    assignment_of,
    find,
    kept,
    refusal,
    remembered,
    report,
    usable,
    writable_sections,
)
from materia_nb.handoff.protocol import (
    NO_REASON,
    SAMPLE,
    UNKNOWN,
    Action,
    Gist,
    Issue,
    Outcome,
    Piece,
    Reading,
    Refusal,
    TurnFacts,
    Verdict,
    as_text,
    missing_sources,
    named,
    one_line,
    sample_gist,
)
from materia_nb.handoff.requirements import Requirements
from materia_nb.jsonvalue import JSON, compact


def conclusion(reports: Sequence[Reported]) -> list[str]:
    """Return the summary of a single agent as it wrote it, else what each one found, and what was checked and is open."""
    done = [(who, said) for who, value in reports if (said := output_of(value)).plan_status == "COMPLETE"]
    if len(done) == 1 and (summary := done[0][1].user_facing_summary):
        lines = summary.splitlines()
    else:
        lines = [line for who, said in done for line in named(who, _said_outcome(said))]
    outputs = [said for _, said in done]
    return [
        *lines,
        *named("Verified by", dict.fromkeys(text for said in outputs for text in _checked(said))),
        *named("Impacts elsewhere", _all(outputs, "cross_layer_impacts")),
        *named("Still open", _all(outputs, "open_gaps")),
    ]


def _said_outcome(said: Output) -> list[str]:
    return _texts_of(said.evidence["key_outputs"]) or [said.user_facing_summary or "done"]


def _checked(said: Output) -> Iterator[str]:
    """How the work was checked, as far as the agent says; a COMPLETE contract has passed."""
    for name in ("method", "details"):
        if told := as_text(said.verification.get(name) or ""):
            yield told
            return


def _all(outputs: Sequence[Output], name: str) -> list[str]:
    return list(dict.fromkeys(text for said in outputs for text in _texts_of(said.evidence[name])))


def _texts_of(entries: Sequence[JSON]) -> list[str]:
    return [as_text(entry) for entry in entries if entry is not None]


def verdict(contract: Mapping[str, JSON], status: str) -> Verdict:
    """Turn the status of a valid contract into a route or an action."""
    if status == "COMPLETE":
        return Verdict(_ownership(contract) != "not_my_surface")
    if status == "IN_PROGRESS":
        failed = contract_fields.verification_passed(contract) is False
        if failed or contract_fields.loop_state(contract) is not None:
            return Verdict(False)
        return Verdict(None, "reissue", f"The agent is still at work: {_next_action(contract)}")
    if status == "APPROVAL_REQUEST":
        return _approval(part(contract, "approval_request"))
    if status == "NEEDS_INPUT":
        return Verdict(None, "pause", _next_action(contract), needs="question")
    return Verdict(
        None, "escalate", "; ".join(["The agent is blocked", *_gaps(contract), *_helper(contract)])
    )


def _approval(request: Mapping[str, JSON]) -> Verdict:
    asked = one_line(as_text(request.get("exact_content") or request.get("operation") or ""))
    if not can_be_granted(request):
        return Verdict(None, "pause", f"The agent asks for direction: {asked}", needs="direction")
    own = f"nothing here issued the id {request['approval_id']}: it is the agent's own"
    return Verdict(None, "pause", f"The agent asks for consent: {asked} ({own})", needs="consent")


def context(contract: Mapping[str, JSON], warnings: Sequence[Issue]) -> str:
    """Write the contract as text for whoever works next, a line for each thing it says."""
    return "\n".join(_lines(contract, warnings))


def _lines(contract: Mapping[str, JSON], warnings: Sequence[Issue]) -> Iterator[str]:
    yield contract_fields.plan_status(contract)
    summary = contract_fields.user_facing_summary(contract)
    if summary:
        yield f"Summary: {summary}"
    yield from named("Key outputs", _texts(contract, "key_outputs"))
    yield from named("Impacts elsewhere", _texts(contract, "cross_layer_impacts"))
    yield from named("Open gaps", _gaps(contract))
    if _ownership(contract) in ("cross_surface_dependency", "not_my_surface"):
        yield f"Ownership: {_ownership(contract)}"
        yield from _helper(contract)
    yield from named("Warnings", [warning.message for warning in warnings])


def work_items(contract: Mapping[str, JSON]) -> list[JSON]:
    """Turn each open gap into a work item: its first line is the title, the rest the context."""
    helper = "\n".join(_helper(contract))
    items: list[JSON] = []
    for gap in _gaps(contract):
        title, _, rest = gap.strip().partition("\n")
        told = "\n".join(line for line in (rest.strip(), helper) if line)
        items.append({"title": title.strip(), "context": told or title.strip()})
    return items


def _ownership(contract: Mapping[str, JSON]) -> JSON:
    return part(contract, "consolidation_report").get("ownership_assessment")


def _next_action(contract: Mapping[str, JSON]) -> str:
    return as_text(part(contract, "agent_status").get("next_action") or "")


def _texts(contract: Mapping[str, JSON], name: str) -> list[str]:
    return [as_text(entry) for entry in contract_fields.evidence(contract, name) if entry is not None]


def _gaps(contract: Mapping[str, JSON]) -> list[str]:
    """The open gaps of both reports, each once and none blank."""
    others = as_list(part(contract, "consolidation_report").get("open_gaps"))
    gaps = [*_texts(contract, "open_gaps"), *(as_text(gap) for gap in others if gap is not None)]
    return [gap for gap in dict.fromkeys(gaps) if gap.strip()]


def _helper(contract: Mapping[str, JSON]) -> Iterator[str]:
    helper = part(contract, "consolidation_report").get("next_best_agent")
    if helper:
        yield f"Next best agent: {one_line(as_text(helper))}"


_STATUS: Final[dict[Outcome, tuple[str, str | None]]] = {
    "done": ("COMPLETE", "pass"),
    "accepted": ("IN_PROGRESS", None),
    "again": ("IN_PROGRESS", "fail"),
    "open": ("IN_PROGRESS", None),
    "stuck": ("BLOCKED", None),
}
"""Status and result of the verification; what was accepted unchecked is not said to have passed."""


def to_gist(value: Mapping[str, JSON]) -> Gist:
    """Return what a contract says; fields of the wrong type say nothing."""
    reason = part(value, "agent_status").get("next_action")
    commands = [
        entry.get("command") if isinstance(entry, dict) else entry
        for entry in contract_fields.evidence(value, "commands_run")
    ]
    return Gist(
        outcome=_outcome(value),
        did=contract_fields.user_facing_summary(value) or "",
        found="\n".join(_gist_texts(value, "key_outputs")),
        pieces=tuple(_piece(gap) for gap in _gist_texts(value, "open_gaps") if gap.strip()),
        commands=tuple(command for command in commands if isinstance(command, str)),
        reason=reason if isinstance(reason, str) else "",
        agent=contract_fields.agent_id(value),
    )


def from_gist(gist: Gist) -> dict[str, JSON]:
    """Write a gist as a contract; it reports no agent id that the gist does not have."""
    status, result = _STATUS[gist.outcome]
    agent_status: dict[str, JSON] = {
        "plan_status": status,
        "pending_steps": [],
        "next_action": gist.reason or NO_REASON,
    }
    if gist.agent:
        agent_status["agent_id"] = gist.agent
    report: dict[str, JSON] = {name: [] for name in EVIDENCE}
    report["commands_run"] = list(gist.commands)
    report["key_outputs"] = gist.found.split("\n") if gist.found else []
    report["open_gaps"] = [_gap(piece) for piece in gist.pieces]
    if result is not None:
        report["verification"] = {"result": result}
    value: dict[str, JSON] = {
        "agent_status": agent_status,
        "evidence_report": report,
        "consolidation_report": None,
        "approval_request": None,
    }
    return {**value, "user_facing_summary": gist.did} if gist.did else value


def _outcome(contract: Mapping[str, JSON]) -> Outcome:
    status, loop = contract_fields.plan_status(contract), contract_fields.loop_state(contract)
    if status not in contract_fields.STATUSES:
        return "open"
    if status == "COMPLETE":
        if verdict(contract, status).satisfied is False or (loop is not None and loop.unfinished):
            return "again"
        return "done" if contract_fields.verification_passed(contract) else "open"
    if status == "IN_PROGRESS":
        return "again" if verdict(contract, status).satisfied is False else "open"
    return "stuck"


def _gist_texts(contract: Mapping[str, JSON], name: str) -> list[str]:
    return [entry for entry in contract_fields.evidence(contract, name) if isinstance(entry, str)]


def _piece(gap: str) -> Piece:
    title, _, rest = gap.partition("\n")
    return Piece(title, rest or title)


def _gap(piece: Piece) -> str:
    return piece.title if piece.context == piece.title else f"{piece.title}\n{piece.context}"


MOST_REPAIRS: Final = 2
"""How often a refused contract is asked for again before a person is called."""


class Examined(NamedTuple):
    """A reading with what was checked on the way to it; ``contract`` is None for a missing block."""

    reading: Reading
    checked: Checked
    contract: dict[str, JSON] | None


_NOBODY: Final = "a000000"
"""An agent id as contracts want it; nobody has it."""


class ContractProtocol:
    """Reads and asks for agent contracts."""

    name = "agent-contract"
    to_gist = staticmethod(to_gist)
    from_gist = staticmethod(from_gist)

    def read(self, text: str, wanted: Requirements, facts: TurnFacts = UNKNOWN) -> Reading:
        """Read an agent's reply; text sockets accept anything."""
        if wanted.parse == "text":
            return Reading(text.strip())
        return examine(find(text), wanted, facts).reading

    def ask(self, wanted: Requirements) -> str:
        """Say what a contract holds."""
        return ask(wanted)

    def given(self, task: Task) -> dict[str, JSON]:
        """Return the five sections of the envelope that the agent is handed (section 1)."""
        return assignment_of(task).envelope()

    def learn(
        self, value: Mapping[str, JSON], given: Mapping[str, JSON], knowledge: Mapping[str, JSON]
    ) -> Learned:
        """Merge ``update_contracts`` into what is kept about the project (section 10)."""
        done = apply_updates(knowledge, value.get("update_contracts"), writable_sections(given) or ())
        return Learned(done.document, (*done.warnings, *done.issues))

    def suggestions(self, value: Mapping[str, JSON]) -> list[tuple[SuggestionKind, Mapping[str, str]]]:
        """List what an agent suggests to remember (section 9)."""
        said = output_of(value)
        found: list[tuple[SuggestionKind, Mapping[str, str]]] = []
        found += [("memory", one) for one in said.memorialize_suggestions.suggestions]
        return found + [("note", {"text": note}) for note in said.memory_suggestions]

    def conclusion(self, reports: Sequence[Reported]) -> list[str]:
        """Say what a person is told at the end (section 12)."""
        return conclusion(reports)

    def layout(self, value: Mapping[str, JSON], find: FindFile) -> list[Section]:
        """Lay out what a contract says."""
        return layout(value, find)

    def way(self, readings: Sequence[Reading]) -> list[Section]:
        """Show the plan statuses of a visit, without those that were refused."""
        statuses = tuple(_recorded(readings))
        return [Section("plan_status", statuses=statuses)] if statuses else []

    detours = False

    def samples(self, outcome: Outcome, count: int) -> Iterator[dict[str, JSON]]:
        """Yield contracts that may say an outcome."""
        # What is not satisfied is told as done and not of this agent's making: work in progress may be asked to go on.
        told: Outcome = "done" if outcome == "again" else outcome
        value = from_gist(sample_gist(told, count, agent=_NOBODY))
        if outcome != "again":
            yield value
        owner = "not_my_surface" if outcome == "again" else "owned_here"
        report: dict[str, JSON] = {name: [SAMPLE] for name in FINDINGS if name != "open_gaps"}
        evidence = value.get("evidence_report")
        gaps: JSON = evidence.get("open_gaps") if isinstance(evidence, dict) else None
        for open_gaps in (gaps, [SAMPLE]):
            found = {**report, "ownership_assessment": owner, "open_gaps": open_gaps}
            yield {**value, "consolidation_report": found}

    def stopping(self) -> Iterator[dict[str, JSON]]:
        """Yield contracts that need a person."""
        for value in self.samples("stuck", 0):
            yield value
            status = value.get("agent_status")
            known = status if isinstance(status, dict) else {}
            yield {**value, "agent_status": {**known, "plan_status": "NEEDS_INPUT"}}

    def written(self, value: Mapping[str, JSON]) -> str:
        """Write a contract behind a word, in its fence."""
        return f"{SAMPLE}\n```{TAG}\n{compact(value)}\n```"


def _recorded(readings: Sequence[Reading]) -> Iterator[str]:
    for reading in readings:
        if reading.accepted and isinstance(reading.value, dict):
            status = contract_fields.plan_status(reading.value)
            # Work that says itself that it is not done is accepted, and yet its status is not recorded.
            if isinstance(reading.memory, dict) and reading.memory.get("plan_status") == status:
                yield status


def examine(contract: JSON, wanted: Requirements, facts: TurnFacts = UNKNOWN) -> Examined:
    """Check a contract that was found, None for none, and decide what happens next (section 14)."""
    found = usable(contract)
    checked = validate(found, facts)
    value = kept(found)
    missing = tuple(missing_sources(value, wanted)) if found is not None else ()
    reading = _reading(found or {}, value, checked._replace(issues=checked.issues + missing), wanted, facts)
    return Examined(reading, checked, found)


def _reading(
    contract: dict[str, JSON], value: JSON, checked: Checked, wanted: Requirements, facts: TurnFacts
) -> Reading:
    if checked.only_unfinished:
        way = Verdict(False, reason=checked.issues[0].message)
        return _accepted(contract, value, checked, way, wanted, facts.memory)
    if checked.issues:
        return _refused(value, checked, facts)
    step = report(remembered(facts.memory), checked.status)
    if step.issue is not None:
        return Reading(
            value,
            "contract",
            (step.issue,),
            action=refusal(step.issue),
            warnings=checked.warnings,
            reason=f"{step.issue.message} {step.issue.fix}.",
            memory=facts.memory,
        )
    if step.warning is not None:
        checked = checked._replace(warnings=(*checked.warnings, step.warning))
    return _accepted(
        contract, value, checked, verdict(contract, checked.status), wanted, step.record.as_json()
    )


def _accepted(
    contract: dict[str, JSON],
    value: JSON,
    checked: Checked,
    way: Verdict,
    wanted: Requirements,
    memory: JSON,
) -> Reading:
    unfinished = checked.only_unfinished or checked.status == "IN_PROGRESS"
    if way.action == "route" and way.satisfied is False and unfinished and not wanted.sends_back:
        way = way._replace(satisfied=None, action="reissue")  # run the node again (section 14)
    return way._replace(warnings=checked.warnings).reading(
        value,
        context=context(contract, checked.warnings),
        work_items=work_items(contract) if wanted.work_items else None,
        issues=checked.issues,
        memory=memory,
    )


def _refused(value: JSON, checked: Checked, facts: TurnFacts) -> Reading:
    error: Refusal = "not_json" if value is None else "contract"
    action: Action = "reissue"
    reason = "The contract is not valid."
    if facts.refused >= MOST_REPAIRS:
        action, reason = "escalate", f"The contract is still not valid after {MOST_REPAIRS} repairs."
    elif checked.tier == "repair" and checked.repair == "escalate_contract_repair":
        action, reason = "escalate", "The contract is not valid, and no agent id says who could repair it."
    return Reading(
        value,
        error,
        checked.issues,
        action=action,
        warnings=checked.warnings,
        reason=reason,
        memory=facts.memory,
    )
