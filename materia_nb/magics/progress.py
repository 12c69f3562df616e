"""A progress bar while a cast runs, or many are rehearsed; gone when they stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from materia_nb.cast import Cast
from materia_nb.display.escape import ELLIPSIS, part
from materia_nb.platform import THREADS, call_later

SHOW_AFTER_S = 0.5
"""Short runs show nothing, so that their cells hold only the result."""
REDRAW_S = 0.1
"""At most this often the bar is redrawn."""
_SAID = 60
"""How much of what the agent says at the moment stands beside the bar."""


@contextmanager
def running(cast: Cast) -> Iterator[None]:
    """Show work items done and the current socket while the block runs, if it takes long enough."""
    if not _watched():
        yield
        return
    bar = _Bar(lambda: _told_of(cast))
    ends = (cast.watch(lambda _: bar.update()), cast.runner.listen(bar.update))
    try:
        yield
    finally:
        for end in ends:
            end()
        bar.close()


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many of ``what`` are done while the block runs; it calls what it is given with the done and the total."""
    counts = [0, 0]
    bar = (
        _Bar(lambda: (counts[0], counts[1], f"{counts[0]:,} of {counts[1]:,} {what}")) if _watched() else None
    )

    def told(done: int, total: int) -> None:
        counts[:] = done, total
        if bar is not None:
            bar.update()

    try:
        yield told
    finally:
        if bar is not None:
            bar.close()


def _watched() -> bool:
    """Whether a person may be looking at the cell as it runs.

    A terminal would print the widgets as text. And what runs a notebook with nobody there (nbconvert, nbclient,
    papermill, nbval) says with each cell that nobody can be asked: the outputs that it stores or compares are not to
    depend on how busy the machine is.
    """
    from IPython import get_ipython

    if not THREADS:  # nothing could draw it while the cell runs
        return False
    kernel = getattr(get_ipython(), "kernel", None)
    if kernel is None:
        return False
    return bool(kernel.get_parent("shell").get("content", {}).get("allow_stdin", True))


class _Bar:
    """The bar and the words beside it, made when the run has taken long enough, from whichever thread."""

    def __init__(self, told: Callable[[], tuple[int, int, str]]) -> None:
        """``told`` returns how many are done, of how many, and the words beside the bar."""
        self._told = told
        self._last = 0.0
        self._widgets: Any = None
        self._shown: Any = None
        self._closed = False
        self._drawing = threading.Lock()
        # A step may take long by itself, and nothing is told of it before its end.
        self._timer = call_later(SHOW_AFTER_S, self._show)

    def update(self) -> None:
        """Bring the bar up to date, if it is there and was not drawn just now."""
        with self._drawing:
            if self._widgets is not None and time.monotonic() - self._last >= REDRAW_S:
                self._draw()

    def close(self) -> None:
        """Take the bar away, or see to it that none appears."""
        self._timer.cancel()
        with self._drawing:
            self._closed = True
            if self._widgets is None:
                return
            # Not clear_output: it would take away what the cell itself has printed.
            self._shown.update({}, raw=True)
            for widget in (*self._widgets.children, self._widgets):
                widget.close()

    def _show(self) -> None:
        with self._drawing:
            if not self._closed:
                self._widgets, self._shown = _make()
                self._draw()

    def _draw(self) -> None:
        self._last = time.monotonic()
        bar, label = self._widgets.children
        done, total, label.value = self._told()
        bar.max, bar.value = max(total, 1), done


def _told_of(cast: Cast) -> tuple[int, int, str]:
    """Work items done and how many there are, and where the cast is, with the last words of who is asked."""
    now = cast.now
    done, total = progress_of(cast)
    items = f"{done}/{total} items, " if total else ""
    where = f"{items}{now.next_socket or now.status}, step {len(now.steps)}"
    saying = now.saying
    cut = ELLIPSIS if len(saying) > _SAID else ""
    return done, total, f"{where}: {cut}{part(saying[-_SAID:], _SAID)}" if saying else where


def _make() -> tuple[Any, Any]:
    """The widgets, and the handle of the output that shows them."""
    import ipywidgets
    from IPython.display import display

    box = ipywidgets.HBox([ipywidgets.IntProgress(min=0, max=1), ipywidgets.Label()])
    return box, display(box, display_id=True)


def progress_of(cast: Cast) -> tuple[int, int]:
    """Return how many items of the current loop are done, and how many there are."""
    from materia_nb.cast.views.status import loop_progress

    found = loop_progress(cast.now)
    visit = cast.now.engine.at
    loops = cast.graph.sockets[visit.socket].loops if visit else ()
    return next((found[loop] for loop in loops if loop in found), next(iter(found.values()), (0, 0)))
