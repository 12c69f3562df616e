"""Verbs that only look, and those that show panels or ask for a prediction."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from materia_nb import lessons
from materia_nb.cast.views.status import StatusView, steps_view
from materia_nb.cast.views.step_views import HandoffView, PromptView, TranslationView
from materia_nb.cast.views.tables import found_view
from materia_nb.display.blocks import JsonView, Text
from materia_nb.doctor import checkup
from materia_nb.engine.session import StepRecord
from materia_nb.errors import MateriaError
from materia_nb.insight.queries import query_of
from materia_nb.loadout.vocabulary import OWN_PROTOCOLS
from materia_nb.magics.cast_display import running
from materia_nb.magics.registry import Argument, Call, verb
from materia_nb.outgoing import outgoing_traceback
from materia_nb.widgets.cast_parts import alone_names


def _any_of(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]])


_STEP = Argument("step", "a step number; -1, the latest, if left out", whole=True)


@verb("status")
def status(call: Call) -> Any:
    """Show how the cast stands and what comes next."""
    return StatusView(call.cast.now)


@verb(
    "state",
    Argument("path", "a dotted path, such as workItems.0.title, or JSONPath; in quotes if it has spaces"),
    Argument("--step", "the state after this step", "option", whole=True),
    example="%materia state workItems.0",
)
def state(call: Call) -> Any:
    """Show the state, or what stands at a path in it; several matches of a JSONPath as a list."""
    current, number = call.cast, call.get("step")
    data = dict(current.state if number is None else current.steps.at(number).after.data)
    path = call.get("path")
    if path is None:
        return JsonView("state", data)
    found = query_of(str(path))(data)
    if not found:
        raise MateriaError(
            f"There is nothing at {path!r} in the state.",
            hint=f"its fields: {', '.join(data)}" if data else "the state is empty",
        )
    name = f"state {path}" if str(path).startswith("$") else f"state.{path}"
    return JsonView(name, found[0] if len(found) == 1 else found)


@verb(
    "ask",
    Argument("--all", "look through every cast of this project, which takes reading them whole", "flag"),
    Argument("--tag", "look through the casts with this tag", "option"),
    Argument("expression", "JSONPath, or a dotted path", "rest", required=True),
    example="%materia ask $.workItems[*].title\n%materia ask --tag rain $.context",
)
def ask(call: Call) -> Any:
    """Look through the outputs of all steps with JSONPath: each value found, with its step, socket and item."""
    expression, tag = str(call.get("expression")), call.get("tag")
    if call.get("all") or tag is not None:
        return call.bench.ask(expression, call.bench.casts(tag=tag or ()))
    return found_view(call.cast.steps.ask(expression))


@verb(
    "spent",
    Argument("by", "socket, materia or item, or several with commas between them; socket if left out"),
    example="%materia spent socket,item",
)
def spent(call: Call) -> Any:
    """Show where tokens, cost and time went, steps that going back left behind included."""
    by = [name for name in str(call.get("by", "socket")).split(",") if name]
    return call.cast.spent(*by)


@verb("steps")
def steps(call: Call) -> Any:
    """List the steps so far."""
    return steps_view(call.cast.now)


@verb(
    "events",
    Argument("--severity", "only this severity or a graver one, such as warning", "option"),
    Argument("--type", "only events of this type", "option"),
    Argument("--socket", "only events of this socket", "option", completes="socket"),
    example="%materia events --severity warning",
)
def events(call: Call) -> Any:
    """List what outputs told in their event field."""
    wanted = {name: call.get(name) for name in ("severity", "type", "socket")}
    return call.cast.steps.events(**wanted)


def _step(call: Call) -> StepRecord:
    """The step that is meant; the latest if none is named."""
    return call.cast.steps.at(call.get("step", -1))


@verb("handoff", _STEP)
def handoff(call: Call) -> Any:
    """Show what a step handed on: raw, parsed, issues, requirements, assignments."""
    return HandoffView(call.cast.now, _step(call))


@verb(
    "translate",
    Argument("protocol", f"{', '.join(OWN_PROTOCOLS)}, or one of another package", required=True),
    _STEP,
    example="%materia translate sparse 3",
)
def translate(call: Call) -> Any:
    """Show what a step handed on in another format, and what that format cannot hold."""
    return TranslationView(call.cast.now, _step(call), str(call.get("protocol")))


@verb("prompt", _STEP)
def prompt(call: Call) -> Any:
    """Show the prompt that waits for an answer, or that of a step."""
    current = call.cast
    if call.get("step") is None and current.now.prompt is not None:
        return PromptView(current.steps[-1], current.now.prompt)
    record = _step(call)
    if record.prompt is None:
        raise MateriaError(
            f"{record.socket} is a utility and has no prompt.",
            hint="handoff shows what it was given and what it wrote",
            kind="no_prompt",
        )
    return PromptView(record, record.prompt)


@verb("why", _STEP, example="%materia why 3")
def why(call: Call) -> Any:
    """Explain why a step went where it went."""
    return call.cast.why(call.get("step"))


@verb("traceback")
def traceback(call: Call) -> Any:
    """Show where in your code the agent of the cast raised what made it fail."""
    raised = call.cast.runner.raised
    if raised is None:
        raise MateriaError("No agent of this cast raised anything in this kernel.", kind="no_traceback")
    return Text(outgoing_traceback(raised))


@verb("show")
def show(call: Call) -> Any:
    """Show the cast with buttons: go on with it, see its graph, edit items and state, answer, look at handoffs."""
    from materia_nb.widgets import cast_panel

    return cast_panel.show(call.cast, call.bench.take, bench=call.bench)


@verb(
    "panel",
    Argument("name", _any_of(alone_names()), required=True, completes="panel"),
    example="%materia panel items",
)
def panel(call: Call) -> Any:
    """Show one live panel of the cast; showing it again replaces it."""
    from materia_nb.widgets import cast_panel

    return cast_panel.show_one(call.cast, str(call.get("name")))


@verb(
    "design",
    Argument("--new", "begin an empty loadout of that name", "flag"),
    Argument("loadout", "a loadout, the chosen one if left out", "rest", completes="loadout"),
    example="%materia design Plan-Build-Eval",
)
def design(call: Call) -> Any:
    """Edit a loadout on its graph: sockets, edges, loops, exits; with problems told, undo, and saving."""
    from materia_nb.widgets.design_panel import show_design

    return show_design(call.bench, call.get("loadout"), new=bool(call.get("new")))


@verb("doctor")
def doctor(call: Call) -> Any:
    """Check what is here and works: software, keys (names only), programs, folders, config, who answers."""
    return checkup(call.bench)


@verb(
    "predict",
    Argument("--sure", "you are sure of it", "flag"),
    Argument("--unsure", "you are guessing", "flag"),
    Argument("--as", "the name that the guess is kept under, such as 03-loops/first-item", "option"),
    Argument("--example", "this is no guess of yours: it is not kept", "flag"),
    Argument(
        "socket",
        "where the next step leads, and the steps after it: sockets, end, or stop; or $variables",
        "words",
        completes="socket",
    ),
    example="%materia predict Socket-2",
)
def predict(call: Call) -> Any:
    """Guess where the next step leads, and be told whether that is so, and why; the cast stays. Alone: with buttons."""
    current, route = call.cast, call.get("socket")
    name = "" if call.get("example") else call.get("as") or f"{current.graph.name}/predict {current.id}"
    if route is None:
        from materia_nb.widgets.predict import show

        return show(current, name)
    sure = True if call.get("sure") else False if call.get("unsure") else None
    with closing(lessons.question(current, name=name)) as asked, running(asked.twin):
        return asked.guess(route[0], sure=sure) if len(route) == 1 else asked.walk(route, sure=sure)


@verb("progress")
def progress(_: Call) -> Any:
    """Show what you guessed and answered in the lessons: how many tries each question took, and what is right by now."""
    return lessons.progress()


@verb(
    "gallery",
    Argument("name", "the card to open; all are listed if left out", completes="card"),
    example="%materia gallery critic-loop",
)
def gallery(call: Call) -> Any:
    """List ten patterns and ten classic mistakes; with a name, write that one as a notebook beside this one."""
    return call.bench.gallery(call.get("name"))
