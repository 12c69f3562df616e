"""Test lanes in explore and odds: routes, probabilities, and the time that additional lanes save."""

from __future__ import annotations

import pytest

import cast_helpers as h
from materia_nb.engine.rules import Rules
from materia_nb.insight.explore import Exploration, replay_witness
from materia_nb.loadout import build_graph
from stream_helpers import streams_config


@pytest.fixture(scope="module")
def explored():
    return Exploration(build_graph(streams_config()), (0, 1, 2, 4))


def test_example_run_uses_only_one_lane(explored, tmp_path):
    witness = explored.witness("complete")
    session = replay_witness(Rules(explored.graph), witness)
    assert session.state.status == "complete"
    cast = h.start(tmp_path, streams_config())
    cast.agents.default = witness.answers
    cast.run()
    assert cast.status == "complete"
    assert any("additional lane" in note for note in explored.notes)


def test_duration_of_a_cast_depends_on_its_slowest_lane(explored):
    odds = explored.odds(1.0, 4, seconds={"Plan": 10, "Setup": 1, "Build": 60, "Check": 0, "Tell": 5})
    assert odds.seconds == pytest.approx({1: 256, 2: 136, 3: 136, 4: 76})
    assert explored.odds(1.0, 4).seconds is None


def test_more_rounds_take_longer_with_any_number_of_lanes(explored):
    sure, doubtful = (explored.odds(chance, 4, seconds=1.0).seconds for chance in (1.0, 0.8))
    assert all(doubtful[lanes] > sure[lanes] for lanes in sure)


def test_a_loadout_without_lanes_has_one_duration():
    graph = build_graph(h.loop_config())
    assert Exploration(graph, (2,)).odds(1.0, 2, seconds=2.0).seconds == pytest.approx({1: 12})
