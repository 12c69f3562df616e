"""Commit-Sigil: checks that the title of every work item can be the subject of a Conventional Commit.

stdin   {"state": {"workItems": [...]}, "params": {"types": [...]}}; workItems may also be a top-level field
stdout  {"workItems": unchanged, "satisfied": true if all titles are valid, "context": the corrections}

A title has the form "type: description" or "type(scope): description", with "!" before the colon for a breaking change.
The allowed types are the value of params.types; the defaults are listed below. Titles are not changed: the context
tells the planner which titles to correct. Items are numbered from 0.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

TYPES = ("feat", "fix", "chore", "docs", "build", "ci", "deps", "perf", "refactor", "revert", "style", "test")
TITLE = re.compile(r"([A-Za-z][\w-]*)(\([^()\s][^()\n]*\))?!?: +\S.*")


def main() -> int:
    """Check the titles, print the result and return the exit code."""
    document = json.load(sys.stdin.buffer)
    state, params = document.get("state") or {}, document.get("params") or {}
    items = (state if "workItems" in state else document).get("workItems")
    types = params.get("types", TYPES)
    if items is None:
        items = []
    if not isinstance(items, list):
        print("Commit-Sigil: `workItems` must be a list", file=sys.stderr)
        return 1
    if not types or isinstance(types, str) or not all(isinstance(word, str) and word for word in types):
        print("Commit-Sigil: `params.types` must be a list of words, such as feat and fix", file=sys.stderr)
        return 1
    corrections = [(index, title_fault(item, types)) for index, item in enumerate(items)]
    lines = [f"Work item {index}: {text}" for index, text in corrections if text]
    context = "\n".join(lines) or f"Titles that are Conventional Commits: {len(items)} of {len(items)}."
    print(json.dumps({"workItems": items, "satisfied": not lines, "context": context}))
    return 0


def title_fault(item: Any, types: Sequence[str]) -> str | None:
    """Describe why the title of a work item is invalid and how to correct it; return None if the title is valid."""
    title = item.get("title") if isinstance(item, dict) else None
    if not isinstance(title, str) or not title.strip():
        return "has no title; add one, such as feat: add a release page."
    examples = ", ".join(f"{word}:" for word in types[:4]) + (", ..." if len(types) > 4 else "")
    match = TITLE.fullmatch(title)
    if match is None:
        return f"the title {title!r} does not have the form `type: description`; begin it with a type ({examples})."
    if match[1] in types:
        return None
    near = difflib.get_close_matches(match[1].lower(), types, n=1)
    advice = f"did you mean {near[0]}?" if near else f"choose one ({examples})."
    return f"the title {title!r} begins with {match[1]}, which is not an allowed type; {advice}"


if __name__ == "__main__":
    sys.exit(main())
