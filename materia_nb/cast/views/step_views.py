"""Views of a step and of parallel lanes, and the HTML page of a cast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from materia_nb.cast.formatting import step_table, why_blocks
from materia_nb.cast.snapshot import LaneSnapshot, Snapshot
from materia_nb.cast.views.status import draft_of, overlay_of, status_lines
from materia_nb.cast.views.tables import FilesView, format_reported
from materia_nb.display.blocks import (
    Action,
    AnchorLink,
    Badge,
    Block,
    Code,
    FactTable,
    Fold,
    Heading,
    JsonTree,
    Line,
    Table,
    View,
    blocks_as_html,
    lines,
)
from materia_nb.display.escape import html_page, part, shorten
from materia_nb.display.sections import (
    Bar,
    PlacedBar,
    TimeAxis,
    TimeScale,
    call_blocks,
    issue_rows,
    prompt_blocks,
    section_blocks,
)
from materia_nb.display.svg import graph_block
from materia_nb.display.text import graph_text
from materia_nb.engine.conversation import HEADINGS
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.session import StepRecord
from materia_nb.engine.state import Usage
from materia_nb.errors import counted
from materia_nb.handoff.base import Issue, Pointer, Reading, Section
from materia_nb.insight.estimate import format_seconds, format_work_time, step_time, work_time
from materia_nb.store.file_snapshots import WORK_FOLDERS
from materia_nb.store.rundir import file_within

if TYPE_CHECKING:
    from materia_nb.engine.session import TurnRecord

_MAX_STEPS = 1_000
_MAX_FILES = 2_000


def step_view(cast: Snapshot, approved: Sequence[str] = (), lane: str = "") -> View:
    """Return a view of the latest step of a cast: its output, its routing decision, and the status of the cast.

    Args:
        cast: a snapshot of the cast.
        approved: the tool calls that a person has just approved, one per line.
        lane: the name of the lane whose latest step is displayed; by default the latest step of the cast itself.
    """
    snapshot = cast.lane(lane)
    step = snapshot.steps[-1] if snapshot.steps else None
    blocks: list[Block] = []
    if step is not None and step.shown is not None:
        blocks.append(Code(step.shown, title="output"))
    if step is not None and step.decision is not None:
        blocks += why_blocks(snapshot.why())
    blocks += lines((*(f"approved: {line}" for line in approved[:1]), *approved[1:], *status_lines(cast)))
    blocks += call_blocks(snapshot.approvals.asking)
    if snapshot.prompt is not None and not draft_of(snapshot):
        blocks += prompt_blocks(snapshot.prompt)
    return View(step.title if step is not None else "", blocks)


def prompt_view(step: StepRecord, prompt: Prompt, steps: Sequence[StepRecord] = ()) -> View:
    """Return a view of a prompt with a heading for each layer, followed by the prompts of later turns of the same step.

    Args:
        step: the step that the prompt belongs to.
        prompt: the prompt of the first turn of the step, or of the waiting turn.
        steps: the steps of the cast, if the prompt should be compared with the prompt of the socket's previous visit.
    """
    blocks, is_first = prompt_blocks(prompt, opened=True), prompt is step.prompt
    for number, turn in enumerate(step.turns[1:] if is_first else [], start=2):
        if turn.prompt:
            text = turn.prompt.text if turn.message is None else turn.message
            blocks.append(Code(text, title=f"turn {number}, {turn.mode}"))
    notes = [reported_tokens(step) if is_first else "", compare_with_last_visit(steps, step, prompt)]
    return View(f"Prompt of s{step.title[1:]}", [*blocks, *lines(filter(None, notes), "quiet")])


def reported_tokens(step: StepRecord) -> str:
    """Return a sentence with the tokens that the agent reported for each turn of a step; "" if none were reported."""
    counts = [
        f"turn {number}: {turn.usage.input:,} in, {turn.usage.output or 0:,} out"
        for number, turn in enumerate(step.turns, start=1)
        if turn.usage is not None and turn.usage.input
    ]
    if not counts:
        return ""
    return f"Tokens of the last request of a turn, including tool definitions and earlier messages: {'; '.join(counts)}"


def compare_with_last_visit(steps: Sequence[StepRecord], step: StepRecord, prompt: Prompt) -> str:
    """Return a sentence that compares a prompt with the socket's previous prompt; "" if there is nothing to compare."""
    if not prompt.describes_task:
        return ""
    earlier = (record for record in reversed(steps) if record.number < step.number and record.socket == step.socket)
    last = next((record for record in earlier if record.prompt is not None), None)
    if last is None or last.prompt is None:
        return ""
    before, current = ({part.name: part.text for part in version.parts} for version in (last.prompt, prompt))
    names = [name for name in HEADINGS if before.get(name, "") != current.get(name, "")]
    changes = [f"{HEADINGS[name]} {len(current.get(name, '')) - len(before.get(name, '')):+,}" for name in names]
    difference = f"{', '.join(changes)} characters; the other layers are identical" if changes else "identical"
    return f"Compared with its previous visit, step {last.number}: {difference}."


class HandoffView(View):
    """A view of the handoff of a step; see :func:`handoff_blocks`."""

    def __init__(self, cast: Snapshot, step: StepRecord) -> None:
        super().__init__(f"Handoff of s{step.title[1:]}", handoff_blocks(cast, step))
        self.step = step


def handoff_blocks(cast: Snapshot, step: StepRecord) -> list[Block]:
    """Return the handoff of a step.

    It consists of the outputs in the layout of their handoff protocol, the issues and warnings, the required values,
    and the assignments to the state.
    """
    blocks: list[Block] = [] if step.turns else [Line("no output yet", "quiet")]
    for number, turn in enumerate(step.turns, start=1):
        inner_blocks = _turn_blocks(cast, step, turn)
        if number < len(step.turns):
            has_issues = turn.reading is not None and bool(turn.reading.issues)
            blocks.append(Fold(f"turn {number}: {turn.mode}", inner_blocks, opened=has_issues))
        else:
            blocks += [Heading(turn.mode), *inner_blocks]
    answered_ids = {id(call) for turn in step.turns for call in turn.calls}
    if unanswered_calls := [call for call in step.calls if id(call) not in answered_ids]:
        blocks += [Heading("tool calls without an answer"), *call_blocks(unanswered_calls)]
    blocks += lines([f"note: {note}" for note in step.notes], "quiet")
    blocks += section_blocks(visit_status_sections(cast, step))
    blocks += lines([f"reported as created, but missing on disk: {path}" for path in step.missing], "warn")
    decision, required_fields = step.decision, cast.rules.sockets[step.socket].required_fields
    if decision is not None:
        # Some warnings appear only when the output is applied, such as one about an update that was not allowed.
        read = {warning.code for warning in step.reading.warnings} if step.reading else set()
        blocks += _warning_blocks([warning for warning in decision.warnings if warning.code not in read])
    if required_fields:
        blocks.append(Table(("required", "required value"), list(required_fields.items())))
    if decision is not None and decision.assigned:
        rows = [
            (f"state.{assignment.target}", assignment.source, "yes" if assignment.found else "no")
            for assignment in decision.assigned
        ]
        blocks.append(Table(("assigned to", "from", "found"), rows))
    if step.prompt is not None:
        blocks.append(Fold("prompt", prompt_blocks(step.prompt)))
    return blocks + lines([f"stored in {step.artifact}"] if step.artifact else [], "quiet")


def _turn_blocks(cast: Snapshot, step: StepRecord, turn: TurnRecord) -> list[Block]:
    """Return a turn: the message to the agent, the agent, the tool calls, the text, and the parsed output."""
    reading, sections = turn.reading, section_blocks(_sections(cast, step, turn.reading))
    blocks = lines([f"message: {turn.message}"] if turn.message is not None else [])
    blocks += lines(_answer_origin_lines(turn), "quiet")
    blocks += lines([f"pinned to {turn.pinned}"] if turn.pinned else [], "quiet")
    blocks += call_blocks(turn.calls)
    blocks += [*sections, Fold("unparsed text", [Code(turn.text)])] if sections else [Code(turn.text)]
    if reading is None:
        return blocks
    blocks += lines([f"note: {note}" for note in reading.notes], "quiet")
    blocks += _warning_blocks(reading.warnings)
    if reading.issues:
        word = "not done yet" if reading.accepted else "issue"
        blocks.append(Table(("where", word, "what to do"), issue_rows(reading.issues)))
    if isinstance(reading.value, dict):
        blocks.append(Fold("parsed output", [JsonTree(reading.value, open_levels=2)], opened=not sections))
    return blocks


def _sections(cast: Snapshot, step: StepRecord, reading: Reading | None) -> list[Section]:
    """Return the sections of a parsed output; none if its protocol has no sections or the output could not be parsed."""
    protocol = cast.rules.sockets[step.socket].protocol
    if reading is None or not isinstance(reading.value, dict):
        return []
    return protocol.layout(reading.value, partial(file_within, project=cast.project, run_dir=cast.run_dir))


def visit_status_sections(cast: Snapshot, step: StepRecord) -> list[Section]:
    """Return the statuses of a visit in order, if the handoff protocol of its socket defines statuses."""
    protocol = cast.rules.sockets[step.socket].protocol
    return protocol.status_sections([turn.reading for turn in step.turns if turn.reading is not None])


def _warning_blocks(warnings: Sequence[Issue]) -> list[Block]:
    return [Table(("where", "warning"), [(warning.path, warning.message) for warning in warnings])] if warnings else []


def _answer_origin_lines(turn: TurnRecord) -> list[str]:
    """Return the model, the attempt and the tokens of a turn in one line, or an empty list if none is known."""
    facts, model = [], turn.meta.get("model")
    if isinstance(model, str):
        from_recording = ", from a recording" if turn.meta.get("recorded") is True else ""
        facts.append(f"answered by {part(model)}{from_recording}")
    trial = turn.meta.get("attempt")
    if isinstance(trial, dict):
        facts.append(f"attempt {part(trial.get('number'))} of {part(trial.get('of'))}, by {part(trial.get('agent'))}")
    used = Usage().plus(*(usage for usage in (*turn.spent, turn.usage) if usage is not None))
    if used.tokens:
        other_tokens = f" ({used.token_details_text})" if used.token_details_text else ""
        facts.append(f"{format_reported(used.input)} tokens in, {format_reported(used.output)} out{other_tokens}")
    elif used.tokens is None and (facts or "program" in turn.meta):
        facts.append("tokens unknown")
    return ["; ".join(facts)] if facts else []


# -- the page ------------------------------------------------------------------------------------


def cast_page_html(cast: Snapshot) -> str:
    """Return a cast as a static HTML page, with at most its last 1,000 steps."""
    return html_page(f"Cast {part(cast.id, 80)}: {part(cast.graph.name, 80)}", blocks_as_html(_page_blocks(cast)))


def _page_blocks(cast: Snapshot) -> list[Block]:
    failure, steps = cast.failure, cast.all_steps[-_MAX_STEPS:]
    facts = [("request", cast.request), *(("status", line) for line in status_lines(cast))]
    blocks: list[Block] = [FactTable(facts), *([Code(failure.message)] if failure else [])]
    blocks += [Heading("Graph"), graph_block(cast.graph, overlay_of(cast))]
    blocks.append(Fold("Graph as text", [Code(graph_text(cast.graph, overlay_of(cast)), max_chars=200_000)]))
    if cast.lanes:
        blocks.append(Heading("Lanes"))
        blocks += [block for block in lanes_blocks(cast) if not isinstance(block, Action)]
    blocks.append(Heading("Timeline"))
    if left_out := len(cast.all_steps) - len(steps):
        blocks.append(Line(f"{left_out:,} earlier steps are not shown."))
    timeline = step_table(steps)
    anchors = [f"lane-step-{index}" if step.lane else f"step-{step.number}" for index, step in enumerate(steps)]
    links = [(AnchorLink(str(row[0]), anchor), *row[1:]) for anchor, row in zip(anchors, timeline.rows, strict=True)]
    blocks += [Table(timeline.headers, links, timeline.empty), Heading("Steps")]
    blocks += [_step_block(cast.snapshot_for(step), step, anchor) for step, anchor in zip(steps, anchors, strict=True)]
    blocks += [Heading("State at the end"), JsonTree(dict(cast.state))]
    if cast.session.snapshot_method:
        blocks += [Heading("Files"), *FilesView(cast).detail_blocks()]
    files = sorted(
        path.relative_to(cast.run_dir)
        for path in cast.run_dir.rglob("*")
        if path.is_file() and path.relative_to(cast.run_dir).parts[0] not in WORK_FOLDERS
    )
    pointers = [(path.parts[0], Pointer(path.as_posix(), path.as_posix())) for path in files[:_MAX_FILES]]
    return [*blocks, Heading("Artifacts"), Table(("what", "file"), pointers)] if pointers else blocks


def _step_block(cast: Snapshot, step: StepRecord, anchor: str) -> Block:
    """Return a step as a block that is collapsed unless the step failed."""
    events = [": ".join(filter(None, (event.severity, event.name, event.message))) for event in step.events]
    event_blocks = [Heading("Events"), *lines(shorten(event, 400) for event in events)] if events else []
    inner_blocks = [Heading("Reason for the next socket"), *why_blocks(cast.why(step.number))]
    inner_blocks += [Code(step.shown, title="Output")] if step.shown is not None else []
    inner_blocks += [*handoff_blocks(cast, step), *event_blocks]
    has_failed = step.decision is not None and step.decision.failure is not None
    return Fold(step.title, inner_blocks, opened=has_failed, anchor=anchor)


# -- lanes ------------------------------------------------------------------------------------

_MAX_BARS: Final = 200
_IMMEDIATE_MS: Final = 100
"""Maximum delay before the first bar of a lane, in milliseconds. A longer delay is drawn as waiting time."""


def lanes_blocks(cast: Snapshot, now: int | None = None, past: Snapshot | None = None) -> list[Block]:
    """Return the status, the time axis and the problems of the current lanes, or of the latest lanes if all have joined.

    Args:
        cast: a snapshot of the cast.
        now: the current time, in milliseconds, at which the time axis of a running cast ends; None if the cast is not
            running.
        past: the snapshot of an earlier moment that is selected in the panel, or None.
    """
    lanes = cast.lanes
    if not lanes:
        return [Line("The cast has not distributed items to lanes.", "quiet")]
    streams = cast.session.streams[-1]
    until = _latest_event_ms(cast)
    rows = [
        (
            part(name, 60),
            Badge(lane.status),
            lane_position(lane) + (", waiting for you" if lane.waits_for_person else ""),
            _item_words(lane),
            f"{lane.done}/{len(lane.indexes)}",
            _format_duration(lane, until),
        )
        for name, lane in lanes.items()
    ]
    actions = [
        Action(
            f"{part(name, 60)} is waiting for you." if lane.waits_for_person else f"{part(name, 60)} failed.",
            "Answer" if lane.waits_for_person else "Inspect",
            "Show this lane in the inspector.",
            "lane",
            {"lane": name},
        )
        for name, lane in lanes.items()
        if lane.waits_for_person or lane.status == "failed"
    ]
    errors = ((name, lane.error) for name, lane in lanes.items() if lane.error)
    errors_shown = [Line(f"{part(name, 60)}: {part(error, 300)}", "bad") for name, error in errors]
    return [
        Line(f"{counted(len(lanes), 'lane')}, at most {streams.limit} in parallel; {_join_status(cast)}"),
        time_axis(cast, now, past),
        Table(("lane", "status", "at", "item", "done", "took"), rows),
        *actions,
        *errors_shown,
    ]


def lane_position(lane: LaneSnapshot) -> str:
    """Return the name of the socket that a running lane has reached, or "" if the lane is not running."""
    snapshot = lane.now
    if lane.status != "running":
        return ""
    socket = snapshot.next_socket or ""
    return snapshot.names[socket] if socket in snapshot.graph.sockets else "the join"


def _join_status(cast: Snapshot) -> str:
    status = cast.session.streams[-1].status
    joined_count = sum(lane.status == "accepted" for lane in cast.lanes.values())
    failure = cast.failure
    if status != "joined" and failure is not None and failure.kind != "stream_failed":
        return f"stopped with {joined_count} at the join"
    phrases = {"joined": "all have joined", "failed": "the cast failed at the join"}
    return phrases.get(status, f"{joined_count} at the join")


def _item_words(lane: LaneSnapshot) -> str:
    steps = lane.now.steps
    item = steps[-1].at.item if steps and lane.status == "running" else None
    return part(item.label, 60) if item is not None else ""


def _format_duration(lane: LaneSnapshot, until: int) -> str:
    started = lane.lane.started
    return "" if started is None else format_seconds(max(0, (lane.lane.ended or until) - started))


def _latest_event_ms(cast: Snapshot) -> int:
    """Return the time of the latest event of the cast or of its lanes, in milliseconds."""
    times = [lane.lane.ended for lane in cast.lanes.values() if lane.lane.ended is not None]
    for steps in (cast.steps, *(lane.now.steps for lane in cast.lanes.values())):
        times += [steps[-1].ended or steps[-1].started] if steps else []
    return max(times, default=0)


# -- the axis ---------------------------------------------------------------------------------


def time_axis(cast: Snapshot, now: int | None = None, past: Snapshot | None = None) -> TimeAxis:
    """Return the steps of a cast and of its lanes on a common time axis.

    The arguments are the same as for :func:`lanes_blocks`, except that ``past`` can also be a snapshot of a lane.
    """
    generator = cast.steps.at(cast.session.streams[-1].step)
    fork_time = generator.ended or generator.started
    steps = [step for step in cast.steps if step.number >= generator.number]
    rows = [("cast", list(_bars(cast, steps)))]
    rows += [(part(name, 40), _lane_bars(lane, fork_time)) for name, lane in cast.lanes.items()]
    until = max(now or 0, _latest_event_ms(cast))
    scale = TimeScale([bar for _, bars in rows for bar in bars], generator.started, until, running=now is not None)
    started = generator.started
    work = format_work_time(*work_time([*steps, *(step for lane in cast.lanes.values() for step in lane.now.steps)]))
    summary = f"{counted(len(rows) - 1, 'lane')}: {format_seconds(max(0, until - started))} elapsed, {work} of work"
    placed_rows = [(name, [_place_bar(scale, bar) for bar in bars]) for name, bars in rows]
    ticks = [(scale.position(time), format_seconds(time - started)) for time in scale.ticks()]
    selected = None if past is None or past.latest is None else (past.latest.lane, past.latest.number)
    return TimeAxis(summary, placed_rows, ticks, ["", *cast.lanes], selected)


def _place_bar(scale: TimeScale, bar: Bar) -> PlacedBar:
    left, width = scale.extent(bar)
    label = part(bar.label, 60)
    duration = format_seconds(max(0, (bar.end or scale.until) - bar.start))
    return left, width, bar.kind, label, f"{label}: {duration}", bar.step


def _bars(cast: Snapshot, steps: Sequence[StepRecord]) -> Iterator[Bar]:
    """Yield the bars of steps on the time axis: for each step its working time, followed by its waiting time."""
    for step in steps[-_MAX_BARS:]:
        item, time = step.at.item, step_time(step)
        label = cast.names.get(step.socket, step.socket) + (f" {item.position + 1}" if item is not None else "")
        if step.ended is None:
            yield Bar(label, step.started, None, "now", step.number)
        elif time.work is None:
            yield Bar(f"{label}, at most", step.started, step.ended, "unsure", step.number)
        else:
            worked_until = step.ended - (time.waited or 0)
            if not time.waited or time.work:
                yield Bar(label, step.started, worked_until, "work", step.number)
            if time.waited:
                yield Bar(f"{label}, waited", worked_until, step.ended, "wait", step.number)


def _lane_bars(lane: LaneSnapshot, forked: int) -> list[Bar]:
    started, bars = lane.lane.started, list(_bars(lane.now, lane.now.steps))
    first = bars[0].start if bars else started if started is not None else lane.lane.ended
    if first is None or first - forked > _IMMEDIATE_MS:
        bars.insert(0, Bar("waiting for a free lane", forked, first, "wait"))
    last = bars[-1] if bars else None
    if last is not None and last.kind == "now" and lane.waits_for_person:
        bars[-1] = last._replace(kind="wait", label=f"{last.label}, waiting for you")
    elif last is not None and (lane.status == "failed" or (last.kind == "now" and lane.lane.is_over)):
        bars[-1] = last._replace(kind="bad", end=last.end or lane.lane.ended)
    return bars
