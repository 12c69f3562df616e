"""The format of a config, as ``format.toml`` describes it: models that check it, and its JSON Schema for editors."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, create_model
from pydantic.alias_generators import to_snake
from pydantic.json_schema import models_json_schema

from materia_nb.file_io import read_own
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import graph
from materia_nb.loadout.facts import BUILT_IN
from materia_nb.loadout.fields import (
    KINDS,
    FieldRow,
    Model,
    TwoSpellings,
)
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, OWN_PROTOCOLS

_MEANT: Final = {
    "<the usual protocol>": DEFAULT_HANDOFF,
    "<protocols that tell the task>": ", ".join(
        f"`{name}`" for name, one in OWN_PROTOCOLS.items() if one.tells_the_task
    ),
    "<utilities of the reference>": ", ".join(f"`{name}`" for name in BUILT_IN),
    "<lanes>": str(graph.LANES_AT_ONCE),
}
"""What stands in a description for what the code knows."""


def models_of(table: Mapping[str, Mapping[str, Any]]) -> dict[str, type[Model]]:
    """Make the models of a table: each has its fields as objects, and beside them what it says of itself.

    Of a model: ``about``, ``words``, ``example``, ``code`` (see :class:`Model`), ``base``, whose fields it has too, ``snake_case``
    where its fields may be spelt so, and ``defaults``, the class of the graph that has its defaults. Of a field: ``kind``, ``about``,
    ``default`` and ``least``, how many entries it has at least, and what a :class:`FieldRow` has. A kind is one of :data:`KINDS`,
    or another model; ``[...]`` is a list of it, ``{...}`` an object, and behind ``?`` null will do too.
    """
    made: dict[str, type[Model]] = {}

    def model(name: str) -> type[Model]:
        if name not in made:
            made[name] = _model(name, table[name], model)
        return made[name]

    for name in table:
        model(name)
    return {name: made[name] for name in table if not name.startswith("_")}


def _model(name: str, given: Mapping[str, Any], model: Callable[[str], type[Model]]) -> type[Model]:
    rows = {key: one for key, one in given.items() if isinstance(one, dict)}
    base = model(given["base"]) if "base" in given else TwoSpellings if "snake_case" in given else Model
    known = getattr(graph, given["defaults"])() if "defaults" in given else None
    title = name.removesuffix("Fields")
    fields = {key: _field(title, key, one, known, model) for key, one in rows.items()}
    annotated: dict[str, Any] = {row.name: annotation for row, annotation in fields.values()}
    made = create_model(name, __base__=base, __doc__=given["about"], __module__=__name__, **annotated)
    for key in ("words", "example", "code"):
        if key in given:
            setattr(made, key, given[key])
    inherited = {key: replace(row, model=title) for key, row in base.rows.items()}
    made.rows = inherited | {key: row for key, (row, _) in fields.items()}
    return made


def _field(
    owner: str, key: str, given: Mapping[str, Any], known: object, model: Callable[[str], type[Model]]
) -> tuple[FieldRow, tuple[Any, Any]]:
    """Make a field: its row, and its type with its default."""
    name = to_snake(key.lstrip("$"))
    name += "_" * (iskeyword(name) or hasattr(Model, name))
    kind = given.get("kind", "Any").rstrip("?")
    many = {"[": list, "{": dict}.get(kind[0])
    inner = kind.strip("[]{}?")
    part = None if inner == "Any" or inner in KINDS else model(inner)
    default = given.get("default", getattr(known, name, None))
    about = given["about"]
    for words, meant in _MEANT.items():
        about = about.replace(words, meant)
    if default is not None:
        shown = f"`{default}`" if isinstance(default, str) else str(default)
        about = f"{about.removesuffix('.')}; left out, {shown}."
    facts = {one: value for one, value in given.items() if one not in ("kind", "about", "default", "least")}
    facts = {"shape": _shape(inner, part, many), **facts, "rules": tuple(given.get("rules", ()))}
    row = FieldRow(model=owner, field=key, name=name, description=about, part=part, many=many, **facts)
    start = ... if row.required else default
    field = Field(default=start, alias=key, description=about, min_length=given.get("least"))
    return row, (_annotation(given.get("kind", "Any"), part), field)


def _shape(kind: str, part: type[Model] | None, many: type | None) -> str:
    if many is list:
        return "list of objects"
    if part is not None or many is dict:
        return "object of sources" if kind.endswith("Source") else "object"
    return KINDS[kind].shape if kind in KINDS else "text"


def _annotation(kind: str, part: type[Model] | None) -> Any:
    if kind.endswith("?"):
        return _annotation(kind[:-1], part) | None
    if kind.startswith("["):
        return list[_annotation(kind[1:-1], part)]  # type: ignore[misc]
    if kind.startswith("{"):
        return dict[Annotated[str, KINDS["Reference"]], _annotation(kind[1:-1], part)]  # type: ignore[misc]
    return Annotated[Any, KINDS[kind]] if kind in KINDS else part or Any


_BY_NAME: Final = models_of(tomllib.loads(read_own(Path(__file__).with_name("format.toml"))))
MODELS: Final = tuple(_BY_NAME.values())
"""The models of the format, in the order in which they are documented."""
Config, Loadout, AgentMateria, UtilityMateria = (
    _BY_NAME[name] for name in ("Config", "Loadout", "AgentMateria", "UtilityMateria")
)
BudgetFields, LimitsFields, PriceFields = (
    _BY_NAME[name] for name in ("BudgetFields", "LimitsFields", "PriceFields")
)
SocketFields, EdgeFields, LoopFields, ExitRouteFields = (
    _BY_NAME[name] for name in ("SocketFields", "EdgeFields", "LoopFields", "ExitRouteFields")
)
Consumes, IteratorFields = _BY_NAME["Consumes"], _BY_NAME["IteratorFields"]


def config_fields() -> list[FieldRow]:
    """Return every field of the format, model by model, for the documentation."""
    return [row for model in MODELS for row in model.rows.values()]


_MERGED: Final = (Config, Loadout, AgentMateria, UtilityMateria)
"""What a file may hold in part, since a layer below has the rest; null takes a field away (R33)."""
_IS_UTILITY: Final = {
    "anyOf": [
        {"properties": {"type": {"const": "utility"}}, "required": ["type"]},
        {"not": {"required": ["type"]}, "anyOf": [{"required": ["command"]}, {"required": ["script"]}]},
    ]
}
"""What ``materia_kind`` says."""


def field_schemas() -> dict[str, Any]:
    """Return of every model the JSON Schema of its fields one by one, as :func:`check_config` says it."""
    _, made = models_json_schema([(model, "validation") for model in MODELS])
    definitions: dict[str, Any] = made["$defs"]
    for model in MODELS:
        _in_words(model, definitions[model.__name__])
    return definitions


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of a config file, for editors: what is wrong is underlined at its field.

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
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", **config, "$defs": definitions}
    pointed: dict[str, Any] = _pointed(made)
    return pointed


def _close(model: type[Model], made: dict[str, Any]) -> None:
    """Let an object have no other fields than those of its model, and say which it needs by itself."""
    rows = model.rows
    if issubclass(model, TwoSpellings):
        made["properties"] |= {row.name: made["properties"][name] for name, row in rows.items()}
    if model not in _MERGED:
        needed = [name for name, row in rows.items() if row.required or row.needed]
        made |= {"required": needed} if needed else {}
    made |= {"additionalProperties": False, "patternProperties": {"^x-": {}}}


def _pointed(schema: Any) -> Any:
    """Write alternatives as conditions, so that an error is told of the field inside the one that is meant.

    Of ``anyOf`` a validator says that nothing of it fits, of the whole object.
    """
    if isinstance(schema, list):
        return [_pointed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: value if key == "if" else _pointed(value) for key, value in schema.items()}
    kinds = [inner for kind in made.get("anyOf", ()) for inner in kind.get("anyOf", (kind,))]
    inside = [kind for kind in kinds if _type_of(kind) in {"object", "array"}]
    if not inside:
        return made
    del made["anyOf"]
    flat = [kind for kind in kinds if kind not in inside and kind != _NULL]
    chain: Any = inside.pop() if not flat else flat[0] if len(flat) == 1 else {"anyOf": flat}
    for kind in inside:
        chain = {"if": {"type": _type_of(kind)}, "then": kind, "else": chain}
    if _NULL in kinds:
        chain = {"if": _NULL, "else": chain}
    return {**made, "allOf": [chain]}


def _type_of(kind: dict[str, Any]) -> Any:
    return "object" if "$ref" in kind else kind.get("type")


_NULL: Final = {"type": "null"}


def _in_words(model: type[Model], made: dict[str, JSON]) -> None:
    """Say of each field what its row says, in place of what pydantic makes of it."""
    for name, row in model.rows.items():
        field = made["properties"][name]
        description = row.description if row.ignored is None else f"No effect: {row.ignored}."
        kept = {key: value for key, value in field.items() if key != "title"}
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
