"""The drawn parts of a picture: colours, icons, cards, loops, signs, chips. One renderer for still pictures and the live canvas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Final, Literal, TypeAlias

from materia_nb.display.escape import esc, part
from materia_nb.display.geometry import Box, fit, text_width
from materia_nb.display.graph_parts import (
    COUNT_ROOM,
    ICON,
    LINE,
    PAD,
    PROGRESS_ROOM,
    SMALL_SIZE,
    START,
    TITLE_SIZE,
    Marks,
    about_lines,
    count_words,
    icon_of,
    kind_words,
    loop_title,
    small_size,
    socket_name,
    socket_notes,
    state_words,
    who_badge,
    who_words,
)
from materia_nb.loadout.graph import END, Graph, Loop, Socket
from materia_nb.loadout.vocabulary import DESCRIBED, Condition, described, tint_of

ThemeName: TypeAlias = Literal["light", "dark"]
Colours: TypeAlias = Mapping[str, str]
"""A colour by its use, and by nothing but what it means: ``ground`` of the page, ``plate`` of cards and chips, ``ink`` and
``soft`` text, ``line`` of edges, ``rim`` of cards, each condition by its word, ``loop`` of what makes and takes items, ``now``
where the cast is, ``bad`` what failed, ``pick`` what is selected, ``aim`` what a new edge would lead to."""

LIGHT: Final[Colours] = {
    "ground": "#ffffff",
    "plate": "#ffffff",
    "ink": "#1c1f24",
    "soft": "#4c5157",
    "rim": "#b9bcc0",
    "line": "#7d8187",
    "loop": "#6a45b8",
    "loop-pale": "#f7f5fc",
    "loop-rim": "#c3b5e3",
    "bar": "#e1d9f3",
    **{condition: one.light for condition, one in DESCRIBED.items()},
    "aim": "#17733f",
    "now": "#b57f00",
    "now-ink": "#805300",
    "now-pale": "#fff3d6",
    "bad": "#b3261e",
    "bad-pale": "#fdecea",
    "break": "#b3261e",
    "pick": "#1565c0",
    "A": "#2b62bd",
    "B": "#a82a7f",
}
DARK: Final[Colours] = {
    "ground": "#161616",
    "plate": "#232323",
    "ink": "#ebebeb",
    "soft": "#bdbdbd",
    "rim": "#5a5a5a",
    "line": "#8f8f8f",
    "loop": "#bfa6f5",
    "loop-pale": "#221f2b",
    "loop-rim": "#5b4d7a",
    "bar": "#3a3152",
    **{condition: one.dark for condition, one in DESCRIBED.items()},
    "aim": "#6fd49a",
    "now": "#e0a100",
    "now-ink": "#f2c14e",
    "now-pale": "#362b0e",
    "bad": "#ff8a80",
    "bad-pale": "#3a1a18",
    "break": "#ff8a80",
    "pick": "#8ab8f0",
    "A": "#7db4ee",
    "B": "#ec8fc9",
}
THEMES: Final[Mapping[ThemeName, Colours]] = {"light": LIGHT, "dark": DARK}

PLACES: Final[Colours] = {use: f"@{use}@" for use in LIGHT}
"""A place for each colour, for a page that fills in those of its theme; no escaped text of ours holds an ``@``."""


def line_use(condition: Condition) -> str:
    """Return the use of the colour of lines that wait for ``condition``: those that wait for nothing are plain."""
    return "line" if described(condition).whatever else condition


# -- shapes ----------------------------------------------------------------------------------
# Each returns a piece of SVG for a box and a set of colours, self-contained: no style sheet, no ``id``, nothing
# that is loaded. Nothing is told by colour alone.

FONT: Final = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"
EDGE: Final = 14.0
"""Pixels around a card, at each side, that its ring, its tag and its breakpoint may take."""


def text(x: float, y: float, words: str, size: float, fill: str, extra: str = "") -> str:
    """One line of text, escaped; the sign around the places of colours too."""
    safe = esc(words).replace("@", "&#64;")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{fill}"{extra}>{safe}</text>'


def pill(
    box: Box,
    words: str,
    ink: str,
    fill: str,
    rim: str,
    *,
    size: float,
    width: float = 1.0,
    bold: bool = False,
) -> str:
    """A few words on a round plate of their own."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.w:.1f}" height="{box.h:.1f}" '
        f'rx="{box.h / 2:.1f}" fill="{fill}" stroke="{rim}" stroke-width="{width:g}"/>'
        + text(box.cx, box.cy + size * 0.3455, words, size, ink, f' text-anchor="middle"{weight}')
    )


def image(piece: str, w: float, h: float) -> str:
    """Make a picture of its own of a piece that was drawn from (0, 0)."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" viewBox="0 0 {w:.1f} {h:.1f}" '
        f'font-family="{FONT}">{piece}</svg>'
    )


ICONS: Final[Mapping[str, str]] = json.loads((files("materia_nb.display") / "icons.json").read_text("utf-8"))
"""The icons by name: what stands inside an SVG of 24 x 24 (icons-license.txt beside them)."""


def icon(name: str, x: float, y: float, colour: str, size: float = ICON) -> str:
    """Draw an icon with its upper left corner at a point."""
    return (
        f'<g transform="translate({x:.1f} {y:.1f}) scale({size / 24:.4f})" fill="none" stroke="{colour}" '
        f'stroke-width="2.1" stroke-linecap="round" stroke-linejoin="round">{ICONS[name]}</g>'
    )


def plate(box: Box, fill: str, stroke: str, *, radius: float = 6, width: float = 1.0, extra: str = "") -> str:
    """The surface of a card or loop."""
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.w:.1f}" height="{box.h:.1f}" rx="{radius:g}" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="{width:g}"{extra}/>'
    )


def tag(socket_id: str, marks: Marks) -> tuple[str, str]:
    """Say where a cast stands with respect to a socket, and in which colour; empty when nowhere."""
    words = state_words(socket_id, marks).removeprefix("▶ ")
    if words == "current":
        words = "next"
    elif words == "waiting":
        if marks.working:
            words = "working"
        elif marks.answers.get(socket_id, "").startswith("person") and socket_id not in marks.pins:
            words = "wants you"
    uses = {"✖ failed": "bad", "only A": "A", "only B": "B", "never visited": "line"}
    return words, uses.get(words, "now")


def socket_card(socket: Socket, box: Box, level: int, marks: Marks, colours: Colours) -> str:
    """One socket: who answers as an icon, its name, how often it was visited, where a cast stands, what came of it last."""
    words, use = tag(socket.id, marks)
    ring = bool(words) and use != "line"
    failed = use == "bad"
    rim = colours[use] if ring else colours["rim"]
    dash = ' stroke-dasharray="6 4"' if failed else ""
    parts = [plate(box, colours["plate"], rim, width=2.2 if ring else 1.0, extra=dash)]
    left, right = box.x + PAD, box.right - PAD
    name = icon_of(socket, marks)
    tint = tint_of(socket.materia.raw.get("color"))
    strong = tint.fill if tint is not None else colours["loop" if name == "generator" else "soft"]
    middle = box.y + (box.h / 2 if level == 1 else 14)
    parts.append(icon(name, left, middle - ICON / 2, strong))
    title = fit(socket_name(socket), TITLE_SIZE, box.w - 2 * PAD - ICON - 6 - COUNT_ROOM, bold=True)
    parts.append(text(left + ICON + 6, middle + 4.5, title, TITLE_SIZE, colours["ink"], ' font-weight="600"'))
    end = ' text-anchor="end"'
    visits = marks.visits.get(socket.id, 0)
    count = count_words(visits) if visits > 1 else ""
    small = small_size(level)
    if count:
        parts.append(text(right, middle + 4, count, small, colours["soft"], end))
    if sign := "warning" if failed else "check" if visits and not words else "":
        at = right - ICON - (text_width(count, small) + 3 if count else 0)
        parts.append(icon(sign, at, middle - ICON / 2, colours["bad" if failed else "satisfied"]))
    if level > 1:
        ink = {"now": colours["now-ink"], "line": colours["soft"]}.get(use, colours[use])
        state = fit(words, SMALL_SIZE, box.w - 2 * PAD)
        parts.append(
            text(right, box.y + 35.5, state, SMALL_SIZE, ink, f'{end} font-weight="600"') if state else ""
        )
        room = box.w - 2 * PAD - (text_width(state, SMALL_SIZE, bold=True) + 8 if state else 0)
        below = " · ".join(one for one in (who_badge(socket, marks), part(socket.id)) if one)
        parts.append(text(left, box.y + 35.5, fit(below, SMALL_SIZE, room), SMALL_SIZE, colours["soft"]))
    if level > 2 and (lines := about_lines(socket, marks, box.w - 2 * PAD)):
        parts.append(
            f'<path d="M{left:.1f} {box.y + 44:.1f}H{right:.1f}" stroke="{colours["rim"]}" stroke-width="0.6"/>'
        )
        parts += [
            text(left, box.y + 59 + LINE * number, line, SMALL_SIZE, colours["ink"])
            for number, line in enumerate(lines)
        ]
    if socket.id in marks.breakpoints:
        parts.append(
            plate(Box(box.right - 6, box.y - 7, 13, 13), colours["break"], colours["ground"], radius=6.5)
        )
    return "".join(parts)


def socket_title(socket: Socket, marks: Marks) -> str:
    """What a card says when the mouse rests on it in a still picture: what it is, what it is pinned to, a breakpoint."""
    words = [", ".join(kind_words(socket)), *socket_notes(socket)]
    if socket.id in marks.pins:
        words.append(who_words(socket.id, marks))
    if socket.id in marks.breakpoints:
        words.append("breakpoint")
    return "; ".join(words)


def loop_region(
    graph: Graph, loop: Loop, box: Box, title: Box | None, marks: Marks, colours: Colours, *, level: int
) -> str:
    """A loop's frame with its heading, and how far it has come; without a heading, the loop folded into one card."""
    done, whole = marks.progress.get(loop.id, (0, 0))
    if title is None:
        return _folded_loop(graph, loop, box, marks, colours)
    parts = [plate(box, colours["loop-pale"], colours["loop-rim"], radius=10)]
    parts.append(icon("loop", title.x, title.y, colours["loop"], 14))
    size = small_size(level)
    words = fit(loop_title(graph, loop), size, title.w - ICON)
    parts.append(text(title.x + ICON + 2, title.y + 11.5, words, size, colours["loop"]))
    if whole:
        parts.append(_progress(box.right - 8, box.y + 4, done, whole, size, colours))
    return "".join(parts)


def _progress(right: float, y: float, done: int, whole: int, size: float, colours: Colours) -> str:
    """How many items are done, in words and as a bar that ends at ``right``."""
    bar = Box(right - 34, y + 4.5, 34, 7)
    filled = Box(bar.x, bar.y, bar.w * min(1.0, done / whole), bar.h)
    words = fit(f"{_count_of(done)} of {_count_of(whole)}", size, PROGRESS_ROOM - 40)
    return (
        text(bar.x - 5, y + 11.5, words, size, colours["soft"], ' text-anchor="end"')
        + plate(bar, colours["bar"], "none", radius=3.5)
        + plate(filled, colours["loop"], "none", radius=3.5)
    )


def _count_of(number: int) -> str:
    """Write a number in few characters."""
    return count_words(number)[1:]


def _folded_loop(graph: Graph, loop: Loop, box: Box, marks: Marks, colours: Colours) -> str:
    """A loop as one card over another, which says where the cast is in it."""
    here = next((one for one in loop.sockets if one in (marks.current, marks.failed)), None)
    rim = colours["loop-rim"] if here is None else colours["bad" if here == marks.failed else "now"]
    parts = [plate(box.moved(4, 4), colours["loop-pale"], colours["loop-rim"])]
    parts.append(plate(box, colours["loop-pale"], rim, width=1.0 if here is None else 2.2))
    middle = box.y + (box.h / 2 if box.h < 40 else 14)
    parts.append(icon("loop", box.x + PAD, middle - ICON / 2, colours["loop"]))
    room = box.w - 2 * PAD - ICON - 6
    title = fit(loop_title(graph, loop), TITLE_SIZE, room, bold=True)
    parts.append(
        text(box.x + PAD + ICON + 6, middle + 4.5, title, TITLE_SIZE, colours["ink"], ' font-weight="600"')
    )
    done, whole = marks.progress.get(loop.id, (0, 0))
    if box.h >= 40:
        words = fit(f"{len(loop.sockets)} sockets", SMALL_SIZE, room - PROGRESS_ROOM)
        parts.append(text(box.x + PAD, box.y + 35.5, words, SMALL_SIZE, colours["soft"]))
        parts.append(
            _progress(box.right - PAD, box.y + 24, done, whole, SMALL_SIZE, colours) if whole else ""
        )
    return "".join(parts)


def sign(key: str, box: Box, marks: Marks, colours: Colours) -> str:
    """The start, a dot, or the end, a dot in a ring that says when it was reached."""
    x, y = box.cx, box.cy
    if key == START:
        return (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{colours["line"]}"><title>start</title></circle>'
        )
    reached = marks.last_route is not None and marks.last_route[1] == END
    ink, width = (colours["now"], 2.4) if reached else (colours["line"], 1.4)
    return (
        f'<g><title>end</title><circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill="{colours["plate"]}" stroke="{ink}" '
        f'stroke-width="{width}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{ink}"/></g>'
    )
