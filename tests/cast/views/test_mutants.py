"""Test that the test cases written by explore detect changes of single edges and exits.

A mutant counts only if its casts can behave differently: its ends, its unused edges or sockets, or its odds differ from
those of the original loadout.

``MATERIA_NB_MUTANTS=all`` tests every bundled loadout and prints the score of each.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from builders import asks, at, config, edge, exit_route, loop, retry_loop
from materia_nb.cast.cases import Case, read_case
from materia_nb.cast.gallery import gallery
from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.errors import MateriaError
from materia_nb.loadout import build_graph
from process_helpers import RUN_CASES
from realistic_loadouts import cleaning, paper, release

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
    e = ExploreView(build_graph(document), range(3), 20_000)
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
    view = ExploreView(build_graph(document), range(3))
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
def test_generated_cases_detect_at_least_95_percent_of_edge_mutations(tmp_path, name):
    document = json.loads(json.dumps(SAMPLES[name]))
    document["activeLoadout"] = document.get("activeLoadout") or next(iter(document["loadouts"]))
    whole, noticed, opened, opened_noticed, _ = score(document, tmp_path)
    print(f"{name}: {noticed} of {whole} noticed, of new ends {opened_noticed} of {opened}")
    assert whole
    assert noticed >= 0.95 * whole
    assert opened_noticed == opened


def test_case_that_fails_names_the_changed_edge(tmp_path):
    view = ExploreView(build_graph(TWO_EXITS), range(3))
    (ways,) = [read_case(path) for path in view.save_tests(tmp_path) if path.name.startswith("ways.")]
    mutant = json.loads(json.dumps(TWO_EXITS))
    mutant["loadouts"]["T"]["loops"]["L"]["exits"][1]["targetSocketId"] = "end"
    told = Case({**ways.fields, "config": mutant}, ways.path).check()
    assert "No longer possible: Do (last), satisfied false: Bad" in told
    assert "Now also possible: Do (last), satisfied false: complete" in told


def harmless_edits(document):
    """Yield copies of the document with one change that cannot change the behaviour of a cast."""
    for name, socket in document["loadouts"]["T"]["sockets"].items():
        edges = socket.get("edges", [])
        guards = {row["when"] for row in edges}
        changes = []
        if guards == {"satisfied", "not_satisfied"} and len(edges) == 2:
            changes += [edges[::-1], [*edges, edge(name, "satisfied")], [*edges, edge("end")]]
        if edges == [edge("end")]:
            changes.append([])
        for rows in changes:
            other = json.loads(json.dumps(document))
            other["loadouts"]["T"]["sockets"][name]["edges"] = rows
            if rows != edges:
                yield other


def follow(document, folder):
    """Save the tests of a loadout in a file, and return the file and a function that checks all tests."""
    file = folder / "mine.json"
    file.write_text(json.dumps(document))
    paths = ExploreView(build_graph(document), range(3)).save_tests(folder / "cases", follows=file)
    return file, paths, lambda: [line for path in paths for line in read_case(path).check()]


@pytest.mark.parametrize("document", [TWO_EXITS, retry_loop(most=1), release(), paper(), cleaning()])
def test_saved_tests_accept_edits_that_do_not_change_behaviour(tmp_path, document):
    file, _, check = follow(document, tmp_path)
    assert check() == []
    edits = list(harmless_edits(document))
    assert edits
    for other in edits:
        file.write_text(json.dumps(other))
        assert check() == [], other


def test_saved_tests_report_a_changed_limit_with_the_shortest_cast(tmp_path):
    document = retry_loop(most=2)
    file, paths, _ = follow(document, tmp_path)
    file.write_text(json.dumps(retry_loop(most=3)))
    (ways,) = [path for path in paths if path.name.startswith("ways.")]
    assert (
        "Eval P (only), satisfied false: Build P (only) instead of edge_traversals_exhausted at Eval P, "
        "after G → Build P → Eval P → Build P → Eval P → Build P → Eval P"
    ) in read_case(ways).check()


def test_pytest_accepts_changed_outcomes_on_request(tmp_path):
    document = retry_loop(most=2)
    file, paths, _ = follow(document, tmp_path)
    document["loadouts"]["T"]["sockets"]["Tell"] = at("P", edge("More"))
    document["loadouts"]["T"]["sockets"]["More"] = at("P")
    file.write_text(json.dumps(document))
    before = {path: path.read_text() for path in paths}

    def run(*options):
        folder = tmp_path / "cases"
        return subprocess.run(
            [*RUN_CASES, *options, str(folder)], cwd=folder, capture_output=True, text=True, check=False
        )

    refused = run()
    assert "if the change is intended, run `pytest --materia-update`" in refused.stdout, refused.stdout + refused.stderr
    assert {path: path.read_text() for path in paths} == before
    accepted = run("--materia-update")
    assert "ways.materia-case.json was updated:" in accepted.stdout, accepted.stdout + accepted.stderr
    assert "Now also possible: Tell: More" in accepted.stdout
    assert [line for path in paths if path.name.startswith("ways.") for line in read_case(path).check()] == []


def test_outcome_with_a_missing_answer_is_not_accepted(tmp_path):
    document = retry_loop(most=2)
    file, paths, _ = follow(document, tmp_path)
    document["loadouts"]["T"] |= {"entry": "More"}
    document["loadouts"]["T"]["sockets"]["More"] = at("P", edge("Plan"))
    file.write_text(json.dumps(document))
    with pytest.raises(MateriaError, match="More P never answered"):
        read_case(paths[0]).update()


LEFT_AT_ONCE = [edge("Build", "satisfied"), edge("end", "not_satisfied")]


def test_updated_case_contains_the_new_route_and_the_new_loadout(tmp_path):
    document = retry_loop(most=2)
    file, paths, _ = follow(document, tmp_path)
    (case,) = [read_case(path) for path in paths if path.name.startswith("edge_traversals")]
    document["loadouts"]["T"]["sockets"]["Eval"]["edges"] = LEFT_AT_ONCE
    file.write_text(json.dumps(document))
    assert case.check()
    case.update()
    updated = read_case(case.path)
    assert updated.check() == []
    assert updated.fields["expect"]["ends"] == "complete"
    assert updated.fields["config"]["loadouts"]["T"]["sockets"]["Eval"]["edges"] == LEFT_AT_ONCE
