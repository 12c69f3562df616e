"""A second, much smaller engine, written from docs/rules.md alone, to compare with the real engine.

It supports loadouts of agents with the sparse protocol: a plan, one loop over its work items, and sockets outside the
loop. A visit is reduced to its result, because edges, exits and limits depend only on the result (R60). A state is a
value, so all states can be enumerated and weighted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any, Final, NamedTuple

from builders import at, config, edge, exit_route

YES, NO, NOTHING, FAILED = "yes", "no", "nothing", "failed"
COMPLETE: Final = "complete"
MATCHES: Final = {
    "always": {YES, NO, NOTHING},
    "satisfied": {YES},
    "not_satisfied": {NO},
    "failed": {FAILED},
}
Edge = tuple[str, int]
"""A socket and the number of one of its edges, counted from 1."""
Routes = tuple[Edge | str, ...]
"""The edge that was taken and the ids of the exits that were taken."""


class State(NamedTuple):
    """A cast that waits at ``socket`` or has ended with ``end``.

    Attributes:
        socket: the visited socket, or the socket at which the cast ended.
        end: ``complete`` or the kind of a failure; empty while the cast waits.
        items: the number of work items; None before the plan.
        cursor: the index of the current item.
        counts: the traversals of each edge for the current item (R18).
        outside: the traversals of each edge outside items.
        path: the sockets visited for the current item, each with True if an edge with its own limit has been taken since then.
        cycles: the number of cycles of the current item without an advance.
    """

    socket: str
    end: str = ""
    items: int | None = None
    cursor: int = 0
    counts: tuple[tuple[Edge, int], ...] = ()
    outside: tuple[tuple[Edge, int], ...] = ()
    path: tuple[tuple[str, bool], ...] = ()
    cycles: int = 0


class SecondEngine:
    """The rules of one loadout, applied to the results of visits."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        loadout = document["loadouts"]["T"]
        self.sockets: Mapping[str, Any] = loadout["sockets"]
        self.entry: str = loadout["entry"]
        (loop,) = loadout["loops"].values()
        self.members: list[str] = loop["sockets"]
        self.plan: str = loop["consumes"]["from"]
        self.exits: list[Mapping[str, Any]] = loop["exits"]
        self.limits: Mapping[str, int] = document["limits"]
        self.advances = self._advances()

    def _advances(self) -> dict[str, str]:
        """Return the condition under which each socket of the loop advances the cursor, configured or derived from
        exits (R15).
        """
        own = {name: self.sockets[name]["advance"]["when"] for name in self.members if "advance" in self.sockets[name]}
        if own:
            return own
        conditions = defaultdict(set)
        for route in self.exits:
            conditions[route["from"]].add(route["condition"])
        return {name: words.pop() if len(words) == 1 else "always" for name, words in conditions.items()}

    def results(self, socket: str) -> list[str]:
        """Return the possible results of a visit; a failure is included only if an edge handles it."""
        edges = self.sockets[socket].get("edges", ())
        handles_failure = [FAILED] if any(edge["when"] == "failed" for edge in edges) else []
        if socket == self.plan or self.sockets[socket]["parse"] == "text":
            return [NOTHING, *handles_failure]
        return [YES, NO, *([] if self.requires_verdict(socket) else [NOTHING]), *handles_failure]

    def requires_verdict(self, socket: str) -> bool:
        """Return True if a guarded edge or advance requires ``satisfied`` in the output (R7)."""
        conditions = {edge["when"] for edge in self.sockets[socket].get("edges", ())} | {self.advances.get(socket)}
        return not conditions.isdisjoint({"satisfied", "not_satisfied"})

    def visit_key(self, state: State) -> tuple[str, int | None]:
        """Return the socket and the index of the current item."""
        return state.socket, state.cursor if state.socket in self.members else None

    def begin(self) -> tuple[State, Routes]:
        return self._enter(State(self.entry), self.entry)

    def complete(self, state: State, result: str, count: int = 0) -> tuple[State, Routes]:
        """Complete a visit (R2), and return the next state and the routes that were taken.

        Args:
            state: the waiting cast.
            result: the result of the visit.
            count: the number of work items of a plan.
        """
        socket, has_item = state.socket, state.socket in self.members
        if socket == self.plan and result != FAILED:
            state = state._replace(items=count, cursor=0, counts=(), path=(), cycles=0)  # R17
        advances = has_item and result in MATCHES.get(self.advances.get(socket, ""), ())
        cursor = state.cursor + advances
        if advances and cursor == state.items:
            route = self._exit_for(socket, result)
            moved = state._replace(cursor=cursor, counts=(), path=(), cycles=0)
            if route is None:
                return moved._replace(end=COMPLETE), ()
            return self._enter(moved, route["targetSocketId"], route["id"])
        number, taken = next(
            (
                (number, edge)
                for number, edge in enumerate(self.sockets[socket].get("edges", ()), 1)
                if result in MATCHES[edge["when"]]
            ),
            (0, None),
        )
        if taken is None:
            return state._replace(end=COMPLETE if result != FAILED else FAILED), ()
        state, exceeded = self._count(state, (socket, number), taken.get("maxTraversals"), has_item=has_item)
        if exceeded:
            return state._replace(end="edge_traversals_exhausted"), ((socket, number),)
        if advances:
            state = state._replace(cursor=cursor, counts=(), path=(), cycles=0)
        elif "maxTraversals" in taken:
            state = state._replace(path=tuple((name, True) for name, _ in state.path))
        return self._enter(state, taken["to"], (socket, number))

    def _exit_for(self, socket: str, result: str) -> Mapping[str, Any] | None:
        """Return the exit that is taken when ``socket`` has exhausted the list (R16)."""
        routes = [route for route in self.exits if route["from"] == socket]
        guarded = (
            route for route in routes if route["condition"] != "always" and result in MATCHES[route["condition"]]
        )
        return next(guarded, None) or next((route for route in routes if route["condition"] == "always"), None)

    def _count(self, state: State, edge: Edge, own_limit: int | None, *, has_item: bool) -> tuple[State, bool]:
        """Count a use of an edge; return True if it exceeds the limit (R18)."""
        if has_item and own_limit is None:
            return state, False
        counts = Counter(dict(state.counts if has_item else state.outside))
        counts[edge] += 1
        exceeded = counts[edge] > (own_limit or self.limits["maxEdgeTraversals"])
        return state._replace(**{"counts" if has_item else "outside": tuple(sorted(counts.items()))}), exceeded

    def _enter(self, state: State, socket: str, *routes: Edge | str) -> tuple[State, Routes]:
        """Enter a socket and skip empty loops (R1, R16)."""
        passed: set[str] = set()
        while socket in self.members and (state.items is None or state.cursor >= state.items):
            always = [route for route in self.exits if route["condition"] == "always"]
            always.sort(key=lambda route, here=socket: route["from"] != here)
            if socket in passed or not always:
                return state._replace(end=COMPLETE), routes
            passed.add(socket)
            routes = (*routes, always[0]["id"])
            socket = always[0]["targetSocketId"]
        if socket == "end":
            return state._replace(end=COMPLETE), routes
        return self._on_path(state, socket) if socket in self.members else state._replace(socket=socket), routes

    def _on_path(self, state: State, socket: str) -> State:
        """Add a visit to the path of the item; a socket that is already on the path closes a cycle and shortens the path (R18)."""
        names = [name for name, _ in state.path]
        if socket not in names:
            return state._replace(socket=socket, path=(*state.path, (socket, False)))
        place = names.index(socket)
        cycles = state.cycles + (not state.path[place][1])
        if cycles > self.limits["maxNoAdvanceCycles"]:
            return state._replace(end="no_advance_cycles_exhausted", cycles=cycles)
        return state._replace(socket=socket, path=(*state.path[:place], (socket, False)), cycles=cycles)

    # -- all casts ---------------------------------------------------------------------

    def moves(self, state: State, lengths: Iterable[int]) -> Iterator[tuple[str, State, Routes]]:
        """Yield each possible result of the waiting visit with its next state and its routes."""
        for result in self.results(state.socket):
            for count in lengths if state.socket == self.plan and result != FAILED else (0,):
                yield result, *self.complete(state, result, count)

    def odds(self, chances: Mapping[str, Mapping[str, float]], items: int) -> dict[str, float]:
        """Return the probability of each end; ``chances`` has the probabilities of the results of each socket."""
        ends: Counter[str] = Counter()
        for (end, _), weight in self.totals(chances, items, {}).items():
            ends[end] += weight
        return dict(ends)

    def totals(
        self, chances: Mapping[str, Mapping[str, float]], items: int, amounts: Mapping[str, int]
    ) -> dict[tuple[str, int], float]:
        """Return the probability of each pair of an end and the sum of the amounts of the visited sockets."""
        ends: Counter[tuple[str, int]] = Counter()
        waiting = {(self.begin()[0], 0): 1.0}
        while waiting:
            following: defaultdict[tuple[State, int], float] = defaultdict(float)
            for (state, total), weight in waiting.items():
                if state.end:
                    ends[state.end, total] += weight
                    continue
                for result, target, _ in self.moves(state, [items]):
                    if chance := chances[state.socket].get(result):
                        following[target, total + amounts.get(state.socket, 0)] += weight * chance
            waiting = following
        return dict(ends)


def happens_without(second: SecondEngine, count: int, event: str, without: str, since: str) -> bool:
    """Return True if a cast can reach ``event`` after ``since`` without ``without`` occurring between them."""
    waiting = [(second.begin()[0], False)]
    known = set(waiting)
    while waiting:
        state, is_open = waiting.pop()
        if state.end:
            continue
        if is_open and state.socket == event:
            return True
        is_open = state.socket == since or (is_open and state.socket != without)
        following = {(target, is_open) for _, target, _ in second.moves(state, [count])} - known
        known |= following
        waiting += following
    return False


def length_of_shortest_difference(a: SecondEngine, b: SecondEngine, count: int) -> int | None:
    """Return the number of visits after which casts with the same results first differ, or None if they never do."""
    waiting = [(a.begin()[0], b.begin()[0])]
    known, length = set(waiting), 0
    while waiting:
        following = []
        for left, right in waiting:
            if place(a, left) != place(b, right):
                return length
            if left.end:
                continue
            results = a.results(left.socket), b.results(right.socket)
            if (FAILED in results[0]) != (FAILED in results[1]):
                following.append((left, State("", "stopped")))
            for result in results[0]:
                if result in results[1]:
                    pair = a.complete(left, result, count)[0], b.complete(right, result, count)[0]
                    if pair not in known:
                        known.add(pair)
                        following.append(pair)
        waiting, length = following, length + 1
    return None


def place(second: SecondEngine, state: State) -> tuple[Any, ...]:
    """Return the end of a cast with the socket that failed, or else the socket and item of the visit."""
    if state.end:
        return state.end, "" if state.end == "complete" else state.socket
    return second.visit_key(state)


def random_document(random: Random) -> dict[str, Any]:
    """Return a random loadout that :class:`SecondEngine` supports."""
    members = [f"In{number}" for number in range(random.randint(1, 3))]
    outside = [f"Out{number}" for number in range(random.randint(1, 3))]
    targets = [*members, "Plan", *outside, "end"]
    sockets = {"Plan": at("G", *_edges(random, ["failed"], targets, 1), edge(members[0]), parse="json")}
    for name, following in zip(members, [*members[1:], members[0]], strict=True):
        edges = _edges(random, ["satisfied", "not_satisfied", "failed"], targets[:-1], 2)
        if random.random() < 0.9:
            edges.append(edge(following, most=_limit(random)))
        sockets[name] = at("P", *edges, parse="json")
        if random.random() < 0.15:
            sockets[name]["advance"] = {"when": random.choice(["always", "satisfied", "not_satisfied"])}
    for name in outside:
        edges = _edges(random, ["satisfied", "not_satisfied", "failed"], targets, 2)
        if random.random() < 0.6:
            edges.append(edge(random.choice(targets), most=_limit(random)))
        sockets[name] = at("P", *edges, parse=random.choice(["json", "text"]))
    routes = {(random.choice(members), random.choice(["always", "satisfied", "not_satisfied"])) for _ in range(3)}
    exits = [exit_route(source, when, random.choice(targets)) for source, when in sorted(routes)]
    random.shuffle(exits)
    loops = {"L": {"sockets": members, "consumes": {"from": "Plan"}, "exits": exits}}
    limits = {
        "maxEdgeTraversals": random.randint(1, 4),
        "maxNoAdvanceCycles": random.randint(1, 3),
        "repairAttempts": 0,
    }
    return config(sockets, loops, entry=random.choice(["Plan", "Plan", "Plan", outside[0]]), limits=limits)


def _edges(random: Random, conditions: list[str], targets: list[str], most: int) -> list[dict[str, Any]]:
    return [
        edge(random.choice(targets), random.choice(conditions), _limit(random)) for _ in range(random.randint(0, most))
    ]


def _limit(random: Random) -> int | None:
    return random.choice([None, None, 1, 2, 3])
