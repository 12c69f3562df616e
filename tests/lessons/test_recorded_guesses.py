"""Test the recorded answers of a learner and of a class: files, scores and tables."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

from magics_helpers import line
from materia_nb.errors import MateriaError
from materia_nb.lessons import Question
from materia_nb.lessons.checks import (
    class_table,
    guesses_file,
    judge_answers,
    read_class_scores,
    read_guesses,
    scores,
    scores_as_csv,
)


def check(lesson, **questions):
    return judge_answers(lesson, "", {}, questions)


def test_answers_and_predictions_are_recorded_and_counted(cast, shell):
    check("03-loops", visits=(3, 3))
    for answer in (1, 1, 2, 3):
        with pytest.raises(MateriaError):
            check("04-rework", drafts=(answer, 5), other=(..., 1))
    Question(cast, name="08-x/the-way").guess("end")
    with pytest.raises(MateriaError):
        judge_answers("edges", "Ada", {}, {"route": (["Socket-1"], ["Socket-2"])})
    with suppress(MateriaError):
        check("05-utilities", runs=(1, 2))
    check("05-utilities", runs=(2, 2))
    rows = line(shell, "predict --progress").rows
    assert rows[0] == ("03-loops", "visits", "1", "✓", "1")
    assert rows[1] == ("04-rework", "drafts", "3", "✗", "0")
    assert rows[2][:2] == ("08-x", "the-way")
    assert rows[3] == ("edges (Ada)", "route", "1", "✗", "0")
    assert rows[4] == ("05-utilities", "runs", "2", "✓", "0.5"), "the second try counts half"
    recorded_guesses = read_guesses(guesses_file())
    assert {recorded_guess.who for recorded_guess in recorded_guesses} == {""}, "no name that was not given"


def test_missing_or_unreadable_guesses_file_does_not_raise(shell, tmp_path, monkeypatch):
    assert "No answers yet. Answer a question in a lesson first." in repr(line(shell, "predict --progress"))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MATERIA_GUESSES", str(tmp_path / "file" / "guesses.jsonl"))
    assert "is right" in str(check("", a=(1, 1)))


def test_progress_files_of_a_class_are_combined_into_one_table(tmp_path, monkeypatch, capsys):
    from materia_nb.lessons.__main__ import main

    for who, answer, name in (("ada", 3, ""), ("ben", 2, "=Benjamin")):
        monkeypatch.setenv("MATERIA_GUESSES", str(tmp_path / "class" / who / "guesses.jsonl"))
        monkeypatch.setenv("MATERIA_LEARNER", name)
        with suppress(MateriaError):
            check("03-loops", visits=(answer, 3))
    (tmp_path / "class" / "ben" / "guesses.jsonl").open("a").write('{"lesson": 5, "ques\n[]\n{"question": 7}\n')
    result = read_class_scores([tmp_path / "class"])
    assert [(one.who, one.lesson, one.right) for one in result] == [
        ("ada", "03-loops", True),
        ("=Benjamin", "03-loops", False),
        ("ben", "", False),
    ]
    assert "'=Benjamin" in scores_as_csv(result), "no formula for a spreadsheet"
    assert ("ada", "03-loops", "1 of 1", "1", "1", "0") in class_table(result).rows
    assert main(["progress", str(tmp_path / "class"), "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "ada,03-loops,visits,1,1,1,0"
    assert main(["progress", str(tmp_path / "nowhere")]) == 1
    assert main(["progress", str(tmp_path)]) == 0, "folders within folders"
    (tmp_path / "empty").mkdir()
    assert main(["progress", str(tmp_path / "empty")]) == 1
    assert "No file of guesses" in capsys.readouterr().err


def test_unnamed_learner_is_named_after_the_folder(tmp_path):
    own = tmp_path / "ada" / ".pi" / "pi-materia" / "guesses.jsonl"
    own.parent.mkdir(parents=True)
    own.write_text('{"lesson": "03-loops", "question": "visits", "guess": 3, "right": true}\n')
    assert [class_.who for class_ in read_class_scores([tmp_path / "ada"])] == ["ada"]
    assert [one.who for one in read_class_scores([tmp_path])] == ["ada"]


def test_table_for_teachers_counts_confident_wrong_answers(cast):
    open_question = Question(cast, tries=2, name="08-x/the-way")
    for place, sure in (("end", True), ("Socket-2", False), ("Socket-3", True)):
        open_question.guess(place, sure=sure)
    recorded_guesses = read_guesses(guesses_file())
    assert [(recorded_guess.guess, recorded_guess.sure) for recorded_guess in recorded_guesses] == [
        ("end", True),
        ("Socket-2", False),
    ]
    (result,) = scores(recorded_guesses)
    assert (result.tries, result.points, result.misled) == (2, 0.5, True)
    assert class_table([result]).rows[0][-2:] == ("0.5", "1")
    assert not any(
        score.misled for said in (False, None) for score in scores([recorded_guesses[0]._replace(sure=said)])
    )


def test_stored_guess_is_shortened():
    with pytest.raises(MateriaError):
        check("x", a=("<b>" * 500, "y"))
    recorded_guesses = json.loads(guesses_file().read_text())
    assert len(recorded_guesses["guess"]) <= 200
    assert recorded_guesses["right"] is False
