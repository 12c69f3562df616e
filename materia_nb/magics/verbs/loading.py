"""Verbs about loadouts and who answers: load, reload, loadouts, use, copy, grid, check, mend, loadout, agent, pin, unpin, utility."""

from __future__ import annotations

import shlex
import textwrap
from typing import Any

from materia_nb.agents.command_agent import PREFIX
from materia_nb.agents.interface import AGENT_CELL
from materia_nb.agents.model.model_agent import ModelAgent
from materia_nb.agents.model.providers import meant
from materia_nb.agents.notebook_agents import is_model
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
from materia_nb.magics.registry import Argument, Call, Verb, parse, verb

_NAMED = Argument("loadout", "a loadout, the chosen one if left out", "rest", completes="loadout")


@verb(
    "load",
    Argument(
        "file", "a .json, .jsonc, .yaml or .yml file, or a variable", "rest", required=True, completes="file"
    ),
    example="%materia load hello-utility.json",
)
def load(call: Call) -> Any:
    """Load a config file and choose its active loadout."""
    return call.bench.load(call.get("file"))


@verb("reload")
def reload(call: Call) -> Any:
    """Read the config files again after one was changed; a cast that runs keeps its copy (see redefine)."""
    return call.bench.reload()


@verb(
    "loadouts",
    Argument(
        "name", "one of them: its fields, and the layer that each comes from", "rest", completes="loadout"
    ),
)
def loadouts(call: Call) -> Any:
    """List the loadouts and the layers that they come from, or the fields of one."""
    if (name := call.get("name")) is not None:
        return fields_view(call.bench.config, "loadout", name)
    return loadouts_view(call.bench.loadouts, call.bench.chosen, call.bench.config)


@verb(
    "materia",
    Argument(
        "name", "one of them: its fields, and the layer that each comes from", "rest", completes="materia"
    ),
    example="%materia materia Build",
)
def materia(call: Call) -> Any:
    """List the materia, the layers that they come from, and who answers; or the fields of one."""
    if (name := call.get("name")) is not None:
        return fields_view(call.bench.config, "materia", name)
    return materia_view(call.bench.config, call.bench.agents)


@verb(
    "use",
    Argument("loadout", "its name", "rest", required=True, completes="loadout"),
    example="%materia use Hello-Utility",
)
def use(call: Call) -> Any:
    """Choose the loadout to cast."""
    return call.bench.use(call.get("loadout"))


@verb(
    "copy",
    Argument("loadout", "which one", required=True, completes="loadout"),
    Argument("new", "what the copy is called; left out, the same name with -Copy"),
    Argument("--materia", "copy the materia that it places too", "flag"),
    example="%materia copy Full-Auto My-Auto --materia",
)
def copy(call: Call) -> Any:
    """Copy a loadout into the project's .pi/pi-materia.json, to be edited there, and choose it."""
    return call.bench.copy_loadout(call.get("loadout"), call.get("new"), materia=bool(call.get("materia")))


@verb("grid", Argument("--mermaid", "as mermaid source, to paste into a document", "flag"), _NAMED)
def grid(call: Call) -> Any:
    """Draw the graph of the cast, or of a loadout."""
    name, cast = call.get("loadout"), call.bench.cast_
    if name is None and cast is not None and cast.graph.name == call.bench.chosen:
        picture = GraphPicture(cast.graph, marks_of(cast.now))
    else:
        shown = call.bench.loadout(name)
        if not call.get("mermaid"):
            return shown
        picture = shown.picture
    return Text(picture.mermaid) if call.get("mermaid") else picture


@verb("check", _NAMED)
def check(call: Call) -> Any:
    """Show the problems of a loadout and, apart from them, hints."""
    name = call.get("loadout") or call.bench.chosen
    return ReportView(name or "", call.bench.check(name))


@verb(
    "mend",
    Argument(
        "--save",
        "make the changes that can be meant in one way only, and save them where the loadout is kept",
        "flag",
    ),
    _NAMED,
    example="%materia mend\n%materia mend --save Report",
)
def mend(call: Call) -> Any:
    """Show which problems and hints of a loadout one change mends; with --save, make those that need no choice."""
    bench = call.bench
    design = bench.design(call.get("loadout"))
    if call.get("save"):
        done = design.mend_all()
        if done:
            done.append(bench.save_design(design, anyway=True))
        return Text(
            "\n".join(done or ["Nothing mends itself: mend shows what you can choose, check what is left."])
        )
    rows = [
        (one.code, one.source, how.words, "in the designer" if how.suggestion else "--save")
        for one, how in design.mends().items()
    ]
    return Table(
        ("code", "where", "would be mended so", "by"),
        rows,
        "no one change mends anything: check shows what is left",
    )


@verb(
    "loadout",
    Argument("name", "what it is called", "rest", required=True),
    cell="must",
    example="%%materia loadout Two-Steps\n"
    "entry: Socket-1\n"
    "sockets:\n"
    "  Socket-1: {materia: Plan, edges: [{when: always, to: Socket-2}]}\n"
    "  Socket-2: {materia: Build}",
)
def loadout(call: Call) -> Any:
    """Define a loadout in this notebook, in JSON or YAML."""
    return call.bench.define_loadout(call.get("name"), call.body or "")


_MODEL_OPTIONS = (
    Argument("--base-url", "where the model's API is, when it is not at its provider's own place", "option"),
    Argument("--max-tokens", "how long an answer of the model may be, in tokens", "option", whole=True),
    Argument("--no-tools", "the model can use no tools, so the materia's are left out", "flag"),
    Argument("--key-env", "the environment variable with its key, if not the provider's own", "option"),
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
    Argument(
        "name", "a materia or socket; * for everyone not set otherwise; none to list", completes="materia"
    ),
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
def agent(call: Call) -> Any:
    """Say who answers a materia or socket: a model, person, a command, a variable, or the Python in the cell."""
    name, who = call.get("name"), call.get("who")
    if name is None:
        if call.body is not None:
            raise MateriaError("Say for whom the cell answers: a materia, a socket or *.", kind="usage")
        return agents_view(call.bench.agents)
    if call.body is not None:
        call.bench.agent(name, _function(name, call.body, dict_of(call)))
    elif who is None:
        call.bench.agent(name)  # nobody is set; a name that does not exist is told
        return agents_view(call.bench.agents)
    elif isinstance(who, str) and who.split()[:1] == ["command"]:
        call.bench.agent(name, shlex.split(who)[1:])
    elif isinstance(who, str) and not who.startswith(PREFIX) and is_model(who.partition(" ")[0]):
        call.bench.agent(name, _model(who, call))
    elif isinstance(who, str) and who != "person" and not who.startswith((PREFIX, "recorded:")):
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
    Argument("name", "a socket or materia, utilities too; none to list", completes="materia"),
    Argument("--visit", "the one visit whose output is meant", "option", whole=True),
    Argument(
        "to",
        "the text that answers, a $variable (text, a dict, a function, a cast), or recorded:CAST for what was said "
        "there; left out, its latest output in this cast",
        "rest",
    ),
    cell="may",
    example='%materia pin Detect-VCS {"state": {"vcs": "git"}}',
)
def pin(call: Call) -> Any:
    """Choose what answers a socket or materia, in this cast and later ones; a pinned utility starts no process."""
    name = call.get("name")
    if name is not None:
        call.bench.pin(name, call.body_or("to"), visit=call.get("visit"))
    elif call.body is not None:
        raise MateriaError("Say what the cell is pinned to: a socket or materia.", kind="usage")
    return _pinned(call.bench)


@verb(
    "unpin",
    Argument("name", "a pinned socket or materia", required=True, completes="pin"),
    example="%materia unpin Detect-VCS",
)
def unpin(call: Call) -> Any:
    """Let a socket or materia be answered as usual again."""
    call.bench.unpin(call.get("name"))
    return _pinned(call.bench)


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
    )


def dict_of(call: Call) -> dict[str, Any]:
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
    "utility",
    Argument("name", "what the materia is called", required=True),
    Argument("--text", "stdout is text, not JSON", "flag"),
    Argument("--generator", "it produces workItems", "flag"),
    Argument("--timeout-ms", "how long it may run", "option", whole=True),
    cell="must",
    example="%%materia utility Count-Files\n"
    "import json, os, sys\n"
    "context = json.load(sys.stdin)\n"
    "print(json.dumps({'state': {'files': len(os.listdir(context['cwd']))}}))",
)
def utility(call: Call) -> Any:
    """Define a utility materia whose script is the Python in the cell."""
    fields = {"timeoutMs": call.get("timeout_ms")} if call.get("timeout_ms") is not None else {}
    path = call.bench.define_utility(
        call.get("name"),
        call.body or "",
        parse="text" if call.get("text") else "json",
        generator=bool(call.get("generator")),
        **fields,
    )
    return Text(f"Utility {call.get('name')} runs {path.name}.")


def _pinned(bench: Workbench) -> Table:
    here = {} if bench.cast_ is None else bench.cast_.pins
    return pins_view(here, {name: (one.pin, one.loadout) for name, one in bench.pins.items()})
