"""The JSON Schema of a config file, for editors."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pydantic.json_schema import models_json_schema

from materia_nb.file_io import replace_file
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.fields import Model, TwoSpellings
from materia_nb.loadout.models import MODELS, AgentMateria, Config, Loadout, UtilityMateria

_MERGED: Final = (Config, Loadout, AgentMateria, UtilityMateria)
"""Objects that a file may hold in part, since a lower layer has the rest (R33)."""
_IS_UTILITY: Final = {
    "anyOf": [
        {"properties": {"type": {"const": "utility"}}, "required": ["type"]},
        {"not": {"required": ["type"]}, "anyOf": [{"required": ["command"]}, {"required": ["script"]}]},
    ]
}
"""The schema of a materia that is a utility, as ``materia_kind`` decides."""


def field_schemas() -> dict[str, Any]:
    """Return the JSON Schemas of all objects by their class names, for values as :func:`check_config` accepts them."""
    _, schema_map = models_json_schema([(model, "validation") for model in MODELS])
    definitions: dict[str, Any] = schema_map["$defs"]
    for model in MODELS:
        for field in definitions[model.__name__]["properties"].values():
            field.pop("title", None)
    for model in _MERGED:
        _accept_null(definitions[model.__name__])
    return definitions


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of a config file, for editors, which underline a problem at its field.

    It is strict: a field that it does not know is an error, unless it begins with ``x-`` (a hint of ``check``, R28). What a
    loadout, a materia or the config must have may be in a layer below (R33), so that it may be missing here. Fields
    without effect are marked as deprecated.
    """
    definitions = field_schemas()
    for model in MODELS:
        _close(model, definitions[model.__name__])
    agent, utility = ({"$ref": f"#/$defs/{model.__name__}"} for model in (AgentMateria, UtilityMateria))
    config = definitions.pop(Config.__name__)
    loadout = {"$ref": f"#/$defs/{Loadout.__name__}"}
    materia = {"if": _IS_UTILITY, "then": utility, "else": agent}
    config["properties"]["loadouts"]["additionalProperties"] = {"anyOf": [loadout, _NULL]}
    config["properties"]["materia"]["additionalProperties"] = {"if": _NULL, "else": materia}
    config["title"] = "Loadouts and materia"
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **config, "$defs": definitions}
    pointed: dict[str, Any] = _pointed(schema)
    return pointed


def _close(model: type[Model], schema: dict[str, Any]) -> None:
    """Forbid other fields than those of the class, and list the fields that an object must have itself."""
    rows = model.rows
    if issubclass(model, TwoSpellings):
        schema["properties"] |= {row.name: schema["properties"][name] for name, row in rows.items()}
    if model not in _MERGED:
        needed = [name for name, row in rows.items() if row.required or row.needed]
        schema |= {"required": needed} if needed else {}
    schema |= {"additionalProperties": False, "patternProperties": {"^x-": {}}}


def _pointed(schema: Any) -> Any:
    """Return a schema with conditions instead of alternatives, so that an error names the field inside the chosen branch.

    For ``anyOf`` a validator only reports that the whole object fits no alternative.
    """
    if isinstance(schema, list):
        return [_pointed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    branches = {key: value if key == "if" else _pointed(value) for key, value in schema.items()}
    kinds = [inner for kind in branches.get("anyOf", ()) for inner in kind.get("anyOf", (kind,))]
    inside = [kind for kind in kinds if _type_of(kind) in {"object", "array"}]
    if not inside:
        return branches
    del branches["anyOf"]
    flat = [kind for kind in kinds if kind not in inside and kind != _NULL]
    chain: Any = inside.pop() if not flat else flat[0] if len(flat) == 1 else {"anyOf": flat}
    for kind in inside:
        chain = {"if": {"type": _type_of(kind)}, "then": kind, "else": chain}
    if _NULL in kinds:
        chain = {"if": _NULL, "else": chain}
    return {**branches, "allOf": [chain]}


def _type_of(kind: dict[str, Any]) -> Any:
    return "object" if "$ref" in kind else kind.get("type")


_NULL: Final = {"type": "null"}


def _accept_null(schema: dict[str, Any]) -> None:
    """Allow null, which removes a field of a lower layer (R33), and require no field."""
    schema["properties"] = {name: _or_null(field) for name, field in schema["properties"].items()}
    schema.pop("required", None)


def _or_null(field: dict[str, JSON]) -> dict[str, JSON]:
    """Return the schema of a field that may be null; its description stays outside the alternatives."""
    outer: dict[str, JSON] = {
        key: field[key] for key in ("default", "description", "deprecated") if key in field
    }
    kinds = [kind for kind in field.get("anyOf", [field]) if kind != _NULL]
    inner = [{key: value for key, value in kind.items() if key not in outer} for kind in kinds]
    return {"anyOf": [*inner, _NULL], **outer} if any(inner) else outer


def main(arguments: Sequence[str]) -> int:
    """Print the schema, or write it to the file of ``--output``; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="materia schema", description="Print the JSON Schema of a config, for editors."
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write it to FILE instead of printing it")
    output = parser.parse_args(arguments).output
    text = json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"
    if output is None:
        sys.stdout.write(text)
        return 0
    try:
        replace_file(output, text.encode())
    except OSError as error:
        sys.stderr.write(f"{output}: {error.strerror}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
