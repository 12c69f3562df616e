"""One cast: its session, what runs it, what can be seen of it, where it stops."""

from materia_nb.cast.breakpoints import Breakpoints, Pause
from materia_nb.cast.cast import Cast, Plan, Prepared
from materia_nb.cast.snapshot import Snapshot

__all__ = ["Breakpoints", "Cast", "Pause", "Plan", "Prepared", "Snapshot"]
