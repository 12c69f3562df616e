"""One static HTML page for a whole cast: nothing to load, no script, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from materia_nb.display.escape import clip, esc
from materia_nb.display.html import html_json, html_table
from materia_nb.jsonvalue import JSON

TEXT_CHARS: Final = 20_000
"""How much of one output or prompt the page holds; the artifact holds the whole."""

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1b1b; background: #fff; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .5rem; border: 1px solid #8884; border-radius: 4px; }
figure { margin: 1rem 0; overflow: auto; }
figure svg { max-width: 100%; height: auto; }
summary { cursor: pointer; padding: .2rem 0; }
.muted { opacity: .7; }
@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #15171a; } }
"""


@dataclass(frozen=True, slots=True)
class PageStep:
    """One step on the page. ``lines`` explain its decision; ``parsed`` is None for text."""

    number: int
    title: str
    outcome: str
    output: str | None
    parsed: JSON
    lines: Sequence[str]
    prompt: str | None
    artifact: str | None


def cast_page(
    *,
    title: str,
    request: str,
    status: Sequence[str],
    svg: str,
    timeline: tuple[Sequence[str], Sequence[Sequence[str]]],
    steps: Sequence[PageStep],
    state: JSON,
    files: Sequence[str],
) -> str:
    """Return the page. ``svg`` must be well formed and escaped; everything else is escaped here."""
    parts = [
        f"<h1>{esc(title)}</h1>",
        f"<p>{esc(request)}</p>" if request else "",
        *(f'<p class="muted">{esc(line)}</p>' for line in status),
        f"<figure>{svg}</figure>",
        "<h2>Timeline</h2>",
        html_table(*timeline),
        "<h2>Steps</h2>",
        *map(_step, steps),
        "<h2>State</h2>",
        html_json(state, open_depth=2),
        "<h2>Files</h2>",
        "<ul>" + "".join(f"<li>{esc(name)}</li>" for name in files) + "</ul>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{esc(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def _step(step: PageStep) -> str:
    parts = [f"<summary><b>{step.number}. {esc(step.title)}</b> {esc(step.outcome)}</summary>"]
    parts += [f"<div>{esc(line)}</div>" for line in step.lines]
    if step.prompt is not None:
        parts.append(
            f"<details><summary>prompt</summary><pre>{esc(clip(step.prompt, TEXT_CHARS))}</pre></details>"
        )
    if step.output is not None:
        parts.append(f"<div>output</div><pre>{esc(clip(step.output, TEXT_CHARS))}</pre>")
    if isinstance(step.parsed, (dict, list)):
        parts.append(html_json(step.parsed, open_depth=2))
    if step.artifact:
        parts.append(f'<div class="muted">{esc(step.artifact)}</div>')
    return f'<details id="step-{step.number}">{"".join(parts)}</details>'
