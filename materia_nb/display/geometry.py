"""Rectangles, paths with rounded corners, edge data for Cytoscape, and estimates of text widths."""

from __future__ import annotations

import math
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from materia_nb.display.escape import cut_off


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels whose upper left corner is at (``x``, ``y``)."""

    x: float
    y: float
    w: float
    h: float

    @property
    def cx(self) -> float:
        """X coordinate of the centre, in pixels."""
        return self.x + self.w / 2

    @property
    def cy(self) -> float:
        """Y coordinate of the centre, in pixels."""
        return self.y + self.h / 2

    @property
    def right(self) -> float:
        """X coordinate of the right side, in pixels."""
        return self.x + self.w

    @property
    def bottom(self) -> float:
        """Y coordinate of the bottom side, in pixels."""
        return self.y + self.h

    def translated(self, dx: float, dy: float) -> Box:
        """Return a copy of the box, moved by (``dx``, ``dy``)."""
        return Box(self.x + dx, self.y + dy, self.w, self.h)

    def transposed(self) -> Box:
        """Return a copy of the box with x and y swapped."""
        return Box(self.y, self.x, self.h, self.w)

    def gap(self, other: Box) -> Box | None:
        """Return the area between two boxes that face each other, horizontally or vertically, or None."""
        x, y = max(self.x, other.x), max(self.y, other.y)
        w, h = min(self.right, other.right) - x, min(self.bottom, other.bottom) - y
        if (w > 0) == (h > 0):  # they overlap, or lie diagonally to each other
            return None
        return Box(x + w, y, -w, h) if h > 0 else Box(x, y + h, w, -h)

    def overlaps(self, others: Iterable[Box], margin: float = 0) -> bool:
        """Return True if any of the other boxes overlaps this box or is closer to it than ``margin``."""
        x, y, right, bottom = self.x, self.y, self.x + self.w + margin, self.y + self.h + margin
        return any(
            x < other.x + other.w + margin and other.x < right and y < other.y + other.h + margin and other.y < bottom
            for other in others
        )


Point: TypeAlias = tuple[float, float]

# Widths in thousandths of the font size, measured in a wide sans serif, so that real text is rarely wider.
_CHAR_WIDTHS: Final = {
    **dict.fromkeys("iljI.,:;|!'`", 330),
    **dict.fromkeys("ftr()[]{}/\\ -", 400),
    **dict.fromkeys("mwMW@%—", 930),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ&", 700),
    **dict.fromkeys("✓✗✖▶▸●→…", 860),
}
_MAX_CACHED_WIDTHS: Final = 2_000
"""Maximum number of cached text widths. Most texts in a picture stay the same from one step to the next."""


@lru_cache(maxsize=_MAX_CACHED_WIDTHS)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Estimate the width of one line of text, in pixels."""
    ends = _char_ends(text, size, bold=bold)
    return ends[-1] if ends else 0.0


def _char_ends(text: str, size: float, *, bold: bool) -> list[float]:
    """Return the estimated x coordinate of the end of each character, in pixels."""
    weight = 1.08 if bold else 1.0
    ends: list[float] = []
    end = 0  # in thousandths of the font size
    for char in text:
        width = _CHAR_WIDTHS.get(char)
        if width is None:
            if char < "\u0300":
                width = 620
            elif unicodedata.combining(char) or char in "\u200d\u2068\u2069\ufe0f":
                width = 0
            else:
                width = 1060 if unicodedata.east_asian_width(char) in "WF" else 760
        end += width
        ends.append(end * size * weight / 1000)
    return ends


@lru_cache(maxsize=_MAX_CACHED_WIDTHS)
def fit_text(text: str, size: float, max_width: float, *, bold: bool = False) -> str:
    """Shorten one line of text to a width of at most ``max_width`` pixels."""
    ends = _char_ends(text, size, bold=bold)
    if not ends or ends[-1] <= max_width:
        return text
    return cut_off(text, bisect_right(ends, max_width - size * 0.86))


@lru_cache(maxsize=_MAX_CACHED_WIDTHS)
def wrap_text(text: str, size: float, max_width: float, max_lines: int) -> tuple[str, ...]:
    """Wrap text to at most ``max_lines`` lines of ``max_width`` pixels. The last line is shortened if necessary."""
    lines: list[str] = []
    remaining = text.split()
    while remaining and len(lines) < max_lines - 1:
        count = 1
        while count < len(remaining) and text_width(" ".join(remaining[: count + 1]), size) <= max_width:
            count += 1
        lines.append(fit_text(" ".join(remaining[:count]), size, max_width))
        remaining = remaining[count:]
    return (*lines, fit_text(" ".join(remaining), size, max_width)) if remaining else tuple(lines)


# -- lines -----------------------------------------------------------------------------------

_CORNER_RADIUS: Final = 6.0


_CORNER_SEGMENTS: Final = 4  # Number of straight segments that approximate a rounded corner.


def _round_corners(points: Sequence[Point]) -> Iterator[tuple[Point, Point, Point]]:
    """Yield the start, the control point and the end of the curve at each corner of an orthogonal path."""
    for before, at, after in zip(points, points[1:], points[2:], strict=False):
        radius = min(_CORNER_RADIUS, math.dist(before, at) / 2, math.dist(at, after) / 2)
        yield _point_towards(at, before, radius), at, _point_towards(at, after, radius)


def _point_towards(start: Point, end: Point, distance: float) -> Point:
    length = math.dist(start, end) or 1.0
    return start[0] + (end[0] - start[0]) * distance / length, start[1] + (end[1] - start[1]) * distance / length


def rounded_path(points: Sequence[Point]) -> str:
    """Return an orthogonal path as SVG path data with rounded corners."""
    path = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (ax, ay), (x, y), (bx, by) in _round_corners(points):
        path.append(f"L{ax:.1f} {ay:.1f}C{x:.1f} {y:.1f} {x:.1f} {y:.1f} {bx:.1f} {by:.1f}")
    return "".join([*path, f"L{points[-1][0]:.1f} {points[-1][1]:.1f}"])


def rounded_polyline(points: Sequence[Point]) -> list[Point]:
    """Return an orthogonal path as a polyline that approximates its rounded corners."""
    polyline = [points[0]]
    for (ax, ay), (x, y), (bx, by) in _round_corners(points):
        for step in range(_CORNER_SEGMENTS + 1):
            t = step / _CORNER_SEGMENTS
            u = 1 - t
            polyline.append((u**3 * ax + 3 * u * t * x + t**3 * bx, u**3 * ay + 3 * u * t * y + t**3 * by))
    polyline.append(points[-1])
    return [point for n, point in enumerate(polyline) if n == 0 or math.dist(point, polyline[n - 1]) > 0.05]


def bend_segments(points: Sequence[Point], source: Point, target: Point, label: Point | None) -> dict[str, str | float]:
    """Convert a polyline between two nodes to data for Cytoscape's ``curve-style: segments``.

    ``source`` and ``target`` are the centres of the nodes. In the result, ``ws`` contains the positions of the bends
    along the straight line between the centres, as fractions of its length, and ``ds`` their distances from this line,
    in pixels. ``from`` and ``to`` are the ends of the polyline, relative to the centres. ``dx`` and ``dy`` are the
    offset of ``label`` from the middle point, at which Cytoscape draws labels.
    """
    before, middle, after = _split_polyline(points, label)
    inner_points = _balanced_points(before, middle, after)
    (sx, sy), (tx, ty) = source, target
    dx, dy = tx - sx, ty - sy
    length = math.hypot(dx, dy) or 1.0  # One socket can be dragged onto another.
    (ax, ay), (bx, by) = points[0], points[-1]
    label_x, label_y = label or middle
    return {
        "ws": " ".join(f"{((x - sx) * dx + (y - sy) * dy) / length**2:.5f}" for x, y in inner_points),
        "ds": " ".join(f"{((y - sy) * dx - (x - sx) * dy) / length:.2f}" for x, y in inner_points),
        "from": f"{ax - sx:.1f} {ay - sy:.1f}",
        "to": f"{bx - tx:.1f} {by - ty:.1f}",
        "dx": round(label_x - middle[0], 1),
        "dy": round(label_y - middle[1], 1),
    }


def _split_polyline(points: Sequence[Point], label: Point | None) -> tuple[list[Point], Point, list[Point]]:
    """Split the inner points of a polyline into two lists, and return both lists and the split point.

    The split point is the point nearest to ``label`` or, if there is no label, the middle of the middle segment.
    """
    if label is None:
        segment = (len(points) - 2) // 2
        (ax, ay), (bx, by) = points[segment], points[segment + 1]
        middle = ((ax + bx) / 2, (ay + by) / 2)
    else:
        candidates = [(_nearest_on_segment(label, points[n], points[n + 1]), n) for n in range(len(points) - 1)]
        middle, segment = min(candidates, key=lambda candidate: math.dist(candidate[0], label))
    return list(points[1 : segment + 1]), middle, list(points[segment + 1 : -1])


def _nearest_on_segment(point: Point, start: Point, end: Point) -> Point:
    dx, dy = end[0] - start[0], end[1] - start[1]
    square = dx * dx + dy * dy
    t = 0.0 if square == 0 else ((point[0] - start[0]) * dx + (point[1] - start[1]) * dy) / square
    t = min(0.98, max(0.02, t))
    return start[0] + t * dx, start[1] + t * dy


def _balanced_points(before: list[Point], middle: Point, after: list[Point]) -> list[Point]:
    """Join two lists of points around ``middle``.

    The shorter list is padded to the length of the other list, because Cytoscape labels the middle point.
    """
    length_difference = len(before) - len(after)
    # Repeating the point is enough: a segment of length 0 is invisible.
    return [*before, *[middle] * max(0, -length_difference), middle, *[middle] * max(0, length_difference), *after]
