"""What can be selected, by mouse or by keyboard, in a graph and in a design, and how a list names it.

A part is a :data:`Pick` whose key names its place in the document: ``edge:<place>:<socket>``, as in a picture, and
``exit:<place>:<loop>``; the way out that the older field ``exit`` stands for is ``exit:old:<loop>``.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal, TypeAlias

from materia_nb.display.escape import part
from materia_nb.display.graph_parts import END_SIGN, Link, kind_words, link_words, links
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import Object, as_list, as_object, is_object, is_text
from materia_nb.loadout.graph import END, Graph
from materia_nb.loadout.report import shown

Kind: TypeAlias = Literal["socket", "edge", "exit", "loop"]

Pick: TypeAlias = tuple[Kind, str]
"""What was selected: a socket or loop and its id, an exit and its ``edge_id``, or an edge and its key.

The key of an edge is ``edge:<place>:<socket>``; that of the end that nobody wrote is ``implied:<socket>``.
"""

_INDENT: Final = "\N{NO-BREAK SPACE}" * 4


def pick_of(link: Link) -> Pick | None:
    """Return what a line is selected as; None for the line from the start."""
    if link.kind == "start":
        return None
    return ("exit" if link.kind == "exit" else "edge", link.key)


def link_title(link: Link) -> str:
    """Name a line by its condition and target, for a place that names its source."""
    target = END if link.target == END_SIGN else part(link.target)
    if link.kind == "implied":
        return f"no edges → {target}"
    return f"{link_words(link) or link.condition} → {target}"


def picks(graph: Graph) -> list[tuple[str, Pick]]:
    """List everything that can be selected, each under a name of its own: sockets with their ways out, loops."""
    out: dict[str, list[Link]] = {}
    for link in links(graph):
        out.setdefault(link.source, []).append(link)
    titles = Counter(link_title(link) for found in out.values() for link in found)
    named: list[tuple[str, Pick]] = []
    for socket in graph.sockets.values():
        entry = " · entry" if socket.id == graph.entry else ""
        label = part(socket.materia.label)
        name = part(socket.id) if socket.id == socket.materia.label else f"{part(socket.id)} · {label}"
        words = f"{name} · {', '.join(kind_words(socket))}{entry}"
        named.append((words, ("socket", socket.id)))
        for link in out.get(socket.id, ()):
            pick, title = pick_of(link), link_title(link)
            if pick is not None:
                source = f" (from {part(socket.id)})" if titles[title] > 1 else ""
                named.append((f"{_INDENT}{title}{source}", pick))
    named += [(f"loop {part(loop)}", ("loop", loop)) for loop in graph.loops]
    return told_apart(named)


def told_apart(found: list[tuple[str, Pick]]) -> list[tuple[str, Pick]]:
    """Number names that still occur more than once: a list selects by name."""
    seen: Counter[str] = Counter()
    apart = []
    for words, pick in found:
        seen[words] += 1
        apart.append((words if seen[words] == 1 else f"{words}{_INDENT}({seen[words]})", pick))
    return apart


OLD: Final = "old"


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
