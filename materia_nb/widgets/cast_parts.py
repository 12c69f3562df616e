"""The parts of a cast's panel, defined by a table with the name, position and content of each part.

:data:`PARTS` determines the tabs of the dock and their order, the parts that can be shown alone, the help of the verb
``show``, and the list that the page receives. To add a read-only part, write a function that returns blocks
(:mod:`materia_nb.display.blocks`), and add a row to the table. Any other part also needs a body of the same name in
``front/bodies.js``.

A redraw recomputes only the parts whose inputs have changed; :class:`FrameMemo` caches the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from materia_nb.cast.snapshot import Live
from materia_nb.cast.views.status import overlay_of, status_lines, steps_view
from materia_nb.cast.views.step_views import lanes_blocks
from materia_nb.cast.views.tables import files_blocks, items_view
from materia_nb.display.blocks import Block, JsonView, blocks_as_text
from materia_nb.display.svg import graph_svg
from materia_nb.widgets.cast_slices import StepRows, axis_end, bar_state, compare_blocks, events_blocks, timeline_state
from materia_nb.widgets.failure_panel import rerun_actions
from materia_nb.widgets.inspector_tabs import inspector_state
from materia_nb.widgets.state_tree import ItemTexts, WatchList, items_state

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.widgets.base import Activity
    from materia_nb.widgets.inspector_tabs import Element

_Slice: TypeAlias = dict[str, Any]
PartPosition: TypeAlias = Literal["bar", "graph", "inspector", "dock"]


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The data for one redraw of a panel. All parts use the same frame, so they show the same point in time.

    Attributes:
        casts: the current snapshots of the first cast and its forks.
        index: the index of the cast that the panel shows.
        past: the past snapshot that the user is viewing, or None for the present.
        rows: the timeline rows of the branch that the panel shows.
        item_texts: the texts of the current work items.
        watched: the state paths whose values are watched.
        lane: the name of the lane in the inspector, or an empty string for the cast itself.
        selected: the selected element; None selects the current position of the cast.
        tab: the inspector tab that was opened last.
        only: the name of the only inspector tab to show, or an empty string to show all tabs.
        modes: the available modes: ``cast``, and ``design`` if there is a workbench.
        mode: the active mode.
        activity: the current activity of the cast.
        compares: a function that returns the comparison that the user requested; None compares the casts of the panel.
    """

    casts: Sequence[Snapshot]
    index: int
    past: Snapshot | None
    rows: StepRows
    item_texts: ItemTexts
    watched: WatchList
    lane: str
    selected: Element | None
    tab: str
    only: str
    modes: Sequence[str]
    mode: str
    activity: Activity
    compares: Callable[[Snapshot], Sequence[Block]] | None

    @cached_property
    def now(self) -> Snapshot:
        """Current snapshot of the cast that the panel shows."""
        return self.casts[self.index]

    @cached_property
    def inspected(self) -> Snapshot:
        """Current snapshot of the cast or lane in the inspector."""
        return lane_of(self.now, self.lane)

    @property
    def shown(self) -> Snapshot:
        """Snapshot that the user is viewing, either past or present."""
        return self.past or self.now

    @cached_property
    def cache_key(self) -> tuple[object, ...] | None:
        """Cache key of the current state of the cast, or None if parts also depend on data outside the cast.

        Parts depend on the clock while a step is running or an approval is valid, and on files and definitions after
        a failure. The key contains the identity of the session object, because a session is never modified.
        """
        now, state = self.now, self.now.engine
        if self.activity.busy or state.failure is not None or (state.at is not None and state.at.approval):
            return None
        stops = tuple(now.breakpoints)  # their order counts
        return id(now.session), id(now.rules), stops, _live_values(now.live), self.activity


_live_values: Final = attrgetter(*(name for name in Live.__slots__ if name != "stops"))


def lane_of(cast: Snapshot, name: str) -> Snapshot:
    """Return the current snapshot of a lane, or the cast itself if it has no lane with this name."""
    return cast.lanes[name].now if name in cast.lanes else cast


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a cast's panel.

    Attributes:
        name: the name of the part, used in messages and to show the part alone.
        title: the title of its tab, or a function that computes the title from the content; empty if it has no tab.
        at: the position of the part in the panel. The dock has one tab per part; every other position holds one part.
        blocks: a function that returns the content of a read-only part.
        state: a function that returns the content of a part that has its own body in the front end.
        while_open: True if the content is slow to compute and is computed only while its tab is open.
        depends_on: the frame fields on which the content depends in addition to the state of the cast; None if the content
            must be recomputed in every frame.
        tab_name: the name of the inspector tab that makes up the whole part.
        text: a function that returns the text for viewers without widgets; by default the blocks as text, or the
            status of the cast if the part has no blocks.
        standalone: True if the part can be shown alone.
        height: the height in pixels if the part is shown alone.
    """

    name: str
    at: PartPosition
    title: str | Callable[[Frame, _Slice], str] = ""
    blocks: Callable[[Frame], Sequence[Block]] | None = None
    state: Callable[[Frame], _Slice] | None = None
    while_open: bool = False
    depends_on: tuple[str, ...] | None = None
    tab_name: str = ""
    text: Callable[[Snapshot], object] | None = None
    standalone: bool = True
    height: int = 360

    @property
    def slice(self) -> str:
        """Widget trait that holds the content of the part."""
        return self.name if self.at == "dock" else self.at

    def draw(self, frame: Frame) -> _Slice:
        """Return the content of the part as JSON."""
        if self.blocks is not None:
            return {"blocks": [block.as_json() for block in self.blocks(frame)]}
        return self.state(frame) if self.state is not None else {}

    def fallback(self, frame: Frame) -> tuple[str, str | None]:
        """Return text and SVG for viewers that cannot display widgets."""
        if self.text is not None:
            return repr(self.text(frame.now)), None
        if self.blocks is not None:
            return blocks_as_text(self.blocks(frame)), None
        return cast_fallback(frame.now)


def cast_fallback(cast: Snapshot) -> tuple[str, str | None]:
    """Return the status of a cast as text, and a picture of its graph."""
    return "\n".join(status_lines(cast)), graph_svg(cast.graph, overlay_of(cast))


def _bar(frame: Frame) -> _Slice:
    again = rerun_actions(frame.now, frame.inspected, frame.past, frame.rows.line)
    return {**bar_state(frame.now, frame.activity), "again": again, "mode": frame.mode, "modes": list(frame.modes)}


def _inspector(frame: Frame) -> _Slice:
    arguments = frame.inspected, frame.selected, frame.past, frame.tab
    return inspector_state(*arguments, busy=frame.activity.busy, only=frame.only)


def _items(frame: Frame) -> _Slice:
    return items_state(frame.now, frame.item_texts, busy=frame.activity.busy)


def _items_title(_: Frame, drawn: _Slice) -> str:
    total = len(drawn["items"]) + drawn["more"]
    return f"Items {min(drawn['done'], total)}/{total}" if total else "Items"


def _watch_title(frame: Frame) -> str:
    count = len(frame.watched.paths(frame.now))
    return f"Watch {count}" if count else ""


def _events_title(_: Frame, drawn: _Slice) -> str:
    count = sum(len(block.get("rows", ())) for block in drawn["blocks"])
    return f"Events {count}" if count else ""


PARTS: Final[dict[str, Part]] = {
    part.name: part
    for part in (
        Part(
            name="timeline",
            at="dock",
            title="Timeline",
            state=lambda frame: timeline_state(frame.now, frame.rows, frame.past, busy=frame.activity.busy),
            depends_on=("rows", "past"),
            text=steps_view,
        ),
        Part(name="items", at="dock", title=_items_title, state=_items, depends_on=(), text=items_view),
        Part(
            name="watch",
            at="dock",
            title=lambda frame, _: _watch_title(frame),
            state=lambda frame: frame.watched.state(frame.now, frame.shown, frame.rows.line),
            while_open=True,
            standalone=False,
        ),
        Part(
            name="lanes",
            at="dock",
            title=lambda frame, _: f"Lanes {len(frame.now.lanes)}" if frame.now.lanes else "",
            blocks=lambda frame: lanes_blocks(frame.now, axis_end(busy=frame.activity.busy), frame.past),
            depends_on=("past",),
        ),
        Part(
            name="events",
            at="dock",
            title=_events_title,
            blocks=lambda frame: events_blocks(frame.now, frame.rows),
            depends_on=("rows",),
            standalone=False,
        ),
        Part(
            name="files",
            at="dock",
            title=lambda frame, _: "Files" if frame.now.session.snapshot_method else "",
            blocks=lambda frame: files_blocks(frame.shown, frame.now),
            while_open=True,
        ),
        Part(
            name="compare",
            at="dock",
            title=lambda frame, _: "Compare" if len(frame.casts) > 1 or frame.compares else "",
            blocks=lambda frame: (
                frame.compares(frame.now) if frame.compares else compare_blocks(frame.casts, frame.index)
            ),
            while_open=True,
            standalone=False,
        ),
        Part(name="state", at="inspector", tab_name="state", text=lambda now: JsonView("state", dict(now.state))),
        Part(name="handoff", at="inspector", tab_name="output"),
        Part(name="reply", at="inspector", tab_name="answer"),
        Part(
            name="inspector", at="inspector", state=_inspector, depends_on=("selected", "past", "tab", "lane", "only")
        ),
        Part(name="toolbar", at="bar", state=_bar, depends_on=("mode", "modes", "past", "rows", "lane"), height=44),
        Part(name="graph", at="graph", height=480),
    )
}
"""All parts by name; the parts of the dock are listed in the order of their tabs."""


def content_parts() -> list[Part]:
    """Return the parts that have a content function; the graph and the single inspector tabs have none."""
    return [part for part in PARTS.values() if part.blocks is not None or part.state is not None]


def standalone_names() -> list[str]:
    """Return the names of the parts that can be shown alone."""
    return [part.name for part in PARTS.values() if part.standalone]


def dock_names() -> tuple[str, ...]:
    """Return the names of the dock's parts in the order of their tabs. The first tab is open initially."""
    return tuple(part.name for part in PARTS.values() if part.at == "dock")


class FrameMemo:
    """A cache for the parts of a panel: the latest content of each part, and a key of the inputs of that content."""

    def __init__(self) -> None:
        # The frame keeps the objects alive whose identities are part of the key.
        self._cache: dict[str, tuple[tuple[object, ...] | None, Frame, Any]] = {}

    def part(self, name: str, frame: Frame, depends_on: tuple[str, ...] | None, make: Callable[[], Any]) -> Any:
        """Return the content of a part; call ``make`` only if the cast or a frame field in ``depends_on`` has changed."""
        key = None
        if depends_on is not None and frame.cache_key is not None:
            key = (*frame.cache_key, *[getattr(frame, field) for field in depends_on])
        before = self._cache.get(name)
        if before is not None and key is not None and before[0] == key:
            return before[2]
        content = make()
        self._cache[name] = key, frame, content
        return content

    def parts(self, frame: Frame, opened: str) -> tuple[dict[str, _Slice], list[list[str]]]:
        """Return the content of every part by the name of its slice, and the name and title of each dock tab.

        Args:
            frame: the frame to draw.
            opened: the name of the part whose dock tab is open.
        """
        slices: dict[str, _Slice] = {}
        tabs: list[list[str]] = []
        for part in content_parts():
            content: _Slice = {}
            if part.name == opened or not part.while_open:
                content = slices[part.slice] = self.part(part.name, frame, part.depends_on, partial(part.draw, frame))
            title = part.title if isinstance(part.title, str) else part.title(frame, content)
            if title:
                tabs.append([part.name, title])
        return slices, tabs
