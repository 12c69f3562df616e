"""Steps in the background: a button starts one, the kernel stays free, and a second one is refused."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from materia_nb.cast import Cast
from materia_nb.errors import MateriaError
from materia_nb.platform import Work, start_thread

if TYPE_CHECKING:
    from materia_nb.cast.quests import QuestBoard
    from materia_nb.widgets.base import Panel

_runs: Final[weakref.WeakKeyDictionary[Cast | QuestBoard, Runs]] = weakref.WeakKeyDictionary()
_finding: Final = threading.Lock()
_INSTANT_S: Final = 0.05


class Runs:
    """What the panels of one cast, or of a board, run; at most one thing at a time. Get it with :func:`runs_of`.

    Attributes:
        running: what runs now, in a word; None when nothing does.
        outcome: what the latest run returned.
        error: what the latest run raised, None when it went well.
        begun: when what runs now was begun, in milliseconds since the epoch; None when nothing runs.
        asked_to_stop: when it was asked to stop; None when it was not.
    """

    def __init__(self, owner: Cast | QuestBoard) -> None:
        self._owner = weakref.ref(owner)
        self._lock = threading.Lock()
        self._watchers: list[Callable[[Runs], None]] = []
        self._threads: list[Work] = []
        self.running: str | None = None
        self.outcome: object = None
        self.error: Exception | None = None
        self.begun: int | None = None
        self.asked_to_stop: int | None = None

    @property
    def busy(self) -> bool:
        """Whether a step runs, started here or in a cell."""
        owner = self._owner()
        return self.running is not None or (owner is not None and _is_busy(owner))

    def busy_for(self, panel: Panel) -> bool:
        """Whether a step runs, for a panel that draws it; the panel looks again when its end is not told.

        A cast tells of a change before it has let go of its lock, and of nothing afterwards.
        """
        if self.running is not None:
            return True
        owner = self._owner()
        # What a person has just done is over in an instant: waiting for it spares a button that blinks.
        if owner is None or not _is_busy(owner, _INSTANT_S):
            return False
        panel.later()
        return True

    def refuse_while_busy(self) -> None:
        """Raise MateriaError (kind ``busy``) while a step runs."""
        if self.busy:
            raise MateriaError(
                "A step is running; nothing can be changed before it ends.",
                hint="pause, then try again",
                kind="busy",
            )

    def start(self, what: str, act: Callable[[], object]) -> None:
        """Run ``act`` in a thread of its own.

        Args:
            what: what it is, in a word.
            act: takes nothing; what it returns and raises is kept and told to the watchers.

        Raises:
            MateriaError: something runs already (kind ``busy``).
        """
        with self._lock:
            self.refuse_while_busy()
            self.running, self.error, self.outcome = what, None, None
            self.begun, self.asked_to_stop = round(time.time() * 1000), None
        _hear_interrupts()
        self._begin(lambda: self._run(act))
        self._tell()

    def asks_to_stop(self) -> None:
        """Keep when what runs was asked to stop."""
        self.asked_to_stop = self.asked_to_stop or round(time.time() * 1000)

    def pause(self) -> None:
        """Let what runs of a cast stop after its step, or within it where it can."""
        owner = self._owner()
        if isinstance(owner, Cast):
            owner.runner.stop.set()
            self.asks_to_stop()
            self._tell()

    def beside(self, act: Callable[[], object]) -> None:
        """Run ``act``, which may have to wait for a running step, without making anyone wait for it."""
        self._begin(lambda: self._run_beside(act))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until everything started so far has ended; whether it did. Seconds; for code, not for callbacks."""
        for thread in tuple(self._threads):
            thread.join(timeout)
        return not any(thread.is_alive() for thread in self._threads)

    def watch(self, watcher: Callable[[Runs], None]) -> Callable[[], None]:
        """Call ``watcher`` when a run begins and ends; returns a function that ends it."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    def _begin(self, body: Callable[[], None]) -> None:
        running = [one for one in self._threads if one.is_alive()]
        self._threads = [*running, start_thread(body, "materia-step")]

    def _run(self, act: Callable[[], object]) -> None:
        outcome, error = None, None
        try:
            outcome = act()
        except Exception as raised:  # noqa: BLE001 - the panel shows it; a thread has nobody else to tell
            error = raised
        finally:
            with self._lock:
                self.running, self.outcome, self.error = None, outcome, error
                self.begun = self.asked_to_stop = None
            self._tell()

    def _run_beside(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as raised:  # noqa: BLE001 - as above
            self.error = raised
        self._tell()

    def _tell(self) -> None:
        for watcher in tuple(self._watchers):
            watcher(self)


def runs_of(owner: Cast | QuestBoard) -> Runs:
    """Return what runs of a cast or a board; the same for all its panels."""
    with _finding:
        return _runs.setdefault(owner, Runs(owner))


def _is_busy(owner: Cast | QuestBoard, wait: float = 0.0) -> bool:
    return (owner.runner if isinstance(owner, Cast) else owner).busy(wait)


def _hear_interrupts() -> None:
    """Let an interrupt of the kernel pause what buttons began; while no cell runs, the kernel ignores it otherwise."""
    from IPython import get_ipython

    loop: Any = getattr(getattr(get_ipython(), "kernel", None), "io_loop", None)

    def pause() -> None:
        for one in tuple(_runs.values()):
            if one.running is not None:
                one.pause()

    def listen() -> None:
        # Around every message the kernel sets a handler of its own, and then this one again.
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            with contextlib.suppress(NotImplementedError):  # Windows has no such handlers
                loop.asyncio_loop.add_signal_handler(signal.SIGINT, pause)

    if loop is not None:
        loop.add_callback(listen)
