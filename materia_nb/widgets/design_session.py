"""Sessions of the designer, the list of open designers, and the acts that explore, save and cast a design."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import product
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

from pydantic import StrictBool, StrictInt

from materia_nb.cast import Cast
from materia_nb.cast.workbench import Workbench
from materia_nb.display.blocks import Line
from materia_nb.display.escape import shorten
from materia_nb.display.graph_parts import NO_OVERLAY
from materia_nb.display.ranking import GridPosition
from materia_nb.errors import MateriaError, counted
from materia_nb.insight.estimate import QUICK_CASTS
from materia_nb.insight.explore import Exploration
from materia_nb.jsonvalue import as_object, is_number
from materia_nb.loadout.design import Design
from materia_nb.loadout.design.document import design_error
from materia_nb.loadout.graph import Graph, with_names
from materia_nb.loadout.resolve import build_graph, check_config
from materia_nb.widgets.design_acts import act, handle
from materia_nb.widgets.design_slices import design_slice, drawn_selection
from materia_nb.widgets.design_state import SATISFIED_PROBABILITY, DesignQuestion, DesignState, design_messages
from materia_nb.widgets.frontend import LongText, ShortText, Token, outdated
from materia_nb.widgets.graph_panel import Gesture, GraphPanel

_UNSAVED_DESIGNS: Final[WeakKeyDictionary[Workbench, dict[str, Design]]] = WeakKeyDictionary()
"""Designs with unsaved changes that are not open in a panel, by the name of the loadout."""
_OPEN_DESIGNERS: Final[WeakSet[Designer]] = WeakSet()  # The designers that are open in any panel.
_MAX_EXPLORED_STATES: Final = 8_000
"""Maximum number of states to explore for the possible outcomes, so that the user does not wait too long."""
_OFFSETS: Final = tuple(number / 2 for number in range(-6, 7))
_MIN_DISTANCE: Final = 0.8
"""Smallest distance between the centres of two cards that do not overlap, in columns or rows."""
_SNAP_DISTANCE: Final = 0.25
"""Distance within which a dropped card moves into line with another card, in columns or rows."""
_log = logging.getLogger("materia_nb.widgets")


class DesignSession(DesignState):
    """A design with its selection and the result of the last message. It handles the messages from a page."""

    def on_message(self, kind: str, values: Mapping[str, Any]) -> None:
        """Handle a message. An error is shown in ``note`` and does not change the design."""
        earlier_error, note, names, summary = self.design.draft_error, self.note, self.names, None
        try:
            if kind not in ("answer", "pick", "news"):
                self.question = None
            summary = handle(self, kind, values)
        except MateriaError as error:
            where = f" ({error.where})" if error.where and "/" in error.where else ""
            self.note = "alert", ": ".join(filter(None, [f"{error.what.rstrip('.')}{where}", error.hint]))
        except Exception as error:  # noqa: BLE001 - a message may hold anything
            _log.warning("the designer could not handle the message %r", shorten(str(kind), 60), exc_info=error)
            self.note = "alert", f"The change failed with {type(error).__name__}."
        else:
            if summary is not None or (self.note[0] == "alert" and kind != "news"):
                self.note = "status", summary or ""
        if self.design.draft_error not in ("", earlier_error):
            self.note = "alert", f"{summary or 'done'}; {self.design.draft_error}. Save the design to keep it."
        if self.note is not note:
            self.note = self.note[0], with_names(self.note[1], {**names, **self.names})
        self._drop_missing_parts()

    def _drop_missing_parts(self) -> None:
        """Remove references to parts that no longer exist in the design."""
        known = as_object(self.design.document.get("sockets"))
        self.marked = [id_ for id_ in self.marked if id_ in known]
        if self.selected is not None and not self.has_part(*self.selected):
            self.selected = None
        self.refused = {key: field for key, field in self.refused.items() if self.has_fields(*key[:-1])}


class Designer:
    """A design in a panel: handles the messages of the page and the canvas, and keeps the canvas up to date.

    All panels that edit the same loadout of a workbench share a session, so each panel shows the changes made in the
    others.

    Args:
        bench: the workbench that saves and casts the design.
        design: the design to edit; ignored if the loadout already has a session.
        canvas: the canvas that shows the graph, or None if the owner draws the graph.
    """

    def __init__(self, bench: Workbench, design: Design, canvas: GraphPanel | None = None) -> None:
        self.session = _session_for(bench, design)
        if self.session.design.changed:
            self.session.note = "status", "the design has unsaved edits; to discard them, choose Reload from disk"
        _OPEN_DESIGNERS.add(self)
        self.canvas = canvas
        self.changed: Callable[[], object] = lambda: None
        self.on_cast_started: Callable[[Cast], object] | None = None
        """Function that is called with each cast started from this designer."""
        self._drawn_graph: Graph | None = None
        self._close_callbacks: list[Callable[[], object]] = []
        self._is_updating_canvas = False
        if canvas is not None:
            canvas.mode = "design"
            canvas.show_marks(NO_OVERLAY)
            self._close_callbacks += [canvas.on_select(self._on_select), canvas.on_gesture(self._on_gesture)]
            self.draw()

    def on_message(self, kind: str, values: Mapping[str, Any]) -> None:
        """Handle a message, and redraw all panels of this design; never raises."""
        self.session.on_cast_started = self.on_cast_started
        self.session.on_message(kind, self._with_grid_position(values))
        for designer in _open_designers(self.session):
            if kind == "tidy" and designer.canvas is not None:
                designer.canvas.tidy()
            designer.changed()

    def _with_grid_position(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Convert a point in pixels to a column and row, and fix the current positions of all other cards."""
        x, y = values.get("x"), values.get("y")
        if self.canvas is None or not (is_number(x) and is_number(y)):
            return values
        positions = {id_: list(position) for id_, position in self.canvas.grid_positions.items()}
        other_positions = [position for id_, position in positions.items() if id_ != values.get("id")]
        column, row = _free_position(self.canvas.grid_position(x, y), other_positions)
        return {**values, "x": column, "y": row, "positions": positions}

    def slices(self) -> dict[str, dict[str, Any]]:
        """Update the canvas, and return the slice of state for the parts of design mode."""
        self.draw()
        return {"design": design_slice(self.session)}

    def draw(self) -> None:
        """Update the canvas; if the graph cannot be drawn, the canvas keeps the previous picture."""
        self._refresh_config()
        canvas, session = self.canvas, self.session
        if canvas is None:
            return
        graph = session.design.graph()
        self._is_updating_canvas = True
        try:
            if self._drawn_graph is not graph:
                canvas.replace(graph)
                self._drawn_graph = graph
            canvas.mark(drawn_selection(session))
            canvas.mark_sockets(session.marked)
        except Exception:  # noqa: BLE001 - a design can be edited without its picture
            _log.warning("the design cannot be drawn; the previous picture is shown", exc_info=True)
        finally:
            self._is_updating_canvas = False

    def close(self) -> None:
        """Switch the canvas back to the cast, and store unsaved edits for the next designer of the loadout."""
        design = self.session.design
        _OPEN_DESIGNERS.discard(self)
        if design.changed and not _open_designers(self.session):
            _UNSAVED_DESIGNS.setdefault(self.session.bench, {})[design.name] = design
        for end in self._close_callbacks:
            end()
        self._close_callbacks = []
        canvas = self.canvas
        if canvas is None or canvas.closed:
            return
        canvas.mode = "cast"
        canvas.show_marks(None)
        if canvas.cast is not None:
            canvas.replace(canvas.cast.graph)

    def _on_select(self, kind: str, key: str) -> None:
        if not self._is_updating_canvas:
            self.on_message("pick", {"part": [kind, key]})

    def _on_gesture(self, gesture: Gesture) -> None:
        kind, fields = gesture
        if kind == "break":
            return  # it is for casts
        if kind in ("ground", "open"):
            kind, fields = "pick", {"part": fields.get("element")}
        elif fields.get("ids") and kind != "marquee":
            self.session.on_message("marquee", {"ids": fields["ids"]})
        self.on_message(kind, fields)

    def _refresh_config(self) -> None:
        """Read the materia definitions again; if a file cannot be read, keep the previous definitions."""
        try:
            self.session.design.config = self.session.bench.loadouts.config.document
        except MateriaError:
            _log.info("the config cannot be read; the previous config is used", exc_info=True)


def _free_position(at: GridPosition, others: list[list[float]]) -> GridPosition:
    """Snap a card that is dropped at ``at``, and return the closest position where it overlaps no other card.

    If all positions nearby are taken, the card overlaps another card.
    """
    column, row = (_snapped(at[axis], [position[axis] for position in others]) for axis in (0, 1))
    offsets = sorted(product(_OFFSETS, repeat=2), key=lambda offset: sum(map(abs, offset)))
    for x, y in ((column + right, row + down) for right, down in offsets):
        if all(max(abs(x - position[0]), abs(y - position[1])) >= _MIN_DISTANCE for position in others):
            return x, y
    return column, row


def _snapped(coordinate: float, lines: list[float]) -> float:
    """Return the closest of ``lines`` within the snap distance, or else the closest half column or row."""
    near = [line for line in lines if abs(line - coordinate) <= _SNAP_DISTANCE]
    return min(near or [round(coordinate * 2) / 2], key=lambda line: abs(line - coordinate))


def _open_designers(session: DesignSession) -> list[Designer]:
    """Return the open designers that share a session."""
    return [designer for designer in tuple(_OPEN_DESIGNERS) if designer.session is session]


def unsaved_design(bench: Workbench, name: str) -> Design | None:
    """Return this kernel's unsaved design of a loadout, whether its panel is open or closed, or None."""
    open_sessions = (designer.session for designer in tuple(_OPEN_DESIGNERS))
    designs = [session.design for session in open_sessions if session.bench is bench and session.design.name == name]
    return next((design for design in designs if design.changed), _UNSAVED_DESIGNS.get(bench, {}).get(name))


def _session_for(bench: Workbench, design: Design) -> DesignSession:
    """Return the open session of the loadout, or a new session if the loadout is not being edited."""
    for designer in tuple(_OPEN_DESIGNERS):
        session = designer.session
        if session.bench is bench and session.design.name == design.name:
            if session.design is not design and not session.design.changed:
                session.design.reload(design)
            return session
    session = DesignSession(bench, _UNSAVED_DESIGNS.get(bench, {}).pop(design.name, design))
    if not session.design.changed:
        session.offer_draft()
    return session


# -- history, analysis and saving ---------------------------------------------------------------


@act
def undo(session: DesignState) -> str:
    """Undo the last change."""
    return f"undone: {session.design.undo()}"


@act
def redo(session: DesignState) -> str:
    """Redo the last change that was undone."""
    return f"redone: {session.design.redo()}"


@act
def fix(session: DesignState, code: ShortText, source: ShortText) -> str:
    """Apply the automatic fix for a problem or hint."""
    for problem in (*session.design.report.problems, *session.design.report.hints):
        if (problem.code, problem.source) == (code, source):
            return session.design.fix(problem)
    raise design_error("this finding no longer exists", "problems", "check the current list of problems")


@act
def explore(session: DesignState) -> str:
    """Explore all possible runs of the design."""
    exploration = Exploration(_graph_without_problems(session), range(4), _MAX_EXPLORED_STATES)
    session.explored, session.route, session.odds = (session.design.current_change, exploration), (), {}
    session.proof = None
    with suppress(MateriaError):  # no mean, too much to solve, or not all was looked at: then it is left out
        session.odds = dict(exploration.odds(SATISFIED_PROBABILITY, 3).ends)
    return f"explored {exploration.states:,} states"


def _graph_without_problems(session: DesignState) -> Graph:
    problems = session.design.report.problems
    if problems:
        raise design_error(f"the design has {counted(len(problems), 'problem')}", "design", "fix the problems first")
    return session.design.graph()


@act
def compare(session: DesignState) -> str:
    """Compare all possible casts of the saved loadout with those of the current design."""
    design = session.design
    if check_config(design.saved_config, design.name).problems:
        fault = f"no version of {design.name} that can be cast has been saved"
        raise design_error(fault, "changes", "save the design, then compare later changes with it")
    saved, changed = build_graph(design.saved_config, design.name), _graph_without_problems(session)
    comparison = session.bench.compare(saved, changed, behaviour=True)
    legend = Line("A is the saved loadout, B is this design.")
    session.compared = design.saved_change, design.current_change, [legend.as_json(), *comparison.as_json()["inside"]]
    return "compared all possible casts" if comparison else "the changes change no possible cast"


@act
def estimate(session: DesignState) -> None:
    """Estimate the turns, tokens and cost of a cast; the result is shown next to the request."""
    try:
        estimated = session.bench.estimate(session.design, satisfied=SATISFIED_PROBABILITY, casts=QUICK_CASTS)
        line = f"satisfied {SATISFIED_PROBABILITY}, {estimated.line}"
    except MateriaError as error:
        line = f"no estimate is available: {error.what}"
    session.estimated = session.design.current_change, line


@act
def witness(
    session: DesignState, outcome: ShortText, without: ShortText | None = None, since: ShortText | None = None
) -> str:
    """Highlight the shortest path to an outcome on the canvas, or show the proof that no cast takes such a path."""
    if session.explored is None:
        raise design_error("nothing has been explored yet", "what can happen", "press Explore")
    exploration = session.explored[1]
    path = exploration.witness(outcome, without=without, since=since)
    session.route, session.proof = () if path is None else path.route, None
    if path is not None:
        return with_names(f"shortest path: {' → '.join((*path.route, path.end or 'no end'))}", exploration.graph.names)
    rule = {"never": outcome, "without": without, "since": since}
    rules = [{word: event for word, event in rule.items() if event is not None}]
    loadout = session.design.name
    code = f"wb.explore({loadout!r}).save_tests({f'cases/{loadout.lower()}'!r}, rules={rules!r})"
    text = f"no cast with 0 to 3 items reaches {exploration.describe(outcome, without, since)}"
    session.proof = text, code
    return text


@act
def save(session: DesignState, to: ShortText | None = None, *, anyway: StrictBool = False) -> str | None:
    """Save the design to its file or to ``to``; ask for confirmation before overwriting changes made elsewhere."""
    target = None if to is None else to.strip()
    if target in ("", str(session.design.home)):
        target = None
    elif target == "this notebook":
        target = "notebook"
    try:
        return session.bench.loadouts.save(session.design, target, anyway=anyway)
    except MateriaError as error:
        if "save anyway" not in (error.hint or ""):
            raise
        message = {"kind": "save", "to": to, "anyway": True}
        session.question = DesignQuestion(f"{error.what} {error.hint}", (("Save anyway", message),))
        return None


@act
def news(session: DesignState) -> None:
    """Offer a draft that a coding agent has handed over since the design was opened."""
    session.offer_draft(handed_over=True)


@act
def draft(session: DesignState, file: ShortText, *, discard: StrictBool = False) -> str:
    """Continue with a draft, or discard it."""
    drafts = session.bench.loadouts.drafts(session.design.name)
    draft_ = next((draft_ for draft_ in drafts if draft_.path.name == file), None)
    if draft_ is None:
        raise design_error("this draft no longer exists", "draft", "open the design again")
    if not discard:
        return draft_.continue_in(session.design)
    draft_.discard()
    session.offer_draft()
    return f"discarded {draft_}"


@act
def reload(session: DesignState) -> str:
    """Reload the design from disk."""
    return session.design.reload(session.bench.design(session.design.name))


def _require_shown(session: DesignState, design: Token) -> None:
    """Refuse to cast a design that has been changed or cast since the page showed it (R70)."""
    if design != session.identity:
        raise outdated("the design has changed since the page showed it", "check the current design, then cast it")


@design_messages.guarded(_require_shown)
def cast(session: DesignState, request: LongText) -> str:
    """Start a cast of the current design."""
    new_cast = session.bench.cast(request, loadout=session.design)
    session.casts_started += 1
    if session.on_cast_started is not None:
        session.on_cast_started(new_cast)
    return f"cast {new_cast.id} has started"


@act
def answer(session: DesignState, number: StrictInt = -1, question: StrictInt | None = None) -> str | None:
    """Answer the open question with the choice at index ``number``; any other number dismisses the question.

    If ``question`` is set, it must be the number of the current question.
    """
    if question is not None and (session.question is None or session.question.number != question):
        refusal = "nothing was done, because the question has changed"
        raise design_error(refusal, "design", "read the question, then answer")
    question_, session.question = session.question, None
    if question_ is None or not 0 <= number < len(question_.choices):
        return ""
    message = question_.choices[number][1]
    return handle(session, str(message["kind"]), message)
