"""The handoff protocols by name, without loading any: our own, and those that installed packages offer."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

GROUP: Final = "materia_nb.handoff_protocols"
"""The entry point group in which a package names its protocols."""
OWN_PROTOCOLS: Final = ("sparse", "envelope", "agent-contract")
"""Those of this package; their names cannot be taken."""
DEFAULT_HANDOFF: Final = OWN_PROTOCOLS[0]


def protocol_names() -> list[str]:
    """Return the names of all protocols, our own first."""
    foreign = {entry.name for entry in entry_points(group=GROUP)}
    return [*OWN_PROTOCOLS, *sorted(foreign.difference(OWN_PROTOCOLS))]
