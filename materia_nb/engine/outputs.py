"""An output arrived: a draft, an answer to refuse, or one to complete the socket with (R2, R19)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from materia_nb.engine.completing import complete
from materia_nb.engine.entering import first_prompt
from materia_nb.engine.facts import turn_facts
from materia_nb.engine.followup import cut
from materia_nb.engine.holds import continued, detoured, held
from materia_nb.engine.prompt import Prompt, final_prompt, handoff_prompt, repair_prompt
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.state import (
    CastState,
    Draft,
    Failure,
    Usage,
    View,
    Visit,
)
from materia_nb.engine.transition import (
    CORRECT_THE_UTILITY,
    Event,
    Step,
    about_visit,
    decision_of,
    stop_cast,
    waiting_visit,
)
from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import UNKNOWN, Issue, Reading

MOST_REFUSED: Final = 2
"""How often an output is asked for again at most where its protocol wants another one each time."""


def output(
    rules: Rules,
    state: CastState,
    text: str,
    usage: Usage | None = None,
    prompt: Prompt | None = None,
    changed: Sequence[str] = (),
    *,
    refused: str | None = None,
) -> Step:
    """An output arrived for the waiting visit: draft, refuse, hold, or complete the step (R2, R19, R20).

    ``prompt`` is the prompt that was answered; a repair turn is built on it. ``changed`` are the files that
    changed in this turn, where the protocol wants to know. ``refused`` is why the output was
    refused when it was recorded: it stays so, whatever would be made of it by now.
    """
    visit = waiting_visit(state)
    if visit.grant is not None or changed:  # what is left of a consent ends with the turn
        visit = visit._replace(grant=None, changed=tuple(dict.fromkeys((*visit.changed, *changed))))
    here = rules.sockets[visit.socket]
    draft = Draft(state)
    draft.at = visit
    if usage is not None:
        draft.usage = draft.usage.plus(usage)
    if here.any_text(visit.mode):
        asked = prompt or first_prompt(rules, here, draft.done(), visit)
        return _worked(here, draft, visit, asked) if here.works(visit.mode) else _drafted(here, draft, visit)
    reading = _read(rules, here, draft, visit, text)
    if refused is not None and reading.error is None:
        reading = Reading(None, "contract", (Issue("$", refused, "give the whole answer again"),))
    if reading.error is not None:
        return _refused(rules, here, draft, visit, text, reading, prompt=prompt)
    if reading.action == "route":
        return complete(rules, here, draft, visit, text, reading)
    if reading.action == "detour":
        return detoured(rules, here, draft, visit, text, reading)
    if reading.action == "reissue":
        return continued(
            here, draft, visit, reading, prompt or first_prompt(rules, here, draft.done(), visit)
        )
    return held(here, draft, visit, text, reading)


def check_answer(rules: Rules, state: CastState, text: str) -> tuple[Issue, ...]:
    """Return why an answer of the waiting visit would be refused, empty when it would be taken (R42)."""
    visit = waiting_visit(state)
    here = rules.sockets[visit.socket]
    if here.any_text(visit.mode):
        return ()
    reading = _read(rules, here, state, visit, text)
    return () if reading.error is None else reading.issues


def _read(rules: Rules, here: SocketRules, state: View, visit: Visit, text: str) -> Reading:
    facts = turn_facts(rules, here, state, visit) if here.needs_facts else UNKNOWN
    return here.protocol.read(text, here.wanted, facts)


def _drafted(here: SocketRules, draft: Draft, visit: Visit) -> Step:
    visit = visit._replace(drafts=visit.drafts + 1, turn=visit.turn + 1)
    draft.at = visit
    event = Event(
        "socket_refinement",
        {**about_visit(here, visit), "visit": visit.visit, "refinementTurn": visit.drafts},
    )
    return Step(draft.done(), (event,), decision_of(visit, "draft", visit.socket))


def _worked(here: SocketRules, draft: Draft, visit: Visit, prompt: Prompt) -> Step:
    """The work is done; now the same agent is asked to hand it over."""
    worked = Event("socket_worked", {**about_visit(here, visit), "visit": visit.visit})
    visit = visit._replace(mode="final", turn=visit.turn + 1)
    draft.at = visit
    decision = decision_of(visit, "finalize", visit.socket)
    return Step(draft.done(), (worked,), decision, handoff_prompt(prompt, here.ask))


def finalize(rules: Rules, state: CastState, prompt: Prompt) -> Step:
    """The person is content with the drafts: ask for the final result in the same conversation."""
    visit = waiting_visit(state)
    if visit.mode != "draft":
        raise MateriaError(
            f"{visit.socket} is not a multi-turn socket with a draft.",
            hint="reply to it instead",
            kind="not_multi_turn",
        )
    if not visit.drafts:
        raise MateriaError(
            f"{visit.socket} has no draft yet.", hint="let its agent answer first (step)", kind="no_draft"
        )
    visit = visit._replace(mode="final")
    return Step(state._replace(at=visit), (), None, final_prompt(prompt, rules.sockets[visit.socket].ask))


def _refused(
    rules: Rules,
    here: SocketRules,
    draft: Draft,
    visit: Visit,
    text: str,
    reading: Reading,
    *,
    prompt: Prompt | None,
) -> Step:
    told = "; ".join(cut(f"{issue.path}: {issue.message}", 300) for issue in reading.issues[:8])
    refused = Event("socket_refused", {**about_visit(here, visit), "visit": visit.visit})
    if here.socket.is_utility:
        failure = Failure(
            "invalid_output",
            f"The output of {visit.socket} was refused. {told}",
            visit.socket,
            CORRECT_THE_UTILITY,
        )
        return stop_cast(draft, failure, visit, reading, first=refused)
    asks = reading.action in ("reissue", "reject")  # such a protocol counts for itself when to call a person
    if reading.action == "escalate" or (asks and visit.repairs >= MOST_REFUSED):
        return held(here, draft, visit, text, reading)
    allowed = rules.graph.limits.repair_attempts + draft.extra.get(("repair", visit.step), 0)
    if visit.repairs >= allowed and not asks:
        failure = Failure(
            "repair_exhausted",
            f"{visit.socket} gave an unusable answer {visit.repairs + 1} times. {told}",
            visit.socket,
            "recast to ask again, revive for another repair turn, or correct the answer yourself",
            refused=(reading.issues, text),
        )
        exhausted = Event(
            "same_socket_recovery_exhausted", {**refused.data, "error": told, "attempt": visit.repairs}
        )
        return stop_cast(draft, failure, visit, reading, first=exhausted)
    visit = visit._replace(mode="repair", repairs=visit.repairs + 1, turn=visit.turn + 1)
    draft.at = visit
    before = prompt or first_prompt(rules, here, draft.done(), visit)
    kind = "json_parse" if reading.error == "not_json" else "handoff_validation"
    most = MOST_REFUSED if asks else allowed
    facts = {**refused.data, "attempt": visit.repairs, "maxAttempts": most, "validationKind": kind}
    return Step(
        draft.done(),
        (
            Event("same_socket_recovery_start", {**facts, "error": told}),
            Event("same_socket_recovery_retry", facts),
        ),
        decision_of(visit, "repair", visit.socket, reading),
        repair_prompt(before, here.ask, reading.issues, text),
        reading,
    )
