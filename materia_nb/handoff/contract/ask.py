"""What an agent is asked for when it must end its turn with a contract (agent contract rules, sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from materia_nb.handoff.contract.fields import EVIDENCE, FINDINGS, OWNERSHIP
from materia_nb.handoff.contract.find import TAG
from materia_nb.handoff.contract.transitions import MOST_IN_PROGRESS
from materia_nb.handoff.protocol import Issue
from materia_nb.handoff.requirements import Requirements
from materia_nb.handoff.wording import listed
from materia_nb.jsonvalue import JSON, pretty

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
