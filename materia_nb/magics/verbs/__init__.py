"""The verbs, in the order of the help."""

# ruff: noqa: F401, I001 - importing a module registers its verbs, and the order is that of the help
from materia_nb.magics.verbs import loading, foreseeing, casting, looking, editing, casts, attempting
