"""Events as the journal has them: every field is written and read again, and what is of another kind is refused."""

import copy
import dataclasses
import json

import pytest

from materia_nb.engine.conversation import ToolCall
from materia_nb.engine.events import (
    ABOUT,
    EVENTS,
    NEEDED,
    SocketComplete,
    ToolAsked,
    ToolCalled,
    fields,
    from_json,
    to_json,
)
from materia_nb.engine.state import Usage
from materia_nb.errors import MateriaError

CALL = ToolCall(id="c1", tool="bash", args={"command": "ls"}, round=2, said="look", result="a", ok=False, seconds=1.5)
VALUES = {
    "str": "text",
    "int": 3,
    "float": 0.5,
    "bool": True,
    "JSON": {"any": [1]},
    "Mapping[str, JSON]": {"a": 1},
    "tuple[str, ...]": ("a", "b"),
    "tuple[int | None, ...]": (0, None),
    "tuple[Mapping[str, JSON], ...]": ({"a": 1}, {}),
    "ToolCall": CALL,
    "tuple[ToolCall, ...]": (CALL, dataclasses.replace(CALL, id="c2", decided="once")),
    "Usage": Usage(1, 2, 0.25),
    "Decided": "always",
    "LaneEnd": "accepted",
}
WRONG = {
    "str": 1,
    "int": True,
    "float": "0.5",
    "bool": 1,
    "Mapping[str, JSON]": [],
    "tuple[str, ...]": ["a", 1],
    "tuple[int | None, ...]": [True],
    "tuple[Mapping[str, JSON], ...]": {},
    "ToolCall": {"id": "c1"},
    "tuple[ToolCall, ...]": [{}],
    "Usage": 4,
    "Decided": "perhaps",
    "LaneEnd": "gone",
}
ONE_OF_EACH = [
    (kind, name, form.removesuffix(" | None"))
    for kind in EVENTS.values()
    for name, form in kind.forms.items()
    if name not in ("ts", "transition", "about")
]


def full(kind):
    """Return an event with a value in every field, all of them such that none is left out as empty."""
    given = {name: VALUES[form] for owner, name, form in ONE_OF_EACH if owner is kind}
    if "about" in kind.forms:
        given["about"] = dict.fromkeys(ABOUT, "x")
    return kind(ts=7, **given)


@pytest.mark.parametrize("kind", EVENTS.values(), ids=list(EVENTS))
def test_an_event_is_read_as_it_was_written(kind):
    event = full(kind)
    data = json.loads(json.dumps(to_json(event)))
    assert {field.key for field in fields(kind)} <= data.keys()
    assert from_json(kind.type, data, 7) == event
    assert from_json(kind.type, {**data, "of a later form": 1}, 7) == event


@pytest.mark.parametrize("kind, name, form", [one for one in ONE_OF_EACH if one[2] in WRONG])
def test_a_field_of_another_kind_is_damage_and_leniently_not_said(kind, name, form):
    event = full(kind)
    field = next(one for one in fields(kind) if one.name == name)
    data = {**to_json(event), field.key: WRONG[form]}
    with pytest.raises(MateriaError, match=f"{field.key!r}.*wrong type"):
        from_json(kind.type, data)
    if field.default is not NEEDED:
        assert getattr(from_json(kind.type, data, lenient=True), name) == field.default


@pytest.mark.parametrize(
    "kind, field",
    [(kind, one) for kind in EVENTS.values() for one in fields(kind) if one.default is NEEDED],
)
def test_a_field_that_must_be_there_is_missed(kind, field):
    data = to_json(full(kind))
    del data[field.key]
    for lenient in (False, True):
        with pytest.raises(MateriaError, match=f"{field.key!r}.*missing"):
            from_json(kind.type, data, lenient=lenient)


def test_a_type_that_nobody_knows_is_no_event():
    assert from_json("of_a_later_form", {}) is None


def test_what_is_empty_is_left_out_and_false_and_zero_are_not():
    data = to_json(SocketComplete(about={"socket": "S"}, visit=0, parsed=False, text="", meta={}, worked=0))
    assert data == {"socket": "S", "visit": 0, "parsed": False, "text": "", "worked": 0}


def test_only_what_says_which_visit_is_meant_is_about_it():
    event = from_json("socket_complete", {"socket": "S", "itemKey": "WI-1", "text": "t"}, 1)
    assert event.about == {"socket": "S", "itemKey": "WI-1"}


@pytest.mark.parametrize(
    "given, usage",
    [
        ({"input": 1, "output": 2, "cost": 1}, Usage(1, 2, 1.0)),
        ({"input": "1", "output": True, "cost": None}, Usage(None, None, None)),
        ({"input": 1.9}, Usage(1, None, None)),
    ],
)
def test_what_is_no_number_is_not_known(given, usage):
    assert Usage.read(given) == usage


def test_a_usage_that_is_not_finite_is_none():
    with pytest.raises(ValueError, match="inf"):
        Usage.read({"input": float("inf")})


def test_calls_are_read_one_by_one():
    asked = from_json("tool_asked", {"calls": [CALL.as_json()], "worked": 0})
    assert asked == ToolAsked(calls=(CALL,), worked=0)
    assert ToolCalled.type in EVENTS


def test_an_event_takes_its_fields_and_no_others_and_does_not_change():
    with pytest.raises(TypeError, match="needs \\['call'\\]"):
        ToolCalled()
    with pytest.raises(TypeError, match="has no \\['wage'\\]"):
        SocketComplete(wage=1)
    with pytest.raises(TypeError, match="wage"):
        SocketComplete().replace(wage=1)
    event = SocketComplete(visit=1, ts=5)
    with pytest.raises(AttributeError, match="visit"):
        event.visit = 2
    assert event == SocketComplete(visit=1, ts=9) != SocketComplete(visit=2, ts=5)
    assert event.replace(visit=3) == SocketComplete(visit=3)
    assert repr(event) == "SocketComplete(visit=1)"
    assert copy.deepcopy(event) == event
    assert event.about == {}
