"""The parts of a cast's panel, one row each: what a part is called, where it stands and what it shows.

What is drawn, the tabs of the dock and their order, what can be shown alone, the help of the verb ``show`` and what the
page is told of the parts all follow from :data:`PARTS`. A part of the dock that is only to be read is a function that
returns blocks (:mod:`materia_nb.display.blocks`) and a row here; one that is more than that has its body in
``front/bodies.js``, under its own name.

A frame makes only the parts again of which something changed: :class:`Drawing` keeps the others while the *outline* of the
frame stays what it was, and beside it what they say they read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from materia_nb.cast.snapshot import Live
from materia_nb.cast.views.status import marks_of, status_lines, steps_view
from materia_nb.cast.views.tables import files_blocks, items_view
from materia_nb.display.blocks import Block, JsonView, blocks_as_text
from materia_nb.display.svg import graph_svg
from materia_nb.engine.session import Session
from materia_nb.engine.state import CastState
from materia_nb.jsonvalue import get_path
from materia_nb.loadout.facts import WORK_ITEMS
from materia_nb.widgets.cast_slices import (
    StepRows,
    bar_state,
    compare_blocks,
    events_blocks,
    lanes_tab,
    timeline_state,
)
from materia_nb.widgets.inspector_tabs import Once, inspector_state
from materia_nb.widgets.state_tree import Watched
from materia_nb.widgets.work_items import items_state

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.widgets.base import Doing
    from materia_nb.widgets.inspector_tabs import Element

_Slice: TypeAlias = dict[str, Any]
Place: TypeAlias = Literal["bar", "graph", "inspector", "dock"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a panel shows of its casts in one frame: every part of it is drawn from the same moment.

    Attributes:
        casts: those of the panel: the first, and those that were forked from it, each as it is now.
        place: which of them is shown.
        past: the moment that is looked at, None for the present.
        rows: the steps of the line that is shown.
        watched: the paths of the state whose values are watched.
        lane: which lane the inspector tells about, empty for the cast itself.
        selected: what is selected, None for wherever the cast is.
        tab: the tab of the inspector that was opened last.
        only: the one tab that the inspector has, where only that is shown; else empty.
        modes: those that there are, cast and design.
        mode: the one that is on.
        doing: what runs of the cast.
        compares: makes what was asked to be compared, from the cast that is shown; None for the casts of the panel.
        once: keeps pieces of a part that is made in every frame, see :meth:`Drawing.once`.
    """

    casts: Sequence[Snapshot]
    place: int
    past: Snapshot | None
    rows: StepRows
    watched: Watched
    lane: str
    selected: Element | None
    tab: str
    only: str
    modes: Sequence[str]
    mode: str
    doing: Doing
    compares: Callable[[Snapshot], Sequence[Block]] | None
    once: Once

    @property
    def now(self) -> Snapshot:
        """The cast that is shown, as it is now."""
        return self.casts[self.place]

    @property
    def here(self) -> Snapshot:
        """What the inspector tells about: the cast as it is now, or a lane of it."""
        return lane_of(self.now, self.lane)

    @property
    def shown(self) -> Snapshot:
        """The cast at the moment that is looked at."""
        return self.past or self.now

    def outline(self) -> Outline | None:
        """Return all that it is made of, but for the edits and the values in the state that are no list gone over.

        None where something beside these values has a part in it: the clock while a step runs or a consent stands, files
        and the workbench's definitions where the cast failed.
        """
        now, state = self.now, self.now.engine
        if self.doing.busy or state.failure is not None or (state.at is not None and state.at.grant):
            return None
        lists = [get_path(state.data, path) for path in ((WORK_ITEMS,), *now.rules.lists)]
        frozen = (now.rules, *lists, *_of_session(now.session), *_of_state(state))
        stops = tuple(now.breakpoints.conditions.items())  # in their order, too
        return frozen, (len(self.casts), stops, *_of_frame(self), *_of_live(now.live))


Outline: TypeAlias = tuple[tuple[object, ...], tuple[object, ...]]
"""Values that are frozen, and so the same only as the same objects; and those that are compared."""


def _all_but(names: Iterable[str], *others: str) -> Iterator[str]:
    return (name for name in names if name not in others)


_of_frame: Final = attrgetter(*_all_but(Frame.__slots__, "casts"))
_of_live: Final = attrgetter(*_all_but(Live.__slots__, "stops"))
_of_session: Final = attrgetter(*_all_but(Session._fields, "state", "edits"))
_of_state: Final = attrgetter(*_all_but(CastState._fields, "data", "changed"))


def lane_of(cast: Snapshot, name: str) -> Snapshot:
    """Return a lane of a cast as it is now; the cast itself where it has no such lane."""
    return cast.lanes[name].now if name in cast.lanes else cast


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a cast's panel.

    Attributes:
        name: what it is shown alone by, and what messages call it.
        title: the words on its tab, or what makes them from what it shows; empty where it has no tab, or none now.
        at: where it stands. Every part of the dock is a tab of it; the other places hold one thing each.
        blocks: makes what it shows, where that is only to be read.
        state: makes what it shows, where the front-end has a body of its own for it.
        while_open: whether it is made only while its tab is open, since it takes long.
        reads: what it is made from beside the outline of a frame, in values to be compared; None where that may be anything.
            Without it, it is made in every frame.
        opens: the tab of the inspector that it consists of.
        plain: what readers without widgets are shown in its place, its blocks as text if left out, and how the cast
            stands if there are none.
        alone: whether it can be shown alone.
        height: in pixels, where it is.
    """

    name: str
    at: Place
    title: str | Callable[[Frame, _Slice], str] = ""
    blocks: Callable[[Frame], Sequence[Block]] | None = None
    state: Callable[[Frame], _Slice] | None = None
    while_open: bool = False
    reads: Callable[[Frame], Hashable | None] = lambda _: None
    opens: str = ""
    plain: Callable[[Snapshot], object] | None = None
    alone: bool = True
    height: int = 360

    @property
    def slice(self) -> str:
        """Under which name the page is told what it shows."""
        return self.name if self.at == "dock" else self.at

    @property
    def drawn(self) -> bool:
        """Whether it makes what it shows itself; the graph does that elsewhere, a tab is made by the inspector."""
        return self.blocks is not None or self.state is not None

    def draw(self, seen: Frame) -> _Slice:
        """Return what it shows, as plain data."""
        if self.blocks is not None:
            return {"blocks": [one.as_json() for one in self.blocks(seen)]}
        return self.state(seen) if self.state is not None else {}

    def words(self, seen: Frame, drawn: _Slice) -> str:
        """Return the words on its tab, empty where there is no tab now."""
        return self.title if isinstance(self.title, str) else self.title(seen, drawn)

    def fallback(self, seen: Frame) -> tuple[str, str | None]:
        """Return text and SVG for readers without widgets."""
        if self.plain is not None:
            return repr(self.plain(seen.now)), None
        if self.blocks is not None:
            return blocks_as_text(self.blocks(seen)), None
        return how_it_stands(seen.now)


def how_it_stands(cast: Snapshot) -> tuple[str, str | None]:
    """Return how a cast stands, and the picture of its graph."""
    return "\n".join(status_lines(cast)), graph_svg(cast.graph, marks_of(cast))


def _bar(seen: Frame) -> _Slice:
    return {**bar_state(seen.now, seen.doing), "mode": seen.mode, "modes": list(seen.modes)}


def _inspector(seen: Frame) -> _Slice:
    looked = seen.here, seen.selected, seen.past, seen.tab
    return inspector_state(*looked, busy=seen.doing.busy, only=seen.only, once=seen.once)


def _timeline(seen: Frame) -> _Slice:
    return timeline_state(seen.now, seen.rows, seen.past, busy=seen.doing.busy)


def _items(seen: Frame) -> _Slice:
    return items_state(seen.now, busy=seen.doing.busy)


def _edited(seen: Frame) -> Hashable:
    return frozenset(edit.step for edit in seen.now.edits)


def _can_undo(seen: Frame) -> Hashable:
    return seen.now.can_undo


def _bar_reads(seen: Frame) -> Hashable:
    return seen.now.can_undo, *seen.now.breakpoints_hit


def _inspector_reads(seen: Frame) -> Hashable | None:
    """What the answer tab tells of a cast that is ready; what is asked of a person, and all other tabs, are about the state too."""
    here, selected = seen.here, seen.selected
    answers = seen.past is None and seen.tab == "answer" and seen.only in ("", "answer")
    of_socket = selected is None or selected.kind == "socket"
    return here.can_undo if answers and of_socket and here.status == "ready" else None


def _items_title(_: Frame, drawn: _Slice) -> str:
    total = len(drawn["items"]) + drawn["more"]
    return f"Items {min(drawn['done'], total)}/{total}" if total else "Items"


def _watch_title(seen: Frame) -> str:
    count = len(seen.watched.paths(seen.now))
    return f"Watch {count}" if count else "Watch"


def _events_title(_: Frame, drawn: _Slice) -> str:
    count = sum(len(one.get("rows", ())) for one in drawn["blocks"])
    return f"Events {count}" if count else ""


def _state_view(now: Snapshot) -> JsonView:
    return JsonView("state", dict(now.state))


PARTS: Final[dict[str, Part]] = {
    part.name: part
    for part in (
        Part(name="timeline", at="dock", title="Timeline", state=_timeline, reads=_edited, plain=steps_view),
        Part(name="items", at="dock", title=_items_title, state=_items, reads=_can_undo, plain=items_view),
        Part(
            name="watch",
            at="dock",
            title=lambda seen, _: _watch_title(seen),
            state=lambda seen: seen.watched.told(seen.now, seen.shown, seen.rows.line),
            while_open=True,
            alone=False,
        ),
        Part(
            name="lanes",
            at="dock",
            title=lambda seen, _: f"Lanes {len(seen.now.lanes)}" if seen.now.lanes else "",
            blocks=lambda seen: lanes_tab(seen.now, seen.past, busy=seen.doing.busy),
            reads=lambda _: (),
        ),
        Part(
            name="events",
            at="dock",
            title=_events_title,
            blocks=lambda seen: events_blocks(seen.now, seen.rows.line),
            reads=lambda _: (),
            alone=False,
        ),
        Part(
            name="files",
            at="dock",
            title=lambda seen, _: "Files" if seen.now.session.keeps else "",
            blocks=lambda seen: files_blocks(seen.shown, seen.now),
            while_open=True,
        ),
        Part(
            name="compare",
            at="dock",
            title=lambda seen, _: "Compare" if len(seen.casts) > 1 or seen.compares else "",
            blocks=lambda seen: (
                seen.compares(seen.now) if seen.compares else compare_blocks(seen.casts, seen.place)
            ),
            while_open=True,
            alone=False,
        ),
        Part(name="state", at="inspector", opens="state", plain=_state_view),
        Part(name="handoff", at="inspector", opens="output"),
        Part(name="reply", at="inspector", opens="answer"),
        Part(name="inspector", at="inspector", state=_inspector, reads=_inspector_reads),
        Part(name="toolbar", at="bar", state=_bar, reads=_bar_reads, height=44),
        Part(name="graph", at="graph", height=480),
    )
}
"""Every part by its name; those of the dock in the order of its tabs."""


def alone_names() -> list[str]:
    """Name the parts that can be shown alone."""
    return [part.name for part in PARTS.values() if part.alone]


def dock_names() -> tuple[str, ...]:
    """Name the parts of the dock, in the order of its tabs; the first is open to begin with."""
    return tuple(part.name for part in PARTS.values() if part.at == "dock")


class Drawing:
    """What the parts of a panel were drawn as, for as long as the outline of its frames stays what it is."""

    def __init__(self) -> None:
        self._outline: Outline | None = None
        self._kept: dict[str, tuple[Hashable, Any]] = {}

    def once(self, name: str, reads: Hashable | None, make: Callable[[], Any]) -> Any:
        """Make a part of the frame, unless it was made before from the same; one that reads None is always made."""
        kept = self._kept.get(name)
        if kept is None or reads is None or kept[0] != reads:
            kept = self._kept[name] = reads, make()
        return kept[1]

    def parts(self, seen: Frame, opened: str) -> tuple[dict[str, _Slice], list[list[str]]]:
        """Return what every part shows, by the name under which the page is told it, and the tabs of the dock.

        Args:
            seen: what there is to be shown.
            opened: the part of the dock that is open.

        Returns:
            The slices; and of each tab the name of its part and the words on it.
        """
        before, now = self._outline, seen.outline()
        if not (before and now and all(map(is_, before[0], now[0])) and before[1] == now[1]):
            self._kept.clear()
        self._outline = now
        slices: dict[str, _Slice] = {}
        tabs: list[list[str]] = []
        for part in PARTS.values():
            drawn: _Slice = {}
            if part.drawn and (part.name == opened or not part.while_open):
                make = partial(part.draw, seen)
                drawn = slices[part.slice] = self.once(part.name, part.reads(seen), make)
            if part.at == "dock" and (words := part.words(seen, drawn)):
                tabs.append([part.name, words])
        return slices, tabs


def parts_for_page() -> list[dict[str, str]]:
    """Return what the page is told of the parts before it is told what they show: of each its name and place."""
    return [{"name": part.name, "at": part.at} for part in PARTS.values()]
