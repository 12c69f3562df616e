"""Operations on sockets: add, rename, remove, set their fields, choose the entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from materia_nb.errors import did_you_mean
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.design.change import (
    Change,
    as_json,
    check_new_id,
    check_target,
    counted_words,
    objects_in,
    refused,
    renamed,
    socket_in,
    with_field,
    with_socket,
    without,
)
from materia_nb.loadout.design.references import References, without_socket
from materia_nb.loadout.facts import CANONICAL_ID, Object, as_object, is_text
from materia_nb.loadout.fields import rows_of
from materia_nb.loadout.models_graph import Socket

SOCKET_FIELDS: Final = tuple(name for name in rows_of(Socket) if name != "edges")
"""The fields that :func:`set_socket` sets; edges have operations of their own."""


def next_socket_id(document: Object) -> str:
    """Return the next canonical id: ``Socket-1`` up (R26)."""
    numbers = [int(id_[7:19]) for id_ in as_object(document.get("sockets")) if CANONICAL_ID.fullmatch(id_)]
    return f"Socket-{max(numbers, default=0) + 1}"


def add_socket(document: Object, materia: str, id_: str | None = None) -> Change:
    """Place a materia in a new socket without edges. The first socket of a loadout becomes its entry.

    Args:
        document: the loadout.
        materia: the id of the materia; whether it exists is for the report to say.
        id_: the socket's id; None takes the next ``Socket-N``.

    Raises:
        MateriaError: the id cannot be used, or no materia is named.
    """
    made = next_socket_id(document) if id_ is None else id_
    check_new_id(document, made)
    if not is_text(materia):
        raise refused("no materia is named", made, "say which materia works in the new socket")
    first = not objects_in(document, "sockets") and not document.get("entry")
    changed = with_socket(document, made, {"materia": materia})
    if first:
        changed = {"entry": made, **without(changed, "entry")}
    return Change(changed, f"added {made} ({materia}){' as the entry' if first else ''}")


def rename_socket(document: Object, old: str, new: str) -> Change:
    """Give a socket another id and change every reference to it: entry, edges, loops, exits, layout.

    The ids of exit routes stay, since they are stable names. A cursor that was named after the socket
    (``<id>Index``, R13) is followed in the ``advance`` of other sockets.

    Raises:
        MateriaError: there is no such socket, or the new id cannot be used.
    """
    socket_in(document, old)
    if old == new:
        return Change(document, f"{old} keeps its name")
    check_new_id(document, new)
    changed = References(old, new).renamed_in(document)
    changed = {**changed, "sockets": renamed(objects_in(changed, "sockets"), old, new)}
    return Change(changed, f"renamed {old} to {new}")


def remove_socket(document: Object, id_: str) -> Change:
    """Remove a socket with its edges, the edges to it, its place in loops and the exits from and to it.

    A loop that has no member left goes too; a loop that consumed its items is left without a source, and the
    loadout without an entry if it was that: the report says what to put in place. The words of the change say
    all of it, so they can be shown before it is done.

    Raises:
        MateriaError: there is no such socket.
    """
    socket_in(document, id_)
    changed, gone = without_socket(document, id_)
    counts = counted_words((gone.edges, "edge"), (gone.exits, "exit"), (gone.places, "loop membership"))
    words = [f"removed {id_}{counts}"]
    words += [f"loop {loop} goes, having no member left" for loop in gone.loops]
    words += [f"loop {loop} has no source of items now" for loop in gone.sources]
    words += ["the loadout has no entry now"] if gone.entry else []
    return Change(changed, "; ".join(words))


def remove_sockets(document: Object, ids: Iterable[str]) -> Change:
    """Remove several sockets at once; see :func:`remove_socket`."""
    changed, words = document, []
    for id_ in dict.fromkeys(ids):
        one = remove_socket(changed, id_)
        changed = one.document
        words.append(one.words)
    if not words:
        raise refused("no socket is selected", "sockets", "select one first")
    return Change(changed, "; ".join(words))


def set_socket(document: Object, id_: str, field: str, value: JSON) -> Change:
    """Set a field of a socket, or take it away with None.

    Args:
        document: the loadout.
        id_: the socket.
        field: one of :data:`SOCKET_FIELDS`.
        value: JSON; whether it makes sense is for the report to say.

    Raises:
        MateriaError: there is no such socket or field, or the value is not JSON.
    """
    socket = socket_in(document, id_)
    if field == "edges":
        raise refused(
            "edges are changed one by one", f"{id_}.edges", "use add_edge, change_edge, remove_edge"
        )
    if field not in SOCKET_FIELDS:
        raise refused(
            f"a socket has no field {field!r}", f"{id_}.{field}", did_you_mean(field, SOCKET_FIELDS)
        )
    if value is None:
        words = f"removed {field} from {id_}" if field in socket else f"{id_} has no {field}"
        return Change(with_socket(document, id_, without(socket, field)), words)
    made = as_json(value, f"{id_}.{field}")
    shown = f" to {made}" if isinstance(made, str) else ""
    return Change(with_socket(document, id_, {**socket, field: made}), f"set {field} of {id_}{shown}")


def place_socket(document: Object, id_: str, place: tuple[float, float] | None) -> Change:
    """Say where a socket is drawn, as column and row in the loadout's layout; None takes that away.

    Raises:
        MateriaError: there is no such socket, or the layout is no object.
    """
    socket_in(document, id_)
    layout = objects_in(document, "layout")
    spots = objects_in(layout, "sockets")
    if place is None:
        if id_ not in spots:
            return Change(document, f"{id_} has no place")
        rest = with_field(layout, "sockets", without(spots, id_))
        return Change(with_field(document, "layout", rest), f"{id_} has no place of its own now")
    old = as_object(spots.get(id_))
    spot = as_json({**old, "x": place[0], "y": place[1]}, f"layout.sockets.{id_}")
    changed = {**document, "layout": {**layout, "sockets": {**spots, id_: spot}}}
    return Change(changed, f"placed {id_} at {place[0]}, {place[1]}")


def place_sockets(document: Object, places: Mapping[str, tuple[float, float]]) -> Change:
    """Say where several sockets are drawn, as one step; see :func:`place_socket`."""
    changed = document
    for id_, place in places.items():
        changed = place_socket(changed, id_, place).document
    return Change(changed, f"moved {', '.join(places)}")


def set_entry(document: Object, id_: str) -> Change:
    """Choose the socket where a cast starts; raises MateriaError when there is no such socket."""
    check_target(document, id_, "entry", end=False)
    return Change({**document, "entry": id_}, f"{id_} is the entry")


def set_loadout(document: Object, field: str, value: JSON) -> Change:
    """Set ``description``, ``label``, ``handoff`` or ``castContext`` of the loadout, or take it away with None.

    Raises:
        MateriaError: there is no such field, or the value is not JSON.
    """
    fields = ("description", "label", "handoff", "castContext")
    if field not in fields:
        raise refused(f"{field!r} is not set here", field, did_you_mean(field, fields))
    changed = with_field(document, field, as_json(value, field))
    return Change(changed, f"set {field}" if field in changed else f"removed {field}")
