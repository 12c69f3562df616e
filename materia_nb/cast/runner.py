"""The runner of a cast: it does what the session waits for and keeps what comes of it.

Here alone are threads, locks, the clock and the disk. Every change is events of :mod:`materia_nb.engine.decide`, folded by
:mod:`materia_nb.engine.evolve` as those of a journal are: they are written to the journal before the session that they make is
believed, so the journal always rebuilds what the cast holds.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from materia_nb.agents.function_agent import FunctionAgent
from materia_nb.agents.interface import (
    Agent,
    name_of,
)
from materia_nb.agents.notebook_agents import AgentTable, needs_agent
from materia_nb.agents.tools.more_tools import close_servers
from materia_nb.cast.breakpoint import BreakpointSet
from materia_nb.cast.lanes import Lanes
from materia_nb.cast.snapshot import RESUME, Definitions, Live, Snapshot, refuse_recorded
from materia_nb.cast.work import Work, now, over
from materia_nb.engine import decide, streams
from materia_nb.engine import events as ev
from materia_nb.engine.cast_warnings import Difference
from materia_nb.engine.decide import Answer
from materia_nb.engine.events import Events
from materia_nb.engine.evolve import fold
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import (
    Session,
    StepRecord,
    files_after,
    lanes_at_work,
    lanes_running,
    pending,
)
from materia_nb.errors import MateriaError, counted, named_error
from materia_nb.platform import Stop, computing, resting
from materia_nb.store.file_snapshots import OWN, FileSnapshots
from materia_nb.store.files import DiskError
from materia_nb.store.journal import Journal, JournalLine, lines_of, read_journal
from materia_nb.store.opening import not_kept
from materia_nb.store.reader import read_session
from materia_nb.store.rundir import ArtifactWriter, RunDir

_LOOK_AGAIN_S = 0.002
_OVER = ("complete", "failed", "aborted")
"""Nothing goes on by itself any more: neither journal nor lock is held until the cast is changed."""

_HOLDS: ContextVar[object] = ContextVar("_HOLDS", default=None)
"""The hold of a cast that what is done here belongs to, in threads and on loops that are waited for under it too."""


_E = TypeVar("_E", bound=ev.Event)


class Followers:
    """The functions that a cast calls while it runs: ``cast.follow``.

    Each method that registers a function returns a function that unregisters it. A function that raises is not called
    again, and ``cast.now.messages`` reports why. All are called in the thread that works on the cast.
    """

    def __init__(self, messages: list[str]) -> None:
        self._messages = messages
        self._cast: Callable[[], Any] = lambda: None
        self._watchers: list[Callable[[Any], object]] = []
        self._listeners: list[Callable[[], object]] = []
        self._readers: list[Callable[[ev.Event], object]] = []

    def __repr__(self) -> str:
        count = len(self._watchers) + len(self._listeners) + len(self._readers)
        return f"<{counted(count, 'follower')}>"

    def changes(self, watcher: Callable[[Any], object]) -> Callable[[], None]:
        """Call ``watcher`` with the cast after every change."""
        return _registered(self._watchers, watcher)

    def text(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call ``listener`` whenever more of an answer has arrived; ``cast.now.saying`` is the text. It must be quick."""
        return _registered(self._listeners, listener)

    def events(self, kind: type[_E], reader: Callable[[_E], object]) -> Callable[[], None]:
        """Call ``reader`` with each event of a kind, once it is in the journal.

        Kinds are the classes of ``materia_nb.engine.events``, ``Event`` for all of them::

            cast.follow.events(SocketComplete, lambda event: print(event.about["socket"], event.usage))
        """
        return _registered(self._readers, lambda event: reader(event) if isinstance(event, kind) else None)

    def wants(self, kind: Literal["changes", "text", "events"]) -> bool:
        """Return True if a function is to be called with changes, text or events."""
        return bool({"changes": self._watchers, "text": self._listeners, "events": self._readers}[kind])

    def follow(self, cast: object) -> None:
        """Set the cast that watchers get; a weak reference, so that they keep neither the cast nor its lock alive."""
        self._cast = weakref.ref(cast)

    def report_events(self, events: Sequence[ev.Event]) -> None:
        """Call the readers with events that were written, in their order."""
        for event in events:
            self._call(self._readers, "reading the events of", event)

    def report_change(self) -> None:
        """Call the watchers."""
        if self._watchers and (cast := self._cast()) is not None:
            self._call(self._watchers, "following", cast)

    def report_text(self) -> None:
        """Call the listeners."""
        self._call(self._listeners, "listening to")

    def _call(self, functions: list[Any], verb: str, *arguments: object) -> None:
        for function in tuple(functions):
            try:
                with resting():
                    function(*arguments)
            except Exception as error:  # noqa: BLE001 - a follower must not break the cast
                if function in functions:
                    functions.remove(function)
                self._messages.append(f"A view stopped {verb} the cast: {named_error(error)}")


def _registered(functions: list[Any], function: Callable[..., object]) -> Callable[[], None]:
    functions.append(function)
    return lambda: functions.remove(function) if function in functions else None


class Runner(Work):
    """Runs one cast: one at a time changes it, under its lock.

    Attributes:
        session: everything the cast knows.
        stop: set it to stop a run after, or if it can be stopped within, the step that runs.
        functions: those that sockets and materia are pinned to; the journal cannot hold them (R40).
        raised: what an agent raised last in this kernel.
        stops: where runs stop.
        attempts: what was attempted last, also where that was interrupted.
        running: whether a run goes from step to step, so that between them nobody else is taken to change files.
        goes_on: whether the next step follows at once, so that an output and the beginning of that step are one write.
        definitions: gives what the workbench has of each materia now, if one has the cast.
    """

    def __init__(  # noqa: PLR0913 - the parts of a cast, by name
        self,
        files: RunDir,
        rules: Rules,
        session: Session,
        *,
        project: Path,
        agents: AgentTable,
        utilities: tuple[Path, ...] = (),
        journal: Journal | None = None,
        problems: Sequence[str] = (),
        messages: Sequence[str] = (),
        differences: Sequence[Difference] = (),
        continuing: str = RESUME,
    ) -> None:
        """Put the parts together. Without a journal the cast can only be looked at, and ``continuing`` is how to continue it."""
        self.files, self.rules, self.session = files, rules, session
        self.project, self.utilities = project, utilities
        self.agents = agents.copy(partial(needs_agent, rules.graph))  # its own (R47)
        self.journal = journal
        self.problems = problems
        self.continuing = continuing
        self.stop = Stop()
        super().__init__(self)
        self.functions: dict[str, Agent] = {}
        self.raised: Exception | None = None
        self.messages, self.differences = list(messages), tuple(differences)
        self.stops = BreakpointSet()
        self.attempts: object = None
        self.definitions: Definitions | None = None
        self.followers = Followers(self.messages)
        self._artifacts = ArtifactWriter(files, rules)
        self._lock = threading.Lock()
        self._holder, self._hold = 0, object()
        self._astray = False
        self._unwritten: list[JournalLine] = []
        self._untold: list[ev.Event] = []
        self._written = session
        self.running = self.goes_on = False
        self._lanes: Lanes | None = None
        self.recording = threading.RLock()
        self._close = weakref.finalize(self, journal.close) if journal is not None else None

    def snapshot(self) -> Snapshot:
        """Return the cast as it is now."""
        session = self.session  # read once: a step may end meanwhile
        functions = (name for name, pin in session.pins.items() if pin.kind == "function")
        lost_pins = tuple(name for name in functions if name not in self.functions)
        live = Live(
            writable=self.journal is not None,
            continuing=self.continuing,
            saying=tuple(self.saying),
            lanes_saying=self._lanes.saying if self._lanes is not None else {},
            stop_asked=self.stop.is_set(),
            stopping=self.stopping,
            raised=self.raised,
            attempts=self.attempts,
            stops=BreakpointSet(self.stops.conditions),
            pins_gone=lost_pins,
            messages=tuple(self.messages),
            differences=self.differences,
            definitions=self.definitions,
            agents=self.agents.chosen,
        )
        cast_parts = session, self.rules, self.files.path, self.base
        return Snapshot(*cast_parts, problems=self.problems, answerers=self.answered_by, live=live)

    def report_text(self) -> None:
        """Call those that listen to the answer that is coming."""
        if self.followers.wants("text"):
            self.followers.report_text()

    # -- changing the cast ----------------------------------------------------------------

    def lock(self) -> threading.Lock:
        """Return the lock to hold while the cast is changed, for ``with``: an interrupt cannot leave it taken.

        Raises:
            MateriaError: this thread holds it already, or whoever does waits for what is done here (``busy``).
        """
        mine = self._holder == threading.get_ident() or _HOLDS.get() is self._hold
        if self._lock.locked() and mine:
            raise MateriaError(
                "The cast is in the middle of a step.",
                hint="an agent, a watcher or a utility's caller cannot continue the cast that waits for it",
                kind="busy",
            )
        return self._lock

    def begin(self) -> None:
        """Begin to change the cast, under the lock.

        Raises:
            MateriaError: it was opened to be looked at (``read_only``).
        """
        self._holder = threading.get_ident()
        if not self.running:  # what lanes have begun goes on from one step of a run to the next, and waits under it
            self._hold = object()
        _HOLDS.set(self._hold)
        if self.problems:
            refuse_recorded(self.problems, self.files.path)
        if self.journal is None:
            raise MateriaError(
                "This cast is open read-only.",
                where=str(self.files.path),
                hint=self.continuing,
                kind="read_only",
            )
        if self._astray:
            self._recover()
        if self._unwritten and not self.goes_on:
            self._write([], self.session)
        if self.session.keeps and not self.running:
            self.keep_files("person" if self.session.state.waiting_at is None else "step")

    def refuse_while_running(self) -> None:
        """Raise MateriaError (``busy``) when a step or an edit is being made."""
        if self._lock.locked():
            raise MateriaError(
                "A step is running; nothing can be changed before it ends.",
                hint="pause, then edit",
                kind="busy",
            )

    def busy(self, wait: float = 0.0) -> bool:
        """Whether a step or an edit is being made, by whichever thread, still after ``wait`` seconds."""
        until = time.monotonic() + (wait if self._holder != threading.get_ident() else 0.0)
        while self._lock.locked():
            if time.monotonic() >= until:
                return True
            time.sleep(_LOOK_AGAIN_S)  # taking the lock to wait for it would make it look busy to others
        return False

    @property
    def stopping(self) -> str | None:
        """What a stop that was asked for still waits for, and for how long; None when it waits for nothing.

        A process or a request to a model is ended at once, but nobody can end a function of Python.
        """
        since = self.stop.since
        if since is None or not self._lock.locked():
            return None
        visit = self.session.state.waiting_at
        asked_sockets = [visit.socket] if visit is not None else [] if self._lanes is None else self._lanes.asked
        agents = (socket for socket in asked_sockets if not self.rules.sockets[socket].socket.is_utility)
        who = " and ".join(f"{self._called(agent)} of {agent}" for agent in agents)
        return f"waits for {who + ' to return' if who else 'the step to end'} ({time.monotonic() - since:.0f} s)"

    def _called(self, socket: str) -> str:
        agent = self.agents.for_turn(socket, self.rules.sockets[socket].socket.materia.id)
        name = self.answered_by(socket) if isinstance(agent, FunctionAgent) else None
        return name or name_of(agent)

    def apply(self, command: Callable[..., Events], *arguments: object, later: bool = False) -> None:
        """Keep what a command leads to: ``command(rules, session, *given, now)``; ``later`` as for :meth:`keep`."""
        with self.recording:  # what an agent of a lane tells comes from a thread of its own
            self.keep(command(self.rules, self.session, *arguments, now()), later=later)

    def edit(self, command: Callable[..., Events], *arguments: object, while_running: bool = False) -> None:
        """Run a command after the current step, or refuse it while a step runs (``busy``)."""
        if not while_running:
            self.refuse_while_running()
        with self.lock():
            self.begin()
            self.run_command(command, *arguments)

    def and_ask(self, work: Work, command: Callable[..., Events], *arguments: object) -> None:
        """Run a command in the cast or one of its lanes, then let its agent continue."""
        with self.lock():
            self.begin()
            work.run_command(command, *arguments)
            self.stop.clear()
            work.ask()
            self.write_derived()

    def keep(self, events: Events, *, later: bool = False) -> None:
        """Fold events, write them to the journal, then adopt the session that they lead to and call the watchers.

        With ``later`` the events are queued for the next write in the same call, see :meth:`write_waiting`.
        """
        with self.recording:
            if events:
                session = fold(self.rules, self.session, events)
                if self.followers.wants("events"):
                    self._untold = [*self._untold, *events]
                lines = lines_of(events, session, self.files)
                if later:
                    self._astray = True  # until both are set: an interrupt may come between any two instructions
                    self._unwritten = [*self._unwritten, *lines]
                    self.session = session
                    self._astray = False
                else:
                    self._write(lines, session)
        if self.followers.wants("changes") or self._untold:
            self._tell_followers()

    def _tell_followers(self) -> None:
        if self._unwritten:
            return
        if self.followers.wants("changes"):
            self.followers.report_change()
        if self._untold:
            untold, self._untold = self._untold, []
            self.followers.report_events(untold)

    def write_waiting(self) -> None:
        """Write the queued events, if any, and call the watchers."""
        if self._unwritten:
            with self.recording:
                self._write([], self.session)
            if self.followers.wants("changes") or self._untold:
                self._tell_followers()

    def _write(self, lines: list[JournalLine], session: Session) -> None:
        """Append the queued and the given lines to the journal, then adopt ``session``; on failure keep the old session.

        An interrupt between the two would leave the session behind its journal, so the journal is then read again.
        """
        assert self.journal is not None  # noqa: S101 - begin() raises otherwise
        self._astray, before = True, self._written
        try:
            self.journal.append([*self._unwritten, *lines])
            self._unwritten = []
            self.session = self._written = session
            self._astray = False
            if session.state.status not in _OVER:
                self._artifacts.soon(session)
            elif before.state.status in _OVER:
                self.journal.rest()  # it was changed afterwards; what follows from the end itself is still due
        except DiskError:  # nothing of the events stayed
            self._unwritten, self.session, self._astray = [], self._written, False
            self._untold = []
            raise
        except BaseException:
            self._recover()
            raise

    def _recover(self) -> None:
        self._unwritten, self._untold = [], []
        lines = read_journal(self.files.journal).lines
        self.session = self._written = read_session(self.rules, lines, self.files.text_of).session
        self._astray = False

    # -- the files of the project --------------------------------------------------------------

    @property
    def base(self) -> Path:
        """The directory that the cast works in: the project, or a folder of its own (a fork's, where files are kept)."""
        return self.files.path / self.session.folder if self.session.folder else self.project

    def begin_files(self, own_folders: Path | None) -> None:
        """Keep the files that the cast begins with, where they are kept; ``apart`` as in :class:`~materia_nb.cast.runner_factory.Plan`."""
        if own_folders is None or not self.session.keeps:
            self.keep_files("start")
            return
        note = {"cast": self.files.path.name, "step": 0, "by": "start"}
        snapshot = self.keeper_of(self.project, skip=own_folders).take(None, note)
        self.keeper_of(self.files.path / OWN, own=True).check_out(snapshot.commit)
        event = ev.FilesKept(commit=snapshot.commit, by="start", left_out=snapshot.left_out, folder=OWN, ts=now())
        self.keep((event,))

    def file_snapshots(self) -> FileSnapshots:
        """Return the snapshots of the directory that the cast works in."""
        if self._kept is None or self._kept.folder != self.base:
            self._kept = self.keeper_of(self.base, own=bool(self.session.folder))
        return self._kept

    def keep_files(self, by: str) -> None:
        """Keep the files as they are now, where they are kept, and tell it if they changed; who changed them is ``by``.

        Raises:
            MateriaError: they cannot be kept, at the start; later that is told and the cast goes on.
        """
        if self.session.keeps and self.journal is not None:
            self.keep_with(self.file_snapshots, by)

    def back_with_files(self, command: Callable[..., Events], number: int) -> None:
        """Go back to a step, in the folder that the cast works in too; what is there now is kept before."""
        self.refuse_while_running()
        with self.lock():
            self.begin()
            events, now_kept = command(self.rules, self.session, number, now()), self.session.files
            then = files_after(self.session, number)
            if now_kept is None or then is None:
                raise not_kept(number)
            fold(self.rules, self.session, events)  # refuses what cannot be gone back to
            self.file_snapshots().restore(now_kept, then)
            self.keep(events)
            self.keep((ev.FilesKept(step=number, commit=then, by="back", ts=now()),))

    # -- steps ----------------------------------------------------------------------------

    @computing()
    def advance(self, breaks: Callable[[str], bool] = lambda _: False, *, once: bool = False) -> StepRecord | None:
        """Run one socket, or the lanes that are at work; returns the latest step, None when the cast only came to its end.

        Args:
            breaks: tells whether to stop: after an output that is asked for once more, and behind each socket of the
                lane that it is given ("" for the cast itself).
            once: whether each lane runs one socket, rather than as far as it comes.
        """
        if self.rules.graph.regions and self.lanes_are_next:
            latest = None
            for step in self.advance_lanes(breaks, once=once):
                latest = step
            return latest
        if self.session.state.status not in ("ready", "waiting"):
            raise over(self.session)
        try:
            if self.session.state.status == "ready":
                self.worked = 0
                self.keep(decide.enter(self.rules, self.session, now()), later=True)
            waits = self.session.state.status == "waiting"
            self.ask(breaks)
        except BaseException:
            self.goes_on = False
            raise
        finally:
            if self._unwritten and not (self.goes_on and self.session.state.status == "ready"):
                self.write_waiting()
        if self.session.state.status != "ready":
            self.write_derived()
        return self.session.steps.latest if waits else None

    @property
    def lanes_are_next(self) -> bool:
        """Whether the cast goes on in lanes, those at work or those that the items are handed out to next."""
        return self.lanes_at_work or streams.region_ahead(self.rules, self.session) is not None

    def advance_lanes(self, breaks: Callable[[str], bool], *, once: bool) -> Generator[StepRecord, None, None]:
        """Run the lanes, as :meth:`advance`, and give each step once it is made, see :meth:`~materia_nb.cast.lanes.Lanes.steps`."""
        if not self.lanes_at_work:
            self.run_command(decide.enter)  # hands the items out
        yield from self.lanes.steps(breaks, once=once)
        self.keep_files("lanes")
        if self.lanes_at_work and not pending(self.rules, self.session)[0].lane:
            self.run_command(decide.enter)  # all are over: brings them together
        if self.session.state.status != "ready" or self.stuck:
            self.write_derived()

    @property
    def lanes(self) -> Lanes:
        """The lanes that are at work, or were last."""
        if self._lanes is None or self._lanes.number != self.session.forks:
            self._lanes = Lanes(self)
        return self._lanes

    @property
    def lanes_at_work(self) -> bool:
        """True while lanes are running."""
        return lanes_running(self.session) is not None

    @property
    def lanes_that_ask(self) -> list[str]:
        """The lanes that ask a person for something: leave for tool calls, a word of theirs."""
        due = pending(self.rules, self.session) if self.lanes_at_work else ()
        return [action.lane for action in due if action.what == "person"]

    def lane_meant(self, name: str | None) -> Work:
        """Return the work of a lane, without a name that of the one that waits; of one that stopped, where the cast did.

        Raises:
            MateriaError: several are (``which_lane``), or there is no such lane (``unknown_lane``).
        """
        due = pending(self.rules, self.session)
        waiting = [action.lane for action in due if action.lane and action.what in ("agent", "person")]
        if self.session.state.failure is not None and (stopped := lanes_at_work(self.session)) is not None:
            lanes = stopped.lanes.values()
            waiting = [lane.name for lane in lanes if lane.status == "failed" or lane.session.state.waiting_at]
        if name is None and len(waiting) != 1:
            message = "Say in which lane." if waiting else "No lane waits for a person."
            hint = f"there wait {', '.join(waiting)}: say which lane" if waiting else "run or retry continues them"
            raise MateriaError(message, hint=hint, kind="which_lane")
        return self.lanes.work(streams.lane_named(self.session, name or waiting[0]).name)

    @property
    def stuck(self) -> bool:
        """True if lanes are running and none can continue before a person has answered."""
        return lanes_running(self.session) is not None and self.lanes.stuck

    def answered_by(self, socket: str) -> str | None:
        """Return who answers an agent's socket: a function, a model, a command, a person."""
        materia = self.rules.sockets[socket].socket.materia
        if materia.kind == "utility" or self.journal is None:
            return None
        agent = self.agents.for_turn(socket, materia.id)
        if isinstance(agent, FunctionAgent):
            return "a function" if agent.name == "<lambda>" else f"the function {name_of(agent)}"
        return materia.model or agent.name if agent.name == "model" else name_of(agent)

    def by_hand(self, work: Work, reply: Answer, text: str) -> None:
        """Take a person's answer where the cast, or a lane, stopped: one write tells that it is by hand, and what it is.

        Raises:
            ~materia_nb.handoff.checks.RefusedAnswer: it breaks the rules; nothing is recorded then (R42).
        """
        if work.lane:
            opened = decide.by_hand_in_lane(self.rules, self.session, work.lane, now())
        else:
            opened = decide.by_hand(self.rules, self.session, now())
        session = fold(self.rules, self.session, opened)
        session_there = session.streams[-1].lanes[work.lane].session if work.lane else session
        decide.check_reply(self.rules, session_there, text)
        self.stop.clear()
        self.keep(opened, later=True)
        try:
            work.handle_reply(reply._replace(by="person"))
        finally:
            self.write_waiting()

    def write_now(self) -> None:
        """Write the derived files now. The caller must not hold the lock."""
        with self.lock():
            self.write_derived()

    @computing()
    def write_derived(self) -> None:
        """Write what follows from the journal: prompts, parsed outputs, manifest and usage (R29, R30).

        Done when the cast pauses or ends, for the steps since the last time, so that
        what a step costs does not grow with the cast.
        """
        journal, session = self.journal, self.session
        if journal is None or (self._artifacts.has_written(session) and not self._unwritten):
            return
        self.write_waiting()
        try:
            journal.wake()
            self._artifacts.now(session, journal.mark)
        finally:
            if session.state.status in _OVER:
                journal.rest()
                close_servers(str(self.files.path))

    def nothing_is_due(self) -> None:
        """Record that all derived files are up to date."""
        self._artifacts.mark_written(self.session)
        if self.session.state.status in _OVER and self.journal is not None:
            self.journal.rest()

    def close(self) -> None:
        """Write what is still due, and let go of the journal and the lock.

        What a disk refuses, or somebody else writes by now, is written when the cast is next resumed.
        """
        try:
            with suppress(MateriaError):
                self.write_derived()
        finally:
            self.journal = None
            close_servers(str(self.files.path))
            self._artifacts.stop()
            if self._close is not None:
                self._close()
