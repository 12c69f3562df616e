"""Where a run stops: breakpoints in front of sockets, watched paths of the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from materia_nb.engine.session import StepRecord
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.jsonvalue import MISSING, get_path, same, split_path
from materia_nb.loadout.graph import END, Graph

if TYPE_CHECKING:
    from materia_nb.cast.cast import Cast

Pause: TypeAlias = Literal[
    "complete", "failed", "aborted", "person", "breakpoint", "until", "steps", "stopped"
]
"""Why a run stopped."""

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
        self.sockets: dict[str, Callable[[Cast], bool] | None] = {}
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

    def hit(self, cast: Cast) -> bool:
        """Whether the socket that comes next has a breakpoint whose condition holds."""
        target = cast.next_socket if self.sockets else None
        if target is None or target not in self.sockets:
            return False
        condition = self.sockets[target]
        return condition is None or bool(condition(cast))

    def changed(self, step: StepRecord) -> list[str]:
        """Return the watched paths that a step changed."""
        before, after = dict(step.before.data), dict(step.after.data)
        return [
            path
            for path, segments in self.paths.items()
            if not _unchanged(get_path(before, segments), get_path(after, segments))
        ]


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
