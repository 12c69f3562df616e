"""The graph of a loadout or cast as a picture to click on, with a list beside it that does the same.

The only module that knows of ipycytoscape. Elements are made once and never removed; what changes is told
by classes and by new ``data`` dicts, since the canvas does not learn of anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import ipycytoscape as cyto
import ipywidgets as ui

from materia_nb.display.escape import part
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
from materia_nb.widgets.inspector import Inspector
from materia_nb.widgets.picks import Kind, Pick, picks
from materia_nb.widgets.scene import Scene
from materia_nb.widgets.viewport import Viewport

if TYPE_CHECKING:
    from materia_nb.cast import Cast

MOST_SOCKETS: Final = 150
"""Above this the canvas is too slow and cannot be read; the SVG is shown in its place."""
_TALLEST: Final = 720
_LEGEND: Final = (
    "rounded: agent · cut corners: utility · double border: generator · solid line: always or ✓ satisfied · "
    "dotted: ✗ not_satisfied · dashed, hollow arrow: loop exit · ● breakpoint · a number with a times sign: visits (glow: many) · drag the background to move"
)

Selected = Callable[[Kind, str], object]


class GraphPanel(Panel):
    """The live picture of a cast's graph, or the picture of a bare loadout.

    A click, or the list beside the picture, selects a socket, an edge, an exit or a loop: the inspector
    tells about it, and so do the callbacks given to :meth:`on_select`.

    Args:
        source: the cast to follow, or a graph.
        height: of the picture in pixels; by default what the graph needs, at most 720.
    """

    def __init__(self, source: Cast | Graph, *, height: int | None = None) -> None:
        self.graph: Graph = source if isinstance(source, Graph) else source.graph
        self.cast: Cast | None = None if isinstance(source, Graph) else source
        super().__init__(summary(self.graph))
        self.selected: Pick | None = None
        self._shown_marks: Marks | None = None
        self._callbacks: list[Selected] = []
        self._inspector = Inspector(self.graph, self.cast)
        self._status = ui.HTML()
        self._details = ui.HTML()
        self._list = self._make_list()
        self.large = len(self.graph.sockets) > MOST_SOCKETS
        self._placed: Placed
        if self.large:
            self._make_picture(height)
        else:
            self._make_canvas(height)
        if self.cast is not None:
            self.follow(self.cast)
        self.refresh()

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
        """Show another moment than the present one; None goes back to the present."""
        self._shown_marks = marks
        self.refresh()

    @property
    def marks(self) -> Marks:
        """What is laid over the graph now."""
        if self._shown_marks is not None:
            return self._shown_marks
        return marks_of(self.cast) if self.cast is not None else Marks()

    def fallback(self) -> tuple[str, str | None]:
        """Return the grid of text and the static picture of this moment."""
        marks = self.marks
        return graph_text(self.graph, marks), graph_svg(self.graph, marks, placed=self._placed)

    # -- building -----------------------------------------------------------------------

    def _make_list(self) -> ui.Select:
        made = ui.Select(
            options=picks(self.graph),
            value=None,
            rows=10,
            tooltip="everything that can be selected in the picture",
            layout=ui.Layout(width="auto"),
        )
        made.observe(self.guarded(self._listed), names="value")
        return made

    def _make_canvas(self, height: int | None) -> None:
        scene = self._scene = Scene(self.graph)
        self._placed = scene.placed
        high = height or round(min(_TALLEST, max(160, scene.size[1])))
        self._viewport = Viewport(scene.size, high)
        self._elements = {
            one.id: cyto.Node(
                data=self._data(one.data), classes=one.classes, position=_point(one.position), grabbable=False
            )
            for one in scene.nodes
        }
        edges = {one.id: cyto.Edge(data=self._data(one.data), classes=one.classes) for one in scene.edges}
        self._static = {one.id: one.data for one in scene.elements}
        self._picks = {one.id: one.pick for one in scene.elements if one.pick is not None}
        self._seen: dict[str, tuple[str, str]] = {}
        self.canvas = cyto.CytoscapeWidget(
            cytoscape_layout=self._viewport.layout,
            cytoscape_style=STYLE,
            tooltip_source="",
            user_zooming_enabled=False,
            auto_ungrabify=True,
            min_zoom=0.05,
            max_zoom=2.5,
        )
        # Before anything is displayed, and once: the canvas forgets handlers that come later.
        for widget_type in ("node", "edge"):
            self.canvas.on(widget_type, "click", self.guarded(self._clicked))
        self.canvas.graph.add_nodes(list(self._elements.values()))
        self.canvas.graph.add_edges(list(edges.values()), directed=True, multiple_edges=True)
        self._elements |= edges
        for name in ("mnb-canvas", f"mnb-high-{high}"):
            self.canvas.add_class(name)
        # The height comes from a class: the canvas measures itself before its own layout reaches it.
        rules = css(f"{PAGE_RULES}.mnb-high-{high}.custom-widget{{height:{high}px}}")
        frame = ui.Box([self.canvas], layout=ui.Layout(flex="1 1 60%", min_width="320px", width="0"))
        frame.add_class("mnb-frame")
        self._put_together(rules, [*self._buttons(), self._status], frame, high)

    def _make_picture(self, height: int | None) -> None:
        """Show the SVG in place of a canvas."""
        self.interval = 0.5
        self._placed = place(self.graph)
        self._picture = ui.HTML()
        words = (
            f"{len(self.graph.sockets)} sockets are too many for the live picture (at most {MOST_SOCKETS}): "
        )
        note = ui.HTML()
        show_html(note, f"{words}this is a still one, redrawn as the cast goes on. The list selects.")
        high = height or _TALLEST
        layout = ui.Layout(
            flex="1 1 60%", min_width="320px", width="0", height=f"{high}px", overflow="auto", display="block"
        )
        frame = ui.Box([self._picture], layout=layout, tabbable=True)
        for name in ("mnb-frame", "mnb-still"):
            frame.add_class(name)
        self._put_together(css(PAGE_RULES), [self._status], frame, high, note)

    def _put_together(
        self, rules: ui.HTML, bar: list[ui.Widget], frame: ui.Box, high: int, *notes: ui.Widget
    ) -> None:
        legend = ui.HTML()
        show_html(legend, Html(f'<div style="opacity:0.75;font-size:0.88em">{html_text(_LEGEND)}</div>'))
        details = ui.Box(
            [self._details],
            layout=ui.Layout(overflow="auto", max_height=f"{max(200, high - 190)}px", display="block"),
        )
        side = ui.VBox([self._list, details], layout=ui.Layout(flex="1 1 36%", min_width="260px", width="0"))
        top = ui.HBox(bar, layout=ui.Layout(flex_flow="row wrap", align_items="center"))
        middle = ui.HBox([frame, side], layout=ui.Layout(flex_flow="row wrap"))
        self.put(rules, top, *notes, middle, legend)

    def _buttons(self) -> list[ui.Button]:
        made = []
        for words, what, act in (
            ("\N{MINUS SIGN}", "smaller", lambda: self._viewport.zoom_by(1 / 1.25)),
            ("+", "larger", lambda: self._viewport.zoom_by(1.25)),
            ("fit", "the whole graph", self._viewport.fit),
        ):
            button = ui.Button(description=words, tooltip=what, layout=ui.Layout(width="44px"))
            button.on_click(self.guarded(self._viewing(act)))
            made.append(button)
        return made

    # -- what a person does -----------------------------------------------------------------

    def _viewing(self, act: Callable[[], None]) -> Callable[[Any], None]:
        def view(_: Any) -> None:
            act()
            self.refresh()

        return view

    def _clicked(self, element: dict[str, Any]) -> None:
        pick = self._picks.get(str(element.get("data", {}).get("id")))
        if pick is not None:
            self.select(*pick)

    def _listed(self, change: Any) -> None:
        if change["new"] is not None:
            self._look_at_selection(change["new"])
            self.select(*change["new"])

    def _look_at_selection(self, pick: Pick) -> None:
        """Bring what the list selected into view; what was clicked is there already."""
        if self.large:
            return
        kind, key = pick
        socket = (
            key if kind == "socket" else key.partition(":")[2].partition(":")[2] if kind == "edge" else None
        )
        if socket in self._placed.nodes:
            box = self._placed.nodes[socket]
            self._viewport.reach(box)

    # -- drawing ------------------------------------------------------------------------------

    def draw(self) -> None:
        """Bring picture, list and inspector up to the present."""
        marks = self.marks
        show_html(self._status, self._status_words())
        if self.large:
            show_html(self._picture, Html(graph_svg(self.graph, marks, placed=self._placed)))
        else:
            self._draw_canvas(marks)
        if self._list.value != self.selected:
            self._list.value = self.selected
        show_html(self._details, self._inspector.about(self.selected))

    def _draw_canvas(self, marks: Marks) -> None:
        for key, (classes, label) in self._scene.look(marks, self.selected).items():
            before = self._seen.get(key, ("", ""))
            element = self._elements[key]
            if classes != before[0]:
                element.classes = classes
            if label != before[1]:
                element.data = self._data({**self._static[key], "label": label})
            self._seen[key] = (classes, label)
        if marks.current in self._placed.nodes:
            self._viewport.follow(self._placed.nodes[marks.current])
        if self.canvas.cytoscape_layout != self._viewport.layout:
            self.canvas.cytoscape_layout = self._viewport.layout

    @staticmethod
    def _data(data: dict[str, Any]) -> dict[str, Any]:
        return {"label": "", **data}

    def _status_words(self) -> Html:
        lines = status_lines(self.cast) if self.cast is not None else (summary(self.graph),)
        return Html(
            f'<div role="status">{html_text(" · ".join(part(line, 300) for line in lines[:4]))}</div>'
        )


def _point(position: tuple[float, float] | None) -> dict[str, float]:
    x, y = position or (0.0, 0.0)
    return {"x": x, "y": y}
