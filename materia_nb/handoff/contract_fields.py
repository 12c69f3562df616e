"""Reads the fields of an agent contract, and derives the route and the display (agent contract rules 1-6, 8-14).

The fields are read leniently from an object that has not been validated. The module also finds the contract block in a
reply, checks the order of the reported statuses, and writes the assignment and the form for the agent's prompt.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from materia_nb.handoff.base import (
    UNKNOWN,
    FindFile,
    Issue,
    Outcome,
    Pointer,
    Reaction,
    Reading,
    Requirements,
    Section,
    SimpleAnswer,
    Task,
    TextOrPointer,
    TurnFacts,
    WorkItem,
)
from materia_nb.handoff.checks import MAX_FORM_CHARS, issue_of
from materia_nb.handoff.jsontext import NO_REASON, NotJson, as_text, join_within_limit, list_line, one_line, wide_json
from materia_nb.handoff.runtime_rules import can_be_approved, update_entries
from materia_nb.jsonvalue import JSON, as_list, as_object, compact

PLAN_STATUSES: Final = ("IN_PROGRESS", "APPROVAL_REQUEST", "COMPLETE", "BLOCKED", "NEEDS_INPUT")
EVIDENCE: Final = (
    "patterns_checked",
    "files_checked",
    "commands_run",
    "key_outputs",
    "verbatim_outputs",
    "cross_layer_impacts",
    "open_gaps",
)
FINDINGS: Final = ("confirmed_findings", "suspected_findings", "conflicts", "open_gaps", "next_best_agent")
OWNERSHIP: Final = ("owned_here", "cross_surface_dependency", "not_my_surface")
RISKS: Final = ("LOW", "MEDIUM", "HIGH", "CRITICAL")
ABSENT: Final = "ABSENT"
"""Value of :attr:`Contract.rollback_executed` if the contract does not contain this field."""

_AGENT_ID = re.compile(r"a[0-9a-f]{5,}")


@dataclass(frozen=True, slots=True)
class LoopState:
    """The progress that an agent reports about a loop within its own work.

    Attributes:
        iteration: the number of the current iteration.
        max_iterations: the maximum number of iterations; None if it is not reported.
        metric: the current value of the metric; None if the metric or the threshold is missing or invalid.
        threshold: the value that the metric must reach; None if the metric or the threshold is missing or invalid.
    """

    iteration: int
    max_iterations: int | None
    metric: float | None
    threshold: float | None

    @property
    def unfinished(self) -> bool:
        """True if iterations are left and the metric is below the threshold; a higher metric is better."""
        if self.max_iterations is None or self.metric is None or self.threshold is None:
            return False
        return self.iteration < self.max_iterations and self.metric < self.threshold


def section_of(owner: JSON, name: str) -> dict[str, JSON]:
    """Return the object in the field ``name`` of ``owner``, or an empty dict if the field is not an object."""
    return as_object(as_object(owner).get(name))


def _normalize_status(text: str) -> str:
    """Convert a reported status to upper case, and strip surrounding whitespace and trailing punctuation."""
    return text.strip().upper().rstrip(".,;").rstrip()


def is_agent_id(text: str) -> bool:
    """Return True if ``text`` is a valid agent id. A repair turn can be sent only to an agent with a valid id."""
    return _AGENT_ID.fullmatch(text) is not None


def _parse_loop_state(value: JSON) -> LoopState | None:
    """Parse the field ``loop_state`` of a contract; return None if the iteration is missing or a count is invalid."""
    if not isinstance(value, dict) or "iteration" not in value:
        return None
    iteration, maximum = _parse_int(value["iteration"]), _parse_int(value.get("max_iterations"))
    if iteration is None or (maximum is None and value.get("max_iterations") is not None):
        return None
    metric, threshold = _parse_float(value.get("metric")), _parse_float(value.get("threshold"))
    if any(number is not None and math.isnan(number) for number in (metric, threshold)):
        metric = threshold = None
    return LoopState(iteration, maximum, metric, threshold)


def as_entries(value: JSON) -> list[JSON]:
    """Return a list unchanged, an empty list for null, and a list with one entry for any other value."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _parse_int(value: JSON) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _parse_float(value: JSON) -> float | None:
    """Convert a value to a float; return None for null, and NaN if the value is not a number."""
    if value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


_REQUIRED_FIELDS: Final = ("description", "body")
_OPTIONAL_FIELDS: Final = ("slug", "type", "class", "rationale")
_CHOICES: Final = {"type": ("atom", "decision", "negative"), "class": ("anchor", "log", "thread")}


class Suggestions(NamedTuple):
    """The suggestions that an agent makes for the project's memory.

    Attributes:
        suggestions: the valid suggestions, with their values converted to strings.
        warnings: warnings about malformed suggestions.
    """

    suggestions: list[dict[str, str]]
    warnings: list[str]


def memorialize_suggestions(clause: JSON) -> Suggestions:
    """Parse the field ``memorialize_suggestions``; a malformed suggestion causes a warning, but no issue."""
    result = Suggestions([], [])
    if not isinstance(clause, list | None):
        result.warnings.append(f"memorialize_suggestions: expected array, got {type(clause).__name__}")
    for index, entry in enumerate(as_list(clause)):
        path = f"memorialize_suggestions[{index}]"
        if not isinstance(entry, dict):
            result.warnings.append(f"{path}: not an object")
        elif missing := [name for name in _REQUIRED_FIELDS if not entry.get(name)]:
            result.warnings.append(f"{path}: missing required field(s) {', '.join(missing)}")
        else:
            fields = {name: entry.get(name) for name in (*_REQUIRED_FIELDS, *_OPTIONAL_FIELDS)}
            texts = {name: str(value) for name, value in fields.items() if value is not None}
            for name, choices in _CHOICES.items():
                word = texts.get(name, "").lower()
                if word and word not in choices:
                    result.warnings.append(f"{path}: {name}={word!r} not in {list(choices)} (kept as-is)")
            result.suggestions.append(texts)
    return result


class Contract:
    """The fields of a contract, which may be invalid; a field that is missing or cannot be read has an empty value.

    Attributes:
        value: the contract as JSON.
        agent_status: the object that contains the plan status, the agent id and the remaining steps.
        plan_status: the status of the plan in upper case, which may be an unknown word; empty if it is missing.
        agent_id: the agent id that the contract reports, which may be invalid; empty if it is missing.
        pending_steps: the remaining steps.
        next_action: the next action, or the options of a question.
        evidence_report: the report about the work.
        evidence: the seven lists of the evidence report, by lowercase name. The report may contain the names in upper
            case.
        verification: the agent's verification of its work.
        passed: True if the result of the verification is "pass"; None if the contract contains no verification.
        consolidation_report: the findings for other agents.
        approval_request: the command that needs approval.
        loop_state: the progress of the agent's own loop; None if it is missing or invalid.
        user_facing_summary: the agent's summary for a person; None if it is missing.
        memorialize_suggestions: the suggestions for the project's memory, which a person accepts or rejects.
        memory_suggestions: the agent's notes for a person.
        update_contracts: the updates of the project's knowledge, in order, before validation.
        rollback_executed: the reported rollback, or :data:`ABSENT` if the contract does not contain the field.
        context_consumption: a dict with ``tokens_used`` and ``pct_window``, whose values are None if they are invalid;
            None if the field is not an object.
    """

    def __init__(self, value: Mapping[str, JSON]) -> None:
        self.value = value
        self.agent_status = status = section_of(value, "agent_status")
        self.plan_status = _normalize_status(_as_optional_string(status.get("plan_status")) or "")
        self.agent_id = _as_optional_string(status.get("agent_id")) or ""
        self.pending_steps = as_entries(status.get("pending_steps"))
        self.next_action = status.get("next_action")
        self.evidence_report = report = section_of(value, "evidence_report")
        self.evidence = {
            name: as_entries(report.get(name.upper()) if report.get(name) is None else report[name])
            for name in EVIDENCE
        }
        self.verification = checked = section_of(report, "verification")
        has_verification = isinstance(report.get("verification"), dict)
        self.passed = str(checked.get("result")).strip().lower() == "pass" if has_verification else None
        self.consolidation_report = section_of(value, "consolidation_report")
        self.approval_request = section_of(value, "approval_request")
        self.loop_state = _parse_loop_state(value.get("loop_state"))
        summary, notes = value.get("user_facing_summary"), value.get("memory_suggestions")
        self.user_facing_summary = (summary.strip() or None) if isinstance(summary, str) else None
        self.memorialize_suggestions = memorialize_suggestions(value.get("memorialize_suggestions"))
        self.memory_suggestions = [str(note) for note in as_list(notes) if note is not None]
        self.update_contracts = update_entries(value.get("update_contracts"))
        self.rollback_executed = _as_optional_string(value.get("rollback_executed", ABSENT))
        used = value.get("context_consumption")
        self.context_consumption = _parse_consumption(used) if isinstance(used, dict) else None


def _as_optional_string(value: JSON) -> str | None:
    return None if value is None else str(value)


def _parse_consumption(value: Mapping[str, JSON]) -> dict[str, JSON]:
    percentage = _parse_float(value.get("pct_window"))
    is_number = percentage is not None and math.isfinite(percentage)
    return {"tokens_used": _parse_int(value.get("tokens_used")), "pct_window": percentage if is_number else None}


_MAX_IN_PROGRESS: Final = 2  # Maximum number of consecutive turns in which an agent may report IN_PROGRESS.


class StatusRecord(NamedTuple):
    """The history of an agent's reported statuses in a task.

    Attributes:
        status: the last reported status; None at the start of a task.
        in_progress: the number of consecutive IN_PROGRESS reports.
    """

    status: str | None = None
    in_progress: int = 0

    def as_json(self) -> JSON:
        """Return the record as JSON, for storage between turns."""
        return {"plan_status": self.status, "in_progress": self.in_progress}


class StatusStep(NamedTuple):
    """The result of recording a reported status.

    Attributes:
        record: the new record; if the status is refused, the previous record.
        issue: the reason why the status is refused; None if it is accepted.
        warning: a warning about an accepted status.
    """

    record: StatusRecord
    issue: Issue | None = None
    warning: Issue | None = None


def action_after_refusal(issue: Issue) -> Reaction:
    """Return the reaction to a refused status: ``reject`` if the order of statuses is wrong, otherwise ``escalate``."""
    return "reject" if (issue.code or "").startswith("ILLEGAL_TRANSITION:") else "escalate"


def restore_status(memory: JSON) -> StatusRecord:
    """Restore the status record from ``TurnFacts.memory``; return a new record if the value is not a valid record."""
    if not isinstance(memory, Mapping) or memory.get("plan_status") not in PLAN_STATUSES:
        return StatusRecord()
    count = memory.get("in_progress")
    return StatusRecord(memory["plan_status"], count if isinstance(count, int) else 0)


def next_statuses(status: str | None) -> tuple[str, ...]:
    """Return the statuses that may follow ``status``.

    Any status may follow IN_PROGRESS or the start of a task. Only IN_PROGRESS may follow any other status.
    """
    return PLAN_STATUSES if status in (None, "IN_PROGRESS") else ("IN_PROGRESS",)


def record_status(record: StatusRecord, status: str) -> StatusStep:
    """Record the status that an agent reported, or refuse it if it may not follow the previous status."""
    status = _normalize_status(status)
    legal = next_statuses(record.status)
    if status not in legal:
        values = {"status": status, "before": record.status, "legal": " or ".join(legal)}
        return StatusStep(record, issue_of("ILLEGAL_TRANSITION", f"{record.status}->{status}", **values))
    if status != "IN_PROGRESS":
        return StatusStep(StatusRecord(status))
    count = record.in_progress + 1 if record.status == "IN_PROGRESS" else 1
    if count > _MAX_IN_PROGRESS:
        issue = issue_of("IN_PROGRESS_RETRY_LIMIT", count, count=count, most=_MAX_IN_PROGRESS)
        return StatusStep(record, issue)
    warning = issue_of("IN_PROGRESS_RETRY_LIMIT_NEXT") if count == _MAX_IN_PROGRESS else None
    return StatusStep(StatusRecord(status, count), None, warning)


def assignment_of(task: Task) -> dict[str, JSON]:
    """Build an agent's assignment, which has five sections, from the socket's ``assignment`` in the loadout.

    The loadout may use snake case or camel case for names. A value of a wrong type is ignored. An agent that is not the
    primary agent, or that is responsible for several surfaces, must return a consolidation report.
    """

    def read_field(name: str) -> JSON:
        first, *rest = name.split("_")
        camel_case = first + "".join(word.capitalize() for word in rest)
        return task.assignment.get(camel_case, task.assignment.get(name))

    readable, surfaces = read_field("readable_sections"), _strings(read_field("surfaces"))
    sections = _strings(readable) if isinstance(readable, list) else list(task.knowledge)
    has_several_surfaces, is_primary = len(surfaces) > 1, read_field("primary") is not False
    consolidate = has_several_surfaces or not is_primary
    return {
        "project_knowledge": {name: task.knowledge[name] for name in sections if name in task.knowledge},
        "surface_routing": {
            "surfaces": surfaces,
            "multi_surface": has_several_surfaces,
            "role": "primary" if is_primary else "assisting",
            "adjacent_agents": _strings(read_field("adjacent_agents")),
        },
        "agent_contract_handoff": {
            "goal": _string_or_empty(read_field("goal")) or task.goal,
            "acceptance_criteria": _strings(read_field("acceptance_criteria")),
            "scope": _string_or_empty(read_field("scope")),
            "consolidation_required": consolidate,
            "cross_check_required": consolidate,
        },
        "write_permissions": {
            "writable_sections": _strings(read_field("writable_sections")),
            "readable_sections": sections,
        },
        "metadata": {"session_id": task.session or task.agent_id, "provider": task.provider, "contract_version": "1"},
    }


def _string_or_empty(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _strings(value: JSON) -> list[str]:
    return [entry for entry in as_list(value) if isinstance(entry, str)]


def consolidation_required(assignment: Mapping[str, JSON]) -> bool:
    """Return True if the assignment requires a consolidation report."""
    handoffs = (section_of(assignment, "agent_contract_handoff"), section_of(assignment, "investigation_brief"))
    flags = [handoff.get(name) for handoff in handoffs for name in ("consolidation_required", "cross_check_required")]
    return any(flags) or bool(section_of(assignment, "surface_routing").get("multi_surface"))


def writable_sections(assignment: Mapping[str, JSON]) -> list[str] | None:
    """Return the knowledge sections that the agent may update, or None if the assignment does not list any."""
    names = section_of(assignment, "write_permissions").get("writable_sections")
    return _strings(names) if isinstance(names, list) else None


TAG: Final = "agent_contract_handoff"

_OPENING = re.compile(rf"```{TAG}\s*\n")


def contract_in(text: str) -> dict[str, JSON] | None:
    """Return the object in the first contract block of a reply, or None if the block is missing or malformed.

    The block ends at the next three backticks. The search takes linear time.
    """
    opening = _OPENING.search(text)
    close = -1 if opening is None else text.find("```", opening.end())
    if opening is None or close < 0:
        return None
    try:
        value = wide_json(text[opening.end() : close])[0]
    except NotJson:
        return None
    return value if isinstance(value, dict) else None


_STATUS = f"<{', '.join(PLAN_STATUSES[:-1])} or {PLAN_STATUSES[-1]}>"
_ID, _STEP, _OUTPUT, _CHECK = "<your id>", "<what is next>", "<result>", "<pass or fail>"
_COMMON_STATUSES: Final = "<COMPLETE, IN_PROGRESS or BLOCKED>"
"""Placeholder for the status in a form that has no space for all statuses."""
FORM_WORDS_OF_CONTRACTS: Final = frozenset({_STATUS, _COMMON_STATUSES, _ID, _STEP, _OUTPUT, _CHECK})


def skeleton(name: str = _ID, status: str = _STATUS, *, consolidate: bool = False) -> str:
    """Return a contract block that has placeholders in its required fields and serves as a form for the agent.

    Args:
        name: the agent id, or a placeholder for it.
        status: the plan status, or a placeholder for it.
        consolidate: True to include a consolidation report.
    """
    report: JSON = {"ownership_assessment": OWNERSHIP[0], **{name: ["none"] for name in FINDINGS}}
    shape: dict[str, JSON] = {
        "agent_status": {"plan_status": status, "agent_id": name, "pending_steps": [], "next_action": _STEP},
        "evidence_report": {
            **{name: [_OUTPUT] if name == "key_outputs" else [] for name in EVIDENCE},
            "verification": {"result": _CHECK},
        },
        **({"consolidation_report": report} if consolidate else {}),
    }
    return f"```{TAG}\n{compact(shape)}\n```"


def contract_form(requirements: Requirements, facts: TurnFacts = UNKNOWN, *, short: bool = False) -> str:
    """Return the instructions for writing the contract block, with the agent's id and the allowed statuses (R51).

    The instructions are empty if the socket expects text. With ``short``, a summary for later turns is returned.
    """
    if requirements.parse == "text":
        return ""
    legal = next_statuses(restore_status(facts.memory).status)
    name = facts.agent_id or _ID
    if short:
        return (
            f"End with one ```{TAG} block, one JSON object: agent_status (plan_status {' or '.join(legal)}; agent_id {name}; "
            "pending_steps; next_action), evidence_report (seven lists, verification), consolidation_report, approval_request."
        )
    consolidate = consolidation_required(facts.assignment)
    status = legal[0] if len(legal) == 1 else _COMMON_STATUSES if consolidate else _STATUS
    lines = [f"End with this block:\n{skeleton(name, status, consolidate=consolidate)}"]
    if consolidate:
        lines.append(f"ownership_assessment: {', '.join(OWNERSHIP)}.")
    if len(legal) > 1:
        lines.append("APPROVAL_REQUEST: add approval_request: operation, exact_content, rollback, verification.")
    if requirements.work_items:
        lines.insert(1, "Each open gap becomes a work item.")
    if writable_sections(facts.assignment):
        lines.insert(1, 'update_contracts: a list of {"contract": its name, "payload": the changes}.')
    return join_within_limit(lines, MAX_FORM_CHARS)


def texts_of(entries: Sequence[JSON]) -> list[str]:
    """Convert the entries of a list to strings, and skip null entries."""
    return [as_text(entry) for entry in entries if entry is not None]


def contract_verdict(contract: Contract, status: str) -> Reading:
    """Return the verdict that the status of a valid contract expresses, or the action that the status requests."""
    if status == "COMPLETE":
        return Reading(satisfied=_ownership(contract) != "not_my_surface")
    if status == "IN_PROGRESS":
        if contract.passed is False or contract.loop_state is not None:
            return Reading(satisfied=False)
        return Reading(action="reissue", reason=f"The agent is still working: {_next_action(contract)}")
    if status == "APPROVAL_REQUEST":
        return _approval_reading(contract.approval_request)
    if status == "NEEDS_INPUT":
        return Reading(action="pause", reason=_next_action(contract), needs="question")
    reason = "; ".join(["The agent is blocked", *_gaps(contract), *_suggested_agent(contract)])
    return Reading(action="escalate", reason=reason)


def _approval_reading(request: Mapping[str, JSON]) -> Reading:
    command = one_line(as_text(request.get("exact_content") or request.get("operation") or ""))
    if not can_be_approved(request):
        return Reading(action="pause", reason=f"The agent asks for a direction: {command}", needs="direction")
    origin = f"the agent made up the id {request['approval_id']}"
    return Reading(action="pause", reason=f"The agent asks for approval: {command} ({origin})", needs="approval")


def context_lines(contract: Contract, warnings: Sequence[Issue]) -> Iterator[str]:
    """Yield lines that summarize a contract for the next agent."""
    yield contract.plan_status
    if contract.user_facing_summary:
        yield f"Summary: {contract.user_facing_summary}"
    yield from list_line("Key outputs", texts_of(contract.evidence["key_outputs"]))
    yield from list_line("Impacts elsewhere", texts_of(contract.evidence["cross_layer_impacts"]))
    yield from list_line("Open gaps", _gaps(contract))
    if _ownership(contract) in ("cross_surface_dependency", "not_my_surface"):
        yield f"Ownership: {_ownership(contract)}"
        yield from _suggested_agent(contract)
    yield from list_line("Warnings", [warning.message for warning in warnings])


def work_items_of_gaps(contract: Contract) -> list[JSON]:
    """Convert each open gap to a work item, whose title is the first line and whose context is the remaining text.

    Agents write "none" in a mandatory list that has no entries, so such an entry is skipped.
    """
    suggestion = "\n".join(_suggested_agent(contract))
    items: list[JSON] = []
    for gap in _gaps(contract):
        title, _, details = gap.strip().partition("\n")
        if title.strip(" .").lower() == "none" and not details.strip():
            continue
        context = "\n".join(line for line in (details.strip(), suggestion) if line)
        items.append({"title": title.strip(), "context": context or title.strip()})
    return items


def _ownership(contract: Contract) -> JSON:
    return contract.consolidation_report.get("ownership_assessment")


def _next_action(contract: Contract) -> str:
    return as_text(contract.next_action or "")


def _gaps(contract: Contract) -> list[str]:
    """Return the distinct open gaps in the evidence report and in the consolidation report."""
    other_gaps = as_entries(contract.consolidation_report.get("open_gaps"))
    gaps = texts_of([*contract.evidence["open_gaps"], *other_gaps])
    return [gap for gap in dict.fromkeys(gaps) if gap.strip()]


def _suggested_agent(contract: Contract) -> Iterator[str]:
    agent = contract.consolidation_report.get("next_best_agent")
    if agent:
        yield f"Next best agent: {one_line(as_text(agent))}"


_STATUS_AND_RESULT: Final[dict[Outcome, tuple[str, str | None]]] = {
    "done": ("COMPLETE", "pass"),
    "accepted": ("IN_PROGRESS", None),
    "again": ("IN_PROGRESS", "fail"),
    "open": ("IN_PROGRESS", None),
    "stuck": ("BLOCKED", None),
}  # Maps each outcome to a plan status and a verification result. Work that was not checked has no result.


def contract_of(answer: SimpleAnswer) -> dict[str, JSON]:
    """Convert an answer to a contract."""
    status, result = _STATUS_AND_RESULT[answer.outcome]
    next_action = answer.reason or NO_REASON
    agent_status: dict[str, JSON] = {"plan_status": status, "pending_steps": [], "next_action": next_action}
    if answer.agent:
        agent_status["agent_id"] = answer.agent
    report: dict[str, JSON] = {name: [] for name in EVIDENCE}
    report["commands_run"] = list(answer.commands)
    report["key_outputs"] = answer.findings.split("\n") if answer.findings else []
    report["open_gaps"] = [_gap_text(item) for item in answer.items]
    if result is not None:
        report["verification"] = {"result": result}
    absent_objects = {"consolidation_report": None, "approval_request": None}
    return {"agent_status": agent_status, "evidence_report": report, **absent_objects}


def _gap_text(item: WorkItem) -> str:
    return item.title if item.context == item.title else f"{item.title}\n{item.context}"


def contract_layout(value: Mapping[str, JSON], find: FindFile) -> list[Section]:
    """Return the sections that display a contract to a person, most important first.

    This function never raises an error.

    Args:
        value: the contract, which may be invalid; fields that cannot be read are omitted.
        find: a function that returns the path of a file that the contract names, or None if there is no such file.
    """
    contract = Contract(value)
    sections = [Section.from_pairs("contract", _contract_headline(contract))]
    for title, owner in (
        ("verification", contract.verification),
        ("approval request", contract.approval_request),
        ("consolidation", contract.consolidation_report),
    ):
        rows = tuple((name, entry) for name, value in owner.items() for entry in map(as_text, as_entries(value)))
        sections += [Section(title, rows=rows)] if rows else []
    sections.append(_contract_evidence(contract, find))
    memories = contract.memorialize_suggestions.suggestions
    suggestions = [(memory["description"], memory["body"]) for memory in memories]
    suggestions += [(note, "") for note in contract.memory_suggestions]
    if suggestions:
        sections.append(Section("suggestions to remember", ("suggestion", "details"), tuple(suggestions)))
    return sections


def _contract_headline(contract: Contract) -> list[tuple[str, TextOrPointer]]:
    loop, used = contract.loop_state, contract.context_consumption or {}
    rounds = f"{loop.iteration} of {as_text(loop.max_iterations)}" if loop else ""
    metric = f"{as_text(loop.metric)}, threshold {as_text(loop.threshold)}" if loop else ""
    rollback = contract.rollback_executed
    return [
        ("status", contract.plan_status),
        ("summary", contract.user_facing_summary or ""),
        *(("pending", as_text(step)) for step in contract.pending_steps),
        ("next", "" if contract.next_action is None else as_text(contract.next_action)),
        ("round", rounds),
        ("metric", metric),
        ("rollback", "" if rollback in (None, ABSENT) else str(rollback)),
        *((label, str(used[name])) for name, label in _CONSUMPTION_LABELS.items() if used.get(name) is not None),
    ]


_CONSUMPTION_LABELS: Final = {"tokens_used": "tokens used", "pct_window": "window used"}


def _contract_evidence(contract: Contract, find: FindFile) -> Section:
    rows: list[tuple[TextOrPointer, ...]] = []
    for name, entries in contract.evidence.items():
        for entry in entries:
            text = as_text(entry)
            rows.append((name, Pointer(text, find(text)) if name == "files_checked" else text))
    empty_names = [name for name, entries in contract.evidence.items() if not entries]
    lines = (f"empty: {', '.join(empty_names)}",) if empty_names else ()
    return Section("evidence", ("list", "entry") if rows else (), tuple(rows), lines)
