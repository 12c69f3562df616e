"""The design panel, driven as a person does: fields filled, buttons clicked. No browser, no kernel."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from ipywidgets.widgets.widget import _instances as live

import materia_nb
from loadout_samples import config, edge, json_values, looped, route, valid_configs
from materia_nb import Workbench
from materia_nb.display.svg import graph_svg
from materia_nb.errors import MateriaError
from materia_nb.loadout import read_config
from materia_nb.loadout.design import Design, sketch
from materia_nb.loadout.layers import PROJECT_FILE
from materia_nb.widgets import base as base_module
from materia_nb.widgets import designer as designer_module
from materia_nb.widgets.base import widgets_in
from materia_nb.widgets.designer import DesignerPanel, show_designer
from materia_nb.widgets.designer_parts import drawn_parts, edge_pick, exit_pick, owner_of, parts
from materia_nb.widgets.palette import grouped
from materia_nb.widgets.scene import Scene

HOSTILE = "<img src=x onerror=window.__owned=1>"


@pytest.fixture(autouse=True)
def tidy():
    """No test leaves live widgets behind for the next."""
    before = set(live)
    yield
    base_module._shown.clear()
    for key in set(live) - before:
        if key in live:
            live[key].close()


@pytest.fixture
def wb(project):
    made = Workbench(project)
    made.use("Plan-Build-Eval")
    yield made
    made.close()


@pytest.fixture
def panel(wb):
    return show_designer(wb)


def of(document) -> DesignerPanel:
    """A panel of the loadout T of a config."""
    bench = Workbench(bundled=False)
    bench.load(document)
    return DesignerPanel(bench, bench.design())


def told(panel) -> str:
    return panel.notice.value


def document(panel):
    return panel.design.document


def canvas_ids(panel) -> set[str]:
    canvas = panel._picture.canvas
    return {*canvas.nodes, *canvas.edges}


def click(panel, element: str, kind: str = "node") -> None:
    content = {"event": "click", "widget": kind, "data": {"data": {"id": element}}}
    panel._picture.canvas.widget._handle_custom_msg(content, [])


# -- selecting -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "element, kind, pick, form",
    [
        ("n:Socket-2", "node", ("socket", "Socket-2"), "socket"),
        ("l:items", "node", ("loop", "items"), "loop"),
        ("e:edge:1:Socket-3", "edge", edge_pick("Socket-3", 1), "edge"),
        ("e:loop-exit:items:exit:Socket-4:satisfied", "edge", exit_pick("items", 0), "exit"),
        ("e:implied:Socket-5", "edge", ("socket", "Socket-5"), "socket"),
    ],
)
def test_a_click_selects_and_shows_its_form(panel, element, kind, pick, form):
    click(panel, element, kind)
    assert panel.selected == pick
    assert [name for name, one in panel.forms.items() if one.view.layout.display is None] == [form]


def test_every_part_can_be_selected_from_the_list_and_by_name(panel):
    for words, pick in panel._picture.chooser.named:
        panel._picture.chooser.list.value = pick
        assert panel.selected == pick
        panel.select(None)
        panel._picture.chooser.find.value = words.strip()
        assert panel.selected == pick
        assert told(panel) == ""


def test_parts_name_their_place_in_the_document():
    loop = {"exits": [5, route("Socket-3", "satisfied", "Nowhere"), route("Socket-3", "always", "end")]}
    document = looped(loop, Socket_2={"edges": ["x", edge("Nowhere"), edge("Socket-3")]})
    raw = document["loadouts"]["T"]
    raw["sockets"]["odd:one"] = {"materia": "P", "edges": [edge("end")]}
    design = Design("T", raw, document)
    found = [pick for _, pick in parts(raw, design.graph())]
    assert edge_pick("Socket-2", 0) in found, "also what cannot be drawn"
    assert exit_pick("L", 0) in found
    assert owner_of(edge_pick("odd:one", 0)) == ("odd:one", 0)
    drawn = drawn_parts(raw, design.graph())
    assert set(drawn.values()) <= set(found)
    assert drawn["edge", "edge:2:Socket-2"] == edge_pick("Socket-2", 2)
    assert drawn["exit", "loop-exit:L:exit:Socket-3:always"] == exit_pick("L", 2)


# -- sockets and edges --------------------------------------------------------------------


def test_a_socket_is_added_connected_renamed_and_removed(panel):
    panel.materia.value = "Narrate"
    panel.add_button.click()
    assert panel.selected == ("socket", "Socket-6")
    assert "added Socket-6 (Narrate)" in told(panel)
    assert "n:Socket-6" in canvas_ids(panel)
    assert "lead an edge to it" in panel._report.value
    click(panel, "n:Socket-5")
    form = panel.forms["socket"]
    form.to.value, form.most.value = "Socket-6", "3"
    form.when.value = "satisfied"
    form.connect.click()
    assert document(panel)["sockets"]["Socket-5"]["edges"] == [edge("Socket-6", "satisfied", maxTraversals=3)]
    assert (form.to.value, form.most.value) == ("", "")
    assert "e:edge:0:Socket-5" in canvas_ids(panel)
    panel.select(("socket", "Socket-6"))
    form.mark.click()
    form.id.value = "Tell"
    assert panel.marked == ["Tell"]
    assert panel.selected == ("socket", "Tell")
    assert document(panel)["sockets"]["Socket-5"]["edges"][0]["to"] == "Tell"
    assert "Remove takes away Tell, with 1 edge" in form.going.value
    form.away.click()
    assert panel.selected is None
    assert "Tell" not in document(panel)["sockets"]
    assert "n:Tell" not in canvas_ids(panel)
    assert panel.marked == []


def test_the_handoff_is_asked_for_in_a_turn_of_its_own(panel):
    panel.select(("socket", "Socket-3"))
    form = panel.forms["socket"]
    form.finalize.value = True
    assert document(panel)["sockets"]["Socket-3"]["finalize"] is True
    panel.select(("socket", "Socket-5"))
    assert form.finalize.value == ""
    panel.select(("socket", "Socket-3"))
    assert form.finalize.value is True
    form.finalize.value = ""
    assert "finalize" not in document(panel)["sockets"]["Socket-3"]


def test_the_fields_of_a_socket_are_set_and_shown(panel):
    panel.select(("socket", "Socket-5"))
    form = panel.forms["socket"]
    form.materia.value, form.parse.value, form.label.value = "Build", "json", "Told"
    form.assign.value = "plan: $.context"
    form.advance.value = '{"when": "satisfied", "cursor": "c", "items": "state.x"}'
    assert document(panel)["sockets"]["Socket-5"] == {
        "materia": "Build",
        "parse": "json",
        "label": "Told",
        "assign": {"plan": "$.context"},
        "advance": {"when": "satisfied", "cursor": "c", "items": "state.x"},
    }
    assert form.fields.layout.display == "none"
    form.more.click()
    assert form.fields.layout.display is None
    form.place.value = "3, 1"
    assert document(panel)["layout"]["sockets"]["Socket-5"] == {"x": 3, "y": 1}
    form.place.value = "right"
    assert "two numbers" in told(panel)
    form.place.value = "4, 0"
    form.place.value = ""
    assert "Socket-5" not in document(panel)["layout"]["sockets"]
    form.assign.value = "{broken"
    assert "not JSON" in told(panel)
    assert document(panel)["sockets"]["Socket-5"]["assign"] == {"plan": "$.context"}
    form.advance.value = form.label.value = ""
    form.parse.value = ""
    form.entry.click()
    assert document(panel)["entry"] == "Socket-5"
    assert set(document(panel)["sockets"]["Socket-5"]) == {"materia", "assign"}
    panel.select(("socket", "Socket-3"))
    assert (form.id.value, form.materia.value, form.parse.value) == ("Socket-3", "Eval", "json")
    assert (form.assign.value, form.label.value) == ("", "")
    assert len(panel.design.steps) == 11, "showing another socket is no step"


def test_an_edge_is_changed_moved_and_removed(panel):
    click(panel, "e:edge:0:Socket-3", "edge")
    form = panel.forms["edge"]
    assert (form.when.value, form.to.value, form.most.value) == ("satisfied", "Socket-4", "")
    assert form.up.disabled
    form.down.click()
    assert panel.selected == edge_pick("Socket-3", 1)
    assert [one["to"] for one in document(panel)["sockets"]["Socket-3"]["edges"]] == ["Socket-2", "Socket-4"]
    form.when.value = "always"
    form.to.value = "end"
    form.most.value = "2"
    assert document(panel)["sockets"]["Socket-3"]["edges"][1] == edge("end", maxTraversals=2)
    form.most.value = "many"
    assert "whole number" in told(panel)
    form.to.value = "Socket-9"
    assert "there is no socket" in told(panel)
    form.away.click()
    assert panel.selected == ("socket", "Socket-3")
    assert len(document(panel)["sockets"]["Socket-3"]["edges"]) == 1


# -- loops and exits ------------------------------------------------------------------------


def test_a_loop_is_made_of_marked_sockets_and_goes_over_what_leads_into_it(wb):
    document_ = looped({})
    del document_["loadouts"]["T"]["loops"]
    panel = of(document_)
    assert panel.loop_button.disabled
    for id_ in ("Socket-2", "Socket-3", "Socket-4"):
        panel.select(("socket", id_))
        panel.forms["socket"].mark.click()
    assert panel._picture.canvas.nodes["n:Socket-2"].data["label"].startswith("●")
    panel.forms["socket"].mark.click()
    assert panel.marked == ["Socket-2", "Socket-3"]
    panel.loop_button.click()
    assert "over the work items of Socket-1" in told(panel)
    assert panel.selected == ("loop", "items")
    assert document(panel)["loops"] == {
        "items": {
            "sockets": ["Socket-2", "Socket-3"],
            "consumes": {"from": "Socket-1", "output": "workItems"},
        }
    }
    assert "l:items" in canvas_ids(panel)
    form = panel.forms["loop"]
    form.alias.value, form.id.value = "piece", "pieces"
    form.kind.value = "iterator"
    form.items.value = "state.rows"
    assert document(panel)["loops"]["pieces"]["iterator"] == {"items": "state.rows"}
    form.kind.value = "consumes"
    assert document(panel)["loops"]["pieces"]["consumes"] == {"from": "Socket-1", "output": "workItems"}
    form.kind.value = ""
    assert document(panel)["loops"]["pieces"] == {"sockets": ["Socket-2", "Socket-3"]}
    panel.mark("Socket-2")
    form.remake.click()
    assert document(panel)["loops"]["pieces"] == {"sockets": ["Socket-2"]}
    panel.close()


def test_exits_are_added_changed_and_deleted_in_the_loop_and_never_as_edges(panel):
    edges = json.dumps([one.get("edges") for one in document(panel)["sockets"].values()])
    panel.select(("loop", "items"))
    form = panel.forms["loop"]
    form.from_.value, form.when.value, form.to.value = "Socket-4", "not_satisfied", "end"
    form.add.click()
    assert "added exit" in told(panel)
    assert (form.from_.value, form.to.value) == ("", "")
    click(panel, "e:loop-exit:items:exit:Socket-4:not_satisfied", "edge")
    assert panel.selected == exit_pick("items", 2)
    way_out = panel.forms["exit"]
    way_out.to.value = "Socket-1"
    for place in (1, 0):
        way_out.up.click()
        assert panel.selected == exit_pick("items", place)
    way_out.when.value = "satisfied"
    assert "another exit leaves" in told(panel)
    way_out.from_.value = "Socket-3"
    way_out.when.value = "always"
    assert document(panel)["loops"]["items"]["exits"][0] == {
        "id": "exit:Socket-4:not_satisfied",
        "from": "Socket-3",
        "condition": "always",
        "targetSocketId": "Socket-1",
    }
    way_out.away.click()
    assert panel.selected == ("loop", "items")
    assert len(document(panel)["loops"]["items"]["exits"]) == 2
    form.away.click()
    assert "deleted loop items, with 2 exits" in told(panel)
    assert "loops" not in document(panel)
    assert json.dumps([one.get("edges") for one in document(panel)["sockets"].values()]) == edges


def test_r15_an_exit_in_the_older_form_can_be_removed():
    panel = of(looped({"exit": {"from": "Socket-3", "when": "satisfied", "to": "Socket-4"}}))
    click(panel, "e:loop-exit:L:exit:Socket-3:satisfied", "edge")
    assert panel.selected == exit_pick("L", "old")
    form = panel.forms["exit"]
    assert "field exit" in form.note.value
    assert form.fields.layout.display == "none"
    form.away.click()
    assert "exit" not in document(panel)["loops"]["L"]
    panel.close()


# -- steps, report, picture ---------------------------------------------------------------------


def test_problems_come_and_go_and_the_picture_shows_what_there_is(panel):
    click(panel, "e:edge:0:Socket-1", "edge")
    panel.forms["edge"].away.click()
    assert "no edge of a generator leads into the loop" in panel._report.value
    assert "1 problem" in panel._status.value
    assert "l:items" in canvas_ids(panel)
    panel.undo_button.click()
    assert "no problems, no hints" in panel._report.value
    assert panel.undo_button.disabled
    panel.redo_button.click()
    assert "no edge of a generator leads into the loop" in panel._report.value
    assert panel.redo_button.disabled
    assert "&quot;op&quot;:&quot;remove&quot;" in panel._patch.value


def test_a_picture_that_cannot_be_made_leaves_the_one_before(panel, monkeypatch):
    old = canvas_ids(panel)

    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(designer_module, "Picture", broken)
    panel.materia.value = "Build"
    panel.add_button.click()
    assert canvas_ids(panel) == old
    assert "earlier state" in panel._note.value
    monkeypatch.undo()
    panel.undo_button.click()
    panel.redo_button.click()
    assert panel._note.value == "" or panel._note.layout.display == "none"
    assert "n:Socket-6" in canvas_ids(panel)


def test_the_view_stays_where_it_was(panel):
    for _ in range(4):
        panel.views[1].click()
    zoom = panel._picture.canvas.viewport.zoom
    panel.materia.value = "Build"
    panel.add_button.click()
    assert panel._picture.canvas.viewport.zoom == zoom > 1


def test_a_large_loadout_is_a_still_picture_and_edited_all_the_same():
    sockets = {f"Socket-{n}": {"materia": "P", "edges": [edge("end")]} for n in range(1, 160)}
    panel = of(config(sockets))
    assert panel._picture.canvas is None
    panel.views[0].click()
    panel.select(("socket", "Socket-159"))
    panel.forms["socket"].id.value = "Last"
    assert "Last" in document(panel)["sockets"]
    panel.close()


def test_an_empty_loadout_is_begun_and_filled(wb, project):
    panel = show_designer(wb, "Mine", new=True)
    assert "the loadout has no sockets" in panel._report.value
    assert "not saved" not in panel._status.value
    panel.materia.value = "Answer"
    panel.add_button.click()
    panel.save_button.click()
    assert read_config(project / PROJECT_FILE)["loadouts"]["Mine"]["entry"] == "Socket-1"


@pytest.mark.parametrize(
    "broken", [{"sockets": 5, "loops": {"L": {"sockets": ["A"]}}}, {"sockets": {}, "loops": 5}]
)
def test_a_broken_document_can_be_looked_at(wb, broken):
    panel = DesignerPanel(wb, Design("T", broken))
    for _, pick in parts(broken, panel.design.graph()):
        panel.select(pick)
        assert panel.selected == pick
    panel.materia.value = "Build"
    panel.add_button.click()
    assert ("not an object" in told(panel)) == (broken["sockets"] == 5)
    assert "problem" in panel._status.value
    panel.close()


# -- saving ------------------------------------------------------------------------------------


def test_save_says_where_and_problems_need_a_yes(panel, wb, project):
    assert "a copy, since bundled loadouts are not written to" in panel._home.value
    panel.select(("socket", "Socket-1"))
    panel.forms["socket"].away.click()
    panel.save_button.click()
    assert "save it anyway" in told(panel)
    assert not (project / PROJECT_FILE).exists()
    panel.anyway.value = True
    panel.save_button.click()
    assert "saved in" in told(panel)
    assert not panel.anyway.value
    assert "· saved ·" in panel._status.value
    assert panel._patch.value == ""
    assert wb.loadouts["Plan-Build-Eval"] == "project"


def test_save_into_the_notebook_or_another_file(panel, wb, project):
    panel.materia.value = "Build"
    panel.add_button.click()
    panel.where.value = "copy.json"
    panel.save_button.click()
    assert "Socket-6" in read_config(project / "copy.json")["loadouts"]["Plan-Build-Eval"]["sockets"]
    assert panel.design.changed
    panel.where.value = "this notebook"
    panel.save_button.click()
    assert wb.loadouts["Plan-Build-Eval"] == "notebook"
    assert not panel.design.changed


def test_a_file_changed_meanwhile_is_reloaded_and_the_edits_come_back_by_undo(panel, project):
    panel.save_button.click()
    panel.materia.value = "Build"
    panel.add_button.click()
    path = project / PROJECT_FILE
    theirs = path.read_text().replace('"Narrate"', '"Answer"')
    path.write_text(theirs)
    panel.save_button.click()
    assert "changed on disk" in told(panel)
    assert path.read_text() == theirs
    panel.reload_button.click()
    assert document(panel)["sockets"]["Socket-5"]["materia"] == "Answer"
    assert not panel.design.changed
    panel.undo_button.click()
    assert "Socket-6" in document(panel)["sockets"]
    panel.save_button.click()
    assert "Socket-6" in path.read_text()


def test_materia_that_are_defined_meanwhile_are_known(panel, wb):
    panel.materia.value = "Mine"
    panel.add_button.click()
    assert "there is no materia" in panel._report.value
    assert "Mine" not in panel.materia.options
    wb.define_materia("Mine", {"tools": "none", "prompt": "p"})
    panel.select(("socket", "Socket-6"))
    assert "there is no materia" not in panel._report.value
    assert "Mine" in panel.materia.options


# -- widgets ------------------------------------------------------------------------------------


def test_nothing_is_left_of_a_closed_panel_or_an_old_picture(wb):
    before = len(live)
    panel = show_designer(wb)
    panel.materia.value = "Build"
    panel.add_button.click()
    count = len(live)
    for _ in range(5):
        panel.undo_button.click()
        panel.redo_button.click()
    assert len(live) == count
    panel.close()
    assert len(live) == before


def test_running_the_cell_again_keeps_the_edits_and_adds_no_widgets(wb):
    first = show_designer(wb)
    first.materia.value = "Build"
    first.add_button.click()
    count = len(live)
    for _ in range(3):
        again = show_designer(wb)
        assert len(live) == count
    assert first.closed
    assert again.design.changed
    assert "not saved yet" in told(again)
    again.undo_button.click()
    assert not again.design.changed
    fresh = show_designer(wb)
    assert fresh.design is not again.design


def test_every_field_and_button_says_what_it_is(panel):
    for form in [*panel.forms.values(), panel]:
        for widget in widgets_in(form.view):
            kind = type(widget).__name__
            if kind in ("Text", "Textarea", "Combobox"):
                assert widget.placeholder, widget.description
            elif kind == "Button":
                assert widget.tooltip, widget.description


def test_hostile_text_is_escaped_everywhere():
    sockets = {
        "Socket-1": {
            "materia": HOSTILE,
            "label": HOSTILE,
            "parse": HOSTILE,
            "edges": [edge(HOSTILE), HOSTILE],
        },
        HOSTILE: {"materia": "P", "edges": [edge("Socket-1", HOSTILE, maxTraversals=HOSTILE)]},
    }
    loop = {
        "sockets": ["Socket-1", HOSTILE],
        "consumes": {"from": HOSTILE, "as": HOSTILE},
        "exits": [
            {"id": HOSTILE, "from": HOSTILE, "condition": "always", "targetSocketId": HOSTILE},
            HOSTILE,
        ],
        "exit": {"from": HOSTILE, "when": "always", "to": HOSTILE},
    }
    panel = of(config(sockets, loops={HOSTILE: loop}))
    panel.mark(HOSTILE)
    for _, pick in panel._picture.chooser.named:
        panel.select(pick)
        assert panel.selected == pick
        for widget in widgets_in(panel.view):
            if type(widget).__name__ == "HTML":
                assert "<img" not in widget.value
    panel.select(("loop", HOSTILE))
    panel.forms["loop"].away.click()
    assert "&lt;img" in told(panel)
    text, svg = panel.fallback()
    assert "<img" not in svg
    assert text
    panel.close()


# -- the verb --------------------------------------------------------------------------------------


@pytest.fixture
def shell(project, monkeypatch):
    monkeypatch.chdir(project)
    made = InteractiveShell()
    materia_nb.load_ipython_extension(made)
    yield made
    made.user_ns["wb"].close()


def test_the_verb_shows_the_panel(shell):
    shown = shell.run_line_magic("materia", "design Plan-Build-Eval")
    assert isinstance(shown, DesignerPanel)
    bundle = shown._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "Socket-5" in bundle["text/plain"]
    assert "<svg" in bundle["image/svg+xml"]
    shell.run_line_magic("materia", "use Ask")
    assert shell.run_line_magic("materia", "design").design.name == "Ask"
    assert shell.run_line_magic("materia", "design --new Mine").design.document == {}
    with pytest.raises(MateriaError, match="did you mean 'Ask'"):
        shell.run_line_magic("materia", "design Asks")
    with pytest.raises(MateriaError, match="already"):
        shell.run_line_magic("materia", "design --new Ask")


def test_the_design_for_code(shell):
    design = shell.run_line_magic("materia", "design Ask").bench.design("Ask")
    assert isinstance(design, Design)
    assert repr(design) == "<Design 'Ask': 0 steps, 0 problems, 0 hints, saved>"


# -- whatever the document ------------------------------------------------------------------------


@given(json_values)
def test_whatever_is_there_can_be_drawn_and_listed(value):
    raw = value if isinstance(value, dict) else {"entry": "Socket-1", "sockets": value, "loops": value}
    graph = sketch("T", raw, {"P": raw})
    Scene(graph)
    assert graph_svg(graph).startswith("<svg")
    found = [pick for _, pick in parts(raw, graph)]
    assert len({words for words, _ in parts(raw, graph)}) == len(found), "a list selects by name"
    assert set(drawn_parts(raw, graph).values()) <= set(found)


@given(valid_configs(), st.data())
def test_a_loadout_with_anything_in_it_can_be_drawn_and_listed(document, data):
    raw = document["loadouts"]["T"]
    for _ in range(3):
        owner = data.draw(st.sampled_from([raw["sockets"], raw["loops"], *raw["sockets"].values()]))
        if isinstance(owner, dict) and owner:
            owner[data.draw(st.sampled_from(list(owner)))] = data.draw(json_values)
    graph = sketch("T", raw, document["materia"])
    Scene(graph)
    found = [pick for _, pick in parts(raw, graph)]
    assert set(drawn_parts(raw, graph).values()) <= set(found)


def press_enter(field) -> None:
    field._handle_custom_msg({"event": "submit"}, [])


def test_enter_adds_connects_and_makes_an_exit_as_the_buttons_do(panel):
    panel.materia.value = "Build"
    before = list(document(panel)["sockets"])
    press_enter(panel.materia)
    [made] = [one for one in document(panel)["sockets"] if one not in before]
    socket = panel.forms["socket"]
    socket.to.value = "end"
    press_enter(socket.to)
    assert document(panel)["sockets"][made]["edges"] == [{"when": "always", "to": "end"}]
    panel.select(("loop", "items"))
    loop = panel.forms["loop"]
    exits = len(document(panel)["loops"]["items"]["exits"])
    loop.from_.value, loop.to.value = document(panel)["loops"]["items"]["sockets"][0], made
    press_enter(loop.to)
    assert len(document(panel)["loops"]["items"]["exits"]) == exits + 1


def test_enter_on_an_empty_field_adds_nothing(panel):
    before = list(document(panel)["sockets"])
    press_enter(panel.materia)
    assert list(document(panel)["sockets"]) == before
    assert 'role="alert"' in told(panel)


# -- the palette -----------------------------------------------------------------------------


def test_the_palette_groups_materia_and_has_utilities_under_utility_at_the_end():
    raw = {
        "U": {"type": "utility", "command": ["true"]},
        "A": {"prompt": "p", "group": "core"},
        "B": {"prompt": "p"},
        "V": {"type": "utility", "command": ["true"], "group": "setup"},
        "C": {"prompt": "p", "group": " core "},
    }
    assert grouped(raw) == {"Agent": ["B"], "core": ["A", "C"], "setup": ["V"], "Utility": ["U"]}
    assert list(grouped(raw)) == ["Agent", "core", "setup", "Utility"]


def test_a_click_in_the_palette_places_the_materia(panel):
    panel.palette.buttons["Narrate"].click()
    made = panel.selected[1]
    assert panel.design.document["sockets"][made]["materia"] == "Narrate"


def test_a_button_of_the_palette_has_the_colour_of_its_materia(wb, panel):
    before = len(live)
    wb.define_materia("Narrate", {"prompt": "p", "tools": "none", "color": "#ffe680"})
    panel.refresh()
    style = panel.palette.buttons["Narrate"].style
    assert (style.button_color, style.text_color) == ("#ffe680", "#000000")
    assert len(live) == before, "the buttons of before are closed"


@pytest.mark.parametrize("field", ["group", "color", "description"])
def test_hostile_text_in_the_palette_is_only_text(wb, panel, field):
    wb.define_materia("Narrate", {"prompt": "p", "tools": "none", field: HOSTILE})
    panel.refresh()
    shown = panel.palette.buttons["Narrate"]
    assert shown.style.button_color is None
    titles = [one.value for one in widgets_in(panel.palette.view) if hasattr(one, "value")]
    assert not any("<img" in title for title in titles)
