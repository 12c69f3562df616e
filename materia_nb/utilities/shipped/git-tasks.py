"""Git tasks of a cast: commit each work item to a branch, or create a worktree for each lane and merge the worktrees.

stdin   {"cwd", "runDir", "castId", "item", "lane": optional, "baseScope": {"cwd"}, "state", "params": {"do", "branchName"?}}
stdout  {"satisfied", "context", "state": {KEY: {"ok", ...}}, "scopeTransition"?}; bootstrap prints only the state

params.do is the name of a task; KEY is the name in parentheses:

bootstrap  (mimeBootstrap) creates a branch at the current commit and switches to it. The name of the branch is "mime/"
           followed by params.branchName, or by a name derived from the id of the cast. "before" maps each file that has
           uncommitted changes to a fingerprint. No file is changed. If there is no Git, no repository or no commit, the
           utility fails, and "error" is the reason.
maintain   (mimeMaintain) commits the changes of a work item, whose title is the subject of the commit. A file in
           "before" is not committed unless the cast has changed it. If nothing has changed, the task succeeds without a
           commit. The Git hooks of the project run as for any other commit. After a failure, the task can be run again
           for the same item.
spawn      (gitWorktree) creates a branch at the project's current commit, and a worktree in the directory of the cast.
           The following sockets work in the worktree.
integrate  (gitIntegration) merges the branches in state.parallelResults, in order, into the branch of the project.
           Uncommitted changes in a worktree are committed first. After a conflict, the files of the project contain
           conflict markers, "satisfied" is false, and "context" contains instructions. The next run commits the
           resolved files and continues. The following sockets work in the project.
finalize   (gitFinalized) removes the merged worktrees and branches of the cast. A worktree that contains unmerged
           changes is kept and reported.
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
PREFIX = "mime/"
MAX_UNCOMMITTED = 2_000
_HIDDEN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in _HIDDEN}
_ENVIRONMENT |= {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "LC_ALL": "C"}
_CODING: dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape"}


class Failed(Exception):
    """Raised if a task fails; the message is the reason, and ``fields`` contains further fields for the state."""

    def __init__(self, reason: str, **fields: Any) -> None:
        super().__init__(reason)
        self.fields = fields


TaskResult = tuple[str, dict[str, Any], dict[str, Any]]
"""The result of a task: the context, the fields of the state, and further fields of the output."""


def main() -> int:
    """Run the task, print the result, and return the exit code.

    The exit code is 1 if bootstrap fails. The other tasks report a failure in ``satisfied``.
    """
    document = json.load(sys.stdin.buffer)
    tasks = {
        "bootstrap": ("mimeBootstrap", bootstrap),
        "maintain": ("mimeMaintain", maintain),
        "spawn": (EXPORT, spawn),
        "integrate": ("gitIntegration", integrate),
        "finalize": ("gitFinalized", finalize),
    }
    # If a config sets other parameters, params.do is missing, and the task is derived from a name such as Git-Spawn.
    name = document["params"].get("do") or str(document.get("materiaId")).rpartition("-")[2].lower()
    if name not in tasks:
        sys.exit(f"git-tasks: `params.do` is {name!r}, not one of {', '.join(tasks)}.")
    key, task = tasks[name]
    try:
        context, state, more = task(document)
        output = {"satisfied": True, "context": context, "state": {key: {"ok": True, **state}}, **more}
    except Failed as error:
        state = {"ok": False, "error": str(error), **error.fields}
        output = {"satisfied": False, "context": str(error), "state": {key: state}}
        print(f"git-tasks: {error}", file=sys.stderr)
    if task is integrate:  # an agent that resolves a conflict must also work in the project
        output["scopeTransition"] = {"kind": "base"}
    print(json.dumps({"state": output["state"]} if task is bootstrap else output))
    return 1 if task is bootstrap and not output["satisfied"] else 0


def bootstrap(document: dict[str, Any]) -> TaskResult:
    """Switch to the branch of the cast, and record the files that have uncommitted changes."""
    try:
        root = top_level(document["cwd"])
    except Failed as error:
        raise Failed(
            f"The project has no Git repository. Create one with `git init` and `git commit` ({error})."
        ) from None
    try:
        base = git(root, "rev-parse", "--verify", "HEAD^{commit}").strip()
    except Failed:
        raise Failed("The repository has no commit yet. Create one, then retry.") from None
    before = {path: file_state(root / path) for path in changes(root, document)}
    if len(before) > MAX_UNCOMMITTED:
        raise Failed(f"{len(before):,} files have uncommitted changes. Commit or ignore them, then retry.")
    branch = branch_name(document)
    is_new = not git(root, "for-each-ref", f"refs/heads/{branch}")
    git(root, "switch", *(["--create"] if is_new else []), branch)
    return "", {"root": str(root), "branchName": branch, "base": base, "before": before}, {}


def branch_name(document: dict[str, Any]) -> str:
    """Return the name in ``params.branchName`` after sanitizing it, or a name derived from the id of the cast."""
    name = document["params"].get("branchName")
    parts = re.sub(r"[^\w/-]+", "-", name.strip() if isinstance(name, str) else "").split("/")
    safe_name = "/".join(filter(None, (part.strip("-_") for part in parts))).removeprefix(PREFIX)
    return PREFIX + (safe_name or hashlib.sha256(str(document["castId"]).encode()).hexdigest()[:10])


def maintain(document: dict[str, Any]) -> TaskResult:
    """Commit the changes of the work item, if there are any."""
    bootstrap_state = (document.get("state") or {}).get("mimeBootstrap")
    bootstrap_state = bootstrap_state if isinstance(bootstrap_state, dict) else {}
    state: dict[str, Any] = {"committed": False, "branchName": bootstrap_state.get("branchName")}
    try:
        return commit_item(document, bootstrap_state.get("before") or {}, state), state, {}
    except Failed as error:
        raise Failed(str(error), **state) from None


def commit_item(document: dict[str, Any], before: dict[str, str], state: dict[str, Any]) -> str:
    """Commit all changed files and return a description of the result.

    Args:
        document: the input of the utility.
        before: the fingerprints of the files that had uncommitted changes before the cast. A file that still has its
            fingerprint is not committed.
        state: the fields of ``state.mimeMaintain``, in which the commit is stored.
    """
    title = (document.get("item") or {}).get("title")
    title = title.strip().replace("\0", "") if isinstance(title, str) else ""
    if not title:
        raise Failed("The work item has no title. The title becomes the subject of the commit.")
    try:
        root = top_level(document["cwd"])
    except Failed as error:
        raise Failed(f"The project has no Git repository. Run Mime-Bootstrap first ({error}).") from None
    changed = [path for path in changes(root, document) if before.get(path) != file_state(root / path)]
    if not changed:
        return f"Nothing has changed, so no commit was made for: {title}"
    paths, pathspec = "\0".join(changed), ("--pathspec-from-file=-", "--pathspec-file-nul")
    git(root, "--literal-pathspecs", "add", "--all", *pathspec, stdin=paths)
    # Other staged changes do not belong to the item and are left out. During a merge, Git allows only a full commit.
    pathspec_options = () if merge_head(root) is not None else ("--only", *pathspec)
    git(root, "--literal-pathspecs", "commit", "--quiet", f"--message={title}", *pathspec_options, stdin=paths)
    state |= {"committed": True, "commit": git(root, "rev-parse", "HEAD").strip()}
    return f"Committed as {state['commit'][:10]} (changed files: {len(changed)}): {title}"


def spawn(document: dict[str, Any]) -> TaskResult:
    """Create a worktree of the project on a new branch."""
    project = Path(document["baseScope"]["cwd"])
    try:
        root = repository(document)
        base = git(root, "rev-parse", "--verify", "HEAD^{commit}").strip()
    except Failed as error:
        message = "Each lane needs a worktree, so the project must be a Git repository with a commit"
        raise Failed(f"{message}. Run `git init`, `git add` and `git commit`, then retry. {error}") from None
    name = re.sub(r"[^\w-]+", "-", str(document.get("lane") or "work")).strip("-_")[:40] or "work"
    folder = new_folder(Path(document["runDir"]) / "worktrees", name)
    branch = f"materia/{document['castId']}/{folder.name}"
    try:
        git(root, "worktree", "add", "--quiet", "-b", branch, str(folder), base)
    except Failed:
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise
    worktree = {"branch": branch, "path": str(folder), "base": base}
    cwd = folder / project.resolve().relative_to(root.resolve())
    scope = {"id": branch, "cwd": str(cwd), "exports": {EXPORT: {"producer": "Git-Spawn", "value": worktree}}}
    context = f"The lane works in its own worktree, on the branch {branch}."
    if changed := changes(root, document):
        context += f" It does not contain the uncommitted changes of the project (changed files: {len(changed)})."
    return context, worktree, {"scopeTransition": {"kind": "replace", "scope": scope}}


def new_folder(parent: Path, name: str) -> Path:
    """Create a folder with an unused name. Other lanes may create folders at the same time."""
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = parent / (name if number == 1 else f"{name}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
        number += 1


def integrate(document: dict[str, Any]) -> TaskResult:
    """Merge the branches of the lanes in the order of the schedule."""
    root = repository(document)
    if merge_head(root) is not None:
        commit_resolved(root, document["state"].get("gitIntegration") or {})
    merged_names = []
    for name, lane in lanes(document["state"]):
        folder = Path(lane["path"])
        if folder.is_dir() and changes(folder, document):
            git(folder, "add", "--all")
            git(folder, "commit", "--quiet", f"--message={name}: uncommitted changes")
        if not is_merged(root, lane["branch"]):
            merge(root, name, lane["branch"])
        merged_names.append(name)
    head = git(root, "rev-parse", "HEAD").strip()
    return f"Merged in this order: {', '.join(merged_names)}.", {"merged": merged_names, "head": head}, {}


def lanes(state: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the name and the worktree of each lane in the order of the schedule.

    If the cast has no lanes, yield its only worktree.
    """
    results = state.get("parallelResults")
    if not isinstance(results, list):
        results = [{"name": "work", "exports": {EXPORT: {"value": state.get(EXPORT)}}}]
    for lane in results:
        worktree = ((lane.get("exports") or {}).get(EXPORT) or {}).get("value")
        if not isinstance(worktree, dict) or not {"branch", "path"} <= worktree.keys():
            raise Failed(f"{lane.get('name')} has no worktree: each lane must begin with Git-Spawn.")
        yield str(lane.get("name")), worktree


def merge(root: Path, name: str, branch: str) -> None:
    """Merge a branch; raises Failed after a conflict, which leaves conflict markers in the files."""
    try:
        git(root, "merge", "--no-ff", "--no-edit", f"--message=Merge {name}", branch)
    except Failed as error:
        conflicts = unmerged(root)
        if merge_head(root) is None or not conflicts:
            raise Failed(f"{name} cannot be merged: {error}") from None
        raise Failed(
            f"{name} and an earlier lane changed the same lines of {', '.join(conflicts)}. These files contain both versions, "
            "between <<<<<<< and >>>>>>>. Combine the versions and remove the markers. If a file needs no change, run `git add` "
            "on it. Then integrate again.",
            conflict=name,
            files={path: fingerprint(root / path) for path in conflicts},
        ) from None


def commit_resolved(root: Path, before: dict[str, Any]) -> None:
    """Commit a merge after its conflicts were resolved; raises Failed if a file is still unresolved.

    A file is unresolved if it has not changed since the conflict or contains conflict markers. ``before`` contains the
    fields of ``state.gitIntegration`` after the conflict.
    """
    files, conflicts = before.get("files") or {}, unmerged(root)
    unresolved = [
        path
        for path in conflicts
        if files.get(path) == fingerprint(root / path) or b"\n<<<<<<< " in b"\n" + content(root / path)
    ]
    if unresolved:
        raise Failed(
            f"These files are not resolved yet: {', '.join(unresolved)}. Remove the markers, or run `git add` on files that "
            "need no change. Then integrate again.",
            conflict=before.get("conflict"),
            files=files,
        )
    if conflicts:
        git(root, "--literal-pathspecs", "add", "--all", "--", *conflicts)
    git(root, "commit", "--quiet", "--no-edit")


def finalize(document: dict[str, Any]) -> TaskResult:
    """Remove the worktrees and branches of the cast that are completely merged."""
    root = repository(document)
    git(root, "worktree", "prune")
    removed_names, remaining = [], []
    if merge_head(root) is not None:
        raise Failed("A merge is in progress. Run the task `integrate` again first.")
    prefix = f"refs/heads/materia/{document['castId']}/"
    for line in git(root, "for-each-ref", "--format=%(refname) %(worktreepath)", prefix).splitlines():
        ref, _, folder = line.partition(" ")
        branch = ref.removeprefix("refs/heads/")
        if not is_merged(root, branch) or (folder and changes(Path(folder), document)):
            remaining.append(branch)
            continue
        if folder:
            git(root, "worktree", "remove", folder)
        git(root, "branch", "--quiet", "--delete", "--force", branch)  # safe, because the branch is merged
        removed_names.append(branch)
    with contextlib.suppress(OSError):
        (Path(document["runDir"]) / "worktrees").rmdir()
    if remaining:
        raise Failed(
            f"These branches are not completely merged, so they and their worktrees were kept: {', '.join(remaining)}.",
            kept=remaining,
            removed=removed_names,
        )
    return f"Removed merged worktrees: {len(removed_names)}.", {"removed": removed_names}, {}


def repository(document: dict[str, Any]) -> Path:
    """Return the root of the project's repository; raises Failed if the project has none."""
    return top_level(document["baseScope"]["cwd"])


def top_level(folder: str) -> Path:
    """Return the root of the repository or worktree that contains ``folder``; raises Failed if it does not exist."""
    return Path(git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))


def changes(root: Path, document: dict[str, Any]) -> list[str]:
    """Return the paths of files that have uncommitted changes, except files of casts."""
    casts = os.path.relpath(Path(document["runDir"]).resolve().parent, root.resolve())
    outside = () if casts.startswith("..") else (f":(exclude,literal){casts}",)
    output = git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", ".", *outside)
    return sorted({line[3:] for line in output.split("\0") if line})


def merge_head(root: Path) -> Path | None:
    """Return the path of the file MERGE_HEAD, or None if no merge is in progress."""
    path = root / git(root, "rev-parse", "--git-path", "MERGE_HEAD").strip()
    return path if path.exists() else None


def unmerged(root: Path) -> list[str]:
    """Return the paths of files that have unresolved conflicts."""
    return [path for path in git(root, "diff", "--name-only", "--diff-filter=U", "-z").split("\0") if path]


def is_merged(root: Path, branch: str) -> bool:
    """Return True if the project's branch contains all commits of ``branch``."""
    return git(root, "rev-list", "--max-count=1", branch, "^HEAD") == ""


def content(path: Path) -> bytes:
    """Return the content of a file or the target of a symbolic link, or no bytes if the file cannot be read."""
    try:
        return str(path.readlink()).encode(errors="surrogateescape") if path.is_symlink() else path.read_bytes()
    except OSError:
        return b""


def fingerprint(path: Path) -> str:
    """Return the digest of a file's content; empty if the file does not exist."""
    return hashlib.sha256(content(path)).hexdigest() if os.path.lexists(path) else ""


def file_state(path: Path) -> str:
    """Return the digest of a file's content, followed by ``x`` if the file is executable."""
    return fingerprint(path) + ("x" if os.access(path, os.X_OK) else "")


def git(folder: Path | str, *arguments: str, stdin: str = "") -> str:
    """Run a Git command in ``folder`` and return its stdout; raises Failed if the command fails."""
    name = next(argument for argument in arguments if not argument.startswith("-"))
    command = ["git", "-c", "gc.auto=0", *arguments]
    try:
        completed = subprocess.run(
            command, cwd=folder, env=_ENVIRONMENT, input=stdin, capture_output=True, check=True, **_CODING
        )
    except subprocess.CalledProcessError as error:
        message = (error.stderr.strip() or error.stdout.strip())[:600] or "it printed no error message"
        raise Failed(f"git {name} exited with code {error.returncode}: {message}") from error
    except (OSError, ValueError) as error:
        raise Failed(f"git cannot be started: {getattr(error, 'strerror', None) or error}") from error
    return str(completed.stdout)


if __name__ == "__main__":
    sys.exit(main())
