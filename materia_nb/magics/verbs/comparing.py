"""Verbs that lay casts and loadouts beside one another: compare, replay, blame."""

from __future__ import annotations

from typing import Any

from materia_nb.magics.registry import Argument, Call, verb


@verb(
    "compare",
    Argument("--steps", "A and B are numbers of steps of the current cast", "flag"),
    Argument(
        "a",
        "a cast (an id, its beginning, -1 for the latest, -2 for the one before), or a loadout",
        required=True,
        completes="cast",
    ),
    Argument("b", "the other; the current cast if left out", completes="cast"),
    example="%materia compare -2 -1\n%materia compare Plan-Build-Eval Full-Auto\n%materia compare --steps 3 5",
)
def compare(call: Call) -> Any:
    """Show where two casts first differ and why, with their steps beside one another; or how two loadouts differ."""
    bench, a, b = call.bench, call.get("a"), call.get("b")
    if call.get("steps"):
        steps = [bench.current.at_step(_number(one)) for one in (a, -1 if b is None else b)]
        return bench.compare(*steps)
    return bench.compare(a, bench.current if b is None else b)


@verb(
    "replay",
    Argument("loadout", "its name; the chosen one if left out", completes="loadout"),
    Argument("--all", "every cast of a loadout of that name, in place of the current cast", "flag"),
    example="%materia replay Plan-Build-Eval",
)
def replay(call: Call) -> Any:
    """Show where the recorded answers would have led in another loadout, or in this one as it is now; nothing runs."""
    bench, name = call.bench, call.get("loadout")
    if call.get("all"):
        return bench.replay(name)
    return bench.current.replay(bench.graph(name))


@verb(
    "blame",
    Argument("path", "a dotted path into the state, such as workItems.0.title", required=True),
    example="%materia blame workItems.0.title",
)
def blame(call: Call) -> Any:
    """Show which step, answer and rule made a value of the state what it is, the latest change first."""
    return call.bench.current.blame(str(call.get("path")))


def _number(given: object) -> int:
    text = str(given)
    try:
        return int(text)
    except ValueError:
        from materia_nb.errors import MateriaError

        raise MateriaError(
            f"{text!r} is no step: it must be a whole number.", hint="compare --steps 3 5", kind="usage"
        ) from None
