"""Test that the inspector shows the definition, the current state and the last use of a part of a graph."""

from __future__ import annotations

import pytest

import cast_helpers as h
from builders import at, config, edge, retry_loop
from materia_nb.display.blocks import FactTable, Table, blocks_as_text
from materia_nb.loadout import build_graph
from materia_nb.widgets.selection import Inspector

WRITTEN = {
    "handoff": "agent-contract",
    "finalize": True,
    "label": "The judge",
    "assignment": {"goal": "judge", "acceptance_criteria": ["it runs"]},
    "limits": {"maxVisits": 3},
}


def judge():
    judged = at("P", {**edge("B", "satisfied"), "maxTraversals": 2}, edge("end"), parse="json")
    document = config({"A": {**judged, **WRITTEN}, "B": at("P")})
    (loadout,) = document["loadouts"].values()
    loadout["castContext"] = "none"
    return Inspector(build_graph(document))


def test_definitions_of_sockets_and_loops_contain_the_configured_fields():
    socket = judge().definition("socket", "A")["socket"]
    assert {name: socket.get(name) for name in WRITTEN} == WRITTEN
    assert judge().definition("edge", "edge:0:A") is None
    loop = Inspector(build_graph(retry_loop())).definition("loop", "L")
    assert (loop["sockets"], loop["consumes"]) == (["Build", "Eval"], {"from": "Plan"})


def test_edge_details_show_the_last_routing_decision(cast):
    cast.run()
    inspector = Inspector(cast.graph, cast.now)
    exit_key = "loop-exit:items:exit:Socket-4:satisfied"
    for kind, key, name, taken in (
        ("edge", "edge:0:Socket-3", "edge 1", "yes"),
        ("edge", "edge:1:Socket-3", "edge 2", "no"),
        ("exit", exit_key, exit_key, "yes"),
    ):
        blocks = inspector.about(kind, key)
        assert [(row[0], row[3]) for block in blocks if isinstance(block, Table) for row in block.rows] == [
            (name, taken)
        ]
        assert (f"This {kind} was taken." in blocks_as_text(blocks)) == (taken == "yes")


def test_loop_details_show_the_list_and_the_cursor():
    text = blocks_as_text(Inspector(build_graph(retry_loop())).about("loop", "L"))
    assert "state.workItems" in text
    assert "workItemIndex" in text


def test_edge_details_show_the_fields_of_the_edge(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(1))
    cast.run()

    def rows(inspector, kind, key):
        (table,) = (one for one in inspector.about(kind, key) if isinstance(one, FactTable))
        return dict(table.rows)

    told = Inspector(cast.graph, cast.now)
    guarded = rows(told, "edge", "edge:1:Socket-3")
    assert guarded.pop("may be taken")
    assert guarded == {
        "from": "Check",
        "to": "Build",
        "when": "not_satisfied",
        "taken": "0 times in total",
    }
    out = {"from": "Check", "to": "Tell", "loop": "L"}
    out["when"] = "the list is exhausted, and satisfied"
    assert rows(told, "exit", "loop-exit:L:e") == {**out, "taken": "1 time in total"}
    assert rows(told, "edge", "implied:Socket-4") == {
        "from": "Tell",
        "to": "the end",
        "when": "always: a socket without edges ends the cast successfully",
        "taken": "1 time in total",
    }
    bare = Inspector(cast.graph)
    assert rows(bare, "exit", "loop-exit:L:e") == out
    assert rows(bare, "edge", "edge:0:Socket-1").keys() == {"from", "to", "when", "may be taken"}
    cast.close()


@pytest.fixture
def checking(tmp_path):
    """Return a cast that waits for the second check of its first item."""
    cast = h.start(tmp_path, h.loop_config(), {**h.loop_agents(2), "Check": h.Until(h.NO, kinds=("work",))})
    cast.run()
    assert (cast.now.waiting_at.socket, len(cast.steps)) == ("Socket-3", 5)
    yield cast
    cast.close()


def test_socket_details_show_the_status_and_the_targets(checking):
    checking.breakpoints.add("Socket-3")
    facts, _, ways, *_ = Inspector(checking.graph, checking.now).about("socket", "Socket-3")
    rows = dict(facts.rows)
    assert (rows["materia"], rows["visits"], rows["breakpoint"]) == ("Check (Check)", "2", "before Check")
    assert (rows["output"], rows["loops"], rows["protocol"]) == ("json", "L", "sparse")
    assert rows["item"] == "state.workItems at the cursor workItemIndex"
    assert "group" not in rows
    assert [row[1:] for row in ways.rows] == [("", "0"), ("this item: 1 of 3", "1"), ("", "0")]
    bare, _, ways, *_ = Inspector(checking.graph).about("socket", "Socket-3")
    assert not {"visits", "breakpoint"} & dict(bare.rows).keys()
    assert [row[1:] for row in ways.rows] == [("", "")] * 3


def test_edge_limits_are_shown_with_usage_or_as_configured(checking):
    def may(inspector, key):
        facts = next(one for one in inspector.about("edge", key) if isinstance(one, FactTable))
        return dict(facts.rows)["may be taken"]

    told, bare = Inspector(checking.graph, checking.now), Inspector(checking.graph)
    assert may(told, "edge:1:Socket-3") == "3 times for the current item; used 1"
    assert may(bare, "edge:1:Socket-3") == "3 times for each item (maxTraversals)"
    assert may(bare, "edge:0:Socket-1").startswith("at most ")
    assert "No step has left this socket yet." in blocks_as_text(told.about("edge", "implied:Socket-4"))
    assert "Last time" not in blocks_as_text(bare.about("edge", "implied:Socket-4"))
    left = blocks_as_text(told.about("edge", "edge:1:Socket-3"))
    assert "This edge was taken." in left


def test_utility_without_a_cast_shows_its_command_and_accepted_output():
    bare = Inspector(build_graph(config({"A": at("T")})))
    text = blocks_as_text(bare.about("socket", "A"))
    assert "command: true" in text
    assert "Any text is accepted." in text
    assert "a process" in text
