"""The drawn parts of a picture: colours, cards, loops, signs, chips. One renderer for still pictures and the live canvas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from materia_nb.display.escape import esc
from materia_nb.display.geometry import Box, fit, text_width
from materia_nb.display.graph_parts import (
    END_SIGN,
    LABEL_SIZE,
    LEFT,
    LINE,
    RIGHT,
    SMALL_SIZE,
    START,
    TITLE_SIZE,
    Card,
    Marks,
    count_words,
    loop_title,
    state_words,
    who_badge,
    who_words,
)
from materia_nb.loadout.graph import END, Graph, Loop, Socket
from materia_nb.loadout.vocabulary import DESCRIBED, Condition, Tint, described

ThemeName: TypeAlias = Literal["light", "dark"]
Colours: TypeAlias = Mapping[str, str]
"""A colour by its use: ``ground`` the page, ``plate`` of chips, ``ink``, ``soft`` and ``faint`` text, ``line`` of
edges, ``rim`` of plates, ``aim`` of what a new edge would lead to, each condition by its word, and for ``agent``,
``utility``, ``generator`` and ``loop`` a strong one and, with ``-pale``, that of their surface."""

LIGHT: Final[Colours] = {
    "ground": "#ffffff",
    "plate": "#ffffff",
    "ink": "#1f2328",
    "soft": "#525c67",
    "faint": "#646d77",
    "rim": "#c4cad2",
    "line": "#858d97",
    "agent": "#2f6db3",
    "agent-pale": "#edf4fc",
    "utility": "#5a6b7b",
    "utility-pale": "#eff2f5",
    "generator": "#7a4fc4",
    "generator-pale": "#f3edfc",
    "loop": "#6d4bb8",
    "loop-pale": "#f8f5fd",
    "bar": "#e4dcf5",
    **{condition: one.light for condition, one in DESCRIBED.items()},
    "aim": "#14774a",
    "now": "#e09a00",
    "now-ink": "#7a5200",
    "now-pale": "#fff6df",
    "bad": "#c62828",
    "bad-pale": "#fdecea",
    "break": "#c62828",
    "pick": "#1976d2",
    "A": "#2b62bd",
    "B": "#a82a7f",
}
DARK: Final[Colours] = {
    "ground": "#14171a",
    "plate": "#1b1f24",
    "ink": "#e6e9ed",
    "soft": "#b3bcc6",
    "faint": "#98a2ad",
    "rim": "#4b5560",
    "line": "#87909b",
    "agent": "#7db4ee",
    "agent-pale": "#172536",
    "utility": "#a9b7c4",
    "utility-pale": "#20262d",
    "generator": "#b99cf2",
    "generator-pale": "#251d38",
    "loop": "#a58ae0",
    "loop-pale": "#1c1826",
    "bar": "#3a3152",
    **{condition: one.dark for condition, one in DESCRIBED.items()},
    "aim": "#4fc38a",
    "now": "#ffb92e",
    "now-ink": "#ffcf6e",
    "now-pale": "#362b0e",
    "bad": "#ff7b72",
    "bad-pale": "#3a1a18",
    "break": "#ff7b72",
    "pick": "#64b0f4",
    "A": "#7db4ee",
    "B": "#ec8fc9",
}
THEMES: Final[Mapping[ThemeName, Colours]] = {"light": LIGHT, "dark": DARK}

PLACES: Final[Colours] = {use: f"@{use}@" for use in LIGHT}
"""A place for each colour, for a page that fills in those of its theme; no escaped text of ours holds an ``@``."""


def line_use(condition: Condition) -> str:
    """Return the use of the colour of lines that wait for ``condition``: those that wait for nothing are plain."""
    return "line" if described(condition).whatever else condition


def surface(kind: str, tint: Tint | None, colours: Colours) -> tuple[str, str]:
    """Return the strong colour of a card and that of its surface: its materia's own, or that of its kind."""
    return (tint.fill if tint is not None else colours[kind], colours[f"{kind}-pale"])


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
    box: Box, words: str, ink: str, fill: str, rim: str, *, width: float = 1.0, bold: bool = False
) -> str:
    """A few words on a round plate of their own."""
    weight = ' font-weight="700"' if bold else ""
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.w:.1f}" height="{box.h:.1f}" '
        f'rx="{box.h / 2:.1f}" fill="{fill}" stroke="{rim}" stroke-width="{width:g}"/>'
        + text(box.cx, box.cy + 3.8, words, SMALL_SIZE, ink, f' text-anchor="middle"{weight}')
    )


def image(piece: str, w: float, h: float) -> str:
    """Make a picture of its own of a piece that was drawn from (0, 0)."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" viewBox="0 0 {w:.1f} {h:.1f}" '
        f'font-family="{FONT}">{piece}</svg>'
    )


def outline(box: Box, kind: str, fill: str, stroke: str, extra: str = "") -> str:
    """The shape of a card: rounded for an agent, cut corners for a utility."""
    if kind != "utility":
        return (
            f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.w:.1f}" height="{box.h:.1f}" rx="8" '
            f'fill="{fill}" {stroke}{extra}/>'
        )
    x, y, r, b, c = box.x, box.y, box.right, box.bottom, 7
    points = [(x + c, y), (r - c, y), (r, y + c), (r, b - c), (r - c, b), (x + c, b), (x, b - c), (x, y + c)]
    joined = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
    return f'<polygon points="{joined}" fill="{fill}" {stroke}{extra}/>'


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


def socket_card(socket: Socket, content: Card, box: Box, marks: Marks, colours: Colours) -> str:
    """One socket: name first, id and kind in words, who answers, how often, and where a cast stands."""
    strong, pale = surface(content.kind, content.tint, colours)
    shape = socket.materia.kind
    words, use = tag(socket.id, marks)
    parts = []
    if words and use != "line":
        grown = Box(box.x - 4, box.y - 4, box.w + 8, box.h + 8)
        dash = ' stroke-dasharray="6 4"' if use == "bad" else ""
        parts.append(outline(grown, shape, "none", f'stroke="{colours[use]}" stroke-width="3"', dash))
    rim = f'stroke="{colours[content.kind]}" stroke-width="1.4"'
    if socket.is_generator:  # a pile: it makes several
        parts.append(outline(box.moved(4, 4), shape, pale, rim))
    parts.append(outline(box, shape, pale, rim))
    inset = 7 if shape == "utility" else 2
    parts.append(
        f'<rect x="{box.x:.1f}" y="{box.y + inset:.1f}" width="6" height="{box.h - 2 * inset:.1f}" rx="2.5" '
        f'fill="{strong}" stroke="{colours[content.kind]}" stroke-width="0.7"/>'
    )
    left, right = box.x + LEFT, box.right - RIGHT
    y = box.y + (box.h - content.h) / 2
    parts.append(text(left, y + 20, content.title, TITLE_SIZE, colours["ink"], ' font-weight="700"'))
    room = right - left - text_width(content.title, TITLE_SIZE, bold=True) - 6
    if (who := fit(who_badge(socket, marks), SMALL_SIZE, room - 12)) and room > 26:
        wide = text_width(who, SMALL_SIZE) + 12
        parts.append(
            pill(Box(right - wide, y + 8, wide, 16), who, colours["soft"], colours["plate"], colours["rim"])
        )
    parts.append(text(left, y + 37, content.below, LABEL_SIZE, colours["soft"]))
    for number, note in enumerate(content.notes, 1):
        parts.append(text(left, y + 37 + LINE * number, note, SMALL_SIZE, colours["soft"]))
    if visits := marks.visits.get(socket.id, 0):
        end = ' text-anchor="end" font-weight="600"'
        parts.append(text(right, y + 37, count_words(visits), LABEL_SIZE, colours["ink"], end))
    if words:
        wide = text_width(words, SMALL_SIZE) + 12
        at = Box(box.x - 6, box.y - 13, min(wide, box.w), 16)
        pale, ink = {
            "now": (colours["now-pale"], colours["now-ink"]),
            "bad": (colours["bad-pale"], colours["bad"]),
            "line": (colours["plate"], colours["soft"]),
        }.get(use, (colours["plate"], colours[use]))
        parts.append(pill(at, fit(words, SMALL_SIZE, box.w - 12), ink, pale, colours[use]))
    if socket.id in marks.breakpoints:
        parts.append(
            f'<rect x="{box.right - 6:.1f}" y="{box.y - 7:.1f}" width="13" height="13" rx="6.5" fill="{colours["break"]}" '
            f'stroke="{colours["ground"]}" stroke-width="1.6"/>'
        )
    return "".join(parts)


def socket_title(socket_id: str, marks: Marks) -> str:
    """What a card says when the mouse rests on it in a still picture: what it is pinned to, a breakpoint."""
    words = [who_words(socket_id, marks)] if socket_id in marks.pins else []
    if socket_id in marks.breakpoints:
        words.append("breakpoint")
    return "; ".join(words)


def loop_region(graph: Graph, loop: Loop, box: Box, title: Box | None, marks: Marks, colours: Colours) -> str:
    """A loop's region under its title; without one, the loop folded into one card."""
    words, below = loop_title(graph, loop)
    strong = colours["loop"]
    folded = title is None
    if title is None:
        title = Box(box.x + 8, box.y + 8, box.w - 16, 34)
        here = next((one for one in loop.sockets if one in (marks.current, marks.failed)), None)
    else:
        here = None
    parts = []
    if here is not None:
        colour = colours["bad" if here == marks.failed else "now"]
        grown = Box(box.x - 4, box.y - 4, box.w + 8, box.h + 8)
        parts.append(outline(grown, "agent", "none", f'stroke="{colour}" stroke-width="3"'))
    if folded:
        parts.append(outline(box.moved(4, 4), "agent", colours["loop-pale"], f'stroke="{strong}"'))
    parts.append(
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.w:.1f}" height="{box.h:.1f}" rx="12" '
        f'fill="{colours["loop-pale"]}" stroke="{strong}" stroke-width="1.3"/>'
    )
    if title.x > box.right:  # the title of a loop that overlaps another stands apart
        parts.append(
            f'<path d="M{box.right:.1f} {title.cy:.1f}L{title.x:.1f} {title.cy:.1f}" stroke="{strong}" '
            'stroke-dasharray="10 4 2 4"/>'
        )
    sign = "▸" if folded else "▾"
    x, y = title.x + 6, title.y
    parts.append(text(x, y + 13, f"{sign} {words}", LABEL_SIZE, strong, ' font-weight="700"'))
    about = f"{len(loop.sockets)} sockets · {below}" if folded else below
    parts.append(
        text(x, y + 28, fit(about, LABEL_SIZE, max(title.w, box.w) - 16), LABEL_SIZE, colours["soft"])
    )
    done, whole = marks.progress.get(loop.id, (0, 0))
    if whole:
        bar = Box(x + text_width(f"{sign} {words}", LABEL_SIZE, bold=True) + 8, y + 6, 44, 7)
        filled = bar.w * min(1.0, done / whole)
        parts.append(
            f'<rect x="{bar.x:.1f}" y="{bar.y:.1f}" width="{bar.w:.1f}" height="7" rx="3.5" fill="{colours["bar"]}"/>'
            f'<rect x="{bar.x:.1f}" y="{bar.y:.1f}" width="{filled:.1f}" height="7" rx="3.5" fill="{strong}"/>'
        )
        parts.append(text(bar.right + 6, y + 13, f"{done}/{whole} done", SMALL_SIZE, colours["soft"]))
    return "".join(parts)


def sign(key: str, box: Box, marks: Marks, colours: Colours) -> str:
    """The start or the end; the end says when it was reached."""
    reached = key == END_SIGN and marks.last_route is not None and marks.last_route[1] == END
    rim, width = (colours["now"], 3.0) if reached else (colours["line"], 1.2)
    inner = ""
    if key == END_SIGN:
        inner = (
            f'<rect x="{box.x + 3:.1f}" y="{box.y + 3:.1f}" width="{box.w - 6:.1f}" height="{box.h - 6:.1f}" '
            f'rx="{(box.h - 6) / 2:.1f}" fill="none" stroke="{colours["rim"]}"/>'
        )
    words = "start" if key == START else "end"
    return pill(box, words, colours["soft"], colours["plate"], rim, width=width) + inner
