"""Test that explore is correct: impossible events never occur, and every example cast contains its event."""

from __future__ import annotations

import os

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from builders import asks, at, config, edge, exit_route, loop, retry_loop, utility
from drawn_loadouts import loadouts, protocols, rules_of, spoken
from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.handoff.contract_protocol import ContractProtocol
from materia_nb.insight import reachable_states
from materia_nb.insight.explore import Exploration, replay_witness
from materia_nb.insight.odds import simulate_casts
from materia_nb.insight.reachable_states import Move, StateNode, StateSpace
from materia_nb.insight.scripted_answers import ScriptedResult
from materia_nb.loadout import build_graph
from materia_nb.loadout.vocabulary import Result
from protocol_helpers import OTHER_PROTOCOLS
from random_routes import check_every_route_is_possible

LAPS = int(os.environ.get("MATERIA_NB_EXPLORED", "10"))
"""Number of random loadouts that are explored; an environment variable sets it for a longer test."""
SMALL = 1_000


def explored(document, items=range(3)):
    return Exploration(build_graph(document), items)


def bench_of(tmp_path, document):
    bench_without_loadouts = Workbench(tmp_path, bundled=False)
    bench_without_loadouts.load(document)
    return bench_without_loadouts


def cast_of(wb, witness):
    cast = wb.cast("as the witness says", agents={"*": witness.answers}, pins=witness.pins)
    while cast.status in {"ready", "waiting"}:
        if cast.run() == "person" and cast.status != "held":
            cast.accept()
    return cast


def outcome(cast):
    return cast.failure.kind if cast.failure else cast.status


def taken_by(cast):
    outcomes = set()
    for step in cast.steps:
        check = step.decision.chosen if step.decision.by in {"edge", "exit"} else None
        if check:
            outcomes.add(check.route or (step.socket, check.edge_index + 1))
    return outcomes


# -- a loadout that is known ----------------------------------------------------------------


def test_explore_finds_all_ends_and_edges_of_plan_build_eval(wb):
    e = wb.explore("Plan-Build-Eval")
    assert e.can("complete")
    assert e.can("failed")
    assert e.can("Socket-5")
    assert e.never == []
    assert e.stalls == e.unreached == ()
    assert set(e.ends) == {"complete", "edge_traversals_exhausted", "no_advance_cycles_exhausted"}
    assert e.complete_search


@pytest.mark.parametrize("what", ["complete", "failed", "Socket-5", ("Socket-3", 2), "exit:Socket-4:satisfied"])
def test_example_run_can_be_repeated_as_a_cast(wb, what):
    witness = wb.explore("Plan-Build-Eval").witness(what)
    cast = wb.cast("r", loadout="Plan-Build-Eval", agents={"*": witness.answers})
    cast.run()
    assert tuple(socket for socket, *_ in cast.route) == witness.route
    assert outcome(cast) == witness.end


def test_unknown_name_suggests_a_similar_name(wb):
    with pytest.raises(MateriaError, match="Socket-55") as error:
        wb.explore("Plan-Build-Eval").can("Socket-55")
    assert "Socket-5" in error.value.hint


def test_events_accept_the_names_of_sockets(wb):
    e = wb.explore("Plan-Build-Eval")
    assert e.witness("Narrate").route == e.witness("Socket-5").route
    assert e.witness("Narrate", without="Eval", since="Build") is None
    assert e.can(("Eval", 2)) is e.can("edge 2 of Eval") is True
    assert e.witness(("Eval", 2)).route == e.witness(("Socket-3", 2)).route


@pytest.mark.parametrize(
    "event, message, hint",
    [
        ("Narate", "'Narate' is not a socket, exit or end of Plan-Build-Eval", "did you mean 'Narrate'?"),
        (("Evall", 2), "has no socket 'Evall'", "did you mean 'Eval'?"),
        ("edge 9 of Eval", "The socket 'Eval' has no edge 9", "its edges are numbered from 1 to 2"),
    ],
)
def test_misspelled_event_is_refused_with_a_suggestion(wb, event, message, hint):
    e = wb.explore("Plan-Build-Eval")
    for call in (e.can, e.witness, lambda name: e.witness("Narrate", without=name)):
        with pytest.raises(MateriaError, match=message) as error:
            call(event)
        assert (error.value.kind, error.value.hint) == ("unknown_socket", hint)


# -- rules --------------------------------------------------------------------------------


def test_counterexample_is_the_shortest_cast_that_breaks_a_rule(wb):
    e = wb.explore("Plan-Build-Eval")
    broken = e.counterexample({"never": "Narrate", "without": "Eval"})
    assert (broken.event, broken.route) == ("Narrate without Eval", ("Socket-1", "Socket-5"))
    assert e.counterexample({"never": "Narrate", "without": "Eval", "since": "Build"}) is None
    assert e.counterexample({"never": "Plan", "since": "Build"}) is None
    assert e.counterexample({"never": "Build", "since": "Eval"}).route[:4] == (
        "Socket-1", "Socket-2", "Socket-3", "Socket-2"
    )  # fmt: skip


def test_rule_without_conditions_forbids_an_event():
    e = explored(config({"A": at("P", edge("C")), "B": at("P"), "C": at("P")}))
    assert e.counterexample({"never": "B"}) is None
    assert e.counterexample({"never": "C"}).route == ("A", "C")
    with pytest.raises(MateriaError, match="No route was seen to a failure") as error:  # failures are not explored
        e.counterexample({"never": "failed"})
    assert error.value.kind == "no_witness"


def test_rule_is_neither_broken_nor_proven_after_an_incomplete_search():
    e = Exploration(build_graph(retry_loop()), range(3), 3)
    with pytest.raises(MateriaError, match=r"The search stopped .* and found no route"):
        e.counterexample({"never": "Tell", "without": "Eval", "since": "Build"})


@pytest.mark.parametrize(
    "rule", [{}, {"without": "A"}, {"never": "A", "wihtout": "A"}, {"never": ("A", 1)}, {"never": None}]
)
def test_malformed_rule_is_refused(rule):
    with pytest.raises(MateriaError, match="is not a rule") as error:
        explored(config({"A": at("P")})).counterexample(rule)
    assert error.value.kind == "usage"


# -- never --------------------------------------------------------------------------------


def test_edge_that_is_never_taken_is_named_by_number():
    """A text output has no verdict, so an edge that needs a verdict never matches (R3)."""
    e = explored(config({"A": at("P", edge("B", "satisfied"), edge("C")), "B": at("P"), "C": at("P")}))
    assert e.never == [("A", 1)]
    assert e.unreached == ("B",)
    assert e.can("B") is False
    assert e.can(("A", 2)) is True
    assert e.can("edge 2 of A") is True, "as the table of what was seen names it"
    with pytest.raises(MateriaError, match="No route leads to B"):
        e.witness("B")


def test_exit_that_is_never_taken_is_named_by_id():
    exits = [exit_route("Eval", "satisfied", "end"), exit_route("Build", "not_satisfied", "end")]
    assert explored(retry_loop(exits=exits)).never == ["exit:Build:not_satisfied"]


def test_explore_follows_the_exit_of_a_loop_with_an_empty_list():
    """A cast leaves a loop with an empty list through the first ``always`` exit (R16)."""
    document = retry_loop(exits=[exit_route("Eval", "always", "Tell")])
    e = explored(document, items=(0,))
    assert e.can("exit:Eval:always")
    assert e.witness("exit:Eval:always").route == ("Plan", "Tell")
    assert e.unreached == ("Build", "Eval")


# -- visits that fail --------------------------------------------------------------------------

MENDED = {
    "Try": asks(edge("Tell"), edge("Mend", "failed", most=2), materia="U"),
    "Mend": at("P", edge("Try")),
    "Tell": at("P"),
}


def test_failed_edge_is_taken_by_a_failing_visit():
    e = explored(config(MENDED))
    assert (e.never, e.unreached, set(e.ends)) == ([], (), {"complete", "edge_traversals_exhausted"})
    assert "Try, a failure: Mend" in e.moves
    assert e.most_turns() == 2 + 1


def test_example_run_of_a_failure_can_be_repeated_as_a_cast(tmp_path):
    e = explored(config(MENDED))
    for what in (("Try", 2), "failed"):
        witness = e.witness(what)
        cast = cast_of(bench_of(tmp_path / str(what), config(MENDED)), witness)
        assert tuple(socket for socket, *_ in cast.route) == witness.route
        assert outcome(cast) == witness.end
        assert ("Try", 2) in taken_by(cast)


# -- how many turns ---------------------------------------------------------------------------


def test_maximum_number_of_turns_includes_every_retry():
    """For one item, the longest route is Plan, then Build and Eval three times (two retries), then Tell."""
    e = explored(retry_loop(most=2))
    assert e.most_turns(items=1) == 1 + 3 * 2 + 1
    assert e.most_turns(items=0) == 1
    assert e.most_turns(items=2) == 1 + 2 * 3 * 2 + 1


def test_utility_visit_does_not_count_as_a_turn_but_a_draft_does():
    document = config({"A": at("U", edge("B"), parse="json"), "B": at("M")})
    assert explored(document).most_turns() == 2


def test_cycle_through_the_planner_is_limited_by_max_edge_traversals():
    """A new plan creates new items (R17), and its edge lies outside items, so ``maxEdgeTraversals`` applies (R18)."""
    sockets = {"Plan": asks(edge("In"), materia="G"), "In": asks(edge("In"))}
    loops = {"L": loop("In", exits=[exit_route("In", "always", "Plan")])}
    e = explored(config(sockets, loops, limits={"maxEdgeTraversals": 3}), items=(1,))
    assert e.most_turns() == 3 * 2 + 1
    assert e.ends == {"edge_traversals_exhausted": ("Plan",)}


def in_space(space):
    """Return an exploration of the given states."""
    exploration = Exploration(build_graph(retry_loop()), 0)
    exploration._space = space
    return exploration


@pytest.mark.parametrize("turns, most", [(1, None), (0, 1)])
def test_unlimited_cycle_with_an_agent_has_no_maximum_number_of_turns(turns, most):
    back, on = [Move(to, ScriptedResult("x", Result.NOTHING, None), used, ()) for to, used in ((0, turns), (1, 1))]
    assert in_space(StateSpace([StateNode("A"), StateNode(None, "complete")], [[back, on], []])).most_turns() == most


def test_cycle_that_cannot_be_left_is_reported_as_a_stall():
    on, back = [Move(to, ScriptedResult("x", Result.NOTHING, None), 1, ()) for to in (1, 0)]
    end = Move(2, ScriptedResult("x", Result.NOTHING, None), 1, ())
    nodes = [StateNode("A"), StateNode("B"), StateNode(None, "complete")]
    assert in_space(StateSpace(nodes, [[on], [back], []])).stalls == ("A", "B")
    assert in_space(StateSpace(nodes, [[on], [back, end], []])).stalls == ()


# -- stopping early ---------------------------------------------------------------------------


UNKNOWN = ["ends", "never", "unreached", "stalls"]


def test_truncated_search_reports_results_it_did_not_reach_as_unknown():
    e = Exploration(build_graph(retry_loop()), range(3), 3)
    assert not e.complete_search
    assert e.can("Build") is True
    assert e.can("failed") is None
    assert e.notes[0] == "The search stopped after 3 states: anything that was not seen may still be possible."
    with pytest.raises(MateriaError, match="The result is unknown, because the search stopped after 3 states"):
        e.most_turns()


@pytest.mark.parametrize("name", UNKNOWN)
def test_truncated_search_reports_events_it_did_not_reach_as_unknown(name):
    e = Exploration(build_graph(retry_loop()), range(3), 3)
    with pytest.raises(MateriaError, match="result is unknown, because the search stopped after 3 states") as error:
        getattr(e, name)
    assert error.value.kind == "not_explored"
    full_exploration = Exploration(build_graph(retry_loop()), range(3))
    assert set(e.ends_seen) <= set(full_exploration.ends)
    assert set(e.not_taken) >= set(full_exploration.never)
    assert set(e.not_visited) >= set(full_exploration.unreached)


def test_view_of_a_truncated_search_does_not_call_results_impossible(wb):
    e = wb.explore("Plan-Build-Eval", states=20)
    assert not e.marks.unused_routes
    assert not e.marks.unvisited
    assert "the search was incomplete, so other ends may be possible" in repr(e)
    assert " never " not in repr(e)
    with pytest.raises(MateriaError, match="The result is unknown"):
        e.save_tests("cases")


def ring(size):
    """Return a ring of sockets, each of which can send work back to the previous one; the last can end the cast."""
    names = [f"S{n}" for n in range(size)]
    sockets = {
        name: asks(edge(names[n - 1], "not_satisfied"), edge(names[n + 1] if n + 1 < size else "end"))
        for n, name in enumerate(names)
    }
    sockets["S0"] = asks(edge("S1"))
    return build_graph(config(sockets))


def test_interrupted_search_keeps_its_results(monkeypatch):
    visits = iter(range(10))

    def interrupted(*given):
        if next(visits) == 9:
            raise KeyboardInterrupt
        return original(*given)

    original = reachable_states.play_visit
    monkeypatch.setattr(reachable_states, "play_visit", interrupted)
    e = Exploration(build_graph(retry_loop()), range(3))
    assert e.notes[0].startswith("The search stopped by an interrupt")
    assert e.can("Eval")
    with pytest.raises(MateriaError, match="is unknown"):
        assert e.never == []


def test_unhandled_failure_is_listed_as_a_possible_end():
    e = explored(config({"A": at("P", edge("B")), "B": at("P")}))
    assert e.certain
    assert e.unrouted == ("A", "B")
    assert "failed" not in e.ends
    assert [e.can(what) for what in ("failed", "utility_exit", "budget")] == [None, None, None]
    assert e.can("no_advance_cycles_exhausted") is False
    assert "at 2 sockets" in e.notes[-1]
    routed = {"A": at("P", edge("B", "failed"), edge("B")), "B": at("P", edge("end", "failed"))}
    e = explored(config(routed))
    assert (e.unrouted, e.can("failed"), e.notes) == ((), False, ())


def test_progress_is_reported_again_for_odds_with_a_different_list_length(wb):
    progress_calls = []
    e = wb.explore("Plan-Build-Eval", progress=lambda done, known: progress_calls.append((done, known)))
    assert progress_calls
    assert all(done <= known for done, known in progress_calls)
    assert progress_calls == sorted(progress_calls)
    before = len(progress_calls)
    e.odds(0.5, 3)
    assert len(progress_calls) > before


# -- any loadout --------------------------------------------------------------------------


@settings(max_examples=LAPS)
@given(loadouts(), st.integers(2, 30))
def test_truncated_search_reports_only_correct_results(document, most):
    """Random casts add states beyond the search limit, and each of these states must be reachable."""
    rules = rules_of(document)
    full_exploration = Exploration(rules.graph, range(3), SMALL)
    assume(full_exploration.complete_search)
    e = Exploration(rules.graph, range(3), most)
    assert set(e.ends_seen) <= set(full_exploration.ends)
    assert set(e.not_taken) >= set(full_exploration.never)
    assert set(e.not_visited) >= set(full_exploration.unreached)
    for end in e.ends_seen:
        state = replay_witness(rules, e.witness(end)).state
        assert (state.failure.kind if state.failure else state.status) == end


@settings(max_examples=LAPS)
@given(loadouts(), protocols, st.integers(0, 2), st.integers())
def test_impossible_outcomes_never_occur_in_simulations(document, name, items, seed):
    graph = rules_of(spoken(document, name)).graph
    e = Exploration(graph, range(3), SMALL)
    assume(e.complete_search)
    r = simulate_casts(graph, 20, 0.6, items, seed, failed=0.2)
    assert {socket for socket, count in r.visits.items() if count}.isdisjoint(e.unreached)
    assert set(r.edge_uses).isdisjoint(e.never)
    assert set(r.ends) <= set(e.ends)
    most = e.most_turns(items)
    assert most is None or max(r.turns) <= most


@settings(max_examples=LAPS)
@given(loadouts(), st.integers())
def test_every_route_of_a_random_cast_is_possible_according_to_explore(document, seed):
    check_every_route_is_possible(document, seed)


@settings(max_examples=max(1, LAPS // 2))  # each is cast on a disk, witness by witness
@given(document=loadouts(), name=protocols)
def test_every_example_run_reaches_its_goal(tmp_path_factory, document, name):
    e = Exploration(rules_of(spoken(document, name)).graph, range(3), SMALL)
    assume(e.complete_search)  # of a search that was cut off it says that it does not know
    wb = bench_of(tmp_path_factory.mktemp("cast"), document)
    edges = [(id_, n + 1) for id_, one in e.graph.sockets.items() for n in range(len(one.edges))]
    for what in [*e.ends, *(one for one in (*e.graph.sockets, *edges) if e.can(one))]:
        witness = e.witness(what)
        cast = cast_of(wb, witness)
        visited = tuple(socket for socket, *_ in cast.route)
        assert visited == witness.route
        assert outcome(cast) == witness.end
        if isinstance(what, tuple):
            assert what in taken_by(cast)
        else:
            assert what in visited or what == outcome(cast)
    wb.close()


def test_work_with_a_separate_handoff_counts_as_two_turns(tmp_path):
    document = config({"A": asks(edge("A", "not_satisfied", 1), finalize=True)})
    e = explored(document)
    assert e.most_turns() == 4
    assert e.witness("failed").answers == {"A": ["x", '{"satisfied":false}'] * 2}
    assert outcome(cast_of(bench_of(tmp_path, document), e.witness("failed"))) == "edge_traversals_exhausted"


def test_nested_lists_and_lists_of_utilities_are_explored(tmp_path):
    """The inner list is read from an item of the outer list (R34), which only a utility can set."""
    sockets = {
        "Scan": at("U", edge("Row"), parse="json"),
        "Row": at("P", edge("Sub"), foreach={"items": "state.rows", "as": "row", "cursor": "r"}),
        "Sub": asks(
            edge("Sub", "not_satisfied"),
            edge("end"),
            foreach={"items": "state.row.subs", "as": "sub", "cursor": "s"},
            advance={"when": "not_satisfied"},
        ),
    }
    document = config(sockets, materia={"U": utility()})
    e = explored(document, items=(2,))
    witness = e.witness(("Sub", 1))
    assert cast_of(bench_of(tmp_path, document), witness).steps[2].item_key == "0"
    assert e.can(("Sub", 1))


# -- other protocols ------------------------------------------------------------------------


@pytest.mark.parametrize("name", OTHER_PROTOCOLS)
def test_explore_covers_answers_that_hold_the_cast(tmp_path, name):
    """A pause or an escalation holds the cast, and explore does not assume what the person decides."""
    document = spoken(retry_loop(most=2), name)
    e = explored(document, items=(1,))
    assert e.can("held") is True
    assert e.ends["held"] == ("Plan", "Eval")
    assert e.can("complete") is True
    bench = bench_of(tmp_path, document)
    for what in ("held", "complete", ("Eval", 1)):
        witness = e.witness(what)
        assert outcome(cast_of(bench, witness)) == witness.end
    bench.close()


def test_envelope_review_at_its_edge_limit_asks_a_person_instead_of_failing():
    """A review that has no rounds left escalates (envelope rules), so it never exceeds the limit of its edge."""
    assert explored(retry_loop(most=2), items=(1,)).can("edge_traversals_exhausted") is True
    e = explored(spoken(retry_loop(most=2), "envelope"), items=(1,))
    assert "edge_traversals_exhausted" not in e.ends


def test_socket_that_a_detour_may_reach_is_not_reported_as_unreachable():
    guarded = config({"A": at("P", edge("B", "satisfied"), edge("C")), "B": at("P"), "C": asks()})
    document = spoken(guarded, "envelope")
    e = explored(document)
    assert (e.complete_search, e.certain) == (True, False)
    assert e.can("B") is None
    assert "detour" in e.notes[0]
    with pytest.raises(MateriaError, match="No route was seen"):
        e.witness("B")
    assert explored(spoken(guarded, "agent-contract")).can("B") is False


def test_protocol_without_sample_answers_is_reported(monkeypatch):
    monkeypatch.setattr(ContractProtocol, "overridden", ContractProtocol.overridden - {"sample_outputs"})
    e = explored(spoken(retry_loop(), "agent-contract"))
    assert e.certain is False
    assert "as if the agent used the sparse protocol" in e.notes[0]


def test_visit_that_fails_after_its_first_turn_counts_each_turn():
    """Do works in its first turn and hands over in its second; either can fail, after which Do is retried once."""
    sockets = {
        "Do": asks(edge("Do", "failed", 1), edge("Check"), finalize=True),
        "Check": at("P"),
    }
    assert Exploration(build_graph(config(sockets)), 1).most_turns() == 5
