"""Detect-VCS: reports which version control system the project uses, without changing anything.

stdin   {"cwd": ...}
stdout  {"satisfied": true for jj,
         "state": {"vcs": {"kind", "root", "bare", "colocated", "branch", "detached", "available"}}}

kind       the kind of the nearest repository at or above the project: "jj", "git" or "none"; jj takes precedence over Git
root       the directory of the repository; null if there is no repository
bare       true if the repository is a bare Git repository
colocated  true if a jj repository shares its directory with a Git repository
branch     the current Git branch; null for jj, if HEAD is detached, or if Git does not report the branch
detached   true if HEAD of the Git repository is detached; null if this is unknown
available  {"git": ..., "jj": ...}, with true for each program that is on PATH
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

GIT_SECONDS = 10
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE")}


def main() -> int:
    """Print the report and return the exit code."""
    vcs = detect(Path(json.load(sys.stdin.buffer)["cwd"]))
    print(json.dumps({"satisfied": vcs["kind"] == "jj", "state": {"vcs": vcs}}))
    return 0


def detect(project: Path) -> dict[str, Any]:
    """Return the fields of ``state.vcs`` for a project directory."""
    kind, root, bare = nearest(Path(os.path.realpath(project)))
    available = {name: shutil.which(name) is not None for name in ("git", "jj")}
    branch, detached = head(root) if kind == "git" and root is not None and available["git"] else (None, None)
    return {
        "kind": kind,
        "root": None if root is None else str(root),
        "bare": bare,
        "colocated": kind == "jj" and root is not None and (root / ".git").exists(),
        "branch": branch,
        "detached": detached,
        "available": available,
    }


def nearest(project: Path) -> tuple[str, Path | None, bool]:
    """Find the nearest repository without running a program.

    Returns:
        The kind of the repository, its directory, and True if the repository is bare.
    """
    for folder in (project, *project.parents):
        if (folder / ".jj").is_dir():
            return "jj", folder, False
        git = folder / ".git"  # .git is a file in a linked worktree or a submodule
        if git.is_file() or (git / "HEAD").is_file():
            return "git", folder, False
        has_directories = (folder / "objects").is_dir() and (folder / "refs").is_dir()
        if folder.name != ".git" and (folder / "HEAD").is_file() and has_directories:
            return "git", folder, True
    return "none", None, False


def head(root: Path) -> tuple[str | None, bool | None]:
    """Return the current Git branch, and True if HEAD is detached. Both values are None if Git does not report them."""
    command = ["git", "-C", str(root), "symbolic-ref", "--quiet", "--short", "HEAD"]
    try:
        completed = subprocess.run(command, env=_ENVIRONMENT, capture_output=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"Detect-VCS: git did not report the branch: {error}", file=sys.stderr)
        return None, None
    if completed.returncode == 0:
        return completed.stdout.decode(errors="replace").strip(), False
    if completed.returncode == 1:
        return None, True
    message = completed.stderr.decode(errors="replace")
    print(f"Detect-VCS: git did not report the branch: {message}", file=sys.stderr)
    return None, None


if __name__ == "__main__":
    sys.exit(main())
