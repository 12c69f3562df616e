"""From ordered rows to boxes and strokes: the y coordinates and the way of every line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from materia_nb.display.geometry import Box
from materia_nb.display.links import Link
from materia_nb.display.rows import LANE, Cell, Item, Rows, Wire, self_room
from materia_nb.display.strokes import Stroke

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
