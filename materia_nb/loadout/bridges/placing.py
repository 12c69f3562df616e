"""A flow as a loadout: steps become sockets, choices become guarded edges, and what has no twin is said node by node."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from materia_nb.errors import MateriaError
from materia_nb.file_io import read_plain
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.bridges.flow import Flow, Note, Way, read_langgraph, read_mermaid, read_n8n

_YES: Final = re.compile(
    r"yes|y|true|ok|pass(?:e[ds])?|approved?|accept(?:ed)?|good|valid|success|done|useful|satisfied|relevant|grounded"
    r"|complete"
)
_NO: Final = re.compile(
    r"no|n|not|isn|false|fail(?:ed|s)?|reject(?:ed)?|bad|invalid|error|retry|revise|rewrite|again|unsatisfied"
    r"|irrelevant|incomplete"
)
_MOST_NODES: Final = 300


class Imported(NamedTuple):
    """A loadout made of another tool's graph: its JSON with its ``materia``, where it is from, and what has no twin."""

    document: dict[str, JSON]
    origin: str
    notes: tuple[Note, ...]


def import_graph(source: object) -> Imported:
    """Make a loadout of a graph of LangGraph (compiled, its JSON, its Mermaid), a Mermaid flowchart or an n8n workflow.

    Args:
        source: the graph; text, an object, or the path of a ``.json``, ``.mmd`` or ``.mermaid`` file.

    Raises:
        MateriaError: it is nothing of the kind, or cannot be read (``bad_graph``).
    """
    flow = _read(source)
    if not flow.steps:
        raise MateriaError("The graph has no nodes.", kind="bad_graph")
    if len(flow.steps) > _MOST_NODES:
        raise MateriaError(
            f"The graph has {len(flow.steps)} nodes.", hint=f"at most {_MOST_NODES}", kind="bad_graph"
        )
    placed = _Placing(flow)
    return Imported(placed.document(), flow.origin, tuple(flow.notes))


def _read(source: object) -> Flow:
    drawn = getattr(source, "get_graph", None)
    if callable(drawn):
        return read_langgraph(drawn().to_json())
    if isinstance(source, Path) or (
        isinstance(source, str) and re.fullmatch(r"[^\n{]+\.(json|mmd|mermaid|md)", source)
    ):
        try:
            source = read_plain(Path(source), follow=True).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise MateriaError(
                f"The graph cannot be read: {error}", where=str(source), kind="bad_graph"
            ) from error
    if isinstance(source, str):
        if not source.lstrip().startswith("{"):
            return read_mermaid(source)
        try:
            source = json.loads(source)
        except (ValueError, RecursionError) as error:
            raise MateriaError(f"The graph is not JSON: {error}.", kind="bad_graph") from error
    if isinstance(source, Mapping):
        return read_n8n(source) if "connections" in source else read_langgraph(source)
    raise MateriaError(
        f"A {type(source).__name__} is no graph that can be imported.",
        hint="give a compiled LangGraph graph, its JSON, a Mermaid flowchart, an n8n workflow, or the path of one",
        kind="bad_graph",
    )


class _Placing:
    """Places the steps of a flow as sockets."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.materia: dict[str, JSON] = {}
        self.sockets: dict[str, dict[str, JSON]] = {}
        self.loops: dict[str, JSON] = {}
        self._pass_through()
        self.order = self._order()
        self.ids = {step: f"Socket-{number}" for number, step in enumerate(self.order, 1)}
        self._next = len(self.order) + 1

    def document(self) -> dict[str, JSON]:
        """Return the loadout."""
        if not self.order:
            raise MateriaError("The graph has nothing but a beginning and an end.", kind="bad_graph")
        for step in self.order:
            self._place(step)
        loadout: dict[str, JSON] = {
            "description": f"Made of {self.flow.origin}.",
            "entry": self.ids[self.order[0]],
            "sockets": dict(self.sockets),
        }
        if self.loops:
            loadout["loops"] = self.loops
        return {**loadout, "materia": self.materia}

    def _pass_through(self) -> None:
        """Take out steps that do nothing, and join the ways into and out of them."""
        flow = self.flow
        for id_ in [id_ for id_, step in flow.steps.items() if step.kind == "pass"]:
            after = [way for way in flow.out_of(id_) if way.target != id_]
            before = [way for way in flow.ways if way.target == id_ and way.source != id_]
            joined = [one._replace(target=other.target) for one in before for other in after]
            flow.note(id_, "nothing is done there, so the ways lead past it")
            flow.ways = [way for way in flow.ways if id_ not in (way.source, way.target)] + joined
            del flow.steps[id_]

    def _order(self) -> list[str]:
        """Return the steps that become sockets, in the order in which they are reached."""
        flow = self.flow
        begins = [id_ for id_, step in flow.steps.items() if step.kind == "start"]
        entries = [way.target for id_ in begins for way in flow.out_of(id_)]
        if not entries:
            led_to = {way.target for way in flow.ways if way.source != way.target}
            entries = [id_ for id_ in flow.steps if id_ not in led_to and id_ not in begins]
        entries = list(dict.fromkeys(entries)) or list(flow.steps)[:1]
        for other in entries[1:]:
            flow.note(
                other, f"the graph begins here too; a cast begins at {flow.steps[entries[0]].title} alone"
            )
        found: dict[str, None] = {}
        waiting = [*entries, *flow.steps]
        while waiting:
            step = waiting.pop(0)
            if step in found or flow.steps[step].kind in ("start", "end"):
                continue
            found[step] = None
            waiting = [*(way.target for way in flow.out_of(step)), *waiting]
        return list(found)

    def _to(self, step: str) -> str:
        return self.ids.get(step, "end")

    def _place(self, id_: str) -> None:
        step, ways = self.flow.steps[id_], self.flow.out_of(id_)
        failed = [{"when": "failed", "to": self._to(way.target)} for way in ways if way.failed][:1]
        ways = [way for way in ways if not way.failed]
        if step.kind == "each":
            self._each(id_, ways)
            return
        choices = any(way.choice for way in ways) and len({way.target for way in ways}) > 1
        if not choices:
            self._socket(id_, self._in_a_row(id_, ways), more=failed)
        elif len(ways) == 2:
            self._socket(id_, self._two(id_, ways), json_output=True, asks=ways, more=failed)
        else:
            self._questions(id_, ways, failed)

    def _in_a_row(self, id_: str, ways: list[Way]) -> list[JSON]:
        """Return the one edge of a step; what began side by side is done one after the other, where that is the same."""
        targets = list(dict.fromkeys(way.target for way in ways))
        if len(targets) > 1:
            after = [{way.target for way in self.flow.out_of(target)} for target in targets]
            titles = [self.flow.steps[target].title for target in targets]
            if all(one == after[0] and len(one) == 1 for one in after):
                joint = next(iter(after[0]))
                for one, following in pairwise(targets):
                    self.flow.ways = [
                        way._replace(target=following) if way.source == one and way.target == joint else way
                        for way in self.flow.ways
                    ]
                self.flow.note(id_, f"{', '.join(titles)} begin side by side; here one follows the other")
            else:
                self.flow.note(
                    id_,
                    f"goes on to {', '.join(titles)} at once; a loadout goes one way, so to {titles[0]} alone",
                )
        return [{"when": "always", "to": self._to(targets[0])}] if targets else []

    def _two(self, id_: str, ways: list[Way]) -> list[JSON]:
        """Return the edges of a yes-or-no choice, the one for yes first."""
        first, second = ways
        meant = [self._means_yes(way) for way in ways]
        if meant[0] is False or (meant[0] is None and meant[1]):
            first, second = second, first
        elif meant == [None, None]:
            if self._leads_back(id_, first) and not self._leads_back(id_, second):
                first, second = second, first
            self.flow.note(
                id_,
                f"that {self._name(first)} is what satisfied means, and {self._name(second)} the other, is a guess",
            )
        ways[:] = [first, second]
        return [
            {"when": "satisfied", "to": self._to(first.target)},
            {"when": "not_satisfied", "to": self._to(second.target)},
        ]

    def _means_yes(self, way: Way) -> bool | None:
        """Whether a label means yes; None when it says neither yes nor no."""
        words = re.findall(r"[a-z]+", way.label.lower())
        return False if any(map(_NO.fullmatch, words)) else True if any(map(_YES.fullmatch, words)) else None

    def _leads_back(self, id_: str, way: Way) -> bool:
        return way.target in self.order and self.order.index(way.target) <= self.order.index(id_)

    def _name(self, way: Way) -> str:
        return repr(
            way.label or (self.flow.steps[way.target].title if way.target in self.flow.steps else "end")
        )

    def _questions(self, id_: str, ways: list[Way], failed: list[dict[str, str]]) -> None:
        """Ask one question after the other where there are more than two ways."""
        title = self.flow.steps[id_].title
        asked = [f"Socket-{self._next + place}" for place in range(len(ways) - 1)]
        self._next += len(asked)
        self.flow.note(
            id_, f"{len(ways)} ways out take {len(asked)} questions, since an edge knows yes and no"
        )
        self._socket(id_, [{"when": "always", "to": asked[0]}], more=failed)
        for place, (socket, way) in enumerate(zip(asked, ways, strict=False)):
            other = asked[place + 1] if place + 1 < len(asked) else self._to(ways[-1].target)
            name = self._materia(
                f"Is it {way.label or self.flow.steps[way.target].title}",
                f"After {title}: is the way to go on {self._name(way)}? You are satisfied if it is.",
            )
            self.sockets[socket] = {
                "materia": name,
                "parse": "json",
                "edges": [
                    {"when": "satisfied", "to": self._to(way.target)},
                    {"when": "not_satisfied", "to": other},
                ],
            }

    def _each(self, id_: str, ways: list[Way]) -> None:
        """Make a generator of what hands on a list, and a loop of what is done with each item."""
        begins = [way.target for way in ways if way.label == "loop" and way.target in self.ids]
        done = next((self._to(way.target) for way in ways if way.label == "done"), "end")
        members: dict[str, None] = {}
        waiting = begins[:1]
        while waiting:
            step = waiting.pop()
            if step not in members and step != id_ and step in self.ids:
                members[step] = None
                waiting += [way.target for way in self.flow.out_of(step)]
        last = [step for step in members if any(way.target == id_ for way in self.flow.out_of(step))]
        if not members or not last:
            self.flow.note(id_, "nothing comes back to it, so no loop was made of it")
            self._socket(id_, [{"when": "always", "to": self._to(begins[0]) if begins else done}])
            return
        first, joint, ends = begins[0], self.ids[last[0]], [self.flow.steps[step].kind for step in last]
        if len(last) > 1 or ends[0] == "decide":  # one socket ends each round, whichever way it went
            joint = f"Socket-{self._next}"
            self._next += 1
            self.ids[joint] = joint
            self.sockets[joint] = {
                "materia": self._utility("Next"),
                "edges": [{"when": "always", "to": self.ids[first]}],
            }
            first = joint
        self._socket(id_, [{"when": "always", "to": self.ids[begins[0]]}], generator=True)
        self.flow.ways = [
            way._replace(target=first) if way.target == id_ and way.source in members else way
            for way in self.flow.ways
        ]
        self.loops[f"each-{self.ids[id_].lower()}"] = {
            "sockets": [*(self.ids[step] for step in members), *([joint] if joint == first else [])],
            "consumes": {"from": self.ids[id_], "output": "workItems"},
            "exits": [
                {"id": f"exit:{joint}:always", "from": joint, "condition": "always", "targetSocketId": done}
            ],
        }

    def _socket(
        self,
        id_: str,
        edges: list[JSON],
        *,
        json_output: bool = False,
        asks: list[Way] | None = None,
        generator: bool = False,
        more: list[dict[str, str]] | None = None,
    ) -> None:
        step = self.flow.steps[id_]
        prompt = f"{step.title}." if step.title[-1:].isalnum() else step.title
        if step.about:
            prompt += f"\n\n{step.about}"
        if asks:
            prompt += f"\n\nYou are satisfied if it is {self._name(asks[0])}, and not if it is {self._name(asks[1])}."
        fields: dict[str, JSON] = {"generator": True} if generator else {}
        socket: dict[str, JSON] = {"materia": self._materia(step.title, prompt, **fields)}
        if json_output:
            socket["parse"] = "json"
        if edges or more:
            socket["edges"] = [*(more or []), *edges]
        self.sockets[self.ids[id_]] = socket

    def _utility(self, name: str) -> str:
        """Place a utility that does nothing."""
        definition: dict[str, JSON] = {
            "type": "utility",
            "utility": "echo",
            "parse": "json",
            "params": {"output": {}},
        }
        self.materia.setdefault(name, definition)
        return name

    def _materia(self, title: str, prompt: str, **fields: JSON) -> str:
        base = re.sub(r"[^A-Za-z0-9_.-]+", "-", title).strip("-._")[:50]
        base = base if base[:1].isalpha() else f"Step-{base}".rstrip("-")
        name, number = base, 2
        while name in self.materia:
            name, number = f"{base}-{number}", number + 1
        plain = prompt.replace("{{", "{").replace("}}", "}")  # what another tool fills in is no variable here
        self.materia[name] = {"type": "agent", "tools": "none", "prompt": plain, **fields}
        return name
