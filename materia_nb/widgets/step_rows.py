"""The steps of a cast as rows of a table: what the timeline shows of each, and two casts beside one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from materia_nb.cast.listing import way_words
from materia_nb.display.escape import part, plain, shorten
from materia_nb.errors import counted
from materia_nb.handoff.sparse import SEVERITIES
from materia_nb.insight.compare import Comparison, Pair
from materia_nb.insight.sides import used
from materia_nb.loadout.graph import END
from materia_nb.widgets.blocks import Block, line, table
from materia_nb.widgets.standing import names_of

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.engine.session import StepRecord

Row: TypeAlias = list[Any]
"""Number, socket, its name, item, output, its verdict, next, tokens, cost, start and end in ms, marks."""

TAIL: Final = 120
"""How many of the latest rows are always told; a view asks for others."""
MOST_ASKED: Final = 400
_OUTPUT_CHARS: Final = 160


class StepRows:
    """The rows of one line of steps of a cast; each is made once and kept while its record stays the same.

    Args:
        cast: whose.
        line: None for the present line, else which abandoned branch.
    """

    def __init__(self, cast: Cast, line: int | None = None) -> None:
        self.cast, self.line = cast, line
        self.names = names_of(cast.graph)
        self._made: dict[int, tuple[StepRecord, bool, Row]] = {}

    @property
    def steps(self) -> Sequence[StepRecord]:
        """The records."""
        return self.cast.steps if self.line is None else self.cast.now.line(self.line)

    def between(self, first: int, last: int) -> list[Row]:
        """Return the rows of the steps numbered ``first`` to ``last``, as far as there are any."""
        steps, edited = self.steps, self._edited()
        first, last = max(1, first), min(len(steps), last, first + MOST_ASKED - 1)
        return [self._row(steps[number - 1], number in edited) for number in range(first, last + 1)]

    def find(self, text: str) -> list[int]:
        """Return the numbers of the steps whose row or output holds ``text``, case aside."""
        wanted = " ".join(text.split()).casefold()
        return [step.number for step in self.steps if wanted in self._sought(step)]

    def _sought(self, step: StepRecord) -> str:
        words = (
            step.socket,
            self.names.get(step.socket, ""),
            f"{step.item_key or ''} {step.item_label or ''}",
            step.output or "",
            way_words(step),
            self.names.get(way_words(step), ""),
        )
        return "\n".join(words).casefold()

    def _edited(self) -> frozenset[int]:
        return frozenset(edit.step for edit in self.cast.now.edits) if self.line is None else frozenset()

    def _row(self, step: StepRecord, edited: bool) -> Row:
        kept = self._made.get(step.number)
        if kept is None or kept[0] is not step or kept[1] is not edited:
            kept = self._made[step.number] = (step, edited, self._new(step, edited=edited))
        return kept[2]

    def _new(self, step: StepRecord, *, edited: bool) -> Row:
        way = way_words(step)
        spent = used(step)
        verdict = step.reading.satisfied if step.reading is not None else None
        return [
            step.number,
            step.socket,
            self.names.get(step.socket, step.socket),
            [step.item_key, part(step.item_label or "", 60)] if step.item_key else None,
            _output_words(step),
            {True: "yes", False: "no"}.get(verdict) if verdict is not None else "",
            self.names.get(way, "the end" if way == END else plain(way)),
            spent.tokens,
            spent.cost,
            step.started,
            step.ended,
            _marks(step, edited=edited),
        ]


def _output_words(step: StepRecord) -> str:
    """What a step said: its words where it decided, else its output."""
    reading = step.reading
    said = reading.value if reading is not None and isinstance(reading.value, dict) else {}
    if reading is not None and reading.satisfied is not None and (reading.context or len(said) == 1):
        return shorten(plain(reading.context or ""), _OUTPUT_CHARS)
    if reading is not None and isinstance(reading.work_items, list):
        titles = [str(one.get("title", "")) for one in reading.work_items if isinstance(one, dict)]
        return shorten(
            f"{counted(len(reading.work_items), 'item')}: {', '.join(map(plain, titles))}", _OUTPUT_CHARS
        )
    return shorten(plain(step.output), _OUTPUT_CHARS) if step.output is not None else ""


def _marks(step: StepRecord, *, edited: bool) -> list[str]:
    marks = []
    drafts = sum(turn.mode == "draft" for turn in step.turns)
    repairs = sum(turn.mode == "repair" for turn in step.turns)
    for count, word in ((drafts, "draft"), (repairs, "repair")):
        if count:
            marks.append(f"{count} {word}{'s' * (count > 1)}")
    if step.tries > 1:
        marks.append(f"tried {step.tries} times")
    if step.pinned:
        marks.append("pinned")
    if any(turn.mode == "correction" for turn in step.turns):
        marks.append("corrected")
    if step.events:
        gravest = max((event.severity for event in step.events), key=SEVERITIES.index)
        grave = f" {gravest}" if SEVERITIES.index(gravest) > SEVERITIES.index("info") else ""
        marks.append(f"{len(step.events)} event{'s' * (len(step.events) > 1)}{grave}")
    if edited:
        marks.append("edited")
    return marks


def timeline_state(rows: StepRows, at: int | None, *, alive: bool, busy: bool) -> dict[str, Any]:
    """Return what the timeline shows: the latest rows, how many there are, and which one is looked at.

    Args:
        rows: of the line that is shown.
        at: the step that is looked at, None for the present.
        alive: whether the cast can be gone on with here.
        busy: whether a step runs.
    """
    cast, steps = rows.cast, rows.steps
    total = len(steps)
    events = [one for step in steps[-TAIL * 4 :] for one in step.events]
    return {
        "line": rows.line,
        "lines": [
            [None, "the present line"],
            *(
                [place, f"branch {place + 1}: left after step {left[0].number - 1}"]
                for place, left in enumerate(cast.now.abandoned)
                if left
            ),
        ],
        "total": total,
        "tail": rows.between(total - TAIL + 1, total),
        "begun": steps[0].started if total else None,
        "at": at,
        "can": alive and not busy,
        "events": [
            [
                one.sequence,
                one.step,
                rows.names.get(one.socket, one.socket),
                one.severity,
                shorten(one.type, 80),
                shorten(one.message, 300),
            ]
            for one in events[-100:]
        ],
        "id": f"{cast.id} {rows.line} {len(cast.now.abandoned)}",
    }


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
