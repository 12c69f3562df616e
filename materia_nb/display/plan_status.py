"""The five statuses of an agent contract as a small state diagram, with the way that one visit has taken."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import hypot
from typing import Final

from materia_nb.display.escape import esc
from materia_nb.display.geometry import Box, Point
from materia_nb.display.html import Html
from materia_nb.display.svg import FONT, INK, NOW, PLATE, RIM
from materia_nb.handoff.contract import legal_next

_HUB: Final = "IN_PROGRESS"
_WIDE, _HIGH = 150.0, 34.0
_BOXES: Final = {
    _HUB: Box(215, 68, _WIDE, _HIGH),
    "APPROVAL_REQUEST": Box(8, 16, _WIDE, _HIGH),
    "NEEDS_INPUT": Box(8, 120, _WIDE, _HIGH),
    "COMPLETE": Box(422, 16, _WIDE, _HIGH),
    "BLOCKED": Box(422, 120, _WIDE, _HIGH),
}
_SIZE: Final = (580, 170)
_APART: Final = 6.0


def path_words(statuses: Sequence[str]) -> str:
    """Say which statuses were reported, in order, and which may follow."""
    if not statuses:
        return "no status yet"
    return f"{' → '.join(statuses)} (may be followed by {' or '.join(legal_next(statuses[-1]))})"


def path_svg(statuses: Sequence[str]) -> Html:
    """Draw the statuses, the ways between them, and the way taken: thick, and numbered in order.

    Args:
        statuses: as reported, in order; names that are none of the five are passed over.
    """
    known = [status for status in statuses if status in _BOXES]
    taken = set(pairwise(known))
    words = path_words(known)
    width, height = _SIZE
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{esc(words)}" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" font-family="{FONT}" font-size="12">'
    )
    parts = [root, f"<title>{esc(words)}</title>"]
    for name in _BOXES:
        if name != _HUB:
            parts += [_way(name, _HUB, taken), _way(_HUB, name, taken)]
    parts.append(_again((_HUB, _HUB) in taken))
    parts += [
        _state(name, [n for n, status in enumerate(known, 1) if status == name], last=known[-1:] == [name])
        for name in _BOXES
    ]
    return Html("".join([*parts, "</svg>"]))


def _way(start: str, end: str, taken: set[tuple[str, str]]) -> str:
    """Draw the arrow from one status to another; the two directions run beside each other."""
    at, to = _BOXES[start], _BOXES[end]
    right = to.x > at.x
    shift = _APART if right else -_APART
    first = (at.right if right else at.x, at.y + _HIGH / 2 + shift)
    last = (to.x if right else to.right, to.y + _HIGH / 2 + shift)
    return _line(
        f"M{first[0]:g} {first[1]:g}L{last[0]:g} {last[1]:g}", first, last, taken=(start, end) in taken
    )


def _again(taken: bool) -> str:
    """Draw the arrow of a status that is reported twice in a row, over the box in the middle."""
    box = _BOXES[_HUB]
    left, right = box.x + 50, box.right - 50
    path = f"M{left:g} {box.y:g}C{left:g} {box.y - 36:g} {right:g} {box.y - 36:g} {right:g} {box.y:g}"
    return _line(path, (right, box.y - 20), (right, box.y), taken=taken)


def _line(path: str, before: Point, end: Point, *, taken: bool) -> str:
    colour = NOW if taken else RIM
    style = 'stroke-width="3"' if taken else 'stroke-width="1" stroke-dasharray="3 4"'
    long = hypot(end[0] - before[0], end[1] - before[1])
    dx, dy = (end[0] - before[0]) / long, (end[1] - before[1]) / long
    back, half = (9.0, 5.0) if taken else (7.0, 3.5)
    x, y = end[0] - dx * back, end[1] - dy * back
    tip = f"{end[0]:.1f},{end[1]:.1f} {x - dy * half:.1f},{y + dx * half:.1f} {x + dy * half:.1f},{y - dx * half:.1f}"
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" {style}/><polygon points="{tip}" fill="{colour}"/>'
    )


def _state(name: str, turns: Sequence[int], *, last: bool) -> str:
    box = _BOXES[name]
    rim, thick = (NOW, 3) if turns else (RIM, 1)
    number = f"{', '.join(map(str, turns))}: " if turns else ""
    weight = ' font-weight="700"' if last else ""
    return (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{_WIDE:g}" height="{_HIGH:g}" rx="6" fill="{PLATE}" '
        f'stroke="{rim}" stroke-width="{thick}"/><text x="{box.x + _WIDE / 2:g}" y="{box.y + 21:g}" '
        f'text-anchor="middle" fill="{INK}"{weight}>{esc(number + name)}</text>'
    )
