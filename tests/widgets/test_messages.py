"""Test the validation of page messages; malformed messages must be refused."""

from __future__ import annotations

from typing import Any

import pytest

from materia_nb.errors import MateriaError
from materia_nb.widgets.cast_panel import NamedElement
from materia_nb.widgets.cast_surface import cast_messages
from materia_nb.widgets.design_state import design_messages
from materia_nb.widgets.explorer import casts_messages
from materia_nb.widgets.frontend import ItemRow, MessageRegistry
from materia_nb.widgets.graph_panel import canvas_messages
from materia_nb.widgets.predict import question_messages

SEEN = "cast.moment"
HOSTILE = "<img src=x onerror=window.__owned=1>"


def fields_of(content):
    return cast_messages.messages[content["kind"]].validate({"identity": SEEN, **content}, None)


def test_message_fields_are_validated_by_the_signature_of_the_handler():
    rows = [["a", "b", 0, None], ["c", "d"]]
    assert fields_of({"kind": "items", "rows": rows, "base": "x", "more": 1, "abandon": None}) == {
        "identity": SEEN,
        "rows": [ItemRow("a", "b", 0), ItemRow("c", "d")],
        "base": "x",
    }
    assert fields_of({"kind": "select", "element": {"kind": "item", "id": "2"}})["element"] == NamedElement("item", "2")
    assert fields_of({"kind": "select", "element": None}) == {"element": None}, "null is a value where one is required"


def test_message_guards_run_before_the_handler_and_may_ask_a_question():
    calls = []

    class Receiver:
        class front:  # noqa: N801
            answer = staticmethod(lambda *answer: calls.append(answer))

    def checks(receiver, identity: str) -> None:
        calls.append(identity)
        if identity == "old":
            raise MateriaError("Nothing was done.", kind="outdated")

    messages = MessageRegistry("ToTest", "Messages of a test.")

    @messages.guarded(checks)
    def delete_(receiver, from_: int = 3) -> None:
        calls.append(from_)

    @messages.question
    def size(receiver, unit: str) -> dict[str, str]:
        return {"words": f"2 {unit}"}

    assert messages.handle(Receiver(), {"kind": "delete", "identity": "new", "from": 5}) is None
    messages.handle(Receiver(), {"kind": "delete", "identity": "new"})
    with pytest.raises(MateriaError, match="Nothing"):
        messages.handle(Receiver(), {"kind": "delete", "identity": "old"})
    messages.handle(Receiver(), {"kind": "size", "unit": "m", "token": "t"})
    assert calls == ["new", 5, "new", 3, "old", ("size", "t", {"words": "2 m"})]


WRONG: dict[str, Any] = {
    "does not support": [
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
    "rows": [{"kind": "items", "rows": one} for one in (None, {}, [1], [["a"]], [["a", 3, None]], [["a", "b", -1]])],
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
    "identity": [{"kind": "step", "identity": one} for one in (None, 3, {}, "x" * 101)],
}


@pytest.mark.parametrize("where, content", [(where, one) for where, those in WRONG.items() for one in those])
def test_malformed_message_error_names_its_field(where, content):
    with pytest.raises(MateriaError, match=where) as raised:
        cast_messages.handle(None, {"identity": SEEN, **content} if isinstance(content, dict) else content)
    assert raised.value.kind == "bad_message"
    assert "reload" in raised.value.hint


def test_each_message_has_a_type_declaration():
    for registry in (cast_messages, casts_messages, canvas_messages, design_messages, question_messages):
        assert [kind for kind, message in registry.messages.items() if not message.about] == []


class Canvas:
    """A canvas that maps two element ids to parts of the graph."""

    selections = {"n:Socket-1": ("socket", "Socket-1"), "e:edge:1:Socket-1": ("edge", "edge:1:Socket-1")}  # noqa: RUF012

    def selection_at(self, element):
        return self.selections.get(element)


def test_element_ids_from_the_canvas_are_translated_into_parts_of_the_loadout():
    def read(kind, **fields):
        return canvas_messages.messages[kind].validate(fields, Canvas())

    assert read("open", element="e:edge:1:Socket-1") == {"element": ("edge", "edge:1:Socket-1")}
    assert read("open", element="n:gone") == {"element": None}
    assert read("connect", **{"from": "n:Socket-1", "to": "s:end"}) == {"from": "Socket-1", "to": "end"}
    for kind, fields in (("copy", {"ids": ["e:edge:1:Socket-1"]}), ("marquee", {"ids": ["n:gone"]})):
        with pytest.raises(MateriaError, match="no longer has a socket"):
            read(kind, **fields)
