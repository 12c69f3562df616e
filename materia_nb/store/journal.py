"""Reads and writes the journal of a cast, ``events.jsonl``, which contains one event per line as JSON (R29).

Events are appended and flushed after every step. Each line ends with a ``link``, a digest of the line and of the
previous link. The links show up to which line the journal is complete and unchanged. A link is not a signature: anyone
who can write to the file can also write valid links.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import blake2b, sha256
from io import BytesIO
from pathlib import Path
from sys import intern
from typing import Final, NamedTuple

from materia_nb.engine.events import VERSION, Event, Output, OutputEdited, to_json
from materia_nb.engine.session import Session, label_of
from materia_nb.errors import MateriaError
from materia_nb.file_io import open_plain, read_plain, replace_file, write_all
from materia_nb.jsonvalue import JSON, json_or_none, nested_too_deeply
from materia_nb.platform import HeldInterrupts, without_collecting
from materia_nb.store.files import NO_FILE, CastLock, DiskError, disk_error, disk_errors, json_bytes
from materia_nb.store.rundir import JournalEnd, RunDir, artifact_content

_MAX_JOURNAL_BYTES: Final = 2**30

_APPEND_FLAGS: Final = os.O_WRONLY | os.O_APPEND
_link_digest = partial(blake2b, digest_size=8)
"""Hash function for links. The input is a line without its link, and the key is the link of the previous line."""
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


class JournalLine(NamedTuple):
    """A line of a journal, which contains one event.

    Attributes:
        ts: the time of the event, in milliseconds since the epoch.
        type: the type of the event.
        data: the fields of the event.
        version: the version of the event format; 0 if the line was written by the reference engine.
        status: the status of the cast after the event; None if the line was written by the reference engine. All events
            of one write have the same status.
        steps: the number of steps of the cast after the event; None if the line was written by the reference engine.
        label: the labels of the cast, such as its name and its tags, for the list of casts; None if there are none.
    """

    ts: int
    type: str
    data: Mapping[str, JSON]
    version: int = VERSION
    status: str | None = None
    steps: int | None = None
    label: Mapping[str, JSON] | None = None


class Contents(NamedTuple):
    """The contents of a journal file.

    Attributes:
        lines: the events. To save memory, the last function that needs the events empties the list.
        end: the total length of the complete lines that were read, in bytes.
        incomplete_line: the content of the last line if it is incomplete; otherwise empty.
        lacks_line_break: True if the last line is complete except for its line break.
        link: the link of the last line, from which the link of the next line is computed.
        reaches_known_end: False if the journal no longer contains the line that was the last line when the manifest was
            written.
        first_broken_line: the index of the first line that has a wrong link or is not an event; None if all lines are
            intact.
        has_links: True if any line has a link. The reference engine does not write links.
    """

    lines: list[JournalLine]
    end: int
    incomplete_line: bytes
    lacks_line_break: bool
    link: str
    reaches_known_end: bool
    first_broken_line: int | None
    has_links: bool


class Journal:
    """A journal that is open for appending. :meth:`release` releases the file and the lock of the cast between writes.

    Attributes:
        end: the current end of the journal.
    """

    def __init__(
        self, path: Path, lock: CastLock | None = None, *, sync: bool = False, contents: Contents | None = None
    ) -> None:
        """Open a journal for appending.

        Args:
            path: the journal file, which is created if it does not exist.
            lock: the lock of the cast, which the journal releases when it is closed.
            sync: call fsync after each append.
            contents: the contents of an existing journal; None for a new journal. For an existing journal, call
                :meth:`repair_end` before the first append.
        """
        self.path = path
        self.sync = sync
        self._lock = lock
        self._has_partial_append = False
        self._closed = False
        self._handle = NO_FILE
        try:  # as in CastLock
            with HeldInterrupts(), disk_errors(path, "open the journal"):
                self._handle = open_plain(path, _APPEND_FLAGS | os.O_CREAT)
                status = os.fstat(self._handle)
                self._process = os.getpid()
                self._file = (status.st_ino, status.st_dev)
                self.end = JournalEnd(status.st_size, contents.link if contents else "")
        except BaseException:
            self.close()
            raise

    def repair_end(self, contents: Contents) -> Path | None:
        """Repair the end of a journal that was damaged by a crash, so that events can be appended.

        A missing line break is added. An incomplete last line is moved to a separate file next to the journal.

        Args:
            contents: the contents of the journal, which must have just been read.

        Returns:
            The path of the separate file, or None if the last line is complete.
        """
        if contents.lacks_line_break:
            with disk_errors(self.path, "add the missing line break at the end of the journal"):
                write_all(self._handle, b"\n")
                self.end = self.end._replace(size=self.end.size + 1)
        if not contents.incomplete_line:
            return None
        with disk_errors(self.path, "move the incomplete last line of the journal to a separate file"):
            torn_file = next(
                name
                for number in itertools.count(1)
                if not (name := self.path.with_name(f"{self.path.stem}.torn-{contents.end}-{number}.txt")).exists()
            )
            replace_file(torn_file, contents.incomplete_line, sync=self.sync)
            os.ftruncate(self._handle, contents.end)
            self.end = self.end._replace(size=contents.end)
        return torn_file

    def append(self, lines: Sequence[JournalLine]) -> None:
        """Append events in a single write, after checking that no other process removed or changed the file.

        Raises:
            DiskError: the write failed, and the file was truncated to its previous length. If the file could not be
                truncated, the next append truncates it first.
            MateriaError: another process holds the lock of the cast, or this process is a fork of the process that
                writes the cast (``locked``).
        """
        block, link = encode_lines(lines, self.end.link)
        with HeldInterrupts():
            if self._handle == NO_FILE or os.getpid() != self._process:
                self.reacquire()
            try:
                if self._has_partial_append:
                    self._truncate()
                self._check_unchanged()
                self._has_partial_append = True
                write_all(self._handle, block)
                if self.sync:
                    os.fsync(self._handle)
                # This is a single assignment, so that an interrupt cannot separate the two values.
                self.end = JournalEnd(self.end.size + len(block), link)
                self._has_partial_append = False
            except BaseException as error:
                if self._has_partial_append:
                    with contextlib.suppress(OSError):
                        self._truncate()
                if isinstance(error, OSError):
                    raise disk_error(self.path, "write the journal", error) from error
                raise

    def truncate_partial_append(self) -> None:
        """Truncate the file to the lines before an interrupted append, as the next append would do."""
        if self._has_partial_append:
            self._truncate()

    def _check_unchanged(self) -> None:
        """Raise DiskError if another process removed, replaced or changed the journal file."""
        try:
            status = os.stat(self.path)  # noqa: PTH116 - at each step
        except FileNotFoundError:
            status = None
        if status is None or (status.st_ino, status.st_dev) != self._file:
            raise DiskError(
                "The journal of this cast was removed or replaced while it was open.",
                where=str(self.path),
                hint="restore the journal, then use `resume`; events since its removal are not recorded",
                kind="journal_gone",
            )
        if status.st_size != self.end.size:
            raise DiskError(
                "The journal of this cast was changed by another program while it was open.",
                where=str(self.path),
                hint="close the cast, then use `resume` to continue from the changed journal",
                kind="journal_changed",
            )

    @property
    def is_released(self) -> bool:
        """True if the file and the lock are released."""
        return self._handle == NO_FILE

    def release(self) -> None:
        """Release the file and the lock until the next append, unless the file still has to be truncated."""
        if not self._has_partial_append:
            self._release()

    def reacquire(self) -> None:
        """Acquire the lock and reopen the file after :meth:`release`.

        Raises:
            DiskError: the journal was removed, replaced or changed in the meantime, or it cannot be opened.
            MateriaError: another process holds the lock of the cast, or this process is a fork of the process that
                writes the cast (``locked``).
        """
        if os.getpid() != self._process:
            raise MateriaError(
                f"This cast is being written by process {self._process}, of which this process is a fork.",
                where=str(self.path.parent),
                hint="continue the cast in that process; or start the new process with spawn instead of fork, and resume the cast in it",
                kind="locked",
            )
        if not self.is_released:
            return
        if self._closed:
            raise ValueError("the journal is closed")
        try:
            with HeldInterrupts():
                self._check_unchanged()
                self._lock = CastLock(self.path.parent)
                self._handle = open_plain(self.path, _APPEND_FLAGS)
                self._check_unchanged()
        except BaseException as error:
            self._release()
            if isinstance(error, OSError):
                raise disk_error(self.path, "open the journal", error) from error
            raise

    def _truncate(self) -> None:
        os.ftruncate(self._handle, self.end.size)
        self._has_partial_append = False

    def _release(self) -> None:
        if self.is_released and self._lock is None:
            return
        with HeldInterrupts():
            handle, self._handle = self._handle, NO_FILE
            if handle != NO_FILE:
                os.close(handle)
            lock, self._lock = self._lock, None
            if lock is not None:
                lock.release()

    def close(self) -> None:
        """Close the file and release the lock. No more events can be appended afterwards."""
        self._closed = True
        self._release()

    def __del__(self) -> None:
        """Close the journal if an interrupt prevented the caller from receiving this object."""
        self.close()


@without_collecting()
def read_journal(
    path: Path, until: str | None = None, *, known: JournalEnd | None = None, lenient: bool = False
) -> Contents:
    """Read the events of a journal and verify their links. Blank lines are skipped.

    Args:
        path: the journal file.
        until: stop after the first event of this type; None to read all events.
        known: an earlier end of the journal, such as the end that the manifest records. If the journal does not contain
            this end, ``reaches_known_end`` is False.
        lenient: stop at an invalid line and report the line in ``first_broken_line`` instead of raising an error. An
            incomplete last line is never an error; it is reported in ``incomplete_line``.

    Raises:
        MateriaError: the journal is missing or cannot be read (``no_journal``), or it is damaged (``damaged_journal``).
    """
    try:
        content = read_plain(path, _MAX_JOURNAL_BYTES)
    except OSError as error:
        raise MateriaError(
            f"The journal cannot be read: {error.strerror}.",
            where=str(path),
            hint="use the directory of a cast, which contains events.jsonl",
            kind="no_journal",
        ) from error
    lines: list[JournalLine] = []
    is_known_reached = known is None
    position, link, has_links, first_broken_line = 0, "", False, None
    torn, lacks_line_break = b"", bool(content) and not content.endswith(b"\n")
    for number, raw_line in enumerate(BytesIO(content), start=1):
        start, position = position, position + len(raw_line)
        line = None if raw_line.isspace() else parse_line(raw_line)
        if line is not None:
            body, written_link = _split_link(raw_line.rstrip(b"\r\n"))
            expected_link = _link_digest(body, key=link.encode()).hexdigest()
            if first_broken_line is None and (written_link != expected_link if written_link or has_links else False):
                first_broken_line = len(lines)
            link, has_links = written_link or expected_link, has_links or bool(written_link)
            lines.append(line)
            is_known_reached = is_known_reached or (known is not None and known.link == link)
            if line.type == until:
                break
        elif position == len(content):
            torn, lacks_line_break, position = b"" if raw_line.isspace() else raw_line, False, start
            break
        elif not raw_line.isspace():
            if lenient:
                first_broken_line = len(lines) if first_broken_line is None else first_broken_line
                break
            raise MateriaError(
                "The journal is damaged: a line before its end is not an event.",
                where=f"{path}:{number}",
                hint="restore the file, or remove the damaged line and all later lines, then use `resume`",
                kind="damaged_journal",
            )
    # A truncated JSON object is never valid JSON, so a last line that can be parsed is complete.
    return Contents(lines, position, torn, lacks_line_break, link, is_known_reached, first_broken_line, has_links)


_LINK_START: Final = b',"link":"'
_MAX_SHARED_CHARS: Final = 80
_LINK_CHARS: Final = len(_LINK_START) + 18  # 16 digits, a quotation mark and a brace


def _split_link(raw_line: bytes) -> tuple[bytes, str]:
    """Split a line into its body and its link; the link is empty if the line has no link."""
    if raw_line[-_LINK_CHARS:-18] != _LINK_START:
        return raw_line, ""
    return raw_line[:-_LINK_CHARS], raw_line[-18:-2].decode("ascii", "replace")


def parse_line(raw_line: bytes) -> JournalLine | None:
    """Parse a line of a journal; return None if the line is not an event. Values of a wrong type are ignored."""
    value = json_or_none(raw_line)
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return None
    ts, data, version = value.get("ts"), value.get("data"), value.get("v")
    status, steps, label = value.get("status"), value.get("steps"), value.get("label")
    fields: dict[str, JSON] = {}
    if isinstance(data, dict):
        for name, field in data.items():
            # Names and short strings recur in many lines, so they are interned to save memory.
            fields[intern(name)] = intern(field) if type(field) is str and len(field) <= _MAX_SHARED_CHARS else field
    return JournalLine(
        ts if isinstance(ts, int) else 0,
        intern(value["type"]),
        fields,
        version if isinstance(version, int) else 0,
        intern(status) if isinstance(status, str) else None,
        steps if isinstance(steps, int) else None,
        label if isinstance(label, dict) else None,
    )


def encode_lines(lines: Sequence[JournalLine], link: str = "") -> tuple[bytes, str]:
    """Encode lines for a journal, and return the bytes and the link of the last line.

    ``link`` is the link of the line that precedes ``lines``; it is empty at the beginning of a journal.
    """
    blocks = []
    for line in lines:
        fields = {
            "ts": line.ts,
            "type": line.type,
            "v": line.version,
            "status": line.status,
            "steps": line.steps,
            "data": line.data,
        }
        if line.label is not None:
            fields["label"] = line.label
        try:
            body = _encode(fields).encode()[:-1]
        except UnicodeEncodeError:  # a lone surrogate has to be escaped
            body = json_bytes(fields)[:-1]
        except RecursionError as error:
            raise nested_too_deeply() from error
        except (TypeError, ValueError) as error:
            raise MateriaError(
                f"A value is not JSON: {error}.", hint="use only strings, numbers, lists and dicts", kind="not_json"
            ) from error
        link = _link_digest(body, key=link.encode()).hexdigest()
        blocks += [body, _LINK_START, link.encode(), b'"}\n']
    return b"".join(blocks), link


def journal_lines(events: Sequence[Event], session: Session, run_dir: RunDir) -> list[JournalLine]:
    """Convert events to journal lines. A long output is written to an artifact; its line contains the digest (R43).

    Args:
        events: the events of one write.
        session: the session after the events, whose status, steps and labels the lines record.
        run_dir: the run directory in which artifacts are written.
    """
    status, steps = session.state.status, session.state.steps
    label = label_of(session).summary_json() if session.labels else None
    lines = []
    for event in events:
        data = to_json(event)
        text = event.text if isinstance(event, (Output, OutputEdited)) else None
        if text is not None and (content := artifact_content(text)) is not None:
            run_dir.write(str(data["artifact"]), content)
            del data["text"]
            data["sha256"] = sha256(content).hexdigest()
        lines.append(JournalLine(event.ts, event.type, data, VERSION, status, steps, label or None))
    return lines
