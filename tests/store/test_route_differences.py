"""Test the explanations of differences between the route of this engine and a recorded route."""

from __future__ import annotations

import pytest

from builders import Folded, asks, at, config, edge, items, retry_loop, say
from materia_nb.engine import decide, entering
from materia_nb.engine.cast_warnings import engine_reason, engine_route

CHAIN = config({"A": at("P", edge("B")), "B": at("P")})


def our_cast(cast, *, enters=False, error=""):
    step = entering.enter(cast.rules, cast.state) if enters else None
    return engine_route(cast.session, step), engine_reason(cast.session, step, error)


def test_route_reason_names_the_entry_or_the_unanswered_socket():
    cast = Folded(CHAIN)
    assert our_cast(cast) == ("continues to A", "the entry socket of the loadout comes first")
    cast.do(decide.enter)
    assert our_cast(cast) == ("is still waiting for an output of A", "the socket has not answered yet")


def test_route_reason_names_the_matching_edge():
    cast = Folded(CHAIN).answers("a")
    way, why = our_cast(cast, enters=True)
    assert (way, our_cast(cast)[0]) == ("continues to B", "continues to B")
    assert why == "the first matching edge of A is the edge to B: always matches"


def test_route_reason_states_that_the_cast_ends_if_no_edge_matches():
    cast = Folded(config({"A": asks(edge("A", "not_satisfied"))})).answers(say(satisfied=True))
    assert our_cast(cast, enters=True) == ("ends", "A has no matching edge or exit, so end follows")


def test_recorded_failure_and_abort_are_worded_as_in_this_engine():
    document = config({"A": asks(edge("B", "satisfied")), "B": at("P")}, limits={"repairAttempts": 0})
    cast = Folded(document).answers("not json")
    assert our_cast(cast) == ("fails (repair_exhausted)", cast.state.failure.message)
    stopped = Folded(CHAIN).do(decide.abort, "enough")
    assert our_cast(stopped) == ("is aborted", "enough")


def test_route_reason_names_the_socket_with_an_unusable_output():
    cast = Folded(config({"A": asks(edge("B", "satisfied")), "B": at("P")})).answers("not json")
    assert our_cast(cast)[1].startswith("the output of A cannot be used: ")


def test_route_reason_names_skipped_sockets():
    cast = Folded(retry_loop()).answers(items())
    way, why = our_cast(cast, enters=True)
    assert way == "ends"
    assert why.endswith("; skipped because no item is left: Build")


@pytest.mark.parametrize(
    "most, error, why",
    [
        (None, "Visit limit exceeded", "this engine counts visits but does not limit them; "),
        (3, "Edge traversal limit", "for this engine, this is use 1 of 3; "),
        (3, "something else", "the first matching edge of A is the edge to A"),
    ],
)
def test_limit_counted_differently_is_explained(most, error, why):
    cast = Folded(config({"A": at("P", edge("A", most=most))})).answers("a")
    assert our_cast(cast, error=error)[1].startswith(why)


@pytest.mark.parametrize(
    "most, why", [(None, "limits the uses of this edge in the whole cast"), (3, "counts the uses for each item")]
)
def test_edges_taken_for_an_item_are_counted_for_that_item(most, why):
    cast = Folded(retry_loop(most)).answers(items("a"), "built", say(satisfied=False))
    reason = our_cast(cast, error="Traversal limit")[1]
    assert why in reason
    assert "in the whole cast (1" in reason
