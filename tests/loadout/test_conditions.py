"""Test the conditions: their names, and the results that they match (R3)."""

from __future__ import annotations

from typing import get_args

import pytest

from materia_nb.engine.routing import RouteCheck
from materia_nb.errors import MateriaError
from materia_nb.loadout.vocabulary import (
    CONDITION_SPECS,
    CONDITIONS,
    GUARD_FOR,
    GUARDS,
    OUTPUT_CONDITIONS,
    Condition,
    Result,
    condition_spec,
    match_every_output,
    unmatched_verdicts,
)


@pytest.mark.parametrize(
    "condition, matched",
    [
        ("always", [Result.YES, Result.NO, Result.NOTHING]),
        ("satisfied", [Result.YES]),
        ("not_satisfied", [Result.NO]),
        ("failed", [Result.FAILED, Result.REFUSED]),
    ],
)
def test_each_condition_matches_its_results_r3(condition, matched):
    assert [result for result in Result if condition_spec(condition).matches(result)] == matched


def test_condition_table_and_condition_type_contain_the_same_conditions():
    assert get_args(Condition) == CONDITIONS == tuple(CONDITION_SPECS)


def test_guarded_conditions_never_match_a_text_output():
    assert GUARDS == ("satisfied", "not_satisfied")
    assert not any(condition_spec(condition).matches(Result.NOTHING) for condition in GUARDS)


def test_each_verdict_has_its_own_condition():
    assert GUARD_FOR == {Result.YES: "satisfied", Result.NO: "not_satisfied"}


@pytest.mark.parametrize(
    "conditions, missing",
    [
        ([], ["satisfied", "not_satisfied"]),
        (["always"], []),
        (["satisfied"], ["not_satisfied"]),
        (["not_satisfied"], ["satisfied"]),
        (["not_satisfied", "satisfied"], []),
    ],
)
def test_results_not_covered_by_any_condition_are_listed(conditions, missing):
    assert unmatched_verdicts(conditions) == missing
    assert match_every_output(conditions, text=False) == (not missing)
    assert match_every_output(conditions, text=True) == ("always" in conditions)


def test_overlapping_conditions_are_detected():
    pairs = [
        (a, b)
        for a in OUTPUT_CONDITIONS
        for b in OUTPUT_CONDITIONS
        if not condition_spec(a).overlaps(condition_spec(b))
    ]
    assert pairs == [("satisfied", "not_satisfied"), ("not_satisfied", "satisfied")]
    assert [condition for condition in CONDITIONS if condition_spec(condition).overlaps(condition_spec("failed"))] == [
        "failed"
    ]


@pytest.mark.parametrize("result", list(Result))
def test_unknown_condition_raises_an_error(result):
    with pytest.raises(MateriaError) as caught:
        condition_spec("unsatisfied").matches(result)
    assert 'write "always", ' in caught.value.hint
    with pytest.raises(MateriaError):
        RouteCheck("edge", "passed", "end", matched=False).reason(result)
