"""Test that ``why`` explains the decision of a step in sentences and as a table, and shows alternative targets."""

from __future__ import annotations

import pytest

from builders import NO, YES, Play, agent, asks, at, config, edge, exit_route, items, loop, retry_loop, say
from materia_nb.engine import recovery
from materia_nb.engine.state import Failure
from materia_nb.insight.why import EDGE_COLUMNS, explain


def why(play, step=None):
    step = step or play.last
    return explain(play.rules, "the step", step.decision, step.state)


def told(play):
    return str(why(play))


def branching(*conditions):
    edges = [edge(f"To{n}", when) for n, when in enumerate(conditions)]
    return config({"Ask": asks(*edges), **{e["to"]: at("P") for e in edges}})


def test_why_names_the_taken_edge_and_the_alternative():
    lines = why(Play(branching("satisfied", "not_satisfied"), YES)).lines
    assert lines == (
        "Ask P was satisfied.",
        "So edge 1 (✓) leads to To0 P.",
        "If Ask P had not been satisfied, the cast would go to To1 P.",
    )
    lines = why(
        Play(branching("satisfied", "not_satisfied"), say(satisfied=False, context="Four headings, not three."))
    ).lines
    assert lines == (
        "Ask P was not satisfied: Four headings, not three.",
        "So edge 2 (✗) leads to To1 P.",
        "If Ask P had been satisfied, the cast would go to To0 P.",
    )


def test_why_uses_the_materia_names_of_sockets():
    document = config(
        {
            "Socket-1": asks(edge("Socket-2", "satisfied"), edge("Socket-1", "not_satisfied"), materia="Judge"),
            "Socket-2": at("P"),
        },
        materia={"Judge": agent()},
    )
    assert why(Play(document, NO)).lines == (
        "Judge was not satisfied.",
        "So edge 2 (✗) leads back to Judge.",
        "The work has come back 1 of 25 times.",
        "If Judge had been satisfied, the cast would go to P.",
    )
    assert [row[2] for row in why(Play(document, NO)).rows] == ["P", "Judge"]


def test_why_names_only_the_first_of_several_edges_with_one_condition():
    text = told(Play(branching("satisfied", "satisfied", "not_satisfied"), NO))
    assert "If Ask P had been satisfied, the cast would go to To0 P." in text
    assert "To1" not in text


def test_why_omits_alternative_answers_with_the_same_target():
    assert "Had " not in told(
        Play(config({"Ask": asks(edge("B", "satisfied"), edge("B", "not_satisfied")), "B": at("P")}), YES)
    )
    assert "Had " not in told(Play(branching("always"), "{}"))
    text_socket = config({"Ask": at("P", edge("A", "satisfied"), edge("B")), "A": at("P"), "B": at("P")})
    assert "Had " not in told(Play(text_socket, "x"))


def test_why_explains_the_implied_end():
    text = told(Play(branching("satisfied"), NO))
    assert "No edge or exit matches (the output sets satisfied: false)" in text
    assert "If Ask P had been satisfied, the cast would go to To0 P." in text


def test_why_of_an_exit_names_advance_and_alternatives():
    text = told(Play(retry_loop(), items("one"), "built", YES))
    assert "The derived advance moved the cursor workItemIndex from 0 to 1 (satisfied); the list is exhausted." in text
    assert "So the exit (✓) leads to Tell P." in text
    assert "If Eval P had not been satisfied, the cast would go to Build P." in text


def test_why_explains_exits_only_after_the_last_item():
    text = told(Play(retry_loop(), items("one", "two"), "built", YES))
    assert "1 of 2 are left" in text
    assert "Tell" not in text
    text = told(Play(retry_loop(), items("one"), "built", NO))
    assert "did not move: it needs satisfied" in text
    assert "If Eval P had been satisfied, the cast would go to Tell P." in text


def test_why_explains_that_a_guarded_exit_has_priority_over_an_always_exit():
    routes = [exit_route("Do", "always", "Any"), exit_route("Do", "satisfied", "Good")]
    sockets = {
        "Plan": asks(edge("Do"), materia="G"),
        "Do": asks(edge("Do"), advance={}),
        "Any": at("P"),
        "Good": at("P"),
    }
    result = why(Play(config(sockets, {"L": loop("Do", exits=routes)}), items("one"), YES))
    rows = [dict(zip(EDGE_COLUMNS, row, strict=True)) for row in result.rows]
    assert [(row["to"], row["taken"]) for row in rows[:2]] == [("Any P", "no"), ("Good P", "yes")]
    assert "another exit has priority" in rows[0]["reason"]


def test_why_table_lists_every_edge():
    result = why(Play(branching("not_satisfied", "satisfied", "always"), YES))
    rows = [dict(zip(EDGE_COLUMNS, row, strict=True)) for row in result.rows]
    assert [(row["kind"], row["to"], row["taken"]) for row in rows] == [
        ("edge 1", "To0 P", "no"),
        ("edge 2", "To1 P", "yes"),
        ("edge 3", "To2 P", "no"),
    ]
    assert "not checked" in rows[2]["reason"]
    assert rows[1]["used"] == "1 of 25"


def test_why_explains_budgets_failures_and_hints():
    play = Play(retry_loop(1), items("one"), "built", NO)
    assert "So edge 1 (✗) leads back to Build P.\n  one has come back 1 of 1 time." in told(play)
    play.go("built", NO)
    assert "The cast stopped: " in told(play)
    assert "To continue:" in told(play)


def test_why_of_the_previous_step_explains_why_the_next_socket_was_not_entered():
    play = Play(retry_loop(limits={"maxNoAdvanceCycles": 1}), items("one"), *["built", NO] * 2)
    text = str(explain(play.rules, "the step", play.decision, play.state))
    assert "leads back to Build P." in text
    assert "The cast stopped: " in text


def test_why_explains_repairs_drafts_and_missing_sources():
    play = Play(config({"Ask": asks()}), say(odd=1))
    assert "The output was refused:" in told(play)
    assert "$.odd" in told(play)
    assert "asked again" in told(play)
    assert "draft" in told(Play(config({"Talk": at("M")}), "x"))
    assert "state.v was not changed: nope does not exist" in told(
        Play(config({"A": at("P", assign={"v": "nope"})}), "x")
    )
    assert "wrapped in prose" in told(Play(config({"Ask": asks()}), "so {}"))


def test_why_explains_empty_loops_and_unfinished_steps():
    sockets = {"Plan": asks(edge("Do"), materia="G"), "Do": at("P", edge("Do")), "Tell": at("P")}
    play = Play(config(sockets, {"L": loop("Do", exits=[exit_route("Do", "always", "Tell")])}), items())
    result = explain(play.rules, "t", None, play.state, play.entered.decision)
    assert "Do P of loop L was skipped: its list is empty" in str(result)
    assert "Tell" in str(result)
    assert "waiting" in str(result)


def test_why_names_the_target_that_is_taken_after_a_retried_budget_stop():
    play = Play(retry_loop(budget={"maxTokens": 1}), items("one"), "built")
    play.answer(YES, 5)
    play.state = recovery.set_budget(play.state, max_tokens=None)
    assert "leads to Tell P." in str(why(play, play.raise_limit()))


@pytest.mark.parametrize("kind", ["aborted", "utility_exit"])
def test_why_shows_the_message_and_hint_of_a_failure_without_an_output(kind):
    play = Play(config({"Run": at("U")}))
    step = recovery.fail(play.rules, play.state, Failure(kind, "it broke", "Run", "mend it"))
    assert "it broke" in str(why(play, step))
    assert "mend it" in str(why(play, step))


def test_why_suggests_parse_json_for_a_text_socket_whose_edges_need_a_verdict():
    play = Play(config({"Ask": at("P", edge("To", "satisfied")), "To": at("P")}), "text")
    assert 'Text has no `satisfied`: write "parse": "json" on Ask, or add an edge for always.' in told(play)
    utility = {"type": "utility", "command": ["program"]}
    play = Play(config({"Run": at("T", edge("To", "failed")), "To": at("P")}, materia={"T": utility}), "text")
    assert 'write "parse": "json" on materia.T' in told(play)
