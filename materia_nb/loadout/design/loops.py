"""Operations on loop regions: members, and what they go over (R15, R27)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from materia_nb.errors import counted, did_you_mean
from materia_nb.jsonvalue import JSON, MISSING
from materia_nb.loadout.design.document import (
    Change,
    as_json,
    check_target,
    counted_words,
    loop_in,
    objects_in,
    operation,
    refused,
    renamed,
    with_field,
    with_loop,
    without,
)
from materia_nb.loadout.facts import WORK_ITEMS, Object, as_list, as_object, free_name, is_object, is_text
from materia_nb.loadout.report import brief

ListSource = Literal["consumes", "iterator"]
SOURCES: Final[tuple[ListSource, ...]] = ("consumes", "iterator")


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
    sentence = f"{words}; {counted(gone, 'exit')} of dropped members went" if gone else words
    return Change(with_loop(document, id_, changed), sentence)


@operation
def set_source(
    document: Object,
    id_: str,
    source: ListSource | None,
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
        raise refused(f"{brief(name)} cannot be the name of a loop", "loops", "use some text")
    if name in objects_in(document, "loops"):
        raise refused(f"there is a loop {name!r} already", "loops", "choose another name")
