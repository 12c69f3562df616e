"""The panel in which a learner predicts the next socket of a cast from the graph and one button per possible target."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as ui
from traitlets import Int, List, Unicode

from materia_nb.cast.views.status import overlay_of
from materia_nb.display.escape import Html, html_join, html_lines, html_text
from materia_nb.display.graph_parts import line_legend
from materia_nb.display.svg import graph_svg
from materia_nb.errors import MateriaError, counted
from materia_nb.insight.why import describe_target
from materia_nb.lessons import PredictionView, Question
from materia_nb.widgets.base import Panel, button, row, runs_of, show_html, show_panel
from materia_nb.widgets.frontend import FrontendWidget, MessageRegistry, ShortText, WholeNumber

if TYPE_CHECKING:
    from materia_nb.cast import Cast


question_messages: Final = MessageRegistry("ToQuestion", "Messages to the picture of a question.")


class PredictPicture(FrontendWidget):
    """An SVG image of the graph with clickable sockets.

    Args:
        targets: the sockets that the learner can choose as a guess.
        guess: a function that is called with the clicked socket and the number of the step that the page showed.
    """

    view = Unicode("predict").tag(sync=True)
    svg = Unicode().tag(sync=True)
    targets = List(Unicode()).tag(sync=True)
    number = Int().tag(sync=True)

    def __init__(self, targets: Sequence[str], guess: Callable[[str, int], None]) -> None:
        super().__init__(targets=list(targets))
        self._make_guess = guess
        self.on_msg(self._on_message)

    def _on_message(self, _: Any, content: Any, __: Any) -> None:
        with contextlib.suppress(MateriaError):  # a malformed message is ignored
            question_messages.handle(self, content)

    @question_messages.message
    def _guess(self, target: ShortText, number: WholeNumber) -> None:
        """Submit the guess that the step with this number leads to this socket."""
        if target in self.targets:
            self._make_guess(target, number)


_LEGEND: Final = (
    f"{line_legend()} · long dashes, hollow arrow: loop exit · "
    "fine dots: the end, where no edge matches · the numbers show the order in which edges are checked"
)


_MAX_GUESSES: Final = 2  # Number of guesses before the answer is shown.


class PredictPanel(Panel):
    """A question about the next step of a cast, with the graph and a button for each possible target.

    A click on a button, or on a socket in the picture, is a guess. After a wrong guess the panel explains the mistake;
    after the second wrong guess it also reveals the answer. A button then moves on to the following step, so that the
    learner can predict a whole route.

    The question is about the state of the cast at the time the panel was created. Guesses change only the question's
    own copy of the cast, so repeated guesses are harmless.

    Args:
        cast: the cast whose route the learner predicts.
        name: the name under which guesses are stored; see :class:`materia_nb.lessons.Question`.

    Attributes:
        question: the current question, or None if there is no next step to predict.
        answer: the result of the latest guess, or None before the first guess.
        sure: a toggle for the learner's confidence in the next guess; its value is None until the learner has chosen.
        picture: the graph with clickable sockets.
    """

    def __init__(self, cast: Cast, name: str = "") -> None:
        super().__init__("predict the route")
        self.cast = cast
        self.answer: PredictionView | None = None
        self.question, self._question_text = _next_question(cast, name)
        self._question_html, self._verdict_html = ui.HTML(), ui.HTML()
        targets = self.question.targets if self.question else ()
        sockets = [target for target in targets if target in cast.graph.sockets]
        self.picture = PredictPicture(sockets, lambda target, number: self._guess(target, number)(None))
        legend = ui.HTML()
        show_html(legend, Html(f'<div class="mnb-legend">{html_text(_LEGEND)}</div>'))
        self.buttons: dict[str, ui.Button] = {}
        self._button_row, self._earlier_buttons = row(), list[ui.Button]()
        self._make_buttons()
        self.sure = ui.ToggleButtons(
            options=[("I am sure", True), ("I am guessing", False)],
            value=None,
            tooltips=["choose before you guess", "choose before you guess"],
            style={"button_width": "auto"},
        )
        self.next = button("Next step", "predict the step after this one", self.guarded(self._show_next_question))
        self.set_widgets(
            self.picture,
            legend,
            self._question_html,
            *([self.sure] if targets else []),
            self._button_row,
            self._verdict_html,
            row(self.next),
        )
        if self.question:
            self.on_close(self.question.close)
            self.on_close(self._close_earlier_buttons)
            self.watch_runs(runs_of(self.question.fork))
        self.refresh()

    def fallback(self) -> tuple[str, str | None]:
        """Return the question and the possible targets as text, and the picture of the graph."""
        state_lines = self.question.state_lines if self.question else ()
        verdict = "" if self.answer is None else repr(self.answer)
        lines = [*state_lines, self._question_text, " | ".join(self.buttons), verdict]
        return "\n".join(line for line in lines if line), self._svg()

    # -- user actions -----------------------------------------------------------

    def _make_buttons(self) -> None:
        """Create the buttons for a step. The previous buttons stay open so that a late click can be refused."""
        if self.question is None:
            return
        self._close_earlier_buttons()
        self._earlier_buttons, sockets = [*self.buttons.values()], self.cast.graph.sockets
        self.buttons = {
            target: button(
                f"{target} · {sockets[target].materia.id}" if target in sockets else target,
                describe_target(self.cast.graph.names, target),
                self._guess(target, self.question.number),
            )
            for target in self.question.targets
        }
        self._button_row.children = tuple(self.buttons.values())

    def _close_earlier_buttons(self) -> None:
        for earlier in self._earlier_buttons:
            earlier.close()
        self._earlier_buttons = []

    def _guess(self, target: str, number: int) -> Callable[[Any], None]:
        def run() -> None:
            assert self.question is not None  # noqa: S101 - without a question there are no buttons
            self.answer = self.question.guess(target, sure=self.sure.value, number=number)

        def guess(_: Any) -> None:
            assert self.question is not None  # noqa: S101 - as above
            runs = runs_of(self.question.fork)
            if not runs.running:  # the second half of a double-click
                runs.start(run)

        return self.guarded(guess)

    def _show_next_question(self, _: Any) -> None:
        assert self.question is not None  # noqa: S101 - without a question the button is hidden
        self.question.next_step()
        self.answer, self._question_text, self.sure.value = None, self.question.text, None
        self._make_buttons()
        self.refresh()

    # -- drawing ------------------------------------------------------------------------

    def draw(self) -> None:
        """Update the graph, the question, and the result of the latest guess.

        Buttons are never disabled, because a disabled button loses the keyboard focus.
        """
        self.picture.number = self.question.number if self.question else 0
        self.picture.svg = self._svg()
        state_lines = " · ".join(self.question.state_lines) if self.question else ""
        show_html(self._question_html, html_lines([line for line in (state_lines, self._question_text) if line]))
        verdict = Html() if self.answer is None else Html(self.answer._repr_mimebundle_()["text/html"])
        alert = Html(f'<div role="alert">{verdict}</div>') if verdict else verdict
        show_html(self._verdict_html, html_join([alert, html_lines(self._score_lines())]))
        for target, button_ in self.buttons.items():
            button_.button_style, button_.icon = self._button_style(target)
        # The button stays until the end of the route, because a hidden button loses the keyboard focus.
        has_next_step = self.question is not None and self.question.points and not self._is_route_complete
        self.next.layout.display = None if has_next_step else "none"

    def _button_style(self, target: str) -> tuple[str, str]:
        """Return the style and icon of a button. They mark the revealed answer and a wrong guess."""
        answer = self.answer
        if answer is not None and answer.is_revealed and target == answer.outcome:
            return "success", "check"
        if answer is not None and not answer.right and target == answer.guess:
            return "warning", "times"
        return "", ""

    @property
    def _is_route_complete(self) -> bool:
        return self.question is not None and self.question.is_revealed and not self.question.has_next

    def _score_lines(self) -> list[str]:
        points = self.question.points if self.question else []
        if len(points) < 2:
            return []
        progress = "That is the whole route" if self._is_route_complete else f"{counted(len(points), 'step')} predicted"
        return [f"{progress}, {sum(points):g} of {counted(len(points), 'point')}"]

    def _svg(self) -> str:
        if self.question is None:
            return graph_svg(self.cast.graph, overlay_of(self.cast.now))
        marks = self.question.marks_after if self.question.is_revealed else self.question.marks_before
        return graph_svg(self.cast.graph, marks)


def _next_question(cast: Cast, name: str) -> tuple[Question | None, str]:
    try:
        question = Question(cast, _MAX_GUESSES, name)
    except MateriaError as error:
        return None, error.what
    return question, question.text


def show(cast: Cast, name: str = "") -> PredictPanel:
    """Create and return the panel, and close the panels of earlier executions of the same cell."""
    return show_panel("predict", lambda: PredictPanel(cast, name))
