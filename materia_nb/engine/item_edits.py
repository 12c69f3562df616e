"""Apply a person's edits of lists; finished items always stay before the item in progress (R46)."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

from materia_nb.engine.items import (
    item_at,
    item_label,
    item_status,
    lies_in,
    list_at,
    positions_of,
    show_item,
    show_only,
)
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState, Draft, Handoff, ItemId, Iteration, Position, ReworkReason, StateView
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON, MISSING, FrozenDict, FrozenList, as_list, equal_json, frozen, get_path, set_path

Path: TypeAlias = tuple[str, ...]
_Entry = TypeVar("_Entry", ReworkReason, Handoff)
_Value = TypeVar("_Value")

IN_PROGRESS: Final = "being worked on"

_DONE_STATUSES: Final = ("done", "skipped")

_MAX_LISTED_ITEMS: Final = 5  # Maximum number of items that a message names.


class ListEdit(NamedTuple):
    """An edit of one list.

    Attributes:
        origins: the old index of each item in the new list, or None for a new item.
        again: the old indexes of the items to repeat.
        abandon: True to abandon the item in progress. The item stays as a skipped item if the new list contains it.
    """

    origins: tuple[int | None, ...]
    again: tuple[int, ...] = ()
    abandon: bool = False

    def as_json(self) -> dict[str, JSON]:
        """Return the edit as a JSON object for the journal."""
        return {"origins": list(self.origins), "again": list(self.again), "abandon": self.abandon}

    @classmethod
    def read(cls, value: JSON) -> ListEdit:
        """Parse an edit that :meth:`as_json` returned."""
        return cls(tuple(value["origins"]), tuple(value.get("again", ())), value.get("abandon") is True)


class EditResult(NamedTuple):
    """Result of an edit.

    Attributes:
        state: the state after the edit.
        data: the new data of the state, without the values that the current item adds.
        lists: the edit of each changed list, by the dotted path of the list.
        messages: sentences that tell the person which items were moved, repeated or abandoned.
    """

    state: CastState
    data: Mapping[str, JSON]
    lists: Mapping[str, ListEdit]
    messages: tuple[str, ...] = ()


def edit_lists(
    rules: Rules, state: CastState, data: Mapping[str, JSON], list_edits: Mapping[str, ListEdit]
) -> EditResult:
    """Return the state with new data, in which edited lists are ordered so that running loops continue correctly.

    Finished items come first in their old order, then the item in progress, and then the open items in the new order.
    Cursors, limits and rework reasons move with their items (R13).

    Args:
        rules: the rules of the cast.
        state: the current state.
        data: the data that the person entered.
        list_edits: the known edits, by dotted path; all other lists are compared item by item.

    Raises:
        MateriaError: the edit would remove the item in progress (``working``), or the origins do not match the list
            (``items``).
    """
    editor = _ListEditor(rules, state, Draft(state), frozen(data))
    for path in rules.lists:
        editor.edit(path, list_edits.get(".".join(path)))
    return EditResult(editor.draft.freeze(), editor.data, editor.lists, tuple(editor.messages))


class _ListEditor:
    """Applies the edits of several lists, one after another.

    ``draft`` is the resulting state, and ``data`` is its data without the values that the current items add.
    """

    def __init__(self, rules: Rules, before: CastState, draft: Draft, data: Mapping[str, JSON]) -> None:
        self.rules, self.before, self.draft = rules, before, draft
        self.data = draft.data = data
        self.lists: dict[str, ListEdit] = {}
        self.messages: list[str] = []

    def edit(self, path: Path, list_edit: ListEdit | None) -> None:
        """Apply the edit to the list at ``path`` if the list changes."""
        if self._is_in_removed_item(path):
            return
        old = _list_at(self.before.data, path)
        new = _list_at(self.draft.data if list_edit is None else self.data, path)
        if list_edit is None:
            if equal_json(old, new):
                return
            list_edit = ListEdit(tuple(origins_of(old, new)))
        _check_origins(list_edit, len(old), len(new))
        iteration, inside = current_iteration(self.rules, self.before, path)
        order, position = self._order_items(iteration, old, list_edit)
        items = FrozenList([new[index] for index in order])
        list_edit = list_edit._replace(origins=tuple(list_edit.origins[index] for index in order))
        self.lists[".".join(path)] = list_edit
        if not equal_json(_list_at(self.data, path), items):
            self.data = set_path(self.data, path, items)
        self.draft.data = set_path(self.draft.data, path, items)
        self._update_outer_item(path, items)
        abandoned = self._abandoned_index(iteration, list_edit)
        for other in self.rules.lists[path]:
            self._relocate(other, list_edit, position if other == iteration else None, abandoned, items)
        self._update_shown_items(path)
        self._report_changes(old, new, order, list_edit, abandoned)
        if abandoned is not None and inside:
            self._continue_after_abandoning(iteration)

    # -- the order -------------------------------------------------------------------------

    def _id(self, iteration: Iteration, index: int) -> ItemId:
        cursor = iteration.iterator.cursor
        return (cursor, index, self.before.nesting.get(cursor, ()))

    def _status_after_edit(self, iteration: Iteration, index: int | None, list_edit: ListEdit) -> str:
        if index is None or index in list_edit.again:
            return "open"
        status = item_status(self.before, self._id(iteration, index))
        if status == IN_PROGRESS and list_edit.abandon:
            return "done"
        return status

    def _order_items(self, iteration: Iteration, old: list[JSON], list_edit: ListEdit) -> tuple[list[int], int]:
        """Return the new order of the items, as indexes into the edited list, and the number of finished items."""
        self._refuse_removal(iteration, old, list_edit)

        def rank(origin: int | None) -> tuple[int, int]:
            status = self._status_after_edit(iteration, origin, list_edit)
            if origin is not None and status in _DONE_STATUSES:
                return 0, origin
            if status == IN_PROGRESS:
                return 1, 0
            return (2 if origin is not None and origin in list_edit.again else 3), 0

        ranks = [rank(origin) for origin in list_edit.origins]
        return sorted(range(len(ranks)), key=ranks.__getitem__), sum(group == 0 for group, _ in ranks)

    def _refuse_removal(self, iteration: Iteration, old: list[JSON], list_edit: ListEdit) -> None:
        """Raise MateriaError (``working``) if the edit would remove or restart the item in progress."""
        kept_origins = set(list_edit.origins)
        repeated = [index for index in list_edit.again if self._was_in_progress(iteration, index)]
        for other in self.rules.lists[iteration.list_path]:
            for index, item in enumerate(old):
                if index in kept_origins and index not in repeated:
                    continue
                status = item_status(self.before, self._id(other, index))
                in_progress = status == IN_PROGRESS or (
                    index not in kept_origins and self._stopped_in_item(self._id(other, index))
                )
                if in_progress and not (list_edit.abandon and status == IN_PROGRESS):
                    action = "restarted" if index in kept_origins else "removed"
                    hint = "abandon the item to continue with the next item, or only change its text"
                    if status != IN_PROGRESS:
                        hint = "use `retry` first, or keep the item in the list"
                    raise MateriaError(
                        f"{_title(item)!r} is being worked on{self._location_phrase(other)}, so it cannot be {action}.",
                        hint=hint,
                        kind="working",
                    )

    def _stopped_in_item(self, item: ItemId) -> bool:
        """Return True if the cast stopped at a visit of this item."""
        visit = self.before.at if _is_visit_unfinished(self.before) else None
        return visit is not None and visit.item is not None and lies_in(visit.item.id, item)

    def _location_phrase(self, iteration: Iteration) -> str:
        visit = self.before.at
        if visit is not None and visit.item is not None and visit.item.cursor == iteration.iterator.cursor:
            return f" at {self.rules.graph.names[visit.socket]}"
        return f" in {iteration.iterator.loop}" if iteration.iterator.loop else ""

    def _abandoned_index(self, iteration: Iteration, list_edit: ListEdit) -> int | None:
        """Return the old index of the item that the edit abandons, or None if the edit abandons no item."""
        if not list_edit.abandon:
            return None
        cursor_position = self.before.cursors.get(iteration.iterator.cursor, 0)
        return cursor_position if self._was_in_progress(iteration, cursor_position) else None

    # -- cursors and records ------------------------------------------------------------

    def _relocate(
        self, iteration: Iteration, list_edit: ListEdit, position: int | None, abandoned: int | None, items: list[JSON]
    ) -> None:
        """Move the cursor of ``iteration``, and update the records of its items to their new positions.

        ``position`` is the new position of the cursor, or None to compute this position.
        """
        draft, cursor = self.draft, iteration.iterator.cursor
        outer = draft.nesting.get(cursor, ())  # an edit of an outer list may have moved it
        if cursor in self.before.nesting and cursor not in draft.nesting:
            return  # its outer item was removed, so the cursor starts again
        new_index = {origin: index for index, origin in enumerate(list_edit.origins) if origin is not None}

        def moved_positions(positions: tuple[Position, ...]) -> tuple[Position, ...] | None:
            """Return the new positions that identify an item, or None if the item was removed or must be repeated."""
            new_positions = list(positions)
            for depth, (name, index) in enumerate(positions):
                if name == cursor and positions[:depth] == outer:
                    if index not in new_index or index in list_edit.again or index == abandoned:
                        return None
                    new_positions[depth] = (name, new_index[index])
            return tuple(new_positions)

        def moved_item_id(item: ItemId) -> ItemId | None:
            positions = moved_positions(positions_of(item))
            return None if positions is None else (*positions[-1], positions[:-1])

        if cursor in draft.cursors:
            reached = self._first_unfinished(iteration, list_edit, items) if position is None else position
            draft.cursors = FrozenDict({**draft.cursors, cursor: reached})
        draft.items = FrozenDict(_moved_keys(draft.items, moved_item_id))
        draft.rework_reasons = _moved_entries(draft.rework_reasons, moved_item_id)
        draft.handoffs = draft.handoffs._replace(entries=_moved_entries(draft.handoffs.entries, moved_item_id))
        answers = {
            (socket, to): value
            for (socket, item), value in draft.answers.items()
            if (to := None if item is None else moved_item_id(item)) is not None or item is None
        }
        draft.answers = FrozenDict(answers)
        draft.extra = _moved_extra(draft.extra, moved_item_id)
        draft.nesting = FrozenDict(
            {name: new for name, value in draft.nesting.items() if (new := moved_positions(value)) is not None}
        )
        passed_items = _moved_keys(draft.passed_items, moved_item_id)
        if abandoned is not None and abandoned in new_index:
            passed_items[cursor, new_index[abandoned], outer] = True
        reached = draft.cursors.get(cursor, 0)
        draft.passed_items = FrozenDict(
            {item: value for item, value in passed_items.items() if item[::2] != (cursor, outer) or item[1] < reached}
        )
        _relocate_stop(draft, moved_item_id)

    def _first_unfinished(self, iteration: Iteration, list_edit: ListEdit, items: list[JSON]) -> int:
        """Return the index of the first item that another loop over this list has not finished.

        Finished items after this index must be repeated; a message tells the person who made the edit.
        """
        statuses = [
            self._status_after_edit(iteration, origin, list_edit._replace(abandon=False))
            for origin in list_edit.origins
        ]
        reached = next((index for index, status in enumerate(statuses) if status not in _DONE_STATUSES), len(statuses))
        repeated = [
            item for item, status in zip(items[reached:], statuses[reached:], strict=True) if status in _DONE_STATUSES
        ]
        if repeated:
            loop = iteration.iterator.loop
            cursor_phrase = f"loop {loop}" if loop is not None else f"the cursor {iteration.iterator.cursor}"
            self.messages.append(
                f"{_quoted_titles(repeated)} will be worked on again by {cursor_phrase}, because an open item now comes first."
            )
        return reached

    def _is_in_removed_item(self, path: Path) -> bool:
        """Return True if the list belongs to an outer item that this edit removed."""
        hidden = self.before.shown[len(self.draft.shown) :]
        return any(path[: len(alias)] == alias for shown_item in hidden for alias in shown_item.iteration.paths)

    def _update_outer_item(self, path: Path, items: list[JSON]) -> None:
        """Store an inner list in its outer item as well, because each visit copies the outer item into the state."""
        for depth, (iteration, item, _) in enumerate(self.draft.shown):
            alias = next(
                (alias for alias in iteration.paths if path[: len(alias)] == alias and len(path) > len(alias)), None
            )
            if alias is None or iteration.list_path == path:
                continue
            value = set_path(item.value, path[len(alias) :], items)
            entries = _list_at(self.draft.data, iteration.list_path)
            if item.position >= len(entries) or equal_json(entries[item.position], value):
                return
            new_items = FrozenList([value if index == item.position else entry for index, entry in enumerate(entries)])
            self.data = set_path(self.data, iteration.list_path, new_items)
            self.draft.data = set_path(self.draft.data, iteration.list_path, new_items)
            shown_item = self.draft.shown[depth]
            self.lists.setdefault(".".join(iteration.list_path), ListEdit(tuple(range(len(entries)))))
            neighbours = self.draft.shown[:depth], self.draft.shown[depth + 1 :]
            self.draft.shown = (*neighbours[0], shown_item._replace(item=item._replace(value=value)), *neighbours[1])
            for alias in iteration.paths:
                if get_path(self.draft.data, alias) is not MISSING:
                    self.draft.data = set_path(self.draft.data, alias, value)
            return

    def _update_shown_items(self, path: Path) -> None:
        """Update the items of the list that are visible in the state, and hide removed items."""
        draft, before = self.draft, self.draft.shown
        if not any(shown_item.iteration.list_path == path for shown_item in before):
            return
        edit = self.lists[".".join(path)]
        show_only(draft)
        outer: tuple[Position, ...] = ()
        item = None
        for shown_item in before:
            index = shown_item.item.position
            if shown_item.iteration.list_path == path:
                if index not in edit.origins or (edit.abandon and self._was_in_progress(shown_item.iteration, index)):
                    break
                index = edit.origins.index(index)
            new_item = item_at(
                shown_item.iteration, list_at(shown_item.iteration.iterator.items, draft, item), index, outer
            )
            if new_item is None:
                break
            item = new_item
            show_item(draft, shown_item.iteration, item)
            outer = positions_of(item.id)
        visit = draft.at
        if visit is not None and visit.item is not None and item is not None and len(draft.shown) == len(before):
            draft.at = visit._replace(item=item)

    def _was_in_progress(self, iteration: Iteration, index: int) -> bool:
        return item_status(self.before, self._id(iteration, index)) == IN_PROGRESS

    # -- continuing after an item was abandoned ---------------------------------------------------

    def _continue_after_abandoning(self, iteration: Iteration) -> None:
        """Continue at the entry socket of the loop, because the current item of the loop was abandoned."""
        draft, cursor = self.draft, iteration.iterator.cursor
        entry = entry_of(self.rules, iteration)
        detours = tuple(
            entry
            if (walk_back := self.rules.sockets[back].iteration) is not None and walk_back.iterator.cursor == cursor
            else back
            for back in draft.detours
        )
        draft.status, draft.next = "ready", entry
        draft.failure = draft.hold = draft.pending_route = None
        draft.detours = detours

    # -- report to the person -----------------------------------------------------------------------------------

    def _report_changes(
        self, old: list[JSON], new: list[JSON], order: list[int], list_edit: ListEdit, abandoned: int | None
    ) -> None:
        """Add messages about abandoned, repeated and moved items for the person who made the edit."""
        if abandoned is not None:
            is_kept = abandoned in list_edit.origins and abandoned not in list_edit.again
            more = "; it stays in the list as skipped" if is_kept else ""
            self.messages.append(f"{_title(old[abandoned])!r} is abandoned{more}.")
        if list_edit.again:
            repeated = [
                new[index] for index, origin in zip(order, list_edit.origins, strict=True) if origin in list_edit.again
            ]
            self.messages.append(f"{_quoted_titles(repeated)} will be worked on again, before the other open items.")
        moved, latest = [], -1
        for index, given_index in enumerate(order):
            if list_edit.origins[index] in list_edit.again and list_edit.origins[index] is not None:
                continue
            latest = max(latest, given_index)
            if given_index != latest:
                moved.append(f"{_title(new[given_index])!r} is at position {index + 1}, not {given_index + 1}")
        if moved:
            more = f", and {len(moved) - _MAX_LISTED_ITEMS} more" if len(moved) > _MAX_LISTED_ITEMS else ""
            self.messages.append(
                f"Moved: {', '.join(moved[:_MAX_LISTED_ITEMS])}{more}. Finished items come first, then the item in progress."
            )


def _relocate_stop(draft: Draft, find_new_id: Callable[[ItemId], ItemId | None]) -> None:
    """Update the item ids that a stopped cast needs in order to continue."""
    if draft.pending_route is not None and draft.pending_route.advanced is not None:
        draft.pending_route = draft.pending_route._replace(advanced=find_new_id(draft.pending_route.advanced))
    if draft.failure is not None and draft.failure.allow is not None:
        key, more = draft.failure.allow
        allowed = _moved_extra({key: more}, find_new_id)
        draft.failure = draft.failure._replace(allow=next(iter(allowed.items()), None))


def current_iteration(rules: Rules, state: StateView, path: Path) -> tuple[Iteration, bool]:
    """Return the iteration to which edits and tables of a list refer, and True if this iteration is running.

    Several loops can iterate over the same list. The function returns the running iteration or, if no iteration
    is running, the latest.
    """
    iterations = rules.lists[path]
    socket = state.at.socket if _is_visit_unfinished(state) and state.at is not None else state.next
    iteration = rules.sockets[socket].iteration if socket in rules.sockets else None
    if iteration is not None:
        if iteration in iterations:
            return iteration, True
        for shown_item in reversed(state.shown):
            if shown_item.iteration in iterations and any(
                iteration.list_path[: len(alias)] == alias for alias in shown_item.iteration.paths
            ):
                return shown_item.iteration, True
    for name in reversed(state.trail):
        last = rules.sockets[name].iteration
        if last in iterations and last is not None:
            return last, False
    return iterations[0], False


def _is_visit_unfinished(state: StateView) -> bool:
    return state.status in ("waiting", "held") or (state.status in ("failed", "aborted") and state.next is None)


def entry_of(rules: Rules, iteration: Iteration) -> str:
    """Return the socket at which ``iteration`` starts each item.

    The entry is the target of the first edge into the loop (R27) or, if no edge leads into the loop, its first socket.
    """
    graph = rules.graph
    loop = graph.loops.get(iteration.iterator.loop or "")
    if loop is None:
        return next(name for name, socket_rules in rules.sockets.items() if socket_rules.iteration == iteration)
    sources = [graph.sockets[loop.generator]] if loop.generator is not None else graph.sockets.values()
    entry_sockets = (
        edge.to
        for source in sources
        if source.id not in loop.sockets
        for edge in source.edges
        if edge.to in loop.sockets
    )
    return next(entry_sockets, loop.sockets[0])


def origins_of(old: Sequence[JSON], new: Sequence[JSON]) -> list[int | None]:
    """Return the old index of each new item, or None if no old item is equal or has the same title."""
    origins: list[int | None] = [None] * len(new)
    free = dict.fromkeys(range(len(old)))
    for name_of in (_canonical_json, _title_or_name):
        free_indexes: dict[str, deque[int]] = {}
        for index in free:
            if (name := name_of(old[index])) is not None:
                free_indexes.setdefault(name, deque()).append(index)
        for index, item in enumerate(new):
            old_index = free_indexes.get(name_of(item) or "") if origins[index] is None else None
            if old_index:
                origins[index] = old_index.popleft()
        matched_indexes = set(origins)
        free = {index: None for index in free if index not in matched_indexes}
    return origins


def list_edits_within(
    rules: Rules, data: Mapping[str, JSON], segments: Sequence[str], *, removed: bool
) -> dict[str, ListEdit]:
    """Return the list edits for setting or removing a value inside a list; other items keep their identity."""
    list_edits: dict[str, ListEdit] = {}
    for path in rules.lists:
        depth, old = len(path), len(_list_at(data, path))
        if tuple(segments[:depth]) != path or len(segments) == depth or not segments[depth].isdecimal():
            continue
        origins: list[int | None] = list(range(old))
        index, is_whole_item = int(segments[depth]), len(segments) == depth + 1
        if removed and is_whole_item:
            origins = [origin for origin in origins if origin != index]
        elif index == old:
            origins.append(None)
        list_edits[".".join(path)] = ListEdit(tuple(origins))
    return list_edits


def _canonical_json(item: JSON) -> str:
    return json.dumps(item, sort_keys=True, default=repr)


def _title_or_name(item: JSON) -> str | None:
    """Return the title or name of an item, which identifies the item even if its other fields change."""
    return item_label(item, "") or None


def _list_at(data: Mapping[str, JSON], path: Path) -> list[JSON]:
    return as_list(get_path(data, path))


def _check_origins(list_edit: ListEdit, old: int, new: int) -> None:
    known = [origin for origin in list_edit.origins if origin is not None]
    are_in_range = all(0 <= origin < old for origin in known)
    is_valid = are_in_range and len(list_edit.origins) == new and len(set(known)) == len(known)
    if not is_valid or not set(list_edit.again) <= set(known):
        raise MateriaError(
            "The origins of the items do not match the list.",
            hint="give the old index of each item, or None for a new item; use each index once, and include repeated items",
            kind="items",
        )


def _title(item: JSON) -> str:
    label = item if isinstance(item, str) else item_label(item, "") or json.dumps(item, default=repr)
    return label if len(label) <= 60 else label[:59] + "…"


def _quoted_titles(items: Sequence[JSON]) -> str:
    titles = ", ".join(repr(_title(item)) for item in items[:_MAX_LISTED_ITEMS])
    return f"{titles} and {len(items) - _MAX_LISTED_ITEMS} more" if len(items) > _MAX_LISTED_ITEMS else titles


def _moved_entries(entries: Iterable[_Entry], find_new_id: Callable[[ItemId], ItemId | None]) -> tuple[_Entry, ...]:
    """Return the records with the new ids of their items, without the records of removed items (R50)."""
    moved_entries: list[_Entry] = []
    for entry in entries:
        if entry.item is None or not entry.item[0]:
            moved_entries.append(entry)
        elif (new := find_new_id(entry.item)) is not None:
            moved_entries.append(entry._replace(item=new))
    return tuple(moved_entries)


def _moved_keys(records: Mapping[ItemId, _Value], moved: Callable[[ItemId], ItemId | None]) -> dict[ItemId, _Value]:
    return {new: record for item, record in records.items() if (new := moved(item)) is not None}


def _moved_extra(
    extra: Mapping[tuple[object, ...], int], moved: Callable[[ItemId], ItemId | None]
) -> Mapping[tuple[object, ...], int]:
    moved_keys: dict[tuple[object, ...], int] = {}
    for key, more in extra.items():
        if not isinstance(key[-1], tuple):
            moved_keys[key] = more
        elif (item := moved(key[-1])) is not None:
            moved_keys[*key[:-1], item] = more
    return FrozenDict(moved_keys)
