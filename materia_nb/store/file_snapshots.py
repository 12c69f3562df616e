"""Saves a snapshot of a project's files after each step, as a commit in a separate bare Git repository.

The repository is stored next to the casts. The user's own repository is never changed: only its ignore rules are read,
and its index, HEAD, hooks, filters and settings are not used. Each :class:`FileSnapshots` has its own Git index.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import stat
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final, NamedTuple

from materia_nb import platform
from materia_nb.errors import MateriaError, counted
from materia_nb.file_io import read_plain, replace_file
from materia_nb.store.files import DiskError, disk_errors, hold_file_lock, removed_on_error

GIT_FOLDER: Final = "files.git"
"""The name of the Git directory that stores the snapshots, relative to the directory of the casts."""
FORK_DIR: Final = "files"
"""The working directory of a fork, relative to the run directory of the fork."""
ATTEMPTS_DIR: Final = "attempts"
LANE_SEPARATOR: Final = "-lane-"
"""Separator in the name of a Git ref, after the cast id. The ref points to the latest snapshot of a lane."""
WORK_FOLDERS: Final = (FORK_DIR, ATTEMPTS_DIR, "worktrees")
"""The working directories of forks, attempts and the utility Git-Spawn, relative to the run directory."""

MAX_FILE_BYTES: Final = 2**25
"""Maximum size of a file in a snapshot, in bytes. A larger file is omitted, and the omission is reported."""
MAX_FILES: Final = 50_000
"""Maximum number of files in a snapshot."""
MAX_BYTES: Final = 2**30

_MAX_ATTEMPTS: Final = 3
"""Maximum number of attempts to read a file that changes while it is read; after that, the file is omitted."""
_CHUNKED_READ_OPTIONS: Final = ("-c", "core.bigFileThreshold=32k")
"""Options that make Git read files over 32 KiB in chunks. If a file that is mapped into memory changes, Git can store
wrong content or crash."""
_MAX_PACKS: Final = 100
_REFUSED_PATH: Final = re.compile(rb"fatal: (?:Unable to process path (.*)|failed to read \d+ bytes from '(.*)')")


class FileSnapshot(NamedTuple):
    """A snapshot of a project's files.

    Attributes:
        commit: the id of the Git commit that contains the files.
        left_out: the paths of files that were omitted because they are too large or cannot be read.
        changed: the paths of files that differ from the previous snapshot; for the first snapshot, all paths.
    """

    commit: str
    left_out: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class Change(NamedTuple):
    """A change to a file between two commits.

    Attributes:
        kind: the status letter of Git: ``A`` for added, ``M`` for modified, ``D`` for deleted, ``R`` for renamed, or
            ``T`` if the file was replaced by a link or a link by a file.
        path: the current path of the file.
        added: the number of added lines; None for a binary file.
        removed: the number of removed lines; None for a binary file.
        old: the previous path of a renamed file; None for any other change.
    """

    kind: str
    path: str
    added: int | None
    removed: int | None
    old: str | None = None


class FileSnapshots:
    """Takes and restores snapshots of the files in one folder.

    Args:
        folder: the folder, usually the project directory.
        casts_dir: the directory of the casts, which contains the Git directory. Its files are never part of a snapshot.
        name: the id of the cast, which is also the name of the Git ref that points to the latest snapshot.
        ignored: also save files that the Git ignore rules of the folder exclude.
        own: True if the folder was created for the cast, so that the ignore rules of an enclosing repository do not
            apply.
        skip: the directory to exclude from snapshots, which must contain ``casts_dir``; by default ``casts_dir``.
    """

    def __init__(
        self,
        folder: Path,
        casts_dir: Path,
        name: str,
        *,
        ignored: bool = False,
        own: bool = False,
        skip: Path | None = None,
    ) -> None:
        self.folder, self.git_dir = folder, casts_dir / GIT_FOLDER
        self._name, self._ignored, self._own, self._skip = name, ignored, own, skip or casts_dir
        with disk_errors(casts_dir, "find the directory of file snapshots"):
            exists = self.git_dir.is_dir()
        if not exists:
            self._init(casts_dir)
        elif len([*self.git_dir.glob("objects/pack/*.pack")]) > _MAX_PACKS:  # Git adds a pack for each large file
            with contextlib.suppress(MateriaError):
                git(self.git_dir, "multi-pack-index", "write", "--no-progress")
        self._start_index()

    def _start_index(self) -> None:
        """Create an empty Git index, and delete indexes that earlier processes created for this cast.

        The indexes are not in use, because only one process at a time writes a cast.
        """
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]
        with contextlib.suppress(OSError):
            for old in self.git_dir.glob(f"index-{self._name}-{digest}-*"):
                old.unlink()
        self._index = self.git_dir / f"index-{self._name}-{digest}-{secrets.token_hex(4)}"
        self._indexed: frozenset[bytes] = frozenset()

    def _init(self, casts_dir: Path) -> None:
        _git_program()
        new_dir = casts_dir / f"{GIT_FOLDER}.new"
        action = "create the directory of file snapshots"
        with hold_file_lock(casts_dir / f"{GIT_FOLDER}.lock", action), disk_errors(casts_dir, action):
            if self.git_dir.is_dir():  # another cast created it in the meantime
                return
            shutil.rmtree(new_dir, ignore_errors=True)  # it was left by a process that was killed
            with removed_on_error(new_dir):
                git(new_dir, "init", "--quiet", "--bare", "--object-format=sha1", "--template=", str(new_dir))
                (new_dir / "info").mkdir(exist_ok=True)
                # These attributes override the attributes of the project, so that Git stores files unchanged.
                replace_file(new_dir / "info" / "attributes", b"* -text -ident !eol !filter !working-tree-encoding\n")
                replace_file(new_dir / "config", _CONFIG)
                new_dir.rename(self.git_dir)

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return git(
            self.git_dir,
            *_CHUNKED_READ_OPTIONS,
            *arguments,
            stdin=stdin,
            folder=self.folder,
            tree=self.folder,
            index=self._index,
        )

    # -- taking a snapshot ---------------------------------------------------------------

    def take(self, parent: str | None) -> FileSnapshot:
        """Create a snapshot of the current files.

        Args:
            parent: the commit id of the previous snapshot, or None for the first snapshot. If no file has changed, the
                result has this commit id.

        Raises:
            MateriaError: the files are too many or too large (``too_much_to_keep``), Git fails (``files``), or a file
                operation fails (``disk``).
        """
        tries_by_path: Counter[bytes] = Counter()  # b"" counts the errors in which Git names no file
        while True:
            try:
                left_out = self._update_index({path for path, count in tries_by_path.items() if count >= _MAX_ATTEMPTS})
                return self._commit(parent, left_out)
            except DiskError as error:  # Git fails if a file changes while it is read
                self._start_index()
                match = _REFUSED_PATH.search(os.fsencode(error.what))
                path = (match[1] or match[2]) if match is not None else b""
                if tries_by_path[path] >= _MAX_ATTEMPTS:
                    raise
                tries_by_path[path] += _MAX_ATTEMPTS if path and "Permission denied" in error.what else 1
            except BaseException:  # after an interrupt, the index may contain files that _indexed does not
                self._start_index()
                raise

    def _commit(self, parent: str | None, left_out: tuple[str, ...]) -> FileSnapshot:
        if parent is None:
            names = self._indexed
        else:
            names = self._changed_since(parent)
            if not names:
                return FileSnapshot(parent, left_out)
        tree = self._git("write-tree").decode().strip()
        parents = ("-p", parent) if parent is not None else ()
        message = os.fsencode(self._name)  # so that casts that start with the same files have different commits
        commit = self._git("commit-tree", tree, *parents, stdin=message).decode().strip()
        self._git("update-ref", f"refs/casts/{self._name}", commit)
        return FileSnapshot(commit, left_out, tuple(sorted(name.decode("utf-8", "replace") for name in names)))

    def _changed_since(self, commit: str) -> frozenset[bytes]:
        compare_command = ("diff-index", "--cached", "-z", "--name-only", "--no-renames", _commit_id(commit))
        return frozenset(self._git(*compare_command).split(b"\0")[:-1])

    def _update_index(self, unreadable: AbstractSet[bytes] = frozenset()) -> tuple[str, ...]:
        """Update the Git index to the current files of the folder, and return the paths of the omitted files.

        ``unreadable`` contains the paths of files that could not be read; these files are omitted as well.
        """
        current, left_out = self._list_files()
        current, left_out = current - unreadable, left_out | (current & unreadable)
        if removed_paths := self._indexed - current:
            self._git("update-index", "-z", "--force-remove", "--stdin", stdin=_nul_terminated(removed_paths))
        self._git("update-index", "-z", "--add", "--remove", "--replace", "--stdin", stdin=_nul_terminated(current))
        self._indexed = current
        return tuple(sorted(os.fsdecode(path) for path in left_out))

    def _list_files(self) -> tuple[frozenset[bytes], frozenset[bytes]]:
        """Return the paths of the files to save, and the paths of the files that are too large to be saved.

        Raises MateriaError (``too_much_to_keep``) if the project exceeds a limit.
        """
        paths, left_out, size, root = [], [], 0, os.fsencode(self.folder) + b"/"
        with disk_errors(self.folder, "list the files of the project"):
            listed_paths = [*self.walk_files()]
        for path in listed_paths:
            try:
                info = os.lstat(root + path)
            except OSError:  # the file was removed after it was listed
                continue
            is_link = stat.S_ISLNK(info.st_mode)
            if not (is_link or stat.S_ISREG(info.st_mode)):
                continue
            if info.st_size > MAX_FILE_BYTES:
                left_out.append(path)
                continue
            size += info.st_size
            paths.append(path)
        if len(paths) > MAX_FILES or size > MAX_BYTES:
            raise MateriaError(
                f"The project is too large for file snapshots: it has {counted(len(paths), 'file')} and {size:,} bytes, "
                f"but at most {MAX_FILES:,} files and {MAX_BYTES:,} bytes are allowed.",
                where=str(self.folder),
                hint="exclude files in .gitignore, or cast without file snapshots",
                kind="too_much_to_keep",
            )
        return frozenset(paths), frozenset(left_out)

    def walk_files(self, prefix: bytes = b"") -> Iterator[bytes]:
        """Yield the paths of all files to save, relative to the folder, including files in nested repositories.

        Casts, Git directories and, unless ``ignored`` was set, ignored files are skipped.

        Args:
            prefix: the path of the nested repository to search; empty to search the whole folder.
        """
        folder = os.path.join(os.fsencode(self.folder), prefix)  # noqa: PTH118 - a path of bytes
        root = Path(os.fsdecode(folder)) if prefix or self._own else _repository_root(self.folder)
        arguments = ["ls-files", "-z", "--others"]
        if self._skip.is_relative_to(root):
            arguments.append(f"--exclude={_ignore_rule(self._skip.relative_to(root).as_posix())}")
        if not self._ignored:
            arguments += ["--exclude-per-directory=.gitignore"]
            exclude_file = root / ".git" / "info" / "exclude"
            arguments += [f"--exclude-from={exclude_file}"] if exclude_file.is_file() else []
        for path in git(self.git_dir, *arguments, folder=folder, tree=root).split(b"\0")[:-1]:
            if path.endswith(b"/"):
                yield from self.walk_files(prefix + path)
            else:
                yield prefix + path

    # -- restoring a snapshot ------------------------------------------------------------

    def check_out(self, commit: str) -> None:
        """Create the folder and write the files of a snapshot to it. The folder must not exist yet.

        The folder becomes a Git repository, so that Git commands run by a utility never change an enclosing repository.
        """
        with disk_errors(self.folder, "write the files of a snapshot"):
            self.folder.mkdir(parents=True)
            self._git("read-tree", "--reset", "-u", _commit_id(commit))
            self._indexed = self._read_index()
            repo = self.folder / ".git"
            git(repo, "init", "--quiet", "--template=", "--initial-branch=main")
            (repo / "objects" / "info").mkdir(parents=True, exist_ok=True)
            replace_file(repo / "objects" / "info" / "alternates", bytes(self.git_dir.absolute() / "objects") + b"\n")
            replace_file(repo / "refs" / "heads" / "main", _commit_id(commit).encode() + b"\n")
            git(repo, "read-tree", commit)

    def restore(self, current_commit: str, earlier_commit: str) -> None:
        """Replace the current files with the files of an earlier snapshot.

        A file that is in neither the current nor the earlier snapshot is not changed.

        Args:
            current_commit: the commit id of a snapshot that was just taken.
            earlier_commit: the commit id of the snapshot to restore.

        Raises:
            MateriaError: a file without a saved copy would be overwritten (``in_the_way``), so no file was changed; or
                a write failed. In both cases, the commit ``current_commit`` still contains the current files.
        """
        commits = (_commit_id(current_commit), _commit_id(earlier_commit))
        fields = self._git("diff-tree", "-r", "-z", "--name-status", "--no-renames", *commits).split(b"\0")[:-1]
        kinds = dict(zip(fields[1::2], fields[::2], strict=True))
        self._update_index()
        changed_paths = self._changed_since(current_commit)
        removed = {path for path, kind in kinds.items() if kind == b"D"}
        blocked_paths = changed_paths & kinds.keys()
        with disk_errors(self.folder, "check for files that would be overwritten"):
            blocked_paths |= {path for path, kind in kinds.items() if kind == b"A" and self._is_occupied(path, removed)}
        if blocked_paths:
            names = ", ".join(os.fsdecode(path) for path in sorted(blocked_paths)[:5])
            raise MateriaError(
                f"This would overwrite {counted(len(blocked_paths), 'file')} without a saved copy: {names}.",
                where=str(self.folder),
                hint="move these files away, then try again; nothing was changed",
                kind="in_the_way",
            )
        root = os.fsencode(self.folder) + b"/"
        with disk_errors(self.folder, "restore the files"):
            modes = {path: os.lstat(root + path).st_mode for path, kind in kinds.items() if kind == b"M"}
            self._git("read-tree", "-m", "-u", current_commit, earlier_commit)
            self._indexed = self._read_index()
            for path, mode in modes.items():
                _restore_permissions(root + path, mode)

    def _read_index(self) -> frozenset[bytes]:
        return frozenset(self._git("ls-files", "-z").split(b"\0")[:-1])

    def _is_occupied(self, path: bytes, removed_paths: Iterable[bytes]) -> bool:
        """Return True if writing to ``path`` would overwrite a file or folder that has no saved copy.

        ``removed_paths`` contains the paths of saved files that are removed first.
        """
        root, parts = os.fsencode(self.folder) + b"/", path.split(b"/")
        for depth in range(1, len(parts) + 1):
            ancestor = b"/".join(parts[:depth])
            if ancestor in removed_paths or not os.path.lexists(root + ancestor):
                return False
            if os.path.islink(root + ancestor) or not os.path.isdir(root + ancestor):  # noqa: PTH112, PTH114 - a path of bytes
                return True
        paths_inside = {
            os.path.relpath(os.path.join(folder, name), os.fsencode(self.folder))  # noqa: PTH118 - as above
            for folder, folders, names in os.walk(root + path)
            for name in (*names, *folders)
            if name in names or os.path.islink(os.path.join(folder, name))  # noqa: PTH114, PTH118 - a path of bytes
        }
        return not paths_inside <= set(removed_paths)


def _restore_permissions(path: bytes, previous_mode: int) -> None:
    """Restore the permissions that a file had before, except for the executable bit, which the snapshot records."""
    restored_mode = os.lstat(path).st_mode
    if stat.S_ISREG(restored_mode) and stat.S_ISREG(previous_mode):
        permissions = previous_mode & 0o666
        executable_bits = (permissions & 0o444) >> 2 if restored_mode & 0o100 else 0
        os.chmod(path, permissions | executable_bits)  # noqa: PTH101 - a path of bytes


def _nul_terminated(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in sorted(paths))


def changes(git_dir: Path, before: str, after: str) -> Iterator[Change]:
    """Yield the changes to files between two commits, sorted by path."""
    command = ("diff-tree", "-r", "-M", "-z", "--no-ext-diff", "--no-textconv")
    commits = _commit_id(before), _commit_id(after)
    outputs = (git(git_dir, *command, option, *commits) for option in ("--name-status", "--numstat"))
    fields, counts = (iter(output.decode("utf-8", "replace").split("\0")[:-1]) for output in outputs)
    for kind in fields:
        old = next(fields) if kind[0] in "RC" else None
        path = next(fields)
        added, removed, name = next(counts).split("\t", 2)
        if not name:
            next(counts), next(counts)
        yield Change(kind[0], path, _parse_line_count(added), _parse_line_count(removed), old)


def difference(git_dir: Path, before: str, after: str, path: str | None = None) -> str:
    """Return the diff between two commits in Git's format; ``path`` restricts the diff to one file."""
    selection = (_commit_id(before), _commit_id(after), *(() if path is None else ("--", path)))
    command = ("diff-tree", "-r", "-p", "-M", "--no-ext-diff", "--no-textconv")
    return git(git_dir, "--literal-pathspecs", *command, *selection).decode("utf-8", "replace")


def delete_snapshots(casts_dir: Path, name: str) -> None:
    """Delete the snapshots of a deleted cast, and delete the Git directory if no snapshots are left."""
    git_dir = casts_dir / GIT_FOLDER
    if not git_dir.is_dir():
        return
    with contextlib.suppress(MateriaError):  # if Git is not installed, the snapshots remain
        ref_patterns = (f"refs/casts/{name}", f"refs/casts/{name}{LANE_SEPARATOR}*")
        for ref in git(git_dir, "for-each-ref", "--format=%(refname)", *ref_patterns).decode().split():
            git(git_dir, "update-ref", "-d", ref)
        if not git(git_dir, "for-each-ref"):
            shutil.rmtree(git_dir, ignore_errors=True)


def _parse_line_count(text: str) -> int | None:
    return None if text == "-" else int(text)


def _repository_root(folder: Path) -> Path:
    """Return the root of the Git repository that contains ``folder``, or ``folder`` if no repository contains it."""
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)


def _ignore_rule(path: str) -> str:
    """Return a Git ignore rule that matches exactly one path."""
    return "/" + "".join(f"\\{char}" if char in "\\*?[]!# " else char for char in path)


def _commit_id(commit: str) -> str:
    """Return ``commit``, which was read from a journal, or raise MateriaError if it is not a valid commit id."""
    if len(commit) != 40 or not set(commit) <= set("0123456789abcdef"):
        raise MateriaError("The journal contains an invalid commit id.", where=repr(commit[:60]), kind="files")
    return commit


_CONFIG: Final = b"""[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\thooksPath = /dev/null
\tfsync = none
\tquotepath = false
[index]
	version = 4
	skipHash = true
[gc]
\tauto = 0
\tpruneExpire = never
"""


def _git_program() -> str:
    """Return the path of Git; raise MateriaError (``no_git``) if Git is not installed."""
    program = shutil.which("git") if platform.CAN_START_PROCESSES else None
    if program is None:
        raise MateriaError(
            "File snapshots need Git, which is not installed.",
            hint="install Git, or cast without file snapshots",
            kind="no_git",
        )
    return program


def _check_settings(git_dir: Path, arguments: Sequence[str]) -> None:
    """Raise MateriaError if the config of the Git directory was changed, because a config can make Git run programs."""
    if git_dir.name != GIT_FOLDER or arguments[0] == "init":
        return  # this process is creating the Git directory
    with disk_errors(git_dir, "read the settings of file snapshots"):
        if read_plain(git_dir / "config") != _CONFIG:
            raise MateriaError(
                "The settings of the Git directory of file snapshots were changed, so the directory is not read.",
                where=str(git_dir / "config"),
                hint="undo the changes to this file",
                kind="files",
            )


def git(
    git_dir: Path,
    *arguments: str,
    stdin: bytes = b"",
    folder: Path | bytes | None = None,
    tree: Path | None = None,
    index: Path | None = None,
) -> bytes:
    """Run a Git command on the Git directory of file snapshots and return its stdout.

    The Git settings of the user and of the system are ignored.

    Args:
        git_dir: the Git directory.
        arguments: the Git command and its arguments.
        stdin: the standard input of the command.
        folder: the current directory of the command; defaults to the parent of ``git_dir``.
        tree: the work tree; defaults to no work tree.
        index: the index file; defaults to the index of ``git_dir``.

    Raises:
        MateriaError: Git fails (``files``), or Git is not installed (``no_git``).
    """
    program = _git_program()
    _check_settings(git_dir, arguments)
    # If a Git hook started the cast, the environment contains Git variables of the hook's repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= dict.fromkeys(("GIT_DIR", "GIT_COMMON_DIR"), str(git_dir))
    environment |= dict.fromkeys(("GIT_CONFIG_NOSYSTEM", "GIT_ATTR_NOSYSTEM", "GIT_NO_REPLACE_OBJECTS"), "1")
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_LITERAL_PATHSPECS": "1", "LC_ALL": "C"}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "materia", f"GIT_{role}_EMAIL": "materia"}
    environment |= {"GIT_WORK_TREE": str(tree)} if tree is not None else {}
    environment |= {"GIT_INDEX_FILE": str(index)} if index is not None else {}
    with disk_errors(git_dir, "run Git"):
        completed = subprocess.run(
            [program, *arguments],
            cwd=folder if folder is not None else git_dir.parent,
            env=environment,
            input=stdin,
            capture_output=True,
            start_new_session=True,
            check=False,
        )
    if completed.returncode:
        message = completed.stderr.decode("utf-8", "surrogateescape").strip()[-600:] or f"code {completed.returncode}"
        git_command = next(word for word in arguments if word not in _CHUNKED_READ_OPTIONS)
        raise DiskError(f"A Git command for file snapshots failed: git {git_command}: {message}", kind="files")
    return completed.stdout
