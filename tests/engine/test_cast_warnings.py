"""Test the warnings of a complete cast (R45) as data, as text, in the journal and in the list of casts."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cast_helpers as h
from materia_nb.cast import open_cast
from materia_nb.cast.formatting import casts_view
from materia_nb.cast.views.status import status_lines
from materia_nb.cast.views.step_views import cast_page_html
from materia_nb.store.catalogue import cast_entry


def complete_cast(tmp_path, sockets, answers, loops=None, **fields):
    """Return a complete cast of the specified sockets, with an agent M and a generator G that give the specified
    answers.
    """
    materia = {"M": h.agent(), "G": h.agent(generator=True)}
    cast = h.start(tmp_path, h.config(sockets, materia, loops), scripted(answers), **fields)
    assert cast.run() == "complete"
    return cast


def scripted(answers):
    left = iter(answers)
    return lambda: next(left)


def codes(cast):
    return [(warning.code, warning.socket, warning.step, warning.item) for warning in cast.now.warnings]


def test_r45_cast_without_irregularities_has_no_warnings(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), scripted([{"workItems": h.items("a")}, "b", h.YES, "told"]))
    assert (cast.run(), cast.now.warnings) == ("complete", ())
    assert "warnings" not in h.lines_of(cast)[-1]["data"]
    assert status_lines(cast.now)[0].startswith("T: complete after 4 steps")


def test_r45_empty_plan_warning_names_the_sockets_that_never_ran(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), scripted([{"workItems": []}]))
    assert cast.run() == "complete"
    assert codes(cast) == [("empty-loop", "Socket-2", 1, None)]
    assert cast.now.warnings[0].sockets == ("Socket-4",)
    assert cast.status == "complete"


def test_r45_empty_loop_warning_names_only_sockets_that_never_ran(tmp_path):
    document = h.loop_config()
    document["loadouts"]["T"]["loops"]["L"]["exits"][0]["condition"] = "always"
    cast = h.start(tmp_path, document, scripted([{"workItems": []}, "told"]))
    cast.run()
    assert [(warning.code, warning.step, warning.sockets) for warning in cast.now.warnings] == [("empty-loop", 2, ())]


def test_r45_completed_list_is_not_reported_as_an_empty_loop(tmp_path):
    document = h.loop_config()
    document["loadouts"]["T"]["sockets"]["Socket-4"] = h.at("Tell", ("always", "Socket-2"))
    cast = h.start(tmp_path, document, scripted([{"workItems": h.items("a")}, "b", h.YES, "t"]))
    assert (cast.run(), cast.now.warnings) == ("complete", ())


def walk(*edges, advance, exits):
    """Return a loadout with a generator and one socket that processes its items."""
    sockets = {
        "Socket-1": h.at("G", ("always", "Socket-2"), parse="json"),
        "Socket-2": h.at("M", *edges, parse="json", advance={"when": advance}),
        "Socket-3": h.at("M"),
        "Socket-4": h.at("M"),
    }
    routes = [
        {"id": f"e{n}", "from": "Socket-2", "condition": when, "targetSocketId": to}
        for n, (when, to) in enumerate(exits)
    ]
    loop = {"sockets": ["Socket-2"], "consumes": {"from": "Socket-1", "output": "workItems"}, "exits": routes}
    return sockets, {"L": loop}


AGAIN = ("always", "Socket-2")
PLAN = {"workItems": h.items("a", "b")}


def test_r45_unsatisfied_last_item_without_a_matching_exit_causes_two_warnings(tmp_path):
    sockets, loops = walk(AGAIN, advance="always", exits=[("satisfied", "Socket-3")])
    cast = complete_cast(tmp_path, sockets, [PLAN, h.YES, h.NO], loops)
    about = ("Socket-2", 3, "WI-2")
    assert codes(cast) == [("unanswered-verdict", *about), ("exhausted-unmatched", *about)]


def test_cast_that_ends_inside_a_loop_with_open_items_has_a_warning(tmp_path):
    back = {"Socket-2": h.at("M", ("satisfied", "Socket-3"), ("not_satisfied", "Socket-2"), parse="json")}
    sockets = {
        "Socket-1": h.at("G", AGAIN, parse="json"),
        **back,
        "Socket-3": h.at("M"),
        "Socket-4": h.at("M"),
    }
    exits = [{"id": "done", "from": "Socket-3", "condition": "always", "targetSocketId": "Socket-4"}]
    loops = {"L": {"sockets": ["Socket-2", "Socket-3"], "consumes": {"from": "Socket-1"}, "exits": exits}}
    cast = complete_cast(tmp_path, sockets, [PLAN, h.YES, "x"], loops)
    assert codes(cast) == [("items-left", "Socket-3", 3, "WI-1")]
    assert "1 item left" in cast.now.warnings[0].message
    assert (
        complete_cast(tmp_path / "one", sockets, [{"workItems": h.items("a")}, h.YES, "x", "y"], loops).now.warnings
        == ()
    )


def test_r45_unsatisfied_item_is_reported_even_if_other_items_succeed(tmp_path):
    sockets, loops = walk(AGAIN, advance="always", exits=[("always", "Socket-3")])
    cast = complete_cast(tmp_path, sockets, [PLAN, h.NO, h.YES, "x"], loops)
    assert codes(cast) == [("unanswered-verdict", "Socket-2", 2, "WI-1")]


def test_r45_exit_on_not_satisfied_prevents_the_warning(tmp_path):
    exits = [("satisfied", "Socket-3"), ("not_satisfied", "Socket-4")]
    sockets, loops = walk(AGAIN, advance="always", exits=exits)
    assert complete_cast(tmp_path, sockets, [PLAN, h.YES, h.NO, "x"], loops).now.warnings == ()


def test_r45_unanswered_verdict_is_reported_if_the_retry_processes_another_item(tmp_path):
    retry = ("not_satisfied", "Socket-2")
    sockets, loops = walk(retry, AGAIN, advance="always", exits=[("always", "Socket-3")])
    cast = complete_cast(tmp_path, sockets, [PLAN, h.NO, h.YES, "x"], loops)
    assert codes(cast) == [("unanswered-verdict", "Socket-2", 2, "WI-1")]


def test_r45_only_the_last_output_of_an_item_counts(tmp_path):
    retry = ("not_satisfied", "Socket-2")
    sockets, loops = walk(retry, AGAIN, advance="satisfied", exits=[("always", "Socket-3")])
    assert complete_cast(tmp_path, sockets, [PLAN, h.NO, h.YES, h.YES, "x"], loops).now.warnings == ()


def test_r45_unfinished_item_of_a_loop_that_is_left_through_an_edge_is_reported(tmp_path):
    sockets, loops = walk(("satisfied", "Socket-2"), ("always", "Socket-4"), advance="satisfied", exits=[])
    loops["L"]["exits"] = [{"id": "e", "from": "Socket-2", "condition": "satisfied", "targetSocketId": "Socket-3"}]
    cast = complete_cast(tmp_path, sockets, [PLAN, h.NO, "x"], loops)
    assert codes(cast) == [
        ("unanswered-verdict", "Socket-2", 2, "WI-1"),
        ("never-worked-on", "Socket-2", None, "WI-2"),
    ]


def test_r45_verdicts_about_old_items_are_not_reported_after_a_new_plan(tmp_path):
    sockets, loops = walk(("satisfied", "Socket-2"), ("always", "Socket-1"), advance="satisfied", exits=[])
    loops["L"]["exits"] = [{"id": "e", "from": "Socket-2", "condition": "satisfied", "targetSocketId": "Socket-3"}]
    cast = complete_cast(tmp_path, sockets, [PLAN, h.NO, PLAN, h.YES, h.YES, "x"], loops)
    assert codes(cast) == [("same-again", "Socket-1", 3, None)]


def test_r45_cast_that_ends_because_no_guarded_edge_matches_is_reported(tmp_path):
    sockets = {"Socket-1": h.at("M", ("satisfied", "Socket-2"), parse="json"), "Socket-2": h.at("M")}
    cast = complete_cast(tmp_path, sockets, [h.NO])
    about = ("Socket-1", 1, None)
    assert codes(cast) == [("unanswered-verdict", *about), ("no-edge-matched", *about)]


def test_r45_verdict_that_is_followed_by_other_outputs_is_not_reported(tmp_path):
    sockets = {"Socket-1": h.at("M", ("always", "Socket-2"), parse="json"), "Socket-2": h.at("M")}
    assert complete_cast(tmp_path, sockets, [h.NO, "x"]).now.warnings == ()


def test_r45_finished_foreach_outside_loops_has_no_warning(tmp_path):
    sockets = {
        "Socket-1": h.at("G", ("always", "Socket-2"), parse="json"),
        "Socket-2": h.at("M", AGAIN, foreach={"items": "state.workItems"}, advance={"when": "always"}),
    }
    assert complete_cast(tmp_path, sockets, [PLAN, "x", "y"]).now.warnings == ()


@pytest.fixture
def empty(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), scripted([{"workItems": []}]))
    cast.run()
    return cast


def test_r45_every_view_shows_the_warnings(empty):
    lines = status_lines(empty.now)
    assert lines[0].startswith("T: complete, with warnings, after 1 step")
    assert lines[1].startswith("warning: empty-loop: loop L was skipped")
    picture = empty._repr_mimebundle_()
    assert all(word in picture["image/svg+xml"] for word in ("with warnings", "empty-loop"))
    page = cast_page_html(empty.now)
    assert all(word in page for word in ("complete, with warnings", "empty-loop", "Tell never ran"))


def test_r45_journal_and_cast_list_contain_the_warnings(empty):
    end = h.lines_of(empty)[-1]["data"]
    assert end["ok"] is True
    assert [(warning["code"], warning["socket"], warning["sockets"]) for warning in end["warnings"]] == [
        ("empty-loop", "Socket-2", ["Socket-4"])
    ]
    entry = cast_entry(empty.run_dir)
    assert (entry.status, entry.warnings) == ("complete", ("empty-loop",))
    output = repr(casts_view([entry]))
    assert all(words in output for words in ("complete, with warnings:", "empty-loop"))


def test_r45_reopened_cast_has_the_same_warnings(empty):
    opened = open_cast(empty.run_dir)
    assert opened.now.warnings == empty.now.warnings
    assert opened.now.differences == ()


def test_r45_going_back_removes_the_warnings(empty):
    empty.back(0)
    assert empty.now.warnings == ()


def test_r45_why_names_the_loop_that_was_skipped_after_a_step(empty):
    told = str(empty.why())
    assert "Edge 1 (always) leads to Build." in told
    assert "Build of loop L was skipped: its list is empty; the loop has no always exit" in told


# -- R64: what was said ----------------------------------------------------------------------


def reworked(tmp_path, *answers):
    document = h.loop_config(limits={"maxNoAdvanceCycles": 5})
    return h.start(tmp_path, document, scripted([{"workItems": h.items("a", "b")}, *answers]))


def test_r64_repeated_output_for_the_same_item_is_reported(tmp_path):
    no = '{"satisfied": false, "context": "once  more"}'
    cast = reworked(tmp_path, "b ", h.NO, " b", no, "other", h.YES, "b", h.YES, "told")
    assert cast.run() == "complete"
    assert codes(cast) == [("same-again", "Socket-2", 4, "WI-1"), ("same-again", "Socket-3", 5, "WI-1")]
    assert "for item a in visit 2" in cast.now.warnings[0].message
    assert [warning["code"] for warning in h.lines_of(cast)[-1]["data"]["warnings"]] == ["same-again"] * 2
    h.assert_same(open_cast(cast.run_dir), cast)


def test_r64_outputs_that_are_pinned_or_for_other_items_are_not_repetitions(tmp_path):
    cast = reworked(tmp_path, h.NO, h.YES, h.YES.replace("well", "very well"), "told")
    cast.pins.add("Build", "pinned")
    assert cast.run() == "complete"
    assert codes(cast) == []


def test_r64_repaired_answer_whose_list_has_become_empty_is_reported(tmp_path):
    full = {"workItems": h.items(*"abcdef"), "summary": "no such field"}
    cast = h.start(tmp_path, h.loop_config(), scripted([full, {"workItems": []}]))
    cast.run()
    assert ("empty-answer", "Socket-1", 1, None) in codes(cast)
    cast = h.start(tmp_path, h.loop_config(), scripted([full, {"workItems": h.items("a")}, "b", h.YES, "told"]))
    cast.run()
    assert codes(cast) == []


def test_r64_breakpoints_stop_on_repeated_and_empty_answers(tmp_path):
    cast = reworked(tmp_path, "b", h.NO, "b", h.NO, "b", h.YES, "c", h.YES, "told")
    cast.breakpoints.add(kind="same_again")
    assert (cast.run(), len(cast.steps)) == ("breakpoint", 4)
    assert (cast.run(), len(cast.steps)) == ("breakpoint", 5)
    cast.breakpoints.clear()
    cast.breakpoints.add("Socket-2", kind="same_again", nth=2)
    assert (cast.run(), len(cast.steps)) == ("breakpoint", 6)
    assert repr(cast.breakpoints) == "<breakpoints: Build repeats its output, 2nd time>"
    full = {"workItems": h.items(*"abcdef"), "summary": "no such field"}
    cast = h.start(
        tmp_path,
        h.config(
            {"Socket-1": h.at("G", ("always", "Socket-2"), parse="json"), "Socket-2": h.at("M")},
            {"G": h.agent(generator=True), "M": h.agent()},
        ),
        scripted([full, {"workItems": []}, "told"]),
    )
    cast.breakpoints.add(kind="empty_answer")
    assert (cast.run(), len(cast.steps)) == ("breakpoint", 1)


def entered_twice(tmp_path, first, second):
    """Run a cast that enters a loop over ``state.rows`` twice; an agent replaces the list between the entries."""
    sockets = {
        "Socket-1": h.at("M", ("always", "Socket-2"), parse="json", assign={"rows": "$.rows"}),
        "Socket-2": h.at("M", ("always", "Socket-2"), parse="json", foreach={"items": "state.rows"}, advance={}),
    }
    route = {"id": "x", "from": "Socket-2", "condition": "satisfied", "targetSocketId": "Socket-1"}
    loops = {"F": {"sockets": ["Socket-2"], "exits": [route]}}
    more = [h.YES] * (len(second) - len(first))
    answers = [{"rows": first}, *[h.YES] * len(first), {"rows": second}, *more, {"rows": second}]
    return complete_cast(tmp_path, sockets, answers, loops)


def test_r67_loop_entered_again_with_an_empty_list_is_reported(tmp_path):
    cast = entered_twice(tmp_path, ["a"], [])
    assert [(warning.code, warning.socket) for warning in cast.now.warnings] == [("empty-loop", "Socket-2")]


def test_r67_entries_inserted_before_the_cursor_are_reported(tmp_path):
    cast = entered_twice(tmp_path, [{"title": "a"}, {"title": "b"}], [{"title": "a", "n": 1}, {"title": "c"}])
    assert [(warning.code, warning.socket, warning.item) for warning in cast.now.warnings] == [
        ("never-worked-on", "Socket-2", "1")
    ]
    assert "item c was never worked on: the list was replaced after its loop had passed this position" in str(
        cast.now.warnings[0]
    )


@pytest.mark.parametrize("second", [["a", "b"], ["a"]])
def test_r67_fully_processed_list_has_no_warning(tmp_path, second):
    warnings = entered_twice(tmp_path, ["a", "b"], second).now.warnings
    assert {warning.code for warning in warnings} <= {
        "same-again"
    }  # which is about the agent that gives the list again


@settings(max_examples=40)
@given(first=st.lists(st.sampled_from("abc"), max_size=4), second=st.lists(st.sampled_from("abc"), max_size=4))
def test_r67_every_list_entry_of_a_loop_is_visited_or_reported(first, second):
    with TemporaryDirectory() as folder:
        cast = entered_twice(Path(folder), first, second)
        visited = {(step.item_key, step.at.item.value) for step in cast.steps if step.at.item is not None}
        reported = {warning.item for warning in cast.now.warnings}
        missing = [place for place, row in enumerate(cast.state["rows"]) if (str(place), row) not in visited]
        assert all(str(place) in reported for place in missing)
        assert cast.state["rows"] or "empty-loop" in {one.code for one in cast.now.warnings}


def test_r67_items_after_the_cursor_are_reported_when_the_loop_is_left(tmp_path):
    """An ordinary edge leaves the loop after the first of three items."""
    sockets, loops = walk(("satisfied", "Socket-4"), AGAIN, advance="always", exits=[])
    plan = {"workItems": h.items("a", "b", "c")}
    cast = complete_cast(tmp_path, sockets, [plan, h.YES, "x"], loops)
    assert [(warning.code, warning.item) for warning in cast.now.warnings] == [
        ("never-worked-on", "WI-2"),
        ("never-worked-on", "WI-3"),
    ]
    assert "item b was never worked on: the cast ended before reaching it" in str(cast.now.warnings[0])


def test_r67_items_added_after_leaving_the_loop_are_reported(tmp_path):
    sockets, loops = walk(AGAIN, advance="always", exits=[("always", "Socket-3")])
    sockets["Socket-3"] = h.at("G", ("always", "Socket-4"), parse="json", assign={"workItems": "$.workItems"})
    answers = [PLAN, h.YES, h.YES, {"workItems": h.items("a", "b", "later")}, "x"]
    cast = complete_cast(tmp_path, sockets, answers, loops)
    assert [(warning.code, warning.item) for warning in cast.now.warnings] == [("never-worked-on", "WI-3")]


def test_r65_loop_without_exits_causes_no_warning_about_unmatched_exits(tmp_path):
    sockets = {
        "Socket-1": h.at("G", ("always", "Socket-2")),
        "Socket-2": h.at("M", ("always", "Socket-2"), parse="json", advance={"when": "always"}),
    }
    loops = {"L": {"sockets": ["Socket-2"], "consumes": {"from": "Socket-1"}}}
    assert complete_cast(tmp_path, sockets, [{"workItems": h.items("a")}, h.YES], loops).now.warnings == ()
