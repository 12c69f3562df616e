"""The journal of a cast: ``events.jsonl``, one JSON object a line, appended and flushed at every step (R29)."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from materia_nb.engine.event_json import to_json
from materia_nb.engine.events import OUTPUT_INLINE_BYTES, VERSION, Event, Output, SocketRecommitted
from materia_nb.engine.session import Session, label_of
from materia_nb.errors import MateriaError
from materia_nb.interrupts import HeldInterrupts
from materia_nb.jsonvalue import JSON, too_deep_to_write
from materia_nb.store.files import (
    DiskError,
    disk,
    disk_error,
    json_bytes,
    open_plain,
    read_plain,
    to_bytes,
    write_file,
)
from materia_nb.store.rundir import RunDir

LONGEST: Final = 2**30
"""The longest journal that is read, in bytes."""

_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


class Line(NamedTuple):
    """One event as it stands in the journal.

    Attributes:
        ts: milliseconds since the epoch.
        type: what happened.
        data: its fields.
        version: of its form; 1 where the line says none.
        status: how the cast stood after it, and after those written with it; None in version 1.
        steps: how many steps the cast had then.
        label: what people said of the cast then, as the list of casts tells it; None for nothing.
    """

    ts: int
    type: str
    data: Mapping[str, JSON]
    version: int = VERSION
    status: str | None = None
    steps: int | None = None
    label: Mapping[str, JSON] | None = None


class Contents(NamedTuple):
    """The events of a journal, where the good part ends (bytes), and what a torn last line held.

    ``unended`` says that the last line is whole but for its line break.
    """

    lines: tuple[Line, ...]
    end: int
    torn: bytes
    unended: bool = False


class Journal:
    """Appends events. Set a torn last line aside first (:func:`mend`), so that they go behind the good part."""

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        """Open ``path`` for appending; ``sync`` asks for an fsync at every append."""
        self.path = path
        self.sync = sync
        self._unsure = False
        self._handle = -1
        with HeldInterrupts(), disk(path, "open the journal"):
            self._handle = open_plain(path, _APPEND)
            self._end = os.fstat(self._handle).st_size

    def append(self, lines: Sequence[Line]) -> None:
        """Append events in one write, after a look that the file is still there and nobody else wrote it.

        Raises:
            DiskError: nothing of the events stays, unless the disk refuses even to cut the file; then
                the next append cuts it before it writes.
        """
        block = encoded(lines)
        with HeldInterrupts():
            try:
                if self._unsure:
                    self._cut()
                self._check_alone()
                self._unsure = True
                written = os.write(self._handle, block)
                while written < len(block):
                    written += os.write(self._handle, block[written:])
                if self.sync:
                    os.fsync(self._handle)
                self._end += len(block)
                self._unsure = False
            except BaseException as error:
                if self._unsure:
                    with contextlib.suppress(OSError):
                        self._cut()
                if isinstance(error, OSError):
                    raise disk_error(self.path, "write the journal", error) from error
                raise

    def _check_alone(self) -> None:
        """Refuse to write to a journal that was removed, replaced, or written by somebody else."""
        here = os.fstat(self._handle)
        try:
            there = os.stat(self.path)  # noqa: PTH116 - at each step
        except FileNotFoundError:
            there = None
        if there is None or (there.st_ino, there.st_dev) != (here.st_ino, here.st_dev):
            raise DiskError(
                "The journal of this cast was removed or replaced while it was open.",
                where=str(self.path),
                hint="put it back, then resume; what happened since it went is not recorded",
                kind="journal_gone",
            )
        if here.st_size != self._end:
            raise DiskError(
                "The journal of this cast was changed by somebody else while it was open.",
                where=str(self.path),
                hint="close the cast here and resume it, to go on from what the journal says now",
                kind="journal_changed",
            )

    @property
    def end(self) -> int:
        """How many bytes of the journal are known to be good."""
        return self._end

    def _cut(self) -> None:
        os.ftruncate(self._handle, self._end)
        self._unsure = False

    def close(self) -> None:
        """Close the file; appending afterwards is an error."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __del__(self) -> None:
        """Close also where an interrupt came before anybody had the journal to close."""
        self.close()


def read_journal(path: Path, until: str | None = None) -> Contents:
    """Read every event, or those up to the first of the type ``until``.

    A last line that is not whole is returned as ``torn``; blank lines are passed over.

    Raises MateriaError (kind ``damaged_journal``) when a line before the last is not an event.
    """
    try:
        content = read_plain(path, LONGEST)
    except OSError as error:
        raise MateriaError(
            f"There is no readable journal here: {error.strerror}.",
            where=str(path),
            hint="give the directory of a cast, the one that holds events.jsonl",
            kind="no_journal",
        ) from error
    lines: list[Line] = []
    position = 0
    for number, raw in enumerate(content.splitlines(keepends=True), start=1):
        start, position = position, position + len(raw)
        line = _event(raw)
        if line is not None:
            lines.append(line)
            if line.type == until:
                break
        elif position == len(content):
            if raw.isspace():
                return Contents(tuple(lines), start, b"")
            return Contents(tuple(lines), start, raw)
        elif not raw.isspace():
            raise MateriaError(
                "The journal is damaged: a line in the middle is not an event.",
                where=f"{path}:{number}",
                hint="restore the file, or cut it off before that line to go on from there",
                kind="damaged_journal",
            )
    # A beginning of a JSON object is never one itself, so a last line that can be read is whole.
    return Contents(tuple(lines), position, b"", unended=bool(content) and not content.endswith(b"\n"))


def mend(path: Path, contents: Contents) -> Path | None:
    """Make a journal ready to be appended to.

    A torn last line is moved into a file of its own beside the journal, which is returned;
    a last line that lacks only its line break gets it.
    """
    if contents.unended:
        with disk(path, "end the last line of the journal"), path.open("ab") as file:
            file.write(b"\n")
    if not contents.torn:
        return None
    aside = next(
        name
        for number in itertools.count(1)
        if not (name := path.with_name(f"{path.stem}.torn-{contents.end}-{number}.txt")).exists()
    )
    with disk(path, "set the torn last line of the journal aside"):
        write_file(str(aside), contents.torn)
        os.truncate(path, contents.end)
    return aside


def _event(raw: bytes) -> Line | None:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return None
    ts, data, version = value.get("ts"), value.get("data"), value.get("v")
    status, steps, label = value.get("status"), value.get("steps"), value.get("label")
    return Line(
        ts if isinstance(ts, int) else 0,
        value["type"],
        data if isinstance(data, dict) else {},
        version if isinstance(version, int) else 1,
        status if isinstance(status, str) else None,
        steps if isinstance(steps, int) else None,
        label if isinstance(label, dict) else None,
    )


def encoded(lines: Sequence[Line]) -> bytes:
    """Return lines as they stand in a journal."""
    forms = []
    for line in lines:
        form = {
            "ts": line.ts,
            "type": line.type,
            "v": line.version,
            "status": line.status,
            "steps": line.steps,
            "data": line.data,
        }
        forms.append(form if line.label is None else {**form, "label": line.label})
    try:
        return "\n".join([*map(_encode, forms), ""]).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can only escape
        return b"".join(json_bytes(form) + b"\n" for form in forms)
    except RecursionError as error:
        raise too_deep_to_write() from error
    except (TypeError, ValueError) as error:
        raise MateriaError(
            f"This is not JSON: {error}.", hint="use text, numbers, lists and dicts", kind="not_json"
        ) from error


_KEPT: Final = (Output, SocketRecommitted)
"""The events whose text may stand in an artifact."""


def lines_of(events: Sequence[Event], session: Session, files: RunDir) -> list[Line]:
    """Return the lines of events that lead to ``session``.

    A long output is written as its artifact first, and its digest stands in the line (R43).
    """
    status, steps = session.state.status, session.state.steps
    label = label_of(session).listed() if session.labels else None
    found = []
    for event in events:
        data = to_json(event)
        text = data.get("text")
        if isinstance(text, str) and len(text) * 3 > OUTPUT_INLINE_BYTES and isinstance(event, _KEPT):
            content = to_bytes(text)
            if len(content) > OUTPUT_INLINE_BYTES:
                files.write(str(data["artifact"]), content)
                del data["text"]
                data["sha256"] = sha256(content).hexdigest()
        found.append(Line(event.ts, event.type, data, VERSION, status, steps, label or None))
    return found
