"""``python -m materia_nb.lessons``: make a course for nbgrader, mark what was handed in, and tables of what a class guessed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from materia_nb.errors import MateriaError
from materia_nb.lessons import assignments, checks


def main(arguments: Sequence[str]) -> int:
    """Do what a command says; the exit code: 0 done, 1 refused, 2 not understood."""
    parser = argparse.ArgumentParser(prog=assignments.PROGRAM, description=(__doc__ or "").split(": ", 1)[1])
    commands = parser.add_subparsers(dest="command", required=True)
    release = commands.add_parser(
        "release", help="make a course folder with an nbgrader assignment of each lesson"
    )
    release.add_argument("folder", type=Path, metavar="DIR", help="made if it is not there")
    release.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 03-loops; all if left out")
    merge = commands.add_parser("progress", help="one table of the guesses of a class")
    merge.add_argument("files", type=Path, nargs="+", metavar="FILE", help="files, or folders that hold them")
    merge.add_argument("--csv", action="store_true", help="one line a question, for a spreadsheet")
    mark = commands.add_parser("mark", help="mark what was handed in, without running any of it")
    mark.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="holds WHO/LESSON/LESSON.ipynb")
    mark.add_argument("--csv", action="store_true", help="one line a question, for a spreadsheet")
    key = commands.add_parser("key", help="the right answers of a learner in a lesson: for teachers")
    key.add_argument("lesson", metavar="LESSON", help="such as 03-loops, or exercises")
    key.add_argument("name", metavar="NAME", help="of the learner, from which the numbers are drawn")
    given = parser.parse_args(arguments)
    try:
        if given.command == "release":
            for path in assignments.release(given.folder, given.lessons):
                print(path)
        elif given.command == "mark":
            marks = assignments.mark_all(given.folders)
            print(assignments.marks_as_csv(marks) if given.csv else repr(assignments.marks_table(marks)))
        elif given.command == "key":
            print(assignments.key_text(given.lesson, given.name))
        else:
            found = checks.merge_classes(given.files)
            print(checks.scores_as_csv(found) if given.csv else repr(checks.class_table(found)))
    except MateriaError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
