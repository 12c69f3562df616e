"""Test the order of edges (R3), derived advances (R15), and exits from exhausted and empty loops (R16)."""

from __future__ import annotations

import pytest

from builders import NO, YES, Play, asks, at, config, edge, exit_route, items, loop, say

A, S, N = "always", "satisfied", "not_satisfied"
TARGET = {A: "Any", S: "Good", N: "Bad"}
TARGETS = {name: at("P") for name in TARGET.values()}


# -- R3 -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "conditions, answer, taken",
    [
        ([S, N, A], YES, 0),
        ([S, N, A], NO, 1),
        ([N, A], YES, 1),
        ([S, A], NO, 1),
        ([A], YES, 0),
        ([S], NO, None),
        ([N], YES, None),
        ([], YES, None),
        ([S, S], YES, 0),
        ([N, S, S], YES, 1),
    ],
)
def test_r3_first_matching_edge_is_taken_or_the_cast_ends(conditions, answer, taken):
    edges = [edge(f"To{n}", when) for n, when in enumerate(conditions)]
    others = {e["to"]: at("P") for e in edges}
    play = Play(config({"Ask": asks(*edges), **others}), answer)
    assert play.at == ("complete" if taken is None else f"To{taken}")
    assert play.decision.by == ("implied end" if taken is None else "edge")
    seen = len(conditions) if taken is None else taken + 1
    assert [check.matched for check in play.decision.checks] == [n == taken for n in range(seen)]


def test_r3_only_booleans_match_guarded_edges():
    sockets = {"Ask": at("U", edge("Good", S), edge("Bad", N), edge("Any")), **TARGETS}
    assert Play(config(sockets), "{}").at == "Any"
    for odd in (1, "true", None, []):
        assert Play(config(sockets), say(satisfied=odd)).at == "invalid_output"


def test_r3_guarded_edges_of_a_text_socket_never_match():
    sockets = {"Ask": at("P", edge("Good", S), edge("Any")), **TARGETS}
    assert Play(config(sockets), YES).at == "Any"


# -- R16: exhaustion ----------------------------------------------------------------------


def exiting(conditions, answer, *, text=False, advance=None):
    """Return a loop of one socket and one item, with exits for the specified conditions."""
    routes = [exit_route("Do", condition, TARGET[condition]) for condition in conditions]
    do = at("P", edge("Do")) if text else asks(edge("Do"))
    sockets = {"Plan": asks(edge("Do"), materia="G"), "Do": do | {"advance": advance or {}}, **TARGETS}
    return Play(config(sockets, {"L": loop("Do", exits=routes)}), items("one"), answer)


@pytest.mark.parametrize("conditions", [[A, S, N], [N, S, A], [S, A], [A, N], [S], [N], [A], []])
@pytest.mark.parametrize("answer, guarded", [(YES, S), (NO, N), ("{}", None)])
def test_r16_matching_guarded_exit_takes_precedence_over_an_always_exit_and_the_end(conditions, answer, guarded):
    play = exiting(conditions, answer)
    route = guarded if guarded in conditions else A if A in conditions else None
    assert play.at == (TARGET[route] if route else "complete")
    assert play.decision.by == ("exit" if route else "implied end")
    assert [check.when for check in play.decision.checks if check.matched] == ([route] if route else [])


def test_r16_text_socket_takes_only_an_always_exit():
    assert exiting([S, N], YES, text=True).at == "complete"
    assert exiting([S, N, A], YES, text=True).at == "Any"


def test_r16_exits_of_other_sockets_in_the_loop_are_ignored():
    sockets = {
        "Plan": asks(edge("Do"), materia="G"),
        "Do": at("P", edge("Check")),
        "Check": at("P", edge("Do"), advance={}),
        **TARGETS,
    }
    play = Play(config(sockets, {"L": loop("Do", "Check", exits=[exit_route("Do", A, "Any")])}), items("a"), "x", "y")
    assert play.at == "complete"


def test_r16_exits_of_all_loops_that_contain_a_socket_are_checked_in_order():
    sockets = {"Rows": at("U", edge("Do")), "Do": asks(edge("Do"), advance={}), **TARGETS}
    loops = {
        "One": {
            "sockets": ["Do"],
            "iterator": {"items": "state.rows"},
            "exits": [exit_route("Do", A, "Any")],
        },
        "Two": {"sockets": ["Do"], "exits": [exit_route("Do", S, "Good"), exit_route("Do", A, "Bad")]},
    }
    rows = say(state={"rows": [1]})
    assert Play(config(sockets, loops), rows, YES).at == "Good"
    assert Play(config(sockets, loops), rows, NO).at == "Any"
    assert Play(config(sockets, dict(reversed(loops.items()))), rows, NO).at == "Bad"


def test_r16_exhausted_foreach_outside_loops_ends_the_cast():
    sockets = {
        "Rows": at("U", edge("Walk")),
        "Walk": at("P", edge("Any"), foreach={"items": "rows"}, advance={}),
        **TARGETS,
    }
    play = Play(config(sockets), say(state={"rows": [1]}), "x")
    assert (play.at, play.decision.by) == ("complete", "implied end")


def test_r21_exit_routes_do_not_count_as_traversals():
    play = exiting([A], YES)
    assert dict(play.state.traversals) == {"Plan->Do": 1}


# -- R16: empty entry ---------------------------------------------------------------------


def empty(routes, entry="Build"):
    sockets = {
        "Plan": asks(edge(entry), materia="G"),
        "Build": at("P", edge("Check")),
        "Check": asks(edge("Build"), advance={}),
        **TARGETS,
    }
    return Play(config(sockets, {"L": loop("Build", "Check", exits=routes)}), items())


@pytest.mark.parametrize(
    "routes, end",
    [
        ([("Check", A, "Any")], "Any"),
        ([("Check", A, "Any"), ("Build", A, "Good")], "Good"),
        ([("Build", A, "Good"), ("Check", A, "Any")], "Good"),
        ([("Check", S, "Good")], "complete"),
        ([("Build", S, "Good"), ("Check", A, "Any")], "Any"),
        ([("Check", A, "end")], "complete"),
        ([], "complete"),
    ],
)
def test_r16_empty_list_takes_the_always_exit(routes, end):
    play = empty([exit_route(*route) for route in routes])
    assert play.at == end
    assert play.sockets == (["Plan"] if end == "complete" else ["Plan", end])


def test_r16_entering_an_empty_loop_is_not_a_visit():
    play = empty([exit_route("Check", A, "Any")])
    assert dict(play.state.visits) == {"Plan": 1, "Any": 1}
    assert dict(play.state.traversals) == {"Plan->Build": 1}
    assert dict(play.state.cursors) == {"workItemIndex": 0}
    assert [event.type for event in play.entered.events] == ["socket_start"]
    assert (play.entered.decision.by, play.entered.decision.skipped_sockets) == ("empty loop", ("Build",))


def walk(to, name):
    return at("P", foreach={"items": "nothing"}), {
        "sockets": [name],
        "exits": [exit_route(name, A, to)],
    }


def test_r16_empty_loops_can_follow_one_another():
    names = ["W1", "W2", "W3", "W4"]
    built = {name: walk(to, name) for name, to in zip(names, [*names[1:], "Any"], strict=True)}
    document = config(
        {"Start": at("P", edge("W1")), **{name: made[0] for name, made in built.items()}, **TARGETS},
        {f"L{name}": made[1] for name, made in built.items()},
    )
    play = Play(document, "x")
    assert play.sockets == ["Start", "Any"]
    assert play.entered.decision.skipped_sockets == tuple(names)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_r16_cycle_of_empty_loops_is_followed_once_and_ends_the_cast(size):
    names = [f"W{n}" for n in range(size)]
    built = {name: walk(to, name) for name, to in zip(names, [*names[1:], names[0]], strict=True)}
    document = config(
        {"Start": at("P", edge("W0")), **{name: made[0] for name, made in built.items()}},
        {f"L{name}": made[1] for name, made in built.items()},
    )
    play = Play(document, "x")
    assert (play.at, play.sockets) == ("complete", ["Start"])
    assert play.entered.decision.skipped_sockets == tuple(names)
    assert [event.type for event in play.entered.events] == ["cast_end"]


def test_r16_exhausted_foreach_counts_as_empty_on_the_next_entry():
    sockets = {
        "Rows": at("U", edge("Walk")),
        "Walk": at("P", edge("Walk"), foreach={"items": "rows"}, advance={}),
        "Again": at("P", edge("Walk")),
        **TARGETS,
    }
    loops = {"L": {"sockets": ["Walk"], "exits": [exit_route("Walk", A, "Again")]}}
    play = Play(config(sockets, loops), say(state={"rows": [1]}), "x", "y")
    # the second time the list is used up: its always exit leads to Again, visited each time
    assert play.at == "Again"
    assert play.sockets == ["Rows", "Walk", "Again", "Again"]


def test_cast_whose_entry_is_an_empty_loop_ends_immediately():
    document = config({"Walk": at("P", foreach={"items": "nothing"})})
    play = Play(document)
    assert (play.at, play.route, play.entered.decision.target) == ("complete", [], "end")


# -- R15: what a loop's exits stand for -----------------------------------------------------


def derived(exits=None, answer=YES, legacy=None, **check):
    sockets = {
        "Plan": asks(edge("Build"), materia="G"),
        "Build": at("P", edge("Check")),
        "Check": asks(edge("Build"), **check),
        **TARGETS,
    }
    more = {} if legacy is None else {"exit": legacy}
    return Play(config(sockets, {"L": loop("Build", "Check", exits=exits, **more)}), items("one"), "x", answer)


@pytest.mark.parametrize("conditions, when", [([S], S), ([N], N), ([A], A), ([S, A], A), ([S, N], A), ([S, N, A], A)])
def test_r15_advance_is_derived_from_exits(conditions, when):
    play = derived([exit_route("Check", condition, TARGET[condition]) for condition in conditions], NO)
    fact = play.decision.advance
    assert (fact.when, fact.cursor, fact.derived, fact.moved) == (when, "workItemIndex", True, when != S)
    assert play.at == (
        "Build" if when == S else TARGET[N] if N in conditions else TARGET[A] if A in conditions else "complete"
    )


def test_r15_configured_advance_is_not_replaced_by_a_derived_advance():
    play = derived([exit_route("Check", S, "Good")], YES, advance={"when": "not_satisfied"})
    assert (play.decision.advance.derived, play.decision.advance.moved, play.at) == (False, False, "Build")


def test_r15_condition_of_a_legacy_exit_determines_advance_and_route():
    legacy = {"from": "Check", "when": "satisfied", "to": "Good"}
    assert derived(legacy=legacy, answer=YES).at == "Good"
    assert derived(legacy=legacy, answer=NO).at == "Build"
    play = derived(legacy=legacy | {"to": "end"})
    assert (play.at, play.decision.checks) == ("complete", ())


def test_r15_legacy_exit_replaces_a_route_with_the_same_condition():
    legacy = {"from": "Check", "when": "satisfied", "to": "Good"}
    play = derived([exit_route("Check", S, "Any"), exit_route("Check", N, "Bad")], YES, legacy)
    assert play.at == "Good"
    assert [check.route for check in play.decision.checks if check.matched] == ["loop-exit:L:exit:Check:satisfied"]


def test_r15_output_of_the_socket_before_a_guarded_legacy_exit_is_parsed_as_json():
    sockets = {
        "Plan": asks(edge("Build"), materia="G"),
        "Build": at("P", edge("Check")),
        "Check": at("P", edge("Build")),
        **TARGETS,
    }
    document = config(sockets, {"L": loop("Build", "Check", exit={"from": "Check", "when": S, "to": "Good"})})
    play = Play(document, items("one"), "x", "no json")
    assert play.visit.mode == "repair"
    assert play.go(YES).at == "Good"
    assert any(fact.source == "Check.parse" for fact in play.rules.graph.derived)
