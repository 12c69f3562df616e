"""The work that a cast, or one of its lanes, waits for: ask agents, run processes, store the results, tell followers.

The turn of an agent and the document of a process are made here. Keys are removed from replies and from texts of people.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from materia_nb.agents.interface import (
    Agent,
    AgentError,
    Asking,
    Called,
    Noted,
    Said,
    Spent,
    Telling,
    agent_failure,
    can_think,
    make_turn,
    name_of,
    price_names,
    truncate_thinking,
    validate_reply,
    validate_usage,
)
from materia_nb.agents.notebook_agents import AgentTable, PinnedAgent
from materia_nb.engine import approvals, decide, routing
from materia_nb.engine import events as ev
from materia_nb.engine.conversation import ToolCall
from materia_nb.engine.decide import Answer
from materia_nb.engine.events import Events, from_json
from materia_nb.engine.evolve import fold
from materia_nb.engine.outputs import CORRECT_THE_UTILITY
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, branch_suffix, output_name, pending_here
from materia_nb.engine.state import NOTHING, UNREPORTED, CastState, Failure, Usage, Visit
from materia_nb.errors import MateriaError, scrubbed, scrubbed_json
from materia_nb.handoff.base import BASE
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Materia
from materia_nb.loadout.vocabulary import FILES_WITH_IGNORED
from materia_nb.platform import HeldInterrupts, Stop, resting
from materia_nb.store.file_snapshots import FileSnapshots
from materia_nb.store.files import MOST_CHANGED, FilesSeen, changed_files, take_snapshot, to_bytes
from materia_nb.store.rundir import RunDir, missing_evidence, write_side_files
from materia_nb.utilities.utility_step import UtilityResult, command_record, run_utility, stdin_document


def now() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def clean(text: str) -> str:
    """Return text with every character that UTF-8 cannot encode replaced."""
    return to_bytes(text).decode()


def given(answer: str | Mapping[str, JSON]) -> str | dict[str, JSON]:
    """Return an answer that a person gave as it is sent on: an object as a dict of its own."""
    return dict(answer) if isinstance(answer, Mapping) else answer


def redacted(text: str) -> str:
    """Return what an agent or a process said without keys, as UTF-8 can keep it."""
    return scrubbed(text if text.isascii() else clean(text))


def without_keys(call: ToolCall) -> ToolCall:
    """Cut keys out of a call: of what was asked for, said beside it, and told of it."""
    return replace(
        call,
        args=scrubbed_json(dict(call.args)),
        said=scrubbed(call.said),
        result=call.result and scrubbed(call.result),
    )


def over(session: Session) -> MateriaError:
    """Return the error for an attempt to continue a cast that is over or held."""
    state = session.state
    failure, hold = state.failure, state.hold if state.status == "held" else None
    if hold is not None:
        choices = "approve or deny" if hold.needs == "consent" else "answer"
        return MateriaError(
            f"The cast is held ({hold.action}): {hold.reason}",
            where=state.at.socket if state.at else None,
            hint=f"{choices}, accept its output as it is (accept), correct it (edit output), or abort",
            kind="held",
        )
    if failure is None:
        return MateriaError("The cast is complete.", hint="cast again to start another", kind="over")
    return MateriaError(failure.message, where=failure.socket, hint=failure.hint, kind=failure.kind)


class Job(NamedTuple):
    """One thing that is run for a visit: ``run`` in any thread, then ``take``, with what that gave, by whoever holds the cast.

    ``take`` says whether the same line of work may go on. ``drop`` has nothing taken any more that it tells, where it is
    not to be taken. ``at_once`` says that the answer is there already.
    """

    run: Callable[[], object]
    take: Callable[[object], bool]
    drop: Callable[[], None] = lambda: None
    at_once: bool = False


class Work(ABC):
    """One line of work: a cast itself, or one of its lanes. Whoever holds the cast calls it, but for what a job runs.

    Attributes:
        main: the line of work of the cast itself.
        lane: the lane that this is the work of; "" for the cast itself.
        rules: what the cast runs by.
        session: everything that is known in this line.
        files: the directory of the cast.
        agents: who answers.
        utilities: directories with copies of shipped scripts.
        functions: those that sockets and materia are pinned to; the journal cannot hold them (R40).
        stop: set to stop a run after, or if it can be stopped within, the step that runs.
        messages: what a person is to know.
        raised: what an agent raised last in this kernel.
        recording: the lock under which events become lines of the journal.
        saying: what the agent that is asked has said so far.
        worked: milliseconds of work on the visit that waits which no event tells yet: those of a turn that was interrupted.
        asked_before: how many turns a socket, and its materia, had, where the session does not say it.
    """

    lane = ""
    rules: Rules
    session: Session
    files: RunDir
    agents: AgentTable
    utilities: tuple[Path, ...]
    functions: dict[str, Agent]
    stop: Stop
    messages: list[str]
    raised: Exception | None
    recording: AbstractContextManager[object]
    goes_on = False
    asked_before: Callable[[str], tuple[int, int]] | None = None

    def __init__(self, main: Work) -> None:
        self.main = main
        self.saying: list[str] = []
        self.worked = 0
        self._files_before: FilesSeen | None = None
        self._kept: FileSnapshots | None = None
        self._left_out: tuple[str, ...] = ()

    @property
    @abstractmethod
    def base(self) -> Path:
        """The directory in which agents and processes work, but for their scope."""

    @abstractmethod
    def keep_files(self, by: str) -> None:
        """Keep the files of the project as they are now, where they are kept."""

    def keeper_of(self, folder: Path, name: str = "", *, own: bool = False, skip: Path | None = None) -> FileSnapshots:
        """Return what keeps the files of a folder, as this cast keeps them; ``name`` tells its lanes apart."""
        ignored, name = self.session.keeps == FILES_WITH_IGNORED, f"{self.files.path.name}{name}"
        return FileSnapshots(folder, self.files.path.parent, name, ignored=ignored, own=own, skip=skip)

    def keep_with(self, keeper: Callable[[], FileSnapshots], by: str, *, lane: str = "", folder: str = "") -> None:
        """Keep files, and tell it if they changed; with a ``folder`` as those that a lane begins with in it.

        Raises:
            MateriaError: they cannot be kept, at the start of the cast; later that is told and the cast goes on.
        """
        session = self.session
        step, before = len(session.steps), None if folder else session.files
        event = ev.FilesKept(step=step, by=by, folder=folder, lane=lane, ts=now())
        note = {"cast": self.files.path.name, "branch": len(session.abandoned), "step": step, "by": by}
        try:
            snapshot = keeper().take(before, {**note, "lane": lane} if lane else note)
            names = () if by == "start" else snapshot.changed
            event = event.replace(
                commit=snapshot.commit,
                left_out=snapshot.left_out,
                changed=names[:MOST_CHANGED],
                in_all=len(names),
            )
        except MateriaError as error:
            if by == "start" and not lane:
                raise
            event = event.replace(problem=" ".join(str(error).split()))
            of = f" of the lane {lane}" if lane else ""
            self.messages.append(f"The files after step {step}{of} are not kept: {event.problem}")
        if (event.commit, event.left_out) != (before, self._left_out):
            self._left_out = event.left_out
            self.main.apply(lambda _rules, _session, _ts: (event,))

    @abstractmethod
    def apply(self, command: Callable[..., Events], *arguments: object, later: bool = False) -> None:
        """Keep what a command leads to in this line of work: ``command(rules, session, *given, now)``.

        ``later``: the next write, which follows in the same call, has it too.
        """

    def run_command(self, command: Callable[..., Events], *arguments: object) -> None:
        """Carry out a command of :mod:`materia_nb.engine.decide` here."""
        self.apply(command, *arguments)

    # -- steps ----------------------------------------------------------------------------

    def enter(self) -> None:
        """Enter the next socket, or come to the end."""
        self.worked = 0
        self.run_command(decide.enter)

    def ask(self, breaks: Callable[[str], bool] = lambda _: False) -> None:
        """Ask the agent, or run the process, until the visit is done or a person must answer."""
        while (job := self.job()) is not None:
            if not job.at_once:  # it may call a model: a journal that ends here must say so
                self.write_waiting()
            goes_on = job.take(job.run())
            if job.at_once:  # the beginning of the visit and its output are one write
                self.write_waiting()
            if not goes_on or self.session.state.status != "waiting" or breaks(""):
                return

    def report_text(self) -> None:
        """Report that more of an answer has arrived."""
        self.main.report_text()

    def write_waiting(self) -> None:
        """Write what waits for the next write of the cast, if anything does."""
        self.main.write_waiting()

    def job(self) -> Job | None:
        """Return what is to be run next for the visit that waits; None where nothing is, or a person must answer.

        Whatever an agent raises when it is run, short of an interrupt, fails the cast: the journal says why, and recast
        asks again.
        """
        due = pending_here(self.rules, self.session)
        if due is None or due.visit is None or due.what not in ("agent", "utility") or self.stop.is_set():
            return None
        pinned = self._pinned(due.visit) if self.session.pins else None
        try:
            folder = self.base if self.session.state.scope == BASE else self.folder()
        except MateriaError as error:
            self._fail(error.kind, f"{error.what} ({error.where})", error.hint or "")
            return None
        if due.what == "utility" and pinned is None:
            return self._process(due.visit, folder)
        return self._question(due.visit, pinned, folder)

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

    def folder(self) -> Path:
        """Return the directory where the waiting visit works, that of its scope or the project (P8).

        Raises:
            MateriaError: it is not there (``no_folder``), or lies outside the project and nobody allowed it yet (``folder_asks``).
        """
        scope, project = self.session.state.scope, self.base
        if scope == BASE:
            return project
        folder = project / scope.cwd
        if not folder.is_dir():
            message = f"The scope {scope.id!r} works in a directory that is not there."
            raise AgentError(message, where=str(folder), hint="make it, then retry", kind="no_folder")
        real, leave = folder.resolve(), approvals.FOLDER + str(folder)
        if not real.is_relative_to(project.resolve()) and leave not in self.session.allowed:
            raise AgentError(
                f"The scope {scope.id!r} works outside the project, in {real}.",
                where=str(folder),
                hint=f"cast.approvals.allow({leave!r}) lets this cast work there; then retry",
                kind="folder_asks",
            )
        return folder

    def _process(self, visit: Visit, folder: Path) -> Job:
        session, materia = self.session, self.materia(visit)
        document = utility_input(self.rules, session, visit, project=self.base, run_dir=self.files.path)
        suffix = branch_suffix(len(session.abandoned))
        base = session.prefix + output_name(visit.socket, visit.visit, None, suffix)
        name = self.files.write_json(f"{base}.input.json", document)
        about = routing.about(self.rules, visit)
        self._record(ev.UtilityInput(about=about, visit=visit.visit, artifact=name, ts=now()))
        names = (f"{base}.command.stdout.txt", f"{base}.command.stderr.txt")

        def run() -> object:
            return self._timed(
                partial(
                    run_utility,
                    materia,
                    document,
                    cwd=folder,
                    utilities=self.utilities,
                    artifacts=names,
                    stop=self.stop,
                )
            )

        def take(result: object) -> bool:
            assert isinstance(result, UtilityResult)  # noqa: S101 - what run returned
            record = command_record(materia, result, names)
            self.files.write(names[0], result.process.stdout)
            self.files.write(names[1], result.process.stderr)
            self.files.write_json(f"{base}.command.json", record)
            event = from_json("utility_command", {**about, **record, "visit": visit.visit}, now())
            assert event is not None  # noqa: S101 - of a known type
            self._record(event)
            if result.failure is None:
                self.handle_reply(Answer(result.stdout, process=result.summary))
            elif result.failure.kind != "interrupted":
                self._fail(result.failure.kind, result.failure.message, CORRECT_THE_UTILITY)
            return False

        return Job(run, take)

    def _timed(self, work: Callable[[], object]) -> object:
        """Run an agent or a process and measure its working time, which the next event of the visit reports."""
        started = now()
        try:
            with resting():
                return work()
        finally:
            self.worked += max(0, now() - started)

    def take_working_time(self) -> int:
        """Return the measured working time in milliseconds, and reset it."""
        worked, self.worked = self.worked, 0
        return worked

    def _record(self, event: ev.Event) -> None:
        """Record an event about a process, which changes nothing else."""
        self.apply(lambda _rules, _session, _ts: (event,))

    def _question(self, visit: Visit, pinned: PinnedAgent | None, folder: Path) -> Job:
        socket_rules, run_dir = self.rules.sockets[visit.socket], self.files.path
        socket = socket_rules.socket
        if self._files_before is None and socket_rules.sees_changes:
            self._files_before = self._snapshot_files()
        agent: Agent = pinned or self.agents.for_turn(visit.socket, socket.materia.id)
        self.saying = []
        before = self.asked_before(visit.socket) if self.asked_before is not None else None
        dropped = False  # then what it still tells is of a turn that is over

        def drop() -> None:
            nonlocal dropped
            dropped = True

        def run() -> object:
            rules, session = self.rules, self.session
            try:
                document = None
                if socket.is_utility:
                    document = utility_input(rules, session, visit, project=self.base, run_dir=run_dir)
                turn = make_turn(
                    rules,
                    session,
                    visit,
                    folder=folder,
                    run_dir=run_dir,
                    document=document,
                    stop=self.stop,
                    tell=lambda telling: None if dropped else self._handle_report(visit, agent, telling),
                    before=before,
                    functions=NOTHING if isinstance(socket.materia.tools, str) else self.agents.tools,
                )
                return self._timed(partial(agent.answer, turn))
            except Exception as error:  # noqa: BLE001 - agents are other people's code
                return error
            finally:
                if self.saying:
                    self.saying = []
                    self.report_text()

        def take(answer: object) -> bool:
            nonlocal dropped
            dropped = True
            return self._take_answer(visit, agent, answer, name_of(pinned) if pinned else None)

        at_once = getattr(agent, "at_once", False) if pinned is None else pinned.function is None
        return Job(run, take, drop, at_once=at_once is True)

    def _take_answer(self, visit: Visit, agent: Agent, answer: Any, pinned: str | None) -> bool:
        """Handle what an agent answered or raised; return whether this line of work may continue."""
        if isinstance(answer, Asking):
            self.run_command(decide.ask, [without_keys(call) for call in answer.calls], self.take_working_time())
            return False
        error = answer if isinstance(answer, Exception) else None
        reply = None
        if error is None and answer is not None:
            socket_rules = self.rules.sockets[visit.socket]
            try:
                free, thinks = visit.mode in socket_rules.any_text, can_think(agent)
                reply = validate_reply(answer, _TheAgent(agent), socket_rules.write, free=free, thinks=thinks)
                if reply.usage is not None:
                    reply = reply._replace(usage=self._priced(agent, visit, reply.usage))
            except Exception as unsound:  # noqa: BLE001 - agents are other people's code
                error = unsound
        if error is not None:
            self.main.raised = error.__cause__ if isinstance(error.__cause__, Exception) else error
            if not (self.stop.is_set() and getattr(error, "kind", None) == "interrupted"):
                kind, message, hint = agent_failure(agent, visit.socket, error)
                if self.rules.sockets[visit.socket].socket.is_utility:
                    hint = "put it right, pin something else or unpin it, then retry"
                self._fail(kind, message, hint)
        if reply is None:
            return False
        if reply.usage is None and pinned is None and not getattr(agent, "at_once", False):
            reply = reply._replace(usage=UNREPORTED)  # somebody was asked who did not say (R56)
        self.handle_reply(reply._replace(pinned=pinned))
        return True

    def _priced(self, agent: Agent, visit: Visit, used: Usage) -> Usage:
        """Return what an agent used with the cost that follows from the prices of the config, if these have one for it."""
        price = self.rules.graph.price(price_names(agent, self.materia(visit).model))
        cost = None if price is None else price.of(used.input, used.output, used.cached)
        return used if cost is None else used._replace(cost=cost)

    def _handle_report(self, visit: Visit, agent: Agent, telling: Telling) -> None:
        """Handle a report of an agent while it answers; reports from a turn that is over are ignored."""
        at = self.session.state.waiting_at
        if at is None or (at.step, at.turn) != (visit.step, visit.turn):
            return
        match telling:
            case Said(text, fresh):
                if fresh:
                    self.saying = []
                self.saying.append(text)
                self.report_text()
            case Called(call):
                self.run_command(decide.called, without_keys(call))
            case Noted(text):
                self.run_command(decide.noted, redacted(text))
            case Spent(usage):
                used = validate_usage(usage, f"The agent of {visit.socket}")
                self.run_command(decide.spent, self._priced(agent, visit, used))

    def handle_reply(self, reply: Answer) -> None:
        """Handle a reply for the waiting socket: redact it, add the changed files and the working time, and apply it."""
        before, visit = self.session.state, self.session.state.at
        assert visit is not None  # noqa: S101 - what is answered was entered
        socket_rules = self.rules.sockets[visit.socket]
        files = self._snapshot_files() if socket_rules.sees_changes else None
        thought = reply.thinking if self.rules.graph.keep_thinking else ""
        answer = reply._replace(
            text=redacted(reply.text),
            meta=scrubbed_json(dict(reply.meta)) if reply.meta else NOTHING,
            changed=changed_files(self._files_before, files) if socket_rules.sees_changes else (),
            thinking=truncate_thinking(redacted(thought)) if thought else "",
            cut=redacted(reply.cut) if reply.cut else "",
            worked=self.take_working_time(),
        )
        writes_nothing_else = (
            socket_rules.naming is None and socket_rules.learner is None and socket_rules.filing is None
        )
        command = decide.answer if socket_rules.naming is None else self._answered
        if self.session.keeps:
            self._record_with_files(command, answer)
        else:
            self.apply(command, answer, later=writes_nothing_else and self.goes_on)
        if socket_rules.sees_changes:
            at = self.session.state.waiting_at
            # Unless the same agent goes on at once, what changes next is not its doing.
            self._files_before = files if at is not None and at.drafts == visit.drafts else None
        if socket_rules.learner is not None or socket_rules.filing is not None:
            self.write_side_files(visit, before)

    def _record_with_files(self, command: Callable[..., Events], *arguments: object) -> None:
        """Write what a command leads to and the files of the step in one write: no end of the process comes between the two."""
        with HeldInterrupts(), self.main.recording:
            self.apply(command, *arguments, later=True)
            self.keep_files("step")
            self.write_waiting()

    def _answered(self, rules: Rules, session: Session, answer: Answer, ts: int) -> Events:
        """Return the events of an answer, and which of the files that it says it made are not there."""
        events = decide.answer(rules, session, answer, ts)
        at = session.state.at
        naming = rules.sockets[at.socket].naming if at is not None else None
        assert naming is not None  # noqa: S101 - only such an answer is looked at
        reading = fold(rules, session, events).steps[-1].reading
        project = self.base / session.state.scope.cwd
        missing = missing_evidence(naming, reading, project, self.files.path)
        return decide.with_missing_evidence(events, tuple(missing)) if missing else events

    def _snapshot_files(self) -> FilesSeen | None:
        """Return the state of the project's files, for a protocol that checks which files a visit changes."""
        project = self.base / self.session.state.scope.cwd
        return take_snapshot(project, self.files.path.parent)

    def write_side_files(self, visit: Visit, before: CastState) -> None:
        """Keep what others than this cast read, see :func:`~materia_nb.store.rundir.write_side_files`.

        The journal has it already, so a disk that refuses is told and stops nothing.
        """
        try:
            write_side_files(self.files.path, self.rules, self.session, visit, before)
        except MateriaError as error:
            self.messages.append(" ".join(str(error).split()))

    def _fail(self, kind: str, message: str, hint: str) -> None:
        """Fail the waiting visit for a reason outside the engine."""
        self._files_before = None
        failure = Failure(kind, redacted(message), decide.waiting(self.session).socket, scrubbed(hint))
        self._record_with_files(decide.fail, failure, self.take_working_time())

    def materia(self, visit: Visit) -> Materia:
        """Return the materia that is placed at the socket of a visit."""
        return self.rules.sockets[visit.socket].socket.materia


class _TheAgent(NamedTuple):
    """What an agent is called in an error, worked out when there is one."""

    agent: Agent

    def __str__(self) -> str:
        return f"The agent {name_of(self.agent)}"


def utility_input(rules: Rules, session: Session, visit: Visit, *, project: Path, run_dir: Path) -> dict[str, JSON]:
    """Return what the process of a utility is given (R23)."""
    state, item = session.state, visit.item
    document = stdin_document(
        materia=rules.sockets[visit.socket].socket.materia,
        project=project,
        scope=state.scope,
        run_dir=run_dir,
        request=state.request,
        cast_id=run_dir.name,
        socket_id=visit.socket,
        state=state.data,
        item=item.value if item else None,
        item_key=item.key if item else None,
        item_label=item.label if item else None,
        cursor=(item.cursor, item.position) if item else None,
        cursors=state.cursors,
    )
    return document if state.lane is None else {**document, "lane": state.lane.name}
