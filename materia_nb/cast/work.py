"""The work of a cast or a lane: call agents, run processes, apply the results and notify followers.

This module creates the turns of agents and the input of processes. Secret keys are redacted in replies and in texts
from people.
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
from materia_nb.engine.outputs import CORRECT_THE_UTILITY
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, branch_suffix, output_name, pending_here
from materia_nb.engine.state import NOTHING, UNREPORTED, CastState, Failure, Usage, Visit
from materia_nb.errors import MateriaError, scrubbed, scrubbed_json
from materia_nb.handoff.base import BASE
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Materia
from materia_nb.loadout.vocabulary import ALL_FILES
from materia_nb.platform import HeldInterrupts, Stop, resting
from materia_nb.store.file_snapshots import FileSnapshots
from materia_nb.store.files import MAX_CHANGED_FILES, FileStamps, changed_files, take_snapshot, to_bytes
from materia_nb.store.rundir import RunDir, missing_evidence, write_side_files
from materia_nb.utilities.utility_step import UtilityResult, command_record, run_utility


def now() -> int:
    """Return the current time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def clean(text: str) -> str:
    """Replace every character of a text that UTF-8 cannot encode."""
    return to_bytes(text).decode()


def given(answer: str | Mapping[str, JSON]) -> str | dict[str, JSON]:
    """Return a person's answer; if it is an object, return a copy."""
    return dict(answer) if isinstance(answer, Mapping) else answer


def redacted(text: str) -> str:
    """Redact secret keys in a text from an agent or a process, and make it encodable as UTF-8."""
    return scrubbed(text if text.isascii() else clean(text))


def without_keys(call: ToolCall) -> ToolCall:
    """Redact secret keys in the arguments, the text and the result of a tool call."""
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
        choices = "approve or deny" if hold.needs == "approval" else "answer"
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
    """A unit of work for a visit.

    Call ``run`` in any thread, then pass its result to ``take`` while you hold the lock of the cast. ``take`` returns
    True if the cast or lane may continue. ``drop`` discards the reports of an unused task. ``at_once`` is True if the
    answer is already known.
    """

    run: Callable[[], object]
    take: Callable[[object], bool]
    drop: Callable[[], None] = lambda: None
    at_once: bool = False


class Work(ABC):
    """The work of a cast or of one of its lanes.

    Callers must hold the lock of the cast, except for the ``run`` of a job.

    Attributes:
        main: the work of the cast itself.
        lane: the name of the lane; "" for the cast itself.
        rules: the rules of the cast.
        session: the session of the cast or the lane.
        files: the run directory.
        agents: the agents, by socket or materia.
        utilities: directories with copies of shipped scripts.
        functions: the functions that sockets and materia are pinned to, which the journal cannot store (R40).
        stop: set to stop a run within the current step if possible, otherwise after the step.
        messages: messages for the person.
        raised: the latest exception of an agent in this kernel.
        recording: the lock under which events are written to the journal.
        saying: the parts of the current answer that have arrived.
        worked: working time of the waiting visit that no event has reported yet, in milliseconds.
        asked_before: returns the number of turns of a socket and of its materia; None if the session has these counts.
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
        self._files_before: FileStamps | None = None
        self._kept: FileSnapshots | None = None
        self._left_out: tuple[str, ...] = ()

    @property
    @abstractmethod
    def base(self) -> Path:
        """The directory in which agents and processes without a scope work."""

    @abstractmethod
    def keep_files(self, by: str) -> None:
        """Save the current files of the project, if the cast stores file snapshots."""

    def keeper_of(self, folder: Path, name: str = "", *, own: bool = False, skip: Path | None = None) -> FileSnapshots:
        """Return the store of file snapshots for a folder; ``name`` distinguishes the stores of lanes."""
        ignored, name = self.session.keeps == ALL_FILES, f"{self.files.path.name}{name}"
        return FileSnapshots(folder, self.files.path.parent, name, ignored=ignored, own=own, skip=skip)

    def keep_with(self, keeper: Callable[[], FileSnapshots], by: str, *, lane: str = "", folder: str = "") -> None:
        """Save the files, and record an event if they changed; ``folder`` is set for the first files of a lane.

        Raises:
            MateriaError: the files cannot be saved at the start of the cast. A later failure only adds a message.
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
            of = f" of the lane {lane}" if lane else ""
            self.messages.append(f"The files after step {step}{of} were not saved: {event.problem}")
        if (event.commit, event.left_out) != (before, self._left_out):
            self._left_out = event.left_out
            self.main.apply(decide.record, event)

    @abstractmethod
    def apply(self, command: Callable[..., Events], *arguments: object, later: bool = False) -> None:
        """Apply the events of ``command(rules, session, *arguments, now)``.

        If ``later`` is set, the events are queued for the next write, which must follow in the same call.
        """

    def run_command(self, command: Callable[..., Events], *arguments: object) -> None:
        """Run a command of :mod:`materia_nb.engine.decide`."""
        self.apply(command, *arguments)

    # -- steps ----------------------------------------------------------------------------

    def enter(self) -> None:
        """Enter the next socket, or complete the cast."""
        self.worked = 0
        self.run_command(decide.enter)

    def ask(self, breaks: Callable[[str], bool] = lambda _: False) -> None:
        """Call the agent, or run the process, until the visit is complete or a person must answer."""
        while (job := self.job()) is not None:
            if not job.at_once:  # the job may call a model, so the journal must have its start even after a crash
                self.write_waiting()
            goes_on = job.take(job.run())
            if job.at_once:  # write the start of the visit and its output together
                self.write_waiting()
            if not goes_on or self.session.state.status != "waiting" or breaks(""):
                return

    def report_text(self) -> None:
        """Notify followers that more of an answer has arrived."""
        self.main.report_text()

    def write_waiting(self) -> None:
        """Write the queued events, if any."""
        self.main.write_waiting()

    def job(self) -> Job | None:
        """Return the next job for the waiting visit, or None if there is none or a person must answer.

        An exception of an agent, other than an interrupt, fails the cast and is stored in the journal; ``retry`` calls
        the agent again.
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
        """Return the name of the socket or materia whose pin answers a socket, or None if there is no pin."""
        names = (socket, self.rules.sockets[socket].socket.materia.id)
        return next((name for name in names if name in self.session.pins), None)

    def _pinned(self, visit: Visit) -> PinnedAgent | None:
        """Return the pinned agent of a visit, or None (R40).

        Raises:
            MateriaError: the socket is pinned to a function of an earlier kernel (``pin_gone``).
        """
        name = self.pin_of(visit.socket)
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
        """Return the working directory of the waiting visit: its scope or the project (P8).

        Raises:
            MateriaError: the directory does not exist (``no_folder``), or is outside of the project and has not been
                allowed (``folder_asks``).
        """
        scope, project = self.session.state.scope, self.base
        if scope == BASE:
            return project
        folder = project / scope.cwd
        if not folder.is_dir():
            message = f"The scope {scope.id!r} works in a directory that does not exist."
            raise AgentError(message, where=str(folder), hint="create it, then retry", kind="no_folder")
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
        self.apply(decide.record, ev.UtilityInput(about=about, visit=visit.visit, artifact=name))
        names = (f"{base}.command.stdout.txt", f"{base}.command.stderr.txt")

        run = partial(
            run_utility, materia, document, cwd=folder, utilities=self.utilities, artifacts=names, stop=self.stop
        )

        def take(result: object) -> bool:
            assert isinstance(result, UtilityResult)  # noqa: S101 - the result of run
            record = command_record(materia, result, names)
            self.files.write(names[0], result.process.stdout)
            self.files.write(names[1], result.process.stderr)
            self.files.write_json(f"{base}.command.json", record)
            event = from_json("utility_command", {**about, **record, "visit": visit.visit}, now())
            assert event is not None  # noqa: S101 - of a known type
            self.apply(decide.record, event)
            if result.failure is None:
                self.handle_reply(Answer(result.stdout, process=result.summary))
            elif result.failure != "interrupted":
                self._fail(result.failure, result.summary, CORRECT_THE_UTILITY)
            return False

        return Job(partial(self._timed, run), take)

    def _timed(self, work: Callable[[], object]) -> object:
        """Run an agent or a process and measure its working time; the next event of the visit reports the time."""
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

    def _question(self, visit: Visit, pinned: PinnedAgent | None, folder: Path) -> Job:
        socket_rules, run_dir = self.rules.sockets[visit.socket], self.files.path
        socket = socket_rules.socket
        if self._files_before is None and socket_rules.protocol.needs_changed_files:
            self._files_before = self._snapshot_files()
        agent: Agent = pinned or self.agents.for_turn(visit.socket, socket.materia.id)
        self.saying = []
        before = self.asked_before(visit.socket) if self.asked_before is not None else None
        dropped = False  # reports of a dropped job are about a turn that is over

        def drop() -> None:
            nonlocal dropped
            dropped = True

        def run() -> object:
            nonlocal dropped
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
                    tell=lambda event: None if dropped else self._handle_report(visit, agent, event),
                    before=before,
                    functions=NOTHING if isinstance(socket.materia.tools, str) else self.agents.tools,
                )
                return self._timed(partial(agent.answer, turn))
            except Exception as error:  # noqa: BLE001 - agents are other people's code
                return error
            finally:
                dropped = True
                if self.saying:
                    self.saying = []
                    self.report_text()

        take = partial(self._take_answer, visit, agent, name_of(pinned) if pinned else None)
        at_once = getattr(agent, "at_once", False) if pinned is None else pinned.function is None
        return Job(run, take, drop, at_once=at_once is True)

    def _take_answer(self, visit: Visit, agent: Agent, pinned: str | None, answer: Any) -> bool:
        """Handle the answer or the exception of an agent; return True if the cast or lane may continue."""
        if isinstance(answer, NeedsApproval):
            calls = tuple(map(without_keys, answer.calls))
            self.run_command(decide.record_in_turn, ev.ToolAsked(calls=calls, worked=self.take_working_time()))
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
            except Exception as invalid:  # noqa: BLE001 - agents are other people's code
                error = invalid
        if error is not None:
            self.main.raised = error.__cause__ if isinstance(error.__cause__, Exception) else error
            if not (self.stop.is_set() and getattr(error, "kind", None) == "interrupted"):
                kind, message, hint = agent_failure(agent, visit.socket, error)
                if self.rules.sockets[visit.socket].socket.is_utility:
                    hint = "fix or remove the pin, then retry"
                self._fail(kind, message, hint)
        if reply is None:
            return False
        is_reported = reply.usage is not None or pinned is not None or getattr(agent, "at_once", False)
        # Unreported usage is unknown, not zero (R56).
        self.handle_reply(reply._replace(usage=reply.usage if is_reported else UNREPORTED, pinned=pinned))
        return True

    def _priced(self, agent: Agent, visit: Visit, used: Usage) -> Usage:
        """Return the usage with its cost, if the config has prices for the agent."""
        price = self.rules.graph.price(price_names(agent, self.materia(visit).model))
        cost = None if price is None else price.of(used.input, used.output, used.cached)
        return used if cost is None else used._replace(cost=cost)

    def _handle_report(self, visit: Visit, agent: Agent, event: AgentEvent) -> None:
        """Handle an agent's report during its turn; ignore reports from a turn that has ended."""
        at = self.session.state.waiting_at
        if at is None or (at.step, at.turn) != (visit.step, visit.turn):
            return
        match event:
            case TextEvent(text, fresh):
                if fresh:
                    self.saying = []
                self.saying.append(text)
                self.report_text()
            case CallEvent(call):
                self.run_command(decide.record_in_turn, ev.ToolCalled(call=without_keys(call)))
            case NoteEvent(text):
                self.run_command(decide.record_in_turn, ev.AgentNote(text=redacted(text)))
            case UsageEvent(usage):
                used = validate_usage(usage, f"The agent of {visit.socket}")
                self.run_command(decide.record_in_turn, ev.TurnSpent(usage=self._priced(agent, visit, used)))

    def handle_reply(self, reply: Answer) -> None:
        """Handle a reply for the waiting socket: redact it, add the changed files and the working time, and apply it."""
        before, visit = self.session.state, self.session.state.at
        assert visit is not None  # noqa: S101 - an answered visit was entered
        protocol = self.rules.sockets[visit.socket].protocol
        files = self._snapshot_files() if protocol.needs_changed_files else None
        thought = reply.thinking if self.rules.graph.keep_thinking else ""
        answer = reply._replace(
            text=redacted(reply.text),
            meta=scrubbed_json(dict(reply.meta)) if reply.meta else NOTHING,
            changed=changed_files(self._files_before, files) if protocol.needs_changed_files else (),
            thinking=truncate_thinking(redacted(thought)) if thought else "",
            cut=redacted(reply.cut) if reply.cut else "",
            worked=self.take_working_time(),
        )
        has_side_files = "learn" in protocol.overridden or "file_content" in protocol.overridden
        one_write = self.goes_on and "artifacts" not in protocol.overridden and not has_side_files
        command = self._answer_with_evidence if "artifacts" in protocol.overridden else decide.answer
        if self.session.keeps:
            self._record_with_files(command, answer)
        else:
            self.apply(command, answer, later=one_write)
        if protocol.needs_changed_files:
            at = self.session.state.waiting_at
            # Later changes are only attributed to the agent if the same agent continues.
            self._files_before = files if at is not None and at.drafts == visit.drafts else None
        if has_side_files:
            self.write_side_files(visit, before)

    def _record_with_files(self, command: Callable[..., Events], *arguments: object) -> None:
        """Write a command's events and the step's files in one write, so that a crash cannot separate them."""
        with HeldInterrupts(), self.main.recording:
            self.apply(command, *arguments, later=True)
            self.keep_files("step")
            self.write_waiting()

    def _answer_with_evidence(self, rules: Rules, session: Session, answer: Answer, ts: int) -> Events:
        """Return the events of an answer, with an event about missing files that the answer names."""
        events = decide.answer(rules, session, answer, ts)
        at = session.state.at
        assert at is not None  # noqa: S101 - an answered visit was entered
        reading = fold(rules, session, events).steps[-1].reading
        project = self.base / session.state.scope.cwd
        missing = missing_evidence(rules.sockets[at.socket].protocol, reading, project, self.files.path)
        return decide.with_missing_evidence(events, tuple(missing)) if missing else events

    def _snapshot_files(self) -> FileStamps | None:
        """Return the state of the project's files, for a protocol that checks the changes of a visit."""
        project = self.base / self.session.state.scope.cwd
        return take_snapshot(project, self.files.path.parent)

    def write_side_files(self, visit: Visit, before: CastState) -> None:
        """Write files for readers outside of this cast, see :func:`~materia_nb.store.rundir.write_side_files`.

        The journal also has the content of these files, so a disk error is only reported.
        """
        try:
            write_side_files(self.files.path, self.rules, self.session, visit, before)
        except MateriaError as error:
            self.messages.append(" ".join(str(error).split()))

    def _fail(self, kind: str, message: str, hint: str) -> None:
        """Fail the waiting visit for a reason that the engine cannot detect, such as a missing directory."""
        self._files_before = None
        failure = Failure(kind, redacted(message), decide.waiting(self.session).socket, scrubbed(hint))
        self._record_with_files(decide.fail, failure, self.take_working_time())

    def materia(self, visit: Visit) -> Materia:
        """Return the materia that is placed at the socket of a visit."""
        return self.rules.sockets[visit.socket].socket.materia


class _TheAgent(NamedTuple):
    """The name of an agent for an error message, computed only when the message is formatted."""

    agent: Agent

    def __str__(self) -> str:
        return f"The agent {name_of(self.agent)}"


def utility_input(rules: Rules, session: Session, visit: Visit, *, project: Path, run_dir: Path) -> dict[str, JSON]:
    """Return the object that a utility reads on stdin (R23); its ``cwd`` is the directory of its scope (P8)."""
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
