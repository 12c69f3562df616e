"""Helpers for the file system: disk errors, locks, JSON encoding, file formats, and detection of changed files."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from materia_nb.errors import MateriaError, usage_error
from materia_nb.file_io import open_file, open_plain, opened, read_plain, replace_file
from materia_nb.jsonvalue import JSON, nested_too_deeply
from materia_nb.platform import HeldInterrupts, file_is_locked, lock_file, unlock_file

CAST_ID: Final = r"^[0-9A-Za-z][0-9A-Za-z_.-]*$"
"""Regular expression for cast ids. A cast id is used as a directory name, so it must not contain a separator."""


class DiskError(MateriaError):
    """Raised if a file operation fails, for example because the disk is full, read-only or missing.

    Everything that was recorded before the failure is intact.
    """


class disk_errors:  # noqa: N801 - used like a function: with disk_errors(path, "write it")
    """Context manager that converts an OSError to a DiskError with the path and a description of the action."""

    __slots__ = ("action", "path")

    def __init__(self, path: Path | str, action: str) -> None:
        self.path, self.action = path, action

    def __enter__(self) -> None:
        """Enter the context."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Raise a DiskError if the block raised an OSError or an error about an invalid path."""
        if isinstance(error, UnicodeEncodeError) or (isinstance(error, ValueError) and "null" in str(error)):
            raise DiskError(
                f"Could not {self.action}: the path is not a valid file name.", where=repr(str(self.path)), kind="disk"
            )
        if isinstance(error, OSError):
            raise disk_error(self.path, self.action, error) from error


def write_file(path: Path, content: bytes, action: str) -> None:
    """Write a file atomically, and create missing parent directories.

    Raises:
        DiskError: the file cannot be written; ``action`` is the verb phrase for its message.
    """
    with disk_errors(path, action):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)


@contextlib.contextmanager
def removed_on_error(folder: Path) -> Iterator[None]:
    """Remove a new directory with its contents if the block is interrupted or raises an exception."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def disk_error(path: Path | str, action: str, error: OSError) -> DiskError:
    """Return the DiskError for a file operation on ``path`` that failed with ``error``.

    ``action`` is a verb phrase for the message, such as ``"write the journal"``.
    """
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return DiskError(
            f"Could not {action}: too many files are open.",
            where=str(path),
            hint="close casts (`cast.close()` or `wb.close()`) or other files, or raise the limit (`ulimit -n`); "
            "everything recorded so far is kept",
            kind="too_many_files",
        )
    return DiskError(
        f"Could not {action}: {error.strerror or error}.",
        where=str(path),
        hint="move this file or directory away, because a plain file is expected at this path"
        if error.errno in {errno.EINVAL, errno.ELOOP, errno.EISDIR}
        else _RESUME_HINT,
        kind="disk",
    )


_RESUME_HINT: Final = (
    "free disk space or make the directory writable, then use `resume`; everything recorded so far is kept"
)


@contextlib.contextmanager
def before_first_record() -> Iterator[None]:
    """Replace the hint of a disk error that occurs before the first event is recorded.

    The default hint advises the user to resume the cast, which is not possible yet.
    """
    try:
        yield
    except DiskError as error:
        if error.hint == _RESUME_HINT:
            error.hint = "free disk space or make the directory writable, then cast again; nothing was recorded"
        raise


def to_bytes(text: str) -> bytes:
    """Encode a string as UTF-8, and replace lone surrogates, which UTF-8 cannot encode, with U+FFFD.

    Raises:
        MateriaError: the value is not a string (``usage``).
    """
    if not isinstance(text, str):
        raise usage_error(f"{text!r:.40} is not a string.", "pass a string")
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


_encode_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_quote = json.encoder.encode_basestring
_LITERALS: Final = {None: "null", True: "true", False: "false"}


def json_bytes(value: JSON, *, indented: bool = False) -> bytes:
    """Serialize a JSON value to UTF-8, and escape characters that UTF-8 cannot encode."""
    try:
        return (_indent_json(value, "\n") if indented else _encode_compact(value)).encode()
    except UnicodeEncodeError:
        indent, separators = (2, None) if indented else (None, (",", ":"))
        return json.dumps(value, indent=indent, separators=separators).encode()
    except RecursionError as error:
        if indented:
            return json_bytes(value)  # the compact encoder supports deeper nesting
        raise nested_too_deeply() from error


def _indent_json(value: JSON, line_break: str) -> str:
    """Serialize a JSON value like ``json.dumps`` with ``indent=2``, but faster.

    ``line_break`` is a line break followed by the indentation of the current line.
    """
    if isinstance(value, str):
        return _quote(value)
    if value is None or isinstance(value, bool):
        return _LITERALS[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if not value or not isinstance(value, (dict, list, tuple)):
        return _encode_compact(value)
    inner = line_break + "  "
    if isinstance(value, dict):
        parts = [f"{_quote(str(name))}: {_indent_json(field, inner)}" for name, field in value.items()]
        return f"{{{inner}{f',{inner}'.join(parts)}{line_break}}}"
    return f"[{inner}{f',{inner}'.join([_indent_json(entry, inner) for entry in value])}{line_break}]"


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A JSON file format that is defined by this package.

    Attributes:
        noun: the noun for a file of this format in messages, such as ``recording``.
        format_name: the value of the field ``format``, which identifies the format.
        hint: a hint that names the command that creates such a file.
    """

    noun: str
    format_name: str
    hint: str

    def read(self, path: Path) -> dict[str, Any]:
        """Read a file of this format and return its JSON object.

        Raises:
            MateriaError: the file cannot be read (``no_recording`` or ``no_case``), or the file has another format
                (``bad_recording`` or ``bad_case``).
        """
        try:
            content = read_plain(path, follow=True)
        except (OSError, ValueError) as error:
            raise MateriaError(
                f"The {self.noun} cannot be read: {getattr(error, 'strerror', 'the path is not a valid file name')}.",
                where=str(path),
                hint=self.hint,
                kind=f"no_{self.noun}",
            ) from error
        try:
            value = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self.format_error(path, f"it is not JSON ({error})") from error
        return self.check(value, path)

    def check(self, value: JSON, where: Path | str) -> dict[str, Any]:
        """Return ``value`` if it is a document of this format; otherwise, raise MateriaError."""
        if not isinstance(value, dict) or value.get("format") != self.format_name:
            raise self.format_error(where, f"its format is not {self.format_name!r}")
        return value

    def format_error(self, where: Path | str, why: str) -> MateriaError:
        """Return the error for a file that does not have this format."""
        return MateriaError(
            f"This is not a {self.noun}: {why}.", where=str(where), hint=self.hint, kind=f"bad_{self.noun}"
        )


FileStamps: TypeAlias = Mapping[str, tuple[int, int, int]]
"""Maps the relative path of each file to its modification time, its inode change time and its size."""

MAX_PROJECT_FILES: Final = 20_000
"""Maximum number of files and folders in a project; changes in a larger project are not detected."""
MAX_CHANGED_FILES: Final = 200
"""Maximum number of changed files that are reported."""
_SKIPPED_FOLDERS: Final = frozenset({"__pycache__", "node_modules", "venv"})
_TIMESTAMP_RESOLUTION_NS: Final = 10_000_000
"""Resolution of the file system's timestamps, in nanoseconds: two writes within this time may get equal timestamps."""


def read_file_stamps(project: Path, skip: Path) -> FileStamps | None:
    """Return the timestamps and sizes of a project's files, or None if the project is too large.

    The limit is :data:`MAX_PROJECT_FILES`. Git is not used, because the settings of a repository can make Git run
    programs.

    Args:
        project: the project directory. Links, hidden folders and folders of installed packages are skipped.
        skip: another folder to skip, usually the directory of the casts.
    """
    files: dict[str, tuple[int, int, int]] = {}
    root, skipped = str(project.absolute()), str(skip.absolute())
    folders, remaining_entries, newest_ns = [root], MAX_PROJECT_FILES, 0
    prefix_length = len(root.rstrip("/")) + 1
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    remaining_entries -= 1
                    if remaining_entries < 0:
                        return None
                    if entry.is_dir(follow_symlinks=False):
                        if not (entry.name.startswith(".") or entry.name in _SKIPPED_FOLDERS or entry.path == skipped):
                            folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        files[entry.path[prefix_length:]] = (status.st_mtime_ns, status.st_ctime_ns, status.st_size)
                        newest_ns = max(newest_ns, status.st_ctime_ns)
        except OSError:
            continue  # the folder was removed in the meantime, or it cannot be read
    # The next write must get another timestamp.
    if 0 <= (elapsed_ns := time.time_ns() - newest_ns) < _TIMESTAMP_RESOLUTION_NS:
        time.sleep((_TIMESTAMP_RESOLUTION_NS - elapsed_ns) / 1e9)
    return files


def changed_files(before: FileStamps | None, after: FileStamps | None) -> tuple[str, ...]:
    """Return the sorted paths of the files that were created or changed between two snapshots.

    At most :data:`MAX_CHANGED_FILES` paths are returned. The result is empty if either snapshot is None.
    """
    if before is None or after is None:
        return ()
    changed_paths = sorted(name for name, status in after.items() if before.get(name) != status)
    return tuple(to_bytes(name).decode() for name in changed_paths[:MAX_CHANGED_FILES])


_LOCK_NAME: Final = "cast.lock"
_OPEN_FLAGS: Final = os.O_RDWR | os.O_CREAT
_MAX_TRIES: Final = 10  # another process that calls lock_owner holds the lock for an instant
_PAUSE_S: Final = 0.002


NO_FILE: Final = -1
"""Value of a file descriptor attribute while the file is not open."""


class CastLock:
    """An exclusive lock on the file ``cast.lock`` of a run directory, held until it is released or the process ends."""

    def __init__(self, run_dir: Path) -> None:
        """Acquire the lock; raise MateriaError (``locked``) with the name of the owner if another process holds it."""
        self.path = run_dir / _LOCK_NAME
        self._process = os.getpid()
        self._handle = NO_FILE
        try:  # outside HeldInterrupts, because a delayed interrupt is raised when that block ends
            with HeldInterrupts():
                with disk_errors(self.path, "open the lock of the cast"):
                    self._handle = open_plain(self.path, _OPEN_FLAGS)
                with disk_errors(self.path, "lock the cast"):
                    _acquire_lock(self._handle, self.path, run_dir)
                    os.ftruncate(self._handle, 0)
                    os.pwrite(self._handle, _owner_record(), 0)
        except BaseException:
            self.release()
            raise

    def __del__(self) -> None:
        """Release the lock if an interrupt prevented the caller from receiving this object."""
        self.release()

    def release(self) -> None:
        """Release the lock. The lock file is not removed, because removing it would race with the next owner."""
        if self._handle == NO_FILE:
            return
        with HeldInterrupts():
            handle, self._handle = self._handle, NO_FILE
            if os.getpid() == self._process:
                # Closing the file does not release the lock while a forked child has a copy of the descriptor.
                # A child that closes its copy must not release the lock of its parent.
                with contextlib.suppress(OSError):
                    unlock_file(handle)
            os.close(handle)


@contextlib.contextmanager
def hold_file_lock(path: Path, action: str) -> Iterator[None]:
    """Wait until the lock file ``path`` can be locked, and hold the lock while the block runs.

    ``action`` is a verb phrase for error messages, such as ``"lock the quest board"``.
    """
    with disk_errors(path, action):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open_file(path, _OPEN_FLAGS)
    with file:
        with disk_errors(path, action):
            lock_file(file.fileno(), path, wait=True)
        try:
            yield
        finally:
            unlock_file(file.fileno())


def lock_owner(run_dir: Path) -> str | None:
    """Return a description of the process that holds the lock of a cast, or None if the lock is free."""
    path = run_dir / _LOCK_NAME
    with contextlib.suppress(OSError), opened(path) as handle:
        return _describe_owner(handle) if file_is_locked(handle, path) else None
    return None


def _acquire_lock(handle: int, path: Path, run_dir: Path) -> None:
    tries = _MAX_TRIES
    while tries:
        if lock_file(handle, path):
            return
        tries -= file_is_locked(handle, path)  # a process that only checks the lock releases it at once
        time.sleep(_PAUSE_S)
    raise MateriaError(
        f"This cast is being written by {_describe_owner(handle)}.",
        where=str(run_dir),
        hint="continue the cast in that process, shut down its kernel, or use `open` to open the cast read-only",
        kind="locked",
    )


def _owner_record() -> bytes:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}).encode()


def _describe_owner(handle: int) -> str:
    try:
        owner = json.loads(os.pread(handle, 4096, 0))
        if owner["pid"] == os.getpid():
            return "this kernel, where the cast is already open"
        return f"process {owner['pid']} on {owner['host']} since {owner['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
