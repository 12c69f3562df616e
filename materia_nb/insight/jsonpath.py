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
"""Maximum length of an expression."""
MAX_VALUES: Final = 100_000
"""Maximum number of objects, lists and scalars in a value that is searched."""
_MAX_MATCHES: Final = 1_000
"""Maximum number of matches of one question."""

_Query = Callable[[JSON], list[JSON]]


class OutputMatch(NamedTuple):
    """A value that a question found, with the step, socket, item and lane of the output."""

    step: int
    socket: str
    item: str | None
    value: JSON
    lane: str = ""


def compile_query(expression: str) -> _Query:
    """Return a function that returns every match of an expression in a value.

    Args:
        expression: JSONPath such as ``$.workItems[*].title``, or a dotted path such as ``plan.name``.

    Raises:
        MateriaError: it is not JSONPath, or a search could take too long (``question``).
    """
    text = expression.strip()
    if not text.startswith("$"):
        segments = split_path(text)
        return lambda value: [] if (match := get_path(value, segments)) is MISSING else [match]
    if len(text) > MAX_EXPRESSION_CHARS:
        raise _refused(text, f"it is longer than {MAX_EXPRESSION_CHARS} characters")
    if "`" in text:
        raise _refused(text, "functions in backticks are left out")
    if (reason := takes_long(text)) is not None:
        raise _refused(text, f"it {reason[0]}")
    if (fault := jsonpath_fault(text)) is not None:
        raise _refused(text, fault)
    from jsonpath_ng.ext import parse

    parsed = parse(text)

    def find(value: JSON) -> list[JSON]:
        if _count(value) > MAX_VALUES:
            raise _refused(text, f"the value to search has more than {MAX_VALUES:,} values")
        try:
            return [match.value for match in parsed.find(value)]
        except Exception:  # noqa: BLE001 - filters raise many errors for values that they were not written for
            return []

    return find


def query_outputs(steps: Iterable[StepRecord], expression: str) -> list[OutputMatch]:
    """Return the matches in the output of every step, parsed if it is JSON; at most :data:`_MAX_MATCHES`."""
    query = compile_query(expression)
    matches: list[OutputMatch] = []
    for step in steps:
        output: JSON = step.output if step.reading is None else step.reading.value
        if output is None or output is MISSING:
            continue
        matches += [
            OutputMatch(step.number, step.socket, step.item_key, value, step.lane) for value in query(output)
        ]
        if len(matches) >= _MAX_MATCHES:
            return matches[:_MAX_MATCHES]
    return matches


def _count(value: JSON) -> int:
    """Count the values in a value, up to the maximum."""
    return sum(1 for _ in islice(_values(value), MAX_VALUES + 1))


def _values(root: JSON) -> Iterator[JSON]:
    stack = [root]
    while stack:
        value = stack.pop()
        yield value
        if isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, list):
            stack += value


def _refused(expression: str, reason: str) -> MateriaError:
    return MateriaError(
        f"{expression[:100]!r} cannot be asked: {reason.rstrip('.!')}.",
        hint="write a dotted path such as plan.name, or JSONPath such as $.workItems[*].title",
        kind="question",
    )
