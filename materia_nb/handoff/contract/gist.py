"""The agent contract and its gist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from materia_nb.handoff.contract import fields
from materia_nb.handoff.contract.fields import EVIDENCE, part
from materia_nb.handoff.contract.project import verdict
from materia_nb.handoff.gist import NO_REASON, Gist, Outcome, Piece
from materia_nb.jsonvalue import JSON

_STATUS: Final[dict[Outcome, tuple[str, str | None]]] = {
    "done": ("COMPLETE", "pass"),
    "accepted": ("IN_PROGRESS", None),
    "again": ("IN_PROGRESS", "fail"),
    "open": ("IN_PROGRESS", None),
    "stuck": ("BLOCKED", None),
}
"""Status and result of the verification; what was accepted unchecked is not said to have passed."""


def to_gist(value: Mapping[str, JSON]) -> Gist:
    """Return what a contract says; fields of the wrong type say nothing."""
    reason = part(value, "agent_status").get("next_action")
    commands = [
        entry.get("command") if isinstance(entry, dict) else entry
        for entry in fields.evidence(value, "commands_run")
    ]
    return Gist(
        outcome=_outcome(value),
        did=fields.user_facing_summary(value) or "",
        found="\n".join(_texts(value, "key_outputs")),
        pieces=tuple(_piece(gap) for gap in _texts(value, "open_gaps") if gap.strip()),
        commands=tuple(command for command in commands if isinstance(command, str)),
        reason=reason if isinstance(reason, str) else "",
        agent=fields.agent_id(value),
    )


def from_gist(gist: Gist) -> dict[str, JSON]:
    """Write a gist as a contract; it reports no agent id that the gist does not have."""
    status, result = _STATUS[gist.outcome]
    agent_status: dict[str, JSON] = {
        "plan_status": status,
        "pending_steps": [],
        "next_action": gist.reason or NO_REASON,
    }
    if gist.agent:
        agent_status["agent_id"] = gist.agent
    report: dict[str, JSON] = {name: [] for name in EVIDENCE}
    report["commands_run"] = list(gist.commands)
    report["key_outputs"] = gist.found.split("\n") if gist.found else []
    report["open_gaps"] = [_gap(piece) for piece in gist.pieces]
    if result is not None:
        report["verification"] = {"result": result}
    value: dict[str, JSON] = {
        "agent_status": agent_status,
        "evidence_report": report,
        "consolidation_report": None,
        "approval_request": None,
    }
    return {**value, "user_facing_summary": gist.did} if gist.did else value


def _outcome(contract: Mapping[str, JSON]) -> Outcome:
    status, loop = fields.plan_status(contract), fields.loop_state(contract)
    if status not in fields.STATUSES:
        return "open"
    if status == "COMPLETE":
        if verdict(contract, status).satisfied is False or (loop is not None and loop.unfinished):
            return "again"
        return "done" if fields.verification_passed(contract) else "open"
    if status == "IN_PROGRESS":
        return "again" if verdict(contract, status).satisfied is False else "open"
    return "stuck"


def _texts(contract: Mapping[str, JSON], name: str) -> list[str]:
    return [entry for entry in fields.evidence(contract, name) if isinstance(entry, str)]


def _piece(gap: str) -> Piece:
    title, _, rest = gap.partition("\n")
    return Piece(title, rest or title)


def _gap(piece: Piece) -> str:
    return piece.title if piece.context == piece.title else f"{piece.title}\n{piece.context}"
