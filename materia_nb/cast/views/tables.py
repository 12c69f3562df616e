"""Tables of what there is: loadouts, materia, who answers, casts, quests, work items, breakpoints, tokens, leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from materia_nb.cast.breakpoint import Stops
from materia_nb.cast.listing import TableOf, data_frame
from materia_nb.display.blocks import Table, View, lines
from materia_nb.display.escape import shorten
from materia_nb.engine.routing import short
from materia_nb.engine.state import BOUNDS, Pin
from materia_nb.insight.queries import SpentOn
from materia_nb.insight.sides import seconds_words, worked_words
from materia_nb.jsonvalue import compact, pretty
from materia_nb.loadout.graph import Graph
from materia_nb.store.catalogue import CastEntry

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.insight.queries import FoundValue
    from materia_nb.store.board import Quest


def pins_view(here: Mapping[str, Pin], later: Mapping[str, tuple[Pin, str | None]]) -> Table:
    """What is pinned: in the current cast, and for casts that begin later, each with the loadout that it is for (R40)."""
    rows = []
    for name, pin in {**{name: pin for name, (pin, _) in later.items()}, **here}.items():
        both = name in later and name in here and later[name][0] == pin
        where = "this cast and later ones" if both else "this cast" if name in here else "later casts"
        if name in later and (loadout := later[name][1]) is not None:
            where += f", of {loadout}"
        rows.append((name, pin.words, where, shorten(pin.text, 60)))
    return Table(("socket or materia", "pinned to", "in", "text"), rows, "nothing is pinned")


def breakpoints_view(stops: Stops, graph: Graph) -> Table:
    """The breakpoints of a cast, or of all casts of a loadout."""
    rows = [
        (one.words(graph), f"{how.__doc__ or 'condition'} (gone with this kernel)" if how else "always")
        for one, how in stops.conditions.items()
    ]
    return Table(("runs stop", "when"), rows, "no breakpoints")


def budget_view(cast: Snapshot) -> Table:
    """Tokens, cost, time and turns against the budget: what it bounds, the tokens, and the cost where there is one."""
    usage, budget = cast.engine.usage, cast.engine.budget
    rows = [
        (one.of, one.so_far(usage), *_share(one.used(usage), one.most(budget), one.form))
        for one in BOUNDS
        if one.most(budget) is not None or one.of == "tokens" or (one.of == "cost" and usage.cost)
    ]
    return Table(("", "so far", "budget", "used"), rows)


def _share(used: float | None, most: float | None, form: str) -> tuple[str, str]:
    """A maximum in words, and how much of it is used."""
    if most is None:
        return "none", ""
    share = "unknown" if used is None else f"{used / most:.0%}" if most else ""
    if (used or 0) >= most:
        share = f"{share}, used up: the cast stops after the next socket".removeprefix(", ")
    return form.format(most), share


def known_words(value: float | None, form: str = "{}") -> str:
    """Return a number in words; one that nobody reported is unknown (R56)."""
    return "unknown" if value is None else form.format(value)


def found_view(found: Sequence[FoundValue]) -> Table:
    """What a question found in the outputs of the steps, one match a row."""
    rows = [
        (
            str(one.step) + (f" in {shorten(one.lane, 40)}" if one.lane else ""),
            one.socket,
            one.item or "",
            shorten(one.value if isinstance(one.value, str) else compact(one.value), 200),
        )
        for one in found
    ]
    return Table(("step", "socket", "item", "value"), rows, "nothing found")


class FoundView(TableOf[tuple[str, "FoundValue"]]):
    """What a question found in many casts; iterating gives (cast id, what was found) pairs."""

    def __init__(
        self,
        found: Sequence[tuple[CastEntry | Snapshot, FoundValue]],
        problems: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.problems = tuple(problems)
        rows = [
            (one.id, _named(one), *row)
            for (one, _), row in zip(found, found_view([f for _, f in found]).rows, strict=True)
        ]
        rows += [(id_, "", "", "", "", f"cannot be asked: {why}") for id_, why in problems]
        pairs = [(one.id, match) for one, match in found]
        super().__init__(pairs, ("cast", "name", "step", "socket", "item", "value"), rows, "nothing found")


def _named(one: CastEntry | Snapshot) -> str:
    return one.name if isinstance(one, CastEntry) else one.label_of().name


class SpentView(TableOf[SpentOn]):
    """Where time and money went; iterating gives :class:`~materia_nb.insight.queries.SpentOn` rows."""

    def __init__(self, by: Sequence[str], found: Sequence[SpentOn]) -> None:
        self.by = tuple(by)
        whole = reduce(SpentOn.plus, found, SpentOn(("in all", *[""] * (len(by) - 1))))
        priced = bool(whole.usage.cost)
        left = whole.left.tokens != 0
        apart = list(whole.usage.apart())
        rows = [
            self._row(one, whole, priced=priced, left=left, apart=apart) for one in (*found, whole) if found
        ]
        names = [
            *by,
            "visits",
            "turns",
            "tools",
            "tokens in",
            "tokens out",
            *(f"of it {name}" for name in apart),
        ]
        names += [*["cost"] * priced, "share"]
        names += [
            *["turns not counted"] * bool(whole.usage.uncounted),
            *["left behind"] * left,
            "took",
            *["waited"] * bool(whole.waited),
        ]
        super().__init__(found, names, rows, "no steps yet")

    def _row(
        self, one: SpentOn, whole: SpentOn, *, priced: bool, left: bool, apart: Sequence[str]
    ) -> tuple[str, ...]:
        used = one.usage
        part, all_ = (used.cost, whole.usage.cost) if priced else (used.tokens, whole.usage.tokens)
        cells = [shorten(name, 60) for name in one.of]
        cells += [
            str(one.visits),
            str(one.turns),
            str(one.calls),
            known_words(used.input),
            known_words(used.output),
            *(known_words(getattr(used, name)) for name in apart),
        ]
        cells += [used.cost_words] if priced else []
        cells.append("" if not all_ else known_words(part and part / all_, "{:.0%}"))
        cells += [str(used.uncounted or "")] if whole.usage.uncounted else []
        cells += [f"{one.left.tokens_words} tokens" if one.left.tokens != 0 else ""] if left else []
        cells.append(worked_words(one.ms, one.untimed))
        return (*cells, seconds_words(one.waited) if one.waited else "") if whole.waited else tuple(cells)

    def frame(self) -> Any:
        """Return the rows as a pandas data frame, without the sum.

        Raises:
            MateriaError: pandas is not installed (``not_installed``).
        """
        rows = (
            {
                **dict(zip(self.by, one.of, strict=True)),
                "visits": one.visits,
                "turns": one.turns,
                "tools": one.calls,
                "tokens_in": one.usage.input,
                "tokens_out": one.usage.output,
                "cached": one.usage.cached,
                "reasoning": one.usage.reasoning,
                "cost": one.usage.cost,
                "seconds": None if one.ms is None else one.ms / 1000,
                "waited": one.waited / 1000,
                "left_behind": one.left.tokens,
            }
            for one in self.found
        )
        return data_frame(rows, (*self.by, *_SPENT_FIELDS))


_SPENT_FIELDS: Final = (
    *("visits", "turns", "tools", "tokens_in", "tokens_out", "cached", "reasoning"),
    *("cost", "seconds", "waited", "left_behind"),
)


QUEST_COLUMNS: Final = ("quest", "status", "request", "loadout", "cast", "note")


def quests_view(quests: Sequence[Quest]) -> Table:
    """The quests of a board, in their order."""
    return Table(QUEST_COLUMNS, [quest_row(one) for one in quests], "no quests yet: quest add REQUEST")


def quest_row(quest: Quest) -> tuple[str, ...]:
    """What is told of a quest, by :data:`QUEST_COLUMNS`."""
    words = (short(quest.request, 80), quest.loadout or "the chosen one", quest.cast or "")
    return (quest.id, quest.status, *words, short(quest.note or "", 120))


class ItemsView(View):
    """The work items and how each stands, and what an edit of them moved; ``rows`` are those of the table."""

    def __init__(self, rows: Sequence[tuple[str, ...]], said: Sequence[str]) -> None:
        self.rows = rows
        super().__init__(
            "",
            [
                Table(
                    ("item", "state", "title", "context", "lane")[: len(rows[0]) if rows else 4],
                    rows,
                    "no work items",
                ),
                *lines(said),
            ],
        )


def items_view(cast: Snapshot, said: Sequence[str] = ()) -> ItemsView:
    """The work items, how each stands (R46) and in which lane; ``said`` is what an edit of them moved."""
    rows, lanes = [], cast.lane_of_item
    for index, (item, stands) in enumerate(zip(cast.work_items, cast.standings, strict=True)):
        title = item.get("title", "") if isinstance(item, dict) else pretty(item)
        context = item.get("context", "") if isinstance(item, dict) else ""
        lane = (f"{shorten(lanes[index].name, 40)}, {lanes[index].status}",) if index in lanes else ()
        rows.append((f"WI-{index + 1}", stands, shorten(str(title), 80), shorten(str(context), 120), *lane))
    return ItemsView(rows, said)


def allowed_view(cast: Snapshot) -> Table:
    """Which tools of agents change something without asking, and which ask first."""
    rows = [
        (tool, "runs without asking" if allowed else "asks each time")
        for tool, allowed in cast.approvals.tools.items()
    ]
    return Table(("tool", "in this cast"), rows)
