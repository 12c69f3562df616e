"""Leading every way to the end of a loadout to a socket behind it, without changing any other way.

There are three ends to a loadout: what is drawn to ``end``, a socket whose edges do not match (R3), and a
list that is exhausted, or empty when it is entered, without an exit that fits (R16).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from materia_nb.errors import MateriaError
from materia_nb.loadout.facts import Object, as_list
from materia_nb.loadout.graph import END, ExitRoute, Graph, Loop, Socket
from materia_nb.loadout.vocabulary import CONDITIONS, DEFAULT_HANDOFF, GUARDS, Condition

_SAYS: Mapping[Condition, tuple[Condition, ...]] = {
    when: (when,) if when in GUARDS else CONDITIONS for when in CONDITIONS
}
"""What an output can have said when an advance of this condition moved; ``always``: nothing."""


@dataclass(frozen=True, slots=True)
class Part:
    """A loadout under its new names, being made a part of a larger one.

    Attributes:
        sockets: raw sockets by their new ids; changed while bridges are added, as ``loops`` is.
        loops: raw loops, in the order that they had.
        ids: old socket id -> new.
        cursors: old name of a cursor -> new.
    """

    sockets: Object
    loops: Object
    ids: Mapping[str, str]
    cursors: Mapping[str, str]


def add_bridges(part: Part, graph: Graph, target: str, *, taken: Collection[str]) -> None:
    """Change a part so that it goes on to ``target`` wherever it would end.

    Args:
        part: the part.
        graph: the part alone, resolved, under its old names.
        target: the socket to go on to.
        taken: ids of loops that other parts have.

    Raises:
        MateriaError: empty lists would end the part and nothing can say otherwise (``no_way_on``).
    """
    ids = part.ids
    for socket in graph.sockets.values():
        raw = part.sockets[ids[socket.id]]
        _lead_edges(raw, socket, target)
        if socket.advance is not None and socket.advance.derived:
            # Written out, since the exits that are added below must not derive another (R15).
            advance = socket.advance
            raw["advance"] = {
                "cursor": part.cursors[advance.cursor],
                "items": advance.items,
                "when": advance.when,
            }
    ways = _Ways(graph)
    ways.refuse_circles()
    for loop, raw in zip(graph.loops.values(), part.loops.values(), strict=True):
        exits = as_list(raw.get("exits"))
        for route in exits:
            if route["targetSocketId"] == END:
                route["targetSocketId"] = target
        if loop.iterator is not None and not ways.always_of(loop.id):
            source = _empty_source(graph, ways, loop)
            ways.add(loop.id, source)
            raw["exits"] = [*exits, _always(ids[source], target)]
    ends = [ids[socket.id] for socket in graph.sockets.values() if ways.ends_at(socket)]
    if ends:
        name = free_name(f"{graph.name} ends", {*part.loops, *taken})
        part.loops[name] = {"sockets": ends, "exits": [_always(id_, target) for id_ in ends]}


def free_name(name: str, taken: Collection[str]) -> str:
    """Return ``name``, with a number behind it if it is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found


def _lead_edges(raw: Object, socket: Socket, target: str) -> None:
    """Lead edges to the end on, and add what matches where nothing would (R3).

    A utility with guards only must say whether it is satisfied, and an ``always`` edge would free it of
    that (R7), so it gets the guard that is missing.
    """
    edges = [{**edge, "to": target} if edge["to"] == END else edge for edge in as_list(raw.get("edges"))]
    guards = [edge["when"] for edge in edges]
    missing: list[Condition] = ["always"]
    if socket.parse == "json" and guards and (socket.is_utility or socket.handoff == DEFAULT_HANDOFF):
        unsaid: list[Condition] = [when for when in GUARDS if when not in guards]
        missing = unsaid if socket.is_utility or not unsaid else missing
    if "always" in guards:
        missing = []
    raw["edges"] = [*edges, *({"when": when, "to": target} for when in missing)]


def _empty_source(graph: Graph, ways: _Ways, loop: Loop) -> str:
    """Choose the member from which the exit of an empty list is drawn (R16).

    It must be one that the exit gives no advance (R15), and better one whose own exits it does not come before.
    """
    advancing = [id_ for id_ in loop.sockets if graph.sockets[id_].advance is not None]
    walked = loop.iterator is not None and any(
        (advance := graph.sockets[id_].advance) is not None and advance.cursor == loop.iterator.cursor
        for id_ in loop.sockets
    )
    may = list(loop.sockets) if walked or loop.generator is None else advancing
    if not may:
        raise _no_way_on(graph, loop.id, "it has no exit and no advance", "give the loop an exit route")
    order = sorted(may, key=lambda id_: (ways.has_always(id_), id_ not in advancing))
    return order[0]


def _no_way_on(graph: Graph, loop: str, why: str, hint: str) -> MateriaError:
    return MateriaError(
        f"Nothing can be linked behind {graph.name!r}: an empty list would end the cast at its loop {loop!r}, "
        f"because {why}.",
        where=f"loops.{loop}",
        hint=f"{hint}, or link it last",
        kind="no_way_on",
    )


def _always(source: str, target: str) -> Object:
    return {"id": f"exit:{source}:always", "from": source, "condition": "always", "targetSocketId": target}


class _Ways:
    """The exit routes of a part, those that were added included, by loop."""

    def __init__(self, graph: Graph) -> None:
        self.routes = {loop.id: list(loop.routes) for loop in graph.loops.values()}
        self.graph = graph

    def add(self, loop: str, source: str) -> None:
        self.routes[loop].append(ExitRoute("", loop, source, "always", END))

    def always_of(self, loop: str) -> list[ExitRoute]:
        return [route for route in self.routes[loop] if route.condition == "always"]

    def has_always(self, source: str) -> bool:
        return any(route.condition == "always" for route in self._from(source))

    def ends_at(self, socket: Socket) -> bool:
        """Whether the cast would end at a socket because a list is exhausted or, its own, empty."""
        own = socket.iterator is not None and socket.iterator.loop is None
        if own and not any(self.always_of(loop) for loop in socket.loops):
            return True
        if socket.advance is None:
            return False
        there = {route.condition for route in self._from(socket.id)}
        return "always" not in there and not there.issuperset(_SAYS[socket.advance.when])

    def refuse_circles(self) -> None:
        """Raise when the exits of empty lists lead round in a circle, which ends a cast (R16)."""
        for start in self.graph.sockets.values():
            passed, socket = [start.id], start
            while socket.iterator is not None and (target := self._after_empty(socket)) is not None:
                if target in passed:
                    loop = socket.loops[0]
                    raise _no_way_on(
                        self.graph, loop, "its exit leads back into empty lists", "lead the exit out of them"
                    )
                passed.append(target)
                socket = self.graph.sockets[target]

    def _after_empty(self, socket: Socket) -> str | None:
        """The socket where an empty list leads; as the engine does it, see ``Rules.empty_exit``."""
        loop = socket.iterator.loop if socket.iterator else None
        for routes in filter(None, map(self.always_of, socket.loops if loop is None else (loop,))):
            target = next((route for route in routes if route.source == socket.id), routes[0]).target
            return None if target == END else target
        return None

    def _from(self, source: str) -> Iterator[ExitRoute]:
        for routes in self.routes.values():
            yield from (route for route in routes if route.source == source)
