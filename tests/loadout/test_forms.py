"""Forms from the field models: each field has an input, what it shows is what it takes, and nothing else is taken."""

from __future__ import annotations

import pytest

from materia_nb.errors import MateriaError
from materia_nb.loadout.json_schema import form_of, read_field
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
    return next(one for one in form_of(model, raw, KNOWN) if one.name == name)


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
def test_the_input_follows_from_the_model(model, name, input_):
    assert field(model, {}, name).input == input_


def test_what_matters_is_first_and_what_other_tools_keep_is_shown_only_where_it_is_written():
    assert [one.name for one in form_of(EdgeFields, {})] == ["when", "to", "maxTraversals"]
    assert [one.name for one in form_of(AgentMateria, {})][:3] == ["prompt", "model", "tools"]
    assert "lockState" not in [one.name for one in form_of(Loadout, {})]
    assert "lockState" in [one.name for one in form_of(Loadout, {"lockState": "locked"})]
    assert "sockets" not in [one.name for one in form_of(Loadout, {"sockets": {}})], "parts of their own"


def test_a_choice_offers_to_be_left_out_and_shows_what_it_does_not_know():
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
def test_what_a_field_shows_is_read_as_the_value_that_it_is(model, name, value):
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
def test_what_no_value_is_is_refused(model, name, typed):
    with pytest.raises(MateriaError):
        read_field(model, name, typed)


@pytest.mark.parametrize("name", ["maxTraversals", "to", "when"])
def test_an_emptied_field_is_left_out(name):
    assert read_field(EdgeFields, name, "  ") is None


def test_what_is_told_of_the_cast_is_inherited_a_word_or_an_object():
    def context(raw):
        return next(one for one in form_of(Loadout, raw) if one.name == "castContext")

    field = context({})
    assert (field.label, field.input, field.value) == ("context", "choice", "")
    assert field.options == (("", "inherited"), ("full", "full"), ("request", "request"), ("none", "none"))
    assert context({"castContext": {"state": False}}).input == "json"
    assert read_field(Loadout, "castContext", "none") == "none"
    assert read_field(Loadout, "castContext", "{state: false}") == {"state": False}
    with pytest.raises(MateriaError, match="context cannot be 'all'"):
        read_field(Loadout, "castContext", "all")
