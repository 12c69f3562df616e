"""The lines of a layout as cytoscape draws them: points given relative to the centres of two nodes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from materia_nb.display.geometry import Point

_COMMAND: Final = re.compile(r"([MLC])([^MLC]*)")
_PIECES: Final = 10
"""How many straight pieces stand for a curve."""


@dataclass(frozen=True, slots=True)
class Bent:
    """A line between two node centres as ``curve-style: segments`` takes it.

    ``weights`` run along the line between the centres, ``distances`` in pixels beside it; ``start`` and ``tip`` are the
    ends in pixels from the centres; ``shift`` leads from the middle point, where a label goes by
    itself, to where the layout wants it.
    """

    weights: str
    distances: str
    start: str
    tip: str
    shift: Point


def points_of(d: str) -> list[Point]:
    """Flatten path data as ``Stroke.d`` writes it."""
    points: list[Point] = []
    for kind, numbers in _COMMAND.findall(d):
        values = [float(number) for number in numbers.split()]
        if kind != "C":
            points.append((values[0], values[1]))
            continue
        ax, ay = points[-1]
        bx, by, cx, cy, dx, dy = values
        for step in range(1, _PIECES + 1):
            t = step / _PIECES
            u = 1 - t
            x = u**3 * ax + 3 * u * u * t * bx + 3 * u * t * t * cx + t**3 * dx
            y = u**3 * ay + 3 * u * u * t * by + 3 * u * t * t * cy + t**3 * dy
            points.append((x, y))
    return [point for n, point in enumerate(points) if n == 0 or math.dist(point, points[n - 1]) > 0.05]


def bend(points: Sequence[Point], source: Point, target: Point, label: Point | None) -> Bent:
    """Express a polyline from a node at ``source`` to one at ``target``."""
    before, middle, after = _around(points, label)
    inner = _balanced(before, middle, after)
    (sx, sy), (tx, ty) = source, target
    dx, dy = tx - sx, ty - sy
    length = math.hypot(dx, dy) or 1.0  # a socket can be dragged onto another
    weights = [((x - sx) * dx + (y - sy) * dy) / length**2 for x, y in inner]
    distances = [((y - sy) * dx - (x - sx) * dy) / length for x, y in inner]
    (ax, ay), (bx, by) = points[0], points[-1]
    wanted = label or middle
    return Bent(
        " ".join(f"{weight:.5f}" for weight in weights),
        " ".join(f"{distance:.2f}" for distance in distances),
        f"{ax - sx:.1f} {ay - sy:.1f}",
        f"{bx - tx:.1f} {by - ty:.1f}",
        (round(wanted[0] - middle[0], 1), round(wanted[1] - middle[1], 1)),
    )


def _around(points: Sequence[Point], label: Point | None) -> tuple[list[Point], Point, list[Point]]:
    """Split a polyline at its point nearest to ``label``, or half way along its middle piece; ends are left out."""
    if label is None:
        piece = (len(points) - 2) // 2
        (ax, ay), (bx, by) = points[piece], points[piece + 1]
        middle = ((ax + bx) / 2, (ay + by) / 2)
    else:
        near = [(_nearest(label, points[n], points[n + 1]), n) for n in range(len(points) - 1)]
        middle, piece = min(near, key=lambda one: math.dist(one[0], label))
    return list(points[1 : piece + 1]), middle, list(points[piece + 1 : -1])


def _nearest(to: Point, start: Point, end: Point) -> Point:
    dx, dy = end[0] - start[0], end[1] - start[1]
    square = dx * dx + dy * dy
    t = 0.0 if square == 0 else ((to[0] - start[0]) * dx + (to[1] - start[1]) * dy) / square
    t = min(0.98, max(0.02, t))
    return start[0] + t * dx, start[1] + t * dy


def _balanced(before: list[Point], middle: Point, after: list[Point]) -> list[Point]:
    """Join the parts so that ``middle`` is the middle one of an odd number of points: cytoscape labels that one."""
    more = len(before) - len(after)
    # Repeating the point is enough: a piece without length is not seen.
    return [*before, *[middle] * max(0, -more), middle, *[middle] * max(0, more), *after]
