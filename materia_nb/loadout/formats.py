"""Parsing the formats of a config into JSON values, and saying where and why a text is none of them."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any, Final, NoReturn

from materia_nb.jsonvalue import JSON

MOST_SLOW: Final = 2_000_000
"""Characters that the parsers for JSON with comments and YAML, which are slow, are given at most."""
MOST_VALUES: Final = 2_000_000
MOST_DEPTH: Final = 500


class ParseError(Exception):
    """A text that is not of its format. ``line`` and ``column`` count from 1; 0 when they are not known."""

    def __init__(self, what: str, hint: str, line: int = 0, column: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.line = line
        self.column = column


def parse_json(text: str) -> JSON:
    """Parse strict JSON: no comments, no NaN, no key twice in one object. Raises ParseError."""
    repeated: list[tuple[dict[str, JSON], str]] = []

    def pairs(found: list[tuple[str, JSON]]) -> dict[str, JSON]:
        made = dict(found)
        if len(made) != len(found):
            twice = Counter(key for key, _ in found).most_common(1)[0][0]
            repeated.append((made, twice))
        return made

    try:
        document = json.loads(text, object_pairs_hook=pairs, parse_float=_finite, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ParseError(
            f"this is not JSON: {_reason(error)}", _advice(text, error), error.lineno, error.colno
        ) from error
    except RecursionError as error:
        raise ParseError("the JSON is nested too deeply", "a config has a few levels only") from error
    except ValueError as error:  # a number with thousands of digits
        raise ParseError(f"this is not JSON that can be kept: {error}", "shorten the number") from error
    if repeated:
        owner, key = repeated[0]
        path = _path_to(document, owner)
        raise ParseError(
            f"the key {key!r} is there twice in {path or 'the config'}",
            "keep one of the two: of equal keys, all but the last would be lost",
            *_second_place(text, key, only=len(repeated) == 1),
        )
    return bounded(document)


def parse_jsonc(text: str) -> JSON:
    """Parse JSON that may have comments, trailing commas and the rest of JSON5. Raises ParseError."""
    try:
        return parse_json(text)
    except ParseError as error:
        strict = error
    if "twice" in strict.what:
        raise strict
    if len(text) > MOST_SLOW:
        raise ParseError(
            strict.what,
            f"JSON with comments is read up to {MOST_SLOW:,} characters",
            strict.line,
            strict.column,
        )
    import json5

    try:
        document = json5.loads(text, allow_duplicate_keys=False)
    except RecursionError as error:
        raise ParseError("the JSON is nested too deeply", "a config has a few levels only") from error
    except ValueError as error:
        raise _json5_error(str(error)) from error
    return bounded(document)


def parse_yaml(text: str) -> JSON:
    """Parse YAML 1.2 (``on`` and ``yes`` are text) that holds JSON values only. Raises ParseError."""
    if len(text) > MOST_SLOW:
        raise ParseError(
            f"the YAML has more than {MOST_SLOW:,} characters", "write so large a config as JSON"
        )
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        document = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        what = str(error.problem or error.context or "it cannot be parsed").splitlines()[0]
        hint = (
            "keep one of the two keys"
            if "duplicate key" in what
            else "check indentation, colons and quotes there"
        )
        if mark is None:
            raise ParseError(f"this is not YAML: {what}", hint) from error
        raise ParseError(f"this is not YAML: {what}", hint, mark.line + 1, mark.column + 1) from error
    except RecursionError as error:
        raise ParseError("the YAML is nested too deeply", "a config has a few levels only") from error
    except (YAMLError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        # the library lets errors of its constructors through, such as that of an impossible date
        what = next(iter(str(error).splitlines()), type(error).__name__)
        raise ParseError(f"this is not YAML: {what}", "put unusual values into quotes") from error
    return bounded(document)


def bounded(document: JSON) -> JSON:
    """Return the document if it is plain JSON of a sane size. Raises ParseError with the path of what is not.

    YAML can say the same node in many places, even inside itself: what counts is the size written out.
    """
    count = 0
    waiting: list[tuple[str, JSON, int]] = [("", document, 0)]
    while waiting:
        path, value, depth = waiting.pop()
        count += 1
        if depth > MOST_DEPTH:
            raise ParseError("the config is nested too deeply", "a config has a few levels only")
        if count > MOST_VALUES:
            raise ParseError(
                f"the config has more than {MOST_VALUES:,} values",
                "a config is much smaller: is it the right text?",
            )
        if isinstance(value, dict):
            for key, child in value.items():
                if not isinstance(key, str):
                    raise ParseError(
                        f"the key {key!r} in {path or 'the config'} is not text",
                        f"put it into quotes: {str(key)!r}",
                    )
                waiting.append((f"{path}.{key}" if path else key, child, depth + 1))
        elif isinstance(value, list):
            waiting.extend((f"{path}[{place}]", child, depth + 1) for place, child in enumerate(value))
        elif isinstance(value, float) and not math.isfinite(value):
            raise ParseError(
                f"{path or 'the config'} is {value}, which JSON does not have", "write a finite number"
            )
        elif value is not None and not isinstance(value, str | bool | int | float):
            raise ParseError(
                f"{path or 'the config'} is a {type(value).__name__}, which JSON does not have",
                f"put it into quotes to make it text: {str(value)!r}",
            )
    return document


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _reason(error: json.JSONDecodeError) -> str:
    return error.msg[:1].lower() + error.msg[1:]


def _advice(text: str, error: json.JSONDecodeError) -> str:
    """Say what is probably wrong at the place of a JSON error."""
    if not text.strip():
        return "the text is empty: write { ... }"
    rest = text[error.pos : error.pos + 2]
    before = text[: error.pos].rstrip()
    if rest in ("//", "/*") or rest[:1] == "#":
        return "JSON has no comments: name the file .jsonc, or remove them"
    if rest[:1] in ("}", "]") and before.endswith(","):
        return "remove the comma before it"
    if rest[:1] == "'":
        return "use double quotes"
    if "delimiter" in error.msg:
        return "a comma or a closing bracket is missing before this place"
    return "look at this place and just before it"


def _json5_error(message: str) -> ParseError:
    place = re.match(r"<string>:(\d+) (.*?)(?: at column (\d+))?$", message, re.DOTALL)
    if place is None:
        twice = re.search(r'Duplicate key "(.*)" found', message)
        if twice:
            return ParseError(
                f"the key {twice.group(1)!r} is there twice in one object",
                "keep one of the two: of equal keys, all but the last would be lost",
            )
        return ParseError(f"this is not JSON: {message}", "look for what is not closed")
    line, what, column = place.groups()
    what = what[:1].lower() + what[1:]
    return ParseError(
        f"this is not JSON: {what}", "look at this place and just before it", int(line), int(column or 1)
    )


def _path_to(document: JSON, wanted: dict[str, Any]) -> str:
    """Return the path of one object of a document, found by identity."""
    waiting: list[tuple[str, JSON]] = [("", document)]
    while waiting:
        path, value = waiting.pop()
        if value is wanted:
            return path
        if isinstance(value, dict):
            waiting.extend((f"{path}.{key}" if path else key, child) for key, child in value.items())
        elif isinstance(value, list):
            waiting.extend((f"{path}[{place}]", child) for place, child in enumerate(value))
    return ""


def _second_place(text: str, key: str, *, only: bool) -> tuple[int, int]:
    """Return line and column of the second of two equal keys, when nothing else in the text looks like it."""
    places = [
        found.start() for found in re.finditer(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", text)
    ]
    if not only or len(places) != 2:
        return 0, 0
    start = places[1]
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
