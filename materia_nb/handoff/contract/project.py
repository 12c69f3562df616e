"""What a valid contract means for the graph (agent contract rules, sections 12 and 14)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from materia_nb.handoff.contract import fields
from materia_nb.handoff.contract.approval import can_be_granted
from materia_nb.handoff.contract.fields import as_list, part
from materia_nb.handoff.protocol import Issue
from materia_nb.handoff.verdict import Verdict
from materia_nb.handoff.wording import as_text, named, one_line
from materia_nb.jsonvalue import JSON


def verdict(contract: Mapping[str, JSON], status: str) -> Verdict:
    """Turn the status of a valid contract into a route or an action."""
    if status == "COMPLETE":
        return Verdict(_ownership(contract) != "not_my_surface")
    if status == "IN_PROGRESS":
        failed = fields.verification_passed(contract) is False
        if failed or fields.loop_state(contract) is not None:
            return Verdict(False)
        return Verdict(None, "reissue", f"The agent is still at work: {_next_action(contract)}")
    if status == "APPROVAL_REQUEST":
        return _approval(part(contract, "approval_request"))
    if status == "NEEDS_INPUT":
        return Verdict(None, "pause", _next_action(contract), needs="question")
    return Verdict(
        None, "escalate", "; ".join(["The agent is blocked", *_gaps(contract), *_helper(contract)])
    )


def _approval(request: Mapping[str, JSON]) -> Verdict:
    asked = one_line(as_text(request.get("exact_content") or request.get("operation") or ""))
    if not can_be_granted(request):
        return Verdict(None, "pause", f"The agent asks for direction: {asked}", needs="direction")
    own = f"nothing here issued the id {request['approval_id']}: it is the agent's own"
    return Verdict(None, "pause", f"The agent asks for consent: {asked} ({own})", needs="consent")


def context(contract: Mapping[str, JSON], warnings: Sequence[Issue]) -> str:
    """Write the contract as text for whoever works next, a line for each thing it says."""
    return "\n".join(_lines(contract, warnings))


def _lines(contract: Mapping[str, JSON], warnings: Sequence[Issue]) -> Iterator[str]:
    yield fields.plan_status(contract)
    summary = fields.user_facing_summary(contract)
    if summary:
        yield f"Summary: {summary}"
    yield from named("Key outputs", _texts(contract, "key_outputs"))
    yield from named("Impacts elsewhere", _texts(contract, "cross_layer_impacts"))
    yield from named("Open gaps", _gaps(contract))
    if _ownership(contract) in ("cross_surface_dependency", "not_my_surface"):
        yield f"Ownership: {_ownership(contract)}"
        yield from _helper(contract)
    yield from named("Warnings", [warning.message for warning in warnings])


def work_items(contract: Mapping[str, JSON]) -> list[JSON]:
    """Turn each open gap into a work item: its first line is the title, the rest the context."""
    helper = "\n".join(_helper(contract))
    items: list[JSON] = []
    for gap in _gaps(contract):
        title, _, rest = gap.strip().partition("\n")
        told = "\n".join(line for line in (rest.strip(), helper) if line)
        items.append({"title": title.strip(), "context": told or title.strip()})
    return items


def _ownership(contract: Mapping[str, JSON]) -> JSON:
    return part(contract, "consolidation_report").get("ownership_assessment")


def _next_action(contract: Mapping[str, JSON]) -> str:
    return as_text(part(contract, "agent_status").get("next_action") or "")


def _texts(contract: Mapping[str, JSON], name: str) -> list[str]:
    return [as_text(entry) for entry in fields.evidence(contract, name) if entry is not None]


def _gaps(contract: Mapping[str, JSON]) -> list[str]:
    """The open gaps of both reports, each once and none blank."""
    others = as_list(part(contract, "consolidation_report").get("open_gaps"))
    gaps = [*_texts(contract, "open_gaps"), *(as_text(gap) for gap in others if gap is not None)]
    return [gap for gap in dict.fromkeys(gaps) if gap.strip()]


def _helper(contract: Mapping[str, JSON]) -> Iterator[str]:
    helper = part(contract, "consolidation_report").get("next_best_agent")
    if helper:
        yield f"Next best agent: {one_line(as_text(helper))}"
