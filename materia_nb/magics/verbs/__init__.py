"""The verbs, in the order of the help."""

from materia_nb.magics.verbs import (
    loading,
    casting,
    composing,
    looking,
    remembering,
    panels,
    teaching,
    editing,
    keeping,
)  # noqa: F401, I001 - the order of the help
