"""Mime-Bootstrap: opens a branch of Git for this cast, and notes what was uncommitted before it.

stdin   {"cwd": ..., "castId": ..., "runDir": ..., "params": {"branchName": optional}}
stdout  {"state": {"mimeBootstrap": {"ok", "root", "branchName", "base", "before"}}}

root        the directory of the repository
branchName  mime/... after params.branchName or, without one, after the id of the cast
base        the commit that the branch begins with
before      the files with changes that nobody committed, each with its fingerprint: Mime-Maintain leaves them out
            until the cast changes them

The branch begins where the project stands, and no file is changed. Without Git, a repository or a first commit the
utility fails: "ok" is false and "error" says why.
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

KEY = "mimeBootstrap"
PREFIX = "mime/"
MOST_BEFORE = 2_000


class Failed(Exception):
    """There is no branch, and why."""


def main() -> int:
    """Read the input, open the branch, tell; the exit code."""
    given = json.load(sys.stdin.buffer)
    found: dict[str, Any] = {"ok": False}
    try:
        found |= {**bootstrap(given), "ok": True}
    except Failed as error:
        found["error"] = str(error)
        print(f"Mime-Bootstrap: {error}", file=sys.stderr)
    print(json.dumps({"state": {KEY: found}}))
    return 0 if found["ok"] else 1


def bootstrap(given: dict[str, Any]) -> dict[str, Any]:
    """Switch to the branch of the cast and say what was there before; raises Failed."""
    try:
        root = git(given["cwd"], "rev-parse", "--show-toplevel").rstrip("\n")
    except Failed as error:
        raise Failed(f"there is no Git repository here; make one with git init and commit ({error})") from None
    try:
        base = git(root, "rev-parse", "--verify", "HEAD^{commit}").strip()
    except Failed:
        raise Failed("the repository has no commit yet; make one, then retry") from None
    before = {path: fingerprint(Path(root, path)) for path in uncommitted(root, given["runDir"])}
    if len(before) > MOST_BEFORE:
        raise Failed(f"{len(before):,} files have changes that nobody committed; commit or ignore them, then retry")
    branch = branch_name(given)
    try:
        git(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        git(root, "switch", branch)
    except Failed as error:
        if "switch" in str(error):
            raise
        git(root, "switch", "--create", branch)
    return {"root": root, "branchName": branch, "base": base, "before": before}


def branch_name(given: dict[str, Any]) -> str:
    """Return the name that was asked for, made safe for Git, else one that follows from the id of the cast."""
    asked = (given.get("params") or {}).get("branchName")
    parts = re.sub(r"[^\w/-]+", "-", asked.strip() if isinstance(asked, str) else "").split("/")
    safe = "/".join(part for part in (part.strip("-_") for part in parts) if part)
    return PREFIX + (safe.removeprefix(PREFIX) or hashlib.sha256(str(given["castId"]).encode()).hexdigest()[:10])


def uncommitted(root: str, run_dir: str) -> list[str]:
    """List the files with changes that nobody committed, but for those of casts."""
    casts = os.path.relpath(Path(run_dir).resolve().parent, Path(root).resolve())
    outside = () if casts.startswith("..") else (f":(exclude,literal){casts}",)
    listed = git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", ".", *outside)
    return sorted({line[3:] for line in listed.split("\0") if line})


def fingerprint(path: Path) -> str:
    """Return a word for what a file holds; empty where there is none, or none that can be read."""
    try:
        held = str(path.readlink()).encode(errors="surrogateescape") if path.is_symlink() else path.read_bytes()
        return hashlib.sha256(held).hexdigest() + ("x" if os.access(path, os.X_OK) else "")
    except OSError:
        return ""


def git(folder: str, *arguments: str) -> str:
    """Run Git in a folder and return its stdout; raises Failed."""
    hidden = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env={**environment, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
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
