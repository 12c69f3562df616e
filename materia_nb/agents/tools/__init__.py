"""Tools for model agents: their definition, results, list, scopes and arguments.

``Toolbox``, in ``file_tools.py``, runs those for files inside the project, and a shell that needs approval.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from materia_nb.errors import did_you_mean
from materia_nb.file_io import read_package_toml
from materia_nb.jsonvalue import JSON

__all__ = ["MAX_RESULT_CHARS", "MoreTools", "Tool", "ToolResult", "choose_tools"]

MAX_RESULT_CHARS: Final = 32_000
"""The longest result that a model is told, in characters."""

_NAME_SHOWN: Final = 200
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_TAIL_SHARE: Final = 3  # of a text that is too long the last third is kept, the rest from its beginning


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as it is described to a model.

    Attributes:
        name: what the model calls it by.
        description: what it does, for the model.
        parameters: its arguments as a JSON schema of type object, without additional properties.
        changes: True if it can change something, so that it needs approval. Its call is recorded before it runs.
        free: True if it needs no approval although it can change something.
        run: what runs it, for one from elsewhere: the Toolbox has those of the project.
    """

    name: str
    description: str
    parameters: Mapping[str, JSON]
    changes: bool
    free: bool = False
    run: Run | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call as the model sees it: ``text`` of at most ``MAX_RESULT_CHARS`` characters; ``ok`` is True if the call succeeded."""

    text: str
    ok: bool


Run: TypeAlias = "Callable[[Mapping[str, JSON], threading.Event | None], ToolResult]"
"""Runs a tool with its arguments; the event is set when the cast is to stop."""


class MoreTools(NamedTuple):
    """The tools from elsewhere that an agent may be given: functions by name, MCP servers as the config has them.

    ``run_dir`` is the run directory of the cast that the servers run for.
    """

    functions: Mapping[str, Tool] = {}
    servers: Mapping[str, JSON] = {}
    run_dir: str = ""


class Refused(Exception):
    """A call cannot run as requested. The message says why and what the model can do."""


def readable(text: str) -> str:
    r"""Return text without control characters: they become escapes such as ``\x1b``; line feeds and tabs stay.

    Bytes that were not UTF-8 and were decoded with ``surrogateescape`` become the same kind of escape.
    """
    return _CONTROL.sub(_escape, text.replace("\r\n", "\n"))


def named(text: str) -> str:
    """Return a name or another short foreign text on one line, to be put between words of our own."""
    line = readable(text[:_NAME_SHOWN]).replace("\n", "\\n").replace("\t", "\\t")
    return line + "…" if len(text) > _NAME_SHOWN else line


def cut_middle(text: str) -> str:
    """Return text in at most :data:`MAX_RESULT_CHARS` characters: its beginning, how much is left out, its end."""
    if len(text) <= MAX_RESULT_CHARS:
        return text
    room = MAX_RESULT_CHARS - 60
    tail = room // _TAIL_SHARE
    gap = f"\n[... {len(text) - room:,} characters left out ...]\n"
    return text[: room - tail] + gap + text[-tail:]


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if match[0] == "\r":
        return "\\r"
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"


SHELL_SECONDS: Final = 120
"""Default time limit of a command, in seconds."""

LINES: Final = 1_000
"""Default number of lines that are read from a file."""


def _tool(name: str, row: dict[str, Any]) -> Tool:
    parameters: dict[str, JSON] = {
        "type": "object",
        "properties": row["properties"],
        "required": row.get("required", []),
        "additionalProperties": False,
    }
    return Tool(name, row["description"], parameters, row.get("changes", False))


_TABLE: Final = read_package_toml(__file__, "tools.toml")
TOOLS: Final = {name: _tool(name, row) for name, row in _TABLE.items()}
"""Every tool by its name."""

SCOPES: Final = {
    "none": (),
    "readOnly": tuple(tool.name for tool in TOOLS.values() if not tool.changes),
    "coding": tuple(TOOLS),
}
"""The names of the tools that a scope allows."""


def choose_tools(
    scope: str | tuple[str, ...], more: Callable[[str], Iterable[Tool]] = lambda _: ()
) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """Return the tools of a scope, and the names in it that no tool has.

    Args:
        scope: ``none``, ``readOnly``, ``coding``, or the names of tools; names keep their order, a
            name that comes again counts once.
        more: gives the tools from elsewhere of a name.
    """
    names = SCOPES.get(scope, (scope,)) if isinstance(scope, str) else tuple(dict.fromkeys(scope))
    tools_of = {name: [TOOLS[name]] if name in TOOLS else list(more(name)) for name in names}
    known = {tool.name: tool for tools in tools_of.values() for tool in tools}
    return tuple(known.values()), tuple(name for name, tools in tools_of.items() if not tools)


_WORDS: Final = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}


def check_arguments(tool: Tool, arguments: object) -> dict[str, JSON]:
    """Return the arguments of a call as its tool wants them.

    An optional argument that is null counts as left out, a whole number may be written as 3.0.

    Raises:
        Refused: naming everything that is wrong, and what to give instead.
    """
    if not isinstance(arguments, Mapping):
        raise Refused(f"The arguments of {tool.name} must be an object with {_argument_names(tool)}.")
    problems = list(_problems(tool, arguments))
    if problems:
        raise Refused(f"{tool.name} was not run: {'; '.join(problems)}. It takes {_argument_names(tool)}.")
    properties = tool.parameters["properties"]
    return {
        name: int(value) if properties[name]["type"] == "integer" else value
        for name, value in arguments.items()
        if value is not None
    }


def _problems(tool: Tool, arguments: Mapping[object, JSON]) -> Iterator[str]:
    properties, required = tool.parameters["properties"], tool.parameters["required"]
    for name in arguments:
        if name not in properties:
            yield f"{named(str(name))!r} is not an argument ({did_you_mean(str(name), properties)})"
    for name, schema in properties.items():
        value = arguments.get(name)
        if value is None:
            if name in required:
                yield f"{name} is missing: give {_WORDS[schema['type']]}, {schema['description']}"
        elif not _has_type(schema["type"], value):
            yield f"{name} must be {_WORDS[schema['type']]}, not {_type_words(value)}"
        elif not isinstance(value, str) and (bound := _out_of_bounds(schema, value)):
            yield f"{name} must be {bound}"


def _out_of_bounds(schema: Mapping[str, JSON], value: float) -> str | None:
    """Return the bound that a number violates, in words."""
    if "minimum" in schema and value < schema["minimum"]:
        return f"at least {schema['minimum']:,}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        return f"more than {schema['exclusiveMinimum']:,}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"at most {schema['maximum']:,}"
    return None


def _has_type(type_name: str, value: JSON) -> bool:
    if isinstance(value, float):
        return math.isfinite(value) and (type_name == "number" or (type_name == "integer" and value.is_integer()))
    allowed = {"string": (str,), "boolean": (bool,)}.get(type_name, (int,))
    return type(value) in allowed


def _type_words(value: JSON) -> str:
    words = {bool: "true or false", str: "a text", int: "a number", float: "a number", list: "a list"}
    return words.get(type(value), "an object")


def _argument_names(tool: Tool) -> str:
    required = tool.parameters["required"]
    return ", ".join(name if name in required else f"{name} (optional)" for name in tool.parameters["properties"])
