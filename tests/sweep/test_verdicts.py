"""Data sets of pydantic-evals as requests and checks of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.sweep.results import requests_of, verdict_from


def case(inputs, name=None):
    return SimpleNamespace(inputs=inputs, name=name, evaluators=[])


def test_cases_are_requests_under_their_names():
    dataset = SimpleNamespace(cases=[case("rain", "wet"), case({"about": "sun"})], evaluators=[])
    assert requests_of(dataset) == {"wet": "rain", "case 2": '{"about":"sun"}'}


def test_two_cases_with_the_same_request_are_refused():
    dataset = SimpleNamespace(cases=[case("rain"), case("rain", "wet")], evaluators=[])
    with pytest.raises(MateriaError, match="Case 2 of the data set has the same request"):
        requests_of(dataset)


@pytest.mark.parametrize(
    "said, value, why",
    [
        (True, True, ""),
        (0.5, 0.5, ""),
        (SimpleNamespace(value=False, reason="too long"), False, "too long"),
        ("formal", True, "formal"),
        ({"short": True, "polite": SimpleNamespace(value=False, reason="rude")}, False, "polite: rude"),
    ],
)
def test_the_result_of_an_evaluator_is_a_verdict(said, value, why):
    assert verdict_from(said)[:2] == (value, why)


def test_a_data_set_is_swept(tmp_path):
    evals = pytest.importorskip("pydantic_evals")
    from pydantic_evals.evaluators import EqualsExpected, Evaluator

    @dataclass
    class InFewSteps(Evaluator):
        def evaluate(self, ctx):
            return ctx.metrics["steps"] <= 2

    dataset = evals.Dataset(
        name="pages",
        cases=[
            evals.Case(name="rain", inputs="rain", expected_output="about rain"),
            evals.Case(name="sun", inputs="sun", expected_output="about snow", evaluators=[InFewSteps()]),
        ],
        evaluators=[EqualsExpected()],
    )
    wb = Workbench(tmp_path)
    rows = wb.sweep("Ask", dataset, agents=lambda turn: f"about {turn.request}")
    assert [(row.request, {name: one.value for name, one in row.checks.items()}) for row in rows] == [
        ("rain", {"EqualsExpected": True, "InFewSteps": True}),
        ("sun", {"EqualsExpected": False, "InFewSteps": True}),
    ]
