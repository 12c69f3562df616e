"""Count vague names and awkward phrases, and compare the counts with limits that may only be lowered.

``python scripts/check_language.py`` prints the counts and fails if one of them exceeds its limit. With ``--list
docstrings``, it also prints every counted docstring.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "materia_nb"

LIMITS = {
    "vague names": 0.2,
    "vague names in JavaScript": 0.4,
    "docstrings": 1.8,
    "messages": 1.9,
    "docs": 2.0,
}
"""The maximum share of each kind, in percent. Lower a limit when the share has decreased."""

VAGUE = frozenset(
    [
        "one",
        "ones",
        "found",
        "place",
        "places",
        "given",
        "words",
        "what",
        "here",
        "there",
        "made",
        "said",
        "told",
        "wanted",
        "most",
        "way",
        "ways",
        "both",
        "whole",
        "asked",
        "taken",
        "gone",
        "came",
        "stand",
        "stands",
        "tells",
        "says",
        "shown",
        "seen",
        "kept",
        "put",
        "far",
        "much",
        "many",
        "least",
        "begun",
        "beside",
        "behind",
        "apart",
        "alone",
        "again",
        "thing",
        "things",
    ]
)
PHRASES = [
    re.compile(pattern)
    for pattern in (
        r"^(?:What|How|Whether|Which|Where|Why)\b",
        r"^(?:Say|Tell|Take|Give|Let|Keep|Lay|Hold|Put|Make|Name|Lead|Leave|Stand)\b",
        r"\b[Ww]hat (?:is|was|are|came|comes|has|had|it|they|a|an|the|no|of|to)\b",
        r"\bone (?:that|of|with|without|whose|which|by|in|for|is|was)\b|\bones\b|\bthose (?:that|of|which|who)\b",
        r"\b(?:say|says|said|tell|tells|told)\b[^.;]{0,25}\bof\b",
        r"\b(?:anew|beside|behind|once more|in the place of|go(?:es|ne)? over|stands?|goes on|go on|mends?)\b",
        r"\bsome (?=\d)",
        r"\b(?:is|are|was|were) (?:no|none)\b(?! longer)|\bthere is not\b",
        r"^(?:\S+\s+){30,}\S+$",
    )
]
JAVASCRIPT_BINDING = re.compile(
    r"\b(?:const|let|var)\s+(\{[^}]*\}|\[[^\]]*\]|\w+)|\(([\w\s,={}\[\]]*)\)\s*=>|function\s*\w*\(([^)]*)\)|(\w+)\s*=>"
)


class Sample(NamedTuple):
    """A name or text together with its location."""

    place: str
    text: str


def python_names(path: Path) -> Iterator[Sample]:
    """Yield every name that a module binds: assignments, loop variables, parameters."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield Sample(f"{path.relative_to(ROOT)}:{node.lineno}", node.id)
        elif isinstance(node, ast.arg):
            yield Sample(f"{path.relative_to(ROOT)}:{node.lineno}", node.arg)


def javascript_names(path: Path) -> Iterator[Sample]:
    """Yield the names that a module of the front end declares or takes as parameters."""
    for match in JAVASCRIPT_BINDING.finditer(path.read_text(encoding="utf-8")):
        for name in re.findall(r"[A-Za-z_]\w*", " ".join(group or "" for group in match.groups())):
            yield Sample(str(path.relative_to(ROOT)), name)


def docstrings(path: Path) -> Iterator[Sample]:
    """Yield the first paragraph of every docstring, including those of attributes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            paragraph = node.value.value.strip().split("\n\n")[0]
            yield Sample(f"{path.relative_to(ROOT)}:{node.lineno}", " ".join(paragraph.split()))


def messages(path: Path) -> Iterator[Sample]:
    """Yield the string literals of a module that have at least three words and are not docstrings."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr | ast.FormattedValue):
            continue
        for child in ast.iter_child_nodes(node):
            text = _literal(child)
            if len(re.findall(r"[A-Za-z]{2,}", text)) >= 3 and " " in text.strip():
                yield Sample(f"{path.relative_to(ROOT)}:{getattr(child, 'lineno', 1)}", " ".join(text.split()))


def table_messages(path: Path) -> Iterator[Sample]:
    """Yield the quoted texts of a TOML file that have at least three words."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
            if len(re.findall(r"[A-Za-z]{2,}", text)) >= 3:
                yield Sample(f"{path.relative_to(ROOT)}:{number}", text)


def sentences(path: Path) -> Iterator[Sample]:
    """Yield the sentences of a documentation page, without code blocks, tables and headings."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for paragraph in re.split(r"\n\s*\n", text):
        if re.match(r"\s*([#|<!]|\[)", paragraph):
            continue
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`*\[])", " ".join(paragraph.split())):
            if len(sentence.split()) > 3:
                yield Sample(str(path.relative_to(ROOT)), sentence)


def measure() -> dict[str, tuple[list[Sample], int]]:
    """Return the counted samples and the total number of samples for each limit."""
    modules = sorted(PACKAGE.rglob("*.py"))
    tables = sorted(PACKAGE.rglob("*.toml"))
    scripts = sorted((PACKAGE / "widgets" / "front").glob("*.js"))
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = [name for path in modules for name in python_names(path)]
    front_names = [name for path in scripts for name in javascript_names(path)]
    texts = {
        "docstrings": [text for path in modules for text in docstrings(path)],
        "messages": [
            *(text for path in modules for text in messages(path)),
            *(text for path in tables for text in table_messages(path)),
        ],
        "docs": [text for path in pages for text in sentences(path)],
    }
    measured = {
        "vague names": ([name for name in names if name.text.strip("_") in VAGUE], len(names)),
        "vague names in JavaScript": ([name for name in front_names if name.text in VAGUE], len(front_names)),
    }
    for kind, samples in texts.items():
        measured[kind] = ([sample for sample in samples if _is_translated(sample.text)], len(samples))
    return measured


def _literal(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
    return ""


def _is_translated(text: str) -> bool:
    return any(phrase.search(text) for phrase in PHRASES)


def main() -> int:
    """Print each share and its limit, and return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", choices=list(LIMITS), help="print the locations of all samples that one limit counts")
    chosen = parser.parse_args().list
    exceeded = False
    for name, (matches, total) in measure().items():
        share = 100 * len(matches) / max(total, 1)
        exceeded |= round(share, 1) > LIMITS[name]
        print(f"{name:28} {len(matches):6,} of {total:6,}  {share:5.1f} %  limit {LIMITS[name]} %")
        if name == chosen:
            print("\n".join(f"  {sample.place}: {sample.text[:160]}" for sample in matches))
    if exceeded:
        print(
            "Replace vague names and awkward phrases; CONTRIBUTING.md explains how.",
            file=sys.stderr,
        )
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
