"""A loadout written as LangGraph code and as a draw.io diagram; what has no twin there is said node by node."""

from __future__ import annotations

import ast
import importlib
import sys
from dataclasses import replace
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

from builders import agent, asks, at, config, edge
from materia_nb import MateriaError, Workbench
from materia_nb.loadout import build_graph
from materia_nb.loadout.other_tools import export_graph, import_graph

HOSTILE = "a\"\"\"b'''</mxCell><script>&amp;\\\x00\x1b\n{0}{x}%s"


class Recorder:
    """Stands in for LangGraph: keeps what is added, and runs it one node after another."""

    def __init__(self, _: type) -> None:
        self.nodes, self.edges, self.choices = {}, {}, {}

    def add_node(self, name, function):
        self.nodes[name] = function

    def add_edge(self, source, target):
        self.edges[source] = target

    def add_conditional_edges(self, source, route, led):
        self.choices[source] = (route, led)

    def compile(self):
        return self

    def run(self, state):
        here, way = self.edges["__start__"], []
        while here != "__end__":
            way.append(here)
            state = {**state, **self.nodes[here](state)}
            if here in self.edges:
                here = self.edges[here]
            else:
                route, led = self.choices[here]
                here = led[route(state)]
        return way

    def as_json(self):
        edges = [{"source": one, "target": to} for one, to in self.edges.items()]
        edges += [
            {"source": one, "target": to, "data": label, "conditional": True}
            for one, (_, led) in self.choices.items()
            for label, to in led.items()
        ]
        nodes = [{"id": one} for one in ("__start__", *self.nodes, "__end__")]
        return {"nodes": nodes, "edges": edges}


def built(monkeypatch, text, answer):
    """Run the code with the stand-in, and return the graph that it builds."""
    module = ModuleType("langgraph.graph")
    module.StateGraph, module.START, module.END = Recorder, "__start__", "__end__"
    monkeypatch.setitem(sys.modules, "langgraph", ModuleType("langgraph"))
    monkeypatch.setitem(sys.modules, "langgraph.graph", module)
    names: dict = {}
    exec(compile(text, "exported.py", "exec"), names)  # noqa: S102 - our own code
    return names["build"](answer)


def essay():
    sockets = {
        "Write": asks(edge("Judge"), materia="W"),
        "Judge": asks(edge("Write", "not_satisfied", 3), edge("Send", "satisfied"), materia="J"),
        "Send": asks(materia="S"),
    }
    return config(sockets, entry="Write", materia={name: agent(f"{name}: go") for name in "WJS"})


def test_the_code_of_every_bundled_loadout_compiles_and_its_diagram_is_xml(project):
    wb = Workbench(project)
    for name in wb.loadouts:
        ast.parse(wb.loadouts.export_graph(name).text)
        diagram = ET.fromstring(wb.loadouts.export_graph(name, "drawio").text)  # noqa: S314 - our own
        ids = {cell.get("id") for cell in diagram.iter("mxCell")}
        assert all(
            {cell.get("source", "0"), cell.get("target", "0")} <= ids for cell in diagram.iter("mxCell")
        )
        places = [geometry.attrib for geometry in diagram.iter("mxGeometry") if geometry.get("x")]
        assert len({(one["x"], one["y"]) for one in places}) == len(places)


def test_the_code_goes_the_way_of_the_loadout(monkeypatch):
    verdicts = iter([False, True])
    prompts = []

    def answer(node, prompt, state):
        prompts.append(prompt)
        return {"satisfied": next(verdicts)} if node == "Judge" else {}

    exported = export_graph(build_graph(essay()), "langgraph")
    graph = built(monkeypatch, exported.text, answer)
    assert graph.run({"request": "x"}) == ["Write", "Judge", "Write", "Judge", "Send"]
    assert prompts[0] == "W: go"
    assert ("Judge", "a way out of it may be taken so many times only") in exported.notes
    assert "so many times only" in exported.text


def test_the_way_there_and_back_keeps_sockets_and_edges(monkeypatch):
    text = export_graph(build_graph(essay()), "langgraph").text
    back = import_graph(built(monkeypatch, text, None).as_json()).document
    assert [
        sorted(
            (edge["when"], back["sockets"][edge["to"]]["materia"])
            for edge in one.get("edges", [])
            if edge["to"] != "end"
        )
        for one in back["sockets"].values()
    ] == [[("always", "Judge")], [("not_satisfied", "Write"), ("satisfied", "Send")], []]


def test_loops_lanes_and_processes_are_said_node_by_node(project):
    wb = Workbench(project)
    said = {tuple(note) for note in wb.loadouts.export_graph("Plan-Build-Eval").notes}
    assert ("Socket-1", "it makes the list of a loop: keep the list in the state") in said
    assert any(node == "Plan-Build-Eval" and "budget" in text for node, text in said)
    diagram = wb.loadouts.export_graph("Plan-Build-Eval", "drawio").text
    assert all(text in diagram for _, text in said)


def test_hostile_names_and_prompts_stay_text(monkeypatch):
    graph = build_graph(config({"A": at("P")}, entry="A", materia={"P": agent(HOSTILE, label=HOSTILE)}))
    graph = replace(graph, name=HOSTILE)
    seen = []
    exported = export_graph(graph, "langgraph")
    built(monkeypatch, exported.text, lambda node, prompt, _: seen.append(prompt) or {}).run({})
    assert seen == [HOSTILE]
    diagram = ET.fromstring(export_graph(graph, "drawio").text)  # noqa: S314 - our own
    shown = [cell.get("value") for cell in diagram.iter("mxCell") if cell.get("vertex")]
    assert "</mxCell><script>&amp;" in shown[0]
    assert not diagram.findall(".//script")
    assert all("html=0" in cell.get("style") for cell in diagram.iter("mxCell") if cell.get("value"))


def test_a_socket_that_nothing_leads_to_is_drawn_in_the_first_column():
    graph = build_graph(config({"A": at("P", edge("B")), "B": at("P"), "Alone": at("P")}, entry="A"))
    diagram = ET.fromstring(export_graph(graph, "drawio").text)  # noqa: S314 - our own
    left = {cell.get("value"): cell[0].get("x") for cell in diagram.iter("mxCell") if cell.get("vertex")}
    assert left["P\nAlone"] == left["P\nA"] != left["P\nB"]


def test_there_is_no_other_tool(project):
    with pytest.raises(MateriaError, match="cannot be written for"):
        Workbench(project).loadouts.export_graph(to="visio")


def test_langgraph_itself_takes_the_code():
    pytest.importorskip("langgraph")
    names: dict = {}
    exec(export_graph(build_graph(essay()), "langgraph").text, names)  # noqa: S102 - our own code
    graph = names["build"](lambda node, *_: {"satisfied": True})
    assert importlib.import_module("langgraph").__name__ == "langgraph"
    assert "Judge" in graph.get_graph().nodes
