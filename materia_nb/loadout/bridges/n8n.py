"""Workflows of n8n, read as a flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import compact
from materia_nb.loadout.bridges.flow import Flow, Kind, Step, Way

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
