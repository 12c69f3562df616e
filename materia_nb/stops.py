"""Where a run stops: breakpoints in front of sockets, watched paths of the state, limits of one run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self, TypeAlias

from materia_nb.engine.state import Status
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.jsonvalue import MISSING, get_path, same, split_path
from materia_nb.loadout.graph import END
from materia_nb.looks import Looks

Pause: TypeAlias = Literal[
    "complete", "failed", "aborted", "person", "breakpoint", "until", "steps", "stopped"
]
"""Why a run stopped."""

_OVER: Final[Mapping[Status, Pause]] = {"complete": "complete", "failed": "failed", "aborted": "aborted"}

_LOOK_AGAIN_S: Final = 0.002


@dataclass(frozen=True, slots=True)
class Stopping:
    """Where runs stop: what the casts of one loadout share in a workbench, forked and resumed ones too.

    Attributes:
        breakpoints: the sockets that runs stop in front of, each with its condition if it has one.
        watchpoints: the paths in the state that stop a run when a step changes what is there.
    """

    breakpoints: dict[str, Callable[[Any], bool] | None] = field(default_factory=dict)
    watchpoints: dict[str, list[str]] = field(default_factory=dict)


class Stops(Looks):
    """The part of a cast that knows where runs stop; ``Cast`` is the class to use.

    Attributes:
        stop: set it to stop a run after, or if it can be stopped within, the step that runs.
    """

    _stopping: Stopping
    stop: threading.Event
    _writer: threading.Lock
    _holder: int

    @property
    def breakpoints(self) -> dict[str, Callable[[Any], bool] | None]:
        """The sockets that runs stop in front of, each with its condition if it has one."""
        return self._stopping.breakpoints

    @property
    def watchpoints(self) -> dict[str, list[str]]:
        """The paths in the state that stop a run when a step changes what is there."""
        return self._stopping.watchpoints

    def stops_as(self, shared: Stopping) -> None:
        """Share where runs stop with other casts; what this one was told already is shared too."""
        if shared is not self._stopping:
            shared.breakpoints.update(self._stopping.breakpoints)
            shared.watchpoints.update(self._stopping.watchpoints)
            self._stopping = shared

    def break_at(self, socket: str, condition: Callable[[Self], bool] | None = None) -> None:
        """Make runs stop in front of ``socket``, whenever ``condition`` holds if one is given.

        Raises:
            MateriaError: there is no such socket (``unknown_socket``).
        """
        self._known(socket)
        self.breakpoints[socket] = condition
        self._told()

    def break_on(self, path: str) -> None:
        """Make runs stop after a step that changes what stands at a dotted path in the state.

        Appearing and going away are changes too.

        Raises:
            MateriaError: the path names nothing (``bad_path``).
        """
        segments = split_path(path.strip())
        if not segments:
            raise MateriaError("The path names nothing.", hint="such as plan.approved", kind="bad_path")
        self.watchpoints[".".join(segments)] = segments
        self._told()

    def clear_breaks(self, socket: str | None = None, path: str | None = None) -> None:
        """Take a breakpoint or a watched path away; without either, all of them."""
        if socket is None and path is None:
            self.breakpoints.clear()
            self.watchpoints.clear()
        if socket is not None:
            self.breakpoints.pop(socket, None)
        if path is not None:
            self.watchpoints.pop(".".join(split_path(path.strip())), None)
        self._told()

    def busy(self, wait: float = 0.0) -> bool:
        """Whether a step or an edit is being made, by whichever thread, still after ``wait`` seconds."""
        until = time.monotonic() + (wait if self._holder != threading.get_ident() else 0.0)
        while self._writer.locked():
            if time.monotonic() >= until:
                return True
            time.sleep(_LOOK_AGAIN_S)  # taking the lock to wait for it would make it look busy to others
        return False

    def changed_paths(self) -> list[str]:
        """Return the watched paths that the latest step changed."""
        if not self.steps:
            return []
        before, after = dict(self.steps[-1].before.data), dict(self.steps[-1].after.data)
        return [
            path
            for path, segments in self.watchpoints.items()
            if not _unchanged(get_path(before, segments), get_path(after, segments))
        ]

    def _pause(
        self, until: str | Callable[[Self], bool] | None, steps: int | None, taken: int
    ) -> Pause | None:
        """Whether a run that has taken so many steps stops here, and why."""
        status = self.now.status
        if status in _OVER:
            return _OVER[status]
        if self.stop.is_set():
            return "stopped"
        if (status == "waiting" and taken) or status == "held":
            return "person"
        if steps is not None and taken >= steps:
            return "steps"
        if taken and (self._breaks() or self.changed_paths()):
            return "breakpoint"
        if callable(until):
            there = until(self)
        else:
            there = taken > 0 and until is not None and self._upcoming() == until
        return "until" if there else None

    def _breaks(self: Self) -> bool:
        target = self._upcoming() if self.breakpoints else None
        if target is None or target not in self.breakpoints:
            return False
        condition = self.breakpoints[target]
        return condition is None or bool(condition(self))

    def _known(self, socket: str, *, also_end: bool = False) -> None:
        if socket not in self.graph.sockets and not (also_end and socket == END):
            raise MateriaError(
                f"The loadout {self.graph.name!r} has no socket {socket!r}.",
                hint=did_you_mean(socket, self.graph.sockets),
                kind="unknown_socket",
            )

    def _told(self: Self) -> None:
        """Tell the watchers that something changed; one that raises is not called again."""
        for watcher in tuple(self._watchers):
            try:
                watcher(self)
            except Exception as error:  # noqa: BLE001 - a view must not break the cast
                if watcher in self._watchers:
                    self._watchers.remove(watcher)
                told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                self.messages.append(f"A view stopped following the cast: {told}")


def _unchanged(before: object, after: object) -> bool:
    if before is MISSING or after is MISSING:
        return before is after
    return same(before, after)
