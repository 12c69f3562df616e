"""Test a small local model: each of its handoffs is accepted, repaired or refused according to the rules."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

import pytest

import demo_model
import local_model
from materia_nb.cast import open_cast

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(local_model.unavailable_reason() is not None, reason=str(local_model.unavailable_reason())),
]


BOUNDS = {"repair_exhausted", "edge_traversals_exhausted", "no_advance_cycles_exhausted"}
"""The failure kinds that a cast may have if its model gives useless answers (R18, R19)."""


def test_cast_with_a_local_model_has_a_documented_outcome_and_stops_its_server(tmp_path):
    with local_model.local_model() as served:
        url = urlsplit(served.url)
        socket.create_connection((url.hostname, url.port)).close()
        cast = demo_model.run_demo_cast(served, tmp_path)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((url.hostname, url.port))
    assert cast.status == "complete" or cast.failure.kind in BOUNDS, cast.failure
    assert cast.now.usage.input > 0
    assert cast.now.usage.output > 0
    done = [step for step in cast.steps if step.decision is not None and step.decision.target]
    for step in done:
        assert step.turns[-1].reading.accepted
        assert len(step.turns) <= 2, "one repair turn at most (R19)"
    assert all(turn.meta["model"] == served.model for step in cast.steps for turn in step.turns)
    for step in cast.steps:
        held = cast.now.rules.sockets[step.socket].requirements.parse == "json"
        if held and step.turns and step.turns[-1].meta["finish"] == "stop":
            json.loads(step.turns[-1].text)  # the server holds the model to the schema
    assert open_cast(cast.run_dir).route == cast.route


def test_error_names_the_missing_packages_of_the_local_model(monkeypatch):
    monkeypatch.setattr(local_model, "PACKAGES", ("no_such_package",))
    with pytest.raises(local_model.NoLocalModelError, match=r"no_such_package.*materia-nb\[local-model\]"):
        local_model.local_model().__enter__()
