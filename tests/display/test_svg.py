"""Test that the SVG of a graph is well-formed, self-contained and complete, and never relies on colour alone."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import display_graphs as graphs
from display_checks import contrast
from display_hostile import HOSTILE, hostile_graph, hostile_marks
from materia_nb.display.graph_parts import TIMES_SIGN, CastOverlay, links
from materia_nb.display.layout import layout_graph
from materia_nb.display.svg import ICONS, THEMES, graph_svg
from materia_nb.display.text import graph_text
from materia_nb.loadout import build_graph
from materia_nb.loadout.vocabulary import CONDITIONS
from stream_helpers import streams_config

ELEMENTS = {"svg", "title", "desc", "g", "rect", "path", "polygon", "text", "circle", "line"}
ATTRIBUTES = {
    "role", "aria-label", "width", "height", "viewBox", "font-family", "font-size", "font-weight", "font-style",
    "x", "y", "rx", "d", "points", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray",
    "stroke-linecap", "stroke-linejoin", "stroke-opacity", "text-anchor", "id", "data-edge", "data-socket",
    "data-loop", "transform", "cx", "cy", "r", "x1", "x2", "y1", "y2", "ry",
}  # fmt: skip
RUNNING = CastOverlay(
    current="Socket-5",
    waiting=True,
    failed="Socket-7",
    visits={"Socket-4": 3},
    traversals={"Socket-5->Socket-4": 1},
    last_route=("Socket-5", 1),
    progress={"workItemIteration": (2, 5)},
    breakpoints=frozenset({"Socket-6"}),
    budgets={("Socket-5", 1): (2, 3)},
)


def parse(svg):
    """Parse the SVG and assert that it contains only allowed elements and attributes."""
    root = ET.fromstring(svg)  # noqa: S314 - a document of our own
    for element in root.iter():
        assert element.tag.removeprefix("{http://www.w3.org/2000/svg}") in ELEMENTS
        assert element.attrib.keys() <= ATTRIBUTES
    return root


def texts(root):
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def icons(root):
    return [
        element for element in root.iter("{http://www.w3.org/2000/svg}g") if "scale" in element.get("transform", "")
    ]


@pytest.mark.parametrize("start", range(len(HOSTILE)))
def test_hostile_text_in_every_field_is_shown_as_text(start):
    graph = hostile_graph(HOSTILE[start:] + HOSTILE[:start])
    for marks in (CastOverlay(), hostile_marks(graph)):
        svg = graph_svg(graph, marks)
        root = parse(svg)
        assert len(svg) < 60_000
        plain = root.find("{http://www.w3.org/2000/svg}title")
        assert plain is not None
        assert len(list(plain)) == 0


@given(st.lists(st.text(st.characters(codec=None), max_size=30), min_size=1, max_size=20))
@settings(max_examples=60)
def test_svg_is_well_formed_for_any_text_in_every_field(strings):
    graph = hostile_graph(strings)
    parse(graph_svg(graph, hostile_marks(graph)))


def test_picture_loads_no_external_resources():
    svg = graph_svg(graphs.rework(), RUNNING)
    assert not re.search(r"url\(|href|@import|<script|<style|foreignObject|var\(", svg)


def test_each_kind_of_socket_has_a_label_and_an_icon():
    root = parse(graph_svg(graphs.rework()))
    cards = {group.get("data-socket"): group for group in root.iter("{http://www.w3.org/2000/svg}g")}
    titles = {key: card.findtext("{http://www.w3.org/2000/svg}title") for key, card in cards.items() if key}
    assert titles["Socket-1"] == "utility"
    assert titles["Socket-3"] == "agent, generator, multi-turn"
    icons = {key: ET.tostring(cards[key].find("{http://www.w3.org/2000/svg}g")) for key in titles}
    inside = {key: re.sub(rb'(transform|stroke)="[^"]*"', b"", icon) for key, icon in icons.items()}
    assert len({inside["Socket-1"], inside["Socket-3"], inside["Socket-4"]}) == 3
    assert inside["Socket-1"] == inside["Socket-2"]


def test_materia_name_is_the_title_of_a_card_and_the_socket_id_is_small():
    card = next(g for g in parse(graph_svg(graphs.rework())).iter() if g.get("data-socket") == "Socket-4")
    first, second = list(card.iter("{http://www.w3.org/2000/svg}text"))[:2]
    assert (first.text, "Socket-4" in second.text) == ("Build", True)
    assert float(first.get("font-size")) > float(second.get("font-size"))


def test_both_themes_are_readable_and_differ_only_in_colours():
    light, dark = (graph_svg(graphs.rework(), RUNNING, colours=colours) for colours in THEMES.values())
    colour = re.compile("#[0-9a-f]{6}")
    assert light != dark
    assert colour.sub("", light) == colour.sub("", dark)
    for colours in THEMES.values():
        pairs = [
            *((ink, ground) for ink in ("ink", "soft", "always") for ground in ("ground", "plate")),
            *((ink, "loop-pale") for ink in ("ink", "soft")),
            *((use, "plate") for use in (*CONDITIONS, "A", "B")),
            *(("loop", "loop-pale"), ("now-ink", "now-pale"), ("bad", "bad-pale")),
        ]
        assert [(a, b) for a, b in pairs if contrast(colours[a], colours[b]) < 5.1] == []
        lines = ("line", "loop", "now", "pick", "aim", "bad", *CONDITIONS)
        assert [use for use in lines if contrast(colours[use], colours["ground"]) < 3] == []


def test_edges_show_their_condition_order_and_limit_r3_r18():
    labels = texts(parse(graph_svg(graphs.rework())))
    assert "✓" in labels  # no visit matches both, so their order says nothing
    assert "✗ max 3" in labels
    make = graphs.socket
    ordered = graphs.graph("o", [make("A", "A", ("satisfied", "A"), ("always", "end"))])
    assert {"1 ✓", "2 always"} <= set(texts(parse(graph_svg(ordered))))


def test_edges_with_different_conditions_differ_in_more_than_colour():
    root = parse(graph_svg(graphs.rework()))
    lines = {p.get("data-edge"): p for p in root.iter("{http://www.w3.org/2000/svg}path") if p.get("data-edge")}
    assert lines["edge:0:Socket-5"].get("stroke-dasharray") is None
    assert lines["edge:1:Socket-5"].get("stroke-dasharray")


def test_exits_are_dashed_and_have_their_stable_id():
    root = parse(graph_svg(graphs.rework()))
    exits = [p for p in root.iter("{http://www.w3.org/2000/svg}path") if (p.get("id") or "").startswith("loop-exit:")]
    assert [p.get("id") for p in exits] == [
        "loop-exit:workItemIteration:exit:Socket-6:satisfied",
        "loop-exit:workItemIteration:exit:Socket-6:not_satisfied",
    ]
    assert all(p.get("stroke-dasharray") for p in exits)
    assert {"exit ✓", "exit ✗"} <= set(texts(root))


def test_derived_advance_is_shown_r15():
    assert "advance ▸ workItemIndex when satisfied (derived)</title>" in graph_svg(graphs.rework())


def test_loop_frame_shows_its_list_and_progress():
    assert "items of Auto-Plan" in texts(parse(graph_svg(graphs.rework(), direction="right")))
    assert "2 of 5" in texts(parse(graph_svg(graphs.rework(), RUNNING)))


def test_status_marks_are_also_shown_as_text():
    labels = texts(parse(graph_svg(graphs.rework(), RUNNING)))
    for label in ("waiting", "✖ failed", f"{TIMES_SIGN}3", "✗ 2/3"):
        assert label in labels
    svg = graph_svg(graphs.rework(), RUNNING)
    assert "; breakpoint</title>" in svg


def test_failed_card_shows_its_symbol_next_to_its_visits():
    def moved(failed):
        once, often = (
            graph_svg(graphs.rework(), CastOverlay(failed=failed, visits={"Socket-5": visits})) for visits in (1, 5)
        )
        assert "\u00d75" in texts(parse(often))
        return [
            there.get("transform")
            for here, there in zip(icons(parse(once)), icons(parse(often)), strict=True)
            if here.get("transform") != there.get("transform")
        ]

    assert len(moved("Socket-5")) == 1
    assert moved("Socket-5") == moved(None)  # the check of a card that did not fail is there too


def test_rejected_card_has_a_cross_and_card_with_a_warning_has_no_ring():
    graph = graphs.rework()
    marks = CastOverlay(
        visits={"Socket-4": 1, "Socket-5": 1},
        rejected=frozenset({"Socket-5"}),
        warnings={"Socket-4": ("same-again",)},
    )
    drawn = graph_svg(graph, marks)
    assert ICONS["cross"] in drawn
    assert ICONS["warning"] in drawn
    assert ICONS["check"] not in drawn
    plain = graph_svg(graph, replace(marks, warnings={}))
    assert drawn.count('stroke-width="2.2"') == plain.count('stroke-width="2.2"')


def test_waiting_card_looks_different_from_a_working_card():
    waiting = replace(RUNNING, answers={"Socket-5": "person"})
    assert "waiting for you" in texts(parse(graph_svg(graphs.rework(), waiting)))
    assert "working" in texts(parse(graph_svg(graphs.rework(), replace(RUNNING, working=True))))


def test_edges_of_the_latest_route_are_thicker():
    def width(marks):
        root = parse(graph_svg(graphs.rework(), marks))
        line = next(p for p in root.iter() if p.get("data-edge") == "edge:1:Socket-5")
        return float(line.get("stroke-width"))

    assert width(RUNNING) > width(CastOverlay())


def test_marks_do_not_change_the_layout():
    graph = graphs.rework()
    box = re.compile(r'viewBox="[^"]*"')
    bare, running = graph_svg(graph), graph_svg(graph, RUNNING)
    assert box.search(bare)[0] == box.search(running)[0]
    lines = re.compile(r'data-edge="[^"]*" d="[^"]*"')
    assert lines.findall(bare) == lines.findall(running)


def test_picture_uses_the_given_layout():
    graph = graphs.rework()
    assert graph_svg(graph, RUNNING, placed=layout_graph(graph)) != graph_svg(
        graph, RUNNING, placed=layout_graph(graph, level=1)
    )


def test_picture_fits_a_notebook_cell_and_is_readable():
    for graph in (graphs.rework(), graphs.hello(), graphs.chain(9)):
        width = float(parse(graph_svg(graph)).get("width"))
        assert min(1.0, 848 / width) * 11 >= 9


def test_card_of_a_collapsed_loop_shows_the_position_of_the_cast():
    graph = graphs.rework()
    placed = layout_graph(graph, folded=frozenset(graph.loops))
    labels = texts(parse(graph_svg(graph, RUNNING, placed=placed)))
    assert "items of Auto-Plan" in labels
    assert "3 sockets" in labels
    assert "Build" not in labels


def test_picture_description_names_every_edge():
    root = parse(graph_svg(graphs.rework(), RUNNING))
    description = root.find("{http://www.w3.org/2000/svg}desc").text
    assert (
        "Socket-5 (agent Auto-Eval, loop consumer, ▶ waiting): ✓ satisfied to Socket-6; ✗ not_satisfied" in description
    )
    assert (
        "Loop workItemIteration: Socket-4, Socket-5, Socket-6; consumes workItems of Auto-Plan · 2/5 done"
        in description
    )


def test_marks_for_sockets_that_do_not_exist_are_ignored():
    graph_svg(graphs.hello(), CastOverlay(current="x", failed="y", last_route=("z", 3), progress={"l": (1, 2)}))


def test_edges_that_fork_or_join_lanes_are_dashed_and_end_at_a_bar():
    graph = build_graph(streams_config())
    lanes = {link.lanes: (link.source, link.target) for link in links(graph) if link.lanes}
    assert lanes == {"fork": ("Socket-1", "Socket-2"), "join": ("Socket-4", "Socket-5")}
    svg = graph_svg(graph, CastOverlay(lanes={"Socket-3": ("docs", "<b>")}))
    assert svg.count("<title>fork</title>") == svg.count("<title>join</title>") == 1
    assert "docs, &lt;b&gt;" in svg
    assert "in lanes, 2 at once" in graph_text(graph)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_progress_of_a_loop_with_many_items_is_not_cut_off(level):
    marks = CastOverlay(progress={"workItemIteration": (209, 300)})
    svg = graph_svg(graphs.rework(), marks, placed=layout_graph(graphs.rework(), level=level))
    assert re.search(">209(/| of )300<", svg)
