"""A condition is described once: its predicate, its word and its look (R3)."""

from __future__ import annotations

import pytest

from materia_nb.engine.routing import Look, matches
from materia_nb.errors import MateriaError
from materia_nb.loadout.vocabulary import CONDITIONS, DESCRIBED, GUARDS


@pytest.mark.parametrize(
    "condition, matched", [("always", [True, False, None]), ("satisfied", [True]), ("not_satisfied", [False])]
)
def test_what_each_condition_matches_r3(condition, matched):
    assert [said for said in (True, False, None) if matches(condition, said)] == matched


def test_the_guards_are_those_that_ask_for_satisfied():
    assert ("always", *GUARDS) == CONDITIONS
    assert [DESCRIBED[condition].needs for condition in GUARDS] == [True, False]


@pytest.mark.parametrize("said", [True, False, None])
def test_another_word_is_an_error_and_never_taken_for_not_satisfied(said):
    with pytest.raises(MateriaError) as caught:
        matches("unsatisfied", said)
    assert 'write one of: "always", ' in caught.value.hint
    with pytest.raises(MateriaError):
        Look("edge", "passed", "end", matched=False).reason(said)
