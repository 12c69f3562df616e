"""Lanes: what hands the items of a parallel generator out to them, what one begins with, what the barrier makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Lane, Session, Streams, lanes_at_work
from materia_nb.engine.state import NOTHING, CastState, OfLane, Usage
from materia_nb.errors import MateriaError
from materia_nb.handoff.base import BASE
from materia_nb.handoff.checks import SCHEDULE, RefusedAnswer
from materia_nb.handoff.runtime_rules import Stream, schedule_issues, streams_of
from materia_nb.jsonvalue import JSON, MISSING, FrozenDict, frozen
from materia_nb.loadout.graph import Budget, Region
from materia_nb.loadout.vocabulary import RESULTS, WORK_ITEMS

_PLAIN = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")


def region_ahead(rules: Rules, session: Session) -> Region | None:
    """Return the region whose generator has just answered, so that its items are handed out next; None for none."""
    state = session.state
    region = rules.graph.regions.get(state.last_socket or "")
    if region is None or state.status != "ready" or state.next != region.first or state.lane is not None:
        return None
    return None if lanes_at_work(session) else region


def schedule_of(state: CastState, region: Region) -> tuple[Stream, ...]:
    """Return the schedule that the generator gave, for the items as they are now.

    Raises:
        ~materia_nb.handoff.checks.RefusedAnswer: a person has changed the items since, and it does not fit them.
    """
    output = state.last_json if isinstance(state.last_json, Mapping) else {}
    values = {**output, WORK_ITEMS: state.data.get(WORK_ITEMS)}
    if issues := tuple(schedule_issues(values)):
        raise RefusedAnswer(
            f"The schedule of {region.generator} does not fit the work items: undo the edit, or correct the output "
            "(edit output).",
            issues,
            "stale_schedule",
        )
    return streams_of(values[SCHEDULE])


def begun(
    rules: Rules, session: Session, region: Region, schedule: tuple[Stream, ...], limit: int
) -> Session:
    """Return the session with a lane for each stream, none of which has started (P3)."""
    state, forks = session.state, session.forks + 1
    iterator = rules.graph.loops[region.loop].iterator
    assert iterator is not None  # noqa: S101 - the loop consumes items
    lanes: dict[str, Lane] = {}
    for stream, folder in zip(schedule, lane_folders(region.loop, forks, schedule), strict=True):
        of_lane = OfLane(stream.name, stream.indexes, iterator.cursor, frozenset(region.sockets))
        start = state._replace(
            lane=of_lane,
            cursors=FrozenDict({**state.cursors, iterator.cursor: stream.indexes[0]}),
            scope=BASE,
            usage=Usage(),
            budget=Budget(),  # that of the cast counts all lanes together (P6)
            warned=False,
            blind=(),
        )
        own = Session(
            start,
            start,
            allowed=session.allowed,
            turns=session.turns,
            pins=session.pins,
            keeps=session.keeps,
            prefix=folder,
        )
        lanes[stream.name] = Lane(stream.name, stream.indexes, own)
    streams = Streams(region, state.steps, state.usage, limit, FrozenDict(lanes))
    return session._replace(streams=(*session.streams, streams), forks=forks)


def lane_folders(loop: str, forks: int, schedule: tuple[Stream, ...]) -> list[str]:
    """Return where the files of each lane stand; names that no file should have are numbered (P9)."""
    suffix = f".{forks}" if forks > 1 else ""
    used_names: list[str] = []
    for number, stream in enumerate(schedule, start=1):
        plain = stream.name if _PLAIN.fullmatch(stream.name) else f"stream-{number}"
        while plain.casefold() in map(str.casefold, used_names):  # a disk may not tell A from a
            plain = f"{plain}-{number}"
        used_names.append(plain)
    return [f"parallel/{loop}{suffix}/lanes/{name}/" for name in used_names]


def lane_named(session: Session, name: str) -> Lane:
    """Return a lane that has not come behind the barrier, or raise MateriaError (``unknown_lane``)."""
    streams = lanes_at_work(session)
    lanes = NOTHING if streams is None else streams.lanes
    if name not in lanes:
        known = f"lanes at work: {', '.join(map(repr, lanes))}" if lanes else "there are none: leave it out"
        raise MateriaError(f"No lane {name!r} is at work.", hint=known, kind="unknown_lane")
    return lanes[name]


def with_lane(session: Session, lane: Lane) -> Session:
    """Return the session with another record of a lane; what all lanes have used counts in the cast (P6)."""
    streams = session.streams[-1]
    before = streams.lanes[lane.name].session.state.usage
    streams = streams._replace(lanes=FrozenDict({**streams.lanes, lane.name: lane}))
    session = session._replace(streams=(*session.streams[:-1], streams))
    if lane.session.state.usage is not before:
        used = streams.before
        for lane_ in streams.lanes.values():  # in their order, whichever answered first
            used = used.plus(lane_.session.state.usage)
        session = session._replace(state=session.state._replace(usage=used))
    return session


def joined(session: Session, streams: Streams) -> Session:
    """Return the session behind the barrier: the state of before, and what the lanes handed over (P6)."""
    results: list[JSON] = [_result_of(lane) for lane in streams.lanes.values()]
    state, turns = session.state, dict(session.turns)
    for lane in streams.lanes.values():
        for key, count in lane.session.turns.items():
            turns[key] = turns.get(key, 0) + count - session.turns.get(key, 0)
    done = {
        (lane.session.start.lane.cursor, index, ())
        for lane in streams.lanes.values()
        if lane.session.start.lane is not None
        for index in lane.indexes
    }
    state = state._replace(
        data=FrozenDict({**state.data, RESULTS: frozen(results)}),
        next=streams.region.exit,
        joined=state.joined | done,
    )
    streams = streams._replace(status="joined")
    return session._replace(state=state, turns=FrozenDict(turns), streams=(*session.streams[:-1], streams))


def _result_of(lane: Lane) -> dict[str, JSON]:
    """Return what a lane hands over: the last output of each of its items, what it added to the context, its exports."""
    last: dict[int, JSON] = {}
    cursor = lane.session.start.lane.cursor if lane.session.start.lane is not None else ""
    for step in lane.session.steps:
        item, reading = step.at.item, step.reading
        if item is not None and item.cursor == cursor and reading is not None and reading.accepted:
            last[item.position] = reading.value
    return {
        "name": lane.name,
        "workItemIndexes": list(lane.indexes),
        "outputs": [last.get(index) for index in lane.indexes],
        "context": _added(lane.session),
        "exports": dict(lane.session.state.scope.exports),
    }


def _added(session: Session) -> str:
    before, after = (state.data.get("context", MISSING) for state in (session.start, session.state))
    if not isinstance(after, str):
        return ""
    return after.removeprefix(before).lstrip("\n") if isinstance(before, str) else after


def unfinished(streams: Streams) -> Iterator[Lane]:
    """Yield the lanes that are not over."""
    return (lane for lane in streams.lanes.values() if not lane.is_over)


def failure_of(streams: Streams) -> str:
    """Say which lanes were not accepted, and why (P6)."""
    wrong = [
        f"{lane.name}: {lane.error or lane.status}"
        for lane in streams.lanes.values()
        if lane.status != "accepted"
    ]
    return f"Of {len(streams.lanes)} lanes {len(wrong)} did not come to their end. " + "; ".join(wrong)
