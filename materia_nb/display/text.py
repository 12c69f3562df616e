"""Tables and graphs as plain text for terminals and ``text/plain``, and graphs as Mermaid source."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from materia_nb.display.escape import part
from materia_nb.display.graph_parts import (
    END_MARKER,
    NEVER,
    NO_OVERLAY,
    START_MARKER,
    TIMES_SIGN,
    CastOverlay,
    Link,
    LoopFrame,
    edge_label,
    graph_summary,
    kind_and_answerer,
    link_label,
    links,
    loop_label,
    nested_frames,
    reachable_keys,
    socket_kinds,
    socket_notes,
    state_label,
)
from materia_nb.errors import plain
from materia_nb.loadout.graph import Graph, Socket
from materia_nb.loadout.vocabulary import condition_spec

WIDTH: Final = 88
"""Default width of a table, in terminal columns."""
_LONGEST_WORD: Final = 26  # This is the length of a cast id. Longer words are split.
_MIN_WRAPPED_WIDTH: Final = 8  # Narrower cells are not wrapped, so that a number and its unit stay together.
_INDENT: Final = " " * 7
_ISOLATE_START: Final = "\u2068"
_ISOLATES: Final = "\u2068\u2069"
_ZERO_WIDTH: Final = frozenset("\u200b\u200c\u200d\u2060\u2068\u2069\ufe0e\ufe0f")


def display_width(text: str) -> int:
    """Return the width of one line of text in terminal columns. Wide East Asian letters and emoji take two columns."""
    if text.isascii():
        return len(text)
    columns = 0
    for char in text:
        if char in _ZERO_WIDTH or unicodedata.category(char) in ("Mn", "Me"):
            continue
        columns += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return columns


def _cell_text(value: object, limit: int) -> str:
    if value is None:
        return ""
    return part(value, limit)


def _is_number_or_empty(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def table(
    rows: Sequence[Sequence[object]],
    headers: Sequence[str],
    *,
    limit: int = 400,
    width: int = WIDTH,
    below: Sequence[Sequence[str]] = (),
) -> str:
    """Format ``rows`` as a table with ``headers``. Columns of numbers are right-aligned, and empty columns are omitted.

    Long cells are wrapped, so that lines have at most ``width`` columns if possible. Untrusted notebooks and GitHub
    break words in longer lines.

    Args:
        rows: the cells of each row, of any type. None is an empty cell, and short rows are padded.
        headers: a header for each column.
        limit: maximum length of a cell, in characters.
        width: maximum width of a line, in terminal columns.
        below: for each row, the lines to print below it, over the full width.
    """
    count = len(headers)
    cells = [[_cell_text(value, limit) for value in (*row, *[None] * (count - len(row)))][:count] for row in rows]
    columns_shown = [n for n in range(count) if not cells or any(row[n] for row in cells)]
    numeric_columns = {
        n for n in columns_shown if rows and all(_is_number_or_empty(row[n]) for row in rows if n < len(row))
    }
    header_texts = [plain(header) for header in headers]
    columns = {n: [header_texts[n], *(row[n] for row in cells)] for n in columns_shown}
    widths = _column_widths(columns, width)

    def line(row: Sequence[str]) -> str:
        padded = []
        for n in columns_shown:
            padding = " " * (widths[n] - display_width(row[n]))
            padded.append(padding + row[n] if n in numeric_columns else row[n] + padding)
        return "  ".join(padded).rstrip()

    rule = "  ".join("─" * widths[n] for n in columns_shown)
    lines = [*(map(line, _wrapped_rows(header_texts, widths)) if widths else [""]), rule]
    for index, row in enumerate(cells):
        lines += [line(wrapped_line) for wrapped_line in _wrapped_rows(row, widths)] or [""]
        for text in below[index] if index < len(below) else ():
            lines += [f"{_INDENT}{wrapped_line}" for wrapped_line in _wrap_cell(text, width - len(_INDENT))]
    return "\n".join(lines)


def _column_widths(columns: dict[int, list[str]], max_width: int) -> dict[int, int]:
    """Return the width of each column. The widest columns are narrowed, if possible without splitting words."""
    widths = {n: max(map(display_width, cells)) for n, cells in columns.items()}
    min_widths = {n: min(width, _MIN_WRAPPED_WIDTH) for n, width in widths.items()}
    for n, cells in columns.items():
        longest_word = max((display_width(word) for cell in cells for word in cell.split()), default=0)
        min_widths[n] = max(min_widths[n], min(longest_word, _LONGEST_WORD))
    while (excess := sum(widths.values()) + 2 * (len(widths) - 1) - max_width) > 0:
        shrinkable = [n for n in widths if widths[n] > min_widths[n]]
        if not shrinkable:
            break
        widest = max(shrinkable, key=lambda n: widths[n])
        next_width = max((widths[n] for n in shrinkable if n != widest), default=0)
        narrower = max(widths[widest] - excess, min(next_width, widths[widest] - 1), min_widths[widest])
        widths[widest] = narrower
    return widths


def _wrapped_rows(row: list[str], widths: dict[int, int]) -> Iterator[list[str]]:
    """Yield the lines of one row, with its cells wrapped at spaces, or inside words if necessary."""
    wrapped_cells = {n: _wrap_cell(row[n], width) for n, width in widths.items()}
    for index in range(max(map(len, wrapped_cells.values()), default=0)):
        yield [wrapped_cells[n][index] if index < len(wrapped_cells.get(n, ())) else "" for n in range(len(row))]


def _wrap_cell(cell: str, width: int) -> list[str]:
    cell_width = display_width(cell)
    if cell_width <= width:
        return [cell]
    if _ISOLATE_START in cell:  # If it were split, its bidirectional isolates could reorder adjacent text.
        return [part(cell.strip(_ISOLATES), width)]
    return textwrap.wrap(cell, width if cell_width == len(cell) else max(1, width // 2), break_on_hyphens=False)


def _edge_list(socket: Socket, marks: CastOverlay) -> str:
    """Describe the edges of a socket in their evaluation order."""
    descriptions = []
    for number, edge in enumerate(socket.edges, 1):
        text = f"{number}. " if len(socket.edges) > 1 else ""
        text += edge_label(edge, marks.budgets.get((socket.id, edge.index)), item=marks.in_item)
        times_taken = marks.traversals.get(f"{socket.id}->{edge.to}", 0)
        if times_taken:
            text += f" {TIMES_SIGN}{times_taken}"
        if marks.last_route == (socket.id, edge.index):
            text += " ◂ taken last"
        if only_side := marks.route_sides.get((socket.id, edge.index)):
            text += f" ◂ only in {only_side}"
        if (socket.id, edge.index) in marks.unused_routes:
            text += f", {NEVER}"
        descriptions.append(text)
    return "; ".join(descriptions) or "→ end"


def graph_text(graph: Graph, marks: CastOverlay = NO_OVERLAY) -> str:
    """Describe ``graph`` as text: a table of sockets and their edges, loops and exits, and derived facts (R15)."""
    graph_links = links(graph)
    reachable = reachable_keys(graph.entry, graph_links)
    rows, below = [], []
    for socket in graph.sockets.values():
        flags = [state_label(socket.id, marks), "● break" if socket.id in marks.breakpoints else ""]
        notes = list(socket_notes(socket))
        if socket.id not in reachable:
            notes.append("not reachable")
        rows.append(
            [
                "▸" if socket.id == graph.entry else "",
                part(socket.id),
                ", ".join([kind_and_answerer(socket, marks), *socket_kinds(socket)[1:]]),
                part(socket.materia.label),
                socket.parse + (" (derived)" if socket.parse_derived else ""),
                marks.visits.get(socket.id) or None,
                " ".join(flag for flag in flags if flag),
                ", ".join(part(loop) for loop in socket.loops),
            ]
        )
        below.append([_edge_list(socket, marks), *(["also " + "; ".join(notes)] if notes else [])])
    headers = ["", "socket", "kind", "materia", "parse", "visits", "cast", "loop"]
    parts = [graph_summary(graph, marks), table(rows, headers, below=below)]
    parts += _loop_paragraphs(graph, marks)
    if graph.derived:
        facts = [f"  {part(fact.source, 120)}: {part(fact.text, 300)}" for fact in graph.derived]
        parts.append("\n".join(["derived", *facts]))
    return "\n\n".join(parts)


def _loop_paragraphs(graph: Graph, marks: CastOverlay) -> list[str]:
    """Return a paragraph about each loop: its members, its list, its cursor and its exits."""
    paragraphs = []
    exit_links = [link for link in links(graph) if link.kind == "exit"]
    for loop in graph.loops.values():
        members = part(", ".join(part(socket) for socket in loop.sockets[:60]), 1000)
        lines = [f"loop {part(loop.id)}: {members}"]
        label = loop_label(graph, loop, marks.progress.get(loop.id))
        if loop.iterator is not None:
            label += f" · as {part(loop.iterator.alias)} · cursor {part(loop.iterator.cursor)}"
        lines.append("  " + label)
        for link in exit_links:
            if link.loop != loop.id:
                continue
            suffix = " ◂ taken last" if marks.last_route == link.route else ""
            if link.route is not None and link.route in marks.route_sides:
                suffix += f" ◂ only in {marks.route_sides[link.route]}"
            suffix = f", {NEVER}" if link.route in marks.unused_routes else suffix
            lines.append(
                f"  exit from {part(link.source)}: {condition_spec(link.condition).sign} → {part(link.to)}"
                f"  [{part(link.key, 300)}]{suffix}"
            )
        paragraphs.append("\n".join(lines))
    return paragraphs


# All ASCII characters that Mermaid or its HTML could interpret as markup.
_UNSAFE_IN_MERMAID: Final = re.compile(r"[^\w \-.,:/()=\u0080-\U0010ffff]", re.ASCII)
_LIST_MARKER: Final = re.compile(r"^(\d*)([.\-)])")
_LINE_BREAK: Final = "<br/>"


def mermaid_text(text: object, limit: int = 300) -> str:
    """Shorten ``text`` and encode it for a quoted Mermaid label."""
    encoded_text = _UNSAFE_IN_MERMAID.sub(lambda match: f"#{ord(match.group())};", part(text, limit))
    # Mermaid would read "1. x" and "- x" as lists.
    return _LIST_MARKER.sub(lambda match: f"{match.group(1)}#{ord(match.group(2))};", encoded_text)


def _mermaid_label(*lines: str) -> str:
    return '"' + _LINE_BREAK.join(mermaid_text(line) for line in lines if line) + '"'


class _MermaidWriter:
    """Writer of the Mermaid source of one graph."""

    def __init__(self, graph: Graph, marks: CastOverlay) -> None:
        self.graph = graph
        self.marks = marks
        self.ids = {key: f"n{number}" for number, key in enumerate(graph.sockets, 1)}
        self.ids |= {START_MARKER: "s0", END_MARKER: "e0"}
        self.lines = ["flowchart TD"]

    def write_socket(self, key: str, indent: str) -> None:
        """Write a socket as a rounded box (agent), a hexagon (utility), or a box with double sides (generator)."""
        socket = self.graph.sockets[key]
        visits = self.marks.visits.get(key, 0)
        label = _mermaid_label(
            part(socket.id) + (f" {TIMES_SIGN}{visits}" if visits else ""),
            part(socket.materia.label),
            ", ".join([kind_and_answerer(socket, self.marks), *socket_kinds(socket)[1:]]),
            *socket_notes(socket),
            state_label(key, self.marks),
            "● break" if key in self.marks.breakpoints else "",
        )
        left, right = ("[[", "]]") if socket.is_generator else ("{{", "}}") if socket.is_utility else ("(", ")")
        self.lines.append(f"{indent}{self.ids[key]}{left}{label}{right}")

    def write_frame(self, frame: LoopFrame, indent: str, counter: list[int]) -> None:
        """Write the members of a frame, with nested loops as subgraphs."""
        for key in frame.sockets:
            self.write_socket(key, indent)
        for child in frame.children:
            counter[0] += 1
            title = ""
            if child.loop is not None:
                loop = self.graph.loops[child.loop]
                title = _mermaid_label(
                    "loop " + part(loop.id), loop_label(self.graph, loop, self.marks.progress.get(loop.id))
                )
            self.lines.append(f"{indent}subgraph g{counter[0]}[{title}]")
            self.write_frame(child, indent + "  ", counter)
            self.lines.append(f"{indent}end")

    def write_link(self, link: Link) -> None:
        """Write a line: dotted for exits and implied ends, and thick for the latest route."""
        arrow = "-.->" if link.kind in ("exit", "implied") else "-->"
        label = link_label(link, self.marks)
        if link.route is not None and link.route == self.marks.last_route:
            arrow = "==>"
            label = f"{label} (taken last)".strip()
        label = f"|{_mermaid_label(label)}|" if label else ""
        self.lines.append(f"  {self.ids[link.source]} {arrow}{label} {self.ids[link.target]}")


def graph_mermaid(graph: Graph, marks: CastOverlay = NO_OVERLAY) -> str:
    """Return ``graph`` and ``marks`` as the source of a Mermaid flowchart.

    The ids of the nodes are generated here, and every label is encoded, so that untrusted text is never interpreted as
    markup.
    """
    writer = _MermaidWriter(graph, marks)
    root, _, overlapping_loops = nested_frames(graph, frozenset())
    writer.lines += ['  s0(["start"])', '  e0(["end"])']
    writer.write_frame(root, "  ", [0])
    for number, loop_id in enumerate(overlapping_loops, 1):
        loop = graph.loops[loop_id]
        title = _mermaid_label(f"loop {part(loop.id)}", loop_label(graph, loop, marks.progress.get(loop.id)))
        writer.lines.append(f"  o{number}>{title}]")
        writer.lines += [f"  o{number} -.- {writer.ids[key]}" for key in loop.sockets if key in graph.sockets]
    for link in links(graph):
        writer.write_link(link)
    for key, style in ((marks.current, "stroke:#e0a100"), (marks.failed, "stroke:#d5404d")):
        if key is not None and key in graph.sockets:
            writer.lines.append(f"  style {writer.ids[key]} {style},stroke-width:4px")
    return "\n".join(writer.lines) + "\n"
