"""Interactive notebook panels. Each panel module is imported on first use, because importing ipywidgets is slow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from materia_nb.widgets.base import Panel, show_panel
    from materia_nb.widgets.cast_panel import CastPanel, show, show_part
    from materia_nb.widgets.design_panel import DesignPanel, show_design
    from materia_nb.widgets.graph_panel import GraphPanel

__all__ = ["CastPanel", "DesignPanel", "GraphPanel", "Panel", "show", "show_design", "show_panel", "show_part"]

_PANEL_MODULES = {
    "CastPanel": "materia_nb.widgets.cast_panel",
    "DesignPanel": "materia_nb.widgets.design_panel",
    "GraphPanel": "materia_nb.widgets.graph_panel",
    "Panel": "materia_nb.widgets.base",
    "show": "materia_nb.widgets.cast_panel",
    "show_design": "materia_nb.widgets.design_panel",
    "show_part": "materia_nb.widgets.cast_panel",
    "show_panel": "materia_nb.widgets.base",
}


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is first used."""
    if name not in _PANEL_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PANEL_MODULES[name]), name)
