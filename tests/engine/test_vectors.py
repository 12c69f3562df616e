"""Run the conformance vectors of complete casts through the public API."""

from __future__ import annotations

from conformance.run import run_vector
from vectors import each_vector


@each_vector("cast.jsonl")
def test_engine_passes_the_conformance_vector(vector):
    assert run_vector(vector) == []
