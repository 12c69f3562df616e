"""Base class for running a cast or a lane: it calls agents, runs processes and applies their results.

This module creates the turns that agents answer and the JSON input of processes. It redacts secret keys in answers of
agents, in outputs of processes and in messages from people.
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
    AgentEvent,
    CallEvent,
    NeedsApproval,
    NoteEvent,
    TextEvent,
    UsageEvent,
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
from materia_nb.engine.outputs import CORRECT_UTILITY_HINT
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, branch_suffix, output_name, pending_action
from materia_nb.engine.state import NOTHING, UNREPORTED, CastState, Failure, Usage, Visit
from materia_nb.errors import MateriaError, redact, redact_json
from materia_nb.handoff.base import BASE
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Materia
from materia_nb.loadout.vocabulary import ALL_FILES
from materia_nb.platform import HeldInterrupts, Stop, released_slot
from materia_nb.store.file_snapshots import FileSnapshots
from materia_nb.store.files import MAX_CHANGED_FILES, FileStamps, changed_files, read_file_stamps, to_bytes
from materia_nb.store.rundir import RunDir, missing_evidence, write_side_files
from materia_nb.utilities.utility_step import UtilityResult, command_record, run_utility


def now() -> int:
    """Return the current time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def clean(text: str) -> str:
    """Replace every character that UTF-8 cannot encode, and return the string."""
    return to_bytes(text).decode()


def copy_answer(answer: str | Mapping[str, JSON]) -> str | dict[str, JSON]:
    """Return a person's answer. A string is returned unchanged, and a JSON object is copied."""
    return dict(answer) if isinstance(answer, Mapping) else answer


def redacted(text: str) -> str:
    """Redact secret keys, replace every character that UTF-8 cannot encode, and return the string."""
    return redact(text if text.isascii() else clean(text))


def redact_call(call: ToolCall) -> ToolCall:
    """Return the tool call with secret keys redacted in its arguments, its result and the accompanying message."""
    return replace(
        call, args=redact_json(dict(call.args)), said=redact(call.said), result=call.result and redact(call.result)
    )


def stopped_error(session: Session) -> MateriaError:
    """Return the error to raise if a caller tries to continue a cast that is on hold or has ended."""
    state = session.state
    failure, hold = state.failure, state.hold if state.status == "held" else None
    if hold is not None:
        choices = "approve or deny" if hold.needs == "approval" else "answer"
        return MateriaError(
            f"The cast is held ({hold.action}): {hold.reason}",
            where=state.at.socket if state.at else None,
            hint=f"{choices}, accept its output as it is (`accept`), correct it (`edit output`), or abort the cast (`abort`)",
            kind="held",
        )
    if failure is None:
        return MateriaError("The cast is complete.", hint="start another cast with `wb.cast(request)`", kind="over")
    return MateriaError(failure.message, where=failure.socket, hint=failure.hint, kind=failure.kind)


class Job(NamedTuple):
    """A unit of work for a visit.

    Attributes:
        run: a function that calls the agent or runs the process; it may be called in any thread.
        take: a function that applies the result of ``run`` and returns True if the cast or lane may continue; the
            caller must hold the lock of the cast.
        drop: a function to call if the result is not used. The job then ignores further reports of the agent.
        is_immediate: True if ``run`` returns immediately because the answer is already known; False by default.
    """

    run: Callable[[], object]
    take: Callable[[object], bool]
    drop: Callable[[], None] = lambda: None
    is_immediate: bool = False


class Work(ABC):
    """Runs the visits of a cast or of one of its lanes.

    Callers must hold the lock of the cast, except while they call the ``run`` function of a job.

    Attributes:
        main: the object that runs the cast itself: this object, unless this object runs a lane.
        lane: the name of the lane; "" for the cast itself.
        rules: the rules that the engine applies to the cast.
        session: the session of the cast or of the lane.
        run_dir: the run directory.
        agents: the configured agents, by socket or materia.
        utilities: directories that contain copies of the scripts shipped with this package.
        functions: the pinned functions by socket or materia, which the journal cannot store (R40).
        stop: a flag that stops a run, during the current step if possible and otherwise after it.
        messages: warnings to show to the user.
        last_exception: the most recent exception that an agent raised in this kernel, or None.
        recording: the lock that must be held while events are written to the journal.
        answer_chunks: the chunks of the current answer that have been received.
        worked: the working time of the waiting visit that no event has reported yet, in milliseconds.
        count_earlier_turns: a function that returns the number of turns of a socket and of its materia;
            None if the session contains these numbers.
    """

    lane = ""
    rules: Rules
    session: Session
    run_dir: RunDir
    agents: AgentTable
    utilities: tuple[Path, ...]
    functions: dict[str, Agent]
    stop: Stop
    messages: list[str]
    last_exception: Exception | None
    recording: AbstractContextManager[object]
    batches_writes = False
    count_earlier_turns: Callable[[str], tuple[int, int]] | None = None

    def __init__(self, main: Work) -> None:
        self.main = main
        self.answer_chunks: list[str] = []
        self.worked = 0
        self._files_before: FileStamps | None = None
        self._kept: FileSnapshots | None = None
        self._left_out: tuple[str, ...] = ()

    @property
    @abstractmethod
    def base(self) -> Path:
        """The working directory of agents and processes that have no sandbox scope."""

    @abstractmethod
    def save_files(self, by: str) -> None:
        """Save a snapshot of the project's files if the cast stores file snapshots. ``by`` is the trigger."""

    def keeper_of(self, folder: Path, name: str = "", *, own: bool = False, skip: Path | None = None) -> FileSnapshots:
        """Return the store that saves snapshots of a directory.

        Args:
            folder: the directory whose files are saved.
            name: a suffix that distinguishes the stores of lanes; "" for the cast itself.
            own: True if only this cast uses the directory.
            skip: a subdirectory that is not saved; none by default.
        """
        includes_ignored, name = self.session.snapshot_method == ALL_FILES, f"{self.run_dir.path.name}{name}"
        return FileSnapshots(folder, self.run_dir.path.parent, name, ignored=includes_ignored, own=own, skip=skip)

    def keep_with(self, keeper: Callable[[], FileSnapshots], by: str, *, lane: str = "", folder: str = "") -> None:
        """Save a file snapshot, and record an event if the files have changed since the previous snapshot.

        Args:
            keeper: a function that returns the store to save to.
            by: the cause of the change, such as ``start``, ``step`` or ``person``.
            lane: the name of the lane whose files are saved; "" for the files of the cast.
            folder: the directory of the lane, for its first snapshot only; "" otherwise.

        Raises:
            MateriaError: the files cannot be saved when the cast starts. A later failure only adds a message.
        """
        session = self.session
        step, before = len(session.steps), None if folder else session.files
        event = ev.FilesKept(step=step, by=by, folder=folder, lane=lane)
        try:
            snapshot = keeper().take(before)
            names = () if by == "start" else snapshot.changed
            event = event.replace(commit=snapshot.commit, left_out=snapshot.left_out)
            event = event.replace(changed=names[:MAX_CHANGED_FILES], in_all=len(names))
        except MateriaError as error:
            if by == "start" and not lane:
                raise
            event = event.replace(problem=" ".join(str(error).split()))
            lane_text = f" of the lane {lane}" if lane else ""
            self.messages.append(f"The files after step {step}{lane_text} were not saved: {event.problem}")
        if (event.commit, event.left_out) != (before, self._left_out):
            self._left_out = event.left_out
            self.main.apply(decide.record, event)

    @abstractmethod
    def apply(self, command: Callable[..., Events], *arguments: object, later: bool = False) -> None:
        """Apply the events that ``command(rules, session, *arguments, now)`` returns, and write them to the journal.

        With ``later``, the events are only queued; the caller must write them with :meth:`write_queued`.
        """

    def run_command(self, command: Callable[..., Events], *arguments: object) -> None:
        """Run a command of :mod:`materia_nb.engine.decide`, and apply and write its events immediately."""
        self.apply(command, *arguments)

    # -- steps ----------------------------------------------------------------------------

    def enter(self) -> None:
        """Enter the next socket, or complete the cast if there is no next socket."""
        self.worked = 0
        self.run_command(decide.enter)

    def ask(self, stops_after: Callable[[str], bool] = lambda _: False) -> None:
        """Call the agent or run the process until the visit is complete or a person must answer.

        ``stops_after`` is called with "" after each turn that does not complete the visit, and returns True to stop there.
        """
        while (job := self.job()) is not None:
            if not job.is_immediate:  # the job may call a model, so the journal must have its start even after a crash
                self.write_queued()
            may_continue = job.take(job.run())
            if job.is_immediate:  # write the start of the visit and its output together
                self.write_queued()
            if not may_continue or self.session.state.status != "waiting" or stops_after(""):
                return

    def report_text(self) -> None:
        """Notify followers that another chunk of an answer has been received."""
        self.main.report_text()

    def write_queued(self) -> None:
        """Write the queued events to the journal, if any."""
        self.main.write_queued()

    def job(self) -> Job | None:
        """Return the next job of the waiting visit, or None if a person must answer or no visit is waiting.

        An exception that the agent raises, except for an interrupt, fails the cast and is recorded in the journal;
        ``retry`` then calls the agent again.
        """
        due = pending_action(self.rules, self.session)
        if due is None or due.visit is None or due.what not in ("agent", "utility") or self.stop.is_set():
            return None
        pinned_agent = self._pinned_agent(due.visit) if self.session.pins else None
        try:
            folder = self.base if self.session.state.scope == BASE else self.folder()
        except MateriaError as error:
            self._fail(error.kind, f"{error.what} ({error.where})", error.hint or "")
            return None
        if due.what == "utility" and pinned_agent is None:
            return self._process(due.visit, folder)
        return self._question(due.visit, pinned_agent, folder)

    def pin_name_of(self, socket: str) -> str | None:
        """Return the name of the socket or materia whose pin applies to a socket, or None if no pin applies."""
        names = (socket, self.rules.sockets[socket].socket.materia.id)
        return next((name for name in names if name in self.session.pins), None)

    def _pinned_agent(self, visit: Visit) -> PinnedAgent | None:
        """Return the agent that gives the pinned answer of a visit, or None if its socket is not pinned (R40).

        Raises:
            MateriaError: the socket is pinned to a function that was lost with an earlier kernel (``pin_gone``).
        """
        name = self.pin_name_of(visit.socket)
        if name is None:
            return None
        pin = self.session.pins[name]
        if pin.kind == "function" and name not in self.functions:
            raise MateriaError(
                f"{name} is pinned to {pin.words}, which was lost when its kernel ended.",
                where=visit.socket,
                hint=f"pin {name} again, or unpin it to run it as usual",
                kind="pin_gone",
            )
        return PinnedAgent(pin, self.functions.get(name))

    def folder(self) -> Path:
        """Return the directory of the sandbox scope of the waiting visit, or the project if there is no scope (P8).

        Raises:
            MateriaError: the directory does not exist (``no_folder``), or it is outside the project and the user has
                not allowed it (``folder_asks``).
        """
        scope, project = self.session.state.scope, self.base
        if scope == BASE:
            return project
        folder = project / scope.cwd
        if not folder.is_dir():
            message = f"The scope {scope.id!r} works in a directory that does not exist."
            raise AgentError(
                message, where=str(folder), hint="create the directory, then use `retry`", kind="no_folder"
            )
        real, folder_permission = folder.resolve(), approvals.FOLDER_PREFIX + str(folder)
        if not real.is_relative_to(project.resolve()) and folder_permission not in self.session.allowed:
            raise AgentError(
                f"The scope {scope.id!r} works outside the project, in {real}.",
                where=str(folder),
                hint=f"use `cast.approvals.allow({folder_permission!r})` to let this cast work there; then use `retry`",
                kind="folder_asks",
            )
        return folder

    def _process(self, visit: Visit, folder: Path) -> Job:
        session, materia = self.session, self.materia(visit)
        document = utility_input(self.rules, session, visit, project=self.base, run_dir=self.run_dir.path)
        suffix = branch_suffix(len(session.abandoned))
        base = session.prefix + output_name(visit.socket, visit.visit, None, suffix)
        name = self.run_dir.write_json(f"{base}.input.json", document)
        about = routing.about(self.rules, visit)
        self.apply(decide.record, ev.UtilityInput(about=about, visit=visit.visit, artifact=name))
        names = (f"{base}.command.stdout.txt", f"{base}.command.stderr.txt")

        run = partial(
            run_utility, materia, document, cwd=folder, utilities=self.utilities, artifacts=names, stop=self.stop
        )

        def take(result: object) -> bool:
            assert isinstance(result, UtilityResult)  # noqa: S101 - the result of run
            record = command_record(materia, result, names)
            self.run_dir.write(names[0], result.process.stdout)
            self.run_dir.write(names[1], result.process.stderr)
            self.run_dir.write_json(f"{base}.command.json", record)
            event = from_json("utility_command", {**about, **record, "visit": visit.visit}, now())
            assert event is not None  # noqa: S101 - of a known type
            self.apply(decide.record, event)
            if result.failure is None:
                self.handle_reply(Answer(result.stdout, process=result.summary))
            elif result.failure != "interrupted":
                self._fail(result.failure, result.summary, CORRECT_UTILITY_HINT)
            return False

        return Job(partial(self._measure_time, run), take)

    def _measure_time(self, work: Callable[[], object]) -> object:
        """Call ``work`` and measure its duration. The next event of the visit reports the duration as working time."""
        started = now()
        try:
            with released_slot():
                return work()
        finally:
            self.worked += max(0, now() - started)

    def take_working_time(self) -> int:
        """Return the working time measured since the last call, in milliseconds, and reset it to 0."""
        work_time, self.worked = self.worked, 0
        return work_time

    def _question(self, visit: Visit, pinned: PinnedAgent | None, folder: Path) -> Job:
        socket_rules, run_dir = self.rules.sockets[visit.socket], self.run_dir.path
        socket = socket_rules.socket
        if self._files_before is None and socket_rules.protocol.needs_changed_files:
            self._files_before = self._snapshot_files()
        agent: Agent = pinned or self.agents.for_turn(visit.socket, socket.materia.id)
        self.answer_chunks = []
        before = self.count_earlier_turns(visit.socket) if self.count_earlier_turns is not None else None
        is_dropped = False  # reports of a dropped job are about a turn that is over

        def drop() -> None:
            nonlocal is_dropped
            is_dropped = True

        def run() -> object:
            nonlocal is_dropped
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
                    report=lambda event: None if is_dropped else self._handle_report(visit, agent, event),
                    before=before,
                    functions=NOTHING if isinstance(socket.materia.tools, str) else self.agents.tools,
                )
                return self._measure_time(partial(agent.answer, turn))
            except Exception as error:  # noqa: BLE001 - agents are other people's code
                return error
            finally:
                is_dropped = True
                if self.answer_chunks:
                    self.answer_chunks = []
                    self.report_text()

        take = partial(self._take_answer, visit, agent, name_of(pinned) if pinned else None)
        is_immediate = getattr(agent, "is_immediate", False) if pinned is None else pinned.function is None
        return Job(run, take, drop, is_immediate=is_immediate is True)

    def _take_answer(self, visit: Visit, agent: Agent, pinned: str | None, answer: Any) -> bool:
        """Process the answer or the exception of an agent. Return True if the cast or lane may continue."""
        if isinstance(answer, NeedsApproval):
            calls = tuple(map(redact_call, answer.calls))
            self.run_command(decide.record_in_turn, ev.ToolAsked(calls=calls, worked=self.take_working_time()))
            return False
        error = answer if isinstance(answer, Exception) else None
        reply = None
        if error is None and answer is not None:
            socket_rules = self.rules.sockets[visit.socket]
            try:
                any_text, thinks = visit.mode in socket_rules.free_text_modes, can_think(agent)
                reply = validate_reply(answer, _LazyName(agent), socket_rules.write, any_text=any_text, thinks=thinks)
                if reply.usage is not None:
                    reply = reply._replace(usage=self._add_cost(agent, visit, reply.usage))
            except Exception as invalid:  # noqa: BLE001 - agents are other people's code
                error = invalid
        if error is not None:
            self.main.last_exception = error.__cause__ if isinstance(error.__cause__, Exception) else error
            if not (self.stop.is_set() and getattr(error, "kind", None) == "interrupted"):
                kind, message, hint = agent_failure(agent, visit.socket, error)
                if self.rules.sockets[visit.socket].socket.is_utility:
                    hint = "fix or remove the pin, then use `retry`"
                self._fail(kind, message, hint)
        if reply is None:
            return False
        is_reported = reply.usage is not None or pinned is not None or getattr(agent, "is_immediate", False)
        # Unreported usage is unknown, not zero (R56).
        self.handle_reply(reply._replace(usage=reply.usage if is_reported else UNREPORTED, pinned=pinned))
        return True

    def _add_cost(self, agent: Agent, visit: Visit, used: Usage) -> Usage:
        """Return the usage with its cost added, if the config has prices for the model of the agent."""
        price = self.rules.graph.price(price_names(agent, self.materia(visit).model))
        cost = None if price is None else price.cost(used.input, used.output, used.cached)
        return used if cost is None else used._replace(cost=cost)

    def _handle_report(self, visit: Visit, agent: Agent, event: AgentEvent) -> None:
        """Process an event that an agent reports during its turn. Events of a turn that has ended are ignored."""
        waiting_visit = self.session.state.waiting_at
        if waiting_visit is None or (waiting_visit.step, waiting_visit.turn) != (visit.step, visit.turn):
            return
        match event:
            case TextEvent(text, fresh):
                if fresh:
                    self.answer_chunks = []
                self.answer_chunks.append(text)
                self.report_text()
            case CallEvent(call):
                self.run_command(decide.record_in_turn, ev.ToolCalled(call=redact_call(call)))
            case NoteEvent(text):
                self.run_command(decide.record_in_turn, ev.AgentNote(text=redacted(text)))
            case UsageEvent(usage):
                used = validate_usage(usage, f"The agent of {self.rules.graph.names[visit.socket]}")
                self.run_command(decide.record_in_turn, ev.TurnSpent(usage=self._add_cost(agent, visit, used)))

    def handle_reply(self, reply: Answer) -> None:
        """Apply an answer to the waiting visit.

        Secret keys are redacted first, and the changed files and the working time are added.
        """
        before, visit = self.session.state, self.session.state.at
        assert visit is not None  # noqa: S101 - an answered visit was entered
        protocol = self.rules.sockets[visit.socket].protocol
        files = self._snapshot_files() if protocol.needs_changed_files else None
        thought = reply.thinking if self.rules.graph.keep_thinking else ""
        answer = reply._replace(
            text=redacted(reply.text),
            meta=redact_json(dict(reply.meta)) if reply.meta else NOTHING,
            changed=changed_files(self._files_before, files) if protocol.needs_changed_files else (),
            thinking=truncate_thinking(redacted(thought)) if thought else "",
            cut=redacted(reply.cut) if reply.cut else "",
            worked=self.take_working_time(),
        )
        writes_side_files = "learn" in protocol.overridden or "file_content" in protocol.overridden
        can_batch_write = self.batches_writes and "artifacts" not in protocol.overridden and not writes_side_files
        command = self._answer_with_evidence if "artifacts" in protocol.overridden else decide.answer
        if self.session.snapshot_method:
            self._record_with_files(command, answer)
        else:
            self.apply(command, answer, later=can_batch_write)
        if protocol.needs_changed_files:
            next_visit = self.session.state.waiting_at
            # Later changes are only attributed to the agent if the same agent continues.
            self._files_before = files if next_visit is not None and next_visit.drafts == visit.drafts else None
        if writes_side_files:
            self.write_side_files(visit, before)

    def _record_with_files(self, command: Callable[..., Events], *arguments: object) -> None:
        """Write the events of a command together with the file snapshot, so that a crash cannot separate them."""
        with HeldInterrupts(), self.main.recording:
            self.apply(command, *arguments, later=True)
            self.save_files("step")
            self.write_queued()

    def _answer_with_evidence(self, rules: Rules, session: Session, answer: Answer, ts: int) -> Events:
        """Return the events of an answer, including an event about missing evidence files that the answer names."""
        events = decide.answer(rules, session, answer, ts)
        at = session.state.at
        assert at is not None  # noqa: S101 - an answered visit was entered
        reading = fold(rules, session, events).steps[-1].reading
        project = self.base / session.state.scope.cwd
        missing = missing_evidence(rules.sockets[at.socket].protocol, reading, project, self.run_dir.path)
        return decide.with_missing_evidence(events, tuple(missing)) if missing else events

    def _snapshot_files(self) -> FileStamps | None:
        """Return the size and modification time of each project file, to detect which files a visit changes."""
        project = self.base / self.session.state.scope.cwd
        return read_file_stamps(project, self.run_dir.path.parent)

    def write_side_files(self, visit: Visit, before: CastState) -> None:
        """Write the files that other programs read, see :func:`~materia_nb.store.rundir.write_side_files`.

        The journal contains the same data, so a disk error only adds a warning.
        """
        try:
            write_side_files(self.run_dir.path, self.rules, self.session, visit, before)
        except MateriaError as error:
            self.messages.append(" ".join(str(error).split()))

    def _fail(self, kind: str, message: str, hint: str) -> None:
        """Fail the waiting visit for a reason outside the engine, such as a missing directory."""
        self._files_before = None
        failure = Failure(kind, redacted(message), decide.waiting_visit_of(self.session).socket, redact(hint))
        self._record_with_files(decide.fail, failure, self.take_working_time())

    def materia(self, visit: Visit) -> Materia:
        """Return the materia at the socket of a visit."""
        return self.rules.sockets[visit.socket].socket.materia


class _LazyName(NamedTuple):
    """Formats the name of an agent for an error message only when the message is needed."""

    agent: Agent

    def __str__(self) -> str:
        return f"The agent {name_of(self.agent)}"


def utility_input(rules: Rules, session: Session, visit: Visit, *, project: Path, run_dir: Path) -> dict[str, JSON]:
    """Return the JSON object that a utility reads from stdin (R23). ``cwd`` is the directory of its scope (P8)."""
    state, item = session.state, visit.item
    materia, folder = rules.sockets[visit.socket].socket.materia, str(project / state.scope.cwd)
    return {
        "cwd": folder,
        "runDir": str(run_dir),
        "request": state.request,
        "castId": run_dir.name,
        "socketId": visit.socket,
        "materiaId": materia.id,
        "materiaLabel": materia.label,
        "params": dict(materia.params),
        "state": dict(state.data),
        "item": item.value if item else None,
        "itemKey": item.key if item else None,
        "itemLabel": item.label if item else None,
        "cursor": {"name": item.cursor, "index": item.position} if item else None,
        "cursors": dict(state.cursors),
        "executionScope": state.scope._replace(cwd=folder).as_json(),
        "baseScope": BASE._replace(cwd=str(project)).as_json(),
        **({} if state.lane is None else {"lane": state.lane.name}),
    }
