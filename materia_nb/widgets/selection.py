"""Selections in a graph or a design: the selectable parts, their names in lists, and their descriptions.

A part of a design is a :data:`Selection` whose key contains its position in the document: ``edge:<place>:<socket>`` or
``exit:<place>:<loop>``. The key of the legacy field ``exit`` is ``exit:old:<loop>``. A description consists of blocks
(:mod:`materia_nb.display.blocks`) with the definition of the part, its current state and its last use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from materia_nb.cast.formatting import describe_outcome
from materia_nb.cast.views.status import overlay_of
from materia_nb.display.blocks import Block, Code, FactTable, Fold, Heading, Line, Table, lines
from materia_nb.display.escape import part
from materia_nb.display.graph_parts import (
    NO_OVERLAY,
    CastOverlay,
    Link,
    advance_label,
    answerer_label,
    link_label,
    links,
    loop_label,
    socket_kinds,
    state_label,
)
from materia_nb.engine.rules import Rules
from materia_nb.errors import counted
from materia_nb.insight.why import EDGE_COLUMNS
from materia_nb.jsonvalue import JSON, Object, as_list, as_object, is_object, is_text
from materia_nb.loadout.graph import Graph, Loop, Socket
from materia_nb.loadout.report import brief
from materia_nb.loadout.vocabulary import condition_spec, is_condition

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.routing import Decision
    from materia_nb.engine.session import StepRecord


Kind: TypeAlias = Literal["socket", "edge", "exit", "loop"]

Selection: TypeAlias = tuple[Kind, str]
"""Kind and key of the selected part; the key is the id of a socket or loop, or the key of an edge or exit.

The key of an edge is ``edge:<place>:<socket>``; the key of an implied line to the end is ``implied:<socket>``.
"""

_LIST_INDENT: Final = "\N{NO-BREAK SPACE}" * 4


def selection_of(link: Link) -> Selection | None:
    """Return the selection for a line, or None for the line from the start marker, which cannot be selected."""
    if link.kind == "start":
        return None
    return ("exit" if link.kind == "exit" else "edge", link.key)


def link_title(link: Link, names: Mapping[str, str]) -> str:
    """Return the condition and target of a line, but not its source."""
    label = "no edges" if link.kind == "implied" else link_label(link) or link.condition
    return f"{label} → {part(names.get(link.to, link.to))}"


def selectable_parts(graph: Graph) -> list[tuple[str, Selection]]:
    """Return all selectable parts with unique names: sockets with their outgoing lines, and loops."""
    links_by_source: dict[str, list[Link]] = {}
    for link in links(graph):
        links_by_source.setdefault(link.source, []).append(link)
    title_counts = Counter(
        link_title(link, graph.names) for socket_links in links_by_source.values() for link in socket_links
    )
    named_parts: list[tuple[str, Selection]] = []
    for socket in graph.sockets.values():
        entry = " · entry" if socket.id == graph.entry else ""
        title = f"{_socket_title(graph.names, socket.id, ', '.join(socket_kinds(socket)))}{entry}"
        named_parts.append((title, ("socket", socket.id)))
        for link in links_by_source.get(socket.id, ()):
            selection, title = selection_of(link), link_title(link, graph.names)
            if selection is not None:
                source = f" (from {part(graph.names[socket.id])})" if title_counts[title] > 1 else ""
                named_parts.append((f"{_LIST_INDENT}{title}{source}", selection))
    named_parts += [(f"loop {part(loop)}", ("loop", loop)) for loop in graph.loops]
    return make_unique(named_parts)


def _socket_title(names: Mapping[str, str], id_: str, description: str) -> str:
    """Return the name of a socket with its description, and its id unless the name contains the id."""
    name = names.get(id_, id_)
    return " · ".join([part(name), description, *([] if id_ in name else [part(id_)])])


def make_unique(named: list[tuple[str, Selection]]) -> list[tuple[str, Selection]]:
    """Append a number to repeated names, because lists identify their entries by name."""
    counts: Counter[str] = Counter()
    unique = []
    for title, selection in named:
        counts[title] += 1
        unique.append((title if counts[title] == 1 else f"{title}{_LIST_INDENT}({counts[title]})", selection))
    return unique


LEGACY: Final = "old"


def edge_selection(kind: Kind, owner: str, index: int | str) -> Selection:
    """Return the selection for an edge of a socket or an exit of a loop."""
    return kind, f"{kind}:{index}:{owner}"


def owner_of(pick: Selection) -> tuple[str, int | None]:
    """Return the socket of an edge or the loop of an exit, and the index of the edge or exit.

    The index of the legacy field ``exit`` is None. For a socket or loop, return its own id and None.
    """
    if pick[0] in ("socket", "loop"):
        return pick[1], None
    _, index, owner = pick[1].split(":", 2)
    return owner, None if index == LEGACY else int(index)


END_FIELDS: Final[dict[Kind, tuple[str, str]]] = {"edge": ("when", "to"), "exit": ("condition", "targetSocketId")}
"""Names of the fields with the condition and the target, for edges and for exits."""


def raw_part(document: Object, kind: Kind, id_: str) -> Object:
    """Return the JSON object of a socket or loop in the loadout, or an empty object if it is missing or malformed."""
    return as_object(as_object(document.get(f"{kind}s")).get(id_))


def edges_of(document: Object, kind: Kind, owner: str) -> list[JSON]:
    """Return the edges of a socket, or the exits of a loop, as written in the loadout."""
    if kind == "edge":
        return as_list(raw_part(document, "socket", owner).get("edges"))
    return as_list(raw_part(document, "loop", owner).get("exits"))


def members_of(document: Object, loop: str) -> list[str]:
    """Return the ids of the sockets in a loop; values that are not strings are omitted."""
    return [member for member in as_list(raw_part(document, "loop", loop).get("sockets")) if isinstance(member, str)]


def parts(document: Object, graph: Graph) -> list[tuple[str, Selection]]:
    """Return all parts of a design with unique names: sockets with their edges, and loops with their exits."""
    named: list[tuple[str, Selection]] = []
    names = graph.names
    for id_, raw in as_object(document.get("sockets")).items():
        socket = graph.sockets.get(id_)
        description = ", ".join(socket_kinds(socket)) if socket else part(brief(raw))
        entry = " · entry" if id_ == graph.entry else ""
        named.append((f"{_socket_title(names, id_, description)}{entry}", ("socket", id_)))
        for index, edge in enumerate(edges_of(document, "edge", id_)):
            ends = _endpoints_text(edge, "edge", names)
            title = f"{_LIST_INDENT}{index + 1} {ends} (from {part(names.get(id_, id_))})"
            named.append((title, edge_selection("edge", id_, index)))
    for id_, raw in as_object(document.get("loops")).items():
        named.append((f"loop {part(id_)}", ("loop", id_)))
        for index, route in enumerate(edges_of(document, "exit", id_)):
            source = str(as_object(route).get("from", "?"))
            ends = _endpoints_text(route, "exit", names)
            title = f"{_LIST_INDENT}exit {ends} (from {part(names.get(source, source))}, loop {part(id_)})"
            named.append((title, edge_selection("exit", id_, index)))
        if is_object(as_object(raw).get("exit")):
            named.append((f"{_LIST_INDENT}legacy exit field (loop {part(id_)})", edge_selection("exit", id_, LEGACY)))
    return make_unique(named)


def drawn_parts(document: Object, graph: Graph) -> dict[Selection, Selection]:
    """Return the part of the design that each selectable element of the graph represents."""
    drawn: dict[Selection, Selection] = {("socket", id_): ("socket", id_) for id_ in graph.sockets}
    drawn |= {("loop", id_): ("loop", id_) for id_ in graph.loops}
    routes = [(loop.id, route) for loop in graph.loops.values() for route in loop.routes]
    exits = [link for link in links(graph) if link.kind == "exit"]
    for link in links(graph):
        if link.kind == "edge" and link.edge_index is not None:
            drawn["edge", link.key] = edge_selection("edge", link.source, link.edge_index)
        elif link.kind == "implied":
            drawn["edge", link.key] = ("socket", link.source)
    matched_keys: set[tuple[str, int]] = set()
    for link, (loop, route) in zip(exits, routes, strict=False):
        if route.derived:
            drawn["exit", link.key] = edge_selection("exit", loop, LEGACY)
            continue
        route_key = (route.source, route.condition, route.target)
        for index, raw in enumerate(edges_of(document, "exit", loop)):
            if _route_key(raw) == route_key and (loop, index) not in matched_keys:
                matched_keys.add((loop, index))
                drawn["exit", link.key] = edge_selection("exit", loop, index)
                break
    return drawn


def _route_key(route: JSON) -> tuple[JSON, JSON, JSON]:
    raw = as_object(route)
    return raw.get("from"), raw.get("condition"), raw.get("targetSocketId")


def _endpoints_text(raw: JSON, kind: Kind, names: Mapping[str, str]) -> str:
    if not is_object(raw):
        return part(brief(raw))
    condition, target = (str(raw[name]) if is_text(raw.get(name)) else "?" for name in END_FIELDS[kind])
    words = condition_spec(condition).choice if is_condition(condition) else part(condition)
    return f"{words} → {part(names.get(target, target))}"


_MAX_HANDOFFS: Final = 3  # Maximum number of handoffs shown for a socket, latest first.


class Inspector:
    """Describes the parts of a graph, and their state in a cast if there is one.

    Args:
        graph: the graph that contains the parts.
        cast: the cast that runs the graph, or None.
    """

    def __init__(self, graph: Graph, cast: Snapshot | None = None) -> None:
        self.graph, self.cast, self.names = graph, cast, graph.names
        self.rules = cast.rules if cast is not None else Rules(graph)
        self._links = {link.key: link for link in links(graph)}

    def has(self, kind: str, key: str) -> bool:
        """Return True if the graph has a part with this kind and key."""
        if kind in ("socket", "loop"):
            return key in (self.graph.sockets if kind == "socket" else self.graph.loops)
        return key in self._links and selection_of(self._links[key]) == (kind, key)

    def about(self, kind: str, key: str) -> list[Block]:
        """Return the definition and the current state of a part."""
        if kind == "socket":
            return self._socket_blocks(self.graph.sockets[key])
        if kind == "loop":
            return self._loop_blocks(self.graph.loops[key])
        return self._line_blocks(self._links[key])

    def definition(self, kind: str, key: str) -> JSON:
        """Return a socket with its materia, or a loop, as written in the loadout; None for an edge or exit."""
        document = as_object(as_object(self.graph.document.get("loadouts")).get(self.graph.name))
        if kind == "socket":
            materia = dict(self.graph.sockets[key].materia.raw)
            return {"socket": dict(raw_part(document, "socket", key)), "materia": materia}
        return dict(raw_part(document, "loop", key)) if kind == "loop" else None

    # -- a socket ---------------------------------------------------------------------

    def _socket_blocks(self, socket: Socket) -> list[Block]:
        key, cast, marks = socket.id, self.cast, self._marks()
        stops = cast.breakpoints if cast is not None else ()
        iterator, advance = socket.iterator, socket.advance
        rows = [
            ("materia", f"{socket.materia.label} ({socket.materia.id})"),
            ("kind", ", ".join(socket_kinds(socket))),
            ("answered by", answerer_label(key, marks) or ("a process" if socket.is_utility else "")),
            ("group", socket.materia.group or ""),
            ("now", state_label(key, marks)),
            ("visits", str(marks.visits.get(key, 0)) if cast is not None else ""),
            ("breakpoint", "; ".join(stop.words(self.graph) for stop in stops if stop.socket == key)),
            ("output", socket.parse + (" (derived)" if socket.parse_derived else "")),
            ("protocol", "" if socket.is_utility else socket.handoff),
            ("item", f"{iterator.items} at the cursor {iterator.cursor}" if iterator is not None else ""),
            ("advance", advance_label(advance) if advance is not None else ""),
            ("loops", ", ".join(socket.loops)),
        ]
        edges = [
            (
                link_title(link, self.names),
                self._uses_text(link, marks),
                str(self._times_taken(link)) if cast is not None else "",
            )
            for link in self._links.values()
            if link.source == key
        ]
        return [
            FactTable([row for row in rows if row[1]]),
            Heading("Edges, in order"),
            Table(("edge", "used now", "taken"), edges),
            Heading("Required output"),
            self._answer_format_block(socket),
            *_command_blocks(socket),
        ]

    def _answer_format_block(self, socket: Socket) -> Block:
        socket_rules = self.rules.sockets[socket.id]
        if socket_rules.required_fields:
            return Table(("field", "requirement"), list(socket_rules.required_fields.items()))
        if socket.parse == "text":
            return Line("Any text is accepted.")
        if "fields" in socket_rules.protocol.overridden:
            return Line("A JSON object; no field is required.")
        return Line(f"The fields of the protocol {socket.handoff}, listed in the prompt.")

    # -- an edge or an exit -------------------------------------------------------------

    def _line_blocks(self, link: Link) -> list[Block]:
        when = {
            "exit": f"the list is exhausted, and {link.condition}",
            "implied": "always: a socket without edges ends the cast successfully",
        }.get(link.kind, f"{link.condition}{f', checked in position {link.order}' if link.order else ''}")
        rows = [
            ("from", self.names[link.source]),
            ("to", self.names.get(link.target, "the end")),
            ("loop", link.loop or ""),
            ("when", when),
            ("may be taken", self._limit_text(link) if link.kind == "edge" else ""),
            ("taken", f"{counted(self._times_taken(link), 'time')} in total" if self.cast is not None else ""),
        ]
        return [FactTable([row for row in rows if row[1]]), *self._last_decision_blocks(link)]

    def _times_taken(self, link: Link) -> int:
        """Return how many times the cast has taken a line, based on the decisions of all steps."""
        return sum(_decision_took_link(decision, link) for _, decision in self._decisions_on_link(link))

    def _decisions_on_link(self, link: Link) -> list[tuple[StepRecord, Decision]]:
        """Return the steps of the socket at which a line starts, each with its routing decision."""
        steps = self.cast.steps if self.cast is not None else ()
        return [(step, step.decision) for step in steps if step.socket == link.source and step.decision is not None]

    def _uses_text(self, link: Link, marks: CastOverlay) -> str:
        """Return the number of traversals of an edge and its limit, such as ``2 of 3``.

        In a loop, only the traversals for the current item are counted.
        """
        used = marks.budgets.get((link.source, -1 if link.edge_index is None else link.edge_index))
        return "" if used is None else f"{'this item: ' if marks.in_item else ''}{used[0]} of {used[1]}"

    def _limit_text(self, link: Link) -> str:
        marks = self._marks()
        used = marks.budgets.get((link.source, -1 if link.edge_index is None else link.edge_index))
        if used is not None:
            return f"{used[1]} times{' for the current item' if marks.in_item else ''}; used {used[0]}"
        if link.limit is not None:
            inside = self.graph.sockets[link.source].iterator is not None
            return f"{link.limit} times{' for each item' if inside else ''} (maxTraversals)"
        limits = self.graph.limits
        return (
            f"at most {limits.max_edge_traversals} times outside items; inside an item, at most "
            f"{limits.max_no_advance_cycles} cycles without an advance (maxNoAdvanceCycles)"
        )

    def _last_decision_blocks(self, link: Link) -> list[Block]:
        """Return blocks that explain whether the last decision at the start of a line chose the line, and why."""
        if self.cast is None:
            return []
        link_decisions = self._decisions_on_link(link)
        if not link_decisions:
            return [Heading("Last time"), Line("No step has left this socket yet.", "quiet")]
        step, decision = link_decisions[-1]
        why, was_taken = self.cast.why(step.number), _decision_took_link(decision, link)
        name = link.key if link.edge_index is None else f"edge {link.edge_index + 1}"
        rows = [row for row in why.rows if row[0] == name]
        reason, noun = "" if rows else ", because it was not checked", "exit" if link.kind == "exit" else "edge"
        return [
            Heading(f"Last time: {step_title(step)}"),
            Line(f"This {noun} was taken.", "good") if was_taken else Line(f"This {noun} was not taken{reason}."),
            *([Table(EDGE_COLUMNS, rows)] if rows else ()),
            *lines(why.lines),
        ]

    # -- a loop ------------------------------------------------------------------------

    def _loop_blocks(self, loop: Loop) -> list[Block]:
        progress = self.cast.loop_progress.get(loop.id) if self.cast is not None else None
        rows = [
            ("source", loop_label(self.graph, loop, progress)),
            ("sockets", ", ".join(self.names[id_] for id_ in loop.sockets)),
        ]
        if loop.iterator is not None:
            rows += [("list", loop.iterator.items), ("cursor", loop.iterator.cursor)]
        exits = [
            link_title(link, self.names)
            for link in self._links.values()
            if link.kind == "exit" and link.loop == loop.id
        ]
        return [FactTable(rows), Heading("Exits, when the list is exhausted"), *lines(exits or ["none: the cast ends"])]

    def _marks(self) -> CastOverlay:
        return overlay_of(self.cast) if self.cast is not None else NO_OVERLAY


def step_title(step: StepRecord) -> str:
    """Return the number of a step, its visit, and the title of its work item, such as ``step 4 · visit 1 · Bern``."""
    item = f" · {part(step.item_label or step.item_key, 40)}" if step.item_key else ""
    return f"step {step.number} · visit {step.visit}{item}"


def last_handoffs(cast: Snapshot, socket: str) -> list[Block]:
    """Return the last handoffs of a socket, latest first."""
    steps = [step for step in cast.steps if step.socket == socket and step.turns]
    if not steps:
        return [Heading("Last handoffs"), Line("This socket has not answered yet.", "quiet")]
    latest_steps = reversed(steps[-_MAX_HANDOFFS:])
    outputs = [Code(step.shown or "", 2_000, f"{step_title(step)} → {describe_outcome(step)}") for step in latest_steps]
    return [Heading("Last handoffs"), *outputs]


def _command_blocks(socket: Socket) -> list[Block]:
    """Return the command of a utility with one argument per row, because shell quoting is hard to read."""
    command = socket.materia.raw.get("command")
    if not isinstance(command, list):
        return []
    rows = [(str(index), str(argument)) for index, argument in enumerate(command)]
    return [Fold(f"command: {part(' '.join(map(str, command)), 80)}", [Table(("", "argument"), rows)])]


def _decision_took_link(decision: Decision, link: Link) -> bool:
    if link.kind == "implied":
        return decision.by == "implied end"
    chosen = decision.chosen
    if chosen is None:
        return False
    if link.kind == "exit":
        return chosen.route == link.key
    return (chosen.kind, chosen.edge_index) == ("edge", link.edge_index)
