"""Where utilities and agents work: a scope, and the field of a utility's output that changes it (P8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from materia_nb.handoff.protocol import BASE, Issue, Scope
from materia_nb.jsonvalue import JSON, FrozenDict, compact, frozen

MOST_EXPORTS: Final = 64
LONGEST_EXPORT: Final = 65_536
"""Bytes of one export as JSON, without white space."""
LONGEST_EXPORTS: Final = 262_144
FIELD: Final = "scopeTransition"

_HERE: Final = f"$.{FIELD}"
_AS_WRITTEN: Final = f'{{"{FIELD}": {{"kind": "replace", "scope": {{"id": "...", "cwd": "..."}}}}}}'


def take_scope(value: dict[str, JSON]) -> tuple[dict[str, JSON], Scope | None, tuple[Issue, ...]]:
    """Take the field out of a utility's output: the rest, the scope that follows (None: the same), what is wrong with it."""
    if FIELD not in value:
        return value, None, ()
    rest = {name: child for name, child in value.items() if name != FIELD}
    given = value[FIELD]
    if given == {"kind": "base"}:
        return rest, BASE, ()
    issues = tuple(_issues(given))
    if issues or not isinstance(given, dict) or not isinstance(given["scope"], dict):
        return rest, None, issues
    scope = frozen(given["scope"])
    return rest, Scope(scope["id"], scope["cwd"], scope.get("state"), scope.get("exports", FrozenDict())), ()


def _issues(given: JSON) -> Iterator[Issue]:
    if not isinstance(given, dict) or given.get("kind") not in ("replace", "base"):
        yield Issue(
            _HERE, "A scope transition replaces the scope, or goes back to the base.", f"write {_AS_WRITTEN}"
        )
        return
    scope = given.get("scope")
    for name in given.keys() - ({"kind", "scope"} if given["kind"] == "replace" else {"kind"}):
        yield Issue(f"{_HERE}.{name}", f"A transition of this kind has no {name}.", "leave it out")
    if given["kind"] == "base":
        return
    if not isinstance(scope, dict):
        yield Issue(f"{_HERE}.scope", "The scope must be an object.", f"write {_AS_WRITTEN}")
        return
    for name in ("id", "cwd"):
        text = scope.get(name)
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            yield Issue(f"{_HERE}.scope.{name}", f"The {name} must be text that is not blank.", "give it")
    for name in scope.keys() - {"id", "cwd", "state", "exports"}:
        yield Issue(
            f"{_HERE}.scope.{name}", "A scope has id, cwd, state and exports.", "put it into state or exports"
        )
    yield from _export_issues(scope.get("exports", {}))


def _export_issues(exports: JSON) -> Iterator[Issue]:
    path = f"{_HERE}.scope.exports"
    if not isinstance(exports, dict):
        yield Issue(path, "exports must be an object.", 'write {"name": {"producer": "...", "value": ...}}')
        return
    if len(exports) > MOST_EXPORTS:
        yield Issue(
            path, f"There are {len(exports)} exports, and at most {MOST_EXPORTS} are kept.", "give fewer"
        )
    sizes = 0
    for name, export in exports.items():
        size = len(compact(export).encode(errors="replace"))
        sizes += size
        if not isinstance(export, dict) or export.keys() != {"producer", "value"}:
            yield Issue(f"{path}.{name}", "An export has producer and value.", "write both, and nothing else")
        elif not isinstance(export["producer"], str) or not export["producer"].strip():
            yield Issue(f"{path}.{name}.producer", "The producer must be text that is not blank.", "name it")
        if size > LONGEST_EXPORT:
            yield Issue(
                f"{path}.{name}",
                f"The export has {size:,} bytes, and at most {LONGEST_EXPORT:,} are kept.",
                "write it to a file and export the name of that",
            )
    if sizes > LONGEST_EXPORTS:
        yield Issue(
            path, f"The exports have {sizes:,} bytes, and at most {LONGEST_EXPORTS:,} are kept.", "give less"
        )
