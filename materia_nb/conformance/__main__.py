"""``python -m materia_nb.conformance FILE...``: a line for each vector that fails, a total a kind."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from materia_nb.conformance.vector_runner import NEEDED, run_vector
from materia_nb.file_io import read_plain

USAGE: Final = "usage: python -m materia_nb.conformance FILE...\n\nFILE holds one JSON vector a line.\n"


class UnusableInput(Exception):
    """A file cannot be read, or a line of it is not a vector; the message names the place."""


def main(arguments: Sequence[str]) -> int:
    """Run the vector files and return the exit code: 0 all passed, 1 some failed, 2 unusable input."""
    if not arguments or arguments[0] in ("-h", "--help"):
        (sys.stdout if arguments else sys.stderr).write(USAGE)
        return 0 if arguments else 2
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    try:
        for name in arguments:
            for vector in _vectors(name):
                kind, wrong = str(vector["kind"]), run_vector(vector)
                (failed if wrong else passed)[kind] += 1
                if wrong:
                    _say(f"FAILED {kind} {vector['id']}: " + " | ".join(wrong))
    except UnusableInput as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for kind in sorted(passed | failed):
        _say(f"{kind}: {passed[kind]} passed, {failed[kind]} failed")
    return 1 if failed else 0


def _vectors(name: str) -> Iterator[dict[str, Any]]:
    try:
        lines = read_plain(name, follow=True).split(b"\n")
    except OSError as error:
        raise UnusableInput(f"{name}: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            vector = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UnusableInput(f"{place}: not JSON: {error}") from error
        if not isinstance(vector, dict):
            raise UnusableInput(f"{place}: not a vector: an object is needed")
        missing = {"id", "kind", "expect", *NEEDED.get(str(vector.get("kind")), ())} - vector.keys()
        if missing:
            raise UnusableInput(f"{place}: not a vector: it has no {', '.join(sorted(missing))}")
        yield vector


def _say(line: str) -> None:
    # A vector may hold what the terminal's encoding has no place for.
    sys.stdout.write(line.encode(sys.stdout.encoding or "utf-8", "backslashreplace").decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
