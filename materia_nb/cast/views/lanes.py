"""The lanes of a cast: a row each with where it is and how far it has come, and their steps on an axis of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from materia_nb.cast.snapshot import LaneNow, Snapshot
from materia_nb.display.blocks import Action, Badge, Block, Line, Picture, Table
from materia_nb.display.escape import esc, part
from materia_nb.display.geometry import fit
from materia_nb.display.shapes import FONT
from materia_nb.errors import counted
from materia_nb.insight.sides import seconds_words

if TYPE_CHECKING:
    from materia_nb.engine.session import StepRecord

_WIDE: Final = 760.0
_NAME: Final = 96.0
_ROW: Final = 26.0
_MOST_BARS: Final = 400
_INK: Final = "#767676"  # legible on a light and on a dark page: the picture knows of neither
_NOW: Final = "#b57f00"
_BAD: Final = "#d5404d"


class _Bar(NamedTuple):
    """A step, or a wait, on the axis: from when to when in milliseconds since the epoch."""

    words: str
    begins: int
    ends: int
    colour: str = _INK
    waits: bool = False


def lanes_blocks(cast: Snapshot) -> list[Block]:
    """Say how each lane stands that the cast is in the middle of, or had last; nothing where there were none."""
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
            f"{part(name, 60)} waits for you.",
            "Answer",
            "show what is asked in this lane",
            "lane",
            {"lane": name},
        )
        for name, lane in lanes.items()
        if lane.wants_a_person
    ]
    wrong = [
        Line(f"{part(name, 60)}: {part(lane.error, 300)}", "bad")
        for name, lane in lanes.items()
        if lane.error
    ]
    return [
        Line(f"{counted(len(lanes), 'lane')}, {streams.limit} at once; {_barrier_words(cast)}"),
        Picture(_axis(cast, until)),
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
    return {
        "joined": "all have come together",
        "failed": "the cast failed at the barrier",
    }.get(status, f"{over} at the barrier")


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


def _bars(cast: Snapshot, steps: Sequence[StepRecord], until: int) -> Iterator[_Bar]:
    for step in steps[-_MOST_BARS:]:
        item = step.at.item
        words = cast.names.get(step.socket, step.socket) + (
            f" {item.position + 1}" if item is not None else ""
        )
        colour = _NOW if step.ended is None else _INK
        yield _Bar(words, step.started, step.ended if step.ended is not None else until, colour)


def _lane_bars(lane: LaneNow, forked: int, until: int) -> list[_Bar]:
    begun, bars = lane.lane.started, list(_bars(lane.now, lane.now.steps, until))
    first = bars[0].begins if bars else begun if begun is not None else until
    if first > forked:
        bars.insert(0, _Bar("waits for a place", forked, first, waits=True))
    if lane.status == "failed" and bars:
        bars[-1] = bars[-1]._replace(colour=_BAD)
    return bars


def _axis(cast: Snapshot, until: int) -> str:
    """Draw a row for the cast and one for each lane, all on one axis of time."""
    generator = cast.steps.at(cast.session.streams[-1].step)
    forked = generator.ended or generator.started
    own = [step for step in cast.steps if step.number >= generator.number]
    rows = [("cast", list(_bars(cast, own, until)))]
    rows += [(part(name, 40), _lane_bars(lane, forked, until)) for name, lane in cast.lanes.items()]
    start = generator.started
    scale = (_WIDE - _NAME - 8) / max(1, until - start)
    high = _ROW * len(rows) + 22
    words = f"{len(rows) - 1} lanes over {seconds_words(max(0, until - start))}"
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{esc(words)}" width="{_WIDE:.0f}" '
        f'height="{high:.0f}" viewBox="0 0 {_WIDE:.0f} {high:.0f}" font-family="{FONT}" font-size="11">'
    )
    parts = [root, f"<title>{esc(words)}</title>"]
    for share in (0.0, 0.5, 1.0):
        x = _NAME + share * (_WIDE - _NAME - 8)
        anchor = ("start", "middle", "end")[round(share * 2)]
        label = seconds_words(round(share * (until - start)))
        parts.append(
            f'<text x="{x:.0f}" y="12" fill="{_INK}" text-anchor="{anchor}">{label}</text>'
            f'<path d="M{x:.1f} 18V{high:.0f}" stroke="{_INK}" stroke-opacity=".25"/>'
        )
    for number, (name, bars) in enumerate(rows):
        y = 22 + number * _ROW
        parts.append(f'<text x="2" y="{y + 14:.0f}" fill="{_INK}">{esc(fit(name, 11, _NAME - 8))}</text>')
        parts += [_drawn(bar, _NAME + (bar.begins - start) * scale, y, scale) for bar in bars]
    return "".join([*parts, "</svg>"])


def _drawn(bar: _Bar, x: float, y: float, scale: float) -> str:
    wide = max(2.0, (bar.ends - bar.begins) * scale - 1)
    dash, fill = (' stroke-dasharray="4 3"', 0.0) if bar.waits else ("", 0.18)
    label = fit(part(bar.words, 60), 11, wide - 8) if wide > 24 else ""
    words = esc(f"{part(bar.words, 60)}: {seconds_words(max(0, bar.ends - bar.begins))}")
    return (
        f'<g><title>{words}</title><rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="18" rx="4" fill="{bar.colour}" '
        f'fill-opacity="{fill}" stroke="{bar.colour}"{dash}/>'
        f'<text x="{x + 4:.1f}" y="{y + 13:.1f}" fill="{bar.colour}">{esc(label)}</text></g>'
    )
