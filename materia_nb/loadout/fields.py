"""How a field of the config is described: once, in a model, from which checking, hints, docs and schema read it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from collections.abc import Iterator as Iterating
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from materia_nb.jsonvalue import JSON, split_path
from materia_nb.loadout.facts import Object, as_list, as_object, is_number, is_object, is_text, whole
from materia_nb.loadout.graph import CAST_CONTEXTS, ITEM_CONTEXTS, LEAST_PROMPT_CHARACTERS, PROMPT_FORMS
from materia_nb.loadout.report import INVALID_CONFIG
from materia_nb.loadout.vocabulary import (
    CONDITIONS,
    FILE_CHOICES,
    OF_OUTPUTS,
    Condition,
    FilesWord,
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

    ``accepts`` may raise a :class:`Fault` that says more than that the value is wrong. ``counts`` turns an accepted
    value into what it counts as; without it, it counts as it is written.
    """

    accepts: Callable[[JSON], bool]
    schema: Mapping[str, JSON]
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


def word_of(words: tuple[str, ...]) -> ValueKind:
    """Make the kind of a field that takes one of a few words."""
    advice = " or ".join(f'"{word}"' for word in words)
    if len(words) > 2:
        advice = "one of: " + ", ".join(f'"{word}"' for word in words)
    return ValueKind(
        lambda value: isinstance(value, str) and value in words, {"enum": [*words]}, f"write {advice}"
    )


def _is_source(value: JSON) -> bool:
    fault = source_fault(value) if is_text(value) else None
    if fault is not None:
        raise Fault(*fault)
    return is_text(value)


def _are_texts(value: JSON) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _whole_from(least: int) -> ValueKind:
    def accepts(value: JSON) -> bool:
        number = whole(value)
        return number is not None and number >= least

    advice = f"write a whole number from {least} up, or leave it out"
    return ValueKind(accepts, {"type": "integer", "minimum": least}, advice, whole)


_LONGEST_MS: Final = 2**31 - 1  # about 24 days: beyond it, waiting overflows on some systems


ASSIGN: Final = 'write an object from targets to sources: {"plan": "$.plan"}'
_A_PATH: Final = 'write a path in quotes, such as "$.context" or "state.plan"'
TEXT_SCHEMA: Final = {"type": "string"}
TEXTS_SCHEMA: Final = {"type": "array", "items": TEXT_SCHEMA}

AnyKey: TypeAlias = Annotated[str, ValueKind(lambda _: True, TEXT_SCHEMA)]
"""A key of an object; the graph checks those that are ids."""
Reference: TypeAlias = Annotated[str, ValueKind(lambda _: True, TEXT_SCHEMA)]
"""The name of something in the config; the graph checks whether it is there."""
SomeText: TypeAlias = Annotated[str, ValueKind(is_text, TEXT_SCHEMA, "write a name in quotes")]
"""Text with something other than white space in it."""
AnyText: TypeAlias = Annotated[
    str, ValueKind(lambda value: isinstance(value, str), TEXT_SCHEMA, "write text in quotes")
]
Texts: TypeAlias = Annotated[list[str], ValueKind(_are_texts, TEXTS_SCHEMA)]
TextsByName: TypeAlias = Annotated[
    dict[str, str],
    ValueKind(
        lambda value: is_object(value) and all(isinstance(one, str) for one in value.values()),
        {"type": "object", "additionalProperties": TEXT_SCHEMA},
        'write an object of texts, such as {"NAME": "${NAME}"}',
    ),
]
Flag: TypeAlias = Annotated[
    bool,
    ValueKind(
        lambda value: isinstance(value, bool), {"type": "boolean"}, "write true or false, without quotes"
    ),
]
Count: TypeAlias = Annotated[int, _whole_from(0)]
CountFromOne: TypeAlias = Annotated[int, _whole_from(1)]
Percent: TypeAlias = Annotated[
    float, ValueKind(lambda value: is_number(value) and value >= 0, {"type": "number", "minimum": 0})
]
Amount: TypeAlias = Annotated[
    float,
    ValueKind(
        lambda value: is_number(value) and value >= 0,
        {"type": "number", "minimum": 0},
        "write a number from 0 up",
    ),
]
DateText: TypeAlias = Annotated[
    str,
    ValueKind(
        lambda value: isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None,
        {"type": "string", "format": "date"},
        'write a day, such as "2026-11-23"',
    ),
]
Milliseconds: TypeAlias = Annotated[
    int,
    ValueKind(
        lambda value: is_number(value) and value > 0,
        {"type": "number", "exclusiveMinimum": 0},
        counts=lambda value: min(ceil(value), _LONGEST_MS),
    ),
]
"""How long something may take; a part of a millisecond counts as a whole one."""
PathText: TypeAlias = Annotated[
    str, ValueKind(lambda value: is_text(value) and "\0" not in value, TEXT_SCHEMA)
]
Name: TypeAlias = Annotated[
    str,
    ValueKind(
        lambda value: is_text(value) and bool(split_path(value)), TEXT_SCHEMA, "write a name, or leave it out"
    ),
]
"""The name of a cursor, or of an item in the state (R12, R13)."""
SourceText: TypeAlias = Annotated[str, ValueKind(_is_source, TEXT_SCHEMA, _A_PATH)]
"""Where a value is read from: a path, or JSONPath (R11)."""
AssignedSource: TypeAlias = Annotated[str, ValueKind(is_text, TEXT_SCHEMA, _A_PATH)]
"""The source of an assignment that may have no effect, so that it need not be readable (R4)."""
Parse: TypeAlias = Annotated[Literal["json", "text"], word_of(("json", "text"))]
When: TypeAlias = Annotated[Condition, word_of(CONDITIONS)]
WhenOutput: TypeAlias = Annotated[Condition, word_of(OF_OUTPUTS)]
"""A condition that an output can meet."""
Artifacts: TypeAlias = Annotated[Literal["outputs", "all"], word_of(("outputs", "all"))]
FilesField: TypeAlias = Annotated[FilesWord, word_of(FILE_CHOICES)]
PromptCharacters: TypeAlias = Annotated[int, _whole_from(LEAST_PROMPT_CHARACTERS)]
PromptFormWord: TypeAlias = Annotated[str, word_of(PROMPT_FORMS)]

_FLAG_SCHEMA: Final = {"type": "boolean"}
_CONTEXT_PARTS: Final[Mapping[str, tuple[Callable[[JSON], bool], Mapping[str, JSON], str]]] = {
    "request": (lambda value: isinstance(value, bool), _FLAG_SCHEMA, "true or false"),
    "items": (
        lambda value: isinstance(value, str) and value in ITEM_CONTEXTS,
        {"enum": [*ITEM_CONTEXTS]},
        '"whole", "titles" or "none"',
    ),
    "state": (
        lambda value: isinstance(value, bool) or _are_texts(value),
        {"anyOf": [_FLAG_SCHEMA, TEXTS_SCHEMA]},
        'true, false or a list of paths such as ["plan.name"]',
    ),
    "handoffs": (
        lambda value: isinstance(value, bool) or (whole(value) or 0) > 0,
        {"anyOf": [_FLAG_SCHEMA, {"type": "integer", "minimum": 1}]},
        "true, false or a number of characters",
    ),
    "previous": (lambda value: isinstance(value, bool), _FLAG_SCHEMA, "true or false"),
}
"""What an object of ``castContext`` may say: what is accepted, its schema, and what to write (R50)."""


def is_context(value: JSON) -> bool:
    """Whether it is a ``castContext``; raises :class:`Fault` where an object has a wrong field."""
    if not is_object(value):
        return isinstance(value, str) and value in CAST_CONTEXTS
    for name, given in value.items():
        if name not in _CONTEXT_PARTS:
            parts = ", ".join(_CONTEXT_PARTS)
            raise Fault(
                f"there is no part {name!r} of what an agent is told", f"write one of {parts}", f".{name}"
            )
        accepts, _, write = _CONTEXT_PARTS[name]
        if not accepts(given):
            raise Fault(hint=f"write {write}", at=f".{name}")
    return True


ContextValue: TypeAlias = Annotated[
    JSON,
    ValueKind(
        is_context,
        {
            "anyOf": [
                {"enum": [*CAST_CONTEXTS]},
                {
                    "type": "object",
                    "properties": {name: dict(schema) for name, (_, schema, _) in _CONTEXT_PARTS.items()},
                    "additionalProperties": False,
                },
            ]
        },
        f"write {', '.join(CAST_CONTEXTS)}, or an object of {', '.join(_CONTEXT_PARTS)}",
    ),
]
CONTEXT_SHAPE: Final = "full, request, none, or an object"


def known(
    description: str,
    shape: str,
    *rules: str,
    name: str | None = None,
    required: bool = False,
    default: JSON = None,
    least: int | None = None,
    **facts: Any,
) -> Any:
    """Describe a field.

    Args:
        description: what it does, in one or two sentences.
        shape: what its value looks like, in words.
        rules: the R-numbers that it implements.
        name: how the config spells it, where that is no Python name in camel case.
        required: whether it must be there. What the graph checks (see :data:`Reference`) is never required here.
        default: what counts when it is left out, where that is one value.
        least: how many entries it has at least.
        facts: the attributes of its :class:`FieldRow` that have a default.
    """
    if default is not None:
        description = f"{description.removesuffix('.')}; left out, {_word(default)}."
    about: Any = {"shape": shape, "rules": rules, **facts}
    return Field(
        default=... if required else default,
        alias=name,
        description=description,
        min_length=least,
        json_schema_extra={"x-about": about},
    )


def _word(default: JSON) -> str:
    return f"`{default}`" if isinstance(default, str) else str(default)


class Model(BaseModel):
    """An object of the config. Fields that it does not know are no business of checking (R28).

    ``words`` are its name, ``example`` is one, and ``code`` that of its problems (R26).
    """

    words: ClassVar[str]
    example: ClassVar[str] = "{ ... }"
    code: ClassVar[str] = INVALID_CONFIG

    model_config = ConfigDict(alias_generator=to_camel, frozen=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """One field of the config, as ``known`` describes it.

    Attributes:
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
    shape: str
    description: str
    rules: tuple[str, ...]
    required: bool
    part: type[Model] | None
    many: type | None
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


@cache
def rows_of(model: type[Model]) -> Mapping[str, FieldRow]:
    """Return the fields of a model by their names in the config, in the order in which they are documented."""
    return {row.field: row for row in (_row(model, name, info) for name, info in model.model_fields.items())}


def _row(model: type[Model], name: str, info: FieldInfo) -> FieldRow:
    extra = info.json_schema_extra
    facts: Any = extra["x-about"] if isinstance(extra, dict) else {}
    inside = list(_inside(info.annotation))
    return FieldRow(
        model=model.__name__.removesuffix("Fields"),
        field=info.alias or name,
        description=info.description or "",
        required=info.is_required(),
        part=next((one for one in inside if _is_model(one)), None),
        many=next((kind for one in inside if (kind := get_origin(one)) in (list, dict)), None),
        **facts,
    )


def _is_model(annotation: Any) -> bool:
    return inspect.isclass(annotation) and issubclass(annotation, Model)


def _inside(annotation: Any) -> Iterating[Any]:
    """Yield an annotation and what it is made of."""
    yield annotation
    for one in get_args(annotation):
        yield from _inside(one)


def objects(model: type[Model], raw: Object, here: str = "") -> Iterating[tuple[type[Model], Object, str]]:
    """Yield an object of the config and, in their order, the objects inside it, each with its model and path."""
    yield model, raw, here
    for name, row in rows_of(model).items():
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
    spelt = to_camel(name) if model.model_config.get("populate_by_name") else name
    return rows_of(model).get(name) or rows_of(model).get(spelt)


def field_path(here: str, name: str) -> str:
    """Return the path of a field."""
    return f"{here}.{name}" if here else name
