"""``python -m materia_nb.lessons``: mark submitted lessons, and summarize the guesses of a class."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from materia_nb.errors import MateriaError
from materia_nb.lessons import checks, marking


def main(arguments: Sequence[str]) -> int:
    """Run a command and return the exit code: 0 done, 1 refused, 2 misuse."""
    parser = argparse.ArgumentParser(prog="python -m materia_nb.lessons", description="Marks and progress of a class.")
    commands = parser.add_subparsers(dest="command", required=True)
    progress = commands.add_parser("progress", help="print one table of the guesses of a class")
    progress.add_argument("paths", type=Path, nargs="+", metavar="FILE", help="files, or folders that hold them")
    mark = commands.add_parser("mark", help="mark submitted notebooks without running them")
    mark.add_argument("paths", type=Path, nargs="+", metavar="DIR", help="holds WHO/LESSON.ipynb")
    for command in (progress, mark):
        command.add_argument("--csv", action="store_true", help="write one line for each question")
    options = parser.parse_args(arguments)
    try:
        if options.command == "mark":
            marks = marking.mark_all(options.paths)
            print(
                checks.csv_text(marking.MarkedAnswer._fields, marks)
                if options.csv
                else repr(marking.marks_table(marks))
            )
        else:
            scores = checks.merge_classes(options.paths)
            print(checks.scores_as_csv(scores) if options.csv else repr(checks.class_table(scores)))
    except MateriaError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
