"""``python -m materia_nb.conformance FILE...``: a line for each vector that fails, a total a kind."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from materia_nb.conformance.runner import run_vector


def main(arguments: Sequence[str]) -> int:
    """Run the vector files and return the exit code: 0 all passed, 1 some failed, 2 unusable input."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m materia_nb.conformance FILE...\n\nFILE holds one JSON vector a line.")
        return 0 if arguments else 2
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for name in arguments:
        try:
            lines = Path(name).read_text(encoding="utf-8").split("\n")
        except OSError as error:
            print(f"{name}: {error.strerror}", file=sys.stderr)
            return 2
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                vector = json.loads(line)
                kind, identity = str(vector["kind"]), vector["id"]
            except (ValueError, KeyError, TypeError) as error:
                print(f"{name}:{number}: not a vector: {error}", file=sys.stderr)
                return 2
            wrong = run_vector(vector)
            (failed if wrong else passed)[kind] += 1
            if wrong:
                print(f"FAILED {kind} {identity}: " + " | ".join(wrong))
    for kind in sorted(passed | failed):
        print(f"{kind}: {passed[kind]} passed, {failed[kind]} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
