"""Casts: run, inspect, edit, compare and export them, and set breakpoints."""

from materia_nb.cast.cast import Cast, open_cast, resume_cast, start_cast
from materia_nb.cast.cast_breakpoints import Breakpoints, Pause
from materia_nb.cast.runner_factory import Plan, Prepared
from materia_nb.cast.snapshot import Snapshot

__all__ = ["Breakpoints", "Cast", "Pause", "Plan", "Prepared", "Snapshot", "open_cast", "resume_cast", "start_cast"]
