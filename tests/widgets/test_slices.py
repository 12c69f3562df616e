"""Test the data for the front end of a cast: timeline rows, item rows, and the state as a tree."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cast_helpers as h
from materia_nb.display.blocks import blocks_as_text
from materia_nb.errors import MateriaError
from materia_nb.insight.values import value_changes
from materia_nb.jsonvalue import MISSING, equal_json, with_value_at
from materia_nb.widgets.cast_slices import LATEST_ROWS, StepRows, timeline_state
from materia_nb.widgets.failure_panel import rerun_actions
from materia_nb.widgets.frontend import ItemRow
from materia_nb.widgets.inspector_tabs import step_blocks
from materia_nb.widgets.state_tree import (
    ItemTexts,
    aliases,
    diff_blocks,
    edited_items,
    items_state,
    items_to_redo,
    json_digest,
    preview_edit,
    state_nodes,
    title_and_context,
)

# -- steps ----------------------------------------------------------------------------------------


def test_timeline_row_describes_its_step(cast):
    cast.run(steps=4)
    rows = StepRows().between(cast.now, 1, 99)
    assert [row[2] for row in rows] == ["Plan", "Build", "Eval", "Build"]
    assert rows[0][4] == "3 items: a, b, c"
    assert rows[2][3:7] == [["WI-1", "a"], "not yet", "no", "Build"]


def test_step_details_show_input_and_output(cast):
    cast.run(steps=2)
    now = cast.now
    text = blocks_as_text(step_blocks("output", now, now.steps.at(2)))
    item = now.work_items[0]
    assert text.startswith(f"worked on {item['title']}\n{item['context']}\n")
    assert "worked on" not in blocks_as_text(step_blocks("output", now, now.steps.at(1))), "a generator has no item"


def test_timeline_rows_are_cached_and_searchable(cast):
    cast.run()
    rows, now = StepRows(), cast.now
    assert rows.between(now, 2, 3)[0] is rows.between(cast.now, 2, 2)[0]
    assert rows.find(now, "BUILD")
    assert rows.find(now, "wi-2") == [step.number for step in cast.steps if step.item_key == "WI-2"]
    assert rows.find(now, "no such words") == []


def test_latest_steps_of_the_timeline_are_sent_first(cast, monkeypatch):
    cast.run()
    monkeypatch.setattr("materia_nb.widgets.cast_slices.LATEST_ROWS", 3)
    rows, now = StepRows(), cast.now
    state = timeline_state(now, rows, None, busy=False)
    assert LATEST_ROWS > 3
    assert [row[0] for row in state["tail"]] == [state["total"] - 2, state["total"] - 1, state["total"]]
    assert [row[0] for row in rows.between(now, -5, 2)] == [1, 2]
    assert rows.between(now, state["total"] + 1, 10**9) == []


def test_going_back_is_offered_only_on_the_current_branch_of_a_writable_cast(cast):
    cast.run(steps=2)
    past = cast.at(1)

    def labels(now, inspected, past, line):
        return [action["words"] for action in rerun_actions(now, inspected, past, line)]

    assert labels(cast.now, cast.now, None, None) == ["Fork", "Cast again"]
    assert labels(cast.now, cast.now, past, None) == ["Go back to here", "Fork from here", "Cast again"]
    assert labels(cast.now, cast.now, past, 0) == ["Cast again"], "an abandoned branch"
    assert labels(past, past, past, None) == ["Continue here", "Cast again"], "read-only"
    unstarted = cast.at(0)
    assert labels(unstarted, unstarted, None, None) == [], "nothing has run that could be repeated"
    cast.run()
    assert labels(cast.now, cast.now, past, None)[:2] == ["Fork from here", "Go back to here"], "the result is kept"


def test_timeline_rows_mark_edits_and_pins(cast):
    cast.run(steps=2)
    cast.edit.set("note", "x")
    cast.pins.add("Socket-3", {"satisfied": True})
    cast.step()
    rows = StepRows().between(cast.now, 1, 9)
    assert rows[1][-1] == ["edited"]
    assert rows[2][-1] == ["pinned"]


# -- items ----------------------------------------------------------------------------------------


def test_item_rows_show_done_and_current_items(cast):
    cast.run(until=lambda c: c.now.engine.cursors.get("workItemIndex") == 1)
    state = items_state(cast.now, ItemTexts(), busy=False)
    assert [title for title, _ in state["items"]] == ["a", "b", "c"]
    assert (state["done"], state["current"], state["can"]) == (1, 1, True)
    assert state["base"] == json_digest(cast.now.work_items)


def test_overlong_list_of_items_is_truncated_and_read_only(tmp_path):
    for count, more in ((10_000, 0), (10_001, 1)):
        cast = h.start(tmp_path, h.loop_config(), h.loop_agents(count))
        cast.step()
        state = items_state(cast.now, ItemTexts(), busy=False)
        assert (len(state["items"]), len(state["stands"]), state["more"]) == (10_000, 10_000, more)
        assert state["can"] == (not more)
        cast.close()


def test_edited_item_rows_keep_their_original_positions_and_other_fields():
    items = [{"title": "a", "context": "x"}, "loose"]
    rows = [ItemRow("new", "y"), ItemRow("loose", "", 1), ItemRow("a", "z", 0)]
    made, origins = edited_items(rows, items, items)
    assert made == [{"title": "new", "context": "y"}, "loose", {"title": "a", "context": "z"}]
    assert origins == [None, 1, 0]
    assert edited_items([ItemRow("a", "x", 7)], items, items)[1] == [None]
    assert edited_items([ItemRow("a", "x", 0)], items, None)[1] is None


def test_editing_a_row_keeps_the_full_text_that_the_page_received_only_in_part():
    items = [{"title": "a", "context": "x" * 9_000, "more": 1}, {"title": "b", "context": "y"}]
    rows = [ItemRow("b", "y", 1), ItemRow("a", None, 0)]
    assert edited_items(rows, items, items) == ([items[1], items[0]], [1, 0])
    assert edited_items([ItemRow("new", None, 0)], items, items)[0] == [{"title": "new", "context": "x" * 9_000}]
    moved_on = items[1:]
    assert edited_items(rows, moved_on, items) == ([items[1], items[0]], None), "from the list that was read"
    for read, place in ((None, 0), (items, 7), (items, None)):
        with pytest.raises(MateriaError) as raised:
            edited_items([ItemRow("a", None, place)], items, read)
        assert raised.value.kind == "outdated"


def test_long_items_are_truncated_on_the_page(tmp_path):
    contexts = [f"{place} " + "x" * 20_000 for place in range(400)]
    plan = {"workItems": [{"title": f"t{place}", "context": one} for place, one in enumerate(contexts)]}
    cast = h.start(tmp_path, h.loop_config(), {**h.loop_agents(), "Plan": lambda: plan})
    cast.step()
    state = items_state(cast.now, ItemTexts(), busy=False)
    assert len(json.dumps(state)) < 500_000
    assert state["items"][7] == ["t7", contexts[7][:500], 0, len(contexts[7])]
    cast.close()
    short = h.start(tmp_path, h.loop_config(), h.loop_agents(3))
    short.step()
    assert items_state(short.now, ItemTexts(), busy=False)["items"][0] == ["Part 1", "about Part 1"]
    short.close()


def test_r46_preview_announces_the_resulting_order_before_rows_are_applied(cast):
    cast.run(until=lambda c: c.now.engine.cursors.get("workItemIndex") == 1)
    cast.run(steps=1)
    assert items_state(cast.now, ItemTexts(), busy=False)["stands"] == ["done", "being worked on", "open"]
    listed = cast.now.work_items
    rows = [ItemRow(*title_and_context(listed[place]), place, place == 0) for place in (2, 0, 1)]
    items, origins = edited_items(rows, listed, listed)
    again, abandon = items_to_redo(rows, origins, abandon=True)
    assert (origins, again, abandon) == ([2, 0, 1], [0], True)
    said, order = preview_edit(cast.now, items, origins, again, abandon)
    assert order == [2, 1, 0], "the abandoned one, the one that is done again, the open one"
    assert said[:2] == [
        "'b' is abandoned; it stays in the list as skipped.",
        "'a' will be worked on again, before the other open items.",
    ]
    assert cast.now.work_items == listed
    refused, order = preview_edit(cast.now, items[:2], origins[:2], [], False)
    assert order is None
    assert "'b' is being worked on" in refused[0]


def test_rows_sent_by_the_page_are_matched_to_the_work_items(cast):
    """The page sends plain objects and not the values that the cast returned."""
    cast.step()
    rows = [{"title": "", "context": ""}, *({**item} for item in cast.now.work_items)]
    said, order = preview_edit(cast.now, rows, [None, *range(len(cast.now.work_items))], [], abandon=False)
    assert (said, order) == ([], list(range(len(rows))))


# -- the state ----------------------------------------------------------------------------------------


def test_state_tree_shows_an_item_with_several_aliases_once():
    one = h.item("a")
    data = {"item": one, "currentWorkItem": dict(one), "note": "n", "workItems": [one], "workItem": dict(one)}
    assert aliases(data) == {"item": ["currentWorkItem", "workItem"]}
    nodes = state_nodes(data)
    assert [node["name"] for node in nodes] == ["item", "note", "workItems"]
    assert nodes[0]["same"] == ["currentWorkItem", "workItem"]


def test_state_tree_is_truncated_and_counts_omitted_entries():
    wide = state_nodes({"list": list(range(1000)), "text": "x" * 5000})
    assert (wide[0]["count"], wide[0]["more"]) == (1000, 700)
    assert (len(wide[1]["text"]), wide[1]["cut"]) == (1000, 5000)
    deep: dict[str, object] = {}
    for _ in range(40):
        deep = {"in": deep}
    node = state_nodes(deep)[0]
    for _ in range(11):
        node = node["children"][0]
    assert (node["children"], node["more"]) == ([], 1)


def test_change_of_an_item_with_several_names_is_shown_once():
    before = {"item": h.item("a"), "workItem": h.item("a")}
    after = {"item": h.item("b"), "workItem": h.item("b")}
    told = diff_blocks(before, after, "t")[1].as_text()
    assert [row.partition(":")[0] for row in told.splitlines()] == ["state.item.title", "state.item.context"]
    assert diff_blocks(before, before, "t")[1].text == "no changes"


def test_state_changes_are_listed():
    before, after = {"a": 1, "b": [1, 2], "c": 0}, {"a": True, "b": [1, 3, 4], "d": None}
    _, found = diff_blocks(before, after, "what changed")
    assert found.as_text().splitlines() == [
        "state.a: [-1-]{+true+}",
        "state.b.1: [-2-]{+3+}",
        "state.b.2: {+4+}",
        "state.b: … 1 unchanged",
        "state.c: [-0-]",
        "state.d: {+null+}",
    ]


def test_added_and_removed_structures_are_compared_value_by_value():
    item = {"title": "Outline", "context": "three headings"}
    _, found = diff_blocks({"gone": [1]}, {"item": item}, "what changed")
    assert found.as_text().splitlines() == [
        "state.gone.0: [-1-]",
        "state.gone: … removed",
        "state.item.title: {+Outline+}",
        "state.item.context: {+three headings+}",
        "state.item: … added",
    ]


@pytest.mark.parametrize("path", ["list.7", "list.x", "text.inside", "nothing"])
def test_invalid_path_is_refused(path):
    with pytest.raises(MateriaError):
        with_value_at({"list": [1], "text": "t"}, path.split("."), MISSING)


@given(
    st.dictionaries(st.sampled_from("xyz"), st.integers() | st.text(max_size=3), min_size=1),
    st.integers(),
    st.data(),
)
def test_setting_a_path_changes_only_that_path(value, new, data):
    path = data.draw(st.sampled_from(sorted(value)))
    made = with_value_at(value, [path], new)
    assert all(change.path == path for change in value_changes(value, made))
    assert equal_json(with_value_at(made, [path], new), made)
