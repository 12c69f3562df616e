"""echo: writes what its parameters say, so that a loadout can be tried without an agent.

stdin   {"params": {"text": "as it is"}} or {"params": {"output": {"satisfied": true}}}
stdout  the text; of ``output`` a text as it is, anything else as JSON; nothing when neither is given
"""

from __future__ import annotations

import json
import sys


def main() -> int:
    """Write the text, or the output; the exit code."""
    params = json.load(sys.stdin.buffer).get("params") or {}
    told = params.get("text", params.get("output", ""))
    sys.stdout.write(told if isinstance(told, str) else json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
