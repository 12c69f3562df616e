"""A turn that must end with a contract: what the agent is given, asked for, and which status may follow which, how the block is found (sections 1 to 6 and 11)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

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
from materia_nb.handoff.protocol import Action, Issue, listed
from materia_nb.handoff.requirements import Requirements
from materia_nb.jsonvalue import JSON, pretty
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


class Transition(NamedTuple):
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


def report(record: Record, status: str) -> Transition:
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
        return Transition(record, issue)
    if status != "IN_PROGRESS":
        return Transition(Record(status))
    count = record.in_progress + 1 if record.status == "IN_PROGRESS" else 1
    if count > MOST_IN_PROGRESS:
        issue = Issue(
            path,
            f"It would be IN_PROGRESS {count} times in a row; {MOST_IN_PROGRESS} are allowed.",
            "finish, or say what is missing",
            f"IN_PROGRESS_RETRY_LIMIT:{count}",
        )
        return Transition(record, issue)
    warning = Issue(path, "This is the last turn of its kind.", "finish", "IN_PROGRESS_RETRY_LIMIT_NEXT")
    return Transition(Record(status, count), None, warning if count == MOST_IN_PROGRESS else None)


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


_FIELDS: Final = f"""\
End your answer with one block of this form, and write no other block with its tag:
{{skeleton}}
It must be valid JSON; inside a string write \\u0060 for a backtick.
- plan_status: COMPLETE (done, and the verification passed), IN_PROGRESS (you go on; at most {MOST_IN_PROGRESS} times in a row), APPROVAL_REQUEST (a command needs consent), BLOCKED (you cannot go on alone; say why in open_gaps) or NEEDS_INPUT (a person must choose; list the options in next_action).
- agent_id: the id that you were given. pending_steps: a list. next_action: a string.
- evidence_report: all seven lists, [] where there is nothing. verification: an object; COMPLETE needs its result "pass".
- consolidation_report: if you were told to consolidate, an object with ownership_assessment ({", ".join(OWNERSHIP)}) and {", ".join(FINDINGS)}, none of them empty; write ["none"] for none. Else null.
- approval_request: with APPROVAL_REQUEST an object with operation, exact_content (the command), scope, risk_level (LOW, MEDIUM, HIGH, CRITICAL), rollback, verification and the approval_id if you were given one. Else null.
- user_facing_summary: a few words for the person, who reads nothing else of this (may be left out).
- loop_state: in a loop of your own iteration, max_iterations, metric, threshold.
- update_contracts: a list of {{{{"contract": name, "payload": object}}}} for the sections that you may write. A payload is an index of facts that last (names, places, how things hang together) with only what is new or changed: no live state, no addresses or counts that change by themselves. Name a thing in another repository as host/owner/repo:table/name, such as github.com/org/infra:tf_modules/network.
These may be left out too:
- memorialize_suggestions: what is worth remembering about the project, a list of {{{{"description": one line, "body": all of it, "slug", "type": "atom", "decision" or "negative", "class": "anchor", "thread" or "log", "rationale"}}}}; only the first two are needed. memory_suggestions: a list of short notes. A person decides what is kept.
- rollback_executed: what you took back, if you did. context_consumption: {{{{"tokens_used": number, "pct_window": number}}}}, if you know it."""

_ITEMS: Final = (
    "\nEach open gap becomes a work item: its first line is the title, what follows tells how to do it."
)


def skeleton() -> str:
    """Return a block that shows the fields that every contract has."""
    shape: dict[str, JSON] = {
        "agent_status": {
            "plan_status": "COMPLETE",
            "agent_id": "<your id>",
            "pending_steps": [],
            "next_action": "<what should happen next>",
        },
        "evidence_report": {
            **{name: [] for name in EVIDENCE},
            "verification": {"method": "", "checks": [], "result": "pass", "details": ""},
        },
        "consolidation_report": None,
        "approval_request": None,
    }
    return f"```{TAG}\n{pretty(shape)}\n```"


def ask(wanted: Requirements) -> str:
    """Return what the agent of a socket is asked for; empty for a text socket."""
    if wanted.parse == "text":
        return ""
    return _FIELDS.format(skeleton=skeleton()) + (_ITEMS if wanted.work_items else "")


def repair_prompt(issues: Sequence[Issue]) -> str:
    """Return the prompt that names what was wrong with the last block and shows what one looks like."""
    return f"Your block was refused:\n{listed(issues)}\nDo no further work. Send the block again, corrected:\n{skeleton()}"
