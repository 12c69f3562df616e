"""Verbs that only look: status, state, ask, steps, events, handoff, translate, prompt, why, traceback."""

from __future__ import annotations

from typing import Any

from materia_nb import tables, views
from materia_nb.errors import MateriaError
from materia_nb.handoff_view import HandoffView
from materia_nb.insight.ask import query_of
from materia_nb.magics.registry import Argument, Call, verb
from materia_nb.translation_view import TranslationView

_STEP = Argument("step", "a step number; -1, the latest, if left out", whole=True)


@verb("status")
def status(call: Call) -> Any:
    """Show how the cast stands and what comes next."""
    return views.StatusView(call.bench.current)


@verb(
    "state",
    Argument("path", "a dotted path, such as workItems.0.title, or JSONPath; in quotes if it has spaces"),
    Argument("--step", "the state after this step", "option", whole=True),
    example="%materia state workItems.0",
)
def state(call: Call) -> Any:
    """Show the state, or what stands at a path in it; several matches of a JSONPath as a list."""
    current, number = call.bench.current, call.get("step")
    data = dict(current.state if number is None else current.at_step(number).after.data)
    path = call.get("path")
    if path is None:
        return views.JsonView("state", data)
    found = query_of(str(path))(data)
    if not found:
        raise MateriaError(
            f"There is nothing at {path!r} in the state.",
            hint=f"its fields: {', '.join(data)}" if data else "the state is empty",
        )
    name = f"state {path}" if str(path).startswith("$") else f"state.{path}"
    return views.JsonView(name, found[0] if len(found) == 1 else found)


@verb(
    "ask",
    Argument("expression", "JSONPath, or a dotted path", "rest", required=True),
    example="%materia ask $.workItems[*].title",
)
def ask(call: Call) -> Any:
    """Look through the outputs of all steps with JSONPath: each value found, with its step, socket and item."""
    return tables.found_view(call.bench.current.ask(str(call.get("expression"))))


@verb("steps")
def steps(call: Call) -> Any:
    """List the steps so far."""
    return views.steps_view(call.bench.current)


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
    return call.bench.current.events(**wanted)


@verb("handoff", _STEP)
def handoff(call: Call) -> Any:
    """Show what a step handed on: raw, parsed, issues, requirements, assignments."""
    current = call.bench.current
    number = call.get("step")
    return HandoffView(current, current.at_step(-1 if number is None else number))


@verb(
    "translate",
    Argument("protocol", "sparse, envelope, agent-contract, or one of another package", required=True),
    _STEP,
    example="%materia translate sparse 3",
)
def translate(call: Call) -> Any:
    """Show what a step handed on in another format, and what that format cannot hold."""
    current, number = call.bench.current, call.get("step")
    record = current.at_step(-1 if number is None else number)
    return TranslationView(current, record, str(call.get("protocol")))


@verb("prompt", _STEP)
def prompt(call: Call) -> Any:
    """Show the prompt that waits for an answer, or that of a step."""
    current, number = call.bench.current, call.get("step")
    if number is None and current.prompt is not None:
        return views.PromptView(current.steps[-1], current.prompt)
    record = current.at_step(-1 if number is None else number)
    if record.prompt is None:
        raise MateriaError(
            f"{record.socket} is a utility and has no prompt.",
            hint="handoff shows what it was given and what it wrote",
            kind="no_prompt",
        )
    return views.PromptView(record, record.prompt)


@verb("why", _STEP, example="%materia why 3")
def why(call: Call) -> Any:
    """Explain why a step went where it went."""
    return views.WhyView(call.bench.current.why(call.get("step")))


@verb("traceback")
def traceback(call: Call) -> Any:
    """Show where in your code the agent of the cast raised what made it fail."""
    from traceback import format_exception

    raised = call.bench.current.raised
    if raised is None:
        raise MateriaError("No agent of this cast raised anything in this kernel.", kind="no_traceback")
    return views.Text("".join(format_exception(raised)).rstrip())
