"""What there is to say about one socket, edge, exit or loop: as written, as it stands, and as it went the last time.

It is said as blocks (:mod:`materia_nb.widgets.blocks`), which a cast's panel draws in the page and a graph's beside its picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from materia_nb.cast.listing import way_words
from materia_nb.cast.views.status import loop_progress, marks_of
from materia_nb.display.escape import Html, html_heading, html_join, html_json, html_panel, html_text, part
from materia_nb.display.graph_parts import (
    Link,
    Marks,
    advance_words,
    kind_words,
    links,
    loop_words,
    state_words,
    who_words,
)
from materia_nb.display.sections import PART_CHARS, part_title
from materia_nb.engine import entering
from materia_nb.engine.rules import Rules
from materia_nb.handoff.capabilities import NamesFields
from materia_nb.insight.why import HEADERS
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Advance, Edge, ExitRoute, Graph, Iterator, Loop, Socket
from materia_nb.widgets.blocks import Block, blocks_html, facts, fold, head, line, lines, pre, table
from materia_nb.widgets.picks import Pick, link_title, pick_of

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.prompt import Prompt
    from materia_nb.engine.routing import Decision
    from materia_nb.engine.session import StepRecord

HANDOFFS: Final = 3
"""How many of a socket's latest handoffs are shown."""
DEFINITION: Final = "Definition, as it takes effect"


class Inspector:
    """Tells about the parts of a graph, and of the cast that runs it if there is one.

    Args:
        graph: whose parts.
        cast: what runs it.
        names: what its sockets are called; by their ids if left out.
    """

    def __init__(
        self, graph: Graph, cast: Snapshot | None = None, names: Mapping[str, str] | None = None
    ) -> None:
        self.graph, self.cast = graph, cast
        self.names = names or {key: key for key in graph.sockets}
        self.rules = cast.rules if cast is not None else Rules(graph)
        self._links = {link.key: link for link in links(graph)}

    def has(self, kind: str, key: str) -> bool:
        """Whether the graph has such a part."""
        if kind in ("socket", "loop"):
            return key in (self.graph.sockets if kind == "socket" else self.graph.loops)
        return key in self._links and pick_of(self._links[key]) == (kind, key)

    def beside(self, pick: Pick | None) -> Html:
        """Return all that there is to say about a part, as it stands beside a picture."""
        if pick is None or not self.has(*pick):
            return html_text("Select a socket, an edge or a loop, in the picture or in the list.")
        kind, key = pick
        title, found = part(key), self.about(kind, key)
        if kind == "loop":
            title = f"Loop {title}"
        elif kind != "socket":
            title = f"{kind.capitalize()} from {part(self._links[key].source)}"
        else:
            found += self._prompt(self.graph.sockets[key])
            found += last_handoffs(self.cast, key) if self.cast is not None else []
        parts = [blocks_html(found)]
        if (definition := self.definition(kind, key)) is not None:
            parts += [html_heading(DEFINITION), html_json(definition, 3)]
        return html_panel(title, html_join(parts))

    def about(self, kind: str, key: str) -> list[Block]:
        """Tell about a part as it is written, and as it stands."""
        if kind == "socket":
            return self._socket(self.graph.sockets[key])
        if kind == "loop":
            return self._loop(self.graph.loops[key])
        return self._line(self._links[key])

    def definition(self, kind: str, key: str) -> JSON:
        """Return a part as a loadout writes it, None for the end that nobody wrote."""
        if kind == "socket":
            return socket_definition(self.graph.sockets[key])
        if kind == "loop":
            return loop_definition(self.graph.loops[key])
        link = self._links[key]
        if kind == "exit":
            routes = self.graph.loops[link.loop or ""].routes
            return next((route_definition(one) for one in routes if key.startswith(one.edge_id)), None)
        return (
            None if link.place is None else edge_definition(self.graph.sockets[link.source].edges[link.place])
        )

    # -- a socket ---------------------------------------------------------------------

    def _socket(self, socket: Socket) -> list[Block]:
        key, cast, marks = socket.id, self.cast, self._marks()
        stops = cast.breakpoints if cast is not None else ()
        iterator, advance = socket.iterator, socket.advance
        rows = [
            ("materia", f"{socket.materia.label} ({socket.materia.id})"),
            ("kind", ", ".join(kind_words(socket))),
            ("answered by", who_words(key, marks) or ("a process" if socket.is_utility else "")),
            ("group", socket.materia.group or ""),
            ("now", state_words(key, marks)),
            ("visits", str(marks.visits.get(key, 0)) if cast is not None else ""),
            ("breakpoint", "; ".join(one.words(self.graph) for one in stops if one.socket == key)),
            ("output", socket.parse + (" (derived)" if socket.parse_derived else "")),
            ("protocol", "" if socket.is_utility else socket.handoff),
            ("item", f"{iterator.items} at the cursor {iterator.cursor}" if iterator is not None else ""),
            ("advance", advance_words(advance) if advance is not None else ""),
            ("loops", ", ".join(socket.loops)),
        ]
        ways = [
            (link_title(link), self._used(link, marks), str(self._taken(link)) if cast is not None else "")
            for link in self._links.values()
            if link.source == key
        ]
        return [
            facts([row for row in rows if row[1]]),
            head("Ways out, in order"),
            table(("way", "used now", "taken"), ways),
            head("What its output must hold"),
            self._wanted(socket),
            *_command(socket),
        ]

    def _wanted(self, socket: Socket) -> Block:
        here = self.rules.sockets[socket.id]
        if here.wants:
            return table(("field", "what it must be"), list(here.wants.items()))
        if socket.parse == "text":
            return line("Any text will do.")
        if isinstance(here.protocol, NamesFields):
            return line("A JSON object; no field must be there.")
        return line(f"What the protocol {socket.handoff} asks for, as the prompt says.")

    def _prompt(self, socket: Socket) -> list[Block]:
        """The prompt of an agent that is waiting here, or a preview of what it would be asked now."""
        cast = self.cast
        if socket.is_utility:
            return []
        if (
            cast is not None
            and cast.prompt is not None
            and cast.waiting_at
            and cast.waiting_at.socket == socket.id
        ):
            return [head("Prompt: it is waiting for an answer"), *_parts(cast.prompt)]
        state = cast.engine if cast is not None else entering.begin(self.rules, "(the request)")
        prompt, why_not = entering.preview(self.rules, state, socket.id)
        if prompt is None:
            return [head("Prompt"), line(why_not)]
        return [head("Prompt, a preview: if it were entered now"), *_parts(prompt)]

    # -- an edge or an exit -------------------------------------------------------------

    def _line(self, link: Link) -> list[Block]:
        when = {
            "exit": f"the list is exhausted, and {link.condition}",
            "implied": "always: a socket without edges ends the cast, as a success",
        }.get(link.kind, f"{link.condition}{f', looked at in place {link.order}' if link.order else ''}")
        rows = [
            ("from", self.names[link.source]),
            ("to", self.names.get(link.target, "the end")),
            ("id", link.key if link.kind == "exit" else ""),
            ("loop", link.loop or ""),
            ("when", when),
            ("may be taken", self._budget(link) if link.kind == "edge" else ""),
            ("taken", f"{self._taken(link)} times in all" if self.cast is not None else ""),
        ]
        return [facts([row for row in rows if row[1]]), *self._last_time(link)]

    def _taken(self, link: Link) -> int:
        """How often it was taken, by the decisions of all steps."""
        return sum(_chose(decision, link) for _, decision in self._decided(link))

    def _decided(self, link: Link) -> list[tuple[StepRecord, Decision]]:
        """The steps in which its socket was left, with their decisions."""
        steps = self.cast.steps if self.cast is not None else ()
        return [
            (one, one.decision) for one in steps if one.socket == link.source and one.decision is not None
        ]

    def _used(self, link: Link, marks: Marks) -> str:
        """How much of an edge's budget is used, for the item that is worked on where it is counted so."""
        used = marks.budgets.get((link.source, -1 if link.place is None else link.place))
        return "" if used is None else f"{'this item: ' if marks.in_item else ''}{used[0]} of {used[1]}"

    def _budget(self, link: Link) -> str:
        marks = self._marks()
        used = marks.budgets.get((link.source, -1 if link.place is None else link.place))
        if used is not None:
            return f"{used[1]} times{' for the current item' if marks.in_item else ''}; used {used[0]}"
        if link.limit is not None:
            inside = self.graph.sockets[link.source].iterator is not None
            return f"{link.limit} times{' for each item' if inside else ''} (maxTraversals)"
        most = self.graph.limits.max_edge_traversals
        return f"at most {most} times outside items; inside an item rounds without advance are bounded"

    def _last_time(self, link: Link) -> list[Block]:
        """Whether it was taken when its socket was last left, and why."""
        if self.cast is None:
            return []
        decided = self._decided(link)
        if not decided:
            return [head("The last time"), line("Its socket has not been left yet.", "quiet")]
        step, decision = decided[-1]
        why, taken = self.cast.why(step.number), _chose(decision, link)
        name = link.key if link.place is None else f"edge {link.place + 1}"
        rows = [row for row in why.rows if row[0] == name]
        unseen = "" if rows else ": it was not looked at"
        return [
            head(f"The last time: {why.title}"),
            line("It was taken.", "good") if taken else line(f"It was not taken{unseen}."),
            *([table(HEADERS, rows)] if rows else ()),
            *lines(why.lines),
        ]

    # -- a loop ------------------------------------------------------------------------

    def _loop(self, loop: Loop) -> list[Block]:
        progress = loop_progress(self.cast).get(loop.id) if self.cast is not None else None
        rows = [
            ("goes over", loop_words(loop, progress)),
            ("sockets", ", ".join(self.names[one] for one in loop.sockets)),
        ]
        if loop.iterator is not None:
            rows += [("list", loop.iterator.items), ("cursor", loop.iterator.cursor)]
        exits = [
            link_title(link) for link in self._links.values() if link.kind == "exit" and link.loop == loop.id
        ]
        return [
            facts(rows),
            head("Exits, when the list is exhausted"),
            *lines(exits or ["none: the cast ends"]),
        ]

    def _marks(self) -> Marks:
        return marks_of(self.cast) if self.cast is not None else Marks()


def last_handoffs(cast: Snapshot, socket: str) -> list[Block]:
    """What a socket handed on the last few times, the latest first."""
    steps = [step for step in cast.steps if step.socket == socket and step.turns]
    if not steps:
        return [head("Last handoffs"), line("It has not answered yet.", "quiet")]
    parts = [head("Last handoffs")]
    for step in reversed(steps[-HANDOFFS:]):
        item = f", {step.item_key} {step.item_label or ''}" if step.item_key else ""
        title = f"step {step.number}, visit {step.visit}{item} → {way_words(step)}"
        parts += [head(title, small=True), pre(step.shown or "", 2_000)]
    return parts


def _parts(prompt: Prompt) -> list[Block]:
    found: list[Block] = []
    for one in prompt.parts:
        if one.text:
            found += [fold(part_title(one), [pre(one.text, PART_CHARS)])]
        else:
            found += [line(part_title(one), "quiet")]
    return found


def _command(socket: Socket) -> list[Block]:
    """The command of a utility, one argument a line: quoted for a shell it cannot be read."""
    command = socket.materia.raw.get("command")
    if not isinstance(command, list):
        return []
    rows = [(str(place), str(one)) for place, one in enumerate(command)]
    return [fold(f"command: {part(' '.join(map(str, command)), 80)}", [table(("", "argument"), rows)])]


def _chose(decision: Decision, link: Link) -> bool:
    """Whether a decision took a line."""
    if link.kind == "implied":
        return decision.by == "implied end"
    chosen = decision.chosen
    if chosen is None:
        return False
    if link.kind == "exit":
        return chosen.route == link.key
    return (chosen.kind, chosen.place) == ("edge", link.place)


# -- as a loadout writes them ---------------------------------------------------------------


def edge_definition(edge: Edge) -> dict[str, JSON]:
    """An edge as a loadout writes it."""
    limit = {} if edge.max_traversals is None else {"maxTraversals": edge.max_traversals}
    return {"when": edge.when, "to": edge.to, **limit}


def route_definition(route: ExitRoute) -> dict[str, JSON]:
    """An exit route as a loadout writes it."""
    written = {
        "id": route.id,
        "from": route.source,
        "condition": route.condition,
        "targetSocketId": route.target,
    }
    return {**written, **({"derived": True} if route.derived else {})}


def socket_definition(socket: Socket) -> dict[str, JSON]:
    """A socket and its materia, with parse, assignments and advance as they take effect."""
    made: dict[str, Any] = {"materia": socket.materia.id, "parse": socket.parse}
    if socket.assign:
        made["assign"] = dict(socket.assign)
    made["edges"] = [edge_definition(edge) for edge in socket.edges]
    if socket.advance is not None:
        made["advance"] = _advance(socket.advance)
    if socket.iterator is not None and socket.iterator.loop is None:
        made["foreach"] = _iterator(socket.iterator)
    return {"socket": made, "materia": dict(socket.materia.raw)}


def loop_definition(loop: Loop) -> dict[str, JSON]:
    """A loop as it takes effect."""
    made: dict[str, Any] = {"sockets": list(loop.sockets)}
    if loop.generator is not None:
        made["consumes"] = {"from": loop.generator, "output": loop.output}
    if loop.iterator is not None:
        made["iterator"] = _iterator(loop.iterator)
    return {**made, "exits": [route_definition(route) for route in loop.routes]}


def _advance(advance: Advance) -> dict[str, JSON]:
    made: dict[str, JSON] = {"cursor": advance.cursor, "items": advance.items, "when": advance.when}
    return {**made, **({"derived": True} if advance.derived else {})}


def _iterator(iterator: Iterator) -> dict[str, JSON]:
    return {"items": iterator.items, "as": iterator.alias, "cursor": iterator.cursor}
