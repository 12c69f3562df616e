"""What the graphs of other tools have in common; and LangGraph's, Mermaid flowcharts and workflows of n8n, read as that."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import compact

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


_HEADER: Final = re.compile(r"^\s*(?:flowchart|graph)\b[^\n;]*", re.IGNORECASE | re.MULTILINE)
_SHAPES: Final = (  # opening and closing of each shape, the longer ones first
    ("(((", ")))"), ("((", "))"), ("([", "])"), ("[[", "]]"), ("[(", ")]"), ("{{", "}}"),
    ("[/", "/]"), ("[\\", "\\]"), ("[", "]"), ("(", ")"), ("{", "}"), (">", "]"),
)  # fmt: skip
_ID: Final = re.compile(r"\s*([^\W_]\w*(?:[.-]\w+)*|_\w*)")
_LABELLED: Final = re.compile(
    r"\s*[<xo]?(?:--(?![->x])|-\.(?!-)|==(?![=>]))\s*(?P<label>[^|\n]+?)\s*(?:-+->|--+[xo]?|\.+-+>?|=+=>?)"
)
_LINK: Final = re.compile(r"\s*[<xo]?(?:--+[->xo]|-\.+-+>?|==+[=>])\s*(?:\|(?P<label>[^|]*)\|)?")
_PASSED_OVER: Final = re.compile(
    r"^\s*(?:%%|(?:subgraph|end|direction|style|classDef|class|click|linkStyle|accTitle|accDescr)\b)"
)
_FRONT_MATTER: Final = re.compile(r"\A\s*---\n.*?\n---\s*\n", re.DOTALL)
_MARKUP: Final = re.compile(r"<[^>]*>")


def read_mermaid(text: str) -> Flow:
    """Read a flowchart: boxes are work, rhombs decide, labelled and dotted links are choices.

    Raises:
        MateriaError: it is no flowchart, or a line cannot be read (``bad_graph``).
    """
    body = _FRONT_MATTER.sub("", text)
    header = _HEADER.search(body)
    if header is None:
        raise MateriaError(
            "This is not a Mermaid flowchart.", hint='it begins with "flowchart TD"', kind="bad_graph"
        )
    flow = Flow("a Mermaid flowchart")
    for line in re.split(r"[\n;]", html.unescape(body[header.end() :])):
        if line.strip() and not _PASSED_OVER.match(line):
            _Line(flow, line).read()
    return flow


class _Line:
    """Reads one statement: nodes, and links from each of them to each of the next."""

    def __init__(self, flow: Flow, line: str) -> None:
        self.flow, self.line, self.at = flow, line, 0

    def read(self) -> None:
        sources = self._nodes()
        while self.line[self.at :].strip():
            link = _LINK.match(self.line, self.at) or _LABELLED.match(self.line, self.at)
            if link is None:
                raise self._unreadable()
            self.at = link.end()
            label = _plain(link["label"] or "")
            dotted = "-." in link[0]
            targets = self._nodes()
            self.flow.ways += [
                Way(source, target, label, choice=bool(label) or dotted)
                for source in sources
                for target in targets
            ]
            sources = targets

    def _nodes(self) -> list[str]:
        nodes = [self._node()]
        while (more := re.compile(r"\s*&").match(self.line, self.at)) is not None:
            self.at = more.end()
            nodes.append(self._node())
        return nodes

    def _node(self) -> str:
        found = _ID.match(self.line, self.at)
        if found is None:
            raise self._unreadable()
        id_, self.at = found[1], found.end()
        title, decides = self._shape()
        style = re.compile(r":::\w+").match(self.line, self.at)
        self.at = style.end() if style else self.at
        known = self.flow.steps.get(id_)
        if known is None or title is not None:
            shown = title or id_
            kind = "decide" if decides else kind_by_name(shown if title else id_)
            self.flow.steps[id_] = Step(shown, kind)
        return id_

    def _shape(self) -> tuple[str | None, bool]:
        rest = self.line[self.at :]
        for opening, closing in _SHAPES:
            if rest.startswith(opening):
                begin = self.at + len(opening)
                if self.line.startswith('"', begin):
                    quote = self.line.find('"', begin + 1)
                    end = self.line.find(closing, quote)
                else:
                    end = self.line.find(closing, begin)
                if end < 0:
                    raise self._unreadable()
                self.at = end + len(closing)
                return _plain(self.line[begin:end]), opening == "{"
        return None, False

    def _unreadable(self) -> MateriaError:
        return MateriaError(
            f"The flowchart cannot be read at {self.line[self.at : self.at + 40].strip()!r}.",
            where=self.line.strip()[:120],
            hint="nodes such as A[Plan], links such as A -->|yes| B",
            kind="bad_graph",
        )


def _plain(text: str) -> str:
    """Return a label without markup and quotes, on one line."""
    return " ".join(_MARKUP.sub(" ", text.strip().strip('"')).split())


_DECIDE: Final = ("if", "switch", "filter", "textClassifier", "sentimentAnalysis")
_PASS: Final = ("noOp", "merge", "wait")
_EACH: Final = ("splitInBatches",)
_LANGUAGE: Final = ("agent", "chainLlm", "openAi", "chainSummarization", "informationExtractor", "lmChat")
_TEXTS: Final = ("text", "prompt", "systemMessage", "message", "content", "url", "operation", "resource")
"""Parameters that say in words what a node does."""
_MOST: Final = 2_000


def read_n8n(document: Mapping[str, Any]) -> Flow:
    """Read a workflow as n8n exports it: ``nodes`` with a type, ``connections`` by the name of their source.

    Raises:
        MateriaError: it is no such workflow (``bad_graph``).
    """
    flow = Flow("an n8n workflow")
    nodes, connections = document.get("nodes"), document.get("connections")
    if not isinstance(nodes, list) or not isinstance(connections, Mapping):
        raise MateriaError("A workflow of n8n has nodes and connections.", kind="bad_graph")
    types = _read_nodes(flow, nodes)
    caught = {one.get("name") for one in nodes if one.get("onError") == "continueErrorOutput"}
    for source, outputs in connections.items():
        for kind, groups in outputs.items() if isinstance(outputs, Mapping) else ():
            if source not in flow.steps:
                continue
            if kind != "main":
                _attach(flow, source, kind, groups)
                continue
            for index, target in _targets(groups):
                failed = source in caught and index == len(groups) - 1
                label = "" if failed else _label(types[source], index)
                if target in flow.steps:
                    decides = flow.steps[source].kind == "decide"
                    flow.ways.append(Way(source, target, label, decides, failed))
    return flow


def _read_nodes(flow: Flow, nodes: list[Any]) -> dict[str, str]:
    """Read the steps; returns the type of each by its name."""
    types: dict[str, str] = {}
    for node in nodes:
        name = node.get("name") if isinstance(node, Mapping) else None
        if not isinstance(name, str):
            raise MateriaError("A node of the workflow has no name.", where="nodes", kind="bad_graph")
        types[name] = _short(str(node.get("type", "")))
        if types[name] == "stickyNote":
            continue
        flow.steps[name] = Step(name, _kind(types[name], node), _about(node))
        if flow.steps[name].kind == "work" and not types[name].startswith(_LANGUAGE):
            flow.note(
                name,
                f"a node of type {types[name] or 'unknown'}; an agent is asked to do it, so make it a utility if a program can",
            )
        elif flow.steps[name].kind == "decide":
            flow.note(
                name, "its conditions are asked as a question, since only outputs decide where to go on"
            )
    return types


def _short(type_: str) -> str:
    return type_.rpartition(".")[2]


def _kind(type_: str, node: Mapping[str, Any]) -> Kind:
    if type_.lower().endswith("trigger") or type_ in ("start", "webhook"):
        return "start"
    if node.get("disabled") is True or type_ in _PASS:
        return "pass"
    return "each" if type_ in _EACH else "decide" if type_ in _DECIDE else "work"


def _label(type_: str, index: int) -> str:
    """Return what an output of a node is called."""
    if type_ in ("if", "filter"):
        return "true" if index == 0 else "false"
    if type_ in _EACH:
        return "done" if index == 0 else "loop"
    return f"output {index + 1}" if type_ in _DECIDE else ""


def _targets(groups: object) -> Iterator[tuple[int, str]]:
    for index, group in enumerate(groups if isinstance(groups, list) else ()):
        for one in group if isinstance(group, list) else ():
            if isinstance(one, Mapping) and isinstance(one.get("node"), str):
                yield index, one["node"]


def _attach(flow: Flow, source: str, kind: str, groups: object) -> None:
    """Take out a node that only serves another: a model, a memory, a tool."""
    served = [target for _, target in _targets(groups) if target in flow.steps]
    what = kind.removeprefix("ai_")
    flow.note(
        source,
        f"{what} of {', '.join(served) or 'nothing'}; who answers is said by wb.agent or model, tools by `tools`, and what was "
        "handed on is told anyway",
    )
    del flow.steps[source]
    flow.ways = [way for way in flow.ways if source not in (way.source, way.target)]


def _about(node: Mapping[str, Any]) -> str:
    parameters = node.get("parameters")
    if not isinstance(parameters, Mapping):
        return ""
    texts = [str(parameters[name]) for name in _TEXTS if isinstance(parameters.get(name), str)]
    options = parameters.get("options")
    if isinstance(options, Mapping) and isinstance(options.get("systemMessage"), str):
        texts.insert(0, options["systemMessage"])
    texts += [compact(parameters[name]) for name in ("conditions", "rules") if name in parameters]
    notes = node.get("notes")
    return "\n".join(([notes] if isinstance(notes, str) else []) + texts)[:_MOST]
