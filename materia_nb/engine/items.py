"""Read lists, items and values from the state, for iterators, assignment sources and prompt templates.

This module implements rules R11 to R13, R31 and R34.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Iterator as Iterating
from functools import lru_cache
from typing import Literal, TypeAlias

from materia_nb.engine.state import Draft, Handoff, Item, ItemId, Iteration, LaneScope, Position, ShownItem, StateView
from materia_nb.errors import MateriaError
from materia_nb.handoff.checks import reader
from materia_nb.jsonvalue import (
    JSON,
    MISSING,
    FrozenDict,
    compact,
    get_path,
    pretty,
    remove_path,
    set_path,
    split_path,
    whole_floats_as_integers,
)
from materia_nb.loadout.graph import Iterator
from materia_nb.loadout.topology import variables
from materia_nb.loadout.vocabulary import Result

Source: TypeAlias = Callable[[StateView, Item | None, JSON], JSON]
"""A function that reads a value from the state, the current item and a parsed output.

The function returns MISSING if the value does not exist.
"""

Template: TypeAlias = Callable[[StateView, Item | None], str]
"""A function that returns a materia's prompt with values from the state and the current item filled in."""

ItemStatus: TypeAlias = Literal["done", "being worked on", "open", "skipped"]
"""Status of an item with respect to one cursor."""


@lru_cache(maxsize=4096)
def compile_source(text: str) -> Source:
    """Compile the source of an assignment or list into a function that reads the value (R11).

    ``$...`` reads the parsed output. ``item.x`` reads the current item, ``lastJson.x`` and ``lastOutput`` read the last
    output, and any other path reads the state.
    """
    if text.startswith("$"):
        read = reader(text)
        return lambda _state, _item, parsed: MISSING if parsed is MISSING else read(parsed)
    return _compile_path(text)


def _compile_path(text: str) -> Source:
    first_name, _, rest = text.partition(".")
    segments = rest.split(".") if rest else []
    if text == "state":
        return lambda state, _item, _parsed: state.data
    if first_name == "item":
        return lambda _state, item, _parsed: MISSING if item is None else get_path(item.value, segments)
    if first_name == "lastJson":
        return lambda state, _item, _parsed: get_path(state.last_json, segments)
    if text == "lastOutput":
        return lambda state, _item, _parsed: MISSING if state.last_output is None else state.last_output
    name = rest if first_name == "state" else text
    if "." not in name:
        return lambda state, _item, _parsed: state.data.get(name, MISSING)
    segments = name.split(".")
    return lambda state, _item, _parsed: get_path(state.data, segments)


@lru_cache(maxsize=1024)
def compile_template(text: str, quoting: frozenset[str] = frozenset()) -> Template:
    """Compile a materia's prompt into a function that fills in its variables (R31).

    Variables inside an inserted value are not expanded. A value of a variable in ``quoting`` is put into a code fence
    if the variable is alone on its line (R50).
    """
    parts: list[str | Source] = []
    fenced_parts: set[int] = set()
    done = 0
    for start, end, name in variables(text):
        if name:
            if name in quoting and _is_alone_on_line(text, start, end):
                fenced_parts.add(len(parts) + 1)
            parts += [text[done:start], _compile_variable(name)]
            done = end
    if not parts:
        return lambda _state, _item: text
    parts.append(text[done:])

    def fill(state: StateView, item: Item | None) -> str:
        texts = []
        for number, part in enumerate(parts):
            value = part if isinstance(part, str) else part(state, item, MISSING)
            written = value if isinstance(value, str) else template_text(value)
            texts.append(fence_text(written) if number in fenced_parts and written.strip() else written)
        return "".join(texts)

    return fill


def _is_alone_on_line(text: str, start: int, end: int) -> bool:
    """Return True if the line contains only the variable between ``start`` and ``end``."""
    line_end = text.find("\n", end)
    before = text[text.rfind("\n", 0, start) + 1 : start]
    after = text[end : line_end if line_end >= 0 else len(text)]
    return not (before + after).strip()


_FENCES = re.compile("`+")


def fence_text(text: str) -> str:
    """Return ``text`` in a code fence that is longer than any run of backticks in the text (R50)."""
    fence = "`" * max(3, 1 + max((len(run) for run in _FENCES.findall(text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def _compile_variable(name: str) -> Source:
    if name == "request":
        return lambda state, _item, _parsed: state.request
    if name == "stateJson":
        return lambda state, _item, _parsed: _pretty(state.data)
    if name == "itemJson":
        return lambda _state, item, _parsed: None if item is None or item.value is None else _pretty(item.value)
    if name.startswith("cursor."):
        cursor = name[len("cursor.") :]
        return lambda state, _item, _parsed: state.cursors.get(cursor)
    return _compile_path(name)


def template_text(value: JSON) -> str:
    """Return the string that a template inserts for a value: a string unchanged, "" for null, or the value as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None or value is MISSING else _pretty(value)


def _pretty(value: JSON) -> str:
    # Outputs have bounded nesting, but a state that is assigned into itself grows with each step.
    try:
        return pretty(whole_floats_as_integers(value))
    except RecursionError:
        raise MateriaError(
            "The state is nested too deeply to be written into a prompt.",
            hint="change the assignment that stores the state inside itself",
            kind="too_deep",
        ) from None


def list_at(text: str, state: StateView, item: Item | None = None) -> list[JSON]:
    """Return the list that a list source reads, or [] if the value does not exist or is not a list (R12)."""
    value = compile_source(text)(state, item, state.last_json)
    return value if isinstance(value, list) else []


def item_status(state: StateView, item: ItemId) -> ItemStatus:
    """Return the status of an item in its list, as determined by the visits of the item (R46)."""
    return _status_in(_lane_scope(state, item[0]), state, item)


def _status_in(lane: LaneScope | None, state: StateView, item: ItemId) -> ItemStatus:
    cursor, index, outer = item
    if item in state.joined_items:
        return "done"
    if lane is not None:
        position = state.cursors.get(cursor, 0)
        earlier_indexes = lane.indexes[: lane.indexes.index(position)] if position in lane.indexes else lane.indexes
        return "done" if index in earlier_indexes else "being worked on" if item in state.items else "open"
    cursor_position = state.cursors.get(cursor, 0) if state.nesting.get(cursor, ()) == outer else 0
    if index < cursor_position:
        return "skipped" if item in state.passed_items else "done"
    if item in state.items:
        return "being worked on"
    return "skipped" if state.status == "complete" else "open"


def _lane_scope(state: StateView, cursor: str) -> LaneScope | None:
    """Return the current lane if ``cursor`` iterates over its items, or None."""
    return state.lane if state.lane is not None and state.lane.cursor == cursor else None


def cursor_after_advance(state: StateView, cursor: str, length: int) -> int:
    """Return the position of a cursor after an advance; in a lane, this is the next item of the lane (R14)."""
    lane, cursor_position = _lane_scope(state, cursor), state.cursors.get(cursor, 0)
    if lane is None:
        return cursor_position + 1
    next_index = dict(zip(lane.indexes, lane.indexes[1:], strict=False))
    return next_index.get(cursor_position, length)


def cursor_before_advance(state: StateView, cursor: str) -> int:
    """Return the position of a cursor before its last advance."""
    lane, cursor_position = _lane_scope(state, cursor), state.cursors[cursor]
    if lane is None:
        return cursor_position - 1
    previous_positions = dict(zip(lane.indexes[1:], lane.indexes, strict=False))
    return previous_positions.get(cursor_position, lane.indexes[-1])


def item_statuses(state: StateView, iteration: Iteration) -> list[ItemStatus]:
    """Return the status of each item in the current list of ``iteration``."""
    cursor = iteration.iterator.cursor
    lane, outer = _lane_scope(state, cursor), state.nesting.get(cursor, ())
    count = len(list_at(iteration.iterator.items, state))
    return [_status_in(lane, state, (cursor, index, outer)) for index in range(count)]


def own_list(iterator: Iterator, draft: Draft, item: Item) -> list[JSON]:
    """Return the list that contains an item.

    The item is hidden while its list is read, because its alias could hide the alias of an outer item (R34).
    """
    if not item.outer:
        return list_at(iterator.items, draft, item)
    without_item = Draft(draft.freeze())
    show_only(without_item, draft.shown[:-1])
    return list_at(iterator.items, without_item, without_item.shown[-1].item)


def begin_item(iteration: Iteration, read: Source, draft: Draft) -> Item | None:
    """Make the item at the cursor the current item and return it; return None if there is no such item (R1, R12).

    The outer items that contain the list stay visible in the state (R34). All other items are hidden.
    """
    iterator = iteration.iterator
    shown_items = draft.shown
    is_only_item = len(shown_items) == 1 and shown_items[0].iteration is iteration
    outer_items = shown_items[: _outer_count(iteration, shown_items)] if shown_items and not is_only_item else ()
    current_item = draft.at.item if draft.at else None
    cursor = draft.cursors.get(iterator.cursor)
    outer: tuple[Position, ...] = ()
    if outer_items:
        show_only(draft, outer_items)
        current_item = outer_items[-1].item
        outer = positions_of(current_item.id)
        if draft.nesting.get(iterator.cursor) != outer:
            cursor = None
            draft.nesting = FrozenDict({**draft.nesting, iterator.cursor: outer})
            name, depth = (iterator.cursor,), len(outer)
            forget_items(draft, lambda item: is_iterated_by(item, name) and positions_of(item)[:depth] != outer)
    if cursor is None:
        cursor = 0
        draft.cursors = FrozenDict({**draft.cursors, iterator.cursor: 0})
    items = read(draft, current_item, draft.last_json)
    if not isinstance(items, list):
        items = []
    last = draft.shown[-1] if len(draft.shown) == len(outer_items) + 1 else None
    if last is not None and last.iteration is iteration and _is_still_shown(draft, last, items, cursor, outer):
        return last.item  # the previous socket worked on this item too
    item = item_at(iteration, items, cursor, outer)
    show_only(draft, outer_items)
    if item is not None:
        show_item(draft, iteration, item)
    return item


def _is_still_shown(draft: Draft, last: ShownItem, items: list[JSON], index: int, outer: tuple[Position, ...]) -> bool:
    """Return True if the item at an index is the item that the state already shows."""
    value = last.item.value
    _, position, outer_position = last.item.id
    if position != index or outer_position != outer or index >= len(items) or items[index] is not value:
        return False
    return all(get_path(draft.data, path) is value for path in last.iteration.paths)


def item_at(iteration: Iteration, items: list[JSON], index: int, outer: tuple[Position, ...] = ()) -> Item | None:
    """Return the item at an index of a list, or None if the index is past the end of the list."""
    if index >= len(items):
        return None
    value = items[index]
    key = f"WI-{index + 1}" if iteration.numbered else str(index)
    iterator = iteration.iterator
    return Item(value, key, item_label(value, key), (iterator.cursor, index, outer), iterator.loop)


def positions_of(item: ItemId) -> tuple[Position, ...]:
    """Return the positions that identify an item: the positions of its outer items, outermost first, and its own."""
    return (*item[2], (item[0], item[1]))


def lies_in(item: ItemId | None, other: ItemId) -> bool:
    """Return True if an item is ``other`` or lies inside ``other``."""
    if item is None:
        return False
    if not item[2]:
        return item == other
    other_positions = positions_of(other)
    return positions_of(item)[: len(other_positions)] == other_positions


def is_iterated_by(item: ItemId, cursors: Collection[str]) -> bool:
    """Return True if ``cursors`` contains the cursor of the item or of one of its outer items."""
    return item[0] in cursors or any(cursor in cursors for cursor, _ in item[2])


def forget_items(draft: Draft, is_gone: Callable[[ItemId], bool]) -> None:
    """Remove the records of items that no longer exist, such as edge counts, cycles, raised limits and answers.

    Refusals of these items are removed as well. Other handoffs about the items are kept, without the reference to the
    item.
    """
    if draft.passed_items:
        draft.passed_items = FrozenDict({id_: value for id_, value in draft.passed_items.items() if not is_gone(id_)})
    draft.items = FrozenDict({item: record for item, record in draft.items.items() if not is_gone(item)})
    if draft.joined_items:
        draft.joined_items = frozenset(item for item in draft.joined_items if not is_gone(item))
    if draft.extra:
        draft.extra = FrozenDict(
            {key: more for key, more in draft.extra.items() if not (isinstance(key[-1], tuple) and is_gone(key[-1]))}
        )
    draft.rework_reasons = tuple(entry for entry in draft.rework_reasons if not (entry.item and is_gone(entry.item)))
    if draft.answers:
        answers = {key: answer for key, answer in draft.answers.items() if key[1] is None or not is_gone(key[1])}
        draft.answers = FrozenDict(answers)
    if any(entry.item is not None and is_gone(entry.item) for entry in draft.handoffs.entries):
        draft.handoffs = draft.handoffs._replace(entries=tuple(_without_removed_items(draft.handoffs.entries, is_gone)))


def _without_removed_items(entries: Iterable[Handoff], is_gone: Callable[[ItemId], bool]) -> Iterating[Handoff]:
    """Yield the handoffs, with references to removed items cleared; omit refusals of removed items."""
    for entry in entries:
        if entry.item is None or not is_gone(entry.item):
            yield entry
        elif entry.result is not Result.NO:
            yield entry._replace(item=("", entry.step, ()))


def _outer_count(iteration: Iteration, shown_items: tuple[ShownItem, ...]) -> int:
    """Return the number of visible items to keep: the innermost item that contains the list, and its outer items."""
    iterator = iteration.iterator
    for count in range(len(shown_items), 0, -1):
        outer, item, _ = shown_items[count - 1]
        if item.id[0] == iterator.cursor or (item.loop is not None and item.loop == iterator.loop):
            continue
        if any(iteration.list_path[: len(alias)] == alias for alias in outer.paths):
            return count
    return 0


@lru_cache(maxsize=1024)
def state_path(source_text: str) -> tuple[str, ...]:
    """Return the path in the state that a list source reads, or () if the source does not read the state (R11)."""
    segments = source_text.split(".")
    if segments[0] == "state":
        return tuple(segments[1:])
    other = segments[0] == "lastJson" or source_text == "lastOutput" or source_text.startswith("$")
    return () if other else tuple(segments)  # the current item is shown as ``item`` in the state too


def item_label(value: JSON, key: str) -> str:
    """Return the title of an item or, if it has no title, its name or else its key (R13)."""
    if isinstance(value, dict):
        for field in ("title", "name"):
            field_value = value.get(field)
            if field_value is not None:
                return field_value if isinstance(field_value, str) else compact(whole_floats_as_integers(field_value))
    return key


def show_only(draft: Draft, kept_items: tuple[ShownItem, ...] = ()) -> None:
    """Hide all items except ``kept_items``, which must be the outermost of the visible items."""
    hidden = draft.shown[len(kept_items) :]
    if not hidden:
        return
    data = _without_items(draft.data, hidden)
    if kept_items:  # an inner item has replaced the item at the common paths
        iteration, item, _ = kept_items[-1]
        for path in iteration.paths:
            if get_path(data, path) is MISSING:
                data = set_path(data, path, item.value)
    draft.data, draft.shown = data, kept_items


def _without_items(data: Mapping[str, JSON], hidden: tuple[ShownItem, ...]) -> Mapping[str, JSON]:
    if not hidden:
        return data
    top_level = {path[0] for iteration, _, _ in hidden for path in iteration.paths if len(path) == 1}
    trimmed: Mapping[str, JSON] = FrozenDict({key: value for key, value in data.items() if key not in top_level})
    for iteration, _, created in reversed(hidden):
        for path in iteration.paths:
            if len(path) > 1:
                trimmed = remove_path(trimmed, path)
        for path in reversed(created):
            if get_path(trimmed, path) == {}:
                trimmed = remove_path(trimmed, path)
    return trimmed


def show_item(draft: Draft, iteration: Iteration, item: Item) -> None:
    """Make ``item`` visible in the state under the names of its iterator, so that sockets can read it (R12)."""
    data = dict(draft.data)
    created_paths: list[tuple[str, ...]] = []
    for path in iteration.paths:
        if len(path) == 1:
            data[path[0]] = item.value
            continue
        parents = [path[:length] for length in range(1, len(path))]
        created_paths += [parent for parent in parents if not isinstance(get_path(data, parent), dict)]
        data = dict(set_path(data, path, item.value))
    draft.data, draft.shown = FrozenDict(data), (*draft.shown, ShownItem(iteration, item, tuple(created_paths)))


@lru_cache(maxsize=1024)
def iteration_of(iterator: Iterator) -> Iteration:
    """Return the iteration of an iterator: the path of its list, and the paths that show the current item (R12, R13).

    The result is cached and shared by all sockets of a loop.
    """
    numbered = iterator.has_work_item_keys
    names = ["item", "currentWorkItem", iterator.alias, *(["workItem"] if numbered else [])]
    paths = [tuple(split_path(name)) for name in names]
    shown_paths = tuple(dict.fromkeys(path for path in paths if path))
    return Iteration(iterator, state_path(iterator.items), shown_paths, numbered)
