"""The graph of a loadout or cast as a clickable picture, with a list of its selectable parts.

Only this module uses ipycytoscape, which draws the graph. Our own front end (``front/canvas_widget.js``) receives the
scene once, and then each set of changes in one message. Sockets and lines are not widgets, so they can be added and
removed quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import ipycytoscape as cyto
import ipywidgets as ui
from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, ValidationInfo, WithJsonSchema
from traitlets import observe

from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.cast.views.status import overlay_of, status_lines
from materia_nb.display.escape import part, shorten
from materia_nb.display.graph_parts import NO_OVERLAY, CastOverlay, graph_summary
from materia_nb.display.layout import Direction, Level, best_layout, grid_positions
from materia_nb.display.ranking import GridPosition
from materia_nb.display.svg import THEMES, graph_svg
from materia_nb.display.text import graph_text
from materia_nb.errors import MateriaError
from materia_nb.loadout.graph import END, Graph
from materia_nb.loadout.vocabulary import Condition
from materia_nb.widgets.base import Panel, runs_of
from materia_nb.widgets.frontend import FONT, CanvasFront, MessageRegistry, ShortText, bad_message, reference
from materia_nb.widgets.graph_elements import GraphElements, drawn_conditions
from materia_nb.widgets.selection import Kind, Selection, selectable_parts

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.cast.snapshot import Snapshot

_HEIGHT: Final = 420  # Default height of a graph that is shown alone, in pixels.
_DEFAULT_CANVAS_SIZE: Final = (535.0, 490.0)
"""Width and height of the canvas, in pixels, that are assumed until the page reports the actual size."""
_MAX_PLAYED_STATES: Final = 20_000
"""Maximum number of states on the playable page of a loadout, so that the user does not wait too long."""
_MIN_SOCKETS_TO_FOLD: Final = 30  # Minimum number of sockets at which a graph folds its finished loops automatically.
SelectionCallback: TypeAlias = Callable[[Kind, str], object]
"""Callback that receives the kind and id of the selected part."""


class _Cytoscape(cyto.CytoscapeWidget):
    """The widget of ipycytoscape. It also closes the default graph, which ipycytoscape creates but never closes.

    The wheel sensitivity is not sent to the page, because Cytoscape logs a warning for every value.
    """

    wheel_sensitivity = None

    @observe("graph")
    def _replaced(self, change: Any) -> None:
        if isinstance(change["old"], ui.Widget):
            change["old"].close()


class _Moment(NamedTuple):
    """A snapshot of a cast, with flags for a past snapshot and for a running step."""

    snapshot: Snapshot
    past: bool
    working: bool


class Gesture(NamedTuple):
    """A user action on the canvas other than a selection, as the kind and the fields of its message."""

    kind: str
    fields: dict[str, Any]


canvas_messages: Final = MessageRegistry("ToCanvas", "Messages to the picture of a graph.")


def _gesture(function: Callable[..., None]) -> Callable[..., None]:
    """Register a message that is validated by the function's signature and passed on to the owner of the canvas."""

    @wraps(function)
    def forward(panel: GraphPanel, **fields: Any) -> None:
        panel.forward(Gesture(function.__name__.strip("_"), {name.strip("_"): value for name, value in fields.items()}))

    return canvas_messages.message(forward)


def _read_element(element: object, info: ValidationInfo) -> Selection | None:
    panel: Any = info.context
    selection: Selection | None = panel.selection_at(element)
    return selection


def _read_socket(element: str, info: ValidationInfo) -> str:
    selection = _read_element(element, info)
    if selection is None or selection[0] != "socket":
        problem = f"The graph no longer has a socket {shorten(element, 120)!r}."
        raise bad_message(problem, "reload the page, then try again on the current graph")
    return selection[1]


def _read_target(element: str, info: ValidationInfo) -> str:
    return END if element == END_ELEMENT else _read_socket(element, info)


END_ELEMENT: Final = "s:end"
"""Id of the canvas element for the end of the cast."""
CanvasElement: TypeAlias = Annotated[Any, BeforeValidator(_read_element), WithJsonSchema({"type": "string"})]
"""Id of an element of the canvas; validation returns the selection that the element represents, or None."""
SocketElement: TypeAlias = Annotated[ShortText, AfterValidator(_read_socket)]
"""Id of the canvas element of a socket; validation returns the id of the socket."""
TargetElement: TypeAlias = Annotated[ShortText, AfterValidator(_read_target)]
"""Id of the canvas element of a socket or of the end; validation returns the id of the socket, or ``end``."""
Pixels: TypeAlias = Annotated[float, Field(strict=True, ge=-1e6, le=1e6)]


class GraphPanel(Panel):
    """The live graph of a cast, or the graph of a loadout without a cast.

    The user selects a socket, an edge, an exit or a loop by a click or in the list of parts. Each selection calls the
    callbacks that were passed to :meth:`on_select`.

    Args:
        source: the cast to follow, or a graph.
        height: the height of a graph that is shown alone, in pixels; 0 fills the container.
        follows: True to redraw the graph after each change to the cast; otherwise the owner calls :meth:`show_moment`.
    """

    def __init__(self, source: Cast | Graph, *, height: int = _HEIGHT, follows: bool = True) -> None:
        self.graph: Graph = source if isinstance(source, Graph) else source.graph
        self.cast: Cast | None = None if isinstance(source, Graph) else source
        super().__init__(graph_summary(self.graph))
        self.selected: Selection | None = None
        self._marks_override: CastOverlay | None = None
        self._owner_moment: _Moment | None = None
        self._selection_callbacks: list[SelectionCallback] = []
        self._gesture_callbacks: list[Callable[[Gesture], object]] = []
        self._mode = "cast"
        self._folded: frozenset[str] = frozenset()
        self._unfolded: frozenset[str] = frozenset()
        self._marked: tuple[str, ...] = ()
        self._scene_number = 0
        self._canvas_size = _DEFAULT_CANVAS_SIZE
        self._edits = 0
        self._positions: dict[str, GridPosition] = {}
        self._direction: Direction | None = None
        self._level: Level | None = None
        self._scene = self._compute_layout()
        self._cytoscape = _Cytoscape(
            cytoscape_layout={"name": "preset", "fit": False},
            cytoscape_style=[],
            tooltip_source="",  # the page would insert the named text unescaped
            user_zooming_enabled=False,  # the wheel scrolls the page
            auto_ungrabify=True,
            min_zoom=0.05,
            max_zoom=3.0,
        )
        self._cytoscape.add_class("mnb-canvas")
        self.front = CanvasFront(
            drawing=reference(self._cytoscape),
            fixed={
                "themes": {name: dict(theme) for name, theme in THEMES.items()},
                "conditions": drawn_conditions(),
                "font": FONT,
            },
        )
        handle = self.guarded(self.on_message)
        # The text of an error shrinks the canvas; the report of the new size must not remove the error.
        resize = self.guarded(self.on_message, by_person=False)

        def receive(_: object, content: Any, __: object) -> None:
            is_resize = isinstance(content, Mapping) and content.get("kind") == "room"
            (resize if is_resize else handle)(content)

        self.front.on_msg(receive)
        self.picture = ui.Box([self._cytoscape, self.front])
        self.picture.add_class("mnb-graph")
        self.notice.add_class("mnb-graph-notice")
        self.set_widgets(self.picture)
        self.view.add_class("mnb-graph-cell")
        if height:
            self.picture.layout.height = f"{height}px"
            self.picture.add_class("mnb-graph-alone")
        self._show_scene(fresh=True)
        if self.cast is not None and follows:
            self.follow(self.cast)
            self.on_close(runs_of(self.cast).watch(lambda _: self.schedule_refresh()))
        self.refresh()

    def _compute_layout(self) -> GraphElements:
        """Return the layout of the graph for the available area, in the direction that the user has set, if any.

        In design mode, existing cards keep their positions, and a new card is placed next to its predecessor. The level
        of detail stays the same once all cards have a position, or once the cards show only their names.
        """
        directions: tuple[Direction, ...] = (self._direction,) if self._direction else ("right", "down")
        if len(self.graph.sockets) < 2 and self._canvas_size[0] < 1.5 * self._canvas_size[1]:
            directions = directions[::-1]  # later cards are added in the direction with more room
        if self._mode != "design":
            placed = best_layout(self.graph, self._canvas_size, directions=directions, folded=self._folded)
            return GraphElements(self.graph, placed)
        written = grid_positions(self.graph)
        is_complete = self.graph.sockets.keys() <= self._positions.keys() | written.keys()
        placed = best_layout(
            self.graph,
            self._canvas_size,
            directions=directions,
            folded=self._folded,
            positions=self._positions | written,
            levels=(self._level,) if self._level and (is_complete or self._level == 1) else (2, 1),
        )
        self._direction, self._level = placed.direction, placed.level
        self._positions |= {key: position for key, position in placed.grid_positions().items() if key not in written}
        return GraphElements(self.graph, placed)

    def tidy(self) -> None:
        """Discard the card positions that were set in the designer so that the layout places all cards."""
        self._positions = {}
        self._rebuild_scene(fresh=True)

    # -- public methods ---------------------------------------------------------------------

    def on_select(self, callback: SelectionCallback) -> Callable[[], None]:
        """Call ``callback(kind, id)`` after each selection, and return a function that unsubscribes it."""
        self._selection_callbacks.append(callback)
        return lambda: self._selection_callbacks.remove(callback) if callback in self._selection_callbacks else None

    def on_gesture(self, callback: Callable[[Gesture], object]) -> Callable[[], None]:
        """Call ``callback`` for each :class:`Gesture`, and return a function that unsubscribes it.

        The functions in this module that are decorated with ``_gesture`` define the kinds of gestures.
        """
        self._gesture_callbacks.append(callback)
        return lambda: self._gesture_callbacks.remove(callback) if callback in self._gesture_callbacks else None

    @property
    def mode(self) -> str:
        """``cast`` to show a cast, or ``design`` to let the user drag and connect sockets."""
        return self._mode

    @mode.setter
    def mode(self, mode: str) -> None:
        """``cast`` to show a cast, or ``design`` to let the user drag and connect sockets."""
        self._mode, self._positions = ("design" if mode == "design" else "cast"), {}
        self._direction, self._level, self._edits = None, None, 0
        self._rebuild_scene(fresh=True)

    def select(self, kind: Kind, key: str) -> None:
        """Select a part as a click does, and clear the marked sockets.

        Args:
            kind: ``socket``, ``edge``, ``exit`` or ``loop``.
            key: the id of a socket or loop, ``edge:<place>:<socket>`` or ``loop-exit:<loop>:<route>``.

        Raises:
            MateriaError: there is no such part (``unknown_part``).
        """
        if (kind, key) not in self._parts():
            raise MateriaError(
                f"The graph of {part(self.graph.name)} has no {kind} {shorten(key, 120)!r}.",
                hint="choose a part from the list that the Find button of the graph opens",
                kind="unknown_part",
            )
        self.selected, self._marked = (kind, key), ()
        self.refresh()
        for callback in tuple(self._selection_callbacks):
            callback(kind, key)

    def mark(self, pick: Selection | None) -> None:
        """Highlight a part as selected without calling the callbacks; None clears the selection."""
        self.selected = pick
        self.refresh()

    def mark_sockets(self, ids: Iterable[str]) -> None:
        """Mark several sockets, as if the user had drawn a rectangle around them."""
        self._marked = tuple(ids)
        self.refresh()

    def show_marks(self, marks: CastOverlay | None) -> None:
        """Show these marks instead of the state of the cast; None shows the state of the cast again."""
        self._marks_override = marks
        self.refresh()

    def show_moment(self, snapshot: Snapshot, selected: Selection | None, *, past: bool, working: bool) -> None:
        """Show a snapshot of a cast; an owner that shows the same snapshot around the graph calls this method.

        Args:
            snapshot: the snapshot of the cast.
            selected: the selected part; a part that does not exist clears the selection.
            past: True if the snapshot is past.
            working: True while a step is running.
        """
        self._owner_moment, self.selected = _Moment(snapshot, past=past, working=working), selected
        if self.graph is not snapshot.graph:
            self.replace(snapshot.graph)
        else:
            self.refresh()

    def replace(self, graph: Graph) -> None:
        """Show another graph without changing zoom, position and direction."""
        self.graph = graph
        self._edits += 1
        if self.selected not in self._parts():
            self.selected = None
        self._direction = self._scene.placed.direction  # keep the direction while the graph is edited
        before, scene = self._scene.placed.level, self._compute_layout()
        self._rebuild_scene(scene, fresh=self._mode == "design" and scene.placed.level != before)

    def turn(self, direction: Direction) -> None:
        """Set the direction in which the graph flows, ``right`` or ``down``."""
        self._direction = direction
        self._rebuild_scene(fresh=True)

    def fold(self, loop: str) -> None:
        """Fold a loop into one card, or unfold it; it is then no longer folded automatically."""
        self._folded ^= {loop} & self.graph.loops.keys()
        self._unfolded |= {loop}
        self._rebuild_scene(fresh=False)

    @property
    def grid_positions(self) -> dict[str, GridPosition]:
        """Current positions of the cards, as columns and rows of the loadout's layout."""
        return self._scene.placed.grid_positions()

    def grid_position(self, x: float, y: float) -> GridPosition:
        """Convert a point in the picture to a column and row of the loadout's layout."""
        return self._scene.placed.grid_position(x, y)

    @property
    def marks(self) -> CastOverlay:
        """The marks that the graph shows now."""
        return self._marks_for(self._moment())

    def _marks_for(self, moment: _Moment | None) -> CastOverlay:
        if self._marks_override is not None:
            return self._marks_override
        if moment is None:
            return NO_OVERLAY
        marks = overlay_of(moment.snapshot)
        return replace(marks, working=True) if moment.working else marks

    def _moment(self) -> _Moment | None:
        """Return the snapshot to draw: the owner's snapshot, or else the current one; None without a cast."""
        if self._owner_moment is not None or self.cast is None:
            return self._owner_moment
        working = runs_of(self.cast).busy_for(self)
        return _Moment(self.cast.now, past=False, working=working)

    def fallback(self) -> tuple[str, str | None]:
        """Return the graph in its displayed state, as text and as a static picture."""
        marks = self.marks
        return graph_text(self.graph, marks), graph_svg(self.graph, marks)

    # -- messages ---------------------------------------------------------------

    def on_message(self, content: object) -> None:
        """Handle a message from the page.

        Raises:
            MateriaError: the message is unknown or malformed, or refers to a missing part (``bad_message``).
        """
        canvas_messages.handle(self, content)

    def selection_at(self, element: object) -> Selection | None:
        """Return the selection that a canvas element represents; None if it cannot be selected or no longer exists.

        Raises:
            MateriaError: the id of the element is not a string (``bad_message``).
        """
        if not isinstance(element, str | None):
            raise bad_message("The page sent a message in which the id of an element is not a string.")
        return self._scene.selections.get(element or "")

    @canvas_messages.message
    def _pick(self, element: CanvasElement) -> None:
        """Select a part."""
        if element is not None:
            self.select(*element)

    @canvas_messages.message
    def _room(self, w: float, h: float) -> None:
        """Report the width and height of the canvas, in pixels."""
        self._resize(w, h)

    @canvas_messages.message
    def _turn(self) -> None:
        """Switch the direction of the flow between right and down."""
        self.turn("right" if self._scene.placed.direction == "down" else "down")

    @canvas_messages.message
    def _fold(self, element: CanvasElement) -> None:
        """Fold a loop into one card, or unfold it."""
        if element is not None and element[0] == "loop":
            self.fold(element[1])

    @canvas_messages.question
    def _svg(self, theme: Literal["light", "dark"]) -> dict[str, Any]:
        """Return the graph as SVG in the colours of a theme."""
        svg = graph_svg(self.graph, self.marks, placed=self._scene.placed, colours=THEMES[theme])
        return {"text": svg, "type": "image/svg+xml", "ending": "svg"}

    @canvas_messages.question
    def _play(self) -> dict[str, Any]:
        """Return a page on which the user plays through the loadout; see :meth:`.ExploreView.play`."""
        page = ExploreView(self.graph, max_states=_MAX_PLAYED_STATES).play_page()
        return {"text": page, "type": "text/html", "ending": "html"}

    # -- gestures ------------------------------------------------

    def forward(self, gesture: Gesture) -> None:
        """Pass a gesture on to the callbacks of :meth:`on_gesture`."""
        if gesture.kind == "ground":
            self.selected = None
        elif gesture.kind == "marquee":
            self._marked = tuple(gesture.fields["ids"])
        for callback in tuple(self._gesture_callbacks):
            callback(gesture)
        self.refresh()

    @_gesture
    def _ground(self) -> None:
        """Report a click on the background."""

    @_gesture
    def _open(self, element: CanvasElement) -> None:
        """Open a part in the inspector."""

    @_gesture
    def _break(self, element: CanvasElement, *, after: StrictBool = False) -> None:
        """Set or remove a breakpoint at a part; with ``after``, the cast stops after the socket, not before it."""

    @_gesture
    def _connect(self, from_: SocketElement, to: TargetElement) -> None:
        """Add an edge between two sockets, or from a socket to the end."""

    @_gesture
    def _when(self, of: CanvasElement, when: Condition) -> None:
        """Change the condition of an edge or exit."""

    @_gesture
    def _reorder(self, of: CanvasElement, offset: Literal[-1, 1]) -> None:
        """Move an edge or exit up or down by one position."""

    @_gesture
    def _move(self, id_: SocketElement, x: Pixels, y: Pixels) -> None:
        """Move the centre of a socket to a point in the picture, in pixels."""

    @_gesture
    def _marquee(self, ids: list[SocketElement]) -> None:
        """Mark the sockets inside the rectangle that the user has drawn."""

    @_gesture
    def _delete(self, ids: list[SocketElement] = [], of: CanvasElement = None) -> None:  # noqa: B006 - only declared
        """Remove the marked sockets, or a part."""

    @_gesture
    def _add(self, materia: Annotated[str, Field(max_length=300)], x: Pixels, y: Pixels) -> None:
        """Add a socket with the given materia at a point in the picture, in pixels."""

    @_gesture
    def _undo(self) -> None:
        """Undo the last change to the design."""

    @_gesture
    def _redo(self) -> None:
        """Redo the last change that was undone."""

    @_gesture
    def _copy(self, ids: list[SocketElement] = []) -> None:  # noqa: B006 - only declared
        """Copy sockets to the clipboard."""

    @_gesture
    def _cut(self, ids: list[SocketElement] = []) -> None:  # noqa: B006 - only declared
        """Copy sockets to the clipboard, and remove them."""

    @_gesture
    def _paste(self) -> None:
        """Insert the copied sockets."""

    @_gesture
    def _duplicate(self, ids: list[SocketElement] = []) -> None:  # noqa: B006 - only declared
        """Insert copies of sockets without changing the clipboard."""

    def _resize(self, width: float, height: float) -> None:
        """Set the size of the canvas; send a new scene if the layout for the new size differs."""
        if not 0 < height < 1e5 > width > 0 or (self._mode == "design" and self._edits > 1):
            return
        if self._mode == "design":  # the initial size of the canvas; later sizes move nothing
            self._positions, self._direction, self._level, self._edits = {}, None, None, 2
        if self.marks.visits:  # a running cast keeps its initial direction
            self._direction = self._scene.placed.direction
        self._canvas_size = (width, height)
        before, scene = self._scene.placed, self._compute_layout()
        after = scene.placed
        if (before.direction, before.level, before.nodes) != (after.direction, after.level, after.nodes):
            self._rebuild_scene(scene, fresh=True)

    # -- drawing ----------------------------------------------------------------------------

    def _parts(self) -> list[Selection]:
        return [selection for _, selection in selectable_parts(self.graph)]

    def _rebuild_scene(self, scene: GraphElements | None = None, *, fresh: bool) -> None:
        with self._drawing:
            if self.closed:
                return
            self._scene = scene or self._compute_layout()
            self._show_scene(fresh=fresh)
        self.refresh()

    def _show_scene(self, *, fresh: bool) -> None:
        """Send the scene to the page; with ``fresh``, also reset zoom and position to show the whole graph."""
        self._scene_number += 1
        elements = self._scene.elements
        listed = [
            [label.lstrip("\N{NO-BREAK SPACE}"), elements[pick], 0 if pick[0] in ("socket", "loop") else 1]
            for label, pick in selectable_parts(self.graph)
            if pick in elements
        ]
        scene = self._scene.data() | {"number": self._scene_number, "fresh": fresh, "list": listed}
        with self.front.hold_sync():
            self.front.look = dict(self._scene.appearance(self.marks))
            self.front.scene = scene

    def draw(self) -> None:
        """Update the picture and the text below it."""
        moment = self._moment()
        marks = self._marks_for(moment)
        self._fold_finished(marks)
        look = self._scene.appearance(marks)
        before = self.front.look
        changed_elements = {key: element for key, element in look.items() if before.get(key) != element}
        if changed_elements:
            self.front.change(changed_elements)
        elements = self._scene.elements
        flags = {
            "mode": self._mode,
            "selected": elements.get(self.selected) if self.selected is not None else None,
            "current": self._scene.element_of(marks.current),
            "name": part(self.graph.name, 80),
            "told": " · ".join(self._status_lines(moment)),
            "follows": self.cast is not None,
            "marked": [look_ for key in self._marked if (look_ := elements.get(("socket", key))) is not None],
        }
        if self.front.flags != flags:
            self.front.flags = flags

    def _fold_finished(self, marks: CastOverlay) -> None:
        """Fold the finished loops of a large graph, except loops that the user has folded or unfolded."""
        if len(self.graph.sockets) < _MIN_SOCKETS_TO_FOLD:
            return
        finished_loops = {
            loop.id
            for loop in self.graph.loops.values()
            if (of := marks.progress.get(loop.id, (0, 0)))[1] and of[0] >= of[1] and marks.current not in loop.sockets
        }
        folded = (self._folded & self._unfolded) | (finished_loops - self._unfolded)
        if folded != self._folded:
            self._folded = folded
            self._scene = self._compute_layout()
            self._show_scene(fresh=False)

    def _status_lines(self, moment: _Moment | None) -> tuple[str, ...]:
        """Return a description of the status of the cast, line by line."""
        if moment is None:
            return (self.title,)
        past_note = ("as it was",) if moment.past else ()
        return (*past_note, *(part(line, 300) for line in status_lines(moment.snapshot)[:4]))
