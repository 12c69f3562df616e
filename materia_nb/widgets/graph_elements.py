"""The elements of a graph on the canvas, as JSON: their positions, and their appearance for one state of a cast.

The page replaces the placeholders in the pictures with the colours of its theme
(:data:`~materia_nb.display.svg.COLOUR_PLACEHOLDERS`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, Final, TypeAlias

from materia_nb.display.escape import part
from materia_nb.display.geometry import Box, Point, bend_segments, rounded_polyline
from materia_nb.display.graph_parts import (
    END_MARKER,
    START_MARKER,
    TIMES_SIGN,
    CastOverlay,
    answered_by,
    link_label,
    loop_label,
    min_zoom,
    short_number,
    socket_kinds,
    socket_notes,
)
from materia_nb.display.layout import DrawnLine, GraphLayout
from materia_nb.display.svg import (
    COLOUR_PLACEHOLDERS,
    OUTSET,
    colour_role,
    condition_role,
    line_chip,
    loop_frame,
    socket_card,
    status_tag,
    svg_image,
    terminal_symbol,
)
from materia_nb.errors import counted
from materia_nb.loadout.graph import END, Graph, Socket
from materia_nb.loadout.vocabulary import CONDITION_SPECS, Condition
from materia_nb.widgets.selection import Selection, selection_of

Looks: TypeAlias = dict[str, dict[str, str]]
"""Appearance of each element: its ``classes``, its tooltip in ``words`` and, for a node, its picture in ``svg``."""

_Element: TypeAlias = tuple[str, frozenset[object], Callable[[CastOverlay], dict[str, str]]]

_MARKER_NAMES: Final = {START_MARKER: "start", END_MARKER: "end"}
_ANCHOR_DISTANCE: Final = 4.0
"""Distance of an invisible anchor node from the tip of its line, in pixels; it determines the line's direction."""


class GraphElements:
    """The nodes and edges that represent a graph on the canvas.

    Args:
        graph: the graph of the loadout.
        placed: the layout of the graph.

    Attributes:
        selections: the selection that each selectable element represents.
        elements: the element of each selection.
    """

    def __init__(self, graph: Graph, placed: GraphLayout) -> None:
        self.graph = graph
        self.placed = placed
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[dict[str, Any]] = []
        self._ids: dict[tuple[str, str], str] = {}
        self._used_ids: set[str] = set()
        self._lines: dict[str, DrawnLine] = {}
        self._chips: dict[str, str] = {}
        self.selections: dict[str, Selection] = {}
        self._marks: CastOverlay | None = None
        self._looks: Looks = {}
        for loop_id, box in self.placed.loops.items():
            title = self.placed.titles.get(loop_id)
            corner = (box.x + 10, box.y + 6) if title is None else (title.x, title.y)
            kind = "loop folded" if loop_id in self.placed.folded else "loop"
            self._node("l", loop_id, box, kind, ("loop", loop_id))
            self.nodes[-1]["fold"] = [round(corner[0] + 8, 1), round(corner[1] + 8, 1)]
        for socket_id, box in self.placed.nodes.items():
            kinds = " ".join(word.replace(" ", "-") for word in socket_kinds(graph.sockets[socket_id]))
            self._node("n", socket_id, box, f"socket {kinds}", ("socket", socket_id))
        for key, box in self.placed.markers.items():
            self._node("s", _MARKER_NAMES[key], box, f"sign {_MARKER_NAMES[key]}", None)
        self._inside = {socket: loop for loop in self.placed.folded for socket in graph.loops[loop].sockets}
        for line in self.placed.edges:
            self._add_line(line)
        self.elements = {selection: element for element, selection in self.selections.items()}
        self._drawn = [*self._drawn_elements()]

    def data(self) -> dict[str, Any]:
        """Return the data that stays the same while this graph is displayed, such as its size, nodes and edges."""
        return {
            "size": [round(value, 1) for value in self.placed.size],
            "corner": [round(self.placed.bounds.x, 1), round(self.placed.bounds.y, 1)],
            "level": self.placed.level,
            "readable": round(min_zoom(self.placed.level), 3),
            "direction": self.placed.direction,
            "edge": OUTSET,
            "nodes": self.nodes,
            "edges": self.edges,
            "entry": self._ids.get(("n", self.graph.entry)),
            "sockets": len(self.graph.sockets),
        }

    def element_of(self, socket: str | None) -> str | None:
        """Return the element that shows a socket: its card, or the folded loop that contains it."""
        if socket is None:
            return None
        loop = self._inside.get(socket)
        return self._ids.get(("n", socket)) or (self._ids.get(("l", loop)) if loop is not None else None)

    # -- nodes and edges ---------------------------------------------------------

    def _id(self, prefix: str, key: str) -> str:
        """Return a new element id that is unique and can be encoded in UTF-8."""
        valid_key = key.encode("utf-8", "replace").decode()[:200]
        element_id, number = f"{prefix}:{valid_key}", 1
        while element_id in self._used_ids:
            number += 1
            element_id = f"{prefix}:{valid_key}~{number}"
        self._used_ids.add(element_id)
        self._ids[prefix, key] = element_id
        return element_id

    def _node(self, prefix: str, key: str, box: Box, classes: str, selection: Selection | None) -> str:
        element_id = self._id(prefix, key)
        if selection is not None:
            self.selections[element_id] = selection
        self.nodes.append(
            {
                "id": element_id,
                "pick": _encodable(selection),
                "x": round(box.cx, 1),
                "y": round(box.cy, 1),
                "w": round(box.w, 1),
                "h": round(box.h, 1),
                "classes": classes,
            }
        )
        return element_id

    def _locate_endpoint(self, key: str) -> tuple[str, Point]:
        """Return the id and the centre of the node at which a line starts or ends."""
        if key in _MARKER_NAMES:
            return self._ids["s", _MARKER_NAMES[key]], _centre(self.placed.markers[key])
        if key in self.placed.nodes:
            return self._ids["n", key], _centre(self.placed.nodes[key])
        loop = self._inside[key]
        return self._ids["l", loop], _centre(self.placed.loops[loop])

    def _add_line(self, line: DrawnLine) -> None:
        link = line.link
        source, start = self._locate_endpoint(link.source)
        points = rounded_polyline(line.points)
        target, end = (source, start) if line.stub else self._locate_endpoint(link.target)
        if line.stub or source == target:
            # The line does not end at another node, so it ends at a new invisible point.
            (x, y), (dx, dy) = points[-1], line.heading
            sign = 1 if line.stub else -1
            end = (x + sign * _ANCHOR_DISTANCE * dx, y + sign * _ANCHOR_DISTANCE * dy)
            target = self._node("a", f"end of {link.key}", Box(end[0] - 0.5, end[1] - 0.5, 1, 1), "anchor", None)
        label = line.label
        bent = bend_segments(points, start, end, (label.cx, label.cy) if label is not None else None)
        element_id = self._id("e", link.key)
        selection = selection_of(link)
        if selection is not None:
            self.selections[element_id] = selection
        self._lines[element_id] = line
        if label is not None:
            self._chips[element_id] = self._node("c", link.key, label, "chip", None)
            self.nodes[-1]["of"] = element_id
        kinds = ["line", link.kind, "lanes" if link.lanes else ""]
        if link.kind != "start":
            kinds.append(_condition_class(link.condition))
        self.edges.append(
            {
                "id": element_id,
                "pick": _encodable(selection),
                "source": source,
                "target": target,
                **bent,
                "classes": " ".join(filter(None, kinds)),
            }
        )

    # -- appearance ----------------------------------------------------------

    def appearance(self, marks: CastOverlay) -> Looks:
        """Return the appearance of every element for one state of a cast, by element id.

        Only elements whose marks have changed are drawn again, because a graph can have hundreds of elements
        and a step changes only a few.
        """
        changed_keys = None if self._marks is None else _changed_keys(self._marks, marks)
        for element, keys, draw in self._drawn:
            if changed_keys is None or not keys.isdisjoint(changed_keys):
                self._looks[element] = draw(marks)
        self._marks = marks
        return dict(self._looks)

    def _drawn_elements(self) -> Iterator[_Element]:
        """Yield the id of each element, the keys of the marks that affect it, and a function that draws it."""
        for loop_id, box in self.placed.loops.items():
            members = frozenset((loop_id, *self.graph.loops[loop_id].sockets))
            yield self._ids["l", loop_id], members, partial(self._loop_look, loop_id, box)
        for socket_id, box in self.placed.nodes.items():
            socket = self.graph.sockets[socket_id]
            about = _socket_description(socket, entry=socket_id == self.graph.entry)
            drawn = partial(self._socket_look, socket, box, about)
            yield self._ids["n", socket_id], frozenset((socket_id,)), drawn
        for key, box in self.placed.markers.items():
            yield self._ids["s", _MARKER_NAMES[key]], frozenset(("last_route",)), partial(self._marker_look, key, box)
        for element_id, line in self._lines.items():
            drawn_links = (line.link, *line.shared)
            keys = frozenset(
                key for link in drawn_links for key in (link.route, link.traversal, (link.source, link.edge_index))
            )
            title = f"{self._name(line.link.source)} → {self._name(line.link.target)}"
            yield element_id, keys, partial(self._line_look, line, title)
            if line.label is not None:
                yield self._chips[element_id], keys, partial(self._chip_look, element_id, line, line.label)

    def _marker_look(self, key: str, box: Box, marks: CastOverlay) -> dict[str, str]:
        is_reached = key == END_MARKER and marks.last_route is not None and marks.last_route[1] == END
        svg = terminal_symbol(key, Box(OUTSET, OUTSET, box.w, box.h), marks, COLOUR_PLACEHOLDERS)
        return {"classes": "taken" if is_reached else "", "words": "", "svg": svg_image(svg, box)}

    def _chip_look(self, element_id: str, line: DrawnLine, box: Box, marks: CastOverlay) -> dict[str, str]:
        chip = line_chip(line, Box(OUTSET, OUTSET, box.w, box.h), self.placed.level, marks, COLOUR_PLACEHOLDERS)
        return {"classes": "", "words": self._looks[element_id]["words"], "svg": svg_image(chip, box)}

    def _name(self, key: str) -> str:
        if key in _MARKER_NAMES:
            return _MARKER_NAMES[key]
        return f"{part(self.graph.sockets[key].materia.label, 40)} ({part(key, 40)})"

    def _loop_look(self, loop_id: str, box: Box, marks: CastOverlay) -> dict[str, str]:
        loop = self.graph.loops[loop_id]
        title = self.placed.titles.get(loop_id)
        dx, dy = OUTSET - box.x, OUTSET - box.y
        boxes = box.translated(dx, dy), title.translated(dx, dy) if title else None
        frame = loop_frame(self.graph, loop, *boxes, marks, COLOUR_PLACEHOLDERS, level=self.placed.level)
        is_current = title is None and (marks.current in loop.sockets or marks.failed in loop.sockets)
        title_words = (
            f"loop {part(loop_id)}: {part(', '.join(self.graph.names.get(id_, id_) for id_ in loop.sockets), 200)}; "
        )
        return {
            "classes": "current" if is_current else "",
            "words": title_words + part(loop_label(self.graph, loop, marks.progress.get(loop_id)), 200),
            "svg": svg_image(frame, box),
        }

    def _socket_look(self, socket: Socket, box: Box, about: str, marks: CastOverlay) -> dict[str, str]:
        card = socket_card(socket, Box(OUTSET, OUTSET, box.w, box.h), self.placed.level, marks, COLOUR_PLACEHOLDERS)
        state, _ = status_tag(socket.id, marks)
        is_current = socket.id == marks.current
        classes = {
            "current": is_current,
            "waiting": is_current and marks.waiting,
            "failed": socket.id == marks.failed,
            "break": socket.id in marks.breakpoints,
        }
        return {
            "classes": " ".join(name for name, applies in classes.items() if applies),
            "words": "\n".join((about, *_socket_state_lines(socket, marks, state))),
            "svg": svg_image(card, box),
        }

    def _line_look(self, line: DrawnLine, title: str, marks: CastOverlay) -> dict[str, str]:
        link = line.link
        role = colour_role(link, marks)
        labels = "\n".join([link_label(link_, marks) for link_ in (link, *line.shared)]) or (
            "no edges: the cast ends" if link.kind == "implied" else "always"
        )
        has_breakpoint = link.route in marks.break_routes
        taken_times = marks.traversals.get(link.traversal, 0) if link.kind == "edge" else 0
        role_class = {"now": "taken", "rim": "never", "A": "only-a", "B": "only-b"}.get(role, "")
        return {
            "classes": f"{role_class} break".strip() if has_breakpoint else role_class,
            "words": f"{title}\n{labels}"
            + (f"\ntaken {counted(taken_times, 'time')} (all edges between these sockets)" if taken_times else "")
            + ("\nbreakpoint" if has_breakpoint else ""),
        }


_MARKS_OF_CURRENT_SOCKET: Final = ("waiting", "working", "held")


def _changed_keys(before: CastOverlay, now: CastOverlay) -> set[object] | None:
    """Return the keys of the elements that differ between two sets of marks, or None if every element must be drawn again."""
    keys: set[object] = set()
    for field in fields(CastOverlay):
        old_value, value = getattr(before, field.name), getattr(now, field.name)
        if old_value == value:
            continue
        if isinstance(value, Mapping):
            keys |= {key for key in old_value.keys() | value.keys() if old_value.get(key) != value.get(key)}
        elif isinstance(value, frozenset):
            keys |= old_value ^ value
        elif not isinstance(value, bool):
            keys |= {field.name, old_value, value}
        elif field.name in _MARKS_OF_CURRENT_SOCKET:
            keys |= {before.current, now.current}
        else:
            return None
    return keys - {None}


def _condition_class(condition: Condition) -> str:
    """Return the style sheet class for lines with this condition."""
    return f"when-{condition}"


def drawn_conditions() -> list[dict[str, Any]]:
    """Return the appearance of lines for each condition: their class, the roles of their colours, and their dashes."""
    return [
        {
            "class": _condition_class(word),
            "choice": condition.choice,
            "line": condition_role(word),
            "ink": word,
            "dashes": condition.dashes and list(condition.dashes),
        }
        for word, condition in CONDITION_SPECS.items()
    ]


def _socket_description(socket: Socket, *, entry: bool) -> str:
    """Return the lines of a card's tooltip that do not depend on the cast."""
    description = socket.materia.raw.get("description")
    lines = [
        f"{part(socket.materia.label)} ({part(socket.id)})",
        ", ".join((*socket_kinds(socket), *(("entry",) if entry else ()))),
        part(description, 200) if isinstance(description, str) else "",
        *(part(note, 120) for note in socket_notes(socket)),
    ]
    return "\n".join(filter(None, lines))


def _socket_state_lines(socket: Socket, marks: CastOverlay, state: str) -> Iterable[str]:
    """Return the lines of a card's tooltip that describe the current state of the cast."""
    visits = marks.visits.get(socket.id, 0)
    visited = f"visited {TIMES_SIGN}{short_number(visits)}" if visits else ""
    stops = "breakpoint" if socket.id in marks.breakpoints else ""
    return filter(None, (answered_by(socket.id, marks), visited, state, stops))


def _encodable(selection: Selection | None) -> list[str] | None:
    return None if selection is None else [selection[0], selection[1].encode("utf-8", "replace").decode()]


def _centre(box: Box) -> Point:
    return box.cx, box.cy
