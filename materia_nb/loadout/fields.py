"""Building blocks for the classes in ``models``: value types, field descriptions and the base class."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Annotated, Any, ClassVar, Final, TypeAlias, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from materia_nb.errors import did_you_mean, join_with_or
from materia_nb.jsonvalue import (
    JSON,
    Object,
    as_list,
    as_object,
    is_number,
    is_object,
    is_text,
    split_path,
    whole_number,
)
from materia_nb.loadout.graph import CAST_CONTEXTS, ITEM_CONTEXTS, MIN_PROMPT_CHARACTERS, PROMPT_FORMS
from materia_nb.loadout.report import INVALID_CONFIG, brief
from materia_nb.loadout.topology import TOOL_SCOPES, script_file
from materia_nb.loadout.vocabulary import CONDITIONS, FILE_CHOICES, OUTPUT_CONDITIONS, WORK_ITEMS, source_fault


class Fault(ValueError):
    """Raised for a value that a field does not accept.

    Attributes:
        message: the error message; None selects a general message that quotes the value.
        hint: advice on how to correct the value; None selects the advice of the field or of its value kind.
        path: the path of the invalid part inside the value, such as ``[1]``.
    """

    def __init__(self, message: str | None = None, hint: str | None = None, path: str = "") -> None:
        super().__init__()  # no message for ValueError, since pydantic cannot encode half a surrogate pair
        self.message, self.hint, self.path = message, hint, path


def _accepts_any(_value: JSON) -> bool:
    return True


@dataclass(frozen=True, slots=True, eq=False)
class ValueKind:
    """A kind of value that a field accepts, for use in ``Annotated[type, ValueKind(...)]``.

    Attributes:
        accepts: a function that returns True if a value is valid; it may raise :class:`Fault` with a specific message.
        schema: the JSON Schema for the values.
        shape: a description of the values for documentation and forms, such as ``list of strings``.
        advice: advice for invalid values; None generates the advice from ``shape``.
        convert: a function that converts a valid value into the effective value; None keeps the value unchanged.
    """

    accepts: Callable[[JSON], bool]
    schema: Mapping[str, JSON]
    shape: str = "text"
    advice: str | None = None
    convert: Callable[[Any], JSON] | None = None

    def validate(self, value: JSON) -> JSON:
        """Return the effective value.

        Raises:
            Fault: the value is invalid.
        """
        if not self.accepts(value):
            raise Fault(hint=self.advice)
        return value if self.convert is None else self.convert(value)

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> CoreSchema:
        if self.accepts is _accepts_any:
            return core_schema.any_schema()
        return core_schema.no_info_plain_validator_function(self.validate)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, JSON]:
        return dict(self.schema)


_MAX_MS: Final = 2**31 - 1  # about 24 days; longer timeouts overflow on some systems
_STRING: Final = {"type": "string"}
_STRINGS: Final = {"type": "array", "items": _STRING}
_BOOLEAN: Final = {"type": "boolean"}


def _is_bool(value: JSON) -> bool:
    return isinstance(value, bool)


def _is_string_list(value: JSON) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _choice_kind(*choices: str) -> ValueKind:
    quoted_words = join_with_or(f'"{word}"' for word in choices)
    return ValueKind(
        lambda value: isinstance(value, str) and value in choices,
        {"enum": [*choices]},
        join_with_or(choices),
        f"write {quoted_words}",
    )


def _integer_kind(minimum: int) -> ValueKind:
    def accepts(value: JSON) -> bool:
        number = whole_number(value)
        return number is not None and number >= minimum

    shape = f"whole number of at least {minimum:,}"
    advice = f"write a whole number of at least {minimum}, or remove the field"
    return ValueKind(accepts, {"type": "integer", "minimum": minimum}, shape, advice, whole_number)


def _number_from_0(shape: str, advice: str | None = None) -> ValueKind:
    schema = {"type": "number", "minimum": 0}
    return ValueKind(lambda value: is_number(value) and value >= 0, schema, shape, advice)


def _is_source(value: JSON) -> bool:
    fault = source_fault(value) if is_text(value) else None
    if fault is not None:
        raise Fault(*fault)
    return is_text(value)


def _is_date(value: JSON) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None


def _is_command_part(part: JSON) -> bool:
    if isinstance(part, str) and "\0" in part:
        raise Fault(f"{brief(part)} contains a NUL character", "remove the NUL character")
    return isinstance(part, str) and bool(part)


_SCOPE_ADVICE: Final = 'write "none", "readOnly", "coding" or a list of tool names'
_CUSTOM_TOOLS: Final = {
    "type": "object",
    "properties": {"type": {"const": "custom"}, "tools": _STRINGS},
    "required": ["type", "tools"],
}


def _is_tools(tools: JSON) -> bool:
    custom = is_object(tools) and tools.get("type") == "custom"
    names = tools.get("tools") if custom else tools
    if isinstance(names, list) and all(is_text(name) for name in names):
        return True
    if names in TOOL_SCOPES and not custom:
        return True
    suggestion = f" ({did_you_mean(names, TOOL_SCOPES)})" if isinstance(names, str) else ""
    raise Fault(f"tools cannot be {brief(names)}", _SCOPE_ADVICE + suggestion, ".tools" if custom else "")


_CONTEXT_PARTS: Final[Mapping[str, ValueKind]] = {
    "request": ValueKind(_is_bool, _BOOLEAN, "true or false"),
    "items": _choice_kind(*ITEM_CONTEXTS),
    "state": ValueKind(
        lambda value: isinstance(value, bool) or _is_string_list(value),
        {"anyOf": [_BOOLEAN, _STRINGS]},
        'true, false or a list of paths such as ["plan.name"]',
    ),
    "handoffs": ValueKind(
        lambda value: isinstance(value, bool) or (whole_number(value) or 0) > 0,
        {"anyOf": [_BOOLEAN, {"type": "integer", "minimum": 1}]},
        "true, false or a number of characters",
    ),
    "previous": ValueKind(_is_bool, _BOOLEAN, "true or false"),
}  # The fields of a `castContext` object (R50).


def check_context(value: JSON) -> bool:
    """Return True if ``value`` is valid for ``castContext``.

    Raises:
        Fault: ``value`` is an object with an unknown field or an invalid value.
    """
    if not is_object(value):
        return isinstance(value, str) and value in CAST_CONTEXTS
    for name, part in value.items():
        kind = _CONTEXT_PARTS.get(name)
        if kind is None:
            message = f"`castContext` has no field {name!r}"
            raise Fault(message, f"use {join_with_or(tuple(_CONTEXT_PARTS))}", f".{name}")
        if not kind.accepts(part):
            raise Fault(hint=kind.advice or f"write {kind.shape}", path=f".{name}")
    return True


CONTEXT_SHAPE: Final = "full, request, none, or an object"
_CONTEXT_SCHEMA: Final[Mapping[str, JSON]] = {
    "anyOf": [
        {"enum": [*CAST_CONTEXTS]},
        {
            "type": "object",
            "properties": {name: dict(kind.schema) for name, kind in _CONTEXT_PARTS.items()},
            "additionalProperties": False,
        },
    ]
}
_PATH_ADVICE: Final = 'write a path in quotes, such as "$.context" or "state.plan"'

Reference: TypeAlias = Annotated[str, ValueKind(_accepts_any, _STRING, "socket id or end")]
"""The name of another part of the config. Only ``check_graph`` checks that the part exists."""
Key: TypeAlias = Reference
"""A key of an object, which can be any string."""
NonBlankText: TypeAlias = Annotated[str, ValueKind(is_text, _STRING, advice="write a name in quotes")]
AnyText: TypeAlias = Annotated[
    str, ValueKind(lambda value: isinstance(value, str), _STRING, advice="write text in quotes")
]
Texts: TypeAlias = Annotated[list[str], ValueKind(_is_string_list, _STRINGS, "list of strings")]
TextsByName: TypeAlias = Annotated[
    dict[str, str],
    ValueKind(
        lambda value: is_object(value) and all(isinstance(entry, str) for entry in value.values()),
        {"type": "object", "additionalProperties": _STRING},
        "object with string values",
        'write an object with string values, such as {"NAME": "${NAME}"}',
    ),
]
Flag: TypeAlias = Annotated[bool, ValueKind(_is_bool, _BOOLEAN, "true or false", "write true or false, without quotes")]
Count: TypeAlias = Annotated[int, _integer_kind(0)]
PositiveCount: TypeAlias = Annotated[int, _integer_kind(1)]
PromptCharacters: TypeAlias = Annotated[int, _integer_kind(MIN_PROMPT_CHARACTERS)]
Percent: TypeAlias = Annotated[float, _number_from_0("percent")]
Amount: TypeAlias = Annotated[float, _number_from_0("number of at least 0", "write a number of at least 0")]
Date: TypeAlias = Annotated[
    str,
    ValueKind(
        _is_date, {"type": "string", "format": "date"}, "date, such as 2026-11-23", 'write a date, such as "2026-11-23"'
    ),
]
Milliseconds: TypeAlias = Annotated[
    int,
    ValueKind(
        lambda value: is_number(value) and value > 0,
        {"type": "number", "exclusiveMinimum": 0},
        "milliseconds above 0",
        convert=lambda value: min(ceil(value), _MAX_MS),
    ),
]
FilePath: TypeAlias = Annotated[str, ValueKind(lambda value: is_text(value) and "\0" not in value, _STRING, "path")]
Name: TypeAlias = Annotated[
    str,
    ValueKind(
        lambda value: is_text(value) and bool(split_path(value)), _STRING, "name", "write a name, or remove the field"
    ),
]
"""The name of a cursor or of the current item in the state (R12, R13)."""
SourcePath: TypeAlias = Annotated[str, ValueKind(_is_source, _STRING, "source", _PATH_ADVICE)]
"""The source of a value: a state path or a JSONPath expression (R11)."""
AssignedSource: TypeAlias = Annotated[str, ValueKind(is_text, _STRING, "source", _PATH_ADVICE)]
"""The source of an assignment on a socket. Invalid JSONPath is accepted, since a utility ignores the field (R4)."""
Parse: TypeAlias = Annotated[str, _choice_kind("json", "text")]
LockState: TypeAlias = Annotated[str, _choice_kind("locked", "unlocked")]
When: TypeAlias = Annotated[str, _choice_kind(*CONDITIONS)]
WhenOutput: TypeAlias = Annotated[str, _choice_kind(*OUTPUT_CONDITIONS)]
"""The condition of an advance or an exit. Conditions on failures are not allowed."""
Artifacts: TypeAlias = Annotated[str, _choice_kind("outputs", "all")]
Files: TypeAlias = Annotated[str, _choice_kind(*FILE_CHOICES)]
PromptStyle: TypeAlias = Annotated[str, _choice_kind(*PROMPT_FORMS)]
MateriaType: TypeAlias = Annotated[str, _choice_kind("agent", "utility")]
WorkItemsList: TypeAlias = Annotated[str, _choice_kind(WORK_ITEMS)]
ShippedUtility: TypeAlias = Annotated[str, _choice_kind("shippedUtility")]
Context: TypeAlias = Annotated[
    object,
    ValueKind(
        check_context,
        _CONTEXT_SCHEMA,
        CONTEXT_SHAPE,
        f"write {', '.join(CAST_CONTEXTS)}, or an object with any of {', '.join(_CONTEXT_PARTS)}",
    ),
]
Tools: TypeAlias = Annotated[
    object,
    ValueKind(_is_tools, {"anyOf": [{"enum": [*TOOL_SCOPES]}, _STRINGS, _CUSTOM_TOOLS]}, "scope or list of tool names"),
]
ScriptName: TypeAlias = Annotated[
    str,
    ValueKind(
        lambda value: script_file(value) is not None,
        _STRING,
        "file name",
        "write a plain file name that ends with .mjs or .py, without a directory",
    ),
]
CommandPart: TypeAlias = Annotated[
    str, ValueKind(_is_command_part, _STRING, advice="write each part of the command as a non-empty string")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """The description of a config field.

    Attributes:
        model: the name of the object in the documentation, such as ``Loadout``.
        field: the name of the field in the config.
        name: the name of the field in Python.
        kind: the kind of the value, or of each entry; None for objects and for values that are not checked.
        shape: a description of the value; if empty, the description of its kind.
        description: the effect of the field, in one or two sentences.
        rules: the numbers of the rules that the field implements, such as R26.
        required: True if a config without the field is invalid.
        checked_in_graph: True if the field is required, but ``check_graph`` rather than pydantic reports that it is missing.
        part: the class of the objects in the field, or None.
        container: list or dict if the field has several entries, else None.
        ignored_reason: the reason why the field has no effect; None if the field has an effect.
        code: the code of problems with the field; None selects the code of the object.
        missing_message: the message if the field is missing; None selects a general message.
        advice: the advice for an invalid value; None selects the advice of the kind.
        omitted_in_paths: True if paths of the entries omit the field name, as in ``Socket-1`` for ``sockets.Socket-1``.
        first_value: the value of a required field in a new object.
        label: the label of the field in a form; if empty, the field name.
        unit: the unit that a form shows after the value.
        order: the position of the field in the part of a form that is always visible, counting from 1; 0 if the field
            is in the part that is collapsed.
        multiline: True if a form shows a text area with several lines.
        omitted_in_form: True if the form of the object omits the field, because other forms or operations edit it.
    """

    description: str
    rules: tuple[str, ...] = ()
    model: str = ""
    field: str = ""
    name: str = ""
    kind: ValueKind | None = None
    shape: str = ""
    required: bool = False
    part: type[Model] | None = None
    container: type | None = None
    checked_in_graph: bool = False
    ignored_reason: str | None = None
    code: str | None = None
    missing_message: str | None = None
    advice: str | None = None
    omitted_in_paths: bool = False
    first_value: JSON = None
    label: str = ""
    unit: str = ""
    order: int = 0
    multiline: bool = False
    omitted_in_form: bool = False

    def entry(self, path: str, key: JSON) -> str:
        """Return the path of the entry ``key`` in this field, where ``path`` is the path of the field."""
        if self.omitted_in_paths:
            return str(key)
        return f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}"

    def __call__(self, schema: dict[str, JSON]) -> None:
        """Add the description to the JSON Schema of the field. Pydantic calls this method."""
        if schema.get("default", ...) is None:
            del schema["default"]
        schema["description"] = (
            self.description if self.ignored_reason is None else f"No effect: {self.ignored_reason}."
        )
        if self.ignored_reason is not None:
            schema["deprecated"] = True


def config_field(
    description: str,
    *rules: str,
    default: JSON = None,
    alias: str | None = None,
    min_length: int | None = None,
    **attributes: Any,
) -> Any:
    """Return a pydantic field for a config field.

    Args:
        description: the effect of the field.
        rules: the numbers of the rules that the field implements, such as R26.
        default: the effective value if the field is missing; it is mentioned in the description.
        alias: the name of the field in the config; None converts the Python name to camelCase.
        min_length: the minimum number of entries.
        attributes: other attributes of :class:`FieldRow`.
    """
    if default is not None:
        default_text = f"`{default}`" if isinstance(default, str) else str(default)
        description = f"{description} Defaults to {default_text}."
    row = FieldRow(description=description, rules=rules, **attributes)
    pydantic_default = ... if row.required else default
    return Field(default=pydantic_default, alias=alias, min_length=min_length, json_schema_extra=row)


class Model(BaseModel):
    """Base class for objects in a config. Unknown fields are accepted, and reported as hints (R28).

    Attributes:
        noun: the name of the object with an article, for messages.
        example: an example of the object in JSON.
        code: the code of problems with the object (R26).
        rows: the field descriptions by field name, in the order of the documentation.
        parts: the descriptions of the fields that contain other objects.
    """

    noun: ClassVar[str]
    example: ClassVar[str] = "{ ... }"
    code: ClassVar[str] = INVALID_CONFIG
    rows: ClassVar[Mapping[str, FieldRow]] = {}
    parts: ClassVar[tuple[FieldRow, ...]] = ()

    model_config = ConfigDict(alias_generator=to_camel, frozen=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        title = cls.__name__.removesuffix("Fields")
        rows = (_row(title, name, info) for name, info in cls.model_fields.items())
        cls.rows = {row.field: row for row in rows}
        cls.parts = tuple(row for row in cls.rows.values() if row.part is not None)


class SnakeCaseModel(Model):
    """Base class for objects whose field names may be in camelCase or in snake_case, as in the agent contract."""

    model_config = ConfigDict(populate_by_name=True)


def _row(model: str, name: str, info: FieldInfo) -> FieldRow:
    """Return the description of a field, completed from the type annotation."""
    row = info.json_schema_extra
    assert isinstance(row, FieldRow)  # noqa: S101 - every field is made by config_field()
    annotated = next((part for part in info.metadata if isinstance(part, ValueKind)), info.annotation)
    container, inner = _inner_kind(annotated)
    kind = inner if isinstance(inner, ValueKind) else None
    part = inner if isinstance(inner, type) and issubclass(inner, Model) else None
    if container is list:
        shape = "list of objects"
    elif part is not None or container is dict:
        shape = "object of targets and sources" if kind is not None and kind.shape == "source" else "object"
    else:
        shape = kind.shape if kind is not None else "text"
    shape, field = row.shape or shape, info.alias or name
    return replace(row, model=model, field=field, name=name, part=part, container=container, kind=kind, shape=shape)


def _inner_kind(kind: Any) -> tuple[type | None, Any]:
    """Return the container type of an annotation (list, dict or None) and its entries' kind, ignoring ``| None``."""
    if isinstance(kind, (ValueKind, type)):
        return None, kind
    if (metadata := getattr(kind, "__metadata__", None)) is not None:
        return None, next(part for part in metadata if isinstance(part, ValueKind))
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (list, dict):
        return origin, _inner_kind(arguments[-1])[1]
    (written_kind,) = (argument for argument in arguments if argument is not type(None))
    return _inner_kind(written_kind)


def walk_objects(model: type[Model], raw: Object, path: str = "") -> Iterator[tuple[type[Model], Object, str]]:
    """Yield an object of the config and all objects inside it, in order, each with its class and path."""
    yield model, raw, path
    for row in model.parts:
        value = raw.get(row.field)
        if not value or row.part is None:
            continue
        source = field_path(path, row.field)
        entries = [(source, value)]
        if row.container is not None:
            keyed = as_object(value).items() if row.container is dict else enumerate(as_list(value))
            entries = [(row.entry(source, key), entry) for key, entry in keyed]
        for entry_path, entry in entries:
            if isinstance(entry, dict):
                yield from walk_objects(row.part, entry, entry_path)


def find_row(model: type[Model], name: str) -> FieldRow | None:
    """Return the description of the field with this name in the config, or None if the object has no such field."""
    spelling = to_camel(name) if issubclass(model, SnakeCaseModel) else name
    return model.rows.get(name) or model.rows.get(spelling)


def field_path(path: str, name: str) -> str:
    """Return the path of the field ``name`` of the object at ``path``; the path of the config itself is empty."""
    return f"{path}.{name}" if path else name
