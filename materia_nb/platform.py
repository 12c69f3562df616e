"""Capabilities of the system: threads, timers, processes, file locks and interrupts; jobs in threads and their progress.

A kernel in a browser (Pyodide) has no threads, no processes and no file locks. Windows has no process groups that can be
ended as a whole, and other locks. All other modules ask this one, so that none of them needs to know the system. Interrupts
are delivered when nothing can be left behind, and a stop is an event that no interrupt can break.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the wrappers in signal make enums of each argument, which takes longer than a write
import asyncio
import contextlib
import functools
import gc
import importlib
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
from typing import Any, Final, ParamSpec, Protocol, Self, TypeAlias, TypeVar

_LOOK_S: Final = 0.05


class Stop(threading.Event):
    """An event without a lock: a flag that is set, cleared and looked at.

    An interrupt in the middle of ``Event.set`` or ``Event.clear`` leaves the lock of the event taken, and
    then everybody waits for ever who sets or clears it next. A person who stops a cast does both.

    Attributes:
        since: when it was set first, in seconds of ``time.monotonic``; None while it is not set.
        left: whether what does not end by itself is not to be waited for either, see :meth:`leave`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.since: float | None = None
        self.left = False

    def is_set(self) -> bool:
        """Whether it is set."""
        return self.since is not None

    def set(self) -> None:
        """Set it; whoever waits goes on within a twentieth of a second."""
        if self.since is None:
            self.since = time.monotonic()

    def clear(self) -> None:
        """Take it back."""
        self.since, self.left = None, False

    def leave(self) -> None:
        """Set it, and let whoever waits for something that cannot be ended go on without it."""
        self.set()
        self.left = True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, at most so many seconds; whether it is."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = _LOOK_S if until is None else min(until - time.monotonic(), _LOOK_S)
            if left <= 0:
                break
            time.sleep(left)
        return self.is_set()


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """Let nobody look for cycles meanwhile: of many values that all stay, each look goes through all, and finds nothing."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class HeldInterrupts:
    """Notes SIGINT in its block, which must be short or look at ``count``, and delivers it on leaving.

    An exception that a signal handler raises can arrive between any two instructions, also
    between opening a file, or starting a process, and remembering it. So here the handler only counts and
    wakes whoever waits on ``wake_fd``. Leaving restores the previous handler and, when there was an
    interrupt, raises the signal again for it: usually KeyboardInterrupt. In a block within a block
    the inner one takes over what the outer one has noted, since it may be the one that waits.

    Outside the main thread, where signals do not arrive, and where SIGINT is ignored, this does
    nothing: ``wake_fd`` is None and ``count`` stays 0.

    Attributes:
        count: how many interrupts were noted.
        wake_fd: what can be read from once there was one, see :meth:`waking`.
    """

    count = 0
    wake_fd: int | None = None
    _wake = False
    _write_fd = -1
    _holds = False

    @classmethod
    def waking(cls) -> Self:
        """Return one with a ``wake_fd``."""
        held = cls()
        held._wake = True
        return held

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        previous = _signal.getsignal(signal.SIGINT)
        # None: a handler that C code installed and that could not be put back.
        if previous is None or previous == signal.SIG_IGN:
            return self
        self._previous = previous
        self._holds = True
        _signal.signal(signal.SIGINT, self._note)  # from here on nothing is interrupted, so nothing is lost
        outer = getattr(previous, "__self__", None)
        if isinstance(outer, HeldInterrupts):
            self.count, outer.count = self.count + outer.count, 0
        if self._wake:
            try:
                self.wake_fd, self._write_fd = os.pipe()
            except OSError:
                _signal.signal(signal.SIGINT, previous)
                raise
            os.set_blocking(self.wake_fd, False)
            os.set_blocking(self._write_fd, False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._holds:
            return
        read, write = self.wake_fd, self._write_fd
        self.wake_fd, self._write_fd = None, -1
        if read is not None:
            os.close(read)
            os.close(write)
        _signal.signal(signal.SIGINT, self._previous)
        if self.count:
            signal.raise_signal(signal.SIGINT)

    def drain(self) -> None:
        """Empty the wake pipe after it woke someone."""
        if self.wake_fd is not None:
            with contextlib.suppress(BlockingIOError):
                os.read(self.wake_fd, 4096)

    def _note(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a handler's signature
        self.count += 1
        if self._write_fd >= 0:
            with contextlib.suppress(OSError):  # full: the waiter is awake already
                os.write(self._write_fd, b"\0")


_P = ParamSpec("_P")
_T = TypeVar("_T")
_WEB: Final = sys.platform in {"emscripten", "wasi"}

THREADS: bool = not _WEB
"""Whether a thread can be started."""

PROCESSES: bool = not _WEB and sys.platform != "ios" and hasattr(os, "killpg")
"""Whether a program can be started, and ended together with all that it started."""


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_fcntl: Final = _module("fcntl")
_msvcrt: Final = _module("msvcrt")
_FLOCK: Final = getattr(_fcntl, "flock", None)  # in a browser fcntl is there and empty
_DRIVE: Final = Path("/drive")  # where JupyterLite mounts the page's files
_LOCK_BYTE: Final = 1 << 40  # msvcrt's locks keep others from reading what they cover: far behind the text
_PAUSE_S: Final = 0.01


class Handle(Protocol):
    """What was put off, until it is done."""

    def cancel(self) -> None:
        """Leave it undone; nothing happens when it is done already."""


class BackgroundWork(Protocol):
    """What was started in the background."""

    def is_alive(self) -> bool:
        """Whether it has begun, or is going to, and has not ended."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, at most so many seconds."""


def call_later(seconds: float, act: Callable[[], object]) -> Handle:
    """Call ``act`` once after so many seconds, in a thread of its own that keeps no process alive.

    Without threads it is called from the running event loop, once nothing else runs. Where there is no loop
    either, it is never called: only what may be left out is to be put off.
    """
    if THREADS:
        timer = threading.Timer(seconds, act)
        timer.daemon = True
        with HeldInterrupts():  # a thread that is interrupted while it starts never does
            timer.start()
        return timer
    if (loop := _loop()) is None:
        return _Never()
    return loop.call_later(seconds, act)


def start_thread(act: Callable[[], object], name: str) -> BackgroundWork:
    """Run ``act`` in the background, in a thread of that name that keeps no process alive and has the caller's context.

    Without threads the event loop runs it as soon as it is free; ``join`` runs it at once. Where there is no loop
    either, it has run when this returns.
    """
    if THREADS:
        thread = threading.Thread(target=copy_context().run, args=(act,), name=name, daemon=True)
        with HeldInterrupts():
            thread.start()
        return thread
    work = _Deferred(act)
    if (loop := _loop()) is None:
        work.join()
    else:
        loop.call_soon(work.join)
    return work


class _Here(threading.local):
    computes = False


_here: Final = _Here()
_places: Final = threading.Semaphore(2)


def computing(work: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let ``work`` compute as one of two threads beside the main one.

    The interpreter lets one thread compute at a time: where a hundred casts want to at once, an event loop waits until each
    of them has had its turn. Whoever is here waits for nothing but the disk, see :func:`resting`.
    """

    @functools.wraps(work)
    def in_its_place(*given: _P.args, **named: _P.kwargs) -> _T:
        if _here.computes or threading.current_thread() is threading.main_thread():
            return work(*given, **named)
        with _places:
            _here.computes = True
            try:
                return work(*given, **named)
            finally:
                _here.computes = False

    return in_its_place


def resting(wait: Callable[[], _T]) -> _T:
    """Leave the place that :func:`computing` took to others, while an agent, a process or a watcher is waited for."""
    if not _here.computes:
        return wait()
    _here.computes = False
    _places.release()
    try:
        return wait()
    finally:
        _places.acquire()
        _here.computes = True


class _Never:
    """The handle of what nobody is there to call."""

    def cancel(self) -> None:
        """Do nothing."""


class _Deferred:
    """Work without a thread: run by whoever comes first, the event loop or somebody who waits for it."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act: Callable[[], object] | None = act
        self._runs = False

    def is_alive(self) -> bool:
        """Whether it is still to be run, or runs."""
        return self._runs or self._act is not None

    def join(self, timeout: float | None = None) -> None:  # noqa: ARG002 - nobody can end it
        """Run it, unless it was run."""
        act, self._act = self._act, None
        if act is not None:
            self._runs = True
            try:
                act()
            finally:
                self._runs = False


def _loop() -> asyncio.AbstractEventLoop | None:
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop()
    if _WEB:  # between two callbacks the page's loop does not count as running, but it is there
        with contextlib.suppress(RuntimeError):
            return asyncio.get_event_loop()
    return None


def place_to_record(folder: Path) -> Path:
    """Say where files can be written step by step that are to be in ``folder``: there, or in memory instead.

    The page that a kernel in a browser runs in keeps the files of its drive; it takes a file only once that is closed,
    and each look at one asks the page. What is in memory is gone with the kernel.
    """
    if _WEB and folder.is_relative_to(_DRIVE):
        return Path.home() / folder.relative_to(_DRIVE)
    return folder


# -- locks on files ---------------------------------------------------------------------------

_held: Final[dict[str, int]] = {}  # where the system has no locks: what this process has locked, and by which handle
_holding: Final = threading.Lock()


def lock_file(handle: int, path: Path, *, wait: bool = False) -> bool:
    """Lock an open file for this handle alone; False when another handle has it, here or in another process.

    A process that ends lets go of its locks. ``flock`` on Linux and macOS, a lock on one byte on Windows. Where there
    is neither, as in a browser, only the handles of this process are kept apart.

    Args:
        handle: the file, open for writing.
        path: where it is.
        wait: wait for whoever has it.

    Raises:
        OSError: the file cannot be locked, such as on some network disks.
    """
    while not _try_lock(handle, path, wait=wait):
        if not wait:
            return False
        time.sleep(_PAUSE_S)
    return True


def file_is_locked(handle: int, path: Path) -> bool:
    """Whether another handle has locked an open file; it is left unlocked, and may be open for reading only.

    Raises:
        OSError: it cannot be said.
    """
    if _FLOCK is not None:
        try:
            _FLOCK(handle, _fcntl.LOCK_SH | _fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        _FLOCK(handle, _fcntl.LOCK_UN)
        return False
    if not _try_lock(handle, path, wait=False):
        return True
    unlock_file(handle)
    return False


def unlock_file(handle: int) -> None:
    """Let go of a file; closing it is not enough while a forked child has a copy of the handle.

    Raises:
        OSError: it cannot be unlocked.
    """
    if _FLOCK is not None:
        _FLOCK(handle, _fcntl.LOCK_UN)
    elif _msvcrt is not None:
        _on_lock_byte(handle, _msvcrt.LK_UNLCK)
    else:
        with _holding:
            for path in [path for path, holder in _held.items() if holder == handle]:
                del _held[path]


def _try_lock(handle: int, path: Path, *, wait: bool) -> bool:
    if _FLOCK is not None:
        try:
            _FLOCK(handle, _fcntl.LOCK_EX if wait else _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
    if _msvcrt is not None:
        try:
            _on_lock_byte(handle, _msvcrt.LK_NBLCK)
        except PermissionError:
            return False
        return True
    with _holding:
        return _held.setdefault(os.path.realpath(path), handle) == handle


def _on_lock_byte(handle: int, what: int) -> None:
    before = os.lseek(handle, 0, os.SEEK_CUR)
    os.lseek(handle, _LOCK_BYTE, os.SEEK_SET)
    try:
        _msvcrt.locking(handle, what, 1)
    finally:
        os.lseek(handle, before, os.SEEK_SET)


Progress: TypeAlias = bool | Callable[[int, int], object]
"""True for a bar; or a function that is called with the number done and the total."""

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def run_jobs(
    work: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    workers: int = 1,
    is_enough: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, _Result]]:
    """Yield the number and the result of each job when it is done, in any order if there are several workers.

    Each worker is a thread and has one job at a time; no more jobs are started once ``is_enough`` returns true. Closing
    the iterator waits for the jobs that run. An error of a job is raised.
    """
    # The caller counts a result before it takes the next one, so jobs must not wait inside the pool.
    next_jobs = takewhile(lambda _: not is_enough(), enumerate(jobs))
    if workers == 1 or not THREADS:
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
    """Reports progress: with a tqdm bar, to a function, or not at all.

    Args:
        progress: the way to report.
        total: the number of things to do, as far as is known.
        unit: the plural noun of what is counted.
    """

    def __init__(self, progress: Progress, total: int, unit: str) -> None:
        self._progress, self.total, self.done = progress, total, 0
        self._bar: Any = None
        if progress is True and THREADS:  # tqdm watches its bars from a thread
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, unit=f" {unit}", leave=False, dynamic_ncols=True)

    def add(self, count: int = 1) -> None:
        """Report that ``count`` more are done."""
        self.done += count
        if callable(self._progress):
            self._progress(self.done, self.total)
        elif self._bar is not None:
            self._bar.total = self.total
            self._bar.update(count)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.total = None  # a bar below its total would stay, in red
            self._bar.close()
