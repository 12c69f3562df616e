"""Models of materia: agents and utilities."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field

from materia_nb.errors import did_you_mean
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import BUILT_IN, TOOL_SCOPES, is_object, is_text, script_file
from materia_nb.loadout.fields import (
    ASSIGN,
    CONTEXT_SHAPE,
    TEXT_SCHEMA,
    TEXTS_SCHEMA,
    AnyKey,
    AnyText,
    ContextValue,
    Fault,
    Flag,
    Milliseconds,
    Model,
    Parse,
    SomeText,
    SourceText,
    ValueKind,
    known,
    word_of,
)
from materia_nb.loadout.graph import DEFAULT_TIMEOUT_MS
from materia_nb.loadout.report import INVALID_MATERIA, brief


def _is_part(part: JSON) -> bool:
    if isinstance(part, str) and "\0" in part:
        raise Fault(f"{brief(part)} holds a NUL character", "no program can be given one: remove it")
    return isinstance(part, str) and bool(part)


def _names_a_program(command: list[str]) -> list[str]:
    if not command[0].strip():
        raise Fault("the program of the command has no name", "write one, such as python3", "[0]")
    return command


def _are_tools(tools: JSON) -> bool:
    custom = is_object(tools) and tools.get("type") == "custom"
    names = tools.get("tools") if custom else tools
    if isinstance(names, list) and all(is_text(name) for name in names):
        return True
    if names in TOOL_SCOPES and not custom:
        return True
    meant = f" ({did_you_mean(names, TOOL_SCOPES)})" if isinstance(names, str) else ""
    raise Fault(f"tools is {brief(names)}", _SCOPES + meant, ".tools" if custom else "")


_SCOPES: Final = 'write "none", "readOnly", "coding" or a list of tool names'
_CUSTOM: Final = {
    "type": "object",
    "properties": {"type": {"const": "custom"}, "tools": TEXTS_SCHEMA},
    "required": ["type", "tools"],
}
Tools: TypeAlias = Annotated[
    JSON, ValueKind(_are_tools, {"anyOf": [{"enum": [*TOOL_SCOPES]}, TEXTS_SCHEMA, _CUSTOM]})
]
CommandPart: TypeAlias = Annotated[
    str, ValueKind(_is_part, TEXT_SCHEMA, "write each part as a string that is not empty")
]
ScriptName: TypeAlias = Annotated[
    str,
    ValueKind(
        lambda value: script_file(value) is not None,
        TEXT_SCHEMA,
        "write a plain file name that ends with .py, without a directory",
    ),
]


class _Materia(Model):
    """What agents and utilities share."""

    example = "{ ... } with its fields"
    code = INVALID_MATERIA

    type: Annotated[str, word_of(("agent", "utility"))] = known(
        "`agent` or `utility`. Left out: a utility if it has a command or script, else an agent.",
        "agent or utility",
        "R26",
        apart=True,
    )
    label: JSON = known("A name for people; left out, its id.", "text")
    description: JSON = known("What it is for.", "text")
    group: JSON = known(
        "Under which heading the palette of the designer lists it; left out, `Utility` for a utility.", "text"
    )
    color: JSON = known(
        "Its colour in the pictures: `#rgb`, `#rrggbb`, or a name such as `teal`; left out, that of its kind.",
        "colour",
    )
    generator: Flag = known(
        "Whether it produces work items. Its output is then json with `workItems`.",
        "true or false",
        "R4",
        "R9",
        first=4,
        label="makes items",
    )
    lock_state: JSON = known("Kept for the reference's editor.", "locked or unlocked")
    catalog_origin: JSON = known("Kept for the reference's editor.", "object")
    parallel: Flag = known(
        "Whether a generator hands its items to streams, whose lanes run side by side. Its output then holds a "
        "`parallelSchedule` beside `workItems`.",
        "true or false",
        label="in streams",
    )
    parallel_safe: Flag = known(
        "Whether it may work in a lane beside others, which every materia there must say.",
        "true or false",
        label="safe in lanes",
    )
    parallel_planner: Flag = known("An older name of `parallel`.", "true or false")


class AgentMateria(_Materia):
    """A materia that a model, a person or a function answers for."""

    words = "an agent"

    prompt: SomeText = known(
        "What it is asked to do, with `{{...}}` variables. Required.",
        "text",
        "R26",
        "R31",
        required=True,
        write='write what the agent is to do (or, if a process is meant, "type": "utility")',
        first=1,
        prose=True,
    )
    tools: Tools = known(
        "Which tools it may use: `none`, `readOnly`, `coding`, a list of names, or "
        '`{"type": "custom", "tools": [...]}`. Required.',
        "scope or list of names",
        "R26",
        required=True,
        write=_SCOPES,
        first_value="none",
        first=3,
    )
    model: AnyText = known("Which model answers; left out, the default of its agent.", "text", "R26", first=2)
    thinking: AnyText = known("How long the model may think, in the words of its agent.", "text")
    multi_turn: Flag = known(
        "Whether a person refines drafts before the final answer.",
        "true or false",
        "R26",
        first=5,
        label="drafts",
    )
    cast_context: ContextValue | None = known(
        "What it is told of the cast wherever a socket that places it does not say.",
        CONTEXT_SHAPE,
        "R50",
        label="context",
    )
    parse: Parse = known("How its output is read.", "json or text", "R4", ignored="write it on the socket")


class Script(Model):
    """A script that is shipped with this package."""

    words = "a script"
    example = '{"kind": "shippedUtility", "name": "detect-vcs.py"}'
    code = INVALID_MATERIA

    kind: Annotated[str, word_of(("shippedUtility",))] = known(
        "Always `shippedUtility`. Required.",
        "shippedUtility",
        "R25",
        required=True,
        write='write "shippedUtility", or use command for a script of your own',
    )
    name: ScriptName = known(
        "Its file name; a name in `.mjs` means the `.py` of that name. Required.",
        "file name",
        "R25",
        required=True,
    )
    runtime: JSON = known(
        "What ran it elsewhere.", "text", ignored="scripts run with the kernel's own Python"
    )


class UtilityMateria(_Materia):
    """A materia that is a process."""

    words = "a utility"

    command: Annotated[list[CommandPart], Field(min_length=1), AfterValidator(_names_a_program)] | None = (
        known(
            "The program and its arguments. No shell is used. Either this or `script` is required.",
            "list of text",
            "R23",
            "R24",
            write='write a list of strings, such as ["python3", "script.py"]; no shell is used',
            first=1,
        )
    )
    script: Script | None = known("A shipped script in place of a command.", "object", "R25")
    params: dict[AnyKey, JSON] | None = known(
        "Parameters, handed to the process on stdin.", "object", "R23", write="write an object: { ... }"
    )
    parse: Parse = known(
        "How its stdout is read: `json` or `text` (the default).",
        "json or text",
        "R4",
        "R6",
        first=2,
        label="output",
    )
    assign: dict[AnyKey, SourceText] | None = known(
        "What is kept in the state, in order: dotted target -> source.",
        "object of sources",
        "R4",
        "R11",
        write=ASSIGN,
    )
    timeout_ms: Milliseconds = known(
        "How long it may run.",
        "milliseconds above 0",
        "R23",
        default=DEFAULT_TIMEOUT_MS,
        write="write a number of milliseconds above 0, such as 30000",
        first=4,
        label="time limit",
        unit="milliseconds",
    )
    multi_turn: Flag = known("Drafts.", "true or false", ignored="a process gives one answer")
    utility: JSON = known(
        f"A shipped script by the name that it has in the reference engine, in place of `script`: "
        f"{', '.join(f'`{name}`' for name in BUILT_IN)}.",
        "text",
        "R61",
    )
