"""Test the page that plays a loadout: taps take the route of the engine, and the page is one small file."""

from __future__ import annotations

import re

import pytest

from materia_nb.cast.views.play_page import play_data
from materia_nb.cast.workbench import Workbench
from materia_nb.errors import MateriaError
from materia_nb.insight.odds import outlooks
from materia_nb.insight.reachable_states import explore_states
from page_taps import needs_node, random_taps, shown_after_taps

LESSONS = ("Teach-Edges", "Teach-Rework", "Teach-Exits")


@pytest.fixture
def bench(tmp_path):
    workbench = Workbench(tmp_path)
    yield workbench
    workbench.close()


@needs_node
@pytest.mark.parametrize("name", [*LESSONS, "Plan-Build-Eval", "Full-Auto"])
def test_10000_random_taps_on_a_play_page_follow_the_same_routes_as_the_engine(bench, tmp_path, name):
    explored = bench.explore(name)
    page = explored.play(tmp_path / "play.html")
    taps = random_taps(explored.graph, explored.items, name)
    for (_, engine), shown in zip(taps, shown_after_taps(page, [number for number, _ in taps]), strict=True):
        assert shown["heading"] == engine.heading
        assert shown["sockets"] == ([] if engine.socket is None else [engine.socket])
        assert shown["turns"] == engine.turns


def test_play_pages_are_small_and_load_no_external_resources(bench, tmp_path):
    for name in bench.loadouts:
        page = bench.explore(name).play(tmp_path / f"{name}.html").read_text("utf-8")
        assert len(page.encode()) < (100_000 if name in LESSONS else 500_000)
        assert "default-src 'none'" in page
        assert not re.search(r"""(?:src|href)=["']?https?:|@import|fetch\(|import\(""", page)


def test_reasons_name_the_edge_and_its_limit(bench):
    explored = bench.explore("Plan-Build-Eval")
    texts = play_data(explored.graph, explore_states(explored.graph, (2,)), 0.5)["texts"]
    assert (
        "Edge 2 (not_satisfied) leads to Build: the output sets satisfied: false. "
        "It can be taken at most 3 times for each item."
    ) in texts
    assert "No item is left, so the exit for satisfied leads to Narrate." in texts
    assert "The cast stops: Eval took the same edge too often." in texts


def test_reason_for_an_empty_list_says_that_the_loop_is_skipped(bench):
    graph = bench.graph("Plan-Build-Eval")
    data = play_data(graph, explore_states(graph, (0, 1)), 0.5)
    reason = {data["texts"][move[1]]: data["texts"][move[2]] for move in data["states"][0][5]}["lists 0 items"]
    assert reason == (
        "Edge 1 (always) leads to Build. "
        "The loop is skipped, because it has no item: the exit for always leads to Narrate."
    )


def test_play_page_distinguishes_an_answer_without_a_verdict_from_a_verdict(bench):
    graph = bench.gallery()["last-page"].graph
    data = play_data(graph, explore_states(graph, (1,)), 0.5)
    answers = {state[1]: [data["texts"][move[1]] for move in state[5]] for state in data["states"] if state[5]}
    assert answers["Socket-2"] == ["answers"]
    assert answers["Socket-3"] == ["✓ satisfied", "✗ not satisfied", "answers without a verdict"]


def test_first_state_of_the_play_page_shows_the_odds_of_the_loadout(bench):
    explored = bench.explore("Plan-Build-Eval", 2)
    odds = explored.odds(0.7, 2)
    first = outlooks(explored.graph, explore_states(explored.graph, (2,)), 0.7)[0]
    assert first.complete == pytest.approx(odds.ends["complete"])
    assert first.turns == pytest.approx(odds.turns)


def test_hostile_names_are_shown_as_text(tmp_path):
    name = "</script><script>alert(1)</script>"
    document = {
        "activeLoadout": "Hostile",
        "loadouts": {"Hostile": {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "Ask"}}}},
        "materia": {"Ask": {"type": "agent", "tools": "none", "prompt": "x", "label": name}},
    }
    bench = Workbench(tmp_path, bundled=False)
    bench.load(document)
    page = bench.explore().play(tmp_path / "play.html").read_text("utf-8")
    bench.close()
    assert "<script>alert" not in page
    assert page.count("<script") == 2


def test_truncated_exploration_cannot_be_exported_as_a_play_page(bench, tmp_path):
    with pytest.raises(MateriaError, match="the search stopped after 3 states"):
        bench.explore("Plan-Build-Eval", states=3).play(tmp_path / "play.html")
    assert not (tmp_path / "play.html").exists()
