"""Test that Mermaid flowcharts are read as Mermaid draws them, or are refused with the line of the error."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from materia_nb import MateriaError, Workbench
from materia_nb.display.graph_parts import links
from materia_nb.display.text import graph_mermaid
from materia_nb.loadout.mermaid_import import Chart, parse_mermaid
from mermaid_charts import ARROWS, CHARTS, DIAGRAMS, IDS, LABELLED_ARROWS, LABELS, REFUSED, SHAPES


def shown(chart: Chart) -> tuple[dict[str, str | None], list[str]]:
    """Return the nodes of a chart with their labels, and its links as ``a>b:label``."""
    written = [
        f"{link.source}{'.' * link.dotted}>{link.target}{':' * bool(link.label)}{link.label}" for link in chart.links
    ]
    return {id_: node.label for id_, node in chart.nodes.items()}, written


@pytest.mark.parametrize("body", CHARTS)
def test_mermaid_statements_are_read(body):
    nodes, _, written = CHARTS[body].partition("|")
    labels = dict(node.partition("=")[::2] for node in nodes.split())
    assert shown(parse_mermaid(f"flowchart TD\n{body}")) == (
        {id_: label or None for id_, label in labels.items()},
        written.split(),
    )


@pytest.mark.parametrize("arrow", ARROWS)
def test_mermaid_arrows_are_read(arrow):
    assert shown(parse_mermaid(f"graph LR; a {arrow} b")) == ({"a": None, "b": None}, ARROWS[arrow].split())


@pytest.mark.parametrize("arrow", LABELLED_ARROWS)
def test_mermaid_arrow_labels_are_read(arrow):
    for spaced in (f"a {arrow} b", f"a {arrow}b", f"a[A] {arrow} b"):
        assert shown(parse_mermaid(f"graph LR\n{spaced}"))[1] == [LABELLED_ARROWS[arrow]]


@pytest.mark.parametrize("shape", SHAPES)
def test_mermaid_shapes_are_read(shape):
    text = f"flowchart LR\n a{shape} --> b{shape}\n c{shape}; d"
    assert shown(parse_mermaid(text)) == ({"a": "T", "b": "T", "c": "T", "d": None}, ["a>b"])


@pytest.mark.parametrize("bracket", LABELS)
def test_mermaid_labels_are_read(bracket):
    assert shown(parse_mermaid(f"graph TD\n a{bracket} --> b")) == (
        {"a": LABELS[bracket], "b": None},
        ["a>b"],
    )


@pytest.mark.parametrize("id_", IDS)
def test_mermaid_ids_are_read(id_):
    text = f"graph TD\n{id_} --> a\na-->{id_}\n{id_}[T]-->{id_}"
    assert shown(parse_mermaid(text)) == ({id_: "T", "a": None}, [f"{id_}>a", f"a>{id_}", f"{id_}>{id_}"])


@pytest.mark.parametrize(
    "head",
    ["graph TD", "flowchart", "flowchart LR;", "flowchart-elk TB", "\ufeffgraph BT", "\n\n graph RL", "graph >", "%% x\ngraph TD",
     "---\ntitle: x\n---\ngraph TD", "  ---\n  a: b\n  ---\n  graph TD", "%%{init: {\n}}%%\nflowchart TD", "flowchart TD %% x"],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_mermaid_headers_are_read(head, newline):
    text = f"{head}\n a --> b\n b --> c\n".replace("\n", newline)
    assert shown(parse_mermaid(text))[1] == ["a>b", "b>c"]


@pytest.mark.parametrize("body", REFUSED)
def test_unreadable_mermaid_error_has_a_line_number(body):
    with pytest.raises(MateriaError) as caught:
        parse_mermaid(f"---\ntitle: x\n---\nflowchart TD\n\n{body}", where="x.mmd")
    assert caught.value.kind == "bad_graph"
    where, _, line = str(caught.value.where).partition(":")
    assert where == "x.mmd"
    assert 6 <= int(line) <= 6 + body.count("\n")


@pytest.mark.parametrize("text", DIAGRAMS)
def test_mermaid_diagrams_other_than_flowcharts_are_refused(text):
    with pytest.raises(MateriaError, match="not a Mermaid flowchart"):
        parse_mermaid(text)


@pytest.mark.parametrize("text", ["", "graph TD a --> b", "hello", "graphs\na", "digraph { a }", "flowchart XX\na"])
def test_mermaid_chart_without_a_header_is_refused(text):
    with pytest.raises(MateriaError, match="not a Mermaid flowchart"):
        parse_mermaid(text)


def test_mermaid_chart_with_too_many_links_is_refused():
    many = " & ".join(f"n{number}" for number in range(100))
    with pytest.raises(MateriaError, match="more than"):
        parse_mermaid(f"graph TD\n{many} --> {many}")


LABEL = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters='"'),
    min_size=1,
    max_size=12,
)
ENCODED = str.maketrans({sign: f"#{ord(sign)};" for sign in '#;<>&`*"[]|'})


@given(st.data())
def test_equivalent_mermaid_charts_yield_the_same_graph(data):
    """Random graphs are written with random arrows, shapes, label forms and separators."""
    choose = lambda *options: data.draw(st.sampled_from(options))  # noqa: E731
    ids = data.draw(st.lists(st.from_regex(r"[A-Za-z_][\w]{0,5}", fullmatch=True), min_size=1, max_size=6, unique=True))
    ids = [f"{id_}_" for id_ in ids]
    labels = {id_: data.draw(LABEL) for id_ in ids}
    lines = []
    for id_, label in labels.items():
        opening, closing = choose(
            ("[", "]"),
            ("(", ")"),
            ("{", "}"),
            ("([", "])"),
            ("[/", "\\]"),
            ("(((", ")))"),
            ("@{ label: ", " }"),
        )
        lines.append(f'{id_}{opening}"{label.translate(ENCODED)}"{closing}')
    expected = []
    for _ in range(data.draw(st.integers(0, 6))):
        source, target, label = (
            data.draw(strategy) for strategy in (st.sampled_from(ids), st.sampled_from(ids), st.just("") | LABEL)
        )
        written = f'"{label.translate(ENCODED)}"'
        line, end = choose(("--", "-->"), ("==", "==>"), ("-.", ".->"))
        arrow = (
            line.replace("-.", "-") + end
            if not label
            else choose(f"{line} {written} {end}", f"{(line + end).replace('-..', '-.')}|{written}|")
        )
        arrow = "-.->" if not label and line == "-." else arrow
        gap = choose(" ", "  ", "\t", " \n ")
        lines.append(f"{source}{gap}{arrow}{gap}{target}{choose('', ' ', ' %% note', ':::hot')}")
        expected.append(f"{source}{'.' * (line == '-.')}>{target}{':' * bool(label)}{label}")
    text = (
        choose("graph TD", "flowchart LR")
        + "\n"
        + "".join(line + (";" if choose(0, 1) and "%%" not in line else "\n") for line in lines)
    )
    assert shown(parse_mermaid(text)) == (labels, expected)


def test_each_loadout_can_be_exported_to_mermaid_and_parsed_again(tmp_path):
    with closing(Workbench(tmp_path)) as wb:
        for name in wb.loadouts:
            graph = wb.loadouts.show(name).picture.graph
            chart = parse_mermaid(graph_mermaid(graph))
            ids = {key: f"n{number}" for number, key in enumerate(graph.sockets, 1)}
            assert set(chart.nodes) == {*ids.values(), "s0", "e0"}
            for key, id_ in ids.items():
                assert key in str(chart.nodes[id_].label)
            drawn = links(graph)
            inner = [
                (ids[link.source], ids[link.target]) for link in drawn if link.source in ids and link.target in ids
            ]
            assert [(link.source, link.target) for link in chart.links if {"s0", "e0"}.isdisjoint(link[:2])] == inner
            assert len(chart.links) == len(drawn)
