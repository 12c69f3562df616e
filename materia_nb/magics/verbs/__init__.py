"""The verbs of ``%materia``; :data:`materia_nb.magics.registry.GROUPS` defines their order in the help."""

from materia_nb.magics.verbs import analysis, casts, loadouts

__all__ = ["analysis", "casts", "loadouts"]
