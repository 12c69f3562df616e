"""A loadout edited on its graph: select a part, change it in a form, see what is wrong, undo, save."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as ui

from materia_nb.display.escape import part
from materia_nb.display.html import Html, html_text
from materia_nb.display.marks import Marks
from materia_nb.display.svg import graph_svg
from materia_nb.display.text import graph_text
from materia_nb.errors import MateriaError
from materia_nb.loadout.design import Design
from materia_nb.loadout.facts import as_object
from materia_nb.widgets.base import Panel, show_html, show_panel, shown_panel
from materia_nb.widgets.controls import button, row, show_if
from materia_nb.widgets.designer_fields import SHORT, choice_field
from materia_nb.widgets.designer_forms import EdgeForm, Form, SocketForm
from materia_nb.widgets.designer_loops import ExitForm, LoopForm
from materia_nb.widgets.designer_picture import Picture
from materia_nb.widgets.designer_words import home_html, patch_html, report_html, status_html
from materia_nb.widgets.graph import SETTLES_S, Canvas
from materia_nb.widgets.palette import Palette, grouped
from materia_nb.widgets.picks import Pick

if TYPE_CHECKING:
    from materia_nb.workbench import Workbench

_log = logging.getLogger("materia_nb.widgets")
_NOTEBOOK: Final = "this notebook"
_HELP: Final = (
    "Click a part of the picture, or find it by name in the list, and change it in the form. Mark sockets to make a "
    "loop of them. A cast that runs keeps the loadout that it started with. In the picture: rounded: agent · cut "
    "corners: utility · double border: generator · dashed, hollow arrow: loop exit · ● marked."
)


_NONE: Final = "Nothing is selected: click a part of the picture, or type its name above."


class DesignerPanel(Panel):
    """Edits one loadout of a workbench. Nothing is written before Save.

    Args:
        bench: where the loadout comes from and is saved to.
        design: what is edited; see ``Workbench.design``.
    """

    def __init__(self, bench: Workbench, design: Design) -> None:
        super().__init__(f"design of {part(design.name)}")
        self.bench, self.design = bench, design
        self.selected: Pick | None = None
        self.marked: list[str] = []
        self._picture: Picture | None = None
        self._stale = ""
        self._status, self._note, self._marks = ui.HTML(), ui.HTML(), ui.HTML()
        self._report, self._patch, self._home, self._none = ui.HTML(), ui.HTML(), ui.HTML(), ui.HTML()
        self._make_buttons()
        self.forms: Mapping[str, Form] = {
            "socket": SocketForm(self),
            "edge": EdgeForm(self),
            "exit": ExitForm(self),
            "loop": LoopForm(self),
        }
        self._put_together()
        self.at_close(lambda: self._picture.close() if self._picture is not None else None)
        self.refresh()

    # -- building -----------------------------------------------------------------------

    def _make_buttons(self) -> None:
        def act(words: str, what: str, done: Callable[[], object], style: str = "") -> ui.Button:
            return button(words, what, self.guarded(lambda _: done()), style=style)

        self.undo_button = act(
            "Undo", "take the last step back", lambda: self.do(self.design.undo, self.selected)
        )
        self.redo_button = act("Redo", "do it again", lambda: self.do(self.design.redo, self.selected))
        self.views = [
            act("\N{MINUS SIGN}", "smaller", lambda: self._view(lambda view: view.zoom_by(1 / 1.25))),
            act("+", "larger", lambda: self._view(lambda view: view.zoom_by(1.25))),
            act("fit", "the whole graph", lambda: self._view(lambda view: view.fit())),
        ]
        for one in self.views:
            one.layout.width = "44px"
        self.materia = choice_field(
            self,
            "",
            "a materia, then Enter",
            width="220px",
            enter=lambda: self._add(self.materia.value.strip()),
        )
        self.add_button = act(
            "Add socket",
            "place this materia in a new socket",
            lambda: self._add(self.materia.value.strip()),
            "info",
        )
        self.palette = Palette(self, self._add)
        self.loop_button = act("Make loop", "make a loop of the marked sockets", self._make_loop, "info")
        self.clear_button = act("Clear marks", "mark none", self._clear)
        self.where = choice_field(self, "", "where; empty: where it belongs", width="360px")
        self.anyway = ui.Checkbox(
            value=False,
            description="save anyway",
            tooltip="save with problems, let comments of a YAML file go, replace a loadout in another file",
            indent=False,
            layout=ui.Layout(width="auto"),
            style=SHORT,
        )
        self.save_button = act(
            "Save", "write it where it belongs, or to the file named", self._save, "primary"
        )
        self.reload_button = act(
            "Reload", "take the loadout as it is on disk now; Undo brings these edits back", self._reload
        )

    def _put_together(self) -> None:
        help_ = ui.HTML()
        show_html(help_, Html(f'<div style="opacity:0.75;font-size:0.9em">{html_text(_HELP)}</div>'))
        self._canvas_box = ui.Box([], layout=ui.Layout(flex="1 1 58%", width="0", min_width="320px"))
        self._list_box = ui.VBox([])
        show_html(self._none, Html(f'<div style="margin-top:8px">{html_text(_NONE)}</div>'))
        self._form_box = ui.VBox([self._none, *(form.view for form in self.forms.values())])
        side = ui.VBox(
            [self._list_box, self._form_box],
            layout=ui.Layout(flex="1 1 38%", width="0", min_width="280px"),
        )
        middle = ui.HBox(
            [self._canvas_box, side], layout=ui.Layout(flex_flow="row wrap", align_items="flex-start")
        )
        self.view.children = (
            self._status,
            row(self.undo_button, self.redo_button, *self.views, self.materia, self.add_button),
            self.palette.view,
            row(self._marks, self.loop_button, self.clear_button),
            row(self.save_button, self.where, self.anyway, self.reload_button),
            self._home,
            self.notice,
            self._note,
            middle,
            help_,
            self._report,
            self._patch,
        )

    def fallback(self) -> tuple[str, str | None]:
        """Return the grid of text with the report, and the picture."""
        graph = self.design.graph()
        return f"{graph_text(graph)}\n{self.design.report}", graph_svg(graph)

    # -- what the forms use -------------------------------------------------------------

    def select(self, pick: Pick | None) -> None:
        """Show a part in its form."""
        self.selected = pick
        if pick is not None and self._picture is not None:
            self._picture.reach(pick)
        self.refresh()

    def do(self, act: Callable[[], str], pick: Pick | None) -> None:
        """Do a step of the design, select a part and say in words what was done."""
        words = act()
        self.selected = pick
        self.refresh()
        self.say(words)

    def mark(self, socket: str) -> None:
        """Mark a socket, or take its mark away."""
        if socket in self.marked:
            self.marked.remove(socket)
        else:
            self.marked.append(socket)
        self.refresh()

    # -- what a person does ---------------------------------------------------------------

    def _add(self, materia: str) -> None:
        before = as_object(self.design.document.get("sockets"))
        words = self.design.add_socket(materia)
        made = [id_ for id_ in self.design.document["sockets"] if id_ not in before]
        self.do(lambda: words, ("socket", made[0]))
        self.select(self.selected)
        self.say(words)

    def _make_loop(self) -> None:
        before = as_object(self.design.document.get("loops"))
        source = self.design.likely_generator(self.marked)
        words = self.design.make_loop(self.marked, consumes=source)
        made = [id_ for id_ in self.design.document["loops"] if id_ not in before]
        self.marked = []
        over = "" if source is None else f", over the work items of {source}"
        self.do(lambda: words + over, ("loop", made[0]))

    def _clear(self) -> None:
        self.marked = []
        self.refresh()

    def _settle(self, picture: Picture) -> None:
        """See to it that a canvas which was displayed in a bad moment is not left empty."""
        if picture is self._picture:
            self._view(lambda _: None)

    def _view(self, act: Callable[[Any], None]) -> None:
        def on(canvas: Canvas) -> None:
            act(canvas.viewport)
            canvas.measure()

        if self._picture is not None:
            self._picture.view(on)
        self.refresh()

    def _save(self) -> None:
        where = self.where.value.strip()
        to = "notebook" if where == _NOTEBOOK else None if where in ("", str(self.design.home)) else where
        words = self.bench.save_design(self.design, to, anyway=self.anyway.value)
        self.anyway.value = False
        self.refresh()
        self.say(words)

    def _reload(self) -> None:
        fresh = self.bench.design(self.design.name)
        self.do(lambda: self.design.reload(fresh), self.selected)

    # -- drawing --------------------------------------------------------------------------

    def draw(self) -> None:
        """Bring picture, form, report and patch up to date; the picture is made anew if the design is another."""
        self._take_config()
        self._draw_picture()
        known = as_object(self.design.document.get("sockets"))
        self.marked = [one for one in self.marked if one in known]
        if self._picture is None or not self._picture.knows(self.selected):
            self.selected = None
        if self._picture is not None:
            self._picture.draw(Marks(breakpoints=frozenset(self.marked)), self.selected)
        for kind, form in self.forms.items():
            chosen = self.selected is not None and self.selected[0] == kind
            if chosen and self.selected is not None:
                form.show(self.selected)
            show_if(form.view, chosen)
        show_if(self._none, self.selected is None)
        self._draw_words()
        self._draw_buttons()

    def _take_config(self) -> None:
        """Know the materia that were defined since; while a file cannot be read, those of before."""
        try:
            self.design.config = self.bench.config.document
        except MateriaError:
            _log.info("the config cannot be read now; the one before it stays", exc_info=True)

    def _draw_picture(self) -> None:
        document, graph = self.design.document, self.design.graph()
        old = self._picture
        if old is not None and old.shows(document, graph):
            self._stale = ""
            return
        try:
            made = Picture(self, document, graph, self.select, old)
        except Exception:  # noqa: BLE001 - a design can be gone on with without its picture
            _log.warning("the design cannot be drawn; the picture before it stays", exc_info=True)
            self._stale = "The picture is of an earlier state: this one cannot be drawn."
            return
        self._picture, self._stale = made, ""
        self.after(SETTLES_S, lambda: self._settle(made))
        self._canvas_box.children = (made.frame,)
        self._list_box.children = (made.chooser.view,) if made.chooser is not None else ()
        if old is not None:
            old.close()

    def _draw_words(self) -> None:
        show_html(self._status, status_html(self.design))
        show_html(self._note, self._stale)
        show_if(self._note, bool(self._stale))
        marked = ", ".join(part(one) for one in self.marked)
        show_html(self._marks, f"marked: {marked or 'none'}")
        show_html(self._report, report_html(self.design.report))
        show_html(self._home, home_html(self.design))
        show_html(self._patch, patch_html(self.design))

    def _draw_buttons(self) -> None:
        design = self.design
        self.undo_button.disabled, self.redo_button.disabled = not design.steps, not design.undone
        self.undo_button.tooltip = (
            f"take back: {part(design.steps[-1], 200)}" if design.steps else "nothing to undo"
        )
        self.redo_button.tooltip = (
            f"do again: {part(design.undone[0], 200)}" if design.undone else "nothing to do again"
        )
        self.loop_button.disabled = self.clear_button.disabled = not self.marked
        materia = as_object(design.config.get("materia"))
        self.materia.options = tuple(id_ for ids in grouped(materia).values() for id_ in ids)
        self.palette.show(materia)
        self.where.options = (str(design.home), _NOTEBOOK)


def show_designer(bench: Workbench, name: str | None = None, *, new: bool = False) -> DesignerPanel:
    """Make the panel that edits a loadout; the one of that loadout shown earlier is closed.

    Edits of the earlier panel that were not saved are gone on with: a cell that is run again loses nothing.
    """
    wanted = name or bench.chosen or ""
    key = ("design", wanted)
    old = shown_panel(key)
    kept = (
        old.design if isinstance(old, DesignerPanel) and old.bench is bench and old.design.changed else None
    )
    panel = show_panel(key, lambda: DesignerPanel(bench, kept or bench.design(name, new=new)))
    if old is not None:
        old.close()  # in another cell too: two panels of one design would not know of each other
    if kept is not None:
        panel.say("These are the edits that were not saved yet. Reload takes what is on disk.")
    return panel
