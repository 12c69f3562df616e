"""Test the tables of a workbench and of a cast: the facts in each row, and the text of an empty table."""

from __future__ import annotations

import pytest

import cast_helpers as h
from materia_nb.cast.views.loadout_views import agents_view, fields_view, loadouts_view, materia_view
from materia_nb.cast.views.tables import allowed_view, breakpoints_view, items_table, items_view, pins_view, quests_view
from materia_nb.engine.state import Pin
from materia_nb.errors import MateriaError
from materia_nb.store.design_autosave import Quest


def test_materia_table_shows_kind_layer_and_agent(wb):
    wb.load(
        h.config(
            {"Socket-1": h.at("P")},
            {
                "P": h.agent(generator=True, description="x" * 90),
                "U": h.python("print(1)", group="tools"),
            },
        )
    )
    wb.agent("P", lambda: "planned")
    rows = {row[0]: row[1:] for row in materia_view(wb.loadouts.config, wb.agents).rows}
    assert rows["P"][0] == "agent, generator"
    assert (rows["P"][2], len(rows["P"][4])) == ("given", 80)
    assert rows["P"][3] == wb.agents.for_turn("", "P").name
    assert (rows["U"][0], rows["U"][3]) == ("utility", "a process")
    assert rows["Build"][0] == "agent"
    assert rows["Build"][2] == "bundled"


def test_field_table_shows_the_layer_of_each_field(wb):
    rows = {row[0]: row[1:] for row in fields_view(wb.loadouts.config, "materia", "Build").rows}
    assert rows["type"][0] == "agent"
    assert rows["type"][1].startswith("bundled (")
    sockets = [row for row in fields_view(wb.loadouts.config, "loadout", "Plan-Build-Eval").rows if row[0] == "sockets"]
    assert len(sockets[0][1]) == 120
    with pytest.raises(MateriaError):
        fields_view(wb.loadouts.config, "materia", "Nothing")


def test_chosen_loadout_is_marked(wb):
    table = loadouts_view(dict.fromkeys(wb.loadouts, "bundled"), "Full-Auto", wb.loadouts.config)
    marked = {row[1]: (row[0], row[2], int(row[3]) > 0) for row in table.rows}
    assert marked["Full-Auto"] == ("*", "bundled", True)
    assert marked["Plan-Build-Eval"] == ("", "bundled", True)


def test_agent_table_shows_the_agent_of_each_socket(wb):
    wb.agent("Build", lambda: "built")
    wb.agents.set("*", "person")
    rows = dict(agents_view(wb.agents).rows)
    assert rows.keys() == {"Build", "everyone else"}


def test_pin_table_shows_the_scope_of_each_pin():
    here, later = Pin("text", "a text", "x" * 70), Pin("text", "another", "y")
    rows = {
        row[0]: row[1:]
        for row in pins_view({"A": here, "B": here}, {"A": (here, None), "C": (later, "T"), "B": (later, None)}).rows
    }
    assert (rows["A"][1], rows["B"][1], rows["C"][1]) == (
        "this cast and later ones",
        "this cast",
        "later casts, of T",
    )
    assert (rows["B"][0], len(rows["B"][2]), rows["C"][2]) == ("a text", 60, "y")
    assert repr(pins_view({}, {})) == "nothing is pinned"


def test_breakpoint_and_tool_tables_list_the_entries_of_a_cast(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(1))
    assert repr(breakpoints_view(cast.breakpoints, cast.graph)) == "no breakpoints"
    cast.breakpoints.add("Socket-3")
    assert breakpoints_view(cast.breakpoints, cast.graph).rows == [("before Check",)]
    cast.approvals.allow("bash")
    rows = dict(allowed_view(cast.now).rows)
    assert (rows["bash"], rows["write"]) == ("runs without approval", "asks for approval each time")
    assert repr(items_view(cast.now)) == "no work items"
    cast.step()
    assert items_table(cast.now).rows == [("WI-1", "open", "Part 1", "about Part 1")]
    assert "moved" in repr(items_view(cast.now, ["moved"]))
    cast.close()


def test_quest_table_keeps_the_order_and_truncates_long_text():
    quests = [
        Quest(id="Q-1", request="x" * 90),
        Quest(id="Q-2", request="r", loadout="T", status="failed", note="n" * 130),
    ]
    first, second = quests_view(quests).rows
    assert (first[0], first[1], len(first[2]), *first[3:]) == ("Q-1", "pending", 80, "the chosen loadout", "", "")
    assert (*second[:5], len(second[5])) == ("Q-2", "failed", "r", "T", "", 120)
    assert repr(quests_view([])) == "No quest has been added. Add a quest with `quest add REQUEST`."
