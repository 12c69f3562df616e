"""Test that text and lines have enough contrast with their backgrounds in both themes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from display_checks import contrast
from materia_nb import widgets

CSS = (Path(widgets.__file__).parent / "front" / "front.css").read_text()
LIGHT, DARK = (
    re.search(rf"{start}.*?\{{(.*?)\n\}}", CSS, re.DOTALL | re.MULTILINE)[1]
    for start in (r"^\.mnb-surface, \.mnb-graph", r'^body\[data-jp-theme-light="false"\]')
)
GROUND_AND_INK = {"light": ("#ffffff", "#212121"), "dark": ("#212121", "#ffffff")}
"""Background and text colours of JupyterLab; the light theme has black text with an opacity of 0.87."""
TEXT = [
    *((ink, ground) for ink in ("ink", "dim") for ground in ("bg", "bg2", "bg3")),
    *((ink, ground) for ink in ("now", "good", "no", "bad", "gen", "blue") for ground in ("bg", f"{ink}-bg")),
    ("accent", "bg"),
    ("accent", "pick"),
    ("ink", "pick"),
    ("on-accent", "accent"),
]
LINES = [(line, "bg") for line in ("now-line", "edge", "accent", "good", "no", "bad", "gen")]


def tokens(theme):
    """Return the colours of a theme by name, each as ``#rrggbb``."""
    ground, ink = GROUND_AND_INK[theme]
    found = {"bg": ground, "ink": ink}
    for name, value in re.findall(r"--mnb-([\w-]+): ([^;]+);", LIGHT + (DARK if theme == "dark" else "")):
        mixed = re.fullmatch(r"color-mix\(in srgb, var\(--mnb-ink\) (\d+)%, var\(--mnb-bg\)\)", value)
        if mixed:
            share, two = (
                int(mixed[1]) / 100,
                [[int(c[at : at + 2], 16) for at in (1, 3, 5)] for c in (ink, ground)],
            )
            found[name] = "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in zip(*two, strict=True))
        elif value.startswith("#"):
            found[name] = value if len(value) == 7 else "#" + "".join(c * 2 for c in value[1:])
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_lines_have_enough_contrast_in_each_theme(theme):
    of = tokens(theme)
    assert {pair: contrast(of[pair[0]], of[pair[1]]) for pair in TEXT if contrast(of[pair[0]], of[pair[1]]) < 5.1} == {}
    assert {pair: contrast(of[pair[0]], of[pair[1]]) for pair in LINES if contrast(of[pair[0]], of[pair[1]]) < 3} == {}
