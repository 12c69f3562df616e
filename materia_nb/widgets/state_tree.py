"""The content of the panels about the state: an editable tree, differences, watched paths, and work items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from materia_nb.display.blocks import Block, Heading, JsonTree, Line, Table
from materia_nb.display.escape import part, shorten
from materia_nb.engine.item_edits import IN_PROGRESS, ListEdit, edit_lists, origins_of
from materia_nb.engine.items import ItemStatus
from materia_nb.engine.routing import edge_uses, limits_of
from materia_nb.errors import MateriaError, plain
from materia_nb.handoff.jsontext import as_text
from materia_nb.jsonvalue import JSON, MISSING, compact, equal_json, frozen, get_path, split_path
from materia_nb.loadout.vocabulary import WORK_ITEMS

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.session import StepRecord
    from materia_nb.widgets.frontend import ItemRow


_MAX_CHILDREN: Final = 300
_MAX_TEXT_CHARS: Final = 1_000
_MAX_DEPTH: Final = 12
_MAX_NODES: Final = 4_000


def aliases(state: _CastData) -> dict[str, list[str]]:
    """Find the state values that have several names: return the other names of each value by its first name."""
    aliases_by_name: dict[str, list[str]] = {}
    for name in (name for name, value in state.items() if isinstance(value, dict) and value):
        first = next((name_ for name_ in aliases_by_name if equal_json(state[name_], state[name])), None)
        if first is not None and name != "workItems":
            aliases_by_name[first].append(name)
        else:
            aliases_by_name[name] = []
    return {name: others for name, others in aliases_by_name.items() if others}


_CastData = dict[str, JSON]


def state_nodes(data: _CastData) -> list[dict[str, Any]]:
    """Return the state as tree nodes (name, path, kind, and value or children).

    Beyond the limits on size and depth, nodes are only counted.
    """
    budget = [_MAX_NODES]
    aliases_by_name = aliases(data)
    alias_names = {name for others in aliases_by_name.values() for name in others}
    return [
        {**_node(name, [name], value, budget), **({"same": aliases_by_name[name]} if name in aliases_by_name else {})}
        for name, value in data.items()
        if name not in alias_names
    ]


def _node(name: str, path: list[str], value: JSON, budget: list[int]) -> dict[str, Any]:
    budget[0] -= 1
    node: dict[str, Any] = {"name": plain(name), "path": path}
    if isinstance(value, dict | list):
        pairs = list(value.items()) if isinstance(value, dict) else [(str(n), item) for n, item in enumerate(value)]
        node |= {"kind": "object" if isinstance(value, dict) else "list", "count": len(pairs)}
        if len(path) < _MAX_DEPTH and budget[0] > 0:
            node["children"] = [
                _node(key, [*path, key], child, budget) for key, child in pairs[:_MAX_CHILDREN] if budget[0] > 0
            ]
            node["more"] = len(pairs) - len(node["children"])
        else:
            node |= {"children": [], "more": len(pairs)}
        return node
    text = as_text(value)
    node |= {"kind": "text" if isinstance(value, str) else "value", "text": plain(text[:_MAX_TEXT_CHARS])}
    if len(text) > _MAX_TEXT_CHARS:
        node["cut"] = len(text)
    return node


def diff_blocks(before: _CastData, after: _CastData, title: str) -> list[Block]:
    """Return the differences between two states as a tree; an item that has several names is shown once."""
    alias_names = {name for data in (before, after) for others in aliases(data).values() for name in others}
    kept_before, kept_after = (
        {name: value for name, value in data.items() if name not in alias_names} for data in (before, after)
    )
    if equal_json(kept_before, kept_after):
        return [Heading(title), Line("no changes", "quiet")]
    return [Heading(title), JsonTree(kept_after, "state", old=kept_before)]


def limit_blocks(cast: Snapshot) -> list[Block]:
    """Return the cursors, budgets and limits of the cast, each with the amount used so far."""
    now = cast.engine
    rows = [(f"cursor {name}", str(index), "") for name, index in now.cursors.items()]
    rows += [
        (f"edge {index + 1} of {socket}", str(used), str(limit))
        for (socket, index), (used, limit) in edge_uses(cast.rules, now).items()
    ]
    for limit in limits_of(cast.rules, now):
        used = "" if limit.used is None else str(limit.used)
        rows.append((limit.subject, used, "no limit" if limit.maximum is None else str(limit.maximum)))
    return [Table(("cursors and limits", "now", "limit"), rows)]


_MAX_PATHS: Final = 20  # Maximum number of watched paths.
_MAX_CHANGES: Final = 40  # Maximum number of changes shown for each path, latest first.
_MAX_VALUE_CHARS: Final = 200


class WatchList:
    """The watched state paths of a panel. The changes at each path are cached, so each step is examined only once."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}
        self._changes_by_path: dict[str, tuple[list[StepRecord], list[int]]] = {}
        """For each path: the examined steps, and the indexes of the steps that changed its value."""

    def paths(self, now: Snapshot) -> list[str]:
        """Return the paths that the user has chosen in this panel, followed by the paths with a breakpoint."""
        return list(dict.fromkeys([*self._paths, *now.breakpoints.paths]))

    def follow(self, path: str, *, on: bool) -> None:
        """Start or stop watching a dotted path.

        Raises:
            MateriaError: the path is empty, or too many paths are watched (``bad_path``).
        """
        path = path.strip().removeprefix("state.")
        if not on:
            self._paths.pop(path, None)
            return
        if not split_path(path):
            raise MateriaError("No state path was entered.", hint="enter a path such as plan.title", kind="bad_path")
        if len(self._paths) >= _MAX_PATHS and path not in self._paths:
            raise MateriaError(
                f"This panel already watches {_MAX_PATHS} paths, the maximum.",
                hint="remove a watched path, then try again",
                kind="bad_path",
            )
        self._paths[path] = None

    def state(self, now: Snapshot, moment: Snapshot, line: int | None) -> dict[str, Any]:
        """Return the value at each path in a snapshot, and the changes at the path, latest first."""
        stops = now.breakpoints.paths
        return {
            "watched": [
                {
                    "path": path,
                    "now": _value_text(dict(moment.state), path),
                    "stops": path in stops,
                    "mine": path in self._paths,
                    **self._history(now, path, line),
                }
                for path in self.paths(now)
            ]
        }

    def _history(self, now: Snapshot, path: str, line: int | None) -> dict[str, Any]:
        steps = now.line(line)
        examined, changed_indices = self._changes_by_path.setdefault(path, ([], []))
        while examined and (len(examined) > len(steps) or examined[-1] is not steps[len(examined) - 1]):
            examined.pop()  # the cast went back, another line is shown, or the latest step has changed
        while changed_indices and changed_indices[-1] >= len(examined):
            changed_indices.pop()
        for index in range(len(examined), len(steps)):
            step = steps[index]
            examined.append(step)
            if not equal_json(_value(step.before.data, path), _value(step.after.data, path)):
                changed_indices.append(index)
        latest = [steps[index] for index in reversed(changed_indices[-_MAX_CHANGES:])]
        rows = [[step.number, now.names.get(step.socket, ""), _value_text(step.after.data, path)] for step in latest]
        return {"changes": len(changed_indices), "rows": rows}


def _value(data: Mapping[str, JSON], path: str) -> Any:
    return get_path(dict(data), split_path(path))


def _value_text(data: Mapping[str, JSON], path: str) -> str:
    value = _value(data, path)
    return "not set" if value is MISSING else shorten(part(as_text(value), _MAX_VALUE_CHARS), _MAX_VALUE_CHARS)


_MAX_CHARS_OF_ITEM: Final = 1_000
_MAX_ITEMS: Final = 10_000
_MAX_CHARS_OF_ITEMS: Final = 400_000
"""Maximum size of all items sent to a page and saved in a notebook, in characters; longer texts are shortened."""
_MIN_CHARS: Final = 80


class ItemTexts:
    """A cache of the titles and contexts of the work items for the page, and of the digest of their list."""

    def __init__(self) -> None:
        self._list: JSON = None
        self._cached: tuple[list[list[str | int]], str] = [], json_digest([])

    def of(self, cast: Snapshot) -> tuple[list[list[str | int]], str]:
        """Return the titles and contexts, and the digest. They are cached, because a list in a state never changes."""
        items = cast.state.get(WORK_ITEMS)
        if items is not self._list:
            items_ = cast.work_items
            limit = min(_MAX_CHARS_OF_ITEM, max(_MIN_CHARS, _MAX_CHARS_OF_ITEMS // (2 * len(items_) or 1)))
            rows = [_shortened(title_and_context(item), limit) for item in items_[:_MAX_ITEMS]]
            self._list, self._cached = items, (rows, json_digest(items_))
        return self._cached


def items_state(cast: Snapshot, item_texts: ItemTexts, *, busy: bool) -> dict[str, Any]:
    """Return the work items and the progress of the cast.

    Args:
        cast: the current snapshot of the cast.
        item_texts: a cache of the item texts, which is reused while the list stays the same.
        busy: True while a step is running; the items cannot be edited then.
    """
    (rows, digest), item_statuses = item_texts.of(cast), cast.item_statuses
    visit, count = cast.engine.at, len(cast.work_items)
    return {
        "items": rows,
        "more": max(0, count - _MAX_ITEMS),
        "base": digest,
        "stands": item_statuses[:_MAX_ITEMS],
        "lanes": {str(index): f"{part(lane.name, 40)}, {lane.status}" for index, lane in cast.lane_of_item.items()},
        "done": item_statuses.count("done"),
        "current": _current_index(cast, item_statuses),
        "at": cast.names[visit.socket] if visit is not None and visit.item is not None else None,
        "can": cast.writable and not busy and count <= _MAX_ITEMS and not cast.is_state_locked,
        "frozen": cast.is_state_locked,
        "busy": busy,
        "undo": cast.can_undo and not busy,
        "lists": any(loop.iterator is not None for loop in cast.graph.loops.values()),
    }


def _shortened(title_and_context: list[str], limit: int) -> list[str | int]:
    """Return the texts cut to ``limit`` characters and, if any was cut, the full length of each (0 if not cut)."""
    full_lengths = [len(text) if len(text) > limit else 0 for text in title_and_context]
    return [*(text[:limit] for text in title_and_context), *(full_lengths if any(full_lengths) else ())]


def json_digest(value: JSON) -> str:
    """Return a digest of a value, for example to identify the list of items on which an edit is based."""
    return sha256(compact(value).encode("utf-8", "surrogatepass")).hexdigest()[:32]


_ITEM_FIELDS: Final = ("title", "context")


def title_and_context(item: JSON) -> list[str]:
    """Return the title and context of a work item as editable text.

    For an item that is not an object, return its JSON text and an empty context.
    """
    if not isinstance(item, dict):
        return [as_text(item), ""]
    return [as_text(item.get(name, "")) for name in _ITEM_FIELDS]


EditedItems: TypeAlias = tuple[list[JSON], list[int | None] | None]
"""The items of an edited table, and the index of each item in the previous list, or None if it is unknown."""


def edited_items(rows: Sequence[ItemRow], items: Sequence[JSON], read: Sequence[JSON] | None) -> EditedItems:
    """Return the items that the rows of an edited table represent, and the previous index of each item.

    Args:
        rows: the rows of the table; a title or context is None if the page has only part of it and it is unchanged.
        items: the current items of the cast.
        read: the items that the user edited, or None if they are unknown. The indices are returned only if ``read``
            equals ``items``.

    Raises:
        MateriaError: the complete text of a row is no longer available (``outdated``).
    """
    new_items: list[JSON] = []
    origins: list[int | None] = []
    for title, context, index, _ in rows:
        origin = index if read is not None and index is not None and index < len(read) else None
        before = None if read is None or origin is None else read[origin]
        old_texts = [None, None] if origin is None else title_and_context(before)
        typed_texts = [old if text is None else text for text, old in zip((title, context), old_texts, strict=True)]
        if None in typed_texts:
            problem = "Nothing was done: the list of items that you edited is no longer available."
            raise MateriaError(problem, hint="revert your changes, then edit the current list", kind="outdated")
        new_items.append(
            before if old_texts == typed_texts else dict(zip(_ITEM_FIELDS, typed_texts, strict=True))
        )  # an unchanged item keeps its original value
        origins.append(origin)
    return new_items, origins if read is not None and equal_json(list(read), list(items)) else None


def items_to_redo(
    rows: Sequence[ItemRow], origins: Sequence[int | None] | None, *, abandon: bool
) -> tuple[list[int], bool]:
    """Return the indices of the items to repeat, and True if the current item is abandoned."""
    row_origins = zip(rows, origins or (), strict=False)
    repeated_origins = [origin for row, origin in row_origins if origin is not None and row.repeat]
    return repeated_origins, abandon and origins is not None


def preview_edit(
    cast: Snapshot, items: list[JSON], origins: Sequence[int | None] | None, repeat: Sequence[int], abandon: bool
) -> tuple[list[str], list[int] | None]:
    """Return a description of the effects of an edited list, and the resulting order of its rows.

    The order is None if the edit is refused.
    """
    original_indices = origins_of(cast.work_items, items) if origins is None else origins
    edits = {WORK_ITEMS: ListEdit(tuple(original_indices), tuple(repeat), abandon)}
    items = [frozen(item) for item in items]  # frozen once, so that each item can be found by its identity
    try:
        edit_result = edit_lists(cast.rules, cast.engine, {**cast.state, WORK_ITEMS: items}, edits)
    except MateriaError as error:
        return [str(error)], None
    positions = {id(item): index for index, item in enumerate(items)}
    return list(edit_result.messages), [positions[id(item)] for item in edit_result.data[WORK_ITEMS]]


def _current_index(cast: Snapshot, item_statuses: Sequence[ItemStatus]) -> int | None:
    """Return the index of the current item, or else of the next item, or None if there is neither."""
    if IN_PROGRESS in item_statuses:
        return item_statuses.index(IN_PROGRESS)
    item = cast.upcoming_item
    return item.position if item is not None and item.key == f"WI-{item.position + 1}" else None
