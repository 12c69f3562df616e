"""Lists, finds and deletes the casts in an artifact directory, without reading whole journals (R29, R30)."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from materia_nb.engine.routing import short_label
from materia_nb.engine.state import label_from_summary
from materia_nb.errors import MateriaError, close_match, counted
from materia_nb.file_io import opened
from materia_nb.jsonvalue import JSON, as_list, as_object
from materia_nb.store.file_snapshots import delete_snapshots
from materia_nb.store.files import CastLock, disk_errors, lock_owner
from materia_nb.store.journal import JournalLine, parse_line
from materia_nb.store.rundir import creation_time, is_cast_id, manifest_head, recorded_order

CastStatus: TypeAlias = Literal["ready", "waiting", "held", "complete", "failed", "aborted", "broken"]

_REQUEST_CHARS: Final = 200
_END_BYTES: Final = 8_192  # Number of bytes that are read from the beginning and from the end of a journal.
_MAX_LINE_BYTES: Final = 262_144
"""Number of bytes to read if the first or the last line of a journal is longer than ``_END_BYTES``."""
_MAX_SUGGESTIONS: Final = 5
_CAST_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d")

_STATUS_AFTER: Final[Mapping[str, CastStatus]] = {
    "cast_start": "ready",
    "socket_start": "waiting",
    "utility_input": "waiting",
    "utility_command": "waiting",
    "socket_refinement": "waiting",
    "socket_worked": "waiting",
    "refinement_message": "waiting",
    "refinement_final": "waiting",
    "same_socket_recovery_start": "waiting",
    "same_socket_recovery_retry": "waiting",
    "same_socket_recovery_exhausted": "failed",
    "socket_refused": "failed",
    "budget_limit": "failed",
    "cast_recast": "waiting",
    "socket_continued": "waiting",
    "socket_held": "held",
    "hold_answered": "waiting",
    "approval_answered": "waiting",
    "hold_decided": "ready",
    "socket_complete": "ready",
}
"""Maps event types of the reference engine to the resulting status of the cast. This engine records the status itself."""

_READY_AFTER: Final = frozenset({"edge_traversals_exhausted", "no_advance_cycles_exhausted", "budget"})


@dataclass(frozen=True, slots=True)
class CastEntry:
    """A cast in the list of casts.

    Attributes:
        id: the cast id, which is the name of the run directory.
        path: the path of the run directory.
        loadout: the name of the loadout; None if the journal does not record a name.
        request: the request, shortened to 200 characters, with line breaks replaced by `` / ``.
        status: the status of the cast, or ``broken`` if the journal cannot be read.
        steps: the number of visits so far, including visits in lanes; None if the number is not recorded.
        started: the start time of the cast, or the time at which a fork was created, in milliseconds since the epoch;
            None if the time is unknown.
        last_event: the time of the last event, in milliseconds since the epoch; None if the time is unknown.
        ours: True if this engine wrote the cast. Any other cast is a recording, which cannot be resumed.
        locked_by: a description of the process that is writing the cast; None if no process is writing it.
        problem: the reason why the cast is broken; None if the cast is not broken.
        warnings: the distinct warning codes of a complete cast (R45).
        name: the name that a person assigned to the cast; empty if there is no name.
        tags: the tags of the cast.
        verdict: the verdict of a person, ``good``, ``bad`` or ``unsure``; empty if there is no verdict.
        note: the beginning of the note that a person wrote about the cast; empty if there is no note.
        failure: the first line of the reason why the cast failed or was aborted; empty for any other cast.
        cost: the total cost of the turns whose cost is known; None if the cost is not recorded.
        unpriced: the number of turns whose cost is unknown.
    """

    id: str
    path: Path
    loadout: str | None = None
    request: str | None = None
    status: CastStatus = "broken"
    steps: int | None = None
    started: int | None = None
    last_event: int | None = None
    ours: bool = False
    locked_by: str | None = None
    problem: str | None = None
    warnings: tuple[str, ...] = ()
    name: str = ""
    tags: tuple[str, ...] = ()
    verdict: str = ""
    note: str = ""
    failure: str = ""
    cost: float | None = None
    unpriced: int = 0

    @property
    def outcome(self) -> str:
        """The status of the cast, followed by the codes of its warnings if there are any."""
        return f"{self.status}, with warnings: {', '.join(self.warnings)}" if self.warnings else self.status


def list_casts(root: Path) -> list[CastEntry]:
    """Return the casts in ``root``, including broken casts; the most recently started or continued cast is first (R69).

    This function never raises an error.
    """
    return _latest_first(root, map(cast_entry, _run_dirs(root)))


def _latest_first(root: Path, entries: Iterable[CastEntry]) -> list[CastEntry]:
    """Return the entries in the order that ``recorded_order`` returns, latest first.

    Casts without a recorded rank follow, sorted by start time.
    """
    order = recorded_order(root)
    return sorted(entries, key=lambda entry: (order.get(entry.id, 0), entry.started or 0, entry.id), reverse=True)


class Catalogue:
    """A cached list of the casts in an artifact directory; a cast is read again only if its files have changed.

    The value of :attr:`CastEntry.locked_by` may be outdated, because locking a cast does not change these files.
    """

    def __init__(self, root: Path) -> None:
        """Create a catalogue of the casts in ``root``; the casts are not read yet."""
        self._root = root
        self._known: dict[Path, tuple[tuple[int, ...], CastEntry]] = {}

    def read(self) -> Iterator[tuple[list[CastEntry], int]]:
        """Read the casts, and repeatedly yield the entries that have been read so far, with the total number of casts.

        The entries are sorted, latest first. Casts are read in descending order of their ids, so that recent casts are
        available early. The last value that is yielded contains all entries.
        """
        paths = sorted(_run_dirs(self._root), reverse=True)
        current: dict[Path, tuple[tuple[int, ...], CastEntry]] = {}
        read_count = 0
        for path in paths:
            file_stamps, cached_entry = _file_stamps(path), self._known.get(path)
            if cached_entry is not None and cached_entry[0] == file_stamps:
                current[path] = cached_entry
                continue
            current[path] = file_stamps, cast_entry(path)
            read_count += 1
            if read_count in _PORTION_ENDS:
                yield _latest_first(self._root, (entry for _, entry in current.values())), len(paths)
        self._known = current
        yield _latest_first(self._root, (entry for _, entry in current.values())), len(paths)


_PORTION_ENDS: Final = frozenset((40, 400, *range(2_000, 1_000_000, 2_000)))
"""Numbers of newly read casts after which :meth:`Catalogue.read` yields the entries that have been read so far."""


def _file_stamps(path: Path) -> tuple[int, ...]:
    """Return the modification times and the sizes of the files from which an entry is read; skip missing files."""
    times_and_sizes: list[int] = []
    for name in ("events.jsonl", "manifest.json"):
        with suppress(OSError):
            stat = (path / name).stat()
            times_and_sizes += (stat.st_mtime_ns, stat.st_size)
    return tuple(times_and_sizes)


def find_cast(root: Path, reference: str) -> Path:
    """Return the run directory of the cast to which ``reference`` refers.

    Args:
        root: the artifact directory.
        reference: a cast id, a unique prefix of a cast id, the name of a cast, or the path of a run directory.
            ``latest`` or ``-1`` refers to the most recently started or continued cast, and ``-2`` to the cast before
            it.

    Raises:
        MateriaError: the cast does not exist (``no_cast``), or several casts match (``ambiguous_cast``).
    """
    reference = reference.strip()
    if reference == "latest" or re.fullmatch(r"-[1-9]\d{0,6}", reference):
        return _nth_latest(root, 1 if reference == "latest" else int(reference[1:]))
    if is_cast_id(reference) and os.path.isdir(root / reference):  # noqa: PTH112 - False for a name that is too long
        return (root / reference).resolve()
    path = _resolve_run_dir(reference)
    if path is not None:
        return path
    ids = [path.name for path in _run_dirs(root)]
    matches = [id_ for id_ in ids if reference and id_.startswith(reference)]
    verb, advice = "begin with", "enter more characters of the id"
    entries = [] if matches else list_casts(root)
    if not matches:
        matches = [entry.id for entry in entries if entry.name and entry.name == reference]
        verb, advice = "are called", "use the id of one of these casts"
    if len(matches) == 1:
        return (root / matches[0]).resolve()
    if matches:
        names = ", ".join(sorted(matches)[-5:])
        raise MateriaError(
            f"{len(matches)} casts {verb} {reference!r}.",
            where=str(root),
            hint=f"{advice}: {names}",
            kind="ambiguous_cast",
        )
    raise MateriaError(
        f"The cast {reference[:100]!r} does not exist.",
        where=str(root),
        hint=_suggest_cast(entries, reference),
        kind="no_cast",
    )


def filter_casts(
    entries: Sequence[CastEntry],
    *,
    name: str | None = None,
    tag: str | Sequence[str] = (),
    verdict: str | None = None,
    loadout: str | None = None,
    status: CastStatus | None = None,
) -> list[CastEntry]:
    """Return the entries that match all criteria; a criterion that is None is ignored.

    Args:
        entries: the entries to filter.
        name: the name of the cast.
        tag: a tag, or several tags that a cast must all have.
        verdict: the verdict of the cast.
        loadout: the name of the loadout.
        status: the status of the cast.
    """
    tags = {tag} if isinstance(tag, str) else set(tag)
    return [
        entry
        for entry in entries
        if name in (None, entry.name)
        and tags <= set(entry.tags)
        and verdict in (None, entry.verdict)
        and loadout in (None, entry.loadout)
        and status in (None, entry.status)
    ]


def delete_cast(root: Path, path: Path) -> None:
    """Delete the run directory of a cast, and the file snapshots of the cast.

    Raises:
        MateriaError: the directory is not in ``root`` (``not_here``), a process is writing the cast (``locked``), or
            the directory cannot be deleted.
    """
    run_dir = root.resolve() / path.name
    if path.resolve() != run_dir or run_dir.is_symlink() or not _is_run_dir(run_dir):
        raise MateriaError(
            "Only casts of this project can be deleted.",
            where=str(path),
            hint="delete the directory yourself",
            kind="not_here",
        )
    try:
        lock = CastLock(run_dir)
    except MateriaError as error:
        if error.kind == "locked":
            error.where, error.hint = str(path), "use `cast.close()` first, or end the process that is writing the cast"
        raise
    renamed_dir = run_dir.with_name(f".deleted-{run_dir.name}")
    try:
        with disk_errors(run_dir, "delete the cast"):
            run_dir.rename(renamed_dir)  # a partially deleted cast must not be listed
            shutil.rmtree(renamed_dir)
            delete_snapshots(root, run_dir.name)
    finally:
        lock.release()


def _suggest_cast(entries: Sequence[CastEntry], reference: str) -> str:
    """Return a hint that suggests a cast with a similar name or id, or else lists the latest casts."""
    if not entries:
        return "start a cast first, or enter the path of a run directory"
    known_names = [*(entry.name for entry in entries if entry.name), *(entry.id for entry in entries)]
    if (match := close_match(reference, known_names)) is not None:
        return f"did you mean {match!r}?"
    latest_entries = entries[:_MAX_SUGGESTIONS]
    lines = [f"  {entry.id}  {short_label(entry.request or '', 50)}".rstrip() for entry in latest_entries]
    return "\n".join(["choose one of the latest casts (`list casts` shows all casts):", *lines])


def _nth_latest(root: Path, rank: int) -> Path:
    casts = [entry for entry in list_casts(root) if entry.status != "broken"]
    if rank <= len(casts):
        return casts[rank - 1].path.resolve()
    message = "This project has no casts." if not casts else f"This project has only {counted(len(casts), 'cast')}."
    raise MateriaError(
        message, where=str(root), hint="start a cast first, or enter the path of a run directory", kind="no_cast"
    )


def _resolve_run_dir(reference: str) -> Path | None:
    if not reference or "\0" in reference:
        return None
    try:
        path = Path(reference).expanduser()
        if path.is_file() and path.name == "events.jsonl":
            path = path.parent
        # A single word is treated as a path only if it names a directory that contains a cast.
        is_explicit_path = reference.startswith((".", "~")) or os.sep in reference
        if path.is_dir() and (is_explicit_path or _is_run_dir(path)):
            return path.resolve()
    except (OSError, RuntimeError, ValueError):  # the path is too long or invalid, or ~user is unknown
        pass
    return None


def _run_dirs(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as entries:  # recognizes folders without reading each entry from the disk
            return [root / entry.name for entry in entries if not entry.name.startswith(".") and _is_cast(entry)]
    except OSError:
        return []


def _is_cast(entry: os.DirEntry[str]) -> bool:
    if not entry.is_dir():
        return False
    if _CAST_NAME.match(entry.name) is None:
        return (Path(entry) / "events.jsonl").exists()
    # If both files are missing, the cast is being started, or its process was killed during the start.
    return any(os.path.lexists(f"{entry.path}/{name}") for name in ("events.jsonl", "manifest.json"))


def _is_run_dir(path: Path) -> bool:
    if not os.path.isdir(path):  # noqa: PTH112 - returns False if the path cannot be accessed
        return False
    return _CAST_NAME.match(path.name) is not None or os.path.exists(path / "events.jsonl")  # noqa: PTH110 - as above


def cast_entry(path: Path) -> CastEntry:
    """Return the entry of the cast in a run directory, without reading the whole journal; never raises an error."""
    try:
        return _readable_entry(path)
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return CastEntry(path.name, path, problem=f"The journal cannot be read: {reason}.")


def _readable_entry(path: Path) -> CastEntry:
    with opened(path / "events.jsonl") as handle:
        size = os.fstat(handle).st_size
        first_bytes = os.pread(handle, _END_BYTES, 0)
        if b"\n" not in first_bytes:
            first_bytes += os.pread(handle, _MAX_LINE_BYTES, _END_BYTES)
        start = parse_line(first_bytes.partition(b"\n")[0])
        last_bytes, is_whole = b"", False
        for length in (_END_BYTES, _MAX_LINE_BYTES):
            last_bytes, is_whole = os.pread(handle, length, max(size - length, 0)), length >= size
            if is_whole or last_bytes.count(b"\n") > 1:
                break
    if start is None or start.type != "cast_start":
        return CastEntry(path.name, path, problem="The journal does not begin with `cast_start`.")
    manifest_fields = _read_manifest_fields(path, size)
    lines = last_bytes.splitlines()[0 if is_whole else 1 :]
    if manifest_fields is not None:  # only the end of the cast and later labels are needed
        end_numbers = (number for number in reversed(range(len(lines))) if b'"cast_end"' in lines[number])
        is_ended = manifest_fields["status"] in ("complete", "failed", "aborted")
        lines = lines[next(end_numbers, 0) if is_ended else -1 :]
    events = [event for line in lines if (event := parse_line(line)) is not None]
    data = start.data
    if manifest_fields is None:
        status, steps = _status_and_steps(events, is_whole=is_whole)
        # The end of the journal does not contain the number of steps in lanes.
        manifest_fields = {"status": status, "steps": None if (path / "parallel").is_dir() else steps}
    request, loadout = data.get("request"), data.get("loadout")
    labels = label_from_summary(events[-1].label if events else None)
    return CastEntry(
        id=path.name,
        path=path,
        loadout=loadout if isinstance(loadout, str) else None,
        request=_short_request(request) if isinstance(request, str) else None,
        started=max(start.ts, creation_time(path.name)) if start.ts else None,
        last_event=(events[-1].ts if events else start.ts) or None,
        ours=data.get("engine") == "materia_nb",
        locked_by=lock_owner(path),
        warnings=_warning_codes(events) if manifest_fields["status"] == "complete" else (),
        failure=_failure_line(events) if manifest_fields["status"] in ("failed", "aborted") else "",
        name=labels.name,
        tags=labels.tags,
        verdict=labels.verdict,
        note=labels.note,
        **manifest_fields,
    )


def last_events(path: Path) -> list[JournalLine]:
    """Return the events in the last 64 KiB of a journal; raises OSError if the journal cannot be read."""
    with opened(path / "events.jsonl") as handle:
        start = max(os.fstat(handle).st_size - 65_536, 0)
        lines = os.pread(handle, 65_536, start).splitlines()[1 if start else 0 :]
    return [event for line in lines if (event := parse_line(line)) is not None]


def _read_manifest_fields(path: Path, size: int) -> dict[str, Any] | None:
    """Read fields of an entry from the manifest; return None if the manifest is outdated.

    ``size`` is the current length of the journal in bytes.
    """
    head = manifest_head(path)
    status = _known_status(head.get("status"))
    if status is None or head.get("journalBytes") != str(size) or not head.get("steps", "").isdecimal():
        return None
    cost, unpriced = None, head.get("unpriced", "")
    with suppress(ValueError):
        cost = float(head.get("cost", ""))
    unpriced_turns = int(unpriced) if unpriced.isdecimal() else 0
    return {"status": status, "steps": int(head["steps"]), "cost": cost, "unpriced": unpriced_turns}


def _status_and_steps(events: list[JournalLine], *, is_whole: bool) -> tuple[CastStatus, int | None]:
    if events and (reported := _known_status(events[-1].status)) is not None and events[-1].steps is not None:
        return reported, events[-1].steps
    status: CastStatus = next(_statuses(events), "ready")
    numbers = (event.data.get("step") for event in reversed(events))
    step = next((number for number in numbers if isinstance(number, int)), None)
    if step is None and is_whole:
        step = sum(event.type == "socket_start" for event in events)
    return status, step


def _known_status(value: object) -> CastStatus | None:
    return next((status for status in get_args(CastStatus) if status == value != "broken"), None)


def _end_fields(events: list[JournalLine]) -> Mapping[str, JSON]:
    return next((event.data for event in reversed(events) if event.type == "cast_end"), {})


def _failure_line(events: list[JournalLine]) -> str:
    return short_label(str(_end_fields(events).get("error") or "").strip().partition("\n")[0], _REQUEST_CHARS)


def _warning_codes(events: list[JournalLine]) -> tuple[str, ...]:
    codes = (as_object(warning).get("code") for warning in as_list(_end_fields(events).get("warnings")))
    return tuple(dict.fromkeys(code[:60] for code in codes if isinstance(code, str)))


def _statuses(events: list[JournalLine]) -> Iterator[CastStatus]:
    for event in reversed(events):
        kind, data = event.type, event.data
        if kind == "cast_end":
            yield ("complete" if data.get("ok") is True else "aborted" if data.get("kind") == "aborted" else "failed")
        elif kind == "cast_revive":
            yield "ready" if data.get("kind") in _READY_AFTER else "waiting"
        elif kind in _STATUS_AFTER:
            yield _STATUS_AFTER[kind]


def _short_request(text: str) -> str:
    lines = (" ".join(line.split()) for line in text[: _REQUEST_CHARS * 4].splitlines())
    line = " / ".join(filter(None, lines))
    return line if len(line) <= _REQUEST_CHARS else line[: _REQUEST_CHARS - 1] + "…"
