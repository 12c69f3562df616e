"""The ``materia`` program, which runs the ``%materia`` verbs in a terminal or in CI, and also starts the MCP server."""
