"""Test the JSON Schema of a config: editors accept what the package accepts, and mark invalid fields (R26, R33)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from loadout_samples import config, edge
from materia_nb.loadout import check_config, read_config
from materia_nb.loadout.json_schema import config_schema
from materia_nb.loadout.models import MODELS

HERE = Path(__file__).parents[1]
BUNDLED = HERE.parent / "materia_nb" / "loadout" / "bundled" / "default.json"
VECTORS = [json.loads(line) for line in (HERE / "vectors" / "validate.jsonl").read_text().splitlines() if line]
SCHEMA = Draft202012Validator(config_schema())


def schema_errors(document):
    return [error.json_path for error in SCHEMA.iter_errors(document)]


def test_schema_is_valid():
    Draft202012Validator.check_schema(SCHEMA.schema)
    assert "x-about" not in json.dumps(SCHEMA.schema)


def has_unknown_fields(document):
    """Return True if the config has an unknown field, which ``check`` reports only as a hint (R28)."""
    hints = check_config(document).hints
    return any(
        finding.code == "unknown-field" or "has no effect in this object" in finding.message for finding in hints
    )


GOOD = [read_config(BUNDLED), *(vector["config"] for vector in VECTORS if vector["expect"]["ok"])]


@pytest.mark.parametrize("document", [one for one in GOOD if not has_unknown_fields(one)])
def test_valid_configs_match_the_schema(document):
    assert schema_errors(document) == []


@pytest.mark.parametrize("document", [one for one in GOOD if has_unknown_fields(one)])
def test_unknown_field_violates_the_schema_and_is_a_problem_in_strict_mode(document):
    assert schema_errors(document) != []


BROKEN = [json.loads(line) for line in (HERE / "data" / "broken-configs.jsonl").read_text().splitlines()]


def valid_config(**changed):
    return {
        "loadouts": {
            "T": {
                "entry": "Socket-1",
                "sockets": {
                    "Socket-1": {"materia": "Plan", "edges": [{"when": "always", "to": "Socket-2"}]},
                    "Socket-2": {
                        "materia": "Build",
                        "parse": "json",
                        "edges": [{"when": "not_satisfied", "to": "Socket-2", "maxTraversals": 2}],
                    },
                },
                "loops": {
                    "items": {
                        "sockets": ["Socket-2"],
                        "consumes": {"from": "Socket-1"},
                        "exits": [
                            {
                                "id": "out",
                                "from": "Socket-2",
                                "condition": "satisfied",
                                "targetSocketId": "end",
                            }
                        ],
                    }
                },
            }
        },
        "materia": {
            "Plan": {"tools": "none", "prompt": "plan", "generator": True},
            "Build": {"tools": "none", "prompt": "build"},
            "Run": {"type": "utility", "command": ["true"]},
        },
    }


def with_mutation(given):
    """Return the base config with one value changed or removed."""
    document = valid_config()
    *way, last = given["at"]
    owner = document
    for key in way:
        owner = owner[key]
    if "value" in given:
        owner[last] = given["value"]
    else:
        del owner[last]
    return document


def test_config_without_mutations_matches_the_schema():
    assert schema_errors(valid_config()) == []
    assert check_config(valid_config()).strict().ok
    assert len(BROKEN) >= 40


@pytest.mark.parametrize("given", BROKEN, ids=lambda given: given["path"])
def test_schema_error_points_at_the_mutated_field(given):
    problems = check_config(with_mutation(given)).strict().problems
    assert (problems[0].source, problems[0].code) == (given["path"], given["code"])
    if given.get("schema") is False:  # what relates a field to another one, no schema can say
        return
    error = min(SCHEMA.iter_errors(with_mutation(given)), key=lambda one: one.path)
    at = given["at"] + given.get("inside", [])
    missing = "value" not in given
    assert list(error.absolute_path) == (at[:-1] if missing or error.validator == "additionalProperties" else at)
    assert not missing or f"'{at[-1]}' is a required property" in error.message
    assert error.validator != "additionalProperties" or f"'{at[-1]}'" in error.message


def test_fields_with_the_x_prefix_are_allowed():
    document = valid_config()
    document["loadouts"]["T"]["sockets"]["Socket-1"]["x-owner"] = "ada"
    assert schema_errors(document) == []
    assert check_config(document).strict().ok


def test_layer_may_contain_partial_definitions_r33():
    layer = {
        "$schema": "./schema.json",
        "materia": {"Build": {"model": "x", "prompt": None}},
        "loadouts": {"T": {}, "Gone": None},
    }
    assert schema_errors(layer) == []


@pytest.mark.parametrize(
    "socket, materia",
    [
        ({"edges": [edge("end", maxTraversals=0)]}, {}),
        ({"edges": [edge("end", "passed")]}, {}),
        ({"parse": "yaml"}, {}),
        ({}, {"tools": "all"}),
        ({}, {"type": "utility", "timeoutMs": 0}),
        ({}, {"type": "utility", "command": []}),
    ],
)
def test_invalid_values_violate_the_schema(socket, materia):
    document = config({"Socket-1": {"materia": "P", **socket}})
    document["materia"]["P"].update(materia)
    assert not check_config(document).ok
    assert schema_errors(document) != []


def test_each_field_has_a_description_and_ignored_fields_are_marked():
    models = {"Config": SCHEMA.schema, **SCHEMA.schema["$defs"]}
    definitions = {name.removesuffix("Fields"): one for name, one in models.items()}
    for row in [row for model in MODELS for row in model.rows.values()]:
        said = definitions[row.model]["properties"][row.field]
        assert said["description"].endswith(".")
        assert said.get("deprecated", False) is (row.ignored_reason is not None)


def test_config_may_name_its_schema():
    document = {"$schema": "./schema.json", **config({"Socket-1": {"materia": "P"}})}
    report = check_config(document)
    assert report.ok
    assert [hint.source for hint in report.hints if hint.code == "unknown-field"] == []


def test_fields_of_the_reference_engine_are_known():
    written = {
        "piMateria": {"schemaVersion": 2, "migrations": []},
        "defaultLoadoutId": "default:ask",
        "defaultSaveTarget": "user",
        "roleGeneration": {"enabled": True},
        "webui": {"port": 7331},
        "central": {"apiUrl": "https://central.example", "requestTimeoutMs": 1000},
        "questDefaultLoadoutId": None,
    }
    report = check_config(valid_config() | written).strict()
    assert report.ok
    assert not {hint.source for hint in report.hints} & written.keys()
