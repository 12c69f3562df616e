"""Finding the current item of a socket and showing it in the state (R12, R13)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from materia_nb.engine.state import Item, View
from materia_nb.engine.values import source
from materia_nb.jsonvalue import JSON, compact, remove_path, set_path, split_path
from materia_nb.loadout.graph import Iterator


def list_at(text: str, state: View, item: Item | None = None) -> list[JSON]:
    """Read a list; anything that is missing or not a list is an empty one (R12)."""
    value = source(text)(state, item, state.last_json)
    return value if isinstance(value, list) else []


def find_item(iterator: Iterator, state: View) -> Item | None:
    """Return the item at the iterator's cursor, or None when the list has none there."""
    items = list_at(iterator.items, state, state.at.item if state.at else None)
    index = state.cursors.get(iterator.cursor, 0)
    if index >= len(items):
        return None
    value = items[index]
    key = f"WI-{index + 1}" if iterator.numbered_as_work_items else str(index)
    return Item(value, key, item_label(value, key), index, iterator.cursor, iterator.loop)


def item_label(value: JSON, key: str) -> str:
    """Name an item for people: its title, else its name, else its key (R13)."""
    if isinstance(value, dict):
        for field in ("title", "name"):
            given = value.get(field)
            if given is not None:
                return given if isinstance(given, str) else compact(given)
    return key


def without_aliases(state: View) -> Mapping[str, JSON]:
    """Return the state's data without what showed the previous item."""
    data = state.data
    if not state.aliases:
        return data
    trimmed = dict(data)
    for path in state.aliases:
        if len(path) == 1:
            trimmed.pop(path[0], None)
        else:
            trimmed = remove_path(trimmed, list(path))
    return trimmed


def with_aliases(
    data: Mapping[str, JSON], iterator: Iterator, item: Item
) -> tuple[Mapping[str, JSON], tuple[tuple[str, ...], ...]]:
    """Show ``item`` in the data under its names; returns the data and the paths that were set."""
    paths = _alias_paths(iterator)
    shown = dict(data)
    for path in paths:
        if len(path) == 1:
            shown[path[0]] = item.value
        else:
            shown = set_path(shown, list(path), item.value)
    return shown, paths


@lru_cache(maxsize=1024)
def _alias_paths(iterator: Iterator) -> tuple[tuple[str, ...], ...]:
    names = ["item", "currentWorkItem", iterator.alias]
    if iterator.numbered_as_work_items:
        names.append("workItem")
    paths = [tuple(split_path(name)) for name in names]
    return tuple(dict.fromkeys(path for path in paths if path))
