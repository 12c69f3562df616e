"""Verbs about several casts: link runs loadouts one behind the other, quest works through a board of requests."""

from __future__ import annotations

from typing import Any, Final

from materia_nb import tables, views
from materia_nb.errors import MateriaError
from materia_nb.magics.registry import Argument, Call, verb


@verb(
    "link",
    Argument(
        "--from", "an earlier cast, whose context the state gets as previous", "option", completes="cast"
    ),
    Argument(
        "parts",
        "loadouts and materia in their order; loadout:NAME or materia:NAME where a name means both",
        "words",
        required=True,
        completes="part",
    ),
    Argument("request", "what is asked for; or in the cell", "rest"),
    cell="may",
    example="%materia link Planning-Consult Full-Auto -- ship the widget",
)
def link(call: Call) -> Any:
    """Start a cast of loadouts and materia one behind the other; buttons, step or run go on with it."""
    request = str(call.get("request") or "")
    if call.body is not None:
        request = f"{request}\n{call.body.strip()}".strip()
    if not request:
        raise MateriaError(
            "The request is missing.", hint="write it behind --: link A B -- request", kind="usage"
        )
    return call.bench.link(*map(str, call.get("parts")), request=request, from_cast=call.get("from"))


ACTIONS: Final = ("add", "list", "run", "move", "remove", "requeue")


@verb(
    "quest",
    Argument(
        "--loadout",
        "for add: what it is cast with; else the one that is chosen then",
        "option",
        completes="loadout",
    ),
    Argument("action", f"{', '.join(ACTIONS)}; a panel with buttons if left out", choices=ACTIONS),
    Argument(
        "words",
        "add: the request; run: how many, all if left out; move: QUEST and top, up, down, bottom or a place; "
        "remove, requeue: QUEST",
        "rest",
    ),
    cell="may",
    example="%materia quest add ship the widget\n%materia quest move 2 top\n%materia quest run",
)
def quest(call: Call) -> Any:
    """Work with the board of requests of this project, which are cast one after another."""
    board, action = call.bench.quests, call.get("action")
    words = str(call.get("words") or "")
    if call.body is not None and action != "add":
        raise MateriaError(
            "Only quest add takes the body of a cell.", hint="write it on a line", kind="usage"
        )
    if action is None:
        from materia_nb.widgets.quests import show_quests

        return show_quests(board)
    if action == "add":
        board.add(f"{words}\n{call.body or ''}".strip(), loadout=call.get("loadout"))
    elif action == "run":
        from materia_nb.quests import WORDS

        why = board.run(_count(words))
        return views.Text("\n\n".join(filter(None, [repr(tables.quests_view(board.quests)), WORDS[why]])))
    elif action == "move":
        which, _, place = words.partition(" ")
        board.move(_needed(which), place.strip() or "")
    elif action == "remove":
        board.remove(_needed(words))
    elif action == "requeue":
        board.requeue(_needed(words))
    return tables.quests_view(board.quests)


def _needed(which: str) -> str:
    if not which:
        raise MateriaError("Which quest?", hint="give its number, as quest list shows it", kind="usage")
    return which


def _count(words: str) -> int | None:
    if not words:
        return None
    if not words.isdecimal() or int(words) < 1:
        raise MateriaError(f"How many quests? {words!r} is no number.", hint="quest run 1", kind="usage")
    return int(words)
