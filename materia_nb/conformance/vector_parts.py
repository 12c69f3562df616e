"""What the kinds of vectors have in common: generated inputs, and saying what differed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from materia_nb.handoff import Issue, Reading, Requirements
from materia_nb.jsonvalue import JSON, compact, same

ANY_JSON = Requirements("json", False, None, False, True, frozenset(), ())
"""What a socket wants that neither guards its edges nor assigns anything."""


def generated(recipe: Mapping[str, Any]) -> str:
    """Build a long text: "@@" in the template stands for the unit, repeated."""
    return str(recipe["template"]).replace("@@", recipe["unit"] * recipe["times"])


def codes(issues: Iterable[Issue]) -> list[JSON]:
    """Return the codes of issues, or the path of one that has none."""
    return [issue.code or issue.path for issue in issues]


def routing(reading: Reading) -> dict[str, JSON]:
    """Return the part of a reading that routes, as vectors write it."""
    found: dict[str, JSON] = {"satisfied": reading.satisfied, "action": reading.action}
    return found if reading.target is None else {**found, "target": reading.target}


def differences(found: Mapping[str, JSON], expect: Mapping[str, JSON]) -> list[str]:
    """Say what differs from ``expect``; ``errors`` and ``warnings`` in any order, ``parsed`` where it is named."""
    wrong = []
    for name, wanted in expect.items():
        if name not in found:
            wrong.append(f"{name}: there is nothing of that name to compare")
        elif not _equal(name, found[name], wanted):
            wrong.append(f"{name}: expected {compact(wanted)[:2000]}, found {compact(found[name])[:2000]}")
    return wrong


def _equal(name: str, found: JSON, wanted: JSON) -> bool:
    if name in ("errors", "warnings") and isinstance(wanted, list):
        return Counter(found) == Counter(wanted)
    if name == "parsed" and isinstance(wanted, dict) and isinstance(found, dict):
        return all(key in found and same(found[key], value) for key, value in wanted.items())
    return same(found, wanted)
