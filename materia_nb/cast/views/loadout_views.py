"""Loadouts and what they are made of: the graph or its problems, where each field comes from, who answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from materia_nb.agents.agent_table import AgentTable
from materia_nb.display.bundle import GraphPicture, Shown, Table, bundle, picture
from materia_nb.display.escape import plain, shorten
from materia_nb.display.graph_parts import Marks
from materia_nb.display.html import (
    Html,
    html_alert,
    html_table,
)
from materia_nb.display.svg import graph_svg
from materia_nb.display.text import graph_text
from materia_nb.errors import MateriaError, counted
from materia_nb.jsonvalue import pretty
from materia_nb.loadout.facts import as_object, materia_group, materia_kind
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.layers import LayeredConfig
from materia_nb.loadout.report import Report


class ReportView(Shown):
    """The problems of a loadout and, apart from them, the hints."""

    def __init__(self, name: str, report: Report) -> None:
        self.name, self.report = name, report

    def __repr__(self) -> str:
        report = self.report
        lines = [
            f"{plain(self.name)}: {counted(len(report.problems), 'problem')}, {counted(len(report.hints), 'hint')}"
        ]
        lines += [f"  problem {plain(_finding(one))}" for one in report.problems]
        lines += [f"  hint    {plain(_finding(one))}" for one in report.hints]
        return "\n".join(lines)

    def _show(self) -> dict[str, Any]:
        rows = [
            ("problem", one.code, one.source, one.message, one.hint or "") for one in self.report.problems
        ]
        rows += [("hint", one.code, one.source, one.message, one.hint or "") for one in self.report.hints]
        html = html_table(("", "code", "where", "what", "what to do"), rows) if rows else None
        return bundle(repr(self), html=html)


def _finding(one: Any) -> str:
    advice = f" ({one.hint})" if one.hint else ""
    return f"{one.code} at {one.source}: {one.message}{advice}"


class LoadoutView(Shown):
    """A loadout: its graph, or its problems when it cannot be cast."""

    def __init__(
        self, name: str, origin: str, graph: Graph | None, report: Report, notes: Sequence[str] = ()
    ) -> None:
        self.name, self.origin, self.graph, self.report = name, origin, graph, report
        self.notes = tuple(notes)

    def noting(self, *notes: str) -> LoadoutView:
        """Return the same view with lines that a person must not overlook."""
        return LoadoutView(self.name, self.origin, self.graph, self.report, (*self.notes, *notes))

    @property
    def picture(self) -> GraphPicture:
        """The graph as ``svg``, ``text`` and ``mermaid`` source; raises MateriaError when there are problems."""
        if self.graph is None:
            raise MateriaError(
                f"The loadout {self.name!r} has problems, so there is no graph of it.",
                hint="check shows them",
            )
        return GraphPicture(self.graph)

    def __repr__(self) -> str:
        notes = [plain(note) for note in self.notes]
        if self.graph is None:
            return "\n".join([*notes, repr(ReportView(self.name, self.report))])
        lines = [f"{plain(self.name)} (from {plain(self.origin)})", *notes, graph_text(self.graph, Marks())]
        if self.report.hints:
            lines.append(f"{counted(len(self.report.hints), 'hint')}: %materia check shows them")
        return "\n".join(lines)

    def _show(self) -> dict[str, Any]:
        if self.graph is None:
            report = ReportView(self.name, self.report)._repr_mimebundle_()
            alert = html_alert(self.notes) if self.notes else Html()
            return bundle(repr(self), html=f"{alert}{report.get('text/html', '')}")
        svg = graph_svg(self.graph, Marks())
        # Where there is HTML the picture beside it is not drawn, so it stands in it.
        html = f"{html_alert(self.notes)}{svg}" if self.notes else None
        return picture(repr(self), svg, html=html)


def loadouts_view(loadouts: Mapping[str, str], chosen: str | None, config: LayeredConfig) -> Table:
    """The loadouts, where each comes from, which is chosen; and what was left out because it is faulty."""
    found = as_object(config.document.get("loadouts"))
    rows = [
        (
            "*" if name == chosen else "",
            name,
            _layers(config, "loadout", name) or origin,
            str(len(as_object(as_object(found.get(name)).get("sockets")))),
        )
        for name, origin in loadouts.items()
    ]
    rows += [("left out", f"{fault.what} ({fault.where})", fault.hint or "", "") for fault in config.faults]
    return Table(("", "loadout", "from", "sockets"), rows, "no loadouts")


def materia_view(config: LayeredConfig, agents: AgentTable) -> Table:
    """The materia: what each is, the layer that it comes from, and who answers."""
    rows = []
    for name, raw in as_object(config.document.get("materia")).items():
        given = as_object(raw)
        utility = materia_kind(given) == "utility"
        kind = ("utility" if utility else "agent") + (", generator" if given.get("generator") is True else "")
        who = "a process" if utility else agents.for_turn("", name).name
        rows.append(
            (
                name,
                kind,
                materia_group(given),
                _layers(config, "materia", name) or config.origin("materia", name).name,
                who,
                shorten(str(given.get("description", "")), 80),
            )
        )
    return Table(("materia", "kind", "group", "from", "answered by", "description"), rows, "no materia")


def fields_view(config: LayeredConfig, kind: Literal["loadout", "materia"], name: str) -> Table:
    """The fields of a loadout or a materia, and the layer that each came from (R33).

    Raises:
        MateriaError: no layer has it.
    """
    config.origin(kind, name)
    group = "loadouts" if kind == "loadout" else kind
    merged = as_object(as_object(config.document.get(group)).get(name))
    origins = config.origins(kind, name)
    rows = [
        (key, shorten(value if isinstance(value, str) else pretty(value), 120), str(origins[key]))
        for key, value in merged.items()
    ]
    return Table(("field", "value", "from"), rows, "no fields")


def _layers(config: LayeredConfig, kind: Literal["loadout", "materia"], name: str) -> str:
    """Name the layers that the fields came from, the lowest first."""
    came = {layer.name for layer in config.origins(kind, name).values()}
    return ", ".join(layer.name for layer in config.layers if layer.name in came)


def agents_view(agents: AgentTable) -> Table:
    """Who answers what."""
    rows = [(one.name or "everyone else", one.agent) for one in agents.describe()]
    return Table(("materia or socket", "answered by"), rows)
