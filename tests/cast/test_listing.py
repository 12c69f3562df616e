"""The steps of a cast and the casts of a project show themselves, and are data frames on demand."""

from __future__ import annotations

import sys

import pytest

from materia_nb.cast.listing import CAST_FIELDS, STEP_FIELDS
from materia_nb.errors import MateriaError

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def done(bench):
    cast = bench.cast(HOSTILE)
    bench.agent("Narrate", lambda: HOSTILE)
    cast.run()
    return cast


def test_steps_are_a_sequence_as_before_and_stay_as_they_were(bench):
    cast = bench.cast("r")
    before = cast.steps
    cast.run(steps=2)
    assert len(before) == 0
    assert before == []
    assert [step.number for step in cast.steps] == [1, 2]
    assert cast.steps[-1] is cast.steps[1:][0]
    assert cast.steps == list(cast.steps) == cast.at(2).steps


def test_steps_and_casts_show_themselves_as_tables_with_nothing_unescaped(bench, done):
    for shown, word in ((done.steps, "Socket-5"), (bench.casts(), done.id)):
        bundle = shown._repr_mimebundle_()
        assert word in bundle["text/plain"]
        assert word in bundle["text/html"]
        assert "<img" not in bundle["text/html"]
    assert repr(bench.cast("r").steps) == "no steps yet"


def test_a_table_of_steps_says_verdict_and_context_in_words(bench):
    cast = bench.cast("r")
    cast.run()
    outputs = [row[cast.steps.table.headers.index("output")] for row in cast.steps.table.rows]
    assert outputs[:6] == ["3 items: a, b, c", "built a", "✗ not yet", "built a", "✓ not yet", "✓"]
    assert outputs[-1] == "told"


def test_the_frame_of_steps_has_one_row_a_step(done):
    pytest.importorskip("pandas")
    frame = done.steps.frame()
    assert list(frame.columns) == list(STEP_FIELDS)
    assert list(frame["socket"]) == [step.socket for step in done.steps]
    assert frame.loc[2, "satisfied"] is False
    assert frame.loc[2, "next"] == "Socket-2"
    assert str(frame["started"].dtype).endswith("UTC]")


def test_the_frame_of_casts_has_one_row_a_cast(bench, done):
    pytest.importorskip("pandas")
    frame = bench.casts().frame()
    assert list(frame.columns) == list(CAST_FIELDS)
    assert list(frame["status"]) == ["complete"]
    assert frame.loc[0, "cast"] == done.id


def test_a_frame_of_nothing_has_its_columns(bench):
    pytest.importorskip("pandas")
    assert list(bench.casts().frame().columns) == list(CAST_FIELDS)


def test_without_pandas_the_extra_is_named(bench, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MateriaError, match="pandas") as error:
        bench.casts().frame()
    assert "materia-nb[data]" in error.value.hint
