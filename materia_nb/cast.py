"""One cast: made, opened or resumed, and gone on with.

A cast stops between steps, never inside one: waiting for a person ends the call,
and the next call goes on.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from materia_nb.agents.base import Agent
from materia_nb.agents.registry import AgentTable
from materia_nb.agents.sound import sound
from materia_nb.consults import Consults
from materia_nb.edits import Edits
from materia_nb.engine import step as engine
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState
from materia_nb.errors import MateriaError
from materia_nb.handoff.contract import Grant
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Graph
from materia_nb.memories import Memories
from materia_nb.steps import turn_counts
from materia_nb.stops import Pause, Stopping
from materia_nb.store.context import read_context
from materia_nb.store.files import disk, sync_folder, to_bytes
from materia_nb.store.history import History, StepRecord
from materia_nb.store.journal import Journal, mend
from materia_nb.store.lock import CastLock
from materia_nb.store.recorded import ENGINE, cast_start, check_resumable, read_recorded
from materia_nb.store.replay import Difference, replay
from materia_nb.store.rundir import RunDir, new_run_dir


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


class Cast(Edits, Consults, Memories):
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
        self._stopping = Stopping()
        self.stop = threading.Event()
        self._files = run_dir
        self._history = history
        self._utilities = utilities
        self._journal = journal
        self._turns = turn_counts(history, rules)
        self._derived = 0
        self._writer = threading.Lock()
        self._holder = 0
        self._astray = False
        self._grant: Grant | None = None
        self._watchers: list[Callable[[Cast], None]] = []
        self._listeners, self._saying = [], []
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
        self._clear_stop()
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
        self._clear_stop()
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
        with self._hold():
            self._begin()
            self.stop.clear()
            visit = self._visit()
            self._needs_decided()
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
        with self._hold():
            self._begin()
            self.stop.clear()
            visit, prompt = self._visit(), self._history.prompt
            self._needs_decided()
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
            self._grant = None
            self._move(engine.abort(self.now, reason))

    def recast(self) -> StepRecord | None:
        """Run the socket where a failed or aborted cast stopped once more, from its first prompt."""
        return self._again(engine.recast)

    def revive(self) -> StepRecord | None:
        """Go on with a failed or aborted cast, with the limit that stopped it granted once more."""
        return self._again(engine.revive)

    def resend(self) -> StepRecord:
        """Ask the turn that failed, or was aborted, once more: same prompt, same conversation, same tool calls so far.

        Raises:
            MateriaError: no turn of an agent was cut short (``nothing_to_send``, ``not_stopped``).
        """
        with self._hold():
            self._begin()
            self.stop.clear()
            if self.prompt is None:  # else it waits already, perhaps in other words
                self._reopen()
            self._ask()
            self._write_derived()
            return self.steps[-1]

    def _again(self, transition: Callable[[Rules, CastState], engine.Step]) -> StepRecord | None:
        with self._hold():
            self._begin()
            self.stop.clear()
            step = transition(self.rules, self.now)
            self._grant = None
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


def _let_go(journal: Journal | None, lock: CastLock | None) -> None:
    if journal is not None:
        journal.close()
    if lock is not None:
        lock.release()


__all__ = ["Agent", "Cast", "Pause", "Plan"]
