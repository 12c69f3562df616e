"""Writes what follows from the journal, beside the way of the steps (R30, R43)."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final

from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session
from materia_nb.platform import Handle, call_later
from materia_nb.store import derived
from materia_nb.store.files import DiskError
from materia_nb.store.rundir import RunDir

_SOON_S: Final = 0.5


class ArtifactWriter:
    """Writes the artifacts of one cast: all when it pauses, those of finished steps soon after them.

    A session is a frozen value, so a thread of its own can write what follows from it while the cast goes on.
    """

    def __init__(self, files: RunDir, rules: Rules) -> None:
        self._files, self._rules = files, rules
        self._lock = threading.Lock()
        self._since = 0
        self._session: Session | None = None
        self._timer: Handle | None = None

    def soon(self, session: Session) -> None:
        """Write the steps of ``session`` within a second."""
        self._session = session
        if self._timer is None:
            self._timer = call_later(_SOON_S, self._write_steps)

    def now(self, session: Session) -> None:
        """Write everything that follows from ``session``, manifest and usage too."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        with self._lock:
            self._since = derived.write(self._files, self._rules, session, self._since)

    def _write_steps(self) -> None:
        self._timer, session = None, self._session
        if session is not None:
            # A disk that refuses is told when the cast pauses, and everything is written then.
            with self._lock, suppress(DiskError):
                self._since = derived.write_steps(self._files, self._rules, session.steps, self._since)

    def stop(self) -> None:
        """Write nothing more."""
        if self._timer is not None:
            self._timer.cancel()
