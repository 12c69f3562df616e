"""Running one command so that it can neither hang its caller nor leave anything behind (R23)."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from materia_nb import platform
from materia_nb.interrupts import HeldInterrupts
from materia_nb.utilities.group import ProcessGroup
from materia_nb.utilities.inplace import NOT_HERE, can_run_in_place, run_in_place

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
    code: int | None
    signal: str | None
    timed_out: bool
    stopped: bool
    started: bool
    start_error: str | None
    stdout: bytes
    stderr: bytes
    stdout_truncated: bool
    stderr_truncated: bool
    seconds: float
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
        return cls(
            argv=tuple(argv),
            code=None,
            signal=None,
            timed_out=False,
            stopped=False,
            started=False,
            start_error=reason,
            stdout=b"",
            stderr=b"",
            stdout_truncated=False,
            stderr_truncated=False,
            seconds=seconds,
        )


def run_process(
    argv: Sequence[str],
    *,
    stdin: bytes,
    cwd: Path,
    timeout_s: float | None,
    env: Mapping[str, str] | None = None,
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
        env: its environment; None to inherit this process's.
        keep_bytes: how much of stdout and of stderr to keep; the rest is read and dropped.
        keep_end: how many of the last bytes to keep of what comes after that.
        stop: ends the command when set, within a twentieth of a second.

    Raises:
        KeyboardInterrupt: when interrupted in the main thread, after the group has ended.
    """
    if not platform.PROCESSES:
        return _in_place(argv, stdin, cwd, env, (keep_bytes, keep_end))
    began = time.perf_counter()
    with HeldInterrupts(wake=True) as interrupts:
        try:
            child = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=env,
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
    return ProcessResult(
        argv=tuple(argv),
        code=code,
        signal=signal_name,
        timed_out=run.timed_out,
        stopped=run.stopped,
        started=True,
        start_error=None,
        stdout=run.stdout.kept,
        stderr=run.stderr.kept,
        stdout_truncated=run.stdout.truncated,
        stderr_truncated=run.stderr.truncated,
        seconds=time.perf_counter() - began,
        stdout_end=run.stdout.end,
        stderr_end=run.stderr.end,
        stdout_bytes=run.stdout.size,
        stderr_bytes=run.stderr.size,
    )


def _in_place(
    argv: Sequence[str], stdin: bytes, cwd: Path, env: Mapping[str, str] | None, keep: tuple[int, int]
) -> ProcessResult:
    if not can_run_in_place(argv):
        return ProcessResult.not_started(argv, NOT_HERE if argv else "the command is empty")
    began = time.perf_counter()
    try:
        ended = run_in_place(argv, stdin=stdin, cwd=cwd, env=env, keep=keep)
    except (OSError, ValueError) as error:
        return _not_started(argv, cwd, error, time.perf_counter() - began)
    return ProcessResult(
        argv=tuple(argv),
        code=ended.code,
        signal=None,
        timed_out=False,
        stopped=False,
        started=True,
        start_error=None,
        stdout=ended.stdout.kept,
        stderr=ended.stderr.kept,
        stdout_truncated=ended.stdout.size > keep[0],
        stderr_truncated=ended.stderr.size > keep[0],
        seconds=time.perf_counter() - began,
        stdout_end=ended.stdout.end,
        stderr_end=ended.stderr.end,
        stdout_bytes=ended.stdout.size,
        stderr_bytes=ended.stderr.size,
        in_place=True,
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
