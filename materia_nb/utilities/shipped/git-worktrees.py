"""Git-Spawn, Git-Integrate and Git-Finalize: work side by side in worktrees of Git, joined in their order.

stdin   {"cwd", "runDir", "castId", "lane": optional, "baseScope": {"cwd"}, "params": {"do": "spawn", "integrate" or "finalize"},
         "state": {"parallelResults": [...], "gitIntegration": ...}}

spawn      makes a branch and a worktree below the directory of the cast, from the commit that the project stands at, and
           lets what follows work there; the branch is exported as gitWorktree.
integrate  merges the branches of state.parallelResults, in its order, into the branch of the project. What a worktree holds
           uncommitted is committed first. A conflict is left in the files of the project: satisfied is false and the context
           says what to do; run again, it takes the resolved files and goes on. From then on work goes on in the project.
finalize   takes away the worktrees and branches of the cast that are merged; one that holds anything else stays and is told.

stdout  {"satisfied", "context", "state": {"gitWorktree" or "gitIntegration" or "gitFinalized": {"ok", ...}}, "scopeTransition"?}
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXPORT = "gitWorktree"


class Failed(Exception):
    """It was not done, and why; ``more`` is what the state is told beside it."""

    def __init__(self, why: str, **more: Any) -> None:
        super().__init__(why)
        self.more = more


def main() -> int:
    """Read the input, do it, tell; the exit code is 0, since satisfied says how it went."""
    given = json.load(sys.stdin.buffer)
    key, do = {
        "spawn": (EXPORT, spawn),
        "integrate": ("gitIntegration", integrate),
        "finalize": ("gitFinalized", finalize),
    }[given["params"]["do"]]
    try:
        context, told, more = do(given)
        answer = {"satisfied": True, "context": context, "state": {key: {"ok": True, **told}}, **more}
    except Failed as error:
        told = {"ok": False, "error": str(error), **error.more}
        answer = {"satisfied": False, "context": str(error), "state": {key: told}}
    if do is integrate:  # whoever resolves a conflict works in the project too
        answer["scopeTransition"] = {"kind": "base"}
    print(json.dumps(answer))
    return 0


Done = tuple[str, dict[str, Any], dict[str, Any]]
"""What to say, what the state is told, and what else stands in the output."""


def spawn(given: dict[str, Any]) -> Done:
    """Make a worktree of the project with a branch of its own."""
    project = Path(given["baseScope"]["cwd"])
    try:
        root = Path(git(project, "rev-parse", "--show-toplevel").rstrip("\n"))
        base = git(root, "rev-parse", "--verify", "HEAD^{commit}").strip()
    except Failed as error:
        needs = "The project needs a Git repository with a commit in it, of which each lane gets a worktree"
        raise Failed(f"{needs}: git init, git add, git commit, then retry. {error}") from None
    name = re.sub(r"[^\w-]+", "-", str(given.get("lane") or "work")).strip("-_")[:40] or "work"
    place = own_folder(given, name)
    branch = f"materia/{given['castId']}/{place.name}"
    try:
        git(root, "worktree", "add", "--quiet", "-b", branch, str(place), base)
    except Failed:
        with contextlib.suppress(OSError):
            place.rmdir()
        raise
    cwd = place / project.resolve().relative_to(root.resolve())
    told = {"branch": branch, "path": str(place), "base": base}
    scope = {
        "id": branch,
        "cwd": str(cwd),
        "exports": {EXPORT: {"producer": "Git-Spawn", "value": told}},
    }
    left_out = len(changes(root, given))
    context = f"Works in a worktree of its own, on the branch {branch}."
    if left_out:
        context += f" Changes of the project that nobody committed are not in it; files with such: {left_out}."
    return context, told, {"scopeTransition": {"kind": "replace", "scope": scope}}


def own_folder(given: dict[str, Any], name: str) -> Path:
    """Make a folder that nobody else has; others may do the same at this moment."""
    folder = Path(given["runDir"]) / "worktrees"
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        place = folder / (name if number == 1 else f"{name}-{number}")
        with contextlib.suppress(FileExistsError):
            place.mkdir()
            return place
        number += 1


def integrate(given: dict[str, Any]) -> Done:
    """Merge what the lanes committed, one after the other."""
    root = Path(git(given["baseScope"]["cwd"], "rev-parse", "--show-toplevel").rstrip("\n"))
    if merge_head(root) is not None:
        take_resolved(root, given["state"].get("gitIntegration") or {})
    merged = []
    for name, lane in lanes(given["state"]):
        place = Path(lane["path"])
        if place.is_dir() and changes(place, given):
            git(place, "add", "--all")
            git(place, "commit", "--quiet", f"--message={name}: what was left")
        if not is_merged(root, lane["branch"]):
            merge(root, name, lane["branch"])
        merged.append(name)
    head = git(root, "rev-parse", "HEAD").strip()
    return f"Joined in this order: {', '.join(merged)}.", {"merged": merged, "head": head}, {}


def lanes(state: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Give the name and the worktree of each lane, in the order of the schedule; without lanes the one that was made."""
    results = state.get("parallelResults")
    if not isinstance(results, list):
        results = [{"name": "work", "exports": {EXPORT: {"value": state.get(EXPORT)}}}]
    for lane in results:
        value = ((lane.get("exports") or {}).get(EXPORT) or {}).get("value")
        if not isinstance(value, dict) or not {"branch", "path"} <= value.keys():
            raise Failed(f"{lane.get('name')} has no worktree: let each lane begin with Git-Spawn.")
        yield str(lane.get("name")), value


def merge(root: Path, name: str, branch: str) -> None:
    """Merge a branch; a conflict is left in the files and told."""
    try:
        git(root, "merge", "--no-ff", "--no-edit", f"--message=Join {name}", branch)
    except Failed as error:
        conflicts = unmerged(root)
        if merge_head(root) is None or not conflicts:
            raise Failed(f"{name} cannot be joined: {error}") from None
        raise Failed(
            f"{name} and what was joined before it changed the same lines of {', '.join(conflicts)}. Both versions stand in these "
            "files, between <<<<<<< and >>>>>>>. Keep what is right of both and take the marks out; a file that is right as it "
            "stands is told so by git add. Then integrate again.",
            conflict=name,
            files={path: fingerprint(root / path) for path in conflicts},
        ) from None


def take_resolved(root: Path, before: dict[str, Any]) -> None:
    """Commit a merge whose conflicts were resolved; raises Failed where some are as they were."""
    noted = before.get("files") or {}
    open_ = [
        path
        for path in unmerged(root)
        if noted.get(path) == fingerprint(root / path) or b"\n<<<<<<< " in b"\n" + content(root / path)
    ]
    if open_:
        raise Failed(
            f"These files are not resolved yet: {', '.join(open_)}. Take the marks out, or git add what is right as it stands; "
            "then integrate again.",
            conflict=before.get("conflict"),
            files=noted,
        )
    if resolved := unmerged(root):
        git(root, "--literal-pathspecs", "add", "--all", "--", *resolved)
    git(root, "commit", "--quiet", "--no-edit")


def finalize(given: dict[str, Any]) -> Done:
    """Take the cast's worktrees and branches away, as far as all that is in them is merged."""
    root = Path(git(given["baseScope"]["cwd"], "rev-parse", "--show-toplevel").rstrip("\n"))
    git(root, "worktree", "prune")
    prefix, removed, kept = f"refs/heads/materia/{given['castId']}/", [], []
    if merge_head(root) is not None:
        raise Failed("A merge is not finished; integrate again first.")
    for line in git(root, "for-each-ref", "--format=%(refname) %(worktreepath)", prefix).splitlines():
        ref, _, place = line.partition(" ")
        branch = ref.removeprefix("refs/heads/")
        if not is_merged(root, branch) or (place and changes(Path(place), given)):
            kept.append(branch)
            continue
        if place:
            git(root, "worktree", "remove", place)
        git(root, "branch", "--quiet", "--delete", "--force", branch)  # it is merged, as was just seen
        removed.append(branch)
    with contextlib.suppress(OSError):
        (Path(given["runDir"]) / "worktrees").rmdir()
    if kept:
        raise Failed(
            f"Not everything was joined, so these branches stay, with their worktrees: {', '.join(kept)}.",
            kept=kept,
            removed=removed,
        )
    return f"Took {len(removed)} merged worktrees away.", {"removed": removed}, {}


def changes(root: Path, given: dict[str, Any]) -> list[str]:
    """List the files with changes that nobody committed, but for those of casts."""
    casts = os.path.relpath(Path(given["runDir"]).resolve().parent, root.resolve())
    outside = () if casts.startswith("..") else (f":(exclude,literal){casts}",)
    listed = git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", ".", *outside)
    return [line[3:] for line in listed.split("\0") if line]


def merge_head(root: Path) -> Path | None:
    """Return the file that says what is being merged, None when nothing is."""
    path = root / git(root, "rev-parse", "--git-path", "MERGE_HEAD").strip()
    return path if path.exists() else None


def unmerged(root: Path) -> list[str]:
    """List the files in conflict."""
    return [path for path in git(root, "diff", "--name-only", "--diff-filter=U", "-z").split("\0") if path]


def is_merged(root: Path, branch: str) -> bool:
    """Whether all commits of a branch are in that of the project."""
    return git(root, "rev-list", "--max-count=1", branch, "^HEAD") == ""


def content(path: Path) -> bytes:
    """Return what a file holds, empty where there is none."""
    try:
        return str(path.readlink()).encode(errors="surrogateescape") if path.is_symlink() else path.read_bytes()
    except OSError:
        return b""


def fingerprint(path: Path) -> str:
    """Return a word for what a file holds, another where there is none."""
    return hashlib.sha256(content(path)).hexdigest() if os.path.lexists(path) else ""


def git(folder: Path | str, *arguments: str) -> str:
    """Run Git in a folder and return its stdout; raises Failed."""
    hidden = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    try:
        done = subprocess.run(
            ["git", "-c", "gc.auto=0", *arguments],
            cwd=folder,
            env={**environment, "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except (OSError, ValueError) as error:
        raise Failed(f"git cannot be started: {getattr(error, 'strerror', None) or error}") from error
    if done.returncode:
        why = (done.stderr.strip() or done.stdout.strip())[:600] or "it said nothing"
        raise Failed(f"git {arguments[0]} ended with code {done.returncode}: {why}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
