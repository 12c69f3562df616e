"""The verbs of ``%materia``; ``words.toml`` defines their order in the help."""

from materia_nb.magics.verbs import analysis, casts, loadouts

__all__ = ["analysis", "casts", "loadouts"]
