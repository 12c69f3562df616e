"""Dotted paths into a JSON value, for people: which there are, what changed, and setting one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.jsonvalue import JSON, MISSING, same

MOST_PATHS = 500


class Difference(NamedTuple):
    """One place that differs; a value that is not there is MISSING."""

    path: str
    what: str
    before: JSON
    after: JSON


def paths_in(value: JSON, most: int = MOST_PATHS) -> list[str]:
    """List the paths in ``value``, outer ones first; a key with a dot in it has none."""
    found: list[str] = []
    level: list[tuple[str, JSON]] = [("", value)]
    while level and len(found) < most:
        below: list[tuple[str, JSON]] = []
        for path, one in level:
            below += [(_joined(path, key), child) for key, child in _children(one) if key and "." not in key]
        found += [path for path, _ in below]
        level = below
    return found[:most]


def differences(before: JSON, after: JSON, path: str = "") -> Iterator[Difference]:
    """Find what was added, changed or removed."""
    if type(before) is type(after) and isinstance(before, dict | list):
        old, new = dict(_children(before)), dict(_children(after))
        for key in [*old, *(key for key in new if key not in old)]:
            here = _joined(path, key)
            if key not in new:
                yield Difference(here, "removed", old[key], MISSING)
            elif key not in old:
                yield Difference(here, "added", MISSING, new[key])
            elif old[key] is not new[key]:
                yield from differences(old[key], new[key], here)
    elif not same(before, after):
        yield Difference(path, "changed", before, after)


def replaced(value: JSON, segments: list[str], new: JSON) -> JSON:
    """Return ``value`` with ``new`` at a path, or without it when ``new`` is MISSING.

    Lists stay lists: a number within them replaces an element, the one behind the last adds one.

    Raises:
        MateriaError: the path leads through something that has no parts, or past the end of a list (``path``).
    """
    name, rest = segments[0], segments[1:]
    if isinstance(value, list):
        return _in_list(value, name, rest, new)
    if not isinstance(value, dict):
        raise MateriaError(
            f"There is nothing inside {value!r:.80}.", where=name, hint="set the whole value", kind="path"
        )
    if rest:
        if name not in value and new is MISSING:
            raise _nothing_at(name, value)
        return {**value, name: replaced(value.get(name, {}), rest, new)}
    if new is MISSING:
        if name not in value:
            raise _nothing_at(name, value)
        return {key: child for key, child in value.items() if key != name}
    return {**value, name: new}


def _in_list(value: list[JSON], name: str, rest: list[str], new: JSON) -> list[JSON]:
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
        return [*head, replaced(value[place], rest, new), *tail]
    return [*head, *tail] if new is MISSING else [*head, new, *tail]


def _nothing_at(name: str, value: Mapping[str, JSON]) -> MateriaError:
    return MateriaError(f"There is nothing at {name!r}.", hint=did_you_mean(name, value), kind="path")


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _children(value: JSON) -> Iterator[tuple[str, JSON]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(place), child) for place, child in enumerate(value))
