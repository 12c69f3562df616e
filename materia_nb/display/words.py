"""How the parts of a graph are put into words, the same in every rendering.

Foreign text in them is bounded and harmless as text, but not yet escaped for HTML.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from materia_nb.display.escape import part
from materia_nb.display.links import Link, may_fall_through
from materia_nb.display.marks import Marks
from materia_nb.loadout.graph import Advance, Edge, Graph, Loop, Socket
from materia_nb.loadout.vocabulary import described

TIMES: Final = "\N{MULTIPLICATION SIGN}"
NEVER: Final = "never taken"


def kind_words(socket: Socket) -> tuple[str, ...]:
    """Say what a socket is: agent or utility, then generator, multi-turn and loop consumer where they apply."""
    words: list[str] = [socket.materia.kind]
    if socket.is_generator:
        words.append("generator")
    if socket.materia.multi_turn:
        words.append("multi-turn")
    if socket.loops:
        words.append("loop consumer")
    return tuple(words)


def who_words(socket_id: str, marks: Marks) -> str:
    """Say who answers a socket in a cast, or what it is pinned to (R40); empty when there is nothing to say."""
    if (to := marks.pins.get(socket_id)) is not None:
        return f"pinned: {part(to, 80)}"
    return part(marks.answers.get(socket_id, ""), 80)


def answer_words(socket: Socket, marks: Marks) -> str:
    """Say what a socket is, and who answers it in a cast: ``agent · person``."""
    who = who_words(socket.id, marks)
    return f"{socket.materia.kind} · {who}" if who else socket.materia.kind


def count_words(count: int) -> str:
    """Write a count in few characters: 12, 12k, 3M."""
    for size, unit in ((1_000_000, "M"), (10_000, "k")):
        if count >= size:
            return f"{TIMES}{count // (1000 if unit == 'k' else size)}{unit}"
    return f"{TIMES}{count}"


def advance_words(advance: Advance) -> str:
    """Say what an advance does, and whether it was derived (R15)."""
    when = "" if advance.when == "always" else f" when {advance.when}"
    return f"advance ▸ {part(advance.cursor)}{when}{' (derived)' if advance.derived else ''}"


def socket_notes(socket: Socket) -> tuple[str, ...]:
    """List what else a picture should say at a socket: own foreach, advance, falling through to the end."""
    notes = []
    if socket.iterator is not None and socket.iterator.loop is None:
        notes.append(f"for each {part(socket.iterator.items)} as {part(socket.iterator.alias)}")
    if socket.advance is not None:
        notes.append(advance_words(socket.advance))
    if may_fall_through(socket):
        notes.append("no match ▸ end")
    return tuple(notes)


def loop_words(loop: Loop, progress: tuple[int, int] | None = None) -> str:
    """Say what a loop goes over and how far it has come."""
    parts = []
    if loop.generator is not None:
        parts.append(f"consumes {part(loop.output or 'workItems')} of {part(loop.generator)}")
    elif loop.iterator is not None:
        parts.append(f"for each {part(loop.iterator.items)} as {part(loop.iterator.alias)}")
    if progress is not None:
        parts.append(f"{progress[0]}/{progress[1]} done")
    return " · ".join(parts) or "no list"


def budget_words(limit: int, used: tuple[int, int] | None = None, *, item: bool = False) -> str:
    """Say how often an edge may be taken, or how often it was, for the current item or in all (R18)."""
    if used is None:
        return f"max {limit}"
    return f"this item: {used[0]} of {used[1]}" if item else f"used {used[0]}/{used[1]}"


def link_words(link: Link, marks: Marks | None = None) -> str:
    """Label of a line: number in evaluation order, condition, budget; empty for a single plain edge."""
    if link.kind in ("start", "implied"):
        return ""
    parts = []
    if link.kind == "exit":
        parts.append("exit " + described(link.condition).sign)
    elif link.order or link.condition != "always" or link.limit is not None:
        parts.append((f"{link.order} " if link.order else "") + described(link.condition).sign)
    if link.limit is not None and link.place is not None:
        used = marks.budgets.get((link.source, link.place)) if marks else None
        parts.append(budget_words(link.limit, used, item=marks is not None and marks.in_item))
    if marks is not None and link.route in marks.never:
        parts.append(NEVER)
    return " · ".join(parts)


def edge_words(edge: Edge) -> str:
    """Say when an edge is taken, to where, and how often it may be."""
    limit = f" ({budget_words(edge.max_traversals)})" if edge.max_traversals is not None else ""
    return f"{described(edge.when).sign} → {part(edge.to)}{limit}"


def state_words(socket_id: str, marks: Marks) -> str:
    """Say where the cast stands with respect to a socket; empty when nowhere."""
    if socket_id == marks.failed:
        return "✖ failed"
    if socket_id == marks.current:
        return "‖ held" if marks.held else "▶ waiting" if marks.waiting else "▶ current"
    if socket_id in marks.remarks:
        return f"⚠ {', '.join(marks.remarks[socket_id])}"
    if socket_id in marks.only:
        has = marks.only[socket_id]
        return "differs" if has == "both" else f"only {has}"
    if socket_id in marks.unreached:
        return "never visited"
    return ""


def reachable(entry: str, found: Iterable[Link]) -> set[str]:
    """Return the keys that can be reached from ``entry`` over edges and exits."""
    out: dict[str, list[str]] = {}
    for link in found:
        out.setdefault(link.source, []).append(link.target)
    seen, todo = {entry}, [entry]
    while todo:
        for target in out.get(todo.pop(), ()):
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return seen


def summary(graph: Graph, marks: Marks | None = None) -> str:
    """One line about a loadout: its name, entry, how many sockets and loops it has, and whether a cast has remarks."""
    sockets, loops = len(graph.sockets), len(graph.loops)
    words = f"loadout {part(graph.name, 120)} · entry {part(graph.entry)} · {sockets} socket{'s' if sockets != 1 else ''}"
    words += f" · {loops} loop{'s' if loops != 1 else ''}" if loops else ""
    return words + (" · complete, with remarks" if marks is not None and marks.remarks else "")
