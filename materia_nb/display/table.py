"""Text, tables and JSON as values that show themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from materia_nb.display.bundle import Shown, bundle
from materia_nb.display.escape import plain
from materia_nb.display.html import (
    Html,
    html_json,
    html_lines,
    html_panel,
    html_table,
    html_text,
)
from materia_nb.display.text import table
from materia_nb.jsonvalue import JSON, pretty

SHOWN_CHARS: Final = 4_000
"""How much of a text a view shows; the whole is in the artifact."""


class Text(Shown):
    """Plain text, shown as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return plain(self.text)

    def __str__(self) -> str:
        return self.text

    def _show(self) -> dict[str, Any]:
        return bundle(repr(self))


class Table(Shown):
    """Rows under headers; ``rows`` are the values to work with."""

    def __init__(self, headers: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "(none)") -> None:
        self.headers, self.rows, self.empty = tuple(headers), [tuple(row) for row in rows], empty

    def __repr__(self) -> str:
        return table(self.rows, self.headers) if self.rows else self.empty

    def __len__(self) -> int:
        return len(self.rows)

    def _show(self) -> dict[str, Any]:
        html = html_table(self.headers, self.rows) if self.rows else None
        return bundle(repr(self), html=html)


class JsonView(Shown):
    """A JSON value under its name, as a tree that opens and closes."""

    def __init__(self, name: str, value: JSON) -> None:
        self.name, self.value = name, value

    def __repr__(self) -> str:
        text = pretty(self.value)
        return f"{plain(self.name)} = {plain(bounded(text))}"

    def _show(self) -> dict[str, Any]:
        return bundle(repr(self), html=html_panel(self.name, html_json(self.value, open_depth=2)))


def heading_html(text: str) -> Html:
    """A heading inside a panel."""
    return Html(f"<div><b>{html_text(text)}</b></div>")


def lines_html(lines: Sequence[str]) -> list[Html]:
    """Each line as a block of its own."""
    return [html_lines([line]) for line in lines]


def bounded(text: str) -> str:
    """Cut a text that is too long to be shown, and say how long it is."""
    if len(text) <= SHOWN_CHARS:
        return text
    return f"{text[:SHOWN_CHARS]}… ({len(text)} characters in all; the artifact holds the whole)"
