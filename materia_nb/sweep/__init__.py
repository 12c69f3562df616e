"""Real casts over a grid of loadouts, requests and agents, checked and laid out as a table (``wb.sweep``)."""

from materia_nb.sweep.results import Judge, Verdict

__all__ = ["Judge", "Verdict"]
