"""The forms of a design for loop regions and their exits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ipywidgets as ui

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import Object, as_list, as_object, is_object
from materia_nb.loadout.graph import END
from materia_nb.widgets.base import show_html
from materia_nb.widgets.controls import row, show_if
from materia_nb.widgets.designer_fields import (
    buttons_field,
    choice_field,
    condition_field,
    fill,
    named,
    text_field,
    title,
)
from materia_nb.widgets.designer_forms import Form
from materia_nb.widgets.designer_parts import exit_pick, owner_of

if TYPE_CHECKING:
    from materia_nb.widgets.designer import DesignerPanel


class LoopForm(Form):
    """A loop: its name, members and list, and new exits."""

    def __init__(self, panel: DesignerPanel) -> None:
        super().__init__(panel)
        self.id = text_field(panel, "name", "a name for the loop", self._rename)
        self.members = ui.HTML()
        self.remake = self.button(
            "Take marked as members", "make the loop of the marked sockets", self._remake
        )
        kinds = [("work items", "consumes"), ("a list", "iterator"), ("nothing", "")]
        self.kind = buttons_field(panel, kinds, self._kind)
        self.source = choice_field(panel, "of", "the generator's socket", self._set("consumes", "from_"))
        self.items = text_field(panel, "list", "such as state.rows", self._set("iterator", "items"))
        self.alias = text_field(panel, "item is", "the name of an item in the state", self._alias)
        self.from_ = choice_field(panel, "from", "the member that is last")
        self.when = condition_field(panel)
        self.to = choice_field(panel, "to", "a socket, or end", enter=self._add)
        self.add = self.button("Add exit", "add a way out, taken when the list is done", self._add, "info")
        self.away = self.button(
            "Delete loop", "delete it and its exits; its sockets stay", self._delete, "danger"
        )
        self.put(
            self.id,
            self.members,
            row(self.remake, self.away),
            named("goes over", self.kind),
            self.source,
            self.items,
            self.alias,
            title("Add an exit"),
            self.from_,
            named("when", self.when),
            self.to,
            row(self.add),
        )

    def fill(self) -> None:
        """Bring the fields up to date."""
        id_, loop = self.pick[1], self._loop()
        members = [one for one in as_list(loop.get("sockets")) if isinstance(one, str)]
        kind = next((name for name in ("iterator", "consumes") if is_object(loop.get(name))), "")
        spec = as_object(loop.get(kind)) if kind else {}
        self.name(f"Loop {id_}")
        fill(self.id, id_)
        show_html(self.members, f"members: {', '.join(members) or 'none'}")
        self.remake.disabled = not self.panel.marked
        fill(self.kind, kind)
        for field, shown in ((self.source, "consumes"), (self.items, "iterator")):
            show_if(field, kind == shown)
        show_if(self.alias, bool(kind))
        fill(self.source, spec.get("from", ""))
        fill(self.items, spec.get("items", ""))
        fill(self.alias, spec.get("as", ""))
        self.source.options = self.sockets
        self.from_.options, self.to.options = members, (*self.sockets, END)

    def _loop(self) -> Object:
        return as_object(as_object(self.design.document.get("loops")).get(self.pick[1]))

    def _rename(self, new: str) -> None:
        old = self.pick[1]
        self.do(lambda: self.design.rename_loop(old, new), ("loop", new))

    def _remake(self) -> None:
        self.do(lambda: self.design.set_members(self.pick[1], self.panel.marked))

    def _kind(self, kind: Any) -> None:
        id_ = self.pick[1]
        if kind == "consumes":
            members = [one for one in as_list(self._loop().get("sockets")) if isinstance(one, str)]
            likely = self.design.likely_generator(members)
            given: dict[str, JSON] = {} if likely is None else {"from_": likely}
            self.do(lambda: self.design.set_source(id_, "consumes", **given))
        elif kind == "iterator":
            self.do(lambda: self.design.set_source(id_, "iterator"))
        else:
            self.do(lambda: self.design.set_source(id_, None))

    def _set(self, kind: Any, field: str) -> Callable[[str], None]:
        def act(value: str) -> None:
            given: dict[str, Any] = {field: value or None}
            self.do(lambda: self.design.set_source(self.pick[1], kind, **given))

        return act

    def _alias(self, value: str) -> None:
        self._set(self.kind.value, "as_")(value)

    def _add(self) -> None:
        id_ = self.pick[1]
        ends = self.from_.value.strip(), self.when.value, self.to.value.strip()
        self.do(lambda: self.design.add_exit(id_, *ends))
        self.from_.value = self.to.value = ""

    def _delete(self) -> None:
        self.panel.do(lambda: self.design.delete_loop(self.pick[1]), None)


class ExitForm(Form):
    """A way out of a loop; it belongs to the loop and is no edge of a socket."""

    def __init__(self, panel: DesignerPanel) -> None:
        super().__init__(panel)
        self.from_ = choice_field(panel, "from", "the member that is last", self._change("source"))
        self.when = condition_field(panel, self._change("condition"))
        self.to = choice_field(panel, "to", "a socket, or end", self._change("target"))
        self.id = text_field(panel, "id", "a name that is unique in the loop", self._change("id_"))
        self.up = self.button("↑ earlier", "put it before the one above", lambda: self._move(-1))
        self.down = self.button("↓ later", "put it after the one below", lambda: self._move(1))
        self.away = self.button("Remove", "remove this exit", self._remove, "danger")
        self.note = ui.HTML()
        self.fields = ui.VBox([self.from_, named("when", self.when), self.to, self.id])
        self.put(self.note, self.fields, row(self.up, self.down, self.away))

    def fill(self) -> None:
        """Bring the fields up to date."""
        loop, place = owner_of(self.pick)
        raw = as_object(as_object(self.design.document.get("loops")).get(loop))
        show_if(self.fields, place is not None)
        for one in (self.up, self.down):
            show_if(one, place is not None)
        if place is None:
            self.name(f"Exit of loop {loop}, in the older form")
            show_html(
                self.note,
                "It is the loop's field exit, which also sets an advance. Remove takes the field away.",
            )
            return
        show_html(self.note, "")
        routes = as_list(raw.get("exits"))
        route = as_object(routes[place])
        self.name(f"Exit {place + 1} of {len(routes)} of loop {loop}")
        self.from_.options = [one for one in as_list(raw.get("sockets")) if isinstance(one, str)]
        self.to.options = (*self.sockets, END)
        fill(self.from_, route.get("from"))
        fill(self.when, route.get("condition"))
        fill(self.to, route.get("targetSocketId"))
        fill(self.id, route.get("id"))
        self.up.disabled, self.down.disabled = place == 0, place == len(routes) - 1

    def _change(self, field: str) -> Callable[[Any], None]:
        def act(value: Any) -> None:
            loop, place = owner_of(self.pick)
            given: dict[str, Any] = {field: value}
            self.do(lambda: self.design.change_exit(loop, place or 0, **given))

        return act

    def _move(self, by: int) -> None:
        loop, place = owner_of(self.pick)
        to = (place or 0) + by
        self.do(lambda: self.design.move_exit(loop, place or 0, to), exit_pick(loop, to))

    def _remove(self) -> None:
        loop, place = owner_of(self.pick)
        if place is None:
            self.do(lambda: self.design.set_loop(loop, "exit", None), ("loop", loop))
        else:
            self.do(lambda: self.design.remove_exit(loop, place), ("loop", loop))
