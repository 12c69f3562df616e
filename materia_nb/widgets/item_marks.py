"""The work items of a cast for the table that edits them: what they are, and how each stands."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from materia_nb.engine import step as engine
from materia_nb.engine.edit import WORK_ITEMS
from materia_nb.engine.state import CastState, Item
from materia_nb.errors import MateriaError
from materia_nb.handoff import Issue, item_issues
from materia_nb.jsonvalue import JSON, compact

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot

MOST_ITEMS: Final = 10_000


def items_state(cast: Snapshot, *, alive: bool, busy: bool, undo: bool = False) -> dict[str, Any]:
    """Return the work items with how far the cast is in them.

    Args:
        cast: whose.
        alive: whether they can be changed here.
        busy: whether a step runs, during which they cannot.
        undo: whether the last edit of the cast can be taken back.
    """
    items = cast.work_items
    done, current = _progress(cast)
    return {
        "items": [texts(one) for one in items[:MOST_ITEMS]],
        "more": max(0, len(items) - MOST_ITEMS),
        "base": base_of(items),
        "done": done,
        "current": current,
        "can": alive and not busy and len(items) <= MOST_ITEMS,
        "busy": busy,
        "undo": undo,
        "lists": any(loop.iterator is not None for loop in cast.graph.loops.values()),
    }


def base_of(items: Sequence[JSON]) -> str:
    """Name a list of items by what is in it, so that edits of another list are known as such."""
    return sha256(compact(list(items)).encode("utf-8", "replace")).hexdigest()[:16]


def texts(item: JSON) -> list[str]:
    """Title and context as they can be edited; what is not an item with two texts as JSON."""
    if not isinstance(item, dict):
        return [item if isinstance(item, str) else compact(item), ""]
    return [
        value if isinstance(value := item.get(name, ""), str) else compact(value)
        for name in ("title", "context")
    ]


def rebuilt(
    given: object, items: Sequence[JSON], *, known: bool
) -> tuple[list[JSON], list[int | None] | None]:
    """Read the rows that a table was applied with, each title, context and the index that it came from.

    Args:
        given: rows of ``[title, context, index or null]``.
        items: the items of the cast.
        known: whether the rows were read from these items, so that their indices mean something.

    Raises:
        MateriaError: they are no such rows (``bad_message``).
    """
    if not isinstance(given, list) or len(given) > MOST_ITEMS:
        raise MateriaError(
            "The rows of the items cannot be read.", hint="reload the page", kind="bad_message"
        )
    made: list[JSON] = []
    origins: list[int | None] = []
    for row in given:
        title, context, origin = (*row, None, None, None)[:3] if isinstance(row, list) else (None, None, None)
        if not isinstance(title, str) or not isinstance(context, str):
            raise MateriaError("A row has no title or context.", hint="reload the page", kind="bad_message")
        there = type(origin) is int and 0 <= origin < len(items)
        value: JSON = {"title": title, "context": context}
        if known and there and texts(items[origin]) == [title, context]:
            value = items[origin]  # as it was read, where nothing in it was changed
        made.append(value)
        origins.append(origin if there else None)
    return made, origins if known else None


def issues_of(items: list[JSON]) -> list[Issue]:
    """What breaks the rules of work items (R9)."""
    return list(item_issues(items, "workItems"))


def _upcoming(cast: Snapshot) -> Item | None:
    """The item that is worked on, or that the next socket would work on; None outside items."""
    state: CastState = cast.engine
    if state.status == "ready" and state.next is not None:
        state = engine.enter(cast.rules, state).state
    return state.at.item if state.status in ("waiting", "held") and state.at is not None else None


def _progress(cast: Snapshot) -> tuple[int, int | None]:
    """How many work items are done, and which one is worked on or comes next."""
    loops = [loop.iterator for loop in cast.graph.loops.values() if loop.iterator is not None]
    done = [cast.engine.cursors.get(one.cursor, 0) for one in loops if one.items == WORK_ITEMS]
    item = _upcoming(cast)
    current = item.position if item is not None and item.key == f"WI-{item.position + 1}" else None
    return max(done, default=0), current
