"""Test how a cast stops, and how a stopped cast is continued."""

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


def test_interrupted_turn_waits_again_unchanged():
    play = Play(CHAIN, "not json")
    state = stopped(play)
    step = recovery.retry_turn(play.rules, state)
    assert step.state == play.state, "the same question of the same turn, and no prompt anew"
    assert (step.prompt, [type(event) for event in step.events]) == (None, [ev.TurnRetried])
    assert step.events[0].about["socket"] == "A"


@pytest.mark.parametrize("how", ["never entered", "limit", "utility", "goes on"])
def test_retry_of_a_turn_requires_an_interrupted_turn(how):
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
        recovery.retry_turn(play.rules, state)
    assert caught.value.kind == ("not_stopped" if how == "goes on" else "nothing_to_send")


def test_manual_answer_replaces_the_failure_of_the_visit():
    play = Play(config({"A": asks(materia="M")}), "a draft")
    step = recovery.answer_by_hand(play.rules, stopped(play))
    assert (step.state.status, step.state.at.mode, step.state.failure) == ("waiting", "final", None)
    assert step.events[0].after == "agent_error"


@pytest.mark.parametrize("over", [recovery.answer_by_hand, recovery.skip])
def test_cast_stopped_after_a_visit_accepts_no_manual_answer(over):
    play = Play(config({"A": at("P", edge("A"))}, limits={"maxEdgeTraversals": 1}), "x", "x")
    assert play.failure == "edge_traversals_exhausted"
    with pytest.raises(MateriaError, match="it needs no answer"):
        over(play.rules, play.state)
    with pytest.raises(MateriaError, match="not failed or aborted"):
        over(play.rules, Play(CHAIN).state)


def test_skipped_visit_is_routed_like_an_output_without_a_verdict():
    sockets = {"A": asks(edge("B", "satisfied"), edge("C")), "B": at("P"), "C": at("P")}
    play = Play(config(sockets))
    step = recovery.skip(play.rules, stopped(play))
    assert (step.state.status, step.state.next, step.state.last_output) == ("ready", "C", None)


def test_retry_restarts_the_visit_and_revokes_an_approval():
    play = Play(CHAIN, "not json")
    step = recovery.retry(play.rules, recovery.abort(play.state, "enough").state)
    visit = step.state.at
    assert (visit.mode, visit.repairs, visit.approval, visit.turn) == ("work", 0, None, 2)
    assert step.prompt.describes_task
    assert isinstance(step.events[0], ev.CastRetried)


def test_retry_after_the_last_repair_sends_the_issues_again():
    play = Play(config({"A": asks(edge("B", "satisfied")), "B": at("P")}, limits={"repairAttempts": 0}), "bad")
    step = recovery.raise_limit(play.rules, play.state)
    assert (step.state.status, step.state.at.mode, step.state.at.repairs) == ("waiting", "repair", 1)
    assert "bad" in next(part.text for part in step.prompt.parts if part.name == "repair")
    assert step.prompt.describes_task, "whoever answers may not have seen the first turn"


def test_turn_can_be_retried_after_an_abort_only_during_a_visit():
    play = Play(CHAIN)
    inside = recovery.abort(play.state, "enough")
    assert inside.state.failure.again
    assert inside.events == (ev.CastEnd(ok=False, error="enough", kind=recovery.ABORTED),)
    between = recovery.abort(play.state._replace(status="ready", next="B"), "enough")
    assert not between.state.failure.again


def test_budget_warning_can_repeat_after_a_budget_change():
    play = Play(config({"A": at("Q")}, materia={"Q": agent()}))
    state = recovery.set_budget(play.state._replace(warned=True), max_tokens=10)
    assert (state.budget.max_tokens, state.warned) == (10, False)
