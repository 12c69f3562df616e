"""What stands on the card of each socket and beside each line, and how much room that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from materia_nb.display.escape import part
from materia_nb.display.geometry import fit, text_width
from materia_nb.display.graph_parts import (
    END_SIGN,
    NEVER,
    Link,
    Marks,
    count_words,
    edge_words,
    loop_words,
    socket_notes,
)
from materia_nb.loadout.graph import Graph, Loop, Socket
from materia_nb.loadout.vocabulary import Tint, tint_of

TITLE_SIZE: Final = 14.0
LABEL_SIZE: Final = 11.5
SMALL_SIZE: Final = 11.0
LINE: Final = 15.0
LEFT: Final = 15.0
"""Room at the left of a card, its bar of colour included."""
RIGHT: Final = 8.0
CARD_MAX: Final = 312.0
CARD_MIN: Final = 150.0
CARD_HIGH: Final = 46.0
# Room kept for who answers and for a visit count, so that a running cast does not move.
WHO_ROOM: Final = 58.0
COUNT_ROOM: Final = 42.0
CONSUMER: Final = "↻"
"""Stands before the id of a socket that consumes a loop."""
_SIGNS: Final = {"always": "always", "satisfied": "✓", "not_satisfied": "✗"}


@dataclass(frozen=True, slots=True)
class Card:
    """The lines on one socket's card, already bounded but not escaped, its size in pixels, and its materia's colour.

    ``kind`` is that of its colour: ``generator`` for an agent or utility that makes the items of a loop.
    """

    title: str
    below: str
    kind: str
    notes: tuple[str, ...]
    w: float
    h: float
    tint: Tint | None = None


def kinds_of(socket: Socket) -> str:
    """Say on a card what a socket is: agent or utility, generator, multi-turn; the last two are agents, unless it says utility."""
    words = ["utility"] if socket.materia.kind == "utility" else []
    if socket.is_generator:
        words.append("generator")
    if socket.materia.multi_turn:
        words.append("multi-turn")
    return " · ".join(words) or "agent"


def card(socket: Socket, *, detached: bool = False) -> Card:
    """Lay out the card of ``socket``; a detached one lists its edges, for no lines are drawn from it."""
    most = CARD_MAX - LEFT - RIGHT
    title = fit(part(socket.materia.label) or part(socket.id), TITLE_SIZE, most - WHO_ROOM, bold=True)
    consumer = f"{CONSUMER} " if socket.loops else ""
    kinds = f" · {kinds_of(socket)}"
    room = most - COUNT_ROOM - text_width(consumer + kinds, LABEL_SIZE)
    below = f"{consumer}{fit(part(socket.id), LABEL_SIZE, room)}{kinds}"
    words = [
        *(
            note.replace("when satisfied", "✓").replace("when not_satisfied", "✗")
            for note in socket_notes(socket)
        ),
        *(edge_words(edge) for edge in socket.edges[:6] if detached),
    ]
    notes = tuple(fit(part(note, 120), SMALL_SIZE, most) for note in words)
    widths = [
        text_width(title, TITLE_SIZE, bold=True) + WHO_ROOM,
        text_width(below, LABEL_SIZE) + COUNT_ROOM,
        *(text_width(note, SMALL_SIZE) for note in notes),
    ]
    return Card(
        title,
        below,
        "generator" if socket.is_generator else socket.materia.kind,
        notes,
        w=min(CARD_MAX, max(CARD_MIN, max(widths) + LEFT + RIGHT)),
        h=CARD_HIGH + LINE * len(notes),
        tint=tint_of(socket.materia.raw.get("color")),
    )


def who_badge(socket: Socket, marks: Marks) -> str:
    """Say in a few letters who answers a socket, or that it is pinned; empty when there is nothing to say."""
    if socket.id in marks.pins:
        return "pinned"
    who = part(marks.answers.get(socket.id, ""), 60)
    if not who:
        return part(socket.materia.command[0].rsplit("/", 1)[-1], 40) if socket.materia.command else ""
    for word, badge in (("person", "you"), ("function", "f()"), ("<lambda>", "f()")):
        if who.partition(" ")[0] in (word, f"{word}()"):
            return badge
    provider, colon, model = who.partition(":")
    return model.rsplit("/", 1)[-1].strip() if colon and provider.isidentifier() and model.strip() else who


def chip(link: Link, marks: Marks | None = None) -> str:
    """Write what stands on a line: its number in evaluation order, its condition, how often it may be taken and was.

    Empty for a single plain edge.
    """
    if link.kind in ("start", "implied"):
        return ""
    parts = []
    if link.kind == "exit":
        parts.append(f"exit {_SIGNS[link.condition]}")
    elif link.order or link.condition != "always" or link.limit is not None:
        parts.append((f"{link.order} " if link.order else "") + _SIGNS[link.condition])
    if link.limit is not None and link.place is not None:
        used = marks.budgets.get((link.source, link.place)) if marks is not None else None
        if used is None or marks is None:
            parts.append(f"max {link.limit}")
        else:
            parts.append(f"{'this item: ' if marks.in_item else 'used '}{used[0]} of {used[1]}")
    if marks is not None and link.route in marks.never:
        parts.append(NEVER)
    return " · ".join(parts)


def live_chip(link: Link, marks: Marks, *, stub: bool, alone: bool) -> str:
    """Write a line's chip for one moment of a cast: how often it was taken, and which of two that are compared has it.

    Args:
        link: the line.
        marks: the moment.
        stub: whether it only names its target.
        alone: whether it is the only edge between its two sockets, so that the count is its own.
    """
    words = stub_label(link) if stub else chip(link, marks)
    count = marks.traversals.get(link.traversal, 0) if words and link.kind == "edge" and alone else 0
    only = marks.only_routes.get(link.route, "") if link.route is not None else ""
    return " ".join(
        one for one in (words, count_words(count) if count else "", f"· {only}" if only else "") if one
    )


def stub_label(link: Link) -> str:
    """Label of a line that only names its target."""
    words = chip(link)
    target = "end" if link.target == END_SIGN else part(link.target, 40)
    return f"{words} ▸ {target}" if words else f"▸ {target}"


def stub_size(link: Link) -> tuple[float, float]:
    """Width and height to keep for the label of a line that only names its target."""
    return (text_width(stub_label(link) + "000", SMALL_SIZE) + 38, 19.0)


def label_size(link: Link) -> tuple[float, float]:
    """Width and height to keep for a line's label; (0, 0) without one. The same in every state of a cast."""
    words = chip(link)
    if not words:
        return (0.0, 0.0)
    if link.limit is not None:  # in a cast it says how often it was taken
        words = words.replace(f"max {link.limit}", f"this item: {link.limit} of {link.limit}")
    return (text_width(words, SMALL_SIZE) + 14 + (24 if link.kind == "edge" else 0), 19.0)


def loop_title(graph: Graph, loop: Loop) -> tuple[str, str]:
    """The name of a loop region and what it goes over, bounded, without progress."""
    words = loop_words(loop)
    if loop.generator is not None and loop.generator in graph.sockets:
        words = f"{part(loop.output or 'workItems')} of {part(graph.sockets[loop.generator].materia.label)}"
    return (
        fit("loop " + part(loop.id), LABEL_SIZE, 220, bold=True),
        fit(part(words, 200), LABEL_SIZE, 260),
    )


def title_size(graph: Graph, loop: Loop) -> tuple[float, float]:
    """Width and height to keep for a loop's title, progress included."""
    first, second = loop_title(graph, loop)
    return (max(text_width(first, LABEL_SIZE, bold=True) + 118, text_width(second, LABEL_SIZE)) + 26, 34.0)


def folded_size(graph: Graph, loop: Loop) -> tuple[float, float]:
    """Width and height of a loop drawn as one card."""
    return (max(title_size(graph, loop)[0] + 14, CARD_MIN), CARD_HIGH + 4)
