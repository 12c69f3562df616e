"""Run the conformance vectors of config checks through the public API."""

from __future__ import annotations

import pytest

from conformance.run import run_vector
from materia_nb.loadout import build_graph
from materia_nb.loadout.report import LoadoutError
from vectors import each_vector


@each_vector("validate.jsonl")
def test_loadout_passes_the_conformance_vector(vector):
    assert run_vector(vector) == []
    if vector["expect"]["ok"]:
        build_graph(vector["config"])
    else:
        with pytest.raises(LoadoutError):
            build_graph(vector["config"])
