"""The list of everything that can be selected in a graph, with a field to find it by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as ui

from materia_nb.widgets.base import Panel
from materia_nb.widgets.choices import Choices
from materia_nb.widgets.picks import Pick, found_by


class Chooser(Choices[Pick]):
    """Selects one of ``named`` parts.

    Args:
        panel: what shows the errors.
        named: the parts and their names, all different.
        choose: called with what a person selected.
    """

    def __init__(self, panel: Panel, named: list[tuple[str, Pick]], choose: Callable[[Pick], None]) -> None:
        super().__init__(panel, named, choose, "everything that can be selected in the picture")
        self.find = ui.Combobox(
            options=[words.strip() for words, _ in named],
            placeholder="type a name, then Enter",
            continuous_update=False,
            layout=ui.Layout(width="auto", flex="1 1 auto"),
        )
        self.find.observe(panel.guarded(self._sought), names="value")
        self.view = ui.VBox([ui.HBox([self.find, self.before, self.next]), self.list])

    def show(self, chosen: Pick | None, named: Any = None) -> None:
        """Show what is selected; to be called from a redraw."""
        super().show(chosen, named)
        self.find.value = ""

    def _sought(self, change: Any) -> None:
        if change["new"].strip():
            self._choose(found_by(change["new"], list(self.named)))
