"""The buttons that go on with a cast, its breakpoints, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import ipywidgets as ui

from materia_nb.display.escape import part
from materia_nb.display.html import html_join, status_badge
from materia_nb.loadout.graph import END
from materia_nb.views import loop_progress, outcome_words, status_lines, tried_words
from materia_nb.widgets.base import Panel, show_html
from materia_nb.widgets.controls import button, lines_html, row, show_if
from materia_nb.widgets.runs import Runs, runs_of

if TYPE_CHECKING:
    from materia_nb.cast import Cast

_PAUSED: Final = {
    "person": "stopped: a person must answer",
    "breakpoint": "stopped at a breakpoint",
    "until": "stopped in front of the socket, as asked",
    "stopped": "paused",
}


_NO_REQUEST: Final = (
    "The request is empty: agents are not told what is wanted. To begin a cast with one: "
    '%materia cast "what is to be done"'
)


_REVIVE: Final = "go on, the limit that stopped it granted once more"
_NO_LIMIT: Final = (
    "no limit stopped the cast, so there is none to grant once more: Recast runs the socket again"
)


class ToolbarPanel(Panel):
    """Step, run, pause, abort. What a button starts runs in the background, one thing at a time.

    Args:
        cast: the cast to go on with.
        marked: called after a breakpoint was set or taken away, which the cast itself does not tell.
        begun: called when a button is pressed that goes on with the cast.
    """

    interval = 0.1

    def __init__(
        self,
        cast: Cast,
        marked: Callable[[], object] = lambda: None,
        begun: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__("casting")
        self.cast = cast
        self.runs = runs_of(cast)
        self._marked, self._begun = marked, begun
        self._aborting = self._ticking = False
        self._named = {part(socket): socket for socket in (*cast.graph.sockets, END)}
        self._status, self._badge, self._stops = ui.HTML(), ui.HTML(), ui.HTML()
        # A field rather than a list: JupyterLab takes the arrow keys and letters from lists in an output.
        self.socket = ui.Combobox(
            options=tuple(self._named),
            placeholder="a socket",
            tooltip="where Run to stops, and what Break is about",
            layout=ui.Layout(width="150px"),
        )
        self.socket.observe(self.guarded(lambda _: self.refresh()), names="value")
        self._make_buttons()
        loops = [loop.id for loop in cast.graph.loops.values() if loop.iterator is not None]
        self.progress = {
            loop: ui.IntProgress(min=0, max=1, layout=ui.Layout(width="160px")) for loop in loops
        }
        self._counts = {loop: ui.Label() for loop in loops}
        bars = [row(self._counts[loop], self.progress[loop]) for loop in loops]
        self.tokens = ui.IntProgress(min=0, max=1, layout=ui.Layout(width="160px"))
        self._token_words = ui.Label()
        going = row(
            self.step_button,
            self.run_button,
            self.to_button,
            self.break_button,
            self.socket,
            self.pause_button,
            self.abort_button,
        )
        again = row(self.resend_button, self.recast_button, self.revive_button)
        self._again = again
        self.put(
            self.above_notice(row(self._badge, going, again)),
            self._status,
            row(*bars, self._token_words, self.tokens),
            row(self._stops, self.clear_button),
        )
        self.follow(cast)
        self.at_close(self.runs.watch(self._ran))
        self.refresh()

    def _make_buttons(self) -> None:
        cast, begin = self.cast, self._begin
        self.step_button = button("Step", "run one socket", begin("Step", self._one), style="primary")
        self.run_button = button("Run", "run until the cast ends or must stop", begin("Run", cast.run))
        self.to_button = button(
            "Run to", "run until in front of this socket", begin("Run", lambda: cast.run(self._chosen()))
        )
        self.break_button = button(
            "Break", "stop runs in front of this socket, or no longer", self.guarded(self._toggle_break)
        )
        self.clear_button = button(
            "No breakpoints", "take all breakpoints away", self.guarded(self._clear_breaks)
        )
        self.pause_button = button(
            "Pause",
            "stop after, or if it can be stopped within, the step that runs",
            self.guarded(self._pause),
        )
        self.abort_button = button(
            "Abort",
            "end the cast; Recast and Revive go on with it",
            self.guarded(self._abort),
            style="danger",
        )
        self.resend_button = button(
            "Resend",
            "ask the turn that was cut short once more, in the same conversation",
            begin("Resend", cast.resend),
        )
        self.recast_button = button(
            "Recast", "run the socket where it stopped once more", begin("Recast", cast.recast)
        )
        self.revive_button = button("Revive", _REVIVE, begin("Revive", cast.revive))

    def fallback(self) -> tuple[str, str | None]:
        """Return how the cast stands."""
        return "\n".join(status_lines(self.cast)), None

    def aim(self, kind: str, key: str) -> None:
        """Make a socket the one that Run to stops at; other parts of a graph are none of its business."""
        if kind == "socket":
            self.socket.value = part(key)

    # -- what a person does -----------------------------------------------------------

    def _begin(self, what: str, act: Callable[[], object]) -> Callable[[Any], None]:
        def begin(_: Any) -> None:
            self._begun()
            self.runs.start(what, act)
            self.refresh()

        return self.guarded(begin)

    def _one(self) -> None:
        self.cast.step()
        self.cast.write_derived()

    def _pause(self, _: Any) -> None:
        self.cast.stop.set()
        self.refresh()

    def _abort(self, _: Any) -> None:
        if self._aborting:
            return  # the first press is heeded when the step that runs has ended
        self._aborting = True
        # It waits for the step that runs to end, which nobody else should.
        self.cast.stop.set()
        self.runs.beside(self._abort_now)
        self.refresh()

    def _abort_now(self) -> None:
        try:
            self.cast.abort()
        finally:
            self._aborting = False

    def _chosen(self) -> str:
        """The socket in the field, as the loadout has it."""
        given: str = self.socket.value
        return self._named.get(given, given.strip())

    def _toggle_break(self, _: Any) -> None:
        socket = self._chosen()
        if socket in self.cast.breakpoints:
            self.cast.clear_breaks(socket)
        else:
            self.cast.break_at(socket)
        self.refresh()
        self._marked()

    def _clear_breaks(self, _: Any) -> None:
        self.cast.clear_breaks()
        self.refresh()
        self._marked()

    def _ran(self, runs: Runs) -> None:
        if runs.error is not None:
            self.fail(runs.error)
        self.later()

    # -- drawing ------------------------------------------------------------------------

    def draw(self) -> None:
        """Bring status, bars and buttons up to date."""
        cast, runs = self.cast, self.runs
        status, busy, alive = cast.status, runs.busy_for(self), cast.writable
        going = status in ("ready", "waiting") and alive
        stopped = status in ("failed", "aborted") and alive
        for one in (self.step_button, self.run_button, self.to_button):
            one.disabled = busy or not going
        self.pause_button.disabled = not busy
        self.abort_button.disabled = not (going or (status == "held" and alive))
        self.recast_button.disabled = busy or not stopped
        self.revive_button.disabled = self.recast_button.disabled or not cast.at_limit
        self.revive_button.tooltip = _REVIVE if cast.at_limit else _NO_LIMIT
        show_if(self.resend_button, cast.prompt_cut_short is not None)
        self.resend_button.disabled = self.recast_button.disabled
        show_if(self._again, stopped)
        show_html(self._badge, status_badge("running" if busy else outcome_words(self.cast)))
        show_html(self._status, html_join([lines_html(self._words(busy=busy))]))
        chosen = bool(self.socket.value.strip())
        self.to_button.disabled = self.to_button.disabled or not chosen
        self.break_button.disabled = not chosen or self._chosen() == END
        stops = [part(socket) for socket in cast.breakpoints]
        stops += [f"a change of state.{part(path)}" for path in cast.watchpoints]
        show_html(self._stops, lines_html([f"● runs stop at {', '.join(stops)}"]))
        show_if(self._stops, bool(stops))
        show_if(self.clear_button, bool(stops))
        self._draw_bars()

    def _words(self, *, busy: bool) -> list[str]:
        runs = self.runs
        if busy:
            what = runs.running or "a cell"
            pausing = ""
            if self.cast.stop.is_set():
                waits = f", {part(self.cast.stopping, 200)}" if self.cast.stopping else ""
                pausing = f", {'aborting' if self._aborting else 'pausing'}{waits}"
                self._tick()
            step = self.cast.steps[-1] if self.cast.steps else None
            item = f", {step.item_key} {part(step.item_label or '', 60)}" if step and step.item_key else ""
            where = f": step {step.number}, {part(step.socket)}{item}" if step else ""
            return [f"{what} is running{where}{pausing}"]
        paused = _PAUSED.get(runs.outcome) if isinstance(runs.outcome, str) else None
        asked = ("waiting", "held") if runs.outcome == "person" else ("ready", "waiting")
        if self.cast.status not in asked:
            paused = None  # something else has happened since
        if not self.cast.steps and not self.cast.request.strip():
            return [*status_lines(self.cast), _NO_REQUEST]
        changed = self.cast.changed_paths() if runs.outcome == "breakpoint" else []
        stopped = f": a step changed {', '.join(f'state.{path}' for path in changed)}" if changed else ""
        lines = [_with_time(self.cast, line) for line in status_lines(self.cast)]
        return [*lines, *([paused + stopped] if paused else [])]

    def _tick(self) -> None:
        """Draw again in a second: what is waited for tells nothing meanwhile."""
        if self._ticking:
            return
        self._ticking = True

        def due() -> None:
            self._ticking = False
            self.refresh()

        self.after(1.0, due)

    def _draw_bars(self) -> None:
        for loop, (done, total) in loop_progress(self.cast).items():
            bar = self.progress[loop]
            bar.max, bar.value = max(total, 1), done
            self._counts[loop].value = part(loop)  # how many are done says the line above
            show_if(bar, total > 0)
            show_if(self._counts[loop], total > 0)
        used, most = self.cast.now.usage.tokens, self.cast.now.budget.max_tokens
        show_if(self.tokens, bool(most))
        if most:
            self.tokens.max, self.tokens.value = most, min(used, most)
            warn = used * 100 >= most * self.cast.now.budget.warn_at_percent
            self.tokens.bar_style = "danger" if used >= most else "warning" if warn else ""
        limit = "" if most is None else f" of {most}"
        self._token_words.value = f"tokens: {used}{limit}"


def _with_time(cast: Cast, line: str) -> str:
    """Say when the last try ended, behind the line that says how many there were: did a click do anything?"""
    ended = cast.steps[-1].ended if cast.steps else None
    if ended is None or line != tried_words(cast):
        return line
    return f"{line}, last at {time.strftime('%H:%M:%S', time.localtime(ended / 1000))}"
