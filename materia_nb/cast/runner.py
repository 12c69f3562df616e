"""The runner, which executes the pending work of a cast and writes the results to disk.

Only this layer uses threads, locks, the clock and the disk. Every change to a cast is a list of events that a function
in :mod:`materia_nb.engine.decide` returns. The runner writes the events to the journal before it uses the session that
results from them, so the cast can always be rebuilt from the journal.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from materia_nb.agents.interface import Agent, name_of
from materia_nb.agents.notebook_agents import AgentTable, FunctionAgent, require_agent
from materia_nb.agents.tools.more_tools import close_servers
from materia_nb.cast.breakpoint import BreakpointSet
from materia_nb.cast.lanes import Lanes
from materia_nb.cast.snapshot import RESUME, Definitions, Live, Snapshot, require_castable
from materia_nb.cast.work import Work, now, stopped_error
from materia_nb.engine import decide, streams
from materia_nb.engine import events as ev
from materia_nb.engine.cast_warnings import Difference
from materia_nb.engine.decide import Answer
from materia_nb.engine.events import Events
from materia_nb.engine.evolve import fold
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord, files_after, lanes_at_work, lanes_running, pending_actions
from materia_nb.errors import MateriaError, counted, named_error, outgoing_line
from materia_nb.platform import Stop, computing, released_slot
from materia_nb.store.file_snapshots import FORK_DIR, FileSnapshots
from materia_nb.store.files import DiskError
from materia_nb.store.journal import Journal, JournalLine, journal_lines, read_journal
from materia_nb.store.opening import CONTINUE_HINT, missing_snapshot_error
from materia_nb.store.reader import read_session
from materia_nb.store.rundir import ArtifactWriter, RunDir

_log = logging.getLogger("materia_nb.cast")
_log.addHandler(logging.NullHandler())  # a failure is printed only if the program configures logging

_POLL_PAUSE_S = 0.002
_STOPPED_STATUSES = ("complete", "failed", "aborted")
"""Statuses in which the runner releases the journal and the lock, because only a user action can continue the cast."""

_HOLDS: ContextVar[object] = ContextVar("_HOLDS", default=None)
"""The lock holder for which the current code runs. Threads and event loops that the code starts have the same value."""
_FollowKind: TypeAlias = Literal["changes", "text", "events"]
_E = TypeVar("_E", bound=ev.Event)


class Followers:
    """The callback functions that a cast calls while it runs, available as ``cast.follow``.

    Each registration method returns a function that removes the callback. A callback that raises an exception is
    removed, and ``cast.now.messages`` reports the exception. All callbacks run in the thread that runs the cast.
    """

    def __init__(self, messages: list[str]) -> None:
        self._messages = messages
        self._cast: Callable[[], Any] = lambda: None
        self._functions: dict[_FollowKind, list[Callable[..., object]]] = {"changes": [], "text": [], "events": []}

    def __repr__(self) -> str:
        return f"<{counted(sum(map(len, self._functions.values())), 'follower')}>"

    def changes(self, watcher: Callable[[Any], object]) -> Callable[[], None]:
        """Call ``watcher`` with the cast after every change."""
        return self._register("changes", watcher)

    def text(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call ``listener`` whenever another chunk of an answer has been received. The function must return quickly.

        ``cast.now.partial_answer`` contains the received part of the answer.
        """
        return self._register("text", listener)

    def events(self, kind: type[_E], reader: Callable[[_E], object]) -> Callable[[], None]:
        """Call ``reader`` with each event of a type after the event has been written to the journal.

        The type is a class of ``materia_nb.engine.events``, or ``Event`` for every type::

            cast.follow.events(SocketComplete, lambda event: print(event.about["socket"], event.usage))
        """
        return self._register("events", lambda event: reader(event) if isinstance(event, kind) else None)

    def _register(self, kind: _FollowKind, function: Callable[..., object]) -> Callable[[], None]:
        functions = self._functions[kind]
        functions.append(function)
        return lambda: functions.remove(function) if function in functions else None

    def wants_each_step(self) -> bool:
        """Return True if a callback is registered for changes or events. Each step must then be written immediately."""
        return bool(self._functions["changes"] or self._functions["events"])

    def follow(self, cast: object) -> None:
        """Set the cast that is passed to callbacks, as a weak reference, so that the cast can be garbage-collected."""
        self._cast = weakref.ref(cast)

    def report_changes(self, events: Sequence[ev.Event] = ()) -> None:
        """Log the events, and call the callbacks for changes and for events."""
        for event in events:
            if getattr(event, "error", None) or _log.isEnabledFor(logging.INFO):
                self._log_event(event)
        if self._functions["changes"] and (cast := self._cast()) is not None:
            self.report("changes", cast)
        if self._functions["events"]:
            for event in events:
                self.report("events", event)

    def _log_event(self, event: ev.Event) -> None:
        """Log the type and the socket of an event. A failure is logged as a warning with its message."""
        error = getattr(event, "error", None)
        level = logging.WARNING if error else logging.INFO
        if _log.isEnabledFor(level) and (cast := self._cast()) is not None:
            socket = getattr(event, "socket", None) or getattr(event, "about", {}).get("socket", "")
            words = " ".join(filter(None, (event.type, socket)))
            with suppress(Exception):  # a filter of the program must not stop the cast
                _log.log(level, "cast %s: %s", cast.id, outgoing_line(words + (f": {error}" if error else "")))

    def report(self, kind: _FollowKind, *arguments: object) -> None:
        """Call every callback registered for ``kind``, and remove each callback that raises an exception."""
        functions = self._functions[kind]
        for function in tuple(functions):
            try:
                with released_slot():
                    function(*arguments)
            except Exception as error:  # noqa: BLE001 - a follower must not break the cast
                if function in functions:
                    functions.remove(function)
                self._messages.append(
                    f"A callback for the {kind} of the cast raised an error and was removed: {named_error(error)}"
                )


class RunContents(NamedTuple):
    """The contents of a run directory that is opened read-only.

    Attributes:
        rules: the rules of the recorded loadout.
        session: the session that the journal describes.
        project: the working directory of utilities and agents.
        problems: the reasons why this engine cannot cast the loadout (R41); empty if it can.
        messages: warnings about parts that could not be read.
        differences: the recorded steps after which this engine would have chosen another route.
        ours: True if this engine wrote the journal; False if the reference engine did.
        writer: the name of the program that has the cast open for writing, or None.
        version: a value that changes whenever the journal or the writer changes.
    """

    rules: Rules
    session: Session
    project: Path
    problems: Sequence[str]
    messages: Sequence[str]
    differences: Sequence[Difference]
    ours: bool
    writer: str | None
    version: object


class Runner(Work):
    """Runs one cast. Only one caller at a time can change the cast, while it holds the lock of the cast.

    Attributes:
        session: the session of the cast.
        stop: a flag that stops a run, during the current step if possible and otherwise after it.
        functions: the pinned functions by socket or materia, which the journal cannot store (R40).
        last_exception: the most recent exception that an agent raised in this kernel, or None.
        stops: the breakpoints that apply to the cast.
        attempts: the most recent trial answers for a turn, even if they were interrupted, or None.
        running: True during a run of several steps. The runner then assumes that no other program changes the project's
            files between steps.
        batches_writes: True if the next step follows immediately, so that its start can be written together with the output of
            the current step.
        definitions: a function that returns the current materia of the workbench, or None if the cast has no workbench.
        on_run_stopped: a function that is called when a run stops, with a snapshot of the cast, the reason and the
            duration of the run in seconds; or None.
    """

    def __init__(  # noqa: PLR0913 - the parts of a cast, by name
        self,
        run_dir: RunDir,
        rules: Rules,
        session: Session,
        *,
        project: Path,
        agents: AgentTable,
        utilities: tuple[Path, ...] = (),
        journal: Journal | None = None,
        messages: Sequence[str] = (),
        differences: Sequence[Difference] = (),
        reading: RunContents | None = None,
        read_again: Callable[[RunContents], RunContents | None] = lambda _: None,
    ) -> None:
        """Create a runner.

        Args:
            run_dir: the run directory.
            rules: the rules that the engine applies to the cast.
            session: the session to continue.
            project: the working directory of utilities and agents.
            agents: the configured agents; the runner uses a copy.
            utilities: directories that contain copies of the scripts shipped with this package.
            journal: the journal, open for writing; None if the cast is read-only.
            messages: warnings to show to the user.
            differences: the recorded steps after which this engine would have chosen another route.
            reading: the contents of the run directory of a read-only cast.
            read_again: a function that returns the new contents of the run directory, or None if they have not changed.
        """
        self.run_dir, self.rules, self.session = run_dir, rules, session
        self.project, self.utilities = project, utilities
        self.agents = agents.copy(partial(require_agent, rules.graph))  # a copy for this cast (R47)
        self.journal = journal
        self.problems: Sequence[str] = ()
        self.reading, self._read_again = reading, read_again
        self.stop = Stop()
        super().__init__(self)
        self.functions: dict[str, Agent] = {}
        self.last_exception: Exception | None = None
        self.messages, self.differences = list(messages), tuple(differences)
        self.stops = BreakpointSet()
        self.attempts: object = None
        self.definitions: Definitions | None = None
        self.on_run_stopped: Callable[[Snapshot, Any, float], object] | None = None
        if reading is not None:
            self._use(reading)
        self.followers = Followers(self.messages)
        self._artifacts = ArtifactWriter(run_dir, rules)
        self._lock = threading.Lock()
        self._holder, self._hold = 0, object()
        self._astray = self._is_changing = False
        self._unwritten: list[JournalLine] = []
        self._unreported: list[ev.Event] = []
        self._written = session
        self.running = self.batches_writes = False
        self._lanes: Lanes | None = None
        self.recording = threading.RLock()
        self._close = weakref.finalize(self, journal.close) if journal is not None else None

    def refresh(self) -> None:
        """Reload a read-only cast if another program has changed it, and call the callbacks for changes."""
        if self.reading is None:  # a cast that is written here needs no lock to be looked at
            return
        with self.recording:
            if (reading := self._read_again(self.reading)) is None:
                return
            self._use(reading)
        self.followers.report_changes()

    def _use(self, reading: RunContents) -> None:
        self.reading, self.rules, self.session, self.problems = reading, *reading[:2], reading.problems
        self.differences, self.messages[:] = tuple(reading.differences), reading.messages

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the cast. A read-only cast is reloaded first if another program has changed it."""
        self.refresh()
        session = self.session  # read once: a step may end meanwhile
        functions = (name for name, pin in session.pins.items() if pin.kind == "function")
        lost_pins = tuple(name for name in functions if name not in self.functions)
        live = Live(
            writable=self.journal is not None,
            continue_hint=self._continue_hint,
            writer=self.reading and self.reading.writer,
            answer_chunks=tuple(self.answer_chunks),
            lane_answer_chunks=self._lanes.answer_chunks if self._lanes is not None else {},
            stop_requested=self.stop.is_set(),
            stopping=self.stopping,
            last_exception=self.last_exception,
            attempts=self.attempts,
            stops=BreakpointSet(self.stops),
            lost_pins=lost_pins,
            messages=tuple(self.messages),
            differences=self.differences,
            definitions=self.definitions,
            agents=self.agents.selected_agents,
        )
        arguments = session, self.rules, self.run_dir.path, self.base
        return Snapshot(*arguments, problems=self.problems, answered_by=self.answered_by, live=live)

    def report_text(self) -> None:
        """Call the functions registered with ``cast.follow.text`` after another chunk of an answer has arrived."""
        self.followers.report("text")

    # -- changing the cast ----------------------------------------------------------------

    def lock(self) -> threading.Lock:
        """Return the lock of the cast, to be held in a ``with`` statement during a change.

        Raises:
            MateriaError: this thread already holds the lock, or the holder of the lock waits for this thread
                (``busy``).
        """
        is_held_here = self._holder == threading.get_ident() or _HOLDS.get() is self._hold
        if self._lock.locked() and is_held_here:
            raise MateriaError(
                "A step of this cast is running.",
                hint="wait until the step has ended; code that runs during a step cannot continue its cast",
                kind="busy",
            )
        return self._lock

    @contextmanager
    def change(self) -> Iterator[None]:
        """Prepare a change that the block of a ``with`` statement makes to the cast; see :meth:`prepare_change`.

        The same ``with`` statement must acquire the lock. Otherwise, an interrupt could leave the cast locked.
        """
        self._is_changing = True
        try:
            self.prepare_change()
            yield
        finally:
            self._is_changing = False

    def prepare_change(self) -> None:
        """Prepare a change to the cast; the caller must hold the lock.

        If the cast stores file snapshots, this saves the files that a person has changed since the latest step.

        Raises:
            MateriaError: the cast is open read-only (``read_only``), or this engine cannot cast its loadout
                (``not_castable``).
        """
        self._holder = threading.get_ident()
        if not self.running:  # the jobs of lanes continue from one step of a run to the next
            self._hold = object()
        _HOLDS.set(self._hold)
        require_castable(self.problems, self.run_dir.path)
        if self.journal is None:
            self.refresh()
            where, hint = str(self.run_dir.path), self._continue_hint
            raise MateriaError("This cast is open read-only.", where=where, hint=hint, kind="read_only")
        if self._astray:
            self._recover()
        if self._unwritten and not self.batches_writes:
            self._write([], self.session)
        if self.session.snapshot_method and not self.running:
            self.save_files("person" if self.session.state.waiting_at is None else "step")

    @property
    def _continue_hint(self) -> str:
        can_resume = self.reading is None or (self.reading.ours and self.reading.writer is None)
        return RESUME if can_resume else CONTINUE_HINT

    def refuse_while_running(self) -> None:
        """Raise MateriaError (``busy``) if a step or an edit is in progress in any thread."""
        if self._is_changing:
            message = "A step is running, so nothing can be changed until it ends."
            raise MateriaError(message, hint="pause the run, then edit", kind="busy")

    def busy(self, wait: float = 0.0) -> bool:
        """Return True if a step or an edit is still in progress in another thread after ``wait`` seconds."""
        until = time.monotonic() + (wait if self._holder != threading.get_ident() else 0.0)
        while self._is_changing:
            if time.monotonic() >= until:
                return True
            time.sleep(_POLL_PAUSE_S)  # waiting with acquire would take the lock, so the cast would look busy to others
        return False

    @property
    def stopping(self) -> str | None:
        """The function or step that a requested stop waits for, with the elapsed time; None if no stop is pending.

        Processes and model requests are stopped immediately, but Python functions cannot be stopped.
        """
        since = self.stop.since
        if since is None or not self._is_changing:
            return None
        visit = self.session.state.waiting_at
        busy_sockets = [visit.socket] if visit is not None else [] if self._lanes is None else self._lanes.busy_sockets
        agents = (socket for socket in busy_sockets if not self.rules.sockets[socket].socket.is_utility)
        agent_names = " and ".join(f"{self._agent_name(id_)} of {self.rules.graph.names[id_]}" for id_ in agents)
        return f"waiting for {agent_names + ' to return' if agent_names else 'the step to end'} ({time.monotonic() - since:.0f} s)"

    def _agent_name(self, socket: str) -> str:
        agent = self.agents.for_turn(socket, self.rules.sockets[socket].socket.materia.id)
        name = self.answered_by(socket) if isinstance(agent, FunctionAgent) else None
        return name or name_of(agent)

    def apply(self, command: Callable[..., Events], *arguments: object, later: bool = False) -> None:
        """Apply the events of a command to the session; for the arguments see :meth:`Work.apply`."""
        with self.recording:  # because the agents of lanes report from their own threads
            self.record_events(command(self.rules, self.session, *arguments, now()), later=later)

    def edit(self, command: Callable[..., Events], *arguments: object, while_running: bool = False) -> None:
        """Run a command under the lock of the cast.

        If a step is running, wait for it if ``while_running`` is set, or else raise MateriaError (``busy``).
        """
        if not while_running:
            self.refuse_while_running()
        with self.lock(), self.change():
            self.run_command(command, *arguments)

    def run_command_and_ask(self, work: Work, command: Callable[..., Events], *arguments: object) -> StepRecord:
        """Run a command in the cast or in one of its lanes, call the agent there, and return the latest step."""
        with self.lock(), self.change():
            work.run_command(command, *arguments)
            self.stop.clear()
            work.ask()
            self.write_derived()
            return work.session.steps[-1]

    def record_events(self, events: Events, *, later: bool = False) -> None:
        """Apply events to the session, write them to the journal and call the callbacks.

        With ``later``, the events are only queued; the caller must write them with :meth:`write_queued`.
        """
        with self.recording:
            if events:
                session = fold(self.rules, self.session, events)
                self._unreported = [*self._unreported, *events]
                lines = journal_lines(events, session, self.run_dir)
                if later:
                    self._astray = True  # until both are set, since an interrupt can come between any two instructions
                    self._unwritten = [*self._unwritten, *lines]
                    self.session = session
                    self._astray = False
                else:
                    self._write(lines, session)
        if not self._unwritten:
            earlier_events, self._unreported = self._unreported, []
            self.followers.report_changes(earlier_events)

    def write_queued(self) -> None:
        """Write the queued events to the journal, if any, and call the callbacks."""
        if self._unwritten:
            with self.recording:
                self._write([], self.session)
            earlier_events, self._unreported = self._unreported, []
            self.followers.report_changes(earlier_events)

    def _write(self, lines: list[JournalLine], session: Session) -> None:
        """Append the queued lines and ``lines`` to the journal, then use ``session``; if writing fails, keep the old session.

        If an interrupt occurs between the two actions, the session is rebuilt from the journal.
        """
        assert self.journal is not None  # noqa: S101 - begin() raises otherwise
        self._astray, before = True, self._written
        try:
            self.journal.append([*self._unwritten, *lines])
            self._unwritten = []
            self.session = self._written = session
            self._astray = False
            if session.state.status not in _STOPPED_STATUSES:
                self._artifacts.schedule_write(session)
            elif before.state.status in _STOPPED_STATUSES:
                self.journal.release()  # the cast was changed after its end; the derived files are still to be written
        except DiskError:  # none of the events was written
            self._unwritten, self.session, self._astray = [], self._written, False
            self._unreported = []
            raise
        except BaseException:
            self._recover()
            raise

    def _recover(self) -> None:
        assert self.journal is not None  # noqa: S101 - only a cast that can be written goes astray
        self.journal.truncate_partial_append()
        self._unwritten, self._unreported = [], []
        lines = read_journal(self.run_dir.journal).lines
        self.session = self._written = read_session(self.rules, lines, self.run_dir.read_text).session
        self._astray = False

    # -- the files of the project --------------------------------------------------------------

    @property
    def base(self) -> Path:
        """The working directory of the cast: the project, or a separate directory for a fork with file snapshots."""
        return self.run_dir.path / self.session.folder if self.session.folder else self.project

    def save_first_snapshot(self, work_root: Path | None) -> None:
        """Save the first file snapshot of the cast; for ``work_root`` see :class:`~materia_nb.cast.runner_factory.Plan`."""
        if work_root is None or not self.session.snapshot_method:
            self.save_files("start")
            return
        snapshot = self.keeper_of(self.project, skip=work_root).take(None)
        self.keeper_of(self.run_dir.path / FORK_DIR, own=True).check_out(snapshot.commit)
        event = ev.FilesKept(commit=snapshot.commit, by="start", left_out=snapshot.left_out, folder=FORK_DIR, ts=now())
        self.record_events((event,))

    def file_snapshots(self) -> FileSnapshots:
        """Return the store of file snapshots for the working directory of the cast."""
        if self._kept is None or self._kept.folder != self.base:
            self._kept = self.keeper_of(self.base, own=bool(self.session.folder))
        return self._kept

    def save_files(self, by: str) -> None:
        """Save a file snapshot if the files have changed. ``by`` is the trigger, such as ``step`` or ``person``.

        Raises:
            MateriaError: the files cannot be saved when the cast starts. A later failure only adds a warning.
        """
        if self.session.snapshot_method and self.journal is not None:
            self.keep_with(self.file_snapshots, by)

    def back_with_files(self, command: Callable[..., Events], number: int) -> None:
        """Save the current files, then go back to step ``number`` and restore the files that were saved after it."""
        self.refuse_while_running()
        with self.lock(), self.change():
            events, current_files = command(self.rules, self.session, number, now()), self.session.files
            target_files = files_after(self.session, number)
            if current_files is None or target_files is None:
                raise missing_snapshot_error(number, saves_files=bool(self.session.snapshot_method))
            fold(self.rules, self.session, events)  # raises if going back is impossible
            self.file_snapshots().restore(current_files, target_files)
            self.record_events(events)
            self.record_events((ev.FilesKept(step=number, commit=target_files, by="back", ts=now()),))

    # -- steps ----------------------------------------------------------------------------

    def advance(self, stops_after: Callable[[str], bool] = lambda _: False, *, once: bool = False) -> StepRecord | None:
        """Run one socket or the running lanes, and return the latest step, or None if the cast ended instead.

        Args:
            stops_after: a function that returns True to stop. It is called after each output that needs a repair and after
                each socket of a lane, with the name of the lane, or "" for the cast itself.
            once: True to run only one socket in each lane; by default, lanes run until they must stop.
        """
        with computing():
            if self.rules.graph.regions and self.lanes_are_next:
                return [None, *self.advance_lanes(stops_after, once=once)][-1]
            if self.session.state.status not in ("ready", "waiting"):
                raise stopped_error(self.session)
            try:
                if self.session.state.status == "ready":
                    self.worked = 0
                    self.record_events(decide.enter(self.rules, self.session, now()), later=True)
                is_waiting = self.session.state.status == "waiting"
                self.ask(stops_after)
            except BaseException:
                self.batches_writes = False
                raise
            finally:
                if self._unwritten and not (self.batches_writes and self.session.state.status == "ready"):
                    self.write_queued()
            if self.session.state.status != "ready":
                self.write_derived()
            return self.session.steps.latest if is_waiting else None

    @property
    def lanes_are_next(self) -> bool:
        """True if lanes are running or will start with the next step."""
        return self.lanes_at_work or streams.next_parallel_region(self.rules, self.session) is not None

    def advance_lanes(self, stops_after: Callable[[str], bool], *, once: bool) -> Generator[StepRecord, None, None]:
        """Run the lanes and yield each of their steps; for the arguments see :meth:`advance`."""
        if not self.lanes_at_work:
            self.run_command(decide.enter)  # distributes the items
        yield from self.lanes.steps(stops_after, once=once)
        self.save_files("lanes")
        if self.lanes_at_work and not pending_actions(self.rules, self.session)[0].lane:
            self.run_command(decide.enter)  # joins the lanes, which are all over
        if self.session.state.status != "ready" or self.stuck:
            self.write_derived()

    @property
    def lanes(self) -> Lanes:
        """The running lanes, or the most recent lanes if none are running."""
        if self._lanes is None or self._lanes.number != self.session.loop_count:
            self._lanes = Lanes(self)
        return self._lanes

    @property
    def lanes_at_work(self) -> bool:
        """True if lanes are running."""
        return lanes_running(self.session) is not None

    @property
    def lanes_waiting_for_person(self) -> list[str]:
        """The names of the lanes that wait for a person's approval or answer."""
        due_actions = pending_actions(self.rules, self.session) if self.lanes_at_work else ()
        return [action.lane for action in due_actions if action.what == "person"]

    def work_of_lane(self, name: str | None) -> Work:
        """Return the work of the named lane.

        If ``name`` is None, return the work of the only lane that waits, or of the only lane that stopped the cast.

        Raises:
            MateriaError: no lane or several lanes qualify (``which_lane``), or the lane does not exist
                (``unknown_lane``).
        """
        due_actions = pending_actions(self.rules, self.session)
        lane_names = [action.lane for action in due_actions if action.lane and action.what in ("agent", "person")]
        if self.session.state.failure is not None and (stopped := lanes_at_work(self.session)) is not None:
            lanes = stopped.lanes.values()
            lane_names = [lane.name for lane in lanes if lane.status == "failed" or lane.session.state.waiting_at]
        if name is None and len(lane_names) != 1:
            message = "Several lanes are waiting." if lane_names else "No lane is waiting for a person."
            hint = f"name a lane: {', '.join(lane_names)}" if lane_names else "continue the lanes with `run` or `retry`"
            raise MateriaError(message, hint=hint, kind="which_lane")
        return self.lanes.work(streams.lane_named(self.session, name or lane_names[0]).name)

    @property
    def stuck(self) -> bool:
        """True if lanes are running but none of them can continue until a person answers."""
        return lanes_running(self.session) is not None and self.lanes.stuck

    def answered_by(self, socket: str) -> str | None:
        """Return a description of the agent that answers a socket: a function, a model, a command or a person.

        Return None for a utility and for a read-only cast.
        """
        materia = self.rules.sockets[socket].socket.materia
        if materia.kind == "utility" or self.journal is None:
            return None
        agent = self.agents.for_turn(socket, materia.id)
        if isinstance(agent, FunctionAgent):
            return "a function" if agent.name == "<lambda>" else f"the function {name_of(agent)}"
        return materia.model or agent.name if agent.name == "model" else name_of(agent)

    def by_hand(self, work: Work, reply: Answer, text: str) -> None:
        """Record a person's answer to the visit at which the cast or a lane stopped, in a single write.

        Raises:
            ~materia_nb.handoff.checks.RefusedAnswer: the answer violates the handoff rules; nothing is recorded (R42).
        """
        if work.lane:
            opening_events = decide.answer_by_hand_in_lane(self.rules, self.session, work.lane, now())
        else:
            opening_events = decide.answer_by_hand(self.rules, self.session, now())
        session = fold(self.rules, self.session, opening_events)
        session_there = session.streams[-1].lanes[work.lane].session if work.lane else session
        decide.check_reply(self.rules, session_there, text)
        self.stop.clear()
        self.record_events(opening_events, later=True)
        try:
            work.handle_reply(reply._replace(by="person"))
        finally:
            self.write_queued()

    def write_now(self) -> None:
        """Acquire the lock and write the derived files. The caller must not hold the lock.

        A change that is requested meanwhile waits until the files have been written, and is not refused as ``busy``.
        """
        with self.lock():
            self.write_derived()

    def write_derived(self) -> None:
        """Write the files that are derived from the journal: prompts, parsed outputs, manifest and usage (R29, R30).

        The files of all steps since the last write are written when the cast pauses or ends, so the cost of a step does
        not grow with the length of the cast.
        """
        journal, session = self.journal, self.session
        if journal is None or (self._artifacts.has_written(session) and not self._unwritten):
            return
        self.write_queued()
        try:
            journal.reacquire()
            with computing():
                self._artifacts.write_all(session, journal.end)
        finally:
            if session.state.status in _STOPPED_STATUSES:
                journal.release()
                close_servers(str(self.run_dir.path))

    def mark_files_current(self) -> None:
        """Record that all derived files are up to date, so that they are not written again."""
        self._artifacts.mark_written(self.session)
        if self.session.state.status in _STOPPED_STATUSES and self.journal is not None:
            self.journal.release()

    def close(self) -> None:
        """Write the derived files, and release the journal and the lock.

        Derived files that cannot be written now are written when the cast is resumed.
        """
        try:
            with suppress(MateriaError):
                self.write_derived()
        finally:
            self.journal = None
            close_servers(str(self.run_dir.path))
            self._artifacts.stop()
            if self._close is not None:
                self._close()
