"""Steps of a cast: what came, what was asked, why it went on as it did, what was told beside it; and the whole cast as a page."""

from __future__ import annotations

from typing import Any

from materia_nb.cast.listing import way_words
from materia_nb.cast.snapshot import Snapshot
from materia_nb.cast.views.status import draft_of, marks_of, outcome_words, status_lines
from materia_nb.display.bundle import SHOWN_CHARS, Shown, bounded, bundle, heading_html, lines_html
from materia_nb.display.calls import calls_html, layers_html, layers_text
from materia_nb.display.escape import plain, shorten
from materia_nb.display.html import (
    Html,
    html_join,
    html_panel,
    html_pre,
    html_table,
)
from materia_nb.display.page import CastPage, PageStep, cast_page
from materia_nb.display.svg import graph_svg
from materia_nb.display.text import graph_text, table
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.session import StepRecord
from materia_nb.insight.why import HEADERS, Why
from materia_nb.jsonvalue import MISSING


class StepView(Shown):
    """The latest step of a cast: what came, what was made of it, where it goes."""

    def __init__(self, cast: Snapshot) -> None:
        self.status = status_lines(cast)
        self.step = cast.steps[-1] if cast.steps else None
        self.why = cast.why() if self.step else None
        self.asking = cast.approvals.asking
        self.prompt = None if draft_of(cast) else cast.prompt

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
        step, status = self.step, lines_html(self.status)
        if step is None or self.why is None:
            return bundle(repr(self), html=html_panel("cast", html_join(status)))
        parts: list[Html] = []
        if step.output is not None:
            parts.append(html_pre(step.output, SHOWN_CHARS))
        if step.decision is not None:
            parts += lines_html(self.why.lines)
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
        parts += [f"[{name}]\n{bounded(text)}" for name, text in self.later]
        return plain("\n\n".join(parts))

    def __str__(self) -> str:
        return self.prompt.text

    def _show(self) -> dict[str, Any]:
        return bundle(repr(self), html=html_panel(self.title, html_join(self._parts())))

    def _parts(self) -> list[Html]:
        later = [(heading_html(name), html_pre(text, SHOWN_CHARS)) for name, text in self.later]
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
        parts = lines_html(self.why.lines)
        if self.why.rows:
            parts.append(html_table(HEADERS, self.why.rows))
        return bundle(repr(self), html=html_panel(self.why.title, html_join(parts)))


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
