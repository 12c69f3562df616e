"""File access: read regular files up to a size limit, and write files atomically.

No other module of the package opens files; ``scripts/lint_files.py`` checks this. As a result, pipes and devices are
rejected without waiting, readers never see an incomplete file, and an interrupt never leaves a file handle open.
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

MAX_FILE_BYTES: Final = 2**28
"""Default size limit for reading a file, in bytes."""
TEMPORARY_NAME: Final = re.compile(r"\.[0-9a-f]{16}\.tmp")
"""Name pattern of temporary files, which a killed process may leave behind."""

_COMMON_FLAGS: Final = os.O_CLOEXEC | os.O_NONBLOCK  # opening a pipe would block
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_TMPFILE_FLAGS: Final = getattr(os, "O_TMPFILE", 0) and os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC
_APPEND_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND
_CHUNK_BYTES: Final = 1 << 20


def open_plain(path: Path | str, flags: int, *, follow: bool = False) -> int:
    """Open a regular file and return its handle; call this function only while interrupts are deferred.

    Args:
        path: the path of the file.
        flags: the flags for ``os.open``.
        follow: True to follow a symbolic link to a file; False to reject links.

    Raises:
        OSError: the file cannot be opened, or the path is a pipe, device, directory or link.
    """
    try:
        handle = os.open(path, flags | _COMMON_FLAGS | (0 if follow else os.O_NOFOLLOW), 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise OSError(errno.ELOOP, "it is a link") from error
        raise
    try:
        is_plain = stat.S_ISREG(os.fstat(handle).st_mode)
    except BaseException:
        os.close(handle)
        raise
    if not is_plain:
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a plain file")
    return handle


def open_file(path: Path, flags: int) -> FileIO:
    """Open a regular file as a file object that closes when it is garbage collected; raise OSError on failure."""
    with HeldInterrupts():
        return FileIO(open_plain(path, flags), "r+b")


def read_plain(path: Path | str, max_bytes: int = MAX_FILE_BYTES, *, follow: bool = False) -> bytes:
    """Return the content of a regular file; raise OSError if the file is too large or not a regular file."""
    with opened(path, follow=follow) as handle:
        size = os.fstat(handle).st_size
        parts: list[bytes] = []
        remaining = max_bytes + 1
        chunk_bytes = max(size + 1, _CHUNK_BYTES)
        while size <= max_bytes and remaining and (part := os.read(handle, min(remaining, chunk_bytes))):
            parts.append(part)
            remaining -= len(part)
        if size > max_bytes or remaining == 0:
            raise OSError(errno.EFBIG, f"it has more than {max_bytes:,} bytes")
        return b"".join(parts)


def read_package_text(path: Path) -> str:
    """Read a text file of this package, following links, because some installers link the files."""
    return read_plain(path, follow=True).decode("utf-8")


def read_package_toml(module: str, name: str) -> dict[str, Any]:
    """Read a TOML file in the directory of a module of this package; ``module`` is the ``__file__`` of the module."""
    import tomllib

    return tomllib.loads(read_package_text(Path(module).with_name(name)))


@contextlib.contextmanager
def opened(path: Path | str, flags: int = os.O_RDONLY, *, follow: bool = False) -> Iterator[int]:
    """Open a regular file, by default for reading, and yield its handle while interrupts are delayed.

    Raises:
        OSError: the file cannot be opened, or the path is a pipe, device, directory or link.
    """
    with HeldInterrupts():
        handle = open_plain(path, flags, follow=follow)
        try:
            yield handle
        finally:
            os.close(handle)


def replace_file(
    path: Path | str, content: bytes | Iterable[bytes], *, sync: bool = False, folder: int | None = None
) -> None:
    """Write a file atomically, so that readers see either the old or the new content.

    An existing file keeps its permissions. Symbolic links are replaced and not followed.

    Args:
        path: the path of the file.
        content: the entire content, or an iterable of its parts.
        sync: True to flush the file and its directory entry to the disk.
        folder: a handle of the folder that ``path`` is relative to, so that renaming the folder has no effect.

    Raises:
        OSError: the file cannot be written; the old file is unchanged.
    """
    parent = os.path.dirname(path)  # noqa: PTH120 - a path of a Path takes longer than the write
    with HeldInterrupts():
        if isinstance(content, bytes) and _write_then_link(path, content, sync, folder):
            return
        mode = _permissions(path, folder)
        temporary_path = os.path.join(parent, f".{secrets.token_hex(8)}.tmp")  # noqa: PTH118 - as above
        handle = os.open(temporary_path, _CREATE_FLAGS, 0o666, dir_fd=folder)
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
            os.replace(temporary_path, path, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary_path, dir_fd=folder)
            raise
        if sync:
            sync_folder(parent or ".") if folder is None else os.fsync(folder)


def _write_then_link(path: Path | str, content: bytes, sync: bool, folder_fd: int | None) -> bool:
    """Write an unnamed file and link it at ``path``; return False if ``path`` exists or linking is not supported.

    The folder is changed only once, and a killed process does not leave a temporary file behind.
    """
    if not _TMPFILE_FLAGS:
        return False
    parent = os.path.dirname(path) or "."  # noqa: PTH120 - as above
    try:
        handle = os.open(parent, _TMPFILE_FLAGS, 0o666, dir_fd=folder_fd)
        try:
            write_all(handle, content)
            if sync:
                os.fsync(handle)
            os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle, dst_dir_fd=folder_fd, follow_symlinks=True)
        finally:
            os.close(handle)
    except OSError:  # not supported, no room, or the file exists: renaming works or reports it
        return False
    if sync:
        sync_folder(parent) if folder_fd is None else os.fsync(folder_fd)
    return True


def _permissions(path: Path | str, folder_fd: int | None) -> int | None:
    try:
        mode = os.stat(path, dir_fd=folder_fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    return stat.S_IMODE(mode) if stat.S_ISREG(mode) else None


def write_all(handle: int, content: bytes) -> None:
    """Write all bytes to an open file; raise OSError on failure."""
    written = os.write(handle, content)
    while written < len(content):
        written += os.write(handle, content[written:])


def append_line(path: Path | str, line: bytes) -> None:
    """Append a line to a file, creating the file if necessary; an incomplete last line is terminated first.

    Raises:
        OSError: the file cannot be written.
    """
    with opened(path, _APPEND_FLAGS) as handle:
        size = os.fstat(handle).st_size
        is_incomplete = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        write_all(handle, (b"\n" if is_incomplete else b"") + line + b"\n")


def sync_folder(path: str) -> None:
    """Flush the entries of a folder to the disk, so that a new file survives a power failure."""
    with HeldInterrupts():
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
