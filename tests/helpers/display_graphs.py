"""Provide graphs for the display tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from builders import resolved_materia
from materia_nb.loadout.graph import (
    Advance,
    Budget,
    Edge,
    ExitRoute,
    Graph,
    Iterator,
    Limits,
    Loop,
    Materia,
    Socket,
)


def materia(label: str, *, kind: Any = "agent", generator: bool = False, multi_turn: bool = False) -> Materia:
    return resolved_materia(
        id=label,
        label=label,
        kind=kind,
        prompt="Do it." if kind == "agent" else "",
        generator=generator,
        multi_turn=multi_turn,
        command=("true",) if kind == "utility" else (),
    )


def socket(id_: str, label: str, *edges: tuple[Any, ...], parse: Any = "json", **kinds: Any) -> Socket:
    """Return a socket; each edge is a tuple (condition, target) or (condition, target, maxTraversals)."""
    return Socket(
        id=id_,
        materia=materia(label, **kinds),
        parse=parse,
        assign=(),
        edges=tuple(Edge(e[0], e[1], place, e[2] if len(e) > 2 else None) for place, e in enumerate(edges)),
        advance=None,
        iterator=None,
        loops=(),
    )


def graph(name: str, sockets: Iterable[Socket], loops: Iterable[Loop] = ()) -> Graph:
    table = {one.id: one for one in sockets}
    loop_table = {loop.id: loop for loop in loops}
    consumers: dict[str, tuple[str, ...]] = {}
    for loop in loop_table.values():
        for member in loop.sockets:
            table[member] = replace(
                table[member],
                loops=(*table[member].loops, loop.id),
                iterator=table[member].iterator or loop.iterator,
            )
        if loop.generator:
            consumers[loop.generator] = (*consumers.get(loop.generator, ()), loop.id)
    entry = next(iter(table))
    return Graph(name, entry, table, loop_table, Limits(), Budget(), (), consumers)


def loop(id_: str, members: Iterable[str], generator: str | None, *exits: tuple[str, Any, str]) -> Loop:
    """Return a loop; each exit is a tuple (source, condition, target)."""
    routes = tuple(ExitRoute(f"exit:{s}:{c}", id_, s, c, t) for s, c, t in exits)
    iterator = Iterator("state.workItems", "workItem", "workItemIndex", id_) if generator else None
    return Loop(id_, tuple(members), generator, "workItems" if generator else None, iterator, routes)


def hello() -> Graph:
    """Return a graph with two utilities in a row."""
    return graph(
        "hello-world",
        [
            socket("Socket-1", "Hello World", ("always", "Socket-2"), kind="utility"),
            socket("Socket-2", "Echo", kind="utility", parse="text"),
        ],
    )


def rework() -> Graph:
    """Return a graph with a generator and a loop of three sockets that has a rework edge, two exits and a derived
    advance.
    """
    made = graph(
        "software-workflow",
        [
            socket("Socket-1", "Ignore-Artifacts", ("always", "Socket-2"), kind="utility"),
            socket("Socket-2", "Detect-VCS", ("always", "Socket-3"), kind="utility"),
            socket("Socket-3", "Auto-Plan", ("always", "Socket-4"), generator=True, multi_turn=True),
            socket("Socket-4", "Build", ("always", "Socket-5")),
            socket("Socket-5", "Auto-Eval", ("satisfied", "Socket-6"), ("not_satisfied", "Socket-4", 3)),
            socket("Socket-6", "Maintain", ("always", "Socket-4")),
            socket("Socket-7", "Release notes"),
            socket("Socket-8", "Ask a person", ("always", "end"), multi_turn=True),
        ],
        [
            loop(
                "workItemIteration",
                ["Socket-4", "Socket-5", "Socket-6"],
                "Socket-3",
                ("Socket-6", "satisfied", "Socket-7"),
                ("Socket-6", "not_satisfied", "Socket-8"),
            )
        ],
    )
    last = replace(
        made.sockets["Socket-6"],
        advance=Advance("workItemIndex", "state.workItems", "satisfied", derived=True),
    )
    return replace(made, sockets={**made.sockets, "Socket-6": last})


def chain(length: int) -> Graph:
    """Return a graph of sockets in a row."""
    return graph(
        "chain",
        [
            socket(f"Socket-{n}", f"Step number {n}", *([("always", f"Socket-{n + 1}")] if n < length else []))
            for n in range(1, length + 1)
        ],
    )


def tangle(size: int, seed: int = 7) -> Graph:
    """Return a deterministic branching graph with loops, rework edges, self-loops and jumps."""
    state = seed

    def number(below: int) -> int:
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**31
        return (state >> 8) % below

    sockets = []
    for n in range(1, size + 1):
        ahead = f"Socket-{n + 1}" if n < size else "end"
        shape = number(6)
        if shape == 0:
            edges = [("satisfied", ahead), ("not_satisfied", f"Socket-{max(1, n - 1 - number(4))}", 3)]
        elif shape == 1:
            edges = [("satisfied", f"Socket-{min(size, n + 1 + number(3))}"), ("always", ahead)]
        elif shape == 2 and n % 3 == 0:
            edges = [("not_satisfied", f"Socket-{n}", 2), ("always", ahead)]
        else:
            edges = [("always", ahead)]
        kind = "utility" if number(4) == 0 else "agent"
        sockets.append(socket(f"Socket-{n}", f"Materia {n}", *edges, kind=kind))
    return graph(f"tangle-{size}", sockets)


def nested() -> Graph:
    """Return a graph with a loop inside another loop."""
    return graph(
        "nested",
        [
            socket("A", "Plan", ("always", "B"), generator=True),
            socket("B", "Split", ("always", "C")),
            socket("C", "Do", ("satisfied", "D"), ("not_satisfied", "C", 2)),
            socket("D", "Sum", ("always", "B")),
            socket("E", "Out"),
        ],
        [loop("outer", ["B", "C", "D"], "A", ("D", "always", "E")), loop("inner", ["C"], None)],
    )
