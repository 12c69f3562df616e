"""What an agent holds the cast for, and a person's word: consent, an answer, a decision in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets as ui

from materia_nb.display.calls import JUDGED, judged_html
from materia_nb.display.escape import part
from materia_nb.display.html import Html, html_join, html_table
from materia_nb.engine.state import Hold
from materia_nb.errors import MateriaError
from materia_nb.handoff.contract import Approval, request_of
from materia_nb.loadout.graph import END
from materia_nb.widgets.base import Panel, show_html
from materia_nb.widgets.controls import button, heading, lines_html, row, show_if
from materia_nb.widgets.runs import runs_of

if TYPE_CHECKING:
    from materia_nb.cast import Cast


class HoldPanel(Panel):
    """The reason, the exact command if consent is asked for, and the ways on; hidden while nothing is held.

    It is part of another panel, which redraws it.
    """

    def __init__(self, cast: Cast) -> None:
        super().__init__("held")
        self.cast = cast
        self.runs = runs_of(cast)
        self._seen: object = None
        self._reason = ui.HTML()
        self.approve_button = button(
            "Approve once",
            "the agent may run exactly this command once",
            self._starts("Approve", cast.approve),
            style="warning",
        )
        self.deny_button = button(
            "Deny",
            "the agent may not run it; the text below is told as the reason",
            self._starts("Deny", self._deny),
        )
        self._consent = row(self.approve_button, self.deny_button)
        self.text = ui.Textarea(
            placeholder="the answer, or the reason of a refusal", rows=3, layout=ui.Layout(width="auto")
        )
        self.text.observe(self.guarded(lambda _: self.refresh()), names="value")
        self.answer_button = button(
            "Answer",
            "the agent goes on with this, in the same conversation",
            self._starts("Answer", self._answer),
            style="primary",
        )
        self.yes_button = button(
            "Take it as satisfied",
            "go on as if the output said so",
            self.guarded(lambda _: self._decide(satisfied=True)),
        )
        self.no_button = button(
            "Take it as not satisfied",
            "go on as if the output said so",
            self.guarded(lambda _: self._decide(satisfied=False)),
        )
        self.target = ui.Combobox(
            placeholder="a socket, or end",
            options=[*(part(socket) for socket in cast.graph.sockets), END],
            ensure_option=False,
            layout=ui.Layout(width="180px"),
        )
        self.go_button = button(
            "Go to", "take the output and go on there, whatever the edges say", self.guarded(self._go)
        )
        decide = row(self.yes_button, self.no_button, self.go_button, self.target)
        title = ui.HTML()
        show_html(title, heading("or decide in its place"))
        self.put(self._reason, self._consent, self.text, row(self.answer_button), title, decide)
        self.refresh()

    # -- what a person does -----------------------------------------------------------

    def _starts(self, what: str, act: Any) -> Any:
        """The agent goes on at once, so it runs in the background like a step."""

        def begin(_: Any) -> None:
            self.runs.start(what, act)

        return self.guarded(begin)

    def _answer(self) -> None:
        self.cast.answer(self.text.value)

    def _deny(self) -> None:
        self.cast.deny(self.text.value)

    def _go(self, _: Any) -> None:
        self._decide(target=self.target.value.strip() or None)

    def _decide(self, *, satisfied: bool | None = None, target: str | None = None) -> None:
        self.runs.refuse_while_busy()
        self.cast.decide(satisfied=satisfied, target=target)
        self.refresh()

    # -- drawing ------------------------------------------------------------------------

    def draw(self) -> None:
        """Show what is asked for; what a person typed stays until something else is."""
        hold, busy = self.cast.held, self.runs.busy_for(self)
        show_if(self.view, hold is not None and self.cast.writable)
        if hold is not self._seen:
            self._seen = hold
            self.text.value = self.target.value = ""
            show_html(self._reason, Html() if hold is None else self._asked(hold))
        consent = hold is not None and hold.needs == "consent"
        show_if(self._consent, consent)
        sealed = self._sealed()
        self.deny_button.disabled = busy or not sealed
        self.approve_button.disabled = busy or not sealed or len(str(sealed.sealed["exact_content"])) > JUDGED
        self.answer_button.disabled = busy or not self.text.value.strip()
        for one in (self.yes_button, self.no_button):
            one.disabled = busy
        self.go_button.disabled = busy or not self.target.value.strip()

    def _sealed(self) -> Approval | None:
        try:
            return self.cast.approval
        except MateriaError:
            return None  # the reason is told instead of the command

    def _asked(self, hold: Hold) -> Html:
        socket = self.cast.now.at.socket if self.cast.now.at else ""
        needs = f" for {hold.needs}" if hold.needs else ""
        parts = [
            heading(f"{part(socket)} asks{needs}" if hold.action == "pause" else f"{part(socket)} hands over")
        ]
        parts.append(lines_html([hold.reason]))
        if hold.needs in ("consent", "direction") and isinstance(hold.reading.value, dict):
            parts += self._request(request_of(hold.reading.value))
        if hold.reading.warnings:
            parts.append(lines_html([f"Note: {one.message}" for one in hold.reading.warnings]))
        return html_join(parts)

    def _request(self, request: dict[str, Any]) -> list[Html]:
        """The request as a form: what, the exact command, what it touches, how it is taken back."""
        approval, trouble = None, ""
        try:
            approval = self.cast.approval
        except MateriaError as error:
            trouble = f"It cannot be approved: {error.what}"
        rows = [
            (name, str(request.get(key) or "not said"))
            for name, key in (
                ("operation", "operation"),
                ("touches", "scope"),
                ("risk", "risk_level"),
                ("to take it back", "rollback"),
                ("to check it", "verification"),
            )
        ]
        if approval is not None:
            rows.append(("fingerprint", approval.fingerprint))
        shown = [html_table(("what is asked", ""), rows)]
        if content := str(request.get("exact_content") or ""):
            shown.append(judged_html("exactly this", content))
            if len(content) > JUDGED:
                shown.append(lines_html(["It is too long to be shown whole, so it cannot be approved here."]))
        return [*shown, *([lines_html([trouble])] if trouble else [])]
