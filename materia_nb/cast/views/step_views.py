"""Steps of a cast: what came, what was asked, what it handed on, why it went on as it did; and the whole cast as a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from materia_nb.cast.listing import way_words
from materia_nb.cast.snapshot import Snapshot
from materia_nb.cast.views.status import draft_of, marks_of, status_lines
from materia_nb.cast.views.tables import known_words
from materia_nb.display.bundle import SHOWN_CHARS, Shown, bounded, bundle
from materia_nb.display.escape import (
    Html,
    clip,
    html_fold,
    html_heading,
    html_join,
    html_json,
    html_lines,
    html_panel,
    html_pre,
    html_table,
    part,
    shorten,
)
from materia_nb.display.page import CastPage, PageStep, cast_page
from materia_nb.display.sections import (
    calls_html,
    calls_text,
    parts_html,
    parts_text,
    sections_html,
    sections_text,
)
from materia_nb.display.svg import graph_svg
from materia_nb.display.text import graph_text, table
from materia_nb.engine.conversation import ToolCall
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.session import StepRecord
from materia_nb.engine.state import Usage
from materia_nb.errors import MateriaError
from materia_nb.handoff import translate
from materia_nb.handoff.capabilities import LaysOut, Section, ShowsTheWay
from materia_nb.handoff.protocol import Issue, Reading, as_text
from materia_nb.insight.why import HEADERS, THOUGHT, Why
from materia_nb.jsonvalue import MISSING, get_path, pretty
from materia_nb.outgoing import plain
from materia_nb.store.side_files import file_within

if TYPE_CHECKING:
    from materia_nb.engine.session import TurnRecord


class StepView(Shown):
    """The latest step of a cast: what came, what was made of it, where it goes.

    ``approved`` is what a person has consented to, for the step to go on.
    """

    def __init__(self, cast: Snapshot, approved: Sequence[str] = ()) -> None:
        self.status = (*(f"approved: {line}" for line in approved[:1]), *approved[1:], *status_lines(cast))
        self.step = cast.steps[-1] if cast.steps else None
        self.why = cast.why() if self.step else None
        self.asking = cast.approvals.asking
        self.prompt = None if draft_of(cast) else cast.prompt

    def __repr__(self) -> str:
        lines = self._lines()
        if self.prompt is not None:
            lines += ["", "\n\n".join(parts_text(self.prompt, brief=True))]
        return "\n".join(plain(line) for line in lines)

    def _lines(self) -> list[str]:
        step = self.step
        if step is None or self.why is None:
            return list(self.status)
        lines = [self.why.title]
        if step.shown is not None:
            lines.append(f"  output: {shorten(step.shown, 200)}")
        if step.decision is not None:
            lines += [f"  {line}" for line in self.why.lines]
        return lines + list(self.status)

    def _show(self) -> dict[str, Any]:
        step, status = self.step, [html_lines(self.status)]
        if step is None or self.why is None:
            return bundle(repr(self), html=html_panel("cast", html_join(status)))
        parts: list[Html] = []
        if step.shown is not None:
            parts.append(html_pre(step.shown, SHOWN_CHARS))
        if step.decision is not None:
            parts += _why_html(self.why)
        if self.prompt is not None:
            parts += parts_html(self.prompt, folded=True)
        if self.asking:
            status.append(calls_html(self.asking, opened=True))
        return bundle(repr(self), html=html_panel(self.why.title, html_join(parts + status)))


class PromptView(Shown):
    """A prompt with each layer named.

    Of a step that is done, also what its agent was asked in later turns; ``later`` are kind and text of these.
    """

    def __init__(self, step: StepRecord, prompt: Prompt) -> None:
        self.prompt = prompt
        self.title = f"Prompt of step {step.number}: {step.socket}, visit {step.visit}"
        turns = step.turns[1:] if prompt is step.prompt else []
        asked = [
            (turn.mode, turn.prompt.text if turn.message is None else turn.message)
            for turn in turns
            if turn.prompt
        ]
        self.later = [(f"turn {number}, {mode}", text) for number, (mode, text) in enumerate(asked, start=2)]

    def __repr__(self) -> str:
        parts = [self.title, *parts_text(self.prompt)]
        parts += [f"[{name}]\n{bounded(text)}" for name, text in self.later]
        return plain("\n\n".join(parts))

    def __str__(self) -> str:
        return self.prompt.text

    def _show(self) -> dict[str, Any]:
        parts = parts_html(self.prompt)
        for name, text in self.later:
            parts += [html_heading(name), html_pre(text, SHOWN_CHARS)]
        return bundle(repr(self), html=html_panel(self.title, html_join(parts)))


class WhyView(Shown, Why):
    """Why a step went where it went, as the value of a cell."""

    __slots__ = ()

    @classmethod
    def of(cls, why: Why) -> WhyView:
        """Show what explains a step."""
        return cls(why.title, why.lines, why.rows, why.decision, why.thinking)

    def _show(self) -> dict[str, Any]:
        text = f"{self}\n{table(self.rows, HEADERS)}" if self.rows else str(self)
        return bundle(plain(text), html=html_panel(self.title, html_join(_why_html(self))))


def _why_html(why: Why) -> list[Html]:
    """The reasons of a step, and a table of the edges and exits that were looked at."""
    thought = [html_fold(THOUGHT, html_pre(why.thinking, SHOWN_CHARS))] if why.thinking else []
    return [html_lines(why.lines), *([html_table(HEADERS, why.rows)] if why.rows else []), *thought]


def cast_page_html(cast: Snapshot) -> str:
    """Return one static HTML page about the whole cast."""
    failure = cast.failure
    files = sorted(path.relative_to(cast.run_dir) for path in cast.run_dir.rglob("*") if path.is_file())
    return cast_page(
        CastPage(
            cast_id=cast.id,
            loadout=cast.graph.name,
            request=cast.request,
            status=f"{cast.status}, with remarks" if cast.remarks else cast.status,
            failure=failure.message if failure else None,
            svg=graph_svg(cast.graph, marks_of(cast)),
            graph_text=graph_text(cast.graph, marks_of(cast)),
            steps=[_page_step(cast, step) for step in cast.steps],
            state=dict(cast.state),
            artifacts=[(path.parts[0], path.as_posix()) for path in files[:2_000]],
            facts=[("how it stands", line) for line in status_lines(cast)],
        )
    )


def _page_step(cast: Snapshot, step: StepRecord) -> PageStep:
    reading = step.reading
    parsed = reading.value if reading is not None and isinstance(reading.value, dict) else MISSING
    return PageStep(
        number=step.number,
        socket=step.socket,
        visit=step.visit,
        materia=cast.graph.sockets[step.socket].materia.label,
        outcome=way_words(step),
        item_key=step.item_key,
        item_label=step.item_label,
        output=step.shown or "",
        parsed=parsed,
        decision_lines=cast.why(step.number).lines,
        prompt=tuple((part.heading, part.text) for part in step.prompt.parts if part.text)
        if step.prompt
        else (),
        artifact=step.artifact,
        thinking=step.thinking,
        events=[
            f"{one.severity}: {one.name}" + (f": {one.message}" if one.message else "") for one in step.events
        ],
    )


class HandoffView(Shown):
    """What a step handed on: raw, as its protocol means it, issues, remarks, requirements, assignments."""

    def __init__(self, cast: Snapshot, step: StepRecord) -> None:
        self.step = step
        here = cast.rules.sockets[step.socket]
        self.wanted, self._protocol = here.wants, here.protocol
        self.title = f"Handoff of step {step.number}: {step.socket}, visit {step.visit}"
        self._find = partial(file_within, project=cast.project, run_dir=cast.run_dir)

    def __repr__(self) -> str:
        lines = [self.title]
        for turn in self.step.turns:
            lines += self._turn_lines(turn, whole=turn is self.step.turns[-1])
        if not self.step.turns:
            lines.append("  no output yet")
        lines += [f"  without an answer: {line}" for line in calls_text(self._loose_calls())]
        lines += [f"  note: {note}" for note in self.step.notes]
        lines += sections_text(self.way())
        lines += [f"  not on the disk, though named as made: {path}" for path in self.step.missing]
        lines += [f"  remark: {one.message}" for one in self._later_warnings()]
        lines += [f"  required: {name}: {meaning}" for name, meaning in self.wanted.items()]
        lines += [
            f"  assigned: state.{one.target} from {one.source}{'' if one.found else ' (not there)'}"
            for one in self._assigned()
        ]
        return "\n".join(plain(line) for line in lines)

    def _turn_lines(self, turn: TurnRecord, *, whole: bool) -> list[str]:
        """Say what a turn handed on; of an earlier one, whose output was not the last word, only the head."""
        reading, sections = turn.reading, self.sections(turn.reading)
        lines = [f"  asked for: {shorten(turn.message, 300)}"] if turn.message is not None else []
        lines += [f"  {line}" for line in _answered_by(turn)]
        lines += [f"  tool: {line}" for line in calls_text(turn.calls)]
        lines += [f"  {turn.mode}:"] if sections else [f"  {turn.mode}: {shorten(turn.text, 300)}"]
        lines += sections_text(sections if whole else sections[:1], "    ")
        if reading is None:
            return lines
        lines += [f"  note: {note}" for note in reading.notes]
        lines += [f"  remark: {one.message}" for one in reading.warnings]
        said = "not done yet: " if reading.accepted else ""
        lines += [f"  {said}{issue.line}" for issue in reading.issues]
        return lines

    def _show(self) -> dict[str, Any]:
        parts: list[Html] = []
        for turn in self.step.turns:
            parts += self._turn_html(turn, whole=turn is self.step.turns[-1])
        if loose := self._loose_calls():
            parts += [html_heading("tool calls without an answer"), calls_html(loose)]
        parts.append(html_lines(self.step.notes))
        gone = [f"not on the disk, though named as made: {path}" for path in self.step.missing]
        parts += [sections_html(self.way()), html_lines(gone), _remarks(self._later_warnings())]
        wanted = list(self.wanted.items())
        if wanted:
            parts.append(html_table(("required", "what it must be"), wanted))
        if self._assigned():
            rows = [
                (f"state.{one.target}", one.source, "yes" if one.found else "no") for one in self._assigned()
            ]
            parts.append(html_table(("assigned to", "from", "there"), rows))
        if not self.step.turns:
            parts.insert(0, html_lines(["no output yet"]))
        if self.step.prompt is not None:
            parts.append(html_fold("what was asked", html_join(parts_html(self.step.prompt, folded=True))))
        return bundle(repr(self), html=html_panel(self.title, html_join(parts)))

    def _turn_html(self, turn: TurnRecord, *, whole: bool) -> list[Html]:
        reading, sections = turn.reading, self.sections(turn.reading)
        asked = [] if turn.message is None else [f"asked for: {turn.message}"]
        parts = [html_heading(turn.mode), html_lines(asked), calls_html(turn.calls)]
        raw = html_pre(turn.text, SHOWN_CHARS)
        parts.append(html_lines(_answered_by(turn)))
        if sections:
            rest = sections_html(sections[1:])
            parts += [sections_html(sections[:1]), rest if whole else html_fold("more", rest)]
            parts.append(html_fold("as it was written", raw))
        else:
            parts.append(raw)
        if reading is None:
            return parts
        parts += [html_lines(reading.notes), _remarks(reading.warnings)]
        if reading.issues:
            rows = [(issue.path, issue.message, issue.fix) for issue in reading.issues]
            word = "not done yet" if reading.accepted else "issue"
            parts.append(html_table(("where", word, "what to do"), rows))
        if isinstance(reading.value, dict):
            tree = html_json(reading.value, 2)
            parts.append(html_fold("the object", tree) if sections else tree)
        return parts

    def _loose_calls(self) -> list[ToolCall]:
        """The calls of turns that gave no output: one that failed, or waits."""
        answered = {id(call) for turn in self.step.turns for call in turn.calls}
        return [call for call in self.step.calls if id(call) not in answered]

    def sections(self, reading: Reading | None) -> list[Section]:
        """What a reading means; empty for a protocol without a layout, and for what could not be read."""
        if not isinstance(self._protocol, LaysOut) or reading is None or not isinstance(reading.value, dict):
            return []
        return self._protocol.layout(reading.value, self._find)

    def way(self) -> list[Section]:
        """The way through statuses that this visit took, in a protocol that has them."""
        if not isinstance(self._protocol, ShowsTheWay):
            return []
        return self._protocol.way([turn.reading for turn in self.step.turns if turn.reading is not None])

    def _later_warnings(self) -> list[Issue]:
        """What was found odd only when the output was applied, such as an update that was not allowed."""
        told = {one.code for one in self.step.reading.warnings} if self.step.reading else set()
        decision = self.step.decision
        return [one for one in decision.warnings if one.code not in told] if decision else []

    def _assigned(self) -> Sequence[Any]:
        return self.step.decision.assigned if self.step.decision else ()


def _answered_by(turn: TurnRecord) -> list[str]:
    """Say which model answered, and for how many tokens; nothing where neither is known."""
    said, model = [], turn.meta.get("model")
    if isinstance(model, str):
        again = ", from a recording" if turn.meta.get("recorded") is True else ""
        said.append(f"answered by {part(model)}{again}")
    tried = turn.meta.get("attempt")
    if isinstance(tried, dict):
        said.append(
            f"attempt {part(tried.get('number'))} of {part(tried.get('of'))}, by {part(tried.get('agent'))}"
        )
    used = reduce(Usage.plus, (one for one in (*turn.spent, turn.usage) if one is not None), Usage())
    if used.tokens:
        said.append(f"{known_words(used.input)} tokens in, {known_words(used.output)} out")
    elif used.tokens is None and (said or "program" in turn.meta):
        said.append("tokens unknown")
    return ["; ".join(said)] if said else []


def _remarks(warnings: Sequence[Issue]) -> Html:
    """What is odd about an output without being a reason to refuse it."""
    if not warnings:
        return Html()
    return html_table(("where", "remark"), [(one.path, one.message) for one in warnings])


class TranslationView(Shown):
    """The handoff of a step in one protocol.

    Attributes:
        value: the object in that protocol.
        lost: the paths of the original that it cannot hold, each with what stood there.

    Raises:
        MateriaError: the step has no output (``no_output``), its output is no object (``not_an_object``),
            or there is no such protocol (``unknown_protocol``).
    """

    def __init__(self, cast: Snapshot, step: StepRecord, to: str) -> None:
        reading = step.reading
        if reading is None:
            raise MateriaError(
                f"Step {step.number} has no output that was read.", hint="step first", kind="no_output"
            )
        spoken = cast.rules.sockets[step.socket].protocol.name
        self.value, lost = translate(reading.value, frm=spoken, to=to)
        self.lost = [(path, _at(reading.value, path)) for path in lost]
        self.name = to
        self.title = f"Step {step.number}, {step.socket}: {spoken} as {to}"

    def __repr__(self) -> str:
        lines = [self.title, *(f"  lost: {path}: {text}" for path, text in self.lost)]
        if not self.lost:
            lines.append("  nothing is lost")
        return plain("\n".join([*lines, clip(pretty(self.value), SHOWN_CHARS)]))

    def _show(self) -> dict[str, Any]:
        return bundle(repr(self), html=html_panel(self.title, self.body()))

    def body(self) -> Html:
        """Return the object and what is lost as HTML, without a frame."""
        told = (
            html_table(("lost", "what it said"), self.lost) if self.lost else html_lines(["nothing is lost"])
        )
        return html_join([told, html_json(self.value, 2)])


def _at(value: Any, path: str) -> str:
    found = get_path(value, path.split(".")[1:])
    return "" if found is MISSING else clip(as_text(found), 400)
