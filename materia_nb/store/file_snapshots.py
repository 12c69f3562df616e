"""Snapshots of a project's files, one after each step, in a separate Git directory next to the casts.

The user's own repository is only read for its ignore rules and never changed. Its work tree, index, HEAD, hooks,
filters and settings are not used. Git reads and hashes each file and stores the hashed content, through an index that
only one :class:`FileSnapshots` uses.
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
from materia_nb.store.files import DiskError, disk, locked

GIT_FOLDER: Final = "files.git"
"""The name of the Git directory in the directory of the casts."""
FORK_DIR: Final = "files"
"""Folder of a fork's run directory in which the fork works."""
ATTEMPTS: Final = "attempts"
LANE_SEPARATOR: Final = "-lane-"
"""Separator between the cast id and the lane number in the name of the Git ref for a lane's latest snapshot."""
WORK_FOLDERS: Final = (FORK_DIR, ATTEMPTS, "worktrees")
"""Folders of a run directory in which forks, attempts and the utility Git-Spawn work."""

MAX_FILE_BYTES: Final = 2**25
"""Maximum size of a file in a snapshot, in bytes; a longer file is omitted and reported."""
MAX_FILES: Final = 50_000
"""Maximum number of files in a snapshot."""
MAX_BYTES: Final = 2**30

_MAX_ATTEMPTS: Final = 3
"""Maximum number of attempts to read a file that is being changed. After the last attempt, the file is omitted."""
_READ_IN_PIECES: Final = ("-c", "core.bigFileThreshold=32k")
"""Options that make Git read files of more than 32 KiB in pieces, not map them into memory. If a mapped file changes
meanwhile, Git can store bytes that do not match the hash; if it becomes shorter, Git crashes."""
_MAX_PACKS: Final = 100
_REFUSED_PATH: Final = re.compile(rb"fatal: (?:Unable to process path (.*)|failed to read \d+ bytes from '(.*)')")


class FileSnapshot(NamedTuple):
    """A snapshot of the files at one moment.

    Attributes:
        commit: the commit with the files.
        left_out: the files that were omitted, because they are too long or cannot be read.
        changed: the files that differ from the previous snapshot.
    """

    commit: str
    left_out: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class Change(NamedTuple):
    """A change of a file between two commits: ``A`` added, ``M`` modified, ``D`` deleted, ``R`` renamed, ``T`` retyped.

    ``added`` and ``removed`` are numbers of lines, None for a file that is not text; ``old`` is the file's path before
    a rename. A retyped file was changed to or from a link.
    """

    kind: str
    path: str
    added: int | None
    removed: int | None
    old: str | None = None


class FileSnapshots:
    """Takes snapshots of the files of one folder, and restores them.

    Args:
        folder: the folder, usually a project.
        casts: the directory of the casts. It contains the Git directory. Snapshots contain none of its files.
        name: the id of the cast, which is also the name of the Git ref for the latest snapshot.
        ignored: True to include files that the folder's Git ignore rules exclude.
        own: True if the folder was created for a cast; the ignore rules of a surrounding repository then do not apply.
        skip: another directory to exclude, which contains the directory of the casts.
    """

    def __init__(
        self,
        folder: Path,
        casts: Path,
        name: str,
        *,
        ignored: bool = False,
        own: bool = False,
        skip: Path | None = None,
    ) -> None:
        self.folder, self.git_dir = folder, casts / GIT_FOLDER
        self._name, self._ignored, self._own, self._skip = name, ignored, own, skip or casts
        with disk(casts, "find the directory of file snapshots"):
            exists = self.git_dir.is_dir()
        if not exists:
            self._init(casts)
        elif len([*self.git_dir.glob("objects/pack/*.pack")]) > _MAX_PACKS:  # each snapshot of a long file makes one
            with contextlib.suppress(MateriaError):
                git(self.git_dir, "multi-pack-index", "write", "--no-progress")
        self._start_index()

    def _start_index(self) -> None:
        """Start an empty index, and remove the indexes of earlier processes. Only one process writes a cast."""
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]
        with contextlib.suppress(OSError):
            for old in self.git_dir.glob(f"index-{self._name}-{digest}-*"):
                old.unlink()
        self._index = self.git_dir / f"index-{self._name}-{digest}-{secrets.token_hex(4)}"
        self._indexed: frozenset[bytes] = frozenset()

    def _init(self, casts: Path) -> None:
        _git_program()
        fresh = casts / f"{GIT_FOLDER}.new"
        doing = "create the directory of file snapshots"
        with locked(casts / f"{GIT_FOLDER}.lock", doing), disk(casts, doing):
            if self.git_dir.is_dir():  # another cast was faster
                return
            shutil.rmtree(fresh, ignore_errors=True)  # that of a process that was killed: the lock is ours
            try:
                git(fresh, "init", "--quiet", "--bare", "--object-format=sha1", "--template=", str(fresh))
                (fresh / "info").mkdir(exist_ok=True)
                # These attributes win over those of the project: no line end is changed, no filter is run.
                replace_file(fresh / "info" / "attributes", b"* -text -ident !eol !filter !working-tree-encoding\n")
                replace_file(fresh / "config", _CONFIG)
                fresh.rename(self.git_dir)
            except BaseException:  # an interrupt as well: half of a Git directory must not stay
                shutil.rmtree(fresh, ignore_errors=True)
                raise

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return git(
            self.git_dir,
            *_READ_IN_PIECES,
            *arguments,
            stdin=stdin,
            folder=self.folder,
            tree=self.folder,
            index=self._index,
        )

    # -- taking a snapshot ---------------------------------------------------------------

    def take(self, parent: str | None) -> FileSnapshot:
        """Take a snapshot of the current files.

        Args:
            parent: the commit of the previous snapshot, which is returned again if nothing changed.

        Raises:
            MateriaError: there are too many files or bytes (``too_much_to_keep``), Git fails (``files``), or a file
                operation fails (``disk``).
        """
        tries: Counter[bytes] = Counter()  # by path; under b"" those in which Git named no file
        while True:
            try:
                left_out = self._update_index({path for path, count in tries.items() if count >= _MAX_ATTEMPTS})
                return self._commit(parent, left_out)
            except DiskError as error:  # a file that is being written can differ from one moment to the next
                self._start_index()
                named = _REFUSED_PATH.search(os.fsencode(error.what))
                path = (named[1] or named[2]) if named is not None else b""
                if tries[path] >= _MAX_ATTEMPTS:
                    raise
                tries[path] += _MAX_ATTEMPTS if path and "Permission denied" in error.what else 1
            except BaseException:  # an interrupt as well: the index may hold more than is known here
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
        compare = ("diff-index", "--cached", "-z", "--name-only", "--no-renames", _commit_id(commit))
        return frozenset(self._git(*compare).split(b"\0")[:-1])

    def _update_index(self, unread: AbstractSet[bytes] = frozenset()) -> tuple[str, ...]:
        """Update the index with the folder's current files except ``unread``; return the omitted files."""
        present, left_out = self._list_files()
        present, left_out = present - unread, left_out | (present & unread)
        if removed := self._indexed - present:
            self._git("update-index", "-z", "--force-remove", "--stdin", stdin=_nul_terminated(removed))
        self._git("update-index", "-z", "--add", "--remove", "--replace", "--stdin", stdin=_nul_terminated(present))
        self._indexed = present
        return tuple(sorted(os.fsdecode(path) for path in left_out))

    def _list_files(self) -> tuple[frozenset[bytes], frozenset[bytes]]:
        """Return the paths of files to store, and the paths of omitted files, which are too long or unreadable."""
        paths, left_out, size, root = [], [], 0, os.fsencode(self.folder) + b"/"
        with disk(self.folder, "list the files of the project"):
            listed = [*self.walk_files()]
        for path in listed:
            try:
                info = os.lstat(root + path)
            except OSError:  # it has just been removed
                continue
            link = stat.S_ISLNK(info.st_mode)
            if not (link or stat.S_ISREG(info.st_mode)):
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

    def walk_files(self, inner: bytes = b"") -> Iterator[bytes]:
        """Yield the paths of all files except casts, Git directories and ignored files; include nested repositories."""
        folder = os.path.join(os.fsencode(self.folder), inner)  # noqa: PTH118 - a path of bytes
        top = Path(os.fsdecode(folder)) if inner or self._own else _repository_root(self.folder)
        arguments = ["ls-files", "-z", "--others"]
        if self._skip.is_relative_to(top):
            arguments.append(f"--exclude={_ignore_rule(self._skip.relative_to(top).as_posix())}")
        if not self._ignored:
            arguments += ["--exclude-per-directory=.gitignore"]
            own = top / ".git" / "info" / "exclude"
            arguments += [f"--exclude-from={own}"] if own.is_file() else []
        for path in git(self.git_dir, *arguments, folder=folder, tree=top).split(b"\0")[:-1]:
            if path.endswith(b"/"):
                yield from self.walk_files(inner + path)
            else:
                yield inner + path

    # -- restoring one -------------------------------------------------------------------

    def check_out(self, commit: str) -> None:
        """Create the folder, which must not exist yet, with the files of a snapshot.

        The folder becomes a repository, so that Git commands of a utility never change a surrounding repository.
        """
        with disk(self.folder, "write the files of a snapshot"):
            self.folder.mkdir(parents=True)
            self._git("read-tree", "--reset", "-u", _commit_id(commit))
            self._indexed = self._read_index()
            inner = self.folder / ".git"
            git(inner, "init", "--quiet", "--template=", "--initial-branch=main")
            (inner / "objects" / "info").mkdir(parents=True, exist_ok=True)
            replace_file(inner / "objects" / "info" / "alternates", bytes(self.git_dir.absolute() / "objects") + b"\n")
            replace_file(inner / "refs" / "heads" / "main", _commit_id(commit).encode() + b"\n")
            git(inner, "read-tree", commit)

    def restore(self, now: str, then: str) -> None:
        """Replace the files of the snapshot ``now``, which was just taken, with the files of the snapshot ``then``.

        Files that are not in the snapshots are not changed. If a file has changed after ``now``, or an unsaved file
        would be overwritten, no file is changed.

        Raises:
            MateriaError: a file would be overwritten (``in_the_way``), or a write failed. The commit ``now`` still
                contains the current files.
        """
        commits = (_commit_id(now), _commit_id(then))
        fields = self._git("diff-tree", "-r", "-z", "--name-status", "--no-renames", *commits).split(b"\0")[:-1]
        kinds = dict(zip(fields[1::2], fields[::2], strict=True))
        self._update_index()
        changed_since = self._changed_since(now)
        removed = {path for path, kind in kinds.items() if kind == b"D"}
        blocked = changed_since & kinds.keys()
        with disk(self.folder, "check for files that would be overwritten"):
            blocked |= {path for path, kind in kinds.items() if kind == b"A" and self._is_occupied(path, removed)}
        if blocked:
            names = ", ".join(os.fsdecode(path) for path in sorted(blocked)[:5])
            raise MateriaError(
                f"This would overwrite {counted(len(blocked), 'file')} without a saved copy: {names}.",
                where=str(self.folder),
                hint="move these files away, then try again; nothing was changed",
                kind="in_the_way",
            )
        root = os.fsencode(self.folder) + b"/"
        with disk(self.folder, "restore the files"):
            modes = {path: os.lstat(root + path).st_mode for path, kind in kinds.items() if kind == b"M"}
            self._git("read-tree", "-m", "-u", now, then)
            self._indexed = self._read_index()
            for path, mode in modes.items():
                _restore_permissions(root + path, mode)

    def _read_index(self) -> frozenset[bytes]:
        return frozenset(self._git("ls-files", "-z").split(b"\0")[:-1])

    def _is_occupied(self, path: bytes, removed: Iterable[bytes]) -> bool:
        """Return True if writing to a path would replace a file or folder of which no saved copy exists."""
        root, parts = os.fsencode(self.folder) + b"/", path.split(b"/")
        for depth in range(1, len(parts) + 1):
            inner = b"/".join(parts[:depth])
            if inner in removed or not os.path.lexists(root + inner):
                return False  # it is removed first, or nothing is there
            if os.path.islink(root + inner) or not os.path.isdir(root + inner):  # noqa: PTH112, PTH114 - a path of bytes
                return True
        inside = {
            os.path.relpath(os.path.join(at, name), os.fsencode(self.folder))  # noqa: PTH118 - as above
            for at, folders, names in os.walk(root + path)
            for name in (*names, *folders)
            if name in names or os.path.islink(os.path.join(at, name))  # noqa: PTH114, PTH118 - a path of bytes
        }
        return not inside <= set(removed)


def _restore_permissions(path: bytes, before: int) -> None:
    """Restore the earlier permissions of a file, except for the executable bit, which is part of the snapshot."""
    restored = os.lstat(path).st_mode
    if stat.S_ISREG(restored) and stat.S_ISREG(before):
        readable = before & 0o666
        program = (readable & 0o444) >> 2 if restored & 0o100 else 0
        os.chmod(path, readable | program)  # noqa: PTH101 - a path of bytes


def _nul_terminated(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in sorted(paths))


def changes(git_dir: Path, before: str, after: str) -> Iterator[Change]:
    """Yield the changes of files between two commits, sorted by path."""
    command = ("diff-tree", "-r", "-M", "-z", "--no-ext-diff", "--no-textconv")
    fields, counts = (
        iter(
            git(git_dir, *command, option, _commit_id(before), _commit_id(after))
            .decode("utf-8", "replace")
            .split("\0")[:-1]
        )
        for option in ("--name-status", "--numstat")
    )
    for kind in fields:
        old = next(fields) if kind[0] in "RC" else None
        path = next(fields)
        added, removed, name = next(counts).split("\t", 2)
        if not name:
            next(counts), next(counts)
        yield Change(kind[0], path, _number(added), _number(removed), old)


def difference(git_dir: Path, before: str, after: str, path: str | None = None) -> str:
    """Return the diff of two commits as text."""
    selection = (_commit_id(before), _commit_id(after), *(() if path is None else ("--", path)))
    command = ("diff-tree", "-r", "-p", "-M", "--no-ext-diff", "--no-textconv")
    return git(git_dir, "--literal-pathspecs", *command, *selection).decode("utf-8", "replace")


def delete_snapshots(casts: Path, name: str) -> None:
    """Delete the snapshots of a deleted cast; after the last cast, also delete the Git directory."""
    git_dir = casts / GIT_FOLDER
    if not git_dir.is_dir():
        return
    with contextlib.suppress(MateriaError):  # without Git it stays as it is
        ref_patterns = (f"refs/casts/{name}", f"refs/casts/{name}{LANE_SEPARATOR}*")
        for ref in git(git_dir, "for-each-ref", "--format=%(refname)", *ref_patterns).decode().split():
            git(git_dir, "update-ref", "-d", ref)
        if not git(git_dir, "for-each-ref"):
            shutil.rmtree(git_dir, ignore_errors=True)


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


def _repository_root(folder: Path) -> Path:
    """Return the root of the Git repository that contains a folder, or the folder itself if it is in no repository."""
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)


def _ignore_rule(path: str) -> str:
    """Return a Git ignore rule that matches exactly one path."""
    return "/" + "".join(f"\\{sign}" if sign in "\\*?[]!# " else sign for sign in path)


def _commit_id(commit: str) -> str:
    """Return a commit id from a journal, or raise MateriaError if the value is not a commit id."""
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
    program = shutil.which("git") if platform.PROCESSES else None
    if program is None:
        raise MateriaError(
            "File snapshots need Git, which is not installed.",
            hint="install git, or cast without file snapshots",
            kind="no_git",
        )
    return program


def _check_settings(git_dir: Path, arguments: Sequence[str]) -> None:
    """Raise MateriaError if the settings of a Git directory were changed, because settings can name programs to run."""
    if git_dir.name != GIT_FOLDER or arguments[0] == "init":
        return  # made by us just now
    with disk(git_dir, "read the settings of file snapshots"):
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
    """Run Git on a Git directory of file snapshots and return its stdout; ignore user and system Git settings.

    Raises:
        MateriaError: Git fails (``files``), or is not installed (``no_git``).
    """
    program = _git_program()
    _check_settings(git_dir, arguments)
    # A hook that runs a cast has Git variables of its own repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= dict.fromkeys(("GIT_DIR", "GIT_COMMON_DIR"), str(git_dir))
    environment |= dict.fromkeys(("GIT_CONFIG_NOSYSTEM", "GIT_ATTR_NOSYSTEM", "GIT_NO_REPLACE_OBJECTS"), "1")
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_LITERAL_PATHSPECS": "1", "LC_ALL": "C"}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "materia", f"GIT_{role}_EMAIL": "materia"}
    environment |= {"GIT_WORK_TREE": str(tree)} if tree is not None else {}
    environment |= {"GIT_INDEX_FILE": str(index)} if index is not None else {}
    with (
        disk(git_dir, "run Git"),
        subprocess.Popen(
            [program, *arguments],
            cwd=folder if folder is not None else git_dir.parent,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process,
    ):
        try:
            output, errors = process.communicate(stdin)
        except BaseException:  # an interrupt as well: Git must not go on and write while nobody waits for it
            process.kill()
            raise
    if process.returncode:
        message = errors.decode("utf-8", "surrogateescape").strip()[-600:] or f"code {process.returncode}"
        git_command = next(word for word in arguments if word not in _READ_IN_PIECES)
        raise DiskError(f"A Git command for file snapshots failed: git {git_command}: {message}", kind="files")
    return output
