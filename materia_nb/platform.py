"""Where the package runs and what there is: threads, timers, processes, locks on files; and how to do without them.

A kernel in a browser (Pyodide) has no threads, no processes and no locks on files. Windows has no process groups that
could be ended as a whole, and other locks. All else asks here, so that nothing else has to know.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any, Final, Protocol

from materia_nb.interrupts import HeldInterrupts

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


class Work(Protocol):
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


def start_thread(act: Callable[[], object], name: str) -> Work:
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


@contextlib.contextmanager
def computing() -> Iterator[None]:
    """Compute as one of two threads beside the main one.

    The interpreter lets one thread compute at a time: where a hundred casts want to at once, an event loop waits until each
    of them has had its turn. Whoever is here waits for nothing but the disk, see :func:`resting`.
    """
    if _here.computes or threading.current_thread() is threading.main_thread():
        yield
        return
    with _places:
        _here.computes = True
        try:
            yield
        finally:
            _here.computes = False


@contextlib.contextmanager
def resting() -> Iterator[None]:
    """Leave the place that :func:`computing` took to others, while an agent, a process or a watcher is waited for."""
    if not _here.computes:
        yield
        return
    _here.computes = False
    _places.release()
    try:
        yield
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

_held: Final[
    dict[str, int]
] = {}  # where the system has no locks: what this process has locked, and by which handle
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
