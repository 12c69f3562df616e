"""The lessons as an nbgrader course: tagged cells, nothing that tells an answer, and marks by nbgrader itself."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import nbgrader_env
from materia_nb.errors import MateriaError
from materia_nb.lessons import Exercise
from materia_nb.lessons.__main__ import main
from materia_nb.lessons.assignments import (
    EXERCISES,
    assignment,
    lesson_names,
    lessons_folder,
    release,
)
from materia_nb.lessons.checks import mark
from materia_nb.lessons.variants import TOPICS

LESSONS = lesson_names()
REGION = re.compile(r"^### BEGIN (\w+ ?\w*)$.*?^### END \1$\n?", re.DOTALL | re.MULTILINE)
ANSWER = re.compile(r"^(\w+) = \.\.\.", re.MULTILINE)
CLASS = os.environ.get("MATERIA_CLASS", "03-loops")
MARKED = LESSONS if CLASS == "all" else tuple(CLASS.split(","))
"""What nbgrader marks here: one lesson in half a minute. `make class` takes all."""


def tagged(book):
    return [cell for cell in book["cells"] if "nbgrader" in cell["metadata"]]


def right_of(name):
    """The right answers, which stand in the teacher's copy."""
    found = {}
    for cell in tagged(assignment(name)):
        for line in re.findall(
            r"^### BEGIN SOLUTION\n(.*?)^### END", cell["source"], re.DOTALL | re.MULTILINE
        ):
            found |= dict(re.findall(r"^(\w+) = (.+)$", line, re.MULTILINE))
    return found


@pytest.mark.parametrize("name", LESSONS)
def test_an_assignment_is_a_notebook_whose_marks_nbgrader_can_give(name):
    book = assignment(name)
    nbformat.validate(nbformat.from_dict(book))
    tags = [cell["metadata"]["nbgrader"] for cell in tagged(book)]
    assert len({one["grade_id"] for one in tags}) == len(tags)
    for one in tags:
        assert one["schema_version"] == 3
        assert one["grade"] == one["locked"] == ("points" in one) != one["solution"]
    points = sum(one.get("points", 0) for one in tags)
    assert points == (len(TOPICS) if name == EXERCISES else len(right_of(name))) > 0
    assert not any(cell.get("outputs") for cell in book["cells"])


@pytest.mark.parametrize("name", LESSONS)
def test_a_student_finds_no_answer_in_the_notebook(name):
    """Without the regions that nbgrader takes out."""
    book, right = assignment(name), right_of(name)
    left = [REGION.sub("", cell["source"]) for cell in book["cells"]]
    assert not any("SOLUTION" in one or "HIDDEN" in one or 'sealed("' in one for one in left)
    assert not any("## Solutions" in one or "mark(" in one for one in left)
    stubs = [stub for one in left for stub in ANSWER.findall(one)]
    assert sorted(stubs) == sorted(right)
    text = "\n".join(left)
    assert not any(f"{stub} = {right[stub]}" in text or f"({stub}, " in text for stub in stubs)


@pytest.mark.parametrize("name", LESSONS)
@pytest.mark.parametrize("answered", [True, False])
def test_the_tests_of_an_assignment_pass_for_right_answers_alone(name, answered, shell, project):
    """As nbgrader runs them: cell by cell, whatever failed before."""
    (project / "recordings").symlink_to(lessons_folder() / "recordings")
    for cell in assignment(name)["cells"]:
        if cell["cell_type"] == "code":
            tag = cell["metadata"].get("nbgrader", {})
            source = cell["source"] if answered or not tag.get("solution") else REGION.sub("", cell["source"])
            done = shell.run_cell(source)
            assert done.success == (answered or not tag.get("grade")), source


def test_a_mark_is_given_for_the_right_answer_alone():
    assert "is right" in str(mark("03-loops", "visits_of_plant", 3, 3))
    for given in (2, "3", ..., None):
        with pytest.raises(MateriaError):
            mark("03-loops", "visits_of_plant", given, 3)


def test_a_course_is_written_whole_or_not_at_all(tmp_path, capsys):
    assert main(["release", str(tmp_path), "03-loops", "09-a-real-model"]) == 0
    assert [path.name for path in tmp_path.glob("source/*/*")].count("recordings") == 1
    (tmp_path / "nbgrader_config.py").write_text("mine")
    with pytest.raises(MateriaError, match="03-loops is there already"):
        release(tmp_path)
    assert not (tmp_path / "source" / "01-edges").exists()
    release(tmp_path, ["01-edges"])
    assert (tmp_path / "nbgrader_config.py").read_text() == "mine"
    assert main(["release", str(tmp_path), "03-loop"]) == 1
    assert "03-loops" in capsys.readouterr().err


# -- by nbgrader itself ----------------------------------------------------------------------


def grader():
    """The Python that has nbgrader: this one, or that of build/nbgrader; None where there is none."""
    return Path(sys.executable) if importlib.util.find_spec("nbgrader") else nbgrader_env.python()


def submit(course, name, student, answers):
    """Hand in what students got, with these answers in it."""
    book = nbformat.read(course / "release" / name / f"{name}.ipynb", as_version=4)
    for cell in book.cells:
        for variable, answer in answers.items():
            cell.source = re.sub(
                rf"^{variable} = \.\.\.",
                lambda _, x=f"{variable} = {answer}": x,
                cell.source,
                flags=re.MULTILINE,
            )
    place = course / "submitted" / student / name
    place.mkdir(parents=True)
    for extra in (course / "release" / name).glob("*/*"):
        (place / extra.parent.name).mkdir(exist_ok=True)
        (place / extra.parent.name / extra.name).write_bytes(extra.read_bytes())
    nbformat.write(book, place / f"{name}.ipynb")


def exercise_answers(learner):
    return {"learner": repr(learner)} | {
        f"{topic}_{asked}": repr(answer)
        for topic in TOPICS
        for asked, answer in Exercise(topic, learner).answers().items()
    }


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(
    grader() is None, reason="nbgrader is not installed; `make class` puts it into build/nbgrader"
)
def test_nbgrader_gives_full_marks_for_right_answers_none_for_wrong_and_none_as_shipped(tmp_path):
    python = grader()
    release(tmp_path, MARKED)
    (tmp_path / "nbgrader_config.py").open("a").write("c.JupyterApp.answer_yes = True\n")
    environment = {
        **os.environ,
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",  # nbgrader asks alembic by name
        "PYTHONPATH": str(nbgrader_env.ROOT),
    }

    def nbgrader(*arguments):
        command = [str(python), "-m", "nbgrader", *arguments]
        done = subprocess.run(
            command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    most = {}
    for name in MARKED:
        nbgrader("generate_assignment", name)
        right = exercise_answers("ada") if name == EXERCISES else right_of(name)
        most[name] = len(TOPICS) if name == EXERCISES else len(right)
        submit(tmp_path, name, "ada", right)
        wrong = {variable: "'nowhere'" for variable in right if variable != "learner"}
        submit(tmp_path, name, "ben", {**wrong, "learner": "'ben'"})
        submit(tmp_path, name, "cy", {})
        if name == EXERCISES:
            submit(tmp_path, name, "dan", {**right, "learner": "'dan'"})  # copied from Ada
        nbgrader("autograde", name, "--create")
    nbgrader("export", "--to", "grades.csv")
    rows = list(csv.DictReader((tmp_path / "grades.csv").open()))
    scores = {(row["assignment"], row["student_id"]): float(row["score"] or 0) for row in rows}
    for name in MARKED:
        assert scores[name, "ada"] == most[name]
        assert scores[name, "ben"] == scores[name, "cy"] == 0
    if EXERCISES in MARKED:
        assert scores[EXERCISES, "dan"] < most[EXERCISES], "another name, other exercises"
    made = json.loads((tmp_path / "release" / MARKED[0] / f"{MARKED[0]}.ipynb").read_text())
    assert "BEGIN" not in str(made)
