"""Dotted paths into a JSON value, for people: which there are, and what changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _children(value: JSON) -> Iterator[tuple[str, JSON]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(place), child) for place, child in enumerate(value))
