"""Operations on the edges of a socket. Their order is the order in which they are looked at (R3)."""

from __future__ import annotations

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.design.change import (
    Change,
    check_place,
    check_target,
    check_when,
    list_in,
    moved,
    refused,
    socket_in,
    with_field,
    with_socket,
    without,
)
from materia_nb.loadout.facts import Object, as_object, is_object, whole
from materia_nb.loadout.report import shown


def add_edge(
    document: Object,
    source: str,
    to: str,
    when: str = "always",
    place: int | None = None,
    max_traversals: int | None = None,
) -> Change:
    """Connect two sockets, or a socket with the end.

    Args:
        document: the loadout.
        source: where the edge starts.
        to: where it leads: a socket or ``end``.
        when: its condition (R3).
        place: where it stands among the socket's edges, 0 first; None puts it last, but one with a guard before
            the first ``always`` edge, since behind it nothing is looked at.
        max_traversals: how often it may be taken for each item (R18).

    Raises:
        MateriaError: a socket, the condition, the place or the number is not known or not allowed.
    """
    edges = _edges(document, source)
    check_when(when, f"{source}.edges")
    check_target(document, to, f"{source}.edges")
    edge: Object = {"when": when, "to": to}
    if max_traversals is not None:
        edge["maxTraversals"] = _limit(max_traversals, f"{source}.edges")
    if place is None:
        place = len(edges)
        if when != "always":
            place = next(
                (at for at, one in enumerate(edges) if as_object(one).get("when") == "always"), place
            )
    check_place([*edges, edge], place, f"{source}.edges")
    changed = _with_edges(document, source, [*edges[:place], edge, *edges[place:]])
    return Change(changed, f"connected {source} to {to} ({when}) as edge {place + 1}")


def change_edge(
    document: Object, source: str, place: int, *, when: str | None = None, to: str | None = None
) -> Change:
    """Change condition or target of an edge; what is None stays, and so do its other fields.

    Raises:
        MateriaError: there is no such edge or socket, or the condition is not canonical.
    """
    edge = edge_in(document, source, place)
    here = f"{source}.edges[{place}]"
    if when is not None:
        check_when(when, f"{here}.when")
        edge = {**edge, "when": when}
    if to is not None:
        check_target(document, to, f"{here}.to")
        edge = {**edge, "to": to}
    said = f"{shown(edge.get('when'))} to {shown(edge.get('to'))}".replace('"', "")
    return Change(_with_edge(document, source, place, edge), f"edge {place + 1} of {source} is {said}")


def limit_edge(document: Object, source: str, place: int, max_traversals: int | None) -> Change:
    """Say how often an edge may be taken (R18); None takes the limit away.

    Raises:
        MateriaError: there is no such edge, or the number is not a whole one from 1 up.
    """
    edge, here = edge_in(document, source, place), f"{source}.edges[{place}].maxTraversals"
    most = None if max_traversals is None else _limit(max_traversals, here)
    changed = _with_edge(document, source, place, with_field(edge, "maxTraversals", most))
    limit = "has no limit of its own" if most is None else f"may be taken {most} times"
    return Change(changed, f"edge {place + 1} of {source} {limit}")


def move_edge(document: Object, source: str, place: int, to: int) -> Change:
    """Put an edge at another place among those of its socket; raises MateriaError when there is none there."""
    edges, here = _edges(document, source), f"{source}.edges"
    check_place(edges, place, here)
    changed = _with_edges(document, source, moved(edges, place, to, here))
    return Change(changed, f"moved edge {place + 1} of {source} to place {to + 1}")


def remove_edge(document: Object, source: str, place: int) -> Change:
    """Remove an edge, well formed or not; raises MateriaError when there is no such edge."""
    edges = _edges(document, source)
    check_place(edges, place, f"{source}.edges")
    to = as_object(edges[place]).get("to")
    where = f" to {to}" if isinstance(to, str) else ""
    changed = _with_edges(document, source, [*edges[:place], *edges[place + 1 :]])
    return Change(changed, f"removed edge {place + 1} of {source}{where}")


def edge_in(document: Object, source: str, place: int) -> Object:
    """Return an edge; raises MateriaError when there is none or it is no object."""
    edges, here = _edges(document, source), f"{source}.edges[{place}]"
    check_place(edges, place, f"{source}.edges")
    edge = edges[place]
    if not is_object(edge):
        raise refused(f"the edge is {shown(edge)}, not an object", here, "remove it and connect anew")
    return edge


def _edges(document: Object, source: str) -> list[JSON]:
    return list_in(socket_in(document, source), "edges", f"{source}.edges")


def _with_edge(document: Object, source: str, place: int, edge: Object) -> Object:
    edges = _edges(document, source)
    return _with_edges(document, source, [*edges[:place], edge, *edges[place + 1 :]])


def _with_edges(document: Object, source: str, edges: list[JSON]) -> Object:
    socket = socket_in(document, source)
    return with_socket(document, source, {**socket, "edges": edges} if edges else without(socket, "edges"))


def _limit(most: JSON, where: str) -> int:
    number = whole(most)
    if number is None or number < 1:
        raise refused(f"maxTraversals is {shown(most)}", where, "give a whole number from 1 up")
    return number
