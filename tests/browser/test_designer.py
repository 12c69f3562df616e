"""A loadout designed by clicks and keys in real JupyterLab: added to, connected, looped, undone, saved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from browser.test_graph_widget import Picture, no_error

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from browser.lab import Lab

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=window.__owned=1>"
COUNT = "from ipywidgets.widgets.widget import _instances; print(len(_instances))"


class Designer:
    """The design panel in a cell, as a person uses it."""

    def __init__(self, lab: Lab, cell: int) -> None:
        self.lab, self.panel = lab, lab.cell(cell)

    def field(self, placeholder: str) -> Locator:
        """The field of the form that is shown, by what it says when it is empty."""
        return self.panel.get_by_placeholder(placeholder, exact=True).locator("visible=true")

    def press(self, button: str) -> None:
        self.panel.get_by_role("button", name=button, exact=True).locator("visible=true").click()

    def select(self, words: str) -> None:
        """Find a part by name, with the keyboard."""
        field = self.field("type a name, then Enter")
        field.fill(words)
        field.press("Enter")

    def sees(self, text: str) -> None:
        self.panel.get_by_text(text).locator("visible=true").first.wait_for()

    def sees_no(self, text: str) -> None:
        self.panel.get_by_text(text).first.wait_for(state="detached")


@pytest.fixture
def lab_with_room(lab: Lab) -> Lab:
    lab.page.set_viewport_size({"width": 1280, "height": 1700})
    return lab


@pytest.fixture
def designing(lab_with_room: Lab) -> tuple[Lab, Designer, Picture]:
    """A notebook whose second cell edits a bundled loadout; the next ones count widgets and tell the layer."""
    lab = lab_with_room
    show = "%materia design Plan-Build-Eval"
    lab.open(lab.notebook("%load_ext materia_nb", show, COUNT, "print(wb.loadouts['Plan-Build-Eval'])"))
    lab.run_all()
    no_error(lab, 0, 1, 2, 3)
    return lab, Designer(lab, 1), Picture(lab)


def test_sockets_are_added_connected_and_looped_and_problems_come_and_go(designing):
    lab, design, picture = designing

    # By keyboard alone: the materia is typed, and Enter adds it.
    design.field("a materia, then Enter").fill("Narrate")
    lab.page.keyboard.press("Enter")
    design.sees("added Socket-6 (Narrate)")
    design.sees("lead an edge to it, or remove it")
    lab.page.wait_for_function(f"() => {picture.cy}.getElementById('n:Socket-6').length === 1")
    lab.screenshot("designer-socket", cell=1)

    # Connected from the node that is clicked on.
    picture.click("n:Socket-5")
    design.sees("Remove takes away Socket-5")
    design.field("a socket, or end").fill("Socket-6")
    design.press("Connect")
    design.sees("connected Socket-5 to Socket-6 (always) as edge 1")
    design.sees_no("lead an edge to it, or remove it")
    lab.page.wait_for_function(f"() => {picture.cy}.getElementById('e:edge:0:Socket-5').length === 1")

    # A loop of the two marked sockets: problems come and go.
    picture.click("n:Socket-5")
    design.press("Mark")
    design.select("Socket-6")
    design.press("Mark")
    design.sees("marked: Socket-5, Socket-6")
    design.press("Make loop")
    design.sees("made loop items-2 of Socket-5, Socket-6")
    design.press("work items")
    design.sees("nothing is named at loops.items-2.consumes.from")
    design.sees("the picture shows what can be drawn of it")
    lab.page.wait_for_function(f"() => {picture.cy}.getElementById('l:items-2').length === 1")
    lab.screenshot("designer-problem", cell=1)
    lab.screenshot("designer-problem", cell=1, dark=True)
    design.press("Save")
    design.sees("or save it anyway and go on later")
    assert not (lab.folder / ".pi" / "pi-materia.json").exists()
    design.press("Undo")
    design.sees_no("nothing is named at loops.items-2.consumes.from")


def test_a_loop_gets_an_exit_edges_an_order_and_the_file_what_is_meant(designing):
    lab, design, picture = designing
    assert lab.cell_text(3).strip() == "bundled"
    count = int(lab.cell_text(2))
    design.select("Socket-5")
    design.press("Mark")
    design.press("Make loop")
    design.sees("made loop items-2 of Socket-5")

    # An exit, which belongs to the loop; its condition changed with a button of the form.
    design.select("loop items-2")
    design.field("the member that is last").fill("Socket-5")
    design.field("a socket, or end").fill("end")
    design.press("Add exit")
    design.sees("added exit exit:Socket-5:always of loop items-2 to end")
    lab.page.wait_for_function(
        f"() => {picture.cy}.getElementById('e:loop-exit:items-2:exit:Socket-5:always').length === 1"
    )
    design.select("exit always → end (from Socket-5")
    design.sees("Exit 1 of 1 of loop items-2")
    design.panel.get_by_role("button", name="satisfied", exact=True).locator("visible=true").focus()
    lab.page.keyboard.press("Space")
    design.sees("exit 1 of loop items-2 is Socket-5 satisfied to end")
    lab.screenshot("designer-exit", cell=1)

    # The order of edges, by a button that the keyboard reaches.
    design.select("1 satisfied → Socket-4")
    design.sees("Edge 1 of 2 from Socket-3")
    design.panel.get_by_role("button", name="↓ later").locator("visible=true").focus()
    lab.page.keyboard.press("Enter")
    design.sees("moved edge 1 of Socket-3 to place 2")
    lab.screenshot("designer-edge", cell=1)
    design.press("Undo")
    design.press("Save")
    design.sees("saved in ")
    design.select("Socket-4")
    design.sees("Remove takes away Socket-4, with 2 edges, 2 exits and 1 loop membership")
    design.press("More fields")
    design.field("the protocol of its agent").wait_for()
    kept = json.loads((lab.folder / ".pi" / "pi-materia.json").read_text())["loadouts"]["Plan-Build-Eval"]
    assert kept["sockets"]["Socket-5"] == {"materia": "Narrate"}, "the exit is the loop's"
    assert kept["loops"]["items-2"] == {
        "sockets": ["Socket-5"],
        "exits": [
            {
                "id": "exit:Socket-5:always",
                "from": "Socket-5",
                "condition": "satisfied",
                "targetSocketId": "end",
            }
        ],
    }
    lab.screenshot("designer-saved", cell=1)

    for cell in (3, 1, 1, 2):
        lab.run_cell(cell)
    assert lab.cell_text(3).strip() == "project"
    no_error(lab, 1, 2, 3)
    grown = int(lab.cell_text(2)) - count
    lab.run_cell(1)
    lab.run_cell(2)
    assert int(lab.cell_text(2)) - count == grown, "the loadout is larger now, but running again adds nothing"
    assert lab.page.locator(".mnb-canvas").count() == 1


def test_hostile_names_are_text(lab_with_room: Lab):
    lab = lab_with_room
    loadout = {
        "entry": "Socket-1",
        "label": HOSTILE,
        "sockets": {
            "Socket-1": {"materia": HOSTILE, "label": HOSTILE, "edges": [{"when": HOSTILE, "to": HOSTILE}]},
            HOSTILE: {"materia": "M", "edges": [{"when": "always", "to": HOSTILE}], "parse": HOSTILE},
        },
        "loops": {
            HOSTILE: {
                "sockets": ["Socket-1", HOSTILE],
                "consumes": {"from": HOSTILE, "as": HOSTILE},
                "exits": [{"id": HOSTILE, "from": HOSTILE, "condition": "always", "targetSocketId": HOSTILE}],
            }
        },
        "materia": {"M": {"label": HOSTILE, "tools": "none", "prompt": HOSTILE}},
    }
    lab.open(
        lab.notebook(
            "%load_ext materia_nb",
            f"%%materia loadout Hostile\n{json.dumps(loadout)}",
            "%materia design Hostile",
        )
    )
    lab.run_all()
    no_error(lab, 0, 1, 2)
    design = Designer(lab, 2)
    Picture(lab)
    for words, title in (
        ("Socket-1", "Remove takes away Socket-1"),
        (HOSTILE, f"Remove takes away {HOSTILE}"),
        ("1 <img", "Edge 1 of 1 from Socket-1"),
        ("exit always", f"Exit 1 of 1 of loop {HOSTILE}"),
        (f"loop {HOSTILE}", "members: Socket-1, <img"),
    ):
        design.select(words)
        design.sees(title)
    design.press("Delete loop")
    design.sees("deleted loop <img")
    lab.screenshot("designer-hostile", cell=2)
    assert lab.page.evaluate("window.__owned") is None
