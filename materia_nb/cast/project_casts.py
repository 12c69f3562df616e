"""The casts of a project: which there are, which are open here, and which one verbs are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from materia_nb.agents.notebook_agents import AgentTable
from materia_nb.cast import Breakpoints, Plan, Prepared, open_cast, resume_cast, start_cast
from materia_nb.cast.breakpoint import FILE
from materia_nb.cast.cast import Cast
from materia_nb.cast.cast_breakpoints import LoadoutBreakpoints
from materia_nb.cast.formatting import CastList, Listed
from materia_nb.cast.library import Loadouts, copy_scripts, utility_folders
from materia_nb.cast.snapshot import Snapshot, graph_of, snapshot_of
from materia_nb.cast.views.compare_view import Compared, ReplaysView, compare_view, replayed_words
from materia_nb.cast.views.status import status_lines
from materia_nb.cast.views.tables import FoundView
from materia_nb.display.blocks import Block, Line, Shown, Table
from materia_nb.engine.conversation import Label
from materia_nb.engine.routing import short
from materia_nb.engine.state import CastState
from materia_nb.errors import MateriaError, counted
from materia_nb.insight.blame import OutputMatch, compile_query
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import Graph
from materia_nb.loadout.vocabulary import FILES_AS_THEY_ARE
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
from materia_nb.store.opening import Verified, verify
from materia_nb.store.rundir import RunDir, record_latest

MoveVerdict: TypeAlias = Literal["unchanged", "safe", "elsewhere", "cannot"]
"""Of a waiting cast and its loadout as it is now: not changed, the same way so far, another way, not to be told."""
_WORDS: Final[dict[MoveVerdict, str]] = {
    "safe": "safe to move",
    "elsewhere": "would go elsewhere",
    "cannot": "cannot move",
}


@dataclass(frozen=True)
class Waiting:
    """A cast that waits for a person.

    Attributes:
        entry: which, as the list of casts has it.
        waits: what it waits for, in a sentence.
        verdict: what its answers so far do in its loadout as it is now.
        why: where it would go elsewhere, or why it cannot be told; else empty.
    """

    entry: CastEntry
    waits: str
    verdict: MoveVerdict
    why: str = ""


class Inbox(Listed[Waiting]):
    """The casts that wait for a person, newest first; it shows itself as a table, numbered from 1."""

    __slots__ = ()

    @property
    def table(self) -> Table:
        """The table that it shows itself as."""
        rows = [
            (
                str(number),
                waiting.entry.name or waiting.entry.id,
                waiting.entry.loadout or "",
                waiting.waits,
                short(waiting.entry.request or "", 60),
                ": ".join(filter(None, [_WORDS.get(waiting.verdict, ""), waiting.why])),
            )
            for number, waiting in enumerate(self, start=1)
        ]
        headers = ("", "cast", "loadout", "waits for", "request", "with its loadout of now")
        return Table(headers, rows, "no cast is waiting for a person")

    @property
    def verdict(self) -> str:
        """What becomes of the casts whose loadout was changed since they began, in a sentence; empty where there is none."""
        counts: Counter[MoveVerdict] = Counter(waiting.verdict for waiting in self if waiting.verdict != "unchanged")
        if not counts:
            return ""
        counts_words = ", ".join(f"{counts[verdict]} {phrase}" for verdict, phrase in _WORDS.items())
        return f"{counted(counts.total(), 'cast')} with a loadout that was changed since: {counts_words}"

    def _blocks(self) -> list[Block]:
        return [self.table, *([Line(self.verdict)] if self.verdict else [])]


def what_awaits(entry: CastEntry, cast: Cast, graph: Graph | MateriaError) -> Waiting:
    """Say what a cast waits for, and what its answers so far do in a loadout; the loadout may be one that has problems."""
    waits = status_lines(cast.now)[-1].removeprefix("waiting: ")
    if isinstance(graph, MateriaError):
        return Waiting(entry, waits, "cannot", graph.what.partition("\n")[0])
    if not compare_view(cast.graph, graph):
        return Waiting(entry, waits, "unchanged")
    try:
        replayed = cast.replay(graph)
    except MateriaError as error:
        return Waiting(entry, waits, "cannot", error.what)
    if replayed.first is None:
        return Waiting(entry, waits, "safe")
    _, step, why = replayed_words(replayed)
    return Waiting(entry, waits, "elsewhere", f"step {step}: {why}")


class Casts(Shown):
    """Which casts there are, and what is done with them: ``wb.casts``; called, it lists them.

    Args:
        loadouts: those that are cast; its config says where casts are kept.
        agents: who answers in a cast that is opened or resumed.
        sync: whether every step is forced to the disk.

    Attributes:
        last: the cast that was started or opened last, if there is one.
        bench: the workbench that they belong to, for what is shown of them; None where there is none.
    """

    def __init__(self, loadouts: Loadouts, agents: AgentTable, *, sync: bool = False) -> None:
        self.sync = sync
        self.last: Cast | None = None
        self.bench: Any = None
        self._loadouts = loadouts
        self._agents = agents
        self._open: dict[Path, Cast] = {}
        self._stops: dict[str, Breakpoints] = {}  # by loadout

    def __repr__(self) -> str:
        return f"<casts in {self.root.name}>"

    def _blocks(self) -> list[Block]:
        return [self().table]

    def show(self) -> Any:
        """Show them in a notebook, to be searched, opened, compared, named and deleted; as the value of a cell they do.

        The value is a widget; showing it again in the same cell closes the earlier one.
        """
        return lookup("panel of all casts").show_casts(self)

    # -- one cast -------------------------------------------------------------------

    def plan(self, graph: Graph, data: Mapping[str, JSON] | None = None) -> Plan:
        """Say what a cast of a loadout is started from; ``data`` is in its state before the first step."""
        return Plan(
            graph,
            graph.document,
            " < ".join(layer.label for layer in self._loadouts.config.layers),
            self._loadouts.project,
            self.root,
            utilities=utility_folders(),
            sync=self.sync,
            data=data or {},
            files=str(graph.document.get("files") or FILES_AS_THEY_ARE),
        )

    def start(self, prepared: Prepared, request: str) -> Cast:
        """Start a cast and make it the current one."""
        with _closing(start_cast(prepared.plan, request, prepared.table)) as cast:
            for key, chosen in prepared.pins.items():
                cast.pins.put(key, chosen)
            return self.take(cast)

    def open(self, reference: str | Path) -> Cast:
        """Open a cast read-only, including one recorded by the reference engine.

        Args:
            reference: an id, the beginning of one, a name, ``-1`` for the latest, or a directory.
        """
        return self.take(self.look_at(reference))

    def resume(self, reference: str | Path = "-1") -> Cast:
        """Open a cast to continue it, after a restart or a crash.

        Args:
            reference: as for :meth:`open`; the latest cast by default.
        """
        path = self._find(reference)
        if (cast := self.open_here(path)) is not None:
            return self._latest(cast)
        with _closing(self._resumed(path)) as cast:
            return self._latest(cast)

    def _latest(self, cast: Cast) -> Cast:
        if cast.run_dir.parent.resolve() == self.root.resolve():
            with suppress(OSError):
                record_latest(cast.run_dir)
        return self.take(cast)

    def _resumed(self, path: Path) -> Cast:
        return resume_cast(path, self._table, utilities=utility_folders(), sync=self.sync)

    def take(self, cast: Cast) -> Cast:
        """Make a cast the one that verbs are about; it stops where the casts of its loadout do."""
        if cast.now.writable:
            cast.runner.messages += copy_scripts(cast.graph)
        cast.breakpoints.follow(self._stops_of(cast.graph))
        cast.runner.definitions = self._loadouts.definitions
        self.last = cast
        # Those that were closed are let go of, else a program that casts all day would keep each.
        self._open = {path: open_cast_ for path, open_cast_ in self._open.items() if open_cast_.now.writable}
        self._open[cast.run_dir.resolve()] = cast
        return cast

    def _stops_of(self, graph: Graph) -> Breakpoints:
        if graph.name not in self._stops:
            self._stops[graph.name] = Breakpoints(self.root / FILE, graph.name)
        return self._stops[graph.name]

    def breakpoints(self) -> LoadoutBreakpoints:
        """Where all casts of the current cast's loadout stop, or of the chosen one. A file of the project keeps them."""
        if self.last is None:
            graph = self._loadouts.graph()
            return LoadoutBreakpoints(self._stops_of(graph), graph, None)
        return LoadoutBreakpoints(self._stops_of(self.last.graph), self.last.graph, self.last.breakpoints)

    @property
    def current(self) -> Cast:
        """The cast that verbs are about: the one started or opened last."""
        if self.last is None:
            raise MateriaError("There is no cast yet.", hint="cast a request, or open one (list casts)", kind="no_cast")
        return self.last

    def label(self, reference: str | Path, step: int | None = None, **changes: Any) -> Label:
        """Say something of a cast, or of one of its steps, without making it the current one; see ``cast.labels.add``.

        Raises:
            MateriaError: as ``cast.labels.add`` and :meth:`resume`.
        """
        with self.writing(reference) as cast:
            return cast.labels.add(step, **changes)

    def delete(self, reference: str | Path | CastEntry, *, yes: bool = False) -> str:
        """Delete a cast of this project and its run directory. This cannot be undone.

        Args:
            reference: as for :meth:`open`; the latest cast by default.
            yes: confirm; without it you only get an error that says what would be deleted.

        Returns:
            The id of the cast that was.

        Raises:
            MateriaError: it was not confirmed (``not_confirmed``), the cast is in use, also here (``locked``), or it
                is none of this project (``not_here``).
        """
        path = self._find(_id_of(reference))
        entry = cast_entry(path)
        if not yes:
            name = f", {entry.name}" if entry.name else ""
            steps = "" if entry.steps is None else f", {entry.steps} steps"
            raise MateriaError(
                f"This would delete the cast {entry.id}{name} ({entry.loadout or 'no loadout'}, {entry.status}{steps}): "
                f"{short(entry.request or 'no request', 80)}",
                where=str(path),
                hint=f"if that is meant: wb.casts.delete({entry.id!r}, yes=True), or delete {entry.id} --yes",
                kind="not_confirmed",
            )
        delete_cast(self.root, path)
        self._open.pop(path, None)
        if self.last is not None and self.last.run_dir.resolve() == path:
            self.last = None
        return entry.id

    def verify(self, reference: str | Path = "-1") -> Verified:
        """Report up to which step a recorded cast is unmodified; works also for one that is too damaged to be opened.

        The links of its journal and the digests of long outputs show it. They are no signature: anyone who can write
        the files can write the links too.

        Args:
            reference: as for :meth:`open`; the latest cast by default.
        """
        return verify(RunDir(self._find(reference)))

    def told_by(self, reference: str | Path) -> dict[str, JSON]:
        """What a cast was asked and found, for one that goes on from it."""
        cast = self.held(reference)
        cast.now.needs_castable()  # else its state is not known
        return _told_to_the_next(cast.now.engine, cast.id, cast.graph.name)

    # -- those that are open --------------------------------------------------------

    def open_here(self, path: Path) -> Cast | None:
        """The cast in a directory, if it is open for writing here."""
        cast = self._open.get(path.resolve())
        return cast if cast is not None and cast.now.writable else None

    @contextmanager
    def writing(self, reference: str | Path) -> Iterator[Cast]:
        """Give a cast to be written, without making it the current one; it is closed afterwards unless it was open here.

        Raises:
            MateriaError: as :meth:`resume`.
        """
        path = self._find(reference)
        if (cast := self.open_here(path)) is not None:
            yield cast
            return
        cast = self._resumed(path)
        try:
            yield cast
        finally:
            cast.close()

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

    def __call__(
        self,
        *,
        name: str | None = None,
        tag: str | Sequence[str] = (),
        verdict: str | None = None,
        loadout: str | None = None,
        status: CastStatus | None = None,
    ) -> CastList:
        """List the casts of this project, newest first, without reading them whole.

        The list shows itself as a table; ``.frame()`` gives a data frame.

        Args:
            name: only those that a person called so (``cast.labels.add``).
            tag: only those that have this tag, or all of several.
            verdict: only those that a person judged so: good, bad or unsure.
            loadout: only those of the loadout with this name.
            status: only those that stand so, such as ``failed``.
        """
        entries = list_casts(self.root)
        return CastList(filter_casts(entries, name=name, tag=tag, verdict=verdict, loadout=loadout, status=status))

    def ask(
        self, expression: str, casts: Sequence[Cast | Snapshot | CastEntry | str | Path] | None = None
    ) -> FoundView:
        """Look through the outputs of all steps of many casts with JSONPath, or a dotted path.

        Args:
            expression: such as ``$.workItems[*].title``.
            casts: which casts, as objects or references, such as ``wb.casts(tag="rain")``; all of this project if
                left out. Each is read whole.

        Raises:
            MateriaError: it is not JSONPath (``question``). A cast that cannot be read is a row.
        """
        compile_query(expression)
        matches: list[tuple[CastEntry | Snapshot, OutputMatch]] = []
        problems = []
        for reference in self() if casts is None else casts:
            try:
                cast = snapshot_of(reference) or self.look_at(reference).now
            except MateriaError as error:
                problems.append((str(_id_of(reference)), error.what))
                continue
            matches += [(cast, match) for match in cast.all_steps.ask(expression)]
        return FoundView(matches, problems)

    def compare(self, a: object, b: object) -> Compared:
        """Compare two casts, steps, loadouts, prompts or states; the value is true if they differ in what was done.

        Of casts ``first`` says in which step they first differ, where each went, and why; of loadouts
        ``differences`` lists what differs. The current cast stays as it is.

        Args:
            a: a cast, or its id, the beginning of one, ``"-1"`` for the latest; a step of a cast; its prompt;
                ``cast.state``; a loadout's name, or what ``wb.loadouts.show`` or ``wb.graph`` returned.
            b: the other, of the same kind.

        Raises:
            MateriaError: one is not found, or they are not of one kind (``compare``).
        """
        return compare_view(self._compared(a), self._compared(b))

    def _compared(self, value: object) -> object:
        if isinstance(value, str) and value in self._loadouts.config.loadout_names:
            return self._loadouts.graph(value)
        if isinstance(value, str | Path | CastEntry):
            value = self.look_at(value)
        then = snapshot_of(value)
        return then.side if then is not None else getattr(value, "graph", value)

    def replay(
        self, loadout: object = None, casts: Sequence[Cast | CastEntry | str | Path] | None = None
    ) -> ReplaysView:
        """Send the recorded answers of casts through a loadout: which of them would have gone elsewhere?

        Nothing runs. The value shows itself as a table; ``otherwise`` are the replays that go another way.

        Args:
            loadout: its name, or as ``Cast.replay`` takes it; the chosen one by default.
            casts: the casts, as objects or references; by default all of this project that were cast from a
                loadout of that name.

        Raises:
            MateriaError: there is no such loadout, or it has problems. A cast that cannot be replayed is a row.
        """
        graph = self._loadouts.graph(loadout) if isinstance(loadout, str | None) else graph_of(loadout)
        replays, problems = [], []
        for reference in self(loadout=graph.name) if casts is None else casts:
            try:
                cast = reference if isinstance(reference, Cast) else self.look_at(reference)
                replays.append(cast.replay(graph))
            except MateriaError as error:
                problems.append((str(_id_of(reference)), error.what))
        return ReplaysView(replays, problems)

    def inbox(self, loadout: str | None = None) -> Inbox:
        """List the casts that wait for a person, and what becomes of each with its loadout as it is now.

        ``wb.resume(wb.inbox()[0].entry.id).reply(...)`` answers the first.

        Args:
            loadout: only those of the loadout with this name.
        """
        waiting = []
        for entry in self(loadout=loadout):
            in_lanes = entry.status == "ready" and (entry.path / "parallel").is_dir()
            if entry.status not in ("waiting", "held") and not in_lanes:
                continue
            try:
                cast = self.look_at(entry)
                if not in_lanes or any(lane.wants_a_person for lane in cast.now.lanes.values()):
                    waiting.append(what_awaits(entry, cast, self._graph_now(entry.loadout)))
            except MateriaError as error:  # it cannot be read
                waiting.append(Waiting(entry, "nobody knows what", "cannot", error.what))
        return Inbox(waiting)

    def _graph_now(self, name: str | None) -> Graph | MateriaError:
        """Return a loadout as it is now, or why there is none that can be cast."""
        try:
            return self._loadouts.graph(name or "")
        except MateriaError as error:
            return error

    def look_at(self, reference: object) -> Cast:
        """Open a cast to look at it without making it the current one."""
        path = self._find(_id_of(reference))
        return self.open_here(path) or open_cast(path, self._table)

    # -- where they are -------------------------------------------------------------

    @property
    def root(self) -> Path:
        """Where run directories are made."""
        return self._loadouts.casts_root

    @property
    def _table(self) -> AgentTable:
        """Who answers in a cast that is told nothing else."""
        return AgentTable(over=self._agents)

    def _find(self, reference: object) -> Path:
        return find_cast(self.root, str(reference))


@contextmanager
def _closing(cast: Cast) -> Iterator[Cast]:
    """Close a cast that nobody gets because of an error: the error's traceback would hold its lock."""
    try:
        yield cast
    except BaseException:
        cast.close()
        raise


def _id_of(reference: object) -> object:
    """The id of a cast that is given as such, or as a row of the list of casts; anything else stays as it is."""
    return reference.id if isinstance(reference, Cast | Snapshot | CastEntry) else reference


PREVIOUS: Final = "previous"
"""The name in the state under which a cast finds what an earlier one tells it."""

LONGEST_REQUEST: Final = 2_000
LONGEST_OUTPUT: Final = 4_000
LONGEST_CONTEXT: Final = 4_000
MOST_TITLES: Final = 50
_LONGEST_TITLE: Final = 200
"""Characters, and titles of work items, that are handed on at most."""


def _told_to_the_next(state: CastState, cast_id: str, loadout: str) -> dict[str, JSON]:
    """Return what ``state`` tells a later cast.

    Of the output the beginning is kept, of the context the end, since its latest entries are there.

    Args:
        state: where the earlier cast stands.
        cast_id: its id.
        loadout: the name of its loadout.
    """
    fields: dict[str, JSON] = {
        "cast": cast_id,
        "loadout": loadout,
        "status": state.status,
        "request": _beginning(state.request, LONGEST_REQUEST),
    }
    if state.last_output:
        fields["lastOutput"] = _beginning(state.last_output, LONGEST_OUTPUT)
    context = state.data.get("context")
    if isinstance(context, str) and context.strip():
        cut = len(context) > LONGEST_CONTEXT
        fields["context"] = "…" + context[1 - LONGEST_CONTEXT :] if cut else context
    items = state.data.get("workItems")
    if isinstance(items, list) and items:
        titles = [item.get("title") for item in items[:MOST_TITLES] if isinstance(item, dict)]
        fields["workItems"] = [_beginning(title, _LONGEST_TITLE) for title in titles if isinstance(title, str)]
    return fields


def _beginning(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"
