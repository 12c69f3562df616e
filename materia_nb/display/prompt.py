"""A prompt as people read it: its layers in order, each under its heading and the name by which it is changed."""

from __future__ import annotations

from typing import Final

from materia_nb.display.escape import clip
from materia_nb.display.html import Html, html_fold, html_pre, html_text
from materia_nb.engine.prompt import Layer, Prompt

LAYER_CHARS: Final = 4_000
BRIEF_CHARS: Final = 400
"""How much of the cast layer is shown as text where the prompt is only a part of what is told."""


def layers_text(prompt: Prompt, *, brief: bool = False) -> list[str]:
    """Return each layer as text under its heading; ``brief`` shows only the beginning of the cast layer."""
    shown = [
        (layer, BRIEF_CHARS if brief and layer.name == "cast" else LAYER_CHARS) for layer in prompt.layers
    ]
    return [f"{layer.heading} [{layer.name}]\n{clip(layer.text, most)}" for layer, most in shown]


def layers_html(prompt: Prompt, *, folded: bool = False) -> list[Html]:
    """Return each layer under its heading; ``folded`` shuts the cast layer, which is long."""
    return [_layer(layer, folded=folded and layer.name == "cast") for layer in prompt.layers]


def _layer(layer: Layer, *, folded: bool) -> Html:
    text = html_pre(layer.text, LAYER_CHARS)
    if folded:
        return html_fold(f"{layer.heading} [{layer.name}]", text)
    name = f'<span style="opacity:0.75">[{html_text(layer.name)}]</span>'
    return Html(f"<div><b>{html_text(layer.heading)}</b> {name}</div>{text}")
