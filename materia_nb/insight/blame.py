"""The history of a value of the state: which step, edit or lane changed it, by which rule, and from what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from materia_nb.engine.session import Edit, Session, StepRecord, Streams
from materia_nb.jsonvalue import JSON, MISSING, get_path, same, split_path

_Rule: TypeAlias = Literal["start", "R10", "R11", "R12", "P6", "edit"]
"""The origin of a value: the start, the state patch or a canonical field of an answer (R10), an assignment (R11), the
current item as the state shows it (R12), lanes that were joined (P6), or a person's edit."""
_Data: TypeAlias = Mapping[str, JSON]


class BlameEntry(NamedTuple):
    """One change of a value.

    Attributes:
        step: the step that made it; for an edit the one after or during which it was made; 0 for the start; for lanes
            the one that handed out their items.
        socket: the socket of the step, None for a person's edit, for the start and for lanes.
        item_key: the item of the step.
        rule: the origin of the value.
        source: its path in the answer, such as ``$.context``, or the source of the assignment; None if that is not known.
        before: the value before, MISSING if there was none.
        after: the value after.
        corrected: True if a person had corrected the answer.
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
    """Return the changes of a value of the state, the latest first; empty if nothing ever set it.

    Args:
        session: the cast.
        path: dotted, such as ``plan.title`` or ``state.workItems.0.title``.
    """
    segments = split_path(path)
    if segments[:1] == ["state"] and (len(segments) > 1 or "state" not in session.state.data):
        segments = segments[1:]
    start = get_path(dict(session.start.data), segments)
    entries = [] if start is MISSING else [BlameEntry(0, None, None, "start", None, MISSING, start)]
    for author, data_before, data_after in _changes(session):
        before, after = get_path(dict(data_before), segments), get_path(dict(data_after), segments)
        if same(before, after):
            continue
        if isinstance(author, Streams):
            entries.append(BlameEntry(author.step, None, None, "P6", None, before, after))
        elif isinstance(author, Edit):
            entries.append(BlameEntry(author.step, None, None, "edit", None, before, after))
        else:
            entries.append(_entry_of_step(author, segments, before, after))
    return entries[::-1]


def _changes(session: Session) -> Iterator[tuple[StepRecord | Edit | Streams, _Data, _Data]]:
    """Yield every change of the state in order: its author, and the state before and after."""
    yield from _edit_changes([edit for edit in session.edits if edit.step == 0])
    joined = {streams.step: streams for streams in session.streams if streams.status == "joined"}
    for step in session.steps:
        edits = [edit for edit in session.edits if edit.step == step.number]
        during = [edit for edit in edits if edit.before.status in ("waiting", "held")]
        later = [edit for edit in edits if edit not in during]
        data = step.before.data
        for edit in during:
            yield step, data, edit.before.data
            yield edit, edit.before.data, edit.after.data
            data = edit.after.data
        if not during or step.after is not during[-1].before:
            yield step, data, step.after.data
        if (streams := joined.get(step.number)) is None:
            yield from _edit_changes(later)
        else:
            following = session.steps[step.number :][:1]
            data_after = following[0].before.data if following else session.state.data
            yield from _join_changes(streams, later, step.after.data, data_after)


def _join_changes(
    streams: Streams, edits: Sequence[Edit], data: _Data, data_after: _Data
) -> Iterator[tuple[Edit | Streams, _Data, _Data]]:
    """Yield the edits before the lanes started, the change that joining them made, and the edits after it."""
    for index, edit in enumerate(edits):
        if edit.before.data != data:
            yield streams, data, edit.before.data
            yield from _edit_changes(edits[index:])
            return
        yield from _edit_changes([edit])
        data = edit.after.data
    yield streams, data, data_after


def _edit_changes(edits: Sequence[Edit]) -> Iterator[tuple[Edit, _Data, _Data]]:
    for edit in edits:
        yield edit, edit.before.data, edit.after.data


def _entry_of_step(step: StepRecord, segments: Sequence[str], before: JSON, after: JSON) -> BlameEntry:
    rule, source = _origin(step, segments, after)
    corrected = bool(step.turns) and step.turns[-1].mode == "correction"
    return BlameEntry(step.number, step.socket, step.item_key, rule, source, before, after, corrected)


def _origin(step: StepRecord, segments: Sequence[str], value: JSON) -> tuple[_Rule, str | None]:
    """Return the rule and the source by which a step set a value: its last assignment, else its answer, else its item."""
    assignments = step.decision.assigned if step.decision else ()
    for assignment in reversed(assignments):
        target = split_path(assignment.target)
        if assignment.found and segments[: len(target)] == target:
            return "R11", _source_path(assignment.source, segments[len(target) :])
        if assignment.found and target[: len(segments)] == segments:
            return "R11", None  # a part of the value was assigned
    answer = step.reading.value if step.reading else None
    for root, path in (("$.state", ["state", *segments]), ("$", segments)):
        if segments and get_path(answer, path) is not MISSING and same(get_path(answer, path), value):
            return "R10", _source_path(root, segments)
    if segments[:1] == ["context"] and get_path(answer, ["context"]) is not MISSING:
        return "R10", "$.context"  # the answer's context is appended to the state's
    for shown in (*step.after.shown, *step.before.shown):
        if any(segments[: len(path)] == list(path) for path in shown.walk.paths):
            return "R12", None
    return ("R12", None) if step.decision is None else ("R10", None)


def _source_path(source: str, segments: Sequence[str]) -> str:
    return source + "".join(f"[{name}]" if name.isdigit() else f".{name}" for name in segments)
