"""Test the operations on designs: what each operation changes, and what it must not change."""

from __future__ import annotations

import copy
import json

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from design_samples import json_values, plain_configs
from loadout_samples import CONDITIONS, config, edge, looped, route
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import equal_json
from materia_nb.loadout import build_graph
from materia_nb.loadout.design import Design
from materia_nb.loadout.design.sockets import SOCKET_FIELDS, copied_sockets, new_sockets
from materia_nb.loadout.resolve import sketch_graph
from materia_nb.loadout.topology import next_socket_id, parse_loadout


def design(document=None) -> Design:
    whole = document or looped({"exits": [route("Socket-3", "satisfied", "Socket-4")]})
    return Design("T", whole["loadouts"]["T"], whole)


def text(value) -> str:
    """Return a value as JSON text, so that comparisons include the order of keys."""
    return json.dumps(value)


@pytest.fixture
def draft():
    return design()


def codes(draft) -> set[tuple[str, str]]:
    return {(finding.code, finding.source) for finding in draft.report.problems}


# -- sockets ----------------------------------------------------------------------------


def test_added_socket_gets_the_next_canonical_id(draft):
    assert next_socket_id(draft.document) == "Socket-5"
    assert draft.add_socket("P") == "added Socket-5 (P)"
    assert draft.document["sockets"]["Socket-5"] == {"materia": "P"}
    draft.add_socket("P", "Last")
    assert list(draft.document["sockets"])[-2:] == ["Socket-5", "Last"]


def test_first_socket_is_the_entry():
    draft = Design("New", {}, config({}))
    assert not draft.report.ok, "a design can have an unfinished loadout"
    assert draft.add_socket("P") == "added Socket-1 (P) as the entry"
    assert draft.document == {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "P"}}}
    assert draft.report.ok
    draft.add_socket("P")
    assert draft.document["entry"] == "Socket-1"


@pytest.mark.parametrize("id_", ["end", "1st", "a b", "", "x" * 65, "Socket-1", None])
def test_r26_invalid_ids_are_refused(draft, id_):
    before = draft.document
    with pytest.raises(MateriaError):
        draft.rename_socket("Socket-2", id_)
    if id_ is not None:
        with pytest.raises(MateriaError):
            draft.add_socket("P", id_)
    assert draft.document is before


def test_rename_updates_every_reference():
    document = looped(
        {
            "exits": [route("Socket-3", "satisfied", "Socket-2")],
            "exit": {"from": "Socket-3", "to": "Socket-2"},
        },
        Socket_4={"foreach": {"items": "state.x", "done": "Socket-2"}, "advance": {"done": "Socket-2"}},
    )
    document["loadouts"]["T"] |= {"entry": "Socket-2", "layout": {"sockets": {"Socket-2": {"x": 1}}}}
    draft = design(document)
    before = text(draft.document)
    draft.rename_socket("Socket-2", "Make")
    renamed_route = route("Socket-3", "satisfied", "Socket-2")["id"]
    assert text(draft.document) == before.replace('"Socket-2"', '"Make"')
    assert draft.document["loops"]["L"]["exits"][0]["id"] == renamed_route
    draft.rename_socket("Socket-1", "Plan")
    assert draft.document["loops"]["L"]["consumes"] == {"from": "Plan"}


def test_rename_updates_a_cursor_named_after_the_socket():
    sockets = {
        "Socket-1": {"materia": "P", "foreach": {"items": "state.x"}, "edges": [edge("Socket-2")]},
        "Socket-2": {"materia": "P", "advance": {"cursor": "Socket-1Index", "items": "state.x"}},
    }
    draft = design(config(sockets))
    draft.rename_socket("Socket-1", "Rows")
    assert draft.document["sockets"]["Socket-2"]["advance"]["cursor"] == "RowsIndex"
    named = copy.deepcopy(sockets)
    named["Socket-1"]["foreach"]["cursor"] = "Socket-1Index"
    draft = design(config(named))
    draft.rename_socket("Socket-1", "Rows")
    assert draft.document["sockets"]["Socket-2"]["advance"]["cursor"] == "Socket-1Index", (
        "the cursor was written explicitly"
    )


def test_removing_a_socket_removes_its_references_and_reports_them(draft):
    words = draft.remove_socket("Socket-3")
    assert words == "removed Socket-3, with 3 edges, 1 exit and 1 loop membership"
    assert "Socket-3" not in text(draft.document)
    assert draft.document["sockets"]["Socket-2"] == {"materia": "P"}
    assert draft.document["loops"]["L"] == {"sockets": ["Socket-2"], "consumes": {"from": "Socket-1"}}


def test_removing_the_entry_a_loop_source_or_the_last_member_is_reported(draft):
    assert "removed the source of loop L; removed the entry" in draft.remove_socket("Socket-1")
    assert ("missing-entry", "entry") in {(hint.code, hint.source) for hint in draft.report.hints}
    assert ("missing-endpoint", "loops.L.consumes.from") in codes(draft)
    draft.remove_socket("Socket-3")
    assert "removed loop L, which has no other members" in draft.remove_socket("Socket-2")
    assert "loops" not in draft.document


def test_socket_fields_can_be_set_and_removed(draft):
    draft.set_socket("Socket-4", "assign", {"plan": "$.context"})
    draft.set_socket("Socket-4", "materia", "U")
    draft.set_socket("Socket-4", "label", "Tell")
    assert draft.document["sockets"]["Socket-4"] == {
        "materia": "U",
        "assign": {"plan": "$.context"},
        "label": "Tell",
    }
    draft.set_socket("Socket-4", "label", None)
    draft.set_socket("Socket-4", "parse", "xml")
    assert ("invalid-socket", "Socket-4.parse") in codes(draft)
    draft.set_entry("Socket-4")
    draft.place_sockets({"Socket-4": (3, 1)})
    draft.set_loadout("description", "what it is for")
    assert draft.document["entry"] == "Socket-4"
    assert draft.document["layout"] == {"sockets": {"Socket-4": {"x": 3, "y": 1}}}
    draft.place_sockets({"Socket-4": None})
    assert "layout" not in draft.document
    assert draft.document["description"] == "what it is for"
    with pytest.raises(MateriaError, match="did you mean 'assign'"):
        draft.set_socket("Socket-4", "asign", {})
    with pytest.raises(MateriaError, match="cannot change edges"):
        draft.set_socket("Socket-4", "edges", [])
    with pytest.raises(MateriaError, match="not JSON"):
        draft.set_socket("Socket-4", "assign", {"x": float("nan")})


def test_operations_copy_their_arguments():
    mine = {"plan": "$.context"}
    draft = design()
    draft.set_socket("Socket-4", "assign", mine)
    mine["plan"] = "the caller changed its argument later"
    assert draft.document["sockets"]["Socket-4"]["assign"] == {"plan": "$.context"}


def test_several_sockets_are_moved_or_removed_as_one_undo_step(draft):
    assert draft.place_sockets({"Socket-1": (0, 1), "Socket-4": (2.5, 0)}) == "moved Socket-1, Socket-4"
    assert draft.document["layout"]["sockets"]["Socket-4"] == {"x": 2.5, "y": 0}
    draft.place_sockets({"Socket-2": None, "Socket-1": None})
    assert [*draft.document["layout"]["sockets"]] == ["Socket-4"]
    words = draft.remove_sockets(["Socket-4", "Socket-3", "Socket-4"])
    assert words.startswith("removed Socket-4, with 1 exit; removed Socket-3, with 3 edges")
    assert list(draft.document["sockets"]) == ["Socket-1", "Socket-2"]
    assert len(draft.steps) == 3, "an operation without effect is not a step"


def test_unknown_fields_can_be_removed():
    draft = design(config({"Socket-1": {"materia": "P", "parse": "json", "lable": "L"}}))
    assert draft.set_socket("Socket-1", "lable", None) == "removed lable from Socket-1"
    assert draft.set_socket("Socket-1", "label", None) == "Socket-1 has no label"
    assert draft.set_socket("Socket-1", "label", "L") == "set label of Socket-1 to L"
    assert draft.document["sockets"]["Socket-1"] == {"materia": "P", "parse": "json", "label": "L"}


def test_loadout_fields_can_be_set_and_removed(draft):
    assert draft.set_loadout("label", "L") == "set label of the loadout to L"
    assert draft.set_loadout("label", None) == "removed label from the loadout"
    assert "label" not in draft.document
    with pytest.raises(MateriaError, match="did you mean 'handoff'"):
        draft.set_loadout("handof", "envelope")


def test_materia_can_be_created_and_changed_for_all_loadouts(draft):
    assert draft.make_materia("New", "agent") == "created the agent New"
    assert draft.set_materia("New", "prompt", "x" * 39) == f"set prompt of New to {'x' * 39}"
    assert draft.set_materia("New", "prompt", "x" * 40) == "set prompt of New"
    assert draft.set_materia("New", "label", None) == "New has no label"
    assert draft.set_materia("P", "prompt", None) == "removed prompt from P"
    assert draft.definitions["New"]["prompt"] == "x" * 40
    assert tuple(draft.definitions) == ("P", "G", "U", "UG", "New")
    assert {(change["op"], change["path"]) for change in draft.materia_patch()} == {
        ("remove", "/P/prompt"),
        ("add", "/New"),
    }
    assert draft.make_materia("x" * 100, "utility") == f"created the utility {'x' * 100}"


def test_socket_can_get_its_own_copy_of_a_materia(draft):
    [first, *others] = [id_ for id_, raw in draft.document["sockets"].items() if raw["materia"] == "P"]
    assert draft.copy_materia(first, "Mine") == f"copied P to Mine for {first}"
    draft.set_materia("Mine", "prompt", "x")
    assert draft.document["sockets"][first]["materia"] == "Mine"
    assert {draft.document["sockets"][id_]["materia"] for id_ in others} <= {"P"}
    assert draft.definitions["Mine"] == {**draft.definitions["P"], "label": "P", "prompt": "x"}


@pytest.mark.parametrize(
    "act, why",
    [
        (lambda d: d.copy_materia("Socket-1", "P"), "the materia 'P' already exists"),
        (lambda d: d.copy_materia("Socket-1", " New"), "is not a valid materia id"),
        (lambda d: d.copy_materia("Socket-99", "New"), "Socket-99"),
        (lambda d: d.set_materia("Q", "prompt", "x"), "the materia 'Q' does not exist"),
        (lambda d: d.set_materia("P", "promt", "x"), "has no field 'promt'"),
        (lambda d: d.set_materia("P", "prompt", {1}), "not JSON"),
        (lambda d: d.make_materia("P", "agent"), "the materia 'P' already exists"),
        (lambda d: d.make_materia("New", "agents"), "is not a kind of materia"),
        (lambda d: d.make_materia(" New", "agent"), "is not a valid materia id"),
        (lambda d: d.make_materia("x" * 101, "agent"), "is not a valid materia id"),
        (lambda d: d.make_materia("a\nb", "agent"), "is not a valid materia id"),
        (lambda d: d.make_materia(3, "agent"), "is 3, not a string"),
        (lambda d: d.remove_sockets([]), "no socket is selected"),
        (lambda d: d.paste({"sockets": {"end": {}, "Socket-1": 3}}), "the copy contains no sockets"),
        (lambda d: copied_sockets(d.document, []), "no socket is selected"),
        (lambda d: copied_sockets(d.document, ["Socket-9"]), "Socket-9"),
    ],
)
def test_invalid_copy_or_definition_is_refused_with_advice(draft, act, why):
    with pytest.raises(MateriaError, match=why) as caught:
        act(draft)
    assert caught.value.hint
    assert draft.steps == ()


def test_copied_sockets_keep_edges_between_them_and_receive_unused_ids(draft):
    draft.place_sockets({"Socket-2": (1, 2), "Socket-1": (0, 0)})
    draft.add_edge("Socket-3", "end", "failed")
    before = draft.document
    clip = copied_sockets(before, ["Socket-2", "Socket-3", "Socket-2"])
    ways = {name: [edge["to"] for edge in socket["edges"]] for name, socket in clip["sockets"].items()}
    assert ways == {"Socket-2": ["Socket-3"], "Socket-3": ["Socket-2", "Socket-2", "end"]}
    assert clip["layout"] == {"sockets": {"Socket-2": {"x": 1, "y": 2}}}
    assert draft.paste(clip) == "copied Socket-2, Socket-3 as Socket-5, Socket-6"
    assert new_sockets(before, draft.document) == ["Socket-5", "Socket-6"]
    sockets = draft.document["sockets"]
    assert [edge["to"] for edge in sockets["Socket-6"]["edges"]] == ["Socket-5", "Socket-5", "end"]
    assert draft.document["layout"]["sockets"]["Socket-5"] == {"x": 1, "y": 3}
    assert draft.document["loops"] == before["loops"]
    assert {name: sockets[name] for name in before["sockets"]} == before["sockets"]


def test_socket_copied_into_an_empty_loadout_becomes_its_entry():
    clip = copied_sockets(design().document, ["Socket-4", "Socket-1"])
    assert clip == {"sockets": {"Socket-4": {"materia": "P"}, "Socket-1": {"materia": "G"}}}
    empty = Design("New", {}, config({}))
    assert empty.paste(clip) == "copied Socket-4, Socket-1 as Socket-5, Socket-6"
    assert empty.document["entry"] == "Socket-5"
    assert "layout" not in empty.document


def test_cursor_named_after_a_copied_socket_is_renamed():
    walks = {"items": "state.rows", "as": "row"}
    socket = {"materia": "P", "foreach": walks, "advance": {"when": "always", "cursor": "Socket-1Index"}}
    draft = design(config({"Socket-1": socket}))
    draft.paste(copied_sockets(draft.document, ["Socket-1"]))
    assert draft.document["sockets"]["Socket-2"]["advance"]["cursor"] == "Socket-2Index"
    spelled = design(config({"Socket-1": {**socket, "foreach": {**walks, "cursor": "Socket-1Index"}}}))
    spelled.paste(copied_sockets(spelled.document, ["Socket-1"]))
    assert spelled.document["sockets"]["Socket-2"]["advance"]["cursor"] == "Socket-1Index"


# -- edges ------------------------------------------------------------------------------


def test_exits_and_edges_can_be_converted_into_each_other(draft):
    before = draft.document
    assert draft.exit_to_edge("L", 0) == "turned exit 1 of loop L into an edge of Socket-3"
    assert draft.document["sockets"]["Socket-3"]["edges"][-1] == edge("Socket-4", "satisfied")
    assert "exits" not in draft.document["loops"]["L"]
    assert draft.edge_to_exit("Socket-3", 2, "L") == "turned edge 3 of Socket-3 into an exit of loop L"
    assert draft.document == before
    with pytest.raises(MateriaError, match="no edge at position 2"):
        draft.edge_to_exit("Socket-3", 2, "L")
    facts = parse_loadout("T", draft.document, draft.definitions)
    assert facts.likely_generator(["Socket-2", "Socket-3"]) == "Socket-1"
    assert facts.likely_generator(["Socket-4"]) is None


def test_r3_guarded_edge_is_inserted_before_the_always_edge(draft):
    assert draft.add_edge("Socket-2", "Socket-4", "satisfied") == (
        "connected Socket-2 to Socket-4 (satisfied) as edge 1"
    )
    draft.add_edge("Socket-2", "end", "not_satisfied", max_traversals=2)
    draft.add_edge("Socket-4", "end")
    assert draft.document["sockets"]["Socket-2"]["edges"] == [
        edge("Socket-4", "satisfied"),
        edge("end", "not_satisfied", maxTraversals=2),
        edge("Socket-3"),
    ]
    assert draft.document["sockets"]["Socket-4"]["edges"] == [edge("end")]
    assert draft.report.ok
    draft.move_edge("Socket-2", 2, 0)
    assert draft.document["sockets"]["Socket-2"]["edges"][0] == edge("Socket-3")
    assert ("unreachable-edge", "Socket-2.edges[1]") in codes(draft)


def test_edges_are_changed_and_keep_their_other_fields():
    draft = design(config({"Socket-1": {"materia": "P", "edges": [edge("end", note="mine")]}}))
    draft.change_edge("Socket-1", 0, when="satisfied")
    draft.limit_edge("Socket-1", 0, 4)
    draft.change_edge("Socket-1", 0, to="Socket-1")
    assert draft.document["sockets"]["Socket-1"]["edges"] == [
        {"when": "satisfied", "to": "Socket-1", "note": "mine", "maxTraversals": 4}
    ]
    draft.limit_edge("Socket-1", 0, None)
    assert draft.document["sockets"]["Socket-1"]["edges"][0] == edge("Socket-1", "satisfied", note="mine")
    assert draft.remove_edge("Socket-1", 0) == "removed edge 1 of Socket-1 to Socket-1"
    assert "edges" not in draft.document["sockets"]["Socket-1"]


@pytest.mark.parametrize(
    "act",
    [
        lambda d: d.add_edge("Socket-2", "Socket-9"),
        lambda d: d.add_edge("Socket-9", "Socket-2"),
        lambda d: d.add_edge("Socket-2", "Socket-4", "sometimes"),
        lambda d: d.add_edge("Socket-2", "Socket-4", max_traversals=0),
        lambda d: d.add_edge("Socket-2", "Socket-4", index=2),
        lambda d: d.move_edge("Socket-2", 0, 1),
        lambda d: d.change_edge("Socket-2", -1, when="always"),
        lambda d: d.limit_edge("Socket-2", 0, 1.5),
        lambda d: d.remove_edge("Socket-4", 0),
        lambda d: d.make_loop([]),
        lambda d: d.make_loop(["Socket-4", "end"]),
        lambda d: d.make_loop(["Socket-4"], "L"),
        lambda d: d.set_source("L", "consumes", from_="Socket-9"),
        lambda d: d.set_source("L", "consumes", items="state.x"),
        lambda d: d.set_loop("L", "exits", []),
        lambda d: d.add_exit("L", "Socket-4", "always", "end"),
        lambda d: d.add_exit("L", "Socket-3", "satisfied", "end"),
        lambda d: d.add_exit("L", "Socket-3", "always", "Socket-9"),
        lambda d: d.add_exit("L", "Socket-3", "always", "end", "exit:Socket-3:satisfied"),
        lambda d: d.change_exit("L", 1, target="end"),
        lambda d: d.set_entry("end"),
        lambda d: d.undo(),
        lambda d: d.redo(),
    ],
)
def test_invalid_operation_is_refused_with_advice_and_changes_nothing(draft, act):
    before = text(draft.document)
    with pytest.raises(MateriaError) as caught:
        act(draft)
    assert caught.value.hint
    assert text(draft.document) == before
    assert draft.steps == ()


def test_field_of_the_wrong_type_is_not_overwritten():
    draft = design(config({"Socket-1": {"materia": "P", "edges": "none"}}, loops=None))
    with pytest.raises(MateriaError, match="not a list"):
        draft.add_edge("Socket-1", "end")
    draft = Design("T", {"sockets": [1]}, {})
    with pytest.raises(MateriaError, match="not an object"):
        draft.add_socket("P")
    assert draft.document == {"sockets": [1]}


# -- loops and exits --------------------------------------------------------------------


def test_r27_loop_can_be_created_from_selected_sockets():
    sockets = {
        "Socket-1": {"materia": "G", "edges": [edge("Socket-2")]},
        "Socket-2": {"materia": "P", "edges": [edge("Socket-3")]},
        "Socket-3": {"materia": "P", "parse": "json"},
        "Socket-4": {"materia": "P"},
    }
    draft = design(config(sockets))
    assert draft.make_loop(["Socket-2", "Socket-3"], consumes="Socket-1") == (
        "created loop items from Socket-2, Socket-3"
    )
    assert ("invalid-loop", "loops.items.sockets") in codes(draft), "the edges of the loop form no cycle yet"
    draft.add_edge("Socket-3", "Socket-2")
    assert draft.report.ok
    draft.add_exit("items", "Socket-3", "satisfied", "Socket-4")
    graph = draft.graph()
    assert [route.target for route in graph.loops["items"].routes] == ["Socket-4"]
    assert graph.sockets["Socket-3"].advance.derived
    assert draft.make_loop(["Socket-4"], iterator={"items": "state.rows"}).startswith("created loop items-2")


def test_exits_are_stored_in_their_loop_and_not_among_edges(draft):
    edges = text([socket.get("edges") for socket in draft.document["sockets"].values()])
    draft.add_exit("L", "Socket-3", "always", "end")
    draft.change_exit("L", 0, condition="not_satisfied", target="end")
    draft.move_exit("L", 1, 0)
    assert draft.document["loops"]["L"]["exits"] == [
        route("Socket-3", "always", "end"),
        {**route("Socket-3", "satisfied", "end"), "condition": "not_satisfied"},
    ], "the id of a route is a stable name"
    draft.remove_exit("L", 0)
    assert text([edge.get("edges") for edge in draft.document["sockets"].values()]) == edges
    assert draft.delete_loop("L") == "deleted loop L, with 1 exit"
    assert "loops" not in draft.document
    assert text([edge.get("edges") for edge in draft.document["sockets"].values()]) == edges


def test_source_of_a_loop_can_be_changed(draft):
    draft.set_source("L", "consumes", as_="piece")
    assert draft.document["loops"]["L"]["consumes"] == {"from": "Socket-1", "as": "piece"}
    draft.set_source("L", "iterator", items="state.rows")
    assert list(draft.document["loops"]["L"]) == ["sockets", "iterator", "exits"]
    assert draft.document["loops"]["L"]["iterator"] == {"items": "state.rows"}
    draft.set_source("L", "consumes", from_="Socket-1")
    assert draft.document["loops"]["L"]["consumes"] == {"from": "Socket-1", "output": "workItems"}
    draft.set_source("L", None)
    assert list(draft.document["loops"]["L"]) == ["sockets", "exits"]
    draft.set_members("L", ["Socket-3", "Socket-2"])
    draft.rename_loop("L", "items")
    draft.set_loop("items", "label", "Items")
    assert draft.document["loops"] == {
        "items": {
            "sockets": ["Socket-3", "Socket-2"],
            "exits": [route("Socket-3", "satisfied", "Socket-4")],
            "label": "Items",
        }
    }


def test_two_exits_of_a_socket_swap_their_conditions(draft):
    draft.replace({**draft.document, "loops": {"L": {"sockets": ["Socket-3"]}}}, "one loop without exits")
    draft.add_exit("L", "Socket-3", "always", "Socket-4")
    draft.add_exit("L", "Socket-3", "satisfied", "end")
    summary = draft.change_exit("L", 0, condition="satisfied")
    assert summary.endswith("from Socket-3 to Socket-4 (satisfied); exit 2 is now always")
    exits = draft.document["loops"]["L"]["exits"]
    assert [(exit_["condition"], exit_["targetSocketId"]) for exit_ in exits] == [
        ("satisfied", "Socket-4"),
        ("always", "end"),
    ]
    with pytest.raises(MateriaError, match="another exit has the same source"):
        draft.change_exit("L", 0, condition="always", source="Socket-3")


def test_removed_member_loses_its_exits(draft):
    assert draft.set_members("L", ["Socket-2"]).endswith("; removed 1 exit of former members")
    assert "exits" not in draft.document["loops"]["L"]
    draft.undo()
    assert draft.set_members("L", ["Socket-3"]) == "set the members of loop L to Socket-3"
    assert draft.document["loops"]["L"]["exits"] == [route("Socket-3", "satisfied", "Socket-4")]


def test_removed_member_loses_its_legacy_exit():
    older = {"from": "Socket-3", "when": "satisfied", "to": "Socket-4"}
    draft = design(looped({"exit": older}))
    words = draft.set_members("L", ["Socket-2"])
    assert words.startswith("set the members of loop L to Socket-2; removed 1 exit of former members")
    assert "exit" not in draft.document["loops"]["L"]
    kept = design(looped({"exit": older}))
    assert "went" not in kept.set_members("L", ["Socket-3"])
    assert kept.document["loops"]["L"]["exit"] == older
    assert kept.set_source("L", None) == "loop L no longer processes a list"
    assert not {"consumes", "iterator"} & kept.document["loops"]["L"].keys()
    with pytest.raises(MateriaError, match="is not a valid name for a loop"):
        kept.make_loop(["Socket-4"], "")


def test_r15_legacy_exit_can_be_removed():
    draft = design(looped({"exit": {"from": "Socket-3", "when": "satisfied", "to": "Socket-4"}}))
    draft.set_loop("L", "exit", None)
    assert "exit" not in draft.document["loops"]["L"]


# -- steps and what follows --------------------------------------------------------------


def test_undo_and_redo_restore_documents(draft):
    draft.add_socket("P")
    draft.add_edge("Socket-4", "Socket-5")
    after = draft.document
    assert draft.steps == ("added Socket-5 (P)", "connected Socket-4 to Socket-5 (always) as edge 1")
    assert draft.undo() == "connected Socket-4 to Socket-5 (always) as edge 1"
    assert draft.named_steps(9)[1] == ["connected Socket-4 P to Socket-5 P (always) as edge 1"]
    draft.redo()
    assert draft.document is after
    draft.undo()
    draft.set_entry("Socket-4")
    assert draft.named_steps(9)[1] == [], "a new step removes the undone steps"
    draft.set_entry("Socket-4")
    assert len(draft.steps) == 2, "an operation without effect is not a step"


def test_autosaved_design_restores_its_undo_history(draft):
    draft.set_materia("P", "prompt", "other")
    draft.set_socket("Socket-4", "label", "L")
    draft.set_materia("U", "label", "utility")
    *steps, undone = draft.unsaved_steps
    draft.undo()
    kept = []
    taken_up = design()
    taken_up.save_draft = lambda one, complete: kept.append(complete) or "no room"
    taken_up.restore_draft(steps, [undone])
    assert (taken_up.document, taken_up.definitions) == (draft.document, draft.definitions)
    assert taken_up.originals.keys() == {"P", "U"}
    assert taken_up.originals["P"]["prompt"] != "other"
    assert (kept, taken_up.draft_error) == ([True], "no room")
    assert taken_up.redo() == "set label of U to utility"
    assert (kept, "no room" in repr(taken_up)) == ([True, False], True)
    assert [taken_up.undo() for _ in range(3)][-1] == "set prompt of P to other"
    assert taken_up.document == design().document


def test_reload_of_a_changed_file_is_one_undo_step(draft):
    draft.set_materia("P", "prompt", "mine")
    changed = looped({"exits": []})
    changed["materia"]["P"]["prompt"] = "theirs"
    assert draft.reload(design(changed)) == "reloaded"
    assert draft.document == changed["loadouts"]["T"]
    assert draft.definitions["P"]["prompt"] == "theirs"
    assert not draft.changed
    assert draft.undo() == "reloaded"
    assert draft.definitions["P"]["prompt"] == "mine"
    assert draft.changed


def test_patch_covers_only_unsaved_changes(draft):
    assert draft.patch() == []
    draft.add_edge("Socket-4", "end")
    assert draft.patch() == [
        {"op": "add", "path": "/sockets/Socket-4/edges", "value": [{"when": "always", "to": "end"}]}
    ]
    assert draft.changed
    draft.mark_saved(draft.home)
    assert not draft.changed
    assert draft.patch() == []
    draft.undo()
    assert [change["op"] for change in draft.patch()] == ["remove"]


def test_valid_design_is_drawn_completely_and_invalid_design_partially(draft):
    assert draft.graph() == build_graph(draft.full_config, "T")
    draft.set_socket("Socket-2", "materia", "Nobody")
    graph = draft.graph()
    assert not draft.report.ok
    assert graph.sockets["Socket-2"].materia.label == "Nobody"
    assert [edge.index for edge in graph.sockets["Socket-3"].edges] == [0, 1]
    assert [route.id for route in graph.loops["L"].routes] == ["exit:Socket-3:satisfied"]


@given(json_values)
def test_any_document_can_be_drawn_as_a_sketch(document):
    raw = document if isinstance(document, dict) else {"sockets": document, "loops": document}
    draft = Design("T", raw, {"materia": {"P": raw}})
    sketch_graph({"loadouts": {"T": raw}, "materia": raw}, "T")
    draft.graph()
    assert draft.patch() == []


# -- any sequence of operations -----------------------------------------------------------

_ids = st.sampled_from(["Socket-1", "Socket-2", "Socket-3", "Socket-5", "New", "end", "Nowhere"])
_places = st.integers(0, 3)
_when = st.sampled_from([*CONDITIONS, "never"])
_loops = st.sampled_from(["L0", "L1", "items"])
_on_exits = st.one_of(
    st.tuples(st.just("add_exit"), _loops, _ids, _when, _ids),
    st.tuples(st.just("move_exit"), _loops, _places, _places),
    st.tuples(st.just("remove_exit"), _loops, _places),
)
_operation = st.one_of(
    st.tuples(st.just("add_socket"), st.sampled_from(["P", "G", "Nobody"])),
    st.tuples(st.just("rename_socket"), _ids, _ids),
    st.tuples(st.just("remove_socket"), _ids),
    st.tuples(st.just("set_socket"), _ids, st.sampled_from(SOCKET_FIELDS), json_values),
    st.tuples(st.just("set_entry"), _ids),
    st.tuples(st.just("place_sockets"), st.dictionaries(_ids, st.none() | st.tuples(_places, _places))),
    st.tuples(st.just("add_edge"), _ids, _ids, _when),
    st.tuples(st.just("limit_edge"), _ids, _places, _places),
    st.tuples(st.just("move_edge"), _ids, _places, _places),
    st.tuples(st.just("remove_edge"), _ids, _places),
    st.tuples(st.just("make_loop"), st.lists(_ids, max_size=3), _loops),
    st.tuples(st.just("set_members"), _loops, st.lists(_ids, max_size=3)),
    st.tuples(st.just("set_source"), _loops, st.sampled_from(["consumes", "iterator", None])),
    st.tuples(st.just("rename_loop"), _loops, _loops),
    st.tuples(st.just("delete_loop"), _loops),
    _on_exits,
    st.tuples(st.sampled_from(["undo", "redo"])),
)


def do(draft: Design, operation) -> None:
    """Apply an operation, and assert that it changes nothing if it is refused."""
    before = text(draft.document)
    try:
        getattr(draft, operation[0])(*operation[1:])
    except MateriaError:
        assert text(draft.document) == before


@given(plain_configs, st.lists(_operation, max_size=12))
def test_undoing_every_step_restores_the_original_document(document, operations):
    original = text(document)
    draft = design(document)
    began = text(draft.document)
    for operation in operations:
        do(draft, operation)
    assert equal_json(jsonpatch.apply_patch(json.loads(began), draft.patch()), draft.document)
    draft.graph()
    after, count = text(draft.document), len(draft.steps)
    while draft.steps:
        draft.undo()
    assert text(draft.document) == began
    for _ in range(count):
        draft.redo()
    assert text(draft.document) == after
    assert text(document) == original, "the given document is not changed in place"


@given(plain_configs, st.lists(_operation, max_size=12), json_values)
def test_unknown_fields_are_kept_until_their_owner_is_removed(document, operations, extra):
    loadout = document["loadouts"]["T"]
    loadout["unknown"] = extra
    for socket in loadout["sockets"].values():
        socket["unknown"] = extra
        for one in socket["edges"]:
            one["unknown"] = extra
    for loop in loadout["loops"].values():
        loop["unknown"] = extra
    draft = design(document)
    for operation in operations:
        do(draft, operation)
    now = draft.document
    assert text(now["unknown"]) == text(extra)
    for group, words in (("sockets", "added Socket-"), ("loops", "created loop ")):
        without = [key for key, one in now.get(group, {}).items() if "unknown" not in one]
        assert len(without) <= sum(step.startswith(words) for step in draft.steps)


@given(plain_configs, st.lists(_on_exits, max_size=8))
def test_operations_on_exits_leave_the_rest_of_the_design_unchanged(document, operations):
    draft = design(document)
    before = copy.deepcopy(draft.document)
    for operation in operations:
        do(draft, operation)
    after = copy.deepcopy(draft.document)
    for one in (before, after):
        for loop in one["loops"].values():
            loop.pop("exits", None)
    assert text(before) == text(after)


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        ("remove_edge", ("Socket-1", None), "index of remove_edge is null, not a whole number"),
        ("remove_edge", (["Socket-1"], 0), 'source of remove_edge is ["Socket-1"], not a string'),
        ("move_edge", ("Socket-1", 0, True), "to of move_edge is true, not a whole number"),
        ("set_socket", ({}, "parse", "json"), "id of set_socket is {}, not a string"),
        ("place_sockets", ({"Socket-1": (1, "2")},), "not an object with a column and a row for each socket"),
        ("place_sockets", ([],), "not an object with a column and a row for each socket"),
        ("remove_sockets", ("Socket-1",), 'ids of remove_sockets is "Socket-1", not a list of strings'),
        ("make_loop", ([["Socket-1"]],), "not a list of strings"),
        ("paste", (None,), "not an object"),
    ],
)
def test_argument_of_the_wrong_type_is_refused_with_a_message(draft, name, arguments, words):
    with pytest.raises(MateriaError) as raised:
        getattr(draft, name)(*arguments)
    assert raised.value.kind == "design"
    assert words in raised.value.what
    assert not draft.steps
