"""Writing files so that a reader never meets a half-written one, and one clear error when the disk refuses."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON


class DiskError(MateriaError):
    """The disk refused a write (full, read-only, gone). What was recorded before is intact."""


class disk:  # noqa: N801 - used like a function: with disk(path, "write it")
    """Turns an OSError of a ``with`` block into a DiskError that names the path and what was being done.

    A class of its own, since every step goes through here several times.
    """

    __slots__ = ("doing", "path")

    def __init__(self, path: Path | str, doing: str) -> None:
        self.path, self.doing = path, doing

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Pass over success and other errors."""
        if isinstance(error, OSError):
            raise DiskError(
                f"Could not {self.doing}: {error.strerror or error}.",
                where=str(self.path),
                hint="make room or make the directory writable, then resume; everything recorded so far is kept",
                kind="disk",
            ) from error


def to_bytes(text: str) -> bytes:
    """Encode text; lone surrogates, which UTF-8 has no place for, become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def json_bytes(value: JSON, *, indent: int | None = None) -> bytes:
    """Encode JSON readably; text that UTF-8 cannot hold is written as escapes instead."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent, separators=separators).encode()


def write_file(path: str, content: bytes, *, sync: bool = False) -> None:
    """Write a new file in one go. The caller makes it known (in the journal) only afterwards."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        written = os.write(handle, content)
        while written < len(content):
            written += os.write(handle, content[written:])
        if sync:
            os.fsync(handle)
    finally:
        os.close(handle)


def replace_file(path: Path, content: bytes, *, sync: bool = False) -> None:
    """Write beside ``path`` and rename over it, so that readers see the old or the new, never a part."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write_file(str(beside), content, sync=sync)
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def sync_folder(path: str) -> None:
    """Force to the disk which files a folder holds; a new file is there after a power failure only then."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
