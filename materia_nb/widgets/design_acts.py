"""What a person does in design mode to what is selected: fields that are typed, and the ways between sockets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from materia_nb.display.escape import shorten
from materia_nb.engine.rules import Rules
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.design import Design
from materia_nb.loadout.design.document import Change, list_in, loop_in, refused, socket_in
from materia_nb.loadout.design.forms import read_field
from materia_nb.loadout.design.loops import edge_to_exit, exit_to_edge, make_loop, with_exits
from materia_nb.loadout.design.sockets import materia_model
from materia_nb.loadout.facts import Facts, Object, as_list, as_object, is_condition
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.models import Consumes, Iterator, Loadout
from materia_nb.loadout.models_graph import Edge, ExitRoute, Loop, Socket
from materia_nb.loadout.vocabulary import CONDITIONS, SENDING_BACK, unmet
from materia_nb.widgets.picks import Pick, drawn_parts, members_of, owner_of, parts, way_pick, ways_of


class Selection:
    """A design, and which of its parts a person looks at.

    Args:
        design: what is edited.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.selected: Pick | None = None
        self.marked: list[str] = []
        self._parts: tuple[Change, Object, list[tuple[str, Pick]]] | None = None
        self._rules: tuple[Graph, Rules] | None = None

    @property
    def parts(self) -> list[tuple[str, Pick]]:
        """Every part of the design under a name of its own."""
        now, config = self.design.now, self.design.config
        if self._parts is None or self._parts[0] is not now or self._parts[1] is not config:
            self._parts = now, config, parts(self.design.document, self.design.graph())
        return self._parts[2]

    @property
    def rules(self) -> Rules:
        """What a cast of the design would run by; only while nothing stops a cast."""
        graph = self.design.graph()
        if self._rules is None or self._rules[0] is not graph:
            self._rules = graph, Rules(graph)
        return self._rules[1]

    @property
    def facts(self) -> Facts:
        """The design with its materia, as far as it is well formed."""
        return Facts(self.design.name, self.design.document, self.design.definitions)

    def knows(self, pick: Pick) -> bool:
        """Whether the design has this part."""
        return any(pick == known for _, known in self.parts)

    def ask_to_make(self, name: str, again: Mapping[str, Any]) -> None:
        """Ask what is meant by a materia that is not there; ``again`` is the message that named it."""
        raise NotImplementedError

    def of(self, values: Mapping[str, Any]) -> Pick:
        """Return the part that a message says it is about; raises MateriaError when it says none."""
        pick = self.pick(values.get("of"))
        if pick is None:
            raise refused("it is not said what this is about", "design", "reload the page")
        return pick

    def _do_pick(self, values: Mapping[str, Any]) -> None:
        pick = self.pick(values.get("what", [values.get("part"), values.get("id")]))
        if values.get("add") is True and pick is not None and pick[0] == "socket":
            if not self.marked and self.selected is not None and self.selected[0] == "socket":
                self.marked = [self.selected[1]] if self.selected != pick else []
            self._do_mark({"id": pick[1]})
        elif values.get("keep") is not True:
            self.marked = []
        self.selected = pick

    def _do_mark(self, values: Mapping[str, Any]) -> None:
        id_ = text_in(values, "id")
        socket_in(self.design.document, id_)
        if id_ in self.marked:
            self.marked.remove(id_)
        else:
            self.marked.append(id_)

    def _do_marquee(self, values: Mapping[str, Any]) -> None:
        known = as_object(self.design.document.get("sockets"))
        ids = [one for one in as_list(values.get("ids")) if isinstance(one, str) and one in known]
        self.marked = [one for one in known if one in ids]
        if len(self.marked) == 1:
            self.selected = ("socket", self.marked[0])
        elif self.marked:
            self.selected = None

    def pick(self, what: object) -> Pick | None:
        """Read a part as the page names it: one of its own, or of the picture."""
        kind, key = (what[0], what[1]) if isinstance(what, list | tuple) and len(what) == 2 else (None, None)
        if kind is None:
            return None
        pick: Any = (kind, key)
        drawn = drawn_parts(self.design.document, self.design.graph())
        pick = drawn.get(pick, pick)
        if not (isinstance(kind, str) and isinstance(key, str) and self.knows(pick)):
            raise refused(
                f"there is no {shorten(str(kind), 20)} {shorten(str(key), 60)!r}",
                "design",
                "it may have been removed",
            )
        found: Pick = pick
        return found


def text_in(values: Mapping[str, Any], name: str) -> str:
    """Return a text of a message; raises MateriaError when there is none."""
    value = values.get(name)
    if not isinstance(value, str):
        raise refused(f"{name} is missing", "design", "choose or type one")
    return value


class Ways(Selection):
    """The acts on edges, loops and exits; each takes the values of a message and returns what it did in words."""

    def _do_connect(self, values: Mapping[str, Any]) -> str:
        source, to = text_in(values, "from"), text_in(values, "to")
        document, most = self.design.document, values.get("most")
        when = values.get("when")
        loop = self._leaves(source, to) if when is None and not most else None
        if loop is not None:
            exits_ = list_in(loop_in(document, loop), "exits", loop)
            used = {as_object(one).get("condition") for one in exits_ if as_object(one).get("from") == source}
            free = next((one for one in CONDITIONS if one not in used), None)
            if free is not None:
                words = self.design.add_exit(loop, source, free, to)
                self.selected = way_pick("exit", loop, len(exits_))
                return f"{words}, taken once its list is done"
        limit = None if most in (None, "") else read_field(Edge, "maxTraversals", str(most))
        chosen = text_in(values, "when") if when is not None else self._likely_condition(source)
        before = ways_of(document, "edge", source)
        words = self.design.add_edge(source, to, chosen, max_traversals=limit)
        after = ways_of(self.design.document, "edge", source)
        place = next(
            (at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a is not b), len(before)
        )
        self.selected = way_pick("edge", source, place)
        return words

    def _likely_condition(self, source: str) -> str:
        """What a new edge waits for: what the others of its socket leave open, so that it can be taken."""
        used = [as_object(edge).get("when") for edge in ways_of(self.design.document, "edge", source)]
        if not used:
            return "always"
        # Guards go before an edge that always matches, so such a one leaves all of them open.
        left = unmet([when for when in used if is_condition(when) and when != "always"])
        return next((when for when in left if when in SENDING_BACK), left[0] if left else "always")

    def _leaves(self, source: str, to: str) -> str | None:
        """The loop with a list that a way from ``source`` to ``to`` leaves, from which a plain edge would skip items."""
        found = [one for one in self.facts.loops_of.get(source, ()) if one.iterates and to not in one.members]
        return found[0].id if found else None

    def _do_order(self, values: Mapping[str, Any]) -> str:
        pick = self.of(values)
        by = values.get("by")
        if by not in (-1, 1):
            raise refused("it can be moved up or down", "design", "press one of the arrows")
        owner, place = owner_of(pick)
        if place is None:
            raise refused("only edges and exits have an order", "design", "select one")
        move = self.design.move_edge if pick[0] == "edge" else self.design.move_exit
        words = move(owner, place, place + by)
        self.selected = way_pick(pick[0], owner, place + by)
        return words

    def _do_loop(self, values: Mapping[str, Any]) -> str:
        given = values.get("ids")
        ids = [one for one in given if isinstance(one, str)] if isinstance(given, list) else self.marked
        if not ids and self.selected is not None and self.selected[0] == "socket":
            ids = [self.selected[1]]
        before = as_object(self.design.document.get("loops"))
        source = self.design.likely_generator(ids)
        change = make_loop(self.design.document, self._in_order(ids), consumes=source)
        [made] = [id_ for id_ in as_object(change.document.get("loops")) if id_ not in before]
        words = change.words
        if source is not None:
            words += f", over the work items of {source}"
            change, turned = with_exits(change, made)
            if turned:
                words += f"; {', '.join(turned)} {'are exits' if len(turned) > 1 else 'is an exit'} of it now"
        self.design.apply(replace(change, words=words))
        self.marked, self.selected = [], ("loop", made)
        return words

    def _in_order(self, ids: list[str]) -> list[str]:
        """The members with the one first that a way from outside leads to: there a round begins."""
        facts = self.facts
        led = {to for id_ in facts.sockets if id_ not in ids for to in facts.targets(id_)}
        first = next((id_ for id_ in ids if id_ in led), None)
        return ids if first is None else [first, *(id_ for id_ in ids if id_ != first)]

    def _do_members(self, values: Mapping[str, Any]) -> str:
        given = values.get("ids")
        ids = [one for one in given if isinstance(one, str)] if isinstance(given, list) else list(self.marked)
        words = self.design.set_members(text_in(values, "loop"), ids)
        self.marked = []
        return words

    def _do_source(self, values: Mapping[str, Any]) -> str:
        loop, source = text_in(values, "loop"), values.get("source")
        if source == "consumes":
            likely = self.design.likely_generator(members_of(self.design.document, loop))
            return self.design.set_source(loop, "consumes", **({} if likely is None else {"from_": likely}))
        if source == "iterator":
            return self.design.set_source(loop, "iterator")
        if source in ("", None):
            return self.design.set_source(loop, None)
        raise refused(
            f"a loop has no {shorten(str(source), 40)!r}", loop, "choose work items, a list, or nothing"
        )

    def _do_exit(self, values: Mapping[str, Any]) -> str:
        loop = text_in(values, "loop")
        place = len(list_in(loop_in(self.design.document, loop), "exits", loop))
        words = self.design.add_exit(
            loop, text_in(values, "from"), text_in(values, "when"), text_in(values, "to")
        )
        self.selected = way_pick("exit", loop, place)
        return words

    def _do_turn(self, values: Mapping[str, Any]) -> str:
        """Make an exit of an edge, or an edge of an exit."""
        pick = self.of(values)
        owner, place = owner_of(pick)
        document = self.design.document
        if pick[0] == "edge" and place is not None:
            to = as_object(ways_of(document, "edge", owner)[place]).get("to")
            loop = self._leaves(owner, str(to))
            if loop is None:
                raise refused(
                    "this edge leaves no loop", f"{owner}.edges[{place}]", "exits lead out of a loop"
                )
            words = self.design.apply(edge_to_exit(document, owner, place, loop))
            self.selected = way_pick("exit", loop, len(ways_of(self.design.document, "exit", loop)) - 1)
            return words
        if pick[0] == "exit" and place is not None:
            source = str(as_object(ways_of(document, "exit", owner)[place]).get("from"))
            words = self.design.apply(exit_to_edge(document, owner, place))
            self.selected = ("socket", source)
            return words
        raise refused("this can be no other way out", "design", "select an edge or an exit")


def set_field(session: Selection, kind: str, key: str, field: str, typed: JSON) -> str | None:
    """Give a field of a part the value that was typed; returns what was done in words.

    Raises:
        MateriaError: there is no such part or field, or it cannot have this value.
    """
    design = session.design
    if kind == "materia":
        model = materia_model(as_object(design.definitions.get(key)))
        return design.set_materia(key, field, read_field(model, field, typed))
    if kind == "loadout":
        return _set_loadout(session, field, typed)
    pick = session.pick([kind, key])
    if pick is None:
        raise refused("it is not said what this is about", "design", "reload the page")
    if kind == "socket":
        return _set_socket(session, key, field, typed)
    if kind == "loop":
        return _set_loop(session, key, field, typed)
    owner, place = owner_of(pick)
    if kind == "edge" and place is not None:
        return _set_edge(session, owner, place, field, typed)
    if kind == "exit" and place is not None:
        return _set_exit(session, owner, place, field, typed)
    raise refused("this has no such field", f"{kind} {key}", "remove it and make it anew")


def _set_loadout(session: Selection, field: str, typed: JSON) -> str:
    value = read_field(Loadout, field, typed)
    if field == "entry":
        return session.design.set_entry(str(value))
    return session.design.set_loadout(field, value)


def _set_socket(session: Selection, id_: str, field: str, typed: JSON) -> str | None:
    if field == "id":
        new = str(typed).strip()
        words = session.design.rename_socket(id_, new)
        session.marked = [new if one == id_ else one for one in session.marked]
        if session.selected == ("socket", id_):
            session.selected = ("socket", new)
        return words
    value = read_field(Socket, field, typed)
    if field == "materia" and value not in session.design.definitions:
        if value is None:
            raise refused("a socket has a materia", f"{id_}.materia", "name one, or remove the socket")
        session.ask_to_make(value, {"kind": "set", "of": ["socket", id_], "field": "materia"})
        raise refused(
            f"there is no materia {shorten(str(value), 60)!r}", f"{id_}.materia", "choose one, or make it"
        )
    return session.design.set_socket(id_, field, value)


def _set_edge(session: Selection, source: str, place: int, field: str, typed: JSON) -> str:
    value = read_field(Edge, field, typed)
    if field == "maxTraversals":
        return session.design.limit_edge(source, place, value)
    if value is None:
        raise refused(f"an edge needs {field}", f"{source}.edges[{place}]", "choose one, or remove the edge")
    return session.design.change_edge(source, place, **{"when" if field == "when" else "to": str(value)})


def _set_exit(session: Selection, loop: str, place: int, field: str, typed: JSON) -> str:
    value = read_field(ExitRoute, field, typed)
    names = {"id": "id_", "from": "source", "condition": "condition", "targetSocketId": "target"}
    if value is None:
        raise refused(
            f"an exit needs {field}", f"loops.{loop}.exits[{place}]", "choose one, or remove the exit"
        )
    return session.design.change_exit(loop, place, **{names[field]: str(value)})


def _set_loop(session: Selection, loop: str, field: str, typed: JSON) -> str:
    if field == "id":
        new = str(typed).strip()
        words = session.design.rename_loop(loop, new)
        if session.selected == ("loop", loop):
            session.selected = ("loop", new)
        return words
    for source, model in (("consumes", Consumes), ("iterator", Iterator)):
        if field.startswith(f"{source}."):
            name = field.removeprefix(f"{source}.")
            value = read_field(model, name, typed)
            given: dict[str, Any] = {{"from": "from_", "as": "as_"}.get(name, name): value}
            return session.design.set_source(loop, source, **given)
    return session.design.set_loop(loop, field, read_field(Loop, field, typed))
