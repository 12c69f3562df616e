"""Deterministic layout of a graph. The layout does not depend on the state of a cast.

Cards are placed at the positions in the loadout's ``layout``. If the loadout has no positions,
:mod:`~materia_nb.display.ranking` places the cards. The frame of a loop encloses its members, and
:mod:`~materia_nb.display.edge_routing` routes the lines. The canvas, the designer, exported pages and the documentation
all use this layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import inf
from operator import itemgetter
from typing import Final, Literal, TypeAlias

from materia_nb.display.edge_routing import (
    ARROW_MARGIN,
    CLEARANCE,
    DIRECTION_VECTORS,
    DOWN,
    LEFT,
    RIGHT,
    UP,
    RoutedLine,
    attach_lines,
    route_lines,
    simplify_path,
)
from materia_nb.display.geometry import Box, Point, rounded_path
from materia_nb.display.graph_parts import (
    END_MARKER,
    START_MARKER,
    Link,
    card_size,
    label_size,
    links,
    min_zoom,
    nested_frames,
    reachable_keys,
    title_size,
)
from materia_nb.display.ranking import LOOP_KEY, MAX_ABREAST, GridPosition, arrange_cards, place_near_neighbours
from materia_nb.jsonvalue import is_number
from materia_nb.loadout.graph import Graph, Loop

Direction: TypeAlias = Literal["down", "right"]
"""Direction in which the flow runs."""
Level: TypeAlias = Literal[1, 2, 3]
"""Level of detail of a card: 1 shows the name, 2 also the agent, and 3 also the last output."""
MARGIN: Final = 14.0
_SIGN_SIZE: Final = 16.0
_GAPS: Final = {1: (60.0, 50.0), 2: (72.0, 52.0), 3: (72.0, 52.0)}
"""Horizontal and vertical gap between cards by level, in pixels, with space for chips, arrow heads and headings."""
_FRAME_PADDING: Final = 14.0
_HEADING: Final = 24.0
_LOOP_MARGIN: Final = 32.0  # Space at the sides of a loop, in pixels.
_LARGE_GRAPH_SOCKETS: Final = 30
_MAX_LONG_LINES: Final = 150
"""Maximum number of long lines that are drawn in full. Any other long line ends at a label that names its target."""


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A link and the path along which it is drawn. A ``stub`` ends at its label, which names the target.

    ``shared`` contains the other exits between the same two sockets, which are drawn with the same chip.
    """

    link: Link
    points: tuple[Point, ...]
    label: Box | None
    stub: bool = False
    shared: tuple[Link, ...] = ()

    @property
    def d(self) -> str:
        """The path as SVG path data with rounded corners."""
        return rounded_path(self.points)

    @property
    def tip(self) -> Point:
        """The last point of the path."""
        return self.points[-1]

    @property
    def heading(self) -> Point:
        """Direction of the arrow head: the unit vector of the last segment."""
        (x, y), (bx, by) = self.points[-1], self.points[-2]
        length = abs(x - bx) + abs(y - by) or 1.0
        return (x - bx) / length, (y - by) / length


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """The layout of a graph, in pixels.

    Attributes:
        nodes: the box of each socket's card. Members of folded loops have no box.
        loops: the box of each loop: its frame or, if the loop is folded, its card.
        titles: the box of each loop's heading.
        markers: the boxes of the start marker and the end marker.
        edges: the lines.
        detached: ids of the sockets that cannot be reached.
        bounds: the box that encloses everything, with a margin.
        direction: the direction of the flow.
        folded: ids of the loops that are drawn as one card.
        level: the level of detail of the cards.
        pitch: the width of a grid column and the height of a grid row.
    """

    nodes: dict[str, Box]
    loops: dict[str, Box]
    titles: dict[str, Box]
    markers: dict[str, Box]
    edges: tuple[DrawnLine, ...]
    detached: tuple[str, ...]
    bounds: Box
    direction: Direction = "down"
    folded: frozenset[str] = frozenset()
    level: Level = 2
    pitch: Point = (1.0, 1.0)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the picture, in pixels."""
        return self.bounds.w, self.bounds.h

    def scale(self, room: tuple[float, float]) -> float:
        """Return the zoom at which the whole graph fits into an area of size ``room``; 1 is the original size."""
        return min(room[0] / self.size[0], room[1] / self.size[1])

    def grid_position(self, x: float, y: float) -> GridPosition:
        """Convert the centre of a card to a position in the format of the loadout's ``layout``."""
        column, row = x / self.pitch[0], y / self.pitch[1]
        return (column, row) if self.direction == "right" else (row, column)

    def grid_positions(self) -> dict[str, GridPosition]:
        """Return the grid position of every card by socket id."""
        return {key: self.grid_position(box.cx, box.cy) for key, box in self.nodes.items()}


def grid_positions(graph: Graph) -> dict[str, GridPosition]:
    """Return the grid positions that the loadout specifies, by socket id."""
    return {
        socket.id: (x, y)
        for socket in graph.sockets.values()
        if socket.layout is not None
        and is_number(x := socket.layout.get("x"))
        and is_number(y := socket.layout.get("y"))
    }


def layout_graph(
    graph: Graph,
    *,
    direction: Direction = "down",
    folded: frozenset[str] = frozenset(),
    level: Level = 2,
    positions: Mapping[str, GridPosition] | None = None,
    max_length: float = inf,
) -> GraphLayout:
    """Compute the layout of ``graph``.

    Args:
        graph: the loadout.
        direction: the direction of the flow.
        folded: ids of the loops to draw as one card.
        level: the level of detail of the cards.
        positions: grid positions by socket id; defaults to the positions in the loadout.
        max_length: maximum length of an automatically placed flow, in cards, before it continues in another band.
    """
    return _LayoutBuilder(
        graph,
        direction=direction,
        folded=folded,
        level=level,
        positions=grid_positions(graph) if positions is None else positions,
        max_length=max_length,
        graph_links=links(graph),
    ).build()


_ACCEPTABLE_SCALE: Final = 0.9


def best_layout(
    graph: Graph,
    room: tuple[float, float],
    *,
    directions: Sequence[Direction] = ("right", "down"),
    folded: frozenset[str] = frozenset(),
    positions: Mapping[str, GridPosition] | None = None,
    levels: Sequence[Level] = (3, 2, 1),
) -> GraphLayout:
    """Return the best layout of a graph for an area of size ``room``.

    The best layout is the readable layout with the most detail and the largest scale. A flow that is too long continues
    in another row or column; if it still does not fit, all cards are placed in a single row or column. If no layout is
    readable as a whole, the layout fills the width and the user scrolls down. Positions from the loadout are ignored
    only if two cards do not fit next to each other.
    """
    start_positions = grid_positions(graph) if positions is None else positions
    is_large = len(graph.sockets) > _LARGE_GRAPH_SOCKETS
    build = partial(_LayoutBuilder, graph, folded=folded, positions=start_positions, graph_links=links(graph))
    best_candidates: list[tuple[float, _LayoutBuilder]] = []
    for max_abreast in (MAX_ABREAST,) if start_positions or is_large else (MAX_ABREAST, 1):
        for level in levels:
            candidates: list[tuple[float, _LayoutBuilder]] = []
            band_lengths = [] if start_positions else [_max_cards(room, direction, level) for direction in directions]
            for max_length, direction in product([inf, *band_lengths], directions):
                builder = build(direction=direction, level=level, max_length=max_length, max_abreast=max_abreast)
                scale = builder.scale(room) / min_zoom(level)
                if not candidates or scale > candidates[0][0] / _ACCEPTABLE_SCALE:
                    candidates.insert(0, (scale, builder))
            best_candidates.append(candidates[0])
            for scale, builder in candidates[:2]:
                layout = builder.build() if scale >= 1 else None
                if layout is not None and layout.scale(room) >= min_zoom(level):
                    return layout
    scale, builder = max(best_candidates, key=itemgetter(0))
    if scale >= _ACCEPTABLE_SCALE or (start_positions and (positions is not None or _max_cards(room, "right", 1) > 1)):
        return builder.build()
    if start_positions:
        return best_layout(graph, room, directions=directions, folded=folded, positions={}, levels=levels)
    return _scrolling_layout(graph, room, directions, folded, levels)


def _scrolling_layout(
    graph: Graph,
    room: tuple[float, float],
    directions: Sequence[Direction],
    folded: frozenset[str],
    levels: Sequence[Level],
) -> GraphLayout:
    """Return the layout of a graph that does not fit into the available space.

    The layout is as wide as the space allows, but never narrower than the smallest readable width. The user scrolls
    down.
    """
    is_large = len(graph.sockets) > _LARGE_GRAPH_SOCKETS
    small_levels: Sequence[Level] = () if is_large else [level for level in levels if level < 3]
    variants: list[tuple[Direction, Level]] = [(directions[0], 1 if is_large and 1 in levels else 2)]
    variants += [(direction, level) for direction in directions[::-1] for level in small_levels]
    layouts: list[tuple[float, GraphLayout]] = []
    for direction, level in variants:
        max_length = inf if layouts else _max_cards(room, direction, level)
        layout = layout_graph(
            graph, direction=direction, folded=folded, level=level, positions={}, max_length=max_length
        )
        layouts.append((min(1.0, room[0] / layout.size[0] / min_zoom(level)), layout))
        if layouts[-1][0] == 1:
            break
    return max(layouts, key=itemgetter(0))[1]


def _max_cards(room: tuple[float, float], direction: Direction, level: Level) -> float:
    """Return the number of cards that fit into a row or column at the smallest readable zoom."""
    axis = int(direction == "down")
    pitch = card_size(level)[axis] + _GAPS[level][axis]
    return max(1.0, (room[axis] / min_zoom(level) - 2 * MARGIN - 60) // pitch)


def bounding_box(boxes: Iterable[Box], margin: float) -> Box:
    """Return the smallest box that encloses all ``boxes`` with a margin around them."""
    boxes = list(boxes) or [Box(0, 0, 0, 0)]
    left, top = min([box.x for box in boxes]) - margin, min([box.y for box in boxes]) - margin
    right = max([box.x + box.w for box in boxes]) + margin
    bottom = max([box.y + box.h for box in boxes]) + margin
    return Box(left, top, right - left, bottom - top)


class _LayoutBuilder:
    """Builder that computes a layout in several steps."""

    def __init__(
        self,
        graph: Graph,
        *,
        direction: Direction,
        folded: frozenset[str],
        level: Level,
        positions: Mapping[str, GridPosition],
        max_length: float,
        graph_links: Sequence[Link],
        max_abreast: int = MAX_ABREAST,
    ) -> None:
        self.graph = graph
        self.direction = direction
        self.level: Level = level
        self.links = graph_links
        # Loops that partly overlap others cannot be folded.
        overlapping_loops = nested_frames(graph, frozenset())[2] if folded else ()
        self.folded = frozenset(loop for loop in folded & graph.loops.keys() if loop not in overlapping_loops)
        self.card_keys = {
            socket: LOOP_KEY + loop.id
            for loop in sorted(graph.loops.values(), key=lambda loop: len(loop.sockets))
            if loop.id in self.folded
            for socket in loop.sockets
        }
        reachable = reachable_keys(START_MARKER, self.links)
        in_loops = {socket for loop in graph.loops.values() for socket in loop.sockets}
        self.detached = tuple(key for key in graph.sockets if key not in reachable and key not in in_loops)
        self.card = card_size(level)
        self.pitch = (self.card[0] + _GAPS[level][0], self.card[1] + _GAPS[level][1])
        self.boxes = self._boxes(self._positions(positions, max_length, max_abreast))
        self.frames, self.titles = self._frame_boxes({}), dict[str, Box]()

    def _card_key(self, key: str) -> str:
        """Return the key of the card at which a line to a socket ends: the socket or its folded loop."""
        return self.card_keys.get(key, key)

    def _positions(
        self, start_positions: Mapping[str, GridPosition], max_length: float, max_abreast: int
    ) -> dict[str, GridPosition]:
        drawn = [key for key in self.graph.sockets if key not in self.card_keys]
        drawn += [LOOP_KEY + loop for loop in sorted({key.removeprefix(LOOP_KEY) for key in self.card_keys.values()})]
        positions = {
            self._card_key(key): position
            for key, position in reversed([*start_positions.items()])
            if key in self.graph.sockets
        }
        if not positions:
            above, beside = (_HEADING + _FRAME_PADDING) / self.pitch[1], _LOOP_MARGIN / self.pitch[0]
            below = _FRAME_PADDING / self.pitch[1]
            frame = (above, below, beside, beside) if self.direction == "down" else (beside, beside, above, below)
            return arrange_cards(self.graph, self.links, self.folded, frame, max_length, max_abreast)
        loops = [[*map(self._card_key, loop.sockets)] for loop in self.graph.loops.values()]
        return place_near_neighbours(positions, self.links, drawn, loops)

    def _boxes(self, positions: Mapping[str, GridPosition]) -> dict[str, Box]:
        w, h = self.card
        boxes = {}
        for key, (along, across) in positions.items():
            column, row = (along, across) if self.direction == "right" else (across, along)
            boxes[key] = Box(column * self.pitch[0] - w / 2, row * self.pitch[1] - h / 2, w, h)
        return boxes

    def scale(self, room: tuple[float, float]) -> float:
        """Return the approximate zoom, at most 1, at which all cards and frames fit into an area of size ``room``."""
        bounds = bounding_box([*self.boxes.values(), *self.frames.values()], MARGIN + ARROW_MARGIN / 2)
        return min(room[0] / bounds.w, room[1] / bounds.h, 1.0)

    # -- loops -----------------------------------------------------------------------

    def _frame_boxes(self, chips: Mapping[str, Sequence[Box]]) -> dict[str, Box]:
        """Return the frame of each loop around its members and their ``chips``, inner loops first."""
        frames: dict[str, Box] = {}
        for loop in sorted(self.graph.loops.values(), key=lambda loop: len(loop.sockets)):
            members = [self.boxes[key] for key in map(self._card_key, loop.sockets) if key in self.boxes]
            if loop.id in self.folded or not members:
                continue
            members += chips.get(loop.id, ())
            members += [frames[key] for key in frames if self._contains(loop, self.graph.loops[key])]
            room = bounding_box(members, _FRAME_PADDING + ARROW_MARGIN)
            frames[loop.id] = Box(room.x, room.y - _HEADING + ARROW_MARGIN, room.w, room.h + _HEADING - ARROW_MARGIN)
        return frames

    def _place_frames(self, chips: Mapping[str, Sequence[Box]]) -> None:
        """Compute the frames and the headings of all loops."""
        self.frames, self.titles = self._frame_boxes(chips), {}
        for key, frame in self.frames.items():
            loop = self.graph.loops[key]
            # A top-to-bottom flow enters above the first card, between the heading on the left and the progress on the right.
            flow_x = self.boxes[self._card_key(loop.sockets[0])].cx if self.direction == "down" else frame.right
            available_width = flow_x - frame.x - 14 if flow_x > frame.x + 80 else frame.w
            w, h = title_size(self.graph, loop, min(available_width, frame.w) - 6, self.level)
            occupied = [*self.boxes.values(), *self.titles.values(), *chips.get("", ())]
            self.titles[key] = _free_title_box(Box(frame.x + 6, frame.y + 4, w, h), frame, occupied)

    @staticmethod
    def _contains(outer: Loop, inner: Loop) -> bool:
        return set(inner.sockets) <= set(outer.sockets)

    # -- start and end ------------------------------------------------------------------

    def _place_signs(self) -> None:
        entry = self._card_key(self.graph.entry)
        first = self.boxes.get(entry, Box(0, 0, *self.card))
        backward, forward = (LEFT, RIGHT) if self.direction == "right" else (UP, DOWN)
        self.boxes[START_MARKER] = self._marker_next_to(first, (backward, UP, LEFT, DOWN, RIGHT))
        ends = [self.boxes[self._card_key(link.source)] for link in self.links if link.target == END_MARKER]
        last = max(ends, key=lambda box: (box.cx, box.cy) if forward == RIGHT else (box.cy, box.cx), default=first)
        self.boxes[END_MARKER] = self._marker_next_to(last, (forward, RIGHT, DOWN, LEFT, UP))

    def _marker_next_to(self, box: Box, sides: tuple[int, ...]) -> Box:
        """Return a free box for a marker next to a card, or else at the edge of the picture.

        The marker is outside all loops and not between two connected cards, where it would seem to interrupt the line.
        """
        ends = [(self._card_key(link.source), self._card_key(link.target)) for link in self.links]
        gaps = [self.boxes[a].gap(self.boxes[b]) for a, b in ends if {a, b} <= self.boxes.keys()]
        occupied = (*self.boxes.values(), *self.frames.values(), *filter(None, gaps))
        for distance in (34.0, 50.0, 70.0, 100.0):
            for side in sides:
                dx, dy = DIRECTION_VECTORS[side]
                x, y = box.cx + dx * (box.w / 2 + distance), box.cy + dy * (box.h / 2 + distance)
                marker_box = Box(x - _SIGN_SIZE / 2, y - _SIGN_SIZE / 2, _SIGN_SIZE, _SIGN_SIZE)
                if not marker_box.overlaps(occupied, ARROW_MARGIN):
                    return marker_box
        whole_box = bounding_box([*self.boxes.values(), *self.frames.values()], 40)
        dx, dy = DIRECTION_VECTORS[sides[0]]
        x = whole_box.x if dx < 0 else whole_box.right if dx > 0 else box.cx
        y = whole_box.y if dy < 0 else whole_box.bottom if dy > 0 else box.cy
        return Box(x - _SIGN_SIZE / 2, y - _SIGN_SIZE / 2, _SIGN_SIZE, _SIGN_SIZE)

    # -- lines -----------------------------------------------------------------------------

    def build(self) -> GraphLayout:
        """Route the lines and return the complete layout."""
        self._place_frames({})
        lines = self._lines()
        nodes = {key: self.boxes[key] for key in self.graph.sockets if key in self.boxes}
        cards = {key.removeprefix(LOOP_KEY): box for key, box in self.boxes.items() if key.startswith(LOOP_KEY)}
        loops = {
            key: self.frames.get(key) or cards[key] for key in self.graph.loops if key in self.frames or key in cards
        }
        drawn_boxes = [*self.boxes.values(), *self.frames.values(), *self.titles.values()]
        drawn_boxes += [line.label for line in lines if line.label is not None]
        drawn_boxes += [Box(x, y, 0, 0) for line in lines for x, y in line.points]
        return GraphLayout(
            nodes=nodes,
            loops=loops,
            titles=self.titles,
            markers={key: self.boxes[key] for key in (START_MARKER, END_MARKER)},
            edges=tuple(lines),
            detached=self.detached,
            bounds=bounding_box(drawn_boxes, MARGIN),
            direction=self.direction,
            folded=frozenset(cards),
            level=self.level,
            pitch=self.pitch,
        )

    def _lines(self) -> list[DrawnLine]:
        # Frames must enclose their chips, markers must be outside all frames, and chips must not cover markers.
        socket_links = [link for link in self.links if link.source != START_MARKER and link.target != END_MARKER]
        self._attach_lines(self._lines_to_route(socket_links))
        self._place_signs()
        lines_to_route = self._lines_to_route(self.links)
        self._attach_lines(lines_to_route)
        obstacles = [*self.boxes.values(), *self.titles.values()]
        obstacles += [line.label for line in lines_to_route if line.label is not None]
        routes = route_lines([line for line in lines_to_route if line.target is not None], obstacles, self.frames)
        lines = []
        for line in lines_to_route:
            points = tuple(simplify_path([line.port, *routes.get(line.key, [line.chip_start])]))
            first, *others = line.links
            lines.append(DrawnLine(first, points, line.label, line.target is None, tuple(others)))
            lines += [DrawnLine(link, points, None) for link in others]
        return lines

    def _attach_lines(self, lines: Sequence[RoutedLine]) -> None:
        """Attach the lines to the cards, and enlarge the frames so that they enclose the chips."""
        titles = [*self.titles.values()]

        def covers(chip: Box, source: str) -> bool:
            """Return True if a chip would cover something or block a line that arrives at another card."""
            others = (box for key, box in self.boxes.items() if key != source)
            return chip.overlaps((self.boxes[source], *titles)) or chip.overlaps(others, ARROW_MARGIN + CLEARANCE)

        attach_lines(lines, self.boxes, RIGHT if self.direction == "right" else DOWN, covers)
        chips: dict[str, list[Box]] = {}
        for line in lines:
            link = line.links[0]
            for loop in self.graph.loops.values():
                if line.label is not None and link.source in loop.sockets and link.target in loop.sockets:
                    chips.setdefault(loop.id, []).append(line.label)
        chips[""] = [line.label for line in lines if line.label is not None]
        self._place_frames(chips)

    def _lines_to_route(self, links: Iterable[Link]) -> list[RoutedLine]:
        """Return the lines to draw. Exits between the same two sockets share one line."""
        links_by_ends: dict[tuple[str, ...], list[Link]] = {}
        for link in links:
            source, target = self._card_key(link.source), self._card_key(link.target)
            if source == target and source in self.card_keys.values():
                continue  # Both ends are in the same folded loop.
            own_key = () if link.kind == "exit" else (link.key,)
            links_by_ends.setdefault((source, target, link.kind, *own_key), []).append(link)
        long_distance = 4 * max(self.pitch)
        long_lines = sorted((self._distance(key), key) for key in links_by_ends if self._distance(key) > long_distance)
        stubs = {key for _, key in long_lines[_MAX_LONG_LINES:]}
        return [
            RoutedLine(
                tuple(group),
                key[0],
                None if key in stubs else key[1],
                label_size(group, self.level, stub=key in stubs),
                self._loops_around(group[0]),
            )
            for key, group in links_by_ends.items()
        ]

    def _distance(self, key: tuple[str, ...]) -> float:
        source, target = self.boxes[key[0]], self.boxes[key[1]]
        return abs(source.cx - target.cx) + abs(source.cy - target.cy)

    def _loops_around(self, link: Link) -> frozenset[str]:
        """Return the ids of the loops that contain both ends of a line."""
        return frozenset(
            loop.id for loop in self.graph.loops.values() if {link.source, link.target} <= set(loop.sockets)
        )


def _free_title_box(title: Box, frame: Box, occupied: Sequence[Box]) -> Box:
    """Move a heading up if its space is occupied, for example by the heading of a loop with the same first card."""
    for rows_up in range(40):
        for shift in (0.0, max(0.0, frame.w - title.w - 12)):
            candidate = title.translated(shift, -rows_up * (title.h + 2))
            if not candidate.overlaps(occupied, ARROW_MARGIN - 1):
                return candidate
    return title
