"""The parsed form of a loadout: its well-formed sockets, edges, exits, loops and materia.

Parsing accepts JSON of any shape and never raises. Checks, hints and the resolved graph read the attributes of the parsed
form. The module also contains the algorithms on directed graphs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, Literal, TypeVar

from materia_nb.jsonvalue import JSON, FrozenDict, Object, as_list, as_object, is_text, text_or
from materia_nb.loadout.graph import END, Iterator
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, GUARDS, WORK_ITEMS, Condition, is_condition

_CachedResult = TypeVar("_CachedResult")
_SOCKET_ID: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
CANONICAL_ID: Final = re.compile(r"Socket-[1-9][0-9]*")


def is_socket_id(value: JSON) -> bool:
    """True if ``value`` may be the id of a socket (R26)."""
    return isinstance(value, str) and value != END and _SOCKET_ID.fullmatch(value) is not None


def next_socket_id(document: Object) -> str:
    """Return the next free canonical id of a loadout, from ``Socket-1`` up (R26)."""
    numbers = [int(id_[7:19]) for id_ in as_object(document.get("sockets")) if CANONICAL_ID.fullmatch(id_)]
    return f"Socket-{max(numbers, default=0) + 1}"


def free_name(name: str, used: Collection[JSON]) -> str:
    """Return ``name``, followed by a number if the name is taken."""
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name}-{number}"
    return free


@dataclass(frozen=True, slots=True)
class EdgeFacts:
    """An ordinary edge: its index among the edges of its socket, its condition, and its target.

    ``when`` is None for a condition that is not canonical, and ``to`` for a target that is not text.
    """

    index: int
    raw: Object
    when: Condition | None
    to: str | None


@dataclass(frozen=True, slots=True)
class ExitFacts:
    """An exit of a loop, in the current or the older form; a malformed attribute is None."""

    index: int
    raw: Object
    source: str | None
    condition: Condition | None
    target: str | None


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """A loop region.

    Attributes:
        id: its id.
        raw: the loop as written.
        members: the ids of its sockets, each once.
        consumes: the object ``consumes``, or None.
        iterator: the object ``iterator``, or None.
        exits: its exits.
        legacy: its exit in the older form, or None.
        source: the socket that ``consumes`` names, or None.
        output: the list that ``consumes`` reads (R12).
        iterates: True if its members work on items (R1).
        items: the source of its list (R12, R15).
        alias: the name of the current item (R12).
    """

    id: str
    raw: Object
    members: tuple[str, ...]
    consumes: Object | None
    iterator: Object | None
    exits: tuple[ExitFacts, ...]
    legacy: ExitFacts | None
    source: str | None
    output: str
    iterates: bool
    items: str
    alias: str

    def cursor(self, socket_id: str) -> str:
        """Return the cursor that a socket uses in this loop (R13)."""
        if self.iterator is not None:
            return text_or(self.iterator.get("cursor"), f"{socket_id}Index")
        return text_or((self.consumes or {}).get("cursor"), "workItemIndex")

    def iterator_of(self, socket_id: str) -> Iterator:
        """Return the iterator of a member of the loop."""
        return Iterator(self.items, self.alias, self.cursor(socket_id), self.id)


@dataclass(frozen=True, slots=True)
class SocketFacts:
    """A socket.

    Attributes:
        id: its id.
        raw: the socket as written.
        materia: the definition of its materia; :data:`NO_MATERIA` if the materia does not exist.
        edges: its edges.
        targets: the sockets that its edges lead to, without the end.
        loops: the loops that list it, in the order of the loadout.
        foreach: its own iterator as written, or None.
        iterator: its own iterator, else the iterator of its first loop that has one (R1), else None.
        advance: its advance as written, or None.
        advance_cursor: the cursor that its own advance moves; None without an advance (R13).
        parse: ``parse`` as written on the object where the field takes effect (R4).
        assignments: path, target and source of each assignment, from the object where the field takes effect (R4).
        handoff: the protocol of its agent: from the socket, else from the loadout, else the default.
    """

    id: str
    raw: Object
    materia: MateriaFacts
    edges: tuple[EdgeFacts, ...]
    targets: tuple[str, ...]
    loops: tuple[LoopFacts, ...]
    foreach: Object | None
    iterator: Iterator | None
    advance: Object | None
    advance_cursor: str | None
    parse: JSON
    assignments: tuple[tuple[str, str, JSON], ...]
    handoff: str
    is_utility: bool
    is_generator: bool

    @property
    def is_guarded_exit(self) -> bool:
        """True if this socket is the source of a guarded exit in the older form (R15)."""
        return any(
            loop.consumes and exit_.source == self.id and exit_.condition in GUARDS
            for loop in self.loops
            if (exit_ := loop.legacy) is not None
        )


@dataclass(frozen=True, slots=True, eq=False)
class LoadoutFacts:
    """A parsed loadout with its materia.

    Attributes:
        name: its name.
        raw: the loadout as written.
        config: the config that contains the loadout, as far as known.
        entry: the socket where a cast starts: as written, else the first socket (R36).
        ids: the ids of all sockets, well formed or not.
        sockets: the sockets that are objects, by id.
        loops: the loops that are objects.
        texts: the sockets whose output is parsed as text and therefore has no ``satisfied`` (R3, R4).
        made_json: the sockets that are parsed as json because of a guarded exit in the older form, or because
            their utility is also placed at such an exit (R15, R58).
        definitions: the materia of the config, as written.
    """

    name: str
    raw: Object
    config: Object
    entry: JSON
    ids: frozenset[str]
    sockets: Mapping[str, SocketFacts]
    loops: tuple[LoopFacts, ...]
    texts: frozenset[str]
    forced_json: frozenset[str]
    definitions: Object

    @property
    def placed_materia(self) -> list[str]:
        """The ids of the materia that the sockets name."""
        named = (socket.raw.get("materia") for socket in self.sockets.values())
        return [id_ for id_ in named if isinstance(id_, str)]

    @property
    def subjects(self) -> dict[str, list[tuple[Any, ...]]]:
        """The arguments of rules about this loadout, by the scope of the rule."""
        return {
            "loadout": [(self,)],
            "socket": [(self, socket) for socket in self.sockets.values()],
            "loop": [(self, loop) for loop in self.loops],
        }

    def with_same_materia(self, socket: SocketFacts) -> list[str]:
        """Return the ids of the sockets that place the same materia, including this socket."""
        materia = socket.raw.get("materia")
        return [id_ for id_, other in self.sockets.items() if other.raw.get("materia") == materia]

    def likely_generator(self, members: Collection[str]) -> str | None:
        """Return the only generator that leads into a loop of ``members``, or None."""
        candidates = [
            id_
            for id_, socket in self.sockets.items()
            if id_ not in members and socket.is_generator and not set(members).isdisjoint(socket.targets)
        ]
        return candidates[0] if len(candidates) == 1 else None


def _object_or_none(value: JSON) -> Object | None:
    return value if isinstance(value, dict) else None


def _text_or_none(value: JSON) -> str | None:
    return value if isinstance(value, str) else None


def _condition_or_none(value: JSON) -> Condition | None:
    return value if is_condition(value) else None


def cached_per_config(function: Callable[[Any, Any], _CachedResult]) -> Callable[..., _CachedResult]:
    """Return a function of a config and a loadout that caches its last results for frozen configs."""
    entries: dict[tuple[int, str | None], tuple[JSON, _CachedResult]] = {}

    @wraps(function)
    def cached(config: JSON, loadout: str | None = None) -> _CachedResult:
        if type(config) is not FrozenDict:
            return function(config, loadout)
        key = id(config), loadout
        known, result = entries.pop(key, (None, None))
        if known is not config or result is None:
            result = function(config, loadout)
        entries[key] = config, result
        while len(entries) > _MAX_CACHED:
            entries.pop(next(iter(entries)), None)
        return result

    return cached


_MAX_CACHED: Final = 8


@cached_per_config
def loadout_facts(config: Object, name: str) -> LoadoutFacts:
    """Return a parsed loadout of a config; the result for a frozen config is cached."""
    raw = as_object(as_object(config.get("loadouts")).get(name))
    return parse_loadout(name, raw, as_object(config.get("materia")), config)


def parts_to_check(config: Object, loadout: str | None) -> tuple[list[str], Object]:
    """Return the loadouts and materia to check: all in a config, or one loadout and the materia that it places."""
    loadouts, materia = as_object(config.get("loadouts")), as_object(config.get("materia"))
    if loadout is None:
        return list(loadouts), materia
    placed = loadout_facts(config, loadout).placed_materia
    return [loadout] * (loadout in loadouts), {id_: raw for id_, raw in materia.items() if id_ in placed}


def parse_loadout(name: str, raw: Object, definitions: Object, config: Object | None = None) -> LoadoutFacts:
    """Return a parsed loadout; malformed parts are skipped."""
    written = as_object(raw.get("sockets"))
    objects = {id_: socket for id_, socket in written.items() if isinstance(socket, dict)}
    loops = tuple(_parse_loop(id_, loop) for id_, loop in as_object(raw.get("loops")).items() if isinstance(loop, dict))
    materia: dict[str, MateriaFacts] = {}
    for socket in objects.values():
        placed = socket.get("materia")
        if isinstance(placed, str) and placed not in materia and isinstance(definitions.get(placed), dict):
            materia[placed] = parse_materia(placed, definitions[placed])
    handoff = text_or(raw.get("handoff"), DEFAULT_HANDOFF)
    sockets = {id_: _parse_socket(id_, socket, objects, loops, materia, handoff) for id_, socket in objects.items()}
    forced_json = _forced_json(sockets)
    return LoadoutFacts(
        name=name,
        raw=raw,
        config=config or {},
        entry=next(iter(written), None) if raw.get("entry") is None else raw["entry"],
        ids=frozenset(written),
        sockets=sockets,
        loops=loops,
        texts=frozenset(
            id_
            for id_, socket in sockets.items()
            if not (socket.materia.generator or socket.parse == "json" or id_ in forced_json)
        ),
        forced_json=forced_json,
        definitions=definitions,
    )


def _forced_json(sockets: Mapping[str, SocketFacts]) -> frozenset[str]:
    guarded = [socket for socket in sockets.values() if socket.loops and socket.is_guarded_exit]
    json_sockets = {socket.id for socket in guarded if not socket.is_utility}
    shared = [socket.raw.get("materia") for socket in guarded]
    json_sockets |= {
        id_ for id_, socket in sockets.items() if socket.is_utility and socket.raw.get("materia") in shared
    }
    return frozenset(id_ for id_ in json_sockets if sockets[id_].parse is None)


def _parse_socket(
    id_: str,
    raw: Object,
    sockets: Mapping[str, Object],
    loops: tuple[LoopFacts, ...],
    definitions: Mapping[str, MateriaFacts],
    handoff: str,
) -> SocketFacts:
    named = raw.get("materia")
    materia = definitions.get(named, NO_MATERIA) if isinstance(named, str) else NO_MATERIA
    own_loops = tuple([loop for loop in loops if id_ in loop.members])
    foreach, advance = _object_or_none(raw.get("foreach")), _object_or_none(raw.get("advance"))
    edges = _parse_edges(raw.get("edges"))
    iterator = _iterator(id_, foreach, own_loops)
    cursor = None
    if advance is not None:
        cursor = text_or(advance.get("cursor"), "") or (iterator.cursor if iterator else None)
    owner, path = (materia.raw, f"materia.{named}") if materia.is_utility else (raw, id_)
    assign = as_object(owner.get("assign"))
    return SocketFacts(
        id=id_,
        raw=raw,
        materia=materia,
        edges=edges,
        targets=tuple([edge.to for edge in edges if edge.to is not None and edge.to in sockets]),
        loops=own_loops,
        foreach=foreach,
        iterator=iterator,
        advance=advance,
        advance_cursor=cursor,
        parse=owner.get("parse"),
        assignments=tuple([(f"{path}.assign.{target}", target, source) for target, source in assign.items()]),
        handoff=text_or(raw.get("handoff"), handoff),
        is_utility=materia.is_utility,
        is_generator=materia.generator,
    )


def _parse_edges(entries: JSON) -> tuple[EdgeFacts, ...]:
    edges = [
        EdgeFacts(index, edge, _condition_or_none(edge.get("when")), _text_or_none(edge.get("to")))
        for index, edge in enumerate(as_list(entries))
        if isinstance(edge, dict)
    ]
    return tuple(edges)


def _iterator(id_: str, foreach: Object | None, loops: tuple[LoopFacts, ...]) -> Iterator | None:
    if foreach is not None:
        items, alias = text_or(foreach.get("items"), ""), text_or(foreach.get("as"), "item")
        return Iterator(items, alias, text_or(foreach.get("cursor"), f"{id_}Index"))
    loop = next((loop for loop in loops if loop.iterates), None)
    return None if loop is None else loop.iterator_of(id_)


def _parse_loop(id_: str, raw: Object) -> LoopFacts:
    consumes, iterator, legacy = (_object_or_none(raw.get(name)) for name in ("consumes", "iterator", "exit"))
    output = text_or((consumes or {}).get("output"), WORK_ITEMS)
    if iterator is None:
        items, alias = f"state.{output}", text_or((consumes or {}).get("as"), "workItem")
    else:
        items, alias = text_or(iterator.get("items"), ""), text_or(iterator.get("as"), "item")
    return LoopFacts(
        id=id_,
        raw=raw,
        members=tuple(dict.fromkeys(id_ for id_ in as_list(raw.get("sockets")) if isinstance(id_, str))),
        consumes=consumes,
        iterator=iterator,
        exits=tuple(
            _parse_exit(index, route, "condition", "targetSocketId")
            for index, route in enumerate(as_list(raw.get("exits")))
            if isinstance(route, dict)
        ),
        legacy=None if legacy is None else _parse_exit(0, legacy, "when", "to"),
        source=_text_or_none((consumes or {}).get("from")),
        output=output,
        iterates=consumes is not None or iterator is not None,
        items=items,
        alias=alias,
    )


def _parse_exit(index: int, raw: Object, condition: str, target: str) -> ExitFacts:
    return ExitFacts(
        index,
        raw,
        _text_or_none(raw.get("from")),
        _condition_or_none(raw.get(condition)),
        _text_or_none(raw.get(target)),
    )


# -- directed graphs --------------------------------------------------------------------------

_Node = TypeVar("_Node", bound=Hashable)


def reachable_from(starts: Iterable[_Node], targets: Mapping[_Node, Iterable[_Node]]) -> set[_Node]:
    """Return ``starts`` and all nodes reachable from there; a node may have no entry in ``targets``."""
    reached = set(starts)
    waiting = list(reached)
    while waiting:
        new = set(targets.get(waiting.pop(), ())) - reached
        reached |= new
        waiting += new
    return reached


def reversed_edges(targets: Mapping[_Node, Iterable[_Node]]) -> dict[_Node, set[_Node]]:
    """Return a graph with reversed edges: the sources of each node."""
    sources: dict[_Node, set[_Node]] = {start: set() for start in targets}
    for start, next_nodes in targets.items():
        for to in next_nodes:
            sources.setdefault(to, set()).add(start)
    return sources


def strong_components(targets: Mapping[_Node, Iterable[_Node]]) -> list[list[_Node]]:
    """Return the strongly connected components of a graph, in reverse topological order.

    This is Tarjan's algorithm without recursion, since a chain of states can be long.
    """
    number: dict[_Node, int] = {}
    lowest: dict[_Node, int] = {}
    stack: list[_Node] = []
    on_stack: set[_Node] = set()
    groups: list[list[_Node]] = []
    for root in targets:
        if root in number:
            continue
        pending = [(root, iter(targets[root]))]
        number[root] = lowest[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while pending:
            node, rest = pending[-1]
            for child in rest:
                if child not in number:
                    number[child] = lowest[child] = len(number)
                    stack.append(child)
                    on_stack.add(child)
                    pending.append((child, iter(targets[child])))
                    break
                if child in on_stack:
                    lowest[node] = min(lowest[node], number[child])
            else:
                pending.pop()
                if pending:
                    parent = pending[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
                if lowest[node] == number[node]:
                    component: list[_Node] = []
                    while node in on_stack:
                        component.append(stack.pop())
                        on_stack.remove(component[-1])
                    groups.append(component[::-1])
    return groups


def cycles_in(targets: Mapping[_Node, Iterable[_Node]]) -> dict[_Node, int]:
    """Return the nodes on cycles, each with the number of its strongly connected component."""
    cycles: dict[_Node, int] = {}
    for number, component in enumerate(strong_components(targets)):
        if len(component) > 1 or component[0] in targets[component[0]]:
            cycles |= dict.fromkeys(component, number)
    return cycles


SHIPPED_SCRIPTS: Final = (
    "blackbelt-bootstrap.py",
    "blackbelt-maintain.py",
    "commit-sigil.py",
    "detect-vcs.py",
    "echo.py",
    "ensure-ignored.py",
    "git-tasks.py",
)
"""The utility scripts that come with the package (R25)."""
BUILT_IN: Final = {
    "echo": "echo.py",
    "project.ensureIgnored": "ensure-ignored.py",
    "vcs.detect": "detect-vcs.py",
}
"""The scripts that replace the built-in utilities of the reference engine, by utility name (R61)."""
LANE_UTILITIES: Final = ("vcs.spawnJjWorkspace", "vcs.integrateJjWorkspaces", "vcs.finalizeJjWorkspace")
"""Utilities of the reference engine for lanes, which have no shipped script."""
TOOL_SCOPES: Final = ("none", "readOnly", "coding")
_GIT_TASKS: Final = ("mime-bootstrap.py", "mime-maintain.py")
"""Scripts of the reference engine that this package provides as tasks of ``git-tasks.py``."""
_SCRIPT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.(?:py|mjs)")


@dataclass(frozen=True, slots=True)
class MateriaFacts:
    """A definition of a materia.

    Attributes:
        id: its id; "" if the materia does not exist.
        raw: the definition as written; empty if the materia does not exist.
        is_utility: True if a process produces the output, False for an agent.
        generator: True if it produces work items.
        parallel: True for a generator whose items are processed in parallel lanes.
        prompt: the prompt of an agent, or "".
    """

    id: str
    raw: Object
    is_utility: bool
    generator: bool
    parallel: bool
    prompt: str

    @property
    def variables(self) -> list[str]:
        """The names of the ``{{name}}`` variables of the prompt of an agent, each once."""
        return [] if self.is_utility else list(dict.fromkeys(name for _, _, name in variables(self.prompt)))


def parse_materia(id_: str, raw: JSON) -> MateriaFacts:
    """Return a parsed definition of a materia; malformed fields are ignored."""
    raw = as_object(raw)
    prompt, generator = raw.get("prompt"), raw.get("generator") is True
    return MateriaFacts(
        id=id_,
        raw=raw,
        is_utility=materia_kind(raw) == "utility",
        generator=generator,
        parallel=generator and (raw.get("parallel") is True or raw.get("parallelPlanner") is True),
        prompt=prompt if isinstance(prompt, str) else "",
    )


NO_MATERIA: Final = MateriaFacts("", {}, is_utility=False, generator=False, parallel=False, prompt="")


def materia_kind(raw: Object) -> Literal["agent", "utility"]:
    """Return the kind of a materia; without ``type``, a definition with a command or script is a utility."""
    kind = raw.get("type")
    if kind is None:
        return "utility" if "command" in raw or "script" in raw else "agent"
    return "utility" if kind == "utility" else "agent"


def materia_group(raw: Object) -> str:
    """Return the heading under which an editor lists a materia; by default Utility for a utility, else ""."""
    group = raw.get("group")
    if is_text(group):
        return group.strip()
    return "Utility" if materia_kind(raw) == "utility" else ""


def script_file(name: JSON) -> str | None:
    """Return the file of a shipped script, by its own or its reference engine name; None for an invalid name (R25)."""
    if not isinstance(name, str) or not _SCRIPT_NAME.fullmatch(name):
        return None
    file = name.removesuffix(".mjs") + ".py" if name.endswith(".mjs") else name
    return "git-tasks.py" if file in _GIT_TASKS else file


def variables(prompt: str) -> Iterable[tuple[int, int, str]]:
    """Yield the start, the end and the name of each ``{{name}}`` of a prompt; the name may be blank (R31).

    Each character is read once. If the first closing brace after ``{{`` is not doubled, the text up to that brace
    contains no variable.
    """
    position = 0
    while (start := prompt.find("{{", position)) >= 0 and (close := prompt.find("}", start + 2)) >= 0:
        position = close + 1
        if close > start + 2 and prompt.startswith("}", position):
            position += 1
            yield start, position, prompt[start + 2 : close].strip()
