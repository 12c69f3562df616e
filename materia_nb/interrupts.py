"""Interrupts that are delivered when nothing can be left behind, and a stop that no interrupt can break."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the wrappers in signal make enums of each argument, which takes longer than a write
import contextlib
import os
import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Final, Self

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

    def __reduce__(self) -> tuple[type[Stop], tuple[()]]:
        """Be another one in another process, which nobody there sets."""
        return Stop, ()

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
