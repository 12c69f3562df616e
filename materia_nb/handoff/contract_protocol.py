"""The agent contract protocol, which checks an agent's contract and decides the next action.

It implements sections 3 to 8 and 14 of the agent contract rules.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.handoff import contract_fields
from materia_nb.handoff.base import (
    SAMPLE,
    UNKNOWN,
    AgentReport,
    HandoffProtocol,
    Issue,
    KnowledgeUpdate,
    Outcome,
    Reaction,
    Reading,
    Requirements,
    Section,
    SimpleAnswer,
    SuggestionKind,
    TurnFacts,
)
from materia_nb.handoff.checks import (
    Checker,
    Fields,
    HandoffField,
    has_no_fields,
    is_missing,
    issue_of,
    missing_sources,
    placeholder_issues,
)
from materia_nb.handoff.jsontext import as_text, is_too_deep, list_line, without_backticks, without_infinities
from materia_nb.handoff.runtime_rules import apply_updates, can_be_approved, is_approval_id, rejected_update
from materia_nb.jsonvalue import JSON, as_list, set_path

_Tier: TypeAlias = Literal["ok", "repair", "reissue"]
Repair: TypeAlias = Literal["none", "resume_same_agent_contract_repair", "escalate_contract_repair"]

_NOT_RUN = re.compile(r"not run|not executed|skipped|n/a")
_PLACEHOLDER = re.compile(
    r"(n/?a|none|-|\[\]|not (available|applicable)|no (commands? run|verbatim output)|"
    r"no output( captured| to capture)?)\.?"
)


class CheckedContract(NamedTuple):
    """A contract that has been checked.

    Attributes:
        contract: the parsed contract.
        issues: the reasons why the contract is refused; empty if it is accepted.
        warnings: the warnings about the contract.
        tier: ``ok`` for an accepted contract, ``repair`` if the agent should correct the contract, or ``reissue`` if
            the status is missing or unknown, so the whole turn must be repeated.
        repair: the repair that the contract needs.
    """

    contract: contract_fields.Contract
    issues: tuple[Issue, ...]
    warnings: tuple[Issue, ...]
    tier: _Tier
    repair: Repair

    @property
    def is_only_unfinished(self) -> bool:
        """True if the only issue is that the agent has not finished the loop within its work."""
        codes = [issue.code or "" for issue in self.issues]
        return bool(codes) and all(code.startswith("LOOP_STATE_INCOMPLETE:") for code in codes)


def check_contract(contract: Mapping[str, JSON] | None, facts: TurnFacts) -> CheckedContract:
    """Check a contract without raising errors; ``contract`` is None if the reply does not contain a contract block."""
    parsed = contract_fields.Contract(contract or {})
    status, request = parsed.plan_status, parsed.approval_request
    asks_approval = status == "APPROVAL_REQUEST" or bool(request)
    issues, warnings = list(_status_issues(parsed, status)), []
    if contract is not None:
        issues += [
            *(_evidence_issues(parsed) if status in contract_fields.PLAN_STATUSES else ()),
            *(_verification_issues(parsed) if status == "COMPLETE" else ()),
            *_consolidation_issues(parsed, required=contract_fields.consolidation_required(facts.assignment)),
            *(_field_issues({"approval_request": _REQUEST}, {"approval_request": request}) if asks_approval else ()),
            *(_loop_issues(parsed) if status == "COMPLETE" else ()),
        ]
        warnings += [*(_approval_warnings(request) if asks_approval else ()), *_unquoted_output_warnings(parsed)]
        if not issues:
            warnings += _update_warnings(parsed, facts)
    is_unreadable = not parsed.agent_status or status not in contract_fields.PLAN_STATUSES
    tier: _Tier = "ok" if not issues else "reissue" if is_unreadable else "repair"
    return CheckedContract(parsed, tuple(issues), tuple(warnings), tier, _choose_repair(parsed, facts, tier))


def _choose_repair(contract: contract_fields.Contract, facts: TurnFacts, tier: _Tier) -> Repair:
    if tier == "ok":
        return "none"
    if any(map(contract_fields.is_agent_id, (contract.agent_id, facts.agent_id))):
        return "resume_same_agent_contract_repair"
    return "escalate_contract_repair"


def _excerpt(value: JSON) -> str:
    return str(value)[:200]


def _required_object(missing: str, fix: str, fields: Fields) -> HandoffField:
    """Define a required object. If the object is missing, each of its fields is also reported as missing.

    Args:
        missing: the issue code to report if the object is missing.
        fix: the fix to report if the object is missing.
        fields: the fields of the object.
    """
    return HandoffField("object", missing, fix, has_no_fields, fields=fields, report_nested_fields=True)


def _required_fields(
    fixes: Mapping[str, str], prefix: str = "", missing_test: Callable[[JSON], bool] = is_missing
) -> dict[str, HandoffField]:
    """Define required fields that accept any type.

    Args:
        fixes: the names of the fields, each with the fix to report if the field is missing.
        prefix: the prefix of the issue codes. It is followed by the name of the field in upper case.
        missing_test: a function that returns True if a value counts as missing.
    """
    return {name: HandoffField("any", prefix + name.upper(), fix, missing_test) for name, fix in fixes.items()}


def _word_field(choices: tuple[str, ...], code: str) -> HandoffField:
    return HandoffField("word", code, choices=choices, code_prefix=code, typed=False)


_STATUS: Final = _required_object(
    "AGENT_STATUS",
    "end the reply with an ```agent_contract_handoff block that contains one JSON object",
    {
        "plan_status": _word_field(contract_fields.PLAN_STATUSES, "PLAN_STATUS"),
        **_required_fields(
            {
                "pending_steps": "list the remaining steps; write [] if there are none",
                "next_action": "write what should happen next",
                "agent_id": "write the id that you received",
            }
        ),
    },
)
_EVIDENCE: Final = _required_object(
    "EVIDENCE_REPORT",
    "add the object with its seven lists",
    _required_fields(dict.fromkeys(contract_fields.EVIDENCE, "add it; write [] if there is nothing")),
)
_CONSOLIDATION: Final = _required_object(
    "CONSOLIDATION_REPORT",
    "add the report, because other agents work on this task too",
    {
        "ownership_assessment": _word_field(contract_fields.OWNERSHIP, "OWNERSHIP_ASSESSMENT"),
        **_required_fields(
            dict.fromkeys(contract_fields.FINDINGS, 'fill in the list; write ["none"] if it has no entries'),
            missing_test=operator.not_,
        ),
    },
)
_REQUEST: Final = _required_object(
    "APPROVAL_REQUEST",
    "describe the command that needs approval",
    _required_fields(
        {"rollback": "write how to undo the command", "verification": "write how to check that the command worked"},
        "APPROVAL_REQUEST_",
    ),
)
_COMPLETE_REQUEST: Final[Fields] = {
    name: HandoffField("any", f"APPROVAL_REQUEST_FIELD_MISSING:{name}")
    for name in ("operation", "exact_content", "scope", "risk_level")
}


def _field_issues(fields: Fields, owner: Mapping[str, JSON], path: str = "") -> list[Issue]:
    check = Checker()
    check.read(owner, fields, path)
    return check.issues


def _status_issues(contract: contract_fields.Contract, status: str) -> Iterator[Issue]:
    reported, agent_id = contract.agent_status, contract.agent_id
    normalized = {**reported, "plan_status": status, "agent_id": agent_id} if reported else {}
    yield from _field_issues({"agent_status": _STATUS}, {"agent_status": normalized})
    if agent_id and not contract_fields.is_agent_id(agent_id):
        yield issue_of("AGENT_ID", _excerpt(agent_id))


def _evidence_issues(contract: contract_fields.Contract) -> list[Issue]:
    report = contract.evidence_report
    present = {name: True for name in contract_fields.EVIDENCE if name in report or name.upper() in report}
    return _field_issues({"evidence_report": _EVIDENCE}, {"evidence_report": {**report, **present}})


def _verification_issues(contract: contract_fields.Contract) -> Iterator[Issue]:
    if contract.passed is None:
        yield issue_of("VERIFICATION_RESULT_REQUIRED_FOR_COMPLETE")
    elif not contract.passed:
        yield issue_of("VERIFICATION_RESULT_MUST_BE_PASS")


def _consolidation_issues(contract: contract_fields.Contract, *, required: bool) -> list[Issue]:
    report = contract.consolidation_report
    if not required and not report:
        return []
    return _field_issues({"consolidation_report": _CONSOLIDATION}, {"consolidation_report": report})


def _approval_warnings(request: Mapping[str, JSON]) -> Iterator[Issue]:
    yield from _field_issues(_COMPLETE_REQUEST, request, "approval_request.")
    approval_id = request.get("approval_id")
    if not is_missing(approval_id) and not is_approval_id(approval_id):
        yield issue_of("APPROVAL_ID_MALFORMED", _excerpt(approval_id), shown=_excerpt(approval_id))
    elif not (is_missing(approval_id) or is_missing(request.get("exact_content")) or can_be_approved(request)):
        yield issue_of("APPROVAL_WITHOUT_COMMAND")
    risk = request.get("risk_level")
    level = _excerpt(risk).strip().upper()
    if not is_missing(risk) and level not in contract_fields.RISKS:
        choices = ", ".join(contract_fields.RISKS)
        yield issue_of("APPROVAL_REQUEST_INVALID_RISK_LEVEL", level, choices=choices)


def _loop_issues(contract: contract_fields.Contract) -> Iterator[Issue]:
    loop = contract.loop_state
    if loop is not None and loop.unfinished:
        rounds = f"iteration={loop.iteration}<max={loop.max_iterations}"
        yield issue_of("LOOP_STATE_INCOMPLETE", f"{rounds},metric={loop.metric}<threshold={loop.threshold}")


def _unquoted_output_warnings(contract: contract_fields.Contract) -> Iterator[Issue]:
    """Yield a warning if the contract lists commands that were run but does not quote their output."""
    commands, outputs = (_evidence_texts(contract, name) for name in ("commands_run", "verbatim_outputs"))
    has_run = any(text and text != "none" and not _NOT_RUN.search(text) for text in commands)
    if has_run and not any(text and not _PLACEHOLDER.fullmatch(text) for text in outputs):
        yield issue_of("verbatim_outputs_missing")


def _evidence_texts(contract: contract_fields.Contract, name: str) -> list[str]:
    """Return the entries of an evidence list as lowercase strings.

    An entry that is an object is represented by its command, its output or its content.
    """
    evidence = contract.evidence_report
    return [_evidence_text(entry) for entry in as_list(evidence.get(name, evidence.get(name.upper())))]


def _evidence_text(entry: JSON) -> str:
    if isinstance(entry, dict):
        entry = next((entry[name] for name in ("command", "output", "content") if name in entry), str(entry))
    return " ".join(entry.lower().split()) if isinstance(entry, str) else ""


def _update_warnings(contract: contract_fields.Contract, facts: TurnFacts) -> Iterator[Issue]:
    writable = contract_fields.writable_sections(facts.assignment)
    if writable is None:
        return
    for index, entry in enumerate(contract.update_contracts):
        if entry.contract not in writable:
            yield rejected_update(index, entry.contract, facts.agent_id, writable)


MAX_REPAIRS: Final = 2
"""Maximum number of repair turns before a person must act."""


class ExaminedOutput(NamedTuple):
    """A parsed output and its checked contract."""

    reading: Reading
    checked: CheckedContract


_SAMPLE_ID: Final = "a000000"  # A valid agent id for sample outputs; real agents never have this id.


class ContractProtocol(HandoffProtocol):
    """A protocol in which a reply is prose followed by a JSON contract; agents may request approval of a command."""

    name = "agent-contract"
    ask = staticmethod(contract_fields.contract_form)
    form = staticmethod(contract_fields.contract_form)
    after_answer = "Report IN_PROGRESS and continue."
    assignment = staticmethod(contract_fields.assignment_of)
    layout = staticmethod(contract_fields.contract_layout)

    def read(self, text: str, requirements: Requirements, facts: TurnFacts = UNKNOWN) -> Reading:
        """Parse and check the contract in an agent's reply; any text is valid if the socket expects text."""
        if requirements.parse == "text":
            return Reading(text.strip())
        return examine_contract(contract_fields.contract_in(text), requirements, facts).reading

    def learn(
        self, value: Mapping[str, JSON], assignment: Mapping[str, JSON], knowledge: Mapping[str, JSON]
    ) -> KnowledgeUpdate:
        """Merge the field ``update_contracts`` of a contract into the project's knowledge (agent contract rule 10)."""
        writable = contract_fields.writable_sections(assignment)
        updates = apply_updates(knowledge, value.get("update_contracts"), writable or ())
        # If the assignment lists the writable sections, these warnings are already part of the reading.
        warnings = updates.warnings if writable is None else ()
        return KnowledgeUpdate(updates.document, (*warnings, *updates.issues))

    def conclusion(self, reports: Sequence[AgentReport]) -> list[str]:
        """Return the final lines for a complete cast: its results, their verification, impacts elsewhere and open gaps.

        If a single agent completed its work with a summary, the summary is used as the result. Otherwise, the key
        outputs of all agents are listed.
        """
        contracts_by_agent = [(agent, contract_fields.Contract(value)) for agent, value in reports]
        complete = [(agent, contract) for agent, contract in contracts_by_agent if contract.plan_status == "COMPLETE"]
        if len(complete) == 1 and (summary := complete[0][1].user_facing_summary):
            lines = summary.splitlines()
        else:
            lines = [line for agent, contract in complete for line in list_line(agent, _result_lines(contract))]
        contracts = [contract for _, contract in complete]
        return [
            *lines,
            *list_line("Verified by", dict.fromkeys(map(_verification_text, contracts))),
            *list_line("Impacts elsewhere", _distinct_entries(contracts, "cross_layer_impacts")),
            *list_line("Still open", _distinct_entries(contracts, "open_gaps")),
        ]

    def suggestions(self, value: Mapping[str, JSON]) -> list[tuple[SuggestionKind, Mapping[str, str]]]:
        """Return the project-memory suggestions in a contract (agent contract rule 9)."""
        contract = contract_fields.Contract(value)
        return [
            *(("memory", memory) for memory in contract.memorialize_suggestions.suggestions),
            *(("note", {"text": note}) for note in contract.memory_suggestions),
        ]

    def status_sections(self, readings: Sequence[Reading]) -> list[Section]:
        """Return a section that displays the plan statuses that were accepted in a visit."""
        statuses = tuple(_accepted_statuses(readings))
        if not statuses:
            return []
        next_status_words = " or ".join(contract_fields.next_statuses(statuses[-1]))
        return [Section("plan_status", lines=(f"{' → '.join(statuses)} (may be followed by {next_status_words})",))]

    def sample_outputs(self, outcome: Outcome, count: int) -> Iterator[dict[str, JSON]]:
        """Yield contracts that can lead to the outcome."""
        # For "again", the agent reports COMPLETE but disowns the work: IN_PROGRESS would make it continue.
        reported_outcome: Outcome = "done" if outcome == "again" else outcome
        value = contract_fields.contract_of(SimpleAnswer.sample(reported_outcome, count, agent=_SAMPLE_ID))
        if outcome != "again":
            yield value
        owner = "not_my_surface" if outcome == "again" else "owned_here"
        findings: dict[str, JSON] = {name: [SAMPLE] for name in contract_fields.FINDINGS if name != "open_gaps"}
        gaps = contract_fields.section_of(value, "evidence_report").get("open_gaps")
        for open_gaps in (gaps, [SAMPLE]):
            report = {**findings, "ownership_assessment": owner, "open_gaps": open_gaps}
            yield {**value, "consolidation_report": report}

    def sample_stops(self) -> Iterator[dict[str, JSON]]:
        """Yield sample contracts that stop the cast until a person acts."""
        for value in self.sample_outputs("stuck", 0):
            yield value
            yield set_path(value, ["agent_status", "plan_status"], "NEEDS_INPUT")

    def write(self, value: Mapping[str, JSON]) -> str:
        """Serialize a contract as a fenced block with the contract's tag."""
        return f"```{contract_fields.TAG}\n{without_backticks(value)}\n```"

    def write_for_person(self, answer: SimpleAnswer, facts: TurnFacts) -> str:
        """Serialize a person's answer as a contract with the id of the agent.

        The verification states that a person checked the work. If the answer has no verdict, the work counts as done.
        """
        outcome: Outcome = "done" if answer.outcome == "open" else answer.outcome
        value = contract_fields.contract_of(replace(answer, outcome=outcome, agent=facts.agent_id))
        value = set_path(value, ["evidence_report", "verification", "method"], "Checked by a person.")
        if contract_fields.consolidation_required(facts.assignment):
            empty: dict[str, JSON] = {name: ["none"] for name in contract_fields.FINDINGS}
            value = {**value, "consolidation_report": {"ownership_assessment": "owned_here", **empty}}
        return self.write(value)


def _result_lines(contract: contract_fields.Contract) -> list[str]:
    return contract_fields.texts_of(contract.evidence["key_outputs"]) or [contract.user_facing_summary or "done"]


def _verification_text(contract: contract_fields.Contract) -> str:
    texts = (as_text(contract.verification.get(name) or "") for name in ("method", "details"))
    return next(filter(None, texts), "")


def _distinct_entries(contracts: Sequence[contract_fields.Contract], name: str) -> list[str]:
    return list(
        dict.fromkeys(text for contract in contracts for text in contract_fields.texts_of(contract.evidence[name]))
    )


def _accepted_statuses(readings: Sequence[Reading]) -> Iterator[str]:
    for reading in readings:
        if reading.accepted and isinstance(reading.value, dict):
            status = contract_fields.Contract(reading.value).plan_status
            # A contract that was accepted although its work is unfinished does not change the recorded status.
            if isinstance(reading.memory, dict) and reading.memory.get("plan_status") == status:
                yield status


def examine_contract(contract: JSON, requirements: Requirements, facts: TurnFacts = UNKNOWN) -> ExaminedOutput:
    """Check a contract and decide the next action (agent contract rule 14).

    Args:
        contract: the contract as JSON; None if the reply does not contain a contract.
        requirements: the requirements for an output of the socket.
        facts: the agent id, the memory and the other facts about the turn that the runtime knows.
    """
    readable_contract = contract if isinstance(contract, dict) and not is_too_deep(contract) else None
    checked = check_contract(readable_contract, facts)
    value = without_infinities(readable_contract)
    if readable_contract is not None:
        copied_words = placeholder_issues(readable_contract, contract_fields.FORM_WORDS_OF_CONTRACTS)
        checked = checked._replace(issues=(*checked.issues, *missing_sources(value, requirements), *copied_words))
    reading = _decide(value, checked, requirements, facts)
    reported_id = checked.contract.agent_id
    if reading.accepted and facts.agent_id not in ("", reported_id):
        note = f"agent_status.agent_id is {reported_id}, but the id of the agent is {facts.agent_id}"
        reading = reading._replace(notes=(*reading.notes, note))
    return ExaminedOutput(reading, checked)


def _decide(value: JSON, checked: CheckedContract, requirements: Requirements, facts: TurnFacts) -> Reading:
    contract, status = checked.contract, checked.contract.plan_status
    if checked.is_only_unfinished:
        route = Reading(satisfied=False, reason=checked.issues[0].message)
        return _accept(value, checked, route, requirements, facts.memory)
    step = contract_fields.record_status(contract_fields.restore_status(facts.memory), status)
    if checked.issues:
        order_issues = (step.issue,) if step.issue is not None and status in contract_fields.PLAN_STATUSES else ()
        return _refuse(value, checked._replace(issues=checked.issues + order_issues), facts)
    if step.issue is not None:
        refused_reading = Reading(value, "contract", (step.issue,), warnings=checked.warnings, memory=facts.memory)
        reason = f"{step.issue.message} {step.issue.fix}."
        return refused_reading._replace(action=contract_fields.action_after_refusal(step.issue), reason=reason)
    if step.warning is not None:
        checked = checked._replace(warnings=(*checked.warnings, step.warning))
    route = contract_fields.contract_verdict(contract, status)
    return _accept(value, checked, route, requirements, step.record.as_json())


def _accept(value: JSON, checked: CheckedContract, route: Reading, requirements: Requirements, memory: JSON) -> Reading:
    contract = checked.contract
    unfinished = checked.is_only_unfinished or contract.plan_status == "IN_PROGRESS"
    if route.action == "route" and route.satisfied is False and unfinished and not requirements.sends_back:
        route = route._replace(satisfied=None, action="reissue")  # run the node again (section 14)
    return route._replace(
        value=value,
        context="\n".join(contract_fields.context_lines(contract, checked.warnings)),
        work_items=contract_fields.work_items_of_gaps(contract) if requirements.work_items else None,
        issues=checked.issues,
        warnings=checked.warnings,
        memory=memory,
        notes=tuple(contract.memorialize_suggestions.warnings),
    )


def _refuse(value: JSON, checked: CheckedContract, facts: TurnFacts) -> Reading:
    action: Reaction = "reissue"
    reason = "The contract is not valid."
    if facts.refused >= MAX_REPAIRS:
        action, reason = "escalate", f"The contract is still not valid after {MAX_REPAIRS} repairs."
    elif checked.tier == "repair" and checked.repair == "escalate_contract_repair":
        action, reason = "escalate", "The contract is not valid and does not name an agent that could repair it."
    refused_reading = Reading(value, "not_json" if value is None else "contract", checked.issues, memory=facts.memory)
    return refused_reading._replace(action=action, warnings=checked.warnings, reason=reason)
