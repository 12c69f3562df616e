"""One writer a cast: a lock that a dying process lets go of by itself, with its owner shown."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from materia_nb.errors import MateriaError
from materia_nb.interrupts import HeldInterrupts
from materia_nb.platform import file_is_locked, lock_file, unlock_file
from materia_nb.store.files import disk, open_plain

_NAME: Final = "cast.lock"
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
_TRIES: Final = 10  # whoever lists the casts looks at a lock for an instant, see lock_owner
_PAUSE_S: Final = 0.002


class CastLock:
    """Holds ``cast.lock`` of a run directory until released or until the process ends."""

    def __init__(self, run_dir: Path) -> None:
        """Take the lock; raises MateriaError (kind ``locked``) naming the owner when another has it."""
        self.path = run_dir / _NAME
        self._process = os.getpid()
        self._handle = -1
        with HeldInterrupts():
            with disk(self.path, "open the lock of the cast"):
                self._handle = open_plain(self.path, _OPEN)
            try:
                with disk(self.path, "lock the cast"):
                    _take(self._handle, self.path, run_dir)
                    os.ftruncate(self._handle, 0)
                    os.pwrite(self._handle, _myself(), 0)
            except BaseException:
                self.release()
                raise

    def __del__(self) -> None:
        """Let go also where an interrupt came before anybody had the lock to release."""
        self.release()

    def release(self) -> None:
        """Let go of the lock; the file stays, since removing it would race with the next owner."""
        handle, self._handle = self._handle, -1
        if handle < 0:
            return
        if os.getpid() == self._process:
            # Closing is not enough while a forked child holds a copy of the handle; and a child
            # that lets go of its copy must not unlock what its parent still writes.
            with contextlib.suppress(OSError):
                unlock_file(handle)
        os.close(handle)


@contextlib.contextmanager
def locked(path: Path, doing: str) -> Iterator[None]:
    """Hold the lock file ``path`` alone among all processes and threads, waiting for it; ``doing`` is for the error."""
    with disk(path, doing):
        path.parent.mkdir(parents=True, exist_ok=True)
        with HeldInterrupts():
            file = os.fdopen(open_plain(path, _OPEN), "r+b", buffering=0)
    with file:
        with disk(path, doing):
            lock_file(file.fileno(), path, wait=True)
        try:
            yield
        finally:
            unlock_file(file.fileno())


def lock_owner(run_dir: Path) -> str | None:
    """Say who is writing a cast, None when nobody is. The lock is not kept."""
    path = run_dir / _NAME
    with HeldInterrupts():
        try:
            handle = open_plain(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            return _owner(handle) if file_is_locked(handle, path) else None
        except OSError:
            return None
        finally:
            os.close(handle)


def _take(handle: int, path: Path, run_dir: Path) -> None:
    for left in reversed(range(_TRIES)):
        if lock_file(handle, path):
            return
        if left:
            time.sleep(_PAUSE_S)
    raise MateriaError(
        f"This cast is being written by {_owner(handle)}.",
        where=str(run_dir),
        hint="go on there, shut that kernel down, or open the cast here read-only (open)",
        kind="locked",
    )


def _myself() -> bytes:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}).encode()


def _owner(handle: int) -> str:
    try:
        owner = json.loads(os.pread(handle, 4096, 0))
        if owner["pid"] == os.getpid():
            return "this very kernel, through a cast that is open here"
        return f"process {owner['pid']} on {owner['host']} since {owner['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
