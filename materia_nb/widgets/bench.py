"""Everything about one cast in one place: toolbar, graph, and the panels as tabs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import ipywidgets as ui

from materia_nb.display.html import Html, html_text
from materia_nb.display.svg import NOW as NOW_COLOUR
from materia_nb.display.svg import graph_svg
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.views import marks_of, status_lines
from materia_nb.widgets.base import Panel, css, show_html, show_panel
from materia_nb.widgets.controls import button, heading, row, show_if
from materia_nb.widgets.handoff import HandoffPanel
from materia_nb.widgets.items import ItemsPanel
from materia_nb.widgets.picks import way_pick
from materia_nb.widgets.reply import ReplyPanel
from materia_nb.widgets.runs import runs_of
from materia_nb.widgets.state import StatePanel
from materia_nb.widgets.timeline import NOW, TimelinePanel
from materia_nb.widgets.toolbar import ToolbarPanel

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.session import StepRecord

_log = logging.getLogger("materia_nb.widgets")


_OUTPUT: Final = ".jp-OutputArea-child"
_LIVES: Final = f"{_OUTPUT}:has(.mnb-recorded:not(.jupyter-widgets-disconnected))"
RECORD_RULES: Final = (
    # The record is for readers who do not have the panel: text and picture, the two outputs below it.
    f"{_LIVES}+{_OUTPUT},{_LIVES}+{_OUTPUT}+{_OUTPUT}{{display:none!important}}"
    # Of a kernel that is gone a panel would leave its bare widgets.
    f"{_OUTPUT}:has(.mnb-recorded.jupyter-widgets-disconnected){{display:none!important}}"
)
"""CSS that shows either the live panel of a cast or its record."""


class PicturePanel(Panel):
    """The graph of a cast as a picture that follows it; for where the live graph cannot be had."""

    interval = 0.5

    def __init__(self, cast: Cast) -> None:
        super().__init__("graph")
        self.cast = cast
        self._picture = ui.HTML()
        self.put(self._picture)
        self.follow(cast)
        self.refresh()

    def draw(self) -> None:
        """Draw the picture of this moment."""
        show_html(self._picture, Html(graph_svg(self.cast.graph, marks_of(self.cast))))

    def fallback(self) -> tuple[str, str | None]:
        """Return how the cast stands, and the picture."""
        return "\n".join(status_lines(self.cast)), graph_svg(self.cast.graph, marks_of(self.cast))


def graph_panel(cast: Cast, *, status: bool = True) -> Panel:
    """Make the live graph; a picture where its library does not work.

    Args:
        cast: which.
        status: whether it says how the cast stands.
    """
    try:
        from materia_nb.widgets.graph import GraphPanel

        return GraphPanel(cast, status=status)
    except Exception:  # noqa: BLE001 - a cast can be gone on with without it
        _log.warning("the live graph cannot be made; a picture is shown", exc_info=True)
        return PicturePanel(cast)


class CastPanel(Panel):
    """A cast, to be gone on with by mouse and keyboard alone.

    Args:
        cast: which.
        forked: called with the new cast when one is forked here; it is shown below.
    """

    interval = 0.3

    def __init__(self, cast: Cast, forked: Callable[[Cast], object] = lambda _: None) -> None:
        super().__init__("cast")
        self.cast = cast
        self._forked = forked
        self._asked = False
        self.graph = self.own(graph_panel(cast, status=False))
        self.timeline = self.own(TimelinePanel(cast, self._show_fork))
        self.toolbar = self.own(
            ToolbarPanel(cast, marked=self.graph.refresh, begun=lambda: self.timeline.select(NOW))
        )
        if (on_select := getattr(self.graph, "on_select", None)) is not None:
            on_select(self.toolbar.aim)
        self.reply = self.own(ReplyPanel(cast))
        self.items = self.own(ItemsPanel(cast))
        self.state = self.own(StatePanel(cast))
        self.handoff = self.own(HandoffPanel(cast, self._point_at))
        self.timeline.on_select(self._look_at)
        tabs = {
            "items": self.items,
            "handoff": self.handoff,
            "reply": self.reply,
            "state": self.state,
            "timeline": self.timeline,
        }
        self.tabs = ui.Tab([panel.view for panel in tabs.values()], titles=list(tabs), selected_index=0)
        self._forks = ui.VBox()
        self._then = ui.HTML()
        self.now_button = button(
            "Back to now", "show the present everywhere", self.guarded(lambda _: self.timeline.select(NOW))
        )
        self._looking_back = row(self._then, self.now_button)
        self.put(
            css(RECORD_RULES),
            self.above_notice(self.toolbar.view),
            self.graph.view,
            self._looking_back,
            self.tabs,
            self._forks,
        )
        self.follow(cast)
        self.at_close(runs_of(cast).watch(lambda _: self.later()))
        self.refresh()

    def recorded(self) -> None:
        """Say that the record of the cast stands below this panel; it is hidden while the panel lives."""
        self.view.add_class("mnb-recorded")

    def _look_at(self, past: Snapshot | None) -> None:
        """Show graph, state and handoff as they were, and by which way the step went on."""
        for panel in (self.graph, self.state, self.handoff):
            panel.look_at(past)
        if past is not None and past.steps:
            self._point_at(past.steps[-1])
        self.past = past
        self.refresh()

    def _point_at(self, step: StepRecord) -> None:
        """Select in the graph the way by which a step went on."""
        way = way_pick(step.decision)
        if way is not None and (select := getattr(self.graph, "select", None)) is not None:
            select(*way)

    def _show_fork(self, made: Cast) -> None:
        self._forked(made)
        panel = self.own(CastPanel(made, self._forked))
        title = ui.HTML()
        show_html(title, heading(f"Fork of {self.cast.id} from step {len(made.steps)}: {made.id}"))
        self._forks.children = (*self._forks.children, title, panel.view)

    def draw(self) -> None:
        """Say which panels look back, and on the tab when an answer is waited for; bring it to the front then."""
        show_if(self._looking_back, self.past is not None)
        if self.past is not None:
            show_html(self._then, _then_html(len(self.past.steps)))
        waiting = self.cast.prompt is not None or self.cast.held is not None
        busy = runs_of(self.cast).busy_for(self)  # an agent that answers is not waited for
        reply = "reply" if not waiting else "reply (working)" if busy else "reply (waiting)"
        titles = ("items", "handoff", reply, "state", "timeline")
        if self.tabs.titles != titles:
            self.tabs.titles = titles
        asks = waiting and not busy
        if asks and not self._asked:
            self.tabs.selected_index = titles.index("reply (waiting)")
        self._asked = asks

    def fallback(self) -> tuple[str, str | None]:
        """Return how the cast stands, and the picture of its graph."""
        return "\n".join(status_lines(self.cast)), graph_svg(self.cast.graph, marks_of(self.cast))


def _then_html(steps: int) -> Html:
    """Say what shows the past: after so many steps."""
    moment = f"after step {steps}" if steps else "at the start"
    words = (
        f"Looking back: graph, handoff and state show the cast as it was {moment}. "
        "The buttons at the top, items and reply are of the present."
    )
    style = f"border-left:4px solid {NOW_COLOUR};padding:0 8px"
    return Html(f'<div role="status" style="{style}">{html_text(words)}</div>')


PANELS: Final[Mapping[str, Callable[[Cast], Panel]]] = {
    "items": ItemsPanel,
    "state": StatePanel,
    "handoff": HandoffPanel,
    "reply": ReplyPanel,
    "timeline": lambda cast: TimelinePanel(cast, alone=True),
    "toolbar": ToolbarPanel,
    "graph": graph_panel,
}
"""The panels that can be shown alone, by name."""


def show(cast: Cast, forked: Callable[[Cast], object] = lambda _: None) -> CastPanel:
    """Make the whole panel of a cast; what earlier runs of the same cell showed is closed.

    Args:
        cast: which.
        forked: called with the new cast when one is forked in the panel.
    """
    return show_panel("show", lambda: CastPanel(cast, forked))


def show_one(cast: Cast, name: str) -> Panel:
    """Make one panel of a cast; what earlier runs of the same cell showed is closed.

    Raises:
        MateriaError: there is no such panel (``unknown_panel``).
    """
    if name not in PANELS:
        hint = f"{did_you_mean(name, PANELS)} (there are {', '.join(PANELS)})"
        raise MateriaError(f"There is no panel {name!r}.", hint=hint, kind="unknown_panel")
    return show_panel(("panel", name), lambda: PANELS[name](cast))
