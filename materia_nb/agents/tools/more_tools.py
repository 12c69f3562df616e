"""Tools other than the project tools: functions of a notebook, and the tools of MCP servers in the config.

A server runs for one cast, from the first turn that needs it until the cast ends or is closed. All text from a server
is untrusted: the server's name, and the descriptions and results of its tools. Only the config determines which tools
of a server need no approval.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import json
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO, get_type_hints

from materia_nb import platform
from materia_nb.agents.background import CALLER_LOOP, BackgroundLoop, run_abandonable
from materia_nb.agents.interface import AgentError
from materia_nb.agents.tools import (
    SCOPES,
    TOOLS,
    MoreTools,
    Refused,
    Run,
    Tool,
    ToolResult,
    argument_problems,
    escape_controls,
    safe_name,
)
from materia_nb.errors import MateriaError, named_error, redact_excerpt, redact_library_logs, register_key_variable
from materia_nb.jsonvalue import JSON, as_list, as_object, compact
from materia_nb.platform import HeldInterrupts

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as ServerTool

_STREAM_TIMEOUT_S: Final = 300.0  # Time limit for an HTTP stream on which the server sends nothing, in seconds.
CONNECT_TIMEOUT_S: Final = 30.0
"""Time limit for starting a server and listing its tools, in seconds."""
_CALL_TIMEOUT_S: Final = 120.0  # Default time limit of a tool call, in seconds.
_MAX_TOOLS: Final = 128  # Maximum number of tools that are used from one server.

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,100}")
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_MAX_DESCRIPTION_CHARS: Final = 4_000
_MAX_SCHEMA_CHARS: Final = 50_000
_STOP_TIMEOUT_S: Final = 8.0  # the library ends an unresponsive server after four seconds
_STDERR_CHARS: Final = 500

# -- functions ---------------------------------------------------------------------------------


def function_tool(function: Callable[..., Any], *, name: str | None = None, ask: bool = False) -> Tool:
    """Return a tool that calls a function. The function's parameters and docstring describe the tool.

    The function returns text, or a value that is sent to the model as JSON. If it raises an error, the model receives
    the error as the result and can try again.

    Args:
        function: a sync or async function.
        name: the name of the tool for materia and models; defaults to the name of the function.
        ask: True if each call needs approval.

    Raises:
        AgentError: kind ``bad_tool``: the name is not a valid tool name, or a parameter cannot be described to a model.
    """
    tool_name = str(name or getattr(function, "__name__", type(function).__name__))
    if not _NAME.fullmatch(tool_name) or tool_name in {*TOOLS, *SCOPES}:
        reason = "is already the name of a tool" if tool_name in {*TOOLS, *SCOPES} else "cannot be the name of a tool"
        hint = "choose a name with only letters, digits, `_` and `-`: `wb.tool(function, name=...)`"
        raise AgentError(f"{tool_name!r:.80} {reason}", hint=hint, kind="bad_tool")
    model = describe_arguments(function, tool_name)

    def run(args: Mapping[str, JSON], stop: threading.Event | None) -> ToolResult:
        arguments = model.read(args)
        try:
            return ToolResult(_result_text(_call_function(function, arguments, stop)), ok=True)
        except MateriaError as error:
            if error.kind == "interrupted":  # the call was abandoned
                raise
            return ToolResult(str(error), ok=False)
        except Exception as error:  # noqa: BLE001 - a person's function raises what it likes; the model may do better
            return ToolResult(f"{tool_name} failed with {named_error(error)}", ok=False)

    description = inspect.getdoc(function) or f"Call {tool_name}."
    return Tool(
        tool_name,
        description[:_MAX_DESCRIPTION_CHARS],
        model.schema,
        has_side_effects=True,
        preapproved=not ask,
        run=run,
    )


class Arguments(NamedTuple):
    """The arguments of a function tool.

    ``schema`` describes the arguments to the model. ``read`` validates the arguments of a call and converts them for the
    function; it raises Refused if they are invalid.
    """

    schema: Mapping[str, JSON]
    read: Callable[[Mapping[str, JSON]], dict[str, Any]]


def describe_arguments(
    function: Callable[..., Any], tool_name: str, skip: int = 0, argument_name: Callable[[str], str] = str
) -> Arguments:
    """Return the arguments of a function, except the first ``skip`` parameters.

    ``argument_name`` is a function that returns the name that the model uses for a parameter.

    Raises:
        AgentError: kind ``bad_tool``: a parameter cannot be described to a model.
    """
    from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
    from pydantic.errors import PydanticUserError

    hint = "give each parameter a name and a type that JSON supports, such as str, int, list[str]"
    fields: dict[str, Any] = {}  # by generated names, because some parameter names are not valid field names
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    try:
        hints = get_type_hints(function, include_extras=True)
        for number, parameter in enumerate(parameters):
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise TypeError(f"the parameter {parameter} cannot be passed by name")  # noqa: TRY301 - told as all others
            # The schema only shows a default; a missing argument keeps the default of the function.
            default: Any = parameter.default if isinstance(parameter.default, (str, int, float, list, dict)) else None
            if parameter.default is parameter.empty:
                default = ...
            fields[f"argument_{number}"] = (
                hints.get(parameter.name, Any),
                Field(default, alias=argument_name(parameter.name)),
            )
        model: type[BaseModel] = create_model(tool_name, __config__=ConfigDict(extra="forbid"), **fields)
        schema = model.model_json_schema()
    except (TypeError, ValueError, NameError, PydanticUserError) as error:
        reason = str(error).splitlines()[0]
        message = f"The function {tool_name} cannot be a tool: {reason}"
        raise AgentError(message, hint=hint, kind="bad_tool") from error

    def read(args: Mapping[str, JSON]) -> dict[str, Any]:
        try:
            validated = model.model_validate(dict(args))
        except ValidationError as error:
            raise Refused(f"{tool_name} was not run: {argument_problems(error)}") from None
        fields_set = validated.model_fields_set
        pairs = zip(parameters, fields, strict=True)
        return {parameter.name: getattr(validated, field) for parameter, field in pairs if field in fields_set}

    return Arguments({key: value for key, value in schema.items() if key != "title"}, read)


def _call_function(function: Callable[..., Any], arguments: Mapping[str, Any], stop: threading.Event | None) -> object:
    def work() -> object:
        value = function(**arguments)
        return CALLER_LOOP.get().run(value, stop) if inspect.isawaitable(value) else value

    return work() if inspect.iscoroutinefunction(function) else run_abandonable(work, stop)


def _result_text(value: object) -> str:
    from pydantic_core import to_jsonable_python

    if isinstance(value, str):
        return value
    return "(no result)" if value is None else compact(to_jsonable_python(value, fallback=str))


# -- finding tools -----------------------------------------------------------------------------


def is_known_tool(name: str, more: MoreTools) -> bool:
    """Return True if ``name`` refers to a function tool or begins with the name of a server. No server is started."""
    return name in more.functions or ("." in name and name.partition(".")[0] in more.servers)


class ToolFinder:
    """Finds function tools and server tools by the names that a materia lists.

    A server is started when a name first refers to it.

    Attributes:
        notes: messages about tools that were skipped, each with the reason.
    """

    def __init__(self, more: MoreTools, project: Path, cast: str, stop: threading.Event | None) -> None:
        self._more, self._project, self._run_dir, self._stop = more, project, cast, stop
        self._tools: dict[str, dict[str, Tool]] = {}
        self.notes: list[str] = []

    def __call__(self, name: str) -> Iterable[Tool]:
        """Return the tool with a name, all tools of a server for ``server.*``, or an empty tuple for an unknown name.

        Raises:
            AgentError: kind ``tool_server``: the server cannot be started or reached; kind ``not_installed``: the
                package ``mcp`` is not installed.
        """
        if name in self._more.functions:
            return [self._more.functions[name]]
        if not is_known_tool(name, self._more):
            return []
        server = name.partition(".")[0]
        if server not in self._tools:
            self._tools[server] = {tool.name: tool for tool in self._server_tools(server)}
        tools = self._tools[server]
        return list(tools.values()) if name == f"{server}.*" else [tools[name]] if name in tools else []

    def _server_tools(self, server: str) -> Iterator[Tool]:
        spec = as_object(self._more.servers[server])
        host = _get_server(server, spec, self._project, self._run_dir, self._stop)
        allowed_tools = as_list(spec.get("allow"))
        for number, offered_tool in enumerate(host.offered):
            if number == _MAX_TOOLS:
                self.notes.append(f"{server} offers {len(host.offered)} tools; only the first {_MAX_TOOLS} are used")
                return
            if reason := _reason_to_skip(offered_tool):
                self.notes.append(f"the tool {safe_name(offered_tool.name)} of {server} is skipped: {reason}")
                continue
            yield Tool(
                f"{server}.{offered_tool.name}",
                escape_controls(offered_tool.description or offered_tool.name)[:_MAX_DESCRIPTION_CHARS],
                dict(offered_tool.input_schema),
                has_side_effects=True,
                preapproved=offered_tool.name in allowed_tools or "*" in allowed_tools,
                run=self._tool_runner(server, spec, offered_tool.name),
            )

    def _tool_runner(self, server: str, spec: Mapping[str, JSON], tool: str) -> Run:
        def run(args: Mapping[str, JSON], stop: threading.Event | None) -> ToolResult:
            host = _get_server(server, spec, self._project, self._run_dir, stop)  # a new server if it has ended
            return _LOOP.run(host.call(tool, dict(args)), stop)

        return run


def _reason_to_skip(tool: ServerTool) -> str:
    if not _TOOL_NAME.fullmatch(tool.name):
        return "its name is not a valid tool name"
    if tool.input_schema.get("type") != "object":
        return "its arguments are not an object"
    size = len(compact(tool.input_schema))
    return f"the description of its arguments has {size:,} characters" if size > _MAX_SCHEMA_CHARS else ""


# -- servers -------------------------------------------------------------------------------------

_LOOP: Final = BackgroundLoop()
_OPEN_SERVERS: Final[dict[tuple[str, ...], _Server]] = {}  # changed on the loop alone


def close_servers(cast: str | None = None) -> None:
    """Stop the servers of the cast whose run directory is ``cast``, or all servers if ``cast`` is None.

    The run directory identifies the cast, because cast ids are not unique (R69).
    """
    if any(cast in (None, key[0]) for key in tuple(_OPEN_SERVERS)):
        _LOOP.run(_end_servers(cast))


async def _end_servers(cast: str | None) -> None:
    servers = [_OPEN_SERVERS.pop(key) for key in tuple(_OPEN_SERVERS) if cast in (None, key[0])]
    tasks = [server.end() for server in servers]
    if tasks:
        await asyncio.wait(tasks, timeout=_STOP_TIMEOUT_S)


def _get_server(name: str, spec: Mapping[str, JSON], project: Path, cast: str, stop: threading.Event | None) -> _Server:
    """Return the server of a cast, after starting or connecting it if necessary."""
    if find_spec("mcp") is None:
        hint = 'pip install "materia-nb[mcp]"'
        raise AgentError(
            "Tools of MCP servers need the package `mcp`", where=f"mcpServers.{name}", hint=hint, kind="not_installed"
        )
    if not platform.CAN_START_PROCESSES or not platform.CAN_START_THREADS:
        raise _server_error(name, "this kernel cannot start processes")
    with HeldInterrupts():  # a package stays broken in this kernel if its import was interrupted
        import mcp  # noqa: F401

    redact_library_logs()
    return _LOOP.run(_open_on_loop((cast, name, str(project), compact(spec)), spec), stop)


async def _open_on_loop(key: tuple[str, ...], spec: Mapping[str, JSON]) -> _Server:
    host = _OPEN_SERVERS.get(key)
    if host is None or not host.is_usable():
        if not _OPEN_SERVERS:
            atexit.unregister(close_servers)
            atexit.register(close_servers)
        host = _OPEN_SERVERS[key] = _Server(key[1], spec, key[2])
    await asyncio.shield(host.ready)
    return host


class _Server:
    """A connection to a server.

    One task opens and closes the connection, as the library requires; other tasks make the calls.

    Attributes:
        ready: a future that is done when the server has listed its tools or could not be started.
        offered: the tools of the server.
    """

    def __init__(self, name: str, spec: Mapping[str, JSON], project: str) -> None:
        self._name, self._spec, self._project = name, spec, project
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self.offered: list[ServerTool] = []
        self._close_requested = asyncio.Event()
        self._client: Client | None = None
        self._task = self._loop.create_task(self._keep_open())

    def is_usable(self) -> bool:
        """Return True if the server is running or starting."""
        return self._loop is asyncio.get_running_loop() and not self._task.done() and not self._close_requested.is_set()

    def end(self) -> asyncio.Task[None]:
        """Stop the server and return its task."""
        self._close_requested.set()
        return self._task

    async def _keep_open(self) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(CONNECT_TIMEOUT_S):
                        self._client = await stack.enter_async_context(await self._make_client(stack, stderr))
                        self.offered = await _list_tools(self._client)
                    self.ready.set_result(None)
                    await self._close_requested.wait()
            except Exception as error:  # noqa: BLE001 - what servers, transports and the library raise
                if not self.ready.done():
                    self.ready.set_exception(_server_error(self._name, _error_cause(error), _stderr_tail(stderr)))
                    self.ready.exception()  # retrieved, so that asyncio does not log an error that nobody awaits
            finally:
                self._close_requested.set()

    async def _make_client(self, stack: AsyncExitStack, stderr: TextIO) -> Client:
        import httpx2
        from mcp import Client, StdioServerParameters
        from mcp.client.stdio import stdio_client
        from mcp.client.streamable_http import streamable_http_client

        seconds = (self._spec.get("timeoutMs") or _CALL_TIMEOUT_S * 1000) / 1000
        if (url := self._spec.get("url")) is not None:
            timeouts = httpx2.Timeout(CONNECT_TIMEOUT_S, read=_STREAM_TIMEOUT_S)
            http = httpx2.AsyncClient(headers=_fill_variables(self._name, self._spec.get("headers")), timeout=timeouts)
            await stack.enter_async_context(http)
            return Client(
                streamable_http_client(_fill_text(self._name, url), http_client=http), read_timeout_seconds=seconds
            )
        start = StdioServerParameters(
            command=_fill_text(self._name, self._spec["command"]),
            args=[_fill_text(self._name, argument) for argument in as_list(self._spec.get("args"))],
            env=_fill_variables(self._name, self._spec.get("env")),
            cwd=self._project,
            encoding_error_handler="replace",
        )
        return Client(stdio_client(start, stderr), read_timeout_seconds=seconds)

    async def call(self, tool: str, args: dict[str, JSON]) -> ToolResult:
        """Call a tool and return its result; errors are also returned as results."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        assert self._client is not None  # noqa: S101 - it is ready
        try:
            result = await self._client.call_tool(tool, args)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                self._close_requested.set()
                return ToolResult(f"The server {self._name} has ended; the next call restarts it.", ok=False)
            return ToolResult(f"{self._name} rejected the call: {error.message}", ok=False)
        except Exception as error:  # noqa: BLE001 - transports and checks of results raise all sorts
            return ToolResult(f"The call of {self._name} failed: {_error_cause(error)}", ok=False)
        return ToolResult(_content_text(result), ok=not result.is_error)


async def _list_tools(client: Client) -> list[ServerTool]:
    result = await client.list_tools()
    tools = list(result.tools)
    while result.next_cursor and len(tools) <= _MAX_TOOLS:
        result = await client.list_tools(cursor=result.next_cursor)
        tools += result.tools
    return tools


def _content_text(result: CallToolResult) -> str:
    """Return the content of a result as text, with placeholders for images and other data."""
    parts = []
    for block in result.content:
        match block.type:
            case "text":
                parts.append(block.text)
            case "image" | "audio":
                parts.append(f"[{block.mime_type}, {len(block.data):,} characters of base64, not shown]")
            case "resource_link":
                parts.append(f"[{block.uri}]")
            case _:
                parts.append(getattr(block.resource, "text", f"[{block.resource.uri}, not shown]"))
    if not parts and result.structured_content is not None:
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    return "\n".join(parts) or "(no result)"


def _fill_variables(server: str, variables: JSON) -> dict[str, str]:
    return {key: _fill_text(server, value) for key, value in as_object(variables).items()}


def _fill_text(server: str, text: JSON) -> str:
    """Replace each ``${NAME}`` with the value of the environment variable, and register the value as a secret."""

    def replace_variable(match: re.Match[str]) -> str:
        register_key_variable(match[1])
        if match[1] not in os.environ:
            raise _server_error(server, f"the environment variable {match[1]} is not set")
        return os.environ[match[1]]

    return _VARIABLE.sub(replace_variable, str(text))


def _error_cause(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, AgentError):
        return error.what
    if isinstance(error, TimeoutError):
        return f"it did not respond within {CONNECT_TIMEOUT_S:g} s"
    return named_error(error) if isinstance(error, Exception) else type(error).__name__


def _stderr_tail(stderr: TextIO) -> str:
    stderr.seek(0)
    return redact_excerpt(escape_controls(stderr.read()[-_STDERR_CHARS:]), start=True).strip()


def _server_error(server: str, reason: str, stderr: str = "") -> AgentError:
    output = f"; its stderr: {stderr}" if stderr else ""
    return AgentError(
        f"The MCP server {server} cannot be used: {reason}{output}",
        where=f"mcpServers.{server}",
        hint="correct its `command` or `url` in the config, then run `retry --turn`",
        kind="tool_server",
    )
