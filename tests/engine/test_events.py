"""Test that every field of every event can be written and read, and that values of a wrong type are refused."""

import copy
import dataclasses
import json

import pytest

from materia_nb.engine.conversation import ToolCall
from materia_nb.engine.events import (
    ABOUT_FIELDS,
    EVENTS,
    FIELDS,
    REQUIRED,
    SocketComplete,
    ToolAsked,
    ToolCalled,
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
    "tuple[Mapping[str, JSON], ...]": ({"a": 1}, {}),
    "ToolCall": CALL,
    "tuple[ToolCall, ...]": (CALL, dataclasses.replace(CALL, id="c2", decided="once")),
    "Usage": Usage(1, 2, 0.25),
    "ToolDecision": "always",
    "LaneEnd": "accepted",
}
WRONG = {
    "str": 1,
    "int": True,
    "float": "0.5",
    "bool": 1,
    "Mapping[str, JSON]": [],
    "tuple[str, ...]": ["a", 1],
    "tuple[Mapping[str, JSON], ...]": {},
    "ToolCall": {"id": "c1"},
    "tuple[ToolCall, ...]": [{}],
    "Usage": 4,
    "ToolDecision": "perhaps",
    "LaneEnd": "gone",
}
ONE_OF_EACH = [
    (kind, name, form.removesuffix(" | None"))
    for kind in EVENTS.values()
    for name, form in kind.annotations.items()
    if name not in ("ts", "transition", "about")
]


def full(kind):
    """Return an event in which every field has a non-empty value."""
    given = {name: VALUES[form] for owner, name, form in ONE_OF_EACH if owner is kind}
    if "about" in kind.annotations:
        given["about"] = dict.fromkeys(ABOUT_FIELDS, "x")
    return kind(ts=7, **given)


@pytest.mark.parametrize("kind", EVENTS.values(), ids=list(EVENTS))
def test_event_is_unchanged_by_a_round_trip(kind):
    event = full(kind)
    data = json.loads(json.dumps(to_json(event)))
    assert {field.key for field in FIELDS[kind].values()} <= data.keys()
    assert from_json(kind.type, data, 7) == event
    assert from_json(kind.type, {**data, "of a later form": 1}, 7) == event


@pytest.mark.parametrize("kind, name, form", [one for one in ONE_OF_EACH if one[2] in WRONG])
def test_field_of_the_wrong_type_is_an_error_or_ignored_in_lenient_mode(kind, name, form):
    event = full(kind)
    field = next(one for one in FIELDS[kind].values() if one.name == name)
    data = {**to_json(event), field.key: WRONG[form]}
    with pytest.raises(MateriaError, match=f"{field.key!r}.*wrong type"):
        from_json(kind.type, data)
    if field.default is not REQUIRED:
        assert getattr(from_json(kind.type, data, lenient=True), name) == field.default


@pytest.mark.parametrize(
    "kind, field",
    [(kind, one) for kind in EVENTS.values() for one in FIELDS[kind].values() if one.default is REQUIRED],
)
def test_missing_required_field_is_an_error(kind, field):
    data = to_json(full(kind))
    del data[field.key]
    for lenient in (False, True):
        with pytest.raises(MateriaError, match=f"{field.key!r}.*missing"):
            from_json(kind.type, data, lenient=lenient)


def test_unknown_event_type_is_refused():
    assert from_json("of_a_later_form", {}) is None


def test_empty_fields_are_omitted_but_false_and_zero_are_not():
    data = to_json(SocketComplete(about={"socket": "S"}, visit=0, parsed=False, text="", meta={}, worked=0))
    assert data == {"socket": "S", "visit": 0, "parsed": False, "text": "", "worked": 0}


def test_about_property_of_an_event_identifies_its_socket_and_item():
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
def test_non_numeric_usage_counts_as_unknown(given, usage):
    assert Usage.read(given) == usage


def test_non_finite_usage_counts_as_unknown():
    with pytest.raises(ValueError, match="inf"):
        Usage.read({"input": float("inf")})


def test_damaged_tool_calls_are_skipped_individually():
    asked = from_json("tool_asked", {"calls": [CALL.as_json()], "worked": 0})
    assert asked == ToolAsked(calls=(CALL,), worked=0)
    assert ToolCalled.type in EVENTS


def test_events_are_frozen_and_refuse_unknown_fields():
    with pytest.raises(TypeError, match="missing fields \\['call'\\]"):
        ToolCalled()
    with pytest.raises(TypeError, match="unknown fields \\['wage'\\]"):
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
