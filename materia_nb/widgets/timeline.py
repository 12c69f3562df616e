"""Every step of a cast in order: look at the cast as it was, go back there, or fork it from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import ipywidgets as ui

from materia_nb.display.escape import part
from materia_nb.display.html import Html, html_join, html_json
from materia_nb.display.svg import graph_svg
from materia_nb.handoff.event_field import SEVERITIES
from materia_nb.views import marks_of, steps_view, took_words, way_words
from materia_nb.widgets.base import Panel, show_html
from materia_nb.widgets.choices import Choices
from materia_nb.widgets.controls import button, lines_html, row, show_if
from materia_nb.widgets.handoff import handoff_html, why_html
from materia_nb.widgets.runs import runs_of

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.session import StepRecord

Moment: TypeAlias = tuple[int | None, int]
"""The line that a step is in (None for the present one, else the abandoned branch) and its number; 0 is the start."""

NOW: Final[Moment] = (None, -1)
MOST_STEPS: Final = 400
_FILES: Final = (
    "Going back and forking take the cast's state back, not the world: "
    "files that utilities and agents changed stay as they are."
)


class TimelinePanel(Panel):
    """The steps of a cast, those of abandoned branches too.

    Args:
        cast: whose steps.
        forked: called with the new cast after a fork.
        alone: whether it shows the moment's graph, state and handoff itself, there being no panels beside it.
    """

    interval = 0.2

    def __init__(
        self, cast: Cast, forked: Callable[[Cast], object] = lambda _: None, *, alone: bool = False
    ) -> None:
        super().__init__("timeline")
        self.cast = cast
        self.runs = runs_of(cast)
        self.chosen: Moment = NOW
        self._forked = forked
        self._callbacks: list[Callable[[Snapshot | None], object]] = []
        self._explained: object = None
        self.line = ui.Dropdown(
            options=[("the present line", None)],
            tooltip="which line of steps: the present one, or a branch that was left by going back",
            layout=ui.Layout(width="260px"),
        )
        self.line.observe(self.guarded(self._lined), names="value")
        self.filter = ui.Combobox(
            placeholder="only this socket or item; type, then Enter",
            ensure_option=False,
            continuous_update=False,
            layout=ui.Layout(width="auto", flex="1 1 260px"),
        )
        self.filter.observe(self.guarded(lambda _: self.refresh()), names="value")
        self.steps = Choices[Moment](
            self, (), self.select, "every step; select one to see the cast as it was", 12
        )
        self.now_button = button("Now", "show the present again", self.guarded(lambda _: self.select(NOW)))
        self.back_button = button(
            "Back to here",
            "the cast goes on from here; the later steps are kept as an abandoned branch",
            self.guarded(self._back),
            style="warning",
        )
        self.fork_button = button(
            "Fork from here",
            "start another cast from here; this one stays as it is",
            self.guarded(self._fork),
        )
        self._why, self._moment, note = ui.HTML(), ui.HTML(), ui.HTML()
        show_html(note, lines_html([_FILES]))
        self.put(
            row(self.filter, self.line, self.steps.before, self.steps.next),
            self.steps.list,
            self.above_notice(row(self._moment, self.now_button, self.back_button, self.fork_button)),
            note,
            self._why,
            *self._folds(alone=alone),
        )
        self.follow(cast)
        self.at_close(self.runs.watch(lambda _: self.later()))
        self.refresh()

    def fallback(self) -> tuple[str, str | None]:
        """Return the steps as a table of text."""
        return repr(steps_view(self.cast)), None

    def _folds(self, *, alone: bool) -> tuple[ui.Widget, ...]:
        """What the moment looked like, folded; empty where other panels show it."""
        self._views = {name: ui.HTML() for name in ("graph", "state", "handoff")} if alone else {}
        return (ui.Accordion(list(self._views.values()), titles=list(self._views)),) if alone else ()

    # -- for code ---------------------------------------------------------------------

    def on_select(self, callback: Callable[[Snapshot | None], object]) -> None:
        """Call ``callback`` with the cast as it was after each selection; with None for the present."""
        self._callbacks.append(callback)

    def select(self, moment: Moment) -> None:
        """Show the cast as it was after a step; ``NOW`` goes back to the present."""
        past = None if moment == NOW else self.cast.as_of(moment[1], moment[0])
        self.chosen = moment
        self.line.value = moment[0]
        self.past = past
        self.refresh()
        for callback in tuple(self._callbacks):
            callback(past)

    # -- what a person does -----------------------------------------------------------

    def _lined(self, change: Any) -> None:
        """Another line was chosen: show where it ended."""
        line: int | None = change["new"]
        self.select(NOW if line is None else (line, len(self.cast.line(line))))

    def _back(self, _: Any) -> None:
        self.runs.refuse_while_busy()
        self.cast.back_to(self.chosen[1])
        self.select(NOW)

    def _fork(self, _: Any) -> None:
        self.runs.refuse_while_busy()
        made = self.cast.fork(None if self.chosen == NOW else self.chosen[1])
        self._forked(made)
        self.say(f"Forked: {made.id}")

    # -- drawing ------------------------------------------------------------------------

    def draw(self) -> None:
        """Bring list, filter and buttons up to date; a moment that went with going back becomes the present."""
        cast, (line, number) = self.cast, self.chosen
        lines = [("the present line", None), *_branches(cast)]
        if tuple(lines) != tuple(self.line.options):
            self.line.options = lines
            self.line.value = line
        show_if(self.line, len(lines) > 1)
        if line is None and number > len(cast.steps):
            self.chosen = line, number = NOW
        steps = cast.line(line)
        words = _filter_words(cast, steps)
        if words != self.filter.options:
            self.filter.options = words
        self.steps.show(self.chosen, self._named(steps))
        self._draw_moment(steps)

    def _named(self, steps: list[StepRecord] | Any) -> list[tuple[str, Moment]]:
        line, wanted = self.chosen[0], self.filter.value.strip().casefold()
        edited = {edit.step for edit in self.cast.edits} if line is None else set()
        found = [one for one in steps if not wanted or wanted in _sought(self.cast, one)]
        named: list[tuple[str, Moment]] = [] if wanted else [("start", (line, 0))]
        if len(found) > MOST_STEPS:
            named = [(f"… {len(found) - MOST_STEPS} earlier steps: the field above finds them", (line, 0))]
        named += [
            (_words(self.cast, one, one.number in edited), (line, one.number)) for one in found[-MOST_STEPS:]
        ]
        return [*named, ("now", NOW)]

    def _draw_moment(self, steps: Any) -> None:
        cast, (line, number) = self.cast, self.chosen
        now = self.chosen == NOW
        here = len(steps) if now else number
        record = steps[here - 1] if here else None
        show_html(self._moment, html_join([lines_html([_moment_words(self.chosen, record)])]))
        busy = self.runs.busy_for(self)
        self.now_button.disabled = now
        open_ = cast.writable and not busy and line is None
        gone_on = record is None or record.after.status in ("ready", "complete")
        unchanged = record is not None and record.after is cast.now
        self.back_button.disabled = now or unchanged or not (open_ and gone_on)
        self.fork_button.disabled = not (open_ and (now or gone_on))
        explained = (record and id(record), record and record.decision, now)
        if explained != self._explained:
            self._explained = explained
            show_html(self._why, self._explanation(record))
            self._draw_views(record)

    def _draw_views(self, record: StepRecord | None) -> None:
        shown = self.past or self.cast
        if self._views:
            show_html(self._views["graph"], Html(graph_svg(shown.graph, marks_of(shown))))
            show_html(self._views["state"], html_json(dict(shown.state), 2))
            show_html(self._views["handoff"], handoff_html(shown, record))

    def _explanation(self, record: StepRecord | None) -> Html:
        shown = self.past or self.cast
        if record is None:
            return lines_html(["Nothing has happened yet."])
        return why_html(shown, shown.steps[-1])


def _branches(cast: Cast) -> list[tuple[str, int]]:
    return [
        (f"abandoned {number + 1}: steps {steps[0].number} to {steps[-1].number}", number)
        for number, steps in enumerate(cast.abandoned)
    ]


def _filter_words(cast: Cast, steps: Any) -> tuple[str, ...]:
    """The sockets and items of these steps, as the field offers them."""
    sockets = {part(one.socket) for one in steps}
    items = {f"{one.item_key} {part(one.item_label or '', 60)}" for one in steps if one.item_key}
    return (*(socket for socket in map(part, cast.graph.sockets) if socket in sockets), *sorted(items))


def _sought(cast: Cast, step: StepRecord) -> str:
    item = f"{step.item_key} {part(step.item_label or '', 60)}" if step.item_key else ""
    return f"{part(step.socket)}\n{part(cast.graph.sockets[step.socket].materia.label)}\n{item}".casefold()


def _words(cast: Cast, step: StepRecord, edited: bool) -> str:
    item = f" · {step.item_key} {part(step.item_label or '', 40)}" if step.item_key else ""
    corrected = " · corrected" if any(turn.mode == "correction" for turn in step.turns) else ""
    pinned = " · pinned" if step.pinned else ""
    drafts = sum(turn.mode == "draft" for turn in step.turns)
    drafted = f" · {drafts} draft{'s' * (drafts > 1)}" if drafts else ""
    then = " · edited" if edited else ""
    told = f" · {_events_words(step)}" if step.events else ""
    label = part(cast.graph.sockets[step.socket].materia.label, 40)
    took = f" · {took_words(step)}" if step.ended is not None else ""
    way = part(way_words(step), 60)
    return f"{step.number} · {part(step.socket)} {label}{item} → {way}{took}{drafted}{pinned}{corrected}{told}{then}"


def _events_words(step: StepRecord) -> str:
    """Say how many events the output told, and how grave the gravest is unless that is information."""
    gravest = max((event.severity for event in step.events), key=SEVERITIES.index)
    grave = f" ({gravest})" if SEVERITIES.index(gravest) > SEVERITIES.index("info") else ""
    count = len(step.events)
    return f"✉ {count} event{'s' * (count > 1)}{grave}"


def _moment_words(moment: Moment, record: StepRecord | None) -> str:
    if moment == NOW:
        return "Shown: the present."
    if record is None:
        return "Shown: the start, before the first step."
    left = "" if moment[0] is None else f" of the abandoned branch {moment[0] + 1}"
    return f"Shown: as it was after step {record.number}{left}."
