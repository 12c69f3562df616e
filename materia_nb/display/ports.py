"""Where lines meet the cards: on which side each leaves and arrives, in which order, and where its chip stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from materia_nb.display.geometry import Box, Point
from materia_nb.display.graph_parts import Link
from materia_nb.display.routing import AHEAD, BESIDE, DOWN, LEFT, RIGHT, UP, Way
from materia_nb.loadout.vocabulary import SENDING_BACK

_CHIP: Final = 10.0
"""How far from its card a chip stands."""
_SLOT: Final = 14.0
"""How much of a side a line takes that has no chip there."""


@dataclass(slots=True, eq=False)
class Led:
    """A line that is to be led between two boxes: what stands on its chip, its sides, and then the points and the chip.

    Several ``links`` are exits that lead from the same socket to the same one; ``target`` is None of one that only names it.
    """

    links: tuple[Link, ...]
    source: str
    target: str | None
    chip: tuple[float, float]
    out: int = RIGHT
    into: int = RIGHT
    port: Point = (0.0, 0.0)
    label: Box | None = None
    tip: Point = (0.0, 0.0)

    @property
    def key(self) -> str:
        """The key of its first link."""
        return self.links[0].key

    def way(self, loops: frozenset[str]) -> Way:
        """What routing leads: from the far end of the chip to the target."""
        dx, dy = AHEAD[self.out]
        far = 0.0 if self.label is None else _CHIP + (self.label.w if dx else self.label.h)
        start = (self.port[0] + dx * far, self.port[1] + dy * far)
        return Way(self.key, start, self.out, self.tip, self.into, f"{self.target} {self.into}", loops)


@dataclass(slots=True)
class _Side:
    """What meets one side of a box: those that leave, and whether any arrive, all at one place."""

    leaving: list[Led] = field(default_factory=list)
    arriving: list[Led] = field(default_factory=list)

    def taken(self, side: int) -> float:
        """How many pixels of the side are taken."""
        return sum(_wide(one, side) for one in self.leaving) + (_SLOT if self.arriving else 0.0)


def _wide(line: Led, side: int) -> float:
    """How many pixels of a side a line takes that leaves there."""
    if not line.chip[1]:
        return _SLOT
    return line.chip[0] + 8 if side in (UP, DOWN) else line.chip[1] + 4


def meet(
    lines: Sequence[Led], boxes: Mapping[str, Box], flow: int, solid: Callable[[Box, str], bool]
) -> None:
    """Give every line its sides, the points where it leaves and arrives, and the place of its chip.

    Args:
        lines: what is to be led; filled in.
        boxes: what they lead from and to.
        flow: the direction of the flow, ``RIGHT`` or ``DOWN``.
        solid: whether a chip beside a card, named by its key, would stand in the way of something.
    """
    sides = {(key, side): _Side() for key in boxes for side in range(4)}
    strips: dict[tuple[str, int], Box] = {}
    for line in lines:
        line.out, line.into = _sides(boxes[line.source], boxes.get(line.target or ""), line, flow)
        if line.target is not None:
            sides[line.target, (line.into + 2) % 4].arriving.append(line)
    for line in lines:
        source, wanted = boxes[line.source], line.out
        free = (side for side in _others(wanted) if _has_room(sides, strips, line, side, source, solid))
        if (out := next(free, None)) is not None:
            line.out = out
        else:  # so many lines that its chip has no place: what it says is said when it is pointed at
            line.chip = (0.0, 0.0)
        if line.chip[1]:
            strip, before = _strip(source, line.out, line.chip), strips.get((line.source, line.out))
            deepest = strip if before is None else max(before, strip, key=lambda box: box.w * box.h)
            strips[line.source, line.out] = deepest
        sides[line.source, line.out].leaving.append(line)
    spread = {where: those for where, those in sides.items() if those.leaving}
    for (key, side), those in spread.items():
        _spread(key, side, those, boxes)
    for (key, side), those in sides.items():
        if those.arriving and (key, side) not in spread:
            at = _straight_on(boxes[key], side, those.arriving)
            for line in those.arriving:
                line.tip = _on_side(boxes[key], side, at)


def _straight_on(box: Box, side: int, arriving: Sequence[Led]) -> float:
    """Where on a side lines arrive that are alone there: straight ahead of where one leaves, else in the middle."""
    axis = side in (LEFT, RIGHT)
    low, high, middle = (box.y + 8, box.bottom - 8, box.cy) if axis else (box.x + 12, box.right - 12, box.cx)
    straight = (line.port[axis] for line in arriving if line.out == line.into)
    return min((at for at in straight if low <= at <= high), key=lambda at: abs(at - middle), default=middle)


def _others(side: int) -> tuple[int, ...]:
    return side, (side + 1) % 4, (side + 3) % 4, (side + 2) % 4


def _on_side(box: Box, side: int, at: float) -> Point:
    """Return the point of a side of a box at a height or width."""
    return {RIGHT: (box.right, at), LEFT: (box.x, at), DOWN: (at, box.bottom), UP: (at, box.y)}[side]


def _chip_at(port: Point, side: int, size: tuple[float, float]) -> Box:
    """Return where the chip of a line stands that leaves at a port."""
    (dx, dy), (w, h) = AHEAD[side], size
    x, y = port[0] + dx * (_CHIP + w / 2), port[1] + dy * (_CHIP + h / 2)
    return Box(x - w / 2, y - h / 2, w, h)


def _strip(box: Box, side: int, chip: tuple[float, float]) -> Box:
    """Return the room beside a box that chips on one side may take."""
    (dx, dy), (w, h) = AHEAD[side], chip
    deep, wide = (_CHIP + (w if dx else h), (box.h if dx else box.w) + 4)
    x, y = box.cx + dx * (box.w + deep + 2) / 2, box.cy + dy * (box.h + deep + 2) / 2
    w, h = (deep, wide) if dx else (wide, deep)
    return Box(x - w / 2, y - h / 2, w, h)


def _has_room(
    sides: Mapping[tuple[str, int], _Side],
    strips: Mapping[tuple[str, int], Box],
    line: Led,
    side: int,
    box: Box,
    solid: Callable[[Box, str], bool],
) -> bool:
    """Whether one more line can leave a side, and its chip stand there."""
    long = (box.w if side in (UP, DOWN) else box.h) - 4
    if sides[line.source, side].taken(side) + _wide(line, side) > max(long, _SLOT * 2):
        return False
    strip = _strip(box, side, line.chip)
    others = (other for (key, _), other in strips.items() if key != line.source)
    return not line.chip[1] or not (
        solid(strip, line.source) or any(strip.overlaps(other, BESIDE) for other in others)
    )


def _spread(key: str, side: int, those: _Side, boxes: Mapping[str, Box]) -> None:
    """Put what meets a side beside each other, in the order of the other ends."""
    box = boxes[key]
    axis = side in (LEFT, RIGHT)
    middle = box.cy if axis else box.cx

    def towards(other: str | None) -> float:
        end = boxes.get(other or "", box)
        return end.cy if axis else end.cx

    slots: list[tuple[float, Led | None]] = [(towards(one.target), one) for one in those.leaving]
    if those.arriving:
        slots.append((sum(towards(one.source) for one in those.arriving) / len(those.arriving), None))
    slots.sort(key=lambda slot: slot[0])
    # Lines without a chip move together; where there is no room even so, chips go, which would lie over each other.
    room, chips = (box.h if axis else box.w) - 4, [one for one in those.leaving if one.chip[1]]
    while chips and sum(_wide(one, side) for one in chips) > room - 3 * (len(slots) - len(chips)):
        chips.pop().chip = (0.0, 0.0)
    taken = sum(_wide(one, side) for one in chips)
    slot = min(_SLOT, (room - taken) / max(1, len(slots) - len(chips)))
    at = middle - (taken + slot * (len(slots) - len(chips))) / 2
    for _, line in slots:
        wide = _wide(line, side) if line is not None and line.chip[1] else slot
        port = _on_side(box, side, at + wide / 2)
        at += wide
        if line is None:
            for one in those.arriving:
                one.tip = port
            continue
        line.port = port
        if line.chip[1]:
            line.label = _chip_at(port, side, line.chip)


def _sides(source: Box, target: Box | None, line: Led, flow: int) -> tuple[int, int]:
    """Choose the side on which a line leaves, and the direction in which it arrives."""
    if target is None:
        return flow, flow
    if source is target:
        return RIGHT, DOWN
    if flow == DOWN:  # as if it ran to the right
        out, into = _along(source.flipped(), target.flipped(), line.chip[::-1], line)
        return out ^ 1, into ^ 1
    return _along(source, target, line.chip, line)


def _along(source: Box, target: Box, chip: tuple[float, float], line: Led) -> tuple[int, int]:
    """Choose them where the flow runs to the right; ``^ 1`` exchanges right and down, left and up."""
    wide, high = ((size + _CHIP if chip[1] else 0.0) + 1.5 * BESIDE for size in chip)
    ahead, back = target.x - source.right, source.x - target.right
    below, above = target.y - source.bottom, source.y - target.bottom
    if ahead >= wide:
        return RIGHT, RIGHT
    if (ahead > -source.w / 2 and back < 0) or max(below, above) > 0 > max(ahead, back):
        if below >= high:
            return DOWN, DOWN
        if above >= high:
            return UP, UP
    if back > 0 and below > 0:  # on to another band
        return DOWN, RIGHT
    if back > 0 and above > 0:  # back, round a corner
        return LEFT, UP
    # Along the same side of both: what sends back on one, all else on the other.
    return (UP, DOWN) if line.links[0].condition in SENDING_BACK else (DOWN, UP)
