"""The vectors of configs that are checked, through the public API."""

from __future__ import annotations

from materia_nb.conformance import run_vector
from vectors import each_vector


@each_vector("validate.jsonl")
def test_vector(vector):
    assert run_vector(vector) == []
