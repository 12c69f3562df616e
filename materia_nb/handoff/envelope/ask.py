"""What an agent is asked for when it must hand over an envelope (envelope rules, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from materia_nb.handoff.protocol import Issue
from materia_nb.handoff.requirements import Requirements
from materia_nb.handoff.wording import WORK_IS_OVER, listed

_FIELDS: Final = """\
Answer with a single JSON object, the handoff envelope: no words before or after it.
Its fields:
- status: VERIFIED (the work is complete and meets what was asked), UNVERIFIED (the work is complete, with concerns that you list) or BLOCKED (you cannot go on without a person).
- summary: an object. what_i_did and what_i_found: at least one of the two, in words. key_decisions: a list of strings. evidence: an object with artifacts_produced (paths of the files you made), commands_run (the commands you ran) and measurements (an object of named numbers).
- concerns: a list of objects with severity (HIGH, MEDIUM or LOW), description, recommendation (how to fix it) and, where there is one, location (file:line). [] when there are none.
- assumptions: a list of objects with assumption, why and impact_if_wrong. [] when there are none.
- routing: an object. recommendation: CONTINUE, LOOP (do the work again), DETOUR (something else first) or ESCALATE (a person decides). reason: why, in words. next_step_suggestion: where a detour leads. can_further_iteration_help: if you review the work of another, true or false.
At least one evidence pointer is required: a file, a command, a number, or the location of a concern. A BLOCKED envelope may have none.
Leave meta out: it is filled in for you."""

_ITEMS: Final = (
    "\nEach concern becomes a work item for the sockets that follow: one concern for each piece of work."
)


def ask(wanted: Requirements) -> str:
    """Return what the agent of a socket is asked for; empty for a text socket."""
    if wanted.parse == "text":
        return ""
    return _FIELDS + (_ITEMS if wanted.work_items else "")


def finalization_prompt(wanted: Requirements) -> str:
    """Return the prompt that follows the work, in the same conversation: report what was done, do no more."""
    return f"{WORK_IS_OVER}\n{ask(wanted)}"


def reissue_prompt(wanted: Requirements, issues: Sequence[Issue]) -> str:
    """Return the finalization prompt once more, with what was wrong with the last envelope."""
    return f"Your envelope was refused:\n{listed(issues)}\nSend it again, corrected.\n\n{finalization_prompt(wanted)}"
