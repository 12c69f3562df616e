"""Forms of the objects of a config, made from their classes, and the values that a person types into them.

A form defines the allowed values; the report tells whether they make sense in the loadout.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from materia_nb.jsonvalue import JSON, Object, as_list, is_object, pretty
from materia_nb.loadout.config_files import read_text
from materia_nb.loadout.design.document import design_error
from materia_nb.loadout.fields import CONTEXT_SHAPE, FieldRow, Model
from materia_nb.loadout.json_schema import field_schemas

_Input: TypeAlias = Literal[
    "text", "prose", "choice", "flag", "number", "lines", "scope", "json", "reference"
]
"""The input of a field: ``prose`` has several lines, ``lines`` one entry per line, ``scope`` a word or names."""

_KEPT: Final = ("Kept", "An older name")
"""The beginnings of the descriptions of fields that only other tools write."""


class FormField(NamedTuple):
    """A field of a form, with plain values only, so that it can be sent to a page.

    Attributes:
        name: its name in the config.
        label: its name on the form.
        input: how it is filled in.
        value: what it shows: a text, or true and false for a flag.
        options: what can be chosen, as value and words.
        about: what it does, and what counts when it is left out.
        shape: what to write, in words; for the empty field.
        unit: what stands behind it.
        required: whether it must be there.
        first: whether it is seen without unfolding the rest.
        idle: why it has no effect, empty if it has.
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


def form_of(
    model: type[Model], raw: Object, known: Mapping[str, Iterable[str]] | None = None
) -> list[FormField]:
    """Return the fields of an object, the most important first.

    Args:
        model: what describes it.
        raw: the object as written.
        known: what can be named, by the shape of the field: ``socket id``, ``socket id or end``, ``materia id``, ...,
            or by its name: ``model``.
    """
    rows = [
        row
        for name, row in model.rows.items()
        if not row.apart and (name in raw or not (row.ignored or row.description.startswith(_KEPT)))
    ]
    return [
        _field(model, row, raw, known or {}) for row in sorted(rows, key=lambda row: row.first or len(rows))
    ]


def read_field(model: type[Model], name: str, typed: JSON) -> JSON:
    """Return the value that was typed into a field; None for an empty field.

    Raises:
        MateriaError: there is no such field, or what was typed is none of its values.
    """
    row = model.rows.get(name)
    if row is None or row.apart:
        raise design_error(f"{model.noun} has no field {name!r}", name, "choose a field of the form")
    schema = _schema(model, name)
    input_ = _input(row, schema, typed)
    label = row.label or name
    if input_ == "flag":
        if not isinstance(typed, bool):
            raise design_error(f"{label} is on or off", name, "send true or false")
        return True if typed else None
    if typed is None or (isinstance(typed, str) and not typed.strip()):
        return None
    if not isinstance(typed, str):
        raise design_error(f"{label} is typed as text", name, "send text")
    return _read(input_, typed, row, schema)


def _field(model: type[Model], row: FieldRow, raw: Object, names: Mapping[str, Iterable[str]]) -> FormField:
    schema, value = _schema(model, row.field), raw.get(row.field)
    typed = "" if value is None else value if isinstance(value, str) else pretty(value)
    input_ = _input(row, schema, typed if isinstance(value, str) or value is None else value)
    options: tuple[tuple[str, str], ...] = ()
    if input_ == "choice":
        options = tuple((word, word) for word in schema.get("enum") or _words(schema))
        if not row.required:
            options = (("", _left_out(row, schema)), *options)
        if typed not in [word for word, _ in options]:
            options = (*options, (typed, f"{typed} (not known)"))
    elif input_ == "scope":
        options = tuple((word, word) for word in _words(schema))
    elif input_ in ("reference", "text"):
        options = tuple((word, word) for word in names.get(row.field, names.get(row.shape, ())))
    if input_ == "lines" and isinstance(value, list):
        typed = "\n".join(str(entry) for entry in value)
    if input_ == "scope" and not isinstance(value, str) and value is not None:
        listed = value.get("tools") if is_object(value) else value
        typed = ", ".join(str(entry) for entry in as_list(listed))
    return FormField(
        row.field,
        row.label or row.field,
        input_,
        value is True if input_ == "flag" else typed,
        options,
        row.description.replace(" Required.", "").replace("`", ""),
        row.shape,
        row.unit,
        row.required or " Required." in row.description,
        row.first > 0,
        row.ignored or "",
    )


def _input(row: FieldRow, schema: Mapping[str, Any], value: JSON) -> _Input:
    kind = schema.get("type")
    texts = kind == "array" and schema.get("items", {}).get("type") == "string"
    shaped = is_object(value) or (isinstance(value, str) and value.lstrip().startswith("{"))
    kinds: tuple[tuple[_Input, bool], ...] = (
        ("json", row.shape == CONTEXT_SHAPE and shaped),
        ("choice", row.shape == CONTEXT_SHAPE),
        ("prose", row.prose),
        ("reference", row.shape in ("socket id", "socket id or end", "materia id")),
        ("choice", bool(schema.get("enum"))),
        ("flag", kind == "boolean" or row.shape == "true or false"),
        ("number", kind in ("integer", "number")),
        ("scope", bool(_words(schema))),
        ("lines", texts and (isinstance(value, str) or _on_lines(as_list(value)))),
        ("text", kind == "string" or row.shape in ("text", "colour")),
    )
    return next((input_ for input_, holds in kinds if holds), "json")


def _on_lines(entries: list[JSON]) -> bool:
    return all(isinstance(entry, str) and "\n" not in entry for entry in entries)


@functools.cache
def _schemas() -> dict[str, Any]:
    return field_schemas()


def _schema(model: type[Model], name: str) -> Mapping[str, Any]:
    schema: dict[str, Any] = _schemas()[model.__name__]["properties"][name]
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    return {**schema, **kinds[0]} if len(kinds) == 1 else schema


def _words(schema: Mapping[str, Any]) -> list[str]:
    """Return the fixed words of a field that takes a word or a list of names."""
    kinds = schema.get("anyOf", ())
    kinds = [inner for kind in kinds for inner in kind.get("anyOf", (kind,))]
    return next((list(kind["enum"]) for kind in kinds if "enum" in kind), [])


def _left_out(row: FieldRow, schema: Mapping[str, Any]) -> str:
    if row.shape == CONTEXT_SHAPE:
        return "inherited"
    default = schema.get("default")
    if default is None and "(the default)" in row.description:
        default = "text"
    return f"left out: {default}" if default is not None else "left out"


def _read(input_: _Input, typed: str, row: FieldRow, schema: Mapping[str, Any]) -> JSON:
    """Return the value of a text that was typed into a field; raises MateriaError if it is not allowed."""
    text, label = typed.strip(), row.label or row.field
    if input_ == "prose":
        return typed
    if input_ == "number":
        return _number(text, label, row, schema)
    if input_ == "choice" and typed not in (schema.get("enum") or _words(schema)):
        raise design_error(f"{label} cannot be {typed!r}", row.field, f"choose {row.shape}")
    if input_ == "json" or (input_ == "lines" and text.startswith("[")):
        return read_text(typed, where=label)  # entries that are longer than a line are typed as JSON too
    if input_ == "lines":
        return [line for line in typed.splitlines() if line.strip()]
    if input_ == "scope" and text not in _words(schema):
        return [name.strip() for name in typed.replace("\n", ",").split(",") if name.strip()]
    return text


def _number(text: str, label: str, row: FieldRow, schema: Mapping[str, Any]) -> JSON:
    try:
        value: float = int(text) if text.isascii() and text.lstrip("-").isdigit() else float(text)
    except ValueError:
        value = math.nan
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    integer = schema.get("type") == "integer"
    low = least is not None and (value < least or ("exclusiveMinimum" in schema and value == least))
    if low or not math.isfinite(value) or (integer and not isinstance(value, int)):
        hint = f"write a {row.shape}, or leave it empty"
        raise design_error(f"{label} cannot be {text!r}", row.field, hint)
    return value
