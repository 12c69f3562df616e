"""Which status may follow which, and how often work may go on (agent contract rules, section 11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from materia_nb.handoff.contract.fields import STATUSES, folded_status
from materia_nb.handoff.protocol import Action, Issue
from materia_nb.jsonvalue import JSON

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
