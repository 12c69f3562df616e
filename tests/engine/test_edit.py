"""Test edits between steps: the next prompt, corrected outputs, going back, and patches."""

from __future__ import annotations

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import Folded, Play, asks, at, config, edge, say
from materia_nb.engine import decide, edit
from materia_nb.errors import MateriaError
from materia_nb.handoff.checks import RefusedAnswer
from materia_nb.jsonvalue import equal_json, frozen
from protocol_helpers import json_values

CHAIN = config({"A": asks(edge("B", "satisfied"), edge("end")), "B": at("T"), "C": at("P")})


def test_edit_updates_the_prompt_only_in_the_first_turn():
    play = Play(CHAIN)
    changed = play.state._replace(data={"x": "EDITED"})
    assert "EDITED" in edit.prompt_after(play.rules, changed).text
    play.go("not json")
    assert play.visit.turn == 1
    assert edit.prompt_after(play.rules, play.state) is None


def test_edit_does_not_create_a_prompt_for_a_utility_or_an_idle_cast():
    play = Play(CHAIN, say(satisfied=True))
    assert play.visit.socket == "B"
    assert edit.prompt_after(play.rules, play.state) is None
    assert edit.prompt_after(play.rules, play.state._replace(status="ready")) is None


def test_correction_is_routed_like_an_answer_and_keeps_token_counts():
    cast = Folded(CHAIN).answers(say(satisfied=True))
    used, before = cast.state.usage, cast.session.steps[-1].before
    step = edit.edit_output(cast.rules, before, cast.state, say(satisfied=False), "corrected.md")
    assert (step.state.next, step.state.usage, step.state.changed) == ("end", used, ("the output of A P",))
    assert step.state.last_artifact == "corrected.md"
    with pytest.raises(RefusedAnswer, match="was refused"):
        edit.edit_output(cast.rules, before, cast.state, "not json")


def test_going_back_keeps_usage_and_is_refused_inside_a_visit():
    cast = Folded(CHAIN).answers(say(satisfied=True)).do(decide.enter)
    earlier = cast.session.steps[0].after
    assert edit.back_to(earlier, cast.state).usage == cast.state.usage
    with pytest.raises(MateriaError, match="has not finished"):
        edit.back_to(cast.state, cast.state)


def test_edit_returns_a_readable_description_of_its_changes():
    paths = ["/workItems/0/title", "/context", "/a~1b~0c/d", "/a~1b~0c"]
    patch = [{"op": "replace", "path": path, "value": 1} for path in paths]
    assert edit.describe_changes(patch) == ["the work items", "the handoffs", "state.a/b~c"]


@given(
    before=st.dictionaries(st.text(max_size=3), json_values, max_size=4),
    after=st.dictionaries(st.text(max_size=3), json_values, max_size=4),
)
def test_patch_and_its_inverse_convert_between_two_states(before, after):
    assert equal_json(edit.apply_patch(before, edit.patch_between(before, after)), after)
    assert equal_json(edit.apply_patch(after, edit.patch_between(after, before)), before)


@given(before=json_values, after=json_values)
def test_patch_produces_the_same_result_as_the_jsonpatch_library(before, after):
    patch = jsonpatch.make_patch({"a": before}, {"a": after}).patch
    assert edit.apply_patch({"a": before}, patch) == jsonpatch.apply_patch({"a": before}, patch)


def test_patched_state_shares_unchanged_values_with_the_original():
    before = frozen({"list": [{"deep": 1}, {"deep": 2}], "note": {}})
    after = edit.apply_patch(before, [{"op": "replace", "path": "/list/1/deep", "value": 3}])
    assert after == {"list": [{"deep": 1}, {"deep": 3}], "note": {}}
    assert after["note"] is before["note"]
    assert after["list"][0] is before["list"][0]


@pytest.mark.parametrize(
    "change",
    [
        {"op": "remove", "path": "/a"},
        {"op": "replace", "path": "/a", "value": 1},
        {"op": "add", "path": "/a/b", "value": 1},
        {"op": "add", "path": "/list/2", "value": 1},
        {"op": "replace", "path": "/list/1", "value": 1},
        {"op": "move", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/b"},
        {"path": "/list"},
        {"op": "test", "path": "/list", "value": 1},
        {"op": "change", "path": "/list", "value": 1},
        {"op": ["add"], "path": "/list", "value": 1},
        {"op": "add", "path": "list", "value": 1},
        {"op": "add", "path": "", "value": {}},
        {"op": "add", "path": "/b~2", "value": 1},
        {"op": "add", "path": 5, "value": 1},
        {"op": "move", "from": 5, "path": "/b"},
    ],
)
def test_patch_that_cannot_be_applied_raises_one_error(change):
    with pytest.raises(MateriaError) as caught:
        edit.apply_patch({"list": [0]}, [change])
    assert caught.value.kind == "damaged_journal"
