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
from materia_nb.handoff.contract.contract_check import Checked
from materia_nb.handoff.contract.contract_fields import (
    Applied,
    Output,
    Suggestions,
    apply_updates,
    memorialize_suggestions,
    merge,
    output_of,
)
from materia_nb.handoff.contract.contract_protocol import (
    MOST_REPAIRS,
    ContractProtocol,
    Examined,
    examine,
)
from materia_nb.handoff.contract.contract_texts import verdict
from materia_nb.handoff.contract.contract_turn import (
    Assignment,
    Record,
    Transition,
    consolidation_required,
    find,
    legal_next,
    refusal,
    remembered,
    repair_prompt,
    report,
    skeleton,
    writable_sections,
)

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
