"""Two casts beside one another, step by step: a cast and its fork, for the dock of the panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from materia_nb.insight.compare import Comparison, Pair
from materia_nb.widgets.blocks import Block, line, table
from materia_nb.widgets.standing import names_of

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.engine.session import StepRecord

MOST_PAIRS: Final = 1_000


def compare_state(casts: Sequence[Cast], shown: Cast) -> dict[str, Any]:
    """Return the routes of the first cast and the one that is shown, aligned, the first difference marked.

    Args:
        casts: those of the panel, the first being what the others were forked from.
        shown: which of them the panel shows; the latest fork if that is the first.
    """
    if len(casts) < 2:
        return {
            "pairs": [],
            "blocks": [line("Fork a step: then both casts are shown here, side by side.", "quiet")],
        }
    other = shown if shown is not casts[0] else casts[-1]
    found = Comparison(casts[0].now.side, other.now.side)
    names = names_of(casts[0].graph)
    first = found.first.step if found.first is not None else None
    blocks: list[Block] = [
        line("They did the same so far." if found.first is None else f"They first differ in step {first}."),
        *(line(one) for one in (found.first.lines if found.first is not None else ())),
    ]
    spent = [
        ("ends", casts[0].status, other.status),
        ("tokens", *(f"{one.tokens:,}" for one in found.usage)),
        ("time", *(f"{one / 1000:.1f} s" for one in found.time)),
    ]
    return {
        "names": ["this cast", f"fork {list(casts).index(other)}"],
        "pairs": [_pair(one, names, first) for one in found.pairs[-MOST_PAIRS:]],
        "blocks": [*blocks, table(("", "this cast", "the fork"), spent)],
    }


def _pair(pair: Pair, names: dict[str, str], first: int | None) -> dict[str, Any]:
    one = pair.a if pair.a is not None else pair.b
    number = one.number if one is not None else None
    return {
        "number": number,
        "a": _words(pair.a, names),
        "b": _words(pair.b, names),
        "what": f"only in {'this cast' if pair.where == 'A' else 'the fork'}"
        if pair.where != "both"
        else ", ".join(pair.did),
        "first": number == first,
    }


def _words(step: StepRecord | None, names: dict[str, str]) -> str:
    if step is None:
        return ""
    item = f" {step.item_key}" if step.item_key else ""
    way = step.decision.target if step.decision is not None else None
    return f"{names.get(step.socket, step.socket)}{item} → {names.get(way, way) if way else 'waiting'}"
