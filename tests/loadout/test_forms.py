"""Test the forms generated from field models: each input shows and accepts exactly the values of its field."""

from __future__ import annotations

import pytest

from materia_nb.errors import MateriaError
from materia_nb.loadout.json_schema import form_fields, read_field
from materia_nb.loadout.models import (
    AgentMateria,
    Consumes,
    EdgeFields,
    ExitRouteFields,
    Loadout,
    SocketFields,
    UtilityMateria,
)

KNOWN = {"socket id or end": ["Socket-1", "end"], "materia id": ["Plan"]}


def field(model, raw, name):
    return next(field for field in form_fields(model, raw, KNOWN) if field.name == name)


@pytest.mark.parametrize(
    "model, name, input_",
    [
        (AgentMateria, "prompt", "prose"),
        (AgentMateria, "tools", "scope"),
        (AgentMateria, "multiTurn", "flag"),
        (UtilityMateria, "command", "lines"),
        (UtilityMateria, "timeoutMs", "number"),
        (SocketFields, "parse", "choice"),
        (SocketFields, "assign", "json"),
        (EdgeFields, "to", "reference"),
        (EdgeFields, "maxTraversals", "number"),
        (ExitRouteFields, "condition", "choice"),
        (Consumes, "from", "reference"),
    ],
)
def test_field_type_determines_the_kind_of_form_input(model, name, input_):
    assert field(model, {}, name).input == input_


def test_form_shows_important_fields_first_and_other_fields_only_if_set():
    assert [field.name for field in form_fields(EdgeFields, {})] == ["when", "to", "maxTraversals"]
    assert [field.name for field in form_fields(AgentMateria, {})][:3] == ["prompt", "model", "tools"]
    assert "catalogOrigin" not in [field.name for field in form_fields(Loadout, {})]
    assert "catalogOrigin" in [field.name for field in form_fields(Loadout, {"catalogOrigin": {}})]
    assert "sockets" not in [field.name for field in form_fields(Loadout, {"sockets": {}})], "parts of their own"


def test_choice_in_a_form_can_be_empty_and_displays_unknown_values():
    parse = field(SocketFields, {"parse": "yaml"}, "parse")
    assert [value for value, _ in parse.options] == ["", "json", "text", "yaml"]
    assert "" not in [value for value, _ in field(EdgeFields, {"when": "always"}, "when").options]
    assert field(EdgeFields, {}, "to").options == (("Socket-1", "Socket-1"), ("end", "end"))


@pytest.mark.parametrize(
    "model, name, value",
    [
        (AgentMateria, "prompt", "  Say {{x}}.\n\n"),
        (AgentMateria, "tools", "readOnly"),
        (AgentMateria, "tools", ["read", "grep"]),
        (AgentMateria, "multiTurn", True),
        (UtilityMateria, "command", ["python3", "-c", "print(1)"]),
        (UtilityMateria, "command", ["python3", "-c", "print(1)\nprint(2)"]),
        (UtilityMateria, "params", {"a": [1, None, "ü"]}),
        (UtilityMateria, "timeoutMs", 1500),
        (SocketFields, "parse", "json"),
        (EdgeFields, "maxTraversals", 3),
        (EdgeFields, "to", "end"),
    ],
)
def test_form_text_is_parsed_into_its_value(model, name, value):
    shown = field(model, {name: value}, name).value
    assert read_field(model, name, shown) == value


@pytest.mark.parametrize(
    "model, name, typed",
    [
        (EdgeFields, "maxTraversals", "0"),
        (EdgeFields, "maxTraversals", "2.5"),
        (EdgeFields, "maxTraversals", "1e400"),
        (EdgeFields, "maxTraversals", "three"),
        (UtilityMateria, "timeoutMs", "0"),
        (EdgeFields, "when", "sometimes"),
        (SocketFields, "assign", "{broken"),
        (SocketFields, "edges", "[]"),
        (SocketFields, "nonsense", "x"),
        (AgentMateria, "multiTurn", "yes"),
        (AgentMateria, "prompt", 5),
    ],
)
def test_invalid_form_text_is_refused(model, name, typed):
    with pytest.raises(MateriaError):
        read_field(model, name, typed)


@pytest.mark.parametrize("name", ["maxTraversals", "to", "when"])
def test_empty_form_field_is_removed(name):
    assert read_field(EdgeFields, name, "  ") is None


def test_form_for_cast_context_accepts_a_word_or_an_object():
    def context(raw):
        return next(field for field in form_fields(Loadout, raw) if field.name == "castContext")

    field = context({})
    assert (field.label, field.input, field.value) == ("context", "choice", "")
    assert field.options == (("", "inherited"), ("full", "full"), ("request", "request"), ("none", "none"))
    assert context({"castContext": {"state": False}}).input == "json"
    assert read_field(Loadout, "castContext", "none") == "none"
    assert read_field(Loadout, "castContext", "{state: false}") == {"state": False}
    with pytest.raises(MateriaError, match="context cannot be 'all'"):
        read_field(Loadout, "castContext", "all")
