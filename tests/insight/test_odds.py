"""Test exact odds, and simulations that must agree with them."""

from __future__ import annotations

import math
import os
from functools import partial
from math import sqrt
from statistics import fmean, pstdev

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from builders import asks, at, config, edge, exit_route, loop, retry_loop
from drawn_loadouts import loadouts, protocols, rules_of, spoken
from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.insight import odds, reachable_states
from materia_nb.insight.explore import Exploration
from materia_nb.insight.odds import satisfied_shares, simulate_casts
from materia_nb.insight.reachable_states import explore_states, solve
from materia_nb.loadout import build_graph
from realistic_loadouts import cleaning, critics_in_a_loop, critics_in_a_row, paper, release

LAPS = int(os.environ.get("MATERIA_NB_EXPLORED", "8"))
CASTS = int(os.environ.get("MATERIA_NB_SIMULATED", "200"))
"""Number of loadouts that are solved, and of simulated casts for each; larger values make the test stricter."""
ERRORS = 6
"""Maximum distance of a simulated mean from the exact mean, in standard errors."""


def graph_of(document):
    return build_graph(document)


def once(satisfied=0.25):
    """Return a loadout with one check that can send the work back once."""
    document = config({"Do": at("P", edge("Check")), "Check": asks(edge("Do", "not_satisfied", 1))})
    return Exploration(graph_of(document)).odds(satisfied, 0)


# -- odds that can be worked out by hand -------------------------------------------------------


def test_odds_of_one_retry_are_exact():
    """The check is satisfied immediately or after one retry; a second refusal fails the cast (R18)."""
    o = once(0.25)
    assert o.ends == pytest.approx({"complete": 0.25 + 0.75 * 0.25, "edge_traversals_exhausted": 0.75**2})
    assert o.turns == pytest.approx(2 + 0.75 * 2)
    assert o.visits == pytest.approx({"Do": 1.75, "Check": 1.75})


def test_odds_of_a_retried_failure_are_exact():
    document = config({"Try": asks(edge("Try", "failed", 1), edge("end", "satisfied"), materia="U")})
    e = Exploration(graph_of(document), 0)
    o = e.odds(0.5, 0, failed={"Try": 0.25})
    assert o.ends == pytest.approx({"complete": 0.75 + 0.25 * 0.75, "edge_traversals_exhausted": 0.25**2})
    assert (o.visits, o.failed) == (pytest.approx({"Try": 1.25}), {"Try": 0.25})
    assert e.odds(0.5, 0).ends == {"complete": 1, "edge_traversals_exhausted": 0}


def test_failure_probability_without_a_failed_edge_is_refused():
    e = Exploration(graph_of(config({"Do": at("P", edge("Check")), "Check": asks(edge("Do", "satisfied", 1))})), 0)
    with pytest.raises(MateriaError, match="No edge of Do P handles a failure") as caught:
        e.odds(0.5, 0, failed={"Do": 0.1})
    assert caught.value.kind == "bad_chance"
    assert e.odds(0.5, 0, failed=0.1).failed == {}


@pytest.mark.parametrize("chance", [0, 1])
def test_probability_of_a_single_verdict_is_the_probability_of_its_end(chance):
    assert once(chance).ends == {"complete": chance, "edge_traversals_exhausted": 1 - chance}


def test_probabilities_tokens_and_cost_can_be_set_by_socket_or_materia():
    e = Exploration(graph_of(retry_loop(most=1)), (1,))
    o = e.odds({"Eval": 1.0}, 1, tokens={"G": 100, "*": 10}, cost={"Tell": 0.5, "*": 0})
    assert (o.tokens, o.cost) == pytest.approx((100 + 3 * 10, 0.5))


@pytest.mark.parametrize("satisfied", [{}, 1.5, math.nan, {"Evil": 0.5}, {"Eval": -1}, {"Eval": (0.7, 0.7)}])
def test_invalid_probability_is_refused(satisfied):
    with pytest.raises(MateriaError):
        Exploration(graph_of(retry_loop())).odds(satisfied)


@pytest.mark.parametrize("assumed", ["failed", "tokens", "cost", "seconds"])
def test_non_numeric_failure_or_usage_is_refused(assumed):
    with pytest.raises(MateriaError, match="'x' is not a number"):
        Exploration(graph_of(retry_loop())).odds(0.5, 3, **{assumed: {"Eval": "x"}})


def test_share_of_satisfied_steps_is_computed_for_each_socket(cast):
    """The first of four evaluations is not satisfied."""
    cast.run()
    assert satisfied_shares(cast.steps) == {"Socket-3": 3 / 4, "Socket-4": 1}
    assert Exploration(cast.graph, 3).odds(satisfied_shares(cast.steps)).satisfied["Socket-3"] == 3 / 4


def last_page():
    """Return a loop with a conditional exit and an unconditional advance, in which Write needs no ``satisfied`` (R7)."""
    sockets = {"Plan": asks(edge("Write"), materia="G"), "Write": asks(edge("Write")), "Bind": at("P")}
    loops = {"L": loop("Write", exits=[exit_route("Write", "satisfied", "Bind")])}
    document = config(sockets, loops)
    document["loadouts"]["T"]["sockets"]["Write"]["advance"] = {
        "cursor": "workItemIndex",
        "items": "state.workItems",
        "when": "always",
    }
    return graph_of(document)


def test_odds_note_names_an_agent_that_is_not_asked_for_a_verdict():
    e = Exploration(last_page(), 2)
    o = e.odds(0.6, 2)
    assert (o.visits["Bind"], o.turns, dict(o.nothing), o.satisfied) == (0, 3, {"Write": 1}, {})
    assert e.can("Bind")  # it may say so all the same
    assert any(note.startswith("Write P: an edge, exit or advance depends on `satisfied`") for note in e.notes)
    assert simulate_casts(last_page(), 50, 0.6, 2).visits["Bind"] == 0


@pytest.mark.parametrize(
    "satisfied, bind",
    [({"Write": 0.6}, 0.6), ({"Write P": 0.6}, 0.6), ({"P": (0.25, 0.5)}, 0.25), ({"*": 0.6}, 0), (0.6, 0)],
)
def test_probability_set_by_name_is_used(satisfied, bind):
    o = Exploration(last_page(), 2).odds(satisfied, 2)
    assert o.visits["Bind"] == pytest.approx(bind)
    agree(o, simulate_casts(last_page(), 1_000, satisfied, 2), turn_deviation(last_page(), 2, satisfied))


def test_required_verdict_cannot_be_missing():
    with pytest.raises(MateriaError, match="Eval P must give"):
        Exploration(graph_of(retry_loop(most=1)), (1,)).odds({"Eval": (0.5, 0.2)}, 1)


# -- distributions -------------------------------------------------------------------------------


def test_distribution_of_one_retry_is_exact():
    o = once(0.25)
    assert o.distribution() == {
        "complete": pytest.approx({2: 0.25, 4: 0.75 * 0.25}),
        "edge_traversals_exhausted": pytest.approx({4: 0.75**2}),
    }
    assert [o.at(share).turns for share in (0.1, 0.25, 0.26, 0.99)] == [2, 2, 4, 4]
    assert (o.at(0.9).tokens, o.at(0.9).cost, o.at(0.9).seconds) == (None, None, None)


def test_distribution_of_an_unlimited_cycle_is_geometric():
    """Each round ends the cast with the probability 0.5."""
    document = config({"Do": at("P", edge("Check")), "Check": asks(edge("Do", "not_satisfied", None))})
    document["loadouts"]["T"]["limits"] = {"maxEdgeTraversals": 100}
    turns = Exploration(graph_of(document)).odds(0.5, 0).distribution()["complete"]
    assert [turns[2 * rounds] for rounds in (1, 2, 3, 20)] == pytest.approx([0.5, 0.25, 0.125, 0.5**20])


@pytest.mark.parametrize("document", [release(), paper(), cleaning()])
def test_distributions_have_the_same_mean_as_the_odds_and_small_rounding_errors(document, monkeypatch):
    amounts = {"Socket-1": 612.5, "Socket-2": 1234, "Socket-3": 777.5, "Socket-4": 431, "*": 2000}
    e = Exploration(graph_of(document), 5)

    def compute():
        return e.odds(0.8, 5, tokens=amounts, cost={"Socket-2": 0.0123, "*": 0.0041}, seconds=7.5)

    o = compute()
    for quantity, mean in (("turns", o.turns), ("tokens", o.tokens), ("cost", o.cost), ("seconds", o.seconds)):
        distribution = o.distribution(quantity)
        assert {end: sum(row.values()) for end, row in distribution.items()} == pytest.approx(o.ends)
        assert sum(total * chance for row in distribution.values() for total, chance in row.items()) == pytest.approx(
            mean
        )
    monkeypatch.setattr(reachable_states, "_MAX_TOTALS", 10**9)
    exact = compute()
    for share in (0.1, 0.5, 0.9, 0.99):
        assert o.at(share).tokens == pytest.approx(exact.at(share).tokens, rel=0.005)


def test_simulated_percentiles_agree_with_exact_percentiles():
    graph = graph_of(paper())
    turns = sorted(simulate_casts(graph, 2_000, 0.8, 3, seed=4).turns)
    o = Exploration(graph, 3).odds(0.8, 3)
    for share in (0.1, 0.5, 0.9):
        low, high = (
            turns[round(2_000 * (share + sign * ERRORS * sqrt(share * (1 - share) / 2_000)))] for sign in (-1, 1)
        )
        assert low <= o.at(share).turns <= high


@pytest.mark.parametrize("share", [0, 1, -0.5, 90])
def test_percentile_with_an_invalid_share_is_refused(share):
    with pytest.raises(MateriaError, match="is not a share of casts"):
        once().at(share)


def test_distribution_of_an_unknown_or_unset_quantity_is_refused():
    with pytest.raises(MateriaError, match="no quantity 'dollars'"):
        once().distribution("dollars")
    with pytest.raises(MateriaError, match="The amounts of cost are not set"):
        once().distribution("cost")


# -- solving -------------------------------------------------------------------------------------


def ring(size, on=0.9):
    """Return a ring of sockets, each of which can end the cast."""
    return [{(number + 1) % size: on} for number in range(size)]


def test_equations_for_a_small_cycle_are_solved():
    assert solve(ring(5), [1.0] * 5) == pytest.approx([10.0] * 5)


def test_endless_cycle_has_no_mean_number_of_visits():
    with pytest.raises(MateriaError, match="forever"):
        solve(ring(3, on=1.0), [1.0] * 3)


def test_equations_for_a_large_cycle_are_solved():
    assert solve(ring(5_000), [1.0] * 5_000) == pytest.approx([10.0] * 5_000)
    with pytest.raises(MateriaError, match="forever"):
        solve(ring(5_000, on=1.0), [1.0] * 5_000)


@given(st.integers(1, 25), st.floats(0.1, 0.999), st.randoms(use_true_random=False))
def test_computed_solution_satisfies_its_equations(size, stays, rng):
    rows = []
    for _ in range(size):
        weights = {number: rng.uniform(0.1, 1) for number in rng.sample(range(size), rng.randint(1, min(size, 6)))}
        rows.append({number: stays * weight / sum(weights.values()) for number, weight in weights.items()})
    constants = [rng.random() for _ in rows]
    solution = solve(rows, constants)
    for value, constant, row in zip(solution, constants, rows, strict=True):
        assert value == pytest.approx(constant + sum(weight * solution[number] for number, weight in row.items()))


# -- simulations --------------------------------------------------------------------------------


def test_simulation_returns_the_same_numbers_for_the_same_seed():
    graph = graph_of(retry_loop(most=2))
    first = simulate_casts(graph, 600, 0.6, 2, seed=7)
    assert simulate_casts(graph, 600, 0.6, 2, seed=7) == first
    assert simulate_casts(graph, 600, 0.6, 2, seed=8) != first


def test_progress_function_that_raises_ends_a_simulation():
    reports = []

    class Enough(Exception):
        pass

    def progress(done, total):
        reports.append((done, total))
        raise Enough

    with pytest.raises(Enough):
        simulate_casts(graph_of(retry_loop(most=2)), 600, 0.6, 2, progress=progress)
    assert reports == [(1, 600)]


def test_simulation_counts_every_visit_turn_and_retry():
    r = simulate_casts(graph_of(retry_loop(most=2)), 50, 0.0, 3)
    assert r.ends == {"edge_traversals_exhausted": 50}
    assert set(r.turns) == {1 + 3 * 2}
    assert set(r.retries) == {2}
    assert r.visits == {"Plan": 50, "Build": 150, "Eval": 150, "Tell": 0}
    assert r.traversals == {"Plan->Build": 50, "Build->Eval": 150, "Eval->Build": 100}


def turn_deviation(graph, items, satisfied, **assumed):
    """Return the exact standard deviation of the number of turns, because samples may miss rare long casts."""
    computed = odds.compute_odds(graph, explore_states(graph, (items,)), satisfied, items, **assumed)
    squares = sum(
        chance * (turns - computed.turns) ** 2
        for chances in computed.distribution().values()
        for turns, chance in chances.items()
    )
    return sqrt(squares)


def agree(o, r, deviation):
    for end in {*o.ends, *r.ends}:
        chance, share = o.ends.get(end, 0.0), r.ends.get(end, 0) / r.n
        assert abs(share - chance) <= ERRORS * sqrt(max(chance * (1 - chance), 1e-4) / r.n) + 1e-9, end
    error = max(deviation, 0.1) / sqrt(r.n)
    assert abs(fmean(r.turns) - o.turns) <= ERRORS * error


@pytest.mark.parametrize("satisfied", [0.05, 0.5, 0.95])
def test_computed_standard_deviation_of_turns_agrees_with_simulated_casts(satisfied):
    graph = graph_of(retry_loop(most=2))
    r = simulate_casts(graph, 2_000, satisfied, 2, seed=1)
    assert turn_deviation(graph, 2, satisfied) == pytest.approx(pstdev(r.turns), rel=0.1)


def test_cycles_with_a_limited_edge_are_not_counted():
    """A round counts as a cycle only if none of its edges has ``maxTraversals`` (R18)."""
    sockets = {
        "Plan": asks(edge("Do"), materia="G"),
        "Do": asks(edge("Look", "not_satisfied", 2), edge("Look", "satisfied")),
        "Look": at("P", edge("Do")),
    }
    graph = graph_of(config(sockets, {"L": loop("Do", "Look")}, limits={"maxNoAdvanceCycles": 2}))
    o = Exploration(graph, 1).odds(0.5, 1)
    assert set(o.ends) == {"edge_traversals_exhausted", "no_advance_cycles_exhausted"}
    assert o.ends["edge_traversals_exhausted"] == pytest.approx(0.5)  # a third of either kind comes first as likely
    agree(o, simulate_casts(graph, 500, 0.5, 1), turn_deviation(graph, 1, 0.5))


@settings(max_examples=LAPS)
@given(loadouts(), st.floats(0.05, 0.95), st.integers(0, 2), st.integers())
def test_exact_odds_and_simulations_agree(document, satisfied, items, seed):
    graph = rules_of(document).graph
    e = Exploration(graph, (items,), 1_000)
    assume(e.complete_search)
    o = e.odds(satisfied, items, failed=0.3)
    assert sum(o.ends.values()) == pytest.approx(1)
    assume(o.turns < 50)  # hundreds of longer casts take too long
    simulated = simulate_casts(graph, CASTS, satisfied, items, seed, failed=0.3)
    agree(o, simulated, turn_deviation(graph, items, satisfied, failed=0.3))


def test_exploring_ten_critics_in_a_row_needs_few_states():
    """Each critic is satisfied immediately or after one or two retries; a third refusal fails the cast."""
    graph = build_graph(critics_in_a_row(10))
    assert len(explore_states(graph, (1,)).nodes) < 100
    computed_odds = Exploration(graph, 1).odds(0.8, 1)
    assert computed_odds.ends["complete"] == pytest.approx((1 - 0.2**3) ** 10)


def test_exploring_a_loop_of_critics_needs_few_states_per_item():
    graph = build_graph(critics_in_a_loop(6))
    assert len(explore_states(graph, (3,)).nodes) < 150
    computed_odds = Exploration(graph, 3).odds(0.8, 3)
    assert computed_odds.ends["complete"] == pytest.approx((1 - 0.2**3) ** 18)


class EveryCount:
    """A state key that contains all counts, including those that can no longer affect the route."""

    def __init__(self, rules):
        pass

    def edge_uses(self, state, socket):
        return frozenset(state.counts.items())

    def item_records(self, state, socket):
        return frozenset(
            (item, record.cycles, frozenset(record.used.items()), self.path_of(record, state))
            for item, record in state.items.items()
        )

    def path_of(self, record, state):
        return tuple((socket, step <= state.bounded_at) for socket, step in record.path)


@settings(max_examples=3 * LAPS)
@given(loadouts(), protocols, st.floats(0.05, 0.95), st.integers(0, 3))
def test_omitting_irrelevant_counts_from_states_does_not_change_results(document, protocol, satisfied, items):
    graph = rules_of(spoken(document, protocol)).graph
    fewer = Exploration(graph, (items,), 1_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reachable_states, "_LiveCounts", EveryCount)
        more = Exploration(graph, (items,), 1_000)
    assume(more.complete_search)
    assert fewer.states <= more.states
    assert (fewer.ends, fewer.moves) == (more.ends, more.moves)
    assert (fewer.stalls, fewer.most_turns()) == (more.stalls, more.most_turns())
    exact = more.odds(satisfied, items, failed=0.3)
    reduced = fewer.odds(satisfied, items, failed=0.3)
    assert reduced.ends == pytest.approx(exact.ends)
    assert (reduced.turns, reduced.visits) == (pytest.approx(exact.turns), pytest.approx(exact.visits))


@pytest.mark.parametrize("satisfied", [{"Check": {"first": 0.6}}, "often", {"*": None, "Check": "x"}])
def test_non_numeric_probability_is_refused_with_a_message(satisfied):
    with pytest.raises(MateriaError, match="The chance of `satisfied` at Check P is not valid") as caught:
        once(satisfied)
    assert caught.value.kind == "bad_chance"


@pytest.mark.parametrize("items", [(3, 8), "3", -1, 2.5, ()])
def test_invalid_list_length_is_refused_with_a_message(tmp_path, items):
    bench = Workbench(tmp_path)
    explored = bench.explore("Plan-Build-Eval", 1)
    for ask in (bench.odds, bench.simulate, lambda _, satisfied, items: explored.odds(satisfied, items)):
        with pytest.raises(MateriaError, match="is not a valid list length"):
            ask("Plan-Build-Eval", satisfied=0.8, items=items)


def test_probability_for_a_misspelled_name_is_refused():
    """If the name were ignored, the probability of the intended socket would silently be 0."""
    explored = Exploration(last_page(), 1)
    for ask in (explored.odds, partial(simulate_casts, last_page())):
        with pytest.raises(MateriaError, match="'timed_uot'") as caught:
            ask(timed_uot=0.1)
        assert caught.value.kind == "usage"
