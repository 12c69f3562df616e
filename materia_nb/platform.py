"""Threads, timers, file locks and interrupts, with replacements for a browser, and jobs that run in threads.

A kernel in a browser (Pyodide) has no threads, processes or file locks. All other modules use this module, so that they
need not distinguish platforms.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the wrappers in signal make enums of each argument, which takes longer than a write
import asyncio
import contextlib
import gc
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from itertools import islice, takewhile
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar

_POLL_S: Final = 0.05


class Stop(threading.Event):
    """A lock-free event that can be set and cleared while interrupts arrive.

    A ``threading.Event`` is not suitable: if an interrupt arrives during its ``set`` or ``clear``, the event stays
    locked, and every later call waits forever.

    Attributes:
        since: the time of the first ``set``, in seconds of ``time.monotonic``, or None while the event is not set.
        must_abandon: True if a waiting thread must also abandon work that cannot be stopped; see :meth:`abandon`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.since: float | None = None
        self.must_abandon = False

    def is_set(self) -> bool:
        """Return True if the event is set."""
        return self.since is not None

    def set(self) -> None:
        """Set the event; waiting threads notice this within 50 milliseconds."""
        if self.since is None:
            self.since = time.monotonic()

    def clear(self) -> None:
        """Clear the event, so that later calls of :meth:`wait` block again."""
        self.since, self.must_abandon = None, False

    def abandon(self) -> None:
        """Set the event and ``must_abandon``, so that waiting threads abandon work that cannot be stopped."""
        self.set()
        self.must_abandon = True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to ``timeout`` seconds until the event is set; return True if the event is set."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while not self.is_set() and (remaining := deadline - time.monotonic()) > 0:
            time.sleep(min(remaining, _POLL_S))
        return self.is_set()


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """Disable the garbage collector while many long-lived values are created, because it would scan them repeatedly."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class HeldInterrupts:
    """Context manager that delays SIGINT until the end of the block, which must be short or check ``count``.

    A signal handler can raise its exception between any two instructions, for example between opening a file and
    storing its handle. Inside the block, the handler therefore only counts interrupts. At the end, the previous handler
    is restored and receives the interrupt, which usually raises KeyboardInterrupt. A nested block takes over the count
    of the outer block, because the nested block may be the one that waits.

    Outside the main thread, or if SIGINT is ignored, the block has no effect, and ``count`` stays 0.

    Attributes:
        count: the number of interrupts.
    """

    count = 0
    _is_active = False

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        previous = _signal.getsignal(signal.SIGINT)
        # None: C code installed the handler, so it could not be restored.
        if previous is None or previous == signal.SIG_IGN:
            return self
        self._previous = previous
        self._is_active = True
        _signal.signal(signal.SIGINT, self._count_interrupt)  # interrupts are counted from here on
        outer = getattr(previous, "__self__", None)
        if isinstance(outer, HeldInterrupts):
            self.count, outer.count = self.count + outer.count, 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_active:
            return
        _signal.signal(signal.SIGINT, self._previous)
        if self.count:
            signal.raise_signal(signal.SIGINT)

    def _count_interrupt(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of a handler
        self.count += 1


class WakingInterrupts(HeldInterrupts):
    """Context manager that delays SIGINT, and wakes up a thread that waits for ``wake_fd``.

    Attributes:
        wake_fd: a file descriptor that becomes readable after an interrupt, or None if the block has no effect.
    """

    wake_fd: int | None = None
    _write_fd = -1

    def __enter__(self) -> Self:
        super().__enter__()
        if self._is_active:
            try:
                self.wake_fd, self._write_fd = os.pipe()
            except OSError:
                _signal.signal(signal.SIGINT, self._previous)
                raise
            os.set_blocking(self.wake_fd, False)
            os.set_blocking(self._write_fd, False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        read, write = self.wake_fd, self._write_fd
        self.wake_fd, self._write_fd = None, -1
        if read is not None:
            os.close(read)
            os.close(write)
        super().__exit__(kind, error, trace)

    def drain(self) -> None:
        """Empty the pipe of ``wake_fd``."""
        if self.wake_fd is not None:
            with contextlib.suppress(BlockingIOError):
                os.read(self.wake_fd, 4096)

    def _count_interrupt(self, signum: int, frame: FrameType | None) -> None:
        super()._count_interrupt(signum, frame)
        if self._write_fd >= 0:
            with contextlib.suppress(OSError):  # the pipe is full, so the waiting thread is awake
                os.write(self._write_fd, b"\0")


_IS_BROWSER: Final = sys.platform in {"emscripten", "wasi"}

CAN_START_THREADS: bool = not _IS_BROWSER
"""True if the platform can start threads."""

CAN_START_PROCESSES: bool = not _IS_BROWSER and sys.platform != "ios" and hasattr(os, "killpg")
"""True if the platform can start programs and can end them together with all their child processes."""

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]
_HAS_LOCKS: Final = hasattr(fcntl, "flock")  # in a browser fcntl exists and is empty
_BROWSER_DRIVE: Final = Path("/drive")  # where JupyterLite mounts the files of the page
_LOCK_RETRY_S: Final = 0.01


class ScheduledCall(Protocol):
    """A scheduled call that can be cancelled."""

    def cancel(self) -> None:
        """Cancel the call, unless it has already been made."""


class BackgroundWork(Protocol):
    """A function that runs in the background."""

    def is_alive(self) -> bool:
        """Return True until the function has returned."""

    def join(self, timeout: float | None = None) -> None:
        """Wait up to ``timeout`` seconds for the function to return; without a timeout, wait until it returns."""


def call_later(seconds: float, function: Callable[[], object]) -> ScheduledCall:
    """Call ``function`` once after ``seconds`` seconds, in a daemon thread of its own.

    On platforms without threads, the running event loop calls ``function`` when the loop is idle. If no event loop is
    running either, ``function`` is never called, so ``call_later`` is only suitable for optional calls.
    """
    timer = threading.Timer(seconds, function)
    timer.daemon = True
    if CAN_START_THREADS:
        with HeldInterrupts():  # a thread that is interrupted while it starts never runs
            timer.start()
    elif (loop := _event_loop()) is not None:
        return loop.call_later(seconds, function)
    return timer


def start_thread(function: Callable[[], object], name: str) -> BackgroundWork:
    """Run ``function`` in a daemon thread named ``name``, with the context of the caller.

    On platforms without threads, ``function`` runs when the event loop is idle or when ``join`` is called, whichever
    comes first. If no event loop is running, ``function`` runs before ``start_thread`` returns.
    """
    if CAN_START_THREADS:
        thread = threading.Thread(target=copy_context().run, args=(function,), name=name, daemon=True)
        with HeldInterrupts():
            thread.start()
        return thread
    work = _DeferredWork(function)
    if (loop := _event_loop()) is None:
        work.join()
    else:
        loop.call_soon(work.join)
    return work


class _DeferredWork:
    """A background function for platforms without threads; the event loop or the first caller of ``join`` runs it."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._function: Callable[[], object] | None = function
        self._is_running = False

    def is_alive(self) -> bool:
        return self._is_running or self._function is not None

    def join(self, timeout: float | None = None) -> None:  # noqa: ARG002 - the work cannot be interrupted
        function, self._function = self._function, None
        if function is not None:
            self._is_running = True
            try:
                function()
            finally:
                self._is_running = False


def _event_loop() -> asyncio.AbstractEventLoop | None:
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop()
    if _IS_BROWSER:  # between two callbacks the loop of the page exists, but does not count as running
        with contextlib.suppress(RuntimeError):
            return asyncio.get_event_loop()
    return None


class _ThreadState(threading.local):
    is_computing = False


_thread_state: Final = _ThreadState()
_compute_slots: Final = threading.Semaphore(2)


class computing:  # noqa: N801 - used like a function: with computing()
    """Context manager that allows at most two threads, besides the main thread, to compute at the same time.

    The interpreter runs one thread at a time. If a hundred casts compute at once, an event loop waits until each cast
    has had its turn. A thread that waits for anything slower than the disk must release its slot
    with :class:`released_slot`.
    """

    def __enter__(self) -> None:
        self._has_acquired = not (_thread_state.is_computing or threading.current_thread() is threading.main_thread())
        if self._has_acquired:
            _compute_slots.acquire()
            _thread_state.is_computing = True

    def __exit__(self, *_: object) -> None:
        if self._has_acquired:
            _thread_state.is_computing = False
            _compute_slots.release()


class released_slot:  # noqa: N801 - as above
    """Context manager that releases the slot of :class:`computing` while the thread waits for something slow."""

    def __enter__(self) -> None:
        self._has_released = _thread_state.is_computing
        if self._has_released:
            _thread_state.is_computing = False
            _compute_slots.release()

    def __exit__(self, *_: object) -> None:
        if self._has_released:
            _compute_slots.acquire()
            _thread_state.is_computing = True


def recording_folder(folder: Path) -> Path:
    """Return a folder in which files can be written incrementally: ``folder``, or an in-memory folder in a browser.

    In a browser, the page provides the kernel's file system and saves a file only when the file is closed. Files that
    stay open for a long time are therefore written in memory, and are lost when the kernel ends.
    """
    if _IS_BROWSER and folder.is_relative_to(_BROWSER_DRIVE):
        return Path.home() / folder.relative_to(_BROWSER_DRIVE)
    return folder


# -- file locks -------------------------------------------------------------------------------

_own_locks: Final[dict[str, int]] = {}  # without flock: the handle that has locked each path, in this process
_own_locks_mutex: Final = threading.Lock()


def lock_file(handle: int, path: Path, *, wait: bool = False) -> bool:
    """Lock an open file for this handle; return False if another handle, in any process, has locked the file.

    The locks of a process are released when the process ends. On platforms without ``flock``, such as a browser, only
    handles of the same process exclude each other.

    Args:
        handle: a handle of the file, which must be open for writing.
        path: the path of the file.
        wait: True to wait until the file can be locked.

    Raises:
        OSError: the file cannot be locked, as on some network disks.
    """
    while not _try_lock(handle, path, wait=wait):
        if not wait:
            return False
        time.sleep(_LOCK_RETRY_S)
    return True


def _try_lock(handle: int, path: Path, *, wait: bool) -> bool:
    if not _HAS_LOCKS:
        with _own_locks_mutex:
            return _own_locks.setdefault(os.path.realpath(path), handle) == handle
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def file_is_locked(handle: int, path: Path) -> bool:
    """Return True if another handle has locked an open file; the file may be open for reading only.

    Raises:
        OSError: the system cannot determine whether the file is locked.
    """
    if _HAS_LOCKS:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    elif not _try_lock(handle, path, wait=False):
        return True
    unlock_file(handle)
    return False


def unlock_file(handle: int) -> None:
    """Unlock a file; closing the file is not enough while a forked child process has a copy of the handle.

    Raises:
        OSError: the file cannot be unlocked.
    """
    if _HAS_LOCKS:
        fcntl.flock(handle, fcntl.LOCK_UN)
        return
    with _own_locks_mutex:
        for path in [path for path, owner in _own_locks.items() if owner == handle]:
            del _own_locks[path]


Progress: TypeAlias = bool | Callable[[int, int], object]
"""True for a progress bar, False for no report, or a function that receives the finished and the total unit count."""

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def run_jobs(
    work: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    workers: int = 1,
    is_enough: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, _Result]]:
    """Run jobs, and yield the number and the result of each job. Several workers yield results in order of completion.

    Each worker is a thread that runs one job at a time. No further jobs are started after ``is_enough`` returns True.
    Closing the iterator waits for the running jobs. If a job raises an error, the iterator raises it.
    """
    # The caller counts a result before it requests the next result, so jobs must not wait inside the pool.
    next_jobs = takewhile(lambda _: not is_enough(), enumerate(jobs))
    if workers == 1 or not CAN_START_THREADS:
        yield from ((number, work(job)) for number, job in next_jobs)
        return
    running: dict[Future[_Result], int] = {}
    with ThreadPoolExecutor(workers) as pool:
        while True:
            for number, job in islice(next_jobs, workers - len(running)):
                running[pool.submit(copy_context().run, work, job)] = number
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()


class ProgressBar:
    """Progress reporter that shows a tqdm bar, calls a function, or does nothing.

    Args:
        progress: True for a bar, a function to call, or False to report nothing.
        total: the known number of units to process.
        unit: the plural noun for the units, such as ``states``.
    """

    def __init__(self, progress: Progress, total: int, unit: str) -> None:
        self._progress, self.total, self.done = progress, total, 0
        self._bar: Any = None
        if progress is True and CAN_START_THREADS:  # tqdm watches its bars from a thread
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, unit=f" {unit}", leave=False, dynamic_ncols=True)

    def add(self, count: int = 1) -> None:
        """Report that ``count`` more units are finished."""
        self.done += count
        if callable(self._progress):
            self._progress(self.done, self.total)
        elif self._bar is not None:
            self._bar.total = self.total
            self._bar.update(count)

    def close(self) -> None:
        """Remove the bar from the display."""
        if self._bar is not None:
            self._bar.total = None  # a bar below its total would stay, in red
            self._bar.close()
