"""A graph as cytoscape elements: what never changes (places, sizes, ends) and what follows a cast (labels, classes)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from materia_nb.display.cards import LABEL_SIZE, SMALL_SIZE, stub_label
from materia_nb.display.escape import part
from materia_nb.display.geometry import Box, Point, fit, text_width
from materia_nb.display.layout import Line, Placed, place
from materia_nb.display.links import END_SIGN, START
from materia_nb.display.marks import Marks
from materia_nb.display.regions import Region, regions
from materia_nb.display.words import (
    answer_words,
    count_words,
    kind_words,
    link_words,
    loop_words,
    socket_notes,
    state_words,
)
from materia_nb.loadout.colours import tint_of
from materia_nb.loadout.graph import END, Graph, Socket
from materia_nb.widgets.curves import Bent, bend, points_of
from materia_nb.widgets.picks import Pick, pick_of

HEAT_LEVELS: Final = 4
_SIGNS: Final = {START: "start", END_SIGN: "end"}
_ROOM: Final = 16.0
_AWAY: Final = 4.0
"""How far beyond its tip a line's anchor stands, so that the direction to it is never in doubt."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element of the canvas. ``data`` holds strings and numbers only; ``position`` is None for an edge.

    ``pick`` is what a click on it selects, None for what cannot be selected.
    """

    id: str
    pick: Pick | None
    data: dict[str, str | float]
    classes: str
    position: Point | None = None


class Scene:
    """A graph laid out. ``nodes`` are in an order in which a region comes before what stands in it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.placed: Placed = place(graph)
        self.nodes: list[Element] = []
        self.edges: list[Element] = []
        self._ids: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()
        self._parents: dict[str, str] = {}
        self._lines: dict[str, Line] = {}
        self._pairs = Counter(line.link.traversal for line in self.placed.edges if line.link.kind == "edge")
        self._add_loops()
        self._add_sockets()
        self._add_signs()
        for line in self.placed.edges:
            self._add_line(line)

    @property
    def elements(self) -> Iterator[Element]:
        """Everything on the canvas."""
        yield from self.nodes
        yield from self.edges

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in pixels."""
        return self.placed.size

    def box_of(self, pick: Pick) -> Box | None:
        """Where a part is: a socket, the title of a loop, the label of a line or else the socket that it leaves."""
        kind, key = pick
        if kind == "socket":
            return self.placed.nodes.get(key)
        if kind == "loop":
            return self.placed.titles.get(key)
        line = self._lines.get(self._ids.get(("e", key), ""))
        if line is None:
            return None
        return line.label or self.placed.nodes.get(line.link.source)

    # -- what never changes ---------------------------------------------------------

    def _id(self, prefix: str, key: str) -> str:
        """Make the id of an element: nodes and edges share one name space, and every id can be sent."""
        sound = key.encode("utf-8", "replace").decode()[:200]
        made, number = f"{prefix}:{sound}", 1
        while made in self._taken:
            number += 1
            made = f"{prefix}:{sound}~{number}"
        self._taken.add(made)
        self._ids[prefix, key] = made
        return made

    def _node(self, prefix: str, key: str, box: Box, classes: str, **data: Any) -> None:
        made = self._id(prefix, key)
        kinds: dict[str, Any] = {"n": "socket", "l": "loop"}
        pick = (kinds[prefix], key) if prefix in kinds else None
        own = {"id": made, "key": part(key, 200), "w": round(box.w, 1), "h": round(box.h, 1), **data}
        self.nodes.append(Element(made, pick, own, classes, (round(box.cx, 1), round(box.cy, 1))))

    def _anchor(self, key: str, at: Point, parent: str | None = None) -> str:
        data = {"parent": parent} if parent else {}
        self._node("a", key, Box(at[0] - 0.5, at[1] - 0.5, 1, 1), "anchor", **data)
        return self._ids["a", key]

    def _add_loops(self) -> None:
        root, _, loose = regions(self.graph, frozenset(self.placed.detached))
        # A frame that overlaps others can hold nothing: its sockets have one parent only.
        for loop_id in loose:
            if loop_id in self.placed.loops:
                self._node("l", loop_id, self.placed.loops[loop_id], "loop frame", **self._title(loop_id))
        self._add_regions(root, None)
        width, height = self.placed.size
        # They make fitting the view show the whole picture with its margin, whatever is on it.
        self._anchor("corner 1", (0.5, 0.5))
        self._anchor("corner 2", (width - 0.5, height - 0.5))

    def _add_regions(self, region: Region, parent: str | None) -> None:
        for socket in region.sockets:
            if parent is not None:
                self._parents[socket] = parent
        for child in region.children:
            if child.loop is None or child.loop not in self.placed.loops:
                continue
            box = self.placed.loops[child.loop]
            data = self._title(child.loop) | ({"parent": parent} if parent else {})
            self._node("l", child.loop, box, "loop region", **data)
            made = self._ids["l", child.loop]
            # A compound node is as large as what stands in it; these two hold it open.
            self._anchor(f"corner 1 of {child.loop}", (box.x + 0.5, box.y + 0.5), made)
            self._anchor(f"corner 2 of {child.loop}", (box.right - 0.5, box.bottom - 0.5), made)
            self._add_regions(child, made)

    def _title(self, loop_id: str) -> dict[str, Any]:
        """Where the title of a loop goes, in pixels from where it would stand: above the middle of its box."""
        box, title = self.placed.loops[loop_id], self.placed.titles[loop_id]
        return {"dx": round(title.cx - box.cx, 1), "dy": round(title.bottom - box.y, 1)}

    def _add_sockets(self) -> None:
        for socket_id, box in self.placed.nodes.items():
            socket = self.graph.sockets[socket_id]
            classes = ["socket", *(word.replace(" ", "-") for word in kind_words(socket))]
            data: dict[str, Any] = {}
            if (tint := tint_of(socket.materia.raw.get("color"))) is not None:
                classes.append("tinted")
                data = {"fill": tint.fill, "ink": tint.ink}
            if socket_id == self.graph.entry:
                classes.append("entry")
            if socket_id in self.placed.detached:
                classes.append("detached")
            if (parent := self._parents.get(socket_id)) is not None:
                data["parent"] = parent
            self._node("n", socket_id, box, " ".join(classes), **data)

    def _add_signs(self) -> None:
        for key, box in self.placed.signs.items():
            self._node("s", _SIGNS[key], box, f"sign {_SIGNS[key]}", label=_SIGNS[key])

    def _end_of(self, key: str) -> tuple[str, Point]:
        """Id and centre of the node that a line starts or ends at."""
        if key in _SIGNS:
            return self._ids["s", _SIGNS[key]], _centre(self.placed.signs[key])
        return self._ids["n", key], _centre(self.placed.nodes[key])

    def _add_line(self, line: Line) -> None:
        link = line.link
        source, start = self._end_of(link.source)
        points = points_of(line.d)
        if line.stub or link.source == link.target:
            # It does not end at another node, so it is given a point of its own to end at.
            (x, y), (dx, dy) = points[-1], line.heading
            sign = 1 if line.stub else -1
            end = (x + sign * _AWAY * dx, y + sign * _AWAY * dy)
            target = self._anchor(f"end of {link.key}", end)
        else:
            target, end = self._end_of(link.target)
        label = _label_centre(line)
        bent: Bent = bend(points, start, end, label)
        made = self._id("e", link.key)
        classes = ["line", link.kind, link.condition] if link.kind != "start" else ["line", "start"]
        data: dict[str, Any] = {
            "id": made,
            "key": part(link.key, 200),
            "source": source,
            "target": target,
            "when": link.condition,
            "ws": bent.weights,
            "ds": bent.distances,
            "from": bent.start,
            "to": bent.tip,
            "dx": bent.shift[0],
            "dy": bent.shift[1],
        }
        self._lines[made] = line
        self.edges.append(Element(made, pick_of(link), data, " ".join([*classes, "directed multiple_edges"])))

    # -- what follows a cast ----------------------------------------------------------

    def look(self, marks: Marks, selected: Pick | None = None) -> dict[str, tuple[str, str]]:
        """Return classes and label of every element at one moment of a cast, by element id."""
        found = {}
        most = max(marks.visits.values(), default=0)
        for one in self.elements:
            label, live = self._live(one, marks, most)
            if one.pick is not None and one.pick == selected:
                live.append("selected")
            found[one.id] = (" ".join([one.classes, *live]), label)
        return found

    def _live(self, one: Element, marks: Marks, most: int) -> tuple[str, list[str]]:
        if one.id in self._lines:
            return self._line_live(self._lines[one.id], marks)
        if one.pick is None:
            reached = one.id == self._ids["s", "end"] and _at_end(marks)
            return str(one.data.get("label", "")), ["taken"] if reached else []
        kind, key = one.pick
        if kind == "loop":
            loop = self.graph.loops[key]
            words = part(loop_words(loop, marks.progress.get(key)), 200)
            return f"loop {part(key)}\n{words}", []
        return self._socket_live(self.graph.sockets[key], marks, most)

    def _socket_live(self, socket: Socket, marks: Marks, most: int) -> tuple[str, list[str]]:
        inner = self.placed.nodes[socket.id].w - _ROOM
        state = state_words(socket.id, marks)
        visits = marks.visits.get(socket.id, 0)
        stopped = socket.id in marks.breakpoints
        before = ("● " if stopped else "") + (f"{state} · " if state else "")
        entry = " · entry" if socket.id == self.graph.entry else ""
        count = f"  {count_words(visits)}" if visits else ""
        room = inner - text_width(before, LABEL_SIZE)
        more = kind_words(socket)[1:]
        lines = [
            f"{before}{fit(part(socket.id), LABEL_SIZE, room)}",
            fit(part(socket.materia.label), LABEL_SIZE, inner - text_width(count, LABEL_SIZE)) + count,
            fit(answer_words(socket, marks), LABEL_SIZE, inner - text_width(entry, LABEL_SIZE)) + entry,
            *([" · ".join(more)] if more else []),
            *(fit(part(note, 120), SMALL_SIZE, inner) for note in socket_notes(socket)),
        ]
        classes = [word for word, holds in (("break", stopped), ("failed", "✖" in state)) if holds]
        if "▶" in state or "‖" in state:
            classes.append("waiting" if marks.waiting else "current")
        if visits > 1:
            classes.append(f"heat-{-(-visits * HEAT_LEVELS // most)}")
        return "\n".join(lines), classes

    def _line_live(self, line: Line, marks: Marks) -> tuple[str, list[str]]:
        link = line.link
        words = link_words(link, marks)
        if line.stub:
            words = stub_label(link)
        # Traversals are counted by the pair of sockets, so they say nothing about one of several edges.
        alone = link.kind == "edge" and self._pairs[link.traversal] == 1
        count = marks.traversals.get(link.traversal, 0) if alone else 0
        if words and count:
            words += f" {count_words(count)}"
        taken = link.route is not None and link.route == marks.last_route
        return words, ["taken"] if taken else []


def _centre(box: Box) -> Point:
    return box.cx, box.cy


def _label_centre(line: Line) -> Point | None:
    """Where the middle of a line's label goes; beside a line back to the same socket it begins at the left."""
    box, link = line.label, line.link
    if box is None:
        return None
    half = text_width(link_words(link), SMALL_SIZE) / 2 + 6 if link.source == link.target else box.w / 2
    return box.x + half, box.cy


def _at_end(marks: Marks) -> bool:
    return marks.last_route is not None and marks.last_route[1] == END
