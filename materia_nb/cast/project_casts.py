"""The casts of a project: which there are, which are open here, and which one verbs are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from materia_nb.agents.agent_table import AgentTable
from materia_nb.cast import Breakpoints, Cast, Plan, Prepared, open_cast, resume_cast, start_cast
from materia_nb.cast.breakpoint import FILE
from materia_nb.cast.cast_breakpoints import LoadoutBreakpoints
from materia_nb.cast.library import Library, copy_scripts, utility_folder
from materia_nb.cast.listing import CastList
from materia_nb.cast.snapshot import Snapshot, graph_of, snapshot_of
from materia_nb.cast.views.compare_view import (
    CompareView,
    LoadoutCompareView,
    ReplaysView,
    StepCompareView,
    compare_view,
)
from materia_nb.cast.views.tables import FoundView
from materia_nb.engine.labels import Label
from materia_nb.engine.outcome import told_to_the_next
from materia_nb.engine.routing import short
from materia_nb.errors import MateriaError
from materia_nb.insight.queries import Found, query_of
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import Graph
from materia_nb.store.catalogue import CastEntry, cast_entry, delete_cast, filter_casts, find_cast, list_casts
from materia_nb.store.rundir import RunDir
from materia_nb.store.verifying import Verified, verify


class ProjectCasts:
    """Which casts there are, and what is done with them; the methods are those of :class:`Workbench`.

    Args:
        library: the loadouts that are cast; its config says where casts are kept.
        agents: who answers in a cast that is opened or resumed.
        sync: whether every step is forced to the disk.

    Attributes:
        last: the cast that was started or opened last, if there is one.
    """

    def __init__(self, library: Library, agents: AgentTable, *, sync: bool = False) -> None:
        self.sync = sync
        self.last: Cast | None = None
        self._library = library
        self._agents = agents
        self._open: dict[Path, Cast] = {}
        self._stops: dict[str, Breakpoints] = {}  # by loadout

    # -- one cast -------------------------------------------------------------------

    def plan(self, graph: Graph, data: Mapping[str, JSON] | None = None) -> Plan:
        """Say what a cast of a loadout is started from; ``data`` is in its state before the first step."""
        return Plan(
            graph,
            graph.document,
            " < ".join(layer.label for layer in self._library.config.layers),
            self._library.project,
            self._root,
            utilities=(utility_folder(),),
            sync=self.sync,
            data=data or {},
        )

    def start(self, given: Prepared, request: str) -> Cast:
        """Start a cast and make it the current one."""
        cast = start_cast(given.plan, request, given.table)
        with _closing(cast):
            for key, chosen in given.pins.items():
                cast.pins.put(key, chosen)
            return self.take(cast)

    def open(self, reference: str | Path) -> Cast:
        """Open a cast to look at it. See :meth:`Workbench.open`."""
        return self.take(self._looked_at(reference))

    def resume(self, reference: str | Path) -> Cast:
        """Open a cast to go on with it. See :meth:`Workbench.resume`."""
        path = self._find(reference)
        utilities = (utility_folder(),)
        if (cast := self.open_here(path)) is not None:
            return self.take(cast)
        cast = resume_cast(path, self._table, utilities=utilities, sync=self.sync)
        with _closing(cast):
            return self.take(cast)

    def take(self, cast: Cast) -> Cast:
        """Make a cast the one that verbs are about; it stops where the casts of its loadout do."""
        if cast.now.writable:
            cast.runner.messages += copy_scripts(cast.graph)
        cast.breakpoints.follow(self._stops_of(cast.graph))
        cast.runner.definitions = self._library.definitions
        self.last = cast
        self._open[cast.run_dir.resolve()] = cast
        return cast

    def _stops_of(self, graph: Graph) -> Breakpoints:
        if graph.name not in self._stops:
            self._stops[graph.name] = Breakpoints(self._root / FILE, graph.name)
        return self._stops[graph.name]

    def breakpoints(self) -> LoadoutBreakpoints:
        """Where all casts of the current cast's loadout stop, or of the chosen one. See :attr:`Workbench.breakpoints`."""
        if self.last is None:
            graph = self._library.graph()
            return LoadoutBreakpoints(self._stops_of(graph), graph, None)
        return LoadoutBreakpoints(self._stops_of(self.last.graph), self.last.graph, self.last.breakpoints)

    @property
    def current(self) -> Cast:
        """The cast that verbs are about: the one started or opened last."""
        if self.last is None:
            raise MateriaError(
                "There is no cast yet.", hint="cast a request, or open one (list casts)", kind="no_cast"
            )
        return self.last

    def label(self, reference: str | Path, step: int | None = None, **said: Any) -> Label:
        """Say something of a cast without making it the current one. See :meth:`Workbench.label`."""
        path = self._find(reference)
        if (cast := self.open_here(path)) is not None:
            return cast.labels.add(step, **said)
        cast = resume_cast(path, self._table, sync=self.sync)
        try:
            return cast.labels.add(step, **said)
        finally:
            cast.close()

    def delete(self, reference: str | Path | CastEntry, *, yes: bool = False) -> str:
        """Delete a cast of this project with everything in its run directory. See :meth:`Workbench.delete`."""
        path = self._find(_id_of(reference))
        entry = cast_entry(path)
        if not yes:
            name = f", {entry.name}" if entry.name else ""
            steps = "" if entry.steps is None else f", {entry.steps} steps"
            raise MateriaError(
                f"This would delete the cast {entry.id}{name} ({entry.loadout or 'no loadout'}, {entry.status}{steps}): "
                f"{short(entry.request or 'no request', 80)}",
                where=str(path),
                hint=f"if that is meant: wb.delete({entry.id!r}, yes=True), or delete {entry.id} --yes",
                kind="not_confirmed",
            )
        delete_cast(self._root, path)
        self._open.pop(path, None)
        if self.last is not None and self.last.run_dir.resolve() == path:
            self.last = None
        return entry.id

    def verify(self, reference: str | Path) -> Verified:
        """Say up to which step a cast is as it was written. See :meth:`Workbench.verify`."""
        return verify(RunDir(self._find(reference)))

    def told_by(self, reference: str | Path) -> dict[str, JSON]:
        """What a cast was asked and found, for one that goes on from it."""
        cast = self.held(reference)
        cast.now.needs_castable()  # else its state is not known
        return told_to_the_next(cast.now.engine, cast.id, cast.graph.name)

    # -- those that are open --------------------------------------------------------

    def open_here(self, path: Path) -> Cast | None:
        """The cast in a directory, if it is open for writing here."""
        cast = self._open.get(path.resolve())
        return cast if cast is not None and cast.now.writable else None

    def held(self, reference: str | Path) -> Cast:
        """Return a cast as it is open here, if only to look at it; else read it."""
        path = self._find(reference)
        return self._open.get(path.resolve()) or open_cast(path, self._table)

    def close(self) -> None:
        """Let go of every cast that is open for writing."""
        for cast in self._open.values():
            cast.close()
        self._open.clear()

    # -- many casts -----------------------------------------------------------------

    def listed(self, **wanted: Any) -> CastList:
        """List the casts of this project, newest first. See :meth:`Workbench.casts`."""
        return CastList(filter_casts(list_casts(self._root), **wanted))

    def ask(
        self, expression: str, casts: Sequence[Cast | Snapshot | CastEntry | str | Path] | None = None
    ) -> FoundView:
        """Look through the outputs of all steps of many casts. See :meth:`Workbench.ask`."""
        query_of(expression)
        found: list[tuple[CastEntry | Snapshot, Found]] = []
        problems = []
        for one in self.listed() if casts is None else casts:
            try:
                cast = snapshot_of(one) or self._looked_at(one).now
            except MateriaError as error:
                problems.append((str(_id_of(one)), error.what))
                continue
            found += [(cast, match) for match in cast.steps.ask(expression)]
        return FoundView(found, problems)

    def compare(self, a: object, b: object) -> CompareView | StepCompareView | LoadoutCompareView:
        """Compare two casts, two steps, or two loadouts. See :meth:`Workbench.compare`."""
        return compare_view(self._compared(a), self._compared(b))

    def _compared(self, given: object) -> object:
        if isinstance(given, str) and given in self._library.config.loadout_names:
            return self._library.graph(given)
        if isinstance(given, str | Path | CastEntry):
            given = self._looked_at(given)
        then = snapshot_of(given)
        return then.side if then is not None else getattr(given, "graph", given)

    def replay(
        self, loadout: object = None, casts: Sequence[Cast | CastEntry | str | Path] | None = None
    ) -> ReplaysView:
        """Send the recorded answers of casts through a loadout. See :meth:`Workbench.replay`."""
        graph = self._library.graph(loadout) if isinstance(loadout, str | None) else graph_of(loadout)
        found, problems = [], []
        for one in self.listed(loadout=graph.name) if casts is None else casts:
            try:
                cast = one if isinstance(one, Cast) else self._looked_at(one)
                found.append(cast.replay(graph))
            except MateriaError as error:
                problems.append((str(_id_of(one)), error.what))
        return ReplaysView(found, problems)

    def _looked_at(self, reference: object) -> Cast:
        """Open a cast to look at it without making it the current one."""
        path = self._find(_id_of(reference))
        return self.open_here(path) or open_cast(path, self._table)

    # -- where they are -------------------------------------------------------------

    @property
    def _root(self) -> Path:
        return self._library.artifact_root

    @property
    def _table(self) -> AgentTable:
        """Who answers in a cast that is told nothing else."""
        return AgentTable(over=self._agents)

    def _find(self, reference: object) -> Path:
        return find_cast(self._root, str(reference))


class _closing:  # noqa: N801 - used like a function
    """Closes a cast that nobody gets because of an error: the error's traceback would hold its lock."""

    def __init__(self, cast: Cast) -> None:
        self._cast = cast

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, _: object, __: object) -> None:
        if kind is not None:
            self._cast.close()


def _id_of(reference: object) -> object:
    """The id of a cast that is given as such, or as a row of the list of casts; anything else stays as it is."""
    return reference.id if isinstance(reference, Cast | Snapshot | CastEntry) else reference
