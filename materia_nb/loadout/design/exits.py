"""Operations on the exits of a loop, which live in ``loops.<id>.exits`` and nowhere else (R15, R16)."""

from __future__ import annotations

from materia_nb.errors import did_you_mean
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.design.change import (
    Change,
    check_place,
    check_target,
    check_when,
    free_name,
    list_in,
    loop_in,
    moved,
    refused,
    with_loop,
    without,
)
from materia_nb.loadout.design.edges import add_edge, edge_in, remove_edge
from materia_nb.loadout.facts import Object, as_list, as_object, is_object, is_text
from materia_nb.loadout.report import shown


def add_exit(
    document: Object, loop: str, source: str, condition: str, target: str, id_: str | None = None
) -> Change:
    """Add a way out of a loop, taken once its list is exhausted.

    Args:
        document: the loadout.
        loop: the loop that owns it.
        source: the member that exhausts the list.
        condition: ``always``, ``satisfied`` or ``not_satisfied``; one route for each member and condition (R27).
        target: where it leads: a socket or ``end``.
        id_: its id; None takes ``exit:<source>:<condition>``.

    Raises:
        MateriaError: the loop, a socket or the condition is not known, or there is such a route already.
    """
    routes = _exits(document, loop)
    _check_route(document, loop, source, condition, target)
    _check_single(routes, loop, source, condition)
    used = [as_object(route).get("id") for route in routes]
    made = free_name(f"exit:{source}:{condition}", used) if id_ is None else id_
    _check_route_id(made, used, loop)
    route = {"id": made, "from": source, "condition": condition, "targetSocketId": target}
    changed = _with_exits(document, loop, [*routes, route])
    return Change(changed, f"added exit {made} of loop {loop} to {target}")


def change_exit(
    document: Object,
    loop: str,
    place: int,
    *,
    source: str | None = None,
    condition: str | None = None,
    target: str | None = None,
    id_: str | None = None,
) -> Change:
    """Change an exit route; what is None stays, its id too, which is a stable name.

    Raises:
        MateriaError: there is no such route, a new value is not allowed, or another route has the same.
    """
    routes = _exits(document, loop)
    route = exit_in(document, loop, place)
    others = [one for at, one in enumerate(routes) if at != place]
    _check_route(document, loop, source, condition, target)
    if id_ is not None:
        _check_route_id(id_, [as_object(one).get("id") for one in others], loop)
    given = {"id": id_, "from": source, "condition": condition, "targetSocketId": target}
    made = {**route, **{key: value for key, value in given.items() if value is not None}}
    if source is not None or condition is not None:
        _check_single(others, loop, made.get("from"), made.get("condition"))
    changed = _with_exits(document, loop, [*routes[:place], made, *routes[place + 1 :]])
    words = f"{made.get('from')} {made.get('condition')} to {made.get('targetSocketId')}"
    return Change(changed, f"exit {place + 1} of loop {loop} is {words}")


def move_exit(document: Object, loop: str, place: int, to: int) -> Change:
    """Put an exit route at another place; raises MateriaError when there is none there."""
    routes, here = _exits(document, loop), f"loops.{loop}.exits"
    check_place(routes, place, here)
    changed = _with_exits(document, loop, moved(routes, place, to, here))
    return Change(changed, f"moved exit {place + 1} of loop {loop} to place {to + 1}")


def remove_exit(document: Object, loop: str, place: int) -> Change:
    """Remove an exit route, well formed or not; raises MateriaError when there is no such route."""
    routes = _exits(document, loop)
    check_place(routes, place, f"loops.{loop}.exits")
    changed = _with_exits(document, loop, [*routes[:place], *routes[place + 1 :]])
    return Change(changed, f"removed exit {place + 1} of loop {loop}")


def as_exit(document: Object, socket: str, place: int, loop: str) -> Change:
    """Make an exit route of an edge: out of the loop once its list is done, and not before.

    Raises:
        MateriaError: there is such an exit already, or no such edge or loop.
    """
    edge = edge_in(document, socket, place)
    rest = remove_edge(document, socket, place).document
    made = add_exit(rest, loop, socket, str(edge.get("when")), str(edge.get("to")))
    return Change(made.document, f"edge {place + 1} of {socket} is an exit of loop {loop} now")


def as_edge(document: Object, loop: str, place: int) -> Change:
    """Make a plain edge of an exit route: it leaves the loop at any item; raises MateriaError when there is none."""
    route = exit_in(document, loop, place)
    rest = remove_exit(document, loop, place).document
    source, when, to = (str(route.get(name)) for name in ("from", "condition", "targetSocketId"))
    made = add_edge(rest, source, to, when)
    return Change(made.document, f"exit {place + 1} of loop {loop} is an edge of {source} now")


def exit_in(document: Object, loop: str, place: int) -> Object:
    """Return an exit route; raises MateriaError when there is none or it is no object."""
    routes = _exits(document, loop)
    check_place(routes, place, f"loops.{loop}.exits")
    route = routes[place]
    if not is_object(route):
        here = f"loops.{loop}.exits[{place}]"
        raise refused(f"the route is {shown(route)}, not an object", here, "remove it and add it anew")
    return route


def _exits(document: Object, loop: str) -> list[JSON]:
    return list_in(loop_in(document, loop), "exits", f"loops.{loop}.exits")


def _with_exits(document: Object, loop: str, routes: list[JSON]) -> Object:
    owner = loop_in(document, loop)
    return with_loop(document, loop, {**owner, "exits": routes} if routes else without(owner, "exits"))


def _check_route(
    document: Object, loop: str, source: str | None, condition: str | None, target: str | None
) -> None:
    """Check what of a route is given: a member, a condition, a target."""
    here = f"loops.{loop}.exits"
    if source is not None:
        members = [one for one in as_list(loop_in(document, loop).get("sockets")) if isinstance(one, str)]
        if source not in members:
            hint = did_you_mean(str(source), members)
            raise refused(f"{shown(source)} is no member of loop {loop!r}", f"{here}.from", hint)
    if condition is not None:
        check_when(condition, f"{here}.condition")
    if target is not None:
        check_target(document, target, f"{here}.targetSocketId")


def _check_single(routes: list[JSON], loop: str, source: JSON, condition: JSON) -> None:
    for place, route in enumerate(routes):
        if is_object(route) and (route.get("from"), route.get("condition")) == (source, condition):
            raise refused(
                f"another exit leaves from {source!r} when {condition}",
                f"loops.{loop}.exits[{place}]",
                "change that one, or choose another condition",
            )


def _check_route_id(id_: JSON, used: list[JSON], loop: str) -> None:
    if not is_text(id_) or id_ in used:
        what = f"another exit has the id {id_!r}" if id_ in used else f"the id is {shown(id_)}"
        raise refused(what, f"loops.{loop}.exits", "choose an id that is unique in the loop")
