"""The config that is in effect, and whether somebody can answer the chosen loadout's agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from materia_nb.agents.base import Agent
from materia_nb.agents.person import PersonAgent
from materia_nb.agents.ready import TellsReadiness
from materia_nb.agents.tools import choose_tools
from materia_nb.doctor.findings import Finding
from materia_nb.errors import MateriaError
from materia_nb.loadout.graph import Graph, Materia, Socket
from materia_nb.loadout.layers import Layer
from materia_nb.workbench import Workbench


def config(wb: Workbench) -> Iterator[Finding]:
    """Look at the layers of the config and at the chosen loadout with its agents."""
    try:
        layers, name = wb.config.layers, wb.chosen
    except MateriaError as error:
        yield Finding("config", "the layers", "missing", error.what, error.hint or "")
        return
    yield from (_layer(layer) for layer in layers)
    if name is None:
        yield Finding(
            "config", "the loadout", "missing", "there is none", "load FILE, or define one in a cell"
        )
        return
    try:
        graph = wb.graph()
    except MateriaError as error:
        yield Finding(
            "config", f"loadout {name}", "missing", error.what, "%materia check shows what is wrong"
        )
        return
    hints = len(wb.check(name).hints)
    found = f"{len(graph.sockets)} sockets" + (f", {hints} hints" if hints else "")
    yield Finding("config", f"loadout {name}", "ok", found, "%materia check shows the hints" if hints else "")
    yield from agents(wb, graph)


def _layer(layer: Layer) -> Finding:
    if layer.fault is not None:
        return Finding(
            "config", str(layer), "missing", f"left out: {layer.fault.what}", layer.fault.hint or ""
        )
    return Finding(
        "config", str(layer), "ok", f"{len(layer.loadouts)} loadouts, {len(layer.materia)} materia"
    )


def agents(wb: Workbench, graph: Graph) -> Iterator[Finding]:
    """Say for each agent of a loadout who answers, and what speaks against it."""
    for socket in graph.sockets.values():
        if not socket.is_utility:
            yield _agent(socket, wb.agents.for_turn(socket.id, socket.materia.id), wb.project)


def _agent(socket: Socket, agent: Agent, project: Path) -> Finding:
    materia = socket.materia
    what, who = f"{socket.id} ({materia.label})", f"answered by {agent.name}"
    trouble = agent.not_ready(materia.model, project) if isinstance(agent, TellsReadiness) else None
    if trouble is not None:
        return Finding("agents", what, "missing", f"{who}: {trouble.what}", trouble.hint or "")
    if isinstance(agent, PersonAgent) and materia.model is not None:
        todo = f"to let a model or a program answer: %materia agent {_named(materia)} WHO"
        return Finding("agents", what, "hint", f"{who}, though it asks for the model {materia.model}", todo)
    if unknown := choose_tools(materia.tools)[1]:
        todo = "there are no such tools; a model that answers does without"
        return Finding("agents", what, "hint", f"{who}; unknown tools: {', '.join(unknown)}", todo)
    return Finding("agents", what, "ok", who)


def _named(materia: Materia) -> str:
    return f'"{materia.id}"' if " " in materia.id else materia.id
