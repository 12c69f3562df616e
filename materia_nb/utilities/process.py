"""Running one command, and everything that it starts, so that it can neither hang its caller nor leave anything behind (R23).

Where no process can be started, a Python script runs in this very one. It reads stdin and writes stdout and stderr as it does
in a process of its own. Nobody can end it, so its time limit is not kept; and it can reach what this process holds, so only a
script that a person has chosen is run so.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import IO, Any, Final, Self

from materia_nb import platform
from materia_nb.platform import HeldInterrupts

_NOT_HERE: Final = "no programs can be started where this kernel runs, only Python scripts are run, inside it"
"""Why a command was not started."""

_PYTHON: Final = re.compile(r"python(3(\.\d+)?)?(\.exe)?")
_PLAIN_OPTIONS: Final = frozenset({"-B", "-E", "-I", "-P", "-S", "-s", "-u"})
_one_at_a_time: Final = threading.RLock()


class Written(io.RawIOBase):
    """What is written to an output, of a script or of a process: at most ``keep`` bytes, and of what follows the last ``keep_end``."""

    def __init__(self, keep: int, keep_end: int) -> None:
        self.size = 0
        self.end = b""
        self._kept = bytearray()
        self._room, self._keep_end = keep, keep_end

    def writable(self) -> bool:
        """Whether it takes bytes: it does."""
        return True

    def write(self, data: Any) -> int:
        """Take all of it."""
        found = bytes(data)
        self.size += len(found)
        if self._room:
            self._kept += found[: self._room]
        if len(found) > self._room and self._keep_end:
            self.end = (self.end + found[self._room :])[-self._keep_end :]
        self._room = max(0, self._room - len(found))
        return len(found)

    @property
    def kept(self) -> bytes:
        """The beginning."""
        return bytes(self._kept)

    @property
    def truncated(self) -> bool:
        """Whether there was more than the beginning that is kept."""
        return self.size > len(self._kept)


def _script(argv: Sequence[str]) -> tuple[str | None, list[str]] | None:
    """The code of ``-c``, None for a file, and the arguments as the script sees them; None if it is no such command."""
    if not argv or not (argv[0] == sys.executable or _PYTHON.fullmatch(PurePath(argv[0]).name)):
        return None
    rest = list(argv[1:])
    while rest and rest[0] in _PLAIN_OPTIONS:
        del rest[0]
    if len(rest) > 1 and rest[0] == "-c":
        return rest[1], ["-c", *rest[2:]]
    return (None, rest) if rest and not rest[0].startswith("-") else None


def _run(code: str | None, file: str) -> int:
    """Run it as ``__main__``; its exit code."""
    try:
        if code is None:
            runpy.run_path(file, run_name="__main__")
        else:
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})  # noqa: S102 - what the command says
    except SystemExit as asked:
        if asked.code is None or isinstance(asked.code, int):
            return (asked.code or 0) & 0xFF
        sys.stderr.write(f"{asked.code}\n")
        return 1
    except Exception:  # noqa: BLE001 - a script's own failure, told as Python tells it
        traceback.print_exc()
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    return 0


@contextlib.contextmanager
def _instead(
    arguments: list[str], stdin: bytes, outputs: tuple[Written, Written], cwd: Path
) -> Iterator[None]:
    """Let the process look to a script as if it were its own, and put everything back."""
    before_dir, before_env = Path.cwd(), dict(os.environ)
    before = {name: getattr(sys, name) for name in ("argv", "path", "stdin", "stdout", "stderr")}
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
        for name, value in before.items():
            setattr(sys, name, value)
        os.environ.clear()
        os.environ.update(before_env)
        os.chdir(before_dir)
        if main is not None:
            sys.modules["__main__"] = main
        for name in set(sys.modules) - modules:  # another script's helper may have the same name
            if folder and str(getattr(sys.modules[name], "__file__", None) or "").startswith(folder + os.sep):
                del sys.modules[name]


_KILL_AFTER_S: Final = 1.0
"""Seconds from SIGTERM to SIGKILL (R23)."""

_PIPE_GRACE_S: Final = 0.2  # for what is still in the pipes once the command itself has ended
_CHECK_S: Final = 0.05  # how often to look for an end, or a stop, that no pipe tells of
_SHORTEST_S: Final = 5e-5  # the first pause when an end is expected at any moment
_COLLECT_S: Final = 5.0  # how long to wait for a killed command to be gone
_CHUNK: Final = 65_536  # what a pipe holds


class _Output(Written):
    """One output pipe, and what is kept of it."""

    def __init__(self, pipe: IO[bytes], keep: int, keep_end: int) -> None:
        super().__init__(keep, keep_end)
        self.pipe = pipe

    def take(self) -> bool:
        """Take what is there; False at the end."""
        try:
            return bool(self.write(os.read(self.pipe.fileno(), _CHUNK)))
        except BlockingIOError:
            return True


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
                if not key.data.take():
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
        until, pause = time.monotonic() + _KILL_AFTER_S, _SHORTEST_S
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


KEEP_BYTES: Final = 1_048_576
"""How much of stdout and of stderr is kept (R23)."""

STDERR_SUMMARY: Final = 800
"""The longest summary of stderr in a message, in characters (R23)."""

_COMMAND_SHOWN: Final = 300
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a command ended.

    ``code`` is None when it was ended by ``signal`` (such as ``SIGKILL``) or never ran. ``stopped``
    says that its caller's stop event or an interrupt ended it. ``seconds`` is wall-clock time.
    ``stdout_end`` is the end of an output of which ``stdout`` is only the beginning, as far as it was
    to be kept; ``stdout_bytes`` is how long the whole was. The same for stderr. ``in_place`` says that it
    was run inside this process, where no time limit can be kept.
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
    stderr_end: bytes = b""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    in_place: bool = False

    @property
    def ok(self) -> bool:
        """Whether it ran to its own end and exited with 0."""
        return self.code == 0 and not self.timed_out and not self.stopped

    @property
    def ending(self) -> str:
        """How it ended, such as ``code 3`` or ``signal SIGKILL``."""
        return f"code {self.code}" if self.signal is None else f"signal {self.signal}"

    @property
    def command(self) -> str:
        """The command as one would type it, on one line and not too long."""
        return summarize(shlex.join(self.argv), _COMMAND_SHOWN)

    @property
    def stderr_summary(self) -> str:
        """The diagnostics on one line, at most :data:`STDERR_SUMMARY` characters."""
        return summarize(self.stderr.decode(errors="replace"), STDERR_SUMMARY)

    @classmethod
    def not_started(cls, argv: Sequence[str], reason: str, seconds: float = 0.0) -> Self:
        """Make the result of a command that never ran."""
        return cls(tuple(argv), started=False, start_error=reason, seconds=seconds)


def run_process(
    argv: Sequence[str],
    *,
    stdin: bytes,
    cwd: Path,
    timeout_s: float | None,
    keep_bytes: int = KEEP_BYTES,
    keep_end: int = 0,
    stop: threading.Event | None = None,
) -> ProcessResult:
    """Run a command without a shell, in a process group of its own, and wait for it (R23).

    Whatever the command does, this returns: it may write without end, read nothing, close its
    pipes, ignore SIGTERM or leave children that hold the pipes. When the command has ended, and
    on timeout, stop or interrupt, the whole group is ended with it (SIGTERM, one second later
    SIGKILL; what a command that ended by itself leaves behind gets SIGKILL). A process that moved
    itself to another group is out of reach. May be called from any thread.

    Where there are no processes, Python scripts are run in this one, without a time limit and not to be
    stopped; nothing else is started.

    Args:
        argv: the program and its arguments.
        stdin: written to the command, then its stdin is closed.
        cwd: the directory to run in.
        timeout_s: seconds until it is ended; None for no limit.
        keep_bytes: how much of stdout and of stderr to keep; the rest is read and dropped.
        keep_end: how many of the last bytes to keep of what comes after that.
        stop: ends the command when set, within a twentieth of a second.

    Raises:
        KeyboardInterrupt: when interrupted in the main thread, after the group has ended.
    """
    if not platform.PROCESSES:
        return _in_place(argv, stdin, cwd, (keep_bytes, keep_end))
    began = time.perf_counter()
    with HeldInterrupts.waking() as interrupts:
        try:
            child = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError, IndexError) as error:
            return _not_started(argv, cwd, error, time.perf_counter() - began)
        run = ProcessGroup(child, stdin, (keep_bytes, keep_end), interrupts, stop)
        try:
            run.until_end(timeout_s)
        finally:
            run.end_group()
    code, signal_name = _ending(child.returncode)
    ended = _ended(argv, began, code, run.stdout, run.stderr)
    return replace(ended, signal=signal_name, timed_out=run.timed_out, stopped=run.stopped)


def _in_place(argv: Sequence[str], stdin: bytes, cwd: Path, keep: tuple[int, int]) -> ProcessResult:
    """Run a command in this process, if it is Python with a script file or ``-c`` code."""
    found = _script(argv)
    if found is None:
        return ProcessResult.not_started(argv, _NOT_HERE if argv else "the command is empty")
    (code, arguments), began = found, time.perf_counter()
    stdout, stderr = Written(*keep), Written(*keep)
    try:
        with _one_at_a_time, _instead(arguments, stdin, (stdout, stderr), cwd):
            ended = _run(code, arguments[0])
    except (OSError, ValueError) as error:
        return _not_started(argv, cwd, error, time.perf_counter() - began)
    return replace(_ended(argv, began, ended, stdout, stderr), in_place=True)


def _ended(
    argv: Sequence[str], began: float, code: int | None, stdout: Written, stderr: Written
) -> ProcessResult:
    return ProcessResult(
        argv=tuple(argv),
        code=code,
        stdout=stdout.kept,
        stderr=stderr.kept,
        stdout_truncated=stdout.truncated,
        stderr_truncated=stderr.truncated,
        seconds=time.perf_counter() - began,
        stdout_end=stdout.end,
        stderr_end=stderr.end,
        stdout_bytes=stdout.size,
        stderr_bytes=stderr.size,
    )


def summarize(text: str, limit: int) -> str:
    """Bring text of a process onto one line of at most ``limit`` characters.

    Terminal escapes and control characters go, white space is collapsed, and of a long text the
    beginning and, as it says most, the end are kept.
    """
    plain = _ESCAPES.sub("", text)
    line = " ".join("".join(c if c.isprintable() else " " for c in plain).split())
    if len(line) <= limit:
        return line
    gap = " … "
    head = limit * 3 // 8
    return line[:head] + gap + line[len(line) - (limit - head - len(gap)) :]


def _ending(returncode: int | None) -> tuple[int | None, str | None]:
    if returncode is None or returncode >= 0:
        return returncode, None
    try:
        return None, signal.Signals(-returncode).name
    except ValueError:  # a real-time signal
        return None, f"SIG{-returncode}"


def _not_started(argv: Sequence[str], cwd: Path, error: Exception, seconds: float) -> ProcessResult:
    name = argv[0] if argv else ""
    if not argv:
        reason = "the command is empty"
    elif not cwd.is_dir():
        reason = f"there is no directory {cwd} to run in"
    elif isinstance(error, FileNotFoundError) and (cwd / name).is_file() and "/" in name:
        reason = f"the program that the first line of {name} names was not found"
    elif isinstance(error, FileNotFoundError):
        reason = f"{name} was not found"
    elif isinstance(error, PermissionError):
        reason = f"{name} may not be run (is it executable?)"
    elif isinstance(error, OSError) and error.strerror:
        reason = f"{name}: {error.strerror}"
    else:
        reason = str(error)
    return ProcessResult.not_started(argv, reason, seconds)
