"""Test the answers to a designer's questions about the three larger loadouts of the gallery by a second engine."""

from __future__ import annotations

import copy
import time
from collections import Counter, defaultdict
from functools import cache

import pytest

from materia_nb.cast.gallery import gallery
from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.insight.explore import behaviour_changes
from materia_nb.insight.reachable_states import BAD_WORK
from materia_nb.loadout import build_graph
from second_engine import (
    COMPLETE,
    MATCHES,
    NO,
    NOTHING,
    YES,
    SecondEngine,
    happens_without,
    length_of_shortest_difference,
)

ITEMS = 5
CRITICS = {
    "release-pipeline": {"Socket-4": (0.8, 0.1)},
    "paper": {"Socket-3": (0.4, 0.05), "Socket-4": (0.8, 0.1), "Socket-5": (0.5, 0.25)},
    "cleaning": {"Socket-3": (0.6, 0.0), "Socket-4": (0.5, 0.05)},
}
"""The chances that a critic refuses bad work and good work."""
WRITER = "Socket-2"
each_loadout = pytest.mark.parametrize("name", CRITICS)


@cache
def explored(name):
    return ExploreView(gallery()[name].graph, ITEMS)


def second_engine(document):
    """Return a second engine for the only loadout of a document, with all defaults filled in."""
    (loadout,) = copy.deepcopy(document)["loadouts"].values()
    for socket in loadout["sockets"].values():
        socket.setdefault("parse", document["materia"][socket["materia"]].get("parse", "text"))
    limits = {"maxEdgeTraversals": 25, "maxNoAdvanceCycles": 3}
    return SecondEngine({"loadouts": {"T": loadout}, "limits": limits})


def enumerate_casts(name, satisfied, good=1.0, skipped=(), *, by_turns=False):
    """Return the chance of each end with the number of agent turns, and the mean number of turns.

    Args:
        name: the name of the card.
        satisfied: the chance of ``satisfied`` at each socket that is not a critic.
        good: the chance that a visit of the writer makes good work.
        skipped: the critics that are always satisfied and whose visits are not counted.
        by_turns: True to distinguish ends by the number of turns; otherwise the number is 0.
    """
    second, critics = second_engine(gallery()[name].document), CRITICS[name] if good < 1 else {}
    materia = gallery()[name].document["materia"]
    turns_of = {
        key: materia[socket["materia"]]["type"] == "agent" and key not in skipped
        for key, socket in second.sockets.items()
    }
    complete = cache(lambda state, result: second.complete(state, result, ITEMS)[0])
    mean, ends, waiting = 0.0, Counter(), {(second.begin()[0], False, False, 0): 1.0}
    while waiting:
        following = defaultdict(float)
        for (state, *quality, turns), weight in waiting.items():
            if state.end:
                is_bad = state.end == COMPLETE and any(quality)
                ends[BAD_WORK if is_bad else state.end, turns] += weight
                continue
            socket, inside = state.socket, state.socket in second.members
            mean += weight * turns_of[socket]
            bad, accepted = (False, False) if socket == second.plan else quality  # a new list replaces all work
            for now_bad, share in ((True, 1 - good), (False, good)) if socket == WRITER else ((bad, 1.0),):
                for result, chance in chances(
                    second, socket, satisfied, critics, skipped, now_bad or (accepted and not inside)
                ):
                    advances = inside and result in MATCHES.get(second.advances.get(socket, ""), ())
                    following_quality = (False, accepted or now_bad) if advances else (now_bad, accepted)
                    key = (complete(state, result), *following_quality, turns + by_turns * turns_of[socket])
                    if share * chance:
                        following[key] += weight * share * chance
        waiting = following
    return ends, mean


def chances(second, socket, satisfied, critics, skipped, is_bad):
    if NOTHING in second.results(socket):
        return [(NOTHING, 1.0)]
    if socket in critics:
        satisfied = 1.0 if socket in skipped else 1 - critics[socket][not is_bad]
    return [(YES, satisfied), (NO, 1 - satisfied)]


def by_end(ends):
    totals = Counter()
    for (end, _), chance in ends.items():
        totals[end] += chance
    return {end: chance for end, chance in totals.items() if chance > 1e-12}


@each_loadout
def test_odds_agree_with_the_enumeration_of_all_casts(name):
    for satisfied in (0.8, 0.75):
        odds, (ends, mean) = explored(name).odds(satisfied, ITEMS), enumerate_casts(name, satisfied)
        assert {end: chance for end, chance in odds.ends.items() if chance} == pytest.approx(by_end(ends))
        assert odds.turns == pytest.approx(mean)


@pytest.mark.parametrize("name", ["release-pipeline", "paper"])
def test_percentile_of_turns_agrees_with_the_enumeration_of_all_casts(name):
    ends, _ = enumerate_casts(name, 0.8, by_turns=True)
    most = explored(name).odds(0.8, ITEMS).at(0.9).turns
    assert sum(chance for (_, turns), chance in ends.items() if turns <= most) >= 0.9
    assert sum(chance for (_, turns), chance in ends.items() if turns < most) < 0.9


@each_loadout
def test_estimated_percentile_of_turns_is_close_to_the_exact_percentile(name, bench):
    bench.load(gallery()[name].document)
    turns = bench.estimate(gallery()[name].loadout, items=ITEMS, satisfied=0.8, answer=800).total.turns
    assert turns.high == pytest.approx(explored(name).odds(0.8, ITEMS).at(0.9).turns, abs=2)


@each_loadout
def test_computed_effect_of_critics_agrees_with_the_enumeration_of_all_casts(name):
    started = time.process_time()
    worth = explored(name).worth(0.7, CRITICS[name], 0.95, ITEMS)
    assert time.process_time() - started < 2
    for label, skipped in {"all critics": (), **{f"without {critic}": (critic,) for critic in CRITICS[name]}}.items():
        ends, mean = enumerate_casts(name, 0.95, 0.7, skipped)
        assert {end: chance for end, chance in worth[label].ends.items() if chance > 1e-12} == pytest.approx(
            by_end(ends)
        )
        assert worth[label].turns == pytest.approx(mean)


@pytest.mark.parametrize(
    "name, event, without, since, items, expected",
    [
        ("release-pipeline", "Socket-8", "Socket-4", "Socket-2", range(4), None),
        ("release-pipeline", "Socket-8", "Socket-5", "Socket-1", range(4), ("Socket-1", "Socket-8")),
        ("paper", "Socket-8", "Socket-4", "Socket-1", range(1, 4), None),
        ("cleaning", "Socket-6", "Socket-4", "Socket-2", range(1, 4), None),
    ],
)
def test_unreviewed_work_has_an_example_route_only_if_it_can_be_published(name, event, without, since, items, expected):
    witness = ExploreView(gallery()[name].graph, items).witness(event, without=without, since=since)
    assert (witness and witness.route) == expected
    second = second_engine(gallery()[name].document)
    possible = [count for count in items if happens_without(second, count, event, without, since)]
    assert bool(possible) is (expected is not None)


@each_loadout
def test_shortest_cast_changed_by_a_lower_limit_agrees_with_the_second_engine(name):
    document = gallery()[name].document
    edited = copy.deepcopy(document)
    (loadout,) = edited["loadouts"].values()
    critic = next(iter(CRITICS[name]))
    (back,) = (edge for edge in loadout["sockets"][critic]["edges"] if edge["when"] == "not_satisfied")
    back["maxTraversals"] -= 1
    changes = behaviour_changes(*(ExploreView(build_graph(each), 2) for each in (document, edited)))
    length = length_of_shortest_difference(second_engine(document), second_engine(edited), 2)
    assert len(changes[0].route) == length
