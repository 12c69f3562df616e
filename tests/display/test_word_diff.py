"""Test that word diffs preserve the complete text and mark only changed words."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from materia_nb.display.blocks import JsonTree, WordDiff
from materia_nb.display.escape import word_parts

SHORT = st.text("ab \n,.é", max_size=60)


@given(SHORT, SHORT)
def test_parts_of_a_word_diff_combine_into_the_old_and_new_text(a, b):
    parts = word_parts(a, b)
    assert "".join(text for sign, text in parts if sign in " -") == a
    assert "".join(text for sign, text in parts if sign in " +") == b
    assert all(text for _, text in parts)
    assert all(one[0] != other[0] for one, other in pairwise(parts))


@given(SHORT)
def test_equal_texts_have_no_differences(a):
    assert word_parts(a, a) == (((" ", a),) if a else ())


def test_only_the_changed_word_is_marked():
    before = "Draw the house.\nIt has four walls, and a door."
    assert WordDiff(before, before.replace("four", "three")).as_text().splitlines() == [
        "Draw the house.",
        "It has [-four-]{+three+} walls, and a door.",
    ]


def test_long_unchanged_text_is_shortened():
    same = "\n".join(f"line {number}" for number in range(500))
    parts = word_parts(f"{same}\nold\n{same}", f"{same}\nnew\n{same}")
    assert [sign for sign, _ in parts] == [" ", "-", "+", " "]
    assert max(len(text) for _, text in parts) < 200


def test_json_tree_shows_changed_values_and_counts_unchanged_values():
    was = {"done": 0, "items": [1, {"title": "four walls"}], "same": [1, 2]}
    now = {"done": 1, "items": [1, {"title": "three walls"}, 7], "same": [1, 2]}
    assert JsonTree(now, "state", old=was).as_text().splitlines() == [
        "state.done: [-0-]{+1+}",
        "state.items.1.title: [-four-]{+three+} walls",
        "state.items.2: {+7+}",
        "state.items: … 1 unchanged",
        "state: … 1 unchanged",
    ]
    assert "<ins" in JsonTree("<b>", old="<i>").as_html()
    assert "<b>" not in JsonTree("<b>", old="<i>").as_html()
