"""The graph of a loadout or cast as a picture to click on, with a list beside it that does the same.

The only module that knows of ipycytoscape. Elements are made once and never removed; what changes is told
by classes and by new ``data`` dicts, since the canvas does not learn of anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import ipycytoscape as cyto
import ipywidgets as ui
from traitlets import observe

from materia_nb.display.escape import part
from materia_nb.display.geometry import Point
from materia_nb.display.html import Html, html_text
from materia_nb.display.layout import Placed, place
from materia_nb.display.marks import Marks
from materia_nb.display.svg import graph_svg
from materia_nb.display.text import graph_text
from materia_nb.display.words import summary
from materia_nb.loadout.graph import Graph
from materia_nb.views import marks_of, status_lines
from materia_nb.widgets.base import Panel, css, show_html
from materia_nb.widgets.canvas_style import PAGE_RULES, STYLE
from materia_nb.widgets.chooser import Chooser
from materia_nb.widgets.inspector import Inspector
from materia_nb.widgets.picks import Kind, Pick, picks
from materia_nb.widgets.scene import Scene
from materia_nb.widgets.viewport import Viewport

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.cast.snapshot import Snapshot

MOST_SOCKETS: Final = 150
"""Above this the canvas is too slow and cannot be read; the SVG is shown in its place."""
_TALLEST: Final = 720
_LEGEND: Final = (
    "rounded: agent · cut corners: utility · double border: generator · solid line: always or ✓ satisfied · "
    "dotted: ✗ not_satisfied · dashed, hollow arrow: loop exit · ● breakpoint · a number with a times sign: "
    "visits (glow: many) · drag the background to move"
)

SETTLES_S: Final = 1.5
"""How long after it was made a canvas is told to measure itself once more; later it would move under a click."""

Selected: TypeAlias = Callable[[Kind, str], object]
"""Told what was selected: its kind and its id."""


class _Cytoscape(cyto.CytoscapeWidget):
    """The library's widget, without the graph that it makes for itself and then loses sight of."""

    @observe("graph")
    def _replaced(self, change: Any) -> None:
        if isinstance(change["old"], ui.Widget):
            change["old"].close()


class Canvas:
    """A live picture: a thin layer over ipycytoscape, so that it can be replaced.

    Args:
        graph: what to draw.
        marks: how it stands at first.
        height: in pixels; by default what the graph needs, at most 720.
        clicked: called with the canvas's own description of the element that was clicked; see :meth:`pick`.
    """

    def __init__(
        self, graph: Graph, marks: Marks, height: int | None, clicked: Callable[[dict[str, Any]], None]
    ) -> None:
        self._scene = Scene(graph)
        self.placed = self._scene.placed
        self.height = height or round(min(_TALLEST, max(160, self._scene.size[1])))
        self.viewport = Viewport(self._scene.size, self.height)
        self._data = {one.id: one.data for one in self._scene.elements}
        self._picks = {one.id: one.pick for one in self._scene.elements if one.pick is not None}
        self._seen = self._scene.look(marks)
        self._follow(marks)
        self.widget = _Cytoscape(
            cytoscape_layout=self.viewport.layout,
            cytoscape_style=STYLE,
            tooltip_source="",  # what it names would go into the page as it is
            user_zooming_enabled=False,  # the wheel is for the page
            auto_ungrabify=True,
            min_zoom=0.05,
            max_zoom=2.5,
        )
        # Before anything is displayed, and once: the canvas forgets handlers that come later.
        for widget_type in ("node", "edge"):
            self.widget.on(widget_type, "click", clicked)
        self.nodes = {
            one.id: cyto.Node(**self._start(one.id), position=_point(one.position), grabbable=False)
            for one in self._scene.nodes
        }
        self.edges = {one.id: cyto.Edge(**self._start(one.id)) for one in self._scene.edges}
        self.widget.graph.add_nodes(list(self.nodes.values()))
        self.widget.graph.add_edges(list(self.edges.values()), directed=True, multiple_edges=True)
        # The height comes from a class: the canvas measures itself before its own layout reaches it.
        for name in ("mnb-canvas", f"mnb-high-{self.height}"):
            self.widget.add_class(name)
        rules = css(f"{PAGE_RULES}.mnb-high-{self.height}.custom-widget{{height:{self.height}px}}")
        self.frame = ui.Box([rules, self.widget], layout=ui.Layout(min_width="320px"))

    def _start(self, key: str) -> dict[str, Any]:
        classes, label = self._seen[key]
        return {"data": {**self._data[key], "label": label}, "classes": classes}

    def pick(self, element: dict[str, Any]) -> Pick | None:
        """Return what a clicked element stands for."""
        return self._picks.get(str(element.get("data", {}).get("id")))

    def measure(self) -> None:
        """Let the canvas find out anew how large it is, and then what it shows; :meth:`draw` tells it the latter.

        On a slow page it may have measured itself while it was hidden for a moment, and then stays
        empty. A change of its layout makes it measure; these two mean the same.
        """
        self.widget.layout.width = "100.0%" if self.widget.layout.width == "100%" else "100%"
        self.viewport.again()

    def reach(self, pick: Pick) -> None:
        """Bring a part into view."""
        box = self._scene.box_of(pick)
        if box is not None:
            self.viewport.reach(box)

    def draw(self, marks: Marks, selected: Pick | None) -> None:
        """Bring the elements that changed up to date."""
        for key, (classes, label) in self._scene.look(marks, selected).items():
            before = self._seen[key]
            element = self.nodes.get(key) or self.edges[key]
            if classes != before[0]:
                element.classes = classes
            if label != before[1]:
                element.data = {**self._data[key], "label": label}
            self._seen[key] = (classes, label)
        self._follow(marks)
        if self.widget.cytoscape_layout != self.viewport.layout:
            self.widget.cytoscape_layout = self.viewport.layout

    def _follow(self, marks: Marks) -> None:
        if marks.current in self.placed.nodes:
            self.viewport.follow(self.placed.nodes[marks.current])


class Still:
    """A picture of a graph that is too large for a canvas: the SVG, scrolled by the page."""

    def __init__(self, graph: Graph, height: int | None) -> None:
        self._graph = graph
        self.placed: Placed = place(graph)
        self.height = height or _TALLEST
        self._picture = ui.HTML()
        layout = ui.Layout(height=f"{self.height}px", overflow="auto", display="block")
        self.frame = ui.Box([css(PAGE_RULES), self._picture], layout=layout, tabbable=True)
        self.frame.add_class("mnb-still")

    def draw(self, marks: Marks, _: Pick | None) -> None:
        """Draw it anew."""
        show_html(self._picture, Html(graph_svg(self._graph, marks, placed=self.placed)))


class GraphPanel(Panel):
    """The live picture of a cast's graph, or the picture of a bare loadout.

    A click, or the list beside the picture, selects a socket, an edge, an exit or a loop: the inspector
    tells about it, and so do the callbacks given to :meth:`on_select`.

    Args:
        source: the cast to follow, or a graph.
        height: of the picture in pixels; by default what the graph needs, at most 720.
        status: whether it says how the cast stands; where something beside it does, only of an earlier moment.
    """

    def __init__(self, source: Cast | Graph, *, height: int | None = None, status: bool = True) -> None:
        self.graph: Graph = source if isinstance(source, Graph) else source.graph
        self.cast: Cast | None = None if isinstance(source, Graph) else source
        super().__init__(summary(self.graph))
        self._says_status = status
        self.selected: Pick | None = None
        self._shown_marks: Marks | None = None
        self._callbacks: list[Selected] = []
        self._inspector = Inspector(self.graph, self.cast)
        self._status, self._details = ui.HTML(), ui.HTML()
        self.chooser = Chooser(self, picks(self.graph), self._reach)
        self.canvas: Canvas | None = None
        if len(self.graph.sockets) <= MOST_SOCKETS:
            self.canvas = Canvas(self.graph, self.marks, height, self.guarded(self._clicked))
        self._picture: Canvas | Still = self.canvas or Still(self.graph, height)
        self._put_together()
        if self.cast is not None:
            self.follow(self.cast)
        self.refresh()
        self.after(SETTLES_S, self._settle)

    # -- for code ---------------------------------------------------------------------

    def on_select(self, callback: Selected) -> Callable[[], None]:
        """Call ``callback(kind, id)`` after each selection; returns a function that ends it."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    def select(self, kind: Kind, key: str) -> None:
        """Select a part as a click does.

        Args:
            kind: ``socket``, ``edge``, ``exit`` or ``loop``.
            key: the id of a socket or loop, ``loop-exit:<loop>:<route>``, or ``edge:<place>:<socket>``.

        Raises:
            MateriaError: there is no such part (``unknown_part``).
        """
        self._inspector.check((kind, key))
        self.selected = (kind, key)
        self.refresh()
        for callback in tuple(self._callbacks):
            callback(kind, key)

    def show_marks(self, marks: Marks | None) -> None:
        """Lay something else over the graph than how the cast stands; None goes back to that."""
        self._shown_marks = marks
        self.refresh()

    def look_at(self, past: Snapshot | None) -> None:
        """Show the graph, and what there is to say about its parts, as they were; None goes back to the present."""
        self._inspector.cast = past or self.cast
        super().look_at(past)

    @property
    def marks(self) -> Marks:
        """What is laid over the graph now."""
        if self._shown_marks is not None:
            return self._shown_marks
        shown = self.past or self.cast
        return marks_of(shown) if shown is not None else Marks()

    def fallback(self) -> tuple[str, str | None]:
        """Return the grid of text and the static picture of this moment."""
        marks = self.marks
        return graph_text(self.graph, marks), graph_svg(self.graph, marks, placed=self._picture.placed)

    # -- building -----------------------------------------------------------------------

    def _put_together(self) -> None:
        frame, room = self._picture.frame, f"{max(200, self._picture.height - 225)}px"
        details = ui.Box(
            [self._details],
            layout=ui.Layout(overflow="auto", max_height=room, display="block"),
            tabbable=True,
        )
        side = ui.VBox([self.chooser.view, details])
        frame.add_class("mnb-frame")
        top = self.above_notice(ui.HBox([*self._buttons(), self._status], layout=_wrapping()))
        legend = ui.HTML()
        show_html(legend, Html(f'<div style="opacity:0.75;font-size:0.88em">{html_text(_LEGEND)}</div>'))
        if self.canvas is None:
            note = ui.HTML()
            show_html(
                note,
                f"{len(self.graph.sockets)} sockets are too many to click on (at most {MOST_SOCKETS}): "
                "this is a still picture, redrawn as the cast goes on. The list selects.",
            )
            self.interval = 0.5
            self.put(top, note, frame, side, legend)
            return
        frame.layout.flex, frame.layout.width = "1 1 60%", "0"
        side.layout.flex, side.layout.width, side.layout.min_width = "1 1 36%", "0", "260px"
        self.put(top, ui.HBox([frame, side], layout=_wrapping()), legend)

    def _buttons(self) -> Sequence[ui.Button]:
        if self.canvas is None:
            return ()
        view, measure = self.canvas.viewport, self.canvas.measure
        acts: tuple[tuple[str, str, Callable[[], None]], ...] = (
            ("\N{MINUS SIGN}", "smaller", lambda: view.zoom_by(1 / 1.25)),
            ("+", "larger", lambda: view.zoom_by(1.25)),
            ("fit", "the whole graph", view.fit),
        )
        return [self._button(words, what, act, measure) for words, what, act in acts]

    def _button(
        self, words: str, what: str, act: Callable[[], None], measure: Callable[[], None]
    ) -> ui.Button:
        def pressed(_: Any) -> None:
            act()
            measure()
            self.refresh()

        button = ui.Button(description=words, tooltip=what, layout=ui.Layout(width="44px"))
        button.on_click(self.guarded(pressed))
        return button

    def _settle(self) -> None:
        """See to it that a canvas which was displayed in a bad moment is not left empty."""
        if self.canvas is not None:
            self.canvas.measure()
            self.refresh()

    # -- what a person does ---------------------------------------------------------------

    def _clicked(self, element: dict[str, Any]) -> None:
        pick = self.canvas.pick(element) if self.canvas is not None else None
        if pick is not None:
            self.select(*pick)

    def _reach(self, pick: Pick) -> None:
        """Select and bring into view; what was clicked is in view already."""
        if self.canvas is not None:
            self.canvas.reach(pick)
        self.select(*pick)

    # -- drawing ----------------------------------------------------------------------------

    def draw(self) -> None:
        """Bring picture, list and inspector up to the present."""
        shown = self.past or self.cast
        lines = status_lines(shown)[:4] if shown is not None else (self.title,)
        if self.past is None and not self._says_status:
            lines = ()
        then = ["as it was"] if self.past is not None else []
        words = " · ".join(part(line, 300) for line in (*then, *lines))
        show_html(self._status, Html(f'<div role="status">{html_text(words)}</div>'))
        self._picture.draw(self.marks, self.selected)
        self.chooser.show(self.selected)
        show_html(self._details, self._inspector.about(self.selected))


def _wrapping() -> ui.Layout:
    return ui.Layout(flex_flow="row wrap", align_items="flex-start")


def _point(position: Point | None) -> dict[str, float]:
    x, y = position or (0.0, 0.0)
    return {"x": x, "y": y}
