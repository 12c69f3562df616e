"""What of a design can be selected: every part of the document, also those too broken to be drawn.

A part is a :data:`Pick` whose key names its place in the document: ``edge:<place>:<socket>``, as in a picture, and
``exit:<place>:<loop>``; the way out that the older field ``exit`` stands for is ``exit:old:<loop>``.
"""

from __future__ import annotations

from typing import Final

from materia_nb.display.escape import part
from materia_nb.display.graph_parts import kind_words, links
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import Object, as_list, as_object, is_object, is_text
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.report import shown
from materia_nb.widgets.picks import Pick, told_apart

OLD: Final = "old"
_INDENT: Final = "\N{NO-BREAK SPACE}" * 4


def edge_pick(socket: str, place: int) -> Pick:
    """Return an edge as a part."""
    return "edge", f"edge:{place}:{socket}"


def exit_pick(loop: str, place: int | str) -> Pick:
    """Return an exit route as a part."""
    return "exit", f"exit:{place}:{loop}"


def owner_of(pick: Pick) -> tuple[str, int | None]:
    """Return the socket of an edge or the loop of an exit, and its place; None for the older ``exit``."""
    _, place, owner = pick[1].split(":", 2)
    return owner, None if place == OLD else int(place)


def parts(document: Object, graph: Graph) -> list[tuple[str, Pick]]:
    """List every part under a name of its own: sockets with their edges, loops with their exits."""
    named: list[tuple[str, Pick]] = []
    for id_, raw in as_object(document.get("sockets")).items():
        socket = graph.sockets.get(id_)
        what = (
            f"{part(socket.materia.label)} · {', '.join(kind_words(socket))}" if socket else part(shown(raw))
        )
        entry = " · entry" if id_ == graph.entry else ""
        named.append((f"{part(id_)} · {what}{entry}", ("socket", id_)))
        for place, edge in enumerate(as_list(as_object(raw).get("edges"))):
            way = _way(edge, "when", "to")
            named.append((f"{_INDENT}{place + 1} {way} (from {part(id_)})", edge_pick(id_, place)))
    for id_, raw in as_object(document.get("loops")).items():
        named.append((f"loop {part(id_)}", ("loop", id_)))
        for place, route in enumerate(as_list(as_object(raw).get("exits"))):
            way = _way(route, "condition", "targetSocketId")
            source = part(as_object(route).get("from", "?"))
            named.append((f"{_INDENT}exit {way} (from {source}, loop {part(id_)})", exit_pick(id_, place)))
        if is_object(as_object(raw).get("exit")):
            named.append((f"{_INDENT}exit, older form (loop {part(id_)})", exit_pick(id_, OLD)))
    return told_apart(named)


def drawn_parts(document: Object, graph: Graph) -> dict[Pick, Pick]:
    """Return which part each selectable element of the picture stands for."""
    found: dict[Pick, Pick] = {("socket", id_): ("socket", id_) for id_ in graph.sockets}
    found |= {("loop", id_): ("loop", id_) for id_ in graph.loops}
    routes = [(loop.id, route) for loop in graph.loops.values() for route in loop.routes]
    exits = [link for link in links(graph) if link.kind == "exit"]
    for link in links(graph):
        if link.kind == "edge" and link.place is not None:
            found["edge", link.key] = edge_pick(link.source, link.place)
        elif link.kind == "implied":
            found["edge", link.key] = ("socket", link.source)
    taken: set[tuple[str, int]] = set()
    for link, (loop, route) in zip(exits, routes, strict=False):
        if route.derived:
            found["exit", link.key] = exit_pick(loop, OLD)
            continue
        written = as_list(as_object(as_object(document.get("loops")).get(loop)).get("exits"))
        wanted = (route.source, route.condition, route.target)
        for place, raw in enumerate(written):
            if _ends(raw) == wanted and (loop, place) not in taken:
                taken.add((loop, place))
                found["exit", link.key] = exit_pick(loop, place)
                break
    return found


def _ends(route: JSON) -> tuple[JSON, JSON, JSON]:
    raw = as_object(route)
    return raw.get("from"), raw.get("condition"), raw.get("targetSocketId")


def _way(raw: JSON, when: str, to: str) -> str:
    if not is_object(raw):
        return part(shown(raw))
    said = [part(raw[name] if is_text(raw.get(name)) else "?") for name in (when, to)]
    return " → ".join(said)
