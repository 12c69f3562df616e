"""Verbs about loadouts and who answers."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final, cast

from materia_nb import lessons
from materia_nb.agents.command_agent import COMMAND_PREFIX
from materia_nb.agents.interface import AGENT_CELL
from materia_nb.agents.model_agent import ModelAgent, suggest_model
from materia_nb.agents.notebook_agents import is_model
from materia_nb.cast import Cast
from materia_nb.cast.edits import most_of
from materia_nb.cast.library import Loadouts
from materia_nb.cast.views.loadout_views import (
    EstimateView,
    ReportView,
    agents_view,
    fields_view,
    loadouts_view,
    materia_view,
)
from materia_nb.cast.views.status import marks_of, status_view, steps_view
from materia_nb.cast.views.step_views import HandoffView, prompt_view
from materia_nb.cast.views.tables import found_view, pins_view
from materia_nb.cast.workbench import Workbench
from materia_nb.display.blocks import JsonView, Table, Text
from materia_nb.display.svg import GraphPicture
from materia_nb.engine.state import Bound
from materia_nb.errors import MateriaError, one_of_words, outgoing_traceback, usage_error
from materia_nb.handoff.base import SAMPLE
from materia_nb.insight.compare import previous_visit
from materia_nb.insight.jsonpath import compile_query
from materia_nb.insight.odds import Chances, PerSocket, Probability
from materia_nb.magics.cast_display import counting, running
from materia_nb.magics.registry import (
    VERBS,
    Argument,
    Call,
    Rest,
    Several,
    Verb,
    from_method,
    parse,
    value_of,
    verb,
)
from materia_nb.registry import lookup
from materia_nb.widgets.cast_parts import alone_names

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


@verb("list loadouts")
def _list_loadouts(call: Call, loadout: Rest = None) -> Any:
    """List the loadouts and the layers that they come from, or the fields of one.

    Args:
        loadout: one of them: its fields, and the layer that each comes from
    """
    loadouts = call.bench.loadouts
    if loadout is not None:
        return fields_view(loadouts.config, "loadout", loadout)
    return loadouts_view(loadouts, loadouts.chosen, loadouts.config)


@verb("list materia", example="%materia list materia Build")
def _list_materia(call: Call, materia: Rest = None) -> Any:
    """List the materia, the layers that they come from, and who answers; or the fields of one.

    Args:
        materia: one of them: its fields, and the layer that each comes from
    """
    config = call.bench.loadouts.config
    if materia is not None:
        return fields_view(config, "materia", materia)
    return materia_view(config, call.bench.agents)


@verb("grid", to={"choices": ("mermaid",)}, example="%materia grid --to mermaid Plan-Build-Eval")
def _grid(call: Call, loadout: Rest = None, *, to: Any = None) -> Any:
    """Draw the graph of the cast, or of a loadout.

    Args:
        to: as source for another tool: a Mermaid flowchart
    """
    cast = call.bench.cast_
    if loadout is None and cast is not None and cast.graph.name == call.bench.loadouts.chosen:
        picture = GraphPicture(cast.graph, marks_of(cast.now))
    else:
        view = call.bench.loadouts.show(loadout)
        if to is None:
            return view
        picture = view.picture
    return Text(picture.mermaid) if to else picture


@verb("check", example="%materia check\n%materia check --fix --save Report")
def _check(
    call: Call, loadout: Rest = None, *, strict: bool = False, fix: bool = False, save: bool = False
) -> Any:
    """Show the problems of a loadout, and hints; with --fix, what one change fixes.

    Args:
        strict: unknown fields are problems too
        fix: show which of them one change fixes, and how
        save: with --fix: make the changes that need no choice, and save them where the loadout is defined
    """
    bench, name = call.bench, loadout or call.bench.loadouts.chosen
    if not fix:
        if save:
            raise usage_error("Only fixes are saved.", "check --fix --save")
        report = bench.check(name)
        return ReportView(name or "", report.strict() if strict else report)
    design = bench.design(name)
    if save:
        done = design.fix_all()
        if done:
            done.append(bench.loadouts.save(design, anyway=True))
        nothing = "Nothing can be fixed automatically: check --fix shows your choices, check what is left."
        return Text("\n".join(done or [nothing]))
    rows = [
        (one.code, one.source, how.summary, "in the designer" if how.suggestion else "--save")
        for one, how in design.fixes().items()
    ]
    empty = "no single change fixes anything: check shows what is left"
    return Table(("code", "where", "would be fixed like this", "by"), rows, empty)


@verb("design", example="%materia design Plan-Build-Eval")
def _design(call: Call, loadout: Rest = None, *, new: bool = False) -> Any:
    """Edit a loadout on its graph: sockets, edges, loops, exits; with its problems, undo, and saving.

    Args:
        new: start an empty loadout of that name
    """
    from materia_nb.widgets.design_panel import show_design

    return show_design(call.bench, loadout, new=new)


from_method(
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
def _loadout(call: Call, name: Rest) -> Any:
    """Define a loadout in this notebook, in JSON or YAML.

    Args:
        name: its name
    """
    return call.bench.loadouts.define(name, call.body or "")


@verb(
    "agent",
    cell="may",
    name={"completes": "materia"},
    who={"completes": "agent"},
    example="%%materia agent Build\nreturn f'built {turn.item_label}'",
)
def _agent(
    call: Call,
    name: str | None = None,
    who: Rest = None,
    *,
    base_url: str | None = None,
    max_tokens: int | None = None,
    no_tools: bool = False,
    key_env: str | None = None,
    prompt_form: str | None = None,
) -> Any:
    """Choose who answers a materia or socket: a model, a person, a command, a variable, or the Python in the cell.

    Args:
        name: a materia or socket; * for all others; none to list
        who: a model (provider:model, or model for the one that each materia asks for), person, command:NAME for a
            known program, command and its arguments, recorded:FILE (or a cast), or a $variable; none with a cell
        base_url: the URL of the model's API, if not the provider's own
        max_tokens: the maximum length of an answer, in tokens
        no_tools: the model cannot use tools, so the materia's are left out
        key_env: the environment variable with its key, if not the provider's own
        prompt_form: how its prompts are written: md, or plain without headings and fences
    """
    if name is None:
        if call.body is not None:
            raise usage_error("Say which materia or socket the cell answers for, or *.")
        return agents_view(call.bench.agents)
    if call.body is not None:
        call.bench.agent(name, _function(name, call.body, _dict_of(call)))
    elif who is None:
        call.bench.agent(name)  # nobody is set; a name that does not exist is told
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
        }
        call.bench.agent(name, _model(who, call, options))
    else:
        raise MateriaError(
            f"{who!r} is not an agent.",
            hint=f"did you mean {model!r}?"
            if (model := suggest_model(who))
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
def _pin(
    call: Call, name: str | None = None, to: Rest = None, *, off: bool = False, visit: int | None = None
) -> Any:
    """Choose what answers a socket or materia, in this cast and later ones; a pinned utility starts no process.

    Args:
        name: a socket or materia, utilities too; none to list
        to: the answer as text, a $variable (text, a dict, a function, a cast), or recorded:CAST for the recorded
            answers of a cast; if left out, its latest output in this cast
        off: remove the pin
        visit: the visit whose output to use
    """
    bench, to = call.bench, call.body_or(to)
    if name is None:
        if call.body is not None or off:
            raise usage_error("Name a socket or materia.", "pin NAME, pin --off NAME")
    elif off:
        if to is not None or visit is not None:
            raise usage_error("An unpinned socket or materia takes no answer.", "pin --off NAME")
        bench.unpin(name)
    else:
        bench.pin(name, to, visit=visit)
    here = {} if bench.cast_ is None else bench.cast_.pins
    return pins_view(here, {name: (one.pin, one.loadout) for name, one in bench.agents.pins.items()})


_MODEL: Final = Verb(
    "agent NAME",
    "",
    lambda _: None,
    (Argument("model", "provider:model", required=True), *VERBS["agent"].options.values()),
    "never",
    "",
)


def _model(text: str, call: Call, options: Mapping[str, Any]) -> ModelAgent:
    """Make the agent of a model's name and the options before or behind it; ``model`` may stand before the name."""
    first, _, rest = text.partition(" ")
    if first == "model" and is_model("".join(rest.split()[:1])):
        text = rest
    given = {**options, **parse(_MODEL, text, call.names)}
    name = given["model"]
    return ModelAgent(
        None if name == "model" else name,
        base_url=given["base_url"],
        key_env=given["key_env"],
        settings=None if given["max_tokens"] is None else {"max_tokens": given["max_tokens"]},
        tools=not given["no_tools"],
        prompt_form=given["prompt_form"],
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
    cell="must",
    example="%%materia define utility Count-Files\n"
    "import json, os, sys\n"
    "context = json.load(sys.stdin)\n"
    "print(json.dumps({'state': {'files': len(os.listdir(context['cwd']))}}))",
)
def _utility(
    call: Call, name: str, *, text: bool = False, generator: bool = False, timeout_ms: int | None = None
) -> Any:
    """Define a utility materia whose script is the Python in the cell.

    Args:
        name: the name of the materia
        text: stdout is text, not JSON
        generator: it produces workItems
        timeout_ms: how long it may run
    """
    fields = {} if timeout_ms is None else {"timeoutMs": timeout_ms}
    parse_as = "text" if text else "json"
    path = call.bench.loadouts.define_utility(
        name, call.body or "", parse=parse_as, generator=generator, **fields
    )
    return Text(f"Utility {name} runs {path.name}.")


@verb("explore", example="%materia explore Plan-Build-Eval")
def _explore(call: Call, loadout: str | None = None, *, items: str = "0-3") -> Any:
    """Show what a loadout can do: every route that its casts can take, without asking an agent.

    Args:
        items: the lengths of lists to try, such as 0-3 or 2,5
    """
    with counting("states") as told:
        return call.bench.explore(loadout, _lengths(str(items)), progress=told)


@verb("explore odds", example="%materia explore odds Plan-Build-Eval --satisfied 0.7")
def _odds(
    call: Call, loadout: str | None = None, *, satisfied: Any = 0.5, failed: Any = 0.0, items: int = 3
) -> Any:
    """Show the exact chance of each end of a cast, and the average number of turns."""
    with counting("states") as told:
        explored = call.bench.explore(loadout, (items,), progress=told)
    return explored.odds(_chances(satisfied), items, failed=_failing(failed))


@verb("estimate", example="%materia estimate Plan-Build-Eval --items 10 --satisfied 0.8 --answer 300")
def _estimate(
    call: Call,
    loadout: str | None = None,
    *,
    request: str = SAMPLE,
    items: int = 3,
    satisfied: Any = 0.5,
    failed: Any = 0.0,
    most: str | None = None,
    answer: int | None = None,
    model: str | None = None,
) -> Any:
    """Estimate how many turns and tokens a cast would take, and what it would cost, without asking an agent.

    Args:
        most: fail if the mean is above this: 20000 tokens in all, 2.50 USD, 10 turns
        answer: the number of tokens of an answer; the fewest possible if left out
        model: use the prices of this model, such as openai:gpt-4o
    """
    bound = None if most is None else most_of(most)
    yes, no_output = _chances(satisfied), _failing(failed)
    made = call.bench.estimate(loadout, request, items, yes, failed=no_output, answer=answer, model=model)
    if bound is not None:
        _refuse_above(made, *bound)
    return made


def _refuse_above(made: EstimateView, of: Bound, most: float) -> None:
    """Raise MateriaError (``over_limit``) where the mean is above a maximum, or where that cannot be known (R56)."""
    total, priced = made.total, made.total.cost is not None and not made.unpriced
    means = {"tokens": total.input.mean + total.output.mean, "turns": total.turns.mean}
    used = means.get(of.of, total.cost.mean if total.cost is not None else 0.0)
    hint = None
    if of.of == "seconds" or (of.of == "cost" and made.sockets and not priced):
        without = "no time is estimated"
        if of.of == "cost":
            without = f"there is no price for {', '.join(made.unpriced)}"
            hint = '"prices" in the config set them; those of known models come with pip install "materia-nb[models]"'
        what = f"Whether a cast takes more than {most:g} {of.unit} is not known: {without}"
    elif used > most:
        what = f"A cast takes some {of.form.format(round(used, 4))} {of.unit} on average, more than {most:g}"
    else:
        return
    raise MateriaError(f"{what}.", where=made.graph.name, hint=hint, more=[made.line], kind="over_limit")


@verb("explore simulate", example="%materia explore simulate Plan-Build-Eval --n 200 --satisfied 0.7")
def _simulate(
    call: Call,
    loadout: str | None = None,
    *,
    n: int = 1000,
    satisfied: Any = 0.5,
    failed: Any = 0.0,
    items: int = 3,
    seed: int = 1,
) -> Any:
    """Cast a loadout many times in memory, with random answers, and show how the casts end.

    Args:
        n: how many casts; 1000 if left out
        seed: the random seed; 1 if left out
    """
    yes, no_output = _chances(satisfied), _failing(failed)
    with counting("casts") as told:
        return call.bench.simulate(loadout, n, yes, items, seed, failed=no_output, progress=told)


@verb(
    "explore prompts",
    example="%materia explore prompts Plan-Build-Eval --items 10 --contexts full,request",
)
def _prompts(
    call: Call,
    loadout: str | None = None,
    *,
    items: int = 3,
    request: str = SAMPLE,
    contexts: str = "",
    rework: bool = False,
    later: bool = False,
) -> Any:
    """Show every prompt that a cast would have, with its size, without asking an agent; answers are made up.

    Args:
        contexts: values of castContext to compare side by side, such as full,request
        rework: send work back once wherever possible
        later: include later turns: of conversations, and one repair per socket
    """
    sides = [one.strip() for one in str(contexts).split(",") if one.strip()]
    return call.bench.prompts(loadout, request, items, sides, rework=rework, later=later)


def _lengths(text: str) -> list[int]:
    found: list[int] = []
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        if not first.strip().isdecimal() or not (last or "0").strip().isdecimal():
            raise usage_error(f"{text!r} does not say how long lists are.", "write 0-3, or 2,5")
        found += range(int(first), int(last or first) + 1)
    return found


def _chances(given: object) -> Chances:
    if isinstance(given, float | int | tuple | dict):
        return given
    text = str(given)
    pairs = [piece.rpartition("=") for piece in text.split(",")]
    try:
        if len(pairs) == 1 and not pairs[0][1]:
            return _chance(text)
        return {name.strip(): _chance(chance) for name, _, chance in pairs}
    except ValueError:
        raise usage_error(
            f"{text!r} is not a chance.", "write 0.7, or Check=0.7,*=0.9; 0.6/0.3 says nothing in 0.3"
        ) from None


def _failing(given: object) -> PerSocket:
    """Return the chances to fail, of which each is one number."""
    chances = _chances(given)
    each = chances.values() if isinstance(chances, Mapping) else (chances,)
    if any(isinstance(one, tuple) for one in each):
        raise usage_error("A chance to fail is one number.", "write 0.1, or Build=0.1")
    return cast("PerSocket", chances)


def _chance(text: str) -> Probability:
    yes, pair, nothing = text.partition("/")
    return (float(yes), float(nothing)) if pair else float(yes)


@verb(
    "compare",
    a={"completes": "cast"},
    b={"completes": "cast"},
    example="%materia compare -2 -1\n%materia compare Plan-Build-Eval Full-Auto\n%materia compare --steps 3 5\n"
    "%materia compare --visit 5",
)
def _compare(call: Call, a: Any, b: Any = None, *, steps: bool = False, visit: bool = False) -> Any:
    """Show where two casts first differ and why, and how, word by word; or how two steps or two loadouts differ.

    Args:
        a: a cast (an id, its beginning, -1 for the latest, -2 for the one before), or a loadout
        b: the other; the current cast if left out
        steps: A and B are step numbers of the current cast
        visit: A is a step number: compare it with the previous visit of its socket
    """
    bench = call.bench
    if visit:
        made = bench.current.steps
        step = made.at(_number(a))
        return bench.compare(previous_visit(made, step.number), step)
    if steps:
        return bench.compare(*(bench.current.steps.at(_number(-1 if one is None else one)) for one in (a, b)))
    return bench.compare(a, b or bench.current)


@verb("replay", example="%materia replay Plan-Build-Eval\n%materia replay Plan-Build-Eval --go-on")
def _replay(call: Call, loadout: str | None = None, *, all_: bool = False, go_on: bool = False) -> Any:
    """Show where the recorded answers would have led in another loadout, or in this one as it is now; nothing runs.

    Args:
        all_: every cast of the loadout with that name, not just the current cast
        go_on: turn it into a cast, which continues where the recorded answers end
    """
    bench = call.bench
    if all_ and go_on:
        raise usage_error("Only one replay at a time can continue.", "open the cast, then replay --go-on")
    if all_:
        return bench.casts.replay(loadout)
    found = bench.current.replay(bench.graph(loadout))
    return status_view(bench.casts.take(found.go_on()).now) if go_on else found


def _number(given: object) -> int:
    text = str(given)
    try:
        return int(text)
    except ValueError:
        raise usage_error(
            f"{text!r} is not a step: it must be a whole number.", "compare --steps 3 5"
        ) from None


from_method("blame", Cast.blame, value_of, example="%materia blame workItems.0.title")


@verb("status")
def _status(call: Call) -> Any:
    """Show the status of the cast and what comes next."""
    return status_view(call.cast.now)


@verb("state", example="%materia state workItems.0")
def _state(call: Call, path: str | None = None, *, step: int | None = None, lane: str | None = None) -> Any:
    """Show the state, or the value at a path in it; several matches of a JSONPath as a list.

    Args:
        path: a dotted path, such as workItems.0.title, or JSONPath; in quotes if it has spaces
        step: the state after this step
        lane: the state of this lane
    """
    current = call.cast.now.lane(lane)
    data = dict(current.state if step is None else current.steps.at(step).after.data)
    if path is None:
        return JsonView("state", data)
    found = compile_query(str(path))(data)
    if not found:
        raise MateriaError(
            f"There is nothing at {path!r} in the state.",
            hint=f"its fields: {', '.join(data)}" if data else "the state is empty",
        )
    name = f"state {path}" if str(path).startswith("$") else f"state.{path}"
    return JsonView(name, found[0] if len(found) == 1 else found)


@verb("steps")
def _steps(call: Call) -> Any:
    """List the steps so far."""
    return steps_view(call.cast.now)


@verb(
    "steps ask",
    example="%materia steps ask $.workItems[*].title\n%materia steps ask --tag rain $.context",
)
def _ask(call: Call, expression: Rest, *, all_: bool = False, tag: str | None = None) -> Any:
    """Search the outputs of all steps with JSONPath: each match, with its step, socket and item.

    Args:
        expression: JSONPath, or a dotted path
        all_: search every cast of this project; reads them completely
        tag: search the casts with this tag
    """
    if all_ or tag is not None:
        return call.bench.casts.ask(str(expression), call.bench.casts(tag=tag or ()))
    return found_view(call.cast.now.all_steps.ask(str(expression)))


@verb("steps events", example="%materia steps events --severity warning")
def _events(
    call: Call, *, severity: str | None = None, type_: str | None = None, socket: str | None = None
) -> Any:
    """List the events that outputs reported.

    Args:
        severity: only this severity or higher, such as warning
        type_: only events of this type
        socket: only events of this socket
    """
    return call.cast.now.all_steps.events(severity=severity, type=type_, socket=socket)


@verb("usage", example="%materia usage socket,item")
def _usage(call: Call, by: str = "socket") -> Any:
    """Show where tokens, cost and time went, including steps abandoned by going back.

    Args:
        by: socket, materia or item, or several separated by commas; socket if left out
    """
    return call.cast.usage(*filter(None, str(by).split(",")))


@verb("handoff", example="%materia handoff 3")
def _handoff(call: Call, step: int = -1, *, lane: str | None = None) -> Any:
    """Show the handoff of a step: raw, parsed, issues, requirements, assignments."""
    return HandoffView(call.cast.now, call.cast.now.lane(lane).steps.at(step))


@verb("prompt")
def _prompt(call: Call, step: int | None = None, *, lane: str | None = None) -> Any:
    """Show the prompt that is waiting for an answer, or that of a step."""
    current = call.cast.now.lane(lane)
    if step is None and current.prompt is not None:
        return prompt_view(current.steps[-1], current.prompt, current.steps)
    record = current.steps.at(-1 if step is None else step)
    if record.prompt is None:
        raise MateriaError(
            f"{record.socket} is a utility and has no prompt.",
            hint="handoff shows what it was given and what it wrote",
            kind="no_prompt",
        )
    return prompt_view(record, record.prompt, current.steps)


@verb("why", example="%materia why 3")
def _why(call: Call, step: int | None = None, *, traceback: bool = False, lane: str | None = None) -> Any:
    """Explain why a step went where it went.

    Args:
        traceback: show the traceback of the agent's function that made the cast fail
    """
    if not traceback:
        return call.cast.why(step, lane=lane)
    raised = call.cast.now.live.raised
    if raised is None:
        raise MateriaError("No agent of this cast raised anything in this kernel.", kind="no_traceback")
    return Text(outgoing_traceback(raised))


@verb(
    "show",
    panel={"help": f"one of its panels alone: {one_of_words(alone_names())}"},
    example="%materia show\n%materia show items",
)
def _show(call: Call, panel: str | None = None) -> Any:
    """Show the cast's panel: run it, see its graph, edit items and state, answer, read handoffs; or one part of it."""
    from materia_nb.widgets import cast_panel

    if panel is not None:
        return cast_panel.show_one(call.cast, str(panel))
    return cast_panel.show(call.cast, call.bench.casts.take, bench=call.bench)


@verb("doctor", example="%materia doctor\n%materia doctor -1")
def _doctor(call: Call, cast: Rest = None) -> Any:
    """Check what is installed and working: software, keys (names only), programs, folders, config, agents; or a recorded cast.

    Args:
        cast: a cast: check up to which step its record is unmodified, even if it cannot be opened
    """
    return lookup("checkup")(call.bench) if cast is None else call.bench.casts.verify(cast)


@verb("predict", example="%materia predict Socket-2")
def _predict(
    call: Call,
    socket: Several = None,
    *,
    sure: bool = False,
    unsure: bool = False,
    as_: str | None = None,
    progress: bool = False,
    example: bool = False,
) -> Any:
    """Guess where the next step leads, and see whether you are right, and why; the cast does not move. Without arguments: with buttons.

    Args:
        socket: where the next step leads, and the steps after it: sockets, end, or stop; or $variables
        sure: you are sure of it
        unsure: you are guessing
        as_: the name that the guess is kept under, such as 03-loops/first-item
        progress: show what you guessed and answered in the lessons so far
        example: an example, not your guess: it is not recorded
    """
    if progress:
        return lessons.progress()
    current = call.cast
    name = "" if example else as_ or f"{current.graph.name}/predict {current.id}"
    if socket is None:
        from materia_nb.widgets.predict import show

        return show(current, name)
    certain = True if sure else False if unsure else None
    with closing(lessons.question(current, name=name)) as asked, running(asked.twin):
        if len(socket) == 1:
            return asked.guess(socket[0], sure=certain)
        return asked.walk(socket, sure=certain)
