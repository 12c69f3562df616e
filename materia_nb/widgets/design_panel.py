"""The panel for editing a loadout on its graph, with a palette, an inspector, a list of problems, undo and save."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import ipywidgets as ui
from traitlets import Dict, Unicode

from materia_nb.display.escape import part
from materia_nb.display.svg import graph_svg
from materia_nb.display.text import graph_text
from materia_nb.loadout.design import Design
from materia_nb.widgets.base import Panel, error_message, show_panel
from materia_nb.widgets.cast_panel import CastPanel
from materia_nb.widgets.design_session import Designer, DesignSession, unsaved_design
from materia_nb.widgets.frontend import FrontendWidget
from materia_nb.widgets.graph_panel import GraphPanel

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.cast.workbench import Workbench

_HEIGHT: Final = 620  # Default height of the surface, in pixels.


class DesignFront(FrontendWidget):
    """The widget for the palette, inspector, dock and bar of design mode. The code in ``front/`` draws them."""

    view = Unicode("design").tag(sync=True)

    design = Dict().tag(sync=True)


class DesignPanel(Panel):
    """A panel for editing a loadout graphically. The loadout file is written only when the user clicks Save.

    Args:
        bench: the workbench that loads and saves the loadout.
        design: the design to edit; see ``Workbench.design``.
        height: the height in pixels.
    """

    def __init__(self, bench: Workbench, design: Design, *, height: int = _HEIGHT) -> None:
        super().__init__(f"design of {part(design.name)}")
        self.notice.close()
        self.bench = bench
        self.canvas = self.own(GraphPanel(design.graph(), height=0))
        self.designer = Designer(bench, design, self.canvas)
        self.designer.changed = self.refresh
        self.designer.on_cast_started = self._show_cast_below
        self.on_close(self.designer.close)
        self.front = DesignFront()
        self.front.on_msg(self.guarded(lambda _, content, __: self.on_message(content)))
        self.surface = ui.VBox([self.canvas.view, self.front], layout=ui.Layout(height=f"{height}px"))
        self.surface.add_class("mnb-surface")
        self.view.children = (self.surface,)
        self.view.add_class("mnb-design")
        self.refresh()

    @property
    def design(self) -> Design:
        """The design that the panel edits."""
        return self.designer.session.design

    @property
    def session(self) -> DesignSession:
        """The session with the selection, the marked sockets and the last message."""
        return self.designer.session

    def on_message(self, content: object) -> None:
        """Handle a message from the page."""
        values = content if isinstance(content, Mapping) else {}
        self.designer.on_message(
            str(values.get("kind")), {str(key): value for key, value in values.items() if key != "kind"}
        )

    def draw(self) -> None:
        """Update the graph, palette, inspector and dock."""
        content = self.designer.slices()["design"]
        if self.front.design != content:
            self.front.design = content

    def notify(self, text: str) -> None:
        """Show one line of text in the bar; an empty string is ignored, because each message sets its own line."""
        if text:
            self.session.note = "status", text
            self.schedule_refresh()

    def show_error(self, error: Exception) -> None:
        """Show an error below the bar."""
        message = error_message(error, self.title)
        self.session.note = "alert", message
        bar = self.front.design.get("bar", {})
        self.front.design = {**self.front.design, "bar": {**bar, "note": {"sign": "alert", "words": message}}}

    def fallback(self) -> tuple[str, str | None]:
        """Return the graph and its problems as text, and a picture of the graph."""
        graph = self.design.graph()
        question = self.session.question
        question_line = "" if question is None else f"{question.text}\n"
        return f"{question_line}{graph_text(graph)}\n{self.design.report}", graph_svg(graph)

    def _show_cast_below(self, cast: Cast) -> None:
        """Show the cast below the design. Later changes to the design do not affect the cast."""
        panel = self.own(CastPanel(cast))
        self.view.children = (self.surface, panel.view)


def show_design(bench: Workbench, name: str | None = None, *, new: bool = False) -> DesignPanel:
    """Create and return a panel for editing a loadout, and close the panels of earlier executions of the same cell.

    Unsaved edits are kept when the cell is executed again. The panel offers the drafts of earlier kernels, including
    drafts of loadouts that were never saved.
    """
    design = None if name is None else unsaved_design(bench, name)
    if design is None:
        has_draft = name is not None and name not in bench.loadouts and bool(bench.loadouts.drafts(name))
        design = bench.design(name, new=new or has_draft)
    return show_panel(("design", design.name), lambda: DesignPanel(bench, design))
