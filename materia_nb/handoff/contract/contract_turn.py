"""A turn that must end with a contract: what the agent is given, asked for, and which status may follow which, how the block is found (sections 1 to 6 and 11)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from materia_nb.handoff.answer_form import LONGEST_FORM, within
from materia_nb.handoff.capabilities import Task
from materia_nb.handoff.contract.contract_fields import (
    EVIDENCE,
    FINDINGS,
    OWNERSHIP,
    STATUSES,
    folded_status,
    part,
)
from materia_nb.handoff.jsontext import NotJson, wide_json
from materia_nb.handoff.protocol import UNKNOWN, Action, Issue, TurnFacts, listed
from materia_nb.handoff.requirements import Requirements
from materia_nb.jsonvalue import JSON, compact
from materia_nb.loadout.facts import told_in

MOST_IN_PROGRESS: Final = 2
"""How many times in a row an agent may report that it is still at work."""


class Record(NamedTuple):
    """The last status that an agent reported in its task, and how often in a row it was IN_PROGRESS."""

    status: str | None = None
    in_progress: int = 0

    def as_json(self) -> JSON:
        """Return the record as it is remembered between turns."""
        return {"plan_status": self.status, "in_progress": self.in_progress}


class StatusStep(NamedTuple):
    """The record after a report; the same as before when the report is refused."""

    record: Record
    issue: Issue | None = None
    warning: Issue | None = None


def refusal(issue: Issue) -> Action:
    """Return what follows a refused report: a wrong status is rejected, endless work goes to a person."""
    return "reject" if (issue.code or "").startswith("ILLEGAL_TRANSITION:") else "escalate"


def remembered(memory: JSON) -> Record:
    """Return the record that was remembered, a fresh one for anything else."""
    if not isinstance(memory, Mapping) or memory.get("plan_status") not in STATUSES:
        return Record()
    count = memory.get("in_progress")
    return Record(memory["plan_status"], count if isinstance(count, int) else 0)


def legal_next(status: str | None) -> tuple[str, ...]:
    """Return the statuses that may follow: all at the start and after IN_PROGRESS, else that alone."""
    return STATUSES if status in (None, "IN_PROGRESS") else ("IN_PROGRESS",)


def report(record: Record, status: str) -> StatusStep:
    """Record a reported status, or refuse it and leave the record as it was."""
    status = folded_status(status)
    legal = legal_next(record.status)
    path = "$.agent_status.plan_status"
    if status not in legal:
        issue = Issue(
            path,
            f"{status} may not follow {record.status}.",
            f"report {' or '.join(legal)}",
            f"ILLEGAL_TRANSITION:{record.status}->{status}",
        )
        return StatusStep(record, issue)
    if status != "IN_PROGRESS":
        return StatusStep(Record(status))
    count = record.in_progress + 1 if record.status == "IN_PROGRESS" else 1
    if count > MOST_IN_PROGRESS:
        issue = Issue(
            path,
            f"It would be IN_PROGRESS {count} times in a row; {MOST_IN_PROGRESS} are allowed.",
            "finish, or say what is missing",
            f"IN_PROGRESS_RETRY_LIMIT:{count}",
        )
        return StatusStep(record, issue)
    warning = Issue(path, "This is the last turn of its kind.", "finish", "IN_PROGRESS_RETRY_LIMIT_NEXT")
    return StatusStep(Record(status, count), None, warning if count == MOST_IN_PROGRESS else None)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What an agent is told before its turn; :meth:`envelope` writes it in five sections.

    Attributes:
        goal: what the turn is for.
        acceptance_criteria: what must hold at the end.
        scope: what it may touch.
        project_knowledge: facts about the project, by contract name.
        surfaces: the parts of the project that the task concerns.
        adjacent_agents: who works on the neighbouring parts.
        primary: whether this agent leads; an assistant must report what it found to be consolidated.
        writable_sections: the contracts that it may update.
        readable_sections: the contracts that it may read.
        session_id: of the run, for tracing.
        provider: of the model, for tracing.
        contract_version: of the format, for tracing.
    """

    goal: str = ""
    acceptance_criteria: Sequence[str] = ()
    scope: str = ""
    project_knowledge: Mapping[str, JSON] = field(default_factory=dict)
    surfaces: Sequence[str] = ()
    adjacent_agents: Sequence[str] = ()
    primary: bool = True
    writable_sections: Sequence[str] = ()
    readable_sections: Sequence[str] = ()
    session_id: str = ""
    provider: str = ""
    contract_version: str = "1"

    def envelope(self) -> dict[str, JSON]:
        """Return the five sections as one JSON object."""
        several = len(self.surfaces) > 1
        consolidate = several or not self.primary
        return {
            "project_knowledge": dict(self.project_knowledge),
            "surface_routing": {
                "surfaces": list(self.surfaces),
                "multi_surface": several,
                "role": "primary" if self.primary else "assisting",
                "adjacent_agents": list(self.adjacent_agents),
            },
            "agent_contract_handoff": {
                "goal": self.goal,
                "acceptance_criteria": list(self.acceptance_criteria),
                "scope": self.scope,
                "consolidation_required": consolidate,
                "cross_check_required": consolidate,
            },
            "write_permissions": {
                "writable_sections": list(self.writable_sections),
                "readable_sections": list(self.readable_sections),
            },
            "metadata": {
                "session_id": self.session_id,
                "provider": self.provider,
                "contract_version": self.contract_version,
            },
        }


def assignment_of(task: Task) -> Assignment:
    """Read what the loadout says of a task, in either spelling; anything of the wrong type is left out."""

    def told(name: str) -> JSON:
        return told_in(task.assignment, name)

    readable = told("readable_sections")
    wanted = _texts(readable) if isinstance(readable, list) else list(task.knowledge)
    return Assignment(
        goal=_text(told("goal")) or task.goal,
        acceptance_criteria=_texts(told("acceptance_criteria")),
        scope=_text(told("scope")),
        project_knowledge={name: task.knowledge[name] for name in wanted if name in task.knowledge},
        surfaces=_texts(told("surfaces")),
        adjacent_agents=_texts(told("adjacent_agents")),
        primary=told("primary") is not False,
        writable_sections=_texts(told("writable_sections")),
        readable_sections=wanted,
        session_id=task.session or task.agent_id,
        provider=task.provider,
    )


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: JSON) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def consolidation_required(given: Mapping[str, JSON]) -> bool:
    """Whether the output must have a consolidation report; flags count by truthiness, a missing section is empty."""
    briefs = (part(given, "agent_contract_handoff"), part(given, "investigation_brief"))
    flags = [
        brief.get(name) for brief in briefs for name in ("consolidation_required", "cross_check_required")
    ]
    return any(flags) or bool(part(given, "surface_routing").get("multi_surface"))


def writable_sections(given: Mapping[str, JSON]) -> list[str] | None:
    """Return the contracts that may be updated; None when the envelope does not say."""
    names = part(given, "write_permissions").get("writable_sections")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else None


TAG: Final = "agent_contract_handoff"

_OPENING: Final = f"```{TAG}"
_SPACE = re.compile(r"\s*")


def find(text: str) -> dict[str, JSON] | None:
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


_STATUS = f"<{', '.join(STATUSES[:-1])} or {STATUSES[-1]}>"
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


def ask(wanted: Requirements) -> str:
    """Return what the agent of a socket is asked for; empty for a text socket."""
    return form(wanted)


def form(wanted: Requirements, facts: TurnFacts = UNKNOWN, *, short: bool = False) -> str:
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
        lines.insert(1, 'update_contracts: a list of {"contract": its name, "payload": what is new}.')
    return within(lines, LONGEST_FORM)


def repair_prompt(issues: Sequence[Issue]) -> str:
    """Return the prompt that names what was wrong with the last block and shows what one looks like."""
    return f"Your block was refused:\n{listed(issues)}\nDo no further work. Send the block again, corrected:\n{skeleton()}"
