"""One started command and everything that it started, until all of it has ended (R23)."""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import subprocess
import threading
import time
from typing import IO, Final

from materia_nb.interrupts import HeldInterrupts

KILL_AFTER_S: Final = 1.0
"""Seconds from SIGTERM to SIGKILL (R23)."""

_PIPE_GRACE_S: Final = 0.2  # for what is still in the pipes once the command itself has ended
_CHECK_S: Final = 0.05  # how often to look for an end, or a stop, that no pipe tells of
_SHORTEST_S: Final = 5e-5  # the first pause when an end is expected at any moment
_COLLECT_S: Final = 5.0  # how long to wait for a killed command to be gone
_CHUNK: Final = 65_536  # what a pipe holds


class _Output:
    """One output pipe: what is kept of it, and whether there was more."""

    def __init__(self, pipe: IO[bytes], keep: int, keep_end: int) -> None:
        self.pipe = pipe
        self.truncated = False
        self.size = 0
        self.end = b""
        self._parts: list[bytes] = []
        self._room = keep
        self._keep_end = keep_end

    def read(self) -> bool:
        """Take what is there; False at the end."""
        try:
            data = os.read(self.pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return True
        self.size += len(data)
        if len(data) > self._room:
            self.truncated = True
            if self._keep_end:
                self.end = (self.end + data[self._room :])[-self._keep_end :]
        if self._room:
            self._parts.append(data[: self._room])
            self._room -= len(self._parts[-1])
        return bool(data)

    @property
    def kept(self) -> bytes:
        return b"".join(self._parts)


class ProcessGroup:
    """One started command and its pipes, until its group has ended."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        stdin: bytes,
        keep: tuple[int, int],
        interrupts: HeldInterrupts,
        stop: threading.Event | None,
    ) -> None:
        if child.stdin is None or child.stdout is None or child.stderr is None:
            raise AssertionError("all three pipes were asked for")
        self.child = child
        self.stdin = child.stdin
        self.stdout = _Output(child.stdout, *keep)
        self.stderr = _Output(child.stderr, *keep)
        self.timed_out = False
        self.stopped = False
        self._unsent = memoryview(stdin)
        self._interrupts = interrupts
        self._stop = stop
        self._open_outputs = 2
        # poll has no limit on descriptor numbers and needs none of its own.
        self._selector = selectors.PollSelector()

    def until_end(self, timeout_s: float | None) -> None:
        """Feed and read the command until it has ended, is to be stopped, or its time is up."""
        now = time.monotonic()
        deadline = math.inf if timeout_s is None else now + timeout_s
        self._open_pipes()
        # An end shows as the end of both outputs, so looking for one can be rare until then;
        # from then on it is as a rule some microseconds away.
        pause, check_at, closing = _CHECK_S, now + _CHECK_S, False
        while True:
            if self._interrupts.count or (self._stop is not None and self._stop.is_set()):
                self.stopped = True
                return
            if not self._open_outputs and not closing:
                pause, check_at, closing = _SHORTEST_S, now, True
            now = time.monotonic()
            if now >= check_at:
                if self._has_ended():
                    return
                check_at = now + pause
                pause = min(2 * pause, _CHECK_S)
            if now >= deadline:
                self.timed_out = True
                return
            self._exchange(min(check_at, deadline) - now)

    def end_group(self) -> None:
        """End what is left of the group, take its last output, collect the command, close the pipes."""
        try:
            self._close_stdin()
            if self._has_ended() and not self.timed_out and not self.stopped:
                self._drain()
                # Before the command is collected its number cannot become another group's.
                self._signal_group(signal.SIGKILL)
            else:
                self._terminate()
            self._drain()
            with contextlib.suppress(subprocess.TimeoutExpired):  # held in the kernel: SIGKILL cannot help
                self.child.wait(timeout=_COLLECT_S)
        finally:
            self._selector.close()
            self.stdout.pipe.close()
            self.stderr.pipe.close()

    def _open_pipes(self) -> None:
        for pipe in (self.stdin, self.stdout.pipe, self.stderr.pipe):
            os.set_blocking(pipe.fileno(), False)
        for output in (self.stdout, self.stderr):
            self._selector.register(output.pipe, selectors.EVENT_READ, output)
        if self._interrupts.wake_fd is not None:
            self._selector.register(self._interrupts.wake_fd, selectors.EVENT_READ)
        self._selector.register(self.stdin, selectors.EVENT_WRITE)
        self._write()

    def _exchange(self, seconds: float) -> None:
        """Wait at most so long for a pipe to be ready, and move what can be moved."""
        if seconds < 0.001:  # poll knows whole milliseconds only
            time.sleep(max(seconds, 0))
            seconds = 0
        for key, _ in self._selector.select(seconds):
            if isinstance(key.data, _Output):
                if not key.data.read():
                    self._selector.unregister(key.fileobj)
                    self._open_outputs -= 1
            elif key.fileobj is self.stdin:
                self._write()
            else:
                self._interrupts.drain()

    def _write(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self.stdin.fileno(), self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # nobody reads it, which is the command's own choice
            pass
        self._close_stdin()

    def _close_stdin(self) -> None:
        if not self.stdin.closed:
            if self.stdin in self._selector.get_map():
                self._selector.unregister(self.stdin)
            self.stdin.close()

    def _drain(self) -> None:
        """Read on until both outputs end, or for a short grace when others hold them open."""
        until = time.monotonic() + _PIPE_GRACE_S
        while self._open_outputs and (left := until - time.monotonic()) > 0:
            self._exchange(left)

    def _terminate(self) -> None:
        """Ask the group to end; a second later, or at a second interrupt, make it end."""
        seen = self._interrupts.count
        self._signal_group(signal.SIGTERM)
        until, pause = time.monotonic() + KILL_AFTER_S, _SHORTEST_S
        while (left := until - time.monotonic()) > 0 and self._interrupts.count == seen:
            if self.child.poll() is not None and not self._signal_group(0):
                return
            self._exchange(min(pause, left))
            pause = min(2 * pause, _CHECK_S)
        self._signal_group(signal.SIGKILL)

    def _has_ended(self) -> bool:
        """Whether the command itself has ended; where that is possible it stays to be collected."""
        if self.child.returncode is not None:
            return True
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self.child.poll() is not None
        try:
            return os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # collected by someone else
            return True

    def _signal_group(self, number: int) -> bool:
        """Send a signal to all of the group; False when nobody is there to take it."""
        try:
            os.killpg(self.child.pid, number)
        except (ProcessLookupError, PermissionError):  # macOS: EPERM when only the ended command is left
            return False
        return True
