"""Write what the front-end is told of the messages that it may send: their types, as TypeScript."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from materia_nb.loadout.design import OPERATIONS
from materia_nb.widgets.design_acts import DESIGN_ACTS
from materia_nb.widgets.messages import PageMessage, ToCanvas, ToCast, ToCasts, ToQuestion, messages_of

TARGET: Final = Path("materia_nb/widgets/front/messages.d.ts")
_ARGUMENTS: Final = {
    "str": "string",
    "str | None": "string | null",
    "bool": "boolean",
    "Ids": "string[]",
    "float": "number",
}
RECEIVERS: Final = (ToCast, ToCasts, ToCanvas, ToQuestion)

HEAD: Final = """\
// Made from widgets/messages.py by `{command}`: change the types there, not this file.

/** Sends a message of one kind, with its fields; they may be left out where none is needed. */
export type Send<Messages> = <Kind extends keyof Messages & string>(
  kind: Kind,
  ...fields: {{}} extends Messages[Kind] ? [fields?: Messages[Kind]] : [fields: Messages[Kind]]
) => void;
"""


def messages_page(command: str) -> str:
    """Return the file, which says that ``command`` makes it."""
    receivers = [
        _interface(
            receiver.__name__,
            _words(receiver),
            {kind: (_words(one), _object(_fields(one))) for kind, one in messages_of(receiver).items()},
        )
        for receiver in RECEIVERS
    ]
    return "\n".join([HEAD.format(command=command), *receivers, _designer()])


def _designer() -> str:
    """Write the messages of design mode: each is an act or an operation, and brings what that is given."""
    operations = {name: (one.about, one.parameters) for name, one in OPERATIONS.items()}
    acts = {
        kind: (_words(one), dict([*inspect.signature(one).parameters.items()][1:]))
        for kind, one in DESIGN_ACTS.items()
    }
    messages = {
        kind: (about, _given(parameters)) for kind, (about, parameters) in sorted((operations | acts).items())
    }
    return _interface("ToDesign", "What the designer of a loadout is told.", messages)


def _given(parameters: Mapping[str, inspect.Parameter]) -> str:
    """Write the type of an object with the arguments of a function."""
    fields = [
        f"{name.strip('_')}{'' if one.default is one.empty else '?'}: {_ARGUMENTS.get(one.annotation, 'unknown')}"
        for name, one in parameters.items()
    ]
    return f"{{ {'; '.join(fields)} }}" if fields else "{}"


def _interface(name: str, about: str, messages: Mapping[str, tuple[str, str]]) -> str:
    rows = [f"  /** {words} */\n  {kind}: {fields};\n" for kind, (words, fields) in messages.items()]
    return f"/** {about} */\nexport interface {name} {{\n{''.join(rows)}}}\n"


def _fields(message: type[PageMessage]) -> dict[str, Any]:
    """Return the schema of what a part of the page says in a message; ``seen`` is added to all of them where they are sent."""
    schema = message.model_json_schema()
    schema.get("properties", {}).pop("seen", None)
    return schema


def _words(one: object) -> str:
    return " ".join((inspect.getdoc(one) or "").split("\n\n")[0].split())


def _object(schema: Mapping[str, Any]) -> str:
    """Write the type of an object with its fields."""
    definitions, needed = schema.get("$defs", {}), schema.get("required", ())
    fields = [
        f"{name}{'' if name in needed else '?'}: {_type(one, definitions)}"
        for name, one in schema.get("properties", {}).items()
    ]
    return f"{{ {'; '.join(fields)} }}" if fields else "{}"


def _type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Write the type of one value."""
    written = "unknown"
    match schema:
        case {"$ref": str(name)}:
            written = _type(definitions[name.rpartition("/")[2]], definitions)
        case {"anyOf": several}:
            written = " | ".join(_type(one, definitions) for one in several)
        case {"enum": words}:
            written = " | ".join(map(json.dumps, words))
        case {"type": "array", "prefixItems": [*places]}:
            least = schema.get("minItems", len(places))
            types = [_type(one, definitions) for one in places]
            written = (
                f"[{', '.join(one if place < least else f'({one})?' for place, one in enumerate(types))}]"
            )
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
