"""Combine several loadouts and materia into one loadout that runs them in sequence.

A part of the sequence ends if it takes an edge or exit to ``end``, if no edge of a socket matches (R3), or if a list is
empty or exhausted and no exit matches (R16). In each case, the combined loadout continues at the next part.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.jsonvalue import JSON, Object, as_list, as_object, is_object, is_text, thawed
from materia_nb.loadout.graph import END, ExitRoute, Graph, Loop, Socket
from materia_nb.loadout.resolve import build_graph
from materia_nb.loadout.topology import LoadoutFacts, free_name, materia_kind, parse_loadout
from materia_nb.loadout.vocabulary import GUARDS, Condition, condition_spec, requires_verdict, unmatched_verdicts


@dataclass(frozen=True, slots=True)
class LinkedPart:
    """A part of a combined loadout, with its sockets, loops and cursors renamed.

    Attributes:
        sockets: the sockets as JSON, by new id. They are modified when the part is connected to the next part.
        loops: the loops as JSON, in their original order. They are modified at the same time.
        ids: the new id of each socket, by old id.
        cursors: the new name of each cursor, by old name.
    """

    sockets: Object
    loops: Object
    ids: Mapping[str, str]
    cursors: Mapping[str, str]


def _connect_to_next(part: LinkedPart, graph: Graph, target: str, *, used_loops: Collection[str]) -> None:
    """Modify a part so that the cast continues at the next part wherever the part would end.

    Args:
        part: the part, which is modified.
        graph: the resolved graph of the part, with the old names.
        target: the new id of the socket at which the next part starts.
        used_loops: the ids of the loops of earlier parts.

    Raises:
        MateriaError: an empty list would end the cast, and no exit can prevent this (``no_way_on``).
    """
    ids = part.ids
    for socket in graph.sockets.values():
        raw = part.sockets[ids[socket.id]]
        _redirect_edges(raw, socket, target)
        if socket.advance is not None and socket.advance.derived:
            # written out, so that the exits added below cannot derive a different advance (R15)
            advance = socket.advance
            raw["advance"] = {"cursor": part.cursors[advance.cursor], "items": advance.items, "when": advance.when}
    routes_of = _ExitRoutes(graph)
    routes_of.reject_cycles()
    for loop, raw in zip(graph.loops.values(), part.loops.values(), strict=True):
        exits = as_list(raw.get("exits"))
        for route in exits:
            if route["targetSocketId"] == END:
                route["targetSocketId"] = target
        if loop.iterator is not None and not routes_of.always_exits(loop.id):
            source = _choose_empty_exit(graph, routes_of, loop)
            routes_of.add(loop.id, source)
            raw["exits"] = [*exits, _always_exit(ids[source], target)]
    ending_sockets = [ids[socket.id] for socket in graph.sockets.values() if routes_of.ends_at(socket)]
    if ending_sockets:
        name = free_name(f"{graph.name} ends", {*part.loops, *used_loops})
        part.loops[name] = {"sockets": ending_sockets, "exits": [_always_exit(id_, target) for id_ in ending_sockets]}


def _redirect_edges(raw: Object, socket: Socket, target: str) -> None:
    """Redirect edges that lead to the end, and add edges for results that no edge matches (R3).

    If all edges of a socket depend on ``satisfied``, its output must contain ``satisfied`` (R7). An ``always`` edge would
    remove this requirement, so ``satisfied`` or ``not_satisfied`` edges are added instead.
    """
    edges = [{**edge, "to": target} if edge["to"] == END else edge for edge in as_list(raw.get("edges"))]
    guards = [edge["when"] for edge in edges]
    missing_conditions: list[Condition] = ["always"]
    is_guarded = not set(GUARDS).isdisjoint(guards) or (socket.advance is not None and socket.advance.when in GUARDS)
    if socket.parse == "json" and is_guarded and (socket.is_utility or requires_verdict(socket.handoff)):
        unmatched = unmatched_verdicts(guards)
        missing_conditions = unmatched if socket.is_utility or not unmatched else missing_conditions
    if "always" in guards:
        missing_conditions = []
    raw["edges"] = [*edges, *({"when": when, "to": target} for when in missing_conditions)]


def _choose_empty_exit(graph: Graph, routes_of: _ExitRoutes, loop: Loop) -> str:
    """Return the member to which the exit for an empty list is added (R16).

    The new exit must not cause a derived advance (R15). A member that has no ``always`` exit yet is preferred.
    """
    cursors = {id_: advance.cursor for id_ in loop.sockets if (advance := graph.sockets[id_].advance) is not None}
    moves_cursor = loop.iterator is not None and loop.iterator.cursor in cursors.values()
    candidates = list(loop.sockets if moves_cursor or loop.generator is None else cursors)
    if not candidates:
        raise _dead_end_error(graph, loop.id, "the loop has neither an exit nor an advance", "add an exit to the loop")
    return min(candidates, key=lambda id_: (routes_of.has_always_exit(id_), id_ not in cursors))


def _dead_end_error(graph: Graph, loop: str, reason: str, hint: str) -> MateriaError:
    message = f"No part can follow {graph.name!r}, since an empty list in loop {loop!r} would end the cast: {reason}."
    advice = f"{hint}, or move {graph.name} to the end of the sequence"
    return MateriaError(message, where=f"loops.{loop}", hint=advice, kind="no_way_on")


def _always_exit(source: str, target: str) -> Object:
    return {"id": f"exit:{source}:always", "from": source, "condition": "always", "targetSocketId": target}


class _ExitRoutes:
    """The exits of each loop of a part, including the exits that connect the part to the next part."""

    def __init__(self, graph: Graph) -> None:
        self.routes = {loop.id: list(loop.routes) for loop in graph.loops.values()}
        self.graph = graph

    def add(self, loop: str, source: str) -> None:
        self.routes[loop].append(ExitRoute("", loop, source, "always", END))

    def always_exits(self, loop: str) -> list[ExitRoute]:
        return [route for route in self.routes[loop] if route.condition == "always"]

    def has_always_exit(self, source: str) -> bool:
        return any(route.condition == "always" for route in self._exits_from(source))

    def ends_at(self, socket: Socket) -> bool:
        """Return True if the cast can end at a socket because a list is exhausted, or because its own list is empty."""
        has_own_iterator = socket.iterator is not None and socket.iterator.loop is None
        if has_own_iterator and not any(self.always_exits(loop) for loop in socket.loops):
            return True
        if socket.advance is None:
            return False
        conditions = [condition_spec(route.condition) for route in self._exits_from(socket.id)]
        return any(
            not any(condition.matches(result) for condition in conditions)
            for result in condition_spec(socket.advance.when).results
        )

    def reject_cycles(self) -> None:
        """Raise MateriaError if exits for empty lists form a cycle, because such a cycle ends the cast (R16)."""
        for start in self.graph.sockets.values():
            visited_ids, socket = [start.id], start
            while socket.iterator is not None and (target := self._after_empty_list(socket)) is not None:
                if target in visited_ids:
                    reason = "the exits that empty lists take form a cycle"
                    advice = "set the target of the exit to a socket outside these loops"
                    raise _dead_end_error(self.graph, socket.loops[0], reason, advice)
                visited_ids.append(target)
                socket = self.graph.sockets[target]

    def _after_empty_list(self, socket: Socket) -> str | None:
        """Return the socket at which a cast continues if the list of ``socket`` is empty, or None if the cast ends.

        The result must be the same as that of ``Rules.empty_exit`` in the engine.
        """
        loop = socket.iterator.loop if socket.iterator else None
        for routes in filter(None, map(self.always_exits, socket.loops if loop is None else (loop,))):
            target = next((route for route in routes if route.source == socket.id), routes[0]).target
            return None if target == END else target
        return None

    def _exits_from(self, source: str) -> Iterator[ExitRoute]:
        for routes in self.routes.values():
            yield from (route for route in routes if route.source == source)


# -- composing -------------------------------------------------------------------------------
# The parts share the state and pass values on in it, so its names are not changed.
# Socket ids, loops and cursors belong to one part and are renamed. With a shared cursor, a part would
# start at the position where an earlier part left it.

_PREFIXES: Final = ("loadout", "materia")
_CURSOR: Final = re.compile(r"(\{\{\s*cursor\.)([^{}]+)\}\}")
"""Pattern of a ``{{cursor.NAME}}`` variable. NAME contains no braces, so that a search takes linear time."""
_CURSORS: Final = (
    ("sockets", "*", "advance", "cursor"),
    ("sockets", "*", "foreach", "cursor"),
    ("loops", "*", "iterator", "cursor"),
    ("loops", "*", "consumes", "cursor"),
)
_EDITOR_FIELDS: Final = ("layout", "socketKind")  # fields for the editor only


@dataclass(frozen=True, slots=True)
class Composition:
    """A loadout that runs several loadouts and materia in sequence.

    Attributes:
        name: the name of the combined loadout, which lists the names of the parts.
        document: a config that contains only this loadout.
        sockets: the new id of each socket by old id, for each part in order.
        copies: the id of the original materia by the id of its copy. A materia is copied if its prompt contains the
            name of a cursor that has been renamed.
    """

    name: str
    document: Object
    sockets: tuple[Mapping[str, str], ...]
    copies: Mapping[str, str]


@dataclass(slots=True)
class _Builder:
    """A composition under construction, with the parts that have been added so far."""

    sockets: Object = field(default_factory=dict)
    loops: Object = field(default_factory=dict)
    materia: Object = field(default_factory=dict)
    copies: dict[str, str] = field(default_factory=dict)
    cursors: set[str] = field(default_factory=set)


def compose(document: Object, names: Sequence[str], folders: Mapping[str, Path] | None = None) -> Composition:
    """Combine loadouts and materia into one loadout, which runs them in sequence.

    A materia is treated as a loadout with one socket. Wherever a part would end, the combined loadout continues at the
    entry of the next part. The limits and the budget of the config apply to the whole sequence.

    Args:
        document: the config, which is not modified.
        names: the names of the parts, in order. If a loadout and a materia have the same name, write ``loadout:NAME``
            or ``materia:NAME``.
        folders: the directory of the config file that defines each materia, by materia id (R24).

    Raises:
        LoadoutError: a part has problems.
        MateriaError: a name is unknown (``unknown_part``) or ambiguous (``ambiguous_part``), or an empty list in a part
            would end the cast before the next part (``no_way_on``).
    """
    if not names:
        advice = "write the names of the loadouts and materia to link, in order"
        raise MateriaError("No loadout or materia was named.", hint=advice, kind="unknown_part")
    parts = [find_part(document, name) for name in names]
    # problems of the parts are reported before problems of the composition
    graphs = [build_graph({**document, "loadouts": {name: raw}}, name, folders) for name, raw in parts]
    numbers = count(1)  # every socket of every part gets its canonical id, in order (R26)
    new_ids = [{id_: f"Socket-{next(numbers)}" for id_ in graph.sockets} for graph in graphs]
    composition = _Builder(
        materia=dict(as_object(document.get("materia"))),
        cursors={f"{id_}Index" for ids in new_ids for id_ in ids.values()},
    )
    for position, (name, raw) in enumerate(parts):
        part = _rename(composition, parse_loadout(name, raw, as_object(document.get("materia"))), new_ids[position])
        if position + 1 < len(parts):
            target = new_ids[position + 1][graphs[position + 1].entry]
            _connect_to_next(part, graphs[position], target, used_loops=composition.loops)
        composition.sockets |= part.sockets
        composition.loops |= part.loops
    title = " + ".join(name for name, _ in parts)
    loadout: Object = {
        "description": f"A sequence of linked loadouts: {title}",
        "entry": new_ids[0][graphs[0].entry],
        "sockets": composition.sockets,
    }
    if composition.loops:
        loadout["loops"] = composition.loops
    result: Object = {**document, "activeLoadout": title, "loadouts": {title: loadout}, "materia": composition.materia}
    return Composition(title, result, tuple(new_ids), composition.copies)


def find_part(document: Object, name: str) -> tuple[str, Object]:
    """Return the name and the JSON of the loadout or materia that ``name`` refers to.

    Args:
        document: the config.
        name: the name in the format that :func:`compose` accepts.

    Raises:
        MateriaError: the name is unknown (``unknown_part``) or ambiguous (``ambiguous_part``).
    """
    groups = {"loadout": as_object(document.get("loadouts")), "materia": as_object(document.get("materia"))}
    kind, colon, unprefixed_name = name.partition(":")
    if colon and kind in _PREFIXES and name not in groups["loadout"] and name not in groups["materia"]:
        kinds, name = [kind] if unprefixed_name in groups[kind] else [], unprefixed_name
        known_names = list(groups[kind])
    else:
        kinds = [kind for kind in _PREFIXES if name in groups[kind]]
        known_names = [*groups["loadout"], *groups["materia"]]
    if not kinds:
        message = f"The loadout or materia {name!r} does not exist."
        raise MateriaError(message, hint=did_you_mean(name, known_names), kind="unknown_part")
    if len(kinds) > 1:
        message = f"{name!r} is the name of a loadout and of a materia."
        raise MateriaError(message, hint=f"write `loadout:{name}` or `materia:{name}`", kind="ambiguous_part")
    if kinds == ["materia"]:
        return name, {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": name}}}
    raw = groups["loadout"][name]
    return name, raw if is_object(raw) else {}


def _rename(composition: _Builder, facts: LoadoutFacts, ids: Mapping[str, str]) -> LinkedPart:
    """Return a part in which sockets, loops and cursors have names that no earlier part uses."""
    # Imported here, because the designer package loads pydantic, which is only needed to compose.
    from materia_nb.loadout.design.document import with_renamed_sockets, with_renamed_values

    cursors = _new_cursors(composition, facts, ids)
    raw = thawed({name: facts.raw[name] for name in ("sockets", "loops") if facts.raw.get(name)})
    renamed = with_renamed_values(with_renamed_sockets(raw, ids), _CURSORS, cursors)
    sockets = {id_: _renamed_socket(composition, facts, socket, cursors) for id_, socket in renamed["sockets"].items()}
    loops: Object = {}
    for id_, loop in as_object(renamed.get("loops")).items():
        loops[free_name(id_, {*composition.loops, *loops})] = _renamed_loop(loop, facts.raw["loops"][id_], cursors)
    return LinkedPart(sockets, loops, ids, cursors)


def _new_cursors(composition: _Builder, facts: LoadoutFacts, ids: Mapping[str, str]) -> dict[str, str]:
    """Return a unique new name for each cursor of a part.

    A cursor that is named after its socket is renamed with the socket. Other cursors keep their names unless an earlier
    part uses the name.
    """
    new_names: dict[str, str] = {}
    used_cursors = {socket.advance_cursor for socket in facts.sockets.values()}
    used_cursors |= {socket.iterator.cursor for socket in facts.sockets.values() if socket.iterator is not None}
    used_cursors |= {loop.cursor(member) for loop in facts.loops if loop.iterates for member in loop.members}
    after_socket = {f"{old}Index": f"{new}Index" for old, new in ids.items()}
    for cursor in sorted(name for name in used_cursors if name):
        new_names[cursor] = after_socket.get(cursor) or free_name(cursor, composition.cursors)
        composition.cursors.add(new_names[cursor])
    return new_names


def _renamed_socket(composition: _Builder, facts: LoadoutFacts, raw: Object, cursors: Mapping[str, str]) -> Object:
    renamed_socket: Object = {key: value for key, value in raw.items() if key not in _EDITOR_FIELDS}
    renamed_socket["materia"] = _renamed_materia(composition, raw["materia"], cursors)
    is_agent = materia_kind(as_object(facts.definitions.get(raw["materia"]))) == "agent"
    if facts.raw.get("finalize") is True and is_agent:
        renamed_socket = {"parse": "json", "finalize": True} | renamed_socket
    for name in ("handoff", "castContext"):  # defaults that the loadout sets for all its sockets
        if not raw.get(name) and facts.raw.get(name):
            renamed_socket[name] = facts.raw[name]
    return renamed_socket


def _renamed_loop(loop: Object, before: Object, cursors: Mapping[str, str]) -> Object:
    """Return a loop with updated exit ids, and with an explicit cursor if the default cursor has been renamed."""
    consumes, default = loop.get("consumes"), cursors.get("workItemIndex", "workItemIndex")
    if is_object(consumes) and not is_text(consumes.get("cursor")) and default != "workItemIndex":
        loop = {**loop, "consumes": {**consumes, "cursor": default}}
    exits = [
        {**route, "id": _exit_id(route)} if old["id"] == _exit_id(old) else route
        for route, old in zip(as_list(loop.get("exits")), as_list(before.get("exits")), strict=True)
    ]
    return {**loop, "exits": exits} if "exits" in loop else loop


def _exit_id(route: Object) -> str:
    return f"exit:{route['from']}:{route['condition']}"


def _renamed_materia(composition: _Builder, name: str, cursors: Mapping[str, str]) -> str:
    """Return the id of the materia to place instead of ``name``.

    If the prompt of the materia contains a renamed cursor, this is the id of a copy with an updated prompt.
    """
    raw = as_object(composition.materia.get(name))
    prompt: JSON = raw.get("prompt")
    if materia_kind(raw) != "agent" or not isinstance(prompt, str):
        return name
    changed_prompt = _CURSOR.sub(lambda m: m[0].replace(m[2].strip(), cursors.get(m[2].strip(), m[2].strip())), prompt)
    if changed_prompt == prompt:
        return name
    renamed_definition: Object = {"label": name, **raw, "prompt": changed_prompt}
    for copy, original in composition.copies.items():
        if original == name and composition.materia[copy] == renamed_definition:
            return copy
    id_ = free_name(name, composition.materia)
    composition.materia[id_], composition.copies[id_] = renamed_definition, name
    return id_
