"""The picture of a graph as one self-contained SVG.

No script, no style sheet, no external font, and nothing that refers to an ``id``, so that several may stand in
one page. Cards and label plates bring their own background, lines are mid-tone, so that it can be read on white and on black.
Nothing is told by colour alone.
"""

from __future__ import annotations

from typing import Final

from materia_nb.display.cards import (
    ID_SIZE,
    LABEL_SIZE,
    LINE,
    PADDING,
    SMALL_SIZE,
    Card,
    card,
    loop_title,
    stub_label,
)
from materia_nb.display.escape import esc, part, shorten
from materia_nb.display.geometry import Box, fit, text_width
from materia_nb.display.layout import Line, Placed, place
from materia_nb.display.links import END_SIGN, START, Link, links
from materia_nb.display.marks import Marks
from materia_nb.display.words import (
    NEVER,
    budget_words,
    count_words,
    link_words,
    loop_words,
    state_words,
    summary,
    who_words,
)
from materia_nb.loadout.conditions import described
from materia_nb.loadout.graph import END, Graph

FONT: Final = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"
_DASHES: Final = {"exit": (8, 5), "implied": (1, 5)}
_NEVER: Final = (1, 9)
INK, PLATE, RIM = "#1f2630", "#f3f5f8", "#98a1ad"
_LOOP, NOW, _BAD = "#8f6fd1", "#e0a100", "#d5404d"
_ONLY: Final = {"A": "#2f6fd0", "B": "#b8328c"}
"""The colours of what only one of two that are compared has; words say it too."""
_FILLS: Final = {"agent": "#2c5d8f", "utility": "#4a5560"}


def graph_svg(graph: Graph, marks: Marks | None = None, *, placed: Placed | None = None) -> str:
    """Draw ``graph``, with ``marks`` laid over it, as SVG text.

    Args:
        graph: the loadout.
        marks: where a cast stands; none for a bare loadout.
        placed: its layout, when the caller has it already.
    """
    marks = marks or Marks()
    placed = placed or place(graph)
    width, height = placed.size
    title = part(summary(graph, marks), 300)
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{esc(title)}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="{FONT}" font-size="{LABEL_SIZE:g}">'
    )
    parts = [
        root,
        f"<title>{esc(title)}</title>",
        f"<desc>{esc(_description(graph, marks))}</desc>",
    ]
    for loop_id, box in placed.loops.items():
        parts.append(_loop_box(loop_id, box))
    parts += [_line(line, marks) for line in placed.edges]
    parts += [_label(line, marks) for line in placed.edges if line.label]
    for loop_id, box in placed.titles.items():
        parts.append(_loop_title(graph, loop_id, box, placed.loops[loop_id], marks))
    parts += [_sign(key, box, marks) for key, box in placed.signs.items()]
    if placed.detached:
        box = placed.nodes[placed.detached[0]]
        words = f"not reachable from {part(graph.entry)}"
        parts.append(_plate(box.x, box.y - 30, words, INK, PLATE, RIM))
    for socket_id, box in placed.nodes.items():
        content = card(graph.sockets[socket_id], detached=socket_id in placed.detached)
        parts.append(_card(socket_id, content, box, marks))
    parts += [_arrow(line, marks) for line in placed.edges if not line.stub]
    parts.append("</svg>")
    return "".join(parts)


def _description(graph: Graph, marks: Marks) -> str:
    """What a screen reader says: every socket with its ways out, bounded."""
    sentences = []
    out: dict[str, list[str]] = {}
    for link in links(graph):
        target = END if link.target == END_SIGN else link.target
        words = link_words(link) or ("ends" if link.kind == "implied" else "always")
        out.setdefault(link.source, []).append(f"{words} to {part(target, 40)}")
    for socket in list(graph.sockets.values())[:60]:
        state = state_words(socket.id, marks)
        visits = marks.visits.get(socket.id, 0)
        sentences.append(
            f"{part(socket.id)} ({socket.materia.kind} {part(socket.materia.label, 40)}"
            f"{', loop consumer' if socket.loops else ''}"
            f"{', ' + _told(who) if (who := who_words(socket.id, marks)) else ''}"
            f"{', visits ' + str(visits) if visits else ''}{', ' + state if state else ''}): "
            f"{'; '.join(out.get(socket.id, [])[:8])}."
        )
    if len(graph.sockets) > 60:
        sentences.append(f"And {len(graph.sockets) - 60} more sockets.")
    sentences += [
        f"Loop {part(loop.id)}: {part(', '.join(map(part, loop.sockets[:20])), 400)}; "
        f"{loop_words(loop, marks.progress.get(loop.id))}."
        for loop in graph.loops.values()
    ]
    return " ".join(sentences)


def _told(who: str) -> str:
    return who if who.startswith("pinned: ") else f"answered by {who}"


def _text(x: float, y: float, text: str, size: float, fill: str, extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{fill}"{extra}>{esc(text)}</text>'


def _plate(x: float, y: float, text: str, ink: str, fill: str, rim: str) -> str:
    """A short text on a plate of its own; ``x``, ``y`` is its upper left corner."""
    width = text_width(text, SMALL_SIZE, bold=True) + 14
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="18" rx="9" fill="{fill}" stroke="{rim}"/>'
        + _text(x + width / 2, y + 12.8, text, SMALL_SIZE, ink, ' font-weight="600" text-anchor="middle"')
    )


def _loop_box(loop_id: str, box: Box) -> str:
    return (
        f'<rect data-loop="{esc(shorten(loop_id, 200))}" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.w:.1f}" '
        f'height="{box.h:.1f}" rx="12" fill="{_LOOP}" fill-opacity="0.07" stroke="{_LOOP}" '
        'stroke-width="1.6" stroke-dasharray="10 4 2 4"/>'
    )


def _loop_title(graph: Graph, loop_id: str, box: Box, region: Box, marks: Marks) -> str:
    first, second = loop_title(graph.loops[loop_id])
    progress = marks.progress.get(loop_id)
    if progress:
        second = f"{second} · {progress[0]}/{progress[1]} done"
    width = max(text_width(first, ID_SIZE, bold=True), text_width(second, SMALL_SIZE)) + 14
    leader = ""
    if box.x > region.right:  # the title of a loop that overlaps another stands apart
        leader = (
            f'<path d="M{region.right:.1f} {box.cy:.1f}L{box.x:.1f} {box.cy:.1f}" stroke="{_LOOP}" '
            'stroke-dasharray="10 4 2 4"/>'
        )
    return (
        leader + f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{width:.1f}" height="{box.h:.1f}" rx="6" '
        f'fill="{PLATE}" stroke="{_LOOP}" stroke-opacity="0.6"/>'
        + _text(box.x + 7, box.y + 14.5, first, ID_SIZE, "#4d3591", ' font-weight="600"')
        + _text(box.x + 7, box.y + 29.5, second, SMALL_SIZE, INK)
    )


def _taken(link: Link, marks: Marks) -> bool:
    return link.route is not None and link.route == marks.last_route


def _only(link: Link, marks: Marks) -> str:
    """Which of two that are compared alone has or took a line; empty for both or neither."""
    return marks.only_routes.get(link.route, "") if link.route is not None else ""


def _colour(link: Link, marks: Marks) -> str:
    if link.route is not None and link.route in marks.never:
        return RIM
    if _taken(link, marks):
        return NOW
    return _ONLY.get(_only(link, marks), described(link.condition).colour)


def _line(line: Line, marks: Marks) -> str:
    link = line.link
    taken = _taken(link, marks) or bool(_only(link, marks))
    never = link.route is not None and link.route in marks.never
    dashes = _NEVER if never else _DASHES.get(link.kind, described(link.condition).dashes)
    dash = f' stroke-dasharray="{dashes[0]} {dashes[1]}"' if dashes else ""
    key = esc(shorten(link.key, 400))
    named = f' data-edge="{key}"' if link.kind in ("edge", "exit") else ""
    if link.kind == "exit":
        named = f' id="{key}"{named}'
    return (
        f'<path{named} d="{line.d}" fill="none" stroke="{_colour(link, marks)}" '
        f'stroke-width="{3.4 if taken else 1.7}"{dash} stroke-linecap="round"/>'
    )


def _arrow(line: Line, marks: Marks) -> str:
    """The head of a line: hollow for a loop exit."""
    taken = _taken(line.link, marks)
    colour = _colour(line.link, marks)
    (x, y), (dx, dy) = line.tip, line.heading
    length, half = (12.0, 6.0) if taken else (9.0, 4.5)
    bx, by = x - dx * length, y - dy * length
    points = (
        f"{x:.1f},{y:.1f} {bx - dy * half:.1f},{by + dx * half:.1f} {bx + dy * half:.1f},{by - dx * half:.1f}"
    )
    fill = PLATE if line.link.kind == "exit" else colour
    return f'<polygon points="{points}" fill="{fill}" stroke="{colour}" stroke-width="1.4" stroke-linejoin="round"/>'


def _label(line: Line, marks: Marks) -> str:
    link, box = line.link, line.label
    if box is None:
        return ""
    words = stub_label(link) if line.stub else link_words(link)
    used = marks.budgets.get((link.source, link.place)) if link.place is not None else None
    if used and link.limit is not None:
        words = words.replace(budget_words(link.limit), budget_words(link.limit, used, item=marks.in_item))
    count = marks.traversals.get(link.traversal, 0) if link.kind == "edge" else 0
    if count:
        words += f" {count_words(count)}"
    if only := _only(link, marks):
        words += f" · {only}"  # no more: other labels are placed beside it by the width of its own words
    if link.route in marks.never:
        words += f" · {NEVER}"
    taken = _taken(link, marks)
    width = text_width(words, SMALL_SIZE) + 12
    rim = _colour(link, marks)
    centre = box.x + width / 2 if link.source == link.target else box.cx
    return (
        f'<rect x="{centre - width / 2:.1f}" y="{box.y:.1f}" width="{width:.1f}" height="{box.h:.1f}" rx="5" '
        f'fill="{PLATE}" stroke="{rim}" stroke-width="{2.4 if taken else 0.9}"/>'
        + _text(
            centre,
            box.y + 13.4,
            words,
            SMALL_SIZE,
            INK,
            ' text-anchor="middle"' + (' font-weight="700"' if taken else ""),
        )
    )


def _sign(key: str, box: Box, marks: Marks) -> str:
    """The start or the end; the end says when it was reached."""
    words = "start" if key == START else "end"
    reached = key == END_SIGN and marks.last_route is not None and marks.last_route[1] == END
    rim = f'stroke="{NOW}" stroke-width="3"' if reached else f'stroke="{RIM}"'
    inner = ""
    if key == END_SIGN:
        inner = (
            f'<rect x="{box.x + 3:.1f}" y="{box.y + 3:.1f}" width="{box.w - 6:.1f}" height="{box.h - 6:.1f}" '
            f'rx="{(box.h - 6) / 2:.1f}" fill="none" stroke="{RIM}"/>'
        )
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.w:.1f}" height="{box.h:.1f}" rx="{box.h / 2:.1f}" '
        f'fill="#2b313a" {rim}/>{inner}'
        + _text(
            box.cx, box.cy + 4, words, SMALL_SIZE + 0.5, "#ffffff", ' text-anchor="middle" font-weight="600"'
        )
    )


def _outline(box: Box, kind: str, fill: str, stroke: str, extra: str = "") -> str:
    """The shape of a card: rounded for an agent, cut corners for a utility."""
    if kind != "utility":
        return (
            f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.w:.1f}" height="{box.h:.1f}" rx="11" '
            f'fill="{fill}" {stroke}{extra}/>'
        )
    x, y, r, b, c = box.x, box.y, box.right, box.bottom, 9
    points = [(x + c, y), (r - c, y), (r, y + c), (r, b - c), (r - c, b), (x + c, b), (x, b - c), (x, y + c)]
    joined = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
    return f'<polygon points="{joined}" fill="{fill}" {stroke}{extra}/>'


def _card(socket_id: str, content: Card, box: Box, marks: Marks) -> str:
    """One socket: shape and words for its kind, marks for where a cast stands."""
    fill, ink = content.tint or (_FILLS[content.kind], "#ffffff")
    soft, line = (ink, RIM) if content.tint else ("#d5dde6", PLATE)
    parts = [f'<g data-socket="{esc(shorten(socket_id, 200))}">']
    if socket_id in marks.pins:
        parts.append(f"<title>{esc(who_words(socket_id, marks))}</title>")
    state = state_words(socket_id, marks)
    rings = {"✖ failed": _BAD, "only A": _ONLY["A"], "only B": _ONLY["B"]}
    ring = rings.get(state, NOW) if state else ""
    if ring:
        grown = Box(box.x - 4.5, box.y - 4.5, box.w + 9, box.h + 9)
        dash = ' stroke-dasharray="6 4"' if state == "✖ failed" else ""
        parts.append(_outline(grown, content.kind, "none", f'stroke="{ring}" stroke-width="3.4"', dash))
    if "generator" in content.badges:
        behind = box.moved(4, 4)
        parts.append(_outline(behind, content.kind, fill, f'stroke="{line}" stroke-opacity="0.7"'))
    parts.append(_outline(box, content.kind, fill, f'stroke="{line}" stroke-opacity="0.7"'))
    if content.kind == "utility":
        inner = Box(box.x + 3, box.y + 3, box.w - 6, box.h - 6)
        parts.append(_outline(inner, content.kind, "none", f'stroke="{line}" stroke-opacity="0.45"'))
    left, right = box.x + PADDING, box.right - PADDING
    y = box.y + (box.h - content.h) / 2 + 20
    parts.append(_text(left, y, content.title, ID_SIZE, ink, ' font-weight="700"'))
    room = right - left - text_width(content.title, ID_SIZE, bold=True) - 10
    kind = _kind(content, who_words(socket_id, marks), room, pinned=socket_id in marks.pins)
    parts.append(_text(right, y, kind, SMALL_SIZE, soft, ' text-anchor="end" font-style="italic"'))
    y += LINE
    parts.append(_text(left, y, content.label, LABEL_SIZE, ink))
    visits = marks.visits.get(socket_id, 0)
    if visits:
        parts.append(
            _text(right, y, count_words(visits), LABEL_SIZE, ink, ' text-anchor="end" font-weight="700"')
        )
    if content.badges:
        y += LINE + 2
        parts.append(_badges(left, y, content))
        y += 1
    for note in content.notes:
        y += LINE
        parts.append(_text(left, y, note, SMALL_SIZE, ink if content.tint else "#e6ebf1"))
    if state:
        ink = INK if ring == NOW else "#ffffff"
        parts.append(_plate(box.x - 8, box.y - 13, state, ink, ring, ring))
    if socket_id in marks.breakpoints:
        words = "● break"
        width = text_width(words, SMALL_SIZE, bold=True) + 14
        parts.append(_plate(box.right + 8 - width, box.y - 13, words, "#ffffff", "#a32035", PLATE))
    parts.append("</g>")
    return "".join(parts)


def _kind(content: Card, who: str, room: float, *, pinned: bool) -> str:
    """The kind of a socket and who answers it, as far as there is room: the shape tells the kind too."""
    ways = [f"{content.kind} · {who}", who, "pinned"][: 3 if pinned else 2] if who else [content.kind]
    return next((way for way in ways if text_width(way, SMALL_SIZE) <= room), fit(ways[-1], SMALL_SIZE, room))


def _badges(x: float, y: float, content: Card) -> str:
    made = []
    for badge in content.badges:
        made.append(_badge(x, y, badge, RIM if content.tint else PLATE))
        x += text_width(badge, SMALL_SIZE) + 20
    return "".join(made)


def _badge(x: float, y: float, words: str, rim: str) -> str:
    width = text_width(words, SMALL_SIZE) + 12
    return (
        f'<rect x="{x:.1f}" y="{y - 12.5:.1f}" width="{width:.1f}" height="16" rx="4" fill="{PLATE}" '
        f'stroke="{rim}" stroke-width="0.8"/>'
        + _text(x + width / 2, y - 0.8, words, SMALL_SIZE, INK, ' text-anchor="middle"')
    )
