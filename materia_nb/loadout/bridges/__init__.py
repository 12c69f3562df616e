"""Graphs of other tools as loadouts: read as a flow (``flow``), placed as sockets (``placing``); and back (``export``)."""

from materia_nb.loadout.bridges.export import OTHER_TOOLS, Exported, OtherTool, export_graph
from materia_nb.loadout.bridges.flow import Flow, Note, Step, Way
from materia_nb.loadout.bridges.placing import Imported, import_graph

__all__ = [
    "OTHER_TOOLS",
    "Exported",
    "Flow",
    "Imported",
    "Note",
    "OtherTool",
    "Step",
    "Way",
    "export_graph",
    "import_graph",
]
