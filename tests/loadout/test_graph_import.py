"""Test importing graphs: the resulting loadouts are valid, and nodes without an equivalent are listed."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from graph_samples import LANGGRAPH, MERMAID, langgraph
from materia_nb import MateriaError, Workbench
from materia_nb.loadout.graph_import import import_graph


def edges(document: dict) -> dict[str, list[tuple[str, str]]]:
    """Return the edges of each socket, with sockets named by their materia."""
    sockets = document["sockets"]
    name = {id_: socket["materia"] for id_, socket in sockets.items()} | {"end": "end"}
    return {
        name[id_]: [(edge["when"], name[edge["to"]]) for edge in socket.get("edges", ())]
        for id_, socket in sockets.items()
    }


@pytest.mark.parametrize("source", [*LANGGRAPH.values(), *MERMAID.values()], ids=[*LANGGRAPH, *MERMAID])
def test_each_imported_example_loads_and_its_cast_completes(source, tmp_path):
    with closing(Workbench(tmp_path)) as wb:
        shown = wb.loadouts.import_graph(source)
        assert shown.report.problems == ()
        assert "complete" in wb.explore("Imported", items=(2,), states=3000).ends_seen


class TestLangGraphImport:
    def test_yes_no_branch_is_imported_as_guarded_edges(self):
        ways = edges(import_graph(LANGGRAPH["answers from documents"]).document)
        assert ways["grade"] == [("satisfied", "generate"), ("not_satisfied", "rewrite")]

    def test_branch_with_more_than_two_targets_is_imported_as_a_chain_of_yes_no_sockets(self):
        imported = import_graph(LANGGRAPH["a supervisor"])
        ways = edges(imported.document)
        assert ways["boss"] == [("always", "Is-it-research")]
        assert ways["Is-it-research"] == [("satisfied", "research"), ("not_satisfied", "Is-it-code")]
        assert ways["Is-it-code"] == [("satisfied", "code"), ("not_satisfied", "end")]
        assert [note.node for note in imported.notes] == ["boss"]

    def test_tool_node_is_merged_into_its_agent(self):
        imported = import_graph(LANGGRAPH["an agent with tools"])
        assert edges(imported.document) == {"agent": [("always", "end")]}
        assert [note.node for note in imported.notes] == ["tools"]

    @pytest.mark.parametrize(
        "ways",
        [
            ["a -> tools", "b -> tools", "tools -> a", "tools -> b"],
            ["a -use> tools", "a -on> b", "tools -> b", "b -> __end__"],
        ],
        ids=["of two agents", "that leads on"],
    )
    def test_tool_node_shared_by_several_agents_becomes_a_socket(self, ways):
        imported = import_graph(langgraph("__start__ -> a", *ways))
        assert "tools" in edges(imported.document)

    def test_parallel_branches_are_imported_as_a_sequence(self):
        imported = import_graph(LANGGRAPH["branches that join"])
        assert edges(imported.document) == {
            "split": [("always", "a")], "a": [("always", "b")], "b": [("always", "join")], "join": [("always", "end")],
        }  # fmt: skip
        assert "at the same time" in imported.notes[0].text

    def test_note_reports_that_the_satisfied_branch_was_guessed(self):
        (note,) = import_graph(LANGGRAPH["plan and execute"]).notes
        assert note.node == "replan"
        assert "assumption" in note.text

    def test_compiled_graph_is_read_through_its_json(self):
        class Drawn:
            def to_json(self):
                return LANGGRAPH["a supervisor"]

        class Compiled:
            def get_graph(self):
                return Drawn()

        assert import_graph(Compiled()) == import_graph(LANGGRAPH["a supervisor"])


class TestMermaidImport:
    def test_mermaid_labels_shapes_and_chains_are_read(self):
        assert edges(import_graph(MERMAID["a decision"]).document) == {
            "Write": [("always", "Good")],
            "Good": [("satisfied", "Done"), ("not_satisfied", "Write")],
            "Done": [],
        }

    def test_mermaid_quotes_markup_and_styles_are_read(self):
        document = import_graph(MERMAID["quoted and styled"]).document
        assert [materia["prompt"] for materia in document["materia"].values()] == ["Build (all)", "Test it."]

    @pytest.mark.parametrize(
        "text",
        [
            "sequenceDiagram\n A->>B: hi",
            "flowchart TD\n A --> [",
            "flowchart TD\n A[open",
            "flowchart TD\n A ??? B",
        ],
    )
    def test_unreadable_chart_raises_one_error(self, text):
        with pytest.raises(MateriaError) as caught:
            import_graph(text)
        assert caught.value.kind == "bad_graph"


@pytest.mark.parametrize(
    "source",
    [
        42, {}, {"nodes": [{"name": "no id"}], "edges": []}, {"nodes": [], "edges": []}, {"nodes": 3, "edges": []},
        {"nodes": [{"id": "a"}], "edges": [{"source": "a", "target": "b"}]}, "{not json", "",
        {"nodes": [{"id": "__start__"}, {"id": "__end__"}], "edges": [{"source": "__start__", "target": "__end__"}]},
    ],
)  # fmt: skip
def test_values_that_are_not_graphs_are_refused(source):
    with pytest.raises(MateriaError) as caught:
        import_graph(source)
    assert caught.value.kind == "bad_graph"


FILES = {  # bytes of a file, by its name
    "bom.mmd": b"\xef\xbb\xbfflowchart TD\n a --> b",
    "crlf.MERMAID": b"---\r\nconfig: {}\r\n---\r\ngraph TD;\r\n\ta --> b;\r\n",
    "one chart.md": b"# Title\r\n\r\n```mermaid\r\nflowchart TD\r\n a --> b\r\n```\r\nMore prose.\r\n",
    "bom.JSON": b'\xef\xbb\xbf{"nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"source": "a", "target": "b"}]}',
    "a{b.json": b'{"nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"source": "a", "target": "b"}]}',
}
WRONG_FILES = {  # bytes of a file, and a part of its error, by its name
    "empty.mmd": (b" \n", "is empty"),
    "broken.json": (b'{\n "nodes": [\n}', "broken.json:3:1"),
    "list.json": (b"[{}]", "is a list"),
    "latin.mmd": (b"flowchart TD\n a[Pr\xfcfen]", "UTF-8"),
    "two.md": (b"```mermaid\ngraph TD\n a\n```\n```mermaid\ngraph TD\n b\n```\n", "2 Mermaid blocks"),
    "none.md": (b"# Title\n", "0 Mermaid blocks"),
    "line.md": (b"# Title\n\n```mermaid\ngraph TD\n a[b\n```\n", "line.md:5"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_with_a_byte_order_mark_crlf_or_an_upper_case_suffix_are_read(name, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / name).write_bytes(FILES[name])
    for path in (tmp_path / name, str(tmp_path / name), f"~/{name}"):
        assert edges(import_graph(path).document) == {"a": [("always", "b")], "b": []}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_file_without_exactly_one_graph_raises_an_error(name, tmp_path):
    content, message = WRONG_FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MateriaError) as caught:
        import_graph(tmp_path / name)
    assert caught.value.kind == "bad_graph"
    assert message in str(caught.value)
    assert name in str(caught.value)


def test_directory_is_refused_as_a_graph_file(tmp_path):
    with pytest.raises(MateriaError, match="is a directory"):
        import_graph(tmp_path)


def test_start_and_end_nodes_inside_the_graph_become_sockets():
    document = import_graph(
        "graph TD\n a --> b{Good?}\n start --> a\n b -->|no| start\n b -->|yes| stop --> c"
    ).document
    assert edges(document)["b" if "b" in edges(document) else "Good"] == [
        ("satisfied", "stop"),
        ("not_satisfied", "start"),
    ]


def test_non_latin_title_becomes_the_label():
    document = import_graph('graph TD\n a["準備する"] --> b["Проверка"] --> c[Plan it]').document
    assert [materia.get("label") for materia in document["materia"].values()] == ["準備する", "Проверка", None]


def test_graph_file_is_imported(tmp_path):
    path = tmp_path / "flow.json"
    path.write_text(json.dumps(LANGGRAPH["a supervisor"]))
    assert import_graph(path) == import_graph(str(path)) == import_graph(LANGGRAPH["a supervisor"])
    with pytest.raises(MateriaError, match="does not exist"):
        import_graph(tmp_path / "missing.json")


def test_invalid_names_are_converted_into_materia_names():
    document = import_graph('flowchart TD\n a["1. <b>Plan</b>"] --> b["1. Plan"] --> c["ÄÖ"]').document
    assert list(document["materia"]) == ["Step-1.-Plan", "Step-1.-Plan-2", "Step"]
