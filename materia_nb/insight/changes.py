"""Where two JSON values differ, by dotted path."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from materia_nb.jsonvalue import JSON, MISSING, compact, same

MOST_CHANGES: Final = 200
"""How many places are told at most; two values that have nothing in common differ everywhere."""


class Change(NamedTuple):
    """One place where two values differ; MISSING where there is nothing. The path is empty for the whole value."""

    path: str
    a: JSON
    b: JSON


def changes(a: JSON, b: JSON) -> list[Change]:
    """Return where ``b`` differs from ``a``, objects and lists looked into; at most :data:`MOST_CHANGES` places."""
    found: list[Change] = []
    for change in _changes("", a, b):
        if len(found) == MOST_CHANGES:
            break
        found.append(change)
    return found


def _changes(path: str, a: JSON, b: JSON) -> Iterator[Change]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted({*a, *b}):
            yield from _changes(_joined(path, key), a.get(key, MISSING), b.get(key, MISSING))
    elif isinstance(a, list) and isinstance(b, list):
        for place in range(max(len(a), len(b))):
            left = a[place] if place < len(a) else MISSING
            right = b[place] if place < len(b) else MISSING
            yield from _changes(_joined(path, str(place)), left, right)
    elif (a is MISSING) is not (b is MISSING) or not same(a, b):
        yield Change(path, a, b)


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


Where: TypeAlias = Literal["A", "B", "both"]
"""Which of two that are compared has something."""
_Key = TypeVar("_Key", bound=Hashable)


def where(a: Iterable[_Key], b: Iterable[_Key]) -> dict[_Key, Where]:
    """Return which of two has each thing, in the order of the first."""
    left, right = dict.fromkeys(a), dict.fromkeys(b)
    return {
        one: "both" if one in left and one in right else "A" if one in left else "B" for one in left | right
    }


def beside(a: str, b: str, most: int) -> tuple[str, str]:
    """Cut two long texts to about ``most`` characters, so that the place where they first differ is seen in both."""
    alike = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, alike - most // 2) if max(len(a), len(b)) > most else 0
    return _cut(a, start, most), _cut(b, start, most)


def _cut(text: str, start: int, most: int) -> str:
    end = start + most
    return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"


def shown(a: JSON, b: JSON, most: int) -> tuple[str, str]:
    """Write two values that differ on one line each, cut to where they do."""
    return beside(_line(a), _line(b), most)


def _line(value: JSON) -> str:
    if value is MISSING:
        return "(none)"
    return " ".join(value.split()) if isinstance(value, str) else compact(value)
