"""The words of JSON Schema that the handoff protocols describe their outputs with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from materia_nb.jsonvalue import JSON

TEXT: Final[JSON] = {"type": "string"}
ANYTHING: Final[JSON] = {}
"""Any value at all; only an assignment says what it reads from it."""


def closed_object(fields: Mapping[str, JSON], optional: tuple[str, ...] = ()) -> dict[str, JSON]:
    """Describe an object that has these fields and no others."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": [name for name in fields if name not in optional],
        "additionalProperties": False,
    }


def listed_as(entry: JSON) -> dict[str, JSON]:
    """Describe a list whose entries are all of one form."""
    return {"type": "array", "items": entry}


def one_of(words: tuple[str, ...]) -> dict[str, JSON]:
    """Describe a string that is one of these words."""
    return {"type": "string", "enum": list(words)}
