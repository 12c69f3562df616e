"""Test the warnings of a complete cast that are computed from its session."""

from __future__ import annotations

import pytest

from builders import Folded, agent, asks, at, config, edge, items, retry_loop, say
from materia_nb.engine import decide
from materia_nb.engine.cast_warnings import (
    SHORTENED_FACTOR,
    find_warnings,
    latest_step_repeats,
    repeated_steps,
    shortened_fields,
)


def said(cast):
    """Return the warnings of the complete cast with their subjects, by code."""
    return {
        warning.code: (warning.socket, warning.step, warning.item, warning.message)
        for warning in find_warnings(cast.rules, cast.session)
    }


def test_running_cast_has_no_warnings():
    cast = Folded(config({"A": asks(edge("B", "not_satisfied")), "B": at("P")})).answers(say(satisfied=True))
    assert said(cast) == {}
    cast.do(decide.enter)
    assert list(said(cast)) == ["no-edge-matched"]


def test_warning_about_an_unanswered_verdict_names_its_item():
    cast = Folded(config({"A": asks(edge("end"))})).answers(say(satisfied=False)).do(decide.enter)
    assert said(cast)["unanswered-verdict"][:3] == ("A", 1, None)
    assert " about item " not in said(cast)["unanswered-verdict"][3]
    loop = Folded(retry_loop(exits=[])).answers(items("a"), "built", say(satisfied=True), "again")
    assert "unanswered-verdict" not in said(loop)


def test_equal_output_is_a_repetition_only_for_the_same_item():
    cast = Folded(retry_loop())
    cast.answers(items("a", "b"), "built", say(satisfied=False, context="too long"), "built")
    assert [step.number for step in repeated_steps(cast.rules, cast.session)] == [4]
    cast.answers(say(satisfied=True), "built")
    assert [step.number for step in repeated_steps(cast.rules, cast.session)] == [4], (
        "of the other item it is the first time"
    )


def test_both_checks_for_repeated_outputs_agree_about_the_latest_step():
    cast = Folded(retry_loop())
    said = (items("a", "b"), "built", say(satisfied=False, context="too long"), "built", say(satisfied=True))
    told = []
    for answer in (*said, "built", say(satisfied=True)):
        cast.answers(answer)
        told.append(latest_step_repeats(cast.rules, cast.session))
        latest = cast.session.steps[-1]
        assert told[-1] == any(repeat is latest for repeat in repeated_steps(cast.rules, cast.session))
    assert told == [False, False, False, True, False, False, False]


def test_step_without_an_item_is_compared_with_other_steps_without_an_item():
    cast = Folded(config({"A": at("P", edge("A"))})).answers("the same", "the  same\n", "another")
    assert [step.number for step in repeated_steps(cast.rules, cast.session)] == [2]


def test_repaired_field_shorter_than_a_tenth_of_the_refused_field_is_reported():
    sockets = {"A": asks(edge("B", "satisfied"), materia="Q", assign={"plan": "$.plan"}), "B": at("P")}
    document = config(sockets, materia={"Q": agent()})
    for length, fields in ((SHORTENED_FACTOR, []), (SHORTENED_FACTOR * 2, ["plan"])):
        cast = Folded(document).answers(say(plan="x" * length), say(satisfied=True, plan="y"))
        assert list(shortened_fields(cast.rules, cast.session.steps[-1])) == fields


@pytest.mark.parametrize(
    "refused, accepted, fields",
    [
        ("x" * 11, None, ["plan"]),
        ("x" * 10, "  y  ", []),
        ("x" * 11, "  y  ", ["plan"]),
        (" " * 99, "y", []),
        (None, None, []),
        (None, "y", []),
        ([1] * 30, [1], ["plan"]),
        ({"a": "x" * 30}, {}, ["plan"]),
        ({"a": "x" * 10}, {}, []),
    ],
)
def test_length_of_an_answer_ignores_outer_white_space(refused, accepted, fields):
    sockets = {"A": asks(edge("B", "satisfied"), materia="Q", assign={"plan": "$.plan"}), "B": at("P")}
    cast = Folded(config(sockets, materia={"Q": agent()}))
    cast.answers(say(plan=refused), say(satisfied=True, plan=accepted))
    assert list(shortened_fields(cast.rules, cast.session.steps[-1])) == fields


@pytest.mark.parametrize("most", [0, 1])
def test_end_event_has_the_first_warnings_and_their_count(monkeypatch, most):
    monkeypatch.setattr(decide, "MAX_WARNINGS", most)
    cast = Folded(config({"A": at("P", edge("B")), "B": asks(edge("A", "not_satisfied"), edge("end"))}))
    cast.answers("a", say(satisfied=False), "a", say(satisfied=True)).do(decide.enter)
    end, made = cast.events[-1], find_warnings(cast.rules, cast.session)
    assert list(end.warnings or ()) == [one.as_json() for one in made][:most]
    assert end.warnings_in_all == (len(made) if len(made) > most else None)


def test_routing_decision_of_a_step_names_the_item_of_the_step():
    cast = Folded(retry_loop()).answers(items("a"), "built")
    first, second = (step.decision for step in cast.session.steps)
    assert (first.item, first.item_key) == (None, None)
    assert (second.item[1], second.item_key, second.at.item.label) == (0, "WI-1", "a")
    assert (second.socket, second.visit, second.chosen.to) == ("Build", 1, "Eval")
