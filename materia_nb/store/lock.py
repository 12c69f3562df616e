"""One writer a cast: a lock that a dying process lets go of by itself, with its owner shown."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path

from materia_nb.errors import MateriaError
from materia_nb.store.files import disk


class CastLock:
    """Holds ``cast.lock`` of a run directory until released or until the process ends."""

    def __init__(self, run_dir: Path) -> None:
        """Take the lock; raises MateriaError (kind ``locked``) naming the owner when another has it."""
        self.path = run_dir / "cast.lock"
        with disk(self.path, "open the lock of the cast"):
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = _owner(self._handle)
            os.close(self._handle)
            self._handle = -1
            raise MateriaError(
                f"This cast is being written by {owner}.",
                where=str(run_dir),
                hint="go on there, shut that kernel down, or open the cast here read-only (open)",
                kind="locked",
            ) from None
        with disk(self.path, "write the lock of the cast"):
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, _myself(), 0)

    def release(self) -> None:
        """Let go of the lock; the file stays, since removing it would race with the next owner."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _myself() -> bytes:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}).encode()


def _owner(handle: int) -> str:
    try:
        owner = json.loads(os.pread(handle, 4096, 0))
        if owner["pid"] == os.getpid():
            return "this very kernel, through another cast object"
        return f"process {owner['pid']} on {owner['host']} since {owner['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
