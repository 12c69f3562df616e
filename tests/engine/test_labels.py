"""Test the validation of labels, and that an edit keeps the other parts of a label."""

from __future__ import annotations

import pytest

from materia_nb.engine.edit import changed_label
from materia_nb.engine.state import Label, label_from_summary
from materia_nb.errors import MateriaError

NOTHING = {"name": None, "tag": (), "untag": (), "note": None, "verdict": None, "by": "Ana"}
BEFORE = Label("first", ("rain", "short"), "Read it.", "good", "Ben")


def changed(before=BEFORE, **said):
    return changed_label(before, **{**NOTHING, **said})


@pytest.mark.parametrize(
    "said",
    [
        *({"name": name} for name in ("2026", "-1", "latest", "end", "a/b", "x" * 65)),
        *({"tag": [tag]} for tag in ("two words", "-a", "x" * 41)),
        {"tag": [f"t{n}" for n in range(19)]},
        {"verdict": "goood"},
        {"note": "x" * 10_001},
    ],
)
def test_invalid_label_is_refused_with_a_hint(said):
    with pytest.raises(MateriaError) as caught:
        changed(**said)
    assert caught.value.kind == "bad_label"
    assert caught.value.hint


@pytest.mark.parametrize(
    "said",
    [
        *({"name": name} for name in ("late", "é 2-b_c.d", "x" * 64)),
        *({"tag": [tag]} for tag in ("9", "a.b:c+d-e_f", "x" * 40)),
        {"tag": [f"t{n}" for n in range(18)]},
        *({"verdict": verdict} for verdict in ("bad", "unsure")),
        {"note": "x" * 10_000},
    ],
)
def test_label_with_the_maximum_length_is_accepted(said):
    (name,) = said
    wanted = {**BEFORE._asdict(), "by": "Ana"}
    wanted["tags" if name == "tag" else name] = (*BEFORE.tags, *said[name]) if name == "tag" else said[name]
    assert changed(**said)._asdict() == wanted


def test_empty_text_removes_a_label_and_surrounding_spaces_are_ignored():
    assert changed(name=" ", note="", verdict=" ", untag="rain, short", by=" ") == Label(by="person")
    assert changed(name=" a ", note=" b ", verdict=" bad ", tag=" c,short d ", untag=[" rain "]) == Label(
        "a", ("short", "c", "d"), "b", "bad", "Ana"
    )


@pytest.mark.parametrize("given", [None, [], {"tags": "rain", "note": 3}, {"name": None, "tags": {}}])
def test_missing_label_is_displayed_as_an_empty_string(given):
    assert label_from_summary(given) == Label()
    assert label_from_summary({"tags": ["a", 1, None], "note": "b"}) == Label(tags=("a",), note="b")


def test_cast_list_shows_the_beginning_of_a_long_note():
    assert label_from_summary(BEFORE.summary_json()) == BEFORE._replace(by="")
    assert Label(note="x" * 201).summary_json() == {"note": "x" * 200}


def test_label_text_names_its_author_unless_a_person_set_it():
    told = "named first; judged good; tagged rain, short; note: Read it."
    assert BEFORE.words == f"{told} (by Ben)"
    assert [BEFORE._replace(by=by).words for by in ("", "person")] == [told, told]
    assert Label(note="a\n b").words == "note: a b"
    assert Label().words == ""
