"""Parsing the formats of a config into JSON values, and saying where and why a text is none of them."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NoReturn

from materia_nb.jsonvalue import JSON

MOST_YAML: Final = 150_000
"""Characters of YAML that are read; its parser takes some 20 microseconds for each."""
MOST_JSON5: Final = 50_000
"""Characters that the parser for all of JSON5 is given; comments and trailing commas need no such bound."""
MOST_JSON_VALUES: Final = 2_000_000
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
        place = next((_path(keys) for keys, value in _walk(document) if value is owner), "the config")
        raise ParseError(
            f"the key {key!r} is there twice in {place}",
            "keep one of the two: of equal keys, all but the last would be lost",
            *_second_place(text, key, only=len(repeated) == 1),
        )
    return bounded_json(document)


def parse_jsonc(text: str) -> JSON:
    """Parse JSON that may have comments, trailing commas and the rest of JSON5. Raises ParseError."""
    try:
        return parse_json(blanked(text))
    except ParseError as error:
        strict = error
    if "twice" in strict.what:
        raise strict
    if len(text) > MOST_JSON5:
        raise ParseError(
            strict.what,
            f"of JSON5, a text of more than {MOST_JSON5:,} characters may have comments and trailing commas only",
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
    return _with_whole_characters(text, bounded_json(document))


def parse_yaml(text: str) -> JSON:
    """Parse YAML 1.2 (``on`` and ``yes`` are text) that holds JSON values only. Raises ParseError."""
    if len(text) > MOST_YAML:
        raise ParseError(
            f"the YAML has more than {MOST_YAML:,} characters", "write so large a config as JSON"
        )
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    reader = YAML(typ="safe", pure=True)
    reader.Constructor = _constructor()
    reader.composer.warn_double_anchors = False  # a warning for each, on stderr
    try:
        document = reader.load(text)
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
    return _with_whole_characters(text, bounded_json(document))


@cache
def _constructor() -> type:
    """A constructor that refuses merge keys, which YAML 1.2 does not have and which can double at every line."""
    from ruamel.yaml.constructor import ConstructorError, SafeConstructor

    class Constructor(SafeConstructor):
        def flatten_mapping(self, node: Any) -> None:
            for key, _ in node.value:
                if key.tag == "tag:yaml.org,2002:merge":
                    raise ConstructorError(
                        problem="YAML 1.2 has no merge key (<<): write the fields out",
                        problem_mark=key.start_mark,
                    )

    return Constructor


def bounded_json(document: JSON) -> JSON:
    """Return the document if it is plain JSON of a sane size. Raises ParseError with the path of what is not.

    YAML can say the same node in many places, even inside itself: what counts is the size written out.
    """
    for count, (keys, value) in enumerate(_walk(document)):
        if len(keys) > MOST_DEPTH:
            raise ParseError("the config is nested too deeply", "a config has a few levels only")
        if count >= MOST_JSON_VALUES:
            what = f"the config has more than {MOST_JSON_VALUES:,} values"
            raise ParseError(what, "a config is much smaller: is it the right text?")
        if isinstance(value, dict):
            wrong = next((key for key in value if not isinstance(key, str)), None)
            if wrong is not None:
                raise ParseError(
                    f"the key {wrong!r} in {_path(keys)} is not text", f"put it into quotes: {str(wrong)!r}"
                )
        elif isinstance(value, float) and not math.isfinite(value):
            raise ParseError(f"{_path(keys)} is {value}, which JSON does not have", "write a finite number")
        elif value is not None and not isinstance(value, list | str | bool | int | float):
            what = f"{_path(keys)} is a {type(value).__name__}, which JSON does not have"
            raise ParseError(what, f"put it into quotes to make it text: {str(value)!r}")
    return document


def _walk(document: JSON) -> Iterator[tuple[list[Any], JSON]]:
    """Yield every value with the keys that lead to it, in order; the list of keys is the same one each time."""
    keys: list[Any] = []
    levels: list[Iterator[tuple[Any, JSON]]] = []
    value = document
    while True:
        yield keys, value
        if isinstance(value, dict | list):
            levels.append(iter(value.items() if isinstance(value, dict) else enumerate(value)))
            keys.append(None)
        while levels:
            found = next(levels[-1], None)
            if found is not None:
                keys[-1], value = found
                break
            levels.pop()
            keys.pop()
        else:
            return


def _path(keys: list[Any]) -> str:
    """Write the way to a value, such as ``loadouts.T.sockets[0]``; made for an error only, since it may be long."""
    steps = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return "".join(steps).removeprefix(".") or "the config"


_COMMENT: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|//[^\n\r]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMA: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|,(?=\s*[}\]])', re.DOTALL)


def blanked(text: str) -> str:
    """Put spaces in place of comments and trailing commas, so that every place in the text stays where it is."""
    text = _COMMENT.sub(lambda found: _blank(found[0], "/"), text)
    return _LAST_COMMA.sub(lambda found: _blank(found[0], ","), text)


def _blank(found: str, first: str) -> str:
    return re.sub(r"[^\n\r]", " ", found) if found.startswith(first) else found


def _with_whole_characters(text: str, document: JSON) -> JSON:
    """Join the halves of characters that the text escapes one by one, as JSON does."""
    return _joined(document) if re.search(r"\\u", text, re.IGNORECASE) else document


def _joined(value: JSON) -> JSON:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    if isinstance(value, dict):
        return {_joined(key): _joined(one) for key, one in value.items()}
    return [_joined(one) for one in value] if isinstance(value, list) else value


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


def _second_place(text: str, key: str, *, only: bool) -> tuple[int, int]:
    """Return line and column of the second of two equal keys, when nothing else in the text looks like it."""
    places = [
        found.start() for found in re.finditer(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", text)
    ]
    if not only or len(places) != 2:
        return 0, 0
    start = places[1]
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
