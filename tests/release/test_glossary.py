"""Test that the glossary defines each term of the lessons once, briefly and with links."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = {
    head.lower(): body.strip() for head, body in re.findall(r"^## (.+)\n((?:(?!## ).*\n?)+)", PAGE, re.MULTILINE)
}
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]-*.ipynb"))
TERM_BY_SPELLING = {"agent-contract": "agent contract", "loop region": "loop"}
"""Glossary terms for words that are spelled differently."""


def first_page(notebook: Path) -> str:
    return "".join(json.loads(notebook.read_text(encoding="utf-8"))["cells"][0]["source"])


def italic_terms(text: str) -> set[str]:
    """Return the terms in italics in singular form; capitalized names of materia are omitted."""
    found = re.findall(r"\*([a-z][a-z -]*)\*", re.sub(r"\*\*.*?\*\*", "", text))
    return {TERM_BY_SPELLING.get(word, word if word in ENTRIES else word.removesuffix("s")) for word in found}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_terms_on_the_first_page_of_a_lesson_are_in_the_glossary(notebook):
    assert italic_terms(first_page(notebook)) - set(ENTRIES) == set()


def test_first_pages_of_lessons_use_glossary_terms():
    words = set().union(*(italic_terms(first_page(path)) for path in NOTEBOOKS))
    assert {
        "socket",
        "edge",
        "generator",
        "work item",
        "loop",
        "cursor",
        "exit",
        "utility",
        "handoff",
    } <= words


def test_glossary_entries_are_short_and_linked():
    for word, text in ENTRIES.items():
        assert len(re.sub(r"\]\([^)]*\)", "]", text).split()) <= 45, word
        assert re.search(r"See\s\[[^\]]+\]\([a-z-]+\.md", text), word
        assert f"(#{word.replace(' ', '-')})" not in text, word


def test_glossary_entries_are_sorted_and_unique():
    heads = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert heads == sorted(heads, key=str.lower)
    assert len(heads) == len(ENTRIES) > 30
