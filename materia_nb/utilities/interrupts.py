"""Interrupts that are noted at once and delivered when nothing can be left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Self


class HeldInterrupts:
    """Notes SIGINT while a process group is alive and delivers it on leaving.

    An exception that a signal handler raises can arrive between any two instructions, also
    between starting a process and remembering it. So here the handler only counts and wakes
    whoever waits on ``wake_fd``. Leaving restores the previous handler and, when there was an
    interrupt, raises the signal again for it: usually KeyboardInterrupt.

    Outside the main thread, where signals do not arrive, and where SIGINT is ignored, this does
    nothing: ``wake_fd`` is None and ``count`` stays 0.
    """

    def __init__(self) -> None:
        self.count = 0
        self.wake_fd: int | None = None
        self._write_fd = -1

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        self._previous = signal.getsignal(signal.SIGINT)
        # None: a handler that C code installed and that could not be put back.
        if self._previous is None or self._previous == signal.SIG_IGN:
            return self
        self.wake_fd, self._write_fd = os.pipe()
        os.set_blocking(self.wake_fd, False)
        os.set_blocking(self._write_fd, False)
        signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.wake_fd is None:
            return
        signal.signal(signal.SIGINT, self._previous)
        os.close(self.wake_fd)
        os.close(self._write_fd)
        if self.count:
            signal.raise_signal(signal.SIGINT)

    def drain(self) -> None:
        """Empty the wake pipe after it woke someone."""
        if self.wake_fd is not None:
            with contextlib.suppress(BlockingIOError):
                os.read(self.wake_fd, 4096)

    def _note(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a handler's signature
        self.count += 1
        with contextlib.suppress(OSError):  # full: the waiter is awake already
            os.write(self._write_fd, b"\0")
