"""The list of casts in an artifact directory, compiled without reading whole journals (R29, R30)."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from materia_nb.engine.routing import short
from materia_nb.engine.state import as_listed
from materia_nb.errors import MateriaError, close_match, counted
from materia_nb.file_io import open_for_reading
from materia_nb.jsonvalue import JSON, as_list, as_object
from materia_nb.store.file_snapshots import delete_snapshots
from materia_nb.store.files import CastLock, disk, lock_owner
from materia_nb.store.journal import JournalLine, parse_line
from materia_nb.store.rundir import creation_time, is_cast_id, manifest_head, recorded_order

CastStatus: TypeAlias = Literal["ready", "waiting", "held", "complete", "failed", "aborted", "broken"]

_REQUEST_CHARS: Final = 200
_END_BYTES: Final = 8_192
"""Number of bytes that are read at the beginning of a journal, and at its end."""
_MAX_LINE_BYTES: Final = 262_144
"""Number of bytes to read instead of ``_END_BYTES`` if the first or last line is longer than ``_END_BYTES``."""
_MAX_SUGGESTIONS: Final = 5
"""Maximum number of casts that the error about an unknown cast lists."""
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
"""The status of a cast after each type of event of the reference engine. Events of this engine contain the status."""

_READY_AFTER: Final = frozenset({"edge_traversals_exhausted", "no_advance_cycles_exhausted", "budget"})


@dataclass(frozen=True, slots=True)
class CastEntry:
    """A cast in the list of casts.

    Attributes:
        id: the name of its directory.
        path: its directory.
        loadout: the name of its loadout; None if the journal does not name one.
        request: the request on one line, with `` / `` for each line break, at most 200 characters.
        status: the status of the cast, or ``broken`` if the directory cannot be read as a cast.
        steps: the number of visits so far, including visits in lanes; None if the end of the journal does not contain
            the number.
        started: the start in milliseconds since the epoch, None if unknown; for a fork, the time of the fork.
        last_event: the time of the last event, in milliseconds since the epoch.
        ours: True if this engine wrote the cast; any other cast is a recording, which cannot be resumed.
        locked_by: a description of the process that is writing the cast; None if no process is writing it.
        problem: the reason why a cast is broken.
        warnings: the codes of the warnings of a complete cast, each once (R45).
        name: the name that a person gave the cast, or an empty string.
        tags: the tags of the cast.
        verdict: the verdict of a person: good, bad or unsure; an empty string without a verdict.
        note: the beginning of a person's note.
        failure: the first line of the reason why the cast failed or was aborted; otherwise an empty string.
        cost: the cost of its turns so far, without ``unpriced`` turns; None if the cost was not reported or is not known yet.
        unpriced: the number of turns without a reported cost.
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
        """The status, with the warnings of a complete cast."""
        return f"{self.status}, with warnings: {', '.join(self.warnings)}" if self.warnings else self.status


def list_casts(root: Path) -> list[CastEntry]:
    """Return the casts under ``root``, including broken casts, most recently started or continued first (R69).

    Never raises.
    """
    return _latest_first(root, map(cast_entry, _run_dirs(root)))


def _latest_first(root: Path, entries: Iterable[CastEntry]) -> list[CastEntry]:
    """Sort entries by the recorded order of the project, latest first.

    Casts missing in the record follow, sorted by time.
    """
    order = recorded_order(root)
    return sorted(entries, key=lambda entry: (order.get(entry.id, 0), entry.started or 0, entry.id), reverse=True)


class Catalogue:
    """The casts under an artifact directory, read in portions. A cast is read again only if its files have changed.

    :attr:`CastEntry.locked_by` may be outdated, because locking a cast does not change these files.
    """

    def __init__(self, root: Path) -> None:
        """Create an empty catalogue of the casts under ``root``."""
        self._root = root
        self._known: dict[Path, tuple[tuple[int, ...], CastEntry]] = {}

    def read(self) -> Iterator[tuple[list[CastEntry], int]]:
        """Yield the entries read so far, latest first, and the total number of casts; the last portion has all entries.

        Casts with the latest names are read first, so the first portion usually contains the cast that a person looks
        for.
        """
        paths = sorted(_run_dirs(self._root), reverse=True)
        current: dict[Path, tuple[tuple[int, ...], CastEntry]] = {}
        fresh = 0
        for path in paths:
            written, before = _file_times(path), self._known.get(path)
            if before is not None and before[0] == written:
                current[path] = before
                continue
            current[path] = written, cast_entry(path)
            fresh += 1
            if fresh in _PORTION_ENDS:
                yield _latest_first(self._root, (entry for _, entry in current.values())), len(paths)
        self._known = current
        yield _latest_first(self._root, (entry for _, entry in current.values())), len(paths)


_PORTION_ENDS: Final = frozenset((40, 400, *range(2_000, 1_000_000, 2_000)))
"""Numbers of casts after which the entries read so far are yielded."""


def _file_times(path: Path) -> tuple[int, ...]:
    """Return the modification times and sizes of the files from which an entry is read; missing files are omitted."""
    times_and_sizes: list[int] = []
    for name in ("events.jsonl", "manifest.json"):
        with suppress(OSError):
            stat = (path / name).stat()
            times_and_sizes += (stat.st_mtime_ns, stat.st_size)
    return tuple(times_and_sizes)


def find_cast(root: Path, reference: str) -> Path:
    """Find a run directory.

    Args:
        root: the artifact directory.
        reference: a cast id or its unique beginning, the name of a cast, the path of a run directory, or ``latest``.
            ``latest`` or ``-1`` is the most recently started or continued cast; ``-2`` is the cast before it.

    Raises:
        MateriaError: kinds ``no_cast`` and ``ambiguous_cast``.
    """
    reference = reference.strip()
    if reference == "latest" or re.fullmatch(r"-[1-9]\d{0,6}", reference):
        return _nth_latest(root, 1 if reference == "latest" else int(reference[1:]))
    if is_cast_id(reference) and os.path.isdir(root / reference):  # noqa: PTH112 - False for a name that is too long
        return (root / reference).resolve()
    path = _as_path(reference)
    if path is not None:
        return path
    ids = [path.name for path in _run_dirs(root)]
    matches = [id_ for id_ in ids if reference and id_.startswith(reference)]
    relation, advice = "begin with", "enter more characters of the id"
    entries = [] if matches else list_casts(root)
    if not matches:
        matches = [entry.id for entry in entries if entry.name and entry.name == reference]
        relation, advice = "are called", "use the id of one of these casts"
    if len(matches) == 1:
        return (root / matches[0]).resolve()
    if matches:
        names = ", ".join(sorted(matches)[-5:])
        raise MateriaError(
            f"{len(matches)} casts {relation} {reference!r}.",
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
    """Return the entries that match all criteria and have all tags."""
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
    """Remove a run directory and everything in it.

    Raises:
        MateriaError: the directory is not in ``root`` (``not_here``), a process is writing the cast (``locked``), or the
            directory cannot be removed.
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
        if error.kind != "locked":
            raise
        raise MateriaError(
            error.what,
            where=str(path),
            hint="close it first (cast.close()), or end the process that writes it",
            kind="locked",
        ) from None
    doomed_dir = run_dir.with_name(f".deleted-{run_dir.name}")
    try:
        with disk(run_dir, "delete the cast"):
            run_dir.rename(doomed_dir)  # at once: half of a cast is never listed
            shutil.rmtree(doomed_dir)
            delete_snapshots(root, run_dir.name)
    finally:
        lock.release()


def _suggest_cast(entries: Sequence[CastEntry], reference: str) -> str:
    """Return a hint: the cast that was probably meant, or else the latest casts with their requests."""
    if not entries:
        return "start a cast first, or enter the path of a run directory"
    known = [*(entry.name for entry in entries if entry.name), *(entry.id for entry in entries)]
    if (match := close_match(reference, known)) is not None:
        return f"did you mean {match!r}?"
    latest = entries[:_MAX_SUGGESTIONS]
    lines = [f"  {entry.id}  {short(entry.request or '', 50)}".rstrip() for entry in latest]
    return "\n".join(["choose one of the latest casts (list casts shows all):", *lines])


def _nth_latest(root: Path, rank: int) -> Path:
    casts = [entry for entry in list_casts(root) if entry.status != "broken"]
    if rank <= len(casts):
        return casts[rank - 1].path.resolve()
    message = "This project has no casts." if not casts else f"This project has only {counted(len(casts), 'cast')}."
    raise MateriaError(
        message,
        where=str(root),
        hint="start a cast first, or enter the path of a run directory",
        kind="no_cast",
    )


def _as_path(reference: str) -> Path | None:
    if not reference or "\0" in reference:
        return None
    try:
        path = Path(reference).expanduser()
        if path.is_file() and path.name == "events.jsonl":
            path = path.parent
        # A single word that names a directory here counts only if the directory contains a cast.
        is_explicit_path = reference.startswith((".", "~")) or os.sep in reference
        if path.is_dir() and (is_explicit_path or _is_run_dir(path)):
            return path.resolve()
    except (OSError, RuntimeError, ValueError):  # too long a name, an unknown home, half of a surrogate pair
        pass
    return None


def _run_dirs(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as listing:  # which recognizes folders without a disk access for each entry
            return [root / listed.name for listed in listing if not listed.name.startswith(".") and _is_cast(listed)]
    except OSError:
        return []


def _is_cast(listed: os.DirEntry[str]) -> bool:
    if not listed.is_dir():
        return False
    if _CAST_NAME.match(listed.name) is None:
        return (Path(listed) / "events.jsonl").exists()
    # Without both files, the cast is being started, or its process was killed during the start.
    return any(os.path.lexists(f"{listed.path}/{name}") for name in ("events.jsonl", "manifest.json"))


def _is_run_dir(path: Path) -> bool:
    if not os.path.isdir(path):  # noqa: PTH112 - False also where the disk refuses
        return False
    return _CAST_NAME.match(path.name) is not None or os.path.exists(path / "events.jsonl")  # noqa: PTH110 - as above


def cast_entry(path: Path) -> CastEntry:
    """Return the entry of one run directory without reading its whole journal; never raises."""
    try:
        return _readable_entry(path)
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return CastEntry(path.name, path, problem=f"The journal cannot be read: {reason}.")


def _readable_entry(path: Path) -> CastEntry:
    with open_for_reading(path / "events.jsonl") as handle:
        size = os.fstat(handle).st_size
        head = os.pread(handle, _END_BYTES, 0)
        if b"\n" not in head:
            head += os.pread(handle, _MAX_LINE_BYTES, _END_BYTES)
        start = parse_line(head.partition(b"\n")[0])
        tail, is_whole = b"", False
        for length in (_END_BYTES, _MAX_LINE_BYTES):
            tail, is_whole = os.pread(handle, length, max(size - length, 0)), length >= size
            if is_whole or tail.count(b"\n") > 1:
                break
    if start is None or start.type != "cast_start":
        return CastEntry(path.name, path, problem="The journal does not begin with cast_start.")
    written = _from_manifest(path, size)
    lines = tail.splitlines()[0 if is_whole else 1 :]
    if written is not None:  # the fields come from the end of the cast, and from later labels
        end_numbers = (number for number in reversed(range(len(lines))) if b'"cast_end"' in lines[number])
        is_ended = written["status"] in ("complete", "failed", "aborted")
        lines = lines[next(end_numbers, 0) if is_ended else -1 :]
    events = [event for line in lines if (event := parse_line(line)) is not None]
    data = start.data
    if written is None:
        status, steps = _from_events(events, is_whole=is_whole)
        # The end of the journal does not contain the number of steps in lanes.
        written = {"status": status, "steps": None if (path / "parallel").is_dir() else steps}
    request, loadout = data.get("request"), data.get("loadout")
    label = as_listed(events[-1].label if events else None)
    return CastEntry(
        id=path.name,
        path=path,
        loadout=loadout if isinstance(loadout, str) else None,
        request=_short_request(request) if isinstance(request, str) else None,
        started=max(start.ts, creation_time(path.name)) if start.ts else None,
        last_event=(events[-1].ts if events else start.ts) or None,
        ours=data.get("engine") == "materia_nb",
        locked_by=lock_owner(path),
        warnings=_warnings(events) if written["status"] == "complete" else (),
        failure=_failure(events) if written["status"] in ("failed", "aborted") else "",
        name=label.name,
        tags=label.tags,
        verdict=label.verdict,
        note=label.note,
        **written,
    )


def last_events(path: Path) -> list[JournalLine]:
    """Return the events in the last 64 KB of a journal; raises OSError if the journal cannot be read."""
    with open_for_reading(path / "events.jsonl") as handle:
        start = max(os.fstat(handle).st_size - 65_536, 0)
        lines = os.pread(handle, 65_536, start).splitlines()[1 if start else 0 :]
    return [event for line in lines if (event := parse_line(line)) is not None]


def _from_manifest(path: Path, size: int) -> dict[str, Any] | None:
    """Return fields of a cast's entry from its manifest, or None if the manifest does not match the journal's end."""
    head = manifest_head(path)
    known = _known_status(head.get("status"))
    if known is None or head.get("journalBytes") != str(size) or not head.get("steps", "").isdecimal():
        return None
    cost, unpriced = None, head.get("unpriced", "")
    with suppress(ValueError):
        cost = float(head.get("cost", ""))
    unpriced_turns = int(unpriced) if unpriced.isdecimal() else 0
    return {"status": known, "steps": int(head["steps"]), "cost": cost, "unpriced": unpriced_turns}


def _from_events(events: list[JournalLine], *, is_whole: bool) -> tuple[CastStatus, int | None]:
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


def _failure(events: list[JournalLine]) -> str:
    return short(str(_end_fields(events).get("error") or "").strip().partition("\n")[0], _REQUEST_CHARS)


def _warnings(events: list[JournalLine]) -> tuple[str, ...]:
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
