"""The format of a config: every field that means something here, described once; its JSON Schema for editors.

What a loadout is made of is in ``models_graph.py``; materia and all else are here.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, Field
from pydantic.json_schema import models_json_schema

from materia_nb.errors import did_you_mean
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import graph
from materia_nb.loadout.facts import BUILT_IN, TOOL_SCOPES, is_object, is_text, script_file
from materia_nb.loadout.fields import (
    ASSIGN,
    CONTEXT_SHAPE,
    TEXT_SCHEMA,
    TEXTS_SCHEMA,
    Amount,
    AnyKey,
    AnyText,
    Artifacts,
    ContextValue,
    Count,
    CountFromOne,
    DateText,
    Fault,
    FieldRow,
    FilesField,
    Flag,
    Milliseconds,
    Model,
    Parse,
    PathText,
    Percent,
    PromptCharacters,
    Reference,
    SomeText,
    SourceText,
    Texts,
    TextsByName,
    ValueKind,
    known,
    rows_of,
    word_of,
)
from materia_nb.loadout.graph import CAST_CONTEXTS, DEFAULT_TIMEOUT_MS
from materia_nb.loadout.models_graph import (
    AdvanceFields,
    Assignment,
    Consumes,
    EdgeFields,
    ExitRouteFields,
    Foreach,
    IteratorFields,
    LegacyExit,
    Loadout,
    LoopFields,
    Parallel,
    SocketFields,
    SocketLimits,
)
from materia_nb.loadout.report import INVALID_CONFIG, INVALID_MATERIA, brief

__all__ = [
    "MODELS",
    "AgentMateria",
    "BudgetFields",
    "Config",
    "Consumes",
    "FieldRow",
    "IteratorFields",
    "LimitsFields",
    "Loadout",
    "PriceFields",
    "SocketFields",
    "UtilityMateria",
    "config_fields",
    "config_schema",
    "field_schemas",
]


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
_CommandPart: TypeAlias = Annotated[
    str, ValueKind(_is_part, TEXT_SCHEMA, "write each part as a string that is not empty")
]
_ScriptName: TypeAlias = Annotated[
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
        "The heading under which the designer's palette lists it; left out, `Utility` for a utility.", "text"
    )
    color: JSON = known(
        "Its colour in the pictures: `#rgb`, `#rrggbb`, or a name such as `teal`; left out, the colour of its kind.",
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
        "Whether a generator distributes its items to streams, whose lanes run in parallel. Its output then contains a "
        "`parallelSchedule` besides `workItems`.",
        "true or false",
        label="in streams",
    )
    parallel_safe: Flag = known(
        "Whether it may run in parallel lanes; required of every materia there.",
        "true or false",
        label="safe in lanes",
    )
    parallel_planner: Flag = known("An older name of `parallel`.", "true or false")


class AgentMateria(_Materia):
    """A materia that a model, a person or a function answers for."""

    words = "an agent"

    prompt: SomeText = known(
        "Its task, with `{{...}}` variables. Required.",
        "text",
        "R26",
        "R31",
        required=True,
        write='write what the agent is to do (or, if a process is meant, "type": "utility")',
        first=1,
        prose=True,
    )
    tools: Tools = known(
        "The tools that it may use: `none`, `readOnly`, `coding`, a list of names, or "
        '`{"type": "custom", "tools": [...]}`. Required.',
        "scope or list of names",
        "R26",
        required=True,
        write=_SCOPES,
        first_value="none",
        first=3,
    )
    model: AnyText = known(
        "The model that answers; left out, the default of its agent.", "text", "R26", first=2
    )
    thinking: AnyText = known("How long the model may think, in the terms of its agent.", "text")
    multi_turn: Flag = known(
        "Whether a person refines drafts before the final answer.",
        "true or false",
        "R26",
        first=5,
        label="drafts",
    )
    cast_context: ContextValue | None = known(
        "What it sees of the cast, unless its socket sets it.",
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
    name: _ScriptName = known(
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

    command: Annotated[list[_CommandPart], Field(min_length=1), AfterValidator(_names_a_program)] | None = (
        known(
            "The program and its arguments. No shell is used. Either this or `script` is required.",
            "list of text",
            "R23",
            "R24",
            write='write a list of strings, such as ["python3", "script.py"]; no shell is used',
            first=1,
        )
    )
    script: Script | None = known("A shipped script instead of a command.", "object", "R25")
    params: dict[AnyKey, JSON] | None = known(
        "Parameters, passed to the process on stdin.", "object", "R23", write="write an object: { ... }"
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
        "What is saved in the state, in order: dotted target -> source.",
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
        f"A shipped script by its name in the reference engine, instead of `script`: "
        f"{', '.join(f'`{name}`' for name in BUILT_IN)}.",
        "text",
        "R61",
    )


_LIMITS: Final = graph.Limits()
_BUDGET: Final = graph.Budget()


class BudgetFields(Model):
    """How much a cast may use."""

    words = "a budget"

    max_tokens: Count | None = known(
        "Tokens, input and output together, after which the cast stops.", "whole number from 0 up", "R20"
    )
    warn_at_percent: Percent | None = known(
        "When to warn.", "percent", "R20", default=_BUDGET.warn_at_percent
    )
    max_cost_usd: Amount | None = known(
        "Cost in US dollars, as far as it is known, after which the cast stops.",
        "number from 0 up",
        "R20",
        "R56",
    )
    max_seconds: Amount | None = known(
        "Seconds that agents and processes work, not counting waiting for a person, after which the cast stops.",
        "number from 0 up",
        "R20",
        "R56",
    )
    max_turns: Count | None = known(
        "Turns of agents, including drafts and repairs, after which the cast stops.",
        "whole number from 0 up",
        "R20",
    )
    stop_at_limit: JSON = known("Whether the maximum stops the cast, which it always does.", "true", "R20")


class PriceFields(Model):
    """What a model costs."""

    words = "a price"
    example = '{"input": 1.25, "output": 10}'

    input: Amount = known(
        "US dollars for a million tokens of input.", "number from 0 up", "R56", required=True
    )
    output: Amount = known(
        "US dollars for a million tokens of output, including thinking.",
        "number from 0 up",
        "R56",
        required=True,
    )
    cached: Amount | None = known(
        "US dollars for a million tokens of input that came from a cache; left out, the price of other input.",
        "number from 0 up",
    )
    as_of: DateText | None = known("The date of this price.", "date, as 2026-11-23")


class LimitsFields(Model):
    """Bounds of a cast."""

    words = "limits"

    repair_attempts: Count = known(
        "Repair turns after an invalid agent output.",
        "whole number from 0 up",
        "R19",
        default=_LIMITS.repair_attempts,
    )
    max_no_advance_cycles: Count = known(
        "Cycles without an advance to the next item.",
        "whole number from 0 up",
        "R18",
        default=_LIMITS.max_no_advance_cycles,
    )
    max_edge_traversals: CountFromOne = known(
        "Traversals, outside items, of an edge without maxTraversals.",
        "whole number from 1 up",
        "R18",
        default=_LIMITS.max_edge_traversals,
    )
    prompt_characters: PromptCharacters = known(
        "The most characters in one prompt.",
        "whole number from 4,000 up",
        "R50",
        default=_LIMITS.prompt_characters,
    )
    max_socket_visits: JSON = known(
        "Visits of a socket.", "whole number", "R21", ignored="visits are counted and shown, never enforced"
    )


class Parallelism(Parallel):
    """How many lanes run at once where a loop does not say."""

    code = INVALID_CONFIG


class McpServer(Model):
    """A server of tools for models, by the Model Context Protocol; ``${NAME}`` in a text is read from the environment."""

    words = "a server"
    example = '{"command": "mcp-server-time", "args": []}'

    command: SomeText | None = known("The program, which speaks on stdin and stdout.", "text")
    args: Texts | None = known("Its arguments.", "list of texts")
    env: TextsByName | None = known(
        "Environment variables, in addition to PATH, HOME and the like.", "object of texts"
    )
    url: SomeText | None = known("Its address, if it uses HTTP.", "address")
    headers: TextsByName | None = known("Headers to send to it.", "object of texts")
    allow: Texts | None = known(
        "Its tools that need no approval, `*` for all; every other call asks.", "list of names"
    )
    timeout_ms: Milliseconds | None = known(
        "How long a call may take.", "milliseconds above 0", default=120_000
    )
    type: JSON = known("Written by other programs.", "text", ignored="a command or a url is enough")


class Config(Model):
    """A config file."""

    words = "a config"
    example = '{"loadouts": { ... }, "materia": { ... }}'

    schema_: JSON = known(
        "The JSON Schema that an editor checks this file with; `materia schema` prints it.",
        "path or address",
        name="$schema",
    )

    artifact_dir: PathText | None = known(
        "The directory for run directories, relative to the project; left out, `.pi/pi-materia`.",
        "path",
        "R29",
        write='write a path, such as ".pi/pi-materia"',
    )
    artifacts: Artifacts | None = known(
        "Which derived files a cast writes: the outputs of sockets (`outputs`), or `all`, including the prompt of each turn.",
        "outputs or all",
        "R63",
        default="outputs",
    )
    files: FilesField | None = known(
        "Whether the project's files are saved after each step, which needs Git: without the files that Git ignores (`kept`), or "
        "with them (`kept with ignored`).",
        "as they are, kept, kept with ignored",
        default="as they are",
    )
    active_loadout: Reference | None = known("The loadout to cast; left out, the first.", "name of a loadout")
    loadouts: dict[AnyKey, JSON] = known(
        "Name -> loadout. Required.",
        "object",
        "R26",
        required=True,
        least=1,
        missing="the config has no loadouts",
        write='write {"My loadout": {"entry": ..., "sockets": ...}}',
    )
    materia: dict[AnyKey, JSON] | None = known("Id -> materia.", "object", "R26")
    budget: BudgetFields | None = known("How much a cast may use.", "object", "R20")
    prices: dict[AnyKey, PriceFields | None] | None = known(
        "Your prices: `provider:model`, or the name of any other agent -> price. They replace the known price of a model, and "
        "the cost that a program reports.",
        "object",
        "R56",
    )
    limits: LimitsFields | None = known("Bounds of a cast.", "object", "R18", "R19")
    cast_context: ContextValue | None = known(
        "What agents see of the cast, unless their socket, materia or loadout sets it.",
        CONTEXT_SHAPE,
        "R50",
        default=next(iter(CAST_CONTEXTS)),
    )
    keep_thinking: Flag | None = known(
        "Whether the thinking of agents is saved with the cast.",
        "true or false",
        "R49",
        default=True,
    )
    active_loadout_id: JSON = known("Kept for the reference's editor.", "text")
    compaction: JSON = known(
        "Compaction in the reference's host.", "object", ignored="it belongs to another host"
    )
    finalization: JSON = known(
        "Finalization in the reference's host.", "object", ignored="it belongs to another host"
    )
    eventing: JSON = known(
        "Event sinks of the reference engine.", "object", ignored="it belongs to another host"
    )
    quest_default_loadout_id: JSON = known("Kept for the reference's quest board.", "text")
    mcp_servers: dict[AnyKey, McpServer] | None = known(
        "Name -> server whose tools agents may use; a materia lists them in `tools`, as `name.tool` or `name.*`.",
        "object",
    )
    parallelism: Parallelism | None = known(
        f"Settings for lanes, unless their loop sets them; left out, {graph.LANES_AT_ONCE} at once.", "object"
    )


MODELS: tuple[type[Model], ...] = (
    Config,
    BudgetFields,
    PriceFields,
    LimitsFields,
    Parallelism,
    McpServer,
    Loadout,
    SocketFields,
    EdgeFields,
    AdvanceFields,
    Foreach,
    Assignment,
    SocketLimits,
    LoopFields,
    Parallel,
    Consumes,
    IteratorFields,
    ExitRouteFields,
    LegacyExit,
    AgentMateria,
    UtilityMateria,
    Script,
)


def config_fields() -> list[FieldRow]:
    """Return every field of the format, model by model, for the documentation."""
    return [row for model in MODELS for row in rows_of(model).values()]


_MERGED: Final = (Config, Loadout, AgentMateria, UtilityMateria)
"""What a file may hold in part, since a layer below has the rest; null takes a field away (R33)."""
_IS_UTILITY: Final = {
    "anyOf": [
        {"properties": {"type": {"const": "utility"}}, "required": ["type"]},
        {"not": {"required": ["type"]}, "anyOf": [{"required": ["command"]}, {"required": ["script"]}]},
    ]
}
"""What ``materia_kind`` says."""


def field_schemas() -> dict[str, Any]:
    """Return of every model the JSON Schema of its fields one by one, as :func:`check_config` says it."""
    _, made = models_json_schema([(model, "validation") for model in MODELS])
    definitions: dict[str, Any] = made["$defs"]
    for model in MODELS:
        _in_words(model, definitions[model.__name__])
    return definitions


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of a config file, for editors: what is wrong is underlined at its field.

    It is strict: a field that it does not know is an error, unless it begins with ``x-`` (a hint of ``check``, R28). What a
    loadout, a materia or the config must have may be in a layer below (R33), so that it may be missing here. Fields
    without effect are marked as deprecated.
    """
    definitions = field_schemas()
    for model in MODELS:
        _close(model, definitions[model.__name__])
    agent, utility = ({"$ref": f"#/$defs/{model.__name__}"} for model in (AgentMateria, UtilityMateria))
    config = definitions.pop(Config.__name__)
    loadout = {"$ref": f"#/$defs/{Loadout.__name__}"}
    materia = {"if": _IS_UTILITY, "then": utility, "else": agent}
    config["properties"]["loadouts"]["additionalProperties"] = {"anyOf": [loadout, _NULL]}
    config["properties"]["materia"]["additionalProperties"] = {"if": _NULL, "else": materia}
    config["title"] = "Loadouts and materia"
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", **config, "$defs": definitions}
    pointed: dict[str, Any] = _pointed(made)
    return pointed


def _close(model: type[Model], made: dict[str, Any]) -> None:
    """Let an object have no other fields than those of its model, and say which it needs by itself."""
    rows = rows_of(model)
    if model.model_config.get("populate_by_name"):
        fields = model.model_fields.items()
        made["properties"] |= {name: made["properties"][info.alias or name] for name, info in fields}
    if model not in _MERGED:
        needed = [name for name, row in rows.items() if row.required or row.needed]
        made |= {"required": needed} if needed else {}
    made |= {"additionalProperties": False, "patternProperties": {"^x-": {}}}


def _pointed(schema: Any) -> Any:
    """Write alternatives as conditions, so that an error is told of the field inside the one that is meant.

    Of ``anyOf`` a validator says that nothing of it fits, of the whole object.
    """
    if isinstance(schema, list):
        return [_pointed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: value if key == "if" else _pointed(value) for key, value in schema.items()}
    kinds = [inner for kind in made.get("anyOf", ()) for inner in kind.get("anyOf", (kind,))]
    inside = [kind for kind in kinds if _type_of(kind) in {"object", "array"}]
    if not inside:
        return made
    del made["anyOf"]
    flat = [kind for kind in kinds if kind not in inside and kind != _NULL]
    chain: Any = inside.pop() if not flat else flat[0] if len(flat) == 1 else {"anyOf": flat}
    for kind in inside:
        chain = {"if": {"type": _type_of(kind)}, "then": kind, "else": chain}
    if _NULL in kinds:
        chain = {"if": _NULL, "else": chain}
    return {**made, "allOf": [chain]}


def _type_of(kind: dict[str, Any]) -> Any:
    return "object" if "$ref" in kind else kind.get("type")


_NULL: Final = {"type": "null"}


def _in_words(model: type[Model], made: dict[str, JSON]) -> None:
    """Say of each field what its row says, in place of what pydantic makes of it."""
    for name, row in rows_of(model).items():
        field = made["properties"][name]
        description = row.description if row.ignored is None else f"No effect: {row.ignored}."
        kept = {key: value for key, value in field.items() if key not in ("x-about", "title")}
        if kept.get("default", ...) is None:
            del kept["default"]
        if model in _MERGED:
            kept = _or_null(kept)
        idle = {} if row.ignored is None else {"deprecated": True}
        made["properties"][name] = {**kept, "description": description, **idle}
    if model in _MERGED:
        made.pop("required", None)


def _or_null(field: dict[str, JSON]) -> dict[str, JSON]:
    kinds = [kind for kind in field.get("anyOf", [field]) if kind != _NULL]
    outer = {key: field[key] for key in ("default",) if key in field}
    inner = [
        {key: value for key, value in kind.items() if key not in ("default", "description")} for kind in kinds
    ]
    return {"anyOf": [*inner, _NULL], **outer} if any(inner) else outer
