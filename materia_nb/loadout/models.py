"""Pydantic models of the config format. Checks, hints, forms, docs and the JSON Schema are generated from them.

The value types of the fields are in ``fields``.
"""

from __future__ import annotations

from typing import Final

from materia_nb.jsonvalue import Object
from materia_nb.loadout import fields
from materia_nb.loadout.fields import Model, SnakeCaseModel, config_field
from materia_nb.loadout.graph import DEFAULT_LANES, DEFAULT_TIMEOUT_MS, Budget, Limits
from materia_nb.loadout.report import (
    INVALID_CONDITION,
    INVALID_CONFIG,
    INVALID_EDGE,
    INVALID_LOOP,
    INVALID_MATERIA,
    INVALID_SOCKET,
)
from materia_nb.loadout.topology import BUILT_IN_SCRIPTS, materia_kind
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, OWN_PROTOCOLS

_BUDGET: Final = Budget()
_LIMITS: Final = Limits()
_BUILT_IN_NAMES: Final = ", ".join(f"`{name}`" for name in BUILT_IN_SCRIPTS)
_ASSIGNMENT_PROTOCOLS: Final = ", ".join(f"`{name}`" for name, own in OWN_PROTOCOLS.items() if own.includes_assignment)

# fmt: off


class BudgetFields(Model):
    """Maximum usage of a cast."""

    noun = "a budget"

    max_tokens: fields.Count | None = config_field(
        "Maximum number of tokens, input and output together, after which the cast stops.", "R20")
    warn_at_percent: fields.Percent | None = config_field(
        "Percentage of a maximum at which a warning is shown.", "R20", default=_BUDGET.warn_at_percent)
    max_cost_usd: fields.Amount | None = config_field(
        "Maximum known cost in US dollars, after which the cast stops.", "R20", "R56")
    max_seconds: fields.Amount | None = config_field(
        "Maximum working time of agents and processes, in seconds, after which the cast stops. Time in which the cast "
        "waits for a person does not count.", "R20", "R56")
    max_turns: fields.Count | None = config_field(
        "Maximum number of turns, including drafts and repairs, after which the cast stops.", "R20")
    stop_at_limit: object = config_field(
        "Always true, since a maximum always stops the cast.", "R20", shape="true")


class PriceFields(Model):
    """Price of a model."""

    noun = "a price"
    example = '{"input": 1.25, "output": 10}'

    input: fields.Amount = config_field("Price of a million input tokens, in US dollars.", "R56", required=True)
    output: fields.Amount = config_field(
        "Price of a million output tokens, including thinking, in US dollars.", "R56", required=True)
    cached: fields.Amount | None = config_field(
        "Price of a million cached input tokens, in US dollars. Defaults to `input`.")
    as_of: fields.Date | None = config_field("Date of this price.")


class LimitsFields(Model):
    """Limits of a cast."""

    noun = "a `limits` object"

    repair_attempts: fields.Count = config_field(
        "Maximum number of repair turns after an invalid output of an agent.", "R19", default=_LIMITS.repair_attempts)
    max_no_advance_cycles: fields.Count = config_field(
        "Maximum number of cycles without an advance to the next item.", "R18", default=_LIMITS.max_no_advance_cycles)
    max_edge_traversals: fields.PositiveCount = config_field(
        "Maximum number of traversals of an edge without `maxTraversals`, while no list item is processed.", "R18",
        default=_LIMITS.max_edge_traversals)
    prompt_characters: fields.PromptCharacters = config_field(
        "Maximum length of a prompt, in characters.", "R50", default=_LIMITS.prompt_characters)
    max_socket_visits: object = config_field(
        "Maximum number of visits of a socket.", "R21", shape="whole number",
        ignored_reason="visits are counted but not limited")


class McpServer(Model):
    """A server of tools (Model Context Protocol); ``${NAME}`` in a string is replaced by an environment variable."""

    noun = "a server"
    example = '{"command": "mcp-server-time", "args": []}'

    command: fields.NonBlankText | None = config_field("Program of a server that communicates over stdin and stdout.")
    args: fields.Texts | None = config_field("Arguments of the program.")
    env: fields.TextsByName | None = config_field("Environment variables, in addition to PATH, HOME and others.")
    url: fields.NonBlankText | None = config_field("Address of a server that uses HTTP.", shape="address")
    headers: fields.TextsByName | None = config_field("HTTP headers of each request.")
    allow: fields.Texts | None = config_field(
        "Names of the tools that need no approval, or `*` for all tools.", shape="list of names")
    timeout_ms: fields.Milliseconds | None = config_field("Timeout of a call, in milliseconds.", default=120000)
    type: object = config_field("Server type, which only other programs read.", ignored_reason="a command or a url is enough")


class Parallel(Model):
    """Settings for the lanes of a loop."""

    noun = "a `parallel` object"
    example = '{"maxConcurrency": 4}'
    code = INVALID_LOOP

    max_concurrency: fields.PositiveCount | None = config_field(
        "Maximum number of lanes that run at the same time. Other lanes wait in the order of the schedule.",
        label="lanes at once", order=1)


class Parallelism(Parallel):
    """Settings for the lanes of loops without ``parallel``."""

    code = INVALID_CONFIG


class Config(Model):
    """A config file."""

    noun = "a config"
    example = '{"loadouts": { ... }, "materia": { ... }}'

    schema_: object = config_field(
        "JSON Schema for editors; `materia schema` prints it.", alias="$schema",
        shape="path or address")
    artifact_dir: fields.FilePath | None = config_field(
        "Parent directory of the run directories, relative to the project. Defaults to `.pi/pi-materia`.", "R29",
        advice='write a path, such as ".pi/pi-materia"')
    artifacts: fields.Artifacts | None = config_field(
        "Derived files that a cast writes: only the outputs of sockets (`outputs`), or `all`, which includes prompts.",
        "R63", default="outputs")
    files: fields.Files | None = config_field(
        "Files in the snapshot after each step: no files (`off`), the files that Git does not ignore (`not ignored`), "
        "or `all` files of the project. Snapshots need Git.", default="off")
    active_loadout: fields.Reference | None = config_field(
        "Name of the loadout to cast. Defaults to the first loadout.", shape="name of a loadout")
    loadouts: dict[fields.Key, object] = config_field(
        "Loadouts by name. Required.", "R26", required=True, min_length=1, missing_message="the config has no loadouts",
        advice='write {"My loadout": {"entry": ..., "sockets": ...}}')
    materia: dict[fields.Key, object] | None = config_field("Materia by id.", "R26")
    budget: BudgetFields | None = config_field("Maximum usage of a cast.", "R20")
    prices: dict[fields.Key, PriceFields | None] | None = config_field(
        "Prices by `provider:model` or by the name of another agent. A price overrides the known price of the model "
        "and the cost that a program reports.", "R56")
    limits: LimitsFields | None = config_field("Limits of a cast.", "R18", "R19")
    cast_context: fields.Context | None = config_field(
        "Parts of the cast that agents see, unless the socket, materia or loadout sets `castContext`.", "R50",
        default="full")
    keep_thinking: fields.Flag | None = config_field(
        "True to save the thinking of agents with the cast.", "R49", default=True)
    active_loadout_id: object = config_field("Reserved for the reference editor.")
    default_loadout_id: object = config_field("Reserved for the reference engine.")
    default_save_target: object = config_field("Reserved for the reference editor.")
    pi_materia: object = config_field("Reserved for migrations of the reference engine.", shape="object")
    role_generation: object = config_field("Reserved for the reference editor.", shape="object")
    webui: object = config_field("Reserved for the reference editor.", shape="object")
    central: object = config_field("Reserved for the reference engine.", shape="object")
    compaction: object = config_field(
        "Compaction settings of the reference engine's host.", shape="object", ignored_reason="only another host uses the field")
    finalization: object = config_field(
        "Finalization settings of the reference engine's host.", shape="object", ignored_reason="only another host uses the field")
    eventing: object = config_field(
        "Event sinks of the reference engine's host.", shape="object", ignored_reason="only another host uses the field")
    quest_default_loadout_id: object = config_field("Reserved for the quest board of the reference engine.")
    mcp_servers: dict[fields.Key, McpServer] | None = config_field(
        "MCP servers by name. A materia lists their tools in `tools`, as `name.tool` or `name.*`.")
    parallelism: Parallelism | None = config_field(
        f"Settings for lanes, unless the loop sets `parallel`. Defaults to {DEFAULT_LANES} lanes at the same time.")


class EdgeFields(Model):
    """An edge from a socket to the next socket. The first edge that matches is taken."""

    noun = "an edge"
    example = '{"when": "always", "to": "Socket-2"}'
    code = INVALID_EDGE

    when: fields.When = config_field(
        "Condition of the edge: `always`; `satisfied` or `not_satisfied`, by the field `satisfied` of the parsed "
        "output; or `failed`, if the visit has no accepted output. Required.", "R3", required=True, order=1,
        code=INVALID_CONDITION, missing_message="the condition is missing")
    to: fields.Reference | None = config_field(
        "Next socket, or `end`. Required.", "R26", checked_in_graph=True, order=2)
    max_traversals: fields.PositiveCount = config_field(
        "Maximum number of traversals for one work item or, outside items, in the whole cast. One more traversal fails "
        "the cast.", "R18", label="at most", unit="times for each item", order=3)


class AdvanceFields(Model):
    """Moves a cursor to the next item after a visit of the socket."""

    noun = "an `advance` object"
    example = '{"when": "satisfied"}'
    code = INVALID_SOCKET

    cursor: fields.NonBlankText | None = config_field(
        "Cursor to move. Defaults to the cursor of the socket's iterator.", "R13", "R14", shape="name")
    items: fields.SourcePath | None = config_field(
        "List that the cursor points into. Defaults to the list of the socket's iterator.", "R13", "R14")
    when: fields.WhenOutput = config_field(
        "Condition of the move. Defaults to `always`.", "R14", code=INVALID_CONDITION,
        missing_message="the condition is missing")
    done: fields.Reference | None = config_field(
        "Socket after the last item in older loadouts. It must exist.", "R14", ignored_reason="use the exits of the loop")


class Foreach(Model):
    """Passes the items of a list to a socket, one item per visit."""

    noun = "a `foreach` object"
    example = '{"items": "state.rows"}'
    code = INVALID_SOCKET

    items: fields.SourcePath = config_field(
        "Source of the list, such as `state.rows`. Other values count as an empty list. Required.", "R12",
        required=True, advice='write the path of a list, such as "state.rows"', label="list", order=1)
    as_: fields.Name | None = config_field(
        "Name of the current item in the state. Defaults to `item`.", "R12", alias="as", label="name of item",
        order=2)
    cursor: fields.Name | None = config_field("Name of the cursor. Defaults to `<socket id>Index`.", "R13", order=3)
    done: fields.Reference | None = config_field(
        "Socket after the last item in older loadouts. It must exist.", "R14", ignored_reason="use the exits of the loop")


class Assignment(SnakeCaseModel):
    """The task of an agent, which some protocols include in the prompt."""

    noun = "an assignment"
    example = '{"goal": "..."}'
    code = INVALID_SOCKET

    goal: fields.AnyText | None = config_field("Goal of the turn, unless the prompt contains it.")
    acceptance_criteria: fields.Texts | None = config_field("Conditions that the result must meet.")
    scope: fields.AnyText | None = config_field("Scope of the allowed changes.")
    surfaces: fields.Texts | None = config_field(
        "Affected parts of the project. With several parts, the agent must consolidate.")
    adjacent_agents: fields.Texts | None = config_field("Agents that work on other parts.")
    primary: fields.Flag | None = config_field(
        "False for an assisting agent, which must report its findings for consolidation.")
    writable_sections: fields.Texts | None = config_field("Sections of the project context that the agent may update.")
    readable_sections: fields.Texts | None = config_field("Sections that the agent sees. Defaults to all sections.")


class SocketLimits(Model):
    """Limits of a socket. Only other engines apply these limits."""

    noun = "a `limits` object of a socket"
    code = INVALID_SOCKET

    max_visits: object = config_field(
        "Maximum number of visits of the socket.", "R21", shape="whole number",
        ignored_reason="visits are counted but not limited")
    max_edge_traversals: object = config_field(
        "Maximum number of times that an edge from the socket can be taken.", "R21", shape="whole number",
        ignored_reason="write `maxTraversals` on an edge")
    max_output_bytes: object = config_field(
        "Maximum size of an output, in bytes.", shape="whole number", ignored_reason="outputs are stored completely")


class SocketFields(Model):
    """A materia placed in the graph."""

    noun = "a socket"
    example = '{"materia": "..."}'
    code = INVALID_SOCKET

    materia: fields.Reference | None = config_field(
        "Id of the materia. Required.", "R26", shape="materia id", checked_in_graph=True, order=1)
    parse: fields.Parse = config_field(
        "Format of an agent's output: `json` or `text` (the default). A utility has `parse` on its materia, and a "
        "generator always returns `json`.", "R4", label="output", order=3)
    assign: dict[fields.Key, fields.AssignedSource] | None = config_field(
        "Assignments to the state, in order: from a source (`$.plan`, `$`, `state.x`, `item.x`, `lastJson.x`, `lastOutput` or "
        "JSONPath) to a dotted target. A utility has `assign` on its materia.", "R4", "R11",
        advice='write an object from targets to sources: {"plan": "$.plan"}')
    edges: list[EdgeFields] | None = config_field(
        "Edges to the next socket, in order. The cast ends if no edge matches.", "R3",
        advice='write a list: [{"when": "always", "to": "Socket-2"}]', omitted_in_form=True)
    advance: AdvanceFields | None = config_field("Advance to the next item.", "R14")
    foreach: Foreach | None = config_field(
        "The socket's own list. It overrides the list of the loop.", "R1", "R12")
    handoff: fields.NonBlankText = config_field(
        f"Handoff protocol of the agent. Defaults to `handoff` of the loadout, else `{DEFAULT_HANDOFF}`.",
        shape="name of a protocol")
    assignment: Assignment | None = config_field(
        f"Task of the agent, for protocols that include it in the prompt ({_ASSIGNMENT_PROTOCOLS}).")
    finalize: fields.Flag | None = config_field(
        "True to ask the agent for its handoff in a separate turn after the work, in the same conversation. For "
        "agents with `json` output.", label="separate handoff")
    cast_context: fields.Context | None = config_field(
        "Parts of the cast that the agent sees: `full`, `request`, `none`, or an object. Defaults to the value of the "
        "materia, else of the loadout, else of the config, else `full`.", "R50", label="context", order=4)
    prompt_form: fields.PromptStyle | None = config_field(
        "Format of the prompt: headings and fences (`md`), or plain names and blank lines (`plain`). Defaults to the "
        "profile of the model, else `md`.", "R50")
    limits: SocketLimits | None = config_field("Limits of a socket in other engines.", "R21", omitted_in_form=True)
    layout: object = config_field(
        "Position in the drawing, unless the layout of the loadout has one.", shape="object with x and y", omitted_in_form=True)
    socket_kind: object = config_field("Reserved for the reference editor.", shape="entry or normal")
    empty: object = config_field("Reserved for the reference editor.", shape="true or false")
    label: object = config_field("Display name.", order=2)


class Consumes(Model):
    """Passes the work items of a generator to all members of a loop."""

    noun = "a `consumes` object"
    example = '{"from": "Socket-1"}'
    code = INVALID_LOOP

    from_: fields.Reference | None = config_field(
        "Socket of the generator. It is not a member, and exactly one of its edges enters the loop. Required.", "R27",
        alias="from", shape="socket id", checked_in_graph=True, order=1)
    output: fields.WorkItemsList = config_field(
        "Name of the generator's list. Defaults to `workItems`.", "R12",
        advice='write "workItems" or remove the field; for another list use iterator {"items": "state...."}')
    as_: fields.Name | None = config_field(
        "Name of the current item in the state. Defaults to `workItem`.", "R12", alias="as", label="name of item",
        order=2)
    cursor: fields.Name | None = config_field(
        "Name of the cursor. Defaults to `workItemIndex`. Loops of the same generator need different cursors.", "R13",
        "R27")
    done: fields.Reference | None = config_field(
        "Socket after the last item in older loadouts. It must exist.", "R14", ignored_reason="use the exits of the loop")


class IteratorFields(Foreach):
    """Passes the items of another list, such as a list in the state, to all members of a loop."""

    noun = "an `iterator` object"
    code = INVALID_LOOP


class ExitRouteFields(Model):
    """An exit of a loop, taken once its list is exhausted."""

    noun = "an exit route"
    example = '{"id": "...", "from": "...", "condition": "...", "targetSocketId": "..."}'
    code = INVALID_LOOP

    id: fields.NonBlankText = config_field(
        "Id of the exit, unique in the loop. Required.", "R26", required=True,
        advice="write an id that is unique in this loop", order=4)
    from_: fields.Reference | None = config_field(
        "Member that completes the last item. Required.", "R16", alias="from", shape="socket id", checked_in_graph=True, order=2)
    condition: fields.WhenOutput = config_field(
        "Condition of the exit: `always`, `satisfied` or `not_satisfied`. A source can have one exit per condition. "
        "Required.", "R16", "R27", required=True, label="when", order=1, code=INVALID_CONDITION,
        missing_message="the condition is missing")
    target_socket_id: fields.Reference | None = config_field(
        "Next socket, or `end`. Required.", "R27", checked_in_graph=True, label="to", order=3)


class LegacyExit(Model):
    """The older form of an exit. Use `exits` instead."""

    noun = "an `exit` object"
    example = '{"from": "Socket-3", "when": "satisfied", "to": "end"}'
    code = INVALID_LOOP

    from_: fields.Reference | None = config_field(
        "Member whose output is tested. Required.", "R15", alias="from", shape="socket id", checked_in_graph=True)
    when: fields.WhenOutput = config_field(
        "Condition that ends an item. Required.", "R15", required=True, code=INVALID_CONDITION,
        missing_message="the condition is missing")
    to: fields.Reference | None = config_field("Socket after the last item, or `end`. Required.", "R15", checked_in_graph=True)


class LoopFields(Model):
    """A region of sockets that work on one item after another."""

    noun = "a loop"
    example = '{"sockets": [...], ...}'
    code = INVALID_LOOP

    sockets: list[fields.Reference] = config_field(
        "Ids of the members. Their edges form a cycle. Required.", "R27", required=True, min_length=1,
        shape="list of socket ids", missing_message="the loop lists no sockets",
        advice='list its members: ["Socket-2", "Socket-3"]', omitted_in_form=True)
    consumes: Consumes | None = config_field(
        "Generator whose work items the loop processes.", "R12", "R27", omitted_in_form=True)
    iterator: IteratorFields | None = config_field("List that the loop processes instead of work items.", "R12", omitted_in_form=True)
    exits: list[ExitRouteFields] = config_field(
        "Exits. If no member has an `advance`, the source of each exit also moves the cursor.", "R15", "R16",
        advice="write a list of routes: [{ ... }]", omitted_in_form=True)
    exit: LegacyExit | None = config_field("Exit in the older form, which also sets an advance.", "R15", omitted_in_form=True)
    label: object = config_field("Display name.")
    parallel: Parallel | None = config_field(
        "Settings for the lanes of a `parallel` generator. Defaults to `parallelism` of the config.", omitted_in_form=True)


class Loadout(Model):
    """A workflow: sockets, the edges between them, and loop regions."""

    noun = "a loadout"
    example = '{"entry": "Socket-1", "sockets": { ... }}'

    entry: fields.Reference | None = config_field(
        "Socket where a cast starts. Defaults to the first socket.", "R26", "R36", shape="socket id", order=3)
    sockets: dict[fields.Key, SocketFields] = config_field(
        "Sockets by id. `Socket-1`, `Socket-2`, ... are the canonical ids. Required.", "R26", required=True,
        min_length=1, code=INVALID_SOCKET, missing_message="the loadout has no sockets",
        advice='write {"Socket-1": {"materia": "..."}, ...}', omitted_in_paths=True, omitted_in_form=True)
    loops: dict[fields.Key, LoopFields] | None = config_field(
        "Loop regions by id.", "R15", "R27", code=INVALID_LOOP,
        advice='write an object: {"name": {"sockets": [...]}}', omitted_in_form=True)
    handoff: fields.NonBlankText = config_field(
        f"Handoff protocol of the agents. Defaults to `{DEFAULT_HANDOFF}`.", shape="name of a protocol", order=5)
    finalize: fields.Flag | None = config_field(
        "True to ask every agent for its handoff in a separate turn, unless its socket sets `finalize`. Agents then "
        "return `json` unless their socket sets `parse`.", label="separate handoffs", order=6)
    cast_context: fields.Context | None = config_field(
        "Parts of the cast that agents see, unless the socket or materia sets `castContext`. Defaults to the config.",
        "R50", label="context", order=4)
    origin_default_id: object = config_field("Reserved for the reference editor.")
    layout: object = config_field("Positions of the sockets in the drawing.", shape="object", omitted_in_form=True)
    description: object = config_field("Purpose of the loadout.", order=1)
    label: object = config_field("Display name.", order=2)
    id: object = config_field("Reserved for the reference editor.")
    source: object = config_field("Reserved for the reference editor.")
    lock_state: fields.LockState | None = config_field("`locked` to confirm each save of the designer.", order=7)
    catalog_origin: object = config_field("Reserved for the reference editor.", shape="object")


class MateriaFields(Model):
    """Fields that agents and utilities have in common."""

    example = '{"type": "agent", "tools": "none", "prompt": "..."}'
    code = INVALID_MATERIA

    type: fields.MateriaType = config_field(
        "Kind of materia: `agent` or `utility`. Defaults to `utility` for a materia with a command or script.", "R26",
        omitted_in_form=True)
    label: object = config_field("Display name. Defaults to the id.")
    description: object = config_field("Purpose of the materia.")
    group: object = config_field(
        "Heading in the palette of the designer. Defaults to `Utility` for a utility.")
    color: object = config_field(
        "Colour in drawings: `#rgb`, `#rrggbb`, or a name such as `teal`. Defaults to the colour of the kind.",
        shape="colour")
    generator: fields.Flag = config_field(
        "True if the materia produces work items, as JSON with `workItems`.", "R4", "R9", label="makes items", order=4)
    lock_state: object = config_field("Reserved for the reference editor.", shape="locked or unlocked")
    catalog_origin: object = config_field("Reserved for the reference editor.", shape="object")
    parallel: fields.Flag = config_field(
        "True for a generator whose items are processed in parallel lanes. The output also has `parallelSchedule`.",
        label="in streams")
    parallel_safe: fields.Flag = config_field(
        "True if the materia may run in parallel lanes. Every materia in a lane must set it.", label="safe in lanes")
    parallel_planner: fields.Flag = config_field("An older name of `parallel`.")


class AgentMateria(MateriaFields):
    """A materia whose output comes from a model, a person or a function."""

    noun = "an agent"

    prompt: fields.NonBlankText = config_field(
        "Task of the agent, with `{{...}}` variables. Required.", "R26", "R31", required=True,
        advice='write the task of the agent, or "type": "utility" for a process', order=1, multiline=True)
    tools: fields.Tools = config_field(
        'Allowed tools: `none`, `readOnly`, `coding`, a list of names, or `{"type": "custom", "tools": '
        "[...]}`. Required.", "R26", required=True, advice='write "none", "readOnly", "coding" or a list of tool names',
        first_value="none", order=3)
    model: fields.AnyText = config_field("Model of the agent. Defaults to the model of its settings.", "R26", order=2)
    thinking: fields.AnyText = config_field("Thinking level of the model, in the terms of its provider.")
    multi_turn: fields.Flag = config_field(
        "True if a person refines drafts before the final answer.", "R26", label="drafts", order=5)
    cast_context: fields.Context | None = config_field(
        "Parts of the cast that the agent sees, unless the socket sets `castContext`.", "R50", label="context")
    parse: fields.Parse = config_field("Format of the output.", "R4", ignored_reason="write `parse` on the socket")


class Script(Model):
    """A script that is shipped with this package."""

    noun = "a script"
    example = '{"kind": "shippedUtility", "name": "detect-vcs.mjs"}'
    code = INVALID_MATERIA

    kind: fields.ShippedUtility = config_field(
        "Always `shippedUtility`. Required.", "R25", required=True,
        advice='write "shippedUtility", or use command for a script of your own')
    name: fields.ScriptName = config_field(
        "File name, such as `detect-vcs.mjs`. The `.py` file with the same name is run instead; the reference engine requires names "
        "that end in `.mjs`. Required.", "R25", required=True)
    runtime: object = config_field("Runtime in the reference engine.", ignored_reason="scripts run with the kernel's Python")


class UtilityMateria(MateriaFields):
    """A materia whose output comes from a process."""

    noun = "a utility"

    command: list[fields.CommandPart] | None = config_field(
        "Program and its arguments, run without a shell. Either `command` or `script` is required.", "R23", "R24",
        min_length=1, shape="list of strings", advice='write a list of strings, such as ["python3", "script.py"]; no '
        "shell is used", order=1)
    script: Script | None = config_field("Shipped script, instead of `command`.", "R25")
    params: dict[fields.Key, object] | None = config_field(
        "Parameters that the process receives on stdin.", "R23", advice="write an object: { ... }")
    parse: fields.Parse = config_field(
        "Format of stdout: `json` or `text` (the default).", "R4", "R6", label="output", order=2)
    assign: dict[fields.Key, fields.SourcePath] | None = config_field(
        "Assignments to the state, in order: from a source to a dotted target.", "R4", "R11",
        advice='write an object from targets to sources: {"plan": "$.plan"}')
    timeout_ms: fields.Milliseconds = config_field(
        "Timeout of the process, in milliseconds.", "R23", default=DEFAULT_TIMEOUT_MS,
        advice="write a number of milliseconds above 0, such as 30000", label="time limit", unit="milliseconds", order=4)
    multi_turn: fields.Flag = config_field("Drafts before the final answer.", ignored_reason="a process returns one output")
    utility: object = config_field(
        f"Shipped script by its name in the reference engine, instead of `script`: {_BUILT_IN_NAMES}.", "R61")

# fmt: on

MODELS: Final[tuple[type[Model], ...]] = (
    Config, BudgetFields, PriceFields, LimitsFields, Parallelism, McpServer, Loadout, SocketFields,
    EdgeFields, AdvanceFields, Foreach, Assignment, SocketLimits, LoopFields, Parallel, Consumes,
    IteratorFields, ExitRouteFields, LegacyExit, AgentMateria, UtilityMateria, Script,
)  # fmt: skip
"""All models, in the order of the documentation."""


def materia_model(definition: Object) -> type[Model]:
    """Return the model for a materia definition, which depends on its kind."""
    return UtilityMateria if materia_kind(definition) == "utility" else AgentMateria
