"""Blackbelt-Maintain: keeps a finished work item as one commit of jj, with the cast's bookmark on it.

stdin   {"cwd": ..., "item": {"title": ...}, "state": {"blackbeltBootstrap": {"bookmarkName": ...}}}
stdout  {"satisfied": ..., "context": what was done, or what is in the way, with [bookmark: ...]}

A clean working commit is left alone. Else: jj describe with the title, then the bookmark on that commit,
then jj new. The bookmark is moved before jj new, so it is never left behind when that fails; after a
failure the same item can be maintained again. It knows jj only and never falls back to Git.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

BOOTSTRAP = "Blackbelt-Bootstrap"


class Failed(Exception):
    """There is no checkpoint, and why."""


def main() -> int:
    """Read the input, keep the work, tell; the exit code is 0, since satisfied says how it went."""
    given = json.load(sys.stdin.buffer)
    bookmark = text_at(given, "state", "blackbeltBootstrap", "bookmarkName")
    try:
        satisfied, context = True, maintain(given, bookmark)
    except Failed as error:
        satisfied, context = False, str(error)
    if bookmark is not None:
        context += f" [bookmark: {bookmark}]"
    print(json.dumps({"satisfied": satisfied, "context": context}))
    return 0


def maintain(given: dict[str, Any], bookmark: str | None) -> str:
    """Make the checkpoint if there is something to keep, and say what was done; raises Failed."""
    if bookmark is None:
        raise Failed(f"No bookmark is known for this cast: run {BOOTSTRAP} before the first work item.")
    title = text_at(given, "item", "title")
    if title is None:
        raise Failed("There is no work item with a title to describe the commit with.")
    project = given["cwd"]
    try:
        jj(project, "root")
    except Failed as error:
        raise Failed(f"There is no jj repository to keep this in: run {BOOTSTRAP} first ({error})") from None
    if not jj(project, "diff", "--summary").strip():
        return f"Nothing has changed, so there is no new commit for: {title}"
    # A title that begins with a dash must not be read as an option.
    jj(project, "describe", *([f"--message={title}"] if title.startswith("-") else ["-m", title]))
    jj(project, "bookmark", "set", bookmark, "-r", "@")
    jj(project, "new")
    return f"Kept as a commit: {title}"


def text_at(value: Any, *keys: str) -> str | None:
    """Return the text at a path, without white space around it; None when there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return (value.strip().replace("\0", "") or None) if isinstance(value, str) else None


def jj(project: str, *arguments: str) -> str:
    """Run jj in the project and return its stdout; raises Failed."""
    try:
        done = subprocess.run(
            ["jj", *arguments],
            cwd=project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except (OSError, ValueError) as error:
        raise Failed(f"jj cannot be started: {getattr(error, 'strerror', None) or error}") from error
    if done.returncode:
        why = done.stderr.strip()[:600] or "it said nothing"
        raise Failed(f"jj {' '.join(arguments[:2])} ended with code {done.returncode}: {why}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
