"""What the design panel says of a design: how it stands, what is wrong, where it is kept, what is not saved."""

from __future__ import annotations

from typing import Final

from materia_nb.display.escape import part
from materia_nb.display.html import Html, html_join, html_pre, html_table, html_text
from materia_nb.jsonvalue import compact
from materia_nb.loadout.design import Design
from materia_nb.loadout.report import Report, counted
from materia_nb.widgets.controls import heading

_MOST_FINDINGS: Final = 20
_MOST_PATCH: Final = 6_000


def status_html(design: Design) -> Html:
    """Say in one line whether it is saved and how many problems and hints there are."""
    report = design.report
    state = "saved" if design.steps else "nothing changed"
    if design.changed:
        state = f"not saved ({counted(len(design.steps), 'step')})"
    found = f"{counted(len(report.problems), 'problem')}, {counted(len(report.hints), 'hint')}"
    sketch = "" if report.ok else " · the picture shows what can be drawn of it"
    words = f"{part(design.name)} · {state} · {found}{sketch}"
    return Html(f'<div role="status"><b>{html_text(words)}</b></div>')


def report_html(report: Report) -> Html:
    """Show each problem and hint with what to do about it."""
    rows = [
        (_wide("6em", sign), _wide("13em", one.source), one.message, one.hint)
        for sign, found in (("✖ problem", report.problems), ("○ hint", report.hints))
        for one in found
    ]
    if not rows:
        return Html(f'<div role="status">✓ {html_text("no problems, no hints")}</div>')
    more = len(rows) - _MOST_FINDINGS
    shown = [*rows[:_MOST_FINDINGS], *([("…", "", f"{more} more", "")] if more > 0 else [])]
    return Html(f'<div role="status">{html_table(("", "where", "what", "what to do"), shown)}</div>')


def home_html(design: Design) -> Html:
    """Say where Save writes to, and why there."""
    why = f" ({design.home.why})" if design.home.why else ""
    return Html(f'<div style="opacity:0.75">{html_text(f"Save writes to {design.home}{why}.")}</div>')


def patch_html(design: Design) -> Html:
    """Show what is not saved, one operation on a line; nothing when all is."""
    lines = "\n".join(compact(one) for one in design.patch())
    title = heading("What is not saved, as a JSON Patch (RFC 6902)")
    return html_join([title, html_pre(lines, _MOST_PATCH)]) if lines else Html()


def _wide(least: str, text: str) -> Html:
    """A cell that is not squeezed until it breaks words."""
    return Html(f'<div style="min-width:{least}">{html_text(text)}</div>')
