"""Small things that the panels are put together from: buttons, notes, lists of issues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as ui

from materia_nb.display.html import html_lines

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


lines_html = html_lines
