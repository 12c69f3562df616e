"""Verbs that go on with a cast, or with many."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from materia_nb.cast import Cast
from materia_nb.cast.breakpoint import amount_of, condition_of
from materia_nb.cast.edits import Approvals
from materia_nb.cast.views.status import StatusView, consent_lines
from materia_nb.cast.views.step_views import StepView
from materia_nb.cast.views.tables import allowed_view, breakpoints_view
from materia_nb.cast.workbench import Workbench
from materia_nb.engine.session import lanes_at_work
from materia_nb.errors import MateriaError
from materia_nb.magics.cast_display import running
from materia_nb.magics.registry import Argument, Call, from_method, status_after, step_after, value_of, verb

from_method(
    "cast",
    Workbench.cast,
    value_of,
    only="request loadout",
    cell="may",
    request={"required": False},
    example="%materia cast ship the widget",
)


@verb(
    "step",
    Argument(
        "--enter", "only enter the socket, so you can read or change its prompt before it is asked", "flag"
    ),
    Argument("count", "how many steps, 1 if left out", whole=True),
)
def _step(call: Call) -> Any:
    """Run one socket, or several."""
    current, count = call.cast, call.get("count")
    if call.get("enter"):
        if count is not None:
            raise MateriaError("One socket is entered.", hint="step --enter", kind="usage")
        current.enter()
        return StatusView(current.now)
    if count is not None and count < 1:
        raise MateriaError("The number of steps must be 1 or more.", kind="usage")
    with running(current):
        current.run(steps=count) if count is not None else current.step()
    current.write_now()
    return StatusView(current.now) if lanes_at_work(current.now.session) else StepView(current.now)


@verb(
    "run",
    Argument("--until", "stop before this socket", "option", completes="socket"),
    Argument("--steps", "at most this many steps", "option", whole=True),
    example="%materia run --until Socket-3",
)
def _run(call: Call) -> Any:
    """Run until the cast ends, a person must answer, or a breakpoint is reached."""
    current = call.cast
    with running(current):
        pause = current.run(call.get("until"), steps=call.get("steps"))
    return StatusView(current.now, pause, current.breakpoints.hit)


from_method("reply", Cast.reply, step_after, cell="may", example='%%materia reply\n{"satisfied": true}')
from_method("refine", Cast.refine, step_after, cell="may", example="%materia refine make it shorter")
from_method(
    "accept",
    Cast.accept,
    step_after,
    decision={"name": "word", "completes": "socket"},
    example="%materia accept\n%materia accept satisfied",
)


@verb(
    "approve",
    Argument("--always", "later calls of the same tools need no approval in this cast", "flag"),
    Argument("--lane", "the asking lane, if there are several", "option"),
)
def _approve(call: Call) -> Any:
    """Approve the tool calls that wait for it, or the exact command that the agent asks consent for, and show which."""
    lane = call.get("lane")
    asked = call.cast.approvals if lane is None else call.cast.approvals.in_lane(str(lane))
    approved = consent_lines(asked.cast)
    with running(call.cast):
        made = asked.approve(always=bool(call.get("always")))
    return StepView(call.cast.now, approved, made.lane)


from_method("deny", Approvals.deny, step_after, only="reason lane", runs=True)


@verb(
    "allow",
    Argument("tools", "bash, edit, write, or all", "rest"),
    Argument("--ask", "make them ask again; all if none is named", "flag"),
    example="%materia allow edit write",
)
def _allow(call: Call) -> Any:
    """Let agents' tools change files or run commands without asking, in this cast; without arguments, list which may."""
    current, tools = call.cast, str(call.get("tools") or "").split()
    if call.get("ask"):
        current.approvals.disallow(*tools)
    elif tools:
        current.approvals.allow(*tools)
    return allowed_view(current.now)


_MEANT: Final = ("after", "refused", "not_satisfied", "same_again", "hollow_answer")
"""What a breakpoint can stop at beside a way out and a path, each a flag."""


@verb(
    "break",
    Argument("socket", "which; left out, --refused and --not-satisfied mean any", completes="socket"),
    Argument("--after", "stop after the socket, not before it", "flag"),
    Argument("--edge", "stop when this edge is taken, given by its number or its target", "option"),
    Argument("--refused", "stop when its output is refused, before the repair turn", "flag"),
    Argument("--not-satisfied", "stop when its verdict is not satisfied", "flag"),
    Argument("--same-again", "stop when its output is the same as before for the same item", "flag"),
    Argument(
        "--hollow-answer",
        "stop when its output is accepted after a refusal but much shorter than before",
        "flag",
    ),
    Argument("--on", "stop after a step that changes this dotted path in the state", "option"),
    Argument(
        "--every",
        "stop each time this much more has been used: 20000 tokens, 2.5 usd, 60 seconds, 10 turns",
        "option",
    ),
    Argument("--with-forks", "with --every: count the cast and all its forks together", "flag"),
    Argument("--nth", "only the n-th time in a cast", "option", whole=True),
    Argument("--lane", "only in the lane of this name", "option"),
    Argument(
        "--when",
        "only if this holds, in quotes (state, item, output, steps, visits); any other Python expression is lost with the kernel",
        "option",
    ),
    Argument("--clear", "remove the breakpoint, those of the socket, or all of them", "flag"),
    example='%materia break Socket-3 --when "state.retries > 2"',
)
def _break(call: Call) -> Any:
    """Stop runs before a socket, or elsewhere; without arguments, list the breakpoints. Applies to all casts of the loadout."""
    bench, socket, path, nth = call.bench, call.get("socket"), call.get("on"), call.get("nth")
    edge, when = call.get("edge"), call.get("when")
    where: dict[str, Any] = {name: bool(call.get(name)) for name in _MEANT}
    where["edge"] = int(edge) if edge is not None and edge.isdecimal() else edge
    if call.get("clear"):
        bench.breakpoints.clear(socket, path, **where)
    elif path is not None:
        bench.breakpoints.watch(str(path), nth=nth)
    elif (every := call.get("every")) is not None:
        bench.breakpoints.every(*amount_of(every), socket, with_forks=bool(call.get("with_forks")))
    elif socket is not None or any(where.values()):
        bench.breakpoints.add(
            socket, _condition(when, call) if when else None, **where, nth=nth, lane=call.get("lane")
        )
    if bench.cast_ is None:
        return breakpoints_view(bench.breakpoints, bench.graph())
    return breakpoints_view(bench.current.breakpoints, bench.current.graph)


def _condition(expression: str, call: Call) -> Any:
    """Return a condition that is kept as it is; any other Python expression as a function of the cast."""
    with suppress(MateriaError):
        condition_of(expression)
        return expression
    try:
        code = compile(expression, "<breakpoint>", "eval")
    except SyntaxError as error:
        raise MateriaError(
            f"The condition is not a Python expression: {error.msg}.", where=expression
        ) from None

    def holds(current: Cast) -> bool:
        found = {
            **call.names,
            "state": dict(current.state),
            "cast": current,
            "item": current.state.get("item"),
        }
        try:
            return bool(eval(code, found))  # noqa: S307 - the person's own expression, in their own kernel
        except Exception as error:
            raise MateriaError(
                f"The condition of the breakpoint failed: {type(error).__name__}: {error}.",
                where=expression,
                hint="break SOCKET --clear takes it away",
                kind="breakpoint",
            ) from error

    holds.__doc__ = expression
    return holds


from_method("abort", Cast.abort, status_after, only="reason")
from_method("retry", Cast.retry, step_after, runs=True, example="%materia retry\n%materia retry --limit")
from_method("skip", Cast.skip, step_after, example="%materia skip the counter is down today")


@verb(
    "attempt",
    Argument("socket", "the waiting or next socket", completes="socket"),
    Argument("--n", "how often each agent is asked; once if left out", "option", whole=True),
    Argument(
        "--agents",
        "who is asked: agents with commas between, or a $list; who answers anyway if left out",
        "option",
    ),
    Argument("--prompts", "a $list of prompts of the materia to ask instead", "option"),
    Argument("--take", "make this one of the latest attempts the answer", "option", whole=True),
    Argument("--pin", "pin the socket to this one of the latest attempts", "option", whole=True),
    cell="may",
    example="%materia attempt Socket-3 --n 3",
)
def _attempt(call: Call) -> Any:
    """Ask the waiting turn several times and compare the answers side by side; the cast does not change until you take one. The body of a cell is an alternative prompt of the materia."""
    cast = call.cast
    take, pin = call.get("take"), call.get("pin")
    if take is not None or pin is not None:
        tried = cast.attempts
        if tried is None:
            raise MateriaError(
                "Nothing was attempted yet.", hint="attempt first, then take one", kind="usage"
            )
        if pin is not None:
            tried.pin(pin)
        if take is None:
            return tried
        tried.take(take)
        return StepView(cast.now)
    prompts = call.get("prompts") if call.body is None else [call.body.strip()]
    if isinstance(prompts, str):
        prompts = [prompts]
    return cast.attempt(call.get("socket"), call.get("n", 1), _listed(call.get("agents")), prompts)


@verb(
    "sweep",
    Argument("request", "what is asked for, or a $list or $dict of requests", "rest"),
    Argument(
        "--loadouts",
        "loadouts, separated by commas; the chosen one if left out",
        "option",
        completes="loadout",
    ),
    Argument("--agents", "who answers: agents with commas between, or a $list or $dict of choices", "option"),
    Argument("--repeat", "how often each is cast; once if left out", "option", whole=True),
    Argument("--checks", "a $function, or a $list or $dict of checks and judges", "option"),
    Argument("--dir", "where rows and casts are saved", "option"),
    Argument("--retry", "recast casts that did not finish", "flag"),
    Argument(
        "--most",
        "start no more casts once all have used this much: 200000 tokens, 2.5 usd, 600 seconds, 100 turns",
        "option",
    ),
    cell="may",
    example="%materia sweep --loadouts Plan-Build-Eval,Full-Auto --repeat 3 a page on rain",
)
def _sweep(call: Call) -> Any:
    """Run a grid of casts and summarize the results; finished casts are reused. Each line of a cell is a request."""
    requests = call.get("request", ())
    if call.body is not None:
        requests = [line.strip() for line in call.body.splitlines() if line.strip()]
    if not requests:
        hint = "write a request behind the verb, or one on each line of the cell (in a terminal: --body FILE)"
        raise MateriaError("A sweep needs requests.", hint=hint, kind="usage")
    return call.bench.sweep(
        _listed(call.get("loadouts")),
        requests,
        _listed(call.get("agents")),
        call.get("repeat", 1),
        call.get("checks"),
        call.get("dir"),
        retry=bool(call.get("retry")),
        most=call.get("most"),
        progress=True,
    )


def _listed(given: Any) -> Any:
    """What stands between commas; lists and dicts as they are."""
    return [one.strip() for one in given.split(",")] if isinstance(given, str) else given


@verb(
    "link",
    Argument(
        "--from", "an earlier cast, whose context the state gets as previous", "option", completes="cast"
    ),
    Argument(
        "parts",
        "loadouts and materia in their order; loadout:NAME or materia:NAME where a name means both",
        "words",
        required=True,
        completes="part",
    ),
    Argument("request", "what is asked for; or in the cell", "rest"),
    cell="may",
    example="%materia link Planning-Consult Full-Auto -- ship the widget",
)
def _link(call: Call) -> Any:
    """Start a cast of loadouts and materia in a row; continue it with buttons, step or run."""
    request = call.request()
    if not request:
        raise MateriaError(
            "The request is missing.", hint="write it after --: link A B -- request", kind="usage"
        )
    return call.bench.link(*map(str, call.get("parts")), request=request, from_cast=call.get("from"))
