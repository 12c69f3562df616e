"""Test lanes in explore and odds: routes, probabilities and time."""

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


def test_expected_time_is_the_sum_of_the_times_of_all_lanes(explored):
    odds = explored.odds(1.0, 4, seconds={"Plan": 10, "Setup": 1, "Build": 60, "Check": 0, "Tell": 5})
    assert odds.seconds == pytest.approx(256)
    assert explored.odds(1.0, 4).seconds is None
