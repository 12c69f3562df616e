"""What of a design is selected and marked, and which part of it a message means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from materia_nb.display.escape import shorten
from materia_nb.engine.rules import Rules
from materia_nb.loadout.design import Design
from materia_nb.loadout.design.change import Change, refused, socket_in
from materia_nb.loadout.facts import Object, as_list, as_object
from materia_nb.loadout.graph import Graph
from materia_nb.widgets.design_parts import drawn_parts, parts
from materia_nb.widgets.picks import Pick


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

    def knows(self, pick: Pick) -> bool:
        """Whether the design has this part."""
        return any(pick == known for _, known in self.parts)

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
