"""Test the designer panel: edits are kept when the panel is closed, and closing it frees all widgets."""

from __future__ import annotations

import os

import pytest
from ipywidgets.widgets.widget import _instances as live

from materia_nb import Workbench
from materia_nb.widgets import base as base_module
from materia_nb.widgets.cast_panel import CastPanel
from materia_nb.widgets.design_panel import DesignPanel, show_design


@pytest.fixture(autouse=True)
def tidy():
    """Assert that no test leaves open widgets."""
    before = set(live)
    yield
    base_module._open_panels.clear()
    for key in set(live) - before:
        if key in live:
            live[key].close()


@pytest.fixture
def wb(wb):
    wb.use("Plan-Build-Eval")
    return wb


@pytest.fixture
def panel(wb):
    return show_design(wb)


def hear(panel, kind, **values):
    panel.front._handle_custom_msg({"kind": kind, **values}, [])
    panel.refresh()
    return panel.front.design


def test_canvas_and_form_select_the_same_element(panel):
    hear(panel, "pick", part=["exit", "exit:0:items"])
    assert panel.canvas.selected == ("exit", "loop-exit:items:exit:Socket-4:satisfied")
    panel.canvas.select("socket", "Socket-2")
    assert panel.front.design["inspector"]["sub"] == "Socket-2"
    assert panel.session.selected == ("socket", "Socket-2")


def test_canvas_gestures_are_design_operations(panel):
    def send(message):
        panel.canvas.guarded(panel.canvas.on_message)(message)

    def centres():
        nodes = panel.canvas.front.scene["nodes"]
        return {node["id"]: (node["x"], node["y"]) for node in nodes if node["id"].startswith("n:")}

    before = centres()
    send({"kind": "add", "materia": "Narrate", "x": 900.0, "y": 630.0})
    snapped = 924, 624
    assert centres() == {**before, "n:Socket-6": pytest.approx(snapped, abs=0.2)}
    send({"kind": "move", "id": "n:Socket-5", "x": before["n:Socket-3"][0] + 20, "y": 640.0})
    assert centres()["n:Socket-5"] == pytest.approx((before["n:Socket-3"][0], 624), abs=0.2), "in line with other cards"
    send({"kind": "undo"})
    assert centres() == {**before, "n:Socket-6": pytest.approx(snapped, abs=0.2)}
    hear(panel, "tidy")
    assert centres()["n:Socket-6"] != pytest.approx(snapped, abs=0.2)
    send({"kind": "undo"})
    assert centres()["n:Socket-6"] == pytest.approx(snapped, abs=0.2)
    send({"kind": "connect", "from": "n:Socket-5", "to": "n:Socket-6"})
    send({"kind": "connect", "from": "n:Socket-6", "to": "s:end"})
    assert panel.design.document["sockets"]["Socket-6"]["edges"] == [{"when": "always", "to": "end"}]
    assert "Socket-6" in panel.canvas.graph.sockets
    send({"kind": "marquee", "ids": ["n:Socket-5", "n:Socket-6"]})
    send({"kind": "delete", "ids": ["n:Socket-6"]})
    assert "Socket-6" not in panel.design.document["sockets"]
    send({"kind": "undo"})
    send({"kind": "ground"})
    assert panel.front.design["inspector"]["kind"] == "loadout"


@pytest.mark.parametrize("message", [{"kind": "add", "materia": "Narrate"}, {"kind": "move", "id": "n:Socket-5"}])
def test_card_that_is_dropped_on_another_card_moves_to_a_free_position(panel, message):
    nodes = {node["id"]: node for node in panel.canvas.front.scene["nodes"]}
    on_another = {name: float(round(nodes["n:Socket-2"][name])) for name in ("x", "y")}
    panel.canvas.guarded(panel.canvas.on_message)({**message, **on_another})
    cards = [node for node in panel.canvas.front.scene["nodes"] if node["id"].startswith("n:Socket")]
    dropped = next(card for card in cards if card["id"] == message.get("id", "n:Socket-6"))
    others = [card for card in cards if card is not dropped]
    assert all(
        abs(card["x"] - dropped["x"]) >= card["w"] or abs(card["y"] - dropped["y"]) >= card["h"] for card in others
    )
    x, y = panel.canvas.grid_position(dropped["x"], dropped["y"])
    column, row = panel.canvas.grid_position(**on_another)
    assert abs(x - column) + abs(y - row) <= 1, "the closest free position"


def test_models_are_offered_or_their_absence_is_explained(panel, monkeypatch):
    def model():
        hear(panel, "pick", part=None)
        hear(panel, "pick", part=["socket", "Socket-2"])
        return next(field for field in panel.front.design["inspector"]["materia"]["fields"] if field["name"] == "model")

    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    assert "No models are listed" in model()["unit"]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    assert any(value.startswith("openai:") for value, _ in model()["options"])
    assert model()["unit"] == ""


def test_conditions_and_order_of_edges_can_be_changed_on_the_canvas(panel):
    def send(message):
        panel.canvas.guarded(panel.canvas.on_message)(message)

    edges = [dict(edge) for edge in panel.design.document["sockets"]["Socket-3"]["edges"]]
    assert len(edges) == 2
    send({"kind": "reorder", "of": "e:edge:1:Socket-3", "offset": -1})
    assert panel.design.document["sockets"]["Socket-3"]["edges"] == edges[::-1]
    assert panel.session.selected == ("edge", "edge:0:Socket-3")
    send({"kind": "when", "of": "e:edge:0:Socket-3", "when": "always"})
    assert panel.design.document["sockets"]["Socket-3"]["edges"][0]["when"] == "always"
    way = "e:loop-exit:items:exit:Socket-4:satisfied"
    send({"kind": "when", "of": way, "when": "not_satisfied"})
    assert panel.design.document["loops"]["items"]["exits"][0]["condition"] == "not_satisfied"
    before = panel.design.document
    for wrong in ({"of": "n:Socket-3", "when": "always"}, {"of": way, "when": "<b>"}, {"of": way}):
        send({"kind": "when", **wrong})
        assert panel.design.document == before


def test_reopened_designer_continues_unsaved_edits(wb, panel):
    hear(panel, "add", materia="Narrate")
    reopened = show_design(wb)
    assert panel.closed
    assert reopened.design is panel.design
    assert "unsaved" in reopened.front.design["bar"]["note"]["words"]
    hear(reopened, "reload")
    assert not reopened.design.changed
    reopened.close()
    assert not show_design(wb).design.steps


def test_panels_of_one_loadout_show_the_same_edits(wb):
    cast = CastPanel(wb.cast("a tool"), bench=wb)
    cast.on_message({"kind": "mode", "mode": "design"})
    one, other = DesignPanel(wb, wb.design()), DesignPanel(wb, wb.design("Ask"))
    hear(one, "add", materia="Narrate")
    assert "Socket-6" in cast.designer.canvas.graph.sockets
    assert cast.front.design["bar"]["changed"]
    assert "Socket-6" not in other.canvas.graph.sockets, "of another loadout"
    # The edits of both are in what either of them saves, and neither finds its file changed.
    cast.on_message({"kind": "add", "materia": "Build"})
    assert hear(one, "save", to="this notebook")["bar"]["note"] == {
        "sign": "status",
        "words": "saved in this notebook",
    }
    assert not cast.front.design["bar"]["changed"]
    assert {"Socket-6", "Socket-7"} <= wb.graph("Plan-Build-Eval").sockets.keys()
    # What is open in one panel is not put aside when the other is closed.
    hear(one, "add", materia="Plan")
    one.close()
    assert DesignPanel(wb, wb.design()).session is cast.designer.session
    # A cast that is begun shows in the panel that began it.
    hear(other, "cast", request="another tool", design=other.session.identity)
    assert len(other.view.children) == 2
    assert cast.designer is not None


def test_second_panel_shows_changes_on_disk(wb, panel):
    draft = wb.design()
    draft.add_socket("Narrate")
    wb.loadouts.save(draft, "notebook", anyway=True)
    other = DesignPanel(wb, wb.design())
    assert "Socket-6" in panel.design.document["sockets"]
    hear(other, "undo")
    assert "Socket-6" not in panel.canvas.graph.sockets


def test_designer_has_few_widgets_and_closing_it_frees_them(wb):
    before = set(live)
    panels = [DesignPanel(wb, wb.design()) for _ in range(3)]
    assert len(set(live) - before) <= 3 * 30, "layouts and styles counted"
    for panel in panels:
        panel.close()
    assert set(live) == before


def test_cast_started_from_the_designer_is_shown_below_the_designer(wb, panel):
    hear(panel, "cast", request="a tool", design=panel.session.identity)
    assert len(panel.view.children) == 2
    assert wb.current.graph.name == "Plan-Build-Eval"


def test_readers_without_widgets_see_picture_and_problems(panel):
    hear(panel, "delete", of=["socket", "Socket-1"])
    text, svg = panel.fallback()
    assert "2 problems" in text
    assert svg is not None
    assert "Socket-2" in svg


def test_unknown_message_is_reported_and_changes_nothing(panel):
    told = hear(panel, "explode", what=["socket", "Socket-1"])
    assert told["bar"]["note"]["sign"] == "alert"
    panel.front._handle_custom_msg("nonsense", [])
    assert not panel.design.changed


# -- drafts -----------------------------------------------------------------------------------


def test_autosave_of_a_dead_kernel_can_be_restored_or_discarded(project):
    gone = Workbench(project).design("Mine", new=True)
    gone.add_socket("Plan")
    gone.add_socket("Build")
    gone.save_draft = None  # its kernel is gone
    wb = Workbench(project)
    panel = show_design(wb, "Mine")
    question = panel.front.design["bar"]["question"]
    assert question["words"].startswith("Unsaved changes exist in the draft of ")
    assert question["words"].endswith("(2 steps).")
    assert question["choices"] == ["Continue with draft", "Discard draft"]
    assert question["words"] in panel.fallback()[0]
    panel.on_message({"kind": "answer", "number": 0})
    assert panel.design.document == gone.document
    bar = panel.front.design["bar"]
    assert bar["note"]["words"].startswith("continued with the draft of ")
    assert bar["left"] == "the new panel offers the draft of Mine, with all 2 steps."
    assert wb.loadouts.drafts() == ()

    panel.design.save_draft = None  # and again
    panel.close()
    panel = show_design(Workbench(project), "Mine")
    panel.on_message({"kind": "answer", "number": 1})
    assert panel.design.document == {}
    assert Workbench(project).loadouts.drafts() == ()
    panel.close()


def test_unsaved_open_design_is_found_by_name(project):
    wb = Workbench(project)
    panel = show_design(wb, "Mine", new=True)
    panel.on_message({"kind": "add", "materia": "Plan"})
    reopened = show_design(wb, "Mine")
    assert reopened.session is panel.session
    panel.close()
    reopened.close()
    third = show_design(wb, "Mine")
    assert [*third.design.document["sockets"]] == ["Socket-1"]
    third.close()


def test_failed_autosave_is_reported(project):
    (project / ".pi" / "pi-materia").mkdir(parents=True)
    (project / ".pi" / "pi-materia" / "drafts").symlink_to(project)
    panel = show_design(Workbench(project), "Mine", new=True)
    panel.on_message({"kind": "add", "materia": "Plan"})
    note = panel.front.design["bar"]["note"]
    assert note["sign"] == "alert"
    assert "the draft could not be saved" in note["words"]
    assert [*panel.design.document["sockets"]] == ["Socket-1"]
    panel.close()


def test_empty_design_shows_where_to_click(project):
    panel = show_design(Workbench(project), "Mine", new=True)
    [found] = panel.front.design["dock"]["problems"]
    assert found["todo"] == "click a materia in the palette"
    assert panel.front.design["bar"]["fresh"]
    panel.close()
