"""Test the side fields of the sparse protocol: events (R39) and the working directory."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from materia_nb.handoff import protocol, requirements_of
from materia_nb.handoff.base import BASE, EVENT_SEVERITIES, Scope
from materia_nb.handoff.sparse import MAX_EXPORT_BYTES, MAX_EXPORTS
from materia_nb.loadout import build_graph
from protocol_helpers import OTHER_PROTOCOLS

NOTE = {"type": "note", "severity": "warning", "message": "m", "source": "s", "payload": {"a": [1]}}


def read(answer, **socket):
    resolved = build_graph(h.one_config(parse="json", **socket)).sockets["Socket-1"]
    return protocol("sparse").read(json.dumps(answer), requirements_of(resolved))


def paths(answer, **socket):
    return [issue.path for issue in read(answer, **socket).issues]


def test_r39_side_events_are_removed_before_the_object_is_checked():
    reading = read({"context": "c", "event": [NOTE, {"type": "x"}]})
    assert (reading.error, reading.value, reading.events) == (None, {"context": "c"}, (NOTE, {"type": "x"}))
    assert read({"event": []}).accepted


@pytest.mark.parametrize("event", [None, {}, {"type": "x"}, "x", 1])
def test_r39_event_field_must_be_a_list(event):
    assert paths({"event": event}) == ["$.event"]


@pytest.mark.parametrize(
    "event, where",
    [
        ("x", [""]),
        ({}, [".type"]),
        ({"type": " "}, [".type"]),
        ({"type": 1, "severity": "loud"}, [".type", ".severity"]),
        ({"type": "x", "severity": None}, [".severity"]),
        ({"type": "x", "message": 1, "source": []}, [".message", ".source"]),
        ({"type": "x", "extra": 1}, [".extra"]),
    ],
)
def test_r39_every_issue_of_an_event_has_its_path(event, where):
    assert paths({"event": [{"type": "fine"}, event]}) == [f"$.event[1]{path}" for path in where]


def test_r39_output_with_an_invalid_event_is_refused():
    reading = read({"event": [{}], "other": 1})
    assert {issue.path for issue in reading.issues} == {"$.event[0].type", "$.other"}
    assert reading.events == ()


def test_r39_assignment_cannot_read_the_event_field():
    assert paths({"event": [NOTE]}, assign={"e": "$.event"}) == ["$.event"]


@pytest.mark.parametrize("name", OTHER_PROTOCOLS)
def test_r39_protocols_other_than_sparse_have_no_events(name):
    resolved = build_graph(h.one_config(parse="json", handoff=name)).sockets["Socket-1"]
    assert protocol(name).read(json.dumps({"event": [NOTE]}), requirements_of(resolved)).events == ()


# -- where to work ----------------------------------------------------------------------------


def to(cwd, **more):
    return {"scopeTransition": {"kind": "replace", "scope": {"id": "side", "cwd": cwd, **more}}}


def of_utility(output, kind="utility"):
    """Return the parsed output of a utility or an agent."""
    materia = h.python("pass", parse="json") if kind == "utility" else h.agent()
    socket = build_graph(h.one_config(materia, **({} if kind == "utility" else {"parse": "json"})))
    return protocol("sparse").read(json.dumps(output), requirements_of(socket.sockets["Socket-1"]))


def refused(output, kind="utility"):
    return [issue.path for issue in of_utility(output, kind).issues]


def test_scope_is_removed_from_the_output_and_its_missing_parts_are_empty():
    exports = {"branch": {"producer": "p", "value": None}}
    reading = of_utility({"context": "c", **to("side dir", state=[1], exports=exports)})
    assert (reading.value, reading.scope) == ({"context": "c"}, Scope("side", "side dir", [1], exports))
    assert of_utility(to("b")).scope == Scope("side", "b", None, {})
    assert of_utility({"scopeTransition": {"kind": "base"}}).scope == BASE
    assert of_utility({"context": "c"}).scope is None


@pytest.mark.parametrize(
    "given, paths",
    [
        ("x", ["$.scopeTransition"]),
        ({"kind": "other"}, ["$.scopeTransition"]),
        ({"kind": "base", "scope": {}}, ["$.scopeTransition.scope"]),
        ({"kind": "replace"}, ["$.scopeTransition.scope"]),
        ({"kind": "replace", "scope": {"id": " ", "cwd": 1}}, [f"$.scopeTransition.scope.{name}" for name in ("id", "cwd")]),
        ({"kind": "replace", "scope": {"id": "a", "cwd": "b", "more": 1}}, ["$.scopeTransition.scope.more"]),
    ],
)  # fmt: skip
def test_invalid_scope_transition_is_refused_and_each_invalid_path_is_named(given, paths):
    assert refused({"scopeTransition": given}) == paths


@pytest.mark.parametrize(
    "exports, paths",
    [
        ([], [""]),
        ({"a": {"value": 1}}, [".a"]),
        ({"a": {"producer": "", "value": 1}}, [".a.producer"]),
        ({"a": {"producer": "p", "value": "x" * MAX_EXPORT_BYTES}}, [".a"]),
        ({str(n): {"producer": "p", "value": n} for n in range(MAX_EXPORTS + 1)}, [""]),
        ({str(n): {"producer": "p", "value": "x" * 60_000} for n in range(5)}, [""]),
    ],
)
def test_exports_above_the_maximum_size_are_refused(exports, paths):
    assert refused(to("b", exports=exports)) == [f"$.scopeTransition.scope.exports{path}" for path in paths]


def test_only_utilities_change_the_scope():
    assert refused(to("b"), kind="agent") == ["$.scopeTransition"]


def test_exports_of_exactly_the_maximum_size_are_accepted():
    around = len('{"producer":"p","value":""}')
    longest = {"producer": "p", "value": "x" * (MAX_EXPORT_BYTES - around)}
    assert refused(to("b", exports={str(n): longest for n in range(4)})) == []
    assert refused(to("b", exports={"a": {**longest, "value": longest["value"] + "x"}})) == [
        "$.scopeTransition.scope.exports.a"
    ]
    many = {str(n): {"producer": "p", "value": n} for n in range(MAX_EXPORTS)}
    assert refused(to("b", exports=many)) == []


@pytest.mark.parametrize("severity", EVENT_SEVERITIES)
def test_r39_severity_of_an_event_is_kept(severity):
    assert read({"event": [{"type": "x", "severity": severity}]}).events[0]["severity"] == severity
