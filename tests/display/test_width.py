"""Test that text tables are at most 88 columns wide, so that no page breaks their words."""

from __future__ import annotations

import pytest

from materia_nb.cast.views.status import steps_view
from materia_nb.display.text import WIDTH, display_width, graph_text, table


def widest(text):
    return max(map(display_width, text.splitlines()))


@pytest.mark.parametrize("word", ["word ", "wordwithoutend", "広い", "\u05d0\u05d1 "])
def test_long_cells_are_wrapped(word):
    table_text = table([(1, word * 40, word * 9, "x")], ("n", "a", "b", "c"))
    assert widest(table_text) <= WIDTH
    assert table_text.splitlines()[2].startswith("1  ")


def test_wrapping_preserves_all_text():
    names = [f"w{n}" for n in range(80)]
    table_text = table([("a", " ".join(names), "z")], ("k", "text", "end"))
    assert [word for word in table_text.split() if word in names] == names


def test_number_and_unit_stay_on_one_line():
    rows = [("word " * 9, "word " * 9, "word " * 9, "0.01 s", "its output in step 2")]
    assert "0.01 s" in table(rows, ("a", "b", "c", "took", "pinned to"))


def test_narrow_tables_are_not_wrapped():
    assert table([("a", "b")], ("k", "v")) == "k  v\n─  ─\na  b"


@pytest.mark.parametrize("loadout", ["Full-Auto", "Planning-Consult", "Hojo-Consult"])
def test_text_graph_of_every_bundled_loadout_fits_the_width(bench, loadout):
    rows = graph_text(bench.graph(loadout)).split("\n\n")[1]
    assert widest(rows) <= WIDTH


def test_step_table_fits_the_width_and_shows_durations(cast):
    cast.run()
    view = steps_view(cast.now)
    assert widest(repr(view)) <= WIDTH
    assert view.rows[0][-1].endswith(" s")
    assert len({len(row[-1]) for row in view.rows}) == 1
