"""The parts of a drawn graph: the state of a cast, lines, nested loop frames, labels, and sizes of cards and chips."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal

from materia_nb.display.escape import part
from materia_nb.display.geometry import text_width, wrap_text
from materia_nb.errors import counted
from materia_nb.loadout.graph import END, Advance, Edge, Graph, Loop, Route, Socket
from materia_nb.loadout.topology import reachable_from
from materia_nb.loadout.vocabulary import CONDITION_SPECS, Condition, condition_spec, match_every_output


def _empty_mapping() -> Mapping[Any, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CastOverlay:
    """The state of a cast at one moment, drawn on top of its graph; for a loadout without a cast, use :data:`NO_OVERLAY`.

    Args:
        current: id of the current socket.
        waiting: True if the current socket is waiting for an answer.
        working: True if an agent or a person is currently working on the answer.
        held: True if the agent of the current socket has put the cast on hold until the user decides.
        failed: id of the socket at which the cast failed.
        visits: number of visits so far, by socket id.
        traversals: number of traversals so far, by edge, such as ``"A->B"`` (R21).
        last_route: the route that was taken last.
        progress: number of finished work items and of all work items, by loop id.
        breakpoints: ids of the sockets that have a breakpoint.
        break_routes: the routes that have a breakpoint.
        warnings: codes of the warnings on a complete cast, by socket id (R45).
        budgets: traversals used and allowed for the edges whose traversals are currently counted, by socket id and edge
            position (R18).
        in_item: True if ``budgets`` counts only the traversals for the current work item.
        answers: short names of the agents that answer, by socket id. Processes have no entry.
        pins: pinned answers, which replace the agent, by socket id (R40).
        sides: in a comparison, A or B if only that side contains or visited the socket, or ``both`` if the socket
            itself differs; by socket id.
        route_sides: in a comparison, A or B if only that side contains or took an edge or exit; by route.
        outputs: short summaries of the last outputs, by socket id.
        rejected: ids of the sockets whose last verdict was not satisfied.
        unused_routes: the routes that no cast takes.
        unvisited: ids of the sockets that no cast visits.
        lanes: names of the lanes that are at a socket, by socket id.
        lanes_failed: names of the lanes that failed at a socket, by socket id.
    """

    current: str | None = None
    waiting: bool = False
    working: bool = False
    held: bool = False
    failed: str | None = None
    visits: Mapping[str, int] = field(default_factory=_empty_mapping)
    traversals: Mapping[str, int] = field(default_factory=_empty_mapping)
    last_route: Route | None = None
    progress: Mapping[str, tuple[int, int]] = field(default_factory=_empty_mapping)
    breakpoints: frozenset[str] = frozenset()
    break_routes: frozenset[Route] = frozenset()
    warnings: Mapping[str, tuple[str, ...]] = field(default_factory=_empty_mapping)
    budgets: Mapping[tuple[str, int], tuple[int, int]] = field(default_factory=_empty_mapping)
    in_item: bool = False
    answers: Mapping[str, str] = field(default_factory=_empty_mapping)
    pins: Mapping[str, str] = field(default_factory=_empty_mapping)
    sides: Mapping[str, str] = field(default_factory=_empty_mapping)
    route_sides: Mapping[Route, str] = field(default_factory=_empty_mapping)
    outputs: Mapping[str, str] = field(default_factory=_empty_mapping)
    rejected: frozenset[str] = frozenset()
    unused_routes: frozenset[Route] = frozenset()
    unvisited: frozenset[str] = frozenset()
    lanes: Mapping[str, tuple[str, ...]] = field(default_factory=_empty_mapping)
    lanes_failed: Mapping[str, tuple[str, ...]] = field(default_factory=_empty_mapping)


NO_OVERLAY: Final = CastOverlay()
"""The overlay for a loadout without a cast."""


# -- lines -----------------------------------------------------------------------------------

START_MARKER: Final = "\x00start"
"""Key of the start marker, which differs from every socket id."""
END_MARKER: Final = "\x00end"
"""Key of the end marker, which differs from every socket id."""


@dataclass(frozen=True)
class Link:
    """A line from ``source`` to ``target``. Each end is a socket id, :data:`START_MARKER` or :data:`END_MARKER`.

    ``order`` is the line's position in the evaluation order, or 0 if the order does not matter. ``lanes`` is ``fork``
    if the line distributes work items to lanes, and ``join`` if it continues after the lanes have joined.
    """

    key: str
    kind: Literal["start", "edge", "exit", "implied"]
    source: str
    target: str
    condition: Condition = "always"
    order: int = 0
    limit: int | None = None
    edge_index: int | None = None
    loop: str | None = None
    lanes: Literal["", "fork", "join"] = ""

    @cached_property
    def route(self) -> Route | None:
        """The route of this link in the format of :class:`CastOverlay`; None for the link from the start marker."""
        if self.kind == "edge" and self.edge_index is not None:
            return (self.source, self.edge_index)
        if self.kind == "exit":
            return (self.source, self.key)
        return (self.source, END) if self.kind == "implied" else None

    @property
    def to(self) -> str:
        """The target as it is written in a loadout: a socket id or ``end``."""
        return END if self.target == END_MARKER else self.target

    @property
    def traversal(self) -> str:
        """The key under which the traversals of this line are counted (R21)."""
        return f"{self.source}->{self.to}"


def _target_key(graph: Graph, name: str) -> str | None:
    """Return the key of a target, or None if the target does not exist."""
    if name in graph.sockets:
        return name
    return END_MARKER if name == END else None


def _are_exclusive(conditions: Sequence[Condition]) -> bool:
    """Return True if no result matches two of the conditions, so that their order does not matter."""
    specs = [condition_spec(condition) for condition in conditions]
    return not any(condition.overlaps(other) for index, condition in enumerate(specs) for other in specs[:index])


def links(graph: Graph) -> list[Link]:
    """Return all lines of ``graph`` in a stable order: the line to the entry, the edges by socket, the exits."""
    graph_links = [Link("start", "start", START_MARKER, graph.entry)] if graph.entry in graph.sockets else []
    for socket in graph.sockets.values():
        conditions = [edge.when for edge in socket.edges]
        has_order = not _are_exclusive(conditions)
        for number, edge in enumerate(socket.edges, 1):
            target = _target_key(graph, edge.to)
            if target is not None:
                key = f"edge:{edge.index}:{socket.id}"
                order = number if has_order else 0
                graph_links.append(
                    Link(key, "edge", socket.id, target, edge.when, order, edge.max_traversals, edge.index)
                )
        if not socket.edges:
            graph_links.append(Link(f"implied:{socket.id}", "implied", socket.id, END_MARKER))
    for loop in graph.loops.values():
        for route in loop.routes:
            target = _target_key(graph, route.target)
            if target is not None and route.source in graph.sockets:
                graph_links.append(Link(route.edge_id, "exit", route.source, target, route.condition, loop=loop.id))
    return _with_unique_keys([replace(link, lanes=_fork_or_join(graph, link)) for link in graph_links])


def _fork_or_join(graph: Graph, link: Link) -> Literal["", "fork", "join"]:
    for region in graph.regions.values():
        if link.kind == "edge" and (link.source, link.target) == (region.generator, region.first):
            return "fork"
        if link.loop == region.loop and link.to == region.exit:
            return "join"
    return ""


def _with_unique_keys(graph_links: list[Link]) -> list[Link]:
    """Append a number to repeated keys, because different exits can have the same loop id and route id."""
    counts: dict[str, int] = {}
    unique = []
    for link in graph_links:
        counts[link.key] = number = counts.get(link.key, 0) + 1
        unique.append(link if number == 1 else replace(link, key=f"{link.key}\x00{number}"))
    return unique


def _may_fall_through(socket: Socket) -> bool:
    """Return True if the edges of a socket do not match every verdict, so that the cast may end there (R3)."""
    conditions = {edge.when for edge in socket.edges}
    return bool(conditions) and not match_every_output(conditions, text=socket.parse != "json")


# -- frames ----------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class LoopFrame:
    """The frame of a loop and its direct members in order. The root frame has no loop and encloses the graph."""

    loop: str | None
    sockets: list[str] = field(default_factory=list)
    children: list[LoopFrame] = field(default_factory=list)


def nested_frames(
    graph: Graph, excluded: frozenset[str]
) -> tuple[LoopFrame, dict[str, tuple[LoopFrame, ...]], list[str]]:
    """Assign each socket to its innermost loop frame.

    Returns the root frame, the frames around each socket from the outermost to the innermost, and the ids of loops that
    partly overlap others and therefore get no frame.
    """
    members = {loop.id: frozenset(loop.sockets) & graph.sockets.keys() - excluded for loop in graph.loops.values()}
    by_size = sorted((loop for loop in members if members[loop]), key=lambda loop: -len(members[loop]))
    root = LoopFrame(None)
    frame_of: dict[str, LoopFrame] = {}
    frames_around: dict[str, tuple[LoopFrame, ...]] = dict.fromkeys(graph.sockets, (root,))
    overlapping_loops: list[str] = []
    for loop in by_size:
        frame_paths = {frames_around[socket] for socket in members[loop]}
        if len(frame_paths) > 1:
            overlapping_loops.append(loop)
            continue
        frames = frame_paths.pop()
        frame = frame_of[loop] = LoopFrame(loop)
        frames[-1].children.append(frame)
        for socket in members[loop]:
            frames_around[socket] = (*frames, frame)
    for socket in graph.sockets:
        if socket not in excluded:
            frames_around[socket][-1].sockets.append(socket)
    return root, frames_around, overlapping_loops


# -- labels ----------------------------------------------------------------------------------
# Untrusted text in labels is shortened and has no control characters, but it is not yet escaped for HTML.

TIMES_SIGN: Final = "\N{MULTIPLICATION SIGN}"
NEVER: Final = "never taken"


def socket_kinds(socket: Socket) -> tuple[str, ...]:
    """Return the kinds of a socket: ``agent`` or ``utility``, ``generator``, ``multi-turn`` and ``loop consumer``."""
    kinds: list[str] = [socket.materia.kind]
    if socket.is_generator:
        kinds.append("generator")
    if socket.materia.multi_turn:
        kinds.append("multi-turn")
    if socket.loops:
        kinds.append("loop consumer")
    return tuple(kinds)


def pinned_label(text: str) -> str:
    """Return the label of a pinned answer (R40)."""
    return f"pinned: {part(text, 80)}"


def answerer_label(socket_id: str, marks: CastOverlay) -> str:
    """Return the name of a socket's agent, or its pinned answer (R40), or "" if a process answers."""
    if (pinned_answer := marks.pins.get(socket_id)) is not None:
        return pinned_label(pinned_answer)
    return part(marks.answers.get(socket_id, ""), 80)


def answered_by(socket_id: str, marks: CastOverlay) -> str:
    """Return a phrase for the end of a sentence, such as ``answered by person``, or "" if a process answers."""
    answerer = answerer_label(socket_id, marks)
    return f"answered by {answerer}" if answerer and socket_id not in marks.pins else answerer


def kind_and_answerer(socket: Socket, marks: CastOverlay) -> str:
    """Return the kind of a socket and its agent, such as ``agent · person``."""
    answerer = answerer_label(socket.id, marks)
    return f"{socket.materia.kind} · {answerer}" if answerer else socket.materia.kind


def short_number(number: int) -> str:
    """Abbreviate a number, such as 12, 12k or 3M."""
    if number >= 1_000_000:
        return f"{number // 1_000_000}M"
    return f"{number // 1_000}k" if number >= 10_000 else str(number)


def advance_label(advance: Advance, *, short: bool = False) -> str:
    """Describe an advance, with a note if it was derived (R15). With ``short``, the text fits on a card."""
    condition = condition_spec(advance.when)
    when = "" if condition.matches_any_output else f" {condition.short}" if short else f" when {advance.when}"
    return f"advance ▸ {part(advance.cursor)}{when}{' (derived)' if advance.derived else ''}"


def socket_notes(socket: Socket, *, short: bool = False) -> tuple[str, ...]:
    """Return notes about a socket: its iterator, its advance, and whether the cast ends if no edge matches.

    With ``short``, the notes are short enough for a card.
    """
    notes = []
    if socket.iterator is not None and socket.iterator.loop is None:
        notes.append(f"for each {part(socket.iterator.items)} as {part(socket.iterator.alias)}")
    if socket.advance is not None:
        notes.append(advance_label(socket.advance, short=short))
    if _may_fall_through(socket):
        notes.append("no match ▸ end")
    return tuple(notes)


def _lanes_label(graph: Graph, loop: Loop) -> str:
    """Return the number of lanes of a loop that run in parallel, or "" if the loop is not parallel."""
    lane_count = next((region.max_concurrency for region in graph.regions.values() if region.loop == loop.id), None)
    return "" if lane_count is None else f"in lanes, {lane_count} at once"


def loop_label(graph: Graph, loop: Loop, progress: tuple[int, int] | None = None) -> str:
    """Describe the list, the progress and the lanes of a loop."""
    parts = [lanes] if (lanes := _lanes_label(graph, loop)) else []
    if loop.generator is not None:
        parts.append(f"consumes {part(loop.output or 'workItems')} of {part(graph.names[loop.generator], 130)}")
    elif loop.iterator is not None:
        parts.append(f"for each {part(loop.iterator.items)} as {part(loop.iterator.alias)}")
    if progress is not None:
        parts.append(f"{progress[0]}/{progress[1]} done")
    return " · ".join(parts) or "no list"


def _limit_label(limit: int, used: tuple[int, int] | None = None, *, item: bool = False) -> str:
    """Return the limit of an edge, such as ``max 3``, or the traversals used so far, such as ``used 1 of 3`` (R18)."""
    if used is None:
        return f"max {limit}"
    return f"{'this item: ' if item else 'used '}{used[0]} of {used[1]}"


def link_label(link: Link, marks: CastOverlay = NO_OVERLAY, *, short: bool = False) -> str:
    """Return the label of a line: its order, condition and limit. A single unconditional edge has no label.

    With ``short``, the label is short enough for the chip on the line.
    """
    if link.kind in ("start", "implied"):
        return ""
    condition = condition_spec(link.condition)
    sign = condition.short if short else condition.sign
    parts: list[str] = [link.lanes] if link.lanes else []
    if link.kind == "exit":
        parts.append(f"exit {sign}")
    elif link.order or link.condition != "always" or link.limit is not None:
        parts.append((f"{link.order} " if link.order else "") + sign)
    if link.limit is not None and link.edge_index is not None:
        used = marks.budgets.get((link.source, link.edge_index))
        parts.append(f"{used[0]}/{used[1]}" if short and used else _limit_label(link.limit, used, item=marks.in_item))
    if link.route in marks.unused_routes:
        parts.append(NEVER)
    return (" " if short else " · ").join(parts)


def line_legend() -> str:
    """Return the legend of line styles, such as ``solid line: always or ✓ satisfied · dotted: ✗ not_satisfied``."""
    signs_by_pattern: dict[str, list[str]] = {}
    for condition in CONDITION_SPECS.values():
        pattern = "solid line" if condition.dashes is None else "dotted" if condition.dashes[0] <= 2 else "dashed"
        signs_by_pattern.setdefault(pattern, []).append(condition.sign)
    return " · ".join(f"{pattern}: {' or '.join(signs)}" for pattern, signs in signs_by_pattern.items())


def edge_label(edge: Edge, used: tuple[int, int] | None = None, *, item: bool = False) -> str:
    """Return the condition, the target and the limit of an edge as text."""
    max_traversals = edge.max_traversals
    limit = f" ({_limit_label(max_traversals, used, item=item)})" if max_traversals is not None else ""
    return f"{condition_spec(edge.when).sign} → {part(edge.to)}{limit}"


def _warning_label(socket_id: str, marks: CastOverlay) -> str:
    if failed_lanes := marks.lanes_failed.get(socket_id):
        return f"{counted(len(failed_lanes), 'lane')} failed"
    return ", ".join(marks.warnings.get(socket_id, ()))


def state_label(socket_id: str, marks: CastOverlay) -> str:
    """Describe the state of the cast at a socket, or return "" if there is nothing to report."""
    if socket_id == marks.failed:
        return "✖ failed"
    if warning := _warning_label(socket_id, marks):
        return f"⚠ {warning}"
    if socket_id in marks.lanes:
        return f"▶ {part(', '.join(marks.lanes[socket_id]), 60)}"
    if socket_id == marks.current:
        return "‖ held" if marks.held else "▶ waiting" if marks.waiting else "▶ current"
    if socket_id in marks.sides:
        side = marks.sides[socket_id]
        return "differs" if side == "both" else f"only {side}"
    return "never visited" if socket_id in marks.unvisited else ""


def reachable_keys(entry: str, graph_links: Iterable[Link]) -> set[str]:
    """Return the keys that can be reached from ``entry`` along edges and exits."""
    targets_by_source: dict[str, list[str]] = {}
    for link in graph_links:
        targets_by_source.setdefault(link.source, []).append(link.target)
    return reachable_from([entry], targets_by_source)


def graph_summary(graph: Graph, marks: CastOverlay = NO_OVERLAY) -> str:
    """Summarize a loadout in one line: its name, its entry, and the numbers of sockets and loops."""
    sockets, loops = len(graph.sockets), len(graph.loops)
    text = f"loadout {part(graph.name, 120)} · entry {part(graph.entry)} · {counted(sockets, 'socket')}"
    text += f" · {counted(loops, 'loop')}" if loops else ""
    return text + (" · complete, with warnings" if marks.warnings else "")


TITLE_SIZE: Final = 13.0
SMALL_SIZE: Final = 11.0
"""Font size of secondary text on cards that show more than the name, in pixels."""
_MIN_FONT_SIZE: Final = 9.0  # Minimum readable font size on the screen, in pixels.
LINE_HEIGHT: Final = 16.0
ICON_SIZE: Final = 16.0
PADDING: Final = 10.0
"""Padding at the left and right sides of a card, in pixels."""
_CARD_SIZES: Final = {1: (144.0, 32.0), 2: (192.0, 44.0), 3: (192.0, 84.0)}


def card_size(level: int) -> tuple[float, float]:
    """Return the width and height of a card. The level of detail determines the lines that the card shows."""
    return _CARD_SIZES[level]


def small_size(level: int) -> float:
    """Return the font size of secondary text; on cards that show only the name, this is the title size."""
    return TITLE_SIZE if level == 1 else SMALL_SIZE


def min_zoom(level: int) -> float:
    """Return the smallest zoom at which text is readable at this level of detail."""
    return _MIN_FONT_SIZE / small_size(level)


def socket_name(socket: Socket) -> str:
    """Return the name on a socket's card: the label of the socket's materia."""
    return part(socket.materia.label, 80) or part(socket.id)


def card_lines(socket: Socket, marks: CastOverlay, max_width: float) -> tuple[str, ...]:
    """Return up to two lines for a card: the last output of the socket or, before the first output, its purpose."""
    text = marks.outputs.get(socket.id, "")
    if not text:
        description = socket.materia.raw.get("description")
        purpose = description if isinstance(description, str) else " ".join(socket.materia.prompt.split()[:24])
        text = " · ".join([*([purpose] if purpose else []), *socket_notes(socket, short=True)])
    return wrap_text(part(text, 200), SMALL_SIZE, max_width, 2)


_FUNCTION_PREFIX: Final = "the function "


def answerer_badge(socket: Socket, marks: CastOverlay) -> str:
    """Return the badge text of a card: a very short name of the socket's agent, ``pinned``, or ""."""
    if socket.id in marks.pins:
        return "pinned"
    answerer = part(marks.answers.get(socket.id, ""), 60)
    if not answerer:
        return part(socket.materia.command[0].rsplit("/", 1)[-1], 40) if socket.materia.command else ""
    if answerer.partition(" ")[0] == "person":
        return "you"
    if answerer == "a function":
        return "f()"
    if answerer.startswith(_FUNCTION_PREFIX):
        return f"{answerer.removeprefix(_FUNCTION_PREFIX)}()"
    provider, colon, model = answerer.partition(":")
    return model.rsplit("/", 1)[-1].strip() if colon and provider.isidentifier() and model.strip() else answerer


def icon_name(socket: Socket, marks: CastOverlay) -> str:
    """Return the name of a card's icon. The icon depends on the kind of the socket and of its agent."""
    if socket.is_generator:
        return "generator"
    if socket.materia.kind == "utility":
        return "utility"
    answerer = marks.answers.get(socket.id, "")
    if answerer.partition(" ")[0] == "person":
        return "person"
    return "function" if answerer.startswith((_FUNCTION_PREFIX, "a function")) else "model"


def chip_label(links: Sequence[Link], marks: CastOverlay, *, stub: bool) -> str:
    """Return the text of a line's chip: condition, limit and, in a comparison, the only side that has the line.

    Args:
        links: the link of the line, followed by the exits that share the line.
        marks: the state of a cast.
        stub: True if the line ends at its chip, which then names the target.
    """
    first = links[0]
    if stub:
        label = f"{link_label(first, short=True)} ▸ {part(first.to, 40)}".lstrip()
    elif len(links) > 1:
        label = " ".join([first.lanes, "exit", *(condition_spec(link.condition).short for link in links)]).lstrip()
    else:
        label = link_label(first, marks, short=True)
    only_side = next((side for link in links if link.route and (side := marks.route_sides.get(link.route))), "")
    return " · ".join(filter(None, (label, only_side)))


def label_size(links: Sequence[Link], level: int, *, stub: bool) -> tuple[float, float]:
    """Return the space to reserve for a line's chip, or (0, 0) if the line has no chip.

    The size does not depend on the state of a cast.
    """
    label = chip_label(links, NO_OVERLAY, stub=stub)
    if not label:
        return (0.0, 0.0)
    if (limit := links[0].limit) is not None:  # During a cast, the chip shows the traversals.
        label = max(label, label.replace(f"max {limit}", f"{limit}/{limit}"), key=len)
    size = small_size(level)
    return (text_width(label, size) + 14, size + 8)


def loop_title(graph: Graph, loop: Loop) -> str:
    """Return the heading of a loop: its list and generator, or else its id, and the number of its lanes."""
    title = part(loop.output or "items") if loop.generator is not None else part(loop.id)
    if loop.generator is not None and loop.generator in graph.sockets:
        title = f"{'items' if title == 'workItems' else title} of {socket_name(graph.sockets[loop.generator])}"
    lanes = _lanes_label(graph, loop)
    return f"{title} · {lanes}" if lanes else title


PROGRESS_ROOM: Final = 92.0
"""Width reserved for the progress in the heading of a loop, in pixels."""


def title_size(graph: Graph, loop: Loop, max_width: float, level: int) -> tuple[float, float]:
    """Return the size of a loop's heading without its progress. The width is at most ``max_width``."""
    return (min(text_width(loop_title(graph, loop), small_size(level)) + ICON_SIZE + 8, max_width), ICON_SIZE)
