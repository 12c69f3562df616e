"""What agents are told, do and hand on, as text and as escaped HTML: layers of a prompt, tool calls, contracts and envelopes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import hypot
from typing import Final
from urllib.parse import quote

from materia_nb.display.escape import (
    ELLIPSIS,
    Html,
    clip,
    esc,
    html_fold,
    html_heading,
    html_join,
    html_json,
    html_lines,
    html_pre,
    html_table,
    html_text,
    part,
)
from materia_nb.display.geometry import Box, Point
from materia_nb.display.shapes import FONT
from materia_nb.display.svg import INK, NOW, PLATE, RIM
from materia_nb.display.text import table
from materia_nb.engine.conversation import ToolCall
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.told import Part, tokens_of
from materia_nb.handoff.capabilities import Cell, Pointer, Section, StatusPath
from materia_nb.handoff.protocol import as_text
from materia_nb.jsonvalue import JSON
from materia_nb.outgoing import plain

MOST_ROWS: Final = 100
_CELL_CHARS: Final = 400


def sections_text(sections: Iterable[Section], indent: str = "  ") -> list[str]:
    """Write sections as lines of plain text."""
    lines: list[str] = []
    for section in sections:
        lines.append(f"{indent}{section.title}")
        lines += [f"{indent}  {plain(line)}" for line in lines_of(section)]
        if section.rows:
            rows = [[_plain_cell(cell) for cell in row] for row in section.rows[:MOST_ROWS]]
            headers = section.headers or ("",) * len(rows[0])
            written = table(rows, headers, indent=f"{indent}  ").splitlines()
            lines += written if section.headers else written[2:]
        lines += _rest(section, f"{indent}  ")
    return lines


def sections_html(sections: Iterable[Section]) -> Html:
    """Write sections as HTML, every text escaped."""
    parts: list[Html] = []
    for section in sections:
        parts += [html_heading(section.title), html_lines(lines_of(section))]
        if section.statuses:
            parts.append(path_svg(section.statuses))
        if section.rows:
            headers = section.headers or ("",) * len(section.rows[0])
            rows = [[_html_cell(cell) for cell in row] for row in section.rows[:MOST_ROWS]]
            parts.append(html_table(headers, rows))
        parts.append(html_lines(_rest(section, "")))
    return html_join(parts)


def lines_of(section: Section) -> tuple[str, ...]:
    """Return what stands in words above the table of a section."""
    return (path_words(section.statuses), *section.lines) if section.statuses else section.lines


def _rest(section: Section, indent: str) -> list[str]:
    left = len(section.rows) - MOST_ROWS
    return [f"{indent}… {left:,} more"] if left > 0 else []


def _plain_cell(cell: Cell) -> str:
    return part(cell.text if isinstance(cell, Pointer) else cell, _CELL_CHARS)


def _html_cell(cell: Cell) -> Html:
    if isinstance(cell, str):
        return html_text(cell)
    if cell.path is None:
        return html_text(cell.text)
    # "./" and the quoted colon keep the name of a file from being read as a scheme or a host.
    return Html(
        f'<a href="./{quote(cell.path, safe="/", errors="replace")}"><bdi>{esc(clip(cell.text, 400))}</bdi></a>'
    )


# -- the statuses that a visit went through ---------------------------------------------------

_WIDE, _HIGH = 150.0, 34.0
_HUB: Final = Box(215, 68, _WIDE, _HIGH)
_CORNERS: Final = tuple(Box(x, y, _WIDE, _HIGH) for x in (8, 422) for y in (16, 120))
_SIZE: Final = (580, 170)
_APART: Final = 6.0


def path_words(path: StatusPath) -> str:
    """Say which statuses were reported, in order, and which may follow."""
    if not path.taken:
        return "no status yet"
    return f"{' → '.join(path.taken)} (may be followed by {' or '.join(path.may_follow)})"


def path_svg(path: StatusPath) -> Html:
    """Draw the statuses, the ways between them, and the way taken: thick, and numbered in order.

    A status that was reported and is none of those of the path is passed over.
    """
    hub = path.hub
    boxes = {hub: _HUB, **dict(zip(path.around, _CORNERS, strict=False))}
    known = tuple(status for status in path.taken if status in boxes)
    taken = set(pairwise(known))
    words = path_words(path._replace(taken=known))
    width, height = _SIZE
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{esc(words)}" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" font-family="{FONT}" font-size="12">'
    )
    parts = [root, f"<title>{esc(words)}</title>"]
    for name, box in boxes.items():
        if name != hub:
            parts += [
                _way(box, _HUB, taken=(name, hub) in taken),
                _way(_HUB, box, taken=(hub, name) in taken),
            ]
    parts.append(_again((hub, hub) in taken))
    parts += [
        _state(
            name, box, [n for n, status in enumerate(known, 1) if status == name], last=known[-1:] == (name,)
        )
        for name, box in boxes.items()
    ]
    return Html("".join([*parts, "</svg>"]))


def _way(at: Box, to: Box, *, taken: bool) -> str:
    """Draw the arrow from one status to another; the two directions run beside each other."""
    right = to.x > at.x
    shift = _APART if right else -_APART
    first = (at.right if right else at.x, at.y + _HIGH / 2 + shift)
    last = (to.x if right else to.right, to.y + _HIGH / 2 + shift)
    return _line(f"M{first[0]:g} {first[1]:g}L{last[0]:g} {last[1]:g}", first, last, taken=taken)


def _again(taken: bool) -> str:
    """Draw the arrow of a status that is reported twice in a row, over the box in the middle."""
    box = _HUB
    left, right = box.x + 50, box.right - 50
    path = f"M{left:g} {box.y:g}C{left:g} {box.y - 36:g} {right:g} {box.y - 36:g} {right:g} {box.y:g}"
    return _line(path, (right, box.y - 20), (right, box.y), taken=taken)


def _line(path: str, before: Point, end: Point, *, taken: bool) -> str:
    colour = NOW if taken else RIM
    style = 'stroke-width="3"' if taken else 'stroke-width="1" stroke-dasharray="3 4"'
    long = hypot(end[0] - before[0], end[1] - before[1])
    dx, dy = (end[0] - before[0]) / long, (end[1] - before[1]) / long
    back, half = (9.0, 5.0) if taken else (7.0, 3.5)
    x, y = end[0] - dx * back, end[1] - dy * back
    tip = f"{end[0]:.1f},{end[1]:.1f} {x - dy * half:.1f},{y + dx * half:.1f} {x + dy * half:.1f},{y - dx * half:.1f}"
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" {style}/><polygon points="{tip}" fill="{colour}"/>'
    )


def _state(name: str, box: Box, turns: Sequence[int], *, last: bool) -> str:
    rim, thick = (NOW, 3) if turns else (RIM, 1)
    number = f"{', '.join(map(str, turns))}: " if turns else ""
    weight = ' font-weight="700"' if last else ""
    return (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{_WIDE:g}" height="{_HIGH:g}" rx="6" fill="{PLATE}" '
        f'stroke="{rim}" stroke-width="{thick}"/><text x="{box.x + _WIDE / 2:g}" y="{box.y + 21:g}" '
        f'text-anchor="middle" fill="{INK}"{weight}>{esc(number + name)}</text>'
    )


PART_CHARS: Final = 4_000
BRIEF_CHARS: Final = 400
"""How much of each part but the task is shown as text where the prompt is only a part of what is shown."""


def parts_text(prompt: Prompt, *, brief: bool = False) -> list[str]:
    """Return each part as text under its heading and size; ``brief`` shows only the beginning of what is not the task."""
    return [
        f"{part_title(part)}\n{clip(part.text, BRIEF_CHARS if brief and part.name != 'task' else PART_CHARS)}".rstrip()
        for part in prompt.parts
        if part.text or not brief
    ]


def parts_html(prompt: Prompt, *, folded: bool = False) -> list[Html]:
    """Return each part under its heading and size; ``folded`` shuts what stands before the task."""
    names = [part.name for part in prompt.parts]
    first = names.index("task") if folded and "task" in names else 0
    return [_part(one, folded=place < first) for place, one in enumerate(prompt.parts)]


def part_title(part: Part) -> str:
    """Say which part it is, how long it is, and why something of it is not there."""
    size = (
        f"{len(part.text):,} characters, some {tokens_of(len(part.text)):,} tokens"
        if part.text
        else "left out"
    )
    return f"{part.heading} [{part.name}] · {size}" + (f": {part.note}" if part.note else "")


def _part(one: Part, *, folded: bool) -> Html:
    if not one.text:
        return Html(f'<div style="opacity:0.75">{html_text(part_title(one))}</div>')
    text = html_pre(one.text, PART_CHARS)
    if folded:
        return html_fold(part_title(one), text)
    heading, _, rest = part_title(one).partition(" [")
    return Html(
        f'<div><b>{html_text(heading)}</b> <span style="opacity:0.75">[{html_text(rest)}</span></div>{text}'
    )


_MAIN: Final = ("command", "path", "pattern", "glob")
"""The arguments that say best what a call is about, the best first."""
_SHOWN: Final = 4_000
JUDGED: Final = 2**20
"""How much of a text is shown that a person is to allow: all that a call of a model can have, in characters."""
_JUDGED_IN_WORDS: Final = 2_000
_LINE_END: Final = " \u23ce "


def call_words(call: ToolCall) -> str:
    """Say what a call is about on one line: the tool and its main argument.

    Of one that has not run every argument is told whole, since a person may have to judge it: a sign
    stands for each line end, and of more than 2,000 characters the beginning and the end are told.
    """
    if call.result is not None:
        return call_title(call)
    main = next((name for name in _MAIN if isinstance(call.args.get(name), str)), None)
    others = [judged_words(name, as_text(value)) for name, value in call.args.items() if name != main]
    about = _in_words(call.args[main]) if main else ""
    return ", ".join([f"{part(call.tool, 40)} {about}".rstrip(), *others])


def call_outcome(call: ToolCall) -> str:
    """Say in a word or two what became of a call."""
    if call.decided == "denied":
        return "not allowed"
    if call.result is None:
        return "asks for approval" if call.decided is None else "allowed, not run yet"
    took = f", {call.seconds:.1f} s" if call.seconds >= 0.1 else ""
    leave = {"once": ", allowed once", "always": ", allowed always"}.get(call.decided or "", "")
    return ("done" if call.ok else "failed") + leave + took


def calls_text(calls: Iterable[ToolCall]) -> list[str]:
    """Return one line for each call."""
    return [f"{call_words(call)} ({call_outcome(call)})" for call in calls]


def calls_html(calls: Iterable[ToolCall], *, opened: bool = False) -> Html:
    """Return each call folded under its line: what it was given, and what the agent was told."""
    return Html("".join(_call(call, opened=opened) for call in calls))


def call_title(call: ToolCall) -> str:
    """Name a call by its tool and its main argument."""
    about = next((value for name in _MAIN if isinstance(value := call.args.get(name), str)), "")
    return f"{part(call.tool, 40)} {part(about, 80)}".rstrip()


def _call(call: ToolCall, *, opened: bool) -> Html:
    said = html_lines([call.said]) if call.said.strip() else Html()
    if call.result is None:
        body = Html(said + "".join(judged_html(name, as_text(value)) for name, value in call.args.items()))
    else:
        body = Html(f"{said}{_args(call.args)}{html_pre(call.result, _SHOWN)}")
    return html_fold(f"{call_title(call)} ({call_outcome(call)})", body, opened=opened)


def _args(args: Mapping[str, JSON]) -> Html:
    """Show long texts as they are, at least their beginning, and the rest as a tree."""
    long = [name for name, value in args.items() if isinstance(value, str) and _is_long(value)]
    rest = {name: value for name, value in args.items() if name not in long}
    tree = html_json(rest, 2) if rest else Html()
    texts = (html_lines([f"{part(name, 40)}:"]) + html_pre(str(args[name]), _SHOWN) for name in long)
    return Html(tree + "".join(texts))


def judged_html(name: str, text: str) -> Html:
    """Show all of a text that a person is to judge, under its name and how long it is."""
    shown = _both_ends(text, JUDGED)
    return Html(html_lines([f"{part(name, 40)}{_size(text)}:"]) + html_pre(shown, len(shown)))


def judged_words(name: str, text: str) -> str:
    """Tell a text that a person is to judge on one line; of more than 2,000 characters the beginning and the end."""
    return f"{part(name, 40)}{_size(text)}: {_in_words(text)}"


def _in_words(text: str) -> str:
    return plain(_both_ends(text.strip("\n"), _JUDGED_IN_WORDS)).replace("\n", _LINE_END)


def _size(text: str) -> str:
    """Say how many lines a text has, so that none can hide behind empty ones; nothing of a short one."""
    lines = f"{text.count(chr(10)) + 1:,} lines, " if "\n" in text else ""
    return f" ({lines}{len(text):,} characters)" if _is_long(text) else ""


def _both_ends(text: str, limit: int) -> str:
    """Keep ``limit`` characters, half of them from the end, with what is left out between marked and counted."""
    gap = len(text) - limit
    if gap <= 0:
        return text
    half = limit // 2
    return f"{text[:half]}\n{ELLIPSIS} [{gap:,} characters are not shown] {ELLIPSIS}\n{text[half + gap :]}"


def _is_long(value: str) -> bool:
    return len(value) > 60 or "\n" in value
