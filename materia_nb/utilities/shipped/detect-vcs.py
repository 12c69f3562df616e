"""Detect-VCS: says which version control the project is under, by looking and without changing anything.

stdin   {"cwd": ...}
stdout  {"satisfied": whether it is jj,
         "state": {"vcs": {"kind", "root", "bare", "colocated", "branch", "detached", "available"}}}

kind       "jj", "git" or "none": the repository nearest to the project, upwards; jj when both lie together
root       its directory; null without one
bare       whether it is a Git repository without working files
colocated  whether a jj repository has a Git repository beside it
branch     Git's current branch; null when HEAD is detached, for jj, or when git cannot say
detached   whether Git's HEAD is detached; null when there is nobody to say it
available  {"git": ..., "jj": ...}: whether the program is on PATH
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


def main() -> int:
    """Read the input, look, tell; the exit code."""
    vcs = detect(Path(json.load(sys.stdin.buffer)["cwd"]))
    print(json.dumps({"satisfied": vcs["kind"] == "jj", "state": {"vcs": vcs}}))
    return 0


def detect(project: Path) -> dict[str, Any]:
    """Describe the version control of a directory."""
    kind, root, bare = nearest(Path(os.path.realpath(project)))
    available = {name: shutil.which(name) is not None for name in ("git", "jj")}
    branch, detached = None, None
    if kind == "git" and root is not None and available["git"]:
        branch, detached = head(root)
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
    """Find the nearest repository: its kind, where it is, and whether it is bare. No program is needed."""
    for folder in (project, *project.parents):
        if (folder / ".jj").is_dir():
            return "jj", folder, False
        git = folder / ".git"  # a file in a linked worktree and in a submodule
        if git.is_file() or (git / "HEAD").is_file():
            return "git", folder, False
        if folder.name != ".git" and is_git_directory(folder):
            return "git", folder, True
    return "none", None, False


def is_git_directory(folder: Path) -> bool:
    """Whether a directory holds what Git keeps in a repository."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def head(root: Path) -> tuple[str | None, bool | None]:
    """Ask git for the current branch, and whether there is none because HEAD is detached."""
    environment = {name: value for name, value in os.environ.items() if name not in ("GIT_DIR", "GIT_WORK_TREE")}
    command = ["git", "-C", str(root), "symbolic-ref", "--quiet", "--short", "HEAD"]
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"Detect-VCS: git did not say the branch: {error}", file=sys.stderr)
        return None, None
    if done.returncode == 0:
        return done.stdout.decode(errors="replace").strip(), False
    if done.returncode == 1:
        return None, True
    print(f"Detect-VCS: git did not say the branch: {done.stderr.decode(errors='replace')}", file=sys.stderr)
    return None, None


if __name__ == "__main__":
    sys.exit(main())
