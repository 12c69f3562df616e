"""Running a Python script in this very process, where no other can be started (R23).

The script reads stdin and writes stdout and stderr as it does in a process of its own. Nobody can end it, so its time
limit is not kept; and it can reach what this process holds, so only a script that a person has chosen is run so.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple

NOT_HERE: Final = "no programs can be started where this kernel runs, only Python scripts are run, inside it"
"""Why a command was not started."""

_PYTHON: Final = re.compile(r"python(3(\.\d+)?)?(\.exe)?")
_PLAIN_OPTIONS: Final = frozenset({"-B", "-E", "-I", "-P", "-S", "-s", "-u"})
_one_at_a_time: Final = threading.RLock()


class Ended(NamedTuple):
    """How a script ended: its exit code, and what it wrote, the beginning and as much as is to be kept of the end."""

    code: int
    stdout: Written
    stderr: Written


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


def can_run_in_place(argv: Sequence[str]) -> bool:
    """Whether a command is Python with a script file or ``-c`` code, so that it can be run without a process."""
    return _script(argv) is not None


def run_in_place(
    argv: Sequence[str],
    *,
    stdin: bytes,
    cwd: Path,
    keep: tuple[int, int],
) -> Ended:
    """Run a command for which :func:`can_run_in_place` says yes, and return when it has ended.

    Args:
        argv: the command.
        stdin: what the script reads.
        cwd: the directory to run in.
        keep: how many bytes of each output to keep from its beginning, and of the rest from its end.

    Raises:
        KeyboardInterrupt: it was interrupted.
        OSError: there is no such directory or script.
    """
    found = _script(argv)
    if found is None:
        raise OSError(NOT_HERE)
    code, arguments = found
    stdout, stderr = Written(*keep), Written(*keep)
    with _one_at_a_time, _instead(arguments, stdin, (stdout, stderr), cwd):
        return Ended(_run(code, arguments[0]), stdout, stderr)


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
