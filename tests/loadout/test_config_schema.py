"""The JSON Schema of a config: editors accept what is accepted here, and underline what a field cannot be (R26, R33)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from loadout_samples import config, edge
from materia_nb.loadout import check_config, config_fields, config_schema, read_config
from materia_nb.schema import main

HERE = Path(__file__).parents[1]
BUNDLED = HERE.parent / "materia_nb" / "loadout" / "bundled" / "default.json"
VECTORS = [
    json.loads(line) for line in (HERE / "vectors" / "validate.jsonl").read_text().splitlines() if line
]
SCHEMA = Draft202012Validator(config_schema())


def fine(document):
    return [error.json_path for error in SCHEMA.iter_errors(document)]


def test_it_is_a_schema():
    Draft202012Validator.check_schema(SCHEMA.schema)
    assert "x-about" not in json.dumps(SCHEMA.schema)


@pytest.mark.parametrize(
    "document",
    [read_config(BUNDLED), *(vector["config"] for vector in VECTORS if vector["expect"]["ok"])],
)
def test_what_is_accepted_here_is_accepted_by_editors(document):
    assert fine(document) == []


def test_a_layer_may_hold_a_part_r33():
    layer = {
        "$schema": "./schema.json",
        "materia": {"Build": {"model": "x", "prompt": None}},
        "loadouts": {"T": {}},
    }
    assert fine(layer) == []


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
def test_what_a_field_cannot_be_is_underlined(socket, materia):
    document = config({"Socket-1": {"materia": "P", **socket}})
    document["materia"]["P"].update(materia)
    assert not check_config(document).ok
    assert fine(document) != []


def test_each_field_is_explained_and_an_idle_one_is_marked():
    definitions = {"Config": SCHEMA.schema, **SCHEMA.schema["$defs"]}
    for row in config_fields():
        said = definitions[row.model]["properties"][row.field]
        assert said["description"].endswith(".")
        assert said.get("deprecated", False) is (row.ignored is not None)


def test_it_is_printed_or_written_to_a_file(tmp_path, capsys):
    assert main([]) == 0
    assert main(["--output", str(tmp_path / "schema.json")]) == 0
    assert (tmp_path / "schema.json").read_text(encoding="utf-8") == capsys.readouterr().out
    assert main(["--output", str(tmp_path / "none" / "schema.json")]) == 2


def test_a_config_may_name_its_schema():
    document = {"$schema": "./schema.json", **config({"Socket-1": {"materia": "P"}})}
    report = check_config(document)
    assert report.ok
    assert [hint.source for hint in report.hints if hint.code == "unknown-field"] == []
