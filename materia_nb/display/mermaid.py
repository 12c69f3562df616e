"""Mermaid source of a graph, for documents that render it. Ids are our own; every label is encoded."""

from __future__ import annotations

import re
from typing import Final

from materia_nb.display.escape import part
from materia_nb.display.graph_parts import (
    END_SIGN,
    START,
    TIMES,
    Link,
    Marks,
    Region,
    answer_words,
    kind_words,
    link_words,
    links,
    loop_words,
    regions,
    socket_notes,
    state_words,
)
from materia_nb.loadout.graph import Graph

# Everything in ASCII that mermaid or the HTML that it makes could read as more than text.
_ENCODED: Final = re.compile(r"[^\w \-.,:/()=\u0080-\U0010ffff]", re.ASCII)
_LIST: Final = re.compile(r"^(\d*)([.\-)])")
_BREAK: Final = "<br/>"


def mermaid_text(text: object, limit: int = 300) -> str:
    """Bound ``text`` and encode it for use inside a quoted mermaid label."""
    encoded = _ENCODED.sub(lambda match: f"#{ord(match.group())};", part(text, limit))
    # "1. x" and "- x" would be taken for lists.
    return _LIST.sub(lambda match: f"{match.group(1)}#{ord(match.group(2))};", encoded)


def _label(*lines: str) -> str:
    return '"' + _BREAK.join(mermaid_text(line) for line in lines if line) + '"'


class _Writer:
    """Writes one graph."""

    def __init__(self, graph: Graph, marks: Marks) -> None:
        self.graph = graph
        self.marks = marks
        self.ids = {key: f"n{number}" for number, key in enumerate(graph.sockets, 1)}
        self.ids |= {START: "s0", END_SIGN: "e0"}
        self.lines = ["flowchart TD"]

    def socket(self, key: str, indent: str) -> None:
        """One socket: rounded for an agent, hexagon for a utility, double-sided for a generator."""
        socket = self.graph.sockets[key]
        visits = self.marks.visits.get(key, 0)
        label = _label(
            part(socket.id) + (f" {TIMES}{visits}" if visits else ""),
            part(socket.materia.label),
            ", ".join([answer_words(socket, self.marks), *kind_words(socket)[1:]]),
            *socket_notes(socket),
            state_words(key, self.marks),
            "● break" if key in self.marks.breakpoints else "",
        )
        left, right = (
            ("[[", "]]") if socket.is_generator else ("{{", "}}") if socket.is_utility else ("(", ")")
        )
        self.lines.append(f"{indent}{self.ids[key]}{left}{label}{right}")

    def region(self, region: Region, indent: str, counter: list[int]) -> None:
        """What stands in a region, loops within it as subgraphs."""
        for key in region.sockets:
            self.socket(key, indent)
        for child in region.children:
            counter[0] += 1
            words = ""
            if child.loop is not None:
                loop = self.graph.loops[child.loop]
                words = _label("loop " + part(loop.id), loop_words(loop, self.marks.progress.get(loop.id)))
            self.lines.append(f"{indent}subgraph g{counter[0]}[{words}]")
            self.region(child, indent + "  ", counter)
            self.lines.append(f"{indent}end")

    def link(self, link: Link) -> None:
        """One line: dotted for exits and implied ends, thick where it was taken last."""
        arrow = "-.->" if link.kind in ("exit", "implied") else "-->"
        words = link_words(link, self.marks)
        if link.route is not None and link.route == self.marks.last_route:
            arrow = "==>"
            words = f"{words} (taken last)".strip()
        label = f"|{_label(words)}|" if words else ""
        self.lines.append(f"  {self.ids[link.source]} {arrow}{label} {self.ids[link.target]}")


def graph_mermaid(graph: Graph, marks: Marks | None = None) -> str:
    """Write ``graph``, with ``marks`` laid over it, as mermaid flowchart source."""
    marks = marks or Marks()
    writer = _Writer(graph, marks)
    root, _, loose = regions(graph, frozenset())
    writer.lines += ['  s0(["start"])', '  e0(["end"])']
    writer.region(root, "  ", [0])
    for number, loop_id in enumerate(loose, 1):
        loop = graph.loops[loop_id]
        words = _label(f"loop {part(loop.id)}", loop_words(loop, marks.progress.get(loop.id)))
        writer.lines.append(f"  o{number}>{words}]")
        writer.lines += [f"  o{number} -.- {writer.ids[key]}" for key in loop.sockets if key in graph.sockets]
    for link in links(graph):
        writer.link(link)
    for key, style in ((marks.current, "stroke:#e0a100"), (marks.failed, "stroke:#d5404d")):
        if key is not None and key in graph.sockets:
            writer.lines.append(f"  style {writer.ids[key]} {style},stroke-width:4px")
    return "\n".join(writer.lines) + "\n"
