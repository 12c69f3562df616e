"""The picture of a graph as one self-contained SVG.

No script, no style sheet, no external font, and nothing that refers to an ``id``, so that several may stand in
one page. It brings its own ground, so that it can be read on any page. Nothing is told by colour alone.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from materia_nb.display.blocks import Block, Picture, Shown
from materia_nb.display.escape import esc, part, shorten
from materia_nb.display.geometry import Box, text_width
from materia_nb.display.graph_parts import (
    SMALL_SIZE,
    Link,
    Marks,
    answered_words,
    chip_words,
    link_words,
    links,
    loop_words,
    small_size,
    state_words,
    summary,
)
from materia_nb.display.layout import Direction, Line, Placed, best_place
from materia_nb.display.mime import CELL_WIDTH
from materia_nb.display.shapes import (
    FONT,
    LIGHT,
    THEMES,
    Colours,
    ThemeName,
    line_use,
    loop_region,
    pill,
    sign,
    socket_card,
    socket_title,
)
from materia_nb.display.text import graph_mermaid, graph_text
from materia_nb.late import VIEWS
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.vocabulary import described

_DASHES: Final = {"exit": (8, 5), "implied": (1, 5)}
_NEVER: Final = (1, 9)
_kept: Final[deque[tuple[Graph, Direction | None, float, Placed]]] = deque(maxlen=4)
INK, PLATE, RIM, NOW = LIGHT["ink"], LIGHT["plate"], LIGHT["rim"], LIGHT["now"]


def _placed_for_page(graph: Graph, direction: Direction | None = None, wide: float = CELL_WIDTH) -> Placed:
    """Lay out a graph for a page, or a cell, that is so wide: of the ways that fit the one that is the least high.

    Those drawn last are kept: the picture of a cast is drawn anew after each step, and nothing in it has moved.
    """
    for there, *how, placed in tuple(_kept):
        if there is graph and how == [direction, wide]:
            return placed
    placed = best_place(graph, (wide, 10_000.0), directions=(direction,) if direction else ("right", "down"))
    _kept.append((graph, direction, wide, placed))
    return placed


def graph_svg(
    graph: Graph,
    marks: Marks | None = None,
    *,
    placed: Placed | None = None,
    theme: ThemeName = "light",
    direction: Direction | None = None,
    colours: Colours | None = None,
) -> str:
    """Draw ``graph``, with ``marks`` laid over it, as SVG text.

    Args:
        graph: the loadout.
        marks: where a cast stands; none for a bare loadout.
        placed: its layout, when the caller has it already.
        theme: of the page that it is for.
        direction: which way the flow runs; by default to the right where that is not too wide, else down.
        colours: others than those of a theme.
    """
    marks = marks or Marks()
    placed = placed or _placed_for_page(graph, direction)
    colours = colours or THEMES[theme]
    bounds, (width, height) = placed.bounds, placed.size
    title = part(summary(graph, marks), 300)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{esc(title)}" '
            f'width="{width:.0f}" height="{height:.0f}" viewBox="{bounds.x:.0f} {bounds.y:.0f} {width:.0f} {height:.0f}" '
            f'font-family="{FONT}" font-size="{SMALL_SIZE:g}">'
        ),
        f"<title>{esc(title)}</title>",
        f"<desc>{esc(_description(graph, marks))}</desc>",
        (
            f'<rect x="{bounds.x:.0f}" y="{bounds.y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="10" '
            f'fill="{colours["ground"]}"/>'
        ),
    ]
    for loop_id, box in placed.loops.items():
        drawn = loop_region(
            graph, graph.loops[loop_id], box, placed.titles.get(loop_id), marks, colours, level=placed.level
        )
        parts.append(f'<g data-loop="{esc(shorten(loop_id, 200))}">{drawn}</g>')
    parts += [_line(line, marks, colours) for line in placed.edges]
    chips = [(line, line.label) for line in placed.edges if line.label is not None]
    parts += [line_chip(line, box, placed.level, marks, colours) for line, box in chips]
    parts += [sign(key, box, marks, colours) for key, box in placed.signs.items()]
    for socket_id, box in placed.nodes.items():
        socket = graph.sockets[socket_id]
        told = socket_title(socket, marks)
        drawn = socket_card(socket, box, placed.level, marks, colours)
        title = f"<title>{esc(told)}</title>"
        parts.append(f'<g data-socket="{esc(shorten(socket_id, 200))}">{title}{drawn}</g>')
    parts += [_arrow(line, marks, colours) for line in placed.edges if not line.stub]
    parts.append("</svg>")
    return "".join(parts)


def _description(graph: Graph, marks: Marks) -> str:
    """What a screen reader says: every socket with its ways out, bounded."""
    sentences = []
    out: dict[str, list[str]] = {}
    for link in links(graph):
        words = link_words(link) or ("ends" if link.kind == "implied" else "always")
        out.setdefault(link.source, []).append(f"{words} to {part(link.to, 40)}")
    for socket in list(graph.sockets.values())[:60]:
        state = state_words(socket.id, marks)
        visits = marks.visits.get(socket.id, 0)
        sentences.append(
            f"{part(socket.id)} ({socket.materia.kind} {part(socket.materia.label, 40)}"
            f"{', loop consumer' if socket.loops else ''}"
            f"{', ' + who if (who := answered_words(socket.id, marks)) else ''}"
            f"{', visits ' + str(visits) if visits else ''}{', ' + state if state else ''}"
            f"{', breakpoint' if socket.id in marks.breakpoints else ''}): "
            f"{'; '.join(out.get(socket.id, [])[:8])}."
        )
    if len(graph.sockets) > 60:
        sentences.append(f"And {len(graph.sockets) - 60} more sockets.")
    sentences += [
        f"Loop {part(loop.id)}: {part(', '.join(map(part, loop.sockets[:20])), 400)}; "
        f"{loop_words(graph, loop, marks.progress.get(loop.id))}."
        for loop in graph.loops.values()
    ]
    return " ".join(sentences)


def colour_use(link: Link, marks: Marks) -> str:
    """Return the use of the colour that a line has at one moment of a cast."""
    if link.route is not None:
        if link.route in marks.never:
            return "rim"
        if link.route == marks.last_route:
            return "now"
        if (only := marks.only_routes.get(link.route, "")) in ("A", "B"):
            return only
    return line_use(link.condition)


def _line(line: Line, marks: Marks, colours: Colours) -> str:
    link = line.link
    use = colour_use(link, marks)
    strong = use in ("now", "A", "B")
    kind = "exit" if link.lanes else link.kind
    dashes = _NEVER if use == "rim" else _DASHES.get(kind, described(link.condition).dashes)
    dash = f' stroke-dasharray="{dashes[0]} {dashes[1]}"' if dashes else ""
    key = esc(shorten(link.key, 400))
    named = f' data-edge="{key}"' if link.kind in ("edge", "exit") else ""
    if link.kind == "exit":
        named = f' id="{key}"{named}'
    drawn = (
        f'<path{named} d="{line.d}" fill="none" stroke="{colours[use]}" '
        f'stroke-width="{3.2 if strong else 1.6}"{dash} stroke-linecap="round"/>'
    )
    if link.route in marks.break_routes:  # one round dash, a little behind the beginning
        drawn += (
            f'<path d="{line.d}" fill="none" stroke="{colours["break"]}" stroke-width="10" '
            'stroke-dasharray="0.01 99999" stroke-dashoffset="-14" stroke-linecap="round"><title>breakpoint</title></path>'
        )
    return drawn


def _bar(line: Line, colours: Colours) -> str:
    """The bar across a line, behind its head: lanes part there, or, where it is hollow, have come together."""
    (x, y), (dx, dy) = line.tip, line.heading
    x, y = x - 14 * dx, y - 14 * dy
    d = f"M{x - 14 * dy:.1f} {y + 14 * dx:.1f}L{x + 14 * dy:.1f} {y - 14 * dx:.1f}"
    strokes = (("line", 6), ("plate", 3)) if line.link.lanes == "barrier" else (("line", 5),)
    drawn = "".join(f'<path d="{d}" stroke="{colours[use]}" stroke-width="{wide}"/>' for use, wide in strokes)
    return f"<g>{drawn}<title>{line.link.lanes}</title></g>"


def _arrow(line: Line, marks: Marks, colours: Colours) -> str:
    """The head of a line: hollow for a loop exit, with a bar where lanes part or come together."""
    use = colour_use(line.link, marks)
    (x, y), (dx, dy) = line.tip, line.heading
    length, half = (12.0, 6.0) if use == "now" else (9.0, 4.5)
    bx, by = x - dx * length, y - dy * length
    points = (
        f"{x:.1f},{y:.1f} {bx - dy * half:.1f},{by + dx * half:.1f} {bx + dy * half:.1f},{by - dx * half:.1f}"
    )
    fill = colours["plate"] if line.link.kind == "exit" else colours[use]
    return (_bar(line, colours) if line.link.lanes else "") + (
        f'<polygon points="{points}" fill="{fill}" stroke="{colours[use]}" stroke-width="1.4" '
        'stroke-linejoin="round"/>'
    )


def line_chip(line: Line, box: Box, level: int, marks: Marks, colours: Colours) -> str:
    """Draw what stands on a line; see :func:`~materia_nb.display.graph_parts.chip_words`."""
    words = chip_words((line.link, *line.shared), marks, stub=line.stub)
    use = next((use for one in (line.link, *line.shared) if (use := colour_use(one, marks)) == "now"), "")
    use = use or colour_use(line.link, marks)
    size, now = small_size(level), use == "now"
    width = min(text_width(words, size, bold=now) + 12, box.w + 6)
    ink = {"now": colours["now-ink"], "rim": colours["soft"], "line": colours[line.link.condition]}.get(
        use, colours.get(use, "")
    )
    at = Box(box.cx - width / 2, box.cy - size / 2 - 3.5, width, size + 7)
    rim = colours["now" if now else "rim"]
    return pill(at, words, ink, colours["plate"], rim, size=size, width=2 if now else 1.0, bold=now)


@dataclass(frozen=True, slots=True, repr=False)
class GraphPicture(Shown):
    """A graph with marks laid over it, to be the value of a cell: SVG, and text where that is not drawn."""

    graph: Graph
    marks: Marks = field(default_factory=Marks)

    @property
    def svg(self) -> str:
        """The picture as SVG."""
        return graph_svg(self.graph, self.marks)

    @property
    def text(self) -> str:
        """The graph as a grid of text."""
        return graph_text(self.graph, self.marks)

    @property
    def mermaid(self) -> str:
        """The graph as mermaid source."""
        return graph_mermaid(self.graph, self.marks)

    def __repr__(self) -> str:
        return f"<GraphPicture {self.graph.name!r}, {len(self.graph.sockets)} sockets>"

    def _blocks(self) -> list[Block]:
        return [Picture(self.svg, self.text)]


VIEWS[Graph] = GraphPicture
