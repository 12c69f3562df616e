"""Test refused answers: the number of repairs, their events, and when a person is asked."""

from __future__ import annotations

import pytest

import protocol_helpers as ph
from builders import Folded, asks, at, config, edge, say
from materia_nb.engine import decide
from materia_nb.engine import events as ev
from materia_nb.engine.outputs import check_answer
from materia_nb.engine.state import Usage


def cast_of(handoff="sparse", attempts=1):
    sockets = {"A": at("P", edge("B"), parse="json", handoff=handoff), "B": at("P")}
    return Folded(config(sockets, limits={"repairAttempts": attempts}))


def of_type(cast, kind):
    return [event for event in cast.events if isinstance(event, kind)]


@pytest.mark.parametrize("attempts", [0, 1, 3])
def test_sparse_answer_is_repaired_up_to_the_limit_then_the_cast_fails(attempts):
    cast = cast_of(attempts=attempts).answers(*["not json"] * (attempts + 1))
    starts, retries = of_type(cast, ev.RecoveryStart), of_type(cast, ev.RecoveryRetry)
    assert [(start.attempt, start.max_attempts) for start in starts] == [(n + 1, attempts) for n in range(attempts)]
    assert [(retry.attempt, retry.max_attempts) for retry in retries] == [(n + 1, attempts) for n in range(attempts)]
    assert {one.validation_kind for one in starts} <= {"json_parse"}
    (exhausted,) = of_type(cast, ev.RecoveryExhausted)
    assert exhausted.attempt == attempts
    failure = cast.state.failure
    assert (failure.kind, failure.socket) == ("repair_exhausted", "A")
    assert (f"{attempts + 1} time" + "s" * (attempts > 0)) in failure.message
    assert failure.refused[1] == "not json"


@pytest.mark.parametrize("handoff", ph.OTHER_PROTOCOLS)
def test_protocols_other_than_sparse_ask_a_person_after_two_repairs(handoff):
    cast = cast_of(handoff, attempts=0).answers("nothing", "nothing")
    assert [(one.attempt, one.max_attempts) for one in of_type(cast, ev.RecoveryStart)] == [(1, 2), (2, 2)]
    assert cast.state.status == "waiting"
    cast.answers("nothing")
    assert cast.state.status == "held"
    assert not of_type(cast, ev.RecoveryExhausted)


def test_invalid_json_and_invalid_fields_raise_different_errors():
    cast = cast_of(attempts=2).answers("not json", say(other=1))
    assert [one.validation_kind for one in of_type(cast, ev.RecoveryStart)] == [
        "json_parse",
        "handoff_validation",
    ]
    assert "$.other" in of_type(cast, ev.RecoveryStart)[1].error


@pytest.mark.parametrize(
    "text, status, first",
    [
        ('{"context": "all of it"}', "ready", ""),
        ("", "waiting", "answer_cut"),
        ('{"context": "not all', "waiting", "answer_cut"),
    ],
)
def test_truncated_answer_is_accepted_if_it_is_complete(text, status, first):
    cast = cast_of().do(decide.enter)
    cast.do(decide.answer, decide.Answer(text, Usage(1, 1), cut="max_tokens (100)"))
    assert cast.state.status == status
    if first:
        assert "The answer was cut off by max_tokens (100)" in of_type(cast, ev.RecoveryStart)[0].error
        missing = "is empty" if not text else "is incomplete"
        assert missing in of_type(cast, ev.RecoveryStart)[0].error
    else:
        reading = cast.session.steps[-1].reading
        assert [warning.code for warning in reading.warnings] == ["answer_cut"]


def test_second_truncation_suggests_a_higher_limit():
    cast = cast_of(attempts=0).do(decide.enter)
    cast.do(decide.answer, decide.Answer("", Usage(1, 1), cut="max_tokens (100)"))
    assert cast.state.failure.kind == "repair_exhausted"
    assert "max_tokens" in cast.state.failure.hint
    other = cast_of(attempts=0).answers("")
    assert "max_tokens" not in other.state.failure.hint


def test_answer_can_be_checked_before_it_is_sent():
    cast = cast_of().do(decide.enter)
    assert check_answer(cast.rules, cast.state, say(context="fine")) == ()
    assert [one.path for one in check_answer(cast.rules, cast.state, say(other=1))] == ["$.other"]
    draft = Folded(config({"A": asks(materia="M")})).do(decide.enter)
    assert check_answer(draft.rules, draft.state, "any text") == ()
