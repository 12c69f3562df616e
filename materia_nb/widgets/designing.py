"""Designing a loadout on a canvas: what gestures and messages do to the design, and what the page is then told.

Every function is pure. Texts are those of the loadout, unescaped: the page writes them as text, never as markup.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, WeakSet

from materia_nb.cast import Cast
from materia_nb.cast.workbench import Workbench
from materia_nb.display.blocks import sendable
from materia_nb.display.escape import part, shorten
from materia_nb.display.graph_parts import Marks
from materia_nb.errors import MateriaError, counted
from materia_nb.loadout.design import Design
from materia_nb.loadout.facts import Object, as_object, is_number, is_text, materia_group, materia_kind
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.vocabulary import tint_of
from materia_nb.widgets.design_findings import DesignSlice, dock_slice
from materia_nb.widgets.design_inspector import inspector_slice, purpose
from materia_nb.widgets.design_session import DesignSession
from materia_nb.widgets.graph_panel import GraphPanel
from materia_nb.widgets.messages import Gesture, ToCanvas
from materia_nb.widgets.picks import drawn_parts

if TYPE_CHECKING:
    from materia_nb.widgets.picks import Pick

_MOST_WORDS: Final = 200
_UNGROUPED: Final = "agents"
_LAST: Final = "utilities"


def design_slice(session: DesignSession) -> DesignSlice:
    """Return the whole slice ``design``."""
    picked = _drawn_pick(session)
    made: DesignSlice = sendable(
        {
            "bar": _bar_slice(session),
            "palette": _palette_slice(session.design),
            "inspector": inspector_slice(session),
            "dock": dock_slice(session),
            "selected": None if picked is None else {"kind": picked[0], "id": picked[1]},
            "marked": list(session.marked),
            "parts": [
                {"words": words.replace("\N{NO-BREAK SPACE}", " ").strip(), "what": list(pick)}
                for words, pick in session.parts
            ],
        }
    )
    return made


def _drawn_pick(session: DesignSession) -> Pick | None:
    """Return what is selected, as the picture names it; None for nothing."""
    if session.selected is None:
        return None
    drawn = drawn_parts(session.design.document, session.design.graph())
    return next((one for one, mine in drawn.items() if mine == session.selected), None)


# -- bar and palette ----------------------------------------------------------------------


def _bar_slice(session: DesignSession) -> DesignSlice:
    """Return name, counts, what undo and redo would do, where it is saved, and what was said last."""
    design, (sign, words) = session.design, session.note
    question = session.question
    return {
        "name": part(design.name),
        "changed": design.changed,
        "fresh": not design.began,
        "steps": len(design.steps),
        "problems": len(design.report.problems),
        "hints": len(design.report.hints),
        "undo": shorten(design.steps[-1], _MOST_WORDS) if design.steps else None,
        "redo": shorten(design.undone[0], _MOST_WORDS) if design.undone else None,
        "home": str(design.home),
        "where": "this notebook" if design.home.path is None else design.home.path.name,
        "why": design.home.why,
        "note": {"sign": sign, "words": shorten(words, 2_000)},
        "question": None
        if question is None
        else {"words": question.words, "choices": [shorten(one, 80) for one, _ in question.choices]},
        "canPaste": session.clip is not None,
        "estimate": session.estimated[1]
        if session.estimated is not None and session.estimated[0] is design.now
        else "",
        "left": _left(design),
    }


def _left(design: Design) -> str:
    """Say what there is of a design when its kernel has died."""
    if not design.changed:
        return "all of it is saved."
    if design.not_kept:
        return f"what was saved is in its file; {design.not_kept}."
    return f"it offers the draft of {part(design.name)}, with all {counted(len(design.unsaved[1]), 'step')}."


def _palette_slice(design: Design) -> DesignSlice:
    """Return every materia under the heading of its group: agents without one first, utilities last."""
    used: dict[str, int] = {}
    for raw in as_object(design.document.get("sockets")).values():
        named = as_object(raw).get("materia")
        if isinstance(named, str):
            used[named] = used.get(named, 0) + 1
    groups: dict[str, list[DesignSlice]] = {}
    for id_, raw in design.definitions.items():
        definition = as_object(raw)
        group = materia_group(definition)
        title = _UNGROUPED if not group else _LAST if group == "Utility" else group
        groups.setdefault(title, []).append(_entry(id_, definition, used.get(id_, 0)))
    order = sorted(groups, key=lambda one: (one == _LAST, one != _UNGROUPED, one.casefold()))
    return {"groups": [{"title": shorten(title, 60), "entries": groups[title]} for title in order]}


def _entry(id_: str, raw: Object, placed: int) -> DesignSlice:
    tint = tint_of(raw.get("color"))
    label = raw.get("label")
    return {
        "id": id_,
        "label": part(label if is_text(label) else id_, 60),
        "kind": materia_kind(raw),
        "generator": raw.get("generator") is True,
        "colour": None if tint is None else tint.fill,
        "about": purpose(raw),
        "placed": placed,
    }


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
            canvas.show_marks(Marks())
            self._ends += [canvas.on_select(self._picked), canvas.on_gesture(self._gesture)]
            self.draw()

    def heard(self, kind: str, values: Mapping[str, Any]) -> None:
        """Do what a message asks for, and show it wherever this is designed; never raises."""
        self.session.cast_made = self.cast_made
        self.session.heard(kind, self._with_spots(values))
        for one in _sharing(self.session):
            if kind == "tidy" and one.canvas is not None:
                one.canvas.tidy()
            one.changed()

    def _with_spots(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read pixels of the picture as column and row; who places one card keeps the others where they are seen."""
        x, y = values.get("x"), values.get("y")
        if self.canvas is None or not (is_number(x) and is_number(y)):
            return values
        column, row = self.canvas.spot_of(x, y)
        seen = {id_: list(at) for id_, at in self.canvas.spots.items()}
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
            canvas.mark(_drawn_pick(session))
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
            self.heard("pick", {"what": [kind, key]})

    def _gesture(self, gesture: Gesture) -> None:
        match gesture:
            case ToCanvas.Ground():
                self.heard("pick", {"what": None})
            case ToCanvas.Open(what=what):
                self.heard("pick", {"what": what})
            case ToCanvas.Break() | ToCanvas.RunTo():
                pass  # they are for casts
            case _:
                values = gesture.as_json()
                kind, ids = values.pop("kind"), values.get("ids")
                if ids and not isinstance(gesture, ToCanvas.Marquee):
                    self.session.heard("marquee", {"ids": ids})
                self.heard(kind, values)

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
