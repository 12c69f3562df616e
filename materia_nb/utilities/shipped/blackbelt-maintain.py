"""Blackbelt-Maintain: commits a finished work item with jj, and moves the cast's bookmark to the commit.

stdin   {"cwd": ..., "item": {"title": ...}, "state": {"blackbeltBootstrap": {"bookmarkName": ...}}}
stdout  {"satisfied": ..., "context": the result or the reason for the failure, followed by [bookmark: ...]}

If the working commit is empty, the utility does nothing. Otherwise, it runs jj describe with the title, moves the
bookmark to the commit, and runs jj new. If jj new fails, the bookmark has already been moved. After a failure, the
utility can be run again for the same item. It never runs Git.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


class Failed(Exception):
    """Raised if the work item cannot be committed; the message is the reason."""


def main() -> int:
    """Commit the work item and print the result. Always return 0, because a failure is reported in ``satisfied``."""
    document = json.load(sys.stdin.buffer)
    bookmark = text_at(document, "state", "blackbeltBootstrap", "bookmarkName")
    try:
        satisfied, context = True, maintain(document, bookmark)
    except Failed as error:
        satisfied, context = False, str(error)
    if bookmark is not None:
        context += f" [bookmark: {bookmark}]"
    print(json.dumps({"satisfied": satisfied, "context": context}))
    return 0


def maintain(document: dict[str, Any], bookmark: str | None) -> str:
    """Commit the changes, if there are any, and return a description of the result; raises Failed on error."""
    if bookmark is None:
        raise Failed("This cast has no bookmark: run Blackbelt-Bootstrap before the first work item.")
    title = text_at(document, "item", "title")
    if title is None:
        raise Failed("The work item has no title. The title becomes the description of the commit.")
    project = document["cwd"]
    try:
        jj(project, "root")
    except Failed as error:
        raise Failed(f"The project has no jj repository. Run Blackbelt-Bootstrap first ({error}).") from None
    if not jj(project, "diff", "--summary").strip():
        return f"Nothing has changed, so no commit was made for: {title}"
    # A title that begins with a dash must not be parsed as an option.
    jj(project, "describe", *([f"--message={title}"] if title.startswith("-") else ["-m", title]))
    jj(project, "bookmark", "set", bookmark, "-r", "@")
    jj(project, "new")
    return f"Committed: {title}"


def text_at(value: Any, *keys: str) -> str | None:
    """Return the string at a path of nested keys, stripped of white space; return None if it is missing or blank."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return (value.strip().replace("\0", "") or None) if isinstance(value, str) else None


def jj(project: str, *arguments: str) -> str:
    """Run jj in the project directory and return its stdout; raises Failed if jj fails."""
    command = ["jj", *arguments]
    try:
        completed = subprocess.run(
            command, cwd=project, capture_output=True, encoding="utf-8", errors="replace", check=True
        )
    except subprocess.CalledProcessError as error:
        message = error.stderr.strip()[:600] or "it printed no error message"
        raise Failed(f"{' '.join(command[:3])} exited with code {error.returncode}: {message}") from error
    except (OSError, ValueError) as error:
        raise Failed(f"jj cannot be started: {getattr(error, 'strerror', None) or error}") from error
    return completed.stdout


if __name__ == "__main__":
    sys.exit(main())
