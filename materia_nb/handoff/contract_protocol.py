"""Reading a contract: found, checked field by field, held against the last one, projected, or asked for again.

Agent contract rules, sections 3 to 8 and 14.
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
    HandoffProtocol,
    Issue,
    KnowledgeUpdate,
    Outcome,
    Reaction,
    Reading,
    Refusal,
    Requirements,
    Section,
    SimpleAnswer,
    StatusPath,
    SuggestionKind,
    TurnFacts,
)
from materia_nb.handoff.checks import (
    Checker,
    Fields,
    HandoffField,
    form_words,
    is_missing,
    is_no_object,
    issue_of,
    missing_sources,
)
from materia_nb.handoff.jsontext import too_deep, without_backticks, without_infinities
from materia_nb.handoff.runtime_rules import apply_updates, can_be_granted, is_approval_id, rejected
from materia_nb.jsonvalue import JSON, set_path

_Tier: TypeAlias = Literal["ok", "repair", "reissue"]
Repair: TypeAlias = Literal["none", "resume_same_agent_contract_repair", "escalate_contract_repair"]

_NOT_RUN = re.compile(r"not run|not executed|skipped|n/a")
_PLACEHOLDER = re.compile(
    r"(n/?a|none|-|\[\]|not (available|applicable)|no (commands? run|verbatim output)|"
    r"no output( captured| to capture)?)\.?"
)
_MOST_SHOWN: Final = 200


class CheckedContract(NamedTuple):
    """A contract, why it is refused, what is odd about it, and who could repair it."""

    contract: contract_fields.Contract
    issues: tuple[Issue, ...]
    warnings: tuple[Issue, ...]
    tier: _Tier
    repair: Repair

    @property
    def only_unfinished(self) -> bool:
        """Whether nothing is wrong except that the agent's own loop is not done."""
        codes = [issue.code or "" for issue in self.issues]
        return bool(codes) and all(code.startswith("LOOP_STATE_INCOMPLETE:") for code in codes)


def check_contract(contract: Mapping[str, JSON] | None, facts: TurnFacts) -> CheckedContract:
    """Check a contract, None for a block that is missing; never raises, whatever the fields hold."""
    found = contract_fields.Contract(contract or {})
    status, request = found.plan_status, found.approval_request
    asks_approval = status == "APPROVAL_REQUEST" or bool(request)
    issues, warnings = list(_status(found, status)), []
    if contract is not None:
        issues += [
            *(_evidence(found) if status in contract_fields.PLAN_STATUSES else ()),
            *(_verification(found) if status == "COMPLETE" else ()),
            *_consolidation(found, demanded=contract_fields.consolidation_required(facts.given)),
            *(_wrong({"approval_request": _REQUEST}, {"approval_request": request}) if asks_approval else ()),
            *(_loop(found) if status == "COMPLETE" else ()),
        ]
        warnings += [*(_approval_warnings(request) if asks_approval else ()), *_unproven(found)]
        if not issues:
            warnings += _updates(found, facts)
    hopeless = not found.agent_status or status not in contract_fields.PLAN_STATUSES
    tier: _Tier = "ok" if not issues else "reissue" if hopeless else "repair"
    return CheckedContract(found, tuple(issues), tuple(warnings), tier, _repair(found, facts, tier))


def _repair(contract: contract_fields.Contract, facts: TurnFacts, tier: _Tier) -> Repair:
    if tier == "ok":
        return "none"
    known = contract_fields.is_agent_id(contract.agent_id) or contract_fields.is_agent_id(facts.agent_id)
    return "resume_same_agent_contract_repair" if known else "escalate_contract_repair"


def _shown(value: JSON) -> str:
    return str(value)[:_MOST_SHOWN]


def _section(missing: str, fix: str, fields: Fields) -> HandoffField:
    """An object whose fields are missing too where it is."""
    return HandoffField("object", missing, fix, is_no_object, fields=fields, demands=True)


def _given(
    fixes: Mapping[str, str], before: str = "", lacks: Callable[[JSON], bool] = is_missing
) -> dict[str, HandoffField]:
    """Fields that must be there, whatever they hold, each with what to do; their codes are their names."""
    return {name: HandoffField("any", before + name.upper(), fix, lacks) for name, fix in fixes.items()}


def _word(words: tuple[str, ...], code: str) -> HandoffField:
    return HandoffField("word", code, words=words, code=code, typed=False)


_STATUS: Final = _section(
    "AGENT_STATUS",
    "end the reply with an ```agent_contract_handoff block that contains one JSON object",
    {
        "plan_status": _word(contract_fields.PLAN_STATUSES, "PLAN_STATUS"),
        **_given(
            {
                "pending_steps": "list the remaining steps, [] if there are none",
                "next_action": "write what should happen next",
                "agent_id": "write the id that you received",
            }
        ),
    },
)
_EVIDENCE: Final = _section(
    "EVIDENCE_REPORT",
    "add it, an object with seven lists",
    _given(dict.fromkeys(contract_fields.EVIDENCE, "add it, [] if there is nothing")),
)
_CONSOLIDATION: Final = _section(
    "CONSOLIDATION_REPORT",
    "add it: other agents work on this task too",
    {
        "ownership_assessment": _word(contract_fields.OWNERSHIP, "OWNERSHIP_ASSESSMENT"),
        **_given(
            dict.fromkeys(contract_fields.FINDINGS, 'fill it in, with ["none"] if there is nothing'),
            lacks=operator.not_,
        ),
    },
)
_UNDO: Final = {
    "rollback": "write how to undo the command",
    "verification": "write how to check that the command worked",
}
_REQUEST: Final = _section(
    "APPROVAL_REQUEST", "describe the command that needs approval", _given(_UNDO, "APPROVAL_REQUEST_")
)
_NAMED: Final = ("operation", "exact_content", "scope", "risk_level")
_BETTER_REQUEST: Final = _section(
    "", "", {name: HandoffField("any", f"APPROVAL_REQUEST_FIELD_MISSING:{name}") for name in _NAMED}
)


def _wrong(fields: Fields, contract: Mapping[str, JSON]) -> list[Issue]:
    check = Checker()
    check.read(contract, fields)
    return check.issues


def _status(contract: contract_fields.Contract, status: str) -> Iterator[Issue]:
    given, name = contract.agent_status, contract.agent_id
    folded = {**given, "plan_status": status, "agent_id": name} if given else {}
    yield from _wrong({"agent_status": _STATUS}, {"agent_status": folded})
    if name and not contract_fields.is_agent_id(name):
        yield issue_of("AGENT_ID", _shown(name))


def _evidence(contract: contract_fields.Contract) -> list[Issue]:
    given = contract.evidence_report
    there = {name: True for name in contract_fields.EVIDENCE if name in given or name.upper() in given}
    return _wrong({"evidence_report": _EVIDENCE}, {"evidence_report": {**given, **there}})


def _verification(contract: contract_fields.Contract) -> Iterator[Issue]:
    if contract.passed is None:
        yield issue_of("VERIFICATION_RESULT_REQUIRED_FOR_COMPLETE")
    elif not contract.passed:
        yield issue_of("VERIFICATION_RESULT_MUST_BE_PASS")


def _consolidation(contract: contract_fields.Contract, *, demanded: bool) -> list[Issue]:
    given = {"consolidation_report": contract.consolidation_report}
    needed = demanded or bool(contract.consolidation_report)
    return _wrong({"consolidation_report": _CONSOLIDATION}, given) if needed else []


def _approval_warnings(request: Mapping[str, JSON]) -> Iterator[Issue]:
    yield from _wrong({"approval_request": _BETTER_REQUEST}, {"approval_request": dict(request)})
    own_id = request.get("approval_id")
    if not is_missing(own_id) and not is_approval_id(own_id):
        yield issue_of("APPROVAL_ID_MALFORMED", _shown(own_id), shown=_shown(own_id))
    elif not (is_missing(own_id) or is_missing(request.get("exact_content")) or can_be_granted(request)):
        yield issue_of("APPROVAL_WITHOUT_COMMAND")
    risk = request.get("risk_level")
    folded = _shown(risk).strip().upper()
    if not is_missing(risk) and folded not in contract_fields.RISKS:
        choices = ", ".join(contract_fields.RISKS)
        yield issue_of("APPROVAL_REQUEST_INVALID_RISK_LEVEL", folded, choices=choices)


def _loop(contract: contract_fields.Contract) -> Iterator[Issue]:
    loop = contract.loop_state
    if loop is not None and loop.unfinished:
        rounds = f"iteration={loop.iteration}<max={loop.max_iterations}"
        yield issue_of("LOOP_STATE_INCOMPLETE", f"{rounds},metric={loop.metric}<threshold={loop.threshold}")


def _unproven(contract: contract_fields.Contract) -> Iterator[Issue]:
    """Commands were run, and no output of any is shown."""
    commands, outputs = (_listed(contract, name) for name in ("commands_run", "verbatim_outputs"))
    if any(map(_is_command, commands)) and not any(map(_is_output, outputs)):
        yield issue_of("verbatim_outputs_missing")


def _listed(contract: contract_fields.Contract, name: str) -> list[str]:
    """The texts of a list, an object's by its command, output or content; empty for anything but a list."""
    evidence = contract.evidence_report
    given = evidence.get(name, evidence.get(name.upper()))
    return [_text(entry) for entry in given] if isinstance(given, list) else []


def _text(entry: JSON) -> str:
    if isinstance(entry, dict):
        entry = next((entry[name] for name in ("command", "output", "content") if name in entry), str(entry))
    return " ".join(entry.lower().split()) if isinstance(entry, str) else ""


def _is_command(text: str) -> bool:
    return bool(text) and text != "none" and not _NOT_RUN.search(text)


def _is_output(text: str) -> bool:
    return bool(text) and not _PLACEHOLDER.fullmatch(text)


def _updates(contract: contract_fields.Contract, facts: TurnFacts) -> Iterator[Issue]:
    writable = contract_fields.writable_sections(facts.given)
    if writable is None:
        return
    for place, entry in enumerate(contract.update_contracts):
        if entry.contract not in writable:
            yield rejected(place, entry.contract, facts.agent_id, writable)


MOST_REPAIRS: Final = 2
"""How often a refused contract is asked for again before a person is called."""


class Examined(NamedTuple):
    """A reading with what was checked on the way to it."""

    reading: Reading
    checked: CheckedContract


_NOBODY: Final = "a000000"
"""An agent id as contracts want it; nobody has it."""


class ContractProtocol(HandoffProtocol):
    """Reads and asks for agent contracts."""

    name = "agent-contract"
    ask = staticmethod(contract_fields.contract_form)
    form = staticmethod(contract_fields.contract_form)
    after_answer = "Report IN_PROGRESS and continue."
    conclusion = staticmethod(contract_fields.conclusion)
    assignment = staticmethod(contract_fields.assignment_of)
    layout = staticmethod(contract_fields.contract_layout)

    def read(self, text: str, wanted: Requirements, facts: TurnFacts = UNKNOWN) -> Reading:
        """Read an agent's reply; text sockets accept anything."""
        if wanted.parse == "text":
            return Reading(text.strip())
        return examine(contract_fields.contract_in(text), wanted, facts).reading

    def learn(
        self, value: Mapping[str, JSON], given: Mapping[str, JSON], knowledge: Mapping[str, JSON]
    ) -> KnowledgeUpdate:
        """Merge ``update_contracts`` into what is kept about the project (section 10)."""
        writable = contract_fields.writable_sections(given)
        done = apply_updates(knowledge, value.get("update_contracts"), writable or ())
        # Where the agent was given what it may write, the reading has already refused the rest, by the agent's id.
        refused = done.warnings if writable is None else ()
        return KnowledgeUpdate(done.document, (*refused, *done.issues))

    def suggestions(self, value: Mapping[str, JSON]) -> list[tuple[SuggestionKind, Mapping[str, str]]]:
        """List what an agent suggests to remember (section 9)."""
        contract = contract_fields.Contract(value)
        found: list[tuple[SuggestionKind, Mapping[str, str]]] = []
        found += [("memory", one) for one in contract.memorialize_suggestions.suggestions]
        return found + [("note", {"text": note}) for note in contract.memory_suggestions]

    def status_sections(self, readings: Sequence[Reading]) -> list[Section]:
        """Show the plan statuses of a visit, without those that were refused."""
        statuses = tuple(_recorded(readings))
        if not statuses:
            return []
        way = StatusPath(
            statuses,
            contract_fields.legal_next(statuses[-1]),
            contract_fields.PLAN_STATUSES[0],
            contract_fields.AROUND_IN_PROGRESS,
        )
        return [Section("plan_status", statuses=way)]

    def sample_outputs(self, outcome: Outcome, count: int) -> Iterator[dict[str, JSON]]:
        """Yield contracts that may say an outcome."""
        # What is not satisfied is told as done and not of this agent's making: work in progress may be asked to go on.
        told: Outcome = "done" if outcome == "again" else outcome
        value = contract_fields.contract_of(SimpleAnswer.sample(told, count, agent=_NOBODY))
        if outcome != "again":
            yield value
        owner = "not_my_surface" if outcome == "again" else "owned_here"
        findings: dict[str, JSON] = {
            name: [SAMPLE] for name in contract_fields.FINDINGS if name != "open_gaps"
        }
        evidence = value.get("evidence_report")
        gaps: JSON = evidence.get("open_gaps") if isinstance(evidence, dict) else None
        for open_gaps in (gaps, [SAMPLE]):
            found = {**findings, "ownership_assessment": owner, "open_gaps": open_gaps}
            yield {**value, "consolidation_report": found}

    def sample_stops(self) -> Iterator[dict[str, JSON]]:
        """Yield contracts that need a person."""
        for value in self.sample_outputs("stuck", 0):
            yield value
            status = value.get("agent_status")
            known = status if isinstance(status, dict) else {}
            yield {**value, "agent_status": {**known, "plan_status": "NEEDS_INPUT"}}

    def write(self, value: Mapping[str, JSON]) -> str:
        """Write a contract in its fence."""
        return _fenced(value)

    def write_for_person(self, answer: SimpleAnswer, facts: TurnFacts) -> str:
        """Write a contract that a person verified, in the name of the agent; who says no verdict is done."""
        outcome: Outcome = "done" if answer.outcome == "open" else answer.outcome
        value = contract_fields.contract_of(replace(answer, outcome=outcome, agent=facts.agent_id))
        value = set_path(value, ["evidence_report", "verification", "method"], "A person judged.")
        if contract_fields.consolidation_required(facts.given):
            nothing: dict[str, JSON] = {name: ["none"] for name in contract_fields.FINDINGS}
            value = {**value, "consolidation_report": {"ownership_assessment": "owned_here", **nothing}}
        return _fenced(value)


def _fenced(value: Mapping[str, JSON]) -> str:
    return f"```{contract_fields.TAG}\n{without_backticks(value)}\n```"


def _recorded(readings: Sequence[Reading]) -> Iterator[str]:
    for reading in readings:
        if reading.accepted and isinstance(reading.value, dict):
            status = contract_fields.Contract(reading.value).plan_status
            # Work that says itself that it is not done is accepted, and yet its status is not recorded.
            if isinstance(reading.memory, dict) and reading.memory.get("plan_status") == status:
                yield status


def examine(contract: JSON, wanted: Requirements, facts: TurnFacts = UNKNOWN) -> Examined:
    """Check a contract that was found, None for none, and decide what happens next (section 14)."""
    found = contract if isinstance(contract, dict) and not too_deep(contract) else None
    checked = check_contract(found, facts)
    value = without_infinities(found)
    missing = (
        (*missing_sources(value, wanted), *form_words(found, contract_fields.FORM_WORDS_OF_CONTRACTS))
        if found is not None
        else ()
    )
    reading = _reading(value, checked._replace(issues=checked.issues + missing), wanted, facts)
    own_id = checked.contract.agent_id
    if reading.accepted and facts.agent_id not in ("", own_id):
        note = f"agent_status.agent_id is {own_id}, but the id of the agent is {facts.agent_id}"
        reading = reading._replace(notes=(*reading.notes, note))
    return Examined(reading, checked)


def _reading(value: JSON, checked: CheckedContract, wanted: Requirements, facts: TurnFacts) -> Reading:
    contract, status = checked.contract, checked.contract.plan_status
    if checked.only_unfinished:
        way = Reading(satisfied=False, reason=checked.issues[0].message)
        return _accepted(value, checked, way, wanted, facts.memory)
    step = contract_fields.report(contract_fields.remembered(facts.memory), status)
    if checked.issues:
        late = (step.issue,) if step.issue is not None and status in contract_fields.PLAN_STATUSES else ()
        return _refused(value, checked._replace(issues=checked.issues + late), facts)
    if step.issue is not None:
        return Reading(
            value,
            "contract",
            (step.issue,),
            action=contract_fields.refusal(step.issue),
            warnings=checked.warnings,
            reason=f"{step.issue.message} {step.issue.fix}.",
            memory=facts.memory,
        )
    if step.warning is not None:
        checked = checked._replace(warnings=(*checked.warnings, step.warning))
    return _accepted(
        value, checked, contract_fields.contract_verdict(contract, status), wanted, step.record.as_json()
    )


def _accepted(
    value: JSON, checked: CheckedContract, way: Reading, wanted: Requirements, memory: JSON
) -> Reading:
    contract = checked.contract
    unfinished = checked.only_unfinished or contract.plan_status == "IN_PROGRESS"
    if way.action == "route" and way.satisfied is False and unfinished and not wanted.sends_back:
        way = way._replace(satisfied=None, action="reissue")  # run the node again (section 14)
    return way._replace(
        value=value,
        context=contract_fields.contract_context(contract, checked.warnings),
        work_items=contract_fields.work_items_of_gaps(contract) if wanted.work_items else None,
        issues=checked.issues,
        warnings=checked.warnings,
        memory=memory,
        notes=tuple(contract.memorialize_suggestions.warnings),
    )


def _refused(value: JSON, checked: CheckedContract, facts: TurnFacts) -> Reading:
    error: Refusal = "not_json" if value is None else "contract"
    action: Reaction = "reissue"
    reason = "The contract is not valid."
    if facts.refused >= MOST_REPAIRS:
        action, reason = "escalate", f"The contract is still not valid after {MOST_REPAIRS} repairs."
    elif checked.tier == "repair" and checked.repair == "escalate_contract_repair":
        action, reason = "escalate", "The contract is not valid, and it names no agent that could repair it."
    return Reading(
        value,
        error,
        checked.issues,
        action=action,
        warnings=checked.warnings,
        reason=reason,
        memory=facts.memory,
    )
