"""Design operations on edges, loop exits and loops (R3, R15, R16, R27)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Literal

from materia_nb.errors import MateriaError, counted, did_you_mean
from materia_nb.jsonvalue import (
    JSON,
    MISSING,
    Object,
    as_list,
    as_object,
    is_object,
    is_text,
    whole_number,
    without_field,
)
from materia_nb.loadout.design.document import (
    DesignChange,
    as_json,
    check_condition,
    check_target,
    counts_in_words,
    design_error,
    list_in,
    loop_in,
    objects_in,
    operation,
    socket_in,
    with_field,
    with_loop,
    with_renamed_key,
    with_socket,
    with_value,
)
from materia_nb.loadout.report import brief
from materia_nb.loadout.topology import free_name, reachable_from
from materia_nb.loadout.vocabulary import REWORK_CONDITIONS, WORK_ITEMS, is_condition


@dataclass(frozen=True, slots=True)
class EdgeList:
    """The edges of a socket, or the exits of a loop.

    Attributes:
        document: the loadout.
        kind: ``edge`` for edges, and ``exit`` for exits.
        owner: the id of the socket or loop.
    """

    document: Object
    kind: Literal["edge", "exit"]
    owner: str

    @property
    def path(self) -> str:
        """The path of the list in the loadout, such as ``Socket-1.edges``."""
        return f"{self.owner}.edges" if self.kind == "edge" else f"loops.{self.owner}.exits"

    @property
    def owner_name(self) -> str:
        """The name of the socket or loop in messages, such as ``loop items``."""
        return self.owner if self.kind == "edge" else f"loop {self.owner}"

    @property
    def entries(self) -> list[JSON]:
        """All entries, including malformed entries; raises MateriaError if the socket or loop does not exist."""
        return list_in(self._owner_object, f"{self.kind}s", self.path)

    @property
    def _owner_object(self) -> Object:
        return (socket_in if self.kind == "edge" else loop_in)(self.document, self.owner)

    def check_index(self, index: int) -> None:
        """Raise MateriaError if the list has no entry at ``index``."""
        last = len(self.entries) - 1
        if not 0 <= index <= last:
            hint = f"use a position from 0 to {last}" if last >= 0 else f"add an {self.kind} first"
            raise design_error(f"{self.owner_name} has no {self.kind} at position {index!r}", self.path, hint)

    def entry_at(self, index: int) -> Object:
        """Return the entry at ``index``; raise MateriaError if it does not exist or is not an object."""
        self.check_index(index)
        entry = self.entries[index]
        if not is_object(entry):
            message = f"the {self.kind} is {brief(entry)}, not an object"
            raise design_error(message, f"{self.path}[{index}]", f"remove the {self.kind} and add it again")
        return entry

    def entries_except(self, index: int) -> list[JSON]:
        """Return all entries except the entry at ``index``; raise MateriaError if that entry does not exist."""
        self.check_index(index)
        return [*self.entries[:index], *self.entries[index + 1 :]]

    def with_list(self, entries: list[JSON]) -> Object:
        """Return a copy of the document with this list replaced by ``entries``."""
        with_owner = with_socket if self.kind == "edge" else with_loop
        return with_owner(self.document, self.owner, with_field(self._owner_object, f"{self.kind}s", entries))

    def with_entry(self, index: int, entry: Object) -> Object:
        """Return a copy of the document with the entry at ``index`` replaced by ``entry``."""
        return self.with_list([*self.entries[:index], entry, *self.entries[index + 1 :]])


def _move_entry(edges: EdgeList, index: int, new_index: int) -> DesignChange:
    rest = edges.entries_except(index)
    edges.check_index(new_index)
    document = edges.with_list([*rest[:new_index], edges.entries[index], *rest[new_index:]])
    return DesignChange(document, f"moved {edges.kind} {index + 1} of {edges.owner_name} to position {new_index + 1}")


def _remove_entry(edges: EdgeList, index: int) -> DesignChange:
    summary = f"removed {edges.kind} {index + 1} of {edges.owner_name}"
    document = edges.with_list(edges.entries_except(index))
    target = as_object(edges.entries[index]).get("to")
    return DesignChange(document, f"{summary} to {target}" if isinstance(target, str) else summary)


# -- edges -----------------------------------------------------------------------------------


@operation
def add_edge(
    document: Object,
    source: str,
    to: str,
    when: str = "always",
    index: int | None = None,
    max_traversals: int | None = None,
) -> DesignChange:
    """Add an edge from a socket to another socket or to the end.

    Args:
        document: the loadout.
        source: the id of the socket from which the edge leads.
        to: the id of the next socket, or ``end``.
        when: the condition of the edge (R3).
        index: the position in the socket's list of edges, counting from 0. None appends an ``always`` edge, and inserts
            any other edge before the first ``always`` edge, because edges after an ``always`` edge are never taken.
        max_traversals: the maximum number of traversals for each item (R18); None sets no maximum.

    Raises:
        MateriaError: a socket or the condition does not exist, or a number is invalid.
    """
    edges = EdgeList(document, "edge", source)
    entries = edges.entries
    check_condition(when, edges.path)
    check_target(document, to, edges.path)
    edge: Object = {"when": when, "to": to}
    if max_traversals is not None:
        edge["maxTraversals"] = _check_limit(max_traversals, edges.path)
    if index is None:
        first_always = (at for at, edge in enumerate(entries) if as_object(edge).get("when") == "always")
        index = len(entries) if when == "always" else next(first_always, len(entries))
    if index != len(entries):
        edges.check_index(index)
    changed_document = edges.with_list([*entries[:index], edge, *entries[index:]])
    return DesignChange(changed_document, f"connected {source} to {to} ({when}) as edge {index + 1}")


@operation
def change_edge(
    document: Object, source: str, index: int, *, when: str | None = None, to: str | None = None
) -> DesignChange:
    """Change the condition or the target of an edge.

    Args:
        document: the loadout.
        source: the id of the socket from which the edge leads.
        index: the index of the edge, counting from 0.
        when: the new condition; None keeps the condition.
        to: the new target; None keeps the target.

    Raises:
        MateriaError: the edge, the condition or the target does not exist.
    """
    edges = EdgeList(document, "edge", source)
    edge, path = edges.entry_at(index), f"{edges.path}[{index}]"
    if when is not None:
        check_condition(when, f"{path}.when")
        edge = {**edge, "when": when}
    if to is not None:
        check_target(document, to, f"{path}.to")
        edge = {**edge, "to": to}
    target = f"{brief(edge.get('to'))} ({brief(edge.get('when'))})".replace('"', "")
    return DesignChange(edges.with_entry(index, edge), f"edge {index + 1} of {source} now leads to {target}")


@operation
def limit_edge(document: Object, source: str, index: int, max_traversals: int | None) -> DesignChange:
    """Set the maximum number of traversals of an edge, or remove it with None (R18).

    Raises:
        MateriaError: the edge does not exist, or the maximum is not a whole number of at least 1.
    """
    edges = EdgeList(document, "edge", source)
    edge, path = edges.entry_at(index), f"{edges.path}[{index}].maxTraversals"
    maximum = None if max_traversals is None else _check_limit(max_traversals, path)
    limit = "has no separate limit" if maximum is None else f"can be taken at most {counted(maximum, 'time')}"
    changed_document = edges.with_entry(index, with_field(edge, "maxTraversals", maximum))
    return DesignChange(changed_document, f"edge {index + 1} of {source} {limit}")


@operation
def move_edge(document: Object, source: str, index: int, to: int) -> DesignChange:
    """Move an edge to position ``to`` in the socket's list of edges; raise MateriaError if a position is invalid."""
    return _move_entry(EdgeList(document, "edge", source), index, to)


@operation
def remove_edge(document: Object, source: str, index: int) -> DesignChange:
    """Remove an edge, which may be malformed; raise MateriaError if the edge does not exist."""
    return _remove_entry(EdgeList(document, "edge", source), index)


def _check_limit(value: JSON, where: str) -> int:
    number = whole_number(value)
    if number is None or number < 1:
        raise design_error(f"`maxTraversals` cannot be {brief(value)}", where, "use a whole number of at least 1")
    return number


# -- exits -----------------------------------------------------------------------------------


@operation
def add_exit(
    document: Object, loop: str, source: str, condition: str, target: str, id_: str | None = None
) -> DesignChange:
    """Add an exit to a loop. The exit is taken after the last item of the list.

    Args:
        document: the loadout.
        loop: the id of the loop.
        source: the id of the member that completes the last item.
        condition: ``always``, ``satisfied`` or ``not_satisfied``. A member can have one exit per condition (R27).
        target: the id of the next socket, or ``end``.
        id_: the id of the exit; None generates ``exit:<source>:<condition>``.

    Raises:
        MateriaError: the loop, a socket or the condition does not exist, or another exit has the same id, or the same
            source and condition.
    """
    edges = EdgeList(document, "exit", loop)
    id_ = free_name(f"exit:{source}:{condition}", _ids(edges.entries)) if id_ is None else id_
    route = {"id": id_, "from": source, "condition": condition, "targetSocketId": target}
    _check_route(edges, route, route, edges.entries)
    summary = f"added an exit of loop {loop} from {source} to {target} ({condition})"
    return DesignChange(edges.with_list([*edges.entries, route]), summary)


@operation
def change_exit(
    document: Object,
    loop: str,
    index: int,
    *,
    source: str | None = None,
    condition: str | None = None,
    target: str | None = None,
    id_: str | None = None,
) -> DesignChange:
    """Change the source, condition, target or id of a loop exit. Arguments that are None keep their values.

    If only the condition changes, and another exit of the same source has the new condition, the two conditions are
    swapped.

    Raises:
        MateriaError: the exit does not exist, a value is invalid, or another exit has the same id, or the same source
            and condition.
    """
    edges = EdgeList(document, "exit", loop)
    fields = {"id": id_, "from": source, "condition": condition, "targetSocketId": target}
    changes = {key: value for key, value in fields.items() if value is not None}
    old = edges.entry_at(index)
    route, old_condition = {**old, **changes}, old.get("condition")
    summary = f"exit {index + 1} of loop {loop} now leads from {route.get('from')} to {route.get('targetSocketId')} ({route.get('condition')})"
    if changes.keys() == {"condition"} and is_condition(old_condition):
        start = {"from": route.get("from"), "condition": condition}
        for position, other in enumerate(edges.entries):
            if position != index and is_object(other) and start.items() <= other.items():
                edges = replace(edges, document=edges.with_entry(position, {**other, "condition": old_condition}))
                summary = f"{summary}; exit {position + 1} is now {old_condition}"
    _check_route(edges, changes, route, edges.entries_except(index))
    return DesignChange(edges.with_entry(index, route), summary)


@operation
def move_exit(document: Object, loop: str, index: int, to: int) -> DesignChange:
    """Move an exit to position ``to`` in the loop's list of exits; raise MateriaError if a position is invalid."""
    return _move_entry(EdgeList(document, "exit", loop), index, to)


@operation
def remove_exit(document: Object, loop: str, index: int) -> DesignChange:
    """Remove an exit, which may be malformed; raise MateriaError if the exit does not exist."""
    return _remove_entry(EdgeList(document, "exit", loop), index)


def _ids(routes: Iterable[JSON]) -> list[JSON]:
    return [as_object(route).get("id") for route in routes]


def _check_route(edges: EdgeList, changes: Object, route: Object, other_routes: list[JSON]) -> None:
    """Raise MateriaError if a new or changed exit is invalid or conflicts with another exit of the loop.

    Args:
        edges: the exits of the loop.
        changes: the fields that are new or changed; other fields are not checked.
        route: the complete exit.
        other_routes: the other exits of the loop.
    """
    path = edges.path
    source, condition, id_ = changes.get("from"), changes.get("condition"), changes.get("id")
    sockets = as_list(loop_in(edges.document, edges.owner).get("sockets"))
    members = [socket for socket in sockets if isinstance(socket, str)]
    if "from" in changes and source not in members:
        hint = did_you_mean(str(source), members)
        raise design_error(f"{brief(source)} is not a member of loop {edges.owner!r}", f"{path}.from", hint)
    if "condition" in changes:
        check_condition(condition, f"{path}.condition")
    if "targetSocketId" in changes:
        check_target(edges.document, changes["targetSocketId"], f"{path}.targetSocketId")
    is_duplicate = id_ in _ids(other_routes)
    if "id" in changes and (is_duplicate or not is_text(id_)):
        message = f"another exit has the id {id_!r}" if is_duplicate else f"the exit id cannot be {brief(id_)}"
        raise design_error(message, path, "use an id that is unique in the loop")
    start = (route.get("from"), route.get("condition"))
    if changes.keys() & {"from", "condition"} and start in [
        (as_object(other).get("from"), as_object(other).get("condition")) for other in other_routes
    ]:
        message = f"another exit has the same source {start[0]!r} and condition {start[1]}"
        raise design_error(message, path, "change the existing exit, or choose another condition")


@operation
def edge_to_exit(document: Object, socket: str, index: int, loop: str) -> DesignChange:
    """Turn an edge into a loop exit, which is taken only after the last item of the list.

    Raises:
        MateriaError: the edge or the loop does not exist, or an exit has the same source and condition.
    """
    edge = EdgeList(document, "edge", socket).entry_at(index)
    rest = remove_edge(document, socket, index).document
    change = add_exit(rest, loop, socket, str(edge.get("when")), str(edge.get("to")))
    return DesignChange(change.document, f"turned edge {index + 1} of {socket} into an exit of loop {loop}")


@operation
def exit_to_edge(document: Object, loop: str, index: int) -> DesignChange:
    """Turn a loop exit into an edge, which is taken after any item; raise MateriaError if the exit does not exist."""
    route = EdgeList(document, "exit", loop).entry_at(index)
    rest = remove_exit(document, loop, index).document
    source, when, to = (str(route.get(name)) for name in ("from", "condition", "targetSocketId"))
    change = add_edge(rest, source, to, when)
    return DesignChange(change.document, f"turned exit {index + 1} of loop {loop} into an edge of {source}")


def with_exits(change: DesignChange, loop: str) -> tuple[DesignChange, list[str]]:
    """Turn the edges that lead out of a loop into exits, because such edges would skip the remaining items.

    Edges that return work for another attempt are kept.

    Args:
        change: the change that has created or modified the loop.
        loop: the id of the loop.

    Returns:
        The extended change, and a description of each edge that became an exit.
    """
    document, new_exits = change.document, list[str]()
    members = as_list(loop_in(document, loop).get("sockets"))
    sockets = objects_in(document, "sockets")
    targets = {
        id_: [str(as_object(edge).get("to")) for edge in as_list(socket.get("edges"))]
        for id_, socket in sockets.items()
    }
    for member in members:
        edges = as_list(as_object(objects_in(document, "sockets").get(member)).get("edges"))
        for index, edge in reversed([*enumerate(edges)]):
            when, to = (as_object(edge).get(name) for name in ("when", "to"))
            if to in members or not is_condition(when):
                continue
            if when in REWORK_CONDITIONS and not reachable_from([str(to)], targets).isdisjoint(members):
                continue
            with suppress(MateriaError):  # its target does not exist, or the socket has such an exit already
                document = edge_to_exit(document, member, index, loop).document
                new_exits.append(f"{member} → {to}")
    return replace(change, document=document), new_exits


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
    """Create a loop region from sockets.

    Args:
        document: the loadout.
        sockets: the ids of the members, in order; each item starts at the first member.
        id_: the id of the loop; None generates ``items``, ``items-2`` and so on.
        consumes: the id of the generator whose work items the loop processes, or the whole object ``consumes``.
        iterator: the object ``iterator`` for another list, such as ``{"items": "state.rows", "as": "row"}``.

    Raises:
        MateriaError: there are no members, a member does not exist, or a loop with this id already exists.
    """
    new = free_name("items", objects_in(document, "loops")) if id_ is None else id_
    _check_new_name(document, new)
    members = _checked_members(document, sockets, new)
    loop: Object = {"sockets": members}
    if consumes is not None:
        source = {"from": consumes, "output": WORK_ITEMS} if isinstance(consumes, str) else dict(consumes)
        loop["consumes"] = as_json(source, f"loops.{new}.consumes")
    if iterator is not None:
        loop["iterator"] = as_json(dict(iterator), f"loops.{new}.iterator")
    return DesignChange(with_loop(document, new, loop), f"created loop {new} from {', '.join(members)}")


@operation
def rename_loop(document: Object, old: str, new: str) -> DesignChange:
    """Rename a loop; raise MateriaError if it does not exist, or if the new name is invalid or already used."""
    loop_in(document, old)
    if old == new:
        return DesignChange(document, f"{old} keeps its name")
    _check_new_name(document, new)
    changed_document = {**document, "loops": with_renamed_key(objects_in(document, "loops"), old, new)}
    return DesignChange(changed_document, f"renamed loop {old} to {new}")


@operation
def set_members(document: Object, id_: str, sockets: Iterable[str]) -> DesignChange:
    """Set the members of a loop, and remove the exits of sockets that are no longer members.

    Raises:
        MateriaError: the loop or a socket does not exist, or there are no members.
    """
    loop = loop_in(document, id_)
    members = _checked_members(document, sockets, id_)
    without_exits = [member for member in as_list(loop.get("sockets")) if member not in members]
    changed_loop: Object = {**loop, "sockets": members}
    exits = as_list(loop.get("exits"))
    remaining_exits = [route for route in exits if as_object(route).get("from") not in without_exits]
    removed_count = len(exits) - len(remaining_exits)
    if removed_count:
        changed_loop = with_field(changed_loop, "exits", remaining_exits)
    if is_object(loop.get("exit")) and loop["exit"].get("from") in without_exits:
        changed_loop, removed_count = without_field(changed_loop, "exit"), removed_count + 1
    summary = f"set the members of loop {id_} to {', '.join(members)}"
    sentence = f"{summary}; removed {counted(removed_count, 'exit')} of former members" if removed_count else summary
    return DesignChange(with_loop(document, id_, changed_loop), sentence)


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
    """Set the list that a loop processes.

    Fields that are omitted keep their values, and fields that are None are removed.

    Args:
        document: the loadout.
        id_: the id of the loop.
        source: ``consumes`` to process the work items of a generator, ``iterator`` to process another list, or None to
            process no list.
        from_: the id of the generator, for ``consumes``.
        items: the source of the list, such as ``state.rows``, for ``iterator``.
        output: the name of the generator's list, which is always ``workItems``, for ``consumes``.
        as_: the name of the current item in the state.
        cursor: the name of the cursor.

    Raises:
        MateriaError: the loop or the generator does not exist, or ``source`` has no such field.
    """
    loop = loop_in(document, id_)
    if source is None:
        rest = {key: value for key, value in loop.items() if key not in SOURCES}
        return DesignChange(with_loop(document, id_, rest), f"loop {id_} no longer processes a list")
    if source not in SOURCES:
        message = f"{source!r} cannot be the source of a loop"
        raise design_error(message, f"loops.{id_}", did_you_mean(str(source), SOURCES))
    path = f"loops.{id_}.{source}"
    allowed_fields = {"consumes": ("from", "output", "as", "cursor"), "iterator": ("items", "as", "cursor")}[source]
    fields = {"from": from_, "items": items, "output": output, "as": as_, "cursor": cursor}
    spec = as_object(loop.get(source))
    for key, value in fields.items():
        if value is MISSING:
            continue
        if key not in allowed_fields:
            raise design_error(f"{source} has no {key}", path, f"use only {', '.join(allowed_fields)}")
        if key == "from" and value is not None:
            check_target(document, value, f"{path}.from", end=False)
        spec = without_field(spec, key) if value is None else {**spec, key: as_json(value, f"{path}.{key}")}
    if source == "consumes" and source not in loop and output is MISSING:
        spec = {**spec, "output": WORK_ITEMS}
    other_source = SOURCES[1 - SOURCES.index(source)]
    rest = without_field(loop, other_source) if source in loop else with_renamed_key(loop, other_source, source)
    changed_document = with_loop(document, id_, {**rest, source: spec})
    if source == "consumes":
        list_name = f"the work items of {spec['from']}" if "from" in spec else "work items of an unknown generator"
    else:
        list_name = str(spec.get("items", "an unknown list"))
    cursor_text = f" with the cursor {cursor}" if isinstance(cursor, str) else ""
    return DesignChange(changed_document, f"loop {id_} processes {list_name}{cursor_text}")


@operation
def set_loop(document: Object, id_: str, field: str, value: JSON) -> DesignChange:
    """Set the field ``label`` of a loop, or remove ``label`` or ``exit`` with None.

    Raises:
        MateriaError: the loop does not exist, the field cannot be set, or the value is not JSON.
    """
    loop = loop_in(document, id_)
    fields = ("label", "exit")
    if field not in fields or (field == "exit" and value is not None):
        hint = "use `set_members`, `set_source` or `add_exit`"
        raise design_error(f"`set_loop` cannot set {field!r}", f"loops.{id_}.{field}", hint)
    changed_loop, summary = with_value(loop, f"loop {id_}", field, value, f"loops.{id_}.{field}")
    return DesignChange(with_loop(document, id_, changed_loop), summary)


@operation
def delete_loop(document: Object, id_: str) -> DesignChange:
    """Delete a loop and its exits, but not its sockets and their edges.

    Raises:
        MateriaError: the loop does not exist.
    """
    loop = loop_in(document, id_)
    exits = len(as_list(loop.get("exits"))) + is_object(loop.get("exit"))
    changed_document = with_field(document, "loops", without_field(objects_in(document, "loops"), id_))
    return DesignChange(changed_document, f"deleted loop {id_}{counts_in_words((exits, 'exit'))}")


def _checked_members(document: Object, sockets: Iterable[str], loop: str) -> list[JSON]:
    members: list[JSON] = list(dict.fromkeys(sockets))
    if not members:
        raise design_error("a loop needs at least one member", f"loops.{loop}.sockets", "select at least one socket")
    for member in members:
        check_target(document, member, f"loops.{loop}.sockets", end=False)
    return members


def _check_new_name(document: Object, name: JSON) -> None:
    if not is_text(name):
        raise design_error(f"{brief(name)} is not a valid name for a loop", "loops", "use text that is not blank")
    if name in objects_in(document, "loops"):
        raise design_error(f"the loop {name!r} already exists", "loops", "choose another name")
