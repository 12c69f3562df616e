"""Hints: what is allowed and yet probably not meant."""

from __future__ import annotations

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.report import Problem


def find_hints(document: JSON, loadout: str | None = None) -> list[Problem]:
    """Return the hints on a config, or on one loadout of it; never raises."""
    return []
