"""Test that pictures show the colour of a materia, the agent of a socket, and the consumers of a loop."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from display_checks import contrast
from display_graphs import graph, hello, rework, socket
from display_hostile import HOSTILE
from materia_nb.display.graph_parts import CastOverlay, answerer_badge
from materia_nb.display.layout import layout_graph
from materia_nb.display.svg import graph_svg
from materia_nb.display.text import graph_text
from materia_nb.loadout.vocabulary import tint_of
from materia_nb.widgets.graph_elements import GraphElements
from materia_nb.widgets.selection import selectable_parts


def scene_of(graph):
    return GraphElements(graph, layout_graph(graph))


def coloured(colour):
    """Return a socket whose materia has the specified colour."""
    build = socket("Socket-1", "Build")
    return graph("C", [replace(build, materia=replace(build.materia, raw={"color": colour}))])


@pytest.mark.parametrize(
    "written, fill",
    [
        ("#abc", "#aabbcc"),
        ("#A0b1C2", "#a0b1c2"),
        (" teal ", "#0f766e"),
        ("materia-color-green", "#15803d"),
    ],
)
def test_known_colours_are_parsed(written, fill):
    assert tint_of(written).fill == fill


@pytest.mark.parametrize(
    "written", [*HOSTILE, "#12", "#1234567", "#12345g", "url(#x)", "rgb(0,0,0)", "tael", "", None, 7, [], {}]
)
def test_unknown_colour_leaves_the_card_unchanged(written):
    assert tint_of(written) is None
    assert graph_svg(coloured(written)) == graph_svg(coloured(None))


@given(st.integers(0, 0xFFFFFF))
def test_text_has_enough_contrast_on_every_colour(number):
    tint = tint_of(f"#{number:06x}")
    assert contrast(tint.fill, tint.ink) >= 4.5


@pytest.mark.parametrize("colour", ["#ffe680", "#102030"])
def test_status_marks_do_not_change_the_colour_of_a_card(colour):
    marks = CastOverlay(current="Socket-1", waiting=True, visits={"Socket-1": 3}, breakpoints=frozenset({"Socket-1"}))
    card = graph_svg(coloured(colour), marks).split('data-socket="Socket-1"')[1]
    assert f'stroke="{colour}"' in card


def test_live_canvas_shows_the_colour_of_a_socket():
    look = scene_of(coloured("#ffe680")).appearance(CastOverlay())
    assert 'stroke="#ffe680"' in look["n:Socket-1"]["svg"]


def test_every_view_marks_the_members_of_a_loop_as_consumers():
    loadout_graph = rework()
    member = next(iter(loadout_graph.loops.values())).sockets[0]
    text = graph_text(loadout_graph)
    scene, look = scene_of(loadout_graph), scene_of(loadout_graph).appearance(CastOverlay())[f"n:{member}"]
    assert any(re.search(rf"\b{member} .*loop consumer", line) for line in text.splitlines())
    assert "loop consumer" in look["words"]
    node = next(node for node in scene.nodes if node["id"] == f"n:{member}")
    assert "loop-consumer" in node["classes"].split()
    assert "loop" not in node["classes"].split(), "that is the class of regions"
    assert any(
        "loop consumer" in description
        for description, pick in selectable_parts(loadout_graph)
        if pick == ("socket", member)
    )


def test_socket_outside_loops_is_not_marked_as_a_consumer():
    assert "loop consumer" not in graph_svg(hello()) + graph_text(hello())


def test_card_grid_and_canvas_show_the_agent_of_a_socket():
    graph, marks = coloured(None), CastOverlay(answers={"Socket-1": "person"})
    assert ">you · Socket-1<" in graph_svg(graph, marks)
    assert "agent · person" in graph_text(graph, marks)
    look = scene_of(graph).appearance(marks)["n:Socket-1"]
    assert ">you · Socket-1<" in look["svg"]
    assert "answered by person" in look["words"]


@pytest.mark.parametrize(
    "who, badge",
    [
        ("person", "you"),
        ("openai:gpt-5-mini", "gpt-5-mini"),
        ("local:org/tiny-model", "tiny-model"),
        ("claude -p", "claude -p"),
        ("the function evaluate", "evaluate()"),
        ("a function", "f()"),
        ("script", "script"),
    ],
)
def test_badge_shows_the_agent_of_a_socket(who, badge):
    assert answerer_badge(socket("Socket-1", "Build"), CastOverlay(answers={"Socket-1": who})) == badge


def test_badge_of_a_utility_shows_its_program():
    assert answerer_badge(socket("Socket-1", "Build", kind="utility"), CastOverlay()) == "true"


def test_long_agent_name_is_truncated_to_fit_the_card():
    svg = graph_svg(coloured(None), CastOverlay(answers={"Socket-1": "a-very-long-model-name-" * 4}))
    badge = re.search(r">(a-very[^<]*)<", svg.split('data-socket="Socket-1"')[1])[1]
    assert badge.endswith("…")


@pytest.mark.parametrize("who", HOSTILE)
def test_hostile_agent_name_is_shown_as_text(who):
    svg = graph_svg(coloured(None), CastOverlay(answers={"Socket-1": who}))
    assert "<script" not in svg
    assert "<img" not in svg


def test_card_shows_a_pinned_answer_instead_of_the_agent():
    graph, marks = (
        coloured(None),
        CastOverlay(answers={"Socket-1": "person"}, pins={"Socket-1": "its output in step 3"}),
    )
    svg = graph_svg(graph, marks)
    assert ">pinned · Socket-1<" in svg
    assert "<title>agent; pinned: its output in step 3</title>" in svg
    assert "pinned: its output in step 3" in graph_text(graph, marks)
    assert "pinned: its output in step 3" in scene_of(graph).appearance(marks)["n:Socket-1"]["words"]
