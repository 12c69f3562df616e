"""Check layouts for overlaps by sampling points along the drawn curves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from materia_nb.display.geometry import Box, Point
from materia_nb.display.layout import GraphLayout


def points_of(d: str, steps: int = 12) -> Iterator[Point]:
    """Return sample points along SVG path data that consists of M, L and C commands."""
    at = (0.0, 0.0)
    for kind, values in re.findall(r"([MLC])([^MLC]*)", d):
        n = [float(value) for value in values.split()]
        if kind == "M":
            at = (n[0], n[1])
        elif kind == "L":
            for k in range(1, steps + 1):
                t = k / steps
                yield at[0] + (n[0] - at[0]) * t, at[1] + (n[1] - at[1]) * t
            at = (n[0], n[1])
        else:
            x0, y0 = at
            for k in range(1, steps + 1):
                t = k / steps
                u = 1 - t
                yield (
                    u**3 * x0 + 3 * u * u * t * n[0] + 3 * u * t * t * n[2] + t**3 * n[4],
                    u**3 * y0 + 3 * u * u * t * n[1] + 3 * u * t * t * n[3] + t**3 * n[5],
                )
            at = (n[4], n[5])


def inside(box: Box, point: Point, margin: float = 1.0) -> bool:
    x, y = point
    return box.x + margin < x < box.right - margin and box.y + margin < y < box.bottom - margin


def forbidden_overlaps(placed: GraphLayout) -> list[str]:
    """Return the forbidden overlaps in a layout."""
    found = []
    solid = {**placed.nodes, **placed.markers}
    labels = {line.link.key: line.label for line in placed.edges if line.label}
    titles = {f"title {key}": box for key, box in placed.titles.items()}
    boxes = [*solid.items(), *labels.items(), *titles.items()]
    for index, (key, box) in enumerate(boxes):
        found += [f"{key} overlaps {other}" for other, rest in boxes[index + 1 :] if box.overlaps([rest])]
        if not (inside(placed.bounds, (box.x, box.y)) and inside(placed.bounds, (box.right, box.bottom))):
            found.append(f"{key} outside")
    for line in placed.edges:
        points = list(points_of(line.d))
        # exits between the same two sockets share one line and one label
        shared = {other.link.key for other in placed.edges if other.points == line.points}
        for key, box in solid.items():
            if any(inside(box, point) for point in points):
                found.append(f"{line.link.key} runs through {key}")
        for key, box in labels.items():
            if key not in shared and any(inside(box, point) for point in points):
                found.append(f"{line.link.key} runs through the label of {key}")
        for key, box in titles.items():
            if any(inside(box, point) for point in points):
                found.append(f"{line.link.key} runs through {key}")
    return found


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours according to WCAG 2."""

    def light(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
