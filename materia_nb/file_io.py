"""The doors to files: plain ones alone are read, whole and up to a bound, and written beside and renamed.

Nothing else in the package opens a file (``scripts/lint_files.py`` looks for it), so what is promised here holds for
every file of a project and of a run directory: a pipe or a device is refused instead of waited for, a reader never
meets half a file, and an interrupt leaves no handle open.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import Any, Final

from materia_nb.platform import HeldInterrupts

MOST_READ: Final = 2**28
"""The longest file that is read unless said otherwise, in bytes."""
BESIDE: Final = re.compile(r"\.[0-9a-f]{16}\.tmp")
"""What a file is called until it is whole; a process that was killed may leave one."""

_ALWAYS: Final = os.O_CLOEXEC | os.O_NONBLOCK  # a pipe would be waited for
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_NAMELESS: Final = getattr(os, "O_TMPFILE", 0) and os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC
_APPEND: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND
_AT_ONCE: Final = 1 << 20


def open_plain(path: Path | str, flags: int, *, follow: bool = False, folder: int | None = None) -> int:
    """Open a plain file and return its handle. To be called with interrupts held.

    Args:
        path: the file.
        flags: as for ``os.open``.
        follow: whether the file may be a link to one.
        folder: the handle of the folder that ``path`` is relative to.

    Raises:
        OSError: it cannot be opened, or is something else: a pipe, a device, a directory, a link.
    """
    try:
        handle = os.open(path, flags | _ALWAYS | (0 if follow else os.O_NOFOLLOW), 0o666, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise OSError(errno.ELOOP, "it is a link") from error
        raise
    try:
        plain = stat.S_ISREG(os.fstat(handle).st_mode)
    except BaseException:
        os.close(handle)
        raise
    if not plain:
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a plain file")
    return handle


def open_file(path: Path, flags: int) -> FileIO:
    """Open a plain file to be held open for long, and closed also where nobody has it any more; raises OSError."""
    with HeldInterrupts():
        return FileIO(open_plain(path, flags), "r+b")


def read_plain(path: Path | str, most: int = MOST_READ, *, follow: bool = False) -> bytes:
    """Read a plain file of at most ``most`` bytes; raises OSError for anything else."""
    with reading(path, follow=follow) as handle:
        size = os.fstat(handle).st_size
        parts: list[bytes] = []
        left = most + 1
        while size <= most and left > 0 and (part := os.read(handle, min(left, max(size + 1, _AT_ONCE)))):
            parts.append(part)
            left -= len(part)
        if size > most or left == 0:
            raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
        return b"".join(parts)


def read_own(path: Path) -> str:
    """Read a file of this package, which somebody's installer may have linked."""
    return read_plain(path, follow=True).decode("utf-8")


def read_own_table(module: str, name: str) -> dict[str, Any]:
    """Read a TOML file of this package that stands beside a module; give the module's ``__file__``."""
    import tomllib

    return tomllib.loads(read_own(Path(module).with_name(name)))


@contextlib.contextmanager
def reading(path: Path | str, *, follow: bool = False) -> Iterator[int]:
    """Open a plain file to read parts of it (``os.pread``), with interrupts held; raises OSError."""
    with HeldInterrupts():
        handle = open_plain(path, os.O_RDONLY, follow=follow)
        try:
            yield handle
        finally:
            os.close(handle)


def replace_file(
    path: Path | str, content: bytes | Iterable[bytes], *, sync: bool = False, folder: int | None = None
) -> None:
    """Write beside ``path`` and rename over it: readers see the old or the new, never a part, and no link is followed.

    A file that is there keeps its permissions.

    Args:
        path: the file.
        content: all of it, or its parts.
        sync: whether both the file and its name are forced to the disk.
        folder: the handle of the folder that ``path`` is a name in, wherever that folder's path leads by now.

    Raises:
        OSError: it cannot be written; the old file is as it was.
    """
    parent = os.path.dirname(path)  # noqa: PTH120 - a path of a Path takes longer than the write
    with HeldInterrupts():
        if isinstance(content, bytes) and _name_when_whole(path, content, sync, folder):
            return
        mode = _mode(path, folder)
        beside = os.path.join(parent, f".{secrets.token_hex(8)}.tmp")  # noqa: PTH118 - as above
        handle = os.open(beside, _NEW, 0o666, dir_fd=folder)
        try:
            try:
                for part in (content,) if isinstance(content, bytes) else content:
                    write_all(handle, part)
                if mode is not None:
                    os.fchmod(handle, mode)
                if sync:
                    os.fsync(handle)
            finally:
                os.close(handle)
            os.replace(beside, path, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside, dir_fd=folder)
            raise
        if sync:
            sync_folder(parent or ".") if folder is None else os.fsync(folder)


def _name_when_whole(path: Path | str, content: bytes, sync: bool, folder: int | None) -> bool:
    """Write a file without a name, then give it that of ``path``, where there is none; False where that cannot be.

    It changes the folder once where renaming does it twice, and whoever is killed leaves nothing behind.
    """
    if not _NAMELESS:
        return False
    parent = os.path.dirname(path) or "."  # noqa: PTH120 - as above
    try:
        handle = os.open(parent, _NAMELESS, 0o666, dir_fd=folder)
        try:
            write_all(handle, content)
            if sync:
                os.fsync(handle)
            whole = f"/proc/self/fd/{handle}"
            os.link(whole, path, src_dir_fd=handle, dst_dir_fd=folder, follow_symlinks=True)
        finally:
            os.close(handle)
    except (
        OSError
    ):  # a disk without such files or without room, or somebody was first: renaming works or says so
        return False
    if sync:
        sync_folder(parent) if folder is None else os.fsync(folder)
    return True


def _mode(path: Path | str, folder: int | None) -> int | None:
    try:
        found = os.stat(path, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    return stat.S_IMODE(found) if stat.S_ISREG(found) else None


def write_all(handle: int, content: bytes) -> None:
    """Write all of it to an open file; raises OSError."""
    written = os.write(handle, content)
    while written < len(content):
        written += os.write(handle, content[written:])


def append_line(path: Path | str, line: bytes) -> None:
    """Append a line to a file of lines, which is made; what a crash has cut off before it stays a line of its own.

    Raises:
        OSError: it cannot be written.
    """
    with HeldInterrupts():
        handle = open_plain(path, _APPEND)
        try:
            size = os.fstat(handle).st_size
            torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
            write_all(handle, (b"\n" if torn else b"") + line + b"\n")
        finally:
            os.close(handle)


def sync_folder(path: str) -> None:
    """Force to the disk which files a folder holds; a new file is there after a power failure only then."""
    with HeldInterrupts():
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
