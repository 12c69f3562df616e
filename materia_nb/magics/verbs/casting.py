"""Verbs that go on with a cast, or with many."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

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
from materia_nb.magics.registry import (
    Call,
    Rest,
    Several,
    from_method,
    status_after,
    step_after,
    value_of,
    verb,
)

from_method(
    "cast",
    Workbench.cast,
    value_of,
    only="request loadout",
    cell="may",
    request={"required": False},
    example="%materia cast ship the widget",
)


@verb("step")
def _step(call: Call, count: int | None = None, *, enter: bool = False) -> Any:
    """Run one socket, or several.

    Args:
        count: how many steps, 1 if left out
        enter: only enter the socket, so you can read or change its prompt before it is asked
    """
    current = call.cast
    if enter:
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


@verb("run", until={"completes": "socket"}, example="%materia run --until Socket-3")
def _run(call: Call, *, until: str | None = None, steps: int | None = None) -> Any:
    """Run until the cast ends, a person must answer, or a breakpoint is reached.

    Args:
        until: stop before this socket
        steps: at most this many steps
    """
    current = call.cast
    with running(current):
        pause = current.run(until, steps=steps)
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


@verb("approve")
def _approve(call: Call, *, always: bool = False, lane: str | None = None) -> Any:
    """Approve the tool calls that wait for it, or the exact command that the agent asks consent for, and show which.

    Args:
        always: later calls of the same tools need no approval in this cast
        lane: the asking lane, if there are several
    """
    asked = call.cast.approvals if lane is None else call.cast.approvals.in_lane(lane)
    approved = consent_lines(asked.cast)
    with running(call.cast):
        made = asked.approve(always=always)
    return StepView(call.cast.now, approved, made.lane)


from_method("deny", Approvals.deny, step_after, only="reason lane", runs=True)


@verb("allow", example="%materia allow edit write")
def _allow(call: Call, tools: Rest = "", *, ask: bool = False) -> Any:
    """Let agents' tools change files or run commands without asking, in this cast; without arguments, list which may.

    Args:
        tools: bash, edit, write, or all
        ask: make them ask again; all if none is named
    """
    current, named = call.cast, str(tools).split()
    if ask:
        current.approvals.disallow(*named)
    elif named:
        current.approvals.allow(*named)
    return allowed_view(current.now)


@verb("break", example='%materia break Socket-3 --when "state.retries > 2"')
def _break(
    call: Call,
    socket: str | None = None,
    *,
    on: str | None = None,
    every: str | None = None,
    with_forks: bool = False,
    nth: int | None = None,
    lane: str | None = None,
    when: str | None = None,
    edge: str | None = None,
    clear: bool = False,
    after: bool = False,
    refused: bool = False,
    not_satisfied: bool = False,
    same_again: bool = False,
    hollow_answer: bool = False,
) -> Any:
    """Stop runs before a socket, or elsewhere; without arguments, list the breakpoints. Applies to all casts of the loadout.

    Args:
        socket: which; left out, --refused and --not-satisfied mean any
        on: stop after a step that changes this dotted path in the state
        every: stop each time this much more has been used: 20000 tokens, 2.5 usd, 60 seconds, 10 turns
        with_forks: with --every: count the cast and all its forks together
        nth: only the n-th time in a cast
        lane: only in the lane of this name
        when: only if this holds, in quotes (state, item, output, steps, visits); any other Python expression is lost with the kernel
        edge: stop when this edge is taken, given by its number or its target
        clear: remove the breakpoint, those of the socket, or all of them
        after: stop after the socket, not before it
        refused: stop when its output is refused, before the repair turn
        not_satisfied: stop when its verdict is not satisfied
        same_again: stop when its output is the same as before for the same item
        hollow_answer: stop when its output is accepted after a refusal but much shorter than before
    """
    bench = call.bench
    where: dict[str, Any] = {
        "after": after,
        "edge": int(edge) if edge is not None and edge.isdecimal() else edge,
        "refused": refused,
        "not_satisfied": not_satisfied,
        "same_again": same_again,
        "hollow_answer": hollow_answer,
    }
    if clear:
        bench.breakpoints.clear(socket, on, **where)
    elif on is not None:
        bench.breakpoints.watch(on, nth=nth)
    elif every is not None:
        bench.breakpoints.every(*amount_of(every), socket, with_forks=with_forks)
    elif socket is not None or any(where.values()):
        condition = _condition(when, call) if when else None
        bench.breakpoints.add(socket, condition, **where, nth=nth, lane=lane)
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


@verb("attempt", cell="may", example="%materia attempt Socket-3 --n 3")
def _attempt(
    call: Call,
    socket: str | None = None,
    *,
    n: int = 1,
    agents: Any = None,
    prompts: Any = None,
    take: int | None = None,
    pin: int | None = None,
) -> Any:
    """Ask the waiting turn several times and compare the answers side by side; the cast does not change until you take one. The body of a cell is an alternative prompt of the materia.

    Args:
        socket: the waiting or next socket
        n: how often each agent is asked; once if left out
        agents: who is asked: agents with commas between, or a $list; who answers anyway if left out
        prompts: a $list of prompts of the materia to ask instead
        take: make this one of the latest attempts the answer
        pin: pin the socket to this one of the latest attempts
    """
    cast = call.cast
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
    if call.body is not None:
        prompts = call.body.strip()
    return cast.attempt(socket, n, _listed(agents), [prompts] if isinstance(prompts, str) else prompts)


@verb(
    "sweep",
    cell="may",
    loadouts={"completes": "loadout"},
    example="%materia sweep --loadouts Plan-Build-Eval,Full-Auto --repeat 3 a page on rain",
)
def _sweep(
    call: Call,
    request: Rest = (),
    *,
    loadouts: Any = None,
    agents: Any = None,
    repeat: int = 1,
    checks: Any = None,
    dir_: str | None = None,
    retry: bool = False,
    most: str | None = None,
) -> Any:
    """Run a grid of casts and summarize the results; finished casts are reused. Each line of a cell is a request.

    Args:
        request: what is asked for, or a $list or $dict of requests
        loadouts: loadouts, separated by commas; the chosen one if left out
        agents: who answers: agents with commas between, or a $list or $dict of choices
        repeat: how often each is cast; once if left out
        checks: a $function, or a $list or $dict of checks and judges
        dir_: where rows and casts are saved
        retry: recast casts that did not finish
        most: start no more casts once all have used this much: 200000 tokens, 2.5 usd, 600 seconds, 100 turns
    """
    if call.body is not None:
        request = [line.strip() for line in call.body.splitlines() if line.strip()]
    if not request:
        hint = "write a request behind the verb, or one on each line of the cell (in a terminal: --body FILE)"
        raise MateriaError("A sweep needs requests.", hint=hint, kind="usage")
    cells = (_listed(loadouts), request, _listed(agents), repeat, checks, dir_)
    return call.bench.sweep(*cells, retry=retry, most=most, progress=True)


def _listed(given: Any) -> Any:
    """What stands between commas; lists and dicts as they are."""
    return [one.strip() for one in given.split(",")] if isinstance(given, str) else given


@verb(
    "link",
    cell="may",
    parts={"completes": "part"},
    from_={"completes": "cast"},
    example="%materia link Planning-Consult Full-Auto -- ship the widget",
)
def _link(call: Call, parts: Several, request: Rest = "", *, from_: str | None = None) -> Any:
    """Start a cast of loadouts and materia in a row; continue it with buttons, step or run.

    Args:
        parts: loadouts and materia in their order; loadout:NAME or materia:NAME where a name means both
        request: what is asked for; or in the cell
        from_: an earlier cast, whose context the state gets as previous
    """
    request = call.request(request)
    if not request:
        raise MateriaError(
            "The request is missing.", hint="write it after --: link A B -- request", kind="usage"
        )
    return call.bench.link(*map(str, parts), request=request, from_cast=from_)
