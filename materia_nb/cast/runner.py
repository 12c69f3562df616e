"""The runner of a cast: it does what the session waits for and keeps what comes of it.

Here alone are threads, locks, the clock and the disk. Every change is events of :mod:`materia_nb.engine.decide`, folded by
:mod:`materia_nb.engine.evolve` as those of a journal are: they are written to the journal before the session that they make is
believed, so the journal always rebuilds what the cast holds.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from materia_nb.agents.agent_table import AgentTable
from materia_nb.agents.interface import (
    Agent,
    AgentError,
    Asking,
    Called,
    Noted,
    Reply,
    Said,
    SoundReply,
    Spent,
    Telling,
    agent_failure,
    name_of,
    sound,
    sound_usage,
)
from materia_nb.agents.notebook_agents import FunctionAgent, PinnedAgent
from materia_nb.agents.thinking import kept
from materia_nb.cast.breakpoint import Stops
from materia_nb.cast.followers import Followers
from materia_nb.cast.naming import needs_agent
from materia_nb.cast.snapshot import Definitions, Live, Snapshot, refuse_recorded
from materia_nb.cast.turns import document_of, now, over, redacted, turn_of, without_keys
from materia_nb.engine import decide, routing
from materia_nb.engine import events as ev
from materia_nb.engine.decide import Answer
from materia_nb.engine.event_json import from_json
from materia_nb.engine.events import Events
from materia_nb.engine.evolve import fold
from materia_nb.engine.outputs import CORRECT_THE_UTILITY
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Pending, Session, branch_suffix, files_after, output_name, pending
from materia_nb.engine.state import NOTHING, UNREPORTED, CastState, Failure, Visit
from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import BASE
from materia_nb.interrupts import Stop
from materia_nb.loadout.graph import Materia
from materia_nb.loadout.vocabulary import FILES_WITH_IGNORED
from materia_nb.platform import computing, resting
from materia_nb.secrets import scrubbed, scrubbed_json
from materia_nb.store.files import DiskError, changed_files, take_snapshot
from materia_nb.store.files import Snapshot as Files
from materia_nb.store.journal import Journal, Line, lines_of, read_journal
from materia_nb.store.kept_files import KeptFiles
from materia_nb.store.opening import not_kept
from materia_nb.store.reader import read_session
from materia_nb.store.reference import Difference
from materia_nb.store.rundir import ArtifactWriter, RunDir
from materia_nb.store.side_files import keep_beside, missing_evidence
from materia_nb.utilities.utility_step import command_record, run_utility

_LOOK_AGAIN_S = 0.002
_OVER = ("complete", "failed", "aborted")
"""Nothing goes on by itself any more: neither journal nor lock is held until the cast is changed."""


class Runner:
    """Runs one cast: one at a time changes it, under its lock.

    Attributes:
        session: everything the cast knows.
        stop: set it to stop a run after, or if it can be stopped within, the step that runs.
        saying: what the agent that is asked has said so far.
        functions: those that sockets and materia are pinned to; the journal cannot hold them (R40).
        raised: what an agent raised last in this kernel.
        stops: where runs stop.
        attempts: what was attempted last, also where that was interrupted.
        worked: milliseconds of work on the visit that waits which no event tells yet: those of a turn that was interrupted.
        running: whether a run goes from step to step, so that between them nobody else is taken to change files.
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
    ) -> None:
        """Put the parts together. Without a journal the cast can only be looked at."""
        self.files, self.rules, self.session = files, rules, session
        self.project, self.utilities = project, utilities
        self.agents = agents.copy(partial(needs_agent, rules.graph))  # its own (R47)
        self.journal = journal
        self.problems = problems
        self.stop = Stop()
        self.saying: list[str] = []
        self.functions: dict[str, Agent] = {}
        self.raised: Exception | None = None
        self.messages, self.differences = list(messages), tuple(differences)
        self.stops = Stops()
        self.attempts: object = None
        self.worked = 0
        self.definitions: Definitions | None = None
        self.followers = Followers(self.messages)
        self._artifacts = ArtifactWriter(files, rules)
        self._lock = threading.Lock()
        self._holder = 0
        self._astray = False
        self._unwritten: list[Line] = []
        self._written = session
        self._seen: Files | None = None
        self._kept: KeptFiles | None = None
        self._left_out: tuple[str, ...] = ()
        self.running = False
        self._close = weakref.finalize(self, journal.close) if journal is not None else None

    def snapshot(self) -> Snapshot:
        """Return the cast as it is now."""
        session = self.session  # read once: a step may end meanwhile
        gone = tuple(
            name
            for name, pin in session.pins.items()
            if pin.kind == "function" and name not in self.functions
        )
        live = Live(
            writable=self.journal is not None,
            saying=tuple(self.saying),
            stop_asked=self.stop.is_set(),
            stopping=self.stopping,
            raised=self.raised,
            stops=Stops(self.stops.conditions),
            pins_gone=gone,
            messages=tuple(self.messages),
            differences=self.differences,
            definitions=self.definitions,
        )
        return Snapshot(
            session,
            self.rules,
            self.files.path,
            self.base,
            problems=self.problems,
            answerers=self.answered_by,
            live=live,
        )

    # -- changing the cast ----------------------------------------------------------------

    def lock(self) -> threading.Lock:
        """Return the lock to hold while the cast is changed, for ``with``: an interrupt cannot leave it taken.

        Raises:
            MateriaError: this thread holds it already and would wait for itself (``busy``).
        """
        if self._lock.locked() and self._holder == threading.get_ident():
            raise MateriaError(
                "The cast is in the middle of a step.",
                hint="an agent, a watcher or a utility's caller cannot go on with the cast that waits for it",
                kind="busy",
            )
        return self._lock

    def begin(self) -> None:
        """Begin to change the cast, under the lock.

        Raises:
            MateriaError: it was opened to be looked at (``read_only``).
        """
        self._holder = threading.get_ident()
        if self.problems:
            refuse_recorded(self.problems, self.files.path)
        if self.journal is None:
            raise MateriaError(
                "This cast was opened to be looked at.",
                where=str(self.files.path),
                hint="resume it to go on with it",
                kind="read_only",
            )
        if self._astray:
            self._recover()
        if self._unwritten:
            self._write([], self.session)
        if not self.running:
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
        visit, who = self.session.state.waiting_at, "the step to end"
        if visit is not None and not self.rules.sockets[visit.socket].socket.is_utility:
            agent = self.agents.for_turn(visit.socket, self.materia(visit).id)
            name = self.answered_by(visit.socket) if isinstance(agent, FunctionAgent) else None
            who = f"{name or name_of(agent)} of {visit.socket} to return"
        return f"waits for {who} ({time.monotonic() - since:.0f} s)"

    def do(self, command: Callable[..., Events], *given: object) -> None:
        """Carry out a command of :mod:`materia_nb.engine.decide`: ``command(rules, session, *given, now)``."""
        self.keep(command(self.rules, self.session, *given, now()))

    def edit(self, command: Callable[..., Events], *given: object, while_running: bool = False) -> None:
        """Carry out a command: behind a step that is being made, or not at all then (``busy``)."""
        if not while_running:
            self.refuse_while_running()
        with self.lock():
            self.begin()
            self.do(command, *given)

    def and_ask(self, command: Callable[..., Events], *given: object) -> None:
        """Carry out a command that an agent goes on after."""
        with self.lock():
            self.begin()
            self.do(command, *given)
            self.stop.clear()
            self.ask()
            self.write_derived()

    def keep(self, events: Events, later: Callable[[Session], bool] | None = None) -> None:
        """Fold events, write them to the journal, then believe the session that they make and tell the watchers.

        ``later`` says of that session whether they wait for the next write, which then follows in the same call.
        """
        if events:
            session = fold(self.rules, self.session, events)
            if later is not None and later(session):
                self._write_later(events, session)
            else:
                self._write(lines_of(events, session, self.files), session)
        if self.followers.watchers:
            self.followers.tell()

    def _write_later(self, events: Events, session: Session) -> None:
        """Believe a session whose events go into the journal with the next write, in the same call."""
        lines = lines_of(events, session, self.files)
        self._astray = True  # until both are set: an interrupt may come between any two instructions
        self._unwritten = [*self._unwritten, *lines]
        self.session = session
        self._astray = False

    def _write(self, lines: list[Line], session: Session) -> None:
        """Write what waits and these lines, then believe ``session``; if it cannot be written, go back to what was.

        An interrupt between the two would leave the session behind its journal, so it is then read again.
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
            raise
        except BaseException:
            self._recover()
            raise

    def _recover(self) -> None:
        self._unwritten = []
        lines = read_journal(self.files.journal).lines
        self.session = self._written = read_session(self.rules, lines, self.files.text_of).session
        self._astray = False

    # -- the files of the project --------------------------------------------------------------

    @property
    def base(self) -> Path:
        """The directory that the cast works in: the project, or a folder of its own (a fork's, where files are kept)."""
        return self.files.path / self.session.folder if self.session.folder else self.project

    def kept_files(self) -> KeptFiles:
        """Return what keeps the files."""
        if self._kept is None or self._kept.folder != self.base:
            self._kept = KeptFiles(
                self.base,
                self.files.path.parent,
                self.files.path.name,
                ignored=self.session.keeps == FILES_WITH_IGNORED,
                own=bool(self.session.folder),
            )
        return self._kept

    def keep_files(self, by: str) -> None:
        """Keep the files as they are now, where they are kept, and tell it if they changed; who changed them is ``by``.

        Raises:
            MateriaError: they cannot be kept, at the start; later that is told and the cast goes on.
        """
        session = self.session
        if not session.keeps or self.journal is None:
            return
        step = len(session.steps)
        told = ev.FilesKept(step=step, by=by, ts=now())
        try:
            kept = self.kept_files().keep(
                session.files, {"cast": self.files.path.name, "step": step, "by": by}
            )
            told = replace(told, commit=kept.commit, left_out=kept.left_out)
        except MateriaError as error:
            if by == "start":
                raise
            told = replace(told, problem=" ".join(str(error).split()))
            self.messages.append(f"The files after step {step} are not kept: {told.problem}")
        known = (session.files, self._left_out)
        if (told.commit, told.left_out) != known:
            self._left_out = told.left_out
            self._log(told)

    def back_with_files(self, number: int) -> None:
        """Go back to a step, in the folder that the cast works in too; what is there now is kept before."""
        self.refuse_while_running()
        with self.lock():
            self.begin()
            events, now_kept = decide.back_to(self.rules, self.session, number, now()), self.session.files
            then = files_after(self.session, number)
            if now_kept is None or then is None:
                raise not_kept(number)
            fold(self.rules, self.session, events)  # refuses what cannot be gone back to
            self.kept_files().put(now_kept, then)
            self.keep(events)
            self._log(ev.FilesKept(step=number, commit=then, by="back", ts=now()))

    # -- steps ----------------------------------------------------------------------------

    def enter(self) -> None:
        """Enter the next socket, or come to the end."""
        self.worked = 0
        self.do(decide.enter)

    @computing()
    def advance(self, breaks: Callable[[], bool] = lambda: False) -> bool:
        """Run one socket; False when the cast only came to its end.

        ``breaks`` tells, after an output that is asked for once more, whether to stop before that.
        """
        if self.session.state.status not in ("ready", "waiting"):
            raise over(self.session)
        if self.session.state.status == "ready":
            self.worked = 0
            self.keep(decide.enter(self.rules, self.session, now()), self._answers_at_once)
        due = pending(self.rules, self.session)
        try:
            visit = due[0].visit if due else None
            if visit is not None and due[0].what == "utility" and self._pinned(visit) is None:
                self._run_utility(visit)
            else:
                self._ask(due, breaks)
        finally:
            if self._unwritten:
                self._write([], self.session)
        if self.session.state.status != "ready":
            self.write_derived()
        return bool(due)

    def _answers_at_once(self, session: Session) -> bool:
        """Whether the waiting visit is answered from what is there, so that one write can tell both.

        A function is not: it may call a model, and a journal that ends there must say so.
        """
        visit = session.state.waiting_at
        if visit is None:
            return False
        name = self.pin_of(visit.socket) if session.pins else None
        if name is not None:
            return session.pins[name].kind != "function"
        socket = self.rules.sockets[visit.socket].socket
        agent = None if socket.is_utility else self.agents.for_turn(socket.id, socket.materia.id)
        return getattr(agent, "at_once", False) is True

    def pin_of(self, socket: str) -> str | None:
        """Return the name whose pin answers a socket, its own or its materia's; None when none does."""
        names = (socket, self.rules.sockets[socket].socket.materia.id)
        return next((name for name in names if name in self.session.pins), None)

    def _pinned(self, visit: Visit) -> PinnedAgent | None:
        """Return who answers a visit in the place of its agent or process, because a person pinned it (R40).

        Raises:
            MateriaError: it is pinned to a function that is gone (``pin_gone``).
        """
        name = self.pin_of(visit.socket)
        if name is None:
            return None
        pin = self.session.pins[name]
        if pin.kind == "function" and name not in self.functions:
            raise MateriaError(
                f"{name} is pinned to {pin.words}, which is gone with its kernel.",
                where=visit.socket,
                hint=f"pin {name} again, or unpin it to let it be answered as usual",
                kind="pin_gone",
            )
        return PinnedAgent(pin, self.functions.get(name))

    def answered_by(self, socket: str) -> str | None:
        """Return who answers an agent's socket: a function, a model, a command, a person."""
        materia = self.rules.sockets[socket].socket.materia
        if materia.kind == "utility" or self.journal is None:
            return None
        agent = self.agents.for_turn(socket, materia.id)
        if isinstance(agent, FunctionAgent):
            return "a function" if agent.name == "<lambda>" else f"the function {name_of(agent)}"
        return materia.model or agent.name if agent.name == "model" else name_of(agent)

    def folder(self) -> Path:
        """Return the directory where the waiting visit works, that of its scope or the project (P8).

        Raises:
            MateriaError: it is not there (``no_folder``), or lies outside the project and nobody allowed it yet (``folder_asks``).
        """
        scope = self.session.state.scope
        folder = self.base / scope.cwd
        if scope == BASE:
            return folder
        if not folder.is_dir():
            what = f"The scope {scope.id!r} works in a directory that is not there."
            raise AgentError(what, where=str(folder), hint="make it, then retry", kind="no_folder")
        real, leave = folder.resolve(), decide.FOLDER + str(folder)
        if not real.is_relative_to(self.base.resolve()) and leave not in self.session.allowed:
            raise AgentError(
                f"The scope {scope.id!r} works outside the project, in {real}.",
                where=str(folder),
                hint=f"cast.approvals.allow({leave!r}) lets this cast work there; then retry",
                kind="folder_asks",
            )
        return folder

    def _run_utility(self, visit: Visit) -> None:
        try:
            folder = self.folder()
        except MateriaError as error:
            self._fail(error.kind, f"{error.what} ({error.where})", error.hint or "")
            return
        materia, about = self.materia(visit), routing.about(self.rules, visit)
        document = document_of(self.rules, self.session, visit, project=self.base, run_dir=self.files.path)
        base = output_name(visit.socket, visit.visit, None, branch_suffix(len(self.session.abandoned)))
        name = self.files.write_json(f"{base}.input.json", document)
        self._log(ev.UtilityInput(about=about, visit=visit.visit, artifact=name, ts=now()))
        names = (f"{base}.command.stdout.txt", f"{base}.command.stderr.txt")
        with self._working():
            result = run_utility(
                materia,
                document,
                cwd=folder,
                utilities=self.utilities,
                artifacts=names,
                stop=self.stop,
            )
        record = command_record(materia, result, names)
        self.files.write(names[0], result.process.stdout)
        self.files.write(names[1], result.process.stderr)
        self.files.write_json(f"{base}.command.json", record)
        told = from_json("utility_command", {**about, **record, "visit": visit.visit}, now())
        assert told is not None  # noqa: S101 - of a known type
        self._log(told)
        if result.failure is None:
            self.arrived(SoundReply(result.stdout, None, {}), result.told)
        elif result.failure.kind != "interrupted":
            self._fail(result.failure.kind, result.failure.message, CORRECT_THE_UTILITY)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Measure for how long an agent or a process is at work; the next event of the visit tells it."""
        begun = now()
        try:
            with resting():
                yield
        finally:
            self.worked += max(0, now() - begun)

    def _took(self) -> int:
        """Return what was measured, to be told now."""
        worked, self.worked = self.worked, 0
        return worked

    def _log(self, event: ev.Event) -> None:
        """Write an event that tells how a process is run, and changes nothing else."""
        self.keep((event,))

    def ask(self) -> None:
        """Ask the agent, or what is pinned, until the visit is done or a person must answer.

        Whatever an agent raises, short of an interrupt, fails the cast: the journal says why,
        and recast asks again.
        """
        self._ask(pending(self.rules, self.session))

    def _ask(self, due: tuple[Pending, ...], breaks: Callable[[], bool] = lambda: False) -> None:
        """Ask for what is due; of several things for the first, since one at a time is done here."""
        while due and due[0].what in ("agent", "utility") and not self.stop.is_set():
            visit = due[0].visit
            assert visit is not None  # noqa: S101 - somebody owes an output
            here = self.rules.sockets[visit.socket]
            if self._seen is None and here.sees_changes:
                self._seen = self._look()
            pinned = self._pinned(visit) if self.session.pins else None
            agent: Agent = pinned or self.agents.for_turn(visit.socket, here.socket.materia.id)
            self.saying = []
            try:
                self.folder()
                turn = turn_of(
                    self.rules,
                    self.session,
                    visit,
                    project=self.base,
                    run_dir=self.files.path,
                    stop=self.stop,
                    tell=partial(self._take, visit),
                )
                with self._working():
                    answer = agent.answer(turn)
                if isinstance(answer, Asking):
                    self.do(decide.ask, [without_keys(call) for call in answer.calls], self._took())
                    return
                reply = None if answer is None else self._sound(agent, answer, visit)
            except Exception as error:  # noqa: BLE001 - agents are other people's code
                self.raised = error.__cause__ if isinstance(error.__cause__, Exception) else error
                if self.stop.is_set() and getattr(error, "kind", None) == "interrupted":
                    return
                kind, message, hint = agent_failure(agent, visit.socket, error)
                if here.socket.is_utility:
                    hint = "put it right, pin something else or unpin it, then retry"
                self._fail(kind, message, hint)
                return
            finally:
                self.saying = []
                if self.followers.listeners:
                    self.followers.hear()
            if reply is None:
                return
            self.arrived(reply, pinned=name_of(pinned) if pinned else None)
            due = pending(self.rules, self.session)
            if due and due[0].visit is not None and breaks():
                return

    def _sound(self, agent: Agent, answer: Reply, visit: Visit) -> SoundReply:
        """Take a reply; what it used is unknown where somebody was asked who did not say (R56)."""
        here = self.rules.sockets[visit.socket]
        free = visit.mode in here.any_text
        reply = sound(answer, _TheAgent(agent), here.write, free=free)
        asked = not isinstance(agent, PinnedAgent) and not getattr(agent, "at_once", False)
        return reply._replace(usage=UNREPORTED) if asked and reply.usage is None else reply

    def _take(self, visit: Visit, telling: Telling) -> None:
        """Take what an agent tells while it answers; from a turn that is over, nothing is taken."""
        at = self.session.state.waiting_at
        if at is None or (at.step, at.turn) != (visit.step, visit.turn):
            return
        match telling:
            case Said(text, fresh):
                if fresh:
                    self.saying = []
                self.saying.append(text)
                self.followers.hear()
            case Called(call):
                self.do(decide.called, without_keys(call))
            case Noted(text):
                self.do(decide.noted, redacted(text))
            case Spent(usage):
                self.do(decide.spent, sound_usage(usage, f"The agent of {visit.socket}"))

    def arrived(
        self, reply: SoundReply, process: str = "", pinned: str | None = None, by: str | None = None
    ) -> None:
        """Take an output of the socket that waits.

        ``process`` says how the process of a utility ended (R23), ``pinned`` what it was pinned to, if it was (R40),
        ``by`` who gave it in the place of what had failed.
        """
        before, visit = self.session.state, self.session.state.at
        assert visit is not None  # noqa: S101 - what is answered was entered
        here = self.rules.sockets[visit.socket]
        files = self._look() if here.sees_changes else None
        answer = Answer(
            redacted(reply.text),
            usage=reply.usage,
            meta=scrubbed_json(dict(reply.meta)) if reply.meta else NOTHING,
            changed=changed_files(self._seen, files) if here.sees_changes else (),
            process=process,
            pinned=pinned,
            by=by,
            thinking=kept(redacted(reply.thinking))
            if reply.thinking and self.rules.graph.keep_thinking
            else "",
            cut=redacted(reply.cut) if reply.cut else "",
            worked=self._took(),
        )
        events = decide.answer(self.rules, self.session, answer, now())
        if here.naming is not None:
            reading = fold(self.rules, self.session, events).steps[-1].reading
            missing = missing_evidence(
                here.naming, reading, self.base / self.session.state.scope.cwd, self.files.path
            )
            if missing:
                events = decide.lacking(events, tuple(missing))
        self.keep(events)
        self.keep_files("step")
        if here.sees_changes:
            at = self.session.state.waiting_at
            # Unless the same agent goes on at once, what changes next is not its doing.
            self._seen = files if at is not None and at.drafts == visit.drafts else None
        if here.learner is not None or here.filing is not None:
            self.keep_beside(visit, before)

    def by_hand(self, reply: SoundReply, text: str) -> None:
        """Take a person's answer where the cast stopped: one write tells that it is by hand, and what it is.

        Raises:
            ~materia_nb.handoff.protocol.RefusedAnswer: it breaks the rules; nothing is recorded then (R42).
        """
        opened = decide.by_hand(self.rules, self.session, now())
        session = fold(self.rules, self.session, opened)
        decide.check_reply(self.rules, session, text)
        self.stop.clear()
        self._write_later(opened, session)
        try:
            self.arrived(reply, by="person")
        finally:
            if self._unwritten:
                self._write([], self.session)

    def _look(self) -> Files | None:
        """Look at the files of the project, for a visit whose protocol wants to know what changes."""
        return take_snapshot(self.base / self.session.state.scope.cwd, self.files.path.parent)

    def keep_beside(self, visit: Visit, before: CastState) -> None:
        """Keep what others than this cast read, see :func:`~materia_nb.store.side_files.keep_beside`.

        The journal has it already, so a disk that refuses is told and stops nothing.
        """
        try:
            keep_beside(self.files.path, self.rules, self.session, visit, before)
        except MateriaError as error:
            self.messages.append(" ".join(str(error).split()))

    def _fail(self, kind: str, message: str, hint: str) -> None:
        """Fail the waiting visit for a reason that the engine cannot know."""
        self._seen = None
        failure = Failure(kind, redacted(message), decide.waiting(self.session).socket, scrubbed(hint))
        self.keep(decide.fail(self.rules, self.session, failure, self._took(), now()))
        self.keep_files("step")
        self.write_derived()

    def write_now(self) -> None:
        """Write what follows from the journal at once; to be called by whoever does not hold the lock."""
        with self.lock():
            self.write_derived()

    @computing()
    def write_derived(self) -> None:
        """Write what follows from the journal: prompts, parsed outputs, manifest and usage (R29, R30).

        Done when the cast pauses or ends, for the steps since the last time, so that
        what a step costs does not grow with the cast.
        """
        journal, session = self.journal, self.session
        if journal is None or self._artifacts.has_written(session):
            return
        try:
            journal.wake()
            self._artifacts.now(session, journal.mark)
        finally:
            if session.state.status in _OVER:
                journal.rest()

    def materia(self, visit: Visit) -> Materia:
        """Return the materia that is placed at the socket of a visit."""
        return self.rules.sockets[visit.socket].socket.materia

    def nothing_is_due(self) -> None:
        """Take it that everything that follows from the journal is written."""
        self._artifacts.has_now(self.session)
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
            self._artifacts.stop()
            if self._close is not None:
                self._close()


class _TheAgent:
    """What an agent is called in an error, worked out when there is one."""

    __slots__ = ("_agent",)

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def __str__(self) -> str:
        return f"The agent {name_of(self._agent)}"
