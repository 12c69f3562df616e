"""Where lines meet the sides of cards."""

from __future__ import annotations

from materia_nb.display.rows import TURN, Rows


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
