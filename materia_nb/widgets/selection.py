"""The parts that can be selected in a graph and in a design, and their names in lists.

A part is a :data:`Pick` whose key names its place in the document: ``edge:<place>:<socket>``, as in a picture, and
``exit:<place>:<loop>``; the way out that the older field ``exit`` stands for is ``exit:old:<loop>``.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal, TypeAlias

from materia_nb.display.escape import part
from materia_nb.display.graph_parts import Link, link_label, links, socket_kinds
from materia_nb.jsonvalue import JSON, Object, as_list, as_object, is_object, is_text
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.report import brief

Kind: TypeAlias = Literal["socket", "edge", "exit", "loop"]

Selection: TypeAlias = tuple[Kind, str]
"""The selected part: a socket or loop and its id, an exit and its ``edge_id``, or an edge and its key.

The key of an edge is ``edge:<place>:<socket>``; that of the end that nobody wrote is ``implied:<socket>``.
"""

_INDENT: Final = "\N{NO-BREAK SPACE}" * 4


def selection_of(link: Link) -> Selection | None:
    """Return the selection of a line; None for the line from the start."""
    if link.kind == "start":
        return None
    return ("exit" if link.kind == "exit" else "edge", link.key)


def link_title(link: Link) -> str:
    """Return the condition and target of a line, for a context that names its source."""
    label = "no edges" if link.kind == "implied" else link_label(link) or link.condition
    return f"{label} → {part(link.to)}"


def selectable_parts(graph: Graph) -> list[tuple[str, Selection]]:
    """List everything that can be selected, each under a name of its own: sockets with their ways out, loops."""
    out: dict[str, list[Link]] = {}
    for link in links(graph):
        out.setdefault(link.source, []).append(link)
    titles = Counter(link_title(link) for socket_links in out.values() for link in socket_links)
    named: list[tuple[str, Selection]] = []
    for socket in graph.sockets.values():
        entry = " · entry" if socket.id == graph.entry else ""
        label = part(socket.materia.label)
        name = part(socket.id) if socket.id == socket.materia.label else f"{part(socket.id)} · {label}"
        title = f"{name} · {', '.join(socket_kinds(socket))}{entry}"
        named.append((title, ("socket", socket.id)))
        for link in out.get(socket.id, ()):
            selection, title = selection_of(link), link_title(link)
            if selection is not None:
                source = f" (from {part(socket.id)})" if titles[title] > 1 else ""
                named.append((f"{_INDENT}{title}{source}", selection))
    named += [(f"loop {part(loop)}", ("loop", loop)) for loop in graph.loops]
    return numbered(named)


def numbered(named: list[tuple[str, Selection]]) -> list[tuple[str, Selection]]:
    """Number names that still occur more than once: a list selects by name."""
    counts: Counter[str] = Counter()
    unique = []
    for title, selection in named:
        counts[title] += 1
        unique.append((title if counts[title] == 1 else f"{title}{_INDENT}({counts[title]})", selection))
    return unique


OLD: Final = "old"


def edge_selection(kind: Kind, owner: str, index: int | str) -> Selection:
    """Return an edge of a socket, or an exit route of a loop, as a part."""
    return kind, f"{kind}:{index}:{owner}"


def owner_of(pick: Selection) -> tuple[str, int | None]:
    """Return the socket of an edge or the loop of an exit, and its place; None for the older ``exit``.

    A socket and a loop are their own, without a place.
    """
    if pick[0] in ("socket", "loop"):
        return pick[1], None
    _, index, owner = pick[1].split(":", 2)
    return owner, None if index == OLD else int(index)


ENDS: Final[dict[Kind, tuple[str, str]]] = {"edge": ("when", "to"), "exit": ("condition", "targetSocketId")}
"""Under which names an edge and an exit route have their condition and where they lead."""


def written(document: Object, kind: Kind, id_: str) -> Object:
    """Return a socket or loop as the loadout writes it; an empty object if it cannot be read."""
    return as_object(as_object(document.get(f"{kind}s")).get(id_))


def edges_of(document: Object, kind: Kind, owner: str) -> list[JSON]:
    """Return the edges of a socket, or the exit routes of a loop, as a loadout writes them."""
    if kind == "edge":
        return as_list(written(document, "socket", owner).get("edges"))
    return as_list(written(document, "loop", owner).get("exits"))


def members_of(document: Object, loop: str) -> list[str]:
    """Return the members of a loop, as far as they are text."""
    return [member for member in as_list(written(document, "loop", loop).get("sockets")) if isinstance(member, str)]


def parts(document: Object, graph: Graph) -> list[tuple[str, Selection]]:
    """List every part under a name of its own: sockets with their edges, loops with their exits."""
    named: list[tuple[str, Selection]] = []
    for id_, raw in as_object(document.get("sockets")).items():
        socket = graph.sockets.get(id_)
        description = (
            f"{part(socket.materia.label)} · {', '.join(socket_kinds(socket))}" if socket else part(brief(raw))
        )
        entry = " · entry" if id_ == graph.entry else ""
        named.append((f"{part(id_)} · {description}{entry}", ("socket", id_)))
        for index, edge in enumerate(edges_of(document, "edge", id_)):
            title = f"{_INDENT}{index + 1} {_way(edge, 'edge')} (from {part(id_)})"
            named.append((title, edge_selection("edge", id_, index)))
    for id_, raw in as_object(document.get("loops")).items():
        named.append((f"loop {part(id_)}", ("loop", id_)))
        for index, route in enumerate(edges_of(document, "exit", id_)):
            source = part(as_object(route).get("from", "?"))
            title = f"{_INDENT}exit {_way(route, 'exit')} (from {source}, loop {part(id_)})"
            named.append((title, edge_selection("exit", id_, index)))
        if is_object(as_object(raw).get("exit")):
            named.append((f"{_INDENT}exit, older form (loop {part(id_)})", edge_selection("exit", id_, OLD)))
    return numbered(named)


def drawn_parts(document: Object, graph: Graph) -> dict[Selection, Selection]:
    """Return the part of the design that each selectable element of the picture shows."""
    drawn: dict[Selection, Selection] = {("socket", id_): ("socket", id_) for id_ in graph.sockets}
    drawn |= {("loop", id_): ("loop", id_) for id_ in graph.loops}
    routes = [(loop.id, route) for loop in graph.loops.values() for route in loop.routes]
    exits = [link for link in links(graph) if link.kind == "exit"]
    for link in links(graph):
        if link.kind == "edge" and link.place is not None:
            drawn["edge", link.key] = edge_selection("edge", link.source, link.place)
        elif link.kind == "implied":
            drawn["edge", link.key] = ("socket", link.source)
    matched: set[tuple[str, int]] = set()
    for link, (loop, route) in zip(exits, routes, strict=False):
        if route.derived:
            drawn["exit", link.key] = edge_selection("exit", loop, OLD)
            continue
        ends = (route.source, route.condition, route.target)
        for index, raw in enumerate(edges_of(document, "exit", loop)):
            if _ends(raw) == ends and (loop, index) not in matched:
                matched.add((loop, index))
                drawn["exit", link.key] = edge_selection("exit", loop, index)
                break
    return drawn


def _ends(route: JSON) -> tuple[JSON, JSON, JSON]:
    raw = as_object(route)
    return raw.get("from"), raw.get("condition"), raw.get("targetSocketId")


def _way(raw: JSON, kind: Kind) -> str:
    if not is_object(raw):
        return part(brief(raw))
    return " → ".join(part(raw[name] if is_text(raw.get(name)) else "?") for name in ENDS[kind])
