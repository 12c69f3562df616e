"""What is drawn of a graph: the marks of a cast on it, its lines, its regions, the words for each, and the card of each socket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal

from materia_nb.display.escape import part
from materia_nb.display.geometry import text_width, wrap_text
from materia_nb.errors import counted
from materia_nb.loadout.graph import END, Advance, Edge, Graph, Loop, Route, Socket
from materia_nb.loadout.topology import reachable_from
from materia_nb.loadout.vocabulary import DESCRIBED, Condition, covered, described


def _nothing() -> Mapping[Any, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Marks:
    """An overlay for one moment of a cast; see :data:`NO_MARKS` for a bare loadout.

    Args:
        current: id of the socket that the cast is at.
        waiting: whether it waits there for an answer.
        working: whether somebody is at work on that answer now, as far as whoever draws it knows.
        held: whether its agent holds the cast there until a person has spoken.
        failed: id of the socket at which the cast failed.
        visits: visits so far by socket id.
        traversals: traversals so far by ``"A->B"`` (R21).
        last_route: the route taken last.
        progress: items done and in all, by loop id.
        breakpoints: ids of sockets with a breakpoint.
        break_routes: the routes with a breakpoint.
        warnings: codes of the warnings on a complete cast by socket id (R45).
        budgets: traversals used and allowed, by (socket id, place), of the edges that are counted now (R18).
        in_item: whether these are counted for the current item.
        answers: who answers, in a word or two, by socket id; a process needs no word.
        pins: what sockets are pinned to, by socket id (R40); goes before ``answers``.
        only: of two that are compared the one, A or B, that alone has or visited a socket, by socket id; ``both``
            where the socket itself differs.
        only_routes: the same of edges and exits.
        outputs: what came of each socket last, in a few words, by socket id.
        sent_back: ids of sockets whose last verdict was not satisfied.
        never: the routes that no cast takes.
        unreached: ids of sockets that no cast visits.
        lanes: the names of the lanes that stand at a socket, by socket id.
        lanes_failed: the names of the lanes that failed at a socket, by socket id.
    """

    current: str | None = None
    waiting: bool = False
    working: bool = False
    held: bool = False
    failed: str | None = None
    visits: Mapping[str, int] = field(default_factory=_nothing)
    traversals: Mapping[str, int] = field(default_factory=_nothing)
    last_route: Route | None = None
    progress: Mapping[str, tuple[int, int]] = field(default_factory=_nothing)
    breakpoints: frozenset[str] = frozenset()
    break_routes: frozenset[Route] = frozenset()
    warnings: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    budgets: Mapping[tuple[str, int], tuple[int, int]] = field(default_factory=_nothing)
    in_item: bool = False
    answers: Mapping[str, str] = field(default_factory=_nothing)
    pins: Mapping[str, str] = field(default_factory=_nothing)
    only: Mapping[str, str] = field(default_factory=_nothing)
    only_routes: Mapping[Route, str] = field(default_factory=_nothing)
    outputs: Mapping[str, str] = field(default_factory=_nothing)
    sent_back: frozenset[str] = frozenset()
    never: frozenset[Route] = frozenset()
    unreached: frozenset[str] = frozenset()
    lanes: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    lanes_failed: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)


NO_MARKS: Final = Marks()
"""The marks of a bare loadout."""


# -- lines -----------------------------------------------------------------------------------

START_SIGN: Final = "\x00start"
"""Key of the start sign: no socket id can be equal to it."""
END_SIGN: Final = "\x00end"
"""Key of the end sign."""


@dataclass(frozen=True, slots=True)
class Link:
    """One line: from ``source`` to ``target``, which are socket ids, :data:`START_SIGN` or :data:`END_SIGN`.

    ``order`` is the number in evaluation order, 0 where a number would say nothing. ``lanes`` says whether items are
    handed to lanes on it, or it leads on from where these have come together: neither is a socket.
    """

    key: str
    kind: Literal["start", "edge", "exit", "implied"]
    source: str
    target: str
    condition: Condition = "always"
    order: int = 0
    limit: int | None = None
    place: int | None = None
    loop: str | None = None
    lanes: Literal["", "fork", "barrier"] = ""

    @property
    def route(self) -> Route | None:
        """The route that this line stands for, as :class:`Marks` names it."""
        if self.kind == "edge" and self.place is not None:
            return (self.source, self.place)
        if self.kind == "exit":
            return (self.source, self.key)
        return (self.source, END) if self.kind == "implied" else None

    @property
    def to(self) -> str:
        """Where it leads, as a loadout writes it: a socket or ``end``."""
        return END if self.target == END_SIGN else self.target

    @property
    def traversal(self) -> str:
        """The key of its traversal count (R21)."""
        return f"{self.source}->{self.to}"


def _target(graph: Graph, name: str) -> str | None:
    """Give the key that a target is drawn as, None when there is no such socket."""
    if name in graph.sockets:
        return name
    return END_SIGN if name == END else None


def _exclusive(conditions: Sequence[Condition]) -> bool:
    """Whether no visit matches two of the conditions, so that it makes no difference which is looked at first."""
    specs = [described(condition) for condition in conditions]
    return not any(condition.meets(other) for index, condition in enumerate(specs) for other in specs[:index])


def links(graph: Graph) -> list[Link]:
    """List every line of ``graph`` in a stable order: start, then each socket's edges, then exits."""
    graph_links = [Link("start", "start", START_SIGN, graph.entry)] if graph.entry in graph.sockets else []
    for socket in graph.sockets.values():
        conditions = [edge.when for edge in socket.edges]
        numbered = not _exclusive(conditions)
        for number, edge in enumerate(socket.edges, 1):
            target = _target(graph, edge.to)
            if target is not None:
                key = f"edge:{edge.place}:{socket.id}"
                order = number if numbered else 0
                graph_links.append(
                    Link(key, "edge", socket.id, target, edge.when, order, edge.max_traversals, edge.place)
                )
        if not socket.edges:
            graph_links.append(Link(f"implied:{socket.id}", "implied", socket.id, END_SIGN))
    for loop in graph.loops.values():
        for route in loop.routes:
            target = _target(graph, route.target)
            if target is not None and route.source in graph.sockets:
                graph_links.append(
                    Link(route.edge_id, "exit", route.source, target, route.condition, loop=loop.id)
                )
    return _with_unique_keys([replace(link, lanes=_lanes_of(graph, link)) for link in graph_links])


def _lanes_of(graph: Graph, link: Link) -> Literal["", "fork", "barrier"]:
    for region in graph.regions.values():
        if link.kind == "edge" and (link.source, link.target) == (region.generator, region.first):
            return "fork"
        if link.loop == region.loop and link.to == region.exit:
            return "barrier"
    return ""


def _with_unique_keys(graph_links: list[Link]) -> list[Link]:
    """Tell apart exits whose loop and route ids happen to join to the same id."""
    counts: dict[str, int] = {}
    unique = []
    for link in graph_links:
        counts[link.key] = number = counts.get(link.key, 0) + 1
        unique.append(link if number == 1 else replace(link, key=f"{link.key}\x00{number}"))
    return unique


def _may_fall_through(socket: Socket) -> bool:
    """Whether its written edges leave a boolean without a match, which ends the cast (R3)."""
    conditions = {edge.when for edge in socket.edges}
    return bool(conditions) and not covered(conditions, text=socket.parse != "json")


# -- regions ---------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Frame:
    """The picture itself (``loop`` None) or one loop's box: what stands directly in it, in order."""

    loop: str | None
    sockets: list[str] = field(default_factory=list)
    children: list[Frame] = field(default_factory=list)


def nested_frames(
    graph: Graph, leave_out: frozenset[str]
) -> tuple[Frame, dict[str, tuple[Frame, ...]], list[str]]:
    """Sort the sockets into regions.

    Returns the root; for each socket the regions around it, outermost first; and the ids of the loops that
    overlap others without lying inside them: no box can hold those alone.
    """
    members = {
        loop.id: frozenset(loop.sockets) & graph.sockets.keys() - leave_out for loop in graph.loops.values()
    }
    by_size = sorted((loop for loop in members if members[loop]), key=lambda loop: -len(members[loop]))
    root = Frame(None)
    region_of: dict[str, Frame] = {}
    around: dict[str, tuple[Frame, ...]] = dict.fromkeys(graph.sockets, (root,))
    loose: list[str] = []
    for loop in by_size:
        paths = {around[socket] for socket in members[loop]}
        if len(paths) > 1:
            loose.append(loop)
            continue
        path = paths.pop()
        region = region_of[loop] = Frame(loop)
        path[-1].children.append(region)
        for socket in members[loop]:
            around[socket] = (*path, region)
    for socket in graph.sockets:
        if socket not in leave_out:
            around[socket][-1].sockets.append(socket)
    return root, around, loose


# -- words -----------------------------------------------------------------------------------
# Foreign text in them is bounded and harmless as text, but not yet escaped for HTML.

TIMES_SIGN: Final = "\N{MULTIPLICATION SIGN}"
NEVER: Final = "never taken"


def socket_kinds(socket: Socket) -> tuple[str, ...]:
    """Say what a socket is: agent or utility, then generator, multi-turn and loop consumer where they apply."""
    kinds: list[str] = [socket.materia.kind]
    if socket.is_generator:
        kinds.append("generator")
    if socket.materia.multi_turn:
        kinds.append("multi-turn")
    if socket.loops:
        kinds.append("loop consumer")
    return tuple(kinds)


def answerer_label(socket_id: str, marks: Marks) -> str:
    """Say who answers a socket in a cast, or what it is pinned to (R40); empty when there is nothing to say."""
    if (to := marks.pins.get(socket_id)) is not None:
        return f"pinned: {part(to, 80)}"
    return part(marks.answers.get(socket_id, ""), 80)


def answered_by(socket_id: str, marks: Marks) -> str:
    """Say who answers a socket as a sentence goes on: ``answered by person``; empty when there is nothing to say."""
    who = answerer_label(socket_id, marks)
    return f"answered by {who}" if who and socket_id not in marks.pins else who


def kind_and_answerer(socket: Socket, marks: Marks) -> str:
    """Say what a socket is, and who answers it in a cast: ``agent · person``."""
    who = answerer_label(socket.id, marks)
    return f"{socket.materia.kind} · {who}" if who else socket.materia.kind


def short_count(count: int) -> str:
    """Write a count in few characters: 12, 12k, 3M."""
    for size, unit in ((1_000_000, "M"), (10_000, "k")):
        if count >= size:
            return f"{TIMES_SIGN}{count // (1000 if unit == 'k' else size)}{unit}"
    return f"{TIMES_SIGN}{count}"


def advance_label(advance: Advance, *, short: bool = False) -> str:
    """Say what an advance does, and whether it was derived (R15); ``short`` as on a card."""
    condition = described(advance.when)
    when = "" if condition.whatever else f" {condition.short}" if short else f" when {advance.when}"
    return f"advance ▸ {part(advance.cursor)}{when}{' (derived)' if advance.derived else ''}"


def socket_notes(socket: Socket, *, short: bool = False) -> tuple[str, ...]:
    """List what else a picture should say at a socket: own foreach, advance, falling through to the end; ``short`` as on a card."""
    notes = []
    if socket.iterator is not None and socket.iterator.loop is None:
        notes.append(f"for each {part(socket.iterator.items)} as {part(socket.iterator.alias)}")
    if socket.advance is not None:
        notes.append(advance_label(socket.advance, short=short))
    if _may_fall_through(socket):
        notes.append("no match ▸ end")
    return tuple(notes)


def _lanes_words(graph: Graph, loop: Loop) -> str:
    """Say how many lanes a loop runs in at once; empty where its items are worked on one after another."""
    at_once = next((region.at_once for region in graph.regions.values() if region.loop == loop.id), None)
    return "" if at_once is None else f"in lanes, {at_once} at once"


def loop_label(graph: Graph, loop: Loop, progress: tuple[int, int] | None = None) -> str:
    """Say what a loop goes over, how far it has come, and in how many lanes."""
    parts = [lanes] if (lanes := _lanes_words(graph, loop)) else []
    if loop.generator is not None:
        parts.append(f"consumes {part(loop.output or 'workItems')} of {part(loop.generator)}")
    elif loop.iterator is not None:
        parts.append(f"for each {part(loop.iterator.items)} as {part(loop.iterator.alias)}")
    if progress is not None:
        parts.append(f"{progress[0]}/{progress[1]} done")
    return " · ".join(parts) or "no list"


def _budget_words(limit: int, used: tuple[int, int] | None = None, *, item: bool = False) -> str:
    """Say how often an edge may be taken, or how often it was, for the current item or in all (R18)."""
    if used is None:
        return f"max {limit}"
    return f"{'this item: ' if item else 'used '}{used[0]} of {used[1]}"


def link_label(link: Link, marks: Marks = NO_MARKS, *, short: bool = False) -> str:
    """Label of a line: number in evaluation order, condition, budget; empty for a single plain edge.

    ``short`` as on the line itself, where there is little room.
    """
    if link.kind in ("start", "implied"):
        return ""
    condition = described(link.condition)
    sign = condition.short if short else condition.sign
    parts: list[str] = [link.lanes] if link.lanes else []
    if link.kind == "exit":
        parts.append(f"exit {sign}")
    elif link.order or link.condition != "always" or link.limit is not None:
        parts.append((f"{link.order} " if link.order else "") + sign)
    if link.limit is not None and link.place is not None:
        used = marks.budgets.get((link.source, link.place))
        parts.append(
            f"{used[0]}/{used[1]}" if short and used else _budget_words(link.limit, used, item=marks.in_item)
        )
    if link.route in marks.never:
        parts.append(NEVER)
    return (" " if short else " · ").join(parts)


def line_legend() -> str:
    """Say which conditions have which lines, as ``solid line: always or ✓ satisfied · dotted: ✗ not_satisfied``."""
    signs: dict[str, list[str]] = {}
    for condition in DESCRIBED.values():
        pattern = (
            "solid line" if condition.dashes is None else "dotted" if condition.dashes[0] <= 2 else "dashed"
        )
        signs.setdefault(pattern, []).append(condition.sign)
    return " · ".join(
        f"{pattern}: {' or '.join(condition_signs)}" for pattern, condition_signs in signs.items()
    )


def edge_label(edge: Edge, used: tuple[int, int] | None = None, *, item: bool = False) -> str:
    """Say when an edge is taken, to where, and how often it may be, or how often it was; see :func:`_budget_words`."""
    max_traversals = edge.max_traversals
    limit = f" ({_budget_words(max_traversals, used, item=item)})" if max_traversals is not None else ""
    return f"{described(edge.when).sign} → {part(edge.to)}{limit}"


def _noted(socket_id: str, marks: Marks) -> str:
    if failed := marks.lanes_failed.get(socket_id):
        return f"{counted(len(failed), 'lane')} failed"
    return ", ".join(marks.warnings.get(socket_id, ()))


def state_label(socket_id: str, marks: Marks) -> str:
    """Say where the cast stands with respect to a socket; empty when nowhere."""
    if socket_id == marks.failed:
        return "✖ failed"
    if noted := _noted(socket_id, marks):
        return f"⚠ {noted}"
    if socket_id in marks.lanes:
        return f"▶ {part(', '.join(marks.lanes[socket_id]), 60)}"
    if socket_id == marks.current:
        return "‖ held" if marks.held else "▶ waiting" if marks.waiting else "▶ current"
    if socket_id in marks.only:
        has = marks.only[socket_id]
        return "differs" if has == "both" else f"only {has}"
    return "never visited" if socket_id in marks.unreached else ""


def reachable_keys(entry: str, graph_links: Iterable[Link]) -> set[str]:
    """Return the keys that can be reached from ``entry`` over edges and exits."""
    out: dict[str, list[str]] = {}
    for link in graph_links:
        out.setdefault(link.source, []).append(link.target)
    return reachable_from([entry], out)


def graph_summary(graph: Graph, marks: Marks = NO_MARKS) -> str:
    """One line about a loadout: its name, entry, how many sockets and loops it has, and whether a cast has warnings."""
    sockets, loops = len(graph.sockets), len(graph.loops)
    text = f"loadout {part(graph.name, 120)} · entry {part(graph.entry)} · {counted(sockets, 'socket')}"
    text += f" · {counted(loops, 'loop')}" if loops else ""
    return text + (" · complete, with warnings" if marks.warnings else "")


TITLE_SIZE: Final = 13.0
SMALL_SIZE: Final = 11.0
"""The size of what is small, where cards say more than their name."""
_LEAST_SIZE: Final = 9.0
"""Smaller than this no text is seen, as far as it can be helped."""
LINE: Final = 16.0
ICON: Final = 16.0
PAD: Final = 10.0
"""Room at the left and right of what stands on a card."""
_CARDS: Final = {1: (144.0, 32.0), 2: (192.0, 44.0), 3: (192.0, 84.0)}


def card_size(level: int) -> tuple[float, float]:
    """How large every card is that says its name (1), who answers too (2), and two lines more (3), whatever its name."""
    return _CARDS[level]


def small_size(level: int) -> float:
    """How large small text is: that of cards with nothing but a name, which are for seeing from far, as large as the names."""
    return TITLE_SIZE if level == 1 else SMALL_SIZE


def least_zoom(level: int) -> float:
    """Return the zoom under which text of a level would be smaller than what can be read."""
    return _LEAST_SIZE / small_size(level)


def socket_name(socket: Socket) -> str:
    """What a card calls a socket: its materia, bounded."""
    return part(socket.materia.label, 80) or part(socket.id)


def card_lines(socket: Socket, marks: Marks, room: float) -> tuple[str, ...]:
    """Say on two lines of a card what came of a socket last; before that, what it does."""
    text = marks.outputs.get(socket.id, "")
    if not text:
        description = socket.materia.raw.get("description")
        about = description if isinstance(description, str) else " ".join(socket.materia.prompt.split()[:24])
        text = " · ".join([*([about] if about else []), *socket_notes(socket, short=True)])
    return wrap_text(part(text, 200), SMALL_SIZE, room, 2)


_FUNCTION: Final = "the function "


def answerer_badge(socket: Socket, marks: Marks) -> str:
    """Say in a few letters who answers a socket, or that it is pinned; empty when there is nothing to say."""
    if socket.id in marks.pins:
        return "pinned"
    who = part(marks.answers.get(socket.id, ""), 60)
    if not who:
        return part(socket.materia.command[0].rsplit("/", 1)[-1], 40) if socket.materia.command else ""
    if who.partition(" ")[0] == "person":
        return "you"
    if who == "a function":
        return "f()"
    if who.startswith(_FUNCTION):
        return f"{who.removeprefix(_FUNCTION)}()"
    provider, colon, model = who.partition(":")
    return model.rsplit("/", 1)[-1].strip() if colon and provider.isidentifier() and model.strip() else who


def icon_name(socket: Socket, marks: Marks) -> str:
    """Name the icon of a card: that of who answers, but of what makes the items of a loop its own."""
    if socket.is_generator:
        return "generator"
    if socket.materia.kind == "utility":
        return "utility"
    who = marks.answers.get(socket.id, "")
    if who.partition(" ")[0] == "person":
        return "person"
    return "function" if who.startswith((_FUNCTION, "a function")) else "model"


def chip_label(links: Sequence[Link], marks: Marks, *, stub: bool) -> str:
    """Write the chip of a line for one moment of a cast: when it is taken, how often it may be, which of two has it.

    Args:
        links: the link, and the exits that share its line.
        marks: the moment.
        stub: whether it only names its target.
    """
    first = links[0]
    if stub:
        label = _stub_label(first)
    elif len(links) > 1:
        label = " ".join([first.lanes, "exit", *(described(link.condition).short for link in links)]).lstrip()
    else:
        label = link_label(first, marks, short=True)
    only = next((has for link in links if link.route and (has := marks.only_routes.get(link.route))), "")
    return " · ".join(text for text in (label, only) if text)


def _stub_label(link: Link) -> str:
    """Label of a line that only names its target."""
    label = link_label(link, short=True)
    return f"{label} ▸ {part(link.to, 40)}".lstrip()


def stub_size(link: Link, level: int = 2) -> tuple[float, float]:
    """Width and height of the label of a line that only names its target."""
    size = small_size(level)
    return (text_width(_stub_label(link), size) + 14, size + 8)


def label_size(*links: Link, level: int = 2) -> tuple[float, float]:
    """Width and height to keep for the chip of a line; (0, 0) without one. The same in every state of a cast."""
    label = chip_label(links, NO_MARKS, stub=False)
    if not label:
        return (0.0, 0.0)
    if (limit := links[0].limit) is not None:  # in a cast it says how often it was taken
        label = max(label, label.replace(f"max {limit}", f"{limit}/{limit}"), key=len)
    size = small_size(level)
    return (text_width(label, size) + 14, size + 8)


def loop_title(graph: Graph, loop: Loop) -> str:
    """Say what a loop goes over, and in how many lanes, bounded."""
    title = part(loop.output or "items") if loop.generator is not None else part(loop.id)
    if loop.generator is not None and loop.generator in graph.sockets:
        title = (
            f"{'items' if title == 'workItems' else title} of {socket_name(graph.sockets[loop.generator])}"
        )
    lanes = _lanes_words(graph, loop)
    return f"{title} · {lanes}" if lanes else title


PROGRESS_ROOM: Final = 92.0
"""How many pixels of a heading say how far a loop has come."""


def title_size(graph: Graph, loop: Loop, room: float, level: int) -> tuple[float, float]:
    """Width and height of the heading of a loop, without progress, in so much room."""
    return (min(text_width(loop_title(graph, loop), small_size(level)) + ICON + 8, room), ICON)
