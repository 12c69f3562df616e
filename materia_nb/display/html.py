"""Escaped HTML fragments in the colours of the notebook's theme, with fallbacks for other readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from materia_nb.display.escape import clip, esc
from materia_nb.jsonvalue import JSON

_BORDER: Final = "1px solid var(--jp-border-color2, #8884)"
_CELL: Final = (
    f"text-align:left;vertical-align:top;padding:2px 8px;border-bottom:{_BORDER};white-space:pre-wrap"
)
_MUTED: Final = "opacity:.7"
TEXT_CHARS: Final = 2_000
"""How much of one string is shown."""
CHILDREN: Final = 200
"""How many members of one object or array are shown."""
DEPTH: Final = 40
"""How deep a value is shown."""


def html_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table; every cell is escaped."""
    head = "".join(f'<th style="{_CELL};{_MUTED}">{esc(header)}</th>' for header in headers)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_CELL}">{esc(clip(str(cell), TEXT_CHARS))}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    return f'<table style="border-collapse:collapse;margin:4px 0"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def html_json(value: JSON, open_depth: int = 1) -> str:
    """Return a JSON value as a tree that opens and closes; ``open_depth`` levels are open at first."""
    return f'<div style="font-family:var(--jp-code-font-family, monospace)">{_tree(value, open_depth, DEPTH)}</div>'


def _tree(value: JSON, open_depth: int, left: int) -> str:
    if isinstance(value, dict):
        members = [(esc(key), child) for key, child in list(value.items())[:CHILDREN]]
        size, noun = len(value), "field"
    elif isinstance(value, list):
        members = [(str(index), child) for index, child in enumerate(value[:CHILDREN])]
        size, noun = len(value), "entry"
    else:
        return _scalar(value)
    if not size:
        return "{}" if isinstance(value, dict) else "[]"
    if left == 0:
        return "…"
    lines = "".join(
        f'<div style="margin-left:1.2em"><span style="{_MUTED}">{name}:</span> '
        f"{_tree(child, open_depth - 1, left - 1)}</div>"
        for name, child in members
    )
    more = f'<div style="margin-left:1.2em">… {size - CHILDREN:,} more</div>' if size > CHILDREN else ""
    plural = noun if size == 1 else {"field": "fields", "entry": "entries"}[noun]
    state = " open" if open_depth > 0 else ""
    return f"<details{state}><summary>{size:,} {plural}</summary>{lines}{more}</details>"


def _scalar(value: JSON) -> str:
    if isinstance(value, str):
        return f'<span style="white-space:pre-wrap">"{esc(clip(value, TEXT_CHARS))}"</span>'
    shown = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return esc(shown)


def html_panel(title: str, body: str) -> str:
    """Put a fragment, which must be escaped already, under an escaped title."""
    style = (
        f"border:{_BORDER};border-radius:4px;padding:6px 10px;margin:2px 0;max-width:70em;overflow:auto;"
        "color:var(--jp-ui-font-color1, inherit);background:var(--jp-layout-color1, transparent)"
    )
    return f'<div class="materia-nb" style="{style}"><div><b>{esc(title)}</b></div>{body}</div>'
