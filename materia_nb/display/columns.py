"""The x coordinates of cells: lines as straight as the order of the rows lets them be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, TypeAlias

from materia_nb.display.ports import widen_turns
from materia_nb.display.rows import Cell, Join, Rows

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
