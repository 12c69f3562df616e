"""An nbgrader course of the lessons: every lesson an assignment, with numbers that vary by who does it.

A lesson becomes ``source/LESSON/LESSON.ipynb`` of the course. It holds no right answers, and no tests: nbgrader marks
it by :class:`materia_nb.lessons.grader.Marks`, which reads the answers and runs nothing of what was handed in. The
check cell, stored outputs and solutions are left out, since they tell the answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from materia_nb.cast.gallery import code_cell, markdown_cell, notebook
from materia_nb.errors import MateriaError, needs_one_of
from materia_nb.file_io import read_own, read_plain, replace_file
from materia_nb.lessons.checks import LEARNER
from materia_nb.lessons.misreadings import QUESTIONS
from materia_nb.lessons.variants import TOPICS
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
_NAMED: Final = f"%env {LEARNER}={{learner}}"


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
    return (*QUESTIONS, EXERCISES)


def marked(name: str) -> tuple[str, ...]:
    """The questions of a lesson that are marked: those whose right answers vary by the learner."""
    if name == EXERCISES:
        return tuple(f"{topic}_{one}" for topic, kind in TOPICS.items() for one in kind.asks)
    return tuple(one for one, ask in QUESTIONS[name].items() if ask.varies)


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
            copy_recordings(path.parent, read_own(path))
        config = folder / "nbgrader_config.py"
        if not config.exists():
            write_text(config, _CONFIG)
    return list(targets.values())


def assignment(name: str) -> dict[str, Any]:
    """Return the teacher's notebook of an assignment: cells tagged for nbgrader."""
    if name == EXERCISES:
        return notebook(_exercise_cells())
    book = read_notebook(lessons_folder() / f"{name}.ipynb")
    return notebook(_lesson_cells(name, book), book["metadata"])


def _lesson_cells(name: str, book: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for place, cell in enumerate(book["cells"]):
        source = source_of(cell)
        if cell["cell_type"] == "markdown":
            if not source.startswith("## Solutions"):
                yield markdown_cell(f"{source}\n\n{_NOTE}" if place == 0 else source)
            if place == 0:
                yield from _learner_cells()
        elif "parameters" in tags_of(cell):
            yield _tagged(_solved(source), "answers", solution=True)
            given = ", ".join(f"{one}={one}" for one in QUESTIONS[name])
            yield code_cell(f"mine.form({given})  # what your answers are read as")
            yield from map(_point, marked(name))
        elif "raises-exception" not in tags_of(cell):  # the check cell, which works the answers out
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


def read_notebook(path: Path) -> dict[str, Any]:
    """Read a notebook of the package as JSON."""
    book: dict[str, Any] = json.loads(read_own(path))
    return book


def source_of(cell: Mapping[str, Any]) -> str:
    """Return the source of a cell, which is one text or a list of lines."""
    return "".join(cell["source"])


def tags_of(cell: Mapping[str, Any]) -> Sequence[str]:
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


def copy_recordings(folder: Path, source: str) -> None:
    """Bring what a lesson's cells read from beside it."""
    for path in (lessons_folder() / "recordings").glob("*.json"):
        if f"recordings/{path.name}" in source:
            (folder / "recordings").mkdir(exist_ok=True)
            replace_file(folder / "recordings" / path.name, read_plain(path, follow=True))
