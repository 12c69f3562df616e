"""The workbench in a notebook: panels made of live widgets. Loaded on first use, for widgets are slow to import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from materia_nb.widgets.base import Panel, show_panel
    from materia_nb.widgets.bench import CastPanel, show, show_one
    from materia_nb.widgets.designer import DesignerPanel, show_designer
    from materia_nb.widgets.graph import GraphPanel
    from materia_nb.widgets.handoff import HandoffPanel
    from materia_nb.widgets.items import ItemsPanel
    from materia_nb.widgets.quests import QuestPanel
    from materia_nb.widgets.reply import ReplyPanel
    from materia_nb.widgets.state import StatePanel
    from materia_nb.widgets.timeline import TimelinePanel
    from materia_nb.widgets.toolbar import ToolbarPanel

__all__ = [
    "CastPanel",
    "DesignerPanel",
    "GraphPanel",
    "HandoffPanel",
    "ItemsPanel",
    "Panel",
    "QuestPanel",
    "ReplyPanel",
    "StatePanel",
    "TimelinePanel",
    "ToolbarPanel",
    "show",
    "show_designer",
    "show_one",
    "show_panel",
]

_HOMES = {
    "CastPanel": "materia_nb.widgets.bench",
    "DesignerPanel": "materia_nb.widgets.designer",
    "GraphPanel": "materia_nb.widgets.graph",
    "HandoffPanel": "materia_nb.widgets.handoff",
    "ItemsPanel": "materia_nb.widgets.items",
    "Panel": "materia_nb.widgets.base",
    "QuestPanel": "materia_nb.widgets.quests",
    "ReplyPanel": "materia_nb.widgets.reply",
    "StatePanel": "materia_nb.widgets.state",
    "TimelinePanel": "materia_nb.widgets.timeline",
    "ToolbarPanel": "materia_nb.widgets.toolbar",
    "show": "materia_nb.widgets.bench",
    "show_designer": "materia_nb.widgets.designer",
    "show_one": "materia_nb.widgets.bench",
    "show_panel": "materia_nb.widgets.base",
}


def __getattr__(name: str) -> Any:
    """Load a panel on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
