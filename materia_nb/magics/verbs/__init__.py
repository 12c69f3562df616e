"""The verbs; :data:`materia_nb.magics.registry.GROUPS` has their order."""

from materia_nb.magics.verbs import casts, loading

__all__ = ["casts", "loading"]
