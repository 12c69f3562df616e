"""Rules about sockets, materia, handoff protocols and state values (R3, R4, R25, R26, R50, R58)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from materia_nb.errors import did_you_mean
from materia_nb.jsonvalue import Object, as_object, is_object, is_text, split_path
from materia_nb.loadout.check_graph import renumber_socket
from materia_nb.loadout.report import NO_EFFECT, Hint, HintRule, brief, do, removal_fix, rule, safe_fix, suggested_fix
from materia_nb.loadout.rules.edge_rules import reachable_sockets, read_as_json, set_advance_condition, targets_of
from materia_nb.loadout.topology import (
    CANONICAL_ID,
    SHIPPED_SCRIPTS,
    LoadoutFacts,
    SocketFacts,
    is_socket_id,
    script_file,
)
from materia_nb.loadout.vocabulary import (
    DEFAULT_HANDOFF,
    GUARDS,
    OWN_PROTOCOLS,
    RESULTS,
    WORK_ITEMS,
    OwnProtocol,
    first_field,
    protocol_names,
)

SOCKET_RULES: Final[list[HintRule]] = []


@rule(SOCKET_RULES, "loadout", "missing-entry")
def _missing_entry(facts: LoadoutFacts) -> Iterator[Hint]:
    """A loadout without `entry`, which starts at its first socket."""
    if facts.raw.get("entry") is None and facts.sockets:
        first = next(iter(facts.sockets))
        message = f"the loadout has no entry, so a cast starts at the first socket, {facts.entry!r}"
        advice = f'write "entry": "{facts.entry}"'
        yield Hint("entry", message, advice, safe_fix(f"Set the entry to {first}", do("set_entry", first)))


@rule(SOCKET_RULES, "socket", "socket-id")
def _socket_id(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """An id that is not `Socket-1`, `Socket-2`, ...."""
    id_ = socket.id
    if is_socket_id(id_) and not CANONICAL_ID.fullmatch(id_):
        advice = "rename the socket to Socket-1, Socket-2, ..., as other tools expect, and set the old id as its label"
        fix = renumber_socket(facts, socket)
        yield Hint(f"sockets.{id_}", f"{id_!r} is not a canonical socket id", advice, fix)


@rule(SOCKET_RULES, "loadout", "unreachable-socket")
def _unreachable(facts: LoadoutFacts) -> Iterator[Hint]:
    """A socket that no path from the entry reaches."""
    reached_ids = reachable_sockets(facts, targets_of(facts))
    for id_ in facts.sockets:
        if reached_ids and id_ not in reached_ids:
            message = "no path of edges and exits leads from the entry to this socket"
            yield Hint(id_, message, "add an edge to the socket, or remove the socket")


@rule(SOCKET_RULES, "loadout", "never-advances")
def _foreach_never_advances(facts: LoadoutFacts) -> Iterator[Hint]:
    """A list whose cursor never advances, so only the first item is processed."""
    advanced_cursors = {socket.advance_cursor for socket in facts.sockets.values()}
    for id_, socket in facts.sockets.items():
        if socket.foreach is not None and socket.iterator and socket.iterator.cursor not in advanced_cursors:
            when = "always" if id_ in facts.text_sockets else "satisfied"
            message = "no socket advances the cursor of this list, so only the first item is processed"
            advice = (
                'write "advance": {"when": "satisfied"} on this socket, or on the last socket that processes an item'
            )
            fix = suggested_fix(f"Advance when {when}", set_advance_condition(socket, when))
            yield Hint(f"{id_}.foreach", message, advice, fix)


@rule(SOCKET_RULES, "socket", "assign-target")
def _assign_target(_facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """An assignment with an empty target, which makes the cast fail."""
    for path, target, _ in socket.assignments:
        if not split_path(target):
            message = f"the target {brief(target)} is empty, so the cast will fail at this socket"
            yield Hint(path, message, "write a target in the state, such as plan.steps")


@rule(SOCKET_RULES, "socket", "assign-on-text")
def _assign_on_text(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """An assignment that reads a field of an output that is plain text."""
    for path, target, source in socket.assignments if socket.id in facts.text_sockets else ():
        if is_text(source) and source.startswith("$") and source != "$":
            message = f"the output of {socket.id!r} is text without fields, so {brief(source)} matches nothing and {brief(target)} is not set"
            advice = f'write "parse": "json" on {path.partition(".assign")[0]}, or assign "$", which is the whole text'
            yield Hint(path, message, advice, read_as_json(socket))


@rule(SOCKET_RULES, "socket", "guard-on-text")
def _guard_on_text(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """A condition on `satisfied` for an output that is plain text (R3)."""
    id_ = socket.id
    if id_ not in facts.text_sockets:
        return
    edge_text, exit_text = "a {} edge is never taken", "a {} exit is never taken"
    guards = [(f"{id_}.edges[{edge.index}].when", edge.when, edge_text) for edge in socket.edges]
    if socket.advance is not None:
        when = socket.advance.get("when")
        guards.append((f"{id_}.advance.when", when, "a {} advance never happens"))
    for loop in socket.loops:
        exits = [exit_ for exit_ in loop.exits if exit_.source == id_]
        guards += [(f"loops.{loop.id}.exits[{exit_.index}].condition", exit_.condition, exit_text) for exit_ in exits]
    owner = f"materia.{socket.materia.id}" if socket.is_utility else id_
    for source, guard, effect in guards:
        if guard in GUARDS:
            message = f"the output of {id_!r} is text, so {effect.format(guard)}"
            advice = f'write "parse": "json" on {owner}, or change the condition to always'
            yield Hint(source, message, advice, read_as_json(socket))


@rule(SOCKET_RULES, "socket", "shared-parse")
def _shared_parse(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """A utility whose output is parsed as JSON because of another socket with the same materia."""
    if not socket.is_utility or socket.id not in facts.forced_json_sockets or socket.is_guarded_exit:
        return
    sockets_sharing_materia = [facts.sockets[id_] for id_ in facts.sockets_sharing_materia(socket)]
    source, materia = next(other.id for other in sockets_sharing_materia if other.is_guarded_exit), socket.materia.id
    message = f"the output of {socket.id!r} is parsed as json, because {source!r} also places {materia!r} and has a loop exit that depends on `satisfied`"
    advice = f'write "parse": "json" on materia.{materia}, or place another materia on this socket'
    yield Hint(f"{socket.id}.materia", message, advice)


@rule(SOCKET_RULES, "socket", "told-nothing")
def _agent_without_context(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """An agent with `castContext: none` whose prompt has no variables (R50)."""
    if socket.is_utility or not isinstance(socket.materia.raw.get("prompt"), str):
        return
    owners = (socket.raw, socket.materia.raw, facts.raw, facts.config)
    contexts = [context for owner in owners if (context := owner.get("castContext"))]
    if contexts[:1] == ["none"] and not any(socket.materia.variables):
        reason = f"`castContext` is 'none' and the prompt of {socket.raw.get('materia')!r} has no variables"
        message = f"the agent sees neither the request nor earlier outputs, since {reason}"
        advice = "write {{request}} or {{lastOutput}} into the prompt, or set `castContext` to `full` or `request`"
        fix = suggested_fix("Show the agent the request", do("set_socket", socket.id, "castContext", "request"))
        yield Hint(f"{socket.id}.castContext", message, advice, fix)


# -- materia, and the config around the loadouts -----------------------------------------------


@rule(SOCKET_RULES, "materia", "unknown-script")
def _unknown_script(id_: str, raw: Object) -> Iterator[Hint]:
    """A script name for which the package contains no script (R25)."""
    name = script_file(as_object(raw.get("script")).get("name"))
    if name is not None and raw.get("command") is None and name not in SHIPPED_SCRIPTS:
        message = f"the package has no script {name!r}, so the utility runs only if your profile contains the script"
        yield Hint(f"materia.{id_}.script.name", message, did_you_mean(name, SHIPPED_SCRIPTS))


@rule(SOCKET_RULES, "config", "active-loadout")
def _active_loadout(document: Object) -> Iterator[Hint]:
    """A config that has several loadouts but no `activeLoadout`."""
    loadouts = [name for name, raw in as_object(document.get("loadouts")).items() if is_object(raw)]
    if len(loadouts) > 1 and document.get("activeLoadout") is None:
        message = f"the config has no `activeLoadout`, so the first loadout, {loadouts[0]!r}, is cast"
        yield Hint("activeLoadout", message, f'write "activeLoadout": "{loadouts[0]}"')


@rule(SOCKET_RULES, "config", "unused-materia")
def _unused_materia(document: Object) -> Iterator[Hint]:
    """A materia that no loadout places."""
    used_materia: set[str] = set()
    for loadout in as_object(document.get("loadouts")).values():
        sockets = as_object(as_object(loadout).get("sockets")).values()
        used_materia |= {name for socket in sockets if isinstance(name := as_object(socket).get("materia"), str)}
    for id_ in as_object(document.get("materia")):
        if id_ not in used_materia:
            message = f"no loadout uses the materia {id_!r}"
            yield Hint(f"materia.{id_}", message, "place the materia in a loadout, or remove it")


_FOREIGN_PROTOCOL: Final = OwnProtocol("", includes_assignment=True)
"""Placeholder for a protocol of another package, whose properties are unknown."""
_TASK_PROTOCOLS: Final = " or ".join(f'"{name}"' for name, own in OWN_PROTOCOLS.items() if own.includes_assignment)


@rule(SOCKET_RULES, "loadout", "unknown-protocol")
def _unknown_protocol(facts: LoadoutFacts) -> Iterator[Hint]:
    """A handoff protocol that no installed package provides, so the loadout cannot be cast."""
    owners = [("handoff", facts.raw), *((f"{id_}.handoff", socket.raw) for id_, socket in facts.sockets.items())]
    for source, owner in owners:
        name = owner.get("handoff")
        if is_text(name) and name not in OWN_PROTOCOLS and name not in (names := protocol_names()):
            message = f"no installed package provides the handoff protocol {name!r}, so the loadout cannot be cast"
            yield Hint(source, message, did_you_mean(name, names))


@rule(SOCKET_RULES, "socket", NO_EFFECT)
def _fields_without_effect(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """A socket field that has no effect with the materia of the socket (R4)."""
    ineffective = _no_effect_on_utility(socket) if socket.is_utility else _no_effect_on_agent(facts, socket)
    for field, message, advice in ineffective:
        yield Hint(f"{socket.id}.{field}", message, advice, removal_fix(socket.id, field))


def _no_effect_on_utility(socket: SocketFacts) -> Iterator[tuple[str, str, str]]:
    """Yield the fields that have no effect on a utility's socket, each with the reason and advice."""
    raw, definition = socket.raw, socket.materia.raw
    for field in ("parse", "assign"):
        if raw.get(field) is not None and raw[field] != definition.get(field):
            message = f"the materia is a utility, so {field} of the socket has no effect"
            yield field, message, f"write {field} on materia.{raw.get('materia')}"
    if is_text(raw.get("handoff")) and raw["handoff"] != DEFAULT_HANDOFF:
        yield "handoff", f"the materia is a utility, which always uses {DEFAULT_HANDOFF}", "remove `handoff`"
    if as_object(raw.get("assignment")):
        yield "assignment", "the materia is a utility, which does not receive an assignment", "remove `assignment`"
    if raw.get("finalize") is True:
        yield "finalize", "the materia is a utility, which returns one output", "remove `finalize`"
    if raw.get("castContext") is not None:
        yield "castContext", "the materia is a utility, which has no prompt", "remove `castContext`"


def _no_effect_on_agent(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[tuple[str, str, str]]:
    """Yield the fields that have no effect on an agent's socket, each with the reason and advice."""
    raw, id_, text = socket.raw, socket.id, socket.id in facts.text_sockets
    name, own_protocol = socket.handoff, OWN_PROTOCOLS.get(socket.handoff, _FOREIGN_PROTOCOL)
    if as_object(raw.get("assignment")) and not own_protocol.includes_assignment:
        advice = f'write "handoff": {_TASK_PROTOCOLS}, or write the task into the prompt'
        yield "assignment", f"the protocol {name} does not include the assignment in the prompt", advice
    json_instead = 'write "parse": "json", or remove the field'
    if raw.get("finalize") is True and text:
        yield "finalize", f"the output of {id_!r} is text, which needs no separate handoff", json_instead
    elif raw.get("finalize") is True and socket.materia.raw.get("multiTurn") is True:
        message = "the agent refines drafts, and always returns its final result in a separate turn"
        yield "finalize", message, "remove `finalize`"
    if text and is_text(raw.get("handoff")) and name != DEFAULT_HANDOFF:
        yield "handoff", f"the output of {id_!r} is text, which every protocol accepts", json_instead


@rule(SOCKET_RULES, "socket", "text-handoff")
def _text_handoff(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """An agent whose output is plain text, in a loadout that sets a handoff protocol."""
    name = socket.handoff
    is_written = is_text(socket.raw.get("handoff"))
    if not socket.is_utility and socket.id in facts.text_sockets and not is_written and name != DEFAULT_HANDOFF:
        message = f"the output of {socket.id!r} is text, so it does not use the protocol {name} of the loadout"
        advice = 'write "parse": "json" on the socket or, to keep the text output, "handoff": "sparse"'
        yield Hint(f"{socket.id}.parse", message, advice)


@rule(SOCKET_RULES, "socket", "not-finalized")
def _not_finalized(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """An agent that works and returns its envelope in the same turn, because `finalize` is not set."""
    name, own_protocol = socket.handoff, OWN_PROTOCOLS.get(socket.handoff, _FOREIGN_PROTOCOL)
    if socket.is_utility or socket.id in facts.text_sockets or not own_protocol.in_separate_turn:
        return
    if "finalize" not in {**facts.raw, **socket.raw} and socket.materia.raw.get("multiTurn") is not True:
        advice = 'write "finalize": true for a separate turn after the work, or false to confirm a single turn'
        message = f"{socket.id!r} works and returns its {name} in the same turn"
        yield Hint(f"{socket.id}.finalize", message, advice)


@rule(SOCKET_RULES, "socket", "not-in-protocol")
def _not_in_protocol(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """An assignment that reads a field for which the prompt does not ask."""
    name, own_protocol = socket.handoff, OWN_PROTOCOLS.get(socket.handoff, _FOREIGN_PROTOCOL)
    if socket.is_utility or socket.id in facts.text_sockets:
        return
    for path, _, source in socket.assignments:
        if not isinstance(source, str) or not source.startswith("$") or source == "$":
            continue
        top_field = first_field(source)
        if top_field is None and own_protocol is not _FOREIGN_PROTOCOL:
            message = f"{brief(source)} does not begin with a field, so the agent is not asked for a field"
            yield Hint(path, message, "begin the source with a field, such as $.plan or $.plan..name")
        elif own_protocol.fields is None:
            continue
        elif top_field not in own_protocol.fields and not (top_field == WORK_ITEMS and socket.is_generator):
            yield Hint(
                path,
                f"the protocol {name} does not ask the agent for {top_field}, so an output without {top_field} is refused",
                f"assign a field of the protocol, such as $.{own_protocol.fields[1]}; `satisfied`, `context` and `workItems` need no "
                "assignment",
            )


# -- values in the state -----------------------------------------------------------------------

StatePath: TypeAlias = tuple[str, ...]


@rule(SOCKET_RULES, "socket", "prompt-grows")
def _prompt_grows(_facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """A prompt that repeats a whole list for each item of the list (R50)."""
    if socket.iterator is None:
        return
    path = _state_path_read(socket.iterator.items)
    for name in socket.materia.variables:
        read_path = () if name in ("state", "stateJson") else _state_path_read(name)
        if path and read_path is not None and path[: len(read_path)] == read_path:
            repetition = (
                f"the prompt of {socket.raw.get('materia')!r} repeats the whole list {'.'.join(path)} for each item"
            )
            message = f"{repetition} through {{{{{name}}}}}, so the total prompt length grows with the square of the list length"
            advice = "replace the variable with {{item}}, or remove it, since agents see the titles of the items anyway"
            yield Hint(socket.id, message, advice)
            return


# -- values that are never written -----------------------------------------------------------

_ENGINE_NAMES: Final = frozenset({"item", "currentWorkItem", "workItem", "previous"})
"""State fields that the engine sets: the current item, and the result of the previous cast in a chain."""
_CANONICAL_PATHS: Final = frozenset({("context",), ("satisfied",), (WORK_ITEMS,)})
"""State paths that a JSON output may set without an assignment (R10)."""
_NOT_STATE_PATHS: Final = frozenset({"item", "lastJson", "lastOutput", "request", "stateJson", "itemJson", "cursor"})
_MAX_NAMES: Final = 5


class _StateRead(NamedTuple):
    """A config field that reads a value from the state.

    Attributes:
        reader_path: the path of the config field.
        path: the state path of the value.
        effect: a clause that describes what happens if the value is missing.
        shared: True if other loadouts may use the same config field, and may set the value.
    """

    reader_path: str
    path: StatePath
    effect: str
    shared: bool = False


@rule(SOCKET_RULES, "loadout", "never-written")
def _never_written(facts: LoadoutFacts) -> Iterator[Hint]:
    """A variable, assignment or list that reads a state value which is not set on at least one path to the socket.

    If no socket sets the value, the check skips prompts of materia that other loadouts also use, because one of those
    loadouts may set the value.
    """
    entry = facts.entry
    if not isinstance(entry, str) or entry not in facts.sockets:
        return
    targets = facts.successors
    any_path_writers, paths_by_field = _state_writers(facts)
    known_names = _ENGINE_NAMES | {split_path(alias)[0] for alias in _item_names(facts)}
    writers_of: dict[StatePath, tuple[set[str], dict[str, str | None]]] = {}
    reachable_before: dict[str, dict[str, str | None]] = {}
    reported_paths: set[tuple[str, StatePath]] = set()  # several sockets can place the same prompt
    for id_, socket in facts.sockets.items():
        for read in _state_reads(socket):
            if read.path[0] in known_names or (read.reader_path, read.path) in reported_paths:
                continue
            if read.path not in writers_of:
                paths_with_name = paths_by_field.get(read.path[0], ())
                writers = any_path_writers | {writer for writer, path in paths_with_name if _overlap(read.path, path)}
                writers_of[read.path] = writers, _reachable_without(entry, targets, writers)
            writers, predecessors = writers_of[read.path]
            if id_ not in predecessors or (read.shared and not writers and _placed_elsewhere(facts, socket)):
                continue
            if id_ not in reachable_before:
                reachable_before[id_] = _reachable_without(entry, targets, {id_})
            if writers and not (writers - {id_}) & reachable_before[id_].keys():
                continue  # written only after this socket, for its next visit, such as a critic's feedback
            reported_paths.add((read.reader_path, read.path))
            yield _unwritten_hint(read, writers - {id_}, _route_to(id_, predecessors))


def _placed_elsewhere(facts: LoadoutFacts, socket: SocketFacts) -> bool:
    """Return True if another loadout of the config places the same materia as the socket."""
    materia = socket.raw.get("materia")
    loadouts = [as_object(raw) for name, raw in as_object(facts.config.get("loadouts")).items() if name != facts.name]
    sockets = [as_object(other) for loadout in loadouts for other in as_object(loadout.get("sockets")).values()]
    return any(other.get("materia") == materia for other in sockets)


def _unwritten_hint(read: _StateRead, others: set[str], route: list[str]) -> Hint:
    path_phrase = f"on the path {' → '.join(route)}" if others else "on any path"
    advice = "assign the value on an earlier socket, or correct the name"
    if others:
        writers = ", ".join(sorted(others)[:_MAX_NAMES])
        verb = "writes" if len(others) == 1 else "write"
        advice = f"assign the value on every path; only {writers} {verb} the value"
    path = ".".join(("state", *read.path))
    return Hint(read.reader_path, f"{path} is not written {path_phrase}, so {read.effect}", advice)


def _state_reads(socket: SocketFacts) -> Iterator[_StateRead]:
    for name in socket.materia.variables:
        if (path := _state_path_read(name)) is not None:
            yield _StateRead(
                f"materia.{socket.materia.id}.prompt", path, "the prompt contains an empty string instead", shared=True
            )
    for where, _, source in socket.assignments:
        if isinstance(source, str) and not source.startswith("$") and (path := _state_path_read(source)) is not None:
            yield _StateRead(where, path, "nothing is assigned")
    iterator = socket.iterator
    if iterator and iterator.items and (path := _state_path_read(iterator.items)) is not None:
        where = f"{socket.id}.foreach.items" if iterator.loop is None else f"loops.{iterator.loop}"
        loop = next((loop for loop in socket.loops if loop.id == iterator.loop), None)
        if loop is None or loop.members[0] == socket.id:
            yield _StateRead(where, path, "the list is empty")


def _state_path_read(name: str) -> StatePath | None:
    """Return the state path that a variable or source reads, or None if it does not read the state."""
    segments = tuple(split_path(name))
    if segments[:1] == ("state",):
        segments = segments[1:]
    elif name.split(".", maxsplit=1)[0] in _NOT_STATE_PATHS:
        return None
    return segments or None


def _item_names(facts: LoadoutFacts) -> Iterator[str]:
    for socket in facts.sockets.values():
        if socket.foreach is not None and is_text(alias := socket.foreach.get("as")) and split_path(alias):
            yield alias
    for loop in facts.loops:
        if loop.iterates and split_path(loop.alias):
            yield loop.alias


def _state_writers(facts: LoadoutFacts) -> tuple[set[str], Mapping[str, list[tuple[str, StatePath]]]]:
    """Return the sockets that can set any state path, and the paths that the other sockets can set.

    A utility with JSON output can set any path (R10). The paths of the other sockets are grouped by their first
    segment, and each is paired with the id of its socket.
    """
    any_path_writers: set[str] = set()
    paths_by_field: dict[str, list[tuple[str, StatePath]]] = {}
    for id_, socket in facts.sockets.items():
        returns_json = id_ not in facts.text_sockets
        if returns_json and socket.is_utility:
            any_path_writers.add(id_)
            continue
        paths = {tuple(split_path(target)) for _, target, _ in socket.assignments}
        if socket.materia.parallel:
            paths.add((RESULTS,))  # written when the lanes join
        for path in paths | (_CANONICAL_PATHS if returns_json else frozenset()):
            if path:
                paths_by_field.setdefault(path[0], []).append((id_, path))
    return any_path_writers, paths_by_field


def _overlap(path: StatePath, written_path: StatePath) -> bool:
    return path[: len(written_path)] == written_path or written_path[: len(path)] == path


def _reachable_without(entry: str, targets: Mapping[str, list[str]], blocked: set[str]) -> dict[str, str | None]:
    """Return the sockets that are reachable from the entry on paths that end at the first socket in ``blocked``.

    The result maps each socket to its predecessor on a shortest path, and the entry to None.
    """
    predecessors: dict[str, str | None] = {entry: None}
    queue = deque([entry])
    while queue:
        current_id = queue.popleft()
        for target in targets[current_id] if current_id not in blocked else ():
            if target not in predecessors:
                predecessors[target] = current_id
                queue.append(target)
    return predecessors


def _route_to(id_: str | None, predecessors: Mapping[str, str | None]) -> list[str]:
    route: list[str] = []
    while id_ is not None:
        route, id_ = [id_, *route], predecessors[id_]
    return route


def shortest_route(start: str, end: str, targets: Mapping[str, list[str]]) -> list[str]:
    """Return the sockets on a shortest path of at least one step, including ``start`` and ``end``, or an empty list."""
    predecessors = _reachable_without(start, targets, set())
    last = next((id_ for id_ in predecessors if end in targets[id_]), None)
    return [] if last is None else [*_route_to(last, predecessors), end]
