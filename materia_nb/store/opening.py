"""Opens, copies and verifies run directories written by this engine or by the reference engine (R29).

If this engine cannot run a cast, it opens the cast as a read-only recording (R41). A cast is verified with the hash
links between the lines of its journal, and with the digests of its long outputs.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from materia_nb.engine import decide
from materia_nb.engine import events as ev
from materia_nb.engine.events import Transition, from_json
from materia_nb.engine.evolve import begin_session, evolve, fold, session_at
from materia_nb.engine.routing import Decision, decision_of
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import files_after, output_name
from materia_nb.engine.state import CastState, Failure
from materia_nb.errors import MateriaError, counted
from materia_nb.file_io import TEMPORARY_NAME, read_plain
from materia_nb.jsonvalue import JSON, as_object, is_object
from materia_nb.loadout.graph import END
from materia_nb.loadout.report import LoadoutError
from materia_nb.loadout.resolve import build_graph, sketch_graph
from materia_nb.store.file_snapshots import FORK_DIR, FileSnapshots
from materia_nb.store.files import disk_errors, removed_on_error, to_bytes
from materia_nb.store.journal import Contents, JournalLine, encode_lines, journal_lines, read_journal
from materia_nb.store.reader import (
    Recording,
    describe_missing_answer,
    enter_recorded_visit,
    read_session,
    start_event,
    with_recorded_usage,
)
from materia_nb.store.rundir import RunDir, location_of, new_run_dir, recorded_journal_end


def build_recording(rules: Rules, lines: Sequence[JournalLine], read: Callable[[str], str]) -> Recording:
    """Return a recording of a cast that this engine cannot run, with all recorded steps and the end of the cast.

    Each step has its item, its outputs, its tool calls and its token usage. Outputs are not parsed, and assignments are
    not executed. Therefore the recording reports no differences, and the values in the state are the initial values. Each step is
    routed to the socket that was started next according to the journal.

    Args:
        rules: the rules of a substitute loadout that contains every visited socket.
        lines: the events of the journal.
        read: a function that returns the content of the artifact with a given name; it raises MateriaError if the
            artifact cannot be read.
    """
    result = Recording(session_at(begin_session(rules, start_event(lines)).state._replace(next=None)))
    for line, target in zip(lines, _recorded_targets(lines), strict=True):
        try:
            event = from_json(line.type, line.data, line.ts, lenient=True)
        except MateriaError:
            continue  # an invalid tool call
        if isinstance(event, ev.SocketStart):
            _add_start(result, rules, event)
        elif isinstance(event, ev.Output) and result.session.steps:
            _add_turn(result, rules, event, target, read)
        elif isinstance(event, ev.ToolCalled | ev.AgentNote) and result.session.steps:
            result.session = evolve(rules, result.session, event)
        elif isinstance(event, ev.CastRetried | ev.LimitRaised):
            _apply_event(result, rules, event, result.session.state._replace(status="waiting", failure=None))
        elif isinstance(event, ev.CastEnd):
            _add_end(result, rules, event)
    return result


def _recorded_targets(lines: Sequence[JournalLine]) -> list[str | None]:
    """For each event, return the socket that was started next.

    The value is ``end`` if the cast completed next, or None if the journal records neither a start nor a completed
    cast.
    """
    target: str | None = None
    targets = []
    for line in reversed(lines):
        targets.append(target)
        socket = line.data.get("socket")
        if line.type == "socket_start" and isinstance(socket, str):
            target = socket
        elif line.type == "cast_end":
            target = END if line.data.get("ok") is True else None
    return targets[::-1]


def _visited_sockets(lines: Sequence[JournalLine]) -> dict[str, str | None]:
    """Return the sockets that were started, mapped to the id of their materia, or to None if the id was not recorded."""
    visited_sockets: dict[str, str | None] = {}
    for data in (line.data for line in lines if line.type == "socket_start"):
        socket, materia = data.get("socket"), data.get("materia")
        if isinstance(socket, str):
            visited_sockets[socket] = materia if isinstance(materia, str) else visited_sockets.get(socket)
    return visited_sockets


def _apply_event(
    result: Recording, rules: Rules, event: ev.Event, state: CastState, decision: Decision | None = None
) -> None:
    """Apply a recorded event and set the resulting state to ``state``, even if this engine would behave differently."""
    transition = Transition(state, (), decision, before=result.session.state, forced=True)
    result.session = evolve(rules, result.session, event.replace(transition=transition))


def _add_start(result: Recording, rules: Rules, event: ev.SocketStart) -> None:
    socket, before = event.about.get("socket"), result.session.state
    if not isinstance(socket, str):
        return
    previous = result.session.steps[-1].socket if result.session.steps else None
    visit = event.visit if event.visit and event.visit > 0 else before.visits.get(socket, 0) + 1
    if before.at is not None and (before.at.socket, before.at.visit) == (socket, visit):
        return  # the event repeats the start of the current visit
    traversal = {f"{previous}->{socket}": before.traversals.get(f"{previous}->{socket}", 0) + 1} if previous else {}
    state = before._replace(visits={**before.visits, socket: visit - 1}, traversals={**before.traversals, **traversal})
    state = enter_recorded_visit(rules, state, socket, event)
    _apply_event(result, rules, event, state)


def _add_turn(
    result: Recording, rules: Rules, event: ev.Output, target: str | None, read: Callable[[str], str]
) -> None:
    step, state = result.session.steps[-1], result.session.state
    if event.artifact is None and event.text is None and isinstance(event, ev.RecoveryStart):
        result.messages.append(f"Step {step.number}: {describe_missing_answer(event)}.")
        return
    artifact, text = event.artifact or output_name(step.socket, step.visit, step.item_key), event.text
    if text is None:
        try:
            text = read(artifact)
        except MateriaError as error:
            text = ""
            result.messages.append(f"Step {step.number}: {' '.join(str(error).split())}")
    if event.usage is not None:
        state = state._replace(usage=state.usage.plus(event.usage))
    decision = None
    if isinstance(event, ev.SocketComplete):
        target = event.next if event.next in rules.sockets else target
        state = state._replace(status="ready", next=target or END, last_output=text)
        decision = decision_of(step.at, "recording", target)
    elif isinstance(event, ev.RecoveryStart):
        decision = decision_of(step.at, "repair", None)
    recorded_event = event.replace(text=text, artifact=artifact, meta={}, pinned=None, by=None, thinking=None, cut=None)
    _apply_event(result, rules, recorded_event, state, decision)


def _add_end(result: Recording, rules: Rules, event: ev.CastEnd) -> None:
    state = result.session.state
    if event.ok is True:
        _apply_event(result, rules, event, state._replace(status="complete", next=None, failure=None))
        return
    message = event.error or "the recording contains no reason"
    is_aborted = event.kind == "aborted" or message.strip().lower() == "aborted"
    failure = Failure(event.kind or "recorded_failure", message, state.at.socket if state.at else None)
    ended_state = state._replace(status="aborted" if is_aborted else "failed", next=None, failure=failure)
    decision = decision_of(state.at, "failure", None)._replace(failure=failure)
    recorded_event = event.replace(kind=failure.kind)
    _apply_event(result, rules, recorded_event, ended_state, decision if state.waiting_at else None)


_MAX_CONFIG_BYTES: Final = 50_000_000

CONFIG: Final = "config.resolved.json"

CONTINUE_HINT: Final = "use `cast.fork()` to continue in a copy of the cast"
"""Hint for an open cast that cannot be continued in place, because another program or engine writes its journal."""

ENGINE = "materia_nb"
"""The name that identifies this engine in journals."""


@dataclass(frozen=True, slots=True)
class RunContents:
    """The parsed contents of a run directory.

    Attributes:
        rules: the rules of the cast; if ``problems`` is not empty, the rules of a substitute loadout.
        document: the resolved config of the cast.
        contents: the contents of the journal.
        ours: True if this engine wrote the cast.
        project: the working directory of the cast.
        problems: the reasons why this engine cannot run the loadout; empty if it can.
        redefined: True if a materia was redefined during the cast, so the config file may lack the new definition.
    """

    rules: Rules
    document: JSON
    contents: Contents
    ours: bool
    project: Path
    problems: tuple[str, ...] = ()
    redefined: bool = False


def _read_contents(run_dir: RunDir, until: str | None = None) -> Contents:
    """Read the journal of a run directory, and stop after the first event whose type is ``until``.

    Raises MateriaError if the run directory or its journal is missing, or if the journal is damaged.
    """
    with disk_errors(run_dir.path, "open the run directory"):
        exists = run_dir.path.is_dir()
    if not exists:
        raise MateriaError(
            "The run directory does not exist.",
            where=str(run_dir.path),
            hint="use `list casts` to list the casts of this project, or enter the path of a run directory",
            kind="no_cast",
        )
    return read_journal(run_dir.journal, until, known=recorded_journal_end(run_dir.path))


def cast_start(contents: Contents) -> Mapping[str, JSON] | None:
    """Return the fields of the ``cast_start`` event, or None if the journal does not contain such an event."""
    return next((line.data for line in contents.lines if line.type == "cast_start"), None)


def check_resumable(run_dir: RunDir) -> None:
    """Check that a cast can be continued in its own run directory, without writing to the directory.

    Raises:
        MateriaError: the journal does not record the start of the cast (``not_begun``), another engine wrote the cast
            (``not_ours``), or the journal cannot be read.
    """
    start = cast_start(_read_contents(run_dir, "cast_start"))
    if start is None:
        raise MateriaError(
            "This cast has no recorded start: its journal does not contain `cast_start`.",
            where=str(run_dir.journal),
            hint="start the cast again",
            kind="not_begun",
        )
    if start.get("engine") != ENGINE:
        raise MateriaError(
            "This cast was recorded by another engine, so it can be opened but not continued in its own directory.",
            where=str(run_dir.path),
            hint=f"open the cast; then {CONTINUE_HINT}",
            kind="not_ours",
        )


def read_recorded(run_dir: RunDir, *, view_only: bool = False) -> RunContents:
    """Read the config and the journal of a run directory.

    Args:
        run_dir: the run directory.
        view_only: if this engine cannot run the loadout, return the reasons in ``problems`` instead of raising an error
            (R41).

    Raises:
        MateriaError: the config or the journal is missing or unreadable.
    """
    contents = _read_contents(run_dir)
    start = cast_start(contents) or {}
    ours = start.get("engine") == ENGINE
    document, name = _with_loadout(_read_config(run_dir.path / CONFIG), start)
    if not ours:
        document = _without_resolved_scripts(document)
        report = _recorded_usage(run_dir, contents)
        contents = contents._replace(lines=with_recorded_usage(contents.lines, report))
    latest = {line.data.get("materia"): line.data for line in contents.lines if line.type == "materia_redefined"}
    for materia, data in latest.items():
        document = with_definition(document, materia, data.get("definition"))
    owner_paths = as_object(start.get("owners"))
    owners = {key: Path(path) for key, path in owner_paths.items() if isinstance(path, str)}
    problems: tuple[str, ...] = ()
    session = start.get("session")  # the session id that its agents receive
    try:
        rules = Rules(build_graph(document, name, owners), session if isinstance(session, str) else "")
    except MateriaError as error:
        if not view_only:
            raise
        errors = error.report.problems if isinstance(error, LoadoutError) else ()
        problems = tuple(f"{issue.source}: {issue.message}" for issue in errors) or (error.what,)
        rules = Rules(sketch_graph(document, name, _visited_sockets(contents.lines)))
    project = start.get("project")
    return RunContents(
        rules=rules,
        document=document,
        contents=contents,
        ours=ours,
        project=Path(project) if isinstance(project, str) else run_dir.path,
        problems=problems,
        redefined=bool(latest),
    )


def _recorded_usage(run_dir: RunDir, contents: Contents) -> JSON:
    """Return the usage report of a reference-engine cast.

    The report is read from the ``cast_end`` event or, if the event has no report, from ``usage.json``. Return None if
    the cast has no readable report.
    """
    ends = [line.data for line in contents.lines if line.type == "cast_end"]
    report = ends[-1].get("usage") if ends else None
    if report is not None:
        return report
    try:
        return json.loads(run_dir.read_text("usage.json"))
    except (MateriaError, ValueError, RecursionError):
        return None


def with_definition(document: JSON, materia: JSON, definition: JSON) -> JSON:
    """Return a copy of a config with a new definition of one materia; an unknown materia is ignored."""
    known = as_object(as_object(document).get("materia"))
    return {**as_object(document), "materia": {**known, str(materia): definition}} if materia in known else document


def _without_resolved_scripts(document: JSON) -> JSON:
    """Remove the script of each utility that also has a command, and return the resulting config.

    The reference engine resolves a script to a command, and records both; it runs the command (R72).
    """
    materia = as_object(as_object(document).get("materia"))
    resolved_materia = {
        name: {field: value for field, value in raw.items() if field != "script"}
        for name, raw in materia.items()
        if is_object(raw) and raw.get("script") is not None and raw.get("command") is not None
    }
    return {**as_object(document), "materia": {**materia, **resolved_materia}} if resolved_materia else document


def _with_loadout(document: JSON, start: Mapping[str, JSON]) -> tuple[JSON, str | None]:
    """Return the config and the name of the recorded loadout.

    If the config does not contain the loadout, the loadout is copied from the start event of the reference engine.
    """
    name, pipeline = start.get("loadout"), start.get("pipeline")
    name = name if isinstance(name, str) else None
    known = as_object(as_object(document).get("loadouts"))
    if name in known or not isinstance(document, dict) or not isinstance(pipeline, dict):
        return document, name
    name = name or "recorded"
    return {**document, "loadouts": {**known, name: pipeline}}, name


def _read_config(path: Path) -> JSON:
    try:
        return json.loads(read_plain(path, _MAX_CONFIG_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        problem = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else f"is not JSON: {error}"
        raise MateriaError(
            f"The config of the cast {problem}.",
            where=str(path),
            hint="restore the config from a copy; without its loadout, a cast cannot be opened",
            kind="no_config",
        ) from error


_APPROVAL_EVENTS: Final = ("tools_allowed", "tool_decided")


def fork_files(run_dir: RunDir, rules: Rules, step: int, root: Path | None = None, *, now: bool = False) -> Path:
    """Fork a cast: copy its run directory, return to an earlier step, and return the new directory (R55).

    The first event of the copy names the source. Approvals of tools and unused approvals of commands are not copied, so
    a fork asks for approval again. Labels of steps are copied, but labels of the cast, such as its name and its tags,
    are not.

    The journal is written last and in a single write, because any directory that has a journal is listed as a cast.

    Args:
        run_dir: the run directory of the source.
        rules: the rules of the cast.
        step: the number of the step after which the fork continues. Later edits of its output are discarded.
        root: the directory in which the copy is created; defaults to the parent directory of the source.
        now: continue from the current state of the cast instead of from ``step``.
    """
    lines = [line for line in read_journal(run_dir.journal).lines if not _is_omitted_from_forks(line)]
    path = new_run_dir(root or run_dir.path.parent)
    lines = [_copy_line(line, path, run_dir.path.name, step) for line in lines]
    with removed_on_error(path):  # an incomplete copy must not be listed as a cast
        copy = RunDir(path, sync=run_dir.sync)
        with disk_errors(path, "copy the cast"):
            copy.write(CONFIG, read_plain(run_dir.path / CONFIG, _MAX_CONFIG_BYTES))
            for name in _artifact_names(run_dir):
                copy.write(name, read_plain(run_dir.path / name))
        return_lines = [] if now else _return_to_step(copy, rules, lines, step)
        return_lines += _check_out_files(copy, rules, [*lines, *return_lines], None if now else step)
        copy.write("events.jsonl", encode_lines([*lines, *return_lines])[0])
    return path


def write_events(root: Path, rules: Rules, start: ev.CastStart, events: Sequence[ev.Event], *, sync: bool) -> Path:
    """Create a run directory in ``root`` from a sequence of events, so that the cast can be resumed.

    The journal is written last and in a single write, because any directory that has a journal is listed as a cast.

    Returns:
        The path of the new run directory.
    """
    path = new_run_dir(root)
    with removed_on_error(path):  # as in fork_files
        run_dir = RunDir(path, sync=sync)
        run_dir.write_json(CONFIG, dict(rules.graph.document))
        start = start.replace(place=location_of(path))
        session = begin_session(rules, start)
        lines = journal_lines([start], session, run_dir)
        for event in events:
            session = evolve(rules, session, event)
            lines += journal_lines([event], session, run_dir)
        run_dir.write("events.jsonl", encode_lines(lines)[0])
    return path


def _is_omitted_from_forks(line: JournalLine) -> bool:
    """Return True if a fork does not copy the event, because it approves a tool or labels the whole cast."""
    return line.type in _APPROVAL_EVENTS or (line.type == "labelled" and not line.data.get("step"))


def _artifact_names(run_dir: RunDir) -> Iterator[str]:
    """Yield the names of the artifacts in a run directory: outputs, and the inputs and outputs of utilities.

    Links and temporary files are skipped.
    """
    if not run_dir.is_inside("sockets"):
        return
    for folder, folders, names in os.walk(run_dir.path / "sockets"):
        folders.sort()
        for name in sorted(names):
            path = Path(folder) / name
            if stat.S_ISREG(path.lstat().st_mode) and not TEMPORARY_NAME.fullmatch(name):
                yield path.relative_to(run_dir.path).as_posix()


def _copy_line(line: JournalLine, path: Path, cast_id: str, step: int) -> JournalLine:
    data: dict[str, JSON] = dict(line.data)
    if line.type == "approval_answered":
        data.pop("expires", None)  # an approval is not valid in a copy
    if line.type == "cast_start":
        data |= {"forkedFrom": {"cast": cast_id, "step": step}, "place": location_of(path)}
    return line._replace(data=data, label=None)


def _check_out_files(run_dir: RunDir, rules: Rules, lines: list[JournalLine], step: int | None) -> list[JournalLine]:
    """Write the file snapshot of a step to a folder of the copy, and return the journal line that records the folder.

    If the cast does not save file snapshots, write nothing and return an empty list. If ``step`` is None, use the
    latest snapshot.
    """
    if not lines[0].data.get("files"):
        return []
    source = session = read_session(rules, lines, run_dir.read_text).session
    if step is not None and lines[-1].type == "cast_back":
        source = read_session(rules, lines[:-1], run_dir.read_text).session
    commit = session.files if step is None else files_after(source, step)
    if commit is None:
        raise missing_snapshot_error(step or len(session.steps))
    FileSnapshots(run_dir.path / FORK_DIR, run_dir.path.parent, run_dir.path.name, own=True).check_out(commit)
    event = ev.FilesKept(step=len(session.steps), commit=commit, by="fork", folder=FORK_DIR, ts=lines[-1].ts)
    return journal_lines([event], evolve(rules, session, event), run_dir)


def missing_snapshot_error(step: int, *, saves_files: bool = True) -> MateriaError:
    """Return the error for a step whose files have no snapshot. ``saves_files`` is False for a cast with `files: off`."""
    message = f"The files after step {step} were not saved."
    hint = "use `show files` to see the reason: the step worked in another directory, or its files could not be saved"
    if not saves_files:
        message = "This cast does not save the files of the project (`files: off`)."
        hint = "restore the files with version control, and set `files` to `not ignored` in the config for later casts"
    return MateriaError(message, hint=hint, kind="not_kept")


def _return_to_step(run_dir: RunDir, rules: Rules, lines: list[JournalLine], step: int) -> list[JournalLine]:
    """Return the journal lines that make a cast continue after ``step``.

    The list is empty if ``step`` is the latest step and is still running.
    """
    session = read_session(rules, lines, run_dir.read_text).session
    last = session.steps.latest
    if last is not None and last.number == step and last.after.status not in ("ready", "complete"):
        return []
    events = decide.back_to(rules, session, step, lines[-1].ts, discard_edits=True)
    return journal_lines(events, fold(rules, session, events), run_dir)


MISSING_END_MESSAGE: Final = (
    "The end of the journal is missing: the last line written before the cast paused is not in the journal "
    "(see manifest.json)."
)
_NO_LINKS_MESSAGE: Final = "The journal was written by another engine and has no links, so changes cannot be detected."


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """The result of verifying a journal; its ``repr`` is a readable report.

    Attributes:
        steps: the number of steps before the first change.
        lines: the number of journal lines before the first change.
        problems: a sentence about each detected change; empty if the cast is intact.
        is_torn: True if a crash left the last line incomplete. No finished step is lost in this case.
        has_links: True if the lines of the journal have hash links.
    """

    steps: int
    lines: int
    problems: tuple[str, ...]
    is_torn: bool
    has_links: bool

    @property
    def is_intact(self) -> bool:
        """True if the journal and the outputs are intact."""
        return not self.problems

    def __repr__(self) -> str:
        extent = f"up to step {self.steps} ({counted(self.lines, 'line')})" if self.steps else "before the first step"
        head = f"The journal is intact {extent}." if self.is_intact else f"The journal is intact only {extent}."
        torn_note = ["The last line is incomplete, because a crash interrupted its write."] if self.is_torn else []
        return "\n".join([head, *self.problems, *torn_note, *([] if self.has_links else [_NO_LINKS_MESSAGE])])


def verify(run_dir: RunDir) -> Verification:
    """Check whether the journal or a long output of a cast was changed. The run directory is not written.

    Raises:
        MateriaError: the journal is missing or cannot be read (``no_journal``).
    """
    contents = read_journal(run_dir.journal, known=recorded_journal_end(run_dir.path), lenient=True)
    problems, broken_line = damage_messages(contents), contents.first_broken_line
    intact = len(contents.lines) if broken_line is None else broken_line
    for index, line in enumerate(contents.lines):
        if index < intact and (problem := _artifact_problem(run_dir, line)) is not None:
            problems.append(f"Line {index + 1}: {problem}")
            intact = index
    return Verification(
        _intact_steps(contents.lines, intact, is_whole=not problems),
        intact,
        tuple(problems),
        bool(contents.incomplete_line),
        contents.has_links,
    )


def damage_messages(contents: Contents) -> list[str]:
    """Return messages that describe the damage to a journal: its first changed line, or a missing end."""
    if contents.first_broken_line is not None:
        steps = _intact_steps(contents.lines, contents.first_broken_line)
        extent = f"up to step {steps}" if steps else "before the first step"
        change = f"The journal was changed: line {contents.first_broken_line + 1} is not the original line"
        return [f"{change}, or an earlier line is missing. The journal is intact {extent}; later lines may be wrong."]
    return [] if contents.reaches_known_end else [MISSING_END_MESSAGE]


def require_intact(run_dir: RunDir, contents: Contents) -> None:
    """Raise MateriaError (``damaged_journal``) if the hash links show that a line of the journal was changed."""
    if contents.first_broken_line is not None:
        raise MateriaError(
            damage_messages(contents)[0],
            where=f"{run_dir.journal}:{contents.first_broken_line + 1}",
            hint="restore the file from a copy, or remove the damaged line and all later lines, then use `resume`",
            kind="damaged_journal",
        )


def _intact_steps(lines: Sequence[JournalLine], count: int, *, is_whole: bool = False) -> int:
    """Return the number of steps that were completed within the first ``count`` lines.

    If ``is_whole`` is True, an unfinished last step is also counted.
    """
    starts = [index for index, line in enumerate(lines[:count]) if line.type == "socket_start"]
    if not starts:
        return 0
    steps = lines[count - 1].steps
    is_ended = any(line.type == "socket_complete" for line in lines[starts[-1] : count])
    return (len(starts) if steps is None else steps) - (not is_whole and not is_ended)


def _artifact_problem(run_dir: RunDir, line: JournalLine) -> str | None:
    name, digest = line.data.get("artifact"), line.data.get("sha256")
    if not isinstance(name, str) or not isinstance(digest, str):
        return None
    try:
        is_unchanged = sha256(to_bytes(run_dir.read_text(name))).hexdigest() == digest
    except MateriaError as error:
        return " ".join(str(error).split())
    return None if is_unchanged else f"the output in {name} was changed: its SHA-256 differs."
