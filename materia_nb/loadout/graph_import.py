"""Import LangGraph graphs and Mermaid flowcharts as loadouts.

Both formats are first converted to a :class:`Flow`. Its steps become sockets, and its choices become edges that depend
on ``satisfied``. Features that have no equivalent in a loadout are reported as notes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.config_files import config_text, expand_path, read_text
from materia_nb.loadout.mermaid_import import parse_mermaid
from materia_nb.loadout.topology import free_name

StepKind = Literal["work", "decide", "start", "end"]
"""Kind of a step: an ordinary step, a decision between several edges, the start, or the end."""

START_NAMES: Final = ("__start__", "start", "begin")
END_NAMES: Final = ("__end__", "end", "stop", "finish", "finished", "exit")
"""Names of nodes that only mark the end of a graph."""


class Step(NamedTuple):
    """A node of an imported graph, with its title and kind."""

    title: str
    kind: StepKind = "work"


class FlowEdge(NamedTuple):
    """An edge of an imported graph. If ``choice`` is True, the edge is taken only if the source chooses ``label``."""

    source: str
    target: str
    label: str = ""
    choice: bool = False


class Note(NamedTuple):
    """A note about a feature of a node that has no equivalent in a loadout, and about its replacement."""

    node: str
    text: str


@dataclass
class Flow:
    """A graph of another tool.

    Attributes:
        origin: a noun phrase for the original format, such as ``a LangGraph graph``.
        steps: the steps by id.
        edges: the edges in their original order.
        notes: the notes about features that have no equivalent in a loadout.
    """

    origin: str
    steps: dict[str, Step] = field(default_factory=dict)
    edges: list[FlowEdge] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def note(self, node: str, text: str) -> None:
        """Add a note about a feature of a node that has no equivalent in a loadout."""
        self.notes.append(Note(self.steps[node].title if node in self.steps else node, text))

    def edges_from(self, node: str) -> list[FlowEdge]:
        """Return the edges that lead from a step, without duplicates."""
        return list(dict.fromkeys(edge for edge in self.edges if edge.source == node))


def kind_by_name(title: str) -> StepKind:
    """Guess the kind of a step: ``start`` or ``end`` if its title is a common name for one, else ``work``."""
    name = title.strip().lower()
    return "start" if name in START_NAMES else "end" if name in END_NAMES else "work"


def read_langgraph(document: Mapping[str, Any]) -> Flow:
    """Convert the JSON of a LangGraph graph, from ``compiled.get_graph().to_json()``, to a flow.

    Raises:
        MateriaError: the document is not a LangGraph graph (``bad_graph``).
    """
    flow = Flow("a LangGraph graph")
    for node in _objects_in(document, "nodes"):
        id_ = _required_text(node, "id")
        data = node.get("data")
        title = data.get("name", id_) if isinstance(data, Mapping) else id_
        flow.steps[id_] = Step(str(title), kind_by_name(id_))
    for edge in _objects_in(document, "edges"):
        source, target = _required_text(edge, "source"), _required_text(edge, "target")
        for id_ in (source, target):
            if id_ not in flow.steps:
                raise _error(f"The edge {source!r} -> {target!r} refers to the node {id_!r}, which does not exist.")
        choice = edge.get("conditional") is True
        label = edge.get("data")
        flow.edges.append(FlowEdge(source, target, label if isinstance(label, str) else "", choice))
    _remove_tool_nodes(flow)
    return flow


def _remove_tool_nodes(flow: Flow) -> None:
    """Remove nodes that only run the tools of one agent, because agents in a loadout call tools within their turn."""
    for id_ in [id_ for id_, step in flow.steps.items() if "tool" in step.title.lower()]:
        callers = {edge.source for edge in flow.edges if edge.target == id_}
        if len(callers) == 1 and {edge.target for edge in flow.edges_from(id_)} == callers:
            (agent_id,) = callers
            title = flow.steps[agent_id].title
            flow.note(
                id_,
                f"removed, since {title} calls its tools within its turn; list the tools in the `tools` field of its materia",
            )
            del flow.steps[id_]
            flow.edges = [edge for edge in flow.edges if id_ not in (edge.source, edge.target)]
            rest = flow.edges_from(agent_id)
            if len(rest) == 1:  # the removed choice was whether to use a tool
                flow.edges[flow.edges.index(rest[0])] = rest[0]._replace(choice=False, label="")


def _objects_in(document: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    value = document.get(name)
    if not isinstance(value, Sequence) or not all(isinstance(entry, Mapping) for entry in value):
        raise _error(f"The graph has no list of {name}.", f"write {name} as a list of objects", where=name)
    return value


def _required_text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    if not isinstance(text, (str, int)):
        raise _error(f"A node or edge has no {name}.", f"write {name} as text")
    return str(text)


def _error(message: str, hint: str | None = None, *, where: str | None = None) -> MateriaError:
    return MateriaError(message, where=where, hint=hint, kind="bad_graph")


def read_mermaid(text: str, *, where: str = "", first_line: int = 1) -> Flow:
    """Convert a Mermaid flowchart to a flow. Diamonds become decisions, and labelled or dotted links become choices.

    Raises:
        MateriaError: the text is not a flowchart, or a statement cannot be parsed (``bad_graph``).
    """
    chart = parse_mermaid(text, where=where, first_line=first_line)
    flow = Flow("a Mermaid flowchart")
    for id_, node in chart.nodes.items():
        flow.steps[id_] = Step(node.label or id_, _KIND_BY_SHAPE.get(node.shape) or kind_by_name(node.label or id_))
    for link in chart.links:
        choice = bool(link.label) or link.dotted
        flow.edges.append(FlowEdge(link.source, link.target, link.label, choice))
    return flow


_KIND_BY_SHAPE: Final[dict[str, StepKind]] = {
    **dict.fromkeys(("{", "diamond", "diam", "decision", "question", "rhombus"), "decide"),
    **dict.fromkeys(("start", "sm-circ", "small-circle"), "start"),
    **dict.fromkeys(("stop", "fr-circ", "framed-circle"), "end"),
}  # Kind of a step by the shape of its node, which takes precedence over the label.

_YES_WORDS: Final = re.compile(
    r"yes|y|true|ok|pass(?:e[ds])?|approved?|accept(?:ed)?|good|valid|success|done|useful|satisfied|relevant|grounded"
    r"|complete"
)
_NO_WORDS: Final = re.compile(
    r"no|n|not|isn|false|fail(?:ed|s)?|reject(?:ed)?|bad|invalid|error|retry|revise|rewrite|again|unsatisfied"
    r"|irrelevant|incomplete"
)
_MAX_NODES: Final = 300
_PATH: Final = re.compile(r"[^\n]+\.(?:json|mmd|mermaid|md)", re.IGNORECASE)
_FENCE: Final = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,})[ \t]*mermaid[ \t]*\r?\n(?P<chart>.*?)^ {0,3}(?P=fence)[`~]*[ \t]*\r?$",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_SOURCE_ADVICE: Final = (
    "use a compiled LangGraph graph, its JSON, a Mermaid flowchart,"
    " or the path of a .json, .mmd, .mermaid or .md file with such a graph"
)


class ImportedLoadout(NamedTuple):
    """A loadout that was imported from another tool.

    Attributes:
        document: the loadout as JSON, with the definitions of its materia in the additional field ``materia``.
        origin: a noun phrase for the original format.
        notes: the notes about features that have no equivalent in a loadout.
    """

    document: dict[str, JSON]
    origin: str
    notes: tuple[Note, ...]


def import_graph(source: object) -> ImportedLoadout:
    """Import a LangGraph graph or a Mermaid flowchart as a loadout.

    Args:
        source: a compiled LangGraph graph, its JSON, a Mermaid flowchart, or the path of a ``.json``, ``.mmd``,
            ``.mermaid`` or ``.md`` file that contains such a graph.

    Raises:
        MateriaError: the source cannot be read, or does not contain such a graph (``bad_graph``).
    """
    flow = _read_source(source)
    if not flow.steps:
        raise _error("The graph has no nodes.")
    if len(flow.steps) > _MAX_NODES:
        raise _error(f"The graph has {len(flow.steps)} nodes.", f"use at most {_MAX_NODES} nodes")
    _correct_kinds(flow)
    document = _LoadoutBuilder(flow).document()
    return ImportedLoadout(document, flow.origin, tuple(flow.notes))


def _correct_kinds(flow: Flow) -> None:
    """Change the kind of a start with incoming edges, or of an end with outgoing edges, to ``work``.

    Such edges show that the guess from the title was wrong.
    """
    link_targets, link_sources = {edge.target for edge in flow.edges}, {edge.source for edge in flow.edges}
    for id_, step in flow.steps.items():
        if (step.kind == "start" and id_ in link_targets) or (step.kind == "end" and id_ in link_sources):
            flow.steps[id_] = step._replace(kind="work")


def _read_source(source: object) -> Flow:
    get_graph = getattr(source, "get_graph", None)
    if callable(get_graph):
        return read_langgraph(get_graph().to_json())
    if isinstance(source, Path) or (isinstance(source, str) and _PATH.fullmatch(source)):
        path = expand_path(source)
        try:
            return _parse_flow(config_text(path), str(path), path.suffix.lower())
        except MateriaError as error:
            hint = _SOURCE_ADVICE if error.kind != "bad_graph" and "UTF-8" not in error.what else error.hint
            raise MateriaError(error.what, where=error.where, hint=hint, kind="bad_graph") from error
    if isinstance(source, str):
        return _parse_flow(source, "", "")
    if isinstance(source, Mapping):
        return read_langgraph(source)
    raise _error(f"Cannot import a graph from an object of type {type(source).__name__}.", _SOURCE_ADVICE)


def _parse_flow(text: str, where: str, suffix: str) -> Flow:
    """Parse a flow from JSON, a Mermaid flowchart, or a Markdown document that contains exactly one flowchart."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise _error("The graph is empty.", _SOURCE_ADVICE, where=where or None)
    if suffix == ".json" or text.lstrip().startswith(("{", "[")):
        try:
            document = read_text(text, "json", where=where or "the text")
        except MateriaError as error:
            raise MateriaError(error.what, where=error.where, hint=error.hint, kind="bad_graph") from error
        if not isinstance(document, Mapping):
            hint = "write the graph as an object with nodes and edges"
            raise _error(f"The JSON is a {type(document).__name__}, not an object.", hint, where=where or None)
        return read_langgraph(document)
    if suffix != ".md" and not text.lstrip().startswith(("```", "~~~")):
        return read_mermaid(text, where=where)
    charts = list(_FENCE.finditer(text))
    if len(charts) != 1:
        message = f"The document has {len(charts)} Mermaid blocks."
        raise _error(message, "use a document with one Mermaid block, or the text of one chart", where=where or None)
    first_line = len(text[: charts[0].start("chart")].splitlines()) + 1
    return read_mermaid(charts[0]["chart"], where=where, first_line=first_line)


def _edge(when: str, to: str) -> dict[str, str]:
    return {"when": when, "to": to}


class _LoadoutBuilder:
    """Builds a loadout from a flow."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.materia: dict[str, JSON] = {}
        self.sockets: dict[str, dict[str, JSON]] = {}
        self.order = self._ordered_steps()
        self.ids = {step: f"Socket-{number}" for number, step in enumerate(self.order, 1)}
        self._next = len(self.order) + 1

    def document(self) -> dict[str, JSON]:
        """Return the loadout as JSON, including its materia."""
        if not self.order:
            raise _error("The graph has only a start and an end.")
        for step in self.order:
            self._add_socket(step)
        return {
            "description": f"Imported from {self.flow.origin}.",
            "entry": self.ids[self.order[0]],
            "sockets": dict(self.sockets),
            "materia": self.materia,
        }

    def _ordered_steps(self) -> list[str]:
        """Return the ids of the steps that become sockets, in the order in which the flow reaches them."""
        flow = self.flow
        starts = [id_ for id_, step in flow.steps.items() if step.kind == "start"]
        entries = [edge.target for id_ in starts for edge in flow.edges_from(id_)]
        if not entries:
            link_targets = {edge.target for edge in flow.edges if edge.source != edge.target}
            entries = [id_ for id_ in flow.steps if id_ not in link_targets and id_ not in starts]
        entries = list(dict.fromkeys(entries)) or list(flow.steps)[:1]
        for other in entries[1:]:
            note = f"a cast starts only at {flow.steps[entries[0]].title}"
            flow.note(other, f"the graph also starts at this node; {note}")
        order: dict[str, None] = {}
        queue = [*entries, *flow.steps]
        while queue:
            step = queue.pop(0)
            if step in order or flow.steps[step].kind in ("start", "end"):
                continue
            order[step] = None
            queue = [*(edge.target for edge in flow.edges_from(step)), *queue]
        return list(order)

    def _target_id(self, step: str) -> str:
        return self.ids.get(step, "end")

    def _add_socket(self, id_: str) -> None:
        edges = self.flow.edges_from(id_)
        choices = any(edge.choice for edge in edges) and len({edge.target for edge in edges}) > 1
        if not choices:
            self._add_step_socket(id_, self._single_edge(id_, edges))
        elif len(edges) == 2:
            self._add_step_socket(id_, self._yes_no_edges(id_, edges), choice_edges=edges)
        else:
            self._add_questions(id_, edges)

    def _single_edge(self, id_: str, edges: list[FlowEdge]) -> list[JSON]:
        """Return the edge of a step that has no choices, as a list with at most one entry.

        If the step has several targets that all lead to the same next step, the targets become a sequence.
        """
        targets = list(dict.fromkeys(edge.target for edge in edges))
        if len(targets) > 1:
            after = [{edge.target for edge in self.flow.edges_from(target)} for target in targets]
            titles = [self.flow.steps[target].title for target in targets]
            if all(target == after[0] and len(target) == 1 for target in after):
                merge = next(iter(after[0]))
                for target, next_target in pairwise(targets):
                    self.flow.edges = [
                        edge._replace(target=next_target) if edge.source == target and edge.target == merge else edge
                        for edge in self.flow.edges
                    ]
                self.flow.note(id_, f"{', '.join(titles)} start at the same time; in the loadout they run in sequence")
            else:
                replacement = f"the loadout keeps only the edge to {titles[0]}"
                self.flow.note(id_, f"the graph continues at {', '.join(titles)} at the same time; {replacement}")
        return [_edge("always", self._target_id(targets[0]))] if targets else []

    def _yes_no_edges(self, id_: str, edges: list[FlowEdge]) -> list[JSON]:
        """Return the ``satisfied`` edge and the ``not_satisfied`` edge of a step that has two choices."""
        first, second = edges
        guesses = [self._means_yes(edge) for edge in edges]
        if guesses[0] is False or (guesses[0] is None and guesses[1]):
            first, second = second, first
        elif guesses == [None, None]:
            if self._leads_back(id_, first) and not self._leads_back(id_, second):
                first, second = second, first
            meanings = f"{self._label(first)} means satisfied, and {self._label(second)} means not satisfied"
            self.flow.note(id_, f"check this assumption: {meanings}")
        edges[:] = [first, second]
        return [
            _edge("satisfied", self._target_id(first.target)),
            _edge("not_satisfied", self._target_id(second.target)),
        ]

    def _means_yes(self, edge: FlowEdge) -> bool | None:
        """Return True if the label of an edge means yes, False if it means no, and None if it is unclear."""
        label_words = re.findall(r"[a-z]+", edge.label.lower())
        if any(map(_NO_WORDS.fullmatch, label_words)):
            return False
        return True if any(map(_YES_WORDS.fullmatch, label_words)) else None

    def _leads_back(self, id_: str, edge: FlowEdge) -> bool:
        return edge.target in self.order and self.order.index(edge.target) <= self.order.index(id_)

    def _label(self, edge: FlowEdge) -> str:
        step = self.flow.steps.get(edge.target)
        return repr(edge.label or (step.title if step else "end"))

    def _add_questions(self, id_: str, edges: list[FlowEdge]) -> None:
        """Add a socket for a step with more than two choices, and a sequence of sockets that ask yes-or-no questions."""
        title = self.flow.steps[id_].title
        question_ids = [f"Socket-{self._next + index}" for index in range(len(edges) - 1)]
        self._next += len(question_ids)
        note = f"{len(edges)} choices became {len(question_ids)} questions, since an edge can only depend on yes or no"
        self.flow.note(id_, note)
        self._add_step_socket(id_, [_edge("always", question_ids[0])])
        for index, (socket, edge) in enumerate(zip(question_ids, edges, strict=False)):
            other = question_ids[index + 1] if index + 1 < len(question_ids) else self._target_id(edges[-1].target)
            question = f"After {title}, is {self._label(edge)} the next step? Set `satisfied` to true if it is, and to false otherwise."
            name = self._add_materia(f"Is it {edge.label or self.flow.steps[edge.target].title}", question)
            answers: list[JSON] = [_edge("satisfied", self._target_id(edge.target)), _edge("not_satisfied", other)]
            self.sockets[socket] = {"materia": name, "parse": "json", "edges": answers}

    def _add_step_socket(self, id_: str, edges: list[JSON], *, choice_edges: list[FlowEdge] | None = None) -> None:
        step = self.flow.steps[id_]
        prompt = f"{step.title}." if step.title[-1:].isalnum() else step.title
        if choice_edges:
            prompt += f"\n\nSet `satisfied` to true to choose {self._label(choice_edges[0])}, and to false to choose {self._label(choice_edges[1])}."
        socket: dict[str, JSON] = {"materia": self._add_materia(step.title, prompt)}
        if choice_edges:
            socket["parse"] = "json"
        if edges:
            socket["edges"] = edges
        self.sockets[self.ids[id_]] = socket

    def _add_materia(self, title: str, prompt: str) -> str:
        base = re.sub(r"[^A-Za-z0-9_.-]+", "-", title).strip("-._")[:50]
        base = base if base[:1].isalpha() else f"Step-{base}".rstrip("-")
        name = free_name(base, self.materia)
        # placeholders of another tool are not variables of a loadout
        escaped_prompt = prompt.replace("{{", "{").replace("}}", "}")
        label: dict[str, JSON] = {} if re.sub(r"[-\s]+", "-", title) == base else {"label": title}
        self.materia[name] = {"type": "agent", **label, "tools": "none", "prompt": escaped_prompt}
        return name
