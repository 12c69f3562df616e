"""Test text tables, the text form of a graph, and its Mermaid source."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import display_graphs as graphs
from display_hostile import HOSTILE, hostile_graph, hostile_marks
from materia_nb.display.graph_parts import CastOverlay
from materia_nb.display.text import display_width, graph_mermaid, graph_text, mermaid_text, table


def test_columns_with_wide_characters_are_aligned():
    lines = table([["漢字", 1], ["ab", 200], ["👍🏽", None]], ["name", "n"]).splitlines()
    assert lines[0] == "name    n"
    assert lines[2] == "漢字    1"
    assert lines[3] == "ab    200"


def test_empty_columns_are_omitted():
    assert table([["a", None, "b"], ["c", "", "d"]], ["x", "y", "z"]).splitlines()[0] == "x  z"


def test_header_wider_than_its_narrowed_column_is_wrapped():
    headers = ["socket", "turns with unknown usage", "cost"]
    lines = table([["Socket-1", 1, "1.5 USD, not counting a turn"]], headers, width=50).splitlines()
    rule = next(line for line in lines if line.startswith("─"))
    starts = [match.start() for match in re.finditer("─+", rule)]
    assert all(line[start - 1 : start] in (" ", "") for line in lines[: lines.index(rule)] for start in starts[1:])
    assert max(map(len, lines)) <= 50


def test_table_without_rows_shows_its_headers():
    assert table([], ["x", "y"]).splitlines()[0] == "x  y"


@given(st.lists(st.lists(st.text(st.characters(codec=None), max_size=20), min_size=1, max_size=3), max_size=5))
def test_hostile_cells_stay_on_one_line(rows):
    result = table(rows, ["a", "b", "c"])
    assert len(result.split("\n")) == 2 + len(rows)
    result.encode()


@pytest.mark.parametrize("text, columns", [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("\u2068x\u2069", 1)])
def test_display_width_counts_terminal_columns(text, columns):
    assert display_width(text) == columns


def test_text_graph_lists_sockets_with_their_edges_in_order_r3_r18():
    text = graph_text(graphs.rework(), CastOverlay(visits={"Socket-5": 2}, budgets={("Socket-5", 1): (1, 3)}))
    assert re.search(
        r"Socket-5 +agent, loop consumer +Auto-Eval +json +2 +workItemIteration\n"
        r" +1\. ✓ satisfied → Socket-6; 2\. ✗ not_satisfied → Socket-4 \(used 1 of 3\)\n",
        text,
    )


def test_text_graph_lists_loops_exits_and_derived_advances_r15():
    text = graph_text(graphs.rework(), CastOverlay(progress={"workItemIteration": (2, 5)}))
    assert "advance ▸ workItemIndex when satisfied (derived)" in text
    assert "loop workItemIteration: Socket-4, Socket-5, Socket-6\n" in text
    assert "consumes workItems of Auto-Plan · 2/5 done · as workItem · cursor workItemIndex" in text
    assert "exit from Socket-6: ✓ satisfied → Socket-7  [loop-exit:workItemIteration:exit:Socket-6:satisfied]" in text


def test_text_graph_shows_the_position_of_the_cast():
    text = graph_text(graphs.rework(), CastOverlay(current="Socket-4", last_route=("Socket-3", 0)))
    assert re.search(r"Socket-4 .*▶ current", text)
    assert "always → Socket-4 ◂ taken last" in text


def test_text_graph_shows_that_the_cast_ends_if_no_edge_matches_r3():
    graph = graphs.graph("g", [graphs.socket("A", "A", ("satisfied", "A"))])
    assert "no match ▸ end" in graph_text(graph)
    covered = graphs.graph("g", [graphs.socket("A", "A", ("satisfied", "A"), ("not_satisfied", "A"))])
    assert "no match" not in graph_text(covered)


@pytest.mark.parametrize("start", range(len(HOSTILE)))
def test_hostile_text_cannot_break_lines_or_control_the_terminal(start):
    graph = hostile_graph(HOSTILE[start:] + HOSTILE[:start])
    text = graph_text(graph, hostile_marks(graph))
    text.encode()
    assert len(text) < 20_000
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


SAFE_LINE = re.compile(
    r'flowchart TD|  (s0|e0)\(\["(start|end)"\]\)|\s+n\d+(\(|\{\{|\[\[)"[^"]*"(\)|\}\}|\]\])|\s+subgraph g\d+\["[^"]*"\]'
    r'|\s+end|  \w+ (-->|-\.->|==>)(\|"[^"]*"\|)? \w+|  style n\d+ stroke:#[0-9a-f]{6},stroke-width:4px'
)


@pytest.mark.parametrize("start", range(len(HOSTILE)))
def test_names_cannot_add_statements_to_mermaid_source(start):
    graph = hostile_graph(HOSTILE[start:] + HOSTILE[:start])
    source = graph_mermaid(graph, hostile_marks(graph))
    source.encode()
    for line in source.rstrip("\n").split("\n"):
        assert SAFE_LINE.fullmatch(line), line
        for label in re.findall(r'"([^"]*)"', line):
            assert not re.search(r"[<>`&\\{}\[\]|]", label.replace("<br/>", ""))


def test_mermaid_labels_are_encoded():
    assert mermaid_text('a"b<c>#1;') == "a#34;b#60;c#62;#35;1#59;"
    assert mermaid_text("1. x") == "1#46; x"
    assert mermaid_text("- x") == "#45; x"


def test_mermaid_shows_loops_exits_and_the_route():
    source = graph_mermaid(graphs.rework(), CastOverlay(last_route=("Socket-5", 1), current="Socket-4"))
    assert 'subgraph g1["loop workItemIteration<br/>consumes workItems of Auto-Plan"]' in source
    assert 'n6 -.->|"exit ✓ satisfied"| n7' in source
    assert 'n5 ==>|"✗ not_satisfied · max 3 (taken last)"| n4' in source
    assert "style n4" in source


def test_mermaid_draws_overlapping_loops():
    make = graphs.socket
    graph = graphs.graph(
        "overlapping",
        [make("A", "A", ("always", "B")), make("B", "B", ("always", "C")), make("C", "C", ("always", "A"))],
        [graphs.loop("one", ["A", "B"], None), graphs.loop("two", ["B", "C"], None)],
    )
    assert 'o1>"loop two<br/>no list"]' in graph_mermaid(graph)
