"""What is offered in place of a name that is not known."""

from __future__ import annotations

import pytest

from materia_nb.errors import close_match, did_you_mean

VERBS = ["cast", "page", "quest", "reply", "resume", "run", "state", "step", "undo", "use"]


@pytest.mark.parametrize(
    "typed, meant",
    [
        ("stpe", "step"),
        ("ues", "use"),
        ("uze", "use"),
        ("rn", "run"),
        ("caste", "cast"),
        ("Undo", "undo"),
        ("resmue", "resume"),
        ("resumption", "resume"),
    ],
)
def test_a_slip_of_the_hand_is_understood(typed, meant):
    assert close_match(typed, VERBS) == meant


@pytest.mark.parametrize("typed", ["pause", "quit", "play", "start", "see", ""])
def test_another_short_word_is_not_taken_for_a_slip(typed):
    assert close_match(typed, VERBS) is None
    assert did_you_mean(typed, VERBS).startswith("choose one of: ")


def test_a_longer_name_is_found_by_a_part_of_it():
    assert close_match("Plan-Build", ["Plan-Build-Eval", "Full-Auto"]) == "Plan-Build-Eval"
