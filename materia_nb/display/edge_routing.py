"""Orthogonal edge routing: attach lines to cards, position the labels of lines ("chips"), and compute paths.

Paths consist of horizontal and vertical segments around cards, chips and headings. Each line takes the cheapest path on
a sparse grid; an A* search finds this path. Grid lines run next to boxes, midway between boxes and through the ends of
lines. Segments that share a grid line are then moved apart into parallel lanes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain, pairwise, repeat
from typing import Final

from materia_nb.display.geometry import Box, Point
from materia_nb.display.graph_parts import Link
from materia_nb.loadout.vocabulary import REWORK_CONDITIONS

RIGHT: Final = 0
DOWN: Final = 1
LEFT: Final = 2
UP: Final = 3
DIRECTION_VECTORS: Final = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Unit vector of each direction. A side of a box is named after the direction in which lines leave it."""

_X_STEPS, _Y_STEPS = zip(*DIRECTION_VECTORS, strict=True)
ARROW_MARGIN: Final = 12.0
"""Distance between a box and a line that runs alongside it, in pixels; also the space for an arrow head."""
CLEARANCE: Final = 4.0
"""Minimum distance between a box and a line that passes it, in pixels."""
_LANE_WIDTH: Final = 8.0
_BEND_COST: Final = 34.0
_BOX_FACTOR: Final = 50.0
"""Cost factor of a path through a box. The router chooses such a path only if no other path exists."""
_OTHER_LOOP_FACTOR: Final = 2.5  # Cost factor of a path through a loop that does not contain both ends of the line.
_OTHER_NET_FACTOR: Final = 1.4
_SAME_NET_FACTOR: Final = 0.9


_CHIP_GAP: Final = 10.0  # Distance between a chip and its card, in pixels.
_SLOT_WIDTH: Final = 14.0  # Width that a line without a chip occupies on a side of a card, in pixels.


@dataclass(slots=True, eq=False)
class RoutedLine:
    """A line between two boxes, with the results of routing: its directions, its end points, and the box of its chip.

    Attributes:
        links: the links that the line represents; several if they are exits between the same two sockets.
        source: the key of the box at which the line starts.
        target: the key of the box at which the line ends; None if the line ends at a label that names its target.
        chip: the width and height of the chip; (0, 0) if the line has no chip.
        loops: ids of the loops through which the line may run without extra cost.
        departure: the direction in which the line leaves its source.
        arrival: the direction in which the line enters its target.
        net: the key of the lines that arrive at the same point and may share segments.
        port: the point at which the line leaves its source.
        label: the box of the chip; None if the line has no chip.
        tip: the point at which the line reaches its target.
    """

    links: tuple[Link, ...]
    source: str
    target: str | None
    chip: tuple[float, float]
    loops: frozenset[str]
    departure: int = RIGHT
    arrival: int = RIGHT
    net: str = ""
    port: Point = (0.0, 0.0)
    label: Box | None = None
    tip: Point = (0.0, 0.0)

    @property
    def key(self) -> str:
        """The key of the line's first link."""
        return self.links[0].key

    @property
    def chip_start(self) -> Point:
        """The point at which the line from the card reaches the chip."""
        return _move_point(self.port, self.departure, _CHIP_GAP if self.label is not None else 0.0)

    @property
    def start(self) -> Point:
        """The point after the chip, at which the routed path begins."""
        if self.label is None:
            return self.port
        size = self.label.h if self.departure in (UP, DOWN) else self.label.w
        return _move_point(self.chip_start, self.departure, size)


def route_lines(lines: Sequence[RoutedLine], boxes: Sequence[Box], frames: Mapping[str, Box]) -> dict[str, list[Point]]:
    """Return the path of every line from its ``start`` to its ``tip``. Short lines are routed first.

    Args:
        lines: the lines, already attached to their cards.
        boxes: the boxes that lines must avoid.
        frames: the box of each loop, by loop id. A line may cross a loop that is not in its ``loops`` at extra cost.
    """
    grid = _Grid(lines, boxes, frames)
    by_length = sorted(lines, key=lambda line: sum(abs(a - b) for a, b in zip(line.start, line.tip, strict=True)))
    paths = {line.key: grid.route(line) for line in by_length}
    nets = {line.key: line.net for line in lines}
    for axis in (0, 1):
        _separate_overlaps(paths, nets, boxes, axis)
    return paths


def _move_point(point: Point, direction: int, distance: float) -> Point:
    dx, dy = DIRECTION_VECTORS[direction]
    return point[0] + dx * distance, point[1] + dy * distance


class _Grid:
    """The grid of x and y coordinates along which lines may run, with the cost of each segment.

    Grid points are numbered column by column. Each segment is identified by the number of the grid point at its left or
    upper end.
    """

    def __init__(self, lines: Sequence[RoutedLine], boxes: Sequence[Box], frames: Mapping[str, Box]) -> None:
        ends = [end for line in lines for end in self._bend_range(line)]
        areas = [*boxes, *frames.values()]
        self.xs = _grid_coordinates([x for x, _ in ends], [(box.x, box.right) for box in areas])
        self.ys = _grid_coordinates([y for _, y in ends], [(box.y, box.bottom) for box in areas])
        self.nets: tuple[dict[int, set[str]], dict[int, set[str]]] = ({}, {})
        widths, heights = ([b - a for a, b in pairwise(coordinates)] for coordinates in (self.xs, self.ys))
        rows = len(self.ys)
        self.costs = [width for width in widths for _ in range(rows)], [*heights, 0.0] * len(self.xs)
        for box in boxes:
            for axis, segment in self._segments_in(box, CLEARANCE):
                self.costs[axis][segment] = (heights[segment % rows] if axis else widths[segment // rows]) * _BOX_FACTOR
        self.frames: tuple[dict[int, list[str]], dict[int, list[str]]] = ({}, {})
        for loop, box in frames.items():
            for axis, segment in self._segments_in(box, 0):
                self.frames[axis].setdefault(segment, []).append(loop)

    @staticmethod
    def _bend_range(line: RoutedLine) -> tuple[Point, Point]:
        """Return the first and the last point at which a line may bend."""
        first = _move_point(line.start, line.departure, ARROW_MARGIN / 2)
        return first, _move_point(line.tip, line.arrival, -ARROW_MARGIN)

    def _segments_in(self, box: Box, margin: float) -> Iterator[tuple[int, int]]:
        """Yield the axis and the number of each segment that runs through a box or within ``margin`` of it."""
        x, y, x_end, y_end = box.x - margin, box.y - margin, box.right + margin, box.bottom + margin
        left, right = bisect_right(self.xs, x), bisect_left(self.xs, x_end)
        top, bottom = bisect_right(self.ys, y), bisect_left(self.ys, y_end)
        rows = len(self.ys)
        columns = range(max(left - 1, 0), min(right, len(self.xs) - 1))
        segments = [zip(repeat(0), range(i * rows + top, i * rows + bottom), strict=False) for i in columns]
        low, high = max(top - 1, 0), min(bottom, rows - 1)
        segments += [zip(repeat(1), range(i * rows + low, i * rows + high), strict=False) for i in range(left, right)]
        return chain.from_iterable(segments)

    def route(self, line: RoutedLine) -> list[Point]:
        """Return the cheapest path of a line as its end points and bends."""
        rows, (first, last) = len(self.ys), self._bend_range(line)
        column, row = bisect_left(self.xs, last[0]), bisect_left(self.ys, last[1])
        start = (bisect_left(self.xs, first[0]) * rows + bisect_left(self.ys, first[1])) * 4 + line.departure
        states, predecessors = [(column * rows + row) * 4 + line.arrival], self._search(line, start, column, row)
        while states[-1] in predecessors:
            states.append(predecessors[states[-1]])
        grid_points = [state >> 2 for state in reversed(states)]
        for a, b in pairwise(grid_points):
            if a != b:
                self.nets[int(abs(a - b) == 1)].setdefault(min(a, b), set()).add(line.net)
        points = [(self.xs[grid_point // rows], self.ys[grid_point % rows]) for grid_point in grid_points]
        return simplify_path([line.start, *points, line.tip])

    def _cost(self, axis: int, segment: int, line: RoutedLine) -> float:
        cost = self.costs[axis][segment]
        if (loops := self.frames[axis].get(segment)) and not line.loops.issuperset(loops):
            cost *= _OTHER_LOOP_FACTOR
        if nets := self.nets[axis].get(segment):
            cost *= _SAME_NET_FACTOR if len(nets) == 1 and line.net in nets else _OTHER_NET_FACTOR
        return cost

    def _search(self, line: RoutedLine, start: int, column: int, row: int) -> dict[int, int]:
        """Run an A* search and return the predecessor of each visited state (a grid point with a direction)."""
        xs, ys, rows = self.xs, self.ys, len(self.ys)
        goal = (column * rows + row) * 4 + line.arrival
        queue = [(0.0, 0.0, start)]
        costs, predecessors = {start: 0.0}, dict[int, int]()
        while queue:
            _, cost, state = heappop(queue)
            if state == goal:
                break
            if cost > costs[state]:
                continue
            node, current_direction = state >> 2, state & 3
            current_column, current_row = divmod(node, rows)
            for turn in (0, 1, 3):
                direction = (current_direction + turn) & 3
                bend_cost = _BEND_COST if turn else 0.0
                if turn and node * 4 + direction == goal and cost + bend_cost < costs.get(goal, 1e12):
                    costs[goal], predecessors[goal] = cost + bend_cost, state
                    heappush(queue, (cost + bend_cost, cost + bend_cost, goal))
                next_column, next_row = current_column + _X_STEPS[direction], current_row + _Y_STEPS[direction]
                if not (0 <= next_column < len(xs) and 0 <= next_row < rows):
                    continue
                next_node = next_column * rows + next_row
                next_cost = cost + (bend_cost + self._cost(direction & 1, next_node if direction > 1 else node, line))
                next_state = next_node * 4 + direction
                if next_cost < costs.get(next_state, 1e12):
                    costs[next_state], predecessors[next_state] = next_cost, state
                    estimate = next_cost + (abs(xs[next_column] - xs[column]) + abs(ys[next_row] - ys[row]))
                    estimate += _BEND_COST if next_column != column and next_row != row else 0.0
                    heappush(queue, (estimate, next_cost, next_state))
        return predecessors


def _grid_coordinates(ends: Iterable[float], spans: Iterable[tuple[float, float]]) -> list[float]:
    """Return the coordinates of grid lines on one axis: at line ends, next to boxes, and midway between boxes."""
    coordinates = sorted(set(ends))
    spans = sorted(spans)
    candidates = [candidate for low, high in spans for candidate in (low - ARROW_MARGIN, high + ARROW_MARGIN)]
    reached = spans[0][1] if spans else 0.0
    for low, high in spans:
        if low > reached:
            candidates.append((low + reached) / 2)
        reached = max(reached, high)
    grid_lines = coordinates
    for candidate in sorted(candidates):
        index = bisect_left(grid_lines, candidate)
        if min((abs(line - candidate) for line in grid_lines[max(0, index - 1) : index + 1]), default=9.0) >= 3:
            grid_lines.insert(index, candidate)
    return grid_lines


def simplify_path(points: Sequence[Point]) -> list[Point]:
    """Remove repeated points, and points in the middle of straight segments."""
    path: list[Point] = []
    for x, y in points:
        if path and abs(path[-1][0] - x) < 0.01 and abs(path[-1][1] - y) < 0.01:
            continue
        if len(path) > 1:
            (x1, y1), (x2, y2) = path[-2:]
            if (abs(x2 - x) < 0.01 and abs(x1 - x) < 0.01) or (abs(y2 - y) < 0.01 and abs(y1 - y) < 0.01):
                path.pop()
        path.append((x, y))
    return path


# -- lanes -----------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Segment:
    """A straight segment of a path.

    Attributes:
        key: the key of the line.
        net: the net of the line.
        index: the index of the segment in the path.
        position: the coordinate that all points of the segment share.
        low: the smaller coordinate of the ends of the segment on the other axis.
        high: the larger coordinate of the ends of the segment on the other axis.
        turn_offset: the sum of the distances by which the adjacent segments turn away, with a sign for each direction.
        is_fixed: True if the segment ends at a card and therefore cannot move.
        lane: the number of the parallel lane to which the segment is moved.
    """

    key: str
    net: str
    index: int
    position: float
    low: float
    high: float
    turn_offset: float
    is_fixed: bool
    lane: int = 0


def _segments_along(paths: Mapping[str, list[Point]], nets: Mapping[str, str], axis: int) -> list[_Segment]:
    """Return all segments with a constant x (axis 0) or a constant y (axis 1), sorted by the constant coordinate."""
    segments = []
    for key, points in paths.items():
        for index in range(len(points) - 1):
            a, b = points[index], points[index + 1]
            if abs(a[axis] - b[axis]) > 0.01:
                continue
            is_fixed = index == 0 or index == len(points) - 2
            turn_offset = 0.0 if is_fixed else points[index - 1][axis] + points[index + 2][axis] - 2 * a[axis]
            low, high = sorted((a[1 - axis], b[1 - axis]))
            segments.append(_Segment(key, nets[key], index, a[axis], low, high, turn_offset, is_fixed))
    return sorted(segments, key=lambda segment: (segment.position, segment.low))


def _separate_overlaps(paths: dict[str, list[Point]], nets: Mapping[str, str], boxes: Sequence[Box], axis: int) -> None:
    """Move overlapping segments apart, as far as the boxes next to them allow."""
    for group in _overlapping_groups(_segments_along(paths, nets, axis)):
        movable = [segment for segment in group if not segment.is_fixed]
        if not movable or len({segment.net for segment in group}) == 1:
            continue
        ranges = [_movable_range(segment, boxes, axis) for segment in movable]
        low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
        has_fixed_segment = any(segment.is_fixed for segment in group)
        for side in (-1, 1) if has_fixed_segment else (0,):
            side_segments = [segment for segment in movable if not side or (segment.turn_offset >= 0) == (side > 0)]
            lanes = _assign_lanes(side_segments, outward=side)
            if not lanes:
                continue
            middle = sum(segment.position for segment in group) / len(group)
            if side:
                step = min(_LANE_WIDTH, max(0.0, (high - middle if side > 0 else middle - low) / (lanes + 0.5)))
                first = middle + side * step
            else:
                step = min(_LANE_WIDTH, max(0.0, (high - low) / (lanes + 0.5)))
                total_width = step * (lanes - 1)
                first = min(max(middle - total_width / 2, low), max(low, high - total_width))
            for segment in side_segments:
                _move_segment(paths[segment.key], segment.index, axis, first + (side or 1) * step * segment.lane)


def _overlapping_groups(segments: Sequence[_Segment]) -> Iterator[list[_Segment]]:
    """Yield groups of segments that overlap and lie almost on the same grid line."""
    groups: list[list[_Segment]] = []
    for segment in segments:
        touching = [
            group
            for group in groups
            if any(
                segment.position - other.position < CLEARANCE
                and segment.low < other.high - 1
                and other.low < segment.high - 1
                for other in group
            )
        ]
        merged = [segment, *(other for group in touching for other in group)]
        groups = [group for group in groups if group not in touching]
        groups.append(merged)
        finished = [group for group in groups if segment.position - max(other.position for other in group) > CLEARANCE]
        yield from finished
        groups = [group for group in groups if group not in finished]
    yield from groups


def _assign_lanes(segments: Sequence[_Segment], *, outward: int) -> int:
    """Assign a lane to each segment and return the number of lanes.

    Segments of the same net share a lane. Overlapping segments of different nets get different lanes.
    """
    ordered = sorted(segments, key=lambda segment: (segment.turn_offset, segment.net), reverse=outward < 0)
    if outward:  # The segments that turn away the furthest become the outermost.
        ordered.sort(key=lambda segment: abs(segment.turn_offset))
    lane_of: dict[str, int] = {}
    for segment in ordered:
        overlapping = [
            lane_of[other.net]
            for other in segments
            if other.net != segment.net
            and other.net in lane_of
            and segment.low < other.high
            and other.low < segment.high
        ]
        lane_of[segment.net] = max(lane_of.get(segment.net, 0), max(overlapping, default=-1) + 1)
    for segment in segments:
        segment.lane = lane_of[segment.net]
    return max(lane_of.values(), default=-1) + 1


def _movable_range(segment: _Segment, boxes: Sequence[Box], axis: int) -> tuple[float, float]:
    """Return the range of coordinates to which a segment can move without touching a box."""
    low, high = segment.position - 60, segment.position + 60
    for box in boxes:
        sides, ends = (box.x, box.right), (box.y, box.bottom)
        (near_side, far_side), (start, end) = (ends, sides) if axis else (sides, ends)
        if start - CLEARANCE < segment.high and segment.low < end + CLEARANCE:
            if far_side <= segment.position:
                low = max(low, far_side + CLEARANCE)
            elif near_side >= segment.position:
                high = min(high, near_side - CLEARANCE)
    return min(low, segment.position), max(high, segment.position)


def _move_segment(points: list[Point], index: int, axis: int, position: float) -> None:
    for end in (index, index + 1):
        x, y = points[end]
        points[end] = (position, y) if axis == 0 else (x, position)


@dataclass(slots=True)
class _Side:
    """The lines at one side of a box. All arriving lines end at the same point."""

    outgoing: list[RoutedLine] = field(default_factory=list)
    incoming: list[RoutedLine] = field(default_factory=list)

    def occupied_width(self, side: int) -> float:
        """Return the occupied width of the side, in pixels."""
        return sum(_width_on_side(line, side) for line in self.outgoing) + (_SLOT_WIDTH if self.incoming else 0.0)


def _width_on_side(line: RoutedLine, side: int) -> float:
    """Return the width that an outgoing line occupies on a side of a card, in pixels."""
    if not line.chip[1]:
        return _SLOT_WIDTH
    return line.chip[0] + 8 if side in (UP, DOWN) else line.chip[1] + 4


def attach_lines(
    lines: Sequence[RoutedLine], boxes: Mapping[str, Box], flow: int, covers: Callable[[Box, str], bool]
) -> None:
    """Choose the sides of the cards, the end points and the chip position for every line.

    Args:
        lines: the lines, which are updated in place.
        boxes: the boxes that the lines connect, by key.
        flow: the direction of the flow, ``RIGHT`` or ``DOWN``.
        covers: a function that returns True if a chip in this box, next to the card with this key, would cover
            something.
    """
    sides = {(key, side): _Side() for key in boxes for side in range(4)}
    chip_strips: dict[tuple[str, int], Box] = {}
    for line in lines:
        line.departure, line.arrival = _choose_directions(boxes[line.source], boxes.get(line.target or ""), line, flow)
        line.net = f"{line.target} {line.arrival}"
        if line.target is not None:
            sides[line.target, (line.arrival + 2) % 4].incoming.append(line)
    for line in lines:
        source, preferred = boxes[line.source], line.departure
        by_preference = ((preferred + turn) % 4 for turn in (0, 1, 3, 2))
        free_sides = (side for side in by_preference if _has_room(sides, chip_strips, line, side, source, covers))
        if (exit_side := next(free_sides, None)) is not None:
            line.departure = exit_side
        else:  # All sides are full. The chip is dropped, but the tooltip still shows its text.
            line.chip = (0.0, 0.0)
        if line.chip[1]:
            strip, chip_side = _chip_strip(source, line.departure, line.chip), (line.source, line.departure)
            chip_strips[chip_side] = max(chip_strips.get(chip_side, strip), strip, key=lambda box: box.w * box.h)
        sides[line.source, line.departure].outgoing.append(line)
    leaving_sides = {position: side_lines for position, side_lines in sides.items() if side_lines.outgoing}
    for (key, side), side_lines in leaving_sides.items():
        _distribute_on_side(key, side, side_lines, boxes)
    for (key, side), side_lines in sides.items():
        if side_lines.incoming and (key, side) not in leaving_sides:
            coordinate = _entry_coordinate(boxes[key], side, side_lines.incoming)
            for line in side_lines.incoming:
                line.tip = _point_on_side(boxes[key], side, coordinate)


def _entry_coordinate(box: Box, side: int, incoming: Sequence[RoutedLine]) -> float:
    """Return the coordinate at which lines enter a side: where a line can enter without a bend, or else the middle."""
    axis = side in (LEFT, RIGHT)
    low, high, middle = (box.y + 8, box.bottom - 8, box.cy) if axis else (box.x + 12, box.right - 12, box.cx)
    straight = (line.port[axis] for line in incoming if line.departure == line.arrival)
    return min((at for at in straight if low <= at <= high), key=lambda at: abs(at - middle), default=middle)


def _point_on_side(box: Box, side: int, along: float) -> Point:
    """Return the point on one side of a box with the coordinate ``along`` on the axis of this side."""
    return {RIGHT: (box.right, along), LEFT: (box.x, along), DOWN: (along, box.bottom), UP: (along, box.y)}[side]


def _chip_box(port: Point, side: int, size: tuple[float, float]) -> Box:
    """Return the box of the chip of a line that leaves its card at ``port``."""
    (dx, dy), (w, h) = DIRECTION_VECTORS[side], size
    x, y = port[0] + dx * (_CHIP_GAP + w / 2), port[1] + dy * (_CHIP_GAP + h / 2)
    return Box(x - w / 2, y - h / 2, w, h)


def _chip_strip(box: Box, side: int, chip: tuple[float, float]) -> Box:
    """Return the area next to one side of a box that the chips on this side may cover."""
    (dx, dy), (w, h) = DIRECTION_VECTORS[side], chip
    depth, breadth = (_CHIP_GAP + (w if dx else h), (box.h if dx else box.w) + 4)
    x, y = box.cx + dx * (box.w + depth + 2) / 2, box.cy + dy * (box.h + depth + 2) / 2
    w, h = (depth, breadth) if dx else (breadth, depth)
    return Box(x - w / 2, y - h / 2, w, h)


def _has_room(
    sides: Mapping[tuple[str, int], _Side],
    chip_strips: Mapping[tuple[str, int], Box],
    line: RoutedLine,
    side: int,
    box: Box,
    covers: Callable[[Box, str], bool],
) -> bool:
    """Return True if there is space for another line and its chip on a side of a box."""
    length = (box.w if side in (UP, DOWN) else box.h) - 4
    if sides[line.source, side].occupied_width(side) + _width_on_side(line, side) > max(length, _SLOT_WIDTH * 2):
        return False
    strip = _chip_strip(box, side, line.chip)
    other_strips = (other for (key, _), other in chip_strips.items() if key != line.source)
    return not line.chip[1] or not (covers(strip, line.source) or strip.overlaps(other_strips, ARROW_MARGIN))


def _distribute_on_side(key: str, side: int, side_lines: _Side, boxes: Mapping[str, Box]) -> None:
    """Distribute lines along a side of a box, in the order of the boxes at their other ends."""
    box = boxes[key]
    axis = side in (LEFT, RIGHT)
    middle = box.cy if axis else box.cx

    def centre_of(box_key: str | None) -> float:
        target_box = boxes.get(box_key or "", box)
        return target_box.cy if axis else target_box.cx

    entries: list[tuple[float, RoutedLine | None]] = [(centre_of(line.target), line) for line in side_lines.outgoing]
    if side_lines.incoming:
        entries.append((sum(centre_of(line.source) for line in side_lines.incoming) / len(side_lines.incoming), None))
    # Two lines between the same cards have the same order at both ends, so that they do not cross.
    entries.sort(key=lambda entry: (entry[0], (entry[1] is None) == (side in (RIGHT, DOWN))))
    # Lines without chips move closer together; if that is not enough, chips are dropped.
    side_length, chips = (box.h if axis else box.w) - 4, [line for line in side_lines.outgoing if line.chip[1]]
    while chips and sum(_width_on_side(line, side) for line in chips) > side_length - 3 * (len(entries) - len(chips)):
        chips.pop().chip = (0.0, 0.0)
    chip_width = sum(_width_on_side(line, side) for line in chips)
    slot_width = min(_SLOT_WIDTH, (side_length - chip_width) / max(1, len(entries) - len(chips)))
    offset = middle - (chip_width + slot_width * (len(entries) - len(chips))) / 2
    for _, line in entries:
        width = _width_on_side(line, side) if line is not None and line.chip[1] else slot_width
        port = _point_on_side(box, side, offset + width / 2)
        offset += width
        if line is None:
            for arriving_line in side_lines.incoming:
                arriving_line.tip = port
            continue
        line.port = port
        if line.chip[1]:
            line.label = _chip_box(port, side, line.chip)


def _choose_directions(source: Box, target: Box | None, line: RoutedLine, flow: int) -> tuple[int, int]:
    """Return the directions in which a line leaves its source and enters its target."""
    if target is None:
        return flow, flow
    if source is target:
        return RIGHT, DOWN
    if flow == DOWN:  # Swap x and y, so that the flow runs to the right.
        departure, arrival = _directions_rightward(source.transposed(), target.transposed(), line.chip[::-1], line)
        return departure ^ 1, arrival ^ 1
    return _directions_rightward(source, target, line.chip, line)


def _directions_rightward(source: Box, target: Box, chip: tuple[float, float], line: RoutedLine) -> tuple[int, int]:
    """Return the exit and entry directions of a line in a left-to-right flow.

    The caller also uses this function for top-to-bottom flows: it swaps x and y, and then applies ``^ 1`` to the
    results, which swaps right with down and left with up.
    """
    chip_width, chip_height = ((size + _CHIP_GAP if chip[1] else 0.0) + 1.5 * ARROW_MARGIN for size in chip)
    ahead, back = target.x - source.right, source.x - target.right
    below, above = target.y - source.bottom, source.y - target.bottom
    if ahead >= chip_width:
        return RIGHT, RIGHT
    if (ahead > -source.w / 2 and back < 0) or max(below, above) > 0 > max(ahead, back):
        if below >= chip_height:
            return DOWN, DOWN
        if above >= chip_height:
            return UP, UP
    if back > 0 and below > 0:  # The target is in another band.
        return DOWN, RIGHT
    if back > 0 and above > 0:  # The line runs back, around a corner.
        return LEFT, UP
    # The line runs along the same side of both cards: above for rejections, below for other lines.
    return (UP, DOWN) if line.links[0].condition in REWORK_CONDITIONS else (DOWN, UP)
