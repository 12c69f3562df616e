"""The objects of a config and their fields, from which checks, hints, forms, docs and the JSON Schema are derived.

Each field is annotated with the kind of its values (``fields``) and described by :func:`config_field`.
"""

from __future__ import annotations

from typing import Final

from materia_nb.jsonvalue import Object
from materia_nb.loadout import fields
from materia_nb.loadout.fields import FieldRow, Model, TwoSpellings, config_field
from materia_nb.loadout.graph import DEFAULT_TIMEOUT_MS, LANES_AT_ONCE, Budget, Limits
from materia_nb.loadout.report import (
    INVALID_CONDITION,
    INVALID_CONFIG,
    INVALID_EDGE,
    INVALID_LOOP,
    INVALID_MATERIA,
    INVALID_SOCKET,
)
from materia_nb.loadout.topology import BUILT_IN, materia_kind
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, OWN_PROTOCOLS

_BUDGET: Final = Budget()
_LIMITS: Final = Limits()
_BUILT_IN_NAMES: Final = ", ".join(f"`{name}`" for name in BUILT_IN)
_TASK_PROTOCOLS: Final = ", ".join(f"`{name}`" for name, protocol in OWN_PROTOCOLS.items() if protocol.tells_the_task)

# fmt: off


class BudgetFields(Model):
    """How much a cast may use."""

    noun = "a budget"

    max_tokens: fields.Count | None = config_field(
        "Tokens, input and output together, after which the cast stops.", "R20")
    warn_at_percent: fields.Percent | None = config_field("When to warn.", "R20", default=_BUDGET.warn_at_percent)
    max_cost_usd: fields.Amount | None = config_field(
        "Cost in US dollars, as far as it is known, after which the cast stops.", "R20", "R56")
    max_seconds: fields.Amount | None = config_field(
        "Seconds that agents and processes work, not counting waiting for a person, after which the cast stops.", "R20",
        "R56")
    max_turns: fields.Count | None = config_field(
        "Turns of agents, including drafts and repairs, after which the cast stops.", "R20")
    stop_at_limit: object = config_field(
        "Whether the maximum stops the cast, which it always does.", "R20", shape="true")


class PriceFields(Model):
    """What a model costs."""

    noun = "a price"
    example = '{"input": 1.25, "output": 10}'

    input: fields.Amount = config_field("US dollars for a million tokens of input.", "R56", required=True)
    output: fields.Amount = config_field(
        "US dollars for a million tokens of output, including thinking.", "R56", required=True)
    cached: fields.Amount | None = config_field(
        "US dollars for a million tokens of input that came from a cache; left out, the price of other input.")
    as_of: fields.Date | None = config_field("The date of this price.")


class LimitsFields(Model):
    """Bounds of a cast."""

    noun = "limits"

    repair_attempts: fields.Count = config_field(
        "Repair turns after an invalid agent output.", "R19", default=_LIMITS.repair_attempts)
    max_no_advance_cycles: fields.Count = config_field(
        "Cycles without an advance to the next item.", "R18", default=_LIMITS.max_no_advance_cycles)
    max_edge_traversals: fields.PositiveCount = config_field(
        "Traversals, outside items, of an edge without maxTraversals.", "R18", default=_LIMITS.max_edge_traversals)
    prompt_characters: fields.PromptCharacters = config_field(
        "The most characters in one prompt.", "R50", default=_LIMITS.prompt_characters)
    max_socket_visits: object = config_field(
        "Visits of a socket.", "R21", shape="whole number", ignored="visits are counted and shown, never enforced")


class McpServer(Model):
    """A server of tools for models, by the Model Context Protocol; ``${NAME}`` in a text is read from the environment."""

    noun = "a server"
    example = '{"command": "mcp-server-time", "args": []}'

    command: fields.NonBlankText | None = config_field("The program, which speaks on stdin and stdout.")
    args: fields.Texts | None = config_field("Its arguments.")
    env: fields.TextsByName | None = config_field("Environment variables, in addition to PATH, HOME and the like.")
    url: fields.NonBlankText | None = config_field("Its address, if it uses HTTP.", shape="address")
    headers: fields.TextsByName | None = config_field("Headers to send to it.")
    allow: fields.Texts | None = config_field(
        "Its tools that need no approval, `*` for all; every other call asks.", shape="list of names")
    timeout_ms: fields.Milliseconds | None = config_field("How long a call may take.", default=120000)
    type: object = config_field("Written by other programs.", ignored="a command or a url is enough")


class Parallel(Model):
    """How many lanes run at once."""

    noun = "a parallel"
    example = '{"maxConcurrency": 4}'
    code = INVALID_LOOP

    max_concurrency: fields.PositiveCount | None = config_field(
        "How many lanes run at once; the others wait in the order of the schedule.", label="lanes at once", first=1)


class Parallelism(Parallel):
    """How many lanes run at once where a loop does not say."""

    code = INVALID_CONFIG


class Config(Model):
    """A config file."""

    noun = "a config"
    example = '{"loadouts": { ... }, "materia": { ... }}'

    schema_: object = config_field(
        "The JSON Schema that an editor checks this file with; `materia schema` prints it.", alias="$schema",
        shape="path or address")
    artifact_dir: fields.FilePath | None = config_field(
        "The directory for run directories, relative to the project; left out, `.pi/pi-materia`.", "R29",
        write='write a path, such as ".pi/pi-materia"')
    artifacts: fields.Artifacts | None = config_field(
        "Which derived files a cast writes: the outputs of sockets (`outputs`), or `all`, including the prompt of "
        "each turn.", "R63", default="outputs")
    files: fields.Files | None = config_field(
        "Whether the project's files are saved after each step, which needs Git: without the files that Git ignores "
        "(`kept`), or with them (`kept with ignored`).", default="as they are",
        shape="as they are, kept, kept with ignored")
    active_loadout: fields.Reference | None = config_field(
        "The loadout to cast; left out, the first.", shape="name of a loadout")
    loadouts: dict[fields.Key, object] = config_field(
        "Name -> loadout. Required.", "R26", required=True, min_length=1, missing="the config has no loadouts",
        write='write {"My loadout": {"entry": ..., "sockets": ...}}')
    materia: dict[fields.Key, object] | None = config_field("Id -> materia.", "R26")
    budget: BudgetFields | None = config_field("How much a cast may use.", "R20")
    prices: dict[fields.Key, PriceFields | None] | None = config_field(
        "Your prices: `provider:model`, or the name of any other agent -> price. They replace the known price of a "
        "model, and the cost that a program reports.", "R56")
    limits: LimitsFields | None = config_field("Bounds of a cast.", "R18", "R19")
    cast_context: fields.Context | None = config_field(
        "What agents see of the cast, unless their socket, materia or loadout sets it.", "R50", default="full")
    keep_thinking: fields.Flag | None = config_field(
        "Whether the thinking of agents is saved with the cast.", "R49", default=True)
    active_loadout_id: object = config_field("Kept for the reference's editor.")
    default_loadout_id: object = config_field("Kept for the reference engine.")
    default_save_target: object = config_field("Kept for the reference's editor.")
    pi_materia: object = config_field("Kept for the reference engine's migrations.", shape="object")
    role_generation: object = config_field("Kept for the reference's editor.", shape="object")
    webui: object = config_field("Kept for the reference's editor.", shape="object")
    compaction: object = config_field(
        "Compaction in the reference's host.", shape="object", ignored="it belongs to another host")
    finalization: object = config_field(
        "Finalization in the reference's host.", shape="object", ignored="it belongs to another host")
    eventing: object = config_field(
        "Event sinks of the reference engine.", shape="object", ignored="it belongs to another host")
    quest_default_loadout_id: object = config_field("Kept for the reference's quest board.")
    mcp_servers: dict[fields.Key, McpServer] | None = config_field(
        "Name -> server whose tools agents may use; a materia lists them in `tools`, as `name.tool` or `name.*`.")
    parallelism: Parallelism | None = config_field(
        f"Settings for lanes, unless their loop sets them; left out, {LANES_AT_ONCE} at once.")


class EdgeFields(Model):
    """An edge from a socket to the next. Edges are tried in order; the first that matches is taken."""

    noun = "an edge"
    example = '{"when": "always", "to": "Socket-2"}'
    code = INVALID_EDGE

    when: fields.When = config_field(
        "When it matches: `always`, when the parsed output has `satisfied` true or false, or `failed`, when there is "
        "no output because the agent or the process failed or its output was finally refused. Required.", "R3",
        required=True, first=1, code=INVALID_CONDITION, missing="the condition is missing")
    to: fields.Reference | None = config_field(
        "The socket that comes next, or `end`. Required.", "R26", needed=True, first=2)
    max_traversals: fields.PositiveCount = config_field(
        "How often it may be taken for one work item (outside items: in the whole cast). Exceeding it fails the cast.",
        "R18", label="at most", unit="times for each item", first=3)


class AdvanceFields(Model):
    """Moves a cursor to the next item once the socket completes."""

    noun = "an advance"
    example = '{"when": "satisfied"}'
    code = INVALID_SOCKET

    cursor: fields.NonBlankText | None = config_field(
        "The cursor to move; left out, that of the socket's iterator.", "R13", "R14", shape="name")
    items: fields.SourcePath | None = config_field(
        "The list that the cursor runs over; left out, that of the socket's iterator.", "R13", "R14")
    when: fields.WhenOutput = config_field(
        "When to move; left out, always.", "R14", code=INVALID_CONDITION, missing="the condition is missing")
    done: fields.Reference | None = config_field(
        "Where older loadouts went after the last item. It must exist; loops are left by their exits instead.", "R14",
        ignored="a loop is left by its exits")


class Foreach(Model):
    """Gives a socket one item of a list at a time."""

    noun = "a foreach"
    example = '{"items": "state.rows"}'
    code = INVALID_SOCKET

    items: fields.SourcePath = config_field(
        "The list, such as `state.rows`. Required; anything else counts as empty.", "R12", required=True,
        write='name the list, such as "state.rows"', label="list", first=1)
    as_: fields.Name | None = config_field(
        "The name of the current item in the state; left out, `item`.", "R12", alias="as", label="item is called",
        first=2)
    cursor: fields.Name | None = config_field("The cursor; left out, `<socket id>Index`.", "R13", first=3)
    done: fields.Reference | None = config_field(
        "Where older loadouts went after the last item. It must exist.", "R14", ignored="a loop is left by its exits")


class Assignment(TwoSpellings):
    """What an agent is told of its task, by protocols that hand it an envelope before its turn."""

    noun = "an assignment"
    example = '{"goal": "..."}'
    code = INVALID_SOCKET

    goal: fields.AnyText | None = config_field("The goal of the turn; if left out, it is in the prompt.")
    acceptance_criteria: fields.Texts | None = config_field("Conditions that must hold at the end.")
    scope: fields.AnyText | None = config_field("What it may change.")
    surfaces: fields.Texts | None = config_field(
        "The parts of the project that it concerns; if there are several, it must consolidate.")
    adjacent_agents: fields.Texts | None = config_field("The agents that work on other parts.")
    primary: fields.Flag | None = config_field(
        "false if it assists: it must then report its findings for consolidation.")
    writable_sections: fields.Texts | None = config_field("Sections of the project context that it may update.")
    readable_sections: fields.Texts | None = config_field("Sections that it sees; left out, all.")


class SocketLimits(Model):
    """Bounds that other versions kept for each socket."""

    noun = "the limits of a socket"
    code = INVALID_SOCKET

    max_visits: object = config_field(
        "Visits of this socket.", "R21", shape="whole number", ignored="visits are counted and shown, never enforced")
    max_edge_traversals: object = config_field(
        "Traversals from this socket.", "R21", shape="whole number", ignored="write maxTraversals on an edge")
    max_output_bytes: object = config_field(
        "Size of an output.", shape="whole number", ignored="outputs are kept whole")


class SocketFields(Model):
    """A materia placed in the graph."""

    noun = "a socket"
    example = '{"materia": "..."}'
    code = INVALID_SOCKET

    materia: fields.Reference | None = config_field(
        "The materia used here. Required.", "R26", shape="materia id", needed=True, first=1)
    parse: fields.Parse = config_field(
        "How the output of an agent is read: `json` or `text` (the default). A utility's is on its materia; a "
        "generator's is always json.", "R4", label="output", first=3)
    assign: dict[fields.Key, fields.AssignedSource] | None = config_field(
        "What is saved in the state, in order: dotted target -> source (`$.plan`, `$`, `state.x`, `item.x`, "
        "`lastJson.x`, `lastOutput`, or JSONPath). A utility's is on its materia.", "R4", "R11",
        write='write an object from targets to sources: {"plan": "$.plan"}')
    edges: list[EdgeFields] | None = config_field(
        "Where to go next, in order; without a match the cast ends.", "R3",
        write='write a list: [{"when": "always", "to": "Socket-2"}]', apart=True)
    advance: AdvanceFields | None = config_field("How the socket moves on to the next item.", "R14")
    foreach: Foreach | None = config_field(
        "Its own list to iterate over; it takes precedence over the loop's.", "R1", "R12")
    handoff: fields.NonBlankText = config_field(
        f"The protocol of the agent here; left out, the loadout's, else `{DEFAULT_HANDOFF}`.",
        shape="name of a protocol")
    assignment: Assignment | None = config_field(
        f"The agent's task, for protocols that include it in the prompt ({_TASK_PROTOCOLS}).")
    finalize: fields.Flag | None = config_field(
        "Whether the agent first works, answering in any form, and is then asked for its handoff, in a separate turn "
        "of the same conversation. For agents whose output is json.", label="hands over apart")
    cast_context: fields.Context | None = config_field(
        "What its agent sees of the cast besides its own prompt: everything (`full`), only the `request`, `none`, or "
        "an object of `request`, `items`, `state`, `handoffs`, `previous`; left out, the materia's, else the "
        "loadout's, else the config's, else `full`.", "R50", label="context", first=4)
    prompt_form: fields.PromptStyle | None = config_field(
        "How its prompt is written: headings and fences (`md`), or plain names and blank lines (`plain`); left out, "
        "as in the profile of its model, else `md`.", "R50")
    limits: SocketLimits | None = config_field("Bounds of other versions; accepted and ignored.", "R21", apart=True)
    layout: object = config_field(
        "Where it is drawn; the loadout's layout comes first.", shape="object with x and y", apart=True)
    socket_kind: object = config_field("Kept for the reference's editor.", shape="entry or normal")
    empty: object = config_field("Kept for the reference's editor.", shape="true or false")
    label: object = config_field("A name for people.", first=2)


class Consumes(Model):
    """Gives all members of a loop the work items of a generator."""

    noun = "consumes"
    example = '{"from": "Socket-1"}'
    code = INVALID_LOOP

    from_: fields.Reference | None = config_field(
        "The generator socket. It is not a member, and exactly one of its edges leads into the loop. Required.", "R27",
        alias="from", shape="socket id", needed=True, first=1)
    output: fields.WorkItemsList = config_field(
        "The list that it passes on; left out, `workItems`.", "R12",
        write='write "workItems" or leave it out; for another list use iterator {"items": "state...."}')
    as_: fields.Name | None = config_field(
        "The name of the current item in the state; left out, `workItem`.", "R12", alias="as", label="item is called",
        first=2)
    cursor: fields.Name | None = config_field(
        "The cursor; left out, `workItemIndex`. Two loops over one generator need different ones.", "R13", "R27")
    done: fields.Reference | None = config_field(
        "Where older loadouts went after the last item. It must exist.", "R14", ignored="a loop is left by its exits")


class IteratorFields(Foreach):
    """Gives all members of a loop the items of a list that no generator made."""

    noun = "an iterator"
    code = INVALID_LOOP


class ExitRouteFields(Model):
    """An exit of a loop, taken once its list is exhausted."""

    noun = "an exit route"
    example = '{"id": "...", "from": "...", "condition": "...", "targetSocketId": "..."}'
    code = INVALID_LOOP

    id: fields.NonBlankText = config_field(
        "A name that is unique in the loop. Required.", "R26", required=True,
        write="write an id that is unique in this loop", first=4)
    from_: fields.Reference | None = config_field(
        "The member that exhausts the list. Required.", "R16", alias="from", shape="socket id", needed=True, first=2)
    condition: fields.WhenOutput = config_field(
        "When it is taken: the last output's `satisfied`, or always. Required; one route for each source and "
        "condition.", "R16", "R27", required=True, label="when", first=1, code=INVALID_CONDITION,
        missing="the condition is missing")
    target_socket_id: fields.Reference | None = config_field(
        "Where it leads. Required.", "R27", needed=True, label="to", first=3)


class LegacyExit(Model):
    """The older form of an exit; `exits` expresses the same and more."""

    noun = "an exit"
    example = '{"from": "Socket-3", "when": "satisfied", "to": "end"}'
    code = INVALID_LOOP

    from_: fields.Reference | None = config_field(
        "The member that decides. Required.", "R15", alias="from", shape="socket id", needed=True)
    when: fields.WhenOutput = config_field(
        "When the item is done and the cursor moves. Required.", "R15", required=True, code=INVALID_CONDITION,
        missing="the condition is missing")
    to: fields.Reference | None = config_field("Where to go after the last item. Required.", "R15", needed=True)


class LoopFields(Model):
    """A region of sockets that work on one item after another."""

    noun = "a loop"
    example = '{"sockets": [...], ...}'
    code = INVALID_LOOP

    sockets: list[fields.Reference] = config_field(
        "The members, which form a cycle by their edges. Required.", "R27", required=True, min_length=1,
        shape="list of socket ids", missing="the loop lists no sockets",
        write='list its members: ["Socket-2", "Socket-3"]', apart=True)
    consumes: Consumes | None = config_field(
        "The generator whose work items it iterates over.", "R12", "R27", apart=True)
    iterator: IteratorFields | None = config_field("Another list to iterate over.", "R12", apart=True)
    exits: list[ExitRouteFields] = config_field(
        "The exits. If no member advances, the sources of these routes derive an advance.", "R15", "R16",
        write="write a list of routes: [{ ... }]", apart=True)
    exit: LegacyExit | None = config_field("The older form of `exits`, which also sets an advance.", "R15", apart=True)
    label: object = config_field("A name for people.")
    parallel: Parallel | None = config_field(
        "Settings for its lanes, if its generator is `parallel`; left out, the config's `parallelism`.", apart=True)


class Loadout(Model):
    """A workflow: sockets, the edges between them, and loop regions."""

    noun = "a loadout"
    example = '{"entry": "Socket-1", "sockets": { ... }}'

    entry: fields.Reference | None = config_field(
        "The socket where a cast starts; left out, the first.", "R26", "R36", shape="socket id", first=3)
    sockets: dict[fields.Key, SocketFields] = config_field(
        "Socket id -> socket. `Socket-1`, `Socket-2`, ... are the canonical ids. Required.", "R26", required=True,
        min_length=1, code=INVALID_SOCKET, missing="the loadout has no sockets",
        write='write {"Socket-1": {"materia": "..."}, ...}', bare=True, apart=True)
    loops: dict[fields.Key, LoopFields] | None = config_field(
        "Loop id -> loop region.", "R15", "R27", code=INVALID_LOOP,
        write='write an object: {"name": {"sockets": [...]}}', apart=True)
    handoff: fields.NonBlankText = config_field(
        f"The protocol of its agents; left out, `{DEFAULT_HANDOFF}`.", shape="name of a protocol", first=5)
    cast_context: fields.Context | None = config_field(
        "What its agents see of the cast, unless their socket or materia sets it; left out, the config's.", "R50",
        label="context", first=4)
    origin_default_id: object = config_field("Kept for the reference's editor.")
    layout: object = config_field("Where its sockets are drawn.", shape="object", apart=True)
    description: object = config_field("What it is for.", first=1)
    label: object = config_field("A name for people.", first=2)
    id: object = config_field("Kept for the reference's editor.")
    source: object = config_field("Kept for the reference's editor.")
    lock_state: object = config_field("Kept for the reference's editor.", shape="locked or unlocked")
    catalog_origin: object = config_field("Kept for the reference's editor.", shape="object")


class MateriaFields(Model):
    """What agents and utilities share."""

    example = "{ ... } with its fields"
    code = INVALID_MATERIA

    type: fields.MateriaType = config_field(
        "`agent` or `utility`. Left out: a utility if it has a command or script, else an agent.", "R26", apart=True)
    label: object = config_field("A name for people; left out, its id.")
    description: object = config_field("What it is for.")
    group: object = config_field(
        "The heading under which the designer's palette lists it; left out, `Utility` for a utility.")
    color: object = config_field(
        "Its colour in the pictures: `#rgb`, `#rrggbb`, or a name such as `teal`; left out, the colour of its kind.",
        shape="colour")
    generator: fields.Flag = config_field(
        "Whether it produces work items. Its output is then json with `workItems`.", "R4", "R9", label="makes items",
        first=4)
    lock_state: object = config_field("Kept for the reference's editor.", shape="locked or unlocked")
    catalog_origin: object = config_field("Kept for the reference's editor.", shape="object")
    parallel: fields.Flag = config_field(
        "Whether a generator distributes its items to streams, whose lanes run in parallel. Its output then contains "
        "a `parallelSchedule` besides `workItems`.", label="in streams")
    parallel_safe: fields.Flag = config_field(
        "Whether it may run in parallel lanes; required of every materia there.", label="safe in lanes")
    parallel_planner: fields.Flag = config_field("An older name of `parallel`.")


class AgentMateria(MateriaFields):
    """A materia that a model, a person or a function answers for."""

    noun = "an agent"

    prompt: fields.NonBlankText = config_field(
        "Its task, with `{{...}}` variables. Required.", "R26", "R31", required=True,
        write='write what the agent is to do (or, if a process is meant, "type": "utility")', first=1, prose=True)
    tools: fields.Tools = config_field(
        'The tools that it may use: `none`, `readOnly`, `coding`, a list of names, or `{"type": "custom", "tools": '
        "[...]}`. Required.", "R26", required=True, write='write "none", "readOnly", "coding" or a list of tool names',
        first_value="none", first=3)
    model: fields.AnyText = config_field("The model that answers; left out, the default of its agent.", "R26", first=2)
    thinking: fields.AnyText = config_field("How long the model may think, in the terms of its agent.")
    multi_turn: fields.Flag = config_field(
        "Whether a person refines drafts before the final answer.", "R26", label="drafts", first=5)
    cast_context: fields.Context | None = config_field(
        "What it sees of the cast, unless its socket sets it.", "R50", label="context")
    parse: fields.Parse = config_field("How its output is read.", "R4", ignored="write it on the socket")


class Script(Model):
    """A script that is shipped with this package."""

    noun = "a script"
    example = '{"kind": "shippedUtility", "name": "detect-vcs.py"}'
    code = INVALID_MATERIA

    kind: fields.ShippedUtility = config_field(
        "Always `shippedUtility`. Required.", "R25", required=True,
        write='write "shippedUtility", or use command for a script of your own')
    name: fields.ScriptName = config_field(
        "Its file name; a name in `.mjs` means the `.py` of that name. Required.", "R25", required=True)
    runtime: object = config_field("What ran it elsewhere.", ignored="scripts run with the kernel's own Python")


class UtilityMateria(MateriaFields):
    """A materia that is a process."""

    noun = "a utility"

    command: list[fields.CommandPart] | None = config_field(
        "The program and its arguments. No shell is used. Either this or `script` is required.", "R23", "R24",
        min_length=1, shape="list of text", write='write a list of strings, such as ["python3", "script.py"]; no '
        "shell is used", first=1)
    script: Script | None = config_field("A shipped script instead of a command.", "R25")
    params: dict[fields.Key, object] | None = config_field(
        "Parameters, passed to the process on stdin.", "R23", write="write an object: { ... }")
    parse: fields.Parse = config_field(
        "How its stdout is read: `json` or `text` (the default).", "R4", "R6", label="output", first=2)
    assign: dict[fields.Key, fields.SourcePath] | None = config_field(
        "What is saved in the state, in order: dotted target -> source.", "R4", "R11",
        write='write an object from targets to sources: {"plan": "$.plan"}')
    timeout_ms: fields.Milliseconds = config_field(
        "How long it may run.", "R23", default=DEFAULT_TIMEOUT_MS,
        write="write a number of milliseconds above 0, such as 30000", label="time limit", unit="milliseconds", first=4)
    multi_turn: fields.Flag = config_field("Drafts.", ignored="a process gives one answer")
    utility: object = config_field(
        f"A shipped script by its name in the reference engine, instead of `script`: {_BUILT_IN_NAMES}.", "R61")

# fmt: on

MODELS: Final[tuple[type[Model], ...]] = (
    Config, BudgetFields, PriceFields, LimitsFields, Parallelism, McpServer, Loadout, SocketFields,
    EdgeFields, AdvanceFields, Foreach, Assignment, SocketLimits, LoopFields, Parallel, Consumes,
    IteratorFields, ExitRouteFields, LegacyExit, AgentMateria, UtilityMateria, Script,
)  # fmt: skip
"""The objects of the format, in the order of the documentation."""


def materia_model(definition: Object) -> type[Model]:
    """Return the class that describes a definition of a materia."""
    return UtilityMateria if materia_kind(definition) == "utility" else AgentMateria


def config_fields() -> list[FieldRow]:
    """Return every field of the format, object by object, for the documentation."""
    return [row for model in MODELS for row in model.rows.values()]
