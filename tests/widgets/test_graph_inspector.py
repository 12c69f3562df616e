"""What the inspector shows as the definition of a part follows from the fields of its model: none is left out."""

from __future__ import annotations

from builders import at, config, edge, retry_loop
from materia_nb.loadout import build_graph
from materia_nb.widgets.graph_inspector import Inspector

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


def test_a_socket_has_every_field_that_is_written_and_what_it_inherits():
    socket = judge().definition("socket", "A")["socket"]
    assert {name: socket.get(name) for name in WRITTEN} == WRITTEN
    assert (socket["parse"], socket["castContext"]) == ("json", "none")
    assert socket["edges"] == [
        {"when": "satisfied", "to": "B", "maxTraversals": 2},
        {"when": "always", "to": "end"},
    ]


def test_an_edge_is_shown_as_a_loadout_writes_it():
    assert judge().definition("edge", "edge:0:A") == {"when": "satisfied", "to": "B", "maxTraversals": 2}


def test_a_loop_has_the_iterator_and_a_member_the_advance_that_were_derived():
    inspector = Inspector(build_graph(retry_loop()))
    assert inspector.definition("loop", "L") == {
        "sockets": ["Build", "Eval"],
        "consumes": {"from": "Plan"},
        "exits": [
            {
                "id": "exit:Eval:satisfied",
                "from": "Eval",
                "condition": "satisfied",
                "targetSocketId": "Tell",
            }
        ],
        "iterator": {"items": "state.workItems", "as": "workItem", "cursor": "workItemIndex"},
    }
    advance = inspector.definition("socket", "Eval")["socket"]["advance"]
    assert (advance["when"], advance["derived"]) == ("satisfied", True)
