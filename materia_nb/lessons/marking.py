"""Marks of lessons that were handed in, given without running anything of what was handed in.

Answers are read as literals out of the cells. What is right is worked out here: the lesson as it is in the package is
run with the numbers of whoever handed it in.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from materia_nb.display.blocks import Table
from materia_nb.errors import MateriaError, needs_one_of
from materia_nb.file_io import read_plain
from materia_nb.lessons.assignments import (
    EXERCISES,
    copy_recordings,
    lesson_names,
    lessons_folder,
    marked,
    read_notebook,
    source_of,
    tags_of,
)
from materia_nb.lessons.checks import LEARNER, PLACE, csv_text, is_missing, is_right, kind_of, taken, told_of
from materia_nb.lessons.misreadings import Ask
from materia_nb.lessons.numbers import Key, Numbers, key_of
from materia_nb.lessons.variants import TOPICS, exercise, right_answers

UNREAD: Final = object()
"""What was written is no literal, such as a sum or a call."""


_LONGEST: Final = 2**26


class Mark(NamedTuple):
    """What one question earned: 1 or 0, and why in words."""

    who: str
    lesson: str
    question: str
    points: int
    told: str


@cache
def key(lesson: str, learner: str) -> Mapping[str, Key]:
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
            f"{one.topic}_{name}": Key(truth, Ask(kind_of(truth)), one.graph)
            for one in drawn
            for name, truth in right_answers(one).items()
        }
    return key_of(_run(lesson, learner))


def _run(lesson: str, learner: str) -> Numbers:
    """Run the lesson of the package in a folder that goes again; what it drew and compared."""
    from materia_nb.magics.unattended import run_cells

    book = read_notebook(lessons_folder() / f"{lesson}.ipynb")
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    (check,) = (place for place, cell in enumerate(code) if "raises-exception" in tags_of(cell))
    with tempfile.TemporaryDirectory(prefix="materia-marks-") as place:
        copy_recordings(Path(place), json.dumps(book))
        own = {LEARNER: learner, PLACE: str(Path(place) / "guesses.jsonl")}
        with contextlib.chdir(place), _environment(own):
            names = run_cells((source_of(cell), cell is code[check]) for cell in code[: check + 1])
            names["wb"].close()
    mine = names["mine"]
    assert isinstance(mine, Numbers)  # noqa: S101 - a lesson of the package
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

    A value is read as a literal and never run; what is none is :data:`UNREAD`.
    """
    found: dict[str, object] = {}
    for cell in book.get("cells", ()):
        if cell.get("cell_type") == "code":
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                for line in ast.parse(source_of(cell)).body:
                    found |= _assigned(line)
    return found


def _assigned(line: ast.stmt) -> dict[str, object]:
    if not isinstance(line, ast.Assign):
        return {}
    try:
        value = ast.literal_eval(line.value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        value = UNREAD
    return {target.id: value for target in line.targets if isinstance(target, ast.Name)}


def marks(lesson: str, who: str, book: Mapping[str, Any]) -> list[Mark]:
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
        points, told = _marked(given.get(question, ...), right[question])
        found.append(Mark(who, lesson, question, points, told if points else told + note))
    return found


def _marked(answer: object, right: Key) -> tuple[int, str]:
    if answer is UNREAD:
        return 0, f"It is not written as a plain value, so it was not read. The answer is {right.ask.form}."
    if is_missing(answer):
        return 0, "It was not answered."
    try:
        answer = taken(answer, right.truth, right.graph)
    except MateriaError as error:
        return 0, str(error)
    if is_right(answer, right.truth):
        return 1, "It is right."
    return 0, " ".join(["It is not right.", *told_of(answer, right.truth, right.ask)])


def mark_all(folders: Iterable[Path]) -> list[Mark]:
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


def marks_table(found: Sequence[Mark]) -> Table:
    """Return a table of marks: for each learner and lesson how many points, and which questions earned none."""
    groups: dict[tuple[str, str], list[Mark]] = {}
    for one in found:
        groups.setdefault((one.who, one.lesson), []).append(one)
    rows = [
        (
            who,
            lesson,
            f"{sum(one.points for one in all_)} of {len(all_)}",
            ", ".join(one.question for one in all_ if not one.points),
        )
        for (who, lesson), all_ in groups.items()
    ]
    return Table(("who", "lesson", "points", "not right"), rows)


def as_csv(found: Sequence[Mark]) -> str:
    """Return marks as CSV, a line for each question."""
    return csv_text(Mark._fields, found)


def key_text(lesson: str, learner: str) -> str:
    """Return the key of a lesson as lines, ``name = answer``."""
    return "\n".join(f"{name} = {one.truth!r}" for name, one in key(lesson, learner).items())
