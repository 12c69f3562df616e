"""The verbs; :data:`materia_nb.magics.registry.GROUPS` has their order."""

from materia_nb.magics.verbs import analysis, casts, loadouts

__all__ = ["analysis", "casts", "loadouts"]
