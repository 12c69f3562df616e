"""The base class of panels, and the background runs that panels start. The class handles redraws and errors.

Callbacks, cells and timers may run in different threads. Three rules keep panels consistent:

- A callback changes the state of the panel and requests a redraw. Only :meth:`Panel.draw` writes to widgets.
- A redraw reads the state at the time of drawing, so a delayed redraw never shows outdated state.
- A widget value that a redraw sets is not treated as a user action.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import signal
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Final, NamedTuple, ParamSpec, TypeAlias, TypeVar

import ipywidgets as ui
from IPython.display import display

from materia_nb.cast import Cast
from materia_nb.display.blocks import Displayable, MimeBundle, clip_plain, mime_bundle, record_bundle
from materia_nb.display.escape import Html, html_pre, html_text, shorten
from materia_nb.errors import MateriaError, named_error, plain
from materia_nb.platform import BackgroundWork, ScheduledCall, call_later, start_thread

P = ParamSpec("P")
_Panel = TypeVar("_Panel", bound="Panel")

CALLBACKS: Final = threading.RLock()
"""Lock that is held while a panel callback runs, because panels share casts and callbacks run in several threads."""

NO_KERNEL_TEXT: Final = "The buttons need a running kernel. Run this cell again."
_POLL_INTERVAL_S: Final = 0.4  # Minimum delay before the journal of a read-only cast is read again, in seconds.
_RECORD_DELAY_S: Final = 0.6
"""Delay between a redraw and the update of the static output for viewers without a kernel, in seconds."""
_MAX_NOTICE_CHARS: Final = 2_000
_ERROR_SIGN: Final = '<b aria-hidden="true" style="color:#d5404d">✖</b> '
_log = logging.getLogger("materia_nb.widgets")


class Panel(Displayable):
    """A view made of widgets. The panel creates these widgets and closes them.

    A subclass builds its widgets, calls :meth:`set_widgets`, and changes widgets only in :meth:`draw`. A panel is displayed as
    the value of a cell, or inside another panel that owns it (see :meth:`own`).

    Args:
        title: the title for screen readers and for notebooks that are opened without a kernel.
    """

    interval: float = 0.05
    """Minimum time between two redraws for changes to a cast, in seconds. A click causes an immediate redraw."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.closed = False
        self.notice = ui.HTML()
        self.view = ui.VBox([self.notice])
        self.view.add_class("mnb-panel")
        self._close_callbacks: list[Callable[[], object]] = []
        self._drawing = threading.RLock()
        self._drawing_thread: int | None = None
        self._callback_thread: int | None = None
        self._redraw_after_callback = False
        self._has_draw_error = False
        self._recorded_fallback: tuple[str, str | None] | None = None
        self._is_record_scheduled = False
        self._timing = threading.Lock()
        self._timer: ScheduledCall | None = None
        self._last_timed_draw = 0.0

    # -- for subclasses -------------------------------------------------------

    def set_widgets(self, *children: ui.Widget) -> None:
        """Set the widgets of the panel. Errors appear below ``children``."""
        self.view.children = (*children, self.notice)

    def draw(self) -> None:
        """Update the widgets. Only :meth:`refresh` calls this method."""

    def fallback(self) -> tuple[str, str | None]:
        """Return text and SVG for viewers that cannot display widgets, such as GitHub or nbconvert."""
        return self.title, None

    def follow(self, cast: Cast) -> None:
        """Redraw after every change of ``cast`` until the panel is closed."""
        self.on_close(cast.follow.changes(lambda _: self.schedule_refresh()))
        if not cast.now.writable:
            self._poll_journal(cast)

    def _poll_journal(self, cast: Cast) -> None:
        """Read the journal of a read-only cast repeatedly until the panel is closed; changes trigger a redraw."""
        start = time.monotonic()
        cast.runner.refresh()
        self.call_after(max(_POLL_INTERVAL_S, time.monotonic() - start), lambda: self._poll_journal(cast))

    def watch_runs(self, runs: RunControl) -> None:
        """Redraw the panel when a run starts or ends, and show the error of a failed run."""
        self.on_close(runs.watch(self._on_run_change))

    def _on_run_change(self, runs: RunControl) -> None:
        if runs.error is not None:
            self.show_error(runs.error)
        self.refresh()  # the user who pressed a button sees the result at once

    def own(self, panel: _Panel) -> _Panel:
        """Close ``panel`` when this panel closes, and return ``panel``."""
        self.on_close(panel.close)
        return panel

    def call_after(self, seconds: float, action: Callable[[], object]) -> None:
        """Call ``action`` once after ``seconds``, unless the panel is closed before then."""

        def due() -> None:
            with self._drawing:
                if not self.closed:
                    self._close_callbacks.remove(timer.cancel)
                    action()

        with self._drawing:  # the timer must be cancellable before it fires
            timer = call_later(seconds, due)
            self.on_close(timer.cancel)

    def call_after_cells(self, action: Callable[[], object]) -> None:
        """Call ``action`` after every cell execution until the panel is closed."""
        from IPython import get_ipython

        def ran(*_: object) -> None:
            action()

        if (shell := get_ipython()) is not None:
            shell.events.register("post_run_cell", ran)
            self.on_close(lambda: shell.events.unregister("post_run_cell", ran))

    def on_close(self, end: Callable[[], object]) -> None:
        """Call ``end`` when the panel is closed."""
        self._close_callbacks.append(end)

    def guarded(self, callback: Callable[P, object], *, by_person: bool = True) -> Callable[P, None]:
        """Wrap a callback so that callbacks never overlap and so that the panel shows their errors.

        While a redraw runs, calls from its thread are ignored. A user action clears an earlier error, but an automatic
        message from the page (``by_person=False``) does not. All redraws that the callback requests are merged into a
        single redraw at its end.
        """

        @functools.wraps(callback)
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            if self.closed or self._drawing_thread == threading.get_ident():
                return
            with CALLBACKS:
                outer, self._callback_thread = self._callback_thread, threading.get_ident()
                try:
                    if by_person:
                        self.notify("")
                    callback(*args, **kwargs)
                except Exception as error:  # noqa: BLE001 - otherwise only the log would show it
                    self.show_error(error)
                finally:
                    self._callback_thread = outer
                    if outer is None and self._redraw_after_callback:
                        self.refresh()

        return run

    # -- redrawing --------------------------------------------------------------------

    def refresh(self) -> None:
        """Redraw the panel now, or at the end of the callback that is running."""
        if self._is_deferred():
            return
        with self._drawing:
            if self.closed:
                return
            # Cancelled before the state is read, so that a later change schedules another redraw.
            self._cancel_timer()
            outer, self._drawing_thread = self._drawing_thread, threading.get_ident()
            try:
                self.draw()
                if self._recorded_fallback is not None and not self._is_record_scheduled:
                    self._is_record_scheduled = True
                    self.call_after(_RECORD_DELAY_S, self._record)
                if self._has_draw_error:
                    self._has_draw_error = False
                    self.notify("")
            except Exception as error:  # noqa: BLE001 - a failing panel must not break its cast
                self._has_draw_error = True
                self.show_error(error)
            finally:
                self._drawing_thread = outer

    def schedule_refresh(self) -> None:
        """Schedule a redraw; requests within :attr:`interval` share one redraw. This method never blocks or raises."""
        if self._is_deferred():
            return
        with self._timing:
            if self.closed or self._timer is not None:
                return
            # A callback redraws the panel when it ends, and so does a run that ends soon.
            shortest = 0.0 if self._callback_thread is None else _SHORT_WAIT_S
            wait = max(shortest, self._last_timed_draw + self.interval - time.monotonic())
            self._timer = call_later(wait, self._timer_elapsed)

    def _timer_elapsed(self) -> None:
        self.refresh()
        # Only timed redraws count for the interval: the result of a click is drawn immediately after the click.
        self._last_timed_draw = time.monotonic()

    def _is_deferred(self) -> bool:
        """Return True while a callback runs in this thread; the panel is then redrawn when the callback ends."""
        is_callback = self._callback_thread == threading.get_ident() != self._drawing_thread
        self._redraw_after_callback = self._redraw_after_callback or is_callback
        return is_callback

    def _cancel_timer(self) -> None:
        with self._timing:
            timer, self._timer, self._redraw_after_callback = self._timer, None, False
        if timer is not None:
            timer.cancel()

    # -- messages to the user ------------------------------------------------------------------

    def notify(self, text: str) -> None:
        """Show one line of text in the panel; an empty string removes the line."""
        self.show_notice({"words": text, "tone": "fine"} if text else {})

    def show_error(self, error: Exception) -> None:
        """Show an exception in the panel."""
        self.show_notice({"words": clip_plain(error_message(error, self.title), _MAX_NOTICE_CHARS), "tone": "bad"})

    def show_notice(self, notice: Mapping[str, Any]) -> None:
        """Show a notice: its text in ``words``, and its ``tone`` (``fine`` or ``bad``). An empty mapping removes it."""
        role, sign = ("alert", _ERROR_SIGN) if notice.get("tone") == "bad" else ("status", "")
        words = html_text(notice.get("words", ""), _MAX_NOTICE_CHARS)
        html = Html(f'<div role="{role}">{sign}{words}</div>') if notice else Html()
        with self._drawing:
            if not self.closed and self.notice.value != html:
                show_html(self.notice, html)

    # -- display and closing ----------------------------------------------------------------

    def show_widgets(self, fallback_text: str = NO_KERNEL_TEXT) -> None:
        """Display the widgets in an output that is hidden without a running kernel; the caller displays the fallback.

        Args:
            fallback_text: text for viewers that cannot display widgets.
        """
        self.view.add_class("mnb-recorded")
        display({**(self.view._repr_mimebundle_() or {}), "text/plain": fallback_text}, raw=True)

    def _ipython_display_(self) -> None:
        """Display the widgets, and add text and picture as separate outputs for viewers without a kernel."""
        from IPython import get_ipython

        if getattr(get_ipython(), "kernel", None) is None or self.closed:
            raise NotImplementedError  # IPython then requests one bundle with all formats
        self.show_widgets()
        self._recorded_fallback = ("", None)
        self._record(update=False)

    def _record(self, *, update: bool = True) -> None:
        self._is_record_scheduled = False
        text, svg = self.fallback()
        if self._recorded_fallback == (text, svg):
            return
        self._recorded_fallback = (text, svg)
        bundles = {"text": record_bundle(plain(text), html_pre(text))}
        if svg is not None:
            bundles["picture"] = mime_bundle("<picture>", svg=svg)
        for name, bundle in bundles.items():
            display(bundle, raw=True, display_id=f"materia-panel-{id(self)}-{name}", update=update)

    def _mime_bundle(self) -> MimeBundle:
        text, svg = self.fallback()
        outputs = mime_bundle(plain(text), svg=svg)
        if self.closed:
            return outputs
        # Front ends with widgets draw the widgets and ignore the rest of the bundle.
        return {**(self.view._repr_mimebundle_() or {}), **outputs}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {shorten(self.title, 120)}{', closed' if self.closed else ''}>"

    def close(self) -> None:
        """Close all widgets of the panel and stop redrawing. Closing a closed panel has no effect."""
        with self._drawing:
            if self.closed:
                return
            self.closed = True
            self._cancel_timer()
            ends, self._close_callbacks = self._close_callbacks, []
            for end in reversed(ends):
                end()
            # Also close widgets that are currently not in the view.
            own_widgets = [widget for widget in vars(self).values() if isinstance(widget, ui.Widget)]
            for widget in list(widgets_in(self.view, *own_widgets)):
                widget.close()


def error_message(error: Exception, title: str) -> str:
    """Return the message that a panel shows for an exception; log the exception if it is not a MateriaError.

    Args:
        error: the exception.
        title: the title of the panel whose callback raised the exception.
    """
    if isinstance(error, MateriaError):
        return str(error)
    _log.warning("%s: a callback failed", plain(title), exc_info=error)
    return named_error(error, _MAX_NOTICE_CHARS)


def widgets_in(*roots: ui.Widget) -> Iterator[ui.Widget]:
    """Yield ``roots`` and all widgets that their traits contain, such as children, layouts and styles."""
    visited_ids: set[int] = set()
    pending: list[Any] = [*roots]
    while pending:
        value = pending.pop()
        if isinstance(value, ui.Widget):
            if id(value) in visited_ids:
                continue
            visited_ids.add(id(value))
            yield value
            # Reading a trait without a value would create a widget just to close it.
            pending += [getattr(value, name) for name in value.trait_names() if value.trait_has_value(name)]
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list | tuple):
            pending += value


def show_html(widget: ui.HTML, html: object) -> None:
    """Show ``html`` in an HTML widget; a value that is not an :class:`Html` instance is escaped."""
    widget.value = str(html_text(html))


_Run: TypeAlias = tuple[Hashable, list[Panel]]
_open_panels: Final[dict[Hashable, _Run]] = {}
_show_lock: Final = threading.Lock()


def show_panel(key: Hashable, factory: Callable[[], _Panel]) -> _Panel:
    """Create and return a panel, and close the panels that earlier executions of the same cell created.

    If the cell is unknown, the previous panel with the same ``key`` is closed instead. If ``factory`` raises an
    exception, the previous panels stay open.
    """
    panel = factory()
    cell, run = _cell() or (("key", key), object())
    with _show_lock:
        before, panels = _open_panels.get(cell, (run, []))
        old, current = ([], panels) if before == run else (panels, [])
        _open_panels[cell] = (run, [*current, panel])
    for panel_ in old:
        panel_.close()
    return panel


def _cell() -> tuple[Hashable, Hashable] | None:
    """Return the id and the execution count of the running cell, or None if they are unknown."""
    from IPython import get_ipython

    shell = get_ipython()
    kernel = getattr(shell, "kernel", None)
    if kernel is None or shell is None:
        return None
    try:
        cell = kernel.get_parent()["metadata"]["cellId"]
    except (KeyError, LookupError, TypeError):
        return None
    return ("cell", cell), shell.execution_count


def button(label: str, tooltip: str, act: Callable[[Any], None], *, width: str = "auto", style: str = "") -> ui.Button:
    """Return a button. Screen readers also read its tooltip."""
    widget = ui.Button(description=label, tooltip=tooltip, button_style=style, layout=ui.Layout(width=width))
    widget.on_click(act)
    return widget


def row(*children: ui.Widget) -> ui.HBox:
    """Return a row of widgets that wraps on a narrow page."""
    return ui.HBox(children, layout=ui.Layout(flex_flow="row wrap", align_items="center"))


_runs: Final[weakref.WeakKeyDictionary[Cast, RunControl]] = weakref.WeakKeyDictionary()
_runs_lock: Final = threading.Lock()
_SHORT_WAIT_S: Final = 0.05


class Activity(NamedTuple):
    """The state of :class:`RunControl` when a frame is drawn; see that class for the attributes not described here.

    Attributes:
        busy: True while a step is running, whether a panel or a cell started it.
        aborting: True while an abort waits for the running step to end.
    """

    busy: bool = False
    aborting: bool = False
    outcome: object = None
    started: int | None = None
    stop_requested_at: int | None = None


class RunControl:
    """The background runs of one cast; all panels of the cast share this object.

    At most one run is active at a time.

    Attributes:
        running: True while a run that :meth:`start` started is active.
        outcome: the return value of the latest run.
        error: the exception that the latest run raised, or None.
        started: the start time of the current run, in milliseconds since the epoch, or None if nothing is running.
        stop_requested_at: the time of the first request to stop the current run, in milliseconds since the epoch, or None
            if there was no request.
        resumable_run: a function that resumes the latest run, and the positions at which the run stopped; None unless the run
            stopped at a failure or to wait for a person.
    """

    def __init__(self, owner: Cast) -> None:
        self._owner = weakref.ref(owner)
        self._lock = threading.Lock()
        self._watchers: list[Callable[[RunControl], None]] = []
        self._threads: list[BackgroundWork] = []
        self.running = False
        self.outcome: object = None
        self.error: Exception | None = None
        self.started: int | None = None
        self.stop_requested_at: int | None = None
        self.resumable_run: tuple[Callable[[], object], frozenset[object]] | None = None

    @property
    def busy(self) -> bool:
        """True while a step is running, whether a panel or a cell started it."""
        owner = self._owner()
        return self.running or (owner is not None and owner.runner.busy())

    def busy_for(self, panel: Panel) -> bool:
        """Return True if a step is running. Unless :meth:`start` started the step, also schedule a redraw of ``panel``.

        The redraw is necessary because a cast announces a change before it releases its lock, but not afterwards.
        """
        if self.running:
            return True
        owner = self._owner()
        # A short user action ends almost immediately; waiting for it prevents a button from blinking.
        if owner is None or not owner.runner.busy(_SHORT_WAIT_S):
            return False
        panel.schedule_refresh()
        return True

    def activity(self, *, busy: bool, aborting: bool = False) -> Activity:
        """Return the current activity for a frame of a panel."""
        with self._lock:
            return Activity(busy, aborting, self.outcome, self.started, self.stop_requested_at)

    def refuse_while_busy(self) -> None:
        """Raise MateriaError (kind ``busy``) while a step is running."""
        if self.busy:
            raise MateriaError(
                "A step is running; nothing can be changed before it ends.",
                hint="click Pause or wait for the step to end, then try again",
                kind="busy",
            )

    def start(self, action: Callable[[], object]) -> None:
        """Run ``action`` in a new thread, and notify the watchers when the run starts and ends.

        The files that are derived from the journal are written after the watchers have been notified.

        Raises:
            MateriaError: another run is active (kind ``busy``).
        """
        with self._lock:
            self.refuse_while_busy()
            self.running, self.error, self.outcome = True, None, None
            self.started, self.stop_requested_at = round(time.time() * 1000), None
        _pause_on_interrupt()
        self._begin(lambda: self._run(action)).join(_SHORT_WAIT_S)  # avoids a frame that only shows that something runs
        self._notify_watchers()

    def record_stop_request(self) -> None:
        """Record the time of the first request to stop the current run."""
        self.stop_requested_at = self.stop_requested_at or round(time.time() * 1000)

    def pause(self) -> None:
        """Stop the run of a cast: immediately if the current step can be interrupted, otherwise after the step."""
        owner = self._owner()
        if owner is not None:
            owner.stop()
            self.record_stop_request()
            self._notify_watchers()

    def run_in_thread(self, action: Callable[[], object]) -> None:
        """Run ``action`` in its own thread, because it may have to wait until the running step ends."""
        self._begin(lambda: self._run_concurrently(action))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all runs have ended, at most ``timeout`` seconds for each run, and return True if all have ended.

        Do not call this method in a callback.
        """
        for thread in tuple(self._threads):
            thread.join(timeout)
        return not any(thread.is_alive() for thread in self._threads)

    def watch(self, watcher: Callable[[RunControl], None]) -> Callable[[], None]:
        """Call ``watcher`` when a run starts or ends, and return a function that unregisters it."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    def _begin(self, body: Callable[[], None]) -> BackgroundWork:
        thread = start_thread(body, "materia-step")
        self._threads = [*(earlier for earlier in self._threads if earlier.is_alive()), thread]
        return thread

    def _run(self, action: Callable[[], object]) -> None:
        outcome, error = None, None
        try:
            outcome = action()
        except Exception as raised:  # noqa: BLE001 - only the panel can show an error of a thread
            error = raised
        finally:
            with self._lock:
                self.running, self.outcome, self.error = False, outcome, error
                self.started = self.stop_requested_at = None
            try:
                self._notify_watchers()
            finally:
                self._write_files()

    def _write_files(self) -> None:
        """Write the files that are derived from the journal, after the panels have shown the end of the run."""
        try:
            if (owner := self._owner()) is not None:
                owner.export.derived_files()
        except MateriaError as error:
            self.error = error
            self._notify_watchers()

    def _run_concurrently(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as raised:  # noqa: BLE001 - as above
            self.error = raised
        self._notify_watchers()

    def _notify_watchers(self) -> None:
        for watcher in tuple(self._watchers):
            watcher(self)


def runs_of(owner: Cast) -> RunControl:
    """Return the :class:`RunControl` object of a cast, which all panels of the cast share."""
    with _runs_lock:
        return _runs.setdefault(owner, RunControl(owner))


def _pause_on_interrupt() -> None:
    """Make an interrupt of the kernel pause the runs that buttons have started, even if no cell is running."""
    from IPython import get_ipython

    loop: Any = getattr(getattr(get_ipython(), "kernel", None), "io_loop", None)

    def pause() -> None:
        for runs in tuple(_runs.values()):
            if runs.running:
                runs.pause()

    def listen() -> None:
        # While the kernel handles a message, it installs its own handler; afterwards it restores this one.
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            with contextlib.suppress(NotImplementedError):  # Windows has no such handlers
                loop.asyncio_loop.add_signal_handler(signal.SIGINT, pause)

    if loop is not None:
        loop.add_callback(listen)
