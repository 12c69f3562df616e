"""Test design mode by sending the messages of the page, without a browser or widgets."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadout_samples import edge, json_values, looped, route
from materia_nb import Workbench
from materia_nb.loadout.design import Design
from materia_nb.loadout.design.document import OPERATIONS
from materia_nb.loadout.layers import PROJECT_FILE
from materia_nb.widgets.design_session import DesignSession
from materia_nb.widgets.design_slices import design_slice
from materia_nb.widgets.design_state import design_messages, inspector_slice
from materia_nb.widgets.frontend import parameters_of

HOSTILE = "<img src=x onerror=window.__owned=1>"


@pytest.fixture
def wb(wb):
    wb.use("Plan-Build-Eval")
    return wb


@pytest.fixture
def session(wb):
    return DesignSession(wb, wb.design())


@pytest.fixture
def fresh(wb):
    return DesignSession(wb, wb.design("New", new=True))


def do(session, kind, **values):
    """Send a message that must succeed, and return the new description of the design."""
    session.on_message(kind, values)
    assert session.note[0] == "status", session.note
    return design_slice(session)


def refused(session, kind, **values) -> str:
    before = json.dumps(session.design.document)
    session.on_message(kind, values)
    assert json.dumps(session.design.document) == before
    assert session.note[0] == "alert"
    return session.note[1]


def put(session, kind, key, field, value):
    return do(session, "set", of=[kind, key], field=field, value=value)


def field(told, name, part="inspector"):
    found = told[part]["fields"] if part == "inspector" else told["inspector"]["materia"]["fields"]
    return next(one for one in found if one["name"] == name)


# -- the design of the finding: 8 sockets, 8 edges, 2 loops, 2 exits ---------------------------


def test_design_with_eight_sockets_two_loops_and_two_exits_needs_few_messages(fresh):
    count = 0

    def act(kind, **values):
        nonlocal count
        count += 1
        do(fresh, kind, **values)

    for materia in ("Plan", "Build", "Eval", "Maintain", "Auto-Plan", "Draft", "Critique", "Narrate"):
        act("add", materia=materia)
    one, two, three, four, five, six, seven, eight = (f"Socket-{number}" for number in range(1, 9))
    for source, to in ((one, two), (two, three), (three, four), (three, two), (four, two)):
        act("connect", **{"from": source, "to": to})
    for source, to in ((five, six), (six, seven), (seven, six)):
        act("connect", **{"from": source, "to": to})
    act("marquee", ids=[two, three, four])
    act("loop")
    act("marquee", ids=[six, seven])
    act("loop")
    act("connect", **{"from": four, "to": five})
    act("connect", **{"from": seven, "to": eight})
    document = fresh.design.document
    assert fresh.design.report.problems == ()
    assert document["sockets"][three]["edges"] == [edge(two, "not_satisfied"), edge(four)]
    assert {name: loop["sockets"] for name, loop in document["loops"].items()} == {
        "items": [two, three, four],
        "items-2": [six, seven],
    }
    assert document["loops"]["items"]["consumes"]["from"] == one
    assert document["loops"]["items-2"]["consumes"]["from"] == five
    assert [loop["exits"][0]["targetSocketId"] for loop in document["loops"].values()] == [five, eight]
    assert count < 40


# -- nothing typed is lost, or taken for another part --------------------------------------


def test_input_is_applied_to_its_element_even_if_the_selection_has_changed(session):
    do(session, "pick", part=["socket", "Socket-2"])
    put(session, "materia", "Eval", "prompt", "Judge {{item.title}}.\n")
    assert session.design.definitions["Eval"]["prompt"] == "Judge {{item.title}}.\n", "prose is kept as it is"
    put(session, "edge", "edge:1:Socket-3", "maxTraversals", " 7 ")
    assert session.design.document["sockets"]["Socket-3"]["edges"][1]["maxTraversals"] == 7
    assert session.selected == ("socket", "Socket-2")


def test_refused_input_stays_in_its_field_with_the_reason(session):
    do(session, "pick", part=["edge", "edge:1:Socket-3"])
    assert "at most cannot be 'seven'" in refused(
        session, "set", of=["edge", "edge:1:Socket-3"], field="maxTraversals", value="seven"
    )
    shown = field(design_slice(session), "maxTraversals")
    assert (shown["typed"], shown["value"]) == ("seven", "3")
    assert "whole number" in shown["error"]
    do(session, "pick", part=["socket", "Socket-1"])
    again = field(do(session, "pick", part=["edge", "edge:1:Socket-3"]), "maxTraversals")
    assert again["typed"] == "seven", "it waits for whoever comes back"
    gone = do(session, "forget", of=["edge", "edge:1:Socket-3"], field="maxTraversals")
    assert (field(gone, "maxTraversals")["typed"], field(gone, "maxTraversals")["error"]) == (None, "")


def test_new_edge_gets_an_uncovered_condition(fresh):
    for materia in ("Eval", "Build", "Narrate", "Draft"):
        do(fresh, "add", materia=materia)
    for to in ("Socket-2", "Socket-3", "Socket-4"):
        do(fresh, "connect", **{"from": "Socket-1", "to": to})
    made = fresh.design.document["sockets"]["Socket-1"]["edges"]
    assert made == [edge("Socket-3", "not_satisfied"), edge("Socket-4", "satisfied"), edge("Socket-2")]
    assert fresh.selected == ("edge", "edge:1:Socket-1"), "the one that was made, where it stands"
    assert "unreachable-edge" not in [problem.code for problem in fresh.design.report.problems]


def test_form_of_a_new_edge_is_empty_for_each_socket(session):
    do(session, "connect", **{"from": "Socket-5", "to": "Socket-1", "when": "not_satisfied", "max_traversals": "7"})
    made = do(session, "connect", **{"from": "Socket-4", "to": "Socket-3", "when": "satisfied"})
    assert "maxTraversals" not in session.design.document["sockets"]["Socket-4"]["edges"][0]
    assert made["inspector"]["sentence"] == "From Maintain when satisfied to Eval."


# -- materia -----------------------------------------------------------------------------


def test_unknown_materia_is_created_after_confirmation(fresh):
    description = do(fresh, "add", materia="Writr")
    assert fresh.design.document == {}
    assert "The materia 'Writr' does not exist." in description["bar"]["question"]["words"]
    assert description["bar"]["question"]["choices"] == ['New agent "Writr"', 'New utility "Writr"']
    do(fresh, "answer", number=0)
    assert fresh.design.document["sockets"] == {"Socket-1": {"materia": "Writr"}}
    assert fresh.design.definitions["Writr"]["tools"] == "none"
    assert fresh.design.report.ok
    assert do(fresh, "add", materia="Pla")["bar"]["question"]["choices"][0] == "Use Plan"
    do(fresh, "answer", number=0)
    assert fresh.design.document["sockets"]["Socket-2"] == {"materia": "Plan"}
    assert do(fresh, "add", materia="Nope")["bar"]["question"]
    assert do(fresh, "answer", number=-1)["bar"]["question"] is None
    assert len(fresh.design.document["sockets"]) == 2


def test_socket_cannot_use_a_missing_materia(session):
    refused(session, "set", of=["socket", "Socket-3"], field="materia", value="Evl")
    assert session.question.choices[0][0] == "Use Eval"
    do(session, "answer", number=2)
    assert session.design.document["sockets"]["Socket-3"]["materia"] == "Evl"
    assert session.design.definitions["Evl"]["type"] == "utility"


def test_materia_edits_in_the_form_of_a_socket_can_be_undone(session):
    description = do(session, "pick", part=["socket", "Socket-3"])
    materia = description["inspector"]["materia"]
    assert [one["name"] for one in materia["fields"]][:3] == ["prompt", "model", "tools"]
    assert "item.title" in [variable["name"] for variable in materia["variables"]]
    before = session.design.definitions["Eval"]
    put(session, "materia", "Eval", "model", "openai:gpt-5-mini")
    put(session, "materia", "Eval", "tools", "read, grep")
    assert session.design.definitions["Eval"] == {
        **before,
        "model": "openai:gpt-5-mini",
        "tools": ["read", "grep"],
    }
    assert session.design.patch() == []
    assert {one["path"] for one in session.design.materia_patch()} == {"/Eval/tools", "/Eval/model"}
    assert session.design.changed
    do(session, "undo")
    do(session, "undo")
    assert session.design.definitions["Eval"] == before
    assert not session.design.changed
    do(session, "redo")
    assert session.design.definitions["Eval"]["model"] == "openai:gpt-5-mini"


def test_finding_about_a_materia_selects_its_socket_even_if_another_id_is_its_prefix(session):
    session.design.copy_materia("Socket-3", "Build.Eval")
    session.design.set_materia("Build.Eval", "prompt", "")
    picks = {row["source"]: row["pick"] for row in design_slice(session)["dock"]["problems"]}
    assert picks["materia.Build.Eval.prompt"] == ["socket", "Socket-3"]


def materia_form(session, socket):
    """Select a socket, and return the owner of the fields in the form of its materia."""
    [owner] = {
        tuple(one["of"]) for one in do(session, "pick", part=["socket", socket])["inspector"]["materia"]["fields"]
    }
    return list(owner)


def materia_of(session, socket):
    return session.design.document["sockets"][socket]["materia"]


def test_change_of_a_bundled_materia_applies_to_one_socket_only(wb, session):
    owner = materia_form(session, "Socket-3")
    before = session.design.definitions["Eval"]
    form = do(session, "set", of=owner, field="prompt", value="Judge.")["inspector"]["materia"]
    assert materia_of(session, "Socket-3") == "Plan-Build-Eval.Eval"
    assert session.design.definitions["Eval"] == before
    copy = session.design.definitions["Plan-Build-Eval.Eval"]
    assert copy == {"label": "Eval", **before, "prompt": "Judge."}, "the card keeps its name"
    assert form["users"] == "", "nothing else uses the copy"
    assert materia_form(session, "Socket-3") == owner, "the field that has the focus stays"
    do(session, "set", of=owner, field="tools", value="read")
    assert materia_of(session, "Socket-3") == "Plan-Build-Eval.Eval", "the copy is changed in place"
    do(session, "save")
    assert json.loads((wb.project / PROJECT_FILE).read_text())["materia"] == {
        "Plan-Build-Eval.Eval": session.design.definitions["Plan-Build-Eval.Eval"]
    }
    do(session, "undo")
    do(session, "undo")
    assert materia_of(session, "Socket-3") == "Eval"
    assert "Plan-Build-Eval.Eval" not in session.design.definitions


def test_change_of_a_bundled_materia_applies_everywhere_if_the_user_asks_for_it(session):
    owner = materia_form(session, "Socket-3")
    do(session, "set", of=owner, field="prompt", value="Judge.", everywhere=True)
    assert materia_of(session, "Socket-3") == "Eval"
    assert session.design.definitions["Eval"]["prompt"] == "Judge."


def test_form_names_the_other_users_of_a_materia(wb):
    for name in ("A", "B", "C"):
        wb.loadouts.define(name, {"sockets": {"Socket-1": {"materia": "Eval"}}})
    session = DesignSession(wb, wb.design("Plan-Build-Eval"))
    session.design.add_socket("Eval")
    form = do(session, "pick", part=["socket", "Socket-3"])["inspector"]["materia"]
    assert form["users"] == "This materia is also used by Socket-6 Eval, loadout A, loadout B and others."
    session.design.make_materia("Mine", "agent")
    session.design.add_socket("Mine")
    owner = materia_form(session, "Socket-7")
    do(session, "set", of=owner, field="prompt", value="Do it.")
    assert materia_of(session, "Socket-7") == "Mine", "a materia without other users is changed in place"
    do(session, "set", of=materia_form(session, "Socket-6"), field="prompt", value="Judge.")
    do(session, "duplicate")
    assert (materia_of(session, "Socket-6"), materia_of(session, "Socket-8")) == (
        "Plan-Build-Eval.Eval",
        "Plan-Build-Eval.Eval",
    )
    do(session, "set", of=materia_form(session, "Socket-8"), field="prompt", value="Judge again.")
    assert materia_of(session, "Socket-8") == "Plan-Build-Eval.Eval-2"


def test_copy_of_a_materia_never_replaces_a_saved_copy(wb, session):
    do(session, "set", of=materia_form(session, "Socket-3"), field="prompt", value="Judge.")
    do(session, "save")
    session.design.config = wb.loadouts.config.document  # the panel reads it before it is drawn
    do(session, "undo")
    do(session, "set", of=materia_form(session, "Socket-3"), field="prompt", value="Judge again.")
    assert materia_of(session, "Socket-3") == "Plan-Build-Eval.Eval-2"


def test_change_without_effect_copies_no_materia(session):
    owner = materia_form(session, "Socket-3")
    prompt = session.design.definitions["Eval"]["prompt"]
    for field_, value in (("prompt", prompt), ("castContext", "")):
        do(session, "set", of=owner, field=field_, value=value)
    assert materia_of(session, "Socket-3") == "Eval"
    assert not session.design.changed


def test_materia_is_changed_for_one_socket_only_after_a_save_to_the_notebook(session):
    do(session, "save", to="this notebook")
    do(session, "set", of=materia_form(session, "Socket-3"), field="prompt", value="Judge.")
    assert materia_of(session, "Socket-3") == "Plan-Build-Eval.Eval"
    do(session, "save")


def test_copy_of_a_utility_runs_the_same_script(wb):
    config = wb.project / "config" / "own.json"
    config.parent.mkdir()
    (config.parent / "check.py").write_text("print('{}')")
    utility = {"type": "utility", "command": ["python3", "check.py"], "parse": "json"}
    sockets = {"sockets": {"Socket-1": {"materia": "Check"}}}
    config.write_text(json.dumps({"loadouts": {"A": sockets, "B": sockets}, "materia": {"Check": utility}}))
    wb.load(config)
    session = DesignSession(wb, wb.design("A"))
    do(session, "set", of=materia_form(session, "Socket-1"), field="description", value="Checks.")
    copy = session.design.definitions["A.Check"]
    assert copy["command"] == ["python3", str(config.parent / "check.py")]
    cast = wb.cast("go", loadout=session.design)
    cast.run()
    assert cast.status == "complete", cast.failure


def test_change_for_one_socket_names_an_agent_that_does_not_answer_for_the_copy(wb, session):
    wb.agent("Eval", lambda: {"satisfied": True})
    do(session, "set", of=materia_form(session, "Socket-3"), field="prompt", value="Judge.")
    assert session.note[1].endswith("; the agent set for Eval does not answer for the copy")


def test_delayed_change_of_a_materia_does_not_affect_the_next_materia_of_the_socket(session):
    owner = materia_form(session, "Socket-3")
    session.design.set_socket("Socket-3", "materia", "Build")
    for everywhere in (False, True):
        problem = refused(session, "set", of=owner, field="prompt", value="Judge.", everywhere=everywhere)
        assert problem.startswith("Nothing was done: the socket has another materia now")


def test_refused_value_of_a_materia_appears_only_in_the_form_of_its_socket(session):
    session.design.add_socket("Eval")
    refused(session, "set", of=materia_form(session, "Socket-3"), field="castContext", value="soon")
    assert materia_of(session, "Socket-3") == "Eval", "no copy is made"
    forms = [do(session, "pick", part=["socket", socket]) for socket in ("Socket-3", "Socket-6")]
    assert [field(form, "castContext", "materia")["typed"] for form in forms] == ["soon", None]
    do(session, "delete", of=["socket", "Socket-6"])
    session.design.add_socket("Eval")
    assert field(do(session, "pick", part=["socket", "Socket-6"]), "castContext", "materia")["typed"] is None
    do(session, "forget", of=materia_form(session, "Socket-3"), field="castContext")
    form = do(session, "pick", part=["socket", "Socket-3"])
    assert field(form, "castContext", "materia")["typed"] is None


def situations(told):
    return {one["words"]: one for one in told["inspector"]["materia"]["told"]}


def test_prompt_preview_follows_the_prompt(session):
    do(session, "pick", part=["socket", "Socket-3"])
    situation_list = situations(put(session, "materia", "Eval", "prompt", "Judge {{item.title}}."))
    assert list(situation_list) == ["first item", "second", "last"]
    by_title = {part["title"]: part for part in situation_list["first item"]["parts"]}
    assert by_title["Your task"]["text"] == "Judge [title of item 1]."
    assert "[the request]" in by_title["Request"]["text"]
    assert "satisfied" in by_title["What to return"]["text"]
    assert (by_title["Your answer before"]["text"], by_title["Your answer before"]["note"]) == (
        "",
        "the work was not sent back",
    )
    assert "[title of item 5]" in str(situation_list["last"]["parts"])
    assert "characters, about " in situation_list["first item"]["about"]
    assert sum(part["share"] for part in by_title.values()) <= 1


def test_prompt_preview_includes_a_visit_for_rework(session):
    situation_list = situations(do(session, "pick", part=["socket", "Socket-2"]))
    assert list(situation_list) == ["first item", "second", "last", "sent back"]
    parts = {part["title"]: part["text"] for part in situation_list["sent back"]["parts"]}
    assert "The work was not satisfactory:" in parts["Why it came back"]
    assert [*situations(do(session, "pick", part=["socket", "Socket-1"]))] == ["first visit"]
    do(session, "add", materia="Build")
    assert [*situations(do(session, "pick", part=["socket", "Socket-6"]))] == ["alone"]
    do(session, "delete", of=["socket", "Socket-1"])
    assert [*situations(do(session, "pick", part=["socket", "Socket-6"]))] == ["not yet"]


def test_estimate_is_shown_on_request_until_the_design_changes(session):
    assert do(session, "pick", part=None)["bar"]["estimate"] == ""
    line = do(session, "estimate")["bar"]["estimate"]
    assert line.startswith("satisfied 0.5, a cast over lists of 3 takes about ")
    assert "its cost is unknown" in line
    assert put(session, "materia", "Eval", "prompt", "Judge.")["bar"]["estimate"] == ""
    assert not session.bench.casts()


def test_changed_materia_are_saved_as_differences(wb, session):
    put(session, "materia", "Eval", "model", "m:x")
    session.design.make_materia("Mine", "agent")
    do(session, "save")
    stored = json.loads((wb.project / PROJECT_FILE).read_text())
    assert stored["materia"]["Eval"] == {"model": "m:x"}
    assert stored["materia"]["Mine"]["prompt"]
    assert wb.loadouts.config.document["materia"]["Eval"]["prompt"], "the rest is that of the layer below"
    assert not session.design.changed
    do(session, "undo")
    do(session, "undo")
    do(session, "save")
    assert "Eval" not in json.loads((wb.project / PROJECT_FILE).read_text()).get("materia", {})


# -- loops, exits, order -----------------------------------------------------------------


def test_edge_that_leaves_a_loop_becomes_an_exit_or_stays_an_edge(session):
    do(session, "add", materia="Narrate")
    do(session, "connect", **{"from": "Socket-3", "to": "Socket-6"})
    assert session.selected == ("exit", "exit:2:items")
    document = session.design.document
    assert document["loops"]["items"]["exits"][2]["from"] == "Socket-3"
    do(session, "turn", of=["exit", "exit:2:items"])
    assert edge("Socket-6") in session.design.document["sockets"]["Socket-3"]["edges"]
    assert len(session.design.document["loops"]["items"]["exits"]) == 2
    place = session.design.document["sockets"]["Socket-3"]["edges"].index(edge("Socket-6"))
    description = do(session, "pick", part=["edge", f"edge:{place}:Socket-3"])
    assert description["inspector"]["turn"] == "convert to an exit of the loop"
    do(session, "turn", of=["edge", f"edge:{place}:Socket-3"])
    assert len(session.design.document["loops"]["items"]["exits"]) == 3


def test_reordering_edges_keeps_the_selection(session):
    do(session, "reorder", of=["edge", "edge:0:Socket-3"], offset=1)
    assert session.selected == ("edge", "edge:1:Socket-3")
    assert [one["to"] for one in session.design.document["sockets"]["Socket-3"]["edges"]] == [
        "Socket-2",
        "Socket-4",
    ]
    assert "no edge at position" in refused(session, "reorder", of=["edge", "edge:1:Socket-3"], offset=1)
    assert "only edges and exits" in refused(session, "reorder", of=["socket", "Socket-3"], offset=1)
    assert "only edges and exits" in refused(session, "turn", of=["socket", "Socket-3"])


def test_loop_can_be_completed_and_starts_at_its_entry(session):
    description = do(session, "pick", part=["loop", "items"])
    assert description["inspector"]["source"] == "consumes"
    put(session, "loop", "items", "consumes.as", "task")
    put(session, "loop", "items", "id", "tasks")
    assert session.selected == ("loop", "tasks")
    assert session.design.document["loops"]["tasks"]["consumes"]["as"] == "task"
    do(session, "source", loop="tasks", source="")
    do(session, "source", loop="tasks", source="consumes")
    assert session.design.document["loops"]["tasks"]["consumes"]["from"] == "Socket-1", "the likely generator"
    do(session, "delete", of=["loop", "tasks"])
    do(session, "marquee", ids=["Socket-4", "Socket-2", "Socket-3"])
    do(session, "loop")
    assert session.design.document["loops"]["items"]["sockets"][0] == "Socket-2"


# -- copies, deleting, moving ----------------------------------------------------------------


def test_sockets_are_copied_with_the_edges_between_them(session):
    do(session, "marquee", ids=["Socket-2", "Socket-3"])
    do(session, "copy")
    do(session, "paste")
    sockets = session.design.document["sockets"]
    assert sockets["Socket-6"]["edges"] == [edge("Socket-7")]
    assert [one["to"] for one in sockets["Socket-7"]["edges"]] == ["Socket-6"]
    assert sockets["Socket-3"] == session.design.saved_change.document["sockets"]["Socket-3"]
    assert session.marked == ["Socket-6", "Socket-7"], "the copies can be moved or deleted at once"
    told = inspector_slice(session)
    assert (told["kind"], told["title"], told["sub"]) == ("marked", "2 sockets", "Socket-6 Build, Socket-7 Eval")
    do(session, "pick", part=["socket", "Socket-6"])
    assert inspector_slice(session)["of"] == ["socket", "Socket-6"], "one that is picked out of them"
    do(session, "marquee", ids=["Socket-6", "Socket-7"])
    do(session, "delete")
    assert session.design.document["sockets"] == session.design.saved_change.document["sockets"]
    do(session, "pick", part=["socket", "Socket-5"])
    do(session, "duplicate")
    assert session.selected == ("socket", "Socket-6")
    do(session, "cut")
    assert "Socket-6" not in session.design.document["sockets"]


def test_dropping_an_edge_on_the_canvas_adds_a_connected_materia(session):
    do(session, "add", materia="Narrate", x=4.5, y=2.25, source="Socket-5", positions={"Socket-5": [3, 1]})
    document = session.design.document
    assert document["layout"]["sockets"]["Socket-6"] == {"x": 4.5, "y": 2.25}
    assert document["layout"]["sockets"]["Socket-5"] == {"x": 3, "y": 1}
    assert document["sockets"]["Socket-5"]["edges"] == [{"when": "always", "to": "Socket-6"}]
    assert session.selected == ("socket", "Socket-6")
    do(session, "undo")
    assert session.design.document == session.design.saved_change.document, "one gesture is one step"


@pytest.mark.parametrize("to_a_new_socket", [True, False])
def test_creating_a_materia_and_placing_it_is_one_undo_step(session, to_a_new_socket):
    if to_a_new_socket:
        session.on_message("add", {"materia": "Sum-Up", "source": "Socket-5"})
    else:
        session.on_message("set", {"of": ["socket", "Socket-5"], "field": "materia", "value": "Sum-Up"})
    made = do(session, "answer", number=0)["bar"]["note"]["words"]
    assert made.startswith("created the agent Sum-Up; ")
    placed, edges = ("Socket-6", [edge("Socket-6")]) if to_a_new_socket else ("Socket-5", None)
    assert session.design.document["sockets"][placed]["materia"] == "Sum-Up"
    assert session.design.document["sockets"]["Socket-5"].get("edges") == edges
    do(session, "undo")
    assert not session.design.changed


def test_dragging_sockets_is_one_undo_step(session):
    do(session, "move", id="Socket-5", x=3.0, y=-0.5)
    assert session.design.document["layout"]["sockets"]["Socket-5"] == {"x": 3, "y": -0.5}
    do(session, "add", materia="Narrate", x=0, y=1)
    assert session.design.document["layout"]["sockets"]["Socket-6"] == {"x": 0, "y": 1}
    assert "valid number" in refused(session, "move", id="Socket-5", x="far", y=1)
    do(session, "undo")
    assert "Socket-6" not in session.design.document["sockets"]


def test_selected_parts_are_removed_together(session):
    do(session, "mark", id="Socket-1")
    do(session, "mark", id="Socket-2")
    do(session, "mark", id="Socket-1")
    assert session.marked == ["Socket-2"]
    do(session, "set_entry", id="Socket-2")
    assert session.design.document["entry"] == "Socket-2"
    do(session, "mark", id="Socket-1")
    do(session, "delete")
    assert session.marked == []
    assert not {"Socket-1", "Socket-2"} & session.design.document["sockets"].keys()
    do(session, "undo")
    do(session, "pick", of=["socket", "Socket-1"])
    do(session, "mark", id="Socket-2")
    do(session, "remove_socket", id="Socket-2")
    assert (session.marked, session.selected) == ([], None)
    assert "select a part of the graph, then remove it" in refused(session, "delete")


def test_selected_sockets_become_members_and_exits_of_a_loop(fresh):
    for materia in ("Plan", "Build", "Eval", "Narrate"):
        do(fresh, "add", materia=materia)
    ids = list(fresh.design.document["sockets"])
    loop = "L"
    fresh.design.make_loop(ids[1:2], loop)
    for one in ids[1:3]:
        do(fresh, "mark", id=one)
    do(fresh, "members", loop=loop)
    assert (fresh.design.document["loops"][loop]["sockets"], fresh.marked) == (ids[1:3], [])
    do(fresh, "members", loop=loop, ids=ids[2:3])
    assert fresh.design.document["loops"][loop]["sockets"] == ids[2:3]
    do(fresh, "exit", loop=loop, **{"from": ids[2]}, when="satisfied", to=ids[3])
    assert fresh.selected[0] == "exit"
    assert fresh.design.document["loops"][loop]["exits"][0]["targetSocketId"] == ids[3]
    assert "choose one of: consumes, iterator" in refused(fresh, "source", loop=loop, source="else")
    do(fresh, "source", loop=loop, source="iterator")
    assert "iterator" in fresh.design.document["loops"][loop]
    do(fresh, "source", loop=loop, source="")
    assert not {"iterator", "consumes"} & fresh.design.document["loops"][loop].keys()


def test_unavailable_action_states_what_must_be_done_first(fresh):
    assert "press Explore" in refused(fresh, "witness", outcome="complete")
    assert "check the current list of problems" in refused(fresh, "fix", code="no-effect", source="here")
    assert "the design has 1 problem: fix the problems first" in refused(fresh, "explore")
    assert "no longer exists" in refused(fresh, "draft", file="none.jsonl")
    do(fresh, "estimate")
    assert fresh.estimated[1].startswith("no estimate is available: ")


def test_picture_and_form_select_the_same_element(session):
    description = do(session, "pick", part=["exit", "loop-exit:items:exit:Socket-4:satisfied"])
    assert session.selected == ("exit", "exit:0:items")
    assert description["selected"] == {"kind": "exit", "id": "loop-exit:items:exit:Socket-4:satisfied"}
    assert description["inspector"]["sentence"].startswith("After the last item of items")
    assert do(session, "pick", part=None)["inspector"]["kind"] == "loadout"
    assert "the design has no socket" in refused(session, "pick", part=["socket", "Socket-77"])


# -- what is wrong, what can happen, saving, casting ---------------------------------------------


def test_finding_can_be_fixed_by_its_button(fresh):
    for materia in ("Eval", "Build"):
        do(fresh, "add", materia=materia)
    do(fresh, "connect", **{"from": "Socket-1", "to": "Socket-2", "when": "satisfied"})
    found = {problem["code"]: problem for problem in design_slice(fresh)["dock"]["problems"]}
    assert found["guard-on-text"]["fix"] == "Read the output of Eval as JSON"
    assert found["guard-on-text"]["pick"] == ["edge", "edge:0:Socket-1"]
    do(fresh, "fix", code="guard-on-text", source=found["guard-on-text"]["source"])
    assert fresh.design.document["sockets"]["Socket-1"]["parse"] == "json"
    assert "no longer exists" in refused(fresh, "fix", code="guard-on-text", source="Socket-1.edges[0].when")


def test_exploration_shows_an_example_run_and_becomes_outdated_after_an_edit(session):
    told = do(session, "explore")["dock"]["happens"]
    assert [row["sign"] for row in told["rows"]][:2] == ["ends", "fails"]
    assert "% for 3 items if half of the verdicts are satisfied" in told["rows"][0]["about"]
    assert not told["stale"]
    assert do(session, "witness", outcome="complete")["dock"]["happens"]["route"][0] == "Socket-1"
    assert do(session, "add", materia="Narrate")["dock"]["happens"]["stale"]
    rows = do(session, "explore")["dock"]["happens"]["rows"]
    assert {
        "sign": "never",
        "what": "never visited",
        "about": "Socket-6 Narrate",
        "witness": None,
        "pick": ["socket", "Socket-6"],
    } in rows
    do(session, "delete", of=["socket", "Socket-1"])
    assert "the design has" in refused(session, "explore")


def test_designer_shows_a_route_around_a_socket_or_proves_that_none_exists(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    do(session, "explore")
    shown = do(session, "witness", outcome="Socket-5", without="Socket-3", since="Socket-2")
    assert (shown["dock"]["happens"]["route"], session.route) == ([], ())
    text, code = shown["dock"]["happens"]["proof"]
    assert text == "no cast with 0 to 3 items reaches Narrate without Eval since Build"
    assert session.note == ("status", text)
    paths = eval(code, {"wb": session.bench})  # noqa: S307 - the code that the panel shows
    (path,) = (path for path in paths if path.stem.startswith("rules"))
    assert json.loads(path.read_text())["ways"]["rules"] == [
        {"never": "Socket-5", "without": "Socket-3", "since": "Socket-2"}
    ]
    happens = do(session, "witness", outcome="Socket-5", without="Socket-3")["dock"]["happens"]
    assert happens["proof"] is None
    assert happens["route"][:2] == ["Socket-1", "Socket-5"], "an empty list skips the review"
    do(session, "witness", outcome="Socket-5", without="Socket-3", since="Socket-2")
    assert do(session, "explore")["dock"]["happens"]["proof"] is None


def test_saving_a_locked_loadout_asks_first(wb, project):
    wb.load({
        "loadouts": {"Held": {"lockState": "locked", "sockets": {"Socket-1": {"materia": "P"}}}},
        "materia": {"P": {"tools": "none", "prompt": "p"}},
    })  # fmt: skip
    session = DesignSession(wb, wb.design("Held"))
    do(session, "add", materia="P")
    description = do(session, "save")
    assert description["bar"]["question"]["choices"] == ["Save anyway"]


def test_saving_with_problems_asks_first(wb, session):
    do(session, "delete", of=["socket", "Socket-1"])
    description = do(session, "save")
    assert not (wb.project / PROJECT_FILE).exists()
    assert description["bar"]["question"]["choices"] == ["Save anyway"]
    do(session, "answer", number=0)
    kept = json.loads((wb.project / PROJECT_FILE).read_text())["loadouts"]["Plan-Build-Eval"]
    assert "Socket-1" not in kept["sockets"]
    do(session, "save", to="this notebook", anyway=True)
    assert wb.loadouts["Plan-Build-Eval"] == "notebook"


def test_cast_from_the_designer_uses_the_current_design(wb, session):
    made = []
    session.on_cast_started = made.append
    do(session, "add", materia="Narrate")
    do(session, "connect", **{"from": "Socket-5", "to": "Socket-6"})
    put(session, "materia", "Plan", "prompt", "Plan it shortly.")
    shown = session.identity
    do(session, "cast", request="a small tool", design=shown)
    assert "has changed since" in refused(session, "cast", request="a small tool", design=shown), "a second click"
    [cast] = made
    assert "Socket-6" in cast.graph.sockets
    assert cast.graph.sockets["Socket-1"].materia.prompt == "Plan it shortly."
    assert "Socket-6" not in wb.graph("Plan-Build-Eval").sockets
    do(session, "delete", of=["socket", "Socket-1"])
    assert "cannot be cast" in refused(session, "cast", request="again", design=session.identity)


def test_design_that_changed_since_it_was_shown_is_not_cast(wb, session):
    shown = design_slice(session)["bar"]["identity"]
    do(session, "set", of=["materia", "Plan"], field="prompt", value="Plan it shortly.")
    assert "has changed since" in refused(session, "cast", request="a tool", design=shown)
    assert not wb.casts()
    do(session, "undo")
    do(session, "cast", request="a tool", design=shown)


def test_every_design_operation_has_a_message(session):
    do(session, "limit_edge", source="Socket-3", index=1, max_traversals=2)
    assert session.design.document["sockets"]["Socket-3"]["edges"][1]["maxTraversals"] == 2
    assert session.design.steps == ("edge 2 of Socket-3 can be taken at most 2 times",)
    assert "new of rename_socket is null, not a string" in refused(session, "rename_socket", old="Socket-3")
    assert "does not support the message" in refused(session, "as_json", value=1)


# -- hostile -----------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.data())
def test_no_random_message_breaks_the_designer_panel(data):
    wb = Workbench(bundled=False)
    config = looped({"exits": [route("Socket-3", "satisfied", "Socket-4")]})
    wb.load(config)
    session = DesignSession(wb, Design("T", config["loadouts"]["T"], config))
    kinds = sorted({*design_messages.messages, *OPERATIONS} - {"save", "cast", "reload"})
    values = st.one_of(
        json_values,
        st.sampled_from(
            [
                ["socket", "Socket-1"],
                ["edge", "edge:0:Socket-1"],
                ["loop", "L"],
                "Socket-2",
                "P",
                "L",
                "parse",
            ]
        ),
    )
    names = [
        "part",
        "outcome",
        "of",
        "id",
        "ids",
        "from",
        "to",
        "when",
        "max_traversals",
        "field",
        "value",
        "materia",
        "by",
        "loop",
        "source",
    ]
    for _ in range(4):
        kind = data.draw(st.one_of(st.sampled_from(kinds), st.text()))
        session.on_message(kind, data.draw(st.dictionaries(st.sampled_from(names), values)))
        json.dumps(design_slice(session)).encode()
    wb.close()


def test_hostile_names_are_sent_as_text(wb):
    document = {
        "entry": "Socket-1",
        "sockets": {"Socket-1": {"materia": HOSTILE, "label": HOSTILE, "edges": [{"when": HOSTILE, "to": "\ud800"}]}},
        "loops": {
            HOSTILE: {
                "sockets": ["Socket-1", HOSTILE],
                "consumes": {"from": HOSTILE},
                "exits": [5, {"id": HOSTILE}],
            }
        },
    }
    session = DesignSession(wb, Design("H", document, {"materia": {HOSTILE: {"prompt": HOSTILE, "tools": "none"}}}))
    for pick in (
        ["socket", "Socket-1"],
        ["edge", "edge:0:Socket-1"],
        ["loop", HOSTILE],
        ["exit", f"exit:0:{HOSTILE}"],
    ):
        description = do(session, "pick", part=pick)
        assert json.dumps(description).encode()
    assert session.note == ("status", "")


@pytest.fixture
def leads_on(fresh):
    """Return a design in which an edge leaves the sockets of the future loop."""
    for materia in ("Plan", "Build", "Eval", "Maintain"):
        do(fresh, "add", materia=materia)
    for source, to, when in (
        ("Socket-1", "Socket-2", "always"),
        ("Socket-2", "Socket-3", "always"),
        ("Socket-3", "Socket-4", "satisfied"),
        ("Socket-3", "Socket-2", "not_satisfied"),
    ):
        do(fresh, "connect", when=when, **{"from": source, "to": to})
    return fresh


def test_make_loop_asks_whether_leaving_edges_become_exits(leads_on):
    fresh = leads_on
    description = do(fresh, "loop", ids=["Socket-2", "Socket-3"])
    assert description["bar"]["question"]["choices"] == ["Make an exit", "Keep the edge"]
    assert description["bar"]["question"]["words"].startswith("Eval → Maintain leads out of the loop.")
    assert "loops" not in fresh.design.document, "nothing is done before it is answered"
    do(fresh, "answer", number=0)
    assert fresh.note[1].endswith("over the work items of Plan; Eval → Maintain is now an exit of the loop")
    [loop] = fresh.design.document["loops"].values()
    [route] = loop["exits"]
    assert (route["from"], route["condition"], route["targetSocketId"]) == (
        "Socket-3",
        "satisfied",
        "Socket-4",
    )
    assert [one["to"] for one in fresh.design.document["sockets"]["Socket-3"]["edges"]] == ["Socket-2"]
    do(fresh, "undo")
    assert "loops" not in fresh.design.document, "it is one step"
    assert len(fresh.design.document["sockets"]["Socket-3"]["edges"]) == 2


@pytest.mark.parametrize(
    "to, asked",
    [
        ("Socket-5", ["Eval → Socket-4 Maintain", "Eval → Socket-5 Maintain"]),
        ("Socket-1", ["Eval → Socket-4 Maintain"]),
    ],
)
def test_make_loop_offers_only_forward_edges_as_exits(leads_on, to, asked):
    do(leads_on, "add", materia="Maintain")
    leads_on.design.document["sockets"]["Socket-3"]["edges"][1] = {"when": "not_satisfied", "to": to}
    description = do(leads_on, "loop", ids=["Socket-2", "Socket-3"])
    assert sorted(description["bar"]["question"]["words"].split(" lead")[0].split(", ")) == asked
    do(leads_on, "answer", number=0)
    [loop] = leads_on.design.document["loops"].values()
    assert {(one["condition"], one["targetSocketId"]) for one in loop["exits"]} == {
        ("satisfied", "Socket-4"),
        *([("not_satisfied", "Socket-5")] if to == "Socket-5" else []),
    }


@pytest.fixture
def validated(fresh):
    """Return a design in which a validator stands between the generator and the sockets of the future loop."""
    for materia in ("Plan", "Critique", "Build", "Eval", "Narrate"):
        do(fresh, "add", materia=materia)
    one, two, three, four = (f"Socket-{number}" for number in range(1, 5))
    for source, to, when in (
        (one, two, "always"),
        (two, three, "satisfied"),
        (two, one, "not_satisfied"),
        (three, four, "always"),
        (four, three, "satisfied"),
        (four, three, "not_satisfied"),
    ):
        do(fresh, "connect", when=when, **{"from": source, "to": to})
    for id_ in (two, four):
        put(fresh, "socket", id_, "parse", "json")
    return fresh


def route_of_a_cast(session):
    """Cast the design with three work items of which the second is sent back once; return the visited sockets."""
    wb, verdicts = session.bench, iter([True, False, True, True])
    wb.agent("Plan", lambda: {"workItems": [{"title": title, "context": "c"} for title in "abc"]})
    wb.agent("Critique", lambda: {"satisfied": True})
    wb.agent("Build", lambda item, visit: f"{item['title']} {visit}")
    wb.agent("Eval", lambda: {"satisfied": next(verdicts)})
    wb.agent("Narrate", lambda: "done")
    cast = wb.cast("a tool", loadout=session.design)
    cast.run()
    assert cast.status == "complete"
    return [(step.socket[-1], step.item_label) for step in cast.now.steps]


LOOPED = [
    ("1", None),
    ("2", None),
    *((socket, title) for title in "abbc" for socket in "34"),
    ("5", None),
]


def test_designer_creates_a_loop_after_a_validator_in_one_step(validated):
    note = do(validated, "loop", ids=["Socket-3", "Socket-4"])["bar"]["note"]["words"]
    assert note.startswith("created loop items from Build, Eval, over the work items of Plan; loop items processes")
    assert validated.design.report.problems == ()
    do(validated, "connect", **{"from": "Socket-4", "to": "Socket-5"})
    assert validated.design.report.ok
    assert route_of_a_cast(validated) == LOOPED
    do(validated, "undo")
    do(validated, "undo")
    assert "loops" not in validated.design.document


def test_one_fix_repairs_a_loop_after_a_validator(validated):
    do(validated, "loop", ids=["Socket-3", "Socket-4"])
    do(validated, "source", loop="items", source="")
    shown = do(validated, "source", loop="items", source="consumes")
    assert validated.design.document["loops"]["items"]["consumes"]["from"] == "Socket-1"
    problem = shown["dock"]["problems"][0]
    assert (problem["severity"], problem["where"]) == ("problem", "loop items, consumes")
    assert problem["fix"] == "Iterate over state.workItems, the items of Plan"
    shown = do(validated, "fix", code=problem["code"], source=problem["source"])
    assert shown["bar"]["problems"] == 0
    do(validated, "connect", **{"from": "Socket-4", "to": "Socket-5"})
    assert route_of_a_cast(validated) == LOOPED


def test_designer_fills_in_the_list_of_a_loop_after_a_validator(validated):
    validated.design.make_loop(["Socket-3", "Socket-4"], "items")
    do(validated, "source", loop="items", source="iterator")
    assert validated.design.document["loops"]["items"]["iterator"]["items"] == "state.workItems"
    assert validated.design.report.problems == ()


def test_designer_texts_use_names_of_sockets_and_conditions_instead_of_ids(session):
    def words(told):
        findings = [(row["where"], row["what"], row["todo"], row["fix"] or "") for row in told["dock"]["problems"]]
        outcomes = [row["about"] for row in told["dock"]["happens"]["rows"]]
        return json.dumps([told["bar"], findings, told["dock"]["changes"]["steps"], outcomes])

    put(session, "socket", "Socket-3", "parse", "text")
    told = do(session, "explore")
    assert "the output of Eval is text, so a not satisfied edge is never taken" in words(told)
    assert told["dock"]["problems"][0]["where"] == "Eval, edge 1"
    do(session, "exit", loop="items", **{"from": "Socket-2"}, when="satisfied", to="Socket-5")
    do(session, "delete", of=["socket", "Socket-1"])
    told = do(session, "pick", part=["socket", "Socket-2"])
    assert told["bar"]["note"]["words"].startswith("removed Plan, with 1 edge")
    assert told["bar"]["undo"].startswith("removed Plan")
    assert told["dock"]["changes"]["steps"][1] == "added an exit of loop items from Build to Narrate (satisfied)"
    assert not re.search(r'[^"]Socket-', words(told)), "only JSON has ids"
    assert "not_satisfied" not in words(told)
    told = do(session, "add", materia="Build")
    assert told["bar"]["note"]["words"] == "added Socket-6 Build", "two are alike"
    assert do(session, "mark", id="Socket-6")["bar"]["note"]["words"] == "added Socket-6 Build"


def test_notes_about_possible_casts_name_sockets(fresh):
    do(fresh, "add", materia="Build")
    put(fresh, "socket", "Socket-1", "parse", "json")
    do(fresh, "connect", to="end", when="satisfied", **{"from": "Socket-1"})
    notes = do(fresh, "explore")["dock"]["happens"]["notes"]
    assert notes[0].startswith("Failures at Build ")


def test_undo_steps_name_a_socket_as_it_was_called_when_the_step_was_made(fresh):
    do(fresh, "add", materia="Plan")
    do(fresh, "add", materia="Build")
    do(fresh, "delete", of=["socket", "Socket-2"])
    do(fresh, "add", materia="Eval")
    do(fresh, "undo")
    told = design_slice(fresh)
    assert told["dock"]["changes"]["steps"] == ["removed Build", "added Build", "added Plan as the entry"]
    assert (told["bar"]["undo"], told["bar"]["redo"]) == ("removed Build", "added Eval")


def test_effect_of_the_unsaved_changes_on_casts_is_shown_until_the_next_change(session):
    put(session, "materia", "Eval", "prompt", "Judge.")
    told = do(session, "compare")
    assert told["bar"]["note"]["words"] == "the changes change no possible cast"
    assert [block["text"] for block in told["dock"]["changes"]["compared"]] == [
        "A is the saved loadout, B is this design.",
        "Every cast takes the same route in A and B.",
    ]
    told = put(session, "edge", "edge:1:Socket-3", "maxTraversals", "1")
    assert told["dock"]["changes"]["compared"] == []
    _, odds, changes = do(session, "compare")["dock"]["changes"]["compared"]
    assert odds["rows"][0][0] == "complete"
    assert odds["rows"][0][1] > odds["rows"][0][2], "one retry less"
    assert "Socket-" not in json.dumps(changes)
    assert "Build" in json.dumps(changes)
    assert do(session, "save")["dock"]["changes"]["compared"] == []
    assert do(session, "compare")["bar"]["note"]["words"] == "the changes change no possible cast"
    do(session, "delete", of=["socket", "Socket-1"])
    assert "fix the problems first" in refused(session, "compare")


def test_changes_are_compared_only_with_a_saved_loadout_that_can_be_cast(fresh):
    do(fresh, "add", materia="Build")
    assert "save the design, then compare later changes with it" in refused(fresh, "compare")
    fresh.design.set_socket("Socket-1", "materia", "Nobody")
    do(fresh, "save", anyway=True)
    do(fresh, "undo")
    assert fresh.design.report.ok
    assert "no version of New that can be cast has been saved" in refused(fresh, "compare")
    do(fresh, "save")
    do(fresh, "compare")


def test_condition_of_an_edge_is_chosen_in_words(session):
    shown = field(do(session, "pick", part=["edge", "edge:1:Socket-3"]), "when")
    assert shown["value"] == "not_satisfied"
    assert ["not_satisfied", "✗ not satisfied"] in shown["options"]
    exits = field(do(session, "pick", part=["exit", "exit:0:items"]), "condition")
    assert ["satisfied", "✓ satisfied"] in exits["options"]
    assert "2 ✗ not satisfied → Build (from Eval)" in [one["words"] for one in design_slice(session)["parts"]]


def test_leaving_edge_stays_an_edge_on_request(leads_on):
    do(leads_on, "loop", ids=["Socket-2", "Socket-3"])
    do(leads_on, "answer", number=1)
    [loop] = leads_on.design.document["loops"].values()
    assert "exits" not in loop
    assert [one["to"] for one in leads_on.design.document["sockets"]["Socket-3"]["edges"]] == [
        "Socket-4",
        "Socket-2",
    ]
    assert leads_on.question is None


def test_answer_to_an_earlier_question_is_refused(fresh):
    asked = do(fresh, "add", materia="Brand New")["bar"]["question"]
    fresh.on_message("add", {"materia": "Brand New"})
    again = design_slice(fresh)["bar"]["question"]
    assert (again["words"], again["number"] != asked["number"]) == (asked["words"], True), "in the same words"
    assert "because the question has changed" in refused(fresh, "answer", number=0, question=asked["number"])
    assert design_slice(fresh)["bar"]["question"] == again
    do(fresh, "answer", number=0, question=again["number"])
    assert "because the question has changed" in refused(fresh, "answer", number=0, question=again["number"])


ODD = [None, True, 3, 10**30, 0.5, -1, "", HOSTILE, "half \ud800", [], ["x", 3], [[]], {}, {"x": [1]}, [1, 2], ["socket", []], ["a", "b"]]  # fmt: skip


def fields_of(kind):
    if kind in OPERATIONS:
        return {name.strip("_"): one for name, one in OPERATIONS[kind].parameters.items()}
    return parameters_of(design_messages.messages[kind].function)


@pytest.mark.parametrize(
    "kind", sorted({*OPERATIONS, *design_messages.messages} - {"cast", "estimate", "explore", "save"})
)
def test_message_with_a_value_of_the_wrong_type_is_refused_with_a_reason(session, kind, caplog):
    usual = {"id": "Socket-2", "socket": "Socket-2", "source": "Socket-2", "from": "Socket-2", "to": "end", "loop": "items", "of": ["edge", "edge:0:Socket-3"], "place": 0, "field": "parse", "materia": "Build"}  # fmt: skip
    fields = fields_of(kind)
    for name in fields:
        for value in ODD:
            values = {one: usual[one] for one in fields if one in usual} | {name: value}
            session.on_message(kind, values)
            session.question = None
            assert not caplog.records, (kind, values)
            assert "Error" not in session.note[1], (kind, values, session.note)
