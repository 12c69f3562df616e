"""Load the conformance vectors; the tests of each package run the vectors that apply to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

VECTORS = Path(__file__).parents[1] / "vectors"


def read(name: str) -> list[dict[str, Any]]:
    """Return the vectors of a file."""
    return [json.loads(line) for line in (VECTORS / name).read_text(encoding="utf-8").splitlines() if line]


def each_vector(*names: str) -> pytest.MarkDecorator:
    """Parametrize a test with every vector in the named files."""
    vectors = [vector for name in names for vector in read(name)]
    return pytest.mark.parametrize("vector", vectors, ids=lambda one: f"{one['kind']}-{one['id']}")
