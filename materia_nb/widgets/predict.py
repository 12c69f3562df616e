"""Predicting where the next step leads: a button for each socket, and what came of the guess."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as ui

from materia_nb.display.html import Html
from materia_nb.display.svg import graph_svg
from materia_nb.errors import MateriaError
from materia_nb.lessons import PredictionView, choices, predict, question
from materia_nb.views import marks_of
from materia_nb.widgets.base import Panel, show_html, show_panel
from materia_nb.widgets.controls import button, lines_html, row
from materia_nb.widgets.runs import Runs, runs_of

if TYPE_CHECKING:
    from materia_nb.cast import Cast


_WORDS: Final = {
    "end": "the cast comes to its end",
    "stop": "the cast stops: it fails, or a person is needed",
}


class PredictPanel(Panel):
    """A question, and a button for each place that the next step could lead to; a click runs the step.

    Args:
        cast: which.

    Attributes:
        answer: what came of the latest guess; None before the first.
    """

    interval = 0.1

    def __init__(self, cast: Cast) -> None:
        super().__init__("predict the route")
        self.cast = cast
        self.runs = runs_of(cast)
        self.answer: PredictionView | None = None
        self._question, self._told = ui.HTML(), ui.HTML()
        self.buttons = {
            place: button(place, _WORDS.get(place, f"it goes to {place}"), self._guess(place))
            for place in choices(cast)
        }
        self.put(self._question, row(*self.buttons.values()), self._told)
        self.follow(cast)
        self.at_close(self.runs.watch(self._ran))
        self.refresh()

    def fallback(self) -> tuple[str, str | None]:
        """Return the question, the places to choose from, and the picture of the graph."""
        asked, _ = self._now()
        return f"{asked}\n{' | '.join(self.buttons)}", graph_svg(self.cast.graph, marks_of(self.cast))

    # -- what a person does -----------------------------------------------------------

    def _guess(self, place: str) -> Callable[[Any], None]:
        def run() -> None:
            self.answer = predict(self.cast, place)

        def guess(_: Any) -> None:
            self.runs.start("Predict", run)
            self.refresh()

        return self.guarded(guess)

    def _ran(self, runs: Runs) -> None:
        if runs.error is not None:
            self.fail(runs.error)
        self.later()

    # -- drawing ------------------------------------------------------------------------

    def draw(self) -> None:
        """Bring the question and the buttons up to date, and tell what came of the latest guess."""
        asked, open_ = self._now()
        show_html(self._question, lines_html([asked]))
        busy = self.runs.busy_for(self)
        for one in self.buttons.values():
            one.disabled = busy or not open_ or not self.cast.writable
        told = self.answer
        show_html(self._told, Html() if told is None else Html(told._repr_mimebundle_()["text/html"]))

    def _now(self) -> tuple[str, bool]:
        """The question of this moment, or why there is none; whether there is one."""
        try:
            return question(self.cast), True
        except MateriaError as error:
            return error.what, False


def show(cast: Cast) -> PredictPanel:
    """Make the panel; what earlier runs of the same cell showed is closed."""
    return show_panel("predict", lambda: PredictPanel(cast))
