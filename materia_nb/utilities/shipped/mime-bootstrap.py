"""Mime-Bootstrap: switches to a Git branch for this cast, and records the changes that were uncommitted before it.

stdin   {"cwd": ..., "castId": ..., "runDir": ..., "params": {"branchName": optional}}
stdout  {"state": {"mimeBootstrap": {"ok", "root", "branchName", "base", "before"}}}

root        the directory of the repository
branchName  mime/ followed by params.branchName, or by a name derived from the id of the cast
base        the current commit, at which the branch starts
before      the files with uncommitted changes, each with its fingerprint: Mime-Maintain does not commit these files
            until the cast changes them

No file is changed. Without Git, a repository or a commit, the utility fails: "ok" is false and "error" is the reason.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

PREFIX = "mime/"
MAX_UNCOMMITTED = 2_000
_HIDDEN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in _HIDDEN}
_ENVIRONMENT |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_CODING: dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape"}


class Failed(Exception):
    """The branch was not created; the message is the reason."""


def main() -> int:
    """Switch to the branch, print the state, and return the exit code."""
    document = json.load(sys.stdin.buffer)
    state: dict[str, Any] = {"ok": False}
    try:
        state |= {**bootstrap(document), "ok": True}
    except Failed as error:
        state["error"] = str(error)
        print(f"Mime-Bootstrap: {error}", file=sys.stderr)
    print(json.dumps({"state": {"mimeBootstrap": state}}))
    return 0 if state["ok"] else 1


def bootstrap(document: dict[str, Any]) -> dict[str, Any]:
    """Switch to the branch of the cast and return the state; raises Failed."""
    try:
        root = git(document["cwd"], "rev-parse", "--show-toplevel").rstrip("\n")
    except Failed as error:
        raise Failed(f"there is no Git repository; create one with git init and git commit ({error})") from None
    try:
        base = git(root, "rev-parse", "--verify", "HEAD^{commit}").strip()
    except Failed:
        raise Failed("the repository has no commit yet; create one, then retry") from None
    before = {path: fingerprint(Path(root, path)) for path in uncommitted(root, document["runDir"])}
    if len(before) > MAX_UNCOMMITTED:
        raise Failed(f"{len(before):,} files have uncommitted changes; commit or ignore them, then retry")
    branch = branch_name(document)
    is_new = not git(root, "for-each-ref", f"refs/heads/{branch}")
    git(root, "switch", *(["--create"] if is_new else []), branch)
    return {"root": root, "branchName": branch, "base": base, "before": before}


def branch_name(document: dict[str, Any]) -> str:
    """Return the sanitized ``params.branchName``, or a name derived from the id of the cast."""
    name = (document.get("params") or {}).get("branchName")
    parts = re.sub(r"[^\w/-]+", "-", name.strip() if isinstance(name, str) else "").split("/")
    safe_name = "/".join(filter(None, (part.strip("-_") for part in parts))).removeprefix(PREFIX)
    return PREFIX + (safe_name or hashlib.sha256(str(document["castId"]).encode()).hexdigest()[:10])


def uncommitted(root: str, run_dir: str) -> list[str]:
    """Return the files with uncommitted changes, without the files of casts."""
    casts = os.path.relpath(Path(run_dir).resolve().parent, Path(root).resolve())
    outside = () if casts.startswith("..") else (f":(exclude,literal){casts}",)
    listed = git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", ".", *outside)
    return sorted({line[3:] for line in listed.split("\0") if line})


def fingerprint(path: Path) -> str:
    """Return a digest of a file's content; empty if the file does not exist or cannot be read."""
    try:
        content = str(path.readlink()).encode(errors="surrogateescape") if path.is_symlink() else path.read_bytes()
        return hashlib.sha256(content).hexdigest() + ("x" if os.access(path, os.X_OK) else "")
    except OSError:
        return ""


def git(folder: str, *arguments: str) -> str:
    """Run Git in a folder and return its stdout; raises Failed."""
    try:
        completed = subprocess.run(
            ["git", *arguments], cwd=folder, env=_ENVIRONMENT, capture_output=True, check=True, **_CODING
        )
    except subprocess.CalledProcessError as error:
        message = (error.stderr.strip() or error.stdout.strip())[:600] or "there is no error message"
        raise Failed(f"git {arguments[0]} ended with code {error.returncode}: {message}") from error
    except (OSError, ValueError) as error:
        raise Failed(f"git cannot be started: {getattr(error, 'strerror', None) or error}") from error
    return str(completed.stdout)


if __name__ == "__main__":
    sys.exit(main())
