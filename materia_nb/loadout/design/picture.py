"""A graph of whatever is there: of an unfinished loadout, all that can be drawn."""

from __future__ import annotations

from collections.abc import Iterator as Iterating
from typing import TypeGuard

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import (
    Facts,
    LoopFacts,
    Object,
    as_list,
    as_object,
    is_condition,
    is_object,
    is_text,
    materia_group,
    materia_kind,
    whole,
)
from materia_nb.loadout.graph import (
    DEFAULT_TIMEOUT_MS,
    END,
    Advance,
    Budget,
    Edge,
    ExitRoute,
    Graph,
    Iterator,
    Limits,
    Loop,
    Materia,
    Socket,
)
from materia_nb.loadout.report import Report
from materia_nb.loadout.resolve import build_graph


def picture(config: Object, name: str, report: Report) -> Graph:
    """Return the resolved graph of a loadout, or a sketch of it while its ``report`` has problems."""
    if report.ok:
        return build_graph(config, name)
    return sketch(
        name, as_object(as_object(config.get("loadouts")).get(name)), as_object(config.get("materia"))
    )


def sketch(name: str, document: Object, materia: Object) -> Graph:
    """Return what is well formed of a loadout as a graph to be looked at; it is not meant to be cast. Never raises.

    Edges and exits that lead nowhere and sockets that are no objects are left out; places, by which an edge is
    known, are those of the document.
    """
    facts = Facts(name, document, materia)
    loops = {loop.id: _loop(facts, loop) for loop in facts.loops}
    consumers: dict[str, tuple[str, ...]] = {}
    for loop in loops.values():
        if loop.generator is not None:
            consumers[loop.generator] = (*consumers.get(loop.generator, ()), loop.id)
    return Graph(
        name=name,
        entry=facts.entry if isinstance(facts.entry, str) else "",
        sockets={id_: _socket(facts, id_) for id_ in facts.sockets},
        loops=loops,
        limits=Limits(),
        budget=Budget(),
        derived=(),
        consumers=consumers,
    )


def _socket(facts: Facts, id_: str) -> Socket:
    raw = facts.sockets[id_]
    spots = as_object(as_object(facts.raw.get("layout")).get("sockets"))
    layout = spots.get(id_) if is_object(spots.get(id_)) else raw.get("layout")
    json_wanted = facts.authored_parse(id_) == "json" or facts.is_generator(id_)
    return Socket(
        id=id_,
        materia=_materia(facts, id_),
        parse="json" if json_wanted else "text",
        assign=(),
        edges=tuple(_edges(facts, id_)),
        advance=_advance(facts, id_),
        iterator=_iterator(facts, id_),
        loops=tuple(loop.id for loop in facts.loops_of.get(id_, ())),
        layout=layout if is_object(layout) else None,
    )


def _materia(facts: Facts, id_: str) -> Materia:
    raw, named = facts.materia_of(id_), facts.sockets[id_].get("materia")
    label = raw.get("label")
    shown = named if is_text(named) else "no materia"
    return Materia(
        id=shown,
        label=label if is_text(label) else shown,
        kind=materia_kind(raw),
        prompt="",
        generator=raw.get("generator") is True,
        multi_turn=raw.get("multiTurn") is True,
        tools="none",
        model=None,
        thinking=None,
        command=(),
        script=None,
        params={},
        timeout_ms=DEFAULT_TIMEOUT_MS,
        owner=None,
        raw=raw,
        group=materia_group(raw),
    )


def _edges(facts: Facts, id_: str) -> Iterating[Edge]:
    for place, edge in facts.edges(id_):
        when, to = edge.get("when"), edge.get("to")
        if is_condition(when) and _leads(to, facts):
            most = whole(edge.get("maxTraversals"))
            yield Edge(when, to, place, most if most is not None and most > 0 else None)


def _advance(facts: Facts, id_: str) -> Advance | None:
    raw = facts.sockets[id_].get("advance")
    if not is_object(raw):
        return None
    when, items = raw.get("when"), raw.get("items")
    return Advance(
        facts.advance_cursor(id_) or "?",
        items if is_text(items) else facts.items_of(id_) or "?",
        when if is_condition(when) else "always",
    )


def _iterator(facts: Facts, id_: str) -> Iterator | None:
    foreach, loop = facts.foreach(id_), facts.iterating_loop(id_)
    if foreach is not None:
        alias = foreach.get("as")
        named = alias if is_text(alias) else "item"
        return Iterator(facts.items_of(id_) or "?", named, facts.cursor_of(id_) or "?")
    return None if loop is None else Iterator(loop.items(), loop.alias(), loop.cursor(id_), loop.id)


def _loop(facts: Facts, loop: LoopFacts) -> Loop:
    members = tuple(member for member in loop.members if member in facts.sockets)
    source = (loop.consumes or {}).get("from")
    first = members[0] if members else ""
    return Loop(
        id=loop.id,
        sockets=members,
        generator=source if isinstance(source, str) and source in facts.sockets else None,
        output=loop.output if loop.consumes else None,
        iterator=Iterator(loop.items(), loop.alias(), loop.cursor(first), loop.id) if loop.iterates else None,
        routes=tuple(_routes(facts, loop)),
    )


def _routes(facts: Facts, loop: LoopFacts) -> Iterating[ExitRoute]:
    for place, route in enumerate(as_list(loop.raw.get("exits"))):
        if is_object(route):
            id_ = route.get("id")
            made = id_ if is_text(id_) else f"#{place}"
            yield from _route(
                facts, loop, made, (route.get("from"), route.get("condition"), route.get("targetSocketId"))
            )
    legacy = loop.raw.get("exit")
    if is_object(legacy) and legacy.get("to") != END:
        ways = (legacy.get("from"), legacy.get("when"), legacy.get("to"))
        yield from _route(facts, loop, f"exit:{ways[0]}:{ways[1]}", ways, derived=True)


def _route(
    facts: Facts, loop: LoopFacts, id_: str, way: tuple[JSON, JSON, JSON], *, derived: bool = False
) -> Iterating[ExitRoute]:
    source, condition, target = way
    if (
        isinstance(source, str)
        and source in facts.sockets
        and is_condition(condition)
        and _leads(target, facts)
    ):
        yield ExitRoute(id_, loop.id, source, condition, target, derived)


def _leads(to: JSON, facts: Facts) -> TypeGuard[str]:
    return isinstance(to, str) and (to == END or to in facts.sockets)
