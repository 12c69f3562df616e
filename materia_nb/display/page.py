"""One static HTML page about a cast: no script, nothing loaded from elsewhere, light and dark."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from materia_nb.display.escape import (
    Html,
    esc,
    html_json,
    html_pre,
    html_table,
    html_text,
    part,
    shorten,
    status_badge,
)
from materia_nb.jsonvalue import JSON, MISSING

_LONGEST_OUTPUT: Final = 8000
_LONGEST_LAYER: Final = 4000
_STYLE: Final = """
:root{color-scheme:light dark;--fg:#1f2630;--bg:#fff;--soft:#5c6672;--rule:#d5dae0}
@media (prefers-color-scheme:dark){:root{--fg:#e4e8ed;--bg:#14181d;--soft:#9aa5b1;--rule:#333b45}}
body{font-family:system-ui,-apple-system,"Segoe UI",sans-serif;color:var(--fg);background:var(--bg);
max-width:70rem;margin:2rem auto;padding:0 1rem;line-height:1.5;
--jp-ui-font-color1:var(--fg);--jp-ui-font-color2:var(--soft);--jp-border-color2:var(--rule)}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}h3{font-size:1rem;margin:.8rem 0 .2rem}img{max-width:100%;height:auto}
dt{color:var(--soft)}dd{margin:0 0 .5rem 0}summary{cursor:pointer}a{color:#3b82c4}
article{border-left:3px solid var(--rule);padding-left:.8rem;margin:.6rem 0}
div.wide{overflow-x:auto}
"""
_POLICY: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


@dataclass(frozen=True, slots=True)
class PageStep:
    """One step as the page shows it. ``parsed`` is ``MISSING`` where nothing was parsed.

    ``decision_lines`` say in words why the next socket was chosen; ``artifact`` is a path relative to
    the page. ``prompt`` are its layers: heading and text; ``thinking`` is what its agent thought (R49).
    """

    number: int
    socket: str
    visit: int
    materia: str
    outcome: str = "ok"
    item_key: str | None = None
    item_label: str | None = None
    output: str = ""
    parsed: JSON = MISSING
    decision_lines: tuple[str, ...] = ()
    prompt: Sequence[tuple[str, str]] = ()
    artifact: str | None = None
    thinking: str = ""
    events: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CastPage:
    """What the page of a cast shows. ``artifacts`` are (what, path relative to the page)."""

    cast_id: str
    loadout: str
    request: str
    status: str
    failure: str | None = None
    svg: str | None = None
    graph_text: str = ""
    steps: Sequence[PageStep] = ()
    state: JSON = field(default_factory=dict)
    artifacts: Sequence[tuple[str, str]] = ()
    facts: Sequence[tuple[str, str]] = ()


def cast_page(page: CastPage, *, most_steps: int = 1000) -> str:
    """Write the page; of a long cast the last ``most_steps`` steps are shown."""
    shown = list(page.steps)[-most_steps:] if most_steps else []
    left_out = len(page.steps) - len(shown)
    title = esc(f"Cast {part(page.cast_id, 80)}: {part(page.loadout, 80)}")
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        _overview(page),
        _graph(page),
        "<h2>Timeline</h2>",
        f"<p>{left_out:,} earlier steps are not shown.</p>" if left_out else "",
        _timeline(shown),
        "<h2>Steps</h2>",
        *(_step(step) for step in shown),
        "<h2>State at the end</h2>",
        html_json(page.state, 1),
    ]
    if page.artifacts:
        parts.append("<h2>Artifacts</h2>")
        parts.append(html_table(["what", "file"], [(what, _file(path)) for what, path in page.artifacts]))
    parts.append("</body></html>\n")
    return "".join(parts)


def _overview(page: CastPage) -> str:
    entries = [("request", html_text(page.request)), ("outcome", status_badge(page.status))]
    if page.failure:
        entries.append(("failure", html_pre(page.failure)))
    entries += [(name, html_text(value)) for name, value in page.facts]
    return "<dl>" + "".join(f"<dt>{esc(name)}</dt><dd>{value}</dd>" for name, value in entries) + "</dl>"


def _graph(page: CastPage) -> str:
    """The picture as an image of its own, so that nothing in it can become part of the page."""
    parts = ["<h2>Graph</h2>"]
    if page.svg:
        data = base64.b64encode(page.svg.encode("utf-8", "replace")).decode("ascii")
        alt = esc(f"Graph of loadout {part(page.loadout, 80)}; the same as text below")
        parts.append(f'<div class="wide"><img alt="{alt}" src="data:image/svg+xml;base64,{data}"></div>')
    if page.graph_text:
        opened = "" if page.svg else " open"
        parts.append(
            f"<details{opened}><summary>Graph as text</summary>{html_pre(page.graph_text, 200_000)}</details>"
        )
    return "".join(parts) if len(parts) > 1 else ""


def _item(step: PageStep) -> str:
    if step.item_key is None:
        return ""
    label = part(step.item_label or "", 80)
    return f"{part(step.item_key)} {label}".rstrip() if step.item_label != step.item_key else label


def _timeline(steps: list[PageStep]) -> str:
    rows = [
        (
            Html(f'<a href="#step-{step.number:d}">{step.number:d}</a>'),
            step.socket,
            step.visit,
            _item(step),
            shorten(step.materia, 80),
            status_badge(step.outcome),
            shorten(step.decision_lines[-1], 160) if step.decision_lines else "",
        )
        for step in steps
    ]
    headers = ["step", "socket", "visit", "item", "materia", "outcome", "then"]
    return f'<div class="wide">{html_table(headers, rows)}</div>'


def _step(step: PageStep) -> str:
    """One step, folded; a failed one is open."""
    opened = " open" if step.outcome.startswith("failed") else ""
    head = f"{step.number}. {part(step.socket, 80)} (visit {step.visit}) {_item(step)}"
    parts = [f'<article id="step-{step.number:d}"><details{opened}><summary>{esc(head)}</summary>']
    if step.decision_lines:
        lines = "".join(f"<li>{html_text(line)}</li>" for line in step.decision_lines)
        parts.append(f"<h3>Why it went on so</h3><ol>{lines}</ol>")
    if step.prompt:
        layers = (f"<h3>{esc(name)}</h3>{html_pre(text, _LONGEST_LAYER)}" for name, text in step.prompt)
        parts.append(f"<details><summary>Prompt</summary>{''.join(layers)}</details>")
    if step.thinking:
        thought = html_pre(step.thinking, _LONGEST_OUTPUT)
        parts.append(f"<details><summary>What the agent thought</summary>{thought}</details>")
    parts.append(f"<h3>Output</h3>{html_pre(step.output, _LONGEST_OUTPUT)}")
    if step.parsed is not MISSING and not isinstance(step.parsed, str):
        parts.append(f"<h3>Parsed</h3>{html_json(step.parsed, 2)}")
    if step.events:
        told = "".join(f"<li>{html_text(shorten(event, 400))}</li>" for event in step.events)
        parts.append(f"<h3>Events</h3><ul>{told}</ul>")
    if step.artifact:
        parts.append(f"<p>kept in {_file(step.artifact)}</p>")
    return "".join(parts) + "</details></article>"


def _file(path: str) -> Html:
    """Link a path below the page's directory; anything else is only named."""
    segments = path.split("/")
    inside = ".." not in segments and not path.startswith("/") and "\\" not in path and "\x00" not in path
    if not inside:
        return html_text(path)
    href = esc("./" + quote(path.encode("utf-8", "replace")))
    return Html(f'<a href="{href}">{html_text(path)}</a>')
