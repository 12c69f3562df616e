"""Operations on sockets and their materia, and copying sockets with what leads between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from materia_nb.errors import did_you_mean
from materia_nb.jsonvalue import JSON, Object, as_list, as_object, is_number, is_object, is_text
from materia_nb.loadout.design.document import (
    DesignChange,
    as_json,
    check_new_id,
    check_target,
    counted_words,
    design_error,
    materia_operation,
    objects_in,
    operation,
    renamed,
    renamed_at,
    socket_in,
    with_field,
    with_names,
    with_socket,
    without,
    without_socket,
)
from materia_nb.loadout.fields import Model, row_named
from materia_nb.loadout.graph import END
from materia_nb.loadout.materia import materia_kind
from materia_nb.loadout.models import AgentMateria, SocketFields, UtilityMateria
from materia_nb.loadout.report import brief
from materia_nb.loadout.topology import is_socket_id, next_socket_id, parse_loadout

# -- sockets ---------------------------------------------------------------------------------

SOCKET_FIELDS: Final = tuple(name for name in SocketFields.rows if name != "edges")
"""The fields that :func:`set_socket` sets; edges have operations of their own."""


@operation
def add_socket(document: Object, materia: str, id_: str | None = None) -> DesignChange:
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
        raise design_error("no materia is named", made, "say which materia works in the new socket")
    first = not objects_in(document, "sockets") and not document.get("entry")
    changed = with_socket(document, made, {"materia": materia})
    if first:
        changed = {"entry": made, **without(changed, "entry")}
    return DesignChange(changed, f"added {made} ({materia}){' as the entry' if first else ''}")


@operation
def rename_socket(document: Object, old: str, new: str) -> DesignChange:
    """Give a socket another id and change every reference to it: entry, edges, loops, exits, layout.

    The ids of exit routes stay, since they are stable names. A cursor that was named after the socket
    (``<id>Index``, R13) is followed in the ``advance`` of other sockets.

    Raises:
        MateriaError: there is no such socket, or the new id cannot be used.
    """
    socket_in(document, old)
    if old == new:
        return DesignChange(document, f"{old} keeps its name")
    check_new_id(document, new)
    return DesignChange(_renamed(document, {old: new}), f"renamed {old} to {new}")


@operation
def remove_socket(document: Object, id_: str) -> DesignChange:
    """Remove a socket with its edges, the edges to it, its place in loops and the exits from and to it.

    A loop that has no member left goes too; a loop that consumed its items is left without a source, and the
    loadout without an entry if it was that: the report says what to put in place. The words of the change say
    all of it, so they can be shown before it is done.

    Raises:
        MateriaError: there is no such socket.
    """
    socket_in(document, id_)
    changed = without_socket(document, id_)
    before, after = as_object(document.get("loops")), as_object(changed.get("loops"))
    gone = [
        (old - new, what)
        for old, new, what in zip(
            _counts(document), _counts(changed), ("edge", "exit", "loop membership"), strict=True
        )
    ]
    words = [f"removed {id_}{counted_words(*gone)}"]
    words += [f"loop {loop} goes, having no member left" for loop in before if loop not in after]
    words += [
        f"loop {loop} has no source of items now"
        for loop in after
        if _source(before[loop]) == id_ and _source(after[loop]) is None
    ]
    words += ["the loadout has no entry now"] if "entry" in document and "entry" not in changed else []
    return DesignChange(changed, "; ".join(words))


def _counts(document: Object) -> tuple[int, int, int]:
    """How many edges, exits and members of loops a loadout has."""
    sockets, loops = (as_object(document.get(name)).values() for name in ("sockets", "loops"))
    exits = sum(len(as_list(as_object(one).get("exits"))) + ("exit" in as_object(one)) for one in loops)
    members = sum(len(as_list(as_object(one).get("sockets"))) for one in loops)
    return sum(len(as_list(as_object(one).get("edges"))) for one in sockets), exits, members


def _source(loop: JSON) -> JSON:
    return as_object(as_object(loop).get("consumes")).get("from")


@operation
def remove_sockets(document: Object, ids: Iterable[str]) -> DesignChange:
    """Remove several sockets at once; see :func:`remove_socket`."""
    changed, words = document, []
    for id_ in dict.fromkeys(ids):
        one = remove_socket(changed, id_)
        changed = one.document
        words.append(one.words)
    if not words:
        raise design_error("no socket is selected", "sockets", "select one first")
    return DesignChange(changed, "; ".join(words))


@operation
def set_socket(document: Object, id_: str, field: str, value: JSON) -> DesignChange:
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
        raise design_error(
            "edges are changed one by one", f"{id_}.edges", "use add_edge, change_edge, remove_edge"
        )
    if field not in SOCKET_FIELDS and not (value is None and field in socket):
        raise design_error(
            f"a socket has no field {field!r}", f"{id_}.{field}", did_you_mean(field, SOCKET_FIELDS)
        )
    if value is None:
        words = f"removed {field} from {id_}" if field in socket else f"{id_} has no {field}"
        return DesignChange(with_socket(document, id_, without(socket, field)), words)
    made = as_json(value, f"{id_}.{field}")
    to = f" to {made}" if isinstance(made, str) else ""
    return DesignChange(with_socket(document, id_, {**socket, field: made}), f"set {field} of {id_}{to}")


@operation
def rename_field(document: Object, id_: str, old: str, new: str) -> DesignChange:
    """Spell a field of a socket as another one; raises MateriaError when it has no such field, or the other one too."""
    socket = socket_in(document, id_)
    if old not in socket or new in socket:
        raise design_error(f"{old!r} cannot become {new!r}", f"{id_}.{old}", "set the other field instead")
    return DesignChange(with_socket(document, id_, renamed(socket, old, new)), f"{old} of {id_} is {new}")


@operation
def place_socket(document: Object, id_: str, place: tuple[float, float] | None) -> DesignChange:
    """Say where a socket is drawn, as column and row in the loadout's layout; None takes that away.

    Raises:
        MateriaError: there is no such socket, or the layout is not an object.
    """
    socket_in(document, id_)
    layout = objects_in(document, "layout")
    spots = objects_in(layout, "sockets")
    if place is None:
        if id_ not in spots:
            return DesignChange(document, f"{id_} has no place")
        rest = with_field(layout, "sockets", without(spots, id_))
        return DesignChange(with_field(document, "layout", rest), f"{id_} has no place of its own now")
    old = as_object(spots.get(id_))
    spot = as_json({**old, "x": place[0], "y": place[1]}, f"layout.sockets.{id_}")
    changed = {**document, "layout": {**layout, "sockets": {**spots, id_: spot}}}
    return DesignChange(changed, f"placed {id_} at {place[0]}, {place[1]}")


@operation
def place_sockets(document: Object, places: Mapping[str, tuple[float, float] | None]) -> DesignChange:
    """Say where several sockets are drawn, as one step; see :func:`place_socket`."""
    changed = document
    for id_, place in places.items():
        changed = place_socket(changed, id_, place).document
    return DesignChange(changed, f"moved {', '.join(places)}")


@operation
def set_entry(document: Object, id_: str) -> DesignChange:
    """Choose the socket where a cast starts; raises MateriaError when there is no such socket."""
    check_target(document, id_, "entry", end=False)
    return DesignChange({**document, "entry": id_}, f"{id_} is the entry")


@operation
def set_loadout(document: Object, field: str, value: JSON) -> DesignChange:
    """Set ``description``, ``label``, ``handoff`` or ``castContext`` of the loadout, or take it away with None.

    Raises:
        MateriaError: there is no such field, or the value is not JSON.
    """
    fields = ("description", "label", "handoff", "castContext")
    if field not in fields:
        raise design_error(f"{field!r} is not set here", field, did_you_mean(field, fields))
    changed = with_field(document, field, as_json(value, field))
    return DesignChange(changed, f"set {field}" if field in changed else f"removed {field}")


# -- copies ----------------------------------------------------------------------------------

_BESIDE: Final = 1
"""How many rows below its original a copy is drawn."""


def clip_of(document: Object, sockets: Iterable[str]) -> Object:
    """Return a loadout of these sockets alone: with the edges between them and to the end, and where they are drawn.

    Raises:
        MateriaError: one does not exist, or none is named.
    """
    ids = list(dict.fromkeys(sockets))
    if not ids:
        raise design_error("no socket is selected", "sockets", "select one first")
    kept = {id_: _inside(socket_in(document, id_), ids) for id_ in ids}
    spots = as_object(as_object(document.get("layout")).get("sockets"))
    placed = {id_: spots[id_] for id_ in ids if id_ in spots}
    clip: Object = {"sockets": kept, **({"layout": {"sockets": placed}} if placed else {})}
    for outside in set(objects_in(document, "sockets")).difference(ids):
        clip = without_socket(clip, outside)
    return clip


def _inside(socket: Object, ids: list[str]) -> Object:
    edges = socket.get("edges")
    if not isinstance(edges, list):
        return socket
    kept = [edge for edge in edges if as_object(edge).get("to") in (*ids, END)]
    return with_field(without(socket, "edges"), "edges", kept)


@operation
def paste(document: Object, clip: Mapping[str, JSON]) -> DesignChange:
    """Put the sockets of a clip in, under the next free ids and one row lower; what was copied stays as it is.

    Raises:
        MateriaError: the clip holds no sockets.
    """
    made = as_json(dict(clip), "the copy")
    ids = [id_ for id_, raw in as_object(made.get("sockets")).items() if is_object(raw) and is_socket_id(id_)]
    if not ids:
        raise design_error("there are no sockets in what was copied", "paste", "copy some sockets first")
    taken = dict(objects_in(document, "sockets"))
    known, news = {**taken, **made["sockets"]}, dict[str, str]()
    for id_ in ids:
        news[id_] = next_socket_id({"sockets": known})
        known[news[id_]] = None
    made = _renamed(made, news)
    layout = objects_in(document, "layout")
    spots = {
        id_: _lower(spot) for id_, spot in as_object(as_object(made.get("layout")).get("sockets")).items()
    }
    added = {new: as_object(made["sockets"])[new] for new in news.values()}
    changed: Object = {**document, "sockets": {**taken, **added}}
    if not taken and not document.get("entry"):
        changed = {"entry": next(iter(added)), **changed}
    if spots:
        changed["layout"] = {**layout, "sockets": {**objects_in(layout, "sockets"), **spots}}
    return DesignChange(changed, f"copied {', '.join(news)} as {', '.join(news.values())}")


def _renamed(document: Object, new: Mapping[str, str]) -> Object:
    """Call sockets otherwise wherever they are named, and the cursors that are called after them (R13)."""
    facts = parse_loadout("", document, {})
    cursors = {}
    for old, id_ in new.items():
        socket = facts.sockets.get(old)
        if socket is None or socket.iterator is None:
            continue
        loop = next((loop for loop in socket.loops if loop.iterates), None)
        iterator = socket.foreach or (loop.iterator if loop is not None else None)
        if iterator is not None and not is_text(iterator.get("cursor")):
            cursors[f"{old}Index"] = f"{id_}Index"
    return renamed_at(with_names(document, new), [("sockets", "*", "advance", "cursor")], cursors)


def _lower(spot: JSON) -> JSON:
    place = as_object(spot)
    return {**place, "y": place["y"] + _BESIDE} if is_number(place.get("y")) else spot


def new_sockets(before: Object, after: Object) -> list[str]:
    """Return the sockets of ``after`` that ``before`` had not, in order."""
    old = as_object(before.get("sockets"))
    return [id_ for id_ in as_object(after.get("sockets")) if id_ not in old]


# -- materia ---------------------------------------------------------------------------------

_LONGEST_ID: Final = 100
_BEGUN: Final[dict[str, Object]] = {
    "agent": {"prompt": "Say here what it is to do.", "tools": "none"},
    "utility": {
        "type": "utility",
        "command": ["python3", "-c", "import json; print(json.dumps({'satisfied': True}))"],
        "parse": "json",
    },
}
"""What a new materia is at first: as little as can be cast."""


def materia_model(definition: Object) -> type[Model]:
    """Return the model that describes a definition."""
    return UtilityMateria if materia_kind(definition) == "utility" else AgentMateria


@materia_operation
def set_materia(document: Object, definitions: Object, id_: str, field: str, value: JSON) -> DesignChange:
    """Set a field of a materia, or take it away with None; every loadout that places it will have it so.

    Raises:
        MateriaError: there is no such materia or field, or the value is not JSON.
    """
    if id_ not in definitions:
        raise design_error(f"there is no materia {id_!r}", "materia", did_you_mean(id_, definitions))
    raw = as_object(definitions[id_])
    model = materia_model(raw)
    if row_named(model, field) is None:
        hint = did_you_mean(field, model.rows)
        raise design_error(f"{model.words} has no field {field!r}", f"materia.{id_}.{field}", hint)
    if value is None:
        words = f"removed {field} from {id_}" if field in raw else f"{id_} has no {field}"
        return DesignChange(document, words, {id_: without(raw, field)})
    made = as_json(value, f"materia.{id_}.{field}")
    words = f"set {field} of {id_}" + (f" to {made}" if isinstance(made, str) and len(made) < 40 else "")
    return DesignChange(document, words, {id_: {**raw, field: made}})


@materia_operation
def make_materia(document: Object, definitions: Object, id_: str, kind: str) -> DesignChange:
    """Define a new ``agent`` or ``utility``, to be filled in; raises MateriaError when the id cannot be used."""
    if kind not in _BEGUN:
        raise design_error(
            f"{brief(kind)} is not a kind of materia", "materia", did_you_mean(str(kind), _BEGUN)
        )
    if not is_text(id_) or id_ != id_.strip() or len(id_) > _LONGEST_ID or not id_.isprintable():
        hint = f"use some text on one line, at most {_LONGEST_ID} characters"
        raise design_error(f"{brief(id_)} cannot be the name of a materia", "materia", hint)
    if id_ in definitions:
        raise design_error(
            f"there is a materia {id_!r} already", "materia", "choose another name, or edit that one"
        )
    return DesignChange(document, f"made the {kind} {id_}", {id_: dict(_BEGUN[kind])})
