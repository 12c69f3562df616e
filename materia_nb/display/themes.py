"""The colours of pictures, by what they are for: light, dark, and as places to be filled in by the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from materia_nb.loadout.vocabulary import Tint

ThemeName: TypeAlias = Literal["light", "dark"]
Colours: TypeAlias = Mapping[str, str]
"""A colour by its use: ``ground`` the page, ``plate`` of chips, ``ink``, ``soft`` and ``faint`` text, ``line`` of
edges, ``rim`` of plates, and for ``agent``, ``utility``, ``generator`` and ``loop`` a strong one and, with ``-pale``,
that of their surface."""

LIGHT: Final[Colours] = {
    "ground": "#ffffff",
    "plate": "#ffffff",
    "ink": "#1f2328",
    "soft": "#525c67",
    "faint": "#646d77",
    "rim": "#c4cad2",
    "line": "#858d97",
    "agent": "#2f6db3",
    "agent-pale": "#edf4fc",
    "utility": "#5a6b7b",
    "utility-pale": "#eff2f5",
    "generator": "#7a4fc4",
    "generator-pale": "#f3edfc",
    "loop": "#6d4bb8",
    "loop-pale": "#f8f5fd",
    "bar": "#e4dcf5",
    "satisfied": "#14774a",
    "not_satisfied": "#b04c06",
    "always": "#5b6570",
    "now": "#e09a00",
    "now-ink": "#7a5200",
    "now-pale": "#fff6df",
    "bad": "#c62828",
    "bad-pale": "#fdecea",
    "break": "#c62828",
    "pick": "#1976d2",
    "A": "#2b62bd",
    "B": "#a82a7f",
}
DARK: Final[Colours] = {
    "ground": "#14171a",
    "plate": "#1b1f24",
    "ink": "#e6e9ed",
    "soft": "#b3bcc6",
    "faint": "#98a2ad",
    "rim": "#4b5560",
    "line": "#87909b",
    "agent": "#7db4ee",
    "agent-pale": "#172536",
    "utility": "#a9b7c4",
    "utility-pale": "#20262d",
    "generator": "#b99cf2",
    "generator-pale": "#251d38",
    "loop": "#a58ae0",
    "loop-pale": "#1c1826",
    "bar": "#3a3152",
    "satisfied": "#4fc38a",
    "not_satisfied": "#f19a55",
    "always": "#a7b0ba",
    "now": "#ffb92e",
    "now-ink": "#ffcf6e",
    "now-pale": "#362b0e",
    "bad": "#ff7b72",
    "bad-pale": "#3a1a18",
    "break": "#ff7b72",
    "pick": "#64b0f4",
    "A": "#7db4ee",
    "B": "#ec8fc9",
}
THEMES: Final[Mapping[ThemeName, Colours]] = {"light": LIGHT, "dark": DARK}

PLACES: Final[Colours] = {use: f"@{use}@" for use in LIGHT}
"""A place for each colour, for a page that fills in those of its theme; no escaped text of ours holds an ``@``."""


def surface(kind: str, tint: Tint | None, colours: Colours) -> tuple[str, str]:
    """Return the strong colour of a card and that of its surface: its materia's own, or that of its kind."""
    return (tint.fill if tint is not None else colours[kind], colours[f"{kind}-pale"])
