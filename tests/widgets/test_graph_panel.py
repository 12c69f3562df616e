"""Test the graph panel without a browser: the data for the page, and the handling of its messages."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ipywidgets as ui
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipywidgets.widgets import widget as widget_module

from cast_helpers import loop_agents, loop_config, start
from display_graphs import chain, graph, hello, loop, nested, rework, socket, tangle
from display_hostile import HOSTILE, hostile_graph, hostile_marks
from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.cast.views.status import overlay_of
from materia_nb.cast.workbench import Workbench
from materia_nb.display.blocks import blocks_as_json
from materia_nb.display.escape import Html
from materia_nb.display.geometry import bend_segments, rounded_polyline, text_width
from materia_nb.display.graph_parts import SMALL_SIZE, CastOverlay, link_label, links
from materia_nb.display.layout import Direction, layout_graph
from materia_nb.display.svg import LIGHT, OUTSET
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Edge, ExitRoute, Graph
from materia_nb.widgets import GraphPanel, Panel, graph_panel, show_panel
from materia_nb.widgets import base as base_module
from materia_nb.widgets.base import CALLBACKS, show_html
from materia_nb.widgets.graph_elements import GraphElements
from materia_nb.widgets.selection import Inspector, selectable_parts


def live() -> int:
    return len(widget_module._instances)


@pytest.fixture(autouse=True)
def tidy():
    """Assert that no test leaves open widgets."""
    before = set(widget_module._instances)
    yield
    base_module._open_panels.clear()
    for key in set(widget_module._instances) - before:
        if key in widget_module._instances:
            widget_module._instances[key].close()


def send(panel: GraphPanel, **message: Any) -> None:
    """Send a message as the page does."""
    panel.front._handle_custom_msg(message, [])


def drawn(made: Any, **options: Any) -> GraphElements:
    return GraphElements(made, layout_graph(made, **options))


def click(panel: GraphPanel, element: str) -> None:
    send(panel, kind="pick", element=element)


def classes(panel: GraphPanel, key: str) -> set[str]:
    scene = panel.front.scene
    fixed = next(one["classes"] for one in (*scene["nodes"], *scene["edges"]) if one["id"] == key)
    return {*fixed.split(), *panel.front.look.get(key, {"classes": ""})["classes"].split()}


def words(panel: GraphPanel, key: str) -> str:
    return panel.front.look[key]["words"]


def label(panel: GraphPanel, key: str) -> str:
    """Return the label text of an edge, or an empty string if it has none."""
    chip = key.replace("e:", "c:", 1)
    return "".join(re.findall(r">([^<]+)</text>", svg(panel, chip))) if chip in panel.front.look else ""


def svg(panel: GraphPanel, key: str) -> str:
    return panel.front.look[key]["svg"]


def elements(panel: GraphPanel) -> list[dict[str, Any]]:
    return [*panel.front.scene["nodes"], *panel.front.scene["edges"]]


def details(panel: GraphPanel) -> str:
    """Return the text that the inspector shows for the selection."""
    inspector = Inspector(panel.graph, panel.cast and panel.cast.now)
    return json.dumps(blocks_as_json(inspector.about(*panel.selected)), ensure_ascii=False)


def overlapping() -> Graph:
    """Return a graph with two loops that share a socket, neither of which contains the other."""
    return graph(
        "overlapping",
        [
            socket("A", "a", ("always", "B")),
            socket("B", "b", ("satisfied", "C"), ("not_satisfied", "A")),
            socket("C", "c", ("satisfied", "B"), ("always", "end")),
        ],
        [loop("one", ["A", "B"], None), loop("two", ["B", "C"], None, ("C", "always", "end"))],
    )


def unreachable() -> Graph:
    """Return a graph with two unreachable sockets."""
    return graph("apart", [socket("A", "a"), socket("X", "x", ("always", "Y")), socket("Y", "y")])


ALL: dict[str, Callable[[], Graph]] = {
    "hello": hello,
    "rework": rework,
    "nested": nested,
    "overlapping": overlapping,
    "unreachable": unreachable,
    "chain": lambda: chain(12),
    "tangle": lambda: tangle(30),
    "hostile": lambda: hostile_graph(HOSTILE),
}


# -- elements ------------------------------------------------------------------------------


DIRECTIONS: list[Direction] = ["down", "right"]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", ALL)
def test_every_part_of_a_graph_is_drawn_as_one_element(name: str, direction: Direction):
    made = ALL[name]()
    scene = drawn(made, direction=direction)
    found = list(scene.selections.values())
    assert len(found) == len(set(found))
    shown = {line.link.key for line in scene.placed.edges}
    expected = {
        *(("socket", key) for key in made.sockets),
        *(("loop", key) for key in made.loops if key in scene.placed.loops),
        *(("exit" if link.kind == "exit" else "edge", link.key) for link in links(made) if link.key in shown),
    }
    assert set(found) == expected - {("edge", "start")}
    assert len(scene.edges) == len(scene.placed.edges)


def test_card_picture_has_size_and_border():
    scene = drawn(rework())
    look = scene.appearance(CastOverlay())
    for id_, box in scene.placed.nodes.items():
        size = f'width="{box.w + 2 * OUTSET:.0f}" height="{box.h + 2 * OUTSET:.0f}"'
        assert size in look[f"n:{id_}"]["svg"]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", ALL)
def test_elements_refer_to_existing_elements(name: str, direction: Direction):
    """Both ends of each edge must exist, and ids must be unique."""
    scene = drawn(ALL[name](), direction=direction)
    nodes = {node["id"] for node in scene.nodes}
    for edge in scene.edges:
        assert {edge["source"], edge["target"]} <= nodes
        assert edge["source"] != edge["target"]
    ids = [one["id"] for one in (*scene.nodes, *scene.edges)]
    assert len(ids) == len(set(ids))
    assert scene.appearance(CastOverlay()).keys() <= set(ids)


@pytest.mark.parametrize("name", ALL)
def test_graph_data_for_the_page_is_serializable(name: str):
    """Tooltips must be absent from the data, because the page would insert them as markup."""
    panel = GraphPanel(ALL[name]())
    assert panel.picture.children[0].tooltip_source == ""
    for trait in (panel.front.scene, panel.front.look, panel.front.flags):
        text = json.dumps(trait, ensure_ascii=False, allow_nan=False)
        assert "tooltip" not in text
        assert len(text.encode("utf-8")) < 120_000


def test_number_of_widgets_does_not_grow_with_the_graph():
    small = len(list(base_module.widgets_in(GraphPanel(hello()).view)))
    assert len(list(base_module.widgets_in(GraphPanel(tangle(100)).view))) == small < 30


def test_bundled_loadouts_are_drawn(project: Path):
    bench = Workbench(project)
    assert bench.loadouts
    for name in bench.loadouts:
        made = bench.graph(name)
        panel = GraphPanel(made)
        sockets = [node for node in panel.front.scene["nodes"] if node["id"].startswith("n:")]
        assert len(sockets) == len(made.sockets)
        panel.close()


def test_each_kind_of_socket_has_a_css_class_and_a_label():
    panel = GraphPanel(rework())
    assert {"socket", "utility"} <= classes(panel, "n:Socket-1")
    assert {"agent", "generator", "multi-turn"} <= classes(panel, "n:Socket-3")
    assert "Ignore-Artifacts (Socket-1)\nutility, entry" in words(panel, "n:Socket-1")
    assert "agent, generator, multi-turn" in words(panel, "n:Socket-3")
    assert "(derived)" in words(panel, "n:Socket-6")


def test_edges_show_order_condition_and_limit():
    panel = GraphPanel(rework())
    assert label(panel, "e:edge:0:Socket-5") == "✓"
    assert label(panel, "e:edge:1:Socket-5") == "✗ max 3"
    assert "✗ not_satisfied · max 3" in words(panel, "e:edge:1:Socket-5")
    assert "when-not_satisfied" in classes(panel, "e:edge:1:Socket-5")
    assert label(panel, "e:edge:0:Socket-1") == ""
    panel.show_marks(CastOverlay(budgets={("Socket-5", 1): (2, 3)}))
    assert label(panel, "e:edge:1:Socket-5") == "✗ 2/3"


def test_exits_keep_their_ids():
    panel = GraphPanel(rework())
    assert [edge["pick"] for edge in panel.front.scene["edges"] if "exit" in edge["classes"].split()] == [
        ["exit", "loop-exit:workItemIteration:exit:Socket-6:satisfied"],
        ["exit", "loop-exit:workItemIteration:exit:Socket-6:not_satisfied"],
    ]


def test_loop_shows_list_and_progress():
    panel = GraphPanel(rework())
    panel.show_marks(CastOverlay(progress={"workItemIteration": (2, 5)}))
    assert "2 of 5" in svg(panel, "l:workItemIteration")
    assert words(panel, "l:workItemIteration").endswith("consumes workItems of Auto-Plan · 2/5 done")


def test_collapsed_loop_shows_the_position_of_the_cast():
    panel = GraphPanel(rework())
    panel.show_marks(CastOverlay(current="Socket-5"))
    whole = {element["id"] for element in elements(panel)}
    send(panel, kind="fold", element="l:workItemIteration")
    folded = {one["id"] for one in elements(panel)}
    assert whole - folded >= {"n:Socket-4", "n:Socket-5", "n:Socket-6", "e:edge:1:Socket-5"}
    assert "current" in classes(panel, "l:workItemIteration")
    assert panel.front.flags["current"] == "l:workItemIteration"
    panel.select("socket", "Socket-5")
    assert panel.front.flags["selected"] is None, "it is selected, but not seen"
    send(panel, kind="fold", element="l:workItemIteration")
    assert {one["id"] for one in elements(panel)} == whole
    assert panel.front.flags["selected"] == "n:Socket-5"


def test_flow_direction_can_be_changed():
    panel = GraphPanel(rework())
    before = panel.front.scene
    send(panel, kind="turn")
    after = panel.front.scene
    assert {before["direction"], after["direction"]} == {"down", "right"}
    assert after["number"] > before["number"]
    assert after["fresh"]


def test_layout_fits_the_space_and_keeps_its_direction_during_a_cast():
    wide, panel = GraphPanel(rework()), GraphPanel(rework())
    send(wide, kind="room", w=1500, h=420)
    assert wide.front.scene["direction"] == "right"
    send(panel, kind="room", w=400, h=900)
    assert panel.front.scene["direction"] == "down"
    panel.show_marks(CastOverlay(visits={"Socket-4": 1}))
    send(panel, kind="room", w=1500, h=420)
    assert panel.front.scene["direction"] == "down", "a dock that opens does not turn it"
    send(panel, kind="room", w=400, h=900)
    scene = panel.front.scene
    for strange in (float("nan"), -1, 0, 1e300):
        send(panel, kind="room", w=strange, h=100)
    send(panel, kind="room", w=401, h=899)
    assert panel.front.scene is scene, "nothing moves where nothing more can be said"
    panel.turn("right")
    send(panel, kind="room", w=402, h=900)
    assert panel.front.scene["direction"] == "right"
    assert panel.notice.value == ""


def test_graph_of_a_panel_can_be_replaced():
    panel = GraphPanel(rework())
    panel.select("socket", "Socket-8")
    panel.replace(hello())
    assert panel.selected is None
    assert "n:Socket-8" not in {one["id"] for one in elements(panel)}
    assert not panel.front.scene["fresh"], "the view stays where it was"


def test_dragging_a_card_moves_no_other_card():
    panel = GraphPanel(rework())
    panel.mode = "design"
    before = centres(panel)
    made = rework()
    more = socket("Socket-9", "Another", ("always", "Socket-4"))
    first = replace(made.sockets["Socket-2"], edges=(*made.sockets["Socket-2"].edges, Edge("always", "Socket-9", 1)))
    panel.replace(replace(made, sockets={**made.sockets, "Socket-2": first, "Socket-9": more}))
    after = centres(panel)
    assert {key: after[key] for key in before} == before
    far = abs(after["n:Socket-9"][0] - after["n:Socket-2"][0]) + abs(after["n:Socket-9"][1] - after["n:Socket-2"][1])
    assert far < 600, "it stands beside what leads to it"
    panel.tidy()
    assert centres(panel).keys() == after.keys()


def centres(panel: GraphPanel) -> dict[str, tuple[float, float]]:
    return {node["id"]: (node["x"], node["y"]) for node in panel.front.scene["nodes"] if node["id"].startswith("n:")}


def test_finished_loops_of_a_large_graph_are_collapsed():
    sockets = [socket(f"S{n}", "step", ("always", f"S{n + 1}")) for n in range(35)] + [socket("S35", "last")]
    panel = GraphPanel(graph("large", sockets, [loop("L", ["S3", "S4"], "S2")]))
    assert "l:L" in {one["id"] for one in elements(panel)}
    panel.show_marks(CastOverlay(progress={"L": (1, 2)}, current="S4"))
    assert "folded" not in classes(panel, "l:L")
    panel.show_marks(CastOverlay(progress={"L": (2, 2)}, current="S9"))
    assert "folded" in classes(panel, "l:L")
    send(panel, kind="fold", element="l:L")
    assert "folded" not in classes(panel, "l:L")


def test_sockets_at_the_same_position_can_be_drawn():
    scene = drawn(rework(), positions={"Socket-5": (1.0, 1.0), "Socket-4": (1.0, 1.0)})
    assert all("nan" not in edge["ws"] + edge["from"] for edge in scene.edges)


def test_nested_and_overlapping_loops_are_drawn():
    for made in (nested(), overlapping()):
        scene = drawn(made)
        assert {f"l:{name}" for name in made.loops} <= {node["id"] for node in scene.nodes}
    inner, outer = (drawn(nested()).placed.loops[name] for name in ("inner", "outer"))
    assert outer.x < inner.x
    assert inner.bottom < outer.bottom


def test_parallel_and_opposite_edges_are_all_drawn():
    two = graph(
        "two",
        [
            socket("A", "a", ("satisfied", "B"), ("not_satisfied", "B"), ("always", "A")),
            socket("B", "b", ("always", "A")),
        ],
    )
    sent = [edge["id"] for edge in GraphPanel(two).front.scene["edges"]]
    assert sorted(sent) == ["e:edge:0:A", "e:edge:0:B", "e:edge:1:A", "e:edge:2:A", "e:start"]


# -- lines ---------------------------------------------------------------------------------

coordinate = st.floats(-2_000, 2_000).map(lambda value: round(value, 1))
point = st.tuples(coordinate, coordinate)


@given(st.lists(point, min_size=2, max_size=9, unique=True), point, st.none() | point)
def test_bent_line_passes_through_its_points(points, source, label_at):
    target = (source[0] + 40.0, source[1] + 300.0)
    bent = bend_segments(points, source, target, label_at)
    (sx, sy), length = source, (40.0**2 + 300.0**2) ** 0.5
    ux, uy = 40.0 / length, 300.0 / length
    drawn = [
        (sx + w * 40 - d * uy, sy + w * 300 + d * ux)
        for w, d in zip(map(float, bent["ws"].split()), map(float, bent["ds"].split()), strict=True)
    ]
    assert len(drawn) % 2 == 1, "the middle one of an odd number carries the label"
    for x, y in points[1:-1]:
        assert min(abs(x - a) + abs(y - b) for a, b in drawn) < 0.1
    if label_at is not None:
        middle = drawn[len(drawn) // 2]
        assert abs(middle[0] + bent["dx"] - label_at[0]) < 0.2
        assert abs(middle[1] + bent["dy"] - label_at[1]) < 0.2
    ends = [tuple(map(float, end.split())) for end in (bent["from"], bent["to"])]
    assert abs(ends[0][0] + sx - points[0][0]) < 0.11
    assert abs(ends[1][0] + target[0] - points[-1][0]) < 0.11


def test_path_with_rounded_corners_becomes_a_polyline():
    points = rounded_polyline([(10.0, 20.0), (10.0, 60.0), (30.0, 60.0)])
    assert points[:2] == [(10.0, 20.0), (10.0, 54.0)]
    assert points[-2:] == [(16.0, 60.0), (30.0, 60.0)]
    assert all(10 <= x <= 30 and y <= 60 for x, y in points)


# -- following a cast ------------------------------------------------------------------------


class Timer:
    """A timer that fires only when the test fires it."""

    made: list[Timer] = []  # noqa: RUF012 - emptied by the fixture

    def __init__(self, wait: float, due: Callable[[], None]) -> None:
        self.wait, self.due, self.cancelled = wait, due, False
        Timer.made.append(self)

    def cancel(self) -> None:
        self.cancelled = True


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> list[Timer]:
    monkeypatch.setattr(base_module, "call_later", Timer)
    Timer.made = []
    return Timer.made


def test_css_classes_show_the_current_socket_and_the_taken_edges(project: Path, timers: list[Timer]):
    cast = start(project, loop_config(), loop_agents(2, [1]))
    panel = GraphPanel(cast)
    assert "current" in classes(panel, "n:Socket-1")
    seen = []
    while cast.status not in ("complete", "failed"):
        cast.step()
        timers.pop().due()
        look = panel.front.look
        taken = [key for key in look if key.startswith("e:") and "taken" in classes(panel, key)]
        current = [key for key in look if key.startswith("n:") and "current" in classes(panel, key)]
        seen.append((taken, current))
    assert seen[:4] == [
        (["e:edge:0:Socket-1"], ["n:Socket-2"]),
        (["e:edge:0:Socket-2"], ["n:Socket-3"]),
        (["e:edge:1:Socket-3"], ["n:Socket-2"]),
        (["e:edge:0:Socket-2"], ["n:Socket-3"]),
    ]
    assert (["e:loop-exit:L:e"], ["n:Socket-4"]) in seen
    assert "taken" in classes(panel, "s:end")
    assert ">\N{MULTIPLICATION SIGN}3<" in svg(panel, "n:Socket-2")
    assert "2 of 2" in svg(panel, "l:L")
    assert "complete" in panel.front.flags["told"]


def test_edge_with_a_breakpoint_is_marked(project: Path, timers: list[Timer]):
    cast = start(project, loop_config())
    cast.breakpoints.add("Socket-3", edge="Socket-4")
    cast.breakpoints.add("Socket-3", edge=2)
    panel = GraphPanel(cast)
    marked = [key for key in panel.front.look if key.startswith("e:") and "break" in classes(panel, key)]
    assert marked == ["e:edge:1:Socket-3", "e:loop-exit:L:e"]
    assert "breakpoint" in words(panel, "e:loop-exit:L:e")
    assert panel.fallback()[1].count("<title>breakpoint</title>") == 2


def test_status_and_breakpoints_are_described_in_words(project: Path, timers: list[Timer]):
    cast = start(project, loop_config())
    cast.breakpoints.add("Socket-2")
    cast.step()
    panel = GraphPanel(cast)
    assert "waiting" in classes(panel, "n:Socket-1")
    assert ">waiting for you<" in svg(panel, "n:Socket-1")
    assert "break" in classes(panel, "n:Socket-2")
    assert "breakpoint" in words(panel, "n:Socket-2")

    failing = start(project, loop_config(), {"Plan": lambda: 1 / 0})
    failing.step()
    other = GraphPanel(failing)
    assert "failed" in classes(other, "n:Socket-1")
    assert ">✖ failed<" in svg(other, "n:Socket-1")


def test_many_events_cause_one_redraw_of_the_current_state(project: Path, timers: list[Timer]):
    cast = start(project, loop_config(), loop_agents(3))
    panel = GraphPanel(cast)
    draws = []
    original = panel.draw
    panel.draw = lambda: (draws.append(cast.status), original())  # type: ignore[method-assign, assignment]
    cast.run()
    assert len(timers) == 1
    assert 0 <= timers[0].wait <= panel.interval
    timers[0].due()
    assert draws == ["complete"]
    assert "taken" in classes(panel, "s:end")
    panel.schedule_refresh()
    assert len(timers) == 2, "what comes after a redraw asks for another one"


def test_change_of_a_cast_is_drawn_by_a_timer(project: Path):
    cast = start(project, loop_config(), loop_agents(1))
    panel = GraphPanel(cast)
    drawn = threading.Event()
    original = panel.draw

    def draw() -> None:
        original()
        drawn.set()

    panel.draw = draw  # type: ignore[method-assign]
    cast.step()
    assert drawn.wait(10)
    assert "current" in classes(panel, "n:Socket-2")


def test_graph_panel_sends_only_changes(project: Path, timers: list[Timer], monkeypatch: pytest.MonkeyPatch):
    """A change is one message, and a page that connects later receives the complete graph."""
    cast = start(project, loop_config(), loop_agents(2))
    panel = GraphPanel(cast)
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(panel.front, "send", sent.append)
    scene = panel.front.scene
    cast.step()
    panel.refresh()
    [message] = sent
    assert {"n:Socket-1", "n:Socket-2", "l:L"} <= message["changed"].keys()
    assert "n:Socket-4" not in message["changed"]
    assert panel.front.scene is scene
    told = panel.front.get_state(["look"])["look"]
    assert all(told[key] == one for key, one in message["changed"].items())
    panel.refresh()
    assert len(sent) == 1, "nothing has changed"


def test_graph_can_show_the_marks_of_another_step(project: Path, timers: list[Timer]):
    cast = start(project, loop_config(), loop_agents(1))
    cast.run()
    panel = GraphPanel(cast)
    panel.show_marks(CastOverlay(current="Socket-1"))
    assert "current" in classes(panel, "n:Socket-1")
    panel.show_marks(None)
    assert "current" not in classes(panel, "n:Socket-1")


# -- selecting -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_click_selects_an_element_and_the_list_names_all_elements(name: str):
    panel = GraphPanel(ALL[name]())
    told: list[tuple[str, str]] = []
    panel.on_select(lambda kind, key: told.append((kind, key)))
    clickable = [one["id"] for one in elements(panel) if one["pick"] is not None]
    assert clickable
    for element in clickable:
        click(panel, element)
        assert panel.front.flags["selected"] == element
    assert len(set(told)) == len(told) == len(clickable)
    assert {element for _, element, _ in panel.front.scene["list"]} == set(clickable)


def test_names_in_the_list_of_elements_are_unique():
    """The list identifies its entries by name."""
    names = [
        words
        for words, _ in selectable_parts(
            graph("n", [socket("A", "a", ("always", "B"), ("always", "B")), socket("B", "b")])
        )
    ]
    assert len(names) == len(set(names)) == 5
    built = [words.strip() for words, _ in selectable_parts(rework())]
    assert "always → Build (from Maintain)" in built
    assert "always → Detect-VCS" in built


def test_selection_listeners_can_be_removed():
    panel = GraphPanel(rework())
    told: list[str] = []
    end = panel.on_select(lambda _, key: told.append(key))
    panel.select("loop", "workItemIteration")
    end()
    panel.select("socket", "Socket-1")
    assert told == ["workItemIteration"]
    with pytest.raises(MateriaError, match="no socket 'Socket-99'"):
        panel.select("socket", "Socket-99")
    with pytest.raises(MateriaError, match="no exit"):
        panel.select("exit", "edge:0:Socket-1")
    assert panel.selected == ("socket", "Socket-1")


def test_invalid_selection_is_ignored():
    panel = GraphPanel(rework())
    for element in ("s:start", "e:start", "a:corner 1", "n:nowhere", "__proto__"):
        send(panel, kind="pick", element=element)
    assert panel.selected is None
    assert panel.notice.value == ""


def test_canvas_gestures_use_the_ids_of_the_loadout():
    panel = GraphPanel(rework())
    told: list[dict[str, Any]] = []
    end = panel.on_gesture(lambda gesture: told.append({"kind": gesture.kind, **gesture.fields}))
    send(panel, kind="connect", **{"from": "n:Socket-1", "to": "n:Socket-3"})
    send(panel, kind="connect", **{"from": "n:Socket-1", "to": "s:end"})
    send(panel, kind="move", id="n:Socket-2", x=10, y=20.5)
    send(panel, kind="marquee", ids=["n:Socket-4", "n:Socket-5"])
    send(panel, kind="delete", of="e:edge:1:Socket-5")
    send(panel, kind="add", materia="Build", x=1, y=2)
    end()
    send(panel, kind="undo")
    assert told == [
        {"kind": "connect", "from": "Socket-1", "to": "Socket-3"},
        {"kind": "connect", "from": "Socket-1", "to": "end"},
        {"kind": "move", "id": "Socket-2", "x": 10.0, "y": 20.5},
        {"kind": "marquee", "ids": ["Socket-4", "Socket-5"]},
        {"kind": "delete", "of": ("edge", "edge:1:Socket-5")},
        {"kind": "add", "materia": "Build", "x": 1.0, "y": 2.0},
    ]
    assert panel.front.flags["marked"] == ["n:Socket-4", "n:Socket-5"]
    send(panel, kind="pick", element="n:Socket-2")
    assert (panel.front.flags["marked"], panel.front.flags["selected"]) == ([], "n:Socket-2")


@pytest.mark.parametrize(
    "message",
    [
        {"kind": "connect", "from": "n:Socket-99", "to": "n:Socket-1"},
        {"kind": "connect", "from": "s:end", "to": "n:Socket-1"},
        {"kind": "move", "id": "l:workItemIteration", "x": 1, "y": 1},
        {"kind": "marquee", "ids": ["<img src=x onerror=alert(1)>"]},
        {"kind": "<img src=x onerror=alert(1)>"},
        {},
        {"kind": ["undo"]},
        {"kind": "pick", "element": ["n:Socket-1"]},
        {"kind": "room", "w": "x", "h": 100},
        *({"kind": "move", "id": "n:Socket-1", "x": one, "y": 0} for one in ("x", None, 1e300, True, [])),
        {"kind": "move", "id": "n:Socket-1", "x": float("nan"), "y": float("inf")},
    ],
)
def test_hostile_or_late_graph_message_is_refused(message: dict[str, Any]):
    panel = GraphPanel(rework())
    panel.on_gesture(lambda _: pytest.fail("it was taken"))
    send(panel, **message)
    assert "role=" in panel.notice.value
    assert "<img" not in panel.notice.value


def test_picture_can_be_exported_as_svg(monkeypatch: pytest.MonkeyPatch):
    panel = GraphPanel(rework())
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(panel.front, "send", sent.append)
    send(panel, kind="svg", theme="dark", token="t")
    [message] = sent
    assert message["text"].startswith("<svg")
    assert (message["token"], message["type"], message["ending"]) == ("t", "image/svg+xml", "svg")
    assert message["text"].count("data-socket") == len(panel.graph.sockets)
    assert message["text"].count("<rect") > 0
    assert LIGHT["ground"] not in message["text"]


def test_loadout_can_be_exported_as_a_page_to_play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    panel = GraphPanel(rework())
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(panel.front, "send", sent.append)
    send(panel, kind="play", token="t")
    [message] = sent
    assert (message["token"], message["type"], message["ending"]) == ("t", "text/html", "html")
    assert message["text"] == ExploreView(panel.graph).play(tmp_path / "play.html").read_text("utf-8")
    monkeypatch.setattr(graph_panel, "_MAX_PLAYED_STATES", 2)
    send(panel, kind="play", token="t")
    assert "the search stopped after 2 states" in panel.notice.value


def test_socket_details_are_shown(project: Path, timers: list[Timer]):
    cast = start(project, loop_config(), loop_agents(2, [1]))
    cast.run(steps=3)
    panel = GraphPanel(cast)
    panel.select("socket", "Socket-3")
    shown = details(panel)
    assert "true or false, because the next step depends on it" in shown
    assert "used now" in shown
    assert "workItemIndex" in shown


def test_inspector_of_an_edge_explains_why_it_was_taken(project: Path, timers: list[Timer]):
    cast = start(project, loop_config(), loop_agents(1, [1]))
    panel = GraphPanel(cast)
    panel.select("edge", "edge:0:Socket-3")
    assert "has left this socket yet" in details(panel)
    cast.run(steps=3)
    panel.refresh()
    assert "This edge was not taken." in details(panel)
    assert "the output sets satisfied: false; satisfied needs satisfied: true" in details(panel)
    panel.select("edge", "edge:1:Socket-3")
    assert "This edge was taken." in details(panel)
    assert "3 times for the current item; used 1" in details(panel)
    panel.select("exit", "loop-exit:L:e")
    assert "This exit was not taken, because it was not checked." in details(panel)
    cast.run()
    panel.refresh()
    assert "This exit was taken." in details(panel)
    panel.select("edge", "edge:1:Socket-3")
    assert "This edge was not taken, because it was not checked." in details(panel)
    panel.select("edge", "implied:Socket-4")
    assert "This edge was taken." in details(panel)


def test_inspector_of_an_edge_shows_its_use_for_the_current_item(project: Path, timers: list[Timer]):
    """The used and the allowed traversals are those of the current item (R18)."""
    cast = start(project, loop_config(), loop_agents(1, [1]))
    cast.run(steps=4)
    cast.agents.set("Check", "person")
    cast.step()
    panel = GraphPanel(cast)
    assert label(panel, "e:edge:1:Socket-3") == "✗ 1/3"
    panel.select("edge", "edge:1:Socket-3")
    assert "3 times for the current item; used 1" in details(panel)


def test_label_and_inspector_name_the_counted_item(project: Path, timers: list[Timer]):
    """When the cursor has moved, the label counts for the next item and the last traversal for the previous item (R18)."""
    cast = start(project, loop_config(), loop_agents(2, [1]))
    cast.run(until=lambda c: c.now.engine.cursors.get("workItemIndex") == 1)
    cast.agents.set("Check", "person")
    cast.run()
    panel = GraphPanel(cast)
    assert label(panel, "e:edge:1:Socket-3") == "✗ 0/3"
    assert "Part 1 has come back 1 of 3 times." in str(cast.why(3))


def test_edge_label_box_fits_its_longest_text():
    lines = drawn(rework()).placed.edges
    line = next(one for one in lines if one.link.limit is not None and one.label is not None)
    words = (
        link_label(line.link, marks, short=True)
        for marks in (CastOverlay(), CastOverlay(budgets={("Socket-5", 1): (2, 3)}))
    )
    assert line.label.w >= max(text_width(word, SMALL_SIZE) for word in words)


def test_loop_and_graph_details_are_shown():
    panel = GraphPanel(rework())
    panel.select("loop", "workItemIteration")
    assert "Build, Auto-Eval, Maintain" in details(panel)
    assert "exit ✗ not_satisfied → Ask a person" in details(panel)
    panel.select("edge", "edge:1:Socket-5")
    assert "3 times for each item" in details(panel)


# -- hostile text ----------------------------------------------------------------------------

TAGS = ("<img", "<script", "onerror=alert", "onload=", "</svg><script", "</style>")


def html_values(panel: Panel) -> list[str]:
    return [one.value for one in base_module.widgets_in(panel.view) if isinstance(one, ui.HTML)]


@pytest.mark.parametrize("turn", range(0, len(HOSTILE), 4))
def test_hostile_text_is_shown_as_text(turn: int):
    made = hostile_graph(HOSTILE[turn:] + HOSTILE[:turn])
    panel = GraphPanel(made)
    panel.show_marks(hostile_marks(made))
    for kind, key in [pick for _, pick in selectable_parts(made)]:
        panel.select(kind, key)
        for value in html_values(panel):
            text = value.removeprefix("<style>").removesuffix("</style>")
            assert "<img" not in text
            assert "<script" not in text
            assert "</style" not in text
            assert len(value) < 500_000
    assert panel.notice.value == ""


def test_hostile_answers_are_shown_as_text(project: Path, timers: list[Timer]):
    bad = "<img src=x onerror=alert(1)>"
    answer = json.dumps({"workItems": [{"title": bad, "context": bad}], "context": bad})
    cast = start(
        project,
        loop_config(),
        {"Build": lambda: bad, "Plan": lambda: answer, "Check": lambda: bad},
        request=bad,
    )
    cast.run()
    assert cast.status == "failed"
    panel = GraphPanel(cast)
    for _, (kind, key) in selectable_parts(cast.graph):
        panel.select(kind, key)
        assert bad not in "".join(html_values(panel))
    bundle = panel._repr_mimebundle_()
    assert "<img" not in bundle["image/svg+xml"]


def test_only_trusted_markup_is_unescaped():
    widget = ui.HTML()
    show_html(widget, "<b>x</b>")
    assert "&lt;b&gt;" in widget.value
    show_html(widget, Html("<b>x</b>"))
    assert widget.value == "<b>x</b>"


# -- pictures ----------------------------------------------------------------------------------


def test_pictures_use_colour_variables_of_the_page():
    made = graph("at", [socket("a@ink@b", "x@now@y", ("always", "end"))])
    look = drawn(made).appearance(CastOverlay())["n:a@ink@b"]["svg"]
    assert "x&#64;now&#64;y" in look
    assert set(re.findall("@([^@ ]+)@", look)) <= LIGHT.keys()


# -- being displayed, errors, leaks ----------------------------------------------------------------


def test_mime_bundle_contains_widget_picture_and_text():
    panel = GraphPanel(rework())
    bundle = panel._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == panel.view.model_id
    assert bundle["image/svg+xml"].startswith("<svg")
    assert "Socket-5" in bundle["text/plain"]
    panel.close()
    assert set(panel._repr_mimebundle_()) == {"image/svg+xml", "text/plain"}


def test_two_displays_of_a_panel_show_the_same_widget():
    panel = GraphPanel(rework())
    views = [panel._repr_mimebundle_()["application/vnd.jupyter.widget-view+json"] for _ in range(2)]
    assert views[0] == views[1]


def test_showing_a_graph_again_closes_the_earlier_panel(project: Path, timers: list[Timer]):
    """Running a cell again must not increase the number of open widgets."""
    cast = start(project, loop_config(), loop_agents(2))
    before = live()
    first = show_panel("graph", lambda: GraphPanel(cast))
    once = live()
    assert once > before + 10
    for _ in range(5):
        panel = show_panel("graph", lambda: GraphPanel(cast))
    assert live() == once
    assert first.closed
    timers.clear()
    cast.step(ask=False)
    assert len(timers) == 1, "those that were closed no longer follow the cast"
    panel.close()
    panel.close()
    assert live() == before
    timers.clear()
    cast.step()
    assert not timers


def test_old_panel_stays_open_if_the_new_panel_cannot_be_created():
    panel = show_panel("graph", lambda: GraphPanel(hello()))
    with pytest.raises(ZeroDivisionError):
        show_panel("graph", lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    assert not panel.closed


def test_owned_panel_is_closed_together_with_its_owner():
    outer = Panel("outer")
    inner = outer.own(GraphPanel(hello()))
    outer.set_widgets(inner.view)
    before = live()
    outer.close()
    assert inner.closed
    assert live() < before


def test_closing_a_graph_panel_cancels_a_pending_redraw(project: Path, timers: list[Timer]):
    cast = start(project, loop_config(), loop_agents(1))
    panel = GraphPanel(cast)
    cast.step()
    panel.close()
    assert timers[0].cancelled
    timers[0].due()  # it may already have been on its way
    click_after = panel.guarded(lambda: pytest.fail("closed"))
    click_after()


def test_exception_in_a_callback_is_shown_as_text():
    panel = GraphPanel(rework())

    def bad(kind: str, key: str) -> None:
        raise ValueError(f"<img src=x onerror=alert(1)> {kind} {key}")

    end = panel.on_select(bad)
    click(panel, "n:Socket-1")
    assert "ValueError: &lt;img src=x onerror=alert(1)&gt; socket Socket-1" in panel.notice.value
    assert "role=" in panel.notice.value
    end()
    click(panel, "n:Socket-2")
    assert panel.notice.value == "", "the next callback that succeeds takes it away"


def test_materia_errors_are_shown_without_a_traceback():
    panel = Panel("p")

    def bad() -> None:
        raise MateriaError("It does not work.", where="a.b", hint="mend it")

    panel.guarded(bad)()
    assert "It does not work.\n  at: a.b\n  try: mend it" in panel.notice.value
    assert "MateriaError" not in panel.notice.value


def test_drawing_error_is_displayed_and_the_cast_continues(project: Path, timers: list[Timer]):
    cast = start(project, loop_config(), loop_agents(1))
    panel = GraphPanel(cast)

    def bad() -> None:
        raise RuntimeError("no paint")

    panel.draw = bad  # type: ignore[method-assign]
    cast.run()
    timers[0].due()
    assert "RuntimeError: no paint" in panel.notice.value
    assert cast.status == "complete"
    assert cast.now.messages == []


def test_callbacks_of_several_threads_run_one_at_a_time():
    one, other = Panel("one"), Panel("other")
    entered, go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def slow() -> None:
        order.append("slow begins")
        entered.set()
        assert go_on.wait(10)
        order.append("slow ends")

    threads = [threading.Thread(target=one.guarded(slow))]
    threads[0].start()
    assert entered.wait(10)
    assert not CALLBACKS.acquire(blocking=False)
    threads.append(threading.Thread(target=other.guarded(lambda: order.append("other"))))
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert order == ["slow begins", "slow ends", "other"]


def test_redraw_continues_during_a_callback(project: Path):
    """A button that runs a cast holds the callback lock for a long time, but the graph must still be updated."""
    cast = start(project, loop_config(), loop_agents(1))
    panel = GraphPanel(cast)
    done = threading.Event()

    def redraw() -> None:
        panel.refresh()
        done.set()

    def work() -> None:
        threading.Thread(target=redraw).start()
        assert done.wait(10)

    panel.guarded(work)()
    assert panel.notice.value == ""


def test_values_set_by_a_redraw_are_not_treated_as_user_input():
    panel = GraphPanel(rework())
    told: list[JSON] = []
    panel.on_select(lambda kind, key: told.append(key))
    panel.select("socket", "Socket-1")
    panel.mark(("socket", "Socket-2"))
    assert panel.front.flags["selected"] == "n:Socket-2"
    assert told == ["Socket-1"]


def test_exits_with_the_same_name_are_separate_elements():
    made = rework()
    old = made.loops["workItemIteration"]
    routes = tuple(ExitRoute("same", old.id, "Socket-6", route.condition, route.target) for route in old.routes)
    doubled = replace(made, loops={old.id: replace(old, routes=routes)})
    exits = [edge for edge in drawn(doubled).edges if "exit" in edge["classes"].split()]
    assert len({one["id"] for one in exits}) == len({one["pick"][1] for one in exits}) == 2


def test_redrawn_picture_equals_a_new_picture(tmp_path):
    cast = start(tmp_path, loop_config(), loop_agents(2, refuse=(1,)))
    cast.breakpoints.add("Socket-2", kind="after")
    drawn = layout_graph(cast.graph)
    kept = GraphElements(cast.graph, drawn)
    moments = [overlay_of(cast.now)]
    while cast.status == "ready":
        cast.step()
        moments.append(overlay_of(cast.now))
    moments += [replace(moment, working=True, waiting=True) for moment in moments[:3]]
    moments += [
        replace(one, unused_routes=frozenset({("Socket-2", 0)}), sides={"Socket-3": "A"}) for one in moments[:2]
    ]
    for marks in [*moments, *reversed(moments)]:
        assert kept.appearance(marks) == GraphElements(cast.graph, drawn).appearance(marks)
