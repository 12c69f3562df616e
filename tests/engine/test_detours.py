"""Test detours: an output requests that another socket runs first, and the cast returns afterwards."""

from __future__ import annotations

import json

import pytest

from builders import Folded, at, config, edge
from materia_nb.engine import decide
from materia_nb.engine.state import Failure
from protocol_helpers import envelope

SOCKETS = {
    "A": at("P", edge("B", "satisfied"), edge("A", "not_satisfied"), parse="json", handoff="envelope"),
    "B": at("P"),
    "Fix": at("P", edge("end")),
}


def asks_for(target, status):
    routing = {"recommendation": "DETOUR", "reason": "first the other", "next_step_suggestion": target}
    return json.dumps(envelope(status=status, routing=routing))


def route(cast):
    return [(step.socket, step.decision.by, step.decision.target) for step in cast.session.steps]


def test_detour_from_a_satisfied_socket_continues_at_the_original_target():
    cast = Folded(config(SOCKETS)).answers(asks_for("Fix", "VERIFIED"))
    assert (cast.state.next, cast.state.detours) == ("Fix", ("B",))
    cast.answers("fixed")
    assert (cast.state.next, cast.state.detours) == ("B", ())
    assert route(cast) == [("A", "detour", "Fix"), ("Fix", "return", "B")]
    assert cast.session.steps[0].decision.result.satisfied is True


def test_detour_from_an_unsatisfied_socket_returns_to_that_socket():
    cast = Folded(config(SOCKETS)).answers(asks_for("Fix", "UNVERIFIED"))
    assert (cast.state.next, cast.state.detours) == ("Fix", ("A",))
    assert cast.session.steps[-1].decision.result.satisfied is None
    cast.answers("fixed")
    assert (cast.state.next, cast.state.detours) == ("A", ())
    (asked, _) = [event for event in cast.events if event.type == "socket_complete"]
    assert asked.detour == "Fix"
    again = Folded(config(SOCKETS))
    again.answers(asks_for("Fix", "UNVERIFIED"), "fixed", asks_for("Fix", "VERIFIED"), "fixed")
    assert again.state.next == "B"


def test_cast_returns_even_from_a_detour_that_fails():
    sockets = {**SOCKETS, "Fix": at("P", edge("Help", "failed")), "Help": at("P")}
    cast = Folded(config(sockets)).answers(asks_for("Fix", "VERIFIED")).do(decide.enter)
    cast.do(decide.fail, Failure("agent_error", "gone", "Fix"), 1)
    assert (cast.state.next, cast.state.detours) == ("Help", ("B",))
    cast.answers("helped")
    assert (cast.state.next, cast.state.detours) == ("B", ())


@pytest.mark.parametrize("most", [1, 2])
def test_detours_count_towards_the_limit_for_edges_outside_items(most):
    document = config(SOCKETS, limits={"maxEdgeTraversals": most})
    cast = Folded(document)
    for _ in range(most):
        cast.answers(asks_for("Fix", "UNVERIFIED"), "fixed")
    cast.answers(asks_for("Fix", "UNVERIFIED"))
    failure = cast.state.failure
    assert (failure.kind, failure.socket) == ("edge_traversals_exhausted", "A")
    assert "detour from A P to Fix P" in failure.message
    cast.do(decide.raise_limit)
    assert (cast.state.status, cast.state.next) == ("ready", "Fix")
