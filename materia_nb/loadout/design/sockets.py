"""Design operations on sockets and materia, including copying and pasting sockets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from materia_nb.errors import did_you_mean
from materia_nb.jsonvalue import JSON, Object, as_list, as_object, is_number, is_object, is_text, text_or, without_field
from materia_nb.loadout.design.document import (
    DesignChange,
    as_json,
    check_new_id,
    check_target,
    counts_in_words,
    design_error,
    materia_operation,
    objects_in,
    operation,
    socket_in,
    with_field,
    with_renamed_sockets,
    with_renamed_values,
    with_socket,
    with_value,
    without_references,
    without_socket,
)
from materia_nb.loadout.fields import find_row
from materia_nb.loadout.graph import END
from materia_nb.loadout.models import SocketFields, materia_model
from materia_nb.loadout.report import brief
from materia_nb.loadout.topology import is_socket_id, next_socket_id, parse_loadout

# -- sockets ---------------------------------------------------------------------------------

SOCKET_FIELDS: Final = tuple(name for name in SocketFields.rows if name != "edges")
"""The fields that :func:`set_socket` can set: all fields except ``edges``."""


@operation
def add_socket(document: Object, materia: str, id_: str | None = None) -> DesignChange:
    """Add a socket that places a materia and has no edges. The first socket of a loadout becomes its entry.

    Args:
        document: the loadout.
        materia: the id of the materia. If the materia does not exist, the report lists this as a problem.
        id_: the id of the new socket; None generates the next canonical id, such as ``Socket-4``.

    Raises:
        MateriaError: the id is invalid or already exists, or ``materia`` is blank.
    """
    new = next_socket_id(document) if id_ is None else id_
    check_new_id(document, new)
    if not is_text(materia):
        raise design_error("the new socket has no materia", new, "choose a materia for the socket")
    is_first = not objects_in(document, "sockets") and not document.get("entry")
    changed_document = with_socket(document, new, {"materia": materia})
    if is_first:
        changed_document = {"entry": new, **without_field(changed_document, "entry")}
    return DesignChange(changed_document, f"added {new} ({materia}){' as the entry' if is_first else ''}")


@operation
def rename_socket(document: Object, old: str, new: str) -> DesignChange:
    """Rename a socket and update all references to it.

    If a cursor is named after the socket (``<id>Index``, R13), the cursor is renamed too. The ids of exits do not
    change.

    Raises:
        MateriaError: the socket does not exist, or the new id is invalid or already exists.
    """
    socket_in(document, old)
    if old == new:
        return DesignChange(document, f"{old} keeps its name")
    check_new_id(document, new)
    return DesignChange(_with_renamed_ids(document, {old: new}), f'changed the id of {old} to "{new}"')


@operation
def remove_socket(document: Object, id_: str) -> DesignChange:
    """Remove a socket and everything that refers to it.

    This includes edges, exits, loop memberships, the source of loops that process the socket's items, and the entry.
    A loop that has no other members is removed too. The summary of the change lists all removed parts.

    Raises:
        MateriaError: the socket does not exist.
    """
    socket_in(document, id_)
    changed_document = without_socket(document, id_)
    before, after = as_object(document.get("loops")), as_object(changed_document.get("loops"))
    counts = zip(_counts(document), _counts(changed_document), ("edge", "exit", "loop membership"), strict=True)
    summary = [f"removed {id_}{counts_in_words(*[(old - new, noun) for old, new, noun in counts])}"]
    summary += [f"removed loop {loop}, which has no other members" for loop in before if loop not in after]
    summary += [
        f"removed the source of loop {loop}"
        for loop in after
        if _source(before[loop]) == id_ and _source(after[loop]) is None
    ]
    summary += ["removed the entry"] if "entry" in document and "entry" not in changed_document else []
    return DesignChange(changed_document, "; ".join(summary))


def _counts(document: Object) -> tuple[int, int, int]:
    """Return the numbers of edges, exits and loop members in a loadout."""
    sockets = [as_object(socket) for socket in as_object(document.get("sockets")).values()]
    loops = [as_object(loop) for loop in as_object(document.get("loops")).values()]
    exits = sum(len(as_list(loop.get("exits"))) + ("exit" in loop) for loop in loops)
    members = sum(len(as_list(loop.get("sockets"))) for loop in loops)
    return sum(len(as_list(socket.get("edges"))) for socket in sockets), exits, members


def _source(loop: JSON) -> JSON:
    return as_object(as_object(loop).get("consumes")).get("from")


@operation
def remove_sockets(document: Object, ids: Iterable[str]) -> DesignChange:
    """Remove several sockets as one step; see :func:`remove_socket`."""
    change, summaries = DesignChange(document, ""), []
    for id_ in dict.fromkeys(ids):
        change = remove_socket(change.document, id_)
        summaries.append(change.summary)
    if not summaries:
        raise design_error("no socket is selected", "sockets", "select a socket first")
    return DesignChange(change.document, "; ".join(summaries))


@operation
def set_socket(document: Object, id_: str, field: str, value: JSON) -> DesignChange:
    """Set a field of a socket, or remove the field with None.

    Args:
        document: the loadout.
        id_: the id of the socket.
        field: the name of the field, which must be in :data:`SOCKET_FIELDS`.
        value: the new value as JSON. If the value is invalid, the report lists this as a problem.

    Raises:
        MateriaError: the socket or the field does not exist, or the value is not JSON.
    """
    socket = socket_in(document, id_)
    if field == "edges":
        hint = "use `add_edge`, `change_edge` or `remove_edge`"
        raise design_error("`set_socket` cannot change edges", f"{id_}.edges", hint)
    if field not in SOCKET_FIELDS and not (value is None and field in socket):
        raise design_error(f"a socket has no field {field!r}", f"{id_}.{field}", did_you_mean(field, SOCKET_FIELDS))
    changed_socket, summary = with_value(socket, id_, field, value, f"{id_}.{field}")
    return DesignChange(with_socket(document, id_, changed_socket), summary)


@operation
def place_sockets(document: Object, positions: Mapping[str, tuple[float, float] | None]) -> DesignChange:
    """Set the positions of sockets in drawings, as columns and rows, or remove positions with None.

    Raises:
        MateriaError: a socket does not exist, or the layout is not an object.
    """
    layout = objects_in(document, "layout")
    places = dict(objects_in(layout, "sockets"))
    for id_, position in positions.items():
        socket_in(document, id_)
        if position is None:
            places.pop(id_, None)
        else:
            place = {**as_object(places.get(id_)), "x": position[0], "y": position[1]}
            places[id_] = as_json(place, f"layout.sockets.{id_}")
    changed_layout = with_field(layout, "sockets", places)
    return DesignChange(with_field(document, "layout", changed_layout), f"moved {', '.join(positions)}")


@operation
def set_entry(document: Object, id_: str) -> DesignChange:
    """Set the socket where a cast starts; raise MateriaError if the socket does not exist."""
    check_target(document, id_, "entry", end=False)
    return DesignChange({**document, "entry": id_}, f"set the entry to {id_}")


@operation
def set_loadout(document: Object, field: str, value: JSON) -> DesignChange:
    """Set the description, label, handoff, finalize, castContext or lockState of the loadout, or remove this field with None.

    Raises:
        MateriaError: the field cannot be set, or the value is not JSON.
    """
    fields = ("description", "label", "handoff", "finalize", "castContext", "lockState")
    if field not in fields:
        raise design_error(f"`set_loadout` cannot set {field!r}", field, did_you_mean(field, fields))
    return DesignChange(*with_value(document, "the loadout", field, value, field))


# -- copies ----------------------------------------------------------------------------------

_COPY_ROW_OFFSET: Final = 1  # Number of rows between a socket and its copy.


def copied_sockets(document: Object, sockets: Iterable[str]) -> Object:
    """Return a loadout that contains only certain sockets, for use with :func:`paste`.

    The result includes the positions of the sockets, the edges between them, and their edges to the end.

    Raises:
        MateriaError: a socket does not exist, or ``sockets`` is empty.
    """
    ids = list(dict.fromkeys(sockets))
    if not ids:
        raise design_error("no socket is selected", "sockets", "select a socket first")
    copies = {id_: socket_in(document, id_) for id_ in ids}
    positions = as_object(as_object(document.get("layout")).get("sockets"))
    copied_positions = {id_: positions[id_] for id_ in ids if id_ in positions}
    clip: Object = {"sockets": copies, **({"layout": {"sockets": copied_positions}} if copied_positions else {})}
    return without_references(clip, lambda name: name not in (*ids, END))


@operation
def paste(document: Object, clip: Mapping[str, JSON]) -> DesignChange:
    """Insert copies of sockets under new ids, one row below the originals.

    Args:
        document: the loadout.
        clip: the result of :func:`copied_sockets`.

    Raises:
        MateriaError: ``clip`` contains no sockets.
    """
    copy = as_json(dict(clip), "the copy")
    ids = [id_ for id_, raw in as_object(copy.get("sockets")).items() if is_object(raw) and is_socket_id(id_)]
    if not ids:
        raise design_error("the copy contains no sockets", "paste", "copy at least one socket first")
    sockets = dict(objects_in(document, "sockets"))
    used_sockets, new_ids = {**sockets, **copy["sockets"]}, dict[str, str]()
    for id_ in ids:
        new_ids[id_] = next_socket_id({"sockets": used_sockets})
        used_sockets[new_ids[id_]] = None
    copy = _with_renamed_ids(copy, new_ids)
    layout = objects_in(document, "layout")
    positions = {
        id_: _moved_down(position) for id_, position in as_object(as_object(copy.get("layout")).get("sockets")).items()
    }
    added_sockets = {new: as_object(copy["sockets"])[new] for new in new_ids.values()}
    changed_document: Object = {**document, "sockets": {**sockets, **added_sockets}}
    if not sockets and not document.get("entry"):
        changed_document = {"entry": next(iter(added_sockets)), **changed_document}
    if positions:
        changed_document["layout"] = {**layout, "sockets": {**objects_in(layout, "sockets"), **positions}}
    return DesignChange(changed_document, f"copied {', '.join(new_ids)} as {', '.join(new_ids.values())}")


def _with_renamed_ids(document: Object, new: Mapping[str, str]) -> Object:
    """Return a copy of a loadout with sockets renamed, together with the cursors that are named after them (R13)."""
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
    return with_renamed_values(with_renamed_sockets(document, new), [("sockets", "*", "advance", "cursor")], cursors)


def _moved_down(position: JSON) -> JSON:
    y = as_object(position).get("y")
    return {**position, "y": y + _COPY_ROW_OFFSET} if is_number(y) else position


def new_sockets(before: Object, after: Object) -> list[str]:
    """Return the ids of the sockets that exist in the loadout ``after`` but not in the loadout ``before``."""
    old = as_object(before.get("sockets"))
    return [id_ for id_ in as_object(after.get("sockets")) if id_ not in old]


# -- materia ---------------------------------------------------------------------------------

_MAX_ID_LENGTH: Final = 100
_TEMPLATES: Final[dict[str, Object]] = {
    "agent": {"prompt": "Describe the task here.", "tools": "none"},
    "utility": {
        "type": "utility",
        "command": ["python3", "-c", "import json; print(json.dumps({'satisfied': True}))"],
        "parse": "json",
    },
}  # Definition of a new materia, by kind.


@materia_operation
def set_materia(document: Object, definitions: Object, id_: str, field: str, value: JSON) -> DesignChange:
    """Set a field of a materia, or remove the field with None. This affects all loadouts that place the materia.

    Raises:
        MateriaError: the materia or the field does not exist, or the value is not JSON.
    """
    if id_ not in definitions:
        raise design_error(f"the materia {id_!r} does not exist", "materia", did_you_mean(id_, definitions))
    raw = as_object(definitions[id_])
    model = materia_model(raw)
    if find_row(model, field) is None:
        hint = did_you_mean(field, model.rows)
        raise design_error(f"{model.noun} has no field {field!r}", f"materia.{id_}.{field}", hint)
    changed_definition, summary = with_value(raw, id_, field, value, f"materia.{id_}.{field}")
    return DesignChange(document, summary, {id_: changed_definition})


@materia_operation
def make_materia(document: Object, definitions: Object, id_: str, kind: str) -> DesignChange:
    """Create an agent or utility from a template.

    Args:
        document: the loadout, which does not change.
        definitions: the materia definitions of the config.
        id_: the id of the new materia.
        kind: ``agent`` or ``utility``.

    Raises:
        MateriaError: the id is invalid or already exists, or the kind does not exist.
    """
    if kind not in _TEMPLATES:
        raise design_error(f"{brief(kind)} is not a kind of materia", "materia", did_you_mean(str(kind), _TEMPLATES))
    _check_new_id(definitions, id_)
    return DesignChange(document, f"created the {kind} {id_}", {id_: dict(_TEMPLATES[kind])})


@materia_operation
def copy_materia(document: Object, definitions: Object, socket: str, id_: str) -> DesignChange:
    """Give a socket its own copy of its materia, with the same display name.

    Later changes to the copy do not affect other sockets or loadouts.

    Args:
        document: the loadout.
        definitions: the materia definitions of the config.
        socket: the id of the socket.
        id_: the id of the copy.

    Raises:
        MateriaError: the socket or its materia does not exist, or the id is invalid or already exists.
    """
    raw = socket_in(document, socket)
    original = raw.get("materia")
    if original not in definitions:
        hint = "choose a materia for the socket first"
        raise design_error(f"the materia {brief(original)} of {socket} does not exist", f"{socket}.materia", hint)
    _check_new_id(definitions, id_)
    definition = as_object(definitions[original])
    copy = {**definition, "label": text_or(definition.get("label"), original)}
    changed_document = with_socket(document, socket, {**raw, "materia": id_})
    return DesignChange(changed_document, f"copied {original} to {id_} for {socket}", {id_: copy})


def _check_new_id(definitions: Object, id_: str) -> None:
    if not is_text(id_) or id_ != id_.strip() or len(id_) > _MAX_ID_LENGTH or not id_.isprintable():
        hint = f"use one line of text, at most {_MAX_ID_LENGTH} characters"
        raise design_error(f"{brief(id_)} is not a valid materia id", "materia", hint)
    if id_ in definitions:
        hint = "choose another id, or edit the existing materia"
        raise design_error(f"the materia {id_!r} already exists", "materia", hint)
