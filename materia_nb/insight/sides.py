"""Two steps beside one another: what was said, decided and spent in each, and in what they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord
from materia_nb.engine.state import Usage
from materia_nb.insight.changes import Change, changes
from materia_nb.jsonvalue import JSON, MISSING, compact, same

Aspect: TypeAlias = Literal["socket", "given", "answer", "route", "state"]
"""In what two steps can differ: where they are, what a person changed before, what was said, where it went, what it left."""


class Side(NamedTuple):
    """One of two casts that are compared: what it is called, what it runs by, everything it knows.

    ``name`` is the id of the cast too, which is taken out of texts before they are compared.
    """

    name: str
    rules: Rules
    session: Session


def answer(step: StepRecord) -> JSON:
    """Return what counts as the answer of a step: parsed where it is JSON, else the text; None while there is none."""
    reading = step.reading
    if reading is None or reading.value is None or reading.value is MISSING:
        return step.output
    return reading.value


def went(step: StepRecord) -> str | None:
    """Return where a step went: a socket or ``end``; None when it failed, or still owes an answer."""
    return None if step.decision is None else step.decision.target


def used(step: StepRecord) -> Usage:
    """Add up what a step cost, the turns that gave no answer among it."""
    total = Usage()
    for one in (*step.spent, *(u for turn in step.turns for u in (*turn.spent, turn.usage) if u)):
        total = total.plus(one)
    return total


def took(step: StepRecord) -> int | None:
    """Return how many milliseconds a step took, None while it is not over."""
    return None if step.ended is None else step.ended - step.started


def prompt_layers(a: StepRecord, b: StepRecord, names: tuple[str, str] = ("", "")) -> tuple[str, ...]:
    """Name the layers of the prompts of two steps that differ; ids of the casts do not count."""
    left = _layers(a, names[0])
    right = _layers(b, names[1])
    return tuple(name for name in dict.fromkeys((*left, *right)) if left.get(name) != right.get(name))


def _layers(step: StepRecord, name: str) -> Mapping[str, str]:
    layers = () if step.prompt is None else step.prompt.layers
    return {layer.name: without_id(layer.text, name) for layer in layers}


def without_id(text: str, name: str) -> str:
    """Return a text in which the id of its cast is no longer told from another's."""
    return text.replace(name, "<cast>") if name else text


def alike(a: JSON, b: JSON, names: tuple[str, str] = ("", "")) -> bool:
    """Whether two values are the same, but for the ids of their casts."""
    if (a is MISSING) is not (b is MISSING):
        return False
    if a is MISSING or same(a, b):
        return True
    if isinstance(a, str) and isinstance(b, str):
        return without_id(a, names[0]) == without_id(b, names[1])
    if type(a) is not type(b) or not isinstance(a, dict | list):
        return False
    return without_id(compact(a), names[0]) == without_id(compact(b), names[1])


def state_changes(
    a: Mapping[str, JSON], b: Mapping[str, JSON], names: tuple[str, str] = ("", "")
) -> list[Change]:
    """Return where two states differ, but for the ids of their casts."""
    return [one for one in changes(dict(a), dict(b)) if not alike(one.a, one.b, names)]


def differs(a: StepRecord, b: StepRecord, names: tuple[str, str] = ("", "")) -> tuple[Aspect, ...]:
    """Name in what two steps differ in what was done; empty when they did the same.

    What was asked, how long it took and what it cost are no part of it.
    """
    found: list[Aspect] = []
    if _place(a) != _place(b):
        found.append("socket")
    if not alike(dict(a.before.data), dict(b.before.data), names):
        found.append("given")
    if not _same_answers(a, b, names):
        found.append("answer")
    if _way(a) != _way(b):
        found.append("route")
    if not alike(dict(a.after.data), dict(b.after.data), names):
        found.append("state")
    return tuple(found)


def _place(step: StepRecord) -> tuple[str, str | None]:
    return step.socket, step.item_key


def _same_answers(a: StepRecord, b: StepRecord, names: tuple[str, str]) -> bool:
    if len(a.turns) != len(b.turns):
        return False
    return all(
        x.mode == y.mode and alike(_said(x.text, x.reading), _said(y.text, y.reading), names)
        for x, y in zip(a.turns, b.turns, strict=True)
    )


def _said(text: str, reading: object) -> JSON:
    value = getattr(reading, "value", None)
    return text.strip() if value is None or value is MISSING else value


def _way(step: StepRecord) -> tuple[object, ...]:
    """What was decided, apart from how often an edge had been used and what a failure says."""
    decision = step.decision
    if decision is None:
        return ()
    failure = decision.failure.kind if decision.failure else None
    return decision.by, decision.target, decision.satisfied, failure, decision.done, decision.exhausted
