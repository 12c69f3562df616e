"""Where a recorded route is not the one that the engine takes: why, in words, and entering a socket as recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from materia_nb.engine import entering, outputs
from materia_nb.engine.choosing import Look
from materia_nb.engine.events import RECOVERY, Event, RecoveryStart, SocketStart, Transition
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import Decision
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session
from materia_nb.engine.state import CastState, Item, Visit
from materia_nb.errors import MateriaError, counted
from materia_nb.handoff.protocol import in_brief
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Iterator
from materia_nb.store.journal import Line


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the engine's route is not the recorded one.

    Attributes:
        step: the step whose way on (or whose item) differs, from 1.
        recorded: what the recording did.
        ours: what the engine does.
        why: the engine's reason.
    """

    step: int
    recorded: str
    ours: str
    why: str

    def __str__(self) -> str:
        return f"step {self.step}: recorded {self.recorded}; ours {self.ours}: {self.why}"


def our_way(session: Session, step: Transition | None) -> str:
    """Say what the engine does where the recording goes another way; ``step`` is what entering gave."""
    state = step.state if step else session.state
    visit = state.at
    if state.status == "waiting" and visit is not None:
        return f"goes on to {visit.socket}" if step else f"still waits for an output of {visit.socket}"
    if state.status == "failed" and state.failure is not None:
        return f"fails ({state.failure.kind})"
    if state.status == "ready" and step is None:
        return f"goes on to {state.next}"
    return "ends" if state.status in ("complete", "ready") else f"is {state.status}"


def our_reason(session: Session, step: Transition | None, recorded_error: str = "") -> str:
    """Say why the engine goes its way; ``recorded_error`` is what the recording stopped with."""
    state = step.state if step else session.state
    if state.failure is not None:
        return state.failure.message
    decision = session.steps[-1].decision if session.steps else None
    if decision is None:
        return (
            "the entry socket of the loadout comes first" if not session.steps else "it has not answered yet"
        )
    if decision.issues:
        return f"the output of {decision.socket} cannot be used: {in_brief(decision.issues, 5)}"
    reason = _choice(decision)
    if step is not None and step.decision is not None and step.decision.passed_over:
        reason += f"; {', '.join(step.decision.passed_over)} has no item left and is passed over"
    limit = _limit(session.state, decision, recorded_error)
    return f"{limit}; {reason}" if limit else reason


def _choice(decision: Decision) -> str:
    chosen = decision.chosen
    if chosen is None:
        return f"{decision.socket} has no matching edge or exit, so {decision.target or 'end'} follows"
    return (
        f"the {chosen.kind} of {decision.socket} to {chosen.to} is the first that matches: "
        f"{chosen.reason(decision.result)}"
    )


def _limit(state: CastState, decision: Decision, recorded_error: str) -> str | None:
    """Explain a stop at a limit that this engine counts otherwise (R18) or not at all (R21)."""
    error = recorded_error.lower()
    if "visit limit" in error:
        return "visits are counted here but never limited"
    chosen = decision.chosen
    if "traversal" not in error or chosen is None:
        return None
    return _traversals(state, decision, chosen)


def _traversals(state: CastState, decision: Decision, chosen: Look) -> str | None:
    total = state.traversals.get(f"{decision.socket}->{chosen.to}", 0)
    if chosen.limit is None:
        return (
            f"the recording bounds this edge over the whole cast (chosen {counted(total, 'time')} by now); this engine "
            "bounds edges inside an item only where they have maxTraversals, and rounds without advance otherwise"
        )
    if decision.item_key is None:
        return f"it is chosen for time {(chosen.used or 0) + 1} of {chosen.limit} by this engine's count"
    return (
        f"the recording counts maxTraversals over the whole cast (chosen {counted(total, 'time')} by now, {chosen.limit} "
        f"allowed); this engine counts it for each item, and for item {decision.item_key} this is "
        f"time {(chosen.used or 0) + 1} of {chosen.limit}"
    )


def forced_entry(rules: Rules, state: CastState, socket: str, recorded: SocketStart) -> Transition:
    """Enter ``socket`` as the recording did: with its item and its visit number, whatever led there."""
    state = state._replace(status="ready", next=socket, failure=None, unrouted=None)
    visit, key = recorded.visit, recorded.about.get("itemKey")
    if visit is not None and visit > 0:
        state = state._replace(visits={**state.visits, socket: visit - 1})
    iterator = rules.sockets[socket].socket.iterator
    place = _place(iterator, key)
    if iterator is not None and place is not None:
        state = state._replace(cursors={**state.cursors, iterator.cursor: place})
    try:
        step = entering.enter(rules, state)
    except MateriaError:
        return _by_hand(rules, state, socket, recorded)
    at = step.state.at
    if step.state.status == "waiting" and at is not None and at.socket == socket:
        found = at.item.key if at.item else None
        if found == key:
            return step
    return _by_hand(rules, state, socket, recorded)


def _by_hand(rules: Rules, state: CastState, socket: str, recorded: SocketStart) -> Transition:
    """Make the visit that was recorded, where the engine has no such item or would not enter."""
    state = as_visited(rules, state, socket, recorded)
    prompt = None if rules.sockets[socket].socket.is_utility else entering.prompt_for(rules, state)
    return Transition(state, (), None, prompt)


def as_visited(rules: Rules, state: CastState, socket: str, recorded: SocketStart) -> CastState:
    """Return the state in which ``socket`` is visited with the item that was recorded, whatever the engine would do."""
    here, mode = rules.sockets[socket].socket, rules.sockets[socket].first_mode
    key, label = recorded.about.get("itemKey"), recorded.about.get("itemLabel")
    item = None
    if isinstance(key, str):
        iterator, place = here.iterator, _place(here.iterator, key)
        item = Item(
            None,
            key,
            label if isinstance(label, str) else key,
            (iterator.cursor if iterator else "", place or 0, ()),
            iterator.loop if iterator else None,
        )
    number = state.visits.get(socket, 0) + 1
    visit = Visit(socket, number, state.steps + 1, item, mode)
    return state._replace(
        status="waiting",
        next=None,
        at=visit,
        steps=visit.step,
        failure=None,
        visits={**state.visits, socket: number},
        trail=(*state.trail, socket),
    )


def forced_final(rules: Rules, state: CastState, prompt: Prompt | None) -> Transition:
    """Ask for the handoff of a socket that drafts or works first, also where nothing of that was recorded."""
    visit = state.at
    if visit is not None and not visit.drafts:
        return Transition(state._replace(at=visit._replace(mode="final")))
    return outputs.finalize(rules, state, prompt or entering.prompt_for(rules, state))


def turn_failed(event: Event | None) -> bool:
    """Whether a turn of the reference gave no answer, rather than one that was refused (R59).

    Its provider failed, its time was over, or its context was full; what was refused says what it was held to.
    """
    if not isinstance(event, RECOVERY):
        return False
    told = (event.error or "").casefold()
    unheld = isinstance(event, RecoveryStart) and event.validation_kind is None
    return "agent turn failed" in told or (unheld and "validation failed" not in told)


def unkept(event: RecoveryStart) -> str:
    """Say what became of a turn that a recording of the reference does not keep."""
    error = (event.error or "no reason given")[:300]
    if turn_failed(event):
        return f"a turn failed and was asked again ({error})"
    return f"an answer was refused and asked for again; the recording does not keep it ({error})"


def quest_of(lines: Sequence[Line]) -> str | None:
    """Return the id of the quest that a cast of the reference was made for: its item outside loops (R59)."""
    start = next((line.data for line in lines if line.type == "cast_start"), {})
    quest = start.get("quest")
    found = quest.get("id") if isinstance(quest, dict) else quest
    return found if isinstance(found, str) else None


def _place(iterator: Iterator | None, key: JSON) -> int | None:
    """The index that an item key stands for (R13)."""
    if iterator is None or not isinstance(key, str):
        return None
    digits = key.removeprefix("WI-") if iterator.numbered_as_work_items else key
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
        return None
    place = int(digits) - (1 if iterator.numbered_as_work_items else 0)
    return place if place >= 0 else None
