"""One cast: made, opened or resumed, and gone on with.

A cast stops between steps, never inside one: waiting for a person ends the call,
and the next call goes on.
"""

from __future__ import annotations

import contextlib
import shutil
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from materia_nb.agents.interface import Agent, sound
from materia_nb.agents.table import AgentTable
from materia_nb.cast.accepted import Suggestion, suggestion, with_entry
from materia_nb.cast.approvals import Approvals
from materia_nb.cast.breakpoints import OVER, Breakpoints, CastBreakpoints, Pause, check_socket
from materia_nb.cast.edits import Edits
from materia_nb.cast.overrides import Chosen, choose, names_of, needs_name, needs_pinned
from materia_nb.cast.runner import Runner, clean, given, let_go, now, over, redacted
from materia_nb.cast.snapshot import Snapshot, graph_of
from materia_nb.engine import decide, evolve
from materia_nb.engine import events as ev
from materia_nb.engine.decide import Outcome
from materia_nb.engine.labels import WHOLE_CAST, Label, relabelled
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session, StepRecord
from materia_nb.engine.state import Pin
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.handoff.sparse import SEVERITIES
from materia_nb.interrupts import Stop
from materia_nb.jsonvalue import JSON, split_path
from materia_nb.loadout.graph import Graph
from materia_nb.secrets import scrubbed
from materia_nb.store import derived
from materia_nb.store.files import disk, replace_file, sync_folder
from materia_nb.store.journal import Journal, lines_of, mend
from materia_nb.store.lock import CastLock
from materia_nb.store.opening import (
    ENGINE,
    as_recorded,
    cast_start,
    check_resumable,
    fork_files,
    read_recorded,
    write_events,
)
from materia_nb.store.reader import read_session
from materia_nb.store.reference import Difference
from materia_nb.store.rundir import RunDir, new_run_dir, place_of
from materia_nb.store.side_files import change_context, read_context

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from materia_nb.cast.attempt import Attempts, Wording
    from materia_nb.cast.views.compare_view import BlameView, ReplayView
    from materia_nb.cast.views.step_views import EventsView
    from materia_nb.cast.views.tables import SpentView
    from materia_nb.insight.replay import Replay


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


class Prepared(NamedTuple):
    """Everything that a cast is started from, but for its request: the plan, who answers, and what is pinned."""

    plan: Plan
    table: AgentTable
    pins: Mapping[str, Chosen]


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
            problems=problems,
        )
        super().__init__(
            session, rules, run_dir.path, project, problems=problems, answerers=self._runner.answered_by
        )
        self.differences = tuple(differences)
        self.messages = self._runner.messages
        self.messages.extend(messages)
        self._breaks = Breakpoints()
        self.attempted: Attempts | None = None

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
            owners=owners_of(plan.graph),
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

    @property
    def edit(self) -> Edits:
        """What a person changes between steps: ``cast.edit.items(...)``, ``cast.edit.set("plan.approved", True)``."""
        return Edits(self, self._runner)

    @property
    def approvals(self) -> Approvals:
        """What agents ask a person for: ``cast.approvals.approve()``, ``cast.approvals.allow("bash")``."""
        return Approvals(self, self._runner)

    @property
    def breakpoints(self) -> CastBreakpoints:
        """Where runs stop: ``cast.breakpoints.add("Socket-3")``, ``cast.breakpoints.watch("plan.approved")``."""
        return CastBreakpoints(self, self._breaks, self._runner)

    def show(self, panel: str | None = None, *, height: int | None = None) -> Any:
        """Show the cast with buttons in a notebook, or one of its panels: graph, items, state, timeline ...

        The value is a widget; showing it again in the same cell closes the earlier one.

        Args:
            panel: the name of one panel; all of them on one surface if left out.
            height: in pixels; 560 for the whole surface if left out.

        Raises:
            MateriaError: there is no such panel (``unknown_panel``).
        """
        from materia_nb.widgets import cast_panel

        if panel is None:
            return cast_panel.show(self, height=height)
        return cast_panel.show_one(self, panel, height=height)

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

    # -- looking at it ---------------------------------------------------------------

    def events(
        self,
        *,
        severity: str | None = None,
        type: str | None = None,  # noqa: A002 - the field that it is compared with
        socket: str | None = None,
    ) -> EventsView:
        """Return what outputs told in their ``event`` field, in order; it shows itself as a table (R39).

        Args:
            severity: only events of this severity or a graver one: debug, info, warning, error, critical.
            type: only events of this type.
            socket: only events of this socket.

        Raises:
            MateriaError: there is no such severity (``unknown_severity``) or socket (``unknown_socket``).
        """
        from materia_nb.cast.views.step_views import EventsView

        if severity is not None and severity not in SEVERITIES:
            raise MateriaError(
                f"There is no severity {severity!r}.",
                hint=did_you_mean(severity, SEVERITIES),
                kind="unknown_severity",
            )
        if socket is not None and socket not in self.graph.sockets:
            raise MateriaError(
                f"The loadout {self.graph.name!r} has no socket {socket!r}.",
                hint=did_you_mean(socket, self.graph.sockets),
                kind="unknown_socket",
            )
        least = 0 if severity is None else SEVERITIES.index(severity)
        told = [
            event
            for step in self.steps
            for event in step.events
            if SEVERITIES.index(event.severity) >= least
            and type in (None, event.type)
            and socket in (None, event.socket)
        ]
        return EventsView(told)

    def spent(self, *by: str) -> SpentView:
        """Tell where tokens, cost and time went: by ``socket`` (the default), ``materia`` or ``item``, or several of these.

        Steps that going back left behind count too. It shows itself as a table with the sum; iterating gives the rows,
        ``frame()`` a pandas data frame::

            cast.spent("socket", "item")

        Raises:
            MateriaError: there is no such thing to add up by (``unknown_group``).
        """
        from materia_nb.cast.views.tables import SpentView
        from materia_nb.insight.queries import spent

        groups = by or ("socket",)
        return SpentView(groups, spent(self.rules, self.session, groups))

    def blame(self, path: str) -> BlameView:
        """Tell what made a value of the state what it is, the latest change first: which step, answer and rule.

        It shows itself as a table; iterating gives each change with its ``step``, ``rule`` and ``source``.

        Args:
            path: dotted, such as ``plan.title`` or ``state.workItems.0.title``.

        Raises:
            MateriaError: the path names nothing (``bad_path``), or the cast is shown as recorded (``not_castable``).
        """
        from materia_nb.cast.views.compare_view import BlameView
        from materia_nb.insight.queries import blame

        self.needs_castable()
        if not split_path(path):
            raise MateriaError("The path names nothing.", hint="such as plan.title", kind="bad_path")
        return BlameView(path, blame(self.session, path))

    def replay(self, loadout: object) -> ReplayView:
        """Send the recorded answers through another loadout: where would it have gone otherwise? Nothing runs.

        The value is true if it would have: ``first`` says where and why, ``route`` which way it takes, ``needs``
        which answer it would still lack, ``asked_otherwise`` which steps were asked something else then.

        Args:
            loadout: a graph (``wb.graph(name)``), a shown loadout (``wb.loadout(name)``), or a config as a mapping.

        Raises:
            MateriaError: it is no loadout, or has problems; or the cast is shown as recorded (``not_castable``).
        """
        from materia_nb.cast.views.compare_view import ReplayView
        from materia_nb.insight.replay import replay

        self.needs_castable()
        found = replay(self.side, Rules(graph_of(loadout)).in_session(self.rules.session or self.id))
        return ReplayView(found, self._go_on)

    def __repr__(self) -> str:
        """Say how the cast stands; stable from run to run, since notebooks are compared by it."""
        from materia_nb.cast.views.status import CastView

        return repr(CastView(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002
        from materia_nb.cast.views.status import CastView

        return CastView(self)._repr_mimebundle_()

    def save_page(self, path: str | Path) -> Path:
        """Write the cast as one HTML page that needs nothing else, and return its path."""
        from materia_nb.cast.views.step_views import cast_page_html

        target = Path(path)
        with disk(target, "write the page"):
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, cast_page_html(self).encode("utf-8", "replace"))
        return target

    def save_recording(self, path: str | Path) -> Path:
        """Write what was answered as a file that another cast can be answered from, and return its path."""
        from materia_nb.cast.recordings import recording_text

        target = Path(path)
        with disk(target, "write the recording"):
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, recording_text(self).encode("utf-8", "replace"))
        return target

    def save_test(self, path: str | Path, *, follows: str | Path | None = None) -> Path:
        """Write the cast as a case that ``pytest`` runs, and return its path: ``NAME.materia-case.json``.

        It sends the recorded answers through the loadout and asks for the same route, end and state. Nothing
        runs. The ending is put behind a name that lacks it.

        Args:
            path: the file.
            follows: the config file whose loadout of that name is tested, as it is then; the loadout of this
                cast, kept in the case, if left out.

        Raises:
            MateriaError: its answers alone do not lead where it went (``no_test``), or it is shown as recorded.
        """
        from materia_nb.cast.cases import case_of, relative_to, write_case
        from materia_nb.loadout import read_config

        self.needs_castable()
        target = Path(path).absolute()
        document = read_config(self.run_dir / "config.resolved.json")
        case = case_of(self.rules, self.session, document, relative_to(target.parent, follows))
        return write_case(target, case)

    # -- going on -------------------------------------------------------------------

    def step(self) -> StepRecord | None:
        """Run one socket. Returns its record, or None when the cast only came to its end.

        A person's socket is entered and left waiting. Interrupting leaves the socket
        waiting as well; the next step runs it again.
        """
        with self._runner.lock():
            self._runner.begin()
            self._runner.stop.clear()
            return self._advance()

    def _advance(self) -> StepRecord | None:
        return self.steps[-1] if self._runner.advance() else None

    def enter(self) -> StepRecord | None:
        """Enter the next socket without running it: its prompt can then be read, and edited, before it is asked.

        ``step`` or ``reply`` goes on. Returns the step's record, None when the cast only came to its end.
        """
        with self._runner.lock():
            self._runner.begin()
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
            self._runner.begin()
            self._runner.stop.clear()
        taken = 0
        try:
            while not (pause := self._pause(until, steps, taken)):
                with self._runner.lock():
                    self._runner.begin()
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
        if taken and (self._breaks.hit(self) or self._breaks.changed(self.steps)):
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
            ~materia_nb.handoff.protocol.RefusedAnswer: the answer breaks the rules; ``issues`` says how.
            MateriaError: no agent is asked (``not_waiting``, ``not_an_agent``).
        """
        with self._runner.lock():
            self._runner.begin()
            if self.status == "ready":
                self._runner.enter()
            visit = decide.waiting(self.session)
            if self.rules.sockets[visit.socket].socket.is_utility:
                raise MateriaError(
                    f"{visit.socket} is a utility; a process answers there.",
                    hint="step runs it",
                    kind="not_an_agent",
                )
            reply = sound(given(answer), "The reply")
            try:
                decide.check_reply(self.rules, self.session, clean(reply.text))
                self._runner.arrived(reply)
            finally:
                self._runner.write_derived()
            return self.steps[-1]

    def refine(self, message: str) -> StepRecord:
        """Ask a multi-turn agent to change its draft, in the conversation of this visit."""
        return self._record(decide.refine, clean(message))

    def finalize(self) -> StepRecord:
        """Accept the draft of a multi-turn socket: its agent is asked for the final result."""
        return self._record(decide.finalize)

    def _record(self, command: Callable[..., Outcome], *given: object) -> StepRecord:
        self._runner.and_ask(command, *given)
        return self.steps[-1]

    def abort(self, reason: str = "stopped by the person") -> None:
        """Stop the cast; recast or revive goes on with it. A step that another thread runs is ended first."""
        self._runner.stop.set()
        with self._runner.lock():
            self._runner.begin()
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
            self._runner.begin()
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
        return self._record(decide.resend if self.prompt is None else decide.nothing)

    def _ask_anew(self) -> bool:
        """Take back what was allowed to tools; whether there was anything."""
        with self._runner.lock():
            self._runner.begin()
            before = self.session
            self._runner.do(decide.ask_anew)
            return self.session is not before

    def set_budget(self, max_tokens: int | None) -> None:
        """Change the token budget of this cast only; None takes it away (R20)."""
        with self._runner.lock():
            self._runner.begin()
            self._runner.do(decide.set_budget, max_tokens)

    def write_derived(self) -> None:
        """Write what follows from the journal at once: prompts, outputs, manifest and usage (R29, R30, R43)."""
        with self._runner.lock():
            self._runner.write_derived()

    def back(self, number: int | None = None, *, change: str | None = None) -> None:
        """Go on from the state after an earlier step; later steps are kept as an abandoned branch.

        Files that utilities changed since are not changed back.

        Args:
            number: the step; 0 is the start.
            change: in place of it a dotted path into the state: back to right before what stands there was
                changed last, as ``blame`` tells it.

        Raises:
            MateriaError: there is no such step (``no_step``), nothing ever changed the value (``no_change``), or the
                cast did not go on from that step (``back``).
        """
        if (number is None) is (change is None):
            raise MateriaError(
                "Say either which step to go back to, or before which change.",
                hint="back(3), or back(change='workItems.0.title')",
                kind="usage",
            )
        if change is not None:
            number = self._before_change(change)
        assert number is not None  # noqa: S101 - one of the two was given
        self._runner.edit(decide.back_to, self.at_step(number).number if number else 0)
        self.write_derived()

    def _before_change(self, path: str) -> int:
        """Return the last step after which a value was still what it was before its latest change."""
        made = next((one for one in self.blame(path) if one.step > 0), None)
        if made is None:
            raise MateriaError(
                f"No step changed {path!r}.", hint="blame tells where a value comes from", kind="no_change"
            )
        # A person's edit came behind its step, or while that still waited: then it cannot be gone back to.
        behind = made.rule == "edit" and self.at_step(made.step).after.status in ("ready", "complete")
        return made.step if behind else made.step - 1

    def fork(self, number: int | None = None, *, root: Path | None = None) -> Self:
        """Start another cast from the state after a step, in a directory of its own; this one stays as it is.

        Args:
            number: the step; the latest by default.
            root: where the directory is made; beside that of this cast by default.
        """
        with self._runner.lock():
            self._runner.begin()
            kept = len(self.steps) if number is None else self.at_step(number).number
            self._runner.write_derived()
            path = fork_files(self._runner.files, self.rules, kept, root)
        return self._begun_as_mine(path)

    def _go_on(self, replay: Replay) -> Cast:
        rules, when = replay.replayed.rules, now()
        if not rules.graph.document:
            raise MateriaError(
                "The loadout was given without its config, which a cast keeps.",
                hint="give wb.graph(name), or the config itself",
                kind="no_config",
            )
        known = names_of(rules.graph)
        pins = [
            ev.of_engine("pinned", {"name": name, **pin.as_json()}, when)
            for name, pin in self.pins.items()
            if name in known
        ]
        root = self.run_dir.parent
        start = ev.CastStart(
            request=self.session.start.request,
            config_source=f"replay of {self.id}",
            artifact_root=str(root),
            loadout=rules.graph.name,
            project=str(self.project),
            owners=owners_of(rules.graph),
            engine=ENGINE,
            session=rules.session,
            knowledge=self.session.start.knowledge,
            state=dict(self.session.start.data),
            forked_from={"cast": self.id, "step": len(replay.route), "loadout": self.graph.name},
            ts=when,
        )
        path = write_events(root, rules, start, [*pins, *(replace(one, ts=when) for one in replay.events)])
        return self._begun_as_mine(path)

    def _begun_as_mine(self, path: Path) -> Self:
        """Resume a cast that begins with what this one did: the same agents, stops and pinned functions."""
        try:
            made = type(self).resume(path, self.agents, utilities=self._runner.utilities)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)  # nothing of it has happened yet
            raise
        made.stops_as(self._breaks)
        made._runner.functions.update(self._runner.functions)  # noqa: SLF001 - its own class; no journal holds them
        return made

    def stops_as(self, shared: Breakpoints) -> None:
        """Share where runs stop with other casts; what this one was told already is shared too."""
        if shared is not self._breaks:
            shared.take_over(self._breaks)
            self._breaks = shared

    # -- one turn, several times ------------------------------------------------------

    def attempt(
        self,
        socket: str | None = None,
        n: int = 1,
        agents: Sequence[object] | None = None,
        prompts: Sequence[Wording | None] | None = None,
        *,
        at_once: int = 1,
    ) -> Attempts:
        """Ask the turn that waits, or comes next, several times, and lay the answers side by side.

        Nothing of it touches the cast: nothing is journaled, no token counts, and tools that change something
        ask instead of running. Taking one makes it the answer::

            tried = cast.attempt("Socket-3", n=2, agents=["openai:gpt-5-mini", "anthropic:claude-haiku-4-5"])
            tried.take(3)  # or tried.pin(3)

        Args:
            socket: the one that waits or comes next, to be sure which it is.
            n: how often each agent is asked, in each wording.
            agents: who is asked, each as for ``Workbench.agent``; whoever answers there anyway if left out.
            prompts: what is asked: another prompt of the materia, with the same variables, or texts of layers by
                name; None is the prompt as it is, which is asked if this is left out.
            at_once: how many are asked at the same time, by threads.

        Returns:
            What was answered; it shows itself as a table. ``cast.attempted`` is the latest, also of an attempt that
            was interrupted.

        Raises:
            MateriaError: no agent's turn waits there (``not_waiting``, ``not_an_agent``). An agent that fails is a row.
        """
        from materia_nb.cast.attempt import Attempts

        self.attempted = made = Attempts(self, socket, n, agents, prompts)
        made.ask(at_once)
        return made

    # -- labels ---------------------------------------------------------------------

    def label(
        self,
        step: int | None = None,
        *,
        name: str | None = None,
        tag: str | Iterable[str] = (),
        untag: str | Iterable[str] = (),
        note: str | None = None,
        verdict: str | None = None,
        by: str = "person",
    ) -> Label:
        """Say something of the cast, or of one of its steps.

        ``wb.casts(tag=...)`` finds casts by it::

            cast.label(name="first-good-one", tag="rain, short", verdict="good")
            cast.label(3, note="It should have asked.", verdict="bad", by="Ana")

        It changes nothing of what the cast does. A cast's name can stand wherever its id can. What is left out stays as
        it is; ``""`` takes a name, a note or a verdict away.

        Args:
            step: the number of a step; the cast itself if left out.
            name: what it is called; several may be called the same.
            tag: tags to add; a text is split at commas and spaces.
            untag: tags to take away.
            note: any text.
            verdict: ``good``, ``bad`` or ``unsure``.
            by: who says it.

        Raises:
            MateriaError: one of them cannot be that (``bad_label``), there is no such step (``no_step``), or the cast
                was opened to be looked at (``read_only``).
        """
        with self._runner.lock():
            self._runner.begin()
            record = None if step is None else self.at_step(step)
            given = {"name": name, "note": note, "verdict": verdict}
            texts = {key: None if text is None else redacted(str(text)) for key, text in given.items()}
            said = relabelled(self.said_of(record), tag=tag, untag=untag, by=by, **texts)
            key = WHOLE_CAST if record is None else (record.branch, record.number)
            self._runner.do(decide.label, key, said)
            return said

    def unlabel(self, *, by: str = "person") -> None:
        """Take the last change of what is said of the cast and its steps back; raises MateriaError (``undo``) without one."""
        with self._runner.lock():
            self._runner.begin()
            self._runner.do(decide.unlabel, by)

    def to_otel(
        self,
        exporter: SpanExporter | None = None,
        *,
        endpoint: str | None = None,
        headers: Mapping[str, str] | None = None,
        content: bool = False,
    ) -> int:
        """Send the journal as OpenTelemetry spans, so that the cast can be looked at in a tracing tool.

        The whole cast is one trace, the same one each time. Returns how many spans were sent::

            cast.to_otel(endpoint="http://localhost:4318/v1/traces")

        Args:
            exporter: any exporter of OpenTelemetry's SDK; OTLP over HTTP if left out.
            endpoint: where to; ``OTEL_EXPORTER_OTLP_ENDPOINT`` and the like count if left out.
            headers: sent along, such as a key of the collector.
            content: whether prompts, answers, and what tools were given and gave are told too. Keys never are.

        Raises:
            MateriaError: OpenTelemetry is not installed (``no_otel``), or nobody took the spans (``not_exported``).
        """
        from materia_nb.cast.otel import export

        if self.writable:
            with self._runner.lock():
                self._runner.begin()  # what waits to be written is written
        return export(self, exporter, endpoint=endpoint, headers=headers, content=content)

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
            self._runner.begin()
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
            self._runner.begin()
            self._runner.do(decide.unpin, name)
            self._runner.functions.pop(name, None)

    def remember(self, number: int) -> Suggestion:
        """Keep a suggestion in what is known about the project; later casts are told of it.

        Raises:
            MateriaError: there is no such suggestion (``no_suggestion``), it cannot be written, or the
                section of the document that it goes to is no list (``bad_context``).
        """
        with self._runner.lock():
            self._runner.begin()
            chosen = suggestion(self.suggestions, number)
            if not chosen.kept:
                # The document first: keeping the same thing twice does nothing, while a journal that says it
                # is kept when it is not would lose it.
                change_context(self.run_dir.parent, lambda stored: with_entry(stored, chosen.entry))
                self._runner.do(decide.remember, chosen.step, chosen.entry)
            return chosen._replace(kept=True)


def owners_of(graph: Graph) -> dict[str, JSON]:
    """Return the directories of the config files that materia came from, by their ids (R24)."""
    return {one.id: str(one.owner) for socket in graph.sockets.values() if (one := socket.materia).owner}


def _not_castable(rules: Rules, problems: Sequence[str]) -> list[str]:
    """Say why a cast is shown as it was recorded (R41)."""
    if not problems:
        return []
    first = (
        f"The loadout {rules.graph.name!r} cannot be cast here, so the cast is shown as it was recorded: "
        "its state is not rebuilt, and it cannot be resumed, forked or tried in another way."
    )
    return [first, *(f"problem: {problem}" for problem in problems)]


def _added(views: list[Callable[[], None]], view: Callable[[], None]) -> Callable[[], None]:
    views.append(view)
    return lambda: views.remove(view) if view in views else None


__all__ = ["Agent", "Cast", "Pause", "Plan", "Prepared"]
