"""Designing a loadout on a canvas: what gestures and messages do to the design, and what the canvas then shows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

from materia_nb.cast import Cast
from materia_nb.cast.workbench import Workbench
from materia_nb.display.geometry import Point
from materia_nb.display.graph_parts import Marks
from materia_nb.errors import MateriaError
from materia_nb.loadout.design import Design
from materia_nb.loadout.graph import Graph
from materia_nb.widgets.design_session import COLUMN, ROW, DesignSession, spots_in
from materia_nb.widgets.design_state import design_slice, drawn_pick
from materia_nb.widgets.graph import GraphPanel

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


_UNSAVED: Final[WeakKeyDictionary[Workbench, dict[str, Design]]] = WeakKeyDictionary()
"""Designs that were closed before they were saved, by the name of the loadout."""
_OPEN: Final[WeakSet[Designing]] = WeakSet()
"""What is open now, in any panel."""
_log = logging.getLogger("materia_nb.widgets")


class Designing:
    """A design in a surface: hears the page and the canvas, and keeps the canvas to what is designed.

    All surfaces that design one loadout of a workbench share a session: what is done in one shows in the others.

    Args:
        bench: where it is saved, and cast.
        design: what is edited, unless the loadout is being edited already.
        canvas: the picture; None where it is drawn by somebody else.
    """

    def __init__(self, bench: Workbench, design: Design, canvas: GraphPanel | None = None) -> None:
        self.session = _session(bench, design)
        if self.session.design.changed:
            self.session.note = "status", "the edits that were not saved; Reload takes what is on disk"
        _OPEN.add(self)
        self._before = spots_in(self.session.design.began)
        self.canvas = canvas
        self.changed: Callable[[], object] = lambda: None
        self.cast_made: Callable[[Cast], object] | None = None
        """Called with the cast that was begun from here."""
        self._shown: tuple[object, object] | None = None
        self._ends: list[Callable[[], object]] = []
        self._following = False
        if canvas is not None:
            canvas.mode = "design"
            canvas.show_marks(Marks())
            self._ends += [canvas.on_select(self._picked), canvas.on_gesture(self._gesture)]
            self.draw()

    def heard(self, kind: str, values: Mapping[str, Any]) -> None:
        """Do what a message asks for, and show it wherever this is designed; never raises."""
        self.session.cast_made = self.cast_made
        self.session.heard(kind, values)
        for one in _sharing(self.session):
            one.changed()

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
        _OPEN.discard(self)
        if design.changed and not _sharing(self.session):
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


def _sharing(session: DesignSession) -> list[Designing]:
    """Return what is open on a session."""
    return [one for one in tuple(_OPEN) if one.session is session]


def _session(bench: Workbench, design: Design) -> DesignSession:
    """Return the session in which a loadout is edited already, with its edits, or else another one."""
    for one in tuple(_OPEN):
        found = one.session
        if found.bench is bench and found.design.name == design.name:
            if not found.design.changed:
                found.design.reload(design)
            return found
    return DesignSession(bench, _UNSAVED.get(bench, {}).pop(design.name, design))
