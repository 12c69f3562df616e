"""Generate the JSON Schema of the config format for editors, and the form fields of the designer."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pydantic.json_schema import models_json_schema

from materia_nb.jsonvalue import JSON, Object, as_list, is_object, pretty
from materia_nb.loadout.config_files import read_text
from materia_nb.loadout.design.document import design_error
from materia_nb.loadout.fields import CONTEXT_SHAPE, FieldRow, Model, SnakeCaseModel
from materia_nb.loadout.models import MODELS, AgentMateria, Config, Loadout, UtilityMateria

_PARTIAL_OBJECTS: Final = (Config, Loadout, AgentMateria, UtilityMateria)
"""Objects that a file may define partially, because lower config layers can define the other fields (R33)."""
_UTILITY_CONDITION: Final = {
    "anyOf": [
        {"properties": {"type": {"const": "utility"}}, "required": ["type"]},
        {"not": {"required": ["type"]}, "anyOf": [{"required": ["command"]}, {"required": ["script"]}]},
    ]
}  # JSON Schema that matches utilities in the same way as `materia_kind`.


def field_schemas() -> dict[str, Any]:
    """Return the JSON Schema of each model by class name. The schemas accept the same values as ``check_config``."""
    _, schema_map = models_json_schema([(model, "validation") for model in MODELS])
    definitions: dict[str, Any] = schema_map["$defs"]
    for model in MODELS:
        for field in definitions[model.__name__]["properties"].values():
            field.pop("title", None)
    for model in _PARTIAL_OBJECTS:
        _accept_null(definitions[model.__name__])
    return definitions


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of a config file, which lets editors highlight problems.

    Unknown fields are errors unless their names begin with ``x-``, whereas ``check_config`` only reports them as hints
    (R28). Required fields of a loadout, a materia or the config may be missing, because lower config layers can define
    them (R33). Fields that have no effect are marked as deprecated.
    """
    definitions = field_schemas()
    for model in MODELS:
        _forbid_unknown(model, definitions[model.__name__])
    agent, utility = ({"$ref": f"#/$defs/{model.__name__}"} for model in (AgentMateria, UtilityMateria))
    config = definitions.pop(Config.__name__)
    loadout = {"$ref": f"#/$defs/{Loadout.__name__}"}
    materia = {"if": _UTILITY_CONDITION, "then": utility, "else": agent}
    config["properties"]["loadouts"]["additionalProperties"] = {"anyOf": [loadout, _NULL]}
    config["properties"]["materia"]["additionalProperties"] = {"if": _NULL, "else": materia}
    config["title"] = "Loadouts and materia"
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **config, "$defs": definitions}
    return dict(_with_conditionals(schema))


def _forbid_unknown(model: type[Model], schema: dict[str, Any]) -> None:
    """Modify the JSON Schema of a model so that it forbids unknown fields and lists the required fields."""
    rows = model.rows
    if issubclass(model, SnakeCaseModel):
        schema["properties"] |= {row.name: schema["properties"][name] for name, row in rows.items()}
    if model not in _PARTIAL_OBJECTS:
        required_fields = [name for name, row in rows.items() if row.required or row.checked_in_graph]
        schema |= {"required": required_fields} if required_fields else {}
    schema |= {"additionalProperties": False, "patternProperties": {"^x-": {}}}


def _with_conditionals(schema: Any) -> Any:
    """Return a JSON Schema with ``anyOf`` replaced by ``if`` and ``then``, so that errors refer to the invalid field.

    With ``anyOf``, a validator only reports that the whole object matches none of the alternatives.
    """
    if isinstance(schema, list):
        return [_with_conditionals(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    branches = {key: value if key == "if" else _with_conditionals(value) for key, value in schema.items()}
    kinds = [inner for kind in branches.get("anyOf", ()) for inner in kind.get("anyOf", (kind,))]
    containers = [kind for kind in kinds if _type_keyword(kind) in {"object", "array"}]
    if not containers:
        return branches
    del branches["anyOf"]
    simple = [kind for kind in kinds if kind not in containers and kind != _NULL]
    chain: Any = containers.pop() if not simple else simple[0] if len(simple) == 1 else {"anyOf": simple}
    for kind in containers:
        chain = {"if": {"type": _type_keyword(kind)}, "then": kind, "else": chain}
    if _NULL in kinds:
        chain = {"if": _NULL, "else": chain}
    return {**branches, "allOf": [chain]}


def _type_keyword(kind: dict[str, Any]) -> Any:
    return "object" if "$ref" in kind else kind.get("type")


_NULL: Final = {"type": "null"}


def _accept_null(schema: dict[str, Any]) -> None:
    """Modify a schema so that every field is optional and nullable, since null removes the value of lower layers (R33)."""
    schema["properties"] = {name: _nullable(field) for name, field in schema["properties"].items()}
    schema.pop("required", None)


def _nullable(field: dict[str, JSON]) -> dict[str, JSON]:
    """Return the schema of a field that may also be null. The description stays outside ``anyOf``."""
    outer: dict[str, JSON] = {key: field[key] for key in ("default", "description", "deprecated") if key in field}
    kinds = [kind for kind in field.get("anyOf", [field]) if kind != _NULL]
    inner = [{key: value for key, value in kind.items() if key not in outer} for kind in kinds]
    return {"anyOf": [*inner, _NULL], **outer} if any(inner) else outer


_Input: TypeAlias = Literal["text", "prose", "choice", "flag", "number", "lines", "scope", "json", "reference"]
"""Input control: ``prose`` is a text area, ``lines`` has one entry per line, and ``scope`` is a keyword or names."""

_FOREIGN_FIELD_PREFIXES: Final = ("Reserved", "An older name")
"""Prefixes of the descriptions of fields that only other tools use."""


class FormField(NamedTuple):
    """A form field. All attributes are JSON values, so that the field can be sent to the browser.

    Attributes:
        name: the name of the field in the config.
        label: the label in the form.
        input: the input control.
        value: the displayed value, which is a boolean for a flag and a string otherwise.
        options: the values that can be selected, as pairs of value and label.
        about: a description of the effect and the default.
        shape: a description of valid values, which is displayed while the field is empty.
        unit: the unit that is displayed after the value, or "".
        required: True if a value is required.
        first: True if the field is always visible, and False if it is in the part of the form that is collapsed.
        idle: the reason why the field has no effect; "" if it has an effect.
    """

    name: str
    label: str
    input: _Input
    value: str | bool
    options: tuple[tuple[str, str], ...]
    about: str
    shape: str
    unit: str
    required: bool
    first: bool
    idle: str


def form_fields(model: type[Model], raw: Object, known: Mapping[str, Iterable[str]] | None = None) -> list[FormField]:
    """Return the form fields of an object, the most important first.

    Args:
        model: the model of the object.
        raw: the object as written.
        known: the names that can be selected, by the name of the field, such as ``model``, or by its shape, such as
            ``socket id``, ``socket id or end`` or ``materia id``.
    """
    rows = [
        row
        for name, row in model.rows.items()
        if not row.omitted_in_form
        and (name in raw or not (row.ignored_reason or row.description.startswith(_FOREIGN_FIELD_PREFIXES)))
    ]
    return [_form_field(model, row, raw, known or {}) for row in sorted(rows, key=lambda row: row.order or len(rows))]


def read_field(model: type[Model], name: str, form_value: JSON) -> JSON:
    """Return the JSON value of the input in a form field, or None if the input is empty.

    Args:
        model: the model of the object.
        name: the name of the field in the config.
        form_value: the input, which is a boolean for a flag and a string otherwise.

    Raises:
        MateriaError: the form has no such field, or the input is invalid.
    """
    row = model.rows.get(name)
    if row is None or row.omitted_in_form:
        raise design_error(f"{model.noun} has no field {name!r}", name, "use a field of the form")
    schema = _schema(model, name)
    input_ = _input_kind(row, schema, form_value)
    label = row.label or name
    if input_ == "flag":
        if not isinstance(form_value, bool):
            raise design_error(f"{label} must be true or false", name, "enter true or false")
        return True if form_value else None
    if form_value is None or (isinstance(form_value, str) and not form_value.strip()):
        return None
    if not isinstance(form_value, str):
        raise design_error(f"{label} must be text", name, "send text")
    return _parse_input(input_, form_value, row, schema)


def _form_field(model: type[Model], row: FieldRow, raw: Object, names: Mapping[str, Iterable[str]]) -> FormField:
    schema, value = _schema(model, row.field), raw.get(row.field)
    form_value = "" if value is None else value if isinstance(value, str) else pretty(value)
    input_ = _input_kind(row, schema, form_value if isinstance(value, str) or value is None else value)
    options: tuple[tuple[str, str], ...] = ()
    if input_ == "choice":
        options = tuple((word, word) for word in schema.get("enum") or _allowed_words(schema))
        if not row.required:
            options = (("", _empty_choice_label(row, schema)), *options)
        if form_value not in [word for word, _ in options]:
            options = (*options, (form_value, f"{form_value} (unknown)"))
    elif input_ == "scope":
        options = tuple((word, word) for word in _allowed_words(schema))
    elif input_ in ("reference", "text"):
        options = tuple((word, word) for word in names.get(row.field, names.get(row.shape, ())))
    if input_ == "lines" and isinstance(value, list):
        form_value = "\n".join(str(entry) for entry in value)
    if input_ == "scope" and not isinstance(value, str) and value is not None:
        tool_names = value.get("tools") if is_object(value) else value
        form_value = ", ".join(str(entry) for entry in as_list(tool_names))
    return FormField(
        row.field,
        row.label or row.field,
        input_,
        value is True if input_ == "flag" else form_value,
        options,
        row.description.replace(" Required.", "").replace("`", ""),
        row.shape,
        row.unit,
        row.required or " Required." in row.description,
        row.order > 0,
        row.ignored_reason or "",
    )


def _input_kind(row: FieldRow, schema: Mapping[str, Any], value: JSON) -> _Input:
    kind = schema.get("type")
    is_string_list = kind == "array" and schema.get("items", {}).get("type") == "string"
    is_object_input = is_object(value) or (isinstance(value, str) and value.lstrip().startswith("{"))
    kinds: tuple[tuple[_Input, bool], ...] = (
        ("json", row.shape == CONTEXT_SHAPE and is_object_input),
        ("choice", row.shape == CONTEXT_SHAPE),
        ("prose", row.multiline),
        ("reference", row.shape in ("socket id", "socket id or end", "materia id")),
        ("choice", bool(schema.get("enum"))),
        ("flag", kind == "boolean" or row.shape == "true or false"),
        ("number", kind in ("integer", "number")),
        ("scope", bool(_allowed_words(schema))),
        ("lines", is_string_list and (isinstance(value, str) or _are_single_lines(as_list(value)))),
        ("text", kind == "string" or row.shape in ("text", "colour")),
    )
    return next((input_ for input_, applies in kinds if applies), "json")


def _are_single_lines(entries: list[JSON]) -> bool:
    return all(isinstance(entry, str) and "\n" not in entry for entry in entries)


_schemas: Final = functools.cache(field_schemas)  # Only for reading, because `config_schema` changes its own copy.


def _schema(model: type[Model], name: str) -> Mapping[str, Any]:
    schema: dict[str, Any] = _schemas()[model.__name__]["properties"][name]
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    return {**schema, **kinds[0]} if len(kinds) == 1 else schema


def _allowed_words(schema: Mapping[str, Any]) -> list[str]:
    """Return the keywords of a field that accepts a keyword or a list of names."""
    kinds = schema.get("anyOf", ())
    kinds = [inner for kind in kinds for inner in kind.get("anyOf", (kind,))]
    return next((list(kind["enum"]) for kind in kinds if "enum" in kind), [])


def _empty_choice_label(row: FieldRow, schema: Mapping[str, Any]) -> str:
    if row.shape == CONTEXT_SHAPE:
        return "inherited"
    default = schema.get("default")
    if default is None and "(the default)" in row.description:
        default = "text"
    return f"default: {default}" if default is not None else "not set"


def _parse_input(input_: _Input, form_value: str, row: FieldRow, schema: Mapping[str, Any]) -> JSON:
    """Parse the non-empty input of a form field; raise MateriaError if it is invalid."""
    text, label = form_value.strip(), row.label or row.field
    if input_ == "prose":
        return form_value
    if input_ == "json" or (input_ == "lines" and text.startswith("[")):
        return read_text(form_value, where=label)  # a list with multi-line entries is entered as JSON
    if input_ == "lines":
        return [line for line in form_value.splitlines() if line.strip()]
    if input_ == "scope" and text not in _allowed_words(schema):
        return [name.strip() for name in form_value.replace("\n", ",").split(",") if name.strip()]
    value = _number_or_text(text) if input_ == "number" else text
    if input_ in ("number", "choice") and row.kind is not None and not row.kind.accepts(value):
        raise design_error(f"{label} cannot be {text!r}", row.field, f"enter {row.shape}, or leave the field empty")
    return value


def _number_or_text(text: str) -> JSON:
    try:
        return int(text) if text.isascii() and text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return text
