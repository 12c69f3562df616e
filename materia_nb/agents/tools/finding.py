"""The tools that look through many files: ``find`` and ``grep``, each in a process of its own."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from materia_nb.agents.tools import search
from materia_nb.agents.tools.place import reach
from materia_nb.agents.tools.tool import MOST_TEXT, Refused, ToolResult, named, readable
from materia_nb.agents.tools.work import Work
from materia_nb.jsonvalue import JSON
from materia_nb.secrets import scrubbed_part
from materia_nb.utilities.process import ProcessResult, run_process

SECONDS: Final = 20
"""How long a search may take."""

_PROGRAM: Final = [sys.executable or "python3", "-I", "-S", str(Path(search.__file__).resolve())]
"""Isolated: neither the project nor the environment has a say in what Python imports."""

_ROOM: Final = MOST_TEXT - 500  # leaves room for the notes
_LINE: Final = re.compile(r"^(?P<at>.*?:\d+: …?)(?P<text>.*?)(?P<more>…?)$", re.MULTILINE)


def find(work: Work, args: Mapping[str, JSON]) -> ToolResult:
    """List what has a name that fits a pattern."""
    if args["pattern"].startswith("/") or ".." in args["pattern"].split("/"):
        raise Refused(
            "The pattern is compared with paths below the directory: no / at its start, no .. in it."
        )
    return _search(work, args, pattern=None, glob=args["pattern"])


def grep(work: Work, args: Mapping[str, JSON]) -> ToolResult:
    """List the lines that match a regular expression."""
    return _search(work, args, pattern=args["pattern"], glob=args.get("glob") or None)


def _search(work: Work, args: Mapping[str, JSON], *, pattern: str | None, glob: str | None) -> ToolResult:
    with reach(work.root, args.get("path") or ".") as place:
        if place.is_folder:
            parts, only, status = place.parts, None, place.status
        else:
            if pattern is None:
                raise Refused(f"{place.shown} is no directory.")
            place.open_file().close()  # refuses what is no plain file
            parts, only, status = place.parts[:-1], place.name, os.fstat(place.folder)
    if status is None:
        raise AssertionError("what is looked at is there")
    asked = {
        "pattern": pattern,
        "ignore_case": args.get("ignore_case", False),
        "glob": glob,
        "only": only,
        "prefix": "/".join(parts),
        "room": _ROOM,
        # The process enters its directory by path; these say whether it is still the one that was reached.
        "folder": [status.st_dev, status.st_ino],
    }
    ended = run_process(
        _PROGRAM,
        stdin=json.dumps(asked).encode(),
        cwd=work.root.path.joinpath(*parts),
        timeout_s=SECONDS,
        stop=work.stop,
    )
    found = readable(ended.stdout.decode(errors="surrogateescape")).rstrip("\n")
    if pattern is not None:
        found = _LINE.sub(_whole_keys, found)
    problem = _problem(ended)
    return ToolResult("\n".join(filter(None, [found, problem])), ok=not problem)


def _whole_keys(line: re.Match[str]) -> str:
    """Cut out keys of which a long line shows only a part."""
    return line["at"] + scrubbed_part(line["text"], start=True, end=True) + line["more"]


def _problem(ended: ProcessResult) -> str:
    """Say why a search did not come to its end; nothing if it did."""
    if ended.ok:
        return ""
    if ended.stopped:
        return "The cast was stopped."
    if ended.timed_out:
        return f"(ended after {SECONDS} s: take a simpler pattern, or a narrower path)"
    said = named(ended.stderr.decode(errors="replace"))
    known = {
        search.MOVED: "The directory was exchanged for another one in this moment; nothing was searched.",
        search.BAD_PATTERN: f"The pattern is no regular expression: {said} (\\ before a sign takes it as it is).",
    }
    return known.get(ended.code or 0, f"The search failed ({ended.start_error or ended.ending}): {said}")
