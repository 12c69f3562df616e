"""The workbench in a notebook: panels made of live widgets. Loaded on first use, for widgets are slow to import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from materia_nb.widgets.base import Panel, show_panel
    from materia_nb.widgets.graph import GraphPanel

__all__ = ["GraphPanel", "Panel", "show_panel"]

_HOMES = {
    "GraphPanel": "materia_nb.widgets.graph",
    "Panel": "materia_nb.widgets.base",
    "show_panel": "materia_nb.widgets.base",
}


def __getattr__(name: str) -> Any:
    """Load a panel on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
