"""Tools for model agents: definitions, results, scopes, and the validation of arguments.

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
"""A function that runs a tool. It receives the arguments, and an event that is set when the cast must stop."""


class MoreTools(NamedTuple):
    """The tools that are not project tools: functions by name, and the MCP servers of the config.

    ``run_dir`` is the run directory of the cast for which the servers run.
    """

    functions: Mapping[str, Tool] = {}
    servers: Mapping[str, JSON] = {}
    run_dir: str = ""


class Refused(Exception):
    """A tool call cannot run as requested. The message explains the reason and the alternative to the model."""


def readable(text: str) -> str:
    r"""Return text with control characters escaped, such as ``\x1b``. Line feeds and tabs are kept.

    Bytes that were decoded with ``surrogateescape``, because they were not UTF-8, are escaped in the same way.
    """
    return _CONTROL.sub(_escape, text.replace("\r\n", "\n"))


def named(text: str) -> str:
    """Return a short untrusted text, such as a name, on one line and shortened, for use inside a message."""
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


SHELL_TIMEOUT_S: Final = 120
"""Default time limit of a command, in seconds."""

DEFAULT_LINES: Final = 1_000
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
    """Validate the arguments of a call and convert them to the types of the tool's schema.

    An optional argument may be null, which counts as left out.

    Raises:
        Refused: the arguments are invalid; the message lists every problem and the valid arguments.
    """
    from pydantic import ValidationError

    properties, required = tool.parameters["properties"], tool.parameters["required"]
    try:
        checked = _arguments_model(tool.name).model_validate(arguments).model_dump(exclude_none=True)
    except ValidationError as error:
        names = ", ".join(name if name in required else f"{name} (optional)" for name in properties)
        raise Refused(f"{tool.name} was not run: {argument_problems(error)}. It takes {names}.") from None
    return {name: int(value) if properties[name]["type"] == "integer" else value for name, value in checked.items()}


def argument_problems(error: ValidationError) -> str:
    """Return the problems of invalid arguments in words, each with the name of the argument."""
    return "; ".join(
        f"{named('.'.join(map(str, problem['loc'])) or 'the arguments')}: {named(problem['msg'])}"
        for problem in error.errors(include_url=False, include_input=False)[:10]
    )
