"""Disk errors, locks, the file formats of this package, and the changed files of a project."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from materia_nb.errors import MateriaError
from materia_nb.file_io import open_file, open_plain, read_plain
from materia_nb.jsonvalue import JSON, nested_too_deeply
from materia_nb.platform import HeldInterrupts, file_is_locked, lock_file, unlock_file

CAST_ID: Final = r"^[0-9A-Za-z][0-9A-Za-z_.-]*$"
"""Pattern of cast ids. A cast id is used as a directory name and must not refer to another directory."""


class DiskError(MateriaError):
    """A file operation failed, for example because the disk is full, read-only or missing.

    Earlier records are intact.
    """


class disk:  # noqa: N801 - used like a function: with disk(path, "write it")
    """Context manager that turns an OSError into a DiskError with the path and the action."""

    __slots__ = ("doing", "path")

    def __init__(self, path: Path | str, doing: str) -> None:
        self.path, self.doing = path, doing

    def __enter__(self) -> None:
        """Return None, because the block needs no value."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Raise a DiskError instead of an OSError or an error about an invalid path."""
        if isinstance(error, UnicodeEncodeError) or (isinstance(error, ValueError) and "null" in str(error)):
            raise DiskError(
                f"Could not {self.doing}: the path is not a valid file name.", where=repr(str(self.path)), kind="disk"
            )
        if isinstance(error, OSError):
            raise disk_error(self.path, self.doing, error) from error


def disk_error(path: Path | str, doing: str, error: OSError) -> DiskError:
    """Return the error for a failed file operation on ``path``."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return DiskError(
            f"Could not {doing}: too many files are open.",
            where=str(path),
            hint="close casts (cast.close() or wb.close()) or other files, or raise the limit (ulimit -n); "
            "everything recorded so far is kept",
            kind="too_many_files",
        )
    return DiskError(
        f"Could not {doing}: {error.strerror or error}.",
        where=str(path),
        hint="move this file or directory away, because a plain file is expected at this path"
        if error.errno in {errno.EINVAL, errno.ELOOP, errno.EISDIR}
        else _RESUME_HINT,
        kind="disk",
    )


_RESUME_HINT: Final = "free disk space or make the directory writable, then resume; everything recorded so far is kept"


@contextlib.contextmanager
def before_first_record() -> Iterator[None]:
    """Context manager that replaces the hint of a disk error, because a cast without records cannot be resumed."""
    try:
        yield
    except DiskError as error:
        if error.hint == _RESUME_HINT:
            error.hint = "free disk space or make the directory writable, then cast again; nothing was recorded"
        raise


def to_bytes(text: str) -> bytes:
    """Return text as UTF-8. Lone surrogates, which UTF-8 cannot encode, become U+FFFD.

    Raises:
        MateriaError: the value from a notebook is not text (``usage``).
    """
    if not isinstance(text, str):
        raise MateriaError(f"{text!r:.40} is not a string.", hint="pass a string", kind="usage")
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


_on_one_line = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_quoted = json.encoder.encode_basestring
_LITERALS: Final = {None: "null", True: "true", False: "false"}


def json_bytes(value: JSON, *, indented: bool = False) -> bytes:
    """Return a JSON value as UTF-8. Characters that UTF-8 cannot encode are written as escapes."""
    try:
        return (_indented(value, "\n") if indented else _on_one_line(value)).encode()
    except UnicodeEncodeError:
        indent, separators = (2, None) if indented else (None, (",", ":"))
        return json.dumps(value, indent=indent, separators=separators).encode()
    except RecursionError as error:
        if indented:
            return json_bytes(value)  # what is written on one line may be nested deeper
        raise nested_too_deeply() from error


def _indented(value: JSON, line: str) -> str:
    """Return a JSON value as text, like ``json.dumps`` with an indent of 2, but faster."""
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, bool):
        return _LITERALS[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if not value or not isinstance(value, (dict, list, tuple)):
        return _on_one_line(value)
    inner = line + "  "
    if isinstance(value, dict):
        parts = [f"{_quoted(str(name))}: {_indented(field, inner)}" for name, field in value.items()]
        return f"{{{inner}{f',{inner}'.join(parts)}{line}}}"
    return f"[{inner}{f',{inner}'.join([_indented(entry, inner) for entry in value])}{line}]"


@dataclass(frozen=True, slots=True)
class OwnFormat:
    """A file format of this package: its name, the value of its field ``format``, and a hint about its origin."""

    what: str
    word: str
    hint: str

    def read(self, path: Path) -> dict[str, Any]:
        """Return the JSON object in a file of this format.

        Raises:
            MateriaError: the file cannot be read (``no_recording``, ``no_case``), or has another format (``bad_...``).
        """
        try:
            content = read_plain(path, follow=True)
        except (OSError, ValueError) as error:
            raise MateriaError(
                f"The {self.what} cannot be read: {getattr(error, 'strerror', 'the path is not a valid file name')}.",
                where=str(path),
                hint=self.hint,
                kind=f"no_{self.what}",
            ) from error
        try:
            value = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self.bad(path, f"it is not JSON ({error})") from error
        return self.checked(value, path)

    def checked(self, value: JSON, where: Path | str) -> dict[str, Any]:
        """Return ``value`` if it is a document of this format; raise MateriaError otherwise."""
        if not isinstance(value, dict) or value.get("format") != self.word:
            raise self.bad(where, f"its format is not {self.word!r}")
        return value

    def bad(self, where: Path | str, why: str) -> MateriaError:
        """Return the error for a file of another format."""
        return MateriaError(
            f"This is not a {self.what}: {why}.", where=str(where), hint=self.hint, kind=f"bad_{self.what}"
        )


FileStamps: TypeAlias = Mapping[str, tuple[int, int, int]]
"""Files of a project by relative path, each with the times of its last content and inode changes, and its size."""

MAX_PROJECT_FILES: Final = 20_000
"""Maximum number of files and folders of a project for which changes are detected."""
MAX_CHANGED_FILES: Final = 200
"""Maximum number of changed files that are listed."""
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "venv"})
_TICK_NS: Final = 10_000_000
"""Maximum interval within which a kernel assigns the same timestamp to two writes, in nanoseconds."""


def take_snapshot(project: Path, skip: Path) -> FileStamps | None:
    """Return the files of a project, or None if there are more than :data:`MAX_PROJECT_FILES`.

    No program is started, because the settings of a git repository can name programs that git runs.

    Args:
        project: the directory. Links, hidden folders and folders of installed packages are not searched.
        skip: a folder to skip, such as the directory of the casts.
    """
    files: dict[str, tuple[int, int, int]] = {}
    root, skipped = str(project.absolute()), str(skip.absolute())
    folders, left, newest = [root], MAX_PROJECT_FILES, 0
    base = len(root.rstrip("/")) + 1
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return None
                    if entry.is_dir(follow_symlinks=False):
                        if not (entry.name.startswith(".") or entry.name in _SKIPPED or entry.path == skipped):
                            folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        files[entry.path[base:]] = (status.st_mtime_ns, status.st_ctime_ns, status.st_size)
                        newest = max(newest, status.st_ctime_ns)
        except OSError:
            continue  # it was removed meanwhile, or cannot be read
    if 0 <= (since := time.time_ns() - newest) < _TICK_NS:  # else the next write could have the same time
        time.sleep((_TICK_NS - since) / 1e9)
    return files


def changed_files(before: FileStamps | None, after: FileStamps | None) -> tuple[str, ...]:
    """Return the paths of files created or written between two snapshots, sorted; empty if a snapshot is missing."""
    if before is None or after is None:
        return ()
    changed = sorted(name for name, status in after.items() if before.get(name) != status)
    return tuple(to_bytes(name).decode() for name in changed[:MAX_CHANGED_FILES])


_LOCK_NAME: Final = "cast.lock"
_OPEN: Final = os.O_RDWR | os.O_CREAT
_TRIES: Final = 10  # whoever lists the casts looks at a lock for an instant, see lock_owner
_PAUSE_S: Final = 0.002


NO_FILE: Final = -1
"""Placeholder for a missing file descriptor."""


class CastLock:
    """Holds ``cast.lock`` of a run directory until it is released or the process ends."""

    def __init__(self, run_dir: Path) -> None:
        """Acquire the lock; if it is held, raise MateriaError (kind ``locked``) that names the owner."""
        self.path = run_dir / _LOCK_NAME
        self._process = os.getpid()
        self._handle = NO_FILE
        try:  # around the interrupts that are held as well, since one of them arrives when they are let go
            with HeldInterrupts():
                with disk(self.path, "open the lock of the cast"):
                    self._handle = open_plain(self.path, _OPEN)
                with disk(self.path, "lock the cast"):
                    _acquire(self._handle, self.path, run_dir)
                    os.ftruncate(self._handle, 0)
                    os.pwrite(self._handle, _owner_record(), 0)
        except BaseException:
            self.release()
            raise

    def __del__(self) -> None:
        """Release the lock if an interrupt prevented the caller from receiving it."""
        self.release()

    def release(self) -> None:
        """Release the lock. The lock file stays, since removing it would race with the next owner."""
        if self._handle == NO_FILE:
            return
        with HeldInterrupts():
            handle, self._handle = self._handle, NO_FILE
            if os.getpid() == self._process:
                # Closing is not enough while a forked child holds a copy of the handle; and a child
                # that lets go of its copy must not unlock what its parent still writes.
                with contextlib.suppress(OSError):
                    unlock_file(handle)
            os.close(handle)


@contextlib.contextmanager
def locked(path: Path, doing: str) -> Iterator[None]:
    """Wait for the lock file ``path`` and hold the lock while the block runs.

    ``doing`` describes the action for error messages.
    """
    with disk(path, doing):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open_file(path, _OPEN)
    with file:
        with disk(path, doing):
            lock_file(file.fileno(), path, wait=True)
        try:
            yield
        finally:
            unlock_file(file.fileno())


def lock_owner(run_dir: Path) -> str | None:
    """Return a description of the process that holds the lock of a cast, or None. The lock is not acquired."""
    path = run_dir / _LOCK_NAME
    with HeldInterrupts(), contextlib.suppress(OSError):
        handle = open_plain(path, os.O_RDONLY)
        try:
            return _owner(handle) if file_is_locked(handle, path) else None
        finally:
            os.close(handle)
    return None


def _acquire(handle: int, path: Path, run_dir: Path) -> None:
    tries = _TRIES
    while tries:
        if lock_file(handle, path):
            return
        tries -= file_is_locked(handle, path)  # a reader that only looks has it for a moment, which is no try
        time.sleep(_PAUSE_S)
    raise MateriaError(
        f"This cast is being written by {_owner(handle)}.",
        where=str(run_dir),
        hint="continue the cast in that process, shut down its kernel, or open the cast read-only with open",
        kind="locked",
    )


def _owner_record() -> bytes:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}).encode()


def _owner(handle: int) -> str:
    try:
        owner = json.loads(os.pread(handle, 4096, 0))
        if owner["pid"] == os.getpid():
            return "this kernel, where the cast is already open"
        return f"process {owner['pid']} on {owner['host']} since {owner['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
