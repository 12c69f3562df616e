"""Rules about loadouts that pi-materia, the reference engine, refuses or runs differently.

Each hint cites the number of the rule that describes the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from materia_nb.errors import counted
from materia_nb.jsonvalue import JSON, Object, as_object, whole_number
from materia_nb.loadout.items import advances_of, completed_advances, derive, socket_advance, unwritten_advances
from materia_nb.loadout.report import Findings, Hint, HintRule, Report, brief, rule
from materia_nb.loadout.rules.edge_rules import conditions_overlap, never_taken
from materia_nb.loadout.rules.socket_rules import shortest_route
from materia_nb.loadout.topology import (
    CANONICAL_ID,
    EdgeFacts,
    LoadoutFacts,
    LoopFacts,
    SocketFacts,
    cycles_in,
    loadout_facts,
    parts_to_check,
)
from materia_nb.loadout.vocabulary import DEFAULT_HANDOFF, GUARDS

REFERENCE_RULES: Final[list[HintRule]] = []
REFUSAL: Final = "pi-materia-refuses"
DIFFERENCE: Final = "pi-materia-differs"
_CONDITIONS: Final = ("always", "satisfied", "not_satisfied")
_REJECTED_FIELDS: Final = ("type", "role", "prompt", "systemPrompt")
"""Fields that the reference engine rejects in a socket, because the materia determines what the socket does."""
_SCRIPT_PREFIXES: Final = ("blackbelt", "mime", "commit-sigil.", "detect-vcs.", "ensure-ignored.")
"""Prefixes of the script names that the reference engine knows."""
_SHIPPED_NAMES: Final = {
    "loadouts": "Full-Auto Planning-Consult Hojo-Consult Parallel-Experimental Parallel-Interactive",
    "materia": "Auto-Architect Interactive-Plan Parallel-Plan Parallel-Plan-Interactive Build Auto-Plan Maintain Narrate "
    "Auto-Eval Integration-Review GitMaintain Detect-VCS Blackbelt-Bootstrap Blackbelt-Maintain Spawn-JJ-Workspace "
    "Integrate-JJ-Workspaces Finalize-JJ-Workspace Blackbelt-GH-PR Mime-Bootstrap Mime-Maintain Mime-GH-PR "
    "Blackbelt-ADO-PR Mime-ADO-PR Commit-Sigil Chain-Context Cover Ignore-Artifacts",
}  # Names that the default config of pi-materia 0.1.10 defines.
_IGNORED_FIELDS: Final = {
    "R74": ("handoff", "assignment", "finalize", "mcpServers"),
    "R50": ("castContext", "promptForm"),
    "R56": ("prices", "maxCostUsd", "maxSeconds"),
    "R20": ("maxTurns",),
}  # Fields that the reference engine ignores, by the number of the rule that defines them, or R74.


@rule(REFERENCE_RULES, "socket", REFUSAL)
def _refused_socket(_facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """A socket that pi-materia rejects."""
    if not CANONICAL_ID.fullmatch(socket.id):
        message = f"pi-materia rejects the socket id {socket.id!r} (R26)"
        yield Hint(f"sockets.{socket.id}", message, "rename the socket to Socket-1, Socket-2, ...")
    for field in [field for field in _REJECTED_FIELDS if field in socket.raw]:
        message = f"pi-materia rejects a config in which a socket has the field `{field}` (R26)"
        yield Hint(f"{socket.id}.{field}", message, f"remove `{field}`; the materia defines what the socket does")
    for edge in socket.edges:
        if edge.when not in _CONDITIONS:
            message = f"pi-materia has no condition {edge.when}, so it refuses the loadout (R3)"
            advice = "remove the edge; a failure then ends the cast in both engines"
            yield Hint(f"{socket.id}.edges[{edge.index}].when", message, advice)


@rule(REFERENCE_RULES, "loop", REFUSAL)
def _refused_loop(facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """A loop that pi-materia rejects.

    pi-materia treats the only generator that leads into a loop as the source of the items, even if the loop has an
    ``iterator``.
    """
    if "label" in loop.raw:
        message = "pi-materia rejects a config in which a loop has a label (R26)"
        yield Hint(f"loops.{loop.id}.label", message, "remove `label`, and use the name of the loop")
    generator = facts.likely_generator(loop.members) if loop.iterator is not None else None
    targets = {id_: set(loop.members).intersection(socket.targets) for id_, socket in facts.sockets.items()}
    entries = [to for to in facts.sockets[generator].targets if to in loop.members] if generator is not None else []
    if len(entries) > 1 or (entries and not cycles_in(targets)):
        message = f"pi-materia treats the loop as a consumer of {generator!r}, and rejects it (R27)"
        yield Hint(f"loops.{loop.id}.iterator", message, "enter the loop only from sockets that are not generators")


@rule(REFERENCE_RULES, "materia", REFUSAL)
def _refused_materia(id_: str, raw: Object) -> Iterator[Hint]:
    """A materia that pi-materia rejects or cannot run."""
    name, tools = as_object(raw.get("script")).get("name"), raw.get("tools")
    if isinstance(name, str) and not name.endswith(".mjs"):
        message = f"pi-materia rejects every config with the script name {name!r} (R25)"
        advice = f"write {name.removesuffix('.py')}.mjs, which runs the same script in this engine"
        yield Hint(f"materia.{id_}.script.name", message, advice)
    elif isinstance(name, str) and not name.startswith(_SCRIPT_PREFIXES):
        message = f"pi-materia has no script {name!r}, so a cast fails at this materia (R25)"
        yield Hint(f"materia.{id_}.script.name", message, "use a command, or a script that both engines have")
    if isinstance(tools, list):
        message = "pi-materia rejects a list of tools (R26)"
        advice = f'write {{"type": "custom", "tools": {brief(tools)}}}'
        yield Hint(f"materia.{id_}.tools", message, advice)


@rule(REFERENCE_RULES, "loadout", DIFFERENCE)
def _unwritten_advance(facts: LoadoutFacts) -> Iterator[Hint]:
    """A loop whose advance is derived from its exits, or does not name its cursor and list."""
    derived = "pi-materia does not advance at {!r} (R15): with two items, it repeats the first until the cast fails"
    incomplete = "pi-materia fails at {!r} when an item ends, because `advance` does not name its cursor and list (R14)"
    for message, advances in ((derived, unwritten_advances(facts)), (incomplete, completed_advances(facts))):
        for id_, advance in advances.items():
            advice = f'write "advance": {brief(advance, 200)}, or save the loadout in the designer'
            yield Hint(f"{id_}.advance", message.format(id_), advice)


@rule(REFERENCE_RULES, "loop", DIFFERENCE)
def _empty_list(facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """A loop whose entry socket has no exit, so that pi-materia ends the cast if the list is empty."""
    exits = {exit_.source: exit_.target for exit_ in loop.exits if exit_.condition == "always"}
    entered_ids = {to for id_, socket in facts.sockets.items() if id_ not in loop.members for to in socket.targets}
    for id_ in [id_ for id_ in loop.members if id_ in entered_ids and id_ not in exits] if exits else ():
        message = (
            f"pi-materia ends the cast if the list is empty when {id_!r} is entered (R16): this engine follows the exit "
            f"to {next(iter(exits.values()))}"
        )
        yield Hint(f"loops.{loop.id}.exits", message, f"let the generator never return an empty list for {id_}")


@rule(REFERENCE_RULES, "loop", DIFFERENCE)
def _stale_cursor(facts: LoadoutFacts, loop: LoopFacts) -> Iterator[Hint]:
    """A generator that can run after the cursor of its loop has moved, so that pi-materia skips the first new items."""
    source = facts.sockets.get(loop.source or "")
    if source is None or not source.is_generator:
        return
    cursor, targets = loop.cursor(source.id), facts.successors
    for other in facts.loops:
        advancing = [id_ for id_ in advances_of(facts, other) if other.cursor(id_) == cursor]
        route = next(filter(None, (shortest_route(id_, source.id, targets) for id_ in advancing)), None)
        if route:
            message = (
                f"pi-materia does not reset the cursor {cursor} when {source.id!r} creates new work items (R17): after "
                f"the route {' → '.join(route)}, it skips the first new items"
            )
            advice = f'write a separate "cursor" in the `consumes` of loop {loop.id!r}'
            if other is loop:
                advice = "use a separate generator and loop, with a separate cursor, for the new items"
            yield Hint(f"loops.{loop.id}.consumes", message, advice)
            return


@rule(REFERENCE_RULES, "socket", DIFFERENCE)
def _shared_limit(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """Two edges to the same socket that both have `maxTraversals`: pi-materia counts their traversals together."""
    limited_edges = tuple(_limited_edges(facts, socket))
    for to in dict.fromkeys(socket.targets):
        limits = {edge.index + 1: limit for edge, limit in limited_edges if edge.to == to}
        if len(limits) > 1:
            first, second = sorted(limits, key=limits.__getitem__)[:2]
            message = (
                f"pi-materia counts the traversals of edges {' and '.join(map(str, limits))} to {to!r} together (R18): "
                f"after {counted(limits[first], 'traversal')} of edge {second}, the first traversal of edge {first} "
                "fails the cast"
            )
            yield Hint(f"{socket.id}.edges", message, "write `maxTraversals` on only one of the edges")


@rule(REFERENCE_RULES, "socket", DIFFERENCE)
def _limit_after_advance(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """An edge with `maxTraversals` that is taken after an advance: pi-materia counts it across all items."""
    advance = socket_advance(derive(facts), socket) if socket.iterator else None
    for edge, limit in _limited_edges(facts, socket):
        if advance and conditions_overlap(edge.when, advance.when):
            message = (
                f"pi-materia counts the traversals of edge {edge.index + 1} to {edge.to!r} after an advance across all items "
                f"(R18): after {counted(limit, 'such traversal')}, the next one fails the cast"
            )
            path = f"{socket.id}.edges[{edge.index}].maxTraversals"
            yield Hint(path, message, "remove `maxTraversals` from the edge that is taken after an advance")


def _limited_edges(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[tuple[EdgeFacts, int]]:
    """Yield the edges of a socket that have `maxTraversals` and can be taken, each with its limit."""
    idle_paths = {hint.source for hint in never_taken(facts, socket)}
    for edge in socket.edges:
        limit = whole_number(edge.raw.get("maxTraversals"))
        if limit is not None and edge.to in facts.sockets and f"{socket.id}.edges[{edge.index}]" not in idle_paths:
            yield edge, limit


@rule(REFERENCE_RULES, "socket", DIFFERENCE)
def _required_verdict(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """A JSON utility with an edge for any output: pi-materia still requires `satisfied` in every output."""
    conditions, advance = [edge.when for edge in socket.edges], socket_advance(derive(facts), socket)
    needs_verdict = any(when in GUARDS for when in [*conditions, advance and advance.when]) and "always" in conditions
    if socket.is_utility and socket.id not in facts.text_sockets and needs_verdict:
        message = f"pi-materia fails the cast if an output of {socket.id!r} does not have `satisfied` (R7)"
        yield Hint(f"{socket.id}.edges", message, "return `satisfied` in every output of the utility")


@rule(REFERENCE_RULES, "socket", DIFFERENCE)
def _rewritten_output(facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """An assignment from `lastOutput` on a socket with JSON output: pi-materia removes white space from the output."""
    for path, _, source in socket.assignments:
        if source == "lastOutput" and socket.id not in facts.text_sockets:
            message = (
                "pi-materia removes the white space and the text around the JSON before it assigns `lastOutput` (R2): "
                'it assigns {"satisfied":true} for the output {"satisfied": true}'
            )
            yield Hint(path, message, 'assign "$", which is the parsed output in both engines')


@rule(REFERENCE_RULES, "loadout", DIFFERENCE)
def _endless_cycle(facts: LoadoutFacts) -> Iterator[Hint]:
    """A cycle without items and without `maxTraversals`: pi-materia can repeat this cycle forever."""
    unlimited = {id_: _unlimited_targets(facts, socket) for id_, socket in facts.sockets.items()}
    cycles = cycles_in(unlimited)
    for number in dict.fromkeys(cycles.values()):
        start = next(id_ for id_ in facts.sockets if cycles.get(id_) == number)
        route = shortest_route(start, start, unlimited)
        lists = [repr(id_) for id_ in dict.fromkeys(route) if facts.sockets[id_].iterator]
        condition = f"once no items are left for {' and '.join(lists)}, " if lists else ""
        message = (
            f"pi-materia does not limit this cycle (R18): {condition}the route {' → '.join(route)} can repeat forever, "
            "but this engine stops it"
        )
        advice = "write `maxTraversals` on an edge of the cycle"
        yield Hint(f"{start}.edges", message, f"{advice}, or change the target of the exit" if lists else advice)


def _unlimited_targets(facts: LoadoutFacts, socket: SocketFacts) -> list[str]:
    """Return the sockets that pi-materia can enter any number of times from a socket that has no current item."""
    if socket.iterator is None:
        return [str(e.to) for e in socket.edges if e.to in facts.sockets and "maxTraversals" not in e.raw]
    routes = [route for loop in socket.loops for route in derive(facts).loops[loop.id].routes]
    exits = [route.target for route in routes if route.source == socket.id and route.condition == "always"]
    return [target for target in exits[:1] if target in facts.sockets]


@rule(REFERENCE_RULES, "loadout", DIFFERENCE)
def _ignored_fields(facts: LoadoutFacts) -> Iterator[Hint]:
    """A field of the config, the loadout or a socket that pi-materia ignores."""
    owners = [("", facts.config), ("budget.", as_object(facts.config.get("budget"))), ("", facts.raw)]
    owners += [(f"{socket.id}.", socket.raw) for socket in facts.sockets.values()]
    for path, owner in owners:
        for ruling, field in ((ruling, field) for ruling, fields in _IGNORED_FIELDS.items() for field in fields):
            if owner.get(field) not in (None, DEFAULT_HANDOFF):
                message = f"pi-materia ignores `{field}` ({ruling})"
                yield Hint(f"{path}{field}", message, "remove the field if both engines must behave the same")


def reference_report(document: JSON, loadout: str, files: Sequence[Object]) -> Report:
    """Check whether pi-materia can run a loadout and runs it as this engine does.

    Parts that pi-materia rejects are reported as problems, and parts that it runs differently as hints.

    Args:
        document: the config.
        loadout: the name of the loadout.
        files: the contents of all config files except the bundled file, which pi-materia does not read.
    """
    findings = Findings(loadout)
    findings.add_hints(REFERENCE_RULES, loadout_facts(document, loadout).subjects)
    findings.loadout = None
    _, materia = parts_to_check(document, loadout)
    defined = {section: {name for file in files for name in as_object(file.get(section))} for section in _SHIPPED_NAMES}
    in_files = [(id_, as_object(raw)) for id_, raw in materia.items() if id_ in defined["materia"]]
    findings.add_hints(REFERENCE_RULES, {"materia": in_files})
    for section, name in (("loadouts", loadout), *(("materia", id_) for id_ in materia)):
        kind, path = section.removesuffix("s"), f"{section}.{name}"
        advice = f"save the definitions with the command `copy {loadout} --materia`"
        if name in _SHIPPED_NAMES[section].split() and name not in defined[section]:
            message = f"pi-materia uses its own {kind} {name!r} here (R74)"
            findings.hint(DIFFERENCE, path, message, f"{advice} if both engines must use the same definitions")
        elif name not in defined[section]:
            message = f"pi-materia rejects the loadout, because no file defines the {kind} {name!r} (R74)"
            findings.hint(REFUSAL, path, message, advice)
    if not any("activeLoadout" in file for file in files):
        message = "no file sets `activeLoadout`, so pi-materia casts its own default loadout, Full-Auto (R74)"
        findings.hint(DIFFERENCE, "activeLoadout", message, f'write "activeLoadout": "{loadout}"')
    refusals = tuple(replace(finding, severity="problem") for finding in findings.entries if finding.code == REFUSAL)
    return Report(refusals, tuple(finding for finding in findings.entries if finding.code != REFUSAL))
