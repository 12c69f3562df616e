"""The agent contract: a tagged block with status, evidence and what the agent asks of the runtime."""

from __future__ import annotations

from materia_nb.handoff.contract.contract_fields import apply_updates
from materia_nb.handoff.contract.contract_protocol import ContractProtocol
from materia_nb.handoff.contract.contract_turn import Assignment, consolidation_required

__all__ = ["Assignment", "ContractProtocol", "apply_updates", "consolidation_required"]
