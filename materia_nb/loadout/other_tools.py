"""Graphs of other tools as loadouts, and loadouts as theirs; what has no twin on the other side is said node by node.

LangGraph's, Mermaid flowcharts and workflows of n8n are read as a flow and placed as sockets: steps become sockets, choices
become guarded edges. A loadout is written as LangGraph code and as draw.io XML.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args
from xml.etree import ElementTree as ET

from materia_nb.errors import MateriaError, needs_one_of
from materia_nb.file_io import read_own, read_plain
from materia_nb.jsonvalue import JSON, compact
from materia_nb.loadout.graph import END, Graph, Socket

StepKind = Literal["work", "decide", "start", "end", "pass", "each"]
"""What a step does: work, decide where to go on, begin, end, nothing, or hand on a list item by item."""

START_NAMES: Final = ("__start__", "start", "begin")
END_NAMES: Final = ("__end__", "end", "stop", "finish", "finished", "exit")
"""What steps are called that only begin or end a graph."""


class Step(NamedTuple):
    """One node: its name, what it does, and what is known of it in words."""

    title: str
    kind: StepKind = "work"
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


def kind_by_name(title: str) -> StepKind:
    """Return what a step is by its title alone."""
    name = title.strip().lower()
    return "start" if name in START_NAMES else "end" if name in END_NAMES else "work"


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
                raise _bad(
                    f"The edge {source!r} -> {target!r} names a node {id_!r} that is not among the nodes."
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
            within = "in a loadout an agent uses tools within its turn, so say in `tools` of that materia which it may use"
            flow.note(id_, f"it runs the tools of {flow.steps[caller].title}; {within}")
            del flow.steps[id_]
            flow.ways = [way for way in flow.ways if id_ not in (way.source, way.target)]
            rest = flow.out_of(caller)
            if len(rest) == 1:  # the choice was whether to use a tool
                flow.ways[flow.ways.index(rest[0])] = rest[0]._replace(choice=False, label="")


def _listed(document: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    value = document.get(name)
    if not isinstance(value, Sequence) or not all(isinstance(one, Mapping) for one in value):
        raise _bad(f"A graph has a list of {name}.", "each is an object", where=name)
    return value


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    if not isinstance(text, (str, int)):
        raise _bad(f"A node or edge has no {name}.", "give it as text")
    return str(text)


def _bad(what: str, hint: str | None = None, *, where: str | None = None) -> MateriaError:
    return MateriaError(what, where=where, hint=hint, kind="bad_graph")


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
        MateriaError: it is not a flowchart, or a line cannot be read (``bad_graph``).
    """
    body = _FRONT_MATTER.sub("", text)
    header = _HEADER.search(body)
    if header is None:
        raise _bad("This is not a Mermaid flowchart.", 'it begins with "flowchart TD"')
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
            pairs = product(sources, targets)
            self.flow.ways += [Way(*pair, label, choice=bool(label) or dotted) for pair in pairs]
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
                quoted = self.line.startswith('"', begin)
                end = self.line.find(closing, self.line.find('"', begin + 1) if quoted else begin)
                if end < 0:
                    raise self._unreadable()
                self.at = end + len(closing)
                return _plain(self.line[begin:end]), opening == "{"
        return None, False

    def _unreadable(self) -> MateriaError:
        what = f"The flowchart cannot be read at {self.line[self.at : self.at + 40].strip()!r}."
        hint = "nodes such as A[Plan], links such as A -->|yes| B"
        return _bad(what, hint, where=self.line.strip()[:120])


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
        raise _bad("A workflow of n8n has nodes and connections.")
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
            raise _bad("A node of the workflow has no name.", where="nodes")
        types[name] = str(node.get("type", "")).rpartition(".")[2]
        if types[name] == "stickyNote":
            continue
        flow.steps[name] = Step(name, _kind(types[name], node), _about(node))
        if flow.steps[name].kind == "work" and not types[name].startswith(_LANGUAGE):
            asked = "an agent is asked to do it, so make it a utility if a program can"
            flow.note(name, f"a node of type {types[name] or 'unknown'}; {asked}")
        elif flow.steps[name].kind == "decide":
            words = "its conditions are asked as a question, since only outputs decide where to go on"
            flow.note(name, words)
    return types


def _kind(type_: str, node: Mapping[str, Any]) -> StepKind:
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
    said = "who answers is said by wb.agent or model, tools by `tools`, and what was handed on is told anyway"
    flow.note(source, f"{what} of {', '.join(served) or 'nothing'}; {said}")
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
        raise _bad("The graph has no nodes.")
    if len(flow.steps) > _MOST_NODES:
        raise _bad(f"The graph has {len(flow.steps)} nodes.", f"at most {_MOST_NODES}")
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
            raise _bad(f"The graph cannot be read: {error}", where=str(source)) from error
    if isinstance(source, str):
        if not source.lstrip().startswith("{"):
            return read_mermaid(source)
        try:
            source = json.loads(source)
        except (ValueError, RecursionError) as error:
            raise _bad(f"The graph is not JSON: {error}.") from error
    if isinstance(source, Mapping):
        return read_n8n(source) if "connections" in source else read_langgraph(source)
    hint = (
        "give a compiled LangGraph graph, its JSON, a Mermaid flowchart, an n8n workflow, or the path of one"
    )
    raise _bad(f"A {type(source).__name__} is not a graph that can be imported.", hint)


def _edge(when: str, to: str) -> dict[str, str]:
    return {"when": when, "to": to}


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
            raise _bad("The graph has nothing but a beginning and an end.")
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
            alone = f"a cast begins at {flow.steps[entries[0]].title} alone"
            flow.note(other, f"the graph begins here too; {alone}")
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
        failed = [_edge("failed", self._to(way.target)) for way in ways if way.failed][:1]
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
                one_way = f"a loadout goes one way, so to {titles[0]} alone"
                self.flow.note(id_, f"goes on to {', '.join(titles)} at once; {one_way}")
        return [_edge("always", self._to(targets[0]))] if targets else []

    def _two(self, id_: str, ways: list[Way]) -> list[JSON]:
        """Return the edges of a yes-or-no choice, the one for yes first."""
        first, second = ways
        meant = [self._means_yes(way) for way in ways]
        if meant[0] is False or (meant[0] is None and meant[1]):
            first, second = second, first
        elif meant == [None, None]:
            if self._leads_back(id_, first) and not self._leads_back(id_, second):
                first, second = second, first
            meanings = f"{self._name(first)} is what satisfied means, and {self._name(second)} the other"
            self.flow.note(id_, f"that {meanings}, is a guess")
        ways[:] = [first, second]
        return [
            _edge("satisfied", self._to(first.target)),
            _edge("not_satisfied", self._to(second.target)),
        ]

    def _means_yes(self, way: Way) -> bool | None:
        """Whether a label means yes; None when it says neither yes nor no."""
        words = re.findall(r"[a-z]+", way.label.lower())
        return False if any(map(_NO.fullmatch, words)) else True if any(map(_YES.fullmatch, words)) else None

    def _leads_back(self, id_: str, way: Way) -> bool:
        return way.target in self.order and self.order.index(way.target) <= self.order.index(id_)

    def _name(self, way: Way) -> str:
        step = self.flow.steps.get(way.target)
        return repr(way.label or (step.title if step else "end"))

    def _questions(self, id_: str, ways: list[Way], failed: list[dict[str, str]]) -> None:
        """Ask one question after the other where there are more than two ways."""
        title = self.flow.steps[id_].title
        asked = [f"Socket-{self._next + place}" for place in range(len(ways) - 1)]
        self._next += len(asked)
        words = f"{len(ways)} ways out take {len(asked)} questions, since an edge knows yes and no"
        self.flow.note(id_, words)
        self._socket(id_, [_edge("always", asked[0])], more=failed)
        for place, (socket, way) in enumerate(zip(asked, ways, strict=False)):
            other = asked[place + 1] if place + 1 < len(asked) else self._to(ways[-1].target)
            question = f"After {title}: is the way to go on {self._name(way)}? You are satisfied if it is."
            name = self._materia(f"Is it {way.label or self.flow.steps[way.target].title}", question)
            edges: list[JSON] = [_edge("satisfied", self._to(way.target)), _edge("not_satisfied", other)]
            self.sockets[socket] = {"materia": name, "parse": "json", "edges": edges}

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
            self._socket(id_, [_edge("always", self._to(begins[0]) if begins else done)])
            return
        first, joint, ends = begins[0], self.ids[last[0]], [self.flow.steps[step].kind for step in last]
        if len(last) > 1 or ends[0] == "decide":  # one socket ends each round, whichever way it went
            joint = f"Socket-{self._next}"
            self._next += 1
            self.ids[joint] = joint
            self.materia["Next"] = {
                "type": "utility",
                "utility": "echo",
                "parse": "json",
                "params": {"output": {}},
            }
            self.sockets[joint] = {"materia": "Next", "edges": [_edge("always", self.ids[first])]}
            first = joint
        self._socket(id_, [_edge("always", self.ids[begins[0]])], generator=True)
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

    def _materia(self, title: str, prompt: str, **fields: JSON) -> str:
        base = re.sub(r"[^A-Za-z0-9_.-]+", "-", title).strip("-._")[:50]
        base = base if base[:1].isalpha() else f"Step-{base}".rstrip("-")
        name, number = base, 2
        while name in self.materia:
            name, number = f"{base}-{number}", number + 1
        # What another tool fills in is not a variable here.
        plain = prompt.replace("{{", "{").replace("}}", "}")
        self.materia[name] = {"type": "agent", "tools": "none", "prompt": plain, **fields}
        return name


OtherTool: TypeAlias = Literal["langgraph", "drawio"]
"""What a loadout can be written for."""
OTHER_TOOLS: Final = get_args(OtherTool)

_NO_TWIN: Final[Mapping[str, Callable[[Graph, Socket], object]]] = {
    "a process answers here, not an agent: run it in the function of this node": lambda _, here: (
        here.is_utility
    ),
    "it makes the list of a loop: keep the list in the state": lambda graph, here: here.id in graph.consumers,
    "it is visited once for each item of a list: walk the list yourself, and answer done behind the last": (
        lambda _, here: here.iterator
    ),
    "its items are worked on side by side, in lanes": lambda graph, here: here.id in graph.regions,
    "a person talks with its agent before it hands over": lambda _, here: here.materia.multi_turn,
    "what it hands over goes into the state by assign": lambda _, here: here.assign,
    "a way out of it may be taken so many times only": (
        lambda _, here: any(edge.max_traversals is not None for edge in here.edges)
    ),
    "a way out of it is taken when it fails: answer failed": (
        lambda _, here: any(edge.when == "failed" for edge in here.edges)
    ),
}
"""What of a socket has no twin in either tool, and of which sockets it is so."""
_CASTS: Final = "budget, limits, repairs of refused answers, what an agent is told of the cast and {{...}} in prompts are yours to do"


class Exported(NamedTuple):
    """A loadout as another tool reads it, and what of it has no twin there; the text says that too."""

    text: str
    notes: tuple[Note, ...]


def export_graph(graph: Graph, to: OtherTool) -> Exported:
    """Write a loadout as LangGraph code (``langgraph``) or as a draw.io diagram (``drawio``).

    Raises:
        MateriaError: there is no such tool (``usage``).
    """
    needs_one_of(to, OTHER_TOOLS, f"A loadout cannot be written for {to!r}.", "usage")
    pairs = product(graph.sockets.items(), _NO_TWIN.items())
    notes = [Note(id_, text) for (id_, here), (text, so) in pairs if so(graph, here)]
    notes.append(Note(graph.name, _CASTS))
    return Exported((_langgraph if to == "langgraph" else _drawio)(graph, notes), tuple(notes))


class _WayOn(NamedTuple):
    """A way out of a socket, the first that matches is taken: what must have been said, where it leads, how often."""

    said: tuple[str, ...]
    to: str
    most: int | None = None


def _ways(graph: Graph, here: Socket) -> list[_WayOn]:
    """Return the ways out of a socket in the order in which they are looked at: exits of loops, then edges."""
    routes = [one for loop in graph.loops.values() for one in loop.routes if one.source == here.id]
    exits = [_WayOn(tuple(dict.fromkeys(["done", one.condition])), one.target) for one in routes]
    edges = [_WayOn((edge.when,), edge.to, edge.max_traversals) for edge in here.edges]
    return [*exits, *edges] or [_WayOn(("always",), END)]


_CODE: Final = Path(__file__).with_name("langgraph.py.txt")
"""The code of any graph, with places for what is this one's own."""


def _langgraph(graph: Graph, notes: list[Note]) -> str:
    prompts, ways = [], []
    for id_, here in graph.sockets.items():
        ends = ((list(one.said), "END" if one.to == END else repr(one.to)) for one in _ways(graph, here))
        led = [f"({said}, {to})" for said, to in ends]
        prompts.append(f"    {id_!r}: {here.materia.prompt!a},")
        ways.append(f"    {id_!r}: [{', '.join(led)}],")
    return read_own(_CODE).format(
        notes="\n".join(f"    ({note.node!a}, {note.text!a})," for note in notes),
        prompts="\n".join(prompts),
        ways="\n".join(ways),
        entry=repr(graph.entry),
    )


_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WIDE, _HIGH = 200, 60


def _drawio(graph: Graph, notes: list[Note]) -> str:
    file = ET.Element("mxfile")
    model = ET.SubElement(ET.SubElement(file, "diagram", name=_xml_text(graph.name)), "mxGraphModel")
    root = ET.SubElement(model, "root")
    ET.SubElement(root, "mxCell", {"id": "0"})
    ET.SubElement(root, "mxCell", {"id": "1", "parent": "0"})
    cells = {id_: f"socket-{number}" for number, id_ in enumerate(graph.sockets)} | {END: "end"}
    places = _places(graph)
    bottom = max(row for _, row in places.values()) + 1
    for id_, (column, row) in places.items():
        here = graph.sockets.get(id_)
        label = "end" if here is None else f"{here.materia.label}\n{id_}"
        shape = "ellipse" if here is None else "shape=process" if here.is_utility else "rounded=1"
        _box(root, cells[id_], label, shape, (column * _WIDE * 1.5, row * _HIGH * 2, _WIDE, _HIGH))
    for here in graph.sockets.values():
        for place, way in enumerate(_ways(graph, here)):
            words = " and ".join(one for one in way.said if one != "always" or len(way.said) == 1)
            most = "" if way.most is None else f", at most {way.most}"
            style = "edgeStyle=orthogonalEdgeStyle" + (";dashed=1" if "done" in way.said else "")
            ends = {"edge": "1", "source": cells[here.id], "target": cells[way.to]}
            label = "" if words + most == "always" else words + most
            cell = _cell(root, f"{cells[here.id]}-{place}", label, style, ends)
            ET.SubElement(cell, "mxGeometry", {"relative": "1", "as": "geometry"})
    said = "\n".join(["What has no twin here:", *(f"{note.node}: {note.text}" for note in notes)])
    below = (0, bottom * _HIGH * 2, _WIDE * 4, _HIGH * 4)
    _box(root, "notes", said, "text;align=left;verticalAlign=top", below)
    ET.indent(file)
    return ET.tostring(file, encoding="unicode")


def _places(graph: Graph) -> dict[str, tuple[int, int]]:
    """Return the column and the row of each socket, by how many steps it is from the entry."""
    depths, waiting = {graph.entry: 0}, [graph.entry]
    for id_ in waiting:
        for way in _ways(graph, graph.sockets[id_]) if id_ != END else ():
            if way.to not in depths:
                depths[way.to] = depths[id_] + 1
                waiting.append(way.to)
    for id_ in (*graph.sockets, END):
        depths.setdefault(id_, 0)
    columns = list(depths.values())
    return {id_: (depth, columns[:place].count(depth)) for place, (id_, depth) in enumerate(depths.items())}


def _box(root: ET.Element, id_: str, label: str, style: str, box: tuple[float, float, float, float]) -> None:
    cell = _cell(root, id_, label, f"whiteSpace=wrap;{style}", {"vertex": "1"})
    place = {name: f"{size:g}" for name, size in zip(("x", "y", "width", "height"), box, strict=True)}
    ET.SubElement(cell, "mxGeometry", {**place, "as": "geometry"})


def _cell(root: ET.Element, id_: str, label: str, style: str, more: Mapping[str, str]) -> ET.Element:
    """Add a cell; draw.io reads its label as it is, not as markup (``html=0``)."""
    shown = {"id": id_, "parent": "1", "value": _xml_text(label), "style": f"html=0;{style};"}
    return ET.SubElement(root, "mxCell", {**shown, **more})


def _xml_text(text: str) -> str:
    """Return a text without the characters that XML cannot have."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
