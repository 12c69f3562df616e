"""Mime-Maintain: commits the changes of a work item with Git; the subject of the commit is the item's title.

stdin   {"cwd": ..., "runDir": ..., "item": {"title": ...}, "state": {"mimeBootstrap": {"branchName", "before"}}}
stdout  {"satisfied": ..., "context": the result or the reason of the failure,
         "state": {"mimeMaintain": {"ok", "committed", "branchName", "commit" or "error"}}}

Without changes, the utility succeeds and does not commit. Files with uncommitted changes from before the cast, which
Mime-Bootstrap has recorded, are not committed until the cast changes them. The project's Git hooks run as for any commit.
After a failure, the utility can run again for the same item.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_HIDDEN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in _HIDDEN}
_ENVIRONMENT |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_CODING: dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape"}


class Failed(Exception):
    """The changes were not committed; the message is the reason."""


def main() -> int:
    """Commit the changes and print the result; always return 0, since ``satisfied`` reports a failure."""
    document = json.load(sys.stdin.buffer)
    bootstrap = (document.get("state") or {}).get("mimeBootstrap")
    if not isinstance(bootstrap, dict):
        bootstrap = {}
    state: dict[str, Any] = {"ok": False, "committed": False, "branchName": bootstrap.get("branchName")}
    try:
        context = maintain(document, bootstrap.get("before") or {}, state)
        state["ok"] = True
    except Failed as error:
        state["error"] = context = str(error)
        print(f"Mime-Maintain: {error}", file=sys.stderr)
    print(json.dumps({"satisfied": state["ok"], "context": context, "state": {"mimeMaintain": state}}))
    return 0


def maintain(document: dict[str, Any], before: dict[str, str], state: dict[str, Any]) -> str:
    """Commit the changes, if there are any, and return a description of the result; raises Failed."""
    title = (document.get("item") or {}).get("title")
    title = title.strip().replace("\0", "") if isinstance(title, str) else ""
    if not title:
        raise Failed("There is no work item with a title, which would be the subject of the commit.")
    try:
        root = git(document["cwd"], "rev-parse", "--show-toplevel").rstrip("\n")
    except Failed as error:
        raise Failed(f"There is no Git repository: run Mime-Bootstrap first ({error})") from None
    changed = [
        path
        for path in uncommitted(root, document["runDir"])
        if path not in before or before[path] != fingerprint(Path(root, path))
    ]
    if not changed:
        return f"Nothing has changed, so no commit was made for: {title}"
    paths, listed = "\0".join(changed), ("--pathspec-from-file=-", "--pathspec-file-nul")
    git(root, "--literal-pathspecs", "add", "--all", *listed, stdin=paths)
    # Leave out other staged changes, which do not belong to the item. During a merge, Git allows only a full commit.
    merging = Path(root, git(root, "rev-parse", "--git-path", "MERGE_HEAD").strip()).exists()
    only = () if merging else ("--only", *listed)
    git(root, "--literal-pathspecs", "commit", "--quiet", f"--message={title}", *only, stdin=paths)
    state |= {"committed": True, "commit": git(root, "rev-parse", "HEAD").strip()}
    return f"Committed {len(changed)} files as {state['commit'][:10]}: {title}"


def uncommitted(root: str, run_dir: str) -> list[str]:
    """Return the files with uncommitted changes, without the files of casts."""
    casts = os.path.relpath(Path(run_dir).resolve().parent, Path(root).resolve())
    outside = () if casts.startswith("..") else (f":(exclude,literal){casts}",)
    listed = git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", ".", *outside)
    return sorted({line[3:] for line in listed.split("\0") if line})


def fingerprint(path: Path) -> str:
    """Return a digest of a file's content, computed as in Mime-Bootstrap; empty if the file cannot be read."""
    try:
        content = str(path.readlink()).encode(errors="surrogateescape") if path.is_symlink() else path.read_bytes()
        return hashlib.sha256(content).hexdigest() + ("x" if os.access(path, os.X_OK) else "")
    except OSError:
        return ""


def git(folder: str, *arguments: str, stdin: str = "") -> str:
    """Run Git in a folder and return its stdout; raises Failed."""
    command = next(argument for argument in arguments if not argument.startswith("-"))
    try:
        completed = subprocess.run(
            ["git", *arguments], cwd=folder, env=_ENVIRONMENT, input=stdin, capture_output=True, check=True, **_CODING
        )
    except subprocess.CalledProcessError as error:
        message = (error.stderr.strip() or error.stdout.strip())[:600] or "there is no error message"
        raise Failed(f"git {command} ended with code {error.returncode}: {message}") from error
    except (OSError, ValueError) as error:
        raise Failed(f"git cannot be started: {getattr(error, 'strerror', None) or error}") from error
    return str(completed.stdout)


if __name__ == "__main__":
    sys.exit(main())
