"""The lines of a picture: ordinary edges, loop exits, the start, and the ends that nobody wrote."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from materia_nb.display.marks import Route
from materia_nb.loadout.graph import END, Graph, Socket
from materia_nb.loadout.vocabulary import GUARDS, Condition

START: Final = "\x00start"
"""Key of the start sign: no socket id can be equal to it."""
END_SIGN: Final = "\x00end"
"""Key of the end sign."""


@dataclass(frozen=True, slots=True)
class Link:
    """One line: from ``source`` to ``target``, which are socket ids, :data:`START` or :data:`END_SIGN`.

    ``order`` is the number in evaluation order, 0 where a number would say nothing.
    """

    key: str
    kind: Literal["start", "edge", "exit", "implied"]
    source: str
    target: str
    condition: Condition = "always"
    order: int = 0
    limit: int | None = None
    place: int | None = None
    loop: str | None = None

    @property
    def route(self) -> Route | None:
        """The route that this line stands for, as :class:`Marks` names it."""
        if self.kind == "edge" and self.place is not None:
            return (self.source, self.place)
        if self.kind == "exit":
            return (self.source, self.key)
        return (self.source, END) if self.kind == "implied" else None

    @property
    def traversal(self) -> str:
        """The key of its traversal count (R21)."""
        return f"{self.source}->{END if self.target == END_SIGN else self.target}"


def _target(graph: Graph, name: str) -> str | None:
    """Give the key that a target is drawn as, None when there is no such socket."""
    if name in graph.sockets:
        return name
    return END_SIGN if name == END else None


def links(graph: Graph) -> list[Link]:
    """List every line of ``graph`` in a stable order: start, then each socket's edges, then exits."""
    found = [Link("start", "start", START, graph.entry)] if graph.entry in graph.sockets else []
    for socket in graph.sockets.values():
        numbered = len(socket.edges) > 1
        for number, edge in enumerate(socket.edges, 1):
            target = _target(graph, edge.to)
            if target is not None:
                key = f"edge:{edge.place}:{socket.id}"
                order = number if numbered else 0
                found.append(
                    Link(key, "edge", socket.id, target, edge.when, order, edge.max_traversals, edge.place)
                )
        if not socket.edges:
            found.append(Link(f"implied:{socket.id}", "implied", socket.id, END_SIGN))
    for loop in graph.loops.values():
        for route in loop.routes:
            target = _target(graph, route.target)
            if target is not None and route.source in graph.sockets:
                found.append(Link(route.edge_id, "exit", route.source, target, route.condition, loop=loop.id))
    return _with_unique_keys(found)


def _with_unique_keys(found: list[Link]) -> list[Link]:
    """Tell apart exits whose loop and route ids happen to join to the same id."""
    seen: dict[str, int] = {}
    unique = []
    for link in found:
        seen[link.key] = number = seen.get(link.key, 0) + 1
        unique.append(link if number == 1 else replace(link, key=f"{link.key}\x00{number}"))
    return unique


def may_fall_through(socket: Socket) -> bool:
    """Whether its written edges leave a boolean without a match, which ends the cast (R3)."""
    conditions = {edge.when for edge in socket.edges}
    covered = "always" in conditions or (conditions.issuperset(GUARDS) and socket.parse == "json")
    return bool(conditions) and not covered
