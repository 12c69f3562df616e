"""What is said of steps: what came, what was asked, what they handed on, why they went on as they did; and the whole cast as a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING

from materia_nb.cast.formatting import step_table, why_blocks
from materia_nb.cast.snapshot import Snapshot
from materia_nb.cast.views.status import draft_of, lanes_blocks, marks_of, status_lines
from materia_nb.cast.views.tables import FilesView, known_words
from materia_nb.display.blocks import (
    Action,
    Block,
    Code,
    FactTable,
    Fold,
    Heading,
    JsonTree,
    Jump,
    Line,
    Table,
    View,
    blocks_as_html,
    lines,
)
from materia_nb.display.escape import html_page, part, shorten
from materia_nb.display.sections import call_blocks, issue_rows, prompt_blocks, section_blocks
from materia_nb.display.svg import graph_block
from materia_nb.display.text import graph_text
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.prompt_parts import HEADINGS
from materia_nb.engine.session import StepRecord
from materia_nb.engine.state import Usage
from materia_nb.handoff.base import Issue, Pointer, Reading, Section
from materia_nb.store.file_snapshots import FOLDERS
from materia_nb.store.rundir import file_within

if TYPE_CHECKING:
    from materia_nb.engine.session import TurnRecord

_MOST_STEPS = 1_000
_MOST_FILES = 2_000


def step_view(cast: Snapshot, approved: Sequence[str] = (), lane: str = "") -> View:
    """Return the latest step of a cast: its output, the decision made on it, and the status.

    Args:
        cast: the cast.
        approved: what a person has just approved, one line each.
        lane: the lane whose latest step is shown.
    """
    snapshot = cast.lane(lane)
    step = snapshot.steps[-1] if snapshot.steps else None
    blocks: list[Block] = []
    title = ""
    if step is not None:
        why = snapshot.why()
        title = why.title
        if step.shown is not None:
            blocks.append(Code(step.shown, title="output"))
        if step.decision is not None:
            blocks += why_blocks(why)
    blocks += lines((*(f"approved: {line}" for line in approved[:1]), *approved[1:], *status_lines(cast)))
    blocks += call_blocks(snapshot.approvals.asking)
    if snapshot.prompt is not None and not draft_of(snapshot):
        blocks += prompt_blocks(snapshot.prompt)
    return View(title, blocks)


def prompt_view(step: StepRecord, prompt: Prompt, steps: Sequence[StepRecord] = ()) -> View:
    """Return a prompt with each part named, and the prompts of the later turns of a step that is done.

    Args:
        step: the step that the prompt belongs to.
        prompt: the prompt of its first turn, or of one that waits.
        steps: the steps of the cast, to show what differs from the previous visit of the socket.
    """
    blocks, is_first = prompt_blocks(prompt, opened=True), prompt is step.prompt
    for number, turn in enumerate(step.turns[1:] if is_first else [], start=2):
        if turn.prompt:
            text = turn.prompt.text if turn.message is None else turn.message
            blocks.append(Code(text, title=f"turn {number}, {turn.mode}"))
    notes = [counted_tokens(step) if is_first else "", against_last_visit(steps, step, prompt)]
    return View(f"Prompt of s{step.title[1:]}", [*blocks, *lines(filter(None, notes), "quiet")])


def counted_tokens(step: StepRecord) -> str:
    """Say how many tokens were counted for each turn of a step, beside the estimate of its prompt; empty where nobody did."""
    counts = [
        f"turn {number}: {turn.usage.input:,} in, {turn.usage.output or 0:,} out"
        for number, turn in enumerate(step.turns, start=1)
        if turn.usage is not None and turn.usage.input
    ]
    if not counts:
        return ""
    return (
        f"Tokens as counted for the last request of a turn, with all that was sent along: {'; '.join(counts)}"
    )


def against_last_visit(steps: Sequence[StepRecord], step: StepRecord, prompt: Prompt) -> str:
    """Say which parts are other than when the socket of a step was visited before; empty at its first visit, or of a later turn."""
    if not prompt.begins:
        return ""
    earlier = (earlier_step for earlier_step in reversed(steps) if earlier_step.number < step.number)
    last = next(
        (
            earlier_step
            for earlier_step in earlier
            if earlier_step.socket == step.socket and earlier_step.prompt is not None
        ),
        None,
    )
    if last is None or last.prompt is None:
        return ""
    before = {part.name: part.text for part in last.prompt.parts}
    now = {earlier_step.name: earlier_step.text for earlier_step in prompt.parts}
    names = [name for name in HEADINGS if before.get(name, "") != now.get(name, "")]
    changes = [f"{HEADINGS[name]} {len(now.get(name, '')) - len(before.get(name, '')):+,}" for name in names]
    difference = f"{', '.join(changes)} characters; the rest is the same" if changes else "the same"
    return f"Against its visit before, step {last.number}: {difference}."


class HandoffView(View):
    """The handoff of a step; see :func:`handoff_blocks`."""

    def __init__(self, cast: Snapshot, step: StepRecord) -> None:
        super().__init__(f"Handoff of s{step.title[1:]}", handoff_blocks(cast, step))
        self.step = step


def handoff_blocks(cast: Snapshot, step: StepRecord) -> list[Block]:
    """Say what a step handed on: each output as its protocol means it, issues, warnings, requirements, assignments."""
    blocks: list[Block] = [] if step.turns else [Line("no output yet", "quiet")]
    for number, turn in enumerate(step.turns, start=1):
        inside = _turn_blocks(cast, step, turn)
        if number < len(step.turns):
            wrong = turn.reading is not None and bool(turn.reading.issues)
            blocks.append(Fold(f"turn {number}: {turn.mode}", inside, opened=wrong))
        else:
            blocks += [Heading(turn.mode), *inside]
    answered = {id(call) for turn in step.turns for call in turn.calls}
    if unanswered := [call for call in step.calls if id(call) not in answered]:
        blocks += [Heading("tool calls without an answer"), *call_blocks(unanswered)]
    blocks += lines([f"note: {note}" for note in step.notes], "quiet")
    blocks += section_blocks(way_of(cast, step))
    blocks += lines([f"not on the disk, though named as made: {path}" for path in step.missing], "warn")
    decision, required = step.decision, cast.rules.sockets[step.socket].wants
    if decision is not None:
        # Some things are found odd only when the output is applied, such as an update that was not allowed.
        read = {warning.code for warning in step.reading.warnings} if step.reading else set()
        blocks += _warnings([one for one in decision.warnings if one.code not in read])
    if required:
        blocks.append(Table(("required", "what it must be"), list(required.items())))
    if decision is not None and decision.assigned:
        rows = [
            (f"state.{assignment.target}", assignment.source, "yes" if assignment.found else "no")
            for assignment in decision.assigned
        ]
        blocks.append(Table(("assigned to", "from", "there"), rows))
    if step.prompt is not None:
        blocks.append(Fold("what was asked", prompt_blocks(step.prompt)))
    return blocks + lines([f"kept in {step.artifact}"] if step.artifact else [], "quiet")


def _turn_blocks(cast: Snapshot, step: StepRecord, turn: TurnRecord) -> list[Block]:
    """Say one output: what was asked for, who answered, the text, and what was made of it."""
    reading, sections = turn.reading, section_blocks(_sections(cast, step, turn.reading))
    blocks = lines([f"asked for: {turn.message}"] if turn.message is not None else [])
    blocks += lines(_answered_by(turn), "quiet")
    blocks += lines([f"pinned to {turn.pinned}"] if turn.pinned else [], "quiet")
    blocks += call_blocks(turn.calls)
    blocks += [*sections, Fold("as it was written", [Code(turn.text)])] if sections else [Code(turn.text)]
    if reading is None:
        return blocks
    blocks += lines([f"note: {note}" for note in reading.notes], "quiet")
    blocks += _warnings(reading.warnings)
    if reading.issues:
        word = "not done yet" if reading.accepted else "issue"
        blocks.append(Table(("where", word, "what to do"), issue_rows(reading.issues)))
    if isinstance(reading.value, dict):
        blocks.append(
            Fold("the object that was found", [JsonTree(reading.value, opened=2)], opened=not sections)
        )
    return blocks


def _sections(cast: Snapshot, step: StepRecord, reading: Reading | None) -> list[Section]:
    """What a reading means; empty for a protocol without a layout, and for what could not be read."""
    protocol = cast.rules.sockets[step.socket].protocol
    if reading is None or not isinstance(reading.value, dict):
        return []
    return protocol.layout(reading.value, partial(file_within, project=cast.project, run_dir=cast.run_dir))


def way_of(cast: Snapshot, step: StepRecord) -> list[Section]:
    """Return the way through statuses that a visit took, in a protocol that has them."""
    protocol = cast.rules.sockets[step.socket].protocol
    return protocol.status_sections([turn.reading for turn in step.turns if turn.reading is not None])


def _warnings(warnings: Sequence[Issue]) -> list[Block]:
    """What is odd about an output without being a reason to refuse it."""
    return (
        [Table(("where", "warning"), [(warning.path, warning.message) for warning in warnings])]
        if warnings
        else []
    )


def _answered_by(turn: TurnRecord) -> list[str]:
    """Say which model answered, and for how many tokens; nothing where neither is known."""
    facts, model = [], turn.meta.get("model")
    if isinstance(model, str):
        from_recording = ", from a recording" if turn.meta.get("recorded") is True else ""
        facts.append(f"answered by {part(model)}{from_recording}")
    tried = turn.meta.get("attempt")
    if isinstance(tried, dict):
        facts.append(
            f"attempt {part(tried.get('number'))} of {part(tried.get('of'))}, by {part(tried.get('agent'))}"
        )
    used = reduce(Usage.plus, (usage for usage in (*turn.spent, turn.usage) if usage is not None), Usage())
    if used.tokens:
        other_tokens = f" ({used.apart_words})" if used.apart_words else ""
        facts.append(f"{known_words(used.input)} tokens in, {known_words(used.output)} out{other_tokens}")
    elif used.tokens is None and (facts or "program" in turn.meta):
        facts.append("tokens unknown")
    return ["; ".join(facts)] if facts else []


# -- the page ------------------------------------------------------------------------------------


def cast_page_html(cast: Snapshot) -> str:
    """Return one static HTML page about the whole cast; of a long one the last 1,000 steps."""
    return html_page(
        f"Cast {part(cast.id, 80)}: {part(cast.graph.name, 80)}", blocks_as_html(_page_blocks(cast))
    )


def _page_blocks(cast: Snapshot) -> list[Block]:
    failure, steps = cast.failure, cast.all_steps[-_MOST_STEPS:]
    facts = [("request", cast.request), *(("how it stands", line) for line in status_lines(cast))]
    blocks: list[Block] = [FactTable(facts), *([Code(failure.message)] if failure else [])]
    blocks += [Heading("Graph"), graph_block(cast.graph, marks_of(cast))]
    blocks.append(Fold("Graph as text", [Code(graph_text(cast.graph, marks_of(cast)), max_chars=200_000)]))
    if cast.lanes:
        blocks += [
            Heading("Lanes"),
            *(block for block in lanes_blocks(cast) if not isinstance(block, Action)),
        ]
    blocks.append(Heading("Timeline"))
    if left_out := len(cast.all_steps) - len(steps):
        blocks.append(Line(f"{left_out:,} earlier steps are not shown."))
    timeline = step_table(steps, cast.graph)
    anchors = [
        f"lane-step-{index}" if step.lane else f"step-{step.number}" for index, step in enumerate(steps)
    ]
    linked = [
        (Jump(str(row[0]), anchor), *row[1:]) for anchor, row in zip(anchors, timeline.rows, strict=True)
    ]
    blocks += [Table(timeline.headers, linked, timeline.empty), Heading("Steps")]
    blocks += [
        _page_step(cast.maker_of(step), step, anchor) for step, anchor in zip(steps, anchors, strict=True)
    ]
    blocks += [Heading("State at the end"), JsonTree(dict(cast.state))]
    if cast.session.keeps:
        blocks += [Heading("Files"), *FilesView(cast).in_words()]
    files = sorted(
        path.relative_to(cast.run_dir)
        for path in cast.run_dir.rglob("*")
        if path.is_file() and path.relative_to(cast.run_dir).parts[0] not in FOLDERS
    )
    pointers = [(path.parts[0], Pointer(path.as_posix(), path.as_posix())) for path in files[:_MOST_FILES]]
    return [*blocks, Heading("Artifacts"), Table(("what", "file"), pointers)] if pointers else blocks


def _page_step(cast: Snapshot, step: StepRecord, anchor: str) -> Block:
    """One step, folded; a failed one is open."""
    events = [
        f"{one.severity}: {one.name}" + (f": {one.message}" if one.message else "") for one in step.events
    ]
    event_blocks = [Heading("Events"), *lines(shorten(event, 400) for event in events)] if events else []
    inside = [Heading("Why it went there"), *why_blocks(cast.why(step.number))]
    inside += [Code(step.shown, title="Output")] if step.shown is not None else []
    inside += [*handoff_blocks(cast, step), *event_blocks]
    failed = step.decision is not None and step.decision.failure is not None
    return Fold(step.title, inside, opened=failed, anchor=anchor)
