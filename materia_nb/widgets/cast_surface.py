"""The surface of a cast: one widget with the bar, graph, inspector, timeline and items.

The front end (``front/``) draws the parts around the graph. This module sends them slices of state, which pure
functions compute from one snapshot. ``cast_panel.py`` handles the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from materia_nb.cast.formatting import step_at
from materia_nb.display.blocks import Block, clip_plain
from materia_nb.display.escape import shorten
from materia_nb.engine.session import parts_of
from materia_nb.errors import MateriaError, plain
from materia_nb.widgets.base import Panel, RunControl, error_message, runs_of
from materia_nb.widgets.cast_parts import (
    PARTS,
    Frame,
    FrameMemo,
    cast_fallback,
    content_parts,
    dock_names,
    lane_of,
)
from materia_nb.widgets.cast_slices import StepRows, identity
from materia_nb.widgets.design_session import Designer
from materia_nb.widgets.frontend import Front, MessageRegistry, Token, bad_message, outdated
from materia_nb.widgets.graph_panel import GraphPanel
from materia_nb.widgets.inspector_tabs import Element, possible_breakpoints, require_element
from materia_nb.widgets.state_tree import ItemTexts, WatchList

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.cast.workbench import Workbench
    from materia_nb.engine.session import Session
    from materia_nb.jsonvalue import JSON
    from materia_nb.widgets.graph_panel import Gesture

HEIGHT: Final = 600
"""Default height of the surface, in pixels."""
_ITEM_LISTS: Final = 20  # Number of recent lists of work items on which an edit may be based.
_EDIT_DISCARDING: Final = ("back", "ask_again", "edit_output")


class CastSurface(Panel):
    """The view of a cast with all its parts, and the user's selection of an element and a point in time.

    Args:
        cast: the cast to show.
        forked: a function that is called with each cast that the user forks; the panel then shows the fork.
        bench: the workbench for designing the loadout of the cast; None disables design mode.
        height: the height in pixels.
        only_part: the name of the only part to show, see ``PARTS`` in ``cast_parts.py``; empty to show all parts.
    """

    interval = 0.1

    def __init__(
        self,
        cast: Cast,
        forked: Callable[[Cast], object] = lambda _: None,
        *,
        bench: Workbench | None = None,
        height: int = HEIGHT,
        only_part: str = "",
    ) -> None:
        super().__init__(only_part or "cast")
        self.cast, self.casts = cast, [cast]
        self.past: Snapshot | None = None
        self.lane = ""
        self.runs: RunControl = runs_of(cast)
        self.rows = StepRows()
        self.item_texts = ItemTexts()
        self.watched = WatchList()
        self.item_lists: dict[str, Sequence[JSON]] = {}
        self._memo = FrameMemo()
        self.selected: Element | None = None
        self.tab, self.dock = "answer", dock_names()[0]
        self.only_part = PARTS.get(only_part)
        self._tabs: list[list[str]] = []
        self._bench, self._forked = bench, forked
        self.aborting = self._is_tick_scheduled = self._lanes_joined = False
        self._known_questions: frozenset[object] = frozenset()
        self._shown_notice: Mapping[str, Any] = {}
        self.without_edits: dict[str, Any] = {}
        self._identity = ""
        self._identified: tuple[tuple[Session, str, bool], str] | None = None
        self.compares: Callable[[Snapshot], Sequence[Block]] | None = None
        self.designer: Designer | None = None
        parts = [{"name": part.name, "at": part.at} for part in PARTS.values()]
        self.front = Front([part.slice for part in content_parts()], parts)
        self.front.on_msg(self.guarded(lambda _, content, __: self.on_message(content)))
        self.graph: GraphPanel | None = None
        if self.only_part is None or self.only_part.at == "graph":
            self.graph = self.own(GraphPanel(cast, height=0, follows=False))
            self.graph.on_select(self.on_select)
            self.graph.on_gesture(self.on_gesture)
        pictures = () if self.graph is None else (self.graph.view,)
        self.view.children = (*pictures, self.front)
        self.view.add_class("mnb-surface")
        self._has_no_steps, self._needs_height = True, False
        self.height = height
        self.view.layout.height = f"{height}px"
        if height == HEIGHT:
            self.view.add_class("mnb-grows")  # follows the window's height until the user changes it
        self._follow_cast(cast)
        self.call_after_cells(self._cell_ran)
        self.on_close(lambda: self.designer.close() if self.designer is not None else None)
        self.refresh()

    def _follow_cast(self, cast: Cast) -> None:
        self.follow(cast)
        self.on_close(cast.follow.text(self.schedule_refresh))
        self.watch_runs(runs_of(cast))

    def _cell_ran(self) -> None:
        """Redraw a failed cast after a cell has run, because the cell may have fixed the cause of the failure."""
        if self.cast.failure is not None:
            self.schedule_refresh()

    # -- user actions ------------------------------------------------------------------------

    def on_message(self, content: object) -> None:
        """Handle a message from the page, and draw the result.

        Raises:
            MateriaError: the message is unknown or malformed (``bad_message``), its subject has changed since the page
                showed it (``outdated``), a step is running (``busy``), or the cast refuses the command.
        """
        values = content if isinstance(content, Mapping) else {}
        kind = values.get("kind")
        if self.designer is not None and kind not in ("mode", "height", "dismiss"):
            self.designer.on_message(str(kind), values)
        else:
            if kind in _EDIT_DISCARDING:
                request = {name: value for name, value in values.items() if name not in ("identity", "first")}
                self.without_edits = {**request, "discard_edits": True}
            cast_messages.handle(self, content)
        self.refresh()

    def on_select(self, kind: str, key: str) -> None:
        """Select an element that the user has clicked in the graph. The designer handles clicks in design mode."""
        if self.designer is None:
            self.select(require_element(self.cast.now, kind, key))

    def on_gesture(self, gesture: Gesture) -> None:
        """Handle a gesture on the graph. The designer handles gestures in design mode."""
        if self.designer is not None:
            return
        match gesture.kind, gesture.fields:
            case "ground", _:
                self.select(None)
            case "open", {"element": (kind, key)}:
                self.on_select(kind, key)
            case "break", {"element": (kind, key), **options}:
                self._toggle_breakpoint(require_element(self.cast.now, kind, key), **options)
        self.refresh()

    def _toggle_breakpoint(self, element: Element, *, after: bool = False) -> None:
        """Set a breakpoint at an element of the graph, or remove its breakpoints."""
        breakpoints, possible = self.cast.breakpoints, possible_breakpoints(self.cast.now, element)
        existing_breakpoints = [breakpoint_ for breakpoint_ in breakpoints if breakpoint_.event_key in possible]
        if existing_breakpoints:
            breakpoints.remove(*existing_breakpoints)
        elif possible:
            breakpoints.toggle(possible[1 if after else 0])

    def identity(self) -> str:
        """Return the identity of the content that the inspector shows now."""
        return self._identity_at(self.cast.now, busy=self.runs.busy)

    def _identity_at(self, now: Snapshot, *, busy: bool) -> str:
        state = now.session, self.lane, busy
        before = self._identified
        if before is None or now.failure is not None or before[0][0] is not now.session or before[0][1:] != state[1:]:
            self._identified = before = state, identity(now, self.lane, busy=busy)
        return before[1]

    # -- running ----------------------------------------------------------------------------

    def start(self, action: Callable[[], object]) -> None:
        """Run ``action`` in the background, and show the current state of the cast."""
        self.runs.resumable_run = None  # the new action determines how far the cast runs
        self.show_step(None)
        self.runs.start(action)

    def run_until(self, run: Callable[[], object]) -> None:
        """Start a run that :meth:`resolve` and :meth:`resolve_now` can resume after a failure or a question."""
        self.start(self._resumable(run, run))

    def resolve(self, action: Callable[[], object]) -> None:
        """Start ``action``, which resolves the cause of a stop, and then resume the stopped run, if any."""
        resume, cast = self._interrupted_run(), self.cast
        if resume is None:
            self.start(action)
            return

        def resolve() -> object:
            outcome = action()
            return resume() if cast.status == "ready" else outcome

        self.start(self._resumable(resolve, resume))

    def resolve_now(self, action: Callable[[], object]) -> None:
        """Call ``action``, which quickly resolves the cause of a stop, and then resume the stopped run, if any."""
        resume, cast = self._interrupted_run(), self.cast
        action()
        self.select(None)
        if resume is not None and cast.status == "ready":
            self.start(self._resumable(resume, resume))

    def _resumable(self, action: Callable[[], object], resume: Callable[[], object]) -> Callable[[], object]:
        """Return a function that calls ``action`` and, if the run then waits or fails, stores ``resume`` to continue it."""
        cast, runs = self.cast, self.runs

        def run() -> object:
            outcome = None
            try:
                outcome = action()
                return outcome
            finally:
                has_stopped = not isinstance(outcome, str) and cast.status in ("waiting", "held", "failed")
                if has_stopped or outcome in ("person", "failed"):
                    runs.resumable_run = resume, _positions(cast.now)

        return run

    def _interrupted_run(self) -> Callable[[], object] | None:
        """Return a function that resumes the run stopped at the current position; None if no run was stopped there."""
        if self.runs.resumable_run is None:
            return None
        resume, positions = self.runs.resumable_run
        return resume if _positions(self.cast.now) & positions else None

    # -- selection and position in time -------------------------------------------------

    def select(self, element: Element | None) -> None:
        """Show an element in the inspector; None shows the current position of the cast."""
        if element is not None and element.kind == "step":
            self.show_step(int(element.id))
            return
        self.selected = element
        if element is not None and self.past is not None and element.kind != "socket":
            self.show_step(None)
        self.refresh()

    def show_step(self, number: int | None, lane: str = "") -> None:
        """Show the state at the end of a step of the cast or of a lane; None returns to the present.

        Raises:
            MateriaError: there is no such step (``no_step``) or lane (``unknown_lane``).
        """
        if number is None and self.past is None:
            return
        cast = self.cast.now.lane(lane)
        self.past = None if number is None else cast.at(number, None if lane else self.rows.line)
        self.refresh()

    def show_row(self, row: int) -> None:
        """Show the state at the end of the step in a timeline row; row 0 is the start of the cast.

        Raises:
            MateriaError: there is no such row (``no_step``).
        """
        now = self.cast.now
        step = step_at(self.rows.steps(now), row) if row else None
        if step is None or not step.lane:
            self.show_step(0 if step is None else step.number)
            return
        self.past = now.snapshot_for(step).at(step.number)
        self.refresh()

    @property
    def inspected(self) -> Snapshot:
        """Current snapshot of the cast or lane in the inspector."""
        return lane_of(self.cast.now, self.lane)

    def show_cast(self, index: int) -> None:
        """Show the original cast (index 0) or a fork of it."""
        if not 0 <= index < len(self.casts):
            raise bad_message(f"This panel has no cast {index}.")
        self.cast, self.compares = self.casts[index], None
        self.runs, self.rows = runs_of(self.cast), StepRows()
        self.past, self.selected, self.lane = None, None, ""

    def set_mode(self, mode: str) -> None:
        """Switch between the cast and the design of its loadout."""
        if mode == "design" and self.designer is None and self._bench is not None:
            self.designer = Designer(self._bench, self._bench.design(self.cast.graph.name), self.graph)
            self.designer.changed = self.refresh
            self.designer.on_cast_started = self._show_designed_cast
        elif mode == "cast" and self.designer is not None:
            self.designer.close()
            self.designer = None  # the designer has released the graph

    def _show_designed_cast(self, cast: Cast) -> None:
        """Show a cast that was started from the designer."""
        self.set_mode("cast")
        self.show_new_cast(cast)

    def show_new_cast(self, cast: Cast) -> None:
        """Add a cast to the panel and show it; the user can return to the earlier casts."""
        self.casts.append(cast)
        self._follow_cast(cast)
        self._forked(cast)
        self.show_cast(len(self.casts) - 1)

    def _on_run_change(self, runs: RunControl) -> None:
        if runs is self.runs:
            super()._on_run_change(runs)
        else:
            self.schedule_refresh()

    # -- drawing ------------------------------------------------------------------------

    def show_error(self, error: Exception) -> None:
        """Show an exception above the graph; if an outdated click was refused, show a plain notice instead."""
        tone = "fine" if isinstance(error, MateriaError) and error.kind == "outdated" else "bad"
        notice: dict[str, Any] = {"words": clip_plain(error_message(error, self.title), 2_000), "tone": tone}
        if isinstance(error, MateriaError) and error.kind == "edits_lost":
            notice["without_edits"] = self.without_edits
        self.show_notice(notice)

    def show_notice(self, notice: Mapping[str, Any]) -> None:
        """Show a notice above the graph; an empty mapping removes the notice."""
        before, self._shown_notice = self._shown_notice, notice
        if notice != before and not self.closed:
            self.front.put({"surface": self._surface()})

    @property
    def opened(self) -> str:
        """The part that is open in the dock: the only part of the panel, or the part of the selected tab."""
        return self.only_part.name if self.only_part is not None and self.only_part.at == "dock" else self.dock

    def _surface(self) -> dict[str, Any]:
        selected = self.selected
        return {
            "mode": "design" if self.designer is not None else "cast",
            "alone": "" if self.only_part is None else self.only_part.name,
            "notice": self._shown_notice,
            "identity": self._identity,
            "resume": self.cast.id,
            "name": shorten(plain(_request_text(self.cast)), 60),
            "selected": None if selected is None else {"kind": selected.kind, "id": selected.id},
            "dock": self.opened,
            "empty": self._has_no_steps,
            "tall": self._needs_height,
            "tabs": self._tabs,
            "casts": [self._cast_label(index) for index in range(len(self.casts))],
            "cast": self.casts.index(self.cast),
        }

    def _cast_label(self, index: int) -> str:
        if index == 0:
            return "the original" if len(self.casts) > 1 else "this cast"
        cast = self.casts[index]
        return f"fork {index}: {shorten(plain(_request_text(cast)), 40)}".rstrip(": ")

    def draw(self) -> None:
        """Send the current state to the page in a single message."""
        busy = self.runs.busy_for(self)
        casts = [cast.now for cast in self.casts]  # all parts of the frame show these snapshots
        now = casts[self.casts.index(self.cast)]
        asking_lanes = [name for name, lane in now.lanes.items() if lane.waits_for_person]
        lanes_joined = bool(now.lanes) and now.session.streams[-1].status == "joined"
        if self.lane not in now.lanes or (lanes_joined and not self._lanes_joined):
            self.lane = ""
        if asking_lanes and not busy and not self.lane:
            self.lane = asking_lanes[0]
        self._lanes_joined = lanes_joined
        if not busy:
            has_questions = asking_lanes or now.status == "failed" or (now.writable and now.waits_for_person)
            questions = _question_identities(now, asking_lanes) if has_questions else frozenset()
            if questions - self._known_questions and self.past is None:
                self.tab, self.selected = "answer", None  # show the new question
            self._known_questions = questions
        if self.past is not None and self.rows.line is None and not _is_on_branch(self.past, now):
            self.past = None  # going back removed the viewed moment
        frame = self._frame(casts, busy=busy)
        slices, self._tabs = self._memo.parts(frame, self.opened)
        base = slices["items"]["base"]
        if base not in self.item_lists:  # edits may be about a list that is no longer current
            self.item_lists = dict([*self.item_lists.items()][1 - _ITEM_LISTS :]) | {base: now.work_items}
        if self.designer is not None:
            slices |= self.designer.slices()
        self._identity = self._identity_at(now, busy=busy)
        self._has_no_steps = self.past is None and not frame.shown.steps
        self._needs_height = now.status in ("failed", "complete")
        self.front.put({"surface": self._surface(), **slices})
        if self.designer is None:
            self._memo.part("graph", frame, ("selected", "past"), lambda: self._show_graph(frame.shown, working=busy))
        if busy and now.live.stop_requested:
            self._tick()

    def _show_graph(self, snapshot: Snapshot, *, working: bool) -> None:
        element, graph_selection, past = self.selected, None, self.past is not None
        if element is not None and element.kind != "item" and element.kind != "step":  # noqa: PLR1714 - so that mypy narrows the type
            graph_selection = element.kind, element.id
        if self.graph is not None:
            self.graph.show_moment(snapshot, graph_selection, past=past, working=working and not past)

    def _frame(self, casts: Sequence[Snapshot], *, busy: bool) -> Frame:
        return Frame(
            casts=casts,
            index=self.casts.index(self.cast),
            past=self.past,
            rows=self.rows,
            item_texts=self.item_texts,
            watched=self.watched,
            lane=self.lane or (_running_lane(casts[self.casts.index(self.cast)]) if busy else ""),
            selected=self.selected,
            tab=self.tab,
            only="" if self.only_part is None else self.only_part.tab_name,
            modes=("cast", "design") if self._bench is not None else ("cast",),
            mode="cast" if self.designer is None else "design",
            activity=self.runs.activity(busy=busy, aborting=self.aborting),
            compares=self.compares,
        )

    def _tick(self) -> None:
        """Redraw after one second, because no notification arrives while a run is being stopped."""
        if self._is_tick_scheduled:
            return
        self._is_tick_scheduled = True

        def due() -> None:
            self._is_tick_scheduled = False
            self.refresh()

        self.call_after(1.0, due)

    def fallback(self) -> tuple[str, str | None]:
        """Return the only part as text, or the status of the cast with a picture of its graph."""
        if self.only_part is not None:
            return self.only_part.fallback(self._frame([cast.now for cast in self.casts], busy=False))
        return cast_fallback(self.cast.now)


cast_messages: Final = MessageRegistry("ToCast", "Messages to the panel of a cast.")
TypedMessages = Annotated[list[dict[str, Any]], Field(max_length=20)]
"""Messages that apply text that the user has typed but not submitted; they are handled before the main message."""


# -- guards of messages ----------------------------------------------------------------------


def require_current(panel: CastSurface, identity: Token) -> None:
    """Refuse a message if its subject has changed since the page showed it (R70)."""
    if identity != panel.identity():
        raise _outdated_error()


def require_same_cast(panel: CastSurface, identity: Token) -> None:
    """Refuse a message about another cast; accept a message about an earlier position of this cast."""
    if identity.split(".")[0] != panel.identity().split(".")[0]:
        raise _outdated_error()


def _outdated_error() -> MateriaError:
    return outdated(
        "the cast has changed since the page showed it", "check the current state in the panel, then click again"
    )


def require_idle(panel: CastSurface) -> None:
    """Refuse a message while a step is running."""
    panel.runs.refuse_while_busy()


def apply_typed(panel: CastSurface, first: TypedMessages = []) -> None:  # noqa: B006 - never changed
    """Apply unsubmitted text before a message is handled; if the text is refused, the message is not handled."""
    for message in first:
        cast_messages.handle(panel, {**message, "identity": panel.identity()})


def _request_text(cast: Cast) -> str:
    """Return the request of a cast without taking a snapshot."""
    return cast.runner.session.state.request


def _positions(now: Snapshot) -> frozenset[object]:
    """Return the current positions of a cast and its lanes, each as a tuple of lane, step and turn."""
    visits = ((name, now.lane(name).engine.at) for name in ("", *now.lanes))
    return frozenset((name, visit.step, visit.turn) for name, visit in visits if visit is not None)


def _question_identities(now: Snapshot, asking_lanes: Sequence[str]) -> frozenset[object]:
    """Return an identity for each open question to the user, in the cast and in each waiting lane (R69)."""
    lanes = {name: lane.now for name, lane in now.lanes.items() if name in asking_lanes or not asking_lanes}
    questions = []
    for name, part in {"": now, **lanes}.items():
        step = part.session.steps.latest
        tries = step and (step.attempts, len(step.turns))
        questions.append((now.id, len(now.abandoned), name, len(part.steps), tries, part.session.asks, part.status))
    return frozenset(questions)


def _running_lane(now: Snapshot) -> str:
    """Return the name of the first running lane, or ""; the inspector shows it until the user selects a lane."""
    names = (name for name, lane in now.lanes.items() if lane.status == "running" and not lane.waits_for_person)
    return next(names, "")


def _is_on_branch(past: Snapshot, now: Snapshot) -> bool:
    """Return True if a past snapshot is on the current branch of the cast or of a lane."""
    parts = (part for part in parts_of(now.session) if part.prefix == past.session.prefix)
    return any(len(past.steps) <= len(part.steps) for part in parts)
