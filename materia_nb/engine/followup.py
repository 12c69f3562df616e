"""Follow-up context: why work came back, kept for whoever has to redo it (R22)."""

from __future__ import annotations

from typing import Final

from materia_nb.engine.items import lies_in
from materia_nb.engine.state import FollowUp, Item, ItemId
from materia_nb.loadout.graph import Socket

REASON_CHARS: Final = 900
RENDERED_CHARS: Final = 2_400
KEPT: Final = 5


def capture(
    kept: tuple[FollowUp, ...],
    socket: Socket,
    target: str,
    item: Item | None,
    context: str | None,
    output: str,
) -> tuple[FollowUp, ...]:
    """Add why ``socket`` was not satisfied; only the last five per item and target stay."""
    entry = FollowUp(
        socket.id,
        socket.materia.label,
        target,
        item.id if item else None,
        item.label if item else None,
        _reason(context, output),
    )
    same = [old for old in kept if old.target == target and old.item == entry.item]
    dropped = same[0] if len(same) >= KEPT else None
    return (*(old for old in kept if old is not dropped), entry)


def without_item(kept: tuple[FollowUp, ...], done: ItemId) -> tuple[FollowUp, ...]:
    """Drop the entries of an item that has advanced, and of those within it."""
    return tuple(entry for entry in kept if not lies_in(entry.item, done))


def without_target(kept: tuple[FollowUp, ...], target: str) -> tuple[FollowUp, ...]:
    """Drop the item-less entries for ``target``, which has dealt with them."""
    return tuple(entry for entry in kept if entry.item is not None or entry.target != target)


def shown_to(kept: tuple[FollowUp, ...], target: str, item: Item | None) -> list[FollowUp]:
    """Choose what ``target`` is told, oldest first, within 2,400 characters of reasons.

    The newest reasons are kept whole; the oldest one that is shown may be cut short.
    """
    matching = [
        entry
        for entry in kept
        if entry.target == target and (entry.item is None or item is None or entry.item == item.id)
    ]
    room = RENDERED_CHARS
    chosen: list[FollowUp] = []
    for entry in reversed(matching):
        if room <= 0:
            break
        reason = cut(entry.reason, room)
        chosen.append(entry if reason == entry.reason else entry._replace(reason=reason))
        room -= len(reason)
    return chosen[::-1]


def _reason(context: str | None, output: str) -> str:
    said = " ".join(context.split()) if context else ""
    if said:
        return cut(said, REASON_CHARS)
    excerpt = " ".join(output.split())
    if not excerpt:
        return "(no context and no output were given)"
    return cut(f"(no context was given; excerpt of the output) {excerpt}", REASON_CHARS)


def cut(text: str, most: int) -> str:
    """Cut ``text`` to at most ``most`` characters, the last one an ellipsis when something is left out."""
    return text if len(text) <= most else text[: most - 1] + "…"
