"""A graph as one self-contained SVG, and the parts of that picture: colours, icons, cards, loops, markers and chips.

Static pictures and the live canvas use the same parts. An SVG contains no scripts, style sheets, external fonts or
references to an ``id``, so that a page can contain several pictures. Each picture has its own background, so that it is
readable on any page. No information is conveyed by colour alone.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final, Literal, TypeAlias

from materia_nb.display.blocks import CELL_WIDTH, Block, Displayable, Picture
from materia_nb.display.escape import esc, part, shorten
from materia_nb.display.geometry import Box, fit_text, text_width
from materia_nb.display.graph_parts import (
    ICON_SIZE,
    LINE_HEIGHT,
    NO_OVERLAY,
    PADDING,
    PROGRESS_ROOM,
    SMALL_SIZE,
    START_MARKER,
    TIMES_SIGN,
    TITLE_SIZE,
    CastOverlay,
    Link,
    answered_by,
    answerer_badge,
    answerer_label,
    card_lines,
    chip_label,
    graph_summary,
    icon_name,
    link_label,
    links,
    loop_label,
    loop_title,
    short_number,
    small_size,
    socket_kinds,
    socket_name,
    socket_notes,
    state_label,
)
from materia_nb.display.layout import Direction, DrawnLine, GraphLayout, best_layout
from materia_nb.display.text import graph_mermaid, graph_text
from materia_nb.loadout.graph import END, Graph, Loop, Socket
from materia_nb.loadout.vocabulary import CONDITION_SPECS, Condition, condition_spec, tint_of
from materia_nb.registry import view_registry

ThemeName: TypeAlias = Literal["light", "dark"]
Colours: TypeAlias = Mapping[str, str]
"""Colours by role: ``ground`` (page), ``plate`` (cards and chips), ``ink`` and ``soft`` (text), ``line`` (edges),
``rim`` (borders of cards), the name of each condition, ``loop`` (generators and loops), ``now`` (current socket),
``bad`` (failures), ``pick`` (selection), and ``aim`` (target of a new edge)."""

_COLOURS: Final[Mapping[str, tuple[str, str]]] = {
    "ground": ("#ffffff", "#161616"),
    "plate": ("#ffffff", "#232323"),
    "ink": ("#1c1f24", "#ebebeb"),
    "soft": ("#4c5157", "#bdbdbd"),
    "rim": ("#b9bcc0", "#5a5a5a"),
    "line": ("#7d8187", "#8f8f8f"),
    "loop": ("#6a45b8", "#bfa6f5"),
    "loop-pale": ("#f7f5fc", "#221f2b"),
    "loop-rim": ("#c3b5e3", "#5b4d7a"),
    "bar": ("#e1d9f3", "#3a3152"),
    **{condition: (spec.light, spec.dark) for condition, spec in CONDITION_SPECS.items()},
    "aim": ("#17733f", "#6fd49a"),
    "now": ("#b57f00", "#e0a100"),
    "now-ink": ("#805300", "#f2c14e"),
    "now-pale": ("#fff3d6", "#362b0e"),
    "bad": ("#b3261e", "#ff8a80"),
    "bad-pale": ("#fdecea", "#3a1a18"),
    "break": ("#b3261e", "#ff8a80"),
    "pick": ("#1565c0", "#8ab8f0"),
    "A": ("#2b62bd", "#7db4ee"),
    "B": ("#a82a7f", "#ec8fc9"),
}  # The light and the dark variant of each colour, by role.
LIGHT: Final[Colours] = {role: light for role, (light, _) in _COLOURS.items()}
DARK: Final[Colours] = {role: dark for role, (_, dark) in _COLOURS.items()}
THEMES: Final[Mapping[ThemeName, Colours]] = {"light": LIGHT, "dark": DARK}

COLOUR_PLACEHOLDERS: Final[Colours] = {use: f"@{use}@" for use in LIGHT}
"""A placeholder for each colour. The theme of the page replaces the placeholders. Escaped text never contains ``@``."""


def condition_role(condition: Condition) -> str:
    """Return the colour role of lines with this condition. Unconditional lines have the ordinary line colour."""
    return "line" if condition_spec(condition).matches_any_output else condition


def graph_block(graph: Graph, marks: CastOverlay = NO_OVERLAY, text: str = "") -> Picture:
    """Return the picture of a graph as a block, with colours for light and for dark pages."""
    return Picture(graph_svg(graph, marks), text, DARK_REPLACEMENTS)


DARK_REPLACEMENTS: Final = tuple(dict(_COLOURS.values()).items())
"""Pairs of colours: the colour on a light page, and the colour that replaces it on a dark page."""


# -- shapes ----------------------------------------------------------------------------------
# Each function returns a self-contained piece of SVG for a box and a set of colours.

CARD_FONT: Final = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"
OUTSET: Final = 14.0
"""Space around a card for its ring, its tag and its breakpoint marker, in pixels."""


def svg_text(x: float, y: float, content: str, size: float, fill: str, extra: str = "") -> str:
    """Return one line of escaped text. The ``@`` of colour placeholders is escaped, too."""
    safe = esc(content).replace("@", "&#64;")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{fill}"{extra}>{safe}</text>'


def svg_image(piece: str, box: Box) -> str:
    """Return a complete SVG image that contains the SVG elements ``piece`` and has the size of a box plus a margin."""
    w, h = box.w + 2 * OUTSET, box.h + 2 * OUTSET
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" viewBox="0 0 {w:.1f} {h:.1f}" '
        f'font-family="{CARD_FONT}">{piece}</svg>'
    )


ICONS: Final[Mapping[str, str]] = json.loads((files("materia_nb.display") / "icons.json").read_text("utf-8"))
"""The content of an SVG of 24 x 24 pixels for each icon, by name (see icons-license.txt)."""


def svg_icon(name: str, x: float, y: float, colour: str, size: float = ICON_SIZE) -> str:
    """Return an icon whose upper left corner is at (``x``, ``y``)."""
    return (
        f'<g transform="translate({x:.1f} {y:.1f}) scale({size / 24:.4f})" fill="none" stroke="{colour}" '
        f'stroke-width="2.1" stroke-linecap="round" stroke-linejoin="round">{ICONS[name]}</g>'
    )


def rounded_rect(box: Box, fill: str, stroke: str, *, radius: float = 6, width: float = 1.0, extra: str = "") -> str:
    """Return a rectangle with rounded corners, such as the background of a card or a loop."""
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.w:.1f}" height="{box.h:.1f}" rx="{radius}" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="{width:g}"{extra}/>'
    )


def status_tag(socket_id: str, marks: CastOverlay) -> tuple[str, str]:
    """Return a short description (which may be empty) and the colour role of the cast's state at a socket."""
    status = state_label(socket_id, marks).removeprefix("▶ ")
    if status == "current":
        status = "next"
    elif status == "waiting":
        if marks.working:
            status = "working"
        elif marks.answers.get(socket_id, "").startswith("person") and socket_id not in marks.pins:
            status = "waiting for you"
    colour_roles = {"✖ failed": "bad", "only A": "A", "only B": "B", "never visited": "line"}
    return status, colour_roles.get(status, "now")


def socket_card(socket: Socket, box: Box, level: int, marks: CastOverlay, colours: Colours) -> str:
    """Return the card of a socket, with its icon, name, number of visits, state in the cast, and last output."""
    status, role = status_tag(socket.id, marks)
    failed, has_warning = role == "bad", status.startswith("⚠")
    is_highlighted = bool(status) and role != "line" and not has_warning
    rim = colours[role] if is_highlighted else colours["rim"]
    dash = ' stroke-dasharray="6 4"' if failed else ""
    parts = [rounded_rect(box, colours["plate"], rim, width=2.2 if is_highlighted else 1.0, extra=dash)]
    left, right = box.x + PADDING, box.right - PADDING
    name = icon_name(socket, marks)
    tint = tint_of(socket.materia.raw.get("color"))
    icon_colour = tint.fill if tint is not None else colours["loop" if name == "generator" else "soft"]
    middle = box.y + (box.h / 2 if level == 1 else 14)
    parts.append(svg_icon(name, left, middle - ICON_SIZE / 2, icon_colour))
    align = ' text-anchor="end"'
    visits = marks.visits.get(socket.id, 0)
    count = f"{TIMES_SIGN}{short_number(visits)}" if visits > 1 else ""
    small_font = small_size(level)
    used_width = 0.0  # The width that is used to the right of the name.
    if count:
        used_width = text_width(count, small_font) + 3
        parts.append(svg_text(right, middle + 4, count, small_font, colours["soft"], align))
    sign, colour = "", ""
    if failed or has_warning:
        sign, colour = "warning", colours["bad" if failed else "now-ink"]
    elif visits and not status:
        rejected = socket.id in marks.rejected
        sign, colour = ("cross", colours["not_satisfied"]) if rejected else ("check", colours["satisfied"])
    if sign:
        used_width += ICON_SIZE
        parts.append(svg_icon(sign, right - used_width, middle - ICON_SIZE / 2, colour))
    title = fit_text(socket_name(socket), TITLE_SIZE, box.w - 2 * PADDING - ICON_SIZE - 6 - used_width, bold=True)
    parts.append(svg_text(left + ICON_SIZE + 6, middle + 4.5, title, TITLE_SIZE, colours["ink"], ' font-weight="600"'))
    if level > 1:
        ink = {"now": colours["now-ink"], "line": colours["soft"]}.get(role, colours[role])
        state = fit_text(status, SMALL_SIZE, box.w - 2 * PADDING)
        style = f'{align} font-weight="600"'
        parts.append(svg_text(right, box.y + 35.5, state, SMALL_SIZE, ink, style) if state else "")
        room = box.w - 2 * PADDING - (text_width(state, SMALL_SIZE, bold=True) + 8 if state else 0)
        details = " · ".join(filter(None, (answerer_badge(socket, marks), part(socket.id))))
        parts.append(svg_text(left, box.y + 35.5, fit_text(details, SMALL_SIZE, room), SMALL_SIZE, colours["soft"]))
    if level > 2 and (lines := card_lines(socket, marks, box.w - 2 * PADDING)):
        parts.append(
            f'<path d="M{left:.1f} {box.y + 44:.1f}H{right:.1f}" stroke="{colours["rim"]}" stroke-width="0.6"/>'
        )
        parts += [
            svg_text(left, box.y + 59 + LINE_HEIGHT * number, line, SMALL_SIZE, colours["ink"])
            for number, line in enumerate(lines)
        ]
    if socket.id in marks.breakpoints:
        parts.append(
            rounded_rect(Box(box.right - 6, box.y - 7, 13, 13), colours["break"], colours["ground"], radius=6.5)
        )
    return "".join(parts)


def socket_title(socket: Socket, marks: CastOverlay) -> str:
    """Return the tooltip of a card: the kinds of the socket, notes, its pinned answer, and its breakpoint."""
    notes = [", ".join(socket_kinds(socket)), *socket_notes(socket)]
    if socket.id in marks.pins:
        notes.append(answerer_label(socket.id, marks))
    if socket.id in marks.breakpoints:
        notes.append("breakpoint")
    return "; ".join(notes)


def loop_frame(
    graph: Graph, loop: Loop, box: Box, title: Box | None, marks: CastOverlay, colours: Colours, *, level: int
) -> str:
    """Return the frame of a loop with heading and progress or, if ``title`` is None, the card of a folded loop."""
    done, total = marks.progress.get(loop.id, (0, 0))
    if title is None:
        return _folded_loop(graph, loop, box, marks, colours)
    parts = [rounded_rect(box, colours["loop-pale"], colours["loop-rim"], radius=10)]
    parts.append(svg_icon("loop", title.x, title.y, colours["loop"], 14))
    size = small_size(level)
    title_text = fit_text(loop_title(graph, loop), size, title.w - ICON_SIZE)
    parts.append(svg_text(title.x + ICON_SIZE + 2, title.y + 11.5, title_text, size, colours["loop"]))
    if total:
        parts.append(_progress_bar(box.right - 8, box.y + 4, done, total, size, colours))
    return "".join(parts)


def _progress_bar(right: float, y: float, done: int, total: int, size: float, colours: Colours) -> str:
    """Return the progress as text and as a bar whose right end is at ``right``."""
    bar = Box(right - 34, y + 4.5, 34, 7)
    filled = Box(bar.x, bar.y, bar.w * min(1.0, done / total), bar.h)
    label = f"{short_number(done)} of {short_number(total)}"
    label = label if text_width(label, size) <= PROGRESS_ROOM - 40 else label.replace(" of ", "/")
    return (
        svg_text(bar.x - 5, y + 11.5, label, size, colours["soft"], ' text-anchor="end"')
        + rounded_rect(bar, colours["bar"], "none", radius=3.5)
        + rounded_rect(filled, colours["loop"], "none", radius=3.5)
    )


def _folded_loop(graph: Graph, loop: Loop, box: Box, marks: CastOverlay, colours: Colours) -> str:
    """Return a folded loop, drawn as stacked cards."""
    active_member = next((member for member in loop.sockets if member in (marks.current, marks.failed)), None)
    rim = colours["loop-rim"] if active_member is None else colours["bad" if active_member == marks.failed else "now"]
    parts = [rounded_rect(box.translated(4, 4), colours["loop-pale"], colours["loop-rim"])]
    parts.append(rounded_rect(box, colours["loop-pale"], rim, width=1.0 if active_member is None else 2.2))
    middle = box.y + (box.h / 2 if box.h < 40 else 14)
    parts.append(svg_icon("loop", box.x + PADDING, middle - ICON_SIZE / 2, colours["loop"]))
    room = box.w - 2 * PADDING - ICON_SIZE - 6
    title = fit_text(loop_title(graph, loop), TITLE_SIZE, room, bold=True)
    parts.append(
        svg_text(box.x + PADDING + ICON_SIZE + 6, middle + 4.5, title, TITLE_SIZE, colours["ink"], ' font-weight="600"')
    )
    done, total = marks.progress.get(loop.id, (0, 0))
    if box.h >= 40:
        size_label = fit_text(f"{len(loop.sockets)} sockets", SMALL_SIZE, room - PROGRESS_ROOM)
        parts.append(svg_text(box.x + PADDING, box.y + 35.5, size_label, SMALL_SIZE, colours["soft"]))
        parts.append(_progress_bar(box.right - PADDING, box.y + 24, done, total, SMALL_SIZE, colours) if total else "")
    return "".join(parts)


def terminal_symbol(key: str, box: Box, marks: CastOverlay, colours: Colours) -> str:
    """Return the start marker (a dot) or the end marker (a dot in a ring), highlighted once the cast has ended."""
    x, y = box.cx, box.cy
    if key == START_MARKER:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{colours["line"]}"><title>start</title></circle>'
    is_reached = marks.last_route is not None and marks.last_route[1] == END
    colour, width = (colours["now"], 2.4) if is_reached else (colours["line"], 1.4)
    return (
        f'<g><title>end</title><circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill="{colours["plate"]}" stroke="{colour}" '
        f'stroke-width="{width}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/></g>'
    )


_DASHES_BY_KIND: Final = {"exit": (8, 5), "implied": (1, 5)}
_NEVER_TAKEN_DASH: Final = (1, 9)
_layout_cache: Final[deque[tuple[Graph, Direction | None, GraphLayout]]] = deque(maxlen=4)


def _page_layout(graph: Graph, direction: Direction | None) -> GraphLayout:
    """Return the best layout of a graph for the width of a page or a cell.

    The latest layouts are cached, because a cast is drawn again after each step with the same layout.
    """
    for cached_graph, cached_direction, layout in tuple(_layout_cache):
        if cached_graph is graph and cached_direction == direction:
            return layout
    layout = best_layout(graph, (CELL_WIDTH, 10_000.0), directions=(direction,) if direction else ("right", "down"))
    _layout_cache.append((graph, direction, layout))
    return layout


def graph_svg(
    graph: Graph,
    marks: CastOverlay = NO_OVERLAY,
    *,
    placed: GraphLayout | None = None,
    direction: Direction | None = None,
    colours: Colours = LIGHT,
) -> str:
    """Draw ``graph`` and ``marks`` as an SVG.

    Args:
        graph: the loadout.
        marks: the state of a cast.
        placed: the layout of the graph, if the caller has already computed it.
        direction: the direction of the flow; by default to the right, or down if that would be too wide.
        colours: the colours of the page.
    """
    placed = placed or _page_layout(graph, direction)
    bounds, (width, height) = placed.bounds, placed.size
    title = part(graph_summary(graph, marks), 300)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{esc(title)}" '
            f'width="{width:.0f}" height="{height:.0f}" viewBox="{bounds.x:.0f} {bounds.y:.0f} {width:.0f} {height:.0f}" '
            f'font-family="{CARD_FONT}" font-size="{SMALL_SIZE:g}">'
        ),
        f"<title>{esc(title)}</title>",
        f"<desc>{esc(_description(graph, marks))}</desc>",
        (
            f'<rect x="{bounds.x:.0f}" y="{bounds.y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="10" '
            f'fill="{colours["ground"]}"/>'
        ),
    ]
    for loop_id, box in placed.loops.items():
        frame_svg = loop_frame(
            graph, graph.loops[loop_id], box, placed.titles.get(loop_id), marks, colours, level=placed.level
        )
        parts.append(f'<g data-loop="{esc(shorten(loop_id, 200))}">{frame_svg}</g>')
    parts += [_line_svg(line, marks, colours) for line in placed.edges]
    chips = [(line, line.label) for line in placed.edges if line.label is not None]
    parts += [line_chip(line, box, placed.level, marks, colours) for line, box in chips]
    parts += [terminal_symbol(key, box, marks, colours) for key, box in placed.markers.items()]
    for socket_id, box in placed.nodes.items():
        socket = graph.sockets[socket_id]
        tooltip = socket_title(socket, marks)
        card = socket_card(socket, box, placed.level, marks, colours)
        title = f"<title>{esc(tooltip)}</title>"
        parts.append(f'<g data-socket="{esc(shorten(socket_id, 200))}">{title}{card}</g>')
    parts += [_arrow_head(line, marks, colours) for line in placed.edges if not line.stub]
    parts.append("</svg>")
    return "".join(parts)


def _description(graph: Graph, marks: CastOverlay) -> str:
    """Describe a graph for screen readers: its first sockets with their edges, and its loops."""
    sentences = []
    targets_by_source: dict[str, list[str]] = {}
    for link in links(graph):
        label = link_label(link) or ("ends" if link.kind == "implied" else "always")
        targets_by_source.setdefault(link.source, []).append(f"{label} to {part(link.to, 40)}")
    for socket in list(graph.sockets.values())[:60]:
        state = state_label(socket.id, marks)
        visits = marks.visits.get(socket.id, 0)
        sentences.append(
            f"{part(socket.id)} ({socket.materia.kind} {part(socket.materia.label, 40)}"
            f"{', loop consumer' if socket.loops else ''}"
            f"{', ' + answerer if (answerer := answered_by(socket.id, marks)) else ''}"
            f"{', visits ' + str(visits) if visits else ''}{', ' + state if state else ''}"
            f"{', breakpoint' if socket.id in marks.breakpoints else ''}): "
            f"{'; '.join(targets_by_source.get(socket.id, [])[:8])}."
        )
    if len(graph.sockets) > 60:
        sentences.append(f"And {len(graph.sockets) - 60} more sockets.")
    sentences += [
        f"Loop {part(loop.id)}: {part(', '.join(map(part, loop.sockets[:20])), 400)}; "
        f"{loop_label(graph, loop, marks.progress.get(loop.id))}."
        for loop in graph.loops.values()
    ]
    return " ".join(sentences)


def colour_role(link: Link, marks: CastOverlay) -> str:
    """Return the colour role of a line in the current state of a cast."""
    if (route := link.route) is not None:
        if route in marks.unused_routes:
            return "rim"
        if route == marks.last_route:
            return "now"
        if (only_side := marks.route_sides.get(route, "")) in ("A", "B"):
            return only_side
    return condition_role(link.condition)


def _line_svg(line: DrawnLine, marks: CastOverlay, colours: Colours) -> str:
    link = line.link
    role = colour_role(link, marks)
    is_highlighted = role in ("now", "A", "B")
    kind = "exit" if link.lanes else link.kind
    dashes = _NEVER_TAKEN_DASH if role == "rim" else _DASHES_BY_KIND.get(kind, condition_spec(link.condition).dashes)
    dash = f' stroke-dasharray="{dashes[0]} {dashes[1]}"' if dashes else ""
    key = esc(shorten(link.key, 400))
    attributes = f' data-edge="{key}"' if link.kind in ("edge", "exit") else ""
    if link.kind == "exit":
        attributes = f' id="{key}"{attributes}'
    path = (
        f'<path{attributes} d="{line.d}" fill="none" stroke="{colours[role]}" '
        f'stroke-width="{3.2 if is_highlighted else 1.6}"{dash} stroke-linecap="round"/>'
    )
    if link.route in marks.break_routes:  # The breakpoint is a single round dash near the start of the line.
        path += (
            f'<path d="{line.d}" fill="none" stroke="{colours["break"]}" stroke-width="10" '
            'stroke-dasharray="0.01 99999" stroke-dashoffset="-14" stroke-linecap="round"><title>breakpoint</title></path>'
        )
    return path


def _lane_bar(line: DrawnLine, colours: Colours) -> str:
    """Return the bar across the arrow head of a line that forks into lanes, or a hollow bar if the line joins lanes."""
    (x, y), (dx, dy) = line.tip, line.heading
    x, y = x - 14 * dx, y - 14 * dy
    path_data = f"M{x - 14 * dy:.1f} {y + 14 * dx:.1f}L{x + 14 * dy:.1f} {y - 14 * dx:.1f}"
    strokes = (("line", 6), ("plate", 3)) if line.link.lanes == "join" else (("line", 5),)
    bars = "".join(f'<path d="{path_data}" stroke="{colours[use]}" stroke-width="{width}"/>' for use, width in strokes)
    return f"<g>{bars}<title>{line.link.lanes}</title></g>"


def _arrow_head(line: DrawnLine, marks: CastOverlay, colours: Colours) -> str:
    """Return the arrow head of a line. It is hollow for a loop exit, and has a bar where lanes fork or join."""
    role = colour_role(line.link, marks)
    (x, y), (dx, dy) = line.tip, line.heading
    length, half_width = (12.0, 6.0) if role == "now" else (9.0, 4.5)
    bx, by = x - dx * length, y - dy * length
    points = f"{x:.1f},{y:.1f} {bx - dy * half_width:.1f},{by + dx * half_width:.1f} {bx + dy * half_width:.1f},{by - dx * half_width:.1f}"
    fill = colours["plate"] if line.link.kind == "exit" else colours[role]
    return (_lane_bar(line, colours) if line.link.lanes else "") + (
        f'<polygon points="{points}" fill="{fill}" stroke="{colours[role]}" stroke-width="1.4" stroke-linejoin="round"/>'
    )


def line_chip(line: DrawnLine, box: Box, level: int, marks: CastOverlay, colours: Colours) -> str:
    """Return the chip of a line, with the text from :func:`~materia_nb.display.graph_parts.chip_label`."""
    label = chip_label((line.link, *line.shared), marks, stub=line.stub)
    roles = [colour_role(link, marks) for link in (line.link, *line.shared)]
    role = "now" if "now" in roles else roles[0]
    size, is_current = small_size(level), role == "now"
    width = min(text_width(label, size, bold=is_current) + 12, box.w + 6)
    text_colour = {"now": colours["now-ink"], "rim": colours["soft"], "line": colours[line.link.condition]}.get(
        role, colours.get(role, "")
    )
    chip = Box(box.cx - width / 2, box.cy - size / 2 - 3.5, width, size + 7)
    rim, weight = colours["now" if is_current else "rim"], ' font-weight="600"' if is_current else ""
    return rounded_rect(chip, colours["plate"], rim, radius=chip.h / 2, width=2 if is_current else 1) + svg_text(
        chip.cx, chip.cy + size * 0.3455, label, size, text_colour, f' text-anchor="middle"{weight}'
    )


@dataclass(frozen=True, slots=True, repr=False)
class GraphPicture(Displayable):
    """A graph with marks. A notebook displays the graph as an SVG, or as text where SVG is not supported."""

    graph: Graph
    marks: CastOverlay = field(default_factory=CastOverlay)

    @property
    def svg(self) -> str:
        """The graph drawn as an SVG."""
        return graph_svg(self.graph, self.marks)

    @property
    def text(self) -> str:
        """The graph described as plain text."""
        return graph_text(self.graph, self.marks)

    @property
    def mermaid(self) -> str:
        """The graph as the source of a Mermaid flowchart."""
        return graph_mermaid(self.graph, self.marks)

    def __repr__(self) -> str:
        return f"<GraphPicture {self.graph.name!r}, {len(self.graph.sockets)} sockets>"

    def _blocks(self) -> list[Block]:
        return [graph_block(self.graph, self.marks, self.text)]


view_registry[Graph] = GraphPicture
