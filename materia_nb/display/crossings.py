"""The order of the cells in each row: few crossings, lines that run back kept to the right."""

from __future__ import annotations

from bisect import bisect_right, insort

from materia_nb.display.rows import Cell, Join, Rows


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
