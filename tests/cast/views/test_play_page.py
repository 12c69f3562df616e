"""Test the page that plays a loadout: taps take the route of the engine, and the page is one small file."""

from __future__ import annotations

import json
import re
from random import Random

import pytest

from materia_nb.cast.views.play_page import play_data
from materia_nb.cast.workbench import Workbench
from materia_nb.engine import decide, entering
from materia_nb.engine.decide import Answer
from materia_nb.engine.evolve import fold, session_at
from materia_nb.engine.rules import Rules
from materia_nb.errors import MateriaError
from materia_nb.handoff.base import SAMPLE
from materia_nb.insight.odds import outlooks
from materia_nb.insight.reachable_states import explore_states

LESSONS = ("Teach-Edges", "Teach-Rework", "Teach-Exits")
TAPS = 200
EMBEDDED = re.compile(r'<script type="application/json" id="play-data">(.*?)</script>', re.DOTALL)


@pytest.fixture
def bench(tmp_path):
    workbench = Workbench(tmp_path)
    yield workbench
    workbench.close()


def embedded(page):
    """Return the data that is embedded in a page."""
    return json.loads(EMBEDDED.search(page.read_text("utf-8"))[1])


def stop(session):
    """Return the waiting socket and the end of a session in the format of the page."""
    state = session.state
    if state.status == "complete":
        return None, "complete"
    if state.failure is not None:
        return state.failure.socket, state.failure.kind
    return state.at.socket, None


def entered(rules, session):
    while session.state.status == "ready":
        session = fold(rules, session, decide.enter(rules, session, 0))
    return session


@pytest.mark.parametrize("name", [*LESSONS, "Plan-Build-Eval", "Full-Auto"])
def test_random_taps_on_a_play_page_follow_the_route_of_the_engine(bench, tmp_path, name):
    explored = bench.explore(name)
    states = embedded(explored.play(tmp_path / "play.html"))["states"]
    space, rules, chance = explore_states(explored.graph, explored.items), Rules(explored.graph), Random(name)
    at, turns, session = 0, 0, entered(rules, session_at(entering.begin(rules, SAMPLE)))
    taps = 0
    while taps < TAPS:
        _, socket, end, _, _, moves = states[at]
        assert (socket, end) == stop(session)
        if end is not None:
            assert turns == sum(not explored.graph.sockets[step.socket].is_utility for step in session.steps)
            at, turns, session = 0, 0, entered(rules, session_at(entering.begin(rules, SAMPLE)))
            continue
        tapped = chance.randrange(len(moves))
        answer = Answer(space.moves[at][tapped].answer.text)
        at, turns, taps = moves[tapped][0], turns + moves[tapped][3], taps + 1
        session = entered(rules, fold(rules, session, decide.answer(rules, session, answer, 0)))


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
        "Edge 2 (not_satisfied) leads to Build (Socket-2): the output sets satisfied: false. "
        "It can be taken at most 3 times for each item."
    ) in texts
    assert "No item is left, so the exit for satisfied leads to Narrate (Socket-5)." in texts
    assert "The cast stops: Eval (Socket-3) took the same edge too often." in texts


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
