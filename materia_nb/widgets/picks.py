"""What can be selected in a graph, by mouse or by keyboard, and how a list names it."""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal, TypeAlias

from materia_nb.display.escape import part
from materia_nb.display.graph_parts import END_SIGN, Link, kind_words, link_words, links
from materia_nb.loadout.graph import END, Graph

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
