"""What is odd about a cast: about its way (R45, R46), and about what was said on it (R64)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from materia_nb.engine.outcome import Remark, blind_remarks, never_worked_on, remarks
from materia_nb.engine.routing import Decision
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord, item_now, moved_by
from materia_nb.engine.state import ItemId
from materia_nb.jsonvalue import JSON, compact

Said: TypeAlias = frozenset[tuple[str, str]]

FEWER: int = 10
"""An accepted answer is hollow with fewer than one in so many of the characters that a refused one had in a field."""


def remarks_of(rules: Rules, session: Session) -> tuple[Remark, ...]:
    """Return what is odd about a cast if it is complete (R45)."""
    if session.state.status != "complete":
        return ()
    story = (one for step in session.steps for one in (step.entry, step.decision))
    decisions = [one for one in (*story, session.ending) if one is not None]

    def item_of(decision: Decision) -> ItemId | None:
        later = (one for one in session.edits if one.step > decision.step - (one.before.next is not None))
        return None if decision.item is None else moved_by(rules, later, decision.item)

    edited = {path for one in session.edits for path in one.lists}
    found = remarks(rules, decisions, item_of)
    return (
        *found,
        *never_worked_on(rules, session.state, edited),
        *_spoken(rules, session),
        *blind_remarks(session.state),
    )


def repeats(rules: Rules, session: Session) -> Iterator[StepRecord]:
    """Yield the steps whose output or reason is that of an earlier visit of the same socket for the same item (R64).

    White space does not count, nor does what a person pinned or corrected.
    """
    before: dict[object, set[tuple[str, str]]] = {}
    for step in session.steps:
        if step.pinned is not None or step.decision is None or not step.turns:
            continue
        item = item_now(rules, session, step)
        if item is None and step.at.item is not None:
            continue
        value = None if step.at.item is None else compact(step.at.item.value)
        said = _said(step)
        known = before.setdefault((step.socket, item, value), set())
        if said & known:
            yield step
        known |= said


def _said(step: StepRecord) -> Said:
    turn = step.turns[-1]
    if turn.mode == "correction" or (turn.reading is not None and not turn.reading.accepted):
        return frozenset()
    reason = turn.reading.context if turn.reading is not None else None
    told = (("output", turn.text), ("reason", reason or ""))
    return frozenset((kind, line) for kind, text in told if (line := " ".join(text.split())))


def hollow_fields(rules: Rules, step: StepRecord) -> Sequence[str]:
    """Return the fields of an answer that was taken after refusals and say far less than a refused one did (R64)."""
    last = step.turns[-1] if len(step.turns) > 1 else None
    value = last.reading.value if last is not None and last.reading is not None else None
    if last is None or last.mode == "correction" or not isinstance(value, dict):
        return ()
    if last.reading is None or not last.reading.accepted:
        return ()
    needed = rules.sockets[step.socket].wants or [
        name for name, one in value.items() if isinstance(one, dict)
    ]
    refused = [
        turn.reading.value
        for turn in step.turns[step.left : -1]
        if turn.reading is not None and not turn.reading.accepted and isinstance(turn.reading.value, dict)
    ]
    return [
        name
        for name in needed
        if name in value and any(_size(value[name]) * FEWER < _size(one.get(name)) for one in refused)
    ]


def _size(value: JSON) -> int:
    return len(value.strip()) if isinstance(value, str) else 0 if value is None else len(compact(value))


def _spoken(rules: Rules, session: Session) -> Iterator[Remark]:
    again = {step.number for step in repeats(rules, session)}
    for step in session.steps:
        about = (step.socket, step.number, step.item_key)
        of_item = f" for item {step.item_key}" if step.item_key is not None else ""
        if step.number in again:
            message = f"{step.socket} said{of_item} in visit {step.visit} what it had said before"
            yield Remark("same-again", message, *about)
        if fields := hollow_fields(rules, step):
            message = (
                f"{step.socket} was taken after a refusal, and says of {', '.join(fields)} less than a tenth of what "
                "the refused answer said"
            )
            yield Remark("hollow-answer", message, *about)
