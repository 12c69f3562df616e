"""Test the turns of sockets: repairs (R19), budgets (R20), drafts, failures, aborts and retries."""

from __future__ import annotations

import pytest

from builders import YES, Play, asks, at, config, edge, items, retry_loop, say
from materia_nb.engine import entering, outputs, recovery
from materia_nb.engine.state import Failure
from materia_nb.errors import MateriaError

CHAIN = {"Ask": asks(edge("Next")), "Next": at("P")}


def names(parts):
    return [part.name for part in parts if part.text]


def event_types(step):
    return [event.type for event in step.events]


# -- R19 ----------------------------------------------------------------------------------


@pytest.mark.parametrize("attempts", [None, 0, 1, 3])
def test_r19_cast_fails_after_the_last_repair_turn(attempts):
    top = {} if attempts is None else {"limits": {"repairAttempts": attempts}}
    play = Play(config(CHAIN, **top))
    for turn in range(1 if attempts is None else attempts):
        play.go("no json")
        assert (play.at, play.visit.mode, play.visit.repairs, play.visit.turn) == (
            "Ask",
            "repair",
            turn + 1,
            turn + 1,
        )
        assert play.decision.by == "repair"
    play.go("no json")
    assert (play.at, play.decision.by) == ("repair_exhausted", "failure")
    assert (play.last.events[-1].type, play.last.events[-1].socket) == ("cast_end", "Ask")
    assert play.route == [("Ask", None)]
    assert dict(play.state.visits) == {"Ask": 1}


def test_r19_repaired_answer_completes_the_same_visit():
    play = Play(config(CHAIN), "no json", say(context="c"))
    assert (play.at, play.state.visits["Ask"], play.data["context"]) == ("Next", 1, "[Ask P] c")


def test_r19_next_visit_has_its_own_repairs():
    sockets = {"Ask": asks(edge("Ask"))}
    assert Play(config(sockets), "bad", "{}", "bad", "{}", "bad").at == "Ask"


def test_r19_repair_prompt_lists_every_issue_and_shows_an_excerpt():
    play = Play(config({"Ask": asks(edge("end", "satisfied"))}), say(context=3, tasks=[], summary="s"))
    text = play.prompt.text
    assert names(play.prompt.parts) == ["repair", "return"]
    for told in ("$.context", "$.tasks", "$.summary", "$.satisfied", '"summary": "s"'):
        assert told in text


@pytest.mark.parametrize("size, shown", [(600, 600), (601, 599), (50_000, 599)])
def test_r19_excerpt_has_at_most_600_characters(size, shown):
    play = Play(config(CHAIN), "y" * size)
    (line,) = [line for line in play.prompt.text.splitlines() if line.startswith("yy")]
    assert len(line) <= 600
    assert line.count("y") == shown
    assert line.endswith("…") == (size > 600)


def test_r19_repair_prompt_is_readable_for_any_answer():
    play = Play(config(CHAIN), say(workItems=[{"x" * 5000: 1}] * 500))
    assert len(play.prompt.text) < 20_000
    assert "more" in play.prompt.text
    assert len(play.decision.issues) == 1500


def test_r19_utilities_are_never_repaired():
    play = Play(config({"Run": at("U")}), "no json")
    assert play.at == "invalid_output"
    assert dict(play.state.visits) == {"Run": 1}


def test_r19_repair_is_recorded_in_order():
    play = Play(config(CHAIN))
    step = play.answer("bad")
    assert event_types(step) == ["same_socket_recovery_start", "same_socket_recovery_retry"]
    assert step.events[0].validation_kind == "json_parse"
    step = play.answer(say(odd=1))
    assert event_types(step) == ["same_socket_recovery_exhausted", "cast_end"]
    assert step.events[1].kind == "repair_exhausted"


def test_r19_retry_grants_one_more_repair_turn_with_the_issues():
    play = Play(config(CHAIN), "bad", say(odd="the last answer"))
    assert play.at == "repair_exhausted"
    step = play.raise_limit()
    assert (play.at, play.visit.mode, play.state.visits["Ask"]) == ("Ask", "repair", 1)
    assert names(step.prompt.parts) == ["request", "place", "task", "repair", "return"]
    assert "$.odd" in step.prompt.text
    assert "the last answer" in step.prompt.text
    assert play.go("bad again").at == "repair_exhausted"
    play.raise_limit()
    assert play.go("{}").at == "Next"


def test_r19_failed_answer_can_be_retried_if_no_repairs_are_allowed():
    play = Play(config(CHAIN, limits={"repairAttempts": 0}), "bad")
    play.raise_limit()
    assert play.visit.mode == "repair"
    assert play.go("bad").at == "repair_exhausted"


def test_r19_retry_from_the_start_sends_the_first_prompt_and_allows_all_repairs():
    play = Play(config(CHAIN), "bad", "bad")
    step = play.retry()
    assert (play.at, play.visit.mode, play.visit.repairs, play.visit.visit) == ("Ask", "work", 0, 1)
    assert names(step.prompt.parts) == ["request", "place", "task", "return"]
    assert play.go("bad").at == "Ask"


# -- R20 ----------------------------------------------------------------------------------


def budgeted(*turns, warn=None, most=100, sockets=None):
    budget = {"maxTokens": most} | ({} if warn is None else {"warnAtPercent": warn})
    play = Play(config(sockets or {"A": at("P", edge("A"))}, budget=budget))
    warned = []
    for text, tokens in turns:
        step = play.answer(text, tokens)
        warned.append("budget_warning" in event_types(step))
    return play, warned


def test_r20_budget_warns_once_then_stops_at_the_maximum():
    play, warned = budgeted(("x", 74), ("x", 1), ("x", 10), ("x", 14))
    assert (warned, play.at) == ([False, True, False, False], "A")
    step = play.answer("x", 1)
    assert (play.at, event_types(step)) == ("budget", ["socket_complete", "budget_limit", "cast_end"])


def test_r20_warning_percentage_can_be_configured_and_a_large_step_may_skip_it():
    assert budgeted(("x", 10), warn=10)[1] == [True]
    play, warned = budgeted(("x", 100))
    assert (play.at, warned) == ("budget", [False])


def test_r20_budget_of_zero_stops_the_cast_after_the_first_socket():
    play, _ = budgeted(("x", None), most=0)
    assert (play.at, play.state.visits) == ("budget", {"A": 1})


def test_r20_input_and_output_tokens_of_refused_turns_are_counted():
    play, _ = budgeted(("bad", 60), ("{}", 40), sockets=CHAIN)
    assert (play.at, play.state.usage.tokens) == ("budget", 100)


def test_r20_state_changes_of_the_step_that_exceeds_the_budget_are_applied():
    sockets = {
        "Walk": asks(edge("Walk"), assign={"said": "$.context"}, foreach={"items": "l"}, advance={"when": "always"})
    }
    sockets = {"Rows": at("U", edge("Walk")), **sockets}
    play, _ = budgeted((say(state={"l": [1, 2]}), 0), (say(context="c"), 100), sockets=sockets)
    assert play.at == "budget"
    assert (play.data["said"], play.data["context"]) == ("c", "[Walk P] c")
    assert dict(play.state.cursors) == {"WalkIndex": 1}
    assert dict(play.state.traversals) == {"Rows->Walk": 1}


def test_r20_retry_continues_to_the_next_socket_once_the_budget_is_raised():
    play, _ = budgeted((YES, 100), sockets={"Ask": asks(edge("Good", "satisfied"), edge("end")), "Good": at("P")})
    with pytest.raises(MateriaError, match="100 tokens"):
        play.raise_limit()
    play.state = recovery.set_budget(play.state, max_tokens=150)
    step = play.raise_limit()
    assert (play.at, step.decision.target, step.decision.satisfied) == ("Good", "Good", True)
    assert play.state.visits == {"Ask": 1, "Good": 1}
    assert "budget_warning" in event_types(play.answer("x", 20))


def test_r20_raised_budget_lets_the_cast_continue():
    play, _ = budgeted((YES, 100), sockets={"Ask": asks(edge("Next", "satisfied")), "Next": asks()})
    play.state = recovery.set_budget(play.state, max_tokens=None)
    play.raise_limit()
    play.go("bad", "bad")
    assert play.at == "repair_exhausted"
    play.raise_limit()
    assert (play.at, play.visit.mode) == ("Next", "repair")


def test_r20_retry_after_a_budget_stop_keeps_rework_reasons_and_the_exhausted_list():
    play = Play(retry_loop(budget={"maxTokens": 10}), items("one"), "built")
    play.answer(say(satisfied=False, context="redo"), 10)
    play.state = recovery.set_budget(play.state, max_tokens=None)
    play.retry()
    assert (play.at, play.prompt.reasons) == ("Build", ("redo",))
    play = Play(retry_loop(budget={"maxTokens": 10}), items("one"), "built")
    play.answer(YES, 10)
    play.state = recovery.set_budget(play.state, max_tokens=20)
    play.raise_limit()
    assert (play.at, play.visit.item) == ("Tell", None)


# -- multi-turn ---------------------------------------------------------------------------

TALK = {"Talk": asks(edge("Next"), materia="M"), "Next": at("P")}


def test_draft_stays_a_draft_even_when_it_is_valid():
    play = Play(config(TALK))
    assert (play.visit.mode, names(play.prompt.parts)) == ("draft", ["request", "place", "task", "draft"])
    for count in (1, 2):
        step = play.answer(say(context="final?"))
        assert (play.at, play.visit.drafts, play.decision.by) == ("Talk", count, "draft")
        assert event_types(step) == ["socket_refinement"]
    assert play.data == {}
    assert play.state.last_output is None


def test_finalizing_asks_for_the_result_in_the_same_visit():
    play = Play(config(TALK), "draft")
    step = play.take(outputs.finalize(play.rules, play.state, play.prompt))
    assert (play.visit.mode, names(step.prompt.parts)) == ("final", ["draft", "return"])
    assert play.go(say(context="c")).at == "Next"
    assert play.data["context"] == "[Talk M] c"


def test_invalid_final_result_is_repaired_until_the_cast_fails():
    play = Play(config(TALK), "draft")
    play.take(outputs.finalize(play.rules, play.state, play.prompt))
    play.go("no json")
    assert (play.visit.mode, names(play.prompt.parts)) == ("repair", ["repair", "return"])
    assert play.go("no json").at == "repair_exhausted"
    assert names(play.raise_limit().prompt.parts) == ["repair", "return"], "in the conversation that has the drafts"
    assert play.go("{}").at == "Next"


def test_text_socket_is_finalized_without_a_format():
    play = Play(config({"Talk": at("M")}), "draft")
    step = play.take(outputs.finalize(play.rules, play.state, play.prompt))
    assert names(step.prompt.parts) == ["draft"]
    assert play.go("done").at == "complete"


def test_only_a_draft_can_be_finalized():
    for document, kind in ((config(TALK), "no_draft"), (config(CHAIN), "not_multi_turn")):
        play = Play(document)
        with pytest.raises(MateriaError) as error:
            outputs.finalize(play.rules, play.state, play.prompt)
        assert error.value.kind == kind


def test_retry_of_a_multi_turn_socket_begins_with_a_draft():
    play = Play(config(TALK), "draft")
    play.take(recovery.abort(play.state, "enough"))
    play.retry()
    assert (play.visit.mode, play.visit.drafts) == ("draft", 0)


# -- failing and aborting -----------------------------------------------------------------


def test_process_failure_stops_the_cast_and_a_retry_repeats_the_visit():
    for again in (Play.retry, Play.raise_limit):
        play = Play(config({"Run": at("U", edge("Next")), "Next": at("P")}))
        play.take(recovery.fail(play.rules, play.state, Failure("utility_timeout", "too slow", "Run")))
        assert play.at == "utility_timeout"
        step = again(play)
        assert (play.at, step.prompt, play.state.failure) == ("Run", None, None)
        assert play.go("{}").at == "Next"
        assert play.state.visits["Run"] == 1


def test_cast_can_be_aborted_while_waiting_and_between_steps():
    play = Play(config(CHAIN))
    step = play.take(recovery.abort(play.state, "enough"))
    assert (play.at, event_types(step)) == ("aborted", ["cast_end"])
    play.raise_limit()
    assert (play.at, play.route) == ("Ask", [("Ask", None)])
    between = outputs.output(play.rules, play.state, "{}").state
    stopped = recovery.abort(between, "enough").state
    for again in (recovery.retry, recovery.raise_limit):
        step = again(play.rules, stopped)
        assert (step.state.status, step.state.next) == ("ready", "Next")


def test_cast_aborted_before_its_first_step_continues_at_the_entry():
    play = Play(config(CHAIN))
    start = entering.begin(play.rules, "r")
    continued = recovery.raise_limit(play.rules, recovery.abort(start, "wait").state)
    assert (continued.state.status, continued.state.next) == ("ready", "Ask")


def test_failed_assignment_can_be_retried():
    play = Play(config({"Ask": asks(assign={"": "$.context"})}), say(context="c"))
    assert play.at == "assignment"
    play.retry()
    assert play.at == "Ask"
