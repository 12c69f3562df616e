"""All that a contract says, read into one value (agent contract rules, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from materia_nb.handoff.contract import fields
from materia_nb.handoff.contract.fields import EVIDENCE, LoopState, as_list, part
from materia_nb.handoff.contract.memories import Suggestions, memorialize_suggestions
from materia_nb.handoff.contract.updates import Entry, entries
from materia_nb.jsonvalue import JSON


@dataclass(frozen=True, slots=True)
class Output:
    """What an agent reported and asked for; empty where it said nothing or nothing that can be read.

    Attributes:
        plan_status: folded, "" for none; it need not be a known one.
        agent_id: as reported, whatever it is.
        pending_steps: what is left to do, as the agent sees it.
        next_action: what should happen next, or the options of a question.
        evidence: the seven lists by name.
        verification: how the work was checked; only a result of "pass" counts.
        consolidation_report: what it found out for others.
        approval_request: the command that it asks consent for.
        loop_state: how far its own loop is.
        user_facing_summary: words for the person, to be shown nearly as they are.
        memorialize_suggestions: what it suggests to remember; for a person to decide.
        memory_suggestions: notes for a person.
        update_contracts: updates of project context, in order, before they are judged.
        rollback_executed: what was rolled back, ``ABSENT`` when it does not mention it.
        context_consumption: tokens_used and pct_window, if it counted.
    """

    plan_status: str
    agent_id: str
    pending_steps: list[JSON]
    next_action: JSON
    evidence: dict[str, list[JSON]]
    verification: dict[str, JSON]
    consolidation_report: dict[str, JSON]
    approval_request: dict[str, JSON]
    loop_state: LoopState | None
    user_facing_summary: str | None
    memorialize_suggestions: Suggestions
    memory_suggestions: list[str]
    update_contracts: list[Entry]
    rollback_executed: str | None
    context_consumption: dict[str, JSON] | None


def output_of(contract: Mapping[str, JSON]) -> Output:
    """Read every field of a contract, valid or not; never raises."""
    status = part(contract, "agent_status")
    return Output(
        plan_status=fields.plan_status(contract),
        agent_id=fields.agent_id(contract),
        pending_steps=as_list(status.get("pending_steps")),
        next_action=status.get("next_action"),
        evidence={name: fields.evidence(contract, name) for name in EVIDENCE},
        verification=part(part(contract, "evidence_report"), "verification"),
        consolidation_report=part(contract, "consolidation_report"),
        approval_request=part(contract, "approval_request"),
        loop_state=fields.loop_state(contract),
        user_facing_summary=fields.user_facing_summary(contract),
        memorialize_suggestions=memorialize_suggestions(contract.get("memorialize_suggestions")),
        memory_suggestions=fields.memory_suggestions(contract),
        update_contracts=entries(contract.get("update_contracts")),
        rollback_executed=fields.rollback_executed(contract),
        context_consumption=fields.context_consumption(contract),
    )
