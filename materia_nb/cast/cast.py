"""One cast: made, opened or resumed, and gone on with.

A cast stops between steps, never inside one: waiting for a person ends the call,
and the next call goes on.
"""

from __future__ import annotations

import contextlib
import shutil
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from materia_nb.agents.base import Agent
from materia_nb.agents.registry import AgentTable
from materia_nb.agents.sound import sound
from materia_nb.cast.accepted import Suggestion, suggestion, with_entry
from materia_nb.cast.breakpoints import OVER, Breakpoints, Pause, check_socket
from materia_nb.cast.pins import Chosen, choose, needs_name, needs_pinned
from materia_nb.cast.redefining import CONFIG, redefined
from materia_nb.cast.runner import Runner, clean, let_go, now, over
from materia_nb.cast.snapshot import Snapshot
from materia_nb.engine import decide, evolve
from materia_nb.engine import events as ev
from materia_nb.engine.decide import Outcome
from materia_nb.engine.pins import Pin
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.replacing import replaced
from materia_nb.engine.rules import Rules
from materia_nb.engine.said import ToolCall
from materia_nb.engine.session import Session, StepRecord
from materia_nb.errors import MateriaError
from materia_nb.handoff.contract import Approval
from materia_nb.interrupts import HeldInterrupts, Stop
from materia_nb.jsonvalue import JSON, MISSING, json_copy, split_path, too_deep_to_write
from materia_nb.loadout.graph import Graph
from materia_nb.secrets import scrubbed
from materia_nb.store import derived
from materia_nb.store.asrecorded import as_recorded
from materia_nb.store.context import change_context, read_context
from materia_nb.store.differences import Difference
from materia_nb.store.files import disk, sync_folder
from materia_nb.store.fork import fork_files
from materia_nb.store.journal import Journal, lines_of, mend
from materia_nb.store.lock import CastLock
from materia_nb.store.reader import read_session
from materia_nb.store.recorded import ENGINE, cast_start, check_resumable, read_recorded
from materia_nb.store.rundir import RunDir, new_run_dir, place_of


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


class Cast(Snapshot):
    """One run of a loadout. Make one with ``Workbench.cast`` or ``Workbench.open``."""

    def __init__(  # noqa: PLR0913 - the parts of a cast, by name
        self,
        run_dir: RunDir,
        rules: Rules,
        session: Session,
        *,
        project: Path,
        agents: AgentTable | None = None,
        utilities: tuple[Path, ...] = (),
        journal: Journal | None = None,
        lock: CastLock | None = None,
        differences: Sequence[Difference] = (),
        messages: Sequence[str] = (),
        problems: Sequence[str] = (),
    ) -> None:
        """Put the parts together; used by :meth:`start`, :meth:`open` and :meth:`resume`."""
        self._runner = Runner(
            run_dir,
            rules,
            session,
            project=project,
            agents=agents or AgentTable(),
            utilities=utilities,
            journal=journal,
            lock=lock,
        )
        super().__init__(
            session, rules, run_dir.path, project, problems=problems, answerers=self._runner.answered_by
        )
        self.differences = tuple(differences)
        self.messages = self._runner.messages
        self.messages.extend(messages)
        self._breaks = Breakpoints()

    # -- making one ---------------------------------------------------------------

    @classmethod
    def start(cls, plan: Plan, request: str, agents: AgentTable | None = None) -> Self:
        """Make the run directory, write how the cast begins, and return it before its first step."""
        rules = Rules(plan.graph)
        begun = ev.CastStart(
            request=request,
            config_source=plan.source,
            artifact_root=str(plan.root),
            loadout=plan.graph.name,
            project=str(plan.project),
            owners={m.id: str(m.owner) for s in plan.graph.sockets.values() if (m := s.materia).owner},
            engine=ENGINE,
            knowledge=read_context(plan.root) if rules.tells_knowledge else {},
            state=dict(plan.data),
            ts=now(),
        )
        path = new_run_dir(plan.root)
        rules, begun = rules.in_session(path.name), replace(begun, session=path.name, place=place_of(path))
        files = RunDir(path, sync=plan.sync)
        lock: CastLock | None = None
        journal: Journal | None = None
        try:
            lock = CastLock(path)
            files.replace_json("config.resolved.json", dict(plan.document))
            journal = Journal(files.journal, sync=plan.sync)
            session = evolve.begin(rules, begun)
            journal.append(lines_of([begun], session, files))
            if plan.sync:
                with disk(path, "make the directory of the cast"):
                    sync_folder(str(path))
                    sync_folder(str(plan.root))
        except BaseException:
            let_go(journal, lock)
            shutil.rmtree(path, ignore_errors=True)  # nothing of the cast is recorded
            raise
        return cls(
            files,
            rules,
            session,
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
        ``messages`` what of the recording could not be read. A cast whose loadout cannot be cast here is
        shown as it was recorded, and ``messages`` says what is wrong with the loadout (R41).

        Raises:
            MateriaError: there is no cast (``no_cast``, ``no_journal``, ``no_config``), or its journal
                is damaged (``damaged_journal``).
        """
        files = RunDir(path)
        recorded = read_recorded(files, to_look=True)
        rules, lines = recorded.rules, recorded.contents.lines
        done = (as_recorded if recorded.problems else read_session)(rules, lines, files.read_text)
        messages = [*_not_castable(rules, recorded.problems), *done.messages]
        if not cast_start(recorded.contents):
            messages.append("The journal does not say how the cast began.")
        if recorded.contents.torn:
            messages.append("The last line of the journal is torn; it was left out.")
        return cls(
            files,
            rules,
            done.session,
            project=recorded.project,
            agents=agents,
            differences=done.differences,
            messages=messages,
            problems=recorded.problems,
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

        What a person allowed to tools counts only in the directory, on the machine and for the user that the
        cast began with; elsewhere they ask anew.

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
            rules = recorded.rules
            done = read_session(rules, recorded.contents.lines, files.read_text, strict=True)
            aside = mend(files.journal, recorded.contents)
            journal = Journal(files.journal, sync=sync)
        except BaseException:
            let_go(journal, lock)
            raise
        if aside:
            done.messages.append(f"The last line of the journal was torn; it was set aside in {aside.name}.")
        cast = cls(
            files,
            rules,
            done.session,
            project=recorded.project,
            agents=agents,
            utilities=utilities,
            journal=journal,
            lock=lock,
            differences=done.differences,
            messages=done.messages,
        )
        if not derived.is_current(files, cast.session):
            cast.write_derived()  # a crash may have come first
        start = cast_start(recorded.contents) or {}
        if start.get("place") != place_of(path) and cast._ask_anew():
            cast.messages.append(
                "What was allowed to tools was said elsewhere or by somebody else: they ask anew."
            )
        return cast

    def close(self) -> None:
        """Let go of the journal and the lock; the cast can still be looked at."""
        with self._runner.lock():
            self._runner.close()

    def _begin(self) -> None:
        self.needs_castable()
        self._runner.begin()

    def show(self, panel: str | None = None) -> Any:
        """Show the cast with buttons in a notebook, or one of its panels: graph, items, state, timeline ...

        The value is a widget; showing it again in the same cell closes the earlier one.

        Raises:
            MateriaError: there is no such panel (``unknown_panel``).
        """
        from materia_nb.widgets import bench

        return bench.show(self) if panel is None else bench.show_one(self, panel)

    # -- the present ------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """Everything that the cast knows now."""
        return self._runner.session

    @property
    def agents(self) -> AgentTable:
        """Who answers."""
        return self._runner.agents

    @agents.setter
    def agents(self, agents: AgentTable) -> None:
        self._runner.agents = agents

    @property
    def stop(self) -> Stop:
        """Set it to stop a run after, or if it can be stopped within, the step that runs."""
        return self._runner.stop

    @property
    def writable(self) -> bool:
        """Whether this object may go on with the cast."""
        return self._runner.journal is not None

    @property
    def saying(self) -> str:
        """What the agent that is asked has said so far of an answer that is still coming."""
        return scrubbed("".join(self._runner.saying))

    @property
    def raised(self) -> Exception | None:
        """What an agent raised last in this kernel, None when none did."""
        return self._runner.raised

    @property
    def stopping(self) -> str | None:
        """What a stop that was asked for still waits for, and for how long; None when it waits for nothing."""
        return self._runner.stopping

    def busy(self, wait: float = 0.0) -> bool:
        """Whether a step or an edit is being made, by whichever thread, still after ``wait`` seconds."""
        return self._runner.busy(wait)

    def watch(self, watcher: Callable[[Self], None]) -> Callable[[], None]:
        """Call ``watcher`` after every change; returns a function that ends it.

        A watcher that raises is not called again, and ``messages`` tells why.
        """
        me = weakref.ref(self)  # whoever watches must not keep the cast, and so its lock, alive

        def tell() -> None:
            if (cast := me()) is not None:
                watcher(cast)

        return _added(self._runner.watchers, tell)

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` whenever more of an answer has come (``saying``); returns a function that ends it.

        It is called often and must be quick; one that raises is not called again.
        """
        return _added(self._runner.listeners, listener)

    # -- going on -------------------------------------------------------------------

    def step(self) -> StepRecord | None:
        """Run one socket. Returns its record, or None when the cast only came to its end.

        A person's socket is entered and left waiting. Interrupting leaves the socket
        waiting as well; the next step runs it again.
        """
        with self._runner.lock():
            self._begin()
            self._runner.stop.clear()
            return self._advance()

    def _advance(self) -> StepRecord | None:
        return self.steps[-1] if self._runner.advance() else None

    def enter(self) -> StepRecord | None:
        """Enter the next socket without running it: its prompt can then be read, and edited, before it is asked.

        ``step`` or ``reply`` goes on. Returns the step's record, None when the cast only came to its end.
        """
        with self._runner.lock():
            self._begin()
            if self.status == "ready":
                self._runner.enter()
            elif self.status != "waiting":
                raise over(self.session)
            if self.status != "ready":
                self._runner.write_derived()
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
            check_socket(self.graph, until, also_end=True)
        if self.status not in ("ready", "waiting"):
            raise over(self.session)
        with self._runner.lock():
            self._begin()
            self._runner.stop.clear()
        taken = 0
        try:
            while not (pause := self._pause(until, steps, taken)):
                with self._runner.lock():
                    self._begin()
                    self._advance()
                taken += 1
        except BaseException:
            # What went wrong is told; that the derived files are not there yet follows from it.
            with contextlib.suppress(MateriaError):
                self.write_derived()
            raise
        self.write_derived()
        return pause

    def _pause(
        self, until: str | Callable[[Cast], bool] | None, steps: int | None, taken: int
    ) -> Pause | None:
        """Whether a run that has taken so many steps stops here, and why."""
        status = self.status
        if status in OVER:
            return OVER[status]
        if self._runner.stop.is_set():
            return "stopped"
        if (status == "waiting" and taken) or status == "held":
            return "person"
        if steps is not None and taken >= steps:
            return "steps"
        if taken and (self._breaks.hit(self) or self.changed_paths()):
            return "breakpoint"
        if callable(until):
            there = until(self)
        else:
            there = taken > 0 and until is not None and self._upcoming() == until
        return "until" if there else None

    def reply(self, answer: str | Mapping[str, JSON]) -> StepRecord:
        """Answer the agent socket that is waiting, as a person; an object is sent as JSON.

        An answer that breaks the handoff's rules is refused with all its issues: nothing is recorded, no
        repair turn is used up, and the socket goes on waiting (R42).

        Raises:
            ~materia_nb.handoff.refused.RefusedAnswer: the answer breaks the rules; ``issues`` says how.
            MateriaError: no agent is asked (``not_waiting``, ``not_an_agent``).
        """
        with self._runner.lock():
            self._begin()
            if self.status == "ready":
                self._runner.enter()
            visit = decide.waiting(self.session)
            if self.rules.sockets[visit.socket].socket.is_utility:
                raise MateriaError(
                    f"{visit.socket} is a utility; a process answers there.",
                    hint="step runs it",
                    kind="not_an_agent",
                )
            reply = sound(_given(answer), "The reply")
            try:
                decide.check_reply(self.rules, self.session, clean(reply.text))
                self._runner.arrived(reply)
            finally:
                self._runner.write_derived()
            return self.steps[-1]

    def refine(self, message: str) -> StepRecord:
        """Ask a multi-turn agent to change its draft, in the conversation of this visit."""
        return self._and_ask(decide.refine, clean(message))

    def finalize(self) -> StepRecord:
        """Accept the draft of a multi-turn socket: its agent is asked for the final result."""
        return self._and_ask(decide.finalize)

    def _and_ask(self, command: Callable[..., Outcome], *given: object) -> StepRecord:
        """Carry out a command that an agent goes on after."""
        with self._runner.lock():
            self._begin()
            self._runner.do(command, *given)
            self._runner.stop.clear()
            self._runner.ask()
            self._runner.write_derived()
            return self.steps[-1]

    def abort(self, reason: str = "stopped by the person") -> None:
        """Stop the cast; recast or revive goes on with it. A step that another thread runs is ended first."""
        self._runner.stop.set()
        with self._runner.lock():
            self._begin()
            if self.status not in ("ready", "waiting", "held"):
                raise over(self.session)
            self._runner.keep(decide.abort(self.session, reason, now()))
            self._runner.write_derived()

    def recast(self) -> StepRecord | None:
        """Run the socket where a failed or aborted cast stopped once more, from its first prompt."""
        return self._again(decide.recast)

    def revive(self) -> StepRecord | None:
        """Go on with a failed or aborted cast, with the limit that stopped it granted once more."""
        return self._again(decide.revive)

    def _again(self, command: Callable[..., Outcome]) -> StepRecord | None:
        with self._runner.lock():
            self._begin()
            self._runner.do(command)
            self._runner.stop.clear()
            if self.status in ("ready", "waiting"):
                return self._advance()
            self._runner.write_derived()
            return self.steps[-1] if self.steps else None

    def resend(self) -> StepRecord:
        """Ask the turn that failed, or was aborted, once more: same prompt, same conversation, same tool calls so far.

        Raises:
            MateriaError: no turn of an agent was cut short (``nothing_to_send``, ``not_stopped``).
        """
        # When it waits already, perhaps in other words, it only has to be asked.
        return self._and_ask(decide.resend if self.prompt is None else decide.nothing)

    def set_budget(self, max_tokens: int | None) -> None:
        """Change the token budget of this cast only; None takes it away (R20)."""
        with self._runner.lock():
            self._begin()
            self._runner.do(decide.set_budget, max_tokens)

    def write_derived(self) -> None:
        """Write what follows from the journal at once: prompts, outputs, manifest and usage (R29, R30, R43)."""
        with self._runner.lock():
            self._runner.write_derived()

    # -- where runs stop --------------------------------------------------------------

    @property
    def breakpoints(self) -> dict[str, Callable[[Cast], bool] | None]:
        """The sockets that runs stop in front of, each with its condition if it has one."""
        return self._breaks.sockets

    @property
    def watchpoints(self) -> dict[str, list[str]]:
        """The paths in the state that stop a run when a step changes what is there."""
        return self._breaks.paths

    def stops_as(self, shared: Breakpoints) -> None:
        """Share where runs stop with other casts; what this one was told already is shared too."""
        if shared is not self._breaks:
            shared.take_over(self._breaks)
            self._breaks = shared

    def break_at(self, socket: str, condition: Callable[[Cast], bool] | None = None) -> None:
        """Make runs stop in front of ``socket``, whenever ``condition`` holds if one is given.

        Raises:
            MateriaError: there is no such socket (``unknown_socket``).
        """
        check_socket(self.graph, socket)
        self._breaks.sockets[socket] = condition
        self._runner.tell()

    def break_on(self, path: str) -> None:
        """Make runs stop after a step that changes what stands at a dotted path in the state.

        Appearing and going away are changes too.

        Raises:
            MateriaError: the path names nothing (``bad_path``).
        """
        self._breaks.on(path)
        self._runner.tell()

    def clear_breaks(self, socket: str | None = None, path: str | None = None) -> None:
        """Take a breakpoint or a watched path away; without either, all of them."""
        self._breaks.clear(socket, path)
        self._runner.tell()

    def changed_paths(self) -> list[str]:
        """Return the watched paths that the latest step changed."""
        return self._breaks.changed(self.steps[-1]) if self.steps else []

    # -- approvals -------------------------------------------------------------------

    def allow(self, *tools: str) -> None:
        """Let these tools (``bash``, ``edit``, ``write``) run without asking, in this cast only.

        Raises:
            MateriaError: a name is not that of a tool which asks (``unknown_tool``).
        """
        with self._runner.lock():
            self._begin()
            self._runner.do(decide.allow, self.allowed | decide.known_tools(tools))

    def disallow(self, *tools: str) -> None:
        """Let these tools ask again; all of them if none is named."""
        with self._runner.lock():
            self._begin()
            gone = decide.known_tools(tools) if tools else self.allowed
            self._runner.do(decide.allow, self.allowed - gone)

    def _ask_anew(self) -> bool:
        """Take back what was allowed to tools; whether there was anything."""
        with self._runner.lock():
            self._begin()
            before = self.session
            self._runner.do(decide.ask_anew)
            return self.session is not before

    def answer(self, text: str) -> StepRecord:
        """Answer the agent that holds the cast; it goes on in the same conversation.

        Raises:
            MateriaError: the cast is not held (``not_held``), or the answer is blank.
        """
        return self._and_ask(decide.answer_hold, clean(text))

    def approve(self, *, always: bool = False, calls: Sequence[ToolCall] | None = None) -> StepRecord:
        """Approve what an agent asks a person for, and let it go on: tool calls, or one exact command.

        Consent to a command is for one use and expires.

        Args:
            always: whether later calls of the same tools need not ask in this cast.
            calls: the tool calls that were looked at; if others wait by now, they are not approved.

        Raises:
            MateriaError: nothing waits for approval, or other calls than ``calls`` (``not_asked``),
                or the request has expired (``approval``).
        """
        if self.asking or always or calls is not None:
            return self._and_ask(decide.decide_calls, "always" if always else "once", "", calls)
        return self._and_ask(decide.approve, self._asked())

    def deny(self, reason: str = "", *, calls: Sequence[ToolCall] | None = None) -> StepRecord:
        """Refuse what an agent asks a person for; it is told why, and goes on without. See :meth:`approve`."""
        if self.asking or calls is not None:
            return self._and_ask(decide.decide_calls, "denied", clean(reason), calls)
        return self._and_ask(decide.deny, self._asked(), clean(reason))

    def _asked(self) -> Approval:
        if self.held is None:
            raise MateriaError(
                f"Nothing waits for approval; the cast is {self.status}.",
                hint="allow lets a tool run without asking",
                kind="not_asked",
            )
        approval = self.approval
        if approval is None:
            needs = self.held.needs or "a decision"
            raise MateriaError(
                f"The agent does not ask for consent to a command but for {needs}.",
                hint="answer, or decide",
                kind="not_asked",
            )
        return approval

    def decide(self, *, satisfied: bool | None = None, target: str | None = None) -> StepRecord:
        """Decide in the place of the agent that holds the cast: its output is taken and the cast goes on.

        Args:
            satisfied: what counts as the output's word; as the output says itself if left out.
            target: the socket to go on to (``end`` for the end), whatever the edges say.

        Raises:
            MateriaError: the cast is not held (``not_held``), or there is no such socket.
        """
        with self._runner.lock():
            self._begin()
            self._runner.stop.clear()
            before, visit = self.session.state, decide.held(self.session)
            self._runner.do(decide.decide_hold, satisfied, target)
            self._runner.keep_beside(visit, before)
            self._runner.write_derived()
            return self.steps[-1]

    # -- edits ----------------------------------------------------------------------

    def edit_items(self, items: Sequence[JSON], origins: Sequence[int | None] | None = None) -> None:
        """Replace the work items.

        Cursors, retry counts and follow-up stay with the items that they belong to: a cursor
        stays at its item; when that one is removed the next becomes current.

        Args:
            items: the new list; each item has exactly a title and a context (R9).
            origins: for each item its index in the old list, None for a new one; found by comparing if left out.

        Raises:
            MateriaError: an item breaks a rule (kind ``items``), or a socket works on an item that
                is to be removed, or a step is running (kind ``busy``). Nothing was changed then.
        """
        given: object = items  # what a person typed need not be what the annotation says
        if not isinstance(given, list | tuple):
            raise MateriaError(
                "The work items must be a list.", hint="each has title and context", kind="items"
            )
        self._edit(decide.edit_items, json_copy(list(items)), origins)

    def edit_value(self, path: str, value: JSON) -> None:
        """Set one value in the state, or take it away (MISSING); work items are edited as such.

        Args:
            path: dotted, such as ``plan.approved`` or ``workItems.0.title``; objects on the way are made.
            value: what to set.

        Raises:
            MateriaError: the path names nothing (``bad_path``) or leads past the end of a list (``path``),
                or as :meth:`edit_items` and :meth:`edit_state`.
        """
        segments = split_path(path.strip())
        if not segments:
            raise MateriaError("The path names nothing.", hint="such as plan.approved", kind="bad_path")
        before: dict[str, JSON] = dict(self.state)
        if segments[0] == "workItems" and len(segments) > 1:
            before.setdefault("workItems", [])
        if value is not MISSING:
            value = json_copy(value)
        try:
            made = replaced(before, segments, value)
        except RecursionError as error:
            raise too_deep_to_write() from error
        if segments[0] == "workItems" and "workItems" in made:
            self.edit_items(made["workItems"])  # cursors and budgets go with them, each is checked (R9, R13)
        else:
            self.edit_state(made)

    def edit_state(self, data: Mapping[str, JSON]) -> None:
        """Replace the state's data.

        Raises:
            MateriaError: the data is not JSON, or a step is running (kind ``busy``).
        """
        given: object = data  # what a person typed need not be what the annotation says
        if not isinstance(given, Mapping):
            raise MateriaError("The state is an object.", hint="give a dict", kind="not_json")
        self._edit(decide.edit_state, json_copy(dict(data)))

    def edit_prompt(self, layer: str, text: str) -> Prompt:
        """Change one layer of the prompt that waits, for this turn only; a socket that is next is entered first.

        A turn that failed waits again then: the next step asks it with the new words.

        The prompts of other turns and visits stay as the materia has them. A later change of the state
        asks with the materia's own wording again. Returns the prompt as it is then.

        Args:
            layer: its name, such as ``cast``, ``materia``, ``work item`` or ``return``.
            text: the new text; empty leaves the layer out.

        Raises:
            MateriaError: no agent is asked (``not_waiting``, ``not_an_agent``), the prompt has no such
                layer (``unknown_layer``), or a step is running (``busy``).
        """
        self._runner.refuse_while_running()
        with self._runner.lock():
            self._begin()
            if self.status == "ready":
                self._runner.enter()
            self._runner.do(decide.edit_prompt, layer, clean(text))
            assert self.session.prompt is not None  # noqa: S101 - it was edited
            return self.session.prompt

    def redefine(self, materia: str, definition: Mapping[str, JSON], owner: Path | None = None) -> None:
        """Take a changed definition of a materia into this cast, which keeps a copy of its loadout otherwise.

        From then on its socket runs, or asks, what the new one says; ``recast`` does so where the cast failed. What
        earlier steps were decided by cannot change under them: only some fields may differ, such as its command.

        Args:
            materia: its id.
            definition: as in a config.
            owner: the directory of its config file, where its scripts are looked for (R24).

        Raises:
            MateriaError: the cast has no such materia (``unknown_materia``), other fields changed or none
                (``redefine``), it is invalid, or a step is running (``busy``). Nothing was changed then.
        """
        self._runner.refuse_while_running()
        with self._runner.lock():
            self._begin()
            files = self._runner.files
            changed = redefined(files, self.rules, materia, definition, owner)
            with HeldInterrupts():  # between any two of these the config and the journal would not agree
                files.replace_json(CONFIG, changed.document)
                try:
                    self._runner.do(decide.redefine, materia, changed.definition, changed.previous)
                except BaseException:
                    files.replace_json(CONFIG, changed.before)
                    raise
                self.rules = self._runner.rules = changed.rules

    def undo(self) -> None:
        """Take the last edit back, as long as no step was made since."""
        self._edit(decide.undo)

    def recommit(self, output: str | Mapping[str, JSON]) -> StepRecord:
        """Correct the output of the last step: it is checked and decided anew, the original is kept.

        An object is taken as JSON, as in ``reply``.

        Raises:
            MateriaError: the corrected output breaks the handoff's rules (kind ``recommit``), or
                the cast has gone on since, or was edited since.
        """
        self._edit(decide.recommit, clean(sound(_given(output), "The corrected output").text))
        self.write_derived()
        return self.steps[-1]

    def back_to(self, number: int) -> None:
        """Go on from the state after an earlier step; later steps are kept as an abandoned branch.

        Files that utilities changed since are not changed back. 0 goes back to the start.
        """
        self._edit(decide.back_to, self.at_step(number).number if number else 0)
        self.write_derived()

    def _edit(self, command: Callable[..., Outcome], *given: object) -> None:
        self._runner.refuse_while_running()
        with self._runner.lock():
            self._begin()
            self._runner.do(command, *given)

    def fork(self, number: int | None = None, *, root: Path | None = None) -> Self:
        """Start another cast from the state after a step, in a directory of its own; this one stays as it is.

        Args:
            number: the step; the latest by default.
            root: where the directory is made; beside that of this cast by default.
        """
        with self._runner.lock():
            self._begin()
            kept = len(self.steps) if number is None else self.at_step(number).number
            self._runner.write_derived()
            path = fork_files(self._runner.files, self.rules, kept, root)
        try:
            made = type(self).resume(path, self.agents, utilities=self._runner.utilities)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)  # nothing of the fork has happened yet
            raise
        made.stops_as(self._breaks)
        made._runner.functions.update(self._runner.functions)  # noqa: SLF001 - its own class; no journal holds them
        return made

    # -- pins -----------------------------------------------------------------------

    @property
    def pins_gone(self) -> tuple[str, ...]:
        """The names pinned to functions of a kernel that is no more: pin them again, or unpin them."""
        known = self._runner.functions
        return tuple(name for name, pin in self.pins.items() if pin.kind == "function" and name not in known)

    def pin(self, name: str, to: object = None, *, visit: int | None = None) -> Pin:
        """Let what you choose answer a socket, or a materia wherever it is placed, from the next step on.

        A pinned utility starts no process: the text is read as its stdout would be. What is pinned stays
        when the cast is resumed or forked; a function is gone with its kernel, and the cast then
        stops in front of its socket rather than let anything else answer::

            cast.pin("Detect-VCS", {"state": {"vcs": "git"}})
            cast.pin("Socket-3")  # what it said last

        Args:
            name: a socket, or a materia; the socket's pin goes first.
            to: a text, a dict (sent as JSON), a function of the turn, or an earlier cast, which answers
                visit by visit; left out, the socket's own latest output.
            visit: the one visit whose output is meant, of this cast or of the cast given.

        Raises:
            MateriaError: there is no such socket or materia (``unknown_materia``), it has no such output
                (``no_output``), or ``to`` is nothing that can be pinned to (``bad_pin``).
        """
        chosen = choose(self, name, to, visit)
        self.put_pin(name, chosen)
        return chosen.pin

    def put_pin(self, name: str, chosen: Chosen) -> None:
        """Pin what was chosen before; see :meth:`pin`."""
        needs_name(self.graph, name)
        with self._runner.lock():
            self._begin()
            self._runner.functions.pop(name, None)
            if chosen.function is not None:
                self._runner.functions[name] = chosen.function
            self._runner.do(decide.pin, name, chosen.pin)

    def unpin(self, name: str) -> None:
        """Let a socket or materia be answered as if it had never been pinned.

        Raises:
            MateriaError: it is not pinned (``not_pinned``).
        """
        needs_pinned(name, self.pins)
        with self._runner.lock():
            self._begin()
            self._runner.do(decide.unpin, name)
            self._runner.functions.pop(name, None)

    def remember(self, number: int) -> Suggestion:
        """Keep a suggestion in what is known about the project; later casts are told of it.

        Raises:
            MateriaError: there is no such suggestion (``no_suggestion``), it cannot be written, or the
                section of the document that it goes to is no list (``bad_context``).
        """
        with self._runner.lock():
            self._begin()
            chosen = suggestion(self.suggestions, number)
            if not chosen.kept:
                # The document first: keeping the same thing twice does nothing, while a journal that says it
                # is kept when it is not would lose it.
                change_context(self.run_dir.parent, lambda stored: with_entry(stored, chosen.entry))
                self._runner.do(decide.remember, chosen.step, chosen.entry)
            return chosen._replace(kept=True)


def _not_castable(rules: Rules, problems: Sequence[str]) -> list[str]:
    """Say why a cast is shown as it was recorded (R41)."""
    if not problems:
        return []
    first = (
        f"The loadout {rules.graph.name!r} cannot be cast here, so the cast is shown as it was recorded: "
        "its state is not rebuilt, and it cannot be resumed, forked or tried in another way."
    )
    return [first, *(f"problem: {problem}" for problem in problems)]


def _given(answer: str | Mapping[str, JSON]) -> str | dict[str, JSON]:
    return dict(answer) if isinstance(answer, Mapping) else answer


def _added(views: list[Callable[[], None]], view: Callable[[], None]) -> Callable[[], None]:
    views.append(view)
    return lambda: views.remove(view) if view in views else None


__all__ = ["Agent", "Cast", "Pause", "Plan"]
