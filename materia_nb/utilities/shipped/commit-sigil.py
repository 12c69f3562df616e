"""Commit-Sigil: checks that the title of every work item can be the subject of a Conventional Commit.

stdin   {"state": {"workItems": [...]}, "params": {"types": [...]}}; without the list in the state, the one
        at the top of the input
stdout  {"workItems": as they came, "satisfied": whether all titles are right, "context": what to correct}

A title is "type: description" or "type(scope): description", with "!" before the colon for a breaking
change. The types are those below, or those of params.types. No title is changed here: whoever planned
the items is told which of them to correct, counted from 0.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

TYPES = (
    "feat",
    "fix",
    "chore",
    "docs",
    "build",
    "ci",
    "deps",
    "perf",
    "refactor",
    "revert",
    "style",
    "test",
)
TITLE = re.compile(r"([A-Za-z][\w-]*)(\([^()\s][^()\n]*\))?!?: +\S.*")


def main() -> int:
    """Read the input, check the titles, tell; the exit code."""
    given = json.load(sys.stdin.buffer)
    state, params = given.get("state") or {}, given.get("params") or {}
    items = state.get("workItems") if "workItems" in state else given.get("workItems")
    types = params.get("types", TYPES)
    if items is None:
        items = []
    if not isinstance(items, list):
        print("Commit-Sigil: workItems in the state is not a list", file=sys.stderr)
        return 1
    if not types or isinstance(types, str) or not all(isinstance(one, str) and one for one in types):
        print("Commit-Sigil: params.types is a list of words, such as feat and fix", file=sys.stderr)
        return 1
    faults = [
        f"Work item {place}: {fault}"
        for place, item in enumerate(items)
        if (fault := fault_of(item, types)) is not None
    ]
    context = "\n".join(faults) or f"Titles that are Conventional Commits: {len(items)} of {len(items)}."
    print(json.dumps({"workItems": items, "satisfied": not faults, "context": context}))
    return 0


def fault_of(item: Any, types: Sequence[str]) -> str | None:
    """Say what is wrong with the title of an item and how to correct it; None when nothing is."""
    title = item.get("title") if isinstance(item, dict) else None
    if not isinstance(title, str) or not title.strip():
        return "has no title; give it one, such as feat: add a release page."
    some = ", ".join(f"{one}:" for one in types[:4]) + (", ..." if len(types) > 4 else "")
    match = TITLE.fullmatch(title)
    if match is None:
        return f"the title {title!r} is not of the form type: description; begin it with a type ({some})."
    if match[1] in types:
        return None
    near = difflib.get_close_matches(match[1].lower(), types, n=1)
    advice = f"did you mean {near[0]}: ?" if near else f"choose one ({some})."
    return f"the title {title!r} begins with {match[1]}, which is not a type here; {advice}"


if __name__ == "__main__":
    sys.exit(main())
