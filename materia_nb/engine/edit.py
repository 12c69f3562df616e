"""What a person changes between steps: work items, the state, an output, the place to go on from.

An edit is an event like any other. These functions are as pure as the transitions,
so a journal with edits rebuilds the same states.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from materia_nb.engine import entering, outputs
from materia_nb.engine.items import item_at, list_at, places, show, show_only
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.routing import Step
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState, Draft, FollowUp, ItemId, Place, Usage
from materia_nb.errors import MateriaError
from materia_nb.handoff import item_issues
from materia_nb.handoff.protocol import RefusedAnswer, in_brief
from materia_nb.jsonvalue import JSON, compact, same

Origins: TypeAlias = Sequence[int | None]
"""For each item of a new list, where it stood in the old one; None for a new item."""

_COMPARED: Final = 20_000
"""Lists of more characters of JSON are replaced as a whole in a patch."""

WORK_ITEMS = "state.workItems"


def check_items(items: JSON) -> None:
    """Refuse a list that breaks the rules of work items, naming every issue (R9)."""
    issues = list(item_issues(items, "workItems"))
    if issues:
        raise MateriaError(
            f"The work items were not changed. {in_brief(issues)}",
            where=issues[0].path,
            hint=issues[0].fix,
            kind="items",
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
    for cursor in _cursors(rules):
        _move(draft, cursor, origins, old)
    _move_current(draft, items, origins)
    return draft.done()


def _is_mapping(origins: Origins, old: int) -> bool:
    known = [origin for origin in origins if origin is not None]
    return len(set(known)) == len(known) and all(0 <= origin < old for origin in known)


def _cursors(rules: Rules) -> set[str]:
    """The cursors that walk the work items."""
    found = [here.socket.iterator for here in rules.sockets.values()]
    return {iterator.cursor for iterator in found if iterator and iterator.items == WORK_ITEMS}


def _move(draft: Draft, cursor: str, origins: Origins, old: int) -> None:
    new_place = {origin: place for place, origin in enumerate(origins) if origin is not None}
    if cursor in draft.cursors:
        draft.cursors = {**draft.cursors, cursor: _cursor_after(draft.cursors[cursor], new_place, old)}

    def moved(walk: tuple[Place, ...]) -> tuple[Place, ...] | None:
        """Where the items at these places are now; None when one of them was removed."""
        if any(name == cursor and place not in new_place for name, place in walk):
            return None
        return tuple((name, new_place[place] if name == cursor else place) for name, place in walk)

    def moved_item(item: ItemId) -> ItemId | None:
        walk = moved(places(item))
        return None if walk is None else (*walk[-1], walk[:-1])

    draft.items = {to: record for item, record in draft.items.items() if (to := moved_item(item)) is not None}
    draft.follow_up = _moved_follow_up(draft.follow_up, moved_item)
    draft.extra = _moved_extra(draft.extra, moved_item)
    draft.within = {name: new for name, walk in draft.within.items() if (new := moved(walk)) is not None}


def _cursor_after(cursor: int, new_place: Mapping[int, int], old: int) -> int:
    for origin in range(cursor, old):
        if origin in new_place:
            return new_place[origin]
    done = [place for origin, place in new_place.items() if origin < cursor]
    return max(done) + 1 if done else 0


def _moved_follow_up(
    kept: tuple[FollowUp, ...], moved: Callable[[ItemId], ItemId | None]
) -> tuple[FollowUp, ...]:
    found: list[FollowUp] = []
    for entry in kept:
        if entry.item is None:
            found.append(entry)
        elif (new := moved(entry.item)) is not None:
            found.append(entry._replace(item=new))
    return tuple(found)


def _moved_extra(
    extra: Mapping[tuple[object, ...], int], moved: Callable[[ItemId], ItemId | None]
) -> Mapping[tuple[object, ...], int]:
    found: dict[tuple[object, ...], int] = {}
    for key, more in extra.items():
        if not isinstance(key[-1], tuple):
            found[key] = more
        elif (item := moved(key[-1])) is not None:
            found[*key[:-1], item] = more
    return found


def _move_current(draft: Draft, items: list[JSON], origins: Origins) -> None:
    """Keep showing the items that a waiting socket works on, the work item under its new key."""
    visit = draft.at
    if draft.status not in ("waiting", "held") or visit is None or visit.item is None:
        return
    if not any(one.walk.iterator.items == WORK_ITEMS for one in draft.shown):
        return
    before = draft.shown
    show_only(draft)
    outer: tuple[Place, ...] = ()
    item = None
    for one in before:
        iterator, place = one.walk.iterator, one.item.position
        if iterator.items == WORK_ITEMS:
            place = list(origins).index(place) if place in origins else len(items)
        found = item_at(one.walk, list_at(iterator.items, draft, item), place, outer)
        if found is None:
            raise MateriaError(
                f"{visit.socket} is working on the item {one.item.key}, which cannot be removed now.",
                hint="answer or abort first, or change the item",
                kind="busy",
            )
        item = found
        show(draft, one.walk, item)
        outer = places(item.id)
    draft.at = visit._replace(item=item)


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
    return entering.prompt_for(rules, state)


def edit_data(state: CastState, data: Mapping[str, JSON]) -> CastState:
    """Replace the state's data; cursors stay where they are."""
    return state._replace(data=data)


def recommit(
    rules: Rules, before: CastState, latest: CastState, text: str, artifact: str | None = None
) -> Step:
    """Decide the last step again with a corrected output, validated as the agent's would be.

    ``before`` is the state in front of the step, ``latest`` the present one, and ``artifact`` where the output is
    kept; tokens stay used.
    """
    entered = entering.enter(rules, before)
    visit = entered.state.at
    if entered.state.status != "waiting" or visit is None:
        raise MateriaError("The last step cannot be decided again.", kind="recommit")
    here = rules.sockets[visit.socket]
    mode = "final" if visit.mode in here.any_text else visit.mode
    waiting = entered.state._replace(
        usage=latest.usage,
        warned=latest.warned,
        budget=latest.budget,
        told=latest.told,
        at=visit._replace(mode=mode),
    )
    reading = here.protocol.read(text, here.wanted)
    if reading.error is not None:
        raise RefusedAnswer("The corrected output was not taken.", reading.issues, "recommit")
    return outputs.output(rules, waiting, text, Usage(), entered.prompt, artifact=artifact)


def back_to(earlier: CastState, latest: CastState) -> CastState:
    """Go back to the state after an earlier step; tokens stay used, the budget stays as it is."""
    if earlier.status not in ("ready", "complete"):
        raise MateriaError(
            "The cast did not go on from that step.", hint="choose the step before it", kind="back"
        )
    return earlier._replace(usage=latest.usage, warned=latest.warned, budget=latest.budget, told=latest.told)


def patch_between(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], ...]:
    """Return the JSON Patch (RFC 6902) that makes ``after`` of ``before``."""
    return tuple(_changes(before, after, ""))


def _changes(before: Mapping[str, JSON], after: Mapping[str, JSON], path: str) -> Iterator[dict[str, JSON]]:
    """Compare object by object; of lists only short ones item by item, since that takes the square of their length."""
    import jsonpatch

    for key in [*before, *(key for key in after if key not in before)]:
        here = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in after:
            yield {"op": "remove", "path": here}
            continue
        new = after[key]
        if key not in before:
            yield {"op": "add", "path": here, "value": new}
            continue
        old = before[key]
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _changes(old, new, here)
        elif not same(old, new):
            if _is_short_list(old) and _is_short_list(new):
                items = jsonpatch.make_patch({"": old}, {"": new}).patch
                yield from (_below(here, change) for change in items)
            else:
                yield {"op": "replace", "path": here, "value": new}


def _below(path: str, change: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return a change of ``/`` as one of ``path``."""
    return {
        name: path + value.removeprefix("/") if name in ("path", "from") else value
        for name, value in change.items()
    }


def _is_short_list(value: JSON) -> bool:
    return isinstance(value, list) and len(compact(value)) <= _COMPARED


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
    places: dict[str, deque[int]] = {}
    for index, known in enumerate(old):
        places.setdefault(_written(known), deque()).append(index)
    found: list[int | None] = []
    for item in new:
        equal = places.get(_written(item))
        place = equal.popleft() if equal else None
        found.append(place)
        if place is not None:
            del free[place]
    for index, place in enumerate(found):
        if place is None and index in free and _alike(free[index], new[index]):
            found[index] = index
            del free[index]
    return found


def _written(item: JSON) -> str:
    """Write an item so that equal ones are written alike; what is no JSON, and is refused later, somehow."""
    return json.dumps(item, sort_keys=True, default=repr)


def _alike(a: JSON, b: JSON) -> bool:
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return False
    return same(a.get("title"), b.get("title")) or same(a.get("context"), b.get("context"))
