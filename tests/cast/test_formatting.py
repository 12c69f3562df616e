"""Test that lists of steps and casts display themselves and can be converted to data frames."""

from __future__ import annotations

import sys
from datetime import datetime

import pytest

from materia_nb.cast.formatting import CAST_FIELDS, STEP_FIELDS, format_cost, relative_time, search_casts
from materia_nb.errors import MateriaError
from materia_nb.store.catalogue import CastEntry

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def done(bench):
    cast = bench.cast(HOSTILE)
    bench.agent("Narrate", lambda: HOSTILE)
    cast.run()
    return cast


def test_steps_are_an_immutable_sequence(bench):
    cast = bench.cast("r")
    before = cast.steps
    cast.run(steps=2)
    assert len(before) == 0
    assert before == []
    assert [step.number for step in cast.steps] == [1, 2]
    assert cast.steps[-1] is cast.steps[1:][0]
    assert cast.steps == list(cast.steps) == cast.at(2).steps


def test_steps_and_casts_are_shown_as_escaped_tables(bench, done):
    for shown, word in ((done.steps, "Narrate"), (bench.casts(), done.id)):
        bundle = shown._repr_mimebundle_()
        assert word in bundle["text/plain"]
        assert word in bundle["text/html"]
        assert "<img" not in bundle["text/html"]
    assert repr(bench.cast("r").steps) == "no steps yet"


def test_step_table_shows_verdict_and_context(bench):
    cast = bench.cast("r")
    cast.run()
    outputs = [row[cast.steps.table.headers.index("output")] for row in cast.steps.table.rows]
    assert outputs[:6] == ["3 items: a, b, c", "built a", "✗ not yet", "built a", "✓ not yet", "✓"]
    assert outputs[-1] == "told"


def test_data_frame_of_steps_has_one_row_per_step(done):
    pytest.importorskip("pandas")
    frame = done.steps.frame()
    assert list(frame.columns) == list(STEP_FIELDS)
    assert list(frame["socket"]) == [step.socket for step in done.steps]
    assert frame.loc[2, "satisfied"] is False
    assert frame.loc[2, "next"] == "Socket-2"
    assert str(frame["started"].dtype).endswith("UTC]")


def test_data_frame_of_casts_has_one_row_per_cast(bench, done):
    pytest.importorskip("pandas")
    frame = bench.casts().frame()
    assert list(frame.columns) == list(CAST_FIELDS)
    assert list(frame["status"]) == ["complete"]
    assert frame.loc[0, "cast"] == done.id


def test_empty_data_frame_has_its_columns(bench):
    pytest.importorskip("pandas")
    assert list(bench.casts().frame().columns) == list(CAST_FIELDS)


def test_missing_pandas_error_names_the_extra(bench, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MateriaError, match="pandas") as error:
        bench.casts().frame()
    assert "materia-nb[data]" in error.value.hint


# -- how the list of a project says it ------------------------------------------------------


def at(*when):
    """Return the timestamp of a local date and time, in seconds."""
    return datetime(*when).timestamp()  # noqa: DTZ001 - days are those of this machine


@pytest.mark.parametrize(
    "then, words",
    [
        (at(2026, 5, 15, 9, 5), "today 9:05"),
        (at(2026, 5, 14, 23, 59), "yesterday 23:59"),
        (at(2026, 5, 13, 0, 0), "Wednesday 0:00"),
        (at(2026, 5, 9, 12, 30), "Saturday 12:30"),
        (at(2026, 5, 8, 12, 30), "8 May"),
        (at(2026, 5, 16, 1, 0), "16 May"),
        (at(2026, 1, 1, 1, 0), "1 January"),
        (at(2025, 12, 31, 1, 0), "31 December 2025"),
    ],
)
def test_time_is_shown_relative_to_now(then, words):
    assert relative_time(round(then * 1000), at(2026, 5, 15, 12, 0)) == words


@pytest.mark.parametrize("then", [None, 10**18, -(10**18)])
def test_invalid_time_is_not_shown(then):
    assert relative_time(then, at(2026, 5, 15)) == ""


def test_cost_is_shown_with_significant_digits():
    given = ((None, 0), (0, 0), (0.5, 0), (0.99994, 1), (1, 0), (12.345, 2))
    assert [format_cost(*one) for one in given] == [
        *("", "$0.00", "$0.5000", "at least $0.9999", "$1.00", "at least $12.35")
    ]


def test_casts_are_searched_by_words_in_all_fields_or_in_one_field(tmp_path):
    def entry(id_, **fields):
        return CastEntry(id_, tmp_path / id_, **fields)

    entries = [
        entry("2026-a", name="First", request="the rain", loadout="Essay", tags=("wet",), status="complete"),
        entry("2026-b", request="the first sun", loadout="Review", status="failed", failure="no agent"),
        entry("2026-c", note="rain again", verdict="bad", status="complete", warnings=("odd",)),
    ]

    def ids(query):
        return "".join(cast.id[-1] for cast in search_casts(entries, query))

    assert ids("") == "abc"
    assert ids("RAIN") == "ac"
    assert ids("rain complete") == "ac"
    assert ids("rain essay") == "a"
    assert ids("first") == "ab"
    assert (ids("name:first"), ids("request:first")) == ("a", "b")
    assert (ids("loadout:ess"), ids("tag:wet"), ids("status:odd")) == ("a", "a", "c")
    assert (ids("agent"), ids("bad"), ids("2026-b"), ids("nothing")) == ("b", "c", "b", "")
    assert ids("other:first") == ""
