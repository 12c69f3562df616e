"""Rows of cells: on which rank each item stands, what stands in each row, and in which order."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias

from materia_nb.display.graph_parts import Link

Arc: TypeAlias = tuple[str, str]


def walk(items: Sequence[str], arcs: Sequence[Arc], roots: Sequence[str]) -> tuple[list[str], set[int]]:
    """Walk the arcs depth first, in their order, from ``roots`` and then from whatever was not reached.

    Returns the items in the order in which they were met, and the indices of the arcs that close a cycle.
    """
    out: dict[str, list[int]] = {item: [] for item in items}
    for index, (tail, _) in enumerate(arcs):
        out[tail].append(index)
    met: list[str] = []
    back: set[int] = set()
    state: dict[str, int] = {}  # 1 while on the path, 2 when left
    for root in (*roots, *items):
        if root in state:
            continue
        state[root] = 1
        met.append(root)
        path = [(root, iter(out[root]))]
        while path:
            item, rest = path[-1]
            for index in rest:
                head = arcs[index][1]
                seen = state.get(head)
                if seen == 1:
                    back.add(index)
                elif seen is None:
                    state[head] = 1
                    met.append(head)
                    path.append((head, iter(out[head])))
                    break
            else:
                state[item] = 2
                path.pop()
    return met, back


def ranks(order: Sequence[str], arcs: Sequence[Arc], back: set[int], *, most: int) -> dict[str, int]:
    """Give each item a rank below all that lead to it, with at most ``most`` items on a rank.

    Backward arcs count the other way round.
    """
    after: dict[str, list[str]] = {item: [] for item in order}
    waiting = dict.fromkeys(order, 0)
    for index, (tail, head) in enumerate(arcs):
        if tail == head:
            continue
        first, then = (head, tail) if index in back else (tail, head)
        after[first].append(then)
        waiting[then] += 1
    rank = dict.fromkeys(order, 0)
    taken: Counter[int] = Counter()
    todo = [item for item in order if not waiting[item]]
    for item in todo:
        while taken[rank[item]] >= most:
            rank[item] += 1
        taken[rank[item]] += 1
        for then in after[item]:
            rank[then] = max(rank[then], rank[item] + 1)
            waiting[then] -= 1
            if not waiting[then]:
                todo.append(then)
    return rank


# -- rows ------------------------------------------------------------------------------------

TURN: Final = 13.0
"""Pixels between the side of a card and the first line that runs along it."""

LANE: Final = 12.0
"""Pixels between two lines that meet the side of a card."""

# How much a line wants to be straight between two cards, a card and a bend, two bends,
# the side of a card and a bend.
_CARDS, _CARD_BEND, _BENDS, _ASIDE = 3.0, 2.0, 5.0, 0.2

Ports: TypeAlias = dict[str, float]


@dataclass(slots=True, eq=False)
class Item:
    """Something with a box: a socket's card, a loop's box, the start or the end.

    ``ports`` gives, for a loop's box, where each line crosses its border, relative to its centre.
    ``selves`` are its lines to itself with their labels' sizes; ``leaving`` and ``reaching`` count the
    lines that run upwards along its right side.
    """

    key: str
    w: float
    h: float
    ports: Ports | None = None
    selves: list[tuple[Link, tuple[float, float]]] = field(default_factory=list)
    leaving: int = 0
    reaching: int = 0


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
    upper_at: float = 0.0
    lower_at: float = 0.0
    upper_side: bool = False
    lower_side: bool = False
    lane: int = 0
    weight: float = 1.0

    @property
    def upper_place(self) -> float:
        """Where in its row the upper end is, for counting crossings."""
        return self.upper.place + _fraction(self.upper, self.upper_at, side=self.upper_side)

    @property
    def lower_place(self) -> float:
        """Where in its row the lower end is."""
        return self.lower.place + _fraction(self.lower, self.lower_at, side=self.lower_side)


def _fraction(cell: Cell, at: float, *, side: bool) -> float:
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
    bordered: bool = False


class _Numbers:
    """Which row each rank, the labels below it and the region's borders have."""

    def __init__(self, wires: list[Wire], rank: dict[str, int], *, bordered: bool, titled: bool) -> None:
        self.rank = rank
        labelled = {self._labelled(wire, wire.tail) for wire in wires if wire.tail and wire.label[1]}
        self.of_rank: list[int] = []
        self.of_label: dict[int, int] = {}
        count = bordered + titled
        for number in range(max(rank.values(), default=0) + 1):
            self.of_rank.append(count)
            count += 1
            if number in labelled:
                self.of_label[number] = count
                count += 1
        self.bottom = count
        self.count = count + bordered

    def _labelled(self, wire: Wire, tail: Item) -> int:
        """The rank under which the label of a wire stands: next to its tail."""
        return self.rank[tail.key] - wire.upward

    def of_item(self, item: Item) -> int:
        return self.of_rank[self.rank[item.key]]

    def label_row(self, wire: Wire) -> int | None:
        if wire.tail is None or not wire.label[1]:
            return None
        return self.of_label[self._labelled(wire, wire.tail)]

    def bends(self, wire: Wire) -> range:
        """The rows in which a wire has a bend, from its tail to its head."""
        step = -1 if wire.upward else 1
        above, below = (self.bottom, 0) if wire.upward else (0, self.bottom)
        first = self.of_item(wire.tail) + step if wire.tail else above
        last = self.of_item(wire.head) - step if wire.head else below
        if wire.stub:
            last = self.label_row(wire) or first
        return range(first, last + step, step)


def self_room(label: tuple[float, float]) -> float:
    """How much of a card's side a line to itself takes, its label beside it included."""
    return max(22.0, label[1] + 4)


def _item_cell(item: Item, wires: list[Wire], row: int) -> Cell:
    """Make the cell of a card or box, with room at its right for lines that run along it."""
    if item.ports is not None:
        return Cell(row, item.w / 2, item.w / 2, item.h, item)
    item.leaving = sum(1 for wire in wires if wire.upward and wire.tail is item)
    item.reaching = sum(1 for wire in wires if wire.upward and wire.head is item)
    turns = sum(self_room(size) for _, size in item.selves)
    item.h = max(item.h, 14 + LANE * (item.leaving + item.reaching) + turns)
    side = max([max(item.leaving, item.reaching) * TURN, *(26 + size[0] for _, size in item.selves)])
    return Cell(row, item.w / 2, item.w / 2 + side, item.h, item)


def build_rows(
    items: list[Item],
    wires: list[Wire],
    rank: dict[str, int],
    title: tuple[float, float] | None,
    *,
    bordered: bool,
) -> Rows:
    """Make the rows of a region: a row a rank, label rows between, border rows, in the first the ``title``."""
    numbers = _Numbers(wires, rank, bordered=bordered, titled=title is not None)
    rows: list[list[Cell]] = [[] for _ in range(numbers.count)]
    touching: dict[str, list[Wire]] = {item.key: [] for item in items}
    for wire in wires:
        for end in (wire.tail, wire.head):
            if end is not None:
                touching[end.key].append(wire)
    cell_of: dict[str, Cell] = {}
    for item in items:
        cell = cell_of[item.key] = _item_cell(item, touching[item.key], numbers.of_item(item))
        rows[cell.row].append(cell)
    for wire in wires:
        label_row = numbers.label_row(wire)
        for row in numbers.bends(wire):
            cell = Cell(row, 0.0, 0.0, 0.0)
            if row == label_row:
                cell = wire.label_cell = Cell(row, wire.label[0] / 2, wire.label[0] / 2, wire.label[1])
            wire.cells.append(cell)
            rows[row].append(cell)
        _join(wire, cell_of)
    title_cell = None
    if title:
        title_cell = Cell(1, title[0] / 2, title[0] / 2, title[1])
        rows[1].append(title_cell)
    return Rows(rows, cell_of, title_cell, bordered)


def _join(wire: Wire, cell_of: dict[str, Cell]) -> None:
    """Join the cells of a wire from row to row, its ends included."""
    chain = list(wire.cells)
    if wire.tail:
        chain.insert(0, cell_of[wire.tail.key])
    if wire.head and not wire.stub:
        chain.append(cell_of[wire.head.key])
    for a, b in pairwise(chain):
        upper, lower = (b, a) if wire.upward else (a, b)
        join = Join(upper, lower)
        join.upper_at, join.upper_side = _end(wire, upper)
        join.lower_at, join.lower_side = _end(wire, lower)
        bends = (upper.item is None) + (lower.item is None)
        join.weight = _ASIDE if join.upper_side or join.lower_side else (_CARDS, _CARD_BEND, _BENDS)[bends]
        upper.down.append(join)
        lower.up.append(join)
        wire.joins.append(join)


def _end(wire: Wire, cell: Cell) -> tuple[float, bool]:
    """Where a wire meets a cell, as far as that is known, and whether it does so at the side of a card."""
    if cell.item is None:
        return 0.0, False
    if cell.item.ports is not None:
        return cell.item.ports[wire.link.key], False
    return 0.0, wire.upward


# -- the order in a row ----------------------------------------------------------------------


def _count(row: list[Cell]) -> int:
    """Count the crossings between a row and the one below it."""
    ends = sorted((join.upper_place, join.lower_place) for cell in row for join in cell.down)
    seen: list[float] = []
    crossings = 0
    for _, lower in ends:
        crossings += len(seen) - bisect_right(seen, lower)
        insort(seen, lower)
    return crossings


def _total(rows: list[list[Cell]]) -> int:
    return sum(_count(row) for row in rows)


def _number(row: list[Cell]) -> None:
    for place, cell in enumerate(row):
        cell.place = place


def _sort(row: list[Cell], *, by_upper: bool, title: Cell | None) -> None:
    """Put a row into the order of the means of its neighbours in the row above (or below)."""
    wanted: dict[int, float] = {}
    for cell in row:
        joins: list[Join] = cell.up if by_upper else cell.down
        if joins:
            places = [join.upper_place if by_upper else join.lower_place for join in joins]
            wanted[id(cell)] = sum(places) / len(places)
    # Cells without neighbours there stay where they are; the others are sorted into the remaining places.
    free = iter(sorted((cell for cell in row if id(cell) in wanted), key=lambda cell: wanted[id(cell)]))
    ordered = [next(free) if id(cell) in wanted else cell for cell in row]
    if title is not None and title in ordered:
        ordered.remove(title)
        ordered.append(title)
    row[:] = ordered
    _number(row)


def _pair(a: list[float], b: list[float]) -> int:
    """Crossings of the lines of two neighbours when the first stands left of the second."""
    return sum(1 for x in a for y in b if x > y)


def _swap_neighbours(row: list[Cell], title: Cell | None) -> bool:
    """Swap neighbours where that takes crossings away."""
    changed = False
    for index in range(len(row) - 1):
        left, right = row[index], row[index + 1]
        if title in (left, right):
            continue
        now = then = 0
        for ours, theirs in (
            ([j.upper_place for j in left.up], [j.upper_place for j in right.up]),
            ([j.lower_place for j in left.down], [j.lower_place for j in right.down]),
        ):
            now += _pair(ours, theirs)
            then += _pair(theirs, ours)
        if then < now:
            row[index], row[index + 1] = right, left
            right.place, left.place = index, index + 1
            changed = True
    return changed


def order_rows(rows: Rows, *, sweeps: int) -> None:
    """Order every row; the best order met in ``sweeps`` sweeps up and down is kept."""
    grid = rows.rows
    for row in grid:
        _number(row)
    best, kept = _total(grid), [list(row) for row in grid]
    for sweep in range(sweeps):
        if not best:
            break
        down = sweep % 2 == 0
        for row in grid if down else reversed(grid):
            _sort(row, by_upper=down, title=rows.title)
        for _ in range(4):
            swapped = [_swap_neighbours(row, rows.title) for row in grid]
            if not any(swapped):
                break
        crossings = _total(grid)
        if crossings < best:
            best, kept = crossings, [list(row) for row in grid]
    for row, ordered in zip(grid, kept, strict=True):
        row[:] = ordered
        _number(row)
