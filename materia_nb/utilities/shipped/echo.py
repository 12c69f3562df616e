"""echo: prints the output in its parameters, so that a loadout can be tried without an agent.

stdin   {"params": {"text": "any text"}} or {"params": {"output": {"satisfied": true}}}
stdout  the value of ``text``, or else of ``output``, as JSON if it is not a string; empty if both are missing
"""

from __future__ import annotations

import json
import sys


def main() -> int:
    """Print the output and return the exit code."""
    params = json.load(sys.stdin.buffer).get("params") or {}
    output = params.get("text", params.get("output", ""))
    sys.stdout.write(output if isinstance(output, str) else json.dumps(output))
    return 0


if __name__ == "__main__":
    sys.exit(main())
