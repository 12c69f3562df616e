"""What a person says to a cast that an agent holds: an answer, consent to a command, a decision in its place."""

from __future__ import annotations

import time
from collections.abc import Mapping

from materia_nb.engine import step as engine
from materia_nb.engine.state import Visit
from materia_nb.errors import MateriaError
from materia_nb.handoff.contract import Approval, Grant, answer_note, request_of, sealed_from
from materia_nb.jsonvalue import JSON
from materia_nb.permits import Permits
from materia_nb.store.files import to_bytes
from materia_nb.store.history import StepRecord


class Consults(Permits):
    """The part of a cast that a person is consulted by; ``Cast`` is the class to use."""

    @property
    def approval(self) -> Approval | None:
        """The command that consent is asked for, sealed with its fingerprint; None when none is asked for.

        Raises:
            MateriaError: the request names no exact command or has a malformed id (``approval``).
        """
        hold = self.held
        if hold is None or hold.needs != "consent" or not isinstance(hold.reading.value, dict):
            return None
        asked_at = (self.steps[-1].ended or 0) / 1000
        return sealed_from(request_of(hold.reading.value), asked_at)

    def answer(self, text: str) -> StepRecord:
        """Answer the agent that holds the cast; it goes on in the same conversation.

        Raises:
            MateriaError: the cast is not held (``not_held``), or the answer is blank.
        """
        given: object = text  # what comes from a notebook need not be what the annotation says
        if not isinstance(given, str) or not given.strip():
            raise MateriaError("The answer is blank.", hint="say it in words", kind="usage")
        return self._resume("hold_answered", {}, text, None)

    def approve(self) -> StepRecord:
        """Consent to the exact command that the agent asks for; the grant is for one use and expires.

        Raises:
            MateriaError: no consent is asked for (``not_asked``), or the request has expired (``approval``).
        """
        approval = self._asked()
        _, grant = approval.approve(time.time())
        if grant is None:
            raise MateriaError(
                "The request has expired: nobody answered it in time.",
                hint="deny it, or answer that it should be asked for again",
                kind="approval",
            )
        facts = {**_facts(approval), "granted": True, "expires": round(grant.expires_at * 1000)}
        return self._resume("approval_answered", facts, answer_note(grant), grant)

    def deny(self, reason: str = "") -> StepRecord:
        """Refuse the command that the agent asks consent for, and tell it why."""
        facts = {**_facts(self._asked()), "granted": False}
        told = "\n".join([answer_note(None), *([f"The reason: {reason}"] if reason.strip() else [])])
        return self._resume("approval_answered", facts, told, None)

    def decide(self, *, satisfied: bool | None = None, target: str | None = None) -> StepRecord:
        """Decide in the place of the agent that holds the cast: its output is taken and the cast goes on.

        Args:
            satisfied: what counts as the output's word; as the output says itself if left out.
            target: the socket to go on to (``end`` for the end), whatever the edges say.

        Raises:
            MateriaError: the cast is not held (``not_held``), or there is no such socket.
        """
        with self._hold():
            self._begin()
            self.stop.clear()
            step = engine.decided(self.rules, self.now, satisfied=satisfied, target=target)
            visit = self._held_visit()
            event: dict[str, JSON] = {
                **engine.about(self.rules, visit),
                "satisfied": satisfied,
                "target": target,
                "by": "person",
            }
            more = [(one.type, one.data) for one in step.events if one.type.startswith(("budget_", "cast_"))]
            before = self.now
            self._commit([("hold_decided", event), *more], lambda ts: self._history.moved(step, ts))
            self._keep_beside(visit, step, before)
            self._told()
            self._write_derived()
            return self.steps[-1]

    def _resume(self, event: str, facts: Mapping[str, JSON], text: str, grant: Grant | None) -> StepRecord:
        with self._hold():
            self._begin()
            self.stop.clear()
            told = to_bytes(text).decode()
            about = engine.about(self.rules, self._held_visit())
            prompt = self._history.prompt or self.steps[-1].prompt
            assert prompt is not None  # noqa: S101 - only agents hold a cast, and they were asked
            step = engine.answered(self.rules, self.now, told, prompt)
            data = {**about, **facts, "text": told, "by": "person"}
            self._commit([(event, data)], lambda ts: self._history.moved(step, ts))
            self._grant = grant
            self._told()
            self._ask()
            self._write_derived()
            return self.steps[-1]

    def _held_visit(self) -> Visit:
        visit = self.now.at
        if self.held is None or visit is None:
            raise MateriaError(
                f"The cast is {self.now.status}; nothing waits for a person's word.",
                hint="step, or reply to the socket that waits",
                kind="not_held",
            )
        return visit

    def _asked(self) -> Approval:
        self._held_visit()
        approval = self.approval
        if approval is None:
            needs = (self.held.needs if self.held else None) or "a decision"
            raise MateriaError(
                f"The agent does not ask for consent to a command but for {needs}.",
                hint="answer, or decide",
                kind="not_asked",
            )
        return approval


def _facts(approval: Approval) -> dict[str, JSON]:
    return {
        "approvalId": approval.approval_id,
        "fingerprint": approval.fingerprint,
        "exactContent": approval.sealed["exact_content"],
    }
