"""What an agent contract says, to the runtime and in the words of others (agent contract rules, 1 to 6, 8 to 12 and 14).

The fields are read from an object that may hold anything; among them are updates of project context, which are merged so
that nothing else is lost. Of a turn that must end with one: what the agent is given and asked for, which status may follow
which, and how the block is found. The others are the graph and a person.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from materia_nb.handoff.base import (
    UNKNOWN,
    AgentReport,
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
from materia_nb.handoff.checks import LONGEST_FORM, issue_of
from materia_nb.handoff.jsontext import (
    NO_REASON,
    NotJson,
    as_text,
    join_within_limit,
    labelled,
    one_line,
    wide_json,
)
from materia_nb.handoff.runtime_rules import can_be_granted, update_entries
from materia_nb.jsonvalue import JSON, as_list, compact

PLAN_STATUSES: Final = ("IN_PROGRESS", "APPROVAL_REQUEST", "COMPLETE", "BLOCKED", "NEEDS_INPUT")
AROUND_IN_PROGRESS: Final = ("APPROVAL_REQUEST", "NEEDS_INPUT", "COMPLETE", "BLOCKED")
"""The statuses but the first, which lies between any two of them, in the order in which they are drawn."""
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
"""What ``rollback_executed`` is when the contract does not mention it."""

_AGENT_ID = re.compile(r"a[0-9a-f]{5,}")


@dataclass(frozen=True, slots=True)
class LoopState:
    """How far an agentic loop is; None for what was not given or is not a number."""

    iteration: int
    max_iterations: int | None
    metric: float | None
    threshold: float | None

    @property
    def unfinished(self) -> bool:
        """Whether rounds are left and the metric is below the threshold (higher is better)."""
        return (
            self.max_iterations is not None
            and self.metric is not None
            and self.threshold is not None
            and self.iteration < self.max_iterations
            and self.metric < self.threshold
        )


def section_of(owner: JSON, name: str) -> dict[str, JSON]:
    """Return the object of that name; empty when it is absent or something else."""
    value = owner.get(name) if isinstance(owner, dict) else None
    return value if isinstance(value, dict) else {}


def _folded_status(text: str) -> str:
    """Fold a reported status: trimmed, upper case, without closing punctuation."""
    return text.strip().upper().rstrip(".,;").rstrip()


def is_agent_id(text: str) -> bool:
    """Whether a turn can be routed back by that id."""
    return _AGENT_ID.fullmatch(text) is not None


def _loop_state(given: JSON) -> LoopState | None:
    """Return the loop state; None when it is not an object, names no iteration or counts with no numbers."""
    if not isinstance(given, dict) or "iteration" not in given:
        return None
    iteration, most = _int(given["iteration"]), _int(given.get("max_iterations"))
    if iteration is None or (most is None and given.get("max_iterations") is not None):
        return None
    metric, threshold = _float(given.get("metric")), _float(given.get("threshold"))
    if any(number is not None and math.isnan(number) for number in (metric, threshold)):
        metric = threshold = None
    return LoopState(iteration, most, metric, threshold)


def as_entries(value: JSON) -> list[JSON]:
    """Return a list as it is, null as an empty one, anything else as a list of one."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _int(value: JSON) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _float(value: JSON) -> float | None:
    """Return the number, None for null, NaN for what is not a number."""
    if value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


_REQUIRED: Final = ("description", "body")
_OPTIONAL: Final = ("slug", "type", "class", "rationale")
_CHOICES: Final = {"type": ("atom", "decision", "negative"), "class": ("anchor", "log", "thread")}


class Suggestions(NamedTuple):
    """The well-formed suggestions, every value a text, and warnings on the others."""

    suggestions: list[dict[str, str]]
    warnings: list[str]


def memorialize_suggestions(clause: JSON) -> Suggestions:
    """Read the clause; it never makes a contract invalid."""
    if clause is None:
        return Suggestions([], [])
    if not isinstance(clause, list):
        return Suggestions([], [f"memorialize_suggestions: expected array, got {type(clause).__name__}"])
    found = Suggestions([], [])
    for index, entry in enumerate(clause):
        place = f"memorialize_suggestions[{index}]"
        if not isinstance(entry, dict):
            found.warnings.append(f"{place}: not an object")
        elif missing := [name for name in _REQUIRED if not entry.get(name)]:
            found.warnings.append(f"{place}: missing required field(s) {', '.join(missing)}")
        else:
            given = {name: entry.get(name) for name in (*_REQUIRED, *_OPTIONAL)}
            texts = {name: str(value) for name, value in given.items() if value is not None}
            for name, choices in _CHOICES.items():
                word = texts.get(name, "").lower()
                if word and word not in choices:
                    found.warnings.append(f"{place}: {name}={word!r} not in {list(choices)} (kept as-is)")
            found.suggestions.append(texts)
    return found


class Contract:
    """What an agent reported and asked for, valid or not; empty where it said nothing or nothing that can be read.

    Attributes:
        value: the object that it was read from.
        agent_status: where the task stands, as reported.
        plan_status: the status of the plan, folded, "" for none; it need not be a known one.
        agent_id: as reported, whatever it is; "" for none.
        pending_steps: what is left to do, as the agent sees it.
        next_action: what should happen next, or the options of a question.
        evidence_report: what was done, as reported.
        evidence: the seven lists by name; a single value is a list of one. Upper-case keys count.
        verification: how the work was checked; only a result of "pass" counts.
        passed: whether the verification did; None when there is none that is an object.
        consolidation_report: what it found out for others.
        approval_request: the command that it asks consent for.
        loop_state: how far its own loop is; None when it is not an object, names no iteration or counts with no numbers.
        user_facing_summary: words for the person, to be shown nearly as they are; None when there are none.
        memorialize_suggestions: what it suggests to remember; for a person to decide.
        memory_suggestions: notes for a person.
        update_contracts: updates of project context, in order, before they are judged.
        rollback_executed: what was rolled back, :data:`ABSENT` when it does not mention it.
        context_consumption: tokens_used and pct_window, null for what is not a number; None for no object.
    """

    def __init__(self, value: Mapping[str, JSON]) -> None:
        """Read every field of a contract; never raises."""
        self.value = value
        self.agent_status = status = section_of(value, "agent_status")
        self.plan_status = _folded_status(_in_text(status.get("plan_status")) or "")
        self.agent_id = _in_text(status.get("agent_id")) or ""
        self.pending_steps = as_entries(status.get("pending_steps"))
        self.next_action = status.get("next_action")
        self.evidence_report = report = section_of(value, "evidence_report")
        self.evidence = {
            name: as_entries(report.get(name.upper()) if report.get(name) is None else report[name])
            for name in EVIDENCE
        }
        self.verification = checked = section_of(report, "verification")
        known = isinstance(report.get("verification"), dict)
        self.passed = str(checked.get("result")).strip().lower() == "pass" if known else None
        self.consolidation_report = section_of(value, "consolidation_report")
        self.approval_request = section_of(value, "approval_request")
        self.loop_state = _loop_state(value.get("loop_state"))
        summary, notes = value.get("user_facing_summary"), value.get("memory_suggestions")
        self.user_facing_summary = (summary.strip() or None) if isinstance(summary, str) else None
        self.memorialize_suggestions = memorialize_suggestions(value.get("memorialize_suggestions"))
        self.memory_suggestions = [str(one) for one in as_list(notes) if one is not None]
        self.update_contracts = update_entries(value.get("update_contracts"))
        self.rollback_executed = _in_text(value.get("rollback_executed", ABSENT))
        used = value.get("context_consumption")
        self.context_consumption = _consumption(used) if isinstance(used, dict) else None


def _in_text(value: JSON) -> str | None:
    return None if value is None else str(value)


def _consumption(given: Mapping[str, JSON]) -> dict[str, JSON]:
    share = _float(given.get("pct_window"))
    known = share is not None and math.isfinite(share)
    return {"tokens_used": _int(given.get("tokens_used")), "pct_window": share if known else None}


_MOST_IN_PROGRESS: Final = 2
"""How many times in a row an agent may report that it is still at work."""


class StatusRecord(NamedTuple):
    """The last status that an agent reported in its task, and how often in a row it was IN_PROGRESS."""

    status: str | None = None
    in_progress: int = 0

    def as_json(self) -> JSON:
        """Return the record as it is remembered between turns."""
        return {"plan_status": self.status, "in_progress": self.in_progress}


class StatusStep(NamedTuple):
    """The record after a report; the same as before when the report is refused."""

    record: StatusRecord
    issue: Issue | None = None
    warning: Issue | None = None


def refusal(issue: Issue) -> Reaction:
    """Return what follows a refused report: a wrong status is rejected, endless work goes to a person."""
    return "reject" if (issue.code or "").startswith("ILLEGAL_TRANSITION:") else "escalate"


def remembered(memory: JSON) -> StatusRecord:
    """Return the record that was remembered, a fresh one for anything else."""
    if not isinstance(memory, Mapping) or memory.get("plan_status") not in PLAN_STATUSES:
        return StatusRecord()
    count = memory.get("in_progress")
    return StatusRecord(memory["plan_status"], count if isinstance(count, int) else 0)


def legal_next(status: str | None) -> tuple[str, ...]:
    """Return the statuses that may follow: all at the start and after IN_PROGRESS, else that alone."""
    return PLAN_STATUSES if status in (None, "IN_PROGRESS") else ("IN_PROGRESS",)


def report(record: StatusRecord, status: str) -> StatusStep:
    """Record a reported status, or refuse it and leave the record as it was."""
    status = _folded_status(status)
    legal = legal_next(record.status)
    if status not in legal:
        way, named = f"{record.status}->{status}", {"status": status, "before": record.status}
        return StatusStep(record, issue_of("ILLEGAL_TRANSITION", way, **named, legal=" or ".join(legal)))
    if status != "IN_PROGRESS":
        return StatusStep(StatusRecord(status))
    count = record.in_progress + 1 if record.status == "IN_PROGRESS" else 1
    if count > _MOST_IN_PROGRESS:
        issue = issue_of("IN_PROGRESS_RETRY_LIMIT", count, count=count, most=_MOST_IN_PROGRESS)
        return StatusStep(record, issue)
    warning = issue_of("IN_PROGRESS_RETRY_LIMIT_NEXT") if count == _MOST_IN_PROGRESS else None
    return StatusStep(StatusRecord(status, count), None, warning)


def assignment_of(task: Task) -> dict[str, JSON]:
    """Return what an agent is told before its turn, in five sections, of what the loadout says of its task.

    That may be in either spelling; anything of the wrong type is left out. An agent that is not the primary one, or has
    several surfaces, must report what it found to be consolidated.
    """

    def told(name: str) -> JSON:
        first, *rest = name.split("_")
        camel_case = first + "".join(word.capitalize() for word in rest)
        return task.assignment.get(camel_case, task.assignment.get(name))

    readable, surfaces = told("readable_sections"), _texts(told("surfaces"))
    wanted = _texts(readable) if isinstance(readable, list) else list(task.knowledge)
    several, primary = len(surfaces) > 1, told("primary") is not False
    consolidate = several or not primary
    return {
        "project_knowledge": {name: task.knowledge[name] for name in wanted if name in task.knowledge},
        "surface_routing": {
            "surfaces": surfaces,
            "multi_surface": several,
            "role": "primary" if primary else "assisting",
            "adjacent_agents": _texts(told("adjacent_agents")),
        },
        "agent_contract_handoff": {
            "goal": _text(told("goal")) or task.goal,
            "acceptance_criteria": _texts(told("acceptance_criteria")),
            "scope": _text(told("scope")),
            "consolidation_required": consolidate,
            "cross_check_required": consolidate,
        },
        "write_permissions": {
            "writable_sections": _texts(told("writable_sections")),
            "readable_sections": wanted,
        },
        "metadata": {
            "session_id": task.session or task.agent_id,
            "provider": task.provider,
            "contract_version": "1",
        },
    }


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: JSON) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def consolidation_required(given: Mapping[str, JSON]) -> bool:
    """Whether the output must have a consolidation report; flags count by truthiness, a missing section is empty."""
    briefs = (section_of(given, "agent_contract_handoff"), section_of(given, "investigation_brief"))
    flags = [
        brief.get(name) for brief in briefs for name in ("consolidation_required", "cross_check_required")
    ]
    return any(flags) or bool(section_of(given, "surface_routing").get("multi_surface"))


def writable_sections(given: Mapping[str, JSON]) -> list[str] | None:
    """Return the contracts that may be updated; None when the envelope does not say."""
    names = section_of(given, "write_permissions").get("writable_sections")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else None


TAG: Final = "agent_contract_handoff"

_OPENING: Final = f"```{TAG}"
_SPACE = re.compile(r"\s*")


def contract_in(text: str) -> dict[str, JSON] | None:
    """Return the object in the first block that bears the tag; None when there is none.

    Only the first block counts: a malformed one is the same as none. The time is linear
    in the length of the text.
    """
    body = _body(text)
    if body is None:
        return None
    try:
        value = wide_json(body)[0]
    except NotJson:
        return None
    return value if isinstance(value, dict) else None


def _body(text: str) -> str | None:
    """What follows the last line end of the white space behind the tag, up to the next three backticks."""
    position = text.find(_OPENING)
    while position >= 0:
        start = position + len(_OPENING)
        space = _SPACE.match(text, start)
        end = space.end() if space else start
        line_end = text.rfind("\n", start, end)
        if line_end >= 0:
            close = text.find("```", line_end)
            return text[line_end + 1 : close] if close >= 0 else None
        position = text.find(_OPENING, end)
    return None


_STATUS = f"<{', '.join(PLAN_STATUSES[:-1])} or {PLAN_STATUSES[-1]}>"
_ID, _STEP, _OUTPUT, _CHECK = "<your id>", "<what is next>", "<result>", "<pass or fail>"
_MOSTLY: Final = "<COMPLETE, IN_PROGRESS or BLOCKED>"
"""The statuses that are shown where there is no room for all."""
FORM_WORDS_OF_CONTRACTS: Final = frozenset({_STATUS, _MOSTLY, _ID, _STEP, _OUTPUT, _CHECK})


def skeleton(name: str = _ID, status: str = _STATUS, *, consolidate: bool = False) -> str:
    """Return a block that shows the fields that every contract has."""
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


def contract_form(wanted: Requirements, facts: TurnFacts = UNKNOWN, *, short: bool = False) -> str:
    """Write a contract as a block to copy, with the agent's id and the statuses that may follow now (R51)."""
    if wanted.parse == "text":
        return ""
    legal = legal_next(remembered(facts.memory).status)
    name = facts.agent_id or _ID
    if short:
        return (
            f"End with one ```{TAG} block, one JSON object: agent_status (plan_status {' or '.join(legal)}; agent_id {name}; "
            "pending_steps; next_action), evidence_report (seven lists, verification), consolidation_report, approval_request."
        )
    consolidate = consolidation_required(facts.given)
    only = legal[0] if len(legal) == 1 else _MOSTLY if consolidate else _STATUS
    lines = [f"End with this block:\n{skeleton(name, only, consolidate=consolidate)}"]
    if consolidate:
        lines.append(f"ownership_assessment: {', '.join(OWNERSHIP)}.")
    if len(legal) > 1:
        lines.append(
            "APPROVAL_REQUEST: add approval_request: operation, exact_content, rollback, verification."
        )
    if wanted.work_items:
        lines.insert(1, "Each open gap becomes a work item.")
    if writable_sections(facts.given):
        lines.insert(1, 'update_contracts: a list of {"contract": its name, "payload": the changes}.')
    return join_within_limit(lines, LONGEST_FORM)


def conclusion(reports: Sequence[AgentReport]) -> list[str]:
    """Return the summary of a single agent as it wrote it, else what each one found, and what was checked and is open."""
    read = [(who, Contract(value)) for who, value in reports]
    done = [(who, one) for who, one in read if one.plan_status == "COMPLETE"]
    if len(done) == 1 and (summary := done[0][1].user_facing_summary):
        lines = summary.splitlines()
    else:
        lines = [line for who, one in done for line in labelled(who, _outcome_words(one))]
    contracts = [one for _, one in done]
    return [
        *lines,
        *labelled("Verified by", dict.fromkeys(map(_checked, contracts))),
        *labelled("Impacts elsewhere", _all(contracts, "cross_layer_impacts")),
        *labelled("Still open", _all(contracts, "open_gaps")),
    ]


def _outcome_words(contract: Contract) -> list[str]:
    return _texts_of(contract.evidence["key_outputs"]) or [contract.user_facing_summary or "done"]


def _checked(contract: Contract) -> str:
    """How the work was checked, as far as the agent says; a COMPLETE contract has passed."""
    words = (as_text(contract.verification.get(name) or "") for name in ("method", "details"))
    return next(filter(None, words), "")


def _all(contracts: Sequence[Contract], name: str) -> list[str]:
    return list(dict.fromkeys(text for one in contracts for text in _texts_of(one.evidence[name])))


def _texts_of(entries: Sequence[JSON]) -> list[str]:
    return [as_text(entry) for entry in entries if entry is not None]


def contract_verdict(contract: Contract, status: str) -> Reading:
    """Turn the status of a valid contract into a route or an action."""
    if status == "COMPLETE":
        return Reading(satisfied=_ownership(contract) != "not_my_surface")
    if status == "IN_PROGRESS":
        if contract.passed is False or contract.loop_state is not None:
            return Reading(satisfied=False)
        return Reading(action="reissue", reason=f"The agent is still working: {_next_action(contract)}")
    if status == "APPROVAL_REQUEST":
        return _approval(contract.approval_request)
    if status == "NEEDS_INPUT":
        return Reading(action="pause", reason=_next_action(contract), needs="question")
    why = "; ".join(["The agent is blocked", *_gaps(contract), *_helper(contract)])
    return Reading(action="escalate", reason=why)


def _approval(request: Mapping[str, JSON]) -> Reading:
    asked = one_line(as_text(request.get("exact_content") or request.get("operation") or ""))
    if not can_be_granted(request):
        return Reading(action="pause", reason=f"The agent asks for a direction: {asked}", needs="direction")
    own = f"the agent made up the id {request['approval_id']}"
    return Reading(action="pause", reason=f"The agent asks for approval: {asked} ({own})", needs="consent")


def contract_context(contract: Contract, warnings: Sequence[Issue]) -> str:
    """Write the contract as text for whoever works next, a line for each thing it says."""
    return "\n".join(_lines(contract, warnings))


def _lines(contract: Contract, warnings: Sequence[Issue]) -> Iterator[str]:
    yield contract.plan_status
    if contract.user_facing_summary:
        yield f"Summary: {contract.user_facing_summary}"
    yield from labelled("Key outputs", _texts_of(contract.evidence["key_outputs"]))
    yield from labelled("Impacts elsewhere", _texts_of(contract.evidence["cross_layer_impacts"]))
    yield from labelled("Open gaps", _gaps(contract))
    if _ownership(contract) in ("cross_surface_dependency", "not_my_surface"):
        yield f"Ownership: {_ownership(contract)}"
        yield from _helper(contract)
    yield from labelled("Warnings", [warning.message for warning in warnings])


def work_items_of_gaps(contract: Contract) -> list[JSON]:
    """Turn each open gap into a work item: its first line is the title, the rest the context.

    A report that must have a gap has "none" where there is none, which is no work.
    """
    helper = "\n".join(_helper(contract))
    items: list[JSON] = []
    for gap in _gaps(contract):
        title, _, rest = gap.strip().partition("\n")
        if title.strip(" .").lower() == "none" and not rest.strip():
            continue
        context = "\n".join(line for line in (rest.strip(), helper) if line)
        items.append({"title": title.strip(), "context": context or title.strip()})
    return items


def _ownership(contract: Contract) -> JSON:
    return contract.consolidation_report.get("ownership_assessment")


def _next_action(contract: Contract) -> str:
    return as_text(contract.next_action or "")


def _gaps(contract: Contract) -> list[str]:
    """The open gaps of both reports, each once and none blank."""
    others = as_entries(contract.consolidation_report.get("open_gaps"))
    gaps = _texts_of([*contract.evidence["open_gaps"], *others])
    return [gap for gap in dict.fromkeys(gaps) if gap.strip()]


def _helper(contract: Contract) -> Iterator[str]:
    helper = contract.consolidation_report.get("next_best_agent")
    if helper:
        yield f"Next best agent: {one_line(as_text(helper))}"


_MEANT: Final[dict[Outcome, tuple[str, str | None]]] = {
    "done": ("COMPLETE", "pass"),
    "accepted": ("IN_PROGRESS", None),
    "again": ("IN_PROGRESS", "fail"),
    "open": ("IN_PROGRESS", None),
    "stuck": ("BLOCKED", None),
}
"""Status and result of the verification; what was accepted unchecked is not said to have passed."""


def contract_of(answer: SimpleAnswer) -> dict[str, JSON]:
    """Write an answer as a contract."""
    status, result = _MEANT[answer.outcome]
    agent_status: dict[str, JSON] = {
        "plan_status": status,
        "pending_steps": [],
        "next_action": answer.reason or NO_REASON,
    }
    if answer.agent:
        agent_status["agent_id"] = answer.agent
    report: dict[str, JSON] = {name: [] for name in EVIDENCE}
    report["commands_run"] = list(answer.commands)
    report["key_outputs"] = answer.findings.split("\n") if answer.findings else []
    report["open_gaps"] = [_gap(item) for item in answer.items]
    if result is not None:
        report["verification"] = {"result": result}
    return {
        "agent_status": agent_status,
        "evidence_report": report,
        "consolidation_report": None,
        "approval_request": None,
    }


def _gap(item: WorkItem) -> str:
    return item.title if item.context == item.title else f"{item.title}\n{item.context}"


def contract_layout(value: Mapping[str, JSON], find: FindFile) -> list[Section]:
    """Return what a contract says, in the order in which a person needs it; never raises.

    Args:
        value: the contract, valid or not; what cannot be read is left out.
        find: tells which of the files that it names are there.
    """
    contract = Contract(value)
    sections = [Section.of_pairs("contract", _contract_headline(contract))]
    for title, owner in (
        ("verification", contract.verification),
        ("asks for", contract.approval_request),
        ("consolidation", contract.consolidation_report),
    ):
        rows = tuple(
            (name, entry) for name, given in owner.items() for entry in map(as_text, as_entries(given))
        )
        sections += [Section(title, rows=rows)] if rows else []
    sections.append(_contract_evidence(contract, find))
    suggested = [(one["description"], one["body"]) for one in contract.memorialize_suggestions.suggestions]
    suggested += [(note, "") for note in contract.memory_suggestions]
    if suggested:
        sections.append(Section("suggests to remember", ("what", "in full"), tuple(suggested)))
    return sections


def _contract_headline(contract: Contract) -> list[tuple[str, TextOrPointer]]:
    loop, used = contract.loop_state, contract.context_consumption or {}
    rounds = f"{loop.iteration} of {as_text(loop.max_iterations)}" if loop else ""
    metric = f"{as_text(loop.metric)}, wanted {as_text(loop.threshold)}" if loop else ""
    rolled = contract.rollback_executed
    return [
        ("status", contract.plan_status),
        ("says", contract.user_facing_summary or ""),
        *(("still to do", as_text(step)) for step in contract.pending_steps),
        ("next", "" if contract.next_action is None else as_text(contract.next_action)),
        ("round", rounds),
        ("metric", metric),
        ("taken back", "" if rolled in (None, ABSENT) else str(rolled)),
        *((label, str(used[name])) for name, label in _USED.items() if used.get(name) is not None),
    ]


_USED: Final = {"tokens_used": "tokens used", "pct_window": "window used"}


def _contract_evidence(contract: Contract, find: FindFile) -> Section:
    rows: list[tuple[TextOrPointer, ...]] = []
    for name, entries in contract.evidence.items():
        for entry in entries:
            text = as_text(entry)
            rows.append((name, Pointer(text, find(text)) if name == "files_checked" else text))
    empty = [name for name, entries in contract.evidence.items() if not entries]
    lines = (f"nothing in: {', '.join(empty)}",) if empty else ()
    return Section("evidence", ("list", "entry") if rows else (), tuple(rows), lines)
