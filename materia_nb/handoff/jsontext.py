"""Parses strict JSON, and finds the JSON object in an agent's reply or in a utility's output (R5, R6).

The module also formats values for prompts and summaries, on one line or within a length limit.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.jsonvalue import JSON, compact, finite_number, reject_constant

_Where: TypeAlias = Literal["whole", "fence", "prose"]

MAX_DEPTH: Final = 256
"""Maximum nesting depth of objects and arrays, which must not depend on the interpreter's recursion limit."""

_MAX_DIGITS: Final = 4300
"""Maximum number of digits in an integer that :func:`wide_json` accepts."""

_STRING_OR_BRACE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["{}]', re.DOTALL)
"""Matches a complete string, a brace, or the opening quote of an unterminated string."""
_TOO_DEEP_REASON: Final = f"it is nested too deeply (more than {MAX_DEPTH} levels)"


class NotJson(ValueError):
    """Raised if a string is not valid JSON or does not contain a JSON object; the message gives the reason."""


class FoundObject(NamedTuple):
    """A JSON object that was found in a string.

    Attributes:
        value: the object.
        where: the surroundings of the object: ``whole`` if it is the whole text, ``fence`` if it was in a code fence,
            or ``prose`` if it was surrounded by other text.
        duplicates: the keys that occur more than once in an object.
    """

    value: dict[str, JSON]
    where: _Where
    duplicates: tuple[str, ...] = ()


def _parse_integer(text: str) -> int:
    if len(text) > 300:  # an integer above the largest float is refused like 1e400
        finite_number(text)
    return int(text)


def _parse_long_integer(text: str) -> int:
    if len(text.lstrip("-")) > _MAX_DIGITS:
        raise ValueError(f"a number has more than {_MAX_DIGITS} digits")
    return int(text)


def is_too_deep(value: JSON) -> bool:
    """Return True if a value is nested more than :data:`MAX_DEPTH` levels deep. The function is not recursive."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def strict_json(text: str) -> tuple[JSON, tuple[str, ...]]:
    """Parse a string that consists of one strict JSON value.

    Returns:
        The value, and the keys that occur more than once in an object. The last value of a repeated key is used (R5).

    Raises:
        NotJson: the text is not strict JSON; for example, it contains NaN, an infinite number, a comment or a trailing
            comma, or it has more than ``MAX_DEPTH`` levels.
    """
    return _parse(text, finite_number, _parse_integer)


def wide_json(text: str) -> tuple[JSON, tuple[str, ...]]:
    """Parse JSON like :func:`strict_json`, but also accept numbers that are too large for a float.

    For example, ``1e400`` becomes an infinite float, which :func:`without_infinities` replaces with null. An integer
    may have at most :data:`_MAX_DIGITS` digits.
    """
    return _parse(text, float, _parse_long_integer)


def without_infinities(value: JSON) -> JSON:
    """Return ``value`` with each infinite number replaced by null, or ``value`` itself if all numbers are finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        items = [without_infinities(child) for child in value]
        return value if all(map(is_, items, value)) else items
    if isinstance(value, dict):
        fields = {key: without_infinities(child) for key, child in value.items()}
        return value if all(map(is_, fields.values(), value.values())) else fields
    return value


def _parse(
    text: str, parse_float: Callable[[str], float], parse_int: Callable[[str], int]
) -> tuple[JSON, tuple[str, ...]]:
    duplicates: dict[str, None] = {}

    def build_object(items: list[tuple[str, JSON]]) -> dict[str, JSON]:
        fields = dict(items)
        if len(fields) != len(items):
            counts = Counter(key for key, _ in items)
            duplicates.update((key, None) for key, count in counts.items() if count > 1)
        return fields

    decoder = json.JSONDecoder(
        object_pairs_hook=build_object, parse_float=parse_float, parse_int=parse_int, parse_constant=reject_constant
    )
    try:
        value = decoder.decode(text)
    except RecursionError:
        raise NotJson(_TOO_DEEP_REASON) from None
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg} (line {error.lineno}, column {error.colno})") from None
    except ValueError as error:  # a constant, or a number that is too large
        raise NotJson(str(error)) from None
    if len(text) > 2 * MAX_DEPTH and isinstance(value, (dict, list)) and is_too_deep(value):
        raise NotJson(_TOO_DEEP_REASON)
    return value, tuple(duplicates)


def utility_object(text: str) -> FoundObject:
    """Parse the output of a utility, which must be one strict JSON object without any other text (R6)."""
    value, duplicates = strict_json(text)
    if not isinstance(value, dict):
        raise NotJson(f"the output is {_json_type_name(value)}, not an object")
    return FoundObject(value, "whole", duplicates)


def agent_object(text: str) -> FoundObject:
    """Find the JSON object in an agent's reply (R5).

    The object is the whole reply, the content of the first code fence, or the first valid object in the text, in this
    order of preference.
    """
    text = text.lstrip("\ufeff").strip()
    if not text:
        raise NotJson("the reply is empty")
    try:
        value, duplicates = strict_json(text)
    except NotJson as error:
        reason = error
    else:
        if isinstance(value, dict):
            return FoundObject(value, "whole", duplicates)
        raise NotJson(f"the reply is {_json_type_name(value)}, not an object")
    if embedded_object := _in_first_fence(text) or _in_prose(text):
        return embedded_object
    raise NotJson(f"no JSON object was found in the reply: {reason}")


def _in_first_fence(text: str) -> FoundObject | None:
    start = text.find("```")
    if start < 0:
        return None
    line_end = text.find("\n", start)
    close = text.find("```", start + 3)
    if close < 0:
        return None
    tag_end = line_end if 0 <= line_end < close else close
    brace = text.find("{", start, tag_end)
    content = text[tag_end if brace < 0 else brace : close]  # an object may begin on the line of the tag (R35)
    try:
        value, duplicates = strict_json(content.strip())
    except NotJson:
        return None
    return FoundObject(value, "fence", duplicates) if isinstance(value, dict) else None


def _in_prose(text: str) -> FoundObject | None:
    """Return the first top-level object in the text that is valid JSON. The search takes linear time.

    An object inside an invalid object is never returned. Therefore, the search continues after the closing brace of an
    invalid object, and ends if the brace is missing.
    """
    position = text.find("{")
    while position >= 0:
        closing = _closing_brace(text, position)
        if closing is None:
            return None
        try:
            value, duplicates = strict_json(text[position : closing + 1])
        except NotJson:
            position = text.find("{", closing + 1)
        else:
            return FoundObject(value, "prose", duplicates)
    return None


def _closing_brace(text: str, start: int) -> int | None:
    """Return the index of the brace that matches the opening brace at ``start``, or None if the text has no such brace.

    Braces inside strings are ignored.
    """
    depth = 0
    for match in _STRING_OR_BRACE.finditer(text, start):
        character = match.group()
        if character == '"':
            return None
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return match.start()
    return None


def _json_type_name(value: JSON) -> str:
    names = {"NoneType": "null", "bool": "a boolean", "int": "a number", "float": "a number", "str": "a string"}
    return names.get(type(value).__name__, "an array")


NO_REASON: Final = "No reason was given."
"""Default text for a required reason that an answer does not contain."""
_MAX_LISTED_ENTRIES: Final = 20
"""Maximum number of list entries in a summary. The recorded output contains all entries."""


def one_line(text: str) -> str:
    """Replace each run of whitespace in a string, including line breaks, with a single space."""
    return " ".join(text.split())


def as_text(value: JSON) -> str:
    """Return a string unchanged, and serialize any other value as JSON on one line."""
    return value if isinstance(value, str) else compact(value)


def list_line(title: str, entries: Iterable[str]) -> Iterator[str]:
    """Yield a line with the title and all entries that are not blank, or yield nothing if every entry is blank."""
    texts = [one_line(entry) for entry in entries if entry.strip()]
    if texts:
        more = f" and {len(texts) - _MAX_LISTED_ENTRIES} more" if len(texts) > _MAX_LISTED_ENTRIES else ""
        yield f"{title}: {'; '.join(texts[:_MAX_LISTED_ENTRIES])}{more}"


def without_backticks(value: Mapping[str, JSON]) -> str:
    """Serialize an object as JSON, with escaped backticks, so that the JSON cannot open or close a code fence."""
    return compact(value).replace("`", "\\u0060")


def join_within_limit(lines: Sequence[str], limit: int) -> str:
    """Join the first line with each later line that still fits, so that the text has at most ``limit`` characters."""
    text = lines[0]
    for line in filter(None, lines[1:]):
        if len(text) + 1 + len(line) <= limit:
            text = f"{text}\n{line}"
    return text


def fit_list(prefix: str, entries: Sequence[str], limit: int) -> str:
    """Return ``prefix`` followed by as many entries as fit into ``limit`` characters, or "" if no entry fits."""
    for count in range(len(entries), 0, -1):
        more = "." if count == len(entries) else ", …"
        line = f"{prefix}{', '.join(entries[:count])}{more}"
        if len(line) <= limit:
            return line
    return ""
