"""Editable breakpoints of loadouts and casts, stored in files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from materia_nb.cast.breakpoint import (
    FILE,
    OUTPUT_KINDS,
    Breakpoint,
    BreakpointSet,
    OutputKind,
    condition_of,
    path_segments,
    read_breakpoints,
    write_breakpoints,
)
from materia_nb.cast.runner import Runner
from materia_nb.engine.state import Unit
from materia_nb.errors import MateriaError, needs_one_of
from materia_nb.loadout.graph import END, Graph, Socket

Pause: TypeAlias = Literal["complete", "failed", "aborted", "person", "breakpoint", "until", "steps", "stopped"]
"""The reason why a run stopped."""

OVER: Final[Mapping[str, Pause]] = {"complete": "complete", "failed": "failed", "aborted": "aborted"}
"""Reason why a run stops, by status; only statuses in which a cast does not continue by itself are included."""
BreakpointEdit: TypeAlias = Callable[[Sequence[Breakpoint]], Iterable[Breakpoint]]
"""A function that maps the stored breakpoints to the new breakpoints."""


class Breakpoints:
    """The breakpoints of a loadout in a workbench, or of one cast, with the file that stores them.

    Attributes:
        breakpoints: the breakpoints, in the order in which they were added.
        problem: the reason why the breakpoints could not be read or stored; empty after the reason was reported.
    """

    def __init__(self, path: Path | None = None, loadout: str = "") -> None:
        """Read the breakpoints of a loadout from the file at ``path``; start without breakpoints if there is no path."""
        self._path, self._loadout = path, loadout
        self.breakpoints, self.problem = ([], "") if path is None else read_breakpoints(path, loadout)
        self._refused = False

    def replace(self, breakpoints: Iterable[Breakpoint]) -> None:
        """Set all breakpoints, and store them if they changed."""
        before, self.breakpoints = self.breakpoints, list(breakpoints)
        if self._path is None or self.breakpoints == before:
            return
        try:
            write_breakpoints(self._path, self._loadout, self.breakpoints)
        except MateriaError as error:
            if not self._refused:
                self.problem = f"Breakpoints are lost when this kernel ends. {' '.join(str(error).split())}"
            self._refused = True


class EditableBreakpoints(BreakpointSet, ABC):
    """A set of :class:`~materia_nb.cast.breakpoint.Breakpoint` that can be changed."""

    def __init__(self, graph: Graph) -> None:
        """Create editable breakpoints for casts of ``graph``."""
        self._graph = graph

    def add(
        self,
        socket: str | None = None,
        condition: str | None = None,
        *,
        kind: OutputKind | None = None,
        edge: int | str | None = None,
        nth: int | None = None,
        lane: str | None = None,
    ) -> None:
        """Make runs stop before a socket, or at another event of the socket.

        Examples::

            cast.breakpoints.add("Socket-3")
            cast.breakpoints.add("Socket-3", kind="after", nth=3)
            cast.breakpoints.add("Socket-4", edge=2)
            cast.breakpoints.add("Socket-4", edge="end")
            cast.breakpoints.add(kind="refused")
            cast.breakpoints.add("Socket-4", "steps > 20", kind="not_satisfied")

        Args:
            socket: the socket; may be left out for events of outputs, which then apply to any socket.
            condition: stop only if this condition holds, such as ``state.score < 3``; see ``condition_of`` in
                ``materia_nb.cast.breakpoint``. To stop at a function of the cast, use ``cast.run(until=function)``.
            kind: stop ``after`` the socket; or when its output is ``refused``, before the repair turn; when it is
                ``not_satisfied``; when it is the ``same_again`` as for an earlier visit with the same item (R64); or
                when it is an ``empty_answer``: an accepted repair with much less content than the refused output (R64).
            edge: stop when this edge of the socket is taken: its number, from 1, or a target socket or ``end``.
                A loop that is skipped because its list is empty takes no edge.
            nth: stop only the n-th time in a cast, or in each lane; the condition does not affect the count.
            lane: stop only in the lane of this name.

        Raises:
            MateriaError: there is no such socket (``unknown_socket``), edge or kind, both an edge and a kind are given
                (``usage``), or the text is not a condition (``bad_condition``).
        """
        where = None if condition is None else str(condition)
        if where is not None:
            condition_of(where)
        breakpoint_ = self._condition_spec(socket, edge, kind)
        self._put(breakpoint_._replace(nth=_valid_nth(nth), lane=lane, where=where))

    def watch(self, path: str, *, nth: int | None = None) -> None:
        """Make runs stop after each step, or the n-th step, that changes, adds or removes the value at a path in the state.

        Raises:
            MateriaError: the path is empty (``bad_path``).
        """
        self._put(Breakpoint("changed", path=".".join(path_segments(path)), nth=_valid_nth(nth)))

    def every(self, amount: float, unit: Unit, socket: str | None = None) -> None:
        """Make runs stop each time that an amount of tokens, cost, time or turns has been used.

        Unlike the budget, which fails a cast, this is a soft limit: ``run`` continues past it. The usage of abandoned
        steps is included. Each lane is counted separately, and added to the cast after the lanes have joined::

            cast.breakpoints.every(20_000, "tokens")
            cast.breakpoints.every(0.5, "usd", socket="Socket-2")

        Args:
            amount: the amount, above 0.
            unit: ``tokens``, ``usd``, ``seconds`` of working time, or ``turns`` of agents; unreported usage is not
                counted (R56).
            socket: count the usage of this socket only; of the whole cast if left out.

        Raises:
            MateriaError: the amount or the unit is invalid (``usage``), or there is no such socket.
        """
        if unit not in get_args(Unit) or not 0 < amount < float("inf"):
            raise MateriaError(
                f"Runs cannot stop every {amount} {unit}.",
                hint=f"give a number above 0 and one of these units: {', '.join(get_args(Unit))}",
                kind="usage",
            )
        if socket is not None:
            self._graph.require_socket(socket)
        self._put(Breakpoint("every", socket, amount=amount, unit=unit))

    def clear(
        self,
        socket: str | None = None,
        path: str | None = None,
        *,
        kind: OutputKind | None = None,
        edge: int | str | None = None,
    ) -> None:
        """Remove all breakpoints of a socket or path, or the breakpoint that :meth:`add` makes with the same arguments.

        Without arguments, remove all breakpoints.
        """
        described = None if kind is None and edge is None else self._condition_spec(socket, edge, kind)
        watched = None if path is None else ".".join(path_segments(path))

        def is_removed(breakpoint_: Breakpoint) -> bool:
            if watched is not None and breakpoint_.path == watched:
                return True
            if described is not None:
                return breakpoint_.every_time._replace(lane=None) == described
            return path is None if socket is None else breakpoint_.socket == socket

        self.change(lambda stored: [breakpoint_ for breakpoint_ in stored if not is_removed(breakpoint_)])

    def remove(self, *removed: Breakpoint) -> None:
        """Remove all breakpoints that stop at the same events as the given breakpoints."""
        events = {breakpoint_.every_time for breakpoint_ in removed}
        self.change(lambda stored: [breakpoint_ for breakpoint_ in stored if breakpoint_.every_time not in events])

    def toggle(self, breakpoint_: Breakpoint) -> None:
        """Add a breakpoint, or remove it if it exists; raise the same errors as :meth:`put`."""
        if breakpoint_.every_time in {other.every_time for other in self}:
            self.remove(breakpoint_)
        else:
            self.put(breakpoint_)

    def put(self, breakpoint_: Breakpoint) -> None:
        """Add a breakpoint; replace the breakpoint for the same event, if any.

        Raises:
            MateriaError: the loadout has no such socket or edge.
        """
        self._require_place(breakpoint_)
        self._put(breakpoint_)

    def _put(self, breakpoint_: Breakpoint) -> None:
        event = breakpoint_.every_time
        self.change(lambda stored: [*(other for other in stored if other.every_time != event), breakpoint_])

    @abstractmethod
    def change(self, edit: BreakpointEdit) -> None:
        """Replace the stored breakpoints with the result of ``edit``."""

    def _condition_spec(self, socket: str | None, edge: int | str | None, kind: OutputKind | None) -> Breakpoint:
        """Return the breakpoint that the arguments of :meth:`add` describe."""
        if kind is not None and edge is not None:
            message = f"A breakpoint stops at one event, so it cannot have the kind {kind} and an edge."
            raise MateriaError(message, hint="add a breakpoint for each event", kind="usage")
        needs_one_of(kind or "after", OUTPUT_KINDS, f"The breakpoint kind {kind!r} does not exist.", "usage")
        breakpoint_ = Breakpoint(kind or ("before" if edge is None else "edge"), socket, edge)
        self._require_place(breakpoint_)
        return breakpoint_

    def _require_place(self, breakpoint_: Breakpoint) -> None:
        if breakpoint_.socket is not None:
            self._graph.require_socket(breakpoint_.socket)
            if breakpoint_.kind == "edge":
                _require_edge(self._graph, self._graph.sockets[breakpoint_.socket], breakpoint_.edge)
        elif breakpoint_.kind in ("before", "after", "edge"):
            raise MateriaError(
                "The socket of the breakpoint is missing.",
                hint="name the socket; only breakpoints on outputs can apply to every socket",
                kind="usage",
            )


class CastBreakpoints(EditableBreakpoints):
    """The breakpoints of one cast: ``cast.breakpoints``.

    A cast has the breakpoints that the workbench stores for its loadout. The first change creates a copy that belongs
    to the cast alone (R47) and is stored in the run directory.
    """

    def __init__(self, runner: Runner) -> None:
        """Create the breakpoints of the cast that ``runner`` runs; changes are reported to followers of the cast."""
        super().__init__(runner.rules.graph)
        self._runner = runner
        self._followed = Breakpoints()
        self._own: Breakpoints | None = None
        if (path := runner.files.path / FILE).exists():
            self._own = Breakpoints(path, self._graph.name)
            self._tell_problem()

    def follow(self, followed: Breakpoints) -> None:
        """Use the breakpoints of the workbench, unless the cast has its own breakpoints."""
        self._followed = followed
        self._tell_problem()

    def begin_as(self, other: CastBreakpoints) -> None:
        """Copy the breakpoints of another cast if it has its own; otherwise use the same workbench's breakpoints."""
        self.follow(other._followed)
        if other._own is not None:
            self.change(lambda _: other)

    @property
    def _all(self) -> Sequence[Breakpoint]:  # type: ignore[override]
        return (self._own or self._followed).breakpoints

    def reached(self, lane: str = "") -> bool:
        """Return True if the cast, or one of its lanes, has reached a breakpoint."""
        return bool(self._all) and bool(self._runner.snapshot().lane(lane).breakpoints_hit)

    def change(self, edit: BreakpointEdit, *, of_all: bool = False) -> None:
        """Change the breakpoints of this cast.

        If ``of_all`` is set, the change applies to all casts of the loadout; it has no effect unless this cast has its
        own breakpoints.
        """
        if self._own is None and not of_all:
            writable = self._runner.journal is not None
            self._own = Breakpoints(self._runner.files.path / FILE if writable else None, self._graph.name)
            self._own.breakpoints = list(self._followed.breakpoints)
        if self._own is not None:
            self._own.replace(edit(self._own.breakpoints))
        self._tell_problem()
        self._runner.followers.report_changes()

    def _tell_problem(self) -> None:
        for breakpoints in (self._followed, self._own):
            if breakpoints is not None and breakpoints.problem:
                self._runner.messages.append(breakpoints.problem)
                breakpoints.problem = ""


class LoadoutBreakpoints(EditableBreakpoints):
    """The breakpoints of all casts of a loadout: ``wb.breakpoints``, ``%materia break``.

    A change applies to the current cast and to casts without breakpoints of their own. A file of the project stores the
    breakpoints.
    """

    def __init__(self, breakpoints: Breakpoints, graph: Graph, current: CastBreakpoints | None) -> None:
        """Wrap the stored breakpoints; ``current`` has the breakpoints of the current cast, if it runs this loadout."""
        super().__init__(graph)
        self._stored, self._current = breakpoints, current

    @property
    def _all(self) -> Sequence[Breakpoint]:  # type: ignore[override]
        return self._stored.breakpoints

    def change(self, edit: BreakpointEdit) -> None:
        """Change the breakpoints of the loadout, and the breakpoints of the current cast if it has its own."""
        self._stored.replace(edit(self._stored.breakpoints))
        if self._current is not None:
            self._current.change(edit, of_all=True)


def _require_edge(graph: Graph, socket: Socket, edge: int | str | None) -> None:
    """Raise MateriaError (``unknown_edge``) if the socket does not have the given edge."""
    exits = [route.target for loop in graph.loops.values() for route in loop.routes if route.source == socket.id]
    targets = dict.fromkeys([*(edge_.to for edge_ in socket.edges), *exits, END])
    if edge in targets or (isinstance(edge, int) and 1 <= edge <= len(socket.edges)):
        return
    edges = [f"{number} to {edge_.to}" for number, edge_ in enumerate(socket.edges, 1)]
    raise MateriaError(
        f"{socket.id} has no edge {edge!r}.",
        hint=f"its edges: {', '.join(edges) or 'none'}; it can lead to {', '.join(targets)}",
        kind="unknown_edge",
    )


def _valid_nth(nth: int | None) -> int | None:
    if nth is not None and (type(nth) is not int or nth < 1):
        raise MateriaError(
            f"nth must be a whole number from 1, not {nth!r}.", hint="give a value such as nth=3", kind="usage"
        )
    return nth
