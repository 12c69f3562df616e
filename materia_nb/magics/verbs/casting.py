"""Verbs that go on with a cast: cast, step, enter, run, reply, refine, continue, abort, recast, skip, revive, budget, break."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from materia_nb.cast import Cast
from materia_nb.cast.views.status import StatusView, consent_lines
from materia_nb.cast.views.step_views import StepView
from materia_nb.cast.views.tables import GROUPS, allowed_view, breakpoints_view, budget_view, usage_view
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.loadout.vocabulary import WAITING_FOR
from materia_nb.magics.cast_display import running
from materia_nb.magics.registry import Argument, Call, verb


@verb(
    "cast",
    Argument("--loadout", "another loadout than the chosen one", "option", completes="loadout"),
    Argument("request", "what is asked for", "rest"),
    cell="may",
    example="%materia cast ship the widget",
)
def cast(call: Call) -> Any:
    """Start a cast of the chosen loadout, and show it with its panels; buttons, step or run go on with it."""
    return call.bench.cast(call.request(), loadout=call.get("loadout"))


@verb("step", Argument("count", "how many steps, 1 if left out", whole=True))
def step(call: Call) -> Any:
    """Run one socket, or as many as you say."""
    count = call.get("count")
    if count is not None and count < 1:
        raise MateriaError("The number of steps must be 1 or more.", kind="usage")
    return _run(call, _step if count is None else lambda cast: cast.run(steps=count))


def _step(cast: Cast) -> None:
    cast.step()
    cast.runner.write_now()


def _run(call: Call, act: Callable[[Cast], object]) -> StepView:
    """Let the current cast do what takes time, with a bar beside it, and show the step that it is at then."""
    current = call.cast
    with running(current):
        act(current)
    return StepView(current.now)


@verb("enter")
def enter(call: Call) -> Any:
    """Enter the next socket without running it, to look at its prompt, or change it (reword), before it is asked."""
    call.cast.enter()
    return StatusView(call.cast.now)


@verb(
    "run",
    Argument("--until", "stop in front of this socket", "option", completes="socket"),
    Argument("--steps", "at most so many steps", "option", whole=True),
    example="%materia run --until Socket-3",
)
def run(call: Call) -> Any:
    """Run until the cast ends, a person must answer, or a breakpoint is reached."""
    current = call.cast
    with running(current):
        pause = current.run(call.get("until"), steps=call.get("steps"))
    return StatusView(current.now, pause, current.breakpoints.hit)


@verb(
    "reply",
    Argument("answer", "the answer as text, or a $variable (text or a dict)", "rest"),
    cell="may",
    example='%%materia reply\n{"satisfied": true}',
)
def reply(call: Call) -> Any:
    """Answer the agent socket that waits for a person; where a cast failed, answer in the place of what failed."""
    answer = call.body_or("answer")
    if answer is None:
        raise MateriaError(
            "The answer is missing.", hint="write it behind reply, or in a %%materia reply cell"
        )
    current = call.cast
    current.reply(answer)
    return StepView(current.now)


@verb(
    "refine",
    Argument("message", "what should be different", "rest"),
    cell="may",
    example="%materia refine make it shorter",
)
def refine(call: Call) -> Any:
    """Ask a multi-turn agent to change its draft."""
    call.cast.refine(str(call.needed("message", "Say what should be different.")))
    return StepView(call.cast.now)


@verb("continue")
def continue_(call: Call) -> Any:
    """Accept the draft of a multi-turn socket: its agent gives the final result."""
    call.cast.finalize()
    return StepView(call.cast.now)


@verb(
    "answer",
    Argument("text", "the answer", "rest"),
    cell="may",
    example="%materia answer take the second option",
)
def answer(call: Call) -> Any:
    """Answer the agent that holds the cast; it goes on in the same conversation."""
    call.cast.approvals.answer(str(call.needed("text", "The answer is missing.")))
    return StepView(call.cast.now)


@verb(
    "approve",
    Argument("--always", "later calls of the same tools need not ask in this cast", "flag"),
)
def approve(call: Call) -> Any:
    """Approve the tool calls that wait for it, or the exact command that the agent asks consent for, and show which."""
    approved = consent_lines(call.cast.now)
    _run(call, lambda cast: cast.approvals.approve(always=bool(call.get("always"))))
    return StepView(call.cast.now, approved)


@verb("deny", Argument("reason", "why, for the agent", "rest"))
def deny(call: Call) -> Any:
    """Refuse the tool calls, or the command, that the agent asks approval for; it goes on without."""
    return _run(call, lambda cast: cast.approvals.deny(str(call.get("reason", ""))))


@verb(
    "allow",
    Argument("tools", "bash, edit, write, or all", "rest"),
    Argument("--ask", "let them ask again, all if none is named", "flag"),
    example="%materia allow edit write",
)
def allow(call: Call) -> Any:
    """Let tools of agents change files or run commands without asking, in this cast; alone, say which may."""
    current, tools = call.cast, str(call.get("tools") or "").split()
    if call.get("ask"):
        current.approvals.disallow(*tools)
    elif tools:
        current.approvals.allow(*tools)
    return allowed_view(current.now)


@verb(
    "decide",
    Argument(
        "word",
        f"{', '.join(WAITING_FOR.values())}, or a socket to go on to",
        required=True,
        completes="socket",
    ),
    example="%materia decide satisfied",
)
def decide(call: Call) -> Any:
    """Decide in the place of the agent that holds the cast: its output is taken, and the cast goes on."""
    word, current = str(call.get("word")), call.cast
    said = next((verdict.satisfied for verdict, condition in WAITING_FOR.items() if condition == word), None)
    current.approvals.decide(satisfied=said, target=word if said is None else None)
    return StepView(current.now)


_MEANT: Final = ("after", "refused", "not_satisfied", "same_again", "hollow_answer")
"""What a breakpoint can stop at beside a way out and a path, each a flag."""


@verb(
    "break",
    Argument("socket", "which; left out, --refused and --not-satisfied mean any", completes="socket"),
    Argument("--after", "stop behind the socket, not in front of it", "flag"),
    Argument(
        "--edge", "stop when this way out of it is taken: an edge's number, or where it leads", "option"
    ),
    Argument("--refused", "stop when its output is refused, before the repair turn", "flag"),
    Argument("--not-satisfied", "stop when it says that it is not satisfied", "flag"),
    Argument("--same-again", "stop when it says what it said before for the same item", "flag"),
    Argument(
        "--hollow-answer", "stop when it is taken after a refusal and says far less than before", "flag"
    ),
    Argument("--on", "stop behind a step that changes this dotted path in the state", "option"),
    Argument("--nth", "only the n-th time in a cast", "option", whole=True),
    Argument(
        "--when",
        "only if this Python expression, in quotes, holds (state, item, cast); gone with the kernel",
        "option",
    ),
    Argument("--clear", "take the breakpoint, those of the socket, or all of them, away", "flag"),
    example="%materia break Socket-3 --when \"state.get('retries', 0) > 2\"",
)
def break_(call: Call) -> Any:
    """Stop runs in front of a socket, or elsewhere; alone, list the breakpoints. Kept for all casts of the loadout."""
    bench, socket, path, nth = call.bench, call.get("socket"), call.get("on"), call.get("nth")
    edge, when = call.get("edge"), call.get("when")
    where: dict[str, Any] = {name: bool(call.get(name)) for name in _MEANT}
    where["edge"] = int(edge) if edge is not None and edge.isdecimal() else edge
    if call.get("clear"):
        bench.breakpoints.clear(socket, path, **where)
    elif path is not None:
        bench.breakpoints.watch(str(path), nth=nth)
    elif socket is not None or any(where.values()):
        bench.breakpoints.add(socket, _condition(when, call) if when else None, **where, nth=nth)
    if bench.cast_ is None:
        return breakpoints_view(bench.breakpoints, bench.graph())
    return breakpoints_view(bench.current.breakpoints, bench.current.graph)


def _condition(expression: str, call: Call) -> Any:
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


@verb(
    "abort",
    Argument("reason", "why, for the journal", "rest"),
)
def abort(call: Call) -> Any:
    """Stop the cast."""
    call.cast.abort(str(call.get("reason") or "stopped by the person"))
    return StatusView(call.cast.now)


@verb("resend")
def resend(call: Call) -> Any:
    """Ask the turn that failed once more, in the same conversation; reword changes its prompt first."""
    return _run(call, Cast.resend)


@verb("recast")
def recast(call: Call) -> Any:
    """Run the socket where a failed or aborted cast stopped once more."""
    return _run(call, Cast.recast)


@verb(
    "skip",
    Argument("--item", "the whole work item is passed over, and the next one is begun", "flag"),
    Argument("note", "why, for the journal", "rest", required=True),
    example="%materia skip the counter is down today",
)
def skip(call: Call) -> Any:
    """Go on without the socket where a cast failed, by its always edge, or without its item; the journal keeps the note."""
    call.cast.skip(str(call.get("note")), item=bool(call.get("item")))
    return StepView(call.cast.now)


@verb("revive")
def revive(call: Call) -> Any:
    """Go on with a failed cast, with the limit that stopped it granted once more."""
    return _run(call, Cast.revive)


@verb(
    "budget",
    Argument("most", "the most tokens, or the most cost as in 2.50 USD; none for no limit", "words"),
    example="%materia budget 200000",
)
def budget(call: Call) -> Any:
    """Show the tokens and the cost so far, or set the budget of this cast."""
    most = call.get("most")
    current = call.cast
    if most is not None:
        current.edit.budget_in_words(" ".join(map(str, most)))
    return budget_view(current.now)


@verb(
    "usage",
    Argument("by", "socket, materia or item; socket if left out"),
    example="%materia usage item",
)
def usage(call: Call) -> Any:
    """Show the tokens and the cost of this cast, added up by socket, materia or item."""
    by = str(call.get("by") or "socket")
    if by not in GROUPS:
        raise MateriaError(
            f"Usage is added up by socket, materia or item, not by {by!r}.",
            hint=did_you_mean(by, GROUPS),
            kind="usage",
        )
    return usage_view(call.cast.now, by)
