"""Parser for loadouts, which may be malformed, and algorithms on directed graphs.

The parser accepts any JSON, skips malformed parts and never raises. Checks, hints and the resolved graph are computed
from its result, a :class:`LoadoutFacts`.
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
    """Return True if ``value`` is a valid socket id (R26)."""
    return isinstance(value, str) and value != END and _SOCKET_ID.fullmatch(value) is not None


def next_socket_id(document: Object) -> str:
    """Return the canonical socket id, such as ``Socket-4``, that follows the highest canonical id in a loadout (R26)."""
    numbers = [int(id_[7:19]) for id_ in as_object(document.get("sockets")) if CANONICAL_ID.fullmatch(id_)]
    return f"Socket-{max(numbers, default=0) + 1}"


def free_name(name: str, used_names: Collection[JSON]) -> str:
    """Return ``name`` if it is not in ``used_names``, else ``name`` with the first number that makes it unique."""
    number, candidate = 1, name
    while candidate in used_names:
        number += 1
        candidate = f"{name}-{number}"
    return candidate


@dataclass(frozen=True, slots=True)
class EdgeFacts:
    """A parsed edge.

    Attributes:
        index: the index of the edge in the socket's list of edges.
        raw: the edge as written.
        when: the condition; None if it is not a known condition.
        to: the target; None if it is not a string.
    """

    index: int
    raw: Object
    when: Condition | None
    to: str | None


@dataclass(frozen=True, slots=True)
class ExitFacts:
    """A parsed exit of a loop, from ``exits`` or from the older field ``exit``.

    Attributes:
        index: the index of the exit in ``exits``; 0 for an exit in the older field.
        raw: the exit as written.
        source: the socket from which the exit leads; None if it is not a string.
        condition: the condition; None if it is not a known condition.
        target: the target; None if it is not a string.
    """

    index: int
    raw: Object
    source: str | None
    condition: Condition | None
    target: str | None


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """A parsed loop region.

    Attributes:
        id: the id of the loop.
        raw: the loop as written.
        members: the ids of the members, without duplicates.
        consumes: the object in the field ``consumes``, or None.
        iterator: the object in the field ``iterator``, or None.
        exits: the exits in the field ``exits``.
        legacy: the exit in the older field ``exit``, or None.
        source: the socket in ``consumes.from``; None if it is missing or not a string.
        output: the name of the generator's list (R12).
        iterates: True if the loop processes the items of a list (R1).
        items: the source of the list (R12, R15).
        alias: the name of the current item in the state (R12).
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
        """Return the name of the cursor that a member of this loop uses (R13)."""
        if self.iterator is not None:
            return text_or(self.iterator.get("cursor"), f"{socket_id}Index")
        return text_or((self.consumes or {}).get("cursor"), "workItemIndex")

    def iterator_of(self, socket_id: str) -> Iterator:
        """Return the iteration of a member of the loop."""
        return Iterator(self.items, self.alias, self.cursor(socket_id), self.id)


@dataclass(frozen=True, slots=True)
class SocketFacts:
    """A parsed socket.

    Attributes:
        id: the id of the socket.
        raw: the socket as written.
        materia: the parsed definition of the materia; :data:`NO_MATERIA` if the materia does not exist.
        edges: the edges of the socket.
        targets: the existing sockets that the edges lead to.
        loops: the loops that the socket is a member of, in the order of the loadout.
        foreach: the object in the field ``foreach``, or None.
        iterator: the iteration from ``foreach``, else from the first loop of the socket that iterates (R1), else None.
        advance: the object in the field ``advance``, or None.
        advance_cursor: the cursor that ``advance`` moves; None if the socket has no ``advance`` (R13).
        parse: the value of ``parse``, read from the materia of a utility or from the socket of an agent (R4).
        assignments: path, target and source of each assignment, read from the same object as ``parse`` (R4).
        handoff: the name of the handoff protocol: from the socket, else from the loadout, else the default.
        is_utility: True if a process produces the output.
        is_generator: True if the output contains work items.
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
        """True if an exit in the older field ``exit`` leads from this socket and depends on ``satisfied`` (R15)."""
        return any(
            loop.consumes and exit_.source == self.id and exit_.condition in GUARDS
            for loop in self.loops
            if (exit_ := loop.legacy) is not None
        )


@dataclass(frozen=True, slots=True, eq=False)
class LoadoutFacts:
    """A parsed loadout with its materia.

    Attributes:
        name: the name of the loadout.
        raw: the loadout as written.
        config: the config that contains the loadout; empty if only the loadout was parsed.
        entry: the value of ``entry``, else the id of the first socket (R36).
        ids: the ids of all sockets, including malformed sockets.
        sockets: the well-formed sockets by id.
        loops: the well-formed loops.
        text_sockets: the sockets whose output is plain text, which cannot contain ``satisfied`` (R3, R4).
        forced_json_sockets: the sockets whose output is parsed as JSON only because an exit in the older form depends on
            ``satisfied``, either from this socket or from a socket with the same utility (R15, R58).
        definitions: the materia definitions of the config, as written, by id.
    """

    name: str
    raw: Object
    config: Object
    entry: JSON
    ids: frozenset[str]
    sockets: Mapping[str, SocketFacts]
    loops: tuple[LoopFacts, ...]
    text_sockets: frozenset[str]
    forced_json_sockets: frozenset[str]
    definitions: Object

    @property
    def placed_materia(self) -> list[str]:
        """The ids of the materia that the sockets place, in the order of the sockets."""
        materia_ids = (socket.raw.get("materia") for socket in self.sockets.values())
        return [id_ for id_ in materia_ids if isinstance(id_, str)]

    @property
    def subjects(self) -> dict[str, list[tuple[Any, ...]]]:
        """The argument lists with which to call each rule function, by the scope of the rule."""
        return {
            "loadout": [(self,)],
            "socket": [(self, socket) for socket in self.sockets.values()],
            "loop": [(self, loop) for loop in self.loops],
        }

    def sockets_sharing_materia(self, socket: SocketFacts) -> list[str]:
        """Return the ids of all sockets that place the same materia as ``socket``, including ``socket``."""
        materia = socket.raw.get("materia")
        return [id_ for id_, other in self.sockets.items() if other.raw.get("materia") == materia]

    @property
    def successors(self) -> dict[str, list[str]]:
        """The successors of each socket through its edges and through the loop exits that lead from it."""
        targets = {id_: list(socket.targets) for id_, socket in self.sockets.items()}
        for loop in self.loops:
            for exit_ in (*loop.exits, loop.legacy):
                if exit_ and exit_.source in targets and exit_.target in targets:
                    targets[str(exit_.source)].append(str(exit_.target))
        return targets

    def likely_generator(self, members: Collection[str]) -> str | None:
        """Return the only generator whose items reach a loop of ``members``, or None if there is not exactly one.

        Generators whose edges lead to the loop through other sockets, such as a validator, count only if no generator
        leads there directly.
        """
        targets = {id_: socket.targets for id_, socket in self.sockets.items()}
        sources = {id_: ids.difference(members) for id_, ids in reversed_edges(targets).items()}
        entering = {id_ for member in members for id_ in sources.get(member, ())}
        paths = {id_: set() if self.sockets[id_].is_generator else ids for id_, ids in sources.items()}
        for reached in (entering, reachable_from(entering, paths)):
            generators = [id_ for id_ in self.sockets if id_ in reached and self.sockets[id_].is_generator]
            if generators:
                return generators[0] if len(generators) == 1 else None
        return None


def _object_or_none(value: JSON) -> Object | None:
    return value if isinstance(value, dict) else None


def _text_or_none(value: JSON) -> str | None:
    return value if isinstance(value, str) else None


def _condition_or_none(value: JSON) -> Condition | None:
    return value if is_condition(value) else None


def cached_per_config(function: Callable[[Any, Any], _CachedResult]) -> Callable[..., _CachedResult]:
    """Decorate a function of a config and a loadout name to cache its latest results for immutable configs."""
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
    """Parse a loadout of a config. The result is cached if the config is immutable."""
    raw = as_object(as_object(config.get("loadouts")).get(name))
    return parse_loadout(name, raw, as_object(config.get("materia")), config)


def parts_to_check(config: Object, loadout: str | None) -> tuple[list[str], Object]:
    """Return the names of the loadouts to check, and the materia definitions to check.

    If ``loadout`` is None, these are all loadouts and definitions of the config. Otherwise they are this loadout, if it
    exists, and the materia that it places.
    """
    loadouts, materia = as_object(config.get("loadouts")), as_object(config.get("materia"))
    if loadout is None:
        return list(loadouts), materia
    placed_ids = loadout_facts(config, loadout).placed_materia
    return [loadout] * (loadout in loadouts), {id_: raw for id_, raw in materia.items() if id_ in placed_ids}


def parse_loadout(name: str, raw: Object, definitions: Object, config: Object | None = None) -> LoadoutFacts:
    """Parse a loadout, and skip its malformed parts.

    Args:
        name: the name of the loadout.
        raw: the loadout as written.
        definitions: the materia definitions of the config.
        config: the config that contains the loadout, if known.
    """
    written_sockets = as_object(raw.get("sockets"))
    objects = {id_: socket for id_, socket in written_sockets.items() if isinstance(socket, dict)}
    loops = tuple(_parse_loop(id_, loop) for id_, loop in as_object(raw.get("loops")).items() if isinstance(loop, dict))
    materia: dict[str, MateriaFacts] = {}
    for socket in objects.values():
        materia_id = socket.get("materia")
        if isinstance(materia_id, str) and materia_id not in materia and isinstance(definitions.get(materia_id), dict):
            materia[materia_id] = parse_materia(materia_id, definitions[materia_id])
    sockets = {id_: _parse_socket(id_, raw, objects, loops, materia) for id_ in objects}
    forced_json_sockets = _find_forced_json_sockets(sockets)
    return LoadoutFacts(
        name=name,
        raw=raw,
        config=config or {},
        entry=next(iter(written_sockets), None) if raw.get("entry") is None else raw["entry"],
        ids=frozenset(written_sockets),
        sockets=sockets,
        loops=loops,
        text_sockets=frozenset(
            id_
            for id_, socket in sockets.items()
            if not (socket.materia.generator or socket.parse == "json" or id_ in forced_json_sockets)
        ),
        forced_json_sockets=forced_json_sockets,
        definitions=definitions,
    )


def _find_forced_json_sockets(sockets: Mapping[str, SocketFacts]) -> frozenset[str]:
    guarded_exits = [socket for socket in sockets.values() if socket.loops and socket.is_guarded_exit]
    json_sockets = {socket.id for socket in guarded_exits if not socket.is_utility}
    shared_materia = [socket.raw.get("materia") for socket in guarded_exits]
    json_sockets |= {
        id_ for id_, socket in sockets.items() if socket.is_utility and socket.raw.get("materia") in shared_materia
    }
    return frozenset(id_ for id_ in json_sockets if sockets[id_].parse is None)


def _parse_socket(
    id_: str,
    loadout: Object,
    sockets: Mapping[str, Object],
    loops: tuple[LoopFacts, ...],
    definitions: Mapping[str, MateriaFacts],
) -> SocketFacts:
    raw = sockets[id_]
    # An agent that returns its handoff in a separate turn returns json.
    agent_parse_mode = "json" if loadout.get("finalize") is True else None
    materia_id = raw.get("materia")
    materia = definitions.get(materia_id, NO_MATERIA) if isinstance(materia_id, str) else NO_MATERIA
    own_loops = tuple([loop for loop in loops if id_ in loop.members])
    foreach, advance = _object_or_none(raw.get("foreach")), _object_or_none(raw.get("advance"))
    edges = _parse_edges(raw.get("edges"))
    iterator = _iterator(id_, foreach, own_loops)
    cursor = None
    if advance is not None:
        cursor = text_or(advance.get("cursor"), "") or (iterator.cursor if iterator else None)
    owner, path = (materia.raw, f"materia.{materia_id}") if materia.is_utility else (raw, id_)
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
        parse=owner.get("parse", None if materia.is_utility else agent_parse_mode),
        assignments=tuple([(f"{path}.assign.{target}", target, source) for target, source in assign.items()]),
        handoff=text_or(raw.get("handoff"), text_or(loadout.get("handoff"), DEFAULT_HANDOFF)),
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
    """Return the nodes that are reachable from ``starts``, including ``starts``.

    ``targets`` maps a node to its successors, and may omit nodes without successors.
    """
    reached_nodes = set(starts)
    queue = list(reached_nodes)
    while queue:
        new = set(targets.get(queue.pop(), ())) - reached_nodes
        reached_nodes |= new
        queue += new
    return reached_nodes


def reversed_edges(targets: Mapping[_Node, Iterable[_Node]]) -> dict[_Node, set[_Node]]:
    """Return the graph with all edges reversed, as a mapping from each node to its predecessors."""
    sources: dict[_Node, set[_Node]] = {start: set() for start in targets}
    for start, next_nodes in targets.items():
        for next_node in next_nodes:
            sources.setdefault(next_node, set()).add(start)
    return sources


def strong_components(targets: Mapping[_Node, Iterable[_Node]]) -> list[list[_Node]]:
    """Return the strongly connected components of a graph, in reverse topological order.

    This is Tarjan's algorithm, without recursion because a path can be longer than the recursion limit.
    """
    number: dict[_Node, int] = {}
    lowest_numbers: dict[_Node, int] = {}
    stack: list[_Node] = []
    on_stack: set[_Node] = set()
    groups: list[list[_Node]] = []
    for root in targets:
        if root in number:
            continue
        pending_nodes = [(root, iter(targets[root]))]
        number[root] = lowest_numbers[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while pending_nodes:
            node, rest = pending_nodes[-1]
            for child in rest:
                if child not in number:
                    number[child] = lowest_numbers[child] = len(number)
                    stack.append(child)
                    on_stack.add(child)
                    pending_nodes.append((child, iter(targets[child])))
                    break
                if child in on_stack:
                    lowest_numbers[node] = min(lowest_numbers[node], number[child])
            else:
                pending_nodes.pop()
                if pending_nodes:
                    parent = pending_nodes[-1][0]
                    lowest_numbers[parent] = min(lowest_numbers[parent], lowest_numbers[node])
                if lowest_numbers[node] == number[node]:
                    component: list[_Node] = []
                    while node in on_stack:
                        component.append(stack.pop())
                        on_stack.remove(component[-1])
                    groups.append(component[::-1])
    return groups


def cycles_in(targets: Mapping[_Node, Iterable[_Node]]) -> dict[_Node, int]:
    """Return the nodes that are on a cycle, each with the number of its strongly connected component."""
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
"""File names of the utility scripts in this package (R25)."""
BUILT_IN_SCRIPTS: Final = {
    "echo": "echo.py",
    "project.ensureIgnored": "ensure-ignored.py",
    "vcs.detect": "detect-vcs.py",
    "vcs.spawnJjWorkspace": "git-tasks.py",
    "vcs.integrateJjWorkspaces": "git-tasks.py",
    "vcs.finalizeJjWorkspace": "git-tasks.py",
}
"""File names of the scripts that replace built-in utilities of the reference engine, by utility name (R61)."""
GIT_TASK_BY_UTILITY: Final = {
    "vcs.spawnJjWorkspace": "spawn",
    "vcs.integrateJjWorkspaces": "integrate",
    "vcs.finalizeJjWorkspace": "finalize",
}
"""Value of the parameter ``do`` of ``git-tasks.py``, for each lane utility of the reference engine."""
TOOL_SCOPES: Final = ("none", "readOnly", "coding")
_GIT_TASKS: Final = ("mime-bootstrap.py", "mime-maintain.py")
"""File names of the reference engine's scripts for which this package runs ``git-tasks.py``."""
_SCRIPT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.(?:py|mjs)")


@dataclass(frozen=True, slots=True)
class MateriaFacts:
    """A parsed materia definition.

    Attributes:
        id: the id of the materia; "" if the materia does not exist.
        raw: the definition as written; empty if the materia does not exist.
        is_utility: True if a process produces the output, and False if an agent does.
        generator: True if the output contains work items.
        parallel: True if the materia is a generator whose items are processed in parallel lanes.
        prompt: the prompt of an agent; "" if it is missing.
    """

    id: str
    raw: Object
    is_utility: bool
    generator: bool
    parallel: bool
    prompt: str

    @property
    def variables(self) -> list[str]:
        """The names of the ``{{name}}`` variables in the prompt, without duplicates; empty for a utility."""
        return [] if self.is_utility else list(dict.fromkeys(name for _, _, name in variables(self.prompt)))


def parse_materia(id_: str, raw: JSON) -> MateriaFacts:
    """Parse a materia definition, and ignore malformed fields."""
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
    """Return the kind of a materia from its ``type`` or, if that is missing, from its other fields.

    A definition without ``type`` is a utility if it has a command or a script, and an agent otherwise.
    """
    kind = raw.get("type")
    if kind is None:
        return "utility" if "command" in raw or "script" in raw else "agent"
    return "utility" if kind == "utility" else "agent"


def materia_group(raw: Object) -> str:
    """Return the heading under which an editor lists a materia: ``group``, else "Utility" for a utility, else ""."""
    group = raw.get("group")
    if is_text(group):
        return group.strip()
    return "Utility" if materia_kind(raw) == "utility" else ""


def script_file(name: JSON) -> str | None:
    """Return the file name of the bundled script with this name, or None if the name is invalid (R25).

    The name may also be the name of the reference engine's script, which ends in ``.mjs``. The file may not exist.
    """
    if not isinstance(name, str) or not _SCRIPT_NAME.fullmatch(name):
        return None
    file = name.removesuffix(".mjs") + ".py" if name.endswith(".mjs") else name
    return "git-tasks.py" if file in _GIT_TASKS else file


def variables(prompt: str) -> Iterable[tuple[int, int, str]]:
    """Yield the start offset, end offset and name of each ``{{name}}`` in a prompt; the name may be blank (R31).

    The prompt is scanned once. If the next closing brace after ``{{`` is a single brace, the text up to that brace
    is not a variable.
    """
    position = 0
    while (start := prompt.find("{{", position)) >= 0 and (close := prompt.find("}", start + 2)) >= 0:
        position = close + 1
        if close > start + 2 and prompt.startswith("}", position):
            position += 1
            yield start, position, prompt[start + 2 : close].strip()
