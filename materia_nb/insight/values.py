"""Differences between values, the history of a value in the state (blame), and JSONPath queries over outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.engine.session import Edit, Session, StepRecord, Streams
from materia_nb.errors import MateriaError, common_prefix_length
from materia_nb.jsonvalue import JSON, MISSING, compact, equal_json, get_path, split_path
from materia_nb.loadout.vocabulary import jsonpath_fault, slow_expression

# Maximum number of differences that are reported, because unrelated values differ in almost every field.
_MAX_CHANGES: Final = 200


class ValueChange(NamedTuple):
    """A difference between two JSON values at a dotted path; MISSING if a value has no element at that path.

    The path is empty if the values themselves differ, for example two numbers.
    """

    path: str
    a: JSON
    b: JSON


def value_changes(a: JSON, b: JSON, cast_ids: tuple[str, str] = ("", "")) -> list[ValueChange]:
    """Return at most :data:`_MAX_CHANGES` differences between two values. The ids of their casts are ignored."""
    changes = islice(_changes("", a, b), _MAX_CHANGES)
    return [change for change in changes if not any(cast_ids) or not is_same_value(change.a, change.b, cast_ids)]


def _changes(path: str, a: JSON, b: JSON) -> Iterator[ValueChange]:
    if a is b:
        return  # states of one cast share unchanged values
    if isinstance(a, dict) and isinstance(b, dict):
        for key in {**a, **b}:
            yield from _changes(_joined(path, key), a.get(key, MISSING), b.get(key, MISSING))
    elif isinstance(a, list) and isinstance(b, list):
        for index, (left, right) in enumerate(zip_longest(a, b, fillvalue=MISSING)):
            yield from _changes(_joined(path, str(index)), left, right)
    elif not equal_json(a, b):
        yield ValueChange(path, a, b)


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def is_same_value(a: JSON, b: JSON, cast_ids: tuple[str, str]) -> bool:
    """Return True if two values are equal when the ids of their casts are ignored."""
    if equal_json(a, b):
        return True
    if isinstance(a, str) and isinstance(b, str):
        return without_id(a, cast_ids[0]) == without_id(b, cast_ids[1])
    if not any(isinstance(a, kind) and isinstance(b, kind) for kind in (dict, list)):
        return False
    return without_id(compact(a), cast_ids[0]) == without_id(compact(b), cast_ids[1])


def without_id(text: str, cast_id: str) -> str:
    """Replace the id of a cast in ``text`` by a placeholder."""
    return text.replace(cast_id, "<cast>") if cast_id else text


def _cut_around(text: str, start: int, max_chars: int) -> str:
    end = start + max_chars
    return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"


def format_difference(a: JSON, b: JSON, max_chars: int) -> tuple[str, str]:
    """Format each of two values on one line, shortened to the part around their first difference."""
    left, right = _one_line(a), _one_line(b)
    is_shortened = max(len(left), len(right)) > max_chars
    start = max(0, common_prefix_length(left, right) - max_chars // 2) if is_shortened else 0
    return _cut_around(left, start, max_chars), _cut_around(right, start, max_chars)


def _one_line(value: JSON) -> str:
    if value is MISSING:
        return "(none)"
    return " ".join(value.split()) if isinstance(value, str) else compact(value)


# -- history of a value ------------------------------------------------------------------------

# The origin of a value in the state: the start of the cast, the state patch or a standard field of an answer (R10), an
# assignment (R11), the current item (R12), the join of lanes (P6), or an edit by a person.
_Rule: TypeAlias = Literal["start", "R10", "R11", "R12", "P6", "edit"]
_Data: TypeAlias = Mapping[str, JSON]


class BlameEntry(NamedTuple):
    """One change to a value in the state, with its origin.

    Attributes:
        step: the number of the step that changed the value. For an edit, the step that was running or had just ended;
            for a join of lanes, the step that distributed the items; 0 for the start of the cast.
        socket: the socket of the step; None for an edit by a person, for the start and for lanes.
        item_key: the key of the step's work item, or None.
        rule: the origin of the value.
        source: the path from which the value was read, such as ``$.context``, or None if it is unknown.
        before: the value before the change, or MISSING if there was no value.
        after: the value after the change.
        corrected: True if a person had corrected the answer.
        item_label: the title of the step's work item, or None.
    """

    step: int
    socket: str | None
    item_key: str | None
    rule: _Rule
    source: str | None
    before: JSON
    after: JSON
    corrected: bool = False
    item_label: str | None = None


def blame_value(session: Session, path: str) -> list[BlameEntry]:
    """Return the changes to a value in the state, latest first; the list is empty if the value was never set.

    Args:
        session: the session of the cast.
        path: the dotted path of the value, such as ``plan.title`` or ``state.workItems.0.title``.
    """
    segments = split_path(path)
    if segments[:1] == ["state"] and (len(segments) > 1 or "state" not in session.state.data):
        segments = segments[1:]
    start = get_path(dict(session.start.data), segments)
    entries = [] if start is MISSING else [BlameEntry(0, None, None, "start", None, MISSING, start)]
    for author, data_before, data_after in _state_changes(session):
        before, after = get_path(dict(data_before), segments), get_path(dict(data_after), segments)
        if equal_json(before, after):
            continue
        if isinstance(author, StepRecord):
            rule, source = _origin(author, segments, after)
            corrected = bool(author.turns) and author.turns[-1].mode == "correction"
            by = author.number, author.socket, author.item_key
            entry = BlameEntry(*by, rule, source, before, after, corrected, author.item_label)
        else:
            rule = "edit" if isinstance(author, Edit) else "P6"
            entry = BlameEntry(author.step, None, None, rule, None, before, after)
        entries.append(entry)
    return entries[::-1]


def _state_changes(session: Session) -> Iterator[tuple[StepRecord | Edit | Streams, _Data, _Data]]:
    """Yield each change to the state in order, with its cause, the state before it and the state after it."""
    yield from _edit_changes([edit for edit in session.edits if edit.step == 0])
    joined = {streams.step: streams for streams in session.streams if streams.status == "joined"}
    for step in session.steps:
        edits = [edit for edit in session.edits if edit.step == step.number]
        waiting_edits = [edit for edit in edits if edit.before.status in ("waiting", "held")]
        later_edits = [edit for edit in edits if edit not in waiting_edits]
        data = step.before.data
        for edit in waiting_edits:
            yield step, data, edit.before.data
            yield edit, edit.before.data, edit.after.data
            data = edit.after.data
        if not waiting_edits or step.after is not waiting_edits[-1].before:
            yield step, data, step.after.data
        if (streams := joined.get(step.number)) is None:
            yield from _edit_changes(later_edits)
        else:
            next_steps = session.steps[step.number :][:1]
            data_after = next_steps[0].before.data if next_steps else session.state.data
            yield from _join_changes(streams, later_edits, step.after.data, data_after)


def _join_changes(
    streams: Streams, edits: Sequence[Edit], data: _Data, data_after: _Data
) -> Iterator[tuple[Edit | Streams, _Data, _Data]]:
    """Yield the changes around a join of lanes: edits before the lanes started, the join, and edits after the join."""
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


def _origin(step: StepRecord, segments: Sequence[str], value: JSON) -> tuple[_Rule, str | None]:
    """Return the rule by which a step set a value (assignment, answer or current item), and its source path."""
    assignments = step.decision.assigned if step.decision else ()
    for assignment in reversed(assignments):
        target = split_path(assignment.target)
        if assignment.found and segments[: len(target)] == target:
            return "R11", _source_path(assignment.source, segments[len(target) :])
        if assignment.found and target[: len(segments)] == segments:
            return "R11", None  # a part of the value was assigned
    answer = step.reading.value if step.reading else None
    for root, path in (("$.state", ["state", *segments]), ("$", segments)):
        if segments and get_path(answer, path) is not MISSING and equal_json(get_path(answer, path), value):
            return "R10", _source_path(root, segments)
    if segments[:1] == ["context"] and get_path(answer, ["context"]) is not MISSING:
        return "R10", "$.context"  # the answer's context is appended to the state's
    for item in (*step.after.shown, *step.before.shown):
        if any(segments[: len(path)] == list(path) for path in item.iteration.paths):
            return "R12", None
    return ("R12", None) if step.decision is None else ("R10", None)


def _source_path(source: str, segments: Sequence[str]) -> str:
    return source + "".join(f"[{name}]" if name.isdigit() else f".{name}" for name in segments)


# -- queries ------------------------------------------------------------------------------------

MAX_EXPRESSION_CHARS: Final = 500
"""Maximum length of a query expression, in characters."""
MAX_VALUES: Final = 100_000
"""Maximum number of nodes (objects, lists and scalars) in a value that a query searches."""
_MAX_MATCHES: Final = 1_000  # Maximum number of matches that a query returns.
_Query = Callable[[JSON], list[JSON]]


class OutputMatch(NamedTuple):
    """A match of a query, with the step, socket, item and lane of the output that contains it."""

    step: int
    socket: str
    item: str | None
    value: JSON
    lane: str = ""


def compile_query(expression: str) -> _Query:
    """Compile an expression to a function that returns all matches in a value.

    Args:
        expression: a JSONPath expression such as ``$.workItems[*].title``, or a dotted path such as ``plan.name``.

    Raises:
        MateriaError: kind ``question``: the expression is not valid JSONPath, or its evaluation could take too long.
    """
    text = expression.strip()
    if not text.startswith("$"):
        segments = split_path(text)
        return lambda value: [] if (match := get_path(value, segments)) is MISSING else [match]
    if len(text) > MAX_EXPRESSION_CHARS:
        raise _query_error(text, f"it is longer than {MAX_EXPRESSION_CHARS} characters")
    if "`" in text:
        raise _query_error(text, "functions in backticks are not supported")
    if (reason := slow_expression(text)) is not None:
        raise _query_error(text, f"it {reason[0]}")
    if (fault := jsonpath_fault(text)) is not None:
        raise _query_error(text, fault)
    from jsonpath_ng.ext import parse

    parsed = parse(text)

    def find(value: JSON) -> list[JSON]:
        if sum(1 for _ in islice(_nested_values(value), MAX_VALUES + 1)) > MAX_VALUES:
            raise _query_error(text, f"the searched output contains more than {MAX_VALUES:,} values")
        try:
            return [match.value for match in parsed.find(value)]
        except Exception:  # noqa: BLE001 - filters raise various errors for values of unexpected types
            return []

    return find


def query_outputs(steps: Iterable[StepRecord], expression: str) -> list[OutputMatch]:
    """Return at most :data:`_MAX_MATCHES` matches in the outputs of steps. JSON outputs are parsed first."""
    query = compile_query(expression)
    matches: list[OutputMatch] = []
    for step in steps:
        output: JSON = step.output if step.reading is None else step.reading.value
        if output is None or output is MISSING:
            continue
        matches += [OutputMatch(step.number, step.socket, step.item_key, value, step.lane) for value in query(output)]
        if len(matches) >= _MAX_MATCHES:
            return matches[:_MAX_MATCHES]
    return matches


def _nested_values(root: JSON) -> Iterator[JSON]:
    stack = [root]
    while stack:
        value = stack.pop()
        yield value
        if isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, list):
            stack += value


def _query_error(expression: str, reason: str) -> MateriaError:
    message = f"{expression[:100]!r} cannot be evaluated: {reason.rstrip('.!')}."
    hint = "write a dotted path such as plan.name, or JSONPath such as $.workItems[*].title"
    return MateriaError(message, hint=hint, kind="question")
