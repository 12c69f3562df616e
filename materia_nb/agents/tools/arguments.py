"""Checking what a model gave as arguments, so that the tools need not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from materia_nb.agents.tools.tool import Refused, Tool, named
from materia_nb.errors import did_you_mean
from materia_nb.jsonvalue import JSON

_WORDS: Final = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}


def checked(tool: Tool, given: object) -> dict[str, JSON]:
    """Return the arguments of a call as its tool wants them.

    An optional argument that is null counts as left out, a whole number may be written as 3.0.

    Raises:
        Refused: naming everything that is wrong, and what to give instead.
    """
    if not isinstance(given, Mapping):
        raise Refused(f"The arguments of {tool.name} must be an object with {_listed(tool)}.")
    problems = list(_problems(tool, given))
    if problems:
        raise Refused(f"{tool.name} was not run: {'; '.join(problems)}. It takes {_listed(tool)}.")
    properties = tool.parameters["properties"]
    return {
        name: int(value) if properties[name]["type"] == "integer" else value
        for name, value in given.items()
        if value is not None
    }


def _problems(tool: Tool, given: Mapping[object, JSON]) -> Iterator[str]:
    properties, required = tool.parameters["properties"], tool.parameters["required"]
    for name in given:
        if name not in properties:
            yield f"there is no argument {named(str(name))!r} ({did_you_mean(str(name), properties)})"
    for name, schema in properties.items():
        value = given.get(name)
        if value is None:
            if name in required:
                yield f"{name} is missing: give {_WORDS[schema['type']]}, {schema['description']}"
        elif not _is(schema["type"], value):
            yield f"{name} must be {_WORDS[schema['type']]}, not {_kind(value)}"
        elif not isinstance(value, str) and (bound := _out_of_bounds(schema, value)):
            yield f"{name} must be {bound}"


def _out_of_bounds(schema: Mapping[str, JSON], value: float) -> str | None:
    """Say within which bound a number is not."""
    if "minimum" in schema and value < schema["minimum"]:
        return f"at least {schema['minimum']:,}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        return f"more than {schema['exclusiveMinimum']:,}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"at most {schema['maximum']:,}"
    return None


def _is(wanted: str, value: JSON) -> bool:
    if wanted == "string":
        return isinstance(value, str)
    if wanted == "boolean" or isinstance(value, bool):
        return wanted == "boolean" and isinstance(value, bool)
    if isinstance(value, float):
        return math.isfinite(value) and (wanted == "number" or value.is_integer())
    return isinstance(value, int)


def _kind(value: JSON) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "an object"


def _listed(tool: Tool) -> str:
    required = tool.parameters["required"]
    return ", ".join(
        name if name in required else f"{name} (optional)" for name in tool.parameters["properties"]
    )
