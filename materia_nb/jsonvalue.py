"""JSON values: their type, dotted paths into them, and changes that copy only what they change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NoReturn, TypeAlias

from materia_nb.errors import MateriaError, did_you_mean, one_of_words

JSON: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict with str keys.

Values are never changed in place anywhere in this package; a change makes a new
value that shares every untouched part with the old one.
"""


class _Missing:
    """The type of :data:`MISSING`."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


_INDEX_DIGITS: Final = 18
"""No list is longer; Python refuses to read numbers of several thousand digits."""

_POINTLESS: Final = 1e21
"""From here on numbers are written with an exponent, which says itself that there is no fraction."""

MISSING: Final = _Missing()
"""Stands for "there is no value here", which null (None) is not."""


def refuse_change(*_: object, **__: object) -> NoReturn:
    """Refuse to change what is given out (R47)."""
    raise MateriaError(
        "What a cast or a loadout gives out cannot be changed in place.",
        hint="cast.edit.set(path, value) changes the state; dict(...), list(...) or copy.deepcopy make a copy of your own",
        kind="frozen",
    )


class FrozenDict(dict[Any, JSON]):
    """An object that can only be read, else a dict like any other; a copy of it can be changed (R47)."""

    __slots__ = ()

    def __copy__(self) -> dict[Any, JSON]:
        return dict(self)

    def __deepcopy__(self, memo: object) -> JSON:
        return thawed(self)

    def __reduce__(self) -> tuple[type, tuple[dict[Any, JSON]]]:
        return FrozenDict, (dict(self),)


class FrozenList(list[JSON]):
    """A list that can only be read, else a list like any other; a copy of it can be changed (R47)."""

    __slots__ = ()

    def __copy__(self) -> list[JSON]:
        return list(self)

    def __deepcopy__(self, memo: object) -> JSON:
        return thawed(self)

    def __reduce__(self) -> tuple[type, tuple[list[JSON]]]:
        return FrozenList, (list(self),)


for _kind, _names in (
    (FrozenDict, "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update"),
    (
        FrozenList,
        "__setitem__ __delitem__ __iadd__ __imul__ append clear extend insert pop remove reverse sort",
    ),
):
    for _name in _names.split():
        setattr(_kind, _name, refuse_change)


def frozen(value: JSON) -> JSON:
    """Return a value whose objects and lists can only be read; what is so already is shared, not copied.

    Raises:
        MateriaError: it is nested too deeply to be written.
    """
    try:
        return value if type(value) in _READ_ONLY else _frozen(value)
    except RecursionError as error:
        raise too_deep_to_write() from error


_READ_ONLY: Final = frozenset({str, int, float, bool, type(None), FrozenDict, FrozenList})


def _frozen(value: JSON) -> JSON:
    if isinstance(value, dict):
        made = FrozenDict(value)
        for key, one in value.items():
            if type(one) not in _READ_ONLY:
                dict.__setitem__(made, key, _frozen(one))
        return made
    if isinstance(value, list):
        return FrozenList([one if type(one) in _READ_ONLY else _frozen(one) for one in value])
    return value


def thawed(value: JSON) -> JSON:
    """Return a copy of a value that can be changed."""
    if isinstance(value, dict):
        return {key: thawed(child) for key, child in value.items()}
    if isinstance(value, list):
        return [thawed(child) for child in value]
    return value


def split_path(path: str) -> list[str]:
    """Split a dotted path into its segments; empty segments are dropped (R11)."""
    return [segment for segment in path.split(".") if segment]


def get_path(value: JSON, segments: Sequence[str]) -> JSON:
    """Follow segments through objects by key and arrays by index; MISSING when one is not there."""
    for segment in segments:
        if isinstance(value, dict):
            if segment not in value:
                return MISSING
            value = value[segment]
        elif isinstance(value, list):
            if not (segment.isascii() and segment.isdigit()) or len(segment) > _INDEX_DIGITS:
                return MISSING
            if int(segment) >= len(value):
                return MISSING
            value = value[int(segment)]
        else:
            return MISSING
    return value


def set_path(value: JSON, segments: Sequence[str], new: JSON) -> FrozenDict:
    """Return ``value`` with ``new`` at the path; scalars and lists on the way become objects (R11)."""
    parents = []
    for segment in segments:
        parents.append(value if isinstance(value, dict) else {})
        value = parents[-1].get(segment)
    made = new
    for parent, segment in zip(reversed(parents), reversed(segments), strict=True):
        made = FrozenDict({**parent, segment: made})
    assert isinstance(made, FrozenDict)  # noqa: S101 - a path has segments
    return made


def remove_path(value: JSON, segments: Sequence[str]) -> JSON:
    """Return ``value`` without what the path names; unchanged when there is nothing there."""
    if not segments or not isinstance(value, dict) or segments[0] not in value:
        return value
    if len(segments) == 1:
        return FrozenDict({key: child for key, child in value.items() if key != segments[0]})
    child = remove_path(value[segments[0]], segments[1:])
    return value if child is value[segments[0]] else FrozenDict({**value, segments[0]: child})


def same(a: JSON, b: JSON) -> bool:
    """Compare as JSON: like ``==``, except that true is not 1 and false is not 0."""
    if a is b:
        return True
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(
            child is b[key] or same(child, b[key]) for key, child in a.items()
        )
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(x is y or same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def without_points(value: JSON) -> JSON:
    """Return ``value`` with whole floats as whole numbers, below 1e21 as other JSON writers do (R37)."""
    if isinstance(value, float):
        if not value.is_integer() or abs(value) >= _POINTLESS:
            return value
        return int(Decimal(repr(value)))  # as it is named: int alone gives digits that nobody wrote
    if isinstance(value, list):
        return [without_points(child) for child in value]
    if isinstance(value, dict):
        return {key: without_points(child) for key, child in value.items()}
    return value


def compact(value: JSON) -> str:
    """Write JSON on one line without spaces, keeping non-ASCII text readable."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def pretty(value: JSON) -> str:
    """Write JSON with an indent of two, keeping non-ASCII text readable; what is nested too deeply, on one line."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:
        return compact(value)


def json_copy(value: JSON) -> JSON:
    """Return a value as it would be read from JSON.

    Raises:
        MateriaError: it is not JSON (``not_json``), or nested too deeply.
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except RecursionError as error:
        raise too_deep_to_write() from error
    except (TypeError, ValueError) as error:
        raise MateriaError(
            f"This is not JSON: {error}.", hint="use text, numbers, lists and dicts", kind="not_json"
        ) from error


def too_deep_to_write() -> MateriaError:
    """Return the error for a value that has too many levels to be written."""
    return MateriaError(
        "A value is nested too deeply to be written as JSON.",
        hint="look at what was assigned to the state",
        kind="invalid_document",
    )


def replaced(value: JSON, segments: Sequence[str], new: JSON, *, inserts: bool = False) -> JSON:
    """Return ``value`` with ``new`` at a path, or without it when ``new`` is MISSING.

    Lists stay lists: a number within them replaces an element, or with ``inserts`` puts ``new`` before it; the one behind
    the last adds one.

    Raises:
        MateriaError: the path leads through something that has no parts, or past the end of a list (``path``).
    """
    name, rest = segments[0], segments[1:]
    if isinstance(value, list):
        return _in_list(value, name, rest, new, inserts=inserts)
    if not isinstance(value, dict):
        raise MateriaError(
            f"There is nothing inside {value!r:.80}.", where=name, hint="set the whole value", kind="path"
        )
    if rest:
        if name not in value and new is MISSING:
            raise _nothing_at(name, value)
        return {**value, name: replaced(value.get(name, {}), rest, new, inserts=inserts)}
    if new is MISSING:
        if name not in value:
            raise _nothing_at(name, value)
        return {key: child for key, child in value.items() if key != name}
    return {**value, name: new}


def _in_list(value: list[JSON], name: str, rest: Sequence[str], new: JSON, *, inserts: bool) -> list[JSON]:
    place = int(name) if name.isascii() and name.isdigit() and len(name) < 10 else -1
    adds = not rest and new is not MISSING
    if not 0 <= place < len(value) + adds:
        raise MateriaError(
            f"The list has no element {name!r}.",
            hint=f"its elements are numbered from 0; there are {len(value)}",
            kind="path",
        )
    head, tail = value[:place], value[place + 1 :]
    if rest:
        return [*head, replaced(value[place], rest, new, inserts=inserts), *tail]
    return [*head, *tail] if new is MISSING else [*head, new, *(value[place:] if inserts else tail)]


def _nothing_at(name: str, value: Iterable[str]) -> MateriaError:
    return MateriaError(f"There is nothing at {name!r}.", hint=did_you_mean(name, value), kind="path")


def with_patch(value: JSON, patch: Sequence[Mapping[str, JSON]]) -> JSON:
    """Return what a JSON Patch (RFC 6902) makes of ``value``: it may ``add``, ``remove``, ``replace`` and ``move``.

    Raises:
        MateriaError: a change does not fit, or is none of these (``path``).
    """
    for change in patch:
        op, path = change["op"], pointer_keys(change["path"])
        if op not in _CHANGES:
            raise MateriaError(
                f"{op!r:.80} is not a change of a value.", hint=one_of_words(_CHANGES), kind="path"
            )
        new = MISSING if op in ("remove", "move") else change["value"]
        if op == "move":
            source = pointer_keys(change["from"])
            new, value = get_path(value, source), replaced(value, source, MISSING)
        if get_path(value, path if op in ("remove", "replace") else path[:-1]) is MISSING:
            raise _nothing_at(change["path"], ())
        value = replaced(value, path, new, inserts=op in ("add", "move"))
    return value


_CHANGES: Final = ("add", "remove", "replace", "move")
_POINTER: Final = re.compile(r"(?:/(?:[^~/]|~[01])*)+")


def pointer_keys(pointer: JSON) -> list[str]:
    """Return the keys of a JSON Pointer, or raise MateriaError (``path``) if it is not one."""
    if not isinstance(pointer, str) or not _POINTER.fullmatch(pointer):
        raise MateriaError(f"{pointer!r:.80} is not a JSON Pointer.", hint="as in /plan/steps/0", kind="path")
    return [one.replace("~1", "/").replace("~0", "~") for one in pointer.split("/")[1:]]
