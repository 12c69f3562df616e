"""Operations on edges, exits and loop regions (R3, R15, R16, R27)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Literal

from materia_nb.errors import MateriaError, counted, did_you_mean
from materia_nb.jsonvalue import JSON, MISSING, Object, as_list, as_object, is_object, is_text, whole_number
from materia_nb.loadout.design.document import (
    DesignChange,
    as_json,
    check_target,
    check_when,
    counted_words,
    design_error,
    list_in,
    loop_in,
    objects_in,
    operation,
    renamed,
    socket_in,
    with_field,
    with_loop,
    with_socket,
    without,
)
from materia_nb.loadout.report import brief
from materia_nb.loadout.topology import free_name, reachable_from
from materia_nb.loadout.vocabulary import SENDING_BACK, WORK_ITEMS, is_condition


@dataclass(frozen=True, slots=True)
class EdgeList:
    """The edges of a socket, or the exits of a loop, in their order; ``owner`` is the id of the socket or loop."""

    document: Object
    kind: Literal["edge", "exit"]
    owner: str

    @property
    def here(self) -> str:
        """Their path."""
        return f"{self.owner}.edges" if self.kind == "edge" else f"loops.{self.owner}.exits"

    @property
    def whose(self) -> str:
        """The owner in words."""
        return self.owner if self.kind == "edge" else f"loop {self.owner}"

    @property
    def entries(self) -> list[JSON]:
        """All of them, well formed or not; raises MateriaError when there is no such socket or loop."""
        return list_in(self._raw, f"{self.kind}s", self.here)

    @property
    def _raw(self) -> Object:
        return (socket_in if self.kind == "edge" else loop_in)(self.document, self.owner)

    def check_place(self, place: int) -> None:
        """Raise MateriaError when there is no such place; the first is 0."""
        last = len(self.entries) - 1
        if not 0 <= place <= last:
            hint = f"choose one from 0 to {last}" if last >= 0 else "there is nothing in it yet"
            raise design_error(f"there is no place {place!r}", self.here, hint)

    def at(self, place: int) -> Object:
        """Return one; raises MateriaError when there is none or it is not an object."""
        self.check_place(place)
        entry = self.entries[place]
        if not is_object(entry):
            what = f"the {self.kind} is {brief(entry)}, not an object"
            raise design_error(what, f"{self.here}[{place}]", "remove it and create it again")
        return entry

    def others(self, place: int) -> list[JSON]:
        """Return all but one; raises MateriaError when there is none at that place."""
        self.check_place(place)
        return [*self.entries[:place], *self.entries[place + 1 :]]

    def replaced(self, entries: list[JSON]) -> Object:
        """Return the document with others in their place."""
        put = with_socket if self.kind == "edge" else with_loop
        return put(self.document, self.owner, with_field(self._raw, f"{self.kind}s", entries))

    def changed(self, place: int, entry: Object) -> Object:
        """Return the document with another one at a place."""
        return self.replaced([*self.entries[:place], entry, *self.entries[place + 1 :]])


def _moved(edges: EdgeList, place: int, to: int) -> DesignChange:
    rest = edges.others(place)
    edges.check_place(to)
    document = edges.replaced([*rest[:to], edges.entries[place], *rest[to:]])
    return DesignChange(document, f"moved {edges.kind} {place + 1} of {edges.whose} to place {to + 1}")


def _removed(edges: EdgeList, place: int) -> DesignChange:
    words = f"removed {edges.kind} {place + 1} of {edges.whose}"
    document = edges.replaced(edges.others(place))
    to = as_object(edges.entries[place]).get("to")
    return DesignChange(document, f"{words} to {to}" if isinstance(to, str) else words)


# -- edges -----------------------------------------------------------------------------------


@operation
def add_edge(
    document: Object,
    source: str,
    to: str,
    when: str = "always",
    place: int | None = None,
    max_traversals: int | None = None,
) -> DesignChange:
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
    edges = EdgeList(document, "edge", source)
    entries = edges.entries
    check_when(when, edges.here)
    check_target(document, to, edges.here)
    edge: Object = {"when": when, "to": to}
    if max_traversals is not None:
        edge["maxTraversals"] = _limit(max_traversals, edges.here)
    if place is None:
        first_always = (at for at, edge in enumerate(entries) if as_object(edge).get("when") == "always")
        place = len(entries) if when == "always" else next(first_always, len(entries))
    if place != len(entries):
        edges.check_place(place)
    changed = edges.replaced([*entries[:place], edge, *entries[place:]])
    return DesignChange(changed, f"connected {source} to {to} ({when}) as edge {place + 1}")


@operation
def change_edge(
    document: Object, source: str, place: int, *, when: str | None = None, to: str | None = None
) -> DesignChange:
    """Change condition or target of an edge; what is None stays, and so do its other fields.

    Raises:
        MateriaError: there is no such edge or socket, or the condition is not canonical.
    """
    edges = EdgeList(document, "edge", source)
    edge, here = edges.at(place), f"{edges.here}[{place}]"
    if when is not None:
        check_when(when, f"{here}.when")
        edge = {**edge, "when": when}
    if to is not None:
        check_target(document, to, f"{here}.to")
        edge = {**edge, "to": to}
    ends = f"{brief(edge.get('when'))} to {brief(edge.get('to'))}".replace('"', "")
    return DesignChange(edges.changed(place, edge), f"edge {place + 1} of {source} is {ends}")


@operation
def limit_edge(document: Object, source: str, place: int, max_traversals: int | None) -> DesignChange:
    """Say how often an edge may be taken (R18); None takes the limit away.

    Raises:
        MateriaError: there is no such edge, or the number is not a whole one from 1 up.
    """
    edges = EdgeList(document, "edge", source)
    edge, here = edges.at(place), f"{edges.here}[{place}].maxTraversals"
    most = None if max_traversals is None else _limit(max_traversals, here)
    limit = "has no limit of its own" if most is None else f"may be taken {counted(most, 'time')}"
    changed = edges.changed(place, with_field(edge, "maxTraversals", most))
    return DesignChange(changed, f"edge {place + 1} of {source} {limit}")


@operation
def move_edge(document: Object, source: str, place: int, to: int) -> DesignChange:
    """Put an edge at another place among those of its socket; raises MateriaError when there is none there."""
    return _moved(EdgeList(document, "edge", source), place, to)


@operation
def remove_edge(document: Object, source: str, place: int) -> DesignChange:
    """Remove an edge, well formed or not; raises MateriaError when there is no such edge."""
    return _removed(EdgeList(document, "edge", source), place)


def _limit(most: JSON, where: str) -> int:
    number = whole_number(most)
    if number is None or number < 1:
        raise design_error(f"maxTraversals is {brief(most)}", where, "give a whole number from 1 up")
    return number


# -- exits -----------------------------------------------------------------------------------


@operation
def add_exit(
    document: Object, loop: str, source: str, condition: str, target: str, id_: str | None = None
) -> DesignChange:
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
    edges = EdgeList(document, "exit", loop)
    route = {"id": id_, "from": source, "condition": condition, "targetSocketId": target}
    if id_ is None:
        route["id"] = free_name(f"exit:{source}:{condition}", _ids(edges.entries))
    _check_route(edges, route, route, edges.entries)
    return DesignChange(
        edges.replaced([*edges.entries, route]), f"added exit {route['id']} of loop {loop} to {target}"
    )


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
) -> DesignChange:
    """Change an exit route; what is None stays, its id too, which is a stable name.

    Raises:
        MateriaError: there is no such route, a new value is not allowed, or another route has the same.
    """
    edges = EdgeList(document, "exit", loop)
    given = {"id": id_, "from": source, "condition": condition, "targetSocketId": target}
    given = {key: value for key, value in given.items() if value is not None}
    route = {**edges.at(place), **given}
    _check_route(edges, given, route, edges.others(place))
    words = f"{route.get('from')} {route.get('condition')} to {route.get('targetSocketId')}"
    return DesignChange(edges.changed(place, route), f"exit {place + 1} of loop {loop} is {words}")


@operation
def move_exit(document: Object, loop: str, place: int, to: int) -> DesignChange:
    """Put an exit route at another place; raises MateriaError when there is none there."""
    return _moved(EdgeList(document, "exit", loop), place, to)


@operation
def remove_exit(document: Object, loop: str, place: int) -> DesignChange:
    """Remove an exit route, well formed or not; raises MateriaError when there is no such route."""
    return _removed(EdgeList(document, "exit", loop), place)


def _ids(routes: Iterable[JSON]) -> list[JSON]:
    return [as_object(route).get("id") for route in routes]


def _check_route(edges: EdgeList, given: Object, route: Object, others: list[JSON]) -> None:
    """Check what is given of a route: a member, a condition, a target, an id; and that no other has the same."""
    here = edges.here
    source, condition, id_ = given.get("from"), given.get("condition"), given.get("id")
    members = [
        one for one in as_list(loop_in(edges.document, edges.owner).get("sockets")) if isinstance(one, str)
    ]
    if "from" in given and source not in members:
        hint = did_you_mean(str(source), members)
        raise design_error(f"{brief(source)} is not a member of loop {edges.owner!r}", f"{here}.from", hint)
    if "condition" in given:
        check_when(condition, f"{here}.condition")
    if "targetSocketId" in given:
        check_target(edges.document, given["targetSocketId"], f"{here}.targetSocketId")
    if "id" in given and (not is_text(id_) or id_ in _ids(others)):
        what = f"the id is {brief(id_)}" if id_ not in _ids(others) else f"another exit has the id {id_!r}"
        raise design_error(what, here, "choose an id that is unique in the loop")
    start = (route.get("from"), route.get("condition"))
    if given.keys() & {"from", "condition"} and start in [
        (as_object(one).get("from"), as_object(one).get("condition")) for one in others
    ]:
        what = f"another exit leaves from {start[0]!r} when {start[1]}"
        raise design_error(what, here, "change that one, or choose another condition")


@operation
def edge_to_exit(document: Object, socket: str, place: int, loop: str) -> DesignChange:
    """Make an exit route of an edge: out of the loop once its list is done, and not before.

    Raises:
        MateriaError: there is such an exit already, or no such edge or loop.
    """
    edge = EdgeList(document, "edge", socket).at(place)
    rest = remove_edge(document, socket, place).document
    made = add_exit(rest, loop, socket, str(edge.get("when")), str(edge.get("to")))
    return DesignChange(made.document, f"edge {place + 1} of {socket} is an exit of loop {loop} now")


@operation
def exit_to_edge(document: Object, loop: str, place: int) -> DesignChange:
    """Make a plain edge of an exit route: it leaves the loop at any item; raises MateriaError when there is none."""
    route = EdgeList(document, "exit", loop).at(place)
    rest = remove_exit(document, loop, place).document
    source, when, to = (str(route.get(name)) for name in ("from", "condition", "targetSocketId"))
    made = add_edge(rest, source, to, when)
    return DesignChange(made.document, f"exit {place + 1} of loop {loop} is an edge of {source} now")


def with_exits(change: DesignChange, loop: str) -> tuple[DesignChange, list[str]]:
    """Make exits of the edges that lead on out of a loop, where they would skip items; those that send back to before it stay.

    Returns:
        The change, and which edges these were, in words.
    """
    document, turned = change.document, list[str]()
    members = as_list(loop_in(document, loop).get("sockets"))
    sockets = objects_in(document, "sockets")
    targets = {
        id_: [str(as_object(edge).get("to")) for edge in as_list(socket.get("edges"))]
        for id_, socket in sockets.items()
    }
    for member in members:
        edges = as_list(as_object(objects_in(document, "sockets").get(member)).get("edges"))
        for place, edge in reversed([*enumerate(edges)]):
            when, to = (as_object(edge).get(name) for name in ("when", "to"))
            if to in members or not is_condition(when):
                continue
            if when in SENDING_BACK and not reachable_from([str(to)], targets).isdisjoint(members):
                continue
            with suppress(MateriaError):  # it leads nowhere, or another one leaves with the same verdict
                document = edge_to_exit(document, member, place, loop).document
                turned.append(f"{member} → {to}")
    return replace(change, document=document), turned


_ListSource = Literal["consumes", "iterator"]
SOURCES: Final[tuple[_ListSource, ...]] = ("consumes", "iterator")


@operation
def make_loop(
    document: Object,
    sockets: Iterable[str],
    id_: str | None = None,
    *,
    consumes: str | Mapping[str, JSON] | None = None,
    iterator: Mapping[str, JSON] | None = None,
) -> DesignChange:
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
    return DesignChange(with_loop(document, made, loop), f"made loop {made} of {', '.join(members)}")


@operation
def rename_loop(document: Object, old: str, new: str) -> DesignChange:
    """Give a loop another name; raises MateriaError when there is no such loop or the name is taken."""
    loop_in(document, old)
    if old == new:
        return DesignChange(document, f"{old} keeps its name")
    _check_new_name(document, new)
    changed = {**document, "loops": renamed(objects_in(document, "loops"), old, new)}
    return DesignChange(changed, f"renamed loop {old} to {new}")


@operation
def set_members(document: Object, id_: str, sockets: Iterable[str]) -> DesignChange:
    """Choose the members of a loop; the exits of a socket that is not a member any more go with it.

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
    sentence = f"{words}; {counted(gone, 'exit')} of dropped members went" if gone else words
    return DesignChange(with_loop(document, id_, changed), sentence)


@operation
def set_source(
    document: Object,
    id_: str,
    source: _ListSource | None,
    *,
    from_: JSON = MISSING,
    items: JSON = MISSING,
    output: JSON = MISSING,
    as_: JSON = MISSING,
    cursor: JSON = MISSING,
) -> DesignChange:
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
        return DesignChange(with_loop(document, id_, left), f"loop {id_} goes over nothing")
    if source not in SOURCES:
        raise design_error(f"a loop has no {source!r}", f"loops.{id_}", did_you_mean(str(source), SOURCES))
    here = f"loops.{id_}.{source}"
    allowed = {"consumes": ("from", "output", "as", "cursor"), "iterator": ("items", "as", "cursor")}[source]
    given = {"from": from_, "items": items, "output": output, "as": as_, "cursor": cursor}
    spec = as_object(loop.get(source))
    for key, value in given.items():
        if value is MISSING:
            continue
        if key not in allowed:
            raise design_error(f"{source} has no {key}", here, f"it has {', '.join(allowed)}")
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
    return DesignChange(changed, f"loop {id_} goes over {over}")


@operation
def set_loop(document: Object, id_: str, field: str, value: JSON) -> DesignChange:
    """Set ``label`` of a loop or take it away with None; ``exit``, the older form of exits, can only be taken away.

    Raises:
        MateriaError: there is no such loop or field, or the value is not JSON.
    """
    loop = loop_in(document, id_)
    fields = ("label", "exit")
    if field not in fields or (field == "exit" and value is not None):
        hint = "use make_loop, set_members, set_source, add_exit" if field != "label" else ""
        raise design_error(f"{field!r} of a loop is not set here", f"loops.{id_}.{field}", hint)
    if value is None:
        return DesignChange(
            with_loop(document, id_, without(loop, field)), f"removed {field} from loop {id_}"
        )
    made = as_json(value, f"loops.{id_}.{field}")
    return DesignChange(with_loop(document, id_, {**loop, field: made}), f"set {field} of loop {id_}")


@operation
def delete_loop(document: Object, id_: str) -> DesignChange:
    """Delete a loop and its exits; its sockets and their edges stay. Raises MateriaError when there is no such loop."""
    loop = loop_in(document, id_)
    exits = len(as_list(loop.get("exits"))) + is_object(loop.get("exit"))
    changed = with_field(document, "loops", without(objects_in(document, "loops"), id_))
    return DesignChange(changed, f"deleted loop {id_}{counted_words((exits, 'exit'))}")


def _members(document: Object, sockets: Iterable[str], loop: str) -> list[JSON]:
    members: list[JSON] = list(dict.fromkeys(sockets))
    if not members:
        raise design_error("a loop needs a member", f"loops.{loop}.sockets", "name at least one socket")
    for member in members:
        check_target(document, member, f"loops.{loop}.sockets", end=False)
    return members


def _check_new_name(document: Object, name: JSON) -> None:
    if not is_text(name):
        raise design_error(f"{brief(name)} cannot be the name of a loop", "loops", "use some text")
    if name in objects_in(document, "loops"):
        raise design_error(f"there is a loop {name!r} already", "loops", "choose another name")
