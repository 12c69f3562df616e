"""What is a loadout? Reading, checking and resolving configs; nothing here runs one."""

from __future__ import annotations

from materia_nb.loadout.graph import (
    CONDITIONS,
    END,
    Advance,
    Budget,
    Condition,
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
from materia_nb.loadout.report import LoadoutError, Problem, Report
from materia_nb.loadout.resolve import active_loadout, build_graph
from materia_nb.loadout.validate import check_config

__all__ = [
    "CONDITIONS",
    "END",
    "Advance",
    "Budget",
    "Condition",
    "Derived",
    "Edge",
    "ExitRoute",
    "Graph",
    "Iterator",
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
]
