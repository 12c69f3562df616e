"""The verbs, in the order of the help."""

from materia_nb.magics.verbs import loading, casting, looking, remembering, panels, editing, keeping  # noqa: F401, I001 - the order of the help
