"""Verbs of insight: loadouts explored before they are cast, and casts laid beside one another."""

from __future__ import annotations

from typing import Any, Final

from materia_nb.cast.views.status import StatusView
from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import SAMPLE
from materia_nb.insight.odds import Chances, Likely
from materia_nb.magics.cast_display import counting
from materia_nb.magics.registry import Argument, Call, verb

_LOADOUT: Final = Argument("loadout", "the loadout; the chosen one if left out", completes="loadout")
_SATISFIED: Final = Argument(
    "--satisfied", "the chance of satisfied: 0.7 for all, or Check=0.7,*=0.9; 0.5 if left out", "option"
)
_ITEMS: Final = Argument("--items", "how long every list is; 3 if left out", "option", whole=True)


@verb(
    "explore",
    _LOADOUT,
    Argument("--items", "how long the lists are that are tried, such as 0-3 or 2,5", "option"),
    example="%materia explore Plan-Build-Eval",
)
def explore(call: Call) -> Any:
    """Show what a loadout can do: every way that its casts can go, without asking anybody."""
    with counting("states") as told:
        lengths = _lengths(str(call.get("items", "0-3")))
        return call.bench.explore(call.get("loadout"), lengths, progress=told)


@verb("odds", _LOADOUT, _SATISFIED, _ITEMS, example="%materia odds Plan-Build-Eval --satisfied 0.7")
def odds(call: Call) -> Any:
    """Show how likely each end of a cast is, and how many turns it takes on average, exactly."""
    items = call.get("items", 3)
    with counting("states") as told:
        explored = call.bench.explore(call.get("loadout"), (items,), progress=told)
    return explored.odds(_chances(call.get("satisfied", 0.5)), items)


@verb(
    "rehearse",
    _LOADOUT,
    Argument("--n", "how many casts; 1000 if left out", "option", whole=True),
    _SATISFIED,
    _ITEMS,
    Argument("--seed", "what the chances are drawn from; 1 if left out", "option", whole=True),
    example="%materia rehearse Plan-Build-Eval --n 200 --satisfied 0.7",
)
def rehearse(call: Call) -> Any:
    """Cast a loadout many times in memory, answered by chance, and show how the casts end."""
    with counting("casts") as told:
        return call.bench.rehearse(
            call.get("loadout"),
            call.get("n", 1000),
            _chances(call.get("satisfied", 0.5)),
            call.get("items", 3),
            call.get("seed", 1),
            progress=told,
        )


@verb(
    "prompts",
    _LOADOUT,
    _ITEMS,
    Argument("--request", "the request; a made-up word if left out", "option"),
    Argument("--contexts", "castContext to be laid side by side, such as full,request", "option"),
    example="%materia prompts Plan-Build-Eval --items 10 --contexts full,request",
)
def prompts(call: Call) -> Any:
    """Show every prompt that a cast would have, with its size, without asking anybody; answers are made up."""
    contexts = str(call.get("contexts") or "")
    return call.bench.prompts(
        call.get("loadout"),
        call.get("request", SAMPLE),
        call.get("items", 3),
        [one.strip() for one in contexts.split(",") if one.strip()],
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


def _chance(text: str) -> Likely:
    yes, pair, nothing = text.partition("/")
    return (float(yes), float(nothing)) if pair else float(yes)


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
    bench, a = call.bench, call.get("a")
    if call.get("steps"):
        return bench.compare(*(bench.current.steps.at(_number(one)) for one in (a, call.get("b", -1))))
    return bench.compare(a, call.get("b") or bench.current)


@verb(
    "replay",
    Argument("loadout", "its name; the chosen one if left out", completes="loadout"),
    Argument("--all", "every cast of a loadout of that name, in place of the current cast", "flag"),
    Argument("--go-on", "make a cast of it, which goes on where the recorded answers end", "flag"),
    example="%materia replay Plan-Build-Eval\n%materia replay Plan-Build-Eval --go-on",
)
def replay(call: Call) -> Any:
    """Show where the recorded answers would have led in another loadout, or in this one as it is now; nothing runs."""
    bench, name = call.bench, call.get("loadout")
    if call.get("all"):
        if call.get("go_on"):
            raise MateriaError(
                "One replay at a time can go on.", hint="open the cast, then replay --go-on", kind="usage"
            )
        return bench.replay(name)
    found = bench.current.replay(bench.graph(name))
    return StatusView(bench.take(found.go_on()).now) if call.get("go_on") else found


@verb(
    "blame",
    Argument("path", "a dotted path into the state, such as workItems.0.title", required=True),
    example="%materia blame workItems.0.title",
)
def blame(call: Call) -> Any:
    """Show which step, answer and rule made a value of the state what it is, the latest change first."""
    return call.cast.blame(str(call.get("path")))


def _number(given: object) -> int:
    text = str(given)
    try:
        return int(text)
    except ValueError:
        raise MateriaError(
            f"{text!r} is no step: it must be a whole number.", hint="compare --steps 3 5", kind="usage"
        ) from None
