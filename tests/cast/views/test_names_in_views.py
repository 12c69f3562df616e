"""Test that people read the names of sockets and the titles of work items, not their ids, in every view."""

from __future__ import annotations

import json
import re
from copy import deepcopy

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.cast.cases import read_case
from materia_nb.cast.formatting import record_view
from materia_nb.cast.gallery import gallery
from materia_nb.cast.views.compare_view import compare_view
from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.cast.views.status import status_view
from materia_nb.cast.views.tables import breakpoints_view
from materia_nb.display.blocks import Picture, Table, blocks_as_html, blocks_as_text
from materia_nb.display.text import WIDTH, display_width
from materia_nb.errors import MateriaError
from materia_nb.loadout import build_graph

ID = re.compile(r"Socket-\d|\bWI-\d")
QUESTIONS = {
    "explore": lambda bench, name: bench.explore(name, 2),
    "odds": lambda bench, name: bench.odds(name, 0.8, 2, tokens={"Publish": 10}),
    "simulate": lambda bench, name: bench.simulate(name, 20, 0.8, 2),
    "estimate": lambda bench, name: bench.estimate(name, items=2, satisfied=0.8),
    "prompts": lambda bench, name: bench.prompts(name, items=[h.item("Outline"), h.item("Text")]),
    "worth": lambda bench, name: bench.explore(name, 2).worth(0.7, {"Review-Code": (0.8, 0.1)}, 0.9, 2),
    "fields": lambda bench, name: bench.compare(name, "Hasty"),
    "behaviour": lambda bench, name: bench.compare(name, "Hasty", behaviour=True, satisfied=0.8, items=2),
}
SHOWN = {
    "steps": lambda cast: cast.steps,
    "status": lambda cast: status_view(cast.now),
    "usage": lambda cast: cast.usage("socket", "materia"),
    "blame": lambda cast: cast.blame("item.title"),
    "step": lambda cast: [cast.steps.at(3), record_view(cast.steps.at(3))],
    "why": lambda cast: cast.why(3),
    "steps compared": lambda cast: compare_view(cast.steps.at(3), cast.steps.at(5)).explained_blocks()[:3],
    "casts compared": lambda cast: compare_view(cast.now.compared_cast, cast.at(3).compared_cast),
    "breakpoints": lambda cast: breakpoints_view(cast.now.breakpoints, cast.graph),
}


def without_pictures(view):
    """Return the blocks of a view except pictures, whose text is the list of the sockets with their ids."""
    return [block for block in view._blocks() if not isinstance(block, Picture)]


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """Return a workbench with the release pipeline and with a copy that reviews the code only once."""
    document = deepcopy(gallery()["release-pipeline"].document)
    hasty = document["loadouts"]["Hasty"] = deepcopy(document["loadouts"]["Release-Pipeline"])
    review = next(socket for socket in hasty["sockets"].values() if socket["materia"] == "Review-Code")
    for edge in review["edges"]:
        edge["maxTraversals"] = 1
    bench = Workbench(tmp_path_factory.mktemp("release"))
    bench.load(document)
    return bench


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_about_a_loadout_contain_names_and_fit_the_page(release, question):
    blocks = without_pictures(QUESTIONS[question](release, "Release-Pipeline"))
    assert not ID.search(blocks_as_text(blocks, WIDTH))
    assert not ID.search(blocks_as_html(blocks))
    tables = [block.as_text(WIDTH) for block in blocks if isinstance(block, Table)]
    assert max(display_width(line) for table in tables for line in table.splitlines()) <= WIDTH


@pytest.fixture(scope="module")
def cast(tmp_path_factory):
    """Return a cast that sent its first item back once."""
    agents = h.loop_agents(2, refuse=[1])
    cast = h.start(tmp_path_factory.mktemp("names"), h.loop_config(), agents)
    cast.breakpoints.add("Check", edge=2)
    cast.run()
    assert status_view(cast.now, "breakpoint", cast.now.breakpoints_hit).as_text().count("Check → Build (edge 2)") == 1
    cast.run()
    yield cast
    cast.close()


@pytest.mark.parametrize("part", SHOWN)
def test_views_of_a_cast_contain_names_and_titles(cast, part):
    text = repr(SHOWN[part](cast))
    assert not ID.search(text)
    assert "Check" in text or "Build" in text


def test_step_can_show_its_socket_name_without_access_to_its_cast(cast):
    step = cast.steps.at(3)
    assert (step.name, step.name_of("end"), step.name_of("elsewhere")) == ("Check", "the end", "elsewhere")
    assert step.title == "Step 3: Check, visit 1, item Part 1"


def test_sockets_with_the_same_materia_have_different_names(tmp_path):
    cast = h.start(tmp_path, h.chain_config(2), lambda: "done")
    cast.run()
    assert [step.name for step in cast.steps] == ["Socket-1 M", "Socket-2 M"]
    cast.close()


@pytest.fixture
def cases(tmp_path):
    """Return the saved tests of a loadout whose config file can be changed."""
    card = gallery()["release-pipeline"]
    config = tmp_path / "release.json"
    config.write_text(json.dumps(card.document))
    rules = [{"never": "Socket-8", "without": "Review-Code", "since": "Socket-2"}]
    ExploreView(card.graph, (0, 1)).save_tests(tmp_path / "cases", follows=config, rules=rules)
    return config


def failures(config, change):
    document = json.loads(config.read_text())
    change(document["loadouts"]["Release-Pipeline"]["sockets"])
    config.write_text(json.dumps(document))
    return {path.name.split(".")[0]: read_case(path).check() for path in (config.parent / "cases").iterdir()}


def test_saved_tests_report_names(cases):
    def publish_at_once(sockets):
        sockets["Socket-3"]["edges"][0]["to"] = "Socket-8"

    lines = failures(cases, publish_at_once)
    assert not ID.search(json.dumps([*lines.values()]))
    assert (
        "Step 3 should be Unit-Tests (Item 1), followed by Review-Code, but is Unit-Tests (Item 1), followed by Publish."
        in lines["edge_traversals_exhausted-at-Socket-4"]
    )
    assert "No longer possible: Unit-Tests (only), satisfied true: Review-Code (only)" in lines["ways"]
    (line,) = lines["rules"]
    assert line.startswith('The rule "never Publish without Review-Code since Implement" is broken: Plan-Changes →')


def test_saved_tests_report_a_changed_limit_with_names(cases):
    def review_once(sockets):
        review = next(socket for socket in sockets.values() if socket["materia"] == "Review-Code")
        for edge in review["edges"]:
            edge["maxTraversals"] = 1

    (line, *_) = failures(cases, review_once)["ways"]
    assert not ID.search(line)
    assert line.startswith("Review-Code (only), satisfied false: ")


def test_displayed_socket_name_is_accepted_as_an_argument(release):
    graph = release.graph("Release-Pipeline")
    name = graph.names["Socket-2"]
    odds = release.odds("Release-Pipeline", {name: 0.1, "*": 0.9}, 1)
    assert odds.satisfied == release.odds("Release-Pipeline", {"Socket-2": 0.1, "*": 0.9}, 1).satisfied
    with pytest.raises(MateriaError, match=f"The chance of `satisfied` at {graph.names['Socket-4']} is not valid"):
        release.odds("Release-Pipeline", {"Socket-4": 2.0, "*": 0.9}, 1)


def test_compared_loadouts_have_one_name_for_each_socket():
    other = h.loop_config()
    other["loadouts"]["T"]["sockets"]["Socket-4"]["edges"] = [{"when": "always", "to": "Socket-5"}]
    other["loadouts"]["T"]["sockets"]["Socket-5"] = {"materia": "Check"}
    text = compare_view(build_graph(h.loop_config()), build_graph(other)).as_text()
    assert re.search(r"Tell +edge 1 +\(none\) +always to Socket-5 Check", text)
