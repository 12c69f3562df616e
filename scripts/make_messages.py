"""Write the TypeScript types of the messages that the front end may send."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from materia_nb.loadout.design.document import OPERATIONS
from materia_nb.widgets import cast_panel as _cast_panel  # noqa: F401 - importing it registers the messages
from materia_nb.widgets import design_session as _design_session  # noqa: F401 - as above
from materia_nb.widgets.cast_surface import cast_messages
from materia_nb.widgets.design_state import design_messages
from materia_nb.widgets.explorer import casts_messages
from materia_nb.widgets.frontend import MessageRegistry, PageMessage
from materia_nb.widgets.graph_panel import canvas_messages
from materia_nb.widgets.predict import question_messages

TARGET: Final = Path("materia_nb/widgets/front/messages.d.ts")
_ARGUMENTS: Final = {
    "str": "string",
    "str | None": "string | null",
    "bool": "boolean",
    "float": "number",
}

HEAD: Final = """\
// Made from the signatures of the messages in materia_nb/widgets by `{command}`: change them, not this file.

/** Sends a message of one kind, with its fields; they may be left out where none is needed. */
export type Send<Messages> = <Kind extends keyof Messages & string>(
  kind: Kind,
  ...fields: {{}} extends Messages[Kind] ? [fields?: Messages[Kind]] : [fields: Messages[Kind]]
) => void;
"""


def messages_page(command: str) -> str:
    """Return the content of the file of types. Its first line names ``command`` as its generator."""
    receivers = [
        _interface(
            registry,
            {message.kind: (message.about, _fields(message)) for message in registry.messages.values()},
        )
        for registry in (cast_messages, casts_messages, canvas_messages, question_messages)
    ]
    operations = {name: (operation.about, _arguments(operation.parameters)) for name, operation in OPERATIONS.items()}
    acts = {message.kind: (message.about, _fields(message)) for message in design_messages.messages.values()}
    designer = _interface(design_messages, dict(sorted((operations | acts).items())))
    return "\n".join([HEAD.format(command=command), *receivers, designer])


def _arguments(parameters: Mapping[str, inspect.Parameter]) -> str:
    """Return the TypeScript type of an operation's arguments. The operation itself validates them."""
    fields = [
        f"{name.strip('_')}{'' if parameter.default is parameter.empty else '?'}: {_ARGUMENTS.get(parameter.annotation, 'unknown')}"
        for name, parameter in parameters.items()
    ]
    return f"{{ {'; '.join(fields)} }}" if fields else "{}"


def _interface(registry: MessageRegistry, messages: Mapping[str, tuple[str, str]]) -> str:
    rows = [f"  /** {description} */\n  {kind}: {fields};\n" for kind, (description, fields) in messages.items()]
    return f"/** {registry.about} */\nexport interface {registry.name} {{\n{''.join(rows)}}}\n"


def _fields(message: PageMessage) -> str:
    """Return the TypeScript type of a message's fields. ``identity`` is left out, because sending a message adds it."""
    schema = message.fields.json_schema()
    schema.get("properties", {}).pop("identity", None)
    return _object(schema)


def _object(schema: Mapping[str, Any]) -> str:
    """Return the TypeScript type of an object with the fields of a JSON Schema."""
    definitions, needed = schema.get("$defs", {}), schema.get("required", ())
    fields = [
        f"{name}{'' if name in needed else '?'}: {_type(property_schema, definitions)}"
        for name, property_schema in schema.get("properties", {}).items()
    ]
    return f"{{ {'; '.join(fields)} }}" if fields else "{}"


def _type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return the TypeScript type of one value in a JSON Schema."""
    written = "unknown"
    match schema:
        case {"$ref": str(name)}:
            written = _type(definitions[name.rpartition("/")[2]], definitions)
        case {"anyOf": several}:
            written = " | ".join(_type(variant, definitions) for variant in several)
        case {"enum": words}:
            written = " | ".join(map(json.dumps, words))
        case {"type": "array", "prefixItems": [*places]}:
            min_items = schema.get("minItems", len(places))
            types = [_type(item_schema, definitions) for item_schema in places]
            written = f"[{', '.join(item_type if index < min_items else f'({item_type})?' for index, item_type in enumerate(types))}]"
        case {"type": "array"}:
            written = f"Array<{_type(schema.get('items', {}), definitions)}>"
        case {"type": "object", "properties": _}:
            written = _object({**schema, "$defs": definitions})
        case {"type": "object"}:
            values = schema.get("additionalProperties")
            written = f"Record<string, {_type(values if isinstance(values, dict) else {}, definitions)}>"
        case {"type": "integer" | "number"}:
            written = "number"
        case {"type": str(name)}:
            written = name
    return written
