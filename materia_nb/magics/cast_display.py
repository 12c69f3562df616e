"""Display of casts in a notebook: panels, a record that is stored in the notebook, and a progress bar during a run.

A cast that is the value of a cell is displayed as panels, followed by a record with a picture of the graph and the
outcome. The record is for readers of an untrusted notebook, and for readers who have no kernel or no widgets. It is
updated at the end of each cell and shortly after a change. A live panel hides the record (``widgets/cast_panel.py``).
"""

from __future__ import annotations

import logging
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import tqdm

from materia_nb.cast import Cast
from materia_nb.cast.formatting import describe_outcome
from materia_nb.cast.views.status import overlay_of, status_lines, steps_view
from materia_nb.display.blocks import (
    Code,
    Fold,
    Heading,
    Line,
    MimeBundle,
    blocks_as_html,
    fit_to_width,
    lines,
    picture_bundle,
    record_bundle,
)
from materia_nb.display.escape import ELLIPSIS, part, shorten
from materia_nb.display.svg import graph_svg
from materia_nb.display.text import WIDTH, table
from materia_nb.errors import plain
from materia_nb.platform import CAN_START_THREADS, ScheduledCall, call_later

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.cast.workbench import Workbench
    from materia_nb.engine.session import StepRecord

MAX_STEPS: Final = 30
"""Maximum number of steps in the record. Earlier steps are omitted."""
_OUTPUT_CHARS: Final = 1_500  # Maximum length of a step's output in the record, in characters.

_IDLE_S: Final = 0.6  # Time without changes to the cast after which the record is updated, in seconds.

_log = logging.getLogger("materia_nb.magics")


def record_text(cast: Cast) -> MimeBundle:
    """Return the record of a cast as text and HTML: its status, its latest steps, and the command to reopen it."""
    now = cast.now
    steps = steps_view(now)
    title = f"Record of cast {cast.id}: {shorten(now.request, 60)}".rstrip(": ")
    status = status_lines(now)
    folds = [_step_fold(now, step) for step in now.steps[-MAX_STEPS:]]
    earlier_count = len(steps.rows) - MAX_STEPS
    omitted = [f"... {earlier_count} earlier steps"] if earlier_count > 0 else []
    step_table = [table(steps.rows[-MAX_STEPS:], steps.headers)] if steps.rows else []
    purpose, verb = ("look at", "open") if cast.status == "complete" else ("continue", "resume")
    advice = f"To {purpose} this cast in a new kernel, run `%load_ext materia_nb` and `%materia {verb} {cast.id}`"
    wrapped = [wrapped_line for line in (title, *status) for wrapped_line in textwrap.wrap(plain(line), WIDTH)]
    text = "\n".join([*wrapped, *omitted, *step_table, "", advice])
    return record_bundle(text, blocks_as_html([Heading(title), *lines(status), *lines(omitted), *folds, Line(advice)]))


def _step_fold(now: Snapshot, step: StepRecord) -> Fold:
    """Return a step as a collapsed block with its output and an explanation of its route."""
    blocks = [Code(step.shown, max_chars=_OUTPUT_CHARS)] if step.shown is not None else []
    explanation = lines(now.why(step.number).lines, "quiet") if step.decision else []
    return Fold(f"{step.title} → {describe_outcome(step)}", [*blocks, *explanation])


def record_picture(cast: Cast) -> str:
    """Return the graph of a cast with its route, as SVG."""
    # data-record lets programs that compare notebooks skip this picture, which differs in each run.
    return fit_to_width(graph_svg(cast.graph, overlay_of(cast.now))).replace("<svg ", '<svg data-record="" ', 1)


class Record:
    """The record of a cast in a notebook, which consists of an output with text and an output with a picture.

    Args:
        cast: the cast to record.
        display: IPython's function ``display``.
    """

    def __init__(self, cast: Cast, display: Callable[..., object]) -> None:
        self.cast = cast
        self._display = display
        self._has_changed = False
        self._displayed_content: tuple[str, str] | None = None
        self._lock = threading.Lock()
        self._timer: ScheduledCall | None = None
        self._is_idle = False
        self._unsubscribe = cast.follow.changes(lambda _: self._schedule_refresh())

    def show(self) -> None:
        """Display the text and the picture below the other outputs of the cell."""
        self._display_content(update=False)

    def refresh(self) -> None:
        """Update the text and the picture if the cast has changed since they were displayed."""
        if self._has_changed:
            try:
                self._display_content(update=True)
            except Exception:  # noqa: BLE001 - the cell or the cast itself succeeded
                _log.warning("the record of a cast could not be updated", exc_info=True)

    def close(self) -> None:
        """Stop updating the record. Its outputs remain in the notebook."""
        self._unsubscribe()
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()

    def _schedule_refresh(self) -> None:
        """Schedule an update of the record. This method is called after every change, so it must be fast."""
        self._has_changed = True
        with self._lock:
            if self._timer is None:
                self._timer = call_later(_IDLE_S, self._refresh_when_idle)
            self._is_idle = False

    def _refresh_when_idle(self) -> None:
        with self._lock:
            is_due_again = not self._is_idle
            self._is_idle = True
            self._timer = call_later(_IDLE_S, self._refresh_when_idle) if is_due_again else None
        if not is_due_again:
            self.refresh()

    def _display_content(self, *, update: bool) -> None:
        self._has_changed = False
        svg, text = record_picture(self.cast), record_text(self.cast)
        content = (svg, text["text/plain"])
        if update and content == self._displayed_content:
            return
        self._displayed_content = content
        # The PNG is for untrusted notebooks, which do not show SVG.
        for name, bundle in (("text", text), ("picture", picture_bundle(f"<picture of cast {self.cast.id}>", svg))):
            display_id = f"materia-{self.cast.id}-{name}"
            self._display(bundle, raw=True, display_id=display_id, update=update)


class CastDisplay:
    """The display of casts in an IPython shell: it shows their panels and updates their records.

    Args:
        shell: the IPython shell.
        workbench: a function that returns the shell's workbench. A cast that is forked in a panel becomes the current
            cast of this workbench.
    """

    def __init__(self, shell: InteractiveShell, workbench: Callable[[], Workbench]) -> None:
        self._shell = shell
        self._workbench = workbench
        self._records: dict[Path, Record] = {}
        formatter: Any = shell.display_formatter
        self._formatter = formatter.ipython_display_formatter
        self._display_by_type = {
            "materia_nb.cast.cast.Cast": self._show_cast,
            "materia_nb.widgets.cast_panel.CastPanel": self._show_panel,
            "materia_nb.cast.project_casts.Casts": lambda casts: self._panel(casts.show)._ipython_display_(),
        }
        for name, display in self._display_by_type.items():
            self._formatter.for_type(name, display)
        shell.events.register("post_run_cell", self._refresh_records)

    def close(self) -> None:
        """Stop showing panels and updating records. The outputs remain in the notebook."""
        for name in self._display_by_type:
            self._formatter.pop(name, None)
        self._shell.events.unregister("post_run_cell", self._refresh_records)
        for record in self._records.values():
            record.close()

    def _show_cast(self, cast: Cast) -> None:
        if not cast.now.writable:
            raise NotImplementedError
        self._show_panel(self._panel(lambda: self._cast_panel(cast)))

    def _cast_panel(self, cast: Cast) -> Any:
        from materia_nb.widgets import cast_panel

        bench = self._workbench()
        return cast_panel.show(cast, bench.casts.make_current, bench=bench)

    def _panel(self, show: Callable[[], Any]) -> Any:
        """Return the panel that ``show`` creates.

        If there is no kernel or ``show`` fails, the method raises NotImplementedError, so that IPython displays a
        picture or a table instead.
        """
        if getattr(self._shell, "kernel", None) is None:
            raise NotImplementedError
        try:
            return show()
        except Exception:  # noqa: BLE001 - IPython can display the cast without a panel
            _log.warning("a panel could not be created; a picture or a table is displayed instead", exc_info=True)
            raise NotImplementedError from None

    def _show_panel(self, panel: Any) -> None:
        if getattr(self._shell, "kernel", None) is None or panel.closed:
            raise NotImplementedError
        from IPython.display import display

        panel.show_widgets("The panels of this cast need a running kernel. The record of the cast is below.")
        cast = panel.cast
        run_dir = cast.run_dir.resolve()
        record = self._records.get(run_dir)
        if record is None or record.cast is not cast:
            if record is not None:
                record.close()
            record = self._records[run_dir] = Record(cast, display)
        record.show()

    def _refresh_records(self, _: object = None) -> None:
        """Update the records at the end of a cell."""
        for record in self._records.values():
            record.refresh()


SHOW_AFTER_S = 0.5
"""Delay before a progress bar appears, in seconds. A shorter run shows no progress bar."""
_REDRAW_S = 0.1  # Delay between an update and the redraw of the progress bar, in seconds.
_BAR_FORMAT = "{desc} |{bar}|"
_ANSWER_CHARS = 60  # Maximum length of an agent's unfinished answer next to the progress bar, in characters.


@contextmanager
def run_progress(cast: Cast) -> Iterator[None]:
    """Show a progress bar with the finished work items and the current socket while the ``with`` block runs."""
    with _progress_bar(lambda: _progress_text(cast)) as update, ExitStack() as subscriptions:
        subscriptions.callback(cast.follow.changes(lambda _: update()))
        subscriptions.callback(cast.follow.text(update))
        yield


@contextmanager
def count_progress(unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar while the ``with`` block runs. Yield a function that sets the finished and total counts."""
    counts = (0, 0)

    def report(done: int, total: int) -> None:
        nonlocal counts
        counts = done, total
        update()

    with _progress_bar(lambda: (*counts, f"{counts[0]:,} of {counts[1]:,} {unit}")) as update:
        yield report


ProgressSource: TypeAlias = Callable[[], tuple[int, int, str]]
"""Function that returns the number of finished units, their total (0 if unknown), and the text next to the bar."""


@contextmanager
def _progress_bar(status: ProgressSource) -> Iterator[Callable[[], None]]:
    """Show a progress bar if the ``with`` block runs longer than :data:`SHOW_AFTER_S`. Yield a function that updates it."""
    with closing(_Progress(status)) as progress:
        if _is_watched():
            call_later(SHOW_AFTER_S, progress.show)
        yield progress.update


class _Progress:
    """A tqdm progress bar that several threads may update. After the last update, it always shows the latest status."""

    def __init__(self, status: ProgressSource) -> None:
        self._status = status
        self._bar: Any = None
        self._output: Any = None
        self._is_scheduled = self._is_closed = False
        self._lock = threading.Lock()

    def show(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            if _kernel() is None:
                columns, rows = get_terminal_size()  # tqdm draws nothing if the terminal does not report its size
                self._bar = tqdm.tqdm(leave=False, bar_format=_BAR_FORMAT, ncols=columns, nrows=rows)
            else:
                from IPython.display import display
                from tqdm.notebook import tqdm_notebook

                self._bar = tqdm_notebook(leave=False, bar_format=_BAR_FORMAT, display=False)
                self._output = display(self._bar.container, display_id=True)
        self._draw()

    def update(self) -> None:
        """Schedule a redraw of the bar, unless a redraw is already scheduled."""
        if self._bar is not None and not self._is_scheduled:
            self._is_scheduled = True
            call_later(_REDRAW_S, self._draw)

    def _draw(self) -> None:
        self._is_scheduled = False  # Later changes of the status schedule another redraw.
        done, total, text = self._status()
        with self._lock:
            bar = self._bar
            if bar.disable:
                return
            if total and total != bar.total:
                bar.reset(total)
            bar.n = done
            bar.set_description_str(text)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._bar is not None:
                self._bar.total = None  # Otherwise an unfinished bar would remain visible, in red.
                self._bar.close()
            if self._output is not None:
                self._output.update({}, raw=True)  # clear_output would also remove what the cell printed.


def _kernel() -> Any:
    ipython = sys.modules.get("IPython")
    return None if ipython is None else getattr(ipython.get_ipython(), "kernel", None)


def _is_watched() -> bool:
    """Return True if a person may be watching the terminal or the running cell.

    Programs that run a notebook unattended (nbconvert, nbclient, papermill, nbval) send ``allow_stdin: false`` with
    each cell. They get no progress bar, so that the stored outputs do not depend on the speed of the machine.
    """
    kernel = _kernel()
    if kernel is None:
        return sys.stderr.isatty()
    # A bar can only be drawn by another thread while the cell runs.
    return CAN_START_THREADS and bool(kernel.get_parent("shell").get("content", {}).get("allow_stdin", True))


def _progress_text(cast: Cast) -> tuple[int, int, str]:
    """Return the number of finished items, the total number of items, and a text about the agent that is working."""
    now = cast.now
    done, total = _progress_of(cast)
    items = f"{done}/{total} items, " if total else ""
    position = f"{items}{now.names.get(now.next_socket or '', now.status)}, step {len(now.steps)}"
    answer = now.partial_answer
    dots = ELLIPSIS if len(answer) > _ANSWER_CHARS else ""
    return done, total, f"{position}: {dots}{part(answer[-_ANSWER_CHARS:], _ANSWER_CHARS)}" if answer else position


def _progress_of(cast: Cast) -> tuple[int, int]:
    """Return the number of finished items and of all items in the current loop, or else in the first loop."""
    now = cast.now
    progress, visit = now.loop_progress, now.engine.at
    loops = cast.graph.sockets[visit.socket].loops if visit else ()
    return next((progress[loop] for loop in loops if loop in progress), next(iter(progress.values()), (0, 0)))
