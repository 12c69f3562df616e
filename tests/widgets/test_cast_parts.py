"""Test the table of panel parts: what each row defines, and that the front end can draw each kind of part."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from magics_helpers import new_shell
from materia_nb import Workbench
from materia_nb.display.blocks import (
    Action,
    Code,
    FactTable,
    Fold,
    Heading,
    JsonTree,
    Line,
    Table,
    blocks_as_text,
)
from materia_nb.errors import MateriaError
from materia_nb.magics.magic import next_words
from materia_nb.widgets import cast_parts, frontend
from materia_nb.widgets.cast_panel import CastPanel
from materia_nb.widgets.cast_parts import PARTS, Part, content_parts
from panel_helpers import from_page

HOSTILE = "<img src=x onerror=window.__owned=1>"


def steps_made(seen):
    return [Line(f"{len(seen.shown.steps)} steps in {seen.shown.graph.name}")]


@pytest.fixture
def made_up(monkeypatch):
    """Add a panel part that consists only of a function and a row of the table."""
    part = Part(name="made-up", at="dock", title="Made up", blocks=steps_made)
    monkeypatch.setitem(PARTS, part.name, part)
    return part


def line_of(panel):
    return panel.front.get_state()["made-up"]["blocks"][0]["text"]


def test_part_added_to_the_parts_table_becomes_a_tab(cast, made_up):
    panel = CastPanel(cast)
    try:
        assert line_of(panel) == "0 steps in Plan-Build-Eval"
        assert panel.front.surface["tabs"][-1] == ["made-up", "Made up"]
        panel.guarded(panel.on_message)({"kind": "dock", "dock": "made-up"})
        assert (panel.front.surface["dock"], panel.front.surface["notice"]) == ("made-up", {})
        cast.run(steps=3)
        panel.refresh()
        assert line_of(panel) == "3 steps in Plan-Build-Eval"
        panel.show_step(1)
        assert line_of(panel) == "1 steps in Plan-Build-Eval", "what is looked at is the past"
        assert {"name": "made-up", "at": "dock"} in panel.front.get_state()["parts"]
    finally:
        panel.close()


def test_part_can_be_shown_alone(cast, made_up):
    panel = cast.show("made-up")
    assert (panel.front.surface["alone"], panel.front.surface["dock"]) == ("made-up", "made-up")
    assert panel.graph is None
    assert panel._repr_mimebundle_()["text/plain"] == "0 steps in Plan-Build-Eval"
    panel.close()
    with pytest.raises(MateriaError) as raised:
        cast.show("made-ups")
    assert "made-up" in raised.value.hint


def test_show_verb_accepts_and_completes_parts(project, monkeypatch, made_up):
    monkeypatch.chdir(project)
    shell = new_shell()
    shell.run_line_magic("materia", "use Ask")
    shell.run_line_magic("materia", "cast hello")
    panel = shell.run_line_magic("materia", "show made-up")
    assert panel.front.surface["alone"] == "made-up"
    panel.close()
    assert next_words(lambda: Workbench(project), ["show"]) == cast_parts.standalone_names()
    assert "made-up" in cast_parts.standalone_names()


def test_help_lists_panel_parts():
    # The help is made when the verbs are registered, by when a row of the source is there.
    code = """
from materia_nb.widgets.cast_parts import PARTS, Part
PARTS["made-up"] = Part(name="made-up", at="dock", title="Made up", blocks=lambda seen: [])
from materia_nb.magics import verbs
from materia_nb.magics.registry import help_text
print(help_text("show"))
"""
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "toolbar, graph or made-up" in result.stdout


def test_panel_parts_can_be_shown_alone_and_the_timeline_is_opened_first():
    assert {"timeline", "items", "state", "handoff", "reply", "graph"} <= set(cast_parts.standalone_names())
    assert set(cast_parts.standalone_names()) <= set(PARTS)
    assert cast_parts.dock_names()[0] == "timeline"


def test_each_part_has_a_unique_message_name():
    slices = [part.slice for part in content_parts()]
    assert len(set(slices)) == len(slices)
    assert [name for name in slices if hasattr(frontend.Front, name)] == [], "a widget has that already"
    assert all(part.title for part in PARTS.values() if part.at == "dock")


def test_tabs_show_counts_and_are_hidden_when_empty(bench, cast):
    events = [{"type": "first", "message": "m"}, {"type": "second", "message": HOSTILE}]
    bench.agent("Maintain", lambda: {"satisfied": True, "event": events})
    panel = CastPanel(cast)
    tabs = lambda: dict(panel.front.surface["tabs"])  # noqa: E731
    try:
        assert tabs()["items"] == "Items"
        assert not {"events", "compare"} & tabs().keys()
        cast.run(steps=2)
        panel.refresh()
        assert tabs()["items"] == "Items 0/3"
        cast.run("end")
        panel.refresh()
        count = 2 * sum(step.socket == "Socket-4" for step in cast.steps)
        assert (tabs()["items"], tabs()["events"]) == ("Items 3/3", f"Events {count}")
        (shown,) = panel.front.events["blocks"]
        assert len(shown["rows"]) == count
        assert shown["rows"][0][-2:] == ["second", HOSTILE], "the latest is the first"
        panel.on_message(from_page(panel, "fork", step=2))
        panel.refresh()
        assert (tabs()["items"], tabs()["compare"]) == ("Items 0/3", "Compare")
        assert panel.front.surface["dock"] == "compare"
        panel.cast.close()
    finally:
        panel.close()


def test_slow_part_is_computed_only_while_open(cast):
    panel = CastPanel(cast)
    assert panel.front.compare == {}
    panel.guarded(panel.on_message)({"kind": "dock", "dock": "compare"})
    assert "Fork the cast at a step" in panel.front.compare["blocks"][0]["text"]
    panel.close()


# -- the front-end --------------------------------------------------------------------------------------


def front(name):
    return (Path(frontend.__file__).parent / "front" / name).read_text("utf-8")


def test_front_end_has_a_drawing_function_for_each_part():
    registered = re.search(r"BODIES = \{(.*?)\};", front("bodies.js"), re.DOTALL)[1]
    bodies = dict(re.findall(r"^ +(\w+): (\w+),$", registered, re.MULTILINE))
    assert set(bodies) == {part.slice for part in PARTS.values() if part.state is not None}
    imported = dict(re.findall(r'^import \{ (\w+) \} from "\./(\w+\.js)";$', front("bodies.js"), re.MULTILINE))
    assert set(imported) == set(bodies.values())
    for function, module in imported.items():
        assert f"export function {function}(host, send" in front(module)


def test_panel_code_does_not_name_individual_parts_of_the_dock():
    for module in ("shell.js", "dock.js"):
        for name in cast_parts.dock_names():
            assert not re.search(rf"""["'.]{name}\b(?! and)""", front(module)), (module, name)


def test_part_shown_alone_has_the_style_of_its_position():
    styled = set(re.findall(r'\[data-alone="(\w+)"\]', front("front.css")))
    assert styled == {part.at for part in PARTS.values()}


# -- for readers without widgets ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, words",
    [
        ("items", "title"),
        ("timeline", "socket"),
        ("state", "state = {"),
        ("reply", "ready"),
        ("graph", "ready"),
    ],
)
def test_each_part_has_a_text_form(cast, name, words):
    cast.run(steps=1)
    panel = cast.show(name)
    bundle = panel._repr_mimebundle_()
    assert words in bundle["text/plain"]
    assert ("image/svg+xml" in bundle) == (words == "ready")
    panel.close()


def test_text_of_panel_parts_is_formatted_as_expected():
    blocks = [
        Heading("Tokens"),
        Line("enough of them"),
        Table(("name", "count"), [("a", "1")]),
        FactTable([("in", "2")]),
        Fold("more", [Code("as it\nwas"), JsonTree({"x": 1})]),
        Action("The cast is at Plan", "Show it", "show it", "select", {}),
    ]
    assert (
        blocks_as_text(blocks)
        == """\
Tokens
enough of them

name  count
────  ─────
a     1

in: 2
more
  as it
  was
  {
    "x": 1
  }
The cast is at Plan"""
    )
    assert blocks_as_text([]) == ""
