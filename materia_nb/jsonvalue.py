"""JSON values: dotted paths, read-only containers, updates that share unchanged parts, and help with syntax errors."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NoReturn, TypeAlias, TypeGuard

from materia_nb.errors import MateriaError, counted, did_you_mean, join_with_or

JSON: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list, or dict with str keys.

The code of this package never modifies a JSON value in place. An update creates a new value that shares all unchanged
parts with the old value.
"""


class _Missing:
    """The type of :data:`MISSING`."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


_MAX_INDEX_DIGITS: Final = 18
"""Maximum number of digits of a list index; Python refuses to parse integers with thousands of digits."""

_MIN_EXPONENT_NUMBER: Final = 1e21
"""Smallest number that is written with an exponent and therefore without a decimal point."""

MISSING: Final = _Missing()
"""The result of reading a value that does not exist. It differs from null (None)."""


def reject_change(*_: object, **__: object) -> NoReturn:
    """Raise MateriaError for an attempt to modify a read-only value, such as the state of a cast (R47)."""
    raise MateriaError(
        "Values of a cast or a loadout cannot be changed in place.",
        hint="use `cast.edit.set(path, value)` to change the state; use `dict(...)`, `list(...)` or `copy.deepcopy` to create a copy that you can change",
        kind="frozen",
    )


class FrozenDict(dict[Any, JSON]):
    """A read-only dict; copies of it are ordinary dicts that can be modified (R47)."""

    __slots__ = ()

    def __copy__(self) -> dict[Any, JSON]:
        return dict(self)

    def __deepcopy__(self, memo: object) -> JSON:
        return thawed(self)

    def __reduce__(self) -> tuple[type, tuple[dict[Any, JSON]]]:
        return FrozenDict, (dict(self),)


class FrozenList(list[JSON]):
    """A read-only list; copies of it are ordinary lists that can be modified (R47)."""

    __slots__ = ()

    def __copy__(self) -> list[JSON]:
        return list(self)

    def __deepcopy__(self, memo: object) -> JSON:
        return thawed(self)

    def __reduce__(self) -> tuple[type, tuple[list[JSON]]]:
        return FrozenList, (list(self),)


for _kind, _names in (
    (FrozenDict, "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update"),
    (FrozenList, "__setitem__ __delitem__ __iadd__ __imul__ append clear extend insert pop remove reverse sort"),
):
    for _name in _names.split():
        setattr(_kind, _name, reject_change)


def frozen(value: JSON) -> JSON:
    """Return a read-only version of a value; parts that are already read-only are shared and not copied.

    Raises:
        MateriaError: the value is nested too deeply.
    """
    try:
        return value if type(value) in _READ_ONLY else _frozen(value)
    except RecursionError as error:
        raise nested_too_deeply() from error


_READ_ONLY: Final = frozenset({str, int, float, bool, type(None), FrozenDict, FrozenList})


def _frozen(value: JSON) -> JSON:
    if isinstance(value, dict):
        result = FrozenDict(value)
        for key, child in value.items():
            if type(child) not in _READ_ONLY:
                dict.__setitem__(result, key, _frozen(child))
        return result
    if isinstance(value, list):
        return FrozenList([child if type(child) in _READ_ONLY else _frozen(child) for child in value])
    return value


def thawed(value: JSON) -> JSON:
    """Return a copy of a value whose dicts and lists can be modified."""
    if isinstance(value, dict):
        return {key: thawed(child) for key, child in value.items()}
    if isinstance(value, list):
        return [thawed(child) for child in value]
    return value


Object: TypeAlias = dict[str, JSON]


def is_object(value: JSON) -> TypeGuard[Object]:
    """Return True if ``value`` is a JSON object."""
    return isinstance(value, dict)


def without_field(owner: Object, name: str) -> Object:
    """Return a copy of an object without the field ``name``."""
    return {key: value for key, value in owner.items() if key != name}


def as_object(value: JSON) -> Object:
    """Return ``value`` if it is an object, or else an empty object."""
    return value if isinstance(value, dict) else {}


def as_list(value: JSON) -> list[JSON]:
    """Return ``value`` if it is an array, or else an empty array."""
    return value if isinstance(value, list) else []


def is_text(value: JSON) -> TypeGuard[str]:
    """Return True if ``value`` is a string that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def text_or(value: JSON, default: str) -> str:
    """Return ``value`` if it is a string that is not blank, or else ``default``."""
    return value if isinstance(value, str) and value.strip() else default


def is_number(value: JSON) -> TypeGuard[int | float]:
    """Return True if ``value`` is a finite number; booleans are not numbers."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def whole_number(value: JSON) -> int | None:
    """Return ``value`` as an int if it is a whole number, where 3.0 counts as 3, or else None."""
    return int(value) if is_number(value) and value == int(value) else None


def split_path(path: str) -> list[str]:
    """Split a dotted path into its segments, dropping empty segments (R11)."""
    return [segment for segment in path.split(".") if segment]


def get_path(value: JSON, segments: Sequence[str]) -> JSON:
    """Return the value at a path of object keys and list indexes, or MISSING if the path does not exist."""
    for segment in segments:
        if isinstance(value, dict):
            if segment not in value:
                return MISSING
            value = value[segment]
        elif isinstance(value, list):
            if not (segment.isascii() and segment.isdigit()) or len(segment) > _MAX_INDEX_DIGITS:
                return MISSING
            if int(segment) >= len(value):
                return MISSING
            value = value[int(segment)]
        else:
            return MISSING
    return value


def set_path(value: JSON, segments: Sequence[str], new: JSON) -> FrozenDict:
    """Return ``value`` with ``new`` at the path; scalars and lists along the path are replaced by objects (R11)."""
    parents = []
    for segment in segments:
        parents.append(value if isinstance(value, dict) else {})
        value = parents[-1].get(segment)
    result = new
    for parent, segment in zip(reversed(parents), reversed(segments), strict=True):
        result = FrozenDict({**parent, segment: result})
    assert isinstance(result, FrozenDict)  # noqa: S101 - a path has segments
    return result


def remove_path(value: JSON, segments: Sequence[str]) -> JSON:
    """Return ``value`` without the value at the path, or ``value`` itself if the path does not exist."""
    if not segments or not isinstance(value, dict) or segments[0] not in value:
        return value
    if len(segments) == 1:
        return FrozenDict({key: child for key, child in value.items() if key != segments[0]})
    child = remove_path(value[segments[0]], segments[1:])
    return value if child is value[segments[0]] else FrozenDict({**value, segments[0]: child})


def equal_json(a: JSON, b: JSON) -> bool:
    """Return True if two values are equal as JSON, where true is not equal to 1 and false is not equal to 0."""
    if a is b:
        return True
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(child is b[key] or equal_json(child, b[key]) for key, child in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(x is y or equal_json(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def whole_floats_as_integers(value: JSON) -> JSON:
    """Return ``value`` with whole floats below 1e21 converted to integers, as other JSON writers write them (R37)."""
    if isinstance(value, float):
        if not value.is_integer() or abs(value) >= _MIN_EXPONENT_NUMBER:
            return value
        return int(Decimal(repr(value)))  # int(value) alone would add digits
    if isinstance(value, list):
        return [whole_floats_as_integers(child) for child in value]
    if isinstance(value, dict):
        return {key: whole_floats_as_integers(child) for key, child in value.items()}
    return value


def compact(value: JSON) -> str:
    """Return the value as JSON on one line, without spaces and without escaping non-ASCII characters."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def pretty(value: JSON) -> str:
    """Return the value as indented JSON without escaping non-ASCII characters; deeply nested JSON is not indented."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:
        return compact(value)


def finite_number(digits: str) -> float:
    """Parse a number in a JSON document; raise ValueError if the number is too large for a float."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


def reject_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN or Infinity, which Python's JSON parser accepts by default."""
    raise ValueError(f"{name} is not a JSON number")


def json_copy(value: JSON) -> JSON:
    """Return a deep copy of a value, created by converting it to JSON and back.

    Raises:
        MateriaError: the value is not JSON (``not_json``) or is nested too deeply (``invalid_document``).
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except RecursionError as error:
        raise nested_too_deeply() from error
    except (TypeError, ValueError) as error:
        raise MateriaError(
            f"This is not JSON: {error}.", hint="use only strings, numbers, lists and dicts", kind="not_json"
        ) from error


def nested_too_deeply() -> MateriaError:
    """Return the error for a value that has too many levels to be written as JSON."""
    return MateriaError(
        "A value is nested too deeply to be written as JSON.",
        hint="check the value that was assigned to the state",
        kind="invalid_document",
    )


def with_value_at(value: JSON, segments: Sequence[str], new: JSON, *, inserts: bool = False) -> JSON:
    """Return ``value`` with ``new`` at a path, or without the value at the path if ``new`` is MISSING.

    A list index replaces the element or, if ``inserts`` is True, inserts ``new`` before the element. An index equal to
    the length of the list appends ``new``.

    Raises:
        MateriaError: the path leads through a scalar or past the end of a list (``path``).
    """
    name, rest = segments[0], segments[1:]
    if isinstance(value, list):
        return _with_changed_item(value, name, rest, new, inserts=inserts)
    if not isinstance(value, dict):
        raise MateriaError(
            f"{value!r:.80} is neither an object nor a list.", where=name, hint="set the entire value", kind="path"
        )
    if rest:
        if name not in value and new is MISSING:
            raise _missing_path(name, value)
        return {**value, name: with_value_at(value.get(name, {}), rest, new, inserts=inserts)}
    if new is MISSING:
        if name not in value:
            raise _missing_path(name, value)
        return {key: child for key, child in value.items() if key != name}
    return {**value, name: new}


def _with_changed_item(value: list[JSON], name: str, rest: Sequence[str], new: JSON, *, inserts: bool) -> list[JSON]:
    index = int(name) if name.isascii() and name.isdigit() and len(name) < 10 else -1
    can_append = not rest and new is not MISSING
    if not 0 <= index < len(value) + can_append:
        hint = f"the list has {counted(len(value), 'element')}, numbered from 0"
        raise MateriaError(f"The list has no element {name!r}.", hint=hint, kind="path")
    head, tail = value[:index], value[index + 1 :]
    if rest:
        return [*head, with_value_at(value[index], rest, new, inserts=inserts), *tail]
    return [*head, *tail] if new is MISSING else [*head, new, *(value[index:] if inserts else tail)]


def _missing_path(name: str, value: Iterable[str]) -> MateriaError:
    return MateriaError(f"No value exists at {name!r}.", hint=did_you_mean(name, value), kind="path")


def with_patch(value: JSON, patch: Sequence[Mapping[str, JSON]]) -> JSON:
    """Apply a JSON Patch (RFC 6902) with ``add``, ``remove``, ``replace`` and ``move`` operations to a value.

    Raises:
        MateriaError: an operation is unknown, or its path does not exist (``path``).
    """
    for change in patch:
        op, path = change["op"], pointer_keys(change["path"])
        if op not in _OPERATIONS:
            raise MateriaError(
                f"{op!r:.80} is not a patch operation.", hint=f"use {join_with_or(_OPERATIONS)}", kind="path"
            )
        new = MISSING if op in ("remove", "move") else change["value"]
        if op == "move":
            source = pointer_keys(change["from"])
            new, value = get_path(value, source), with_value_at(value, source, MISSING)
        if get_path(value, path if op in ("remove", "replace") else path[:-1]) is MISSING:
            raise _missing_path(change["path"], ())
        value = with_value_at(value, path, new, inserts=op in ("add", "move"))
    return value


_OPERATIONS: Final = ("add", "remove", "replace", "move")
_POINTER: Final = re.compile(r"(?:/(?:[^~/]|~[01])*)+")


def pointer_keys(pointer: JSON) -> list[str]:
    """Return the keys of a JSON Pointer; raise MateriaError (``path``) if the pointer is invalid."""
    if not isinstance(pointer, str) or not _POINTER.fullmatch(pointer):
        raise MateriaError(
            f"{pointer!r:.80} is not a JSON Pointer.", hint="write, for example, /plan/steps/0", kind="path"
        )
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]


_CONSTANTS: Final = {"True": "true", "False": "false", "None": "null", "undefined": "null", "nil": "null"}
_CURLY_QUOTES: Final = "\u201c\u201d\u201e\u2018\u2019"
REMOVE_COMMENT: Final = "remove the comment; JSON has no comments"
_FIRST_WORD: Final = re.compile(r"[A-Za-z_]\w*")


def json_or_none(text: str | bytes) -> JSON:
    """Return the value of a JSON document, or None if ``text`` is not valid JSON or is nested too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def json_advice(text: str) -> str:
    """Return advice for fixing the first JSON syntax error in ``text``, or "" if no advice is known."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        advice = json_error_advice(text, error)
        return f"line {error.lineno}: {advice}" if advice else ""
    except (RecursionError, ValueError):
        pass
    return ""


def json_error_advice(text: str, error: json.JSONDecodeError) -> str:
    """Return advice for fixing an error of the JSON parser, or "" if no advice is known."""
    # Newer Python versions report the position of a trailing comma, older versions the bracket after the comma.
    before, rest = text[: error.pos].rstrip(), text[error.pos :].lstrip()
    word = _FIRST_WORD.match(rest)
    separator = "colon" if "':'" in error.msg else "comma"
    bracket = rest.lstrip(", \t\r\n")[:1]
    cases = (
        ("control character" in error.msg, "write \\n for a line break inside a string"),
        (bracket in ("}", "]") and (rest[0] == "," or before.endswith(",")), f"remove the comma before {bracket}"),
        (rest[:1] == "'", "put strings and names in double quotes, not single quotes"),
        (rest.startswith(tuple(_CURLY_QUOTES)), "write straight double quotes"),
        (rest.startswith(("#", "//", "/*")), REMOVE_COMMENT),
        ("Extra data" in error.msg, "remove the text after the first value, or put all of it into one object or list"),
        (word is not None, _word_advice(word[0]) if word else ""),
        ("Unterminated" in error.msg or not rest, "a closing quote or bracket is missing"),
        ("delimiter" in error.msg, f'a {separator} is missing, or a quote inside a string is not escaped as \\"'),
    )
    return next((advice for applies, advice in cases if applies), "")


def _word_advice(word: str) -> str:
    if word in _CONSTANTS:
        return f"write {_CONSTANTS[word]} instead of {word}"
    return f'put {word[:40]} in double quotes: "{word[:40]}"'
