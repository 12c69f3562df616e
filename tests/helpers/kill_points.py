"""Kill processes at a chosen moment: before, during or after the n-th write of their main thread."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from typing import Any

import pytest

from materia_nb.store import journal, rundir

CALLS = (
    "materia_nb.store.files CastLock.__init__",
    "materia_nb.store.files CastLock.release",
    "materia_nb.store.journal Journal.repair_end",
    "materia_nb.store.rundir RunDir.write",
    "materia_nb.store.file_snapshots git",
)
"""Functions before and after which a process can be killed; a journal write can also be interrupted in its middle."""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

_reached: list[Callable[[str], None]] = []
"""Callbacks that count moments: one in a child process, and none in any other process."""


def moment(name: str) -> None:
    """Mark a moment at which a child process may be killed; it has no effect in other processes."""
    for reach in _reached:
        reach(name)


def run_until(act: Callable[..., Any], *args: Any, at: int | None = None, prefix: str = "") -> list[str]:
    """Run ``act`` in a forked child and return the names of the moments that it reached.

    The child kills itself at the moment with the index ``at``, counted among the moments whose names begin with ``prefix``.
    """
    read_end, write_end = os.pipe()
    child = multiprocessing.get_context("fork").Process(target=_run, args=(write_end, at, prefix, act, args))
    child.start()
    os.close(write_end)
    with os.fdopen(read_end) as lines:
        names = lines.read().splitlines()
    child.join(60)
    assert child.exitcode in (0, -signal.SIGKILL)
    assert (child.exitcode != 0) == (at is not None and at < sum(name.startswith(prefix) for name in names))
    return names


def spread(names: list[str], count: int, *, first: int = 0) -> Iterator[int]:
    """Yield the indices of at most ``count`` evenly spaced moments, beginning with ``first``."""
    moments = range(first, len(names))
    count = min(count, len(moments))
    return (moments[place * len(moments) // count] for place in range(count))


def lines_written(names: list[str]) -> int:
    """Return the number of lines that a child had written to journals."""
    return sum(int(name.split()[1]) for name in names if name.startswith("wrote "))


def _run(write_end: int, at: int | None, prefix: str, act: Callable[..., Any], args: tuple[Any, ...]) -> None:
    numbers, main = itertools.count(), threading.main_thread()

    def reach(name: str) -> None:
        if threading.current_thread() is main:
            os.write(write_end, f"{name}\n".encode())
            if name.startswith(prefix) and next(numbers) == at:
                os.kill(os.getpid(), signal.SIGKILL)

    gc.freeze()  # otherwise locks that the parent has dropped could be released here at any moment
    _reached[:] = [reach]
    rundir._WRITE_DELAY_S = 3_600  # otherwise a thread writes some of the files at an unpredictable moment
    for call in CALLS:
        module, path = call.split()
        *owners, name = path.split(".")
        owner: Any = import_module(module)
        for part in owners:
            owner = getattr(owner, part)
        setattr(owner, name, _watched(path, getattr(owner, name)))
    write_all = journal.write_all

    def write_in_two(handle: int, block: bytes) -> None:
        moment("before lines")
        for part in (block[: len(block) // 2], block[len(block) // 2 :]):
            write_all(handle, part)
            count = part.count(b"\n")
            moment(f"wrote {count} lines")

    journal.write_all = write_in_two  # type: ignore[assignment]
    act(*args)


def _watched(path: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        moment(f"before {path}")
        result = function(*args, **kwargs)
        moment(f"after {path}")
        return result

    return watched
