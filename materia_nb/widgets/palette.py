"""The palette of a design: every materia under the heading of its group, as a button that places it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import ipywidgets as ui

from materia_nb.display.escape import part
from materia_nb.display.html import html_heading
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.colours import tint_of
from materia_nb.loadout.facts import Object, as_object, is_text, materia_group, materia_kind
from materia_nb.widgets.base import Panel, show_html, widgets_in
from materia_nb.widgets.controls import button, row

_UNGROUPED: Final = "Agent"
_LAST: Final = "Utility"


def grouped(materia: Mapping[str, JSON]) -> dict[str, list[str]]:
    """Return the ids of materia by group: agents without one first, then group by group, utilities last."""
    found: dict[str, list[str]] = {}
    for id_, raw in materia.items():
        found.setdefault(materia_group(as_object(raw)) or _UNGROUPED, []).append(id_)
    order = sorted(found, key=lambda group: (group == _LAST, group != _UNGROUPED, group.casefold()))
    return {group: found[group] for group in order}


class Palette:
    """Places a materia at a click.

    Args:
        panel: what shows the errors.
        place: called with the id of the materia that was clicked.
    """

    def __init__(self, panel: Panel, place: Callable[[str], object]) -> None:
        self.buttons: dict[str, ui.Button] = {}
        self._panel, self._place = panel, place
        self._shown: Object | None = None
        self._groups = ui.VBox([])
        self.view = ui.Accordion(
            [self._groups], titles=["palette: click a materia to place it"], selected_index=None
        )

    def show(self, materia: Object) -> None:
        """Show these materia; called from a redraw."""
        if materia == self._shown:
            return
        self._shown = dict(materia)
        old = self._groups.children
        self.buttons = {id_: self._button(id_, as_object(raw)) for id_, raw in materia.items()}
        children: list[ui.Widget] = []
        for group, ids in grouped(materia).items():
            title = ui.HTML()
            show_html(title, html_heading(part(group)))
            children += [title, row(*(self.buttons[id_] for id_ in ids))]
        self._groups.children = children
        for one in [widget for child in old for widget in widgets_in(child)]:
            one.close()

    def _button(self, id_: str, raw: Object) -> ui.Button:
        told = raw.get("description")
        about = f"{materia_kind(raw)} {id_}" + (f": {told}" if is_text(told) else "")
        made = button(part(id_, 60), part(about, 300), self._panel.guarded(partial(self._clicked, id_)))
        if (tint := tint_of(raw.get("color"))) is not None:
            made.style.button_color, made.style.text_color = tint
        return made

    def _clicked(self, id_: str, _: Any) -> None:
        self._place(id_)
