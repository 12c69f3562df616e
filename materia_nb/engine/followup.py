"""What sockets handed to those after them, and why work came back, as the state keeps it for prompts (R10, R22, R50)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from materia_nb.engine.items import lies_in
from materia_nb.engine.state import Answered, Draft, FollowUp, Handoff, Handoffs, Item, ItemId, Unrouted
from materia_nb.jsonvalue import JSON, FrozenDict
from materia_nb.loadout.vocabulary import WITHOUT_OUTPUT, Result

if TYPE_CHECKING:
    from materia_nb.loadout.graph import Socket

_REASON_CHARS: Final = 900
RENDERED_CHARS: Final = 2_400
KEPT: Final = 5
SCANNED: Final = 500
"""How many of the newest handoffs are looked at, so that a step does not cost more the longer a cast runs."""


def capture(
    follow_ups: tuple[FollowUp, ...],
    socket: Socket,
    target: str,
    item: Item | None,
    unrouted: Unrouted,
    step: int,
) -> tuple[FollowUp, ...]:
    """Add why ``socket`` was not satisfied; only the last five per item and target stay."""
    entry = FollowUp(
        socket.id,
        socket.materia.label,
        target,
        item.id if item else None,
        item.label if item else None,
        _reason(unrouted.context, unrouted.text),
        step,
    )
    same = [old for old in follow_ups if old.target == target and old.item == entry.item]
    dropped = same[0] if len(same) >= KEPT else None
    return (*(old for old in follow_ups if old is not dropped), entry)


def without_entries_of(follow_ups: tuple[FollowUp, ...], done: ItemId) -> tuple[FollowUp, ...]:
    """Drop the entries of an item that has advanced, and of those within it."""
    return tuple(entry for entry in follow_ups if not lies_in(entry.item, done))


def without_target(follow_ups: tuple[FollowUp, ...], target: str) -> tuple[FollowUp, ...]:
    """Drop the item-less entries for ``target``, which has dealt with them."""
    return tuple(entry for entry in follow_ups if entry.item is not None or entry.target != target)


def shown_to(follow_ups: tuple[FollowUp, ...], target: str, item: Item | None) -> list[FollowUp]:
    """Choose what ``target`` is told, oldest first, within 2,400 characters of reasons.

    The newest reasons are kept whole; the oldest one that is shown may be cut short.
    """
    matching = [
        entry
        for entry in follow_ups
        if entry.target == target and (entry.item is None or item is None or entry.item == item.id)
    ]
    room = RENDERED_CHARS
    chosen: list[FollowUp] = []
    for entry in reversed(matching):
        if room <= 0:
            break
        reason = cut_to(entry.reason, room)
        chosen.append(entry if reason == entry.reason else entry._replace(reason=reason))
        room -= len(reason)
    return chosen[::-1]


def _reason(context: str | None, output: str) -> str:
    line = " ".join(context.split()) if context else ""
    if line:
        return cut_to(line, _REASON_CHARS)
    excerpt = " ".join(output.split())
    if not excerpt:
        return "(no context and no output were given)"
    return cut_to(f"(no context was given; excerpt of the output) {excerpt}", _REASON_CHARS)


def cut_to(text: str, max_chars: int) -> str:
    """Cut ``text`` to at most ``most`` characters, the last one an ellipsis when something is left out."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


# -- handoffs ----------------------------------------------------------------------------------


def context_of(data: Mapping[str, JSON]) -> str:
    """Return the handoffs that the state holds as one text, empty where there are none (R10)."""
    context = data.get("context")
    return context if isinstance(context, str) and context.strip() else ""


def hand_over(draft: Draft, entry: Handoff) -> None:
    """Keep what an output hands over, as a record and in ``state.context`` (R10)."""
    before = context_of(draft.data)
    text = f"{before}\n\n{entry.line}" if before else entry.line
    draft.data = FrozenDict({**draft.data, "context": text})
    draft.handoffs = Handoffs((*records(draft.handoffs, before), entry), text)


def forget_refusals(draft: Draft, socket: str, item: ItemId | None) -> None:
    """Forget what a socket refused of an item, now that it is satisfied with it (R50); ``state.context`` keeps it."""
    _forget(draft, socket, item, Result.NO)
    draft.follow_up = tuple(
        follow_up._replace(settled=True)
        if (follow_up.source, follow_up.item) == (socket, item)
        else follow_up
        for follow_up in draft.follow_up
    )


def forget_failures(draft: Draft, socket: str, item: ItemId | None) -> None:
    """Forget why earlier visits of a socket to an item failed, now that one gave an output (R60)."""
    _forget(draft, socket, item, *WITHOUT_OUTPUT)


def _forget(draft: Draft, socket: str, item: ItemId | None, *results: Result) -> None:
    entries = draft.handoffs.entries
    older, newer = entries[:-SCANNED], entries[-SCANNED:]
    # A list, since this runs for each item over many entries, and a generator takes three times as long.
    remaining = [
        entry
        for entry in newer
        if entry.item != item or entry.socket != socket or entry.result not in results
    ]
    if len(remaining) < len(newer):
        draft.handoffs = draft.handoffs._replace(entries=(*older, *remaining))


def records(handoffs: Handoffs, context: str) -> tuple[Handoff, ...]:
    """Return the records that a context is made of; one that was set otherwise is a single record of unknown origin."""
    if context == handoffs.text:
        return handoffs.entries
    return (Handoff("", "as it was set", None, None, 0, Result.NOTHING, context),) if context else ()


def without_answers_of(
    answers: Mapping[tuple[str, ItemId | None], Answered], done: ItemId
) -> Mapping[tuple[str, ItemId | None], Answered]:
    """Drop the answers that were given for an item that has advanced, and for those within it."""
    if not any(lies_in(item, done) for _, item in answers):
        return answers
    return FrozenDict({key: answer for key, answer in answers.items() if not lies_in(key[1], done)})
