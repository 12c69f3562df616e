"""Tools for agents that are models: files inside the project, and a shell that needs leave.

The toolbox is the one door to them: arguments checked, results bounded and without keys, nothing raised at the model.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from materia_nb.agents.tools.confine import Root, Workplace
from materia_nb.agents.tools.file_tools import bash, edit, find, grep, ls, read, write
from materia_nb.agents.tools.tool import (
    MOST_TEXT,
    TOOLS,
    MoreTools,
    Refused,
    Tool,
    ToolResult,
    choose_tools,
    named,
    readable,
    within_most,
)
from materia_nb.errors import did_you_mean, scrubbed
from materia_nb.jsonvalue import JSON
from materia_nb.platform import HeldInterrupts

__all__ = ["MOST_TEXT", "MoreTools", "Tool", "ToolResult", "Toolbox", "choose_tools"]

_WORDS: Final = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}


def checked_arguments(tool: Tool, given: object) -> dict[str, JSON]:
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


_RUN: Final = {one.__name__: one for one in (read, grep, find, ls, bash, edit, write)}


class Toolbox:
    """The tools, at work in one project.

    Which of them a model may use, and whether it needs leave, is for the caller to decide: see
    :func:`~materia_nb.agents.tools.choose_tools` and ``Tool.changes``.

    Args:
        project: the directory that the tools for files stay inside, and commands start in.
        stop: ends a call when set.
        more: tools from elsewhere, each with what runs it.
    """

    def __init__(self, project: Path, stop: threading.Event | None = None, more: Iterable[Tool] = ()) -> None:
        self._work = Workplace(Root(project), stop)
        self._more = {tool.name: tool for tool in more if tool.run is not None}
        # A model can ask for several edits of a file at once: each must see what the one before left.
        self._files = threading.Lock()

    def call(self, name: str, args: Mapping[str, JSON]) -> ToolResult:
        """Run a tool and wait for it. May be called from several threads.

        What cannot be done, for whatever reason in the name or the arguments, is a result that is not
        ``ok`` and says why.

        Raises:
            KeyboardInterrupt: interrupted; nothing is left running or half-written.
        """
        more = self._more.get(name)
        if more is not None and more.run is not None:  # an interrupt reaches it
            try:
                result = more.run(args, self._work.stop)
            except Refused as error:
                result = ToolResult(str(error), ok=False)
            return ToolResult(within_most(scrubbed(readable(result.text))), ok=result.ok)
        # Nothing that a tool has opened may stay open; one that runs a process ends it.
        with HeldInterrupts():
            try:
                result = self._run(name, args)
            except (Refused, OSError) as error:
                result = ToolResult(readable(str(error)), ok=False)
            # Before it is cut: of a key that was cut in two a half would stay.
            return ToolResult(within_most(scrubbed(result.text)), ok=result.ok)

    def _run(self, name: str, args: Mapping[str, JSON]) -> ToolResult:
        if name not in TOOLS:
            raise Refused(f"There is no tool {named(name)!r}: {did_you_mean(name, TOOLS)}")
        given = checked_arguments(TOOLS[name], args)
        self._work.go_on()
        with self._files if name in ("edit", "write") else nullcontext():
            return _RUN[name](self._work, given)
