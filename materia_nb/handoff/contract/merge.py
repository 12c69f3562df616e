"""Merging an update into what is stored: nothing that is not mentioned is lost (agent contract rules, section 10)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Literal, TypeAlias, TypeGuard

from materia_nb.errors import MateriaError
from materia_nb.handoff.jsontext import MAX_DEPTH, too_deep
from materia_nb.jsonvalue import JSON

Kind: TypeAlias = Literal["text", "number", "flag"]


def merge(stored: JSON, update: JSON) -> JSON:
    """Return ``stored`` with ``update`` merged into it; both stay as they were, and parts are shared.

    Objects are merged key by key and keys are never removed. Lists are united. Anything
    else, null included, is replaced by the update.
    Raises MateriaError (kind ``too_deep``) for values nested too deeply to be walked.
    """
    if too_deep(stored) or too_deep(update):
        raise MateriaError(
            f"The values are nested more than {MAX_DEPTH} levels deep.",
            hint="keep an index of facts, no tree of that depth",
            kind="too_deep",
        )
    return _merged(stored, update)


def _merged(stored: JSON, update: JSON) -> JSON:
    if isinstance(stored, dict) and isinstance(update, dict):
        changed = {key: _merged(stored[key], new) if key in stored else new for key, new in update.items()}
        return {**stored, **changed}
    if isinstance(stored, list) and isinstance(update, list):
        return _united(stored, update)
    return update


def _united(stored: list[JSON], update: list[JSON]) -> list[JSON]:
    both = [*stored, *update]
    kinds = {_kind(item) for item in both}
    if len(kinds) == 1 and None not in kinds:
        return sorted(_distinct(both))
    if stored and update and _all_named(both):
        return _by_name(both)
    return _distinct(both)


def _kind(item: JSON) -> Kind | None:
    if isinstance(item, bool):
        return "flag"
    if isinstance(item, (int, float)):
        return "number"
    return "text" if isinstance(item, str) else None


def _all_named(items: Iterable[JSON]) -> TypeGuard[list[dict[str, JSON]]]:
    return all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items)


def _by_name(items: list[dict[str, JSON]]) -> list[JSON]:
    """Merge the items of one name, in the order in which the names first appear."""
    found: dict[str, JSON] = {}
    for item in items:
        name = item["name"]
        found[name] = _merged(found[name], item) if name in found else item
    return list(found.values())


def _distinct(items: list[JSON]) -> list[JSON]:
    """Drop what equals an earlier item as JSON: true is not 1, and the order of keys does not count."""
    seen: dict[Hashable, JSON] = {}
    for item in items:
        seen.setdefault(_identity(item), item)
    return list(seen.values())


def _identity(item: JSON) -> Hashable:
    if isinstance(item, dict):
        return ("object", frozenset((key, _identity(child)) for key, child in item.items()))
    if isinstance(item, list):
        return ("list", tuple(_identity(child) for child in item))
    return (_kind(item), item)
