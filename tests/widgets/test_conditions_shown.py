"""Test that conditions are drawn, named and offered from the table, and that the front end contains no names of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import display_graphs as graphs
from materia_nb import Workbench
from materia_nb.display.graph_parts import CastOverlay, advance_label, card_lines, line_legend
from materia_nb.display.layout import layout_graph
from materia_nb.display.svg import THEMES, graph_svg
from materia_nb.display.text import graph_mermaid, graph_text, mermaid_text
from materia_nb.loadout.graph import Advance
from materia_nb.loadout.vocabulary import CONDITION_SPECS, CONDITIONS
from materia_nb.widgets import frontend
from materia_nb.widgets.design_session import DesignSession
from materia_nb.widgets.design_slices import design_slice
from materia_nb.widgets.graph_elements import GraphElements, drawn_conditions
from materia_nb.widgets.predict import _LEGEND

FRONT = Path(frontend.__file__).parent / "front"


def numbered(condition):
    """Return a graph whose edge has a number, so that its condition sign is shown even if it always matches."""
    one = graphs.socket("A", "Ask", (condition, "A"), ("always", "B"))
    return graphs.graph("G", [one, graphs.socket("B", "Build")])


@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_condition_is_drawn_as_defined_in_the_condition_table(condition):
    row, graph = CONDITION_SPECS[condition], numbered(condition)
    number = "1 " if row.overlaps(CONDITION_SPECS["always"]) else ""  # else the order says nothing
    for theme, own in (("light", row.light), ("dark", row.dark)):
        colour = THEMES[theme]["line"] if row.matches_any_output else own
        dashes = f' stroke-dasharray="{row.dashes[0]} {row.dashes[1]}"' if row.dashes else ""
        picture = graph_svg(graph, colours=THEMES[theme])
        line = re.search('<path data-edge="edge:0:A"[^>]*>', picture)[0]
        assert f'stroke="{colour}" stroke-width="1.6"{dashes} stroke-linecap' in line
        assert re.search(f'fill="{own}"[^>]*>{number}{row.short}</text>', picture)
    assert f"1. {row.sign} → A" in graph_text(graph)
    assert mermaid_text(f"{number}{row.sign}") in graph_mermaid(graph)
    assert row.sign in _LEGEND


@pytest.mark.parametrize("condition", CONDITIONS)
def test_label_of_an_advance_shows_its_condition(condition):
    advance = Advance("i", "state.rows", condition)
    waits = condition != "always"
    assert advance_label(advance) == f"advance ▸ i{f' when {condition}' if waits else ''}"
    short = advance_label(advance, short=True)
    assert short == f"advance ▸ i{f' {CONDITION_SPECS[condition].short}' if waits else ''}"
    one = replace(graphs.socket("A", "Ask", ("always", "end")), advance=advance)
    assert short in " ".join(card_lines(one, CastOverlay(), 1000.0))


def test_legend_explains_the_line_style_of_each_condition():
    assert line_legend() == "solid line: always or ✓ satisfied · dotted: ✗ not_satisfied · dashed: ⚠ failed"


@pytest.mark.parametrize("condition", CONDITIONS)
def test_canvas_has_a_class_and_style_per_condition(condition):
    edge = next(
        one
        for one in GraphElements(numbered(condition), layout_graph(numbered(condition))).edges
        if one["id"] == "e:edge:0:A"
    )
    assert f"when-{condition}" in edge["classes"].split()
    rule = canvas_rules()[f"edge.when-{condition}"]
    row = CONDITION_SPECS[condition]
    colour = "line" if row.matches_any_output else condition
    assert (rule["line-color"], rule["target-arrow-color"], rule["color"]) == (colour, colour, condition)
    assert ("line-dash-pattern" in rule) == (row.dashes is not None)


def canvas_rules():
    """Run the JavaScript module that creates the cytoscape styles, with each colour replaced by its purpose."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    code = (FRONT / "canvas_style.js").read_text("utf-8")
    colours = {use: use for use in THEMES["light"]}
    code += f"\nconsole.log(JSON.stringify(canvasStyle({json.dumps(colours)}, {json.dumps(drawn_conditions())}, 'x')));"
    result = subprocess.run([node, "--input-type=module"], input=code, capture_output=True, text=True, check=True)
    return {rule["selector"]: rule["style"] for rule in json.loads(result.stdout)}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_designer_offers_each_condition(condition, project):
    with closing(Workbench(project)) as bench:
        session = DesignSession(bench, bench.design("New", new=True))
        for materia in ("Plan", "Build"):
            session.on_message("add", {"materia": materia})
        session.on_message("connect", {"from": "Socket-1", "to": "Socket-2", "when": condition})
        told = design_slice(session)["inspector"]
        row = CONDITION_SPECS[condition]
        assert told["sentence"] == f"From Plan {row.phrase} to Build."
        session.on_message("pick", {"part": ["socket", "Socket-1"]})
        told = design_slice(session)["inspector"]
        assert [condition, row.choice] in told["conditions"]
        assert [(way["when"], way["tone"]) for way in told["ways"]] == [(row.choice, row.tone)]


def test_condition_colours_exist_in_the_style_sheet():
    style = (FRONT / "front.css").read_text("utf-8")
    assert [
        condition_spec.tone
        for condition_spec in CONDITION_SPECS.values()
        if condition_spec.tone and f".mnb-t-{condition_spec.tone} " not in style
    ] == []


def test_front_end_contains_no_condition_names():
    statuses = ("satisfied", "failed")  # words that stand for other things there too
    guards = [f"when-{word}" if word in statuses else word for word in CONDITIONS if word != "always"]
    for file in sorted([*FRONT.glob("*.js"), *FRONT.glob("*.css")]):
        text = file.read_text("utf-8")
        found = [word for word in guards if word in text] + re.findall(
            r"\.satisfied\b|\bwhen ?={2,3} ?[\"']\w+|data-when|[\"']always[\"']", text
        )
        assert found == [], file.name
