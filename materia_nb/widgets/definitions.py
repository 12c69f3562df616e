"""Parts of a graph as they take effect, in the words of a loadout."""

from __future__ import annotations

from typing import Any

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Advance, Edge, ExitRoute, Iterator, Loop, Socket


def edge_definition(edge: Edge) -> dict[str, JSON]:
    """An edge as a loadout writes it."""
    limit = {} if edge.max_traversals is None else {"maxTraversals": edge.max_traversals}
    return {"when": edge.when, "to": edge.to, **limit}


def route_definition(route: ExitRoute) -> dict[str, JSON]:
    """An exit route as a loadout writes it."""
    written = {
        "id": route.id,
        "from": route.source,
        "condition": route.condition,
        "targetSocketId": route.target,
    }
    return {**written, **({"derived": True} if route.derived else {})}


def socket_definition(socket: Socket) -> dict[str, JSON]:
    """A socket and its materia, with parse, assignments and advance as they take effect."""
    made: dict[str, Any] = {"materia": socket.materia.id, "parse": socket.parse}
    if socket.assign:
        made["assign"] = dict(socket.assign)
    made["edges"] = [edge_definition(edge) for edge in socket.edges]
    if socket.advance is not None:
        made["advance"] = _advance(socket.advance)
    if socket.iterator is not None and socket.iterator.loop is None:
        made["foreach"] = _iterator(socket.iterator)
    return {"socket": made, "materia": dict(socket.materia.raw)}


def loop_definition(loop: Loop) -> dict[str, JSON]:
    """A loop as it takes effect."""
    made: dict[str, Any] = {"sockets": list(loop.sockets)}
    if loop.generator is not None:
        made["consumes"] = {"from": loop.generator, "output": loop.output}
    if loop.iterator is not None:
        made["iterator"] = _iterator(loop.iterator)
    return {**made, "exits": [route_definition(route) for route in loop.routes]}


def _advance(advance: Advance) -> dict[str, JSON]:
    made: dict[str, JSON] = {"cursor": advance.cursor, "items": advance.items, "when": advance.when}
    return {**made, **({"derived": True} if advance.derived else {})}


def _iterator(iterator: Iterator) -> dict[str, JSON]:
    return {"items": iterator.items, "as": iterator.alias, "cursor": iterator.cursor}
