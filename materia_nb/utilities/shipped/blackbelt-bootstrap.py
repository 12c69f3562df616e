"""Blackbelt-Bootstrap: prepares the project for checkpoints with jj, and chooses the name of the cast's bookmark.

stdin   {"cwd": ..., "castId": ..., "runDir": ..., "params": {"bookmarkName": optional}}
stdout  {"state": {"blackbeltBootstrap": {"ok", "root", "available", "initialized", "newWorkingCommit",
                                          "emptyHead", "bookmarkName"}}}

If the project has no jj repository, the utility creates one with jj git init --no-colocate. If the working commit is
not empty (emptyHead is false), the utility runs jj new, which separates the work of the cast from earlier changes.
Otherwise, nothing is changed. Blackbelt-Maintain moves the bookmark later.

In a Git repository without jj, the utility runs no command, because jj cannot create a separate repository there. A
person must choose one of the two commands in "error" (R57).

If jj is missing or fails, the utility fails: "ok" is false, "error" is the reason, and the other fields show which
changes were made.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

PREFIX = "blackbelt/"
NOUNS = (
    "anchor", "beacon", "cedar", "comet", "crystal", "delta", "ember", "falcon",
    "garden", "harbor", "island", "jasper", "kettle", "lantern", "maple", "meadow",
    "nebula", "orchard", "pebble", "quartz", "raven", "river", "saffron", "summit",
    "thistle", "timber", "valley", "violet", "walnut", "willow", "window", "zephyr",
)  # fmt: skip
VERBS = (
    "arrives", "begins", "blooms", "builds", "calls", "casts", "climbs", "drifts",
    "echoes", "flies", "gathers", "glows", "grows", "hums", "leaps", "listens",
    "mends", "moves", "opens", "paints", "reads", "rests", "rises", "sails",
    "shines", "sings", "spins", "travels", "turns", "wakes", "wanders", "weaves",
)  # fmt: skip
MAX_PART_CHARACTERS = 60


class Failed(Exception):
    """Raised if the repository cannot be prepared; the message is the reason."""


def main() -> int:
    """Prepare the repository, print the state and return the exit code."""
    document = json.load(sys.stdin.buffer)
    state: dict[str, Any] = {
        "ok": False,
        "root": None,
        "available": {"jj": shutil.which("jj") is not None},
        "initialized": False,
        "newWorkingCommit": False,
        "emptyHead": None,
    }
    try:
        prepare(document["cwd"], state)
        state |= {"ok": True, "bookmarkName": bookmark_name(document)}
    except Failed as error:
        state["error"] = str(error)
        print(f"Blackbelt-Bootstrap: {error}", file=sys.stderr)
    print(json.dumps({"state": {"blackbeltBootstrap": state}}))
    return 0 if state["ok"] else 1


def prepare(project: str, state: dict[str, Any]) -> None:
    """Create the repository and an empty working commit if necessary, and record each change in ``state`` at once."""
    if not state["available"]["jj"]:
        raise Failed("jj is not on PATH; install Jujutsu, or use a loadout that does not need it")
    folder = Path(project)
    if (folder / ".git").exists() and not (folder / ".jj").exists():
        raise Failed(
            "this is a Git repository without jj. Run one of these commands, then retry: `jj git init --colocate` (jj and Git "
            f"share this directory), or `jj git clone . ../{shlex.quote(folder.name + '-jj')}` (a separate directory for jj; cast there)"
        )
    try:
        root = jj(project, "root")
    except Failed:  # there is no repository yet
        init(project)
        state["initialized"] = True
        root = jj(project, "root")
    state["root"] = root.rstrip("\n")
    state["emptyHead"] = not jj(project, "diff", "--summary").strip()
    if not state["emptyHead"]:
        jj(project, "new")
        state["newWorkingCommit"] = True


def init(project: str) -> None:
    """Create a jj repository that is not colocated with a Git repository.

    Older versions of jj do this by default and do not have the option ``--no-colocate``.
    """
    try:
        jj(project, "git", "init", "--no-colocate")
    except Failed as error:
        if "unexpected argument" not in str(error):
            raise
        jj(project, "git", "init")


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


def bookmark_name(document: dict[str, Any]) -> str:
    """Return the name in ``params.bookmarkName`` after sanitizing it, or a name derived from the id of the cast."""
    name = (document.get("params") or {}).get("bookmarkName")
    if isinstance(name, str) and (safe_name := sanitized(name)):
        return PREFIX + safe_name
    if name:
        print(
            "Blackbelt-Bootstrap: `params.bookmarkName` is not a valid name; a generated name is used", file=sys.stderr
        )
    seed = next((str(document[key]) for key in ("castId", "runDir", "cwd") if document.get(key)), "")
    digest = hashlib.sha256(seed.encode(errors="replace")).digest()
    noun, verb = NOUNS[digest[0] % len(NOUNS)], VERBS[digest[1] % len(VERBS)]
    return f"{PREFIX}{noun}-{verb}-{digest[2:7].hex()}"


def sanitized(name: str) -> str:
    """Convert a name to a valid Git ref that jj accepts without quotes; it consists of words, hyphens and slashes."""
    parts = (re.sub(r"[\W-]+", "-", part)[:MAX_PART_CHARACTERS].strip("-") for part in name.split("/"))
    return "/".join(part for part in parts if part).removeprefix(PREFIX)


if __name__ == "__main__":
    sys.exit(main())
