"""Verbs that only look: at what a loadout can do, and at a cast, in words and in panels."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final, cast

from materia_nb import lessons
from materia_nb.cast import Cast
from materia_nb.cast.edits import most_of
from materia_nb.cast.snapshot import Snapshot
from materia_nb.cast.views.loadout_views import EstimateView
from materia_nb.cast.views.status import StatusView, steps_view
from materia_nb.cast.views.step_views import HandoffView, PromptView, TranslationView
from materia_nb.cast.views.tables import found_view
from materia_nb.display.blocks import JsonView, Text
from materia_nb.engine.session import StepRecord
from materia_nb.engine.state import Bound
from materia_nb.errors import MateriaError, outgoing_traceback
from materia_nb.handoff.protocol import SAMPLE
from materia_nb.insight.compare import visit_before
from materia_nb.insight.odds import Chances, Likely, PerSocket
from materia_nb.insight.queries import query_of
from materia_nb.late import late
from materia_nb.loadout.vocabulary import OWN_PROTOCOLS
from materia_nb.magics.cast_display import counting, running
from materia_nb.magics.registry import Argument, Call, from_method, one_of_words, value_of, verb
from materia_nb.widgets.cast_parts import alone_names

_LOADOUT: Final = Argument("loadout", "the loadout; the chosen one if left out", completes="loadout")
_SATISFIED: Final = Argument(
    "--satisfied", "the chance of satisfied: 0.7 for all, or Check=0.7,*=0.9; 0.5 if left out", "option"
)
_FAILED: Final = Argument(
    "--failed",
    "the chance of failing at sockets with a failed edge, given as for --satisfied; 0 if left out",
    "option",
)
_ITEMS: Final = Argument("--items", "the length of every list; 3 if left out", "option", whole=True)


@verb(
    "explore",
    _LOADOUT,
    Argument("--items", "the lengths of lists to try, such as 0-3 or 2,5", "option"),
    example="%materia explore Plan-Build-Eval",
)
def _explore(call: Call) -> Any:
    """Show what a loadout can do: every route that its casts can take, without asking an agent."""
    with counting("states") as told:
        lengths = _lengths(str(call.get("items", "0-3")))
        return call.bench.explore(call.get("loadout"), lengths, progress=told)


@verb(
    "explore odds",
    _LOADOUT,
    _SATISFIED,
    _FAILED,
    _ITEMS,
    example="%materia explore odds Plan-Build-Eval --satisfied 0.7",
)
def _odds(call: Call) -> Any:
    """Show the exact chance of each end of a cast, and the average number of turns."""
    items = call.get("items", 3)
    with counting("states") as told:
        explored = call.bench.explore(call.get("loadout"), (items,), progress=told)
    return explored.odds(_chances(call.get("satisfied", 0.5)), items, failed=_failing(call))


@verb(
    "estimate",
    _LOADOUT,
    Argument("--request", "the request; a made-up word if left out", "option"),
    _ITEMS,
    _SATISFIED,
    _FAILED,
    Argument(
        "--answer", "the number of tokens of an answer; the fewest possible if left out", "option", whole=True
    ),
    Argument("--model", "use the prices of this model, such as openai:gpt-4o", "option"),
    Argument("--most", "fail if the mean is above this: 20000 tokens in all, 2.50 USD, 10 turns", "option"),
    example="%materia estimate Plan-Build-Eval --items 10 --satisfied 0.8 --answer 300",
)
def _estimate(call: Call) -> Any:
    """Estimate how many turns and tokens a cast would take, and what it would cost, without asking an agent."""
    most = None if call.get("most") is None else most_of(str(call.get("most")))
    made = call.bench.estimate(
        call.get("loadout"),
        call.get("request", SAMPLE),
        call.get("items", 3),
        _chances(call.get("satisfied", 0.5)),
        failed=_failing(call),
        answer=call.get("answer"),
        model=call.get("model"),
    )
    if most is not None:
        _refuse_above(made, *most)
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


@verb(
    "explore rehearse",
    _LOADOUT,
    Argument("--n", "how many casts; 1000 if left out", "option", whole=True),
    _SATISFIED,
    _FAILED,
    _ITEMS,
    Argument("--seed", "the random seed; 1 if left out", "option", whole=True),
    example="%materia explore rehearse Plan-Build-Eval --n 200 --satisfied 0.7",
)
def _rehearse(call: Call) -> Any:
    """Cast a loadout many times in memory, with random answers, and show how the casts end."""
    with counting("casts") as told:
        return call.bench.rehearse(
            call.get("loadout"),
            call.get("n", 1000),
            _chances(call.get("satisfied", 0.5)),
            call.get("items", 3),
            call.get("seed", 1),
            failed=_failing(call),
            progress=told,
        )


@verb(
    "explore prompts",
    _LOADOUT,
    _ITEMS,
    Argument("--request", "the request; a made-up word if left out", "option"),
    Argument("--contexts", "values of castContext to compare side by side, such as full,request", "option"),
    Argument("--rework", "send work back once wherever possible", "flag"),
    Argument("--later", "include later turns: of conversations, and one repair per socket", "flag"),
    example="%materia explore prompts Plan-Build-Eval --items 10 --contexts full,request",
)
def _prompts(call: Call) -> Any:
    """Show every prompt that a cast would have, with its size, without asking an agent; answers are made up."""
    contexts = str(call.get("contexts") or "")
    return call.bench.prompts(
        call.get("loadout"),
        call.get("request", SAMPLE),
        call.get("items", 3),
        [one.strip() for one in contexts.split(",") if one.strip()],
        rework=bool(call.get("rework")),
        later=bool(call.get("later")),
    )


def _lengths(text: str) -> list[int]:
    found: list[int] = []
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        if not first.strip().isdecimal() or not (last or "0").strip().isdecimal():
            raise MateriaError(f"{text!r} is no lengths of lists.", hint="write 0-3, or 2,5", kind="usage")
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
        raise MateriaError(
            f"{text!r} is no chance.",
            hint="write 0.7, or Check=0.7,*=0.9; 0.6/0.3 says nothing in 0.3",
            kind="usage",
        ) from None


def _failing(call: Call) -> PerSocket:
    """Return the chances to fail, of which each is one number."""
    chances = _chances(call.get("failed", 0.0))
    each = chances.values() if isinstance(chances, Mapping) else (chances,)
    if any(isinstance(one, tuple) for one in each):
        raise MateriaError("A chance to fail is one number.", hint="write 0.1, or Build=0.1", kind="usage")
    return cast("PerSocket", chances)


def _chance(text: str) -> Likely:
    yes, pair, nothing = text.partition("/")
    return (float(yes), float(nothing)) if pair else float(yes)


@verb(
    "compare",
    Argument("--steps", "A and B are step numbers of the current cast", "flag"),
    Argument("--visit", "A is a step number: compare it with the previous visit of its socket", "flag"),
    Argument(
        "a",
        "a cast (an id, its beginning, -1 for the latest, -2 for the one before), or a loadout",
        required=True,
        completes="cast",
    ),
    Argument("b", "the other; the current cast if left out", completes="cast"),
    example="%materia compare -2 -1\n%materia compare Plan-Build-Eval Full-Auto\n%materia compare --steps 3 5\n"
    "%materia compare --visit 5",
)
def _compare(call: Call) -> Any:
    """Show where two casts first differ and why, and how, word by word; or how two steps or two loadouts differ."""
    bench, a = call.bench, call.get("a")
    if call.get("visit"):
        steps = bench.current.steps
        step = steps.at(_number(a))
        return bench.compare(visit_before(steps, step.number), step)
    if call.get("steps"):
        return bench.compare(*(bench.current.steps.at(_number(one)) for one in (a, call.get("b", -1))))
    return bench.compare(a, call.get("b") or bench.current)


@verb(
    "replay",
    Argument("loadout", "its name; the chosen one if left out", completes="loadout"),
    Argument("--all", "every cast of the loadout with that name, not just the current cast", "flag"),
    Argument("--go-on", "turn it into a cast, which continues where the recorded answers end", "flag"),
    example="%materia replay Plan-Build-Eval\n%materia replay Plan-Build-Eval --go-on",
)
def _replay(call: Call) -> Any:
    """Show where the recorded answers would have led in another loadout, or in this one as it is now; nothing runs."""
    bench, name = call.bench, call.get("loadout")
    if call.get("all"):
        if call.get("go_on"):
            raise MateriaError(
                "Only one replay at a time can continue.",
                hint="open the cast, then replay --go-on",
                kind="usage",
            )
        return bench.casts.replay(name)
    found = bench.current.replay(bench.graph(name))
    return StatusView(bench.casts.take(found.go_on()).now) if call.get("go_on") else found


def _number(given: object) -> int:
    text = str(given)
    try:
        return int(text)
    except ValueError:
        raise MateriaError(
            f"{text!r} is no step: it must be a whole number.", hint="compare --steps 3 5", kind="usage"
        ) from None


from_method("blame", Cast.blame, value_of, example="%materia blame workItems.0.title")

_STEP = Argument("step", "a step number; -1, the latest, if left out", whole=True)
_LANE = Argument("--lane", "the lane that made the step", "option")


@verb("status")
def _status(call: Call) -> Any:
    """Show the status of the cast and what comes next."""
    return StatusView(call.cast.now)


@verb(
    "state",
    Argument("path", "a dotted path, such as workItems.0.title, or JSONPath; in quotes if it has spaces"),
    Argument("--step", "the state after this step", "option", whole=True),
    Argument("--lane", "the state of this lane", "option"),
    example="%materia state workItems.0",
)
def _state(call: Call) -> Any:
    """Show the state, or the value at a path in it; several matches of a JSONPath as a list."""
    current, number = _here(call), call.get("step")
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


@verb("steps")
def _steps(call: Call) -> Any:
    """List the steps so far."""
    return steps_view(call.cast.now)


@verb(
    "steps ask",
    Argument("--all", "search every cast of this project; reads them completely", "flag"),
    Argument("--tag", "search the casts with this tag", "option"),
    Argument("expression", "JSONPath, or a dotted path", "rest", required=True),
    example="%materia steps ask $.workItems[*].title\n%materia steps ask --tag rain $.context",
)
def _ask(call: Call) -> Any:
    """Search the outputs of all steps with JSONPath: each match, with its step, socket and item."""
    expression, tag = str(call.get("expression")), call.get("tag")
    if call.get("all") or tag is not None:
        return call.bench.casts.ask(expression, call.bench.casts(tag=tag or ()))
    return found_view(call.cast.now.all_steps.ask(expression))


@verb(
    "steps events",
    Argument("--severity", "only this severity or higher, such as warning", "option"),
    Argument("--type", "only events of this type", "option"),
    Argument("--socket", "only events of this socket", "option", completes="socket"),
    example="%materia steps events --severity warning",
)
def _events(call: Call) -> Any:
    """List the events that outputs reported."""
    wanted = {name: call.get(name) for name in ("severity", "type", "socket")}
    return call.cast.now.all_steps.events(**wanted)


@verb(
    "usage",
    Argument("by", "socket, materia or item, or several separated by commas; socket if left out"),
    example="%materia usage socket,item",
)
def _usage(call: Call) -> Any:
    """Show where tokens, cost and time went, including steps abandoned by going back."""
    return call.cast.usage(*filter(None, str(call.get("by", "socket")).split(",")))


def _step(call: Call) -> StepRecord:
    """The step that is meant; the latest if none is named."""
    return _here(call).steps.at(call.get("step", -1))


def _here(call: Call) -> Snapshot:
    """The cast as it is now, or the lane of it that is named."""
    return call.cast.now.lane(call.get("lane"))


@verb(
    "handoff",
    Argument(
        "--as",
        f"in another format, with a list of what it cannot hold: {one_of_words(OWN_PROTOCOLS)}, or one from another package",
        "option",
    ),
    _LANE,
    _STEP,
    example="%materia handoff 3\n%materia handoff --as sparse 3",
)
def _handoff(call: Call) -> Any:
    """Show the handoff of a step: raw, parsed, issues, requirements, assignments."""
    if (protocol := call.get("as")) is not None:
        return TranslationView(call.cast.now, _step(call), str(protocol))
    return HandoffView(call.cast.now, _step(call))


@verb("prompt", _LANE, _STEP)
def _prompt(call: Call) -> Any:
    """Show the prompt that is waiting for an answer, or that of a step."""
    current = _here(call)
    if call.get("step") is None and current.prompt is not None:
        return PromptView(current.steps[-1], current.prompt, current.steps)
    record = _step(call)
    if record.prompt is None:
        raise MateriaError(
            f"{record.socket} is a utility and has no prompt.",
            hint="handoff shows what it was given and what it wrote",
            kind="no_prompt",
        )
    return PromptView(record, record.prompt, current.steps)


@verb(
    "why",
    Argument("--traceback", "show the traceback of the agent's function that made the cast fail", "flag"),
    _LANE,
    _STEP,
    example="%materia why 3",
)
def _why(call: Call) -> Any:
    """Explain why a step went where it went."""
    if not call.get("traceback"):
        return call.cast.why(call.get("step"), lane=call.get("lane"))
    raised = call.cast.raised
    if raised is None:
        raise MateriaError("No agent of this cast raised anything in this kernel.", kind="no_traceback")
    return Text(outgoing_traceback(raised))


@verb(
    "show",
    Argument("panel", f"one of its panels alone: {one_of_words(alone_names())}", completes="panel"),
    example="%materia show\n%materia show items",
)
def _show(call: Call) -> Any:
    """Show the cast's panel: run it, see its graph, edit items and state, answer, read handoffs; or one part of it."""
    from materia_nb.widgets import cast_panel

    if (name := call.get("panel")) is not None:
        return cast_panel.show_one(call.cast, str(name))
    return cast_panel.show(call.cast, call.bench.casts.take, bench=call.bench)


@verb(
    "doctor",
    Argument(
        "cast",
        "a cast: check up to which step its record is unmodified, even if it cannot be opened",
        "rest",
        completes="cast",
    ),
    example="%materia doctor\n%materia doctor -1",
)
def _doctor(call: Call) -> Any:
    """Check what is installed and working: software, keys (names only), programs, folders, config, agents; or a recorded cast."""
    if (cast := call.get("cast")) is not None:
        return call.bench.casts.verify(cast)
    return late("checkup")(call.bench)


@verb(
    "predict",
    Argument("--sure", "you are sure of it", "flag"),
    Argument("--unsure", "you are guessing", "flag"),
    Argument("--as", "the name that the guess is kept under, such as 03-loops/first-item", "option"),
    Argument("--progress", "show what you guessed and answered in the lessons so far", "flag"),
    Argument("--example", "an example, not your guess: it is not recorded", "flag"),
    Argument(
        "socket",
        "where the next step leads, and the steps after it: sockets, end, or stop; or $variables",
        "words",
        completes="socket",
    ),
    example="%materia predict Socket-2",
)
def _predict(call: Call) -> Any:
    """Guess where the next step leads, and see whether you are right, and why; the cast does not move. Without arguments: with buttons."""
    if call.get("progress"):
        return lessons.progress()
    current, route = call.cast, call.get("socket")
    name = "" if call.get("example") else call.get("as") or f"{current.graph.name}/predict {current.id}"
    if route is None:
        from materia_nb.widgets.predict import show

        return show(current, name)
    sure = True if call.get("sure") else False if call.get("unsure") else None
    with closing(lessons.question(current, name=name)) as asked, running(asked.twin):
        return asked.guess(route[0], sure=sure) if len(route) == 1 else asked.walk(route, sure=sure)
