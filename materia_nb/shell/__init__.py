"""The program ``materia``, which runs the verbs of ``%materia`` in a terminal and in CI, and the MCP server."""
