"""Changing the prompt that waits, layer by layer, for this turn only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import ipywidgets as ui

from materia_nb.engine.prompt import HEADINGS
from materia_nb.widgets.base import Panel
from materia_nb.widgets.controls import button, row, show_if
from materia_nb.widgets.runs import runs_of

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.engine.prompt import LayerName, Prompt

_LINE: Final = 70
"""Letters in a line of half a panel, about."""


class WordingPanel(Panel):
    """One field for each layer of the prompt; Apply is journaled, Revert shows the prompt as it is.

    It is part of another panel, which redraws it.
    """

    def __init__(self, cast: Cast) -> None:
        super().__init__("prompt")
        self.cast = cast
        self._shown: Prompt | None = None
        self.fields: dict[LayerName, ui.Textarea] = {
            name: ui.Textarea(
                rows=4,
                placeholder="nothing, so it is left out",
                tooltip=f"{HEADINGS[name]}: the layer {name} of the prompt",
                layout=ui.Layout(width="auto"),
            )
            for name in HEADINGS
        }
        for field in self.fields.values():
            field.observe(self.guarded(lambda _: self.refresh()), names="value")
        self._titled = {
            name: ui.VBox([ui.Label(value=HEADINGS[name]), field]) for name, field in self.fields.items()
        }
        self.apply_button = button(
            "Apply to this turn",
            "ask with this wording, this time only",
            self.guarded(self._apply),
            style="primary",
        )
        self.revert_button = button("Revert", "the prompt as it is", self.guarded(self._revert))
        fold = ui.Accordion(
            [ui.VBox([*self._titled.values(), row(self.apply_button, self.revert_button)])],
            titles=["edit this prompt, for this turn only"],
            selected_index=None,
        )
        self.put(fold)
        self.refresh()

    def _changed(self) -> list[tuple[LayerName, str]]:
        if self._shown is None:
            return []
        texts = [(layer.name, self.fields[layer.name].value) for layer in self._shown.layers]
        return [pair for pair, layer in zip(texts, self._shown.layers, strict=True) if pair[1] != layer.text]

    def _apply(self, _: Any) -> None:
        runs_of(self.cast).refuse_while_busy()
        for name, text in self._changed():
            self.cast.edit_prompt(name, text)
        self._revert(_)

    def _revert(self, _: Any) -> None:
        self._shown = None
        self.refresh()

    def draw(self) -> None:
        """Fill the fields when another prompt waits; what a person typed stays until then."""
        prompt = self.cast.prompt or self.cast.prompt_cut_short
        show_if(self.view, prompt is not None and self.cast.writable)
        if prompt is not self._shown:
            self._shown = prompt
            there = {} if prompt is None else {layer.name: layer.text for layer in prompt.layers}
            for name, field in self.fields.items():
                show_if(self._titled[name], name in there)
                field.value = there.get(name, "")
                field.rows = _rows(field.value)
        changed = bool(self._changed())
        self.apply_button.disabled = not changed or runs_of(self.cast).busy_for(self)
        self.revert_button.disabled = not changed


def _rows(text: str) -> int:
    """How many rows of a box a text fills, long lines broken; within what can be read and what fits a screen."""
    filled = sum(1 + len(line) // _LINE for line in text.split("\n"))
    return min(max(filled + 1, 4), 20)
