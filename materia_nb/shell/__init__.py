"""``materia``, the verbs of the magics in a terminal and in CI."""
