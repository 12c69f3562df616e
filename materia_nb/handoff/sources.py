"""Assignment sources that start with ``$``: what they read from an output and which field they open (R8, R11)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON, MISSING, get_path

_SIMPLE = re.compile(r"\$(?:\.[^.\[\]()*?@'\"\s,|]+)*")
_FIRST_FIELD = re.compile(r"\$(?:\.([^.\[\]()*?@'\"\s,|]+)|\[\s*(?:'([^']+)'|\"([^\"]+)\")\s*\])")


@lru_cache(maxsize=1024)
def reader(source: str) -> Callable[[JSON], JSON]:
    """Return a function that reads ``source`` from a parsed output; it gives MISSING where nothing is there.

    ``$`` and dotted paths such as ``$.a.b.0`` are read directly. Anything else is
    full JSONPath: one match gives the value, several give a list (R11).
    Raises MateriaError (kind ``assignment``) for an expression that is not JSONPath.
    """
    if _SIMPLE.fullmatch(source):
        segments = source.split(".")[1:]
        return lambda value: get_path(value, segments)
    from jsonpath_ng.ext import parse

    try:
        expression = parse(source)
    except Exception as error:  # the library raises several unrelated types, bare Exception among them
        raise MateriaError(
            f"{source!r} is not a JSONPath expression: {error}",
            hint="write $, a dotted path such as $.plan.name, or full JSONPath such as $.items[*].title",
            kind="assignment",
        ) from error

    def read(value: JSON) -> JSON:
        try:
            matches = [match.value for match in expression.find(value)]
        except Exception:  # noqa: BLE001 - filters raise all sorts for values that they were not written for
            return MISSING
        if not matches:
            return MISSING
        return matches[0] if len(matches) == 1 else matches

    return read


def first_field(source: str) -> str | None:
    """Name the top-level field that a ``$`` source opens for agents (R8); ``$`` itself opens none."""
    match = _FIRST_FIELD.match(source)
    if match is None:
        return None
    return match.group(1) or match.group(2) or match.group(3)
