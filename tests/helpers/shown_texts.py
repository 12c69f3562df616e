"""Compare complete outputs with stored outputs (snapshot tests).

``MATERIA_SHOWN=write`` stores the outputs again; review the diff before you commit it. A view has dozens of details,
few of which deserve a separate test. One file in ``tests/data/shown`` contains all of them, with one line per block, so
that a diff shows each change.
"""

from __future__ import annotations

import json
import os
import re
import sys
import zlib
from collections.abc import Iterable
from difflib import unified_diff
from pathlib import Path
from typing import Any

from materia_nb.display.blocks import Block, blocks_as_json

FOLDER = Path(__file__).parents[1] / "data" / "shown"
LINE = 160
"""Maximum length of a stored line, in characters; of a longer line, only its beginning, its length and a checksum are
stored.
"""

CHANGING = (
    (re.compile(re.escape(sys.executable)), "python"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z"), "CAST"),
    (re.compile(r"(/[\w.-]+)+/(?=casts\b|project\b|recorded-casts\b)"), "/…/"),
    (re.compile(r"\b0\.[0-3] s\b"), "0 s"),
    (re.compile(r"\bdraft of (\d{4}-\d\d-\d\d )?\d\d:\d\d"), "draft of WHEN"),
    (re.compile(r"\b(today|yesterday) \d+:\d\d"), "WHEN"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "ID"),
    (re.compile(r'("(?:link|journalLink)": ?)"[0-9a-f]{16}"'), r"\1LINK"),
    (re.compile(r'("(?:journalBytes|seconds|project|ms|cwd)": ?)[^,}]+'), r"\1…"),
    (re.compile(r'("place": ?)\{[^}]*\}'), r"\1{…}"),
    (re.compile(r"(\b[a-z]+At\W{1,4})\d{4}-\d\d-\d\dT[\d:.]+Z"), r"\1WHEN"),
)
"""Patterns of texts that differ between runs, and their replacements."""


def matches(name: str, parts: Iterable[tuple[str, Any]]) -> None:
    """Assert that the output equals the stored file ``name``, or write the file if ``MATERIA_SHOWN`` requests it."""
    said = "\n".join(line for title, value in parts for line in (f"## {_stable(title)}", *_lines(value))) + "\n"
    path = FOLDER / f"{name}.txt"
    if os.environ.get("MATERIA_SHOWN") == "write":
        path.write_text(said, "utf-8")
    changed = unified_diff(path.read_text("utf-8").splitlines(), said.splitlines(), path.name, "now", "", "", 1, "")
    if lines := list(changed):
        raise AssertionError("\n".join(lines[:40]))


def _lines(value: Any) -> list[str]:
    """Return one line for each block, object entry or list element; any other value is returned unchanged."""
    if isinstance(value, Block):
        block_json = value.as_json()
        inside = block_json.get("blocks", block_json.get("inside")) if block_json.get("is") == "fold" else None
        return [_one(one) for one in (inside if isinstance(inside, list) else [block_json])]
    plain = blocks_as_json(value)
    if isinstance(plain, dict):
        return [f"{key}: {_one(one)}" for key, one in plain.items()]
    if isinstance(plain, list | tuple):
        return [_one(one) for one in plain]
    return [_shortened(line) for line in _stable(str(plain)).splitlines()]


def _one(value: Any) -> str:
    if not isinstance(value, str):
        value = json.dumps(_steady(value), ensure_ascii=False, default=str)
    return _shortened(_stable(value))


def _stable(text: str) -> str:
    for pattern, instead in CHANGING:
        text = pattern.sub(instead, text)
    return text


def _steady(value: Any) -> Any:
    """Replace a picture with its text, because other tests check the drawing."""
    if isinstance(value, dict):
        return {key: _steady(one) for key, one in value.items() if key not in ("svg", "dark")}
    if isinstance(value, list | tuple):
        return [_steady(one) for one in value]
    return _stable(value) if isinstance(value, str) else value


def _shortened(text: str) -> str:
    if len(text) <= LINE:
        return text
    return f"{text[:LINE]}… ({len(text)}, {zlib.crc32(text.encode('utf-8', 'replace')):08x})"
