"""What the pictures tell of a materia: its colour, who answers, and that a socket consumes a loop."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from display_checks import contrast
from display_graphs import graph, hello, rework, socket
from display_hostile import HOSTILE
from materia_nb.display.graph_parts import Marks, answerer_badge
from materia_nb.display.layout import layout_graph
from materia_nb.display.svg import graph_svg
from materia_nb.display.text import graph_text
from materia_nb.loadout.vocabulary import tint_of
from materia_nb.widgets.graph_elements import GraphElements
from materia_nb.widgets.selection import selectable_parts


def scene_of(graph):
    return GraphElements(graph, layout_graph(graph))


def coloured(colour):
    """A socket whose materia has that colour."""
    one = socket("Socket-1", "Build")
    return graph("C", [replace(one, materia=replace(one.materia, raw={"color": colour}))])


@pytest.mark.parametrize(
    "written, fill",
    [
        ("#abc", "#aabbcc"),
        ("#A0b1C2", "#a0b1c2"),
        (" teal ", "#0f766e"),
        ("materia-color-green", "#15803d"),
    ],
)
def test_colours_that_are_understood(written, fill):
    assert tint_of(written).fill == fill


@pytest.mark.parametrize(
    "written", [*HOSTILE, "#12", "#1234567", "#12345g", "url(#x)", "rgb(0,0,0)", "tael", "", None, 7, [], {}]
)
def test_anything_else_is_no_colour_and_the_card_has_its_usual_one(written):
    assert tint_of(written) is None
    assert graph_svg(coloured(written)) == graph_svg(coloured(None))


@given(st.integers(0, 0xFFFFFF))
def test_the_text_can_be_read_on_every_colour(number):
    tint = tint_of(f"#{number:06x}")
    assert contrast(tint.fill, tint.ink) >= 4.5


@pytest.mark.parametrize("colour", ["#ffe680", "#102030"])
def test_the_card_keeps_the_colour_of_its_materia_whatever_is_laid_over_it(colour):
    marks = Marks(
        current="Socket-1", waiting=True, visits={"Socket-1": 3}, breakpoints=frozenset({"Socket-1"})
    )
    card = graph_svg(coloured(colour), marks).split('data-socket="Socket-1"')[1]
    assert f'stroke="{colour}"' in card


def test_the_live_canvas_has_the_colour_too():
    look = scene_of(coloured("#ffe680")).look(Marks())
    assert 'stroke="#ffe680"' in look["n:Socket-1"]["svg"]


def test_sockets_of_a_loop_are_marked_as_its_consumers_everywhere():
    made = rework()
    member = next(iter(made.loops.values())).sockets[0]
    text = graph_text(made)
    scene, look = scene_of(made), scene_of(made).look(Marks())[f"n:{member}"]
    assert any(re.search(rf"\b{member} .*loop consumer", line) for line in text.splitlines())
    assert "loop consumer" in look["words"]
    node = next(one for one in scene.nodes if one["id"] == f"n:{member}")
    assert "loop-consumer" in node["classes"].split()
    assert "loop" not in node["classes"].split(), "that is the class of regions"
    assert any(
        "loop consumer" in words for words, pick in selectable_parts(made) if pick == ("socket", member)
    )


def test_a_socket_outside_loops_is_no_consumer():
    assert "loop consumer" not in graph_svg(hello()) + graph_text(hello())


def test_who_answers_stands_on_the_card_in_the_grid_and_on_the_canvas():
    made, marks = coloured(None), Marks(answers={"Socket-1": "person"})
    assert ">you · Socket-1<" in graph_svg(made, marks)
    assert "agent · person" in graph_text(made, marks)
    look = scene_of(made).look(marks)["n:Socket-1"]
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
def test_the_badge_says_who_answers_in_a_word(who, badge):
    assert answerer_badge(socket("Socket-1", "Build"), Marks(answers={"Socket-1": who})) == badge


def test_a_utility_has_its_program_as_badge():
    assert answerer_badge(socket("Socket-1", "Build", kind="utility"), Marks()) == "true"


def test_a_long_name_of_who_answers_is_cut_to_its_card():
    svg = graph_svg(coloured(None), Marks(answers={"Socket-1": "a-very-long-model-name-" * 4}))
    shown = re.search(r">(a-very[^<]*)<", svg.split('data-socket="Socket-1"')[1])[1]
    assert shown.endswith("…")


@pytest.mark.parametrize("who", HOSTILE)
def test_a_hostile_name_of_who_answers_is_only_text(who):
    svg = graph_svg(coloured(None), Marks(answers={"Socket-1": who}))
    assert "<script" not in svg
    assert "<img" not in svg


def test_what_it_is_pinned_to_goes_before_who_would_answer():
    made, marks = (
        coloured(None),
        Marks(answers={"Socket-1": "person"}, pins={"Socket-1": "its output of step 3"}),
    )
    svg = graph_svg(made, marks)
    assert ">pinned · Socket-1<" in svg
    assert "<title>agent; pinned: its output of step 3</title>" in svg
    assert "pinned: its output of step 3" in graph_text(made, marks)
    assert "pinned: its output of step 3" in scene_of(made).look(marks)["n:Socket-1"]["words"]
