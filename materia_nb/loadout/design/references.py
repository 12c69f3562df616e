"""Every place where a loadout names a socket, for renaming and removing one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.design.change import renamed, without
from materia_nb.loadout.facts import Facts, Object, as_object, is_object, is_text

_DONE: Final = ("advance", "foreach")


@dataclass(slots=True)
class Gone:
    """What goes with a socket: counts, and the loops that lose their last member or their source."""

    edges: int = 0
    exits: int = 0
    places: int = 0
    loops: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    entry: bool = False


class References:
    """Renames a socket wherever it is named."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def renamed_in(self, document: Object) -> Object:
        """Return the document with every reference changed; the key of the socket itself is left."""
        cursor = self._default_cursor(document)
        changed = self._named(document, "entry")
        changed = _each(changed, "sockets", lambda _, socket: self._socket(socket, cursor))
        changed = _each(changed, "loops", lambda _, loop: self._loop(loop))
        layout = document.get("layout")
        spots = as_object(layout).get("sockets")
        if is_object(layout) and is_object(spots) and self.old in spots:
            changed = {**changed, "layout": {**layout, "sockets": renamed(spots, self.old, self.new)}}
        return changed

    def _default_cursor(self, document: Object) -> str | None:
        """The cursor that is named after the socket, where it is not spelled out (R13)."""
        facts = Facts("", document, {})
        foreach = facts.foreach(self.old)
        loop = facts.iterating_loop(self.old)
        spec = foreach if foreach is not None else loop.iterator if loop is not None else None
        unnamed = spec is not None and not is_text(spec.get("cursor"))
        return f"{self.old}Index" if unnamed else None

    def _named(self, owner: Object, name: str) -> Object:
        return {**owner, name: self.new} if owner.get(name) == self.old else owner

    def _socket(self, socket: Object, cursor: str | None) -> Object:
        changed = _list(socket, "edges", lambda edge: self._named(edge, "to"))
        for name in _DONE:
            spec = changed.get(name)
            if is_object(spec):
                spec = self._named(spec, "done")
                if name == "advance" and cursor is not None and spec.get("cursor") == cursor:
                    spec = {**spec, "cursor": f"{self.new}Index"}
                changed = {**changed, name: spec}
        return changed

    def _loop(self, loop: Object) -> Object:
        changed = loop
        members = loop.get("sockets")
        if isinstance(members, list):
            changed = {**changed, "sockets": [self.new if one == self.old else one for one in members]}
        for name, fields in (
            ("consumes", ("from", "done")),
            ("iterator", ("done",)),
            ("exit", ("from", "to")),
        ):
            spec = changed.get(name)
            if is_object(spec):
                for one in fields:
                    spec = self._named(spec, one)
                changed = {**changed, name: spec}
        return _list(
            changed, "exits", lambda route: self._named(self._named(route, "from"), "targetSocketId")
        )


def without_socket(document: Object, id_: str) -> tuple[Object, Gone]:
    """Return the document without a socket and what named it, and a count of what went."""
    gone = Gone()
    changed: Object = {**document, "sockets": without(as_object(document.get("sockets")), id_)}
    own = as_object(as_object(document.get("sockets")).get(id_)).get("edges")
    gone.edges = len(own) if isinstance(own, list) else 0
    changed = _each(changed, "sockets", lambda _, socket: _away_from_socket(socket, id_, gone))
    changed = _each(changed, "loops", lambda name, loop: _away_from_loop(name, loop, id_, gone))
    loops = changed.get("loops")
    if is_object(loops) and gone.loops:
        left = {name: loop for name, loop in loops.items() if name not in gone.loops}
        changed = {**changed, "loops": left} if left else without(changed, "loops")
    if changed.get("entry") == id_:
        changed, gone.entry = without(changed, "entry"), True
    layout = changed.get("layout")
    spots = as_object(layout).get("sockets")
    if is_object(layout) and is_object(spots) and id_ in spots:
        changed = {**changed, "layout": {**layout, "sockets": without(spots, id_)}}
    return changed, gone


def _away_from_socket(socket: Object, id_: str, gone: Gone) -> Object:
    changed = socket
    edges = socket.get("edges")
    if isinstance(edges, list):
        left = [edge for edge in edges if as_object(edge).get("to") != id_]
        if len(left) < len(edges):
            gone.edges += len(edges) - len(left)
            changed = {**changed, "edges": left} if left else without(changed, "edges")
    for name in _DONE:
        spec = changed.get(name)
        if is_object(spec) and spec.get("done") == id_:
            changed = {**changed, name: without(spec, "done")}
    return changed


def _away_from_loop(name: str, loop: Object, id_: str, gone: Gone) -> Object:
    changed = loop
    members = loop.get("sockets")
    if isinstance(members, list) and id_ in members:
        gone.places += 1
        left = [member for member in members if member != id_]
        changed = {**changed, "sockets": left}
        if not left:
            gone.loops.append(name)
    exits = loop.get("exits")
    if isinstance(exits, list):
        kept = [
            route
            for route in exits
            if id_ not in (as_object(route).get("from"), as_object(route).get("targetSocketId"))
        ]
        if len(kept) < len(exits):
            gone.exits += len(exits) - len(kept)
            changed = {**changed, "exits": kept} if kept else without(changed, "exits")
    legacy = as_object(loop.get("exit"))
    if id_ in (legacy.get("from"), legacy.get("to")):
        gone.exits += 1
        changed = without(changed, "exit")
    consumes = changed.get("consumes")
    if is_object(consumes) and consumes.get("from") == id_:
        changed = {**changed, "consumes": without(consumes, "from")}
        gone.sources += [] if name in gone.loops else [name]
    for field_ in ("consumes", "iterator"):
        spec = changed.get(field_)
        if is_object(spec) and spec.get("done") == id_:
            changed = {**changed, field_: without(spec, "done")}
    return changed


def _each(document: Object, name: str, change: Callable[[str, Object], Object]) -> Object:
    """Change every well-formed entry of an object of objects."""
    found: JSON = document.get(name)
    if not is_object(found):
        return document
    return {
        **document,
        name: {key: change(key, one) if is_object(one) else one for key, one in found.items()},
    }


def _list(owner: Object, name: str, change: Callable[[Object], Object]) -> Object:
    """Change every well-formed entry of a list of objects."""
    found = owner.get(name)
    if not isinstance(found, list):
        return owner
    return {**owner, name: [change(one) if is_object(one) else one for one in found]}
