"""An nbgrader course of the lessons: every lesson an assignment, with its answers where only the teacher has them.

A lesson becomes ``source/LESSON/LESSON.ipynb`` of the course. What students get is made of it by nbgrader
(``nbgrader generate_assignment LESSON``), which takes out what stands between its markers: the right answers, and the
tests that hold them. Stored outputs and solutions are left out here, since they tell the answers too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from materia_nb.cast.gallery import code_cell, markdown_cell, notebook
from materia_nb.errors import MateriaError, needs_one_of
from materia_nb.file_io import read_own, read_plain, replace_file
from materia_nb.jsonvalue import JSON
from materia_nb.lessons.checks import sealed
from materia_nb.lessons.variants import TOPICS
from materia_nb.loadout.config_files import write_text
from materia_nb.store.files import disk

EXERCISES: Final = "exercises"
"""The assignment whose graphs and numbers vary by the name of who does it."""
SCHEMA: Final = 3
"""The version of nbgrader's cell metadata."""

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_ANSWER: Final = re.compile(r'^(?P<name>\w+) = sealed\("(?P<seal>[^"]+)"\)(?P<comment>.*)$')
_CONFIG: Final = """\
# Made by `python -m materia_nb.lessons release`; yours to change.
c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "materia"
# What stands in place of the right answers: nothing, so that the cell above them can be run.
c.ClearSolutions.code_stub = {"python": "# your answers stand above"}
c.ExecutePreprocessor.timeout = 120
"""
_NOTE: Final = (
    "*This lesson is marked. Put your answers in place of the dots; predictions are not marked, and may be made as "
    "often as you like.*"
)


class Question(NamedTuple):
    """One question of a lesson."""

    name: str
    answer: JSON
    comment: str


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
    found = sorted(path.stem for path in lessons_folder().glob("*.ipynb") if _questions(_read(path)))
    return (*found, EXERCISES)


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
            _copy_recordings(path.parent, read_own(path))
        config = folder / "nbgrader_config.py"
        if not config.exists():
            write_text(config, _CONFIG)
    return list(targets.values())


def assignment(name: str) -> dict[str, Any]:
    """Return the teacher's notebook of an assignment: cells tagged for nbgrader, with the right answers in them."""
    if name == EXERCISES:
        return notebook(_exercise_cells())
    book = _read(lessons_folder() / f"{name}.ipynb")
    return notebook(_lesson_cells(name, book), book["metadata"])


def _lesson_cells(name: str, book: dict[str, Any]) -> Iterator[dict[str, Any]]:
    asked = _questions(book)
    for place, cell in enumerate(book["cells"]):
        source = _source(cell)
        if cell["cell_type"] == "markdown":
            if not source.startswith("## Solutions"):
                yield markdown_cell(f"{source}\n\n{_NOTE}" if place == 0 else source)
        elif "parameters" in _tags(cell):
            yield _tagged(_answers(source, asked), "answers", solution=True)
            for one in asked:
                yield _tagged(_test(name, one), f"test-{one.name}", points=1)
        elif "raises-exception" not in _tags(cell):  # the check cell, which computes the answers
            yield code_cell(source)


def _answers(source: str, asked: Sequence[Question]) -> str:
    """The cell for the answers: dots for the student, and behind them, between nbgrader's markers, what is right."""
    lines = ["# Put your answers in place of the dots, and run this cell."]
    for line in source.splitlines():
        if found := _ANSWER.match(line):
            lines.append(f"{found['name']} = ...{found['comment']}")
        elif line.startswith("#") and "sealed" not in line:
            lines.append(line)
    right = [f"{one.name} = {one.answer!r}" for one in asked]
    return "\n".join([*lines, "### BEGIN SOLUTION", *right, "### END SOLUTION"])


def _test(lesson: str, one: Question) -> str:
    return f"""\
# {one.name} is marked here: one point.
### BEGIN HIDDEN TESTS
from materia_nb.lessons.checks import mark

mark("{lesson}", "{one.name}", {one.name}, {one.answer!r})
### END HIDDEN TESTS"""


# -- the exercises -----------------------------------------------------------------------


def _exercise_cells() -> Iterator[dict[str, Any]]:
    yield markdown_cell(
        "# Exercises\n\nEach has a loadout and what will be said in its cast, drawn from your name: your neighbour has "
        "others. Work them out on paper; nothing has to be run but these cells."
    )
    yield _tagged(
        "# Your name, as your course knows it.\nlearner = ...\n### BEGIN SOLUTION\nlearner = 'teacher'\n### END SOLUTION",
        "learner",
        solution=True,
    )
    yield code_cell("from materia_nb.lessons import exercise\n\ndrawn = {}")
    for topic, kind in TOPICS.items():
        yield markdown_cell(f"## {kind.about}")
        yield code_cell(f'drawn["{topic}"] = exercise("{topic}", str(learner))\ndrawn["{topic}"]')
        names = {one: f"{topic}_{one}" for one in kind.asks}
        stubs = [f"{names[one]} = ...  # {words}" for one, (words, _) in kind.asks.items()]
        right = [f'{names[one]} = drawn["{topic}"].answers()["{one}"]' for one in kind.asks]
        answers = "\n".join([*stubs, "### BEGIN SOLUTION", *right, "### END SOLUTION"])
        yield _tagged(answers, f"answers-{topic}", solution=True)
        given = ", ".join(f"{one}={variable}" for one, variable in names.items())
        marked = (
            f'# {kind.about} is marked here: one point.\nexercise("{topic}", str(learner)).check({given})'
        )
        yield _tagged(marked, f"test-{topic}", points=1)


# -- cells -------------------------------------------------------------------------------


def _questions(book: dict[str, Any]) -> list[Question]:
    return [
        Question(found["name"], sealed(found["seal"]).open(), found["comment"])
        for cell in book["cells"]
        if "parameters" in _tags(cell)
        for line in _source(cell).splitlines()
        if (found := _ANSWER.match(line))
    ]


def _read(path: Path) -> dict[str, Any]:
    book: dict[str, Any] = json.loads(read_own(path))
    return book


def _source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def _tags(cell: dict[str, Any]) -> Sequence[str]:
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
