"""Test that layouts have no forbidden overlaps, are nested correctly, and are deterministic."""

import os
import random
import time
from dataclasses import replace
from itertools import pairwise

import pytest

import display_graphs as graphs
from display_checks import forbidden_overlaps, inside, points_of
from materia_nb.cast.gallery import gallery
from materia_nb.cast.workbench import Workbench
from materia_nb.display.graph_parts import END_MARKER, START_MARKER, label_size, links, min_zoom
from materia_nb.display.layout import best_layout, layout_graph
from materia_nb.loadout.graph import Edge


def nested():
    """Return a graph with nested loops, exits from both loops, an edge back from outside, and unreachable sockets."""
    make = graphs.socket
    return graphs.graph(
        "nested",
        [
            make("Socket-1", "Plan", ("always", "Socket-2"), generator=True),
            make("Socket-2", "Design", ("satisfied", "Socket-3"), ("not_satisfied", "Socket-2", 3)),
            make("Socket-3", "Details", ("always", "Socket-4"), generator=True, kind="utility"),
            make("Socket-4", "Build", ("always", "Socket-5")),
            make("Socket-5", "Check", ("satisfied", "Socket-6"), ("not_satisfied", "Socket-4")),
            make("Socket-6", "Merge", ("satisfied", "Socket-2"), ("not_satisfied", "Socket-4")),
            make("Socket-7", "Report", ("not_satisfied", "Socket-4"), ("satisfied", "Socket-1")),
            make("Socket-8", "Lonely", ("always", "Socket-4")),
            make("Socket-9", "Lonely too", ("satisfied", "Socket-8"), ("always", "end")),
        ],
        [
            graphs.loop(
                "outer",
                [f"Socket-{n}" for n in range(2, 7)],
                "Socket-1",
                ("Socket-6", "always", "Socket-7"),
                ("Socket-4", "satisfied", "end"),
            ),
            graphs.loop("inner", ["Socket-4", "Socket-5"], "Socket-3", ("Socket-5", "satisfied", "Socket-6")),
        ],
    )


def overlapping():
    make = graphs.socket
    return graphs.graph(
        "overlapping",
        [
            make("Socket-1", "Plan", ("always", "Socket-2"), generator=True),
            make("Socket-2", "A", ("always", "Socket-3")),
            make("Socket-3", "B", ("satisfied", "Socket-2"), ("always", "Socket-4")),
            make("Socket-4", "C", ("satisfied", "Socket-3"), ("always", "end")),
        ],
        [
            graphs.loop("one", ["Socket-2", "Socket-3"], "Socket-1"),
            graphs.loop("two", ["Socket-3", "Socket-4"], None),
        ],
    )


CONDITIONS = ("always", "satisfied", "not_satisfied")
MANY = int(os.environ.get("MATERIA_GRAPHS", "30"))
"""Number of random graphs to lay out; 500 take one minute."""


def any_graph(seed):
    """Return a random graph with disjoint, nested or overlapping loops, determined by the seed."""
    draw = random.Random(seed)
    names = [f"Socket-{n}" for n in range(1, draw.randint(1, 14) + 1)]
    targets = [*names, "end"]
    sockets = [
        graphs.socket(
            name,
            draw.choice(["Build", "A materia with a rather long name, really", "漢字"]),
            *[
                (draw.choice(CONDITIONS), draw.choice(targets), draw.choice([None, 3]))
                for _ in range(draw.randint(0, 3))
            ],
            kind=draw.choice(["agent", "utility"]),
        )
        for name in names
    ]
    loops = []
    for number in range(draw.randint(0, 3)):
        members = draw.sample(names, min(len(names), draw.randint(1, 5)))
        exits = {
            (draw.choice(members), draw.choice(CONDITIONS), draw.choice(targets)): None
            for _ in range(draw.randint(0, 2))
        }
        loops.append(graphs.loop(f"loop{number}", members, None, *exits))
    return graphs.graph("any", sockets, loops)


def options(seed):
    """Return a random direction and level of detail."""
    draw = random.Random(seed)
    return {"direction": draw.choice(["down", "right"]), "level": draw.choice([1, 2, 3])}


SEEDS = range(MANY)


def overlaps(graph):
    """Return True if two loops overlap, so that they cannot have separate boxes."""
    sets = [set(loop.sockets) for loop in graph.loops.values()]
    return any(a & b and not a <= b and not b <= a for a in sets for b in sets)


@pytest.mark.parametrize("direction", ["down", "right"])
@pytest.mark.parametrize(
    "graph",
    [graphs.hello(), graphs.rework(), graphs.chain(40), graphs.tangle(40), nested(), overlapping()],
    ids=lambda graph: graph.name,
)
def test_parts_of_a_layout_do_not_overlap(graph, direction):
    assert forbidden_overlaps(layout_graph(graph, direction=direction)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_no_edge_crosses_a_card_an_edge_label_or_a_heading(seed):
    graph = any_graph(seed)
    placed = layout_graph(graph, **options(seed))
    assert placed.nodes.keys() == graph.sockets.keys()
    if overlaps(graph):
        return
    assert forbidden_overlaps(placed) == []
    for loop in graph.loops.values():
        for socket, box in placed.nodes.items():
            held = inside(placed.loops[loop.id], (box.cx, box.cy))
            assert held == (socket in loop.sockets), (loop.id, socket)


@pytest.mark.parametrize(
    "seed, direction, level",
    [(86, "down", 3), (59, "down", 1), (97, "right", 1), (230, "right", 3), (434, "right", 3)],
)
def test_parts_do_not_overlap_if_edge_labels_are_close_together(seed, direction, level):
    """The graphs have edge labels that face each other, lie next to incoming edges, or are too many for one side of a
    card.
    """
    assert forbidden_overlaps(layout_graph(any_graph(seed), direction=direction, level=level)) == []


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_parts_do_not_overlap_if_a_person_has_moved_the_cards(seed):
    graph = any_graph(seed)
    draw = random.Random(seed)
    cells = [(column, row) for column in range(0, 10, 2) for row in range(0, 10, 2)]
    draw.shuffle(cells)
    spots = {
        key: (x + draw.uniform(-0.2, 0.2), y + draw.uniform(-0.2, 0.2))
        for key, (x, y) in zip(graph.sockets, cells, strict=False)
    }
    placed = layout_graph(replace(graph, loops={}), **options(seed), positions=spots)
    assert forbidden_overlaps(placed) == []
    assert placed.grid_positions() == pytest.approx(
        {key: pytest.approx(spot, abs=0.001) for key, spot in spots.items()}
    )


@pytest.mark.parametrize("seed", SEEDS[::2])
def test_edits_move_only_the_edited_card(seed):
    """After a socket is added, removed or dragged, other sockets keep their positions, and edges avoid all sockets."""
    draw, graph = random.Random(seed), replace(any_graph(seed), loops={})
    placed = layout_graph(graph, **options(seed))
    for number in range(6):
        spots, sockets = placed.grid_positions(), dict(graph.sockets)
        edit, target = draw.choice(["add", "remove", "move"]), draw.choice([*sockets])
        if edit == "add":
            new = graphs.socket(f"New-{number}", "Build", (draw.choice(CONDITIONS), target))
            sockets[new.id] = new
            if draw.random() < 0.7:
                led = (
                    *sockets[target].edges,
                    Edge(draw.choice(CONDITIONS), new.id, len(sockets[target].edges)),
                )
                sockets[target] = replace(sockets[target], edges=led)
        elif edit == "remove" and len(sockets) > 1:
            del sockets[target], spots[target]
        else:
            spots[target] = (40.0 + number, draw.uniform(0, 3))
        graph = replace(graph, sockets=sockets)
        placed = layout_graph(graph, **options(seed), positions=spots)
        assert forbidden_overlaps(placed) == [], edit
        now = placed.grid_positions()
        assert {key: now[key] for key in spots} == {key: pytest.approx(at, abs=0.001) for key, at in spots.items()}


def test_new_card_is_placed_after_its_predecessor_and_outside_other_loops():
    make = graphs.socket
    names = ("A", "B", "C", "D")
    graph = graphs.graph("new", [make(name, name) for name in names], [graphs.loop("one", ["A", "C"], None)])
    spots = layout_graph(graph, positions={"A": (0, 0), "B": (0, 2), "C": (2, 0)}).grid_positions()
    assert spots["D"] == (3, 0)
    spots = layout_graph(graph, positions={"A": (0, 0), "B": (1, -1), "C": (3, 0)}).grid_positions()
    assert spots["D"] == (4, 0)
    chain = graphs.graph("chain", [make("A", "A"), make("B", "B", ("always", "C")), make("C", "C")])
    inside_loop = replace(chain, loops={"one": graphs.loop("one", ["A", "C"], None)})
    assert layout_graph(inside_loop, positions={"A": (0, 0), "C": (3, 0)}).grid_positions()["B"] == (2, 1)
    assert layout_graph(chain, positions={"A": (0, 0)}).grid_positions() == {
        "A": (0, 0),
        "B": (1, 0),
        "C": (2, 0),
    }


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_every_link_is_drawn_from_its_source_to_its_target_at_right_angles(seed):
    graph = any_graph(seed)
    placed = layout_graph(graph, **options(seed))
    boxes = {**placed.nodes, **placed.markers}
    drawn = {line.link.key: line for line in placed.edges}
    assert drawn.keys() == {link.key for link in links(graph)}
    for line in placed.edges:
        assert inside(boxes[line.link.source], line.points[0], margin=-1)
        assert line.stub or inside(boxes[line.link.target], line.tip, margin=-1)
        for (ax, ay), (bx, by) in zip(line.points, line.points[1:], strict=False):
            assert abs(ax - bx) < 0.1 or abs(ay - by) < 0.1


def test_vertical_flow_runs_down_and_rework_edges_return_on_the_left():
    placed = layout_graph(graphs.rework())
    rows = [placed.nodes[f"Socket-{n}"].y for n in range(1, 7)]
    assert rows == sorted(rows)
    assert placed.markers[START_MARKER].bottom <= placed.nodes["Socket-1"].y
    rework = next(line for line in placed.edges if line.link.key == "edge:1:Socket-5")
    assert rework.heading == (1.0, 0.0)  # arrives at the left side
    assert max(x for x, _ in rework.points) <= placed.nodes["Socket-4"].x


def test_horizontal_flow_runs_to_the_right():
    placed = layout_graph(graphs.rework(), direction="right")
    columns = [placed.nodes[f"Socket-{n}"].x for n in (1, 2, 3, 4, 5, 6, 7)]
    assert columns == sorted(columns)
    assert placed.markers[END_MARKER].x >= max(box.right for box in placed.nodes.values())
    assert placed.size[1] < layout_graph(graphs.rework()).size[1]


def test_positions_stored_in_the_loadout_are_kept():
    graph = graphs.rework()
    at = {"Socket-1": (0.0, 0.0), "Socket-2": (1.25, 0.5)}
    placed = layout_graph(graph, direction="right", positions=at)
    without = layout_graph(
        replace(graph, sockets={k: v for k, v in graph.sockets.items() if k in at}, loops={}),
        direction="right",
        positions=at,
    )
    for key in at:
        assert placed.nodes[key] == without.nodes[key]
    # Mirrored along the diagonal where the flow runs down: neighbours stay neighbours.
    down = layout_graph(graph, direction="down", positions=at)
    assert down.grid_position(down.nodes["Socket-2"].cx, down.nodes["Socket-2"].cy) == (1.25, 0.5)
    # One without a place stands beside what leads to it.
    assert placed.grid_position(placed.nodes["Socket-3"].cx, placed.nodes["Socket-3"].cy) == (2.25, 0.5)


def test_long_flow_wraps_to_another_row_and_is_readable():
    placed = best_layout(graphs.chain(12), (848.0, 500.0))
    assert placed.scale((848.0, 500.0)) >= min_zoom(placed.level)
    assert len({round(box.y) for box in placed.nodes.values()}) > 1
    assert len({round(box.x) for box in placed.nodes.values()}) > 1


ROOM = (507.0, 476.0)  # what a cell of 848 pixels leaves beside the inspector and above the tools


def shipped_graphs():
    """Return the graphs of the bundled loadouts and of the gallery, without the positions that they specify."""
    bench = Workbench()
    known = [bench.graph(name) for name in bench.loadouts]
    return known + [card.graph for card in gallery().values() if card.graph is not None]


def ship_it(validator_end=None):
    """Return a graph with a validator between generator and loop, and with two exits to a second column of cards."""
    make = graphs.socket
    to_end = [] if validator_end is None else [(validator_end, "end")]
    return graphs.graph(
        "ship-it",
        [
            make("Socket-1", "Plan", ("always", "Socket-2"), generator=True),
            make("Socket-2", "Validate", *to_end, ("always", "Socket-3")),
            make("Socket-3", "Build", ("always", "Socket-4")),
            make("Socket-4", "Lint", ("always", "Socket-5"), kind="utility"),
            make("Socket-5", "Eval", ("not_satisfied", "Socket-3"), ("always", "Socket-6")),
            make("Socket-6", "Maintain", ("always", "Socket-3")),
            make("Socket-7", "Commit", ("always", "Socket-9")),
            make("Socket-8", "Ask-Back", ("always", "Socket-9")),
            make("Socket-9", "Publish", ("always", "Socket-10")),
            make("Socket-10", "Narrate"),
        ],
        [
            graphs.loop(
                "items",
                ["Socket-3", "Socket-4", "Socket-5", "Socket-6"],
                None,
                ("Socket-6", "satisfied", "Socket-7"),
                ("Socket-6", "not_satisfied", "Socket-8"),
            )
        ],
    )


def tidied(graph):
    """Return the layouts of a graph after *Tidy up* in a cell of 848 pixels, and in both directions."""
    fitted = best_layout(graph, ROOM, positions={}, levels=(2, 1))
    return [fitted, *(layout_graph(graph, direction=way, positions={}) for way in ("down", "right"))]


def test_start_and_end_markers_are_not_between_connected_cards():
    interrupted = []
    for graph in [*shipped_graphs(), ship_it("failed"), graphs.rework(), nested()]:
        for placed in tidied(graph):
            pairs = [(placed.nodes[link.source], placed.nodes.get(link.target)) for link in links(graph)[1:]]
            gaps = [gap for source, target in pairs if target is not None and (gap := source.gap(target))]
            interrupted += [(graph.name, placed.direction) for sign in placed.markers.values() if sign.overlaps(gaps)]
    assert interrupted == []


def test_exits_do_not_run_through_their_own_loop():
    """An exit leaves the box of its loop once; a later segment inside the box would look like part of the loop."""
    crossings = []
    for graph in [*shipped_graphs(), ship_it(), ship_it("failed"), graphs.rework(), nested()]:
        for placed in tidied(graph):
            for line in placed.edges:
                loop = line.link.loop
                if loop is None or line.link.target in graph.loops[loop].sockets or loop not in placed.loops:
                    continue
                held = [inside(placed.loops[loop], point) for point in points_of(line.d)]
                if any(after and not before for before, after in pairwise(held)):
                    crossings.append((graph.name, placed.direction, line.link.key))
    assert crossings == []


def test_every_bundled_loadout_is_readable_without_zooming():
    room, known, small = ROOM, shipped_graphs(), {}
    for graph in known:
        placed = best_layout(graph, room)
        if placed.scale(room) < min_zoom(placed.level):
            small[graph.name] = placed.scale(room)
    assert len(known) > 25
    assert small == {}
    # In a surface of 400 pixels one goes on below, and not aside too, wherever cards that are read leave that.
    aside = [one.name for one in known if (it := best_layout(one, (266, 400))).size[0] * min_zoom(it.level) > 266]
    assert set(aside) <= {"Mime-Aside", "Parallel-Build"}


def test_cards_show_as_much_detail_as_fits():
    levels = [best_layout(graphs.rework(), room).level for room in ((1600, 1200), (700, 560), (420, 560))]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] == 3
    assert levels[-1] < 3


def test_exits_between_the_same_sockets_share_a_line_and_a_label():
    make = graphs.socket
    graph = graphs.graph(
        "exits",
        [make("A", "A", generator=True), make("B", "B"), make("C", "C")],
        [graphs.loop("one", ["B"], "A", ("B", "satisfied", "C"), ("B", "not_satisfied", "C"))],
    )
    first, second = (line for line in layout_graph(graph).edges if line.link.kind == "exit")
    assert first.points == second.points
    assert first.label is not None
    assert second.label is None
    assert first.shared == (second.link,)


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_edges_of_a_collapsed_loop_end_at_its_card(seed):
    graph = any_graph(seed)
    folded = frozenset(graph.loops)
    placed = layout_graph(graph, **options(seed), folded=folded)
    if overlaps(graph):
        return
    inside_loops = {socket_id for loop in graph.loops.values() for socket_id in loop.sockets}
    assert placed.nodes.keys() == graph.sockets.keys() - inside_loops
    assert not placed.titles
    assert forbidden_overlaps(placed) == []
    outermost = [box for key, box in placed.loops.items() if key in placed.folded]
    for line in placed.edges:
        for end in (line.link.source, line.link.target):
            assert end in placed.nodes or end in placed.markers or outermost


def test_parallel_and_opposite_edges_do_not_overlap():
    graph = graphs.graph(
        "two",
        [
            graphs.socket("A", "A", ("satisfied", "B"), ("always", "B")),
            graphs.socket("B", "B", ("satisfied", "A"), ("not_satisfied", "A"), ("always", "B")),
        ],
    )
    placed = layout_graph(graph)
    assert len({line.d for line in placed.edges}) == len(placed.edges)
    assert forbidden_overlaps(placed) == []


def test_detached_sockets_are_drawn_with_their_edges():
    placed = layout_graph(nested())
    assert placed.detached == ("Socket-8", "Socket-9")
    assert {line.link.source for line in placed.edges} >= {"Socket-8", "Socket-9"}


def test_edge_to_a_missing_socket_is_not_drawn():
    graph = graphs.hello()
    broken = replace(graph.sockets["Socket-2"], edges=(Edge("always", "nowhere", 0),))
    placed = layout_graph(replace(graph, sockets={**graph.sockets, "Socket-2": broken}))
    assert {line.link.key for line in placed.edges} == {"start", "edge:0:Socket-1"}


def test_graph_with_a_missing_entry_can_be_drawn():
    placed = layout_graph(replace(graphs.hello(), entry="nowhere"))
    assert set(placed.detached) == {"Socket-1", "Socket-2"}


def test_graph_without_sockets_has_a_picture():
    empty = replace(graphs.hello(), sockets={}, entry="")
    assert layout_graph(empty).nodes == {}


def test_long_chain_and_densely_connected_graph_are_laid_out_quickly():
    for graph in (graphs.chain(500), graphs.tangle(500)):
        started = time.process_time()
        placed = layout_graph(graph)
        assert time.process_time() - started < 5  # some tenths of a second; far more means it is not linear
        assert len(placed.nodes) == 500


def test_longest_lines_of_a_large_graph_name_their_target():
    make = graphs.socket
    last = 400
    graph = graphs.graph(
        "far",
        [
            make(f"S{n}", "step", ("not_satisfied", f"S{max(1, n - 200)}"), ("always", f"S{n + 1}"))
            for n in range(1, last)
        ]
        + [make(f"S{last}", "step")],
    )
    placed = layout_graph(graph)
    stubs = [line for line in placed.edges if line.stub]
    assert stubs
    assert all(line.label for line in stubs)


def test_edge_label_box_fits_its_longest_text():
    """The box must fit the label texts of a loadout without a cast and of a running cast."""
    link = next(link for link in links(graphs.rework()) if link.limit == 3)
    assert label_size([link], 2, stub=False)[0] >= label_size([replace(link, limit=None)], 2, stub=False)[0]


@pytest.mark.parametrize("seed", SEEDS[:5])
def test_equal_graphs_have_equal_layouts(seed):
    assert layout_graph(any_graph(seed)) == layout_graph(any_graph(seed))
