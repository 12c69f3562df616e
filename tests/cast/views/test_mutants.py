"""Test that the test cases written by explore detect changes of single edges and exits.

A mutant counts only if its casts can behave differently: its ends, its unused edges or sockets, or its odds differ from
those of the original loadout.

``MATERIA_NB_MUTANTS=all`` tests every bundled loadout and prints the score of each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from builders import asks, at, config, edge, exit_route, loop, retry_loop
from materia_nb.cast.cases import Case, read_case
from materia_nb.cast.gallery import gallery
from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.errors import MateriaError
from materia_nb.loadout import build_graph

ALL = os.environ.get("MATERIA_NB_MUTANTS") == "all"
CONDITIONS = ("always", "satisfied", "not_satisfied")

TWO_EXITS = config(
    {
        "Plan": asks(edge("Do"), materia="G"),
        "Do": asks(edge("Do", "satisfied"), edge("Do", "not_satisfied", 1)),
        "Good": at("P"),
        "Bad": at("P", edge("Good")),
    },
    {"L": loop("Do", exits=[exit_route("Do", "satisfied", "Good"), exit_route("Do", "not_satisfied", "Bad")])},
)
SAMPLES = {"two exits": TWO_EXITS, "retries": retry_loop(most=1)}
if ALL:
    SAMPLES |= {card.name: card.document for card in gallery().values() if card.graph is not None}


def mutants(document) -> Iterator[dict]:
    """Yield copies of the document with one change: an edge or exit that is removed, doubled, or has another target or
    condition.
    """
    loadout = document["loadouts"][document["activeLoadout"]]
    places = [*loadout["sockets"], "end"]
    ways = [("sockets", name, "edges") for name in loadout["sockets"]]
    ways += [("loops", name, "exits") for name in loadout.get("loops", {})]

    def changed(way, place, change):
        made = json.loads(json.dumps(document))
        body = made["loadouts"][made["activeLoadout"]]
        for part in way:
            body = body[part]
        change(body, place)
        return made

    for way in ways:
        to, when = ("to", "when") if way[2] == "edges" else ("targetSocketId", "condition")
        for place, one in enumerate(loadout[way[0]][way[1]].get(way[2], [])):
            yield changed(way, place, lambda body, at: body.pop(at))
            for target in places:
                if target != one[to]:
                    yield changed(way, place, lambda body, at, to=to, target=target: body[at].update({to: target}))
            for condition in CONDITIONS:
                if condition != one[when]:
                    yield changed(way, place, lambda body, at, when=when, new=condition: body[at].update({when: new}))
            if "maxTraversals" in one:
                yield changed(way, place, lambda body, at: body[at].update(maxTraversals=body[at]["maxTraversals"] + 1))


def does(document):
    """Return the possible ends of casts and their odds, by which a mutant can be distinguished from the original."""
    e = ExploreView(build_graph(document), range(3), 20_000, document=document)
    odds = e.odds(0.6, 2)
    ends = {end: sorted(sockets) for end, sockets in e.ends.items()}
    return (
        ends,
        sorted(map(str, e.never)),
        sorted(e.unreached),
        {k: round(v, 9) for k, v in odds.ends.items()},
        {k: round(v, 9) for k, v in odds.visits.items()},
    )


def score(document, folder):
    """Return the number of mutants and of detected mutants, in total and among the mutants with a new end."""
    view = ExploreView(build_graph(document), range(3), document=document)
    cases = [read_case(path) for path in view.save_tests(folder)]
    assert [case.check() for case in cases] == [[]] * len(cases)
    before = does(document)
    whole, noticed, opened, opened_noticed, missed = 0, 0, 0, 0, []
    for mutant in mutants(document):
        try:
            after = does(mutant)
        except MateriaError:  # it is not a loadout, has no mean, or cannot be explored
            continue
        if after == before:
            continue
        new_end = bool(set(after[0]) - set(before[0]))
        told = any(Case({**case.fields, "config": mutant}, case.path).check() for case in cases)
        whole, noticed = whole + 1, noticed + told
        opened, opened_noticed = opened + new_end, opened_noticed + (new_end and told)
        if not told:
            missed.append(mutant)
    return whole, noticed, opened, opened_noticed, missed


@pytest.mark.parametrize("name", SAMPLES)
def test_generated_cases_detect_most_edge_mutations(tmp_path, name):
    document = json.loads(json.dumps(SAMPLES[name]))
    document["activeLoadout"] = document.get("activeLoadout") or next(iter(document["loadouts"]))
    whole, noticed, opened, opened_noticed, _ = score(document, tmp_path)
    print(f"{name}: {noticed} of {whole} noticed, of new ends {opened_noticed} of {opened}")
    assert whole
    assert noticed >= 0.95 * whole
    assert opened_noticed == opened


def test_failed_case_names_the_changed_edge(tmp_path):
    view = ExploreView(build_graph(TWO_EXITS), range(3), document=TWO_EXITS)
    (ways,) = [read_case(path) for path in view.save_tests(tmp_path) if path.name.startswith("ways.")]
    mutant = json.loads(json.dumps(TWO_EXITS))
    mutant["loadouts"]["T"]["loops"]["L"]["exits"][1]["targetSocketId"] = "end"
    told = Case({**ways.fields, "config": mutant}, ways.path).check()
    exit_ = "loop-exit:L:exit:Do:not_satisfied"
    assert f"No longer possible: Do (last), satisfied false: {exit_} → Bad" in told
    assert f"Now also possible: Do (last), satisfied false: {exit_} → complete" in told
