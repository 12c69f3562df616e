"""One cast: the only place where engine, agents, utilities and store meet.

A cast stops between steps, never inside one: waiting for a person ends the call,
and the next call goes on. Every change is written to the journal before it is
believed, so the journal always rebuilds what this object holds.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from materia_nb.agents.base import Agent, Turn, TurnKind
from materia_nb.agents.registry import AgentTable
from materia_nb.agents.sound import SoundReply, agent_failure, sound
from materia_nb.consults import Consults
from materia_nb.edits import Edits
from materia_nb.engine import step as engine
from materia_nb.engine.facts import learned_from
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState, Failure, Mode, Visit
from materia_nb.errors import MateriaError
from materia_nb.handoff.contract import Grant
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Graph
from materia_nb.memories import Memories
from materia_nb.stops import Pause, Stops
from materia_nb.store import derived
from materia_nb.store.context import change_context, read_context
from materia_nb.store.envelopes import PROTOCOL as ENVELOPE
from materia_nb.store.envelopes import keep_envelope
from materia_nb.store.evidence import missing_evidence
from materia_nb.store.files import DiskError, disk, sync_folder, to_bytes
from materia_nb.store.history import History, StepRecord
from materia_nb.store.journal import Journal, mend, read_journal
from materia_nb.store.lock import CastLock
from materia_nb.store.recorded import ENGINE, cast_start, check_resumable, read_recorded
from materia_nb.store.replay import Difference, Replay, replay
from materia_nb.store.rundir import RunDir, branch_suffix, new_run_dir, output_name
from materia_nb.utilities.runner import command_record, run_utility, stdin_document

_TURN_KIND: Final[Mapping[Mode, TurnKind]] = {
    "work": "work",
    "repair": "repair",
    "draft": "refine",
    "final": "finalize",
    "resume": "resume",
}


_WORDS: Final = {
    "socket_refinement": "refinement",
    "socket_held": "held",
    "socket_continued": "continued",
}
"""What the artifact of an output is called that did not complete its socket, by its event; else ``refused``."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a cast is started from.

    Attributes:
        graph: the loadout, resolved; the cast keeps it whatever happens to the files.
        document: the config as written, cut down to this loadout and its materia.
        source: where it came from, in words, for the journal.
        project: the directory that utilities and agents work in.
        root: the directory that run directories are made in.
        utilities: directories with copies of the shipped utility scripts, which come before the packaged ones.
        sync: whether every step is forced to the disk (fsync), which is slower.
        data: what the state holds before the first step.
    """

    graph: Graph
    document: Mapping[str, JSON]
    source: str
    project: Path
    root: Path
    utilities: tuple[Path, ...] = ()
    sync: bool = False
    data: Mapping[str, JSON] = field(default_factory=dict)


class Cast(Stops, Edits, Consults, Memories):
    """One run of a loadout. Make one with ``Workbench.cast`` or ``Workbench.open``."""

    def __init__(  # noqa: PLR0913 - the parts of a cast, by name
        self,
        run_dir: RunDir,
        rules: Rules,
        history: History,
        *,
        project: Path,
        agents: AgentTable | None = None,
        utilities: tuple[Path, ...] = (),
        journal: Journal | None = None,
        lock: CastLock | None = None,
        differences: Sequence[Difference] = (),
        messages: Sequence[str] = (),
    ) -> None:
        """Put the parts together; used by :meth:`start`, :meth:`open` and :meth:`resume`."""
        self.run_dir = run_dir.path
        self.id = run_dir.path.name
        self.rules = rules
        self.project = project
        self.agents = agents or AgentTable()
        self.differences = tuple(differences)
        self.messages = list(messages)
        self.breakpoints = {}
        self.watchpoints = {}
        self.stop = threading.Event()
        self._files = run_dir
        self._history = history
        self._utilities = utilities
        self._journal = journal
        self._turns = _turn_counts(history, rules)
        self._derived = 0
        self._writer = threading.Lock()
        self._holder = 0
        self._astray = False
        self._grant: Grant | None = None
        self._watchers: list[Callable[[Cast], None]] = []
        self._close = weakref.finalize(self, _let_go, journal, lock)

    # -- making one ---------------------------------------------------------------

    @classmethod
    def start(cls, plan: Plan, request: str, agents: AgentTable | None = None) -> Self:
        """Make the run directory, write how the cast begins, and return it before its first step."""
        rules = Rules(plan.graph)
        knowledge = read_context(plan.root) if rules.tells_knowledge else {}
        path = new_run_dir(plan.root)
        files = RunDir(path, sync=plan.sync)
        owners = {m.id: str(m.owner) for s in plan.graph.sockets.values() if (m := s.materia).owner}
        start: dict[str, JSON] = {
            "request": request,
            "configSource": plan.source,
            "artifactRoot": str(plan.root),
            "loadout": plan.graph.name,
            "project": str(plan.project),
            "owners": owners,
            "engine": ENGINE,
        }
        if knowledge:
            start["knowledge"] = knowledge
        if plan.data:
            start["state"] = dict(plan.data)
        history = History(engine.begin(rules, request, knowledge, plan.data))
        lock: CastLock | None = None
        journal: Journal | None = None
        try:
            lock = CastLock(path)
            files.replace_json("config.resolved.json", dict(plan.document))
            journal = Journal(files.journal, sync=plan.sync)
            journal.append([("cast_start", start)])
            if plan.sync:
                with disk(path, "make the directory of the cast"):
                    sync_folder(str(path))
                    sync_folder(str(plan.root))
        except BaseException:
            _let_go(journal, lock)
            shutil.rmtree(path, ignore_errors=True)  # nothing of the cast is recorded
            raise
        return cls(
            files,
            rules,
            history,
            project=plan.project,
            agents=agents,
            utilities=plan.utilities,
            journal=journal,
            lock=lock,
        )

    @classmethod
    def open(cls, path: Path, agents: AgentTable | None = None) -> Self:
        """Open a run directory to look at it, one of the reference engine too. Nothing is written.

        ``differences`` says where our engine would not have taken the recorded route, and
        ``messages`` what of the recording could not be read.

        Raises:
            MateriaError: there is no cast (``no_cast``, ``no_journal``, ``no_config``), its loadout is
                invalid, or its journal is damaged (``damaged_journal``).
        """
        files = RunDir(path)
        recorded = read_recorded(files)
        rules = Rules(recorded.graph)
        done = replay(rules, recorded.contents.lines, files.read_text)
        messages = list(done.messages)
        if not cast_start(recorded.contents):
            messages.append("The journal does not say how the cast began.")
        if recorded.contents.torn:
            messages.append("The last line of the journal is torn; it was left out.")
        return cls(
            files,
            rules,
            done.history,
            project=recorded.project,
            agents=agents,
            differences=done.differences,
            messages=messages,
        )

    @classmethod
    def resume(
        cls,
        path: Path,
        agents: AgentTable | None = None,
        *,
        utilities: tuple[Path, ...] = (),
        sync: bool = False,
    ) -> Self:
        """Open a run directory to go on with it: takes its lock and sets a torn last line aside.

        Raises:
            DiskError: the directory cannot be written.
            MateriaError: as :meth:`open`; also ``not_ours``, ``not_begun``, ``locked`` (naming the
                owner), and ``missing_artifact`` when an output that the journal names cannot be
                read, since going on without it would silently lose a step.
        """
        files = RunDir(path, sync=sync)
        check_resumable(files)
        lock = CastLock(path)
        journal: Journal | None = None
        try:
            recorded = read_recorded(files)
            rules = Rules(recorded.graph)
            done = replay(rules, recorded.contents.lines, files.read_text, strict=True)
            aside = mend(files.journal, recorded.contents)
            journal = Journal(files.journal, sync=sync)
        except BaseException:
            _let_go(journal, lock)
            raise
        if aside:
            done.messages.append(f"The last line of the journal was torn; it was set aside in {aside.name}.")
        return cls(
            files,
            rules,
            done.history,
            project=recorded.project,
            agents=agents,
            utilities=utilities,
            journal=journal,
            lock=lock,
            differences=done.differences,
            messages=done.messages,
        )

    def close(self) -> None:
        """Let go of the journal and the lock; the cast can still be looked at."""
        with self._hold():
            self._journal = None
            self._close()

    def show(self, panel: str | None = None) -> Any:
        """Show the cast with buttons in a notebook, or one of its panels: graph, items, state, timeline ...

        The value is a widget; showing it again in the same cell closes the earlier one.

        Raises:
            MateriaError: there is no such panel (``unknown_panel``).
        """
        from materia_nb.widgets import bench

        return bench.show(self) if panel is None else bench.show_one(self, panel)

    # -- going on -------------------------------------------------------------------

    def step(self) -> StepRecord | None:
        """Run one socket. Returns its record, or None when the cast only came to its end.

        A person's socket is entered and left waiting. Interrupting leaves the socket
        waiting as well; the next step runs it again.
        """
        self.stop.clear()
        return self._step()

    def enter(self) -> StepRecord | None:
        """Enter the next socket without running it: its prompt can then be read, and edited, before it is asked.

        ``step`` or ``reply`` goes on. Returns the step's record, None when the cast only came to its end.
        """
        with self._hold():
            self._begin()
            if self.status == "ready":
                self._enter()
            elif self.status != "waiting":
                raise self._over()
            if self.status != "ready":
                self._write_derived()
            return self.steps[-1] if self.waiting_at else None

    def run(self, until: str | Callable[[Cast], bool] | None = None, *, steps: int | None = None) -> Pause:
        """Step until the cast is over or must stop, and say why it stopped.

        Breakpoints and a socket given as ``until`` stop the run in front of a socket, but not
        in front of the one where it starts; a watched path stops it behind the step that changed it.

        Args:
            until: a socket to stop in front of (``end`` for the end), or a condition looked at
                before each step.
            steps: the most steps to take.

        Raises:
            MateriaError: the cast is over; the failure itself when it failed.
        """
        if isinstance(until, str):
            self._known(until, also_end=True)
        if self.status not in ("ready", "waiting"):
            raise self._over()
        self.stop.clear()
        taken = 0
        try:
            while not (pause := self._pause(until, steps, taken)):
                self._step()
                taken += 1
        except BaseException:
            # What went wrong is told; that the derived files are not there yet follows from it.
            with contextlib.suppress(MateriaError):
                self.write_derived()
            raise
        self.write_derived()
        return pause

    def _step(self) -> StepRecord | None:
        with self._hold():
            self._begin()
            return self._advance()

    def _advance(self) -> StepRecord | None:
        if self.status == "ready":
            self._enter()
        elif self.status != "waiting":
            raise self._over()
        record = None
        if (visit := self.waiting_at) is not None:
            if self.rules.sockets[visit.socket].socket.is_utility:
                self._run_utility(visit)
            else:
                self._ask()
            record = self.steps[-1]
        if self.status != "ready":
            self._write_derived()
        return record

    def reply(self, answer: str | Mapping[str, JSON]) -> StepRecord:
        """Answer the agent socket that is waiting, as a person; an object is sent as JSON.

        An answer that breaks the handoff's rules is refused as an agent's would be: the
        step stays open for a repair turn, and fails when there is none left (R19).
        """
        with self._hold():
            self._begin()
            if self.status == "ready":
                self._enter()
            visit = self._visit()
            if self.rules.sockets[visit.socket].socket.is_utility:
                raise MateriaError(
                    f"{visit.socket} is a utility; a process answers there.",
                    hint="step runs it",
                    kind="not_an_agent",
                )
            self._arrived(sound(dict(answer) if isinstance(answer, Mapping) else answer, "The reply"))
            self._write_derived()
            return self.steps[-1]

    def refine(self, message: str) -> StepRecord:
        """Ask a multi-turn agent to change its draft, in the conversation of this visit."""
        self.stop.clear()
        with self._hold():
            self._begin()
            visit = self._visit()
            if visit.mode != "draft" or not visit.drafts:
                raise MateriaError(
                    f"{visit.socket} has no draft to refine.",
                    hint="only a multi-turn socket that has answered can be refined",
                    kind="no_draft",
                )
            said = to_bytes(message).decode()
            event = ("refinement_message", {**engine.about(self.rules, visit), "text": said})
            self._commit([event], lambda _: self._history.refined(said))
            self._ask()
            self._write_derived()
            return self.steps[-1]

    def finalize(self) -> StepRecord:
        """Accept the draft of a multi-turn socket: its agent is asked for the final result."""
        self.stop.clear()
        with self._hold():
            self._begin()
            visit, prompt = self._visit(), self._history.prompt
            step = engine.finalize(self.rules, self.now, prompt or engine.prompt_for(self.rules, self.now))
            event = ("refinement_final", engine.about(self.rules, visit))
            self._commit([event], lambda ts: self._history.moved(step, ts))
            self._ask()
            self._write_derived()
            return self.steps[-1]

    def abort(self, reason: str = "stopped by the person") -> None:
        """Stop the cast; recast or revive goes on with it. A step that another thread runs is ended first."""
        self.stop.set()
        with self._hold():
            self._begin()
            if self.status not in ("ready", "waiting", "held"):
                raise self._over()
            self._move(engine.abort(self.now, reason))

    def recast(self) -> StepRecord | None:
        """Run the socket where a failed or aborted cast stopped once more, from its first prompt."""
        return self._again(engine.recast)

    def revive(self) -> StepRecord | None:
        """Go on with a failed or aborted cast, with the limit that stopped it granted once more."""
        return self._again(engine.revive)

    def _again(self, transition: Callable[[Rules, CastState], engine.Step]) -> StepRecord | None:
        self.stop.clear()
        with self._hold():
            self._begin()
            step = transition(self.rules, self.now)
            self._commit(step.events, lambda ts: self._history.again(step, ts))
            self._told()
            if self.status in ("ready", "waiting"):
                return self._advance()
            self._write_derived()
            return self.steps[-1] if self.steps else None

    def set_budget(self, max_tokens: int | None) -> None:
        """Change the token budget of this cast only; None takes it away (R20)."""
        # what comes from a notebook need not be what the annotation says
        if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 0):
            raise MateriaError(
                f"A budget is a whole number of tokens, not {max_tokens!r}.",
                hint="give a number from 0, or None for no limit",
                kind="bad_budget",
            )
        with self._hold():
            self._begin()
            state = engine.set_budget(self.now, max_tokens)
            self._commit(
                [("budget_set", {"maxTokens": max_tokens})], lambda _: self._history.rebudgeted(state)
            )
            self._told()

    def write_derived(self) -> None:
        """Write what follows from the journal: prompts, parsed outputs, manifest and usage (R29, R30).

        Done when the cast pauses or ends, for the steps since the last time, so that
        what a step costs does not grow with the cast.
        """
        with self._hold():
            self._holder = threading.get_ident()
            self._write_derived()

    def _write_derived(self) -> None:
        if self._journal is not None:
            self._derived = derived.write(self._files, self.rules, self._history, self._derived)

    # -- how a step is made -----------------------------------------------------------

    def _hold(self) -> threading.Lock:
        """The lock to write under; an error when this thread holds it already and would wait for itself."""
        if self._writer.locked() and self._holder == threading.get_ident():
            raise MateriaError(
                "The cast is in the middle of a step.",
                hint="an agent, a watcher or a utility's caller cannot go on with the cast that waits for it",
                kind="busy",
            )
        return self._writer

    def _begin(self) -> None:
        """Begin to write, under the lock."""
        self._holder = threading.get_ident()
        self._needs_writable()
        if self._astray:
            self._recover()

    def _commit(self, events: Sequence[tuple[str, Mapping[str, JSON]]], keep: Callable[[int], None]) -> None:
        """Write events to the journal, then believe them: ``keep`` gets their time stamp.

        An interrupt between the two would leave this object behind its journal, so it is
        then rebuilt from there.
        """
        self._needs_writable()
        assert self._journal is not None  # noqa: S101 - _needs_writable raises otherwise
        try:
            self._astray = True
            keep(self._journal.append(events))
            self._astray = False
        except DiskError:
            self._astray = False  # nothing of the events stayed, and nothing was believed
            raise
        except BaseException:
            self._recover()
            raise

    def _recover(self) -> None:
        """Rebuild the history from the journal."""
        done: Replay = replay(self.rules, read_journal(self._files.journal).lines, self._files.read_text)
        self._history = done.history
        self._turns = _turn_counts(done.history, self.rules)
        self._astray = False

    def _enter(self) -> None:
        step = engine.enter(self.rules, self.now)
        number = {"step": step.state.steps}
        events = [(event.type, {**event.data, **number}) for event in step.events]
        self._commit(events, lambda ts: self._history.entered(step, ts))
        self._told()

    def _run_utility(self, visit: Visit) -> None:
        socket = self.rules.sockets[visit.socket].socket
        materia, now = socket.materia, self.now
        item = visit.item
        document = stdin_document(
            materia=materia,
            cwd=self.project,
            run_dir=self.run_dir,
            request=now.request,
            cast_id=self.id,
            socket_id=visit.socket,
            state=now.data,
            item=item.value if item else None,
            item_key=item.key if item else None,
            item_label=item.label if item else None,
            cursor=(item.cursor, item.position) if item else None,
            cursors=now.cursors,
        )
        about = engine.about(self.rules, visit)
        base = output_name(visit.socket, visit.visit, None, self._branch())
        name = self._files.write_json(f"{base}.input.json", document)
        self._commit([("utility_input", {**about, "artifact": name, "visit": visit.visit})], _nothing)
        names = (f"{base}.command.stdout.txt", f"{base}.command.stderr.txt")
        result = run_utility(
            materia,
            document,
            project=self.project,
            utilities=self._utilities,
            artifacts=names,
            stop=self.stop,
        )
        record = command_record(materia, result, names)
        self._files.write(names[0], result.process.stdout)
        self._files.write(names[1], result.process.stderr)
        self._files.write_json(f"{base}.command.json", record)
        self._commit([("utility_command", {**about, **record, "visit": visit.visit})], _nothing)
        if result.failure is None:
            self._arrived(SoundReply(result.stdout, None, {}))
        elif result.failure.kind != "interrupted":
            self._fail(result.failure.kind, result.failure.message, "correct the utility, then recast")

    def _ask(self) -> None:
        """Ask the agent until the visit is done or a person must answer.

        Whatever an agent raises, short of an interrupt, fails the cast: the journal says why,
        and recast asks again.
        """
        while (visit := self.waiting_at) is not None and not self.stop.is_set():
            drafts = visit.drafts
            agent = self.agents.for_turn(visit.socket, self._materia(visit).id)
            try:
                answer = agent.answer(self._turn(visit))
                reply = None if answer is None else sound(answer, f"The agent {agent.name}")
            except Exception as error:  # noqa: BLE001 - agents are other people's code
                if self.stop.is_set() and getattr(error, "kind", None) == "interrupted":
                    return
                self._fail(*agent_failure(agent, visit.socket, error))
                return
            if reply is None:
                return
            self._arrived(reply)
            if (now := self.waiting_at) is not None and now.drafts > drafts:
                return  # a draft is for the person to judge

    def _turn(self, visit: Visit) -> Turn:
        materia = self._materia(visit)
        item = visit.item
        return Turn(
            socket_id=visit.socket,
            materia_id=materia.id,
            materia_label=materia.label,
            visit=visit.visit,
            kind=_TURN_KIND[visit.mode] if not (visit.mode == "draft" and not visit.drafts) else "work",
            prompt=self._history.asked,
            conversation=self.conversation,
            item_key=item.key if item else None,
            item_label=item.label if item else None,
            tools=materia.tools,
            model=materia.model,
            thinking=materia.thinking,
            wants=self.rules.sockets[visit.socket].wants,
            request=self.now.request,
            cast_id=self.id,
            project=self.project,
            stop=self.stop,
            index=self._turns[visit.socket],
            materia_index=self._turns[f"materia {materia.id}"],
            turn_of_visit=visit.turn,
            grant=self._grant,
        )

    def _arrived(self, reply: SoundReply) -> None:
        """An output is there: decide, keep it on disk, then in the journal, then here."""
        visit = self._visit()
        text = to_bytes(reply.text).decode()
        step = engine.output(self.rules, self.now, text, reply.usage, self._history.prompt)
        name = self._files.write_text(self._output_name(visit, step), text)
        events = [(event.type, self._with_output(event, name, reply, step)) for event in step.events]

        missing: list[str] = []
        if self.rules.sockets[visit.socket].protocol.name == ENVELOPE:
            missing = missing_evidence(step.reading, self.project, self.run_dir)
        if missing:
            about = engine.about(self.rules, visit)
            events.insert(1, ("evidence_missing", {**about, "visit": visit.visit, "paths": missing}))

        self._grant = None  # what is left of it ends with the turn

        def keep(ts: int) -> None:
            if not self.rules.sockets[visit.socket].socket.is_utility:
                self._turns[visit.socket] += 1
                self._turns[f"materia {self._materia(visit).id}"] += 1
            self._history.answered(step, text, name, reply.usage, ts)
            self._history.lacking(missing)

        before = self.now
        self._commit(events, keep)
        self._keep_beside(visit, step, before)
        self._told()

    def _keep_beside(self, visit: Visit, step: engine.Step, before: CastState) -> None:
        """Keep what others than this cast read: the envelope, and what was learned about the project.

        The journal has it already, so a disk that refuses is told and stops nothing.
        """
        here = self.rules.sockets[visit.socket]
        if here.protocol.name == "sparse":
            return
        done = step.events[0].type == "socket_complete"
        reading = step.reading or (before.hold.reading if before.hold else None)
        try:
            keep_envelope(
                self.run_dir, self.rules, before, visit, reading, self.steps[-1].ended or 0, done=done
            )
            if step.state.knowledge is not before.knowledge and reading is not None:
                value = reading.value
                change_context(
                    self.run_dir.parent,
                    lambda stored: learned_from(self.rules, here, before, value, stored).knowledge,
                )
        except MateriaError as error:
            self.messages.append(" ".join(str(error).split()))

    def _output_name(self, visit: Visit, step: engine.Step) -> str:
        kind = step.events[0].type
        branch = self._branch()
        if kind == "socket_complete":
            return output_name(visit.socket, visit.visit, _key(visit), f"{branch}.md")
        # Numbered by the turns of the visit, so that no recast or revival writes over an earlier one.
        number = len(self.steps[-1].turns) + 1
        word = _WORDS.get(kind, "refused")
        return output_name(visit.socket, visit.visit, _key(visit), f"{branch}.{word}-{number}.md")

    def _branch(self) -> str:
        return branch_suffix(len(self._history.abandoned))

    def _with_output(
        self, event: engine.Event, name: str, reply: SoundReply, step: engine.Step
    ) -> Mapping[str, JSON]:
        if event.type not in derived.OUTPUT_TYPES:
            return event.data
        data = {**event.data, "artifact": name}
        if reply.usage is not None:
            data["usage"] = reply.usage._asdict()
        if reply.meta:
            data["meta"] = reply.meta
        if event.type == "socket_complete" and step.decision is not None and step.decision.target:
            data["next"] = step.decision.target
        return data

    def _fail(self, kind: str, message: str, hint: str) -> None:
        """The waiting visit failed for a reason that the engine cannot know."""
        visit = self._visit()
        step = engine.fail(self.now, Failure(kind, to_bytes(message).decode(), visit.socket, hint))
        events = tuple(event._replace(data={**event.data, "hint": hint}) for event in step.events)
        self._move(step._replace(events=events))

    def _move(self, step: engine.Step) -> None:
        self._commit(step.events, lambda ts: self._history.moved(step, ts))
        self._told()
        if step.state.status in ("failed", "aborted"):
            self._write_derived()

    def _visit(self) -> Visit:
        visit = self.waiting_at
        if visit is None:
            raise MateriaError(
                f"No socket is waiting for an answer; the cast is {self.status}.",
                hint="step first",
                kind="not_waiting",
            )
        return visit

    def _materia(self, visit: Visit) -> Any:
        return self.rules.sockets[visit.socket].socket.materia

    def _needs_writable(self) -> None:
        if self._journal is None:
            raise MateriaError(
                "This cast was opened to be looked at.",
                where=str(self.run_dir),
                hint="resume it to go on with it",
                kind="read_only",
            )

    def _over(self) -> MateriaError:
        failure, hold = self.failure, self.held
        if hold is not None:
            ways = "approve or deny" if hold.needs == "consent" else "answer"
            return MateriaError(
                f"The cast is held ({hold.action}): {hold.reason}",
                where=self.now.at.socket if self.now.at else None,
                hint=f"{ways}, decide in the agent's place, correct its output (recommit), or abort",
                kind="held",
            )
        if failure is None:
            return MateriaError("The cast is complete.", hint="cast again to start another", kind="over")
        return MateriaError(failure.message, where=failure.socket, hint=failure.hint, kind=failure.kind)


def _nothing(_: int) -> None:
    """What a line means for the history that only says what was run."""


def _key(visit: Visit) -> str | None:
    return visit.item.key if visit.item else None


def _turn_counts(history: History, rules: Rules) -> Counter[str]:
    counts: Counter[str] = Counter()
    for step in history.steps:
        socket = rules.sockets[step.socket].socket
        if not socket.is_utility:
            counts[step.socket] += len(step.turns)
            counts[f"materia {socket.materia.id}"] += len(step.turns)
    return counts


def _let_go(journal: Journal | None, lock: CastLock | None) -> None:
    if journal is not None:
        journal.close()
    if lock is not None:
        lock.release()


__all__ = ["Agent", "Cast", "Pause", "Plan"]
