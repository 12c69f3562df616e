"""Where everything in a picture of a graph stands: deterministic, the same in every state of a cast.

Flow runs rank by rank, downwards or to the right; a loop is one box and laid out by itself first, a short one
downwards in either case; lines that run back go along the far sides of the cards; every label has a place of its
own between the cards. All is computed as if flow ran downwards, and x and y exchanged where it runs to the right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from materia_nb.display.coordinates import PAD, Drawing, Picture, set_columns, set_ports
from materia_nb.display.geometry import Box, Point, Stroke
from materia_nb.display.graph_parts import (
    END_SIGN,
    START,
    Link,
    Region,
    card,
    folded_size,
    label_size,
    links,
    reachable,
    regions,
    stub_size,
    title_size,
)
from materia_nb.display.rows import Item, Wire, build_rows, order_rows, ranks, walk
from materia_nb.loadout.graph import Graph

MARGIN: Final = 16.0
Direction: TypeAlias = Literal["down", "right"]
"""Which way the flow runs."""

_SIGNS: Final = {START: (46.0, 22.0), END_SIGN: (46.0, 24.0)}
# Above this many rows crossed by all lines together, the longest ones only name their target.
_MOST_ROWS_CROSSED: Final = 2500
_SMALL: Final = 900
# Cards beside each other; more than this cannot be read in a notebook's width.
_MOST_ABREAST: Final = 4
_LOOP: Final = "\x00loop:"
# A loop of so many ranks runs downwards where the whole runs to the right: it would be wide and flat.
_FEW_RANKS: Final = 4
_STRIP: Final = 38.0
_CHANNEL: Final = 10.0


@dataclass(frozen=True, slots=True)
class Line:
    """A drawn link. ``stub`` means that it ends at its label, which names the target."""

    link: Link
    d: str
    tip: Point
    heading: Point
    label: Box | None
    stub: bool


@dataclass(frozen=True, slots=True)
class Placed:
    """A layout in pixels.

    ``signs`` are the start and the end; ``detached`` sockets cannot be reached; what stands in a ``folded`` loop has no place.
    """

    nodes: dict[str, Box]
    loops: dict[str, Box]
    titles: dict[str, Box]
    signs: dict[str, Box]
    edges: tuple[Line, ...]
    detached: tuple[str, ...]
    size: tuple[float, float]
    direction: Direction = "down"
    folded: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Crossing:
    """A link that crosses a region's border at ``socket``'s side of it."""

    link: Link
    socket: str
    entering: bool
    upward: bool


class _Planner:
    """Lays out the regions of one graph, innermost first."""

    def __init__(self, graph: Graph, direction: Direction, folded: frozenset[str]) -> None:
        self.graph = graph
        self.direction = direction
        found = links(graph)
        seen = reachable(START, found)
        in_loops = {socket for loop in graph.loops.values() for socket in loop.sockets}
        self.detached = tuple(key for key in graph.sockets if key not in seen and key not in in_loops)
        self.seen = seen
        self.root, self.around, self.loose = regions(graph, frozenset(self.detached))
        self.folded = folded & graph.loops.keys() - set(self.loose)
        self.around |= {START: (self.root,), END_SIGN: (self.root,)}
        self.links = [link for link in found if link.source not in self.detached]
        self.local: dict[int, list[tuple[Link, str, str]]] = {}
        for link in self.links:
            region, tail, head = self._meeting(link)
            self.local.setdefault(id(region), []).append((link, tail, head))

    def _meeting(self, link: Link) -> tuple[Region, str, str]:
        """Find the innermost region around both ends, and what stands for each end in it."""
        source, target = self.around[link.source], self.around[link.target]
        depth = 0
        while depth + 1 < min(len(source), len(target)) and source[depth + 1] is target[depth + 1]:
            depth += 1
        region = source[depth]
        return region, self._stand_in(link.source, region), self._stand_in(link.target, region)

    def _stand_in(self, socket: str, region: Region) -> str:
        """Key of the item that holds ``socket`` in ``region``."""
        path = self.around[socket]
        depth = path.index(region)
        return f"{_LOOP}{path[depth + 1].loop}" if depth + 1 < len(path) else socket

    def lay(self, region: Region, border: list[_Crossing], outer: Direction) -> Picture:
        """Lay out a region and everything in it, to stand in one whose flow runs like ``outer``."""
        local = self.local.get(id(region), [])
        keys = [*region.sockets, *(f"{_LOOP}{child.loop}" for child in region.children)]
        if region is self.root:
            keys = [START, *keys, END_SIGN]
        entries = [
            self._stand_in(cross.socket, region) for cross in border if cross.entering and not cross.upward
        ]
        arcs = [(tail, head) for link, tail, head in local if link.target not in self.detached]
        met, back = walk(keys, arcs, entries)
        rank = ranks(met, arcs, back, most=_MOST_ABREAST)
        if region is self.root:
            self._put_end_below(rank)
        upward = {link.key: rank[tail] > rank.get(head, 1 << 30) for link, tail, head in local}
        few = region is not self.root and max(rank.values(), default=0) < _FEW_RANKS
        flow: Direction = "down" if few or outer == "down" else "right"

        inner: dict[str, Picture] = {}
        for child in region.children:
            key = f"{_LOOP}{child.loop}"
            if child.loop in self.folded:
                continue
            crossings = [c for c in border if self._stand_in(c.socket, region) == key]
            for link, tail, head in local:
                if key == tail != head:
                    crossings.append(_Crossing(link, link.source, entering=False, upward=upward[link.key]))
                elif key == head != tail:
                    crossings.append(_Crossing(link, link.target, entering=True, upward=upward[link.key]))
            inner[key] = self.lay(child, crossings, flow)

        items = {key: self._item(key, inner.get(key), flow) for key in met}
        wires = self._wires(local, items, rank, upward, flow)
        for cross in border:
            item = items[self._stand_in(cross.socket, region)]
            tail_item, head_item = (None, item) if cross.entering else (item, None)
            wires.append(Wire(cross.link, tail_item, head_item, cross.upward))
        # Lines come in at the top of a loop: where they do, its title stands beside them.
        beside = flow == outer == "down"
        title = title_size(self.graph, self.graph.loops[region.loop]) if region.loop is not None else None
        picture = self._draw(region, items, wires, rank, inner, title if beside else None)
        if title is None or region.loop is None:
            return picture
        return picture if beside else _framed(picture, region.loop, title, flow, border, turned=flow != outer)

    def _put_end_below(self, rank: dict[str, int]) -> None:
        """Put the end below all that can be reached, and what cannot be below the end."""
        apart = {
            f"{_LOOP}{child.loop}"
            for child in self.root.children
            if not any(child in self.around[socket] for socket in self.seen if socket in self.around)
        }
        rank[END_SIGN] = 1 + max(
            (n for key, n in rank.items() if key not in apart and key != END_SIGN), default=0
        )
        for key in apart:
            rank[key] += rank[END_SIGN] + 1

    def _item(self, key: str, picture: Picture | None, flow: Direction) -> Item:
        if picture is not None:
            middle = picture.w / 2
            return Item(key, picture.w, picture.h, {name: x - middle for name, x in picture.ports.items()})
        if key in _SIGNS:
            size = _SIGNS[key]
        elif key.startswith(_LOOP):
            size = folded_size(self.graph, self.graph.loops[key.removeprefix(_LOOP)])
        else:
            drawn = card(self.graph.sockets[key])
            size = (drawn.w, drawn.h)
        return Item(key, *_along(size, flow))

    def _wires(
        self,
        local: list[tuple[Link, str, str]],
        items: dict[str, Item],
        rank: dict[str, int],
        upward: dict[str, bool],
        flow: Direction,
    ) -> list[Wire]:
        """Make the wires of a region; the longest of very many become stubs."""
        span = {link.key: abs(rank[tail] - rank.get(head, 0)) for link, tail, head in local}
        crossed = sum(span.values())
        stubs = {link.key for link, _, _ in local if link.target in self.detached}
        for link, tail, _ in sorted(local, key=lambda entry: -span[entry[0].key]):
            if crossed <= _MOST_ROWS_CROSSED:
                break
            if items[tail].ports is None and tail != START:
                stubs.add(link.key)
                crossed -= span[link.key]
        wires = []
        for link, tail, head in local:
            if tail == head and items[tail].ports is None:
                items[tail].selves.append((link, _along(label_size(link), flow)))
            elif link.key in stubs:
                wires.append(Wire(link, items[tail], None, stub=True, label=_along(stub_size(link), flow)))
            else:
                size = _along(label_size(link), flow)
                wires.append(Wire(link, items[tail], items[head], upward[link.key], label=size))
        return wires

    def _draw(
        self,
        region: Region,
        items: dict[str, Item],
        wires: list[Wire],
        rank: dict[str, int],
        inner: dict[str, Picture],
        title: tuple[float, float] | None,
    ) -> Picture:
        rows = build_rows(list(items.values()), wires, rank, title, bordered=region.loop is not None)
        small = sum(len(row) for row in rows.rows) < _SMALL
        order_rows(rows, sweeps=12 if small else 3)
        set_ports(rows)
        set_columns(rows, sweeps=24 if small else 8)
        drawing = Drawing(rows)
        picture = Picture(drawing.width, drawing.height)
        inside = self._take_inner(picture, drawing, inner)
        for wire in wires:
            stroke = drawing.stroke(wire)
            if wire.tail is not None and wire.tail.key in inside:
                stroke = inside[wire.tail.key].pop(wire.link.key).then(stroke)
            if wire.head is not None and wire.head.key in inside:
                stroke = stroke.then(inside[wire.head.key].pop(wire.link.key))
            picture.draw(wire, stroke, drawing.label_box(wire))
        for item in items.values():
            for index, (link, size) in enumerate(item.selves):
                picture.draw_self(link, *drawing.self_loop(item, index, size))
        for strokes in inside.values():
            picture.strokes |= strokes
        title_box = drawing.title_box()
        if title_box is not None and region.loop is not None:
            picture.titles[region.loop] = title_box
        return picture

    @staticmethod
    def _take_inner(
        picture: Picture, drawing: Drawing, inner: dict[str, Picture]
    ) -> dict[str, dict[str, Stroke]]:
        """Put the pictures of the loops into theirs; their strokes are returned, by loop and link."""
        inside: dict[str, dict[str, Stroke]] = {}
        for key, child in inner.items():
            box = drawing.boxes[key]
            inside[key] = picture.take(child, box.x, box.y)
            picture.loops[key.removeprefix(_LOOP)] = box
        picture.boxes |= {key: box for key, box in drawing.boxes.items() if key not in inner}
        return inside


def _along(size: tuple[float, float], flow: Direction) -> tuple[float, float]:
    """Give a width and height as they count where the flow is taken to run downwards."""
    return size if flow == "down" else (size[1], size[0])


def _framed(
    picture: Picture,
    loop: str,
    title: tuple[float, float],
    flow: Direction,
    border: list[_Crossing],
    *,
    turned: bool,
) -> Picture:
    """Give a loop's picture a strip for its title and, if it runs across what it stands in, ways around its corners.

    The picture is as if its flow ran downwards; what is returned is so for the flow of what it stands in.
    """
    high = sum(1 for cross in border if cross.entering != cross.upward) if turned else 0
    low = len(border) - high if turned else 0
    above, below = _CHANNEL * high, _CHANNEL * low
    if flow == "down":
        w, h = max(picture.w, title[0] + 2 * PAD), _STRIP + above + picture.h + below
        framed = picture.shifted((w - picture.w) / 2, _STRIP + above, w, h)
        framed.titles[loop] = Box(PAD / 2, 4, *title)
        start, top = 0.0, _STRIP + above
    else:
        w, h = _STRIP + picture.w, max(above + picture.h + below, title[0] + above + 2 * PAD)
        framed = picture.shifted(_STRIP, above, w, h)
        framed.titles[loop] = Box(4, PAD / 2 + above, title[1], title[0])
        start, top = 0.0, above
    if not turned:
        for cross in border:
            if cross.entering == cross.upward:  # it goes on to a border that the title has moved away
                key, way = cross.link.key, Stroke()
                x, ends = framed.ports[key], (h, picture.h) if cross.entering else (picture.h, h)
                for y in ends:
                    way.line(x, y)
                old = framed.strokes[key]
                framed.strokes[key] = way.then(old) if cross.entering else old.then(way)
        return framed
    bottom = top + picture.h
    first = sorted((c for c in border if c.entering != c.upward), key=lambda c: framed.ports[c.link.key])
    last = sorted((c for c in border if c.entering == c.upward), key=lambda c: -framed.ports[c.link.key])
    ports: dict[str, float] = {}
    for crossings, side, from_, sign in ((first, start, top, -1), (last, w, bottom, 1)):
        for lane, cross in enumerate(crossings, 1):
            key, at = cross.link.key, from_ + sign * _CHANNEL * (lane - 0.5)
            ports[key] = at
            way, x = Stroke(), framed.ports[key]
            if cross.entering:
                way.line(side, at)
                way.corner(x, from_, sideways_first=True)
                framed.strokes[key] = way.then(framed.strokes[key])
            else:
                way.line(x, from_)
                way.corner(side, at, sideways_first=False)
                framed.strokes[key] = framed.strokes[key].then(way)
    framed.ports = ports
    return framed.flipped()


def place(graph: Graph, *, direction: Direction = "down", folded: frozenset[str] = frozenset()) -> Placed:
    """Lay out ``graph``. The ``layout`` that a loadout may hold is the host's and not used.

    Args:
        graph: the loadout.
        direction: which way the flow runs.
        folded: ids of loops that are drawn as one card.
    """
    planner = _Planner(graph, direction, folded)
    picture = planner.lay(planner.root, [], direction)
    if direction == "right":
        picture = picture.flipped()
    _place_loose(graph, planner.loose, picture)
    loops, titles = picture.loops, picture.titles
    boxes = dict(picture.boxes)
    _place_detached(graph, planner.detached, boxes, picture)
    everything = [*boxes.values(), *loops.values(), *titles.values(), *picture.labels.values()]
    dx = MARGIN - min(box.x for box in everything)
    dy = MARGIN - min(box.y for box in everything)
    width = max([picture.w, *(box.right for box in everything)])
    height = max(box.bottom for box in everything)
    lines = []
    for link in planner.links:
        if link.key not in picture.strokes:
            continue  # inside a folded loop
        stroke = picture.strokes[link.key].moved(dx, dy)
        label = picture.labels.get(link.key)
        at = label.moved(dx, dy) if label else None
        lines.append(Line(link, stroke.d(), stroke.at, stroke.heading(), at, link.key in picture.stubs))
    moved = {key: box.moved(dx, dy) for key, box in boxes.items()}
    return Placed(
        nodes={key: moved[key] for key in graph.sockets if key in moved},
        loops={key: loops[key].moved(dx, dy) for key in graph.loops if key in loops}
        | {key: moved[_LOOP + key] for key in graph.loops if _LOOP + key in moved},
        titles={key: titles[key].moved(dx, dy) for key in graph.loops if key in titles},
        signs={key: moved[key] for key in (START, END_SIGN)},
        edges=tuple(lines),
        detached=planner.detached,
        size=(width + dx + MARGIN, height + dy + MARGIN),
        direction=direction,
        folded=frozenset(key for key in graph.loops if _LOOP + key in moved),
    )


def _place_loose(graph: Graph, loose: list[str], picture: Picture) -> None:
    """Frame the members of loops that overlap others; their titles stand to the right of everything."""
    edge, free = picture.w + 24, 0.0
    for loop_id in loose:
        loop = graph.loops[loop_id]
        members = [picture.boxes[socket] for socket in loop.sockets if socket in picture.boxes]
        if not members:
            continue
        x, y = min(box.x for box in members) - 14, min(box.y for box in members) - 16
        right, bottom = max(box.right for box in members) + 14, max(box.bottom for box in members) + 14
        picture.loops[loop_id] = Box(x, y, right - x, bottom - y)
        free = max(free, y + 8)
        picture.titles[loop_id] = Box(edge, free, *title_size(graph, loop))
        free += picture.titles[loop_id].h + 10


def _place_detached(graph: Graph, detached: tuple[str, ...], boxes: dict[str, Box], picture: Picture) -> None:
    """Put sockets that cannot be reached into rows of their own at the bottom."""
    x, y, tallest = 0.0, picture.h + 64, 0.0
    for key in detached:
        size = card(graph.sockets[key], detached=True)
        if x and x + size.w > max(picture.w, 640):
            x, y, tallest = 0.0, y + tallest + 20, 0.0
        boxes[key] = Box(x, y, size.w, size.h)
        x += size.w + 24
        tallest = max(tallest, size.h)
