"""The run directory of a cast: its layout (R29), and the files that are derived from the journal (R29, R30, R43).

The module also finds files that outputs name as evidence, and writes envelopes for other tools and a project's context
document.
"""

from __future__ import annotations

import json
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

from materia_nb.engine.entering import learned_from, turn_facts
from materia_nb.engine.events import OUTPUT_INLINE_BYTES
from materia_nb.engine.routing import short
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.session import (
    Session,
    StepRecord,
    all_steps,
    branch_suffix,
    context_name,
    output_name,
    parts_of,
)
from materia_nb.engine.state import CastState, Usage, Visit
from materia_nb.errors import MateriaError
from materia_nb.file_io import (
    TEMPORARY_NAME,
    append_line,
    open_for_reading,
    read_plain,
    replace_file,
    sync_folder,
)
from materia_nb.handoff.base import HandoffProtocol, Reading
from materia_nb.handoff.runtime_rules import envelope_files
from materia_nb.jsonvalue import JSON
from materia_nb.platform import Handle, call_later, computing
from materia_nb.store.files import (
    CAST_ID,
    DiskError,
    before_first_record,
    disk,
    json_bytes,
    locked,
    to_bytes,
)

_CAST_ID = re.compile(CAST_ID)
_ITEM_KEY = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,199}")


class RunDir:
    """A run directory, with its paths and write operations.

    Artifact names are relative to this directory and use ``/``.
    """

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        """Use the directory ``path``; if ``sync`` is True, call fsync for every artifact."""
        self.path = path
        self.sync = sync
        self._root = str(path)
        self._made: set[str] = set()

    @property
    def journal(self) -> Path:
        """The path of the journal."""
        return self.path / "events.jsonl"

    def write(self, name: str, content: bytes | Iterable[bytes]) -> str:
        """Write the file ``name`` atomically and return its name."""
        folder = name.rpartition("/")[0]
        with disk(f"{self._root}/{name}", f"write {name}"):
            if folder not in self._made:
                self._make_folder(folder)
            replace_file(f"{self._root}/{name}", content, sync=self.sync)
        return name

    def _make_folder(self, folder: str) -> None:
        self.check_inside(folder)
        os.makedirs(f"{self._root}/{folder}", exist_ok=True)  # noqa: PTH103 - hot path
        if self.sync:
            steps = folder.split("/")
            for depth in range(len(steps)):
                sync_folder("/".join([self._root, *steps[:depth]]))
        self._made.add(folder)

    def check_inside(self, folder: str) -> None:
        """Raise MateriaError if a folder for artifacts, with links resolved, is outside the run directory."""
        if not self.is_inside(folder):
            raise MateriaError(
                "The cast would write outside its run directory, or through a link inside the directory.",
                where=f"{self._root}/{folder}"[:500],
                hint="remove the link if you trust this run directory",
                kind="bad_artifact",
            )

    def is_inside(self, folder: str) -> bool:
        """Return True if a folder for artifacts, with links resolved, is inside the run directory."""
        path = self._resolved / folder
        return ".." not in folder.split("/") and path.resolve() == path

    def write_json(self, name: str, value: JSON) -> str:
        """Write a JSON file with indentation."""
        return self.write(name, json_bytes(value, indented=True))

    def sweep(self) -> None:
        """Remove temporary files that a killed process left behind. The caller must hold the lock."""
        for folder, _, files in os.walk(self.path):
            for name in filter(TEMPORARY_NAME.fullmatch, files):
                with suppress(OSError):
                    os.unlink(f"{folder}/{name}")  # noqa: PTH108 - of a folder as text

    def has(self, name: str) -> bool:
        """Return True if the artifact exists."""
        return os.path.isfile(f"{self._root}/{name}")  # noqa: PTH113 - asked for each output of a cast

    def text_of(self, name: str) -> str:
        """Return the text of an artifact.

        Raises MateriaError if it is missing, or if its path leads out of the directory.
        """
        path = self.path / name
        try:
            path = path.resolve()
            inside = path.is_relative_to(self._resolved)
        except (OSError, ValueError, RuntimeError):  # names that no file can have, loops of links
            inside = False
        if not inside:
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
    def _resolved(self) -> Path:
        return self.path.resolve()


def is_item_key(key: str) -> bool:
    """Return True if ``key`` is a valid item key (R13), so that artifact names stay in the run directory."""
    return bool(_ITEM_KEY.fullmatch(key)) and ".." not in key


def location_of(path: Path) -> dict[str, JSON]:
    """Return the resolved path of a run directory as text; approvals are valid only at this path."""
    return {"host": socket.gethostname(), "user": os.getuid(), "directory": str(path.resolve())}


@before_first_record()
def new_run_dir(root: Path) -> Path:
    """Create the run directory of a new cast. Its name is the cast id, which is the UTC time (R29).

    If the name for the current millisecond exists, the next free name is used.
    """
    with disk(root, "create the directory of the cast"):
        root.mkdir(parents=True, exist_ok=True)
        for millisecond in count(time.time_ns() // 1_000_000):
            seconds, rest = divmod(millisecond, 1000)
            path = root / f"{time.strftime('%Y-%m-%dT%H-%M-%S', time.gmtime(seconds))}-{rest:03d}Z"
            with suppress(FileExistsError):
                path.mkdir()
                try:
                    record_latest(path)  # before the journal, so that every cast is recorded
                except BaseException:  # an interrupt as well: no empty directory stays
                    path.rmdir()
                    raise
                return path
    raise AssertionError  # milliseconds do not end


_ORDER: Final = "order.txt"
"""Name of the file that lists cast ids in the order in which the casts were started or continued, one per line."""


def record_latest(run_dir: Path) -> None:
    """Record that a cast is the latest of its project, independently of the clock (R69).

    Raises:
        OSError: the record cannot be written.
    """
    append_line(run_dir.parent / _ORDER, os.fsencode(run_dir.name))


def recorded_order(root: Path) -> Mapping[str, int]:
    """Return a number for each cast that was started or continued in ``root``; the latest has the highest number."""
    try:
        lines = read_plain(root / _ORDER).split(b"\n")
    except OSError:
        return {}
    return {os.fsdecode(line): number for number, line in enumerate(lines, 1)}


def creation_time(cast_id: str) -> int:
    """Return the creation time of a cast in milliseconds since the epoch, or 0 if the id is not a time."""
    with suppress(ValueError, OverflowError):
        then = datetime.strptime(cast_id, "%Y-%m-%dT%H-%M-%S-%fZ").replace(tzinfo=UTC)
        return round(then.timestamp() * 1000)
    return 0


def is_cast_id(name: str) -> bool:
    """Return True if ``name`` is a valid cast id, which cannot lead out of the artifact directory."""
    return bool(_CAST_ID.fullmatch(name)) and ".." not in name


_HEAD: Final = re.compile(
    rb'^  "(status|steps|journalBytes|journalLink|cost|unpriced)": "?([\w.+-]+)"?,?$', re.MULTILINE
)
_MAX_HEAD_BYTES: Final = 1 << 20
_WRITE_DELAY_S: Final = 0.5
_ENTRIES_AT_ONCE: Final = 500
"""Number of manifest entries per write."""


class ArtifactWriter:
    """Writes the artifacts of a cast: files of finished steps within a second, other files when the cast pauses.

    A session is immutable, so a separate thread can write its files while the cast continues.
    """

    def __init__(self, files: RunDir, rules: Rules) -> None:
        self._files, self._rules = files, rules
        self._lock = threading.Lock()
        self._since: Mapping[str, int] = {}
        self._session: Session | None = None
        self._written: Session | None = None
        self._timer: Handle | None = None

    def soon(self, session: Session) -> None:
        """Write the steps of ``session`` within a second."""
        self._session = session
        if self._timer is None:
            self._timer = call_later(_WRITE_DELAY_S, self._write_steps)

    def has_written(self, session: Session) -> bool:
        """Return True if all files of ``session`` were written."""
        return self._written is session

    def mark_written(self, session: Session) -> None:
        """Mark all files of ``session`` as written."""
        self._since, self._written = _next_steps(session), session

    def now(self, session: Session, mark: Mark) -> None:
        """Write all files of ``session``, including manifest and usage; ``mark`` is the end of its journal."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        with self._lock:
            self._since = write_steps(self._files, self._rules, session, self._since)
            self._files.write_json("usage.json", usage_report(self._rules, session))
            # Last, since the manifest confirms that all files exist.
            self._files.write("manifest.json", manifest(self._files.path.name, self._rules, session, mark))
            self._written = session

    def _write_steps(self) -> None:
        self._timer, session = None, self._session
        if session is not None:
            # A disk error is reported when the cast pauses, because all files are written then.
            with computing(), self._lock, suppress(DiskError):
                self._since = write_steps(self._files, self._rules, session, self._since)

    def stop(self) -> None:
        """Cancel a pending write."""
        if self._timer is not None:
            self._timer.cancel()


class Mark(NamedTuple):
    """A position at the end of a journal: its length in bytes, and the link of the last line."""

    size: int = 0
    link: str = ""


def write_steps(files: RunDir, rules: Rules, session: Session, since: Mapping[str, int]) -> Mapping[str, int]:
    """Write the files of the steps, starting at the indexes ``since``.

    Returns:
        The index of the first step that may still change, by folder: the folder of the cast, and of each lane.
    """
    prompts = _writes_prompts(rules)
    for part in parts_of(session):
        for step in part.steps[since.get(part.prefix, 0) :]:
            if prompts:
                write_prompt(files, rules, step, part.prefix)
            _write_step(files, rules, step, part.prefix)
    return _next_steps(session)


def _next_steps(session: Session) -> Mapping[str, int]:
    return {part.prefix: max(len(part.steps) - 1, 0) for part in parts_of(session)}


def _writes_prompts(rules: Rules) -> bool:
    """Return True if the config asks for prompts as files (R63)."""
    return rules.graph.document.get("artifacts") == "all"


def manifest_head(path: Path) -> dict[str, str]:
    """Return fields of a manifest as text.

    The fields are ``status``, ``steps``, ``journalBytes``, ``journalLink``, ``cost`` and ``unpriced``. Missing fields
    are left out; the result is empty if the manifest cannot be read.
    """
    try:
        with open_for_reading(path / "manifest.json") as handle:
            fields = _HEAD.findall(os.pread(handle, _MAX_HEAD_BYTES, 0))
    except OSError:
        return {}
    return {name.decode(): value.decode() for name, value in fields}


def written_mark(path: Path) -> Mark | None:
    """Return the end of the journal when the manifest was written, or None if the manifest does not contain it."""
    head = manifest_head(path)
    if "journalLink" not in head or not head.get("journalBytes", "").isdecimal():
        return None
    return Mark(int(head["journalBytes"]), head["journalLink"])


def is_current(files: RunDir, session: Session, mark: Mark) -> bool:
    """Return True if the manifest was written when the journal ended at ``mark`` and no output file is missing."""
    steps = (step for part in parts_of(session) for step in part.steps)
    outputs = (turn.artifact for step in steps for turn in step.turns if turn.artifact)
    return written_mark(files.path) == mark and all(files.has(name) for name in outputs)


def artifact_content(text: str) -> bytes | None:
    """Return the bytes of an output that is too long for its event and becomes an artifact (R43), otherwise None."""
    if len(text) * 3 <= OUTPUT_INLINE_BYTES:
        return None
    content = to_bytes(text)
    return content if len(content) > OUTPUT_INLINE_BYTES else None


def write_prompt(files: RunDir, rules: Rules, step: StepRecord, folder: str = "") -> None:
    """Write the parts of a step's prompt to the folder of its lane; a utility has no prompt."""
    if step.prompt is None:
        return
    head = [
        "# Prompt",
        "",
        f"cast: {files.path.name}",
        f"socket: {step.socket}",
        f"materia: {rules.sockets[step.socket].socket.materia.id}",
        f"item: {short(step.item_label) if step.item_label else '-'}",
        f"visit: {step.visit}",
    ]
    body = [line for part in step.prompt.parts if part.text for line in ("", f"## {part.heading}", "", part.text)]
    name = folder + context_name(step.socket, step.visit, step.item_key, step.branch)
    files.write(name, to_bytes("\n".join([*head, *body, ""])))


def _write_step(files: RunDir, rules: Rules, step: StepRecord, folder: str) -> None:
    for turn in step.turns:
        # A long output was written before its event, which has its digest: the file is the only copy.
        if turn.artifact is not None and artifact_content(turn.text) is None:
            files.write(turn.artifact, to_bytes(turn.text))
    reading = step.reading
    if reading is not None and reading.accepted and rules.sockets[step.socket].wanted.parse == "json":
        files.write_json(
            folder + output_name(step.socket, step.visit, None, f"{branch_suffix(step.branch)}.json"),
            reading.value,
        )


def manifest(cast_id: str, rules: Rules, session: Session, mark: Mark) -> Iterator[bytes]:
    """Yield the manifest: the state of the cast when its journal ended at ``mark``, then one artifact per line."""
    state = session.state
    head: dict[str, JSON] = {
        "castId": cast_id,
        "request": state.request,
        "loadout": rules.graph.name,
        "status": state.status,
        "steps": len(all_steps(session)),
        "journalBytes": mark.size,
        "journalLink": mark.link,
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
    between, entries = b"\n    ", _entries(rules, session)
    while block := [json_bytes(entry) for entry in islice(entries, _ENTRIES_AT_ONCE)]:
        yield between + b",\n    ".join(block)
        between = b",\n    "
    yield b"\n  ]\n}\n"


def _entries(rules: Rules, session: Session) -> Iterator[dict[str, JSON]]:
    prompts = _writes_prompts(rules)
    for step, folder in ((step, part.prefix) for part in parts_of(session) for step in part.steps):
        socket_rules = rules.sockets[step.socket]
        materia = socket_rules.socket.materia
        about: dict[str, JSON] = {"socket": step.socket, "materia": materia.id, "materiaLabel": materia.label}
        if step.item_key is not None:
            about |= {"itemKey": step.item_key, "itemLabel": step.item_label}
        about["visit"] = step.visit
        if prompts and step.prompt is not None:
            artifact = folder + context_name(step.socket, step.visit, step.item_key, step.branch)
            yield {**about, "kind": "context", "artifact": artifact, "timestamp": step.started}
        for turn in step.turns:
            kind = _artifact_kind(socket_rules, turn.mode)
            yield {**about, "kind": kind, "artifact": turn.artifact, "timestamp": step.ended}


def _artifact_kind(socket_rules: SocketRules, mode: str) -> str:
    if mode == "draft":
        return "socket_refinement"
    return "socket_work" if mode in socket_rules.works else "socket_output"


def usage_report(rules: Rules, session: Session) -> dict[str, JSON]:
    """Return tokens and cost in total, by socket, by materia and by item; None means unknown.

    Turns with unknown tokens or price are counted as ``uncounted`` or ``unpriced`` (R56).
    """
    groups: dict[str, dict[str, list[Usage]]] = {"bySocket": {}, "byMateria": {}, "byTask": {}}
    for step in (step for part in parts_of(session) for step in part.steps):
        keys = step.socket, rules.sockets[step.socket].socket.materia.id, step.item_key
        used = [*(turn.usage for turn in step.turns if turn.usage), *step.spent]
        for usages, key in zip(groups.values(), keys, strict=True):
            if key is not None and used:
                usages.setdefault(key, []).extend(used)
    total = session.state.usage
    report: dict[str, Any] = {
        "tokens": {"input": total.input, "output": total.output, "total": total.tokens, **total.apart()},
        "cost": {"total": total.cost},
        **_missing_counts(total),
    }
    for group, by_key in groups.items():
        report[group] = {key: _usage(Usage().plus(*used)) for key, used in by_key.items()}
    return report


def _usage(usage: Usage) -> Mapping[str, JSON]:
    counted = {"input": usage.input, "output": usage.output, "total": usage.tokens, "cost": usage.cost}
    return {**counted, **usage.apart(), **_missing_counts(usage)}


def _missing_counts(usage: Usage) -> dict[str, JSON]:
    """Return the numbers of turns with unknown usage and of turns with unknown price, if they are not 0 (R56)."""
    missing = {"uncounted": usage.uncounted, "unpriced": usage.unpriced}
    return {name: count for name, count in missing.items() if count}


_MAX_CONTEXT_BYTES: Final = 1_000


def find_evidence(text: str, folders: Iterable[Path]) -> Path | None:
    """Return the file or folder named by ``text`` in the first of ``folders`` that contains it.

    Args:
        text: a path, relative to one of the folders or absolute.
        folders: the folders to search.

    Returns:
        The path with links resolved, or None if it does not exist or is outside the folder.
    """
    if not text.strip() or len(text) > _MAX_CONTEXT_BYTES:
        return None
    for folder in folders:
        try:
            root = folder.resolve()
            path = (root / text.strip()).resolve()
            if path.is_relative_to(root) and path.exists():
                return path
        except (OSError, ValueError, RuntimeError):
            continue  # an invalid path: a null character, a name too long, a loop of links
    return None


def missing_evidence(naming: HandoffProtocol, reading: Reading | None, project: Path, run_dir: Path) -> list[str]:
    """Return the files that an accepted output lists as created but that do not exist (envelope rules, section 3).

    Files outside the project and the run directory are checked only if the output names an absolute path.
    URLs are not files.
    """
    if reading is None or not reading.accepted or not isinstance(reading.value, dict):
        return []
    named = dict.fromkeys(naming.artifacts(reading.value))
    return [text for text in named if text.strip() and not _evidence_exists(text.strip(), project, run_dir)]


def _evidence_exists(text: str, project: Path, run_dir: Path) -> bool:
    if "://" in text or find_evidence(text, (project, run_dir)) is not None:
        return True
    try:
        return Path(text).is_absolute() and Path(text).exists()
    except (OSError, ValueError):
        return False


def file_within(text: str, project: Path, run_dir: Path) -> str | None:
    """Return the path, relative to the project, of the file named by ``text`` in the project or the run directory.

    The result is None if the path is not a file, or if the file is outside the project.
    """
    path = find_evidence(text, (project, run_dir))
    root = project.resolve()
    if path is None or not path.is_file() or not path.is_relative_to(root):
        return None
    return path.relative_to(root).as_posix()


def write_side_files(run_dir: Path, rules: Rules, session: Session, visit: Visit, before: CastState) -> None:
    """Write the envelope of the latest output, and add its project knowledge to the context document.

    Args:
        run_dir: the run directory of the cast.
        rules: the rules of the cast.
        session: the session with the output.
        visit: the visit with the output.
        before: the state before the output.

    Raises:
        MateriaError: a file cannot be written, or the context document of the project is damaged.
    """
    write_envelope(run_dir, rules, session, visit, before)
    reading = _reading_of(session, before)
    if session.state.knowledge is not before.knowledge and reading is not None:
        socket_rules = rules.sockets[visit.socket]
        change_context(
            run_dir.parent,
            lambda stored: learned_from(rules, socket_rules, before, reading.value, stored).knowledge,
        )


def _reading_of(session: Session, before: CastState) -> Reading | None:
    return session.steps[-1].reading or (before.hold.reading if before.hold else None)


def write_envelope(run_dir: Path, rules: Rules, session: Session, visit: Visit, before: CastState) -> None:
    """Write the envelope of the latest output, as a draft until its socket is completed.

    Nothing is written if the protocol does not use envelopes, or if the output does not contain a JSON object. The
    arguments are the same as for :func:`write_side_files`.
    """
    socket_rules = rules.sockets[visit.socket]
    reading = _reading_of(session, before)
    if "file_content" not in socket_rules.protocol.overridden or reading is None or not isinstance(reading.value, dict):
        return
    facts = turn_facts(rules, before, visit)
    ended, state = session.steps[-1].ended or 0, session.state
    timestamp = datetime.fromtimestamp(ended / 1000, UTC).isoformat(timespec="milliseconds")
    value = socket_rules.protocol.file_content(reading.value, {**facts.meta, "timestamp": timestamp})
    step = step_names(tuple(rules.sockets))[visit.socket]
    flow, agent = _file_name_part(facts.meta["flow_key"]), _file_name_part(facts.meta["agent_key"])
    final, draft = map(Path, envelope_files(str(run_dir), flow, step, agent))
    RunDir(run_dir).check_inside(draft.parent.relative_to(run_dir).as_posix())
    with disk(draft, "write the envelope"):
        draft.parent.mkdir(parents=True, exist_ok=True)
        replace_file(draft, json_bytes(value, indented=True))
        if state.at != visit or state.status in ("ready", "complete"):
            draft.replace(final)


@lru_cache(maxsize=8)
def step_names(sockets: tuple[str, ...]) -> Mapping[str, str]:
    """Return a unique name for each socket, for use in file names.

    A name has no hyphens, because in a file name a hyphen separates it from the agent.

    Each character that is not an ASCII letter, a digit or ``_`` becomes ``_``, and a name has at most 100 characters.
    Names are also unique without regard to case; a number is appended if necessary.
    """
    step_of: dict[str, str] = {}
    used_names: set[str] = set()
    for at in sorted(sockets, key=lambda socket: _step(socket) != socket):
        preferred = _step(at)
        more = (f"{preferred}_{number}" for number in count(2))
        name = preferred
        while name.casefold() in used_names:
            name = next(more)
        step_of[at] = name
        used_names.add(name.casefold())  # some file systems do not tell A from a
    return step_of


def _step(at: str) -> str:
    return _file_name_part(at).replace("-", "_")


def _file_name_part(text: str) -> str:
    safe = "".join(char if char.isalnum() or char in "_-" else "_" for char in text.encode("ascii", "replace").decode())
    return safe[:100] or "_"


_CONTEXT_FILE: Final = "project-context.json"


def read_context(root: Path) -> dict[str, JSON]:
    """Return the sections of a project's context document by name; empty if the project has no document.

    Args:
        root: the directory of the run directories.

    Raises:
        MateriaError: the document is not a JSON object (``bad_context``), or cannot be read.
    """
    path = root / _CONTEXT_FILE
    with disk(path, "read the project context"):
        try:
            text = read_plain(path)
        except FileNotFoundError:
            return {}
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise MateriaError(
            "The project context is not a JSON object.",
            where=str(path),
            hint="fix the file, or move it away to start with an empty context",
            kind="bad_context",
        )
    return document


def change_context(root: Path, change: Callable[[Mapping[str, JSON]], Mapping[str, JSON]]) -> None:
    """Read, change and write the context document in one transaction, which excludes other processes.

    Raises:
        MateriaError: from :func:`read_context`, or because the document cannot be written and stays unchanged.
    """
    path = root / _CONTEXT_FILE
    with locked(path.with_suffix(".lock"), "lock the project context"):
        before = read_context(root)
        after = change(before)
        if after != before:
            with disk(path, "write the project context"):
                replace_file(path, json_bytes(dict(after), indented=True))
