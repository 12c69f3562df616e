"""Test the JSON Schema of a handoff: it accepts every valid answer and does not restrict drafts."""

from __future__ import annotations

import pytest

import cast_helpers as h
from materia_nb.agents.model_turn import is_open_schema
from materia_nb.engine.rules import Rules
from materia_nb.handoff import protocol
from materia_nb.loadout import build_graph


def socket(parse: str = "json", *, assign: dict | None = None, guarded: bool = False, **materia):
    edges = [("satisfied" if guarded else "always", "end")]
    document = h.config(
        {"Socket-1": h.at("M", *edges, parse=parse, **({"assign": assign} if assign else {}))},
        {"M": h.agent(**materia)},
    )
    return Rules(build_graph(document)).sockets["Socket-1"]


def example(schema):
    """Return the smallest value that matches a schema."""
    if not schema:
        return None
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: example(schema["properties"][name]) for name in schema.get("required", ())}
    return {"string": "text", "boolean": True, "array": [example(schema.get("items", {}))]}[schema["type"]]


@pytest.mark.parametrize(
    "fields, names, is_open",
    [
        ({}, ["context"], False),
        ({"guarded": True}, ["satisfied", "context"], False),
        ({"generator": True}, ["workItems", "context"], False),
        ({"assign": {"plan": "$.plan.name"}}, ["plan", "context"], True),
        ({"assign": {"all": "$"}}, ["context"], False),
        ({"assign": {"said": "$.context"}}, ["context"], False),
    ],
)
def test_sparse_schema_has_the_required_fields(fields, names, is_open):
    """The required fields of a socket (R7, R8, R9)."""
    here = socket(**fields)
    assert list(here.schema["properties"]) == here.schema["required"] == names
    assert here.schema["additionalProperties"] is False
    assert is_open_schema(here.schema) is is_open
    value = example(here.schema)
    if "plan" in value:
        value["plan"] = {"name": "x"}
    assert here.protocol.read(h.json.dumps(value), here.requirements).accepted


def test_text_socket_has_no_schema():
    assert socket("text").schema is None
    assert protocol("envelope").schema(socket("text").requirements) is None


def test_envelope_that_matches_the_schema_is_accepted():
    here = socket(assign={"plan": "$.plan"})
    schema = protocol("envelope").schema(here.requirements)
    assert schema["required"] == ["plan", "status", "summary", "concerns", "assumptions", "routing"]
    assert is_open_schema(schema)
    value = example({**schema, "properties": {**schema["properties"], "plan": {}}})
    value["summary"]["evidence"]["measurements"] = {"n": 1}
    reading = protocol("envelope").read(h.json.dumps(value), here.requirements)
    assert reading.accepted, reading.issues
    assert reading.satisfied is True


def test_agent_contract_is_a_block_in_prose_and_has_no_schema():
    document = h.config({"Socket-1": h.at("M", handoff="agent-contract", parse="json")}, {"M": h.agent()})
    here = Rules(build_graph(document)).sockets["Socket-1"]
    assert here.protocol.name == "agent-contract"
    assert here.schema is None
