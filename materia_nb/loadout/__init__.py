"""Read, check, edit and resolve configs. Other packages run the loadouts."""

from __future__ import annotations

from materia_nb.loadout.config_files import read_config, read_text, write_config
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.layers import LayeredConfig, load_layers
from materia_nb.loadout.report import LoadoutError, Report
from materia_nb.loadout.resolve import build_graph, check_config

__all__ = [
    "Graph",
    "LayeredConfig",
    "LoadoutError",
    "Report",
    "build_graph",
    "check_config",
    "load_layers",
    "read_config",
    "read_text",
    "write_config",
]
