"""Test work items: aliases, cursors, advance and newly planned items (R1, R12, R13, R14, R17)."""

from __future__ import annotations

import pytest

from builders import NO, YES, Play, asks, at, config, edge, exit_route, items, loop, retry_loop, say
from materia_nb.engine.items import lies_in

ROWS = say(state={"rows": ["a", "b", "c"]})


def walking(foreach, *answers, advance=None, rows=ROWS):
    """Return a loadout with a utility that outputs rows and a socket that iterates over them."""
    walk = at("P", edge("Walk"), foreach=foreach, advance=advance or {"when": "always"})
    return Play(config({"Rows": at("U", edge("Walk")), "Walk": walk}), rows, *answers)


def item_of(play):
    item = play.visit.item
    return item and (item.value, item.key, item.label, item.position)


# -- R12: aliases -------------------------------------------------------------------------


def test_r12_item_of_a_loop_that_consumes_a_generator_is_available_under_three_names():
    play = Play(retry_loop(), items("one"))
    one = {"title": "one", "context": "about one"}
    assert {k: v for k, v in play.data.items() if k != "workItems"} == {
        "item": one,
        "currentWorkItem": one,
        "workItem": one,
    }


def test_r12_foreach_variable_is_named_item_by_default():
    play = walking({"items": "state.rows"})
    assert play.data == {"rows": ["a", "b", "c"], "item": "a", "currentWorkItem": "a"}


@pytest.mark.parametrize(
    "foreach, also",
    [
        ({"items": "state.rows", "as": "row"}, {"row": "a"}),
        ({"items": "state.rows", "as": "now.row"}, {"now": {"row": "a"}}),
        ({"items": "state.rows", "as": "workItem"}, {"workItem": "a"}),
        ({"items": "rows"}, {}),
    ],
)
def test_r12_alias_can_be_a_dotted_path(foreach, also):
    data = walking(foreach).data
    assert data == {"rows": ["a", "b", "c"], "item": "a", "currentWorkItem": "a"} | also


def test_r12_foreach_over_state_work_items_also_sets_work_item():
    sockets = {
        "Rows": at("U", edge("Walk")),
        "Walk": at("P", foreach={"items": "state.workItems", "as": "x"}),
    }
    data = Play(config(sockets), items("a")).data
    assert data["workItem"] == data["x"] == data["item"]


def test_r12_aliases_are_removed_at_the_next_socket_and_at_the_end():
    document = config(
        {
            "Rows": at("U", edge("Walk")),
            "Walk": at("P", edge("Out"), foreach={"items": "rows", "as": "a.b"}),
            "Out": at("P"),
        }
    )
    play = Play(document, ROWS)
    assert play.data["a"] == {"b": "a"}
    play.go("x")
    assert play.at == "Out"
    assert play.data == {"rows": ["a", "b", "c"]}  # the object that held it was made for it
    over = walking({"items": "rows"}, "1", "2", "3")
    assert (over.at, over.data) == ("complete", {"rows": ["a", "b", "c"]})


def test_r12_alias_set_by_the_previous_socket_is_removed():
    sockets = {
        "Rows": at("U", edge("A")),
        "A": at("P", edge("B"), foreach={"items": "rows", "as": "first"}),
        "B": at("P", foreach={"items": "rows", "as": "second"}),
    }
    data = Play(config(sockets), ROWS, "x").data
    assert ("first" in data, data["second"]) == (False, "a")


def test_r12_values_next_to_a_dotted_alias_are_kept():
    rows = say(state={"rows": ["a"], "now": {"other": 1}})
    play = walking({"items": "rows", "as": "now.row"}, rows=rows)
    assert play.data["now"] == {"other": 1, "row": "a"}
    assert play.go("x").data["now"] == {"other": 1}


def test_r12_next_socket_sees_its_item_even_if_an_output_overwrote_the_alias():
    document = retry_loop()
    build = document["loadouts"]["T"]["sockets"]["Build"]
    build.update({"parse": "json", "assign": {"item": "$.context", "workItem.title": "$.context"}})
    play = Play(document, items("one", "two"), say(context="something else"))
    one = {"title": "one", "context": "about one"}
    assert play.at == "Eval"
    assert (play.data["item"], play.data["workItem"], play.visit.item.value) == (one, one, one)


@pytest.mark.parametrize("rows", [None, "text", {"0": "a"}, 3, []])
def test_r12_value_that_is_not_a_list_counts_as_an_empty_list(rows):
    play = walking({"items": "rows"}, rows=say(state={"rows": rows}))
    assert (play.at, play.sockets, dict(play.state.cursors)) == ("complete", ["Rows"], {"WalkIndex": 0})


def test_r12_null_entry_of_a_list_is_an_item():
    play = walking({"items": "rows"}, rows=say(state={"rows": [None, 0]}))
    assert item_of(play) == (None, "0", "0", 0)
    assert play.data["item"] is None
    assert item_of(play.go("x")) == (0, "1", "1", 1)


def test_r1_foreach_takes_precedence_over_the_loop():
    sockets = {
        "Parts": at("U", edge("Fill")),
        "Fill": at("UG", edge("Walk")),
        "Walk": at("P", edge("Walk"), foreach={"items": "state.parts", "cursor": "part"}),
    }
    document = config(sockets, {"L": loop("Walk", source="Fill")})
    play = Play(document, say(state={"parts": ["p", "q"]}), items("one"))
    assert item_of(play) == ("p", "0", "0", 0)
    assert play.visit.item.loop is None


def test_r1_item_comes_from_the_first_loop_with_an_iterator():
    sockets = {"Rows": at("U", edge("In")), "In": at("P", edge("In"))}
    loops = {
        "Plain": {"sockets": ["In"]},
        "First": {"sockets": ["In"], "iterator": {"items": "state.rows", "cursor": "one"}},
        "Second": {"sockets": ["In"], "iterator": {"items": "state.rows", "cursor": "two"}},
    }
    play = Play(config(sockets, loops), ROWS)
    assert (play.visit.item.loop, play.visit.item.cursor) == ("First", "one")


def test_r12_socket_outside_an_iterator_has_no_item():
    play = Play(retry_loop(), items("one"), "built", YES)
    assert (play.at, play.visit.item) == ("Tell", None)
    assert set(play.data) == {"workItems"}


# -- R13: keys, labels, cursors -----------------------------------------------------------


@pytest.mark.parametrize(
    "item, label",
    [
        ({"title": "T", "name": "N"}, "T"),
        ({"name": "N"}, "N"),
        ({"title": None, "name": "N"}, "N"),
        ({"title": 7}, "7"),
        ({"title": True}, "true"),
        ({"title": ["x", 1]}, '["x",1]'),
        ({"title": ""}, ""),
        ({"other": 1}, "0"),
        ({}, "0"),
        ("text", "0"),
        (["title"], "0"),
        (5, "0"),
    ],
)
def test_r13_item_label_is_the_title_or_else_the_name_or_key(item, label):
    play = walking({"items": "rows"}, rows=say(state={"rows": [item]}))
    assert (play.visit.item.key, play.visit.item.label) == ("0", label)


@pytest.mark.parametrize(
    "foreach, key",
    [
        ({"items": "rows"}, "0"),
        ({"items": "state.rows", "as": "workItem"}, "WI-1"),
        ({"items": "state.rows", "as": "workItems"}, "0"),
    ],
)
def test_r13_key_is_the_index_or_the_work_item_number(foreach, key):
    assert walking(foreach).visit.item.key == key


def test_r13_list_in_state_work_items_has_numbered_keys():
    walk = at("P", edge("Walk"), foreach={"items": "state.workItems", "as": "x"}, advance={"when": "always"})
    play = Play(config({"Rows": at("U", edge("Walk")), "Walk": walk}), items("a", "b"), "x")
    assert play.route == [("Rows", None), ("Walk", "WI-1"), ("Walk", "WI-2")]


def test_r13_cursor_has_a_default_name():
    assert dict(Play(retry_loop(), items("one")).state.cursors) == {"workItemIndex": 0}
    assert dict(walking({"items": "rows"}).state.cursors) == {"WalkIndex": 0}
    assert dict(walking({"items": "rows", "cursor": "i"}).state.cursors) == {"i": 0}
    sockets = {"Rows": at("U", edge("In")), "In": at("P", edge("In"))}
    play = Play(config(sockets, {"L": {"sockets": ["In"], "iterator": {"items": "state.rows"}}}), ROWS)
    assert dict(play.state.cursors) == {"InIndex": 0}


# -- R14: advance -------------------------------------------------------------------------


def test_r14_advance_uses_the_cursor_and_items_of_its_iterator():
    play = walking({"items": "rows", "cursor": "i"}, "1", "2")
    assert item_of(play)[0] == "c"
    assert play.decision.advance[:7] == ("always", True, "i", 1, 2, 3, False)
    play.go("3")
    assert play.at == "complete"
    assert play.decision.advance.exhausted


@pytest.mark.parametrize(
    "when, answer, moved",
    [
        ("satisfied", YES, True),
        ("satisfied", NO, False),
        ("not_satisfied", NO, True),
        ("not_satisfied", YES, False),
        ("always", YES, True),
        ("always", NO, True),
    ],
)
def test_r14_cursor_advances_when_the_advance_condition_is_met(when, answer, moved):
    walk = asks(edge("Walk", "satisfied"), edge("Walk"), foreach={"items": "rows"}, advance={"when": when})
    play = Play(config({"Rows": at("U", edge("Walk")), "Walk": walk}), ROWS, answer)
    assert item_of(play)[0] == ("b" if moved else "a")
    assert play.decision.advance.moved is moved


def test_r14_guarded_advance_never_happens_without_a_verdict():
    walk = at("W", edge("Walk"), foreach={"items": "rows"}, advance={"when": "not_satisfied"})
    document = config(
        {"Rows": at("U", edge("Walk")), "Walk": walk},
        materia={"W": {"type": "utility", "command": ["true"], "parse": "json"}},
    )
    play = Play(document, ROWS, "{}")
    assert item_of(play)[0] == "a"


def test_r14_list_length_is_read_after_the_step_has_changed_the_state():
    grow = at("W", edge("Walk"), foreach={"items": "rows"}, advance={})
    document = config(
        {"Rows": at("U", edge("Walk")), "Walk": grow},
        materia={"W": {"type": "utility", "command": ["true"], "parse": "json", "assign": {"rows": "$.rows"}}},
    )
    play = Play(document, say(state={"rows": [1]}), say(rows=[1, 2]), say(rows=[1]))
    assert (play.at, play.sockets) == ("complete", ["Rows", "Walk", "Walk"])


def test_r14_advance_over_a_missing_list_exhausts_the_loop_immediately():
    sockets = {"A": at("P", edge("B"), advance={"cursor": "i", "items": "state.nothing"}), "B": at("P")}
    play = Play(config(sockets), "x")
    assert (play.at, dict(play.state.cursors)) == ("complete", {"i": 1})


def test_r14_done_field_of_an_advance_has_no_effect():
    walk = {"items": "rows", "done": "end"}
    assert walking(walk, "1").at == "Walk"


def test_r2_cursor_advances_before_the_edge_is_chosen():
    """The cast leaves the last item through the exit of the loop although an edge matches (R2)."""
    play = Play(retry_loop(), items("one"), "built", YES)
    assert play.at == "Tell"
    assert play.decision.by == "exit"


# -- R17: new items -----------------------------------------------------------------------


def replanning(most=None, **top):
    """Return a loop whose Eval can return to the plan through a guarded edge."""
    sockets = {
        "Plan": asks(edge("Build"), materia="G"),
        "Build": at("P", edge("Eval")),
        "Eval": asks(edge("Build", "not_satisfied", most), edge("Gate", "satisfied")),
        "Gate": asks(edge("Plan", "not_satisfied"), edge("Build", "satisfied")),
    }
    members = loop("Build", "Eval", "Gate", exits=[exit_route("Gate", "satisfied", "end")])
    return config(sockets, {"L": members}, **top)


def test_r17_repeated_generator_resets_its_loops():
    play = Play(replanning(most=1), items("a", "b"), "x", YES, YES)
    assert item_of(play)[1] == "WI-2"
    play.go("x", NO, "x", YES, NO)  # WI-2 uses its one retry, then Gate sends it back to the plan
    assert play.at == "Plan"
    play.go(items("c", "d"))
    assert (item_of(play)[1], play.visit.item.label) == ("WI-1", "c")
    assert dict(play.state.items).keys() == {("workItemIndex", 0, ())}
    play.go("x", YES, YES, "x", NO)  # WI-2 again: its retry is there again
    assert play.at == "Build"


def test_r17_rework_reasons_are_dropped_when_the_items_are_replaced():
    play = Play(replanning(), items("a"), "x", say(satisfied=False, context="redo"), "x", YES, NO)
    assert play.at == "Plan"
    assert [entry.target for entry in play.state.rework_reasons] == ["Build", "Plan"]
    play.go(items("c"))
    assert play.prompt.reasons == ()
    assert play.state.rework_reasons == ()


def test_r17_leaving_a_loop_through_an_ordinary_edge_keeps_the_cursor():
    sockets = {
        "Plan": asks(edge("Build"), materia="G"),
        "Build": asks(edge("Build", "satisfied"), edge("Aside", "not_satisfied"), advance={"when": "satisfied"}),
        "Aside": at("P", edge("Build")),
    }
    play = Play(config(sockets, {"L": loop("Build")}), items("a", "b"), YES, NO, "x")
    assert play.route == [
        ("Plan", None),
        ("Build", "WI-1"),
        ("Build", "WI-2"),
        ("Aside", None),
        ("Build", "WI-2"),
    ]


def test_r17_repeated_generator_does_not_reset_other_loops():
    sockets = {
        "Rows": at("U", edge("Walk")),
        "Walk": at("P", edge("Plan"), foreach={"items": "rows"}, advance={}),
        "Plan": asks(edge("Do"), materia="G"),
        "Do": at("P", edge("Do"), advance={}),
    }
    play = Play(config(sockets, {"L": loop("Do")}), ROWS, "x", items("a"))
    assert dict(play.state.cursors) == {"WalkIndex": 1, "workItemIndex": 0}


def test_item_contains_itself_and_its_inner_items_but_no_other_items():
    one, inner = ("rows", 0, ()), ("parts", 2, (("rows", 0),))
    assert [lies_in(item, one) for item in (None, one, inner, ("rows", 1, ()))] == [False, True, True, False]


def test_decision_records_whether_the_item_of_the_step_is_done():
    play = Play(retry_loop(), items("one", "two"))
    given = ("built", NO, "built", YES, "built")
    assert [play.answer(one).decision.done for one in given] == [False, False, False, True, False]
