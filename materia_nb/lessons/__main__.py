"""The program ``python -m materia_nb.lessons``: it writes levels, marks lessons, and summarizes the guesses of a class.

Answers are parsed as literals from the cells of a submission, so the submitted code is never run. The right answers are
computed by running the package's copy of the lesson with the numbers of the learner who submitted the notebook.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from materia_nb.display.blocks import Table
from materia_nb.errors import MateriaError, counted, needs_one_of
from materia_nb.file_io import read_package_text, read_plain, replace_file
from materia_nb.lessons import checks
from materia_nb.lessons.questions import write_levels

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_MAX_NOTEBOOK_BYTES: Final = 2**26
_NOT_A_LITERAL: Final = object()
"""Placeholder for an answer that is not a literal but an expression, such as a sum or a call."""


class MarkedAnswer(NamedTuple):
    """The mark for one answer.

    Attributes:
        who: the learner who submitted the answer.
        lesson: the name of the lesson.
        question: the name of the question.
        points: 1 for a right answer, and otherwise 0.
        reason: a sentence that explains the mark.
    """

    who: str
    lesson: str
    question: str
    points: int
    reason: str


def lessons_folder() -> Path:
    """Return the folder that contains the lessons, in the installed package or in a checkout.

    Raises:
        MateriaError: the notebooks are not installed (``not_found``).
    """
    for folder in (_PACKAGE / "notebooks", _PACKAGE.parent / "notebooks"):
        if folder.is_dir():
            return folder
    raise MateriaError("The lessons are not installed.", where=str(_PACKAGE), kind="not_found")


def marked_questions(lesson: str) -> tuple[str, ...]:
    """Return the names of the questions of a lesson that are marked, because their answers differ between learners."""
    return tuple(name for name in checks.QUESTIONS[lesson] if name not in checks.PRACTICE.get(lesson, ()))


@cache
def answer_key(lesson: str, learner: str) -> Mapping[str, checks.AnswerKey]:
    """Return the right answer to each question of a lesson, for the numbers generated from the learner's name.

    Raises:
        MateriaError: the lesson does not exist (``unknown_lesson``).
    """
    needs_one_of(lesson, checks.QUESTIONS, f"The lesson {lesson!r} does not exist.", "unknown_lesson")
    return _run_lesson(lesson, learner)._key  # noqa: SLF001 - the answers are hidden from learners


def _run_lesson(lesson: str, learner: str) -> checks.Numbers:
    """Run the package's copy of a lesson in a temporary folder, up to the cell that checks the answers."""
    from materia_nb.magics import run_cells

    notebook = json.loads(read_package_text(lessons_folder() / f"{lesson}.ipynb"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    (check,) = (number for number, cell in enumerate(cells) if "raises-exception" in cell["metadata"].get("tags", ()))
    with tempfile.TemporaryDirectory(prefix="materia-marks-") as folder:
        _copy_recordings(Path(folder), json.dumps(notebook))
        settings = {checks.LEARNER_VARIABLE: learner, checks.GUESSES_VARIABLE: str(Path(folder) / "guesses.jsonl")}
        with contextlib.chdir(folder), _environment(settings):
            names = run_cells(("".join(cell["source"]), cell is cells[check]) for cell in cells[: check + 1])
            names["wb"].close()
    numbers = names["mine"]
    assert isinstance(numbers, checks.Numbers)  # noqa: S101 - a lesson of the package
    return numbers


def _copy_recordings(folder: Path, source: str) -> None:
    """Copy a lesson's recordings to ``folder``; ``source`` is the text of the lesson."""
    for path in (lessons_folder() / "recordings").glob("*.json"):
        if f"recordings/{path.name}" in source:
            (folder / "recordings").mkdir(exist_ok=True)
            replace_file(folder / "recordings" / path.name, read_plain(path, follow=True))


@contextlib.contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, and add the folder of the lessons to the import path, while the block runs."""
    before = {name: os.environ[name] for name in settings if name in os.environ}
    os.environ.update(settings)
    sys.path.insert(0, str(lessons_folder()))
    try:
        yield
    finally:
        sys.path.remove(str(lessons_folder()))
        for name in settings:
            del os.environ[name]
        os.environ.update(before)


def read_answers(notebook: Mapping[str, Any]) -> dict[str, object]:
    """Return the last value that the code cells of a notebook assign to each top-level variable.

    The values are parsed as literals, and the code is not run.
    """
    answers: dict[str, object] = {}
    for cell in notebook.get("cells", ()):
        if cell.get("cell_type") == "code":
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                for statement in ast.parse("".join(cell["source"])).body:
                    answers |= _assignments(statement)
    return answers


def _assignments(statement: ast.stmt) -> dict[str, object]:
    if not isinstance(statement, ast.Assign):
        return {}
    try:
        value = ast.literal_eval(statement.value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        value = _NOT_A_LITERAL
    return {target.id: value for target in statement.targets if isinstance(target, ast.Name)}


def mark_submission(lesson: str, who: str, notebook: Mapping[str, Any]) -> list[MarkedAnswer]:
    """Mark a submitted notebook, with one point for each question whose right answer depends on the learner.

    Args:
        lesson: the name of the lesson.
        who: the learner who submitted the notebook. The numbers are generated from this name, even if the notebook
            contains another name.
        notebook: the notebook as JSON.

    Raises:
        MateriaError: the lesson does not exist (``unknown_lesson``).
    """
    answers, right = read_answers(notebook), answer_key(lesson, who)
    return [
        MarkedAnswer(who, lesson, question, *_mark_answer(answers.get(question, ...), right[question]))
        for question in marked_questions(lesson)
    ]


def _mark_answer(answer: object, right: checks.AnswerKey) -> tuple[int, str]:
    if answer is _NOT_A_LITERAL:
        return 0, f"The answer is an expression, so it was not read. Write {checks.answer_form(right.truth)}."
    if checks.is_unanswered(answer):
        return 0, "The question was not answered."
    try:
        answer = checks.normalize_answer(answer, right.truth, right.graph)
    except MateriaError as error:
        return 0, str(error)
    if checks.is_right(answer, right.truth):
        return 1, "The answer is right."
    return 0, " ".join(["The answer is wrong.", *checks.explain_wrong_answer(answer, right.truth, right.hint)])


def mark_submissions(folders: Iterable[Path]) -> list[MarkedAnswer]:
    """Mark all submitted notebooks in folders.

    Args:
        folders: folders that contain files such as ``WHO/LESSON.ipynb`` or ``WHO/LESSON/LESSON.ipynb``.

    Raises:
        MateriaError: the folders do not contain a lesson (``not_found``), or a notebook cannot be read (``not_read``).
    """
    submissions = [
        (path.relative_to(folder).parts[0], path)
        for folder in folders
        for path in sorted(folder.rglob("*.ipynb"))
        if path.stem in checks.QUESTIONS and ".ipynb_checkpoints" not in path.parts and path.parent != folder
    ]
    if not submissions:
        raise MateriaError(
            "No lesson notebook was found.",
            where=", ".join(map(str, folders)),
            hint="pass a folder that contains WHO/LESSON.ipynb",
            kind="not_found",
        )
    return [mark for who, path in submissions for mark in mark_submission(path.stem, who, _read_submission(path))]


def _read_submission(path: Path) -> Mapping[str, Any]:
    try:
        notebook: Any = json.loads(read_plain(path, _MAX_NOTEBOOK_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise MateriaError(f"The notebook cannot be read: {error}.", where=str(path), kind="not_read") from None
    return notebook if isinstance(notebook, dict) else {}


def marks_table(marked: Sequence[MarkedAnswer]) -> Table:
    """Return a table with the points of each learner in each lesson, and the questions that were not answered correctly."""
    columns: dict[str, Callable[[list[MarkedAnswer]], str]] = {
        "points": lambda rows: f"{sum(row.points for row in rows)} of {len(rows)}",
        "not right": lambda rows: ", ".join(row.question for row in rows if not row.points),
    }
    return checks.table_of_learners(marked, columns)


def main(arguments: Sequence[str]) -> int:
    """Run a command and return the exit code, which is 0 for success and 1 for an error.

    Invalid arguments exit with code 2.
    """
    parser = argparse.ArgumentParser(
        prog="python -m materia_nb.lessons",
        description="Write the levels, mark lessons, and show the progress of a class.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    progress = commands.add_parser("progress", help="print a table that summarizes the guesses of a class")
    progress.add_argument(
        "paths", type=Path, nargs="+", metavar="FILE", help="files of guesses, or folders that contain such files"
    )
    mark = commands.add_parser("mark", help="mark submitted notebooks without running them")
    mark.add_argument("paths", type=Path, nargs="+", metavar="DIR", help="a folder that contains WHO/LESSON.ipynb")
    pages = commands.add_parser("levels", help="write the levels, which are played in a browser without Python")
    pages.add_argument("folder", type=Path, metavar="DIR", help="the folder for the pages")
    for command in (progress, mark):
        command.add_argument("--csv", action="store_true", help="print CSV with one line for each question")
    options = parser.parse_args(arguments)
    try:
        if options.command == "levels":
            print(f"{counted(len(write_levels(options.folder)), 'page')} written. Open {options.folder / 'index.html'}")
        elif options.command == "mark":
            marks = mark_submissions(options.paths)
            print(checks.csv_text(MarkedAnswer._fields, marks) if options.csv else repr(marks_table(marks)))
        else:
            scores = checks.read_class_scores(options.paths)
            print(checks.scores_as_csv(scores) if options.csv else repr(checks.class_table(scores)))
    except MateriaError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
