"""The blocks of a panel by short names, and what several of its parts say alike."""

from __future__ import annotations

from collections.abc import Iterable

from materia_nb.display.blocks import Block, Code, Diff, Facts, Fold, Heading, Line, Table, bounded, lines
from materia_nb.handoff import Issue
from materia_nb.outgoing import plain

__all__ = ["Block", "bounded", "diff", "facts", "fold", "head", "issue_rows", "line", "lines", "pre", "table"]

head, line, pre, table, facts, fold, diff = Heading, Line, Code, Table, Facts, Fold, Diff


def issue_rows(issues: Iterable[Issue]) -> list[list[str]]:
    """What is wrong with an output: where, what, what to do."""
    return [[plain(one.path), plain(one.message), plain(one.fix)] for one in list(issues)[:20]]
