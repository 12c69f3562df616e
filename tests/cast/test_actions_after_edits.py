"""Test that every action that continues a failed cast keeps the edits of a person or asks first (R71)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cast_helpers as h
from materia_nb.agents import Reply, Usage
from materia_nb.agents.interface import AgentError
from materia_nb.cast import open_cast
from materia_nb.cast.repairs import ACTIONS, changed_definition, offered_actions
from materia_nb.errors import MateriaError

EDITS = {"note": "mine", "deep.value": [1, 2]}
"""Values that a person sets in the state, by path."""


def unreachable():
    raise AgentError("The line is dead.", kind="transport")


def fails_in_a_turn(root):
    agents = {**h.loop_agents(3), "Build": unreachable}
    return h.start(root, h.loop_config(), agents)


def fails_at_an_edge(root):
    return h.start(root, h.loop_config(), {**h.loop_agents(3), "Check": lambda: h.NO})


def fails_over_the_budget(root):
    return h.start(
        root,
        h.chain_config(3) | {"budget": {"maxTokens": 5}},
        lambda: Reply("said", Usage(5, 5)),
    )


def fails_in_a_utility(root):
    config = h.one_config(h.python("raise SystemExit(3)"))
    cast = h.start(root, config)
    fixed = h.python("print('fixed')")
    cast.runner.definitions = lambda: ({"M": fixed}, {})
    return cast


FAILURES = {
    "apply_changes": fails_in_a_utility,
    "budget": fails_over_the_budget,
    "retry_limit": fails_at_an_edge,
    "ask_again": fails_at_an_edge,
    "correct": fails_at_an_edge,
    "skip_item": fails_at_an_edge,
}
"""Functions that create a failed cast, by the action that this cast offers; for other actions, an agent fails in its
turn.
"""


def answer_of(cast):
    return {"satisfied": True} if cast.failure.socket == "Socket-3" else "by hand"


def take(cast):
    cast.edit.redefine(cast.graph.sockets[cast.failure.socket].materia.id)
    cast.retry()


def raise_budget(cast):
    cast.edit.budget(None)
    cast.retry(limit=True)


def ask_again(cast):
    cast.back(len(cast.steps) - 1)
    cast.step()


def edit_prompt(cast):
    cast.edit.prompt("task", "Try once more.")
    cast.step()


def pin(cast):
    cast.pins.add(cast.failure.socket, answer_of(cast))
    cast.retry()


PERFORM = {
    "apply_changes": take,
    "retry_turn": lambda cast: cast.retry(turn=True),
    "retry": lambda cast: cast.retry(),
    "budget": raise_budget,
    "retry_limit": lambda cast: cast.retry(limit=True),
    "ask_again": ask_again,
    "edit_prompt": edit_prompt,
    "answer": lambda cast: cast.reply(answer_of(cast)),
    "correct": lambda cast: cast.edit.output({"satisfied": True}),
    "pin": pin,
    "skip": lambda cast: cast.skip("not needed"),
    "skip_item": lambda cast: cast.skip("not needed", item=True),
}
"""Functions that perform each action as its verb does, by action."""


def act_names(cast):
    return [offer.name for offer in offered_actions(cast.now, changed_definition(cast.now))]


def edited_values(cast):
    return {"note": cast.state.get("note"), "deep.value": cast.state.get("deep", {}).get("value")}


def test_every_failure_action_is_covered_by_these_tests():
    assert set(PERFORM) == set(ACTIONS) - {"allow_folder"}


@pytest.mark.parametrize("name", PERFORM)
def test_each_action_keeps_edits_to_the_state(name, tmp_path):
    cast = FAILURES.get(name, fails_in_a_turn)(tmp_path)
    assert cast.run() == "failed"
    assert name in act_names(cast)
    for path, value in EDITS.items():
        cast.edit.set(path, value)
    PERFORM[name](cast)
    assert edited_values(cast) == EDITS
    h.assert_same(open_cast(cast.run_dir), cast)


@pytest.mark.parametrize("name", [name for name in PERFORM if name not in ("apply_changes", "budget")])
def test_each_action_keeps_edits_to_the_work_items(name, tmp_path):
    cast = FAILURES.get(name, fails_in_a_turn)(tmp_path)
    assert cast.run() == "failed"
    first, _, third = cast.now.work_items
    changed = [first, {**third, "context": "changed"}, h.item("added")]
    cast.edit.items(changed)
    PERFORM[name](cast)
    assert cast.now.work_items == changed


def test_retry_after_an_edge_limit_allows_the_announced_number_of_visits(tmp_path):
    cast = fails_at_an_edge(tmp_path)
    assert cast.run() == "failed"
    labels = {offer.name: offer.label for offer in offered_actions(cast.now)}
    assert labels["retry_limit"] == "Retry with 3 more allowed"
    builds = sum(step.socket == "Socket-2" for step in cast.steps)
    cast.retry(limit=True)
    assert cast.run() == "failed"
    assert sum(step.socket == "Socket-2" for step in cast.steps) == builds + 3


def test_retry_after_the_repair_limit_allows_the_announced_number_of_attempts(tmp_path):
    asked = []

    def prose():
        asked.append(1)
        return "prose"

    cast = h.start(tmp_path, h.loop_config(), {**h.loop_agents(), "Plan": prose})
    assert cast.run() == "failed"
    labels = {offer.name: offer.label for offer in offered_actions(cast.now)}
    assert labels["retry_limit"] == "Retry with one more attempt"
    before = len(asked)
    cast.retry(limit=True)
    assert (cast.status, len(asked)) == ("failed", before + 1)


def test_skipped_steps_and_items_are_shown_as_skipped(tmp_path):
    cast = fails_at_an_edge(tmp_path)
    assert cast.run() == "failed"
    words = {offer.name: offer.label for offer in offered_actions(cast.now)}
    assert words["skip_item"] == "Skip this item"
    cast.skip("not needed", item=True)
    assert cast.now.item_statuses == ["skipped", "open", "open"]


PATHS = ("a", "b", "c.d")


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_action_after_random_edits_keeps_all_edits_or_changes_nothing(data, tmp_path_factory):
    root = tmp_path_factory.mktemp("random")
    kind = data.draw(st.sampled_from([fails_at_an_edge, fails_in_a_turn]))
    cast = kind(root)
    edit = st.tuples(st.sampled_from(PATHS), st.integers())
    for edits in data.draw(st.lists(st.lists(edit, max_size=2), max_size=3)):
        if cast.status != "ready":
            break
        cast.run(steps=1)
        for path, value in edits:
            cast.edit.set(path, value)
    cast.run() if cast.status == "ready" else None
    for path, value in data.draw(st.lists(edit, min_size=1, max_size=3)):
        cast.edit.set(path, value)
    name = data.draw(st.sampled_from([name for name in act_names(cast) if name in PERFORM]))
    wanted = {key: value for key, value in cast.state.items() if key in ("a", "b", "c")}
    session = cast.runner.session
    refused = None
    try:
        PERFORM[name](cast)
    except MateriaError as error:
        refused = error
    if refused is not None:
        assert refused.kind == "edits_lost"
        assert cast.runner.session is session
    assert {key: value for key, value in cast.state.items() if key in ("a", "b", "c")} == wanted, name
    cast.close()
