"""The command line ``materia``, which runs the verbs of the magics in a terminal and in CI, and the MCP server."""
