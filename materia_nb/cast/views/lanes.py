"""The lanes of a cast: a row each with where it is and how far it has come, and their steps on an axis of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from materia_nb.cast.snapshot import LaneNow, Snapshot
from materia_nb.display.blocks import Action, Badge, Block, Line, Table
from materia_nb.display.escape import Html, esc, part
from materia_nb.display.geometry import fit
from materia_nb.display.svg import CARD_FONT
from materia_nb.errors import counted
from materia_nb.insight.sides import seconds_words, time_of, worked, worked_words
from materia_nb.jsonvalue import JSON

if TYPE_CHECKING:
    from materia_nb.engine.session import StepRecord

_WIDE: Final = 760.0
_NAME: Final = 96.0
_ROW: Final = 26.0
_MOST_BARS: Final = 200
_IDLE_MS: Final = 1_000
_AT_ONCE_MS: Final = 100
"""A lane that begins sooner has not waited for a place."""
_FOLD: Final = 0.03
_MOST_FOLDED: Final = 0.3
_TAIL: Final = 0.12
"""How wide what still waits is drawn: nobody knows for how long it will."""

BarKind: TypeAlias = Literal["work", "now", "wait", "bad", "unsure"]
"""Of a bar: it was worked, is worked, it waits, it failed, or nobody knows how much of it was work (R56)."""


class _Bar(NamedTuple):
    """A step, or a wait, by the clock: from when to when in milliseconds since the epoch; without an end it goes on.

    ``step`` is the number of the step, 0 where it is none.
    """

    words: str
    begins: int
    ends: int | None
    kind: BarKind
    step: int = 0


_Laid: TypeAlias = tuple[float, float, BarKind, str, str, int]


@dataclass(frozen=True, slots=True)
class Axis(Block):
    """A row for the cast and one for each lane on one axis of time, in which stretches without any work are folded.

    Attributes:
        words: what it shows, in a few words.
        rows: the name of each, and its bars: left end and width as shares of the whole, kind, label, what it says when pointed at,
            and the number of its step.
        ticks: places on the axis, as shares of the whole, and what the clock said there since the items were planned.
        lanes: the lane of each row, "" for the cast itself.
        at: the lane and the number of the step that is looked at, if one is.
    """

    words: str
    rows: Sequence[tuple[str, Sequence[_Laid]]]
    ticks: Sequence[tuple[float, str]]
    lanes: Sequence[str]
    at: tuple[str, int] | None = None

    def as_text(self, width: int = 0) -> str:  # noqa: ARG002
        """Say nothing: the table beside it has the same in words."""
        return ""

    def as_html(self) -> Html:
        """Draw it in the colours of the page around it."""
        wide, high = _WIDE - _NAME - 8, _ROW * len(self.rows) + 22
        words = esc(self.words)
        parts = [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{words}" width="{_WIDE:.0f}" '
                f'height="{high:.0f}" viewBox="0 0 {_WIDE:.0f} {high:.0f}" font-family="{CARD_FONT}" font-size="11" '
                f'fill="currentColor" stroke="none"><title>{words}</title>'
            )
        ]
        for place, label in self.ticks:
            x, anchor = _NAME + place * wide, "end" if place > 1 - _TAIL / 2 else "start"
            parts.append(
                f'<text x="{x:.0f}" y="12" text-anchor="{anchor}">{esc(label)}</text>'
                f'<path d="M{x:.1f} 18V{high:.0f}" stroke="currentColor" stroke-opacity=".25"/>'
            )
        for number, (name, bars) in enumerate(self.rows):
            y = 22 + number * _ROW
            parts.append(f'<text x="2" y="{y + 14:.0f}">{esc(fit(name, 11, _NAME - 8))}</text>')
            parts += [_drawn(bar, wide, y) for bar in bars]
        return Html("".join([*parts, "</svg>"]))

    def as_json(self) -> dict[str, JSON]:
        """Return it for a panel."""
        return {
            "is": "axis",
            "text": self.words,
            "rows": [[name, [list(bar) for bar in bars]] for name, bars in self.rows],
            "ticks": [list(tick) for tick in self.ticks],
            "lanes": list(self.lanes),
            "at": list(self.at or ()),
        }


def lanes_blocks(cast: Snapshot, now: int | None = None, past: Snapshot | None = None) -> list[Block]:
    """Say how each lane stands that the cast is in the middle of, or had last; nothing where there were none.

    ``now`` is the time in milliseconds while the cast runs, up to which the axis goes, ``past`` the moment that is looked at.
    """
    lanes = cast.lanes
    if not lanes:
        return [Line("The cast has handed no items to lanes.", "quiet")]
    streams = cast.session.streams[-1]
    until = _latest(cast)
    rows = [
        (
            part(name, 60),
            Badge(lane.status),
            where_words(lane) + (", waits for you" if lane.wants_a_person else ""),
            _item_words(lane),
            f"{lane.done}/{len(lane.indexes)}",
            _took(lane, until),
        )
        for name, lane in lanes.items()
    ]
    ways = [
        Action(
            f"{part(name, 60)} waits for you." if lane.wants_a_person else f"{part(name, 60)} failed.",
            "Answer" if lane.wants_a_person else "Look",
            "show this lane in the inspector",
            "lane",
            {"lane": name},
        )
        for name, lane in lanes.items()
        if lane.wants_a_person or lane.status == "failed"
    ]
    told = ((name, lane.error) for name, lane in lanes.items() if lane.error)
    wrong = [Line(f"{part(name, 60)}: {part(error, 300)}", "bad") for name, error in told]
    return [
        Line(f"{counted(len(lanes), 'lane')}, {streams.limit} at once; {_barrier_words(cast)}"),
        axis_of(cast, now, past),
        Table(("lane", "status", "at", "item", "done", "took"), rows),
        *ways,
        *wrong,
    ]


def where_words(lane: LaneNow) -> str:
    """Say at which socket a lane is; empty where it has not begun or is over."""
    now = lane.now
    if lane.status != "running":
        return ""
    place = now.next_socket or ""
    return now.names.get(place, "the barrier")


def _barrier_words(cast: Snapshot) -> str:
    status = cast.session.streams[-1].status
    over = sum(lane.status == "accepted" for lane in cast.lanes.values())
    failure = cast.failure
    if status != "joined" and failure is not None and failure.kind != "stream_failed":
        return f"stopped with {over} at the barrier"
    words = {"joined": "all have come together", "failed": "the cast failed at the barrier"}
    return words.get(status, f"{over} at the barrier")


def _item_words(lane: LaneNow) -> str:
    steps = lane.now.steps
    item = steps[-1].at.item if steps and lane.status == "running" else None
    return part(item.label, 60) if item is not None else ""


def _took(lane: LaneNow, until: int) -> str:
    begun = lane.lane.started
    return "" if begun is None else seconds_words(max(0, (lane.lane.ended or until) - begun))


def _latest(cast: Snapshot) -> int:
    """Return the last moment that is known of the cast or a lane."""
    times = [one.lane.ended for one in cast.lanes.values() if one.lane.ended is not None]
    for steps in (cast.steps, *(one.now.steps for one in cast.lanes.values())):
        times += [steps[-1].ended or steps[-1].started] if steps else []
    return max(times, default=0)


# -- the axis ---------------------------------------------------------------------------------


def axis_of(cast: Snapshot, now: int | None = None, past: Snapshot | None = None) -> Axis:
    """Lay the steps of a cast that has lanes, and of these, out on one axis of time.

    ``now`` and ``past`` are as in :func:`lanes_blocks`; the moment may be one of a lane.
    """
    generator = cast.steps.at(cast.session.streams[-1].step)
    forked = generator.ended or generator.started
    own = [step for step in cast.steps if step.number >= generator.number]
    rows = [("cast", list(_bars(cast, own)))]
    rows += [(part(name, 40), _lane_bars(lane, forked)) for name, lane in cast.lanes.items()]
    until = max(now or 0, _latest(cast))
    clock = _Clock(rows, generator.started, until, running=now is not None)
    begun = generator.started
    work = worked_words(*worked([*own, *(step for lane in cast.lanes.values() for step in lane.now.steps)]))
    words = f"{counted(len(rows) - 1, 'lane')}: {seconds_words(max(0, until - begun))} by the clock, {work} of work"
    drawn = [(name, [clock.laid(bar) for bar in bars]) for name, bars in rows]
    ticks = [(clock.at(time), seconds_words(time - begun)) for time in clock.ticks()]
    at = None if past is None or past.latest is None else (past.latest.lane, past.latest.number)
    return Axis(words, drawn, ticks, ["", *cast.lanes], at)


def _bars(cast: Snapshot, steps: Sequence[StepRecord]) -> Iterator[_Bar]:
    """Give the bars of steps: what was worked on each first, then how long it stood still."""
    for step in steps[-_MOST_BARS:]:
        item, time = step.at.item, time_of(step)
        words = cast.names.get(step.socket, step.socket) + (
            f" {item.position + 1}" if item is not None else ""
        )
        if step.ended is None:
            yield _Bar(words, step.started, None, "now", step.number)
        elif time.work is None:
            yield _Bar(f"{words}, at most", step.started, step.ended, "unsure", step.number)
        else:
            worked_until = step.ended - (time.waited or 0)
            if not time.waited or time.work:
                yield _Bar(words, step.started, worked_until, "work", step.number)
            if time.waited:
                yield _Bar(f"{words}, waited", worked_until, step.ended, "wait", step.number)


def _lane_bars(lane: LaneNow, forked: int) -> list[_Bar]:
    begun, bars = lane.lane.started, list(_bars(lane.now, lane.now.steps))
    first = bars[0].begins if bars else begun if begun is not None else lane.lane.ended
    if first is None or first - forked > _AT_ONCE_MS:
        bars.insert(0, _Bar("waits for a place", forked, first, "wait"))
    last = bars[-1] if bars else None
    if last is not None and last.kind == "now" and lane.wants_a_person:
        bars[-1] = last._replace(kind="wait", words=f"{last.words}, waits for you")
    elif last is not None and (lane.status == "failed" or (last.kind == "now" and lane.lane.is_over)):
        bars[-1] = last._replace(kind="bad", ends=last.ends or lane.lane.ended)
    return bars


class _Clock:
    """Where a time stands on an axis, as a share of the whole: stretches in which nothing worked are all equally short."""

    def __init__(
        self, rows: Sequence[tuple[str, Sequence[_Bar]]], begins: int, until: int, *, running: bool
    ) -> None:
        bars = [bar for _, bars in rows for bar in bars]
        self._until = until
        self.tail = _TAIL if not running and any(bar.ends is None for bar in bars) else 0.0
        busy = sorted((bar.begins, bar.ends or until) for bar in bars if bar.kind != "wait")
        self._idle: list[tuple[int, int]] = []
        at = begins
        for start, end in [*busy, (until, until)]:
            if start - at > _IDLE_MS:
                self._idle.append((at, start))
            at = max(at, end)
        self._begins = begins
        fold = min(_FOLD, _MOST_FOLDED / max(1, len(self._idle)))
        self._folds = fold
        length = until - begins - sum(end - start for start, end in self._idle)
        self._scale = (1 - self.tail - fold * len(self._idle)) / max(1, length)

    def at(self, time: int) -> float:
        """Return where a time is."""
        place = float(time - self._begins) * self._scale
        for start, end in self._idle:
            if time > start:
                passed = min(time, end) - start
                place += passed / (end - start) * self._folds - passed * self._scale
        return min(1.0, max(0.0, place))

    def ticks(self) -> list[int]:
        """Return the times that are written at the axis: its ends, and where work went on after a fold."""
        times = [self._begins, *(end for _, end in self._idle[-4:]), self._until]
        middle = (self._begins + self._until) // 2
        return sorted({*times, *([] if self._idle else [middle])})

    def laid(self, bar: _Bar) -> _Laid:
        """Lay a bar out; one that has no end goes on to that of the axis."""
        left = self.at(bar.begins)
        right = self.at(bar.ends) if bar.ends is not None else 1.0
        took = seconds_words(max(0, (bar.ends or self._until) - bar.begins))
        words = part(bar.words, 60)
        return left, max(0.002, right - left), bar.kind, words, f"{words}: {took}", bar.step


_STROKES: Final[dict[BarKind, str]] = {
    "work": 'fill-opacity=".16" stroke="currentColor" stroke-opacity=".55"',
    "now": 'fill="#e0a100" fill-opacity=".25" stroke="#b57f00"',
    "wait": 'fill="none" stroke="currentColor" stroke-opacity=".55" stroke-dasharray="4 3"',
    "bad": 'fill="#d5404d" fill-opacity=".2" stroke="#d5404d"',
    "unsure": 'fill="none" stroke="currentColor" stroke-opacity=".55"',
}


def _drawn(bar: _Laid, wide: float, y: float) -> str:
    left, share, kind, words, title, _ = bar
    x, long = _NAME + left * wide, max(2.0, share * wide - 1)
    strokes = _hatched(x, y, long) if kind == "wait" else ""
    label = fit(words, 11, long - 8) if long > 24 else ""
    return (
        f'<g><title>{esc(title)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{long:.1f}" height="18" rx="4" '
        f'{_STROKES[kind]}/>{strokes}<text x="{x + 4:.1f}" y="{y + 13:.1f}">{esc(label)}</text></g>'
    )


def _hatched(x: float, y: float, wide: float) -> str:
    """Draw the strokes through a bar that stands for waiting; without an id, so that several may stand in one page."""
    strokes = "".join(f"M{x + 6 * n:.1f} {y + 18:.1f}l6 -18" for n in range(int(wide // 6)))
    return f'<path d="{strokes}" stroke="currentColor" stroke-opacity=".3"/>' if strokes else ""
