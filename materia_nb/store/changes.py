"""Which files of a project changed between two moments, as the file system itself tells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

from materia_nb.store.files import to_bytes

Snapshot: TypeAlias = Mapping[str, tuple[int, int, int]]
"""The files of a project by relative path: when content and inode last changed, and the size."""

MOST_FILES: Final = 20_000
"""How many files and folders are looked at; of a larger project nothing is said."""
MOST_CHANGED: Final = 200
"""How many changed files are named."""
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "venv"})


def take_snapshot(project: Path, skip: Path) -> Snapshot | None:
    """Look at the files of a project; None when there are more than :data:`MOST_FILES`.

    No program is started for it: the settings of a git repository can name others that git runs.

    Args:
        project: the directory. Links, hidden folders and those of installed packages are not gone into.
        skip: a folder to leave out: where the casts are kept.
    """
    found: dict[str, tuple[int, int, int]] = {}
    root, skipped = str(project.absolute()), str(skip.absolute())
    folders, left = [root], MOST_FILES
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
                        if not (
                            entry.name.startswith(".") or entry.name in _SKIPPED or entry.path == skipped
                        ):
                            folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        seen = entry.stat(follow_symlinks=False)
                        found[entry.path[base:]] = (seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size)
        except OSError:
            continue  # it went away meanwhile, or may not be read
    return found


def changed_files(before: Snapshot | None, after: Snapshot | None) -> tuple[str, ...]:
    """Return the files that were made or written between two snapshots, sorted; none where one is missing."""
    if before is None or after is None:
        return ()
    changed = sorted(name for name, seen in after.items() if before.get(name) != seen)
    return tuple(to_bytes(name).decode() for name in changed[:MOST_CHANGED])
