"""Questions about a cast as JSONPath over what its steps handed on, or over its state.

The expression is a person's, what it runs over came from models: an expression cannot make the kernel hang.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON, MISSING, get_path, split_path

if TYPE_CHECKING:
    from materia_nb.engine.session import StepRecord

LONGEST: Final = 500
"""Characters of an expression."""
MOST_VALUES: Final = 100_000
"""Objects, lists and scalars in a value that is looked through."""
MOST_FOUND: Final = 1_000
"""Values that one question finds; the rest is left out."""

_PATTERNS: Final = re.compile(r"=~|`")
_DEEP: Final = re.compile(r"\.\.")

Query = Callable[[JSON], list[JSON]]


class Found(NamedTuple):
    """A value that a question found: in which step's output, of which socket and item."""

    step: int
    socket: str
    item: str | None
    value: JSON


def query_of(expression: str) -> Query:
    """Return what reads an expression from a value: every match, none where nothing is there.

    Args:
        expression: JSONPath such as ``$.workItems[*].title``, or a dotted path such as ``plan.name``.

    Raises:
        MateriaError: it is no JSONPath, or could take without end (``question``).
    """
    text = expression.strip()
    if not text.startswith("$"):
        segments = split_path(text)
        return lambda value: [] if (found := get_path(value, segments)) is MISSING else [found]
    if len(text) > LONGEST:
        raise _refused(text, f"it is longer than {LONGEST} characters")
    if _PATTERNS.search(text):
        raise _refused(text, "regular expressions and functions in backticks are left out")
    if len(_DEEP.findall(text)) > 1:
        raise _refused(text, "only one .. can stand in it")
    from jsonpath_ng.ext import parse

    try:
        parsed = parse(text)
    except Exception as error:  # the library raises several unrelated types, bare Exception among them
        raise _refused(text, " ".join(str(error).split())) from error

    def find(value: JSON) -> list[JSON]:
        if _count(value) > MOST_VALUES:
            raise _refused(text, f"what it is asked of has more than {MOST_VALUES:,} values")
        try:
            return [match.value for match in parsed.find(value)]
        except Exception:  # noqa: BLE001 - filters raise all sorts for values that they were not written for
            return []

    return find


def ask(steps: Iterable[StepRecord], expression: str) -> list[Found]:
    """Ask the output of every step, parsed where it is JSON and else the text; at most :data:`MOST_FOUND` values."""
    query = query_of(expression)
    found: list[Found] = []
    for step in steps:
        value: JSON = step.output if step.reading is None else step.reading.value
        if value is None or value is MISSING:
            continue
        found += [Found(step.number, step.socket, step.item_key, one) for one in query(value)]
        if len(found) >= MOST_FOUND:
            return found[:MOST_FOUND]
    return found


def _count(value: JSON) -> int:
    """How many values a value holds, counted no further than needed."""
    count = 0
    for _ in _values(value):
        count += 1
        if count > MOST_VALUES:
            break
    return count


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
        f"{expression[:100]!r} cannot be asked: {why}.",
        hint="write a dotted path such as plan.name, or JSONPath such as $.workItems[*].title",
        kind="question",
    )
