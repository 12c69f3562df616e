"""JSONPath and dotted paths over the outputs of a cast.

A person writes the expression, but models wrote the values, so no expression may make the kernel hang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from materia_nb.engine.session import StepRecord
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON, MISSING, get_path, split_path
from materia_nb.loadout.vocabulary import jsonpath_fault, takes_long

MAX_EXPRESSION_CHARS: Final = 500
"""Characters of an expression."""
MAX_VALUES: Final = 100_000
"""Objects, lists and scalars in a value that is looked through."""
_MOST_FOUND: Final = 1_000
"""Values that one question finds; the rest is left out."""

_Query = Callable[[JSON], list[JSON]]


class OutputMatch(NamedTuple):
    """A value that a question found: in which step's output, of which socket, item and lane."""

    step: int
    socket: str
    item: str | None
    value: JSON
    lane: str = ""


def compile_query(expression: str) -> _Query:
    """Return what reads an expression from a value: every match, none where nothing is there.

    Args:
        expression: JSONPath such as ``$.workItems[*].title``, or a dotted path such as ``plan.name``.

    Raises:
        MateriaError: it is not JSONPath, or could take without end (``question``).
    """
    text = expression.strip()
    if not text.startswith("$"):
        segments = split_path(text)
        return lambda value: [] if (found := get_path(value, segments)) is MISSING else [found]
    if len(text) > MAX_EXPRESSION_CHARS:
        raise _refused(text, f"it is longer than {MAX_EXPRESSION_CHARS} characters")
    if "`" in text:
        raise _refused(text, "functions in backticks are left out")
    if (why := takes_long(text)) is not None:
        raise _refused(text, f"it {why[0]}")
    if (fault := jsonpath_fault(text)) is not None:
        raise _refused(text, fault)
    from jsonpath_ng.ext import parse

    parsed = parse(text)

    def find(value: JSON) -> list[JSON]:
        if _count(value) > MAX_VALUES:
            raise _refused(text, f"what it is asked of has more than {MAX_VALUES:,} values")
        try:
            return [match.value for match in parsed.find(value)]
        except Exception:  # noqa: BLE001 - filters raise all sorts for values that they were not written for
            return []

    return find


def query_outputs(steps: Iterable[StepRecord], expression: str) -> list[OutputMatch]:
    """Ask the output of every step, parsed where it is JSON and else the text; at most :data:`_MOST_FOUND` values."""
    query = compile_query(expression)
    found: list[OutputMatch] = []
    for step in steps:
        value: JSON = step.output if step.reading is None else step.reading.value
        if value is None or value is MISSING:
            continue
        found += [
            OutputMatch(step.number, step.socket, step.item_key, one, step.lane) for one in query(value)
        ]
        if len(found) >= _MOST_FOUND:
            return found[:_MOST_FOUND]
    return found


def _count(value: JSON) -> int:
    """How many values a value holds, counted no further than needed."""
    return sum(1 for _ in islice(_values(value), MAX_VALUES + 1))


def _values(root: JSON) -> Iterator[JSON]:
    todo = [root]
    while todo:
        value = todo.pop()
        yield value
        if isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, list):
            todo += value


def _refused(expression: str, why: str) -> MateriaError:
    return MateriaError(
        f"{expression[:100]!r} cannot be asked: {why.rstrip('.!')}.",
        hint="write a dotted path such as plan.name, or JSONPath such as $.workItems[*].title",
        kind="question",
    )
