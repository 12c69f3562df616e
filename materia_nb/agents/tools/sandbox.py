"""Safe file access for untrusted paths supplied by models: every path is resolved inside the project directory."""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
import unicodedata
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias

from materia_nb.agents.tools import Refused, safe_name
from materia_nb.agents.tools.search import RUN_FILES, NotPlainFile, open_plain
from materia_nb.errors import close_match

_Purpose: TypeAlias = Literal["look", "change", "make"]
"""The purpose of opening a path: to read the file, to change it, or to create it with its missing directories."""

_OPEN_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_PATH_BYTES: Final = 4_096  # bytes of a path on Linux
_MAX_DEPTH: Final = 100  # every folder of the path is held open
_MAX_LINKS: Final = 40
_MAX_COMPARED_NAMES: Final = 2_000
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PROTECTED_NAMES: Final = {
    **dict.fromkeys((".git", ".hg", ".svn", ".jj"), "belongs to version control"),
    ".pi": "belongs to the config and the casts of this project",
    "notebook-utilities": "contains the scripts that utilities run",
}  # Files and directories that the file tools never change, because their contents run without approval.
_REPLACED_REASON: Final = "was replaced while it was being opened"
_ERROR_REASONS: Final = {
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: _REPLACED_REASON,
    errno.ELOOP: _REPLACED_REASON,
    errno.EACCES: "may not be opened (permission denied)",
    errno.ENAMETOOLONG: "has a name that is too long",
}


class Workspace:
    """The project directory and the event that stops the cast. A person chose the directory, so its path is trusted."""

    def __init__(self, project: Path, stop: threading.Event | None = None) -> None:
        self.path = Path(os.path.realpath(project))
        self.stop = stop
        self._spellings = [_names(str(project.absolute())), _names(str(self.path))]

    def check_stopped(self) -> None:
        """Raise Refused if the cast must stop."""
        if self.stop is not None and self.stop.is_set():
            raise Refused("The cast was stopped.")

    def parts(self, path: str) -> list[str]:
        """Return the components of a path relative to the project directory.

        Raises:
            Refused: an absolute path is not inside the project directory.
        """
        names = _names(path)
        if not path.startswith("/"):
            return names
        for spelling in self._spellings:
            if names[: len(spelling)] == spelling:
                return names[len(spelling) :]
        raise _outside_error(path)


@dataclass(frozen=True, slots=True)
class OpenPath:
    """A file or directory in the project, or the path of a new file.

    Attributes:
        folder: the file descriptor of the parent directory; it is open while the block of :func:`open_path` runs.
        name: the name in the parent directory; ``.`` for the directory itself.
        parts: the components of the path relative to the project, with links resolved.
        status: the file status, or None if the file does not exist.
    """

    folder: int
    name: str
    parts: tuple[str, ...]
    status: os.stat_result | None

    @property
    def display_path(self) -> str:
        """The path relative to the project, formatted for messages to a model."""
        return safe_name("/".join(self.parts) or ".")

    @property
    def is_folder(self) -> bool:
        """True if the path is a directory."""
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    def open_file(self) -> BinaryIO:
        """Open the file for reading.

        Raises:
            Refused: the path is not a regular file.
        """
        try:
            return os.fdopen(open_plain(self.name, self.folder), "rb")
        except NotPlainFile:
            kind = "a directory; list it with ls" if self.is_folder else "not a plain file"
            raise Refused(f"{self.display_path} is {kind}.") from None

    @contextmanager
    def open_folder(self) -> Iterator[int]:
        """Open the directory and yield its file descriptor.

        Raises:
            Refused: the path is not a directory.
        """
        if not self.is_folder:
            raise Refused(f"{self.display_path} is not a directory.")
        handle = os.open(self.name, _OPEN_FOLDER_FLAGS, dir_fd=self.folder)
        try:
            yield handle
        finally:
            os.close(handle)


@contextmanager
def open_path(workspace: Workspace, path: str, purpose: _Purpose = "look") -> Iterator[OpenPath]:
    """Resolve a path inside the project and yield the file or directory that it leads to.

    The parent directory stays open while the block runs.

    Args:
        workspace: the project.
        path: a path relative to the project, or an absolute path inside it.
        purpose: the purpose of opening the path. Files of version control, config files and the records of casts can
            only be read.

    Raises:
        Refused: the path leads out of the project, cannot be resolved, or must not be changed, or the block raised an
            OSError.
    """
    _check_text(path)
    try:
        with closing(_PathWalker(workspace, purpose)) as walker:
            try:
                yield walker.resolve(path)
            except BaseException:  # even after an interrupt, no directory that was created for the path is left
                walker.return_to_project()
                raise
    except OSError as error:
        reason = _ERROR_REASONS.get(error.errno or 0, f"cannot be used: {error.strerror or error}")
        raise Refused(f"{safe_name(path)} {reason}.") from error


class _PathWalker:
    """Resolves a path component by component. All directories from the project to the current one stay open."""

    def __init__(self, workspace: Workspace, purpose: _Purpose) -> None:
        self._workspace = workspace
        self._purpose = purpose
        self._names: list[str] = []
        self._was_created: list[bool] = []
        self._handles = [os.open(workspace.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]

    def resolve(self, path: str) -> OpenPath:
        links = 0
        remaining_names = deque(self._parts(path))
        while remaining_names:
            name = remaining_names.popleft()
            if name == "..":
                if not self._names:
                    raise _outside_error(path)
                self._leave_folder()
                continue
            status = self._stat_entry(name)
            if status is not None and stat.S_ISLNK(status.st_mode):
                links += 1
                if links > _MAX_LINKS:
                    raise Refused(f"{safe_name(path)} leads through more than {_MAX_LINKS} links.")
                target = os.readlink(name, dir_fd=self._handles[-1])
                if target.startswith("/"):
                    self.return_to_project()
                remaining_names.extendleft(reversed(self._parts(target, link=path)))
            elif remaining_names:
                self._enter_folder(name, status)
            else:
                return OpenPath(self._handles[-1], name, (*self._names, name), status)
        return OpenPath(self._handles[-1], ".", tuple(self._names), os.fstat(self._handles[-1]))

    def return_to_project(self) -> None:
        """Return to the project directory, and remove the directories that were created while resolving the path."""
        while self._names:
            self._leave_folder()

    def close(self) -> None:
        while self._handles:
            os.close(self._handles.pop())

    def _parts(self, path: str, *, link: str | None = None) -> list[str]:
        try:
            names = self._workspace.parts(path)
        except Refused:
            raise _outside_error(path if link is None else link) from None
        reason = next((_PROTECTED_NAMES[name] for name in map(_fold_name, names) if name in _PROTECTED_NAMES), None)
        if self._purpose != "look" and reason is not None:
            raise Refused(f"{safe_name(path)} {reason}, which the file tools do not change.")
        return names

    def _stat_entry(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._handles[-1], follow_symlinks=False)
        except FileNotFoundError:
            if self._purpose == "make":
                return None
            suggestion = _suggest_name(name, self._handles[-1])
            raise Refused(
                f"{safe_name('/'.join([*self._names, name]))} does not exist"
                + (f": did you mean {suggestion}?" if suggestion else ".")
            ) from None

    def _enter_folder(self, name: str, status: os.stat_result | None) -> None:
        if len(self._names) >= _MAX_DEPTH:
            raise Refused(f"The path has more than {_MAX_DEPTH} nested directories.")
        if status is None:
            os.mkdir(name, dir_fd=self._handles[-1])
        elif not stat.S_ISDIR(status.st_mode):
            raise Refused(f"{safe_name('/'.join([*self._names, name]))} is not a directory.")
        try:
            self._handles.append(os.open(name, _OPEN_FOLDER_FLAGS, dir_fd=self._handles[-1]))
        except OSError:
            if status is None:
                self._remove(name)
            raise
        self._names.append(name)
        self._was_created.append(status is None)
        if self._purpose != "look" and all(os.access(file, os.F_OK, dir_fd=self._handles[-1]) for file in RUN_FILES):
            raise Refused(f"{safe_name('/'.join(self._names))} is the record of a cast, which must not be changed.")

    def _leave_folder(self) -> None:
        name = self._names.pop()
        os.close(self._handles.pop())
        if self._was_created.pop():
            self._remove(name)

    def _remove(self, name: str) -> None:
        """Remove a directory that the walker created but does not need, if it is still empty."""
        with suppress(OSError):
            os.rmdir(name, dir_fd=self._handles[-1])


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _check_text(path: str) -> None:
    """Raise Refused for a string that cannot be a path, or that looks like a home directory or a URL."""
    if "\0" in path:
        raise Refused(f"{safe_name(path)} contains a NUL character, which a path cannot contain.")
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise Refused(f"{safe_name(path)} contains half of a surrogate pair, which a path cannot contain.") from None
    if size > _MAX_PATH_BYTES:
        raise Refused(f"The path has {size:,} bytes; at most {_MAX_PATH_BYTES:,} are allowed.")
    if path.startswith("~"):
        raise Refused(
            f"{safe_name(path)}: ~ is not expanded; paths start at the project (write ./~ for a file named ~)."
        )
    if _URL.match(path):
        raise Refused(f"{safe_name(path)} is a URL; use a path in the project.")


def _outside_error(path: str) -> Refused:
    return Refused(f"{safe_name(path)} leads out of the project; the file tools work only inside it.")


def _fold_name(name: str) -> str:
    """Normalize a name, so that two names are equal if any file system treats them as the same name."""
    return "".join(character for character in name if unicodedata.category(character) != "Cf").casefold()


def _suggest_name(name: str, folder_fd: int) -> str | None:
    """Return the most similar name in a directory, or None."""
    with os.scandir(folder_fd) as entries:
        names = [entry.name for _, entry in zip(range(_MAX_COMPARED_NAMES), entries, strict=False)]
    match = close_match(name, names)
    return None if match is None else safe_name(match)
