"""What overlaps, what is inside what, and that a picture is the same each time."""

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import display_graphs as graphs
from display_checks import faults, inside, points_of
from materia_nb.display.graph_parts import END_SIGN, START, links
from materia_nb.display.layout import place
from materia_nb.loadout.graph import Edge


def nested():
    """A loop in a loop, exits from both, a way back from outside, sockets that nothing leads to."""
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


@st.composite
def any_graph(draw):
    """Any sockets, edges, and loops that are disjoint, nested or overlapping."""
    size = draw(st.integers(1, 14))
    names = [f"Socket-{n}" for n in range(1, size + 1)]
    target = st.sampled_from([*names, "end"])
    condition = st.sampled_from(["always", "satisfied", "not_satisfied"])
    edge = st.tuples(condition, target, st.sampled_from([None, 3]))
    sockets = [
        graphs.socket(
            name,
            draw(st.sampled_from(["Build", "A materia with a rather long name, really", "漢字"])),
            *draw(st.lists(edge, max_size=3)),
            kind=draw(st.sampled_from(["agent", "utility"])),
        )
        for name in names
    ]
    loops = []
    for number in range(draw(st.integers(0, 3))):
        members = draw(st.lists(st.sampled_from(names), min_size=1, max_size=5, unique=True))
        exits = draw(
            st.lists(st.tuples(st.sampled_from(members), condition, target), max_size=2, unique=True)
        )
        loops.append(graphs.loop(f"loop{number}", members, None, *exits))
    return graphs.graph("any", sockets, loops)


def overlaps(graph):
    """Whether a loop cannot have a box of its own."""
    sets = [set(loop.sockets) for loop in graph.loops.values()]
    return any(a & b and not a <= b and not b <= a for a in sets for b in sets)


@pytest.mark.parametrize("direction", ["down", "right"])
@pytest.mark.parametrize(
    "graph",
    [graphs.hello(), graphs.rework(), graphs.chain(40), graphs.tangle(40), nested(), overlapping()],
    ids=lambda graph: graph.name,
)
def test_nothing_overlaps(graph, direction):
    assert faults(place(graph, direction=direction)) == []


DIRECTIONS = st.sampled_from(["down", "right"])


@given(any_graph(), DIRECTIONS)
@settings(max_examples=60)
def test_every_graph_is_placed_without_overlaps(graph, direction):
    placed = place(graph, direction=direction)
    assert placed.nodes.keys() == graph.sockets.keys()
    if not overlaps(graph):
        assert faults(placed) == []


@given(any_graph(), DIRECTIONS)
@settings(max_examples=40)
def test_a_loop_box_holds_its_members_and_nothing_else(graph, direction):
    placed = place(graph, direction=direction)
    if overlaps(graph):
        return
    for loop in graph.loops.values():
        for socket, box in placed.nodes.items():
            held = inside(placed.loops[loop.id], (box.cx, box.cy))
            assert held == (socket in loop.sockets), (loop.id, socket)


@given(any_graph(), DIRECTIONS)
@settings(max_examples=40)
def test_every_link_is_drawn_from_its_source_to_its_target(graph, direction):
    placed = place(graph, direction=direction)
    boxes = {**placed.nodes, **placed.signs}
    drawn = {line.link.key: line for line in placed.edges}
    expected = {link.key for link in links(graph) if link.source not in placed.detached}
    assert drawn.keys() == expected
    for line in placed.edges:
        first = tuple(float(n) for n in line.d[1:].split("L")[0].split("C")[0].split())
        source, target = boxes[line.link.source], boxes[line.link.target]
        assert inside(source, first, margin=-1)
        assert line.stub or inside(target, line.tip, margin=-1)


def test_flow_runs_down_and_rework_runs_back_up():
    placed = place(graphs.rework())
    rows = [placed.nodes[f"Socket-{n}"].y for n in range(1, 7)]
    assert rows == sorted(rows)
    end = placed.signs[END_SIGN]
    assert all(box.bottom <= end.y for box in placed.nodes.values())
    assert placed.signs[START].bottom <= placed.nodes["Socket-1"].y
    rework = next(line for line in placed.edges if line.link.key == "edge:1:Socket-5")
    assert rework.heading == (-1.0, 0.0)  # arrives at the side
    assert min(x for x, _ in points_of(rework.d)) >= placed.nodes["Socket-4"].right - 1


def test_flow_runs_to_the_right_and_a_short_loop_down():
    placed = place(graphs.rework(), direction="right")
    columns = [placed.nodes[f"Socket-{n}"].x for n in (1, 2, 3, 4, 7)]
    assert columns == sorted(columns)
    rows = [placed.nodes[f"Socket-{n}"].y for n in (4, 5, 6)]
    assert rows == sorted(rows)
    assert placed.signs[END_SIGN].x >= max(box.right for box in placed.nodes.values())
    assert placed.size[1] < place(graphs.rework()).size[1]


@given(any_graph(), DIRECTIONS)
@settings(max_examples=40)
def test_a_folded_loop_is_one_card_that_its_lines_lead_to(graph, direction):
    folded = frozenset(graph.loops)
    placed = place(graph, direction=direction, folded=folded)
    if overlaps(graph):
        return
    inside_loops = {one for loop in graph.loops.values() for one in loop.sockets}
    assert placed.nodes.keys() == graph.sockets.keys() - inside_loops
    assert not placed.titles
    assert faults(placed) == []
    outermost = [box for key, box in placed.loops.items() if key in placed.folded]
    for line in placed.edges:
        for end in (line.link.source, line.link.target):
            assert end in placed.nodes or end in placed.signs or outermost


def test_parallel_edges_and_both_directions_are_apart():
    graph = graphs.graph(
        "two",
        [
            graphs.socket("A", "A", ("satisfied", "B"), ("always", "B")),
            graphs.socket("B", "B", ("satisfied", "A"), ("not_satisfied", "A"), ("always", "B")),
        ],
    )
    placed = place(graph)
    assert len({line.d for line in placed.edges}) == len(placed.edges)
    assert faults(placed) == []


def test_sockets_that_nothing_leads_to_stand_in_a_row_below_everything():
    placed = place(nested())
    assert placed.detached == ("Socket-8", "Socket-9")
    lowest = max(box.bottom for box in [placed.nodes["Socket-7"], placed.signs[END_SIGN]])
    assert all(placed.nodes[key].y > lowest for key in placed.detached)


def test_a_target_that_does_not_exist_is_left_out():
    graph = graphs.hello()
    broken = replace(graph.sockets["Socket-2"], edges=(Edge("always", "nowhere", 0),))
    placed = place(replace(graph, sockets={**graph.sockets, "Socket-2": broken}))
    assert {line.link.key for line in placed.edges} == {"start", "edge:0:Socket-1"}


def test_an_entry_that_does_not_exist_is_no_error():
    placed = place(replace(graphs.hello(), entry="nowhere"))
    assert set(placed.detached) == {"Socket-1", "Socket-2"}


def test_a_graph_without_sockets_has_a_picture():
    empty = replace(graphs.hello(), sockets={}, entry="")
    assert place(empty).nodes == {}


def test_a_long_chain_and_a_large_tangle_are_placed():
    for graph in (graphs.chain(500), graphs.tangle(500)):
        started = time.process_time()
        placed = place(graph)
        assert time.process_time() - started < 5  # some tenths of a second; far more means it is not linear
        assert len(placed.nodes) == 500


def test_the_longest_lines_of_a_large_graph_name_their_target():
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
    placed = place(graph)
    stubs = [line for line in placed.edges if line.stub]
    assert stubs
    assert all(line.label for line in stubs)


@given(any_graph())
@settings(max_examples=20)
def test_the_same_graph_gives_the_same_layout(graph):
    assert place(graph) == place(replace(graph))
