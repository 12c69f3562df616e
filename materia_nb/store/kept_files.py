"""The files of a project as they were after each step, kept in a Git directory of their own beside the casts.

Nothing of the person's own repository is read but its rules of what to ignore, and nothing of it is changed: no work tree,
index, HEAD, hook, filter or setting of theirs is used. What is kept is read here byte by byte and handed to
``git fast-import``, one process for a step that changed files and none for one that did not but a listing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from materia_nb import platform
from materia_nb.errors import MateriaError, counted
from materia_nb.file_io import read_plain, replace_file
from materia_nb.store.files import DiskError, disk

REPOSITORY: Final = "files.git"
"""The Git directory, in the directory of the casts."""
OWN: Final = "files"
"""The folder of its own that a fork works in, in its run directory."""
ATTEMPTS: Final = "attempts"
OF_LANE: Final = "-lane-"
"""What stands between the name of a cast and the number of a lane under which Git keeps the latest of a lane."""
FOLDERS: Final = (OWN, ATTEMPTS, "worktrees")
"""What a run directory holds that is work, and no artifact: those of attempts, and the worktrees that Git-Spawn makes."""

LONGEST_FILE: Final = 2**25
"""Bytes of a file that is kept; a longer one is left out and named."""
MOST: Final = 50_000
"""Files that are kept; more are refused."""
MOST_BYTES: Final = 2**30

_SURE_AFTER: Final = (
    1_000_000_000  # nanoseconds; a file may change twice within one tick of the clock of its disk
)
_AT_ONCE: Final = 200
_LINK, _PLAIN, _PROGRAM = "120000", "100644", "100755"
_HIDDEN: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG")


class Entry(NamedTuple):
    """A file that is kept: its mode as Git writes it, and the name of its content."""

    mode: str
    blob: str


_Tree = Mapping[bytes, Entry]
"""The files of one moment, by their paths from the folder."""


class Kept(NamedTuple):
    """The files as they are now: the commit that holds them, those that are not kept since they are too long, those that changed."""

    commit: str
    left_out: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class Change(NamedTuple):
    """What happened to one file between two commits: ``A`` made, ``M`` changed, ``D`` taken away, ``R`` renamed, ``T`` made a link or no more.

    ``added`` and ``removed`` are lines, None of a file that is not text; ``old`` is its path before a rename.
    """

    kind: str
    path: str
    added: int | None
    removed: int | None
    old: str | None = None


class _Seen(NamedTuple):
    stamp: tuple[int, ...]
    entry: Entry
    sure: bool


class KeptFiles:
    """Keeps the files of one folder, and puts them back.

    Args:
        folder: the folder, a project as a rule.
        casts: the directory of the casts; the Git directory lies in it, and nothing else of it is kept.
        name: the cast, under which Git keeps the latest.
        ignored: whether files that the folder's rules of Git ignore are kept too.
        own: whether the folder was made for a cast, so that no repository around it counts.
        skip: another directory of which nothing is kept, which that of the casts lies in.
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
        self.folder, self.git_dir = folder, casts / REPOSITORY
        self._name, self._ignored, self._own, self._skip = name, ignored, own, skip or casts
        self._seen: dict[bytes, _Seen] = {}
        self._commit: str | None = None
        self._tree: dict[bytes, Entry] = {}
        self._known: set[str] = set()
        if not self.git_dir.is_dir():
            self._init(casts)

    def _init(self, casts: Path) -> None:
        beside = casts / f"{REPOSITORY}.{os.getpid()}.new"
        with disk(casts, "make the directory of kept files"):
            casts.mkdir(parents=True, exist_ok=True)
            git(beside, "init", "--quiet", "--bare", "--object-format=sha1", "--template=", str(beside))
            (beside / "info").mkdir(exist_ok=True)
            # Own attributes win over those of the project: no line end is changed, no filter is run.
            replace_file(
                beside / "info" / "attributes", b"* -text -ident !eol !filter !working-tree-encoding\n"
            )
            replace_file(beside / "config", _CONFIG)
            try:
                beside.rename(self.git_dir)
            except OSError:  # another cast was faster
                shutil.rmtree(beside, ignore_errors=True)
                if not self.git_dir.is_dir():
                    raise

    # -- keeping ---------------------------------------------------------------------

    def keep(self, parent: str | None, note: Mapping[str, object]) -> Kept:
        """Keep the files as they are now; ``parent`` is the commit before, which is given again where nothing changed.

        Raises:
            MateriaError: there are too many or too much (``too_much_to_keep``), or Git or the disk refuses (``files``, ``disk``).
        """
        if parent != self._commit or parent is None:
            self._tree = self.tree(parent) if parent else {}
            self._commit = parent
            self._known = {entry.blob for entry in (self._tree or self._latest()).values()}
        tree, contents, left_out = self._look()
        had = self._tree
        changed = {
            path for path, entry in tree.items() if had.get(path) is not entry and had.get(path) != entry
        }
        gone = had.keys() - tree.keys()
        if parent is None or changed or gone:
            self._commit = self._import(parent, {path: tree[path] for path in changed}, gone, contents, note)
            self._tree = tree
            self._known |= {tree[path].blob for path in changed}
        assert self._commit is not None  # noqa: S101 - imported, if there was none
        return Kept(
            self._commit, left_out, tuple(sorted(path.decode("utf-8", "replace") for path in changed | gone))
        )

    def _latest(self) -> _Tree:
        """Return what any cast kept last, whose contents need not be kept again."""
        latest = git(
            self.git_dir, "for-each-ref", "--sort=-committerdate", "--count=1", "--format=%(objectname)"
        ).decode()
        return self.tree(latest.strip()) if latest.strip() else {}

    def _look(self) -> tuple[dict[bytes, Entry], dict[str, bytes], tuple[str, ...]]:
        """Look at the files: the tree, the paths of contents that Git does not have, what is too long."""
        seen: dict[bytes, _Seen] = {}
        tree: dict[bytes, Entry] = {}
        paths: dict[str, bytes] = {}
        left_out: list[str] = []
        size, root, began = 0, os.fsencode(self.folder) + b"/", time.time_ns()
        for path in self.listing():
            try:
                info = os.lstat(root + path)
            except OSError:  # it went away meanwhile
                continue
            stamp = (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino, info.st_mode)
            before = self._seen.get(path)
            if before is not None and before.sure and before.stamp == stamp:
                seen[path], tree[path] = before, before.entry
                size += info.st_size
                continue
            if not (stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)):
                continue
            if info.st_size > LONGEST_FILE:
                left_out.append(os.fsdecode(path))
                continue
            size += info.st_size
            try:
                content = self._content(path, link=stat.S_ISLNK(info.st_mode))
            except OSError:  # gone, or not to be read
                left_out.append(os.fsdecode(path))
                continue
            mode = _LINK if stat.S_ISLNK(info.st_mode) else _PROGRAM if info.st_mode & 0o100 else _PLAIN
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
            tree[path] = entry = Entry(mode, blob)
            seen[path] = _Seen(stamp, entry, info.st_ctime_ns < began - _SURE_AFTER)
            if blob not in self._known:
                paths[blob] = path
        if len(seen) > MOST or size > MOST_BYTES:
            raise MateriaError(
                f"There is too much to keep at every step: {len(seen):,} files, {size:,} bytes; at most {MOST:,} and {MOST_BYTES:,}.",
                where=str(self.folder),
                hint="name what is not work in .gitignore, or cast with files as they are",
                kind="too_much_to_keep",
            )
        self._seen = seen
        return tree, paths, tuple(left_out)

    def _content(self, path: bytes, *, link: bool) -> bytes:
        whole = os.path.join(os.fsencode(self.folder), path)  # noqa: PTH118 - a path of bytes
        return os.readlink(whole) if link else read_plain(os.fsdecode(whole), LONGEST_FILE)  # noqa: PTH115 - as above

    def listing(self, inner: bytes = b"") -> Iterator[bytes]:
        """Yield the paths of the files, of repositories inside as well; not those of casts, of Git itself, and what is ignored."""
        here = os.path.join(os.fsencode(self.folder), inner)  # noqa: PTH118 - a path of bytes
        top = Path(os.fsdecode(here)) if inner or self._own else _top(self.folder)
        arguments = ["ls-files", "-z", "--others"]
        if self._skip.is_relative_to(top):
            arguments.append(f"--exclude={_literal(self._skip.relative_to(top).as_posix())}")
        if not self._ignored:
            arguments += ["--exclude-per-directory=.gitignore"]
            own = top / ".git" / "info" / "exclude"
            arguments += [f"--exclude-from={own}"] if own.is_file() else []
        for path in git(self.git_dir, *arguments, folder=here, tree=top).split(b"\0")[:-1]:
            if path.endswith(b"/"):
                yield from self.listing(inner + path)
            else:
                yield inner + path

    def _import(
        self,
        parent: str | None,
        new: Mapping[bytes, Entry],
        gone: Iterable[bytes],
        contents: Mapping[str, bytes],
        note: Mapping[str, object],
    ) -> str:
        """Hand a commit to Git: what is gone and what is new against the parent."""

        def parts() -> Iterator[bytes]:
            message = json.dumps(note).encode()
            seconds = int(time.time())
            yield b"commit refs/casts/%s\nmark :1\n" % self._name.encode()
            yield b"committer materia <materia> %d +0000\ndata %d\n%s\n" % (seconds, len(message), message)
            if parent is not None:
                yield b"from %s\n" % parent.encode()
            for path in gone:
                yield b"D %s\n" % _quoted(path)
            for path, entry in new.items():
                if entry.blob in contents:
                    content = self._content(contents[entry.blob], link=entry.mode == _LINK)
                    yield b"M %s inline %s\ndata %d\n%s\n" % (
                        entry.mode.encode(),
                        _quoted(path),
                        len(content),
                        content,
                    )
                else:
                    yield b"M %s %s %s\n" % (entry.mode.encode(), entry.blob.encode(), _quoted(path))
            yield b"\nget-mark :1\ndone\n"

        told = git(self.git_dir, "fast-import", "--quiet", "--force", "--done", stdin=parts())
        return told.decode().strip()

    # -- what was kept -----------------------------------------------------------------

    def tree(self, commit: str) -> dict[bytes, Entry]:
        """Return the files of a commit."""
        tree = {}
        for line in git(self.git_dir, "ls-tree", "-r", "-z", _sound(commit)).split(b"\0")[:-1]:
            mode, _, rest = line.decode("utf-8", "surrogateescape").partition(" ")
            _, _, rest = rest.partition(" ")
            blob, _, path = rest.partition("\t")
            tree[os.fsencode(path)] = Entry(mode, blob)
        return tree

    def check_out(self, commit: str) -> None:
        """Make the folder, which must not be there yet, with the files of a commit.

        It is a repository of its own, so that whoever runs Git in it, as utilities do, never reaches one around it.
        """
        with disk(self.folder, "write the files of then"):
            self.folder.mkdir(parents=True)
            tree = self.tree(commit)
            for path, held in self._contents(tree):
                self._write(path, tree[path].mode, held)
            inner = self.folder / ".git"
            git(inner, "init", "--quiet", "--template=", "--initial-branch=main")
            (inner / "objects" / "info").mkdir(parents=True, exist_ok=True)
            replace_file(
                inner / "objects" / "info" / "alternates", bytes(self.git_dir.absolute() / "objects") + b"\n"
            )
            replace_file(inner / "refs" / "heads" / "main", _sound(commit).encode() + b"\n")
            git(inner, "read-tree", commit)

    def put(self, now: str, then: str) -> None:
        """Make the files what they were: from those of the commit ``now``, just kept, to those of ``then``.

        What is not kept stays as it is. A file that changed since, or that is not kept and stands where one is to be
        written, is never overwritten: nothing is done then.

        Raises:
            MateriaError: something stands in the way (``in_the_way``), or the disk refuses; ``now`` has everything that was kept.
        """
        present, wanted = self.tree(now), self.tree(then)
        gone = present.keys() - wanted.keys()
        new = {path: entry for path, entry in wanted.items() if present.get(path) != entry}
        looked, _, _ = self._look()
        blocked = sorted(
            path
            for path in {*gone, *new}
            if (looked.get(path) != present.get(path))
            or (path not in present and self._occupied(path, present, gone))
        )
        if blocked:
            names = ", ".join(os.fsdecode(path) for path in blocked[:5])
            raise MateriaError(
                f"{counted(len(blocked), 'file')} would be overwritten that nobody kept: {names}.",
                where=str(self.folder),
                hint="move them away, then try again; nothing was changed",
                kind="in_the_way",
            )
        with disk(self.folder, "put the files back"):
            for path in sorted(gone, reverse=True):
                self._remove(path)
            for path, content in self._contents(new):
                self._write(path, wanted[path].mode, content)

    def _occupied(self, path: bytes, present: _Tree, gone: Iterable[bytes]) -> bool:
        """Whether something that is not kept stands where a file is to be written, or where its folder is to be."""
        whole = os.fsencode(self.folder)
        parts = path.split(b"/")
        for depth in range(1, len(parts) + 1):
            inner = b"/".join(parts[:depth])
            with contextlib.suppress(FileNotFoundError):
                mode = os.lstat(os.path.join(whole, inner)).st_mode  # noqa: PTH118 - a path of bytes
                if inner in present and inner in gone:
                    return False  # it is taken away first
                if not stat.S_ISDIR(mode):
                    return True
                if depth == len(parts):  # a folder, which must be empty by then
                    inside = {one for one in present if one.startswith(inner + b"/")}
                    return not inside <= set(gone) or self._holds_more(inner, inside)
        return False

    def _holds_more(self, folder: bytes, known: set[bytes]) -> bool:
        root = os.fsencode(self.folder)
        for at, _, names in os.walk(os.path.join(root, folder)):  # noqa: PTH118 - a path of bytes
            for name in names:
                if os.path.relpath(os.path.join(at, name), root) not in known:  # noqa: PTH118
                    return True
        return False

    def _remove(self, path: bytes) -> None:
        whole = os.path.join(os.fsencode(self.folder), path)  # noqa: PTH118 - a path of bytes
        os.unlink(whole)  # noqa: PTH108 - as above
        with contextlib.suppress(OSError):  # up to the first folder that holds something else
            parent = os.path.dirname(path)  # noqa: PTH120 - as above
            while parent:
                os.rmdir(os.path.join(os.fsencode(self.folder), parent))  # noqa: PTH106, PTH118 - as above
                parent = os.path.dirname(parent)  # noqa: PTH120 - as above

    def _write(self, path: bytes, mode: str, content: bytes) -> None:
        whole = Path(os.fsdecode(os.path.join(os.fsencode(self.folder), path)))  # noqa: PTH118 - a path of bytes
        if whole.is_dir() and not whole.is_symlink():
            for folder in sorted((one for one in whole.rglob("*")), reverse=True):
                folder.rmdir()
            whole.rmdir()
        whole.parent.mkdir(parents=True, exist_ok=True)
        if mode == _LINK:
            whole.unlink(missing_ok=True)
            whole.symlink_to(os.fsdecode(content))
            return
        if whole.is_symlink():
            whole.unlink()
        replace_file(whole, content)
        given = whole.stat().st_mode
        program = given | (given & 0o444) >> 2 if mode == _PROGRAM else given & ~0o111
        if program != given:
            whole.chmod(stat.S_IMODE(program))

    def _contents(self, entries: Mapping[bytes, Entry]) -> Iterator[tuple[bytes, bytes]]:
        """Yield what each file held."""
        paths = sorted(entries)
        for begin in range(0, len(paths), _AT_ONCE):
            part, place = paths[begin : begin + _AT_ONCE], 0
            asked = "".join(f"{entries[path].blob}\n" for path in part).encode()
            told = git(self.git_dir, "cat-file", "--batch", stdin=asked)
            for path in part:
                end = told.index(b"\n", place)
                size = int(told[place:end].split(b" ")[2])
                yield path, told[end + 1 : end + 1 + size]
                place = end + 2 + size


def changes(git_dir: Path, before: str, after: str) -> Iterator[Change]:
    """Say which files differ between two commits, by path."""
    command = ("diff-tree", "-r", "-M", "-z", "--no-ext-diff", "--no-textconv")
    told, counts = (
        iter(
            git(git_dir, *command, what, _sound(before), _sound(after))
            .decode("utf-8", "replace")
            .split("\0")[:-1]
        )
        for what in ("--name-status", "--numstat")
    )
    for kind in told:
        old = next(told) if kind[0] in "RC" else None
        path = next(told)
        added, removed, name = next(counts).split("\t")
        if not name:
            next(counts), next(counts)
        yield Change(kind[0], path, _number(added), _number(removed), old)


def difference(git_dir: Path, before: str, after: str, path: str | None = None) -> str:
    """Return how the files of two commits differ, as Git tells it."""
    only = () if path is None else ("--", path)
    command = ("diff-tree", "-r", "-p", "-M", "--no-ext-diff", "--no-textconv", _sound(before), _sound(after))
    return git(git_dir, "--literal-pathspecs", *command, *only).decode("utf-8", "replace")


def content(git_dir: Path, commit: str, path: str) -> bytes | None:
    """Return what a file held, None where there was none."""
    try:
        return git(git_dir, "cat-file", "blob", f"{_sound(commit)}:{path}")
    except MateriaError:
        return None


def blame(git_dir: Path, commit: str, path: str, line: int) -> str | None:
    """Return the commit that a line of a file comes from, None where there is no such line."""
    try:
        told = git(git_dir, "blame", "--porcelain", f"-L{line},{line}", _sound(commit), "--", path)
    except MateriaError:
        return None
    return told.split(b" ", 1)[0].decode()


def note(git_dir: Path, commit: str) -> str:
    """Return what was noted with a commit."""
    return git(git_dir, "cat-file", "commit", _sound(commit)).decode("utf-8", "replace").partition("\n\n")[2]


def forget_cast(casts: Path, name: str) -> None:
    """Let go of what a cast kept that is deleted; with the last one the Git directory goes too."""
    git_dir = casts / REPOSITORY
    if not git_dir.is_dir():
        return
    with contextlib.suppress(MateriaError):  # without Git it stays as it is
        whose = (f"refs/casts/{name}", f"refs/casts/{name}{OF_LANE}*")
        for ref in git(git_dir, "for-each-ref", "--format=%(refname)", *whose).decode().split():
            git(git_dir, "update-ref", "-d", ref)
        if not git(git_dir, "for-each-ref"):
            shutil.rmtree(git_dir, ignore_errors=True)


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


def _top(folder: Path) -> Path:
    """Return the directory of the repository that a folder lies in, whose rules of what to ignore hold; else the folder."""
    return next((one for one in (folder, *folder.parents) if (one / ".git").exists()), folder)


def _literal(path: str) -> str:
    """Write a path from the top as a rule of what to ignore."""
    return "/" + "".join(f"\\{one}" if one in "\\*?[]!# " else one for one in path)


def _quoted(path: bytes) -> bytes:
    return (
        b'"'
        + b"".join(b"\\%03o" % one if one in b'"\\\n' or one < 32 else bytes([one]) for one in path)
        + b'"'
    )


def _sound(commit: str) -> str:
    """Return what can only be the name of a commit: it comes from a journal."""
    if len(commit) != 40 or not set(commit) <= set("0123456789abcdef"):
        raise MateriaError("The journal names no commit here.", where=repr(commit[:60]), kind="files")
    return commit


_CONFIG: Final = b"""[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\thooksPath = /dev/null
\tfsync = none
\tquotepath = false
[gc]
\tauto = 0
\tpruneExpire = never
"""


def _needs_git() -> str:
    """Return the path of Git; raises MateriaError (``no_git``) where there is none."""
    program = shutil.which("git") if platform.PROCESSES else None
    if program is None:
        raise MateriaError(
            "Files cannot be kept: there is no Git here.",
            hint="install git, or cast with files as they are",
            kind="no_git",
        )
    return program


def _refuse_foreign(git_dir: Path, arguments: Sequence[str]) -> None:
    """Refuse a Git directory with other settings than ours: it came with somebody's casts, and settings can name programs."""
    if git_dir.name != REPOSITORY or arguments[0] == "init":
        return  # made by us just now
    with disk(git_dir, "read the settings of kept files"):
        if read_plain(git_dir / "config") != _CONFIG:
            raise MateriaError(
                "The Git directory of kept files is not as it was made, so nothing is read from it.",
                where=str(git_dir / "config"),
                hint="if it is yours, take your changes of this file back",
                kind="files",
            )


def git(
    git_dir: Path,
    *arguments: str,
    stdin: bytes | Iterable[bytes] = b"",
    folder: Path | bytes | None = None,
    tree: Path | None = None,
) -> bytes:
    """Run Git on a Git directory of ours and return its stdout; no setting of the person or the machine counts.

    Raises:
        MateriaError: it refuses (``files``), or is not there (``no_git``).
    """
    program = _needs_git()
    environment = {name: value for name, value in os.environ.items() if name not in _HIDDEN}
    _refuse_foreign(git_dir, arguments)
    environment |= dict.fromkeys(("GIT_DIR", "GIT_COMMON_DIR"), str(git_dir))
    environment |= dict.fromkeys(("GIT_CONFIG_NOSYSTEM", "GIT_ATTR_NOSYSTEM", "GIT_NO_REPLACE_OBJECTS"), "1")
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    if tree is not None:
        environment["GIT_WORK_TREE"] = str(tree)
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
        return _told(process, arguments, stdin)


def _told(
    process: subprocess.Popen[bytes], arguments: Sequence[str], stdin: bytes | Iterable[bytes]
) -> bytes:
    try:
        if not isinstance(stdin, bytes):  # long, and nothing is told before its end
            assert process.stdin is not None  # noqa: S101 - a pipe was asked for
            with contextlib.suppress(BrokenPipeError):  # it says on stderr why it does not read
                for part in stdin:
                    process.stdin.write(part)
            stdin = b""
        told, why = process.communicate(stdin)
    except BaseException:
        process.kill()
        raise
    if process.returncode:
        words = why.decode("utf-8", "replace").strip()[:600] or f"code {process.returncode}"
        raise DiskError(f"Git could not keep or find files: git {arguments[0]}: {words}", kind="files")
    return told
