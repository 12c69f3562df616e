"""Prompts, tool calls and outputs as blocks, and the time axis of the lanes of a cast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.display.blocks import Block, Code, Fold, Heading, Line, Table, lines
from materia_nb.display.escape import ELLIPSIS, Html, html_line, part
from materia_nb.engine.conversation import PromptPart, ToolCall, estimate_tokens
from materia_nb.engine.prompt import Prompt
from materia_nb.errors import plain, signs_warning, with_visible_signs
from materia_nb.handoff.base import Issue, Section
from materia_nb.handoff.jsontext import as_text
from materia_nb.jsonvalue import JSON

MAX_ROWS: Final = 100


def section_blocks(sections: Iterable[Section]) -> list[Block]:
    """Return the sections of an output as headings, lines and tables. Long tables are cut, with a note."""
    blocks: list[Block] = []
    for section in sections:
        blocks.append(Heading(section.title))
        blocks += lines(section.lines)
        if section.rows:
            headers = section.headers or ("",) * len(section.rows[0])
            blocks.append(Table(headers, section.rows[:MAX_ROWS]))
        if (omitted_count := len(section.rows) - MAX_ROWS) > 0:
            blocks.append(Line(f"{ELLIPSIS} {omitted_count:,} more", "quiet"))
    return blocks


def issue_rows(issues: Iterable[Issue]) -> list[tuple[str, str, str]]:
    """Return a table row for each problem of an output: its path, its message, and how to fix it."""
    return [(plain(issue.path), plain(issue.message), plain(issue.fix)) for issue in issues]


def prompt_blocks(prompt: Prompt, *, opened: bool = False) -> list[Block]:
    """Return the parts of a prompt as folds that show their name and size.

    The parts before the task are collapsed unless ``opened`` is true.
    """
    names = [prompt_part.name for prompt_part in prompt.parts]
    task = names.index("task") if "task" in names else 0
    return [
        Fold(part_title(prompt_part), (Code(prompt_part.text),), opened=opened or index >= task)
        if prompt_part.text
        else Line(part_title(prompt_part), "quiet")
        for index, prompt_part in enumerate(prompt.parts)
    ]


def part_title(prompt_part: PromptPart) -> str:
    """Return the title of a prompt part: its name, its size, and a note if the part was shortened or omitted."""
    size = (
        f"{len(prompt_part.text):,} characters, about {estimate_tokens(len(prompt_part.text)):,} tokens"
        if prompt_part.text
        else "left out"
    )
    return f"{prompt_part.heading} [{prompt_part.name}] · {size}" + (
        f": {prompt_part.note}" if prompt_part.note else ""
    )


_MAIN_ARGUMENTS: Final = ("command", "path", "pattern", "glob")
"""Names of the arguments that describe a tool call best, in order of preference."""
MAX_APPROVAL_CHARS: Final = 2**20
"""Maximum length of text that a person approves, in characters. The middle of a longer text is omitted."""
_MAX_ONE_LINE_CHARS: Final = 2_000
_BREAK_SIGN: Final = " \u23ce "


def call_blocks(calls: Iterable[ToolCall], *, omit_text: bool = False) -> list[Block]:
    """Return each tool call as a fold with the model's text, the arguments, and the result.

    A call that has not run yet is expanded and shows its complete arguments, because a person may have to approve it.
    With ``omit_text``, the model's text is omitted, because the caller displays it above the calls.
    """
    blocks: list[Block] = []
    for call in calls:
        is_pending = call.result is None
        inner_blocks = [] if omit_text or not call.said.strip() else lines([call.said], "said")
        for name, value in call.args.items():
            text = as_text(value)
            title = f"{part(name, 40)}{_size_note(text)}"
            if not is_pending:
                inner_blocks.append(Code(text, title=title))
                continue
            inner_blocks += approval_blocks(text, title)
        if call.result is not None:
            inner_blocks.append(Code(call.result, title="result"))
        blocks.append(Fold(f"{_call_title(call)} ({_call_outcome(call)})", inner_blocks, opened=is_pending))
    return blocks


def approval_blocks(text: str, title: str = "") -> list[Block]:
    """Return text that a person approves as blocks, with a warning if it contains deceptive or invisible characters."""
    warning = signs_warning(text)
    code = Code(_omit_middle(with_visible_signs(text), MAX_APPROVAL_CHARS), 2 * MAX_APPROVAL_CHARS, title)
    return [*([Line(warning, "warn")] if warning else []), code]


def call_line(call: ToolCall) -> str:
    """Return a tool call on one line: the tool and its main argument.

    A call that has not run yet shows every argument, because a person may have to approve it. A visible symbol replaces
    each line break, and a text of more than 2,000 characters is cut in the middle.
    """
    if call.result is not None:
        return _call_title(call)
    main_name = next((name for name in _MAIN_ARGUMENTS if isinstance(call.args.get(name), str)), None)
    other_arguments = [approval_line(name, as_text(value)) for name, value in call.args.items() if name != main_name]
    main_value = _on_one_line(call.args[main_name]) if main_name else ""
    text = ", ".join([f"{part(call.tool, 40)} {main_value}".rstrip(), *other_arguments])
    warning = signs_warning("\n".join(map(as_text, call.args.values())))
    return f"{text} (Warning: {warning})" if warning else text


def _call_outcome(call: ToolCall) -> str:
    if call.decided == "denied":
        return "not allowed"
    if call.result is None:
        return "asks for approval" if call.decided is None else "allowed, not run yet"
    duration = f", {call.seconds:.1f} s" if call.seconds >= 0.1 else ""
    approval = {"once": ", allowed once", "always": ", allowed always"}.get(call.decided or "", "")
    return ("done" if call.ok else "failed") + approval + duration


def _call_title(call: ToolCall) -> str:
    main_value = next((value for name in _MAIN_ARGUMENTS if isinstance(value := call.args.get(name), str)), "")
    return f"{part(call.tool, 40)} {part(main_value, 80)}".rstrip()


def approval_line(name: str, text: str) -> str:
    """Return text that a person approves on one line. A text of more than 2,000 characters is cut in the middle."""
    return f"{part(name, 40)}{_size_note(text)}: {_on_one_line(text)}"


def _on_one_line(text: str) -> str:
    return plain(_omit_middle(with_visible_signs(text.strip("\n")), _MAX_ONE_LINE_CHARS)).replace("\n", _BREAK_SIGN)


def _size_note(text: str) -> str:
    """Return the number of lines and characters of a long text, because empty lines can hide the content below them."""
    line_count = f"{text.count(chr(10)) + 1:,} lines, " if "\n" in text else ""
    return f" ({line_count}{len(text):,} characters)" if len(text) > 60 or line_count else ""


def _omit_middle(text: str, limit: int) -> str:
    """Return ``limit`` characters from both ends of a string, and between them the number of omitted characters."""
    omitted_count = len(text) - limit
    if omitted_count <= 0:
        return text
    half = limit // 2
    return f"{text[:half]}\n{ELLIPSIS} [{omitted_count:,} characters are not shown] {ELLIPSIS}\n{text[half + omitted_count :]}"


# -- the time axis ---------------------------------------------------------------------------

_IDLE_MS: Final = 1_000  # Minimum duration of an idle period that is shortened on the axis, in milliseconds.
_IDLE_SHARE: Final = 0.03
_MAX_IDLE_SHARE: Final = 0.3
_TAIL_SHARE: Final = 0.12  # Share of the axis after the last known time, into which open-ended bars extend.

BarKind: TypeAlias = Literal["work", "now", "wait", "bad", "unsure"]
"""Kind of a bar: finished work, current work, waiting, failure, or a step whose working time is unknown (R56)."""


class Bar(NamedTuple):
    """A step or a waiting period, with its times in milliseconds since the epoch.

    ``end`` is None until the end is known. ``step`` is the number of the step, or 0 if the bar is not a step.
    """

    label: str
    start: int
    end: int | None
    kind: BarKind
    step: int = 0


PlacedBar: TypeAlias = tuple[float, float, BarKind, str, str, int]
"""A bar on the axis: its left end and width (as shares of the axis), kind, label, tooltip and step number."""


class TimeScale:
    """A mapping from times to positions on an axis, as shares of its width.

    Long periods without work are all shortened to the same width.
    """

    def __init__(self, bars: Sequence[Bar], first: int, until: int, *, running: bool) -> None:
        self.until, self._first = until, first
        tail_share = _TAIL_SHARE if not running and any(bar.end is None for bar in bars) else 0.0
        busy_periods = sorted((bar.start, bar.end or until) for bar in bars if bar.kind != "wait")
        self._idle: list[tuple[int, int]] = []
        busy_until = first
        for start, end in [*busy_periods, (until, until)]:
            if start - busy_until > _IDLE_MS:
                self._idle.append((busy_until, start))
            busy_until = max(busy_until, end)
        self._idle_width = min(_IDLE_SHARE, _MAX_IDLE_SHARE / max(1, len(self._idle)))
        length = until - first - sum(end - start for start, end in self._idle)
        self._scale = (1 - tail_share - self._idle_width * len(self._idle)) / max(1, length)

    def position(self, time: int) -> float:
        """Return the position of a time on the axis, from 0 to 1."""
        position = float(time - self._first) * self._scale
        for start, end in self._idle:
            if time > start:
                elapsed = min(time, end) - start
                position += elapsed / (end - start) * self._idle_width - elapsed * self._scale
        return min(1.0, max(0.0, position))

    def extent(self, bar: Bar) -> tuple[float, float]:
        """Return the left end and the width of a bar. An open-ended bar extends to the end of the axis."""
        left = self.position(bar.start)
        right = self.position(bar.end) if bar.end is not None else 1.0
        return left, max(0.002, right - left)

    def ticks(self) -> list[int]:
        """Return the times to label: both ends of the axis, and each time at which work resumed after a long pause."""
        times = [self._first, *(end for _, end in self._idle[-4:]), self.until]
        middle = (self._first + self.until) // 2
        return sorted({*times, *([] if self._idle else [middle])})


@dataclass(frozen=True, slots=True)
class TimeAxis(Block):
    """Rows of bars along a common time axis.

    Attributes:
        summary: a short description of the axis.
        rows: the name and the bars of each row.
        ticks: the position and the label of each tick on the axis.
        lanes: the lane of each row; "" for the cast itself.
        selected: the lane and the number of the selected step, or None.
    """

    summary: str
    rows: Sequence[tuple[str, Sequence[PlacedBar]]]
    ticks: Sequence[tuple[float, str]]
    lanes: Sequence[str]
    selected: tuple[str, int] | None = None

    def as_text(self, width: int = 0) -> str:  # noqa: ARG002
        """Return "", because the table next to the axis has the same content."""
        return ""

    def as_html(self) -> Html:
        """Return only the summary, because only panels draw the bars."""
        return html_line(self.summary)

    def as_json(self) -> dict[str, JSON]:
        """Return the axis as JSON for a panel."""
        return {
            "is": "axis",
            "text": self.summary,
            "rows": [[name, [list(bar) for bar in bars]] for name, bars in self.rows],
            "ticks": [list(tick) for tick in self.ticks],
            "lanes": list(self.lanes),
            "at": list(self.selected or ()),
        }
