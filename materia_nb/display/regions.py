"""Loops as a tree of regions: a loop inside another, sockets inside their innermost loop."""

from __future__ import annotations

from dataclasses import dataclass, field

from materia_nb.loadout.graph import Graph


@dataclass(slots=True, eq=False)
class Region:
    """The picture itself (``loop`` None) or one loop's box: what stands directly in it, in order."""

    loop: str | None
    sockets: list[str] = field(default_factory=list)
    children: list[Region] = field(default_factory=list)


def regions(
    graph: Graph, leave_out: frozenset[str]
) -> tuple[Region, dict[str, tuple[Region, ...]], list[str]]:
    """Sort the sockets into regions.

    Returns the root; for each socket the regions around it, outermost first; and the ids of the loops that
    overlap others without lying inside them: no box can hold those alone.
    """
    members = {
        loop.id: frozenset(loop.sockets) & graph.sockets.keys() - leave_out for loop in graph.loops.values()
    }
    by_size = sorted((loop for loop in members if members[loop]), key=lambda loop: -len(members[loop]))
    root = Region(None)
    region_of: dict[str, Region] = {}
    around: dict[str, tuple[Region, ...]] = dict.fromkeys(graph.sockets, (root,))
    loose: list[str] = []
    for loop in by_size:
        places = {around[socket] for socket in members[loop]}
        if len(places) > 1:
            loose.append(loop)
            continue
        path = places.pop()
        region = region_of[loop] = Region(loop)
        path[-1].children.append(region)
        for socket in members[loop]:
            around[socket] = (*path, region)
    for socket in graph.sockets:
        if socket not in leave_out:
            around[socket][-1].sockets.append(socket)
    return root, around, loose
