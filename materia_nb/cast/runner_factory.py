"""Functions that start, open or resume a cast and return its runner, or create the directory of a fork or a replay."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from materia_nb.agents.notebook_agents import AgentTable, names_of
from materia_nb.cast.edits import PinnedAnswer
from materia_nb.cast.runner import RunContents, Runner
from materia_nb.cast.snapshot import require_castable
from materia_nb.cast.work import now
from materia_nb.engine import approvals, evolve
from materia_nb.engine import events as ev
from materia_nb.engine.rules import Rules
from materia_nb.errors import MateriaError
from materia_nb.file_io import sync_folder
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.vocabulary import FILES_OFF
from materia_nb.platform import without_collecting
from materia_nb.store.files import CastLock, before_first_record, disk_errors, lock_owner, removed_on_error
from materia_nb.store.journal import Journal, journal_lines, read_journal
from materia_nb.store.opening import (
    CONFIG,
    ENGINE,
    MISSING_END_MESSAGE,
    build_recording,
    cast_start,
    check_resumable,
    damage_messages,
    fork_files,
    read_recorded,
    require_intact,
    write_events,
)
from materia_nb.store.reader import read_session
from materia_nb.store.rundir import RunDir, is_current, location_of, new_run_dir, read_context, write_envelope

if TYPE_CHECKING:
    from materia_nb.insight.replay import Replay


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of a new cast, except for its request and agents.

    Attributes:
        graph: the resolved loadout, which is not affected by later changes to config files.
        document: the config as written by the user, reduced to this loadout and its materia.
        source: a description of the origin of the config, for the journal.
        project: the working directory of utilities and agents.
        root: the directory that contains the run directories.
        utilities: directories with copies of the shipped utility scripts, which override the scripts in the package.
        sync: True to force every step to the disk with fsync, which is slower.
        data: the state before the first step; empty by default.
        files: the config setting that determines whether the project's files are saved after each step.
        work_root: a directory outside the project in which each cast with file snapshots works in its own
            subdirectory, so that casts can run in parallel; None if casts work in the project.
    """

    graph: Graph
    document: Mapping[str, JSON]
    source: str
    project: Path
    root: Path
    utilities: tuple[Path, ...] = ()
    sync: bool = False
    data: Mapping[str, JSON] = field(default_factory=dict)
    files: str = FILES_OFF
    work_root: Path | None = None


class Prepared(NamedTuple):
    """All settings of a new cast, except for its request.

    Attributes:
        plan: the settings that do not concern agents.
        table: the agents.
        pins: the pinned answers, by socket or materia.
    """

    plan: Plan
    table: AgentTable
    pins: Mapping[str, PinnedAnswer]

    def frozen(self) -> Prepared:
        """Return a copy that is not affected by later changes to the agents."""
        return self._replace(table=self.table.frozen())


@before_first_record()
def start_runner(plan: Plan, request: str, agents: AgentTable | None = None) -> Runner:
    """Create a run directory, record the start of a cast, and return its runner before the first step."""
    rules, graph = Rules(plan.graph), plan.graph
    knowledge = read_context(plan.root) if rules.uses_knowledge else {}
    files_kept = "" if plan.files == FILES_OFF else plan.files
    start = _cast_start(graph, request, plan.source, plan.root, plan.project)
    start = start.replace(knowledge=knowledge, state=dict(plan.data), files=files_kept)
    path = new_run_dir(plan.root)
    rules, start = rules.in_session(path.name), start.replace(session=path.name, place=location_of(path))
    run_dir = RunDir(path, sync=plan.sync)
    lock: CastLock | None = None
    journal: Journal | None = None
    try:
        lock = CastLock(path)
        run_dir.write_json(CONFIG, dict(plan.document))
        journal = Journal(run_dir.journal, lock, sync=plan.sync)
        session = evolve.begin_session(rules, start)
        journal.append(journal_lines([start], session, run_dir))
        if plan.sync:
            with disk_errors(path, "create the directory of the cast"):
                sync_folder(str(path))
                sync_folder(str(plan.root))
        table, scripts = agents or AgentTable(), plan.utilities
        runner = Runner(run_dir, rules, session, project=plan.project, agents=table, utilities=scripts, journal=journal)
        runner.save_first_snapshot(plan.work_root)
        return runner  # noqa: TRY300 - an interrupt right here would leave the lock to the traceback, too
    except BaseException:
        _release(journal, lock)
        shutil.rmtree(path, ignore_errors=True)  # nothing of the cast is recorded
        raise


def _cast_start(graph: Graph, request: str, source: str, root: Path, project: Path) -> ev.CastStart:
    return ev.CastStart(
        request=request,
        config_source=source,
        artifact_root=str(root),
        loadout=graph.name,
        project=str(project),
        owners=_owner_folders(graph),
        engine=ENGINE,
        ts=now(),
    )


def _release(journal: Journal | None, lock: CastLock | None) -> None:
    """Close the journal and release the lock of a cast that could not be started.

    Otherwise, the traceback of the exception could keep them open.
    """
    if journal is not None:
        journal.close()
    elif lock is not None:
        lock.release()


def open_runner(path: Path, agents: AgentTable | None = None) -> Runner:
    """Open a run directory read-only, including run directories of the reference engine.

    ``differences`` of the runner lists the recorded steps after which this engine would have chosen another route, and
    ``messages`` lists the parts that could not be read. If this engine cannot cast the loadout, the cast is displayed
    from its records, with a message about the problems (R41).

    Raises:
        MateriaError: the directory does not contain a cast (``no_cast``, ``no_journal``, ``no_config``), or its journal
            is damaged (``damaged_journal``).
    """
    run_dir = RunDir(path)
    reading = _read_run(run_dir)
    return Runner(
        run_dir,
        *reading[:2],
        project=reading.project,
        agents=agents or AgentTable(),
        reading=reading,
        read_again=partial(_read_again, run_dir),
    )


def _read_again(run_dir: RunDir, before: RunContents) -> RunContents | None:
    """Return the contents of a run directory, or None if they are equal to ``before`` or cannot be read."""
    with suppress(MateriaError):
        if _run_version(run_dir) != before.version:
            reading = _read_run(run_dir)
            return reading if reading.ours else reading._replace(writer="pi-materia")
    return None


def _run_version(run_dir: RunDir) -> tuple[str | None, object]:
    try:
        status = run_dir.journal.stat()
    except OSError:  # reading the journal reports it
        return None, None
    return lock_owner(run_dir.path), (status.st_ino, status.st_size, status.st_mtime_ns)


@without_collecting()  # also between reading and folding, where it would visit each event
def _read_run(run_dir: RunDir) -> RunContents:
    version = _run_version(run_dir)
    recorded = read_recorded(run_dir, view_only=True)
    rules, lines = recorded.rules, recorded.contents.lines
    messages = [] if cast_start(recorded.contents) else ["The journal lacks the event that starts the cast."]
    messages += damage_messages(recorded.contents)
    if recorded.contents.incomplete_line:
        messages.append("The last line of the journal is incomplete and was ignored.")
    if recorded.problems:
        result = build_recording(rules, lines, run_dir.read_text)
    else:
        result = read_session(rules, lines, run_dir.read_text, consume_lines=True)
    return RunContents(
        rules,
        result.session,
        recorded.project,
        recorded.problems,
        [*_not_castable_lines(rules, recorded.problems), *result.messages, *messages],
        result.differences,
        ours=recorded.ours,
        writer=version[0],
        version=version,
    )


def resume_runner(
    path: Path, agents: AgentTable | None = None, *, utilities: tuple[Path, ...] = (), sync: bool = False
) -> Runner:
    """Open a run directory in order to continue its cast.

    The directory is locked, and an incomplete last line of the journal is moved to another file. Tools that were
    allowed need approval again if the directory, the machine or the user differs from the start of the cast.

    Raises:
        DiskError: the directory cannot be written.
        MateriaError: the directory cannot be opened (see :func:`open_runner`), was written by another engine
            (``not_ours``), contains a cast that was never started (``not_begun``), is locked by another program, which
            the message names (``locked``), or lacks an output that the journal refers to (``missing_artifact``).
    """
    run_dir = RunDir(path, sync=sync)
    check_resumable(run_dir)
    lock: CastLock | None = None
    journal: Journal | None = None
    try:
        lock = CastLock(path)
        recorded = read_recorded(run_dir)
        rules, contents = recorded.rules, recorded.contents
        require_intact(run_dir, contents)
        start = cast_start(contents) or {}
        done = read_session(rules, contents.lines, run_dir.read_text, strict=True, consume_lines=True)
        journal = Journal(run_dir.journal, lock, sync=sync, contents=contents)
        torn_line_file = journal.repair_end(contents)
        if torn_line_file:
            done.messages.append(f"The last line of the journal was incomplete and was moved to {torn_line_file.name}.")
        if not contents.reaches_known_end:
            done.messages.append(MISSING_END_MESSAGE)
        runner = Runner(
            run_dir,
            rules,
            done.session,
            project=recorded.project,
            agents=agents or AgentTable(),
            utilities=utilities,
            journal=journal,
            differences=done.differences,
            messages=done.messages,
        )
        if is_current(run_dir, done.session, journal.end):
            runner.mark_files_current()
        else:
            run_dir.remove_temporary_files()
            if recorded.redefined:
                run_dir.write_json(CONFIG, recorded.document)
            runner.write_now()  # a crash may have prevented this earlier
            _rewrite_envelope(runner)
        if start.get("place") != location_of(path) and _remove_approvals(runner):
            runner.messages.append(
                "Tools were allowed on another machine, in another directory or by another user, so they need approval again."
            )
        return runner  # noqa: TRY300 - an interrupt right here would leave the lock to the traceback, too
    except BaseException:
        _release(journal, lock)
        raise


def _rewrite_envelope(runner: Runner) -> None:
    """Write the envelope of the latest output again, because a crash may have prevented the first write."""
    last = runner.session.steps.latest
    if last is None or "file_content" not in runner.rules.sockets[last.socket].protocol.overridden:
        return
    lines = read_journal(runner.run_dir.journal).lines
    outputs = (n for n, line in enumerate(lines) if issubclass(ev.EVENTS.get(line.type, ev.Event), ev.Output))
    latest_output = max(outputs, default=0)
    if not latest_output:
        return
    before = read_session(runner.rules, lines[:latest_output], runner.run_dir.read_text).session.state
    visit = before.waiting_at
    if visit is not None and visit.socket == last.socket:
        try:
            write_envelope(runner.run_dir.path, runner.rules, runner.session, visit, before)
        except MateriaError as error:  # the journal has the output, so nothing is lost
            runner.messages.append(" ".join(str(error).split()))


def fork_directory(runner: Runner, number: int | None, root: Path | None = None) -> Path:
    """Create the run directory of a fork that continues from step ``number``, by default from the current state (R55)."""
    with runner.lock():
        if runner.journal is None:
            require_castable(runner.problems, runner.run_dir.path)
        else:
            runner.prepare_change()
            runner.write_derived()
        number_of_steps = len(runner.session.steps) if number is None else number
        return fork_files(runner.run_dir, runner.rules, number_of_steps, root, now=number is None)


def replay_directory(runner: Runner, replay: Replay) -> Path:
    """Create the run directory of a cast that starts with a replay of recorded answers in another loadout."""
    rules, when, original = replay.replayed.rules, now(), runner.session
    if not rules.graph.document:
        hint = "pass `wb.graph(name)` or the config itself"
        raise MateriaError(
            "The loadout was given without its config, which a cast must store.", hint=hint, kind="no_config"
        )
    names, source = names_of(rules.graph), runner.run_dir.path
    pins = [ev.Pinned(name=name, ts=when, **pin.as_json()) for name, pin in original.pins.items() if name in names]
    start = _cast_start(rules.graph, original.start.request, f"replay of {source.name}", source.parent, runner.project)
    start = start.replace(
        session=rules.session,
        knowledge=original.start.knowledge,
        state=dict(original.start.data),
        forked_from={"cast": source.name, "step": len(replay.route), "loadout": runner.rules.graph.name},
    )
    events = [*pins, *(event.replace(ts=when) for event in replay.events)]
    return write_events(source.parent, rules, start, events, sync=runner.run_dir.sync)


def resume_like(runner: Runner, path: Path) -> Runner:
    """Resume the cast at ``path`` with the agents and pinned functions of ``runner``."""
    with removed_on_error(path):  # the new cast has no steps of its own yet
        new_runner = resume_runner(path, runner.agents, utilities=runner.utilities, sync=runner.run_dir.sync)
        new_runner.functions.update(runner.functions)  # functions are not in a journal
    return new_runner


def _remove_approvals(runner: Runner) -> bool:
    """Require approval again for all allowed tools. Return True if any tool was allowed."""
    with runner.lock(), runner.change():
        before = runner.session
        runner.run_command(approvals.ask_again)
        return runner.session is not before


def _owner_folders(graph: Graph) -> dict[str, JSON]:
    """Return the directories of the config files that define the materia, by materia id (R24)."""
    return {materia.id: str(materia.folder) for socket in graph.sockets.values() if (materia := socket.materia).folder}


def _not_castable_lines(rules: Rules, problems: Sequence[str]) -> list[str]:
    """Return the messages to show for a cast whose loadout this engine cannot cast (R41)."""
    if not problems:
        return []
    first = (
        f"The loadout {rules.graph.name!r} cannot be cast by this engine, so only the records of the cast are shown: its "
        "state is not rebuilt, and it cannot be resumed, forked or changed."
    )
    return [first, *(f"problem: {problem}" for problem in problems)]
