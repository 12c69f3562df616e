"""Editable breakpoints of a loadout or a cast, stored in files."""

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
    compile_condition,
    path_segments,
    read_breakpoints,
    write_breakpoints,
)
from materia_nb.cast.runner import Runner
from materia_nb.engine.state import Unit
from materia_nb.errors import MateriaError, needs_one_of, usage_error
from materia_nb.loadout.graph import END, Graph, Socket

Pause: TypeAlias = Literal["complete", "failed", "aborted", "person", "breakpoint", "until", "steps", "stopped"]
"""Reason why a run stopped."""

END_PAUSES: Final[Mapping[str, Pause]] = {"complete": "complete", "failed": "failed", "aborted": "aborted"}
"""Reason why a run stopped, for each status from which a cast cannot continue on its own."""
BreakpointEdit: TypeAlias = Callable[[Sequence[Breakpoint]], Iterable[Breakpoint]]
"""A function that receives the stored breakpoints and returns the breakpoints that replace them."""


class Breakpoints:
    """The breakpoints of a loadout or of a single cast, together with the file that stores them.

    Attributes:
        breakpoints: the breakpoints, in the order in which they were added.
        problem: the reason why the breakpoints could not be read or stored; "" if there was no problem, or if the
            problem has been reported.
    """

    def __init__(self, path: Path | None = None, loadout: str = "") -> None:
        """Read the breakpoints of the named loadout from the file at ``path``. Without a path, the set is empty."""
        self._path, self._loadout = path, loadout
        self.breakpoints, self.problem = ([], "") if path is None else read_breakpoints(path, loadout)
        self._refused = False

    def replace(self, breakpoints: Iterable[Breakpoint]) -> None:
        """Replace all breakpoints, and write them to the file if they have changed."""
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
    """A set of breakpoints that can be changed; see :class:`~materia_nb.cast.breakpoint.Breakpoint`."""

    _graph: Graph

    def __init__(self, graph: Graph) -> None:
        """Create a set of editable breakpoints for casts of ``graph``."""
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
        """Add a breakpoint that stops runs before a socket, when an edge is taken, or at a kind of output.

        Examples::

            cast.breakpoints.add("Socket-3")
            cast.breakpoints.add("Socket-3", kind="after", nth=3)
            cast.breakpoints.add("Socket-4", edge=2)
            cast.breakpoints.add("Socket-4", edge="end")
            cast.breakpoints.add(kind="refused")
            cast.breakpoints.add("Socket-4", "steps > 20", kind="not_satisfied")

        Args:
            socket: the id or name of the socket; with ``kind``, by default any socket.
            condition: a condition that must hold, such as ``state.score < 3``; see ``compile_condition`` in
                ``materia_nb.cast.breakpoint``. To stop when a Python function returns True, use
                ``cast.run(until=function)``.
            kind: the kind of output to stop at, instead of stopping before the socket: ``after`` for any output;
                ``refused`` for an output that needs a repair turn; ``not_satisfied``; ``same_again`` for an output that
                repeats an earlier one for the same item (R64); ``empty_answer`` for an accepted repair with much less
                content than the refused output (R64).
            edge: the edge to stop at when it is taken: its number, counting from 1, or the id of its target, or
                ``end``. A loop that is skipped because its list is empty takes no edge.
            nth: the occurrence in each cast or lane at which to stop; by default every occurrence. An occurrence counts
                even if the condition does not hold.
            lane: the name of the only lane in which to stop; by default every lane.

        Raises:
            MateriaError: the socket (``unknown_socket``), the edge (``unknown_edge``) or the kind does not exist, both
                an edge and a kind are set (``usage``), or the condition is invalid (``bad_condition``).
        """
        where = None if condition is None else str(condition)
        if where is not None:
            compile_condition(where)
        breakpoint_ = self._condition_spec(socket, edge, kind)
        self.put(breakpoint_._replace(nth=_check_nth(nth), lane=lane, where=where))

    def watch(self, path: str, *, nth: int | None = None) -> None:
        """Add a breakpoint that stops runs after each step that changes, adds or removes a value in the state.

        Args:
            path: the dotted path of the value, such as ``plan.approved``.
            nth: the number of the change at which to stop; by default every change.

        Raises:
            MateriaError: the path is empty (``bad_path``).
        """
        self.put(Breakpoint("changed", path=".".join(path_segments(path)), nth=_check_nth(nth)))

    def every(self, amount: float, unit: Unit, socket: str | None = None) -> None:
        """Add a breakpoint that stops runs each time that another amount of tokens, cost, time or turns has been used.

        Unlike the budget, which fails a cast, this is a soft limit: ``run`` continues past it. The usage of abandoned
        steps is included. Each lane counts its own usage, which is added to the usage of the cast after the lanes have
        joined::

            cast.breakpoints.every(20_000, "tokens")
            cast.breakpoints.every(0.5, "usd", socket="Socket-2")

        Args:
            amount: the amount between two stops; must be greater than 0.
            unit: ``tokens``, ``usd``, ``seconds`` of working time, or ``turns`` of agents. Usage that agents did not
                report is not counted (R56).
            socket: the id or name of the only socket whose usage is counted; by default the usage of the whole cast is counted.

        Raises:
            MateriaError: the amount or the unit is invalid (``usage``), or the socket does not exist
                (``unknown_socket``).
        """
        if unit not in get_args(Unit) or not 0 < amount < float("inf"):
            raise usage_error(
                f"A breakpoint cannot stop runs every {amount} {unit}.",
                f"use a number above 0 and one of these units: {', '.join(get_args(Unit))}",
            )
        if socket is not None:
            socket = self._graph.find_socket(socket)
        self.put(Breakpoint("every", socket, amount=amount, unit=unit))

    def clear(
        self,
        socket: str | None = None,
        path: str | None = None,
        *,
        kind: OutputKind | None = None,
        edge: int | str | None = None,
    ) -> None:
        """Remove all breakpoints of a socket or path. With ``kind`` or ``edge``, remove only those for this event.

        If there are no arguments, remove every breakpoint.
        """
        spec = None if kind is None and edge is None else self._condition_spec(socket, edge, kind)
        watched_path = None if path is None else ".".join(path_segments(path))
        if socket is not None and socket not in {breakpoint_.socket for breakpoint_ in self}:
            socket = self._graph.find_socket(socket)

        def is_removed(breakpoint_: Breakpoint) -> bool:
            if watched_path is not None and breakpoint_.path == watched_path:
                return True
            if spec is not None:
                return breakpoint_.event_key._replace(lane=None) == spec
            return path is None if socket is None else breakpoint_.socket == socket

        self.change(lambda stored: [breakpoint_ for breakpoint_ in stored if not is_removed(breakpoint_)])

    def remove(self, *removed: Breakpoint) -> None:
        """Remove every breakpoint that stops at the same event as one of the arguments."""
        events = {breakpoint_.event_key for breakpoint_ in removed}
        self.change(lambda stored: [breakpoint_ for breakpoint_ in stored if breakpoint_.event_key not in events])

    def toggle(self, breakpoint_: Breakpoint) -> None:
        """Remove the breakpoint for the same event, or add the given breakpoint if there is none."""
        if breakpoint_.event_key in {other.event_key for other in self}:
            self.remove(breakpoint_)
        else:
            self.put(breakpoint_)

    def put(self, breakpoint_: Breakpoint) -> None:
        """Add a breakpoint, and replace any existing breakpoint for the same event.

        Raises:
            MateriaError: the socket (``unknown_socket``) or the edge (``unknown_edge``) does not exist in the loadout.
        """
        self._require_place(breakpoint_)
        event = breakpoint_.event_key
        self.change(lambda stored: [*(other for other in stored if other.event_key != event), breakpoint_])

    @abstractmethod
    def change(self, edit: BreakpointEdit) -> None:
        """Replace the stored breakpoints with the breakpoints that ``edit`` returns."""

    def _condition_spec(self, socket: str | None, edge: int | str | None, kind: OutputKind | None) -> Breakpoint:
        """Return the breakpoint that the arguments of :meth:`add` describe, without ``nth``, ``lane`` and condition."""
        if kind is not None and edge is not None:
            message = f"A breakpoint stops at one event, so it cannot have the kind {kind} and an edge."
            raise usage_error(message, "add a breakpoint for each event")
        needs_one_of(kind or "after", OUTPUT_KINDS, f"The breakpoint kind {kind!r} does not exist.", "usage")
        id_ = None if socket is None else self._graph.find_socket(socket)
        breakpoint_ = Breakpoint(kind or ("before" if edge is None else "edge"), id_, edge)
        self._require_place(breakpoint_)
        return breakpoint_

    def _require_place(self, breakpoint_: Breakpoint) -> None:
        if breakpoint_.socket is not None:
            self._graph.find_socket(breakpoint_.socket)
            if breakpoint_.kind == "edge":
                _require_edge(self._graph, self._graph.sockets[breakpoint_.socket], breakpoint_.edge)
        elif breakpoint_.kind in ("before", "after", "edge"):
            raise usage_error(
                "The socket of the breakpoint is missing.",
                "name the socket; only breakpoints on outputs can apply to every socket",
            )


class CastBreakpoints(EditableBreakpoints):
    """The breakpoints of one cast, available as ``cast.breakpoints``.

    A cast uses the breakpoints that the workbench stores for its loadout. The first change creates a copy that belongs
    to this cast only (R47) and is stored in its run directory.
    """

    def __init__(self, runner: Runner) -> None:
        """Create the breakpoints of the cast that ``runner`` runs, and report changes to the followers of the cast."""
        super().__init__(runner.rules.graph)
        self._runner = runner
        self._followed = Breakpoints()
        self._own: Breakpoints | None = None
        if (path := runner.run_dir.path / FILE).exists():
            self._own = Breakpoints(path, self._graph.name)
            self._report_problem()

    def follow(self, followed: Breakpoints) -> None:
        """Set the workbench breakpoints that the cast uses while it has no copy of its own."""
        self._followed = followed
        self._report_problem()

    def copy_from(self, other: CastBreakpoints) -> None:
        """Copy the breakpoints of ``other``, or use the workbench's breakpoints if ``other`` has no copy of its own."""
        self.follow(other._followed)
        if other._own is not None:
            self.change(lambda _: other)

    @property
    def _all(self) -> Sequence[Breakpoint]:  # type: ignore[override]
        return (self._own or self._followed).breakpoints

    def reached(self, lane: str = "") -> bool:
        """Return True if a breakpoint has been reached in the named lane or, if ``lane`` is "", in the cast itself."""
        return bool(self._all) and bool(self._runner.snapshot().lane(lane).breakpoints_hit)

    def change(self, edit: BreakpointEdit, *, of_all: bool = False) -> None:
        """Change the breakpoints of this cast.

        Args:
            edit: a function that returns the new breakpoints.
            of_all: True if the change applies to all casts of the loadout. This method then changes the cast's own copy
                of the breakpoints if there is one, and does not create a copy.
        """
        if self._own is None and not of_all:
            writable = self._runner.journal is not None
            self._own = Breakpoints(self._runner.run_dir.path / FILE if writable else None, self._graph.name)
            self._own.breakpoints = list(self._followed.breakpoints)
        if self._own is not None:
            self._own.replace(edit(self._own.breakpoints))
        self._report_problem()
        self._runner.followers.report_changes()

    def _report_problem(self) -> None:
        for breakpoints in (self._followed, self._own):
            if breakpoints is not None and breakpoints.problem:
                self._runner.messages.append(breakpoints.problem)
                breakpoints.problem = ""


class LoadoutBreakpoints(EditableBreakpoints):
    """The breakpoints of all casts of a loadout, available as ``wb.breakpoints`` and ``%materia break``.

    A change applies to the current cast and to every cast that has no copy of its own. The breakpoints are stored in a
    file of the project.
    """

    def __init__(self, breakpoints: Breakpoints, graph: Graph, current: CastBreakpoints | None) -> None:
        """Create an editable view of stored breakpoints.

        Args:
            breakpoints: the stored breakpoints of the loadout.
            graph: the loadout.
            current: the breakpoints of the current cast; None if the current cast runs another loadout.
        """
        super().__init__(graph)
        self._stored, self._current = breakpoints, current

    @property
    def _all(self) -> Sequence[Breakpoint]:  # type: ignore[override]
        return self._stored.breakpoints

    def change(self, edit: BreakpointEdit) -> None:
        """Change the breakpoints of the loadout and the current cast's own copy, if it has one."""
        self._stored.replace(edit(self._stored.breakpoints))
        if self._current is not None:
            self._current.change(edit, of_all=True)


def _require_edge(graph: Graph, socket: Socket, edge: int | str | None) -> None:
    """Raise MateriaError (``unknown_edge``) if the socket has no such edge."""
    exits = [route.target for loop in graph.loops.values() for route in loop.routes if route.source == socket.id]
    targets = dict.fromkeys([*(edge_.to for edge_ in socket.edges), *exits, END])
    if edge in targets or (isinstance(edge, int) and 1 <= edge <= len(socket.edges)):
        return
    edges = [f"{number} to {graph.names[edge_.to]}" for number, edge_ in enumerate(socket.edges, 1)]
    raise MateriaError(
        f"{graph.names[socket.id]} has no edge {edge!r}.",
        hint=f"use the number of an edge ({', '.join(edges) or 'none'}) or a target ({', '.join(targets)})",
        kind="unknown_edge",
    )


def _check_nth(nth: int | None) -> int | None:
    if nth is not None and (type(nth) is not int or nth < 1):
        raise usage_error(f"`nth` must be a positive integer, not {nth!r}.", "use a value such as `nth=3`")
    return nth
