"""What a person sees: each view holds values, and shows them as text, SVG or escaped HTML.

Views know nothing of a kernel; IPython asks them for a MIME bundle. Their text is
stable from run to run (no ids, no times), since notebooks are compared by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from materia_nb.display.bundle import GraphPicture, Shown, bundle, picture
from materia_nb.display.calls import call_words, calls_html, judged_words, layers_html, layers_text
from materia_nb.display.escape import plain, shorten
from materia_nb.display.html import (
    Html,
    html_alert,
    html_join,
    html_json,
    html_lines,
    html_panel,
    html_pre,
    html_table,
    html_text,
)
from materia_nb.display.marks import Marks
from materia_nb.display.page import CastPage, PageStep, cast_page
from materia_nb.display.svg import graph_svg
from materia_nb.display.text import graph_text, table
from materia_nb.engine.items import list_at
from materia_nb.engine.routing import edge_use
from materia_nb.engine.step import short
from materia_nb.errors import MateriaError
from materia_nb.handoff.contract import request_of
from materia_nb.insight.why import HEADERS
from materia_nb.jsonvalue import JSON, MISSING, compact, pretty
from materia_nb.loadout.graph import END, Graph
from materia_nb.loadout.report import Report

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.conversation import MateriaEvent
    from materia_nb.engine.outcome import Remark
    from materia_nb.engine.prompt import Prompt
    from materia_nb.engine.session import StepRecord
    from materia_nb.engine.state import Hold
    from materia_nb.insight.why import Why

SHOWN_CHARS: Final = 4_000
"""How much of a text a view shows; the whole is in the artifact."""


CONCLUSION_LINES: Final = 40
CONCLUSION_CHARS: Final = 1_000
"""How much a status shows of what the agents say at the end."""
_REMARKS_SHOWN: Final = 8


class Text(Shown):
    """Plain text, shown as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return plain(self.text)

    def __str__(self) -> str:
        return self.text

    def _show(self) -> dict[str, Any]:
        return bundle(repr(self))


class Table(Shown):
    """Rows under headers; ``rows`` are the values to work with."""

    def __init__(self, headers: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "(none)") -> None:
        self.headers, self.rows, self.empty = tuple(headers), [tuple(row) for row in rows], empty

    def __repr__(self) -> str:
        return table(self.rows, self.headers) if self.rows else self.empty

    def __len__(self) -> int:
        return len(self.rows)

    def _show(self) -> dict[str, Any]:
        html = html_table(self.headers, self.rows) if self.rows else None
        return bundle(repr(self), html=html)


class EventsView(Table):
    """What outputs told beside their handoff; iterating gives the events themselves (R39)."""

    def __init__(self, events: Sequence[MateriaEvent]) -> None:
        self.events = tuple(events)
        rows = [
            (
                str(one.sequence),
                str(one.step),
                one.socket,
                f"{one.item_key} {short(one.item_label or '', 40)}" if one.item_key is not None else "",
                one.severity,
                shorten(one.type, 80),
                shorten(one.message, 200),
                shorten(one.source, 80),
                "" if one.payload is None else shorten(compact(one.payload), 200),
            )
            for one in self.events
        ]
        super().__init__(_EVENT_COLUMNS, rows, "no output told an event")

    def __iter__(self) -> Iterator[MateriaEvent]:
        return iter(self.events)

    def __getitem__(self, place: int) -> MateriaEvent:
        return self.events[place]


_EVENT_COLUMNS: Final = (
    "event",
    "step",
    "socket",
    "item",
    "severity",
    "type",
    "message",
    "source",
    "payload",
)


class JsonView(Shown):
    """A JSON value under its name, as a tree that opens and closes."""

    def __init__(self, name: str, value: JSON) -> None:
        self.name, self.value = name, value

    def __repr__(self) -> str:
        text = pretty(self.value)
        return f"{plain(self.name)} = {plain(_bounded(text))}"

    def _show(self) -> dict[str, Any]:
        return bundle(repr(self), html=html_panel(self.name, html_json(self.value, open_depth=2)))


class ReportView(Shown):
    """The problems of a loadout and, apart from them, the hints."""

    def __init__(self, name: str, report: Report) -> None:
        self.name, self.report = name, report

    def __repr__(self) -> str:
        report = self.report
        lines = [
            f"{plain(self.name)}: {_count(len(report.problems), 'problem')}, {_count(len(report.hints), 'hint')}"
        ]
        lines += [f"  problem {plain(_finding(one))}" for one in report.problems]
        lines += [f"  hint    {plain(_finding(one))}" for one in report.hints]
        return "\n".join(lines)

    def _show(self) -> dict[str, Any]:
        rows = [
            ("problem", one.code, one.source, one.message, one.hint or "") for one in self.report.problems
        ]
        rows += [("hint", one.code, one.source, one.message, one.hint or "") for one in self.report.hints]
        html = html_table(("", "code", "where", "what", "what to do"), rows) if rows else None
        return bundle(repr(self), html=html)


def _finding(one: Any) -> str:
    advice = f" ({one.hint})" if one.hint else ""
    return f"{one.code} at {one.source}: {one.message}{advice}"


class LoadoutView(Shown):
    """A loadout: its graph, or its problems when it cannot be cast."""

    def __init__(
        self, name: str, origin: str, graph: Graph | None, report: Report, notes: Sequence[str] = ()
    ) -> None:
        self.name, self.origin, self.graph, self.report = name, origin, graph, report
        self.notes = tuple(notes)

    def noting(self, *notes: str) -> LoadoutView:
        """Return the same view with lines that a person must not overlook."""
        return LoadoutView(self.name, self.origin, self.graph, self.report, (*self.notes, *notes))

    @property
    def picture(self) -> GraphPicture:
        """The graph as ``svg``, ``text`` and ``mermaid`` source; raises MateriaError when there are problems."""
        if self.graph is None:
            raise MateriaError(
                f"The loadout {self.name!r} has problems, so there is no graph of it.",
                hint="check shows them",
            )
        return GraphPicture(self.graph)

    def __repr__(self) -> str:
        notes = [plain(note) for note in self.notes]
        if self.graph is None:
            return "\n".join([*notes, repr(ReportView(self.name, self.report))])
        lines = [f"{plain(self.name)} (from {plain(self.origin)})", *notes, graph_text(self.graph, Marks())]
        if self.report.hints:
            lines.append(f"{_count(len(self.report.hints), 'hint')}: %materia check shows them")
        return "\n".join(lines)

    def _show(self) -> dict[str, Any]:
        if self.graph is None:
            report = ReportView(self.name, self.report)._repr_mimebundle_()
            alert = html_alert(self.notes) if self.notes else Html()
            return bundle(repr(self), html=f"{alert}{report.get('text/html', '')}")
        svg = graph_svg(self.graph, Marks())
        # Where there is HTML the picture beside it is not drawn, so it stands in it.
        html = f"{html_alert(self.notes)}{svg}" if self.notes else None
        return picture(repr(self), svg, html=html)


class CastView(Shown):
    """The picture of a cast: its graph with what happened on it, and its status as text."""

    def __init__(self, cast: Snapshot) -> None:
        self.lines = status_lines(cast)
        self.graph, self.marks = cast.graph, marks_of(cast)

    def __repr__(self) -> str:
        return "\n".join(plain(line) for line in self.lines)

    def _show(self) -> dict[str, Any]:
        return picture(repr(self), graph_svg(self.graph, self.marks))


class StatusView(Shown):
    """How a cast stands, what comes next, and what a person can do."""

    def __init__(self, cast: Snapshot, pause: str | None = None, changed: Sequence[str] = ()) -> None:
        self.lines = status_lines(cast, pause, changed)
        self.steps = steps_view(cast)
        self.draft = _draft(cast)
        self.asking = cast.approvals.asking
        self.prompt = None if self.draft else cast.prompt

    def __repr__(self) -> str:
        lines = list(self.lines)
        if self.draft:
            lines += ["", "draft:", _bounded(self.draft)]
        if self.prompt is not None:
            lines += ["", "\n\n".join(layers_text(self.prompt, brief=True))]
        return "\n".join(plain(line) for line in lines)

    def _show(self) -> dict[str, Any]:
        parts = _lines(self.lines)
        if self.steps.rows:
            parts.append(html_table(self.steps.headers, self.steps.rows[-12:]))
        if self.asking:
            parts.append(calls_html(self.asking, opened=True))
        if self.draft:
            parts += [_heading("draft"), html_pre(self.draft, SHOWN_CHARS)]
        if self.prompt is not None:
            parts += layers_html(self.prompt, folded=True)
        return bundle(repr(self), html=html_panel("cast", html_join(parts)))


class StepView(Shown):
    """The latest step of a cast: what came, what was made of it, where it goes."""

    def __init__(self, cast: Snapshot) -> None:
        self.status = status_lines(cast)
        self.step = cast.steps[-1] if cast.steps else None
        self.why = cast.why() if self.step else None
        self.asking = cast.approvals.asking
        self.prompt = None if _draft(cast) else cast.prompt

    def __repr__(self) -> str:
        lines = self._lines()
        if self.prompt is not None:
            lines += ["", "\n\n".join(layers_text(self.prompt, brief=True))]
        return "\n".join(plain(line) for line in lines)

    def _lines(self) -> list[str]:
        step = self.step
        if step is None or self.why is None:
            return list(self.status)
        lines = [self.why.title]
        if step.output is not None:
            lines.append(f"  output: {shorten(step.output, 200)}")
        if step.decision is not None:
            lines += [f"  {line}" for line in self.why.lines]
        return lines + list(self.status)

    def _show(self) -> dict[str, Any]:
        step, status = self.step, _lines(self.status)
        if step is None or self.why is None:
            return bundle(repr(self), html=html_panel("cast", html_join(status)))
        parts: list[Html] = []
        if step.output is not None:
            parts.append(html_pre(step.output, SHOWN_CHARS))
        if step.decision is not None:
            parts += _lines(self.why.lines)
            if self.why.rows:
                parts.append(html_table(HEADERS, self.why.rows))
        if self.prompt is not None:
            parts += layers_html(self.prompt, folded=True)
        if self.asking:
            status.append(calls_html(self.asking, opened=True))
        return bundle(repr(self), html=html_panel(self.why.title, html_join(parts + status)))


class PromptView(Shown):
    """A prompt with each layer named.

    Of a step that is done, also what its agent was asked in later turns; ``later`` are kind and text of these.
    ``folded`` shuts the layer about the cast.
    """

    def __init__(self, step: StepRecord, prompt: Prompt, *, folded: bool = False) -> None:
        self.prompt = prompt
        self._folded = folded
        self.title = f"Prompt of step {step.number}: {step.socket}, visit {step.visit}"
        turns = step.turns[1:] if prompt is step.prompt else []
        asked = [
            (turn.mode, turn.prompt.text if turn.message is None else turn.message)
            for turn in turns
            if turn.prompt
        ]
        self.later = [(f"turn {number}, {mode}", text) for number, (mode, text) in enumerate(asked, start=2)]

    def __repr__(self) -> str:
        parts = [self.title, *layers_text(self.prompt)]
        parts += [f"[{name}]\n{_bounded(text)}" for name, text in self.later]
        return plain("\n\n".join(parts))

    def __str__(self) -> str:
        return self.prompt.text

    def _show(self) -> dict[str, Any]:
        return bundle(repr(self), html=html_panel(self.title, html_join(self._parts())))

    def _parts(self) -> list[Html]:
        later = [(_heading(name), html_pre(text, SHOWN_CHARS)) for name, text in self.later]
        return [*layers_html(self.prompt, folded=self._folded), *(part for pair in later for part in pair)]


class WhyView(Shown):
    """Why a step went where it went."""

    def __init__(self, why: Why) -> None:
        self.why = why

    def __repr__(self) -> str:
        text = str(self.why)
        if self.why.rows:
            text += "\n" + table(self.why.rows, HEADERS)
        return plain(text)

    def _show(self) -> dict[str, Any]:
        parts = _lines(self.why.lines)
        if self.why.rows:
            parts.append(html_table(HEADERS, self.why.rows))
        return bundle(repr(self), html=html_panel(self.why.title, html_join(parts)))


# -- what several views need ------------------------------------------------------------


def status_lines(cast: Snapshot, pause: str | None = None, changed: Sequence[str] = ()) -> tuple[str, ...]:
    """Say how a cast stands, one line a fact, the last one what to do next.

    Args:
        cast: which.
        pause: why a run stopped here, if one did.
        changed: the watched paths that made it stop.
    """
    now = cast.now
    lines = [*_standing(cast), *_remarks(cast.remarks), *cast.messages, *_pinned(cast), *_remarked(cast)]
    if cast.stopping is not None:
        return (*lines, f"stopping, {cast.stopping}")
    failure = now.failure
    if failure is not None:
        lines.append(f"{failure.kind}: {failure.message}")
        if tried := tried_words(cast):
            lines.append(tried)
        if failure.hint:
            lines.append(f"to go on: {failure.hint}")
    elif now.hold is not None and now.at is not None:
        lines += _held_for(now.hold, now.at.socket)
    elif now.status == "waiting":
        lines.append(_waiting_for(cast))
    elif now.status == "ready":
        because = {"breakpoint": " (breakpoint)", "until": " (as asked)"}.get(pause or "", "")
        if pause == "breakpoint" and changed:
            because = f" (breakpoint: {', '.join(f'state.{path}' for path in changed)} changed)"
        lines.append(
            f"next: {now.next}{because}" if now.next != END else "next: end (step or run completes the cast)"
        )
    elif now.status == "complete":
        lines += _concluded(cast)
    return tuple(lines)


def _standing(cast: Snapshot) -> list[str]:
    """How far a cast is, and what it has used."""
    now = cast.now
    stands = f"{now.status}, with remarks," if cast.remarks else now.status
    lines = [f"{cast.graph.name}: {stands} after {_count(len(cast.steps), 'step')}"]
    said = cast.said_of().words
    done = [
        f"loop {loop}: {done} of {total} done" for loop, (done, total) in loop_progress(cast).items() if total
    ]
    if done:
        lines[0] += f" ({', '.join(done)})"
    if now.usage.tokens:
        most = f" of {now.budget.max_tokens}" if now.budget.max_tokens is not None else ""
        lines.append(f"tokens: {now.usage.tokens}{most}")
    return [*lines, shorten(said, 200)] if said else lines


def _remarks(odd: Sequence[Remark]) -> Iterator[str]:
    """What is odd about a complete cast (R45)."""
    yield from (f"remark: {one}" for one in odd[:_REMARKS_SHOWN])
    if len(odd) > _REMARKS_SHOWN:
        yield f"and {len(odd) - _REMARKS_SHOWN} more remarks (cast.remarks)"


def _concluded(cast: Snapshot) -> Iterator[str]:
    """What the agents tell a person at the end, and that there is something to remember."""
    told = cast.conclusion
    yield from (shorten(line, CONCLUSION_CHARS) for line in told[:CONCLUSION_LINES])
    if len(told) > CONCLUSION_LINES:
        yield f"and {_count(len(told) - CONCLUSION_LINES, 'more line')}: cast.conclusion has all"
    left = sum(not one.kept for one in cast.suggestions)
    if left:
        yield f"{_count(left, 'suggestion')} to keep: %materia suggestions"


def _pinned(cast: Snapshot) -> Iterator[str]:
    """What is pinned, and which functions are gone (R40)."""
    gone = cast.pins_gone if cast.writable else ()
    for name, pin in cast.pins.items():
        lost = ", which is gone with its kernel: pin it again, or unpin it" if name in gone else ""
        yield f"pinned: {name} to {pin.words}{lost}"


def tried_words(cast: Snapshot) -> str:
    """Say how often the socket was tried where a cast failed; empty when once."""
    step = cast.steps[-1] if cast.steps and cast.now.failure is not None and cast.now.at is not None else None
    return f"tried {step.tries} times" if step is not None and step.tries > 1 else ""


def _remarked(cast: Snapshot) -> Iterator[str]:
    """What is odd about a recording, and about the latest step."""
    yield from (f"differs: {difference}" for difference in cast.differences)
    if cast.now.status in ("waiting", "failed"):
        yield from (f"note: {note}" for note in cast.notes[-3:])
    if cast.steps and cast.steps[-1].missing:
        yield f"not on the disk, though named as made: {', '.join(cast.steps[-1].missing)}"


def _draft(cast: Snapshot) -> str | None:
    """The draft that a person is to judge, None when there is none."""
    visit = cast.waiting_at
    return cast.steps[-1].output if visit and visit.mode == "draft" and visit.drafts else None


def _waiting_for(cast: Snapshot) -> str:
    visit = cast.waiting_at
    if visit is None:
        return ""
    socket = cast.graph.sockets[visit.socket]
    if cast.pinned_at(visit.socket) in cast.pins_gone:
        return f"waiting: {visit.socket} is pinned to a function that is gone; pin it again, or unpin it"
    if socket.is_utility:
        return f"waiting: {visit.socket} was interrupted; step runs it again"
    item = f" for {visit.item.key} ({short(visit.item.label)})" if visit.item else ""
    if cast.approvals.asking or cast.approvals.due:
        return f"waiting: {visit.socket}{item} {_about_calls(cast)}"
    if visit.mode == "draft" and visit.drafts:
        return f"waiting: {visit.socket}{item} has a draft; refine it, or continue to the final result"
    who = f"{visit.socket} ({socket.materia.label}){item}"
    what = "needs an answer"
    if cast.approvals.grant is not None:
        what = f"may run this once: {shorten(cast.approvals.grant.exact_content, 200)} (abort takes the consent back)"
    elif visit.mode == "final":
        what = "has yet to hand over what was done"
    return f"waiting: {who} {what}; reply, or step to ask its agent"


def _about_calls(cast: Snapshot) -> str:
    if cast.approvals.asking:
        calls = "; ".join(call_words(call) for call in cast.approvals.asking)
        return f"asks for approval to run {calls}; approve, approve --always, or deny"
    calls = "; ".join(call_words(call) for call in cast.approvals.due)
    return f"may run {calls}; step asks its agent, who runs it"


def _held_for(hold: Hold, socket: str) -> list[str]:
    asked = {
        "consent": "approve or deny the command",
        "direction": "answer how to go on",
        "question": "answer the question",
        "help": "answer with what it lacks",
    }.get(hold.needs or "", "answer")
    value = hold.reading.value
    command = request_of(value).get("exact_content") if isinstance(value, dict) else None
    return [
        f"held by {socket} ({hold.action}): {hold.reason}",
        *([judged_words("exactly this", str(command))] if command and hold.needs == "consent" else []),
        f"to go on: {asked}, decide in its place, correct its output (recommit), or abort",
    ]


def loop_progress(cast: Snapshot) -> dict[str, tuple[int, int]]:
    """Return for every loop over items how many are done and how many there are."""
    now = cast.now
    found = {}
    for loop in cast.graph.loops.values():
        if loop.iterator is not None:
            total = len(list_at(loop.iterator.items, now))
            found[loop.id] = (min(now.cursors.get(loop.iterator.cursor, 0), total), total)
    return found


def marks_of(cast: Snapshot) -> Marks:
    """What to lay over the picture of the cast's graph."""
    now = cast.now
    visit = cast.waiting_at
    last = cast.steps[-1].decision if cast.steps else None
    chosen = last.chosen if last else None
    route: tuple[str, int | str] | None = None
    if last is not None and last.socket is not None and last.target is not None:
        way: int | str = "end"
        if chosen is not None:
            way = chosen.route or (0 if chosen.place is None else chosen.place)
        route = (last.socket, way)
    failed = now.failure.socket if now.failure and now.status == "failed" else None
    visit = visit or (now.at if now.status == "held" else None)
    current = visit.socket if visit else now.next if now.next in cast.graph.sockets else None
    return Marks(
        current=current,
        waiting=visit is not None,
        held=now.status == "held",
        failed=failed,
        visits=dict(now.visits),
        traversals=dict(now.traversals),
        last_route=route,
        progress=loop_progress(cast),
        breakpoints=frozenset(cast.breakpoints.sockets),
        remarks=_codes(cast),
        budgets=_budgets(cast),
        in_item=now.at is not None and now.at.item is not None,
        answers={socket: who for socket in cast.graph.sockets if (who := cast.answered_by(socket))},
        pins={
            socket: cast.pins[name].words
            for socket in cast.graph.sockets
            if (name := cast.pinned_at(socket)) is not None
        },
    )


def _codes(cast: Snapshot) -> dict[str, tuple[str, ...]]:
    """The codes of the remarks by socket."""
    codes: dict[str, dict[str, None]] = {}
    for one in cast.remarks:
        codes.setdefault(one.socket or "", {})[one.code] = None
    return {socket: tuple(found) for socket, found in codes.items()}


def outcome_words(cast: Snapshot) -> str:
    """Say how a cast stands in a word or a few: its status, and whether there are remarks."""
    return f"{cast.status}, with remarks" if cast.remarks else cast.status


def _budgets(cast: Snapshot) -> dict[tuple[str, int], tuple[int, int]]:
    visit = cast.now.at
    found = {}
    if visit is not None:
        for edge in cast.graph.sockets[visit.socket].edges:
            used, limit = edge_use(cast.rules, cast.now, visit, edge)
            if limit is not None and edge.max_traversals is not None:
                found[visit.socket, edge.place] = (used, limit)
    return found


def cast_page_html(cast: Snapshot) -> str:
    """Return one static HTML page about the whole cast."""
    failure = cast.failure
    files = sorted(path.relative_to(cast.run_dir) for path in cast.run_dir.rglob("*") if path.is_file())
    return cast_page(
        CastPage(
            cast_id=cast.id,
            loadout=cast.graph.name,
            request=cast.request,
            status=outcome_words(cast),
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
        output=step.output or "",
        parsed=parsed,
        decision_lines=cast.why(step.number).lines,
        prompt=tuple((layer.heading, layer.brief) for layer in step.prompt.layers) if step.prompt else (),
        artifact=step.artifact,
        events=[
            f"{one.severity}: {one.type}" + (f": {one.message}" if one.message else "") for one in step.events
        ],
    )


def way_words(step: StepRecord) -> str:
    """Say in a word or two how a step went on: its target, a failure, or that it waits."""
    decision = step.decision
    if decision is None or decision.by in ("reissue", "finalize"):
        return "waiting"
    if decision.by in ("pause", "escalate"):
        return f"held: {decision.by}"
    if decision.failure is not None:
        return f"failed: {decision.failure.kind}"
    return decision.target or decision.by


def steps_view(cast: Snapshot) -> Table:
    """The steps of a cast, one a row."""
    table = step_table(cast.steps, cast.graph)
    said = [cast.said_of(step).words for step in cast.steps]
    if not any(said):
        return table
    rows = [(*cells, shorten(words, 80)) for cells, words in zip(table.rows, said, strict=True)]
    return Table((*table.headers, "label"), rows, "no steps yet")


def step_table(steps: Sequence[StepRecord], graph: Graph) -> Table:
    """Steps of casts of a loadout, one a row."""
    rows: list[tuple[str, ...]] = []
    pinned = any(step.pinned for step in steps)
    for step in steps:
        materia = graph.sockets[step.socket].materia.label
        item = f"{step.item_key} {short(step.item_label or '', 40)}" if step.item_key else ""
        output = shorten(step.output, 60) if step.output is not None else ""
        way, took = way_words(step), took_words(step)
        row = (str(step.number), step.socket, materia, str(step.visit), item, output, way, took)
        rows.append((*row, step.pinned or "") if pinned else row)
    headers = (*STEP_COLUMNS, "pinned to") if pinned else STEP_COLUMNS
    return Table(headers, rows, "no steps yet")


STEP_COLUMNS: Final = ("step", "socket", "materia", "visit", "item", "output", "next", "took")


def took_words(step: StepRecord) -> str:
    """How long a step took, from entering its socket to its end, waiting for a person included; empty before that."""
    if step.ended is None:
        return ""
    seconds = max(0, step.ended - step.started) / 1000
    digits = next((digits for digits, most in ((2, 9.995), (1, 99.95)) if seconds < most), 0)
    return f"{seconds:.{digits}f} s"  # as long for short steps as for others, since notebooks are compared


def _heading(text: str) -> Html:
    return Html(f"<div><b>{html_text(text)}</b></div>")


def _lines(lines: Sequence[str]) -> list[Html]:
    return [html_lines([line]) for line in lines]


def _bounded(text: str) -> str:
    if len(text) <= SHOWN_CHARS:
        return text
    return f"{text[:SHOWN_CHARS]}… ({len(text)} characters in all; the artifact holds the whole)"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
