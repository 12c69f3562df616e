"""What a page sends: what is read, what is refused, and that somebody does each message."""

from __future__ import annotations

from typing import Any

import pytest

from materia_nb.errors import MateriaError
from materia_nb.widgets.cast_panel import PLAIN_ACTS, CastPanel
from materia_nb.widgets.messages import Gesture, ItemRow, Picked, ToCanvas, ToCast, messages_of, read_message

SEEN = "cast.moment"
HOSTILE = "<img src=x onerror=window.__owned=1>"


def test_a_message_is_read_into_its_type():
    rows = [["a", "b", 0, None], ["c", "d"]]
    read = read_message(ToCast, {"kind": "items", "rows": rows, "base": "x", "more": 1, "seen": SEEN})
    assert read == ToCast.Items(rows=[ItemRow("a", "b", 0), ItemRow("c", "d")], base="x", seen=SEEN)
    assert read_message(ToCast, {"kind": "select", "element": {"kind": "item", "id": "2"}}) == ToCast.Select(
        element=Picked(kind="item", id="2")
    )
    assert read_message(ToCast, {"kind": "step", "seen": SEEN}).first == []


def test_a_message_that_was_read_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        read_message(ToCast, {"kind": "look", "step": 1}).step = 2


WRONG: dict[str, Any] = {
    "know": [
        None,
        [],
        "step",
        {},
        {"kind": ["step"]},
        {"kind": "__init__"},
        {"kind": HOSTILE},
        {"kind": "Step"},
    ],
    "step": [{"kind": "look", "step": one} for one in (-1, True, "1", 1.5, 2**53, None)] + [{"kind": "look"}],
    "rows": [
        {"kind": "items", "rows": one} for one in (None, {}, [1], [["a"]], [["a", 3, None]], [["a", "b", -1]])
    ],
    "rows.0": [
        {"kind": "items", "rows": [["a", "b", None, 1]]},
        {"kind": "items", "rows": [["", "", 0, True, 5]]},
    ],
    "text": [{"kind": "reply", "text": one} for one in (None, 3, ["a"], "half \ud800", "x" * 2_000_001)],
    "element.id": [{"kind": "select", "element": {"kind": "socket", "id": 3}}],
    "satisfied": [{"kind": "verdict", "satisfied": one, "reason": ""} for one in (None, 1, "yes")],
    "mode": [{"kind": "mode", "mode": "edit"}],
    "first": [{"kind": "step", "first": one} for one in ({}, [1], [{}] * 21)],
    "layers": [{"kind": "edit_prompt", "layers": one} for one in ([], {"task": 1})],
    "seen": [{"kind": "step", "seen": one} for one in (None, 3, {}, "x" * 101)],
}


@pytest.mark.parametrize("where, content", [(where, one) for where, those in WRONG.items() for one in those])
def test_what_is_no_message_is_refused_and_says_where(where, content):
    with pytest.raises(MateriaError, match=where) as raised:
        read_message(ToCast, {"seen": SEEN, **content} if isinstance(content, dict) else content)
    assert raised.value.kind == "bad_message"
    assert "reload" in raised.value.hint


def test_each_message_to_a_cast_is_done_by_somebody_and_described():
    acts = set(vars(CastPanel)["_act"].dispatcher.registry) - {object}
    assert set(messages_of(ToCast).values()) == acts | set(PLAIN_ACTS)
    assert acts.isdisjoint(PLAIN_ACTS)
    assert [kind for kind, one in messages_of(ToCast).items() if not one.__doc__] == []


def test_elements_of_the_canvas_are_read_as_what_they_stand_for():
    picks = {"n:Socket-1": ("socket", "Socket-1"), "e:edge:1:Socket-1": ("edge", "edge:1:Socket-1")}

    def read(kind, **fields):
        return read_message(ToCanvas, {"kind": kind, **fields}, picks)

    assert read("open", what="e:edge:1:Socket-1").what == ("edge", "edge:1:Socket-1")
    assert read("open", what="n:gone").what is None
    connect = read("connect", **{"from": "n:Socket-1", "to": "s:end"})
    assert (connect.source, connect.to) == ("Socket-1", "end")
    assert connect.as_json() == {"kind": "connect", "from": "Socket-1", "to": "end"}
    for kind, fields in (("copy", {"ids": ["e:edge:1:Socket-1"]}), ("marquee", {"ids": ["n:gone"]})):
        with pytest.raises(MateriaError, match="no socket"):
            read(kind, **fields)


def test_what_the_canvas_does_itself_is_no_gesture():
    gestures = [kind for kind, one in messages_of(ToCanvas).items() if issubclass(one, Gesture)]
    assert {"ground", "open", "break", "connect", "duplicate"} <= set(gestures)
    assert set(messages_of(ToCanvas)) - set(gestures) == {"pick", "room", "turn", "fold", "svg"}


@pytest.mark.parametrize("element", [3, ["n:Socket-1"], {"id": "n:Socket-1"}, True])
def test_an_element_is_named_by_a_text(element):
    with pytest.raises(MateriaError) as raised:
        read_message(ToCanvas, {"kind": "pick", "element": element}, {"n:Socket-1": ("socket", "Socket-1")})
    assert raised.value.kind == "bad_message"
    assert read_message(ToCanvas, {"kind": "pick", "element": None}).element is None
