"""Test edges with the condition ``failed``, which are taken if an agent or a process gives no output (R60)."""

from __future__ import annotations

import pytest

from builders import Play, asks, at, config, edge, exit_route, items, loop, say
from materia_nb.engine import recovery
from materia_nb.engine.state import Failure
from materia_nb.insight.why import explain
from materia_nb.loadout import check_config
from materia_nb.loadout.vocabulary import Result

BROKE = Failure("utility_exit", "it ended with 1", "Try", "mend it")


def tried(*edges, materia="U", **top):
    return config({"Try": asks(*edges, materia=materia), "Mend": at("P"), "Tell": at("P")}, **top)


def fails(play, failure=BROKE):
    return play.take(recovery.fail(play.rules, play.state, failure))


def told(play):
    return str(explain(play.rules, "the step", play.decision, play.last.state))


@pytest.mark.parametrize("edges", [("always", "failed"), ("failed", "always")])
def test_failed_edge_is_taken_regardless_of_its_position(edges):
    places = {"always": "Tell", "failed": "Mend"}
    document = tried(*(edge(places[when], when) for when in edges))
    play = Play(document)
    step = fails(play)
    assert (play.at, step.decision.by, step.decision.result) == ("Mend", "edge", Result.FAILED)
    assert step.state.failure is None
    assert Play(document, "{}").at == "Tell"


def test_failure_without_a_failed_edge_stops_the_cast_and_can_be_retried():
    play = Play(tried(edge("Tell")))
    fails(play)
    assert play.failure == "utility_exit"
    play.retry()
    assert play.at == "Try"


def test_output_refused_after_the_last_repair_takes_the_failed_edge():
    for materia, answers in (("U", ["no"]), ("P", ["no", "no"])):
        play = Play(
            tried(edge("Tell"), edge("Mend", "failed"), materia=materia, limits={"repairAttempts": 1}),
            *answers,
        )
        assert (play.at, play.decision.result) == ("Mend", Result.REFUSED)
        assert "The output was refused:" in told(play)
        rows = explain(play.rules, "the step", play.decision, play.state).rows
        assert rows[1][4] == "the output was refused; failed needs a refused output or a failure"


def test_failure_reason_is_passed_on_and_the_state_is_unchanged():
    play = Play(tried(edge("Tell"), edge("Mend", "failed")))
    before = play.state
    fails(play)
    assert play.state.data == {**before.data, "context": "[Try U] it ended with 1"}
    assert (play.state.last_output, play.state.last_json) == (before.last_output, before.last_json)
    assert "it ended with 1" in play.prompt.text


def test_reason_for_an_earlier_failure_is_dropped_after_an_output():
    play = Play(tried(edge("Try", "failed"), edge("Tell")))
    fails(play)
    assert [entry.text for entry in play.state.handoffs.entries] == ["it ended with 1"]
    play.answer("{}")
    assert play.state.handoffs.entries == ()


def test_why_shows_the_failure_and_the_targets_of_other_results():
    play = Play(tried(edge("Tell", "satisfied"), edge("Mend", "failed")))
    fails(play)
    words = told(play)
    assert "It failed: it ended with 1" in words
    assert "So edge 2 (⚠) leads to Mend P." in words
    assert "If U had been satisfied, the cast would go to Tell P." in words
    play = Play(tried(edge("Tell", "satisfied"), edge("Mend", "failed")), say(satisfied=True))
    assert "After a failure, the cast would go to Mend P." in told(play)


def test_edge_limits_retries_after_a_failure_separately_for_each_item():
    """The item of a failed visit is not done, so it is tried again."""
    document = config(
        {
            "Plan": asks(edge("Try"), materia="G"),
            "Try": asks(edge("Try", "failed", 2), edge("Try"), materia="U"),
        },
        {"L": loop("Try", exits=[exit_route("Try", "always", "end")])},
    )
    play = Play(document, items("one", "two"))
    for _ in range(2):
        fails(play)
    assert set(play.state.cursors.values()) == {0}
    play.answer("{}")
    fails(play)
    fails(play)
    assert play.route == [("Plan", None), *[("Try", "WI-1")] * 3, *[("Try", "WI-2")] * 3]
    fails(play)
    assert play.failure == "edge_traversals_exhausted"


def test_failure_reported_by_a_utility_takes_the_failed_edge_and_its_item_stays_open():
    """A ``not_satisfied`` edge would be taken instead (R48)."""
    sockets = {
        "Plan": asks(edge("Try"), materia="G"),
        "Try": asks(edge("Mend", "failed"), edge("Try"), materia="U"),
        "Mend": at("P", edge("Try")),
    }
    document = config(sockets, {"L": loop("Try", "Mend", exits=[exit_route("Try", "always", "end")])})
    broke = say(satisfied=False, state={"push": {"ok": False, "error": "no remote"}})
    play = Play(document, items("one"), broke)
    assert (play.at, play.visit.item.key, play.decision.reading.reason) == ("Mend", "WI-1", "no remote")
    assert set(play.state.cursors.values()) == {0}
    assert "advance moved" not in told(play)


def test_budget_stops_a_cast_whose_visits_fail():
    document = tried(edge("Try", "failed"), materia="P", budget={"maxTokens": 10}, limits={"repairAttempts": 0})
    play = Play(document)
    play.answer("no", tokens=11)
    assert play.failure == "budget"
    play.state = recovery.set_budget(play.state, max_tokens=100)
    play.raise_limit()
    assert play.at == "Try"


def test_advance_or_exit_with_the_condition_failed_is_reported_as_a_problem():
    document = config(
        {
            "Plan": asks(edge("Do"), materia="G"),
            "Do": asks(edge("Do"), materia="U", advance={"when": "failed"}),
        },
        {"L": loop("Do", exits=[exit_route("Do", "failed", "end")])},
    )
    found = [(problem.source, problem.hint) for problem in check_config(document).problems]
    advice = 'write "always", "satisfied" or "not_satisfied"'
    assert found == [("Do.advance.when", advice), ("loops.L.exits[0].condition", advice)]


def test_failed_edge_does_not_require_a_verdict():
    """A socket needs a verdict only if all its edges for outputs are guarded (R7)."""
    guarded = Play(tried(edge("Tell", "satisfied"), edge("Mend", "failed"), materia="P")).rules.sockets["Try"]
    assert guarded.requirements.only_guarded
    assert guarded.requirements.why_satisfied
    free = Play(tried(edge("Tell"), edge("Mend", "failed"), materia="P")).rules.sockets["Try"]
    assert (free.requirements.only_guarded, free.requirements.why_satisfied) == (False, None)
