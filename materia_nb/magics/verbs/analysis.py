"""Verbs that explore a loadout before a cast, compare casts, and show a cast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final, cast

from materia_nb import lessons
from materia_nb.cast import Cast
from materia_nb.cast.edits import budget_limit
from materia_nb.cast.views.compare_view import BehaviourView, StepCompareView
from materia_nb.cast.views.loadout_views import EstimateView, ExploreView
from materia_nb.cast.views.status import status_view, steps_view
from materia_nb.cast.views.step_views import HandoffView, prompt_view
from materia_nb.cast.views.tables import search_results_table
from materia_nb.display.blocks import JsonView, Text
from materia_nb.engine.state import Bound
from materia_nb.errors import MateriaError, join_with_or, outgoing_traceback, usage_error
from materia_nb.handoff.base import SAMPLE
from materia_nb.insight.compare import previous_visit
from materia_nb.insight.odds import Chances, FailureChances, Probability
from materia_nb.insight.values import compile_query
from materia_nb.loadout.vocabulary import WITHOUT_OUTPUT
from materia_nb.magics.cast_display import count_progress, run_progress
from materia_nb.magics.registry import Call, Rest, WordList, method_verb, value_of, verb
from materia_nb.registry import lookup
from materia_nb.widgets.cast_parts import standalone_names


@verb("explore", example="%materia explore Plan-Build-Eval")
def _explore_loadout(call: Call, loadout: str | None = None, *, items: str = "0-3") -> Any:
    """Compute every route that casts of a loadout can take, without calling an agent.

    Args:
        items: the lengths of item lists to try, such as 0-3 or 2,5
    """
    return _explore(call, loadout, _parse_lengths(str(items)))


def _explore(call: Call, loadout: str | None, lengths: Sequence[int]) -> ExploreView:
    with count_progress("states") as report:
        return call.bench.explore(loadout, lengths, progress=report)


@verb("play", example="%materia play Plan-Build-Eval play.html")
def _write_play_page(call: Call, loadout: str, page: str, *, satisfied: Any = 0.5, items: str = "0-3") -> Any:
    """Write an HTML page on which you play a loadout: choose each answer, and see where it leads and why.

    Args:
        page: the HTML file to write
        items: the lengths of item lists to try, such as 0-3 or 2,5
    """
    exploration = _explore(call, loadout, _parse_lengths(str(items)))
    return Text(f"Open this page to play {exploration.graph.name}: {exploration.play(page, _parse_odds(satisfied))}")


_FAILURES: Final[Mapping[str, Any]] = {
    result.value: {
        "name": f"--{result.replace('_', '-')}",
        "help": f"the probability of {result.noun} at sockets that have an edge for it, as for --satisfied; defaults to 0",
        "kind": "option",
    }
    for result in WITHOUT_OUTPUT
}  # An option for the probability of each failure of a visit.


@verb(
    "explore odds",
    example="%materia explore odds Plan-Build-Eval --satisfied 0.7 --tokens Build=2000,*=500",
    **_FAILURES,
)
def _explore_odds(
    call: Call,
    loadout: str | None = None,
    *,
    satisfied: Any = 0.5,
    items: int = 3,
    tokens: Any = None,
    cost: Any = None,
    seconds: Any = None,
    **failures: Any,
) -> Any:
    """Show the exact probability of each end of a cast, and the distribution of its agent turns, tokens, cost and time.

    Args:
        tokens: the tokens of a visit: 2000 for all sockets, or Build=2000,*=500
        cost: the cost of a visit in US dollars, as for --tokens
        seconds: the duration of a visit in seconds, as for --tokens
    """
    exploration = _explore(call, loadout, (items,))
    amounts = {"tokens": tokens, "cost": cost, "seconds": seconds}
    assumed_values = failures | {name: value for name, value in amounts.items() if value is not None}
    return exploration.odds(_parse_odds(satisfied), items, **_parse_failures(assumed_values))


@verb("explore worth", example="%materia explore worth Plan-Build-Eval --writer 0.7 --critics Eval=0.8/0.1")
def _explore_worth(
    call: Call, loadout: str | None = None, *, writer: Any, critics: Any, satisfied: Any = 1.0, items: int = 3
) -> Any:
    """Show the exact chance that bad work is published, and the turns, with and without each critic.

    Args:
        writer: the chance that new or rewritten work is good: 0.7, or Build=0.7
        critics: the chances that a critic refuses bad work and good work, such as Review=0.8/0.1
    """
    exploration = _explore(call, loadout, (items,))
    return exploration.worth(_parse_odds(writer), _parse_odds(critics), _parse_odds(satisfied), items)


@verb("explore changes", example="%materia explore changes Plan-Build-Eval Full-Auto --satisfied 0.7")
def _explore_changes(call: Call, a: str, b: str, *, satisfied: Any = 0.5, items: int = 3) -> Any:
    """Compare all possible casts of two loadouts: show each result after which the routes differ, and the odds of both.

    Args:
        a: the first loadout, such as the loadout before an edit, or a config file, whose active loadout is compared
        b: the second loadout or config file
    """
    return BehaviourView(call.bench.graph(a), call.bench.graph(b), _parse_odds(satisfied), items)


@verb("estimate", example="%materia estimate Plan-Build-Eval --items 10 --satisfied 0.8 --answer 300", **_FAILURES)
def _estimate_cast(
    call: Call,
    loadout: str | None = None,
    *,
    request: str = SAMPLE,
    items: int = 3,
    satisfied: Any = 0.5,
    most: str | None = None,
    answer: int | None = None,
    model: str | None = None,
    **failures: Any,
) -> Any:
    """Estimate the turns, tokens and cost of a cast, without calling an agent.

    Args:
        most: fail if the mean is above this limit: 20000 tokens in total, 2.50 USD or 10 turns
        answer: the length of each answer, in tokens; defaults to the shortest possible answer
        model: use the prices of this model, such as openai:gpt-4o
    """
    limit = None if most is None else budget_limit(most)
    satisfied_odds, failure_odds = _parse_odds(satisfied), _parse_failures(failures)
    estimate = call.bench.estimate(loadout, request, items, satisfied_odds, answer=answer, model=model, **failure_odds)
    if limit is not None:
        _check_limit(estimate, *limit)
    return estimate


def _check_limit(estimate: EstimateView, limit: Bound, maximum: float) -> None:
    """Raise MateriaError (``over_limit``) if the mean is above ``maximum``, or if the mean is unknown (R56)."""
    total, has_price = estimate.total, estimate.total.cost is not None and not estimate.unpriced
    means = {"tokens": total.input.mean + total.output.mean, "turns": total.turns.mean}
    mean = means.get(limit.quantity, total.cost.mean if total.cost is not None else 0.0)
    hint = None
    if limit.quantity == "seconds":
        message = "The time of a cast is not estimated, so it cannot be limited"
    elif limit.quantity == "cost" and estimate.sockets and not has_price:
        unpriced = estimate.graph.list_names(estimate.unpriced)
        message = f"The cost of a cast is unknown, because these agents have no price: {unpriced}"
        hint = 'set `prices` in the config, or install known prices with `pip install "materia-nb[models]"`'
    elif mean > maximum:
        message = f"A cast takes {limit.number_format.format(round(mean, 4))} {limit.unit} on average, which is more than {maximum:g}"
    else:
        return
    raise MateriaError(f"{message}.", where=estimate.graph.name, hint=hint, more=[estimate.line], kind="over_limit")


@verb("explore simulate", example="%materia explore simulate Plan-Build-Eval --n 200 --satisfied 0.7", **_FAILURES)
def _explore_simulate(
    call: Call,
    loadout: str | None = None,
    *,
    n: int = 1000,
    satisfied: Any = 0.5,
    items: int = 3,
    seed: int = 1,
    **failures: Any,
) -> Any:
    """Run many casts of a loadout in memory, with random answers, and show how the casts end.

    Args:
        n: the number of casts; defaults to 1000
        seed: the random seed; defaults to 1
    """
    satisfied_odds, failure_odds = _parse_odds(satisfied), _parse_failures(failures)
    with count_progress("casts") as report:
        return call.bench.simulate(loadout, n, satisfied_odds, items, seed, progress=report, **failure_odds)


@verb("explore prompts", example="%materia explore prompts Plan-Build-Eval --items 10 --context request")
def _explore_prompts(
    call: Call,
    loadout: str | None = None,
    *,
    items: int = 3,
    request: str = SAMPLE,
    context: str | None = None,
    rework: bool = False,
) -> Any:
    """Show every prompt of a cast with generated answers, and the size of each prompt, without calling an agent.

    Args:
        context: a castContext to try instead of the loadout's own, such as full or request
        rework: let each socket that can send work back do so once
    """
    return call.bench.prompts(loadout, request, items, context, rework=rework)


def _parse_lengths(text: str) -> list[int]:
    lengths: list[int] = []
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        if not first.strip().isdecimal() or not (last or "0").strip().isdecimal():
            raise usage_error(
                f"{text!r} is not a range of list lengths.", "write a range such as `0-3`, or numbers such as `2,5`"
            )
        lengths += range(int(first), int(last or first) + 1)
    return lengths


def _parse_odds(value: object) -> Chances:
    if isinstance(value, float | int | tuple | dict):
        return value
    text = str(value)
    assignments = [piece.rpartition("=") for piece in text.split(",")]
    try:
        if len(assignments) == 1 and not assignments[0][1]:
            return _parse_probability(text)
        return {name.strip(): _parse_probability(chance) for name, _, chance in assignments}
    except ValueError:
        raise usage_error(
            f"{text!r} is not a valid probability.",
            "write `0.7`, or `Check=0.7,*=0.9`; `0.6/0.3` also sets the probability 0.3 that there is no verdict",
        ) from None


def _parse_failures(failures: Mapping[str, object]) -> FailureChances:
    """Return the probabilities of failures; raise MateriaError if a probability is a pair of numbers."""
    chances = {name: _parse_odds(value) for name, value in failures.items()}
    for value in chances.values():
        if any(isinstance(chance, tuple) for chance in (value.values() if isinstance(value, Mapping) else (value,))):
            raise usage_error("The probability of a failure must be a single number.", "write `0.1`, or `Build=0.1`")
    return cast("FailureChances", chances)


def _parse_probability(text: str) -> Probability:
    satisfied, slash, no_verdict = text.partition("/")
    return (float(satisfied), float(no_verdict)) if slash else float(satisfied)


@verb(
    "compare",
    a={"completes": "cast"},
    b={"completes": "cast"},
    example="%materia compare -2 -1\n%materia compare Plan-Build-Eval Full-Auto\n%materia compare --steps 3 5\n"
    "%materia compare --visit 5",
)
def _compare_casts(call: Call, a: Any, b: Any = None, *, steps: bool = False, visit: bool = False) -> Any:
    """Show the first difference between two casts and the reasons for it, or compare two steps or two loadouts.

    Args:
        a: a cast (its id, the beginning of its id, -1 for the latest, -2 for the second latest) or a loadout
        b: the other cast or loadout; defaults to the current cast
        steps: compare two steps of the current cast; A and B are the numbers of the steps
        visit: compare step A with the previous visit to the same socket
    """
    bench = call.bench
    if not visit and not steps:
        return bench.compare(a, b or bench.current)
    now = bench.current.now
    step = now.steps.at(_parse_step_number(a))
    if visit:
        step, other = previous_visit(now.steps, step.number), step
    else:
        other = now.steps.at(_parse_step_number(-1 if b is None else b))
    return StepCompareView(step, other, (now.compared_cast,) * 2)


@verb("replay", example="%materia replay Plan-Build-Eval\n%materia replay Plan-Build-Eval --continue")
def _replay_answers(call: Call, loadout: str | None = None, *, all_: bool = False, continue_: bool = False) -> Any:
    """Show which route the recorded answers take in another or a changed loadout, without calling an agent.

    Args:
        all_: replay every cast of the loadout with that name, not only the current cast
        continue_: create a cast that continues where the recorded answers end
    """
    bench = call.bench
    if all_ and continue_:
        raise usage_error("`--all` and `--continue` cannot be combined.", "open the cast, then use `replay --continue`")
    if all_:
        return bench.casts.replay(loadout)
    replay = bench.current.replay(bench.graph(loadout))
    return status_view(bench.casts.make_current(replay.continue_cast()).now) if continue_ else replay


def _parse_step_number(value: object) -> int:
    text = str(value)
    try:
        return int(text)
    except ValueError:
        raise usage_error(f"{text!r} is not the number of a step.", "write `compare --steps 3 5`") from None


method_verb("blame", Cast.blame, value_of, example="%materia blame workItems.0.title")


@verb("status")
def _show_status(call: Call) -> Any:
    """Show the status of the cast, and what you can do next."""
    return status_view(call.cast.now)


@verb("state", example="%materia state workItems.0")
def _show_state(call: Call, path: str | None = None, *, step: int | None = None, lane: str | None = None) -> Any:
    """Show the state, or the value at a path in the state. Several matches of a JSONPath are shown as a list.

    Args:
        path: a dotted path, such as workItems.0.title, or a JSONPath; write it in quotes if it contains spaces
        step: show the state after this step
        lane: show the state of this lane
    """
    view = call.cast.now.lane(lane)
    state = dict(view.state if step is None else view.steps.at(step).after.data)
    if path is None:
        return JsonView("state", state)
    matches = compile_query(str(path))(state)
    if not matches:
        raise MateriaError(
            f"The state has no value at {path!r}.",
            hint=f"choose a field of the state: {', '.join(state)}" if state else "run a step: the state is empty",
        )
    name = f"state {path}" if str(path).startswith("$") else f"state.{path}"
    return JsonView(name, matches[0] if len(matches) == 1 else matches)


@verb("steps")
def _list_steps(call: Call) -> Any:
    """List the steps of the cast."""
    return steps_view(call.cast.now)


@verb("steps ask", example="%materia steps ask $.workItems[*].title\n%materia steps ask --tag rain $.context")
def _ask_steps(call: Call, expression: Rest, *, all_: bool = False, tag: str | None = None) -> Any:
    """Search the outputs of all steps with JSONPath. Each match is listed with its step, socket and item.

    Args:
        expression: a JSONPath or a dotted path
        all_: search every cast of this project; this reads every cast completely
        tag: search the casts with this tag
    """
    if all_ or tag is not None:
        return call.bench.casts.ask(str(expression), call.bench.casts(tag=tag or ()))
    return search_results_table(call.cast.now.all_steps.ask(str(expression)), call.cast.graph.names)


@verb("steps events", example="%materia steps events --severity warning")
def _events(call: Call, *, severity: str | None = None, type_: str | None = None, socket: str | None = None) -> Any:
    """List the events reported in the outputs of the cast.

    Args:
        severity: list only events of this severity or higher, such as warning
        type_: list only events of this type
        socket: list only events of this socket
    """
    return call.cast.now.all_steps.events(severity=severity, type=type_, socket=socket)


@verb("usage", example="%materia usage socket,item")
def _show_usage(call: Call, by: str = "socket") -> Any:
    """Show the tokens, cost and time of the cast by group, including discarded steps.

    Args:
        by: how to group the usage: socket, materia or item, or several of them, separated by commas; defaults to socket
    """
    return call.cast.usage(*filter(None, str(by).split(",")))


@verb("handoff", example="%materia handoff 3")
def _show_handoff(call: Call, step: int = -1, *, lane: str | None = None) -> Any:
    """Show the handoff of a step: the raw output, the parsed value, its issues, requirements and assignments."""
    return HandoffView(call.cast.now, call.cast.now.lane(lane).steps.at(step))


@verb("prompt")
def _show_prompt(call: Call, step: int | None = None, *, lane: str | None = None) -> Any:
    """Show the prompt that awaits an answer, or the prompt of a step."""
    view = call.cast.now.lane(lane)
    if step is None and view.prompt is not None:
        return prompt_view(view.steps[-1], view.prompt, view.steps)
    record = view.steps.at(-1 if step is None else step)
    if record.prompt is None:
        message = f"{record.name} is a utility and has no prompt."
        raise MateriaError(message, hint="use `handoff` to show its input and output", kind="no_prompt")
    return prompt_view(record, record.prompt, view.steps)


@verb("why", example="%materia why 3")
def _explain_route(call: Call, step: int | None = None, *, traceback: bool = False, lane: str | None = None) -> Any:
    """Explain why a step took its route.

    Args:
        traceback: show the traceback of the agent function that made the cast fail
    """
    if not traceback:
        return call.cast.why(step, lane=lane)
    raised_error = call.cast.now.live.last_exception
    if raised_error is None:
        raise MateriaError("No agent of this cast raised an error in this kernel.", kind="no_traceback")
    return Text(outgoing_traceback(raised_error))


@verb(
    "show",
    panel={"help": f"show only this part of the cast: {join_with_or(standalone_names())}"},
    example="%materia show\n%materia show items",
)
def _show_cast(call: Call, panel: str | None = None) -> Any:
    """Show the cast with its graph, items, state and handoffs, or only one part of it."""
    from materia_nb.widgets import cast_panel

    if panel is not None:
        return cast_panel.show_part(call.cast, str(panel))
    return cast_panel.show(call.cast, call.bench.casts.make_current, bench=call.bench)


@verb("doctor", example="%materia doctor\n%materia doctor -1")
def _run_doctor(call: Call, cast: Rest = None) -> Any:
    """Check the installation (software, API key names, programs, folders, config and agents) or a recorded cast.

    Args:
        cast: the cast whose record is checked; the report names the last unmodified step, even if the cast cannot be
            opened
    """
    return lookup("checkup")(call.bench) if cast is None else call.bench.casts.verify(cast)


@verb("predict", example="%materia predict Socket-2")
def _predict_targets(
    call: Call,
    socket: WordList = None,
    *,
    sure: bool = False,
    unsure: bool = False,
    as_: str | None = None,
    progress: bool = False,
    example: bool = False,
) -> Any:
    """Predict the target of the next step, and see whether and why you are right. The cast does not continue. Without arguments, predict with buttons.

    Args:
        socket: the targets of the next step and of the steps after it, each a socket, end, stop or a $variable
        sure: record that you are sure
        unsure: record that you are guessing
        as_: the name under which the prediction is stored, such as 03-loops/first-item
        progress: show your predictions and answers in the lessons
        example: treat the prediction as an example, which is not recorded
    """
    if progress:
        return lessons.progress()
    current = call.cast
    name = "" if example else as_ or f"{current.graph.name}/predict {current.id}"
    if socket is None:
        from materia_nb.widgets.predict import show

        return show(current, name)
    is_certain = True if sure else False if unsure else None
    with closing(lessons.Question(current, name=name)) as question, run_progress(question.fork):
        if len(socket) == 1:
            return question.guess(socket[0], sure=is_certain)
        return question.walk(socket, sure=is_certain)
