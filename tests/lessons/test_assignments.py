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
from materia_nb.lessons.__main__ import main
from materia_nb.lessons.assignments import (
    EXERCISES,
    answers_in,
    assignment,
    key,
    lesson_names,
    lessons_folder,
    mark_all,
    marked,
    marks,
    marks_table,
    release,
)
from materia_nb.lessons.checks import QUESTIONS

LESSONS = lesson_names()
REGION = re.compile(r"^### BEGIN (\w+ ?\w*)$.*?^### END \1$\n?", re.DOTALL | re.MULTILINE)
ANSWER = re.compile(r"^(\w+) = \.\.\.", re.MULTILINE)
CLASS = os.environ.get("MATERIA_CLASS", "03-loops")
MARKED = LESSONS if CLASS == "all" else tuple(CLASS.split(","))
"""What nbgrader marks here: one lesson in half a minute. `make class` takes all."""
CHEAT = "import materia_nb.lessons.checks as k\nk.judged = k.is_right = lambda *a, **b: True"


def tagged(book):
    return [cell for cell in book["cells"] if "nbgrader" in cell["metadata"]]


def right_of(name, who):
    """What somebody who is right hands in, by variable, as it is typed."""
    right = {question: repr(one.truth) for question, one in key(name, who).items()}
    return {**right, "learner": repr(who)}


def filled(name, answers):
    """What students get, with these answers in it, by variable."""
    book = json.loads(json.dumps(assignment(name)))
    for cell in book["cells"]:
        source = REGION.sub("", "".join(cell["source"]))
        for variable, answer in answers.items():
            pattern = rf"^{variable} = \.\.\."
            source = re.sub(pattern, lambda _, x=f"{variable} = {answer}": x, source, flags=re.MULTILINE)
        cell["source"] = source
    return book


def points(name, who, answers):
    return sum(one.points for one in marks(name, who, filled(name, answers)))


@pytest.mark.parametrize("name", LESSONS)
def test_an_assignment_is_a_notebook_whose_marks_nbgrader_can_give(name):
    book = assignment(name)
    nbformat.validate(nbformat.from_dict(book))
    tags = [cell["metadata"]["nbgrader"] for cell in tagged(book)]
    assert len({one["grade_id"] for one in tags}) == len(tags)
    for one in tags:
        assert one["schema_version"] == 3
        assert one["grade"] == one["locked"] == ("points" in one) != one["solution"]
    assert sum(one.get("points", 0) for one in tags) == len(marked(name)) > 0
    assert not any(cell.get("outputs") for cell in book["cells"])


@pytest.mark.parametrize("name", LESSONS)
def test_a_student_finds_no_answer_in_the_notebook(name):
    book = assignment(name)
    left = [REGION.sub("", "".join(cell["source"])) for cell in book["cells"]]
    assert not any("SOLUTION" in one or "## Solutions" in one or "mine.check(" in one for one in left)
    stubs = [stub for one in left for stub in ANSWER.findall(one)]
    asked = marked(name) if name == EXERCISES else QUESTIONS[name]
    assert sorted(stubs) == sorted({*asked, "learner"})


@pytest.mark.parametrize("name", LESSONS)
def test_an_assignment_can_be_worked_in_as_it_was_handed_out_and_when_it_is_answered(name, shell, project):
    """Cell by cell, with what each answer is read as, and nothing of whether it is right."""
    (project / "recordings").symlink_to(lessons_folder() / "recordings")
    told = ""
    for cell in filled(name, right_of(name, "ada"))["cells"]:
        if cell["cell_type"] == "code":
            done = shell.run_cell(cell["source"])
            assert done.success, cell["source"]
            told += str(done.result) if "mine.form(" in cell["source"] else ""
    assert name == EXERCISES or all(f"· {question}: " in told for question in QUESTIONS[name])
    assert "right" not in told


@pytest.mark.parametrize("name", LESSONS)
def test_marks_are_given_for_right_answers_alone_and_to_whom_they_belong(name):
    right, most = right_of(name, "ada"), len(marked(name))
    assert points(name, "ada", right) == most
    assert points(name, " Ada ".strip().upper(), right) == most
    assert points(name, "cy", right) < most, "copied from Ada"
    assert points(name, "ada", {}) == 0
    assert points(name, "ada", dict.fromkeys(right, "'nowhere'")) == 0


def test_what_was_handed_in_is_read_and_never_run(tmp_path):
    """A changed package, a sum and a call earn nothing, and nothing of them happens."""
    book = filled("03-loops", {"learner": "'ada'"})
    book["cells"].append({"cell_type": "code", "metadata": {}, "source": CHEAT})
    assert sum(one.points for one in marks("03-loops", "ada", book)) == 0
    here = tmp_path / "ran"
    right = key("03-loops", "ada")["visits_of_plant"].truth
    for source, read in (
        (f"visits_of_plant = open({str(here)!r}, 'w').write('x')", False),
        (f"visits_of_plant = {right - 1} + 1", False),
        (f"visits_of_plant = {right}", True),
        (f"%materia help\nvisits_of_plant = {right}", False),
    ):
        handed_in = {"cells": [{"cell_type": "code", "metadata": {}, "source": source}]}
        found = {one.question: one for one in marks("03-loops", "ada", handed_in)}["visits_of_plant"]
        assert found.points == read, source
        assert read or "not written as a plain value" in found.told or "not answered" in found.told
    assert not here.exists()


def test_answers_are_the_latest_plain_values_at_the_top_of_cells():
    sources = ["a = 1\nb = c = [True, 'x']", "a = -2", "def f():\n    d = 1", "e += 1", "(", "g = [f(), 1]"]
    book = {"cells": [{"cell_type": "code", "source": one} for one in sources]}
    found = answers_in(book)
    assert (found["a"], found["b"], found["c"]) == (-2, [True, "x"], [True, "x"])
    assert found.keys() == {"a", "b", "c", "g"}


def test_a_course_that_was_handed_in_is_marked_by_the_command(tmp_path, capsys):
    for who, answers in (("ada", right_of("03-loops", "ada")), ("ben", right_of("03-loops", "ada"))):
        place = tmp_path / "submitted" / who / "03-loops"
        place.mkdir(parents=True)
        (place / "03-loops.ipynb").write_text(json.dumps(filled("03-loops", answers)))
    assert main(["mark", str(tmp_path / "submitted")]) == 0
    assert "2 of 2" in capsys.readouterr().out
    assert main(["mark", "--csv", str(tmp_path / "submitted")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "who,lesson,question,points,told"
    assert "ada,03-loops,visits_of_plant,1,It is right." in lines
    assert any("worked out for 'ada', and 'ben' handed it in" in line for line in lines)
    rows = marks_table(mark_all([tmp_path / "submitted"])).rows
    assert rows[0] == ("ada", "03-loops", "2 of 2", "")
    assert main(["mark", str(tmp_path / "submitted" / "ada" / "03-loops")]) == 1
    assert "no notebook of a lesson" in capsys.readouterr().err


def test_the_key_of_a_learner_is_for_teachers_and_no_method_of_what_a_learner_has(capsys):
    from materia_nb.lessons import exercise
    from materia_nb.lessons.checks import Numbers

    assert main(["key", "03-loops", "ada"]) == 0
    told = capsys.readouterr().out
    assert f"visits_of_plant = {right_of('03-loops', 'ada')['visits_of_plant']}" in told
    assert "after_the_last_check = 'Socket-4'" in told
    assert main(["key", "exercises", "ada"]) == 0
    assert "edges_route = ['Socket-1'" in capsys.readouterr().out
    assert main(["key", "03-loop", "ada"]) == 1
    offered = [name for one in (exercise("edges", "ada"), Numbers("x", "", {})) for name in dir(one)]
    assert not any("answer" in name or "truth" in name for name in offered if not name.startswith("_"))


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
        right = right_of(name, "ada")
        most[name] = len(marked(name))
        submit(tmp_path, name, "ada", right)
        wrong = {variable: "'nowhere'" for variable in right if variable != "learner"}
        submit(tmp_path, name, "ben", {**wrong, "learner": f"'ben'\n{CHEAT}"})
        submit(tmp_path, name, "dan", {})
        submit(tmp_path, name, "cy", {**right, "learner": "'cy'"})  # copied from Ada
        nbgrader("autograde", name, "--create")
    nbgrader("export", "--to", "grades.csv")
    rows = list(csv.DictReader((tmp_path / "grades.csv").open()))
    scores = {(row["assignment"], row["student_id"]): float(row["score"] or 0) for row in rows}
    for name in MARKED:
        assert scores[name, "ada"] == most[name]
        assert scores[name, "ben"] == scores[name, "dan"] == 0
        assert scores[name, "cy"] < most[name], "another name, other numbers"
    made = json.loads((tmp_path / "release" / MARKED[0] / f"{MARKED[0]}.ipynb").read_text())
    assert "BEGIN" not in str(made)
