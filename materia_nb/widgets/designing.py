"""Designing a loadout on a canvas: the surfaces that are open on a design, and what one has unsaved that was closed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

from materia_nb.cast import Cast
from materia_nb.cast.workbench import Workbench
from materia_nb.display.graph_parts import NO_MARKS
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import is_number
from materia_nb.loadout.design import Design
from materia_nb.loadout.graph import Graph
from materia_nb.widgets.design_acts import DesignSession
from materia_nb.widgets.design_slices import design_slice, drawn_pick
from materia_nb.widgets.graph_panel import Gesture, GraphPanel

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
            self.session.note = "status", "the unsaved edits; Reload reads the file from disk"
        _OPEN.add(self)
        self.canvas = canvas
        self.changed: Callable[[], object] = lambda: None
        self.cast_made: Callable[[Cast], object] | None = None
        """Called with the cast that was begun from here."""
        self._shown: Graph | None = None
        self._ends: list[Callable[[], object]] = []
        self._following = False
        if canvas is not None:
            canvas.mode = "design"
            canvas.show_marks(NO_MARKS)
            self._ends += [canvas.on_select(self._picked), canvas.on_gesture(self._on_gesture)]
            self.draw()

    def on_message(self, kind: str, values: Mapping[str, Any]) -> None:
        """Do what a message asks for, and show it wherever this is designed; never raises."""
        self.session.cast_made = self.cast_made
        self.session.on_message(kind, self._with_spots(values))
        for one in _sharing(self.session):
            if kind == "tidy" and one.canvas is not None:
                one.canvas.tidy()
            one.changed()

    def _with_spots(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read pixels of the picture as column and row; who places one card keeps the others where they are seen."""
        if isinstance(then := values.get("then"), Mapping):
            return {**values, "then": self._with_spots(then)}
        x, y = values.get("x"), values.get("y")
        if self.canvas is None or not (is_number(x) and is_number(y)):
            return values
        column, row = self.canvas.grid_position(x, y)
        seen = {id_: list(at) for id_, at in self.canvas.grid_positions.items()}
        return {**values, "x": column, "y": row, "places": seen}

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
        graph = self.graph()
        self._following = True
        try:
            if self._shown is not graph:
                canvas.replace(graph)
                self._shown = graph
            canvas.mark(drawn_pick(session))
            canvas.mark_sockets(session.marked)
        except Exception:  # noqa: BLE001 - a design can be gone on with without its picture
            _log.warning("the design cannot be drawn; the picture before it stays", exc_info=True)
        finally:
            self._following = False

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
            self.on_message("pick", {"what": [kind, key]})

    def _on_gesture(self, gesture: Gesture) -> None:
        kind, fields = gesture
        if kind == "break":
            return  # it is for casts
        if kind in ("ground", "open"):
            kind, fields = "pick", {"what": fields.get("what")}
        elif fields.get("ids") and kind != "marquee":
            self.session.on_message("marquee", {"ids": fields["ids"]})
        self.on_message(kind, fields)

    def _take_config(self) -> None:
        """Know the materia that were defined since; while a file cannot be read, those of before."""
        try:
            self.session.design.config = self.session.bench.loadouts.config.document
        except MateriaError:
            _log.info("the config cannot be read now; the one before it stays", exc_info=True)


def _sharing(session: DesignSession) -> list[Designing]:
    """Return what is open on a session."""
    return [one for one in tuple(_OPEN) if one.session is session]


def unsaved_design(bench: Workbench, name: str) -> Design | None:
    """Return the design of that name that has edits in this kernel, in an open panel or a closed one."""
    opened = (one.session for one in tuple(_OPEN))
    designs = [one.design for one in opened if one.bench is bench and one.design.name == name]
    return next((one for one in designs if one.changed), _UNSAVED.get(bench, {}).get(name))


def _session(bench: Workbench, design: Design) -> DesignSession:
    """Return the session in which a loadout is edited already, with its edits, or else another one."""
    for one in tuple(_OPEN):
        session = one.session
        if session.bench is bench and session.design.name == design.name:
            if session.design is not design and not session.design.changed:
                session.design.reload(design)
            return session
    made = DesignSession(bench, _UNSAVED.get(bench, {}).pop(design.name, design))
    if not made.design.changed:
        made.offer_draft()
    return made
