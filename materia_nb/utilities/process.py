"""Runs commands so that they can neither block their caller nor leave child processes running (R23).

On a platform that does not support processes, a Python script is run inside the current process, with its own stdin,
stdout and stderr. Such a script cannot be stopped, so it has no time limit. It can access the memory of the current
process, so only scripts that a person selected are run there.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import runpy
import selectors
import shlex
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile
from pathlib import Path, PurePath
from typing import IO, Any, Final, NamedTuple, Self

from materia_nb import platform
from materia_nb.platform import WakingInterrupts

NO_PROCESSES_REASON: Final = "this kernel cannot start programs; it can only run Python scripts in its own process"
"""The reason why a command cannot be run in a kernel that does not support processes, such as a kernel in a browser."""

_PYTHON_PROGRAM: Final = re.compile(r"python(3(\.\d+)?)?(\.exe)?")
_OPTIONS_WITHOUT_VALUE: Final = frozenset({"-B", "-E", "-I", "-P", "-S", "-s", "-u"})
_in_place_lock: Final = threading.RLock()


MAX_CAPTURED_BYTES: Final = 1_048_576
"""Maximum number of bytes captured from each of stdout and stderr (R23)."""


class Capture(NamedTuple):
    """Specifies which part of an output stream is captured.

    Attributes:
        start: the number of bytes to capture from the beginning of the output.
        end: the number of bytes to capture from the end of an output that is longer than ``start``.
        skip_lines: the prefix of lines that are neither captured nor counted; by default, no lines are skipped.
    """

    start: int = MAX_CAPTURED_BYTES
    end: int = 0
    skip_lines: bytes = b""


_DEFAULT_CAPTURE: Final = Capture()


class CapturedOutput(io.RawIOBase):
    """A writable stream that stores only the part of the output that a :class:`Capture` specifies."""

    def __init__(self, capture: Capture) -> None:
        self.size = 0
        self.end = b""
        self._start = bytearray()
        self._remaining, self._end_bytes, self._skip_lines = capture
        self._line = b""

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Store the part of ``data`` that is to be captured, and return the length of ``data``."""
        written = chunk = bytes(data)
        if self._skip_lines:
            *lines, self._line = (self._line + chunk).split(b"\n")
            chunk = b"".join(line + b"\n" for line in lines if not line.startswith(self._skip_lines))
            if self._line.startswith(self._skip_lines):
                self._line = self._skip_lines
            elif not written or len(self._line) > self._remaining:  # the output ended, or the line is too long
                chunk, self._line = chunk + self._line, b""
        self.size += len(chunk)
        if self._remaining:
            self._start += chunk[: self._remaining]
        if len(chunk) > self._remaining and self._end_bytes:
            self.end = (self.end + chunk[self._remaining :])[-self._end_bytes :]
        self._remaining = max(0, self._remaining - len(chunk))
        return len(written)

    @property
    def start(self) -> bytes:
        """The captured beginning of the output."""
        return bytes(self._start)

    @property
    def truncated(self) -> bool:
        """True if ``start`` contains only the beginning of the output."""
        return self.size > len(self._start)


def _python_script(argv: Sequence[str]) -> tuple[str | None, list[str]] | None:
    """Split a command that runs Python into the code after ``-c`` and the arguments.

    The code is None if the command runs a script file. Return None if the command does not run Python code or a script.
    """
    if not argv or not (argv[0] == sys.executable or _PYTHON_PROGRAM.fullmatch(PurePath(argv[0]).name)):
        return None
    arguments = list(dropwhile(_OPTIONS_WITHOUT_VALUE.__contains__, argv[1:]))
    if len(arguments) > 1 and arguments[0] == "-c":
        return arguments[1], ["-c", *arguments[2:]]
    return (None, arguments) if arguments and not arguments[0].startswith("-") else None


def _run_script(code: str | None, file: str) -> int:
    """Run a script file, or ``code`` if it is not None, as ``__main__``, and return the exit code."""
    try:
        if code is None:
            runpy.run_path(file, run_name="__main__")
        else:
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})  # noqa: S102 - the code is the command
    except SystemExit as exit_:
        if exit_.code is None or isinstance(exit_.code, int):
            return (exit_.code or 0) & 0xFF
        sys.stderr.write(f"{exit_.code}\n")
        return 1
    except Exception:  # noqa: BLE001 - Python also prints the traceback and exits with 1
        traceback.print_exc()
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    return 0


@contextlib.contextmanager
def _script_environment(
    arguments: list[str], stdin: bytes, outputs: tuple[CapturedOutput, CapturedOutput], cwd: Path
) -> Iterator[None]:
    """Replace the arguments, the streams and the working directory of this process while the block runs."""
    saved_dir, saved_env = Path.cwd(), dict(os.environ)
    saved_attributes = {name: getattr(sys, name) for name in ("argv", "path", "stdin", "stdout", "stderr")}
    main, modules = sys.modules.get("__main__"), set(sys.modules)
    folder = "" if arguments[0] == "-c" else str((cwd / arguments[0]).absolute().parent)
    os.chdir(cwd)
    try:
        sys.argv = list(arguments)
        sys.path = [folder, *sys.path]
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.BufferedWriter(output), encoding="utf-8", errors="backslashreplace")
            for output in outputs
        )
        yield
    finally:
        for name, value in saved_attributes.items():
            setattr(sys, name, value)
        os.environ.clear()
        os.environ.update(saved_env)
        os.chdir(saved_dir)
        if main is not None:
            sys.modules["__main__"] = main
        for name in set(sys.modules) - modules:  # another script may import a module with the same name
            if folder and str(getattr(sys.modules[name], "__file__", None) or "").startswith(folder + os.sep):
                del sys.modules[name]


_KILL_AFTER_S: Final = 1.0  # Time between SIGTERM and SIGKILL, in seconds (R23).

_PIPE_GRACE_S: Final = 0.2  # maximum time to read the remaining output after the command has ended
_POLL_S: Final = 0.05  # interval between checks whether the command has ended or must be stopped
_FIRST_POLL_S: Final = 5e-5  # first interval between checks after the command has closed its outputs
_COLLECT_S: Final = 5.0  # maximum time to wait for a killed command to be reaped
_CHUNK_BYTES: Final = 65_536  # capacity of a pipe, in bytes


class _Output(CapturedOutput):
    """An output pipe of a command, with the output that was captured from it."""

    def __init__(self, pipe: IO[bytes], capture: Capture) -> None:
        super().__init__(capture)
        self.pipe = pipe

    def read_available(self) -> bool:
        """Read the bytes that are available; return False if the output has ended."""
        try:
            return bool(self.write(os.read(self.pipe.fileno(), _CHUNK_BYTES)))
        except BlockingIOError:
            return True


class ProcessGroup:
    """A running command, together with its pipes and its process group."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        stdin: bytes,
        capture: Capture,
        interrupts: WakingInterrupts,
        stop: threading.Event | None,
    ) -> None:
        if child.stdin is None or child.stdout is None or child.stderr is None:
            raise AssertionError("Popen was called without pipes")
        self.child = child
        self.stdin = child.stdin
        self.stdout = _Output(child.stdout, capture)
        self.stderr = _Output(child.stderr, capture)
        self.timed_out = False
        self.stopped = False
        self._unsent = memoryview(stdin)
        self._interrupts = interrupts
        self._stop = stop
        self._open_outputs = 2
        # Unlike select and epoll, poll has no limit on descriptor numbers and uses no descriptor itself.
        self._selector = selectors.PollSelector()

    def run_to_end(self, timeout_s: float | None) -> None:
        """Exchange data with the command until it ends, is stopped or exceeds ``timeout_s``."""
        now = time.monotonic()
        deadline = math.inf if timeout_s is None else now + timeout_s
        self._open_pipes()
        # A command usually ends a few microseconds after it has closed both outputs, so checks are rare before that.
        pause_s, next_check, is_closing = _POLL_S, now + _POLL_S, False
        while True:
            if self._interrupts.count or (self._stop is not None and self._stop.is_set()):
                self.stopped = True
                return
            if not self._open_outputs and not is_closing:
                pause_s, next_check, is_closing = _FIRST_POLL_S, now, True
            now = time.monotonic()
            if now >= next_check:
                if self._has_ended():
                    return
                next_check = now + pause_s
                pause_s = min(2 * pause_s, _POLL_S)
            if now >= deadline:
                self.timed_out = True
                return
            self._exchange(min(next_check, deadline) - now)

    def end_group(self) -> None:
        """Kill all remaining processes of the group, read their last output, reap the command and close the pipes."""
        try:
            self._close_stdin()
            if self._has_ended() and not self.timed_out and not self.stopped:
                self._drain()
                # The id of the group cannot be reused before the command is reaped.
                self._signal_group(signal.SIGKILL)
            else:
                self._terminate()
            self._drain()
            with contextlib.suppress(subprocess.TimeoutExpired):  # SIGKILL has no effect during some system calls
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
        """Wait at most ``seconds`` until a pipe is ready, and then read from or write to every pipe that is ready."""
        if seconds < 0.001:  # poll waits only for whole milliseconds
            time.sleep(max(seconds, 0))
            seconds = 0
        for key, _ in self._selector.select(seconds):
            if isinstance(key.data, _Output):
                if not key.data.read_available():
                    self._selector.unregister(key.fileobj)
                    self._open_outputs -= 1
            elif key.fileobj is self.stdin:
                self._write()
            else:
                self._interrupts.drain()

    def _write(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self.stdin.fileno(), self._unsent[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:  # the command has closed its stdin
            pass
        self._close_stdin()

    def _close_stdin(self) -> None:
        if not self.stdin.closed:
            if self.stdin in self._selector.get_map():
                self._selector.unregister(self.stdin)
            self.stdin.close()

    def _drain(self) -> None:
        """Read until both outputs have ended, or for a short time if child processes keep the pipes open."""
        deadline = time.monotonic() + _PIPE_GRACE_S
        while self._open_outputs and (remaining := deadline - time.monotonic()) > 0:
            self._exchange(remaining)

    def _terminate(self) -> None:
        """Send SIGTERM to the group, followed by SIGKILL after one second or after another interrupt."""
        interrupts = self._interrupts.count
        self._signal_group(signal.SIGTERM)
        deadline, pause_s = time.monotonic() + _KILL_AFTER_S, _FIRST_POLL_S
        while (remaining := deadline - time.monotonic()) > 0 and self._interrupts.count == interrupts:
            if self.child.poll() is not None and not self._signal_group(0):
                return
            self._exchange(min(pause_s, remaining))
            pause_s = min(2 * pause_s, _POLL_S)
        self._signal_group(signal.SIGKILL)

    def _has_ended(self) -> bool:
        """Return True if the command itself has ended. It is reaped only if the platform offers no other test."""
        if self.child.returncode is not None:
            return True
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self.child.poll() is not None
        try:
            return os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # other code in this process has reaped the command
            return True

    def _signal_group(self, number: int) -> bool:
        """Send a signal to the process group; return False if the group has no running process."""
        try:
            os.killpg(self.child.pid, number)
        except (ProcessLookupError, PermissionError):  # macOS raises EPERM if only the ended command is left
            return False
        return True


STDERR_CHARS: Final = 800
"""Maximum length of the excerpt from stderr in a message, in characters (R23)."""

_COMMAND_CHARS: Final = 300
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The result of running a command.

    Attributes:
        argv: the program and its arguments.
        code: the exit code; None if a signal ended the command or the command was not started.
        signal: the name of the signal that ended the command, such as ``SIGKILL``; None if no signal ended it.
        timed_out: True if the command was stopped because it exceeded its time limit.
        stopped: True if the command was stopped by the stop event or by an interrupt.
        started: False if the command could not be started.
        start_error: the reason why the command could not be started; None if it was started.
        stdout: the captured beginning of stdout.
        stderr: the captured beginning of stderr.
        stdout_truncated: True if stdout was longer than its captured beginning.
        stderr_truncated: True if stderr was longer than its captured beginning.
        seconds: the duration of the run, in seconds.
        stdout_end: the captured end of a truncated stdout; empty unless ``Capture.end`` was set.
        stderr_tail: the captured end of a truncated stderr; empty unless ``Capture.end`` was set.
        stdout_bytes: the total length of stdout, in bytes.
        stderr_bytes: the total length of stderr, in bytes.
        ran_in_process: True if the command ran inside the current process, without a time limit.
    """

    argv: tuple[str, ...]
    code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    stopped: bool = False
    started: bool = True
    start_error: str | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    seconds: float = 0.0
    stdout_end: bytes = b""
    stderr_tail: bytes = b""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    ran_in_process: bool = False

    @property
    def ok(self) -> bool:
        """True if the command ran to completion and exited with 0."""
        return self.code == 0 and not self.timed_out and not self.stopped

    @property
    def ending(self) -> str:
        """The exit code or the signal as text, such as ``code 3`` or ``signal SIGKILL``."""
        return f"code {self.code}" if self.signal is None else f"signal {self.signal}"

    def failure(self, role: str, time_limit: str) -> tuple[str, str] | None:
        """Return the kind and a description of the failure, or None if the command succeeded.

        Args:
            role: the prefix of the kind, such as ``agent`` for ``agent_exit``. The kind ``interrupted`` has no prefix.
            time_limit: the time limit with its unit, for the description.
        """
        if not self.started:
            return f"{role}_not_started", f"could not be started: {self.start_error}"
        if self.timed_out:
            return f"{role}_timeout", f"took longer than {time_limit} and was stopped ({self.ending})"
        if self.stopped:
            return "interrupted", f"was interrupted ({self.ending})"
        return (
            None if self.code == 0 else (f"{role}_exit", f"{'ended' if self.signal else 'exited'} with {self.ending}")
        )

    @property
    def command(self) -> str:
        """The command in shell syntax, shortened to one line."""
        return summarize(shlex.join(self.argv), _COMMAND_CHARS)

    @classmethod
    def not_started(cls, argv: Sequence[str], reason: str, seconds: float = 0.0) -> Self:
        """Return the result of a command that could not be started."""
        return cls(tuple(argv), started=False, start_error=reason, seconds=seconds)


def run_process(
    argv: Sequence[str],
    *,
    stdin: bytes,
    cwd: Path,
    timeout_s: float | None,
    capture: Capture = _DEFAULT_CAPTURE,
    env: Mapping[str, str] | None = None,
    stop: threading.Event | None = None,
) -> ProcessResult:
    """Run a command in its own process group, without a shell, and wait until it ends (R23).

    This function always returns, even if the command writes endlessly, does not read its input, closes its pipes,
    ignores SIGTERM or leaves children that keep the pipes open. After a timeout, a stop or an interrupt, SIGTERM is
    sent to the whole group, followed by SIGKILL one second later. If the command ends on its own, SIGKILL is sent to
    its remaining children. A process that has moved to another group is not stopped. The function may be called from
    any thread.

    On a platform that does not support processes, a Python script is run inside the current process. It has no time
    limit and cannot be stopped.

    Args:
        argv: the program and its arguments.
        stdin: the input of the command.
        cwd: the working directory.
        timeout_s: the time limit in seconds; None if there is no limit.
        capture: the part of stdout and of stderr to capture; all other output is discarded.
        env: variables to add to the environment of the command.
        stop: an event that stops the command within 0.05 seconds when it is set.

    Raises:
        KeyboardInterrupt: the main thread was interrupted. The process group has already ended.
    """
    if not platform.CAN_START_PROCESSES:
        return _run_in_place(argv, stdin, cwd, capture)
    start_time = time.perf_counter()
    with WakingInterrupts() as interrupts:
        try:
            child = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env={**os.environ, "PWD": str(cwd.absolute()), **(env or {})},  # some programs trust PWD
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError, IndexError) as error:
            return _not_started_result(argv, cwd, error, time.perf_counter() - start_time)
        run = ProcessGroup(child, stdin, capture, interrupts, stop)
        try:
            run.run_to_end(timeout_s)
        finally:
            run.end_group()
    code, signal_name = _exit_code_and_signal(child.returncode)
    result = _make_result(argv, start_time, code, run.stdout, run.stderr)
    return replace(result, signal=signal_name, timed_out=run.timed_out, stopped=run.stopped)


def _run_in_place(argv: Sequence[str], stdin: bytes, cwd: Path, capture: Capture) -> ProcessResult:
    """Run a Python script or ``-c`` code in the current process; return a failed result for any other command."""
    script = _python_script(argv)
    if script is None:
        return ProcessResult.not_started(argv, NO_PROCESSES_REASON if argv else "the command is empty")
    (code, arguments), start_time = script, time.perf_counter()
    stdout, stderr = CapturedOutput(capture), CapturedOutput(capture)
    try:
        with _in_place_lock, _script_environment(arguments, stdin, (stdout, stderr), cwd):
            exit_code = _run_script(code, arguments[0])
    except (OSError, ValueError) as error:
        return _not_started_result(argv, cwd, error, time.perf_counter() - start_time)
    return replace(_make_result(argv, start_time, exit_code, stdout, stderr), ran_in_process=True)


def _make_result(
    argv: Sequence[str], start_time: float, code: int | None, stdout: CapturedOutput, stderr: CapturedOutput
) -> ProcessResult:
    return ProcessResult(
        argv=tuple(argv),
        code=code,
        stdout=stdout.start,
        stderr=stderr.start,
        stdout_truncated=stdout.truncated,
        stderr_truncated=stderr.truncated,
        seconds=time.perf_counter() - start_time,
        stdout_end=stdout.end,
        stderr_tail=stderr.end,
        stdout_bytes=stdout.size,
        stderr_bytes=stderr.size,
    )


def summarize(text: str, limit: int) -> str:
    """Convert the output of a process to one line of at most ``limit`` characters.

    The middle of a long line is omitted. Terminal escape sequences and control characters are removed, and whitespace
    is collapsed.
    """
    clean_text = _ESCAPES.sub("", text)
    line = " ".join("".join(c if c.isprintable() else " " for c in clean_text).split())
    if len(line) <= limit:
        return line
    ellipsis = " … "
    head_length = limit * 3 // 8
    return line[:head_length] + ellipsis + line[len(line) - (limit - head_length - len(ellipsis)) :]


def _exit_code_and_signal(returncode: int | None) -> tuple[int | None, str | None]:
    if returncode is None or returncode >= 0:
        return returncode, None
    try:
        return None, signal.Signals(-returncode).name
    except ValueError:  # a real-time signal
        return None, f"SIG{-returncode}"


def _not_started_result(argv: Sequence[str], cwd: Path, error: Exception, seconds: float) -> ProcessResult:
    name = argv[0] if argv else ""
    if not argv:
        reason = "the command is empty"
    elif not cwd.is_dir():
        reason = f"the directory {cwd} does not exist"
    elif isinstance(error, FileNotFoundError) and (cwd / name).is_file() and "/" in name:
        reason = f"the interpreter in the first line of {name} was not found"
    elif isinstance(error, FileNotFoundError):
        reason = f"{name} was not found"
    elif isinstance(error, PermissionError):
        reason = f"{name} is not executable"
    elif isinstance(error, OSError) and error.strerror:
        reason = f"{name}: {error.strerror}"
    else:
        reason = str(error)
    return ProcessResult.not_started(argv, reason, seconds)
