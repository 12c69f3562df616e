"""What the graphs of other tools have in common, and LangGraph's, read as that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from materia_nb.errors import MateriaError

Kind = Literal["work", "decide", "start", "end", "pass", "each"]
"""What a step does: work, decide where to go on, begin, end, nothing, or hand on a list item by item."""

START: Final = ("__start__", "start", "begin")
END: Final = ("__end__", "end", "stop", "finish", "finished", "exit")
"""What steps are called that only begin or end a graph."""


class Step(NamedTuple):
    """One node: its name, what it does, and what is known of it in words."""

    title: str
    kind: Kind = "work"
    about: str = ""


class Way(NamedTuple):
    """One edge. A ``choice`` is taken when something says ``label``; ``failed`` is taken when its source fails."""

    source: str
    target: str
    label: str = ""
    choice: bool = False
    failed: bool = False


class Note(NamedTuple):
    """What of a node has no twin in a loadout, and what stands in for it."""

    node: str
    text: str


@dataclass
class Flow:
    """A graph of another tool: its steps by id, its ways in the order in which they were written, and notes on both."""

    origin: str
    steps: dict[str, Step] = field(default_factory=dict)
    ways: list[Way] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def note(self, node: str, text: str) -> None:
        """Say what of a node has no twin."""
        self.notes.append(Note(self.steps[node].title if node in self.steps else node, text))

    def out_of(self, node: str) -> list[Way]:
        """Return the ways out of a step, each target once a label."""
        return list(dict.fromkeys(way for way in self.ways if way.source == node))


def kind_by_name(title: str) -> Kind:
    """Return what a step is by its title alone."""
    name = title.strip().lower()
    return "start" if name in START else "end" if name in END else "work"


def read_langgraph(document: Mapping[str, Any]) -> Flow:
    """Read the JSON of a LangGraph graph (``compiled.get_graph().to_json()``): nodes, and edges that may be conditional.

    Raises:
        MateriaError: it is no such graph (``bad_graph``).
    """
    flow = Flow("a LangGraph graph")
    for node in _listed(document, "nodes"):
        id_ = _text(node, "id")
        data = node.get("data")
        title = data.get("name", id_) if isinstance(data, Mapping) else id_
        flow.steps[id_] = Step(str(title), kind_by_name(id_))
    for edge in _listed(document, "edges"):
        source, target = _text(edge, "source"), _text(edge, "target")
        for id_ in (source, target):
            if id_ not in flow.steps:
                raise MateriaError(
                    f"The edge {source!r} -> {target!r} names a node {id_!r} that is not among the nodes.",
                    kind="bad_graph",
                )
        choice = edge.get("conditional") is True
        label = edge.get("data")
        flow.ways.append(Way(source, target, label if isinstance(label, str) else "", choice))
    _fold_tools(flow)
    return flow


def _fold_tools(flow: Flow) -> None:
    """Take out a node that only runs the tools of one agent and leads back to it: agents use tools within their turn."""
    for id_ in [id_ for id_, step in flow.steps.items() if "tool" in step.title.lower()]:
        callers = {way.source for way in flow.ways if way.target == id_}
        if len(callers) == 1 and {way.target for way in flow.out_of(id_)} == callers:
            (caller,) = callers
            flow.note(
                id_,
                f"it runs the tools of {flow.steps[caller].title}; in a loadout an agent uses tools within its turn, "
                f"so say in `tools` of that materia which it may use",
            )
            del flow.steps[id_]
            flow.ways = [way for way in flow.ways if id_ not in (way.source, way.target)]
            rest = flow.out_of(caller)
            if len(rest) == 1:  # the choice was whether to use a tool
                flow.ways[flow.ways.index(rest[0])] = rest[0]._replace(choice=False, label="")


def _listed(document: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    value = document.get(name)
    if not isinstance(value, Sequence) or not all(isinstance(one, Mapping) for one in value):
        raise MateriaError(
            f"A graph has a list of {name}.", where=name, hint="each is an object", kind="bad_graph"
        )
    return value


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    if not isinstance(text, (str, int)):
        raise MateriaError(f"A node or edge has no {name}.", hint="give it as text", kind="bad_graph")
    return str(text)
