"""Writes the run directory of a cast (R29) and the files in it that are derived from the journal (R30, R43).

The module also checks files that outputs name as evidence, writes envelopes for other tools, and updates the context
document of a project.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import count, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from materia_nb.engine.entering import turn_facts, updated_knowledge
from materia_nb.engine.events import OUTPUT_INLINE_BYTES
from materia_nb.engine.routing import short_label
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.session import Session, StepRecord, all_steps, branch_suffix, context_name, output_name, parts_of
from materia_nb.engine.state import CastState, Usage, Visit
from materia_nb.errors import MateriaError
from materia_nb.file_io import TEMPORARY_NAME, append_line, opened, read_plain, replace_file, sync_folder
from materia_nb.handoff.base import HandoffProtocol, Reading
from materia_nb.handoff.runtime_rules import envelope_files
from materia_nb.jsonvalue import JSON, json_or_none
from materia_nb.platform import ScheduledCall, call_later, computing
from materia_nb.store.files import (
    CAST_ID,
    DiskError,
    before_first_record,
    disk_errors,
    hold_file_lock,
    json_bytes,
    to_bytes,
    write_file,
)

_CAST_ID = re.compile(CAST_ID)
_ITEM_KEY = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,199}")


class RunDir:
    """The run directory of a cast, with methods that read and write its artifacts.

    The name of an artifact is its path relative to this directory, with ``/`` as the separator.
    """

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        """Initialize the object for the directory ``path``; with ``sync``, call fsync for every artifact."""
        self.path = path
        self.sync = sync
        self._root = str(path)
        self._created_folders: set[str] = set()

    @property
    def journal(self) -> Path:
        """The path of the journal file."""
        return self.path / "events.jsonl"

    def write(self, name: str, content: bytes | Iterable[bytes]) -> str:
        """Write the artifact ``name`` atomically, create its folder if necessary, and return ``name``."""
        folder = name.rpartition("/")[0]
        with disk_errors(f"{self._root}/{name}", f"write {name}"):
            if folder not in self._created_folders:
                self._create_folder(folder)
            replace_file(f"{self._root}/{name}", content, sync=self.sync)
        return name

    def _create_folder(self, folder: str) -> None:
        self.check_inside(folder)
        os.makedirs(f"{self._root}/{folder}", exist_ok=True)  # noqa: PTH103 - hot path
        if self.sync:
            names = folder.split("/")
            for depth in range(len(names)):
                sync_folder("/".join([self._root, *names[:depth]]))
        self._created_folders.add(folder)

    def check_inside(self, folder: str) -> None:
        """Raise MateriaError if a folder for artifacts is outside the run directory after links are resolved."""
        if not self.is_inside(folder):
            raise MateriaError(
                "The cast would write outside its run directory, or through a link inside the directory.",
                where=f"{self._root}/{folder}"[:500],
                hint="remove the link if you trust this run directory",
                kind="bad_artifact",
            )

    def is_inside(self, folder: str) -> bool:
        """Return True if a folder for artifacts is inside the run directory and its path contains no links."""
        path = self._resolved_path / folder
        return ".." not in folder.split("/") and path.resolve() == path

    def write_json(self, name: str, value: JSON) -> str:
        """Write a value as an indented JSON file, and return ``name``."""
        return self.write(name, json_bytes(value, indented=True))

    def remove_temporary_files(self) -> None:
        """Remove temporary files that were left by a process that was killed. The caller must hold the cast's lock."""
        for folder, _, files in os.walk(self.path):
            for name in filter(TEMPORARY_NAME.fullmatch, files):
                with suppress(OSError):
                    os.unlink(f"{folder}/{name}")  # noqa: PTH108 - of a folder as text

    def has_artifact(self, name: str) -> bool:
        """Return True if the artifact ``name`` exists."""
        return os.path.isfile(f"{self._root}/{name}")  # noqa: PTH113 - asked for each output of a cast

    def read_text(self, name: str) -> str:
        """Return the content of an artifact.

        Raises MateriaError if the artifact cannot be read, or if its path leads out of the run directory.
        """
        path = self.path / name
        try:
            path = path.resolve()
            is_inside = path.is_relative_to(self._resolved_path)
        except (OSError, ValueError, RuntimeError):  # the name is not a valid file name, or links form a loop
            is_inside = False
        if not is_inside:
            raise MateriaError(
                "The journal names an artifact outside the run directory.",
                where=name[:200],
                hint="do not trust this recording, because its journal was changed",
                kind="bad_artifact",
            )
        try:
            return read_plain(path).decode("utf-8", "replace")
        except OSError as error:
            raise MateriaError(
                f"An artifact that the journal names cannot be read: {error.strerror}.",
                where=str(path),
                hint="restore the artifact from a copy of the run directory",
                kind="missing_artifact",
            ) from error

    @cached_property
    def _resolved_path(self) -> Path:
        return self.path.resolve()


def is_item_key(key: str) -> bool:
    """Return True if ``key`` is a valid item key (R13), which is safe as part of a file name."""
    return bool(_ITEM_KEY.fullmatch(key)) and ".." not in key


def location_of(path: Path) -> dict[str, JSON]:
    """Return the host, the user and the resolved path of a run directory. Approvals are valid only in this location."""
    return {"host": socket.gethostname(), "user": os.getuid(), "directory": str(path.resolve())}


@before_first_record()
def new_run_dir(root: Path) -> Path:
    """Create the run directory of a new cast, whose name is the cast id: the current UTC time in milliseconds (R29).

    If a directory with this name exists, the next free millisecond is used.
    """
    with disk_errors(root, "create the directory of the cast"):
        root.mkdir(parents=True, exist_ok=True)
        for millisecond in count(time.time_ns() // 1_000_000):
            seconds, milliseconds = divmod(millisecond, 1000)
            path = root / f"{time.strftime('%Y-%m-%dT%H-%M-%S', time.gmtime(seconds))}-{milliseconds:03d}Z"
            with suppress(FileExistsError):
                path.mkdir()
                try:
                    record_latest(path)  # before the journal, so that every cast is recorded
                except BaseException:  # also after an interrupt, an empty directory must be removed
                    path.rmdir()
                    raise
                return path
    raise AssertionError  # count() never ends


_ORDER_FILE: Final = "order.txt"
"""The file that lists cast ids, one per line, in the order in which the casts were started or continued."""


def record_latest(run_dir: Path) -> None:
    """Record that a cast is now the latest in its project, so that the order does not depend on the clock (R69).

    Raises:
        OSError: the order file cannot be written.
    """
    append_line(run_dir.parent / _ORDER_FILE, os.fsencode(run_dir.name))


def recorded_order(root: Path) -> Mapping[str, int]:
    """Return a rank for each cast that was started or continued in ``root``; the latest cast has the highest rank."""
    try:
        lines = read_plain(root / _ORDER_FILE).split(b"\n")
    except OSError:
        return {}
    return {os.fsdecode(line): number for number, line in enumerate(lines, 1)}


def creation_time(cast_id: str) -> int:
    """Return the creation time that a cast id contains, in milliseconds since the epoch, or 0 if there is none."""
    with suppress(ValueError, OverflowError):
        created_at = datetime.strptime(cast_id, "%Y-%m-%dT%H-%M-%S-%fZ").replace(tzinfo=UTC)
        return round(created_at.timestamp() * 1000)
    return 0


def is_cast_id(name: str) -> bool:
    """Return True if ``name`` is a valid cast id, which is safe as a directory name."""
    return bool(_CAST_ID.fullmatch(name)) and ".." not in name


_HEAD_FIELD: Final = re.compile(
    rb'^  "(status|steps|journalBytes|journalLink|cost|unpriced)": "?([\w.+-]+)"?,?$', re.MULTILINE
)
_MAX_HEAD_BYTES: Final = 1 << 20
_WRITE_DELAY_S: Final = 0.5
_ENTRIES_PER_WRITE: Final = 500


class ArtifactWriter:
    """Writes the artifacts of a cast in the background.

    The files of a step are written within a second, and all other files when the cast pauses.
    A session is immutable, so a background thread can write its files while the cast continues.
    """

    def __init__(self, run_dir: RunDir, rules: Rules) -> None:
        self._run_dir, self._rules = run_dir, rules
        self._lock = threading.Lock()
        self._since: Mapping[str, int] = {}
        self._session: Session | None = None
        self._written: Session | None = None
        self._timer: ScheduledCall | None = None

    def schedule_write(self, session: Session) -> None:
        """Schedule a background write of the steps of ``session`` within a second."""
        self._session = session
        if self._timer is None:
            self._timer = call_later(_WRITE_DELAY_S, self._write_steps)

    def has_written(self, session: Session) -> bool:
        """Return True if all files of ``session`` have been written."""
        return self._written is session

    def mark_written(self, session: Session) -> None:
        """Record that all files of ``session`` exist already, so that they are not written again."""
        self._since, self._written = _last_step_indexes(session), session

    def write_all(self, session: Session, journal_end: JournalEnd) -> None:
        """Write all files of ``session``, including the usage report and the manifest.

        ``journal_end`` is the end of the journal, which the manifest records.
        """
        self.stop()
        with self._lock:
            self._since = write_steps(self._run_dir, self._rules, session, self._since)
            self._run_dir.write_json("usage.json", usage_report(self._rules, session))
            # The manifest is written last, because it confirms that all other files exist.
            blocks = manifest_blocks(self._run_dir.path.name, self._rules, session, journal_end)
            self._run_dir.write("manifest.json", blocks)
            self._written = session

    def _write_steps(self) -> None:
        self._timer, session = None, self._session
        if session is not None:
            # A disk error is reported when the cast pauses, because all files are then written again.
            with computing(), self._lock, suppress(DiskError):
                self._since = write_steps(self._run_dir, self._rules, session, self._since)

    def stop(self) -> None:
        """Cancel the scheduled background write, if any."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()


class JournalEnd(NamedTuple):
    """The end of a journal: the length of the file in bytes, and the hash link of its last line."""

    size: int = 0
    link: str = ""


def write_steps(run_dir: RunDir, rules: Rules, session: Session, since: Mapping[str, int]) -> Mapping[str, int]:
    """Write the files of the steps that may have changed since the previous call.

    Args:
        run_dir: the run directory.
        rules: the rules of the cast.
        session: the session whose steps are written.
        since: the result of the previous call; empty for the first call.

    Returns:
        The index of the first step that may still change, for the folder of the cast and for the folder of each lane.
    """
    prompts = _writes_prompts(rules)
    for part in parts_of(session):
        for step in part.steps[since.get(part.prefix, 0) :]:
            if prompts:
                write_prompt(run_dir, rules, step, part.prefix)
            _write_step(run_dir, rules, step, part.prefix)
    return _last_step_indexes(session)


def _last_step_indexes(session: Session) -> Mapping[str, int]:
    return {part.prefix: max(len(part.steps) - 1, 0) for part in parts_of(session)}


def _writes_prompts(rules: Rules) -> bool:
    """Return True if the config requests that prompts are written as artifacts (R63)."""
    return rules.graph.document.get("artifacts") == "all"


def manifest_head(path: Path) -> dict[str, str]:
    """Read the fields at the beginning of a manifest, and return their values as strings.

    The fields are ``status``, ``steps``, ``journalBytes``, ``journalLink``, ``cost`` and ``unpriced``. Missing fields
    are omitted. The result is empty if the manifest cannot be read.
    """
    try:
        with opened(path / "manifest.json") as handle:
            fields = _HEAD_FIELD.findall(os.pread(handle, _MAX_HEAD_BYTES, 0))
    except OSError:
        return {}
    return {name.decode(): value.decode() for name, value in fields}


def recorded_journal_end(path: Path) -> JournalEnd | None:
    """Return the end of the journal at the time when the manifest was written, or None if it is not recorded."""
    head = manifest_head(path)
    if "journalLink" not in head or not head.get("journalBytes", "").isdecimal():
        return None
    return JournalEnd(int(head["journalBytes"]), head["journalLink"])


def is_current(run_dir: RunDir, session: Session, journal_end: JournalEnd) -> bool:
    """Return True if the manifest was written when the journal ended at ``journal_end``, and no output is missing."""
    outputs = (turn.artifact for step in all_steps(session) for turn in step.turns if turn.artifact)
    return recorded_journal_end(run_dir.path) == journal_end and all(run_dir.has_artifact(name) for name in outputs)


def artifact_content(text: str) -> bytes | None:
    """Encode an output that must be stored as an artifact; return None if it is short enough for the journal (R43)."""
    if len(text) * 3 <= OUTPUT_INLINE_BYTES:
        return None
    content = to_bytes(text)
    return content if len(content) > OUTPUT_INLINE_BYTES else None


def write_prompt(run_dir: RunDir, rules: Rules, step: StepRecord, folder: str = "") -> None:
    """Write the prompt of a step as an artifact; do nothing for a step without a prompt, such as a utility's step.

    ``folder`` is the folder of the step's lane; it is empty for a step outside lanes.
    """
    if step.prompt is None:
        return
    header = [
        "# Prompt",
        "",
        f"cast: {run_dir.path.name}",
        f"socket: {step.socket}",
        f"materia: {rules.sockets[step.socket].socket.materia.id}",
        f"item: {short_label(step.item_label) if step.item_label else '-'}",
        f"visit: {step.visit}",
    ]
    sections = [line for part in step.prompt.parts if part.text for line in ("", f"## {part.heading}", "", part.text)]
    name = folder + context_name(step.socket, step.visit, step.item_key, step.branch)
    run_dir.write(name, to_bytes("\n".join([*header, *sections, ""])))


def _write_step(run_dir: RunDir, rules: Rules, step: StepRecord, folder: str) -> None:
    for turn in step.turns:
        # A long output was written before its event was recorded, and must not be written again.
        if turn.artifact is not None and artifact_content(turn.text) is None:
            run_dir.write(turn.artifact, to_bytes(turn.text))
    reading = step.reading
    if reading is not None and reading.accepted and rules.sockets[step.socket].requirements.parse == "json":
        run_dir.write_json(
            folder + output_name(step.socket, step.visit, None, f"{branch_suffix(step.branch)}.json"), reading.value
        )


def manifest_blocks(cast_id: str, rules: Rules, session: Session, journal_end: JournalEnd) -> Iterator[bytes]:
    """Yield the content of the manifest, in blocks.

    The manifest contains the state of the cast when its journal ended at ``journal_end``. It lists one artifact per line.
    """
    state = session.state
    head: dict[str, JSON] = {
        "castId": cast_id,
        "request": state.request,
        "loadout": rules.graph.name,
        "status": state.status,
        "steps": len(all_steps(session)),
        "journalBytes": journal_end.size,
        "journalLink": journal_end.link,
        "cost": state.usage.cost,
        "unpriced": state.usage.unpriced,
        "next": state.next,
        "cursors": dict(state.cursors),
        "visits": dict(state.visits),
        "edgeTraversals": dict(state.traversals),
    }
    if state.failure is not None:
        head["failure"] = {"kind": state.failure.kind, "message": state.failure.message}
    yield json_bytes(head, indented=True).removesuffix(b"\n}") + b',\n  "entries": ['
    separator, entries = b"\n    ", _manifest_entries(rules, session)
    while block := [json_bytes(entry) for entry in islice(entries, _ENTRIES_PER_WRITE)]:
        yield separator + b",\n    ".join(block)
        separator = b",\n    "
    yield b"\n  ]\n}\n"


def _manifest_entries(rules: Rules, session: Session) -> Iterator[dict[str, JSON]]:
    prompts = _writes_prompts(rules)
    for step, folder in ((step, part.prefix) for part in parts_of(session) for step in part.steps):
        socket_rules = rules.sockets[step.socket]
        materia = socket_rules.socket.materia
        fields: dict[str, JSON] = {"socket": step.socket, "materia": materia.id, "materiaLabel": materia.label}
        if step.item_key is not None:
            fields |= {"itemKey": step.item_key, "itemLabel": step.item_label}
        fields["visit"] = step.visit
        if prompts and step.prompt is not None:
            artifact = folder + context_name(step.socket, step.visit, step.item_key, step.branch)
            yield {**fields, "kind": "context", "artifact": artifact, "timestamp": step.started}
        for turn in step.turns:
            kind = _artifact_kind(socket_rules, turn.mode)
            yield {**fields, "kind": kind, "artifact": turn.artifact, "timestamp": step.ended}


def _artifact_kind(socket_rules: SocketRules, mode: str) -> str:
    if mode == "draft":
        return "socket_refinement"
    return "socket_work" if mode in socket_rules.work_modes else "socket_output"


def usage_report(rules: Rules, session: Session) -> dict[str, JSON]:
    """Return the usage report of a cast: tokens and cost in total, by socket, by materia and by work item.

    An unknown value is None. The fields ``uncounted`` and ``unpriced`` contain the number of turns whose tokens or
    whose price is unknown (R56).
    """
    groups: dict[str, dict[str, list[Usage]]] = {"bySocket": {}, "byMateria": {}, "byTask": {}}
    for step in (step for part in parts_of(session) for step in part.steps):
        keys = step.socket, rules.sockets[step.socket].socket.materia.id, step.item_key
        usages_of_step = [*(turn.usage for turn in step.turns if turn.usage), *step.spent]
        for usages, key in zip(groups.values(), keys, strict=True):
            if key is not None and usages_of_step:
                usages.setdefault(key, []).extend(usages_of_step)
    total = session.state.usage
    report: dict[str, Any] = {
        "tokens": {"input": total.input, "output": total.output, "total": total.tokens, **total.token_details()},
        "cost": {"total": total.cost},
        **_missing_counts(total),
    }
    for group, by_key in groups.items():
        report[group] = {key: _usage_fields(Usage().plus(*usages_of_step)) for key, usages_of_step in by_key.items()}
    return report


def _usage_fields(usage: Usage) -> Mapping[str, JSON]:
    usage_counts = {"input": usage.input, "output": usage.output, "total": usage.tokens, "cost": usage.cost}
    return {**usage_counts, **usage.token_details(), **_missing_counts(usage)}


def _missing_counts(usage: Usage) -> dict[str, JSON]:
    """Return the number of turns with unknown tokens and the number of turns with an unknown price (R56); omit zeros."""
    missing = {"uncounted": usage.uncounted, "unpriced": usage.unpriced}
    return {name: count for name, count in missing.items() if count}


_MAX_PATH_CHARS: Final = 1_000


def find_evidence(text: str, folders: Iterable[Path]) -> Path | None:
    """Find the file or folder that an output names as evidence.

    Args:
        text: an absolute path, or a path relative to one of the folders.
        folders: the folders to search, in order.

    Returns:
        The resolved path, or None if none of the folders contains it.
    """
    if not text.strip() or len(text) > _MAX_PATH_CHARS:
        return None
    for folder in folders:
        try:
            root = folder.resolve()
            path = (root / text.strip()).resolve()
            if path.is_relative_to(root) and path.exists():
                return path
        except (OSError, ValueError, RuntimeError):
            continue  # the path is invalid, for example because it contains a null character
    return None


def missing_evidence(protocol: HandoffProtocol, reading: Reading | None, project: Path, run_dir: Path) -> list[str]:
    """Return the files that an accepted output claims to have created but that do not exist.

    See section 3 of the envelope rules. Relative paths are looked up in the project and in the run directory. URLs are
    not checked.

    Args:
        protocol: the protocol that defines which fields of an output name files.
        reading: the parsed output; None if the output was not parsed.
        project: the project directory.
        run_dir: the run directory of the cast.
    """
    if reading is None or not reading.accepted or not isinstance(reading.value, dict):
        return []
    file_names = dict.fromkeys(protocol.artifacts(reading.value))
    return [text for text in file_names if text.strip() and not _evidence_exists(text.strip(), project, run_dir)]


def _evidence_exists(text: str, project: Path, run_dir: Path) -> bool:
    if "://" in text or find_evidence(text, (project, run_dir)) is not None:
        return True
    try:
        return Path(text).is_absolute() and Path(text).exists()
    except (OSError, ValueError):
        return False


def file_within(text: str, project: Path, run_dir: Path) -> str | None:
    """Return the path, relative to the project, of a file that an output names.

    A relative path is looked up in the project and in the run directory. The result is None if the file does not
    exist, or is outside the project.
    """
    path = find_evidence(text, (project, run_dir))
    root = project.resolve()
    if path is None or not path.is_file() or not path.is_relative_to(root):
        return None
    return path.relative_to(root).as_posix()


def write_side_files(run_dir: Path, rules: Rules, session: Session, visit: Visit, before: CastState) -> None:
    """Write the envelope of the latest output, and add the project knowledge in the output to the context document.

    Args:
        run_dir: the run directory of the cast.
        rules: the rules of the cast.
        session: the session after the output.
        visit: the visit that produced the output.
        before: the state before the output.

    Raises:
        MateriaError: a file cannot be written, or the context document of the project is damaged.
    """
    write_envelope(run_dir, rules, session, visit, before)
    reading = _accepted_reading(session, before)
    if session.state.knowledge is not before.knowledge and reading is not None:
        socket_rules = rules.sockets[visit.socket]
        change_context(
            run_dir.parent,
            lambda stored: updated_knowledge(rules, socket_rules, before, reading.value, stored).knowledge,
        )


def _accepted_reading(session: Session, before: CastState) -> Reading | None:
    return session.steps[-1].reading or (before.hold.reading if before.hold else None)


def write_envelope(run_dir: Path, rules: Rules, session: Session, visit: Visit, before: CastState) -> None:
    """Write the envelope of the latest output to a file; the envelope remains a draft until the socket is completed.

    Nothing is written if the protocol does not use envelopes, or if the output does not contain a JSON object. For
    the parameters, see :func:`write_side_files`.
    """
    socket_rules = rules.sockets[visit.socket]
    reading = _accepted_reading(session, before)
    if "file_content" not in socket_rules.protocol.overridden or reading is None or not isinstance(reading.value, dict):
        return
    facts = turn_facts(rules, before, visit)
    ended_ms, state = session.steps[-1].ended or 0, session.state
    timestamp = datetime.fromtimestamp(ended_ms / 1000, UTC).isoformat(timespec="milliseconds")
    value = socket_rules.protocol.file_content(reading.value, {**facts.meta, "timestamp": timestamp})
    step = step_names(tuple(rules.sockets))[visit.socket]
    flow, agent = _file_name_part(facts.meta["flow_key"]), _file_name_part(facts.meta["agent_key"])
    final, draft = map(Path, envelope_files(str(run_dir), flow, step, agent))
    RunDir(run_dir).check_inside(draft.parent.relative_to(run_dir).as_posix())
    with disk_errors(draft, "write the envelope"):
        draft.parent.mkdir(parents=True, exist_ok=True)
        replace_file(draft, json_bytes(value, indented=True))
        if state.at != visit or state.status in ("ready", "complete"):
            draft.replace(final)


@lru_cache(maxsize=8)
def step_names(sockets: tuple[str, ...]) -> Mapping[str, str]:
    """Return a unique name for each socket, for use in file names.

    Each character that is not an ASCII letter, a digit or ``_`` is replaced by ``_``, because a hyphen separates the
    socket from the agent in a file name. A name has at most 100 characters. If two names would be equal or differ only
    in case, a number is appended.
    """
    name_by_socket: dict[str, str] = {}
    used_names: set[str] = set()
    for socket_id in sorted(sockets, key=lambda socket_id: _socket_file_name(socket_id) != socket_id):
        preferred_name = _socket_file_name(socket_id)
        alternatives = (f"{preferred_name}_{number}" for number in count(2))
        name = preferred_name
        while name.casefold() in used_names:
            name = next(alternatives)
        name_by_socket[socket_id] = name
        used_names.add(name.casefold())  # some file systems ignore case
    return name_by_socket


def _socket_file_name(socket_id: str) -> str:
    return _file_name_part(socket_id).replace("-", "_")


def _file_name_part(text: str) -> str:
    name = "".join(char if char.isalnum() or char in "_-" else "_" for char in text.encode("ascii", "replace").decode())
    return name[:100] or "_"


_CONTEXT_FILE: Final = "project-context.json"


def read_context(root: Path) -> dict[str, JSON]:
    """Return the sections of a project's context document by name, or an empty dict if the document does not exist.

    Args:
        root: the directory that contains the run directories.

    Raises:
        MateriaError: the document is not a JSON object (``bad_context``), or the document cannot be read.
    """
    path = root / _CONTEXT_FILE
    document: JSON = {}
    with disk_errors(path, "read the project context"), suppress(FileNotFoundError):
        document = json_or_none(read_plain(path))
    if not isinstance(document, dict):
        raise MateriaError(
            "The project context is not a JSON object.",
            where=str(path),
            hint="fix the file, or move it away to start with an empty context",
            kind="bad_context",
        )
    return document


def change_context(root: Path, change: Callable[[Mapping[str, JSON]], Mapping[str, JSON]]) -> None:
    """Update the context document while other processes are locked out.

    Args:
        root: the directory that contains the run directories.
        change: a function that receives the current sections and returns the new sections.

    Raises:
        MateriaError: the document cannot be read (see :func:`read_context`) or written. It is not changed.
    """
    path = root / _CONTEXT_FILE
    with hold_file_lock(path.with_suffix(".lock"), "lock the project context"):
        before = read_context(root)
        after = change(before)
        if after != before:
            write_file(path, json_bytes(dict(after), indented=True), "write the project context")
