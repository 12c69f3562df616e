"""Verbs that try things out: attempt one turn, sweep over many casts."""

from __future__ import annotations

from typing import Any

from materia_nb.cast.attempt import Attempts
from materia_nb.cast.views.step_views import StepView
from materia_nb.errors import MateriaError
from materia_nb.magics.registry import Argument, Call, verb


@verb(
    "attempt",
    Argument("socket", "the one that waits or comes next", completes="socket"),
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
def attempt(call: Call) -> Any:
    """Ask the turn that waits several times and lay the answers side by side; the cast stays as it is until one is taken. The body of a cell is another prompt of the materia to ask."""
    cast = call.cast
    take, pin = call.get("take"), call.get("pin")
    if take is not None or pin is not None:
        tried = cast.runner.attempts
        if not isinstance(tried, Attempts):
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
        "--loadouts", "which, with commas between; the chosen one if left out", "option", completes="loadout"
    ),
    Argument("--agents", "who answers: agents with commas between, or a $list or $dict of choices", "option"),
    Argument("--repeat", "how often each is cast; once if left out", "option", whole=True),
    Argument("--checks", "a $function, or a $list or $dict of checks and judges", "option"),
    Argument("--dir", "where rows and casts are kept", "option"),
    Argument("--retry", "make casts anew that did not come to their end", "flag"),
    cell="may",
    example="%materia sweep --loadouts Plan-Build-Eval,Full-Auto --repeat 3 a page on rain",
)
def sweep(call: Call) -> Any:
    """Run a grid of casts and summarize the results; casts that are done are not made again. Each line of a cell is a request."""
    requests = call.get("request", ())
    if call.body is not None:
        requests = [line.strip() for line in call.body.splitlines() if line.strip()]
    return call.bench.sweep(
        _listed(call.get("loadouts")),
        requests,
        _listed(call.get("agents")),
        call.get("repeat", 1),
        call.get("checks"),
        call.get("dir"),
        retry=bool(call.get("retry")),
    )


def _listed(given: Any) -> Any:
    """What stands between commas; lists and dicts as they are."""
    return [one.strip() for one in given.split(",")] if isinstance(given, str) else given
