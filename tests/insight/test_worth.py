"""Test the worth of critics: by hand, and against casts that a second engine plays with good and bad work."""

from __future__ import annotations

from itertools import islice
from math import sqrt
from random import Random

import pytest

from builders import asks, at, config, edge, exit_route, loop
from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.errors import MateriaError
from materia_nb.insight.explore import Exploration
from materia_nb.insight.reachable_states import BAD_WORK
from materia_nb.loadout import LoadoutError, build_graph
from second_engine import COMPLETE, FAILED, MATCHES, NO, NOTHING, YES, SecondEngine, random_document

LOADOUTS, CASTS = 200, 40
GOOD, REFUSES_BAD, REFUSES_GOOD = 0.7, 0.8, 0.1


def written_and_checked(limit=1):
    return build_graph(config({"Do": at("P", edge("Check")), "Check": asks(edge("Do", "not_satisfied", limit))}))


def test_effect_of_a_single_critic_is_computed_exactly():
    worth = Exploration(written_and_checked(), 0).worth(GOOD, {"Check": (REFUSES_BAD, REFUSES_GOOD)}, items=0)
    accepted_good, accepted_bad, refused = 0.7 * 0.9, 0.3 * 0.2, 0.7 * 0.1 + 0.3 * 0.8
    for name, tries in (("all critics", 2), ("one more try at Check", 3)):
        reached = sum(refused**number for number in range(tries))
        assert worth[name].ends[COMPLETE] == pytest.approx(accepted_good * reached)
        assert worth[name].ends[BAD_WORK] == pytest.approx(accepted_bad * reached)
        assert worth[name].turns == pytest.approx(2 * reached)
    alone = worth["without Check"]
    assert {end: chance for end, chance in alone.ends.items() if chance} == pytest.approx(
        {COMPLETE: 0.7, BAD_WORK: 0.3}
    )
    assert (alone.turns, alone.visits["Check"], alone.at(0.9).turns) == (1, 0, 1)


def test_critic_after_a_loop_judges_all_items_together():
    sockets = {
        "Plan": asks(edge("Write"), materia="G"),
        "Write": at("P", edge("Write"), advance={"when": "always"}),
        "Edit": asks(edge("Plan", "not_satisfied", 1)),
    }
    graph = build_graph(config(sockets, {"L": loop("Write", exits=[exit_route("Write", "always", "Edit")])}))
    worth = Exploration(graph, 2).worth({"Write": 0.7}, {"Edit": (1.0, 0.0)}, items=2)
    assert worth["without Edit"].ends[BAD_WORK] == pytest.approx(1 - 0.7**2)
    assert worth["all critics"].ends[COMPLETE] == pytest.approx(0.49 + 0.51 * 0.49)
    assert worth["all critics"].ends.get(BAD_WORK, 0) == 0


@pytest.mark.parametrize(
    "writer, critics, kind",
    [
        (0.7, {}, "usage"),
        (0.7, {"Check": 0.8}, "bad_chance"),
        (0.7, {"Check": (0.8, 1.1)}, "bad_chance"),
        (0.7, {"Do": (0.8, 0.1)}, "usage"),
        ({"Do": 0.7}, {"Do": (0.8, 0.1)}, "bad_chance"),
        ({"Do": 1.7}, {"Check": (0.8, 0.1)}, "bad_chance"),
        (0.7, {"Chek": (0.8, 0.1)}, "unknown_socket"),
    ],
)
def test_invalid_writer_or_critic_is_refused(writer, critics, kind):
    with pytest.raises(MateriaError) as caught:
        Exploration(written_and_checked(), 0).worth(writer, critics)
    assert (caught.value.kind, bool(caught.value.hint)) == (kind, True)


def test_error_explains_that_a_critic_needs_two_probabilities():
    with pytest.raises(MateriaError, match=r"\(refuses bad work, refuses good work\), such as \(0\.8, 0\.1\)"):
        Exploration(written_and_checked(), 0).worth(GOOD, {"Check": 0.8})


def test_odds_without_a_critic_can_be_looked_up_by_its_name():
    sockets = {"Socket-1": at("P", edge("Socket-2")), "Socket-2": asks(edge("Socket-1", "not_satisfied", 1))}
    graph = build_graph(config(sockets))
    critic = graph.names["Socket-2"]
    worth = ExploreView(graph, 0).worth(GOOD, {critic: (0.8, 0.1)}, items=0)
    assert critic != "Socket-2"
    assert worth[f"without {critic}"] is worth["without Socket-2"]
    with pytest.raises(MateriaError) as caught:
        worth["without Chek"]
    labels = f"all critics, without {critic}, one more try at {critic}"
    assert str(caught.value) == f"The table has no label 'without Chek'.\n  try: choose one of: {labels}"


def test_effects_of_critics_are_shown_as_a_table_with_bars():
    worth = ExploreView(written_and_checked(), 0).worth(GOOD, {"Check": (0.8, 0.1)}, items=0, cost=0.01)
    assert "without Check" in worth.as_text()
    assert "complete, with bad work" in worth.as_text(140)
    assert "30.0%" in worth._repr_mimebundle_()["text/html"]
    assert "$0.0262" in worth.as_text()


def worth_cases():
    """Yield 200 random loadouts with a writer and a critic that must give a verdict."""
    for seed in range(1_000, 2_000):
        random = Random(seed)
        document = random_document(random)
        try:
            graph = build_graph(document)
        except LoadoutError:
            continue
        second = SecondEngine(document)
        names = [name for name in second.sockets if name != second.plan]
        judges = [name for name in names if second.requires_verdict(name) and second.sockets[name]["parse"] == "json"]
        explored = Exploration(graph, seed % 3, 400)
        if judges and len(names) > 1 and explored.complete_search:
            critic = random.choice(judges)
            yield seed, second, explored, random.choice([name for name in names if name != critic]), critic


def play(second, random, items, writer, critic, *, skipped):
    """Play one cast, and return its end and the number of turns, excluding a skipped critic."""
    state, _ = second.begin()
    is_bad, accepted_bad, turns = False, False, 0
    while not state.end:
        socket, inside = state.socket, state.socket in second.members
        turns += not (skipped and socket == critic)
        result = draw_result(second, random, socket)
        if result != FAILED:
            if socket == second.plan and writer in second.members:
                is_bad = accepted_bad = False
            if socket == writer:
                is_bad = random.random() >= GOOD
            if socket == critic:
                refuses = REFUSES_BAD if is_bad or (accepted_bad and not inside) else REFUSES_GOOD
                result = YES if skipped or random.random() >= refuses else NO
            if inside and result in MATCHES.get(second.advances.get(socket, ""), ()):
                is_bad, accepted_bad = False, accepted_bad or is_bad
        state, _ = second.complete(state, result, items)
    return BAD_WORK if state.end == COMPLETE and (is_bad or accepted_bad) else state.end, turns


def draw_result(second, random, socket):
    results = second.results(socket)
    if FAILED in results and random.random() < 0.1:
        return FAILED
    if NOTHING in results:
        return NOTHING
    return YES if random.random() < 0.6 else NO


def test_computed_effect_of_critics_agrees_with_casts_run_by_a_second_engine():
    """The numbers of 200 loadouts lie within 3 standard errors of the exact numbers, apart from 1 in 100."""
    compared = far = 0
    total, expected, variance = 0.0, 0.0, 0.0
    for seed, second, explored, writer, critic in islice(worth_cases(), LOADOUTS):
        items, random = seed % 3, Random(seed)
        worth = explored.worth({writer: GOOD}, {critic: (REFUSES_BAD, REFUSES_GOOD)}, 0.6, items, failed=0.1)
        for name in ("all critics", f"without {critic}"):
            casts = [play(second, random, items, writer, critic, skipped=name != "all critics") for _ in range(CASTS)]
            for end in (COMPLETE, BAD_WORK):
                share = worth[name].ends.get(end, 0.0)
                count = sum(reached == end for reached, _ in casts)
                spread = CASTS * share * (1 - share)
                assert spread > 1e-9 or count == round(CASTS * share), (seed, name, end)
                total, expected, variance = total + count, expected + CASTS * share, variance + spread
                compared += 1
                far += abs(count - CASTS * share) > 3 * sqrt(max(spread, 0.0)) + 0.5
            seen = {turns for _, turns in casts}
            assert seen <= {turns for row in worth[name].distribution().values() for turns in row}, (seed, name)
    assert compared == 4 * LOADOUTS
    assert far <= compared / 100
    assert abs(total - expected) <= 3 * sqrt(variance)
