"""Run the conformance vectors of handoffs through the public API."""

from __future__ import annotations

from conformance.run import run_vector
from vectors import each_vector


@each_vector("agent-contract.jsonl", "envelope.jsonl", "handoff.jsonl")
def test_handoff_passes_the_conformance_vector(vector):
    assert run_vector(vector) == []
