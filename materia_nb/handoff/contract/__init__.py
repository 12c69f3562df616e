"""The agent contract: a tagged block with status, evidence and what the agent asks of the runtime."""

from __future__ import annotations

from materia_nb.handoff.contract.approval import (
    Approval,
    Grant,
    answer_facts,
    answer_note,
    can_be_granted,
    fingerprint,
    grant_from,
    request_of,
    seal,
    sealed_from,
)
from materia_nb.handoff.contract.ask import repair_prompt, skeleton
from materia_nb.handoff.contract.find import find
from materia_nb.handoff.contract.given import Assignment, consolidation_required, writable_sections
from materia_nb.handoff.contract.memories import Suggestions, memorialize_suggestions
from materia_nb.handoff.contract.merge import merge
from materia_nb.handoff.contract.output import Output, output_of
from materia_nb.handoff.contract.project import verdict
from materia_nb.handoff.contract.read import MOST_REPAIRS, ContractProtocol, Examined, examine
from materia_nb.handoff.contract.transitions import (
    Record,
    Transition,
    legal_next,
    refusal,
    remembered,
    report,
)
from materia_nb.handoff.contract.updates import Applied, apply_updates
from materia_nb.handoff.contract.validate import Checked

__all__ = [
    "MOST_REPAIRS",
    "Applied",
    "Approval",
    "Assignment",
    "Checked",
    "ContractProtocol",
    "Examined",
    "Grant",
    "Output",
    "Record",
    "Suggestions",
    "Transition",
    "answer_facts",
    "answer_note",
    "apply_updates",
    "can_be_granted",
    "consolidation_required",
    "examine",
    "find",
    "fingerprint",
    "grant_from",
    "legal_next",
    "memorialize_suggestions",
    "merge",
    "output_of",
    "refusal",
    "remembered",
    "repair_prompt",
    "report",
    "request_of",
    "seal",
    "sealed_from",
    "skeleton",
    "verdict",
    "writable_sections",
]
