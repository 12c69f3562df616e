"""What a person does with the ways between sockets in design mode: edges, loops and their exits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from materia_nb.display.escape import shorten
from materia_nb.loadout.design.change import list_in, loop_in, refused, socket_in
from materia_nb.loadout.design.forms import read_field
from materia_nb.loadout.design.loops import as_edge, as_exit
from materia_nb.loadout.facts import Facts, as_list, as_object
from materia_nb.loadout.models_graph import Edge
from materia_nb.widgets.design_parts import edge_pick, exit_pick, owner_of
from materia_nb.widgets.design_selection import Selection, text_in


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
            free = next((one for one in ("always", "satisfied", "not_satisfied") if one not in used), None)
            if free is not None:
                words = self.design.add_exit(loop, source, free, to)
                self.selected = exit_pick(loop, len(exits_))
                return f"{words}, taken once its list is done"
        limit = None if most in (None, "") else read_field(Edge, "maxTraversals", str(most))
        chosen = text_in(values, "when") if when is not None else self._likely_condition(source)
        before = list(as_list(socket_in(document, source).get("edges")))
        words = self.design.add_edge(source, to, chosen, max_traversals=limit)
        after = as_list(socket_in(self.design.document, source).get("edges"))
        place = next(
            (at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a is not b), len(before)
        )
        self.selected = edge_pick(source, place)
        return words

    def _likely_condition(self, source: str) -> str:
        """What a new edge waits for: what the others of its socket leave open, so that it can be taken."""
        used = [
            as_object(edge).get("when")
            for edge in as_list(socket_in(self.design.document, source).get("edges"))
        ]
        if not used:
            return "always"
        if "satisfied" in used and "not_satisfied" not in used:
            return "not_satisfied"
        if "not_satisfied" in used:
            return "satisfied" if "satisfied" not in used else "always"
        return "not_satisfied"

    def _leaves(self, source: str, to: str) -> str | None:
        """The loop with a list that a way from ``source`` to ``to`` leaves, from which a plain edge would skip items."""
        facts = Facts(self.design.name, self.design.document, self.design.definitions)
        found = [one for one in facts.loops_of.get(source, ()) if one.iterates and to not in one.members]
        return found[0].id if found else None

    def _do_order(self, values: Mapping[str, Any]) -> str:
        pick = self.of(values)
        by = values.get("by")
        if by not in (-1, 1):
            raise refused("it can be moved up or down", "design", "press one of the arrows")
        owner, place = owner_of(pick)
        if pick[0] == "edge" and place is not None:
            words = self.design.move_edge(owner, place, place + by)
            self.selected = edge_pick(owner, place + by)
        elif pick[0] == "exit" and place is not None:
            words = self.design.move_exit(owner, place, place + by)
            self.selected = exit_pick(owner, place + by)
        else:
            raise refused("only edges and exits have an order", "design", "select one")
        return words

    def _do_loop(self, values: Mapping[str, Any]) -> str:
        given = values.get("ids")
        ids = [one for one in given if isinstance(one, str)] if isinstance(given, list) else self.marked
        if not ids and self.selected is not None and self.selected[0] == "socket":
            ids = [self.selected[1]]
        before = as_object(self.design.document.get("loops"))
        source = self.design.likely_generator(ids)
        words = self.design.make_loop(self._in_order(ids), consumes=source)
        [made] = [id_ for id_ in as_object(self.design.document.get("loops")) if id_ not in before]
        self.marked, self.selected = [], ("loop", made)
        return words if source is None else f"{words}, over the work items of {source}"

    def _in_order(self, ids: list[str]) -> list[str]:
        """The members with the one first that a way from outside leads to: there a round begins."""
        facts = Facts(self.design.name, self.design.document, self.design.definitions)
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
            members = [
                one
                for one in as_list(loop_in(self.design.document, loop).get("sockets"))
                if isinstance(one, str)
            ]
            likely = self.design.likely_generator(members)
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
        self.selected = exit_pick(loop, place)
        return words

    def _do_turn(self, values: Mapping[str, Any]) -> str:
        """Make an exit of an edge, or an edge of an exit."""
        pick = self.of(values)
        owner, place = owner_of(pick)
        document = self.design.document
        if pick[0] == "edge" and place is not None:
            to = as_object(as_list(socket_in(document, owner).get("edges"))[place]).get("to")
            loop = self._leaves(owner, str(to))
            if loop is None:
                raise refused(
                    "this edge leaves no loop", f"{owner}.edges[{place}]", "exits lead out of a loop"
                )
            words = self.design.apply(as_exit(document, owner, place, loop))
            self.selected = exit_pick(
                loop, len(list_in(loop_in(self.design.document, loop), "exits", loop)) - 1
            )
            return words
        if pick[0] == "exit" and place is not None:
            source = str(as_object(as_list(loop_in(document, owner).get("exits"))[place]).get("from"))
            words = self.design.apply(as_edge(document, owner, place))
            self.selected = ("socket", source)
            return words
        raise refused("this can be no other way out", "design", "select an edge or an exit")
