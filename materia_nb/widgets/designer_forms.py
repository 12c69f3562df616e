"""The forms of a design: what of the selected socket or edge can be changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ipywidgets as ui

from materia_nb.display.html import Html, html_text
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import read_text
from materia_nb.loadout.design import sockets as operations
from materia_nb.loadout.facts import as_list, as_object, is_number
from materia_nb.loadout.graph import END
from materia_nb.widgets.base import show_html
from materia_nb.widgets.controls import button, heading, row, show_if
from materia_nb.widgets.designer_fields import (
    buttons_field,
    choice_field,
    condition_field,
    fill,
    json_field,
    named,
    text_field,
    title,
)
from materia_nb.widgets.designer_parts import edge_pick, owner_of
from materia_nb.widgets.picks import Pick

if TYPE_CHECKING:
    from materia_nb.loadout.design import Design
    from materia_nb.widgets.designer import DesignerPanel


class Form:
    """What all forms share: the panel, the part that is selected, and a title."""

    def __init__(self, panel: DesignerPanel) -> None:
        self.panel = panel
        self.pick: Pick = ("socket", "")
        self.title = ui.HTML()
        self.view = ui.VBox([])

    @property
    def design(self) -> Design:
        """The design that is edited."""
        return self.panel.design

    @property
    def sockets(self) -> list[str]:
        """The ids of all sockets."""
        return list(as_object(self.design.document.get("sockets")))

    def put(self, *children: ui.Widget) -> None:
        """Fill the form."""
        self.view.children = (self.title, *children)

    def button(self, words: str, what: str, act: Callable[[], object], style: str = "") -> ui.Button:
        """Make a button."""
        return button(words, what, self.panel.guarded(lambda _: act()), style=style)

    def do(self, act: Callable[[], str], pick: Pick | None = None) -> None:
        """Do an operation, and select what is edited next: the same part if nothing is given."""
        self.panel.do(act, pick or self.pick)

    def show(self, pick: Pick) -> None:
        """Show a part; called from a redraw."""
        self.pick = pick
        self.fill()

    def fill(self) -> None:
        """Bring the fields up to date."""

    def name(self, text: str) -> None:
        """Say what is edited."""
        show_html(self.title, heading(text))


class SocketForm(Form):
    """A socket: its name, materia and fields, where it leads, and how it goes."""

    def __init__(self, panel: DesignerPanel) -> None:
        super().__init__(panel)
        self.id = text_field(panel, "id", "a letter, then letters, digits, . _ -", self._rename)
        self.materia = choice_field(panel, "materia", "which materia works here", self._set("materia"))
        parses = [("as its materia", ""), ("text", "text"), ("json", "json")]
        self.parse = buttons_field(panel, parses, self._set("parse"))
        self.label = text_field(panel, "label", "a name for people", self._set("label"))
        self.assign = json_field(panel, "assign", '{"plan": "$.plan"}', self._set("assign"))
        self.advance = json_field(panel, "advance", '{"when": "satisfied"}', self._set("advance"))
        self.foreach = json_field(panel, "foreach", '{"items": "state.rows"}', self._set("foreach"))
        self.handoff = text_field(panel, "handoff", "the protocol of its agent", self._set("handoff"))
        turns = [("with its work", ""), ("in a turn of its own", True)]
        self.finalize = buttons_field(panel, turns, self._set("finalize"))
        told = [("as its loadout says", ""), ("all", "full"), ("the request", "request"), ("nothing", "none")]
        self.told = buttons_field(panel, told, self._set("castContext"))
        self.to = choice_field(panel, "to", "a socket, or end", enter=self._connect)
        self.when = condition_field(panel)
        self.most = text_field(panel, "at most", "times for each item; empty: no limit", lambda _: None)
        self.connect = self.button("Connect", "lead an edge from here to there", self._connect, "info")
        self.entry = self.button("Make entry", "a cast starts here", self._make_entry)
        self.mark = self.button("Mark", "mark it, to make a loop of all that are marked", self._mark)
        self.away = self.button("Remove", "remove it and what names it", self._remove, "danger")
        self.going = ui.HTML()
        self.place = text_field(panel, "drawn at", "column, row: kept for other tools", self._place)
        self._more = False
        self.more = self.button("More fields", "show or hide the fields that are seldom set", self._fold)
        handed = named("handed over", self.finalize)
        told_of = named("told of the cast", self.told)
        seldom = [
            self.label,
            self.assign,
            self.advance,
            self.foreach,
            self.handoff,
            handed,
            told_of,
            self.place,
        ]
        self.fields = ui.VBox(seldom)
        connecting = ui.VBox(
            [title("Connect it"), self.to, named("when", self.when), self.most, row(self.connect)]
        )
        self.put(
            self.id,
            self.materia,
            named("output", self.parse),
            row(self.mark, self.entry, self.away),
            self.going,
            connecting,
            row(self.more),
            self.fields,
        )

    def fill(self) -> None:
        """Bring the fields up to date."""
        id_, document = self.pick[1], self.design.document
        socket = as_object(as_object(document.get("sockets")).get(id_))
        self.name(id_)
        fill(self.id, id_)
        self.materia.options, self.to.options = self.design.materia, (*self.sockets, END)
        for name in ("materia", "label", "handoff", "assign", "advance", "foreach"):
            fill(getattr(self, name), socket.get(name) if name in socket else _nothing(name))
        fill(self.parse, socket.get("parse", ""))
        fill(self.finalize, socket.get("finalize") or "")
        fill(self.told, socket.get("castContext") or "")
        spot = as_object(as_object(as_object(document.get("layout")).get("sockets")).get(id_))
        fill(self.place, ", ".join(str(spot[axis]) for axis in ("x", "y") if axis in spot))
        self.more.description = "Fewer fields" if self._more else "More fields"
        show_if(self.fields, self._more)
        self.entry.disabled = document.get("entry") == id_
        self.mark.description = "Unmark" if id_ in self.panel.marked else "Mark"
        gone = operations.remove_socket(document, id_).words.removeprefix("removed ")
        show_html(
            self.going, Html(f'<div style="opacity:0.75">{html_text(f"Remove takes away {gone}")}</div>')
        )

    def _set(self, field: str) -> Callable[[JSON], None]:
        def act(value: JSON) -> None:
            given = None if value == "" else value
            self.do(lambda: self.design.set_socket(self.pick[1], field, given))

        return act

    def _rename(self, new: str) -> None:
        old = self.pick[1]

        def rename() -> str:
            words = self.design.rename_socket(old, new)
            self.panel.marked = [new if one == old else one for one in self.panel.marked]
            return words

        self.do(rename, ("socket", new))

    def _connect(self) -> None:
        source, most = self.pick[1], _number(self.most.value)
        self.do(
            lambda: self.design.add_edge(source, self.to.value.strip(), self.when.value, max_traversals=most)
        )
        self.to.value = self.most.value = ""

    def _place(self, text: str) -> None:
        place = None if not text else read_text(f"[{text}]", where="drawn at")
        if place is not None and not (len(place) == 2 and all(map(is_number, place))):
            hint = "write column and row, such as 2, 0"
            raise MateriaError("A place is two numbers.", where="drawn at", hint=hint, kind="design")
        self.do(lambda: self.design.place_socket(self.pick[1], place))

    def _fold(self) -> None:
        self._more = not self._more
        self.panel.refresh()

    def _make_entry(self) -> None:
        self.do(lambda: self.design.set_entry(self.pick[1]))

    def _mark(self) -> None:
        self.panel.mark(self.pick[1])

    def _remove(self) -> None:
        self.panel.do(lambda: self.design.remove_socket(self.pick[1]), None)


class EdgeForm(Form):
    """An edge: condition, target, limit, and its place in the order in which edges are looked at (R3)."""

    def __init__(self, panel: DesignerPanel) -> None:
        super().__init__(panel)
        self.when = condition_field(panel, self._when)
        self.to = choice_field(panel, "to", "a socket, or end", self._to)
        self.most = text_field(panel, "at most", "times for each item; empty: no limit", self._limit)
        self.up = self.button("↑ earlier", "look at it before the one above", lambda: self._move(-1))
        self.down = self.button("↓ later", "look at it after the one below", lambda: self._move(1))
        self.away = self.button("Remove", "remove this edge", self._remove, "danger")
        self.put(named("when", self.when), self.to, self.most, row(self.up, self.down, self.away))

    def fill(self) -> None:
        """Bring the fields up to date."""
        source, place = self._where()
        edges = as_list(as_object(as_object(self.design.document.get("sockets")).get(source)).get("edges"))
        edge = as_object(edges[place])
        self.name(f"Edge {place + 1} of {len(edges)} from {source}")
        self.to.options = (*self.sockets, END)
        fill(self.when, edge.get("when"))
        fill(self.to, edge.get("to"))
        fill(self.most, edge.get("maxTraversals"))
        self.up.disabled, self.down.disabled = place == 0, place == len(edges) - 1

    def _where(self) -> tuple[str, int]:
        source, place = owner_of(self.pick)
        return source, place or 0

    def _when(self, when: Any) -> None:
        source, place = self._where()
        self.do(lambda: self.design.change_edge(source, place, when=when))

    def _to(self, to: str) -> None:
        source, place = self._where()
        self.do(lambda: self.design.change_edge(source, place, to=to))

    def _limit(self, text: str) -> None:
        source, place = self._where()
        self.do(lambda: self.design.limit_edge(source, place, _number(text)))

    def _move(self, by: int) -> None:
        source, place = self._where()
        self.do(lambda: self.design.move_edge(source, place, place + by), edge_pick(source, place + by))

    def _remove(self) -> None:
        source, place = self._where()
        self.do(lambda: self.design.remove_edge(source, place), ("socket", source))


def _nothing(field: str) -> JSON:
    """What an absent field shows as."""
    return "" if field in ("materia", "label", "handoff") else None


def _number(text: str) -> Any:
    """The number in a field, None when it is empty; what is no whole number stays text, for the operation to refuse."""
    text = text.strip()
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
