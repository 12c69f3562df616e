"""The list of everything that can be selected, with a field to find it by name and buttons to go through it.

JupyterLab takes the arrow keys from a list in an output, but leaves text fields and buttons theirs: these are what
the keyboard selects with there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as ui

from materia_nb.widgets.base import Panel
from materia_nb.widgets.picks import Pick, found_by


class Chooser:
    """Selects one of ``named`` parts.

    Args:
        panel: what shows the errors.
        named: the parts and their names, all different.
        choose: called with what a person selected.
    """

    def __init__(self, panel: Panel, named: list[tuple[str, Pick]], choose: Callable[[Pick], None]) -> None:
        self._named = named
        self._choose = choose
        self._chosen: Pick | None = None
        self.list = ui.Select(
            options=named,
            value=None,
            rows=10,
            tooltip="everything that can be selected in the picture",
            layout=ui.Layout(width="auto"),
        )
        self.list.observe(panel.guarded(self._listed), names="value")
        self.find = ui.Combobox(
            options=[words.strip() for words, _ in named],
            placeholder="type a name, then Enter",
            continuous_update=False,
            layout=ui.Layout(width="auto", flex="1 1 auto"),
        )
        self.find.observe(panel.guarded(self._sought), names="value")
        self.before = _button("\N{UPWARDS ARROW}", "select the one before")
        self.next = _button("\N{DOWNWARDS ARROW}", "select the next one")
        self.before.on_click(panel.guarded(lambda _: self._move(-1)))
        self.next.on_click(panel.guarded(lambda _: self._move(1)))
        self.view = ui.VBox([ui.HBox([self.find, self.before, self.next]), self.list])

    def show(self, pick: Pick | None) -> None:
        """Show what is selected; to be called from a redraw."""
        self._chosen = pick
        if self.list.value != pick:
            self.list.value = pick
        self.find.value = ""

    def _listed(self, change: Any) -> None:
        if change["new"] is not None:
            self._choose(change["new"])

    def _sought(self, change: Any) -> None:
        if change["new"].strip():
            self._choose(found_by(change["new"], self._named))

    def _move(self, by: int) -> None:
        order = [pick for _, pick in self._named]
        place = order.index(self._chosen) + by if self._chosen in order else min(by, 0)
        self._choose(order[place % len(order)])


def _button(words: str, what: str) -> ui.Button:
    return ui.Button(description=words, tooltip=what, layout=ui.Layout(width="44px"))
