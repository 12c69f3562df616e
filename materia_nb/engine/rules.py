"""The rules of a cast: its graph, and data that the engine computes once for each socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from materia_nb.engine.conversation import truncate
from materia_nb.engine.items import Source, Template, compile_source, compile_template, iteration_of, state_path
from materia_nb.engine.state import Iteration, Mode
from materia_nb.handoff import HandoffProtocol, Requirements, protocol
from materia_nb.handoff.checks import requirements_of
from materia_nb.jsonvalue import JSON, FrozenDict, frozen, split_path
from materia_nb.loadout.graph import CastContext, ExitRoute, Graph, PromptForm, Socket
from materia_nb.loadout.topology import variables
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, REWORK_CONDITIONS, WITHOUT_OUTPUT, condition_spec

DEFERRED_HANDOFF: Final = "Do the work now and answer in any form. You will be asked for the handoff afterwards."
"""Format instructions for a turn of work whose handoff is requested in a separate turn."""

_MIN_TRAIL: Final = 16
"""Minimum number of visited sockets that are remembered for messages about cycles; larger graphs need more."""


_MAX_LABEL_CHARS: Final = 200


class PromptVariables(NamedTuple):
    """The values that the variables of a materia's prompt insert.

    Attributes:
        request: True if the prompt contains the request.
        output: True if the prompt contains the last output.
        fields: the fields of the last output that the prompt contains.
        paths: the paths in the state whose values the prompt contains; the empty path is the whole state.
        item: the paths in the current item whose values the prompt contains; the empty path is the whole item.
        quoting: the variables whose values come from outside the loadout.
    """

    request: bool = False
    output: bool = False
    fields: frozenset[str] = frozenset()
    paths: tuple[tuple[str, ...], ...] = ()
    item: tuple[tuple[str, ...], ...] = ()
    quoting: frozenset[str] = frozenset()

    def variable_of(self, path: tuple[str, ...]) -> str:
        """Return the variable that inserts the value at a path in the state, or "" if no variable does."""
        prefix = next((known_path for known_path in self.paths if path[: len(known_path)] == known_path), None)
        if prefix is None:
            return ""
        return "{{" + (".".join(("state", *prefix)) if prefix else "stateJson") + "}}"


@lru_cache(maxsize=1024)
def _prompt_variables(prompt: str, item_paths: tuple[tuple[str, ...], ...]) -> PromptVariables:
    """Return the values that a materia's prompt contains (R31); ``item_paths`` are the paths of the item (R12)."""
    names = {name for _, _, name in variables(prompt)} - {""}
    paths, item, fields, quoting = set(), set(), set(), set()
    for name in names:
        first_name, *rest = name.split(".")
        if name == "request" or (first_name == "cursor" and rest):
            continue
        if name == "itemJson" or first_name == "item":
            item.add(tuple(rest))
            continue
        if name == "lastOutput" or first_name == "lastJson":
            quoting.add(name)
            fields |= set(rest) if first_name == "lastJson" and len(rest) == 1 else set()
            continue
        path = () if name == "stateJson" else tuple(rest) if first_name == "state" else (first_name, *rest)
        inside = next((path[len(item_path) :] for item_path in item_paths if path[: len(item_path)] == item_path), None)
        if inside is not None:
            item.add(inside)
            continue
        quoting.add(name)
        paths.add(path)
    return PromptVariables(
        "request" in names,
        bool(names & {"lastOutput", "lastJson"}),
        frozenset(fields),
        tuple(sorted(paths)),
        tuple(sorted(item)),
        frozenset(quoting),
    )


class SocketContext(NamedTuple):
    """Data for the prompts of a socket; the data is the same at every visit.

    ``output_paths`` are the paths in the state to which any socket assigns an entire output. ``assigned_fields`` are
    the fields of its own output that the socket assigns, each with its path in the state.
    """

    introduction: str
    is_only_socket: bool
    generator: bool
    shown: CastContext
    own: PromptVariables
    list_path: tuple[str, ...]
    cursor: str | None
    form: PromptForm
    output_paths: tuple[tuple[str, ...], ...]
    assigned_fields: tuple[tuple[str, tuple[str, ...]], ...]


def socket_context(socket: Socket, graph: Graph, form: PromptForm = "md") -> SocketContext:
    """Return the prompt data of a socket; ``form`` is the default prompt form of its model: ``md`` or ``plain``."""
    materia, iterator = socket.materia, socket.iterator
    label = truncate(" ".join(materia.label.split()), _MAX_LABEL_CHARS)
    title = label if label == materia.id else f"{label} (materia {materia.id})"
    names = ["item", "currentWorkItem", *([iterator.alias] if iterator else [])]
    if iterator and iterator.has_work_item_keys:
        names.append("workItem")
    iterations = [loop.iterator for loop in graph.loops.values() if loop.iterator is not None]
    aliases = tuple(tuple(name.split(".")) for name in names) if iterator else (("item",),)
    return SocketContext(
        f"You are {title}, at {socket.id} in the loadout {graph.name}.",
        len(graph.sockets) == 1,
        socket.is_generator,
        socket.cast_context,
        _prompt_variables(materia.prompt, aliases),
        state_path(iterator.items) if iterator else (),
        next((iteration.cursor for iteration in iterations if state_path(iteration.items) == ("workItems",)), None),
        socket.prompt_form or form,
        tuple(
            tuple(split_path(target))
            for other in graph.sockets.values()
            for target, text in other.assign
            if text in ("$", "lastOutput") and split_path(target)
        ),
        tuple((text[2:], tuple(split_path(target))) for target, text in socket.assign if text.startswith("$.")),
    )


@dataclass(frozen=True, slots=True)
class SocketRules:
    """The rules of one socket, computed once for all its visits.

    Attributes:
        first_mode: the purpose of the first turn of a visit.
        work_modes: the modes in which an answer is stored as work, and the next turn requests the handoff.
        free_text_modes: the modes in which any answer is accepted: ``work_modes`` and drafts.
        prompt: the compiled template of the materia's prompt.
        iteration: the iteration over the socket's items, or None if the socket has no iterator.
        items: a function that reads the list of items, or None if the socket has no iterator.
        requirements: the requirements for an output.
        assign: the assignments, each with its target, the segments of the target, and its source.
        exits: the loop exits that leave from the socket, in order.
        routes_failures: True if an edge handles a visit that ends without an output (R60).
        stops_on_reported_failure: True if a failure that the output reports stops the cast (R48), as for a JSON utility whose edges and
            exits do not handle ``not_satisfied``.
        has_bounded_edge: True if an edge has ``maxTraversals``.
        consumer_cursors: the cursors of the loops that consume the items of this socket.
        about: the fields that identify the socket in an event.
        required_fields: the required fields of an answer with their descriptions; empty if no fields are required.
        schema: the JSON Schema of an answer, or None if an answer is not a single JSON object.
        sample_protocol: the protocol if it can create sample answers, or None.
        write: a function that writes an answer given as an object, or None for plain JSON.
        context: the prompt data that is the same at every visit.
        task: the template of the materia's prompt, with inserted text from outside the loadout in code fences (R50).
        receives_rework: True if an edge sends work back to the agent, so that its last answer is stored (R50).
    """

    socket: Socket
    first_mode: Mode
    work_modes: frozenset[Mode]
    free_text_modes: frozenset[Mode]
    prompt: Template
    iteration: Iteration | None
    items: Source | None
    requirements: Requirements
    protocol: HandoffProtocol
    assign: tuple[tuple[str, tuple[str, ...], str], ...]
    exits: tuple[ExitRoute, ...]
    routes_failures: bool
    stops_on_reported_failure: bool
    has_bounded_edge: bool
    consumer_cursors: tuple[str, ...]
    about: dict[str, JSON]
    required_fields: Mapping[str, str]
    schema: dict[str, JSON] | None
    sample_protocol: HandoffProtocol | None
    write: Callable[[Mapping[str, JSON]], str] | None
    context: SocketContext
    task: Template
    receives_rework: bool


class Rules:
    """The immutable rules of a cast; a running cast keeps the rules with which it started.

    ``nests`` is True if an assignment can nest the state inside itself without limit. ``lists`` maps the path of each
    list to the iterations over it, one for each cursor; outer lists come before inner lists.
    """

    def __init__(self, graph: Graph, session: str = "") -> None:
        """Compute the rules of every socket of ``graph``; ``session`` is the cast id to use in prompts."""
        self.graph = graph
        self.session = session
        self.sockets: dict[str, SocketRules] = FrozenDict(
            {socket.id: _socket_rules(graph, socket) for socket in graph.sockets.values()}
        )
        self.trail = max(_MIN_TRAIL, len(self.sockets)) + 1
        self.names = _unique_names(graph)
        self.nests = any(
            not text.startswith("$") for socket_rules in self.sockets.values() for _, _, text in socket_rules.assign
        )
        self.lists = _iterations_by_list(
            [socket_rules.iteration for socket_rules in self.sockets.values() if socket_rules.iteration is not None]
        )
        self.cursors = frozenset(
            iteration.iterator.cursor for iterations in self.lists.values() for iteration in iterations
        )

    def in_session(self, session: str) -> Rules:
        """Return a copy of the rules for the cast with the id ``session``."""
        rules = copy(self)
        rules.session = session
        return rules

    @property
    def uses_knowledge(self) -> bool:
        """True if an agent reads or changes the knowledge about the project."""
        protocols = [socket_rules.protocol for socket_rules in self.sockets.values()]
        return any("assignment" in spoken.overridden or "learn" in spoken.overridden for spoken in protocols)

    def empty_exit(self, socket: Socket) -> ExitRoute | None:
        """Return the exit to take if ``socket`` is entered while its list has no further item (R16).

        The result is the first ``always`` exit of the loop; exits that leave from this socket have priority. For a
        socket with its own ``foreach``, the exits of all enclosing loops are considered.
        """
        iterator = socket.iterator
        loops = socket.loops if iterator is None or iterator.loop is None else (iterator.loop,)
        for loop_id in loops:
            routes = [route for route in self.graph.loops[loop_id].routes if route.condition == "always"]
            own_exits = [route for route in routes if route.source == socket.id]
            if own_exits or routes:
                return (own_exits or routes)[0]
        return None


def _iterations_by_list(iterations: Sequence[Iteration]) -> dict[tuple[str, ...], tuple[Iteration, ...]]:
    iterations_by_path: dict[tuple[str, ...], dict[str, Iteration]] = {}
    for iteration in iterations:
        if iteration.list_path:
            iterations_by_path.setdefault(iteration.list_path, {}).setdefault(iteration.iterator.cursor, iteration)

    def depth(path: tuple[str, ...], visited: frozenset[tuple[str, ...]] = frozenset()) -> int:
        outer = [
            iteration.list_path
            for iteration in iterations
            if iteration.list_path not in visited and any(path[: len(alias)] == alias for alias in iteration.paths)
        ]
        return 1 + max((depth(path_, visited | {path}) for path_ in outer if path_ != path), default=-1)

    return {path: tuple(iterations_by_path[path].values()) for path in sorted(iterations_by_path, key=depth)}


def _unique_names(graph: Graph) -> dict[str, str]:
    """Return the socket for each materia id and label that belongs to exactly one socket (R51).

    Names that are also socket ids are omitted.
    """
    sockets_by_name: dict[str, set[str]] = {}
    for id_, socket in graph.sockets.items():
        for name in (socket.materia.id, socket.materia.label):
            sockets_by_name.setdefault(name, set()).add(id_)
    return {
        name: next(iter(socket_ids))
        for name, socket_ids in sockets_by_name.items()
        if len(socket_ids) == 1 and name not in graph.sockets
    }


def _socket_rules(graph: Graph, socket: Socket) -> SocketRules:
    needed = requirements_of(socket)
    protocol_ = protocol(DEFAULT_HANDOFF if socket.is_utility else socket.handoff)
    loops = graph.loops
    work_modes: frozenset[Mode] = frozenset(("work", "resume") if socket.finalize else ())
    exits = tuple(route for loop in socket.loops for route in loops[loop].routes if route.source == socket.id)
    iterators = [iterator for loop in graph.consumers.get(socket.id, ()) if (iterator := loops[loop].iterator)]
    sample_protocol = protocol_ if "sample_outputs" in protocol_.overridden else None
    context = socket_context(socket, graph)
    return SocketRules(
        socket=socket,
        first_mode="draft" if socket.materia.multi_turn and not socket.is_utility else "work",
        work_modes=work_modes,
        free_text_modes=work_modes | {"draft"},
        prompt=compile_template(socket.materia.prompt),
        iteration=iteration_of(socket.iterator) if socket.iterator else None,
        items=compile_source(socket.iterator.items) if socket.iterator else None,
        requirements=needed,
        protocol=protocol_,
        assign=tuple((target, tuple(split_path(target)), text) for target, text in socket.assign),
        exits=exits,
        routes_failures=any(
            condition_spec(edge.when).matches(other) for edge in socket.edges for other in WITHOUT_OUTPUT
        ),
        stops_on_reported_failure=socket.is_utility
        and needed.parse == "json"
        and not any(
            when in REWORK_CONDITIONS
            for when in (*(edge.when for edge in socket.edges), *(route.condition for route in exits))
        ),
        has_bounded_edge=any(edge.max_traversals is not None for edge in socket.edges),
        consumer_cursors=tuple(iterator.cursor for iterator in iterators),
        required_fields=frozen(protocol_.fields(needed)),
        schema=None if socket.is_utility else frozen(protocol_.schema(needed)),
        sample_protocol=sample_protocol,
        write=sample_protocol.write if sample_protocol is not None and needed.parse == "json" else None,
        context=context,
        task=compile_template(socket.materia.prompt, frozenset() if context.form == "plain" else context.own.quoting),
        receives_rework=not socket.is_utility
        and any(
            edge.when in REWORK_CONDITIONS and edge.to == socket.id
            for other in graph.sockets.values()
            for edge in other.edges
        ),
        about=frozen({"socket": socket.id, "materia": socket.materia.id, "materiaLabel": socket.materia.label}),
    )
