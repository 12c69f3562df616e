"""Operations on loop regions: members, what they go over, and the ways out (R15, R16, R27)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final, Literal

from materia_nb.errors import MateriaError, counted, did_you_mean
from materia_nb.jsonvalue import JSON, MISSING
from materia_nb.loadout.design.document import (
    Change,
    as_json,
    check_target,
    check_when,
    counted_words,
    entry_at,
    list_in,
    loop_in,
    moved,
    objects_in,
    operation,
    refused,
    renamed,
    with_field,
    with_loop,
    without,
    without_place,
)
from materia_nb.loadout.design.sockets import add_edge, edge_in, remove_edge
from materia_nb.loadout.facts import (
    WORK_ITEMS,
    Object,
    as_list,
    as_object,
    free_name,
    is_condition,
    is_object,
    is_text,
)
from materia_nb.loadout.report import shown
from materia_nb.loadout.vocabulary import SENDING_BACK

Source = Literal["consumes", "iterator"]
SOURCES: Final[tuple[Source, ...]] = ("consumes", "iterator")


@operation
def make_loop(
    document: Object,
    sockets: Iterable[str],
    id_: str | None = None,
    *,
    consumes: str | Mapping[str, JSON] | None = None,
    iterator: Mapping[str, JSON] | None = None,
) -> Change:
    """Make a loop region of sockets.

    Args:
        document: the loadout.
        sockets: its members, in order; the first is where a round begins.
        id_: its name; None takes ``items``, ``items-2``, ...
        consumes: the generator socket whose work items it goes over, or ``{"from", "as", "output", ...}``.
        iterator: another list that it goes over: ``{"items": "state.rows", "as": "row"}``.

    Raises:
        MateriaError: there are no members, one does not exist, or the name is taken.
    """
    made = free_name("items", objects_in(document, "loops")) if id_ is None else id_
    _check_new_name(document, made)
    members = _members(document, sockets, made)
    loop: Object = {"sockets": members}
    if consumes is not None:
        given = {"from": consumes, "output": WORK_ITEMS} if isinstance(consumes, str) else dict(consumes)
        loop["consumes"] = as_json(given, f"loops.{made}.consumes")
    if iterator is not None:
        loop["iterator"] = as_json(dict(iterator), f"loops.{made}.iterator")
    return Change(with_loop(document, made, loop), f"made loop {made} of {', '.join(members)}")


@operation
def rename_loop(document: Object, old: str, new: str) -> Change:
    """Give a loop another name; raises MateriaError when there is no such loop or the name is taken."""
    loop_in(document, old)
    if old == new:
        return Change(document, f"{old} keeps its name")
    _check_new_name(document, new)
    changed = {**document, "loops": renamed(objects_in(document, "loops"), old, new)}
    return Change(changed, f"renamed loop {old} to {new}")


@operation
def set_members(document: Object, id_: str, sockets: Iterable[str]) -> Change:
    """Choose the members of a loop; the exits of a socket that is no member any more go with it.

    Raises:
        MateriaError: there is no such loop or socket, or no member is named.
    """
    loop = loop_in(document, id_)
    members = _members(document, sockets, id_)
    dropped = [one for one in as_list(loop.get("sockets")) if one not in members]
    changed: Object = {**loop, "sockets": members}
    exits = as_list(loop.get("exits"))
    kept = [route for route in exits if as_object(route).get("from") not in dropped]
    gone = len(exits) - len(kept)
    if gone:
        changed = with_field(changed, "exits", kept)
    if is_object(loop.get("exit")) and loop["exit"].get("from") in dropped:
        changed, gone = without(changed, "exit"), gone + 1
    words = f"loop {id_} is made of {', '.join(members)}"
    told = f"{words}; {counted(gone, 'exit')} of dropped members went" if gone else words
    return Change(with_loop(document, id_, changed), told)


@operation
def set_source(
    document: Object,
    id_: str,
    source: Source | None,
    *,
    from_: JSON = MISSING,
    items: JSON = MISSING,
    output: JSON = MISSING,
    as_: JSON = MISSING,
    cursor: JSON = MISSING,
) -> Change:
    """Say what a loop goes over; the other kind of source goes, and fields that are not given stay.

    Args:
        document: the loadout.
        id_: the loop.
        source: ``consumes`` for the work items of a generator, ``iterator`` for another list, None for nothing.
        from_: the generator's socket (``consumes``).
        items: where the list is, such as ``state.rows`` (``iterator``).
        output: what is consumed, ``workItems`` (``consumes``).
        as_: the name of the current item.
        cursor: the name of the cursor. Of all these None takes a field away.

    Raises:
        MateriaError: there is no such loop, kind or field, or the generator's socket does not exist.
    """
    loop = loop_in(document, id_)
    if source is None:
        left = {key: value for key, value in loop.items() if key not in SOURCES}
        return Change(with_loop(document, id_, left), f"loop {id_} goes over nothing")
    if source not in SOURCES:
        raise refused(f"a loop has no {source!r}", f"loops.{id_}", did_you_mean(str(source), SOURCES))
    here = f"loops.{id_}.{source}"
    allowed = {"consumes": ("from", "output", "as", "cursor"), "iterator": ("items", "as", "cursor")}[source]
    given = {"from": from_, "items": items, "output": output, "as": as_, "cursor": cursor}
    spec = as_object(loop.get(source))
    for key, value in given.items():
        if value is MISSING:
            continue
        if key not in allowed:
            raise refused(f"{source} has no {key}", here, f"it has {', '.join(allowed)}")
        if key == "from" and value is not None:
            check_target(document, value, f"{here}.from", end=False)
        spec = without(spec, key) if value is None else {**spec, key: as_json(value, f"{here}.{key}")}
    if source == "consumes" and source not in loop and output is MISSING:
        spec = {**spec, "output": WORK_ITEMS}
    other = SOURCES[1 - SOURCES.index(source)]
    made = without(loop, other) if source in loop else renamed(loop, other, source)
    changed = with_loop(document, id_, {**made, source: spec})
    if source == "consumes":
        over = f"the work items of {spec['from']}" if "from" in spec else "work items, of no generator yet"
    else:
        over = str(spec.get("items", "a list that is not named yet"))
    return Change(changed, f"loop {id_} goes over {over}")


@operation
def set_loop(document: Object, id_: str, field: str, value: JSON) -> Change:
    """Set ``label`` of a loop or take it away with None; ``exit``, the older form of exits, can only be taken away.

    Raises:
        MateriaError: there is no such loop or field, or the value is not JSON.
    """
    loop = loop_in(document, id_)
    fields = ("label", "exit")
    if field not in fields or (field == "exit" and value is not None):
        hint = "use make_loop, set_members, set_source, add_exit" if field != "label" else ""
        raise refused(f"{field!r} of a loop is not set here", f"loops.{id_}.{field}", hint)
    if value is None:
        return Change(with_loop(document, id_, without(loop, field)), f"removed {field} from loop {id_}")
    made = as_json(value, f"loops.{id_}.{field}")
    return Change(with_loop(document, id_, {**loop, field: made}), f"set {field} of loop {id_}")


@operation
def delete_loop(document: Object, id_: str) -> Change:
    """Delete a loop and its exits; its sockets and their edges stay. Raises MateriaError when there is no such loop."""
    loop = loop_in(document, id_)
    exits = len(as_list(loop.get("exits"))) + is_object(loop.get("exit"))
    changed = with_field(document, "loops", without(objects_in(document, "loops"), id_))
    return Change(changed, f"deleted loop {id_}{counted_words((exits, 'exit'))}")


def _members(document: Object, sockets: Iterable[str], loop: str) -> list[JSON]:
    members: list[JSON] = list(dict.fromkeys(sockets))
    if not members:
        raise refused("a loop needs a member", f"loops.{loop}.sockets", "name at least one socket")
    for member in members:
        check_target(document, member, f"loops.{loop}.sockets", end=False)
    return members


def _check_new_name(document: Object, name: JSON) -> None:
    if not is_text(name):
        raise refused(f"{shown(name)} cannot be the name of a loop", "loops", "use some text")
    if name in objects_in(document, "loops"):
        raise refused(f"there is a loop {name!r} already", "loops", "choose another name")


# -- exits -----------------------------------------------------------------------------------


@operation
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


@operation
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


@operation
def move_exit(document: Object, loop: str, place: int, to: int) -> Change:
    """Put an exit route at another place; raises MateriaError when there is none there."""
    routes = moved(_exits(document, loop), place, to, f"loops.{loop}.exits")
    changed = _with_exits(document, loop, routes)
    return Change(changed, f"moved exit {place + 1} of loop {loop} to place {to + 1}")


@operation
def remove_exit(document: Object, loop: str, place: int) -> Change:
    """Remove an exit route, well formed or not; raises MateriaError when there is no such route."""
    routes = without_place(_exits(document, loop), place, f"loops.{loop}.exits")
    changed = _with_exits(document, loop, routes)
    return Change(changed, f"removed exit {place + 1} of loop {loop}")


@operation
def edge_to_exit(document: Object, socket: str, place: int, loop: str) -> Change:
    """Make an exit route of an edge: out of the loop once its list is done, and not before.

    Raises:
        MateriaError: there is such an exit already, or no such edge or loop.
    """
    edge = edge_in(document, socket, place)
    rest = remove_edge(document, socket, place).document
    made = add_exit(rest, loop, socket, str(edge.get("when")), str(edge.get("to")))
    return Change(made.document, f"edge {place + 1} of {socket} is an exit of loop {loop} now")


def with_exits(change: Change, loop: str) -> tuple[Change, list[str]]:
    """Make exits of the edges that lead on out of a loop, where they would skip items; those that send back stay.

    Returns:
        The change, and which edges these were, in words.
    """
    document, turned = change.document, list[str]()
    members = as_list(loop_in(document, loop).get("sockets"))
    for member in members:
        edges = as_list(as_object(objects_in(document, "sockets").get(member)).get("edges"))
        for place, edge in reversed([*enumerate(edges)]):
            when, to = (as_object(edge).get(name) for name in ("when", "to"))
            if to in members or not is_condition(when) or when in SENDING_BACK:
                continue
            with suppress(MateriaError):  # it leads nowhere, or another one leaves with the same verdict
                document = edge_to_exit(document, member, place, loop).document
                turned.append(f"{member} → {to}")
    return replace(change, document=document), turned


@operation
def exit_to_edge(document: Object, loop: str, place: int) -> Change:
    """Make a plain edge of an exit route: it leaves the loop at any item; raises MateriaError when there is none."""
    route = exit_in(document, loop, place)
    rest = remove_exit(document, loop, place).document
    source, when, to = (str(route.get(name)) for name in ("from", "condition", "targetSocketId"))
    made = add_edge(rest, source, to, when)
    return Change(made.document, f"exit {place + 1} of loop {loop} is an edge of {source} now")


def exit_in(document: Object, loop: str, place: int) -> Object:
    """Return an exit route; raises MateriaError when there is none or it is no object."""
    routes = _exits(document, loop)
    return entry_at(routes, place, "route", f"loops.{loop}.exits", "remove it and add it anew")


def _exits(document: Object, loop: str) -> list[JSON]:
    return list_in(loop_in(document, loop), "exits", f"loops.{loop}.exits")


def _with_exits(document: Object, loop: str, routes: list[JSON]) -> Object:
    return with_loop(document, loop, with_field(loop_in(document, loop), "exits", routes))


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
