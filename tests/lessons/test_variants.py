"""Exercises drawn from a seed, and the answers of a learner and a class."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress

import pytest

from magics_helpers import line
from materia_nb.errors import MateriaError
from materia_nb.lessons import Question, exercise
from materia_nb.lessons.checks import (
    class_table,
    guesses_file,
    judge_answers,
    merge_classes,
    read_guesses,
    scores,
    scores_as_csv,
)
from materia_nb.lessons.misreadings import walk
from materia_nb.lessons.variants import TOPICS, route_answers


def check(lesson, **questions):
    return judge_answers(lesson, "", {}, questions)


def right_answers(variant):
    return {name: answer.truth for name, answer in route_answers(variant).items()}


topics = pytest.mark.parametrize("topic", list(TOPICS))


@topics
def test_seed_determines_the_exercise(topic):
    made = {str(seed): exercise(topic, str(seed)) for seed in range(10)}
    assert len({repr((one.script_lines, one.document)) for one in made.values()}) > 3
    assert len({repr(right_answers(one)) for one in made.values()}) > 2
    again = exercise(topic, " 3 ")
    assert (again.document, again.script_lines) == (made["3"].document, made["3"].script_lines)
    assert exercise(topic, "Ada").document == exercise(topic, "ada").document


@topics
def test_right_answers_pass_and_are_not_shown(topic):
    one = exercise(topic, "Ada")
    answers = right_answers(one)
    assert "is right" in str(one.check(**answers))
    shown = one._repr_mimebundle_()
    assert "Ada" in shown["text/plain"]
    assert all(words in shown["text/plain"] for words in one.questions.values())
    assert str(answers.get("route")) not in str(shown)
    with pytest.raises(MateriaError, match="not answered yet") as raised:
        one.check()
    assert raised.value.kind == "no_answer"


def test_steps_are_shown_after_two_wrong_checks():
    one = exercise("rework", "Ada")
    with pytest.raises(MateriaError, match="after 2 wrong checks"):
        one.steps()
    for _ in range(2):
        with pytest.raises(MateriaError, match="How many times may that edge be taken") as raised:
            one.check(drafts=77, ends=...)
    assert "steps()" in raised.value.hint
    answer = next(iter(route_answers(one).values()))
    assert len(one.steps()) == len(walk(answer.graph, answer.script).route)


def test_unknown_topic_and_question_are_errors():
    with pytest.raises(MateriaError, match="topic 'loop' does not exist") as raised:
        exercise("loop")
    assert "loops" in raised.value.hint
    with pytest.raises(MateriaError, match="visit is not a question"):
        exercise("loops").check(visit=3)


# -- the file of guesses -------------------------------------------------------------------


def test_answers_and_predictions_are_recorded_and_counted(cast, shell):
    check("03-loops", visits=(3, 3))
    for answer in (1, 1, 2, 3):
        with pytest.raises(MateriaError):
            check("04-rework", drafts=(answer, 5), other=(..., 1))
    Question(cast, name="08-x/the-way").guess("end")
    with pytest.raises(MateriaError):
        exercise("edges", "Ada").check(route=["Socket-1"])
    with suppress(MateriaError):
        check("05-utilities", runs=(1, 2))
    check("05-utilities", runs=(2, 2))
    rows = line(shell, "predict --progress").rows
    assert rows[0] == ("03-loops", "visits", "1", "✓", "1")
    assert rows[1] == ("04-rework", "drafts", "3", "✗", "0")
    assert rows[2][:2] == ("08-x", "the-way")
    assert rows[3] == ("edges (Ada)", "route", "1", "✗", "0")
    assert rows[4] == ("05-utilities", "runs", "2", "✓", "0.5"), "the second try counts half"
    kept = read_guesses(guesses_file())
    assert {one.who for one in kept} == {""}, "no name that was not given"


def test_empty_record_and_disk_errors_do_not_raise(shell, tmp_path, monkeypatch):
    assert "No answers yet. Answer a question in a lesson first." in repr(line(shell, "predict --progress"))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MATERIA_GUESSES", str(tmp_path / "file" / "guesses.jsonl"))
    assert "is right" in str(check("", a=(1, 1)))


def test_the_files_of_a_class_become_one_table(tmp_path, monkeypatch, capsys):
    from materia_nb.lessons.__main__ import main

    for who, answer, name in (("ada", 3, ""), ("ben", 2, "=Benjamin")):
        monkeypatch.setenv("MATERIA_GUESSES", str(tmp_path / "class" / who / "guesses.jsonl"))
        monkeypatch.setenv("MATERIA_LEARNER", name)
        with suppress(MateriaError):
            check("03-loops", visits=(answer, 3))
    (tmp_path / "class" / "ben" / "guesses.jsonl").open("a").write('{"lesson": 5, "ques\n[]\n{"question": 7}\n')
    found = merge_classes([tmp_path / "class"])
    assert [(one.who, one.lesson, one.right) for one in found] == [
        ("ada", "03-loops", True),
        ("=Benjamin", "03-loops", False),
        ("ben", "", False),
    ]
    assert "'=Benjamin" in scores_as_csv(found), "no formula for a spreadsheet"
    assert ("ada", "03-loops", "1 of 1", "1", "1", "0") in class_table(found).rows
    assert main(["progress", str(tmp_path / "class"), "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "ada,03-loops,visits,1,1,1,0"
    assert main(["progress", str(tmp_path / "nowhere")]) == 1
    assert main(["progress", str(tmp_path)]) == 0, "folders within folders"
    (tmp_path / "empty").mkdir()
    assert main(["progress", str(tmp_path / "empty")]) == 1
    assert "No file of guesses" in capsys.readouterr().err


def test_unnamed_learner_is_called_after_the_folder(tmp_path):
    own = tmp_path / "ada" / ".pi" / "pi-materia" / "guesses.jsonl"
    own.parent.mkdir(parents=True)
    own.write_text('{"lesson": "03-loops", "question": "visits", "guess": 3, "right": true}\n')
    assert [one.who for one in merge_classes([tmp_path / "ada"])] == ["ada"]
    assert [one.who for one in merge_classes([tmp_path])] == ["ada"]


def test_table_for_teachers_counts_confident_wrong_answers(cast):
    asked = Question(cast, tries=2, name="08-x/the-way")
    for place, sure in (("end", True), ("Socket-2", False), ("Socket-3", True)):
        asked.guess(place, sure=sure)
    kept = read_guesses(guesses_file())
    assert [(one.guess, one.sure) for one in kept] == [("end", True), ("Socket-2", False)]
    (found,) = scores(kept)
    assert (found.tries, found.points, found.misled) == (2, 0.5, True)
    assert class_table([found]).rows[0][-2:] == ("0.5", "1")
    assert not any(one.misled for said in (False, None) for one in scores([kept[0]._replace(sure=said)]))


def test_guess_is_stored_as_bounded_text():
    with pytest.raises(MateriaError):
        check("x", a=("<b>" * 500, "y"))
    kept = json.loads(guesses_file().read_text())
    assert len(kept["guess"]) <= 200
    assert kept["right"] is False


def test_exercises_of_different_names_have_different_answers():
    answers = Counter(str(right_answers(exercise("edges", f"name {number}"))) for number in range(40))
    assert max(answers.values()) <= 8
