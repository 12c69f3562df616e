"""A loadout edited on its graph: palette, inspector, what is wrong, undo and saving, on one surface."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import anywidget
import ipywidgets as ui
from traitlets import Dict

from materia_nb.display.escape import part
from materia_nb.display.graph_parts import Marks
from materia_nb.display.svg import graph_svg
from materia_nb.display.text import graph_text
from materia_nb.errors import MateriaError
from materia_nb.loadout.design import Design
from materia_nb.widgets.base import Panel, show_panel, shown_panel
from materia_nb.widgets.design_session import COLUMN, ROW, DesignSession, spots_in
from materia_nb.widgets.design_state import design_slice, drawn_pick
from materia_nb.widgets.frontend import css, esm
from materia_nb.widgets.graph import GraphPanel

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.cast.workbench import Workbench
    from materia_nb.display.geometry import Point
    from materia_nb.loadout.graph import Graph

HEIGHT: Final = 620
"""How high the surface is in pixels."""
_GESTURES: Final = (
    "connect",
    "move",
    "marquee",
    "delete",
    "drop",
    "undo",
    "redo",
    "copy",
    "cut",
    "paste",
    "duplicate",
)
_log = logging.getLogger("materia_nb.widgets")
_UNSAVED: Final[WeakKeyDictionary[Workbench, dict[str, Design]]] = WeakKeyDictionary()
"""Designs that were closed before they were saved, by the name of the loadout."""


class DesignFront(anywidget.AnyWidget):
    """Palette, inspector, dock and bar of design mode, drawn by the modules in ``front/``."""

    _esm = esm("design.js")
    _css = css()

    design = Dict().tag(sync=True)


class Designing:
    """A design in a surface: hears the page and the canvas, and keeps the canvas to what is designed.

    Args:
        bench: where it is saved, and cast.
        design: what is edited.
        canvas: the picture; None where it is drawn by somebody else.
    """

    def __init__(self, bench: Workbench, design: Design, canvas: GraphPanel | None = None) -> None:
        kept = _UNSAVED.get(bench, {}).pop(design.name, None)
        self.session = DesignSession(bench, kept or design)
        if kept is not None:
            self.session.note = "status", "the edits that were not saved; Reload takes what is on disk"
        self._before = spots_in(self.session.design.began)
        self.canvas = canvas
        self.changed: Callable[[], object] = lambda: None
        self._shown: tuple[object, object] | None = None
        self._ends: list[Callable[[], object]] = []
        self._following = False
        if canvas is not None:
            canvas.mode = "design"
            canvas.show_marks(Marks())
            self._ends += [canvas.on_select(self._picked), canvas.on_gesture(self._gesture)]
            self.draw()

    @property
    def cast_made(self) -> Callable[[Cast], object] | None:
        """Called with the cast that was begun from here."""
        return self.session.cast_made

    @cast_made.setter
    def cast_made(self, told: Callable[[Cast], object] | None) -> None:
        self.session.cast_made = told

    def heard(self, kind: str, values: Mapping[str, Any]) -> None:
        """Do what a message asks for; never raises."""
        self.session.heard(kind, values)
        self.changed()

    def slices(self) -> dict[str, dict[str, Any]]:
        """Bring the canvas up to date, and return the slice of the state that the parts of design mode draw."""
        self.draw()
        return {"design": design_slice(self.session)}

    def graph(self) -> Graph:
        """Return what can be drawn of the design."""
        return self.session.design.graph()

    def draw(self) -> None:
        """Bring the canvas up to date; a graph that cannot be drawn leaves the one before it."""
        self._take_config()
        canvas, session = self.canvas, self.session
        if canvas is None:
            return
        graph, places = self.graph(), self.places()
        self._following = True
        try:
            if self._shown is None or self._shown[0] is not graph or self._shown[1] != places:
                canvas.replace(graph, places)
                self._shown = graph, places
            canvas.mark(drawn_pick(session))
            canvas.mark_sockets(session.marked)
        except Exception:  # noqa: BLE001 - a design can be gone on with without its picture
            _log.warning("the design cannot be drawn; the picture before it stays", exc_info=True)
        finally:
            self._following = False

    def places(self) -> dict[str, Point]:
        """Return where the sockets stand that were put somewhere by hand, as the centre in pixels.

        Those are the ones that were moved in this design, and, as only a hand puts them there, those between columns or rows.
        """
        spots = spots_in(self.session.design.document)
        return {
            id_: (x * COLUMN, y * ROW)
            for id_, (x, y) in spots.items()
            if self._before.get(id_) != (x, y) or x != round(x) or y != round(y)
        }

    def close(self) -> None:
        """Let go of the canvas, which shows casts again; edits that were not saved wait for the next to design it."""
        design = self.session.design
        if design.changed:
            _UNSAVED.setdefault(self.session.bench, {})[design.name] = design
        for end in self._ends:
            end()
        self._ends = []
        canvas = self.canvas
        if canvas is None or canvas.closed:
            return
        canvas.mode = "cast"
        canvas.show_marks(None)
        if canvas.cast is not None:
            canvas.replace(canvas.cast.graph)

    def _picked(self, kind: str, key: str) -> None:
        if not self._following:
            self.heard("pick", {"what": [kind, key]})

    def _gesture(self, message: Mapping[str, Any]) -> None:
        kind = str(message.get("kind"))
        values = {key: value for key, value in message.items() if key != "kind"}
        if kind == "ground":
            self.heard("pick", {"what": None})
        elif kind == "open":
            self.heard("pick", {"what": values.get("what")})
        elif kind in _GESTURES:
            ids = values.pop("ids", None) if kind in ("delete", "copy", "cut", "duplicate") else None
            if isinstance(ids, list) and ids:
                self.session.heard("marquee", {"ids": ids})
            self.heard(kind, values)

    def _take_config(self) -> None:
        """Know the materia that were defined since; while a file cannot be read, those of before."""
        try:
            self.session.design.config = self.session.bench.config.document
        except MateriaError:
            _log.info("the config cannot be read now; the one before it stays", exc_info=True)


class DesignPanel(Panel):
    """Edits one loadout of a workbench on its graph. Nothing is written before Save.

    Args:
        bench: where the loadout comes from and is saved to.
        design: what is edited; see ``Workbench.design``.
        height: in pixels.
    """

    def __init__(self, bench: Workbench, design: Design, *, height: int = HEIGHT) -> None:
        super().__init__(f"design of {part(design.name)}")
        self.notice.close()
        self.bench = bench
        self.canvas = self.own(GraphPanel(design.graph(), side=False))
        self.designing = Designing(bench, design, self.canvas)
        self.designing.changed = self.refresh
        self.designing.cast_made = self._cast_made
        self.at_close(self.designing.close)
        self.front = DesignFront()
        self.front.on_msg(self.guarded(lambda _, content, __: self.heard(content)))
        self.canvas.view.add_class("mnb-graph-cell")
        self.surface = ui.VBox([self.canvas.view, self.front], layout=ui.Layout(height=f"{height}px"))
        self.surface.add_class("mnb-surface")
        self.view.children = (self.surface,)
        self.view.add_class("mnb-design")
        self.refresh()

    @property
    def design(self) -> Design:
        """What is edited."""
        return self.designing.session.design

    @property
    def session(self) -> DesignSession:
        """What is selected, marked and said."""
        return self.designing.session

    def heard(self, content: object) -> None:
        """Do what a message of the page asks for."""
        values = content if isinstance(content, Mapping) else {}
        self.designing.heard(
            str(values.get("kind")), {str(key): one for key, one in values.items() if key != "kind"}
        )

    def draw(self) -> None:
        """Bring picture, palette, inspector and dock up to date."""
        made = self.designing.slices()["design"]
        if self.front.design != made:
            self.front.design = made

    def say(self, text: str) -> None:
        """Show one line in the bar; empty takes nothing away, since each message says something itself."""
        if text:
            self.session.note = "status", text
            self.later()

    def fail(self, error: Exception) -> None:
        """Show an error under the bar."""
        told = (
            str(error)
            if isinstance(error, MateriaError)
            else f"That could not be done: {type(error).__name__}."
        )
        _log.warning("the design panel could not go on", exc_info=error)
        self.session.note = "alert", told
        bar = self.front.design.get("bar", {})
        self.front.design = {**self.front.design, "bar": {**bar, "note": {"sign": "alert", "words": told}}}

    def fallback(self) -> tuple[str, str | None]:
        """Return the grid of text with the report, and the picture."""
        graph = self.design.graph()
        return f"{graph_text(graph)}\n{self.design.report}", graph_svg(graph)

    def _cast_made(self, cast: Cast) -> None:
        """Show the cast below; the design stays as it is, and what is changed in it reaches no cast that has begun."""
        from materia_nb.widgets.cast_panel import CastPanel

        panel = self.own(CastPanel(cast))
        self.view.children = (self.surface, panel.view)


def show_design(bench: Workbench, name: str | None = None, *, new: bool = False) -> DesignPanel:
    """Make the panel that edits a loadout; the one of that loadout shown earlier is closed.

    Edits of the earlier panel that were not saved are gone on with: a cell that is run again loses nothing.
    """
    design = bench.design(name, new=new)
    key = ("design", design.name)
    old = shown_panel(key)
    if old is not None:
        old.close()  # in another cell too: two panels of one design would not know of each other
    return show_panel(key, lambda: DesignPanel(bench, design))
