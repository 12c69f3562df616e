"""What the waiting agent is asked, and a person's answer to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import ipywidgets as ui

from materia_nb.display.calls import calls_html
from materia_nb.display.html import Html, html_join, html_pre, html_table
from materia_nb.engine import step as engine
from materia_nb.engine.state import Visit
from materia_nb.handoff import Issue
from materia_nb.views import PromptView, status_lines
from materia_nb.widgets.base import Panel, show_html
from materia_nb.widgets.controls import button, heading, lines_html, row, show_if
from materia_nb.widgets.hold import HoldPanel
from materia_nb.widgets.jsonhelp import output_html
from materia_nb.widgets.leave import LeavePanel
from materia_nb.widgets.runs import runs_of
from materia_nb.widgets.wording import WordingPanel
from materia_nb.widgets.working import WorkingPanel

if TYPE_CHECKING:
    from materia_nb.cast import Cast

_CHARS: Final = 8_000


class ReplyPanel(Panel):
    """The prompt that waits, what must be returned, and the box to answer in.

    A multi-turn socket shows its conversation: Refine asks for another draft, Continue for the result.
    """

    interval = 0.2

    def __init__(self, cast: Cast) -> None:
        super().__init__("reply")
        self.cast = cast
        self.runs = runs_of(cast)
        self._seen: object = None
        self._answers: tuple[int, int] | None = None
        self._prompt, self._wanted, self._told = ui.HTML(), ui.HTML(), ui.HTML()
        self.text = ui.Textarea(placeholder="the answer", rows=8, layout=ui.Layout(width="auto"))
        self.text.observe(self.guarded(lambda _: self.refresh()), names="value")
        self.send_button = button(
            "Send", "answer in place of the agent", self.guarded(self._send), style="primary"
        )
        self.message = ui.Textarea(
            placeholder="what should be different", rows=2, layout=ui.Layout(width="auto")
        )
        self.message.observe(self.guarded(lambda _: self.refresh()), names="value")
        self.refine_button = button("Refine", "ask for a changed draft", self.guarded(self._refine))
        self.continue_button = button(
            "Continue", "accept the draft and ask for the final result", self.guarded(self._continue)
        )
        self._turns = ui.VBox([self.message, row(self.refine_button, self.continue_button), self.notice])
        answer = ui.VBox(
            [self._wanted, self.text, self.above_notice(row(self.send_button)), self._told],
            layout=ui.Layout(flex="1 1 50%", min_width="280px", width="0"),
        )
        self.wording = self.own(WordingPanel(cast))
        self.hold = self.own(HoldPanel(cast))
        self.enter_button = button(
            "Show its prompt",
            "enter the next socket without running it, to read its prompt, or change it, before it is asked",
            self.guarded(self._enter),
        )
        # Under each button that may be refused: one of them is shown, or they are far from one another.
        self._entering = ui.VBox([self.enter_button, self.notice])
        asked = ui.VBox(
            [self._prompt, self._entering, self.wording.view],
            layout=ui.Layout(flex="1 1 50%", min_width="280px", width="0"),
        )
        self._answer = answer
        middle = ui.HBox([asked, answer], layout=ui.Layout(flex_flow="row wrap"))
        self.leave = self.own(LeavePanel(cast))
        self.working = self.own(WorkingPanel(cast))
        self.put(self.hold.view, self.leave.view, self.working.view, middle, self._turns)
        self.follow(cast)
        self.at_close(self.runs.watch(lambda _: self.later()))
        self.refresh()

    def fallback(self) -> tuple[str, str | None]:
        """Return the prompt as text."""
        cast, prompt = self.cast, self.cast.prompt
        lines = "\n".join(status_lines(cast))
        return (lines if prompt is None else repr(PromptView(cast.steps[-1], prompt))), None

    # -- what a person does -----------------------------------------------------------

    def _enter(self, _: Any) -> None:
        self.runs.refuse_while_busy()
        self.cast.enter()
        self.refresh()

    def _send(self, _: Any) -> None:
        self.runs.refuse_while_busy()
        self.cast.reply(self.text.value)
        self.refresh()

    def _refine(self, _: Any) -> None:
        message = self.message.value
        self.runs.start("Refine", lambda: self.cast.refine(message))
        self.message.value = ""
        self.refresh()

    def _continue(self, _: Any) -> None:
        self.runs.start("Continue", self.cast.finalize)
        self.refresh()

    # -- drawing ------------------------------------------------------------------------

    def draw(self) -> None:
        """Bring prompt and buttons up to date; the box is emptied when something else is asked."""
        self.wording.refresh()
        self.hold.refresh()
        self.leave.refresh()
        cast, visit = self.cast, self.cast.waiting_at
        prompt = cast.prompt
        asked = visit is not None and prompt is not None and cast.writable
        busy = self.runs.busy_for(self)
        show_if(self._answer, asked and not busy)
        show_if(self._entering, not asked)
        has_draft = asked and visit is not None and visit.mode == "draft" and visit.drafts > 0
        show_if(self._turns, has_draft)
        coming = cast.graph.sockets.get(cast.next_socket or "") if cast.status == "ready" else None
        show_if(self.enter_button, coming is not None and not coming.is_utility and cast.writable)
        wish = cast.wish
        seen = (id(prompt), len(cast.conversation), cast.now.steps, cast.status, visit, wish)
        if seen != self._seen:
            self._seen = seen
            show_html(self._prompt, self._prompt_html())
            show_html(self._wanted, self._wanted_html(visit))
        if visit is not None and self._answers != (visit.step, visit.turn):
            self._answers = (visit.step, visit.turn)
            self.text.value = ""
        issues = self._issues() if asked and self.text.value.strip() else []
        fine = "this answer would be taken" if self.text.value.strip() else ""
        show_html(self._told, output_html(self.text.value, issues, fine))
        self.enter_button.disabled = busy
        self.send_button.disabled = bool(issues) or not fine or busy
        self.refine_button.disabled = busy or not self.message.value.strip()
        self.continue_button.disabled = busy

    def _issues(self) -> list[Issue]:
        return list(engine.check_answer(self.cast.rules, self.cast.now, self.text.value))

    def _prompt_html(self) -> Html:
        cast, prompt = self.cast, self.cast.prompt or self.cast.prompt_cut_short
        if prompt is None and cast.held is not None and cast.writable:
            return Html("")  # the form above says what is held, and how to go on
        if prompt is None:
            return lines_html(["No agent is asked now.", *status_lines(cast)])
        parts = [Html(PromptView(cast.steps[-1], prompt, folded=True)._repr_mimebundle_()["text/html"])]
        if cast.conversation:
            parts.append(heading("the conversation so far"))
            for said in cast.conversation:
                parts += [lines_html([said.role]), calls_html(said.calls), html_pre(said.text, _CHARS)]
        if cast.wish is not None:
            parts += [heading("what is asked now"), html_pre(cast.wish, _CHARS)]
        return html_join(parts)

    def _wanted_html(self, visit: Visit | None) -> Html:
        if visit is None:
            return Html()
        rules = self.cast.rules.sockets[visit.socket]
        wanted = rules.wanted
        rows = list(wanted.describe().items())
        if visit.mode == "draft":
            return html_join([heading("what to return"), lines_html(["a draft, in plain words"])])
        if rules.works(visit.mode):
            return html_join([heading("what to return"), lines_html(["the work, in any form"])])
        if wanted.parse == "text":
            return html_join([heading("what to return"), lines_html(["plain text"])])
        shown = html_table(("field", "what it must be"), rows) if rows else lines_html(["a JSON object"])
        return html_join([heading("what to return: one JSON object"), shown])
