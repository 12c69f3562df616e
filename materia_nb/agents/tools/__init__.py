"""Tools for model agents: definitions, results, scopes, and the validation of arguments.

``Toolbox`` in ``file_tools.py`` runs the file tools inside the project, and a shell that needs approval.
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
"""Maximum length of a tool result, in characters."""

_NAME_SHOWN: Final = 200
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_TAIL_SHARE: Final = 3  # a long text keeps its beginning and its end; the end gets a third of the room


@dataclass(frozen=True, slots=True)
class Tool:
    """The description of a tool for a model, and the function that runs it.

    Attributes:
        name: the name that the model uses.
        description: the description that the model reads.
        parameters: the arguments as a JSON Schema of type object, without additional properties.
        changes: True if the tool can change something. It then needs approval, and each call is recorded before it runs.
        free: True if the tool needs no approval although it can change something.
        run: runs the tool; None for the project tools, which the Toolbox runs.
    """

    name: str
    description: str
    parameters: Mapping[str, JSON]
    changes: bool
    free: bool = False
    run: Run | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call for the model. ``ok`` is True if the call succeeded."""

    text: str
    ok: bool


Run: TypeAlias = "Callable[[Mapping[str, JSON], threading.Event | None], ToolResult]"
"""Runs a tool with its arguments; the event is set when the cast must stop."""


class MoreTools(NamedTuple):
    """The tools that are not project tools: functions by name, and the MCP servers of the config.

    ``run_dir`` is the run directory of the cast that the servers run for.
    """

    functions: Mapping[str, Tool] = {}
    servers: Mapping[str, JSON] = {}
    run_dir: str = ""


class Refused(Exception):
    """The call cannot run as requested. The message for the model names the reason and what to do instead."""


def readable(text: str) -> str:
    r"""Return text with control characters escaped, such as ``\x1b``. Line feeds and tabs are kept.

    Bytes that were decoded with ``surrogateescape``, because they were not UTF-8, are escaped in the same way.
    """
    return _CONTROL.sub(_escape, text.replace("\r\n", "\n"))


def named(text: str) -> str:
    """Return a name or another short untrusted text on one line, for use inside a message."""
    line = readable(text[:_NAME_SHOWN]).replace("\n", "\\n").replace("\t", "\\t")
    return line + "…" if len(text) > _NAME_SHOWN else line


def cut_middle(text: str) -> str:
    """Shorten text to :data:`MAX_RESULT_CHARS` characters: its beginning, the number of omitted characters, and its end."""
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
"""Default maximum number of lines that ``read`` returns."""


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
"""The project tools by name."""

SCOPES: Final = {
    "none": (),
    "readOnly": tuple(tool.name for tool in TOOLS.values() if not tool.changes),
    "coding": tuple(TOOLS),
}
"""The names of the tools that a scope allows."""


def choose_tools(
    scope: str | tuple[str, ...], more: Callable[[str], Iterable[Tool]] = lambda _: ()
) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """Return the tools of a scope, and the unknown names in the scope.

    Args:
        scope: ``none``, ``readOnly``, ``coding``, or tool names. The order of names is kept; duplicates are dropped.
        more: returns the other tools with a name, such as all tools of an MCP server.
    """
    names = SCOPES.get(scope, (scope,)) if isinstance(scope, str) else tuple(dict.fromkeys(scope))
    tools_of = {name: [TOOLS[name]] if name in TOOLS else list(more(name)) for name in names}
    known = {tool.name: tool for tools in tools_of.values() for tool in tools}
    return tuple(known.values()), tuple(name for name, tools in tools_of.items() if not tools)


_WORDS: Final = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}


def check_arguments(tool: Tool, arguments: object) -> dict[str, JSON]:
    """Validate the arguments of a call and convert them to the types of the tool's schema.

    An optional argument may be null, which counts as left out. A whole number may be written as 3.0.

    Raises:
        Refused: the arguments are invalid; the message lists every problem and the valid arguments.
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
