"""What a label may say, and what is left of one when some of it is changed."""

from __future__ import annotations

import pytest

from materia_nb.engine.conversation import Label, as_listed, relabelled
from materia_nb.errors import MateriaError

NOTHING = {"name": None, "tag": (), "untag": (), "note": None, "verdict": None, "by": "Ana"}
BEFORE = Label("first", ("rain", "short"), "Read it.", "good", "Ben")


def changed(before=BEFORE, **said):
    return relabelled(before, **{**NOTHING, **said})


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
def test_what_cannot_be_said_is_refused_with_a_hint(said):
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
def test_what_is_just_within_the_bounds_is_kept(said):
    (name,) = said
    wanted = {**BEFORE._asdict(), "by": "Ana"}
    wanted["tags" if name == "tag" else name] = (*BEFORE.tags, *said[name]) if name == "tag" else said[name]
    assert changed(**said)._asdict() == wanted


def test_an_empty_text_takes_away_and_spaces_around_count_for_nothing():
    assert changed(name=" ", note="", verdict=" ", untag="rain, short", by=" ") == Label(by="person")
    assert changed(name=" a ", note=" b ", verdict=" bad ", tag=" c,short d ", untag=[" rain "]) == Label(
        "a", ("short", "c", "d"), "b", "bad", "Ana"
    )


@pytest.mark.parametrize("given", [None, [], {"tags": "rain", "note": 3}, {"name": None, "tags": {}}])
def test_a_listed_label_that_is_none_says_nothing(given):
    assert as_listed(given) == Label()
    assert as_listed({"tags": ["a", 1, None], "note": "b"}) == Label(tags=("a",), note="b")


def test_a_listed_label_tells_the_beginning_of_a_long_note_and_nothing_that_was_not_said():
    assert as_listed(BEFORE.listed()) == BEFORE._replace(by="")
    assert Label(note="x" * 201).listed() == {"note": "x" * 200}


def test_a_label_in_words_says_who_said_it_unless_that_was_just_a_person():
    told = "named first; judged good; tagged rain, short; note: Read it."
    assert BEFORE.words == f"{told} (by Ben)"
    assert [BEFORE._replace(by=by).words for by in ("", "person")] == [told, told]
    assert Label(note="a\n b").words == "note: a b"
    assert Label().words == ""
