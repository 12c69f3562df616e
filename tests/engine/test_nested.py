"""Test inner lists that are read through the alias of an outer item (R34), and dotted aliases (R12)."""

from __future__ import annotations

import pytest

from builders import NO, YES, Folded, Play, asks, at, config, edge, exit_route, say
from materia_nb.engine import decide, entering, outputs
from materia_nb.engine.cast_warnings import find_warnings
from materia_nb.engine.item_edits import ListEdit, edit_lists
from materia_nb.engine.rules import Rules
from materia_nb.loadout import build_graph

ROWS = say(state={"rows": [{"n": "a", "subs": [1, 2]}, {"n": "b", "subs": [3]}, {"n": "c", "subs": [4, 5]}]})


def nested(inner="state.row.subs", outer_as="row", *, more=(), **fields):
    """Return a loadout that processes each sub of each row, and then the socket Out."""
    sockets = {
        "Rows": at("U", edge("Row")),
        "Row": at("Outer", edge("Sub"), foreach={"items": "state.rows", "as": outer_as, "cursor": "o"}),
        "Sub": asks(
            edge("Sub"),
            materia="Inner",
            foreach={"items": inner, "as": "sub", "cursor": "i"},
            advance={"when": "always"},
            **fields,
        ),
        "Next": at("P", edge("Row"), foreach={"items": "state.rows", "as": outer_as, "cursor": "o"}),
        **dict(more),
    }
    sockets["Next"] |= {"advance": {"when": "always"}}
    loops = {
        "Inner": {"sockets": ["Sub"], "exits": [exit_route("Sub", "always", "Next")]},
        "Outer": {"sockets": ["Row", "Next"], "exits": [exit_route("Next", "always", "Out")]},
    }
    materia = {
        "Outer": {"type": "agent", "tools": "none", "prompt": "{{item.n}}"},
        "Inner": {"type": "agent", "tools": "none", "prompt": "{{state.row.n}} {{item}}"},
    }
    return config({**sockets, "Out": at("P")}, loops, materia=materia)


def play_all(document, rows=ROWS):
    play, told = Play(document, rows), []
    while play.at not in ("Out", "complete") and len(told) < 50:
        told.append((play.at, play.prompt.instruction))
        play.go("{}")
    return play, [instruction for at, instruction in told if at == "Sub"]


@pytest.mark.parametrize("inner", ["state.row.subs", "row.subs"])
def test_r34_every_inner_item_of_every_outer_item_is_processed(inner):
    play, told = play_all(nested(inner))
    assert told == ["a 1", "a 2", "b 3", "c 4", "c 5"]
    assert play.at == "Out"


@pytest.mark.parametrize("inner", ["state.item.subs", "item.subs", "state.currentWorkItem.subs"])
def test_r34_inner_list_can_be_read_through_any_alias_of_the_outer_item(inner):
    assert play_all(nested(inner))[1] == ["a 1", "a 2", "b 3", "c 4", "c 5"]


@pytest.mark.parametrize("first", ["Row", "Sub"])
def test_outer_list_comes_before_the_lists_inside_its_items(first):
    document = nested()
    sockets = document["loadouts"][document["activeLoadout"]]["sockets"]
    given = {first: sockets.pop(first), **sockets}
    sockets.clear()
    sockets.update(given)
    lists = Rules(build_graph(document)).lists
    assert list(lists) == [("rows",), ("row", "subs")]
    assert [[iteration.iterator.cursor for iteration in iterations] for iterations in lists.values()] == [["o"], ["i"]]


def test_r34_dotted_alias_of_an_outer_item_is_kept_until_that_item_ends():
    document = nested("state.cur.row.subs", "cur.row")
    play = Play(document, ROWS, "x", "{}")
    assert play.data["cur"]["row"]["n"] == "a"
    assert (play.data["item"], play.data["sub"]) == (2, 2)
    play, _ = play_all(document)
    assert set(play.data) == {"rows"}


def test_r34_empty_inner_list_is_skipped_within_its_outer_item():
    rows = say(state={"rows": [{"n": "a", "subs": []}, {"n": "b", "subs": [3]}]})
    play, told = play_all(nested(), rows)
    assert (told, play.at) == (["b 3"], "Out")


def test_r34_inner_cursor_is_kept_until_the_outer_item_changes():
    document = nested(more={"Next": at("P", edge("Sub"))}.items())
    document["loadouts"]["T"]["sockets"]["Next"] = at(
        "P", edge("Sub"), foreach={"items": "state.rows", "as": "row", "cursor": "o"}
    )
    play = Play(document, ROWS, "x", "{}", "{}")
    assert (play.at, play.visit.item.key) == ("Next", "0")
    play.go("x")  # its list is exhausted, so it is skipped
    assert (play.at, play.visit.visit, play.state.cursors["i"]) == ("Next", 2, 2)


def test_r34_outer_aliases_are_removed_at_a_socket_that_does_not_use_them():
    document = nested()
    document["loadouts"]["T"]["sockets"]["Row"]["edges"][0]["to"] = "Plain"
    document["loadouts"]["T"]["sockets"]["Plain"] = at("P", edge("Sub"))
    play = Play(document, ROWS, "x")
    assert play.at == "Plain"
    assert "row" not in play.data


def test_r34_retries_are_counted_separately_for_each_pair_of_outer_and_inner_item():
    document = nested()
    sub = document["loadouts"]["T"]["sockets"]["Sub"]
    sub |= {"edges": [edge("Sub", "not_satisfied", 1), edge("Sub")], "advance": {"when": "satisfied"}}
    play = Play(document, ROWS, "x", NO, YES, NO, YES, "n", "x", NO)
    assert (play.at, play.visit.item.key, play.prompt.instruction) == ("Sub", "0", "b 3")
    assert play.go(NO).at == "edge_traversals_exhausted"


def test_r34_rework_reasons_are_separate_for_each_pair_of_outer_and_inner_item():
    document = nested()
    sub = document["loadouts"]["T"]["sockets"]["Sub"]
    sub |= {"edges": [edge("Sub", "not_satisfied", 2), edge("Sub")], "advance": {"when": "satisfied"}}
    play = Play(document, ROWS, "x", say(satisfied=False, context="a1 again"))
    assert play.prompt.reasons == ("a1 again",)
    play.go(YES, YES, "n", "x")
    assert (play.prompt.instruction, play.prompt.reasons) == ("b 3", ())


def test_r34_lists_nest_three_levels_deep():
    rows = [{"n": "a", "subs": [{"s": [1]}, {"s": [2, 3]}]}, {"n": "b", "subs": [{"s": [4]}, {"s": [5]}]}]
    walk = {"when": "always"}
    sockets = {
        "Rows": at("U", edge("X")),
        "X": at("P", edge("Y"), foreach={"items": "state.rows", "as": "x", "cursor": "x"}),
        "Y": at("P", edge("Z"), foreach={"items": "state.x.subs", "as": "y", "cursor": "y"}),
        "Z": at("Q", edge("Z"), foreach={"items": "state.y.s", "as": "z", "cursor": "z"}, advance=walk),
        "Y2": at("P", edge("Y"), foreach={"items": "state.x.subs", "as": "y", "cursor": "y"}, advance=walk),
        "X2": at("P", edge("X"), foreach={"items": "state.rows", "as": "x", "cursor": "x"}, advance=walk),
    }
    loops = {
        "LZ": {"sockets": ["Z"], "exits": [exit_route("Z", "always", "Y2")]},
        "LY": {"sockets": ["Y", "Y2"], "exits": [exit_route("Y2", "always", "X2")]},
        "LX": {"sockets": ["X", "X2"], "exits": [exit_route("X2", "always", "end")]},
    }
    prompt = {"Q": {"type": "agent", "tools": "none", "prompt": "{{x.n}} {{z}}"}}
    play, told = Play(config(sockets, loops, materia=prompt), say(state={"rows": rows})), []
    while play.at != "complete" and len(told) < 60:
        told += [play.prompt.instruction] if play.at == "Z" else []
        play.go("x")
    assert told == ["a 1", "a 2", "a 3", "b 4", "b 5"]


def test_r34_data_of_inner_items_is_dropped_when_the_outer_item_ends():
    play, _ = play_all(nested())
    assert all(item[0] == "o" for item in play.state.items)


def test_r12_empty_object_written_by_an_output_is_kept():
    sockets = {
        "Rows": at("U", edge("Walk")),
        "Walk": at("P", edge("Out"), foreach={"items": "rows", "as": "a.b.c"}),
        "Out": at("P"),
    }
    play = Play(config(sockets), say(state={"rows": [1], "a": {}}), "x")
    assert play.data == {"rows": [1], "a": {}}


def test_r12_removing_a_dotted_alias_keeps_its_sibling_values():
    sockets = {
        "Rows": at("U", edge("Walk")),
        "Walk": asks(edge("Out"), foreach={"items": "rows", "as": "a.b"}, assign={"a.kept": "$.context"}),
        "Out": at("P"),
    }
    play = Play(config(sockets), say(state={"rows": [1]}), say(context="k"))
    assert play.data["a"] == {"kept": "k"}


def nested_in_work_items():
    """Return a loadout whose work items have parts, which a socket in the loop processes."""
    sockets = {
        "Plan": at("U", edge("Do")),
        "Do": at("P", edge("Part"), foreach={"items": "state.workItems", "as": "task", "cursor": "w"}),
        "Part": asks(
            edge("Part", "not_satisfied", 1),
            edge("Part"),
            materia="Inner",
            foreach={"items": "state.task.context", "as": "part", "cursor": "p"},
            advance={"when": "satisfied"},
        ),
    }
    inner = {"Inner": {"type": "agent", "tools": "none", "prompt": "{{task.title}} {{part}}"}}
    return config(sockets, materia=inner)


def test_r46_moving_an_outer_item_keeps_its_inner_items_and_abandoning_it_drops_them():
    plan = say(state={"rows": []}, workItems=[{"title": "a", "context": "x"}, {"title": "b", "context": "y"}])
    play = Play(nested_in_work_items(), plan)
    given = [{"title": "a", "context": [1, 2]}, {"title": "b", "context": [3]}]
    state = play.state._replace(data={**play.state.data, "workItems": given, "task": given[0]})
    state = outputs.output(play.rules, state, "x").state
    state = outputs.output(play.rules, entering.enter(play.rules, state).state, NO).state
    assert [item for item in state.items if item[0] == "p"] == [("p", 0, (("w", 0),))]
    titles = [given[1], given[0]]
    laid = edit_lists(play.rules, state, {**state.data, "workItems": titles}, {"workItems": ListEdit((1, 0))})
    assert [item["title"] for item in laid.data["workItems"]] == ["a", "b"], "a is being worked on"
    assert (laid.state.nesting, laid.state.items) == (state.nesting, state.items)
    new = [{"title": "new", "context": "c"}]
    abandoned = {"workItems": ListEdit((None,), (), True)}
    laid = edit_lists(play.rules, state, {**state.data, "workItems": new}, abandoned)
    assert [item for item in laid.state.items if item[0] in "pw"] == []
    assert (laid.state.nesting, laid.state.rework_reasons, laid.state.next) == ({}, (), "Do")


def test_r46_edit_to_an_inner_list_also_changes_its_outer_item():
    play = Play(nested(), ROWS)
    play.go("{}")
    assert (play.at, play.prompt.instruction) == ("Sub", "a 1")
    row = {**play.data["row"], "subs": [1, 9, 2]}
    laid = edit_lists(play.rules, play.state, {**play.data, "row": row}, {"row.subs": ListEdit((0, None, 1))})
    assert laid.data["rows"][0] == laid.data["row"] == row
    assert laid.data["rows"][1:] == play.data["rows"][1:]
    assert [one.item.value for one in laid.state.shown] == [row, 1]


def warned_entries(document, *answers):
    """Return the label of each list entry named in the warnings of a complete cast."""
    cast = Folded(document).answers(*answers).do(decide.enter)
    assert cast.state.status == "complete"
    warnings = find_warnings(cast.rules, cast.session)
    return [warning.message.partition(" was")[0] for warning in warnings if warning.code == "never-worked-on"]


def with_an_early_way_out(document, **fields):
    """Add an ordinary edge that leaves the inner loop if a sub is not satisfied."""
    document["loadouts"]["T"]["sockets"]["Sub"] |= {"edges": [edge("Next", "not_satisfied"), edge("Sub")], **fields}
    return document


def test_r67_unvisited_inner_entries_of_an_earlier_outer_item_are_reported():
    document = with_an_early_way_out(nested())
    answers = (ROWS, "x", NO, "n", "x", YES, "n", "x", YES, YES, "n", "end")
    assert warned_entries(document, *answers) == ["item 1 of 0"]


def test_r67_unvisited_inner_entries_of_the_last_outer_item_are_reported():
    document = with_an_early_way_out(nested())
    answers = (ROWS, "x", YES, YES, "n", "x", YES, "n", "x", NO, "n", "end")
    assert warned_entries(document, *answers) == ["item 1 of 2"]


def test_r67_completed_inner_lists_have_no_warning():
    document = with_an_early_way_out(nested())
    assert warned_entries(document, ROWS, "x", YES, YES, "n", "x", YES, "n", "x", YES, YES, "n", "end") == []


def test_r67_inner_list_that_an_assignment_creates_is_checked_for_each_outer_item():
    document = with_an_early_way_out(nested())
    row = document["loadouts"]["T"]["sockets"]["Row"]
    row |= {**asks(*row["edges"]), "materia": "Outer", "assign": {"row.subs": "$.subs"}}
    rows = say(state={"rows": [{"n": "a"}, {"n": "b"}]})
    answers = (rows, say(subs=[1, 2]), NO, "n", say(subs=[3]), YES, "n", "end")
    assert warned_entries(document, *answers) == ["item 1 of 0"]


@pytest.mark.parametrize("subs, warned", [([], []), ([7], ["item 0 of new"])])
def test_r67_replaced_inner_list_is_checked_with_its_new_items(subs, warned):
    document = with_an_early_way_out(nested(), assign={"rows": "$.rows"})
    answers = (ROWS, "x", say(satisfied=False, rows=[{"name": "new", "subs": subs}]), "n", "end")
    assert warned_entries(document, *answers) == warned
