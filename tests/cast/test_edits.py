"""Test edits that a person makes between steps: items, state, outputs, and the step to continue from."""

from __future__ import annotations

import json
import time

import pytest

from cast_helpers import chain_config, item, one_config, python, start
from materia_nb.cast import open_cast
from materia_nb.errors import MateriaError

PLAN = [item("a"), item("b"), item("c")]


def rebuilt(bench, cast):
    """Return the cast as rebuilt from its journal."""
    return open_cast(cast.run_dir)


def titles(cast):
    return [one["title"] for one in cast.now.work_items]


def same_as_journal(bench, cast):
    other = rebuilt(bench, cast)
    assert other.now.engine == cast.now.engine
    assert other.route == cast.route
    assert [e.patch for e in other.now.edits] == [e.patch for e in cast.now.edits]
    return other


def test_items_are_edited_between_steps(bench, cast):
    cast.run(steps=1)
    cast.edit.items([item("b"), item("new"), item("a")])
    assert titles(cast) == ["b", "new", "a"]
    same_as_journal(bench, cast)
    bench.agent("Eval", lambda: {"satisfied": True})
    cast.run()
    assert [label for socket, _, _, label in cast.route if socket == "Socket-2"] == ["b", "new", "a"]
    same_as_journal(bench, cast)


def test_r46_done_items_stay_first_and_inserted_items_are_next(cast):
    cast.run(until=lambda c: c.now.engine.cursors.get("workItemIndex") == 1)
    pairs = cast.edit.items([item("x"), *PLAN])
    assert titles(cast) == ["a", "x", "b", "c"], "a is done; x was put before the others"
    assert pairs == ("Moved: 'x' is at position 2, not 1. Finished items come first, then the item in progress.",)
    assert cast.now.edits[-1].messages == pairs
    assert cast.now.engine.cursors["workItemIndex"] == 1
    cast.edit.items([item("b"), item("c")])
    assert cast.now.engine.cursors["workItemIndex"] == 0, "what was done is taken out"
    cast.edit.items([item("c")])
    assert cast.now.engine.cursors["workItemIndex"] == 0, "removed itself: the next becomes current"
    cast.edit.items([item("c"), item("d")])
    assert cast.edit.items([item("d"), item("c")], [1, 0]) == ()
    assert cast.now.engine.cursors["workItemIndex"] == 0, "nothing is done: what is first is next"
    same_as_journal(None, cast)


def test_cast_leaves_the_loop_when_all_items_are_removed(cast):
    cast.run(steps=1)
    cast.edit.items([])
    cast.run()
    assert cast.status == "complete"
    assert [step.socket for step in cast.steps] == ["Socket-1", "Socket-5"]


def test_item_keeps_its_retry_count_and_rework_reason_when_it_is_moved(cast):
    cast.run(steps=3)
    assert cast.now.next_socket == "Socket-2"
    assert cast.now.engine.rework_reasons[0].item == ("workItemIndex", 0, ())
    used = cast.now.engine.items["workItemIndex", 0, ()].used
    assert used == {("Socket-3", 1): 1}
    cast.edit.items([item("first"), *PLAN])
    assert titles(cast) == ["a", "first", "b", "c"], "a is being worked on"
    assert cast.now.engine.rework_reasons[0].item == ("workItemIndex", 0, ())
    assert cast.now.engine.items["workItemIndex", 0, ()].used == used
    cast.step()
    assert "not yet" in cast.steps[-1].prompt.text
    assert cast.steps[-1].item_label == "a"
    cast.edit.items([item("first"), item("b")], abandon=True)
    assert cast.now.engine.rework_reasons == ()
    assert cast.now.engine.items == {}
    assert (cast.now.next_socket, cast.now.upcoming_item.label) == ("Socket-2", "first")


def test_current_item_can_be_changed_but_not_removed(bench, cast):
    bench.agent("Build", "person")
    cast.run()
    assert cast.now.waiting_at.item.key == "WI-1"
    with pytest.raises(MateriaError, match="'a' is being worked on at Build, so it cannot be removed"):
        cast.edit.items([item("b")])
    cast.edit.items([item("z"), {"title": "a", "context": "quite another"}], [None, 0])
    assert titles(cast) == ["a", "z"]
    assert cast.now.waiting_at.item.key == "WI-1"
    assert cast.state["workItem"]["context"] == "quite another"
    assert "quite another" in cast.now.prompt.text
    same_as_journal(bench, cast)
    cast.edit.undo()
    assert "quite another" not in cast.now.prompt.text
    assert cast.now.waiting_at.item.key == "WI-1"
    assert same_as_journal(bench, cast).now.prompt == cast.now.prompt
    cast.reply("done")
    assert cast.steps[-1].decision.target == "Socket-3"


@pytest.mark.parametrize("bad", [[{"title": "x"}], [{"title": " ", "context": "c"}], ["x"], [{**item("x"), "id": 1}]])
def test_r9_invalid_items_change_nothing(cast, bad):
    cast.run(steps=1)
    before = cast.now.engine
    with pytest.raises(MateriaError, match="workItems"):
        cast.edit.items(bad)
    assert cast.now.engine is before


def test_undo_reverts_edits_one_at_a_time(bench, cast):
    cast.run(steps=1)
    before = cast.now.engine
    cast.edit.items([item("only")])
    cast.edit.state({**cast.state, "flag": True})
    cast.edit.undo()
    assert "flag" not in cast.state
    assert titles(cast) == ["only"]
    cast.edit.undo()
    assert cast.now.engine == before
    same_as_journal(bench, cast)
    with pytest.raises(MateriaError, match="No edit"):
        cast.edit.undo()
    cast.edit.items([item("only")])
    cast.step()
    with pytest.raises(MateriaError, match="has continued"):
        cast.edit.undo()


def test_patch_and_its_inverse_are_stored(cast):
    cast.run(steps=1)
    cast.edit.state({**cast.state, "n": 1})
    (made,) = cast.now.edits
    assert list(made.patch) == [{"op": "add", "path": "/n", "value": 1}]
    assert list(made.inverse) == [{"op": "remove", "path": "/n"}]
    assert made.step == 1


def test_corrected_output_is_routed_again_and_the_original_is_kept(bench, cast):
    cast.run(steps=3)
    assert cast.now.engine.next == "Socket-2"
    record = cast.edit.output('{"satisfied": true}')
    assert cast.now.engine.next == "Socket-4"
    assert cast.now.engine.rework_reasons == ()
    assert [turn.mode for turn in record.turns] == ["work", "correction"]
    assert "false" in (cast.run_dir / record.turns[0].artifact).read_text()
    same_as_journal(bench, cast)
    cast.run()
    assert cast.status == "complete"
    same_as_journal(bench, cast)


def test_invalid_correction_is_refused_and_changes_nothing(cast):
    cast.run(steps=3)
    before = cast.now.engine
    with pytest.raises(MateriaError, match=r"\$\.satisfied"):
        cast.edit.output("{}")
    assert cast.now.engine is before


def test_going_back_keeps_later_steps_as_a_branch(bench, cast):
    cast.run()
    outputs = {step.artifact: (cast.run_dir / step.artifact).read_text() for step in cast.steps}
    count = len(cast.steps)
    cast.back(2)
    assert cast.status == "ready"
    assert cast.now.next_socket == "Socket-3"
    assert len(cast.steps) == 2
    assert len(cast.now.abandoned[0]) == count - 2
    same_as_journal(bench, cast)
    bench.agent("Eval", lambda: {"satisfied": True, "context": "this time"})
    cast.run()
    assert cast.status == "complete"
    assert {name: (cast.run_dir / name).read_text() for name in outputs} == outputs
    assert "branch-1" in cast.steps[-1].artifact
    same_as_journal(bench, cast)
    cast.back(0)
    assert cast.route == []
    same_as_journal(bench, cast)


def test_fork_is_an_independent_cast(bench, cast):
    cast.run(steps=4)
    forked = cast.fork(2)
    assert forked.id != cast.id
    assert len(forked.steps) == 2
    assert forked.now.next_socket == "Socket-3"
    bench.agent("Eval", lambda: {"satisfied": True})
    forked.run()
    assert forked.status == "complete"
    assert len(cast.steps) == 4
    cast.run()
    assert cast.status == "complete"
    text = (forked.run_dir / "events.jsonl").read_text().splitlines()[0]
    assert cast.id in text
    assert "forkedFrom" in text
    forked.close()


def test_approvals_of_a_cast_do_not_apply_in_a_fork(cast):
    cast.run(steps=1)
    cast.approvals.allow("bash")
    cast.run(steps=1)
    forked = cast.fork(1)
    assert cast.approvals.allowed == {"bash"}
    assert not forked.approvals.allowed
    forked.close()


def test_going_back_keeps_used_tokens(bench, project):
    from materia_nb.agents import Reply, Usage

    bench.agent("Build", lambda turn: Reply("built", Usage(10, 5)))
    cast = bench.cast("x")
    cast.run(steps=2)
    cast.back(1)
    assert cast.now.usage.tokens == 15
    cast.step()
    assert cast.now.usage.tokens == 30


def test_complete_cast_cannot_be_edited(cast):
    cast.run()
    with pytest.raises(MateriaError, match="complete"):
        cast.edit.items([])


# -- the prompt, for one turn -------------------------------------------------------------


def test_edited_prompt_applies_to_one_turn(bench, cast):
    asked = []

    @bench.agent("Build")
    def build(turn):
        asked.append(turn.prompt)
        return "built"

    cast.step()
    first = cast.edit.prompt("task", "Build it in one file.")
    assert first.instruction == "Build it in one file."
    assert cast.now.prompt is first
    for name in ("request", "place", "item"):
        cast.edit.prompt(name, "")
    same_as_journal(bench, cast)
    cast.run(steps=1)
    assert asked == ["## Your task\nBuild it in one file."]
    assert cast.steps[-1].turns[0].prompt.text == asked[0]
    cast.run()
    assert "in one file" not in "".join(asked[1:])
    assert "a" in asked[1]
    other = same_as_journal(bench, cast)
    assert other.steps[1].prompt == cast.steps[1].prompt
    kept = cast.export.contexts() / "Socket-2-WI-1-1.md"
    assert "Build it in one file." in kept.read_text()


def test_undoing_a_state_edit_restores_the_previous_prompt(bench, cast):
    cast.step()
    cast.step(ask=False)
    reworded = cast.edit.prompt("task", "Otherwise.")
    cast.edit.items([item("renamed"), *PLAN[1:]], [0, 1, 2])
    assert "renamed" in cast.now.prompt.instruction
    cast.edit.undo()
    assert cast.now.prompt == reworded
    assert cast.steps[-1].prompt == reworded
    same_as_journal(bench, cast)


def test_edit_of_a_prompt_that_cannot_be_edited_is_refused(bench, cast, tmp_path):
    with pytest.raises(MateriaError, match="no part 'taks'") as found:
        cast.edit.prompt("taks", "x")
    assert "did you mean 'task'" in str(found.value).lower()
    over = start(tmp_path, chain_config(1), lambda: "done")
    over.run()
    with pytest.raises(MateriaError, match="No socket is waiting"):
        over.edit.prompt("task", "x")
    utility = start(tmp_path, one_config(python("print('{}')", parse="json")))
    with pytest.raises(MateriaError, match="is a utility"):
        utility.edit.prompt("task", "x")


# -- one value ----------------------------------------------------------------------------


def test_setting_a_state_value_preserves_the_work_items(bench, cast):
    cast.run(steps=1)
    cast.edit.set("plan.approved", True)
    assert cast.state["plan"] == {"approved": True}
    cast.edit.set("workItems.1.title", "better")
    assert titles(cast) == ["a", "better", "c"]
    before = cast.now.engine
    for path, value, told in [
        ("workItems", [{"title": "x"}], "no context"),
        ("workItems", {"0": 1}, "must be a list"),
        ("workItems.0.titel", 1, "only title and context"),
        ("workItems.7.title", "x", "no element '7'"),
        (" .. ", 1, "path is empty"),
    ]:
        with pytest.raises(MateriaError, match=told):
            cast.edit.set(path, value)
        assert cast.now.engine is before
    same_as_journal(bench, cast)


def test_work_item_cannot_be_set_before_the_list_exists(cast):
    with pytest.raises(MateriaError, match="no element '0'"):
        cast.edit.set("workItems.0.title", "x")
    assert cast.now.work_items == []


def test_snapshot_of_an_aborted_cast_shows_its_next_socket(cast):
    cast.run(steps=1)
    cast.abort()
    assert cast.now.upcoming_item is None
    assert cast.now.next_socket == "Socket-2"


def test_editing_a_long_list_takes_linear_time(tmp_path):
    """The former position of each of 20,000 items must be found without comparing the item with all others."""
    cast = start(tmp_path, one_config())
    cast.edit.items([item(f"old {n}") for n in range(20_000)])
    began = time.process_time()
    cast.edit.items([item(f"new {n}" if n % 2 else f"old {n}") for n in range(20_000)])
    assert time.process_time() - began < 10
    assert open_cast(cast.run_dir).state == cast.state


def test_equal_items_keep_their_order(bench, cast):
    cast.run(steps=1)
    cast.edit.items([item("a"), item("a"), item("c"), item("a")])
    cast.edit.items([item("c"), item("a"), item("a")])
    assert h_origins(cast) == [2, 0, 1]


def h_origins(cast):
    lines = [json.loads(line) for line in (cast.run_dir / "events.jsonl").read_text().splitlines()]
    return [line["data"]["lists"]["workItems"]["origins"] for line in lines if line["type"] == "state_edited"][-1]


def test_state_that_is_nested_too_deeply_is_refused(tmp_path):
    cast = start(tmp_path, one_config())
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(MateriaError, match="nested too deeply"):
        cast.edit.set("deep", deep)
    assert cast.state == {}


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", float("nan"), {"a": lambda: 1}], ids=type)
def test_edit_that_is_not_json_is_refused(tmp_path, value):
    cast = start(tmp_path, one_config())
    for act in (lambda: cast.edit.set("a", value), lambda: cast.edit.state({"a": value})):
        with pytest.raises(MateriaError, match="not JSON"):
            act()
    assert open_cast(cast.run_dir).state == cast.state == {}


def test_utilities_with_similar_names_keep_separate_scripts(bench):
    path = bench.loadouts.define_utility("Count It", "print(1)")
    bench.loadouts.define_utility("Count-It", "print(2)")
    assert path.read_text() == "print(1)"
    bench.loadouts.define_utility("Count It", "print(3)")
    assert path.read_text() == "print(3)"


def at_eval_limit(bench, cast):
    """Run until Eval has sent the first item back more often than allowed, and then edit the items."""
    bench.agent("Eval", lambda: {"satisfied": False, "feedback": "no"})
    cast.run()
    assert cast.status == "failed"
    cast.edit.items([item("a2"), item("b"), item("c"), item("d")], [0, 1, 2, None])
    return titles(cast)


def test_going_back_reapplies_newer_edits(bench, cast):
    edited = at_eval_limit(bench, cast)
    cast.edit.set("note", "mine")
    cast.back(len(cast.steps) - 1)
    assert titles(cast) == edited == ["a2", "b", "c", "d"]
    assert cast.state["note"] == "mine"
    same_as_journal(bench, cast)
    cast.edit.undo()
    assert "note" not in cast.state
    cast.edit.undo()
    assert titles(cast) == ["a", "b", "c"]
    same_as_journal(bench, cast)


@pytest.mark.parametrize("act", [lambda cast: cast.retry(limit=True), lambda cast: cast.skip("no", item=True)])
def test_actions_that_continue_a_cast_keep_edits(bench, cast, act):
    at_eval_limit(bench, cast)
    cast.edit.set("note", "mine")
    act(cast)
    assert titles(cast) == ["a2", "b", "c", "d"]
    assert cast.state["note"] == "mine"
    same_as_journal(bench, cast)


def test_going_back_to_an_edited_step_reapplies_its_edits(bench, cast):
    cast.run(steps=1)
    cast.edit.items([item("x"), *PLAN])
    cast.run(steps=2)
    cast.back(1)
    assert titles(cast) == ["x", "a", "b", "c"]
    same_as_journal(bench, cast)


def test_edit_made_while_a_step_waits_is_applied_once(bench, cast):
    cast.run(steps=1)
    cast.step(ask=False)
    cast.edit.items([*PLAN, item("d")])
    cast.step()
    cast.step()
    cast.back(2)
    assert titles(cast) == ["a", "b", "c", "d"]
    cast.back(1)
    same_as_journal(bench, cast)


def test_going_back_needs_confirmation_if_an_edit_no_longer_applies(bench, cast):
    cast.run(steps=1)
    cast.edit.items([item("x"), *PLAN])
    with pytest.raises(MateriaError, match="your edit of the work items after step 1 cannot be applied") as caught:
        cast.back(0)
    assert caught.value.kind == "edits_lost"
    assert titles(cast) == ["x", "a", "b", "c"], "nothing was changed"
    assert len(cast.steps) == 1
    cast.back(0, discard_edits=True)
    assert not cast.steps
    same_as_journal(bench, cast)


def test_going_back_before_a_corrected_output_needs_confirmation(bench, cast):
    cast.run(steps=1)
    cast.edit.output({"workItems": [item("z")]})
    with pytest.raises(MateriaError, match="your correction of the output of step 1"):
        cast.back(0)
    cast.back(0, discard_edits=True)
    assert not cast.steps


def test_output_can_be_corrected_after_an_edit(bench, cast):
    edited = at_eval_limit(bench, cast)
    cast.edit.output({"satisfied": True})
    assert titles(cast) == edited
    assert cast.status == "ready"
    same_as_journal(bench, cast)


def test_correction_that_would_overwrite_an_edit_needs_confirmation(bench, cast):
    cast.run(steps=1)
    cast.edit.items([item("x"), *PLAN])
    with pytest.raises(MateriaError) as caught:
        cast.edit.output({"workItems": [item("z")]})
    assert caught.value.kind == "edits_lost"
    assert titles(cast) == ["x", "a", "b", "c"]
    cast.edit.output({"workItems": [item("z")]}, discard_edits=True)
    assert titles(cast) == ["z"]
    same_as_journal(bench, cast)


def test_going_back_before_a_raised_limit_needs_confirmation(bench, cast):
    bench.agent("Eval", lambda: {"satisfied": False, "context": "no"})
    cast.run()
    assert cast.failure.kind == "edge_traversals_exhausted"
    stopped = len(cast.steps)
    cast.retry(limit=True)
    raised = cast.now.engine.extra
    cast.back(stopped)
    assert cast.now.engine.extra == raised, "the limit was raised before that step was left"
    cast.edit.set("note", "mine")
    for act in (lambda: cast.back(stopped - 1), lambda: cast.edit.output({"satisfied": True})):
        with pytest.raises(MateriaError, match=r"the raised limit .* 2 edits would be lost") as caught:
            act()
        assert caught.value.kind == "edits_lost"
        assert (cast.state["note"], cast.now.engine.extra) == ("mine", raised)
    cast.back(stopped - 1, discard_edits=True)
    assert not cast.now.engine.extra
    same_as_journal(bench, cast)


def test_going_back_before_an_edited_prompt_needs_confirmation(bench, cast):
    cast.run(steps=1)
    cast.step(ask=False)
    cast.edit.prompt("task", "Build it in blue.")
    cast.step()
    with pytest.raises(MateriaError, match="your change to the prompt of step 2") as caught:
        cast.back(1)
    assert caught.value.kind == "edits_lost"
    assert len(cast.steps) == 2
    cast.back(1, discard_edits=True)
    assert len(cast.steps) == 1
    same_as_journal(bench, cast)


def test_going_back_reapplies_an_edit_made_while_the_target_step_waited(bench, cast):
    cast.run(steps=1)
    cast.step(ask=False)
    cast.edit.set("note", "mine")
    cast.run(steps=2)
    cast.back(2)
    cast.back(1)
    assert cast.state["note"] == "mine"
    same_as_journal(bench, cast)
