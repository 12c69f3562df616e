"""Tools for model agents: their definitions, scopes and results, and the validation of arguments.

``Toolbox`` in ``file_tools.py`` runs the file tools and the shell.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeAlias

from materia_nb.file_io import read_package_toml
from materia_nb.jsonvalue import JSON

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

__all__ = ["MAX_RESULT_CHARS", "MoreTools", "Tool", "ToolResult", "choose_tools"]

MAX_RESULT_CHARS: Final = 32_000
"""Maximum length of a tool result, in characters."""

_MAX_NAME_CHARS: Final = 200
_CONTROL_CHARACTERS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_TAIL_SHARE: Final = 3  # a long text keeps its beginning and its end; the end gets a third of the room


@dataclass(frozen=True, slots=True)
class Tool:
    """The description of a tool for a model, and the function that runs the tool.

    Attributes:
        name: the name under which the model calls the tool.
        description: the description that the model reads.
        parameters: the JSON Schema of the arguments, an object without additional properties.
        has_side_effects: True if the tool can change something. It then needs approval, and each call is recorded before
            it runs.
        preapproved: True if the tool needs no approval although it can change something.
        run: the function that runs the tool, or None for the project tools, which :class:`Toolbox` runs.
    """

    name: str
    description: str
    parameters: Mapping[str, JSON]
    has_side_effects: bool
    preapproved: bool = False
    run: Run | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call, as text for the model. ``ok`` is True if the call succeeded."""

    text: str
    ok: bool


Run: TypeAlias = "Callable[[Mapping[str, JSON], threading.Event | None], ToolResult]"
"""A function that runs a tool with its arguments and an event that is set when the cast must stop."""


class MoreTools(NamedTuple):
    """The tools other than the project tools: functions by name, and the MCP servers of the config.

    ``run_dir`` is the run directory of the cast that uses the servers.
    """

    functions: Mapping[str, Tool] = {}
    servers: Mapping[str, JSON] = {}
    run_dir: str = ""


class Refused(Exception):
    """Raised when a tool call cannot run as requested.

    The message explains the reason to the model and, where possible, what to do instead.
    """


def escape_controls(text: str) -> str:
    r"""Escape control characters in text, for example as ``\x1b``. Line feeds and tabs are not escaped.

    Bytes that are not UTF-8 and were decoded with ``surrogateescape`` are also escaped.
    """
    return _CONTROL_CHARACTERS.sub(_escape, text.replace("\r\n", "\n"))


def safe_name(text: str) -> str:
    """Shorten an untrusted name to one line and escape its control characters, for use in a message."""
    line = escape_controls(text[:_MAX_NAME_CHARS]).replace("\n", "\\n").replace("\t", "\\t")
    return line + "…" if len(text) > _MAX_NAME_CHARS else line


def cut_middle(text: str) -> str:
    """Shorten text to :data:`MAX_RESULT_CHARS` characters by replacing its middle with a note about its length."""
    if len(text) <= MAX_RESULT_CHARS:
        return text
    room = MAX_RESULT_CHARS - 60
    tail = room // _TAIL_SHARE
    notice = f"\n[... {len(text) - room:,} characters left out ...]\n"
    return text[: room - tail] + notice + text[-tail:]


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if match[0] == "\r":
        return "\\r"
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"


SHELL_TIMEOUT_S: Final = 120
"""Default time limit of a shell command, in seconds."""

DEFAULT_LINES: Final = 1_000
"""Default maximum number of lines that ``read`` returns."""


def _parse_tool(name: str, row: dict[str, Any]) -> Tool:
    parameters: dict[str, JSON] = {
        "type": "object",
        "properties": row["properties"],
        "required": row.get("required", []),
        "additionalProperties": False,
    }
    return Tool(name, row["description"], parameters, row.get("changes", False))


_TOOL_ROWS: Final = read_package_toml(__file__, "tools.toml")
TOOLS: Final = {name: _parse_tool(name, row) for name, row in _TOOL_ROWS.items()}
"""The project tools, by name."""

SCOPES: Final = {
    "none": (),
    "readOnly": tuple(tool.name for tool in TOOLS.values() if not tool.has_side_effects),
    "coding": tuple(TOOLS),
}
"""The names of the tools that each scope allows."""


def choose_tools(
    scope: str | tuple[str, ...], more: Callable[[str], Iterable[Tool]] = lambda _: ()
) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """Return the tools of a scope, and the names in the scope that are unknown.

    Args:
        scope: ``none``, ``readOnly``, ``coding``, or a tuple of tool names. The order of the names is preserved, and
            duplicates are removed.
        more: a function that returns the other tools with the given name, such as all tools of an MCP server.
    """
    names = SCOPES.get(scope, (scope,)) if isinstance(scope, str) else tuple(dict.fromkeys(scope))
    tools_of = {name: [TOOLS[name]] if name in TOOLS else list(more(name)) for name in names}
    tools_by_name = {tool.name: tool for tools in tools_of.values() for tool in tools}
    return tuple(tools_by_name.values()), tuple(name for name, tools in tools_of.items() if not tools)


_BOUNDS: Final = {"minimum": "ge", "exclusiveMinimum": "gt", "maximum": "le"}


@cache
def _arguments_model(name: str) -> type[BaseModel]:
    from pydantic import ConfigDict, Field, FiniteFloat, create_model

    types: dict[str, Any] = {
        "string": str,
        "boolean": bool,
        "number": FiniteFloat,
        "integer": Annotated[FiniteFloat, Field(multiple_of=1)],  # some models write 3.0 for 3
    }
    fields: dict[str, Any] = {}
    required = TOOLS[name].parameters["required"]
    for argument, schema in TOOLS[name].parameters["properties"].items():
        value_type: Any = Annotated[
            types[schema["type"]], Field(**{_BOUNDS[key]: schema[key] for key in _BOUNDS if key in schema})
        ]
        fields[argument] = value_type if argument in required else (value_type | None, None)
    return create_model(name, __config__=ConfigDict(extra="forbid", strict=True), **fields)


def check_arguments(tool: Tool, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """Validate the arguments of a call and convert them to the types in the tool's schema.

    An optional argument may be null, which has the same effect as omitting it.

    Raises:
        Refused: the arguments are invalid. The message lists all problems and the valid arguments.
    """
    from pydantic import ValidationError

    properties, required = tool.parameters["properties"], tool.parameters["required"]
    try:
        validated = _arguments_model(tool.name).model_validate(arguments).model_dump(exclude_none=True)
    except ValidationError as error:
        names = ", ".join(name if name in required else f"{name} (optional)" for name in properties)
        raise Refused(f"{tool.name} was not run: {argument_problems(error)}. The arguments are {names}.") from None
    return {name: int(value) if properties[name]["type"] == "integer" else value for name, value in validated.items()}


def argument_problems(error: ValidationError) -> str:
    """Return a sentence fragment that lists the problems of invalid arguments, each with the name of the argument."""
    return "; ".join(
        f"{safe_name('.'.join(map(str, problem['loc'])) or 'the arguments')}: {safe_name(problem['msg'])}"
        for problem in error.errors(include_url=False, include_input=False)[:10]
    )
