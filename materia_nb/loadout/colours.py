"""The colour that a loadout gives a materia: read strictly, with a text colour that can be read on it.

What a loadout writes goes into SVG, style sheets and widgets, so nothing but a colour of our own
spelling comes out of here.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from materia_nb.jsonvalue import JSON

_HEX: Final = re.compile(r"#(?:[0-9a-f]{3}|[0-9a-f]{6})")
_PREFIX: Final = "materia-color-"
NAMED: Final = {
    "amber": "#b45309",
    "black": "#000000",
    "blue": "#1d4ed8",
    "brown": "#78482c",
    "cyan": "#0e7490",
    "emerald": "#047857",
    "fuchsia": "#a21caf",
    "gray": "#4b5563",
    "green": "#15803d",
    "grey": "#4b5563",
    "indigo": "#4338ca",
    "lime": "#4d7c0f",
    "neutral": "#525252",
    "orange": "#c2410c",
    "pink": "#be185d",
    "purple": "#7e22ce",
    "red": "#b91c1c",
    "rose": "#be123c",
    "sky": "#0369a1",
    "slate": "#475569",
    "stone": "#57534e",
    "teal": "#0f766e",
    "violet": "#6d28d9",
    "white": "#ffffff",
    "yellow": "#a16207",
    "zinc": "#52525b",
}
"""Names, also behind ``materia-color-`` as the reference's editor writes them; tones on which text can be read."""


class Tint(NamedTuple):
    """A background and the colour of the text on it, both ``#rrggbb``."""

    fill: str
    ink: str


def tint_of(colour: JSON) -> Tint | None:
    """Read a colour: ``#rgb``, ``#rrggbb``, or a name such as ``teal``; None for anything else."""
    if not isinstance(colour, str):
        return None
    given = colour.strip().lower()
    fill = NAMED.get(given.removeprefix(_PREFIX), given)
    if not _HEX.fullmatch(fill):
        return None
    if len(fill) == 4:
        fill = "#" + "".join(digit * 2 for digit in fill[1:])
    light = _luminance(fill)
    return Tint(fill, "#ffffff" if 1.05 / (light + 0.05) >= (light + 0.05) / 0.05 else "#000000")


def _luminance(colour: str) -> float:
    """How light a colour is, from 0 to 1, as the contrast of WCAG 2 counts it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
