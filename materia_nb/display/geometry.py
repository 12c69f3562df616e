"""Boxes, curves, the strokes that links are drawn with, and an estimate of how wide text is."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from materia_nb.display.escape import cut_off


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels; ``x``, ``y`` is its upper left corner."""

    x: float
    y: float
    w: float
    h: float

    @property
    def cx(self) -> float:
        """Horizontal centre."""
        return self.x + self.w / 2

    @property
    def cy(self) -> float:
        """Vertical centre."""
        return self.y + self.h / 2

    @property
    def right(self) -> float:
        """Right side."""
        return self.x + self.w

    @property
    def bottom(self) -> float:
        """Lower side."""
        return self.y + self.h

    def moved(self, dx: float, dy: float) -> Box:
        """Return the same box elsewhere."""
        return Box(self.x + dx, self.y + dy, self.w, self.h)

    def flipped(self) -> Box:
        """Return the same box with x and y exchanged."""
        return Box(self.y, self.x, self.h, self.w)

    def overlaps(self, other: Box, margin: float = 0) -> bool:
        """Whether the two have area in common (nearer than ``margin`` counts)."""
        return (
            self.x < other.right + margin
            and other.x < self.right + margin
            and self.y < other.bottom + margin
            and other.y < self.bottom + margin
        )


Point: TypeAlias = tuple[float, float]

# Widths in thousandths of the font size; those of a wide sans serif, so that real text is seldom wider.
_WIDTHS: Final = {
    **dict.fromkeys("iljI.,:;|!'`", 330),
    **dict.fromkeys("ftr()[]{}/\\ -", 400),
    **dict.fromkeys("mwMW@%—", 930),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ&", 700),
    **dict.fromkeys("✓✗✖▶▸●→…", 860),
}


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Estimate the width in pixels of one line of text."""
    total = 0
    for char in text:
        width = _WIDTHS.get(char)
        if width is None:
            if char < "\u0300":
                width = 620
            elif unicodedata.combining(char) or char in "\u200d\u2068\u2069\ufe0f":
                width = 0
            else:
                width = 1060 if unicodedata.east_asian_width(char) in "WF" else 760
        total += width
    return total * size * (1.08 if bold else 1.0) / 1000


def fit(text: str, size: float, room: float, *, bold: bool = False) -> str:
    """Cut one line of text so that it takes at most ``room`` pixels."""
    if text_width(text, size, bold=bold) <= room:
        return text
    at = len(text)
    while at and text_width(text[:at], size, bold=bold) > room - size * 0.86:
        at -= 1
    return cut_off(text, at)


# -- strokes ---------------------------------------------------------------------------------

Command: TypeAlias = tuple[Literal["M", "L", "C"], tuple[float, ...]]
_BEND: Final = 9.0


@dataclass(slots=True)
class Stroke:
    """A path of straight and curved pieces."""

    commands: list[Command] = field(default_factory=list)

    @property
    def at(self) -> Point:
        """Where the pen is."""
        x, y = self.commands[-1][1][-2:]
        return x, y

    def line(self, x: float, y: float) -> None:
        """Go straight to a point (start there, if this is the first)."""
        if not self.commands:
            self.commands.append(("M", (x, y)))
        elif self.at != (x, y):
            self.commands.append(("L", (x, y)))

    def swing(self, x: float, y: float) -> None:
        """Go to a point on another row, leaving and arriving vertically."""
        x0, y0 = self.at
        if abs(x - x0) < 0.5:
            self.line(x, y)
        else:
            middle = (y0 + y) / 2
            self.commands.append(("C", (x0, middle, x, middle, x, y)))

    def corner(self, x: float, y: float, *, sideways_first: bool) -> None:
        """Go to a point around one rounded corner, horizontally or vertically first."""
        x0, y0 = self.at
        bend = min(_BEND, abs(x - x0), abs(y - y0))
        left, up = (1 if x > x0 else -1), (1 if y > y0 else -1)
        if sideways_first:
            self.line(x - left * bend, y0)
            self.commands.append(("C", (x, y0, x, y0, x, y0 + up * bend)))
        else:
            self.line(x0, y - up * bend)
            self.commands.append(("C", (x0, y, x0, y, x0 + left * bend, y)))
        self.line(x, y)

    def then(self, other: Stroke) -> Stroke:
        """Return this path continued by one that starts where it ends."""
        return Stroke([*self.commands, *other.commands[1:]])

    def moved(self, dx: float, dy: float) -> Stroke:
        """Return the same path elsewhere."""
        return Stroke(
            [
                (kind, tuple(value + (dy if index % 2 else dx) for index, value in enumerate(values)))
                for kind, values in self.commands
            ]
        )

    def flipped(self) -> Stroke:
        """Return the same path with x and y exchanged."""
        return Stroke(
            [
                (
                    kind,
                    tuple(value for x, y in zip(values[::2], values[1::2], strict=True) for value in (y, x)),
                )
                for kind, values in self.commands
            ]
        )

    def d(self) -> str:
        """Write the path as SVG path data."""
        return "".join(kind + " ".join(f"{value:.1f}" for value in values) for kind, values in self.commands)

    def heading(self) -> Point:
        """Unit direction in which the path ends, along an axis."""
        points = [values for _, values in self.commands]
        x, y = points[-1][-2:]
        before = points[-1][-4:-2] if len(points[-1]) > 2 else points[-2][-2:]
        dx, dy = x - before[0], y - before[1]
        if abs(dx) > abs(dy):
            return (1.0 if dx > 0 else -1.0), 0.0
        return 0.0, (1.0 if dy > 0 else -1.0)
