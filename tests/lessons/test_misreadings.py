"""Wrong rules are applied as a cast would apply them, and a wrong answer is attributed to the rule that gives it."""

from __future__ import annotations

import pytest

from materia_nb.errors import MateriaError
from materia_nb.lessons import exercise, from_route
from materia_nb.lessons.checks import is_right
from materia_nb.lessons.misreadings import CORRECT_RULES, MISREADINGS, named_misreading, walk
from materia_nb.lessons.variants import TOPICS, cast_once, route_answers, scripted_agents

topics = pytest.mark.parametrize("topic", list(TOPICS))


@topics
def test_correct_rules_take_the_route_of_a_cast(topic):
    for number in range(25):
        variant = exercise(topic, f"name {number}")
        with cast_once(variant.document, "an exercise", scripted_agents(variant)) as (cast, ends):
            answer = next(iter(route_answers(variant).values()))
            course = walk(answer.graph, answer.script, CORRECT_RULES)
            assert list(course.steps) == [(step.socket, step.item_label or None) for step in cast.steps]
            assert course.ends == ends
            assert from_route(cast, lambda course: list(course.route)).truth == list(course.route)


@topics
def test_every_variant_separates_the_misreadings_of_its_topic_from_the_rules(topic):
    for number in range(60):
        variant = exercise(topic, f"name {number}")
        names = ("empty-enters", "empty-fails") if variant.drawn.items == () else TOPICS[topic].misreadings
        for name in names:
            answers = route_answers(variant).values()
            assert [answer.by(MISREADINGS[name]) for answer in answers] != [answer.truth for answer in answers]


@topics
def test_answers_by_a_misreading_are_diagnosed_as_it(topic):
    for number in range(80):
        variant = exercise(topic, f"name {number}")
        rows = route_answers(variant)
        for rules in MISREADINGS.values():
            answers = {name: answer.by(rules) for name, answer in rows.items()}
            if all(answers[name] == answer.truth for name, answer in rows.items()):
                continue
            (line,) = named_misreading([(answers[name], answer) for name, answer in rows.items()], is_right)
            named = next(other for other in MISREADINGS.values() if other.belief in line)
            assert {name: answer.by(named) for name, answer in rows.items()} == answers


def test_diagnosis_names_misreading_and_step():
    variant = exercise("edges", "Ada")
    (answer,) = route_answers(variant).values()
    wrong = answer.by(MISREADINGS["last-match"])
    with pytest.raises(MateriaError) as raised:
        variant.check(route=wrong)
    step = next(number for number, pair in enumerate(zip(answer.truth, wrong, strict=False)) if pair[0] != pair[1])
    last_line = raised.value.what.splitlines()[-1]
    assert last_line == (
        f"Your answer would be right if the last matching edge were taken. Look at step {step}: the rules lead to another target there."
    )


def test_undiagnosed_answer_gets_only_the_hint():
    with pytest.raises(MateriaError) as raised:
        exercise("rework", "Ada").check(drafts=77, ends="failed")
    assert "How many times may that edge be taken?" in raised.value.what
    assert "would be right if" not in raised.value.what
