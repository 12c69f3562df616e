"""``python -m materia_nb.schema``: print the JSON Schema of a config, for editors that check and complete it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from materia_nb.file_io import replace_file
from materia_nb.loadout import config_schema


def main(arguments: Sequence[str]) -> int:
    """Print the schema, or with ``--output FILE`` write it there; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m materia_nb.schema", description=(__doc__ or "").partition(": ")[2]
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write it to FILE in place of printing it"
    )
    output = parser.parse_args(arguments).output
    text = json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"
    if output is None:
        sys.stdout.write(text)
        return 0
    try:
        replace_file(output, text.encode())
    except OSError as error:
        sys.stderr.write(f"{output}: {error.strerror}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
