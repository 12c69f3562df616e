"""Boxes, curves and an estimate of how wide text is."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final, TypeAlias

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
