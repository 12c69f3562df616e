"""The casts of a project, the casts that are open in this kernel, and the current cast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from materia_nb.agents.notebook_agents import AgentTable
from materia_nb.cast import Breakpoints, Plan, Prepared, open_cast, resume_cast, start_cast
from materia_nb.cast.breakpoint import FILE
from materia_nb.cast.cast import Cast
from materia_nb.cast.cast_breakpoints import LoadoutBreakpoints
from materia_nb.cast.formatting import CastList, TableSequence
from materia_nb.cast.library import Loadouts, copy_scripts, utility_folders
from materia_nb.cast.notifications import DEFAULT_MIN_S, Notifier, Receiver
from materia_nb.cast.snapshot import Snapshot, graph_of, snapshot_of
from materia_nb.cast.views.compare_view import Compared, ReplaysView, ReplayView, compare_view
from materia_nb.cast.views.status import status_lines
from materia_nb.cast.views.tables import FailureCause, FailureCausesView, SearchResultsView, failure_cause
from materia_nb.display.blocks import Block, Displayable, Table
from materia_nb.engine.conversation import truncate
from materia_nb.engine.routing import short_label
from materia_nb.engine.state import CastState, Label
from materia_nb.errors import MateriaError
from materia_nb.insight.odds import Chances
from materia_nb.insight.values import OutputMatch, compile_query
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import Graph
from materia_nb.loadout.config_files import is_config_file
from materia_nb.loadout.vocabulary import FILES_OFF
from materia_nb.registry import lookup
from materia_nb.store.catalogue import (
    CastEntry,
    CastStatus,
    cast_entry,
    delete_cast,
    filter_casts,
    find_cast,
    list_casts,
)
from materia_nb.store.opening import Verification, verify
from materia_nb.store.rundir import RunDir, record_latest

_Result = TypeVar("_Result")


class Waiting(NamedTuple):
    """A cast that is waiting for a person.

    Attributes:
        entry: the entry of the cast in the list of casts.
        waits: a description of what the cast waits for.
    """

    entry: CastEntry
    waits: str


class Inbox(TableSequence[Waiting]):
    """The casts that are waiting for a person, newest first, displayed as a numbered table."""

    __slots__ = ()

    @property
    def table(self) -> Table:
        """The table that displays the inbox."""
        rows = [
            (str(number), entry.name or entry.id, entry.loadout or "", waits, short_label(entry.request or "", 60))
            for number, (entry, waits) in enumerate(self, start=1)
        ]
        return Table(("", "cast", "loadout", "waits for", "request"), rows, "no cast is waiting for a person")


class Casts(Displayable):
    """The casts of a project, available as ``wb.casts``; calling this object lists them.

    Args:
        loadouts: the loadouts of the workbench, whose config defines the directory of the casts.
        agents: the agents for casts that are opened or resumed.
        sync: True to force every step to the disk with fsync.

    Attributes:
        last: the cast that was started or opened most recently, or None.
        bench: the workbench that the views of the casts use; None if there is no workbench.
    """

    def __init__(self, loadouts: Loadouts, agents: AgentTable, *, sync: bool = False) -> None:
        self.sync = sync
        self.last: Cast | None = None
        self.bench: Any = None
        self._notifier = Notifier()
        self._loadouts = loadouts
        self._agents = agents
        self._open: dict[Path, Cast] = {}
        self._stops: dict[str, Breakpoints] = {}  # by loadout

    def __repr__(self) -> str:
        return f"<casts in {self.root.name}>"

    def _blocks(self) -> list[Block]:
        return [self().table]

    def show(self) -> Any:
        """Display a widget in which the casts can be searched, opened, compared, named and deleted.

        Displaying the widget again in the same cell closes the previous one.
        """
        return lookup("panel of all casts").show_casts(self)

    # -- one cast -------------------------------------------------------------------

    def plan(self, graph: Graph, data: Mapping[str, JSON] | None = None) -> Plan:
        """Return the settings of a new cast of a loadout, with ``data`` as the initial state."""
        return Plan(
            graph,
            graph.document,
            " < ".join(layer.label for layer in self._loadouts.config.layers),
            self._loadouts.project,
            self.root,
            utilities=utility_folders(),
            sync=self.sync,
            data=data or {},
            files=str(graph.document.get("files") or FILES_OFF),
        )

    def start(self, prepared: Prepared, request: str) -> Cast:
        """Start a cast, and make it the current cast."""
        with _close_on_error(start_cast(prepared.plan, request, prepared.table)) as cast:
            for key, pinned_answer in prepared.pins.items():
                cast.pins.put(key, pinned_answer)
            return self.make_current(cast)

    def open(self, reference: str | Path) -> Cast:
        """Open a cast read-only, and make it the current cast. Casts of the reference engine can also be opened.

        Args:
            reference: the id of a cast or the beginning of the id, the name of a cast, ``-1`` for the latest cast, or
                the path of a run directory.
        """
        return self.make_current(self.load(reference))

    def resume(self, reference: str | Path = "-1") -> Cast:
        """Open a cast in order to continue it, for example after a restart or a crash, and make it the current cast.

        Args:
            reference: a reference to the cast, as accepted by :meth:`open`; by default the latest cast.
        """
        path = self._find(reference)
        if (cast := self.find_open_cast(path)) is not None:
            return self._latest(cast)
        with _close_on_error(self._resume(path)) as cast:
            return self._latest(cast)

    def _latest(self, cast: Cast) -> Cast:
        if cast.run_dir.parent.resolve() == self.root.resolve():
            with suppress(OSError):
                record_latest(cast.run_dir)
        return self.make_current(cast)

    def _resume(self, path: Path) -> Cast:
        return resume_cast(path, self._table, utilities=utility_folders(), sync=self.sync)

    def make_current(self, cast: Cast) -> Cast:
        """Make a cast the current cast, and connect it to the breakpoints of its loadout."""
        if cast.now.writable:
            cast.runner.messages += copy_scripts(cast.graph)
        cast.breakpoints.follow(self._breakpoints_of(cast.graph))
        cast.runner.definitions = self._loadouts.definitions
        cast.runner.on_run_stopped = self._notifier.run_stopped
        self.last = cast
        # Closed casts are dropped, so that they do not accumulate in a long-running program.
        self._open = {path: open_cast_ for path, open_cast_ in self._open.items() if open_cast_.now.writable}
        self._open[cast.run_dir.resolve()] = cast
        return cast

    def _breakpoints_of(self, graph: Graph) -> Breakpoints:
        if graph.name not in self._stops:
            self._stops[graph.name] = Breakpoints(self.root / FILE, graph.name)
        return self._stops[graph.name]

    def notify(self, receiver: Receiver | None = None, *, after: int = DEFAULT_MIN_S) -> None:
        """Send a notification when a long run of a cast ends, fails, or waits for a person.

        The notification has the fields ``cast`` (the id), ``loadout``, ``reason`` (the value that ``cast.run`` returns)
        and ``message``. A command runs in the project directory, with the message as its last argument and the
        notification as JSON on stdin.

        Args:
            receiver: a command, a function that is called with the notification, or an http or https URL to which the
                notification is posted as JSON. By default, no more notifications are sent.
            after: the minimum duration of a run, in seconds.

        Raises:
            MateriaError: the receiver is not a URL, a command or a function (``bad_receiver``).
        """
        self._notifier.configure(receiver, after)

    def breakpoints(self) -> LoadoutBreakpoints:
        """Return the breakpoints of the current cast's loadout, or of the selected loadout if there is no current cast.

        The breakpoints are stored in a file of the project.
        """
        graph = self._loadouts.graph() if self.last is None else self.last.graph
        current = None if self.last is None else self.last.breakpoints
        return LoadoutBreakpoints(self._breakpoints_of(graph), graph, current)

    @property
    def current(self) -> Cast:
        """The current cast, which magic commands use: the cast that was started or opened most recently.

        Raises:
            MateriaError: no cast has been started or opened (``no_cast``).
        """
        if self.last is None:
            hint = "start a cast with `%materia cast REQUEST`, or list saved casts with `%materia list casts`"
            raise MateriaError("No cast has been started.", hint=hint, kind="no_cast")
        return self.last

    def label(self, reference: str | Path, step: int | None = None, **changes: Any) -> Label:
        """Change the label of a cast, or of one of its steps, without making it the current cast.

        Args:
            reference: a reference to the cast, as accepted by :meth:`open`.
            step: the number of a step; by default the label of the cast itself is changed.
            changes: the fields to change, as for ``cast.labels.add``.

        Raises:
            MateriaError: the label is invalid (see ``cast.labels.add``), or the cast cannot be opened (see
                :meth:`resume`).
        """
        with self.writing(reference) as cast:
            return cast.labels.add(step, **changes)

    def delete(self, reference: str | Path | CastEntry, *, yes: bool = False) -> str:
        """Delete a cast of this project with its run directory. This cannot be undone.

        Args:
            reference: a reference to the cast, as accepted by :meth:`open`.
            yes: True to confirm the deletion; otherwise the method raises an error that describes what would be
                deleted.

        Returns:
            The id of the deleted cast.

        Raises:
            MateriaError: the deletion was not confirmed (``not_confirmed``), a kernel has the cast open (``locked``),
                or the cast does not belong to this project (``not_here``).
        """
        path = self._find(_cast_id(reference))
        entry = cast_entry(path)
        if not yes:
            name = f", {entry.name}" if entry.name else ""
            steps = "" if entry.steps is None else f", {entry.steps} steps"
            raise MateriaError(
                f"This would delete the cast {entry.id}{name} ({entry.loadout or 'no loadout'}, {entry.status}{steps}): "
                f"{short_label(entry.request or 'no request', 80)}",
                where=str(path),
                hint=f"to delete it, use `wb.casts.delete({entry.id!r}, yes=True)` or `delete {entry.id} --yes`",
                kind="not_confirmed",
            )
        delete_cast(self.root, path)
        self._open.pop(path, None)
        if self.last is not None and self.last.run_dir.resolve() == path:
            self.last = None
        return entry.id

    def verify(self, reference: str | Path = "-1") -> Verification:
        """Report the last step up to which a recorded cast is unmodified, even if the cast is too damaged to be opened.

        The check compares the hash links in the journal and the digests of long outputs. They are not a signature:
        anyone who can write the files can also write valid links.

        Args:
            reference: a reference to the cast, as accepted by :meth:`open`; by default the latest cast.
        """
        return verify(RunDir(self._find(reference)))

    def initial_data_from(self, reference: str | Path) -> dict[str, JSON]:
        """Return the request and the results of a cast as the initial data of a later cast."""
        cast = self.load(reference)
        cast.now.require_castable()  # otherwise its state is unknown
        return _data_for_later_cast(cast.now.engine, cast.id, cast.graph.name)

    # -- open casts --------------------------------------------------------

    def find_open_cast(self, path: Path) -> Cast | None:
        """Return the cast in a run directory if this kernel has opened it for writing, or else None."""
        cast = self._open.get(path.resolve())
        return cast if cast is not None and cast.now.writable else None

    @contextmanager
    def writing(self, reference: str | Path) -> Iterator[Cast]:
        """Open a cast for writing in a ``with`` statement, without making it the current cast.

        The cast is closed at the end of the block unless it was already open.

        Raises:
            MateriaError: the cast cannot be opened, as for :meth:`resume`.
        """
        path = self._find(reference)
        already_open = self.find_open_cast(path)
        with self._resume(path) if already_open is None else nullcontext(already_open) as cast:
            yield cast

    def close(self) -> None:
        """Close every cast that is open for writing."""
        for cast in self._open.values():
            cast.close()
        self._open.clear()

    # -- many casts -----------------------------------------------------------------

    def __call__(
        self,
        *,
        name: str | None = None,
        tag: str | Sequence[str] = (),
        verdict: str | None = None,
        loadout: str | None = None,
        status: CastStatus | None = None,
    ) -> CastList:
        """List the casts of this project, newest first, without reading their whole journals.

        The list is displayed as a table; ``frame()`` returns it as a pandas data frame. By default, all casts are
        listed.

        Args:
            name: the name that casts must have (``cast.labels.add``).
            tag: a tag that casts must have, or a sequence of tags that they must all have.
            verdict: the verdict that casts must have: ``good``, ``bad`` or ``unsure``.
            loadout: the name of the loadout that casts must have run.
            status: the status that casts must have, such as ``failed``.
        """
        entries = list_casts(self.root)
        return CastList(filter_casts(entries, name=name, tag=tag, verdict=verdict, loadout=loadout, status=status))

    def ask(
        self, expression: str, casts: Sequence[Cast | Snapshot | CastEntry | str | Path] | None = None
    ) -> SearchResultsView:
        """Query the outputs of all steps in several casts with a JSONPath expression or a dotted path.

        Args:
            expression: the query, such as ``$.workItems[*].title``.
            casts: the casts, as objects or references, for example ``wb.casts(tag="rain")``; by default all casts of
                this project. Each cast is read completely.

        Returns:
            The matches, displayed as a table. A cast that cannot be read is reported in a row of its own.

        Raises:
            MateriaError: the expression is not valid (``question``).
        """
        compile_query(expression)

        def search(reference: object) -> list[tuple[Snapshot, OutputMatch]]:
            cast = self._snapshot(reference)
            return [(cast, match) for match in cast.all_steps.ask(expression)]

        matches_by_cast, problems = _for_each(self() if casts is None else casts, search)
        return SearchResultsView([match for matches in matches_by_cast for match in matches], problems)

    def why(self, *by: str, casts: Sequence[Cast | CastEntry | str | Path] | None = None) -> FailureCausesView:
        """Group failed casts by their causes, most frequent first.

        Args:
            by: the fields of a cause by which the casts are grouped: ``kind``, ``loadout``, ``socket``, ``edge``,
                ``item`` and ``reason``; by default the first four. The other fields show their most frequent values.
            casts: the casts, as objects or references; by default all failed casts of this project. Casts that have not
                failed are skipped.

        Returns:
            The causes, displayed as a table. A cast that cannot be read is reported in a row of its own.

        Raises:
            MateriaError: a cause has no field of this name (``usage``).
        """

        def cause_of(reference: object) -> tuple[str, FailureCause | None]:
            cast = self._snapshot(reference)
            return cast.id, failure_cause(cast)

        causes, problems = _for_each(self(status="failed") if casts is None else casts, cause_of)
        return FailureCausesView([(id_, cause) for id_, cause in causes if cause is not None], by, problems)

    def _snapshot(self, reference: object) -> Snapshot:
        return snapshot_of(reference) or self.load(reference).now

    def compare(
        self, a: object, b: object, *, behaviour: bool = False, satisfied: Chances = 0.5, items: int = 3
    ) -> Compared:
        """Compare two casts, steps or loadouts. The result is true if their routes or outputs differ.

        For casts, ``first`` describes the first step that differs, its next socket in each cast, and the reason. For
        loadouts, ``differences`` lists the differences. The current cast does not change.

        With ``behaviour=True``, all possible casts of two loadouts are compared. ``changes`` lists each result after
        which the routes differ, and is empty if and only if all casts take the same route in both loadouts.

        Args:
            a: a cast or a reference to it (as for :meth:`open`), a step of a cast, the name of a loadout, the path of a
                config file, or the result of ``wb.loadouts.show`` or ``wb.graph``.
            b: the second value, which must be of the same kind.
            behaviour: True to compare the possible casts of two loadouts instead of their fields.
            satisfied: the probabilities from which the odds of both loadouts are computed, as for ``wb.odds``.
            items: the length of every work item list in the odds; lists of up to this length are compared.

        Raises:
            MateriaError: a cast or loadout does not exist, the values are not of the same kind (``compare``), or a
                loadout has too many states (``not_explored``).
        """
        if behaviour:
            for value in (a, b):
                if isinstance(value, str) and not is_config_file(value):
                    self._loadouts.require_loadout(value)
        return compare_view(self._comparable(a), self._comparable(b), (satisfied, items) if behaviour else None)

    def _comparable(self, value: object) -> object:
        if isinstance(value, str | Path) and (value in self._loadouts.config.loadout_names or is_config_file(value)):
            return self._loadouts.graph(value)
        if isinstance(value, str | Path | CastEntry):
            value = self.load(value)
        snapshot = snapshot_of(value)
        return snapshot.compared_cast if snapshot is not None else getattr(value, "graph", value)

    def replay(
        self, loadout: object = None, casts: Sequence[Cast | CastEntry | str | Path] | None = None
    ) -> ReplaysView:
        """Replay the recorded answers of several casts in a loadout, and report the casts whose route would differ.

        No agents or processes are run. The result is displayed as a table. Its attribute ``differing`` contains the
        replays with another route.

        Args:
            loadout: the name of a loadout, or a value as for ``Cast.replay``; by default the selected loadout.
            casts: the casts, as objects or references; by default all casts of this project whose loadout has the same
                name.

        Returns:
            The replays. A cast that cannot be replayed is reported in a row of its own.

        Raises:
            MateriaError: the loadout does not exist or has problems.
        """
        graph = self._loadouts.graph(loadout) if isinstance(loadout, str | None) else graph_of(loadout)

        def replay(reference: object) -> ReplayView[Cast]:
            return (reference if isinstance(reference, Cast) else self.load(reference)).replay(graph)

        return ReplaysView(*_for_each(self(loadout=graph.name) if casts is None else casts, replay))

    def inbox(self, loadout: str | None = None) -> Inbox:
        """List the casts that are waiting for a person, each with a description of what it waits for.

        ``wb.resume(wb.inbox()[0].entry.id).reply(...)`` answers the first cast.

        Args:
            loadout: the name of the loadout whose casts are listed; by default all loadouts.
        """
        waiting = []
        for entry in self(loadout=loadout):
            in_lanes = entry.status == "ready" and (entry.path / "parallel").is_dir()
            if entry.status not in ("waiting", "held") and not in_lanes:
                continue
            try:
                cast = self.load(entry)
                if not in_lanes or any(lane.waits_for_person for lane in cast.now.lanes.values()):
                    waiting.append(Waiting(entry, status_lines(cast.now)[-1].removeprefix("waiting: ")))
            except MateriaError as error:
                waiting.append(Waiting(entry, f"unknown: {error.what}"))
        return Inbox(waiting)

    def load(self, reference: object) -> Cast:
        """Open a cast for inspection, without making it the current cast."""
        path = self._find(_cast_id(reference))
        return self.find_open_cast(path) or open_cast(path, self._table)

    # -- the directory of casts -------------------------------------------------------------

    @property
    def root(self) -> Path:
        """The directory that contains the run directories."""
        return self._loadouts.casts_root

    @property
    def _table(self) -> AgentTable:
        """A new agent table for a cast, which falls back to the agents of the workbench."""
        return AgentTable(lower_table=self._agents)

    def _find(self, reference: object) -> Path:
        return find_cast(self.root, str(reference))


@contextmanager
def _close_on_error(cast: Cast) -> Iterator[Cast]:
    """Close a cast if the block raises an exception, because the traceback would otherwise keep the cast locked."""
    try:
        yield cast
    except BaseException:
        cast.close()
        raise


def _cast_id(reference: object) -> object:
    """Return the id of a cast, a snapshot or an entry of the cast list. Return any other value unchanged."""
    return reference.id if isinstance(reference, Cast | Snapshot | CastEntry) else reference


def _for_each(
    casts: Iterable[object], function: Callable[[object], _Result]
) -> tuple[list[_Result], list[tuple[str, str]]]:
    """Call a function with each cast.

    Returns:
        The results of the function, and the id and the error message of each cast for which the function failed.
    """
    results, problems = [], []
    for reference in casts:
        try:
            results.append(function(reference))
        except MateriaError as error:
            problems.append((str(_cast_id(reference)), error.what))
    return results, problems


PREVIOUS: Final = "previous"
"""Key in the state under which a cast stores the data of an earlier cast."""

MAX_REQUEST: Final = 2_000
MAX_OUTPUT: Final = 4_000
MAX_CONTEXT: Final = 4_000
MAX_TITLES: Final = 50
_LONGEST_TITLE: Final = 200
"""Limits of the data that a later cast receives: lengths in characters, and the number of work item titles."""


def _data_for_later_cast(state: CastState, cast_id: str, loadout: str) -> dict[str, JSON]:
    """Return the data that a later cast receives from this cast, shortened to the maximum lengths.

    Long outputs are cut off at the end. A long context is cut off at the beginning, because its latest entries are at
    the end.
    """
    fields: dict[str, JSON] = {
        "cast": cast_id,
        "loadout": loadout,
        "status": state.status,
        "request": truncate(state.request, MAX_REQUEST),
    }
    if state.last_output:
        fields["lastOutput"] = truncate(state.last_output, MAX_OUTPUT)
    context = state.data.get("context")
    if isinstance(context, str) and context.strip():
        is_cut = len(context) > MAX_CONTEXT
        fields["context"] = "…" + context[1 - MAX_CONTEXT :] if is_cut else context
    items = state.data.get("workItems")
    if isinstance(items, list) and items:
        titles = [item.get("title") for item in items[:MAX_TITLES] if isinstance(item, dict)]
        fields["workItems"] = [truncate(title, _LONGEST_TITLE) for title in titles if isinstance(title, str)]
    return fields
