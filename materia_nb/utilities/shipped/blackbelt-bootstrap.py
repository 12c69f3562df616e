"""Blackbelt-Bootstrap: makes the project ready for checkpoints with jj, and names the bookmark of this cast.

stdin   {"cwd": ..., "castId": ..., "runDir": ..., "params": {"bookmarkName": optional}}
stdout  {"state": {"blackbeltBootstrap": {"ok", "root", "available", "initialized", "newWorkingCommit",
                                          "emptyHead", "bookmarkName"}}}

Where there is no jj repository, jj git init --no-colocate makes one in the project. When the working
commit has content (emptyHead is false), jj new opens a fresh one, so that the work of the cast is kept
apart from what was there; else nothing is changed. Blackbelt-Maintain moves the bookmark.

Where there is a Git repository and none of jj, nothing is run: jj makes no repository of its own beside Git's,
so a person chooses how the two are to live together (R57). "error" names the two commands.

Without jj, or when a command of it fails, the utility fails: "ok" is false, "error" says why, and the
other fields say how far it came.
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

KEY = "blackbeltBootstrap"
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
COMPONENT_CHARACTERS = 60


class Failed(Exception):
    """A command of jj failed, and how."""


def main() -> int:
    """Read the input, prepare the repository, tell; the exit code."""
    given = json.load(sys.stdin.buffer)
    found: dict[str, Any] = {
        "ok": False,
        "root": None,
        "available": {"jj": shutil.which("jj") is not None},
        "initialized": False,
        "newWorkingCommit": False,
        "emptyHead": None,
    }
    try:
        prepare(given["cwd"], found)
        found |= {"ok": True, "bookmarkName": bookmark_name(given)}
    except Failed as error:
        found["error"] = str(error)
        print(f"Blackbelt-Bootstrap: {error}", file=sys.stderr)
    print(json.dumps({"state": {KEY: found}}))
    return 0 if found["ok"] else 1


def prepare(project: str, found: dict[str, Any]) -> None:
    """Bring the repository to an empty working commit; what is found and done is noted at once."""
    if not found["available"]["jj"]:
        raise Failed("jj is not on PATH; install Jujutsu, or use a loadout that does without it")
    here = Path(project)
    if (here / ".git").exists() and not (here / ".jj").exists():
        raise Failed(
            "there is a Git repository here and none of jj, and jj makes none of its own beside it. Choose, run it once, and "
            "retry: jj git init --colocate (jj and Git share this directory), or "
            f"jj git clone . ../{shlex.quote(here.name + '-jj')} (a directory of its own for jj; cast there)"
        )
    try:
        root = jj(project, "root")
    except Failed:  # it is not a repository yet
        init(project)
        found["initialized"] = True
        root = jj(project, "root")
    found["root"] = root.rstrip("\n")
    found["emptyHead"] = not jj(project, "diff", "--summary").strip()
    if not found["emptyHead"]:
        jj(project, "new")
        found["newWorkingCommit"] = True


def init(project: str) -> None:
    """Make a repository that is not colocated; a jj that does not know the option has no other kind by default."""
    try:
        jj(project, "git", "init", "--no-colocate")
    except Failed as error:
        if "unexpected argument" not in str(error):
            raise
        jj(project, "git", "init")


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
    except OSError as error:
        raise Failed(f"jj cannot be started: {error.strerror or error}") from error
    if done.returncode:
        why = done.stderr.strip()[:600] or "it said nothing"
        raise Failed(f"jj {' '.join(arguments)} ended with code {done.returncode}: {why}")
    return done.stdout


def bookmark_name(given: dict[str, Any]) -> str:
    """Return the name that was asked for, made safe, else one that follows from the id of the cast."""
    asked = (given.get("params") or {}).get("bookmarkName")
    if isinstance(asked, str) and (safe := sanitized(asked)):
        return PREFIX + safe
    if asked:
        print("Blackbelt-Bootstrap: params.bookmarkName is not a name; a generated one is used", file=sys.stderr)
    seed = next((str(given[key]) for key in ("castId", "runDir", "cwd") if given.get(key)), "")
    digest = hashlib.sha256(seed.encode(errors="replace")).digest()
    noun, verb = NOUNS[digest[0] % len(NOUNS)], VERBS[digest[1] % len(VERBS)]
    return f"{PREFIX}{noun}-{verb}-{digest[2:7].hex()}"


def sanitized(asked: str) -> str:
    """Make a name that Git takes as a ref and jj without quotes: words with - and _, parted by slashes."""
    parts = (re.sub(r"[\W-]+", "-", part)[:COMPONENT_CHARACTERS].strip("-") for part in asked.split("/"))
    return "/".join(part for part in parts if part).removeprefix(PREFIX)


if __name__ == "__main__":
    sys.exit(main())
