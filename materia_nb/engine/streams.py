"""Process the items of a parallel generator in lanes: distribute the items, run the lanes and join them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from materia_nb.engine import events as ev
from materia_nb.engine.events import Event, Events, ImpossibleEvent
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Lane, Session, Streams, lanes_at_work
from materia_nb.engine.state import NOTHING, CastState, Failure, LaneScope, Usage
from materia_nb.errors import MateriaError
from materia_nb.handoff.base import BASE
from materia_nb.handoff.checks import SCHEDULE, RefusedAnswer
from materia_nb.handoff.runtime_rules import Stream, schedule_issues, streams_of
from materia_nb.jsonvalue import JSON, MISSING, FrozenDict, frozen
from materia_nb.loadout.graph import Budget, Region
from materia_nb.loadout.vocabulary import RESULTS, WORK_ITEMS

_SAFE_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")


def next_parallel_region(rules: Rules, session: Session) -> Region | None:
    """Return the parallel loop whose items must be distributed next, or None if the cast does not enter such a loop."""
    state = session.state
    region = rules.graph.regions.get(state.last_socket or "")
    if region is None or state.status != "ready" or state.next != region.first or state.lane is not None:
        return None
    return None if lanes_at_work(session) else region


def schedule_of(state: CastState, region: Region) -> tuple[Stream, ...]:
    """Return the generator's schedule, which assigns the current items to streams.

    Raises:
        ~materia_nb.handoff.checks.RefusedAnswer: the schedule does not match the items that a person changed.
    """
    output = state.last_json if isinstance(state.last_json, Mapping) else {}
    values = {**output, WORK_ITEMS: state.data.get(WORK_ITEMS)}
    if issues := tuple(schedule_issues(values)):
        raise RefusedAnswer(
            f"The schedule of {region.generator} does not match the work items: undo the edit, or use `edit output` to "
            "correct the output.",
            issues,
            "stale_schedule",
        )
    return streams_of(values[SCHEDULE])


def start_lanes(rules: Rules, session: Session, region: Region, schedule: tuple[Stream, ...], limit: int) -> Session:
    """Return the session with a new lane for each stream of the schedule (P3); the lanes have not started yet."""
    state, loop_number = session.state, session.loop_count + 1
    iterator = rules.graph.loops[region.loop].iterator
    assert iterator is not None  # noqa: S101 - the loop consumes items
    lanes: dict[str, Lane] = {}
    for stream, folder in zip(schedule, lane_folders(region.loop, loop_number, schedule), strict=True):
        lane_scope = LaneScope(stream.name, stream.indexes, iterator.cursor, frozenset(region.sockets))
        start = state._replace(
            lane=lane_scope,
            cursors=FrozenDict({**state.cursors, iterator.cursor: stream.indexes[0]}),
            scope=BASE,
            usage=Usage(),
            budget=Budget(),  # the cast's budget counts all lanes together (P6)
            warned=False,
            uncounted_quantities=(),
        )
        lane_session = Session(
            start,
            start,
            allowed=session.allowed,
            turns=session.turns,
            pins=session.pins,
            snapshot_method=session.snapshot_method,
            prefix=folder,
        )
        lanes[stream.name] = Lane(stream.name, stream.indexes, lane_session)
    streams = Streams(region, state.steps, state.usage, limit, FrozenDict(lanes))
    return session._replace(streams=(*session.streams, streams), loop_count=loop_number)


def lane_folders(loop: str, loop_number: int, schedule: tuple[Stream, ...]) -> list[str]:
    """Return the folder of each lane in the run directory; unsafe names are replaced by numbered names (P9)."""
    suffix = f".{loop_number}" if loop_number > 1 else ""
    used_names: list[str] = []
    for number, stream in enumerate(schedule, start=1):
        safe_name = stream.name if _SAFE_NAME.fullmatch(stream.name) else f"stream-{number}"
        while safe_name.casefold() in map(str.casefold, used_names):  # some file systems ignore case
            safe_name = f"{safe_name}-{number}"
        used_names.append(safe_name)
    return [f"parallel/{loop}{suffix}/lanes/{name}/" for name in used_names]


def lane_named(session: Session, name: str) -> Lane:
    """Return a lane that has not been joined, or raise MateriaError (``unknown_lane``) if there is no such lane."""
    streams = lanes_at_work(session)
    lanes = NOTHING if streams is None else streams.lanes
    if name not in lanes:
        names = ", ".join(map(repr, lanes))
        hint = f"choose a running lane: {names}" if lanes else "leave out the lane, because no lane is running"
        raise MateriaError(f"The lane {name!r} is not running.", hint=hint, kind="unknown_lane")
    return lanes[name]


def with_lane(session: Session, lane: Lane) -> Session:
    """Return the session with one lane replaced; the usage of all lanes is added to the usage of the cast (P6)."""
    streams = session.streams[-1]
    before = streams.lanes[lane.name].session.state.usage
    streams = streams._replace(lanes=FrozenDict({**streams.lanes, lane.name: lane}))
    session = session._replace(streams=(*session.streams[:-1], streams))
    if lane.session.state.usage is not before:
        usages = (lane_.session.state.usage for lane_ in streams.lanes.values())  # in a fixed order
        session = session._replace(state=session.state._replace(usage=streams.before.plus(*usages)))
    return session


def _apply_join(_: Rules, session: Session, event: ev.StreamsJoined) -> Session:
    """Return the session after the join, in which the results of the lanes are added to the cast's state (P6)."""
    streams = _finished_lanes(session, event)
    results: list[JSON] = [_lane_result(lane) for lane in streams.lanes.values()]
    state, turns = session.state, dict(session.turns)
    for lane in streams.lanes.values():
        for key, count in lane.session.turns.items():
            turns[key] = turns.get(key, 0) + count - session.turns.get(key, 0)
    done_items = {
        (lane.session.start.lane.cursor, index, ())
        for lane in streams.lanes.values()
        if lane.session.start.lane is not None
        for index in lane.indexes
    }
    data = FrozenDict({**state.data, RESULTS: frozen(results)})
    state = state._replace(data=data, next=streams.region.exit, joined_items=state.joined_items | done_items)
    streams = streams._replace(status="joined")
    return session._replace(state=state, turns=FrozenDict(turns), streams=(*session.streams[:-1], streams))


def _lane_result(lane: Lane) -> dict[str, JSON]:
    """Return the result of a lane: the last output for each item, the context that the lane added, and its exports."""
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
        "context": _added_context(lane.session),
        "exports": dict(lane.session.state.scope.exports),
    }


def _added_context(session: Session) -> str:
    before, after = (state.data.get("context", MISSING) for state in (session.start, session.state))
    if not isinstance(after, str):
        return ""
    return after.removeprefix(before).lstrip("\n") if isinstance(before, str) else after


def open_lanes(streams: Streams) -> Iterator[Lane]:
    """Yield the lanes that are waiting or running."""
    return (lane for lane in streams.lanes.values() if not lane.is_over)


# -- events that end lanes -----------------------------------------------------------


def events_of_join(streams: Streams, ts: int) -> Events:
    """Return the event that joins the lanes or, if a lane was not accepted, the events with which the cast fails (P6).

    Raises:
        MateriaError: a lane is still waiting or running (``lanes``).
    """
    if any(open_lanes(streams)):
        raise MateriaError("The lanes are running.", hint="continue the lanes with `run`", kind="lanes")
    region, lanes = streams.region, streams.lanes.values()
    problems = [f"{lane.name}: {lane.error or lane.status}" for lane in lanes if lane.status != "accepted"]
    if not problems:
        return (ev.StreamsJoined(loop=region.loop, next=region.exit, ts=ts),)
    error = f"{len(problems)} of {len(lanes)} lanes did not finish. {'; '.join(problems)}"
    return events_of_failure(streams, "stream_failed", error, ts)


def events_of_failure(streams: Streams, kind: str, error: str, ts: int) -> Events:
    """Return the events that record the failure of a parallel loop and of the cast."""
    failed_event = ev.StreamsFailed(loop=streams.region.loop, kind=kind, error=error, ts=ts)
    return (failed_event, ev.CastEnd(ok=False, error=error, kind=kind, socket=streams.region.generator, ts=ts))


def event_in_lane(event: ev.Event, name: str) -> ev.Event:
    """Return a copy of an event that belongs to the lane ``name``.

    The end of a cast becomes the end of the lane. An event that allows tools is returned unchanged, because the
    permission applies to all lanes.
    """
    if isinstance(event, ev.ToolsAllowed):
        return event
    if not isinstance(event, ev.CastEnd):
        return event.replace(lane=name)
    shared_fields = {name: getattr(event, name) for name in ev.EndEvent.defaults}
    return ev.LaneEnded(**{**shared_fields, "lane": name, "status": "accepted" if event.ok else "failed"})


def events_of_interruption(streams: Streams, why: str, ts: int) -> Events:
    """Return the events that interrupt all waiting and running lanes."""
    return tuple(ev.LaneEnded(lane=lane.name, status="interrupted", error=why, ts=ts) for lane in open_lanes(streams))


# -- applying lane events to a session -------------------------------------------------


def lane_of_event(session: Session, event: Event) -> Lane:
    """Return the lane that an event belongs to, or raise ImpossibleEvent if the session has no such lane."""
    try:
        return lane_named(session, event.lane)
    except MateriaError as error:
        raise ImpossibleEvent(event, f"the lane {event.lane!r} does not exist") from error


def _apply_start(rules: Rules, session: Session, event: ev.StreamsStarted) -> Session:
    region = next_parallel_region(rules, session)
    if region is None or region.loop != event.loop:
        raise ImpossibleEvent(event, f"the cast does not enter the loop {event.loop} next")
    schedule: JSON = {"streams": list(event.streams)}
    return start_lanes(rules, session, region, streams_of(schedule), event.limit)


def _apply_lane_start(_: Rules, session: Session, event: ev.LaneStarted) -> Session:
    lane = lane_of_event(session, event)
    return with_lane(session, lane._replace(status="running", error="", started=event.ts, ended=None))


def _apply_failure(_: Rules, session: Session, event: ev.StreamsFailed) -> Session:
    streams, state = _finished_lanes(session, event), session.state
    first = "" if event.kind == "stream_failed" else "raise the budget (`edit budget N`), then "
    failure = Failure(event.kind, event.error, streams.region.generator, first + RETRY_LANES)
    return session._replace(
        state=state._replace(status="failed", failure=failure),
        streams=(*session.streams[:-1], streams._replace(status="failed")),
    )


RETRY_LANES: Final = "use `retry` to continue the lanes that were not accepted; accepted lanes do not run again"
"""Hint for a cast that stopped in its lanes."""


def _finished_lanes(session: Session, event: Event) -> Streams:
    streams = lanes_at_work(session)
    if streams is None or any(open_lanes(streams)):
        raise ImpossibleEvent(event, "its lanes have not finished")
    return streams


def with_resumed_lanes(session: Session) -> Session:
    """Return the session with its failed and interrupted lanes ready to be continued by later events (P7)."""
    streams = session.streams[-1]
    lanes = {
        name: lane._replace(status="waiting") if lane.status == "interrupted" else lane
        for name, lane in streams.lanes.items()
    }
    streams = streams._replace(lanes=FrozenDict(lanes), status="running")
    state = session.state._replace(status="ready", failure=None)
    return session._replace(state=state, streams=(*session.streams[:-1], streams))


EVOLVE_LANES: Final[Mapping[type[ev.Event], Callable[[Rules, Session, Any], Session]]] = {
    ev.StreamsStarted: _apply_start,
    ev.LaneStarted: _apply_lane_start,
    ev.StreamsJoined: _apply_join,
    ev.StreamsFailed: _apply_failure,
}
"""The functions that apply lane events to a session, by event class, for :func:`materia_nb.engine.evolve.evolve`."""
