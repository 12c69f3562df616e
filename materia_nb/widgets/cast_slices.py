"""Data about a cast for the page: the status bar, the rows of the timeline, and comparisons of steps and casts."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from time import time as now_in_seconds
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from materia_nb.cast.formatting import describe_outcome, origin_notes, step_at, summarize_output
from materia_nb.cast.repairs import changed_definition
from materia_nb.cast.views.compare_view import CompareView, StepCompareView
from materia_nb.cast.views.status import describe_steps
from materia_nb.cast.views.step_views import lane_position, time_axis
from materia_nb.display.blocks import Block, Line, Table
from materia_nb.display.escape import part, shorten
from materia_nb.display.sections import call_line
from materia_nb.engine.routing import is_budget_nearly_used_up
from materia_nb.engine.session import all_steps, lanes_at_work
from materia_nb.engine.state import BOUNDS, NOTHING
from materia_nb.errors import MateriaError, counted, plain, with_visible_signs
from materia_nb.handoff.base import EVENT_SEVERITIES
from materia_nb.handoff.runtime_rules import request_of
from materia_nb.insight.compare import previous_visit
from materia_nb.insight.estimate import format_seconds, format_work_time, step_time, step_usage, work_time
from materia_nb.widgets.state_tree import json_digest

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.conversation import MateriaEvent
    from materia_nb.engine.session import Session, StepRecord
    from materia_nb.engine.state import Hold
    from materia_nb.widgets.base import Activity

_BAR_CHARS: Final = 60
"""Maximum length of a command that can be approved in the bar, in characters. The bar must show the whole command."""

_PACE_STEPS: Final = 40  # Number of latest steps from which the remaining time of a run is estimated.


class Pill(NamedTuple):
    """The status label in the bar. It shows whether the cast is running, waits for the user or has ended.

    Attributes:
        tone: working, wants, breakpoint, paused, ready, aborting, done, failed, aborted or gone.
        label: the status in a few words.
        since: the time since which the cast has been in this state, in milliseconds since the epoch; None to show no
            duration.
        detail: the tooltip.
    """

    tone: str
    label: str
    since: int | None = None
    detail: str = ""


def pill(now: Snapshot, activity: Activity) -> Pill:
    """Return the status label for the bar."""
    names = now.names
    if activity.busy:
        return _running_pill(now, activity)
    status, failure, latest = now.status, now.failure, now.latest
    if not now.writable:
        return _read_only_pill(now)
    if status == "complete":
        warnings = now.warnings
        outcome = "done, with warnings" if warnings else "done"
        return Pill("done", outcome, detail="; ".join(map(str, warnings[:3])))
    if failure is not None:
        socket, lane = now.failed_at
        where = f" · {part(lane, 40)}" if lane else ""
        where += f" · {names[socket]}" if socket in names else ""
        return Pill("aborted" if status == "aborted" else "failed", f"{status}{where}", detail=plain(failure.message))
    if (hold := now.held) is not None and now.engine.at is not None:
        question = f"Your turn: {names[now.engine.at.socket]} asks{_purpose_suffix(hold)}"
        return Pill("wants", question, latest and latest.ended)
    paused_pill = _stopped_pill(now, activity)
    failed = sum(lane.status == "failed" for lane in now.lanes.values()) if now.is_state_locked else 0
    failed_text = f" ({counted(failed, 'lane')} failed)" if failed else ""
    return paused_pill._replace(label=f"{paused_pill.label}{failed_text}")


def _read_only_pill(now: Snapshot) -> Pill:
    writer, hint = now.live.writer, now.live.continue_hint
    if writer is None or now.status not in ("ready", "waiting", "held"):
        return Pill("gone", f"{now.status} · read-only", detail=hint)
    socket_text = f" at {now.names[now.next_socket]}" if now.next_socket else ""
    label = f"{now.status}{socket_text} · run by {now.live.writer_name}"
    return Pill("gone", label, now.latest.started if now.latest is not None else None, detail=f"{writer} · {hint}")


def _purpose_suffix(hold: Hold) -> str:
    return f" for {hold.needs}" if hold.needs else ""


def _running_pill(now: Snapshot, activity: Activity) -> Pill:
    running = [lane for lane in now.lanes.values() if lane.status == "running" and not lane.waits_for_person]
    visit = now.engine.at
    socket_id = visit.socket if visit is not None else now.engine.next
    name = now.names.get(socket_id or "", "")
    place_text = f": {name}" if name else ""
    if len(running) == 1:
        place_text = f": {part(running[0].name, 40)} · {lane_position(running[0])}"
    elif running:
        place_text = f": {counted(len(running), 'lane')}"
    item = part(visit.item.label, 40) if visit is not None and visit.item is not None else ""
    since = activity.started or (now.latest.started if now.latest is not None else None)
    if activity.aborting or now.live.stop_requested:
        word = "Aborting" if activity.aborting else "Pausing"
        detail = now.stopping or "The cast stops when the running step ends."
        return Pill("aborting", f"{word}{place_text}", activity.stop_requested_at or since, detail)
    if running:
        return Pill("working", f"{counted(len(running), 'lane')} running", since)
    progress = _items_left_text(now, socket_id or "", since or 0)
    return Pill(
        "working", " · ".join(filter(None, (f"Running{place_text}", progress or item))), since, item if progress else ""
    )


def _items_left_text(now: Snapshot, socket: str, since: int) -> str:
    """Return the progress of the innermost loop around a socket, and an estimate of the remaining time.

    The result is "" while the run has too few steps for an estimate, and if less than two seconds remain.

    Args:
        now: the current snapshot of the cast.
        socket: the id of the socket that is running.
        since: the start time of the run, in milliseconds since the epoch.
    """
    loops = [loop for loop in now.graph.loops.values() if socket in loop.sockets and loop.id in now.loop_progress]
    recent = [step for step in now.steps[-_PACE_STEPS:] if step.started >= since]
    if not loops or len(recent) < 5:
        return ""
    loop = min(loops, key=lambda loop: len(loop.sockets))
    done, total = now.loop_progress[loop.id]
    work = recent[-1].started - recent[0].started - sum(step_time(step).waited or 0 for step in recent[:-1])
    steps_per_item = sum(now.visits.get(member, 0) for member in loop.sockets) / max(1, done)
    seconds = round((total - done) * steps_per_item * work / (len(recent) - 1) / 1000)
    time_left = f"{seconds} s" if seconds < 90 else f"{round(seconds / 60)} min"
    return f"{done} of {total}, about {time_left} left" if done and seconds >= 2 else ""


def _stopped_pill(now: Snapshot, activity: Activity) -> Pill:
    socket_id = now.next_socket or ""
    name = now.names.get(socket_id, "")
    visit = now.waiting_at
    lane = next((lane for lane in now.lanes.values() if lane.waits_for_person), None)
    cast = now if lane is None else lane.now
    active_lane = lane or next((lane for lane in now.lanes.values() if lane.status == "running"), None)
    if active_lane is not None:
        name = f"{part(active_lane.name, 40)} · {lane_position(active_lane)}"
    started = cast.latest.started if cast.latest is not None else None
    if cast.held is not None or cast.approvals.asking:
        purpose = _purpose_suffix(cast.held) if cast.held is not None else " for approval"
        return Pill("wants", f"Your turn: {name} asks{purpose}", started)
    if visit is not None and visit.mode == "draft" and visit.drafts:
        return Pill("wants", f"Your turn: draft of {name}", started)
    if lane is not None or (visit is not None and now.is_answered_by_person(visit.socket)):
        return Pill("wants", f"Your turn: {name}", started)
    if now.breakpoints_hit:
        detail = "; ".join(stop.words(now.graph) for stop in now.breakpoints_hit)
        return Pill("breakpoint", f"Breakpoint: {name}", detail=detail)
    if visit is not None or activity.outcome == "stopped":
        return Pill("paused", f"paused · {name}")
    return Pill("ready", f"ready · {name} is next" if name else "ready")


def bar_state(now: Snapshot, activity: Activity) -> dict[str, Any]:
    """Return the content of the bar."""
    status_pill = pill(now, activity)
    status, is_writable, busy = now.status, now.writable, activity.busy
    is_active, has_begun = status in ("ready", "waiting") and is_writable, bool(now.steps or now.waiting_at or busy)
    # A person must answer, so a step would call no agent.
    lanes = [lane for lane in now.lanes.values() if lane.status in ("waiting", "running")]
    answer_due = now.waiting_at is not None or (lanes and all(lane.waits_for_person for lane in lanes))
    is_users_turn = status_pill.tone == "wants" and bool(answer_due)
    usage, budget = now.engine.usage, now.engine.budget
    names, run_time = now.names, f" · {format_work_time(*work_time(now.all_steps))} run time" if now.steps else ""
    return {
        "tone": status_pill.tone,
        "words": status_pill.label,
        "since": status_pill.since,
        "detail": status_pill.detail,
        "busy": busy,
        "stopped": status in ("failed", "aborted"),
        "can": {
            "run": is_active and not busy and not is_users_turn,
            "pause": busy and not activity.aborting,
            "leave": status_pill.tone == "aborting",
            "abort": (is_active or status == "held") and is_writable and has_begun and not activity.aborting,
        },
        "why": _blocked_reason(now, busy=busy, is_users_turn=is_users_turn),
        "sockets": [*names.items()],
        "breaks": [{"breakpoint": stop.as_json(), "words": stop.words(now.graph)} for stop in now.breakpoints],
        "counts": f"{describe_steps(now)}{run_time}",
        "tokens": usage.tokens,
        "cost": usage.cost,
        "most": budget.max_tokens,
        "mostCost": budget.max_cost_usd,
        "others": " · ".join(
            f"{bound.number_format.format(bound.used(usage) or 0)} of {bound.number_format.format(maximum)} {bound.unit}"
            for bound in BOUNDS[2:]
            if (maximum := bound.maximum(budget)) is not None
        ),
        "unknown": usage.uncounted,
        "warn": is_budget_nearly_used_up(now.engine),
        "asks": _approval_request(now) if is_writable else None,
        "undo": now.can_undo and not busy,
        "allowed": sorted(now.approvals.allowed),
    }


def _blocked_reason(now: Snapshot, *, busy: bool, is_users_turn: bool) -> str:
    if busy:
        return "a step is running"
    if is_users_turn:
        return "it is your turn: answer in the inspector to continue the run"
    if not now.writable:
        return f"this cast is open read-only: {now.live.continue_hint}"
    return f"the cast {now.engine.status_phrase}"


def identity(now: Snapshot, lane: str = "", *, busy: bool = False) -> str:
    """Return a string to identify the offer or question that a cast shows (R69).

    The string consists of a digest of the run directory, a dot, and a digest of the position and the visible content.

    It changes with every step, turn, edit and branch. It does not depend on times, list positions, objects in memory,
    or the call numbers of an agent, which may repeat.

    Args:
        now: the current snapshot of the cast.
        lane: the name of the lane in the inspector, or "" for the cast itself.
        busy: True while a step is running.
    """
    changed = changed_definition(now)
    shown_change = None if changed is None else [changed.lines, changed.fixed_fields]
    state = [lane, busy, _position_and_question(now.session), shown_change]
    return f"{json_digest(str(now.run_dir))}.{json_digest(state)}"


def _position_and_question(session: Session) -> list[Any]:
    state, latest, edits, lanes = session.state, session.steps.latest, session.edits, lanes_at_work(session)
    visit, hold, failure, prompt = state.at, state.hold, state.failure, session.prompt
    return [
        [session.prefix, len(session.abandoned), session.loop_count, len(session.steps), state.status, state.next],
        visit and [visit.socket, visit.visit, visit.mode, visit.turn, visit.repairs, visit.drafts],
        latest and [latest.attempts, len(latest.turns)],
        [len(edits), list(edits[-1].patch) if edits else None],
        state.status not in ("ready", "complete") and [prompt and prompt.text, session.change_request],
        [session.asks, [[call.tool, dict(call.args), call.decided] for call in session.open_calls]],
        hold and [hold.needs, hold.reason, hold.text],
        failure and [failure.kind, failure.message],
        [[lane.status, _position_and_question(lane.session)] for lane in (lanes.lanes if lanes else NOTHING).values()],
    ]


def _approval_request(now: Snapshot) -> dict[str, Any] | None:
    calls, hold = now.approvals.asking, now.held
    if calls:
        command = plain("; ".join(call_line(call) for call in calls))
    elif hold is not None and hold.needs == "approval" and isinstance(hold.reading.value, dict):
        content = str(request_of(hold.reading.value).get("exact_content") or "a command")
        command = plain(with_visible_signs(content))
    else:
        return None
    is_complete = len(command) <= _BAR_CHARS and "\n" not in command
    return {"words": command if is_complete else f"{command[: _BAR_CHARS - 2]}…", "whole": is_complete}


Row: TypeAlias = list[Any]
"""Cells of a step: number, lane, socket, item, output, verdict, next, tokens, cost, time and marks."""

LATEST_ROWS: Final = 120
"""Number of latest rows that are always sent to the page; the page requests earlier rows."""
_MAX_REQUESTED_ROWS: Final = 400
_OUTPUT_CHARS: Final = 160


class StepRows:
    """The timeline rows of one branch of a cast. Rows are counted from 1 and cached until their step record changes.

    The steps of lanes are listed after the step that distributed the work items, in the order of their start.

    Args:
        line: the number of an abandoned branch (shown without its lanes), or None for the current branch.

    Attributes:
        shift_count: the number of times that steps have moved to other rows, for example after a retry.
    """

    def __init__(self, line: int | None = None) -> None:
        self.line, self.shift_count = line, 0
        self._lock = threading.Lock()  # a page asks for rows while a frame is drawn
        self._row_cache: dict[int, _CachedRow] = {}
        self._axis_positions: list[tuple[StepRecord, AxisPosition]] = []
        self._merged: tuple[Session, Sequence[StepRecord]] | None = None

    def steps(self, now: Snapshot) -> Sequence[StepRecord]:
        """Return the step records of the rows."""
        if self.line is not None or not now.session.streams:
            return now.line(self.line)
        before = self._merged
        if before is None or before[0] is not now.session:
            steps = all_steps(now.session, by_time=True)
            step_pairs = () if before is None else zip(before[1], steps, strict=False)
            self.shift_count += any((a.number, a.lane) != (b.number, b.lane) for a, b in step_pairs)
            self._merged = before = now.session, steps
        return before[1]

    def row_of(self, now: Snapshot, past: Snapshot) -> int | None:
        """Return the row of the latest step in a past snapshot: 0 if it has no steps, None if the step has no row."""
        last = past.latest
        if last is None or self.steps(now) is now.line(self.line):
            return len(past.steps)
        for row, step in enumerate(self.steps(now), start=1):
            # after a second plan, lanes may have the same names
            if (step.number, step.lane) == (last.number, last.lane) and (
                now.snapshot_for(step).session.prefix == past.session.prefix
            ):
                return row
        return None

    def between(self, now: Snapshot, first: int, last: int) -> list[Row]:
        """Return the existing rows from ``first`` to ``last``."""
        return [cached.row for cached in self._cached(now, first, last)]

    def events(self, now: Snapshot) -> list[MateriaEvent]:
        """Return the events that the steps of the latest rows have reported, oldest first."""
        total = len(self.steps(now))
        return [event for cached in self._cached(now, total - LATEST_ROWS + 1, total) for event in cached.events]

    def _cached(self, now: Snapshot, first: int, last: int) -> list[_CachedRow]:
        """Return the existing rows from ``first`` to ``last``, recomputing the rows whose steps have changed."""
        steps = self.steps(now)
        edits = {edit.step for edit in now.edits} if self.line is None else frozenset()
        first, last = max(1, first), min(len(steps), last, first + _MAX_REQUESTED_ROWS - 1)
        rows = []
        with self._lock:
            for number, step in enumerate(steps[first - 1 : last], start=first):
                edited, cached = bool(edits) and step.number in edits and not step.lane, self._row_cache.get(number)
                if cached is None or cached.step is not step or cached.edited is not edited:
                    row = self._new_row(now, step, edited=edited)
                    cached = self._row_cache[number] = _CachedRow(step, edited, row, step.events)
                rows.append(cached)
        return rows

    def span(self, now: Snapshot) -> AxisPosition:
        """Return the end of the cast's time axis; lanes have their own axis (:func:`time_axis`)."""
        steps = now.line(self.line)
        with self._lock:
            return self._position_after(steps, len(steps))

    def _position_after(self, steps: Sequence[StepRecord], number: int) -> AxisPosition:
        """Return the position on the time axis at the end of a step; earlier positions are cached."""
        ends = self._axis_positions
        del ends[len(steps) :]
        while ends and ends[-1][0] is not steps[len(ends) - 1]:
            ends.pop()
        while len(ends) < number:
            at, step = ends[-1][1] if ends else AxisPosition(0, 0), steps[len(ends)]
            time = step_time(step)
            length = time.work if time.work is not None else time.total or 0
            ends.append((step, AxisPosition(at.ms + length, at.waits + bool(time.waited))))
        return ends[number - 1][1] if number else AxisPosition(0, 0)

    def find(self, now: Snapshot, text: str) -> list[int]:
        """Return the numbers of the rows whose step contains ``text``, ignoring case."""
        query = " ".join(text.split()).casefold()
        rows = enumerate(self.steps(now), start=1)
        return [row for row, step in rows if query in _searchable_text(step)]

    def _new_row(self, now: Snapshot, step: StepRecord, *, edited: bool) -> Row:
        usage = step_usage(step)
        verdict = step.reading.satisfied if step.reading is not None else None
        return [
            step.number,
            part(step.lane, 40),
            part(step.name, 130),
            [step.item_key, part(step.item_label or "", 60)] if step.item_key else None,
            shorten(summarize_output(step), _OUTPUT_CHARS),
            "" if verdict is None else "yes" if verdict else "no",
            plain(describe_outcome(step)),
            usage.tokens,
            usage.cost,
            self._row_time(now.line(self.line), step),
            _step_marks(step, edited=edited),
        ]

    def _row_time(self, line: Sequence[StepRecord], step: StepRecord) -> list[Any]:
        """Return the time of a step as a list.

        The list contains: whether the step has ended, its working seconds, a description of its time, the start and end
        of the step on the time axis (each in milliseconds and number of waits), and whether the working time is known.
        Start and end are 0 in lanes, which have their own axis.
        """
        time, ends = step_time(step), () if step.lane else (step.number - 1, step.number)
        before, after = [self._position_after(line, end) for end in ends] or [AxisPosition(0, 0)] * 2
        seconds = "?" if time.work is None else format_seconds(time.work).removesuffix(" s")
        return [time.total is not None, seconds, time.words, *before, *after, time.work is not None]


class _CachedRow(NamedTuple):
    """A row and the events of its step, valid until the step record or the edits of the step change."""

    step: StepRecord
    edited: bool
    row: Row
    events: Sequence[MateriaEvent]


class AxisPosition(NamedTuple):
    """A position on a time axis with collapsed waits: milliseconds of work, and the number of waits so far."""

    ms: int
    waits: int


def _searchable_text(step: StepRecord) -> str:
    searchable = (step.lane, step.socket, step.name, describe_outcome(step))
    return "\n".join((*searchable, step.item_key or "", step.item_label or "", step.shown or "")).casefold()


def step_text(step: StepRecord) -> str:
    """Return the complete text of a step for display: its prose (R62), or else its context, or else its output."""
    reading = None if step.shown != step.output else step.reading
    if reading is not None and isinstance(reading.context, str) and reading.context.strip():
        return plain(reading.context)
    return plain(step.shown or "")


def _step_marks(step: StepRecord, *, edited: bool) -> list[str]:
    marks = origin_notes(step)
    if step.events:
        max_severity = max((event.severity for event in step.events), key=EVENT_SEVERITIES.index)
        suffix = f" {max_severity}" if EVENT_SEVERITIES.index(max_severity) > EVENT_SEVERITIES.index("info") else ""
        marks.append(f"{len(step.events)} event{'s' * (len(step.events) > 1)}{suffix}")
    if step.files is not None and step.files.in_all:
        marks.append(counted(step.files.in_all, "file"))
    if edited:
        marks.append("edited")
    return marks


def timeline_state(now: Snapshot, rows: StepRows, past: Snapshot | None, *, busy: bool) -> dict[str, Any]:
    """Return the content of the timeline: the latest rows, the total number of rows, and the selected row.

    Args:
        now: the current snapshot of the cast.
        rows: the rows of the branch that the panel shows.
        past: the past snapshot that the user is viewing, or None for the present.
        busy: True while a step is running.
    """
    axes = [time_axis(now, axis_end(busy=busy), past).as_json()] if now.lanes and rows.line is None else []
    total = len(rows.steps(now))
    abandoned_count = len(now.abandoned) + len(now.session.abandoned_streams)
    branches = [
        [index, f"branch {index + 1}: abandoned after step {steps[0].number - 1}"]
        for index, steps in enumerate(now.abandoned)
        if steps
    ]
    return {
        "line": rows.line,
        "lines": [[None, "current branch"], *branches],
        "total": total,
        "lanes": axes,
        "tail": rows.between(now, total - LATEST_ROWS + 1, total),
        "span": list(rows.span(now)),
        "at": None if past is None else rows.row_of(now, past),
        "past": past is not None,
        "own": now.writable,
        "busy": busy,
        "id": f"{now.id} {rows.line} {abandoned_count} {rows.shift_count}",
        "axis": total - _steps_on_axis(now) if axes else total + 1,
    }


def _steps_on_axis(now: Snapshot) -> int:
    """Return the number of steps since the work items were distributed, including the steps of the lanes."""
    streams = now.session.streams[-1]
    return len(now.steps) - streams.step + sum(len(lane.session.steps) for lane in streams.lanes.values())


def axis_end(*, busy: bool) -> int | None:
    """Return the end of a time axis: the current time while a step is running, or None for the last recorded time."""
    return int(now_in_seconds() * 1000) if busy else None


def events_blocks(now: Snapshot, step_rows: StepRows) -> list[Block]:
    """Return a table of the events that the latest steps have reported, latest first."""
    events = step_rows.events(now)
    lanes = any(event.lane for event in events)
    rows = [
        (
            str(event.sequence),
            *[part(event.lane, 40)] * lanes,
            str(event.step),
            now.names.get(event.socket, event.socket),
            event.severity,
            shorten(event.name, 80),
            shorten(event.message, 300),
        )
        for event in reversed(events[-100:])
    ]
    headers = ("event", *["lane"] * lanes, "step", "socket", "severity", "type", "message")
    return [Table(headers, rows)]


def compare_blocks(casts: Sequence[Snapshot], index: int) -> list[Block]:
    """Return the differences between the first cast of the panel and a fork of it.

    Args:
        casts: the first cast of the panel, and its forks.
        index: the index of the cast that the panel shows; if it is the first cast, the latest fork is compared.
    """
    if len(casts) < 2:
        return [Line("Fork the cast at a step to compare both casts here, side by side.", "quiet")]
    index = index or len(casts) - 1
    compared = CompareView(casts[0].compared_cast, casts[index].compared_cast)
    return [Line(f"A is the original, B is fork {index}."), *compared.detail_blocks()]


def step_compare_blocks(
    now: Snapshot, rows: StepRows, *, socket: str | None, row: int | None, other_row: int | None
) -> list[Block]:
    """Return the differences between two steps.

    Args:
        now: the current snapshot of the cast.
        rows: the rows of the timeline.
        socket: the socket whose latest step is compared; None to use ``row``.
        row: the row of the step if ``socket`` is None; defaults to the latest step.
        other_row: the row of the other step; defaults to the previous visit of the same socket.

    Raises:
        MateriaError: there is no such step, or no previous visit (``no_step``).
    """
    steps = rows.steps(now)
    row = row or len(steps)
    if socket is not None:
        at_socket = [number for number, step in enumerate(steps, start=1) if step.socket == socket]
        if not at_socket:
            raise MateriaError(
                "No step has visited this socket yet.", hint="run the cast to this socket first", kind="no_step"
            )
        row = at_socket[-1]
    step = step_at(steps, row)
    if other_row is not None:
        other = step_at(steps, other_row)
    else:  # in its own lane
        line = now.snapshot_for(step).steps if step.lane else now.line(rows.line)
        other = previous_visit(line, step.number)
    a, b = (f"step {each.number}{f' of lane {part(each.lane, 60)}' if each.lane else ''}" for each in (other, step))
    return [Line(f"A is {a}, B is {b}."), *StepCompareView(other, step, (now.compared_cast,) * 2).explained_blocks()]
