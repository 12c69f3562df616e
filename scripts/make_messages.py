"""Write what the front-end is told of the messages that it may send: their types, as TypeScript."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from materia_nb.widgets.messages import ToCast, messages_of

TARGET: Final = Path("materia_nb/widgets/front/messages.d.ts")
RECEIVERS: Final = (ToCast,)

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
    return "\n".join([HEAD.format(command=command), *map(_receiver, RECEIVERS)])


def _receiver(receiver: type) -> str:
    rows = [
        f"  /** {_words(one)} */\n  {kind}: {_object(one.model_json_schema())};"
        for kind, one in messages_of(receiver).items()
    ]
    return f"/** {_words(receiver)} */\nexport interface {receiver.__name__} {{\n" + "\n".join(rows) + "\n}\n"


def _words(one: type) -> str:
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
