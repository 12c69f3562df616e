"""Small things that the panels are put together from: buttons, notes, lists of issues."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import ipywidgets as ui

from materia_nb.display.html import Html, html_heading, html_lines, html_table, html_text
from materia_nb.handoff import Issue

_MOST_ISSUES = 20


def button(
    words: str, what: str, act: Callable[[Any], None], *, width: str = "auto", style: str = ""
) -> ui.Button:
    """Make a button. ``what`` says what it does, to those who point at it and to screen readers."""
    made = ui.Button(description=words, tooltip=what, button_style=style, layout=ui.Layout(width=width))
    made.on_click(act)
    return made


def row(*children: ui.Widget) -> ui.HBox:
    """Put widgets side by side, in more lines where the page is narrow."""
    return ui.HBox(children, layout=ui.Layout(flex_flow="row wrap", align_items="center"))


def show_if(widget: ui.Widget, shown: bool) -> None:
    """Show or hide a widget, keeping it and what is in it."""
    wanted = None if shown else "none"
    if widget.layout.display != wanted:
        widget.layout.display = wanted


heading, lines_html = html_heading, html_lines


def issues_html(issues: Iterable[Issue], fine: str) -> Html:
    """Show what is wrong and what to do about it; ``fine`` when nothing is."""
    found = list(issues)
    if not found:
        return Html(f'<div role="status">✓ {html_text(fine)}</div>') if fine else Html()
    rows = [(one.path, one.message, one.fix) for one in found[:_MOST_ISSUES]]
    if len(found) > _MOST_ISSUES:
        rows.append(("…", f"{len(found) - _MOST_ISSUES} more", ""))
    return Html(f'<div role="status">{html_table(("where", "issue", "what to do"), rows)}</div>')
