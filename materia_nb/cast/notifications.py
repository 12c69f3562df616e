"""Notifications that are sent when a long run of a cast ends or stops."""

from __future__ import annotations

import json
import logging
import shlex
import subprocess
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from materia_nb.cast.cast_breakpoints import Pause
from materia_nb.cast.snapshot import Snapshot
from materia_nb.cast.views.status import status_lines
from materia_nb.errors import MateriaError, outgoing_line

DEFAULT_MIN_S: Final = 60
_TIMEOUT_S: Final = 10.0
_MAX_LINES: Final = 2
_SCHEMES: Final = ("http://", "https://")
_LOG: Final = logging.getLogger("materia_nb.notifications")

Receiver: TypeAlias = str | Sequence[str] | Callable[[dict[str, str]], object]
"""A URL, a command as a string or a list, or a function that is called with the notification."""


class Notifier:
    """Sends a notification when a long run of a cast ends, fails, or waits for a person."""

    def __init__(self) -> None:
        self._receiver: Receiver | None = None
        self._min_s: float = DEFAULT_MIN_S

    def configure(self, receiver: Receiver | None, min_s: float) -> None:
        """Set the receiver and the minimum duration of a run, in seconds. None stops the notifications.

        Raises:
            MateriaError: the receiver is empty or not a URL, a command or a function (``bad_receiver``).
        """
        if isinstance(receiver, str) and not receiver.startswith(_SCHEMES):
            try:
                receiver = shlex.split(receiver)
            except ValueError as error:
                message = f"The command {receiver!r} cannot be read: {error}."
                raise MateriaError(message, hint="close each quotation mark", kind="bad_receiver") from None
        is_command = (
            isinstance(receiver, (list, tuple)) and receiver and all(isinstance(part, str) for part in receiver)
        )
        if not (receiver is None or callable(receiver) or isinstance(receiver, str) or is_command):
            hint = "pass an http or https URL, a command such as 'notify-send Materia', or a function"
            raise MateriaError(f"{receiver!r} cannot receive notifications.", hint=hint, kind="bad_receiver")
        self._receiver, self._min_s = receiver, min_s

    def run_stopped(self, cast: Snapshot, pause: Pause, seconds: float) -> None:
        """Send a notification if the run was long. A failure to send is logged, and never stops the cast."""
        if self._receiver is None or seconds < self._min_s or pause == "stopped":
            return
        message = ". ".join(outgoing_line(line) for line in status_lines(cast, pause)[:_MAX_LINES])
        notification = {"cast": cast.id, "loadout": cast.graph.name, "reason": pause, "message": message}
        try:
            _send(self._receiver, notification, cast.project)
        except Exception as error:  # noqa: BLE001 - a receiver may raise anything
            _LOG.warning("The notification was not sent: %s", outgoing_line(error))


def _send(receiver: Receiver, notification: dict[str, str], project: Path) -> None:
    """Call a function, post the notification as JSON to a URL, or run a command in the project directory.

    The command gets the message as its last argument and the notification as JSON on stdin.
    """
    body = json.dumps(notification).encode()
    if callable(receiver):
        receiver(notification)
    elif isinstance(receiver, str):
        request = urllib.request.Request(receiver, body, {"Content-Type": "application/json"})  # noqa: S310
        urllib.request.urlopen(request, timeout=_TIMEOUT_S).close()  # noqa: S310 - ``configure`` checks the scheme
    else:
        subprocess.run([*receiver, notification["message"]], input=body, cwd=project, timeout=_TIMEOUT_S, check=True)
