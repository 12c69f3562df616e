"""What a step handed on and why it went where it went; the last output can be corrected."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as ui

from materia_nb.display.escape import part
from materia_nb.display.html import Html, html_join
from materia_nb.handoff_view import HandoffView
from materia_nb.translation_view import other_formats_html
from materia_nb.views import WhyView
from materia_nb.widgets.base import Panel, show_html
from materia_nb.widgets.controls import button, heading, lines_html, row, show_if
from materia_nb.widgets.jsonhelp import output_html
from materia_nb.widgets.runs import runs_of

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.session import StepRecord

LATEST: Final = 0
_MOST_STEPS: Final = 200


class HandoffPanel(Panel):
    """The handoff of one step, the latest unless another is chosen, and a correction of the latest.

    Args:
        cast: whose steps.
        chosen: called with a step that a person chose.
    """

    interval = 0.2

    def __init__(self, cast: Cast, chosen: Callable[[StepRecord], object] = lambda _: None) -> None:
        super().__init__("handoff")
        self.cast = cast
        self._seen: object = None
        self._corrects: tuple[int, int, int] | None = None
        self._given = ""
        self.choice = ui.Dropdown(
            options=[("the latest step", LATEST)],
            tooltip="which step; the space bar opens the list",
            layout=ui.Layout(width="420px"),
        )
        self._told_of = chosen
        self.choice.observe(self.guarded(self._chose), names="value")
        self._handoff, self._others, self._why, self._told = (ui.HTML() for _ in range(4))
        self.text = ui.Textarea(
            placeholder="the corrected output", rows=6, layout=ui.Layout(width="auto"), continuous_update=True
        )
        self.text.observe(self.guarded(lambda _: self.refresh()), names="value")
        self.recommit_button = button(
            "Recommit",
            "decide the step again with this output; the original is kept",
            self.guarded(self._recommit),
            style="primary",
        )
        self.restore_button = button("Revert", "the output as it is", self.guarded(self._restore))
        title = ui.HTML()
        show_html(title, heading("correct the output of the last step"))
        self._edit = ui.VBox([title, self.text, row(self.recommit_button, self.restore_button), self._told])
        self._choosing = row(ui.Label(value="step"), self.choice)
        self.put(self._choosing, self._handoff, self._others, self._why, self._edit)
        self.follow(cast)
        self.at_close(runs_of(cast).watch(lambda _: self.later()))
        self.refresh()

    def select(self, number: int) -> None:
        """Show the step of that number; 0 is the latest, whichever that is."""
        self.refresh()
        self.choice.value = number
        self.refresh()

    def fallback(self) -> tuple[str, str | None]:
        """Return the handoff as text."""
        record = self._record()
        return ("no step yet" if record is None else repr(HandoffView(self.cast, record))), None

    # -- what a person does -----------------------------------------------------------

    def _chose(self, _: Any) -> None:
        self.refresh()
        record = self._record()
        if record is not None:
            self._told_of(record)

    def _recommit(self, _: Any) -> None:
        runs_of(self.cast).refuse_while_busy()
        self.cast.recommit(self.text.value)
        self._corrects = None
        self.refresh()

    def _restore(self, _: Any) -> None:
        self._corrects = None
        self.refresh()

    # -- drawing ------------------------------------------------------------------------

    def draw(self) -> None:
        """Bring the step, the choice and the correction up to date; what a person typed stays."""
        show_if(self._choosing, self.past is None)
        steps = self.cast.steps
        options = [("the latest step", LATEST), *(_option(one) for one in reversed(steps[-_MOST_STEPS:]))]
        if tuple(options) != tuple(self.choice.options):
            chosen = self.choice.value
            self.choice.options = options
            self.choice.value = chosen if chosen in {number for _, number in options} else LATEST
        record = self._record()
        seen = (None, 0, None) if record is None else (id(record), len(record.turns), record.after)
        if seen != self._seen:
            self._seen = seen
            shown = self.past or self.cast
            show_html(self._handoff, handoff_html(shown, record))
            show_html(self._others, other_formats_html(shown, record))
            show_html(self._why, why_html(shown, record))
        self._draw_edit()

    def _record(self) -> StepRecord | None:
        if self.past is not None:
            return self.past.steps[-1] if self.past.steps else None
        steps, chosen = self.cast.steps, self.choice.value
        if not steps:
            return None
        return steps[chosen - 1] if 0 < chosen <= len(steps) else steps[-1]

    def _draw_edit(self) -> None:
        cast, record = self.cast, self.cast.steps[-1] if self.cast.steps else None
        latest = self.past is None and record is not None and self._record() is record
        open_ = latest and bool(record and record.turns) and cast.status != "waiting" and cast.writable
        show_if(self._edit, open_)
        if record is None or not open_:
            return
        this = (record.branch, record.number, len(record.turns))
        if self._corrects != this:
            self._corrects, self._given = this, record.output or ""
            self.text.value = self._given
        rules = cast.rules.sockets[record.socket]
        issues = rules.protocol.read(self.text.value, rules.wanted).issues
        changed = self.text.value != self._given
        fine = "this output would be taken" if changed else ""
        show_html(self._told, output_html(self.text.value, list(issues), fine))
        self.recommit_button.disabled = bool(issues) or not changed or runs_of(cast).busy_for(self)
        self.restore_button.disabled = not changed


def _option(step: StepRecord) -> tuple[str, int]:
    item = f", {step.item_key} {part(step.item_label or '', 40)}" if step.item_key else ""
    return f"{step.number}: {part(step.socket)}, visit {step.visit}{item}", step.number


def handoff_html(cast: Snapshot, record: StepRecord | None) -> Html:
    """Show what a step handed on."""
    if record is None:
        return lines_html(["No step yet: nothing has been handed on."])
    # The view's own builders have escaped it.
    return Html(HandoffView(cast, record)._repr_mimebundle_()["text/html"])


def why_html(cast: Snapshot, record: StepRecord | None) -> Html:
    """Explain why a step went where it went, in words and as a table; nothing without a step."""
    if record is None:
        return Html()
    shown = Html(WhyView(cast.why(record.number))._repr_mimebundle_()["text/html"])
    return html_join([heading("why"), shown])
