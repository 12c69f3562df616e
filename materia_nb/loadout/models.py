"""The format of a config, as ``format.toml`` describes it: the kinds of values (R28), models that check it, its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Iterator as Iterating
from dataclasses import dataclass, replace
from keyword import iskeyword
from math import ceil
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, create_model
from pydantic.alias_generators import to_camel, to_snake
from pydantic.json_schema import models_json_schema
from pydantic_core import CoreSchema, core_schema

from materia_nb.errors import did_you_mean, one_of_words
from materia_nb.file_io import read_own_table
from materia_nb.jsonvalue import JSON, split_path
from materia_nb.loadout import graph
from materia_nb.loadout.facts import (
    BUILT_IN,
    TOOL_SCOPES,
    WORK_ITEMS,
    Object,
    as_list,
    as_object,
    is_number,
    is_object,
    is_text,
    script_file,
    whole,
)
from materia_nb.loadout.graph import CAST_CONTEXTS, ITEM_CONTEXTS, LEAST_PROMPT_CHARACTERS, PROMPT_FORMS
from materia_nb.loadout.report import INVALID_CONFIG, brief
from materia_nb.loadout.vocabulary import (
    CONDITIONS,
    DEFAULT_HANDOFF,
    FILE_CHOICES,
    OF_OUTPUTS,
    OWN_PROTOCOLS,
    source_fault,
)


class Fault(ValueError):
    """What is wrong with a value (None: that it is there), what to do, and where inside the value, such as ``[1]``."""

    def __init__(self, what: str | None = None, hint: str | None = None, at: str = "") -> None:
        super().__init__()  # without the words: pydantic cannot take half a surrogate pair
        self.what, self.hint, self.at = what, hint, at


@dataclass(frozen=True, slots=True, eq=False)
class ValueKind:
    """A kind of value: what is accepted, the JSON Schema that says so, and what to write instead of anything else.

    ``accepts`` may raise a :class:`Fault` that says more than that the value is wrong. ``shape`` is what its fields say
    of it in words, if they say nothing else. ``counts`` turns an accepted value into what it counts as; without it, it
    counts as it is written.
    """

    accepts: Callable[[JSON], bool]
    schema: Mapping[str, JSON]
    shape: str = "text"
    write: str | None = None
    counts: Callable[[Any], JSON] | None = None

    def check(self, value: JSON) -> JSON:
        """Return what the value counts as; raises Fault when it is of another kind."""
        if not self.accepts(value):
            raise Fault(hint=self.write)
        return value if self.counts is None else self.counts(value)

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, JSON]:
        return dict(self.schema)


def _word_of(*words: str) -> ValueKind:
    """Make the kind of a field that takes one of a few words."""
    advice = " or ".join(f'"{word}"' for word in words)
    if len(words) > 2:
        advice = "one of: " + ", ".join(f'"{word}"' for word in words)
    return ValueKind(
        lambda value: isinstance(value, str) and value in words,
        {"enum": [*words]},
        one_of_words(words),
        f"write {advice}",
    )


_LONGEST_MS: Final = 2**31 - 1  # about 24 days: beyond it, waiting overflows on some systems
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_A_PATH: Final = 'write a path in quotes, such as "$.context" or "state.plan"'
_SCOPES: Final = 'write "none", "readOnly", "coding" or a list of tool names'
_CUSTOM: Final = {
    "type": "object",
    "properties": {"type": {"const": "custom"}, "tools": _TEXTS},
    "required": ["type", "tools"],
}


def _is_source(value: JSON) -> bool:
    fault = source_fault(value) if is_text(value) else None
    if fault is not None:
        raise Fault(*fault)
    return is_text(value)


def _are_texts(value: JSON) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _are_texts_by_name(value: JSON) -> bool:
    return is_object(value) and all(isinstance(one, str) for one in value.values())


def _is_day(value: JSON) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None


def _whole_from(least: int) -> ValueKind:
    def accepts(value: JSON) -> bool:
        number = whole(value)
        return number is not None and number >= least

    shape = f"whole number from {least:,} up"
    advice = f"write a whole number from {least} up, or leave it out"
    return ValueKind(accepts, {"type": "integer", "minimum": least}, shape, advice, whole)


def _number_from_0(shape: str, write: str | None = None) -> ValueKind:
    return ValueKind(
        lambda value: is_number(value) and value >= 0, {"type": "number", "minimum": 0}, shape, write
    )


_FLAG: Final = {"type": "boolean"}
_CONTEXT_PARTS: Final[Mapping[str, tuple[Callable[[JSON], bool], Mapping[str, JSON], str]]] = {
    "request": (lambda value: isinstance(value, bool), _FLAG, "true or false"),
    "items": (
        lambda value: isinstance(value, str) and value in ITEM_CONTEXTS,
        {"enum": [*ITEM_CONTEXTS]},
        '"whole", "titles" or "none"',
    ),
    "state": (
        lambda value: isinstance(value, bool) or _are_texts(value),
        {"anyOf": [_FLAG, _TEXTS]},
        'true, false or a list of paths such as ["plan.name"]',
    ),
    "handoffs": (
        lambda value: isinstance(value, bool) or (whole(value) or 0) > 0,
        {"anyOf": [_FLAG, {"type": "integer", "minimum": 1}]},
        "true, false or a number of characters",
    ),
    "previous": (lambda value: isinstance(value, bool), _FLAG, "true or false"),
}
"""What an object of ``castContext`` may say: what is accepted, its schema, and what to write (R50)."""


def is_context(value: JSON) -> bool:
    """Whether it is a ``castContext``; raises :class:`Fault` where an object has a wrong field."""
    if not is_object(value):
        return isinstance(value, str) and value in CAST_CONTEXTS
    for name, given in value.items():
        if name not in _CONTEXT_PARTS:
            what = f"there is no part {name!r} of what an agent is told"
            raise Fault(what, f"write one of {', '.join(_CONTEXT_PARTS)}", f".{name}")
        accepts, _, write = _CONTEXT_PARTS[name]
        if not accepts(given):
            raise Fault(hint=f"write {write}", at=f".{name}")
    return True


def _is_part(part: JSON) -> bool:
    if isinstance(part, str) and "\0" in part:
        raise Fault(f"{brief(part)} holds a NUL character", "no program can be given one: remove it")
    return isinstance(part, str) and bool(part)


def _are_tools(tools: JSON) -> bool:
    custom = is_object(tools) and tools.get("type") == "custom"
    names = tools.get("tools") if custom else tools
    if isinstance(names, list) and all(is_text(name) for name in names):
        return True
    if names in TOOL_SCOPES and not custom:
        return True
    meant = f" ({did_you_mean(names, TOOL_SCOPES)})" if isinstance(names, str) else ""
    raise Fault(f"tools is {brief(names)}", _SCOPES + meant, ".tools" if custom else "")


CONTEXT_SHAPE: Final = "full, request, none, or an object"
_CONTEXT_SCHEMA: Final[Mapping[str, JSON]] = {
    "anyOf": [
        {"enum": [*CAST_CONTEXTS]},
        {
            "type": "object",
            "properties": {name: dict(schema) for name, (_, schema, _) in _CONTEXT_PARTS.items()},
            "additionalProperties": False,
        },
    ]
}
VALUE_KINDS: Final[Mapping[str, ValueKind]] = {
    # Of something in the config: the graph checks whether it is there.
    "Reference": ValueKind(lambda _: True, _TEXT, "socket id or end"),
    "SomeText": ValueKind(is_text, _TEXT, write="write a name in quotes"),  # more than white space
    "Text": ValueKind(lambda value: isinstance(value, str), _TEXT, write="write text in quotes"),
    "Texts": ValueKind(_are_texts, _TEXTS, "list of texts"),
    "TextsByName": ValueKind(
        _are_texts_by_name,
        {"type": "object", "additionalProperties": _TEXT},
        "object of texts",
        'write an object of texts, such as {"NAME": "${NAME}"}',
    ),
    "Flag": ValueKind(
        lambda value: isinstance(value, bool), _FLAG, "true or false", "write true or false, without quotes"
    ),
    "Count": _whole_from(0),
    "CountFromOne": _whole_from(1),
    "PromptCharacters": _whole_from(LEAST_PROMPT_CHARACTERS),
    "Percent": _number_from_0("percent"),
    "Amount": _number_from_0("number from 0 up", "write a number from 0 up"),
    "Date": ValueKind(
        _is_day,
        {"type": "string", "format": "date"},
        "date, as 2026-11-23",
        'write a day, such as "2026-11-23"',
    ),
    "Milliseconds": ValueKind(  # a part of one counts as a whole one
        lambda value: is_number(value) and value > 0,
        {"type": "number", "exclusiveMinimum": 0},
        "milliseconds above 0",
        counts=lambda value: min(ceil(value), _LONGEST_MS),
    ),
    "Path": ValueKind(lambda value: is_text(value) and "\0" not in value, _TEXT, "path"),
    "Name": ValueKind(  # of a cursor, or of an item in the state (R12, R13)
        lambda value: is_text(value) and bool(split_path(value)),
        _TEXT,
        "name",
        "write a name, or leave it out",
    ),
    "Source": ValueKind(_is_source, _TEXT, "source", _A_PATH),  # a path, or JSONPath (R11)
    # It may have no effect, so be unreadable (R4).
    "AssignedSource": ValueKind(is_text, _TEXT, "source", _A_PATH),
    "Parse": _word_of("json", "text"),
    "When": _word_of(*CONDITIONS),
    "WhenOutput": _word_of(*OF_OUTPUTS),  # a condition that an output can meet
    "Artifacts": _word_of("outputs", "all"),
    "Files": _word_of(*FILE_CHOICES),
    "PromptForm": _word_of(*PROMPT_FORMS),
    "AgentOrUtility": _word_of("agent", "utility"),
    "WorkItems": _word_of(WORK_ITEMS),
    "ShippedUtility": _word_of("shippedUtility"),
    "Context": ValueKind(
        is_context,
        _CONTEXT_SCHEMA,
        CONTEXT_SHAPE,
        f"write {', '.join(CAST_CONTEXTS)}, or an object of {', '.join(_CONTEXT_PARTS)}",
    ),
    "Tools": ValueKind(
        _are_tools, {"anyOf": [{"enum": [*TOOL_SCOPES]}, _TEXTS, _CUSTOM]}, "scope or list of names"
    ),
    "ScriptName": ValueKind(
        lambda value: script_file(value) is not None,
        _TEXT,
        "file name",
        "write a plain file name that ends with .py, without a directory",
    ),
    "CommandPart": ValueKind(_is_part, _TEXT, write="write each part as a string that is not empty"),
}
"""The kinds by the names that the table of the format has for them."""


class Model(BaseModel):
    """An object of the config. Fields that it does not know are no business of checking (R28).

    ``words`` are its name, ``example`` is one, ``code`` that of its problems (R26), and ``rows`` are its fields by their
    names in the config, in the order in which they are documented.
    """

    words: ClassVar[str]
    example: ClassVar[str] = "{ ... }"
    code: ClassVar[str] = INVALID_CONFIG
    rows: ClassVar[Mapping[str, FieldRow]] = {}

    model_config = ConfigDict(alias_generator=to_camel, frozen=True)


class TwoSpellings(Model):
    """An object whose fields may be spelt ``like_this`` too, as a contract does."""

    model_config = ConfigDict(populate_by_name=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """One field of the config; ``format.toml`` has its attributes under the same names.

    Attributes:
        name: its name in Python.
        shape: what its value looks like, in words.
        description: what it does, in one or two sentences; ``about`` in the table.
        rules: the R-numbers that it implements.
        needed: that it must be there although it is not ``required``: the graph checks what it refers to.
        part: the model of the objects in it.
        many: that it holds a list or an object of entries.
        ignored: why it has no effect here, for fields that are accepted all the same.
        code: the code of its problems, where it is not that of its model.
        missing: what a message says when it is not there; None, that it is missing.
        write: what to write in place of a value that cannot be taken; None, its shape.
        bare: whether paths name its entries without it: ``Socket-1``, not ``sockets.Socket-1``.
        first_value: what a new object has there, where it must say something.
        label: its name on a form, where not by its name.
        unit: what stands behind it on a form.
        first: its place among the fields that a form shows first; 0 for one that is a fold away.
        prose: whether it is written on many lines.
        apart: whether it has a form or operations of its own, so that the form of its object leaves it out.
    """

    model: str
    field: str
    name: str
    shape: str
    description: str
    rules: tuple[str, ...] = ()
    required: bool = False
    part: type[Model] | None = None
    many: type | None = None
    needed: bool = False
    ignored: str | None = None
    code: str | None = None
    missing: str | None = None
    write: str | None = None
    bare: bool = False
    first_value: JSON = None
    label: str = ""
    unit: str = ""
    first: int = 0
    prose: bool = False
    apart: bool = False

    def entry(self, here: str, key: JSON) -> str:
        """Return the path of an entry of this field, whose own path is ``here``."""
        if self.bare:
            return str(key)
        return f"{here}[{key}]" if isinstance(key, int) else f"{here}.{key}"


def objects(model: type[Model], raw: Object, here: str = "") -> Iterating[tuple[type[Model], Object, str]]:
    """Yield an object of the config and, in their order, the objects inside it, each with its model and path."""
    yield model, raw, here
    for name, row in model.rows.items():
        value, source = raw.get(name), field_path(here, name)
        if row.part is None:
            continue
        entries_at = [(source, value)]
        if row.many is not None:
            entries = as_object(value).items() if row.many is dict else enumerate(as_list(value))
            entries_at = [(row.entry(source, key), one) for key, one in entries]
        for at, one in entries_at:
            if is_object(one):
                yield from objects(row.part, one, at)


def row_named(model: type[Model], name: str) -> FieldRow | None:
    """Return the field that a name in the config means, None for no field."""
    spelt = to_camel(name) if issubclass(model, TwoSpellings) else name
    return model.rows.get(name) or model.rows.get(spelt)


def field_path(here: str, name: str) -> str:
    """Return the path of a field."""
    return f"{here}.{name}" if here else name


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
    ``default`` and ``least``, how many entries it has at least, and what a :class:`FieldRow` has. A kind is one of :data:`VALUE_KINDS`,
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
    part = None if inner == "Any" or inner in VALUE_KINDS else model(inner)
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
    return VALUE_KINDS[kind].shape if kind in VALUE_KINDS else "text"


def _annotation(kind: str, part: type[Model] | None) -> Any:
    if kind.endswith("?"):
        return _annotation(kind[:-1], part) | None
    if kind.startswith("["):
        return list[_annotation(kind[1:-1], part)]  # type: ignore[misc]
    if kind.startswith("{"):
        return dict[Annotated[str, VALUE_KINDS["Reference"]], _annotation(kind[1:-1], part)]  # type: ignore[misc]
    return Annotated[Any, VALUE_KINDS[kind]] if kind in VALUE_KINDS else part or Any


_BY_NAME: Final = models_of(read_own_table(__file__, "format.toml"))
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
