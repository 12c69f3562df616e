"""Test the limits that stop endless casts, and counts that have no limit (R18, R21)."""

from __future__ import annotations

import pytest

from builders import NO, YES, Play, asks, at, config, edge, items, loop, retry_loop, say
from materia_nb.engine import entering, outputs, recovery
from materia_nb.engine.routing import edge_uses, limits_of
from materia_nb.engine.rules import Rules
from materia_nb.loadout import build_graph


def rounds(play, times):
    """Run the specified number of rounds of Build and an unsatisfied Eval."""
    return play.go(*["built", NO] * times)


# -- R18: maxTraversals -------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 5])
def test_r18_edge_can_be_taken_as_often_as_its_max_traversals_allow(most):
    play = rounds(Play(retry_loop(most), items("one")), most)
    assert play.at == "Build"
    play.go("built", NO)
    assert play.at == "edge_traversals_exhausted"
    assert play.decision.by == "failure"
    assert play.decision.chosen[6:] == (most, most)


def test_r18_edge_uses_are_counted_separately_for_each_item():
    play = rounds(Play(retry_loop(2), items("one", "two")), 2).go("built", YES)
    assert play.visit.item.key == "WI-2"
    assert rounds(play, 2).at == "Build"
    assert rounds(play, 1).at == "edge_traversals_exhausted"
    assert "for item two" in play.state.failure.message


def test_r18_edges_to_the_same_target_are_counted_separately():
    sockets = {
        "Ask": asks(edge("Back", "satisfied", 1), edge("Back", "not_satisfied", 2)),
        "Back": at("P", edge("Ask")),
    }
    play = Play(config(sockets), YES, "x", NO, "x", NO, "x")
    assert play.at == "Ask"
    assert dict(play.state.traversals)["Ask->Back"] == 3
    assert play.go(NO).at == "edge_traversals_exhausted"
    again = Play(config(sockets), YES, "x", YES)
    assert again.at == "edge_traversals_exhausted"


def test_r18_edges_inside_an_item_are_counted_only_with_max_traversals():
    document = retry_loop(limits={"maxEdgeTraversals": 1, "maxNoAdvanceCycles": 50})
    assert rounds(Play(document, items("one")), 30).at == "Build"


@pytest.mark.parametrize("limit", [None, 1, 3])
def test_r18_every_edge_outside_items_is_counted(limit):
    top = {} if limit is None else {"limits": {"maxEdgeTraversals": limit}}
    sockets = {"A": at("P", edge("B")), "B": at("P", edge("A"))}
    play = Play(config(sockets, **top), *["x", "y"] * (limit or 25))
    assert play.at == "A"
    assert play.go("x").at == "edge_traversals_exhausted"
    assert "limits.maxEdgeTraversals" in play.state.failure.message
    assert dict(play.state.traversals)["A->B"] == (limit or 25) + 1


def test_r18_max_traversals_takes_precedence_over_the_limit_outside_items():
    sockets = {"A": at("P", edge("B", most=4)), "B": at("P", edge("A", most=9))}
    play = Play(config(sockets, limits={"maxEdgeTraversals": 2}), *["x", "y"] * 4)
    assert play.at == "A"
    assert play.go("x").at == "edge_traversals_exhausted"


def test_r18_edge_is_inside_an_item_if_its_source_has_one():
    """The edge of the generator into the loop is outside an item, and the edge out of the loop is inside one (R18)."""
    sockets = {
        "Plan": asks(edge("Do"), materia="G"),
        "Do": asks(edge("Do", "satisfied"), edge("Plan", "not_satisfied")),
    }
    document = config(sockets, {"L": loop("Do")}, limits={"maxEdgeTraversals": 2})
    play = Play(document, *[items("one"), YES, YES, NO] * 2)
    assert play.at == "Plan"
    assert play.go(items("one")).at == "edge_traversals_exhausted"
    assert "The edge G → P (always)" in play.state.failure.message


def test_r18_edge_taken_by_an_advancing_step_counts_for_the_previous_item():
    sockets = {"Plan": asks(edge("Do"), materia="G"), "Do": at("P", edge("Do", most=1), advance={})}
    play = Play(config(sockets, {"L": loop("Do")}), items(*"abcd"), *"xxx")
    assert play.visit.item.key == "WI-4"


# -- R18: no-advance cycles ---------------------------------------------------------------


@pytest.mark.parametrize("limit", [None, 1, 2])
def test_r18_cycles_without_an_advance_are_limited(limit):
    top = {} if limit is None else {"limits": {"maxNoAdvanceCycles": limit}}
    play = rounds(Play(retry_loop(**top), items("one")), limit or 3)
    assert play.at == "Build"
    rounds(play, 1)
    assert play.at == "no_advance_cycles_exhausted"
    assert play.state.failure.socket == "Build"
    assert "Build P → Eval P → Build P" in play.state.failure.message
    assert play.state.visits["Build"] == (limit or 3) + 1


def test_r18_advance_resets_the_cycle_count():
    play = rounds(Play(retry_loop(), items("one", "two")), 3).go("built", YES)
    assert rounds(play, 3).at == "Build"
    assert rounds(play, 1).at == "no_advance_cycles_exhausted"


def test_r18_cycle_with_a_limited_edge_is_not_counted():
    assert rounds(Play(retry_loop(40), items("one")), 40).at == "Build"


def test_r18_cycle_of_any_length_counts_once():
    sockets = {
        "Plan": asks(edge("A"), materia="G"),
        "A": at("P", edge("B")),
        "B": at("P", edge("C")),
        "C": asks(edge("B", "not_satisfied"), edge("A", "satisfied")),
    }
    loops = {"L": loop("A", "B", "C")}
    play = Play(config(sockets, loops), items("one"), "a", "b")
    # inner, outer, inner: three cycles; coming to B and C again on the way is not another one
    play.go(NO, "b", YES, "a", "b", NO, "b")
    assert play.at == "C"
    assert play.state.items["workItemIndex", 0, ()].cycles == 3
    assert [socket for socket, _ in play.state.items["workItemIndex", 0, ()].path] == ["A", "B", "C"]
    assert play.go(YES).at == "no_advance_cycles_exhausted"
    assert "A P → B P → C P → A P" in play.state.failure.message


def test_r18_cycle_through_a_limited_edge_to_the_same_socket_is_not_counted():
    sockets = {
        "Plan": asks(edge("Do"), materia="G"),
        "Do": asks(edge("Do", "not_satisfied", 9), edge("Do", "satisfied")),
    }
    play = Play(config(sockets, {"L": loop("Do")}), items("one"), *[NO] * 9)
    assert (play.at, play.state.items["workItemIndex", 0, ()].cycles) == ("Do", 0)
    assert play.go(*[YES] * 3).at == "Do"
    assert play.go(YES).at == "no_advance_cycles_exhausted"


def test_r18_cycle_that_contains_a_limited_inner_edge_is_not_counted():
    sockets = {
        "Plan": asks(edge("A"), materia="G"),
        "A": at("P", edge("B")),
        "B": at("P", edge("C")),
        "C": asks(edge("B", "not_satisfied", 1), edge("A", "satisfied")),
    }
    play = Play(config(sockets, {"L": loop("A", "B", "C")}), items("one"), "a", "b", NO)
    cycles = lambda: play.state.items["workItemIndex", 0, ()].cycles  # noqa: E731
    assert cycles() == 0
    play.go("b", YES)  # A was last entered before the bounded edge was taken
    assert (play.at, cycles()) == ("A", 0)
    play.go("a", "b", YES)  # and this round has no bounded edge any more
    assert (play.at, cycles()) == ("A", 1)


def test_r18_cycle_of_an_item_is_counted_even_if_the_cycle_leaves_the_loop():
    sockets = {
        "Plan": asks(edge("Do"), materia="G"),
        "Do": asks(edge("Do", "satisfied"), edge("Aside", "not_satisfied")),
        "Aside": at("P", edge("Do")),
    }
    play = Play(config(sockets, {"L": loop("Do")}), items("one"), *[NO, "y"] * 3)
    assert play.at == "Do"
    assert play.go(NO, "y").at == "no_advance_cycles_exhausted"


# -- raising a limit -------------------------------------------------------------------------------


def test_r18_retry_after_an_edge_limit_takes_the_edge_that_was_blocked():
    play = rounds(Play(retry_loop(2), items("one")), 3)
    assert play.at == "edge_traversals_exhausted"
    visits = dict(play.state.visits)
    play.raise_limit()
    assert (play.at, play.visit.item.key) == ("Build", "WI-1")
    assert play.state.visits["Build"] == visits["Build"] + 1
    assert rounds(play, 1).at == "Build"
    assert rounds(play, 1).at == "edge_traversals_exhausted"


def test_r18_each_retry_raises_the_limit_by_the_same_amount():
    play = rounds(Play(retry_loop(2), items("one")), 3)
    for _ in range(3):
        play.raise_limit()
        assert rounds(play, 1).at == "Build"
        assert rounds(play, 1).at == "edge_traversals_exhausted"
    cycling = rounds(Play(retry_loop(limits={"maxNoAdvanceCycles": 2}), items("one")), 3)
    for _ in range(3):
        cycling.raise_limit()
        assert rounds(cycling, 1).at == "Build"
        assert rounds(cycling, 1).at == "no_advance_cycles_exhausted"


def test_r18_retry_after_an_edge_limit_works_outside_items():
    sockets = {"A": at("P", edge("B")), "B": at("P", edge("A"))}
    play = Play(config(sockets, limits={"maxEdgeTraversals": 1}), "x", "y", "x")
    play.raise_limit()
    assert (play.at, play.sockets) == ("B", ["A", "B", "A", "B"])


def test_r18_retry_raises_a_limit_only_for_the_current_item():
    play = rounds(Play(retry_loop(1), items("one", "two")), 2)
    play.raise_limit()
    play.go("built", YES)
    assert play.visit.item.key == "WI-2"
    assert rounds(play, 1).at == "Build"
    assert rounds(play, 1).at == "edge_traversals_exhausted"


def test_r18_retry_after_too_many_cycles_enters_the_socket_that_was_blocked():
    play = rounds(Play(retry_loop(limits={"maxNoAdvanceCycles": 1}), items("one")), 2)
    assert play.at == "no_advance_cycles_exhausted"
    play.raise_limit()
    assert (play.at, play.visit.item.key, play.visit.visit) == ("Build", "WI-1", 3)
    assert play.data["item"]["title"] == "one"


# -- R21 ----------------------------------------------------------------------------------


def test_r21_traversals_beyond_the_limit_are_also_counted():
    play = rounds(Play(retry_loop(1), items("one")), 2)
    assert dict(play.state.traversals) == {"Plan->Build": 1, "Build->Eval": 2, "Eval->Build": 2}
    play.raise_limit()
    assert play.state.traversals["Eval->Build"] == 2


def test_r21_edge_to_the_end_is_counted_but_the_implied_end_is_not():
    assert dict(Play(config({"A": at("P", edge("end"))}), "x").state.traversals) == {"A->end": 1}
    assert dict(Play(config({"A": at("P")}), "x").state.traversals) == {}


def test_r21_limits_on_visits_are_accepted_and_ignored():
    sockets = {"A": at("P", edge("B"), limits={"maxVisits": 1}), "B": at("P", edge("A"))}
    document = config(sockets, limits={"maxSocketVisits": 1})
    assert Play(document, *"xyxy").state.visits == {"A": 3, "B": 2}


def test_r18_advance_from_another_socket_clears_the_counts_of_its_item():
    sockets = {
        "Rows": at("U", edge("Walk")),
        "Walk": asks(
            edge("Next", "satisfied"),
            edge("Walk", "not_satisfied", 1),
            foreach={"items": "rows", "cursor": "i"},
        ),
        "Next": at("P", edge("Walk"), advance={"cursor": "i", "items": "state.rows"}),
    }
    play = Play(config(sockets), say(state={"rows": [1, 2]}), say(satisfied=False, context="redo"), YES)
    assert set(play.state.items) == {("i", 0, ())}
    assert len(play.state.rework_reasons) == 1
    play.go("x")
    assert set(play.state.items) == {("i", 1, ())}
    assert play.state.rework_reasons == ()


def test_exit_of_a_socket_without_an_item_can_be_taken_a_limited_number_of_times():
    """Otherwise a socket without an item could leave through its exit and return forever."""
    agent = {"tools": "none", "prompt": "p"}
    document = {
        "loadouts": {
            "T": {
                "entry": "A",
                "sockets": {
                    "A": {
                        "materia": "M",
                        "edges": [{"when": "always", "to": "A"}],
                        "advance": {"cursor": "i", "items": "state.x"},
                    }
                },
                "loops": {
                    "L": {
                        "sockets": ["A"],
                        "exits": [{"id": "again", "from": "A", "condition": "always", "targetSocketId": "A"}],
                    }
                },
            }
        },
        "materia": {"M": agent},
        "limits": {"maxEdgeTraversals": 4},
    }
    rules = Rules(build_graph(document))
    state = entering.begin(rules, "go")
    while state.status == "ready":
        state = outputs.output(rules, entering.enter(rules, state).state, "text").state
    assert state.failure.kind == "edge_traversals_exhausted"
    assert state.visits == {"A": 5}
    assert state.traversals == {}, "R21: exit routes are not traversals"
    assert state.failure.message.endswith("chosen again, in the cycle M → M.")
    assert recovery.raise_limit(rules, state).state.next == "A"


def test_r18_message_names_all_sockets_of_a_cycle_that_passes_through_two_lists():
    sockets = {
        "Rows": at("U", edge("A")),
        "A": at("P", edge("B"), foreach={"items": "state.rows"}),
        "Plain": at("P", edge("A")),
        "B": at("P", edge("Plain"), foreach={"items": "state.others"}),
    }
    play = Play(config(sockets), say(state={"rows": [1], "others": [2]}), *"abcdefghijkl")
    assert play.at == "no_advance_cycles_exhausted"
    assert "A P → B P → Plain P → A P." in play.state.failure.message


@pytest.mark.parametrize(
    "most, limit, answers, told",
    [(None, 1, "abca", "B P → C P → A P → B P"), (1, 9, "abcabc", "A P → B P → C P → A P")],
)
def test_r18_message_of_an_exhausted_edge_names_its_cycle(most, limit, answers, told):
    ring = {"A": at("P", edge("B")), "B": at("P", edge("C")), "C": at("P", edge("A", most=most))}
    play = Play(config(ring) | {"limits": {"maxEdgeTraversals": limit}}, *answers)
    assert play.at == "edge_traversals_exhausted"
    assert play.state.failure.message.endswith(f"chosen again, in the cycle {told}.")


# -- how much is left -----------------------------------------------------------------------


def found(play):
    return {one.subject: (one.used, one.maximum) for one in limits_of(play.rules, play.state)}


def test_displayed_limits_include_usage_and_what_a_retry_allows():
    play = rounds(Play(retry_loop(2, limits={"repairAttempts": 1}), items("one")), 1).go("built")
    assert edge_uses(play.rules, play.state) == {("Eval", 0): (1, 2)}
    assert found(play) == {
        "tokens": (0, None),
        "repairs of one visit": (0, 1),
        "cycles of one item without an advance": (0, 3),
    }
    play.go("no object", "nor this")
    assert play.at == "repair_exhausted"
    again = recovery.raise_limit(play.rules, play.state).state
    assert {one.subject: (one.used, one.maximum) for one in limits_of(play.rules, again)}["repairs of one visit"] == (
        2,
        2,
    )


def test_cycles_of_an_item_without_a_limited_edge_are_counted():
    play = rounds(Play(retry_loop(None, limits={"maxNoAdvanceCycles": 5}), items("one")), 2)
    assert found(play)["cycles of one item without an advance"] == (2, 5)
