"""What an output may ask for beside a route: another turn, a person, or something else done first.

A pause or an escalation holds the cast: the output is kept, nothing of it is applied yet, and a person
answers the agent or decides for it. A detour runs one socket and comes back.
"""

from __future__ import annotations

from typing import Literal

from materia_nb.engine.completing import apply_output, complete, start_detour
from materia_nb.engine.prompt import Prompt, resume_prompt
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.said import ToolCall
from materia_nb.engine.state import CastState, Draft, Hold, Visit
from materia_nb.engine.transition import Event, Step, about_visit, decision_of
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.handoff.contract.approval import Grant
from materia_nb.handoff.protocol import Reading
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import END

GO_ON = "Go on with this work where you stopped."


def held(here: SocketRules, draft: Draft, visit: Visit, text: str, reading: Reading) -> Step:
    """Stop until a person has answered or decided; the socket has not been completed."""
    visit = visit._replace(memory=reading.memory)
    action: Literal["pause", "escalate"] = "pause" if reading.action == "pause" else "escalate"
    draft.status, draft.at = "held", visit
    draft.hold = Hold(action, reading.reason, reading.needs, text, reading)
    event = Event(
        "socket_held",
        {
            **about_visit(here, visit),
            "visit": visit.visit,
            "action": action,
            "reason": reading.reason,
            "needs": reading.needs,
        },
    )
    return Step(draft.done(), (event,), decision_of(visit, action, None, reading), None, reading)


def continued(here: SocketRules, draft: Draft, visit: Visit, reading: Reading, prompt: Prompt) -> Step:
    """Ask the agent that is still at work once more, in the same conversation."""
    visit = visit._replace(mode="resume", turn=visit.turn + 1, repairs=0, memory=reading.memory)
    draft.at = visit
    event = Event(
        "socket_continued", {**about_visit(here, visit), "visit": visit.visit, "reason": reading.reason}
    )
    asked = resume_prompt(
        prompt, "\n".join([GO_ON, *([reading.reason] if reading.reason else [])]), here.ask_in("resume")
    )
    return Step(draft.done(), (event,), decision_of(visit, "reissue", visit.socket, reading), asked, reading)


def detoured(
    rules: Rules, here: SocketRules, draft: Draft, visit: Visit, text: str, reading: Reading
) -> Step:
    """Run the named socket first; then go the way of a satisfied output, or do this one again."""
    target = reading.target or END
    if reading.satisfied:
        return complete(rules, here, draft, visit, text, reading, detour=target)
    apply_output(here, draft, text, reading)
    decision = decision_of(visit, "detour", target, reading)
    completed = Event(
        "socket_complete",
        {**about_visit(here, visit), "visit": visit.visit, "parsed": True, "detour": target},
    )
    return start_detour(rules, draft, visit, visit.socket, decision, events=(completed,), reading=reading)


def answered(rules: Rules, state: CastState, text: str, prompt: Prompt, grant: Grant | None = None) -> Step:
    """A person answered: the agent goes on in the same conversation, with consent to a command if that was given."""
    visit, here = _held(rules, state)
    resumed = visit._replace(mode="resume", turn=visit.turn + 1, repairs=0, grant=grant)
    after = state._replace(status="waiting", at=resumed, hold=None)
    return Step(after, (), None, resume_prompt(prompt, text, here.ask_in("resume")))


def called(state: CastState, call: ToolCall) -> CastState:
    """Use up the consent to a command when that command is run: it is for one use (R44)."""
    visit = state.at
    if visit is None or visit.grant is None or call.args.get("command") != visit.grant.exact_content:
        return state
    return state._replace(at=visit._replace(grant=None))


def decided(
    rules: Rules, state: CastState, *, satisfied: bool | None = None, target: str | None = None
) -> Step:
    """A person decided in the agent's place: the socket is completed with the output that is held.

    Args:
        rules: what the cast runs by.
        state: a held cast.
        satisfied: what counts as the output's word; as the output says if left out.
        target: the socket to go on to, whatever the edges say.

    Raises:
        MateriaError: the cast is not held (``not_held``), there is no such socket, or nothing says which edge to take.
    """
    visit, here = _held(rules, state)
    hold = state.hold
    assert hold is not None  # noqa: S101 - _held raises otherwise
    if target is not None and target != END and target not in rules.sockets:
        raise MateriaError(
            f"The loadout {rules.graph.name!r} has no socket {target!r}.",
            hint=did_you_mean(target, rules.graph.sockets),
            kind="unknown_socket",
        )
    given = hold.reading
    value: JSON = given.value if isinstance(given.value, dict) else {}
    word = given.satisfied if satisfied is None else satisfied
    if word is None and target is None and here.wanted.only_guarded:
        raise MateriaError(
            f"The output does not say whether it is satisfied, and {visit.socket} has guarded edges only.",
            hint="decide whether it is satisfied, or name the socket to go on to",
            kind="usage",
        )
    reading = Reading(
        value,
        notes=given.notes,
        satisfied=word,
        context=given.context,
        work_items=given.work_items,
        warnings=given.warnings,
    )
    draft = Draft(state)
    draft.hold = None
    return complete(rules, here, draft, visit, hold.text, reading, target=target)


def _held(rules: Rules, state: CastState) -> tuple[Visit, SocketRules]:
    if state.status != "held" or state.at is None or state.hold is None:
        raise MateriaError(
            f"The cast is {state.status}; nothing waits for a person's word.",
            hint="step, or reply to the socket that waits",
            kind="not_held",
        )
    return state.at, rules.sockets[state.at.socket]
