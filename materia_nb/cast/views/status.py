"""The status of a cast, as text and as marks in the picture of its graph.

The text does not contain ids or times, so that stored outputs of notebooks can be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from materia_nb.cast.breakpoint import Breakpoint
from materia_nb.cast.formatting import describe_failure, step_table, summarize_verdict, verdict_mark
from materia_nb.cast.repairs import changed_definition, offered_actions
from materia_nb.cast.snapshot import RESUME, Snapshot
from materia_nb.display.blocks import Code, Table, View, lines
from materia_nb.display.escape import shorten
from materia_nb.display.graph_parts import END_MARKER, CastOverlay, links
from materia_nb.display.sections import approval_line, call_blocks, call_line, prompt_blocks
from materia_nb.display.svg import graph_block
from materia_nb.engine.cast_warnings import CastWarning
from materia_nb.engine.routing import edge_uses, short_label
from materia_nb.engine.session import StepRecord, lanes_at_work
from materia_nb.engine.state import BOUNDS, Hold
from materia_nb.errors import counted, plain, signs_warning
from materia_nb.handoff.jsontext import as_text
from materia_nb.handoff.runtime_rules import request_of
from materia_nb.loadout.graph import END, Route, with_names

_MAX_CONCLUSION_LINES: Final = 40
_MAX_LINE_CHARS: Final = 1_000  # Maximum length of a line of the conclusion in a status, in characters.
_MAX_STEPS: Final = 12
_MAX_LOOPS: Final = 4
_MAX_WARNINGS: Final = 8
_MAX_CHANGES: Final = 12
_MAX_OUTPUT_CHARS: Final = 160


def status_text(cast: Snapshot) -> str:
    """Return the status of a cast as plain text."""
    return "\n".join(plain(line) for line in status_lines(cast))


def cast_view(cast: Snapshot) -> View:
    """Return a view with the marked graph of a cast and the tool calls awaiting approval."""
    picture = graph_block(cast.graph, overlay_of(cast), status_text(cast))
    return View("", [picture, *call_blocks(cast.approvals.asking)])


def status_view(cast: Snapshot, pause: str | None = None, hit: Sequence[Breakpoint] = ()) -> View:
    """Return a view of the status, the latest steps, and the waiting draft or prompt; for arguments see :func:`status_lines`."""
    steps, draft = steps_view(cast), draft_of(cast)
    blocks = lines(status_lines(cast, pause, hit))
    if steps.rows:
        blocks.append(Table(steps.headers, steps.rows[-_MAX_STEPS:]))
    blocks += call_blocks(cast.approvals.asking)
    if draft:
        blocks.append(Code(draft, title="draft"))
    elif cast.prompt is not None:
        blocks += prompt_blocks(cast.prompt)
    return View("", blocks)


def status_lines(cast: Snapshot, pause: str | None = None, hit: Sequence[Breakpoint] = ()) -> tuple[str, ...]:
    """Return the status of a cast as lines; the last line suggests how to continue.

    Args:
        cast: a snapshot of the cast.
        pause: the reason why the latest run stopped, or None if nothing was run.
        hit: the breakpoints that the cast has reached.
    """
    engine = cast.engine
    lines = [*_progress_lines(cast), *_lane_lines(cast), *_warning_lines(cast.warnings), *cast.messages]
    lines += [*_pin_lines(cast), *_note_lines(cast)]
    if cast.stopping is not None:
        return (*lines, f"stopping, {cast.stopping}")
    failure = engine.failure
    if failure is not None:
        name = cast.names.get(failure.socket or "", "The cast")
        lines.append(f"{name} {describe_failure(failure.kind)}: {failure.message}")
        if tries_text := describe_tries(cast):
            lines.append(tries_text)
        if failure.hint:
            can_resume = cast.live.continue_hint == RESUME
            lines.append(f"to continue: {failure.hint if can_resume else cast.live.continue_hint}")
        lines += _offered_commands(cast)
    elif engine.hold is not None and engine.at is not None:
        lines += _hold_lines(cast, engine.hold, engine.at.socket)
    elif engine.status == "waiting":
        lines.append(_waiting_text(cast) + _pause_reason(cast, pause, hit))
    elif engine.status == "ready":
        because = _pause_reason(cast, pause, hit)
        if any(lane.waits_for_person for lane in cast.lanes.values()):
            lines.append(f"waiting for you{because}: use `reply --lane NAME`")
        else:
            lines.append(f"next: {_describe_next(cast)}{because}")
    elif engine.status == "complete":
        lines += _conclusion_lines(cast)
    return tuple(lines)


def _describe_next(cast: Snapshot) -> str:
    """Describe what runs next: a socket, the lanes, or the end of the cast."""
    if lanes_at_work(cast.session) is not None:
        names = [shorten(name, 60) for name, lane in cast.lanes.items() if lane.status in ("running", "waiting")]
        return f"lanes {', '.join(names)}" if names else "the join of the lanes"
    name = cast.names.get(cast.engine.next or "", str(cast.engine.next))
    return f"{name} (`step` or `run` completes the cast)" if cast.engine.next == END else name


def _offered_commands(cast: Snapshot) -> Iterator[str]:
    """Yield the commands that continue a failed cast, and any changes in the definition of the failed materia."""
    changed = changed_definition(cast) if cast.writable else None
    if changed is not None:
        fixed_fields = ", ".join(changed.fixed_fields)
        also = f" (also in {fixed_fields}, so only a new cast can use it)" if fixed_fields else ""
        yield f"The definition of {changed.materia} has changed since the cast was started{also}:"
        yield from (f"  {sign} {line}" for sign, line in changed.lines[:_MAX_CHANGES])
    if offers := offered_actions(cast, changed) if cast.writable else []:
        yield "ways to continue (choose one):"
        yield from (f"  - {offer.verbs}" for offer in offers)


def _pause_reason(cast: Snapshot, pause: str | None, hit: Sequence[Breakpoint]) -> str:
    """Return the reason why a run stopped, in parentheses; "" if it is obvious from the next socket."""
    if pause == "breakpoint" and any(breakpoint_.kind != "before" or breakpoint_.nth for breakpoint_ in hit):
        return f" (breakpoint: {'; '.join(breakpoint_.words(cast.graph) for breakpoint_ in hit)})"
    return {"breakpoint": " (breakpoint)", "until": " (stopped as requested)"}.get(pause or "", "")


def _progress_lines(cast: Snapshot) -> list[str]:
    """Return the progress of a cast, its usage and its label as lines."""
    engine = cast.engine
    status = f"{engine.status}, with warnings," if cast.warnings else engine.status
    lines = [f"{cast.graph.name}: {status} after {describe_steps(cast)}"]
    label = cast.label_of().words
    if loops_text := _loops_text(cast):
        lines[0] += f" ({loops_text})"
    if engine.usage.tokens or (engine.usage.uncounted and engine.budget.max_tokens is not None):
        maximum = f" of {engine.budget.max_tokens}" if engine.budget.max_tokens is not None else ""
        unknown = 0 if engine.usage.tokens is None else engine.usage.uncounted
        missing = f", not counting {counted(unknown, 'turn')} with unknown usage" if unknown else ""
        lines.append(f"tokens: {'unknown' if engine.usage.tokens is None else engine.usage.tokens}{maximum}{missing}")
    lines += [
        f"{bound.quantity}: {bound.amount_phrase(engine.usage, limit)}"
        for bound in BOUNDS[1:]
        if (limit := bound.maximum(engine.budget)) is not None
    ]
    return [*lines, shorten(label, 200)] if label else lines


def describe_steps(cast: Snapshot) -> str:
    """Return the number of steps of a cast and of its lanes, such as ``5 steps, 3 in lanes``."""
    steps = len(cast.steps)
    in_lanes = len(cast.all_steps) - steps
    return counted(steps, "step") + (f", {in_lanes} in lanes" if in_lanes else "")


def _lane_lines(cast: Snapshot) -> Iterator[str]:
    """Yield the status of each lane; nothing if all lanes have joined."""
    if cast.lanes and cast.session.streams[-1].status != "joined":
        for name, lane in cast.lanes.items():
            socket = lane.now.next_socket if lane.status == "running" else None
            at = f", at {cast.names[socket]}" if socket else ""
            suffix = ", waiting for you" if lane.waits_for_person else ""
            yield f"lane {shorten(name, 60)}: {lane.status}{at}{suffix}, {lane.done} of {len(lane.indexes)} items done"


def _warning_lines(warnings: Sequence[CastWarning]) -> Iterator[str]:
    """Yield the warnings about a complete cast (R45)."""
    yield from (f"warning: {warning}" for warning in warnings[:_MAX_WARNINGS])
    if len(warnings) > _MAX_WARNINGS:
        yield f"and {len(warnings) - _MAX_WARNINGS} more warnings; list them with `cast.now.warnings`"


def _conclusion_lines(cast: Snapshot) -> Iterator[str]:
    """Yield the lines of the conclusion, and a line with the number of suggestions for the project's knowledge."""
    conclusion = cast.conclusion
    yield from (shorten(line, _MAX_LINE_CHARS) for line in conclusion[:_MAX_CONCLUSION_LINES])
    if len(conclusion) > _MAX_CONCLUSION_LINES:
        yield f"and {counted(len(conclusion) - _MAX_CONCLUSION_LINES, 'more line')}; list them with `cast.now.conclusion`"
    unreviewed_count = sum(not suggestion.is_kept for suggestion in cast.suggestions)
    if unreviewed_count:
        yield f"{counted(unreviewed_count, 'suggestion')} to review; list them with `%materia edit remember`"


def _pin_lines(cast: Snapshot) -> Iterator[str]:
    """Yield a line about each pin, including pinned functions that were lost with an earlier kernel (R40)."""
    for name, pin in cast.pins.items():
        is_lost = cast.writable and name in cast.lost_pins
        lost_note = ", which was lost when its kernel ended: pin it again, or unpin it" if is_lost else ""
        yield f"pinned: {name} to {pin.words}{lost_note}"


def describe_tries(cast: Snapshot) -> str:
    """Return text such as ``tried 2 times`` for the failed socket, or "" if the socket was tried once."""
    if not cast.steps or cast.engine.failure is None or cast.engine.at is None:
        return ""
    tries_text = cast.steps[-1].attempts
    return f"tried {tries_text} times" if tries_text > 1 else ""


def _note_lines(cast: Snapshot) -> Iterator[str]:
    """Yield the differences from the recorded route, and the notes and missing files of the latest step."""
    yield from (f"differs: {with_names(str(difference), cast.names)}" for difference in cast.differences)
    if cast.engine.status in ("waiting", "failed"):
        yield from (f"note: {note}" for note in cast.notes[-3:])
    if cast.steps and cast.steps[-1].missing:
        yield f"reported as created, but missing on disk: {', '.join(cast.steps[-1].missing)}"


def draft_of(cast: Snapshot) -> str | None:
    """Return the draft that is waiting for a person's decision, or None."""
    visit = cast.waiting_at
    return cast.steps[-1].output if visit and visit.mode == "draft" and visit.drafts else None


def _waiting_text(cast: Snapshot) -> str:
    visit = cast.waiting_at
    if visit is None or cast.live.writer is not None:
        return "" if visit is None else f"{cast.names[visit.socket]} is working; the cast is run by {cast.live.writer}"
    name = cast.names[visit.socket]
    if cast.pin_name_of(visit.socket) in cast.lost_pins:
        return f"waiting: {name} is pinned to a function that was lost when its kernel ended; pin it again, or unpin it"
    if cast.graph.sockets[visit.socket].is_utility:
        return f"waiting: {name} was interrupted; use `step` to run it again"
    subject = f"{name} on {short_label(visit.item.label)}" if visit.item else name
    if cast.approvals.asking or cast.approvals.due:
        return f"waiting: {subject} {_call_status(cast)}"
    if visit.mode == "draft" and visit.drafts:
        return f"waiting: {subject} has a draft; use `refine` or `accept`"
    need = "needs an answer"
    if cast.approvals.current is not None:
        need = f"may run this command once: {shorten(cast.approvals.current.exact_content, 200)} (`abort` withdraws the approval)"
    elif visit.mode == "final":
        need = "must still give its final result"
    is_for_user = cast.writable and cast.answered_by(visit.socket) in (None, "person")
    return f"waiting: {subject} {need}; use `reply`{'' if is_for_user else ', or use `step` to ask its agent'}"


def _call_status(cast: Snapshot) -> str:
    if cast.approvals.asking:
        calls = "; ".join(call_line(call) for call in cast.approvals.asking)
        return f"is asking for approval to run {calls}; use `approve`, `approve --always` or `deny`"
    calls = "; ".join(call_line(call) for call in cast.approvals.due)
    return f"has approval to run {calls}; use `step` to continue its agent"


_REQUEST_LABELS: Final = {
    "operation": "operation",
    "scope": "scope",
    "risk_level": "risk",
    "rollback": "rollback",
    "verification": "confirmation",
}  # Labels of the fields that are displayed with a command awaiting approval.


def approval_lines(cast: Snapshot) -> list[str]:
    """Return lines of text that describe the command or the tool calls that are awaiting approval."""
    hold = cast.held
    if hold is None or hold.needs != "approval" or not isinstance(hold.reading.value, dict):
        return [call_line(call) for call in cast.approvals.asking]
    request, lines = request_of(hold.reading.value), []
    if command := request.get("exact_content"):
        lines.append(approval_line("exactly this", str(command)))
        lines += [warning] if (warning := signs_warning(str(command))) else []
    for field, word in _REQUEST_LABELS.items():
        if request and (command or request.get(field)):
            lines.append(f"{word}: {shorten(as_text(request.get(field) or 'not specified'), 300)}")
    return lines


def _hold_lines(cast: Snapshot, hold: Hold, socket: str) -> list[str]:
    needed = {
        "approval": "approve or deny the command",
        "direction": "reply with a direction",
        "question": "answer the question",
        "help": "give the missing information",
    }.get(hold.needs or "", "answer")
    return [
        f"held by {cast.names[socket]} ({hold.action}): {hold.reason}",
        *approval_lines(cast),
        f"to continue: {needed}, accept its output as it is (`accept`), correct it (`edit output`), or abort the cast (`abort`)",
    ]


def _loops_text(cast: Snapshot) -> str:
    """Return the progress of the most recently entered loops, and the number of other loops."""
    entered_phrases, idle = [], []
    for loop, (done, total) in cast.loop_progress.items():
        if total and loop in cast.loops_entered:
            entered_phrases.append(f"loop {loop}: {done} of {total} done")
        elif total:
            idle.append(loop)
    phrases = entered_phrases[-_MAX_LOOPS:]
    if len(entered_phrases) > len(phrases):
        phrases.insert(0, f"{len(entered_phrases) - len(phrases)} earlier loops")
    if idle:
        phrases.append(f"loop {idle[0]}: not started" if len(idle) == 1 else f"{len(idle)} loops not started")
    return ", ".join(phrases)


def overlay_of(cast: Snapshot) -> CastOverlay:
    """Return the marks to draw in the graph of a cast."""
    engine = cast.engine
    visit = cast.waiting_at
    last = cast.steps[-1].decision if cast.steps else None
    chosen = last.chosen if last else None
    route: Route | None = None
    if last is not None and last.socket is not None and last.target is not None:
        route = (last.socket, "end" if chosen is None else chosen.route or chosen.edge_index or 0)
    failed_socket = cast.failed_at[0] if engine.status == "failed" else None
    visit = visit or (engine.at if engine.status == "held" else None)
    current = visit.socket if visit else engine.next if engine.next in cast.graph.sockets else None
    if engine.failure is not None and lanes_at_work(cast.session) is not None:
        current = None  # what comes next is in the lanes that go on, when they do
    visits, lanes_by_socket = Counter(engine.visits), dict[str, tuple[str, ...]]()
    for streams in cast.session.streams:
        for lane in streams.lanes.values():
            visits.update(lane.session.state.visits)
            visits.subtract(lane.session.start.visits)
    lanes_failed = dict[str, tuple[str, ...]]()
    for name, lane_now in cast.lanes.items():
        if lane_now.status == "failed" and (socket := lane_now.now.failed_at[0]):
            lanes_failed[socket] = (*lanes_failed.get(socket, ()), name)
        socket = lane_now.now.next_socket or ""
        if lane_now.status in ("running", "interrupted") and socket in cast.graph.sockets:
            lanes_by_socket[socket] = (*lanes_by_socket.get(socket, ()), name)
            current = None
    latest = _latest(cast)
    return CastOverlay(
        current=current,
        waiting=visit is not None,
        held=engine.status == "held",
        failed=failed_socket,
        visits=dict(visits),
        lanes=lanes_by_socket,
        lanes_failed=lanes_failed,
        traversals=dict(engine.traversals),
        last_route=route,
        progress=cast.loop_progress,
        breakpoints=frozenset(stop.socket for stop in cast.breakpoints if stop.socket and stop.kind != "edge"),
        break_routes=_routes_with_breakpoints(cast),
        warnings=_codes(cast),
        budgets=edge_uses(cast.rules, cast.engine),
        in_item=engine.at is not None and engine.at.item is not None,
        answers={socket: who for socket in cast.graph.sockets if (who := cast.answered_by(socket))},
        pins={socket: cast.pins[pin].words for socket in cast.graph.sockets if (pin := cast.pin_name_of(socket))},
        outputs={socket: summarize_verdict(step, _MAX_OUTPUT_CHARS) for socket, step in latest.items()},
        rejected=frozenset(socket for socket, step in latest.items() if verdict_mark(step) == "✗"),
    )


def _latest(cast: Snapshot) -> dict[str, StepRecord]:
    """Return the latest step of each socket. For joined lanes, this is the step of the lane that was scheduled last."""
    if not cast.session.streams:
        return {step.at.socket: step for step in cast.session.steps if step.turns}
    own_entries = [(step.number, 0, 0, step) for step in cast.steps]
    lane_entries = [
        (streams.step, index if streams.status == "joined" else 0, step.started, step)
        for streams in cast.session.streams
        for index, lane in enumerate(streams.lanes.values())
        for step in lane.session.steps
    ]
    ordered = sorted((entry for entry in (*own_entries, *lane_entries) if entry[3].turns), key=lambda entry: entry[:3])
    return {step.socket: step for *_, step in ordered}


def _routes_with_breakpoints(cast: Snapshot) -> frozenset[Route]:
    """Return the edges and exits on which a breakpoint is set."""
    stops = [stop for stop in cast.breakpoints if stop.kind == "edge"]
    routes = set()
    for link in links(cast.graph) if stops else ():
        target = END if link.target == END_MARKER else link.target
        if link.route is not None and any(stop.is_on_edge(link.source, link.edge_index, target) for stop in stops):
            routes.add(link.route)
    return frozenset(routes)


def _codes(cast: Snapshot) -> dict[str, tuple[str, ...]]:
    """Return the codes of the warnings about a cast by socket; the key "" is for warnings without a socket."""
    codes: dict[str, dict[str, None]] = {}
    for warning in cast.warnings:
        codes.setdefault(warning.socket or "", {})[warning.code] = None
    return {socket: tuple(codes_of_socket) for socket, codes_of_socket in codes.items()}


def steps_view(cast: Snapshot) -> Table:
    """Return a table of the steps of a cast and of its lanes, one per row."""
    table = step_table(cast.all_steps)
    labels = [cast.label_of(step).words for step in cast.all_steps]
    if not any(labels):
        return table
    rows = [(*cells, shorten(label, 80)) for cells, label in zip(table.rows, labels, strict=True)]
    return Table((*table.headers, "label"), rows, "no steps yet")
