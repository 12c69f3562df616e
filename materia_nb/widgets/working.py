"""What the agent that is asked does before it has answered: its words as they come, its tool calls, its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import ipywidgets as ui

from materia_nb.display.calls import calls_html
from materia_nb.display.escape import part
from materia_nb.display.html import Html, html_join, html_pre
from materia_nb.widgets.base import Panel, show_html
from materia_nb.widgets.controls import heading, lines_html, show_if

if TYPE_CHECKING:
    from materia_nb.cast import Cast

_TAIL: Final = 4_000


class WorkingPanel(Panel):
    """The end of what the agent has said so far, with the tools it used; hidden while there is nothing of it."""

    interval = 0.2

    def __init__(self, cast: Cast) -> None:
        super().__init__("working")
        self.cast = cast
        self._doing = ui.HTML()
        self.put(self._doing)
        self.follow(cast)
        self.at_close(cast.listen(self.later))
        self.refresh()

    def draw(self) -> None:
        """Show what there is."""
        parts = self._parts()
        show_html(self._doing, html_join(parts))
        show_if(self.view, bool(parts))

    def _parts(self) -> list[Html]:
        cast, visit = self.cast, self.cast.waiting_at
        if visit is None:
            return []
        saying, notes = cast.saying, cast.notes[-3:]
        parts = [calls_html(cast.calls)] if cast.calls else []
        if saying:
            cut = "… " if len(saying) > _TAIL else ""
            parts.append(html_pre(cut + saying[-_TAIL:], _TAIL + 2))
        if notes:
            parts.append(lines_html(notes))
        return [heading(f"what {part(visit.socket)} does"), *parts] if parts else []
