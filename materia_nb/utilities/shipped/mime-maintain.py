"""Mime-Maintain: keeps what a work item changed as one commit of Git, with the item's title as its subject.

stdin   {"cwd": ..., "runDir": ..., "item": {"title": ...}, "state": {"mimeBootstrap": {"branchName", "before"}}}
stdout  {"satisfied": ..., "context": what was done, or what is in the way,
         "state": {"mimeMaintain": {"ok", "committed", "branchName", "commit" or "error"}}}

Where nothing changed there is no commit, which is fine. Files that had changes before the cast, as Mime-Bootstrap noted
them, are left out as long as they are the same. The project's own hooks are run as for any commit; one that refuses is
told, and the same item can be maintained again.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


class Failed(Exception):
    """There is no commit, and why."""


def main() -> int:
    """Read the input, commit, tell; the exit code is 0, since satisfied says how it went."""
    given = json.load(sys.stdin.buffer)
    state = (given.get("state") or {}).get("mimeBootstrap")
    noted = state if isinstance(state, dict) else {}
    found: dict[str, Any] = {"ok": False, "committed": False, "branchName": noted.get("branchName")}
    try:
        context = maintain(given, noted.get("before") or {}, found)
        found["ok"] = True
    except Failed as error:
        found["error"] = context = str(error)
        print(f"Mime-Maintain: {error}", file=sys.stderr)
    print(json.dumps({"satisfied": found["ok"], "context": context, "state": {"mimeMaintain": found}}))
    return 0


def maintain(given: dict[str, Any], before: dict[str, str], found: dict[str, Any]) -> str:
    """Make the commit if something changed, and say what was done; raises Failed."""
    title = (given.get("item") or {}).get("title")
    title = title.strip().replace("\0", "") if isinstance(title, str) else ""
    if not title:
        raise Failed("There is no work item with a title to name the commit after.")
    try:
        root = git(given["cwd"], "rev-parse", "--show-toplevel").rstrip("\n")
    except Failed as error:
        raise Failed(f"There is no Git repository to keep this in: run Mime-Bootstrap first ({error})") from None
    changed = [
        path
        for path in uncommitted(root, given["runDir"])
        if path not in before or before[path] != fingerprint(Path(root, path))
    ]
    if not changed:
        return f"Nothing has changed, so there is no new commit for: {title}"
    paths, listed = "\0".join(changed), ("--pathspec-from-file=-", "--pathspec-file-nul")
    git(root, "--literal-pathspecs", "add", "--all", *listed, stdin=paths)
    # What else is staged is not the item's; in the middle of a merge Git takes all or nothing.
    merging = Path(root, git(root, "rev-parse", "--git-path", "MERGE_HEAD").strip()).exists()
    only = () if merging else ("--only", *listed)
    git(root, "--literal-pathspecs", "commit", "--quiet", f"--message={title}", *only, stdin=paths)
    found |= {"committed": True, "commit": git(root, "rev-parse", "HEAD").strip()}
    return f"Kept as commit {found['commit'][:10]}, {len(changed)} files: {title}"


def uncommitted(root: str, run_dir: str) -> list[str]:
    """List the files with changes that nobody committed, but for those of casts."""
    casts = os.path.relpath(Path(run_dir).resolve().parent, Path(root).resolve())
    outside = () if casts.startswith("..") else (f":(exclude,literal){casts}",)
    listed = git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", ".", *outside)
    return sorted({line[3:] for line in listed.split("\0") if line})


def fingerprint(path: Path) -> str:
    """Return a word for what a file holds, as Mime-Bootstrap does; empty where there is none."""
    try:
        held = str(path.readlink()).encode(errors="surrogateescape") if path.is_symlink() else path.read_bytes()
        return hashlib.sha256(held).hexdigest() + ("x" if os.access(path, os.X_OK) else "")
    except OSError:
        return ""


def git(folder: str, *arguments: str, stdin: str = "") -> str:
    """Run Git in a folder and return its stdout; raises Failed."""
    hidden = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env={**environment, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except (OSError, ValueError) as error:
        raise Failed(f"git cannot be started: {getattr(error, 'strerror', None) or error}") from error
    if done.returncode:
        why = (done.stderr.strip() or done.stdout.strip())[:600] or "it said nothing"
        command = next(one for one in arguments if not one.startswith("-"))
        raise Failed(f"git {command} ended with code {done.returncode}: {why}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
