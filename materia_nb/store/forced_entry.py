"""Entering a socket as a recording did, where the engine would not."""

from __future__ import annotations

from materia_nb.engine import step as engine
from materia_nb.engine.events import SocketStart
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState, Item, Visit
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Iterator


def forced_entry(rules: Rules, state: CastState, socket: str, recorded: SocketStart) -> engine.Step:
    """Enter ``socket`` as the recording did: with its item and its visit number, whatever led there."""
    state = state._replace(status="ready", next=socket, failure=None, pending=None)
    visit, key = recorded.visit, recorded.about.get("itemKey")
    if visit is not None and visit > 0:
        state = state._replace(visits={**state.visits, socket: visit - 1})
    iterator = rules.sockets[socket].socket.iterator
    place = _place(iterator, key)
    if iterator is not None and place is not None:
        state = state._replace(cursors={**state.cursors, iterator.cursor: place})
    try:
        step = engine.enter(rules, state)
    except MateriaError:
        return _by_hand(rules, state, socket, recorded)
    at = step.state.at
    if step.state.status == "waiting" and at is not None and at.socket == socket:
        found = at.item.key if at.item else None
        if found == key:
            return step
    return _by_hand(rules, state, socket, recorded)


def _by_hand(rules: Rules, state: CastState, socket: str, recorded: SocketStart) -> engine.Step:
    """Make the visit that was recorded, where the engine has no such item or would not enter."""
    here, mode = rules.sockets[socket].socket, rules.sockets[socket].first_mode
    key, label = recorded.about.get("itemKey"), recorded.about.get("itemLabel")
    item = None
    if isinstance(key, str):
        iterator, place = here.iterator, _place(here.iterator, key)
        item = Item(
            None,
            key,
            label if isinstance(label, str) else key,
            place or 0,
            iterator.cursor if iterator else "",
            iterator.loop if iterator else None,
        )
    number = state.visits.get(socket, 0) + 1
    visit = Visit(socket, number, state.steps + 1, item, mode)
    state = state._replace(
        status="waiting",
        next=None,
        at=visit,
        steps=visit.step,
        visits={**state.visits, socket: number},
        trail=(*state.trail, socket),
    )
    prompt = None if here.is_utility else engine.prompt_for(rules, state)
    return engine.Step(state, (), None, prompt)


def forced_final(rules: Rules, state: CastState, prompt: Prompt | None) -> engine.Step:
    """Ask for the handoff of a socket that drafts or works first, also where nothing of that was recorded."""
    visit = state.at
    if visit is not None and not visit.drafts:
        return engine.Step(state._replace(at=visit._replace(mode="final")))
    return engine.finalize(rules, state, prompt or engine.prompt_for(rules, state))


def _place(iterator: Iterator | None, key: JSON) -> int | None:
    """The index that an item key stands for (R13)."""
    if iterator is None or not isinstance(key, str):
        return None
    digits = key.removeprefix("WI-") if iterator.numbered_as_work_items else key
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
        return None
    place = int(digits) - (1 if iterator.numbered_as_work_items else 0)
    return place if place >= 0 else None
