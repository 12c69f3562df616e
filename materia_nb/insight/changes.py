"""Where two JSON values, by dotted path, and two loadouts differ; never as text."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from itertools import islice, zip_longest
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from materia_nb.errors import counted
from materia_nb.jsonvalue import JSON, MISSING, compact, same
from materia_nb.loadout.graph import Budget, Edge, ExitRoute, Graph, Limits, Loop, Materia, Socket

_MOST_CHANGES: Final = 200
"""How many places are told at most; two values that have nothing in common differ everywhere."""


class ValueChange(NamedTuple):
    """One place where two values differ; MISSING where there is nothing. The path is empty for the whole value."""

    path: str
    a: JSON
    b: JSON


def changes(a: JSON, b: JSON) -> list[ValueChange]:
    """Return where ``b`` differs from ``a``, objects and lists looked into; at most :data:`_MOST_CHANGES` places."""
    return list(islice(_changes("", a, b), _MOST_CHANGES))


def _changes(path: str, a: JSON, b: JSON) -> Iterator[ValueChange]:
    if a is b:
        return  # states of one cast share what did not change
    if isinstance(a, dict) and isinstance(b, dict):
        for key in {**a, **b}:
            yield from _changes(_joined(path, key), a.get(key, MISSING), b.get(key, MISSING))
    elif isinstance(a, list) and isinstance(b, list):
        for place, (left, right) in enumerate(zip_longest(a, b, fillvalue=MISSING)):
            yield from _changes(_joined(path, str(place)), left, right)
    elif not same(a, b):
        yield ValueChange(path, a, b)


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


Where: TypeAlias = Literal["A", "B", "both"]
"""Which of two that are compared has something."""
_Key = TypeVar("_Key", bound=Hashable)


def where(a: Iterable[_Key], b: Iterable[_Key]) -> dict[_Key, Where]:
    """Return which of two has each thing, in the order of the first."""
    left, right = dict.fromkeys(a), dict.fromkeys(b)
    return {
        one: "both" if one in left and one in right else "A" if one in left else "B" for one in left | right
    }


def beside(a: str, b: str, most: int) -> tuple[str, str]:
    """Cut two long texts to about ``most`` characters, so that the place where they first differ is seen in both."""
    alike = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, alike - most // 2) if max(len(a), len(b)) > most else 0
    return _cut(a, start, most), _cut(b, start, most)


def _cut(text: str, start: int, most: int) -> str:
    end = start + most
    return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"


def shown(a: JSON, b: JSON, most: int) -> tuple[str, str]:
    """Write two values that differ on one line each, cut to where they do."""
    return beside(_line(a), _line(b), most)


def _line(value: JSON) -> str:
    if value is MISSING:
        return "(none)"
    return " ".join(value.split()) if isinstance(value, str) else compact(value)


# -- two loadouts ----------------------------------------------------------------------------

Route: TypeAlias = tuple[str, int | str]
"""A way: from which socket, by the edge of which place, by which exit route, or to the implied ``end``."""

_Part: TypeAlias = Socket | Loop | Materia | Limits | Budget
_OWN_ROWS: Final = frozenset({"id", "edges", "materia", "loops", "routes"})
"""What is compared in rows of its own."""
_NOT_COMPARED: Final = frozenset({"layout", "parse_derived", "raw", "owner", "group"})
"""What does not change how a cast goes: where something is drawn, listed or kept."""


class LoadoutDifference(NamedTuple):
    """One thing that differs: of which socket, materia or loop, in which field; MISSING where one has it not."""

    of: str
    field: str
    a: JSON
    b: JSON


class LoadoutComparison:
    """Two loadouts beside one another; true if a cast could go differently in them. Their names do not count."""

    def __init__(self, a: Graph, b: Graph) -> None:
        """Compare two loadouts."""
        self.a, self.b = a, b

    def __bool__(self) -> bool:
        return bool(self.differences)

    @cached_property
    def differences(self) -> tuple[LoadoutDifference, ...]:
        """What differs, in the order: the loadout itself, its sockets, loops, materia, limits."""
        a, b = self.a, self.b
        rows = list(_field("loadout", "entry", a.entry, b.entry))
        for id_ in where(a.sockets, b.sockets):
            rows += compare_sockets(a, b, id_)
        for id_ in where(a.loops, b.loops):
            rows += _loops(id_, a.loops.get(id_), b.loops.get(id_))
        left, right = _materia(a), _materia(b)
        for id_, has in where(left, right).items():
            if has == "both":
                rows += _fields(f"materia {id_}", left[id_], right[id_])
        rows += _fields("limits", a.limits, b.limits)
        rows += _fields("budget", a.budget, b.budget)
        return tuple(rows)

    @property
    def sockets(self) -> Mapping[str, Where]:
        """Which of the two has a socket."""
        return where(self.a.sockets, self.b.sockets)

    @property
    def routes(self) -> Mapping[Route, Where]:
        """Which of the two has an edge of a place, or an exit; ``changed_routes`` are those that both have."""
        return where(_routes(self.a), _routes(self.b))

    @property
    def changed_routes(self) -> frozenset[Route]:
        """The edges and exits that stand in the same place and lead elsewhere, at another time, or as often otherwise."""
        left, right = _routes(self.a), _routes(self.b)
        return frozenset(key for key in left.keys() & right.keys() if left[key] != right[key])


def compare_sockets(a: Graph, b: Graph, id_: str) -> list[LoadoutDifference]:
    """Return how a socket of the same id differs in two loadouts, its edges one by one."""
    one, other = a.sockets.get(id_), b.sockets.get(id_)
    if one is None or other is None:
        return list(_field(id_, "socket", _placed(one), _placed(other)))
    rows = list(_field(id_, "materia", one.materia.id, other.materia.id))
    rows += _fields(id_, one, other)
    rows += _list(id_, "edge", list(map(_edge, one.edges)), list(map(_edge, other.edges)))
    return rows


def _placed(socket: Socket | None) -> JSON:
    return MISSING if socket is None else socket.materia.id


def _loops(id_: str, a: Loop | None, b: Loop | None) -> list[LoadoutDifference]:
    name = f"loop {id_}"
    if a is None or b is None:
        return list(
            _field(name, "sockets", *(MISSING if one is None else list(one.sockets) for one in (a, b)))
        )
    exits = (list(map(_exit, one.routes)) for one in (a, b))
    return [*_fields(name, a, b), *_list(name, "exit", *exits)]


def _materia(graph: Graph) -> dict[str, Materia]:
    return {socket.materia.id: socket.materia for socket in graph.sockets.values()}


def _edge(edge: Edge) -> str:
    most = "" if edge.max_traversals is None else f", at most {counted(edge.max_traversals, 'time')}"
    return f"{edge.when} to {edge.to}{most}"


def _exit(route: ExitRoute) -> str:
    return f"{route.condition} from {route.source} to {route.target}"


def _routes(graph: Graph) -> dict[Route, str]:
    found: dict[Route, str] = {}
    for socket in graph.sockets.values():
        found |= {(socket.id, edge.place): _edge(edge) for edge in socket.edges}
    for loop in graph.loops.values():
        found |= {(route.source, route.edge_id): _exit(route) for route in loop.routes}
    return found


def _list(of: str, field: str, a: list[str], b: list[str]) -> Iterator[LoadoutDifference]:
    for number, (one, other) in enumerate(zip_longest(a, b, fillvalue=MISSING), start=1):
        yield from _field(of, f"{field} {number}", one, other)


def _fields(of: str, a: _Part, b: _Part) -> Iterator[LoadoutDifference]:
    for field in fields(a):
        if field.name not in _OWN_ROWS | _NOT_COMPARED:
            yield from _field(of, field.name, getattr(a, field.name), getattr(b, field.name))


def _field(of: str, field: str, a: object, b: object) -> Iterator[LoadoutDifference]:
    if a != b:
        yield LoadoutDifference(of, field, _value(a), _value(b))


def _value(value: object) -> JSON:
    """Write a part of a graph as JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _value(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _value(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_value(child) for child in value]
    return value
