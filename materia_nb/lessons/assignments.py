"""An nbgrader course of the lessons, every lesson an assignment, and the marks of what was handed in.

A lesson becomes ``source/LESSON/LESSON.ipynb`` of the course. It holds no right answers, and no tests: nbgrader marks
it by :class:`materia_nb.lessons.grader.Marks`, which reads the answers and runs nothing of what was handed in. The
check cell, stored outputs and solutions are left out, since they tell the answers.

Answers are read as literals out of the cells. What is right is worked out here: the lesson as it is in the package is
run with the numbers of whoever handed it in.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from materia_nb.cast.gallery import code_cell, markdown_cell, notebook
from materia_nb.display.blocks import Table
from materia_nb.errors import MateriaError, needs_one_of
from materia_nb.file_io import read_package_text, read_plain, replace_file
from materia_nb.lessons import checks
from materia_nb.lessons.variants import TOPICS, exercise, right_answers
from materia_nb.loadout.config_files import write_text
from materia_nb.store.files import disk

EXERCISES: Final = "exercises"
"""The assignment whose graphs and numbers vary by the name of who does it."""
SCHEMA: Final = 3
"""The version of nbgrader's cell metadata."""
PROGRAM: Final = "python -m materia_nb.lessons"

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_CONFIG: Final = """\
# Made by `python -m materia_nb.lessons release`; yours to change.
c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "materia"
c.ClearSolutions.code_stub = {"python": "# your answers are above"}
# Answers are read and compared; nothing of what was handed in is run.
c.Autograde.autograde_preprocessors = [
    "materia_nb.lessons.grader.Marks",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.CheckCellMetadata",
]
"""
_NOTE: Final = (
    "*This lesson is marked. Put your answers in place of the dots, as plain values: they are read, not run. "
    "Predictions are not marked, and may be made as often as you like.*"
)
_LEARNER: Final = """\
# Your name, as your course knows it, in quotes: your numbers are drawn from it.
learner = ...
### BEGIN SOLUTION
learner = "teacher"
### END SOLUTION"""
_NAMED: Final = f"%env {checks.LEARNER}={{learner}}"


def lessons_folder() -> Path:
    """The folder of the notebooks: in the package, or beside it in a checkout.

    Raises:
        MateriaError: they are at neither place (``not_found``).
    """
    for folder in (_PACKAGE / "notebooks", _PACKAGE.parent / "notebooks"):
        if folder.is_dir():
            return folder
    raise MateriaError("The lessons are not here.", where=str(_PACKAGE), kind="not_found")


def lesson_names() -> tuple[str, ...]:
    """The lessons that have questions, and the exercises."""
    return (*checks.QUESTIONS, EXERCISES)


def marked(name: str) -> tuple[str, ...]:
    """The questions of a lesson that are marked: those whose right answers vary by the learner."""
    if name == EXERCISES:
        return tuple(f"{topic}_{one}" for topic, kind in TOPICS.items() for one in kind.asks)
    return tuple(one for one, ask in checks.QUESTIONS[name].items() if ask.varies)


def release(folder: Path, lessons: Sequence[str] = ()) -> list[Path]:
    """Write an nbgrader course.

    Args:
        folder: the folder of the course; made if it is not there. A config that is there stays.
        lessons: which; all and the exercises if left out.

    Returns:
        The notebooks that were written.

    Raises:
        MateriaError: there is no such lesson (``unknown_lesson``), an assignment is there already (``exists``), or
            the disk refuses it.
    """
    known = lesson_names()
    for name in lessons:
        needs_one_of(name, known, f"There is no lesson {name!r}.", "unknown_lesson")
    wanted = list(dict.fromkeys(lessons)) or list(known)
    targets = {name: folder / "source" / name / f"{name}.ipynb" for name in wanted}
    for name, path in targets.items():
        if path.exists():
            raise MateriaError(
                f"The assignment {name} is there already. Nothing was written.",
                where=str(path),
                hint="name another folder, or remove it",
                kind="exists",
            )
    with disk(folder, "write the course"):
        for name, path in targets.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(assignment(name), ensure_ascii=False, indent=1) + "\n")
            _copy_recordings(path.parent, read_package_text(path))
        config = folder / "nbgrader_config.py"
        if not config.exists():
            write_text(config, _CONFIG)
    return list(targets.values())


def assignment(name: str) -> dict[str, Any]:
    """Return the teacher's notebook of an assignment: cells tagged for nbgrader."""
    if name == EXERCISES:
        return notebook(_exercise_cells())
    book = _read_notebook(lessons_folder() / f"{name}.ipynb")
    return notebook(_lesson_cells(name, book), book["metadata"])


def _lesson_cells(name: str, book: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for place, cell in enumerate(book["cells"]):
        source = _source_of(cell)
        if cell["cell_type"] == "markdown":
            if not source.startswith("## Solutions"):
                yield markdown_cell(f"{source}\n\n{_NOTE}" if place == 0 else source)
            if place == 0:
                yield from _learner_cells()
        elif "parameters" in _tags_of(cell):
            yield _tagged(_solved(source), "answers", solution=True)
            given = ", ".join(f"{one}={one}" for one in checks.QUESTIONS[name])
            yield code_cell(
                f"mine.form({given})  # how your answers are read; only plain values count: 4, not 2 + 2"
            )
            yield from map(_point, marked(name))
        elif "raises-exception" not in _tags_of(cell):  # the check cell, which works the answers out
            yield code_cell(source)


def _learner_cells() -> Iterator[dict[str, Any]]:
    yield _tagged(_LEARNER, "learner", solution=True)
    yield code_cell(_NAMED)


def _solved(source: str) -> str:
    """A cell to be filled. nbgrader wants to know where answers of the teacher would be."""
    return f"{source}\n### BEGIN SOLUTION\n# {PROGRAM} key LESSON NAME\n### END SOLUTION"


def _point(question: str) -> dict[str, Any]:
    """Where the mark of a question is shown."""
    return _tagged(f"# {question} is marked here: one point.", f"test-{question}", points=1)


# -- the exercises -----------------------------------------------------------------------


def _exercise_cells() -> Iterator[dict[str, Any]]:
    yield markdown_cell(
        "# Exercises\n\nEach has a loadout and what will be said in its cast, drawn from your name: your neighbour has "
        f"others. Work them out on paper; you need to run nothing but these cells.\n\n{_NOTE}"
    )
    yield from _learner_cells()
    yield code_cell("from materia_nb.lessons import exercise")
    for topic, kind in TOPICS.items():
        yield markdown_cell(f"## {kind.about}")
        yield code_cell(f'exercise("{topic}", str(learner))')
        stubs = [f"{topic}_{one} = ...  # {words}" for one, (words, _) in kind.asks.items()]
        yield _tagged(_solved("\n".join(stubs)), f"answers-{topic}", solution=True)
        yield from (_point(f"{topic}_{one}") for one in kind.asks)


# -- cells -------------------------------------------------------------------------------


def _read_notebook(path: Path) -> dict[str, Any]:
    """Read a notebook of the package as JSON."""
    book: dict[str, Any] = json.loads(read_package_text(path))
    return book


def _source_of(cell: Mapping[str, Any]) -> str:
    """Return the source of a cell, which is one text or a list of lines."""
    return "".join(cell["source"])


def _tags_of(cell: Mapping[str, Any]) -> Sequence[str]:
    """Return the tags of a cell."""
    tags: Sequence[str] = cell["metadata"].get("tags", ())
    return tags


def _tagged(
    source: str, grade_id: str, *, points: int | None = None, solution: bool = False
) -> dict[str, Any]:
    """A cell that nbgrader knows: one that a student fills, or one that is marked."""
    tag: dict[str, Any] = {
        "schema_version": SCHEMA,
        "grade_id": grade_id,
        "grade": points is not None,
        "solution": solution,
        "locked": points is not None,
        "task": False,
    }
    if points is not None:
        tag["points"] = points
    return {**code_cell(source), "metadata": {"nbgrader": tag}}


def _copy_recordings(folder: Path, source: str) -> None:
    """Bring what a lesson's cells read from beside it."""
    for path in (lessons_folder() / "recordings").glob("*.json"):
        if f"recordings/{path.name}" in source:
            (folder / "recordings").mkdir(exist_ok=True)
            replace_file(folder / "recordings" / path.name, read_plain(path, follow=True))


_UNREAD: Final = object()
"""What was written is not a literal, such as a sum or a call."""


_LONGEST: Final = 2**26


class MarkedAnswer(NamedTuple):
    """What one question earned: 1 or 0, and why in words."""

    who: str
    lesson: str
    question: str
    points: int
    told: str


@cache
def key(lesson: str, learner: str) -> Mapping[str, checks.AnswerKey]:
    """Return what is right in a lesson for a learner, by question: the teacher's key.

    Args:
        lesson: the name of a lesson, or ``exercises``.
        learner: from whose name its numbers are drawn.

    Raises:
        MateriaError: there is no such lesson (``unknown_lesson``).
    """
    needs_one_of(lesson, lesson_names(), f"There is no lesson {lesson!r}.", "unknown_lesson")
    if lesson == EXERCISES:
        drawn = [exercise(topic, learner) for topic in TOPICS]
        return {
            f"{one.topic}_{name}": checks.AnswerKey(truth, checks.Ask(checks.kind_of(truth)), one.graph)
            for one in drawn
            for name, truth in right_answers(one).items()
        }
    return checks.key_of(_run(lesson, learner))


def _run(lesson: str, learner: str) -> checks.Numbers:
    """Run the lesson of the package in a folder that goes again; what it drew and compared."""
    from materia_nb.magics import run_cells

    book = _read_notebook(lessons_folder() / f"{lesson}.ipynb")
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    (check,) = (place for place, cell in enumerate(code) if "raises-exception" in _tags_of(cell))
    with tempfile.TemporaryDirectory(prefix="materia-marks-") as place:
        _copy_recordings(Path(place), json.dumps(book))
        own = {checks.LEARNER: learner, checks.PLACE: str(Path(place) / "guesses.jsonl")}
        with contextlib.chdir(place), _environment(own):
            names = run_cells((_source_of(cell), cell is code[check]) for cell in code[: check + 1])
            names["wb"].close()
    mine = names["mine"]
    assert isinstance(mine, checks.Numbers)  # noqa: S101 - a lesson of the package
    return mine


@contextlib.contextmanager
def _environment(own: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def answers_in(book: Mapping[str, Any]) -> dict[str, object]:
    """Return what a notebook assigns at the top of its code cells, the latest of each name.

    A value is read as a literal and never run; what is none is :data:`_UNREAD`.
    """
    found: dict[str, object] = {}
    for cell in book.get("cells", ()):
        if cell.get("cell_type") == "code":
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                for line in ast.parse(_source_of(cell)).body:
                    found |= _assigned(line)
    return found


def _assigned(line: ast.stmt) -> dict[str, object]:
    if not isinstance(line, ast.Assign):
        return {}
    try:
        value = ast.literal_eval(line.value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        value = _UNREAD
    return {target.id: value for target in line.targets if isinstance(target, ast.Name)}


def marks(lesson: str, who: str, book: Mapping[str, Any]) -> list[MarkedAnswer]:
    """Mark what somebody handed in: a point for each question whose right answer varies by the learner.

    Args:
        lesson: which.
        who: who handed it in; the numbers are those of this name, whatever name is in the notebook.
        book: the notebook, as JSON.

    Raises:
        MateriaError: as :func:`key`.
    """
    given, right = answers_in(book), key(lesson, who)
    name = given.get("learner", ...)
    other = isinstance(name, str) and name.strip().casefold() != who.casefold()
    note = f" The notebook was worked out for {name!r}, and {who!r} handed it in." if other else ""
    found = []
    for question in marked(lesson):
        points, reason = _marked(given.get(question, ...), right[question])
        found.append(MarkedAnswer(who, lesson, question, points, reason if points else reason + note))
    return found


def _marked(answer: object, right: checks.AnswerKey) -> tuple[int, str]:
    if answer is _UNREAD:
        return 0, f"It is not written as a plain value, so it was not read. The answer is {right.ask.form}."
    if checks.is_unanswered(answer):
        return 0, "It was not answered."
    try:
        answer = checks.taken(answer, right.truth, right.graph)
    except MateriaError as error:
        return 0, str(error)
    if checks.is_right(answer, right.truth):
        return 1, "It is right."
    return 0, " ".join(["It is not right.", *checks.told_of(answer, right.truth, right.ask)])


def mark_all(folders: Iterable[Path]) -> list[MarkedAnswer]:
    """Mark all notebooks of folders, as nbgrader collects them: ``WHO/LESSON/LESSON.ipynb``, or ``WHO/LESSON.ipynb``.

    Raises:
        MateriaError: there is no lesson in them (``not_found``), or a notebook cannot be read (``not_read``).
    """
    names = set(lesson_names())
    found = [
        (path.relative_to(folder).parts[0], path)
        for folder in folders
        for path in sorted(folder.rglob("*.ipynb"))
        if path.stem in names and ".ipynb_checkpoints" not in path.parts and path.parent != folder
    ]
    if not found:
        raise MateriaError(
            "There is no notebook of a lesson.",
            where=", ".join(map(str, folders)),
            hint="name a folder that holds WHO/LESSON/LESSON.ipynb",
            kind="not_found",
        )
    return [one for who, path in found for one in marks(path.stem, who, _handed_in(path))]


def _handed_in(path: Path) -> Mapping[str, Any]:
    try:
        book: Any = json.loads(read_plain(path, _LONGEST))
    except (OSError, ValueError, RecursionError) as error:
        raise MateriaError(
            f"The notebook cannot be read: {error}.", where=str(path), kind="not_read"
        ) from None
    return book if isinstance(book, dict) else {}


def marks_table(found: Sequence[MarkedAnswer]) -> Table:
    """Return a table of marks: for each learner and lesson how many points, and which questions earned none."""
    columns: dict[str, Callable[[list[MarkedAnswer]], str]] = {
        "points": lambda all_: f"{sum(one.points for one in all_)} of {len(all_)}",
        "not right": lambda all_: ", ".join(one.question for one in all_ if not one.points),
    }
    return checks.table_of_learners(found, columns)


def marks_as_csv(found: Sequence[MarkedAnswer]) -> str:
    """Return marks as CSV, a line for each question."""
    return checks.csv_text(MarkedAnswer._fields, found)


def key_text(lesson: str, learner: str) -> str:
    """Return the key of a lesson as lines, ``name = answer``."""
    return "\n".join(f"{name} = {one.truth!r}" for name, one in key(lesson, learner).items())
