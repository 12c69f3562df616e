"""The JSON Schema of a config file, for editors, from the models of its fields."""

from __future__ import annotations

from typing import Any, Final

from pydantic.json_schema import models_json_schema

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.fields import Model, rows_of
from materia_nb.loadout.models import MODELS, AgentMateria, Config, Loadout, UtilityMateria

_MERGED: Final = (Config, Loadout, AgentMateria, UtilityMateria)
"""What a file may hold in part, since a layer below has the rest; null takes a field away (R33)."""
_IS_UTILITY: Final = {
    "anyOf": [
        {"properties": {"type": {"const": "utility"}}, "required": ["type"]},
        {"not": {"required": ["type"]}, "anyOf": [{"required": ["command"]}, {"required": ["script"]}]},
    ]
}
"""What ``materia_kind`` says."""


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of a config file: what :func:`check_config` says of its fields one by one.

    Fields that it does not know are allowed (R28), and those without effect are marked as deprecated.
    """
    _, made = models_json_schema([(model, "validation") for model in MODELS])
    definitions = made["$defs"]
    for model in MODELS:
        _in_words(model, definitions[model.__name__])
    agent, utility = ({"$ref": f"#/$defs/{model.__name__}"} for model in (AgentMateria, UtilityMateria))
    config = definitions.pop(Config.__name__)
    config["properties"]["loadouts"]["additionalProperties"] = {"$ref": f"#/$defs/{Loadout.__name__}"}
    config["properties"]["materia"]["additionalProperties"] = {
        "if": _IS_UTILITY,
        "then": utility,
        "else": agent,
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **config, "$defs": definitions}


_NULL: Final = {"type": "null"}


def _in_words(model: type[Model], made: dict[str, JSON]) -> None:
    """Say of each field what its row says, in place of what pydantic makes of it."""
    for name, row in rows_of(model).items():
        field = made["properties"][name]
        description = row.description if row.ignored is None else f"No effect: {row.ignored}."
        kept = {key: value for key, value in field.items() if key not in ("x-about", "title")}
        if kept.get("default", ...) is None:
            del kept["default"]
        if model in _MERGED:
            kept = _or_null(kept)
        idle = {} if row.ignored is None else {"deprecated": True}
        made["properties"][name] = {**kept, "description": description, **idle}
    if model in _MERGED:
        made.pop("required", None)


def _or_null(field: dict[str, JSON]) -> dict[str, JSON]:
    kinds = [kind for kind in field.get("anyOf", [field]) if kind != _NULL]
    outer = {key: field[key] for key in ("default",) if key in field}
    inner = [
        {key: value for key, value in kind.items() if key not in ("default", "description")} for kind in kinds
    ]
    return {"anyOf": [*inner, _NULL], **outer} if any(inner) else outer
