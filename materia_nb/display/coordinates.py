"""From ordered rows to coordinates: where cells and the ends of lines stand, and the way of every line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias

from materia_nb.display.geometry import Box, Stroke
from materia_nb.display.graph_parts import Link
from materia_nb.display.rows import LANE, TURN, Cell, Item, Join, Rows, Wire, self_room


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


def widen_turns(rows: Rows, gap: float) -> None:
    """Let lines along a card go straight to the column that they run in, ``gap`` away from what is between."""
    for row in rows.rows:
        for cell in row:
            if cell.item is None:
                continue
            limit = float("inf")
            if cell.place + 1 < len(row):
                other = row[cell.place + 1]
                limit = other.x - other.left - gap
            leaving = [(join.lane, join, join.upper.x) for join in cell.up if join.lower_side]
            reaching = [(join.lane, join, join.lower.x) for join in cell.down if join.upper_side]
            for lines, which in ((leaving, "lower_at"), (reaching, "upper_at")):
                least = cell.x + cell.item.w / 2
                for lane, join, wanted in sorted(lines, key=lambda line: line[0]):
                    most = limit - TURN * (len(lines) - lane)
                    least = max(least + TURN, min(wanted, most))
                    setattr(join, which, least - cell.x)


# -- x coordinates ---------------------------------------------------------------------------

_CARD_GAP: Final = 28.0
_LINE_GAP: Final = 18.0

Run: TypeAlias = list[tuple[Cell, float]]
"""Cells below each other, each with its distance from the run's x."""


def gap(a: Cell, b: Cell) -> float:
    """Pixels to keep between two neighbours in a row."""
    return _CARD_GAP if a.item is not None and b.item is not None else _LINE_GAP


def _offsets(row: list[Cell]) -> list[float]:
    """Distances of the cells' x from the first one's, packed as tightly as they may be."""
    at, found = 0.0, [0.0]
    for a, b in pairwise(row):
        at += a.right + gap(a, b) + b.left
        found.append(at)
    return found


def _settle(row: list[Cell], wanted: list[tuple[float, float]]) -> None:
    """Move a row's cells as near to their wanted x as the gaps let them (least squares, in one pass)."""
    offsets = _offsets(row)
    blocks: list[list[float]] = []  # weighted sum, weight, number of cells
    for (x, weight), offset in zip(wanted, offsets, strict=True):
        block = [(x - offset) * weight, weight, 1.0]
        while blocks and blocks[-1][0] / blocks[-1][1] > block[0] / block[1]:
            last = blocks.pop()
            block = [last[0] + block[0], last[1] + block[1], last[2] + block[2]]
        blocks.append(block)
    index = 0
    for total, weight, number in blocks:
        for _ in range(int(number)):
            row[index].x = total / weight + offsets[index]
            index += 1


def _pulls(cell: Cell, *, above: bool = True, below: bool = True) -> Iterator[tuple[Join, float]]:
    """Each join of a cell with the x at which the cell would make it straight."""
    if above:
        for join in cell.up:
            yield join, join.upper.x + join.upper_at - join.lower_at
    if below:
        for join in cell.down:
            yield join, join.lower.x + join.lower_at - join.upper_at


def _wish(cell: Cell, *, above: bool, below: bool) -> tuple[float, float]:
    """Where a cell would like to be, and how much."""
    total = weight = 0.0
    for join, x in _pulls(cell, above=above, below=below):
        total += join.weight * x
        weight += join.weight
    return (total / weight, weight) if weight else (cell.x, 0.01)


def _median(pairs: list[tuple[float, float]]) -> float:
    """Weighted median; between the two middle values when the weight is even on both sides."""
    pairs.sort()
    half = sum(weight for _, weight in pairs) / 2
    run = 0.0
    for index, (x, weight) in enumerate(pairs):
        run += weight
        if run > half + 1e-9:
            return x
        if run > half - 1e-9 and index + 1 < len(pairs):
            return (x + pairs[index + 1][0]) / 2
    return pairs[-1][0]


def _fans(join: Join) -> bool:
    """Whether a join is one of several forward ones at the same card or box: those spread to both sides."""
    if join.upper_side or join.lower_side:
        return False
    from_card = join.upper.item is not None and sum(not other.upper_side for other in join.upper.down) > 1
    return from_card or (
        join.lower.item is not None and sum(not other.lower_side for other in join.lower.up) > 1
    )


def _runs(rows: Rows) -> list[Run]:
    """Chain cells into vertical runs along their heaviest joins: (cell, offset from the run's x)."""
    joins = [join for row in rows.rows for cell in row for join in cell.down if not _fans(join)]
    joins.sort(key=lambda join: (-join.weight, abs(join.upper_at) + abs(join.lower_at)))
    down: dict[int, tuple[Cell, float]] = {}
    has_upper: set[int] = set()
    taken: dict[int, list[tuple[float, float]]] = {}
    for join in joins:
        if id(join.upper) in down or id(join.lower) in has_upper:
            continue
        # Two straight lines between the same rows must not cross.
        straight = taken.setdefault(join.upper.row, [])
        if any((join.upper_place - u) * (join.lower_place - v) < 0 for u, v in straight):
            continue
        straight.append((join.upper_place, join.lower_place))
        down[id(join.upper)] = (join.lower, join.upper_at - join.lower_at)
        has_upper.add(id(join.lower))
    runs = []
    for row in rows.rows:
        for cell in row:
            if id(cell) in has_upper:
                continue
            run = [(cell, 0.0)]
            while id(run[-1][0]) in down:
                lower, shift = down[id(run[-1][0])]
                run.append((lower, run[-1][1] + shift))
            runs.append(run)
    return runs


def _room(cell: Cell, row: list[Cell]) -> tuple[float, float]:
    """The least and greatest x that a cell may have between its neighbours."""
    low, high = float("-inf"), float("inf")
    if cell.place:
        other = row[cell.place - 1]
        low = other.x + other.right + gap(other, cell) + cell.left
    if cell.place + 1 < len(row):
        other = row[cell.place + 1]
        high = other.x - other.left - gap(cell, other) - cell.right
    return low, high


def _fitting(run: Run, grid: list[list[Cell]]) -> tuple[Run, float, float]:
    """Take the longest start of a run that fits on one vertical, and the least and greatest x for it."""
    low, high = float("-inf"), float("inf")
    for count, (cell, shift) in enumerate(run):
        least, most = _room(cell, grid[cell.row])
        new_low, new_high = max(low, least - shift), min(high, most - shift)
        if new_low > new_high + 1e-9:
            return run[:count], low, high
        low, high = new_low, new_high
    return run, low, high


def _straighten(run: Run, grid: list[list[Cell]]) -> None:
    """Put a run on one vertical where there is room, as near to its other neighbours as there is."""
    while run:
        part, low, high = _fitting(run, grid)
        run = run[max(1, len(part)) :]
        inside = {id(cell) for cell, _ in part}
        wishes = [(cell.x - shift, 0.05) for cell, shift in part]
        for cell, shift in part:
            wishes += [
                (x - shift, join.weight)
                for join, x in _pulls(cell)
                if id(join.upper if join.lower is cell else join.lower) not in inside
            ]
        if part:
            x = min(max(_median(wishes), low), high)
            for cell, shift in part:
                cell.x = x + shift


def set_columns(rows: Rows, *, sweeps: int) -> None:
    """Give every cell its ``x``; rows must be ordered and ports set."""
    grid = rows.rows
    for row in grid:
        offsets = _offsets(row) if row else []
        for cell, offset in zip(row, offsets, strict=True):
            cell.x = offset - offsets[-1] / 2
    for sweep in range(sweeps):
        down = sweep % 2 == 0
        both = sweep >= sweeps - 2
        for row in grid if down else reversed(grid):
            if row:
                _settle(row, [_wish(cell, above=down or both, below=not down or both) for cell in row])
    runs = _runs(rows)
    for _ in range(6):
        for run in runs:
            _straighten(run, grid)
    _set_title(rows)
    widen_turns(rows, _LINE_GAP / 2)


def _set_title(rows: Rows) -> None:
    """Put a region's title right beside the lines that come in."""
    title = rows.title
    if title is not None and title.place:
        other = rows.rows[title.row][title.place - 1]
        title.x = other.x + other.right + gap(other, title) + title.left


# -- y coordinates and lines -----------------------------------------------------------------

PAD: Final = 14.0


@dataclass(slots=True)
class Picture:
    """A finished region, its upper left corner at (0, 0). ``ports`` are absolute x of border crossings."""

    w: float = 0.0
    h: float = 0.0
    boxes: dict[str, Box] = field(default_factory=dict)
    loops: dict[str, Box] = field(default_factory=dict)
    titles: dict[str, Box] = field(default_factory=dict)
    strokes: dict[str, Stroke] = field(default_factory=dict)
    labels: dict[str, Box] = field(default_factory=dict)
    stubs: set[str] = field(default_factory=set)
    ports: dict[str, float] = field(default_factory=dict)

    def take(self, other: Picture, dx: float, dy: float) -> dict[str, Stroke]:
        """Take over the contents of another picture; its strokes are returned, moved, to be continued."""
        for mine, theirs in (
            (self.boxes, other.boxes),
            (self.loops, other.loops),
            (self.titles, other.titles),
            (self.labels, other.labels),
        ):
            mine.update({key: box.moved(dx, dy) for key, box in theirs.items()})
        self.stubs |= other.stubs
        return {key: stroke.moved(dx, dy) for key, stroke in other.strokes.items()}

    def flipped(self) -> Picture:
        """Return the same picture with x and y exchanged."""
        return Picture(
            w=self.h,
            h=self.w,
            boxes={key: box.flipped() for key, box in self.boxes.items()},
            loops={key: box.flipped() for key, box in self.loops.items()},
            titles={key: box.flipped() for key, box in self.titles.items()},
            strokes={key: stroke.flipped() for key, stroke in self.strokes.items()},
            labels={key: box.flipped() for key, box in self.labels.items()},
            stubs=self.stubs,
            ports=self.ports,
        )

    def shifted(self, dx: float, dy: float, w: float, h: float) -> Picture:
        """Return the same picture moved inside a larger one; its ports move along x."""
        moved = Picture(w, h, ports={key: x + dx for key, x in self.ports.items()})
        moved.strokes = moved.take(self, dx, dy)
        return moved

    def draw(self, wire: Wire, stroke: Stroke, label: Box | None) -> None:
        """Take a drawn wire, and remember where it crosses the border."""
        key = wire.link.key
        self.strokes[key] = stroke
        if label is not None:
            self.labels[key] = label
        if wire.stub:
            self.stubs.add(key)
        elif wire.tail is None:
            self.ports[key] = wire.cells[0].x
        elif wire.head is None:
            self.ports[key] = wire.cells[-1].x

    def draw_self(self, link: Link, stroke: Stroke, label: Box | None) -> None:
        """Take a line from a card to itself."""
        self.strokes[link.key] = stroke
        if label is not None:
            self.labels[link.key] = label


def _tops(rows: Rows) -> list[tuple[float, float]]:
    """Give each row its (top, bottom); steep lines get a wider gap to swing in."""
    found: list[tuple[float, float]] = []
    y = 0.0
    for index, row in enumerate(rows.rows):
        height = max((cell.height for cell in row), default=0.0)
        found.append((y, y + height))
        swing = max(
            (abs(j.upper.x + j.upper_at - j.lower.x - j.lower_at) for cell in row for j in cell.down),
            default=0.0,
        )
        below = rows.rows[index + 1] if index + 1 < len(rows.rows) else []
        base = 21.0 if any(cell.item for cell in below) else 9.0
        y += height + base + min(42.0, 0.15 * swing)
    return found


class Drawing:
    """Draws the wires of one region whose cells have their columns."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.y = _tops(rows)
        cells = [cell for row in rows.rows for cell in row]
        self.pad = PAD if rows.bordered else 0.0
        left = min((cell.x - cell.left for cell in cells), default=0.0) - self.pad
        for cell in cells:
            cell.x -= left
        self.width = max((cell.x + cell.right for cell in cells), default=0.0) + self.pad
        self.height = self.y[-1][1] if self.y else 0.0
        self.boxes = {key: self._box(cell) for key, cell in rows.cell_of.items()}

    def _box(self, cell: Cell) -> Box:
        item = cell.item
        assert item is not None  # noqa: S101 - only item cells are in cell_of
        top, bottom = self.y[cell.row]
        spare = bottom - top - item.h
        return Box(cell.x - item.w / 2, top + (spare / 2 if spare < 60 else 0), item.w, item.h)

    def title_box(self) -> Box | None:
        """Where the region's title stands."""
        cell = self.rows.title
        if cell is None:
            return None
        return Box(cell.x - cell.left, self.y[cell.row][0], cell.left + cell.right, cell.height)

    def label_box(self, wire: Wire) -> Box | None:
        """Where the label of a wire stands."""
        cell = wire.label_cell
        if cell is None:
            return None
        top, bottom = self.y[cell.row]
        w, h = wire.label
        return Box(cell.x - w / 2, (top + bottom - h) / 2, w, h)

    def stroke(self, wire: Wire) -> Stroke:
        """Draw one wire from its tail (or the border) to its head (or the border)."""
        stroke = Stroke()
        if wire.tail:
            self._leave(stroke, wire, wire.tail)
        near, far = (1, 0) if wire.upward else (0, 1)
        for cell in wire.cells:
            if stroke.commands:
                stroke.swing(cell.x, self.y[cell.row][near])
            stroke.line(cell.x, self.y[cell.row][far])
        if wire.head and not wire.stub:
            self._arrive(stroke, wire, wire.head)
        return stroke

    def _leave(self, stroke: Stroke, wire: Wire, tail: Item) -> None:
        box, cell, join = self.boxes[tail.key], self.rows.cell_of[tail.key], wire.joins[0]
        top, bottom = self.y[cell.row]
        if not wire.upward:
            x = cell.x + join.upper_at
            stroke.line(x, box.bottom)
            stroke.line(x, bottom)
        elif join.lower_side:
            x = cell.x + join.lower_at
            stroke.line(box.right, box.y + LANE * join.lane)
            stroke.corner(x, top, sideways_first=True)
        else:
            x = cell.x + join.lower_at
            stroke.line(x, box.y)
            stroke.line(x, top)

    def _arrive(self, stroke: Stroke, wire: Wire, head: Item) -> None:
        box, cell, join = self.boxes[head.key], self.rows.cell_of[head.key], wire.joins[-1]
        top, bottom = self.y[cell.row]
        if not wire.upward:
            x = cell.x + join.lower_at
            stroke.swing(x, top)
            stroke.line(x, box.y)
        else:
            x = cell.x + join.upper_at
            stroke.swing(x, bottom)
            if join.upper_side:
                y = box.bottom - LANE * join.lane
                stroke.corner(box.right, y, sideways_first=False)
            else:
                stroke.line(x, box.bottom)

    def self_loop(self, item: Item, index: int, label: tuple[float, float]) -> tuple[Stroke, Box | None]:
        """Draw a line from a card to itself, at its right side, with its label beyond."""
        box = self.boxes[item.key]
        middle = box.cy + (item.leaving - item.reaching) * LANE / 2
        rooms = [self_room(size) for _, size in item.selves]
        y = middle - sum(rooms) / 2 + sum(rooms[:index]) + rooms[index] / 2
        stroke = Stroke()
        out = box.right + 20
        stroke.line(box.right, y - 6)
        stroke.line(out - 8, y - 6)
        stroke.commands.append(("C", (out, y - 6, out, y + 6, out - 8, y + 6)))
        stroke.line(box.right, y + 6)
        return stroke, Box(out + 3, y - label[1] / 2, label[0], label[1]) if label[1] else None
