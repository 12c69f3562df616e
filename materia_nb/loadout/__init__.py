"""Reading, checking and resolving of configs; running a loadout is the job of other packages."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from materia_nb.loadout.config_files import read_config, read_text, write_config
from materia_nb.loadout.graph import (
    END,
    Advance,
    Budget,
    Derived,
    Edge,
    ExitRoute,
    Graph,
    Iterator,
    Limits,
    Loop,
    Materia,
    Socket,
)
from materia_nb.loadout.layers import Layer, LayeredConfig, load_layers
from materia_nb.loadout.report import LoadoutError, Problem, Report
from materia_nb.loadout.resolve import active_loadout, build_graph, check_config
from materia_nb.loadout.vocabulary import CONDITIONS, Condition

if TYPE_CHECKING:
    from materia_nb.loadout.fields import FieldRow
    from materia_nb.loadout.json_schema import config_schema
    from materia_nb.loadout.models import Config, config_fields

__all__ = [
    "CONDITIONS",
    "END",
    "Advance",
    "Budget",
    "Condition",
    "Config",
    "Derived",
    "Edge",
    "ExitRoute",
    "FieldRow",
    "Graph",
    "Iterator",
    "Layer",
    "LayeredConfig",
    "Limits",
    "LoadoutError",
    "Loop",
    "Materia",
    "Problem",
    "Report",
    "Socket",
    "active_loadout",
    "build_graph",
    "check_config",
    "config_fields",
    "config_schema",
    "load_layers",
    "read_config",
    "read_text",
    "write_config",
]

_MODELS = {
    "Config": "models",
    "FieldRow": "fields",
    "config_fields": "models",
    "config_schema": "json_schema",
}


def __getattr__(name: str) -> Any:
    """Load the models on first use, since pydantic is slow to import and only checking a config needs it."""
    if name not in _MODELS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"materia_nb.loadout.{_MODELS[name]}"), name)
