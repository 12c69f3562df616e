"""Verbs about loadouts and who answers."""

from __future__ import annotations

import shlex
import textwrap
from dataclasses import replace
from typing import Any

from materia_nb.agents.interface import AGENT_CELL
from materia_nb.agents.model_agent import ModelAgent, meant
from materia_nb.agents.notebook_agents import is_model
from materia_nb.agents.presets import COMMAND_PREFIX
from materia_nb.cast.library import Loadouts
from materia_nb.cast.views.loadout_views import (
    ReportView,
    agents_view,
    fields_view,
    loadouts_view,
    materia_view,
)
from materia_nb.cast.views.status import marks_of
from materia_nb.cast.views.tables import pins_view
from materia_nb.cast.workbench import Workbench
from materia_nb.display.blocks import Table, Text
from materia_nb.display.svg import GraphPicture
from materia_nb.errors import MateriaError
from materia_nb.loadout.exporting import OTHER_TOOLS, export_graph
from materia_nb.magics.registry import Argument, Call, Verb, from_method, parse, value_of, verb

_NAMED = Argument("loadout", "a loadout, the chosen one if left out", "rest", completes="loadout")


from_method(
    "load",
    Loadouts.load,
    value_of,
    path={"name": "file", "completes": "file"},
    example="%materia load hello-utility.json",
)
from_method(
    "use",
    Loadouts.use,
    value_of,
    name={"name": "loadout", "help": "its name", "completes": "loadout"},
    example="%materia use Hello-Utility",
)
from_method(
    "copy",
    Loadouts.copy,
    value_of,
    name={"name": "loadout", "completes": "loadout"},
    new={"kind": "word"},
    example="%materia copy Full-Auto My-Auto --materia",
)


@verb("list loadouts", replace(_NAMED, help="one of them: its fields, and the layer that each comes from"))
def _list_loadouts(call: Call) -> Any:
    """List the loadouts and the layers that they come from, or the fields of one."""
    if (name := call.get("loadout")) is not None:
        return fields_view(call.bench.loadouts.config, "loadout", name)
    return loadouts_view(call.bench.loadouts, call.bench.loadouts.chosen, call.bench.loadouts.config)


@verb(
    "list materia",
    Argument(
        "materia", "one of them: its fields, and the layer that each comes from", "rest", completes="materia"
    ),
    example="%materia list materia Build",
)
def _list_materia(call: Call) -> Any:
    """List the materia, the layers that they come from, and who answers; or the fields of one."""
    if (name := call.get("materia")) is not None:
        return fields_view(call.bench.loadouts.config, "materia", name)
    return materia_view(call.bench.loadouts.config, call.bench.agents)


@verb(
    "grid",
    Argument(
        "--to",
        "as source for another tool: a Mermaid flowchart, LangGraph code, a draw.io diagram",
        "option",
        choices=("mermaid", *OTHER_TOOLS),
    ),
    _NAMED,
    example="%materia grid --to langgraph Plan-Build-Eval",
)
def _grid(call: Call) -> Any:
    """Draw the graph of the cast, or of a loadout."""
    name, cast, to = call.get("loadout"), call.bench.cast_, call.get("to")
    if name is None and cast is not None and cast.graph.name == call.bench.loadouts.chosen:
        picture = GraphPicture(cast.graph, marks_of(cast.now))
    else:
        shown = call.bench.loadouts.show(name)
        if to is None:
            return shown
        picture = shown.picture
    if to in OTHER_TOOLS:
        return Text(export_graph(picture.graph, to).text)
    return Text(picture.mermaid) if to else picture


@verb(
    "check",
    Argument("--strict", "unknown fields are problems too", "flag"),
    Argument("--mend", "show which of them one change fixes, and how", "flag"),
    Argument(
        "--save",
        "with --mend: make the changes that need no choice, and save them where the loadout is defined",
        "flag",
    ),
    _NAMED,
    example="%materia check\n%materia check --mend --save Report",
)
def _check(call: Call) -> Any:
    """Show the problems of a loadout, and hints; with --mend, what one change fixes."""
    bench, name = call.bench, call.get("loadout") or call.bench.loadouts.chosen
    if not call.get("mend"):
        if call.get("save"):
            raise MateriaError("Only fixes are saved.", hint="check --mend --save", kind="usage")
        report = bench.check(name)
        return ReportView(name or "", report.strict() if call.get("strict") else report)
    design = bench.design(name)
    if call.get("save"):
        done = design.mend_all()
        if done:
            done.append(bench.loadouts.save(design, anyway=True))
        nothing = "Nothing can be fixed automatically: check --mend shows your choices, check what is left."
        return Text("\n".join(done or [nothing]))
    rows = [
        (one.code, one.source, how.words, "in the designer" if how.suggestion else "--save")
        for one, how in design.mends().items()
    ]
    empty = "no single change fixes anything: check shows what is left"
    return Table(("code", "where", "would be fixed like this", "by"), rows, empty)


@verb(
    "design",
    Argument("--new", "start an empty loadout of that name", "flag"),
    _NAMED,
    example="%materia design Plan-Build-Eval",
)
def _design(call: Call) -> Any:
    """Edit a loadout on its graph: sockets, edges, loops, exits; with its problems, undo, and saving."""
    from materia_nb.widgets.design_panel import show_design

    return show_design(call.bench, call.get("loadout"), new=bool(call.get("new")))


from_method(
    "gallery",
    Workbench.gallery,
    value_of,
    name={"name": "card", "completes": "card"},
    example="%materia gallery critic-loop",
)


@verb(
    "define loadout",
    Argument("name", "its name", "rest", required=True),
    cell="must",
    example="%%materia define loadout Two-Steps\n"
    "entry: Socket-1\n"
    "sockets:\n"
    "  Socket-1: {materia: Plan, edges: [{when: always, to: Socket-2}]}\n"
    "  Socket-2: {materia: Build}",
)
def _loadout(call: Call) -> Any:
    """Define a loadout in this notebook, in JSON or YAML."""
    return call.bench.loadouts.define(call.get("name"), call.body or "")


_MODEL_OPTIONS = (
    Argument("--base-url", "the URL of the model's API, if not the provider's own", "option"),
    Argument("--max-tokens", "the maximum length of an answer, in tokens", "option", whole=True),
    Argument("--no-tools", "the model cannot use tools, so the materia's are left out", "flag"),
    Argument("--key-env", "the environment variable with its key, if not the provider's own", "option"),
    Argument(
        "--prompt-form", "how its prompts are written: md, or plain without headings and fences", "option"
    ),
)
_MODEL = Verb(
    "agent NAME",
    "",
    lambda _: None,
    (Argument("model", "provider:model", required=True), *_MODEL_OPTIONS),
    "never",
    "",
)


@verb(
    "agent",
    Argument("name", "a materia or socket; * for all others; none to list", completes="materia"),
    Argument(
        "who",
        "a model (provider:model, or model for the one that each materia asks for), person, command:NAME for a "
        "known program, command and its arguments, recorded:FILE (or a cast), or a $variable; none with a cell",
        "rest",
        completes="agent",
    ),
    *_MODEL_OPTIONS,
    cell="may",
    example="%%materia agent Build\nreturn f'built {turn.item_label}'",
)
def _agent(call: Call) -> Any:
    """Choose who answers a materia or socket: a model, a person, a command, a variable, or the Python in the cell."""
    name, who = call.get("name"), call.get("who")
    if name is None:
        if call.body is not None:
            raise MateriaError("Say for whom the cell answers: a materia, a socket or *.", kind="usage")
        return agents_view(call.bench.agents)
    if call.body is not None:
        call.bench.agent(name, _function(name, call.body, _dict_of(call)))
    elif who is None:
        call.bench.agent(name)  # nobody is set; a name that does not exist is told
        return agents_view(call.bench.agents)
    elif isinstance(who, str) and who.split()[:1] == ["command"]:
        call.bench.agent(name, shlex.split(who)[1:])
    elif isinstance(who, str) and not who.startswith(COMMAND_PREFIX) and is_model(who.partition(" ")[0]):
        call.bench.agent(name, _model(who, call))
    elif isinstance(who, str) and who != "person" and not who.startswith((COMMAND_PREFIX, "recorded:")):
        raise MateriaError(
            f"{who!r} is not an agent.",
            hint=f"did you mean {model!r}?"
            if (model := meant(who))
            else "write provider:model, person, command:NAME, command PROGRAM ARGUMENT..., recorded:FILE, "
            "a $variable, or a cell with the body of a function",
            kind="bad_agent",
        )
    else:
        call.bench.agent(name, who)
    return agents_view(call.bench.agents)


@verb(
    "pin",
    Argument("--off", "remove the pin", "flag"),
    Argument("name", "a socket or materia, utilities too; none to list", completes="materia"),
    Argument("--visit", "the visit whose output to use", "option", whole=True),
    Argument(
        "to",
        "the answer as text, a $variable (text, a dict, a function, a cast), or recorded:CAST for the recorded "
        "answers of a cast; if left out, its latest output in this cast",
        "rest",
    ),
    cell="may",
    example='%materia pin Detect-VCS {"state": {"vcs": "git"}}\n%materia pin --off Detect-VCS',
)
def _pin(call: Call) -> Any:
    """Choose what answers a socket or materia, in this cast and later ones; a pinned utility starts no process."""
    bench, name, to = call.bench, call.get("name"), call.body_or("to")
    if name is None and (call.body is not None or call.get("off")):
        raise MateriaError("Name a socket or materia.", hint="pin NAME, pin --off NAME", kind="usage")
    if call.get("off"):
        if to is not None or call.get("visit") is not None:
            raise MateriaError(
                "An unpinned socket or materia takes no answer.", hint="pin --off NAME", kind="usage"
            )
        bench.unpin(name)
    elif name is not None:
        bench.pin(name, to, visit=call.get("visit"))
    here = {} if bench.cast_ is None else bench.cast_.pins
    return pins_view(here, {name: (one.pin, one.loadout) for name, one in bench.agents.pins.items()})


def _model(text: str, call: Call) -> ModelAgent:
    """Make the agent of a model's name and the options before or behind it; ``model`` may stand before the name."""
    first, _, rest = text.partition(" ")
    if first == "model" and is_model("".join(rest.split()[:1])):
        text = rest
    given = {**call.arguments, **parse(_MODEL, text, call.names)}
    name = given["model"]
    return ModelAgent(
        None if name == "model" else name,
        base_url=given.get("base_url"),
        key_env=given.get("key_env"),
        settings={"max_tokens": most} if (most := given.get("max_tokens")) is not None else None,
        tools=not given.get("no_tools"),
        prompt_form=given.get("prompt_form"),
    )


def _dict_of(call: Call) -> dict[str, Any]:
    """The user's names as the dict that a function defined in a cell uses as its globals."""
    if not isinstance(call.names, dict):
        raise TypeError("the names of a shell are a dict")
    return call.names


def _function(name: str, body: str, names: dict[str, Any]) -> Any:
    """Make a function of a cell's body; ``turn`` and ``prompt`` are its arguments."""
    source = "def answer(turn, prompt):\n" + textwrap.indent(body.strip("\n") + "\n", "    ")
    if "await " in body:
        source = "async " + source
    made: dict[str, Any] = {}
    try:
        exec(compile(source, f"{AGENT_CELL}{name}>", "exec"), names, made)  # noqa: S102 - the person's own cell
    except SyntaxError as error:
        raise MateriaError(
            f"The body of the agent is not Python: {error.msg}.",
            where=f"line {max((error.lineno or 2) - 1, 1)} of the cell",
            hint="write the body of a function: it has turn and prompt, and returns text or a dict",
            kind="bad_agent",
        ) from None
    function = made["answer"]
    function.__name__ = function.__qualname__ = f"agent {name}"
    return function


@verb(
    "define utility",
    Argument("name", "the name of the materia", required=True),
    Argument("--text", "stdout is text, not JSON", "flag"),
    Argument("--generator", "it produces workItems", "flag"),
    Argument("--timeout-ms", "how long it may run", "option", whole=True),
    cell="must",
    example="%%materia define utility Count-Files\n"
    "import json, os, sys\n"
    "context = json.load(sys.stdin)\n"
    "print(json.dumps({'state': {'files': len(os.listdir(context['cwd']))}}))",
)
def _utility(call: Call) -> Any:
    """Define a utility materia whose script is the Python in the cell."""
    fields = {"timeoutMs": call.get("timeout_ms")} if call.get("timeout_ms") is not None else {}
    path = call.bench.loadouts.define_utility(
        call.get("name"),
        call.body or "",
        parse="text" if call.get("text") else "json",
        generator=bool(call.get("generator")),
        **fields,
    )
    return Text(f"Utility {call.get('name')} runs {path.name}.")
