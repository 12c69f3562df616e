"""A list to choose one of, with buttons that go through it.

JupyterLab takes the arrow keys from a list in an output, but leaves text fields and buttons theirs: the buttons are
what the keyboard chooses with there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import ipywidgets as ui

from materia_nb.widgets.base import Panel
from materia_nb.widgets.controls import button

T = TypeVar("T")


class Choices(Generic[T]):
    """Chooses one of ``named`` values.

    Args:
        panel: what shows the errors.
        named: the values under their names, all different.
        choose: called with what a person chose.
        what: what is chosen, in a word.
        rows: how many lines the list has.
    """

    def __init__(
        self,
        panel: Panel,
        named: Sequence[tuple[str, T]],
        choose: Callable[[T], None],
        what: str,
        rows: int = 10,
    ) -> None:
        self.named = named
        self._choose = choose
        self._chosen: T | None = None
        self.list = ui.Select(
            options=named,
            value=None,
            rows=rows,
            tooltip=f"{what} (Ctrl with the arrow keys)",
            layout=ui.Layout(width="auto"),
        )
        self.list.observe(panel.guarded(self._listed), names="value")
        self.before = button(
            "\N{UPWARDS ARROW}",
            "select the one before",
            panel.guarded(lambda _: self._move(-1)),
            width="44px",
        )
        self.next = button(
            "\N{DOWNWARDS ARROW}", "select the next one", panel.guarded(lambda _: self._move(1)), width="44px"
        )

    def show(self, chosen: T | None, named: Sequence[tuple[str, T]] | None = None) -> None:
        """Show what is chosen, and other values to choose from if they are given; to be called from a redraw."""
        if named is not None and named != self.named:
            self.named = named
            self.list.options = named
        self._chosen = chosen if any(value == chosen for _, value in self.named) else None
        if self.list.value != self._chosen:
            self.list.value = self._chosen

    def _listed(self, change: Any) -> None:
        if change["new"] is not None:
            self._choose(change["new"])

    def _move(self, by: int) -> None:
        order = [value for _, value in self.named]
        if order:
            place = order.index(self._chosen) + by if self._chosen in order else min(by, 0)
            self._choose(order[place % len(order)])
