"""Verbs about loadouts and about the agents of their sockets."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from materia_nb.agents.command_agent import COMMAND_PREFIX, PRESETS
from materia_nb.agents.interface import AGENT_CELL_PREFIX
from materia_nb.agents.model_agent import ModelAgent, suggest_model
from materia_nb.agents.notebook_agents import is_model
from materia_nb.cast.library import Loadouts
from materia_nb.cast.views.loadout_views import agents_view, fields_view, loadouts_view, materia_view, report_view
from materia_nb.cast.views.status import overlay_of
from materia_nb.cast.views.tables import pins_view
from materia_nb.cast.workbench import Workbench
from materia_nb.display.blocks import Table, Text
from materia_nb.display.svg import GraphPicture
from materia_nb.errors import MateriaError, usage_error
from materia_nb.loadout.config_files import EXTENSIONS
from materia_nb.magics.registry import VERBS, Argument, Call, Rest, method_verb, parse, value_of, verb

method_verb(
    "load",
    Loadouts.load,
    value_of,
    path={"name": "file", "completes": "file"},
    example="%materia load hello-utility.json",
)
method_verb(
    "use",
    Loadouts.use,
    value_of,
    name={"name": "loadout", "help": "its name", "completes": "loadout"},
    example="%materia use Hello-Utility",
)
method_verb(
    "copy",
    Loadouts.copy,
    value_of,
    name={"name": "loadout", "completes": "loadout"},
    new={"kind": "word"},
    example="%materia copy Full-Auto My-Auto --materia",
)


@verb("list loadouts")
def _list_loadouts(call: Call, loadout: Rest = None) -> Any:
    """List the loadouts and the layers in which they are defined, or the fields of one loadout.

    Args:
        loadout: show the fields of this loadout, and the layer of each field
    """
    loadouts = call.bench.loadouts
    if loadout is not None:
        return fields_view(loadouts.config, "loadout", loadout)
    return loadouts_view(loadouts, loadouts.chosen, loadouts.config)


@verb("list materia", example="%materia list materia Build")
def _list_materia(call: Call, materia: Rest = None) -> Any:
    """List the materia, their layers and their agents, or the fields of one materia.

    Args:
        materia: show the fields of this materia, and the layer of each field
    """
    config = call.bench.loadouts.config
    if materia is not None:
        return fields_view(config, "materia", materia)
    return materia_view(config, call.bench.agents)


@verb("grid", to={"choices": ("mermaid",)}, example="%materia grid --to mermaid Plan-Build-Eval")
def _draw_grid(call: Call, loadout: Rest = None, *, to: Any = None) -> Any:
    """Draw the graph of the cast or of a loadout.

    Args:
        to: print the graph in the format of another tool: mermaid
    """
    cast = call.bench.last_cast
    if loadout is None and cast is not None and cast.graph.name == call.bench.loadouts.chosen:
        picture = GraphPicture(cast.graph, overlay_of(cast.now))
    else:
        view = call.bench.loadouts.show(loadout)
        if to is None:
            return view
        picture = view.picture
    return Text(picture.mermaid) if to else picture


@verb("check", example="%materia check\n%materia check --fix --save Report")
def _check_loadout(
    call: Call,
    loadout: Rest = None,
    *,
    strict: bool = False,
    fix: bool = False,
    save: bool = False,
    to: str | None = None,
    for_: str | None = None,
) -> Any:
    """Show the problems and hints of a loadout. With --fix, show the changes that fix them.

    Args:
        strict: report unknown fields as problems
        fix: show which problems and hints can be fixed by one change, and how
        save: with --fix, make the changes that need no choice, and save them where the loadout is defined
        to: with --fix, make these changes in a copy and save it in this JSON file; required for YAML files
        for_: the engine pi-materia; also report the parts that pi-materia rejects or treats differently
    """
    bench, name = call.bench, loadout or call.bench.loadouts.chosen
    if not fix:
        if save or to:
            raise usage_error("Only fixes can be saved.", "write `check --fix --save`")
        report = bench.check(name, engine=for_)
        return report_view(name or "", report.strict() if strict else report)
    design = bench.design(name)
    option, path = "--save", design.home.path
    if path is not None and EXTENSIONS[path.suffix.lower()] == "yaml":
        option = f"--to {path.with_suffix('.json').name}"
        if save and not to:
            raise usage_error(f"{path.name} is a YAML file, which cannot be changed.", f"write `check --fix {option}`")
    if save or to:
        if not (changes := design.fix_all()):
            return Text("No problem can be fixed automatically. Use `check --fix` to list the possible changes.")
        if not to:
            from materia_nb.loadout.design.saving import reject_locked

            reject_locked(design)
        return Text("\n".join([*changes, bench.loadouts.save(design, to, anyway=True)]))
    rows = [
        (problem.code, problem.source, fix.summary, "in the designer" if fix.suggestion else option)
        for problem, fix in design.fixes().items()
    ]
    empty_text = "No problem can be fixed by one change. Use `check` to list the problems."
    if not design.report.problems and not design.report.hints:
        empty_text = "There is nothing to fix: the loadout has no problems and no hints."
    return Table(("code", "where", "change", "by"), rows, empty_text)


@verb("design", example="%materia design Plan-Build-Eval")
def _design(call: Call, loadout: Rest = None, *, new: bool = False) -> Any:
    """Edit a loadout on its graph: sockets, edges, loops and exits, with a list of problems and with undo.

    Args:
        new: create an empty loadout with that name
    """
    from materia_nb.widgets.design_panel import show_design

    return show_design(call.bench, loadout, new=new)


method_verb(
    "gallery",
    Workbench.gallery,
    value_of,
    name={"name": "card", "completes": "card"},
    example="%materia gallery critic-loop",
)


@verb(
    "define loadout",
    cell="must",
    example="%%materia define loadout Two-Steps\n"
    "entry: Socket-1\n"
    "sockets:\n"
    "  Socket-1: {materia: Plan, edges: [{when: always, to: Socket-2}]}\n"
    "  Socket-2: {materia: Build}",
)
def _define_loadout(call: Call, name: Rest) -> Any:
    """Define a loadout in this notebook, in JSON or YAML.

    Args:
        name: the name of the loadout
    """
    return call.bench.loadouts.define(name, call.body or "")


@verb(
    "agent",
    cell="may",
    name={"completes": "materia"},
    who={"completes": "agent"},
    example="%%materia agent Build\nreturn f'built {turn.item_label}'",
)
def _set_agent(
    call: Call,
    name: str | None = None,
    who: Rest = None,
    *,
    base_url: str | None = None,
    max_tokens: int | None = None,
    no_tools: bool = False,
    key_env: str | None = None,
    prompt_form: str | None = None,
    requests_per_minute: int | None = None,
    cache: str | None = None,
) -> Any:
    """Choose the agent of a materia or socket: a model, a person, a command, a variable, or the Python in the cell.

    Args:
        name: a materia or socket; * for all others; without a name, the agents are listed
        who: a model (provider:model, or just model for the model that each materia names), person, command:NAME for a
            known program, command and its arguments, recorded:FILE (or a cast), or a $variable; omit it in a cell
        base_url: the URL of the model's API, if it is not the provider's own
        max_tokens: the maximum length of an answer, in tokens
        no_tools: call the model without tools, because it does not support them
        key_env: the environment variable that contains the key, if it is not the provider's usual variable
        prompt_form: the format of the prompts: md, or plain for prompts without headings or fences
        requests_per_minute: the maximum rate of requests to the provider
        cache: a directory for the answers of the model; equal requests get the stored answers
    """
    if name is None:
        if call.body is not None:
            raise usage_error(
                "The materia or socket is missing.",
                "write `%%materia agent NAME` at the top of the cell; `*` stands for all others",
            )
        return agents_view(call.bench.agents)
    if call.body is not None:
        call.bench.agent(name, _compile_function(name, call.body, call.names))
    elif who is None:
        call.bench.agent(name)  # This only rejects an unknown name and sets no agent.
    elif not isinstance(who, str) or who == "person" or who.startswith((COMMAND_PREFIX, "recorded:")):
        call.bench.agent(name, who)
    elif who.split()[:1] == ["command"]:
        call.bench.agent(name, shlex.split(who)[1:])
    elif is_model(who.partition(" ")[0]):
        options = {
            "base_url": base_url,
            "max_tokens": max_tokens,
            "no_tools": no_tools,
            "key_env": key_env,
            "prompt_form": prompt_form,
            "requests_per_minute": requests_per_minute,
            "cache": cache,
        }
        call.bench.agent(name, _parse_model(who, call, options))
    else:
        raise MateriaError(
            f"{who!r} is not an agent.",
            hint=f"did you mean {model!r}?"
            if (model := f"{COMMAND_PREFIX}{who}" if who in PRESETS else suggest_model(who))
            else "write provider:model, person, command:NAME, command PROGRAM ARGUMENT..., recorded:FILE, "
            "a $variable, or a cell with the body of a function",
            kind="bad_agent",
        )
    return agents_view(call.bench.agents)


@verb(
    "pin",
    cell="may",
    name={"completes": "materia"},
    example='%materia pin Detect-VCS {"state": {"vcs": "git"}}\n%materia pin --off Detect-VCS',
)
def _pin(call: Call, name: str | None = None, to: Rest = None, *, off: bool = False, visit: int | None = None) -> Any:
    """Set a fixed answer for a socket or materia, in this cast and later casts. A pinned utility starts no process.

    Args:
        name: a socket or materia, which may be a utility; without a name, the pins are listed
        to: the answer as text, a $variable (text, a dict, a function or a cast), or recorded:CAST for the recorded
            answers of a cast; defaults to the latest output in this cast
        off: remove the pin
        visit: use the output of this visit
    """
    bench, to = call.bench, call.body_or(to)
    if name is None:
        if call.body is not None or off:
            raise usage_error("The socket or materia is missing.", "write `pin NAME`, or `pin --off NAME`")
    elif off:
        if to is not None or visit is not None:
            raise usage_error("`--off` cannot be combined with an answer or a visit.", "write `pin --off NAME`")
        bench.unpin(name)
    else:
        bench.pin(name, to, visit=visit)
    cast_pins = {} if bench.last_cast is None else bench.last_cast.pins
    return pins_view(cast_pins, {name: (pin.chosen.pin, pin.loadout) for name, pin in bench.agents.pins.items()})


def _parse_model(text: str, call: Call, options: Mapping[str, Any]) -> ModelAgent:
    """Return the model agent for the text ``model NAME`` or ``NAME``, with the options before and after the name."""
    first, _, rest = text.partition(" ")
    if first == "model" and is_model("".join(rest.split()[:1])):
        text = rest
    agent = VERBS["agent"]
    name_and_options = (Argument("model", "provider:model", required=True), *agent.options.values())
    options = {**options, **parse(replace(agent, name="agent NAME", arguments=name_and_options), text, call.names)}
    model, max_tokens = options.pop("model"), options.pop("max_tokens")
    settings = {} if max_tokens is None else {"max_tokens": max_tokens}
    has_tools = not options.pop("no_tools")
    return ModelAgent(None if model == "model" else model, settings=settings, tools=has_tools, **options)


def _compile_function(name: str, body: str, names: Any) -> Any:
    """Compile the body of a cell into a function of ``turn`` and ``prompt`` whose globals are ``names``."""
    source = "def answer(turn, prompt):\n" + textwrap.indent(body.strip("\n") + "\n", "    ")
    if "await " in body:
        source = "async " + source
    definitions: dict[str, Any] = {}
    try:
        exec(compile(source, f"{AGENT_CELL_PREFIX}{name}>", "exec"), names, definitions)  # noqa: S102 - the user's own cell
    except SyntaxError as error:
        raise MateriaError(
            f"The body of the cell is not valid Python: {error.msg}.",
            where=f"line {max((error.lineno or 2) - 1, 1)} of the cell",
            hint="write the body of a function of turn and prompt that returns text or a dict",
            kind="bad_agent",
        ) from None
    function = definitions["answer"]
    function.__name__ = function.__qualname__ = f"agent {name}"
    return function


@verb(
    "define utility",
    cell="must",
    example="%%materia define utility Count-Files\n"
    "import json, os, sys\n"
    "context = json.load(sys.stdin)\n"
    "print(json.dumps({'state': {'files': len(os.listdir(context['cwd']))}}))",
)
def _define_utility(
    call: Call, name: str, *, text: bool = False, generator: bool = False, timeout_ms: int | None = None
) -> Any:
    """Define a utility materia whose script is the Python code in the cell.

    Args:
        name: the name of the materia
        text: read stdout as text instead of JSON
        generator: the utility generates workItems
        timeout_ms: the time limit of the script, in milliseconds
    """
    fields = {} if timeout_ms is None else {"timeoutMs": timeout_ms}
    parse_as = "text" if text else "json"
    path = call.bench.loadouts.define_utility(name, call.body or "", parse=parse_as, generator=generator, **fields)
    return Text(f"Utility {name} runs {path.name}.")
