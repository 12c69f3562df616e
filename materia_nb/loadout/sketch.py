"""A graph of a loadout that cannot be cast: what can be drawn of it. Nothing runs by such a graph (R41)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import Facts, Object, as_list, as_object, is_condition, is_text, materia_kind
from materia_nb.loadout.graph import END, Budget, Edge, ExitRoute, Graph, Limits, Loop, Materia, Socket


def sketch_graph(document: JSON, name: str | None, visited: Mapping[str, str]) -> Graph:
    """Make a graph of whatever is well formed; never raises.

    Args:
        document: the config.
        name: the loadout.
        visited: sockets that must be there, since something was recorded of them, each with its materia.
    """
    loadouts = as_object(as_object(document).get("loadouts"))
    title = name or next(iter(loadouts), "")
    facts = Facts(title, as_object(loadouts.get(title)), as_object(as_object(document).get("materia")))
    ids = dict.fromkeys([*facts.sockets, *visited])
    entry = facts.raw.get("entry")
    return Graph(
        name=title,
        entry=entry if isinstance(entry, str) and entry in ids else next(iter(ids), END),
        sockets={id_: _socket(facts, id_, ids, visited.get(id_)) for id_ in ids},
        loops={loop.id: _loop(facts, loop.id, ids) for loop in facts.loops},
        limits=Limits(),
        budget=Budget(),
        derived=(),
        consumers={},
    )


def _socket(facts: Facts, id_: str, ids: Iterable[str], recorded: str | None) -> Socket:
    named = facts.sockets.get(id_, {}).get("materia")
    raw = facts.materia_of(id_)
    return Socket(
        id=id_,
        materia=_materia(named if is_text(named) else recorded or "?", raw),
        parse="text",
        assign=(),
        edges=tuple(
            Edge(edge["when"], edge["to"], place)
            for place, edge in facts.edges(id_)
            if is_condition(edge.get("when")) and _is_target(edge.get("to"), ids)
        ),
        advance=None,
        iterator=None,
        loops=tuple(loop.id for loop in facts.loops_of.get(id_, ())),
    )


def _materia(id_: str, raw: Object) -> Materia:
    label = raw.get("label")
    return Materia(
        id=id_,
        label=label if is_text(label) else id_,
        kind=materia_kind(raw),
        prompt="",
        generator=raw.get("generator") is True,
        multi_turn=False,
        tools="none",
        model=None,
        thinking=None,
        command=(),
        script=None,
        params={},
        timeout_ms=0,
        owner=None,
        raw=raw,
    )


def _loop(facts: Facts, id_: str, ids: Iterable[str]) -> Loop:
    loop = next(one for one in facts.loops if one.id == id_)
    generator = (loop.consumes or {}).get("from")
    routes = [
        ExitRoute(str(raw.get("id")), id_, raw["from"], raw["condition"], raw["targetSocketId"])
        for raw in map(as_object, as_list(loop.raw.get("exits")))
        if raw.get("from") in loop.members
        and raw["from"] in ids
        and is_condition(raw.get("condition"))
        and _is_target(raw.get("targetSocketId"), ids)
    ]
    return Loop(
        id=id_,
        sockets=tuple(member for member in loop.members if member in ids),
        generator=generator if isinstance(generator, str) and generator in ids else None,
        output=None,
        iterator=None,
        routes=tuple(routes),
    )


def _is_target(target: JSON, ids: Iterable[str]) -> bool:
    return isinstance(target, str) and (target == END or target in ids)
