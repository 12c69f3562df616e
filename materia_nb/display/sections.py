"""Titled tables that show themselves as text and as HTML alike, with pointers to files that become links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote

from materia_nb.display.escape import clip, esc, part, plain
from materia_nb.display.html import Html, html_heading, html_join, html_lines, html_table, html_text
from materia_nb.display.text import table

MOST_ROWS: Final = 100
_CELL_CHARS: Final = 400


class Pointer(NamedTuple):
    """A text that names a file, and the path of that file relative to the project; None where there is none."""

    text: str
    path: str | None = None


Cell: TypeAlias = str | Pointer
FindFile: TypeAlias = Callable[[str], str | None]
"""Turns what an output calls a file into its path relative to the project; None when it is no file there."""


@dataclass(frozen=True, slots=True)
class Section:
    """A titled table; ``picture`` stands above it where pictures are shown, ``lines`` stand for it in text.

    Cells may hold hostile text: they are escaped when they are shown.
    """

    title: str
    headers: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    lines: tuple[str, ...] = ()
    picture: Html | None = None


def sections_text(sections: Iterable[Section], indent: str = "  ") -> list[str]:
    """Write sections as lines of plain text."""
    lines: list[str] = []
    for section in sections:
        lines.append(f"{indent}{section.title}")
        lines += [f"{indent}  {plain(line)}" for line in section.lines]
        if section.rows:
            rows = [[_plain_cell(cell) for cell in row] for row in section.rows[:MOST_ROWS]]
            headers = section.headers or ("",) * len(rows[0])
            written = table(rows, headers, indent=f"{indent}  ").splitlines()
            lines += written if section.headers else written[2:]
        lines += _rest(section, f"{indent}  ")
    return lines


def sections_html(sections: Iterable[Section]) -> Html:
    """Write sections as HTML, every text escaped."""
    parts: list[Html] = []
    for section in sections:
        parts += [html_heading(section.title), html_lines(section.lines)]
        if section.picture is not None:
            parts.append(section.picture)
        if section.rows:
            headers = section.headers or ("",) * len(section.rows[0])
            rows = [[_html_cell(cell) for cell in row] for row in section.rows[:MOST_ROWS]]
            parts.append(html_table(headers, rows))
        parts.append(html_lines(_rest(section, "")))
    return html_join(parts)


def facts(pairs: Sequence[tuple[str, Cell]]) -> tuple[tuple[Cell, ...], ...]:
    """Make rows of names and values, leaving out what says nothing."""
    return tuple((name, value) for name, value in pairs if not isinstance(value, str) or value.strip())


def _rest(section: Section, indent: str) -> list[str]:
    left = len(section.rows) - MOST_ROWS
    return [f"{indent}… {left:,} more"] if left > 0 else []


def _plain_cell(cell: Cell) -> str:
    return part(cell.text if isinstance(cell, Pointer) else cell, _CELL_CHARS)


def _html_cell(cell: Cell) -> Html:
    if isinstance(cell, str):
        return html_text(cell)
    if cell.path is None:
        return html_text(cell.text)
    # "./" and the quoted colon keep the name of a file from being read as a scheme or a host.
    return Html(
        f'<a href="./{quote(cell.path, safe="/", errors="replace")}"><bdi>{esc(clip(cell.text, 400))}</bdi></a>'
    )
