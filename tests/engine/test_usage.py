"""Test usage as numbers and as text, budget limits, and the stored form of a pin."""

from __future__ import annotations

import pytest

from builders import Folded, at, config, edge
from materia_nb.engine import decide
from materia_nb.engine.state import BOUNDS, UNREPORTED, Pin, Usage, has_limits, with_working_time
from materia_nb.loadout.graph import Budget

USED = Usage(1200, 34, 0.5, 0, 0, 800, 120, turns=3, worked=1500)


@pytest.mark.parametrize(
    "of, words, unknown",
    [
        ("tokens", "1,234", "1,234, not counting 2 turns with unknown usage"),
        ("cost", "0.5000 USD", "0.5000 USD, not counting 1 turn with unknown usage"),
        ("seconds", "1.5", "1.5, not counting 4 turns with unknown usage"),
        ("turns", "3", "3"),
    ],
)
def test_usage_text_states_the_number_of_turns_with_unknown_usage(of, words, unknown):
    (bound,) = [limit for limit in BOUNDS if limit.quantity == of]
    partly = USED._replace(uncounted=2, unpriced=1, untimed=4)
    assert (bound.amount_phrase(USED), bound.amount_phrase(partly)) == (words, unknown)
    assert bound.is_integer == (of in {"tokens", "turns"})


def test_usage_towards_a_maximum_is_shown_with_its_unit():
    cost = next(limit for limit in BOUNDS if limit.quantity == "cost")
    assert cost.amount_phrase(USED, 2.0) == "0.5000 of 2.0000 USD"
    assert (
        cost.amount_phrase(USED._replace(unpriced=1), 2.0)
        == "0.5000 of 2.0000 USD, not counting 1 turn with unknown usage"
    )
    assert (cost.amount_phrase(UNREPORTED, 2.0), cost.amount_phrase(UNREPORTED)) == ("unknown of 2.0000 USD", "unknown")


def test_unreported_usage_is_shown_as_unknown_rather_than_zero():
    assert (UNREPORTED.tokens_text, UNREPORTED.cost_text) == ("unknown", "unknown")
    assert (USED.tokens_text, USED.cost_text) == ("1,234", "0.5000 USD")
    both = USED.plus(UNREPORTED)
    assert (both.tokens_text, both.cost_text) == (
        "1,234, not counting 1 turn with unknown usage",
        "0.5000 USD, not counting 1 turn with unknown usage",
    )
    assert [with_working_time(given).seconds for given in (None, 0, 250)] == [None, 0.0, 0.25]
    assert with_working_time(None).plus(with_working_time(250)).seconds == 0.25


def test_usage_details_are_shown_if_they_are_reported():
    assert USED.token_details_text == "800 cached, 120 reasoning"
    assert USED.as_json() == {"input": 1200, "output": 34, "cost": 0.5, "cached": 800, "reasoning": 120}
    assert Usage(1, 2, 0.0).as_json() == {"input": 1, "output": 2, "cost": 0.0}
    assert Usage(1, 2, 0.0, cached=0).as_json()["cached"] == 0
    assert Usage(1, 2).token_details_text == ""


def test_usage_since_an_earlier_step_is_the_difference_of_the_totals():
    more = USED.plus(Usage(5, 6, 0.25, 0, 0, 1, None, turns=1, worked=10))
    assert more.minus(USED) == Usage(5, 6, 0.25, 0, 0, 1, 0, turns=1, worked=10)
    assert UNREPORTED.minus(UNREPORTED)[:3] == (None, None, None)


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda one: one.quantity)
def test_each_usage_limit_stops_the_cast_and_is_named(bound):
    used = bound.used(USED)
    for most, over in ((used, True), (used + 1, False)):
        budget = Budget(**{bound.field: most})
        assert has_limits(budget)
        assert bound.is_reached(USED, budget) is over
        assert bound.is_reached(USED, budget, percent=1)
    assert not has_limits(Budget())
    assert not bound.is_reached(USED, Budget())


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda one: one.quantity)
def test_cast_end_reports_the_usage_towards_each_maximum(bound):
    cast = Folded(config({"A": at("P", edge("B")), "B": at("P")}, budget={bound.key: 1}))
    cast.do(decide.enter)
    cast.do(decide.answer, decide.Answer("a", Usage(500, 1, 1.5), worked=2000))
    assert cast.state.status == "failed"
    assert cast.state.failure.kind == "budget"
    used = bound.number_format.format(bound.used(cast.state.usage))
    assert cast.state.failure.message == f"The cast has used {used} of {bound.number_format.format(1)} {bound.unit}."
    (limit,) = [event for event in cast.events if event.type == "budget_limit"]
    assert getattr(limit, bound.quantity) == bound.used(cast.state.usage)


@pytest.mark.parametrize(
    "pin",
    [
        Pin("text", "a text", "what it says"),
        Pin("visits", "cast 1", visits={"A": {"1": "first", "3": ""}}),
        Pin("function", "the function f"),
    ],
    ids=lambda pin: pin.kind,
)
def test_pin_is_unchanged_by_a_round_trip(pin):
    assert Pin.read(pin.as_json()) == pin


def test_pin_applies_only_to_the_visits_that_it_covers():
    visits = Pin("visits", "cast 1", visits={"A": {"1": "first", "3": ""}})
    assert [visits.answer("A", visit) for visit in (1, 2, 3)] == ["first", None, ""]
    assert visits.answer("B", 1) is None
    assert Pin("text", "w", "t").answer("anywhere", 9) == "t"


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"kind": "other", "to": "w"},
        {"kind": ["text"], "to": "w"},
        {"kind": "text", "to": 1},
        {"kind": "text", "to": "w", "text": 1},
        {"kind": "visits", "to": "w", "visits": []},
        {"kind": "visits", "to": "w", "visits": {"A": "x"}},
        {"kind": "visits", "to": "w", "visits": {"A": {"1": 2}}},
    ],
)
def test_invalid_pin_is_refused(kept):
    assert Pin.read(kept) is None
