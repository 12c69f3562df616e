"""How a cast ended: what is odd about it (R45), and what it tells the next cast."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from materia_nb.engine.item_edits import entry_of
from materia_nb.engine.items import item_at, list_at, walked_by
from materia_nb.engine.routing import Decision, Passed
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState, ItemId
from materia_nb.errors import counted
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.vocabulary import SENDING_BACK, Result
from materia_nb.loadout.ways import reachable_from

RemarkCode: TypeAlias = Literal[
    "unanswered-verdict",
    "no-edge-matched",
    "exhausted-unmatched",
    "empty-loop",
    "never-worked-on",
    "same-again",
    "hollow-answer",
    "budget-blind",
]


_CODES: Final[tuple[RemarkCode, ...]] = get_args(RemarkCode)


class Remark(NamedTuple):
    """One thing to know about a cast that is complete.

    Attributes:
        code: what kind it is.
        message: what happened, in a sentence.
        socket: where.
        step: at which step; of a loop that was passed over, the step that was entered in its place.
        item: the key of the item that it is about, if any.
        sockets: of an empty loop, the sockets that only its exits lead to and that were not visited otherwise.
    """

    code: RemarkCode
    message: str
    socket: str | None = None
    step: int | None = None
    item: str | None = None
    sockets: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def as_json(self) -> dict[str, JSON]:
        """Return it as the journal keeps it: only the fields that say something."""
        given: dict[str, JSON] = {**self._asdict(), "sockets": list(self.sockets)}
        return {name: value for name, value in given.items() if value not in (None, [])}


def remarks(
    rules: Rules, decisions: Iterable[Decision], item_of: Callable[[Decision], ItemId | None]
) -> tuple[Remark, ...]:
    """Read the remarks off the decisions of a cast that is complete, in one pass.

    Args:
        rules: what the cast ran by.
        decisions: in order, those on the way into the sockets and to the end among them.
        item_of: which item a decision was about, as the lists are now; None for one that is gone.
    """
    found: list[Remark] = []
    open_verdicts: dict[ItemId, Remark] = {}
    last: Remark | None = None
    empty: list[tuple[Decision, Passed]] = []
    visited: set[str] = set()
    for one in decisions:
        empty += [(one, passed) for passed in one.passed if passed.empty]
        if one.socket is None:
            continue
        visited.add(one.socket)
        renewed = rules.sockets[one.socket].consumer_cursors
        if renewed:  # the items are new, and what was said of the old ones concerns nobody any more
            open_verdicts = {id_: one for id_, one in open_verdicts.items() if not walked_by(id_, renewed)}
        verdict = _unanswered(rules, one)
        last = verdict if one.item is None else None
        if one.item is not None:
            item = item_of(one)
            if item is not None:
                open_verdicts.pop(item, None)
            if verdict is not None and one.done:
                found.append(verdict)
            elif verdict is not None and item is not None:
                open_verdicts[item] = verdict
        found += _unmatched(rules, one)
    found += open_verdicts.values()
    found += [last] if last is not None else []
    found += _empty_loops(rules, empty, visited)
    return tuple(sorted(found, key=lambda remark: (remark.step or 0, _CODES.index(remark.code))))


def never_worked_on(rules: Rules, state: CastState, edited: Collection[str]) -> Iterator[Remark]:
    """Name the items that no visit of a complete cast was about (R46).

    Of lists that came to their end, and of those that a person changed, whose dotted paths are ``edited``.
    """
    for path, walks in rules.lists.items():
        begun = [walk for walk in walks if walk.iterator.cursor in state.cursors]
        by_hand = ".".join(path) in edited
        for walk in begun or (walks[:1] if by_hand else ()):
            cursor = walk.iterator.cursor
            outer = state.within.get(cursor, ())
            reached = state.cursors.get(cursor, 0)
            items = list_at(walk.iterator.items, state)
            for place in range(len(items)):
                id_ = (cursor, place, outer)
                behind = place < reached
                if id_ in state.items or (state.passed.get(id_) is not False if behind else not by_hand):
                    continue
                item = item_at(walk, items, place, outer)
                assert item is not None  # noqa: S101 - it is in the list
                message = (
                    f"{item.label} ({item.key}) was never worked on: the cast came to its end without it"
                )
                yield Remark("never-worked-on", message, entry_of(rules, walk), None, item.key)


def _unanswered(rules: Rules, one: Decision) -> Remark | None:
    """Say that an output was not satisfied and that nothing was done about it."""
    if one.result is not Result.NO or one.by in ("person", "detour", "return", "failure"):
        return None
    chosen = one.chosen
    if chosen is not None and chosen.when in SENDING_BACK:
        target = rules.graph.sockets.get(chosen.to)
        iterator = target.iterator if target else None
        same_list = iterator is not None and one.item is not None and iterator.cursor == one.item[0]
        if not (one.done and chosen.kind == "edge" and same_list):
            return None  # but for a retry that comes too late: it works on the next item
    about = f" about item {one.item_key} ({one.item_label})" if one.item_key is not None else ""
    message = (
        f"the last output{about}, of {one.socket}, says satisfied: false, and no edge or exit answered that"
    )
    return Remark("unanswered-verdict", message, one.socket, one.step, one.item_key)


def _unmatched(rules: Rules, one: Decision) -> list[Remark]:
    if one.by != "implied end" or one.socket is None:
        return []
    about = (one.socket, one.step, one.item_key)
    socket, loops = rules.graph.sockets[one.socket], rules.graph.loops
    if not one.exhausted and socket.edges:
        return [
            Remark("no-edge-matched", f"no edge of {one.socket} matched, so the cast ended there", *about)
        ]
    if one.exhausted and any(loops[loop].routes for loop in socket.loops):
        message = f"{one.socket} exhausted its list and no exit matched, so the cast ended there"
        return [Remark("exhausted-unmatched", message, *about)]
    return []


def _empty_loops(rules: Rules, empty: list[tuple[Decision, Passed]], visited: set[str]) -> list[Remark]:
    behind: dict[str, tuple[str, ...]] = {}
    found = []
    for decision, passed in empty:
        never: tuple[str, ...] = ()
        if passed.loop is not None:
            if passed.loop not in behind:
                behind[passed.loop] = _only_behind(rules, passed.loop)
            never = tuple(socket for socket in behind[passed.loop] if socket not in visited)
        what = f"loop {passed.loop}" if passed.loop is not None else passed.socket
        skipped = f"; {', '.join(never)} never ran" if never else ""
        message = f"{what} was passed over, because its list is empty{skipped}"
        found.append(Remark("empty-loop", message, passed.socket, decision.step, None, never))
    return found


def _only_behind(rules: Rules, loop: str) -> tuple[str, ...]:
    """The sockets that can be reached from the entry only over the exits of a loop."""
    behind = _from_entry(rules) - _from_entry(rules, loop)
    return tuple(socket for socket in rules.graph.sockets if socket in behind)


def _from_entry(rules: Rules, but: str | None = None) -> set[str]:
    graph = rules.graph
    ways = {socket.id: [edge.to for edge in socket.edges] for socket in graph.sockets.values()}
    for loop in graph.loops.values():
        for route in loop.routes if loop.id != but else ():
            ways[route.source].append(route.target)
    return reachable_from([graph.entry], ways)


def blind_remarks(state: CastState) -> tuple[Remark, ...]:
    """Say what the budget of a cast could not count (R56)."""
    usage = state.usage
    missing = {"tokens": usage.uncounted, "cost": usage.unpriced}
    return tuple(
        Remark(
            "budget-blind",
            f"nobody reported the {one.of} of {counted(missing[one.of], 'turn')}, so the budget could not count them",
            one.socket,
            one.step,
        )
        for one in state.blind
    )


PREVIOUS: Final = "previous"
"""The name in the state under which a cast finds what an earlier one tells it."""

LONGEST_REQUEST: Final = 2_000
LONGEST_OUTPUT: Final = 4_000
LONGEST_CONTEXT: Final = 4_000
MOST_TITLES: Final = 50
LONGEST_TITLE: Final = 200
"""Characters, and titles of work items, that are handed on at most."""


def told_to_the_next(state: CastState, cast_id: str, loadout: str) -> dict[str, JSON]:
    """Return what ``state`` tells a later cast.

    Of the output the beginning is kept, of the context the end, since its latest entries are there.

    Args:
        state: where the earlier cast stands.
        cast_id: its id.
        loadout: the name of its loadout.
    """
    told: dict[str, JSON] = {
        "cast": cast_id,
        "loadout": loadout,
        "status": state.status,
        "request": _beginning(state.request, LONGEST_REQUEST),
    }
    if state.last_output:
        told["lastOutput"] = _beginning(state.last_output, LONGEST_OUTPUT)
    context = state.data.get("context")
    if isinstance(context, str) and context.strip():
        cut = len(context) > LONGEST_CONTEXT
        told["context"] = "…" + context[1 - LONGEST_CONTEXT :] if cut else context
    items = state.data.get("workItems")
    if isinstance(items, list) and items:
        titles = [item.get("title") for item in items[:MOST_TITLES] if isinstance(item, dict)]
        told["workItems"] = [_beginning(title, LONGEST_TITLE) for title in titles if isinstance(title, str)]
    return told


def _beginning(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
