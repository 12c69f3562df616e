"""What is shown, whole, beside what was stored of it: ``MATERIA_SHOWN=write`` stores it anew, to be read before it is kept.

A view says dozens of small things. Each of them by itself is seldom worth a test, and all of them together are worth one:
they stand in a file of ``tests/data/shown``, one line for each block, so that a change of any of them shows in a diff.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from materia_nb.display.blocks import Block, json_of

FOLDER = Path(__file__).parents[1] / "data" / "shown"
MOST, LINE = 100, 400
"""Characters of a text inside of a block, and of a line; of a longer one its beginning and its length are kept."""

CHANGING = (
    (re.compile(re.escape(sys.executable)), "python"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z"), "CAST"),
    (re.compile(r"(/[\w.-]+)+/(?=casts\b|project\b|recorded-casts\b)"), "/…/"),
    (re.compile(r"\b0\.[0-3] s\b"), "0 s"),
    (re.compile(r"\bP-[0-9a-f]{32}\b"), "P-ID"),
    (re.compile(r'("(?:link|journalLink)": ?)"[0-9a-f]{16}"'), r"\1LINK"),
    (re.compile(r'("(?:journalBytes|seconds|project|ms|cwd)": ?)[^,}]+'), r"\1…"),
    (re.compile(r'("place": ?)\{[^}]*\}'), r"\1{…}"),
)
"""What differs from run to run, and what stands in its place."""


def matches(name: str, parts: Iterable[tuple[str, Any]]) -> None:
    """Check that what is shown is what the file of that name has, or write it where that is asked for."""
    said = "\n".join(line for title, value in parts for line in (f"## {title}", *_lines(value))) + "\n"
    path = FOLDER / f"{name}.txt"
    if os.environ.get("MATERIA_SHOWN") == "write":
        path.write_text(said, "utf-8")
    assert said.splitlines() == path.read_text("utf-8").splitlines()


def _lines(value: Any) -> list[str]:
    """One line for each block of a view, each entry of an object, each element of a list; else the value itself."""
    if isinstance(value, Block):
        drawn = value.as_json()
        inside = drawn.get("blocks", drawn.get("inside")) if drawn.get("is") == "fold" else None
        return [_one(one) for one in (inside if isinstance(inside, list) else [drawn])]
    plain = json_of(value)
    if isinstance(plain, dict):
        return [f"{key}: {_one(one)}" for key, one in plain.items()]
    if isinstance(plain, list | tuple):
        return [_one(one) for one in plain]
    return _stable(str(plain)).splitlines()


def _one(value: Any) -> str:
    if isinstance(value, str):
        return _shortened(value, LINE)
    return json.dumps(_cut(value), ensure_ascii=False, default=str)


def _stable(text: str) -> str:
    for pattern, instead in CHANGING:
        text = pattern.sub(instead, text)
    return text


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cut(one) for key, one in value.items() if key not in ("svg", "dark")}
    if isinstance(value, list | tuple):
        return [_cut(one) for one in value]
    return _shortened(value, MOST) if isinstance(value, str) else value


def _shortened(text: str, most: int) -> str:
    text = _stable(text)
    return text if len(text) <= most else f"{text[:most]}… ({len(text)})"
