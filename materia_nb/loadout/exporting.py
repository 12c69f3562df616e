"""A loadout written for another tool: LangGraph code and draw.io XML. What has no twin there is said node by node."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, get_args
from xml.etree import ElementTree as ET

from materia_nb.errors import needs_one_of
from materia_nb.file_io import read_own
from materia_nb.loadout.graph import END, Graph, Socket
from materia_nb.loadout.importing import Note

OtherTool: TypeAlias = Literal["langgraph", "drawio"]
"""What a loadout can be written for."""
OTHER_TOOLS: Final = get_args(OtherTool)

_NO_TWIN: Final[Mapping[str, Callable[[Graph, Socket], object]]] = {
    "a process answers here, not an agent: run it in the function of this node": lambda _, here: (
        here.is_utility
    ),
    "it makes the list of a loop: keep the list in the state": lambda graph, here: here.id in graph.consumers,
    "it is visited once for each item of a list: walk the list yourself, and answer done behind the last": (
        lambda _, here: here.iterator
    ),
    "its items are worked on side by side, in lanes": lambda graph, here: here.id in graph.regions,
    "a person talks with its agent before it hands over": lambda _, here: here.materia.multi_turn,
    "what it hands over goes into the state by assign": lambda _, here: here.assign,
    "a way out of it may be taken so many times only": (
        lambda _, here: any(edge.max_traversals is not None for edge in here.edges)
    ),
    "a way out of it is taken when it fails: answer failed": (
        lambda _, here: any(edge.when == "failed" for edge in here.edges)
    ),
}
"""What of a socket has no twin in either tool, and of which sockets it is so."""
_CASTS: Final = "budget, limits, repairs of refused answers, what an agent is told of the cast and {{...}} in prompts are yours to do"


class Exported(NamedTuple):
    """A loadout as another tool reads it, and what of it has no twin there; the text says that too."""

    text: str
    notes: tuple[Note, ...]


def export_graph(graph: Graph, to: OtherTool) -> Exported:
    """Write a loadout as LangGraph code (``langgraph``) or as a draw.io diagram (``drawio``).

    Raises:
        MateriaError: there is no such tool (``usage``).
    """
    needs_one_of(to, OTHER_TOOLS, f"A loadout cannot be written for {to!r}.", "usage")
    notes = [
        Note(id_, text)
        for id_, here in graph.sockets.items()
        for text, so in _NO_TWIN.items()
        if so(graph, here)
    ]
    notes.append(Note(graph.name, _CASTS))
    return Exported((_langgraph if to == "langgraph" else _drawio)(graph, notes), tuple(notes))


class _WayOn(NamedTuple):
    """A way out of a socket, the first that matches is taken: what must have been said, where it leads, how often."""

    said: tuple[str, ...]
    to: str
    most: int | None = None


def _ways(graph: Graph, here: Socket) -> list[_WayOn]:
    """Return the ways out of a socket in the order in which they are looked at: exits of loops, then edges."""
    routes = [one for loop in graph.loops.values() for one in loop.routes if one.source == here.id]
    exits = [_WayOn(tuple(dict.fromkeys(["done", one.condition])), one.target) for one in routes]
    edges = [_WayOn((edge.when,), edge.to, edge.max_traversals) for edge in here.edges]
    return [*exits, *edges] or [_WayOn(("always",), END)]


_CODE: Final = Path(__file__).with_name("langgraph.py.txt")
"""The code of any graph, with places for what is this one's own."""


def _langgraph(graph: Graph, notes: list[Note]) -> str:
    prompts, ways = [], []
    for id_, here in graph.sockets.items():
        led = [
            f"({list(one.said)}, {'END' if one.to == END else repr(one.to)})" for one in _ways(graph, here)
        ]
        prompts.append(f"    {id_!r}: {here.materia.prompt!a},")
        ways.append(f"    {id_!r}: [{', '.join(led)}],")
    return read_own(_CODE).format(
        notes="\n".join(f"    ({note.node!a}, {note.text!a})," for note in notes),
        prompts="\n".join(prompts),
        ways="\n".join(ways),
        entry=repr(graph.entry),
    )


_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WIDE, _HIGH = 200, 60


def _drawio(graph: Graph, notes: list[Note]) -> str:
    file = ET.Element("mxfile")
    model = ET.SubElement(ET.SubElement(file, "diagram", name=_plain(graph.name)), "mxGraphModel")
    root = ET.SubElement(model, "root")
    ET.SubElement(root, "mxCell", {"id": "0"})
    ET.SubElement(root, "mxCell", {"id": "1", "parent": "0"})
    cells = {id_: f"socket-{number}" for number, id_ in enumerate(graph.sockets)} | {END: "end"}
    places = _places(graph)
    bottom = max(row for _, row in places.values()) + 1
    for id_, (column, row) in places.items():
        here = graph.sockets.get(id_)
        label = "end" if here is None else f"{here.materia.label}\n{id_}"
        shape = "ellipse" if here is None else "shape=process" if here.is_utility else "rounded=1"
        _box(root, cells[id_], label, shape, (column * _WIDE * 1.5, row * _HIGH * 2, _WIDE, _HIGH))
    for here in graph.sockets.values():
        for place, way in enumerate(_ways(graph, here)):
            words = " and ".join(one for one in way.said if one != "always" or len(way.said) == 1)
            most = "" if way.most is None else f", at most {way.most}"
            style = "edgeStyle=orthogonalEdgeStyle" + (";dashed=1" if "done" in way.said else "")
            ends = {"edge": "1", "source": cells[here.id], "target": cells[way.to]}
            label = "" if words + most == "always" else words + most
            cell = _cell(root, f"{cells[here.id]}-{place}", label, style, ends)
            ET.SubElement(cell, "mxGeometry", {"relative": "1", "as": "geometry"})
    said = "\n".join(["What has no twin here:", *(f"{note.node}: {note.text}" for note in notes)])
    _box(
        root,
        "notes",
        said,
        "text;align=left;verticalAlign=top",
        (0, bottom * _HIGH * 2, _WIDE * 4, _HIGH * 4),
    )
    ET.indent(file)
    return ET.tostring(file, encoding="unicode")


def _places(graph: Graph) -> dict[str, tuple[int, int]]:
    """Return the column and the row of each socket, by how many steps it is from the entry."""
    depths, waiting = {graph.entry: 0}, [graph.entry]
    for id_ in waiting:
        for way in _ways(graph, graph.sockets[id_]) if id_ != END else ():
            if way.to not in depths:
                depths[way.to] = depths[id_] + 1
                waiting.append(way.to)
    for id_ in (*graph.sockets, END):
        depths.setdefault(id_, 0)
    columns = list(depths.values())
    return {id_: (depth, columns[:place].count(depth)) for place, (id_, depth) in enumerate(depths.items())}


def _box(root: ET.Element, id_: str, label: str, style: str, box: tuple[float, float, float, float]) -> None:
    cell = _cell(root, id_, label, f"whiteSpace=wrap;{style}", {"vertex": "1"})
    place = {name: f"{size:g}" for name, size in zip(("x", "y", "width", "height"), box, strict=True)}
    ET.SubElement(cell, "mxGeometry", {**place, "as": "geometry"})


def _cell(root: ET.Element, id_: str, label: str, style: str, more: Mapping[str, str]) -> ET.Element:
    """Add a cell; draw.io reads its label as it is, not as markup (``html=0``)."""
    shown = {"id": id_, "parent": "1", "value": _plain(label), "style": f"html=0;{style};"}
    return ET.SubElement(root, "mxCell", {**shown, **more})


def _plain(text: str) -> str:
    """Return a text without the characters that XML cannot have."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
