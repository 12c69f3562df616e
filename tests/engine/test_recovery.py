"""Stopping a cast, and going on with one that stopped."""

from __future__ import annotations

import pytest

from builders import Play, agent, asks, at, config, edge, say
from materia_nb.engine import events as ev
from materia_nb.engine import recovery
from materia_nb.engine.state import Failure
from materia_nb.errors import MateriaError

CHAIN = config({"A": asks(edge("B", "satisfied"), edge("A", "not_satisfied")), "B": at("T")})


def stopped(play, kind="agent_error"):
    return recovery.fail(play.rules, play.state, Failure(kind, "it broke", play.visit.socket, "mend it")).state


def test_a_turn_that_was_cut_short_waits_again_as_it_was():
    play = Play(CHAIN, "not json")
    state = stopped(play)
    step = recovery.resend(play.rules, state)
    assert step.state == play.state, "the same question of the same turn, and no prompt anew"
    assert (step.prompt, [type(one) for one in step.events]) == (None, [ev.TurnResent])
    assert step.events[0].about["socket"] == "A"


@pytest.mark.parametrize("how", ["never entered", "limit", "utility", "goes on"])
def test_where_no_turn_of_an_agent_was_cut_short_there_is_nothing_to_send(how):
    play = Play(CHAIN)
    if how == "utility":
        play.go(say(satisfied=True))
        state = stopped(play, "utility_exit")
    elif how == "limit":
        play = Play(config({"A": asks(edge("B", "satisfied")), "B": at("P")}, limits={"repairAttempts": 0}), "bad")
        state = play.state
    else:
        state = play.state._replace(status="aborted", at=None) if how == "never entered" else play.state
    with pytest.raises(MateriaError) as caught:
        recovery.resend(play.rules, state)
    assert caught.value.kind == ("not_stopped" if how == "goes on" else "nothing_to_send")


def test_a_person_answers_for_the_visit_in_its_handoff_and_the_failure_is_gone():
    play = Play(config({"A": asks(materia="M")}), "a draft")
    step = recovery.by_hand(play.rules, stopped(play))
    assert (step.state.status, step.state.at.mode, step.state.failure) == ("waiting", "final", None)
    assert step.events[0].after == "agent_error"


@pytest.mark.parametrize("over", [recovery.by_hand, recovery.skip])
def test_where_the_cast_stopped_behind_a_visit_no_answer_is_owed(over):
    play = Play(config({"A": at("P", edge("A"))}, limits={"maxEdgeTraversals": 1}), "x", "x")
    assert play.failure == "edge_traversals_exhausted"
    with pytest.raises(MateriaError, match="no answer is owed"):
        over(play.rules, play.state)
    with pytest.raises(MateriaError, match="not failed or aborted"):
        over(play.rules, Play(CHAIN).state)


def test_skipping_goes_the_way_of_an_output_that_says_nothing():
    sockets = {"A": asks(edge("B", "satisfied"), edge("C")), "B": at("P"), "C": at("P")}
    play = Play(config(sockets))
    step = recovery.skip(play.rules, stopped(play))
    assert (step.state.status, step.state.next, step.state.last_output) == ("ready", "C", None)


def test_a_recast_begins_the_visit_anew_and_takes_back_a_consent():
    play = Play(CHAIN, "not json")
    step = recovery.recast(play.rules, recovery.abort(play.state, "enough").state)
    visit = step.state.at
    assert (visit.mode, visit.repairs, visit.grant, visit.turn) == ("work", 0, None, 2)
    assert step.prompt.begins
    assert isinstance(step.events[0], ev.CastRecast)


def test_a_revival_after_the_last_repair_asks_for_another_with_what_was_wrong():
    play = Play(config({"A": asks(edge("B", "satisfied")), "B": at("P")}, limits={"repairAttempts": 0}), "bad")
    step = recovery.revive(play.rules, play.state)
    assert (step.state.status, step.state.at.mode, step.state.at.repairs) == ("waiting", "repair", 1)
    assert "bad" in next(part.text for part in step.prompt.parts if part.name == "repair")
    assert step.prompt.begins, "whoever answers may not have seen the first turn"


def test_an_aborted_visit_can_be_asked_again_and_an_abort_between_two_cannot():
    play = Play(CHAIN)
    inside = recovery.abort(play.state, "enough")
    assert inside.state.failure.again
    assert inside.events == (ev.CastEnd(ok=False, error="enough", kind=recovery.ABORTED),)
    between = recovery.abort(play.state._replace(status="ready", next="B"), "enough")
    assert not between.state.failure.again


def test_a_budget_that_is_set_may_warn_again():
    play = Play(config({"A": at("Q")}, materia={"Q": agent()}))
    state = recovery.set_budget(play.state._replace(warned=True), max_tokens=10)
    assert (state.budget.max_tokens, state.warned) == (10, False)
