"""The history of a value of the state: which step, edit or lane changed it, by which rule, and from what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from materia_nb.engine.session import Edit, Session, StepRecord, Streams
from materia_nb.jsonvalue import JSON, MISSING, get_path, same, split_path

_Rule: TypeAlias = Literal["start", "R10", "R11", "R12", "P6", "edit"]
"""By what a value came to be: given at the start, the state patch or a canonical field of an answer (R10), an
assignment (R11), the current item as the state shows it (R12), lanes that came together (P6), or a person."""


Data: TypeAlias = Mapping[str, JSON]


class BlameEntry(NamedTuple):
    """One change of a value.

    Attributes:
        step: the step that made it; for an edit the one after which, or in which, it was made; 0 for the start; for lanes
            the one that handed their items out.
        socket: the socket of the step, None for a person's edit, for the start and for lanes.
        item_key: the item of the step.
        rule: by what it came to be.
        source: where in the answer it stood, such as ``$.context``, or what an assignment read; None where
            that cannot be told.
        before: the value before, MISSING where there was none.
        after: the value since.
        corrected: whether a person had corrected the answer.
    """

    step: int
    socket: str | None
    item_key: str | None
    rule: _Rule
    source: str | None
    before: JSON
    after: JSON
    corrected: bool = False


def blame_value(session: Session, path: str) -> list[BlameEntry]:
    """Return what changed a value of the state, the latest change first; empty when nothing ever set it.

    Args:
        session: the cast.
        path: dotted, such as ``plan.title`` or ``state.workItems.0.title``.
    """
    segments = split_path(path)
    if segments[:1] == ["state"] and (len(segments) > 1 or "state" not in session.state.data):
        segments = segments[1:]
    begun = get_path(dict(session.start.data), segments)
    found = [BlameEntry(0, None, None, "start", None, MISSING, begun)]
    for made, before, after in _changes(session):
        was, now = get_path(dict(before), segments), get_path(dict(after), segments)
        if same(was, now):
            continue
        if isinstance(made, Streams):
            found.append(BlameEntry(made.step, None, None, "P6", None, was, now))
        elif isinstance(made, Edit):
            found.append(BlameEntry(made.step, None, None, "edit", None, was, now))
        else:
            found.append(_by_step(made, segments, was, now))
    return [one for one in reversed(found) if one.rule != "start" or one.after is not MISSING]


def _changes(session: Session) -> Iterator[tuple[StepRecord | Edit | Streams, Data, Data]]:
    """Go through all that changed the state, in order: who did, the state before and after."""
    yield from _edits([one for one in session.edits if one.step == 0])
    joined = {streams.step: streams for streams in session.streams if streams.status == "joined"}
    for step in session.steps:
        edits = [one for one in session.edits if one.step == step.number]
        inside = [one for one in edits if one.before.status in ("waiting", "held")]
        at = step.before.data
        for edit in inside:
            yield step, at, edit.before.data
            yield edit, edit.before.data, edit.after.data
            at = edit.after.data
        if not inside or step.after is not inside[-1].before:
            yield step, at, step.after.data
        behind = [one for one in edits if one not in inside]
        if (streams := joined.get(step.number)) is None:
            yield from _edits(behind)
        else:
            following = session.steps[step.number :][:1]
            then = following[0].before.data if following else session.state.data
            yield from _around(streams, behind, step.after.data, then)


def _around(
    streams: Streams, edits: Sequence[Edit], at: Data, then: Data
) -> Iterator[tuple[Edit | Streams, Data, Data]]:
    """Give the edits before lanes were at work, what these brought when they came together, and the edits after that."""
    for place, edit in enumerate(edits):
        if edit.before.data != at:
            yield streams, at, edit.before.data
            yield from _edits(edits[place:])
            return
        yield from _edits([edit])
        at = edit.after.data
    yield streams, at, then


def _edits(edits: Sequence[Edit]) -> Iterator[tuple[Edit, Data, Data]]:
    for edit in edits:
        yield edit, edit.before.data, edit.after.data


def _by_step(step: StepRecord, segments: Sequence[str], was: JSON, now: JSON) -> BlameEntry:
    rule, source = _rule(step, segments, now)
    corrected = bool(step.turns) and step.turns[-1].mode == "correction"
    return BlameEntry(step.number, step.socket, step.item_key, rule, source, was, now, corrected)


def _rule(step: StepRecord, segments: Sequence[str], now: JSON) -> tuple[_Rule, str | None]:
    """Find what in a step set a value: its last assignment that reaches it, else its answer, else its item."""
    assigned = step.decision.assigned if step.decision else ()
    for one in reversed(assigned):
        target = split_path(one.target)
        if one.found and segments[: len(target)] == target:
            return "R11", _at(one.source, segments[len(target) :])
        if one.found and target[: len(segments)] == segments:
            return "R11", None  # a part of it was assigned
    value = step.reading.value if step.reading else None
    for rule_source, inside in (("$.state", ["state", *segments]), ("$", segments)):
        if segments and get_path(value, inside) is not MISSING and same(get_path(value, inside), now):
            return "R10", _at(rule_source, segments)
    if segments[:1] == ["context"] and get_path(value, ["context"]) is not MISSING:
        return "R10", "$.context"  # what it says is added to what was there
    for shown in (*step.after.shown, *step.before.shown):
        if any(segments[: len(path)] == list(path) for path in shown.walk.paths):
            return "R12", None
    return ("R12", None) if step.decision is None else ("R10", None)


def _at(source: str, rest: Sequence[str]) -> str:
    return source + "".join(f"[{one}]" if one.isdigit() else f".{one}" for one in rest)
