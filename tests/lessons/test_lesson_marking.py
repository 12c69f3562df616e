"""Test that submitted lessons are marked by the literal answers in their cells, and that their code never runs."""

from __future__ import annotations

import json
import re

import pytest

from materia_nb.errors import MateriaError
from materia_nb.lessons.__main__ import (
    answer_key,
    lessons_folder,
    main,
    mark_submission,
    mark_submissions,
    marked_questions,
    marks_table,
    read_answers,
)
from materia_nb.lessons.checks import QUESTIONS, Numbers

LESSONS = [lesson for lesson in QUESTIONS if marked_questions(lesson)]
CHEAT = "import materia_nb.lessons.checks as k\nk.judged = k.is_right = lambda *a, **b: True"


def right_answers(lesson, learner):
    """Return the correct answers as source code, by question."""
    return {question: repr(entry.truth) for question, entry in answer_key(lesson, learner).items()}


def submission(lesson, answers):
    """Return the bundled lesson as a notebook that contains the specified answers."""
    notebook = json.loads((lessons_folder() / f"{lesson}.ipynb").read_text())
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        for question, answer in answers.items():
            stub = rf"^{question} = \.\.\."
            source = re.sub(stub, lambda _, line=f"{question} = {answer}": line, source, flags=re.MULTILINE)
        cell["source"] = source
    return notebook


def points(lesson, learner, answers):
    return sum(mark.points for mark in mark_submission(lesson, learner, submission(lesson, answers)))


@pytest.mark.parametrize("lesson", LESSONS)
def test_only_correct_answers_for_the_data_of_the_learner_earn_points(lesson):
    right, maximum = right_answers(lesson, "ada"), len(marked_questions(lesson))
    assert points(lesson, "ada", right) == maximum > 0
    assert points(lesson, " Ada ".strip().upper(), right) == maximum
    assert points(lesson, "cy", right) < maximum, "copied from Ada"
    assert points(lesson, "ada", {}) == 0
    assert points(lesson, "ada", dict.fromkeys(right, "'nowhere'")) == 0


def test_code_in_a_submission_is_never_run(tmp_path):
    notebook = submission("03-loops", {})
    notebook["cells"].append({"cell_type": "code", "metadata": {}, "source": CHEAT})
    assert sum(mark.points for mark in mark_submission("03-loops", "ada", notebook)) == 0
    written = tmp_path / "ran"
    right = answer_key("03-loops", "ada")["visits_of_plant"].truth
    for source, is_read in (
        (f"visits_of_plant = open({str(written)!r}, 'w').write('x')", False),
        (f"visits_of_plant = {right - 1} + 1", False),
        (f"visits_of_plant = {right}", True),
        (f"%materia help\nvisits_of_plant = {right}", False),
    ):
        submitted = {"cells": [{"cell_type": "code", "metadata": {}, "source": source}]}
        mark = {row.question: row for row in mark_submission("03-loops", "ada", submitted)}["visits_of_plant"]
        assert mark.points == is_read, source
        assert is_read or "is an expression" in mark.reason or "not answered" in mark.reason
    assert not written.exists()


def test_answers_in_a_submission_are_its_last_literal_assignments():
    sources = ["a = 1\nb = c = [True, 'x']", "a = -2", "def f():\n    d = 1", "e += 1", "(", "g = [f(), 1]"]
    answers = read_answers({"cells": [{"cell_type": "code", "source": source} for source in sources]})
    assert (answers["a"], answers["b"], answers["c"]) == (-2, [True, "x"], [True, "x"])
    assert answers.keys() == {"a", "b", "c", "g"}


def test_mark_command_marks_a_folder_of_submissions(tmp_path, capsys):
    right = right_answers("03-loops", "ada")
    for folder in ("ada/03-loops", "ben"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "03-loops.ipynb").write_text(json.dumps(submission("03-loops", right)))
    assert main(["mark", str(tmp_path)]) == 0
    assert "2 of 2" in capsys.readouterr().out
    assert main(["mark", "--csv", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "who,lesson,question,points,reason"
    assert "ada,03-loops,visits_of_plant,1,The answer is right." in lines
    assert marks_table(mark_submissions([tmp_path])).rows[0] == ("ada", "03-loops", "2 of 2", "")
    assert main(["mark", str(tmp_path / "ben")]) == 1
    assert "No lesson notebook" in capsys.readouterr().err


def test_unknown_lesson_and_unreadable_notebook_are_errors(tmp_path):
    with pytest.raises(MateriaError, match="The lesson '03-loop' does not exist"):
        answer_key("03-loop", "ada")
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "03-loops.ipynb").write_text("{")
    with pytest.raises(MateriaError, match="cannot be read"):
        mark_submissions([tmp_path])


def test_learner_api_has_no_method_that_returns_answers():
    names = dir(Numbers("x", "", {}))
    assert not any("answer" in name or "truth" in name for name in names if not name.startswith("_"))
