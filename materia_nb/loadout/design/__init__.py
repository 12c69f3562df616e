"""Editing a loadout: operations on the raw document, a design with undo and report, and saving with minimal changes."""

from __future__ import annotations

from materia_nb.loadout.design.document import OPERATIONS, DesignChange, Operation
from materia_nb.loadout.design.draft import NOTEBOOK, Design, Home
from materia_nb.loadout.design.sockets import SOCKET_FIELDS
from materia_nb.loadout.topology import next_socket_id

__all__ = [
    "NOTEBOOK",
    "OPERATIONS",
    "SOCKET_FIELDS",
    "Design",
    "DesignChange",
    "Home",
    "Operation",
    "next_socket_id",
]
