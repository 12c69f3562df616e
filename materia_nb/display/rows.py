"""Rows of cells: what a region's sockets, boxes, bends and labels become before they get coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from materia_nb.display.links import Link

TURN: Final = 13.0
"""Pixels between the side of a card and the first line that runs along it."""

# How much a line wants to be straight between two cards, a card and a bend, two bends.
_CARDS, _CARD_BEND, _BENDS = 3.0, 2.0, 5.0

Ports: TypeAlias = dict[str, float]


@dataclass(slots=True, eq=False)
class Item:
    """Something with a box: a socket's card, a loop's box, the start or the end.

    ``ports`` gives, for a loop's box, where each line crosses its border, relative to its centre.
    """

    key: str
    w: float
    h: float
    ports: Ports | None = None
    selves: list[tuple[Link, float]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Cell:
    """A stretch of a row: from ``x - left`` to ``x + right``."""

    row: int
    left: float
    right: float
    height: float
    item: Item | None = None
    place: int = 0
    x: float = 0.0
    up: list[Join] = field(default_factory=list)
    down: list[Join] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Join:
    """A line's way from one row to the next; the offsets are relative to the cells' ``x``.

    ``upper_side`` and ``lower_side`` say that the line runs along the right side of that cell's card,
    ``lane`` in which place counted from the card.
    """

    upper: Cell
    lower: Cell
    key: str
    upper_at: float = 0.0
    lower_at: float = 0.0
    upper_side: bool = False
    lower_side: bool = False
    lane: int = 0
    weight: float = 1.0

    @property
    def upper_place(self) -> float:
        """Where in its row the upper end is, for counting crossings."""
        return self.upper.place + _fraction(self.upper, self.upper_at, self.upper_side)

    @property
    def lower_place(self) -> float:
        """Where in its row the lower end is."""
        return self.lower.place + _fraction(self.lower, self.lower_at, self.lower_side)


def _fraction(cell: Cell, at: float, side: bool) -> float:
    if side:
        return 0.45
    if cell.item is not None and cell.item.ports is not None:
        return 0.9 * at / max(cell.item.w, 1.0)
    return 0.0


@dataclass(slots=True, eq=False)
class Wire:
    """A link's part within one region; ``tail`` or ``head`` is None where it crosses the region's border.

    ``cells`` are its bends from tail to head, the label's and the border crossings included.
    """

    link: Link
    tail: Item | None
    head: Item | None
    upward: bool = False
    stub: bool = False
    label: tuple[float, float] = (0.0, 0.0)
    cells: list[Cell] = field(default_factory=list)
    joins: list[Join] = field(default_factory=list)
    label_cell: Cell | None = None


@dataclass(slots=True, eq=False)
class Rows:
    """A region in rows, from the top."""

    rows: list[list[Cell]]
    cell_of: dict[str, Cell]
    title: Cell | None


def _turns(item: Item, wires: list[Wire]) -> tuple[int, int]:
    """Count the lines that leave and reach a card along its right side."""
    if item.ports is not None:
        return 0, 0
    leaving = sum(1 for wire in wires if wire.upward and wire.tail is item)
    return leaving, sum(1 for wire in wires if wire.upward and wire.head is item)


def build_rows(
    items: list[Item], wires: list[Wire], rank: dict[str, int], title: tuple[float, float] | None
) -> Rows:
    """Make the rows of a region: a row a rank, label rows between, border rows if it has a ``title``."""
    deepest = max(rank.values(), default=0)
    labelled = {
        rank[wire.tail.key] - (1 if wire.upward else 0) for wire in wires if wire.tail and wire.label[1]
    }
    row_of: dict[int, int] = {}
    label_row: dict[int, int] = {}
    count = 2 if title else 0
    for number in range(deepest + 1):
        row_of[number] = count
        count += 1
        if number in labelled:
            label_row[number] = count
            count += 1
    bottom = count
    rows: list[list[Cell]] = [[] for _ in range(count + (1 if title else 0))]

    by_item: dict[int, list[Wire]] = {}
    for wire in wires:
        for end in {id(wire.tail): wire.tail, id(wire.head): wire.head}.values():
            if end is not None:
                by_item.setdefault(id(end), []).append(wire)
    cell_of: dict[str, Cell] = {}
    for item in items:
        mine = by_item.get(id(item), [])
        leaving, reaching = _turns(item, mine)
        side = max(leaving, reaching) * TURN
        if item.selves:
            side = max(side, 26 + max(width for _, width in item.selves))
        if item.ports is None:
            item.h = max(item.h, 14 + 12 * (leaving + reaching) + 22 * len(item.selves))
        cell = Cell(row_of[rank[item.key]], item.w / 2, item.w / 2 + side, item.h, item)
        cell_of[item.key] = cell
        rows[cell.row].append(cell)

    for wire in wires:
        top = row_of[rank[wire.tail.key]] if wire.tail else (bottom if wire.upward else 0)
        end = row_of[rank[wire.head.key]] if wire.head else (0 if wire.upward else bottom)
        step = -1 if wire.upward else 1
        first = top + step if wire.tail else top
        last = end - step if wire.head else end
        at = None
        if wire.tail and wire.label[1]:
            at = label_row[rank[wire.tail.key] - (1 if wire.upward else 0)]
        if wire.stub:
            last = at if at is not None else first
        for row in range(first, last + step, step):
            if row == at:
                cell = Cell(row, wire.label[0] / 2, wire.label[0] / 2, wire.label[1])
                wire.label_cell = cell
            else:
                cell = Cell(row, 0.0, 0.0, 0.0)
            wire.cells.append(cell)
            rows[row].append(cell)
        _join(wire, cell_of)
    title_cell = None
    if title:
        title_cell = Cell(1, title[0] / 2, title[0] / 2, title[1])
        rows[1].append(title_cell)
    return Rows(rows, cell_of, title_cell)


def _join(wire: Wire, cell_of: dict[str, Cell]) -> None:
    """Join the cells of a wire from row to row, its ends included."""
    chain = list(wire.cells)
    if wire.tail:
        chain.insert(0, cell_of[wire.tail.key])
    if wire.head and not wire.stub:
        chain.append(cell_of[wire.head.key])
    for a, b in zip(chain, chain[1:], strict=False):
        upper, lower = (b, a) if wire.upward else (a, b)
        join = Join(upper, lower, wire.link.key)
        for cell, which in ((upper, "upper"), (lower, "lower")):
            if cell.item is None:
                continue
            if cell.item.ports is not None:
                setattr(join, f"{which}_at", cell.item.ports[wire.link.key])
            elif wire.upward:
                setattr(join, f"{which}_side", True)
        bends = (upper.item is None) + (lower.item is None)
        join.weight = 0.2 if join.upper_side or join.lower_side else (_CARDS, _CARD_BEND, _BENDS)[bends]
        upper.down.append(join)
        lower.up.append(join)
        wire.joins.append(join)


def set_ports(rows: Rows) -> None:
    """Spread the lines at each card over its sides, in the order of their other ends."""
    for cell in rows.cell_of.values():
        item = cell.item
        if item is None or item.ports is not None:
            continue
        below = sorted((join for join in cell.down if not join.upper_side), key=lambda join: join.lower_place)
        above = sorted((join for join in cell.up if not join.lower_side), key=lambda join: join.upper_place)
        for joins, which in ((below, "upper_at"), (above, "lower_at")):
            if len(joins) > 1:
                room = max(item.w - 124, item.w * 0.4)
                step = min(30.0, room / (len(joins) - 1))
                for index, join in enumerate(joins):
                    setattr(join, which, (index - (len(joins) - 1) / 2) * step)
        side = item.w / 2
        leaving = sorted((join for join in cell.up if join.lower_side), key=lambda join: join.upper_place)
        for index, join in enumerate(leaving):
            join.lane, join.lower_at = index + 1, side + TURN * (index + 1)
        reaching = sorted((join for join in cell.down if join.upper_side), key=lambda join: join.lower_place)
        for index, join in enumerate(reaching):
            join.lane, join.upper_at = index + 1, side + TURN * (index + 1)
