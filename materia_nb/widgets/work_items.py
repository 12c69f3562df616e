"""The table of work items: the status of each item, and the list that an edited table represents."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from materia_nb.display.escape import part
from materia_nb.engine.item_edits import WORKED_ON, ListEdit, lay_out, origins_of
from materia_nb.engine.items import Standing
from materia_nb.errors import MateriaError
from materia_nb.handoff import Issue, item_issues
from materia_nb.handoff.jsontext import as_text
from materia_nb.jsonvalue import JSON, compact, frozen, same
from materia_nb.loadout.vocabulary import WORK_ITEMS

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.widgets.messages import ItemRow

_TEXT_CHARS: Final = 1_000
_MOST_ITEMS: Final = 10_000
_ITEMS_CHARS: Final = 400_000
"""Characters of all items together that a page is sent, and with it a saved notebook; longer texts are shortened."""
_LEAST_CHARS: Final = 80


def items_state(cast: Snapshot, *, busy: bool) -> dict[str, Any]:
    """Return the work items with how far the cast is in them.

    Args:
        cast: whose.
        busy: whether a step runs, during which they cannot be changed.
    """
    items, standings = cast.work_items, cast.standings
    at = cast.engine.at
    limit = min(_TEXT_CHARS, max(_LEAST_CHARS, _ITEMS_CHARS // (2 * len(items) or 1)))
    return {
        "items": [_shortened(texts(item), limit) for item in items[:_MOST_ITEMS]],
        "more": max(0, len(items) - _MOST_ITEMS),
        "base": json_digest(items),
        "stands": standings[:_MOST_ITEMS],
        "lanes": {
            str(index): f"{part(lane.name, 40)}, {lane.status}" for index, lane in cast.lane_of_item.items()
        },
        "done": standings.count("done"),
        "current": _current(cast, standings),
        "at": at.socket if at is not None and at.item is not None else None,
        "can": cast.writable and not busy and len(items) <= _MOST_ITEMS and not cast.lanes_go_on,
        "frozen": cast.lanes_go_on,
        "busy": busy,
        "undo": cast.can_undo and not busy,
        "lists": any(loop.iterator is not None for loop in cast.graph.loops.values()),
    }


def _shortened(texts: list[str], limit: int) -> list[str | int]:
    """Return texts shortened to ``limit`` characters; if any text is longer, also the length of each longer text, else 0."""
    cut = [len(text) if len(text) > limit else 0 for text in texts]
    return [*(text[:limit] for text in texts), *(cut if any(cut) else ())]


def json_digest(value: JSON) -> str:
    """Return a digest of a value, such as of the list of items that edits were made from."""
    return sha256(compact(value).encode("utf-8", "surrogatepass")).hexdigest()[:32]


_TEXTS: Final = ("title", "context")


def texts(item: JSON) -> list[str]:
    """Return title and context as editable texts; any other value as JSON."""
    if not isinstance(item, dict):
        return [as_text(item), ""]
    return [as_text(item.get(name, "")) for name in _TEXTS]


EditedItems: TypeAlias = tuple[list[JSON], list[int | None] | None]
"""The items that the rows of a table make, and which of those before each is; None where that is not known."""


def edited_items(rows: Sequence[ItemRow], items: Sequence[JSON], read: Sequence[JSON] | None) -> EditedItems:
    """Return the items that the rows of a table represent, and the origin of each.

    Args:
        rows: as the table has them; a text that the page has only in part, and did not change, is None.
        items: the items of the cast.
        read: the items that the rows were read from, None if that is not known; the indices mean something if they are the same.

    Raises:
        MateriaError: a text is missing that is not known (``outdated``).
    """
    new_items: list[JSON] = []
    origins: list[int | None] = []
    for title, context, index, _ in rows:
        origin = index if read is not None and index is not None and index < len(read) else None
        before = None if read is None or origin is None else read[origin]
        olds = [None, None] if origin is None else texts(before)
        typed = [old if text is None else text for text, old in zip((title, context), olds, strict=True)]
        if None in typed:
            problem = "Nothing was done: the list that these items come from is no longer known."
            raise MateriaError(problem, hint="revert, then edit the list as it is now", kind="outdated")
        new_items.append(
            before if olds == typed else dict(zip(_TEXTS, typed, strict=True))
        )  # as it was read, if not changed
        origins.append(origin)
    return new_items, origins if read is not None and same(list(read), list(items)) else None


def items_to_redo(
    rows: Sequence[ItemRow], origins: Sequence[int | None] | None, *, abandon: bool
) -> tuple[list[int], bool]:
    """Return the items that a table asks to redo, and True if the current item is abandoned."""
    marked = zip(rows, origins or (), strict=False)
    origins_again = [origin for row, origin in marked if origin is not None and row.again]
    return origins_again, abandon and origins is not None


def preview_edit(
    cast: Snapshot,
    items: list[JSON],
    origins: Sequence[int | None] | None,
    again: Sequence[int],
    abandon: bool,
) -> tuple[list[str], list[int] | None]:
    """Return the effects of applying a list, and the order of its rows, or None if it would be refused."""
    known = origins_of(cast.work_items, items) if origins is None else origins
    edits = {WORK_ITEMS: ListEdit(tuple(known), tuple(again), abandon)}
    items = [frozen(item) for item in items]  # laid out as they are, so each is found again by its identity
    try:
        laid = lay_out(cast.rules, cast.engine, {**cast.state, WORK_ITEMS: items}, edits)
    except MateriaError as error:
        return [str(error)], None
    positions = {id(item): index for index, item in enumerate(items)}
    return list(laid.said), [positions[id(item)] for item in laid.data[WORK_ITEMS]]


def list_issues(items: list[JSON]) -> list[Issue]:
    """Return the violations of the rules of work items (R9)."""
    return list(item_issues(items, "workItems"))


def _current(cast: Snapshot, standings: Sequence[Standing]) -> int | None:
    """Return the index of the current item, else of the next one; None outside items."""
    if WORKED_ON in standings:
        return standings.index(WORKED_ON)
    item = cast.upcoming_item
    return item.position if item is not None and item.key == f"WI-{item.position + 1}" else None
