"""Test the engine, explore, odds and replay against a second engine that was written from the rules alone."""

from __future__ import annotations

import copy
from collections import Counter
from functools import cache
from random import Random
from typing import Any

import pytest

from builders import Folded, Play
from materia_nb.engine import recovery
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import Failure
from materia_nb.insight.compare import ComparedCast
from materia_nb.insight.explore import Exploration, behaviour_changes
from materia_nb.insight.replay import replay_answers
from materia_nb.loadout import LoadoutError, build_graph
from second_engine import (
    FAILED,
    NO,
    NOTHING,
    YES,
    Edge,
    SecondEngine,
    State,
    happens_without,
    length_of_shortest_difference,
    random_document,
)

LOADOUTS = 500
LENGTHS = range(3)
MAX_STATES = 400
MAX_TURNS = 60
compared: Counter[str] = Counter()
"""Number of loadouts and values that were compared, for ``make bench-agreement``."""
in_parts = pytest.mark.parametrize("part", range(5))
"""Decorator that distributes the loadouts over five tests, so that several workers can run them."""


@cache
def document_of(seed: int) -> dict[str, Any]:
    """Return the random loadout for a seed; it is always valid."""
    random = Random(seed)
    while True:
        document = random_document(random)
        if can_be_cast(document):
            return document


def can_be_cast(document: dict[str, Any]) -> bool:
    try:
        build_graph(document)
    except LoadoutError:
        return False
    return True


def seeds(part: int) -> range:
    return range(part, LOADOUTS, 5)


def output(socket: Any, result: str, count: int) -> Any:
    """Return an output with the specified result; the output of a generator has ``count`` work items."""
    if socket.parse == "text":
        return "some text"
    value: dict[str, Any] = {} if result == NOTHING else {"satisfied": result == YES}
    if socket.materia.generator:
        value["workItems"] = [{"title": f"t{number}", "context": "c"} for number in range(count)]
    return value


@in_parts
def test_random_casts_take_the_same_route_to_the_same_end(part):
    for seed in seeds(part):
        random, second, play = Random(seed), SecondEngine(document_of(seed)), Play(document_of(seed))
        compared["loadouts"] += 1
        state, _ = second.begin()
        for _ in range(MAX_TURNS):
            assert play.at == (state.end or state.socket), seed
            compared["values"] += 1
            if state.end:
                break
            result, count = random.choice(second.results(state.socket)), random.choice(LENGTHS)
            if result == FAILED:
                play.take(recovery.fail(play.rules, play.state, Failure("agent_failed", "it broke")))
            else:
                play.answer(output(play.rules.graph.sockets[state.socket], result, count))
            state, _ = second.complete(state, result, count)


def complete_explorations(part):
    """Yield the seeds whose loadouts were explored completely, with the second engine, the list length and the result."""
    for seed in seeds(part):
        second, count = SecondEngine(document_of(seed)), seed % 3
        explored = Exploration(build_graph(document_of(seed)), count, MAX_STATES)
        if explored.complete_search:
            compared["loadouts"] += 1
            yield seed, second, count, explored


@in_parts
def test_explore_and_odds_agree_with_the_enumeration_of_all_casts(part):
    complete = 0
    for seed, second, count, explored in complete_explorations(part):
        complete += 1
        visited, taken, ends = everything_possible(second, count)
        edges = {
            (name, number) for name, socket in second.sockets.items() for number, _ in enumerate(socket["edges"], 1)
        }
        assert set(explored.unreached) == set(second.sockets) - visited, seed
        assert set(explored.never) == (edges | {route["id"] for route in second.exits}) - taken, seed
        assert set(explored.ends) == ends, seed
        odds = explored.odds(0.6, count, failed=0.1).ends
        expected = second.odds({name: chances(second, name) for name in second.sockets}, count)
        assert {end: chance for end, chance in odds.items() if chance} == pytest.approx(expected), seed
        compared["values"] += len(second.sockets) + len(edges) + len(second.exits) + len(ends) + len(expected)
    assert complete > 0.9 * len(seeds(part))


@in_parts
def test_distributions_agree_with_the_enumeration_of_all_casts(part):
    complete = 0
    for seed, second, count, explored in complete_explorations(part):
        complete += 1
        amounts = {name: 7 * number + 3 for number, name in enumerate(sorted(second.sockets))}
        odds = explored.odds(0.6, count, failed=0.1, tokens=amounts)
        weights = {name: chances(second, name) for name in second.sockets}
        for quantity, amount_of in (("turns", dict.fromkeys(amounts, 1)), ("tokens", amounts)):
            computed = {
                (end, total): chance
                for end, row in odds.distribution(quantity).items()
                for total, chance in row.items()
            }
            enumerated = second.totals(weights, count, amount_of)
            assert computed == pytest.approx(enumerated, abs=1e-9), seed
            compared["values"] += len(enumerated)
            totals = sorted((total, chance) for (_, total), chance in enumerated.items())
            for share in (0.1, 0.5, 0.9):
                value = getattr(odds.at(share), quantity)
                assert sum(chance for total, chance in totals if total <= value) >= share - 1e-6, seed
                assert sum(chance for total, chance in totals if total < value) <= share + 1e-6, seed
    assert complete > 0.9 * len(seeds(part))


@in_parts
def test_example_run_that_avoids_an_event_exists_if_a_cast_can_avoid_it(part):
    outcomes = Counter()
    for seed in seeds(part):
        second, count = SecondEngine(document_of(seed)), seed % 3
        explored = Exploration(build_graph(document_of(seed)), count, MAX_STATES)
        event, without, since = Random(seed).choices(sorted(second.sockets), k=3)
        if explored.certain and explored.can(event) and not explored.graph.regions:
            witness = explored.witness(event, without=without, since=since)
            assert (witness is not None) is happens_without(second, count, event, without, since), seed
            compared.update(loadouts=1, values=1)
            outcomes[witness is None] += 1
    assert min(outcomes[True], outcomes[False]) >= 10


def everything_possible(second: SecondEngine, count: int) -> tuple[set[str], set[Edge | str], set[str]]:
    """Return all sockets, edges, exits and ends that are possible in casts of a loadout."""
    begin, routes = second.begin()
    known, taken = {begin}, set(routes)
    waiting: list[State] = [begin]
    while waiting:
        state = waiting.pop()
        for _, target, routes in second.moves(state, [count]) if not state.end else ():
            taken.update(routes)
            if target not in known:
                known.add(target)
                waiting.append(target)
    return {state.socket for state in known if not state.end}, taken, {state.end for state in known} - {""}


def chances(second: SecondEngine, socket: str) -> dict[str, float]:
    """Return the probability of each result: 0.1 for a failure that an edge handles, and 0.6 of the rest for satisfied."""
    failed = 0.1 if FAILED in second.results(socket) else 0.0
    verdicts = {YES: 0.6, NO: 0.4} if NOTHING not in second.results(socket) else {NOTHING: 1.0}
    return {FAILED: failed, **{result: (1 - failed) * chance for result, chance in verdicts.items()}}


@in_parts
def test_replay_in_a_changed_loadout_agrees_with_the_second_engine(part):
    ends: Counter[str] = Counter()
    for seed in seeds(part):
        random = Random(seed)
        original, recorded = record_a_cast(document_of(seed), random)
        second = SecondEngine(changed(document_of(seed), random))
        route, end = route_of(second, recorded)
        if end == REFUSED:
            continue
        rules = Rules(build_graph(second.document))
        replay = replay_answers(ComparedCast("", original.rules, original.session), rules)
        assert [socket for socket, *_ in replay.route] == route, seed
        assert replay.ends == end, seed
        compared.update(loadouts=1, values=len(route) + 1)
        ends[end] += 1
    assert {"needs", "complete"} <= set(ends)


@in_parts
def test_changes_of_behaviour_agree_with_all_casts_of_both_loadouts(part):
    outcomes = Counter()
    for seed in seeds(part):
        document, count = document_of(seed), seed % 3
        other = edited(document, Random(seed))
        explored = [Exploration(build_graph(each), count, MAX_STATES) for each in (document, other)]
        if not all(each.complete_search for each in explored):
            continue
        changes = behaviour_changes(*explored)
        length = length_of_shortest_difference(SecondEngine(document), SecondEngine(other), count)
        assert (len(changes[0].route) if changes else None) == length, seed
        outcomes[length is None] += 1
        compared.update(loadouts=1, values=1)
    assert min(outcomes[True], outcomes[False]) >= 20


def edited(document: dict[str, Any], random: Random) -> dict[str, Any]:
    """Return a copy of the loadout with one edit, which need not change the behaviour."""
    if random.random() < 0.4:
        return changed(document, random)
    while True:
        other = copy.deepcopy(document)
        sockets = other["loadouts"]["T"]["sockets"]
        edges = random.choice([socket["edges"] for socket in sockets.values() if socket.get("edges")])
        kind = random.choice(["limit", "swap", "last", "remove"])
        if kind == "limit":
            random.choice(edges)["maxTraversals"] = random.randint(1, 4)
        elif kind == "swap":
            edges.reverse()
        elif kind == "last":
            edges.append({"when": random.choice(["satisfied", "always"]), "to": random.choice([*sockets, "end"])})
        else:
            edges.pop()
        if other != document and can_be_cast(other):
            return other


REFUSED = "refused"
Recorded = dict[tuple[str, int | None], list[tuple[str, int]]]
"""The result and the number of work items of each visit, by socket and item index."""


def record_a_cast(document: dict[str, Any], random: Random) -> tuple[Folded, Recorded]:
    """Run a cast with random verdicts, and return the cast and its results."""
    second, cast, recorded = SecondEngine(document), Folded(document), Recorded()
    state, _ = second.begin()
    for _ in range(MAX_TURNS):
        if state.end:
            break
        result = random.choice([result for result in second.results(state.socket) if result != FAILED])
        count = random.choice(LENGTHS)
        recorded.setdefault(second.visit_key(state), []).append((result, count))
        cast.answers(output(cast.rules.graph.sockets[state.socket], result, count))
        state, _ = second.complete(state, result, count)
    return cast, recorded


def changed(document: dict[str, Any], random: Random) -> dict[str, Any]:
    """Return a copy of the loadout in which one edge has another target or condition; edges of Plan are not changed."""
    while True:
        other = copy.deepcopy(document)
        sockets = other["loadouts"]["T"]["sockets"]
        edge = random.choice([edge for name, socket in sockets.items() if name != "Plan" for edge in socket["edges"]])
        edge |= random.choice(
            [{"to": random.choice([*sockets, "end"])}, {"when": random.choice(["always", "satisfied"])}]
        )
        if other != document and can_be_cast(other):
            return other


def route_of(second: SecondEngine, recorded: Recorded) -> tuple[list[str], str]:
    """Return the visited sockets and the end of a cast with recorded results; the end is ``needs`` if one is missing."""
    visits: Counter[Any] = Counter()
    route = []
    state, _ = second.begin()
    while not state.end:
        key = second.visit_key(state)
        route.append(state.socket)
        results = recorded.get(key, [])[visits[key] :]
        if not results:
            return route, "needs"
        visits[key] += 1
        result, count = results[0]
        if result not in second.results(state.socket):
            return route, REFUSED
        state, _ = second.complete(state, result, count)
    return route, state.end
