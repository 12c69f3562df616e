"""The agent contract: a tagged block with status, evidence and what the agent asks of the runtime."""

from __future__ import annotations

from typing import Final, NamedTuple

from materia_nb.handoff.assigned import missing_sources
from materia_nb.handoff.contract.approval import (
    Approval,
    Grant,
    answer_note,
    fingerprint,
    request_of,
    seal,
    sealed_from,
)
from materia_nb.handoff.contract.ask import ask, repair_prompt, skeleton
from materia_nb.handoff.contract.find import find, kept, usable
from materia_nb.handoff.contract.gist import from_gist, to_gist
from materia_nb.handoff.contract.given import Assignment, consolidation_required, writable_sections
from materia_nb.handoff.contract.memories import Suggestions, memorialize_suggestions
from materia_nb.handoff.contract.merge import merge
from materia_nb.handoff.contract.output import Output, output_of
from materia_nb.handoff.contract.project import context, verdict, work_items
from materia_nb.handoff.contract.transitions import (
    Record,
    Transition,
    legal_next,
    refusal,
    remembered,
    report,
)
from materia_nb.handoff.contract.updates import Applied, apply_updates
from materia_nb.handoff.contract.validate import Checked, validate
from materia_nb.handoff.protocol import UNKNOWN, Action, Reading, Refusal, TurnFacts
from materia_nb.handoff.requirements import Requirements
from materia_nb.handoff.verdict import Verdict
from materia_nb.jsonvalue import JSON

MOST_REPAIRS: Final = 2
"""How often a refused contract is asked for again before a person is called."""


class Examined(NamedTuple):
    """A reading with what was checked on the way to it; ``contract`` is None for a missing block."""

    reading: Reading
    checked: Checked
    contract: dict[str, JSON] | None


class ContractProtocol:
    """Reads and asks for agent contracts."""

    name = "agent-contract"
    to_gist = staticmethod(to_gist)
    from_gist = staticmethod(from_gist)

    def read(self, text: str, wanted: Requirements, facts: TurnFacts = UNKNOWN) -> Reading:
        """Read an agent's reply; text sockets accept anything."""
        if wanted.parse == "text":
            return Reading(text.strip())
        return examine(find(text), wanted, facts).reading

    def ask(self, wanted: Requirements) -> str:
        """Say what a contract holds."""
        return ask(wanted)


def examine(contract: JSON, wanted: Requirements, facts: TurnFacts = UNKNOWN) -> Examined:
    """Check a contract that was found, None for none, and decide what happens next (section 14)."""
    found = usable(contract)
    checked = validate(found, facts)
    value = kept(found)
    told = {"$.workItems"} if wanted.work_items else ()
    missing = tuple(missing_sources(value, wanted, told)) if found is not None else ()
    reading = _reading(found or {}, value, checked._replace(issues=checked.issues + missing), wanted, facts)
    return Examined(reading, checked, found)


def _reading(
    contract: dict[str, JSON], value: JSON, checked: Checked, wanted: Requirements, facts: TurnFacts
) -> Reading:
    if checked.only_unfinished:
        way = Verdict(False, reason=checked.issues[0].message)
        return _accepted(contract, value, checked, way, wanted, facts.memory)
    if checked.issues:
        return _refused(value, checked, facts)
    step = report(remembered(facts.memory), checked.status)
    if step.issue is not None:
        return Reading(
            value,
            "contract",
            (step.issue,),
            action=refusal(step.issue),
            warnings=checked.warnings,
            reason=f"{step.issue.message} {step.issue.fix}.",
            memory=facts.memory,
        )
    if step.warning is not None:
        checked = checked._replace(warnings=(*checked.warnings, step.warning))
    return _accepted(
        contract, value, checked, verdict(contract, checked.status), wanted, step.record.as_json()
    )


def _accepted(
    contract: dict[str, JSON],
    value: JSON,
    checked: Checked,
    way: Verdict,
    wanted: Requirements,
    memory: JSON,
) -> Reading:
    return way._replace(warnings=checked.warnings).reading(
        value,
        context=context(contract, checked.warnings),
        work_items=work_items(contract) if wanted.work_items else None,
        issues=checked.issues,
        memory=memory,
    )


def _refused(value: JSON, checked: Checked, facts: TurnFacts) -> Reading:
    error: Refusal = "not_json" if value is None else "contract"
    action: Action = "reissue"
    reason = "The contract is not valid."
    if facts.refused >= MOST_REPAIRS:
        action, reason = "escalate", f"The contract is still not valid after {MOST_REPAIRS} repairs."
    elif checked.tier == "repair" and checked.repair == "escalate_contract_repair":
        action, reason = "escalate", "The contract is not valid, and no agent id says who could repair it."
    return Reading(
        value,
        error,
        checked.issues,
        action=action,
        warnings=checked.warnings,
        reason=reason,
        memory=facts.memory,
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
    "answer_note",
    "apply_updates",
    "consolidation_required",
    "examine",
    "find",
    "fingerprint",
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
