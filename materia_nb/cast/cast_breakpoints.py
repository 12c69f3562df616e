"""Where the runs of casts stop: the breakpoints of a loadout in its project, and those of one cast; files keep both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

from materia_nb.cast.breakpoint import (
    FILE,
    BreakKind,
    Breakpoint,
    BreakpointSet,
    StopCondition,
    condition_of,
    read_breakpoints,
    write_breakpoints,
)
from materia_nb.cast.runner import Runner
from materia_nb.engine.state import Unit
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import split_path
from materia_nb.loadout.graph import END, Graph, Socket

Pause: TypeAlias = Literal["complete", "failed", "aborted", "person", "breakpoint", "until", "steps", "stopped"]
"""Why a run stopped."""

OVER: Final[Mapping[str, Pause]] = {"complete": "complete", "failed": "failed", "aborted": "aborted"}
"""Why a run stops at a status in which nothing goes on."""


_SAID: Final[tuple[BreakKind, ...]] = ("after", "refused", "not_satisfied", "same_again", "hollow_answer")


class Breakpoints:
    """The breakpoints of a loadout in a workbench, or of one cast; a file keeps them over kernels.

    Attributes:
        conditions: the breakpoints, each with its condition if it has one.
        problem: why they were not read, or are not kept, until somebody was told.
    """

    def __init__(self, path: Path | None = None, loadout: str = "") -> None:
        """Begin with those that the file at ``path`` keeps for a loadout; without a path, with none."""
        self._path, self._loadout = path, loadout
        self.conditions: dict[Breakpoint, StopCondition | None] = {}
        self.problem = ""
        self._refused = False
        if path is not None:
            saved, self.problem = read_breakpoints(path, loadout)
            self.conditions = dict.fromkeys(saved)

    def put(self, added: Mapping[Breakpoint, StopCondition | None]) -> None:
        """Add some; each takes the place of the one that stops there already, whatever time it was for."""
        replaced = {breakpoint_.every_time for breakpoint_ in added}
        self.replace(
            {
                **{
                    breakpoint_: how
                    for breakpoint_, how in self.conditions.items()
                    if breakpoint_.every_time not in replaced
                },
                **added,
            }
        )

    def remove(self, those: Iterable[Breakpoint]) -> None:
        """Take some away, whatever time they are for."""
        removed = {breakpoint_.every_time for breakpoint_ in those}
        self.replace(
            {breakpoint_: how for breakpoint_, how in self.conditions.items() if breakpoint_.every_time not in removed}
        )

    def replace(self, after: Mapping[Breakpoint, StopCondition | None]) -> None:
        """Have these and no others."""
        before, self.conditions = self.conditions, dict(after)
        saved, was = ([breakpoint_ for breakpoint_, how in now.items() if how is None] for now in (after, before))
        if self._path is None or saved == was:
            return
        try:
            write_breakpoints(self._path, self._loadout, saved)
        except MateriaError as error:
            if not self._refused:
                self.problem = f"Breakpoints last as long as this kernel only. {' '.join(str(error).split())}"
            self._refused = True


class Settable(BreakpointSet):
    """Breakpoints that can be added and taken away. Iterating gives each :class:`~materia_nb.cast.breakpoint.Breakpoint`."""

    def __init__(self, graph: Graph) -> None:
        """Stop casts of ``graph``."""
        super().__init__()
        self._graph = graph

    def add(  # noqa: PLR0913 - one argument for each thing to stop at
        self,
        socket: str | None = None,
        condition: StopCondition | str | None = None,
        *,
        after: bool = False,
        edge: int | str | None = None,
        refused: bool = False,
        not_satisfied: bool = False,
        same_again: bool = False,
        hollow_answer: bool = False,
        nth: int | None = None,
        lane: str | None = None,
    ) -> None:
        """Make runs stop at a socket: in front of it, unless it is said where else.

        Such as::

            cast.breakpoints.add("Socket-3")
            cast.breakpoints.add("Socket-3", after=True, nth=3)
            cast.breakpoints.add("Socket-4", edge=2)
            cast.breakpoints.add("Socket-4", edge="end")
            cast.breakpoints.add(refused=True)
            cast.breakpoints.add("Socket-4", lambda cast: len(cast.steps) > 20, not_satisfied=True)

        Args:
            socket: which; may be left out for an output of any socket that is refused or not satisfied.
            condition: runs stop only where it holds: a text such as ``state.score < 3``, which is kept (see
                ``condition_of`` in ``materia_nb.cast.breakpoint``), or a function of the cast, which is gone with this kernel.
            after: behind the socket.
            edge: when this way out of it is taken: an edge by its number, from 1, or all ways to a socket or ``end``.
                A loop that is skipped because its list is empty takes none.
            refused: when its output is refused, before the repair turn.
            not_satisfied: when it says that it is not satisfied, with an item or whatever else it judges.
            same_again: when it says what it said in an earlier visit for the same item (R64).
            hollow_answer: when it is taken after a refusal and says far less than the refused answer did (R64).
            nth: only the n-th time in a cast, or in each lane, counted from its start, whatever the condition said before.
            lane: only in the lane of this name.

        Raises:
            MateriaError: there is no such socket (``unknown_socket``) or way, more than one place is meant (``usage``), or the
                text is not a condition (``bad_condition``).
        """
        where = condition if isinstance(condition, str) else None
        if where is not None:
            condition_of(where)
        breakpoint_ = self._meant(socket, edge, (after, refused, not_satisfied, same_again, hollow_answer))
        breakpoint_ = breakpoint_._replace(nth=_checked(nth), lane=lane, where=where)
        self._put(breakpoint_, None if isinstance(condition, str) else condition)

    def watch(self, path: str, *, nth: int | None = None) -> None:
        """Make runs stop after a step, or the n-th step, that changes what stands at a dotted path in the state.

        Appearing and going away are changes too.

        Raises:
            MateriaError: the path names nothing (``bad_path``).
        """
        self._put(Breakpoint("changed", path=_path(path), nth=_checked(nth)))

    def every(self, amount: float, unit: Unit, socket: str | None = None) -> None:
        """Make runs stop, to be asked, behind the step with which so much is used, and again each time that so much more is.

        Unlike the budget, which fails a cast, this is a soft limit: ``run`` goes on past it. What going back left behind
        counts. A lane counts by itself, and with the whole cast once the lanes have come together. Such as::

            cast.breakpoints.every(20_000, "tokens")
            cast.breakpoints.every(0.5, "usd", socket="Socket-2")

        Args:
            amount: how much.
            unit: ``tokens``, ``usd``, ``seconds`` at work, or ``turns`` of agents; what nobody reported is not counted (R56).
            socket: count what this one uses; all of the cast if left out.

        Raises:
            MateriaError: the amount or the unit is none (``usage``), or there is no such socket.
        """
        if unit not in get_args(Unit) or not 0 < amount < float("inf"):
            raise MateriaError(
                f"Runs cannot stop every {amount} {unit}.",
                hint=f"give a number above 0, and one of {', '.join(get_args(Unit))}",
                kind="usage",
            )
        if socket is not None:
            self._graph.needs_socket(socket)
        self._put(Breakpoint("every", socket, amount=amount, unit=unit))

    def clear(
        self,
        socket: str | None = None,
        path: str | None = None,
        *,
        after: bool = False,
        edge: int | str | None = None,
        refused: bool = False,
        not_satisfied: bool = False,
        same_again: bool = False,
        hollow_answer: bool = False,
    ) -> None:
        """Take breakpoints away: all of a socket, a watched path, or the one that :meth:`add` makes of the same.

        Without anything, all of them.
        """
        flags = (after, refused, not_satisfied, same_again, hollow_answer)
        if any(flags) or edge is not None:
            meant = self._meant(socket, edge, flags)
            removed = [breakpoint_ for breakpoint_ in self if breakpoint_.every_time._replace(lane=None) == meant]
        elif socket is None and path is None:
            removed = list(self)
        else:
            removed = [breakpoint_ for breakpoint_ in self if socket is not None and breakpoint_.socket == socket]
        if path is not None:
            removed.append(Breakpoint("changed", path=_path(path)))
        self.remove(*removed)

    def remove(self, *those: Breakpoint) -> None:
        """Take away breakpoints, as iterating gives them."""
        raise NotImplementedError

    def toggle(self, breakpoint_: Breakpoint) -> None:
        """Add a breakpoint, or take it away if it is there.

        Raises:
            MateriaError: the loadout has no such socket or way.
        """
        if breakpoint_.every_time in {other.every_time for other in self}:
            self.remove(breakpoint_)
        else:
            self.put(breakpoint_)

    def put(self, breakpoint_: Breakpoint) -> None:
        """Add a breakpoint, in place of the one that stops there, whatever time or condition that was for.

        Raises:
            MateriaError: the loadout has no such socket or way.
        """
        self._check(breakpoint_)
        self._put(breakpoint_)

    def _put(self, breakpoint_: Breakpoint, condition: StopCondition | None = None) -> None:
        raise NotImplementedError

    def _meant(self, socket: str | None, edge: int | str | None, flags: Sequence[bool]) -> Breakpoint:
        """Return the breakpoint that is meant, where ``given`` says which of ``_SAID`` are."""
        kinds: dict[BreakKind, bool] = {**dict(zip(_SAID, flags, strict=True)), "edge": edge is not None}
        meant: list[BreakKind] = [kind for kind, is_set in kinds.items() if is_set] or ["before"]
        if len(meant) > 1:
            raise MateriaError(
                f"A breakpoint stops at one thing, not at {' and '.join(meant)}.",
                hint="add one for each",
                kind="usage",
            )
        breakpoint_ = Breakpoint(meant[0], socket, edge)
        self._check(breakpoint_)
        return breakpoint_

    def _check(self, breakpoint_: Breakpoint) -> None:
        graph = self._graph
        if breakpoint_.socket is not None:
            graph.needs_socket(breakpoint_.socket)
        elif breakpoint_.kind in ("before", "after", "edge"):
            raise MateriaError(
                "The socket of the breakpoint is missing.",
                hint="only what an output says can be meant of any socket",
                kind="usage",
            )
        if breakpoint_.kind == "edge" and breakpoint_.socket is not None:
            _check_way(graph, graph.sockets[breakpoint_.socket], breakpoint_.edge)


class CastBreakpoints(Settable):
    """Where the runs of one cast stop: ``cast.breakpoints``.

    They are those that the workbench has for the loadout, until they are changed here: then the cast has its own, which
    begin with a copy and reach no other cast (R47). A file in its run directory keeps those without a condition.
    """

    def __init__(self, runner: Runner) -> None:
        """Stop the cast that ``runner`` runs; its watchers are told of changes."""
        super().__init__(runner.rules.graph)
        self._runner = runner
        self._followed = Breakpoints()
        self._own: Breakpoints | None = None
        if (path := runner.files.path / FILE).exists():
            self._own = Breakpoints(path, self._graph.name)
            self._tell_problem()

    @property
    def are_its_own(self) -> bool:
        """Whether the cast has its own, since they were changed here."""
        return self._own is not None

    def follow(self, followed: Breakpoints) -> None:
        """Have the breakpoints of the workbench, unless the cast has its own."""
        self._followed = followed
        self._tell_problem()

    def begin_as(self, other: CastBreakpoints) -> None:
        """Begin with what another cast has: its own as a copy, or the same of the workbench."""
        self.follow(other._followed)
        if other._own is not None:
            self.change(lambda own: own.replace(other.conditions))

    @property
    def conditions(self) -> Mapping[Breakpoint, StopCondition | None]:
        """The breakpoints, each with its condition if it has one."""
        return MappingProxyType((self._own or self._followed).conditions)

    @property
    def hit(self) -> list[Breakpoint]:
        """The breakpoints that the cast is at now, whatever their conditions say."""
        return self._hit("")

    def _hit(self, lane: str) -> list[Breakpoint]:
        if not self.conditions:
            return []
        now = self._runner.snapshot()
        return (now.lanes[lane].now if lane else now).breakpoints_hit

    def reached(self, cast: object, lane: str = "") -> bool:
        """Whether ``cast``, which this belongs to, or one of its lanes, is at a breakpoint whose condition, if it has one, holds."""
        conditions = [self.conditions[breakpoint_] for breakpoint_ in self._hit(lane)]
        return any(condition is None or condition(cast) for condition in conditions)

    def remove(self, *those: Breakpoint) -> None:
        """Take away breakpoints, as iterating gives them."""
        self.change(lambda own: own.remove(those))

    def _put(self, breakpoint_: Breakpoint, condition: StopCondition | None = None) -> None:
        self.change(lambda own: own.put({breakpoint_: condition}))

    def change(self, change: Callable[[Breakpoints], None], *, of_all: bool = False) -> None:
        """Change the cast's own; what is changed ``of_all`` casts changes nothing here while the cast has none."""
        if self._own is None and not of_all:
            writable = self._runner.journal is not None
            self._own = Breakpoints(self._runner.files.path / FILE if writable else None, self._graph.name)
            self._own.conditions = dict(self._followed.conditions)
        if self._own is not None:
            change(self._own)
        self._tell_problem()
        self._runner.followers.report_change()

    def _tell_problem(self) -> None:
        for breakpoints in (self._followed, self._own):
            if breakpoints is not None and breakpoints.problem:
                self._runner.messages.append(breakpoints.problem)
                breakpoints.problem = ""


class LoadoutBreakpoints(Settable):
    """Where the runs of all casts of a loadout stop: ``wb.breakpoints``, ``%materia break``.

    Casts that changed theirs have their own and are left alone, but for the current one, which is changed too. A file of
    the project keeps those without a condition for the next kernel.
    """

    def __init__(self, breakpoints: Breakpoints, graph: Graph, current: CastBreakpoints | None) -> None:
        """Change ``kept``, and the breakpoints of the cast that is ``current`` if it is of this loadout."""
        super().__init__(graph)
        self._kept, self._current = breakpoints, current

    @property
    def conditions(self) -> Mapping[Breakpoint, StopCondition | None]:
        """The breakpoints, each with its condition if it has one."""
        return MappingProxyType(self._kept.conditions)

    def remove(self, *those: Breakpoint) -> None:
        """Take away breakpoints, as iterating gives them."""
        self._change(lambda breakpoints: breakpoints.remove(those))

    def clear(self, socket: str | None = None, path: str | None = None, **where: Any) -> None:
        """Take breakpoints away, as ``cast.breakpoints.clear`` does; those of the current cast too."""
        super().clear(socket, path, **where)
        if self._current is not None and self._current.are_its_own:
            self._current.clear(socket, path, **where)

    def _put(self, breakpoint_: Breakpoint, condition: StopCondition | None = None) -> None:
        self._change(lambda breakpoints: breakpoints.put({breakpoint_: condition}))

    def _change(self, change: Callable[[Breakpoints], None]) -> None:
        change(self._kept)
        if self._current is not None:
            self._current.change(change, of_all=True)


def _check_way(graph: Graph, socket: Socket, edge: int | str | None) -> None:
    """Raise MateriaError (``unknown_edge``) when a socket has no such way out."""
    routes = [route for loop in graph.loops.values() for route in loop.routes if route.source == socket.id]
    targets = dict.fromkeys([*(one.to for one in socket.edges), *(one.target for one in routes), END])
    if edge in targets or (isinstance(edge, int) and 1 <= edge <= len(socket.edges)):
        return
    edges = [f"{number} to {one.to}" for number, one in enumerate(socket.edges, 1)]
    raise MateriaError(
        f"{socket.id} has no edge {edge!r}.",
        hint=f"its edges: {', '.join(edges) or 'none'}; it can lead to {', '.join(targets)}",
        kind="unknown_edge",
    )


def _checked(nth: int | None) -> int | None:
    if nth is not None and (type(nth) is not int or nth < 1):
        raise MateriaError(
            f"The n-th time is a whole number from 1 up, not {nth!r}.", hint="such as nth=3", kind="usage"
        )
    return nth


def _path(path: str) -> str:
    segments = split_path(path.strip())
    if not segments:
        raise MateriaError("The path names nothing.", hint="such as plan.approved", kind="bad_path")
    return ".".join(segments)
