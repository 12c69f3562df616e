"""What there is to say about one socket, edge, exit or loop: as written, as it stands, and as it went the last time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from materia_nb.cast.listing import way_words
from materia_nb.cast.views.status import loop_progress, marks_of
from materia_nb.display.escape import (
    Html,
    html_join,
    html_json,
    html_panel,
    html_pre,
    html_table,
    html_text,
    part,
)
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
from materia_nb.display.sections import layers_html
from materia_nb.engine import entering
from materia_nb.engine.routing import Decision
from materia_nb.engine.rules import Rules
from materia_nb.errors import MateriaError
from materia_nb.insight.why import HEADERS
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Graph
from materia_nb.widgets.blocks import (
    edge_definition,
    loop_definition,
    route_definition,
    socket_definition,
)
from materia_nb.widgets.picks import Pick, link_title

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.session import StepRecord

HANDOFFS: Final = 3
"""How many of a socket's latest handoffs are shown."""
_CHARS: Final = 1_500


class Inspector:
    """Tells about the parts of a graph, and of the cast that runs it if there is one."""

    def __init__(self, graph: Graph, cast: Snapshot | None = None) -> None:
        self.graph = graph
        self.cast = cast
        self.rules = cast.rules if cast is not None else Rules(graph)
        self._links = {link.key: link for link in links(graph)}
        self._about: dict[str, Callable[[str], Html]] = {
            "socket": self._socket,
            "edge": self._line,
            "exit": self._line,
            "loop": self._loop,
        }

    def about(self, pick: Pick | None) -> Html:
        """Return what there is to say about ``pick`` now.

        Raises:
            MateriaError: there is no such part (``unknown_part``).
        """
        if pick is None:
            return _note("Select a socket, an edge or a loop, in the picture or in the list.")
        kind, key = pick
        self.check(pick)
        return self._about[kind](key)

    def check(self, pick: Pick) -> None:
        """Raise MateriaError (``unknown_part``) when the graph has no such part."""
        kind, key = pick
        link = self._links.get(key)
        there = {
            "socket": key in self.graph.sockets,
            "edge": link is not None and link.kind in ("edge", "implied"),
            "exit": link is not None and link.kind == "exit",
            "loop": key in self.graph.loops,
        }
        if not there.get(kind, False):
            raise MateriaError(
                f"The loadout {self.graph.name!r} has no {kind} {key!r}.",
                hint="select one from the list",
                kind="unknown_part",
            )

    # -- a socket ---------------------------------------------------------------------

    def _socket(self, key: str) -> Html:
        socket = self.graph.sockets[key]
        marks = self._marks()
        facts = [
            ("materia", f"{socket.materia.label} ({socket.materia.id})"),
            ("kind", ", ".join(kind_words(socket))),
        ]
        facts += [("answered by", who)] if (who := who_words(key, marks)) else []
        facts += [("group", group)] if (group := socket.materia.group) else []
        state = state_words(key, marks)
        facts += [("now", state)] if state else []
        facts += [("visits", str(marks.visits.get(key, 0)))] if self.cast is not None else []
        facts += [("breakpoint", "runs stop here")] if key in marks.breakpoints else []
        facts.append(("output", socket.parse + (" (derived)" if socket.parse_derived else "")))
        facts += [("protocol", socket.handoff)] if not socket.is_utility else []
        if socket.iterator is not None:
            facts.append(("item", f"{socket.iterator.items} at the cursor {socket.iterator.cursor}"))
        facts += [("advance", advance_words(socket.advance))] if socket.advance is not None else []
        facts += [("loops", ", ".join(socket.loops))] if socket.loops else []
        parts = [
            _facts(facts),
            _heading("Ways out, in order"),
            self._ways_out(key, marks),
            _heading("What its output must hold"),
            self._wanted(key),
            *(self._prompt(key) if not socket.is_utility else ()),
            *(self._handoffs(key) if self.cast is not None else ()),
            *_definition(socket_definition(socket)),
        ]
        return html_panel(part(key), html_join(parts))

    def _ways_out(self, key: str, marks: Marks) -> Html:
        rows = []
        for link in self._links.values():
            if link.source == key:
                used = marks.budgets.get((key, link.place)) if link.place is not None else None
                limit = "" if used is None else f"{used[0]} of {used[1]}"
                rows.append(
                    (link_title(link), limit, str(self._taken(link)) if self.cast is not None else "")
                )
        return html_table(("way", "used now", "taken"), rows)

    def _wanted(self, key: str) -> Html:
        wanted = list(self.rules.sockets[key].wanted.describe().items())
        if wanted:
            return html_table(("field", "what it must be"), wanted)
        if self.graph.sockets[key].parse == "text":
            return _note("Any text will do.")
        return _note("A JSON object; no field must be there.")

    def _prompt(self, key: str) -> list[Html]:
        """The prompt that is waiting here, or a preview of what would be asked now."""
        cast = self.cast
        if cast is not None and cast.prompt is not None and cast.waiting_at and cast.waiting_at.socket == key:
            return [_heading("Prompt: it is waiting for an answer"), *layers_html(cast.prompt, folded=True)]
        state = cast.engine if cast is not None else entering.begin(self.rules, "(the request)")
        prompt, why_not = entering.preview(self.rules, state, key)
        if prompt is None:
            return [_heading("Prompt"), _note(why_not)]
        return [_heading("Prompt, a preview: if it were entered now"), *layers_html(prompt, folded=True)]

    def _handoffs(self, key: str) -> list[Html]:
        steps = [step for step in self._steps() if step.socket == key and step.turns]
        if not steps:
            return [_heading("Handoffs"), _note("It has not answered yet.")]
        parts = [_heading("Last handoff" if len(steps) == 1 else "Last handoffs, latest first")]
        for step in reversed(steps[-HANDOFFS:]):
            item = f", {step.item_key} {part(step.item_label or '', 80)}" if step.item_key else ""
            title = f"Step {step.number}, visit {step.visit}{item} → {part(way_words(step))}"
            parts += [_note(title), html_pre(step.output or "", _CHARS)]
        return parts

    # -- an edge or an exit -------------------------------------------------------------

    def _line(self, key: str) -> Html:
        link = self._links[key]
        marks = self._marks()
        facts = [("from", link.source), ("way", link_title(link))]
        if link.kind == "exit":
            facts += [
                ("id", key),
                ("loop", link.loop or ""),
                ("when", f"the list is exhausted, and {link.condition}"),
            ]
        elif link.kind == "edge":
            facts.append(
                ("when", link.condition + (f", looked at in place {link.order}" if link.order else ""))
            )
            facts.append(("may be taken", self._budget(link, marks)))
        else:
            facts.append(("when", "always: a socket without edges ends the cast, as a success"))
        facts += [("taken in all", str(self._taken(link)))] if self.cast is not None else []
        parts = [_facts(facts), *self._last_time(link)]
        if link.kind != "implied":
            parts += _definition(self._line_definition(link))
        return html_panel(
            f"{'Exit' if link.kind == 'exit' else 'Edge'} from {part(link.source)}", html_join(parts)
        )

    def _taken(self, link: Link) -> int:
        """How often it was taken, by the decisions of all steps."""
        return sum(
            1
            for step in self._steps()
            if step.socket == link.source and step.decision is not None and _chose(step.decision, link)
        )

    def _budget(self, link: Link, marks: Marks) -> str:
        place = -1 if link.place is None else link.place
        used = marks.budgets.get((link.source, place))
        if used is not None:
            return f"{used[1]} times{' for the current item' if marks.in_item else ''}; used {used[0]}"
        if link.limit is not None:
            inside = self.graph.sockets[link.source].iterator is not None
            return f"{link.limit} times{' for each item' if inside else ''} (maxTraversals)"
        most = self.graph.limits.max_edge_traversals
        return f"at most {most} times outside items; inside an item rounds without advance are bounded"

    def _last_time(self, link: Link) -> list[Html]:
        """Whether it was taken when its socket was last left, and why."""
        if self.cast is None:
            return []
        steps = [step for step in self._steps() if step.socket == link.source and step.decision is not None]
        if not steps:
            return [_heading("The last time"), _note("Its socket has not been left yet.")]
        why = self.cast.why(steps[-1].number)
        name = link.key if link.kind == "exit" else f"edge {1 if link.place is None else link.place + 1}"
        rows = [row for row in why.rows if row[0] == name]
        parts = [_heading(f"The last time: {why.title}")]
        if rows:
            parts += [
                _note("It was taken." if rows[0][3] == "yes" else "It was not taken."),
                html_table(HEADERS, rows),
            ]
        elif steps[-1].decision is not None and _chose(steps[-1].decision, link):
            parts.append(_note("It was taken."))
        else:
            parts.append(_note("It was not taken: it was not looked at."))
        return parts + [_note(line) for line in why.lines]

    def _line_definition(self, link: Link) -> JSON:
        if link.kind == "exit":
            for route in self.graph.loops[link.loop or ""].routes:
                if link.key.startswith(route.edge_id):
                    return route_definition(route)
        place = 0 if link.place is None else link.place
        return edge_definition(self.graph.sockets[link.source].edges[place])

    # -- a loop ------------------------------------------------------------------------

    def _loop(self, key: str) -> Html:
        loop = self.graph.loops[key]
        progress = loop_progress(self.cast).get(key) if self.cast is not None else None
        facts = [("goes over", loop_words(loop, progress)), ("sockets", ", ".join(loop.sockets))]
        if loop.iterator is not None:
            facts.append(("list", loop.iterator.items))
            facts.append(("cursor", loop.iterator.cursor))
        exits = [
            link_title(link) for link in self._links.values() if link.kind == "exit" and link.loop == key
        ]
        parts = [_facts(facts)]
        parts += [
            _heading("Exits, when the list is exhausted"),
            *(_note(one) for one in exits or ["none: the cast ends"]),
        ]
        return html_panel(f"Loop {part(key)}", html_join([*parts, *_definition(loop_definition(loop))]))

    # -- what several need ---------------------------------------------------------------

    def _marks(self) -> Marks:
        return marks_of(self.cast) if self.cast is not None else Marks()

    def _steps(self) -> list[StepRecord]:
        return list(self.cast.steps) if self.cast is not None else []


def _chose(decision: Decision, link: Link) -> bool:
    if link.kind == "implied":
        return decision.by == "implied end"
    chosen = decision.chosen
    if chosen is None:
        return False
    return (
        chosen.route == link.key
        if link.kind == "exit"
        else (chosen.kind, chosen.place) == ("edge", link.place)
    )


def _definition(value: JSON) -> list[Html]:
    return [_heading("Definition, as it takes effect"), html_json(value, 3)]


def _facts(facts: Sequence[tuple[str, str]]) -> Html:
    """Names and values in two columns."""
    rows = "".join(
        f'<div style="opacity:0.75;white-space:nowrap">{html_text(name)}</div><div>{html_text(value)}</div>'
        for name, value in facts
    )
    return Html(f'<div style="display:grid;grid-template-columns:max-content 1fr;gap:1px 12px">{rows}</div>')


def _heading(text: str) -> Html:
    return Html(f'<div style="margin-top:8px"><b>{html_text(text)}</b></div>')


def _note(text: str) -> Html:
    return Html(f"<div>{html_text(text)}</div>")
