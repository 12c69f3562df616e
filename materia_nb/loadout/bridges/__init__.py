"""Graphs of other tools as loadouts: read as a flow (``flow``, ``n8n``, ``mermaid``), then placed as sockets (``placing``)."""

from materia_nb.loadout.bridges.flow import Flow, Note, Step, Way
from materia_nb.loadout.bridges.placing import Imported, import_graph

__all__ = ["Flow", "Imported", "Note", "Step", "Way", "import_graph"]
