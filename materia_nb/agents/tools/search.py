"""The search of ``find`` and ``grep``, which runs in a separate process so that it can be stopped at any time.

In Python, a regular expression can run for hours and cannot be interrupted. A read from a disk that does not respond
cannot be interrupted either. This program imports only the standard library. It starts without installed packages and
without the project in its path, so that a search never runs code of the project.

The input on stdin is a JSON object with these fields: ``pattern`` (a regular expression for lines, or null to list
paths), ``ignore_case``, ``glob`` (a pattern for paths, or null for all paths), ``only`` (the name of a single file to
search, or null), ``prefix`` (a string that is prepended to each path), ``room`` (the maximum number of characters to
write) and ``folder`` (the device and inode of the current directory, which must not have been replaced).
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Final

SKIPPED_FOLDERS: Final = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".jj",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".venv",
        "__pycache__",
        "node_modules",
        "site-packages",
    }
)
"""Names of directories that are skipped, unless the search starts inside them."""

RUN_FILES: Final = frozenset({"events.jsonl", "config.resolved.json"})
"""Names of files in a run directory. A directory that contains all of them is skipped."""

FOLDER_REPLACED, BAD_PATTERN = 3, 4
"""The exit code if the directory was replaced, and the exit code if the pattern is not a regular expression."""

BLOCK: Final = 65_536
_MAX_RESULTS: Final = 500
_MAX_DEPTH: Final = 60
_MAX_LINE_CHARS: Final = 300
_CHARS_BEFORE_MATCH: Final = 100


class NotPlainFile(OSError):
    """Raised when a path is not a regular file but, for example, a directory or a device."""


def open_plain(name: str, folder_fd: int) -> int:
    """Open a regular file in a directory for reading, without following links and without blocking.

    The type of the file is checked before it is opened, because opening a device can have side effects, and again
    afterwards, because the file may have been replaced.

    Raises:
        NotPlainFile: the path is not a regular file.
        OSError: the file cannot be opened; the error is ELOOP if a link replaced the file after the first check.
    """
    _check_plain(os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode)
    handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder_fd)
    try:
        _check_plain(os.fstat(handle).st_mode)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _check_plain(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise NotPlainFile


def line_pieces(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their line numbers, starting at 1.

    A line that is longer than :data:`BLOCK` is split into several pieces.
    """
    number, is_line_start = 0, True
    while piece := file.readline(BLOCK):
        number += is_line_start
        is_line_start = piece.endswith(b"\n")
        yield number, piece


def glob_predicate(pattern: str) -> Callable[[Sequence[str]], bool]:
    """Return a predicate for the parts of a path. A pattern without a slash is matched against the last part only."""
    globs = [part for part in pattern.split("/") if part not in ("", ".")]
    if len(globs) == 1:
        return lambda names: fnmatch.fnmatchcase(names[-1], globs[0])
    return lambda names: _matches(names, globs)


def _matches(names: Sequence[str], globs: Sequence[str]) -> bool:
    """Return True if the globs match the names in order; ``**`` matches any number of names."""
    total = len(names)
    counts = {0}  # the numbers of names that the globs so far can match
    for glob in globs:
        if glob == "**":
            counts = set(range(min(counts, default=total + 1), total + 1))
        else:
            counts = {count + 1 for count in counts if count < total and fnmatch.fnmatchcase(names[count], glob)}
    return total in counts


class Search:
    """A search of the current directory."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._prefix = request["prefix"]
        self._single_file = request["only"]
        self._chars_left = request["room"]
        self._result_count = 0
        self._binary_count = 0
        self._unreadable_count = 0
        self._matches = glob_predicate(request["glob"]) if request["glob"] is not None else lambda _: True

    def find(self) -> None:
        """Write all paths that match. The paths of directories end with a slash."""
        for parts, _, folders, files in self._walk():
            suffix_by_name = {**dict.fromkeys(files, ""), **dict.fromkeys(folders, "/")}
            for name in sorted(suffix_by_name):
                if self._matches([*parts, name]) and not self._write(self._path([*parts, name]) + suffix_by_name[name]):
                    return
        self._write_notes()

    def grep(self, pattern: re.Pattern[str]) -> None:
        """Write all lines that match, with their paths and line numbers."""
        for parts, folder, _, files in self._walk():
            for name in files:
                if self._matches([*parts, name]) and not self._grep_file([*parts, name], folder, pattern):
                    return
        self._write_notes()

    def _grep_file(self, parts: list[str], folder_fd: int, pattern: re.Pattern[str]) -> bool:
        """Search one file. Return False if the maximum number of results was reached."""
        try:
            with os.fdopen(open_plain(parts[-1], folder_fd), "rb") as file:
                if b"\0" in file.read(BLOCK):
                    self._binary_count += 1
                    return True
                file.seek(0)
                last_match_number = 0
                for number, piece in line_pieces(file):
                    line = piece.rstrip(b"\r\n").decode(errors="surrogateescape")
                    if number != last_match_number and (match := pattern.search(line)):
                        last_match_number = number
                        if not self._write(f"{self._path(parts)}:{number}: {_excerpt(line, match)}"):
                            return False
        except NotPlainFile:
            pass
        except OSError:
            self._unreadable_count += 1
        return True

    def _walk(self) -> Iterator[tuple[list[str], int, list[str], list[str]]]:
        """Yield the directories in alphabetical order. Links are not followed."""
        for path, folders, files, handle in os.fwalk(".", onerror=self._count_unreadable):
            parts = path.split("/")[1:]
            if self._single_file is not None:
                folders.clear()
                yield parts, handle, [], [self._single_file]
                return
            if parts and RUN_FILES.issubset(files):
                folders.clear()
                continue
            links = {name for name in folders if _is_link(name, handle)}
            folders[:] = sorted({*folders} - links - SKIPPED_FOLDERS) if len(parts) < _MAX_DEPTH else []
            yield parts, handle, folders, sorted({*files} | links)

    def _count_unreadable(self, _: OSError) -> None:
        self._unreadable_count += 1

    def _path(self, parts: Sequence[str]) -> str:
        return "/".join([self._prefix, *parts] if self._prefix else parts).replace("\n", "\\n")

    def _write(self, line: str) -> bool:
        """Write a result and return True, or return False if the maximum number of results was reached."""
        self._result_count += 1
        self._chars_left -= len(line) + 1
        if self._result_count > _MAX_RESULTS or self._chars_left < 0:
            _write("(there are more results: use a narrower pattern or path)")
            return False
        _write(line)
        return True

    def _write_notes(self) -> None:
        if not self._result_count:
            _write("(nothing matches)")
        if self._binary_count:
            _write(f"(skipped binary files: {self._binary_count:,})")
        if self._unreadable_count:
            _write(f"(unreadable files or directories: {self._unreadable_count:,})")


def _is_link(name: str, folder_fd: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode)
    except OSError:
        return True  # removed meanwhile, so it is not entered


def _excerpt(line: str, match: re.Match[str]) -> str:
    """Return a line, or the part around the match if the line is long."""
    if len(line) <= _MAX_LINE_CHARS:
        return line
    start = max(0, match.start() - _CHARS_BEFORE_MATCH)
    end = start + _MAX_LINE_CHARS
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def _write(line: str) -> None:
    """Write a line and flush it, so that earlier results are not lost if the search is stopped."""
    sys.stdout.buffer.write(line.encode(errors="surrogateescape") + b"\n")
    sys.stdout.buffer.flush()


def main() -> int:
    """Run the search that the JSON object on stdin describes."""
    request = json.load(sys.stdin)
    folder = os.fstat(os.open(".", os.O_RDONLY))
    if [folder.st_dev, folder.st_ino] != request["folder"]:
        return FOLDER_REPLACED
    search = Search(request)
    if request["pattern"] is None:
        search.find()
        return 0
    try:
        pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(str(error))
        return BAD_PATTERN
    search.grep(pattern)
    return 0


if __name__ == "__main__":
    sys.exit(main())
