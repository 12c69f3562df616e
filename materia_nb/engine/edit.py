"""What a person changes between steps: work items, the state, an output, the place to go on from.

An edit is an event like any other. These functions are as pure as the transitions,
so a journal with edits rebuilds the same states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from materia_nb.engine import step as engine
from materia_nb.engine.items import item_label, with_aliases, without_aliases
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState, Draft, FollowUp, Item, ItemId, Usage
from materia_nb.errors import MateriaError
from materia_nb.handoff import item_issues
from materia_nb.jsonvalue import JSON, same
from materia_nb.loadout.graph import Iterator

Origins: TypeAlias = Sequence[int | None]
"""For each item of a new list, where it stood in the old one; None for a new item."""

WORK_ITEMS = "state.workItems"


def check_items(items: JSON) -> None:
    """Refuse a list that breaks the rules of work items, naming every issue (R9)."""
    issues = list(item_issues(items, "workItems"))
    if issues:
        told = "; ".join(f"{issue.path}: {issue.message}" for issue in issues[:8])
        raise MateriaError(
            f"The work items were not changed. {told}", where=issues[0].path, hint=issues[0].fix, kind="items"
        )


def edit_items(rules: Rules, state: CastState, items: list[JSON], origins: Origins) -> CastState:
    """Replace the work items; cursors, budgets and follow-up go with the items they belong to (R13).

    A cursor stays at the item it was at. When that item is removed the next one becomes
    current; when none is left the loop is empty at its next entry.

    Raises:
        MateriaError: an item breaks R9; or the item that a socket is working on was removed.
    """
    check_items(items)
    before = state.data.get("workItems")
    old = len(before) if isinstance(before, list) else 0
    if len(origins) != len(items) or not _is_mapping(origins, old):
        raise MateriaError("The places that the items came from do not fit the list.", kind="items")
    draft = Draft(state)
    draft.data = {**state.data, "workItems": items}
    for iterator in _iterators(rules):
        _move(draft, iterator.cursor, origins, old)
    _move_current(rules, draft, items, origins)
    return draft.done()


def _is_mapping(origins: Origins, old: int) -> bool:
    known = [origin for origin in origins if origin is not None]
    return len(set(known)) == len(known) and all(0 <= origin < old for origin in known)


def _iterators(rules: Rules) -> list[Iterator]:
    found = {
        here.socket.iterator.cursor: here.socket.iterator
        for here in rules.sockets.values()
        if here.socket.iterator is not None and here.socket.iterator.items == WORK_ITEMS
    }
    return list(found.values())


def _move(draft: Draft, cursor: str, origins: Origins, old: int) -> None:
    new_place = {origin: place for place, origin in enumerate(origins) if origin is not None}
    if cursor in draft.cursors:
        draft.cursors = {**draft.cursors, cursor: _cursor_after(draft.cursors[cursor], new_place, old)}

    def moved(item: ItemId | None) -> ItemId | None:
        if item is None or item[0] != cursor:
            return item
        place = new_place.get(item[1])
        return None if place is None else (cursor, place)

    draft.items = {new: record for item, record in draft.items.items() if (new := moved(item)) is not None}
    draft.follow_up = _moved_follow_up(draft.follow_up, cursor, new_place)
    draft.extra = _moved_extra(draft.extra, cursor, new_place)


def _cursor_after(cursor: int, new_place: Mapping[int, int], old: int) -> int:
    for origin in range(cursor, old):
        if origin in new_place:
            return new_place[origin]
    done = [place for origin, place in new_place.items() if origin < cursor]
    return max(done) + 1 if done else 0


def _moved_follow_up(
    kept: tuple[FollowUp, ...], cursor: str, new_place: Mapping[int, int]
) -> tuple[FollowUp, ...]:
    moved: list[FollowUp] = []
    for entry in kept:
        if entry.item is None or entry.item[0] != cursor:
            moved.append(entry)
        elif entry.item[1] in new_place:
            moved.append(entry._replace(item=(cursor, new_place[entry.item[1]])))
    return tuple(moved)


def _moved_extra(
    extra: Mapping[tuple[object, ...], int], cursor: str, new_place: Mapping[int, int]
) -> Mapping[tuple[object, ...], int]:
    moved: dict[tuple[object, ...], int] = {}
    for key, more in extra.items():
        item = key[-1]
        if not (isinstance(item, tuple) and item[0] == cursor):
            moved[key] = more
        elif item[1] in new_place:
            moved[(*key[:-1], (cursor, new_place[item[1]]))] = more
    return moved


def _move_current(rules: Rules, draft: Draft, items: list[JSON], origins: Origins) -> None:
    """Keep showing the item that a waiting socket works on, under its new key."""
    visit = draft.at
    if draft.status not in ("waiting", "held") or visit is None or visit.item is None:
        return
    iterator = rules.sockets[visit.socket].socket.iterator
    if iterator is None or iterator.items != WORK_ITEMS:
        return
    if visit.item.position not in origins:
        raise MateriaError(
            f"{visit.socket} is working on the item {visit.item.key}, which cannot be removed now.",
            hint="answer or abort first, or change the item",
            kind="busy",
        )
    place = list(origins).index(visit.item.position)
    key = f"WI-{place + 1}" if iterator.numbered_as_work_items else str(place)
    item = Item(items[place], key, item_label(items[place], key), place, iterator.cursor, iterator.loop)
    draft.at = visit._replace(item=item)
    draft.data, draft.aliases = without_aliases(draft), ()
    draft.data, draft.aliases = with_aliases(draft.data, iterator, item)


def prompt_after(rules: Rules, state: CastState) -> Prompt | None:
    """What a waiting agent is asked after an edit; None where its turn stays as it was."""
    visit = state.at
    if (
        state.status != "waiting"
        or visit is None
        or visit.turn
        or rules.sockets[visit.socket].socket.is_utility
    ):
        return None
    return engine.prompt_for(rules, state)


def edit_data(state: CastState, data: Mapping[str, JSON]) -> CastState:
    """Replace the state's data; cursors stay where they are."""
    return state._replace(data=data)


def recommit(rules: Rules, before: CastState, latest: CastState, text: str) -> engine.Step:
    """Decide the last step again with a corrected output, validated as the agent's would be.

    ``before`` is the state in front of the step, ``latest`` the present one; tokens stay used.
    """
    entered = engine.enter(rules, before)
    visit = entered.state.at
    if entered.state.status != "waiting" or visit is None:
        raise MateriaError("The last step cannot be decided again.", kind="recommit")
    here = rules.sockets[visit.socket]
    mode = "final" if here.any_text(visit.mode) else visit.mode
    waiting = entered.state._replace(
        usage=latest.usage, warned=latest.warned, budget=latest.budget, at=visit._replace(mode=mode)
    )
    reading = here.protocol.read(text, here.wanted)
    if reading.error is not None:
        told = "; ".join(f"{issue.path}: {issue.message}" for issue in reading.issues[:8])
        raise MateriaError(
            f"The corrected output was not taken. {told}",
            where=reading.issues[0].path,
            hint=reading.issues[0].fix,
            kind="recommit",
        )
    return engine.output(rules, waiting, text, Usage(), entered.prompt)


def back_to(earlier: CastState, latest: CastState) -> CastState:
    """Go back to the state after an earlier step; tokens stay used, the budget stays as it is."""
    if earlier.status not in ("ready", "complete"):
        raise MateriaError(
            "The cast did not go on from that step.", hint="choose the step before it", kind="back"
        )
    return earlier._replace(usage=latest.usage, warned=latest.warned, budget=latest.budget)


def patch_between(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], ...]:
    """Return the JSON Patch (RFC 6902) that makes ``after`` of ``before``."""
    import jsonpatch

    return tuple(jsonpatch.make_patch(dict(before), dict(after)).patch)


def patched(data: Mapping[str, JSON], patch: Sequence[Mapping[str, JSON]]) -> Mapping[str, JSON]:
    """Return the data that a JSON Patch makes of ``data``.

    Raises:
        MateriaError: the patch does not fit (``damaged_journal``).
    """
    import jsonpatch
    import jsonpointer

    try:
        made: Mapping[str, JSON] = jsonpatch.apply_patch(dict(data), [dict(one) for one in patch])
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, KeyError, TypeError) as error:
        raise MateriaError(
            f"A change of the state does not fit the state that it was made in: {error}.",
            hint="the journal or an output of this cast was changed or lost",
            kind="damaged_journal",
        ) from error
    return made


def origins_of(old: Sequence[JSON], new: Sequence[JSON]) -> list[int | None]:
    """Where each new item stood: equal items first, in order; then those at the same place with the same title."""
    free = dict(enumerate(old))
    found: list[int | None] = []
    for item in new:
        place = next((index for index, known in free.items() if same(known, item)), None)
        found.append(place)
        if place is not None:
            del free[place]
    for index, place in enumerate(found):
        if place is None and index in free and _alike(free[index], new[index]):
            found[index] = index
            del free[index]
    return found


def _alike(a: JSON, b: JSON) -> bool:
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return False
    return same(a.get("title"), b.get("title")) or same(a.get("context"), b.get("context"))
