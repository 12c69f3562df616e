"""The agent contract: a tagged block with status, evidence and what the agent asks of the runtime."""

from __future__ import annotations

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
    "Assignment",
    "Checked",
    "ContractProtocol",
    "Examined",
    "Output",
    "Record",
    "Suggestions",
    "Transition",
    "apply_updates",
    "consolidation_required",
    "examine",
    "find",
    "legal_next",
    "memorialize_suggestions",
    "merge",
    "output_of",
    "refusal",
    "remembered",
    "repair_prompt",
    "report",
    "skeleton",
    "verdict",
    "writable_sections",
]
