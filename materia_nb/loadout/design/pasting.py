"""Copying sockets with what leads from one to another of them, and putting the copy in under new ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.design.change import Change, as_json, objects_in, refused, socket_in
from materia_nb.loadout.design.references import References, without_socket
from materia_nb.loadout.design.sockets import next_socket_id
from materia_nb.loadout.facts import Object, as_object, is_number, is_object, is_socket_id
from materia_nb.loadout.graph import END

_BESIDE: Final = 1
"""How many rows below its original a copy is drawn."""


def clip_of(document: Object, sockets: Iterable[str]) -> Object:
    """Return a loadout of these sockets alone: with the edges between them and to the end, and where they are drawn.

    Raises:
        MateriaError: one does not exist, or none is named.
    """
    ids = list(dict.fromkeys(sockets))
    if not ids:
        raise refused("no socket is selected", "sockets", "select one first")
    kept = {id_: _inside(socket_in(document, id_), ids) for id_ in ids}
    spots = as_object(as_object(document.get("layout")).get("sockets"))
    placed = {id_: spots[id_] for id_ in ids if id_ in spots}
    clip: Object = {"sockets": kept, **({"layout": {"sockets": placed}} if placed else {})}
    for outside in set(objects_in(document, "sockets")).difference(ids):
        clip, _ = without_socket(clip, outside)
    return clip


def _inside(socket: Object, ids: list[str]) -> Object:
    edges = socket.get("edges")
    if not isinstance(edges, list):
        return socket
    kept = [edge for edge in edges if as_object(edge).get("to") in (*ids, END)]
    return {
        **{key: value for key, value in socket.items() if key != "edges"},
        **({"edges": kept} if kept else {}),
    }


def pasted(document: Object, clip: Mapping[str, JSON]) -> Change:
    """Put the sockets of a clip in, under the next free ids and one row lower; what was copied stays as it is.

    Raises:
        MateriaError: the clip holds no sockets.
    """
    made = as_json(dict(clip), "the copy")
    ids = [id_ for id_, raw in as_object(made.get("sockets")).items() if is_object(raw) and is_socket_id(id_)]
    if not ids:
        raise refused("there are no sockets in what was copied", "paste", "copy some sockets first")
    taken = dict(objects_in(document, "sockets"))
    news: dict[str, str] = {}
    for id_ in ids:
        news[id_] = next_socket_id({"sockets": {**taken, **as_object(made.get("sockets"))}})
        made = _renamed(made, id_, news[id_])
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
    return Change(changed, f"copied {', '.join(news)} as {', '.join(news.values())}")


def _renamed(clip: Object, old: str, new: str) -> Object:
    changed = References(old, new).renamed_in(clip)
    sockets = {new if id_ == old else id_: raw for id_, raw in as_object(changed.get("sockets")).items()}
    return {**changed, "sockets": sockets}


def _lower(spot: JSON) -> JSON:
    place = as_object(spot)
    return {**place, "y": place["y"] + _BESIDE} if is_number(place.get("y")) else spot


def new_sockets(before: Object, after: Object) -> list[str]:
    """Return the sockets of ``after`` that ``before`` had not, in order."""
    old = as_object(before.get("sockets"))
    return [id_ for id_ in as_object(after.get("sockets")) if id_ not in old]
