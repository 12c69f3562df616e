"""The picture of a design: made anew when the design changes, since a canvas can take nothing away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as ui

from materia_nb.display.marks import Marks
from materia_nb.loadout.facts import Object
from materia_nb.loadout.graph import Graph
from materia_nb.widgets.base import Panel, widgets_in
from materia_nb.widgets.chooser import Chooser
from materia_nb.widgets.designer_parts import drawn_parts, parts
from materia_nb.widgets.graph import MOST_SOCKETS, Canvas, Still
from materia_nb.widgets.picks import Pick


class Picture:
    """One graph on a canvas (a still picture if it is large) and the list of its parts.

    Args:
        panel: what owns it and shows errors.
        document: the loadout; its parts are what can be selected.
        graph: what of it is drawn.
        choose: called with the part that a person selected.
        before: the picture that this one comes after; the view stays where it was.
    """

    def __init__(
        self,
        panel: Panel,
        document: Object,
        graph: Graph,
        choose: Callable[[Pick], None],
        before: Picture | None = None,
    ) -> None:
        self.graph = graph
        self._choose = choose
        self._named = parts(document, graph)
        self._parts = drawn_parts(document, graph)
        self._drawn = {mine: drawn for drawn, mine in self._parts.items() if drawn[0] == mine[0]}
        self.canvas: Canvas | None = None
        if len(graph.sockets) <= MOST_SOCKETS:
            self.canvas = Canvas(graph, Marks(), None, panel.guarded(self._clicked))
            if before is not None and before.canvas is not None:
                self.canvas.viewport.take(before.canvas.viewport)
        self._picture: Canvas | Still = self.canvas or Still(graph, None)
        self.placed = self._picture.placed
        self.frame: ui.Widget = self._picture.frame
        self.frame.add_class("mnb-frame")
        self.frame.layout.width = "100%"
        self.chooser = Chooser(panel, self._named, choose) if self._named else None

    def knows(self, pick: Pick | None) -> bool:
        """Whether the design has this part."""
        return any(pick == known for _, known in self._named)

    def shows(self, document: Object, graph: Graph) -> bool:
        """Whether this is what the picture shows."""
        return graph == self.graph and parts(document, graph) == self._named

    def reach(self, pick: Pick) -> None:
        """Bring a part into view, if it is drawn."""
        if self.canvas is not None and pick in self._drawn:
            self.canvas.reach(self._drawn[pick])

    def draw(self, marks: Marks, selected: Pick | None) -> None:
        """Show what is selected and marked."""
        self._picture.draw(marks, None if selected is None else self._drawn.get(selected))
        if self.chooser is not None:
            self.chooser.show(selected if self.knows(selected) else None)

    def view(self, act: Callable[[Canvas], None]) -> None:
        """Do something with the view, if there is one to move."""
        if self.canvas is not None:
            act(self.canvas)

    def close(self) -> None:
        """Close all its widgets."""
        for root in [self.frame, *([self.chooser.view] if self.chooser else [])]:
            for widget in list(widgets_in(root)):
                widget.close()

    def _clicked(self, element: dict[str, Any]) -> None:
        pick = self.canvas.pick(element) if self.canvas is not None else None
        if pick is not None and pick in self._parts:
            self._choose(self._parts[pick])
