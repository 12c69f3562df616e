"""Tool calls that wait for a person's leave: once, always in this cast, or no."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ipywidgets as ui

from materia_nb.display.calls import calls_html
from materia_nb.display.escape import part
from materia_nb.display.html import html_join
from materia_nb.widgets.base import Panel, show_html
from materia_nb.widgets.controls import button, heading, row, show_if
from materia_nb.widgets.runs import runs_of

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.engine.said import ToolCall


class LeavePanel(Panel):
    """The calls with everything that they were given, and three buttons; hidden while none waits.

    It is part of another panel, which redraws it.
    """

    def __init__(self, cast: Cast) -> None:
        super().__init__("leave")
        self.cast = cast
        self.runs = runs_of(cast)
        self._seen: tuple[ToolCall, ...] = ()
        self._calls = ui.HTML()
        self.once_button = button(
            "Allow once",
            "run exactly this",
            self._starts("Allow once", lambda seen: cast.approve(calls=seen)),
            style="warning",
        )
        self.always_button = button(
            "Allow always",
            "run it, and let later calls of the same tools run without asking, in this cast",
            self._starts("Allow always", lambda seen: cast.approve(always=True, calls=seen)),
        )
        self.deny_button = button(
            "Do not allow",
            "the agent goes on without; the text beside is told as the reason",
            self._starts("Do not allow", self._deny),
        )
        self.reason = ui.Text(placeholder="the reason, for the agent", layout=ui.Layout(width="260px"))
        self.put(self._calls, row(self.once_button, self.always_button, self.deny_button, self.reason))
        self.refresh()

    def _starts(self, what: str, act: Callable[[tuple[ToolCall, ...]], object]) -> Callable[[Any], None]:
        """The agent goes on at once, so it runs in the background; what was shown is that at the click."""

        def begin(_: Any) -> None:
            seen = self._seen
            self.runs.start(what, lambda: act(seen))

        return self.guarded(begin)

    def _deny(self, seen: tuple[ToolCall, ...]) -> None:
        self.cast.deny(self.reason.value, calls=seen)

    def draw(self) -> None:
        """Show the calls that wait; the reason stays until others do."""
        asking, busy = self.cast.asking, self.runs.busy_for(self)
        show_if(self.view, bool(asking) and self.cast.writable)
        if asking != self._seen:
            self._seen = asking
            self.reason.value = ""
            socket = self.cast.now.at.socket if self.cast.now.at else ""
            title = heading(f"{part(socket)} asks for leave to run")
            show_html(self._calls, html_join([title, calls_html(asking, opened=True)]))
        for one in (self.once_button, self.always_button, self.deny_button):
            one.disabled = busy
