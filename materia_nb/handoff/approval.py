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

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON

GRANT_SECONDS: Final = 60 * 60
PENDING_SECONDS: Final = 24 * 60 * 60
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

Standing: TypeAlias = Literal["pending", "approved", "rejected", "revoked", "expired"]
GrantStanding: TypeAlias = Literal["PENDING", "CONSUMED", "REVOKED", "EXPIRED"]


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
    standing: GrantStanding = "PENDING"

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

    def revoke(self) -> Grant:
        """Take back a grant that was not used."""
        return replace(self, standing="REVOKED") if self.standing == "PENDING" else self

    def as_json(self) -> dict[str, JSON]:
        """Return what the agent and the journal are told of the grant."""
        uses = 1 if self.standing == "PENDING" else 0
        return {"approval_id": self.approval_id, "exact_content": self.exact_content, "uses": uses}


@dataclass(frozen=True, slots=True)
class Approval:
    """A command that was held back, sealed as it was tried, and what became of it."""

    approval_id: str
    sealed: Mapping[str, JSON]
    fingerprint: str
    asked_at: float
    standing: Standing = "pending"

    def at(self, now: float) -> Approval:
        """Return the approval at a time: expired when nobody answered by then."""
        over = self.standing == "pending" and now >= self.asked_at + PENDING_SECONDS
        return replace(self, standing="expired") if over else self

    def approve(self, now: float) -> tuple[Approval, Grant | None]:
        """Consent: returns a grant for the exact command, None when the time was over.

        Raises MateriaError (kind ``approval``) when it was answered before.
        """
        held = self._open(now)
        if held.standing == "expired":
            return held, None
        command = held.sealed["exact_content"]
        return replace(held, standing="approved"), Grant(held.approval_id, command, now + GRANT_SECONDS)

    def reject(self, now: float) -> Approval:
        """Refuse; raises MateriaError (kind ``approval``) when it was answered before."""
        held = self._open(now)
        return held if held.standing == "expired" else replace(held, standing="rejected")

    def revoke(self) -> Approval:
        """Take it back, asked for or approved; a grant that was given is revoked by :meth:`Grant.revoke`."""
        return replace(self, standing="revoked") if self.standing in ("pending", "approved") else self

    def matches(self, request: Mapping[str, JSON]) -> bool:
        """Whether an agent's request is the command that was sealed; one that differs must not be shown.

        The fields that the agent copies are put in place of the sealed ones: the fingerprint
        must stay the same. ``rollback`` is the sealed hint when there was one.
        """
        if request.get("approval_id") != self.approval_id:
            return False
        copied = {name: request[name] for name in ("operation", "exact_content", "scope") if name in request}
        if "risk_level" in request:
            copied["risk_level"] = str(request["risk_level"]).strip().upper()
        if self.sealed.get("rollback_hint") is not None:
            copied["rollback_hint"] = request.get("rollback")
        return fingerprint({**self.sealed, **copied}) == self.fingerprint

    def _open(self, now: float) -> Approval:
        held = self.at(now)
        if held.standing not in ("pending", "expired"):
            raise MateriaError(
                f"The approval {self.approval_id} is {self.standing} already.",
                hint="ask again: an approval is answered once",
                kind="approval",
            )
        return held


def seal(approval_id: str, command: Mapping[str, JSON], now: float) -> Approval:
    """Hold back a command and seal what is known of it.

    Args:
        approval_id: ``P-`` and 32 hexadecimal digits, not used before.
        command: operation, exact_content (a text that is not blank), scope, risk_level and, where
            they are known, rollback_hint, rationale and commands.
        now: when it was held back.

    Raises:
        MateriaError: (kind ``approval``) for a malformed id, or without an exact command.
    """
    if not is_approval_id(approval_id):
        raise MateriaError(
            f"{approval_id[:60]!r} is no approval id.",
            hint="P- and 32 hexadecimal digits",
            kind="approval",
        )
    exact = command.get("exact_content")
    if not isinstance(exact, str) or not exact.strip():
        raise MateriaError("There is no exact command to consent to.", where="exact_content", kind="approval")
    sealed = {name: command.get(name) for name in _SEALED}
    if sealed["risk_level"] is not None:
        sealed["risk_level"] = str(sealed["risk_level"]).strip().upper()
    return Approval(approval_id, sealed, fingerprint(sealed), now)


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
    """Seal what an agent itself asks for, where nothing held the command back before.

    Raises MateriaError as :func:`seal` does.
    """
    command = {**request, "rollback_hint": request.get("rollback")}
    return seal(str(request.get("approval_id")), command, now)


def answer_note(grant: Grant | None) -> str:
    """Return what the resumed agent is told: the one command that it may run now, or that there is none."""
    tail = "Report IN_PROGRESS before you report COMPLETE."
    if grant is None:
        return f"No consent was given. Do not run the command. {tail}"
    return (
        f"Consent was given ({grant.approval_id}) to run exactly this command once, within "
        f"{GRANT_SECONDS // 60} minutes:\n{grant.exact_content}\n{tail}"
    )
