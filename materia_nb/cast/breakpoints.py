"""Where a run stops: breakpoints in front of sockets, watched paths of the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from materia_nb.cast.runner import Runner
from materia_nb.cast.snapshot import Stops
from materia_nb.engine.session import StepRecord
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.jsonvalue import MISSING, get_path, same, split_path
from materia_nb.loadout.graph import END, Graph

Pause: TypeAlias = Literal[
    "complete", "failed", "aborted", "person", "breakpoint", "until", "steps", "stopped"
]
"""Why a run stopped."""

Condition: TypeAlias = Callable[[Any], bool]
"""Whether a run stops at a breakpoint: a function of the cast."""

OVER: Final[Mapping[str, Pause]] = {"complete": "complete", "failed": "failed", "aborted": "aborted"}
"""Why a run stops at a status in which nothing goes on."""


class Breakpoints:
    """Where runs stop: what the casts of one loadout share in a workbench, forked and resumed ones too.

    Attributes:
        sockets: those that runs stop in front of, each with its condition if it has one.
        paths: those in the state that stop a run when a step changes what is there.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.sockets: dict[str, Condition | None] = {}
        self.paths: dict[str, list[str]] = {}

    def take_over(self, other: Breakpoints) -> None:
        """Add those of another cast."""
        self.sockets.update(other.sockets)
        self.paths.update(other.paths)

    def on(self, path: str) -> None:
        """Stop behind a step that changes what stands at a dotted path; raises MateriaError (``bad_path``)."""
        segments = split_path(path.strip())
        if not segments:
            raise MateriaError("The path names nothing.", hint="such as plan.approved", kind="bad_path")
        self.paths[".".join(segments)] = segments

    def clear(self, socket: str | None = None, path: str | None = None) -> None:
        """Take a socket or a path away; without either, all of them."""
        if socket is None and path is None:
            self.sockets.clear()
            self.paths.clear()
        if socket is not None:
            self.sockets.pop(socket, None)
        if path is not None:
            self.paths.pop(".".join(split_path(path.strip())), None)

    def hit(self, target: str | None, cast: object) -> bool:
        """Whether the socket that comes next has a breakpoint whose condition, if it has one, holds for ``cast``."""
        if target is None or target not in self.sockets:
            return False
        condition = self.sockets[target]
        return condition is None or bool(condition(cast))

    def changed(self, steps: Sequence[StepRecord]) -> list[str]:
        """Return the watched paths that the latest step changed."""
        if not steps:
            return []
        step = steps[-1]
        before, after = dict(step.before.data), dict(step.after.data)
        return [
            path
            for path, segments in self.paths.items()
            if not _unchanged(get_path(before, segments), get_path(after, segments))
        ]


class CastBreakpoints(Stops):
    """Where the runs of one cast stop: ``cast.breakpoints``. Casts of one loadout in a workbench share them."""

    def __init__(self, shared: Breakpoints, runner: Runner) -> None:
        """Change ``shared`` for the cast that ``runner`` runs; its watchers are told."""
        self.shared = shared
        self._runner = runner

    def share(self, shared: Breakpoints) -> None:
        """Share where runs stop with other casts; what this one was told already is shared too."""
        if shared is not self.shared:
            shared.take_over(self.shared)
            self.shared = shared

    @property
    def sockets(self) -> Mapping[str, Condition | None]:
        """The sockets that runs stop in front of, each with its condition if it has one."""
        return self.shared.sockets

    @property
    def paths(self) -> Mapping[str, Sequence[str]]:
        """The paths in the state that stop a run when a step changes what is there."""
        return self.shared.paths

    @property
    def changed(self) -> list[str]:
        """The watched paths that the latest step changed."""
        return self.shared.changed(self._runner.session.steps)

    def add(self, socket: str, condition: Condition | None = None) -> None:
        """Make runs stop in front of ``socket``, whenever ``condition`` holds if one is given.

        Raises:
            MateriaError: there is no such socket (``unknown_socket``).
        """
        check_socket(self._runner.rules.graph, socket)
        self.shared.sockets[socket] = condition
        self._runner.tell()

    def watch(self, path: str) -> None:
        """Make runs stop after a step that changes what stands at a dotted path in the state.

        Appearing and going away are changes too.

        Raises:
            MateriaError: the path names nothing (``bad_path``).
        """
        self.shared.on(path)
        self._runner.tell()

    def clear(self, socket: str | None = None, path: str | None = None) -> None:
        """Take a breakpoint or a watched path away; without either, all of them."""
        self.shared.clear(socket, path)
        self._runner.tell()


def check_socket(graph: Graph, socket: str, *, also_end: bool = False) -> None:
    """Raise MateriaError (``unknown_socket``) when a loadout has no such socket."""
    if socket not in graph.sockets and not (also_end and socket == END):
        raise MateriaError(
            f"The loadout {graph.name!r} has no socket {socket!r}.",
            hint=did_you_mean(socket, graph.sockets),
            kind="unknown_socket",
        )


def _unchanged(before: object, after: object) -> bool:
    if before is MISSING or after is MISSING:
        return before is after
    return same(before, after)
