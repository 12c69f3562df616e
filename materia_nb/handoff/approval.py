"""Consent to one exact command: asked for, answered by a person, used once (agent contract rules, section 7).

Times are seconds of any one clock and always arguments.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from materia_nb.jsonvalue import JSON

_GRANT_SECONDS: Final = 60 * 60
_PENDING_SECONDS: Final = 24 * 60 * 60
_SEALED: Final = (
    "operation",
    "exact_content",
    "scope",
    "risk_level",
    "rollback_hint",
    "rationale",
    "commands",
)
_APPROVAL_ID = re.compile(r"P-[0-9a-f]{32}")

_GrantStanding: TypeAlias = Literal["PENDING", "CONSUMED", "EXPIRED"]


def fingerprint(value: JSON) -> str:
    """Return the SHA-256 of a value as compact JSON with sorted keys, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Grant:
    """Leave to run one exact command once, until it expires."""

    approval_id: str
    exact_content: str
    expires_at: float
    standing: _GrantStanding = "PENDING"

    def use(self, command: str, now: float) -> tuple[bool, Grant]:
        """Say whether ``command`` may run now, and return the grant as it is afterwards.

        A command that differs in any character is not what was consented to; it is refused
        and the grant stays as it is.
        """
        grant = self.at(now)
        if grant.standing != "PENDING" or fingerprint(command) != fingerprint(grant.exact_content):
            return False, grant
        return True, replace(grant, standing="CONSUMED")

    def at(self, now: float) -> Grant:
        """Return the grant at a time: expired when it was not used by then."""
        over = self.standing == "PENDING" and now >= self.expires_at
        return replace(self, standing="EXPIRED") if over else self

    def as_json(self) -> dict[str, JSON]:
        """Return what the agent and the journal are told of the grant."""
        uses = 1 if self.standing == "PENDING" else 0
        return {"approval_id": self.approval_id, "exact_content": self.exact_content, "uses": uses}


@dataclass(frozen=True, slots=True)
class Approval:
    """A command that was held back, sealed as it was tried."""

    approval_id: str
    sealed: Mapping[str, JSON]
    fingerprint: str
    asked_at: float

    def grant(self, now: float) -> Grant | None:
        """Consent to the exact command; None when nobody answered within a day."""
        if now >= self.asked_at + _PENDING_SECONDS:
            return None
        return Grant(self.approval_id, self.sealed["exact_content"], now + _GRANT_SECONDS)


def request_of(contract: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the approval request of a contract; empty when it has none."""
    found = contract.get("approval_request")
    return found if isinstance(found, dict) else {}


def is_approval_id(value: JSON) -> bool:
    """Whether a value has the form of an approval id: ``P-`` and 32 hexadecimal digits."""
    return isinstance(value, str) and _APPROVAL_ID.fullmatch(value) is not None


def can_be_granted(request: Mapping[str, JSON]) -> bool:
    """Whether a person can consent to the request: it has an approval id and an exact command (R44).

    Any other request is a plan, which a person gives a direction for.
    """
    command = request.get("exact_content")
    return is_approval_id(request.get("approval_id")) and isinstance(command, str) and bool(command.strip())


def sealed_from(request: Mapping[str, JSON], now: float) -> Approval:
    """Seal what an agent asks for, which :func:`can_be_granted`, at the time when it was held back."""
    sealed = {name: request.get(name) for name in _SEALED} | {"rollback_hint": request.get("rollback")}
    if sealed["risk_level"] is not None:
        sealed["risk_level"] = str(sealed["risk_level"]).strip().upper()
    return Approval(str(request.get("approval_id")), sealed, fingerprint(sealed), now)


def answer_note(grant: Grant | None) -> str:
    """Return what the resumed agent is told: the one command that it may run now, or that there is none."""
    tail = "Report IN_PROGRESS before you report COMPLETE."
    if grant is None:
        return f"No consent was given. Do not run the command. {tail}"
    return (
        f"Consent was given ({grant.approval_id}) to run exactly this command once, within "
        f"{_GRANT_SECONDS // 60} minutes:\n{grant.exact_content}\n{tail}"
    )
